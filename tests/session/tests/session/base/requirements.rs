//! Requirements of `docs/requirements.toml` on JSON-RPC, for every revision and both roles (`basic`).

use mcp_exact_tests_session::*;

/// Creates a server of a revision.
fn server(revision: &str) -> CheckedServer {
    CheckedServer::with_session(server_config(&[revision]), revision, json!({}))
}

/// Creates a `tools/list` request.
fn list_request(revision: &str, id: Value) -> Value {
    request_of_revision(revision, id, "tools/list", json!({}), json!({}))
}

/// Checks that the only answer is an error without id and with this code, or, if the revision requires ids in errors,
/// that nothing is sent.
fn check_answer_without_id(revision: &str, answers: &[Value], code: i64) {
    if !errors_require_id(revision) {
        assert_eq!(answers.len(), 1, "{revision}: {answers:?}");
        assert!(answers[0].get("id").is_none(), "{revision}: {answers:?}");
        assert_eq!(answers[0]["error"]["code"], code);
    } else {
        assert!(answers.is_empty(), "{revision}: {answers:?}");
    }
}

/// A request with the id `null` is refused.
#[test]
fn every_revision_refuses_null_ids() {
    for revision in all_revisions() {
        let mut server = server(revision);
        let answers = server.send(&list_request(revision, json!(null)));
        check_answer_without_id(revision, &answers, -32600);
        let events = server.events();
        assert!(
            matches!(events[..], [ServerEvent::Violation(_)]),
            "{revision}: {events:?}"
        );
        for _ in 0..20 {
            let (_, sent) = connected_client(revision).request("tools/list", json!(null));
            assert!(!sent["id"].is_null());
        }
    }
}

/// Ids that are neither strings nor integers are refused.
#[test]
fn ids_are_strings_or_integers() {
    for revision in all_revisions() {
        for id in [json!(true), json!(1.5), json!([]), json!({})] {
            let mut server = server(revision);
            let answers = server.send(&list_request(revision, id.clone()));
            check_answer_without_id(revision, &answers, -32600);
            let events = server.events();
            assert!(
                matches!(events[..], [ServerEvent::Violation(_)]),
                "{revision} {id}: {events:?}"
            );
        }
        let (_, sent) = connected_client(revision).request("tools/list", json!(null));
        assert!(sent["id"].is_u64() || sent["id"].is_string());
    }
}

/// An endpoint never sends the id of an ended request again.
#[test]
fn ids_of_ended_requests_stay_used() {
    for revision in all_revisions() {
        let mut client = connected_client(revision);
        let mut ids = std::collections::BTreeSet::new();
        for round in 0..30_u64 {
            let (key, sent) = client.request("tools/list", json!(null));
            assert!(ids.insert(sent["id"].to_string()), "{revision}");
            let now = client.now;
            match round % 3 {
                0 => drop(client.send(
                    &json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "tools": [] } }),
                )),
                1 => client.endpoint.cancel(key, "enough", now),
                _ => {
                    client.now = client.endpoint.poll_timeout().expect("a deadline");
                    let now = client.now;
                    client.endpoint.handle_timeout(now);
                }
            }
            client.take_messages();
            client.events();
        }
    }
    for revision in handshake_revisions() {
        let mut server = server(revision);
        let now = server.now;
        let mut ids = std::collections::BTreeSet::new();
        for _ in 0..20 {
            server
                .endpoint
                .ping(RequestTimeout::default(), now)
                .expect("it leaves");
            let ping = server.take_messages().remove(0);
            assert!(ids.insert(ping["id"].to_string()), "{revision}");
            server.send(&json!({ "jsonrpc": "2.0", "id": ping["id"], "result": {} }));
        }
    }
}

