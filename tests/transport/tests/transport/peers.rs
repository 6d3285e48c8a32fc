//! Untidy servers over HTTP, as public bug reports describe them: what a client does with responses that the
//! specification does not allow, and what it tells of them.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact_session::{
    CallOptions, ClientConfig, ClientEvent, ClientSettings, Identity, Json, JsonObject, Outcome,
};
use mcp_exact_tests_support::http_peer::{HttpPeer, PeerReply, PeerRequest, legacy_reply};
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::{ClientHandle, ConnectError};
use serde_json::{Value, json};

/// Settings of a client that offers every revision.
fn settings() -> Arc<ClientSettings> {
    let mut config = ClientConfig::new(Identity::new("client", "1"));
    // Every peer answers probes, or closes the connection.
    config.probe_timeout = Duration::from_secs(30);
    config.build().expect("a configuration")
}

/// Connects a client to a server; it does not wait before it begins another session.
fn connect(peer: &HttpPeer) -> ClientHandle {
    let endpoint = HttpEndpoint::new(&peer.url).expect("a URL");
    let endpoint = endpoint.retry(Duration::from_millis(1));
    let ignore = |_: &ClientHandle, _: ClientEvent| {};
    endpoint.connect(settings(), None, Arc::new(ignore)).0
}

/// Connects a client to a server; returns the error of the connection.
async fn connect_error(peer: &HttpPeer) -> String {
    let client = connect(peer);
    let error: ConnectError = client.ready().await.expect_err("it fails");
    error.to_string()
}

/// Sends a request; returns the text of a tool's result, "done" for another result, or the error.
async fn outcome(client: &ClientHandle, method: &str) -> String {
    let params = match method {
        "tools/call" => json!({ "name": "echo", "arguments": {} }),
        _ => json!({}),
    };
    let params = JsonObject::try_from(Json::from(params)).expect("an object");
    let sent = client.request(method, Some(params), CallOptions::default(), None);
    match sent.expect("sent").await {
        Outcome::Result(result) => {
            let result: Value = result.object().parse().expect("JSON");
            let text = result["content"][0]["text"].as_str();
            text.unwrap_or("done").to_owned()
        }
        Outcome::Error(error) => error.to_string(),
        other => format!("{other:?}"),
    }
}

/// Returns the body of an event stream with one event of this name and data.
fn event_stream(name: &str, data: &Value) -> PeerReply {
    let body = format!("event: {name}\ndata: {data}\n\n");
    PeerReply::new(200, "text/event-stream", body)
}

/// Every response to `server/discover` that is no sign of a server without handshake leads to `initialize`.
#[tokio::test]
async fn every_failed_probe_leads_to_initialize() {
    let other_id = json!("server-error");
    for (name, reply) in [
        ("403", PeerReply::new(403, "text/plain", "Forbidden")),
        ("500", PeerReply::new(500, "", "")),
        (
            "500 with an error",
            PeerReply::error(500, &Value::Null, -32603, "Internal error"),
        ),
        (
            "501",
            PeerReply::new(501, "text/html", "<title>Not implemented</title>"),
        ),
        ("502", PeerReply::new(502, "", "")),
        ("503", PeerReply::new(503, "", "")),
        ("200 without body", PeerReply::new(200, "", "")),
        (
            "200 with an empty JSON body",
            PeerReply::new(200, "application/json", ""),
        ),
        (
            "200 with other JSON",
            PeerReply::json(200, &json!({ "status": "ok" })),
        ),
        (
            "200 with a page",
            PeerReply::new(200, "text/html", "<html></html>"),
        ),
        ("202", PeerReply::new(202, "", "")),
        ("204", PeerReply::new(204, "", "")),
        (
            "empty event stream",
            PeerReply::new(200, "text/event-stream", ""),
        ),
        (
            "event stream without an answer",
            event_stream("ping", &json!({})),
        ),
        (
            "error without id",
            PeerReply::error(200, &Value::Null, -32600, "Invalid request"),
        ),
        (
            "error with another id",
            PeerReply::error(200, &other_id, -32600, "Invalid request"),
        ),
        ("closed connection", PeerReply::Cut),
    ] {
        let peer = HttpPeer::start(move |request| match request.method() {
            "server/discover" => reply.clone(),
            _ => legacy_reply(request, "2025-06-18"),
        });
        let client = connect(&peer);
        let (info, _) = client.ready().await.expect(name);
        assert_eq!(info.revision.as_str(), "2025-06-18", "{name}");
        assert_eq!(outcome(&client, "tools/call").await, "echoed", "{name}");
        client.close();
    }
}

