//! Bounds: each has an error that names it, answers are never dropped, and input is not wanted rather than kept.

use mcp_exact_tests_session::*;

const REVISION: &str = "2025-11-25";

fn server(set: impl FnOnce(&mut Limits)) -> RawServer {
    let mut config = server_config(&[REVISION]);
    set(&mut config.limits);
    RawServer::begun(
        config,
        REVISION,
        json!({ "roots": { "listChanged": true } }),
    )
}

fn list(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" })
}

fn limit_of(answer: &Value) -> &str {
    answer["error"]["data"]["limit"]
        .as_str()
        .unwrap_or_default()
}

#[test]
fn what_a_request_exceeds_is_named_in_the_error() {
    let mut served = server(|limits| limits.served = 2);
    assert!(served.send(&list(1)).is_empty() && served.send(&list(2)).is_empty());
    assert_eq!(limit_of(&served.send(&list(3))[0]), "served");
    let mut bytes = server(|limits| limits.served_bytes = 200);
    let big = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "cursor": "x".repeat(300) } });
    assert_eq!(limit_of(&bytes.send(&big)[0]), "served_bytes");
    let mut subscriptions = server(|limits| limits.subscriptions = 0);
    let subscribe = json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "a:b" } });
    assert_eq!(
        limit_of(&subscriptions.send(&subscribe)[0]),
        "subscriptions"
    );
    let mut names = server(|limits| limits.name_bytes = 64);
    let method = json!({ "jsonrpc": "2.0", "id": 1, "method": "x".repeat(65) });
    assert_eq!(limit_of(&names.send(&method)[0]), "name_bytes");
}

#[test]
fn what_a_frame_exceeds_is_named_without_an_id() {
    for (name, set, text) in [
        (
            "message_bytes",
            (|l: &mut Limits| l.message_bytes = 400) as fn(&mut Limits),
            " ".repeat(401),
        ),
        ("depth", |l| l.depth = 8, "[[[[[[[[[]]]]]]]]]".to_owned()),
        ("batch_items", |l| l.batch_items = 1, "[1,2]".to_owned()),
    ] {
        let mut server = server(set);
        let answers = server.send_text(&text);
        assert_eq!(limit_of(&answers[0]), name);
        assert!(answers[0].get("id").is_none());
        assert!(
            matches!(&server.violations()[..], [Violation::Limit(limit)] if limit.name() == name)
        );
        assert!(server.send(&list(1)).is_empty(), "the session goes on");
    }
}

#[test]
fn too_many_notifications_are_dropped_until_the_next_second() {
    let mut server = server(|limits| limits.notifications_per_second = 3);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    (0..10).for_each(|_| drop(server.send(&changed)));
    let events = server.events();
    let taken = events
        .iter()
        .filter(|event| matches!(event, ServerEvent::Notification(_)));
    assert_eq!(taken.count(), 3);
    let told = events.iter().filter(|event| {
        matches!(
            event,
            ServerEvent::Violation(Violation::Limit(Limit::Notifications))
        )
    });
    assert_eq!(told.count(), 1);
    server.now = Time::from_millis(1000);
    server.send(&changed);
    assert!(matches!(
        server.events()[..],
        [ServerEvent::Notification(_)]
    ));
}

