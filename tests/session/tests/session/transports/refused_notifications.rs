//! Notifications that are refused (`basic/transports`, "Sending Messages to the Server").

use mcp_exact_tests_session::*;

/// Method of the notification of changed roots.
const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

/// Creates a notification with this method and without params.
fn notification(method: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": method })
}

/// Creates a server over Streamable HTTP.
fn new_endpoint(config: ServerConfig) -> ServerEndpoint<()> {
    let settings = config.build().expect("a configuration");
    ServerEndpoint::new(settings, Binding::StreamableHttp, Time::ZERO)
}

/// Posts a message; returns the HTTP status of its answer.
fn status(server: &mut ServerEndpoint<()>, message: &Value) -> u16 {
    let stream = server.open(StreamKind::Post).expect("a stream");
    let text = message.to_string();
    let received = server.receive(stream, text.as_bytes(), FrameContext::new(()), Time::ZERO);
    received.expect("open");
    match server.poll_transmit_on(stream) {
        Some((Transmit::Status { status, .. }, _)) => status,
        Some((
            Transmit::Frame {
                http,
                is_last: true,
                ..
            },
            _,
        )) => http.status.expect("a status"),
        other => panic!("{other:?}"),
    }
}

/// Creates a server over Streamable HTTP in an initialized session.
fn negotiated_endpoint(config: ServerConfig, revision: &str) -> ServerEndpoint<()> {
    let mut server = new_endpoint(config);
    let capabilities = json!({ "roots": { "listChanged": true } });
    let stream = server.open(StreamKind::Post).expect("a stream");
    let text = initialize(revision, capabilities).to_string();
    let received = server.receive(stream, text.as_bytes(), FrameContext::new(()), Time::ZERO);
    received.expect("open");
    server.poll_transmit_on(stream).expect("a result");
    assert_eq!(
        status(&mut server, &notification("notifications/initialized")),
        202
    );
    while server.poll_event().is_some() {}
    server
}

/// A notification before `initialize` gets status 400: "If the server cannot accept the input, it MUST return an HTTP
/// error status code (e.g., 400 Bad Request)."
#[test]
fn notification_before_initialize_gets_400() {
    for revision in SESSION_REVISIONS {
        for method in [
            ROOTS_CHANGED,
            "notifications/initialized",
            "notifications/progress",
        ] {
            let mut server = new_endpoint(server_config(&[revision]));
            assert_eq!(
                status(&mut server, &notification(method)),
                400,
                "{revision} {method}"
            );
        }
    }
}

/// A posted notification that exceeds a limit gets an error status, so that the client can send the notification again
/// later.
#[test]
fn excess_notification_gets_error_status() {
    for revision in SESSION_REVISIONS {
        let mut config = server_config(&[revision]);
        config.limits.notifications_per_second = 1;
        let mut server = negotiated_endpoint(config, revision);
        assert_eq!(status(&mut server, &notification(ROOTS_CHANGED)), 202);
        assert_eq!(status(&mut server, &notification(ROOTS_CHANGED)), 429);
        let events: Vec<_> = std::iter::from_fn(|| server.poll_event()).collect();
        assert!(
            matches!(
                events[..],
                [
                    ServerEvent::Notification(_),
                    ServerEvent::Violation(Violation::Limit(Limit::Notifications)),
                ]
            ),
            "{events:?}"
        );
    }
}

/// "If the input consists solely of (any number of) JSON-RPC responses or notifications" (2025-03-26): a batch that
/// contains only refused notifications gets an error status.
#[test]
fn batch_of_refused_notifications_is_refused() {
    let mut config = server_config(&["2025-03-26"]);
    config.limits.notifications_per_second = 1;
    let mut server = negotiated_endpoint(config, "2025-03-26");
    assert_eq!(
        status(&mut server, &json!([notification(ROOTS_CHANGED)])),
        202
    );
    assert_eq!(
        status(
            &mut server,
            &json!([notification(ROOTS_CHANGED), notification(ROOTS_CHANGED)])
        ),
        429
    );
}

/// Malformed messages and oversized responses get an HTTP error status.
#[test]
fn discarded_message_gets_error_status() {
    let long = "x".repeat(10_000);
    for revision in SESSION_REVISIONS {
        for (message, expected) in [
            (json!({ "jsonrpc": "2.0", "id": 1, "result": 5 }), 400),
            (
                json!({ "jsonrpc": "2.0", "method": "notifications/x", "params": [] }),
                400,
            ),
            (
                json!({ "jsonrpc": "2.0", "id": 1, "result": { "x": long } }),
                413,
            ),
        ] {
            let mut config = server_config(&[revision]);
            config.limits.message_bytes = 10_000;
            let mut server = negotiated_endpoint(config, revision);
            assert_eq!(status(&mut server, &message), expected, "{revision}");
        }
    }
    let mut server = negotiated_endpoint(server_config(&["2025-03-26"]), "2025-03-26");
    let batch = json!([notification(ROOTS_CHANGED), { "jsonrpc": "2.0", "id": 1, "result": 5 }]);
    assert_eq!(status(&mut server, &batch), 400);
}

/// A valid notification with an unknown method gets status 202.
#[test]
fn unknown_notification_gets_202() {
    for revision in SESSION_REVISIONS {
        let mut server = negotiated_endpoint(server_config(&[revision]), revision);
        for method in [
            "notifications/unknown",
            "notifications/message",
            "tools/call",
        ] {
            assert_eq!(
                status(&mut server, &notification(method)),
                202,
                "{revision} {method}"
            );
        }
    }
}

/// On a duplex stream, a refused notification is not answered, and the violation is reported to the application.
#[test]
fn dropped_notification_is_reported() {
    for revision in handshake_revisions() {
        let mut server = RawServer::new(server_config(&[revision]));
        assert!(server.send(&notification(ROOTS_CHANGED)).is_empty());
        assert_eq!(
            server.violations(),
            [Violation::BeforeInitialize(ROOTS_CHANGED.to_owned())]
        );
    }
    let mut server = discover_peers::server();
    assert!(server.send(&notification(ROOTS_CHANGED)).is_empty());
    assert_eq!(
        server.violations(),
        [Violation::Method(ROOTS_CHANGED.to_owned())]
    );
}
