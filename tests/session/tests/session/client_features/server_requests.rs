//! Requests of a server outside of a reply, in the revisions that have them (`basic/lifecycle`, `client/*`, up to
//! 2025-11-25).

use std::time::Duration;

use mcp_exact_tests_session::*;

fn options(progress: bool) -> CallOptions {
    CallOptions {
        progress,
        ..CallOptions::default()
    }
}

fn sample() -> Option<JsonObject> {
    Some(object(json!({ "messages": [], "maxTokens": 1 })))
}

#[test]
fn cap_a_server_asks_by_itself_what_the_client_has_declared() {
    for revision in handshake() {
        let able = json!({ "sampling": {}, "elicitation": {} });
        let mut raw = RawServer::begun(server_config(&[revision]), revision, able);
        let key = raw
            .machine
            .request(
                Scope::Peer,
                "sampling/createMessage",
                sample(),
                options(true),
                raw.now,
            )
            .expect("declared");
        let sent = raw.drain().remove(0);
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
        let refused = raw
            .machine
            .request(Scope::Peer, "roots/list", None, options(false), raw.now);
        let expected = SendError::Capability {
            method: "roots/list".into(),
            capability: "roots".into(),
        };
        assert_eq!(refused, Err(expected));
        for method in ["tools/list", "nothing", "initialize"] {
            let refused = raw
                .machine
                .request(Scope::Peer, method, None, options(false), raw.now);
            assert!(matches!(refused, Err(SendError::Method { .. })), "{method}");
        }
        // Elicitation came with 2025-06-18.
        let params = object(
            json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } }),
        );
        let sent = raw.machine.request(
            Scope::Peer,
            "elicitation/create",
            Some(params),
            options(false),
            raw.now,
        );
        assert_eq!(
            sent.is_ok(),
            revision >= "2025-06-18",
            "{revision} {sent:?}"
        );
        assert!(raw.drain().len() <= 1);
    }
}

#[test]
fn cap_no_requests_of_servers_from_2026_07_28_on() {
    let mut raw = RawServer::new(server_config(&["2026-07-28"]));
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "roots": {} } });
    raw.send(
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } }),
    );
    let key = raw.request().key;
    for (scope, expected) in [
        (Scope::Peer, SendError::NotReady),
        (
            Scope::During(key),
            SendError::Method {
                method: "roots/list".into(),
                revision: offer(&[NEW]).revisions[0],
            },
        ),
    ] {
        let refused = raw
            .machine
            .request(scope, "roots/list", None, options(false), raw.now);
        assert_eq!(refused, Err(expected));
    }
    assert_eq!(raw.drain(), Vec::<Value>::new());
}

#[test]
fn life_requests_of_a_server_wait_for_initialized() {
    let mut raw = RawServer::new(server_config(&["2025-06-18"]));
    let refused = raw
        .machine
        .request(Scope::Peer, "roots/list", None, options(false), raw.now);
    assert_eq!(refused, Err(SendError::NotReady));
    raw.send(&initialize("2025-06-18", json!({ "roots": {} })));
    raw.machine
        .request(Scope::Peer, "roots/list", None, options(false), raw.now)
        .expect("declared");
    assert_eq!(raw.drain(), Vec::<Value>::new());
    let sent = raw.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(sent[0]["method"], "roots/list");
}

#[test]
fn canc_requests_of_a_server_time_out_and_are_cancelled() {
    let mut raw = RawServer::begun(
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
            .machine
            .request(Scope::Peer, "roots/list", None, options, raw.now);
        (key.expect("declared"), raw.drain().remove(0)["id"].clone())
    };
    let (late, id) = ask(&mut raw);
    raw.now = Time::from_millis(1000);
    raw.machine.handle_timeout(raw.now);
    let sent = raw.drain();
    assert_eq!(
        (&sent[0]["method"], &sent[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &id)
    );
    // The answer that still comes is late, and no violation.
    raw.send(&json!({ "jsonrpc": "2.0", "id": id, "result": { "roots": [] } }));
    let (stopped, id) = ask(&mut raw);
    raw.machine.cancel(stopped, "enough", raw.now);
    let sent = raw.drain();
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

/// An input request that is refused in a reply is also refused as a separate request, and nothing is sent.
#[test]
fn a_request_of_a_server_is_checked_as_a_question_in_a_reply_is() {
    let able = json!({ "roots": {}, "sampling": {}, "elicitation": {} });
    let mut raw = RawServer::begun(server_config(&["2025-11-25"]), "2025-11-25", able);
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
        let params = Some(object(params));
        let asks = vec![("q".to_owned(), InputRequest::new(method, params.clone()))];
        let alone = raw
            .machine
            .request(Scope::Peer, method, params, options(false), raw.now);
        id += 1;
        raw.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" }));
        let key = raw.request().key;
        let asked = raw.machine.reply(
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
        assert!(raw.drain().is_empty(), "{method}");
    }
}

#[test]
fn elic_complete_of_an_elicitation_that_a_server_has_sent_by_itself() {
    let able = json!({ "elicitation": { "url": {} } });
    let mut raw = RawServer::begun(server_config(&["2025-11-25"]), "2025-11-25", able);
    let complete = |raw: &mut RawServer| {
        let params = Some(object(json!({ "elicitationId": "e" })));
        let method = "notifications/elicitation/complete";
        raw.machine.notify(Scope::Peer, method, params)
    };
    assert!(matches!(complete(&mut raw), Err(SendError::Params { .. })));
    let url = json!({ "mode": "url", "message": "m", "url": "https://x.y", "elicitationId": "e" });
    let method = "elicitation/create";
    let sent = raw.machine.request(
        Scope::Peer,
        method,
        Some(object(url)),
        options(false),
        raw.now,
    );
    sent.expect("declared");
    let sent = raw.drain();
    let accepted =
        json!({ "jsonrpc": "2.0", "id": sent[0]["id"], "result": { "action": "accept" } });
    raw.send(&accepted);
    assert_eq!(complete(&mut raw), Ok(Sent::Queued));
}
