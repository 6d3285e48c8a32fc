//! Resistance to hostile peers: peers that do not read, that disconnect during requests, or that circumvent the rules
//! of one transport by the use of another.
//!
//! The tests use small limits, so that a peer reaches the limits quickly.

use mcp_exact_tests_session::*;

/// Latest revision with a handshake.
const LAST_HANDSHAKE_REVISION: &str = "2025-11-25";

/// Creates a server over Streamable HTTP that offers the revisions `offered`, in an initialized session of `revision`.
fn server_in_session(revision: &str, offered: &[&str]) -> ServerEndpoint<()> {
    let settings = server_config(offered).build().expect("a configuration");
    let mut server = ServerEndpoint::new(settings, Binding::StreamableHttp, Time::ZERO);
    let capabilities = json!({ "roots": {}, "elicitation": { "form": {}, "url": {} } });
    post(&mut server, &initialize(revision, capabilities));
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    post(&mut server, &ready);
    take_output(&mut server);
    events(&mut server);
    server
}

/// Posts a message; returns its stream.
fn post(server: &mut ServerEndpoint<()>, body: &Value) -> StreamId {
    let stream = server.open(StreamKind::Post).expect("a stream");
    let context = FrameContext::new(());
    let received = server.receive(stream, body.to_string().as_bytes(), context, Time::ZERO);
    received.expect("open");
    stream
}

/// Removes and returns the output, each item with the text of its frame.
fn take_output(server: &mut ServerEndpoint<()>) -> Vec<(Transmit, String)> {
    let mut sent = Vec::new();
    let mut bytes = Vec::new();
    while let Some(transmit) = server.poll_transmit(&mut bytes) {
        let text = String::from_utf8(std::mem::take(&mut bytes)).expect("UTF-8");
        sent.push((transmit, text));
    }
    sent
}

/// Removes and returns the events of the server.
fn events(server: &mut ServerEndpoint<()>) -> Vec<ServerEvent<()>> {
    std::iter::from_fn(|| server.poll_event()).collect()
}

/// Removes the pending events and returns the key of the last request among them.
fn key(server: &mut ServerEndpoint<()>) -> RequestKey {
    let requests = events(server).into_iter().filter_map(|event| match event {
        ServerEvent::Request(request) => Some(request.key),
        _ => None,
    });
    requests.last().expect("a request")
}

/// Creates a request in a session.
fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Creates a `subscriptions/listen` request with this filter.
fn listen(id: u64, filter: Value) -> Value {
    let params = json!({ "notifications": filter });
    request_of_revision(
        DISCOVER_REVISION,
        id,
        "subscriptions/listen",
        params,
        json!({}),
    )
}

/// "The server MAY send JSON-RPC requests and notifications before sending the JSON-RPC response" (2025-11-25,
/// `basic/transports`, "Sending Messages to the Server"): a client keeps its POST open when notifications or invalid
/// messages precede the response.
#[test]
fn client_post_takes_notifications() {
    for revision in SESSION_REVISIONS.into_iter().chain([DISCOVER_REVISION]) {
        let mut poster = HttpHarness::new(revision);
        let (key, on, _, sent) = poster.request("tools/call", json!({ "name": "x" }));
        let log = json!({ "level": "info", "data": 1 });
        let log = json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": log });
        poster.receive(on, &log);
        // What breaks a rule is no reason either.
        poster.receive(
            on,
            &json!({ "jsonrpc": "2.0", "method": "notifications/unknown" }),
        );
        poster.receive(on, &json!([]));
        // Some revisions answer the empty batch, by a POST of its own.
        assert_eq!(poster.client.poll_transmit_on(on), None, "{revision}");
        poster.client.poll_transmit(&mut Vec::new());
        let result = json!({ "content": [], "resultType": "complete" });
        poster.receive(
            on,
            &json!({ "jsonrpc": "2.0", "id": sent["id"], "result": result }),
        );
        let ended = poster.events().into_iter().any(|event| {
            matches!(event, ClientEvent::Completed(ended, Outcome::Result(_)) if ended == key)
        });
        assert!(ended, "{revision}");
    }
}

/// Batches exist only in 2025-03-26 (`basic`, "Batching"): a request of 2026-07-28 in such a batch is refused.
#[test]
fn batch_holds_no_stateless_request() {
    let offered = ["2025-03-26", DISCOVER_REVISION];
    let stateless = request_of_revision(DISCOVER_REVISION, 1, "tools/list", json!({}), json!({}));
    let mut server = server_in_session("2025-03-26", &offered);
    post(
        &mut server,
        &json!([stateless, request(2, "ping", json!({}))]),
    );
    let [(_, text)] = &take_output(&mut server)[..] else {
        panic!("one answer");
    };
    let answers: Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(answers[0]["error"]["code"], code::INVALID_REQUEST);
    assert_eq!(answers[1]["id"], 2);
    let told = events(&mut server);
    assert!(
        matches!(told[..], [ServerEvent::Violation(Violation::Batch(_))]),
        "{told:?}"
    );
    assert_eq!(server.usage(), Usage::default());
}

