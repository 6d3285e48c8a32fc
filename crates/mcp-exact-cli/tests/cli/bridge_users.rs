//! Servers with `auth = "user"` in the gateway's file: what the file needs, and accounts that outlive the process in a directory.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use http::Method;
use serde_json::json;

use crate::oauth::{run_program, start_gateway};

#[path = "../../../mcp-exact-bridge/tests/bridge/users/authority.rs"]
mod authority;
#[path = "../../../mcp-exact-bridge/tests/bridge/users/browser.rs"]
mod browser;
#[path = "../../../mcp-exact-bridge/tests/bridge/users/protected.rs"]
mod protected;

use authority::Authority;
use browser::{Browser, Page};
use protected::Protected;

/// Public URL of the gateway, behind a balancer.
const PUBLIC: &str = "http://127.0.0.1:1/mcp";

/// What is missing or does not go together in the file is named with its key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_name_what_accounts_need() {
    let data = tempfile::tempdir().expect("a folder");
    let auth = format!("[auth]\nissuer = \"http://127.0.0.1:2\"\nresource = \"{PUBLIC}\"\n");
    let with_client = format!("{auth}client-id = \"gateway\"\n");
    let url = "[servers.web]\nurl = \"http://127.0.0.1:3/mcp\"\n";
    let user = format!("{url}auth = \"user\"\n");
    for (text, expected) in [
        (user.clone(), "needs [auth] with a `client-id`"),
        (format!("{auth}{user}"), "needs [auth] with a `client-id`"),
        (
            format!("{with_client}[servers.web]\ncommand = \"node\"\nauth = \"user\"\n"),
            "`auth` is for servers with a `url`",
        ),
        (
            format!("{with_client}{user}headers = {{ authorization = \"Bearer x\" }}\n"),
            "exclude each other",
        ),
        (
            format!("{with_client}{user}oauth = {{ grant = \"client-credentials\" }}\n"),
            "leave out `auth = \"user\"`",
        ),
        (
            format!("{url}oauth = {{ grant = \"token-exchange\" }}\n"),
            "is for servers with `auth = \"user\"`",
        ),
        (
            format!("{with_client}[sessions]\ndirectory = \"s\"\n{user}"),
            "needs `seal-keys`",
        ),
        (
            format!("{with_client}{url}auth = \"none\"\n"),
            "unknown variant `none`",
        ),
    ] {
        let config = data.path().join("bridge.toml");
        std::fs::write(&config, format!("listen = \"127.0.0.1:0\"\n{text}")).expect("a file");
        let config = config.to_str().expect("text");
        let output = run_program(data.path(), &["bridge", "--config", config]).await;
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{text}: {words}");
        assert!(words.contains(expected), "{text}: {words}");
    }
}

/// Calls a tool of the server `mail` in the name of a user; returns what is printed.
async fn call(data: &Path, issuer: &Authority, url: &str, tool: &str) -> Result<String, String> {
    let token = issuer.token(PUBLIC, "ann", "program", "use");
    let header = format!("Authorization: Bearer {token}");
    let arguments = [
        "call",
        "-r",
        "2025-06-18",
        "--header",
        &header,
        tool,
        "--",
        url,
    ];
    let output = run_program(data, &arguments).await;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stdout) + &text(&output.stderr))
    }
}

