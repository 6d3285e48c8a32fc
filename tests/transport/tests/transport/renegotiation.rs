//! Servers that are replaced by servers of another revision while a client uses them (2026-07-28: `basic/versioning`, "Protocol
//! Version Negotiation"), over every transport and in both directions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use http::HeaderValue;
use mcp_exact_session::{
    CallOptions, ClientConfig, ClientSettings, Identity, Offer, Outcome, PeerError, ServerEvent,
};
use mcp_exact_tests_transport::echo::{self, call};
use mcp_exact_tests_transport::proxy::CuttingProxy;
use mcp_exact_tests_transport::replaced::ReplacedServer;
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::http::server::{HttpListener, HttpServerOptions, HttpService};
use mcp_exact_transport::{
    ClientHandle, ConnectionOptions, LineTransport, RequestContext, ServerCommand, ServerHandle,
    Transport, connect, memory_pair, unix_transport,
};
use tokio::net::UnixStream;

/// Revisions of a server before and after its replacement.
const CHANGES: [(&str, &str); 4] = [
    ("2025-11-25", "2026-07-28"),
    ("2025-03-26", "2026-07-28"),
    ("2026-07-28", "2025-11-25"),
    ("2025-11-25", "2025-06-18"),
];

/// Returns the settings of a client that offers these revisions.
fn settings(revisions: &[&str]) -> Arc<ClientSettings> {
    let mut config = ClientConfig::new(Identity::new("tester", "1"));
    config.offer = Offer::new(revisions.iter().copied()).expect("compiled in");
    // A process may start slowly.
    config.probe_timeout = Duration::from_secs(30);
    config.build().expect("a configuration")
}

/// Requests the tool list; returns the outcome.
async fn list(client: &ClientHandle) -> Outcome {
    let request = client.request("tools/list", None, CallOptions::default(), None);
    request.expect("sent").await
}

/// Returns the revision that the client has negotiated.
fn revision(client: &ClientHandle) -> String {
    let revision = client.revision().expect("negotiated");
    revision.as_str().to_owned()
}

/// Checks that the first call has the result of the revision `from`, and that later calls, also concurrent calls, have
/// the result of the revision `to`.
async fn use_replaced_server(client: &ClientHandle, from: &str, to: &str) {
    client.ready().await.expect("connected");
    assert_eq!(call(client, "revision", "").await, Ok(from.to_owned()));
    let (first, second, listed) = tokio::join!(
        call(client, "revision", ""),
        call(client, "revision", ""),
        list(client)
    );
    assert_eq!(first, Ok(to.to_owned()));
    assert_eq!(second, Ok(to.to_owned()));
    assert!(matches!(listed, Outcome::Result(_)), "{listed:?}");
    assert_eq!(revision(client), to);
    assert_eq!(call(client, "revision", "").await, Ok(to.to_owned()));
}

/// Connects a client and a [`ReplacedServer`] over the two ends of a transport, and checks the change of the revision
/// from `from` to `to`.
async fn use_over(near: impl Transport, far: impl Transport, from: &str, to: &str) {
    let server = tokio::spawn(ReplacedServer::new(from, to).serve(far));
    let options = ConnectionOptions::default();
    let handler = Arc::new(echo::answer);
    let (client, driver) = connect(settings(&[from, to]), None, handler, near, options);
    use_replaced_server(&client, from, to).await;
    client.close();
    driver.await.expect("driver");
    server.await.expect("server");
}

/// "The client SHOULD select a mutually supported version from the `supported` list and retry the request": a client on
/// a duplex stream negotiates again when its server changes the revision.
#[tokio::test]
async fn streams_follow_their_servers() {
    for (from, to) in CHANGES {
        let (near, far) = memory_pair(1 << 16, 4 << 20);
        use_over(near, far, from, to).await;
        let (near, far) = tokio::io::duplex(1 << 16);
        let lines = |stream| {
            let (reader, writer) = tokio::io::split(stream);
            LineTransport::new(reader, writer, 4 << 20)
        };
        use_over(lines(near), lines(far), from, to).await;
        let (near, far) = UnixStream::pair().expect("sockets");
        let sockets = |stream| unix_transport(stream, 4 << 20);
        use_over(sockets(near), sockets(far), from, to).await;
    }
}

/// A client of a child process negotiates again when the process changes the revision.
#[tokio::test]
async fn child_processes_are_negotiated_with_again() {
    for (from, to) in CHANGES {
        let program = env!("CARGO_BIN_EXE_replaced_server");
        let command = ServerCommand::new(program).args([from, to]);
        let handler = Arc::new(echo::answer);
        let (client, driver) = command
            .connect(settings(&[from, to]), None, handler)
            .expect("started");
        use_replaced_server(&client, from, to).await;
        client.close();
        driver.await.expect("driver");
    }
}

/// Starts an HTTP server that offers one revision.
async fn start(revision: &str) -> (std::net::SocketAddr, tokio::task::JoinHandle<()>) {
    let options = HttpServerOptions::default();
    let settings = echo::server_settings_of(&[revision]);
    let service = HttpService::new(settings, Arc::new(echo::handle), options);
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    let serving = tokio::spawn(async move {
        let served = listener.serve(service, std::future::pending()).await;
        served.expect("served");
    });
    (address, serving)
}