/// An HTTP+SSE client that posts without reading its events cannot exhaust memory: when the reserve of output bytes is
/// used up, its POSTs get status 503.
#[test]
fn unread_events_refuse_posts() {
    let mut config = server_config(&["2024-11-05"]);
    config.limits.queued = 8;
    config.limits.reserved_bytes = 1000;
    let settings = config.build().expect("a configuration");
    let mut server = ServerEndpoint::new(settings, Binding::HttpSse, Time::ZERO);
    let stream = server.open(StreamKind::Standalone).expect("a stream");
    let mut statuses = Vec::new();
    for id in 0..1000 {
        let on = post(&mut server, &request(id, "ping", json!({})));
        while let Some((transmit, _)) = server.poll_transmit_on(on) {
            if let Transmit::Status { status, .. } = transmit {
                statuses.push(status);
            }
        }
    }
    statuses.dedup();
    assert_eq!(statuses, [202, 503]);
    assert!(server.queued_bytes_on(stream) < 2000);
    take_output(&mut server);
    post(&mut server, &request(1, "ping", json!({})));
    let (accepted, _) = take_output(&mut server).swap_remove(0);
    assert!(matches!(accepted, Transmit::Status { status: 202, .. }));
}

/// Streams with unread responses count towards the limit of streams.
#[test]
fn unread_answers_count_as_streams() {
    let mut server = server_in_session(LAST_HANDSHAKE_REVISION, &[LAST_HANDSHAKE_REVISION]);
    let limit = server.settings().limits.streams;
    for id in 0..limit {
        post(&mut server, &request(id as u64, "ping", json!({})));
    }
    let refused = server.open(StreamKind::Standalone);
    assert_eq!(refused, Err(SendError::Limit(Limit::Streams)));
    // A few more POSTs come, and their requests are refused.
    let refused = std::iter::repeat_with(|| server.open(StreamKind::Post)).find(Result::is_err);
    assert_eq!(refused, Some(Err(SendError::Limit(Limit::Streams))));
    assert!(server.usage().streams <= limit + 16);
    take_output(&mut server);
    assert!(server.open(StreamKind::Post).is_ok());
}

/// When calls that wait for the user's answer use all streams, the user's answers are still accepted.
#[test]
fn answers_pass_when_streams_are_full() {
    let mut config = server_config(&[LAST_HANDSHAKE_REVISION]);
    config.limits.streams = 4;
    let mut posts = HttpServerHarness::new(
        config,
        LAST_HANDSHAKE_REVISION,
        json!({ "elicitation": {} }),
    );
    let standalone = posts.endpoint.open(StreamKind::Standalone);
    standalone.expect("a stream");
    let now = Time::ZERO;
    for id in 1..4 {
        let (_, key) = posts.serve(&tool_call(LAST_HANDSHAKE_REVISION, id, json!({})));
        let asks = posts
            .endpoint
            .reply(key, elicitations_by_name(&["a"], None), now);
        asks.expect("it may ask");
    }
    let sent = posts.take_output();
    let ids: Vec<&Value> = sent.iter().map(|(_, message)| &message["id"]).collect();
    assert_eq!(ids.len(), 3);
    let ping = json!({ "jsonrpc": "2.0", "id": 9, "method": "ping" });
    let (status, refusal) = posts.status_of_post(&[], &ping);
    assert_eq!(
        (status, &refusal["error"]["data"]["limit"]),
        (503, &json!("streams"))
    );
    for id in ids {
        let answer = json!({ "jsonrpc": "2.0", "id": id, "result": { "action": "decline" } });
        assert_eq!(posts.status_of_post(&[], &answer), (202, Value::Null));
    }
    let events = std::iter::from_fn(|| posts.endpoint.poll_event());
    let again = |event: &ServerEvent<()>| matches!(event, ServerEvent::Request(request) if request.retries == 1);
    assert_eq!(events.filter(again).count(), 3);
}

/// The number of changes that wait for a stream is limited by the client's subscriptions.
#[test]
fn unsubscribing_drops_waiting_changes() {
    let mut server = server_in_session(LAST_HANDSHAKE_REVISION, &[LAST_HANDSHAKE_REVISION]);
    for n in 0..3 {
        let uri = format!("file:///{n}");
        for method in ["resources/subscribe", "resources/unsubscribe"] {
            post(&mut server, &request(n, method, json!({ "uri": uri })));
            let key = key(&mut server);
            let sent = server.reply(key, to_result(json!({})), Time::ZERO);
            sent.expect("it waits");
            take_output(&mut server);
            server.publish(&Change::Resource(uri.clone()));
        }
    }
    assert!(!format!("{server:?}").contains("file:///"));
}

