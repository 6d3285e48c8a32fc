//! Client and server over Streamable HTTP and HTTP+SSE: every revision, sessions that end, resumption, shutdown.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact_session::{
    CallOptions, Change, ClientConfig, ClientEvent, Identity, Offer, Outcome, RequestKey,
    ServerEvent,
};
use mcp_exact_tests_transport::echo::{self, call};
use mcp_exact_tests_transport::http::TestServer;
use mcp_exact_tests_transport::process::settle;
use mcp_exact_tests_transport::proxy::ForwardProxy;
use mcp_exact_transport::http::client::{HttpEndpoint, HttpTransport, ReqwestClient};
use mcp_exact_transport::http::server::{Allowed, HttpServerOptions, ListenOptions};
use mcp_exact_transport::{ClientHandle, RequestContext, ServerHandle};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// Maximum time for something that has to happen.
const LIMIT: Duration = Duration::from_secs(60);

/// Connects a client that offers one revision.
fn connect(url: &str, revision: &str) -> (ClientHandle, JoinHandle<()>) {
    let endpoint = HttpEndpoint::new(url)
        .expect("a URL")
        .retry(Duration::from_millis(20));
    let config = echo::client_settings(revision);
    endpoint.connect(config, None, Arc::new(echo::answer))
}

/// Returns options by which nothing is written without cause: what a server notices of its clients, it does not notice by writing.
fn no_writes() -> HttpServerOptions {
    let hour = Duration::from_secs(3600);
    HttpServerOptions {
        keep_alive: hour,
        stream_after: hour,
        ..HttpServerOptions::default()
    }
}

/// Clients of every revision can call all tools over Streamable HTTP.
#[tokio::test]
async fn every_revision_is_served() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    for revision in ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"] {
        let (client, driver) = connect(&server.url("/mcp"), revision);
        echo::use_all(&client, revision).await;
        let sessions = usize::from(revision != "2026-07-28");
        assert_eq!(server.service.sessions(), sessions, "{revision}");
        client.close();
        driver.await.expect("driver");
        assert_eq!(server.service.sessions(), 0, "{revision}");
    }
}

/// Clients of every revision can call all tools if reqwest sends their HTTP requests.
#[tokio::test]
async fn reqwest_carries_every_revision() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    let carrier = ReqwestClient::new(reqwest::Client::builder()).expect("built");
    for revision in ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"] {
        let endpoint = HttpEndpoint::new(&server.url("/mcp")).expect("a URL");
        let endpoint = endpoint.client(Arc::new(carrier.clone()));
        let config = echo::client_settings(revision);
        let (client, driver) = endpoint.connect(config, None, Arc::new(echo::answer));
        echo::use_all(&client, revision).await;
        client.close();
        driver.await.expect("driver");
        assert_eq!(server.service.sessions(), 0, "{revision}");
    }
}

