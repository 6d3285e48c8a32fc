//! Raw ends of one machine again, with every message that the machine sends checked by the schema of its revision.
//!
//! Takes values and gives values. What the test itself sends is not checked: it may be as bad as the test likes.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use serde_json::Value;

use crate::*;

/// What the other side was asked: the method and the revision of each id.
#[derive(Debug, Default)]
struct Asked(BTreeMap<String, (String, &'static str)>);

impl Asked {
    fn note(&mut self, message: &Value, otherwise: &'static str) {
        for message in message.as_array().into_iter().flatten() {
            self.note(message, otherwise);
        }
        if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
            let revision = said(message).unwrap_or(otherwise);
            self.0.insert(id.to_string(), (method.to_owned(), revision));
        }
    }

    #[track_caller]
    fn check(&self, from_client: bool, message: &Value, otherwise: &'static str) {
        if let Some(batch) = message.as_array() {
            assert_eq!(otherwise, "2025-03-26", "a batch: {message}");
            assert!(!batch.is_empty(), "an empty batch");
            let items = batch.iter();
            return items.for_each(|item| self.check(from_client, item, otherwise));
        }
        let answered = self.0.get(&message["id"].to_string());
        let answered = answered.filter(|_| message.get("method").is_none());
        let revision = said(message)
            .or(answered.map(|(_, revision)| *revision))
            .unwrap_or(otherwise);
        let method = answered.map(|(method, _)| method.as_str());
        check_message(revision, from_client, method, message);
        let notification = message["method"]
            .as_str()
            .is_some_and(|method| method.starts_with("notifications/"));
        assert!(!notification || message.get("id").is_none(), "{message}");
    }
}

/// The revision that a message names.
fn said(message: &Value) -> Option<&'static str> {
    let meta = "io.modelcontextprotocol/protocolVersion";
    let subscription = "io.modelcontextprotocol/subscriptionId";
    let named = [
        &message["params"]["_meta"][meta],
        &message["params"]["protocolVersion"],
        &message["result"]["protocolVersion"],
    ];
    let named = named.into_iter().find_map(Value::as_str);
    let known = named.and_then(|named| all().into_iter().find(|known| *known == named));
    let listens = message["params"]["_meta"].get(subscription).is_some();
    known.or_else(|| listens.then(|| per_request()[0]))
}

/// A server's machine whose client is the test.
pub struct CheckedServer {
    raw: RawServer,
    asked: Asked,
    revision: &'static str,
}

impl CheckedServer {
    /// A server that speaks this revision with whoever has not said another one.
    ///
    /// # Panics
    /// When the revision is not compiled in.
    pub fn new(config: ServerConfig, revision: &str) -> Self {
        Self {
            raw: RawServer::new(config),
            asked: Asked::default(),
            revision: known(revision),
        }
    }

    /// A server of one revision that is ready, with these capabilities of its client: a session has begun where the
    /// revision has sessions.
    ///
    /// # Panics
    /// When it is not.
    pub fn ready(config: ServerConfig, revision: &str, capabilities: Value) -> Self {
        let mut server = Self::new(config, revision);
        if era(revision) == Some(Era::Handshake) {
            let answers = server.send(&initialize(revision, capabilities));
            assert_eq!(answers[0]["result"]["protocolVersion"], revision);
            server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
            server.events();
        }
        server
    }

    /// Sends a message and gives what comes back at once.
    #[track_caller]
    pub fn send(&mut self, message: &Value) -> Vec<Value> {
        self.asked.note(message, self.revision);
        let sent = self.raw.send(message);
        self.check(sent)
    }

    /// Sends any text and gives what comes back at once.
    #[track_caller]
    pub fn send_text(&mut self, text: &str) -> Vec<Value> {
        let sent = self.raw.send_text(text);
        self.check(sent)
    }

    /// What leaves.
    #[track_caller]
    pub fn drain(&mut self) -> Vec<Value> {
        let sent = self.raw.drain();
        self.check(sent)
    }

    /// Serves a request that comes now: its key.
    ///
    /// # Panics
    /// When it is not raised.
    #[track_caller]
    pub fn serve(&mut self, message: &Value) -> Incoming<()> {
        let answers = self.send(message);
        assert!(answers.is_empty(), "{answers:?}");
        self.request()
    }

    /// Replies to a request and gives what leaves.
    ///
    /// # Panics
    /// When the machine refuses the reply.
    #[track_caller]
    pub fn reply(&mut self, key: RequestKey, reply: impl Into<Reply>) -> Vec<Value> {
        let now = self.now;
        self.machine.reply(key, reply, now).expect("it may");
        self.drain()
    }

