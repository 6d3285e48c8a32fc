//! Behaviour of the HTTP client towards a scripted server: connections, headers, redirects, delays.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request};
use mcp_exact_session::{
    CallOptions, ClientConfig, Identity, Offer, Outcome, SendOutcome, ServerEvent,
};
use mcp_exact_tests_transport::echo::{self, call};
use mcp_exact_tests_transport::http::TestServer;
use mcp_exact_transport::http::client::{
    HttpClient, HttpEndpoint, HttpFuture, HttpTransport, HyperClient, HyperOptions,
};
use mcp_exact_transport::http::server::HttpServerOptions;
use mcp_exact_transport::{RequestContext, ServerHandle};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Request that the scripted server has received.
#[derive(Debug, Clone)]
struct ReceivedRequest {
    /// Number of the connection, from 0.
    connection: usize,
    /// Time of arrival.
    at: Instant,
    /// Request line and headers.
    head: String,
    /// Body of the request.
    body: String,
}

/// Function that returns the response to a request; `None` closes the connection.
type Script = dyn Fn(&ReceivedRequest) -> Option<String> + Send + Sync;

/// HTTP server whose responses a script determines.
struct ScriptedServer {
    /// Address of the server.
    address: SocketAddr,
    /// Number of connections that were closed.
    closed: Arc<AtomicUsize>,
    /// Requests that the server has received so far.
    arrived: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl ScriptedServer {
    /// Starts a server whose responses `script` determines.
    async fn start(
        script: impl Fn(&ReceivedRequest) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let (arrived, script) = (Arc::default(), Arc::new(script) as Arc<Script>);
        let closed = Arc::new(AtomicUsize::new(0));
        let ended = Arc::clone(&closed);
        let seen: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::clone(&arrived);
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.expect("a client");
                let serving = serve(stream, connection, Arc::clone(&seen), Arc::clone(&script));
                let ended = Arc::clone(&ended);
                tokio::spawn(async move {
                    serving.await;
                    ended.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self {
            address,
            closed,
            arrived,
        }
    }

    /// Returns the requests that the server has received so far.
    fn received_requests(&self) -> Vec<ReceivedRequest> {
        self.arrived.lock().expect("not poisoned").clone()
    }

    /// Returns the HTTP endpoint of the server, with a credential.
    fn endpoint(&self) -> HttpEndpoint {
        let url = format!("http://{}/mcp", self.address);
        HttpEndpoint::new(&url).expect("a URL").header(
            HeaderName::from_static("authorization"),
            HeaderValue::from_static("Bearer secret"),
        )
    }
}

/// Answers the requests of a connection, and appends them to `seen`, until the script closes the connection.
async fn serve(
    mut stream: TcpStream,
    connection: usize,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    script: Arc<Script>,
) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, rest)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                value.parse().ok().filter(|_| is_length)
            });
            let length: usize = length.unwrap_or(0);
            if rest.len() >= length {
                let request = ReceivedRequest {
                    connection,
                    at: Instant::now(),
                    head: head.to_owned(),
                    body: rest[..length].to_owned(),
                };
                bytes.drain(..head.len() + 4 + length);
                let response = script(&request);
                seen.lock().expect("not poisoned").push(request);
                let Some(response) = response else {
                    return;
                };
                stream
                    .write_all(response.as_bytes())
                    .await
                    .expect("written");
                if response.contains("Connection: close") {
                    return;
                }
                continue;
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
}

/// Returns a response with status 200, a JSON body and additional headers.
fn json(headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Returns a response with this status and additional headers, without a body.
fn empty(status: &str, headers: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\n\r\n")
}

/// Returns the response of a 2025-11-25 server: the handshake, and calls of `echo`, without a standalone stream.
fn answer(request: &ReceivedRequest) -> String {
    let body: serde_json::Value = request.body.parse().unwrap_or_default();
    let id = &body["id"];
    match body["method"].as_str() {
        Some("initialize") => {
            let result = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
            );
            json("Mcp-Session-Id: s-1\r\n", &result)
        }
        Some("tools/call") => {
            let text = &body["params"]["arguments"]["text"];
            let result = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{text}}}]}}}}"#
            );
            json("", &result)
        }
        Some(_) => empty("202 Accepted", ""),
        None if request.head.starts_with("GET") => empty("405 Method Not Allowed", ""),
        None => empty("200 OK", ""),
    }
}

