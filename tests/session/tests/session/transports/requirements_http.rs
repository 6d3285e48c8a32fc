//! Requirements of `docs/requirements.toml` on HTTP: bodies, statuses, media types, sessions and origins
//! (`basic/transports`; 2026-07-28: `basic/transports/streamable-http`).

use mcp_exact_session::http::{
    RequestTarget, check_origin, classify, classify_get, content_type, get_headers, is_session_id,
    post_headers,
};
use mcp_exact_tests_session::*;

/// Returns the HTTP status with which a server refuses a request with these `Origin` headers; `None` if the request is
/// accepted.
fn origin_status(values: &[&str]) -> Option<u16> {
    let headers: Vec<(&str, &str)> = values.iter().map(|value| ("oRiGiN", *value)).collect();
    let allowed = ["https://app.example", "http://localhost:3000"];
    match check_origin(&http_request(&headers), &allowed) {
        Ok(()) => None,
        Err(refusal) => {
            assert_eq!(refusal.error().code(), Some(-32600));
            Some(refusal.status(false))
        }
    }
}

/// A request with an `Origin` that is not allowed gets status 403.
#[test]
fn foreign_origins_get_403() {
    assert_eq!(origin_status(&[]), None, "no browser");
    assert_eq!(origin_status(&["https://app.example"]), None);
    assert_eq!(origin_status(&["HTTPS://APP.example"]), None);
    assert_eq!(origin_status(&[" http://localhost:3000 "]), None);
    for bad in [
        "https://evil.example",
        "null",
        "",
        "https://app.example.evil.example",
        "https://app.example:444",
        "http://app.example",
        "*",
        "https://app.example/",
        "\u{e9}",
    ] {
        assert_eq!(origin_status(&[bad]), Some(403), "{bad}");
    }
    assert_eq!(
        origin_status(&["https://app.example", "https://evil.example"]),
        Some(403)
    );
}

/// A POST that contains only notifications or responses gets status 202.
#[test]
fn messages_without_answer_get_202() {
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        let notification =
            json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" });
        assert_eq!(
            posts.status_of_post(&[], &notification),
            (202, Value::Null),
            "{revision}"
        );
        posts
            .endpoint
            .open(StreamKind::Standalone)
            .expect("a stream");
        posts
            .endpoint
            .ping(RequestTimeout::default(), Time::ZERO)
            .expect("it leaves");
        let ping = posts.take_output().remove(0).1;
        let response = json!({ "jsonrpc": "2.0", "id": ping["id"], "result": {} });
        assert_eq!(
            posts.status_of_post(&[], &response),
            (202, Value::Null),
            "{revision}"
        );
        if revision == "2025-03-26" {
            let batch = json!([notification, response]);
            assert_eq!(posts.status_of_post(&[], &batch), (202, Value::Null));
        }
    }
    let mut posts = server_with_roots_client(DISCOVER_REVISION);
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(
        posts.status_of_post(&[("MCP-Protocol-Version", DISCOVER_REVISION)], &cancelled),
        (202, Value::Null)
    );
}

/// A POST with an invalid notification or response gets an HTTP error status.
#[test]
fn refused_messages_get_error_status() {
    for revision in SESSION_REVISIONS.into_iter().chain([DISCOVER_REVISION]) {
        for bad in [
            json!({}),
            json!({ "jsonrpc": "1.0", "method": "notifications/initialized" }),
            json!(5),
            json!([]),
            json!({ "jsonrpc": "2.0", "method": 5 }),
        ] {
            let (status, body) = server_with_roots_client(revision)
                .status_of_post(&[("MCP-Protocol-Version", revision)], &bad);
            assert_eq!(status, 400, "{revision} {bad}");
            assert!(body.get("id").is_none(), "{body}");
        }
        let mut posts = server_with_roots_client(revision);
        let stream = posts.endpoint.open(StreamKind::Post).expect("a stream");
        posts
            .endpoint
            .receive(stream, b"{", FrameContext::new(()), Time::ZERO)
            .expect("open");
        let sent = posts.take_output();
        match &sent[0].0 {
            Transmit::Frame { http, .. } => assert_eq!(http.status, Some(400)),
            Transmit::Status { status, .. } => assert_eq!(*status, 400),
            other => panic!("{other:?}"),
        }
    }
    // A message that names an unsupported revision does not reach an endpoint.
    let notification = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let refused = classify(
        &http_request(&[("MCP-Protocol-Version", "1.0")]),
        notification,
        &offer_of(&SESSION_REVISIONS),
    );
    assert!(matches!(refused, RequestTarget::Refused(refusal) if refusal.status(true) == 400));
}

