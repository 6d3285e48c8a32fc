//! Requirements of `docs/requirements.toml` on cancellation, progress and pagination (`basic/utilities`,
//! `basic/patterns`).

use mcp_exact_tests_session::*;

/// Creates a server of a revision in a session, if the revision has sessions.
pub(crate) fn server(revision: &str) -> CheckedServer {
    let capabilities = json!({ "roots": {}, "sampling": {} });
    CheckedServer::with_session(server_config(&[revision]), revision, capabilities)
}

/// Creates a tool call with a progress token.
pub(crate) fn call_request(revision: &str, id: Value, token: Value) -> Value {
    let params = json!({ "name": "x", "_meta": { "progressToken": token } });
    request_of_revision(revision, id, "tools/call", params, json!({}))
}

/// Creates a cancellation of the request with this id.
fn cancelled_notification(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

/// Creates a progress notification with the progress value `done`.
pub(crate) fn progress(token: &Value, done: Value) -> Value {
    let params = json!({ "progressToken": token, "progress": done });
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}

/// A cancellation is sent and accepted only for a request in flight that the sender of the cancellation has sent.
#[test]
fn foreign_cancellations_are_ignored() {
    for revision in all_revisions() {
        let mut client = connected_client(revision);
        let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
        let now = client.now;
        client.endpoint.cancel(key, "enough", now);
        let left = client.take_messages();
        assert_eq!(left.len(), 1, "{revision}");
        assert_eq!(left[0]["params"]["requestId"], sent["id"]);
        // Settled: nothing is cancelled any more.
        client.endpoint.cancel(key, "enough", now);
        let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
        client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "content": [] } }));
        client.endpoint.cancel(key, "late", now);
        assert!(client.take_messages().is_empty(), "{revision}");
        client.events();
        // The other direction's ids are others.
        let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
        assert!(client.send(&cancelled_notification(&sent["id"])).is_empty());
        assert!(client.events().is_empty(), "{revision}: {key:?} goes on");
    }
}

/// If a cancellation and the response cross, the request ends exactly once at both peers, in every order of arrival.
#[test]
fn cancellation_races_end_requests_once() {
    // What crosses: the cancellation of the client and the answer of the server, in every order of arrival.
    for revision in all_revisions() {
        for answered_first in [true, false] {
            for error in [true, false] {
                let mut server = server(revision);
                let mut client = connected_client(revision);
                let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
                let serving = server.serve(&sent).key;
                let reply = if error {
                    Reply::Error(PeerError::internal("no"))
                } else {
                    empty_content()
                };
                let now = client.now;
                client.endpoint.cancel(key, "enough", now);
                let cancel = client.take_messages().remove(0);
                let mut answers = Vec::new();
                if answered_first {
                    answers = server.reply(serving, reply);
                    assert_eq!(answers.len(), 1);
                    assert!(server.send(&cancel).is_empty());
                } else {
                    assert!(server.send(&cancel).is_empty());
                    let sent = server.endpoint.reply(serving, reply, now);
                    assert_eq!(sent, Ok(SendOutcome::Suppressed), "{revision}");
                    assert!(server.take_messages().is_empty());
                }
                answers
                    .iter()
                    .for_each(|late| assert!(client.send(late).is_empty()));
                assert_eq!(client.violations().len() + server.violations().len(), 0);
                client.endpoint.cancel(key, "enough", now);
                assert!(
                    client.take_messages().is_empty() && client.outcomes().is_empty(),
                    "it has ended once"
                );
            }
        }
    }
}

/// Every sent cancellation of a request that is not a task contains the id of the request.
#[test]
fn cancellations_name_their_request() {
    let revision = "2025-11-25";
    let mut client = connected_client(revision);
    let (first, sent) = client.request("tools/call", json!({ "name": "x" }));
    let now = client.now;
    client.endpoint.cancel(first, "enough", now);
    assert_eq!(client.take_messages()[0]["params"]["requestId"], sent["id"]);
    client.request("tools/call", json!({ "name": "x" }));
    let deadline = client.endpoint.poll_timeout().expect("a deadline");
    client.endpoint.handle_timeout(deadline);
    assert!(
        client.take_messages()[0]["params"]
            .get("requestId")
            .is_some()
    );
    let mut server = server(revision);
    let key = server
        .serve(&call_request(revision, json!(1), json!("t")))
        .key;
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {} }));
    assert!(
        matches!(server.events()[..], [ServerEvent::Violation(_)]),
        "nothing is cancelled"
    );
    assert_eq!(server.reply(key, empty_content()).len(), 1);
}

