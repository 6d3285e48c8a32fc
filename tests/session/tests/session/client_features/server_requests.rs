//! Requests of a server outside of a reply, in the revisions that have them (`basic/lifecycle`, `client/*`, up to
//! 2025-11-25).

use std::time::Duration;

use mcp_exact_tests_session::*;

/// Returns options with or without a request for progress.
fn call_options(progress: bool) -> CallOptions {
    CallOptions {
        progress,
        ..CallOptions::default()
    }
}

/// Returns minimal valid params of a sampling request.
fn sampling_params() -> Option<JsonObject> {
    Some(to_object(json!({ "messages": [], "maxTokens": 1 })))
}

/// A server sends a request only if the client has declared the required capability.
#[test]
fn server_requests_need_client_capabilities() {
    for revision in handshake_revisions() {
        let able = json!({ "sampling": {}, "elicitation": {} });
        let mut raw = RawServer::with_session(server_config(&[revision]), revision, able);
        let key = raw
            .endpoint
            .request(
                Scope::Peer,
                "sampling/createMessage",
                sampling_params(),
                call_options(true),
                raw.now,
            )
            .expect("declared");
        let sent = raw.take_messages().remove(0);
        check_message(revision, false, None, &sent);
        assert_eq!(sent["params"]["_meta"]["progressToken"], sent["id"]);
        raw.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/progress",
            "params": { "progressToken": sent["id"], "progress": 1 } }),
        );
        let answer = json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "t" } });
        raw.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": answer }));
        let events = raw.events();
        assert!(
            matches!(&events[..], [ServerEvent::Progress { key: one, progress: _, .. }, ServerEvent::Completed(two, Outcome::Result(_))] if *one == key && *two == key),
            "{events:?}"
        );
        let refused = raw.endpoint.request(
            Scope::Peer,
            "roots/list",
            None,
            call_options(false),
            raw.now,
        );
        let expected = SendError::Capability {
            method: "roots/list".into(),
            capability: "roots".into(),
        };
        assert_eq!(refused, Err(expected));
        for method in ["tools/list", "nothing", "initialize"] {
            let refused =
                raw.endpoint
                    .request(Scope::Peer, method, None, call_options(false), raw.now);
            assert!(matches!(refused, Err(SendError::Method { .. })), "{method}");
        }
        // Elicitation came with 2025-06-18.
        let params = to_object(
            json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } }),
        );
        let sent = raw.endpoint.request(
            Scope::Peer,
            "elicitation/create",
            Some(params),
            call_options(false),
            raw.now,
        );
        assert_eq!(
            sent.is_ok(),
            revision >= "2025-06-18",
            "{revision} {sent:?}"
        );
        assert!(raw.take_messages().len() <= 1);
    }
}

/// From 2026-07-28 on, a server cannot send a request outside of a reply.
#[test]
fn discover_server_sends_no_requests() {
    let mut raw = RawServer::new(server_config(&["2026-07-28"]));
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "roots": {} } });
    raw.send(
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } }),
    );
    let key = raw.take_request().key;
    for (scope, expected) in [
        (Scope::Peer, SendError::NotReady),
        (
            Scope::During(key),
            SendError::Method {
                method: "roots/list".into(),
                revision: offer_of(&[DISCOVER_REVISION]).revisions[0],
            },
        ),
    ] {
        let refused = raw
            .endpoint
            .request(scope, "roots/list", None, call_options(false), raw.now);
        assert_eq!(refused, Err(expected));
    }
    assert_eq!(raw.take_messages(), Vec::<Value>::new());
}

/// Requests of a server wait until the server has received `notifications/initialized`.
#[test]
fn server_requests_wait_for_initialized() {
    let mut raw = RawServer::new(server_config(&["2025-06-18"]));
    let refused = raw.endpoint.request(
        Scope::Peer,
        "roots/list",
        None,
        call_options(false),
        raw.now,
    );
    assert_eq!(refused, Err(SendError::NotReady));
    raw.send(&initialize("2025-06-18", json!({ "roots": {} })));
    raw.endpoint
        .request(
            Scope::Peer,
            "roots/list",
            None,
            call_options(false),
            raw.now,
        )
        .expect("declared");
    assert_eq!(raw.take_messages(), Vec::<Value>::new());
    let sent = raw.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(sent[0]["method"], "roots/list");
}