/// `subscribed_changes` contains each resource once, even if several subscriptions name the resource.
#[test]
fn subscribed_resources_are_listed_once() {
    let mut raw = RawServer::new(server_config(&[DISCOVER_REVISION]));
    raw.send(&listen(
        1,
        json!({ "resourceSubscriptions": ["b", "a", "b"] }),
    ));
    raw.send(&listen(
        2,
        json!({ "resourceSubscriptions": ["a", "c"], "toolsListChanged": true }),
    ));
    let interests = raw.endpoint.subscribed_changes();
    assert_eq!(interests.uris, ["a", "b", "c"]);
    assert!(interests.tools && !interests.prompts);
}

/// Every request ends exactly once, even if the server refuses its revision, is probed again, and disconnects.
#[test]
fn restart_ends_requests_in_flight() {
    let mut raw = RawClient::with_session(
        client_config(&[DISCOVER_REVISION, LAST_HANDSHAKE_REVISION]),
        DISCOVER_REVISION,
        json!({ "tools": {} }),
    );
    let keys = ["tools/list"; 2].map(|method| {
        let sent = raw
            .endpoint
            .request(method, None, CallOptions::default(), Time::ZERO);
        sent.expect("it leaves")
    });
    let refused = |id: &Value| {
        let data =
            json!({ "supported": [LAST_HANDSHAKE_REVISION], "requested": DISCOVER_REVISION });
        let error = json!({ "code": code::UNSUPPORTED_VERSION, "message": "no", "data": data });
        json!({ "jsonrpc": "2.0", "id": id, "error": error })
    };
    let calls = raw.take_messages();
    let initialize = raw.send(&refused(&calls[0]["id"]));
    assert_eq!(initialize[0]["method"], "initialize");
    let probe = raw.send(&refused(&initialize[0]["id"]));
    assert_eq!(probe[0]["method"], "server/discover");
    raw.endpoint
        .handle_close(StreamId::DUPLEX, StreamEnd::Lost, Time::ZERO);
    let ended = keys.map(|key| (key, Outcome::Lost));
    assert_eq!(raw.outcomes(), ended);
}

/// After the client has closed its input stream, server requests to the client fail immediately, so that the
/// application can reply to the client's requests.
#[test]
fn draining_server_requires_no_input() {
    let mut raw = RawServer::with_session(
        server_config(&[LAST_HANDSHAKE_REVISION]),
        LAST_HANDSHAKE_REVISION,
        json!({ "roots": {} }),
    );
    raw.send(&request(1, "tools/call", json!({ "name": "x" })));
    let key = raw.take_request().key;
    raw.endpoint
        .handle_close(StreamId::DUPLEX, StreamEnd::Clean, Time::ZERO);
    let reply = Reply::InputRequired {
        requests: vec![("r".to_owned(), InputRequest::new("roots/list", None))],
        state: None,
    };
    let sent = raw.endpoint.reply(key, reply, Time::ZERO);
    assert_eq!(sent, Err(SendError::NoStream));
    let sent = raw
        .endpoint
        .reply(key, PeerError::internal("no"), Time::ZERO);
    assert_eq!(sent, Ok(SendOutcome::Queued));
    assert_eq!(raw.take_messages().len(), 1);
    assert!(raw.endpoint.is_closed());
}

/// After the client has closed its input stream, the application is notified of the end of its subscriptions, while
/// other requests continue.
#[test]
fn draining_ends_subscriptions_first() {
    let mut raw = RawServer::new(server_config(&[DISCOVER_REVISION]));
    raw.send(&listen(1, json!({ "toolsListChanged": true })));
    raw.send(&request_of_revision(
        DISCOVER_REVISION,
        2,
        "tools/list",
        json!({}),
        json!({}),
    ));
    raw.events();
    raw.endpoint
        .handle_close(StreamId::DUPLEX, StreamEnd::Clean, Time::ZERO);
    let told = raw.events();
    assert!(
        matches!(told[..], [ServerEvent::Cancelled { .. }]),
        "{told:?}"
    );
    assert_eq!(raw.endpoint.usage().in_flight, 1);
}

