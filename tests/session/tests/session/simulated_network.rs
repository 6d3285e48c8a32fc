//! Seeded simulation of a client and a server with a network that loses, repeats and reorders frames.
//!
//! Panics if a request of either side ends twice or never, if a delivered request is not answered exactly once, or if
//! an endpoint exceeds its limits.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use mcp_exact_tests_session::*;
use mcp_exact_tests_support::Rng;

/// Client and server with a network that loses, repeats and reorders frames.
pub(crate) struct SimulatedNetwork {
    rng: Rng,
    client: ClientEndpoint,
    server: ServerEndpoint<()>,
    now: Time,
    to_server: VecDeque<Vec<u8>>,
    to_client: VecDeque<Vec<u8>>,
    /// Probability in percent that a frame is lost, repeated or delayed.
    faults: usize,
    waiting: Vec<RequestKey>,
    questions: Vec<(ServerRequestKey, String)>,
    ends: BTreeMap<RequestKey, usize>,
    /// Number of ends of each of the server's requests.
    server_ends: BTreeMap<RequestKey, usize>,
    raised: BTreeSet<RequestKey>,
    /// Requests that the server and the client have received, with their answers.
    served: [Account; 2],
    record: EventRecord,
    /// True if the session is ending, so that later requests are not answered.
    over: bool,
    /// Checker of each message against its schema, if enabled.
    pub(crate) checker: Option<SchemaChecker>,
}

/// Statistics of a run.
#[derive(Debug, Default)]
pub(crate) struct EventRecord {
    pub(crate) transcript: Vec<String>,
    /// Number of requests of a role by outcome.
    pub(crate) outcomes: BTreeMap<(&'static str, &'static str), usize>,
    /// Limits that a role has reached.
    pub(crate) reached: BTreeSet<(&'static str, &'static str)>,
    /// Number of requests that a role has answered, and number of those that were cancelled before.
    pub(crate) answers: BTreeMap<&'static str, (usize, usize)>,
    pub(crate) checker: Option<SchemaChecker>,
}

impl EventRecord {
    fn record_end(&mut self, role: &'static str, outcome: &Outcome) {
        let kind = match outcome {
            Outcome::Result(_) => "result",
            Outcome::Error(_) => "error",
            Outcome::TimedOut => "timeout",
            Outcome::Cancelled => "cancelled",
            Outcome::Lost => "lost",
            Outcome::Closed => "closed",
        };
        *self.outcomes.entry((role, kind)).or_default() += 1;
    }
}

/// Requests that one side has received, by id, with the numbers of their answers.
#[derive(Debug, Default)]
struct Account {
    came: BTreeMap<String, usize>,
    answered: BTreeMap<String, usize>,
    cancelled: usize,
}

impl Account {
    fn record_request_received(&mut self, message: &Value) {
        if message["method"].is_string() && message.get("id").is_some() {
            *self.came.entry(message["id"].to_string()).or_default() += 1;
        }
    }

    fn record_answer(&mut self, message: &Value) {
        if message["method"].is_null() {
            let id = message["id"].to_string();
            *self.answered.entry(id).or_default() += 1;
        }
    }

    fn totals(&self) -> (usize, usize) {
        (self.came.values().sum(), self.answered.values().sum())
    }

    /// Checks that no request was answered more often than it was received.
    fn check(&self) {
        for (id, answers) in &self.answered {
            assert!(Some(answers) <= self.came.get(id), "{id}: {self:?}");
        }
    }

    /// Checks that each request was answered once, was cancelled, or is still being served.
    fn check_open(&self, open: usize) {
        self.check();
        let (came, answered) = self.totals();
        assert_eq!(came, answered + self.cancelled + open, "{open} {self:?}");
    }
}

/// Returns limits that are low enough to be reached in a short run.
pub(crate) fn limits() -> Limits {
    Limits {
        in_flight: 4,
        in_flight_bytes: 640,
        pending: 8,
        queued: 32,
        remembered_ids: 2,
        notifications_per_second: 50,
        subscriptions: 1,
        input_requests: 4,
        retries: 3,
        ..Limits::default()
    }
}

