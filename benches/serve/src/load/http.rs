//! Client over HTTP/1.1: sends prepared requests on persistent connections.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{TEXT, check_answer};

/// Name of the header that contains the session id.
pub const SESSION: &str = "mcp-session-id";

/// Response body of the bare hyper server: the same bytes that our server sends for a call.
pub const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"hello, server: say this again"}]}}"#;
/// Time limit for each part of a response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);
/// Id of every call, in styles whose servers do not compare the ids of a session.
const ID: u64 = 7;
/// Id of the first call in the other styles; the following ids have as many digits.
const FIRST_ID: u64 = 10_000_000;

/// Request that starts a session.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}"#;
/// Notification that completes the handshake.
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Revision and session of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Calls within a session of 2025-11-25.
    Session,
    /// Calls of a session of 2025-11-25, each with an id of its own, because the id "MUST NOT have been previously used
    /// by the requestor within the same session" (section Base Protocol).
    NumberedSession,
    /// Calls of 2025-11-25 to a server without sessions.
    NoSession,
    /// Calls of 2026-07-28, which need no session.
    Stateless,
}

/// Connection that sends the same call repeatedly.
pub struct Connection {
    /// TCP connection to the server.
    stream: TcpStream,
    /// HTTP request of the call.
    request: Vec<u8>,
    /// Id of the previous call.
    id: u64,
    /// Position in the request of an id that changes with each call; `None` if all calls have the same id.
    id_position: Option<usize>,
    /// Reused buffer for the bytes of a response.
    buffer: Vec<u8>,
}

/// Range of the body within the buffer of a response.
type Body = std::ops::Range<usize>;

