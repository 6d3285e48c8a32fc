//! Notifications of extensions and vendors, from client to server (2026-07-28: `basic/versioning`, "Extension Negotiation").

use mcp_exact_tests_session::*;

const ID: &str = "com.example/feed";
const METHOD: &str = "notifications/feed";

fn config(revisions: &[&str]) -> ServerConfig {
    let mut extension = Extension::new(ID);
    extension.client_notifications = vec![METHOD.to_owned()];
    let mut config = server_config(revisions);
    config.extensions.negotiated = vec![extension];
    config.extensions.notifications = vec!["notifications/vendor".to_owned()];
    config
}

fn notification(method: &str, capabilities: Option<Value>) -> Value {
    let mut params = json!({ "x": 1 });
    if let Some(capabilities) = capabilities {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": NEW,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
    }
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

fn delivered_method(events: &[ServerEvent<()>]) -> Option<&str> {
    match events {
        [ServerEvent::Notification(notification)] => {
            assert_eq!(notification.revision().as_str(), NEW);
            assert_eq!(notification.params().map(value).expect("params")["x"], 1);
            Some(notification.method())
        }
        _ => None,
    }
}

/// Notifications that an extension adds reach the application, on a duplex stream and by POST, for servers of one or
/// both lifecycles.
#[test]
fn extension_notifications_reach_the_program() {
    let declared = json!({ "extensions": { ID: {} } });
    for revisions in [vec![NEW], newest_first()] {
        for capabilities in [None, Some(declared.clone())] {
            for method in [METHOD, "notifications/vendor"] {
                let mut server = RawServer::new(config(&revisions));
                server.send(&notification(method, capabilities.clone()));
                assert_eq!(
                    delivered_method(&server.events()),
                    Some(method),
                    "{revisions:?}"
                );
            }
        }
    }
    for method in [METHOD, "notifications/vendor"] {
        let mut posts = HttpServerHarness::new(config(&[NEW]), NEW, json!({}));
        let headers = [("MCP-Protocol-Version", NEW), ("Mcp-Method", method)];
        let (status, _) = posts.answer(&headers, &notification(method, None));
        assert_eq!(status, 202);
        let events: Vec<_> = std::iter::from_fn(|| posts.machine.poll_event()).collect();
        assert_eq!(delivered_method(&events), Some(method));
    }
    // In the middle of a session of the other lifecycle, on one connection.
    let mut server = RawServer::begun(config(&newest_first()), "2025-11-25", json!({}));
    server.send(&notification(METHOD, Some(declared)));
    assert_eq!(delivered_method(&server.events()), Some(METHOD));
}

/// Such a notification is refused if the client has not declared the extension, and in sessions, in which no extensions
/// are negotiated.
#[test]
fn undeclared_extension_notifications_are_refused() {
    let mut server = RawServer::new(config(&[NEW]));
    server.send(&notification(METHOD, Some(json!({}))));
    assert_eq!(server.violations(), [Violation::Method(METHOD.to_owned())]);
    for revision in handshake() {
        let mut server = RawServer::begun(
            config(&[revision]),
            revision,
            json!({ "extensions": { ID: {} } }),
        );
        server.send(&notification(METHOD, None));
        assert_eq!(
            server.violations(),
            [Violation::Method(METHOD.to_owned())],
            "{revision}"
        );
    }
    let mut server = RawServer::new(config(&[NEW]));
    server.send(&notification("notifications/unknown", None));
    assert_eq!(
        server.violations(),
        [Violation::Method("notifications/unknown".to_owned())]
    );
}

/// A client's application can send them if the server has declared the extension.
#[test]
fn client_sends_negotiated_notifications() {
    for declares in [false, true] {
        let mut extension = Extension::new(ID);
        extension.client_notifications = vec![METHOD.to_owned()];
        let mut config = client_config(&[NEW]);
        config.extensions.negotiated = vec![extension];
        let capabilities = if declares {
            json!({ "extensions": { ID: {} } })
        } else {
            json!({})
        };
        let mut client = CheckedClient::ready(config, NEW, capabilities);
        let sent = client
            .machine
            .notify(METHOD, Some(object(json!({ "x": 1 }))));
        if declares {
            assert_eq!((sent, client.drain().len()), (Ok(Sent::Queued), 1))
        } else {
            assert!(
                matches!(sent, Err(SendError::Capability { .. })),
                "{sent:?}"
            )
        }
    }
}
