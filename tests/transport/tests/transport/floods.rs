//! Servers that send a client more requests over HTTP than they accept answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact_session::{ClientConfig, Identity, Offer};
use mcp_exact_tests_transport::echo;
use mcp_exact_transport::ClientHandle;
use mcp_exact_transport::http::client::{HttpEndpoint, HttpTransport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Number of pings that the server sends.
const PINGS: usize = 200;
/// Maximum number of streams of the client.
const STREAMS: usize = 8;
/// Result of `initialize`.
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;

/// Server that floods its client with pings, and accepts their answers only when it is told to.
struct FloodingServer {
    /// True if the event stream carries every message of the server (HTTP+SSE).
    uses_http_sse: bool,
    /// Number of answers that were received.
    answers: AtomicUsize,
    /// True once `initialize` was received.
    has_begun: watch::Sender<bool>,
    /// True once answers are accepted.
    accepts_answers: watch::Sender<bool>,
}

impl FloodingServer {
    /// Starts the server; returns it with its URL.
    async fn start(uses_http_sse: bool) -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let server = Arc::new(Self {
            uses_http_sse,
            answers: AtomicUsize::new(0),
            has_begun: watch::Sender::new(false),
            accepts_answers: watch::Sender::new(false),
        });
        let accepting = Arc::clone(&server);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&accepting).serve(stream));
            }
        });
        (server, url)
    }

    /// Answers the requests of a connection.
    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        while let Some(request) = read_request(&mut stream).await {
            if request.starts_with("GET") {
                self.send_pings(&mut stream).await;
            } else if request.contains("\"initialize\"") {
                self.has_begun.send_replace(true);
                let (status, body) = if self.uses_http_sse {
                    ("202 Accepted", "")
                } else {
                    ("200 OK", INITIALIZED)
                };
                respond(&mut stream, status, body).await;
            } else {
                if request.contains("\"result\"") {
                    self.answers.fetch_add(1, Ordering::SeqCst);
                    let mut accepted = self.accepts_answers.subscribe();
                    accepted.wait_for(|is_true| *is_true).await.expect("told");
                }
                respond(&mut stream, "202 Accepted", "").await;
            }
        }
    }

    /// Sends an event stream with the pings, which stays open.
    async fn send_pings(&self, stream: &mut TcpStream) {
        let mut events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n".to_owned();
        if self.uses_http_sse {
            events.push_str("event: endpoint\ndata: /messages\n\n");
        }
        stream.write_all(events.as_bytes()).await.expect("written");
        let mut begun = self.has_begun.subscribe();
        begun.wait_for(|is_true| *is_true).await.expect("told");
        let mut events = String::new();
        if self.uses_http_sse {
            events.push_str(&format!("data: {INITIALIZED}\n\n"));
        }
        for id in 0..PINGS {
            let ping = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            events.push_str(&format!("data: {ping}\n\n"));
        }
        stream.write_all(events.as_bytes()).await.expect("written");
    }

    /// Waits until at least this number of answers has arrived.
    async fn wait_for_answers(&self, count: usize) {
        let arrived = async {
            while self.answers.load(Ordering::SeqCst) < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(60), arrived).await;
        waited.expect("the answers arrive");
    }
}

/// Reads a request with its body; `None` at the end of the connection.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                value.parse().ok().filter(|_| is_length)
            });
            if body.len() >= length.unwrap_or(0) {
                return Some(text.into_owned());
            }
        }
        match stream.read(&mut buffer).await {
            Ok(count @ 1..) => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

/// Sends a response with this status and a JSON body.
async fn respond(stream: &mut TcpStream, status: &str, body: &str) {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\n");
    let response = format!("{head}Content-Length: {length}\r\n\r\n{body}");
    // The client may have closed the connection.
    let _ = stream.write_all(response.as_bytes()).await;
}

/// Connects a client of this server whose requests time out after `timeout`.
fn connect(
    server: &FloodingServer,
    url: &str,
    timeout: Duration,
) -> (ClientHandle, JoinHandle<()>) {
    let mut config = ClientConfig::new(Identity::new("tester", "1"));
    config.offer = Offer::new(["2024-11-05"]).expect("compiled in");
    config.limits.streams = STREAMS;
    config.request_timeout.idle = timeout;
    let config = config.build().expect("a configuration");
    let transport = if server.uses_http_sse {
        HttpTransport::Sse
    } else {
        HttpTransport::Streamable
    };
    let endpoint = HttpEndpoint::new(url).expect("a URL").transport(transport);
    endpoint.connect(config, None, Arc::new(echo::answer))
}

/// "The memory that a peer can cause an endpoint to use stays below" the limits (`Limits`), and "the receiver MUST respond
/// promptly with an empty response" (2025-11-25, `basic/utilities/ping`): a client whose server does not accept the POSTs of
/// its answers reads no further requests, and continues as soon as they are accepted.
#[tokio::test]
async fn unaccepted_answers_stop_the_reading() {
    for uses_http_sse in [false, true] {
        let (server, url) = FloodingServer::start(uses_http_sse).await;
        let (client, driver) = connect(&server, &url, Duration::from_secs(60));
        client.ready().await.expect("connected");
        server.wait_for_answers(STREAMS / 2).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let count = server.answers.load(Ordering::SeqCst);
        assert!(count <= STREAMS + 2, "{uses_http_sse}: {count} open POSTs");
        server.accepts_answers.send_replace(true);
        server.wait_for_answers(PINGS).await;
        client.close();
        driver.await.expect("driver");
    }
}

/// Every wait of a transport has a limit: a client gives up a message that its server does not accept within the timeout of
/// requests, and then reads on.
#[tokio::test]
async fn unaccepted_answers_are_given_up() {
    for uses_http_sse in [false, true] {
        let (server, url) = FloodingServer::start(uses_http_sse).await;
        let (client, driver) = connect(&server, &url, Duration::from_millis(300));
        client.ready().await.expect("connected");
        // More than the client has streams; an answer that is given up may not have reached the server.
        server.wait_for_answers(3 * STREAMS).await;
        client.close();
        driver.await.expect("driver");
    }
}
