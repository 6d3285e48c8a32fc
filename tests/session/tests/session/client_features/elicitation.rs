//! Requirements of `docs/requirements.toml` on requests of a server to its client: elicitation and sampling
//! (`client/elicitation`, `client/sampling`).

use mcp_exact_tests_session::*;

/// Method of elicitations.
const ELICITATION_METHOD: &str = "elicitation/create";
/// Method of sampling requests.
const SAMPLING_METHOD: &str = "sampling/createMessage";
/// Latest revision with a handshake.
const LAST_HANDSHAKE_REVISION: &str = "2025-11-25";

/// Returns the params of an elicitation by form.
fn form_params() -> Value {
    json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } })
}

/// Returns the params of an elicitation by URL in a revision.
fn url_params(revision: &str) -> Value {
    let mut params = json!({ "mode": "url", "message": "m", "url": "https://x.example/" });
    if revision == LAST_HANDSHAKE_REVISION {
        params["elicitationId"] = json!("e-1");
    }
    params
}

/// Returns the params of a sampling request, with additional members.
fn sampling_params(more: Value) -> Value {
    let mut params = json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "?" } }], "maxTokens": 1 });
    more.as_object()
        .into_iter()
        .flatten()
        .for_each(|(name, value)| params[name] = value.clone());
    params
}

/// Answers a client's tool call with an input request; returns the sent input request, or the error with which the
/// server endpoint refuses it.
fn send_input_request(
    revision: &str,
    capabilities: Value,
    method: &str,
    params: Value,
) -> Result<Value, SendError> {
    let mut server =
        CheckedServer::with_session(server_config(&[revision]), revision, capabilities.clone());
    let key = server
        .serve(&request_of_revision(
            revision,
            1,
            "tools/call",
            json!({ "name": "x" }),
            capabilities,
        ))
        .key;
    let asks = vec![(
        "q".to_owned(),
        InputRequest::new(method, Some(to_object(params))),
    )];
    let sent = server.endpoint.reply(
        key,
        Reply::InputRequired {
            requests: asks,
            state: None,
        },
        Time::ZERO,
    );
    let mut left = server.take_messages();
    assert_eq!(left.len(), usize::from(sent.is_ok()));
    sent.map(|_| match revision {
        DISCOVER_REVISION => left.remove(0)["result"]["inputRequests"]["q"].take(),
        _ => left.remove(0),
    })
}

/// Delivers a server request to a client with these capabilities; returns the request that its application receives, or
/// the code of the error with which the client responds.
fn send_server_request(
    revision: &str,
    capabilities: Value,
    method: &str,
    params: Value,
) -> Result<mcp_exact_session::ServerRequest, Option<i64>> {
    let mut config = client_config(&[revision]);
    config.capabilities = to_object(capabilities);
    let mut client = CheckedClient::connected(config, revision, json!({ "tools": {} }));
    let question = json!({ "method": method, "params": params });
    if !has_handshake(revision) {
        let (_, sent) = client.request("tools/call", json!({ "name": "x" }));
        let body = json!({ "resultType": "input_required", "inputRequests": { "q": question } });
        assert!(
            client
                .send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }))
                .is_empty()
        );
        for event in client.events() {
            match event {
                ClientEvent::Request { request: ask, .. } => return Ok(ask),
                ClientEvent::Completed(_, Outcome::Error(error)) => return Err(error.code()),
                _ => {}
            }
        }
        panic!("neither asked nor ended");
    }
    let mut message = question;
    message["jsonrpc"] = json!("2.0");
    message["id"] = json!(1);
    let answers = client.send(&message);
    match client.server_requests().pop() {
        Some((_, ask)) => Ok(ask),
        None => Err(answers[0]["error"]["code"].as_i64()),
    }
}

