//! Instructions of an endpoint to its transport: the end of a session, the order of POSTs, headers (`basic/transports`,
//! "Session Management"; `basic/lifecycle`, "Initialization").

use std::sync::Arc;

use mcp_exact_session::http::{
    MirroredParam, RequestTarget, ToolHeaders, classify_delete, classify_get, mirrored_params,
};
use mcp_exact_tests_session::*;

/// Removes the client's output; returns the number of instructions to end the session.
fn take_session_end_hints(client: &mut ClientEndpoint) -> usize {
    let mut bytes = Vec::new();
    let taken = std::iter::from_fn(|| client.poll_transmit(&mut bytes));
    taken
        .filter(|transmit| *transmit == Transmit::EndSession)
        .count()
}

/// "Clients that no longer need a particular session SHOULD send an HTTP DELETE to the MCP endpoint": a client that
/// shuts down returns the instruction to end its session once, after all messages, and only if sessions have ids.
#[test]
fn shutdown_ends_session_by_delete() {
    for revision in all_revisions() {
        for binding in [Binding::StreamableHttp, Binding::Duplex] {
            let settings = client_config(&[revision]).build().expect("a configuration");
            let snapshot = Snapshot::new(negotiated_session(revision, json!({ "tools": {} })), 0);
            let mut client =
                ClientEndpoint::resume(settings, binding, snapshot, Time::ZERO).expect("offered");
            client
                .request("tools/list", None, CallOptions::default(), Time::ZERO)
                .expect("it leaves");
            client.shutdown(Time::ZERO);
            assert_eq!(client.poll_end_session(), None, "the request leaves first");
            let expected = usize::from(
                SESSION_REVISIONS.contains(&revision) && binding == Binding::StreamableHttp,
            );
            assert_eq!(
                take_session_end_hints(&mut client),
                expected,
                "{revision} {binding:?}"
            );
            client.shutdown(Time::ZERO);
            assert_eq!(take_session_end_hints(&mut client), 0);
        }
    }
    // A session that the server has ended is not ended again.
    let mut poster = HttpHarness::new("2025-11-25");
    poster.client.handle_session_end(Time::ZERO);
    poster.client.shutdown(Time::ZERO);
    assert_eq!(take_session_end_hints(&mut poster.client), 0);
}

/// The client "MUST send an `initialized` notification": some servers refuse requests that arrive before it, so the
/// transport must wait for the response to this POST.
#[test]
fn initialized_must_be_accepted_first() {
    for revision in SESSION_REVISIONS {
        let settings = client_config(&[revision]).build().expect("a configuration");
        let mut client = ClientEndpoint::new(settings, Binding::StreamableHttp, None, Time::ZERO);
        let mut bytes = Vec::new();
        let Some(Transmit::Frame { stream, http, .. }) = client.poll_transmit(&mut bytes) else {
            panic!("`initialize`");
        };
        assert!(!http.waits_for_status);
        let result = json!({ "protocolVersion": revision, "capabilities": { "tools": {} }, "serverInfo": { "name": "s", "version": "1" } });
        let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string();
        client
            .receive(stream, answer.as_bytes(), Time::ZERO)
            .expect("open");
        client
            .request("tools/list", None, CallOptions::default(), Time::ZERO)
            .expect("negotiated");
        let mut barriers = Vec::new();
        bytes.clear();
        while let Some(Transmit::Frame { http, .. }) = client.poll_transmit(&mut bytes) {
            let message: Value = serde_json::from_slice(&std::mem::take(&mut bytes)).expect("JSON");
            barriers.push((message["method"].clone(), http.waits_for_status));
        }
        assert_eq!(
            barriers,
            [
                (json!("notifications/initialized"), true),
                (json!("tools/list"), false)
            ]
        );
    }
}

/// "The first event is `endpoint`" (2024-11-05): over HTTP+SSE, a client sends no message before it has received this
/// event.
#[test]
fn nothing_is_sent_before_endpoint_event() {
    let settings = client_config(&["2024-11-05"])
        .build()
        .expect("a configuration");
    let mut client = ClientEndpoint::new(settings, Binding::HttpSse, None, Time::ZERO);
    client.open_standalone();
    let mut bytes = Vec::new();
    assert_eq!(client.poll_transmit(&mut bytes), None);
    assert_eq!(client.writable_streams().count(), 0);
    for number in 0..4 {
        let stream = StreamId::from_number(number);
        assert_eq!(client.poll_transmit_on(stream), None);
        assert_eq!(client.peek_transmit_on(stream), None);
    }
    client.set_endpoint_known();
    let stream = client.writable_streams().next().expect("`initialize`");
    assert!(client.peek_transmit_on(stream).is_some());
    assert!(client.poll_transmit_on(stream).is_some());
}

