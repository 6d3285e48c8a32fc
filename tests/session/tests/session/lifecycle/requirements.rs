//! Requirements of `docs/requirements.toml` on the handshake, declared capabilities and pings, for each revision
//! (`basic/lifecycle`).

use mcp_exact_tests_session::*;

/// Returns the nested member at the path `path` of member names.
fn member<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| value.get(name))
}

/// The first message of a client is `initialize` with the revision, the capabilities and `clientInfo`.
#[test]
fn client_sends_initialize_first() {
    for revision in handshake_revisions() {
        let mut client = CheckedClient::new(client_config(&[revision]), revision);
        let first = client.take_messages();
        assert_eq!(first.len(), 1);
        let params = &first[0]["params"];
        assert_eq!(first[0]["method"], "initialize");
        assert_eq!(params["protocolVersion"], revision);
        assert!(params["capabilities"]["roots"].is_object());
        assert_eq!(
            params["clientInfo"],
            json!({ "name": "client", "version": "1" })
        );
        // A server refuses one that does not say all of it.
        for lacking in ["protocolVersion", "capabilities", "clientInfo"] {
            let mut server = CheckedServer::new(server_config(&[revision]), revision);
            let mut bad = first[0].clone();
            bad["params"]
                .as_object_mut()
                .expect("params")
                .remove(lacking);
            assert_eq!(server.send(&bad)[0]["error"]["code"], -32602, "{lacking}");
            assert!(server.events().is_empty());
        }
    }
}

/// The result of `initialize` contains the server's capabilities and `serverInfo`.
#[test]
fn initialize_result_describes_server() {
    for revision in handshake_revisions() {
        let mut server = CheckedServer::new(server_config(&[revision]), revision);
        let answer = server.send(&initialize(revision, json!({}))).remove(0);
        let result = &answer["result"];
        assert_eq!(
            result["serverInfo"],
            json!({ "name": "server", "version": "1" })
        );
        assert_eq!(
            result["capabilities"]["tools"],
            json!({ "listChanged": true })
        );
        assert_eq!(result["capabilities"]["logging"], json!({}));
    }
}

/// A client closes the connection if the server chooses a revision that the client does not offer.
#[test]
fn client_disconnects_from_unsupported_revision() {
    for offered in handshake_revisions() {
        let mut answers = vec!["3000-01-01".to_owned(), "x".to_owned()];
        answers.extend(
            all_revisions()
                .into_iter()
                .filter(|id| *id != offered)
                .map(str::to_owned),
        );
        for answered in answers {
            let mut client = CheckedClient::new(client_config(&[offered]), offered);
            let first = client.take_messages().remove(0);
            let result = json!({ "protocolVersion": answered, "capabilities": {},
                "serverInfo": { "name": "s", "version": "1" } });
            let message = json!({ "jsonrpc": "2.0", "id": first["id"], "result": result });
            let text = message.to_string();
            let now = client.now;
            let received = client
                .endpoint
                .receive(StreamId::DUPLEX, text.as_bytes(), now);
            received.expect("open");
            // No `initialized`: the stream is closed and nothing else leaves.
            let mut out = Vec::new();
            let stream = StreamId::DUPLEX;
            let closed = client.endpoint.poll_transmit(&mut out);
            assert_eq!(
                closed,
                Some(Transmit::Close { stream }),
                "{offered} {answered}"
            );
            assert_eq!(client.endpoint.poll_transmit(&mut out), None);
            let events = client.events();
            let [ClientEvent::Failed(error), ClientEvent::Closed] = &events[..] else {
                panic!("{events:?}");
            };
            let words = error.to_string();
            assert!(
                words.contains(offered) && words.contains(&answered),
                "{words}"
            );
        }
    }
}

