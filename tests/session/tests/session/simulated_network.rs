//! Seeded simulation of a client and a server with a network that loses, repeats and reorders frames.
//!
//! Panics if a request of either peer ends twice or never, if a delivered request is not answered exactly once, or if
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
    /// Simulated time.
    now: Time,
    /// Frames in transit to the server.
    to_server: VecDeque<Vec<u8>>,
    /// Frames in transit to the client.
    to_client: VecDeque<Vec<u8>>,
    /// Probability in percent that a frame is lost, repeated or delayed.
    fault_percent: usize,
    /// Requests that the server's application has not answered.
    unanswered_requests: Vec<RequestKey>,
    /// Requests, with their methods, that the client's application has not answered.
    unanswered_server_requests: Vec<(ServerRequestKey, String)>,
    /// Number of outcomes that the client has received for each of its requests.
    client_request_ends: BTreeMap<RequestKey, usize>,
    /// Number of outcomes that the server has received for each of its requests.
    server_ends: BTreeMap<RequestKey, usize>,
    /// Requests that the server's application has received.
    delivered_requests: BTreeSet<RequestKey>,
    /// Requests that the server and the client have received, with their answers.
    received_requests: [ReceivedRequests; 2],
    /// Frames, events and counts of the run.
    event_record: EventRecord,
    /// True if the session is ending, so that later requests are not answered.
    is_ending: bool,
    /// Schema checker of all messages, if enabled.
    pub(crate) checker: Option<SchemaChecker>,
}

/// Frames, events and counts of a run.
#[derive(Debug, Default)]
pub(crate) struct EventRecord {
    /// Frames and events in the order of their occurrence.
    pub(crate) transcript: Vec<String>,
    /// Number of requests of a role by outcome.
    pub(crate) outcome_counts: BTreeMap<(&'static str, &'static str), usize>,
    /// Roles and names of the limits that an endpoint of the role has reached.
    pub(crate) reached_limits: BTreeSet<(&'static str, &'static str)>,
    /// Numbers of answered and of cancelled requests, by role.
    pub(crate) answer_counts: BTreeMap<&'static str, (usize, usize)>,
    /// Schema checker of the run, if enabled.
    pub(crate) checker: Option<SchemaChecker>,
}

impl EventRecord {
    /// Counts the outcome of a request of a role.
    fn record_end(&mut self, role: &'static str, outcome: &Outcome) {
        let kind = match outcome {
            Outcome::Result(_) => "result",
            Outcome::Error(_) => "error",
            Outcome::TimedOut => "timeout",
            Outcome::Cancelled => "cancelled",
            Outcome::Lost => "lost",
            Outcome::Closed => "closed",
        };
        *self.outcome_counts.entry((role, kind)).or_default() += 1;
    }
}

/// Counts of the requests that one endpoint has received and of its answers.
#[derive(Debug, Default)]
struct ReceivedRequests {
    /// Number of received requests by id.
    arrivals: BTreeMap<String, usize>,
    /// Number of sent answers by id.
    answers: BTreeMap<String, usize>,
    /// Number of cancelled requests.
    cancellations: usize,
}

impl ReceivedRequests {
    /// Counts the requests in a received message.
    fn record_request_received(&mut self, message: &Value) {
        if message["method"].is_string() && message.get("id").is_some() {
            *self.arrivals.entry(message["id"].to_string()).or_default() += 1;
        }
    }

    /// Counts the responses in a sent message.
    fn record_answer(&mut self, message: &Value) {
        if message["method"].is_null() {
            let id = message["id"].to_string();
            *self.answers.entry(id).or_default() += 1;
        }
    }

    /// Returns the numbers of received requests and of answers.
    fn totals(&self) -> (usize, usize) {
        (self.arrivals.values().sum(), self.answers.values().sum())
    }

    /// Checks that the number of answers to each request is not higher than the number of its arrivals.
    fn check_answers(&self) {
        for (id, answers) in &self.answers {
            assert!(Some(answers) <= self.arrivals.get(id), "{id}: {self:?}");
        }
    }

    /// Checks that each request was answered once or cancelled, except for `open` requests in flight.
    fn check_all_answered(&self, open: usize) {
        self.check_answers();
        let (came, answered) = self.totals();
        assert_eq!(
            came,
            answered + self.cancellations + open,
            "{open} {self:?}"
        );
    }
}