/// On standard streams, a client of 2026-07-28 cancels a request by `notifications/cancelled`.
#[test]
fn stdio_cancellation_is_a_notification() {
    let revision = "2026-07-28";
    let mut client = connected_client(revision);
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    let now = client.now;
    client.endpoint.cancel(key, "enough", now);
    let left = client.take_messages().remove(0);
    assert_eq!(
        (&left["method"], &left["params"]["requestId"]),
        (&json!("notifications/cancelled"), &sent["id"])
    );
    let (_, sent) = client.request("tools/call", json!({ "name": "x" }));
    let deadline = client.endpoint.poll_timeout().expect("a deadline");
    client.endpoint.handle_timeout(deadline);
    assert_eq!(client.take_messages()[0]["params"]["requestId"], sent["id"]);
}

/// After the cancellation of a request, the server sends no response and no notification for it.
#[test]
fn cancelled_request_sends_nothing() {
    let revision = "2026-07-28";
    let mut server = server(revision);
    let mut first = call_request(revision, json!(1), json!("t"));
    first["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let stopped = server.serve(&first).key;
    let other = server
        .serve(&call_request(revision, json!(2), json!("u")))
        .key;
    server.send(&cancelled_notification(&json!(1)));
    let during = Scope::During(stopped);
    let said = [
        server.endpoint.send_progress(stopped, &Progress::new(1.0)),
        server
            .endpoint
            .send_log(during, Level::Emergency, None, json!(1)),
        server.endpoint.reply(stopped, empty_content(), Time::ZERO),
    ];
    assert_eq!(
        said,
        [
            Ok(SendOutcome::Suppressed),
            Ok(SendOutcome::Suppressed),
            Ok(SendOutcome::Suppressed)
        ]
    );
    assert!(server.take_messages().is_empty());
    assert_eq!(server.reply(other, empty_content())[0]["id"], 2);
}

/// From 2026-07-28 on, a server sends `notifications/cancelled` only to end a subscription.
#[test]
fn server_cancels_subscriptions_only() {
    // Timeouts do not exist for a server of this lifecycle; errors, asks and a shutdown with ordinary requests in flight do.
    let revision = "2026-07-28";
    let mut server = server(revision);
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    server.send(&request_of_revision(
        revision,
        "l",
        "subscriptions/listen",
        listen,
        json!({}),
    ));
    let failed = server.serve_request(&call_request(revision, json!(1), json!("t")));
    server.serve_request(&call_request(revision, json!(2), json!("u")));
    let mut sent = server.reply(failed, PeerError::internal("no"));
    assert_eq!(server.endpoint.poll_timeout(), None);
    server.endpoint.shutdown(Time::ZERO);
    sent.extend(server.take_messages());
    let named: Vec<&Value> = sent
        .iter()
        .filter(|message| message["method"] == "notifications/cancelled")
        .map(|message| &message["params"]["requestId"])
        .collect();
    assert_eq!(named, [&json!("l")], "the subscription, and nothing else");
    // A client takes it for nothing else.
    let mut client = connected_client(revision);
    let (_, call) = client.request("tools/call", json!({ "name": "x" }));
    client.send(&cancelled_notification(&call["id"]));
    assert!(client.events().is_empty());
}

/// Server harness that delivers requests and returns their keys.
trait ServeRequest {
    /// Delivers a request; returns its key.
    fn serve_request(&mut self, message: &Value) -> RequestKey;
}

impl ServeRequest for CheckedServer {
    /// Returns the key of the delivered request, ignoring other events and output.
    fn serve_request(&mut self, message: &Value) -> RequestKey {
        self.take_messages();
        self.events();
        self.serve(message).key
    }
}

/// A server that ends a subscription sends a cancellation with the id of the `subscriptions/listen` request.
#[test]
fn server_ends_subscription_by_cancellation() {
    let revision = "2026-07-28";
    for shutdown in [true, false] {
        let mut server = server(revision);
        let listen = json!({ "notifications": { "toolsListChanged": true } });
        server.send(&request_of_revision(
            revision,
            5,
            "subscriptions/listen",
            listen,
            json!({}),
        ));
        let events = server.events();
        let [ServerEvent::Subscribed { key, .. }] = events[..] else {
            panic!("{events:?}");
        };
        if shutdown {
            server.endpoint.shutdown(Time::ZERO)
        } else {
            server.endpoint.end_subscription(key)
        }
        let sent = server.take_messages();
        assert_eq!(sent[0]["method"], "notifications/cancelled");
        assert_eq!(sent[0]["params"]["requestId"], 5);
        assert_eq!(sent[1]["id"], 5);
    }
}

/// No progress is sent for a progress token that is neither a string nor an integer.
#[test]
fn progress_token_types_are_checked() {
    for revision in all_revisions() {
        for token in [json!("t"), json!(""), json!(5), json!(-1)] {
            let mut server = server(revision);
            let key = server
                .serve(&call_request(revision, json!(1), token.clone()))
                .key;
            assert_eq!(
                server.endpoint.send_progress(key, &Progress::new(1.0)),
                Ok(SendOutcome::Queued)
            );
            assert_eq!(server.take_messages()[0]["params"]["progressToken"], token);
        }
        for token in [json!(null), json!(1.5), json!({}), json!([1]), json!(true)] {
            let mut server = server(revision);
            let key = server
                .serve(&call_request(revision, json!(1), token.clone()))
                .key;
            assert_eq!(
                server.endpoint.send_progress(key, &Progress::new(1.0)),
                Ok(SendOutcome::Suppressed)
            );
            assert!(server.take_messages().is_empty(), "{revision} {token}");
        }
        let (_, sent) = connected_client(revision).request("tools/list", json!(null));
        let token = &sent["params"]["_meta"]["progressToken"];
        assert!(token.is_u64() || token.is_string());
    }
    // The same for what a server wants to know of the answer to its question.
    for revision in handshake_revisions() {
        for (token, said) in [
            (json!("t"), 1),
            (json!(7), 1),
            (json!(null), 0),
            (json!(1.5), 0),
            (json!({}), 0),
        ] {
            let mut client = connected_client(revision);
            let params = json!({ "_meta": { "progressToken": token } });
            client.send(
                &json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": params }),
            );
            let ask = client.server_requests().remove(0).0;
            client
                .endpoint
                .send_progress(ask, &Progress::new(1.0))
                .expect("it increases");
            assert_eq!(client.take_messages().len(), said, "{revision} {token}");
        }
    }
}

/// The progress tokens of an endpoint differ, and a request whose application has set a progress token is refused.
#[test]
fn progress_tokens_are_unique() {
    for revision in all_revisions() {
        let mut client = connected_client(revision);
        let tokens: Vec<String> = (0..10)
            .map(|_| {
                client.request("tools/list", json!(null)).1["params"]["_meta"]["progressToken"]
                    .to_string()
            })
            .collect();
        let unique: std::collections::BTreeSet<&String> = tokens.iter().collect();
        assert_eq!(unique.len(), tokens.len());
        let own = json!({ "_meta": { "progressToken": "mine" } });
        let sent = client.try_request("tools/list", own);
        assert!(
            matches!(sent, Err(SendError::Params { .. })),
            "{revision}: {sent:?}"
        );
        assert!(client.take_messages().is_empty());
    }
    for revision in handshake_revisions() {
        let mut server = server(revision);
        let key = server
            .serve(&call_request(revision, json!(1), json!("t")))
            .key;
        let params = to_object(json!({ "_meta": { "progressToken": 1 } }));
        let asks = vec![(
            "r".to_owned(),
            InputRequest::new("roots/list", Some(params)),
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
            matches!(sent, Err(SendError::Params { .. })),
            "{revision}: {sent:?}"
        );
        assert!(server.take_messages().is_empty());
    }
}

/// In every revision, progress that does not increase is neither sent nor delivered.
#[test]
fn progress_increases_in_every_revision() {
    for revision in all_revisions() {
        let mut server = server(revision);
        let key = server
            .serve(&call_request(revision, json!(1), json!("t")))
            .key;
        let said: Vec<bool> = [
            1.0,
            1.0,
            0.5,
            2.0,
            9_007_199_254_740_992.0,
            9_007_199_254_740_992.0,
        ]
        .into_iter()
        .map(|done| {
            server
                .endpoint
                .send_progress(key, &Progress::new(done))
                .is_ok()
        })
        .collect();
        assert_eq!(said, [true, false, false, true, true, false], "{revision}");
        assert_eq!(server.take_messages().len(), 3);
        let mut client = connected_client(revision);
        let (_, sent) = client.request("tools/list", json!(null));
        let token = sent["params"]["_meta"]["progressToken"].clone();
        for (done, raised) in [
            (json!(1), true),
            (json!(1.0), false),
            (json!(0), false),
            (json!(2), true),
        ] {
            client.send(&progress(&token, done));
            let events = client.events();
            assert_eq!(
                matches!(events[..], [ClientEvent::Progress { .. }]),
                raised,
                "{revision}: {events:?}"
            );
        }
    }
}

/// Progress is sent only for a request in flight that has a progress token.
#[test]
fn progress_needs_an_active_request() {
    for revision in all_revisions() {
        let mut server = server(revision);
        let silent = server
            .serve(&request_of_revision(
                revision,
                1,
                "tools/call",
                json!({ "name": "x" }),
                json!({}),
            ))
            .key;
        assert_eq!(
            server.endpoint.send_progress(silent, &Progress::new(1.0)),
            Ok(SendOutcome::Suppressed)
        );
        let key = server
            .serve(&call_request(revision, json!(2), json!("t")))
            .key;
        server.reply(key, empty_content());
        assert!(
            server
                .endpoint
                .send_progress(key, &Progress::new(1.0))
                .is_err()
        );
        assert!(server.take_messages().is_empty(), "{revision}");
        let mut client = connected_client(revision);
        let (_, sent) = client.request("tools/list", json!(null));
        let token = sent["params"]["_meta"]["progressToken"].clone();
        client.send(&progress(&json!("other"), json!(1)));
        assert_eq!(client.violations(), [Violation::UnknownToken]);
        client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "tools": [] } }));
        client.events();
        client.send(&progress(&token, json!(1)));
        assert!(client.events().is_empty(), "late progress is ignored");
    }
}

