//! Two endpoints with a link between them, and applications that send messages of random sizes.
//!
//! Panics if a request ends twice, if an endpoint exceeds its limits, or if no bytes can be moved although a request
//! waits for its response.

use std::collections::BTreeMap;

use mcp_exact_tests_session::*;
use mcp_exact_tests_support::Rng;

use crate::driver::{Link, READ_BYTES};
use crate::heap;

/// Allowance in bytes for memory that the limits do not count: tables, queues, configurations, spare capacity.
const UNCOUNTED_BYTES: usize = 512 << 10;

/// Open requests of one endpoint, and the numbers of its ended requests by outcome.
#[derive(Debug, Default)]
pub(crate) struct OpenRequests {
    /// Size in bytes of the params of each request that has not ended.
    param_bytes: BTreeMap<RequestKey, usize>,
    /// Size of the params of all open requests, in bytes.
    total_bytes: usize,
    /// Number of ended requests by outcome.
    pub(crate) outcome_counts: BTreeMap<&'static str, usize>,
}

impl OpenRequests {
    /// Records a sent request and the size of its params in bytes.
    fn record_request(&mut self, key: RequestKey, bytes: usize) {
        self.total_bytes += bytes;
        assert_eq!(
            self.param_bytes.insert(key, bytes),
            None,
            "a key is used twice"
        );
    }

    /// Records the outcome of a request; panics if it has already ended.
    fn record_end(&mut self, key: RequestKey, outcome: &Outcome) {
        let bytes = self.param_bytes.remove(&key);
        self.total_bytes -= bytes.expect("a request ends once, and only if it was sent");
        let kind = match outcome {
            Outcome::Result(_) => "result",
            Outcome::Error(error) if error.is_local() => "local error",
            Outcome::Error(_) => "error",
            Outcome::TimedOut => "timeout",
            Outcome::Cancelled => "cancelled",
            Outcome::Lost => "lost",
            Outcome::Closed => "closed",
        };
        *self.outcome_counts.entry(kind).or_default() += 1;
    }
}

/// Configuration of a run.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// Seed of the random number generator.
    pub(crate) seed: u64,
    /// Revision that both endpoints use.
    pub(crate) revision: &'static str,
    /// Limits of both endpoints.
    pub(crate) limits: Limits,
    /// Capacity of each pipe in bytes.
    pub(crate) pipe_capacity: usize,
    /// Number of random actions.
    pub(crate) steps: usize,
    /// Maximum number of concurrent calls.
    pub(crate) max_concurrent_calls: usize,
    /// True if peers suspend reading and writing at random.
    pub(crate) suspends_peers: bool,
}

/// Results of a run.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Number of client requests by outcome.
    pub(crate) client: BTreeMap<&'static str, usize>,
    /// Number of server requests by outcome.
    pub(crate) server: BTreeMap<&'static str, usize>,
    /// Number of checks at which the output of an endpoint was full.
    pub(crate) full_output_count: usize,
    /// True if an endpoint has closed because the output that its peer does not read has used up the reserve of output
    /// bytes.
    pub(crate) reserve_exhausted: bool,
    /// Maximum memory usage of an endpoint, in percent of its documented limit.
    pub(crate) peak_usage_percent: usize,
    /// Maximum of the allocated bytes, in percent of the bytes that the endpoints and applications account for.
    pub(crate) peak_allocation_percent: usize,
}

/// Client and server on a link, and their applications.
pub(crate) struct Network<L> {
    /// Configuration of the run.
    setup: Setup,
    rng: Rng,
    /// Pipes or HTTP connections, with both endpoints.
    link: L,
    /// Simulated time.
    now: Time,
    /// Requests of the client.
    client_calls: OpenRequests,
    /// Requests of the server.
    server_calls: OpenRequests,
    /// Requests that the server's application has not answered.
    unanswered_requests: Vec<RequestKey>,
    /// Requests of the server that the client's application has not answered.
    unanswered_server_requests: Vec<ServerRequestKey>,
    /// Size in bytes of the largest message that an application has sent so far.
    largest_message: usize,
    /// Text from which params of any size are cut.
    filler_text: String,
    /// Number of bytes that were allocated before the run.
    base_allocation: usize,
    /// Results so far.
    report: Report,
}

