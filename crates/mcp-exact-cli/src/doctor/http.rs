//! HTTP client of the doctor, which sends requests with arbitrary headers and returns unmodified responses.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt;
use mcp_exact::transport::http::client::{HttpClient, HttpClientError, HyperOptions};
use mcp_exact::transport::sse::{Decoded, Decoder};
use mcp_exact_revisions::{MethodId, method};
use serde_json::Value;
use tokio::runtime::Runtime;

use super::answer::is_json;
use crate::process::ServerOutput;

/// Maximum size of a response, and of an event in it, in bytes.
pub const MAX_BODY_BYTES: usize = 64 << 20;
/// Name of the header with the session id.
pub const SESSION_ID: &str = "mcp-session-id";
/// Name of the header with the revision.
pub const VERSION_HEADER: &str = "mcp-protocol-version";

/// Server at a URL, with the client that sends requests to it.
pub struct Target {
    /// URL of the server.
    pub url: String,
    /// Headers of each request, from the command line.
    headers: HeaderMap,
    /// HTTP client that sends the requests.
    pub client: Arc<dyn HttpClient>,
    /// Error of the latest request that has no response.
    error: Mutex<Option<String>>,
    /// Runtime on which the requests run.
    pub runtime: Mutex<Runtime>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// Response to an HTTP request; the default value stands for a missing response.
#[derive(Debug, Default)]
pub struct Exchange {
    /// HTTP status; 0 if there is no response.
    pub status: u16,
    /// Headers of the response.
    pub headers: HeaderMap,
    /// Messages in the body: the JSON value of a document, or the events of a stream.
    pub messages: Vec<Vec<u8>>,
    /// Size of a body that is not a stream, in bytes.
    pub body_bytes: usize,
}

impl Exchange {
    /// Returns the value of a header of the response; empty if the header is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    }

    /// Returns true if the status is in the range 200 to 299.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Describes status and error of a response against those that it should have: what is missing, or what is another.
    pub fn compare_error(&self, status: u16, code: i64) -> String {
        let found = self.error_code();
        match (self.status == status, found) {
            (true, None) => format!(
                "status {status}, which is right, and no JSON-RPC error in its body: {code} is missing"
            ),
            (true, Some(found)) => {
                format!("status {status}, which is right, and the error {found} instead of {code}")
            }
            (false, Some(found)) if found == code => format!(
                "the error {code}, which is right, with status {} instead of {status}",
                self.status
            ),
            (false, Some(found)) => format!(
                "status {} and the error {found} instead of {status} and {code}",
                self.status
            ),
            (false, None) => format!(
                "status {} and no JSON-RPC error instead of {status} and {code}",
                self.status
            ),
        }
    }

    /// Returns the JSON-RPC error code in the first message, if any.
    pub fn error_code(&self) -> Option<i64> {
        let message: Value = serde_json::from_slice(self.messages.first()?).ok()?;
        message["error"]["code"].as_i64()
    }
}

impl Target {
    /// Creates a target from a URL, headers of the form `Name: value` and settings of connections.
    pub fn new(url: &str, headers: &[String], options: HyperOptions) -> anyhow::Result<Self> {
        let mut map = HeaderMap::new();
        for header in headers {
            let (name, value) = crate::client::url::parse_header(header)?;
            map.insert(name, value);
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            url: url.to_owned(),
            headers: map,
            client: Arc::new(options.build()),
            error: Mutex::new(None),
            runtime: Mutex::new(runtime),
        })
    }

    /// Obtains a token where the server demands one, unless the command line has given credentials.
    #[cfg(feature = "oauth")]
    pub fn authorize(mut self, oauth: mcp_exact::auth::client::OAuth) -> anyhow::Result<Self> {
        use crate::client::authorization::Names;
        if !self.headers.contains_key(http::header::AUTHORIZATION) {
            let client = oauth.client(&self.url, Arc::clone(&self.client));
            let client = client.map_err(|error| anyhow!(Names::Options.describe(&error)))?;
            self.client = Arc::new(client);
        }
        Ok(self)
    }