/// A client sends consecutive requests on one connection, with the same headers.
#[tokio::test]
async fn connection_and_headers_are_used_again() {
    let server = ScriptedServer::start(|request| Some(answer(request))).await;
    let config = echo::client_settings("2025-11-25");
    // However slow the machine is.
    let http = HyperOptions::default().idle_timeout(Duration::from_secs(3600));
    let endpoint = server.endpoint().client(Arc::new(http.build()));
    let endpoint = endpoint.opens_stream(false);
    let (client, driver) = endpoint.connect(config, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    for round in 0..20 {
        let text = round.to_string();
        assert_eq!(call(&client, "echo", &text).await, Ok(text));
    }
    client.close();
    driver.await.expect("driver");
    let arrived = server.received_requests();
    let connections = arrived.iter().map(|request| request.connection).max();
    assert_eq!(connections, Some(0), "one connection is enough");
    assert_eq!(arrived.len(), 2 + 20 + 1, "{arrived:?}");
    for (at, request) in arrived.iter().enumerate() {
        let head = request.head.to_ascii_lowercase();
        assert!(head.contains("authorization: bearer secret"), "{head}");
        assert_eq!(head.contains("mcp-session-id: s-1"), at > 0, "{head}");
    }
    let last = arrived.last().expect("requests");
    assert!(last.head.starts_with("DELETE /mcp "), "{last:?}");
}

/// Credentials are sent only to the origin that the application has specified.
#[tokio::test]
async fn redirects_stay_within_the_origin() {
    let other = ScriptedServer::start(|request| Some(answer(request))).await;
    let elsewhere = format!("Location: http://{}/mcp\r\n", other.address);
    let server = ScriptedServer::start(move |request| {
        Some(empty("307 Temporary Redirect", &elsewhere)).filter(|_| !request.head.is_empty())
    })
    .await;
    let config = echo::client_settings("2025-11-25");
    let connected = server
        .endpoint()
        .connect(config, None, Arc::new(echo::answer));
    let error = connected.0.ready().await.expect_err("it leads elsewhere");
    let words = error.to_string();
    let expected = format!("the server redirects to http://{}/mcp ", other.address);
    assert!(words.starts_with(&expected), "{words}");
    assert_eq!(
        other.received_requests().len(),
        0,
        "nothing went to the other server"
    );

    // As applications that are mounted redirect: Starlette 307, and others 308.
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        let server = ScriptedServer::start(move |request| {
            Some(if request.head.contains(" /mcp ") {
                empty(status, "Location: /mcp/\r\n")
            } else {
                answer(request)
            })
        })
        .await;
        let config = echo::client_settings("2025-11-25");
        let endpoint = server.endpoint().opens_stream(false);
        let (client, _driver) = endpoint.connect(config, None, Arc::new(echo::answer));
        client.ready().await.expect("connected");
        assert_eq!(call(&client, "echo", "a").await, Ok("a".to_owned()));
        for request in server.received_requests() {
            assert!(request.head.contains("secret"), "{request:?}");
        }
    }
}

/// A client waits before it reconnects: "The client MUST respect the `retry` field, waiting the given number of
/// milliseconds before attempting to reconnect" (2025-11-25, `basic/transports`, "Sending Messages to the Server").
#[tokio::test]
async fn client_respects_the_retry_time() {
    let server = ScriptedServer::start(|request| {
        let events =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        if request.body.contains("tools/call") {
            return Some(format!("{events}id: 1-0\nretry: 300\ndata:\n\n"));
        }
        if request.head.starts_with("GET") && request.head.contains("1-0") {
            let result =
                r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"late"}]}}"#;
            return Some(format!("{events}id: 1-1\ndata: {result}\n\n"));
        }
        Some(answer(request))
    })
    .await;
    let config = echo::client_settings("2025-11-25");
    let endpoint = server.endpoint().opens_stream(false);
    let endpoint = endpoint.retry(Duration::from_millis(1));
    let (client, _driver) = endpoint.connect(config, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    assert_eq!(call(&client, "echo", "a").await, Ok("late".to_owned()));
    let arrived = server.received_requests();
    let [.., posted, resumed] = arrived.as_slice() else {
        panic!("{arrived:?}");
    };
    assert!(
        resumed
            .head
            .to_ascii_lowercase()
            .contains("last-event-id: 1-0")
    );
    let pause = resumed.at.duration_since(posted.at);
    assert!(pause >= Duration::from_millis(300), "{pause:?}");
}

