//! Requests in flight whose session the server does not know any more (up to 2025-11-25: `basic/transports`, "Session
//! Management"). The server answers when the test says so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact_session::{CallOptions, Outcome, RequestTimeout, SendError};
use mcp_exact_tests_transport::echo;
use mcp_exact_transport::ClientHandle;
use mcp_exact_transport::http::client::HttpEndpoint;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Maximum time for something that has to happen.
const LIMIT: Duration = Duration::from_secs(60);

/// Request that the server has received and has not answered.
struct Received {
    /// Request line and headers, in lower case.
    head: String,
    /// Message of a POST.
    message: Value,
    /// Sender of the response; the connection is closed if it is dropped.
    respond: oneshot::Sender<String>,
}

impl Received {
    /// Answers a call with a text.
    fn answer(self, text: &str) {
        let result = json!({ "content": [{ "type": "text", "text": text }] });
        self.respond_with(result);
    }

    /// Answers a request with a result.
    fn respond_with(self, result: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": self.message["id"], "result": result });
        self.respond_raw(&response(
            "200 OK",
            "application/json",
            &message.to_string(),
        ));
    }

    /// Refuses the session.
    fn refuse(self) {
        self.respond_raw(&response(
            "404 Not Found",
            "text/plain",
            "Session not found",
        ));
    }

    fn respond_raw(self, response: &str) {
        self.respond.send(response.to_owned()).expect("a client");
    }

    /// Returns the text that the call has as its argument.
    fn argument(&self) -> &str {
        self.message["params"]["arguments"]["text"]
            .as_str()
            .unwrap_or_default()
    }

    fn is_of_session(&self, id: &str) -> bool {
        self.head.contains(&format!("mcp-session-id: {id}\r\n"))
    }
}

/// Returns an HTTP response.
fn response(status: &str, media_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Server that hands calls, lists, cancellations and GETs to the test.
struct Server {
    url: String,
    requests: mpsc::UnboundedReceiver<Received>,
    /// Number of sessions that were begun.
    sessions: Arc<Mutex<usize>>,
    /// True if no other session begins.
    refuses: Arc<AtomicBool>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let (sender, requests) = mpsc::unbounded_channel();
        let sessions = Arc::new(Mutex::new(0));
        let begun = Arc::clone(&sessions);
        let refuses = Arc::new(AtomicBool::new(false));
        let is_last = Arc::clone(&refuses);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let begin = (Arc::clone(&begun), Arc::clone(&is_last));
                tokio::spawn(serve(stream, sender.clone(), begin));
            }
        });
        Self {
            url,
            requests,
            sessions,
            refuses,
        }
    }

    /// Connects a client of 2025-11-25.
    async fn client(&self, opens_stream: bool) -> ClientHandle {
        self.client_and_driver(opens_stream).await.0
    }

    async fn client_and_driver(&self, opens_stream: bool) -> (ClientHandle, JoinHandle<()>) {
        let endpoint = HttpEndpoint::new(&self.url).expect("a URL");
        let endpoint = endpoint
            .retry(Duration::from_millis(1))
            .opens_stream(opens_stream);
        let settings = echo::client_settings("2025-11-25");
        let (client, driver) = endpoint.connect(settings, None, Arc::new(echo::answer));
        client.ready().await.expect("connected");
        (client, driver)
    }

    /// Returns the next request that the test answers.
    async fn next(&mut self) -> Received {
        let next = timeout(LIMIT, self.requests.recv()).await;
        next.expect("in time").expect("a request")
    }

    fn sessions(&self) -> usize {
        *self.sessions.lock().expect("not poisoned")
    }
}

