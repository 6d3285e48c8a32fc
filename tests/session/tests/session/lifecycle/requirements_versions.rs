//! Requirements of `docs/requirements.toml` on subscriptions, versions and extensions (2026-07-28:
//! `basic/patterns/subscriptions`, `basic/versioning`, `server/discover`).

use std::collections::BTreeSet;

use mcp_exact_tests_session::discover_peers::{
    all_capabilities, answer_request, client, request, server,
};
use mcp_exact_tests_session::*;

/// Member of the subscription filter and notification method of each kind of list change.
const CHANGE_METHODS: [(&str, &str); 3] = [
    ("toolsListChanged", "notifications/tools/list_changed"),
    ("promptsListChanged", "notifications/prompts/list_changed"),
    (
        "resourcesListChanged",
        "notifications/resources/list_changed",
    ),
];

/// Publishes every kind of change; returns the messages that the server sends.
fn publish_everything(server: &mut CheckedServer) -> Vec<Value> {
    for change in [
        Change::Tools,
        Change::Prompts,
        Change::Resources,
        Change::Resource("a:b".into()),
        Change::Resource("c:d".into()),
    ] {
        server.endpoint.publish(&change);
    }
    server.take_messages()
}

/// Only the changes that a subscription's filter names are sent to the subscriber.
#[test]
fn only_requested_changes_are_sent() {
    for bits in 0..8_usize {
        for uris in [json!([]), json!(["a:b"])] {
            let mut filter = json!({});
            let mut wanted = Vec::new();
            for (at, (flag, method)) in CHANGE_METHODS.iter().enumerate() {
                let on = bits & (1 << at) != 0;
                filter[*flag] = json!(on);
                wanted.extend(on.then_some(*method));
            }
            filter["resourceSubscriptions"] = uris.clone();
            let mut server = server();
            server.send(&request(
                "l",
                "subscriptions/listen",
                json!({ "notifications": filter }),
                json!({}),
            ));
            let sent = publish_everything(&mut server);
            let updated: Vec<&Value> = sent
                .iter()
                .filter(|m| m["method"] == "notifications/resources/updated")
                .map(|m| &m["params"]["uri"])
                .collect();
            assert_eq!(json!(updated), uris);
            let changed: BTreeSet<&str> = sent
                .iter()
                .filter_map(|m| m["method"].as_str())
                .filter(|m| m.ends_with("list_changed"))
                .collect();
            assert_eq!(changed, wanted.into_iter().collect(), "{filter}");
        }
    }
}

/// The first message of a subscription is its acknowledgement; every later notification contains the subscription's id.
#[test]
fn acknowledgement_precedes_tagged_notifications() {
    let mut server = server();
    let ids = [json!(1), json!("1"), json!("l")];
    let tag = "io.modelcontextprotocol/subscriptionId";
    let mut sent = publish_everything(&mut server);
    assert!(sent.is_empty(), "nobody listens");
    for id in &ids {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        sent.extend(server.send(&request(
            id.clone(),
            "subscriptions/listen",
            filter,
            json!({}),
        )));
        sent.extend(publish_everything(&mut server));
    }
    server.endpoint.shutdown(Time::ZERO);
    sent.extend(server.take_messages());
    for id in &ids {
        let of = |message: &&Value| {
            let tagged = [
                &message["params"]["_meta"][tag],
                &message["result"]["_meta"][tag],
            ];
            tagged.contains(&id)
        };
        let methods: Vec<&Value> = sent
            .iter()
            .filter(of)
            .map(|message| &message["method"])
            .collect();
        assert_eq!(
            methods[0], "notifications/subscriptions/acknowledged",
            "{id}"
        );
        assert_eq!(
            methods.last(),
            Some(&&Value::Null),
            "the result is tagged too"
        );
        assert_eq!(
            methods
                .iter()
                .filter(|m| **m == "notifications/subscriptions/acknowledged")
                .count(),
            1
        );
    }
    // Nothing but the cancellations is without a tag, and those name it.
    let untagged = sent.iter().filter(|m| {
        m["params"]["_meta"].get(tag).is_none() && m["result"]["_meta"].get(tag).is_none()
    });
    assert!(
        untagged
            .clone()
            .all(|m| ids.contains(&m["params"]["requestId"])),
        "{untagged:?}"
    );
}

/// A client finds the subscription of a notification by the id in its `_meta`.
#[test]
fn notifications_name_their_subscription() {
    let capabilities = json!({ "tools": { "listChanged": true }, "resources": { "subscribe": true, "listChanged": true } });
    let mut client = CheckedClient::connected(
        client_config(&[DISCOVER_REVISION]),
        DISCOVER_REVISION,
        capabilities,
    );
    let tag = |id: &Value| json!({ "io.modelcontextprotocol/subscriptionId": id });
    let mut listen = |filter: Value| {
        let (key, sent) =
            client.request("subscriptions/listen", json!({ "notifications": filter }));
        let params = json!({ "notifications": filter, "_meta": tag(&sent["id"]) });
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params }));
        (key, sent["id"].clone())
    };
    let (one, first) = listen(json!({ "toolsListChanged": true }));
    let (two, second) =
        listen(json!({ "toolsListChanged": true, "resourceSubscriptions": ["a:b"] }));
    client.events();
    for (id, key) in [(&second, two), (&first, one), (&second, two)] {
        let params = json!({ "_meta": tag(id) });
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params }));
        assert!(
            matches!(&client.events()[..], [ClientEvent::Changed { subscription: Some(of), change: Change::Tools, .. }] if *of == key)
        );
    }
    for id in [
        json!("other"),
        json!(99),
        json!(null),
        json!(first.to_string()),
    ] {
        let params = json!({ "_meta": tag(&id) });
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": params }));
        assert!(
            matches!(
                client.events()[..],
                [ClientEvent::Violation(Violation::Subscription(_))]
            ),
            "{id}"
        );
    }
}

