//! Typed views of what came in, by the revision that was negotiated.

use mcp_2025_06_18 as mcp;
use mcp_exact_tests_session::*;

fn called(revision: &str, params: Value) -> (RawServer, Incoming<()>) {
    let mut server = RawServer::begun(server_config(&[revision]), revision, json!({}));
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    server.send(&call);
    let request = server.request();
    (server, request)
}

#[test]
fn a_request_has_the_types_of_the_revision_that_it_speaks() {
    let params = json!({ "name": "echo", "arguments": { "text": "hi" }, "x-more": [1] });
    let (_, request) = called("2025-06-18", params.clone());
    let Ok(Negotiated::V2025_06_18(typed)) = request.typed() else {
        panic!("{:?}", request.typed());
    };
    let mcp::ClientRequest::CallTool(call) = &typed.request else {
        panic!("{typed:?}");
    };
    assert_eq!(call.params.name, "echo");
    assert!(call.params.extra.get("x-more").is_some());
    let exact = request.exact::<mcp::V2025_06_18>().expect("its revision");
    assert_eq!(exact, typed);
    assert!(request.exact::<mcp_2025_11_25::V2025_11_25>().is_err());
    let (_, request) = called("2025-11-25", params);
    assert!(matches!(
        request.typed(),
        Ok(Negotiated::V2025_11_25(
            mcp_2025_11_25::ClientRequest::CallTool(_)
        ))
    ));
}

#[test]
fn params_that_do_not_fit_are_an_error_to_reply_with() {
    let (mut server, request) = called("2025-06-18", json!({ "name": 5 }));
    let error = request.typed().expect_err("a number");
    assert_eq!(error.code(), Some(-32602));
    server
        .machine
        .reply(request.key, error, server.now)
        .expect("it waits");
    let answer = server.drain().remove(0);
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(answer["error"]["data"]["pointer"], "/params/name");
}

#[test]
fn results_and_errors_are_typed_by_the_request_that_they_answer() {
    let mut pair = Pair::new(
        client_config(&["2025-06-18"]),
        server_config(&["2025-06-18"]),
    );
    pair.run();
    let Outcome::Result(raw) = pair.call("tools/list", None) else {
        panic!("no result");
    };
    let list = raw.decode_as::<mcp::ListToolsRequest>().expect("it fits");
    assert_eq!(list.tools[0].name, "echo");
    let revision = pair.client.agreed().expect("agreed").revision;
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
        .request_as::<mcp::CallToolRequest>(&params, CallOptions::default(), now)
        .expect("it leaves");
    pair.run();
    let error = pair.heard.iter().find_map(|event| match event {
        ClientEvent::Done(_, Outcome::Error(error)) => Some(error.clone()),
        _ => None,
    });
    assert_eq!(error.and_then(|error| error.code()), Some(-32602));
}

#[test]
fn questions_and_answers_are_typed() {
    let mut client = RawClient::begun(client_config(&["2025-06-18"]), "2025-06-18", json!({}));
    client.drain();
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }));
    let events = client.events();
    let ClientEvent::Ask { key, ask, .. } = &events[0] else {
        panic!("{events:?}");
    };
    let typed = ask.typed().expect("it fits");
    assert!(matches!(&typed, Negotiated::V2025_06_18(request)
        if matches!(request.request, mcp::ServerRequest::ListRoots(_))));
    let roots = mcp::ListRootsResult::new(vec![mcp::Root::new("file:///r")]);
    let answer = RawResult::of(&roots).expect("an object");
    client
        .machine
        .answer(*key, Ok(answer), client.now)
        .expect("it waits");
    check_message("2025-06-18", true, Some("roots/list"), &client.drain()[0]);
}
