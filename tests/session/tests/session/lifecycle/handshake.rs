//! The handshake: the messages that are allowed in each state, and the answers to messages that are not allowed
//! (`basic/lifecycle`, up to 2025-11-25).

use mcp_exact_tests_session::*;

/// Returns the configuration of a server that offers all revisions with a handshake.
fn config() -> ServerConfig {
    server_config(&["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"])
}

/// A server answers `initialize` with the requested revision if it supports that revision.
#[test]
fn server_confirms_requested_revision() {
    for revision in handshake_revisions() {
        let mut server = RawServer::new(config());
        let answers = server.send(&initialize(revision, json!({})));
        assert_eq!(answers[0]["id"], "init");
        assert_eq!(answers[0]["result"]["protocolVersion"], revision);
        assert!(
            matches!(&server.events()[..], [ServerEvent::Negotiated(agreed)]
            if agreed.revision.as_str() == revision)
        );
    }
}

/// A server answers an `initialize` request for an unknown revision with the newest revision that it supports.
#[test]
fn unknown_revision_gets_alternative() {
    for requested in ["1900-01-01", "3000-01-01", "1.0.0", "", "draft"] {
        let mut server = RawServer::new(config());
        let answers = server.send(&initialize(requested, json!({})));
        assert_eq!(
            answers[0]["result"]["protocolVersion"], "2025-11-25",
            "{requested}"
        );
    }
}

/// A server answers an `initialize` request for a revision without handshake with its newest revision that has a
/// handshake.
#[test]
fn alternative_revision_has_a_handshake() {
    let all = revisions_newest_first();
    let mut server = RawServer::new(server_config(&all));
    let answers = server.send(&initialize("2026-07-28", json!({})));
    assert_eq!(
        answers[0]["result"]["protocolVersion"],
        newest_of_lifecycle(Lifecycle::Initialize)
    );
}

/// A server that offers only 2026-07-28 refuses `initialize`.
#[test]
fn discover_server_refuses_initialize() {
    let mut server = RawServer::new(server_config(&discover_revisions()));
    let answers = server.send(&initialize("2025-11-25", json!({})));
    assert_eq!(answers[0]["error"]["code"], -32022);
    assert_eq!(
        answers[0]["error"]["data"]["supported"],
        json!(discover_revisions())
    );
    assert_eq!(answers[0]["error"]["data"]["requested"], "2025-11-25");
}

/// Before `initialize`, a server refuses every request except `ping`.
#[test]
fn requests_before_initialize_are_refused() {
    let mut server = RawServer::new(config());
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(server.send(&list)[0]["error"]["code"], -32600);
    let unknown = json!({ "jsonrpc": "2.0", "id": 2, "method": "server/discover" });
    assert_eq!(server.send(&unknown)[0]["error"]["code"], -32601);
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" });
    assert_eq!(server.send(&ping)[0]["result"], json!({}));
    let violations = server.violations();
    assert_eq!(violations.len(), 2, "{violations:?}");
    // It can still be initialized.
    let answers = server.send(&initialize("2025-06-18", json!({})));
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
}

/// A second `initialize` in a session is refused, and the session continues.
#[test]
fn second_initialize_is_refused() {
    let mut server = RawServer::with_session(config(), "2025-06-18", json!({}));
    let answers = server.send(&initialize("2025-11-25", json!({})));
    assert_eq!(answers[0]["error"]["code"], -32600);
    assert_eq!(server.violations(), [Violation::RepeatedInitialize]);
    let ping = json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" });
    assert_eq!(server.send(&ping)[0]["result"], json!({}));
    assert_eq!(
        server.endpoint.session_info().map(|a| a.revision.as_str()),
        Some("2025-06-18")
    );
}

/// After an invalid `initialize` was refused, a valid one starts the session.
#[test]
fn refused_initialize_can_be_repeated() {
    for params in [
        json!(null),
        json!({}),
        json!({ "protocolVersion": 5, "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } }),
        json!({ "protocolVersion": "2025-06-18", "clientInfo": { "name": "c", "version": "1" } }),
        json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c" } }),
    ] {
        let mut server = RawServer::new(config());
        let mut message = initialize("2025-06-18", json!({}));
        match &params {
            Value::Null => drop(message.as_object_mut().map(|m| m.remove("params"))),
            params => message["params"] = params.clone(),
        }
        assert_eq!(
            server.send(&message)[0]["error"]["code"],
            -32602,
            "{params}"
        );
        let answers = server.send(&initialize("2025-06-18", json!({})));
        assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    }
}

#[test]
fn initialize_in_batch_is_refused() {
    let mut server = RawServer::new(config());
    let answers = server.send(&json!([initialize("2025-03-26", json!({}))]));
    assert_eq!(answers[0]["error"]["code"], -32600);
    let mut server = RawServer::with_session(config(), "2025-03-26", json!({}));
    let answers = server.send(&json!([initialize("2025-03-26", json!({}))]));
    assert_eq!(answers[0][0]["error"]["code"], -32600);
}

#[test]
fn client_sends_initialized() {
    for revision in handshake_revisions() {
        let mut client = RawClient::new(client_config(&[revision]));
        let first = client.take_messages();
        assert_eq!(first.len(), 1);
        assert_eq!(first[0]["method"], "initialize");
        let answer = json!({ "jsonrpc": "2.0", "id": first[0]["id"], "result": {
            "protocolVersion": revision, "capabilities": {},
            "serverInfo": { "name": "s", "version": "1" },
        } });
        let next = client.send(&answer);
        assert_eq!(
            next,
            [json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })]
        );
    }
}

