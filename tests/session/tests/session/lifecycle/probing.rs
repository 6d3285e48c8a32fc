//! A client that supports both lifecycles detects the lifecycle of its server (2026-07-28: `basic/versioning`,
//! `basic/transports/stdio`, "Backward Compatibility"), for all responses of real servers.

use mcp_exact_tests_session::*;

/// Creates a client that offers both lifecycles; returns the client and its probe (`server/discover`).
fn probing_client() -> (RawClient, Value) {
    let all = revisions_newest_first();
    let mut client = RawClient::new(client_config(&all));
    let probe = client.take_messages().remove(0);
    assert_eq!(probe["method"], "server/discover");
    check_message(newest_of_lifecycle(Lifecycle::Discover), true, None, &probe);
    (client, probe)
}

/// Creates an error response to the probe.
fn error_response(probe: &Value, code: i64, data: Value) -> Value {
    let error = json!({ "code": code, "message": "m", "data": data });
    json!({ "jsonrpc": "2.0", "id": probe["id"], "error": error })
}

/// Creates a response to the probe that lists the revisions `supported`.
fn discover_result(probe: &Value, supported: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": probe["id"], "result": {
        "resultType": "complete", "supportedVersions": supported, "capabilities": {},
        "ttlMs": 0, "cacheScope": "private",
    } })
}

/// After an error response to its probe, a client sends `initialize`, whatever the error code is.
#[test]
fn any_probe_error_leads_to_initialize() {
    // -32602 of Python 1.9 and later, -32601 of TypeScript 1, and whatever else.
    for code in [-32601, -32602, -32600, -32603, -32000, -32001, 0, 1, -32700] {
        let (mut client, probe) = probing_client();
        let next = client.send(&error_response(&probe, code, json!(null)));
        assert_eq!(next[0]["method"], "initialize", "{code}");
        assert_eq!(
            next[0]["params"]["protocolVersion"],
            newest_of_lifecycle(Lifecycle::Initialize)
        );
    }
}

/// If the server does not answer the probe in time, the client sends `initialize`.
#[test]
fn silent_probe_leads_to_initialize() {
    let (mut client, probe) = probing_client();
    let deadline = client
        .endpoint
        .poll_timeout()
        .expect("a probe does not wait for ever");
    client.endpoint.handle_timeout(deadline);
    let next = client.take_messages();
    assert_eq!(next.len(), 1, "a probe is not cancelled: {next:?}");
    assert_eq!(next[0]["method"], "initialize");
    // What comes late is ignored.
    assert!(
        client
            .send(&error_response(&probe, -32601, json!(null)))
            .is_empty()
    );
    assert!(client.events().is_empty());
}

/// A client that offers both lifecycles waits for the probe timeout, a client that offers no handshake for the longer
/// handshake timeout.
#[test]
fn client_without_fallback_waits_longer() {
    let wait = |revisions: &[&str]| {
        let config = client_config(revisions);
        let waits = (config.probe_timeout, config.handshake_timeout);
        let client = RawClient::new(config);
        let deadline = client.endpoint.poll_timeout().expect("a deadline");
        (deadline.saturating_since(client.now), waits)
    };
    let (both, (probe, handshake)) = wait(&["2026-07-28", "2025-11-25"]);
    assert!(probe < handshake);
    assert_eq!(both, probe);
    assert_eq!(wait(&["2026-07-28"]).0, handshake);
}

/// After an invalid result of the probe, the client sends `initialize`.
#[test]
fn invalid_discovery_leads_to_initialize() {
    let (mut client, probe) = probing_client();
    let next = client.send(&json!({ "jsonrpc": "2.0", "id": probe["id"], "result": {} }));
    assert_eq!(next[0]["method"], "initialize");
}

/// The negotiation fails without `initialize` if the server's version error lists only revisions that the client does
/// not offer.
#[test]
fn listed_revisions_prevent_fallback() {
    let (mut client, probe) = probing_client();
    client.send(&error_response(
        &probe,
        -32022,
        json!({ "supported": ["3000-01-01"], "requested": "x" }),
    ));
    let events = client.events();
    assert!(
        matches!(&events[0], ClientEvent::Failed(NegotiationError::NoCommonRevision { supported, .. })
        if supported == &["3000-01-01"]),
        "{events:?}"
    );
}