/// A call ends with an error if the server answers every resumption with an empty stream (rmcp 3.11), but continues
/// without limit if each stream has a new event id ("The server MAY close the connection", 2025-11-25,
/// `basic/transports`, "Sending Messages to the Server").
#[tokio::test]
async fn lost_calls_end_and_polled_continue() {
    for polls in [true, false] {
        let times = AtomicUsize::new(0);
        let server = ScriptedServer::start(move |request| {
            let events =
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            if request.body.contains("tools/call") {
                return Some(format!("{events}id: 1-0\nretry: 1\ndata:\n\n"));
            }
            if request.head.starts_with("GET") {
                let time = times.fetch_add(1, Ordering::SeqCst) + 1;
                return Some(match time {
                    _ if !polls => events.to_owned(),
                    1..12 => format!("{events}id: 1-{time}\ndata:\n\n"),
                    _ => format!(
                        "{events}id: 1-{time}\ndata: {}\n\n",
                        r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"late"}]}}"#
                    ),
                });
            }
            Some(answer(request))
        })
        .await;
        let config = echo::client_settings("2025-11-25");
        let endpoint = server.endpoint().opens_stream(false);
        let (client, _driver) = endpoint.connect(config, None, Arc::new(echo::answer));
        client.ready().await.expect("connected");
        let params = echo::call_params("echo", "a");
        let request = client.request("tools/call", params, CallOptions::default(), None);
        let outcome = request.expect("sent").await;
        let arrived = server.received_requests();
        let resumed = arrived
            .iter()
            .filter(|request| request.head.starts_with("GET"));
        if polls {
            assert!(matches!(outcome, Outcome::Result(_)), "{outcome:?}");
            assert_eq!(resumed.count(), 12);
        } else {
            assert_eq!(outcome, Outcome::Lost);
            assert_eq!(resumed.count(), 3);
        }
    }
}

/// Returns the id of a request as JSON text.
fn id_of(request: &ReceivedRequest) -> String {
    let body: serde_json::Value = request.body.parse().unwrap_or_default();
    body["id"].to_string()
}

/// If the server closes a connection that the client has just used again, the client repeats a list request on another
/// connection, but never a call (RFC 9110, section 9.2.2: "A client SHOULD NOT automatically retry a request with a
/// non-idempotent method unless it has some means to know that the request semantics are actually idempotent"). The server may have
/// received the first request, so that the second one has another id: "The request ID MUST NOT have been previously used by the
/// requestor within the same session" (2025-11-25, `basic`, "Requests").
#[tokio::test]
async fn closed_connections_repeat_only_lists() {
    for (method, requests) in [("tools/list", 2), ("tools/call", 1)] {
        let times = AtomicUsize::new(0);
        let server = ScriptedServer::start(move |request| {
            let is_closed =
                request.body.contains(method) && times.fetch_add(1, Ordering::SeqCst) == 0;
            (!is_closed).then(|| {
                if request.body.contains("tools/list") {
                    let id = id_of(request);
                    let tools = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[]}}}}"#);
                    json("", &tools)
                } else {
                    answer(request)
                }
            })
        })
        .await;
        let config = echo::client_settings("2025-11-25");
        let endpoint = server.endpoint().opens_stream(false);
        let (client, _driver) = endpoint.connect(config, None, Arc::new(echo::answer));
        client.ready().await.expect("connected");
        let params = (method == "tools/call").then(|| echo::call_params("echo", "a"));
        let request = client.request(method, params.flatten(), CallOptions::default(), None);
        let outcome = request.expect("sent").await;
        let arrived = server.received_requests();
        let arrived = arrived
            .iter()
            .filter(|request| request.body.contains(method));
        let ids: Vec<String> = arrived.map(id_of).collect();
        assert_eq!(ids.len(), requests, "{method}");
        assert_ne!(ids.first(), ids.get(1), "{method}");
        let is_lost = outcome == Outcome::Lost;
        assert_eq!(is_lost, method == "tools/call", "{method}: {outcome:?}");
    }
}

/// HTTP client whose connection ends once: before the response to the first request that contains a text.
struct CutOnce {
    /// HTTP client for the other requests.
    inner: HyperClient,
    /// Text of the request: the HTTP method, a space and the message.
    text: &'static str,
    /// Number of requests with the text so far.
    count: Arc<AtomicUsize>,
}