/// An elicitation without `mode` is a form elicitation, for which a client must have declared form mode; `"mode": null`
/// is invalid.
#[test]
fn absent_elicitation_mode_means_form() {
    for revision in [LAST_HANDSHAKE_REVISION, DISCOVER_REVISION] {
        let asked_form = |capabilities| {
            send_server_request(revision, capabilities, ELICITATION_METHOD, form_params())
        };
        assert!(
            asked_form(json!({ "elicitation": {} })).is_ok(),
            "{revision}"
        );
        assert!(asked_form(json!({ "elicitation": { "form": {} } })).is_ok());
        let url_only = asked_form(json!({ "elicitation": { "url": {} } }));
        assert_eq!(
            url_only.map(|_| ()),
            Err(Some(-32602)),
            "{revision}: a form"
        );
        let mut null = form_params();
        null["mode"] = json!(null);
        let refused = send_server_request(
            revision,
            json!({ "elicitation": {} }),
            ELICITATION_METHOD,
            null,
        );
        assert_eq!(refused.map(|_| ()), Err(Some(-32602)), "{revision}");
    }
    let ask = send_server_request(
        LAST_HANDSHAKE_REVISION,
        json!({ "elicitation": {} }),
        ELICITATION_METHOD,
        form_params(),
    )
    .expect("asked");
    assert!(ask.typed().is_ok());
}

/// A server sends an elicitation only in a mode that the client has declared.
#[test]
fn only_declared_modes_are_sent() {
    for revision in [LAST_HANDSHAKE_REVISION, DISCOVER_REVISION] {
        for (modes, form_leaves, url_leaves) in [
            (json!({}), true, false),
            (json!({ "form": {} }), true, false),
            (json!({ "url": {} }), false, true),
            (json!({ "form": {}, "url": {} }), true, true),
        ] {
            let capabilities = json!({ "elicitation": modes });
            assert_eq!(
                send_input_request(
                    revision,
                    capabilities.clone(),
                    ELICITATION_METHOD,
                    form_params()
                )
                .is_ok(),
                form_leaves,
                "{revision} {modes}"
            );
            assert_eq!(
                send_input_request(
                    revision,
                    capabilities,
                    ELICITATION_METHOD,
                    url_params(revision)
                )
                .is_ok(),
                url_leaves,
                "{revision} {modes}"
            );
        }
        for params in [form_params(), url_params(revision)] {
            let refused = send_input_request(revision, json!({}), ELICITATION_METHOD, params);
            assert!(
                matches!(refused, Err(SendError::Capability { .. })),
                "{revision}: {refused:?}"
            );
        }
    }
}

/// Checks that an input request with the params `bad` is neither sent by a server nor accepted by a client, although
/// the client supports its method.
fn check_refused(revision: &str, method: &str, bad: &Value) {
    let able = json!({ "elicitation": { "form": {}, "url": {} }, "sampling": { "tools": {} } });
    let sent = send_input_request(revision, able.clone(), method, bad.clone());
    assert!(
        matches!(sent, Err(SendError::Params { .. })),
        "{revision} {bad}: {sent:?}"
    );
    let taken = send_server_request(revision, able, method, bad.clone());
    assert_eq!(taken.map(|_| ()), Err(Some(-32602)), "{revision} {bad}");
}

/// The params of a form elicitation are sent unchanged, with and without `mode`.
#[test]
fn form_params_are_sent_unchanged() {
    for revision in [LAST_HANDSHAKE_REVISION, DISCOVER_REVISION] {
        let mut spelt = form_params();
        spelt["mode"] = json!("form");
        for params in [form_params(), spelt] {
            let sent = send_input_request(
                revision,
                json!({ "elicitation": {} }),
                ELICITATION_METHOD,
                params.clone(),
            )
            .expect("it leaves");
            assert_eq!(sent["params"], params, "{revision}");
        }
        check_refused(revision, ELICITATION_METHOD, &json!({ "message": "m" }));
        check_refused(
            revision,
            ELICITATION_METHOD,
            &json!({ "message": "m", "requestedSchema": null }),
        );
        check_refused(
            revision,
            ELICITATION_METHOD,
            &json!({ "message": "m", "mode": "form" }),
        );
    }
}

/// An elicitation without a `message` string is neither sent by a server nor accepted by a client.
#[test]
fn elicitation_without_message_is_refused() {
    for revision in [LAST_HANDSHAKE_REVISION, DISCOVER_REVISION] {
        for params in [form_params(), url_params(revision)] {
            let mut bad = params.clone();
            bad.as_object_mut().expect("an object").remove("message");
            check_refused(revision, ELICITATION_METHOD, &bad);
            bad["message"] = json!(5);
            check_refused(revision, ELICITATION_METHOD, &bad);
        }
    }
}