/// The client reaches a server whose name only the proxy can resolve.
#[tokio::test]
async fn client_reaches_server_by_proxy() {
    let options = HttpServerOptions {
        hosts: Allowed::Only(vec!["server.test".to_owned()]),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let proxy = ForwardProxy::start(server.address).await;
    let by_proxy = reqwest::Proxy::all(proxy.url()).expect("a URL");
    let by_proxy = by_proxy.basic_auth("user", "secret");
    let carrier = ReqwestClient::new(reqwest::Client::builder().proxy(by_proxy)).expect("built");
    for revision in echo::REVISIONS {
        let (path, transport) = match revision {
            "2024-11-05" => ("sse", HttpTransport::Sse),
            _ => ("mcp", HttpTransport::Automatic),
        };
        let url = format!("http://server.test/{path}");
        let endpoint = HttpEndpoint::new(&url).expect("a URL").transport(transport);
        let endpoint = endpoint.client(Arc::new(carrier.clone()));
        let config = echo::client_settings(revision);
        let (client, driver) = endpoint.connect(config, None, Arc::new(echo::answer));
        echo::use_all(&client, revision).await;
        client.close();
        driver.await.expect("driver");
    }
    let heads = proxy.heads();
    assert!(!heads.is_empty());
    for head in heads {
        let (line, headers) = head.split_once("\r\n").expect("headers");
        assert!(line.contains(" http://server.test/"), "{head}");
        let headers = headers.to_ascii_lowercase();
        assert!(headers.contains("proxy-authorization: basic "), "{head}");
    }
}

/// A client of 2024-11-05 can call all tools over HTTP+SSE, also if it detects the transport itself.
#[tokio::test]
async fn sse_of_2024_is_also_served() {
    let server = TestServer::start(no_writes()).await;
    let endpoint = HttpEndpoint::new(&server.url("/sse")).expect("a URL");
    for transport in [HttpTransport::Sse, HttpTransport::Automatic] {
        let config = echo::client_settings("2024-11-05");
        let endpoint = endpoint.clone().transport(transport);
        let connected = endpoint.connect(config, None, Arc::new(echo::answer));
        let (client, driver) = connected;
        echo::use_all(&client, "2024-11-05").await;
        assert_eq!(server.service.sessions(), 1);
        client.close();
        driver.await.expect("driver");
        settle("the session ends", LIMIT, || server.service.sessions() == 0).await;
    }
}

/// A client and a server negotiate the first revision of the client's offer that both support.
#[tokio::test]
async fn newest_common_revision_is_negotiated() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    let mut config = ClientConfig::new(Identity::new("c", "1"));
    config.probe_timeout = Duration::from_secs(30);
    let connect = |config: ClientConfig| {
        let endpoint = HttpEndpoint::new(&server.url("/")).expect("a URL");
        let settings = config.build().expect("a configuration");
        endpoint.connect(settings, None, Arc::new(echo::answer))
    };
    let (client, _) = connect(config.clone());
    let (agreed, _) = client.ready().await.expect("connected");
    assert_eq!(agreed.revision.as_str(), "2026-07-28");
    config.offer = Offer::new(["2025-06-18", "2025-03-26"]).expect("known");
    let (client, _) = connect(config);
    let (agreed, _) = client.ready().await.expect("connected");
    assert_eq!(agreed.revision.as_str(), "2025-06-18");
}

/// The error about a server that cannot be reached contains the server's URL.
#[tokio::test]
async fn unreachable_server_is_named() {
    let (client, driver) = connect("http://127.0.0.1:9/mcp", "2025-11-25");
    let error = client
        .ready()
        .await
        .expect_err("nobody listens")
        .to_string();
    assert!(
        error.starts_with("cannot reach http://127.0.0.1:9/mcp: "),
        "{error}"
    );
    driver.await.expect("driver");
}

/// After the end of its session, a client starts a new session: "When a client receives HTTP 404 in response to a
/// request containing an `Mcp-Session-Id`, it MUST start a new session" (`basic/transports`, "Session Management").
#[tokio::test]
async fn ended_session_is_followed_by_another() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    let (client, _) = connect(&server.url("/mcp"), "2025-11-25");
    client.ready().await.expect("connected");
    assert_eq!(call(&client, "echo", "a").await, Ok("a".to_owned()));
    server.service.end_sessions();
    let mut lost = 0;
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        let ready = client.ready().await;
        assert!(ready.is_ok(), "{ready:?}");
        let params = echo::call_params("echo", "b");
        match client.request("tools/call", params, CallOptions::default(), None) {
            Ok(request) => match request.await {
                Outcome::Result(_) => break,
                Outcome::Lost => lost += 1,
                other => panic!("{other:?}"),
            },
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
        assert!(tokio::time::Instant::now() < deadline, "no new session");
    }
    assert!(lost <= 1, "the call is lost once at most");
    assert_eq!(server.service.sessions(), 1);
}

