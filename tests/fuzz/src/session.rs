//! Client and server in memory, with all inputs chosen by bytes: revisions, binding, actions of both applications,
//! faults of the network, and hostile frames.
//!
//! Panics if a property is violated: each endpoint stays within its limits, each outgoing frame is one JSON message on
//! one line, each request of either role ends exactly once, and no request is answered twice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use mcp_exact_session::*;
use mcp_exact_wire::{Kind, from_slice};

use crate::event_names::{client_event_name, server_event_name};
use crate::hostile::{Choices, frame};
use crate::sides::{client, limits, object, server};

/// Runs the simulated network that the input describes to its end.
pub fn session(bytes: &[u8]) {
    run_and_collect_events(bytes);
}

/// Runs the simulated network that the input describes to its end; returns the names of the events that have occurred.
pub fn run_and_collect_events(bytes: &[u8]) -> BTreeSet<&'static str> {
    let mut choices = Choices::new(bytes);
    let mut world = SimulatedNetwork::new(&mut choices);
    while !choices.is_empty() {
        world.act_randomly(&mut choices);
        world.check();
    }
    world.finish()
}

/// Methods of the requests that the client sends.
const METHODS: [&str; 14] = [
    "tools/list",
    "tools/call",
    "resources/read",
    "prompts/get",
    "ping",
    "subscriptions/listen",
    "resources/subscribe",
    "logging/setLevel",
    "completion/complete",
    "roots/list",
    "sampling/createMessage",
    "elicitation/create",
    "x/vendor",
    "nothing",
];

/// Frame of the client in transit: its stream, bytes and headers.
type FrameInTransit = (StreamId, Vec<u8>, Vec<(String, String)>);

/// Client and server that are connected by an unreliable network, with a simulated clock.
struct SimulatedNetwork {
    /// Client endpoint under test.
    client: ClientEndpoint,
    /// Server endpoint under test.
    server: ServerEndpoint<()>,
    /// Simulated time.
    now: Time,
    /// Frames in transit to the server.
    to_server: VecDeque<FrameInTransit>,
    /// Frames in transit to the client: stream, bytes and HTTP status.
    to_client: VecDeque<(StreamId, Vec<u8>, u16)>,
    /// Server's stream for each stream of the client.
    server_stream_of: BTreeMap<StreamId, StreamId>,
    /// Client's stream for each stream of the server.
    client_stream_of: BTreeMap<StreamId, StreamId>,
    /// Transport binding of both endpoints.
    binding: Binding,
    /// Requests that the server's application has not answered.
    pending_requests: Vec<RequestKey>,
    /// Server requests that the client's application has not answered.
    pending_server_requests: Vec<ServerRequestKey>,
    /// Number of outcomes that the client has received for each of its requests.
    request_ends: BTreeMap<RequestKey, usize>,
    /// Number of outcomes that the server has received for each of its requests.
    server_ends: BTreeMap<RequestKey, usize>,
    /// Names of the events that have occurred so far.
    observed: BTreeSet<&'static str>,
}

impl SimulatedNetwork {
    /// Creates both endpoints with revisions, a binding and limits that the next bytes select.
    fn new(choices: &mut Choices<'_>) -> Self {
        let binding = [
            Binding::Duplex,
            Binding::StreamableHttp,
            Binding::HttpSse,
            Binding::Duplex,
        ][usize::from(choices.next_byte()) % 4];
        let client = ClientEndpoint::new(
            client(choices).build().expect("revisions are offered"),
            binding,
            None,
            Time::ZERO,
        );
        let server = ServerEndpoint::new(
            server(choices).build().expect("revisions are offered"),
            binding,
            Time::ZERO,
        );
        let mut world = Self {
            client,
            server,
            now: Time::ZERO,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            server_stream_of: BTreeMap::new(),
            client_stream_of: BTreeMap::new(),
            binding,
            pending_requests: Vec::new(),
            pending_server_requests: Vec::new(),
            request_ends: BTreeMap::new(),
            server_ends: BTreeMap::new(),
            observed: BTreeSet::new(),
        };
        match binding {
            Binding::Duplex => world.connect(StreamId::DUPLEX, StreamId::DUPLEX),
            Binding::HttpSse => world.open_standalone(),
            Binding::StreamableHttp => {}
        }
        world
    }

    /// Records that a stream of the client and a stream of the server are the two ends of one connection.
    fn connect(&mut self, client: StreamId, server: StreamId) {
        self.server_stream_of.insert(client, server);
        self.client_stream_of.insert(server, client);
    }

