//! Commands with a server that requires authorization: the user signs in with a browser on another machine and pastes
//! the redirect URL, and the token is stored for the next command.

use std::path::Path;
use std::process::{Output, Stdio};

use mcp_exact_tests_auth::issuer::{Issuer, start_server};
#[cfg(feature = "bridge")]
use mcp_exact_tests_auth::provider::{CLIENT, PROVIDERS, Setting};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

/// Runs `mcp-exact inspect --headless` with an endpoint, and signs in if the program asks for it.
async fn inspect(endpoint: &str, data: &Path, arguments: &[&str]) -> Output {
    let before = ["inspect", "--headless", "--json", "--allow-other-ports"];
    sign_in(data, &[&before[..], arguments, &[endpoint]].concat()).await
}

/// Runs `mcp-exact` with its data folder at `data`; if the program prints a URL, opens the URL and enters the redirect
/// URL.
async fn sign_in(data: &Path, arguments: &[&str]) -> Output {
    sign_in_with_secret(data, arguments, None).await
}

/// As [`sign_in`], with the secret of the client.
async fn sign_in_with_secret(data: &Path, arguments: &[&str], secret: Option<&str>) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-exact"));
    command
        .args(arguments)
        .envs(secret.map(|secret| ("MCP_EXACT_CLIENT_SECRET", secret)))
        .env("XDG_DATA_HOME", data);
    paste_redirect(command).await
}

/// Runs the program; if it prints a URL, opens the URL and enters the redirect URL.
async fn paste_redirect(mut command: Command) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let stderr = child.stderr.take().expect("it is piped");
    let mut input = child.stdin.take().expect("it is piped");
    let signing_in = async move {
        let (mut stderr, mut words) = (BufReader::new(stderr), String::new());
        while stderr.read_line(&mut words).await.expect("text") > 0 {
            let line = words.lines().last().unwrap_or_default();
            if line.starts_with("http://") {
                let redirect = follow_redirects(line).await;
                input.write_all(redirect.as_bytes()).await.expect("read");
                input.write_all(b"\n").await.expect("read");
            }
        }
        words
    };
    let (output, words) = tokio::join!(child.wait_with_output(), signing_in);
    let mut output = output.expect("it ends");
    output.stderr = words.into_bytes();
    output
}

/// Opens a URL of the authorization server and returns the URL to which it redirects.
async fn follow_redirects(url: &str) -> String {
    let rest = url.strip_prefix("http://").expect("it is on loopback");
    let (address, path) = rest.split_once('/').expect("it has a path");
    let stream = tokio::net::TcpStream::connect(address).await;
    let mut stream = stream.expect("it listens");
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("text");
    let mut lines = answer.lines();
    let location = lines.find_map(|line| line.strip_prefix("location: "));
    location.expect("it redirects").to_owned()
}

/// The token of the first sign-in is used by the next command; with `--forget`, no stored token is used; with a header
/// for credentials, the program does not sign in.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sign_in_is_needed_once() {
    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let data = tempfile::tempdir().expect("a folder");
    let words = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    for sign_ins in [1, 1] {
        let output = inspect(&endpoint, data.path(), &[]).await;
        assert!(output.status.success(), "{}", words(&output));
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("\"protected\""), "{text}");
        assert_eq!(issuer.site.count("/authorize"), sign_ins);
    }
    // Nothing is kept of this one, nor taken from what was.
    let output = inspect(&endpoint, data.path(), &["--forget"]).await;
    assert!(output.status.success(), "{}", words(&output));
    assert_eq!(issuer.site.count("/authorize"), 2);
    // A token that the user gives is used as it is.
    let header = format!(
        "Authorization: Bearer {}",
        issuer.token("elsewhere", "u", "read")
    );
    let output = inspect(&endpoint, data.path(), &["--header", &header]).await;
    assert_eq!(output.status.code(), Some(2), "{}", words(&output));
    assert_eq!(issuer.site.count("/authorize"), 2);
}

/// Where a user has no home directory, as in a container, servers are used and tokens are not kept.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_home_directory_is_needed() {
    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    for sign_ins in [1, 2] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-exact"));
        command
            .args(["inspect", "--headless", "--allow-other-ports", &endpoint])
            .env_remove("XDG_DATA_HOME")
            .env_remove("HOME");
        let output = paste_redirect(command).await;
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{words}");
        assert_eq!(issuer.site.count("/authorize"), sign_ins);
    }
}

