//! Sessions that outlive their process (`basic/transports`, "Session Management"): the content of a snapshot, the times
//! at which it is due, and the behaviour of a resumed endpoint.

use mcp_exact_tests_session::*;

/// Newest revision with sessions.
const REVISION: &str = "2025-11-25";

/// Resumes a server from a snapshot.
fn resume_server(snapshot: Snapshot, binding: Binding) -> ServerEndpoint<()> {
    let settings = server_config(&[REVISION]).build().expect("a configuration");
    ServerEndpoint::resume(settings, binding, snapshot, Time::ZERO).expect("offered")
}

/// Posts a message; returns its stream.
fn post(server: &mut ServerEndpoint<()>, message: &Value) -> StreamId {
    let stream = server.open(StreamKind::Post).expect("a stream");
    let text = message.to_string();
    let received = server.receive(stream, text.as_bytes(), FrameContext::new(()), Time::ZERO);
    received.expect("open");
    stream
}

/// Removes and returns the events of the server.
fn events(server: &mut ServerEndpoint<()>) -> Vec<ServerEvent<()>> {
    std::iter::from_fn(|| server.poll_event()).collect()
}

/// A snapshot contains the negotiated revision, the capabilities, the log level and the subscriptions, and its text is
/// equal for equal sessions.
#[test]
fn snapshot_restores_session_state() {
    let capabilities = json!({ "roots": {}, "elicitation": { "url": {} } });
    let mut server =
        CheckedServer::with_session(server_config(&[REVISION]), REVISION, capabilities);
    server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": { "level": "error" } }));
    let key = server.serve(&json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": { "uri": "a:b" } })).key;
    server.reply(key, to_result(json!({})));
    assert_eq!(server.endpoint.snapshot_due(), SnapshotDue::Now);
    let text = server
        .endpoint
        .take_snapshot()
        .expect("a session")
        .to_string();
    assert_eq!(server.endpoint.snapshot_due(), SnapshotDue::NotDue);
    let snapshot: Snapshot = text.parse().expect("a snapshot");
    assert_eq!(snapshot.to_string(), text);
    let mut again = resume_server(snapshot, Binding::Duplex);
    assert_eq!(
        again.snapshot_due(),
        SnapshotDue::Now,
        "before anything is sent"
    );
    assert_eq!(again.session_info(), server.endpoint.session_info());
    assert!(
        again.would_send_log(Scope::Peer, Level::Error)
            && !again.would_send_log(Scope::Peer, Level::Warning)
    );
    assert_eq!(again.publish(&Change::Resource("a:b".to_owned())), 1);
    assert_eq!(again.publish(&Change::Resource("a:c".to_owned())), 0);
    for damaged in [
        "",
        "{}",
        "[]",
        &text.replace("\"version\"", "\"v\""),
        &text.replace("true", "5"),
    ] {
        assert!(damaged.parse::<Snapshot>().is_err(), "{damaged}");
    }
    let other = server_config(&["2025-06-18"])
        .build()
        .expect("a configuration");
    let refused = ServerEndpoint::<()>::resume(
        other,
        Binding::Duplex,
        text.parse().expect("a snapshot"),
        Time::ZERO,
    );
    assert!(matches!(refused, Err(ConfigError::UnknownRevision(_))));
}

/// "Request ids MUST NOT have been previously used by the requestor within the same session": ids and stream numbers continue
/// after those that the snapshot has reserved, even if more messages were sent after the snapshot was taken.
#[test]
fn resumed_ids_are_new() {
    let mut server =
        CheckedServer::with_session(server_config(&[REVISION]), REVISION, json!({ "roots": {} }));
    let snapshot = server.endpoint.take_snapshot().expect("a session");
    let mut used = std::collections::BTreeSet::new();
    while server.endpoint.snapshot_due() != SnapshotDue::Now {
        let asked = server.endpoint.request(
            Scope::Peer,
            "roots/list",
            None,
            CallOptions::default(),
            Time::ZERO,
        );
        let Ok(key) = asked else {
            panic!("{asked:?}");
        };
        // The one with which the snapshot becomes due must not leave before it is written.
        if server.endpoint.snapshot_due() != SnapshotDue::Now {
            assert!(used.insert(server.take_messages()[0]["id"].to_string()));
        }
        server.endpoint.cancel(key, "enough", Time::ZERO);
        server.take_messages();
    }
    assert!(
        used.len() > 100,
        "not every message needs a snapshot: {}",
        used.len()
    );
    let mut again = resume_server(snapshot, Binding::Duplex);
    again
        .request(
            Scope::Peer,
            "roots/list",
            None,
            CallOptions::default(),
            Time::ZERO,
        )
        .expect("it leaves");
    let mut bytes = Vec::new();
    again.poll_transmit(&mut bytes).expect("a request");
    let message: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert!(!used.contains(&message["id"].to_string()));
}

/// Ids that only the latest snapshot has reserved count as unsaved until it is saved: messages with such ids have to wait for it, and
/// others need not.
#[test]
fn ids_of_an_unsaved_snapshot_are_unsaved() {
    let mut server =
        CheckedServer::with_session(server_config(&[REVISION]), REVISION, json!({ "roots": {} }));
    server.endpoint.take_snapshot().expect("a session");
    server.endpoint.record_saved_snapshot();
    for number in 0..300 {
        if number == 200 {
            server.endpoint.take_snapshot().expect("a session");
        }
        assert_eq!(server.endpoint.uses_unsaved_ids(), number > 256, "{number}");
        let options = CallOptions::default();
        let asked = (server.endpoint).request(Scope::Peer, "roots/list", None, options, Time::ZERO);
        let Ok(key) = asked else {
            panic!("{asked:?}");
        };
        assert_ne!(server.endpoint.snapshot_due(), SnapshotDue::Now, "{number}");
        server.endpoint.cancel(key, "enough", Time::ZERO);
        server.take_messages();
    }
    server.endpoint.record_saved_snapshot();
    assert!(!server.endpoint.uses_unsaved_ids());
}

/// "Every request ends once": when the client resumes the stream of a request that was in flight when the process died,
/// the client receives an error that reports the loss, with an event id above all ids that may have been used.
#[test]
fn lost_requests_get_an_error() {
    let mut server = resume_server(
        Snapshot::new(negotiated_session(REVISION, json!({})), 0),
        Binding::StreamableHttp,
    );
    server.take_snapshot();
    let call = json!({ "jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": { "name": "x", "_meta": { "progressToken": 1 } } });
    let stream = post(&mut server, &call);
    assert_eq!(server.snapshot_due(), SnapshotDue::Soon);
    let Some(ServerEvent::Request(request)) = server.poll_event() else {
        panic!("a request");
    };
    let answered = post(
        &mut server,
        &json!({ "jsonrpc": "2.0", "id": "b", "method": "tools/list" }),
    );
    let Some(ServerEvent::Request(other)) = server.poll_event() else {
        panic!("a request");
    };
    server
        .reply(other.key, empty_tool_list(), Time::ZERO)
        .expect("it waits");
    let snapshot = server.take_snapshot().expect("a session");
    assert_eq!(snapshot.requests.len(), 1);
    let mut numbers = Vec::new();
    for done in 1..5 {
        server
            .send_progress(request.key, &Progress::new(f64::from(done)))
            .expect("it increases");
        if let Some((Transmit::Frame { sequence, .. }, _)) = server.poll_transmit_on(stream) {
            numbers.push(sequence);
        }
    }
    assert_eq!(numbers, [0, 1, 2, 3]);

    let mut again = resume_server(snapshot, Binding::StreamableHttp);
    assert_eq!(
        again.writable_streams().count(),
        0,
        "the client has to come back first"
    );
    assert!(again.handle_attach(stream, Time::ZERO) && !again.handle_attach(answered, Time::ZERO));
    let Some((
        Transmit::Frame {
            sequence,
            is_last: true,
            ..
        },
        bytes,
    )) = again.poll_transmit_on(stream)
    else {
        panic!("an answer");
    };
    assert!(sequence > 3);
    let message: Value = serde_json::from_slice(&bytes).expect("JSON");
    assert_eq!(
        (&message["id"], &message["error"]["code"]),
        (&json!("a"), &json!(-32603))
    );
    check_message(REVISION, false, Some("tools/call"), &message);
    assert!(events(&mut again).is_empty());
    // The id is free again.
    let next = post(&mut again, &call);
    assert!(next.number() > answered.number());
    assert!(matches!(events(&mut again)[..], [ServerEvent::Request(_)]));
}

/// If a store accepts only snapshots of a higher version, only one of two processes can continue a session.
#[test]
fn only_one_process_resumes() {
    let mut server = CheckedServer::with_session(server_config(&[REVISION]), REVISION, json!({}));
    let mut stored = server.endpoint.take_snapshot().expect("a session");
    let (mut one, mut two) = (
        resume_server(stored.clone(), Binding::Duplex),
        resume_server(stored.clone(), Binding::Duplex),
    );
    let mut written = Vec::new();
    for process in [&mut one, &mut two] {
        let snapshot = process.take_snapshot().expect("a session");
        let replaces = snapshot.version > stored.version;
        if replaces {
            stored = snapshot;
        }
        written.push(replaces);
    }
    assert_eq!(written, [true, false]);
    // The process that was thought dead cannot write, either.
    assert!(server.endpoint.take_snapshot().expect("a session").version <= stored.version);
}

/// A session that is resumed from a snapshot before `notifications/initialized` waits for this notification.
#[test]
fn snapshot_before_initialized_waits_for_it() {
    let mut server = RawServer::new(server_config(&[REVISION]));
    assert_eq!(
        (
            server.endpoint.snapshot_due(),
            server.endpoint.take_snapshot()
        ),
        (SnapshotDue::NotDue, None)
    );
    server.send(&initialize(REVISION, json!({ "roots": {} })));
    assert_eq!(server.endpoint.snapshot_due(), SnapshotDue::Now);
    let snapshot = server.endpoint.take_snapshot().expect("a session");
    assert!(!snapshot.is_initialized);
    let mut again = resume_server(snapshot, Binding::Duplex);
    again
        .request(
            Scope::Peer,
            "roots/list",
            None,
            CallOptions::default(),
            Time::ZERO,
        )
        .expect("it is deferred");
    let mut bytes = Vec::new();
    assert_eq!(again.poll_transmit(&mut bytes), None);
    let text = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    again
        .receive(StreamId::DUPLEX, text, FrameContext::new(()), Time::ZERO)
        .expect("open");
    assert!(again.poll_transmit(&mut bytes).is_some());
}

/// A client endpoint can also be resumed: its ids continue, and there is no second handshake.
#[test]
fn client_resumes_without_a_handshake() {
    for revision in all_revisions() {
        let mut client = connected_client(revision);
        let (_, sent) = client.request("tools/list", Value::Null);
        let info = client.endpoint.session_info().expect("negotiated").clone();
        let snapshot = Snapshot::new(info, client.endpoint.last_id());
        let text = snapshot.to_string();
        let settings = client_config(&[revision]).build().expect("a configuration");
        let parsed = text.parse().expect("a snapshot");
        let again = ClientEndpoint::resume(settings, Binding::Duplex, parsed, Time::ZERO);
        let mut again = again.expect("offered");
        let mut bytes = Vec::new();
        assert_eq!(again.poll_transmit(&mut bytes), None, "{revision}");
        again
            .request("tools/list", None, CallOptions::default(), Time::ZERO)
            .expect("it leaves");
        again.poll_transmit(&mut bytes).expect("a request");
        let message: Value = serde_json::from_slice(&bytes).expect("JSON");
        assert!(message["id"].as_u64() > sent["id"].as_u64(), "{revision}");
        let other = client_config(&[if revision == DISCOVER_REVISION {
            "2025-11-25"
        } else {
            DISCOVER_REVISION
        }]);
        let settings = other.build().expect("a configuration");
        let refused = ClientEndpoint::resume(settings, Binding::Duplex, snapshot, Time::ZERO);
        assert!(matches!(refused, Err(ConfigError::UnknownRevision(_))));
    }
}

/// Two processes with endpoints of one session merge each other's snapshots without losing their own unsaved state.
#[test]
fn endpoints_of_one_session_merge_snapshots() {
    let mut first = CheckedServer::with_session(server_config(&[REVISION]), REVISION, json!({}));
    let base = first.endpoint.take_snapshot().expect("a session");
    first.endpoint.record_saved_snapshot();
    let mut second = resume_server(base.clone(), Binding::StreamableHttp);
    second.reserve_ids_until(2 << 32);
    assert_eq!(
        second.snapshot_due(),
        SnapshotDue::NotDue,
        "nothing is to be saved"
    );
    let subscribe = |id: u64, method: &str, uri: &str| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "uri": uri } });
    let level = |level: &str| json!({ "jsonrpc": "2.0", "id": 9, "method": "logging/setLevel", "params": { "level": level } });

    for uri in ["a:1", "a:2"] {
        let key = first.serve(&subscribe(1, "resources/subscribe", uri)).key;
        first.reply(key, to_result(json!({})));
    }
    let saved = first.endpoint.take_snapshot().expect("a session");
    first.endpoint.record_saved_snapshot();
    post(&mut second, &level("error"));
    second.merge_snapshot(saved.clone());
    assert_eq!(second.snapshot_version(), saved.version);
    assert!(
        !second.would_send_log(Scope::Peer, Level::Warning),
        "what is not saved stays"
    );
    assert_eq!(second.snapshot_due(), SnapshotDue::Now);
    let both = second.take_snapshot().expect("a session");
    assert_eq!(both.version, saved.version + 1);
    assert_eq!(
        (both.log_level, &both.subscriptions[..]),
        (Some(Level::Error), &saved.subscriptions[..])
    );

    let key = first
        .serve(&subscribe(2, "resources/unsubscribe", "a:1"))
        .key;
    first.reply(key, to_result(json!({})));
    first.endpoint.merge_snapshot(both);
    let merged = first.endpoint.take_snapshot().expect("a session");
    assert_eq!(
        (merged.log_level, &merged.subscriptions[..]),
        (Some(Level::Error), &["a:2".to_owned()][..])
    );
    second.record_saved_snapshot();
    second.merge_snapshot(merged);
    assert_eq!(
        second.take_snapshot().expect("a session").subscriptions,
        ["a:2"]
    );
}