/// "The server MAY respond to this request with HTTP 405 Method Not Allowed, indicating that the server does not allow
/// clients to terminate sessions": a DELETE or GET gets this status if the server does not allow it, and from
/// 2026-07-28 on, because there are no sessions.
#[test]
fn delete_without_session_gets_405() {
    let refused = |posted: RequestTarget| match posted {
        RequestTarget::Refused(refusal) => refusal.status(false),
        other => panic!("{other:?}"),
    };
    let session = [
        ("Mcp-Session-Id", "s-1"),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let both = offer_of(&revisions_newest_first());
    for classify in [classify_delete, classify_get] {
        assert_eq!(
            classify(&http_request(&session), &both, true),
            RequestTarget::Session("s-1".to_owned())
        );
        assert_eq!(
            refused(classify(&http_request(&session), &both, false)),
            405
        );
        assert_eq!(
            classify(&http_request(&[]), &both, true),
            RequestTarget::NoSessionId
        );
        assert_eq!(
            refused(classify(
                &http_request(&[("Mcp-Session-Id", "a b")]),
                &both,
                true
            )),
            400
        );
        assert_eq!(
            refused(classify(
                &http_request(&[("MCP-Protocol-Version", "1999-01-01")]),
                &both,
                true
            )),
            400
        );
        let new = [
            ("Mcp-Session-Id", "s-1"),
            ("MCP-Protocol-Version", DISCOVER_REVISION),
        ];
        assert_eq!(refused(classify(&http_request(&new), &both, true)), 405);
        for revision in [DISCOVER_REVISION, "2024-11-05"] {
            assert_eq!(
                refused(classify(
                    &http_request(&[("Mcp-Session-Id", "s-1")]),
                    &offer_of(&[revision]),
                    true
                )),
                405
            );
        }
    }
    // The end of a session needs no open stream.
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        posts.endpoint.end_session(Time::ZERO);
        assert!(posts.endpoint.is_closed());
        assert!(matches!(
            posts.endpoint.poll_event(),
            Some(ServerEvent::Closed)
        ));
        assert!(matches!(
            posts.endpoint.open(StreamKind::Post),
            Err(SendError::Closed)
        ));
    }
}

/// Lookup that mirrors the parameter `region` of the tool `x` into the header `Mcp-Param-Region`.
#[derive(Debug)]
struct RegionHeader;

impl ToolHeaders for RegionHeader {
    fn params_of(&self, name: &str) -> Option<Arc<[MirroredParam]>> {
        let schema = json!({ "type": "object", "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
        let mirrored = mirrored_params(&to_object(schema)).expect("a good tool");
        (name == "x").then(|| mirrored.into())
    }
}

/// "Servers that process the request body MUST reject requests where the values specified in the headers do not match
/// the corresponding values in the request body": the endpoint rejects such requests if [`ToolHeaders`] returns the
/// mirrored parameters of the tool.
#[test]
fn tool_headers_are_compared() {
    let arguments = json!({ "arguments": { "region": "eu" } });
    for (told, name, header, passes) in [
        (true, "x", Some("eu"), true),
        (true, "x", Some("=?base64?ZXU=?="), true),
        (true, "x", Some("us"), false),
        (true, "x", None, false),
        (true, "unknown", None, true),
        (false, "x", Some("us"), true),
    ] {
        let mut config = server_config(&[DISCOVER_REVISION]);
        if told {
            config.tool_headers = Some(Arc::new(RegionHeader));
        }
        let mut posts = HttpServerHarness::new(config, DISCOVER_REVISION, json!({}));
        let mut body = tool_call(DISCOVER_REVISION, 1, arguments.clone());
        body["params"]["name"] = json!(name);
        let mut headers = vec![
            ("MCP-Protocol-Version", DISCOVER_REVISION),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", name),
        ];
        headers.extend(header.map(|header| ("Mcp-Param-Region", header)));
        if passes {
            posts.post(&headers, &body);
            assert!(
                matches!(posts.endpoint.poll_event(), Some(ServerEvent::Request(_))),
                "{name} {header:?}"
            );
        } else {
            let (status, answer) = posts.status_of_post(&headers, &body);
            assert_eq!(
                (status, &answer["error"]["code"]),
                (400, &json!(-32020)),
                "{name} {header:?}"
            );
        }
    }
}

/// After the loss of a session, list and read requests can be repeated; requests with possible side effects and unknown
/// requests cannot be repeated.
#[test]
fn repeatable_requests_have_no_effect() {
    for revision in all_revisions() {
        let client = connected_client(revision);
        for method in [
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "prompts/get",
            "completion/complete",
        ] {
            assert!(client.endpoint.is_repeatable(method), "{revision} {method}");
        }
        for method in [
            "tools/call",
            "initialize",
            "vendor/any",
            "subscriptions/listen",
            "tasks/cancel",
        ] {
            assert!(
                !client.endpoint.is_repeatable(method),
                "{revision} {method}"
            );
        }
    }
}
