//! Request handlers that are called again with the required input, in every revision (2026-07-28:
//! `basic/patterns/mrtr`; up to 2025-11-25: `client/roots`).

use mcp_exact_tests_session::*;

/// Returns the reply to a request: an input request for the client's roots, and in the retry the number of the roots.
fn handle(request: &IncomingRequest<()>) -> Reply {
    let ask = |method: &str| InputRequest::new(method, None);
    let reply = || -> Result<Reply, Box<Reply>> {
        let first = request.require_input("first", || ask("roots/list"))?;
        let roots = to_value(first.object())["roots"]
            .as_array()
            .map_or(0, Vec::len);
        Ok(to_result(json!({ "content": [], "structuredContent": { "roots": roots } })).into())
    };
    reply().unwrap_or_else(|reply| *reply)
}

/// "Clients retry the original request": the same handler receives the input responses in every revision, also in a
/// clone of the request.
#[test]
fn requested_input_is_delivered() {
    for revision in all_revisions() {
        let capabilities = json!({ "roots": {} });
        let mut server =
            CheckedServer::with_session(server_config(&[revision]), revision, capabilities.clone());
        let request = server.serve(&request_of_revision(
            revision,
            1,
            "tools/call",
            json!({ "name": "x" }),
            capabilities.clone(),
        ));
        let asked = server.reply(request.key, handle(&request));
        let roots = json!({ "roots": [{ "uri": "file:///a" }] });
        let again = match lifecycle(revision) {
            Some(Lifecycle::Discover) => {
                let embedded = &asked[0]["result"]["inputRequests"]["first"];
                assert_eq!(embedded["method"], "roots/list");
                let params = json!({ "name": "x", "inputResponses": { "first": roots }, "requestState": asked[0]["result"]["requestState"] });
                server.serve(&request_of_revision(
                    revision,
                    2,
                    "tools/call",
                    params,
                    capabilities,
                ))
            }
            _ => {
                assert_eq!(asked[0]["method"], "roots/list", "{revision}");
                assert!(
                    server
                        .send(&json!({ "jsonrpc": "2.0", "id": asked[0]["id"], "result": roots }))
                        .is_empty()
                );
                server.take_request()
            }
        };
        assert_eq!(again.retries, 1);
        let answers = server.reply(again.key, handle(&again.clone()));
        assert_eq!(
            answers[0]["result"]["structuredContent"]["roots"], 1,
            "{revision}"
        );
    }
}

/// If the client answers an input request with an error or not in time, the handler receives the failure and can reply
/// with an error.
#[test]
fn refused_input_becomes_an_error() {
    for revision in handshake_revisions() {
        for refuses in [true, false] {
            let mut server = CheckedServer::with_session(
                server_config(&[revision]),
                revision,
                json!({ "roots": {} }),
            );
            let request = server.serve(&request_of_revision(
                revision,
                1,
                "tools/call",
                json!({ "name": "x" }),
                json!({}),
            ));
            let asked = server.reply(request.key, handle(&request));
            if refuses {
                let error = json!({ "code": -1, "message": "no roots" });
                server.send(&json!({ "jsonrpc": "2.0", "id": asked[0]["id"], "error": error }));
            } else {
                server.endpoint.handle_timeout(Time::from_millis(60_000));
                assert_eq!(
                    server.take_messages()[0]["method"],
                    "notifications/cancelled"
                );
            }
            let again = server.take_request();
            let answers = server.reply(again.key, handle(&again));
            let expected = if refuses { -1 } else { -32603 };
            assert_eq!(answers[0]["error"]["code"], expected, "{revision}");
        }
    }
}
