//! Requirements of `docs/requirements.toml` on the streams of HTTP: the messages on each stream, and the effect of the
//! end of a stream (`basic/transports`; 2026-07-28: `basic/transports/streamable-http`).

use mcp_exact_tests_session::*;

/// If the stream of a POST is lost, its request ends as lost; a repeated request has a new id and no `Last-Event-ID`.
#[test]
fn lost_stream_fails_its_request() {
    let mut poster = HttpHarness::new(DISCOVER_REVISION);
    let (key, on, headers, first) = poster.request("tools/call", json!({ "name": "x" }));
    poster.client.handle_close(on, StreamEnd::Lost, Time::ZERO);
    assert!(
        matches!(&poster.events()[..], [ClientEvent::Completed(done, Outcome::Lost)] if *done == key)
    );
    let (_, again, more, second) = poster.request("tools/call", json!({ "name": "x" }));
    assert_ne!(first["id"], second["id"]);
    assert_ne!(on, again);
    for headers in [headers, more] {
        assert_eq!(header_value(&headers, "Last-Event-ID"), None);
    }
}

/// A server sends no response on a stream that was opened by GET.
#[test]
fn standalone_stream_carries_no_responses() {
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        let standalone = posts
            .endpoint
            .open(StreamKind::Standalone)
            .expect("a stream");
        let (lost, lost_key) = posts.serve(&tool_call(revision, 1, json!({})));
        let (post, key) = posts.serve(&tool_call(revision, 2, json!({})));
        posts.endpoint.publish(&Change::Tools);
        posts
            .endpoint
            .handle_close(lost, StreamEnd::Lost, Time::ZERO);
        assert_eq!(
            posts.endpoint.reply(lost_key, empty_content(), Time::ZERO),
            Ok(SendOutcome::Suppressed)
        );
        assert_eq!(
            posts.endpoint.reply(key, empty_content(), Time::ZERO),
            Ok(SendOutcome::Queued)
        );
        for (transmit, message) in posts.take_output() {
            let Transmit::Frame { stream: on, .. } = transmit else {
                panic!("{transmit:?}");
            };
            let expected = if message.get("method").is_some() {
                standalone
            } else {
                post
            };
            assert_eq!(on, expected, "{revision}: {message}");
        }
    }
}

/// A server sends each of its messages on one stream only, even if several streams are open.
#[test]
fn each_message_uses_one_stream() {
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        for _ in 0..3 {
            posts
                .endpoint
                .open(StreamKind::Standalone)
                .expect("a stream");
        }
        let (_, key) = posts.serve(&tool_call(
            revision,
            1,
            json!({ "_meta": { "progressToken": "t" } }),
        ));
        posts.serve(&tool_call(revision, 2, json!({})));
        for change in [Change::Tools, Change::Prompts, Change::Resources] {
            assert_eq!(posts.endpoint.publish(&change), 1);
        }
        posts
            .endpoint
            .send_progress(key, &Progress::new(1.0))
            .expect("it increases");
        posts
            .endpoint
            .send_log(Scope::Peer, Level::Error, None, json!("l"))
            .expect("declared");
        posts
            .endpoint
            .ping(RequestTimeout::default(), Time::ZERO)
            .expect("it leaves");
        posts
            .endpoint
            .reply(key, empty_content(), Time::ZERO)
            .expect("it waits");
        let sent = posts.take_output();
        assert_eq!(sent.len(), 7, "{revision}: {sent:?}");
        let mut texts: Vec<String> = sent
            .iter()
            .map(|(_, message)| message.to_string())
            .collect();
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), 7, "no message goes out twice");
    }
}

/// The response stream of a request contains only notifications that belong to the request.
#[test]
fn request_stream_carries_related_notifications_only() {
    let mut posts = server_with_roots_client(DISCOVER_REVISION);
    let wanting = |id: u64, token: &str| {
        let meta = json!({ "progressToken": token, "io.modelcontextprotocol/logLevel": "debug" });
        tool_call(DISCOVER_REVISION, id, json!({ "_meta": meta }))
    };
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let (listen, _) = posts.serve(&request_of_revision(
        DISCOVER_REVISION,
        9,
        "subscriptions/listen",
        filter,
        json!({}),
    ));
    let (one, first) = posts.serve(&wanting(1, "one"));
    let (two, second) = posts.serve(&wanting(2, "two"));
    posts.take_output();
    for (key, data) in [(second, "two"), (first, "one")] {
        posts
            .endpoint
            .send_progress(key, &Progress::new(1.0))
            .expect("it increases");
        posts
            .endpoint
            .send_log(Scope::During(key), Level::Info, None, json!(data))
            .expect("wanted");
        posts.endpoint.publish(&Change::Tools);
    }
    // LOG own-stream-only: outside of a request no log message is sent.
    assert!(
        posts
            .endpoint
            .send_log(Scope::Peer, Level::Emergency, None, json!("x"))
            .is_err()
    );
    let sent = posts.take_output();
    assert_eq!(sent.len(), 6);
    for (transmit, message) in sent {
        let Transmit::Frame {
            stream: on,
            related_request: about,
            ..
        } = transmit
        else {
            panic!("{transmit:?}");
        };
        let params = &message["params"];
        let named = params["progressToken"].as_str().or(params["data"].as_str());
        let (stream, key) = match named {
            Some("one") => (one, Some(first)),
            Some("two") => (two, Some(second)),
            _ => (listen, about),
        };
        assert_eq!((on, about), (stream, key), "{message}");
        assert_eq!(
            named.is_none(),
            message["method"] == "notifications/tools/list_changed"
        );
    }
}