impl SimulatedNetwork {
    /// Creates a client and a server with these revisions that have not exchanged messages.
    pub(crate) fn new(
        seed: u64,
        client_revisions: &[&str],
        server_revisions: &[&str],
        faults: usize,
    ) -> Self {
        let mut client_config = client_config(client_revisions);
        client_config.limits = limits();
        client_config.request_timeout.idle = Duration::from_secs(3);
        let mut server_config = server_config(server_revisions);
        server_config.limits = limits();
        server_config.request_timeout.idle = Duration::from_secs(2);
        Self {
            rng: Rng::new(seed),
            client: client(client_config),
            server: server(server_config),
            now: Time::ZERO,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            faults,
            waiting: Vec::new(),
            questions: Vec::new(),
            ends: BTreeMap::new(),
            server_ends: BTreeMap::new(),
            raised: BTreeSet::new(),
            served: Default::default(),
            record: EventRecord::default(),
            over: false,
            checker: None,
        }
    }

    /// Runs one random action of an application, the network or the clock.
    pub(crate) fn act(&mut self) {
        match self.rng.below(17) {
            0 | 1 => self.request(),
            2 => self.cancel(),
            3 | 4 => self.reply(),
            5 | 13 => self.answer(),
            6 => self.announce(),
            7 | 8 | 14 => self.deliver(true),
            9 | 10 | 15 => self.deliver(false),
            11 => self.server_request(),
            12 => self.server_cancel(),
            _ => self.wait(),
        }
        self.check_usages();
        self.collect();
    }

    fn request(&mut self) {
        let all = [
            "tools/list",
            "tools/call",
            "resources/read",
            "ping",
            "nothing",
            "subscriptions/listen",
        ];
        let method = *self.rng.pick(&all);
        let params =
            json!({ "name": "x", "uri": "a:b", "notifications": { "toolsListChanged": true } });
        let options = CallOptions {
            progress: self.rng.chance(50),
            ..CallOptions::default()
        };
        let sent = self
            .client
            .request(method, Some(object(params)), options, self.now);
        if let Ok(key) = sent {
            self.ends.insert(key, 0);
        }
    }

    fn cancel(&mut self) {
        let keys: Vec<RequestKey> = self.ends.keys().copied().collect();
        if !keys.is_empty() {
            let key = *self.rng.pick(&keys);
            self.client.cancel(key, "enough", self.now);
        }
    }

    fn server_request(&mut self) {
        let (method, params) = *self.rng.pick(&[
            ("roots/list", "{}"),
            (
                "sampling/createMessage",
                "{\"messages\":[],\"maxTokens\":1}",
            ),
        ]);
        let options = CallOptions {
            progress: self.rng.chance(50),
            ..CallOptions::default()
        };
        let params = params.parse().expect("an object");
        let sent = self
            .server
            .request(Scope::Peer, method, Some(params), options, self.now);
        if let Ok(key) = sent {
            self.server_ends.insert(key, 0);
        }
    }

    fn server_cancel(&mut self) {
        let keys: Vec<RequestKey> = self.server_ends.keys().copied().collect();
        if !keys.is_empty() {
            let key = *self.rng.pick(&keys);
            self.server.cancel(key, "enough", self.now);
        }
    }

    fn reply(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let at = self.rng.below(self.waiting.len());
        let key = self.waiting[at];
        let progress = f64::from(u32::try_from(self.rng.below(5)).unwrap_or(0));
        let reply = match self.rng.below(4) {
            0 => {
                let _ = self.server.progress(key, &Progress::new(progress));
                return;
            }
            1 => {
                let asks = vec![("a".to_owned(), InputRequest::new("roots/list", None))];
                let state = Some("state".to_owned());
                Reply::InputRequired {
                    requests: asks,
                    state,
                }
            }
            2 => Reply::Error(PeerError::internal("no")),
            _ => Reply::Result(result(
                json!({ "content": [], "tools": [], "contents": [] }),
            )),
        };
        self.waiting.remove(at);
        match self.server.reply(key, reply, self.now) {
            // Cancelled so long ago that it is forgotten.
            Ok(_) | Err(SendError::UnknownRequest) => {}
            Err(error) => {
                let error = PeerError::internal(error.to_string());
                let again = self.server.reply(key, error, self.now);
                assert!(again.is_ok(), "{again:?}");
            }
        }
    }

