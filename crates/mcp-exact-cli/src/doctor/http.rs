//! HTTP client of the doctor, which sends requests with arbitrary headers and returns unmodified responses, and checks
//! of the rules for HTTP.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::BodyExt;
use mcp_exact::transport::http::client::{HttpClient, HttpClientError, HyperOptions};
use mcp_exact::transport::sse::{Decoded, Decoder};
use mcp_exact_revisions::{Lifecycle, MethodId, RevisionSpec, method};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::checks::UNKNOWN_REVISION;
use super::report::{Evidence, Report};
use super::session::{client_info, is_json};
use crate::conversation::Breach;
use crate::process::ServerOutput;
use crate::rules::{self, Rule};

/// Maximum size of a response, and of an event in it, in bytes.
pub const MAX_BODY_BYTES: usize = 64 << 20;
/// Name of the header with the session id.
const SESSION_ID: &str = "mcp-session-id";
/// Name of the header with the revision.
const VERSION_HEADER: &str = "mcp-protocol-version";

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
struct Exchange {
    /// HTTP status; 0 if there is no response.
    status: u16,
    /// Headers of the response.
    headers: HeaderMap,
    /// Messages in the body: the JSON value of a document, or the events of a stream.
    messages: Vec<Vec<u8>>,
    /// Size of a body that is not a stream, in bytes.
    body_bytes: usize,
}

impl Exchange {
    /// Returns the value of a header of the response; empty if the header is missing.
    fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
    }

    /// Returns true if the status is in the range 200 to 299.
    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Describes status and error of a response against those that it should have: what is missing, or what is another.
    fn compare_error(&self, status: u16, code: i64) -> String {
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
    fn error_code(&self) -> Option<i64> {
        let message: Value = serde_json::from_slice(self.messages.first()?).ok()?;
        message["error"]["code"].as_i64()
    }
}