/// An account that a user has connected is used after the gateway was killed, also with another key, and until it is revoked, which the
/// authorization server is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_outlive_the_gateway() {
    let (home, service) = (Authority::start().await, Authority::start().await);
    let server = Protected::start(&service.site.url, &[]).await;
    let data = tempfile::tempdir().expect("a folder");
    let sessions = data.path().join("sessions");
    service
        .behaviour
        .revokes
        .store(true, std::sync::atomic::Ordering::Relaxed);
    let (old, new) = (
        "\"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"",
        "\"YWJjZGVmZ2hpamFiY2RlZmdoaWphYmNkZWZnaGlqYWI=\"",
    );
    let text = format!(
        "listen = \"127.0.0.1:0\"\nlist-within = 60\nseal-keys = [{old}]\n\
         [auth]\nissuer = \"{}\"\nresource = \"{PUBLIC}\"\nclient-id = \"gateway\"\nsecret = \"${{GATEWAY_SECRET}}\"\n\
         [sessions]\ndirectory = \"{}\"\n\
         [servers.mail]\nurl = \"{}\"\nauth = \"user\"\noauth = {{ allow-other-ports = true }}\n",
        home.site.url,
        sessions.display(),
        server.url,
    );
    let (mut gateway, url) = start_gateway(data.path(), &text).await;
    let error = call(data.path(), &home, &url, "mail__connect_mail")
        .await
        .expect_err("no account");
    let mut browser = Browser::of("ann", &[home.site.url.as_str(), service.site.url.as_str()]);
    let connected = agree(&mut browser, &error, &url).await;
    assert_eq!(connected.status, 200, "{}", connected.body);
    assert_eq!(
        call(data.path(), &home, &url, "mail__who").await.as_deref(),
        Ok("ann")
    );
    gateway.kill().await.expect("it is killed");
    let both = text.replace(old, &format!("{new}, {old}"));
    let (mut gateway, url) = start_gateway(data.path(), &both).await;
    assert_eq!(
        call(data.path(), &home, &url, "mail__who").await.as_deref(),
        Ok("ann")
    );
    let config = data.path().join("bridge.toml");
    let config = config.to_str().expect("text");
    let reseal = ["sessions", "reseal", "--config", config];
    // The registration was encrypted anew when the gateway used it.
    for text in [
        "1 encrypted anew, 1 had the first key, 0 cannot be read\n",
        "0 encrypted anew, 2 had the first key, 0 cannot be read\n",
    ] {
        let output = run_program(data.path(), &reseal).await;
        assert_eq!(String::from_utf8_lossy(&output.stdout), text, "{output:?}");
        assert_eq!(output.status.code(), Some(0));
    }
    let folder = sessions.join("tokens");
    let tokens = check_damaged(data.path(), &reseal, &folder).await;
    gateway.kill().await.expect("it is killed");
    let (_gateway, url) = start_gateway(data.path(), &text.replace(old, new)).await;
    assert_eq!(
        call(data.path(), &home, &url, "mail__who").await.as_deref(),
        Ok("ann")
    );
    let principal = format!("[\"{}\",\"ann\",\"program\"]", home.site.url);
    let revoking = Revoking {
        data: data.path(),
        principal: &principal,
        stores: [
            ["--config", config],
            ["--directory", sessions.to_str().expect("text")],
        ],
    };
    check_outages(&revoking, &folder, &service.site.url).await;
    for store in revoking.stores {
        let (code, told, error) = revoking.run(&store).await;
        assert_eq!(
            told, "no tokens were stored; exchanged tokens are forgotten, and connections end\n",
            "{error}"
        );
        assert_eq!(code, 1);
    }
    assert_eq!(service.site.count("/revoke"), 2);
    check_unknown_file(&revoking, &tokens).await;
    assert!(call(data.path(), &home, &url, "mail__who").await.is_err());
}

/// Revocations of a principal by the program.
struct Revoking<'a> {
    data: &'a Path,
    principal: &'a str,
    /// Options for the store with the configuration of the gateway, and without it.
    stores: [[&'a str; 2]; 2],
}

impl Revoking<'_> {
    /// Runs the program; returns its code, and what it prints and reports.
    async fn run(&self, store: &[&str]) -> (i32, String, String) {
        let arguments = ["sessions", "revoke", "--principal", self.principal];
        let output = run_program(self.data, &[&arguments[..], store].concat()).await;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().expect("a code");
        (code, text(&output.stdout), text(&output.stderr))
    }
}

/// Revokes while the store fails altogether, and while its record of revocations alone does: what was done is told.
async fn check_outages(revoking: &Revoking<'_>, folder: &Path, issuer: &str) {
    let [config, directory] = revoking.stores;
    // A folder that others can read fails altogether.
    let set_mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder, mode).expect("a folder");
    };
    set_mode(0o755);
    let (code, told, _) = revoking.run(&[&config[..], &["--json"]].concat()).await;
    assert_eq!(code, 2, "{told}");
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["failure"], "not-removed-nor-announced");
    assert_eq!(told["revoked"], false);
    assert_eq!(told["accounts"], json!([]));
    set_mode(0o700);
    // The record of revocations cannot be read: its name is the SHA-256 hash of `revocations`.
    let record = folder.join("KRe4WJQVw1K5h24cg0VkBhOOCmCXLEsOeCfAiZRnGfA.json");
    std::fs::create_dir(&record).expect("no record yet");
    let (code, told, _) = revoking.run(&config).await;
    assert_eq!(code, 2, "{told}");
    let told: Vec<_> = told.lines().collect();
    let at_issuer = format!("mail: revoked at {issuer}");
    assert_eq!(told[..2], ["revoked", &*at_issuer]);
    assert!(told[2].starts_with("not done: the gateways may not know of it"));
    assert!(told[3].starts_with("run the command again"), "{told:?}");
    let (code, told, _) = revoking.run(&directory).await;
    assert_eq!(code, 2, "{told}");
    let told: Vec<_> = told.lines().collect();
    assert_eq!(told[0], "no tokens were stored");
    assert!(told[1].starts_with("not done: the gateways may not know of it"));
    assert!(told[2].starts_with("run the command again"), "{told:?}");
    let (code, told, _) = revoking.run(&[&directory[..], &["--json"]].concat()).await;
    assert_eq!(code, 2, "{told}");
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["failure"], "not-announced");
    assert_eq!(told["connectionsEnded"], false);
    std::fs::remove_dir(&record).expect("a folder");
}