/// Missing authorization and redirects end the negotiation after one request; the error tells where the server points to.
#[tokio::test]
async fn authorization_and_redirects_end_the_negotiation() {
    let moved =
        |status, location: &str| PeerReply::new(status, "", "").with_header("Location", location);
    for (reply, expected) in [
        (
            PeerReply::json(
                401,
                &json!({ "error": "invalid_token", "error_description": "it is expired" }),
            ),
            "the server refuses to start: the server answered with HTTP status 401: it is expired",
        ),
        (
            PeerReply::new(407, "text/html", "<title>Proxy login</title>"),
            "the server refuses to start: the server answered with HTTP status 407: the page \"Proxy login\"",
        ),
        (
            moved(301, "https://example.com/mcp/?key=k"),
            "the server redirects to https://example.com/mcp/ (HTTP status 301); connect to that URL instead",
        ),
        (
            moved(302, "/login"),
            "the server redirects to /login (HTTP status 302); connect to that URL instead",
        ),
        (
            moved(308, "https://example.com/mcp"),
            "the server redirects to https://example.com/mcp (HTTP status 308); connect to that URL instead",
        ),
    ] {
        let peer = HttpPeer::start(move |_| reply.clone());
        assert_eq!(connect_error(&peer).await, expected);
        assert_eq!(peer.methods(), ["server/discover"], "{expected}");
    }
}

/// The error of a failed negotiation gives the server's reason, also if the fallback to HTTP+SSE fails afterwards.
#[tokio::test]
async fn failed_negotiation_gives_the_reason() {
    let peer = HttpPeer::start(|request| match request.http_method.as_str() {
        "POST" => PeerReply::json(
            400,
            &json!({ "title": "Bad Request", "detail": "no tenant" }),
        ),
        _ => PeerReply::new(405, "", ""),
    });
    let expected = format!(
        "the server refuses to start: the server answered with HTTP status 400: no tenant; HTTP+SSE, which was tried \
         next: the server offers no event stream at {} (status 405 Method Not Allowed)",
        peer.url
    );
    assert_eq!(connect_error(&peer).await, expected);

    let peer = HttpPeer::start(|_| PeerReply::new(200, "text/html", "<title>Sign in</title>"));
    let expected = "the server does not answer the handshake: HTTP status 200 with content of type `text/html`, and no \
                    answer: the page \"Sign in\"; check the URL, and whether a login or a proxy answers in place of the server";
    assert_eq!(connect_error(&peer).await, expected);

    let peer = HttpPeer::start(|_| PeerReply::new(200, "application/json", "Notice: x\n{}"));
    let expected = "the server does not answer the handshake: HTTP status 200 with content of type `application/json`, and \
                    no answer: Notice: x {}; only the server, or a proxy before it, can be changed: tell its authors";
    assert_eq!(connect_error(&peer).await, expected);

    // The endpoint has another path, and a page for every path.
    for (path, remedy) in [
        ("/", "; the endpoint of a server often has the path `/mcp`"),
        (
            "/mcp/",
            "; the endpoint may have the path `/mcp`, without the slash at its end",
        ),
        ("/api", "; check the path of the URL"),
    ] {
        let mut peer = HttpPeer::start(|_| PeerReply::new(404, "text/plain", "Not Found"));
        peer.url = peer.url.replace("/mcp", path);
        let error = connect_error(&peer).await;
        let ended = format!("at {} (status 404 Not Found): Not Found{remedy}", peer.url);
        assert!(error.ends_with(&ended), "{error}");
    }
    let peer = HttpPeer::start(|request| match request.http_method.as_str() {
        "GET" => PeerReply::new(200, "text/html", "<title>Welcome</title>"),
        _ => PeerReply::new(405, "", ""),
    });
    let ended = "(HTTP status 200 with content of type `text/html`): the page \"Welcome\"";
    let error = connect_error(&peer).await;
    assert!(error.ends_with(ended), "{error}");
}

