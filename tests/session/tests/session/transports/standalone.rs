//! Standalone streams and the end of input (`basic/transports`, "Listening for Messages from the Server", "stdio"): the
//! messages that wait for a stream, and the stream on which a message is sent.

use mcp_exact_tests_session::*;

/// Removes and returns the frames of the server, each with its stream.
fn take_frames(posts: &mut HttpServerHarness) -> Vec<(StreamId, Value)> {
    let frame = |(transmit, message)| match transmit {
        Transmit::Frame { stream, .. } => Some((stream, message)),
        _ => None,
    };
    posts.take_output().into_iter().filter_map(frame).collect()
}

/// Changes that are published while no stream is open are sent once on the next stream.
#[test]
fn changes_wait_without_duplicates() {
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        for change in [Change::Tools, Change::Prompts, Change::Tools, Change::Tools] {
            assert_eq!(posts.endpoint.publish(&change), 0);
        }
        // The client has not subscribed to this resource.
        assert_eq!(posts.endpoint.publish(&Change::Resource("a:b".into())), 0);
        let stream = posts
            .endpoint
            .open(StreamKind::Standalone)
            .expect("a stream");
        let sent = take_frames(&mut posts);
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
            .endpoint
            .open(StreamKind::Standalone)
            .expect("a stream");
        assert!(take_frames(&mut posts).is_empty(), "each once");
    }
}

/// Changes of undeclared capabilities are not queued.
#[test]
fn undeclared_changes_do_not_wait() {
    let mut config = server_config(&["2025-11-25"]);
    config.capabilities = to_object(json!({ "tools": {} }));
    let mut posts = HttpServerHarness::new(config, "2025-11-25", json!({}));
    assert_eq!(posts.endpoint.publish(&Change::Tools), 0);
    posts
        .endpoint
        .open(StreamKind::Standalone)
        .expect("a stream");
    assert!(take_frames(&mut posts).is_empty());
}

/// "The server MUST send each of its JSON-RPC messages on only one of the connected streams": the newest stream is
/// used, and a stream with a connection is preferred to a stream that has lost its connection.
#[test]
fn newest_connected_stream_is_used() {
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        let older = posts
            .endpoint
            .open(StreamKind::Standalone)
            .expect("a stream");
        let newer = posts
            .endpoint
            .open(StreamKind::Standalone)
            .expect("a stream");
        assert_eq!(posts.endpoint.publish(&Change::Tools), 1);
        assert_eq!(take_frames(&mut posts)[0].0, newer);
        assert_eq!(
            posts.endpoint.handle_detach(newer, Time::ZERO),
            DetachOutcome::Waiting
        );
        assert_eq!(posts.endpoint.publish(&Change::Tools), 1);
        assert_eq!(take_frames(&mut posts)[0].0, older);
        posts
            .endpoint
            .handle_close(older, StreamEnd::Clean, Time::ZERO);
        // No connection is left: the message waits on the stream that can be resumed.
        assert_eq!(posts.endpoint.publish(&Change::Tools), 1);
        assert!(take_frames(&mut posts).is_empty());
        assert!(posts.endpoint.handle_attach(newer, Time::ZERO));
        assert_eq!(take_frames(&mut posts)[0].0, newer);
    }
}

/// "Shutdown: the client closes the input stream": requests in flight are still answered, queued output is still
/// written, and the endpoint closes afterwards.
#[test]
fn answers_follow_end_of_input() {
    for revision in all_revisions() {
        let capabilities = json!({ "roots": {}, "elicitation": {} });
        let mut server =
            CheckedServer::with_session(server_config(&[revision]), revision, capabilities);
        let wanted = json!({ "_meta": { "progressToken": "t" } });
        let first = server.serve(&tool_call(revision, 1, json!({}))).key;
        let second = server.serve(&tool_call(revision, 2, wanted)).key;
        server
            .endpoint
            .reply(first, empty_content(), Time::ZERO)
            .expect("it waits");
        server
            .endpoint
            .handle_close(StreamId::DUPLEX, StreamEnd::Clean, Time::ZERO);
        assert!(!server.endpoint.is_closed() && !server.endpoint.wants_input());
        let late =
            server
                .endpoint
                .receive(StreamId::DUPLEX, b"{}", FrameContext::new(()), Time::ZERO);
        assert_eq!(late, Err(ReceiveError::Closed));
        assert_eq!(
            server.endpoint.send_progress(second, &Progress::new(1.0)),
            Ok(SendOutcome::Queued)
        );
        let asked = server.endpoint.request(
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
            .endpoint
            .reply(second, empty_content(), Time::ZERO)
            .expect("it waits");
        let left: Vec<Value> = server.take_messages();
        let ids: Vec<&Value> = left
            .iter()
            .filter(|message| message.get("result").is_some())
            .map(|m| &m["id"])
            .collect();
        assert_eq!(ids, [&json!(1), &json!(2)], "{revision}");
        assert!(server.endpoint.is_closed());
        assert!(matches!(server.events().last(), Some(ServerEvent::Closed)));
    }
}

/// At the end of the input, an endpoint without requests in flight closes immediately; a lost stream ends all requests.
#[test]
fn end_of_input_without_requests_closes() {
    for (how, in_flight) in [
        (StreamEnd::Clean, false),
        (StreamEnd::Lost, true),
        (StreamEnd::SessionEnded, true),
    ] {
        let mut server =
            CheckedServer::with_session(server_config(&["2025-11-25"]), "2025-11-25", json!({}));
        if in_flight {
            server.serve(&tool_call("2025-11-25", 1, json!({})));
        }
        server
            .endpoint
            .handle_close(StreamId::DUPLEX, how, Time::ZERO);
        assert!(server.endpoint.is_closed(), "{how:?}");
        let events = server.events();
        let cancelled = |event: &&ServerEvent<()>| matches!(event, ServerEvent::Cancelled { .. });
        assert_eq!(
            events.iter().filter(cancelled).count(),
            usize::from(in_flight)
        );
        assert!(matches!(events.last(), Some(ServerEvent::Closed)));
    }
}
