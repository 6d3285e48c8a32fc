//! Typed views of received messages in the negotiated revision.

use mcp_2025_06_18 as mcp;
use mcp_exact_tests_session::*;

/// Delivers a tool call to a server of the revision; returns the server and the delivered request.
fn serve_call(revision: &str, params: Value) -> (RawServer, IncomingRequest<()>) {
    let mut server = RawServer::with_session(server_config(&[revision]), revision, json!({}));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    server.send(&call);
    let request = server.take_request();
    (server, request)
}

/// A received request is decoded to the type of the negotiated revision.
#[test]
fn requests_have_types_of_their_revision() {
    let params = json!({ "name": "echo", "arguments": { "text": "hi" }, "x-more": [1] });
    let (_, request) = serve_call("2025-06-18", params.clone());
    let Ok(Negotiated::V2025_06_18(typed)) = request.typed() else {
        panic!("{:?}", request.typed());
    };
    let mcp::ClientRequest::CallTool(call) = &typed.request else {
        panic!("{typed:?}");
    };
    assert_eq!(call.params.name, "echo");
    assert!(call.params.extra.get("x-more").is_some());
    let exact = request
        .typed_exactly::<mcp::V2025_06_18>()
        .expect("its revision");
    assert_eq!(exact, typed);
    assert!(
        request
            .typed_exactly::<mcp_2025_11_25::V2025_11_25>()
            .is_err()
    );
    let (_, request) = serve_call("2025-11-25", params);
    assert!(matches!(
        request.typed(),
        Ok(Negotiated::V2025_11_25(
            mcp_2025_11_25::ClientRequest::CallTool(_)
        ))
    ));
}

/// Params that do not match the type give an error -32602 with the pointer to the mismatch, which can be sent as the
/// reply.
#[test]
fn mismatched_params_give_reply_error() {
    let (mut server, request) = serve_call("2025-06-18", json!({ "name": 5 }));
    let error = request.typed().expect_err("a number");
    assert_eq!(error.code(), Some(-32602));
    server
        .endpoint
        .reply(request.key, error, server.now)
        .expect("it waits");
    let answer = server.take_messages().remove(0);
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["data"]["pointer"], "/params/name");
}

/// A result is decoded to the result type of its request.
#[test]
fn results_have_types_of_their_request() {
    let mut pair = Pair::new(
        client_config(&["2025-06-18"]),
        server_config(&["2025-06-18"]),
    );
    pair.run_until_idle();
    let Outcome::Result(raw) = pair.complete_request("tools/list", None) else {
        panic!("no result");
    };
    let list = raw.decode_as::<mcp::ListToolsRequest>().expect("it fits");
    assert_eq!(list.tools[0].name, "echo");
    let revision = pair.client.session_info().expect("agreed").revision;
    let typed = raw.typed::<ServerResults>("tools/list", revision);
    assert!(
        matches!(
            typed,
            Ok(Negotiated::V2025_06_18(mcp::ServerResult::ListTools(_)))
        ),
        "{typed:?}"
    );
    let params = mcp::CallToolRequestParams::new("nothing");
    let now = pair.now;
    pair.client
        .request_typed::<mcp::CallToolRequest>(&params, CallOptions::default(), now)
        .expect("it leaves");
    pair.run_until_idle();
    let error = pair.client_events.iter().find_map(|event| match event {
        ClientEvent::Completed(_, Outcome::Error(error)) => Some(error.clone()),
        _ => None,
    });
    assert_eq!(error.and_then(|error| error.code()), Some(-32602));
}

/// A server request is decoded to the type of its method, and a typed answer is sent.
#[test]
fn server_requests_and_answers_are_typed() {
    let mut client =
        RawClient::with_session(client_config(&["2025-06-18"]), "2025-06-18", json!({}));
    client.take_messages();
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }));
    let events = client.events();
    let ClientEvent::Request {
        key, request: ask, ..
    } = &events[0]
    else {
        panic!("{events:?}");
    };
    let typed = ask.typed().expect("it fits");
    assert!(matches!(&typed, Negotiated::V2025_06_18(request)
        if matches!(request.request, mcp::ServerRequest::ListRoots(_))));
    let roots = mcp::ListRootsResult::new(vec![mcp::Root::new("file:///r")]);
    let answer = RawResult::from_typed(&roots).expect("an object");
    client
        .endpoint
        .answer(*key, Ok(answer), client.now)
        .expect("it waits");
    check_message(
        "2025-06-18",
        true,
        Some("roots/list"),
        &client.take_messages()[0],
    );
}

