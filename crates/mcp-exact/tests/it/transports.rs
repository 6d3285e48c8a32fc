//! Servers over HTTP, for clients of every revision.

use std::future::IntoFuture as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::testing::revisions_from;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{
    AuthFuture, Authenticate, HttpListener, HttpServerOptions,
};
use mcp_exact::transport::store::{
    BusMessage, ChangeBus as _, MemoryChangeBus, MemorySessionStore,
};
use mcp_exact::{
    Client, ClientChange, ClientError, Connect, Cx, Error, Form, Headers, JsonObject, KeyRing,
    Meta, Principal, Progress, Server, Tool, revisions, schemars, serde,
};
use mcp_exact_session::Change;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::AbortHandle;

use crate::common::object;
use crate::common::spec;

/// Form that asks for a confirmation.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    yes: bool,
}

/// Creates a server with tools that return the revision, a mirrored argument and a header, and a tool that elicits.
fn server() -> Server {
    Server::builder("test", "1.0.0")
        .tool(
            "revision",
            |cx: Cx| async move { cx.revision().to_string() },
        )
        .tool(
            Tool::new("region").input_schema(object(
                r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#,
            )),
            |arguments: JsonObject, headers: Headers| async move {
                // The header equals the argument in the body, because the server has compared them.
                let header = headers.get("mcp-param-region").unwrap_or_default().to_owned();
                let body = arguments.get("region").map(|region| region.to_string());
                assert_eq!(body, Some(format!("{header:?}")));
                header
            },
        )
        .tool("agent", |headers: Headers| async move {
            headers.get("host").unwrap_or_default().to_owned()
        })
        .tool("ask", |cx: Cx| async move {
            cx.progress(1, 2)?;
            let answer = cx.elicit::<Confirm>("Sure?").await?;
            cx.progress(2, 2)?;
            Ok::<_, Error>(answer.accepted_with(|form| form.yes).to_string())
        })
        .build()
        .expect("a server")
}