/// Retries and subscriptions get ids that no other request of the client has; a request with the id of a request in
/// flight is refused.
#[test]
fn ids_of_retries_and_subscriptions_differ() {
    let revision = "2026-07-28";
    let mut client = connected_client(revision);
    let mut ids = std::collections::BTreeSet::new();
    let (_, first) = client.request("tools/call", json!({ "name": "x" }));
    ids.insert(first["id"].to_string());
    let (_, listen) = client.request("subscriptions/listen", json!({ "notifications": {} }));
    assert!(ids.insert(listen["id"].to_string()));
    let body = json!({ "resultType": "input_required", "requestState": "s" });
    let again = client.send(&json!({ "jsonrpc": "2.0", "id": first["id"], "result": body }));
    assert!(ids.insert(again[0]["id"].to_string()));
    // A server refuses an id that is in flight and leaves the first request alone.
    let mut server = server(revision);
    let key = server.serve(&list_request(revision, json!(1))).key;
    let answers = server.send(&list_request(revision, json!(1)));
    assert_eq!(answers[0]["error"]["code"], -32600);
    assert_eq!(server.violations(), [Violation::IdInUse(1_u64.into())]);
    assert_eq!(server.reply(key, empty_tool_list())[0]["id"], 1);
}

/// Each response has the id of its request, in whatever order the application replies.
#[test]
fn responses_may_come_out_of_order() {
    for revision in all_revisions() {
        let mut server = server(revision);
        let ids = [
            json!(1),
            json!("1"),
            json!(18_446_744_073_709_551_615_u64),
            json!("\u{e9} \"x\""),
            json!(-5),
        ];
        let keys: Vec<RequestKey> = ids
            .iter()
            .map(|id| server.serve(&list_request(revision, id.clone())).key)
            .collect();
        for (at, key) in keys.iter().enumerate().rev() {
            let answer = match at % 2 {
                0 => server.reply(*key, empty_tool_list()).remove(0),
                _ => server.reply(*key, PeerError::internal("no")).remove(0),
            };
            assert_eq!(answer["id"], ids[at], "{revision}");
        }
    }
}

/// A message whose `jsonrpc` is not `"2.0"` is refused, and every sent message has this version.
#[test]
fn json_rpc_version_is_checked() {
    for revision in all_revisions() {
        for version in [
            json!("1.0"),
            json!(2),
            json!(2.0),
            json!(null),
            json!("2.0.0"),
        ] {
            let mut server = server(revision);
            let mut message = list_request(revision, json!(1));
            message["jsonrpc"] = version.clone();
            let answers = server.send(&message);
            assert_eq!(answers[0]["error"]["code"], -32600, "{revision} {version}");
            message
                .as_object_mut()
                .expect("an object")
                .remove("jsonrpc");
            assert_eq!(
                server.send(&message)[0]["error"]["code"],
                -32600,
                "{revision}"
            );
            assert_eq!(server.violations().len(), 2);
            let mut client = connected_client(revision);
            let (key, sent) = client.request("tools/list", json!(null));
            assert_eq!(sent["jsonrpc"], "2.0");
            let answer = json!({ "jsonrpc": version, "id": sent["id"], "result": { "tools": [] } });
            client.send(&answer);
            let taken = client.outcomes();
            let good = taken
                .iter()
                .any(|(done, outcome)| *done == key && matches!(outcome, Outcome::Result(_)));
            assert!(!good, "{revision} {version}");
        }
    }
}