/// "Implementations SHOULD establish timeouts for all sent requests" (`basic/lifecycle`, "Timeouts"): the time in which the client
/// answers a question of its server counts against the maximum of the call alone. On a connection that all requests share, nobody knows to
/// which call the question belongs: it pauses all of them.
#[test]
fn questions_do_not_let_calls_expire() {
    let timeout = RequestTimeout {
        idle: Duration::from_secs(10),
        reset_on_progress: true,
        total: Duration::from_secs(100),
    };
    for revision in handshake_revisions() {
        // A client with calls that the server has asked a question.
        let ask = |calls: usize| {
            let mut config = client_config(&[revision]);
            config.capabilities = to_object(json!({ "roots": {} }));
            let mut client = RawClient::with_session(config, revision, json!({ "tools": {} }));
            client.now = Time::ZERO;
            let options = CallOptions {
                timeout: Some(timeout),
                ..CallOptions::default()
            };
            for _ in 0..calls {
                let params = Some(to_object(json!({ "name": "x" })));
                let options = options.clone();
                let sent = client
                    .endpoint
                    .request("tools/call", params, options, client.now);
                sent.expect("declared");
            }
            assert_eq!(
                client.endpoint.poll_timeout(),
                Some(Time::from_millis(10_000))
            );
            client.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "roots/list" }));
            let question = client.events().into_iter().find_map(|event| match event {
                ClientEvent::Request { key, .. } => Some(key),
                _ => None,
            });
            (client, question.expect("a question"))
        };
        for (is_cancelled, ended, expected) in [
            (false, 50_000, 60_000),
            (true, 50_000, 60_000),
            // What is left of the maximum is shorter than the idle timeout.
            (false, 95_000, 100_000),
        ] {
            let (mut client, question) = ask(1);
            let end = Some(Time::from_millis(100_000));
            assert_eq!(client.endpoint.poll_timeout(), end, "{revision}");
            client.now = Time::from_millis(ended);
            client.endpoint.handle_timeout(client.now);
            assert!(client.outcomes().is_empty(), "{revision}");
            if is_cancelled {
                let params = json!({ "requestId": 7 });
                let method = "notifications/cancelled";
                client.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
            } else {
                let roots = Ok(to_result(json!({ "roots": [] })));
                let answered = client.endpoint.answer(question, roots, client.now);
                answered.expect("a question that waits");
            }
            let next = Some(Time::from_millis(expected));
            assert_eq!(client.endpoint.poll_timeout(), next, "{revision}");
        }
        let (mut client, first) = ask(2);
        client.send(&json!({ "jsonrpc": "2.0", "id": 8, "method": "roots/list" }));
        let end = Some(Time::from_millis(100_000));
        assert_eq!(client.endpoint.poll_timeout(), end, "{revision}");
        client.now = Time::from_millis(50_000);
        let roots = || Ok(to_result(json!({ "roots": [] })));
        let answered = client.endpoint.answer(first, roots(), client.now);
        answered.expect("a question that waits");
        // The second question still waits.
        assert_eq!(client.endpoint.poll_timeout(), end, "{revision}");
        let second = client.events().into_iter().find_map(|event| match event {
            ClientEvent::Request { key, .. } => Some(key),
            _ => None,
        });
        let second = second.expect("a question");
        let answered = client.endpoint.answer(second, roots(), client.now);
        answered.expect("a question that waits");
        let next = Some(Time::from_millis(60_000));
        assert_eq!(client.endpoint.poll_timeout(), next, "{revision}");
        client.now = Time::from_millis(60_000);
        client.endpoint.handle_timeout(client.now);
        assert_eq!(client.outcomes().len(), 2, "{revision}");
    }
}

