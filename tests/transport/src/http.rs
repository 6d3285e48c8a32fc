//! Test server over HTTP, a client that sends requests as text, and functions that read event streams.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use mcp_exact_transport::ServerHandler;
use mcp_exact_transport::http::server::ResponseBody;
use mcp_exact_transport::http::server::{
    HttpListener, HttpServerOptions, HttpService, ListenOptions,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::echo;

/// `initialize` request of 2025-11-25.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#;

/// Client that writes requests as text, each on a separate connection.
#[derive(Debug, Clone, Copy)]
pub struct RawClient {
    /// Address of the server.
    pub address: SocketAddr,
}

/// HTTP server in this process; dereferences to a [`RawClient`] of the server.
pub struct TestServer {
    /// Client of this server.
    client: RawClient,
    /// HTTP service of the server.
    pub service: HttpService,
    /// Sender that stops the server when it is dropped.
    stop: Option<oneshot::Sender<()>>,
    /// Task of the listener.
    pub task: JoinHandle<std::io::Result<()>>,
}

impl TestServer {
    /// Starts the echo server with these service options.
    pub async fn start(options: HttpServerOptions) -> Self {
        Self::start_with(options, ListenOptions::default()).await
    }

    /// Starts the echo server with these service and listener options.
    pub async fn start_with(options: HttpServerOptions, listen: ListenOptions) -> Self {
        Self::serve(Arc::new(echo::handle), options, listen).await
    }

    /// Starts a server with this handler and these service options.
    pub async fn start_handler(
        handler: Arc<dyn ServerHandler>,
        options: HttpServerOptions,
    ) -> Self {
        Self::serve(handler, options, ListenOptions::default()).await
    }

    /// Starts a server with this handler and these service and listener options.
    pub async fn serve(
        handler: Arc<dyn ServerHandler>,
        options: HttpServerOptions,
        listen: ListenOptions,
    ) -> Self {
        let service = HttpService::new(echo::server_settings(), handler, options);
        let listener = HttpListener::bind("127.0.0.1:0")
            .await
            .expect("bound")
            .options(listen);
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(listener.serve(service.clone(), async move {
            let _ = stopped.await;
        }));
        Self {
            client: RawClient { address },
            service,
            stop: Some(stop),
            task,
        }
    }

    /// Starts the graceful shutdown of the server.
    pub fn stop(&mut self) {
        self.stop.take();
    }
}

impl Deref for TestServer {
    type Target = RawClient;

    fn deref(&self) -> &RawClient {
        &self.client
    }
}

impl RawClient {
    /// Returns the URL of a path on the server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Sends the text of a request and returns the connection.
    pub async fn open(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("connected");
        stream.write_all(request.as_bytes()).await.expect("written");
        stream
    }

    /// Sends a request to the path `/` on a separate connection; returns the complete response.
    pub async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        self.send_to("/", method, headers, body).await
    }

    /// Sends a request to a path on a separate connection; returns the complete response.
    pub async fn send_to(
        &self,
        path: &str,
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let request = self.request(path, method, headers, body);
        let mut stream = self.open(&request).await;
        let mut bytes = Vec::new();
        let read = stream.read_to_end(&mut bytes);
        tokio::time::timeout(Duration::from_secs(60), read)
            .await
            .expect("in time")
            .expect("read");
        Reply::parse(&bytes)
    }

    /// Returns the text of an HTTP/1.1 request; the given headers replace the default headers.
    pub fn request(
        &self,
        path: &str,
        method: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> String {
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        let length = body.len().to_string();
        let host = self.address.to_string();
        let defaults = [
            ("Host", host.as_str()),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("Content-Length", length.as_str()),
        ];
        let is_set = |name: &str| {
            headers
                .iter()
                .any(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        for (name, value) in defaults
            .iter()
            .filter(|(name, _)| !is_set(name))
            .chain(headers)
        {
            if !value.is_empty() {
                text.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        text.push_str("\r\n");
        text.push_str(body);
        text
    }

    /// Starts a session of 2025-11-25; returns its id.
    pub async fn begin(&self) -> String {
        let reply = self.send("POST", &[], INITIALIZE).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let id = reply
            .header("mcp-session-id")
            .expect("a session id")
            .to_owned();
        let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let reply = self.send("POST", &[("Mcp-Session-Id", &id)], note).await;
        assert_eq!(reply.status, 202, "{reply:?}");
        id
    }
}

/// HTTP response.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    /// Headers: each name in lower case, with its value.
    pub headers: Vec<(String, String)>,
    /// Body after removal of the chunked transfer coding.
    pub body: String,
}

impl Reply {
    /// Parses an HTTP/1.1 response.
    pub fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let status = status.and_then(|status| status.parse().ok()).unwrap_or(0);
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let is_chunked = headers
            .iter()
            .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if is_chunked {
            unchunk(body)
        } else {
            body.to_owned()
        };
        Self {
            status,
            headers,
            body,
        }
    }

    /// Returns the value of the header with this name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Joins the received chunks of a body with chunked transfer coding.
pub fn unchunk(text: &str) -> String {
    let mut body = String::new();
    let mut rest = text;
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or(0);
        if size == 0 || more.len() < size + 2 {
            break;
        }
        body.push_str(&more[..size]);
        rest = &more[size + 2..];
    }
    body
}

/// Returns a `tools/call` request with the argument `text` and a progress token.
pub fn call(id: u32, tool: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"{text}"}},"_meta":{{"progressToken":{id}}}}}}}"#
    )
}

/// Returns the headers and the body of a tool call of 2026-07-28.
pub fn stateless_call(id: u32, tool: &str, text: &str) -> (Vec<(&'static str, String)>, String) {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"{text}"}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"progressToken":{id}}}}}}}"#
    );
    let headers = vec![
        ("MCP-Protocol-Version", "2026-07-28".to_owned()),
        ("Mcp-Method", "tools/call".to_owned()),
        ("Mcp-Name", tool.to_owned()),
    ];
    (headers, body)
}

/// Passes a request directly to a service, without a socket; returns the response.
pub async fn respond(
    service: &HttpService,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> http::Response<ResponseBody> {
    let mut request = http::Request::builder()
        .method(method)
        .uri("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = Full::<Bytes>::from(body.to_owned());
    service
        .respond(request.body(body).expect("a request"))
        .await
}

/// Deterministic random number generator; the field is its state.
pub struct Random(pub u64);

impl Random {
    /// Returns a random number below the limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
