//! Subscriptions (2026-07-28: `basic/patterns/subscriptions`): acknowledgements, notifications, and ends.

use mcp_exact_tests_session::discover_peers::{request, server_of_all_revisions};
use mcp_exact_tests_session::*;

/// Creates a `subscriptions/listen` request with this filter.
fn listen_request(filter: Value) -> Value {
    request(
        "l",
        "subscriptions/listen",
        json!({ "notifications": filter }),
        json!({}),
    )
}

/// The first message of a subscription is the acknowledgement with the accepted filter.
#[test]
fn subscription_starts_with_acknowledgement() {
    let mut server = server_of_all_revisions();
    let filter = json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:b"] });
    let first = server.send(&listen_request(filter.clone()));
    assert_eq!(
        first[0]["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(first[0]["params"]["notifications"], filter);
    check_message(DISCOVER_REVISION, false, None, &first[0]);
    let events = server.events();
    let [ServerEvent::Subscribed { key, .. }] = events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(server.endpoint.publish(&Change::Prompts), 0);
    assert_eq!(server.endpoint.publish(&Change::Resource("c:d".into())), 0);
    assert_eq!(server.endpoint.publish(&Change::Tools), 1);
    assert_eq!(server.endpoint.publish(&Change::Resource("a:b".into())), 1);
    for message in server.take_messages() {
        check_message(DISCOVER_REVISION, false, None, &message);
        assert_eq!(
            message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
            "l"
        );
    }
    server.endpoint.end_subscription(key);
    let end = server.take_messages();
    assert_eq!(
        (&end[0]["method"], &end[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!("l"))
    );
    assert_eq!(end[1]["id"], "l");
    check_message(
        DISCOVER_REVISION,
        false,
        Some("subscriptions/listen"),
        &end[1],
    );
    assert_eq!(server.endpoint.publish(&Change::Tools), 0);
}

/// An application, such as a gateway that first subscribes upstream, may send the acknowledgement itself: no
/// notification precedes it, and it is sent once.
#[test]
fn application_may_acknowledge_itself() {
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.application_acknowledges = true;
    config.extensions.policy = ExtensionPolicy::AllowAll;
    let mut server = RawServer::new(config);
    let mut listen = listen_request(json!({ "toolsListChanged": true }));
    listen["params"]["_meta"]["progressToken"] = json!("t");
    listen["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    assert!(server.send(&listen).is_empty());
    let events = server.events();
    let [ServerEvent::Subscribed { key, .. }] = events[..] else {
        panic!("{events:?}");
    };
    let changed = "notifications/tools/list_changed";
    assert_eq!(server.endpoint.publish(&Change::Tools), 0);
    assert!(
        server
            .endpoint
            .notify(Scope::During(key), changed, None)
            .is_err()
    );
    let during = Scope::During(key);
    let misplaced = |sent| matches!(sent, Err(SendError::Placement { .. }));
    assert!(!server.endpoint.would_send_log(during, Level::Emergency));
    assert!(misplaced(server.endpoint.send_log(
        during,
        Level::Emergency,
        None,
        json!(1)
    )));
    assert!(misplaced(
        server.endpoint.send_progress(key, &Progress::new(1.0))
    ));
    assert!(misplaced(server.endpoint.notify(during, "vendor/x", None)));
    assert!(server.take_messages().is_empty());
    server.endpoint.acknowledge(key);
    server.endpoint.acknowledge(key);
    let first = server.take_messages();
    assert_eq!(first.len(), 1);
    assert_eq!(
        first[0]["method"],
        "notifications/subscriptions/acknowledged"
    );
    check_message(DISCOVER_REVISION, false, None, &first[0]);
    assert_eq!(server.endpoint.publish(&Change::Tools), 1);
    assert_eq!(server.take_messages()[0]["method"], changed);
}

/// The acknowledgement omits the members of the filter whose capability the server has not declared.
#[test]
fn undeclared_filter_members_are_not_honoured() {
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.capabilities = to_object(json!({ "tools": {}, "resources": { "listChanged": true } }));
    let mut server = RawServer::new(config);
    let filter = json!({ "toolsListChanged": true, "resourcesListChanged": true, "resourceSubscriptions": ["a:b"] });
    let first = server.send(&listen_request(filter));
    assert_eq!(
        first[0]["params"]["notifications"],
        json!({ "resourcesListChanged": true })
    );
    for bad in [
        json!(5),
        json!({ "toolsListChanged": 1 }),
        json!({ "resourceSubscriptions": "a:b" }),
    ] {
        let mut server = RawServer::new(server_config(&[DISCOVER_REVISION]));
        assert_eq!(
            server.send(&listen_request(bad))[0]["error"]["code"],
            -32602
        );
    }
}

/// A client accepts the end of a subscription by a result, by a cancellation, or by both.
#[test]
fn client_accepts_every_subscription_end() {
    for end in ["result", "cancelled", "both"] {
        let mut client = RawClient::with_session(
            client_config(&[DISCOVER_REVISION]),
            DISCOVER_REVISION,
            json!({ "tools": { "listChanged": true } }),
        );
        let (key, sent) = client.request(
            "subscriptions/listen",
            json!({ "notifications": { "toolsListChanged": true } }),
        );
        let id = &sent["id"];
        let tagged = |method: &str, more: Value| {
            let mut params = more;
            params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
            json!({ "jsonrpc": "2.0", "method": method, "params": params })
        };
        let changed = tagged("notifications/tools/list_changed", json!({}));
        client.send(&changed);
        assert!(
            matches!(client.violations()[..], [Violation::Subscription(_)]),
            "before the acknowledgement"
        );
        let ack = tagged(
            "notifications/subscriptions/acknowledged",
            json!({ "notifications": { "toolsListChanged": true } }),
        );
        client.send(&ack);
        assert!(
            matches!(&client.events()[..], [ClientEvent::Subscribed(of, filter)] if *of == key && filter.tools)
        );
        assert_eq!(client.endpoint.poll_timeout(), None, "it lasts");
        client.send(&changed);
        assert!(
            matches!(&client.events()[..], [ClientEvent::Changed { subscription: Some(of), change: Change::Tools, .. }] if *of == key)
        );
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
        assert!(
            matches!(client.violations()[..], [Violation::Subscription(_)]),
            "untagged"
        );
        if end != "result" {
            client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } }));
        }
        if end != "cancelled" {
            let result = json!({ "resultType": "complete", "_meta": { "io.modelcontextprotocol/subscriptionId": id } });
            client.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        }
        let outcomes = client.outcomes();
        assert!(
            matches!(&outcomes[..], [(done, Outcome::Result(_))] if *done == key),
            "{end}: {outcomes:?}"
        );
    }
}