    fn answer(&mut self) {
        if let Some((ask, method)) = self.questions.pop() {
            let text = json!({ "type": "text", "text": "t" });
            let body = match &*method {
                "roots/list" => json!({ "roots": [] }),
                _ => json!({ "role": "assistant", "model": "m", "content": text }),
            };
            let answer = if self.rng.chance(50) {
                Ok(result(body))
            } else {
                Err(PeerError::internal("no"))
            };
            let _ = self.client.answer(ask, answer, self.now);
        }
    }

    fn announce(&mut self) {
        match self.rng.below(3) {
            0 => drop(self.server.publish(&Change::Tools)),
            1 => {
                if let Ok(key) = self.server.ping(RequestTimeout::default(), self.now) {
                    self.server_ends.insert(key, 0);
                }
            }
            _ => drop(self.client.notify("notifications/roots/list_changed", None)),
        }
    }

    /// Delivers a frame, or loses, repeats or reorders it.
    fn deliver(&mut self, to_server: bool) {
        let fault = self.rng.chance(self.faults);
        let kind = self.rng.below(3);
        let queue = if to_server {
            &mut self.to_server
        } else {
            &mut self.to_client
        };
        let Some(frame) = queue.pop_front() else {
            return;
        };
        match kind {
            0 if fault => return,
            1 if fault => queue.push_back(frame.clone()),
            2 if fault => return queue.push_back(frame),
            _ => {}
        }
        let message: Value = serde_json::from_slice(&frame).expect("JSON");
        if to_server {
            let with = FrameContext::new(());
            let taken = self
                .server
                .receive(StreamId::DUPLEX, &frame, with, self.now);
            if taken.is_ok() {
                self.served[0].record_request_received(&message);
            }
        } else {
            // A client that speaks the newer lifecycle answers nothing.
            let answers = !self.client_is_modern();
            let taken = self.client.receive(StreamId::DUPLEX, &frame, self.now);
            if taken.is_ok() && answers {
                self.served[1].record_request_received(&message);
            }
        }
    }

    fn client_is_modern(&self) -> bool {
        let agreed = self.client.session_info();
        agreed
            .is_some_and(|agreed| lifecycle(agreed.revision.as_str()) == Some(Lifecycle::Discover))
    }

    /// Checks the usage of both endpoints after each event.
    fn check_usages(&mut self) {
        let most = limits();
        for (role, load) in [
            ("client", self.client.usage()),
            ("server", self.server.usage()),
        ] {
            check_usage(&load, &most);
            for (name, held, bound) in [
                ("in_flight", load.in_flight, most.in_flight),
                ("sent", load.pending, most.pending),
                ("remembered_ids", load.remembered_ids, most.remembered_ids),
                ("subscriptions", load.subscriptions, most.subscriptions),
            ] {
                if held == bound {
                    self.record.reached.insert((role, name));
                }
            }
        }
    }