/// "The client SHOULD select a mutually supported version from the `supported` list and retry the request": if the list
/// contains only the refused revision, the client tries this revision once more. A second refusal ends the negotiation.
#[test]
fn listed_refused_revision_is_retried_once() {
    let (mut client, probe) = probing_client();
    let data = json!({ "supported": ["2026-07-28"], "requested": "2026-07-28" });
    let next = client.send(&error_response(&probe, -32022, data.clone()));
    assert_eq!(next[0]["method"], "server/discover");
    assert!(
        client
            .send(&error_response(&next[0], -32022, data))
            .is_empty()
    );
    assert!(matches!(
        client.events()[0],
        ClientEvent::Failed(NegotiationError::NoCommonRevision { .. })
    ));
}

/// If the version error lists a revision with a handshake that the client offers, the client sends `initialize` with
/// this revision.
#[test]
fn version_error_selects_common_handshake_revision() {
    for supported in [json!(["2025-03-26"]), json!(["3000-01-01", "2025-03-26"])] {
        let (mut client, probe) = probing_client();
        let next = client.send(&error_response(
            &probe,
            -32022,
            json!({ "supported": supported, "requested": "x" }),
        ));
        assert_eq!(next[0]["method"], "initialize");
        assert_eq!(next[0]["params"]["protocolVersion"], "2025-03-26");
        let (mut client, probe) = self::probing_client();
        let next = client.send(&discover_result(&probe, supported.clone()));
        assert_eq!(next[0]["params"]["protocolVersion"], "2025-03-26");
    }
}

/// An error code that only servers without handshake send (-32020, -32021) ends the negotiation without `initialize`.
#[test]
fn other_discover_errors_prevent_fallback() {
    for code in [-32020, -32021] {
        let (mut client, probe) = probing_client();
        assert!(
            client
                .send(&error_response(
                    &probe,
                    code,
                    json!({ "requiredCapabilities": {} })
                ))
                .is_empty()
        );
        let events = client.events();
        assert!(
            matches!(&events[0], ClientEvent::Failed(NegotiationError::Refused(e))
            if e.code() == Some(code)),
            "{events:?}"
        );
    }
}

/// The result of the probe ends the negotiation with a revision that both peers support.
#[test]
fn probe_negotiates_common_revision() {
    let (mut client, probe) = probing_client();
    assert!(
        client
            .send(&discover_result(
                &probe,
                json!(["3000-01-01", "2026-07-28"])
            ))
            .is_empty()
    );
    let events = client.events();
    assert!(
        matches!(&events[..], [ClientEvent::Negotiated(agreed, verdict)]
        if agreed.revision.as_str() == "2026-07-28" && verdict.lifecycle == Lifecycle::Discover),
        "{events:?}"
    );
}

/// If a server answers `initialize` with a version error that lists only a revision without handshake, the client sends
/// `server/discover` again.
#[test]
fn slow_server_is_probed_again() {
    let (mut client, _) = probing_client();
    let deadline = client.endpoint.poll_timeout().expect("a deadline");
    client.endpoint.handle_timeout(deadline);
    let initialize = client.take_messages().remove(0);
    let data = json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" });
    let next = client.send(&error_response(&initialize, -32022, data.clone()));
    assert_eq!(next[0]["method"], "server/discover");
    client.send(&discover_result(&next[0], json!(["2026-07-28"])));
    assert!(matches!(client.events()[..], [ClientEvent::Negotiated(..)]));
}

/// If the second probe also has no response and `initialize` is refused again, the negotiation fails.
#[test]
fn silent_server_is_probed_twice() {
    let (mut client, _) = probing_client();
    let data = json!({ "supported": ["2026-07-28"], "requested": "2025-11-25" });
    for round in 0..2 {
        let deadline = client.endpoint.poll_timeout().expect("a deadline");
        client.endpoint.handle_timeout(deadline);
        let initialize = client.take_messages().remove(0);
        assert_eq!(initialize["method"], "initialize");
        let next = client.send(&error_response(&initialize, -32022, data.clone()));
        assert_eq!(next.len(), usize::from(round == 0), "{next:?}");
    }
    assert!(matches!(
        client.events()[0],
        ClientEvent::Failed(NegotiationError::NoCommonRevision { .. })
    ));
}

/// If the server exits after the probe, the client requests one restart of the server and then sends `initialize`.
#[test]
fn server_exiting_after_probe_is_restarted() {
    for silent in [false, true] {
        let (mut client, _) = probing_client();
        if silent {
            let deadline = client.endpoint.poll_timeout().expect("a deadline");
            client.endpoint.handle_timeout(deadline);
            client.take_messages();
        }
        client
            .endpoint
            .handle_close(StreamId::DUPLEX, StreamEnd::Lost, client.now);
        assert!(matches!(client.events()[..], [ClientEvent::RestartServer]));
        assert!(client.take_messages().is_empty());
        client.endpoint.handle_restart(client.now);
        assert_eq!(client.take_messages()[0]["method"], "initialize");
        // Once: the next end is one.
        client
            .endpoint
            .handle_close(StreamId::DUPLEX, StreamEnd::Lost, client.now);
        let events = client.events();
        assert!(matches!(
            events[..],
            [
                ClientEvent::Failed(NegotiationError::Lost),
                ClientEvent::Closed
            ]
        ));
    }
}

