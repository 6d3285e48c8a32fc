//! The client over proxies, and with certificates: tunnels, whole URLs, errors, restricted addresses, mutual TLS.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::TestServer;
use mcp_exact_tests_transport::proxy::{ForwardProxy, ProxyReaction, ReceivedHeads, react};
use mcp_exact_transport::http::client::{
    BlockedAddress, CertificateFiles, HttpClient, HttpEndpoint, HttpTransport, HyperClient,
    HyperOptions, Proxy, ProxyError,
};
use mcp_exact_transport::http::server::{
    Allowed, HttpListener, HttpServerOptions, HttpService, rustls,
};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use tokio_rustls::TlsAcceptor;

/// Name of the server that only the proxy can resolve.
const NAME: &str = "server.test";

/// Options of a server for requests with its name.
fn named() -> HttpServerOptions {
    HttpServerOptions {
        hosts: Allowed::Only(vec![NAME.to_owned(), "localhost".to_owned()]),
        ..HttpServerOptions::default()
    }
}

/// Calls all tools of a server in every revision.
async fn use_server(origin: &str, client: &HyperClient) {
    for revision in echo::REVISIONS {
        let (path, transport) = match revision {
            "2024-11-05" => ("sse", HttpTransport::Sse),
            _ => ("mcp", HttpTransport::Automatic),
        };
        let endpoint = HttpEndpoint::new(&format!("{origin}/{path}")).expect("a URL");
        let endpoint = endpoint
            .transport(transport)
            .client(Arc::new(client.clone()));
        let settings = echo::client_settings(revision);
        let (handle, driver) = endpoint.connect(settings, None, Arc::new(echo::answer));
        echo::use_all(&handle, revision).await;
        handle.close();
        driver.await.expect("driver");
    }
}

/// Returns the options of a client with one proxy.
fn through(url: &str) -> HyperOptions {
    HyperOptions::default().proxy(Proxy::new(url).expect("a URL"))
}

/// Sends a request; returns its status, or the error with its causes.
async fn send(client: &HyperClient, url: &str) -> Result<StatusCode, String> {
    let request = Request::get(url).body(Bytes::new()).expect("a request");
    let sent = client.send(request).await;
    sent.map(|response| response.status()).map_err(|error| {
        let mut words = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            words = format!("{words}: {error}");
            cause = error.source();
        }
        words
    })
}

/// Certificate that signs itself, with its key.
struct Certificate {
    pem: String,
    key_pem: String,
    made: rcgen::CertifiedKey<rcgen::KeyPair>,
}

impl Certificate {
    fn new(names: &[&str]) -> Self {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        Self {
            pem: made.cert.pem(),
            key_pem: made.signing_key.serialize_pem(),
            made,
        }
    }