/// A published change is sent to clients in a session and to clients with a subscription.
#[tokio::test]
async fn changes_reach_sessions_and_subscriptions() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    for revision in ["2026-07-28", "2025-11-25"] {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let note = Arc::clone(&seen);
        let handler = move |_: &ClientHandle, event: ClientEvent| {
            note.lock()
                .expect("not poisoned")
                .push(format!("{event:?}"));
        };
        let endpoint = HttpEndpoint::new(&server.url("/mcp")).expect("a URL");
        let config = echo::client_settings(revision);
        let connected = endpoint.connect(config, None, Arc::new(handler));
        let (client, driver) = connected;
        client.ready().await.expect("connected");
        let listen = (revision == "2026-07-28").then(|| {
            let params = r#"{"notifications":{"toolsListChanged":true}}"#.parse().ok();
            client.request("subscriptions/listen", params, CallOptions::default(), None)
        });
        let deadline = tokio::time::Instant::now() + LIMIT;
        loop {
            let published = server.service.publish(&Change::Tools);
            tokio::time::sleep(Duration::from_millis(10)).await;
            let has_changed = seen
                .lock()
                .expect("not poisoned")
                .iter()
                .any(|event| event.starts_with("Changed"));
            if has_changed {
                break;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "{revision}: {published} {seen:?}"
            );
        }
        drop(listen);
        client.close();
        driver.await.expect("driver");
    }
    // The server learns of a closed connection some time later.
    settle("nobody listens any more", LIMIT, || {
        server.service.publish(&Change::Tools) == 0
    })
    .await;
}

/// From 2026-07-28 on, a client that drops a call closes the response stream, which cancels the request at the server.
#[tokio::test]
async fn dropped_call_is_cancelled() {
    let server = TestServer::start(no_writes()).await;
    for revision in ["2026-07-28", "2025-11-25"] {
        let (client, driver) = connect(&server.url("/mcp"), revision);
        client.ready().await.expect("connected");
        let params = echo::call_params("never", "");
        let request = client.request("tools/call", params, CallOptions::default(), None);
        let mut request = request.expect("sent");
        tokio::time::sleep(Duration::from_millis(50)).await;
        request.cancel("enough");
        assert_eq!(request.await, Outcome::Cancelled);
        assert_eq!(call(&client, "echo", "a").await, Ok("a".to_owned()));
        // What cancels the call may arrive after the next call.
        settle("the call has ended", LIMIT, || {
            let handles = server.service.handles();
            handles.iter().all(|handle| handle.usage().in_flight == 0)
        })
        .await;
        client.close();
        driver.await.expect("driver");
    }
}

/// The key of a request is told before any message about it can be handled, and only if the request is sent.
#[tokio::test]
async fn key_is_told_before_messages() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    let (client, driver) = connect(&server.url("/mcp"), "2026-07-28");
    client.ready().await.expect("connected");
    let mut key = None;
    let send = |key: &mut Option<RequestKey>| {
        let params = echo::call_params("echo", "a");
        client.request_with_key("tools/call", params, CallOptions::default(), None, |told| {
            assert!(key.replace(told).is_none(), "told once");
        })
    };
    let request = send(&mut key).expect("sent");
    assert_eq!(key.take(), Some(request.key()));
    assert!(matches!(request.await, Outcome::Result(_)));
    client.close();
    driver.await.expect("driver");
    assert!(send(&mut key).is_err());
    assert_eq!(key, None);
}

/// A server that is stopped answers its calls in flight.
#[tokio::test]
async fn shutdown_answers_calls_in_flight() {
    for revision in ["2026-07-28", "2025-11-25"] {
        let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
        let handler = move |server: &ServerHandle, event: ServerEvent<RequestContext>| {
            if matches!(&event, ServerEvent::Request(request) if request.method() == "tools/call") {
                begun.send(()).expect("the test waits");
            }
            echo::handle(server, event);
        };
        let options = HttpServerOptions::default();
        // Only what is not answered delays the end for an hour.
        let listen = ListenOptions {
            drain: Duration::from_secs(3600),
            ..ListenOptions::default()
        };
        let mut server = TestServer::serve(Arc::new(handler), options, listen).await;
        let (client, _) = connect(&server.url("/mcp"), revision);
        client.ready().await.expect("connected");
        let request = call(&client, "later", "in flight");
        let stop = async {
            has_begun.recv().await.expect("a call");
            server.stop();
        };
        let (answer, ()) = tokio::join!(request, stop);
        assert_eq!(answer, Ok("in flight".to_owned()), "{revision}");
        let served = tokio::time::timeout(LIMIT, &mut server.task).await;
        served.expect("in time").expect("task").expect("clean end");
    }
}