/// If two processes have saved different snapshots under the same version, the merged session has the subscriptions of
/// both snapshots and the lower of the two log levels.
#[test]
fn diverged_versions_are_merged() {
    let mut first = CheckedServer::with_session(server_config(&[REVISION]), REVISION, json!({}));
    let base = first.endpoint.take_snapshot().expect("a session");
    first.endpoint.record_saved_snapshot();
    let subscribe = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "a:1" } });
    let key = first.serve(&subscribe).key;
    first.reply(key, to_result(json!({})));
    let lost = first.endpoint.take_snapshot().expect("a session");
    first.endpoint.record_saved_snapshot();
    let other = Snapshot {
        version: lost.version,
        log_level: Some(Level::Error),
        subscriptions: vec!["b:1".to_owned()],
        last_id: 7 << 32,
        ..base.clone()
    };
    first.endpoint.merge_diverged_snapshot(other);
    assert_eq!(first.endpoint.snapshot_due(), SnapshotDue::Now);
    let merged = first.endpoint.take_snapshot().expect("a session");
    first.endpoint.record_saved_snapshot();
    assert_eq!(merged.version, lost.version + 1);
    assert_eq!(
        (merged.log_level, &merged.subscriptions[..], merged.last_id),
        (
            Some(Level::Error),
            &["a:1".to_owned(), "b:1".to_owned()][..],
            7 << 32
        )
    );
    // A lower version may have been saved later as well.
    let lower = Snapshot {
        version: 1,
        log_level: Some(Level::Debug),
        subscriptions: vec!["c:1".to_owned()],
        last_id: 9 << 32,
        ..base
    };
    first.endpoint.merge_diverged_snapshot(lower);
    let again = first.endpoint.take_snapshot().expect("a session");
    assert_eq!(again.version, merged.version + 1);
    assert_eq!(
        (again.log_level, again.subscriptions.len(), again.last_id),
        (Some(Level::Debug), 3, 9 << 32)
    );
}