impl<L: Link> Network<L> {
    /// Creates a network with the link that `connect` creates from two configurations and the capacity of a pipe.
    pub(crate) fn new(
        setup: Setup,
        connect: impl FnOnce(ClientConfig, ServerConfig, usize) -> L,
    ) -> Self {
        let base = heap::bytes_in_use();
        let mut client = client_config(&[setup.revision]);
        client.limits = setup.limits.clone();
        let mut server = server_config(&[setup.revision]);
        server.limits = setup.limits.clone();
        let message = setup.limits.message_bytes;
        Self {
            rng: Rng::new(setup.seed),
            link: connect(client, server, setup.pipe_capacity),
            now: Time::ZERO,
            client_calls: OpenRequests::default(),
            server_calls: OpenRequests::default(),
            unanswered_requests: Vec::new(),
            unanswered_server_requests: Vec::new(),
            largest_message: 0,
            filler_text: "x".repeat(message + message / 4),
            base_allocation: base,
            report: Report::default(),
            setup,
        }
    }

    /// Runs random steps, then waits until all requests have ended, and checks that the endpoints use no more memory.
    pub(crate) fn run(mut self) -> Report {
        self.run_until_idle();
        for _ in 0..self.setup.steps {
            self.run_random_action();
            self.check_usage();
        }
        self.run_until_idle();
        if self.link.is_moving() {
            self.check_nothing_waits();
        }
        self.end_by_timeouts();
        self.end_session()
    }

    /// Runs one random action of an application, the link or the clock.
    fn run_random_action(&mut self) {
        match self.rng.below(20) {
            0..=3 => {
                (0..=self.rng.below(self.setup.max_concurrent_calls)).for_each(|_| self.call_tool())
            }
            4 | 5 => self.reply_to_request(),
            6 => self.send_log_and_progress(),
            7 => self.send_server_request(),
            8 => self.answer_server_request(),
            9 => self.cancel_random_request(),
            10 if self.setup.suspends_peers && self.rng.chance(10) => {
                self.link.toggle_random_peer(&mut self.rng, self.now);
            }
            _ => {
                let most = 1 + self.rng.below(2 * READ_BYTES);
                self.link.move_random_bytes(&mut self.rng, most, self.now);
            }
        }
        if self.rng.chance(70) {
            self.take_events();
        }
    }

    /// Returns a random message size: usually small, at most a quarter above the limit.
    fn random_size(&mut self) -> usize {
        let most = self.filler_text.len();
        let size = match self.rng.below(10) {
            0..=4 => self.rng.below(200),
            5..=7 => self.rng.below(1 + most / 16),
            8 => self.rng.below(1 + most / 2),
            _ => self.rng.below(1 + most),
        };
        let size = size.min(most);
        self.largest_message = self.largest_message.max(size + 1024);
        size
    }

    /// Returns params of a random size: the JSON text `before`, filler text, and the JSON text `after`.
    fn random_params(&mut self, before: &str, after: &str) -> JsonObject {
        let size = self.random_size();
        let text = format!("{before}{}{after}", &self.filler_text[..size]);
        text.parse().expect("an object")
    }

