//! Invariants of endpoints when messages are lost, truncated, repeated or invalid: no panic, memory within the limits,
//! every request ends exactly once, and equal inputs give equal outputs. Runs are seeded, so that failures are
//! reproducible.

#![allow(
    clippy::print_stdout,
    reason = "counts belong into the output of a test run"
)]

use std::collections::{BTreeMap, BTreeSet};

use mcp_exact_tests_session::*;
use mcp_exact_tests_support::Rng;

use crate::simulated_network::{EventRecord, SimulatedNetwork, low_limits};

/// Returns pairs of the revisions that a client offers and the revisions that a server offers.
fn peers() -> Vec<(Vec<&'static str>, Vec<&'static str>)> {
    let mut all = all_revisions();
    let single = all.clone().into_iter().map(|id| (vec![id], vec![id]));
    let single: Vec<_> = single.collect();
    all.reverse();
    let mixed = [
        (all.clone(), all.clone()),
        (all.clone(), handshake_revisions()),
        (handshake_revisions(), all.clone()),
        (discover_revisions(), all),
    ];
    single.into_iter().chain(mixed).collect()
}

/// Runs a simulation with these revisions, fault percentage and number of steps; checks the invariants.
fn run_simulation(
    seed: u64,
    client: &[&str],
    server: &[&str],
    faults: usize,
    steps: usize,
) -> EventRecord {
    let mut world = SimulatedNetwork::new(seed, client, server, faults);
    world.handle_pending();
    for _ in 0..steps {
        world.run_random_action();
    }
    world.finish_session()
}

/// Runs a simulation that also checks every message against its schema.
fn run_with_checker(
    seed: u64,
    client: &[&str],
    server: &[&str],
    faults: usize,
    steps: usize,
) -> SchemaChecker {
    let mut world = SimulatedNetwork::new(seed, client, server, faults);
    world.checker = Some(SchemaChecker::default());
    world.handle_pending();
    for _ in 0..steps {
        world.run_random_action();
    }
    world.finish_session().checker.expect("a checker")
}

/// Every request of either peer has exactly one outcome, also if frames are lost, repeated or delayed.
#[test]
fn every_request_ends_exactly_once() {
    let mut seen = BTreeMap::new();
    let mut answers: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    let mut reached_limits = BTreeSet::new();
    for (client, server) in peers() {
        for seed in 0..120 {
            let faults = [0, 10, 40][usize::try_from(seed % 3).unwrap_or(0)];
            let record = run_simulation(seed, &client, &server, faults, 150);
            reached_limits.extend(record.reached_limits);
            for (end, count) in record.outcome_counts {
                *seen.entry(end).or_insert(0_usize) += count;
            }
            for (role, (answered, cancelled)) in record.answer_counts {
                let sum = answers.entry(role).or_default();
                *sum = (sum.0 + answered, sum.1 + cancelled);
            }
        }
    }
    println!("ended: {seen:?}; answered and cancelled: {answers:?}; reached: {reached_limits:?}");
    // What is looked at after each step is no more than the limits, and as much.
    for role in ["client", "server"] {
        for name in ["in_flight", "sent", "remembered_ids"] {
            assert!(
                reached_limits.contains(&(role, name)),
                "{role} {name} {reached_limits:?}"
            );
        }
    }
    assert!(
        reached_limits.contains(&("server", "subscriptions")),
        "{reached_limits:?}"
    );
    // All of them happen to both sides, and often.
    for role in ["client", "server"] {
        for kind in ["result", "error", "timeout", "cancelled", "lost", "closed"] {
            let count = seen.get(&(role, kind));
            assert!(
                count.is_some_and(|count| *count > 50),
                "{role} {kind} {seen:?}"
            );
        }
        let (answered, cancelled) = answers[role];
        assert!(answered > 1000 && cancelled > 50, "{answers:?}");
    }
}

/// Every sent message is valid by the schema of its revision.
#[test]
fn every_message_is_valid() {
    let mut checked: BTreeMap<String, usize> = BTreeMap::new();
    let mut early = 0;
    for (client, server) in peers() {
        for seed in 0..12 {
            let faults = [0, 10, 40][usize::try_from(seed % 3).unwrap_or(0)];
            let checker = run_with_checker(seed, &client, &server, faults, 150);
            early += checker.unknown_revision_count;
            for (revision, count) in checker.checked_counts {
                *checked.entry(revision).or_default() += count;
            }
        }
    }
    println!("checked by schema: {checked:?}, {early} before a revision was negotiated");
    for revision in all_revisions() {
        assert!(
            checked.get(revision).is_some_and(|count| *count > 200),
            "{checked:?}"
        );
    }
}

/// Returns a random message of a client, and the revision that the message carries, if any.
fn random_client_message(rng: &mut Rng, id: usize) -> (Value, Option<String>) {
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
    let own = modern.then(|| (*rng.pick(&discover_revisions())).to_owned());
    if let Some(own) = &own {
        let meta = &mut params["_meta"];
        meta["io.modelcontextprotocol/protocolVersion"] = json!(own);
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({ "roots": {} });
        meta["io.modelcontextprotocol/logLevel"] = json!("debug");
    }
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    (message, own)
}