/// Home revision of the tests.
type HomeRevision = mcp::V2025_06_18;

/// A handler that is written for one home revision handles requests of the other revisions, too.
#[test]
fn home_handler_serves_every_revision() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (mut server, request) = serve_call(revision, json!({ "name": "echo", "x-more": [1] }));
        let home = request
            .typed_as::<HomeRevision>(LossPolicy::Refuse)
            .expect("it fits");
        assert_eq!(home.value.id, *request.id());
        let mcp::ClientRequest::CallTool(call) = &home.value.request else {
            panic!("{revision}: {home:?}");
        };
        assert_eq!(call.params.name, "echo");
        assert!(call.params.extra.get("x-more").is_some());
        let result = mcp::CallToolResult {
            structured_content: Some(JsonObject::new()),
            ..mcp::CallToolResult::new(vec![mcp::TextContent::new("{}").into()])
        };
        let reply = request.reply_as::<HomeRevision>(&result, LossPolicy::Report);
        let ConvertedValue { value, losses } = reply.expect("convertible");
        let older = ["2024-11-05", "2025-03-26"].contains(&revision);
        assert_eq!(losses.len(), usize::from(older), "{revision}: {losses:?}");
        server
            .endpoint
            .reply(request.key, value, server.now)
            .expect("it waits");
        let answer = server.take_messages().remove(0);
        assert_eq!(answer["result"]["content"][0]["text"], "{}", "{answer}");
        assert_eq!(answer["result"].get("structuredContent").is_none(), older);
        check_message(revision, true, Some("tools/call"), &answer);
    }
}

/// A conversion that loses a member succeeds with a report or fails, as the loss policy requires.
#[test]
fn loss_policy_decides_about_conversions() {
    let (_, request) = serve_call(
        "2025-11-25",
        json!({ "name": "echo", "task": { "ttl": 5 } }),
    );
    let told = request
        .typed_as::<HomeRevision>(LossPolicy::Report)
        .expect("convertible");
    let dropped = told
        .losses
        .iter()
        .filter(|loss| loss.kind == LossKind::Dropped);
    let dropped: Vec<&str> = dropped.map(|loss| &*loss.pointer).collect();
    assert_eq!(dropped, ["/task"]);
    let refused = request
        .typed_as::<HomeRevision>(LossPolicy::Refuse)
        .expect_err("lossy");
    assert_eq!(refused.code(), Some(-32602));
    let data = refused.data().map(|data| data.text().to_owned());
    assert_eq!(data.as_deref(), Some("{\"pointer\":\"/task\"}"));
    let quiet = request
        .typed_as::<HomeRevision>(LossPolicy::Accept)
        .expect("convertible");
    assert!(quiet.losses.is_empty());
    let (_, bad) = serve_call("2024-11-05", json!({ "name": 5 }));
    let error = bad
        .typed_as::<HomeRevision>(LossPolicy::Accept)
        .expect_err("a number");
    assert_eq!(error.code(), Some(-32602));
}

/// A client application that is written for one home revision can call servers of the other revisions.
#[test]
fn home_client_serves_every_server() {
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let mut pair = Pair::new(client_config(&[revision]), server_config(&[revision]));
        pair.run_until_idle();
        let params = mcp::CallToolRequestParams {
            arguments: Some(JsonObject::from_iter([("text", Json::string("hi"))])),
            ..mcp::CallToolRequestParams::new("echo")
        };
        let now = pair.now;
        let sent = pair
            .client
            .request_as::<HomeRevision, mcp::CallToolRequest>(
                &params,
                CallOptions::default(),
                LossPolicy::Report,
                now,
            );
        let key = sent.expect("it leaves").value;
        pair.run_until_idle();
        let raw = pair.client_events.iter().find_map(|event| match event {
            ClientEvent::Completed(done, Outcome::Result(raw)) if *done == key => Some(raw.clone()),
            _ => None,
        });
        let raw = raw.unwrap_or_else(|| panic!("{revision}: {:?}", pair.client_events));
        let agreed = pair.client.session_info().expect("agreed").revision;
        let home = raw.typed_as::<HomeRevision, mcp::CallToolRequest>(agreed, LossPolicy::Report);
        let home = home.expect("it fits").value;
        assert!(
            matches!(home.content[0], mcp::ContentBlock::Text(_)),
            "{revision}"
        );
        assert!(home.extra.is_empty(), "{revision}: {home:?}");
    }
}
