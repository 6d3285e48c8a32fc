//! Streams on which a server's notifications are sent from 2026-07-28 on, through the raw, the typed and the
//! specialised functions (`server/utilities/logging`, `basic/patterns/progress`, `basic/patterns/cancellation`,
//! `basic/patterns/subscriptions`).

use mcp_2026_07_28 as v2026;
use mcp_exact_tests_session::*;

/// Notification method, filter member and change of each kind of list.
const LIST_CHANGES: [(&str, &str, Change); 3] = [
    (
        "notifications/tools/list_changed",
        "toolsListChanged",
        Change::Tools,
    ),
    (
        "notifications/prompts/list_changed",
        "promptsListChanged",
        Change::Prompts,
    ),
    (
        "notifications/resources/list_changed",
        "resourcesListChanged",
        Change::Resources,
    ),
];

/// Creates a tool call with additional members of `_meta`.
fn call_request(meta: Value) -> Value {
    discover_peers::request(
        "c",
        "tools/call",
        json!({ "name": "x", "_meta": meta }),
        json!({}),
    )
}

/// Creates a `subscriptions/listen` request with this filter and additional members of `_meta`.
fn listen_request(filter: Value, meta: Value) -> Value {
    let params = json!({ "notifications": filter, "_meta": meta });
    discover_peers::request("l", "subscriptions/listen", params, json!({}))
}

/// Creates a server with one subscription that has this filter; returns the server and the scope of the subscription.
fn server_with_subscription(filter: Value, meta: Value) -> (CheckedServer, Scope) {
    let mut server = discover_peers::server();
    server.send(&listen_request(filter, meta));
    let events = server.events();
    let [ServerEvent::Subscribed { key, .. }] = events[..] else {
        panic!("{events:?}");
    };
    (server, Scope::During(key))
}

/// Returns the params of a log notification with this level.
fn log_params(level: &str) -> Option<JsonObject> {
    Some(to_object(json!({ "level": level, "data": 1 })))
}

/// "The server MUST NOT emit `notifications/message` for a request that does not include this field"; "at or above the
/// requested level": both rules apply to `log`, to raw notifications and to typed notifications.
#[test]
fn log_needs_its_request_level() {
    for (wanted, passes) in [
        (None, [false, false]),
        (Some("debug"), [true, true]),
        (Some("warning"), [false, true]),
        (Some("emergency"), [false, false]),
    ] {
        let meta = wanted.map_or(
            json!({}),
            |level| json!({ "io.modelcontextprotocol/logLevel": level }),
        );
        for (level, typed_level, passes) in [
            ("info", v2026::LoggingLevel::Info, passes[0]),
            ("error", v2026::LoggingLevel::Error, passes[1]),
        ] {
            let mut server = discover_peers::server();
            let key = server.serve(&call_request(meta.clone())).key;
            let scope = Scope::During(key);
            let parsed: Level = level.parse().expect("a level");
            let typed = v2026::LoggingMessageNotificationParams::new(
                typed_level,
                mcp_exact_session::Json::from(1_u64),
            );
            let expected = Ok(if passes {
                SendOutcome::Queued
            } else {
                SendOutcome::Suppressed
            });
            assert_eq!(
                server.endpoint.send_log(scope, parsed, None, json!(1)),
                expected
            );
            assert_eq!(
                server
                    .endpoint
                    .notify(scope, "notifications/message", log_params(level)),
                expected
            );
            assert_eq!(
                server
                    .endpoint
                    .notify_typed::<v2026::LoggingMessageNotification>(scope, &typed),
                expected
            );
            assert_eq!(server.endpoint.would_send_log(scope, parsed), passes);
            assert_eq!(
                server.take_messages().len(),
                if passes { 3 } else { 0 },
                "{wanted:?} {level}"
            );
        }
    }
}

/// "`notifications/message` is request-scoped: the server MUST NOT deliver it on a `subscriptions/listen` stream":
/// neither log messages nor progress notifications are sent on the stream of a subscription.
#[test]
fn listen_stream_carries_changes_only() {
    let meta = json!({ "progressToken": "t", "io.modelcontextprotocol/logLevel": "debug" });
    let (mut server, scope) = server_with_subscription(json!({ "toolsListChanged": true }), meta);
    let Scope::During(key) = scope else {
        panic!("a request");
    };
    let progress = to_object(json!({ "progressToken": "t", "progress": 1 }));
    let refused = [
        server
            .endpoint
            .send_log(scope, Level::Emergency, None, json!(1)),
        server
            .endpoint
            .notify(scope, "notifications/message", log_params("error")),
        server.endpoint.send_progress(key, &Progress::new(1.0)),
        server
            .endpoint
            .notify(scope, "notifications/progress", Some(progress)),
    ];
    for sent in refused {
        assert!(matches!(sent, Err(SendError::Placement { .. })), "{sent:?}");
    }
    assert!(server.take_messages().is_empty());
}