    /// Opens the standalone stream at both endpoints.
    fn open_standalone(&mut self) {
        if let Ok(server) = self.server.open(StreamKind::Standalone) {
            let client = self.client.open_standalone();
            self.connect(client, server);
        }
    }

    /// Runs the action of an application, the network or the clock that the next byte selects.
    fn act_randomly(&mut self, choices: &mut Choices<'_>) {
        match choices.next_byte() % 22 {
            0 | 1 => self.request(choices),
            2 => self.cancel(choices),
            3 | 4 => self.reply(choices),
            5 => self.answer(choices),
            6 => self.send_list_changed(choices),
            7..=9 => self.deliver(choices, true),
            10..=12 => self.deliver(choices, false),
            13 => self.deliver_hostile_frame(choices, true),
            14 => self.deliver_hostile_frame(choices, false),
            15 => self.wait(choices),
            16 => self.handle_events(),
            17 => self.ask_client(choices),
            18 => self.break_stream(choices),
            19 => self.send_log_or_progress(choices),
            _ => {
                self.queue_output();
                self.handle_events();
            }
        }
        // A program that is slow is told so, and has to drain then.
        if !self.client.wants_input() || !self.server.wants_input() || choices.chance(220) {
            self.queue_output();
            self.handle_events();
        }
    }

    /// Returns params that the next bytes select.
    fn params(choices: &mut Choices<'_>) -> Option<JsonObject> {
        let texts = [
            r#"{"name":"x","uri":"a:b","arguments":{"region":"e"},"notifications":{"toolsListChanged":true}}"#,
            r#"{"uri":"a:c","level":"debug","notifications":{"resourceSubscriptions":["a:c"]}}"#,
            r#"{"messages":[],"maxTokens":1,"message":"m","requestedSchema":{"type":"object","properties":{}}}"#,
            "{\"x\":\n[1,\r2]}",
        ];
        let at = usize::from(choices.next_byte()) % (texts.len() + 1);
        texts.get(at).map(|text| object(text))
    }

    /// Sends a request of the client.
    fn request(&mut self, choices: &mut Choices<'_>) {
        let method = choices.pick_text(&METHODS);
        let params = Self::params(choices);
        let options = CallOptions {
            progress: choices.chance(128),
            log_level: choices.chance(128).then_some(Level::Debug),
            ..CallOptions::default()
        };
        if let Ok(key) = self.client.request(method, params, options, self.now) {
            assert_eq!(
                self.request_ends.insert(key, 0),
                None,
                "keys are never used twice"
            );
        }
    }

    /// Sends a request of the server.
    fn ask_client(&mut self, choices: &mut Choices<'_>) {
        let method = choices.pick_text(&METHODS);
        let params = Self::params(choices);
        let during = self.pending_requests.last().filter(|_| choices.chance(100));
        let scope = during.map_or(Scope::Peer, |key| Scope::During(*key));
        let options = CallOptions {
            progress: choices.chance(128),
            ..CallOptions::default()
        };
        if let Ok(key) = self
            .server
            .request(scope, method, params, options, self.now)
        {
            assert_eq!(self.server_ends.insert(key, 0), None);
        }
    }

    /// Cancels a request of the client, and with a certain probability also a request of the server.
    fn cancel(&mut self, choices: &mut Choices<'_>) {
        let keys: Vec<RequestKey> = self.request_ends.keys().copied().collect();
        if let Some(key) = choices.pick_of(&keys) {
            self.client.cancel(key, "enough", self.now);
        }
        let keys: Vec<RequestKey> = self.server_ends.keys().copied().collect();
        if let Some(key) = choices.pick_of(&keys).filter(|_| choices.chance(64)) {
            self.server.cancel(key, "enough", self.now);
        }
    }