/// A client refuses to send a request before it has received the result of `initialize`.
#[test]
fn client_waits_for_initialize_result() {
    let mut client = RawClient::new(client_config(&["2025-11-25"]));
    let options = CallOptions::default();
    let sent = client
        .endpoint
        .request("tools/list", None, options, client.now);
    assert_eq!(sent, Err(SendError::NotReady));
    assert_eq!(client.take_messages().len(), 1);
}

/// Input requests of a server wait until the server has received `notifications/initialized`.
#[test]
fn server_waits_for_initialized() {
    let mut server = RawServer::new(config());
    server.send(&initialize("2025-11-25", json!({ "sampling": {} })));
    // A request that races `initialized` is served, and what it asks waits.
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } });
    assert!(server.send(&call).is_empty());
    let request = server.take_request();
    let message = json!({ "role": "user", "content": { "type": "text", "text": "?" } });
    let params = to_object(json!({ "messages": [message], "maxTokens": 5 }));
    let asks = vec![(
        "q".to_owned(),
        InputRequest::new("sampling/createMessage", Some(params)),
    )];
    let reply = Reply::InputRequired {
        requests: asks,
        state: None,
    };
    assert_eq!(
        server.endpoint.reply(request.key, reply, server.now),
        Ok(SendOutcome::Queued)
    );
    assert!(
        server.take_messages().is_empty(),
        "held until `initialized`"
    );
    server
        .endpoint
        .ping(RequestTimeout::default(), server.now)
        .expect("a ping may go");
    server
        .endpoint
        .send_log(Scope::Peer, Level::Error, None, json!("x"))
        .expect("a log may go");
    let changed = server
        .endpoint
        .notify(Scope::Peer, "notifications/tools/list_changed", None);
    assert_eq!(changed, Err(SendError::NotReady));
    let methods: Vec<Value> = server
        .take_messages()
        .into_iter()
        .map(|m| m["method"].clone())
        .collect();
    assert_eq!(methods, ["ping", "notifications/message"]);
    let released = server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(released[0]["method"], "sampling/createMessage");
}

/// A client whose `initialize` times out fails without sending a cancellation.
#[test]
fn initialize_is_never_cancelled() {
    let mut client = RawClient::new(client_config(&["2025-11-25"]));
    client.take_messages();
    let deadline = client
        .endpoint
        .poll_timeout()
        .expect("`initialize` does not wait for ever");
    client.endpoint.handle_timeout(deadline);
    assert!(client.take_messages().is_empty(), "no `cancelled`");
    let events = client.events();
    assert!(
        matches!(
            &events[..],
            [
                ClientEvent::Failed(NegotiationError::TimedOut),
                ClientEvent::Closed
            ]
        ),
        "{events:?}"
    );
}

/// If a server refuses `initialize` and lists its revisions, the client sends `initialize` once more with a listed
/// revision.
#[test]
fn client_retries_with_a_supported_revision() {
    let mut client = RawClient::new(client_config(&["2025-11-25", "2024-11-05"]));
    let first = client.take_messages().remove(0);
    let refusal = json!({ "jsonrpc": "2.0", "id": first["id"], "error": {
        "code": -32602, "message": "Unsupported protocol version",
        "data": { "supported": ["2024-11-05"], "requested": "2025-11-25" },
    } });
    let next = client.send(&refusal);
    assert_eq!(next[0]["params"]["protocolVersion"], "2024-11-05");
    // Once: the same refusal again is an end.
    let refusal = json!({ "jsonrpc": "2.0", "id": next[0]["id"], "error": refusal["error"] });
    client.send(&refusal);
    let events = client.events();
    assert!(
        matches!(&events[0], ClientEvent::Failed(NegotiationError::NoCommonRevision { supported, .. })
        if supported == &["2024-11-05"]),
        "{events:?}"
    );
}

