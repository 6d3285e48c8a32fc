//! Standalone streams and the end of input (`basic/transports`, "Listening for Messages from the Server", "stdio"):
//! which messages wait, and on which stream they are sent.

use mcp_exact_tests_session::*;

fn frames(posts: &mut HttpServerHarness) -> Vec<(StreamId, Value)> {
    let frame = |(transmit, message)| match transmit {
        Transmit::Frame { stream, .. } => Some((stream, message)),
        _ => None,
    };
    posts.out().into_iter().filter_map(frame).collect()
}

/// Changes that are published while no stream is open are sent once on the next stream.
#[test]
fn changes_wait_for_a_stream_each_once() {
    for revision in SESSIONS {
        let mut posts = posts(revision);
        for change in [Change::Tools, Change::Prompts, Change::Tools, Change::Tools] {
            assert_eq!(posts.machine.publish(&change), 0);
        }
        // Nobody has subscribed to this.
        assert_eq!(posts.machine.publish(&Change::Resource("a:b".into())), 0);
        let stream = posts
            .machine
            .open(StreamKind::Standalone)
            .expect("a stream");
        let sent = frames(&mut posts);
        let expected = [
            (stream, json!("notifications/tools/list_changed")),
            (stream, json!("notifications/prompts/list_changed")),
        ];
        let sent: Vec<_> = sent
            .into_iter()
            .map(|(on, message)| (on, message["method"].clone()))
            .collect();
        assert_eq!(sent, expected, "{revision}");
        posts
            .machine
            .open(StreamKind::Standalone)
            .expect("a stream");
        assert!(frames(&mut posts).is_empty(), "each once");
    }
}

/// Changes of undeclared capabilities are not queued.
#[test]
fn undeclared_changes_do_not_wait() {
    let mut config = server_config(&["2025-11-25"]);
    config.capabilities = object(json!({ "tools": {} }));
    let mut posts = HttpServerHarness::new(config, "2025-11-25", json!({}));
    assert_eq!(posts.machine.publish(&Change::Tools), 0);
    posts
        .machine
        .open(StreamKind::Standalone)
        .expect("a stream");
    assert!(frames(&mut posts).is_empty());
}

/// "The server MUST send each of its JSON-RPC messages on only one of the connected streams": the newest stream is
/// used, and a connected stream is preferred to a detached one.
#[test]
fn newest_connected_stream_wins() {
    for revision in SESSIONS {
        let mut posts = posts(revision);
        let older = posts
            .machine
            .open(StreamKind::Standalone)
            .expect("a stream");
        let newer = posts
            .machine
            .open(StreamKind::Standalone)
            .expect("a stream");
        assert_eq!(posts.machine.publish(&Change::Tools), 1);
        assert_eq!(frames(&mut posts)[0].0, newer);
        assert_eq!(posts.machine.detached(newer, Time::ZERO), Detached::Kept);
        assert_eq!(posts.machine.publish(&Change::Tools), 1);
        assert_eq!(frames(&mut posts)[0].0, older);
        posts.machine.closed(older, Closed::Clean, Time::ZERO);
        // No connection is left: the message waits on the stream that can be resumed.
        assert_eq!(posts.machine.publish(&Change::Tools), 1);
        assert!(frames(&mut posts).is_empty());
        assert!(posts.machine.attached(newer, Time::ZERO));
        assert_eq!(frames(&mut posts)[0].0, newer);
    }
}

/// "Shutdown: the client closes the input stream": requests in flight are still answered, queued output is still written, and the
/// endpoint closes once nothing is left.
#[test]
fn end_of_input_lets_answers_out() {
    for revision in all() {
        let capabilities = json!({ "roots": {}, "elicitation": {} });
        let mut server = CheckedServer::ready(server_config(&[revision]), revision, capabilities);
        let wanted = json!({ "_meta": { "progressToken": "t" } });
        let first = server.serve(&call(revision, 1, json!({}))).key;
        let second = server.serve(&call(revision, 2, wanted)).key;
        server
            .machine
            .reply(first, content(), Time::ZERO)
            .expect("it waits");
        server
            .machine
            .closed(StreamId::DUPLEX, Closed::Clean, Time::ZERO);
        assert!(!server.machine.is_closed() && !server.machine.wants_input());
        let late =
            server
                .machine
                .receive(StreamId::DUPLEX, b"{}", FrameContext::new(()), Time::ZERO);
        assert_eq!(late, Err(ReceiveError::Closed));
        assert_eq!(
            server.machine.progress(second, &Progress::new(1.0)),
            Ok(Sent::Queued)
        );
        let asked = server.machine.request(
            Scope::During(second),
            "roots/list",
            None,
            CallOptions::default(),
            Time::ZERO,
        );
        assert!(
            matches!(asked, Err(SendError::NoStream | SendError::Method { .. })),
            "nobody answers: {asked:?}"
        );
        server
            .machine
            .reply(second, content(), Time::ZERO)
            .expect("it waits");
        let left: Vec<Value> = server.drain();
        let ids: Vec<&Value> = left
            .iter()
            .filter(|message| message.get("result").is_some())
            .map(|m| &m["id"])
            .collect();
        assert_eq!(ids, [&json!(1), &json!(2)], "{revision}");
        assert!(server.machine.is_closed());
        assert!(matches!(server.events().last(), Some(ServerEvent::Closed)));
    }
}

/// If no request is in flight, the endpoint closes immediately; a lost stream ends all requests.
#[test]
fn end_of_input_without_requests_closes() {
    for (how, in_flight) in [
        (Closed::Clean, false),
        (Closed::Lost, true),
        (Closed::SessionEnded, true),
    ] {
        let mut server =
            CheckedServer::ready(server_config(&["2025-11-25"]), "2025-11-25", json!({}));
        if in_flight {
            server.serve(&call("2025-11-25", 1, json!({})));
        }
        server.machine.closed(StreamId::DUPLEX, how, Time::ZERO);
        assert!(server.machine.is_closed(), "{how:?}");
        let events = server.events();
        let cancelled = |event: &&ServerEvent<()>| matches!(event, ServerEvent::Cancelled { .. });
        assert_eq!(
            events.iter().filter(cancelled).count(),
            usize::from(in_flight)
        );
        assert!(matches!(events.last(), Some(ServerEvent::Closed)));
    }
}