/// A client with a cached negotiation sends no probe.
#[test]
fn cached_negotiation_avoids_the_probe() {
    let all = revisions_newest_first();
    let config = || client_config(&all).build().expect("a configuration");
    for (verdict, method) in [
        ("2025-06-18", "initialize"),
        ("2026-07-28", "server/discover"),
    ] {
        let verdict: CachedNegotiation = verdict.parse().expect("known");
        let endpoint = ClientEndpoint::new(config(), Binding::Duplex, Some(&verdict), Time::ZERO);
        let mut client = RawClient::from_endpoint(endpoint, Time::ZERO);
        assert_eq!(client.take_messages()[0]["method"], method);
    }
    // A verdict that fails is no verdict.
    let verdict: CachedNegotiation = "2025-06-18".parse().expect("known");
    let endpoint = ClientEndpoint::new(config(), Binding::Duplex, Some(&verdict), Time::ZERO);
    let mut client = RawClient::from_endpoint(endpoint, Time::ZERO);
    let initialize = client.take_messages().remove(0);
    let next = client.send(&error_response(
        &initialize,
        -32022,
        json!({ "supported": ["2026-07-28"], "requested": "x" }),
    ));
    assert_eq!(next[0]["method"], "server/discover");
}

/// The verdict says whether the probe was silent, so that only silence is worth remembering, and a client that starts with such a
/// verdict passes it on.
#[test]
fn silence_is_part_of_the_verdict() {
    let result = |initialize: &Value| {
        json!({ "jsonrpc": "2.0", "id": initialize["id"], "result": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": { "name": "s", "version": "1" },
        } })
    };
    let verdict = |client: &mut RawClient, initialize: &Value| {
        client.send(&result(initialize));
        let events = client.events().into_iter();
        let mut verdicts = events.filter_map(|event| match event {
            ClientEvent::Negotiated(_, verdict) => Some(verdict),
            _ => None,
        });
        verdicts.next().expect("a session")
    };
    // A server that answers the probe with an error costs no wait.
    let (mut client, probe) = probing_client();
    let initialize = client
        .send(&error_response(&probe, -32601, json!(null)))
        .remove(0);
    assert!(!verdict(&mut client, &initialize).probe_was_silent);
    // A server that is silent does.
    let (mut client, _) = probing_client();
    let deadline = client.endpoint.poll_timeout().expect("a deadline");
    client.endpoint.handle_timeout(deadline);
    let initialize = client.take_messages().remove(0);
    let known = verdict(&mut client, &initialize);
    assert!(known.probe_was_silent);
    let config = client_config(&revisions_newest_first())
        .build()
        .expect("a configuration");
    let endpoint = ClientEndpoint::new(config, Binding::Duplex, Some(&known), Time::ZERO);
    let mut client = RawClient::from_endpoint(endpoint, Time::ZERO);
    let initialize = client.take_messages().remove(0);
    assert_eq!(initialize["method"], "initialize");
    assert!(verdict(&mut client, &initialize).probe_was_silent);
}

/// A remembered lifecycle is never trusted: whatever error `initialize` gets, the server is probed, and then asked again.
#[test]
fn remembered_lifecycle_is_not_trusted() {
    let all = revisions_newest_first();
    for code in [-32601, -32602, -32600, -32000, -32022] {
        let config = client_config(&all).build().expect("a configuration");
        let known: CachedNegotiation = "2025-06-18".parse().expect("known");
        let endpoint = ClientEndpoint::new(config, Binding::Duplex, Some(&known), Time::ZERO);
        let mut client = RawClient::from_endpoint(endpoint, Time::ZERO);
        let initialize = client.take_messages().remove(0);
        let probe = client
            .send(&error_response(&initialize, code, json!(null)))
            .remove(0);
        assert_eq!(probe["method"], "server/discover", "{code}");
        client.send(&discover_result(&probe, json!(["2026-07-28"])));
        let session = client.endpoint.session_info().expect("a session");
        assert_eq!(session.revision.as_str(), "2026-07-28", "{code}");
    }
}

/// If a server does not know `server/discover` and the client offers no handshake, the error says that an older
/// revision must be offered.
#[test]
fn discover_client_reports_old_server() {
    let mut client = RawClient::new(client_config(&["2026-07-28"]));
    let probe = client.take_messages().remove(0);
    client.send(&error_response(&probe, -32601, json!(null)));
    let events = client.events();
    assert!(
        matches!(&events[0], ClientEvent::Failed(e @ NegotiationError::NoHandshake { .. })
        if e.to_string().contains("offer an older revision")),
        "{events:?}"
    );
}