/// A refused revision leads to an older one, over HTTP with status 200 and 400.
#[tokio::test]
async fn refused_revision_leads_to_an_older_one() {
    for status in [200, 400] {
        let peer = HttpPeer::start(move |request| {
            let version = &request.body["params"]["protocolVersion"];
            match request.method() {
                "initialize" if version != "2024-11-05" => {
                    let text = "Unsupported protocol version, supported: 2024-11-05";
                    PeerReply::error(status, request.id(), -32602, text)
                }
                _ => legacy_reply(request, "2024-11-05"),
            }
        });
        let client = connect(&peer);
        let (info, _) = client.ready().await.expect("negotiated");
        assert_eq!(info.revision.as_str(), "2024-11-05");
        assert_eq!(outcome(&client, "tools/call").await, "echoed");
        client.close();
    }
}

/// An error status for `notifications/initialized` ends no session: there is one handshake, with and without a session id.
#[tokio::test]
async fn refused_initialized_is_no_lost_session() {
    for has_id in [true, false] {
        for status in [400, 401, 404, 405, 409, 500] {
            let peer = HttpPeer::start(move |request| match request.method() {
                "initialize" if has_id => {
                    legacy_reply(request, "2025-11-25").with_header("Mcp-Session-Id", "one")
                }
                "notifications/initialized" => {
                    PeerReply::new(status, "text/plain", "no such session")
                }
                _ => legacy_reply(request, "2025-11-25"),
            });
            let client = connect(&peer);
            client.ready().await.expect("negotiated");
            for _ in 0..2 {
                assert_eq!(outcome(&client, "tools/call").await, "echoed", "{status}");
            }
            assert_eq!(
                peer.count("initialize"),
                1,
                "{status}: {:?}",
                peer.methods()
            );
            client.close();
        }
    }
}

/// The answer to a request is understood whatever media type the response names, if its body is one message.
#[tokio::test]
async fn media_type_of_an_answer_does_not_matter() {
    for media_type in [
        "",
        "text/plain",
        "text/json; charset=utf-8",
        "application/json-rpc",
        "text/html",
    ] {
        let peer = HttpPeer::start(move |request| match legacy_reply(request, "2025-06-18") {
            PeerReply::Response {
                status: 200, body, ..
            } => PeerReply::new(200, media_type, body),
            reply => reply,
        });
        let client = connect(&peer);
        client.ready().await.expect(media_type);
        assert_eq!(
            outcome(&client, "tools/call").await,
            "echoed",
            "{media_type}"
        );
        client.close();
    }
}