/// Revokes a user whose tokens are in a file of a newer version: they are removed, too.
async fn check_unknown_file(revoking: &Revoking<'_>, tokens: &Path) {
    let [config, directory] = revoking.stores;
    for (store, lines, expected) in [(config, 3, 1), (directory, 1, 0)] {
        std::fs::write(tokens, "#v2 newer\n").expect("a file");
        let (code, told, error) = revoking.run(&store).await;
        assert_eq!(code, expected, "{told}{error}");
        assert!(!tokens.exists(), "{told}{error}");
        let told: Vec<_> = told.lines().collect();
        assert_eq!((told[0], told.len()), ("revoked", lines), "{told:?}");
        let words = "not revoked: the stored tokens of the user were damaged, or had a form";
        assert!(
            told.get(1).is_none_or(|line| line.starts_with(words)),
            "{told:?}"
        );
    }
}

/// Cuts off what is stored, and puts it back: it is told from what has another key, with what helps. Returns the file.
async fn check_damaged(data: &Path, reseal: &[&str], folder: &Path) -> PathBuf {
    let files = std::fs::read_dir(folder).expect("a folder");
    let mut files = files.map(|file| file.expect("a file").path());
    let is_tokens = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        // `user-tokens` in base64url.
        text.contains(" dXNlci10b2tlbnM")
    };
    let path = files.find(is_tokens).expect("tokens");
    let stored = std::fs::read_to_string(&path).expect("a file");
    std::fs::write(&path, &stored[..stored.len() - 9]).expect("a file");
    let output = run_program(data, reseal).await;
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let told: Vec<_> = told.lines().collect();
    assert_eq!(
        told[0],
        "0 encrypted anew, 1 had the first key, 1 cannot be read"
    );
    assert!(told[1].starts_with("damaged: user-tokens ["), "{told:?}");
    assert!(told[1].contains("cut off"), "{told:?}");
    assert!(told[2].contains("--remove-damaged"), "{told:?}");
    assert_eq!(told.len(), 3, "{told:?}");
    let counts = |output: &std::process::Output| {
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        ["unreadable", "otherKey", "removed"].map(|name| told[name].as_u64())
    };
    let output = run_program(data, &[reseal, &["--json"]].concat()).await;
    assert_eq!(counts(&output), [Some(1), Some(0), Some(0)]);
    let output = run_program(data, &[reseal, &["--json", "--remove-damaged"]].concat()).await;
    assert_eq!(counts(&output), [Some(0), Some(0), Some(1)]);
    std::fs::write(&path, stored).expect("a file");
    path
}

/// Options of another store are refused next to the configuration, which names the store.
#[tokio::test]
async fn options_of_another_store_are_refused() {
    let data = tempfile::tempdir().expect("a folder");
    let revoke = ["sessions", "revoke", "--principal", "x"];
    for option in ["--prefix", "--sentinel-master", "--root-certificates"] {
        let store = ["--config", "bridge.toml", option, "x"];
        let output = run_program(data.path(), &[&revoke[..], &store].concat()).await;
        let words = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(words.contains("cannot be used with"), "{words}");
    }
}

/// Opens the page that a call names, agrees, and returns the last page.
async fn agree(browser: &mut Browser, error: &str, url: &str) -> Page {
    let page = error
        .split("http://")
        .find(|text| text.starts_with("127.0.0.1:1/"));
    let page = page.unwrap_or_else(|| panic!("{error}"));
    let page = page
        .split(|c: char| c.is_whitespace())
        .next()
        .expect("a URL");
    let mut target = format!("http://{page}");
    loop {
        let local = target.replace(PUBLIC, url);
        let page = browser.open_while(&local, |_| false).await;
        match page.location() {
            Some(location) => target = location,
            None if page.body.contains("<form") => {
                let headers = [("origin", "http://127.0.0.1:1")];
                let action = page.action("allow");
                let answer = browser.send(Method::POST, &action, &headers).await;
                target = answer.location().expect("a redirect");
            }
            None => return page,
        }
    }
}
