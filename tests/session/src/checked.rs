//! Test harnesses of one endpoint in one revision: the harness of a server delivers requests and replies, and the
//! harness of a client sends requests and answers server requests.
//!
//! The harnesses accept and return JSON values. Every message that the endpoint sends is checked against its schema.

use std::ops::{Deref, DerefMut};

use serde_json::Value;

use crate::*;

/// Harness of a server endpoint in one revision; the test acts as its client.
pub struct CheckedServer(RawServer);

impl CheckedServer {
    /// Creates a server that uses this revision for clients that do not name a revision.
    ///
    /// # Panics
    /// If the revision is not compiled in.
    pub fn new(config: ServerConfig, revision: &str) -> Self {
        Self(RawServer::new(config).with_revision(revision))
    }

    /// Creates a server of one revision, in an initialized session if the revision has sessions, for a client with
    /// these capabilities.
    ///
    /// # Panics
    /// If the session does not begin.
    pub fn with_session(config: ServerConfig, revision: &str, capabilities: Value) -> Self {
        let mut server = Self::new(config, revision);
        if lifecycle(revision) == Some(Lifecycle::Initialize) {
            let answers = server.send(&initialize(revision, capabilities));
            assert_eq!(answers[0]["result"]["protocolVersion"], revision);
            server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
            server.events();
        }
        server
    }

    /// Delivers a request to the server and returns the event that the application receives for it.
    ///
    /// # Panics
    ///
    /// If the endpoint does not deliver the request.
    #[track_caller]
    pub fn serve(&mut self, message: &Value) -> IncomingRequest<()> {
        let answers = self.send(message);
        assert!(answers.is_empty(), "{answers:?}");
        self.take_request()
    }

    /// Replies to a request and returns the messages that the server sends.
    ///
    /// # Panics
    ///
    /// If the endpoint refuses the reply.
    #[track_caller]
    pub fn reply(&mut self, key: RequestKey, reply: impl Into<Reply>) -> Vec<Value> {
        let now = self.now;
        self.endpoint.reply(key, reply, now).expect("it may");
        self.take_messages()
    }
}

impl Deref for CheckedServer {
    type Target = RawServer;

    fn deref(&self) -> &RawServer {
        &self.0
    }
}

impl DerefMut for CheckedServer {
    fn deref_mut(&mut self) -> &mut RawServer {
        &mut self.0
    }
}

/// Harness of a client endpoint in one revision; the test acts as its server.
pub struct CheckedClient(RawClient);

impl CheckedClient {
    /// Creates a client that starts the negotiation.
    ///
    /// # Panics
    /// If the revision is not compiled in.
    pub fn new(config: ClientConfig, revision: &str) -> Self {
        Self(RawClient::new(config).with_revision(revision))
    }

    /// Creates a client that is ready, connected to a server with this revision and these capabilities.
    ///
    /// # Panics
    /// If the endpoint does not become ready.
    pub fn connected(config: ClientConfig, revision: &str, capabilities: Value) -> Self {
        let raw = RawClient::with_session(config, revision, capabilities);
        let mut client = Self(raw.with_revision(revision));
        client.take_messages();
        client
    }

    /// Sends a request; returns its key, or the error with which the endpoint refuses the request.
    pub fn try_request(&mut self, method: &str, params: Value) -> Result<RequestKey, SendError> {
        let (now, params) = (self.now, (!params.is_null()).then(|| to_object(params)));
        self.endpoint
            .request(method, params, CallOptions::default(), now)
    }

    /// Answers a server request with the result `answer`; returns the messages that the client sends.
    ///
    /// # Panics
    ///
    /// If the endpoint refuses the answer.
    #[track_caller]
    pub fn answer_server_request(&mut self, key: ServerRequestKey, answer: Value) -> Vec<Value> {
        let now = self.now;
        let answered = self.endpoint.answer(key, Ok(to_result(answer)), now);
        answered.expect("it waits");
        self.take_messages()
    }

    /// Returns the server requests among the pending events and discards all other events.
    pub fn server_requests(&mut self) -> Vec<(ServerRequestKey, mcp_exact_session::ServerRequest)> {
        let ask = |event| match event {
            ClientEvent::Request {
                key, request: ask, ..
            } => Some((key, ask)),
            _ => None,
        };
        self.events().into_iter().filter_map(ask).collect()
    }
}

impl Deref for CheckedClient {
    type Target = RawClient;

    fn deref(&self) -> &RawClient {
        &self.0
    }
}

impl DerefMut for CheckedClient {
    fn deref_mut(&mut self) -> &mut RawClient {
        &mut self.0
    }
}

/// Creates a client that is ready: its server supports the revision and declares tools, resources and prompts.
///
/// # Panics
///
/// If the endpoint does not become ready.
pub fn connected_client(revision: &str) -> CheckedClient {
    let capabilities = json!({ "tools": {}, "resources": {}, "prompts": {} });
    CheckedClient::connected(client_config(&[revision]), revision, capabilities)
}

/// Creates a request as a client of the revision sends it; includes the capabilities if the revision requires them in
/// each request.
pub fn request_of_revision(
    revision: &str,
    id: impl Into<Value>,
    method: &str,
    params: Value,
    capabilities: Value,
) -> Value {
    let mut params = if params.is_null() { json!({}) } else { params };
    if lifecycle(revision) == Some(Lifecycle::Discover) {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(revision);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    }
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}