    /// Removes and returns the error of the latest request that has no response.
    pub fn take_error(&self) -> Option<String> {
        self.error
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Returns the error for a request that has no response, and keeps it.
    pub fn fail(&self, error: &HttpClientError) -> anyhow::Error {
        let words = describe_authorization(error).unwrap_or_else(|| {
            let words = describe_chain(&**error);
            let remedy = crate::client::remedy_of_connection(&words);
            let remedy = remedy.map_or_else(String::new, |remedy| format!("; {remedy}"));
            format!("cannot reach {}: {words}{remedy}", self.url)
        });
        let mut kept = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(words.clone());
        anyhow!(words)
    }

    /// Starts a request with the headers of the command line.
    pub fn request(&self, method: Method, url: &str) -> http::request::Builder {
        let mut request = Request::builder().method(method).uri(url);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request
    }

    /// Sends a request and reads the response until the response ends, `is_last` returns true for a message, or the
    /// time limit expires.
    pub fn exchange(
        &self,
        method: Method,
        headers: &[(&str, &str)],
        body: Option<&Value>,
        limit: Duration,
        is_last: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Exchange> {
        let mut request = self.request(method, &self.url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request
            .body(Bytes::from(body))
            .context("this is not a request")?;
        let runtime = self.runtime.lock().unwrap_or_else(PoisonError::into_inner);
        runtime.block_on(async {
            let sent = tokio::time::timeout(limit, self.client.send(request)).await;
            let response = sent
                .map_err(|_| anyhow!("no response within {} s", limit.as_secs()))?
                .map_err(|error| self.fail(&error))?;
            let mut exchange = Exchange {
                status: response.status().as_u16(),
                headers: response.headers().clone(),
                ..Exchange::default()
            };
            let is_stream = exchange
                .header("content-type")
                .starts_with("text/event-stream");
            let reading = read_body(response.into_body(), is_stream, &mut exchange, &is_last);
            // Messages that were received before the time limit are kept.
            let _ = tokio::time::timeout(limit, reading).await;
            Ok(exchange)
        })
    }
}

/// Describes an error of authorization; `None` for every other error.
#[cfg(feature = "oauth")]
fn describe_authorization(error: &HttpClientError) -> Option<String> {
    let error = error.downcast_ref()?;
    Some(crate::client::authorization::Names::Options.describe(error))
}

/// Returns nothing: this build cannot authorize requests.
#[cfg(not(feature = "oauth"))]
fn describe_authorization(_: &HttpClientError) -> Option<String> {
    None
}

/// Returns the words of an error and of its causes.
fn describe_chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = error.source();
    }
    words
}

/// Reads a body into `exchange`: the messages of a stream until `is_last` returns true, or one document.
async fn read_body(
    mut body: mcp_exact::transport::http::client::HttpBody,
    is_stream: bool,
    exchange: &mut Exchange,
    is_last: &impl Fn(&Value) -> bool,
) {
    let mut decoder = Decoder::new(MAX_BODY_BYTES);
    let (mut document, mut size) = (Vec::new(), 0);
    while let Some(Ok(frame)) = body.frame().await {
        let Some(bytes) = frame.data_ref() else {
            continue;
        };
        size += bytes.len();
        if size > MAX_BODY_BYTES {
            break;
        }
        if !is_stream {
            document.extend_from_slice(bytes);
            continue;
        }
        decoder.push(bytes);
        while let Some(event) = decoder.next_event() {
            let Decoded::Event(event) = event else {
                continue;
            };
            if event.data.is_empty() || event.event != "message" {
                continue;
            }
            let message: Value = serde_json::from_slice(&event.data).unwrap_or_default();
            exchange.messages.push(event.data);
            if is_last(&message) {
                return;
            }
        }
    }
    exchange.body_bytes = document.len();
    if !document.trim_ascii().is_empty() {
        exchange.messages.push(document);
    }
}

/// Connection of the doctor to a server over HTTP, with a session id if the server has assigned one.
pub struct HttpSession {
    /// Server of the session.
    target: Arc<Target>,
    /// Id of the session that the server has assigned.
    session_id: Option<String>,
    /// Received messages that [`HttpSession::receive`] has not returned yet.
    received: VecDeque<Vec<u8>>,
    /// HTTP status of the latest response.
    status: Option<u16>,
}

/// Header with the accepted content types.
pub const ACCEPT_HEADER: (&str, &str) = ("accept", "application/json, text/event-stream");
/// Header with the content type of a message.
pub const CONTENT_TYPE_HEADER: (&str, &str) = ("content-type", "application/json");

impl HttpSession {
    /// Creates a connection that has no session id yet.
    pub fn new(target: &Arc<Target>) -> Self {
        Self {
            target: Arc::clone(target),
            session_id: None,
            received: VecDeque::new(),
            status: None,
        }
    }

