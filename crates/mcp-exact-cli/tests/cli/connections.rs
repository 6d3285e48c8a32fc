//! Connections of the program to servers at URLs: proxies of the environment, trusted certificates, client certificates.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use mcp_exact::Server;
use mcp_exact::transport::http::server::{Allowed, HttpListener, HttpServerOptions, rustls};
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

use crate::program::data_folder;

/// Starts a server with a tool `greet` for requests to `localhost` and `server.test`; returns its address.
async fn start_server(tls: Option<rustls::ServerConfig>) -> SocketAddr {
    let server = Server::builder("behind", "1.0.0")
        .tool("greet", || async { "hello".to_owned() })
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let listener = match tls {
        Some(config) => listener.tls(Arc::new(config)),
        None => listener,
    };
    let options = HttpServerOptions {
        hosts: Allowed::Only(vec!["server.test".to_owned(), "localhost".to_owned()]),
        ..HttpServerOptions::default()
    };
    let service = server.http(options);
    tokio::spawn(listener.serve(service, std::future::pending()));
    address
}

/// Starts a proxy that forwards every connection to `server` after its first head, which it keeps, or answers with status 407.
/// Returns the address of the proxy.
async fn start_proxy(server: Option<SocketAddr>, heads: Arc<Mutex<Vec<String>>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let heads = Arc::clone(&heads);
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
                    if near.read_buf(&mut bytes).await.expect("bytes") == 0 {
                        return;
                    }
                }
                let head = String::from_utf8_lossy(&bytes).into_owned();
                let is_tunnel = head.starts_with("CONNECT ");
                heads.lock().expect("a lock").push(head);
                let Some(server) = server else {
                    let refusal = b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n";
                    return near.write_all(refusal).await.expect("sent");
                };
                let mut far = TcpStream::connect(server).await.expect("the server");
                if is_tunnel {
                    let answer = b"HTTP/1.1 200 OK\r\n\r\n";
                    near.write_all(answer).await.expect("sent");
                } else {
                    far.write_all(&bytes).await.expect("sent");
                }
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    address
}

/// Runs the program with variables; returns its exit code, its output and its errors.
async fn run(arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mcp-exact"));
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command
            .env_remove(name)
            .env_remove(name.to_ascii_lowercase());
    }
    let output = command
        .args(arguments)
        .env("XDG_DATA_HOME", data_folder())
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .await
        .expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    let code = output.status.code().expect("no signal");
    (code, text(output.stdout), text(output.stderr))
}

/// The program and the gateway take the proxies of the environment, and an error names the variable without its credentials.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn variables_name_the_proxy() {
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let server = start_server(None).await;
    let proxy = start_proxy(Some(server), Arc::clone(&heads)).await;
    let proxy = format!("http://user:s3cret@{proxy}");
    let url = "http://server.test/mcp";
    let variables = [("HTTP_PROXY", &*proxy)];
    let calls: [&[&str]; 2] = [
        &["call", "greet", "--", url],
        &[
            "call",
            "greet",
            "--",
            env!("CARGO_BIN_EXE_mcp-exact"),
            "bridge",
            url,
        ],
    ];
    for call in calls {
        heads.lock().expect("a lock").clear();
        let (code, out, err) = run(call, &variables).await;
        assert_eq!((code, out.trim()), (0, "hello"), "{err}");
        let heads = heads.lock().expect("a lock");
        let first = heads.first().expect("a request").to_ascii_lowercase();
        assert!(first.starts_with("post http://server.test/mcp "), "{first}");
        assert!(first.contains("proxy-authorization: basic "), "{first}");
    }
    // Another server is not that of the proxy.
    let except = [variables[0], ("NO_PROXY", "server.test")];
    let (code, _, err) = run(&["call", "greet", "--", url], &except).await;
    assert_eq!(code, 2, "{err}");
    assert!(!err.contains("proxy"), "{err}");

    let refusing = start_proxy(None, Arc::default()).await;
    let refusing = format!("http://user:s3cret@{refusing}");
    let shown = refusing.replace("user:s3cret@", "");
    for (variable, url, arguments) in [
        ("HTTP_PROXY", url, &["call", "greet", "--"][..]),
        (
            "https_proxy",
            "https://server.test/mcp",
            &["call", "greet", "--"],
        ),
        ("all_proxy", "https://server.test/mcp", &["doctor"]),
    ] {
        let arguments = [arguments, &[url]].concat();
        let (code, out, err) = run(&arguments, &[(variable, &refusing)]).await;
        assert_eq!(code, 2, "{err}");
        let expected = format!("the proxy {shown} (of the variable {variable}) does not accept");
        assert!(err.contains(&expected), "{err}");
        assert!(!err.contains("s3cret") && !out.contains("s3cret"), "{err}");
    }
    // What is no HTTP proxy is not passed over.
    let socks = [("ALL_PROXY", "socks5://user:s3cret@localhost:1")];
    let (code, _, err) = run(&["call", "greet", "--", url], &socks).await;
    assert_eq!(code, 2, "{err}");
    assert!(
        err.contains("(of the variable ALL_PROXY) is not the URL of an HTTP proxy"),
        "{err}"
    );
    assert!(!err.contains("s3cret"), "{err}");
}

