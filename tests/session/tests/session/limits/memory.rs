//! Memory in bytes that a peer can fill: the counted messages, the refusal of input, and the release of memory.

use mcp_exact_tests_session::*;

use super::{client, server};

/// Size of a large text in bytes.
const LARGE_SIZE: usize = 1 << 16;

/// Function that creates a message with the given id.
type Message = fn(u64) -> Value;

/// Returns a text of [`LARGE_SIZE`] bytes.
fn big() -> String {
    "x".repeat(LARGE_SIZE)
}

/// Passes messages to an endpoint until it accepts no more; evaluates to the number of messages.
macro_rules! fill {
    ($side:expr, $message:expr) => {{
        let mut count = 0_u64;
        while $side.endpoint.wants_input() {
            count += 1;
            assert!(count < 100, "{:?}", $side.endpoint.usage());
            let text = $message(count).to_string();
            $side.send_text(&text);
        }
        count
    }};
}

/// Limits the queues to the size of three large texts.
fn small(limits: &mut Limits) {
    limits.queued_bytes = 3 * LARGE_SIZE;
}

/// The content of every kind of server event is counted, and taking events releases memory.
#[test]
fn server_events_are_counted_in_bytes() {
    let kinds: [(&str, Message); 4] = [
        (
            "requests",
            |id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": { "cursor": big() } }),
        ),
        (
            "notifications",
            |_| json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed", "params": { "x": big() } }),
        ),
        (
            "errors without id",
            |_| json!({ "jsonrpc": "2.0", "error": { "code": 1, "message": "m", "data": big() } }),
        ),
        (
            "errors with other members",
            |_| json!({ "jsonrpc": "2.0", "error": { "code": 1, "message": big(), "x": big() } }),
        ),
    ];
    for (kind, message) in kinds {
        let mut server = server(small);
        let taken = fill!(server, message);
        assert!((2..=3).contains(&taken), "{kind}: {taken}");
        let load = server.endpoint.usage();
        assert!(
            (3 * LARGE_SIZE..5 * LARGE_SIZE).contains(&load.events_bytes),
            "{kind}: {load:?}"
        );
        let text = message(99).to_string();
        let refused = server.endpoint.receive(
            StreamId::DUPLEX,
            text.as_bytes(),
            FrameContext::new(()),
            server.now,
        );
        assert_eq!(refused, Err(ReceiveError::Full), "{kind}");
        server.events();
        assert!(server.endpoint.wants_input(), "{kind}");
        assert_eq!(server.endpoint.usage().events_bytes, 0);
    }
}

/// A request that was cancelled before the application has received it still counts as an event.
#[test]
fn cancelled_requests_count_until_received() {
    let mut server = server(small);
    let mut count = 0_u64;
    while server.endpoint.wants_input() {
        count += 1;
        assert!(count < 100, "{:?}", server.endpoint.usage());
        let call = json!({ "jsonrpc": "2.0", "id": count, "method": "tools/list", "params": { "cursor": big() } });
        server.send(&call);
        let params = json!({ "requestId": count });
        if server.endpoint.wants_input() {
            server.send(
                &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }),
            );
        }
    }
    assert!(server.endpoint.usage().in_flight_bytes < 2 * LARGE_SIZE);
    server.events();
    assert!(server.endpoint.wants_input());
}

/// The content of every kind of client event is counted, and taking events releases memory.
#[test]
fn client_events_are_counted_in_bytes() {
    let kinds: [Message; 5] = [
        |id| json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list", "params": { "x": big() } }),
        |_| json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "error", "data": big() } }),
        |_| json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "error", "logger": big(), "data": 1 } }),
        |_| json!({ "jsonrpc": "2.0", "error": { "code": 1, "message": "m", "data": big() } }),
        |_| json!({ "jsonrpc": "2.0", "method": "notifications/tasks/status", "params": { "taskId": big() } }),
    ];
    for (at, message) in kinds.into_iter().enumerate() {
        let mut client = client(small);
        let taken = fill!(client, message);
        assert!((2..=3).contains(&taken), "{at}: {taken}");
        client.events();
        assert!(client.endpoint.wants_input(), "{at}");
        assert_eq!(client.endpoint.usage().events_bytes, 0);
    }
}

/// The sizes of results, errors and progress that the application has not yet received are counted.
#[test]
fn outcomes_are_counted_in_bytes() {
    let answers: [fn(&Value) -> Value; 3] = [
        |id| json!({ "jsonrpc": "2.0", "id": id, "result": { "tools": [], "x": big() } }),
        |id| json!({ "jsonrpc": "2.0", "id": id, "error": { "code": 1, "message": big() } }),
        |id| json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": { "progressToken": id, "progress": 1, "message": big() } }),
    ];
    for answer in answers {
        let mut client = client(small);
        let sent: Vec<Value> = (0..4)
            .map(|_| client.request("tools/list", json!({})).1)
            .collect();
        let taken = sent.iter().take_while(|sent| {
            let wanted = client.endpoint.wants_input();
            if wanted {
                client.send(&answer(&sent["id"]));
            }
            wanted
        });
        assert!(
            (2..=3).contains(&taken.count()),
            "{:?}",
            client.endpoint.usage()
        );
        client.events();
        assert!(client.endpoint.wants_input());
    }
    let mut server = server(small);
    let now = server.now;
    for _ in 0..4 {
        server
            .endpoint
            .ping(RequestTimeout::default(), now)
            .expect("sent");
    }
    for sent in server.take_messages() {
        if server.endpoint.wants_input() {
            server.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "x": big() } }));
        }
    }
    assert_eq!(server.events().len(), 3);
}

