//! Seeded runs of a server process that is killed at random points and resumed from the latest saved snapshot: no id is
//! used twice, negotiated properties are kept, lost requests are reported, and only one of two processes can resume.

#![allow(
    clippy::print_stdout,
    reason = "counts belong into the output of a test run"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp_exact_tests_session::*;
use mcp_exact_tests_support::Rng;

/// Store of one session; accepts a snapshot only if its version is higher than the stored version.
#[derive(Debug)]
struct SnapshotStore {
    /// Version of the stored snapshot.
    version: u64,
    /// Text of the stored snapshot.
    text: String,
}

impl SnapshotStore {
    /// Saves a snapshot; returns false if its version is not higher than the stored version.
    fn save_snapshot(&mut self, snapshot: &Snapshot) -> bool {
        let newer = snapshot.version > self.version;
        if newer {
            self.version = snapshot.version;
            self.text = snapshot.to_string();
        }
        newer
    }

    /// Resumes the session from the stored snapshot.
    fn resume(&self, settings: &Arc<ServerSettings>) -> ServerEndpoint<()> {
        let snapshot = self.text.parse().expect("a snapshot");
        let (settings, binding) = (Arc::clone(settings), Binding::StreamableHttp);
        ServerEndpoint::resume(settings, binding, snapshot, Time::ZERO).expect("offered")
    }
}

/// Numbers of responses to one request that the client has received.
#[derive(Debug, Default)]
struct EventCounts {
    /// Number of results of the request.
    results: usize,
    /// Number of error responses that report the restart of the server.
    lost_reports: usize,
}

/// Event in the transport's event log. The log survives the process: an event is logged before the snapshot is saved,
/// and sent afterwards.
///
/// The event is logged before the snapshot is saved, and sent afterwards.
#[derive(Debug)]
struct LoggedEvent {
    /// Stream on which the event is sent.
    stream: StreamId,
    /// Number of the event on its stream.
    sequence: u64,
    /// Message of the event.
    message: Value,
}

/// Session whose server is killed repeatedly.
struct KilledServer {
    rng: Rng,
    /// Settings of the server, which every process of the session uses.
    settings: Arc<ServerSettings>,
    /// Endpoint of the running process.
    server: ServerEndpoint<()>,
    /// Store that survives the process.
    store: SnapshotStore,
    /// True if snapshots are also saved when none is due.
    saves_early: bool,
    /// Number of kills per 1,000 actions. A low rate lets a process use up the ids that a snapshot reserves.
    kill_rate: usize,
    /// Maximum number of concurrent server requests.
    max_server_requests: usize,
    /// Logged events that were not sent yet.
    event_log: Vec<LoggedEvent>,
    /// Requests that the application has not answered, each with true if it is a subscription request.
    unanswered_requests: Vec<(RequestKey, bool)>,
    /// Id of the client's last request.
    last_id: u64,
    /// Events that the client has received, by request id.
    event_counts: BTreeMap<u64, EventCounts>,
    /// Ids of the requests in the saved snapshot.
    saved_request_ids: BTreeSet<u64>,
    /// Resources of subscription requests, by request id.
    uris: BTreeMap<u64, String>,
    /// Resources of the subscriptions in the saved snapshot.
    saved_uris: BTreeSet<String>,
    /// Ids of all server requests that were sent.
    used_server_ids: BTreeSet<u64>,
    /// Stream and number of each sent event.
    sent_events: BTreeSet<(StreamId, u64)>,
    /// Streams on which events were sent.
    sent_streams: BTreeSet<StreamId>,
    /// Number of kills so far.
    kills: usize,
    /// Number of requests whose loss was reported.
    reported_losses: usize,
}

impl KilledServer {
    /// Creates a session of the revision with a running server; `eager` is the value of `saves_early`.
    fn new(seed: u64, revision: &str, eager: bool) -> Self {
        let settings = server_config(&[revision]).build().expect("a configuration");
        let info = negotiated_session(revision, json!({ "roots": {}, "sampling": {} }));
        let snapshot = Snapshot::new(info, 0);
        let mut store = SnapshotStore {
            version: 0,
            text: snapshot.to_string(),
        };
        let mut server = store.resume(&settings);
        let first = server.take_snapshot().expect("a session");
        assert!(store.save_snapshot(&first));
        Self {
            rng: Rng::new(seed),
            settings,
            server,
            store,
            saves_early: eager,
            kill_rate: [40, 5, 1][usize::try_from(seed % 3).unwrap_or(0)],
            max_server_requests: [1, 12][usize::try_from(seed / 3 % 2).unwrap_or(0)],
            event_log: Vec::new(),
            unanswered_requests: Vec::new(),
            last_id: 0,
            event_counts: BTreeMap::new(),
            saved_request_ids: BTreeSet::new(),
            uris: BTreeMap::new(),
            saved_uris: BTreeSet::new(),
            used_server_ids: BTreeSet::new(),
            sent_events: BTreeSet::new(),
            sent_streams: BTreeSet::new(),
            kills: 0,
            reported_losses: 0,
        }
    }