/// If the handshake ends on one process, another process that merges the snapshot of the first process is also
/// initialized.
#[test]
fn merged_snapshot_ends_handshake() {
    let mut server = CheckedServer::with_session(server_config(&[REVISION]), REVISION, json!({}));
    let ready = server.endpoint.take_snapshot().expect("a session");
    let early = Snapshot {
        is_initialized: false,
        ..ready.clone()
    };
    let mut other = resume_server(early, Binding::StreamableHttp);
    other.merge_snapshot(ready);
    assert!(matches!(&events(&mut other)[..], [ServerEvent::Ready]));
    assert!(other.take_snapshot().expect("a session").is_initialized);
}

/// `loss_report` returns the error response for the request in flight on a stream, with which another process answers
/// the request if this process has died.
#[test]
fn loss_report_answers_requests() {
    let config = server_config(&[REVISION]);
    let mut server = CheckedServer::with_session(config, REVISION, json!({}));
    let snapshot = server.endpoint.take_snapshot().expect("a session");
    let mut server = resume_server(snapshot, Binding::StreamableHttp);
    let call = |id: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "x" } });
    let first = post(&mut server, &call(json!("a")));
    let second = post(&mut server, &call(json!(7)));
    for (stream, id) in [(first, json!("a")), (second, json!(7))] {
        let report = server.loss_report(stream).expect("a request in flight");
        let report: Value = serde_json::from_slice(&report).expect("JSON");
        assert_eq!(
            (&report["id"], &report["error"]["code"]),
            (&id, &json!(-32603))
        );
    }
    let standalone = server.open(StreamKind::Standalone).expect("a stream");
    assert_eq!(server.loss_report(standalone), None);
}
