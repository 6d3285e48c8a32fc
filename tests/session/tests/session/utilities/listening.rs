//! Subscriptions on the client side (2026-07-28: `basic/patterns/subscriptions`, `basic/patterns/cancellation`,
//! "Timeouts"; `basic/versioning`, "Protocol Version Negotiation").

use mcp_exact_tests_session::*;

/// Name of the `_meta` member that contains the id of a subscription.
const SUBSCRIPTION_ID_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Creates a notification with the id of its subscription in `_meta`.
fn tagged_notification(id: &Value, method: &str, more: Value) -> Value {
    let mut params = more;
    params["_meta"] = json!({ SUBSCRIPTION_ID_KEY: id });
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Opens a subscription that the server acknowledges; returns its key and its request.
fn open_subscription(client: &mut RawClient) -> (RequestKey, Value) {
    let filter = json!({ "notifications": { "toolsListChanged": true } });
    let (key, sent) = client.request("subscriptions/listen", filter.clone());
    client.send(&tagged_notification(
        &sent["id"],
        "notifications/subscriptions/acknowledged",
        filter,
    ));
    assert!(matches!(client.events()[..], [ClientEvent::Subscribed(of, _)] if of == key));
    (key, sent)
}

/// A subscription has no timeout, not even after a progress notification for it.
#[test]
fn progress_restores_no_subscription_timeout() {
    let mut client = discover_peers::client();
    let (key, sent) = open_subscription(&mut client);
    assert_eq!(client.endpoint.poll_timeout(), None);
    let progress = json!({ "progressToken": sent["id"], "progress": 1 });
    client
        .send(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress }));
    client.events();
    assert_eq!(client.endpoint.poll_timeout(), None);
    client
        .endpoint
        .handle_timeout(Time::from_millis(10_000_000));
    assert!(client.outcomes().is_empty() && client.take_messages().is_empty());
    client.endpoint.cancel(key, "enough", Time::ZERO);
    assert_eq!(client.outcomes(), [(key, Outcome::Cancelled)]);
}

/// Without an acknowledgement, a subscription times out like every request.
#[test]
fn unacknowledged_subscription_times_out() {
    let mut client = discover_peers::client();
    let (key, _) = client.request("subscriptions/listen", json!({ "notifications": {} }));
    client.endpoint.handle_timeout(Time::from_millis(60_000));
    assert_eq!(client.outcomes(), [(key, Outcome::TimedOut)]);
}

/// The notifications of a subscription are delivered while the client renegotiates its revision.
#[test]
fn notifications_pass_during_renegotiation() {
    let config = client_config(&[DISCOVER_REVISION, "2025-11-25"]);
    let capabilities = json!({ "tools": { "listChanged": true } });
    let mut client = RawClient::with_session(config, DISCOVER_REVISION, capabilities);
    client.take_messages();
    let (subscription, listened) = open_subscription(&mut client);
    let (_, sent) = client.request("tools/list", json!({}));
    let data = json!({ "supported": ["2025-11-25"], "requested": DISCOVER_REVISION });
    let error = json!({ "code": -32022, "message": "Unsupported protocol version", "data": data });
    let next = client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "error": error }));
    assert_eq!(next[0]["method"], "initialize");
    let changed = tagged_notification(
        &listened["id"],
        "notifications/tools/list_changed",
        json!({}),
    );
    client.send(&changed);
    let events = client.events();
    let heard = |event: &ClientEvent| matches!(event, ClientEvent::Changed { subscription: Some(of), change: Change::Tools, .. } if *of == subscription);
    assert!(matches!(&events[..], [event] if heard(event)), "{events:?}");
    let result = json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" } });
    client.send(&json!({ "jsonrpc": "2.0", "id": next[0]["id"], "result": result }));
    client.send(&changed);
    assert_eq!(
        client.events().iter().filter(|event| heard(event)).count(),
        1
    );
}

/// "Clients do not send JSON-RPC responses" (`basic/transports/stdio`): a client that offers only revisions without
/// handshake sends no responses during probing.
#[test]
fn probing_client_sends_no_responses() {
    let questions = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "roots/list" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "nothing" }),
        json!({ "jsonrpc": "2.0", "id": null, "method": "ping" }),
        json!([{ "jsonrpc": "2.0", "id": 4, "method": "ping" }]),
        json!({ "jsonrpc": "2.0", "id": 5 }),
        json!(7),
    ];
    for binding in [Binding::Duplex, Binding::StreamableHttp] {
        let settings = client_config(&[DISCOVER_REVISION])
            .build()
            .expect("a configuration");
        let mut client = ClientEndpoint::new(settings, binding, None, Time::ZERO);
        let mut bytes = Vec::new();
        client.poll_transmit(&mut bytes).expect("a probe");
        let stream = match binding {
            Binding::Duplex => StreamId::DUPLEX,
            _ => client.open_standalone(),
        };
        for question in &questions {
            let text = question.to_string();
            client
                .receive(stream, text.as_bytes(), Time::ZERO)
                .expect("open");
            client.receive(stream, b"{", Time::ZERO).expect("open");
            bytes.clear();
            assert_eq!(client.poll_transmit(&mut bytes), None, "{question}");
        }
    }
    // One that speaks both answers: the server may be an old one that pings.
    let settings = client_config(&revisions_newest_first())
        .build()
        .expect("a configuration");
    let mut client = ClientEndpoint::new(settings, Binding::Duplex, None, Time::ZERO);
    let mut bytes = Vec::new();
    client.poll_transmit(&mut bytes).expect("a probe");
    bytes.clear();
    let ping = questions[0].to_string();
    client
        .receive(StreamId::DUPLEX, ping.as_bytes(), Time::ZERO)
        .expect("open");
    assert!(client.poll_transmit(&mut bytes).is_some());
}
