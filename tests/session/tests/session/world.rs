//! A client and a server with a network between them that loses, repeats and reorders frames, by a seed.
//!
//! Takes random choices; gives what has happened as text. Panics when a request ends twice or never.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use mcp_exact_tests_session::*;
use mcp_exact_tests_support::Rng;

/// A client and a server with a network between them that loses, repeats and reorders frames.
pub(crate) struct World {
    rng: Rng,
    client: Client,
    server: Server<()>,
    now: Time,
    to_server: VecDeque<Vec<u8>>,
    to_client: VecDeque<Vec<u8>>,
    /// Percent of frames that are lost, repeated or delayed.
    faults: usize,
    waiting: Vec<RequestKey>,
    questions: Vec<AskKey>,
    ends: BTreeMap<RequestKey, usize>,
    raised: BTreeSet<RequestKey>,
    transcript: Vec<String>,
    /// Holds each message against its schema, where that is wanted.
    pub(crate) judge: Option<Judge>,
}

/// Limits that a short run reaches.
pub(crate) fn limits() -> Limits {
    Limits {
        served: 8,
        sent: 8,
        queued: 32,
        tombstones: 4,
        notifications_per_second: 50,
        asks: 4,
        rounds: 3,
        ..Limits::default()
    }
}

impl World {
    /// Two sides that speak these revisions and have sent nothing yet.
    pub(crate) fn new(
        seed: u64,
        client_revisions: &[&str],
        server_revisions: &[&str],
        faults: usize,
    ) -> Self {
        let mut client_config = client_config(client_revisions);
        client_config.limits = limits();
        client_config.patience.timeout = Duration::from_secs(3);
        let mut server_config = server_config(server_revisions);
        server_config.limits = limits();
        server_config.patience.timeout = Duration::from_secs(2);
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
            raised: BTreeSet::new(),
            transcript: Vec::new(),
            judge: None,
        }
    }

    /// One thing that a program, the network or the clock does.
    pub(crate) fn act(&mut self) {
        match self.rng.below(12) {
            0 | 1 => self.request(),
            2 => self.cancel(),
            3 | 4 => self.reply(),
            5 => self.answer(),
            6 => self.announce(),
            7 | 8 => self.deliver(true),
            9 | 10 => self.deliver(false),
            _ => self.wait(),
        }
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
                let asks = vec![("a".to_owned(), Ask::new("roots/list", None))];
                let state = Some("state".to_owned());
                Reply::Ask { asks, state }
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
        if let Some(ask) = self.questions.pop() {
            let answer = match self.rng.chance(70) {
                true => Ok(result(json!({ "roots": [] }))),
                false => Err(PeerError::internal("no")),
            };
            let _ = self.client.answer(ask, answer, self.now);
        }
    }

    fn announce(&mut self) {
        match self.rng.below(3) {
            0 => drop(self.server.publish(&Change::Tools)),
            1 => drop(self.server.ping(Patience::default(), self.now)),
            _ => drop(self.client.notify("notifications/roots/list_changed", None)),
        }
    }

    /// Moves a frame, or loses it, repeats it, or lets a later one overtake it.
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
        if to_server {
            let _ = self
                .server
                .receive(StreamId::DUPLEX, &frame, Inbound::new(()), self.now);
        } else {
            let _ = self.client.receive(StreamId::DUPLEX, &frame, self.now);
        }
    }

    fn wait(&mut self) {
        let millis = u64::try_from(self.rng.below(1500)).unwrap_or(0);
        self.now = self.now.plus(Duration::from_millis(millis));
        self.client.handle_timeout(self.now);
        self.server.handle_timeout(self.now);
    }

    fn judge(&mut self, from_client: bool, frame: &[u8]) {
        let agreed = match from_client {
            true => self.client.agreed(),
            false => self.server.agreed().or(self.client.agreed()),
        };
        let agreed = agreed.map(|agreed| agreed.revision.as_str());
        if let Some(judge) = &mut self.judge {
            judge.frame(from_client, frame, agreed);
        }
    }

    /// Takes what both machines send and report; no request ends twice, and none is raised twice in a round.
    pub(crate) fn collect(&mut self) {
        let mut out = Vec::new();
        while let Some(transmit) = self.client.poll_transmit(&mut out) {
            self.transcript
                .push(format!("{transmit:?} {}", String::from_utf8_lossy(&out)));
            let frame = std::mem::take(&mut out);
            if !frame.is_empty() {
                self.judge(true, &frame);
                self.to_server.push_back(frame);
            }
        }
        while let Some(transmit) = self.server.poll_transmit(&mut out) {
            self.transcript
                .push(format!("{transmit:?} {}", String::from_utf8_lossy(&out)));
            let frame = std::mem::take(&mut out);
            if !frame.is_empty() {
                self.judge(false, &frame);
                self.to_client.push_back(frame);
            }
        }
        while let Some(event) = self.client.poll_event() {
            self.transcript.push(format!("{event:?}"));
            match event {
                ClientEvent::Done(key, _) => *self.ends.get_mut(&key).expect("sent") += 1,
                ClientEvent::Ask { key, .. } => self.questions.push(key),
                ClientEvent::Restart => self.client.restarted(self.now),
                _ => {}
            }
        }
        while let Some(event) = self.server.poll_event() {
            self.transcript.push(format!("{event:?}"));
            if let ServerEvent::Request(request) = event {
                assert!(
                    request.round > 0 || self.raised.insert(request.key),
                    "raised once a round"
                );
                self.waiting.push(request.key);
            }
        }
        assert!(self.ends.values().all(|ends| *ends <= 1), "{:?}", self.ends);
    }

    /// Ends the session; every request has ended exactly once then.
    pub(crate) fn finish(mut self) -> (Vec<String>, Option<Judge>) {
        match self.rng.below(3) {
            0 => self.client.shutdown(self.now),
            1 => self.client.closed(StreamId::DUPLEX, Closed::Lost, self.now),
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
        // A client that was just told to start its server again has not sent anything yet.
        self.client.shutdown(self.now);
        self.collect();
        let open: Vec<_> = self.ends.iter().filter(|(_, ends)| **ends != 1).collect();
        assert!(open.is_empty(), "{open:?}");
        assert_eq!(self.client.poll_timeout(), None);
        (self.transcript, self.judge)
    }
}