/// From 2026-07-28 on, the end of a response stream cancels its request and no other request.
#[test]
fn disconnect_cancels_its_request_only() {
    let mut posts = server_with_roots_client(DISCOVER_REVISION);
    let (gone, stopped) = posts.serve(&tool_call(
        DISCOVER_REVISION,
        1,
        json!({ "_meta": { "progressToken": "t" } }),
    ));
    let (_, other) = posts.serve(&tool_call(DISCOVER_REVISION, 1, json!({})));
    posts
        .endpoint
        .handle_close(gone, StreamEnd::Lost, Time::ZERO);
    assert!(
        matches!(posts.endpoint.poll_event(), Some(ServerEvent::Cancelled { key, .. }) if key == stopped)
    );
    assert!(posts.endpoint.poll_event().is_none());
    assert_eq!(
        posts.endpoint.send_progress(stopped, &Progress::new(1.0)),
        Ok(SendOutcome::Suppressed)
    );
    assert_eq!(
        posts.endpoint.reply(stopped, empty_content(), Time::ZERO),
        Ok(SendOutcome::Suppressed)
    );
    assert_eq!(
        posts.endpoint.reply(other, empty_content(), Time::ZERO),
        Ok(SendOutcome::Queued)
    );
    assert_eq!(posts.take_output().len(), 1);
}

/// From 2026-07-28 on, a client closes the POST of a request that is cancelled or times out, and sends no notification.
#[test]
fn closing_post_cancels_request() {
    let mut poster = HttpHarness::new(DISCOVER_REVISION);
    for timeout in [false, true] {
        let (key, stream, ..) = poster.request("tools/call", json!({ "name": "x" }));
        if timeout {
            poster
                .client
                .handle_timeout(poster.client.poll_timeout().expect("a deadline"))
        } else {
            poster.client.cancel(key, "enough", Time::ZERO)
        }
        assert_eq!(
            poster.client.poll_transmit(&mut Vec::new()),
            Some(Transmit::Close { stream })
        );
        assert_eq!(poster.client.poll_transmit(&mut Vec::new()), None);
    }
}

/// If no response to a POST begins, a request that may be repeated is sent again, once, "as a new request with a new request ID"
/// (2026-07-28, changelog; before, a request id is never used twice in a session: `basic`, "Requests"). Any other request is
/// lost.
#[test]
fn unanswered_request_gets_another_id() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25", DISCOVER_REVISION] {
        let mut posts = HttpHarness::new(revision);
        let (key, stream, headers, first) = posts.request("tools/list", json!({}));
        let unanswered = TransportFailure::Unanswered;
        posts
            .client
            .handle_failure(stream, unanswered.clone(), Time::ZERO);
        let [(again, same_headers, second)] = &posts.take_output()[..] else {
            panic!("{revision}: one message");
        };
        assert_ne!(first["id"], second["id"], "{revision}");
        assert_eq!(
            (&first["method"], &headers),
            (&second["method"], same_headers)
        );
        assert!(posts.events().is_empty(), "{revision}");
        posts
            .client
            .handle_failure(*again, unanswered.clone(), Time::ZERO);
        assert!(
            posts.take_output().is_empty(),
            "{revision}: it is sent once more"
        );
        let events = posts.events();
        assert!(
            matches!(&events[..], [ClientEvent::Completed(ended, Outcome::Lost)] if *ended == key),
            "{revision}: {events:?}"
        );
        let (key, stream, ..) = posts.request("tools/call", json!({ "name": "x" }));
        posts.client.handle_failure(stream, unanswered, Time::ZERO);
        assert!(
            posts.take_output().is_empty(),
            "{revision}: a call is not repeated"
        );
        let events = posts.events();
        assert!(
            matches!(&events[..], [ClientEvent::Completed(ended, Outcome::Lost)] if *ended == key),
            "{revision}: {events:?}"
        );
    }
}

/// A probe to which no response begins is sent again, once, before `initialize`, which is not repeated.
#[test]
fn unanswered_probe_is_sent_again() {
    for (revisions, count) in [
        (&[DISCOVER_REVISION, "2025-11-25"][..], 3),
        (&["2025-11-25"], 1),
    ] {
        let settings = client_config(revisions).build().expect("a configuration");
        let binding = Binding::StreamableHttp;
        let mut client = ClientEndpoint::new(settings, binding, None, Time::ZERO);
        let mut ids = Vec::new();
        let mut bytes = Vec::new();
        while let Some(Transmit::Frame { stream, .. }) = client.poll_transmit(&mut bytes) {
            let message: Value = serde_json::from_slice(&bytes).expect("JSON");
            ids.push(message["id"].clone());
            bytes.clear();
            client.handle_failure(stream, TransportFailure::Unanswered, Time::ZERO);
        }
        assert_eq!(ids.len(), count, "{revisions:?}: {ids:?}");
        assert_ne!(ids.first(), ids.get(1));
        let events: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
        assert!(
            matches!(&events[0], ClientEvent::Failed(NegotiationError::Lost)),
            "{events:?}"
        );
    }
}