impl HttpClient for CutOnce {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        let body = String::from_utf8_lossy(request.body());
        if format!("{} {body}", request.method()).contains(self.text)
            && self.count.fetch_add(1, Ordering::SeqCst) == 0
        {
            let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
            return Box::pin(async { Err(error.into()) });
        }
        self.inner.send(request)
    }
}

/// "A server [...] that [...] closes the connection" may do so at any time (RFC 9112, section 9.3.1): what may be sent again is sent
/// again, once, over both transports, and a call is not.
#[tokio::test]
async fn cuts_repeat_all_but_calls() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    for (transport, revision, path) in [
        (HttpTransport::Streamable, "2025-11-25", "/"),
        (HttpTransport::Sse, "2024-11-05", "/sse"),
    ] {
        for (text, expected) in [
            ("\"initialize\"", 2),
            ("notifications/initialized", 2),
            ("notifications/roots/list_changed", 2),
            ("\"roots\":[]", 2),
            ("\"ping\"", 2),
            ("tools/list", 2),
            ("GET ", 2),
            (
                "DELETE ",
                if transport == HttpTransport::Sse {
                    0
                } else {
                    2
                },
            ),
            ("tools/call", 1),
        ] {
            let name = format!("{revision} {text}");
            let count = Arc::new(AtomicUsize::new(0));
            let http = CutOnce {
                inner: HyperClient::default(),
                text,
                count: Arc::clone(&count),
            };
            let endpoint = HttpEndpoint::new(&server.url(path)).expect("a URL");
            let endpoint = endpoint.client(Arc::new(http)).transport(transport);
            let settings = echo::client_settings(revision);
            let (client, driver) = endpoint.connect(settings, None, Arc::new(echo::answer));
            // The server has its session already, and an id is not used twice.
            if (transport, text) == (HttpTransport::Sse, "\"initialize\"") {
                client.ready().await.expect_err(&name);
                assert_eq!(count.load(Ordering::SeqCst), 1, "{name}");
                continue;
            }
            client.ready().await.expect(&name);
            for method in ["ping", "tools/list"] {
                let sent = client.request(method, None, CallOptions::default(), None);
                let outcome = sent.expect("sent").await;
                assert!(matches!(outcome, Outcome::Result(_)), "{name}: {outcome:?}");
            }
            client
                .notify("notifications/roots/list_changed", None)
                .expect("sent");
            let called = call(&client, "ask", "").await;
            if text == "tools/call" {
                assert_eq!(called, Err(Outcome::Lost), "{name}");
                let error = client.last_error().expect("an error");
                let expected = "was closed before a response: connection reset";
                assert!(error.contains(expected), "{name}: {error}");
            } else {
                assert_eq!(called, Ok("{\"roots\":[]}".to_owned()), "{name}");
            }
            client.close();
            driver.await.expect("driver");
            assert_eq!(count.load(Ordering::SeqCst), expected, "{name}");
        }
    }
}

/// Node.js, uvicorn and Apache close connections that are idle for 5 s: the client uses none of them at that time.
#[tokio::test]
async fn idle_connections_are_left_in_time() {
    let server = ScriptedServer::start(|request| Some(answer(request))).await;
    let config = echo::client_settings("2025-11-25");
    let endpoint = server.endpoint().opens_stream(false);
    let (client, _driver) = endpoint.connect(config, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    assert_eq!(call(&client, "echo", "a").await, Ok("a".to_owned()));
    tokio::time::pause();
    tokio::time::advance(Duration::from_millis(4900)).await;
    tokio::time::resume();
    assert_eq!(call(&client, "echo", "b").await, Ok("b".to_owned()));
    let arrived = server.received_requests();
    let [.., before, after] = &arrived[..] else {
        panic!("{arrived:?}");
    };
    assert_ne!(before.connection, after.connection);
}

/// "After the JSON-RPC response has been sent, the server SHOULD close the SSE stream" (2025-11-25, `basic/transports`,
/// "Sending Messages to the Server"): the client closes a stream that the server leaves open after the response.
#[tokio::test]
async fn answered_streams_are_left() {
    let server = ScriptedServer::start(|request| {
        if request.body.contains("tools/call") {
            let result =
                r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"open"}]}}"#;
            return Some(format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\ndata: {result}\n\n"
            ));
        }
        Some(answer(request))
    })
    .await;
    let config = echo::client_settings("2025-11-25");
    let endpoint = server.endpoint().opens_stream(false);
    let (client, _driver) = endpoint.connect(config, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    assert_eq!(call(&client, "echo", "a").await, Ok("open".to_owned()));
    wait_until("the connection is closed", || {
        server.closed.load(Ordering::SeqCst) > 0
    })
    .await;
}

