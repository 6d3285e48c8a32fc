//! Harness of a server endpoint over HTTP; the test acts as its client. Every POST is a stream, and every message that
//! the server sends is checked against its schema.
//!
//! The harness accepts headers and JSON values, and returns the output of the endpoint.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::*;

/// Revisions that have sessions over Streamable HTTP.
pub const SESSION_REVISIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// Creates an HTTP request with these headers.
pub fn http_request(headers: &[(&str, &str)]) -> HttpRequest {
    let headers = headers.iter();
    HttpRequest::new(headers.map(|(name, value)| ((*name).to_owned(), *value)))
}

/// Creates the information of a negotiated session, with this revision and these capabilities of the peer.
///
/// # Panics
/// If the revision is not compiled in.
pub fn negotiated_session(revision: &str, capabilities: Value) -> SessionInfo {
    SessionInfo {
        revision: Offer::new([revision]).expect("known").revisions[0],
        capabilities: to_object(capabilities),
        implementation: None,
        instructions: None,
    }
}

/// Creates a call of the tool `x` by a client that declares elicitation; the members of `more` are added to the params.
pub fn tool_call(revision: &str, id: impl Into<Value>, more: Value) -> Value {
    let mut params = json!({ "name": "x" });
    more.as_object()
        .into_iter()
        .flatten()
        .for_each(|(name, value)| params[name] = value.clone());
    request_of_revision(
        revision,
        id,
        "tools/call",
        params,
        json!({ "elicitation": {} }),
    )
}

/// Creates a server of one revision with all capabilities, in a session with a client that has roots.
///
/// # Panics
/// If the revision is not compiled in.
pub fn server_with_roots_client(revision: &str) -> HttpServerHarness {
    HttpServerHarness::new(server_config(&[revision]), revision, json!({ "roots": {} }))
}

/// Harness of a server endpoint over HTTP; records the request of each stream, so that each result can be checked.
pub struct HttpServerHarness {
    /// The server endpoint under test.
    pub endpoint: ServerEndpoint<()>,
    /// Revision whose schema the server's messages must match.
    revision: String,
    /// Method of the request that was posted on each stream; the result on that stream must match the method.
    posted_methods: BTreeMap<StreamId, String>,
}

impl HttpServerHarness {
    /// Creates a server of one revision, in an initialized session if the revision has sessions, for a client with
    /// these capabilities.
    ///
    /// # Panics
    /// If the configuration offers no revision.
    pub fn new(config: ServerConfig, revision: &str, capabilities: Value) -> Self {
        let settings = config.build().expect("a configuration");
        let binding = Binding::StreamableHttp;
        let endpoint = match lifecycle(revision) {
            Some(Lifecycle::Discover) => ServerEndpoint::new(settings, binding, Time::ZERO),
            _ => {
                let snapshot = Snapshot::new(negotiated_session(revision, capabilities), 0);
                ServerEndpoint::resume(settings, binding, snapshot, Time::ZERO).expect("offered")
            }
        };
        Self {
            endpoint,
            revision: revision.to_owned(),
            posted_methods: BTreeMap::new(),
        }
    }

    /// Sends a POST and returns its stream.
    ///
    /// # Panics
    /// If the endpoint does not accept the message.
    #[track_caller]
    pub fn post(&mut self, headers: &[(&str, &str)], body: &Value) -> StreamId {
        Entrance::Http.record_use();
        let stream = self.endpoint.open(StreamKind::Post).expect("a stream");
        let with = FrameContext {
            http: Some(http_request(headers)),
            ..FrameContext::new(())
        };
        if let Some(method) = body["method"].as_str() {
            self.posted_methods.insert(stream, method.to_owned());
        }
        let text = body.to_string();
        let received = self
            .endpoint
            .receive(stream, text.as_bytes(), with, Time::ZERO);
        received.expect("open");
        stream
    }

    /// Sends a POST with a request and the correct headers, and returns the stream and the key of the delivered request.
    ///
    /// # Panics
    /// If the request is not delivered as an event.
    #[track_caller]
    pub fn serve(&mut self, body: &Value) -> (StreamId, RequestKey) {
        let method = body["method"].as_str().unwrap_or_default();
        let name = [&body["params"]["name"], &body["params"]["uri"]];
        let name = name.into_iter().find_map(Value::as_str).unwrap_or_default();
        let version = self.revision.clone();
        let headers = [
            ("MCP-Protocol-Version", &*version),
            ("Mcp-Method", method),
            ("Mcp-Name", name),
        ];
        let stream = self.post(&headers, body);
        loop {
            match self.endpoint.poll_event().expect("a request") {
                ServerEvent::Request(request) => return (stream, request.key),
                ServerEvent::Subscribed { key, .. } => return (stream, key),
                _ => {}
            }
        }
    }

    /// Removes and returns the output of the endpoint: each frame with its message, all other instructions with `null`.
    #[track_caller]
    pub fn take_output(&mut self) -> Vec<(Transmit, Value)> {
        let mut sent = Vec::new();
        let mut bytes = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(&mut bytes) {
            let mut message = Value::Null;
            if let Transmit::Frame { stream: on, .. } = &transmit {
                message = serde_json::from_slice(&bytes).expect("JSON");
                let answers = self
                    .posted_methods
                    .get(on)
                    .filter(|_| message.get("method").is_none());
                let items = message.as_array().cloned().unwrap_or(vec![message.clone()]);
                for item in items {
                    check_message(&self.revision, false, answers.map(|m| &**m), &item);
                }
            }
            bytes.clear();
            sent.push((transmit, message));
        }
        sent
    }

    /// Sends a POST; returns the HTTP status of its only answer, and the message of the answer, `null` if it has none.
    ///
    /// # Panics
    ///
    /// If the POST does not have exactly one answer.
    #[track_caller]
    pub fn status_of_post(&mut self, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
        let stream = self.post(headers, body);
        let mut sent = self.take_output();
        assert_eq!(sent.len(), 1, "{sent:?}");
        match sent.remove(0) {
            (
                Transmit::Frame {
                    stream: on,
                    is_last: last,
                    http,
                    ..
                },
                message,
            ) => {
                assert!(on == stream && last, "the end of its stream");
                (http.status.expect("a status"), message)
            }
            (Transmit::Status { stream: on, status }, _) => {
                assert_eq!(on, stream);
                (status, Value::Null)
            }
            (other, _) => panic!("{other:?}"),
        }
    }
}