    /// Runs one random action of the client, the application or the transport, and may kill the process afterwards.
    fn run_random_action(&mut self) {
        match self.rng.below(6) {
            0 | 1 => self.post_random_request(),
            2 => self.reply_to_request(),
            3 => (0..=self.rng.below(self.max_server_requests))
                .for_each(|_| self.send_server_request()),
            4 => self.post_random_answer(),
            _ => {
                self.record_output();
                if self.rng.chance(90) && self.save_snapshot() {
                    self.send_logged_events();
                }
            }
        }
        if self.rng.below(1000) < self.kill_rate {
            self.kill_process();
        }
    }

    /// Posts a message of the client; records the requests that the application receives.
    fn post_message(&mut self, message: &Value) {
        let stream = self.server.open(StreamKind::Post).expect("room");
        let text = message.to_string();
        let with = FrameContext::new(());
        let received = self
            .server
            .receive(stream, text.as_bytes(), with, Time::ZERO);
        received.expect("open");
        while let Some(event) = self.server.poll_event() {
            if let ServerEvent::Request(request) = event {
                let subscribes = request.method() == "resources/subscribe";
                self.unanswered_requests.push((request.key, subscribes));
            }
        }
    }

    /// Posts a random request of the client.
    fn post_random_request(&mut self) {
        self.last_id += 1;
        let id = self.last_id;
        let message = match self.rng.below(4) {
            0 => {
                let uri = format!("file:///{id}");
                self.uris.insert(id, uri.clone());
                json!({ "jsonrpc": "2.0", "id": id, "method": "resources/subscribe", "params": { "uri": uri } })
            }
            _ => {
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "x" } })
            }
        };
        self.event_counts.insert(id, EventCounts::default());
        self.post_message(&message);
    }

    /// Posts the client's result for the server request with the highest id.
    fn post_random_answer(&mut self) {
        if let Some(id) = self.used_server_ids.last().copied() {
            self.post_message(&json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": [] } }));
        }
    }

    /// Replies to a random unanswered request.
    fn reply_to_request(&mut self) {
        if self.unanswered_requests.is_empty() {
            return;
        }
        let (key, subscribes) = self
            .unanswered_requests
            .swap_remove(self.rng.below(self.unanswered_requests.len()));
        let body = if subscribes {
            json!({})
        } else {
            json!({ "content": [] })
        };
        self.server
            .reply(key, to_result(body), Time::ZERO)
            .expect("it waits");
    }

    /// Sends a server request during the latest unanswered request.
    fn send_server_request(&mut self) {
        if let Some((key, _)) = self.unanswered_requests.last() {
            let (scope, options) = (Scope::During(*key), CallOptions::default());
            let sent = self
                .server
                .request(scope, "roots/list", None, options, Time::ZERO);
            assert!(matches!(sent, Ok(_) | Err(SendError::Limit(_))), "{sent:?}");
            self.discard_events();
        }
    }

    /// Discards all pending events.
    fn discard_events(&mut self) {
        while self.server.poll_event().is_some() {}
    }

    /// Moves the output of every stream into the event log.
    fn record_output(&mut self) {
        let streams: Vec<StreamId> = self.server.writable_streams().collect();
        for stream in streams {
            self.record_stream(stream);
        }
    }

    /// Moves the output of one stream into the event log.
    fn record_stream(&mut self, stream: StreamId) {
        while let Some((transmit, bytes)) = self.server.poll_transmit_on(stream) {
            if let Transmit::Frame { sequence, .. } = transmit {
                self.event_log.push(LoggedEvent {
                    stream,
                    sequence,
                    message: serde_json::from_slice(&bytes).expect("JSON"),
                });
            }
        }
    }

    /// Saves a snapshot if it is due; returns true if the logged events may be sent.
    fn save_snapshot(&mut self) -> bool {
        let due = self.server.snapshot_due();
        if due == SnapshotDue::Now || (self.saves_early && due == SnapshotDue::Soon) {
            let snapshot = self.server.take_snapshot().expect("a session");
            assert!(
                self.store.save_snapshot(&snapshot),
                "only this process writes"
            );
            let ids = snapshot.requests.iter().map(|request| &request.id);
            let ids = ids.filter_map(|id| id.to_string().parse().ok());
            self.saved_request_ids = ids.collect();
        }
        self.server.snapshot_due() != SnapshotDue::Now
    }

    /// Sends the events of the log to the client.
    fn send_logged_events(&mut self) {
        for event in std::mem::take(&mut self.event_log) {
            let id = (event.stream, event.sequence);
            assert!(
                self.sent_events.insert(id),
                "an event id is used twice: {event:?}"
            );
            self.sent_streams.insert(event.stream);
            self.record_client_message(&event.message);
        }
    }

    /// Counts a message that the client has received.
    fn record_client_message(&mut self, message: &Value) {
        let id = message["id"].as_u64().expect("a number");
        if message["method"].is_string() {
            assert!(
                self.used_server_ids.insert(id),
                "an id is used twice: {message}"
            );
            return;
        }
        let seen = self
            .event_counts
            .get_mut(&id)
            .expect("the client has sent it");
        if message["error"].is_object() {
            let text = message["error"]["message"].as_str().unwrap_or_default();
            assert!(text.contains("the request is lost"), "{message}");
            seen.lost_reports += 1;
        } else {
            seen.results += 1;
            self.saved_uris.extend(self.uris.get(&id).cloned());
        }
    }

    /// Kills the server process, and resumes the session in a new process.
    fn kill_process(&mut self) {
        self.kills += 1;
        // The log outlives the process, and what it holds may be sent as long as the snapshot allows it. An event that was
        // recorded and never allowed to leave is dropped with the process.
        if self.server.snapshot_due() == SnapshotDue::Now {
            self.event_log.clear();
        }
        self.unanswered_requests.clear();
        self.server = self.store.resume(&self.settings);
        let mut rival = self.store.resume(&self.settings);
        assert_eq!(self.server.snapshot_due(), SnapshotDue::Now);
        let known = std::mem::take(&mut self.saved_request_ids);
        self.resume_lost_streams(&known);
        assert!(self.save_snapshot());
        let late = rival.take_snapshot().expect("a session");
        assert!(
            !self.store.save_snapshot(&late),
            "two processes resume one session"
        );
        self.send_logged_events();
        for id in &known {
            let seen = &self.event_counts[id];
            assert!(seen.lost_reports + seen.results > 0, "{id}: {seen:?}");
        }
        let subscribed = self.server.usage().subscriptions;
        assert!(
            subscribed >= self.saved_uris.len(),
            "{subscribed} of {:?}",
            self.saved_uris
        );
    }

    /// Resumes every stream as the client; checks that the loss of each request in `known` is reported.
    fn resume_lost_streams(&mut self, known: &BTreeSet<u64>) {
        let before = self.event_log.len();
        let last = self.sent_streams.last().map_or(0, |stream| stream.number()) + 2048;
        for number in 1..=last {
            let stream = StreamId::from_number(number);
            if self.server.handle_attach(stream, Time::ZERO) {
                self.record_stream(stream);
            }
        }
        let reported = self.event_log.len() - before;
        assert_eq!(reported, known.len(), "each lost request is reported");
        self.reported_losses += reported;
    }

    /// Sends the remaining events and checks that no request has two results; returns the numbers of kills and of
    /// reported losses.
    fn check_invariants(mut self) -> (usize, usize) {
        self.record_output();
        assert!(self.save_snapshot());
        self.send_logged_events();
        for (id, seen) in &self.event_counts {
            assert!(seen.results <= 1, "{id}: {seen:?}");
        }
        (self.kills, self.reported_losses)
    }
}

/// If snapshots are saved when they are due, "no id is used twice, no event is repeated, and lost requests are
/// reported", whenever the process is killed; if two processes resume the session, only one of them can save a
/// snapshot.
#[test]
fn killed_servers_lose_no_session() {
    let (mut kills, mut reported) = (0, 0);
    for revision in handshake_revisions()
        .into_iter()
        .filter(|id| *id != "2024-11-05")
    {
        for seed in 0..6 {
            let mut server = KilledServer::new(seed, revision, seed % 2 == 0);
            while server.last_id < 1000 {
                server.run_random_action();
            }
            let (killed, lost) = server.check_invariants();
            kills += killed;
            reported += lost;
        }
    }
    println!("killed {kills} times, {reported} lost requests reported");
    assert!(kills > 300 && reported > 100, "{kills} {reported}");
}