/// "If the server accepts the input, the server MUST return HTTP status code 202 Accepted with no body" (2025-11-25,
/// `basic/transports`, "Sending Messages to the Server"): a body that a server returns for a notification or a response all the
/// same is no message, and the client posts no error about it, which would be answered in the same way.
#[tokio::test]
async fn bodies_for_notifications_are_no_messages() {
    for body in ["null", "", "{}", r#"{"id":7}"#] {
        let server = ScriptedServer::start(move |request| {
            let response = answer(request);
            Some(if response.contains("result") {
                response
            } else {
                json("", body)
            })
        })
        .await;
        let config = echo::client_settings("2025-11-25");
        let endpoint = server.endpoint().opens_stream(false);
        let (client, driver) = endpoint.connect(config, None, Arc::new(echo::answer));
        client.ready().await.expect("connected");
        for _ in 0..3 {
            assert_eq!(call(&client, "echo", "a").await, Ok("a".to_owned()));
        }
        client.close();
        driver.await.expect("driver");
        let arrived = server.received_requests();
        assert_eq!(arrived.len(), 2 + 3 + 1, "{body}: {arrived:?}");
    }
}

/// If a server ends its stream at once and sends `retry: 0`, the client still waits before it opens the stream again.
#[tokio::test]
async fn streams_reopen_after_a_pause() {
    let server = ScriptedServer::start(|request| {
        if request.head.starts_with("GET") {
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close";
            return Some(format!("{head}\r\n\r\nretry: 0\n\n"));
        }
        Some(answer(request))
    })
    .await;
    let config = echo::client_settings("2025-11-25");
    let endpoint = server.endpoint().retry(Duration::from_millis(1));
    let (client, _driver) = endpoint.connect(config, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    let opened = || {
        let arrived = server.received_requests().into_iter();
        let opened = arrived.filter(|request| request.head.starts_with("GET"));
        opened.map(|request| request.at).collect::<Vec<_>>()
    };
    wait_until("the stream was opened three times", || opened().len() >= 3).await;
    for pair in opened().windows(2) {
        let pause = pair[1].duration_since(pair[0]);
        assert!(pause >= Duration::from_millis(100), "{pause:?}");
    }
}

/// Returns the response of a server that supports only 2026-07-28.
fn answer_modern(request: &ReceivedRequest) -> String {
    let body: serde_json::Value = request.body.parse().unwrap_or_default();
    let (id, head) = (&body["id"], request.head.to_ascii_lowercase());
    let version = head
        .lines()
        .find_map(|line| line.strip_prefix("mcp-protocol-version: "));
    let error = match version {
        None if body["method"] != "initialize" => r#"{"code":-32020,"message":"no header"}"#,
        Some("2026-07-28") => {
            let result = r#""resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"tools":[],"content":[{"type":"text","text":"new"}]"#;
            return json(
                "",
                &format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{{result}}}}}"#),
            );
        }
        _ => {
            r#"{"code":-32022,"message":"unsupported","data":{"supported":["2026-07-28"],"requested":"x"}}"#
        }
    };
    json(
        "",
        &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#),
    )
    .replacen("200 OK", "400 Bad Request", 1)
}

/// Protocol-level sessions are "[not] part of this revision" (2026-07-28, `basic/transports/streamable-http`, "Earlier
/// Streamable HTTP Revisions"): a client of 2026-07-28 ignores a session id that a server, or a proxy before it, assigns, and
/// status 404 with error -32601 means an unknown method and not the end of a session.
#[tokio::test]
async fn session_ids_need_a_handshake() {
    let server = ScriptedServer::start(|request| {
        if request.body.contains("x/unknown") {
            let error =
                r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}"#;
            return Some(json("", error).replacen("200 OK", "404 Not Found", 1));
        }
        let response = answer_modern(request);
        Some(response.replacen("\r\n", "\r\nMcp-Session-Id: s-1\r\n", 1))
    })
    .await;
    let mut config = ClientConfig::new(Identity::new("tester", "1"));
    config.offer = Offer::new(["2026-07-28"]).expect("compiled in");
    config.extensions.requests = vec!["x/unknown".to_owned()];
    let config = config.build().expect("a configuration");
    let (client, _driver) = server
        .endpoint()
        .connect(config, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    let request = client.request("x/unknown", None, CallOptions::default(), None);
    let outcome = request.expect("sent").await;
    let code = match &outcome {
        Outcome::Error(error) => error.code(),
        _ => None,
    };
    assert_eq!(code, Some(-32601), "{outcome:?}");
    assert_eq!(call(&client, "echo", "a").await, Ok("new".to_owned()));
    let arrived = server.received_requests();
    assert_eq!(arrived.len(), 3, "{arrived:?}");
    for request in arrived {
        let head = request.head.to_ascii_lowercase();
        assert!(!head.contains("mcp-session-id"), "{head}");
    }
}

