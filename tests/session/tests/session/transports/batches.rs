//! Batches whose requests end at different times (2025-03-26: `basic`, "Batching"; JSON-RPC 2.0, section 6).

use mcp_exact_tests_session::*;

/// The only revision that has batches.
const REVISION: &str = "2025-03-26";

/// Creates a `ping` request.
fn ping_request(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}

/// Creates a tool call.
fn call_request(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "x" } })
}

/// Removes the pending events and returns the keys of the requests among them.
fn batch_requests(server: &mut ServerEndpoint<()>) -> Vec<RequestKey> {
    let key = |event| match event {
        ServerEvent::Request(request) => Some(request.key),
        _ => None,
    };
    std::iter::from_fn(|| server.poll_event())
        .filter_map(key)
        .collect()
}

/// Responses that wait for a slow request of their batch count towards the limits, and the endpoint accepts no more
/// input when the limits are reached.
#[test]
fn waiting_batch_answers_are_counted() {
    let mut config = server_config(&[REVISION]);
    config.limits.queued_bytes = 10_000;
    let mut server = CheckedServer::with_session(config, REVISION, json!({}));
    let text = "x".repeat(6000);
    let mut slow = Vec::new();
    let mut refused = 0;
    for batch in 0..5 {
        let members = json!([call_request(2 * batch), call_request(2 * batch + 1)]);
        let answers = server.send(&members);
        let keys = batch_requests(&mut server.endpoint);
        let [first, second] = keys[..] else {
            // Both members are refused at once, in one array.
            let answers = answers[0].as_array().expect("an array");
            assert_eq!(answers.len(), 2);
            assert!(
                answers
                    .iter()
                    .all(|answer| answer["error"]["data"]["limit"] == "queued_bytes")
            );
            refused += 1;
            continue;
        };
        let reply = to_result(json!({ "content": [{ "type": "text", "text": text }] }));
        assert!(server.reply(first, reply).is_empty());
        slow.push(second);
        let usage = server.endpoint.usage();
        assert_eq!(usage.batches, slow.len());
        assert!(usage.batch_bytes >= slow.len() * text.len(), "{usage:?}");
    }
    assert_eq!((slow.len(), refused), (2, 3));
    for key in slow {
        let answers = server.reply(key, empty_content());
        assert_eq!(answers[0].as_array().map(Vec::len), Some(2));
    }
    let usage = server.endpoint.usage();
    assert_eq!(
        (usage.batches, usage.batch_bytes, usage.in_flight),
        (0, 0, 0)
    );
}

/// "The response objects being returned from a batch call MAY be returned in any order": one array of responses is sent
/// when the last request of a batch has ended; a cancelled request has no response.
#[test]
fn batch_with_cancellation_is_answered_once() {
    let mut server = CheckedServer::with_session(server_config(&[REVISION]), REVISION, json!({}));
    assert!(
        server
            .send(&json!([call_request(1), call_request(2), ping_request(3)]))
            .is_empty()
    );
    let keys = batch_requests(&mut server.endpoint);
    assert!(server.reply(keys[0], empty_content()).is_empty());
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } });
    let answers = server.send(&cancel);
    let ids: Vec<&Value> = answers[0]
        .as_array()
        .expect("an array")
        .iter()
        .map(|answer| &answer["id"])
        .collect();
    assert_eq!(ids, [&json!(3), &json!(1)]);
    assert_eq!(
        server.endpoint.reply(keys[1], empty_content(), Time::ZERO),
        Ok(SendOutcome::Suppressed)
    );
    assert!(server.take_messages().is_empty());
}

/// After the connection of a batch is closed, replies to its requests are accepted, but nothing is sent or kept.
#[test]
fn closed_stream_drops_batch_answers() {
    let mut posts = server_with_roots_client(REVISION);
    let stream = posts.post(&[], &json!([call_request(1), call_request(2)]));
    let keys = batch_requests(&mut posts.endpoint);
    assert_eq!(
        posts.endpoint.reply(keys[0], empty_content(), Time::ZERO),
        Ok(SendOutcome::Queued)
    );
    posts
        .endpoint
        .handle_close(stream, StreamEnd::Lost, Time::ZERO);
    posts
        .endpoint
        .reply(keys[1], empty_content(), Time::ZERO)
        .expect("a race");
    assert!(posts.take_output().is_empty());
    let usage = posts.endpoint.usage();
    assert_eq!(
        (
            usage.batches,
            usage.batch_bytes,
            usage.queued,
            usage.streams
        ),
        (0, 0, 0, 0)
    );
}