/// Server over HTTP that is stopped on drop.
struct RunningServer {
    url: String,
    task: AbortHandle,
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts a server on a free port with the default options.
async fn start_server(server: &Server) -> RunningServer {
    start_server_with(server, HttpServerOptions::default()).await
}

/// Starts a server on a free port.
async fn start_server_with(server: &Server, options: HttpServerOptions) -> RunningServer {
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(options);
    let task = tokio::spawn(listener.serve(service, std::future::pending()));
    RunningServer {
        url: format!("http://{address}/mcp"),
        task: task.abort_handle(),
    }
}

/// Configures a client that accepts every form.
fn connect(url: &str) -> Connect {
    Client::connect(url)
        .on_elicit(|form: Form| async move { form.accept(&object(r#"{"yes":true}"#)) })
}

/// An `axum` application ends gracefully although clients of every revision keep streams open, once the service is
/// drained; calls in flight are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drained_services_let_axum_end() {
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::builder("test", "1.0.0")
        .resource("x://a", || async { "" })
        .tool("slow", move || {
            let _ = begun.send(());
            async {
                tokio::time::sleep(Duration::from_millis(100)).await;
                "done"
            }
        })
        .build()
        .expect("a server");
    let service = server.http_at("/mcp");
    let application = axum::Router::new().nest_service("/mcp", service.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = axum::serve(listener, application).with_graceful_shutdown(async move {
        let _ = stopped.await;
        service.drain();
    });
    let serving = tokio::spawn(serving.into_future());
    let mut listening = Vec::new();
    for revision in revisions() {
        let client = Client::connect(&url).revision(revision).on_change(|_| {});
        let client = client.await.expect("a client");
        let subscription = client.subscribe(["x://a"]).await.expect("a subscription");
        listening.push((client, subscription));
    }
    let (client, _) = listening.last().expect("a client");
    let call = tokio::spawn(client.call::<_, String>("slow", &()).into_future());
    has_begun.recv().await.expect("the call has begun");
    stop.send(()).expect("it serves");
    assert_eq!(call.await.expect("no panic").as_deref(), Ok("done"));
    serving.await.expect("no panic").expect("no error");
}

/// Calls work over HTTP in every revision; 2024-11-05 clients use HTTP+SSE at another URL.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_work_over_http() {
    let listening = start_server(&server()).await;
    revisions_from(
        "2025-03-26",
        || connect(&listening.url),
        |client| async move {
            let revision: String = client.call("revision", &()).await.expect("a revision");
            assert_eq!(revision, client.revision().as_str());
            let host: String = client.call("agent", &()).await.expect("a header");
            assert!(host.starts_with("127.0.0.1:"), "{host}");
        },
    )
    .await;
}

/// An input request is answered and progress is received over HTTP, in every revision with elicitation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_requests_work_over_http() {
    let listening = start_server(&server()).await;
    revisions_from(
        "2025-06-18",
        || connect(&listening.url),
        |client| async move {
            let progress = Arc::new(Mutex::new(Vec::new()));
            let seen = Arc::clone(&progress);
            let answer: String = client
                .call("ask", &())
                .on_progress(move |progress: Progress| {
                    seen.lock().expect("a lock").push(progress.done)
                })
                .await
                .expect("an answer");
            assert_eq!(answer, "true");
            assert_eq!(*progress.lock().expect("a lock"), [1.0, 2.0]);
        },
    )
    .await;
}

/// The server compares mirrored headers with the body (2026-07-28, `basic/transports/streamable-http`, "Custom Headers
/// from Tool Parameters").
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mirrored_arguments_are_compared() {
    let listening = start_server(&server()).await;
    let arguments = object(r#"{"region":"eu"}"#);
    let newest = revisions().next_back().expect("a revision");
    let client = connect(&listening.url).revision(newest);
    let client = client.await.expect("a client");
    // The client must list the tools to learn which arguments it must mirror.
    let unlisted = client
        .call_tool("region", &arguments)
        .await
        .expect("listed after the refusal");
    assert_eq!(unlisted.text(), "eu");
    client.tools().all().await.expect("tools");
    let listed: String = client.call("region", &arguments).await.expect("a text");
    assert_eq!(listed, "eu");
}

/// A client is notified of an inserted tool, and the server keeps no listener for a client that has disconnected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn list_changes_are_notified_over_http() {
    let server = server();
    // The server notices the end of a client without writing to it.
    let options = HttpServerOptions {
        keep_alive: Duration::from_secs(3600),
        ..HttpServerOptions::default()
    };
    let listening = start_server_with(&server, options).await;
    for revision in revisions().filter(|revision| spec(*revision).has_streamable_http()) {
        let (changed, mut changes) = tokio::sync::mpsc::unbounded_channel();
        let client = connect(&listening.url)
            .revision(revision)
            .on_change(move |change| drop(changed.send(change)))
            .await
            .expect("a client");
        // The stream for messages outside of requests is opened concurrently with the first requests (up to
        // 2025-11-25).
        let change = loop {
            server
                .tools()
                .insert("new", || async { "" })
                .expect("a tool");
            let wait = tokio::time::timeout(Duration::from_millis(100), changes.recv());
            match wait.await {
                Ok(change) => break change,
                Err(_) => continue,
            }
        };
        assert_eq!(change, Some(ClientChange::Tools), "{revision}");
        assert!(
            !format!("{server:?}").contains("listeners: 0"),
            "{server:?}"
        );
        client.close();
        // No state remains for a client that has disconnected.
        let gone = async {
            while !format!("{server:?}").contains("listeners: 0") {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let gone = tokio::time::timeout(Duration::from_secs(60), gone).await;
        assert!(gone.is_ok(), "{revision}: {server:?}");
    }
}

/// A call that runs when the server ends its session is sent again only if the caller allows it and the tool declares
/// `idempotentHint`: "calling the tool repeatedly with the same arguments will have no additional effect" (`server/tools`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_idempotent_calls_are_repeated() {
    let is_first = Arc::new(AtomicBool::new(true));
    // The first call of each row runs until its session ends.
    let tool = || {
        let is_first = Arc::clone(&is_first);
        move |cx: Cx| {
            let waits = is_first.swap(false, Ordering::Relaxed);
            async move {
                cx.progress(1, 2)?;
                if waits {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Error>("done")
            }
        }
    };
    let server = Server::builder("test", "1.0.0")
        .tool(Tool::new("idempotent").idempotent(true), tool())
        .tool("plain", tool())
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(HttpServerOptions::default());
    let task = tokio::spawn(listener.serve(service.clone(), std::future::pending()));
    for (called, allowed, is_repeated) in [
        ("idempotent", Some("idempotent"), true),
        ("idempotent", None, false),
        ("idempotent", Some("plain"), false),
        ("plain", Some("plain"), false),
        ("plain", Some("idempotent"), false),
        ("plain", None, false),
    ] {
        let endpoint = HttpEndpoint::new(&format!("http://{address}/mcp")).expect("a URL");
        // Nothing but the call finds out that the session has ended.
        let endpoint = endpoint
            .retry(Duration::from_millis(10))
            .opens_stream(false);
        let client = Client::http(endpoint)
            .revision(
                revisions()
                    .find(|one| one.as_str() == "2025-11-25")
                    .expect("known"),
            )
            .await
            .expect("a client");
        let tools = client.tools().all().await.expect("tools");
        is_first.store(true, Ordering::Relaxed);
        let ending = service.clone();
        let call = client.call::<_, String>(called, &());
        let goes_on = AtomicBool::new(true);
        let call = call.on_progress(move |_| {
            if goes_on.swap(false, Ordering::Relaxed) {
                ending.end_sessions();
            }
        });
        let tool = tools.iter().find(|tool| Some(&*tool.name()) == allowed);
        let answer = match tool {
            Some(tool) => call.allow_repeat(tool.object()).await,
            None => call.await,
        };
        if is_repeated {
            assert_eq!(
                answer.as_deref(),
                Ok("done"),
                "{called}, allowed {allowed:?}"
            );
        } else {
            let is_lost = matches!(
                answer,
                Err(ClientError::Disconnected {
                    may_have_run: true,
                    ..
                })
            );
            assert!(is_lost, "{called}, allowed {allowed:?}: {answer:?}");
        }
    }
    task.abort();
}

/// Authenticator that uses a header as the principal.
struct ByHeader;

impl Authenticate for ByHeader {
    fn authenticate<'a>(&'a self, request: &'a mut http::request::Parts) -> AuthFuture<'a> {
        let name = request.headers.get("x-user");
        let name = name.and_then(|name| name.to_str().ok());
        let principal = name.map(|name| Principal(name.to_owned()));
        Box::pin(std::future::ready(Ok(principal.into())))
    }
}

/// Handlers extract the principal and the metadata of a request; a handler that needs a principal is not called without
/// a principal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handlers_extract_principals_and_metadata() {
    let server = Server::builder("test", "1.0.0")
        .tool("who", |Principal(name): Principal| async move { name })
        .tool("maybe", |principal: Option<Principal>| async move {
            principal.map_or_else(|| "nobody".to_owned(), |Principal(name)| name)
        })
        .tool("meta", |Meta(meta): Meta| async move {
            meta.get("progressToken").is_some().to_string()
        })
        .build()
        .expect("a server");
    let options = HttpServerOptions {
        authenticate: Some(Arc::new(ByHeader)),
        ..HttpServerOptions::default()
    };
    let listening = start_server_with(&server, options).await;
    let endpoint = || HttpEndpoint::new(&listening.url).expect("a URL");
    let as_ada = || {
        let name = http::HeaderName::from_static("x-user");
        Client::http(endpoint().header(name, http::HeaderValue::from_static("ada")))
    };
    revisions_from("2025-03-26", as_ada, |client| async move {
        for tool in ["who", "maybe"] {
            let name: String = client.call(tool, &()).await.expect("a name");
            assert_eq!(name, "ada");
        }
        let meta = client.call::<_, String>("meta", &()).on_progress(|_| {});
        assert_eq!(meta.await.expect("a text"), "true");
    })
    .await;
    let anonymous = || Client::http(endpoint());
    revisions_from("2025-03-26", anonymous, |client| async move {
        let name: String = client.call("maybe", &()).await.expect("a name");
        assert_eq!(name, "nobody");
        let refused = client.call_tool("who", &()).await.expect("a result");
        assert!(refused.is_error() && refused.text().contains("not authenticated"));
    })
    .await;
}

/// Two services of one server share a change bus, as in an application that mounts the server twice; each change is
/// announced once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_sharing_a_bus_notify_once() {
    let server = Server::builder("test", "1.0.0")
        .declare_tools()
        .declare_prompts()
        .declare_resources()
        .build()
        .expect("a server");
    let bus = Arc::new(MemoryChangeBus::default());
    let announced = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&announced);
    let _subscription = bus.subscribe(Arc::new(move |message: &BusMessage| {
        if let BusMessage::Changed { change, .. } = message {
            seen.lock().expect("a lock").push(change.clone());
        }
    }));
    let mut clients = Vec::new();
    for _ in 0..2 {
        let options = HttpServerOptions {
            change_bus: Some(Arc::clone(&bus) as _),
            ..HttpServerOptions::default()
        };
        let listening = start_server_with(&server, options).await;
        let (changed, changes) = tokio::sync::mpsc::unbounded_channel();
        let client = connect(&listening.url)
            .on_change(move |change| drop(changed.send(change)))
            .await
            .expect("a client");
        // The subscription may start later than the connection.
        while changes.is_empty() {
            server
                .tools()
                .insert("tool", || async { "" })
                .expect("a tool");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        clients.push((client, listening, changes));
    }
    server
        .prompts()
        .insert("prompt", || async { "" })
        .expect("a prompt");
    // This message is delivered by the bus after all messages about the prompt.
    bus.publish(BusMessage::Changed {
        change: Change::Resources,
        origin: 0,
    });
    for (_, _, changes) in &mut clients {
        let mut prompts = 0;
        loop {
            match changes.recv().await.expect("a change") {
                ClientChange::Resources => break,
                ClientChange::Prompts => prompts += 1,
                _ => {}
            }
        }
        assert_eq!(prompts, 1);
    }
    let announced = announced.lock().expect("a lock");
    let prompts = announced
        .iter()
        .filter(|change| **change == Change::Prompts);
    assert_eq!(prompts.count(), 1);
}

/// Sends a message by POST and returns the whole response.
async fn post(server: &RunningServer, session_id: Option<&str>, message: &str) -> String {
    let host = server.url.trim_start_matches("http://");
    let host = host.trim_end_matches("/mcp");
    let session = session_id.map_or_else(String::new, |id| format!("Mcp-Session-Id: {id}\r\n"));
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{session}Connection: close\r\n\
         Content-Length: {}\r\n\r\n{message}",
        message.len()
    );
    let mut stream = TcpStream::connect(host).await.expect("a connection");
    let sent = stream.write_all(request.as_bytes()).await;
    sent.expect("the server reads");
    let mut response = String::new();
    let received = stream.read_to_string(&mut response).await;
    received.expect("a response");
    response
}

/// Keys that seal session ids can be rotated: a process opens ids that were sealed with any of its keys, and rejects
/// all other ids. "The server MAY terminate the session at any time, after which it MUST respond to requests containing
/// that session ID with HTTP 404 Not Found" (2025-11-25, `basic/transports`, Session Management).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_ids_survive_rotated_keys() {
    let store = Arc::new(MemorySessionStore::default());
    let listen = async |keys: KeyRing| {
        let options = HttpServerOptions {
            session_store: Some(Arc::clone(&store) as _),
            session_ids: Some(Arc::new(keys)),
            ..HttpServerOptions::default()
        };
        start_server_with(&server(), options).await
    };
    let (old, new) = ([1; 32], [2; 32]);
    let before = listen(KeyRing::new(old, [])).await;
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
    let response = post(&before, None, initialize).await;
    let id = response
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .expect("a session id");
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"revision"}}"#;
    for (keys, status) in [
        (KeyRing::new(new, [old]), "HTTP/1.1 200"),
        (KeyRing::new(new, []), "HTTP/1.1 404"),
    ] {
        let rotated = listen(keys).await;
        let response = post(&rotated, Some(id), call).await;
        assert!(response.starts_with(status), "{response}");
    }
}
