//! One machine, and messages as JSON on the other side.
//!
//! Takes values and gives values, so that a test can be the other side and do what it likes. What the machine sends is held
//! against the schema of its revision, what the test sends is not.

use serde_json::{Value, json};

use crate::*;

/// A server's machine whose client is the test.
pub struct RawServer {
    /// The machine.
    pub machine: ServerEndpoint<()>,
    /// The moment.
    pub now: Time,
    checker: SchemaChecker,
    /// The one revision that is spoken, where there is one.
    speaks: Option<Revision>,
}

impl RawServer {
    /// A server that nobody has spoken to.
    pub fn new(config: ServerConfig) -> Self {
        Self {
            speaks: only(&config.offer),
            ..Self::of(server(config), Time::ZERO)
        }
    }

    /// A machine at a moment.
    pub fn of(machine: ServerEndpoint<()>, now: Time) -> Self {
        Self {
            machine,
            now,
            checker: SchemaChecker::default(),
            speaks: None,
        }
    }

    /// The same with another revision for what names none.
    pub(crate) fn speaking(self, revision: &str) -> Self {
        Self {
            speaks: Some(offer(&[revision]).revisions[0]),
            ..self
        }
    }

    /// A server whose session with a client of a revision has begun, with these capabilities of the client.
    ///
    /// # Panics
    /// When it does not begin.
    pub fn begun(config: ServerConfig, revision: &str, capabilities: Value) -> Self {
        let mut raw = Self::new(config);
        let answers = raw.send(&initialize(revision, capabilities));
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(answers[0]["result"]["protocolVersion"], revision);
        let nothing = raw.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert!(nothing.is_empty(), "{nothing:?}");
        raw.events();
        raw
    }

    /// Sends a message and gives what comes back at once.
    #[track_caller]
    pub fn send(&mut self, message: &Value) -> Vec<Value> {
        self.send_text(&message.to_string())
    }

    /// Sends any text and gives what comes back at once.
    ///
    /// # Panics
    /// When the machine is closed.
    #[track_caller]
    pub fn send_text(&mut self, text: &str) -> Vec<Value> {
        if let Ok(message) = serde_json::from_str(text) {
            self.checker.heard(true, &message);
        }
        let received = self.machine.receive(
            StreamId::DUPLEX,
            text.as_bytes(),
            FrameContext::new(()),
            self.now,
        );
        received.expect("open");
        self.drain()
    }

    /// What leaves.
    ///
    /// # Panics
    /// When it is not valid.
    #[track_caller]
    pub fn drain(&mut self) -> Vec<Value> {
        let texts = self.texts().into_iter();
        texts
            .map(|text| serde_json::from_str(&text).expect("JSON"))
            .collect()
    }

    /// What leaves, as it is spelt.
    ///
    /// # Panics
    /// When it is not valid.
    #[track_caller]
    pub fn texts(&mut self) -> Vec<String> {
        let texts = drain(|out| self.machine.poll_transmit(out));
        let agreed = self.machine.session_info().map(|agreed| agreed.revision);
        let agreed = self.speaks.or(agreed);
        for text in &texts {
            self.checker
                .frame(false, text.as_bytes(), agreed.map(Revision::as_str));
        }
        texts
    }

    /// What has happened.
    pub fn events(&mut self) -> Vec<ServerEvent<()>> {
        std::iter::from_fn(|| self.machine.poll_event()).collect()
    }

    /// The violations among what has happened; the rest is forgotten.
    pub fn violations(&mut self) -> Vec<Violation> {
        let violation = |event| match event {
            ServerEvent::Violation(violation) => Some(violation),
            _ => None,
        };
        self.events().into_iter().filter_map(violation).collect()
    }

    /// The one request among what has happened.
    ///
    /// # Panics
    /// When there is none.
    pub fn request(&mut self) -> IncomingRequest<()> {
        let request = |event| match event {
            ServerEvent::Request(request) => Some(request),
            _ => None,
        };
        self.events()
            .into_iter()
            .find_map(request)
            .expect("a request")
    }
}

/// A client's machine whose server is the test.
pub struct RawClient {
    /// The machine.
    pub machine: ClientEndpoint,
    /// The moment.
    pub now: Time,
    checker: SchemaChecker,
    /// The one revision that is spoken, where there is one.
    speaks: Option<Revision>,
}

impl RawClient {
    /// A client that begins.
    pub fn new(config: ClientConfig) -> Self {
        Self {
            speaks: only(&config.offer),
            ..Self::of(client(config), Time::ZERO)
        }
    }

    /// A machine at a moment.
    pub fn of(machine: ClientEndpoint, now: Time) -> Self {
        Self {
            machine,
            now,
            checker: SchemaChecker::default(),
            speaks: None,
        }
    }