/// Returns the outcomes of a client request that is answered with this response.
fn outcomes_after(revision: &str, answer: &Value) -> Vec<Outcome> {
    let mut client = connected_client(revision);
    let (_, sent) = client.request("tools/list", json!(null));
    let mut answer = answer.clone();
    answer["jsonrpc"] = json!("2.0");
    answer["id"] = sent["id"].clone();
    client.send(&answer);
    let outcomes = client.outcomes();
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

/// Checks that each response ends its request with a local error, in every revision.
fn check_invalid_responses(answers: &[Value]) {
    for revision in all_revisions() {
        for answer in answers {
            let outcomes = outcomes_after(revision, answer);
            let [Outcome::Error(error)] = &outcomes[..] else {
                panic!("{revision} {answer}: {outcomes:?}");
            };
            assert!(error.is_local(), "{revision} {answer}: {error}");
        }
    }
}

/// A response with both `result` and `error` ends its request with a local error.
#[test]
fn responses_with_result_and_error_fail() {
    let error = json!({ "code": 1, "message": "m" });
    check_invalid_responses(&[
        json!({ "result": {}, "error": error }),
        json!({ "result": { "tools": [] }, "error": error }),
    ]);
    // What a program says cannot make one of both.
    let mut server = server("2025-06-18");
    let key = server.serve(&list_request("2025-06-18", json!(1))).key;
    let body = json!({ "tools": [], "error": { "code": 1, "message": "m" } });
    let answer = server.reply(key, Reply::Result(to_result(body))).remove(0);
    assert!(answer.get("error").is_none() && answer.get("result").is_some());
}

/// A response with neither `result` nor `error` is a violation and delivers no result.
#[test]
fn responses_without_result_are_ignored() {
    // Neither of the two is no answer: nothing counts as one, and the request is still ended by its deadline.
    for revision in all_revisions() {
        let mut client = connected_client(revision);
        let (key, sent) = client.request("tools/list", json!(null));
        client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"] }));
        let events = client.events();
        assert!(
            matches!(
                events.first(),
                Some(ClientEvent::Violation(Violation::InvalidMessage(_)))
            ),
            "{revision}: {events:?}"
        );
        let done =
            |event: &ClientEvent| matches!(event, ClientEvent::Completed(_, Outcome::Result(_)));
        assert!(!events.iter().any(done), "{revision}");
        let deadline = client.endpoint.poll_timeout();
        deadline
            .into_iter()
            .for_each(|deadline| client.endpoint.handle_timeout(deadline));
        let ended = events
            .iter()
            .chain(&client.events())
            .filter(|event| matches!(event, ClientEvent::Completed(..)))
            .count();
        assert_eq!(ended, 1, "{revision} {key:?}");
        // Every reply of a program is one of the two.
        let mut server = server(revision);
        for reply in [empty_tool_list(), Reply::Error(PeerError::internal("m"))] {
            let key = server.serve(&list_request(revision, json!(1))).key;
            let answer = server.reply(key, reply).remove(0);
            assert_ne!(
                answer.get("result").is_some(),
                answer.get("error").is_some()
            );
        }
    }
}

/// An error response whose code is not an integer ends its request with a local error.
#[test]
fn error_codes_are_integers() {
    let error = |code: Value| json!({ "error": { "code": code, "message": "m" } });
    check_invalid_responses(&[
        error(json!("-32602")),
        error(json!(1.5)),
        error(json!(null)),
        error(json!(true)),
    ]);
    for revision in all_revisions() {
        let outcomes = outcomes_after(revision, &error(json!(-7)));
        assert!(
            matches!(&outcomes[..], [Outcome::Error(e)] if e.code() == Some(-7) && !e.is_local())
        );
    }
}

/// An error without code or message ends its request with a local error; errors of a server have both.
#[test]
fn errors_have_code_and_message() {
    check_invalid_responses(&[
        json!({ "error": { "code": 1 } }),
        json!({ "error": { "message": "m" } }),
        json!({ "error": {} }),
        json!({ "error": "m" }),
        json!({ "error": null }),
    ]);
    for revision in all_revisions() {
        let mut server = server(revision);
        let unknown = request_of_revision(revision, 1, "nothing", json!({}), json!({}));
        let mut errors = server.send(&unknown);
        let key = server.serve(&list_request(revision, json!(2))).key;
        errors.extend(server.reply(key, PeerError::new(5, "")));
        for error in errors {
            assert!(error["error"]["code"].is_i64() && error["error"]["message"].is_string());
        }
    }
}

/// A request with the method of a notification is refused and not delivered as a notification.
#[test]
fn notifications_with_id_are_refused() {
    for revision in all_revisions() {
        let mut server = server(revision);
        for method in [
            "notifications/initialized",
            "notifications/cancelled",
            "notifications/progress",
        ] {
            let message = request_of_revision(revision, 1, method, json!({}), json!({}));
            assert_eq!(
                server.send(&message)[0]["error"]["code"],
                -32601,
                "{revision} {method}"
            );
        }
        let mut client = connected_client(revision);
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "notifications/message", "params": { "level": "info", "data": 1 } });
        let answers = client.send(&message);
        match lifecycle(revision) {
            Some(Lifecycle::Initialize) => {
                assert_eq!(answers[0]["error"]["code"], -32601, "{revision}")
            }
            _ => assert!(answers.is_empty()),
        }
        assert!(
            !client
                .events()
                .iter()
                .any(|event| matches!(event, ClientEvent::Log { .. }))
        );
    }
}

