//! Requirements of `docs/requirements.toml` on cancellation, progress and pagination (`basic/utilities`,
//! `basic/patterns`).

use mcp_exact_tests_session::*;

pub(crate) fn server(revision: &str) -> CheckedServer {
    let capabilities = json!({ "roots": {}, "sampling": {} });
    CheckedServer::ready(server_config(&[revision]), revision, capabilities)
}

pub(crate) fn call(revision: &str, id: Value, token: Value) -> Value {
    let params = json!({ "name": "x", "_meta": { "progressToken": token } });
    request_at(revision, id, "tools/call", params, json!({}))
}

fn cancelled_notification(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id } })
}

pub(crate) fn progress(token: &Value, done: Value) -> Value {
    let params = json!({ "progressToken": token, "progress": done });
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params })
}

#[test]
fn canc_own_in_flight_only_in_any_revision() {
    for revision in all() {
        let mut client = client_at(revision);
        let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
        let now = client.now;
        client.machine.cancel(key, "enough", now);
        let left = client.drain();
        assert_eq!(left.len(), 1, "{revision}");
        assert_eq!(left[0]["params"]["requestId"], sent["id"]);
        // Settled: nothing is cancelled any more.
        client.machine.cancel(key, "enough", now);
        let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
        client.send(&json!({ "jsonrpc": "2.0", "id": sent["id"], "result": { "content": [] } }));
        client.machine.cancel(key, "late", now);
        assert!(client.drain().is_empty(), "{revision}");
        client.events();
        // The other direction's ids are others.
        let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
        assert!(client.send(&cancelled_notification(&sent["id"])).is_empty());
        assert!(client.events().is_empty(), "{revision}: {key:?} goes on");
    }
}

#[test]
fn canc_races_end_each_request_once() {
    // What crosses: the cancellation of the client and the answer of the server, in every order of arrival.
    for revision in all() {
        for answered_first in [true, false] {
            for error in [true, false] {
                let mut server = server(revision);
                let mut client = client_at(revision);
                let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
                let serving = server.serve(&sent).key;
                let reply = if error {
                    Reply::Error(PeerError::internal("no"))
                } else {
                    content()
                };
                let now = client.now;
                client.machine.cancel(key, "enough", now);
                let cancel = client.drain().remove(0);
                let mut answers = Vec::new();
                if answered_first {
                    answers = server.reply(serving, reply);
                    assert_eq!(answers.len(), 1);
                    assert!(server.send(&cancel).is_empty());
                } else {
                    assert!(server.send(&cancel).is_empty());
                    let sent = server.machine.reply(serving, reply, now);
                    assert_eq!(sent, Ok(Sent::Suppressed), "{revision}");
                    assert!(server.drain().is_empty());
                }
                answers
                    .iter()
                    .for_each(|late| assert!(client.send(late).is_empty()));
                assert_eq!(client.violations().len() + server.violations().len(), 0);
                client.machine.cancel(key, "enough", now);
                assert!(
                    client.drain().is_empty() && client.outcomes().is_empty(),
                    "it has ended once"
                );
            }
        }
    }
}

#[test]
fn canc_request_id_present() {
    let revision = "2025-11-25";
    let mut client = client_at(revision);
    let (first, sent) = client.request("tools/call", json!({ "name": "x" }));
    let now = client.now;
    client.machine.cancel(first, "enough", now);
    assert_eq!(client.drain()[0]["params"]["requestId"], sent["id"]);
    client.request("tools/call", json!({ "name": "x" }));
    let deadline = client.machine.poll_timeout().expect("a deadline");
    client.machine.handle_timeout(deadline);
    assert!(client.drain()[0]["params"].get("requestId").is_some());
    let mut server = server(revision);
    let key = server.serve(&call(revision, json!(1), json!("t"))).key;
    server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {} }));
    assert!(
        matches!(server.events()[..], [ServerEvent::Violation(_)]),
        "nothing is cancelled"
    );
    assert_eq!(server.reply(key, content()).len(), 1);
}