    /// The same with another revision for what names none.
    pub(crate) fn speaking(self, revision: &str) -> Self {
        Self {
            speaks: Some(offer(&[revision]).revisions[0]),
            ..self
        }
    }

    /// A client whose session with a server of a revision has begun, with these capabilities of the server.
    ///
    /// # Panics
    /// When it does not begin.
    pub fn begun(config: ClientConfig, revision: &str, capabilities: Value) -> Self {
        let mut raw = Self::new(config);
        let first = raw.drain().remove(0);
        let answer = match lifecycle(revision) {
            Some(Lifecycle::Discover) => {
                assert_eq!(first["method"], "server/discover");
                json!({ "jsonrpc": "2.0", "id": first["id"], "result": {
                    "resultType": "complete", "supportedVersions": [revision],
                    "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private",
                } })
            }
            _ => {
                assert_eq!(first["method"], "initialize");
                json!({ "jsonrpc": "2.0", "id": first["id"], "result": {
                    "protocolVersion": revision, "capabilities": capabilities,
                    "serverInfo": { "name": "s", "version": "1" },
                } })
            }
        };
        raw.send(&answer);
        let agreed = raw.events();
        assert!(
            matches!(agreed[..], [ClientEvent::Negotiated(..)]),
            "{agreed:?}"
        );
        raw
    }

    /// Sends a message and gives what comes back at once.
    #[track_caller]
    pub fn send(&mut self, message: &Value) -> Vec<Value> {
        self.send_text(&message.to_string())
    }

    /// Sends any text and gives what comes back at once.
    ///
    /// # Panics
    /// When the machine is closed.
    #[track_caller]
    pub fn send_text(&mut self, text: &str) -> Vec<Value> {
        if let Ok(message) = serde_json::from_str(text) {
            self.checker.heard(false, &message);
        }
        let received = self
            .machine
            .receive(StreamId::DUPLEX, text.as_bytes(), self.now);
        received.expect("open");
        self.drain()
    }

    /// What leaves.
    ///
    /// # Panics
    /// When it is not valid.
    #[track_caller]
    pub fn drain(&mut self) -> Vec<Value> {
        let texts = self.texts().into_iter();
        texts
            .map(|text| serde_json::from_str(&text).expect("JSON"))
            .collect()
    }

    /// What leaves, as it is spelt.
    ///
    /// # Panics
    /// When it is not valid.
    #[track_caller]
    pub fn texts(&mut self) -> Vec<String> {
        let texts = drain(|out| self.machine.poll_transmit(out));
        let agreed = self.machine.session_info().map(|agreed| agreed.revision);
        let agreed = self.speaks.or(agreed);
        for text in &texts {
            self.checker
                .frame(true, text.as_bytes(), agreed.map(Revision::as_str));
        }
        texts
    }

    /// What has happened.
    pub fn events(&mut self) -> Vec<ClientEvent> {
        std::iter::from_fn(|| self.machine.poll_event()).collect()
    }

    /// The violations among what has happened; the rest is forgotten.
    pub fn violations(&mut self) -> Vec<Violation> {
        let violation = |event| match event {
            ClientEvent::Violation(violation) => Some(violation),
            _ => None,
        };
        self.events().into_iter().filter_map(violation).collect()
    }

    /// How requests have ended; the rest is forgotten.
    pub fn outcomes(&mut self) -> Vec<(RequestKey, Outcome)> {
        let done = |event| match event {
            ClientEvent::Completed(key, outcome) => Some((key, outcome)),
            _ => None,
        };
        self.events().into_iter().filter_map(done).collect()
    }

    /// Sends a request and gives its key and its message.
    ///
    /// # Panics
    /// When it does not leave.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> (RequestKey, Value) {
        let options = CallOptions {
            progress: true,
            ..CallOptions::default()
        };
        let params = (!params.is_null()).then(|| object(params));
        let key = self.machine.request(method, params, options, self.now);
        (key.expect(method), self.drain().remove(0))
    }
}

fn drain(mut poll: impl FnMut(&mut Vec<u8>) -> Option<Transmit>) -> Vec<String> {
    let mut texts = Vec::new();
    let mut out = Vec::new();
    while let Some(transmit) = poll(&mut out) {
        let bytes = std::mem::take(&mut out);
        if matches!(transmit, Transmit::Frame { .. }) {
            assert!(
                !bytes.contains(&b'\n') && !bytes.contains(&b'\r'),
                "one line"
            );
            texts.push(String::from_utf8(bytes).expect("UTF-8"));
        }
    }
    texts
}

/// The one revision of an offer.
fn only(offer: &Offer) -> Option<Revision> {
    match offer.revisions[..] {
        [revision] => Some(revision),
        _ => None,
    }
}

/// An `initialize` of a client.
pub fn initialize(revision: &str, capabilities: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": capabilities,
        "clientInfo": { "name": "c", "version": "1" },
    } })
}