/// A call without a usable answer ends with an error that says what the server has sent, not with one of the server.
#[tokio::test]
async fn unusable_answers_are_described() {
    let gave_none = "the server gave no answer, but may have done the work: HTTP status";
    let authors = "; only the server, or a proxy before it, can be changed: tell its authors";
    let stray = json!({ "jsonrpc": "2.0", "id": 99, "result": {} });
    let cases: Vec<(PeerReply, String)> = vec![
        (
            PeerReply::json(400, &json!({ "type": "about:blank", "title": "Bad", "detail": "no tenant" })),
            "the server answered with HTTP status 400: no tenant".to_owned(),
        ),
        (
            PeerReply::new(502, "text/html", "<html><title>502 Bad Gateway</title></html>"),
            "the server answered with HTTP status 502: the page \"502 Bad Gateway\"".to_owned(),
        ),
        (
            PeerReply::new(500, "text/plain", "boom\nat line 3"),
            "the server answered with HTTP status 500: boom at line 3".to_owned(),
        ),
        (
            PeerReply::error(400, &Value::Null, -32000, "no tenant"),
            "no tenant (-32000)".to_owned(),
        ),
        (
            PeerReply::error(200, &Value::Null, -32000, "no tenant"),
            "no tenant (-32000)".to_owned(),
        ),
        (
            PeerReply::new(200, "text/html", "<title>Sign in</title>"),
            format!("{gave_none} 200 with content of type `text/html`, and no answer: the page \"Sign in\"; check \
                     the URL, and whether a login or a proxy answers in place of the server"),
        ),
        (
            PeerReply::new(202, "", ""),
            format!("{gave_none} 202 without a content type, and no body; a request must be answered in its own response: change \
                     the server, or, if the URL is that for the messages of HTTP+SSE, connect to that of its event stream, often \
                     `/sse`"),
        ),
        (
            PeerReply::new(200, "application/json", ""),
            format!("{gave_none} 200 with content of type `application/json`, and no body{authors}"),
        ),
        (
            PeerReply::new(200, "application/json", "\x1f\u{8b}\u{8}").with_header("Content-Encoding", "gzip"),
            format!("{gave_none} 200 with compressed content of type `application/json`, and no answer: the server or a proxy before it \
                     compressed its answer (gzip) although it was not asked to; turn compression off there"),
        ),
        (
            PeerReply::new(200, "text/event-stream", "\x1f\u{8b}\u{8}").with_header("Content-Encoding", "br"),
            format!("{gave_none} 200 with compressed content of type `text/event-stream`, and no answer: the server or a proxy before it \
                     compressed its answer (br) although it was not asked to; turn compression off there"),
        ),
        (
            PeerReply::new(502, "text/html", "\x1f\u{8b}\u{8}").with_header("Content-Encoding", "gzip"),
            "the server answered with HTTP status 502: the server or a proxy before it compressed its answer (gzip) although it \
             was not asked to; turn compression off there".to_owned(),
        ),
        (
            PeerReply::new(200, "application/json", "Warning: x\n{\"jsonrpc\":\"2.0\"}"),
            format!(
                "{gave_none} 200 with content of type `application/json`, and no answer: Warning: x {{\"jsonrpc\":\"2.0\"}}{authors}"
            ),
        ),
        (
            PeerReply::json(200, &stray),
            format!("{gave_none} 200 with content of type `application/json`, and no answer: {stray}{authors}"),
        ),
        (
            event_stream("result", &stray),
            format!(
                "the server gave no answer, but may have done the work: the event stream of the response ended without an \
                 answer; it has an event named `result`, which is not a message: {stray}"
            ),
        ),
        (PeerReply::new(200, "text/event-stream", ""), "Lost".to_owned()),
        (
            PeerReply::new(307, "", "").with_header("Location", "https://example.com/mcp"),
            "the server redirects to https://example.com/mcp (HTTP status 307); connect to that URL instead".to_owned(),
        ),
    ];
    for (reply, expected) in cases {
        let peer = HttpPeer::start(move |request| match request.method() {
            "tools/call" => reply.clone(),
            _ => legacy_reply(request, "2025-06-18"),
        });
        let client = connect(&peer);
        client.ready().await.expect("negotiated");
        assert_eq!(outcome(&client, "tools/call").await, expected);
        // The connection lives.
        assert_eq!(outcome(&client, "tools/list").await, "done", "{expected}");
        assert_eq!(peer.count("initialize"), 1);
        client.close();
    }
}

/// Server with sessions that forgets all of them once.
struct Redeployed {
    /// Number of sessions so far.
    sessions: AtomicUsize,
    /// Sessions that the server knows.
    known: Mutex<HashSet<String>>,
    /// Number of calls that were executed.
    calls: AtomicUsize,
    /// Response for a session that the server does not know.
    forgotten: PeerReply,
}

impl Redeployed {
    fn new(forgotten: PeerReply) -> Arc<Self> {
        Arc::new(Self {
            sessions: AtomicUsize::new(0),
            known: Mutex::default(),
            calls: AtomicUsize::new(0),
            forgotten,
        })
    }

    fn redeploy(&self) {
        self.known.lock().expect("a lock").clear();
    }

    fn reply(&self, request: &PeerRequest) -> PeerReply {
        if request.method() == "initialize" {
            let id = format!("s{}", self.sessions.fetch_add(1, Ordering::Relaxed));
            self.known.lock().expect("a lock").insert(id.clone());
            return legacy_reply(request, "2025-06-18").with_header("Mcp-Session-Id", &id);
        }
        let session = request.header("mcp-session-id").unwrap_or("");
        let is_known = self.known.lock().expect("a lock").contains(session);
        if request.method() != "server/discover" && !is_known {
            return self.forgotten.clone();
        }
        if request.method() == "tools/call" {
            self.calls.fetch_add(1, Ordering::Relaxed);
        }
        legacy_reply(request, "2025-06-18")
    }
}