impl Connection {
    /// Opens a connection without a request.
    pub async fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            request: Vec::new(),
            id: ID,
            id_position: None,
            buffer: Vec::with_capacity(4096),
        })
    }

    /// Replaces the TCP connection with a new one, because servers close connections that were idle for some seconds.
    pub async fn reconnect(&mut self) -> anyhow::Result<()> {
        let stream = TcpStream::connect(self.stream.peer_addr()?).await?;
        stream.set_nodelay(true)?;
        self.stream = stream;
        Ok(())
    }

    /// Opens a connection, prepares its call, starts a session if the calls need one, and checks one call.
    pub async fn ready(address: SocketAddr, style: Style) -> anyhow::Result<Self> {
        let mut connection = Self::open(address).await?;
        let (mut headers, mut meta) = (String::new(), String::new());
        match style {
            Style::Session => headers = connection.begin().await?,
            Style::NumberedSession => {
                headers = connection.begin().await?;
                connection.id = FIRST_ID;
            }
            Style::NoSession => headers.push_str("MCP-Protocol-Version: 2025-11-25\r\n"),
            Style::Stateless => {
                headers.push_str(
                    "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n",
                );
                meta.push_str(r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"}}"#);
            }
        }
        let id = connection.id;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{TEXT}"}}{meta}}}}}"#
        );
        connection.request = post(&headers, &body);
        if style == Style::NumberedSession {
            let name = b"\"id\":";
            let found = memmem::find(&connection.request, name);
            connection.id_position = found.map(|start| start + name.len());
        }
        connection.check().await?;
        Ok(connection)
    }

    /// Starts a session; returns the headers that the requests of the session need.
    pub async fn begin(&mut self) -> anyhow::Result<String> {
        self.send(&post("", INITIALIZE)).await?;
        self.read().await?;
        let head = String::from_utf8_lossy(&self.buffer).to_ascii_lowercase();
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        let id = lines.find(|(name, _)| *name == SESSION);
        let (_, id) = id.context("the server gives no session id")?;
        let headers = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-11-25\r\n");
        self.send(&post(&headers, INITIALIZED)).await?;
        self.read().await?;
        Ok(headers)
    }

    /// Opens the event stream of a session, and waits for the first bytes of the stream; `session` contains the headers
    /// of the session.
    pub async fn listen(&mut self, session: &str) -> anyhow::Result<()> {
        let request = format!(
            "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{session}\r\n"
        );
        self.send(request.as_bytes()).await?;
        self.buffer.clear();
        while memmem::find(&self.buffer, b": open").is_none()
            && memmem::find(&self.buffer, b"id: ").is_none()
        {
            let count = self.stream.read_buf(&mut self.buffer).await?;
            ensure!(count > 0, "the server has closed the connection");
        }
        ensure!(self.buffer.starts_with(b"HTTP/1.1 200"), "no event stream");
        self.buffer = Vec::new();
        Ok(())
    }

    /// Sends the bytes of an HTTP request.
    async fn send(&mut self, request: &[u8]) -> anyhow::Result<()> {
        Ok(self.stream.write_all(request).await?)
    }

    /// Reads a complete response into the buffer; returns the range of its body.
    async fn read(&mut self) -> anyhow::Result<Body> {
        self.buffer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.buffer);
            let Ok(count) = tokio::time::timeout(RESPONSE_TIMEOUT, read).await else {
                let buffer = String::from_utf8_lossy(&self.buffer);
                bail!("no response within {RESPONSE_TIMEOUT:?}; received: {buffer:?}");
            };
            ensure!(count? > 0, "the server has closed the connection");
            let Some(head) = memmem::find(&self.buffer, b"\r\n\r\n") else {
                continue;
            };
            let names: [&[u8]; 2] = [b"content-length: ", b"Content-Length: "];
            let mut found = names.into_iter();
            let length = found.find_map(|name| memmem::find(&self.buffer[..head], name));
            if length.is_none() && memmem::find(&self.buffer[..head], b"chunked").is_some() {
                if self.buffer.ends_with(b"\r\n0\r\n\r\n") {
                    return Ok(head + 4..self.buffer.len());
                }
                continue;
            }
            let length = match length {
                Some(at) => {
                    let digits = self.buffer[at + 16..head].iter();
                    let digits = digits.take_while(|byte| byte.is_ascii_digit());
                    digits.fold(0, |all, digit| all * 10 + usize::from(digit - b'0'))
                }
                None => 0,
            };
            if self.buffer.len() == head + 4 + length {
                return Ok(head + 4..self.buffer.len());
            }
        }
    }

    /// Makes a call without checking the response; returns the body of the response.
    pub async fn call(&mut self) -> anyhow::Result<Body> {
        if let Some(start) = self.id_position {
            self.id += 1;
            let digits = self.id.to_string();
            self.request[start..start + digits.len()].copy_from_slice(digits.as_bytes());
        }
        self.stream.write_all(&self.request).await?;
        self.read().await
    }

    /// Makes the call once and checks the response.
    pub async fn check(&mut self) -> anyhow::Result<()> {
        let body = self.call().await?;
        let mut answer = &self.buffer[body];
        // An answer in an event stream is one line of it.
        if let Some(start) = memmem::find(answer, b"data: {") {
            let rest = &answer[start + 6..];
            let end = rest.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            answer = &rest[..end.unwrap_or(rest.len())];
        }
        check_answer(answer, self.id)
            .with_context(|| String::from_utf8_lossy(&self.buffer).into_owned())
    }
}

/// Returns the bytes of an HTTP POST request; each line of `headers` ends with CRLF.
fn post(headers: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    let text = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    text.into_bytes()
}

/// Makes `calls` sequential calls on each connection, on all connections concurrently. Returns the calls per second,
/// and the durations of the calls in microseconds.
pub async fn call_concurrently(
    connections: &mut Vec<Connection>,
    calls: usize,
) -> anyhow::Result<(f64, Vec<f64>)> {
    let count = connections.len();
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for mut connection in connections.drain(..) {
        tasks.spawn(async move {
            let mut times = Vec::with_capacity(calls);
            for _ in 0..calls {
                let start = Instant::now();
                connection.call().await?;
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
            anyhow::Ok((connection, times))
        });
    }
    let mut all = Vec::new();
    while let Some(done) = tasks.join_next().await {
        let (connection, times) = done??;
        connections.push(connection);
        all.extend(times);
    }
    let rate = (count * calls) as f64 / start.elapsed().as_secs_f64();
    for connection in connections.iter_mut().take(1) {
        connection.check().await?;
    }
    Ok((rate, all))
}