/// Writes the files of a server's certificate and of a client's; returns the configuration of a server that demands the latter.
fn certificates(folder: &Path) -> rustls::ServerConfig {
    let make = |name: &str| {
        let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
        let write = |suffix: &str, text: String| {
            std::fs::write(folder.join(format!("{name}{suffix}")), text).expect("written");
        };
        write(".pem", made.cert.pem());
        write(".key", made.signing_key.serialize_pem());
        made
    };
    let (server, client) = (make("localhost"), make("client"));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(client.cert.der().clone()).expect("a certificate");
    let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
        Arc::new(roots),
        Arc::clone(&provider),
    );
    let key = PrivateKeyDer::Pkcs8(server.signing_key.serialize_der().into());
    rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(verifier.build().expect("a verifier"))
        .with_single_cert(vec![server.cert.der().clone()], key)
        .expect("a key")
}

/// Options of the program and keys of the gateway's file name certificates.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_options_and_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start_server(Some(certificates(folder.path()))).await;
    let url = format!("https://localhost:{}/mcp", server.port());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (ca, cert, key) = (
        file("localhost.pem"),
        file("client.pem"),
        file("client.key"),
    );
    let options = ["--ca", &ca, "--client-cert", &cert, "--client-key", &key];
    let call = [&["call", "greet"][..], &options, &["--", &url]].concat();
    let (code, out, err) = run(&call, &[]).await;
    assert_eq!((code, out.trim()), (0, "hello"), "{err}");
    let doctor = [&["doctor"][..], &options, &[&url]].concat();
    let (code, out, err) = run(&doctor, &[]).await;
    assert_eq!(code, 0, "{out}{err}");

    // The gateway, by its options, its file and that of a client.
    let program = env!("CARGO_BIN_EXE_mcp-exact");
    let toml = format!(
        "prefix = \"never\"\n[servers.a]\nurl = {url:?}\nca = {ca:?}\nclient-cert = {cert:?}\nclient-key = \"${{FOLDER:-{}}}/client.key\"\n",
        folder.path().display()
    );
    std::fs::write(file("bridge.toml"), &toml).expect("written");
    let json = format!(
        r#"{{"mcpServers":{{"a":{{"url":{url:?},"ca":{ca:?},"clientCert":{cert:?},"client-key":{key:?}}}}}}}"#
    );
    std::fs::write(file("mcp.json"), &json).expect("written");
    let (toml_file, json_file) = (file("bridge.toml"), file("mcp.json"));
    let by_options = [
        &["call", "greet", "--", program, "bridge"][..],
        &options,
        &[&url],
    ]
    .concat();
    let by_file = [
        "call", "greet", "--", program, "bridge", "--config", &toml_file,
    ];
    let by_json = [
        "call", "a__greet", "--", program, "bridge", "--config", &json_file,
    ];
    for call in [&by_options[..], &by_file, &by_json] {
        let (code, out, err) = run(call, &[]).await;
        assert_eq!((code, out.trim()), (0, "hello"), "{call:?}: {err}");
    }

    // Errors name the option or the key, and the file.
    let (code, _, err) = run(&["call", "greet", "--ca", &ca, "--", &url], &[]).await;
    assert_eq!(code, 2, "{err}");
    let expected = "asks for a client certificate, and none is set: ";
    assert!(
        err.contains(expected) && err.contains("; give one by --client-cert"),
        "{err}"
    );
    let swapped = ["--client-cert", &key, "--client-key", &cert];
    let call = [&["call", "greet"][..], &swapped, &["--", &url]].concat();
    let (code, _, err) = run(&call, &[]).await;
    assert_eq!(code, 2, "{err}");
    let expected = format!(
        "--client-cert {key:?}: the certificate cannot be used: there is no certificate in PEM format"
    );
    assert!(err.contains(&expected), "{err}");
    std::fs::write(
        file("bridge.toml"),
        toml.replace("client.key", "localhost.key"),
    )
    .expect("written");
    let (code, _, err) = run(&["bridge", "--config", &toml_file], &[]).await;
    assert_eq!(code, 2, "{err}");
    let expected = format!(
        "client-key {:?}: the private key does not belong to the certificate",
        file("localhost.key")
    );
    assert!(
        err.contains("server \"a\"") && err.contains(&expected),
        "{err}"
    );
    for (arguments, expected) in [
        (
            &["call", "--ca", &ca, "x", "--", "sh"][..],
            "a command gets no HTTP requests; leave `--ca` out",
        ),
        (
            &["doctor", "--ca", &ca, "sh"],
            "a command gets no HTTP requests; leave `--ca` out",
        ),
        (
            &["bridge", "--ca", &ca, "--config", &toml_file],
            "write `ca` into its entry in the file",
        ),
        (
            &["call", "--client-cert", &cert, "x", "--", &url],
            "--client-key <FILE>",
        ),
    ] {
        let (code, _, err) = run(arguments, &[]).await;
        assert_eq!(code, 2, "{err}");
        assert!(err.contains(expected), "{err}");
    }
}