/// A client never cancels `initialize`, and a server ignores a cancellation of `initialize`.
#[test]
fn neither_peer_cancels_initialize() {
    for revision in handshake_revisions() {
        let mut client = CheckedClient::new(client_config(&[revision]), revision);
        client.take_messages();
        let deadline = client.endpoint.poll_timeout().expect("a deadline");
        client.endpoint.handle_timeout(deadline);
        assert!(
            client.take_messages().is_empty(),
            "{revision}: no `cancelled`"
        );
        let mut client = CheckedClient::new(client_config(&[revision]), revision);
        client.take_messages();
        let now = client.now;
        client.endpoint.shutdown(now);
        assert!(
            client.take_messages().is_empty(),
            "{revision}: no `cancelled`"
        );
        // A server continues a session although the client cancels its `initialize`.
        let mut server = CheckedServer::new(server_config(&[revision]), revision);
        server.send(&initialize(revision, json!({})));
        let params = json!({ "requestId": "init" });
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        assert!(server.send(&cancel).is_empty());
        assert!(server.endpoint.session_info().is_some());
        assert!(matches!(server.events()[..], [ServerEvent::Negotiated(_)]));
    }
}

/// The first request of a client names a revision of its offer.
#[test]
fn client_offers_supported_revisions_only() {
    let all = all_revisions();
    for from in 0..all.len() {
        for to in from..all.len() {
            for newest_first in [true, false] {
                let mut set = all[from..=to].to_vec();
                if newest_first {
                    set.reverse();
                }
                let mut client = RawClient::new(client_config(&set));
                let first = client.take_messages().remove(0);
                let meta = &first["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"];
                let offered = first["params"].get("protocolVersion").unwrap_or(meta);
                let offered = offered.as_str().expect("a revision");
                assert!(set.contains(&offered), "{set:?}: {offered}");
            }
        }
    }
}

/// A method that the negotiated revision does not define is refused by both peers.
#[test]
fn methods_of_other_revisions_are_refused() {
    // Methods that some revision has and another one has not, in both directions.
    let of_clients = [
        "resources/subscribe",
        "ping",
        "logging/setLevel",
        "tasks/list",
        "server/discover",
        "subscriptions/listen",
    ];
    let of_servers = ["elicitation/create", "roots/list", "ping", "tasks/get"];
    for revision in all_revisions() {
        for method in of_clients {
            let definition = method_is_known(revision, "ClientRequest", method);
            let mut server =
                CheckedServer::with_session(server_config(&[revision]), revision, json!({}));
            let params = json!({ "uri": "a:b", "level": "info", "notifications": {} });
            let answers = server.send(&request_of_revision(revision, 1, method, params, json!({})));
            let refused = answers.iter().any(|a| a["error"]["code"] == -32601);
            // One revision defines tasks, and no peer declares them.
            assert_eq!(
                refused,
                !definition || method == "tasks/list",
                "{revision} {method}"
            );
            let everything =
                json!({ "tools": {}, "resources": { "subscribe": true }, "logging": {} });
            let mut client =
                CheckedClient::connected(client_config(&[revision]), revision, everything);
            let sent = client.try_request(
                method,
                json!({ "uri": "a:b", "level": "info", "notifications": {} }),
            );
            assert_eq!(
                sent.is_ok(),
                definition && method != "tasks/list",
                "{revision} {method}"
            );
            client.take_messages();
        }
        for method in of_servers {
            if lifecycle(revision) == Some(Lifecycle::Discover) {
                continue;
            }
            let definition = method_is_known(revision, "ServerRequest", method);
            let mut client =
                CheckedClient::connected(client_config(&[revision]), revision, json!({}));
            let params = json!({ "message": "m", "requestedSchema": { "type": "object", "properties": {} } });
            let answers = client
                .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
            let refused = answers.iter().any(|a| a["error"]["code"] == -32601);
            assert_eq!(
                refused,
                !definition || method == "tasks/get",
                "{revision} {method}"
            );
        }
    }
}

/// Returns true if a union of a revision's schema has a variant with this method.
fn method_is_known(revision: &str, union: &str, method: &str) -> bool {
    let document = &schema_documents()[revision];
    let definitions = document
        .get("definitions")
        .or_else(|| document.get("$defs"));
    let definitions = definitions.expect("definitions");
    let members = definitions[union]["anyOf"].as_array().expect("a union");
    members.iter().any(|member| {
        let name = member["$ref"]
            .as_str()
            .and_then(|path| path.rsplit('/').next());
        let name = name.expect("a reference");
        definitions[name]["properties"]["method"]["const"] == method
    })
}