/// A GET that cannot open an event stream gets status 405.
#[test]
fn get_without_stream_gets_405() {
    let get = |headers: &[(&str, &str)], ids: &[&str], streams| match classify_get(
        &http_request(headers),
        &offer_of(ids),
        streams,
    ) {
        RequestTarget::Refused(refusal) | RequestTarget::UnsupportedRevision(_, refusal) => {
            refusal.status(true)
        }
        RequestTarget::Session(id) => {
            assert_eq!(id, "s");
            200
        }
        other => panic!("{other:?}"),
    };
    let session = ("Mcp-Session-Id", "s");
    for revision in SESSION_REVISIONS {
        assert_eq!(get(&[session], &[revision], true), 200, "{revision}");
        assert_eq!(get(&[session], &[revision], false), 405, "{revision}");
        assert_eq!(
            get(
                &[session, ("MCP-Protocol-Version", revision)],
                &[revision, DISCOVER_REVISION],
                true
            ),
            200
        );
        assert_eq!(
            get(
                &[session, ("MCP-Protocol-Version", DISCOVER_REVISION)],
                &[revision, DISCOVER_REVISION],
                true
            ),
            405
        );
        assert_eq!(
            get(
                &[session, ("MCP-Protocol-Version", "1.0")],
                &[revision],
                true
            ),
            400
        );
        assert_eq!(get(&[("Mcp-Session-Id", "a b")], &[revision], true), 400);
    }
    assert_eq!(get(&[session], &[DISCOVER_REVISION], true), 405);
    assert_eq!(get(&[session], &["2024-11-05"], true), 405);
}

/// A client's POST accepts `application/json` and `text/event-stream`, its GET accepts `text/event-stream`.
#[test]
fn accept_header_lists_content_types() {
    for revision in SESSION_REVISIONS.into_iter().chain([DISCOVER_REVISION]) {
        let mut poster = HttpHarness::new(revision);
        let (_, _, headers, _) = poster.request("tools/list", json!(null));
        let accept: Vec<&str> = header_value(&headers, "Accept")
            .expect("a header")
            .split(", ")
            .collect();
        assert_eq!(
            accept,
            ["application/json", "text/event-stream"],
            "{revision}"
        );
        assert_eq!(
            header_value(&headers, "Content-Type"),
            Some("application/json")
        );
    }
    for revision in SESSION_REVISIONS {
        let headers = get_headers(negotiated_session(revision, json!({})).revision);
        assert_eq!(
            header_value(&headers, "Accept"),
            Some("text/event-stream"),
            "{revision}"
        );
        let named = (revision != "2025-03-26").then_some(revision);
        assert_eq!(header_value(&headers, "MCP-Protocol-Version"), named);
    }
}

/// A client sends each message in a separate POST.
#[test]
fn each_message_has_its_post() {
    for revision in SESSION_REVISIONS.into_iter().chain([DISCOVER_REVISION]) {
        let mut poster = HttpHarness::new(revision);
        let modern = revision == DISCOVER_REVISION;
        let (_, first, _, _) = poster.request("tools/call", json!({ "name": "x" }));
        if !modern {
            poster.receive(
                first,
                &json!({ "jsonrpc": "2.0", "id": "q", "method": "roots/list" }),
            );
            poster.receive(
                first,
                &json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }),
            );
            for event in poster.events() {
                if let ClientEvent::Request { key, .. } = event {
                    let roots = Ok(to_result(json!({ "roots": [] })));
                    poster
                        .client
                        .answer(key, roots, Time::ZERO)
                        .expect("it waits");
                }
            }
            poster
                .client
                .notify("notifications/roots/list_changed", None)
                .expect("declared");
        }
        let listed = poster
            .client
            .request("tools/list", None, CallOptions::default(), Time::ZERO);
        listed.expect("it leaves");
        let sent = poster.take_output();
        assert_eq!(sent.len(), if modern { 1 } else { 4 }, "{revision}");
        let mut streams: Vec<StreamId> = sent.iter().map(|(on, ..)| *on).collect();
        streams.push(first);
        streams.sort_unstable();
        streams.dedup();
        assert_eq!(streams.len(), sent.len() + 1, "a POST for each");
        // HTTP single-body: one message, no array.
        assert!(sent.iter().all(|(_, _, message)| message.is_object()));
    }
}