/// A server request that the client does not answer in time ends and is cancelled at the client.
#[test]
fn server_requests_time_out_with_cancellation() {
    let mut raw = RawServer::with_session(
        server_config(&["2025-11-25"]),
        "2025-11-25",
        json!({ "roots": {} }),
    );
    let ask = |raw: &mut RawServer| {
        let timeout = RequestTimeout {
            idle: Duration::from_secs(1),
            ..RequestTimeout::default()
        };
        let options = CallOptions {
            timeout: Some(timeout),
            ..CallOptions::default()
        };
        let key = raw
            .endpoint
            .request(Scope::Peer, "roots/list", None, options, raw.now);
        (
            key.expect("declared"),
            raw.take_messages().remove(0)["id"].clone(),
        )
    };
    let (late, id) = ask(&mut raw);
    raw.now = Time::from_millis(1000);
    raw.endpoint.handle_timeout(raw.now);
    let sent = raw.take_messages();
    assert_eq!(
        (&sent[0]["method"], &sent[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &id)
    );
    // The answer that still comes is late, and no violation.
    raw.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": [] } }));
    let (stopped, id) = ask(&mut raw);
    raw.endpoint.cancel(stopped, "enough", raw.now);
    let sent = raw.take_messages();
    assert_eq!(
        (&sent[0]["method"], &sent[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &id)
    );
    let events = raw.events();
    assert!(
        matches!(&events[..], [ServerEvent::Completed(one, Outcome::TimedOut), ServerEvent::Completed(two, Outcome::Cancelled)] if *one == late && *two == stopped),
        "{events:?}"
    );
}

/// An input request that the endpoint refuses in a reply is also refused as a separate server request; nothing is sent.
#[test]
fn server_requests_follow_input_request_rules() {
    let able = json!({ "roots": {}, "sampling": {}, "elicitation": {} });
    let mut raw = RawServer::with_session(server_config(&["2025-11-25"]), "2025-11-25", able);
    let mut id = 0;
    let token = json!({ "_meta": { "progressToken": 1 } });
    let task = json!({ "messages": [], "maxTokens": 1, "task": {} });
    let url = json!({ "mode": "url", "message": "m", "url": "https://x.y", "elicitationId": "e" });
    for (method, params, capability) in [
        ("roots/list", token, None),
        ("elicitation/create", json!({}), None),
        (
            "sampling/createMessage",
            task,
            Some("tasks.requests.sampling.createMessage"),
        ),
        ("elicitation/create", url, Some("elicitation.url")),
    ] {
        let params = Some(to_object(params));
        let asks = vec![("q".to_owned(), InputRequest::new(method, params.clone()))];
        let alone = raw
            .endpoint
            .request(Scope::Peer, method, params, call_options(false), raw.now);
        id += 1;
        raw.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" }));
        let key = raw.take_request().key;
        let asked = raw.endpoint.reply(
            key,
            Reply::InputRequired {
                requests: asks,
                state: None,
            },
            raw.now,
        );
        assert_eq!(alone.clone().map(drop), asked.map(drop), "{method}");
        match (alone, capability) {
            (Err(SendError::Params { .. }), None) => {}
            (Err(SendError::Capability { capability, .. }), Some(lacking)) => {
                assert_eq!(capability, lacking);
            }
            (other, _) => panic!("{method}: {other:?}"),
        }
        assert!(raw.take_messages().is_empty(), "{method}");
    }
}

/// An elicitation that a server has sent outside of a reply can be completed with `notifications/elicitation/complete`.
#[test]
fn separate_elicitation_can_be_completed() {
    let able = json!({ "elicitation": { "url": {} } });
    let mut raw = RawServer::with_session(server_config(&["2025-11-25"]), "2025-11-25", able);
    let complete = |raw: &mut RawServer| {
        let params = Some(to_object(json!({ "elicitationId": "e" })));
        let method = "notifications/elicitation/complete";
        raw.endpoint.notify(Scope::Peer, method, params)
    };
    assert!(matches!(complete(&mut raw), Err(SendError::Params { .. })));
    let url = json!({ "mode": "url", "message": "m", "url": "https://x.y", "elicitationId": "e" });
    let method = "elicitation/create";
    let sent = raw.endpoint.request(
        Scope::Peer,
        method,
        Some(to_object(url)),
        call_options(false),
        raw.now,
    );
    sent.expect("declared");
    let sent = raw.take_messages();
    let accepted =
        json!({ "jsonrpc": "2.0", "id": sent[0]["id"], "result": { "action": "accept" } });
    raw.send(&accepted);
    assert_eq!(complete(&mut raw), Ok(SendOutcome::Queued));
}
