//! Messages that exceed each limit of a client.

use mcp_exact_tests_session::*;

use super::table::Case;
use super::{client, client_at, limit_of, refusals, violated_limits};

/// Sends a frame that exceeds a limit; returns the names of the limits that violations report. Checks that the session
/// continues.
pub(super) fn frame(set: fn(&mut Limits), text: &str) -> Vec<String> {
    let mut client = client(set);
    client.send_text(text);
    let names = violated_limits(client.violations());
    assert_eq!(client.send(&ping(1)).len(), 1, "the session goes on");
    names
}

/// Delivers an answer that the framing has skipped, because the budget has no room for it.
pub(super) fn skipped() -> Vec<String> {
    let mut client = client(|_| {});
    let (_, sent) = client.request("tools/call", json!({ "name": "x" }));
    let head = format!(r#"{{"jsonrpc":"2.0","id":{},"result":"#, sent["id"]);
    let message = frame::Oversized {
        head: head.as_bytes(),
        tail: b"}",
        size: None,
        limit: Limit::MessageBudget,
    };
    let received = client
        .endpoint
        .receive_oversized(StreamId::DUPLEX, &message, Time::ZERO);
    received.expect("open");
    let limit = |outcome| match outcome {
        Outcome::Error(error) => error.exceeded_limit(),
        _ => None,
    };
    let outcomes = client.outcomes().into_iter();
    outcomes.filter_map(|(_, outcome)| limit(outcome)).collect()
}

/// Exceeds the maximum message size with the body of an HTTP error response.
pub(super) fn body() -> Vec<String> {
    let mut config = client_config(&[DISCOVER_REVISION]);
    config.limits.message_bytes = 400;
    let (mut client, on, _) = posted_list_request(config);
    let error = json!({ "code": -32000, "message": "m", "data": "x".repeat(400) });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "error": error }).to_string();
    let why = TransportFailure::Status {
        code: 400,
        body: body.into_bytes(),
    };
    client.handle_failure(on, why, Time::ZERO);
    let mut events = std::iter::from_fn(|| client.poll_event());
    let Some(ClientEvent::Violation(violation)) = events.next() else {
        panic!("no violation");
    };
    let Some(ClientEvent::Completed(_, Outcome::Error(error))) = events.next() else {
        panic!("no end");
    };
    assert!(error.is_local());
    violated_limits(vec![violation])
}

/// Creates a `ping` request of the server.
fn ping(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}

/// Creates a `roots/list` request.
fn roots(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" })
}

/// Sends a request of the server that must be refused with an error and reported as a violation.
fn refuse_server_request(client: &mut RawClient, message: &Value) -> Vec<String> {
    let answers = client.send(message);
    assert_eq!((answers.len(), &answers[0]["id"]), (1, &message["id"]));
    let mut names = violated_limits(client.violations());
    assert_eq!(names.len(), 1, "{names:?}");
    names.push(limit_of(&answers[0]));
    names
}

/// Cases in which a method, an id or a progress token is longer than the maximum length of names.
pub(super) const NAMES: &[Case] = &[
    || {
        let method = json!({ "jsonrpc": "2.0", "method": "x".repeat(65) });
        frame(short, &method.to_string())
    },
    || {
        let method = json!({ "jsonrpc": "2.0", "id": 1, "method": "x".repeat(65) });
        refuse_server_request(&mut client(short), &method)
    },
    || {
        let id = json!({ "jsonrpc": "2.0", "id": "x".repeat(65), "method": "roots/list" });
        frame(short, &id.to_string())
    },
    || {
        let with = |token: String| json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": { "_meta": { "progressToken": token } } });
        assert!(client(short).send(&with("x".repeat(64))).is_empty());
        refuse_server_request(&mut client(short), &with("x".repeat(65)))
    },
    // Where servers send no requests, a longer method is refused all the same.
    || {
        let mut client = client_at(DISCOVER_REVISION, short);
        client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "x".repeat(65) }));
        violated_limits(client.violations())
    },
];

/// Sets the maximum length of methods, ids and tokens to 64 bytes.
fn short(limits: &mut Limits) {
    limits.name_bytes = 64;
}