/// Creates a server of a revision, with all capabilities or with none; returns also the capabilities that it declares.
fn declared_by_server(revision: &str, declares: bool) -> (CheckedServer, Value) {
    let mut config = server_config(&[revision]);
    if !declares {
        config.capabilities = JsonObject::new();
    }
    let mut server = CheckedServer::new(config, revision);
    let answer = match lifecycle(revision) {
        Some(Lifecycle::Initialize) => server.send(&initialize(revision, json!({}))).remove(0),
        _ => server
            .send(&request_of_revision(
                revision,
                1,
                "server/discover",
                json!({}),
                json!({}),
            ))
            .remove(0),
    };
    if lifecycle(revision) == Some(Lifecycle::Initialize) {
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }
    server.events();
    (server, answer["result"]["capabilities"].clone())
}

/// Checks, in each revision from the revision `first` on, that a server declares the configured capability, and that a
/// server without capabilities refuses requests with the methods `methods`.
fn check_server_capability(capability: &str, methods: &[(&str, Value)], first: &str) {
    for revision in all_revisions().into_iter().skip_while(|id| *id != first) {
        let (_, declared) = declared_by_server(revision, true);
        assert!(
            member(&declared, &[capability]).is_some(),
            "{revision}: {declared}"
        );
        let (mut server, declared) = declared_by_server(revision, false);
        assert_eq!(declared, json!({}), "{revision}");
        for (method, params) in methods {
            let answers = server.send(&request_of_revision(
                revision,
                7,
                method,
                params.clone(),
                json!({}),
            ));
            assert_eq!(answers[0]["error"]["code"], -32601, "{revision} {method}");
            assert!(
                !server
                    .events()
                    .iter()
                    .any(|e| matches!(e, ServerEvent::Request(_)))
            );
        }
    }
}

#[test]
fn server_declares_tools() {
    let methods = [
        ("tools/list", json!({})),
        ("tools/call", json!({ "name": "x" })),
    ];
    check_server_capability("tools", &methods, "2024-11-05");
}

#[test]
fn server_declares_prompts() {
    let methods = [
        ("prompts/list", json!({})),
        ("prompts/get", json!({ "name": "x" })),
    ];
    check_server_capability("prompts", &methods, "2024-11-05");
}

#[test]
fn server_declares_resources() {
    let uri = || json!({ "uri": "a:b" });
    let methods = [
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", uri()),
        ("resources/subscribe", uri()),
    ];
    check_server_capability("resources", &methods, "2024-11-05");
}

#[test]
fn server_declares_completions() {
    let argument = json!({ "name": "a", "value": "" });
    let params = json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": argument });
    check_server_capability(
        "completions",
        &[("completion/complete", params)],
        "2025-03-26",
    );
}

/// A server that has not configured logging declares no logging and sends no log messages.
#[test]
fn server_declares_logging() {
    for revision in all_revisions() {
        let (_, declared) = declared_by_server(revision, true);
        assert_eq!(declared["logging"], json!({}), "{revision}");
        let (mut server, _) = declared_by_server(revision, false);
        let meta = json!({ "io.modelcontextprotocol/logLevel": "debug" });
        let capabilities = json!({});
        // Something has to be served to be logged about: a method of the application's own.
        let mut config = server_config(&[revision]);
        config.capabilities = JsonObject::new();
        config.extensions.requests = vec!["x/do".into()];
        let mut own = CheckedServer::with_session(config, revision, json!({}));
        let key = own
            .serve(&request_of_revision(
                revision,
                8,
                "x/do",
                json!({ "_meta": meta }),
                capabilities,
            ))
            .key;
        let logged = own
            .endpoint
            .send_log(Scope::During(key), Level::Error, None, json!("x"));
        assert!(
            matches!(logged, Err(SendError::Capability { .. })),
            "{revision}: {logged:?}"
        );
        assert!(own.take_messages().is_empty());
        let logged = server
            .endpoint
            .send_log(Scope::Peer, Level::Error, None, json!("x"));
        assert!(logged.is_err(), "{revision}: {logged:?}");
        assert!(server.take_messages().is_empty());
    }
}