/// Clients follow a change of the server behind an address. A server of 2026-07-28 refuses sessions with -32022, or
/// with -32020 if the session's revision has no header `MCP-Protocol-Version`. An older server refuses requests outside
/// of its sessions with status 400 ("If the body is empty or is not a recognized modern JSON-RPC error, fall back to
/// `initialize`"); a call that was refused with status 400 is not repeated.
#[tokio::test]
async fn http_clients_follow_their_servers() {
    for (from, to) in [
        ("2025-11-25", "2026-07-28"),
        ("2025-03-26", "2026-07-28"),
        ("2026-07-28", "2025-11-25"),
        ("2026-07-28", "2025-03-26"),
    ] {
        for method in ["tools/list", "tools/call"] {
            let (old, serving_old) = start(from).await;
            let (new, serving_new) = start(to).await;
            let proxy = CuttingProxy::start(old).await;
            let url = proxy.url("/mcp");
            // Each request has a connection of its own, and no standalone stream finds the new server first.
            let endpoint = HttpEndpoint::new(&url)
                .expect("a URL")
                .header(http::header::CONNECTION, HeaderValue::from_static("close"))
                .opens_stream(false)
                .retry(Duration::from_millis(1));
            let handler = Arc::new(echo::answer);
            let (client, driver) = endpoint.connect(settings(&[from, to]), None, handler);
            client.ready().await.expect("connected");
            assert_eq!(call(&client, "echo", "a").await, Ok("a".to_owned()));
            assert_eq!(revision(&client), from);
            proxy.forward_to(new);
            let is_newer = to == "2026-07-28";
            if method == "tools/list" {
                let listed = list(&client).await;
                assert!(
                    matches!(listed, Outcome::Result(_)),
                    "{from} {to}: {listed:?}"
                );
            } else {
                let answer = call(&client, "echo", "b").await;
                assert_eq!(answer.is_ok(), is_newer, "{from} {to}: {answer:?}");
            }
            client.ready().await.expect("connected");
            assert_eq!(revision(&client), to);
            assert_eq!(call(&client, "echo", "c").await, Ok("c".to_owned()));
            client.close();
            driver.await.expect("driver");
            serving_old.abort();
            serving_new.abort();
        }
    }
}

/// HTTP+SSE does not exist in 2026-07-28: if a server changes to that revision, the client repeats list requests over
/// Streamable HTTP at the same URL, and a call ends with the server's error.
#[tokio::test]
async fn http_sse_clients_follow_their_servers() {
    for method in ["tools/list", "tools/call"] {
        let is_replaced = Arc::new(AtomicBool::new(false));
        let replaced = Arc::clone(&is_replaced);
        let handle = move |server: &ServerHandle, event: ServerEvent<RequestContext>| {
            let is_replaced = replaced.load(Ordering::SeqCst);
            match event {
                ServerEvent::Request(request)
                    if is_replaced && request.spec().id() == "2024-11-05" =>
                {
                    let data = r#"{"supported":["2026-07-28"],"requested":"2024-11-05"}"#;
                    let data = data.parse::<mcp_exact_session::JsonObject>();
                    let error =
                        PeerError::new(-32022, "unsupported").with_data(data.expect("JSON"));
                    server.reply(request.key, error).expect("replied once");
                }
                event => echo::handle(server, event),
            }
        };
        let settings_of_server = echo::server_settings_of(&["2026-07-28", "2024-11-05"]);
        let options = HttpServerOptions::default();
        let service = HttpService::new(settings_of_server, Arc::new(handle), options);
        // Streamable HTTP has the URL of the event stream once the server is replaced.
        let replaced = Arc::clone(&is_replaced);
        let route = move |mut request: Request, next: Next| {
            if replaced.load(Ordering::SeqCst) && request.uri().path() == "/sse" {
                *request.uri_mut() = "/mcp".parse().expect("a path");
            }
            next.run(request)
        };
        let router = axum::Router::new()
            .fallback_service(service)
            .layer(from_fn(route));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("bound");
        let address = listener.local_addr().expect("an address");
        let serving = tokio::spawn(async move { axum::serve(listener, router).await });

        let endpoint = HttpEndpoint::new(&format!("http://{address}/sse")).expect("a URL");
        let endpoint = endpoint.retry(Duration::from_millis(1));
        let handler = Arc::new(echo::answer);
        let settings = settings(&["2026-07-28", "2024-11-05"]);
        let (client, driver) = endpoint.connect(settings, None, handler);
        client.ready().await.expect("connected");
        assert_eq!(revision(&client), "2024-11-05");
        assert_eq!(call(&client, "echo", "a").await, Ok("a".to_owned()));
        is_replaced.store(true, Ordering::SeqCst);
        if method == "tools/list" {
            let listed = list(&client).await;
            assert!(matches!(listed, Outcome::Result(_)), "{listed:?}");
        } else {
            let answer = call(&client, "echo", "b").await;
            assert!(matches!(answer, Err(Outcome::Error(_))), "{answer:?}");
        }
        client.ready().await.expect("connected");
        assert_eq!(revision(&client), "2026-07-28");
        assert_eq!(call(&client, "echo", "c").await, Ok("c".to_owned()));
        client.close();
        driver.await.expect("driver");
        serving.abort();
    }
}
