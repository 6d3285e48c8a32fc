//! Requirements of `docs/requirements.toml` on the streams of HTTP: the messages on each stream, and the effect of its
//! end (`basic/transports`; 2026-07-28: `basic/transports/streamable-http`).

use mcp_exact_tests_session::*;

#[test]
fn http_broken_stream_reissue() {
    let mut poster = HttpHarness::new(NEW);
    let (key, on, headers, first) = poster.request("tools/call", json!({ "name": "x" }));
    poster.client.closed(on, Closed::Lost, Time::ZERO);
    assert!(
        matches!(&poster.events()[..], [ClientEvent::Completed(done, Outcome::Lost)] if *done == key)
    );
    let (_, again, more, second) = poster.request("tools/call", json!({ "name": "x" }));
    assert_ne!(first["id"], second["id"]);
    assert_ne!(on, again);
    for headers in [headers, more] {
        assert_eq!(header(&headers, "Last-Event-ID"), None);
    }
}

#[test]
fn http_no_response_on_a_standalone_stream() {
    for revision in SESSIONS {
        let mut posts = posts(revision);
        let standalone = posts
            .machine
            .open(StreamKind::Standalone)
            .expect("a stream");
        let (lost, lost_key) = posts.serve(&call(revision, 1, json!({})));
        let (post, key) = posts.serve(&call(revision, 2, json!({})));
        posts.machine.publish(&Change::Tools);
        posts.machine.closed(lost, Closed::Lost, Time::ZERO);
        assert_eq!(
            posts.machine.reply(lost_key, content(), Time::ZERO),
            Ok(Sent::Suppressed)
        );
        assert_eq!(
            posts.machine.reply(key, content(), Time::ZERO),
            Ok(Sent::Queued)
        );
        for (transmit, message) in posts.out() {
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

#[test]
fn http_one_stream_for_each_message() {
    for revision in SESSIONS {
        let mut posts = posts(revision);
        for _ in 0..3 {
            posts
                .machine
                .open(StreamKind::Standalone)
                .expect("a stream");
        }
        let (_, key) = posts.serve(&call(
            revision,
            1,
            json!({ "_meta": { "progressToken": "t" } }),
        ));
        posts.serve(&call(revision, 2, json!({})));
        for change in [Change::Tools, Change::Prompts, Change::Resources] {
            assert_eq!(posts.machine.publish(&change), 1);
        }
        posts
            .machine
            .progress(key, &Progress::new(1.0))
            .expect("it increases");
        posts
            .machine
            .log(Scope::Peer, Level::Error, None, json!("l"))
            .expect("declared");
        posts
            .machine
            .ping(RequestTimeout::default(), Time::ZERO)
            .expect("it leaves");
        posts
            .machine
            .reply(key, content(), Time::ZERO)
            .expect("it waits");
        let sent = posts.out();
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

#[test]
fn http_related_notifications_only_on_the_stream_of_a_request() {
    let mut posts = posts(NEW);
    let wanting = |id: u64, token: &str| {
        let meta = json!({ "progressToken": token, "io.modelcontextprotocol/logLevel": "debug" });
        call(NEW, id, json!({ "_meta": meta }))
    };
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let (listen, _) = posts.serve(&request_at(
        NEW,
        9,
        "subscriptions/listen",
        filter,
        json!({}),
    ));
    let (one, first) = posts.serve(&wanting(1, "one"));
    let (two, second) = posts.serve(&wanting(2, "two"));
    posts.out();
    for (key, data) in [(second, "two"), (first, "one")] {
        posts
            .machine
            .progress(key, &Progress::new(1.0))
            .expect("it increases");
        posts
            .machine
            .log(Scope::During(key), Level::Info, None, json!(data))
            .expect("wanted");
        posts.machine.publish(&Change::Tools);
    }
    // LOG own-stream-only: outside of a request there is nobody to log to.
    assert!(
        posts
            .machine
            .log(Scope::Peer, Level::Emergency, None, json!("x"))
            .is_err()
    );
    let sent = posts.out();
    assert_eq!(sent.len(), 6);
    for (transmit, message) in sent {
        let Transmit::Frame {
            stream: on, about, ..
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

#[test]
fn canc_http_disconnect_cancels_its_request_and_no_other() {
    let mut posts = posts(NEW);
    let (gone, stopped) = posts.serve(&call(NEW, 1, json!({ "_meta": { "progressToken": "t" } })));
    let (_, other) = posts.serve(&call(NEW, 1, json!({})));
    posts.machine.closed(gone, Closed::Lost, Time::ZERO);
    assert!(
        matches!(posts.machine.poll_event(), Some(ServerEvent::Cancelled { key, .. }) if key == stopped)
    );
    assert!(posts.machine.poll_event().is_none());
    assert_eq!(
        posts.machine.progress(stopped, &Progress::new(1.0)),
        Ok(Sent::Suppressed)
    );
    assert_eq!(
        posts.machine.reply(stopped, content(), Time::ZERO),
        Ok(Sent::Suppressed)
    );
    assert_eq!(
        posts.machine.reply(other, content(), Time::ZERO),
        Ok(Sent::Queued)
    );
    assert_eq!(posts.out().len(), 1);
}

#[test]
fn canc_by_closing_the_stream_over_http() {
    let mut poster = HttpHarness::new(NEW);
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