/// Exceeds the maximum number of server requests in flight.
pub(super) fn exceed_served_requests() -> Vec<String> {
    let mut client = client(|limits| limits.in_flight = 1);
    assert!(client.send(&roots(1)).is_empty());
    vec![limit_of(&client.send(&roots(2))[0])]
}

/// Exceeds the maximum total size of the server requests in flight.
pub(super) fn served_bytes() -> Vec<String> {
    let mut client = client(|limits| limits.in_flight_bytes = 200);
    let big = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list", "params": { "x": "x".repeat(150) } });
    assert!(client.send(&big(1)).is_empty());
    vec![limit_of(&client.send(&big(2))[0])]
}

/// Sends `tools/list`; returns its key or the error.
fn request(client: &mut RawClient) -> Result<RequestKey, SendError> {
    let (options, now) = (CallOptions::default(), client.now);
    client.endpoint.request("tools/list", None, options, now)
}

/// Exceeds the maximum number of pending requests.
pub(super) fn exceed_sent_requests() -> Vec<String> {
    let mut client = client(|limits| limits.pending = 2);
    assert!(request(&mut client).is_ok() && request(&mut client).is_ok());
    refusals(request(&mut client))
}

/// Creates a client without a session whose tool call was answered with this result.
fn client_with_answer(set: fn(&mut Limits), body: &Value) -> RawClient {
    let mut client = client_at(DISCOVER_REVISION, set);
    let (_, sent) = client.request("tools/call", json!({ "name": "x" }));
    client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }));
    client
}

/// Exceeds the maximum number of pending requests while a call waits for the application's input responses.
pub(super) fn sent_between_rounds() -> Vec<String> {
    let requests = json!({ "q": { "method": "roots/list" } });
    let body = json!({ "resultType": "input_required", "inputRequests": requests });
    refusals(request(&mut client_with_answer(
        |limits| limits.pending = 1,
        &body,
    )))
}

/// Cancels more server requests than ids can be remembered; checks that the answer to the oldest is then unknown.
pub(super) fn cancelled_forgotten() {
    let mut client = client(|limits| limits.remembered_ids = 1);
    let mut asks = Vec::new();
    for id in 1..=2 {
        assert!(client.send(&roots(id)).is_empty());
        let params = json!({ "requestId": id });
        client.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
        );
        asks.extend(client.events().into_iter().filter_map(|event| match event {
            ClientEvent::Request { key, .. } => Some(key),
            _ => None,
        }));
    }
    let now = client.now;
    let late = |ask| {
        client
            .endpoint
            .answer(ask, Ok(to_result(json!({ "roots": [] }))), now)
    };
    let answers: Vec<_> = asks.into_iter().map(late).collect();
    assert_eq!(
        answers,
        [Err(SendError::UnknownRequest), Ok(SendOutcome::Suppressed)]
    );
    assert_eq!(client.endpoint.usage().remembered_ids, 1);
}

/// Delivers elicitations with these ids and then their completions; returns for each id whether the application
/// receives the completion.
fn known_completions(client: &mut RawClient, ids: &[String]) -> Vec<bool> {
    for (at, id) in ids.iter().enumerate() {
        let params = json!({ "mode": "url", "message": "m", "url": "https://x.example/", "elicitationId": id });
        let ask =
            json!({ "jsonrpc": "2.0", "id": at, "method": "elicitation/create", "params": params });
        assert!(client.send(&ask).is_empty());
        assert!(matches!(client.events()[..], [ClientEvent::Request { .. }]));
    }
    let mut told = Vec::new();
    for id in ids {
        let params = json!({ "elicitationId": id });
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params }));
        told.push(!client.events().is_empty());
    }
    told
}

/// Delivers more elicitations than ids can be remembered; checks that the id of the oldest is removed.
pub(super) fn elicitations_forgotten() {
    let ids = ["a", "b"].map(str::to_owned);
    let mut client = client(|limits| limits.remembered_ids = 1);
    assert_eq!(known_completions(&mut client, &ids), [false, true]);
}

/// The completion of an elicitation is not delivered if the elicitation's id is longer than the maximum length of
/// names.
#[test]
fn elicitation_with_long_id_is_forgotten() {
    let ids = ["x".repeat(65), "x".repeat(64)];
    assert_eq!(known_completions(&mut client(short), &ids), [false, true]);
}

