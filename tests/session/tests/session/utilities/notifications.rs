//! Unsolicited notifications of a server: changes, logs (`server/*`, `server/utilities/logging`).

use mcp_exact_tests_session::*;

/// In every revision with sessions, list changes are sent to the client, and resource updates to clients that have
/// subscribed to the resource.
#[test]
fn changes_are_published_in_every_revision() {
    for revision in handshake_revisions() {
        let mut pair = Pair::new(client_config(&[revision]), server_config(&[revision]));
        pair.run_until_idle();
        for change in [Change::Tools, Change::Prompts, Change::Resources] {
            assert_eq!(pair.server.publish(&change), 1, "{revision}");
        }
        let updated = Change::Resource("a:b".into());
        assert_eq!(pair.server.publish(&updated), 0, "not subscribed");
        pair.complete_request("resources/subscribe", Some(json!({ "uri": "a:b" })));
        assert_eq!(pair.server.publish(&updated), 1);
        pair.complete_request("resources/unsubscribe", Some(json!({ "uri": "a:b" })));
        assert_eq!(pair.server.publish(&updated), 0);
        pair.run_until_idle();
        let changes: Vec<&Change> = pair
            .client_events
            .iter()
            .filter_map(|event| match event {
                ClientEvent::Changed {
                    subscription: None,
                    change,
                    ..
                } => Some(change),
                _ => None,
            })
            .collect();
        assert_eq!(
            changes,
            [
                &Change::Tools,
                &Change::Prompts,
                &Change::Resources,
                &updated
            ]
        );
    }
}

/// Log messages below the level that the client has set are not sent; the default level is `info`.
#[test]
fn logs_respect_the_chosen_level() {
    let mut server =
        RawServer::with_session(server_config(&["2025-06-18"]), "2025-06-18", json!({}));
    let log = |server: &mut RawServer, level| {
        server
            .endpoint
            .send_log(Scope::Peer, level, None, json!("x"))
    };
    assert_eq!(log(&mut server, Level::Debug), Ok(SendOutcome::Suppressed));
    assert_eq!(log(&mut server, Level::Info), Ok(SendOutcome::Queued));
    let set = |level: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": { "level": level } });
    server.take_messages();
    assert_eq!(server.send(&set(json!("error")))[0]["result"], json!({}));
    assert_eq!(
        log(&mut server, Level::Warning),
        Ok(SendOutcome::Suppressed)
    );
    assert_eq!(log(&mut server, Level::Error), Ok(SendOutcome::Queued));
    server.take_messages();
    for bad in [json!("warn"), json!(5), json!(null)] {
        assert_eq!(server.send(&set(bad))[0]["error"]["code"], -32602);
    }
}

/// A client's notification is delivered to the server's application and can be decoded to its type.
#[test]
fn client_notifications_are_delivered_typed() {
    let mut pair = Pair::new(
        client_config(&["2025-11-25"]),
        server_config(&["2025-11-25"]),
    );
    pair.run_until_idle();
    pair.client
        .notify("notifications/roots/list_changed", None)
        .expect("declared");
    for own in ["notifications/initialized", "notifications/cancelled"] {
        assert!(
            matches!(
                pair.client.notify(own, None),
                Err(SendError::Reserved { .. })
            ),
            "{own}"
        );
    }
    {
        let theirs = "notifications/tools/list_changed";
        assert!(
            matches!(
                pair.client.notify(theirs, None),
                Err(SendError::Method { .. })
            ),
            "{theirs}"
        );
    }
    pair.run_until_idle();
    let notified = pair.server_events.iter().find_map(|event| match event {
        ServerEvent::Notification(notified) => Some(notified),
        _ => None,
    });
    let typed = notified.expect("a notification").typed().expect("it fits");
    assert!(matches!(
        typed,
        Negotiated::V2025_11_25(mcp_2025_11_25::ClientNotification::RootsListChanged(_))
    ));
}

/// `logs` returns false if `log` would send nothing, for example if the server has not declared the capability.
#[test]
fn logs_predicts_whether_log_sends() {
    let revision = "2025-11-25";
    for (capabilities, logs) in [(json!({ "logging": {} }), true), (json!({}), false)] {
        let mut config = server_config(&[revision]);
        config.capabilities = to_object(capabilities);
        let mut server = RawServer::with_session(config, revision, json!({}));
        assert_eq!(
            server
                .endpoint
                .would_send_log(Scope::Peer, Level::Emergency),
            logs
        );
        let sent = server
            .endpoint
            .send_log(Scope::Peer, Level::Emergency, None, json!(1));
        assert_eq!(sent.is_ok(), logs, "{sent:?}");
    }
}