/// Returns limits that are low enough to be reached in a short run.
pub(crate) fn low_limits() -> Limits {
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
        client_config.limits = low_limits();
        client_config.request_timeout.idle = Duration::from_secs(3);
        let mut server_config = server_config(server_revisions);
        server_config.limits = low_limits();
        server_config.request_timeout.idle = Duration::from_secs(2);
        Self {
            rng: Rng::new(seed),
            client: client(client_config),
            server: server(server_config),
            now: Time::ZERO,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            fault_percent: faults,
            unanswered_requests: Vec::new(),
            unanswered_server_requests: Vec::new(),
            client_request_ends: BTreeMap::new(),
            server_ends: BTreeMap::new(),
            delivered_requests: BTreeSet::new(),
            received_requests: Default::default(),
            event_record: EventRecord::default(),
            is_ending: false,
            checker: None,
        }
    }

    /// Runs one random action of an application, the network or the clock.
    pub(crate) fn run_random_action(&mut self) {
        match self.rng.below(17) {
            0 | 1 => self.send_client_request(),
            2 => self.cancel_client_request(),
            3 | 4 => self.reply_to_request(),
            5 | 13 => self.answer_server_request(),
            6 => self.publish_change(),
            7 | 8 | 14 => self.deliver_frame(true),
            9 | 10 | 15 => self.deliver_frame(false),
            11 => self.send_server_request(),
            12 => self.cancel_server_request(),
            _ => self.advance_clock(),
        }
        self.check_usages();
        self.handle_pending();
    }

    /// Sends a random request of the client.
    fn send_client_request(&mut self) {
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
            .request(method, Some(to_object(params)), options, self.now);
        if let Ok(key) = sent {
            self.client_request_ends.insert(key, 0);
        }
    }

    /// Cancels a random request of the client.
    fn cancel_client_request(&mut self) {
        let keys: Vec<RequestKey> = self.client_request_ends.keys().copied().collect();
        if !keys.is_empty() {
            let key = *self.rng.pick(&keys);
            self.client.cancel(key, "enough", self.now);
        }
    }

    /// Sends a random request of the server.
    fn send_server_request(&mut self) {
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

    /// Cancels a random request of the server.
    fn cancel_server_request(&mut self) {
        let keys: Vec<RequestKey> = self.server_ends.keys().copied().collect();
        if !keys.is_empty() {
            let key = *self.rng.pick(&keys);
            self.server.cancel(key, "enough", self.now);
        }
    }

    /// Replies to a random unanswered request of the client.
    fn reply_to_request(&mut self) {
        if self.unanswered_requests.is_empty() {
            return;
        }
        let at = self.rng.below(self.unanswered_requests.len());
        let key = self.unanswered_requests[at];
        let progress = f64::from(u32::try_from(self.rng.below(5)).unwrap_or(0));
        let reply = match self.rng.below(4) {
            0 => {
                let _ = self.server.send_progress(key, &Progress::new(progress));
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
            _ => Reply::Result(to_result(
                json!({ "content": [], "tools": [], "contents": [] }),
            )),
        };
        self.unanswered_requests.remove(at);
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

    /// Answers the latest unanswered request of the server with a result or an error.
    fn answer_server_request(&mut self) {
        if let Some((ask, method)) = self.unanswered_server_requests.pop() {
            let text = json!({ "type": "text", "text": "t" });
            let body = match &*method {
                "roots/list" => json!({ "roots": [] }),
                _ => json!({ "role": "assistant", "model": "m", "content": text }),
            };
            let answer = if self.rng.chance(50) {
                Ok(to_result(body))
            } else {
                Err(PeerError::internal("no"))
            };
            let _ = self.client.answer(ask, answer, self.now);
        }
    }

    /// Publishes a change of the tools, pings the client, or sends the client's notification of changed roots, at
    /// random.
    fn publish_change(&mut self) {
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

    /// Delivers a frame, or drops, repeats or reorders it.
    fn deliver_frame(&mut self, to_server: bool) {
        let fault = self.rng.chance(self.fault_percent);
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
                self.received_requests[0].record_request_received(&message);
            }
        } else {
            // A client that speaks the newer lifecycle answers nothing.
            let answers = !self.is_client_discover();
            let taken = self.client.receive(StreamId::DUPLEX, &frame, self.now);
            if taken.is_ok() && answers {
                self.received_requests[1].record_request_received(&message);
            }
        }
    }

    /// Returns true if the client has negotiated a revision without handshake.
    fn is_client_discover(&self) -> bool {
        let agreed = self.client.session_info();
        agreed
            .is_some_and(|agreed| lifecycle(agreed.revision.as_str()) == Some(Lifecycle::Discover))
    }

    /// Checks that the memory usage of both endpoints is within their limits.
    fn check_usages(&mut self) {
        let most = low_limits();
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
                    self.event_record.reached_limits.insert((role, name));
                }
            }
        }
    }

    /// Advances the simulated clock by a random duration and handles timeouts.
    fn advance_clock(&mut self) {
        let millis = u64::try_from(self.rng.below(1500)).unwrap_or(0);
        self.now = self.now.saturating_add(Duration::from_millis(millis));
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    /// Checks a frame of one endpoint against the schema, if the schema checker is enabled.
    fn checker(&mut self, from_client: bool, frame: &[u8]) {
        let agreed = if from_client {
            self.client.session_info()
        } else {
            self.server.session_info().or(self.client.session_info())
        };
        let agreed = agreed.map(|agreed| agreed.revision.as_str());
        if let Some(checker) = &mut self.checker {
            checker.check_frame(from_client, frame, agreed);
        }
    }

    /// Handles the output and the events of both endpoints; checks that no request ends twice, is delivered twice
    /// without a retry, or is answered more than once.
    pub(crate) fn handle_pending(&mut self) {
        self.handle_output(true);
        self.handle_output(false);
        while let Some(event) = self.client.poll_event() {
            self.event_record.transcript.push(format!("{event:?}"));
            match event {
                ClientEvent::Completed(key, outcome) => {
                    *self.client_request_ends.get_mut(&key).expect("sent") += 1;
                    self.event_record.record_end("client", &outcome);
                }
                ClientEvent::Request {
                    key, request: ask, ..
                } => {
                    self.unanswered_server_requests
                        .push((key, ask.method().to_owned()));
                }
                ClientEvent::RequestCancelled(_) if !self.is_client_discover() => {
                    self.received_requests[1].cancellations += 1;
                }
                ClientEvent::RestartServer => self.client.handle_restart(self.now),
                _ => {}
            }
        }
        while let Some(event) = self.server.poll_event() {
            self.event_record.transcript.push(format!("{event:?}"));
            match event {
                ServerEvent::Request(request) => {
                    assert!(
                        request.retries > 0 || self.delivered_requests.insert(request.key),
                        "raised once a round"
                    );
                    self.unanswered_requests.push(request.key);
                }
                ServerEvent::Cancelled { .. } => self.received_requests[0].cancellations += 1,
                ServerEvent::Completed(key, outcome) => {
                    *self.server_ends.get_mut(&key).expect("sent") += 1;
                    self.event_record.record_end("server", &outcome);
                }
                _ => {}
            }
        }
        let ends = self
            .client_request_ends
            .values()
            .chain(self.server_ends.values());
        assert!(ends.into_iter().all(|ends| *ends <= 1), "ended twice");
        if !self.is_ending {
            self.received_requests[0].check_all_answered(self.server.usage().in_flight);
            if !self.is_client_discover() {
                self.received_requests[1].check_all_answered(self.client.usage().server_requests);
            }
        }
    }

    /// Records and checks the output of one endpoint, and puts its frames into the network.
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
            self.event_record.transcript.push(text);
            let frame = std::mem::take(&mut out);
            if frame.is_empty() {
                continue;
            }
            self.checker(from_client, &frame);
            let message = serde_json::from_slice(&frame).expect("JSON");
            self.received_requests[usize::from(from_client)].record_answer(&message);
            if from_client {
                self.to_server.push_back(frame)
            } else {
                self.to_client.push_back(frame)
            }
        }
    }

    /// Ends the session at both endpoints, and checks that every request has ended exactly once.
    pub(crate) fn finish_session(mut self) -> EventRecord {
        self.is_ending = true;
        match self.rng.below(3) {
            0 => {
                self.client.shutdown(self.now);
                self.server
                    .handle_close(StreamId::DUPLEX, StreamEnd::Clean, self.now);
                // What is in flight could still be answered; this application stops here.
                self.server.shutdown(self.now);
            }
            1 => {
                self.client
                    .handle_close(StreamId::DUPLEX, StreamEnd::Lost, self.now);
                self.server
                    .handle_close(StreamId::DUPLEX, StreamEnd::Lost, self.now);
            }
            _ => {
                self.server.shutdown(self.now);
                self.handle_pending();
                while !self.to_client.is_empty() {
                    self.deliver_frame(false);
                    self.handle_pending();
                }
                self.client
                    .handle_close(StreamId::DUPLEX, StreamEnd::Clean, self.now);
            }
        }
        self.handle_pending();
        // A client that was just instructed to restart its server has not sent anything yet.
        self.client.shutdown(self.now);
        self.handle_pending();
        let ends = self.client_request_ends.iter().chain(&self.server_ends);
        let open: Vec<_> = ends.filter(|(_, ends)| **ends != 1).collect();
        assert!(open.is_empty(), "{open:?}");
        assert_eq!(self.client.poll_timeout(), None);
        assert_eq!(self.server.poll_timeout(), None);
        for (role, account) in ["server", "client"]
            .into_iter()
            .zip(&self.received_requests)
        {
            account.check_answers();
            let answers = (account.totals().1, account.cancellations);
            self.event_record.answer_counts.insert(role, answers);
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
        self.event_record.checker = self.checker;
        self.event_record
    }
}