    /// Returns the configuration of a server with this certificate that trusts clients with another one: it demands one from
    /// each client, or takes what it gets.
    fn server(&self, client: Option<&Self>, demands: bool) -> rustls::ServerConfig {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = match client {
            None => builder.with_no_client_auth(),
            Some(client) => {
                let mut roots = rustls::RootCertStore::empty();
                let root = client.made.cert.der().clone();
                roots.add(root).expect("a certificate");
                let roots = Arc::new(roots);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                let verifier = if demands {
                    verifier
                } else {
                    verifier.allow_unauthenticated()
                };
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        let key = PrivateKeyDer::Pkcs8(self.made.signing_key.serialize_der().into());
        let chain = vec![self.made.cert.der().clone()];
        builder.with_single_cert(chain, key).expect("a key")
    }
}

/// Starts the echo server by HTTPS; returns its address.
async fn start_https(config: rustls::ServerConfig) -> SocketAddr {
    let service = HttpService::new(echo::server_settings(), Arc::new(echo::handle), named());
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    let listener = listener.tls(Arc::new(config));
    tokio::spawn(listener.serve(service, std::future::pending()));
    address
}

/// Requests with `http` URLs are sent to the proxy, with the whole URL and the credentials of the proxy.
#[tokio::test]
async fn plain_requests_take_the_proxy() {
    let server = TestServer::start(named()).await;
    let proxy = ForwardProxy::start(server.address).await;
    let client = through(&proxy.url_with_credentials()).build();
    use_server(&format!("http://{NAME}"), &client).await;
    let heads = proxy.heads();
    assert!(!heads.is_empty());
    for head in heads {
        let (line, headers) = head.split_once("\r\n").expect("headers");
        assert!(line.contains(&format!(" http://{NAME}/")), "{head}");
        let headers = headers.to_ascii_lowercase();
        assert!(
            headers.contains("proxy-authorization: basic dxnlcjpzm2nyzxq="),
            "{head}"
        );
    }
}

/// Requests with `https` URLs are sent through tunnels, and the proxy alone gets its credentials.
#[tokio::test]
async fn secure_requests_are_tunnelled() {
    let certificate = Certificate::new(&[NAME]);
    let server = start_https(certificate.server(None, false)).await;
    let proxy = ForwardProxy::start(server).await;
    let client = through(&proxy.url_with_credentials());
    let client = client.trust_pem(certificate.pem.as_bytes()).expect("one");
    use_server(&format!("https://{NAME}"), &client.build()).await;
    let heads = proxy.heads();
    assert!(!heads.is_empty());
    for head in heads {
        let head = head.to_ascii_lowercase();
        assert!(
            head.starts_with("connect server.test:443 http/1.1\r\n"),
            "{head}"
        );
        assert!(head.contains("\r\nhost: server.test:443"), "{head}");
        assert!(
            head.contains("\r\nproxy-authorization: basic dxnlcjpzm2nyzxq="),
            "{head}"
        );
    }
    // Servers that are excepted are not those of the proxy.
    let direct = Proxy::new(&proxy.url()).expect("a URL").except("localhost");
    let client = HyperOptions::default().proxy(direct);
    let client = client
        .trust_pem(certificate.pem.as_bytes())
        .expect("one")
        .build();
    let before = proxy.heads().len();
    let error = send(&client, &format!("https://localhost:{}/mcp", server.port())).await;
    let error = error.expect_err("a certificate for another name");
    assert!(error.contains("certificate"), "{error}");
    assert_eq!(proxy.heads().len(), before);
}

/// An error names the proxy and what it did, and no credentials.
#[tokio::test]
async fn errors_name_the_proxy() {
    let secure = format!("https://{NAME}/mcp");
    let plain = format!("http://{NAME}/mcp");
    for (reaction, url, expected) in [
        (
            ProxyReaction::Refuse("407 Proxy Authentication Required"),
            &secure,
            "does not accept the user name and password of its URL (status 407)",
        ),
        (
            ProxyReaction::Refuse("407 Proxy Authentication Required"),
            &plain,
            "does not accept the user name and password of its URL (status 407)",
        ),
        (
            ProxyReaction::Refuse("403 Forbidden"),
            &secure,
            "refused to connect to server.test:443: status 403 Forbidden",
        ),
        (
            ProxyReaction::Refuse("0 0"),
            &secure,
            "did not answer as an HTTP proxy",
        ),
        (
            ProxyReaction::Silence,
            &secure,
            "made no connection within 1s",
        ),
    ] {
        let is_silent = matches!(reaction, ProxyReaction::Silence);
        let proxy = ForwardProxy::start_with(reaction).await;
        let options = through(&proxy.url_with_credentials());
        let limit = Duration::from_secs(if is_silent { 1 } else { 60 });
        let client = options.connect_timeout(limit).build();
        let error = send(&client, url).await.expect_err(expected);
        let expected = format!("the proxy {} {expected}", proxy.url());
        assert!(error.contains(&expected), "{error}");
        assert!(!error.contains("s3cret"), "{error}");
        let shown = format!("{client:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
    // A port that nobody else takes, and at which nobody listens.
    let free = tokio::net::TcpSocket::new_v4().expect("a socket");
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    free.bind(any_port).expect("bound");
    let closed = format!("http://{}", free.local_addr().expect("an address"));
    for url in [&secure, &plain] {
        let error = send(&through(&closed).build(), url)
            .await
            .expect_err("closed");
        let expected = format!("cannot connect to the proxy {closed}: ");
        assert!(error.contains(&expected), "{error}");
    }
    let asking = ForwardProxy::start_with(ProxyReaction::Refuse("407 x")).await;
    let client = through(&asking.url()).build();
    let request = Request::get(&plain).body(Bytes::new()).expect("a request");
    let error = client.send(request).await.map(drop).expect_err("refused");
    let error = error
        .downcast::<ProxyError>()
        .expect("an error of the proxy");
    assert_eq!(
        error.status(),
        Some(StatusCode::PROXY_AUTHENTICATION_REQUIRED)
    );
    let words = error.to_string();
    assert!(
        words.ends_with("write its URL as `http://user:password@host:port`"),
        "{words}"
    );
}

/// A proxy gets a checked address instead of a name, and nothing for names and addresses that are not allowed.
#[tokio::test]
async fn proxies_get_checked_addresses() {
    let certificate = Certificate::new(&["localhost"]);
    let server = start_https(certificate.server(None, false)).await;
    let proxy = ForwardProxy::start(server).await;
    let options = || {
        let options = through(&proxy.url());
        options.trust_pem(certificate.pem.as_bytes()).expect("one")
    };
    let client = options()
        .only_addresses(|_, address| address.is_ipv4())
        .build();
    let status = send(&client, "https://localhost:8443/none").await;
    status.expect("an answer of the server");
    let heads = proxy.heads();
    assert!(heads[0].starts_with("CONNECT 127.0.0.1:8443 "), "{heads:?}");

    let blocked = async |client: HyperClient, url: &str| {
        let error = send(&client, url).await.expect_err(url);
        let host = url.split('/').nth(2).expect("a host").to_owned();
        let host = host
            .rsplit_once(':')
            .map_or(host.clone(), |(host, _)| host.to_owned());
        let kinds = [
            BlockedAddress::Host(host.clone()),
            BlockedAddress::ByProxy(host),
        ];
        let found = kinds
            .iter()
            .position(|kind| error.ends_with(&kind.to_string()));
        found.unwrap_or_else(|| panic!("{url}: {error}"))
    };
    let public = || {
        let client = options().only_addresses(|_, address| !address.is_loopback());
        client.build()
    };
    for url in [
        "https://localhost:1/",
        "https://127.0.0.1:1/",
        "http://localhost:1/",
    ] {
        assert_eq!(blocked(public(), url).await, 0, "{url}");
    }
    for url in ["https://name.invalid:1/", "http://name.invalid:1/"] {
        assert_eq!(blocked(public(), url).await, 1, "{url}");
    }
    assert_eq!(proxy.heads().len(), 1, "the proxy was not asked");
    // Without a proxy, names are checked too.
    let direct = options().proxy(Proxy::none());
    let direct = direct.only_addresses(|_, address| !address.is_loopback());
    assert_eq!(blocked(direct.build(), "http://localhost:1/").await, 0);

    // A proxy that may resolve names gets the name.
    let client = options().only_addresses(|_, address| !address.is_loopback());
    let client = client.proxy_resolves_names().build();
    send(&client, "https://name.invalid/")
        .await
        .expect_err("another name");
    let heads = proxy.heads();
    assert!(
        heads[1].starts_with("CONNECT name.invalid:443 "),
        "{heads:?}"
    );
}

/// A client presents its certificate to the server that demands it, through a proxy too, and not to the proxy.
#[tokio::test]
async fn servers_alone_get_client_certificates() {
    let (of_server, of_client) = (
        Certificate::new(&[NAME, "localhost"]),
        Certificate::new(&["c"]),
    );
    let server = start_https(of_server.server(Some(&of_client), true)).await;
    let trusting = || {
        let options = HyperOptions::default().proxy(Proxy::none());
        options.trust_pem(of_server.pem.as_bytes()).expect("one")
    };
    let (chain, key) = (of_client.pem.as_bytes(), of_client.key_pem.as_bytes());
    let identified = trusting()
        .client_certificate_pem(chain, key)
        .expect("a pair");
    let origin = format!("https://localhost:{}", server.port());
    use_server(&origin, &identified.clone().build()).await;
    for client in [trusting(), identified.clone().without_client_certificate()] {
        let error = send(&client.build(), &origin)
            .await
            .expect_err("no certificate");
        assert!(
            error.starts_with("the server asks for a client certificate, and none is set: "),
            "{error}"
        );
    }
    let other = Certificate::new(&["c"]);
    let (chain, key) = (other.pem.as_bytes(), other.key_pem.as_bytes());
    let other = trusting()
        .client_certificate_pem(chain, key)
        .expect("a pair");
    let error = send(&other.build(), &origin)
        .await
        .expect_err("not trusted");
    assert!(
        error.contains("may not accept the one that is set: "),
        "{error}"
    );

    // A proxy by TLS that would take a certificate.
    let acceptor = TlsAcceptor::from(Arc::new(of_server.server(Some(&of_client), false)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("bound");
    let port = listener.local_addr().expect("an address").port();
    let heads = ReceivedHeads::default();
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let near = acceptor.accept(near).await.expect("TLS");
            assert!(near.get_ref().1.peer_certificates().is_none());
            tokio::spawn(react(
                near,
                ProxyReaction::Forward(server),
                Arc::clone(&seen),
            ));
        }
    });
    let proxy = Proxy::new(&format!("https://localhost:{port}")).expect("a URL");
    let client = identified.clone().proxy(proxy).build();
    use_server(&format!("https://{NAME}"), &client).await;
    let heads = heads.lock().expect("not poisoned");
    assert!(
        heads[0].starts_with("CONNECT server.test:443 "),
        "{heads:?}"
    );
    let shown = format!("{identified:?} {client:?}");
    assert!(
        !shown.contains("PRIVATE") && !shown.contains("key"),
        "{shown}"
    );
}

/// Files that cannot be used are errors that name the setting and the file, and show nothing of a key.
#[test]
fn unusable_certificates_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("written");
        file
    };
    let (one, other) = (Certificate::new(&["a"]), Certificate::new(&["b"]));
    let cert = write("cert.pem", &one.pem);
    let key = write("key.pem", &one.key_pem);
    let other = write("other.pem", &other.key_pem);
    let text = write("text.pem", "nothing");
    let broken = write(
        "broken.pem",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    );
    let read = |ca: Option<&Path>, cert: Option<&Path>, key: Option<&Path>| {
        let files = CertificateFiles {
            ca: ca.map(Path::to_owned),
            client_cert: cert.map(Path::to_owned),
            client_key: key.map(Path::to_owned),
        };
        HyperOptions::default().certificate_files(&files)
    };
    read(Some(&cert), Some(&cert), Some(&key)).expect("usable");
    for (ca, cert, key, (setting, file), reason) in [
        (
            None,
            Some(&cert),
            Some(&other),
            ("client-key", &other),
            "does not belong to the certificate",
        ),
        (
            None,
            Some(&cert),
            Some(&text),
            ("client-key", &text),
            "no private key in PEM format that is not encrypted",
        ),
        (
            None,
            Some(&cert),
            Some(&cert),
            ("client-key", &cert),
            "no private key in PEM format",
        ),
        (
            None,
            Some(&text),
            Some(&key),
            ("client-cert", &text),
            "no certificate in PEM format",
        ),
        (
            None,
            Some(&broken),
            Some(&key),
            ("client-cert", &broken),
            "the certificate cannot be used",
        ),
        (
            Some(&text),
            None,
            None,
            ("ca", &text),
            "no certificate in PEM format",
        ),
        (
            Some(&broken),
            None,
            None,
            ("ca", &broken),
            "the certificate cannot be used",
        ),
    ] {
        let read = read(
            ca.map(|file| &**file),
            cert.map(|file| &**file),
            key.map(|file| &**file),
        );
        let error = read.map(drop).expect_err(reason).to_string();
        let start = format!("{setting} {file:?}: ");
        assert!(
            error.starts_with(&start) && error.contains(reason),
            "{error}"
        );
        assert!(!error.contains("BEGIN"), "{error}");
    }
    let missing = folder.path().join("none.pem");
    let error = read(Some(&missing), None, None).expect_err("missing");
    assert!(
        error.to_string().contains("cannot read the file: "),
        "{error}"
    );
    let error = read(None, Some(&cert), None).expect_err("one of two");
    assert_eq!(
        error.to_string(),
        "client-key: required besides `client-cert`"
    );
}