/// Creates a client of a revision, with all capabilities or with none; returns also the capabilities that it declares.
fn declared_by_client(revision: &str, declares: bool) -> (CheckedClient, Value) {
    let mut config = client_config(&[revision]);
    if !declares {
        config.capabilities = JsonObject::new();
    }
    let mut client = CheckedClient::connected(config.clone(), revision, json!({ "tools": {} }));
    let said = match lifecycle(revision) {
        Some(Lifecycle::Initialize) => {
            let first = RawClient::new(config).take_messages().remove(0);
            first["params"]["capabilities"].clone()
        }
        _ => {
            let (_, message) = client.request("tools/list", json!(null));
            message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].clone()
        }
    };
    (client, said)
}

/// Checks, in each revision from the revision `first` on, that a client declares the configured capability, and that a
/// client without capabilities refuses requests with the method `method`.
fn check_client_capability(capability: &str, method: &str, params: &Value, first: &str) {
    for revision in all_revisions().into_iter().skip_while(|id| *id != first) {
        let (_, declared) = declared_by_client(revision, true);
        assert!(declared[capability].is_object(), "{revision}: {declared}");
        let (mut client, declared) = declared_by_client(revision, false);
        assert_eq!(declared, json!({}), "{revision}");
        let question = json!({ "jsonrpc": "2.0", "id": "q", "method": method, "params": params });
        let answers = client.send(&question);
        match lifecycle(revision) {
            Some(Lifecycle::Initialize) => {
                assert_eq!(answers[0]["error"]["code"], -32601, "{revision}")
            }
            _ => {
                assert!(answers.is_empty(), "{revision}: {answers:?}");
                assert!(matches!(client.violations()[..], [Violation::Method(_)]));
            }
        }
        assert!(client.server_requests().is_empty(), "{revision}");
    }
}

#[test]
fn client_declares_roots() {
    check_client_capability("roots", "roots/list", &json!({}), "2024-11-05");
}

#[test]
fn client_declares_sampling() {
    let params = json!({ "messages": [], "maxTokens": 1 });
    check_client_capability("sampling", "sampling/createMessage", &params, "2024-11-05");
}

#[test]
fn client_declares_elicitation() {
    let schema = json!({ "type": "object", "properties": {} });
    let params = json!({ "message": "m", "requestedSchema": schema });
    check_client_capability("elicitation", "elicitation/create", &params, "2025-06-18");
}

/// A client sends `notifications/roots/list_changed` only if it has declared roots.
#[test]
fn roots_change_is_notified() {
    for revision in handshake_revisions() {
        let (mut client, _) = declared_by_client(revision, true);
        let sent = client
            .endpoint
            .notify("notifications/roots/list_changed", None);
        assert_eq!(sent, Ok(SendOutcome::Queued), "{revision}");
        assert_eq!(
            client.take_messages()[0]["method"],
            "notifications/roots/list_changed"
        );
        let (mut client, _) = declared_by_client(revision, false);
        let sent = client
            .endpoint
            .notify("notifications/roots/list_changed", None);
        assert!(
            matches!(sent, Err(SendError::Capability { .. })),
            "{revision}"
        );
        assert!(client.take_messages().is_empty());
    }
    for revision in discover_revisions() {
        let (mut client, _) = declared_by_client(revision, true);
        let sent = client
            .endpoint
            .notify("notifications/roots/list_changed", None);
        assert!(matches!(sent, Err(SendError::Method { .. })), "{revision}");
    }
}

/// Both peers answer `ping` before, during and after the handshake.
#[test]
fn ping_is_answered_in_every_state() {
    let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
    let pong = [json!({ "jsonrpc": "2.0", "id": "p", "result": {} })];
    for revision in handshake_revisions() {
        let mut server = CheckedServer::new(server_config(&[revision]), revision);
        assert_eq!(server.send(&ping), pong, "before `initialize`");
        server.send(&initialize(revision, json!({})));
        assert_eq!(server.send(&ping), pong, "before `initialized`");
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assert_eq!(server.send(&ping), pong);
        let mut client = CheckedClient::new(client_config(&[revision]), revision);
        client.take_messages();
        assert_eq!(client.send(&ping), pong, "before the result");
    }
}