impl Target {
    /// Creates a target from a URL, headers of the form `Name: value` and settings of connections.
    pub fn new(url: &str, headers: &[String], options: HyperOptions) -> anyhow::Result<Self> {
        let mut map = HeaderMap::new();
        for header in headers {
            let (name, value) = header
                .split_once(':')
                .with_context(|| format!("`{header}` is not a header; write `Name: value`"))?;
            let name: HeaderName = name.trim().parse().context("no name of a header")?;
            let value: HeaderValue = value.trim().parse().context("no value of a header")?;
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
    fn exchange(
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
const ACCEPT_HEADER: (&str, &str) = ("accept", "application/json, text/event-stream");
/// Header with the content type of a message.
const CONTENT_TYPE_HEADER: (&str, &str) = ("content-type", "application/json");

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

/// Checks the rules that concern only HTTP in one revision, in a separate session.
pub fn check(
    target: &Arc<Target>,
    spec: &'static RevisionSpec,
    limit: Duration,
    report: &mut Report,
) {
    let mut examination = Examination {
        target,
        spec,
        limit,
        report,
    };
    match spec.lifecycle() {
        Lifecycle::Initialize => examination.check_handshake(),
        Lifecycle::Discover => examination.check_stateless(),
    }
}

/// State of the checks of HTTP rules in one revision.
struct Examination<'a> {
    /// Server to check.
    target: &'a Arc<Target>,
    /// Revision in which the server is checked.
    spec: &'static RevisionSpec,
    /// Time limit of each HTTP request.
    limit: Duration,
    /// Report to which violations are added.
    report: &'a mut Report,
}

impl Examination<'_> {
    /// Adds a violation to the report.
    fn report_breach(&mut self, rule: &'static Rule, message: String) {
        let breach = Breach::new(rule, message);
        self.report
            .add(self.spec.id(), &breach, Evidence::default());
    }

    /// Records that the server is examined by a rule.
    fn examine(&mut self, rule: &'static Rule) {
        self.report.examine(self.spec.id(), &[rule]);
    }

    /// Posts a message and returns the response; returns the default value if there is no response.
    fn post(&mut self, headers: &[(&str, &str)], message: &Value) -> Exchange {
        self.report.checks += 1;
        let mut all = vec![ACCEPT_HEADER, CONTENT_TYPE_HEADER];
        all.extend_from_slice(headers);
        let id = message.get("id").cloned();
        let is_last =
            |found: &Value| found.get("method").is_none() && found.get("id") == id.as_ref();
        let exchange = self
            .target
            .exchange(Method::POST, &all, Some(message), self.limit, is_last);
        exchange.unwrap_or_default()
    }

    /// Creates the `initialize` request of the revision.
    fn initialize(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": method::INITIALIZE, "params": {
            "protocolVersion": self.spec.id(), "capabilities": {}, "clientInfo": client_info(),
        }})
    }

    /// Checks that a message with the header `Origin` of a foreign site is refused.
    fn check_origin(&mut self, headers: &[(&str, &str)], message: &Value) {
        self.examine(&rules::HTTP_ORIGIN);
        let mut all = headers.to_vec();
        all.push(("origin", "https://origin.invalid"));
        let exchange = self.post(&all, message);
        if exchange.is_success() {
            let message = format!(
                "a request with the Origin https://origin.invalid got status {}",
                exchange.status
            );
            self.report_breach(&rules::HTTP_ORIGIN, message);
        }
    }

    /// Checks that the content type of a successful response is that of JSON or of an event stream.
    fn check_content_type(&mut self, rule: &'static Rule, exchange: &Exchange) {
        self.examine(rule);
        let found = exchange.header("content-type").to_owned();
        let is_right = ["application/json", "text/event-stream"]
            .iter()
            .any(|right| found.starts_with(right));
        if exchange.is_success() && !is_right {
            self.report_breach(
                rule,
                format!("a request was answered with the content type {found:?}"),
            );
        }
    }

    /// Checks the HTTP rules of a revision with the `initialize` handshake.
    fn check_handshake(&mut self) {
        let initialize = self.initialize();
        self.check_origin(&[], &initialize);
        // 2024-11-05 uses HTTP+SSE instead: the rules below do not apply, although many servers negotiate the revision
        // here.
        if !self.spec.has_streamable_http() {
            return;
        }
        let begun = self.post(&[], &initialize);
        if !begun.is_success() {
            return;
        }
        self.check_content_type(&rules::HTTP_CONTENT_TYPE, &begun);
        let id = begun.headers.get(SESSION_ID).cloned();
        if id.is_some() {
            self.examine(&rules::SESSION_CHARS);
        }
        if let Some(id) = &id
            && !id
                .as_bytes()
                .iter()
                .all(|byte| (0x21..=0x7e).contains(byte))
        {
            self.report_breach(&rules::SESSION_CHARS, format!("the session id is {id:?}"));
        }
        let id = id.and_then(|id| id.to_str().ok().map(str::to_owned));
        let mut headers: Vec<(&str, &str)> = id
            .as_deref()
            .map(|id| (SESSION_ID, id))
            .into_iter()
            .collect();
        if self.spec.has_protocol_version_header() {
            headers.push((VERSION_HEADER, self.spec.id()));
        }
        let initialized = json!({"jsonrpc": "2.0", "method": method::NOTIFICATIONS_INITIALIZED});
        let accepted = self.post(&headers, &initialized);
        self.check_accepted(&accepted);
        self.check_get(&headers);
        if self.spec.has_protocol_version_header() {
            self.check_version_header(id.as_deref());
        }
        if id.is_some() {
            self.check_ended_session(&headers);
        }
    }

    /// Checks that a notification was answered with status 202 and without a body.
    fn check_accepted(&mut self, exchange: &Exchange) {
        self.examine(&rules::HTTP_202);
        if exchange.is_success() && (exchange.status != 202 || exchange.body_bytes > 0) {
            let message = format!(
                "a notification was answered with status {} and {} bytes",
                exchange.status, exchange.body_bytes
            );
            self.report_breach(&rules::HTTP_202, message);
        }
    }

    /// Checks that a GET opens an event stream or is answered with status 405.
    fn check_get(&mut self, headers: &[(&str, &str)]) {
        self.report.checks += 1;
        let mut all = vec![("accept", "text/event-stream")];
        all.extend_from_slice(headers);
        // A stream stays open: its response head suffices.
        let limit = Duration::from_secs(1);
        let Ok(exchange) = self
            .target
            .exchange(Method::GET, &all, None, limit, |_| true)
        else {
            return;
        };
        let is_stream = exchange
            .header("content-type")
            .starts_with("text/event-stream");
        self.examine(&rules::HTTP_GET);
        if !(exchange.status == 405 || exchange.is_success() && is_stream) {
            let message = format!(
                "GET was answered with status {} and the content type {:?}",
                exchange.status,
                exchange.header("content-type")
            );
            self.report_breach(&rules::HTTP_GET, message);
        }
    }

    /// Checks that a request with an unknown revision in `MCP-Protocol-Version` is answered with status 400.
    fn check_version_header(&mut self, session_id: Option<&str>) {
        self.examine(&rules::HTTP_VERSION);
        let mut headers = vec![(VERSION_HEADER, UNKNOWN_REVISION)];
        headers.extend(session_id.map(|id| (SESSION_ID, id)));
        let ping = json!({"jsonrpc": "2.0", "id": 2, "method": method::PING});
        let exchange = self.post(&headers, &ping);
        if exchange.status != 400 && exchange.status != 0 {
            let message = format!(
                "MCP-Protocol-Version: {UNKNOWN_REVISION} got status {}",
                exchange.status
            );
            self.report_breach(&rules::HTTP_VERSION, message);
        }
    }

    /// Ends the session by DELETE, and checks that a further request is answered with status 404.
    fn check_ended_session(&mut self, headers: &[(&str, &str)]) {
        self.report.checks += 1;
        let deleted = self
            .target
            .exchange(Method::DELETE, headers, None, self.limit, |_| true);
        if !deleted.is_ok_and(|deleted| deleted.is_success()) {
            return;
        }
        self.examine(&rules::SESSION_404);
        let ping = json!({"jsonrpc": "2.0", "id": 3, "method": method::PING});
        let exchange = self.post(headers, &ping);
        if exchange.status != 404 && exchange.status != 0 {
            let message = format!(
                "a request in a session that was ended got status {}",
                exchange.status
            );
            self.report_breach(&rules::SESSION_404, message);
        }
    }

    /// Checks the HTTP rules of a revision without the `initialize` handshake.
    fn check_stateless(&mut self) {
        let id = self.spec.id();
        let message = |method: &str, version: &str| {
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": client_info(),
            }}})
        };
        let discover = message(method::SERVER_DISCOVER, id);
        let right = [
            (VERSION_HEADER, id),
            ("mcp-method", method::SERVER_DISCOVER),
        ];
        self.check_origin(&right, &discover);
        let answered = self.post(&right, &discover);
        self.check_content_type(&rules::HTTP_RESPONSE, &answered);

        let other = [
            (VERSION_HEADER, "2025-11-25"),
            ("mcp-method", method::SERVER_DISCOVER),
        ];
        let exchange = self.post(&other, &discover);
        self.examine(&rules::HEADER_MISMATCH);
        // A 2025-11-25 server may treat this as a request without a session: any status 400 is accepted.
        if exchange.status != 400 {
            self.check_mismatch(&rules::HEADER_MISMATCH, "MCP-Protocol-Version", &exchange);
        }
        let other = [(VERSION_HEADER, id), ("mcp-method", method::TOOLS_LIST)];
        let exchange = self.post(&other, &discover);
        self.examine(&rules::HEADER_METHOD);
        self.check_mismatch(&rules::HEADER_METHOD, "Mcp-Method", &exchange);

        self.examine(&rules::HTTP_UNKNOWN_METHOD);
        self.examine(&rules::HTTP_UNSUPPORTED);
        let unknown = "mcp-exact/no-such-method";
        let headers = [(VERSION_HEADER, id), ("mcp-method", unknown)];
        let exchange = self.post(&headers, &message(unknown, id));
        if exchange.status != 404 || exchange.error_code() != Some(-32601) {
            let message = format!(
                "an unknown method got {}",
                exchange.compare_error(404, -32601)
            );
            self.report_breach(&rules::HTTP_UNKNOWN_METHOD, message);
        }
        let headers = [
            (VERSION_HEADER, UNKNOWN_REVISION),
            ("mcp-method", method::SERVER_DISCOVER),
        ];
        let exchange = self.post(
            &headers,
            &message(method::SERVER_DISCOVER, UNKNOWN_REVISION),
        );
        if exchange.status != 400 || exchange.error_code() != Some(-32022) {
            let found = exchange.compare_error(400, -32022);
            let message = format!("a request of {UNKNOWN_REVISION} got {found}");
            self.report_breach(&rules::HTTP_UNSUPPORTED, message);
        }
    }

    /// Checks that a request whose header contradicts the body was answered with status 400 and the error -32020.
    fn check_mismatch(&mut self, rule: &'static Rule, header: &str, exchange: &Exchange) {
        if exchange.status != 400 || exchange.error_code() != Some(-32020) {
            let found = exchange.compare_error(400, -32020);
            let message = format!("another {header} than the body says got {found}");
            self.report_breach(rule, message);
        }
    }
}