    fn wait(&mut self) {
        let millis = u64::try_from(self.rng.below(1500)).unwrap_or(0);
        self.now = self.now.plus(Duration::from_millis(millis));
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    fn checker(&mut self, from_client: bool, frame: &[u8]) {
        let agreed = if from_client {
            self.client.session_info()
        } else {
            self.server.session_info().or(self.client.session_info())
        };
        let agreed = agreed.map(|agreed| agreed.revision.as_str());
        if let Some(checker) = &mut self.checker {
            checker.frame(from_client, frame, agreed);
        }
    }

    /// Handles the output and events of both endpoints; checks that no request ends twice or is delivered twice per
    /// retry, and that each delivered request is answered once.
    pub(crate) fn collect(&mut self) {
        self.handle_output(true);
        self.handle_output(false);
        while let Some(event) = self.client.poll_event() {
            self.record.transcript.push(format!("{event:?}"));
            match event {
                ClientEvent::Completed(key, outcome) => {
                    *self.ends.get_mut(&key).expect("sent") += 1;
                    self.record.record_end("client", &outcome);
                }
                ClientEvent::Request {
                    key, request: ask, ..
                } => {
                    self.questions.push((key, ask.method().to_owned()));
                }
                ClientEvent::RequestCancelled(_) if !self.client_is_modern() => {
                    self.served[1].cancelled += 1;
                }
                ClientEvent::RestartServer => self.client.restarted(self.now),
                _ => {}
            }
        }
        while let Some(event) = self.server.poll_event() {
            self.record.transcript.push(format!("{event:?}"));
            match event {
                ServerEvent::Request(request) => {
                    assert!(
                        request.retries > 0 || self.raised.insert(request.key),
                        "raised once a round"
                    );
                    self.waiting.push(request.key);
                }
                ServerEvent::Cancelled { .. } => self.served[0].cancelled += 1,
                ServerEvent::Completed(key, outcome) => {
                    *self.server_ends.get_mut(&key).expect("sent") += 1;
                    self.record.record_end("server", &outcome);
                }
                _ => {}
            }
        }
        let ends = self.ends.values().chain(self.server_ends.values());
        assert!(ends.into_iter().all(|ends| *ends <= 1), "ended twice");
        if !self.over {
            self.served[0].check_open(self.server.usage().in_flight);
            if !self.client_is_modern() {
                self.served[1].check_open(self.client.usage().server_requests);
            }
        }
    }

    /// Handles the output of one endpoint.
    fn handle_output(&mut self, from_client: bool) {
        let mut out = Vec::new();
        loop {
            let transmit = if from_client {
                self.client.poll_transmit(&mut out)
            } else {
                self.server.poll_transmit(&mut out)
            };
            let Some(transmit) = transmit else {
                return;
            };
            let text = format!("{transmit:?} {}", String::from_utf8_lossy(&out));
            self.record.transcript.push(text);
            let frame = std::mem::take(&mut out);
            if frame.is_empty() {
                continue;
            }
            self.checker(from_client, &frame);
            let message = serde_json::from_slice(&frame).expect("JSON");
            self.served[usize::from(from_client)].record_answer(&message);
            if from_client {
                self.to_server.push_back(frame)
            } else {
                self.to_client.push_back(frame)
            }
        }
    }

    /// Ends the session on both sides, and checks that every request has ended exactly once.
    pub(crate) fn finish(mut self) -> EventRecord {
        self.over = true;
        match self.rng.below(3) {
            0 => {
                self.client.shutdown(self.now);
                self.server
                    .closed(StreamId::DUPLEX, Closed::Clean, self.now);
                // What is in flight could still be answered; this application stops here.
                self.server.shutdown(self.now);
            }
            1 => {
                self.client.closed(StreamId::DUPLEX, Closed::Lost, self.now);
                self.server.closed(StreamId::DUPLEX, Closed::Lost, self.now);
            }
            _ => {
                self.server.shutdown(self.now);
                self.collect();
                while !self.to_client.is_empty() {
                    self.deliver(false);
                    self.collect();
                }
                self.client
                    .closed(StreamId::DUPLEX, Closed::Clean, self.now);
            }
        }
        self.collect();
        // A client that was just instructed to restart its server has not sent anything yet.
        self.client.shutdown(self.now);
        self.collect();
        let ends = self.ends.iter().chain(&self.server_ends);
        let open: Vec<_> = ends.filter(|(_, ends)| **ends != 1).collect();
        assert!(open.is_empty(), "{open:?}");
        assert_eq!(self.client.poll_timeout(), None);
        assert_eq!(self.server.poll_timeout(), None);
        for (role, account) in ["server", "client"].into_iter().zip(&self.served) {
            account.check();
            let answers = (account.totals().1, account.cancelled);
            self.record.answers.insert(role, answers);
        }
        for load in [self.client.usage(), self.server.usage()] {
            let held = (
                load.in_flight,
                load.pending,
                load.server_requests,
                load.streams,
                load.queued,
            );
            assert_eq!(held, (0, 0, 0, 0, 0), "{load:?}");
        }
        self.record.checker = self.checker;
        self.record
    }
}