/// A certificate that has signed itself is trusted by `--ca`, also one that may sign others, as `openssl req -x509` makes it. Without
/// the option, the error names it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn self_signed_certificates_are_trusted() {
    let folder = tempfile::tempdir().expect("a folder");
    for is_authority in [false, true] {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).expect("a name");
        if is_authority {
            params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        }
        let cert = params.self_signed(&key).expect("a certificate");
        let file = folder.path().join("ca.pem").display().to_string();
        std::fs::write(&file, cert.pem()).expect("written");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a key");
        let server = start_server(Some(config)).await;
        let url = format!("https://localhost:{}/mcp", server.port());
        let (code, out, err) = run(&["call", "greet", "--ca", &file, "--", &url], &[]).await;
        assert_eq!((code, out.trim()), (0, "hello"), "{is_authority}: {err}");
        for command in [&["call", "greet", "--"][..], &["doctor"]] {
            let (_, out, err) = run(&[command, &[&url]].concat(), &[]).await;
            let text = out + &err;
            assert!(
                text.contains(
                    "the certificate of the server is not trusted; set `ca` to a file with it"
                ) && text.contains("by --ca FILE"),
                "{is_authority}: {text}"
            );
        }
        // Trust is not in names.
        let other = format!("https://127.0.0.1:{}/mcp", server.port());
        let (code, _, err) = run(&["call", "greet", "--ca", &file, "--", &other], &[]).await;
        assert_eq!(code, 2, "{is_authority}: {err}");
        assert!(err.contains("not valid for name"), "{is_authority}: {err}");
    }
}

/// A certificate of the client is presented over TLS alone: for another URL, it is refused and not ignored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_certificates_need_tls() {
    let folder = tempfile::tempdir().expect("a folder");
    certificates(folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (cert, key) = (file("client.pem"), file("client.key"));
    let options = ["--client-cert", &cert, "--client-key", &key];
    for command in ["inspect", "doctor"] {
        let arguments = [&[command][..], &options, &["http://localhost:1/mcp"]].concat();
        let (code, _, err) = run(&arguments, &[]).await;
        assert_eq!(code, 2, "{err}");
        let expected = "--client-cert: http://localhost:1/mcp is not https;";
        assert!(err.contains(expected), "{command}: {err}");
    }
}