#[test]
fn notifications_are_never_answered() {
    let notifications = [
        json!({ "method": "notifications/unknown" }),
        json!({ "method": "notifications/cancelled" }),
        json!({ "method": "notifications/cancelled", "params": { "requestId": {} } }),
        json!({ "method": "notifications/progress", "params": {} }),
        json!({ "method": "notifications/initialized" }),
        json!({ "method": "tools/list" }),
        json!({ "method": "ping" }),
        json!({ "method": "notifications/message", "params": { "level": "loud" } }),
        json!({ "method": "notifications/tools/list_changed", "params": { "_meta": 5 } }),
    ];
    for revision in all_revisions() {
        let mut fresh = CheckedServer::new(server_config(&[revision]), revision);
        let (mut server, mut client) = (server(revision), connected_client(revision));
        for notification in &notifications {
            let mut message = notification.clone();
            message["jsonrpc"] = json!("2.0");
            assert!(fresh.send(&message).is_empty(), "{revision} {message}");
            assert!(server.send(&message).is_empty(), "{revision} {message}");
            assert!(client.send(&message).is_empty(), "{revision} {message}");
        }
    }
}

#[test]
fn invalid_utf8_is_refused() {
    // Invalid, overlong, a lone half of a pair, beyond the last character.
    let bad: [&[u8]; 4] = [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"];
    for revision in all_revisions() {
        let mut server = server(revision);
        let mut client = connected_client(revision);
        for bytes in bad {
            let frame = [b"{\"jsonrpc\":\"2.0\",\"method\":\"", bytes, b"\"}"].concat();
            let now = server.now;
            server
                .endpoint
                .receive(StreamId::DUPLEX, &frame, FrameContext::new(()), now)
                .expect("open");
            check_answer_without_id(revision, &server.take_messages(), -32700);
            assert_eq!(server.violations().len(), 1);
            client
                .endpoint
                .receive(StreamId::DUPLEX, &frame, now)
                .expect("open");
            client.take_messages();
            assert_eq!(client.violations().len(), 1);
        }
        // The session goes on, and says what it says in UTF-8.
        let key = server
            .serve(&list_request(revision, json!("\u{e9}\u{1f600}")))
            .key;
        let answer = server.reply(key, empty_tool_list()).remove(0);
        assert_eq!(answer["id"], "\u{e9}\u{1f600}");
    }
}

/// Error responses of a server match the schema definitions of their error codes.
#[test]
fn errors_match_their_definitions() {
    let revision = "2026-07-28";
    let oracle = mcp_exact_tests_support::Oracle::new(&schema_documents()[revision]);
    let fits = |definition: &str, message: &Value| {
        let errors = oracle.errors(definition, &message["error"]);
        assert!(errors.is_empty(), "{definition}: {message} {errors:?}");
    };
    let mut server = server(revision);
    let mut old = list_request(revision, json!(1));
    old["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("1900-01-01");
    let unsupported = server.send(&old).remove(0);
    assert_eq!(unsupported["error"]["code"], -32022);
    assert!(unsupported["error"]["data"]["supported"].is_array());
    let key = server.serve(&list_request(revision, json!(1))).key;
    let missing = server
        .reply(key, PeerError::missing_capability("sampling.tools"))
        .remove(0);
    assert_eq!(missing["error"]["code"], -32021);
    let required = &missing["error"]["data"]["requiredCapabilities"];
    let capabilities = oracle.errors("ClientCapabilities", required);
    assert!(capabilities.is_empty(), "{capabilities:?}");
    for (definition, message) in [
        ("ParseError", server.send_text("{").remove(0)),
        (
            "InvalidRequestError",
            server.send(&json!({ "jsonrpc": "2.0", "id": 1 })).remove(0),
        ),
        (
            "MethodNotFoundError",
            server
                .send(&request_of_revision(
                    revision,
                    1,
                    "nothing",
                    json!({}),
                    json!({}),
                ))
                .remove(0),
        ),
        (
            "InvalidParamsError",
            server
                .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
                .remove(0),
        ),
    ] {
        fits(definition, &message);
    }
    let mut posts = HttpServerHarness::new(server_config(&[revision]), revision, json!({}));
    let headers = [("MCP-Protocol-Version", revision)];
    let (_, mismatch) = posts.status_of_post(&headers, &list_request(revision, json!(1)));
    assert_eq!(mismatch["error"]["code"], -32020);
}

/// No error constant of the session crate except `RESOURCE_NOT_FOUND` is between -32019 and -32000.
#[test]
fn legacy_error_codes_are_not_allocated() {
    let source = include_str!("../../../../../crates/mcp-exact-session/src/error.rs");
    let codes = source.lines().filter_map(|line| {
        let (name, code) = line
            .trim()
            .strip_prefix("pub const ")?
            .split_once(": i64 = ")?;
        Some((name, code.trim_end_matches(';').parse::<i64>().ok()?))
    });
    let codes: Vec<(&str, i64)> = codes.collect();
    assert!(codes.len() >= 9, "{codes:?}");
    for (name, code) in codes {
        let legacy = (-32019..=-32000).contains(&code);
        assert_eq!(legacy, name == "RESOURCE_NOT_FOUND", "{name} {code}");
    }
}

/// An error code between -32019 and -32000 is passed to the application unchanged and is no evidence about the server's
/// lifecycle.
#[test]
fn legacy_error_codes_have_no_meaning() {
    let revision = "2026-07-28";
    for code in -32019..=-32000 {
        let outcomes = outcomes_after(
            revision,
            &json!({ "error": { "code": code, "message": "m", "data": { "supported": ["2025-11-25"] } } }),
        );
        assert!(
            matches!(&outcomes[..], [Outcome::Error(e)] if e.code() == Some(code) && !e.is_local())
        );
        // Nor do they say anything about the server's lifecycle: any error but the modern ones means the same.
        let all = revisions_newest_first();
        let mut client = RawClient::new(client_config(&all));
        let probe = client.take_messages().remove(0);
        let error = json!({ "code": code, "message": "m" });
        let next = client.send(&json!({ "jsonrpc": "2.0", "id": probe["id"], "error": error }));
        assert_eq!(
            next[0]["params"]["protocolVersion"],
            newest_of_lifecycle(Lifecycle::Initialize),
            "{code}"
        );
    }
}

/// A server of a revision without handshake sends neither pings nor input requests as JSON-RPC requests.
#[test]
fn discover_server_sends_no_requests() {
    let revision = "2026-07-28";
    let mut server = server(revision);
    let now = server.now;
    assert!(
        server
            .endpoint
            .ping(RequestTimeout::default(), now)
            .is_err()
    );
    let schema = json!({ "type": "object", "properties": {} });
    let elicit = json!({ "message": "m", "requestedSchema": schema });
    let message = json!({ "role": "user", "content": { "type": "text", "text": "?" } });
    let sample = json!({ "messages": [message], "maxTokens": 5 });
    let capabilities = json!({ "elicitation": {}, "sampling": {}, "roots": {} });
    for (method, params) in [
        ("elicitation/create", elicit),
        ("sampling/createMessage", sample),
        ("roots/list", json!({})),
    ] {
        let call = request_of_revision(
            revision,
            1,
            "tools/call",
            json!({ "name": "x" }),
            capabilities.clone(),
        );
        let key = server.serve(&call).key;
        let asks = vec![(
            "q".to_owned(),
            InputRequest::new(method, Some(to_object(params))),
        )];
        let sent = server.reply(
            key,
            Reply::InputRequired {
                requests: asks,
                state: None,
            },
        );
        // One message, and that is the result of the request: MRTR embedded-only.
        assert_eq!(sent.len(), 1, "{method}");
        assert!(sent[0].get("method").is_none());
        assert_eq!(sent[0]["result"]["inputRequests"]["q"]["method"], method);
    }
    // A client answers none.
    let mut client = connected_client(revision);
    for method in ["roots/list", "ping", "sampling/createMessage", "x"] {
        assert!(
            client
                .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": method }))
                .is_empty()
        );
        assert!(matches!(client.violations()[..], [Violation::Method(_)]));
    }
}