/// The negotiation fails if the result of `initialize` is invalid.
#[test]
fn invalid_initialize_result_fails_negotiation() {
    for result in [
        json!({}),
        json!({ "protocolVersion": 1 }),
        json!({ "protocolVersion": "2025-11-25", "capabilities": {} }),
    ] {
        let mut client = RawClient::new(client_config(&["2025-11-25"]));
        let first = client.take_messages().remove(0);
        client.send(&json!({ "jsonrpc": "2.0", "id": first["id"], "result": result }));
        let events = client.events();
        assert!(
            matches!(
                &events[0],
                ClientEvent::Failed(NegotiationError::InvalidAnswer(_))
            ),
            "{events:?}"
        );
    }
}

/// A server endpoint that is created from a saved `SessionInfo` continues the session without a handshake and with
/// unused ids.
#[test]
fn cached_negotiation_resumes_the_session() {
    let mut server = RawServer::with_session(config(), "2025-06-18", json!({ "roots": {} }));
    let timeout = RequestTimeout::default();
    let pinged = server.endpoint.ping(timeout, server.now);
    pinged.expect("sent");
    let used = server.take_messages();
    let agreed = server.endpoint.session_info().expect("agreed").clone();
    let restored: SessionInfo = agreed.to_string().parse().expect("its own text");
    assert_eq!(restored, agreed);
    let now = Time::ZERO;
    let last_id = used[0]["id"].as_u64().expect("a number");
    let settings = config().build().expect("a configuration");
    let endpoint = ServerEndpoint::resume(
        settings,
        Binding::Duplex,
        Snapshot::new(restored, last_id),
        now,
    );
    let endpoint = endpoint.expect("offered");
    let mut server = RawServer::from_endpoint(endpoint, now);
    server.endpoint.ping(timeout, now).expect("sent");
    let more = server.take_messages();
    assert_eq!(more[0]["id"], last_id + 1, "no id is used twice");
    // An answer to a ping of before is late, and no answer to nothing.
    let late = json!({ "jsonrpc": "2.0", "id": used[0]["id"], "result": {} });
    assert!(server.send(&late).is_empty());
    assert!(server.endpoint.poll_event().is_none());
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert!(server.send(&call).is_empty());
    assert_eq!(server.take_request().revision().as_str(), "2025-06-18");
    for bad in [
        "",
        "[]",
        "{}",
        r#"{"revision":"2025-06-18"}"#,
        r#"{"revision":"x","capabilities":{}}"#,
    ] {
        assert!(bad.parse::<SessionInfo>().is_err(), "{bad}");
    }
}

/// A resumed client endpoint uses none of the ids that it used before.
#[test]
fn resumed_client_uses_new_ids() {
    let offer = ["2025-11-25"];
    let mut pair = Pair::new(client_config(&offer), server_config(&offer));
    pair.run_until_idle();
    let used = pair.client.last_id();
    let agreed = pair.client.session_info().expect("agreed").to_string();
    let agreed: SessionInfo = agreed.parse().expect("its own text");
    let config = client_config(&offer).build().expect("a configuration");
    let client = ClientEndpoint::resume(
        config,
        Binding::Duplex,
        Snapshot::new(agreed, used),
        Time::ZERO,
    );
    let mut client = client.expect("offered");
    let sent = client.request("ping", None, CallOptions::default(), Time::ZERO);
    sent.expect("it leaves");
    let mut frame = Vec::new();
    client.poll_transmit(&mut frame).expect("a frame");
    let frame: Value = serde_json::from_slice(&frame).expect("JSON");
    assert!(used > 0);
    assert_eq!(frame["id"], used + 1);
}

/// An offer without revisions, and an offer with an unknown revision, are refused.
#[test]
fn invalid_configurations_are_refused() {
    let nothing = ServerConfig {
        offer: Offer {
            revisions: Vec::new(),
            oldest: None,
        },
        ..config()
    };
    assert!(matches!(nothing.build(), Err(ConfigError::NoRevision)));
    assert_eq!(
        Offer::new(["x"]),
        Err(ConfigError::UnknownRevision("x".into()))
    );
}

/// An endpoint without requests in flight closes at the end of its input.
#[test]
fn end_of_input_closes_endpoint() {
    let mut server = RawServer::with_session(config(), "2025-06-18", json!({}));
    server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let key = server.take_request().key;
    let reply = server
        .endpoint
        .reply(key, PeerError::internal("x"), server.now);
    reply.expect("it waits");
    server
        .endpoint
        .handle_close(StreamId::DUPLEX, StreamEnd::Clean, server.now);
    let events = server.events();
    assert!(
        matches!(events.last(), Some(ServerEvent::Closed)),
        "{events:?}"
    );
    // What was answered before is still written.
    assert_eq!(server.take_messages().len(), 1);
    let received =
        server
            .endpoint
            .receive(StreamId::DUPLEX, b"{}", FrameContext::new(()), server.now);
    assert_eq!(received, Err(ReceiveError::Closed));
}