    /// Returns the HTTP status of the latest response; used if no message was received.
    pub fn status(&self) -> Option<u16> {
        self.status
    }

    /// Posts a message and stores the messages of the response; returns false if there is no response.
    pub fn send(&mut self, message: &Value, revision: Option<&str>, limit: Duration) -> bool {
        let session_id = self.session_id.clone();
        let named = name_header_value(message);
        let mut headers = vec![ACCEPT_HEADER, CONTENT_TYPE_HEADER];
        headers.extend(session_id.as_deref().map(|id| (SESSION_ID, id)));
        let version =
            message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let revision = version.or(revision);
        headers.extend(revision.map(|revision| (VERSION_HEADER, revision)));
        headers.extend(mirrored_headers(message, named.as_deref()));
        let id = message.get("id").cloned();
        let is_last = |found: &Value| {
            if message.is_array() {
                found.is_array()
            } else {
                id.is_some() && found.get("method").is_none() && found.get("id") == id.as_ref()
            }
        };
        let exchange = self
            .target
            .exchange(Method::POST, &headers, Some(message), limit, is_last);
        let Ok(exchange) = exchange else {
            return false;
        };
        if message["method"] == method::INITIALIZE && exchange.is_success() {
            let id = exchange.header(SESSION_ID);
            self.session_id = (!id.is_empty()).then(|| id.to_owned());
        }
        self.status = Some(exchange.status);
        // A body of an error that is no JSON is a page and no message.
        let is_success = exchange.is_success();
        let is_kept = |bytes: &Vec<u8>| is_success || is_json(bytes);
        let messages = exchange.messages.into_iter().filter(is_kept);
        // The response to a notification has no message: errors are HTTP errors.
        if message.is_array() || message.get("id").is_some() {
            self.received.extend(messages);
        }
        true
    }

    /// Removes and returns the next received message.
    pub fn receive(&mut self) -> ServerOutput {
        match self.received.pop_front() {
            Some(message) => ServerOutput::Line(message),
            None => ServerOutput::End,
        }
    }
}

impl Drop for HttpSession {
    /// Ends the HTTP session, so that the server can delete it.
    fn drop(&mut self) {
        if let Some(id) = self.session_id.take() {
            let headers = [(SESSION_ID, id.as_str())];
            let limit = Duration::from_secs(2);
            let _ = self
                .target
                .exchange(Method::DELETE, &headers, None, limit, |_| true);
        }
    }
}

/// Returns the value of the header `Mcp-Name` for a request: the name of the tool or prompt, or the URI of the resource
/// (2026-07-28, `basic/transports/streamable-http`, "Standard Request Headers"). Returns `None` for other methods.
fn name_header_value(message: &Value) -> Option<String> {
    let name = match MethodId::from_name(message["method"].as_str()?) {
        MethodId::ToolsCall | MethodId::PromptsGet => &message["params"]["name"],
        MethodId::ResourcesRead => &message["params"]["uri"],
        _ => return None,
    };
    name.as_str().map(str::to_owned)
}

/// Returns the headers `Mcp-Method` and `Mcp-Name`, which mirror members of the body; `named` is the value of
/// `Mcp-Name`. Revisions before 2026-07-28 ignore these headers.
fn mirrored_headers<'m>(
    message: &'m Value,
    named: Option<&'m str>,
) -> Vec<(&'static str, &'m str)> {
    let mut headers = Vec::new();
    headers.extend(
        message["method"]
            .as_str()
            .map(|method| ("mcp-method", method)),
    );
    headers.extend(named.map(|name| ("mcp-name", name)));
    headers
}
