//! Hand-written client that cuts its connections, resumes its streams, and checks all received messages: every request
//! ends once, no event is lost or repeated, no id is used twice, and no message belongs to another client.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use mcp_exact_tests_support::Rng;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

/// Time limit after which a request without an outcome is a violation.
const OUTCOME_TIMEOUT: Duration = Duration::from_secs(60);
/// Time without data after which a stream is resumed.
const RESUME_AFTER: Duration = Duration::from_secs(10);
/// Delay before a request is sent again.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// Outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// The request has a result.
    Result,
    /// The request ended with the error that its process has died.
    Lost,
    /// Status 503: the request was not executed, or the server allows a retry.
    Unavailable,
    /// The connection was lost before the client had received an event id to resume from.
    Broken,
    /// Status 404: a failover has lost the session, and the client starts a new one.
    UnknownSession,
    /// Status 400: a failover has lost the stream or some of its events, and the client is informed.
    LostEvents,
}

/// Description of a property that an exchange has violated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation(pub String);

/// Returns a violation as an error.
fn violation<T>(text: impl Into<String>) -> Result<T, Violation> {
    Err(Violation(text.into()))
}

/// Client with one session.
pub struct CheckingClient {
    http: Client<HttpConnector, Full<Bytes>>,
    /// Address of the servers or of their balancer.
    server: SocketAddr,
    /// Name of the client, which is its bearer token and principal.
    name: String,
    /// Id of the session.
    pub session: String,
    /// Ids of the server's requests, which must be unique.
    server_ids: BTreeSet<String>,
    /// Id of the latest request.
    last_id: u64,
    /// Source of the random cuts.
    pub rng: Rng,
    /// Probability in percent that the client cuts a stream after an event.
    pub cuts: usize,
    /// True if Redis may lose data that it has confirmed.
    pub may_forget: bool,
}

/// State of one request, as the client has observed it.
struct RequestState {
    /// Id of the request.
    id: u64,
    /// Progress token and argument of the call, which must occur in every received message.
    token: String,
    /// Id of the latest received event.
    last_event: Option<String>,
    /// Ids of all received events.
    events: BTreeSet<String>,
    /// Latest progress.
    progress: f64,
}

impl CheckingClient {
    pub fn new(server: SocketAddr, name: &str, rng: Rng) -> Self {
        let http = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(0)
            .build_http();
        Self {
            http,
            server,
            name: name.to_owned(),
            session: String::new(),
            server_ids: BTreeSet::new(),
            last_id: 0,
            rng,
            cuts: 0,
            may_forget: false,
        }
    }