/// "The client SHOULD select a mutually supported version from the `supported` list and retry the request" (2026-07-28,
/// `basic/versioning`, "Protocol Version Negotiation"): if the server of a session is replaced by a server without
/// sessions, the client repeats every refused request in the new revision.
#[tokio::test]
async fn sessions_follow_a_replaced_server() {
    for revision in ["2025-11-25", "2025-03-26"] {
        for method in ["tools/list", "tools/call"] {
            let is_replaced = Arc::new(AtomicBool::new(false));
            let replaced = Arc::clone(&is_replaced);
            let server = ScriptedServer::start(move |request| {
                Some(if replaced.load(Ordering::SeqCst) {
                    answer_modern(request)
                } else if request.body.contains("server/discover") {
                    empty("400 Bad Request", "")
                } else {
                    answer(request).replace("2025-11-25", revision)
                })
            })
            .await;
            let mut config = ClientConfig::new(Identity::new("tester", "1"));
            config.offer = Offer::new([revision, "2026-07-28"]).expect("compiled in");
            let config = config.build().expect("a configuration");
            let endpoint = server.endpoint().retry(Duration::from_millis(1));
            let (client, _driver) = endpoint.connect(config, None, Arc::new(echo::answer));
            let agreed = client.ready().await.expect("connected");
            assert_eq!(agreed.0.revision.as_str(), revision);
            is_replaced.store(true, Ordering::SeqCst);
            let params = (method == "tools/call")
                .then(|| echo::call_params("echo", "old"))
                .flatten();
            let sent = client.request(method, params, CallOptions::default(), None);
            let outcome = sent.expect("sent").await;
            let is_result = matches!(outcome, Outcome::Result(_));
            assert!(is_result, "{revision} {method}: {outcome:?}");
            let agreed = client.ready().await.expect("connected");
            assert_eq!(agreed.0.revision.as_str(), "2026-07-28");
            assert_eq!(call(&client, "echo", "").await, Ok("new".to_owned()));
        }
    }
}

