//! Messages that exceed each limit of a server.

use mcp_exact_tests_session::discover_peers::request;
use mcp_exact_tests_session::*;

use super::table::Case;
use super::{
    REVISION, limit_of, list_request, reaction_of_server, refusals, server, violated_limits,
};

/// Creates a server that offers only 2026-07-28.
fn modern(set: impl FnOnce(&mut Limits)) -> RawServer {
    let mut config = server_config(&[DISCOVER_REVISION]);
    set(&mut config.limits);
    RawServer::new(config)
}

/// Delivers a request that the framing has skipped, because the budget has no room for it.
pub(super) fn skipped() -> Vec<String> {
    let mut server = server(|_| {});
    let message = frame::Oversized {
        head: br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":"#,
        tail: b"}",
        size: None,
        limit: Limit::MessageBudget,
    };
    let context = FrameContext::new(());
    let received =
        server
            .endpoint
            .receive_oversized(StreamId::DUPLEX, &message, context, Time::ZERO);
    received.expect("open");
    server.take_messages().iter().map(limit_of).collect()
}

/// Sends a frame that exceeds a limit; returns the names of the reported limits. Checks that the error response has no
/// id.
pub(super) fn frame(set: fn(&mut Limits), text: &str) -> Vec<String> {
    assert!(server(set).send_text(text)[0].get("id").is_none());
    reaction_of_server(&mut server(set), text)
}

/// Cases in which a method, an id or a progress token is longer than the maximum length of names.
pub(super) const NAMES: &[Case] = &[
    || {
        let method = json!({ "jsonrpc": "2.0", "id": 1, "method": "x".repeat(65) });
        assert_eq!(server(short).send(&method)[0]["id"], 1);
        reaction_of_server(&mut server(short), &method.to_string())
    },
    || {
        let id = json!({ "jsonrpc": "2.0", "id": "x".repeat(65), "method": "tools/list" });
        frame(short, &id.to_string())
    },
    || {
        let fits = json!({ "jsonrpc": "2.0", "id": "x".repeat(64), "method": "tools/list",
            "params": { "_meta": { "progressToken": "x".repeat(64) } } });
        assert!(server(short).send(&fits).is_empty());
        let token = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list",
            "params": { "_meta": { "progressToken": "x".repeat(65) } } });
        assert_eq!(server(short).send(&token)[0]["id"], 1);
        reaction_of_server(&mut server(short), &token.to_string())
    },
    || {
        let text = request(1, "tools/list", json!({}), json!({})).to_string();
        let mut names = Vec::new();
        for token in [json!("x".repeat(65)).to_string(), "1".repeat(65)] {
            let with = text.replacen(
                "\"_meta\":{",
                &format!("\"_meta\":{{\"progressToken\":{token},"),
                1,
            );
            assert_ne!(text, with);
            let mut server = modern(short);
            let answers = server.send_text(&with);
            assert_eq!(answers[0]["id"], 1);
            names.push(limit_of(&answers[0]));
            names.extend(violated_limits(server.violations()));
        }
        assert_eq!(names.len(), 4, "{names:?}");
        names
    },
];

/// Sets the maximum length of methods, ids and tokens to 64 bytes.
fn short(limits: &mut Limits) {
    limits.name_bytes = 64;
}

/// Exceeds the maximum number of client requests in flight.
pub(super) fn exceed_served_requests() -> Vec<String> {
    let mut server = server(|limits| limits.in_flight = 2);
    assert!(server.send(&list_request(1)).is_empty() && server.send(&list_request(2)).is_empty());
    vec![limit_of(&server.send(&list_request(3))[0])]
}

/// Exceeds the maximum total size of the client requests in flight.
pub(super) fn served_bytes() -> Vec<String> {
    let mut server = server(|limits| limits.in_flight_bytes = 200);
    let big = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": { "cursor": "x".repeat(150) } });
    assert!(server.send(&big(1)).is_empty());
    vec![limit_of(&server.send(&big(2))[0])]
}

