//! Server over HTTP without sockets, so that tests with a paused clock can use it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use mcp_exact::transport::http::client::{HttpClient, HttpEndpoint, HttpFuture};
use mcp_exact_bridge::{Bridge, Options, Upstream};
use mcp_exact_tests_support::http_peer::{PeerReply, PeerRequest, legacy_reply};
use serde_json::{Value, json};

use crate::own_uris::named;

/// Reaction of the test to a request; `None` if the server answers as usual.
type React = dyn Fn(&PeerRequest) -> Option<PeerReply> + Send + Sync;

/// Server over HTTP of one revision: it has the tool `echo`, a prompt and resources.
#[derive(Clone)]
pub struct Web {
    revision: &'static str,
    react: Arc<Mutex<Arc<React>>>,
    /// Time before each reply.
    delay: Arc<Mutex<Duration>>,
    /// Number of requests so far, by method.
    counts: Arc<Mutex<HashMap<String, usize>>>,
}

impl Web {
    pub fn new(revision: &'static str) -> Self {
        Self {
            revision,
            react: Arc::new(Mutex::new(Arc::new(|_: &PeerRequest| None))),
            delay: Arc::default(),
            counts: Arc::default(),
        }
    }

    /// Sets how the server reacts to requests from now on.
    pub fn react(&self, react: impl Fn(&PeerRequest) -> Option<PeerReply> + Send + Sync + 'static) {
        *self.react.lock().expect("a lock") = Arc::new(react);
    }

    /// Sets the time before each reply from now on.
    pub fn delay(&self, delay: Duration) {
        *self.delay.lock().expect("a lock") = delay;
    }

    /// Answers every request as usual from now on.
    pub fn recover(&self) {
        self.react(|_| None);
    }

    /// Returns the number of requests with a method so far.
    pub fn count(&self, method: &str) -> usize {
        let counts = self.counts.lock().expect("a lock");
        counts.get(method).copied().unwrap_or_default()
    }

    /// Returns the number of all requests so far.
    pub fn count_all(&self) -> usize {
        self.counts.lock().expect("a lock").values().sum()
    }

    /// Returns the server as an upstream.
    pub fn endpoint(&self) -> HttpEndpoint {
        let endpoint = HttpEndpoint::new("http://127.0.0.1:1/mcp").expect("a URL");
        endpoint.client(Arc::new(self.clone())).opens_stream(false)
    }

    fn reply(&self, request: &PeerRequest) -> PeerReply {
        let method = request.method().to_owned();
        *self
            .counts
            .lock()
            .expect("a lock")
            .entry(method)
            .or_default() += 1;
        let react = Arc::clone(&self.react.lock().expect("a lock"));
        react(request).unwrap_or_else(|| usual_reply(request, self.revision))
    }
}

impl HttpClient for Web {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        let (head, body) = request.into_parts();
        let headers = head.headers.iter();
        let headers = headers.map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        });
        let request = PeerRequest {
            http_method: head.method.to_string(),
            path: head.uri.path().to_owned(),
            headers: headers.collect(),
            body: serde_json::from_slice(&body).unwrap_or(Value::Null),
        };
        let reply = self.reply(&request);
        let delay = *self.delay.lock().expect("a lock");
        Box::pin(async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            match reply {
                PeerReply::Response {
                    status,
                    headers,
                    body,
                } => {
                    let mut response = Response::builder().status(status);
                    for (name, value) in headers {
                        response = response.header(name, value);
                    }
                    let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
                    Ok(response.body(body.boxed_unsync())?)
                }
                PeerReply::Cut => {
                    let cut = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                    Err(cut.into())
                }
                PeerReply::Silence => std::future::pending().await,
            }
        })
    }
}

/// Returns what the server answers as usual.
fn usual_reply(request: &PeerRequest, revision: &str) -> PeerReply {
    let is_modern = revision >= "2026";
    let with_hints = |mut result: Value| {
        if is_modern {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        PeerReply::result(request, result)
    };
    let capabilities = json!({ "tools": {}, "resources": {}, "prompts": {} });
    let info = json!({ "name": "web", "version": "1" });
    match request.method() {
        "server/discover" if is_modern => with_hints(json!({
            "supportedVersions": [revision], "capabilities": capabilities, "serverInfo": info,
        })),
        "initialize" if is_modern => {
            PeerReply::error(404, request.id(), -32601, "Method not found")
        }
        "initialize" => PeerReply::result(
            request,
            json!({ "protocolVersion": revision, "capabilities": capabilities, "serverInfo": info }),
        ),
        "tools/list" => {
            let tool = |name: &str, hint: Value| {
                let schema = json!({ "type": "object" });
                json!({ "name": name, "inputSchema": schema, "annotations": hint })
            };
            with_hints(json!({ "tools": [
                tool("echo", json!({})),
                tool("read", json!({ "readOnlyHint": true })),
                tool("set", json!({ "readOnlyHint": false, "idempotentHint": true })),
                tool("liar", json!({ "readOnlyHint": "true" })),
            ] }))
        }
        "tools/call" => {
            let mut result = json!({ "content": [{ "type": "text", "text": "echoed" }] });
            if is_modern {
                result["resultType"] = json!("complete");
            }
            PeerReply::result(request, result)
        }
        "prompts/list" => with_hints(json!({ "prompts": [{ "name": "review" }] })),
        "resources/list" => {
            with_hints(json!({ "resources": [{ "uri": "web:///a", "name": "a" }] }))
        }
        "resources/templates/list" => with_hints(json!({ "resourceTemplates": [] })),
        "resources/read" => {
            let uri = &request.body["params"]["uri"];
            with_hints(json!({ "contents": [{ "uri": uri, "text": "text" }] }))
        }
        _ => legacy_reply(request, revision),
    }
}

/// Creates a bridge in front of a server, alone or as the server `web` of two; returns the prefix of its tools, too.
pub async fn bridge_of(
    upstream: impl Upstream,
    is_alone: bool,
    options: Options,
) -> (Bridge, &'static str) {
    if is_alone {
        let bridge = Bridge::new(upstream, options).await.expect("a bridge");
        return (bridge, "");
    }
    let servers: Vec<(&str, Arc<dyn Upstream>)> = vec![
        ("web", Arc::new(upstream)),
        ("other", Arc::new(Web::new("2025-11-25").endpoint())),
    ];
    let bridge = Bridge::many(named(servers), options).await;
    (bridge.expect("a bridge"), "web__")
}

/// Sends bytes to an address, and returns all that comes back.
pub async fn exchange(address: &str, bytes: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address)
        .await
        .expect("a connection");
    stream.write_all(bytes.as_bytes()).await.expect("sent");
    let mut all = Vec::new();
    stream.read_to_end(&mut all).await.expect("an answer");
    String::from_utf8_lossy(&all).into_owned()
}