/// Creates a client over HTTP that has sent its probe; returns the client and the stream of the probe's POST.
fn client_over_http() -> (ClientEndpoint, StreamId) {
    let all = revisions_newest_first();
    let config = client_config(&all).build().expect("a configuration");
    let mut client = ClientEndpoint::new(config, Binding::StreamableHttp, None, Time::ZERO);
    let mut out = Vec::new();
    let Some(Transmit::Frame {
        stream: on, http, ..
    }) = client.poll_transmit(&mut out)
    else {
        panic!("no probe");
    };
    assert_eq!(
        http.revision.map(Revision::as_str),
        Some(newest_of_lifecycle(Lifecycle::Discover))
    );
    assert_eq!(http.method.as_deref(), Some("server/discover"));
    (client, on)
}

/// Returns the reaction of a client to this HTTP status of its probe: the method that it sends next, or its failure.
fn next_step_after_status(status: u16, body: &str) -> String {
    let (mut client, on) = client_over_http();
    let failure = TransportFailure::Status {
        code: status,
        body: body.as_bytes().to_vec(),
    };
    client.handle_failure(on, failure, Time::ZERO);
    let mut out = Vec::new();
    while let Some(transmit) = client.poll_transmit(&mut out) {
        if let Transmit::Frame { .. } = transmit {
            let message: Value = serde_json::from_slice(&out).expect("JSON");
            return message["method"].as_str().unwrap_or_default().to_owned();
        }
    }
    match client.poll_event() {
        Some(ClientEvent::Failed(error)) => format!("failed: {error}"),
        other => format!("{other:?}"),
    }
}

/// After an HTTP error status, the client sends `initialize` unless the body contains an error that only servers
/// without handshake send.
#[test]
fn http_fallback_depends_on_error_body() {
    // Python 1.x and TypeScript 1.x answer 400 with codes of their own.
    let old = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Missing session ID"}}"#;
    for (status, body) in [
        (400, ""),
        (400, old),
        (404, "not found"),
        (405, ""),
        (406, "{}"),
        (422, "[]"),
    ] {
        assert_eq!(
            next_step_after_status(status, body),
            "initialize",
            "{status} {body}"
        );
    }
    let unsupported = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"m","data":{"supported":["2025-06-18"],"requested":"x"}}}"#;
    assert_eq!(next_step_after_status(400, unsupported), "initialize");
    for status in [401, 407] {
        let ended = next_step_after_status(status, "");
        assert!(
            ended.starts_with("failed: the server refuses"),
            "{status}: {ended}"
        );
    }
}

/// If both the probe and `initialize` get an HTTP error status, the client requests the fallback to HTTP+SSE.
#[test]
fn http_sse_is_the_last_fallback() {
    let (mut client, on) = client_over_http();
    client.handle_failure(
        on,
        TransportFailure::Status {
            code: 405,
            body: Vec::new(),
        },
        Time::ZERO,
    );
    let mut out = Vec::new();
    let Some(Transmit::Frame { stream: on, .. }) = client.poll_transmit(&mut out) else {
        panic!("no `initialize`");
    };
    client.handle_failure(
        on,
        TransportFailure::Status {
            code: 404,
            body: Vec::new(),
        },
        Time::ZERO,
    );
    assert!(matches!(client.poll_event(), Some(ClientEvent::UseHttpSse)));
}

/// If a server exits after a probe and cannot be restarted, the negotiation fails.
#[test]
fn failed_restart_ends_negotiation() {
    let settings = client_config(&revisions_newest_first())
        .build()
        .expect("a configuration");
    let mut client = ClientEndpoint::new(settings, Binding::Duplex, None, Time::ZERO);
    client.poll_transmit(&mut Vec::new()).expect("a probe");
    let exited = || TransportFailure::Exited;
    client.handle_failure(StreamId::DUPLEX, exited(), Time::ZERO);
    assert!(matches!(
        client.poll_event(),
        Some(ClientEvent::RestartServer)
    ));
    client.handle_failure(StreamId::DUPLEX, exited(), Time::ZERO);
    let events: Vec<ClientEvent> = std::iter::from_fn(|| client.poll_event()).collect();
    assert!(
        matches!(
            events[..],
            [
                ClientEvent::Failed(NegotiationError::Lost),
                ClientEvent::Closed
            ]
        ),
        "{events:?}"
    );
    assert!(client.is_closed());
}
