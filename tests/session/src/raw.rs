//! Test harness of one endpoint: the test writes and reads the messages of its peer as JSON.
//!
//! The harness accepts and returns JSON values, so that a test can act as the peer without any restriction. Messages of
//! the endpoint are checked against the schema of its revision; messages of the test are not checked.

use serde_json::{Value, json};

use crate::*;

/// Harness of a server endpoint; the test acts as its client.
///
/// Messages are passed through the [`Entrance`] of the process.
pub struct RawServer {
    /// The endpoint under test.
    pub endpoint: ServerEndpoint<()>,
    /// Simulated time of the endpoint.
    pub now: Time,
    /// Entry point through which messages are passed.
    entrance: Entrance,
    /// Standalone stream; `None` unless messages are passed over HTTP.
    standalone: Option<StreamId>,
    /// Schema checker of the endpoint's messages.
    checker: SchemaChecker,
    /// The offered revision if the configuration offers exactly one, else `None`.
    only_revision: Option<Revision>,
}

impl RawServer {
    /// Creates a server that has not received messages.
    pub fn new(config: ServerConfig) -> Self {
        let entrance = Entrance::of_process();
        let speaks = only_revision(&config.offer);
        let settings = config.build().expect("a configuration");
        let mut endpoint =
            ServerEndpoint::new(settings, entrance.transport_binding(speaks), Time::ZERO);
        let standalone = (entrance.transport_binding(speaks) == Binding::HttpSse)
            .then(|| endpoint.open(StreamKind::Standalone).expect("a stream"));
        Self {
            only_revision: speaks,
            entrance,
            standalone,
            ..Self::from_endpoint(endpoint, Time::ZERO)
        }
    }

    /// Wraps an endpoint on a duplex stream whose simulated time is `now`.
    pub fn from_endpoint(endpoint: ServerEndpoint<()>, now: Time) -> Self {
        Self {
            endpoint,
            now,
            entrance: Entrance::Duplex,
            standalone: None,
            checker: SchemaChecker::default(),
            only_revision: None,
        }
    }

    /// Sets the revision that is assumed for messages that name no revision.
    pub(crate) fn with_revision(self, revision: &str) -> Self {
        Self {
            only_revision: Some(offer_of(&[revision]).revisions[0]),
            ..self
        }
    }

    /// Creates a server with a started session, for a client with this revision and these capabilities.
    ///
    /// # Panics
    /// If the session does not begin.
    pub fn with_session(config: ServerConfig, revision: &str, capabilities: Value) -> Self {
        let mut raw = Self::new(config);
        let answers = raw.send(&initialize(revision, capabilities));
        assert_eq!(answers.len(), 1, "{answers:?}");
        assert_eq!(answers[0]["result"]["protocolVersion"], revision);
        let nothing = raw.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert!(nothing.is_empty(), "{nothing:?}");
        raw.events();
        raw
    }

    /// Sends a message and returns the messages that are sent in response.
    #[track_caller]
    pub fn send(&mut self, message: &Value) -> Vec<Value> {
        self.send_text(&message.to_string())
    }

    /// Sends a text that need not be a valid message, and returns the messages that are sent in response.
    ///
    /// # Panics
    /// If the endpoint is closed.
    #[track_caller]
    pub fn send_text(&mut self, text: &str) -> Vec<Value> {
        if let Ok(message) = serde_json::from_str(text) {
            self.checker.record_message(true, &message);
        }
        let agreed = self.endpoint.session_info().map(|agreed| agreed.revision);
        let mut with = FrameContext::new(());
        let stream = match self.entrance {
            Entrance::Duplex | Entrance::Batch => StreamId::DUPLEX,
            Entrance::Http => {
                with.http = Some(http_request_of(text, agreed.or(self.only_revision)));
                self.endpoint.open(StreamKind::Post).expect("a stream")
            }
        };
        let text = self.entrance.frame_message(text, agreed);
        let received = self
            .endpoint
            .receive(stream, text.as_bytes(), with, self.now);
        received.expect("open");
        let agreed = self.endpoint.session_info().is_some();
        if self.entrance == Entrance::Http && agreed && self.standalone.is_none() {
            self.standalone = self.endpoint.open(StreamKind::Standalone).ok();
        }
        self.take_messages()
    }