/// Exceeds the maximum total size of the requests in flight by the responses to input requests; checks that a response
/// that is too large becomes an error.
pub(super) fn answers_served() -> Vec<String> {
    let mut server = server(|limits| limits.in_flight_bytes = 500);
    assert_eq!(
        ask(&mut server, &["a", "b", "c"], None),
        Ok(SendOutcome::Queued)
    );
    let questions = server.take_messages();
    for (question, size) in questions.iter().zip([300, 200, 1000]) {
        let roots = json!({ "roots": [], "x": "x".repeat(size) });
        server.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": roots }));
        assert!(server.endpoint.usage().in_flight_bytes <= 500);
    }
    let events = server.events();
    let [
        ServerEvent::Violation(violation),
        ServerEvent::Request(again),
    ] = &events[..]
    else {
        panic!("{events:?}");
    };
    let mut names = violated_limits(vec![violation.clone()]);
    // The last one waits for nothing.
    assert!(again.responses.result("a").is_some() && again.responses.result("c").is_some());
    let Some(Outcome::Error(error)) = again.responses.get("b") else {
        panic!("{:?}", again.responses);
    };
    assert!(error.is_local());
    let data: Value = error.data().expect("data").parse().expect("JSON");
    names.push(limit_of(&json!({ "error": { "data": data } })));
    assert!(
        server.endpoint.usage().in_flight_bytes < 100,
        "given to the program"
    );
    names
}

/// Replies to a tool call with one input request for each name and with the request state `state`; returns the
/// endpoint's result.
fn ask(
    server: &mut RawServer,
    names: &[&str],
    state: Option<&str>,
) -> Result<SendOutcome, SendError> {
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } });
    assert!(server.send(&call).is_empty());
    let key = server.take_request().key;
    let asks = names.iter().map(|name| (*name).to_owned());
    let asks = asks.map(|name| (name, InputRequest::new("roots/list", None)));
    let reply = Reply::InputRequired {
        requests: asks.collect(),
        state: state.map(str::to_owned),
    };
    server.endpoint.reply(key, reply, server.now)
}

/// Exceeds the maximum number of pending requests by the input requests of one reply.
pub(super) fn asks_sent() -> Vec<String> {
    let mut server = server(|limits| limits.pending = 2);
    let names = refusals(ask(&mut server, &["a", "b", "c"], None));
    assert!(server.take_messages().is_empty(), "nothing has left");
    names
}

/// Exceeds the maximum number of pending requests.
pub(super) fn requests_sent() -> Vec<String> {
    let mut server = server(|limits| limits.pending = 1);
    let now = server.now;
    assert!(server.endpoint.ping(RequestTimeout::default(), now).is_ok());
    refusals(server.endpoint.ping(RequestTimeout::default(), now))
}

/// Cancels more requests than ids can be remembered; checks that the reply to the oldest is then unknown.
pub(super) fn cancelled_forgotten() {
    let mut server = server(|limits| limits.remembered_ids = 1);
    let mut keys = Vec::new();
    for id in 1..=2 {
        assert!(server.send(&list_request(id)).is_empty());
        keys.push(server.take_request().key);
        let params = json!({ "requestId": id });
        server.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
        );
    }
    let replies = keys.into_iter().map(|key| {
        server
            .endpoint
            .reply(key, PeerError::internal("late"), server.now)
    });
    let replies: Vec<_> = replies.collect();
    assert_eq!(
        replies,
        [Err(SendError::UnknownRequest), Ok(SendOutcome::Suppressed)]
    );
    assert_eq!(server.endpoint.usage().remembered_ids, 1);
}

/// Sends more elicitations than ids can be remembered; checks that the id of the oldest is removed. The length of ids
/// that the application chooses is not limited.
pub(super) fn elicitations_forgotten() {
    let mut server = server(|limits| {
        limits.remembered_ids = 1;
        limits.name_bytes = 40;
    });
    assert!(server.send(&list_request(1)).is_empty());
    let key = server.take_request().key;
    let ids = ["a".repeat(50), "b".repeat(50)];
    let asks = ids.clone().map(|id| {
        let params = json!({ "mode": "url", "message": "m", "url": "https://x.example/", "elicitationId": id });
        (id, InputRequest::new("elicitation/create", Some(to_object(params))))
    });
    let reply = Reply::InputRequired {
        requests: asks.into(),
        state: None,
    };
    let sent = server.endpoint.reply(key, reply, server.now);
    assert_eq!(sent, Ok(SendOutcome::Queued));
    assert_eq!(server.endpoint.usage().elicitations, 1);
    let complete = ids.map(|id| {
        let params = Some(to_object(json!({ "elicitationId": id })));
        let method = "notifications/elicitation/complete";
        server.endpoint.notify(Scope::Peer, method, params).is_ok()
    });
    assert_eq!(complete, [false, true]);
}