    /// Sends an HTTP request; returns `None` if there is no response within the time limit.
    async fn send(
        &self,
        method: &str,
        session: &str,
        last_event: Option<&str>,
        body: &str,
    ) -> Option<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}/", self.server))
            .header("Authorization", format!("Bearer {}", self.name))
            .header("Content-Type", "application/json");
        request = match method {
            "GET" => request.header("Accept", "text/event-stream"),
            _ => request.header("Accept", "application/json, text/event-stream"),
        };
        if !session.is_empty() {
            request = request.header("Mcp-Session-Id", session);
            request = request.header("MCP-Protocol-Version", "2025-11-25");
        }
        if let Some(last) = last_event {
            request = request.header("Last-Event-ID", last);
        }
        let request = request
            .body(Full::from(body.to_owned()))
            .expect("a request");
        timeout(OUTCOME_TIMEOUT, self.http.request(request))
            .await
            .ok()?
            .ok()
    }

    /// Starts a session; retries until a server accepts it.
    pub async fn begin(&mut self) -> Result<(), Violation> {
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": { "roots": {} },
            "clientInfo": { "name": "c", "version": "1" } } });
        let deadline = Instant::now() + OUTCOME_TIMEOUT;
        loop {
            if let Some(response) = self.send("POST", "", None, &hello.to_string()).await
                && response.status() == StatusCode::OK
            {
                let id = response.headers().get("mcp-session-id");
                let id = id
                    .and_then(|id| id.to_str().ok())
                    .unwrap_or_default()
                    .to_owned();
                if response.into_body().collect().await.is_ok() {
                    self.session = id;
                    self.server_ids.clear();
                    break;
                }
            }
            if Instant::now() > deadline {
                return violation("no server begins a session");
            }
            sleep(RETRY_DELAY).await;
        }
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.deliver(&ready).await
    }

    /// Sends a notification or response; retries until a server accepts the message.
    async fn deliver(&self, message: &Value) -> Result<(), Violation> {
        let deadline = Instant::now() + OUTCOME_TIMEOUT;
        while Instant::now() < deadline {
            match self
                .send("POST", &self.session, None, &message.to_string())
                .await
            {
                Some(response) if response.status() == StatusCode::ACCEPTED => return Ok(()),
                Some(response) if self.may_forget && response.status() == StatusCode::NOT_FOUND => {
                    return Ok(());
                }
                // The server has accepted the message before the connection broke: a handshake ends only once.
                Some(response) if response.status() == StatusCode::BAD_REQUEST => return Ok(()),
                Some(response) if response.status() == StatusCode::NOT_FOUND => {
                    return violation("the session is unknown");
                }
                _ => sleep(RETRY_DELAY).await,
            }
        }
        violation("no server takes a message")
    }

    /// Sends a request to the session of another principal, which must be answered with status 404.
    pub async fn check_foreign_session(&self, session: &str) -> Result<(), Violation> {
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        match self.send("POST", session, None, &ping.to_string()).await {
            Some(response) if response.status() == StatusCode::OK => {
                violation("a session answers to another principal")
            }
            _ => Ok(()),
        }
    }

    /// Calls a tool with a unique token, and follows the call to its end.
    pub async fn call(&mut self, tool: &str, token: &str) -> Result<End, Violation> {
        self.last_id += 1;
        let mut seen = RequestState {
            id: self.last_id,
            token: token.to_owned(),
            last_event: None,
            events: BTreeSet::new(),
            progress: 0.0,
        };
        let call = json!({ "jsonrpc": "2.0", "id": seen.id, "method": "tools/call", "params": {
            "name": tool, "arguments": { "text": token }, "_meta": { "progressToken": token } } });
        let deadline = Instant::now() + OUTCOME_TIMEOUT;
        let mut response = self
            .send("POST", &self.session, None, &call.to_string())
            .await;
        loop {
            if let Some(found) = response.take() {
                let is_first = seen.last_event.is_none();
                match found.status() {
                    StatusCode::OK => {
                        if let Some(end) = self.follow(found, &mut seen).await? {
                            return Ok(end);
                        }
                    }
                    StatusCode::NOT_FOUND if self.may_forget => return Ok(End::UnknownSession),
                    StatusCode::NOT_FOUND => return violation("the session is unknown"),
                    StatusCode::BAD_REQUEST if self.may_forget && !is_first => {
                        return Ok(End::LostEvents);
                    }
                    StatusCode::SERVICE_UNAVAILABLE if is_first => return Ok(End::Unavailable),
                    StatusCode::BAD_REQUEST => {
                        let body = found.into_body().collect().await;
                        let body = body.map(|body| body.to_bytes()).unwrap_or_default();
                        let text = String::from_utf8_lossy(&body).into_owned();
                        return violation(format!("the stream of {token} is lost: {text}"));
                    }
                    // No server behind the balancer, or one that cannot read the log now.
                    _ => {}
                }
            }
            let Some(last) = seen.last_event.clone() else {
                return Ok(End::Broken);
            };
            if Instant::now() > deadline {
                return violation(format!("{tool} {token} has no end, after {last}"));
            }
            sleep(RETRY_DELAY).await;
            response = self.send("GET", &self.session, Some(&last), "").await;
        }
    }

    /// Reads a response; returns the outcome of the request if the response contains it.
    async fn follow(
        &mut self,
        response: Response<Incoming>,
        seen: &mut RequestState,
    ) -> Result<Option<End>, Violation> {
        let kind = response.headers().get("content-type").cloned();
        let is_stream = kind.is_some_and(|kind| kind == "text/event-stream");
        let mut body = response.into_body();
        let mut text = String::new();
        loop {
            let frame = timeout(RESUME_AFTER, body.frame()).await;
            let Ok(Some(Ok(frame))) = frame else {
                break;
            };
            let data = frame.into_data().unwrap_or_default();
            text.push_str(&String::from_utf8_lossy(&data));
            while let Some(end) = text.find("\n\n").filter(|_| is_stream) {
                let event: String = text.drain(..end + 2).collect();
                if let Some(end) = self.handle_event(&event, seen).await? {
                    return Ok(Some(end));
                }
                if seen.last_event.is_some() && self.rng.below(100) < self.cuts {
                    return Ok(None);
                }
            }
        }
        match serde_json::from_str(&text) {
            Ok(message) if !is_stream => self.handle_message(&message, seen).await,
            _ => Ok(None),
        }
    }

    /// Handles an event of a stream.
    async fn handle_event(
        &mut self,
        event: &str,
        seen: &mut RequestState,
    ) -> Result<Option<End>, Violation> {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        if let Some(id) = field("id: ") {
            let is_new = seen.events.insert(id.to_owned());
            // The first event of a stream has no message, and may be repeated.
            if !is_new && field("data: ").is_some_and(|data| !data.is_empty()) {
                return violation(format!("event {id} of {} came twice", seen.token));
            }
            seen.last_event = Some(id.to_owned());
        }
        match field("data: ").filter(|data| !data.is_empty()) {
            Some(data) => match serde_json::from_str(data) {
                Ok(message) => self.handle_message(&message, seen).await,
                Err(error) => violation(format!("an event is not JSON: {error}")),
            },
            None => Ok(None),
        }
    }

    /// Checks a message; returns the outcome if the message is the response.
    async fn handle_message(
        &mut self,
        message: &Value,
        seen: &mut RequestState,
    ) -> Result<Option<End>, Violation> {
        let token = seen.token.as_str();
        match message["method"].as_str() {
            Some("notifications/progress") => {
                let params = &message["params"];
                if params["progressToken"] != token || params["message"] != token {
                    return violation(format!("{token} gets {params}"));
                }
                let progress = params["progress"].as_f64().unwrap_or_default();
                if progress != seen.progress + 1.0 {
                    let last = seen.progress;
                    return violation(format!("{token}: progress {progress} comes after {last}"));
                }
                seen.progress = progress;
                Ok(None)
            }
            Some("roots/list") => {
                if !self.server_ids.insert(message["id"].to_string()) {
                    return violation(format!(
                        "the server has used its id {} twice",
                        message["id"]
                    ));
                }
                let roots = json!([{ "uri": format!("file:///{token}") }]);
                let answer =
                    json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "roots": roots } });
                self.deliver(&answer).await?;
                Ok(None)
            }
            Some(other) => violation(format!("{token} gets {other}")),
            None if message["id"] != seen.id => violation(format!(
                "{token} gets the answer of another request: {message}"
            )),
            None if message["result"].is_object() => {
                if message["result"].to_string().contains(token) {
                    Ok(Some(End::Result))
                } else {
                    violation(format!(
                        "{token} gets the result of another call: {message}"
                    ))
                }
            }
            None => {
                let text = message["error"]["message"].as_str().unwrap_or_default();
                if text.contains("the request is lost") {
                    Ok(Some(End::Lost))
                } else {
                    violation(format!("{token} gets an error: {text}"))
                }
            }
        }
    }
}
