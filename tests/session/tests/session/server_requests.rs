//! Requests of a server outside of a reply, on the revisions that have them (`basic/lifecycle`, `client/*`, up to 2025-11-25).

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
            matches!(&events[..], [ServerEvent::Progress(one, _), ServerEvent::Done(two, Outcome::Result(_))] if *one == key && *two == key),
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
        let patience = Patience {
            timeout: Duration::from_secs(1),
            ..Patience::default()
        };
        let options = CallOptions {
            patience: Some(patience),
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
        matches!(&events[..], [ServerEvent::Done(one, Outcome::TimedOut), ServerEvent::Done(two, Outcome::Cancelled)] if *one == late && *two == stopped),
        "{events:?}"
    );
}
