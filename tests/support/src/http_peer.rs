//! HTTP server whose responses a function of the test writes, for clients that meet untidy servers.
//!
//! Each connection has a thread and carries one request. The server is not an implementation of the protocol:
//! [`legacy_reply`] is what a small server of 2025-11-25 or before responds, which tests replace in part.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

/// Request that the server has received.
#[derive(Debug, Clone)]
pub struct PeerRequest {
    /// HTTP method.
    pub http_method: String,
    /// Path of the URL.
    pub path: String,
    /// Headers: each name in lower case, with its value.
    pub headers: Vec<(String, String)>,
    /// Body as JSON; null if the body is no JSON.
    pub body: Value,
}

impl PeerRequest {
    /// Returns the value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the method of the message or, for a request without a message, the HTTP method.
    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.http_method)
    }

    /// Returns the id of the message.
    pub fn id(&self) -> &Value {
        &self.body["id"]
    }
}

/// Reaction of the server to a request.
#[derive(Debug, Clone)]
pub enum PeerReply {
    /// A response.
    Response {
        /// HTTP status.
        status: u16,
        /// Names and values of headers.
        headers: Vec<(&'static str, String)>,
        /// Body.
        body: Vec<u8>,
    },
    /// The server closes the connection without a response.
    Cut,
    /// The server does not respond.
    Silence,
}

impl PeerReply {
    /// Creates a response with a media type, which is left out if it is empty, and a body.
    pub fn new(status: u16, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let media_type = (!media_type.is_empty()).then(|| ("Content-Type", media_type.to_owned()));
        Self::Response {
            status,
            headers: Vec::from_iter(media_type),
            body: body.into(),
        }
    }

    /// Creates a response with a JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// Creates the response to a request with a result.
    pub fn result(request: &PeerRequest, result: Value) -> Self {
        let body = json!({ "jsonrpc": "2.0", "id": request.id(), "result": result });
        Self::json(200, &body)
    }

    /// Creates the response to a request with an error.
    pub fn error(status: u16, id: &Value, code: i64, message: &str) -> Self {
        let error = json!({ "code": code, "message": message });
        Self::json(
            status,
            &json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        )
    }

    /// Adds a header to a response.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Response { headers, .. } = &mut self {
            headers.push((name, value.to_owned()));
        }
        self
    }
}

/// Returns what a small server of a revision with a handshake responds: it has the tool `echo`, no sessions, no event
/// stream, and does not know `server/discover`.
pub fn legacy_reply(request: &PeerRequest, revision: &str) -> PeerReply {
    match request.method() {
        "initialize" => PeerReply::result(
            request,
            json!({ "protocolVersion": revision, "capabilities": { "tools": {} },
                "serverInfo": { "name": "peer", "version": "1" } }),
        ),
        "tools/list" => {
            let schema = json!({ "type": "object", "properties": {} });
            PeerReply::result(
                request,
                json!({ "tools": [{ "name": "echo", "inputSchema": schema }] }),
            )
        }
        "tools/call" => PeerReply::result(
            request,
            json!({ "content": [{ "type": "text", "text": "echoed" }] }),
        ),
        "ping" => PeerReply::result(request, json!({})),
        "GET" => PeerReply::new(405, "", ""),
        "DELETE" => PeerReply::new(200, "", ""),
        method if method.starts_with("notifications/") => PeerReply::new(202, "", ""),
        method => PeerReply::error(
            200,
            request.id(),
            -32601,
            &format!("Method not found: {method}"),
        ),
    }
}

/// Running server; the threads end when it is dropped.
pub struct HttpPeer {
    /// URL of the server, with the path `/mcp`.
    pub url: String,
    /// Requests so far.
    requests: Arc<Mutex<Vec<PeerRequest>>>,
    /// True once the server is dropped.
    is_over: Arc<AtomicBool>,
}

impl HttpPeer {
    /// Starts a server at a free port; `react` returns the reaction to each request.
    ///
    /// # Panics
    /// If no port is free.
    pub fn start(react: impl Fn(&PeerRequest) -> PeerReply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (requests, is_over) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let peer = Self {
            url: format!("http://{address}/mcp"),
            requests: Arc::clone(&requests),
            is_over: Arc::clone(&is_over),
        };
        let react = Arc::new(react);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::Acquire) {
                    return;
                }
                let (react, requests) = (Arc::clone(&react), Arc::clone(&requests));
                std::thread::spawn(move || {
                    if let Ok(stream) = stream {
                        let _ = serve(stream, &*react, &requests);
                    }
                });
            }
        });
        peer
    }

    /// Returns the methods of the requests so far.
    pub fn methods(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests
            .iter()
            .map(|request| request.method().to_owned())
            .collect()
    }

    /// Returns the number of requests with a method so far.
    pub fn count(&self, method: &str) -> usize {
        self.methods().iter().filter(|of| *of == method).count()
    }
}

impl Drop for HttpPeer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        // Wakes the thread that accepts connections.
        let address = self
            .url
            .trim_start_matches("http://")
            .trim_end_matches("/mcp");
        let _ = TcpStream::connect(address);
    }
}

/// Reads the request of a connection, and writes the response.
fn serve(
    stream: TcpStream,
    react: &dyn Fn(&PeerRequest) -> PeerReply,
    requests: &Mutex<Vec<PeerRequest>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let http_method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let request = PeerRequest {
        http_method,
        path,
        headers,
        body,
    };
    requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(request.clone());
    let mut stream = stream;
    match react(&request) {
        PeerReply::Cut => Ok(()),
        PeerReply::Silence => reader.read_to_end(&mut Vec::new()).map(drop),
        PeerReply::Response {
            status,
            headers,
            body,
        } => {
            let mut head = format!(
                "HTTP/1.1 {status} Status\r\nConnection: close\r\nContent-Length: {}\r\n",
                body.len()
            );
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            head.push_str("\r\n");
            stream.write_all(head.as_bytes())?;
            stream.write_all(&body)?;
            stream.flush()
        }
    }
}
