//! Notifications of extensions and vendors, from client to server (2026-07-28: `basic/versioning`, "Extension Negotiation").

use mcp_exact_tests_session::discover_peers::request;
use mcp_exact_tests_session::*;

/// Identifier of the extension that defines the notification.
const EXTENSION_ID: &str = "com.example/feed";
/// Method of the extension's notification.
const NOTIFICATION_METHOD: &str = "notifications/feed";

/// Returns the configuration of a server that declares the extension.
fn config(revisions: &[&str]) -> ServerConfig {
    let mut extension = Extension::new(EXTENSION_ID);
    extension.client_notifications = vec![NOTIFICATION_METHOD.to_owned()];
    let mut config = server_config(revisions);
    config.extensions.negotiated = vec![extension];
    config.extensions.notifications = vec!["notifications/vendor".to_owned()];
    config
}

/// Creates a notification: with `capabilities`, as a client of 2026-07-28 sends it; without, as in a session.
fn notification(method: &str, capabilities: Option<Value>) -> Value {
    let mut params = json!({ "x": 1 });
    if let Some(capabilities) = capabilities {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": DISCOVER_REVISION,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
    }
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

/// Returns the method of the notification that the application has received; it is of this revision.
fn delivered_method<'a>(events: &'a [ServerEvent<()>], revision: &str) -> Option<&'a str> {
    match events {
        [ServerEvent::Notification(notification)] => {
            assert_eq!(notification.revision().as_str(), revision);
            assert_eq!(notification.params().map(to_value).expect("params")["x"], 1);
            Some(notification.method())
        }
        _ => None,
    }
}

/// A notification that an extension defines reaches the server's application, on a duplex stream and by POST, for
/// servers with or without a handshake.
#[test]
fn extension_notifications_are_delivered() {
    let declared = json!({ "extensions": { EXTENSION_ID: {} } });
    for revisions in [vec![DISCOVER_REVISION], revisions_newest_first()] {
        for capabilities in [None, Some(declared.clone())] {
            for method in [NOTIFICATION_METHOD, "notifications/vendor"] {
                let mut server = RawServer::new(config(&revisions));
                server.send(&notification(method, capabilities.clone()));
                // Without metadata it is of the newest revision of the server.
                let of = capabilities
                    .as_ref()
                    .map_or(revisions[0], |_| DISCOVER_REVISION);
                assert_eq!(
                    delivered_method(&server.events(), of),
                    Some(method),
                    "{revisions:?}"
                );
            }
        }
    }
    for method in [NOTIFICATION_METHOD, "notifications/vendor"] {
        let mut posts =
            HttpServerHarness::new(config(&[DISCOVER_REVISION]), DISCOVER_REVISION, json!({}));
        let headers = [
            ("MCP-Protocol-Version", DISCOVER_REVISION),
            ("Mcp-Method", method),
        ];
        let (status, _) = posts.status_of_post(&headers, &notification(method, None));
        assert_eq!(status, 202);
        let events: Vec<_> = std::iter::from_fn(|| posts.endpoint.poll_event()).collect();
        assert_eq!(delivered_method(&events, DISCOVER_REVISION), Some(method));
    }
    // In the middle of a session of the other lifecycle, on one connection.
    let mut server =
        RawServer::with_session(config(&revisions_newest_first()), "2025-11-25", json!({}));
    server.send(&notification(NOTIFICATION_METHOD, Some(declared)));
    assert_eq!(
        delivered_method(&server.events(), DISCOVER_REVISION),
        Some(NOTIFICATION_METHOD)
    );
}