/// A URL elicitation that lacks a required member is neither sent nor accepted.
#[test]
fn url_elicitation_has_required_members() {
    for revision in [LAST_HANDSHAKE_REVISION, DISCOVER_REVISION] {
        let able = json!({ "elicitation": { "url": {} } });
        let sent = send_input_request(revision, able, ELICITATION_METHOD, url_params(revision))
            .expect("it leaves");
        assert_eq!(sent["params"], url_params(revision));
        let mut lacking = vec!["url", "message"];
        if revision == LAST_HANDSHAKE_REVISION {
            lacking.push("elicitationId");
        }
        for name in lacking {
            let mut bad = url_params(revision);
            bad.as_object_mut().expect("an object").remove(name);
            check_refused(revision, ELICITATION_METHOD, &bad);
        }
    }
}

/// The configuration of a client is refused if its elicitation capability contains an unknown mode only, or is
/// malformed.
#[test]
fn client_declares_a_known_mode() {
    for (modes, good) in [
        (json!({}), true),
        (json!({ "form": {} }), true),
        (json!({ "url": {} }), true),
        (json!({ "voice": {} }), false),
        (json!({ "form": false }), false),
        (json!(true), false),
    ] {
        let mut config = client_config(&all_revisions());
        config.capabilities = to_object(json!({ "elicitation": modes }));
        let expected = if good {
            Ok(())
        } else {
            Err(ConfigError::NoElicitationMode)
        };
        assert_eq!(config.build().map(|_| ()), expected, "{modes}");
    }
}

/// A client answers an elicitation in an undeclared mode with -32602 (invalid params).
#[test]
fn undeclared_mode_gets_invalid_params() {
    for (modes, params) in [
        (json!({}), url_params(LAST_HANDSHAKE_REVISION)),
        (json!({ "form": {} }), url_params(LAST_HANDSHAKE_REVISION)),
        (json!({ "url": {} }), form_params()),
    ] {
        let answered = send_server_request(
            LAST_HANDSHAKE_REVISION,
            json!({ "elicitation": modes }),
            ELICITATION_METHOD,
            params,
        );
        assert_eq!(answered.map(|_| ()), Err(Some(-32602)), "{modes}");
    }
}

/// Creates a `notifications/elicitation/complete` message with this elicitation id.
fn completion_notification(id: &Value) -> Value {
    let params = json!({ "elicitationId": id });
    json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params })
}

/// Creates a server of 2025-11-25 whose client supports URL elicitation.
fn server_with_url_client() -> CheckedServer {
    let capabilities = json!({ "elicitation": { "url": {} } });
    CheckedServer::with_session(
        server_config(&[LAST_HANDSHAKE_REVISION]),
        LAST_HANDSHAKE_REVISION,
        capabilities,
    )
}

/// Sends `notifications/elicitation/complete` with these params.
fn send_completion(server: &mut CheckedServer, params: Value) -> Result<SendOutcome, SendError> {
    let method = "notifications/elicitation/complete";
    server
        .endpoint
        .notify(Scope::Peer, method, Some(to_object(params)))
}

/// A server sends the completion of an elicitation, with the id unchanged, only to the client that received the
/// elicitation.
#[test]
fn completion_goes_to_elicited_client() {
    let id = json!(" {\"\u{e9}\"}\n");
    let mut params = url_params(LAST_HANDSHAKE_REVISION);
    params["elicitationId"] = id.clone();
    let mut server = server_with_url_client();
    let key = server
        .serve(&request_of_revision(
            LAST_HANDSHAKE_REVISION,
            1,
            "tools/call",
            json!({ "name": "x" }),
            json!({}),
        ))
        .key;
    let asks = vec![(
        "q".to_owned(),
        InputRequest::new(ELICITATION_METHOD, Some(to_object(params))),
    )];
    server.reply(
        key,
        Reply::InputRequired {
            requests: asks,
            state: None,
        },
    );
    // Another session was not asked.
    let mut other = server_with_url_client();
    let refused = send_completion(&mut other, json!({ "elicitationId": id }));
    assert!(
        matches!(refused, Err(SendError::Params { .. })),
        "{refused:?}"
    );
    for bad in [
        json!({}),
        json!({ "elicitationId": "other" }),
        json!({ "elicitationId": 5 }),
    ] {
        assert!(matches!(
            send_completion(&mut server, bad),
            Err(SendError::Params { .. })
        ));
    }
    assert!(server.take_messages().is_empty() && other.take_messages().is_empty());
    assert_eq!(
        send_completion(&mut server, json!({ "elicitationId": id })),
        Ok(SendOutcome::Queued)
    );
    assert_eq!(server.take_messages(), [completion_notification(&id)]);
    // Once.
    assert!(send_completion(&mut server, json!({ "elicitationId": id })).is_err());
}