    /// Sends a tool call of the client.
    fn call_tool(&mut self) {
        let params = self.random_params(r#"{"name":"x","arguments":{"text":""#, r#""}}"#);
        let bytes = params.text().len();
        let options = CallOptions {
            progress: self.rng.chance(30),
            ..CallOptions::default()
        };
        let sent = self
            .link
            .client()
            .request("tools/call", Some(params), options, self.now);
        match sent {
            Ok(key) => self.client_calls.record_request(key, bytes),
            Err(SendError::Limit(_) | SendError::Closed | SendError::NotReady) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// Sends a request of the server.
    fn send_server_request(&mut self) {
        let before =
            r#"{"maxTokens":1,"messages":[{"role":"user","content":{"type":"text","text":""#;
        let params = self.random_params(before, r#""}}]}"#);
        let bytes = params.text().len();
        let options = CallOptions::default();
        let method = "sampling/createMessage";
        let sent = self
            .link
            .server()
            .request(Scope::Peer, method, Some(params), options, self.now);
        if let Ok(key) = sent {
            self.server_calls.record_request(key, bytes);
        }
    }

    /// Replies to a random request of the client.
    fn reply_to_request(&mut self) {
        if self.unanswered_requests.is_empty() {
            return;
        }
        let key = self
            .unanswered_requests
            .swap_remove(self.rng.below(self.unanswered_requests.len()));
        let result = self.random_params(r#"{"content":[{"type":"text","text":""#, r#""}]}"#);
        let replied = self
            .link
            .server()
            .reply(key, RawResult::from(result), self.now);
        assert!(
            matches!(replied, Ok(_) | Err(SendError::UnknownRequest)),
            "{replied:?}"
        );
    }

    /// Answers the latest unanswered request of the server.
    fn answer_server_request(&mut self) {
        if let Some(key) = self.unanswered_server_requests.pop() {
            let before = r#"{"role":"assistant","model":"m","content":{"type":"text","text":""#;
            let result = self.random_params(before, r#""}}"#);
            let _ = self
                .link
                .client()
                .answer(key, Ok(RawResult::from(result)), self.now);
        }
    }

    /// Sends a log message of a random size and, for the oldest unanswered request, progress.
    fn send_log_and_progress(&mut self) {
        let size = self.random_size();
        let data = Json::string(&self.filler_text[..size]);
        let scope = match self.unanswered_requests.last() {
            Some(key) => Scope::During(*key),
            None => Scope::Peer,
        };
        let _ = self.link.server().send_log(scope, Level::Error, None, data);
        if let Some(key) = self.unanswered_requests.first() {
            let done = self.rng.fraction() * 100.0;
            let _ = self.link.server().send_progress(*key, &Progress::new(done));
        }
    }

    /// Cancels a random request of the client.
    fn cancel_random_request(&mut self) {
        let keys: Vec<RequestKey> = self.client_calls.param_bytes.keys().copied().collect();
        if !keys.is_empty() {
            let key = *self.rng.pick(&keys);
            self.link.client().cancel(key, "enough", self.now);
        }
    }

    /// Handles the events of both endpoints; returns true if there were events.
    fn take_events(&mut self) -> bool {
        let mut moved = false;
        while let Some(event) = self.link.client().poll_event() {
            moved = true;
            match event {
                ClientEvent::Completed(key, outcome) => self.client_calls.record_end(key, &outcome),
                ClientEvent::Request { key, .. } => self.unanswered_server_requests.push(key),
                ClientEvent::RequestCancelled(key) => self
                    .unanswered_server_requests
                    .retain(|asked| *asked != key),
                ClientEvent::Violation(Violation::Limit(Limit::ReservedBytes)) => {
                    self.report.reserve_exhausted = true;
                }
                _ => {}
            }
        }
        while let Some(event) = self.link.server().poll_event() {
            moved = true;
            match event {
                ServerEvent::Request(request) => self.unanswered_requests.push(request.key),
                ServerEvent::Cancelled { key, .. } => {
                    self.unanswered_requests.retain(|waits| *waits != key)
                }
                ServerEvent::Completed(key, outcome) => self.server_calls.record_end(key, &outcome),
                ServerEvent::Violation(Violation::Limit(Limit::ReservedBytes)) => {
                    self.report.reserve_exhausted = true;
                }
                _ => {}
            }
        }
        moved
    }

    /// Runs the applications and the link until no bytes are moved and no events are left.
    fn run_until_idle(&mut self) {
        loop {
            let mut moved = self.take_events();
            moved |= self.link.move_all_bytes(2 * READ_BYTES, self.now);
            moved |= self.take_events();
            moved |=
                !self.unanswered_requests.is_empty() || !self.unanswered_server_requests.is_empty();
            self.reply_to_request();
            self.answer_server_request();
            self.check_usage();
            if !moved {
                return;
            }
        }
    }

    /// Checks that no request waits for a response when no bytes can be moved although both peers read and write.
    fn check_nothing_waits(&mut self) {
        if self.report.reserve_exhausted {
            return;
        }
        let state = (self.link.client().usage(), self.link.server().usage());
        assert!(
            self.client_calls.param_bytes.is_empty(),
            "deadlock: {state:?}"
        );
        assert!(
            self.server_calls.param_bytes.is_empty(),
            "deadlock: {state:?}"
        );
        assert_eq!(state.1.in_flight, 0, "deadlock: {state:?}");
        let late = ["timeout", "lost", "closed"];
        let counts = [
            &self.client_calls.outcome_counts,
            &self.server_calls.outcome_counts,
        ];
        for counts in counts.into_iter().filter(|_| !self.setup.suspends_peers) {
            assert!(
                late.iter().all(|kind| !counts.contains_key(kind)),
                "{counts:?}"
            );
        }
    }

    /// Advances the clock, so that requests to suspended peers end by timeouts.
    fn end_by_timeouts(&mut self) {
        for _ in 0..10_000 {
            let next = [
                self.link.client().poll_timeout(),
                self.link.server().poll_timeout(),
            ];
            let Some(next) = next.into_iter().flatten().min() else {
                break;
            };
            self.now = next;
            self.link.client().handle_timeout(next);
            self.link.server().handle_timeout(next);
            self.run_until_idle();
        }
        let open = (
            self.client_calls.param_bytes.len(),
            self.server_calls.param_bytes.len(),
        );
        assert_eq!(open, (0, 0), "every request ends");
    }

    /// Ends the session, and checks that the usage of both endpoints returns to zero, except for remembered ids.
    fn end_session(mut self) -> Report {
        self.link.client().shutdown(self.now);
        self.link.server().shutdown(self.now);
        self.take_events();
        let mut out = Vec::new();
        while self.link.client().poll_transmit(&mut out).is_some() {}
        out.clear();
        while self.link.server().poll_transmit(&mut out).is_some() {}
        for usage in [self.link.client().usage(), self.link.server().usage()] {
            let held = Usage::default();
            let kept = (
                usage.remembered_ids,
                usage.elicitations,
                usage.tasks,
                usage.tools,
            );
            assert!(kept.0 <= self.setup.limits.remembered_ids, "{kept:?}");
            let mut left = usage;
            left.remembered_ids = 0;
            assert_eq!(left, held, "usage returns to zero");
        }
        self.report.client = self.client_calls.outcome_counts;
        self.report.server = self.server_calls.outcome_counts;
        self.report
    }

    /// Checks that each endpoint's reported usage is within its [`Limits`], and that the allocated bytes do not exceed
    /// the reported usage.
    fn check_usage(&mut self) {
        let limits = &self.setup.limits;
        let answers = limits.in_flight * self.largest_message;
        let bound = limits.in_flight_bytes
            + limits.queued_bytes
            + limits.reserved_bytes
            + limits.queued_bytes
            + limits.subscription_bytes
            + limits.message_bytes.max(self.largest_message)
            + answers;
        let mut explained = 0;
        let usages = [self.link.client().usage(), self.link.server().usage()];
        for usage in &usages {
            let held = held_bytes(usage);
            assert!(held <= bound, "{held} of {bound}: {usage:?}");
            self.report.peak_usage_percent = self.report.peak_usage_percent.max(held * 100 / bound);
            let is_full =
                usage.queued_bytes >= limits.queued_bytes || usage.queued >= limits.queued;
            self.report.full_output_count += usize::from(is_full);
            explained += held;
        }
        // Parameters that are kept for another try, and are the local application's.
        explained += self.client_calls.total_bytes + self.server_calls.total_bytes;
        explained += self.link.link_bytes() + self.filler_text.len() + UNCOUNTED_BYTES;
        let allocated = heap::bytes_in_use().saturating_sub(self.base_allocation);
        let share = allocated * 100 / explained;
        assert!(
            allocated <= explained,
            "{allocated} bytes are allocated, {explained} are explained: {usages:?}"
        );
        self.report.peak_allocation_percent = self.report.peak_allocation_percent.max(share);
    }
}

/// Returns the total number of bytes that an endpoint's usage reports.
fn held_bytes(usage: &Usage) -> usize {
    usage.in_flight_bytes
        + usage.queued_bytes
        + usage.events_bytes
        + usage.batch_bytes
        + usage.subscription_bytes
}