/// Exceeds the maximum number of streams.
pub(super) fn streams() -> Vec<String> {
    let mut config = server_config(&[REVISION]);
    config.limits.streams = 1;
    let mut server: ServerEndpoint<()> = ServerEndpoint::new(
        config.build().expect("a configuration"),
        Binding::StreamableHttp,
        Time::ZERO,
    );
    assert!(server.open(StreamKind::Post).is_ok());
    let refused_one = std::iter::repeat_with(|| server.open(StreamKind::Post)).find(Result::is_err);
    refusals(refused_one.expect("one is too many"))
}

/// Exceeds the maximum size of the output that waits on one stream.
pub(super) fn stream_bytes() -> Vec<String> {
    let mut config = server_config(&[REVISION]);
    config.limits.stream_bytes = 100;
    let mut posts = HttpServerHarness::new(config, REVISION, json!({ "roots": {} }));
    let stream = posts.endpoint.open(StreamKind::Standalone).expect("open");
    let mut request = || {
        let options = CallOptions::default();
        let endpoint = &mut posts.endpoint;
        endpoint.request(Scope::Peer, "roots/list", None, options, Time::ZERO)
    };
    let first = std::iter::repeat_with(&mut request).find(Result::is_err);
    let names = refusals(first.expect("one is too many"));
    assert!(posts.endpoint.queued_bytes_on(stream) >= 100);
    assert!(posts.endpoint.wants_input());
    names
}

/// Exceeds the reserve of output bytes: the client never reads, refusals use up the reserve, and the endpoint closes.
pub(super) fn reserved_bytes() -> Vec<String> {
    let mut server = server(|limits| {
        limits.queued = 4;
        limits.reserved_bytes = 500;
    });
    let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
    let mut sent = 0;
    let mut told = Vec::new();
    while server.endpoint.wants_input() {
        sent += 1;
        assert!(sent < 1000, "memory is not limited");
        let frame = ping(sent);
        let context = FrameContext::new(());
        let received =
            server
                .endpoint
                .receive(StreamId::DUPLEX, frame.as_bytes(), context, server.now);
        received.expect("an endpoint reads");
        while let Some(event) = server.endpoint.poll_event() {
            told.push(event);
        }
        assert!(server.endpoint.usage().queued_bytes <= 1000);
    }
    assert!(server.endpoint.is_closed());
    told.into_iter()
        .filter_map(|event| match event {
            ServerEvent::Violation(Violation::Limit(limit)) => Some(limit.name().to_owned()),
            _ => None,
        })
        .collect()
}

/// Exceeds the maximum number of requests per second.
pub(super) fn requests_per_second() -> Vec<String> {
    // `initialize` is the first one.
    let mut server = server(|limits| limits.requests_per_second = 2);
    assert!(server.send(&list_request(1)).is_empty());
    let answers = server.send(&list_request(2));
    let mut names = violated_limits(server.violations());
    names.push(limit_of(&answers[0]));
    names
}

/// Exceeds the maximum number of notifications per second.
pub(super) fn notifications_per_second() -> Vec<String> {
    let mut server = server(|limits| limits.notifications_per_second = 1);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
    (0..2).for_each(|_| drop(server.send(&changed)));
    violated_limits(server.violations())
}

/// Sends `resources/subscribe`; returns the messages that the server sends immediately.
fn subscribe(server: &mut RawServer, uri: &str) -> Vec<Value> {
    let params = json!({ "uri": uri });
    server.send(
        &json!({ "jsonrpc": "2.0", "id": uri, "method": "resources/subscribe", "params": params }),
    )
}

/// Sends `resources/subscribe` and replies to the request with an empty result.
fn subscribe_and_accept(server: &mut RawServer, uri: &str) {
    let refused = subscribe(server, uri);
    assert!(refused.is_empty(), "{refused:?}");
    accept(server);
}