/// A server without capabilities answers `server/discover` without its application.
#[test]
fn server_without_features_answers_discover() {
    let mut server = CheckedServer::new(
        ServerConfig::new(Identity::new("n", "1")),
        DISCOVER_REVISION,
    );
    let answer = server
        .send(&request(1, "server/discover", json!({}), json!({})))
        .remove(0);
    assert!(server.events().is_empty(), "the program is not asked");
    let result = &answer["result"];
    assert_eq!(result["capabilities"], json!({}));
    assert!(
        result["supportedVersions"]
            .as_array()
            .is_some_and(|ids| ids.contains(&json!(DISCOVER_REVISION)))
    );
    assert!(result["ttlMs"].is_u64() && result["cacheScope"].is_string());
}

/// An endpoint that has handled earlier requests treats a request in the same way as a new endpoint.
#[test]
fn endpoints_share_no_state() {
    let messages = [
        request(
            1,
            "tools/call",
            json!({ "name": "x" }),
            json!({ "elicitation": {}, "roots": {} }),
        ),
        request(2, "tools/call", json!({ "name": "x" }), json!({})),
        request_of_revision(
            DISCOVER_REVISION,
            3,
            "tools/list",
            json!({ "_meta": { "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1" } } }),
            json!({}),
        ),
    ];
    let mut long = server();
    for message in &messages {
        let said = |server: &mut CheckedServer| {
            let request = server.serve(message);
            let who = request.client();
            let about = (
                who.capabilities.to_string(),
                who.implementation.clone(),
                who.revision,
            );
            let asked =
                server
                    .endpoint
                    .reply(request.key, elicitations_by_name(&["q"], None), Time::ZERO);
            if asked.is_err() {
                server
                    .endpoint
                    .reply(request.key, PeerError::internal("no"), Time::ZERO)
                    .expect("it waits");
            }
            (about, asked, server.take_messages())
        };
        assert_eq!(said(&mut long), said(&mut server()));
    }
}

/// A message of an extension that only one peer has declared is refused; the core protocol is not affected.
#[test]
fn extensions_are_optional() {
    // Only the client has it: the endpoint does not send it, and a server that receives it refuses it.
    for revision in all_revisions() {
        let mut client =
            CheckedClient::connected(client_config(&[revision]), revision, all_capabilities());
        let sent = client.try_request("com.example/do", json!({}));
        assert!(
            matches!(sent, Err(SendError::Method { .. })),
            "{revision}: {sent:?}"
        );
        let mut server =
            CheckedServer::with_session(server_config(&[revision]), revision, json!({}));
        let refused = server.send(&request_of_revision(
            revision,
            1,
            "com.example/do",
            json!({}),
            json!({}),
        ));
        assert_eq!(refused[0]["error"]["code"], -32601, "{revision}");
        // The core goes on.
        let key = server
            .serve(&request_of_revision(
                revision,
                2,
                "tools/list",
                json!({}),
                json!({}),
            ))
            .key;
        assert_eq!(
            server
                .reply(key, Reply::Result(to_result(json!({ "tools": [] }))))
                .len(),
            1
        );
    }
    // A result of an extension that this client does not have is none.
    let mut client = client();
    let (_, sent) = client.request("tools/call", json!({ "name": "x" }));
    answer_request(
        &mut client,
        &sent,
        json!({ "resultType": "task", "taskId": "t" }),
    );
    assert!(matches!(&client.outcomes()[..], [(_, Outcome::Error(e))] if e.is_local()));
}

/// A configuration with an extension id that has no prefix or an invalid format is refused.
#[test]
fn extension_ids_are_checked() {
    for (id, good) in [
        ("io.modelcontextprotocol/tasks", true),
        ("com.example/my-extension", true),
        ("com.example/", true),
        ("tasks", false),
        ("/tasks", false),
        ("com..example/x", false),
        ("1com/x", false),
        ("com-/x", false),
        ("com.example/_x", false),
        ("com.example/x/y", false),
    ] {
        let capabilities = to_object(json!({ "extensions": { id: {} } }));
        let mut client = client_config(&all_revisions());
        client.capabilities = capabilities.clone();
        let mut server = server_config(&all_revisions());
        server.capabilities = capabilities;
        let expected = if good {
            Ok(())
        } else {
            Err(ConfigError::Extension(id.to_owned()))
        };
        assert_eq!(client.build().map(|_| ()), expected, "{id}");
        assert_eq!(server.build().map(|_| ()), expected, "{id}");
    }
}

/// The error for an unsupported revision lists every revision that the server offers.
#[test]
fn version_error_lists_all_revisions() {
    for set in [
        vec![DISCOVER_REVISION],
        vec![DISCOVER_REVISION, "2025-11-25"],
        all_revisions(),
    ] {
        for asked in ["1900-01-01", "", "2025-03-26", "draft"] {
            let mut server = CheckedServer::new(server_config(&set), DISCOVER_REVISION);
            let mut message = request(1, "tools/list", json!({}), json!({}));
            message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(asked);
            let text = message.to_string();
            let refused = server.send_text(&text).remove(0);
            assert_eq!(refused["error"]["code"], -32022, "{asked}");
            assert_eq!(
                refused["error"]["data"],
                json!({ "supported": set, "requested": asked })
            );
        }
    }
}