/// What an authorization server lacks is allowed by an option, or by a key of the gateway's file, which the error names.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn remedies_name_settings() {
    let issuer = Issuer::start().await;
    issuer
        .lists_pkce
        .store(false, std::sync::atomic::Ordering::Relaxed);
    let endpoint = start_server(&issuer).await;
    let data = tempfile::tempdir().expect("a folder");
    let output = sign_in(data.path(), &["inspect", "--headless", &endpoint]).await;
    let words = String::from_utf8_lossy(&output.stderr);
    let to_other_port = "it leads to another port of this machine; if you trust it:";
    assert!(
        words.ends_with(&format!("{to_other_port} --allow-other-ports\n")),
        "{words}"
    );
    let output = inspect(&endpoint, data.path(), &[]).await;
    let words = String::from_utf8_lossy(&output.stderr);
    let of_issuer = format!(
        "(Entra ID and Cognito leave the list out), write {} for",
        issuer.site.url
    );
    let expected = format!("{of_issuer} --assume-pkce\n");
    assert!(words.ends_with(&expected), "{words}");
    let assumed = ["--assume-pkce", &issuer.site.url];
    let output = inspect(&endpoint, data.path(), &assumed).await;
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    #[cfg(feature = "bridge")]
    {
        let config = data.path().join("bridge.toml");
        let config_path = config.to_str().expect("text");
        let other = tempfile::tempdir().expect("a folder");
        let of_ports = format!("{to_other_port} the key `allow-other-ports` of `oauth`");
        let of_pkce = format!("{of_issuer} the key `assume-pkce` of `oauth`");
        for (keys, expected) in [
            ("scopes = [\"other\"]", of_ports),
            ("allow-other-ports = true", of_pkce),
        ] {
            let text = format!("[servers.web]\nurl = \"{endpoint}\"\noauth = {{ {keys} }}\n");
            std::fs::write(&config, text).expect("a file");
            let output = run_program(other.path(), &["bridge", "--config", config_path]).await;
            let words = String::from_utf8_lossy(&output.stderr);
            assert!(words.contains(&expected), "{words}");
            assert!(!words.contains("OAuth::"), "{words}");
        }
    }
}

/// Runs `mcp-exact` to its end without input, with its data folder at `data`.
#[cfg(feature = "bridge")]
pub async fn run_program(data: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-exact"));
    command
        .args(arguments)
        .env("XDG_DATA_HOME", data)
        .env("GATEWAY_SECRET", "s3cret");
    command
        .stdin(Stdio::null())
        .output()
        .await
        .expect("it starts")
}