/// Replies to the pending request with an empty result.
fn accept(server: &mut RawServer) {
    let (key, now) = (server.take_request().key, server.now);
    let sent = server.endpoint.reply(key, to_result(json!({})), now);
    assert_eq!(sent, Ok(SendOutcome::Queued));
    server.take_messages();
}

/// Sends `subscriptions/listen` for one resource; returns the first answer.
fn listen(server: &mut RawServer, id: u64, uri: &str) -> Value {
    let params = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let request = request(id, "subscriptions/listen", params, json!({}));
    server.send(&request).remove(0)
}

/// Cases that exceed the maximum number of subscriptions.
pub(super) const SUBSCRIPTIONS: &[Case] = &[
    || {
        let mut server = server(|limits| limits.subscriptions = 1);
        subscribe_and_accept(&mut server, "a:b");
        vec![limit_of(&subscribe(&mut server, "c:d")[0])]
    },
    // One that waits for its reply counts.
    || {
        let mut server = server(|limits| limits.subscriptions = 1);
        assert!(subscribe(&mut server, "a:b").is_empty());
        vec![limit_of(&subscribe(&mut server, "c:d")[0])]
    },
    || {
        let mut server = modern(|limits| limits.subscriptions = 1);
        let first = listen(&mut server, 1, "a:b");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        vec![limit_of(&listen(&mut server, 2, "c:d"))]
    },
];

/// Cases that exceed the maximum memory for subscriptions.
pub(super) const SUBSCRIPTION_BYTES: &[Case] = &[
    || {
        let mut server = server(|limits| limits.subscription_bytes = 100);
        let names = ["a", "b", "c"].map(|name| format!("{name}:{}", "x".repeat(48)));
        subscribe_and_accept(&mut server, &names[0]);
        subscribe_and_accept(&mut server, &names[1]);
        assert_eq!(server.endpoint.usage().subscription_bytes, 100);
        let refused = vec![limit_of(&subscribe(&mut server, &names[2])[0])];
        // What is given up makes room, so that another one fits.
        let params = json!({ "uri": names[0] });
        server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/unsubscribe", "params": params }));
        accept(&mut server);
        assert_eq!(server.endpoint.usage().subscription_bytes, 50);
        subscribe_and_accept(&mut server, &names[2]);
        assert_eq!(server.endpoint.usage().subscription_bytes, 100);
        refused
    },
    || {
        let mut server = server(|limits| limits.subscription_bytes = 100);
        assert!(subscribe(&mut server, &format!("a:{}", "x".repeat(60))).is_empty());
        vec![limit_of(
            &subscribe(&mut server, &format!("b:{}", "x".repeat(60)))[0],
        )]
    },
    || {
        let mut server = modern(|limits| limits.subscription_bytes = 150);
        let uri = |name: &str| format!("{name}:{}", "x".repeat(60));
        let first = listen(&mut server, 1, &uri("a"));
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
        assert!(server.endpoint.usage().subscription_bytes > 60);
        vec![limit_of(&listen(&mut server, 2, &uri("b")))]
    },
];

/// Exceeds the maximum number of input requests in a reply.
pub(super) fn asks() -> Vec<String> {
    let mut server = server(|limits| limits.input_requests = 1);
    refusals(ask(&mut server, &["a", "b"], None))
}

/// Exceeds the maximum number of input responses in a request.
pub(super) fn answers_of_a_round() -> Vec<String> {
    let mut server = modern(|limits| limits.input_requests = 1);
    let answers = |count: usize| {
        let one = |at| (format!("q{at}"), json!({ "roots": [] }));
        let all: serde_json::Map<String, Value> = (0..count).map(one).collect();
        let params = json!({ "name": "x", "inputResponses": all });
        request(count, "tools/call", params, json!({}))
    };
    assert!(server.send(&answers(1)).is_empty());
    vec![limit_of(&server.send(&answers(2))[0])]
}

/// Exceeds the maximum number of retries of a request.
pub(super) fn rounds() -> Vec<String> {
    let mut server = server(|limits| limits.retries = 0);
    refusals(ask(&mut server, &["a"], None))
}

/// Exceeds the maximum size of a request state.
pub(super) fn state_bytes() -> Vec<String> {
    let mut server = server(|limits| limits.state_bytes = 8);
    refusals(ask(&mut server, &["a"], Some("123456789")))
}