/// An endpoint whose session has ended keeps no streams without connection and no other state.
#[test]
fn shutdown_forgets_detached_streams() {
    let mut server = server_in_session(LAST_HANDSHAKE_REVISION, &[LAST_HANDSHAKE_REVISION]);
    let call = post(&mut server, &request(1, "tools/list", json!({})));
    let standalone = server.open(StreamKind::Standalone).expect("a stream");
    for stream in [call, standalone] {
        assert_eq!(
            server.handle_detach(stream, Time::ZERO),
            DetachOutcome::Waiting
        );
    }
    server.shutdown(Time::ZERO);
    events(&mut server);
    let mut usage = server.usage();
    usage.remembered_ids = 0;
    assert_eq!(usage, Usage::default());
}

/// When a client shuts down, its session at the server ends, even if the standalone stream has lost its connection.
#[test]
fn detached_client_still_ends_session() {
    let mut poster = HttpHarness::new(LAST_HANDSHAKE_REVISION);
    let standalone = poster.client.open_standalone();
    poster.client.handle_detach(standalone, Time::ZERO);
    poster.client.shutdown(Time::ZERO);
    let ended = poster.client.poll_transmit(&mut Vec::new());
    assert_eq!(ended, Some(Transmit::EndSession));
}

/// If a request is cancelled while its stream has no connection, the stream cannot be resumed.
#[test]
fn cancelled_detached_request_leaves_nothing() {
    let mut server = server_in_session(LAST_HANDSHAKE_REVISION, &[LAST_HANDSHAKE_REVISION]);
    let stream = post(&mut server, &request(1, "tools/list", json!({})));
    server.handle_detach(stream, Time::ZERO);
    let params = json!({ "requestId": 1 });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    post(&mut server, &cancel);
    take_output(&mut server);
    assert_eq!(server.usage().queued, 0);
    assert!(!server.handle_attach(stream, Time::ZERO));
}

/// Completion notifications refer to earlier elicitations (2025-11-25, `client/elicitation`), so a snapshot of an
/// active session contains the ids of elicitations; a snapshot of an ended session contains none.
#[test]
fn elicitation_makes_snapshot_due() {
    let mut server = server_in_session(LAST_HANDSHAKE_REVISION, &[LAST_HANDSHAKE_REVISION]);
    post(
        &mut server,
        &request(1, "tools/call", json!({ "name": "x" })),
    );
    let key = key(&mut server);
    server.take_snapshot().expect("a session");
    assert_eq!(server.snapshot_due(), SnapshotDue::NotDue);
    let params = json!({ "mode": "url", "message": "m", "url": "https://example.com", "elicitationId": "e" });
    let options = CallOptions::default();
    let asked = server.request(
        Scope::During(key),
        "elicitation/create",
        Some(to_object(params)),
        options,
        Time::ZERO,
    );
    asked.expect("it leaves");
    assert_eq!(server.snapshot_due(), SnapshotDue::Now);
    let snapshot = server.take_snapshot().expect("a session");
    assert_eq!(snapshot.elicitations, Some(vec!["e".to_owned()]));
    assert_eq!(server.snapshot_due(), SnapshotDue::NotDue);
    server.end_session(Time::ZERO);
    assert_eq!(server.usage().elicitations, 0);
}

/// "Both parties MUST only use capabilities that were successfully negotiated" (2025-11-25, `basic/lifecycle`,
/// "Operation"): requests with methods of undeclared capabilities are refused.
#[test]
fn undeclared_tasks_are_not_served() {
    let mut config = server_config(&[LAST_HANDSHAKE_REVISION]);
    config.capabilities = to_object(json!({ "tools": {} }));
    let mut raw = RawServer::with_session(config, LAST_HANDSHAKE_REVISION, json!({}));
    for (method, params) in [
        ("tasks/list", json!({})),
        ("tasks/get", json!({ "taskId": "t" })),
        ("tasks/cancel", json!({ "taskId": "t" })),
        ("tasks/result", json!({ "taskId": "t" })),
    ] {
        let answers = raw.send(&request(1, method, params));
        assert_eq!(
            answers[0]["error"]["code"],
            code::METHOD_NOT_FOUND,
            "{method}"
        );
    }
    assert!(raw.events().is_empty());
}

/// A snapshot with revision 2026-07-28 cannot be resumed, because this revision has no sessions: nothing may be
/// inferred from earlier requests (`basic`, "Statelessness").
#[test]
fn stateless_revision_has_no_snapshot() {
    let settings = server_config(&[DISCOVER_REVISION, LAST_HANDSHAKE_REVISION])
        .build()
        .expect("a configuration");
    let snapshot = Snapshot::new(negotiated_session(DISCOVER_REVISION, json!({})), 0);
    let resumed = ServerEndpoint::<()>::resume(settings, Binding::Duplex, snapshot, Time::ZERO);
    assert!(matches!(resumed, Err(ConfigError::Snapshot(_))));
}