/// After a redeployment, a new session begins once, whatever the server answers for the old one, and at whatever request
/// comes first. A call that the server has refused is executed once, in the new session; after 409, which may come
/// after the call was executed, it is not sent again.
#[tokio::test]
async fn clients_survive_a_redeployment() {
    let example = PeerReply::error(
        400,
        &Value::Null,
        -32000,
        "Bad Request: No valid session ID provided",
    );
    for (name, forgotten) in [
        ("404", PeerReply::new(404, "", "")),
        (
            "404 with an error",
            PeerReply::error(404, &Value::Null, -32001, "Session not found"),
        ),
        ("400 of the SDK's example", example),
        (
            "400 with text",
            PeerReply::new(400, "text/plain", "Invalid session"),
        ),
        ("401", PeerReply::new(401, "", "")),
        ("409", PeerReply::new(409, "", "")),
    ] {
        for first in ["tools/call", "tools/list", "ping"] {
            let server = Redeployed::new(forgotten.clone());
            let reply = Arc::clone(&server);
            let peer = HttpPeer::start(move |request| reply.reply(request));
            let client = connect(&peer);
            client.ready().await.expect(name);
            assert_eq!(outcome(&client, "tools/call").await, "echoed", "{name}");
            server.redeploy();
            let is_repeated = name != "409" || first != "tools/call";
            let expected = match first {
                _ if !is_repeated => "Lost",
                "tools/call" => "echoed",
                _ => "done",
            };
            assert_eq!(outcome(&client, first).await, expected, "{name}, {first}");
            assert_eq!(
                outcome(&client, "tools/call").await,
                "echoed",
                "{name}, {first}"
            );
            assert_eq!(
                peer.count("initialize"),
                2,
                "{name}, {first}: {:?}",
                peer.methods()
            );
            let calls = 2 + usize::from(first == "tools/call" && is_repeated);
            assert_eq!(
                server.calls.load(Ordering::Relaxed),
                calls,
                "{name}, {first}"
            );
            client.close();
        }
    }
}