/// All messages of a server are valid if a session and requests that carry their revision share one connection.
#[test]
fn mixed_lifecycles_yield_valid_messages() {
    let mut checked: BTreeMap<String, usize> = BTreeMap::new();
    for (at, session) in handshake_revisions().into_iter().enumerate() {
        for seed in 0..20_u64 {
            let mut rng = Rng::new(seed * 10 + u64::try_from(at).unwrap_or(0));
            let mut checker = SchemaChecker::default();
            let mut revision_of: BTreeMap<RequestKey, String> = BTreeMap::new();
            let mut raw = RawServer::with_session(
                server_config(&all_revisions()),
                session,
                json!({ "roots": {} }),
            );
            let mut waiting = Vec::new();
            for id in 1..60 {
                let (message, own) = random_client_message(&mut rng, id);
                let text = message.to_string();
                record_request(&mut checker, &text, own.as_deref().unwrap_or(session));
                let _ = raw.endpoint.receive(
                    StreamId::DUPLEX,
                    text.as_bytes(),
                    FrameContext::new(()),
                    raw.now,
                );
                for event in raw.events() {
                    match event {
                        ServerEvent::Request(request) => {
                            revision_of.insert(request.key, request.revision().to_string());
                            waiting.push(request.key);
                        }
                        ServerEvent::Subscribed { key, .. } => {
                            let own = own.clone().expect("a subscription names its revision");
                            revision_of.insert(key, own);
                        }
                        _ => {}
                    }
                }
                if rng.chance(60) && !waiting.is_empty() {
                    let key = waiting.remove(rng.below(waiting.len()));
                    let said = raw
                        .endpoint
                        .send_progress(key, &Progress::new(1.0).with_message("m"));
                    said.expect("the first one");
                    let _ = raw
                        .endpoint
                        .send_log(Scope::During(key), Level::Error, None, json!(1));
                    let reply = match rng.below(4) {
                        0 => Reply::Error(PeerError::new(code::RESOURCE_NOT_FOUND, "no")),
                        1 => Reply::InputRequired {
                            requests: vec![("r".into(), InputRequest::new("roots/list", None))],
                            state: Some("s".into()),
                        },
                        _ => Reply::Result(to_result(
                            json!({ "tools": [], "contents": [], "content": [], "prompts": [] }),
                        )),
                    };
                    if raw.endpoint.reply(key, reply, raw.now).is_err() {
                        let error = PeerError::internal("no");
                        raw.endpoint.reply(key, error, raw.now).expect("it waits");
                    }
                }
                if rng.chance(20) {
                    raw.endpoint.publish(&Change::Tools);
                }
                let mut out = Vec::new();
                while let Some(transmit) = raw.endpoint.poll_transmit(&mut out) {
                    if let Transmit::Frame {
                        related_request: about,
                        ..
                    } = transmit
                    {
                        let known = about.and_then(|key| revision_of.get(&key));
                        checker.check_frame(
                            false,
                            &out,
                            Some(known.map_or(session, String::as_str)),
                        );
                    }
                    out.clear();
                }
            }
            for (revision, count) in checker.checked_counts {
                *checked.entry(revision).or_default() += count;
            }
        }
    }
    println!("checked by schema, eras mixed: {checked:?}");
    for revision in all_revisions() {
        assert!(
            checked.get(revision).is_some_and(|count| *count > 150),
            "{checked:?}"
        );
    }
}

/// Records a request of the test in the schema checker, without checking it.
fn record_request(checker: &mut SchemaChecker, text: &str, revision: &str) {
    let message: Value = serde_json::from_str(text).expect("JSON");
    checker.record_request(true, &message, revision);
}

/// Two simulations with the same seed have the same frames and events.
#[test]
fn equal_inputs_give_equal_outputs() {
    for (client, server) in peers() {
        for seed in 0..10 {
            let once = run_simulation(seed, &client, &server, 20, 200).transcript;
            let again = run_simulation(seed, &client, &server, 20, 200).transcript;
            assert_eq!(once, again);
        }
    }
}

/// Returns a random text that is or resembles a message.
fn hostile_text(rng: &mut Rng) -> Vec<u8> {
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

/// Arbitrary frames never make a server panic or exceed its limits.
#[test]
fn server_survives_hostile_frames() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut config = server_config(&all_revisions());
        config.limits = low_limits();
        let most = config.limits.clone();
        let mut server = server(config);
        let (mut requests, mut frames) = (0, 0);
        for _ in 0..300 {
            let frame = hostile_text(&mut rng);
            server
                .receive(StreamId::DUPLEX, &frame, FrameContext::new(()), Time::ZERO)
                .expect("open");
            check_usage(&server.usage(), &most);
            // Sometimes the application is slow.
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
        assert!(
            requests <= most.in_flight,
            "nothing was answered: {requests}"
        );
        // Two answers for a batch of two, three messages for the end of a subscription.
        assert!(frames <= 300 * 3);
    }
}

/// Arbitrary frames never make a client panic or exceed its limits.
#[test]
fn client_survives_hostile_frames() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut revisions = all_revisions();
        revisions.rotate_left(rng.below(5));
        let mut config = client_config(&revisions);
        config.limits = low_limits();
        let most = config.limits.clone();
        let mut client = client(config);
        let mut ends: BTreeMap<RequestKey, usize> = BTreeMap::new();
        for _ in 0..300 {
            let frame = hostile_text(&mut rng);
            let _ = client.receive(StreamId::DUPLEX, &frame, Time::ZERO);
            let sent = client.request("ping", None, CallOptions::default(), Time::ZERO);
            if let Ok(key) = sent {
                ends.insert(key, 0);
            }
            check_usage(&client.usage(), &most);
            let mut out = Vec::new();
            while client.poll_transmit(&mut out).is_some() {}
            while let Some(event) = client.poll_event() {
                if let ClientEvent::Completed(key, _) = event {
                    *ends.get_mut(&key).expect("sent") += 1;
                }
            }
        }
        client.shutdown(Time::ZERO);
        while let Some(event) = client.poll_event() {
            if let ClientEvent::Completed(key, _) = event {
                *ends.get_mut(&key).expect("sent") += 1;
            }
        }
        assert!(ends.values().all(|ends| *ends == 1), "{ends:?}");
    }
}