/// A version error that a server forwards from another server does not end the session. Such an error lists the
/// session's revision, or has no list of revisions.
#[tokio::test]
async fn forwarded_version_errors_end_no_session() {
    for data in [r#","data":{"supported":["2025-11-25"]}"#, ""] {
        let server = ScriptedServer::start(move |request| {
            let body: serde_json::Value = request.body.parse().unwrap_or_default();
            Some(if body["params"]["arguments"]["text"] == "forwarded" {
                let error = format!(r#"{{"code":-32022,"message":"m"{data}}}"#);
                let id = &body["id"];
                json(
                    "",
                    &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#),
                )
            } else {
                answer(request)
            })
        })
        .await;
        let config = echo::client_settings("2025-11-25");
        let (client, _driver) = server
            .endpoint()
            .connect(config, None, Arc::new(echo::answer));
        client.ready().await.expect("connected");
        let refused = call(&client, "echo", "forwarded").await;
        assert!(matches!(refused, Err(Outcome::Error(_))), "{refused:?}");
        assert_eq!(call(&client, "echo", "a").await, Ok("a".to_owned()));
        let begun = server.received_requests().into_iter();
        let begun = begun.filter(|request| request.body.contains(r#""initialize""#));
        assert_eq!(begun.count(), 1);
    }
}

/// Lets a client call a tool of a server that answers the GET of the standalone stream when `hold` returns.
///
/// Returns true if the GET was answered when the call arrived, and the time from the beginning to the call.
async fn is_opened_before_first_call(hold: impl Fn() + Send + Sync + 'static) -> (bool, Duration) {
    let begun = Instant::now();
    let is_opened = AtomicBool::new(false);
    let (told, mut arrived) = tokio::sync::mpsc::unbounded_channel();
    let server = ScriptedServer::start(move |request| {
        if request.head.starts_with("GET") {
            tokio::task::block_in_place(&hold);
            is_opened.store(true, Ordering::SeqCst);
        } else if request.body.contains("tools/call") {
            let is_opened = is_opened.load(Ordering::SeqCst);
            told.send((is_opened, begun.elapsed()))
                .expect("the test waits");
        }
        Some(answer(request))
    })
    .await;
    let config = echo::client_settings("2025-11-25");
    let endpoint = server.endpoint();
    let (client, _driver) = endpoint.connect(config, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    assert_eq!(call(&client, "echo", "a").await, Ok("a".to_owned()));
    arrived.recv().await.expect("a call")
}

/// The first call waits, for a limited time, until the server has answered the GET of the standalone stream, because
/// some servers drop their own requests before this stream is open ("The server MAY send JSON-RPC requests and
/// notifications on the stream", 2025-11-25, `basic/transports`, "Listening for Messages from the Server").
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn first_call_waits_for_standalone_stream() {
    for attempt in 1.. {
        let pause = || std::thread::sleep(Duration::from_millis(200));
        let (is_opened, time) = is_opened_before_first_call(pause).await;
        if is_opened {
            break;
        }
        // On a busy machine, the pause may be longer than the limit.
        assert!(
            time >= Duration::from_secs(1) && attempt < 20,
            "{time:?}, {attempt} times"
        );
    }
    let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
    let may_go_on = Mutex::new(may_go_on);
    let hold = move || {
        let _ = may_go_on.lock().expect("not poisoned").recv();
    };
    let (is_opened, time) = is_opened_before_first_call(hold).await;
    assert!(!is_opened, "the server answers the GET after the call");
    // A second, on any machine.
    assert!(time < Duration::from_secs(30), "{time:?}");
    drop(go_on);
}

/// Errors about a server that cannot be reached contain neither the user name and password nor the query of its URL.
#[tokio::test]
async fn errors_name_no_credentials() {
    // A port that nobody else takes, and at which nobody listens.
    let closed = TcpSocket::new_v4().expect("a socket");
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    closed.bind(any_port).expect("bound");
    let address = closed.local_addr().expect("an address");
    let url = format!("http://user:password@{address}/mcp?key=secret");
    for transport in [HttpTransport::Streamable, HttpTransport::Sse] {
        let endpoint = HttpEndpoint::new(&url).expect("a URL").transport(transport);
        let config = echo::client_settings("2025-03-26");
        let (client, _driver) = endpoint.connect(config, None, Arc::new(echo::answer));
        let words = client
            .ready()
            .await
            .expect_err("nobody listens")
            .to_string();
        assert!(words.contains(&format!("http://{address}/mcp")), "{words}");
        assert!(
            !words.contains("password") && !words.contains("secret"),
            "{words}"
        );
    }
}

/// Waits until a condition holds; panics after a minute.
async fn wait_until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("still not: {what}");
}

/// A notification that was queued before the client is closed is still posted, over Streamable HTTP and over HTTP+SSE.
#[tokio::test]
async fn notification_before_the_close_leaves() {
    for (transport, revision) in [
        (HttpTransport::Streamable, "2025-11-25"),
        (HttpTransport::Sse, "2024-11-05"),
    ] {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let handler = move |server: &ServerHandle, event: ServerEvent<RequestContext>| {
            if matches!(event, ServerEvent::Notification(_)) {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            echo::handle(server, event);
        };
        let options = HttpServerOptions::default();
        let server = TestServer::start_handler(Arc::new(handler), options).await;
        let path = match transport {
            HttpTransport::Sse => "/sse",
            _ => "/",
        };
        let endpoint = HttpEndpoint::new(&server.url(path)).expect("a URL");
        let settings = echo::client_settings(revision);
        let handler = Arc::new(echo::answer);
        let (client, driver) = endpoint
            .transport(transport)
            .connect(settings, None, handler);
        client.ready().await.expect("connected");
        for _ in 0..3 {
            let sent = client.notify("notifications/roots/list_changed", None);
            assert_eq!(sent, Ok(SendOutcome::Queued), "{revision}");
        }
        client.close();
        driver.await.expect("driver");
        assert_eq!(count.load(Ordering::SeqCst), 3, "{revision}");
    }
}
