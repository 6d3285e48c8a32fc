//! Escaped and unescaped strings are equal (RFC 8259, section 7): strings are compared after unescaping.

use mcp_exact_tests_session::*;

/// Returns a text in which every character is written as a `\u` escape.
fn escape_all(text: &str) -> String {
    let letters = text.chars().map(|c| format!("\\u{:04x}", u32::from(c)));
    letters.collect()
}

/// `"mode":"\u0075rl"` is an elicitation by URL: if the client has not declared URL mode, the elicitation is neither
/// sent nor delivered.
#[test]
fn escaped_mode_needs_the_capability() {
    let params = format!(
        r#"{{"mode":"{}","message":"m","url":"https://example.com","elicitationId":"e"}}"#,
        escape_all("url")
    );
    // The server's own request, and its input request.
    for capabilities in [
        json!({ "elicitation": {} }),
        json!({ "elicitation": { "form": {} } }),
    ] {
        let mut server = CheckedServer::with_session(
            server_config(&["2025-11-25"]),
            "2025-11-25",
            capabilities.clone(),
        );
        let parsed = || Some(params.parse().expect("an object"));
        let sent = server.endpoint.request(
            Scope::Peer,
            "elicitation/create",
            parsed(),
            CallOptions::default(),
            Time::ZERO,
        );
        assert!(
            matches!(sent, Err(SendError::Capability { .. })),
            "{sent:?}"
        );
        for revision in ["2025-11-25", DISCOVER_REVISION] {
            let mut server = CheckedServer::with_session(
                server_config(&[revision]),
                revision,
                capabilities.clone(),
            );
            let request = request_of_revision(
                revision,
                1,
                "tools/call",
                json!({ "name": "x" }),
                capabilities.clone(),
            );
            let key = server.serve(&request).key;
            let asks = vec![(
                "a".to_owned(),
                InputRequest::new("elicitation/create", parsed()),
            )];
            let sent = server.endpoint.reply(
                key,
                Reply::InputRequired {
                    requests: asks,
                    state: None,
                },
                Time::ZERO,
            );
            assert!(
                matches!(sent, Err(SendError::Capability { .. })),
                "{revision}: {sent:?}"
            );
        }
    }
    // What a client receives: as a request, and within a result.
    let mut config = client_config(&["2025-11-25"]);
    config.capabilities = to_object(json!({ "elicitation": {} }));
    let mut client = CheckedClient::connected(config.clone(), "2025-11-25", json!({ "tools": {} }));
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{params}}}"#);
    assert_eq!(client.send_text(&text)[0]["error"]["code"], -32602);
    assert!(client.server_requests().is_empty());
    config.offer = offer_of(&[DISCOVER_REVISION]);
    let mut client = CheckedClient::connected(config, DISCOVER_REVISION, json!({ "tools": {} }));
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"input_required","inputRequests":{{"a":{{"method":"elicitation/create","params":{params}}}}}}}}}"#,
        sent["id"]
    );
    client.send_text(&text);
    let outcomes = client.outcomes();
    assert!(
        matches!(&outcomes[..], [(done, Outcome::Error(_))] if *done == key),
        "{outcomes:?}"
    );
}

/// The name and value of `resultType` are compared after unescaping, in both directions.
#[test]
fn escaped_result_type_is_understood() {
    for (kind, name) in [
        (escape_all("complete"), "resultType".to_owned()),
        ("complete".to_owned(), escape_all("resultType")),
    ] {
        let mut client = discover_peers::client();
        let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"content":[],"{name}":"{kind}"}}}}"#,
            sent["id"]
        );
        client.send_text(&text);
        let outcomes = client.outcomes();
        assert!(
            matches!(&outcomes[..], [(done, Outcome::Result(_))] if *done == key),
            "{outcomes:?}"
        );
    }
    let required = escape_all("input_required");
    let mut client = discover_peers::client();
    let (_, sent) = client.request("tools/call", json!({ "name": "x" }));
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{},"result":{{"resultType":"{required}","inputRequests":{{"a":{{"method":"{}"}}}}}}}}"#,
        sent["id"],
        escape_all("roots/list")
    );
    client.send_text(&text);
    assert_eq!(client.server_requests().len(), 1);
    // A raw reply of the application.
    let mut server = discover_peers::server();
    let key = server
        .serve(&discover_peers::request(
            1,
            "tools/list",
            json!({}),
            json!({}),
        ))
        .key;
    let raw: JsonObject = format!(r#"{{"resultType":"{required}","inputRequests":{{}}}}"#)
        .parse()
        .expect("an object");
    let sent = server.endpoint.reply(key, RawResult::from(raw), Time::ZERO);
    assert!(
        matches!(sent, Err(SendError::ResultType { .. })),
        "{sent:?}"
    );
}

/// Methods, ids, tokens, levels and URIs are compared after unescaping.
#[test]
fn escaped_names_are_understood() {
    for revision in all_revisions() {
        let mut server =
            CheckedServer::with_session(server_config(&[revision]), revision, json!({}));
        let plain = request_of_revision(
            revision,
            "i",
            "tools/call",
            json!({ "name": "x", "_meta": { "progressToken": "t" } }),
            json!({}),
        );
        let text = plain.to_string();
        let text = text.replace(
            "\"tools/call\"",
            &format!("\"{}\"", escape_all("tools/call")),
        );
        let text = text.replace("\"t\"", &format!("\"{}\"", escape_all("t")));
        assert!(server.send_text(&text).is_empty(), "{revision}");
        let request = server.take_request();
        assert_eq!(request.method(), "tools/call");
        // The application reads the token and writes it as it likes.
        let progress = to_object(json!({ "progressToken": "t", "progress": 1 }));
        let sent = server.endpoint.notify(
            Scope::During(request.key),
            "notifications/progress",
            Some(progress),
        );
        assert_eq!(sent, Ok(SendOutcome::Queued), "{revision}");
        server.take_messages();
        let cancel = format!(
            r#"{{"jsonrpc":"2.0","method":"{}","params":{{"requestId":"{}"}}}}"#,
            escape_all("notifications/cancelled"),
            escape_all("i")
        );
        server.send_text(&cancel);
        assert!(
            matches!(server.events()[..], [ServerEvent::Cancelled { .. }]),
            "{revision}"
        );
    }
    let mut server =
        CheckedServer::with_session(server_config(&["2025-11-25"]), "2025-11-25", json!({}));
    let level = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{{"level":"{}"}}}}"#,
        escape_all("error")
    );
    server.send_text(&level);
    assert!(
        !server.endpoint.would_send_log(Scope::Peer, Level::Warning)
            && server.endpoint.would_send_log(Scope::Peer, Level::Error)
    );
    let subscribe = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{{"uri":"{}"}}}}"#,
        escape_all("a:b")
    );
    server.send_text(&subscribe);
    let key = server.take_request().key;
    server.reply(key, to_result(json!({})));
    assert_eq!(server.endpoint.publish(&Change::Resource("a:b".into())), 1);
}