/// Serves a connection: begins sessions, and accepts notifications.
async fn serve(
    mut stream: TcpStream,
    requests: mpsc::UnboundedSender<Received>,
    (sessions, refuses): (Arc<Mutex<usize>>, Arc<AtomicBool>),
) {
    let mut bytes = Vec::new();
    while let Some((head, body)) = read_request(&mut stream, &mut bytes).await {
        let message: Value = body.parse().unwrap_or_default();
        let response = match message["method"].as_str() {
            Some("initialize") if refuses.load(Ordering::SeqCst) => return,
            Some("initialize") => {
                let number = {
                    let mut sessions = sessions.lock().expect("not poisoned");
                    *sessions += 1;
                    *sessions
                };
                let result = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": { "tools": {} },
                    "serverInfo": { "name": "s", "version": "1" },
                });
                let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                response("200 OK", "application/json", &body.to_string()).replacen(
                    "\r\n",
                    &format!("\r\nMcp-Session-Id: s-{number}\r\n"),
                    1,
                )
            }
            Some("notifications/initialized") => response("202 Accepted", "text/plain", ""),
            None if head.starts_with("delete") => response("200 OK", "text/plain", ""),
            _ => {
                let (respond, answer) = oneshot::channel();
                let received = Received {
                    head,
                    message,
                    respond,
                };
                if requests.send(received).is_err() {
                    return;
                }
                match answer.await {
                    Ok(answer) => answer,
                    Err(_) => return,
                }
            }
        };
        if stream.write_all(response.as_bytes()).await.is_err() || response.contains("event-stream")
        {
            return;
        }
    }
}