/// A POST with an array as its body gets status 400 in revisions without batches.
#[test]
fn post_body_is_one_message() {
    for revision in ["2025-06-18", "2025-11-25", DISCOVER_REVISION] {
        let list = request_of_revision(revision, 1, "tools/list", json!({}), json!({}));
        let (status, _) = server_with_roots_client(revision).status_of_post(
            &[
                ("MCP-Protocol-Version", revision),
                ("Mcp-Method", "tools/list"),
            ],
            &json!([list]),
        );
        assert_eq!(status, 400, "{revision}");
    }
}

/// In 2025-03-26, a POST with a batch of responses gets status 202.
#[test]
fn batch_of_responses_gets_202() {
    let mut poster = HttpHarness::new("2025-03-26");
    let (_, on, _, request) = poster.request("tools/call", json!({ "name": "x" }));
    assert!(request.is_object());
    poster.receive(
        on,
        &json!([
            { "jsonrpc": "2.0", "id": 1, "method": "ping" },
            { "jsonrpc": "2.0", "id": 2, "method": "nothing" },
        ]),
    );
    let sent = poster.take_output();
    assert_eq!(sent.len(), 1);
    let batch = sent[0].2.as_array().expect("a batch of responses");
    assert!(batch.len() == 2 && batch.iter().all(|item| item.get("method").is_none()));
}

/// A request that is answered with one message gets `application/json`, a request with further messages an event
/// stream.
#[test]
fn response_content_type_depends_on_output() {
    for revision in SESSION_REVISIONS.into_iter().chain([DISCOVER_REVISION]) {
        let mut posts = server_with_roots_client(revision);
        let with_token = || json!({ "_meta": { "progressToken": "t" } });
        let (_, alone) = posts.serve(&tool_call(revision, 1, with_token()));
        posts
            .endpoint
            .reply(alone, empty_content(), Time::ZERO)
            .expect("it waits");
        let sent = posts.take_output();
        assert_eq!(
            (sent.len(), content_type(&sent[0].0)),
            (1, Some("application/json")),
            "{revision}"
        );
        let (_, busy) = posts.serve(&tool_call(revision, 2, with_token()));
        posts
            .endpoint
            .send_progress(busy, &Progress::new(1.0))
            .expect("it increases");
        posts
            .endpoint
            .reply(busy, empty_content(), Time::ZERO)
            .expect("it waits");
        let sent = posts.take_output();
        assert_eq!(
            (sent.len(), content_type(&sent[0].0)),
            (2, Some("text/event-stream")),
            "{revision}"
        );
        assert!(
            matches!(sent[1].0, Transmit::Frame { is_last: true, .. }),
            "and then it ends"
        );
        let stream = posts.post(
            &[("MCP-Protocol-Version", revision)],
            &json!({ "jsonrpc": "2.0", "method": "notifications/x" }),
        );
        let sent = posts.take_output();
        assert_eq!(
            sent[0].0,
            Transmit::Status {
                stream,
                status: 202
            }
        );
        assert_eq!(content_type(&sent[0].0), None);
    }
}

/// From 2026-07-28 on, an error response has the HTTP status that belongs to its code.
#[test]
fn stateless_errors_have_http_status() {
    let headers = |method: &'static str| {
        [
            ("MCP-Protocol-Version", DISCOVER_REVISION),
            ("Mcp-Method", method),
        ]
    };
    let unknown = request_of_revision(DISCOVER_REVISION, 1, "nothing", json!({}), json!({}));
    let (status, body) =
        server_with_roots_client(DISCOVER_REVISION).status_of_post(&headers("nothing"), &unknown);
    assert_eq!((status, &body["error"]["code"]), (404, &json!(-32601)));
    // A method that the server knows and does not serve.
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.capabilities = JsonObject::new();
    let list = request_of_revision(DISCOVER_REVISION, 1, "tools/list", json!({}), json!({}));
    let (status, body) = HttpServerHarness::new(config, DISCOVER_REVISION, json!({}))
        .status_of_post(&headers("tools/list"), &list);
    assert_eq!((status, &body["error"]["code"]), (404, &json!(-32601)));
    let mut old = list.clone();
    old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");
    let (status, body) = server_with_roots_client(DISCOVER_REVISION).status_of_post(
        &[
            ("MCP-Protocol-Version", "1900-01-01"),
            ("Mcp-Method", "tools/list"),
        ],
        &old,
    );
    assert_eq!((status, &body["error"]["code"]), (400, &json!(-32022)));
    for (code, status) in [
        (-32021, 400),
        (-32020, 400),
        (-32022, 400),
        (-32602, 400),
        (-32601, 404),
        (-32603, 200),
        (7, 200),
    ] {
        assert_eq!(PeerError::new(code, "m").http_status(), status, "{code}");
        let mut posts = server_with_roots_client(DISCOVER_REVISION);
        let (_, key) = posts.serve(&tool_call(DISCOVER_REVISION, 1, json!({})));
        posts
            .endpoint
            .reply(key, PeerError::new(code, "m"), Time::ZERO)
            .expect("it waits");
        assert!(
            matches!(&posts.take_output()[0].0, Transmit::Frame { http, .. } if http.status == Some(status)),
            "{code}"
        );
    }
    // To a client with a session 404 says that the session is over: errors are answers there.
    for revision in SESSION_REVISIONS {
        for (method, code) in [
            ("nothing", -32601),
            ("tasks/list", -32601),
            ("server/discover", -32601),
        ] {
            let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
            let (status, body) = server_with_roots_client(revision).status_of_post(&[], &message);
            assert_eq!(
                (status, &body["error"]["code"]),
                (200, &json!(code)),
                "{revision}"
            );
        }
    }
}