/// A client's application receives no completion of an elicitation that is unknown or already completed.
#[test]
fn completion_of_unknown_elicitation_is_ignored() {
    let ids = [
        json!("e-1"),
        json!(""),
        json!("{\"a\": 1}"),
        json!("a b\n\u{e9}"),
        // The longest that is remembered.
        json!("x".repeat(Limits::default().name_bytes)),
    ];
    let mut client = CheckedClient::connected(
        client_config(&[LAST_HANDSHAKE_REVISION]),
        LAST_HANDSHAKE_REVISION,
        json!({ "tools": {} }),
    );
    for id in &ids {
        // Not asked yet.
        assert!(
            client.send(&completion_notification(id)).is_empty() && client.events().is_empty(),
            "{id}"
        );
        let mut params = url_params(LAST_HANDSHAKE_REVISION);
        params["elicitationId"] = id.clone();
        client.send(
            &json!({ "jsonrpc": "2.0", "id": "q", "method": ELICITATION_METHOD, "params": params }),
        );
        let ask = client.server_requests().remove(0).0;
        client.answer_server_request(ask, json!({ "action": "accept" }));
        client.send(&completion_notification(id));
        let events = client.events();
        let [ClientEvent::Notification(heard)] = &events[..] else {
            panic!("{id}: {events:?}");
        };
        let named = heard
            .params()
            .and_then(|params| params.get("elicitationId"));
        assert_eq!(
            named
                .map(|named| named.parse::<Value>().expect("JSON"))
                .as_ref(),
            Some(id)
        );
        // Completed already.
        assert!(client.send(&completion_notification(id)).is_empty() && client.events().is_empty());
    }
    // The error that demands an elicitation establishes its id as well.
    let (_, sent) = client.request("tools/call", json!({ "name": "x" }));
    let error = json!({ "code": -32042, "message": "m", "data": { "elicitations": [url_params(LAST_HANDSHAKE_REVISION)] } });
    client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "error": error }));
    client.events();
    client.send(&completion_notification(&json!("e-1")));
    assert!(matches!(
        client.events()[..],
        [ClientEvent::Notification(_)]
    ));
    assert!(
        client
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/elicitation/complete" }))
            .is_empty()
    );
}

/// Creates the error -32042 (`URLElicitationRequired`) with these elicitations.
fn elicitation_required_error(elicitations: Value) -> PeerError {
    let data = Json::from(json!({ "elicitations": elicitations }));
    PeerError::new(code::URL_ELICITATION_REQUIRED, "first").with_data(data)
}

/// Delivers a tool call to the server; returns its key.
fn receive_call(server: &mut CheckedServer, revision: &str) -> RequestKey {
    let capabilities = json!({ "elicitation": { "url": {} } });
    server
        .serve(&request_of_revision(
            revision,
            1,
            "tools/call",
            json!({ "name": "x" }),
            capabilities,
        ))
        .key
}

/// The error -32042 is sent with the elicitations that the application lists.
#[test]
fn elicitation_required_error_lists_elicitations() {
    let mut server = server_with_url_client();
    let key = receive_call(&mut server, LAST_HANDSHAKE_REVISION);
    let mut second = url_params(LAST_HANDSHAKE_REVISION);
    second["elicitationId"] = json!("e-2");
    let listed = json!([url_params(LAST_HANDSHAKE_REVISION), second]);
    let answer = server
        .reply(key, elicitation_required_error(listed.clone()))
        .remove(0);
    assert_eq!(answer["error"]["code"], -32042);
    assert_eq!(answer["error"]["data"]["elicitations"], listed);
    let oracle = mcp_exact_tests_support::Oracle::new(&schema_documents()[LAST_HANDSHAKE_REVISION]);
    let errors = oracle.errors("URLElicitationRequiredError", &answer);
    assert!(errors.is_empty(), "{errors:?}");
    // What was demanded can be completed.
    assert_eq!(
        send_completion(&mut server, json!({ "elicitationId": "e-2" })),
        Ok(SendOutcome::Queued)
    );
}