/// Reads a request; returns its head in lower case and its body.
async fn read_request(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, String)> {
    loop {
        let text = String::from_utf8_lossy(bytes).into_owned();
        if let Some((head, rest)) = text.split_once("\r\n\r\n") {
            let lower = format!("{}\r\n", head.to_ascii_lowercase());
            let length = lower
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse().expect("a number"));
            if rest.len() >= length {
                bytes.drain(..head.len() + 4 + length);
                return Some((lower, rest[..length].to_owned()));
            }
        }
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

/// Calls a tool in a task of its own.
fn call(client: &ClientHandle, text: &str) -> JoinHandle<Result<String, Outcome>> {
    let (client, text) = (client.clone(), text.to_owned());
    tokio::spawn(async move { echo::call(&client, "echo", &text).await })
}

async fn outcome<T>(call: JoinHandle<T>) -> T {
    timeout(LIMIT, call)
        .await
        .expect("in time")
        .expect("no panic")
}

/// Text of a call that was answered.
fn text(text: &str) -> Result<String, Outcome> {
    Ok(text.to_owned())
}

/// Status 404 ends the session of one call, which begins anew in the next session. Other calls in flight keep waiting: one is
/// answered, another one gets its own 404 and begins anew. The session is replaced once, and no call runs twice.
#[tokio::test]
async fn calls_in_flight_wait_for_their_own_answers() {
    let mut server = Server::start().await;
    let client = server.client(false).await;
    let answered = call(&client, "answered");
    let held = server.next().await;
    let refused = call(&client, "refused");
    let late = server.next().await;
    let first = call(&client, "first");
    let found = server.next().await;
    assert!(found.is_of_session("s-1"));
    found.refuse();
    let again = server.next().await;
    assert_eq!(
        (again.argument(), again.is_of_session("s-2")),
        ("first", true)
    );
    again.answer("first, anew");
    assert_eq!(outcome(first).await, text("first, anew"));

    held.answer("answered");
    assert_eq!(outcome(answered).await, text("answered"));
    late.refuse();
    let again = server.next().await;
    assert_eq!(
        (again.argument(), again.is_of_session("s-2")),
        ("refused", true)
    );
    again.answer("refused, anew");
    assert_eq!(outcome(refused).await, text("refused, anew"));
    assert_eq!(server.sessions(), 2);
    assert_eq!(client.usage().pending, 0);
    assert!(server.requests.try_recv().is_err());
}

/// An answer or a refusal that comes before the next session begins is that of the call as well.
#[tokio::test]
async fn calls_in_flight_end_between_sessions() {
    let mut server = Server::start().await;
    let endpoint = HttpEndpoint::new(&server.url).expect("a URL");
    let endpoint = endpoint.opens_stream(false).retry(Duration::from_secs(30));
    let settings = echo::client_settings("2025-11-25");
    let (client, _) = endpoint.connect(settings, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    let answered = call(&client, "answered");
    let held = server.next().await;
    let refused = call(&client, "refused");
    let late = server.next().await;
    let options = CallOptions {
        timeout: Some(limit(Duration::from_secs(15))),
        ..CallOptions::default()
    };
    let slow = client.request(
        "tools/call",
        echo::call_params("echo", "slow"),
        options,
        None,
    );
    let _silent = server.next().await;
    let first = call(&client, "first");
    server.next().await.refuse();
    // No session is begun for 30 s.
    held.answer("answered");
    assert_eq!(outcome(answered).await, text("answered"));
    advance(16).await;
    let slow = timeout(LIMIT, slow.expect("sent")).await;
    assert_eq!(slow.expect("in time"), Outcome::TimedOut);
    late.refuse();
    assert_eq!(server.sessions(), 1);
    advance(30).await;
    for _ in 0..2 {
        let again = server.next().await;
        assert!(again.is_of_session("s-2"));
        let argument = again.argument().to_owned();
        again.answer(&argument);
    }
    assert_eq!(outcome(first).await, text("first"));
    assert_eq!(outcome(refused).await, text("refused"));
    assert_eq!(server.sessions(), 2);
}

/// Requests that wait for the next session do so as long as they would wait for their answers: those that were refused with the last
/// session, and those that are sent between the two.
#[tokio::test]
async fn requests_that_wait_for_a_session_time_out() {
    let mut server = Server::start().await;
    let endpoint = HttpEndpoint::new(&server.url).expect("a URL");
    let endpoint = endpoint.opens_stream(false).retry(Duration::from_secs(30));
    let settings = echo::client_settings("2025-11-25");
    let (client, _) = endpoint.connect(settings, None, Arc::new(echo::answer));
    client.ready().await.expect("connected");
    let send = |text: &str| {
        let options = CallOptions {
            timeout: Some(limit(Duration::from_secs(15))),
            ..CallOptions::default()
        };
        let params = echo::call_params("echo", text);
        let sent = client.request("tools/call", params, options, None);
        tokio::spawn(sent.expect("sent"))
    };
    let refused = send("refused");
    let patient = call(&client, "patient");
    let (first, second) = (server.next().await, server.next().await);
    first.refuse();
    second.refuse();
    // No session is begun for 30 s. The session has ended when a call waits instead of being posted.
    while client.usage().pending > 0 {
        tokio::task::yield_now().await;
    }
    let later = send("later");
    tokio::task::yield_now().await;
    advance(16).await;
    assert_eq!(outcome(refused).await, Outcome::TimedOut);
    assert_eq!(outcome(later).await, Outcome::TimedOut);
    advance(30).await;
    let again = server.next().await;
    assert_eq!(
        (again.argument(), again.is_of_session("s-2")),
        ("patient", true)
    );
    again.answer("patient");
    assert_eq!(outcome(patient).await, text("patient"));
    assert!(server.requests.try_recv().is_err());
}

/// Moves the clock on by some seconds, which pass at once.
async fn advance(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}

/// Returns a time limit without progress.
fn limit(limit: Duration) -> RequestTimeout {
    RequestTimeout {
        idle: limit,
        reset_on_progress: false,
        total: limit,
    }
}

/// A call whose connection breaks after its session was replaced may have run, and is not repeated; a list is. A call that
/// times out or is cancelled ends without a word to the server, which does not know its session.
#[tokio::test]
async fn calls_in_flight_end_by_themselves() {
    let mut server = Server::start().await;
    let client = server.client(false).await;
    let cut = call(&client, "cut");
    let cut_call = server.next().await;
    let lister = client.clone();
    let list = tokio::spawn(async move {
        let list = lister.request("tools/list", None, CallOptions::default(), None);
        list.expect("sent").await
    });
    let cut_list = server.next().await;
    let options = CallOptions {
        timeout: Some(limit(Duration::from_secs(25))),
        ..CallOptions::default()
    };
    let slow = client.request(
        "tools/call",
        echo::call_params("echo", "slow"),
        options,
        None,
    );
    let _slow_call = server.next().await;
    let dropped = call(&client, "dropped");
    let _dropped_call = server.next().await;
    let first = call(&client, "first");
    server.next().await.refuse();
    server.next().await.answer("first");
    assert_eq!(outcome(first).await, text("first"));

    drop(cut_call);
    assert_eq!(outcome(cut).await, Err(Outcome::Lost));
    drop(cut_list);
    let again = server.next().await;
    assert_eq!(again.message["method"], "tools/list");
    assert!(again.is_of_session("s-2"));
    again.respond_with(json!({ "tools": [] }));
    assert!(matches!(outcome(list).await, Outcome::Result(_)));
    advance(26).await;
    let slow = timeout(LIMIT, slow.expect("sent")).await;
    assert_eq!(slow.expect("in time"), Outcome::TimedOut);
    dropped.abort();
    let next = call(&client, "next");
    let received = server.next().await;
    assert_eq!(received.argument(), "next");
    received.answer("next");
    assert_eq!(outcome(next).await, text("next"));
    assert_eq!(server.sessions(), 2);
}

/// Begins the event stream of a call, and ends it before the answer.
fn begin_stream(of: Received, id: &str) {
    let events = format!("id: {id}\ndata:\n\n");
    of.respond_raw(&response("200 OK", "text/event-stream", &events));
}

/// A driver that is stopped ends the calls that wait, and later calls fail at once: nobody receives their answers.
#[tokio::test]
async fn calls_end_with_a_stopped_driver() {
    let mut server = Server::start().await;
    let (client, driver) = server.client_and_driver(false).await;
    let waiting = call(&client, "waiting");
    let _held = server.next().await;
    driver.abort();
    assert_eq!(outcome(waiting).await, Err(Outcome::Lost));
    let params = echo::call_params("echo", "late");
    let late = client.request("tools/call", params, CallOptions::default(), None);
    assert_eq!(late.err(), Some(SendError::Closed));
}

/// A stream that is resumed in vain ends its own call, which may have run; others keep waiting.
#[tokio::test]
async fn a_stream_of_a_lost_session_ends_its_own_call() {
    let mut server = Server::start().await;
    let client = server.client(false).await;
    let answered = call(&client, "answered");
    let held = server.next().await;
    let resumed = call(&client, "resumed");
    begin_stream(server.next().await, "e-1");
    let resumption = server.next().await;
    assert!(resumption.head.starts_with("get") && resumption.is_of_session("s-1"));
    resumption.refuse();
    assert_eq!(outcome(resumed).await, Err(Outcome::Lost));
    held.answer("answered");
    assert_eq!(outcome(answered).await, text("answered"));
    let next = call(&client, "next");
    let received = server.next().await;
    assert!(received.is_of_session("s-2"));
    received.answer("next");
    assert_eq!(outcome(next).await, text("next"));
    assert_eq!(server.sessions(), 2);
}

/// A call that the server has refused together with its session has not run, also if no new session follows.
#[tokio::test]
async fn refused_calls_have_not_run() {
    let mut server = Server::start().await;
    let client = server.client(false).await;
    let call = client.request(
        "tools/call",
        echo::call_params("echo", "refused"),
        CallOptions::default(),
        None,
    );
    let mut call = call.expect("sent");
    let refused = server.next().await;
    assert!(!call.is_unsent());
    // No other session begins.
    server.refuses.store(true, Ordering::SeqCst);
    refused.refuse();
    let outcome = timeout(LIMIT, &mut call).await.expect("in time");
    assert_eq!(outcome, Outcome::Lost);
    assert!(call.is_unsent());
}

/// That the standalone stream is refused after it has worked ends the session, and no call.
#[tokio::test]
async fn the_standalone_stream_ends_no_call() {
    let mut server = Server::start().await;
    let client = server.client(true).await;
    let standalone = server.next().await;
    assert!(standalone.head.starts_with("get"));
    let answered = call(&client, "answered");
    let mut held = None;
    begin_stream(standalone, "e-1");
    // The call, and the attempt to open the stream again.
    for _ in 0..2 {
        let received = server.next().await;
        if received.head.starts_with("get") {
            received.refuse();
        } else {
            held = Some(received);
        }
    }
    let next_stream = server.next().await;
    assert!(next_stream.is_of_session("s-2"));
    held.expect("the call").answer("answered");
    assert_eq!(outcome(answered).await, text("answered"));
    assert_eq!(server.sessions(), 2);
}

/// A client that is closed ends the calls of earlier sessions, too.
#[tokio::test]
async fn closed_clients_end_calls_of_earlier_sessions() {
    let mut server = Server::start().await;
    let client = server.client(false).await;
    let waiting = call(&client, "waiting");
    let _held = server.next().await;
    let first = call(&client, "first");
    server.next().await.refuse();
    server.next().await.answer("first");
    assert_eq!(outcome(first).await, text("first"));
    client.close();
    assert_eq!(outcome(waiting).await, Err(Outcome::Closed));
}