    /// Removes and returns the outgoing messages.
    ///
    /// # Panics
    ///
    /// If a message violates the schema.
    #[track_caller]
    pub fn take_messages(&mut self) -> Vec<Value> {
        let texts = self.take_texts().into_iter();
        texts
            .map(|text| serde_json::from_str(&text).expect("JSON"))
            .collect()
    }

    /// Removes and returns the outgoing messages as text.
    ///
    /// # Panics
    ///
    /// If a message violates the schema.
    #[track_caller]
    pub fn take_texts(&mut self) -> Vec<String> {
        let texts = take_messages(|out| self.endpoint.poll_transmit(out)).into_iter();
        let texts: Vec<String> = texts
            .flat_map(|(_, text)| self.entrance.split_frame(text))
            .collect();
        let agreed = self.endpoint.session_info().map(|agreed| agreed.revision);
        let agreed = self.only_revision.or(agreed);
        for text in &texts {
            self.checker
                .check_frame(false, text.as_bytes(), agreed.map(Revision::as_str));
        }
        texts
    }

    /// Removes and returns the events of the endpoint.
    pub fn events(&mut self) -> Vec<ServerEvent<()>> {
        std::iter::from_fn(|| self.endpoint.poll_event()).collect()
    }

    /// Returns the violations among the pending events and discards all other events.
    pub fn violations(&mut self) -> Vec<Violation> {
        let violation = |event| match event {
            ServerEvent::Violation(violation) => Some(violation),
            _ => None,
        };
        self.events().into_iter().filter_map(violation).collect()
    }