/// A 2024-11-05 client can use a protected 2026-07-28 server through the gateway once the user has signed in; the
/// gateway itself never starts a sign-in.
#[cfg(feature = "bridge")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_client_uses_a_protected_server() {
    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let data = tempfile::tempdir().expect("a folder");
    let gateway = env!("CARGO_BIN_EXE_mcp-exact");
    let bridge = [
        gateway,
        "bridge",
        "--headless",
        "--allow-other-ports",
        "-r",
        "2026-07-28",
        &endpoint,
    ];
    let call = [&["call", "-r", "2024-11-05", "who", "--"], &bridge[..]].concat();

    // Nobody can sign in at the standard input of the client.
    let output = run_program(data.path(), &call).await;
    assert!(!output.status.success());
    assert_eq!(issuer.site.count("/authorize"), 0);

    let output = inspect(&endpoint, data.path(), &[]).await;
    assert!(output.status.success());
    let output = run_program(data.path(), &call).await;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{err}");
    assert!(out.contains(r#"Some("u") read"#), "{out}");
    assert_eq!(issuer.site.count("/authorize"), 1);
}

/// The program and the gateway sign in to every provider with the options and keys that it needs; without one of them, the
/// error names it.
#[cfg(feature = "bridge")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn options_make_providers_usable() {
    let words = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    for provider in &PROVIDERS {
        let server = provider.start().await;
        let data = tempfile::tempdir().expect("a folder");
        let inspect = async |settings: &[Setting], data: &Path| {
            let mut arguments = vec!["inspect".to_owned(), "--headless".to_owned()];
            arguments.extend(server.arguments(settings));
            arguments.push(server.endpoint.clone());
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let secret = settings.contains(&Setting::Secret).then_some(CLIENT.1);
            sign_in_with_secret(data, &arguments, secret).await
        };
        let config = data.path().join("bridge.toml");
        let config_path = config.to_str().expect("text");
        for &missing in provider.settings {
            let others = provider.settings.iter().copied();
            let others: Vec<Setting> = others.filter(|setting| *setting != missing).collect();
            let [_, option, key] = missing.names();
            let other = tempfile::tempdir().expect("a folder");
            let said = words(&inspect(&others, other.path()).await);
            assert!(
                said.contains(option),
                "{} {missing:?}: {said}",
                provider.name
            );
            // Nobody signs in at the gateway.
            if missing.is_found_before_sign_in() {
                std::fs::write(&config, server.gateway_file(&others)).expect("a file");
                let output = run_program(other.path(), &["bridge", "--config", config_path]).await;
                let said = words(&output);
                let is_refused = said.contains(key) || said.contains("`client-id`");
                assert!(is_refused, "{} {missing:?}: {said}", provider.name);
            }
        }
        let output = inspect(provider.settings, data.path()).await;
        assert!(
            output.status.success(),
            "{}: {}",
            provider.name,
            words(&output)
        );
        std::fs::write(&config, server.gateway_file(provider.settings)).expect("a file");
        let program = env!("CARGO_BIN_EXE_mcp-exact");
        let call = [
            "call",
            "who",
            "--",
            program,
            "bridge",
            "--config",
            config_path,
        ];
        let output = run_program(data.path(), &call).await;
        assert!(
            output.status.success(),
            "{}: {}",
            provider.name,
            words(&output)
        );
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "ada");
    }
}

/// Returns the contents of the fenced code blocks of a language in a Markdown text, with `url` in place of
/// `https://example.com/mcp`.
#[cfg(feature = "bridge")]
fn code_blocks(section: &str, language: &str, url: &str) -> Vec<String> {
    let fences = section.split("```").skip(1).step_by(2);
    let blocks = fences.filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
    let blocks = blocks.map(|block| block.replace("https://example.com/mcp", url));
    blocks.collect()
}