/// List methods, each with the result member that contains the items.
const LIST_METHODS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

/// A client sends every cursor unchanged, whatever text it contains.
#[test]
fn cursors_are_opaque() {
    let cursors = [
        "",
        " ",
        "{\"a\": [1]}",
        "\u{e9}\u{1f600}",
        "a\nb\\\"",
        "=?base64?eA==?=",
        &"x".repeat(9000),
    ];
    for revision in all_revisions() {
        let mut client = connected_client(revision);
        for (method, _) in LIST_METHODS {
            for cursor in cursors {
                let (_, sent) = client.request(method, json!({ "cursor": cursor }));
                assert_eq!(sent["params"]["cursor"], cursor, "{revision} {method}");
            }
        }
    }
}

/// An empty string is a valid cursor: it is sent unchanged, and the list continues.
#[test]
fn empty_cursors_are_cursors() {
    for revision in all_revisions() {
        let mut client = connected_client(revision);
        for (method, items) in LIST_METHODS {
            let mut cursor: Option<String> = None;
            // The walk of a program: on and on while there is a next cursor, whatever a page holds.
            let pages = [
                (0, Some("")),
                (7, Some("{}")),
                (0, Some("x")),
                (300, Some("")),
                (1, None),
            ];
            for (size, next) in pages {
                let params = cursor
                    .as_ref()
                    .map_or(json!({}), |cursor| json!({ "cursor": cursor }));
                let (key, sent) = client.request(method, params);
                assert_eq!(
                    sent["params"].get("cursor"),
                    cursor.clone().map(Value::from).as_ref()
                );
                let mut body = json!({ items: vec![json!({ "name": "n", "uri": "a:b" }); size] });
                if let Some(next) = next {
                    body["nextCursor"] = json!(next);
                }
                client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": body }));
                let outcomes = client.outcomes();
                let [(done, Outcome::Result(page))] = &outcomes[..] else {
                    panic!("{revision} {method}: {outcomes:?}");
                };
                assert_eq!((*done, to_value(page.object())), (key, body), "as it came");
                cursor = page
                    .object()
                    .get("nextCursor")
                    .map(|next| next.parse().expect("a string"));
                assert_eq!(cursor.as_deref(), next);
            }
        }
    }
}