    /// Removes the pending events and returns the request among them.
    ///
    /// # Panics
    ///
    /// If the events contain no request.
    pub fn take_request(&mut self) -> IncomingRequest<()> {
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

/// Harness of a client endpoint; the test acts as its server.
///
/// Messages are passed through the [`Entrance`] of the process.
pub struct RawClient {
    /// The endpoint under test.
    pub endpoint: ClientEndpoint,
    /// Simulated time of the endpoint.
    pub now: Time,
    /// Entry point through which messages are passed.
    entrance: Entrance,
    /// Standalone stream; `None` unless messages are passed over HTTP.
    standalone: Option<StreamId>,
    /// Id (as JSON) and stream of each request whose POST is open, oldest first.
    open_posts: Vec<(String, StreamId)>,
    /// Schema checker of the endpoint's messages.
    checker: SchemaChecker,
    /// The offered revision if the configuration offers exactly one, else `None`.
    only_revision: Option<Revision>,
}

impl RawClient {
    /// Creates a client that starts the negotiation.
    pub fn new(config: ClientConfig) -> Self {
        let entrance = Entrance::of_process();
        let speaks = only_revision(&config.offer);
        let settings = config.build().expect("a configuration");
        let binding = entrance.transport_binding(speaks);
        let mut endpoint = ClientEndpoint::new(settings, binding, None, Time::ZERO);
        let standalone = (binding == Binding::HttpSse).then(|| {
            let stream = endpoint.open_standalone();
            endpoint.set_endpoint_known();
            stream
        });
        Self {
            only_revision: speaks,
            entrance,
            standalone,
            ..Self::from_endpoint(endpoint, Time::ZERO)
        }
    }

    /// Wraps an endpoint on a duplex stream whose simulated time is `now`.
    pub fn from_endpoint(endpoint: ClientEndpoint, now: Time) -> Self {
        Self {
            endpoint,
            now,
            entrance: Entrance::Duplex,
            standalone: None,
            open_posts: Vec::new(),
            checker: SchemaChecker::default(),
            only_revision: None,
        }
    }

    /// Sets the revision that is assumed for messages that name no revision.
    pub(crate) fn with_revision(self, revision: &str) -> Self {
        Self {
            only_revision: Some(offer_of(&[revision]).revisions[0]),
            ..self
        }
    }

    /// Creates a client with a started session, for a server with this revision and these capabilities.
    ///
    /// # Panics
    /// If the session does not begin.
    pub fn with_session(config: ClientConfig, revision: &str, capabilities: Value) -> Self {
        let mut raw = Self::new(config);
        let first = raw.take_messages().remove(0);
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

    /// Sends a message and returns the messages that are sent in response.
    #[track_caller]
    pub fn send(&mut self, message: &Value) -> Vec<Value> {
        self.send_text(&message.to_string())
    }

    /// Sends a text that need not be a valid message, and returns the messages that are sent in response.
    ///
    /// # Panics
    /// If the endpoint is closed.
    #[track_caller]
    pub fn send_text(&mut self, text: &str) -> Vec<Value> {
        if let Ok(message) = serde_json::from_str(text) {
            self.checker.record_message(false, &message);
        }
        let agreed = self.endpoint.session_info().map(|agreed| agreed.revision);
        let stream = self.stream_of(text);
        let text = self.entrance.frame_message(text, agreed);
        let received = self.endpoint.receive(stream, text.as_bytes(), self.now);
        received.expect("open");
        self.take_messages()
    }

    /// Returns the stream on which a message of the server arrives: a response on the stream of its POST, a
    /// notification of 2026-07-28 or later on the stream of a request, everything else on the standalone stream.
    fn stream_of(&mut self, text: &str) -> StreamId {
        if self.entrance != Entrance::Http {
            return StreamId::DUPLEX;
        }
        let sse = self.standalone.filter(|_| self.open_posts.is_empty());
        if let Some(stream) = sse {
            return stream;
        }
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        let id = message["id"].to_string();
        let place = match message.get("method") {
            None => self.open_posts.iter().position(|(known, _)| *known == id),
            Some(_) => None,
        };
        if let Some(place) = place {
            return self.open_posts[place].1;
        }
        let agreed = self.endpoint.session_info().map(|agreed| agreed.revision);
        let discover = agreed
            .or(self.only_revision)
            .map(Revision::as_str)
            .and_then(lifecycle)
            == Some(Lifecycle::Discover);
        match self.newest_open_post() {
            Some(stream) if discover => stream,
            // The test sends an unsolicited message: on the response stream of an otherwise unused request.
            None if discover => {
                let options = CallOptions::default();
                let asked = self.endpoint.request("tools/list", None, options, self.now);
                asked.expect("a POST");
                take_messages(|out| self.endpoint.poll_transmit(out))[0].0
            }
            _ => match self.standalone {
                Some(stream) => stream,
                None => {
                    let stream = self.endpoint.open_standalone();
                    self.standalone = Some(stream);
                    stream
                }
            },
        }
    }

    /// Removes and returns the outgoing messages.
    ///
    /// # Panics
    ///
    /// If a message violates the schema.
    #[track_caller]
    pub fn take_messages(&mut self) -> Vec<Value> {
        let texts = self.take_texts().into_iter();
        texts
            .map(|text| serde_json::from_str(&text).expect("JSON"))
            .collect()
    }

    /// Removes and returns the outgoing messages as text.
    ///
    /// # Panics
    ///
    /// If a message violates the schema.
    #[track_caller]
    pub fn take_texts(&mut self) -> Vec<String> {
        let sent = take_messages(|out| self.endpoint.poll_transmit(out));
        if self.entrance == Entrance::Http {
            for (stream, text) in &sent {
                self.record_post(*stream, text);
            }
        }
        let texts: Vec<String> = sent
            .into_iter()
            .flat_map(|(_, text)| self.entrance.split_frame(text))
            .collect();
        let agreed = self.endpoint.session_info().map(|agreed| agreed.revision);
        let agreed = self.only_revision.or(agreed);
        for text in &texts {
            self.checker
                .check_frame(true, text.as_bytes(), agreed.map(Revision::as_str));
        }
        texts
    }

    /// Returns the stream of the newest unanswered POST.
    fn newest_open_post(&self) -> Option<StreamId> {
        let mut posts = self.open_posts.iter().rev().map(|(_, stream)| *stream);
        posts.find(|stream| self.endpoint.is_waiting_on(*stream))
    }

    /// Simulates the server's HTTP response: a POST with a request stays open for its response; any other POST, and
    /// every POST of HTTP+SSE, gets its status immediately.
    fn record_post(&mut self, stream: StreamId, text: &str) {
        let message: Value = serde_json::from_str(text).expect("JSON");
        let request = message.get("id").is_some() && message.get("method").is_some();
        let sse = self.only_revision.map(Revision::as_str) == Some("2024-11-05");
        if request && !sse {
            self.open_posts.push((message["id"].to_string(), stream))
        } else {
            self.endpoint
                .handle_close(stream, StreamEnd::Clean, self.now)
        }
    }

    /// Removes and returns the events of the endpoint.
    pub fn events(&mut self) -> Vec<ClientEvent> {
        std::iter::from_fn(|| self.endpoint.poll_event()).collect()
    }

    /// Returns the violations among the pending events and discards all other events.
    pub fn violations(&mut self) -> Vec<Violation> {
        let violation = |event| match event {
            ClientEvent::Violation(violation) => Some(violation),
            _ => None,
        };
        self.events().into_iter().filter_map(violation).collect()
    }

    /// Returns the outcomes of requests among the pending events and discards all other events.
    pub fn outcomes(&mut self) -> Vec<(RequestKey, Outcome)> {
        let done = |event| match event {
            ClientEvent::Completed(key, outcome) => Some((key, outcome)),
            _ => None,
        };
        self.events().into_iter().filter_map(done).collect()
    }

    /// Sends a request and returns its key and its message.
    ///
    /// # Panics
    /// If the request is not sent.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> (RequestKey, Value) {
        let options = CallOptions {
            progress: true,
            ..CallOptions::default()
        };
        let params = (!params.is_null()).then(|| to_object(params));
        let key = self.endpoint.request(method, params, options, self.now);
        (key.expect(method), self.take_messages().remove(0))
    }
}

/// Returns the head of the HTTP request with which a client of the revision posts a message.
fn http_request_of(text: &str, revision: Option<Revision>) -> HttpRequest {
    let message: Value = serde_json::from_str(text).unwrap_or_default();
    let params = &message["params"];
    let own = params["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
    let revision = own.or(revision.map(Revision::as_str)).unwrap_or_default();
    let begins = message["method"] == "initialize";
    let name = [&params["name"], &params["uri"]];
    let name = name.into_iter().find_map(Value::as_str);
    let headers = [
        ("MCP-Protocol-Version", Some(revision).filter(|_| !begins)),
        ("Mcp-Method", message["method"].as_str()),
        ("Mcp-Name", name),
    ];
    let headers: Vec<(&str, &str)> = headers
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .collect();
    http_request(&headers)
}

/// Removes and returns the frames that `poll` yields, each with its stream.
fn take_messages(
    mut poll: impl FnMut(&mut Vec<u8>) -> Option<Transmit>,
) -> Vec<(StreamId, String)> {
    let mut texts = Vec::new();
    let mut out = Vec::new();
    while let Some(transmit) = poll(&mut out) {
        let bytes = std::mem::take(&mut out);
        if let Transmit::Frame { stream, .. } = transmit {
            assert!(
                !bytes.contains(&b'\n') && !bytes.contains(&b'\r'),
                "one line"
            );
            texts.push((stream, String::from_utf8(bytes).expect("UTF-8")));
        }
    }
    texts
}

/// Returns the revision of an offer that contains exactly one revision, else `None`.
fn only_revision(offer: &Offer) -> Option<Revision> {
    match offer.revisions[..] {
        [revision] => Some(revision),
        _ => None,
    }
}

/// Creates an `initialize` request for the revision, with the client capabilities `capabilities`.
pub fn initialize(revision: &str, capabilities: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": capabilities,
        "clientInfo": { "name": "c", "version": "1" },
    } })
}