/// If a process dies with a batch in flight, the resumed endpoint answers every request of the batch, on its stream.
#[test]
fn lost_batch_gets_one_array() {
    let mut posts = server_with_roots_client(REVISION);
    let stream = posts.post(&[], &json!([call_request(1), call_request(2)]));
    let alone = posts.post(&[], &call_request(3));
    let snapshot = posts.endpoint.take_snapshot().expect("a session");
    assert_eq!(snapshot.requests.len(), 3);
    let settings = server_config(&[REVISION]).build().expect("a configuration");
    let resumed =
        ServerEndpoint::<()>::resume(settings, Binding::StreamableHttp, snapshot, Time::ZERO);
    let mut resumed = resumed.expect("offered");
    let mut bytes = Vec::new();
    assert_eq!(resumed.poll_transmit(&mut bytes), None, "detached");
    assert!(resumed.handle_attach(stream, Time::ZERO) && resumed.handle_attach(alone, Time::ZERO));
    let (_, batch) = resumed.poll_transmit_on(stream).expect("the answers");
    let batch: Value = serde_json::from_slice(&batch).expect("JSON");
    let answers = batch.as_array().expect("an array");
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2)]);
    assert!(
        answers
            .iter()
            .all(|answer| answer["error"]["code"] == -32603)
    );
    let (transmit, single) = resumed.poll_transmit_on(alone).expect("the answer");
    assert!(matches!(transmit, Transmit::Frame { is_last: true, .. }));
    let single: Value = serde_json::from_slice(&single).expect("JSON");
    assert_eq!(
        (&single["id"], &single["error"]["code"]),
        (&json!(3), &json!(-32603))
    );
    assert_eq!(resumed.poll_transmit_on(stream), None);
    let usage = resumed.usage();
    assert_eq!((usage.queued, usage.queued_bytes, usage.streams), (0, 0, 0));
}

/// Creates a server on a duplex stream in an initialized session.
fn duplex_server(revision: &str) -> RawServer {
    let settings = server_config(&[revision]).build().expect("a configuration");
    let snapshot = Snapshot::new(negotiated_session(revision, json!({ "roots": {} })), 0);
    let server = ServerEndpoint::resume(settings, Binding::Duplex, snapshot, Time::ZERO);
    RawServer::from_endpoint(server.expect("offered"), Time::ZERO)
}

/// "Requests ... the receiver MUST respond with a result or an error": each request of a batch that is too long is
/// answered with an error; responses in the batch are accepted.
#[test]
fn oversized_batch_refuses_each_request() {
    for revision in [REVISION, "2025-06-18"] {
        let mut server = duplex_server(revision);
        let (options, now) = (CallOptions::default(), Time::ZERO);
        let asked = server
            .endpoint
            .request(Scope::Peer, "roots/list", None, options, now);
        let asked = asked.expect("it leaves");
        let question = server.take_messages().remove(0);
        let mut batch: Vec<Value> = (0..100).map(ping_request).collect();
        batch.push(json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } }));
        let mut answers = server.send(&Value::from(batch));
        if revision == REVISION {
            assert_eq!(answers.len(), 1, "one array");
            answers = answers[0].as_array().cloned().expect("an array");
        }
        let ids: Vec<Option<u64>> = answers.iter().map(|answer| answer["id"].as_u64()).collect();
        assert_eq!(ids, (0..100).map(Some).collect::<Vec<_>>(), "{revision}");
        for answer in &answers {
            assert_eq!(answer["error"]["data"]["limit"], "batch_items");
        }
        let events = server.events();
        let [
            ServerEvent::Violation(Violation::Limit(Limit::BatchItems)),
            ServerEvent::Completed(key, Outcome::Error(error)),
        ] = &events[..]
        else {
            panic!("{events:?}");
        };
        assert!(*key == asked && error.is_local());
    }
}

/// A request of a batch whose method is longer than the maximum length of names is refused; the other requests are
/// handled.
#[test]
fn long_batch_request_is_refused_alone() {
    let mut server = duplex_server(REVISION);
    let long = json!({ "jsonrpc": "2.0", "id": 2, "method": "x".repeat(1025) });
    let answers = server.send(&json!([ping_request(1), long, ping_request(3)]));
    assert_eq!(answers.len(), 1, "one array");
    let answers = answers[0].as_array().expect("an array");
    let limits: Vec<&Value> = answers
        .iter()
        .map(|answer| &answer["error"]["data"]["limit"])
        .collect();
    assert_eq!(limits, [&Value::Null, &json!("name_bytes"), &Value::Null]);
    let ids: Vec<&Value> = answers.iter().map(|answer| &answer["id"]).collect();
    assert_eq!(ids, [&json!(1), &json!(2), &json!(3)]);
}

/// "Cancellation notifications MUST only reference requests that were previously issued in the same direction and are
/// believed to still be in-progress" (2025-03-26, `basic/utilities/cancellation`): if a batch contains a request and
/// its cancellation, the cancellation is not forwarded to other processes.
#[test]
fn batch_keeps_its_cancellations() {
    let server = CheckedServer::with_session(server_config(&[REVISION]), REVISION, json!({}));
    let cancel = |id: u64| {
        let params = json!({ "requestId": id });
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
    };
    let divide = |messages: Value| {
        let divided = server
            .endpoint
            .divide_frame(messages.to_string().as_bytes());
        [divided.for_this_process, divided.for_other_processes].map(|part| {
            let part = part.map(|bytes| String::from_utf8(bytes).expect("UTF-8"));
            part.map_or(Value::Null, |text| text.parse().expect("JSON"))
        })
    };
    for batch in [
        json!([call_request(7), cancel(7)]),
        json!([cancel(7), call_request(7)]),
    ] {
        assert_eq!(divide(batch.clone()), [batch, Value::Null]);
    }
    let (own, foreign) = (json!([call_request(7)]), json!([cancel(8)]));
    assert_eq!(divide(json!([call_request(7), cancel(8)])), [own, foreign]);
}