    #[track_caller]
    fn check(&self, sent: Vec<Value>) -> Vec<Value> {
        for message in &sent {
            self.asked.check(false, message, self.revision);
        }
        sent
    }
}

impl Deref for CheckedServer {
    type Target = RawServer;

    fn deref(&self) -> &RawServer {
        &self.raw
    }
}

impl DerefMut for CheckedServer {
    fn deref_mut(&mut self) -> &mut RawServer {
        &mut self.raw
    }
}

/// A client's machine whose server is the test.
pub struct CheckedClient {
    raw: RawClient,
    asked: Asked,
    revision: &'static str,
}

impl CheckedClient {
    /// A client that begins.
    ///
    /// # Panics
    /// When the revision is not compiled in.
    pub fn new(config: ClientConfig, revision: &str) -> Self {
        Self {
            raw: RawClient::new(config),
            asked: Asked::default(),
            revision: known(revision),
        }
    }

    /// A client that is ready, at a server of a revision with these capabilities.
    ///
    /// # Panics
    /// When it does not become ready.
    pub fn ready(config: ClientConfig, revision: &str, capabilities: Value) -> Self {
        let mut client = Self {
            raw: RawClient::begun(config, revision, capabilities),
            asked: Asked::default(),
            revision: known(revision),
        };
        client.drain();
        client
    }

    /// Sends a message and gives what comes back at once.
    #[track_caller]
    pub fn send(&mut self, message: &Value) -> Vec<Value> {
        self.asked.note(message, self.revision);
        let sent = self.raw.send(message);
        self.check(sent)
    }

    /// What leaves.
    #[track_caller]
    pub fn drain(&mut self) -> Vec<Value> {
        let sent = self.raw.drain();
        self.check(sent)
    }

    /// Sends a request, with a progress token, and gives its key and its message.
    ///
    /// # Panics
    /// When it does not leave.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> (RequestKey, Value) {
        let (key, message) = self.raw.request(method, params);
        let mut sent = self.check(vec![message]);
        (key, sent.remove(0))
    }

    /// Tries to send a request; what the machine says.
    pub fn try_request(&mut self, method: &str, params: Value) -> Result<RequestKey, SendError> {
        let (now, params) = (self.now, (!params.is_null()).then(|| object(params)));
        self.machine
            .request(method, params, CallOptions::default(), now)
    }

    /// Answers a question and gives what leaves.
    ///
    /// # Panics
    /// When it does not wait for an answer.
    #[track_caller]
    pub fn answer(&mut self, key: AskKey, answer: Value) -> Vec<Value> {
        let now = self.now;
        let answered = self.machine.answer(key, Ok(result(answer)), now);
        answered.expect("it waits");
        self.drain()
    }

    /// The questions among what has happened; the rest is forgotten.
    pub fn asks(&mut self) -> Vec<(AskKey, mcp_exact_session::Asked)> {
        let ask = |event| match event {
            ClientEvent::Ask { key, ask, .. } => Some((key, ask)),
            _ => None,
        };
        self.events().into_iter().filter_map(ask).collect()
    }

    #[track_caller]
    fn check(&self, sent: Vec<Value>) -> Vec<Value> {
        for message in &sent {
            self.asked.check(true, message, self.revision);
        }
        sent
    }
}

impl Deref for CheckedClient {
    type Target = RawClient;

    fn deref(&self) -> &RawClient {
        &self.raw
    }
}

impl DerefMut for CheckedClient {
    fn deref_mut(&mut self) -> &mut RawClient {
        &mut self.raw
    }
}

fn known(revision: &str) -> &'static str {
    let mut all = all().into_iter();
    all.find(|known| *known == revision).expect("compiled in")
}

/// A client that is ready, at a server of a revision with tools, resources and prompts.
///
/// # Panics
/// When it does not become ready.
pub fn client_at(revision: &str) -> CheckedClient {
    let capabilities = json!({ "tools": {}, "resources": {}, "prompts": {} });
    CheckedClient::ready(client_config(&[revision]), revision, capabilities)
}

/// A request as a client of a revision sends it: with the capabilities in it where the revision wants them there.
pub fn request_at(
    revision: &str,
    id: impl Into<Value>,
    method: &str,
    params: Value,
    capabilities: Value,
) -> Value {
    let mut params = if params.is_null() { json!({}) } else { params };
    if era(revision) == Some(Era::PerRequest) {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(revision);
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities;
    }
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}