/// The error -32042 is refused if its list of elicitations is empty or contains an invalid elicitation.
#[test]
fn invalid_elicitation_required_errors_are_refused() {
    let mut without_id = url_params(LAST_HANDSHAKE_REVISION);
    without_id
        .as_object_mut()
        .expect("an object")
        .remove("elicitationId");
    let mut without_mode = url_params(LAST_HANDSHAKE_REVISION);
    without_mode
        .as_object_mut()
        .expect("an object")
        .remove("mode");
    let mut server = server_with_url_client();
    let key = receive_call(&mut server, LAST_HANDSHAKE_REVISION);
    for bad in [
        elicitation_required_error(json!([])),
        elicitation_required_error(json!([form_params()])),
        elicitation_required_error(json!([url_params(LAST_HANDSHAKE_REVISION), form_params()])),
        elicitation_required_error(json!([without_id])),
        elicitation_required_error(json!([without_mode])),
        elicitation_required_error(json!("x")),
        PeerError::new(-32042, "no elicitation at all"),
    ] {
        let sent = server.endpoint.reply(key, bad.clone(), Time::ZERO);
        assert!(
            matches!(sent, Err(SendError::Params { .. })),
            "{bad}: {sent:?}"
        );
    }
    assert!(
        server.take_messages().is_empty(),
        "and the request still waits"
    );
    assert_eq!(server.reply(key, PeerError::internal("no")).len(), 1);
    // Nor of a client that has no such mode, nor in a revision that has no such error.
    let mut form_only = CheckedServer::with_session(
        server_config(&[LAST_HANDSHAKE_REVISION]),
        LAST_HANDSHAKE_REVISION,
        json!({ "elicitation": {} }),
    );
    let key = receive_call(&mut form_only, LAST_HANDSHAKE_REVISION);
    let sent = form_only.endpoint.reply(
        key,
        elicitation_required_error(json!([url_params(LAST_HANDSHAKE_REVISION)])),
        Time::ZERO,
    );
    assert!(
        matches!(sent, Err(SendError::Capability { .. })),
        "{sent:?}"
    );
    let mut new = CheckedServer::with_session(
        server_config(&[DISCOVER_REVISION]),
        DISCOVER_REVISION,
        json!({}),
    );
    let key = receive_call(&mut new, DISCOVER_REVISION);
    let answer = new
        .reply(
            key,
            elicitation_required_error(json!([url_params(LAST_HANDSHAKE_REVISION)])),
        )
        .remove(0);
    assert_eq!(answer["error"]["code"], -32603);
}

/// Every response to an elicitation, including declined and invalid responses, is delivered unchanged to the server's
/// application.
#[test]
fn every_elicitation_response_is_delivered() {
    for response in [
        json!({ "action": "accept", "content": {} }),
        json!({ "action": "decline" }),
        json!({ "action": "cancel" }),
        json!({ "action": "shrug", "content": 5 }),
        json!({}),
    ] {
        let mut server = CheckedServer::with_session(
            server_config(&[DISCOVER_REVISION]),
            DISCOVER_REVISION,
            json!({}),
        );
        let params = json!({ "name": "x", "inputResponses": { "q": response } });
        let request = server.serve(&request_of_revision(
            DISCOVER_REVISION,
            1,
            "tools/call",
            params,
            json!({ "elicitation": {} }),
        ));
        let answer = request.responses.result("q").expect("it came");
        assert_eq!(to_value(answer.object()), response);
        // The application goes on as it likes: it asks again, or it ends.
        let asks = vec![(
            "q".to_owned(),
            InputRequest::new(ELICITATION_METHOD, Some(to_object(form_params()))),
        )];
        let again = server
            .reply(
                request.key,
                Reply::InputRequired {
                    requests: asks,
                    state: None,
                },
            )
            .remove(0);
        assert_eq!(again["result"]["resultType"], "input_required");
    }
    // No answer at all raises the request as well, and what is not an object is refused.
    let mut server = CheckedServer::with_session(
        server_config(&[DISCOVER_REVISION]),
        DISCOVER_REVISION,
        json!({}),
    );
    let params = json!({ "name": "x", "inputResponses": {} });
    let request = server.serve(&request_of_revision(
        DISCOVER_REVISION,
        1,
        "tools/call",
        params,
        json!({}),
    ));
    assert!(request.responses.is_empty());
    for bad in [json!([]), json!(5), json!({ "q": 5 }), json!({ "q": null })] {
        let params = json!({ "name": "x", "inputResponses": bad });
        let answers = server.send(&request_of_revision(
            DISCOVER_REVISION,
            2,
            "tools/call",
            params,
            json!({}),
        ));
        assert_eq!(answers[0]["error"]["code"], -32602, "{bad}");
    }
}