/// An extension's notification is refused if the client has not declared the extension, and in sessions, because
/// sessions negotiate no extensions.
#[test]
fn undeclared_extension_notifications_are_refused() {
    let mut server = RawServer::new(config(&[DISCOVER_REVISION]));
    server.send(&notification(NOTIFICATION_METHOD, Some(json!({}))));
    assert_eq!(
        server.violations(),
        [Violation::Method(NOTIFICATION_METHOD.to_owned())]
    );
    for revision in handshake_revisions() {
        let mut server = RawServer::with_session(
            config(&[revision]),
            revision,
            json!({ "extensions": { EXTENSION_ID: {} } }),
        );
        server.send(&notification(NOTIFICATION_METHOD, None));
        assert_eq!(
            server.violations(),
            [Violation::Method(NOTIFICATION_METHOD.to_owned())],
            "{revision}"
        );
    }
    let mut server = RawServer::new(config(&[DISCOVER_REVISION]));
    server.send(&notification("notifications/unknown", None));
    assert_eq!(
        server.violations(),
        [Violation::Method("notifications/unknown".to_owned())]
    );
}

/// A client's application can send an extension's notifications if the server has declared the extension.
#[test]
fn client_sends_extension_notifications() {
    for declares in [false, true] {
        let mut extension = Extension::new(EXTENSION_ID);
        extension.client_notifications = vec![NOTIFICATION_METHOD.to_owned()];
        let mut config = client_config(&[DISCOVER_REVISION]);
        config.extensions.negotiated = vec![extension];
        let capabilities = if declares {
            json!({ "extensions": { EXTENSION_ID: {} } })
        } else {
            json!({})
        };
        let mut client = CheckedClient::connected(config, DISCOVER_REVISION, capabilities);
        let sent = client
            .endpoint
            .notify(NOTIFICATION_METHOD, Some(to_object(json!({ "x": 1 }))));
        if declares {
            assert_eq!(
                (sent, client.take_messages().len()),
                (Ok(SendOutcome::Queued), 1)
            )
        } else {
            assert!(
                matches!(sent, Err(SendError::Capability { .. })),
                "{sent:?}"
            )
        }
    }
}

/// "The server MUST NOT send notification types the client has not explicitly requested" (`basic/patterns/subscriptions`,
/// "Opening a Stream"): a server sends an extension's notifications on a subscription only if the filter has a member of that
/// extension, and never those of vendors, which no filter can request. Other requests are not restricted.
#[test]
fn subscriptions_carry_requested_notifications_only() {
    let mut extension = Extension::new(EXTENSION_ID);
    extension.notifications = vec![NOTIFICATION_METHOD.to_owned()];
    extension.filter_members = vec!["feeds".to_owned()];
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.extensions.negotiated = vec![extension];
    config.extensions.notifications = vec!["notifications/vendor".to_owned()];
    let declared = json!({ "extensions": { EXTENSION_ID: {} } });
    let mut server = RawServer::new(config);
    for (id, filter, is_requested) in [
        (1, json!({ "toolsListChanged": true }), false),
        (2, json!({ "toolsListChanged": true, "feeds": ["a"] }), true),
    ] {
        let params = json!({ "notifications": filter });
        server.send(&request(
            id,
            "subscriptions/listen",
            params,
            declared.clone(),
        ));
        let key = server.events().into_iter().find_map(|event| match event {
            ServerEvent::Subscribed { key, .. } => Some(key),
            _ => None,
        });
        let scope = Scope::During(key.expect("a subscription"));
        for (method, is_allowed) in [
            (NOTIFICATION_METHOD, is_requested),
            ("notifications/vendor", false),
        ] {
            let sent = server.endpoint.notify(scope, method, None);
            if is_allowed {
                assert_eq!(sent, Ok(SendOutcome::Queued), "{method} {id}");
                let sent = server.take_messages().remove(0);
                let subscription =
                    &sent["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
                assert_eq!(*subscription, id);
            } else {
                assert!(
                    matches!(sent, Err(SendError::Placement { .. })),
                    "{method} {id}: {sent:?}"
                );
                assert!(server.take_messages().is_empty());
            }
        }
    }
    server.send(&request(3, "tools/call", json!({ "name": "x" }), declared));
    let scope = Scope::During(server.take_request().key);
    for method in [NOTIFICATION_METHOD, "notifications/vendor"] {
        let sent = server.endpoint.notify(scope, method, None);
        assert_eq!(sent, Ok(SendOutcome::Queued), "{method}");
    }
}