/// Creates tasks with these ids and then sends progress for each; returns for each id whether the application receives
/// the progress.
fn known_progress(client: &mut RawClient, ids: &[String]) -> Vec<bool> {
    let mut tokens = Vec::new();
    for id in ids {
        let params = json!({ "name": "x", "task": { "ttl": 60000 } });
        let (_, sent) = client.request("tools/call", params);
        tokens.push(sent["params"]["_meta"]["progressToken"].clone());
        let task = json!({ "taskId": id, "status": "working", "createdAt": "2026-01-01T00:00:00Z",
            "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60000 });
        client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "task": task } }));
        assert!(matches!(client.events()[..], [ClientEvent::Completed(..)]));
    }
    let mut told = Vec::new();
    for token in tokens {
        let params = json!({ "progressToken": token, "progress": 1 });
        client.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
        );
        let events = client.events();
        assert!(
            matches!(events[..], [] | [ClientEvent::Progress { .. }]),
            "{events:?}"
        );
        told.push(!events.is_empty());
    }
    told
}

/// Creates more tasks than ids can be remembered; checks that the id of the oldest is removed.
pub(super) fn tasks_forgotten() {
    let ids = ["a", "b"].map(str::to_owned);
    let mut client = client(|limits| limits.remembered_ids = 1);
    assert_eq!(known_progress(&mut client, &ids), [false, true]);
    assert_eq!(client.endpoint.usage().tasks, 1);
}

/// The progress of a task is not delivered if the task's id is longer than the maximum length of names.
#[test]
fn task_with_long_id_is_forgotten() {
    let ids = ["x".repeat(65), "x".repeat(64)];
    let mut client = client(short);
    assert_eq!(known_progress(&mut client, &ids), [false, true]);
    assert_eq!(client.endpoint.usage().tasks, 1);
}

/// Exceeds the maximum number of requests per second.
pub(super) fn requests_per_second() -> Vec<String> {
    let mut client = client(|limits| limits.requests_per_second = 1);
    assert!(client.send(&ping(1))[0].get("result").is_some());
    let names = refuse_server_request(&mut client, &ping(2));
    client.now = Time::from_millis(1000);
    assert!(client.send(&ping(3))[0].get("result").is_some());
    names
}

/// Exceeds the maximum number of notifications per second.
pub(super) fn notifications_per_second() -> Vec<String> {
    let mut client = client(|limits| limits.notifications_per_second = 1);
    let changed = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
    (0..3).for_each(|_| drop(client.send(&changed)));
    let mut events = client.events();
    assert!(matches!(
        events[..],
        [ClientEvent::Changed { .. }, ClientEvent::Violation(_)]
    ));
    match events.pop() {
        Some(ClientEvent::Violation(violation)) => violated_limits(vec![violation]),
        other => panic!("{other:?}"),
    }
}

/// Returns the name of the limit in the error of the client's only completed request.
fn outcome(mut client: RawClient) -> Vec<String> {
    let outcomes = client.outcomes();
    let [(_, Outcome::Error(error))] = &outcomes[..] else {
        panic!("{outcomes:?}");
    };
    assert!(error.is_local());
    let data: Value = error.data().expect("data").parse().expect("JSON");
    vec![data["limit"].as_str().unwrap_or_default().to_owned()]
}

/// Exceeds the maximum number of input requests in a result.
pub(super) fn asks() -> Vec<String> {
    let ask = json!({ "method": "roots/list" });
    let body = json!({ "resultType": "input_required", "inputRequests": { "a": ask, "b": ask } });
    outcome(client_with_answer(
        |limits| limits.input_requests = 1,
        &body,
    ))
}

/// Exceeds the maximum number of retries of a request.
pub(super) fn rounds() -> Vec<String> {
    let body = json!({ "resultType": "input_required", "requestState": "x" });
    outcome(client_with_answer(|limits| limits.retries = 0, &body))
}