/// "Progress notifications MUST only reference tokens that were provided in an active request"; "the `progress` value
/// MUST increase with each notification": in every revision, both rules also apply to raw notifications.
#[test]
fn raw_progress_has_its_request_token() {
    for revision in all_revisions() {
        let mut server =
            CheckedServer::with_session(server_config(&[revision]), revision, json!({}));
        let params = json!({ "name": "x", "_meta": { "progressToken": "t" } });
        let key = server
            .serve(&request_of_revision(
                revision,
                1,
                "tools/call",
                params,
                json!({}),
            ))
            .key;
        let silent = server
            .serve(&request_of_revision(
                revision,
                2,
                "tools/call",
                json!({ "name": "x" }),
                json!({}),
            ))
            .key;
        let mut notify = |key, params: Value| {
            server.endpoint.notify(
                Scope::During(key),
                "notifications/progress",
                Some(to_object(params)),
            )
        };
        for bad in [
            json!({ "progressToken": "u", "progress": 1 }),
            json!({ "progressToken": 1, "progress": 1 }),
            json!({ "progress": 1 }),
            json!({ "progressToken": "t" }),
            json!({ "progressToken": "t", "progress": "1" }),
            json!({}),
        ] {
            let sent = notify(key, bad.clone());
            assert!(
                matches!(sent, Err(SendError::Params { .. })),
                "{revision} {bad}: {sent:?}"
            );
        }
        assert_eq!(
            notify(key, json!({ "progressToken": "t", "progress": 2 })),
            Ok(SendOutcome::Queued)
        );
        for late in [1, 2] {
            let sent = notify(key, json!({ "progressToken": "t", "progress": late }));
            assert_eq!(sent, Err(SendError::Progress), "{revision}");
        }
        assert_eq!(
            notify(silent, json!({ "progressToken": "t", "progress": 1 })),
            Ok(SendOutcome::Suppressed)
        );
        assert_eq!(
            server.endpoint.send_progress(key, &Progress::new(2.0)),
            Err(SendError::Progress)
        );
        let peer = server.endpoint.notify(
            Scope::Peer,
            "notifications/progress",
            Some(to_object(json!({ "progressToken": "t", "progress": 3 }))),
        );
        assert!(peer.is_err(), "{revision}: {peer:?}");
        assert_eq!(server.take_messages().len(), 1);
        server.reply(key, empty_content());
        let after = server.endpoint.notify(
            Scope::During(key),
            "notifications/progress",
            Some(to_object(json!({ "progressToken": "t", "progress": 9 }))),
        );
        assert_eq!(after, Err(SendError::UnknownRequest));
    }
}

/// "Servers MUST NOT send `notifications/cancelled` for any other purpose" than the end of a subscription, and the
/// acknowledgement is sent once: only the endpoint sends these notifications, in every revision.
#[test]
fn application_sends_no_reserved_notifications() {
    for revision in all_revisions() {
        let mut server =
            CheckedServer::with_session(server_config(&[revision]), revision, json!({}));
        let key = server
            .serve(&request_of_revision(
                revision,
                1,
                "tools/call",
                json!({ "name": "x" }),
                json!({}),
            ))
            .key;
        for scope in [Scope::During(key), Scope::Peer] {
            let params = || Some(to_object(json!({ "requestId": 1 })));
            let sent = server
                .endpoint
                .notify(scope, "notifications/cancelled", params());
            assert!(
                matches!(sent, Err(SendError::Reserved { .. } | SendError::NotReady)),
                "{revision}: {sent:?}"
            );
            let sent =
                server
                    .endpoint
                    .notify(scope, "notifications/subscriptions/acknowledged", params());
            assert!(
                matches!(
                    sent,
                    Err(SendError::Reserved { .. }
                        | SendError::Method { .. }
                        | SendError::NotReady)
                ),
                "{revision}: {sent:?}"
            );
        }
        assert!(server.take_messages().is_empty());
        let mut client = connected_client(revision);
        for method in ["notifications/cancelled", "notifications/initialized"] {
            let sent = client.endpoint.notify(method, None);
            assert!(
                matches!(
                    sent,
                    Err(SendError::Reserved { .. } | SendError::Method { .. })
                ),
                "{revision}: {sent:?}"
            );
        }
        assert!(client.take_messages().is_empty());
    }
}