/// An endpoint with empty queues accepts a message that is as large as the limit of its queues, so that no peer waits
/// for ever.
#[test]
fn empty_queue_accepts_one_large_message() {
    let mut server = server(|limits| limits.queued_bytes = 400);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "cursor": "x".repeat(500) } });
    assert!(server.send(&call).is_empty());
    assert!(!server.endpoint.wants_input());
    let key = server.take_request().key;
    assert!(server.endpoint.wants_input());
    let reply = to_result(json!({ "tools": [], "x": "x".repeat(500) }));
    assert_eq!(
        server.endpoint.reply(key, reply, server.now),
        Ok(SendOutcome::Queued)
    );
    let refused = server.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
    assert_eq!(refused[0]["result"]["tools"], json!([]));
    assert_eq!(refused[1]["error"]["data"]["limit"], "queued_bytes");
    assert!(server.endpoint.wants_input());
}

/// Even with queue limits of zero, a message is accepted when the queues are empty.
#[test]
fn zero_limits_accept_single_messages() {
    let mut config = server_config(&["2025-11-25"]);
    (config.limits.queued, config.limits.queued_bytes) = (0, 0);
    let mut server = RawServer::new(config);
    for id in 0..3 {
        assert!(server.endpoint.wants_input());
        let ping = json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        let received = server.endpoint.receive(
            StreamId::DUPLEX,
            ping.to_string().as_bytes(),
            FrameContext::new(()),
            server.now,
        );
        assert_eq!(received, Ok(()));
        assert_eq!(server.take_messages().len(), 1);
    }
}

/// Messages that wait for `notifications/initialized` can fill the queue, but `notifications/initialized` itself is
/// still accepted.
#[test]
fn full_queue_accepts_initialized_notification() {
    let mut config = server_config(&["2025-11-25"]);
    config.limits.queued = 2;
    let mut server = RawServer::new(config);
    server.send(&initialize("2025-11-25", json!({ "roots": {} })));
    server.events();
    let (options, now) = (CallOptions::default(), server.now);
    let mut ask = || {
        let scope = Scope::Peer;
        server
            .endpoint
            .request(scope, "roots/list", None, options.clone(), now)
    };
    assert!(ask().is_ok() && ask().is_ok());
    assert_eq!(ask(), Err(SendError::Limit(Limit::Queued)));
    assert!(server.take_messages().is_empty() && server.endpoint.usage().queued == 2);
    assert!(server.endpoint.wants_input());
    let left = server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(left.len(), 2);
    assert_eq!(server.endpoint.usage().queued_bytes, 0);
}

/// A server stays within its memory limit, whatever the number and the length of the subscribed URIs.
#[test]
fn subscription_memory_is_limited() {
    let mut server = server(|_| {});
    let mut refused = 0;
    for id in 0..50 {
        let params = json!({ "uri": format!("a:{id}{}", "x".repeat(100_000)) });
        let subscribe = json!({ "jsonrpc": "2.0", "id": id, "method": "resources/subscribe", "params": params });
        if let [answer] = &server.send(&subscribe)[..] {
            assert_eq!(super::limit_of(answer), "subscription_bytes");
            refused += 1;
            continue;
        }
        let (key, now) = (server.take_request().key, server.now);
        let sent = server.endpoint.reply(key, to_result(json!({})), now);
        assert_eq!(sent, Ok(SendOutcome::Queued));
        server.take_messages();
    }
    let load = server.endpoint.usage();
    assert_eq!((refused, load.subscriptions), (40, 10));
    assert!(load.subscription_bytes <= Limits::default().subscription_bytes);
}

/// Ids of elicitations and tasks that are longer than the maximum length of names are not stored, because servers
/// choose these ids.
#[test]
fn long_ids_are_not_stored() {
    let mut client = client(|_| {});
    for id in 0..10 {
        let params = json!({ "mode": "url", "message": "m", "url": "https://x.example/", "elicitationId": big() });
        let ask =
            json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params });
        assert!(client.send(&ask).is_empty());
        let events = client.events();
        let [ClientEvent::Request { key, .. }] = events[..] else {
            panic!("{events:?}");
        };
        let answer = Ok(to_result(json!({ "action": "accept" })));
        assert_eq!(
            client.endpoint.answer(key, answer, client.now),
            Ok(SendOutcome::Queued)
        );
        client.take_messages();
    }
    assert_eq!(client.endpoint.usage().elicitations, 0);
    assert!(format!("{:?}", client.endpoint).len() < LARGE_SIZE);
}

/// The information about the sender of a request (2026-07-28, `basic`, "_meta") is kept as long as the request and
/// counts towards the memory limit.
#[test]
fn requests_are_counted_with_sender_metadata() {
    let mut server = RawServer::new(server_config(&[DISCOVER_REVISION]));
    let mut message = request_of_revision(DISCOVER_REVISION, 1, "tools/list", json!({}), json!({}));
    let sender = json!({ "name": big(), "version": "1" });
    message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = sender;
    assert!(server.send(&message).is_empty());
    assert!(server.endpoint.usage().in_flight_bytes > 2 * LARGE_SIZE);
}