/// A server that takes the previous stream for open refuses the next one with status 409, as the official SDKs do: the stream
/// of a session, and that of a request, are opened again until the server has noticed that they are gone. Another status that is
/// temporary, as of a proxy, is tried again too.
#[tokio::test]
async fn streams_are_opened_again_after_a_conflict() {
    let opened = Arc::new(AtomicUsize::new(0));
    let (count, resumed) = (Arc::clone(&opened), AtomicUsize::new(0));
    let called = Mutex::new(Value::Null);
    let peer = HttpPeer::start(move |request| {
        let words = "Conflict: Only one SSE stream is allowed per session";
        let conflict = PeerReply::error(409, &Value::Null, -32000, words);
        match (request.method(), request.header("last-event-id")) {
            // The stream ends before the answer.
            ("tools/call", _) => {
                *called.lock().expect("a lock") = request.id().clone();
                PeerReply::new(200, "text/event-stream", "id: call\ndata:\n\n")
            }
            ("GET", Some(_)) if resumed.fetch_add(1, Ordering::Relaxed) < 2 => conflict,
            ("GET", Some(_)) => {
                let id = called.lock().expect("a lock").clone();
                let result = json!({ "content": [{ "type": "text", "text": "resumed" }] });
                let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
                event_stream("message", &answer)
            }
            ("GET", None) => match count.fetch_add(1, Ordering::Relaxed) {
                0 => PeerReply::new(200, "text/event-stream", ": open\n\n"),
                1 => conflict,
                2 => PeerReply::new(408, "text/plain", "Request Timeout"),
                _ => PeerReply::Silence,
            },
            _ => legacy_reply(request, "2025-11-25"),
        }
    });
    let client = connect(&peer);
    client.ready().await.expect("negotiated");
    assert_eq!(outcome(&client, "tools/call").await, "resumed");
    let is_open = async {
        while opened.load(Ordering::Relaxed) < 4 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let is_open = tokio::time::timeout(Duration::from_secs(60), is_open).await;
    assert!(is_open.is_ok(), "{:?}", peer.methods());
    client.close();
}

/// A server that refuses every session alike is not asked for ever: the request ends with its error.
#[tokio::test]
async fn endless_refusals_end_the_request() {
    let text = "Bad Request: No valid session ID provided";
    let peer = HttpPeer::start(move |request| match request.method() {
        "initialize" => legacy_reply(request, "2025-06-18").with_header("Mcp-Session-Id", "one"),
        "tools/call" | "tools/list" => PeerReply::error(400, &Value::Null, -32000, text),
        _ => legacy_reply(request, "2025-06-18"),
    });
    let client = connect(&peer);
    client.ready().await.expect("negotiated");
    for method in ["tools/call", "tools/list", "tools/call"] {
        assert_eq!(
            outcome(&client, method).await,
            format!("{text} (-32000)"),
            "{method}"
        );
    }
    assert_eq!(peer.count("initialize"), 2, "{:?}", peer.methods());
    client.close();
}

/// A request that is made between the end of a session and the next one waits for the next one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_wait_for_the_next_session() {
    let server = Redeployed::new(PeerReply::new(404, "", ""));
    let (begun, has_begun) = std::sync::mpsc::channel();
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new((begun, may_go_on));
    let reply = Arc::clone(&server);
    let peer = HttpPeer::start(move |request| {
        // The second handshake waits until the test has sent another request.
        if request.method() == "initialize" && reply.sessions.load(Ordering::Relaxed) == 1 {
            let gate = gate.lock().expect("a lock");
            gate.0.send(()).expect("the test waits");
            let _ = gate.1.recv();
        }
        reply.reply(request)
    });
    let client = connect(&peer);
    client.ready().await.expect("negotiated");
    server.redeploy();
    let first = client.clone();
    let first = tokio::spawn(async move { outcome(&first, "tools/call").await });
    tokio::task::spawn_blocking(move || has_begun.recv().expect("a handshake"))
        .await
        .expect("it does not panic");
    let second = outcome(&client, "tools/call");
    let mut second = std::pin::pin!(second);
    // The request is made before the handshake ends.
    tokio::select! {
        biased;
        early = &mut second => panic!("no session carries it: {early}"),
        () = std::future::ready(()) => {}
    }
    go_on.send(()).expect("the server waits");
    assert_eq!(second.await, "echoed");
    assert_eq!(first.await.expect("it does not panic"), "echoed");
    assert_eq!(server.calls.load(Ordering::Relaxed), 2);
    client.close();
}

/// "The server MUST provide [...] An SSE endpoint", whose stream begins with "an `endpoint` event containing a URI for the client to
/// use for sending messages" (2024-11-05, `basic/transports`, "HTTP with SSE"): the error says what comes in its place.
#[tokio::test]
async fn wrong_endpoint_events_are_described() {
    let expected = "it must name a path, such as `/messages?session=1`, or its public URL";
    let begins = "the server does not speak HTTP+SSE: its event stream does not begin with the event `endpoint`, but with";
    for (events, problem) in [
        (
            "event: endpoint\ndata: http://localhost:1/messages?s=1\n\n",
            format!(
                "the server names for messages `http://localhost:1/messages`, which belongs to another origin than SELF: {expected}"
            ),
        ),
        (
            "event: endpoint\ndata: {\"uri\":\"/messages\"}\n\n",
            format!(
                "the server names for messages `{{\"uri\":\"/messages\"}}`, which is no URL: {expected}"
            ),
        ),
        (
            "event: hello\ndata: {}\n\n",
            format!("{begins} an event named `hello`"),
        ),
        ("data: {}\n\n", format!("{begins} an event named `message`")),
        ("", format!("{begins} its end")),
    ] {
        let peer = HttpPeer::start(move |request| match request.http_method.as_str() {
            "GET" => PeerReply::new(200, "text/event-stream", events),
            _ => PeerReply::new(405, "", ""),
        });
        let error = connect_error(&peer).await;
        let refused = "the server refuses to start: the server answered with HTTP status 405";
        let problem = problem.replace("SELF", &peer.url);
        assert_eq!(
            error,
            format!("{refused}; HTTP+SSE, which was tried next: {problem}")
        );
    }
}
