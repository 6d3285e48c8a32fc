//! What holds whatever the network and the other side do: no panic, memory within the limits, every request ends exactly
//! once, and the same inputs give the same outputs. Seeded, so that a failure comes again.

#![allow(
    clippy::print_stdout,
    reason = "counts belong into the output of a test run"
)]

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use mcp_exact_tests_session::*;
use mcp_exact_tests_support::Rng;

/// A client and a server with a network between them that loses, repeats and reorders frames.
struct World {
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
    judge: Option<Judge>,
}

fn limits() -> Limits {
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
    fn new(seed: u64, client_revisions: &[&str], server_revisions: &[&str], faults: usize) -> Self {
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

    fn act(&mut self) {
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

    fn collect(&mut self) {
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
    fn finish(mut self) -> (Vec<String>, Option<Judge>) {
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

fn peers() -> Vec<(Vec<&'static str>, Vec<&'static str>)> {
    let mut all = all();
    let single = all.clone().into_iter().map(|id| (vec![id], vec![id]));
    let single: Vec<_> = single.collect();
    all.reverse();
    let mixed = [
        (all.clone(), all.clone()),
        (all.clone(), handshake()),
        (handshake(), all.clone()),
        (per_request(), all),
    ];
    single.into_iter().chain(mixed).collect()
}

fn run(seed: u64, client: &[&str], server: &[&str], faults: usize, steps: usize) -> Vec<String> {
    let mut world = World::new(seed, client, server, faults);
    world.collect();
    for _ in 0..steps {
        world.act();
    }
    world.finish().0
}

/// The same with the schema check of every message.
fn judged(seed: u64, client: &[&str], server: &[&str], faults: usize, steps: usize) -> Judge {
    let mut world = World::new(seed, client, server, faults);
    world.judge = Some(Judge::default());
    world.collect();
    for _ in 0..steps {
        world.act();
    }
    world.finish().1.expect("a judge")
}

#[test]
fn every_request_ends_exactly_once_whatever_the_network_does() {
    let outcomes = ["Result", "Error", "TimedOut", "Cancelled", "Lost", "Closed"];
    let mut seen = BTreeMap::new();
    for (client, server) in peers() {
        for seed in 0..120 {
            let faults = [0, 10, 40][usize::try_from(seed % 3).unwrap_or(0)];
            for line in run(seed, &client, &server, faults, 150) {
                let ended = line
                    .strip_prefix("Done(")
                    .and_then(|line| line.split_once("), "));
                let kind =
                    ended.and_then(|(_, end)| outcomes.iter().find(|kind| end.starts_with(**kind)));
                if let Some(kind) = kind {
                    *seen.entry(*kind).or_insert(0_usize) += 1;
                }
            }
        }
    }
    // All of them happen, and often.
    assert!(
        outcomes
            .iter()
            .all(|kind| seen.get(kind).is_some_and(|count| *count > 50)),
        "{seen:?}"
    );
}

#[test]
fn every_message_is_valid_whatever_the_network_does() {
    let mut checked: BTreeMap<String, usize> = BTreeMap::new();
    let mut early = 0;
    for (client, server) in peers() {
        for seed in 0..12 {
            let faults = [0, 10, 40][usize::try_from(seed % 3).unwrap_or(0)];
            let judge = judged(seed, &client, &server, faults, 150);
            early += judge.early;
            for (revision, count) in judge.checked {
                *checked.entry(revision).or_default() += count;
            }
        }
    }
    println!("checked by schema: {checked:?}, {early} before anything was agreed");
    for revision in all() {
        assert!(
            checked.get(revision).is_some_and(|count| *count > 200),
            "{checked:?}"
        );
    }
}

/// What a client of the test sends next: of the handshake's session, or a request that carries its revision.
fn either_era(rng: &mut Rng, id: usize) -> (Value, Option<String>) {
    let modern = rng.chance(50);
    let methods = [
        "tools/list",
        "tools/call",
        "resources/read",
        "prompts/list",
        "ping",
        "x",
        "subscriptions/listen",
        "server/discover",
        "logging/setLevel",
    ];
    let method = *rng.pick(&methods);
    let mut params = json!({ "name": "x", "uri": "a:b", "level": "debug", "notifications": { "toolsListChanged": true },
        "_meta": { "progressToken": id } });
    if modern {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!(per_request()[0]);
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "roots": {} });
        meta["io.modelcontextprotocol/logLevel"] = json!("debug");
    }
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    (message, modern.then(|| per_request()[0].to_owned()))
}

#[test]
fn every_message_of_a_server_is_valid_with_both_eras_on_one_connection() {
    let mut checked: BTreeMap<String, usize> = BTreeMap::new();
    for (at, session) in handshake().into_iter().enumerate() {
        for seed in 0..20_u64 {
            let mut rng = Rng::new(seed * 10 + u64::try_from(at).unwrap_or(0));
            let mut judge = Judge::default();
            let mut revision_of: BTreeMap<RequestKey, String> = BTreeMap::new();
            let mut raw = RawServer::begun(server_config(&all()), session, json!({ "roots": {} }));
            let mut waiting = Vec::new();
            for id in 1..60 {
                let (message, own) = either_era(&mut rng, id);
                let text = message.to_string();
                judge_request(&mut judge, &text, own.as_deref().unwrap_or(session));
                let _ = raw.machine.receive(
                    StreamId::DUPLEX,
                    text.as_bytes(),
                    Inbound::new(()),
                    raw.now,
                );
                for event in raw.events() {
                    match event {
                        ServerEvent::Request(request) => {
                            revision_of.insert(request.key, request.revision().to_string());
                            waiting.push(request.key);
                        }
                        ServerEvent::Listen { key, .. } => {
                            revision_of.insert(key, per_request()[0].to_owned());
                        }
                        _ => {}
                    }
                }
                if rng.chance(60) && !waiting.is_empty() {
                    let key = waiting.remove(rng.below(waiting.len()));
                    let said = raw
                        .machine
                        .progress(key, &Progress::new(1.0).with_message("m"));
                    said.expect("the first one");
                    let _ = raw
                        .machine
                        .log(Scope::During(key), Level::Error, None, json!(1));
                    let reply = match rng.below(4) {
                        0 => Reply::Error(PeerError::new(code::RESOURCE_NOT_FOUND, "no")),
                        1 => Reply::Ask {
                            asks: vec![("r".into(), Ask::new("roots/list", None))],
                            state: Some("s".into()),
                        },
                        _ => Reply::Result(result(
                            json!({ "tools": [], "contents": [], "content": [], "prompts": [] }),
                        )),
                    };
                    if raw.machine.reply(key, reply, raw.now).is_err() {
                        let error = PeerError::internal("no");
                        raw.machine.reply(key, error, raw.now).expect("it waits");
                    }
                }
                if rng.chance(20) {
                    raw.machine.publish(&Change::Tools);
                }
                let mut out = Vec::new();
                while let Some(transmit) = raw.machine.poll_transmit(&mut out) {
                    if let Transmit::Frame { about, .. } = transmit {
                        let known = about.and_then(|key| revision_of.get(&key));
                        judge.frame(false, &out, Some(known.map_or(session, String::as_str)));
                    }
                    out.clear();
                }
            }
            for (revision, count) in judge.checked {
                *checked.entry(revision).or_default() += count;
            }
        }
    }
    println!("checked by schema, eras mixed: {checked:?}");
    for revision in all() {
        assert!(
            checked.get(revision).is_some_and(|count| *count > 200),
            "{checked:?}"
        );
    }
}

/// Lets the judge know of a request of the test, which need not be valid itself.
fn judge_request(judge: &mut Judge, text: &str, revision: &str) {
    let message: Value = serde_json::from_str(text).expect("JSON");
    judge.asked(true, &message, revision);
}

#[test]
fn the_same_inputs_give_the_same_outputs() {
    for (client, server) in peers() {
        for seed in 0..10 {
            let once = run(seed, &client, &server, 20, 200);
            assert_eq!(once, run(seed, &client, &server, 20, 200));
        }
    }
}

/// Text that is or resembles a message.
fn hostile(rng: &mut Rng) -> Vec<u8> {
    let id = *rng.pick(&[
        "1",
        "2",
        "\"a\"",
        "null",
        "1.5",
        "{}",
        "[]",
        "99999999999999999999",
        "-1",
    ]);
    let method = *rng.pick(&[
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/message",
        "sampling/createMessage",
        "roots/list",
        "server/discover",
        "subscriptions/listen",
        "logging/setLevel",
        "resources/subscribe",
        "x",
        "",
    ]);
    let version = *rng.pick(&["2024-11-05", "2025-03-26", "2025-11-25", "2026-07-28", "x"]);
    let meta = format!(
        r#"{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}},"progressToken":{id}}}"#
    );
    let params = match rng.below(6) {
        0 => format!(
            r#"{{"requestId":{id},"progressToken":{id},"progress":1,"level":"info","data":1,"uri":"u"}}"#
        ),
        1 => format!(
            r#"{{"_meta":{meta},"notifications":{{"toolsListChanged":true}},"name":"n","requestState":"s"}}"#
        ),
        2 => format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}"#
        ),
        3 => "[]".to_owned(),
        4 => "{}".to_owned(),
        _ => "null".to_owned(),
    };
    let body = match rng.below(6) {
        0 => format!(r#""method":"{method}","params":{params}"#),
        1 => format!(r#""id":{id},"result":{params}"#),
        2 => format!(r#""id":{id},"error":{{"code":{id},"message":"m"}}"#),
        _ => format!(r#""id":{id},"method":"{method}","params":{params}"#),
    };
    let message = format!(r#"{{"jsonrpc":"2.0",{body}}}"#);
    let mut bytes = match rng.below(8) {
        0 => format!("[{message},{message}]").into_bytes(),
        1 => "[".repeat(rng.below(400)).into_bytes(),
        _ => message.into_bytes(),
    };
    if rng.chance(15) && !bytes.is_empty() {
        let at = rng.below(bytes.len());
        bytes[at] = u8::try_from(rng.below(256)).unwrap_or(0);
    }
    if rng.chance(5) {
        bytes.truncate(rng.below(bytes.len() + 1));
    }
    bytes
}

#[test]
fn hostile_frames_do_a_server_no_harm() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut config = server_config(&all());
        config.limits = limits();
        let most = config.limits.clone();
        let mut server = server(config);
        let (mut requests, mut frames) = (0, 0);
        for _ in 0..300 {
            let frame = hostile(&mut rng);
            server
                .receive(StreamId::DUPLEX, &frame, Inbound::new(()), Time::ZERO)
                .expect("open");
            // Sometimes the program is slow.
            if rng.chance(70) || !server.wants_input() {
                let events = std::iter::from_fn(|| server.poll_event());
                requests += events
                    .filter(|event| matches!(event, ServerEvent::Request(_)))
                    .count();
                let mut out = Vec::new();
                while server.poll_transmit(&mut out).is_some() {
                    frames += 1;
                    assert!(!out.contains(&b'\n'));
                    let message: Value = serde_json::from_slice(&out).expect("JSON");
                    assert!(message.is_object() || message.is_array());
                    out.clear();
                }
            }
        }
        assert!(requests <= most.served, "nothing was answered: {requests}");
        // Two answers for a batch of two, three messages for the end of a subscription.
        assert!(frames <= 300 * 3);
    }
}

#[test]
fn hostile_frames_do_a_client_no_harm() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut revisions = all();
        revisions.rotate_left(rng.below(5));
        let mut config = client_config(&revisions);
        config.limits = limits();
        let mut client = client(config);
        let mut ends: BTreeMap<RequestKey, usize> = BTreeMap::new();
        for _ in 0..300 {
            let frame = hostile(&mut rng);
            let _ = client.receive(StreamId::DUPLEX, &frame, Time::ZERO);
            let sent = client.request("ping", None, CallOptions::default(), Time::ZERO);
            if let Ok(key) = sent {
                ends.insert(key, 0);
            }
            let mut out = Vec::new();
            while client.poll_transmit(&mut out).is_some() {}
            while let Some(event) = client.poll_event() {
                if let ClientEvent::Done(key, _) = event {
                    *ends.get_mut(&key).expect("sent") += 1;
                }
            }
        }
        client.shutdown(Time::ZERO);
        while let Some(event) = client.poll_event() {
            if let ClientEvent::Done(key, _) = event {
                *ends.get_mut(&key).expect("sent") += 1;
            }
        }
        assert!(ends.values().all(|ends| *ends == 1), "{ends:?}");
    }
}
