//! Messages that exceed the limits of queues, by number or by bytes: incoming messages of a batch, and outgoing
//! messages that the peer does not read.

use mcp_exact_tests_session::*;

use super::{client_at, limit_of, refusals, server_at, violated_limits};

/// The only revision that has batches.
const BATCH_REVISION: &str = "2025-03-26";

/// Creates a batch of three requests with the method `method` and one notification; two of the requests fill any of the
/// queues.
fn batch(method: &str, notification: &str) -> Value {
    let params = json!({ "x": "x".repeat(60) });
    let request =
        |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    json!([request(1), request(2), request(3), { "jsonrpc": "2.0", "method": notification }])
}

/// Checks that a batch was answered with two results and one error; returns the name of the limit that the error
/// reports.
fn of_batch(answers: &[Value]) -> Vec<String> {
    let [Value::Array(answers)] = answers else {
        panic!("{answers:?}");
    };
    let (good, bad): (Vec<&Value>, Vec<&Value>) = answers
        .iter()
        .partition(|answer| answer.get("result").is_some());
    assert_eq!((good.len(), bad.len()), (2, 1), "{answers:?}");
    bad.into_iter().map(limit_of).collect()
}

/// Exceeds a queue limit of a server with a batch and with unread output; returns the names of the reported limits.
pub(super) fn of_server(set: fn(&mut Limits)) -> Vec<String> {
    let mut server = server_at(BATCH_REVISION, set);
    let text = batch("tools/list", "notifications/roots/list_changed");
    assert!(server.send(&text).is_empty());
    assert!(!server.endpoint.wants_input());
    let mut told = Vec::new();
    for event in server.events() {
        match event {
            ServerEvent::Request(request) => {
                let reply = to_result(json!({ "tools": [] }));
                let sent = server.endpoint.reply(request.key, reply, server.now);
                assert_eq!(sent, Ok(SendOutcome::Queued));
            }
            ServerEvent::Violation(violation) => told.push(violation),
            other => panic!("{other:?}"),
        }
    }
    let mut names = violated_limits(told);
    names.extend(of_batch(&server.take_messages()));
    assert_eq!(names.len(), 2, "{names:?}");
    // The peer does not read the output of the endpoint.
    let now = server.now;
    let mut ping = || server.endpoint.ping(RequestTimeout::default(), now);
    let first = std::iter::repeat_with(&mut ping).find(Result::is_err);
    names.extend(refusals(first.expect("one is too many")));
    assert_eq!(server.endpoint.publish(&Change::Tools), 0, "dropped");
    server.take_messages();
    assert!(server.endpoint.wants_input());
    names
}

/// Exceeds a queue limit of a client with a batch and with unread output; returns the names of the reported limits.
pub(super) fn of_client(set: fn(&mut Limits)) -> Vec<String> {
    let mut names = Vec::new();
    for notification in ["notifications/tools/list_changed", "notifications/message"] {
        let mut client = client_at(BATCH_REVISION, set);
        let mut text = batch("roots/list", notification);
        text[3]["params"] = json!({ "level": "error", "data": "x" });
        assert!(client.send(&text).is_empty());
        assert!(!client.endpoint.wants_input());
        let mut told = Vec::new();
        for event in client.events() {
            match event {
                ClientEvent::Request { key, .. } => {
                    let answer = Ok(to_result(json!({ "roots": [] })));
                    let sent = client.endpoint.answer(key, answer, client.now);
                    assert_eq!(sent, Ok(SendOutcome::Queued));
                }
                ClientEvent::Violation(violation) => told.push(violation),
                other => panic!("{other:?}"),
            }
        }
        names.extend(violated_limits(told));
        names.extend(of_batch(&client.take_messages()));
    }
    assert_eq!(names.len(), 4, "{names:?}");
    let mut client = client_at(BATCH_REVISION, set);
    let (options, now) = (CallOptions::default(), client.now);
    let mut request = || {
        let options = options.clone();
        client.endpoint.request("tools/list", None, options, now)
    };
    let first = std::iter::repeat_with(&mut request).find(Result::is_err);
    names.extend(refusals(first.expect("one is too many")));
    let changed = client
        .endpoint
        .notify("notifications/roots/list_changed", None);
    assert_eq!(changed, Ok(SendOutcome::Dropped));
    client.take_messages();
    assert!(client.endpoint.wants_input());
    names
}