/// A POST whose `_meta` lacks a required member gets status 400.
#[test]
fn missing_meta_gets_400() {
    for params in [
        json!({}),
        json!({ "_meta": {} }),
        json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": DISCOVER_REVISION } }),
    ] {
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params });
        let (status, body) = server_with_roots_client(DISCOVER_REVISION).status_of_post(
            &[
                ("MCP-Protocol-Version", DISCOVER_REVISION),
                ("Mcp-Method", "tools/list"),
            ],
            &message,
        );
        assert_eq!(
            (status, &body["error"]["code"]),
            (400, &json!(-32602)),
            "{params}"
        );
    }
}

/// A session id is valid exactly if it consists of visible ASCII characters.
#[test]
fn session_ids_are_visible_ascii() {
    for byte in 0..=255_u8 {
        let id = char::from(byte).to_string();
        assert_eq!(is_session_id(&id), (0x21..=0x7e).contains(&byte), "{byte}");
        assert_eq!(
            is_session_id(&format!("a{id}b")),
            (0x21..=0x7e).contains(&byte),
            "{byte}"
        );
    }
    assert!(!is_session_id(""));
}

/// A request with the id of an ended session gets status 404.
#[test]
fn ended_session_gets_404() {
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        let stream = posts.endpoint.open(StreamKind::Post).expect("a stream");
        posts
            .endpoint
            .handle_close(stream, StreamEnd::SessionEnded, Time::ZERO);
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
        let received =
            posts
                .endpoint
                .receive(stream, list.as_bytes(), FrameContext::new(()), Time::ZERO);
        let refused = received.expect_err("over");
        assert_eq!(
            (&refused, refused.refusal().status(true)),
            (&ReceiveError::Closed, 404),
            "{revision}"
        );
        assert_eq!(
            posts.endpoint.open(StreamKind::Post),
            Err(SendError::Closed)
        );
    }
    assert_eq!(ReceiveError::Full.refusal().status(true), 503);
}

/// A client whose session gets status 404 starts a new session with `initialize` without a session id.
#[test]
fn lost_session_restarts_with_initialize() {
    for revision in SESSION_REVISIONS {
        let mut poster = HttpHarness::new(revision);
        let (key, on, ..) = poster.request("tools/list", json!(null));
        poster.client.handle_failure(
            on,
            TransportFailure::Status {
                code: 404,
                body: Vec::new(),
            },
            Time::ZERO,
        );
        let events = poster.events();
        let done =
            |event: &&ClientEvent| matches!(event, ClientEvent::Completed(of, _) if *of == key);
        assert_eq!(events.iter().filter(done).count(), 1);
        assert!(
            events
                .iter()
                .any(|event| matches!(event, ClientEvent::SessionLost)),
            "{revision}"
        );
        // The new session has a new endpoint without state of the old session.
        let config = client_config(&[revision]).build().expect("a configuration");
        let mut next = ClientEndpoint::new(config, Binding::StreamableHttp, None, Time::ZERO);
        let mut bytes = Vec::new();
        let Some(Transmit::Frame { http, .. }) = next.poll_transmit(&mut bytes) else {
            panic!("nothing left");
        };
        let first: Value = serde_json::from_slice(&bytes).expect("JSON");
        assert_eq!(first["method"], "initialize", "{revision}");
        assert_eq!(header_value(&post_headers(&http), "Mcp-Session-Id"), None);
    }
}