/// Exceeds the maximum size of a request state.
pub(super) fn state_bytes() -> Vec<String> {
    let body = json!({ "resultType": "input_required", "requestState": "x".repeat(9) });
    outcome(client_with_answer(|limits| limits.state_bytes = 8, &body))
}

/// Creates a client over HTTP that has requested the tool list; returns the client, and the stream and the message of
/// its POST.
fn posted_list_request(config: ClientConfig) -> (ClientEndpoint, StreamId, Value) {
    let agreed = json!({ "revision": DISCOVER_REVISION, "capabilities": { "tools": {} } });
    let agreed: SessionInfo = agreed.to_string().parse().expect("an agreement");
    let http = Binding::StreamableHttp;
    let mut client = ClientEndpoint::resume(
        config.build().expect("a configuration"),
        http,
        Snapshot::new(agreed, 0),
        Time::ZERO,
    )
    .expect("offered");
    let options = CallOptions::default();
    let key = client.request("tools/list", None, options, Time::ZERO);
    let mut sent = Vec::new();
    match (key, client.poll_transmit(&mut sent)) {
        (Ok(_), Some(Transmit::Frame { stream: on, .. })) => {
            let sent = serde_json::from_slice(&sent).expect("JSON");
            (client, on, sent)
        }
        other => panic!("{other:?}"),
    }
}

/// Exceeds the maximum memory for tool definitions.
pub(super) fn tool_bytes() -> Vec<String> {
    let mut config = client_config(&[DISCOVER_REVISION]);
    config.limits.tool_bytes = 100;
    let (mut client, on, sent) = posted_list_request(config);
    let region = json!({ "type": "string", "x-mcp-header": "Region" });
    let schema = json!({ "type": "object", "properties": { "region": region } });
    let tools = json!([{ "name": "x".repeat(100), "inputSchema": schema }]);
    let body =
        json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private" });
    let answer = json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }).to_string();
    let received = client.receive(on, answer.as_bytes(), Time::ZERO);
    received.expect("taken");
    match client.poll_event() {
        Some(ClientEvent::Violation(violation)) => violated_limits(vec![violation]),
        other => panic!("{other:?}"),
    }
}

/// During a renegotiation, a version error that is larger than the maximum size of a request state is not stored, but
/// ends its request.
#[test]
fn large_error_ends_its_request() {
    for (size, again) in [(10, true), (1000, false)] {
        let mut config = client_config(&[DISCOVER_REVISION, "2025-06-18"]);
        config.limits.state_bytes = 500;
        let mut client = RawClient::with_session(config, DISCOVER_REVISION, json!({ "tools": {} }));
        client.take_messages();
        let (key, sent) = client.request("tools/list", json!({}));
        let data = json!({ "supported": ["2025-06-18"], "requested": DISCOVER_REVISION, "x": "x".repeat(size) });
        let error = json!({ "code": -32022, "message": "m", "data": data });
        let next = client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "error": error }));
        assert_eq!(next.len(), usize::from(again), "{next:?}");
        let outcomes = client.outcomes();
        let ended = matches!(&outcomes[..], [(done, Outcome::Error(_))] if *done == key);
        assert_eq!(ended, !again, "{outcomes:?}");
    }
}

/// Exceeds the reserve of output bytes: the server never reads, refusals use up the reserve, and the endpoint closes.
pub(super) fn reserved_bytes() -> Vec<String> {
    let mut client = client(|limits| {
        limits.queued = 4;
        limits.reserved_bytes = 500;
    });
    let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string();
    let mut sent = 0;
    let mut told = Vec::new();
    while client.endpoint.wants_input() {
        sent += 1;
        assert!(sent < 1000, "memory is not limited");
        let frame = ping(sent);
        let received = client
            .endpoint
            .receive(StreamId::DUPLEX, frame.as_bytes(), client.now);
        received.expect("an endpoint reads");
        while let Some(event) = client.endpoint.poll_event() {
            told.push(event);
        }
        assert!(client.endpoint.usage().queued_bytes <= 1000);
    }
    assert!(client.endpoint.is_closed());
    told.into_iter()
        .filter_map(|event| match event {
            ClientEvent::Violation(Violation::Limit(limit)) => Some(limit.name().to_owned()),
            _ => None,
        })
        .collect()
}