/// "The server MUST NOT send notification types the client has not explicitly requested": the rule applies to
/// `publish`, to raw notifications and to typed notifications, on a stream with another filter, on the stream of a
/// call, and without a stream.
#[test]
fn changes_are_sent_to_subscribers() {
    for (method, member, change) in LIST_CHANGES {
        let (mut wants, scope) = server_with_subscription(json!({ member: true }), json!({}));
        assert_eq!(wants.endpoint.publish(&change), 1);
        assert_eq!(
            wants.endpoint.notify(scope, method, None),
            Ok(SendOutcome::Queued)
        );
        for message in wants.take_messages() {
            assert_eq!(message["method"], method);
            assert_eq!(
                message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
                "l"
            );
        }
        for (_, other, _) in LIST_CHANGES.iter().filter(|(_, other, _)| *other != member) {
            let (mut server, scope) =
                server_with_subscription(json!({ *other: true, member: false }), json!({}));
            assert_eq!(server.endpoint.publish(&change), 0);
            let sent = server.endpoint.notify(scope, method, None);
            assert!(
                matches!(sent, Err(SendError::Placement { .. })),
                "{method}: {sent:?}"
            );
            assert!(server.take_messages().is_empty());
        }
        let (mut server, _) = server_with_subscription(json!({ member: true }), json!({}));
        let key = server.serve(&call_request(json!({}))).key;
        let sent = server.endpoint.notify(Scope::During(key), method, None);
        assert!(
            matches!(sent, Err(SendError::Placement { .. })),
            "{method}: {sent:?}"
        );
        assert!(server.endpoint.notify(Scope::Peer, method, None).is_err());
        assert!(server.take_messages().is_empty());
    }
    let (mut server, scope) =
        server_with_subscription(json!({ "toolsListChanged": true }), json!({}));
    let sent = server
        .endpoint
        .notify_typed::<v2026::PromptListChangedNotification>(scope, &Default::default());
    assert!(matches!(sent, Err(SendError::Placement { .. })), "{sent:?}");
    let sent = server
        .endpoint
        .notify_typed::<v2026::ToolListChangedNotification>(scope, &Default::default());
    assert_eq!(sent, Ok(SendOutcome::Queued));
}

/// Updates are sent only for the resources in `resourceSubscriptions`.
#[test]
fn updates_are_sent_to_resource_subscribers() {
    let (mut server, scope) =
        server_with_subscription(json!({ "resourceSubscriptions": ["a:b"] }), json!({}));
    let mut notify = |params: Value| {
        server.endpoint.notify(
            scope,
            "notifications/resources/updated",
            Some(to_object(params)),
        )
    };
    assert_eq!(notify(json!({ "uri": "a:b" })), Ok(SendOutcome::Queued));
    for other in [json!({ "uri": "a:c" }), json!({ "uri": 5 }), json!({})] {
        let sent = notify(other.clone());
        assert!(
            matches!(sent, Err(SendError::Placement { .. })),
            "{other}: {sent:?}"
        );
    }
    assert_eq!(
        server.endpoint.publish(&Change::Resource("a:c".to_owned())),
        0
    );
    assert_eq!(server.take_messages().len(), 1);
}

/// A change of a capability that the server has not declared is not sent to any subscriber.
#[test]
fn undeclared_changes_are_not_announced() {
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.capabilities =
        to_object(json!({ "tools": {}, "prompts": { "listChanged": false }, "resources": {} }));
    let mut server = CheckedServer::new(config, DISCOVER_REVISION);
    let filter = json!({ "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true });
    let ack = server.send(&listen_request(filter, json!({})));
    assert_eq!(ack[0]["params"]["notifications"], json!({}));
    let events = server.events();
    let [ServerEvent::Subscribed { key, .. }] = events[..] else {
        panic!("{events:?}");
    };
    for (method, _, change) in LIST_CHANGES {
        assert_eq!(server.endpoint.publish(&change), 0);
        let sent = server.endpoint.notify(Scope::During(key), method, None);
        assert!(
            matches!(sent, Err(SendError::Capability { .. })),
            "{sent:?}"
        );
    }
    assert!(server.take_messages().is_empty());
}

/// A registry returns the endpoints whose client receives a given change: clients with a matching subscription, and
/// clients in a session with a server that declares the list change.
#[test]
fn registry_returns_interested_endpoints() {
    let mut registry = Subscribers::new();
    let (listener, _) = server_with_subscription(
        json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:b"] }),
        json!({}),
    );
    registry.replace("listener", listener.endpoint.subscribed_changes());
    let session =
        CheckedServer::with_session(server_config(&["2025-11-25"]), "2025-11-25", json!({}));
    registry.replace("session", session.endpoint.subscribed_changes());
    let mut idle = discover_peers::server();
    idle.serve(&call_request(json!({})));
    registry.replace("idle", idle.endpoint.subscribed_changes());
    let concerned = |registry: &Subscribers<&'static str>, change: &Change| {
        registry
            .interested_clients(change)
            .copied()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        concerned(&registry, &Change::Tools),
        ["listener", "session"]
    );
    assert_eq!(concerned(&registry, &Change::Prompts), ["session"]);
    assert_eq!(
        concerned(&registry, &Change::Resource("a:b".into())),
        ["listener"]
    );
    assert!(
        listener
            .endpoint
            .subscribed_changes()
            .includes(&Change::Tools)
    );
    assert!(
        !listener
            .endpoint
            .subscribed_changes()
            .includes(&Change::Prompts)
    );
    let mut ended = session;
    ended.endpoint.shutdown(Time::ZERO);
    registry.replace("session", ended.endpoint.subscribed_changes());
    assert_eq!(concerned(&registry, &Change::Prompts), Vec::<&str>::new());
    assert_eq!(registry.len(), 1);
}