/// The commands in the section "Ten minutes" of `docs/bridge.md` sign in, explain the losses, and let a 2024-11-05
/// client use a protected server.
#[cfg(feature = "bridge")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documented_commands_serve_an_old_client() {
    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let data = tempfile::tempdir().expect("a folder");
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bridge.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let (_, section) = page.split_once("## Ten minutes").expect("the section");
    let (section, _) = section
        .split_once("To serve many servers")
        .expect("its end");

    let blocks_of_text = code_blocks(section, "text", &endpoint);
    let commands = blocks_of_text.iter().flat_map(|block| block.lines());
    // This program is installed already.
    let commands = commands.filter_map(|line| line.strip_prefix("mcp-exact "));
    let mut outputs = Vec::new();
    for command in commands {
        let mut arguments: Vec<&str> = command.split_whitespace().collect();
        // The authorization server of this test is at another port of this machine.
        let url = arguments.pop().expect("the URL");
        match arguments.last() {
            Some(&"--server") => arguments.extend([url, "--allow-other-ports"]),
            _ => arguments.extend(["--allow-other-ports", url]),
        }
        let output = sign_in(data.path(), &arguments).await;
        // 1 says that `explain` has found losses.
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{command}: {words}"
        );
        outputs.push(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let [inspected, explained] = &outputs[..] else {
        panic!("two commands: {blocks_of_text:?}");
    };
    assert!(inspected.contains("protected"), "{inspected}");
    assert!(explained.contains("2024-11-05"), "{explained}");

    let blocks_of_json = code_blocks(section, "json", &endpoint);
    let configuration: serde_json::Value = serde_json::from_str(&blocks_of_json[0]).expect("JSON");
    let server = &configuration["mcpServers"]["example"];
    assert_eq!(server["command"], "mcp-exact");
    let arguments = server["args"].as_array().expect("arguments");
    let arguments = arguments
        .iter()
        .map(|argument| argument.as_str().expect("text"));
    let client = ["call", "-r", "2024-11-05", "who", "--"];
    let gateway = [env!("CARGO_BIN_EXE_mcp-exact")];
    let mut arguments: Vec<&str> = arguments.collect();
    arguments.insert(arguments.len() - 1, "--allow-other-ports");
    let call: Vec<&str> = client.into_iter().chain(gateway).chain(arguments).collect();
    let output = run_program(data.path(), &call).await;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{err}");
    assert!(out.contains(r#"Some("u") read"#), "{out}");
    assert_eq!(
        issuer.site.count("/authorize"),
        1,
        "the person signs in once"
    );
}

/// Starts the gateway with the text of a configuration file; returns its process and its URL.
#[cfg(feature = "bridge")]
pub async fn start_gateway(data: &Path, config: &str) -> (tokio::process::Child, String) {
    let file = data.join("bridge.toml");
    std::fs::write(&file, config).expect("a file");
    let mut gateway = Command::new(env!("CARGO_BIN_EXE_mcp-exact"))
        .args(["bridge", "--config"])
        .arg(&file)
        .current_dir(data)
        .env("XDG_DATA_HOME", data)
        .env("GATEWAY_SECRET", "s3cret")
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let stderr = gateway.stderr.take().expect("it is piped");
    let (mut stderr, mut words) = (BufReader::new(stderr), String::new());
    while !words.contains("listening at ") {
        let read = stderr.read_line(&mut words).await.expect("text");
        assert!(read > 0, "{words}");
    }
    let (_, url) = words.split_once("listening at ").expect("a URL");
    let url = url.split(',').next().expect("a URL").trim();
    (gateway, url.to_owned())
}

/// The gateway accepts only tokens of its authorization server with its audience and scope. The audit log contains the
/// subject of the token, and the server receives only the credentials of the gateway.
#[cfg(feature = "bridge")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_need_tokens_for_the_gateway() {
    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let resource = "https://gateway.example/mcp";
    let data = tempfile::tempdir().expect("a folder");
    let text = format!(
        "listen = \"127.0.0.1:0\"\nlist-within = 60\nprefix = \"never\"\naudit = \"audit.jsonl\"\n\
         [auth]\nissuer = \"{}\"\nresource = \"{resource}\"\nscopes = [\"use\"]\n\
         [servers.web]\nurl = \"{endpoint}\"\n\
         oauth = {{ grant = \"client-credentials\", allow-other-ports = true, client-id = \"gateway\", secret = \"${{GATEWAY_SECRET}}\", scopes = [\"read\"] }}\n",
        issuer.site.url
    );
    let (_gateway, url) = start_gateway(data.path(), &text).await;
    let call = async |token: &str| {
        let header = format!("Authorization: Bearer {token}");
        run_program(
            data.path(),
            &["call", "--header", &header, "who", "--", &url],
        )
        .await
    };
    for wrong in [
        "none".to_owned(),
        issuer.token(&endpoint, "ada", "use"),
        issuer.token(resource, "ada", "read"),
    ] {
        assert!(!call(&wrong).await.status.success(), "{wrong}");
    }
    let output = call(&issuer.token(resource, "ada", "use")).await;
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    assert!(out.contains("read") && !out.contains("ada"), "{out}");
    let is_logged = || {
        let audit = std::fs::read_to_string(data.path().join("audit.jsonl")).unwrap_or_default();
        let mut lines = audit.lines();
        // The principal is issuer, subject and client, as JSON.
        lines.any(|line| line.contains("tools/call") && line.contains(r#"\"ada\""#))
    };
    while !is_logged() {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// Each endpoint of the gateway is a resource of its own: it has its own metadata, and takes only the tokens that are for it.
#[cfg(feature = "bridge")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_are_for_one_endpoint() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let joint = "https://gateway.example/mcp";
    let of_server = "https://gateway.example/mcp/web";
    let data = tempfile::tempdir().expect("a folder");
    let text = format!(
        "listen = \"127.0.0.1:0\"\nlist-within = 60\nprefix = \"never\"\n\
         [auth]\nissuer = \"{}\"\nresource = \"{joint}\"\nscopes = [\"use\"]\n\
         [servers.web]\nurl = \"{endpoint}\"\n\
         oauth = {{ grant = \"client-credentials\", allow-other-ports = true, client-id = \"gateway\", secret = \"${{GATEWAY_SECRET}}\", scopes = [\"read\"] }}\n",
        issuer.site.url
    );
    let (_gateway, url) = start_gateway(data.path(), &text).await;
    for (path, resource, is_accepted) in [
        ("", joint, true),
        ("/web", of_server, true),
        ("", of_server, false),
        ("/web", joint, false),
        ("/web", "https://gateway.example/mcp/other", false),
        ("/other", "https://gateway.example/mcp/other", false),
    ] {
        let token = issuer.token(resource, "ada", "use");
        let (header, url) = (
            format!("Authorization: Bearer {token}"),
            format!("{url}{path}"),
        );
        let arguments = ["call", "--header", &header, "who", "--", &url];
        let output = run_program(data.path(), &arguments).await;
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.success(),
            is_accepted,
            "{path}, {resource}: {err}"
        );
    }
    let address = url.strip_prefix("http://").expect("a URL");
    let address = address.strip_suffix("/mcp").expect("a path");
    let get = async |path: &str| {
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("open");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAccept: text/event-stream\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer
    };
    let metadata = "/.well-known/oauth-protected-resource/mcp";
    for (path, expected) in [
        (metadata.to_owned(), format!("\"resource\":\"{joint}\"")),
        (
            format!("{metadata}/web"),
            format!("\"resource\":\"{of_server}\""),
        ),
        (format!("{metadata}/other"), "404".to_owned()),
        (
            "/mcp/web".to_owned(),
            format!("resource_metadata=\"https://gateway.example{metadata}/web\""),
        ),
        (
            "/mcp".to_owned(),
            format!("resource_metadata=\"https://gateway.example{metadata}\""),
        ),
        ("/mcp/other".to_owned(), "404".to_owned()),
    ] {
        let answer = get(&path).await;
        assert!(answer.contains(&expected), "{path}: {answer}");
    }
}

/// The server receives the credentials of the gateway, and never those of the gateway's client.
#[cfg(feature = "bridge")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateway_sends_its_own_credentials() {
    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let data = tempfile::tempdir().expect("a folder");
    let text = format!(
        "listen = \"127.0.0.1:0\"\nlist-within = 60\nprefix = \"never\"\n[servers.web]\nurl = \"{endpoint}\"\n\
         oauth = {{ grant = \"client-credentials\", allow-other-ports = true, client-id = \"gateway\", secret = \"${{GATEWAY_SECRET}}\", scopes = [\"read\"] }}\n"
    );
    let (_gateway, url) = start_gateway(data.path(), &text).await;
    let header = "Authorization: Bearer of-the-client";
    let output = run_program(
        data.path(),
        &["call", "--header", header, "who", "--", &url],
    )
    .await;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{err}");
    assert!(out.contains("read"), "{out}");
    assert!(!out.contains("of-the-client"), "{out}");
    assert_eq!(issuer.site.count("/authorize"), 0);
}

/// A server that demands a token and says nothing about where to get one: the error says so, with its URL and the option.
#[test]
fn server_without_metadata_takes_a_header() {
    use mcp_exact_tests_support::http_peer::{HttpPeer, PeerReply, legacy_reply};

    let peer = HttpPeer::start(|request| match request.header("authorization") {
        Some("Bearer mine") => legacy_reply(request, "2025-06-18"),
        _ => PeerReply::new(401, "text/plain", "no"),
    });
    let expected = format!(
        "error: the server at `{}` demands authorization (HTTP status 401) and names no authorization server; if you have a \
         token: --header 'Authorization: Bearer …'; if it issues its tokens itself, as servers of 2025-03-26 can: write {} for \
         --assume-pkce\n",
        peer.url,
        peer.url.trim_end_matches("/mcp")
    );
    for command in [&["inspect"][..], &["call", "echo", "--"], &["doctor"]] {
        let (name, rest) = command.split_first().expect("a command");
        let arguments = [&[*name, "--headless", "--forget"], rest, &[&peer.url]].concat();
        let ended = crate::program::run(Path::new("."), &arguments, b"");
        assert_eq!((ended.code, &ended.err), (2, &expected), "{command:?}");
    }
    let arguments = [
        "inspect",
        "--header",
        "Authorization: Bearer mine",
        &peer.url,
    ];
    let ended = crate::program::run(Path::new("."), &arguments, b"");
    assert_eq!(ended.code, 0, "{}", ended.err);
}