/// A client resumes the event stream of a call whose connection was cut, and receives the result.
#[tokio::test]
async fn cut_streams_are_resumed() {
    let options = HttpServerOptions {
        retry: Duration::from_millis(10),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let proxy = mcp_exact_tests_transport::proxy::CuttingProxy::start(server.address).await;
    let (client, _) = connect(&proxy.url("/mcp"), "2025-11-25");
    client.ready().await.expect("connected");
    for round in 0..20 {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&steps);
        let note: mcp_exact_transport::ProgressCallback =
            Box::new(move |progress| seen.lock().expect("not poisoned").push(progress.done));
        let options = CallOptions {
            progress: true,
            ..CallOptions::default()
        };
        let params = echo::call_params("count", "");
        let request = client
            .request("tools/call", params, options, Some(note))
            .expect("sent");
        let cut = async {
            tokio::time::sleep(Duration::from_millis(3 + round % 8)).await;
            proxy.cut();
        };
        let (outcome, ()) = tokio::join!(request, cut);
        match outcome {
            Outcome::Result(_) => assert_eq!(*steps.lock().expect("not poisoned"), [1.0, 2.0, 3.0]),
            // The cut came before the first event: there was nothing to resume from.
            Outcome::Lost => assert!(steps.lock().expect("not poisoned").is_empty()),
            other => panic!("{other:?}"),
        }
    }
}