#[test]
fn back_pressure_instead_of_growth_and_answers_are_never_dropped() {
    let mut server = server(|limits| limits.queued = 4);
    let receive = |server: &mut RawServer, message: &Value| {
        let text = message.to_string();
        let received = server.machine.receive(
            StreamId::DUPLEX,
            text.as_bytes(),
            Inbound::new(()),
            server.now,
        );
        received.expect("open");
    };
    for id in 1..=4 {
        assert!(server.machine.wants_input());
        receive(&mut server, &list(id));
    }
    assert!(!server.machine.wants_input());
    let frame = list(5).to_string();
    let received = server.machine.receive(
        StreamId::DUPLEX,
        frame.as_bytes(),
        Inbound::new(()),
        server.now,
    );
    assert_eq!(received, Err(ReceiveError::Full));
    assert!(server.drain().is_empty(), "not taken");
    let events = server.events();
    assert!(server.machine.wants_input());
    // Nobody reads: notifications are dropped, answers are not.
    for _ in 0..4 {
        assert_eq!(server.machine.publish(&Change::Tools), 1);
    }
    assert_eq!(server.machine.publish(&Change::Tools), 0);
    assert!(!server.machine.wants_input());
    assert_eq!(
        server.machine.ping(Patience::default(), server.now),
        Err(SendError::Limit(Limit::Queued))
    );
    for event in events {
        if let ServerEvent::Request(request) = event {
            let reply = Reply::Result(result(json!({ "tools": [] })));
            assert_eq!(
                server.machine.reply(request.key, reply, server.now),
                Ok(Sent::Queued)
            );
        }
    }
    assert_eq!(server.drain().len(), 8);
}

#[test]
fn own_requests_have_a_bound() {
    let mut config = client_config(&[REVISION]);
    config.limits.sent = 2;
    let mut client = RawClient::begun(config, REVISION, json!({ "tools": {} }));
    client.drain();
    let options = CallOptions::default();
    let keys: Vec<_> = (0..3)
        .map(|_| {
            client
                .machine
                .request("tools/list", None, options, client.now)
        })
        .collect();
    assert!(keys[0].is_ok() && keys[1].is_ok());
    assert_eq!(keys[2], Err(SendError::Limit(Limit::Sent)));
}

#[test]
fn a_client_refuses_too_many_questions() {
    let mut config = client_config(&[REVISION]);
    config.limits.served = 1;
    let mut client = RawClient::begun(config, REVISION, json!({}));
    client.drain();
    let ask = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" });
    assert!(client.send(&ask(1)).is_empty());
    assert_eq!(limit_of(&client.send(&ask(2))[0]), "served");
}

#[test]
fn streams_have_a_bound() {
    let mut config = server_config(&[REVISION]);
    config.limits.streams = 1;
    let mut server: Server<()> =
        Server::new(config.into(), Binding::StreamableHttp, Time::ZERO).expect("a configuration");
    assert!(server.open(StreamKind::Post).is_ok());
    assert_eq!(
        server.open(StreamKind::Post),
        Err(SendError::Limit(Limit::Streams))
    );
}

#[test]
fn requests_between_two_rounds_count_too() {
    let mut config = client_config(&["2026-07-28"]);
    config.limits.sent = 1;
    let mut client = RawClient::begun(config, "2026-07-28", json!({ "tools": {} }));
    let (_, sent) = client.request("tools/call", json!({ "name": "x" }));
    let requests = json!({ "q": { "method": "roots/list" } });
    let body = json!({ "resultType": "input_required", "inputRequests": requests });
    client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }));
    let more = client
        .machine
        .request("tools/list", None, CallOptions::default(), client.now);
    assert_eq!(more, Err(SendError::Limit(Limit::Sent)));
}

#[test]
fn requests_are_limited_in_each_second() {
    let mut config = server_config(&["2025-06-18"]);
    // `initialize` is the first one.
    config.limits.requests_per_second = 3;
    let mut raw = RawServer::begun(config, "2025-06-18", json!({}));
    let ping = |raw: &mut RawServer, id: u64| {
        let answer = raw.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }));
        assert_eq!(answer.len(), 1, "every request is answered: {answer:?}");
        answer[0]["error"]["data"]["limit"].clone()
    };
    let said: Vec<Value> = (1..=4).map(|id| ping(&mut raw, id)).collect();
    assert_eq!(said[..2], [Value::Null, Value::Null]);
    assert_eq!(
        said[2..],
        [json!("requests_per_second"), json!("requests_per_second")]
    );
    // Told once a second.
    assert_eq!(raw.violations(), [Violation::Limit(Limit::Requests)]);
    raw.now = Time::from_millis(1000);
    assert_eq!(ping(&mut raw, 5), Value::Null);
}