    /// Replies to a request of the client.
    fn reply(&mut self, choices: &mut Choices<'_>) {
        let Some(key) = choices.pick_of(&self.pending_requests) else {
            return;
        };
        let reply = match choices.next_byte() % 6 {
            0 => {
                let asks = vec![
                    ("a".to_owned(), InputRequest::new("roots/list", None)),
                    ("b".to_owned(), InputRequest::new("roots/list", None)),
                ];
                let state = choices.chance(128).then(|| "state".to_owned());
                Reply::InputRequired {
                    requests: asks,
                    state,
                }
            }
            1 => Reply::Error(PeerError::internal("a\nb")),
            2 => Reply::Error(
                PeerError::new(code::UNSUPPORTED_VERSION, "no")
                    .with_data(object(r#"{"supported":["2025-06-18","2026-07-28"]}"#)),
            ),
            3 => Reply::Error(PeerError::new(code::HEADER_MISMATCH, "no")),
            _ => Reply::Result(RawResult::from(object(
                r#"{"content":[],"contents":[],"messages":[],"completion":{"values":[]},"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"R"}}}},{"name":"y","inputSchema":{"x-mcp-header":1}}]}"#,
            ))),
        };
        match self.server.reply(key, reply, self.now) {
            Ok(_) | Err(SendError::UnknownRequest) => {
                self.pending_requests
                    .retain(|pending_requests| *pending_requests != key);
                let again = self
                    .server
                    .reply(key, PeerError::internal("again"), self.now);
                let once = matches!(
                    again,
                    Ok(SendOutcome::Suppressed)
                        | Err(SendError::UnknownRequest
                            | SendError::AwaitingInput
                            | SendError::Subscription)
                );
                // Questions without waiting are raised again at once.
                assert!(once || again.is_err(), "answered twice: {again:?}");
            }
            Err(_) => {}
        }
    }

    /// Answers a request of the server.
    fn answer(&mut self, choices: &mut Choices<'_>) {
        let Some(ask) = choices.pick_of(&self.pending_server_requests) else {
            return;
        };
        self.pending_server_requests.retain(|known| *known != ask);
        let answer = if choices.chance(180) {
            Ok(RawResult::from(object(r#"{"roots":[]}"#)))
        } else {
            Err(PeerError::internal("no"))
        };
        let _ = self.client.send_progress(ask, &Progress::new(1.0));
        let _ = self.client.answer(ask, answer, self.now);
    }

    /// Publishes a change of the server, and with a certain probability notifies the server of changed roots.
    fn send_list_changed(&mut self, choices: &mut Choices<'_>) {
        let change = [
            Change::Tools,
            Change::Prompts,
            Change::Resources,
            Change::Resource("a:c".into()),
        ];
        let change = &change[usize::from(choices.next_byte()) % 4];
        self.server.publish(change);
        if choices.chance(64) {
            let _ = self.client.notify("notifications/roots/list_changed", None);
        }
    }

    /// Sends a log message or progress.
    fn send_log_or_progress(&mut self, choices: &mut Choices<'_>) {
        let key = choices.pick_of(&self.pending_requests);
        let scope = key.map_or(Scope::Peer, Scope::During);
        let _ = self.server.send_log(scope, Level::Error, Some("l\n"), true);
        if let Some(key) = key {
            let done = f64::from(choices.next_byte());
            let _ = self
                .server
                .send_progress(key, &Progress::new(done).with_message("m"));
        }
        let _ = self
            .server
            .notify(scope, "notifications/x", Self::params(choices));
    }

    /// Delivers, drops, repeats or reorders a frame, as the next bytes select.
    fn deliver(&mut self, choices: &mut Choices<'_>, to_server: bool) {
        let fault = choices.next_byte();
        if to_server {
            let Some(sent) = self.to_server.pop_front() else {
                return;
            };
            match fault {
                0..=9 => return,
                10..=19 => self.to_server.push_back(sent.clone()),
                20..=29 => return self.to_server.push_back(sent),
                _ => {}
            }
            self.post(sent.0, &sent.1, sent.2);
        } else {
            let Some(sent) = self.to_client.pop_front() else {
                return;
            };
            match fault {
                0..=9 => return,
                10..=19 => self.to_client.push_back(sent.clone()),
                20..=29 => return self.to_client.push_back(sent),
                _ => {}
            }
            self.deliver_to_client(sent.0, &sent.1, sent.2);
        }
    }

    /// Delivers a frame of the client to the server; over HTTP, the frame is a separate POST.
    fn post(&mut self, on: StreamId, bytes: &[u8], headers: Vec<(String, String)>) {
        let to = match self.binding {
            Binding::Duplex => StreamId::DUPLEX,
            _ => match self.server.open(StreamKind::Post) {
                Ok(stream) => {
                    self.connect(on, stream);
                    stream
                }
                Err(_) => {
                    let why = TransportFailure::Status {
                        code: 503,
                        body: Vec::new(),
                    };
                    return self.client.handle_failure(on, why, self.now);
                }
            },
        };
        let mut with = FrameContext::new(());
        if self.binding != Binding::Duplex {
            with.http = Some(HttpRequest::new(headers));
        }
        let _ = self.server.receive(to, bytes, with, self.now);
    }

    /// Delivers a frame, or an HTTP error status of 400 or more, to the client.
    fn deliver_to_client(&mut self, on: StreamId, bytes: &[u8], status: u16) {
        match status {
            400.. => {
                let why = TransportFailure::Status {
                    code: status,
                    body: bytes.to_vec(),
                };
                self.client.handle_failure(on, why, self.now);
            }
            _ if bytes.is_empty() => self.client.handle_close(on, StreamEnd::Clean, self.now),
            _ => {
                let _ = self.client.receive(on, bytes, self.now);
            }
        }
    }

    /// Delivers a frame to one endpoint that the other endpoint has not sent.
    fn deliver_hostile_frame(&mut self, choices: &mut Choices<'_>, to_server: bool) {
        let bytes = frame(choices);
        if to_server {
            let on = self.client.open_standalone();
            self.post(on, &bytes, Vec::new());
            self.client.handle_close(on, StreamEnd::Clean, self.now);
        } else {
            let streams: Vec<StreamId> = self.server_stream_of.keys().copied().collect();
            if let Some(on) = choices.pick_of(&streams) {
                let status = if choices.chance(32) { 400 } else { 200 };
                self.deliver_to_client(on, &bytes, status);
            }
        }
    }

    /// Advances the clock and handles timeouts.
    fn wait(&mut self, choices: &mut Choices<'_>) {
        let millis = u64::from(choices.next_byte()) * 8;
        self.now = self.now.saturating_add(Duration::from_millis(millis));
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
        for next in [self.client.poll_timeout(), self.server.poll_timeout()] {
            assert!(next.is_none_or(|next| next > self.now), "an old deadline");
        }
    }

    /// Opens the standalone stream, or closes or detaches a stream at both endpoints.
    fn break_stream(&mut self, choices: &mut Choices<'_>) {
        if self.binding != Binding::Duplex && choices.chance(60) {
            return self.open_standalone();
        }
        let streams: Vec<(StreamId, StreamId)> = self
            .server_stream_of
            .iter()
            .map(|(c, s)| (*c, *s))
            .collect();
        let how = [StreamEnd::Clean, StreamEnd::Lost, StreamEnd::SessionEnded];
        let how = how[usize::from(choices.next_byte() % 8).min(2)];
        if how == StreamEnd::SessionEnded && !choices.chance(10) {
            return;
        }
        if let Some((client, server)) = choices.pick_of(&streams) {
            if self.binding == Binding::Duplex && !choices.chance(10) {
                return;
            }
            self.client.handle_close(client, how, self.now);
            self.server.handle_close(server, how, self.now);
        }
    }

    /// Moves the output of both endpoints into the simulated network.
    fn queue_output(&mut self) {
        let mut out = Vec::new();
        while let Some(transmit) = self.client.poll_transmit(&mut out) {
            let bytes = std::mem::take(&mut out);
            match transmit {
                Transmit::Frame {
                    stream: on, http, ..
                } => {
                    check_output(&bytes);
                    self.to_server.push_back((on, bytes, headers(&http)));
                }
                Transmit::Close { stream } => {
                    if let Some(server_stream_of) = self.server_stream_of.get(&stream) {
                        self.server
                            .handle_close(*server_stream_of, StreamEnd::Clean, self.now);
                    }
                }
                _ => {}
            }
        }
        while let Some(transmit) = self.server.poll_transmit(&mut out) {
            let bytes = std::mem::take(&mut out);
            let (on, status) = match transmit {
                Transmit::Frame {
                    stream: on, http, ..
                } => {
                    check_output(&bytes);
                    (on, http.status.unwrap_or(200))
                }
                Transmit::Status { stream, status } => (stream, status),
                Transmit::Close { stream } => (stream, 202),
                _ => continue,
            };
            if let Some(client_stream_of) = self.client_stream_of.get(&on) {
                self.to_client.push_back((*client_stream_of, bytes, status));
            }
        }
    }

    /// Handles the events of both endpoints and counts the outcomes.
    fn handle_events(&mut self) {
        while let Some(event) = self.client.poll_event() {
            self.observed.insert(client_event_name(&event));
            match event {
                ClientEvent::Completed(key, _) => {
                    *self.request_ends.get_mut(&key).expect("what was sent") += 1;
                }
                ClientEvent::Request { key, .. } => self.pending_server_requests.push(key),
                ClientEvent::RequestCancelled(key) => {
                    self.pending_server_requests.retain(|known| *known != key)
                }
                ClientEvent::RestartServer => self.client.handle_restart(self.now),
                _ => {}
            }
        }
        while let Some(event) = self.server.poll_event() {
            self.observed.insert(server_event_name(&event));
            match event {
                ServerEvent::Request(request) => {
                    assert!(
                        !self.pending_requests.contains(&request.key),
                        "raised twice"
                    );
                    let _ = request.typed();
                    self.pending_requests.push(request.key);
                }
                ServerEvent::Cancelled { key, .. } => {
                    self.pending_requests.retain(|known| *known != key)
                }
                ServerEvent::Completed(key, _) => {
                    *self.server_ends.get_mut(&key).expect("what was sent") += 1;
                }
                _ => {}
            }
        }
        let ends = self.request_ends.values().chain(self.server_ends.values());
        assert!(ends.into_iter().all(|ends| *ends <= 1), "ended twice");
    }

    /// Checks that the usage of both endpoints is within their limits. Responses are never dropped, so a queue may
    /// exceed its limit by one response for each request and for each message of a batch.
    fn check(&self) {
        let most = limits();
        let answers = most.in_flight + most.batch_items + 2 * most.subscriptions;
        for load in [self.client.usage(), self.server.usage()] {
            assert!(load.in_flight <= most.in_flight, "{load:?}");
            assert!(load.in_flight_bytes <= most.in_flight_bytes, "{load:?}");
            assert!(load.batches <= most.in_flight + 1, "{load:?}");
            assert!(load.pending <= most.pending + 1, "{load:?}");
            assert!(
                load.server_requests <= most.pending * most.input_requests + most.in_flight,
                "{load:?}"
            );
            assert!(load.subscriptions <= most.subscriptions, "{load:?}");
            assert!(
                load.subscription_bytes <= most.subscription_bytes,
                "{load:?}"
            );
            assert!(load.remembered_ids <= most.remembered_ids, "{load:?}");
            assert!(load.elicitations <= most.remembered_ids, "{load:?}");
            assert!(load.tasks <= most.remembered_ids, "{load:?}");
            assert!(load.tools <= most.tool_bytes / 8, "{load:?}");
            // The program of this world does one thing between two looks.
            let queued = most.queued + 2 * answers + 2 * most.pending * most.input_requests;
            assert!(load.queued <= queued, "{load:?}");
            let bytes = most.queued_bytes + 2 * answers * most.message_bytes;
            assert!(load.queued_bytes <= bytes, "{load:?}");
            assert!(load.events <= queued, "{load:?}");
            // One thing more: a frame, or a request that is raised again with all that was answered.
            let bytes = most.queued_bytes + (2 + most.input_requests) * most.message_bytes;
            assert!(load.events_bytes <= bytes + 32 * queued, "{load:?}");
        }
        assert!(self.server.usage().streams <= most.streams);
    }

    /// Closes both endpoints and checks that every request has ended exactly once; returns the names of the events.
    fn finish(mut self) -> BTreeSet<&'static str> {
        self.queue_output();
        self.handle_events();
        self.server.shutdown(self.now);
        self.client.shutdown(self.now);
        self.queue_output();
        self.handle_events();
        let ends = self.request_ends.iter().chain(&self.server_ends);
        let open: Vec<_> = ends.filter(|(_, ends)| **ends != 1).collect();
        assert!(open.is_empty(), "{open:?}");
        assert_eq!(self.client.poll_timeout(), None);
        assert_eq!(self.server.poll_timeout(), None);
        for load in [self.client.usage(), self.server.usage()] {
            let empty = Usage::default();
            assert_eq!(
                (load.in_flight, load.pending),
                (empty.in_flight, empty.pending)
            );
            assert_eq!(
                (load.server_requests, load.streams),
                (empty.server_requests, empty.streams)
            );
        }
        self.observed
    }
}

/// Returns the headers of the POST that carries a message with these hints.
fn headers(http: &HttpHints) -> Vec<(String, String)> {
    let named = [
        ("MCP-Protocol-Version", http.revision.map(|r| r.to_string())),
        ("Mcp-Method", http.method.clone()),
        ("Mcp-Name", http.name.as_deref().map(http::encode_value)),
    ];
    let named = named
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    named.chain(http.params.iter().cloned()).collect()
}

/// Checks that output is one JSON message, or an array of messages, on one line.
fn check_output(bytes: &[u8]) {
    assert!(!bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r')));
    let json: Json = from_slice(bytes).expect("JSON leaves");
    assert!(matches!(json.kind(), Kind::Object | Kind::Array));
}