/// Sends a call whose session the server ends while it runs, and a list request; returns true if the call was repeated in
/// the next session. `carrier` sends the HTTP requests if it is given.
async fn is_repeated(carrier: Option<&ReqwestClient>, tool: Option<Value>) -> bool {
    let options = HttpServerOptions {
        retry: Duration::from_millis(10),
        ..HttpServerOptions::default()
    };
    let server = TestServer::start(options).await;
    let endpoint = HttpEndpoint::new(&server.url("/mcp")).expect("a URL");
    let endpoint = endpoint
        .retry(Duration::from_millis(10))
        .opens_stream(false);
    let endpoint = match carrier {
        Some(carrier) => endpoint.client(Arc::new(carrier.clone())),
        None => endpoint,
    };
    let config = echo::client_settings("2025-11-25");
    let (client, driver) = endpoint.connect(config, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    let params = echo::call_params("slow", "");
    let options = CallOptions {
        progress: true,
        repeatable_tool: tool.map(|tool| tool.to_string().parse().expect("an object")),
        ..CallOptions::default()
    };
    let (begun, has_begun) = tokio::sync::oneshot::channel();
    let begun = Mutex::new(Some(begun));
    let note: mcp_exact_transport::ProgressCallback = Box::new(move |_| {
        if let Some(begun) = begun.lock().expect("not poisoned").take() {
            let _ = begun.send(());
        }
    });
    let call = client.request("tools/call", params, options, Some(note));
    let call = tokio::spawn(call.expect("sent"));
    has_begun.await.expect("it runs");
    server.service.end_sessions();
    let list = client.request("tools/list", None, CallOptions::default(), None);
    let list = list.expect("sent").await;
    assert!(matches!(list, Outcome::Result(_)), "{list:?}");
    let call = call.await.expect("it does not panic");
    assert_eq!(server.service.sessions(), 1);
    client.close();
    driver.await.expect("driver");
    match call {
        Outcome::Result(_) => true,
        Outcome::Lost => false,
        other => panic!("{other:?}"),
    }
}

/// List and read requests have no side effects and are repeated in the next session. Tool calls that the server has begun are
/// not repeated, unless the caller allows it for a tool with `idempotentHint` ("calling the tool repeatedly with the same
/// arguments will have no additional effect").
#[tokio::test]
async fn only_idempotent_calls_survive_lost_sessions() {
    let tool = |name: &str, annotations: Value| {
        let schema = json!({ "type": "object" });
        Some(json!({ "name": name, "inputSchema": schema, "annotations": annotations }))
    };
    let carrier = ReqwestClient::new(reqwest::Client::builder()).expect("built");
    for carrier in [None, Some(&carrier)] {
        for (tool, expected) in [
            (None, false),
            (Some(json!({ "name": "slow" })), false),
            (tool("slow", json!({})), false),
            (tool("slow", json!({ "idempotentHint": false })), false),
            (tool("slow", json!({ "idempotentHint": "true" })), false),
            (tool("slow", json!({ "readOnlyHint": true })), false),
            (tool("other", json!({ "idempotentHint": true })), false),
            (tool("slow", json!({ "idempotentHint": true })), true),
        ] {
            let repeated = is_repeated(carrier, tool.clone()).await;
            assert_eq!(repeated, expected, "{tool:?}");
        }
    }
}

/// A client that is closed while the server does not respond, or between two sessions, starts no new session.
#[tokio::test]
async fn closed_client_begins_no_session() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let silent = silent.expect("bound");
    let url = format!("http://{}/sse", silent.local_addr().expect("an address"));
    for transport in [HttpTransport::Sse, HttpTransport::Streamable] {
        let endpoint = HttpEndpoint::new(&url).expect("a URL").transport(transport);
        let config = echo::client_settings("2024-11-05");
        let (client, driver) = endpoint.connect(config, None, Arc::new(echo::answer));
        tokio::time::sleep(Duration::from_millis(50)).await;
        client.close();
        // Sooner than the handshake is given up.
        let ended = tokio::time::timeout(Duration::from_secs(20), driver).await;
        ended.expect("in time").expect("driver");
    }
    let server = TestServer::start(HttpServerOptions::default()).await;
    let endpoint = HttpEndpoint::new(&server.url("/mcp")).expect("a URL");
    let endpoint = endpoint.retry(Duration::from_secs(3600));
    let config = echo::client_settings("2025-11-25");
    let (client, driver) = endpoint.connect(config, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    server.service.end_sessions();
    let waiting = client.clone();
    let waiting = tokio::spawn(async move { call(&waiting, "echo", "").await });
    let lost = || client.session_info().is_none();
    while !lost() {
        tokio::task::yield_now().await;
    }
    client.close();
    // The call waits for the next session, which never begins.
    assert_eq!(waiting.await.expect("no panic"), Err(Outcome::Lost));
    let ended = tokio::time::timeout(LIMIT, driver).await;
    ended.expect("in time").expect("driver");
    assert_eq!(server.service.sessions(), 0);
}

/// A call that was lost with its session, or was made after that, can be cancelled before the next session begins.
#[tokio::test]
async fn waiting_calls_are_cancelled() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    let endpoint = HttpEndpoint::new(&server.url("/mcp")).expect("a URL");
    let endpoint = endpoint
        .retry(Duration::from_secs(3600))
        .opens_stream(false);
    let config = echo::client_settings("2025-11-25");
    let (client, driver) = endpoint.connect(config, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    server.service.end_sessions();
    let call = || {
        let params = echo::call_params("never", "");
        client.request("tools/call", params, CallOptions::default(), None)
    };
    // The server answers with status 404: the call has not been processed, and waits for the next session.
    let mut lost = call().expect("sent");
    while client.session_info().is_some() {
        tokio::task::yield_now().await;
    }
    let mut late = call().expect("kept");
    for call in [&mut lost, &mut late] {
        call.cancel("enough");
        let ended = tokio::time::timeout(Duration::from_secs(60), call).await;
        assert_eq!(ended.expect("it ends"), Outcome::Cancelled);
    }
    client.close();
    driver.await.expect("driver");
}