#[test]
fn canc_stdio_notification() {
    let revision = "2026-07-28";
    let mut client = client_at(revision);
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    let now = client.now;
    client.machine.cancel(key, "enough", now);
    let left = client.drain().remove(0);
    assert_eq!(
        (&left["method"], &left["params"]["requestId"]),
        (&json!("notifications/cancelled"), &sent["id"])
    );
    let (_, sent) = client.request("tools/call", json!({ "name": "x" }));
    let deadline = client.machine.poll_timeout().expect("a deadline");
    client.machine.handle_timeout(deadline);
    assert_eq!(client.drain()[0]["params"]["requestId"], sent["id"]);
}

#[test]
fn canc_silent_after_cancel() {
    let revision = "2026-07-28";
    let mut server = server(revision);
    let mut first = call(revision, json!(1), json!("t"));
    first["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = json!("debug");
    let stopped = server.serve(&first).key;
    let other = server.serve(&call(revision, json!(2), json!("u"))).key;
    server.send(&cancelled_notification(&json!(1)));
    let during = Scope::During(stopped);
    let said = [
        server.machine.progress(stopped, &Progress::new(1.0)),
        server.machine.log(during, Level::Emergency, None, json!(1)),
        server.machine.reply(stopped, content(), Time::ZERO),
    ];
    assert_eq!(
        said,
        [
            Ok(Sent::Suppressed),
            Ok(Sent::Suppressed),
            Ok(Sent::Suppressed)
        ]
    );
    assert!(server.drain().is_empty());
    assert_eq!(server.reply(other, content())[0]["id"], 2);
}

#[test]
fn canc_server_listen_only() {
    // Timeouts do not exist for a server of this lifecycle; errors, asks and a shutdown with ordinary requests in flight do.
    let revision = "2026-07-28";
    let mut server = server(revision);
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    server.send(&request_at(
        revision,
        "l",
        "subscriptions/listen",
        listen,
        json!({}),
    ));
    let failed = server.serve_among(&call(revision, json!(1), json!("t")));
    server.serve_among(&call(revision, json!(2), json!("u")));
    let mut sent = server.reply(failed, PeerError::internal("no"));
    assert_eq!(server.machine.poll_timeout(), None);
    server.machine.shutdown(Time::ZERO);
    sent.extend(server.drain());
    let named: Vec<&Value> = sent
        .iter()
        .filter(|message| message["method"] == "notifications/cancelled")
        .map(|message| &message["params"]["requestId"])
        .collect();
    assert_eq!(named, [&json!("l")], "the subscription, and nothing else");
    // A client takes it for nothing else.
    let mut client = client_at(revision);
    let (_, call) = client.request("tools/call", json!({ "name": "x" }));
    client.send(&cancelled_notification(&call["id"]));
    assert!(client.events().is_empty());
}

trait ServeAmong {
    fn serve_among(&mut self, message: &Value) -> RequestKey;
}

impl ServeAmong for CheckedServer {
    /// Returns the key of the delivered request, ignoring other events and output.
    fn serve_among(&mut self, message: &Value) -> RequestKey {
        self.drain();
        self.events();
        self.serve(message).key
    }
}

#[test]
fn canc_server_ends_listen() {
    let revision = "2026-07-28";
    for shutdown in [true, false] {
        let mut server = server(revision);
        let listen = json!({ "notifications": { "toolsListChanged": true } });
        server.send(&request_at(
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
            server.machine.shutdown(Time::ZERO)
        } else {
            server.machine.end_subscription(key)
        }
        let sent = server.drain();
        assert_eq!(sent[0]["method"], "notifications/cancelled");
        assert_eq!(sent[0]["params"]["requestId"], 5);
        assert_eq!(sent[1]["id"], 5);
    }
}

#[test]
fn prog_token_type_in_any_revision() {
    for revision in all() {
        for token in [json!("t"), json!(""), json!(5), json!(-1)] {
            let mut server = server(revision);
            let key = server.serve(&call(revision, json!(1), token.clone())).key;
            assert_eq!(
                server.machine.progress(key, &Progress::new(1.0)),
                Ok(Sent::Queued)
            );
            assert_eq!(server.drain()[0]["params"]["progressToken"], token);
        }
        for token in [json!(null), json!(1.5), json!({}), json!([1]), json!(true)] {
            let mut server = server(revision);
            let key = server.serve(&call(revision, json!(1), token.clone())).key;
            assert_eq!(
                server.machine.progress(key, &Progress::new(1.0)),
                Ok(Sent::Suppressed)
            );
            assert!(server.drain().is_empty(), "{revision} {token}");
        }
        let (_, sent) = client_at(revision).request("tools/list", json!(null));
        let token = &sent["params"]["_meta"]["progressToken"];
        assert!(token.is_u64() || token.is_string());
    }
    // The same for what a server wants to know of the answer to its question.
    for revision in handshake() {
        for (token, said) in [
            (json!("t"), 1),
            (json!(7), 1),
            (json!(null), 0),
            (json!(1.5), 0),
            (json!({}), 0),
        ] {
            let mut client = client_at(revision);
            let params = json!({ "_meta": { "progressToken": token } });
            client.send(
                &json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": params }),
            );
            let ask = client.asks().remove(0).0;
            client
                .machine
                .progress(ask, &Progress::new(1.0))
                .expect("it increases");
            assert_eq!(client.drain().len(), said, "{revision} {token}");
        }
    }
}

#[test]
fn prog_tokens_are_unique() {
    for revision in all() {
        let mut client = client_at(revision);
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
        assert!(client.drain().is_empty());
    }
    for revision in handshake() {
        let mut server = server(revision);
        let key = server.serve(&call(revision, json!(1), json!("t"))).key;
        let params = object(json!({ "_meta": { "progressToken": 1 } }));
        let asks = vec![(
            "r".to_owned(),
            InputRequest::new("roots/list", Some(params)),
        )];
        let sent = server.machine.reply(
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
        assert!(server.drain().is_empty());
    }
}

#[test]
fn prog_increasing_in_any_revision() {
    for revision in all() {
        let mut server = server(revision);
        let key = server.serve(&call(revision, json!(1), json!("t"))).key;
        let said: Vec<bool> = [
            1.0,
            1.0,
            0.5,
            2.0,
            9_007_199_254_740_992.0,
            9_007_199_254_740_992.0,
        ]
        .into_iter()
        .map(|done| server.machine.progress(key, &Progress::new(done)).is_ok())
        .collect();
        assert_eq!(said, [true, false, false, true, true, false], "{revision}");
        assert_eq!(server.drain().len(), 3);
        let mut client = client_at(revision);
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

#[test]
fn prog_active_only_and_stops_in_any_revision() {
    for revision in all() {
        let mut server = server(revision);
        let silent = server
            .serve(&request_at(
                revision,
                1,
                "tools/call",
                json!({ "name": "x" }),
                json!({}),
            ))
            .key;
        assert_eq!(
            server.machine.progress(silent, &Progress::new(1.0)),
            Ok(Sent::Suppressed)
        );
        let key = server.serve(&call(revision, json!(2), json!("t"))).key;
        server.reply(key, content());
        assert!(server.machine.progress(key, &Progress::new(1.0)).is_err());
        assert!(server.drain().is_empty(), "{revision}");
        let mut client = client_at(revision);
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

const LISTS: [(&str, &str); 4] = [
    ("tools/list", "tools"),
    ("prompts/list", "prompts"),
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
];

#[test]
fn page_opaque_cursors_come_back_as_they_came() {
    let cursors = [
        "",
        " ",
        "{\"a\": [1]}",
        "\u{e9}\u{1f600}",
        "a\nb\\\"",
        "=?base64?eA==?=",
        &"x".repeat(9000),
    ];
    for revision in all() {
        let mut client = client_at(revision);
        for (method, _) in LISTS {
            for cursor in cursors {
                let (_, sent) = client.request(method, json!({ "cursor": cursor }));
                assert_eq!(sent["params"]["cursor"], cursor, "{revision} {method}");
            }
        }
    }
}

#[test]
fn page_no_fixed_size_and_an_empty_cursor_is_one() {
    for revision in all() {
        let mut client = client_at(revision);
        for (method, items) in LISTS {
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
                assert_eq!((*done, value(page.object())), (key, body), "as it came");
                cursor = page
                    .object()
                    .get("nextCursor")
                    .map(|next| next.parse().expect("a string"));
                assert_eq!(cursor.as_deref(), next);
            }
        }
    }
}