/// A sampling request with a message without a valid role or content is neither sent nor accepted.
#[test]
fn sampling_messages_have_role_and_content() {
    let content = json!({ "type": "text", "text": "t" });
    for bad in [
        json!([{ "content": content }]),
        json!([{ "role": "user" }]),
        json!([{ "role": 5, "content": content }]),
        json!([{ "role": "user", "content": "text" }]),
        json!(["text"]),
        json!({}),
    ] {
        check_refused(
            DISCOVER_REVISION,
            SAMPLING_METHOD,
            &sampling_params(json!({ "messages": bad })),
        );
    }
    let system = sampling_params(json!({ "messages": [{ "role": "system", "content": content }] }));
    let sent = send_input_request(
        DISCOVER_REVISION,
        json!({ "sampling": {} }),
        SAMPLING_METHOD,
        system,
    );
    assert!(matches!(sent, Err(SendError::Params { .. })), "{sent:?}");
    for role in ["user", "assistant"] {
        let good = sampling_params(json!({ "messages": [{ "role": role, "content": content }] }));
        assert!(
            send_input_request(
                DISCOVER_REVISION,
                json!({ "sampling": {} }),
                SAMPLING_METHOD,
                good
            )
            .is_ok()
        );
    }
}

/// A sampling request with `tools` or `toolChoice` is neither sent nor accepted if the client has not declared
/// `sampling.tools`.
#[test]
fn sampling_tools_need_their_capability() {
    let tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
    for revision in [LAST_HANDSHAKE_REVISION, DISCOVER_REVISION] {
        for more in [
            json!({ "tools": [tool] }),
            json!({ "tools": [] }),
            json!({ "toolChoice": { "mode": "auto" } }),
        ] {
            let sent = send_input_request(
                revision,
                json!({ "sampling": {} }),
                SAMPLING_METHOD,
                sampling_params(more.clone()),
            );
            assert!(
                matches!(sent, Err(SendError::Capability { .. })),
                "{revision} {more}: {sent:?}"
            );
            let able = json!({ "sampling": { "tools": {} } });
            assert!(
                send_input_request(
                    revision,
                    able.clone(),
                    SAMPLING_METHOD,
                    sampling_params(more.clone())
                )
                .is_ok()
            );
            // The same at the client: an error without the capability, an input request with it.
            let refused = send_server_request(
                revision,
                json!({ "sampling": {} }),
                SAMPLING_METHOD,
                sampling_params(more.clone()),
            );
            assert_eq!(refused.map(|_| ()), Err(Some(-32602)), "{revision} {more}");
            assert!(
                send_server_request(revision, able, SAMPLING_METHOD, sampling_params(more)).is_ok()
            );
        }
        // What is configured is declared.
        let mut client =
            CheckedClient::connected(client_config(&[revision]), revision, json!({ "tools": {} }));
        let declared = match revision {
            DISCOVER_REVISION => {
                let (_, sent) = client.request("tools/list", json!(null));
                sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
            }
            _ => RawClient::new(client_config(&[revision])).take_messages()[0]["params"]["capabilities"]
                .clone(),
        };
        assert_eq!(declared["sampling"], json!({ "tools": {} }), "{revision}");
    }
}
