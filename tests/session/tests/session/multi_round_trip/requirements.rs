//! Requirements of `docs/requirements.toml` on requests that are answered with input requests (2026-07-28:
//! `basic/patterns/mrtr`).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use mcp_exact_tests_session::modern::{answer, client, methods, request, server};
use mcp_exact_tests_session::*;

const MAY_ASK: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

#[test]
fn mrtr_answers_before_retry() {
    let mut client = client();
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    let question = json!({ "method": "roots/list" });
    let body = json!({ "resultType": "input_required", "inputRequests": { "a": question, "b": question } });
    assert!(answer(&mut client, &sent, body).is_empty());
    let asks = client.asks();
    assert_eq!(asks.len(), 2);
    let roots = |uri: &str| json!({ "roots": [{ "uri": uri }] });
    assert!(
        client.answer(asks[1].0, roots("file:///b")).is_empty(),
        "one is missing"
    );
    let again = client.answer(asks[0].0, roots("file:///a"));
    let expected = json!({ "a": roots("file:///a"), "b": roots("file:///b") });
    assert_eq!(again[0]["params"]["inputResponses"], expected);
    // Nothing was asked: at once.
    let retry = answer(
        &mut client,
        &again[0],
        json!({ "resultType": "input_required", "requestState": "s" }),
    );
    assert_eq!(retry.len(), 1);
    answer(
        &mut client,
        &retry[0],
        json!({ "resultType": "complete", "content": [] }),
    );
    assert!(matches!(&client.outcomes()[..], [(done, Outcome::Result(_))] if *done == key));
}

#[test]
fn mrtr_declared_only_by_every_set_of_capabilities() {
    let url = json!({ "mode": "url", "message": "m", "url": "https://x.example/" });
    let plain = json!({ "messages": [], "maxTokens": 1 });
    let tools = json!({ "messages": [], "maxTokens": 1, "tools": [] });
    let asks = [
        ("roots", elicit_of("roots/list", json!({}))),
        ("form", elicit()),
        ("url", elicit_of("elicitation/create", url)),
        ("sampling", elicit_of("sampling/createMessage", plain)),
        ("tools", elicit_of("sampling/createMessage", tools)),
    ];
    for (capabilities, able) in [
        (json!({}), vec![]),
        (json!({ "roots": {} }), vec!["roots"]),
        (json!({ "elicitation": {} }), vec!["form"]),
        (json!({ "elicitation": { "url": {} } }), vec!["url"]),
        (
            json!({ "elicitation": { "url": {}, "form": {} } }),
            vec!["form", "url"],
        ),
        (json!({ "sampling": {} }), vec!["sampling"]),
        (
            json!({ "sampling": { "tools": {} } }),
            vec!["sampling", "tools"],
        ),
    ] {
        for (name, ask) in &asks {
            let mut server = server();
            let key = server
                .serve(&request(
                    1,
                    "tools/call",
                    json!({ "name": "x" }),
                    capabilities.clone(),
                ))
                .key;
            let reply = Reply::InputRequired {
                requests: vec![("q".to_owned(), ask.clone())],
                state: None,
            };
            let sent = server.machine.reply(key, reply, Time::ZERO);
            assert_eq!(
                sent.is_ok(),
                able.contains(name),
                "{capabilities} {name}: {sent:?}"
            );
            let left = server.drain();
            assert_eq!(left.len(), usize::from(sent.is_ok()));
            assert!(
                left.iter()
                    .all(|message| message["result"]["resultType"] == "input_required")
            );
        }
    }
}

fn elicit_of(method: &str, params: Value) -> InputRequest {
    InputRequest::new(method, Some(object(params)))
}

#[test]
fn mrtr_integrity_changed_state_is_rejected() {
    let mut server = server();
    let capabilities = json!({ "elicitation": {} });
    let call = |id: u64, more: Value| {
        let mut params = json!({ "name": "x", "arguments": { "a": 1 } });
        more.as_object()
            .into_iter()
            .flatten()
            .for_each(|(name, value)| params[name] = value.clone());
        request(id, "tools/call", params, capabilities.clone())
    };
    let key = server.serve(&call(1, json!({}))).key;
    let asked = server
        .reply(key, questions(&["q"], Some("secret")))
        .remove(0);
    let state = asked["result"]["requestState"]
        .as_str()
        .expect("a state")
        .to_owned();
    let refused = |server: &mut CheckedServer, message: &Value| {
        let answers = server.send(message);
        assert_eq!(
            (&answers[0]["id"], &answers[0]["error"]["code"]),
            (&json!(2), &json!(-32602)),
            "{message}"
        );
        // MRTR state-untrusted: no program has seen it.
        assert!(server.events().is_empty());
    };
    for at in 0..state.len() {
        let mut bytes = state.clone().into_bytes();
        bytes[at] = if bytes[at] == b'x' { b'y' } else { b'x' };
        let forged = String::from_utf8(bytes).expect("ASCII");
        refused(&mut server, &call(2, json!({ "requestState": forged })));
    }
    for forged in [
        "",
        "x",
        &state[1..],
        &format!("{state} "),
        "{\"round\":1,\"expires\":99999999999,\"state\":\"secret\"}",
    ] {
        refused(&mut server, &call(2, json!({ "requestState": forged })));
    }
    refused(
        &mut server,
        &call(2, json!({ "requestState": state, "name": "y" })),
    );
    let mut prompt = call(2, json!({ "requestState": state }));
    prompt["method"] = json!("prompts/get");
    refused(&mut server, &prompt);
    server.now = Time::from_millis(600_000);
    refused(&mut server, &call(2, json!({ "requestState": state })));
}

#[test]
fn mrtr_keys_unique() {
    let mut server = server();
    let key = server
        .serve(&request(
            1,
            "tools/call",
            json!({ "name": "x" }),
            json!({ "elicitation": {} }),
        ))
        .key;
    let twice = server
        .machine
        .reply(key, questions(&["q", "q"], None), Time::ZERO);
    assert!(
        matches!(twice, Err(SendError::InputRequests(_))),
        "{twice:?}"
    );
    assert!(server.drain().is_empty());
    let sent = server
        .reply(key, questions(&["q", "Q", ""], None))
        .remove(0);
    let names: Vec<&String> = sent["result"]["inputRequests"]
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 3);
}

#[test]
fn mrtr_no_retry_assumed() {
    let mut config = server_config(&[NEW]);
    config.limits.in_flight = 1;
    config.limits.pending = 1;
    config.limits.remembered_ids = 1;
    let mut server = CheckedServer::ready(config, NEW, json!({}));
    for id in 0..500_u64 {
        // Each is abandoned, and none takes the place of another one.
        let key = server
            .serve(&request(
                id,
                "tools/call",
                json!({ "name": "x" }),
                json!({ "elicitation": {} }),
            ))
            .key;
        server.reply(key, questions(&["q", "r"], Some("s")));
        assert_eq!(server.machine.poll_timeout(), None);
    }
    // A retry with some of the answers is raised with what came.
    let params = json!({ "name": "x", "inputResponses": { "q": { "action": "decline" } } });
    let request = server.serve(&request(
        9,
        "tools/call",
        params,
        json!({ "elicitation": {} }),
    ));
    assert!(request.responses.result("q").is_some() && request.responses.get("r").is_none());
}

#[test]
fn mrtr_state_echo_opaque_and_never_invented() {
    let mut client = client();
    let long = "s".repeat(60_000);
    let states = [
        "",
        " ",
        "{\"a\":1}",
        "eyJh",
        "\u{e9}\u{1f600}",
        "a\"b\\c\n\u{1}",
        "null",
        &long,
    ];
    for state in states {
        let (_, sent) = client.request("tools/call", json!({ "name": "x" }));
        let body = json!({ "resultType": "input_required", "requestState": state });
        let again = answer(&mut client, &sent, body).remove(0);
        assert_eq!(again["params"]["requestState"], state);
        assert!(again["params"].get("inputResponses").is_none());
        assert_ne!(again["id"], sent["id"]);
        // The next round has none: an old one is not used again.
        let body = json!({ "resultType": "input_required", "inputRequests": { "q": { "method": "roots/list" } } });
        assert!(answer(&mut client, &again, body).is_empty());
        let ask = client.asks().remove(0).0;
        let last = client.answer(ask, json!({ "roots": [] })).remove(0);
        assert!(last["params"].get("requestState").is_none(), "{last}");
        assert_eq!(last["params"]["name"], "x");
    }
}

#[test]
fn mrtr_not_for_others() {
    let mut client = client();
    let (_, first) = client.request("tools/call", json!({ "name": "x" }));
    let (_, second) = client.request("tools/call", json!({ "name": "x" }));
    let body = |state: &str| json!({ "resultType": "input_required", "requestState": state, "inputRequests": { "q": { "method": "roots/list" } } });
    answer(&mut client, &first, body("one"));
    let ask_one = client.asks().remove(0).0;
    answer(&mut client, &second, body("two"));
    let ask_two = client.asks().remove(0).0;
    let (_, third) = client.request("tools/call", json!({ "name": "x" }));
    assert!(
        third["params"].get("requestState").is_none()
            && third["params"].get("inputResponses").is_none()
    );
    let roots = |uri: &str| json!({ "roots": [{ "uri": uri }] });
    for (ask, state, uri) in [(ask_two, "two", "file:///2"), (ask_one, "one", "file:///1")] {
        let again = client.answer(ask, roots(uri)).remove(0);
        assert_eq!(again["params"]["requestState"], state);
        assert_eq!(
            again["params"]["inputResponses"],
            json!({ "q": roots(uri) })
        );
    }
}

#[test]
fn mrtr_one_field() {
    let mut server = server();
    let key = server
        .serve(&request(
            1,
            "tools/call",
            json!({ "name": "x" }),
            json!({ "elicitation": {} }),
        ))
        .key;
    let nothing = server.machine.reply(key, questions(&[], None), Time::ZERO);
    assert!(
        matches!(nothing, Err(SendError::InputRequests(_))),
        "{nothing:?}"
    );
    let sent = server.reply(key, questions(&[], Some("s"))).remove(0);
    assert!(
        sent["result"]["requestState"].is_string() && sent["result"].get("inputRequests").is_none()
    );
    let mut client = client();
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    assert!(
        answer(
            &mut client,
            &sent,
            json!({ "resultType": "input_required" })
        )
        .is_empty()
    );
    assert!(
        matches!(&client.outcomes()[..], [(done, Outcome::Error(e))] if *done == key && e.is_local())
    );
}

#[test]
fn mrtr_request_kinds() {
    let mut server = server();
    let key = server
        .serve(&request(
            1,
            "tools/call",
            json!({ "name": "x" }),
            json!({ "elicitation": {} }),
        ))
        .key;
    for method in ["tools/list", "ping", "x/y", "elicitation/Create"] {
        let asks = vec![("q".to_owned(), InputRequest::new(method, None))];
        let sent = server.machine.reply(
            key,
            Reply::InputRequired {
                requests: asks,
                state: None,
            },
            Time::ZERO,
        );
        assert!(
            matches!(sent, Err(SendError::Method { .. })),
            "{method}: {sent:?}"
        );
    }
    for bad in [
        json!({ "method": "tools/list" }),
        json!({ "method": 5 }),
        json!({}),
        json!("roots/list"),
        json!({ "method": "ping" }),
    ] {
        let mut client = client();
        let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
        let body = json!({ "resultType": "input_required", "requestState": "s", "inputRequests": { "q": bad } });
        assert!(answer(&mut client, &sent, body).is_empty(), "no retry");
        assert!(
            matches!(&client.outcomes()[..], [(done, Outcome::Error(_))] if *done == key),
            "{bad}"
        );
    }
}

/// Seal that opens each state only once.
#[derive(Debug)]
struct Once(ChecksumSeal, Mutex<BTreeSet<String>>);

impl Seal for Once {
    fn seal(&self, payload: &str, context: &[u8]) -> String {
        self.0.seal(payload, context)
    }

    fn open(&self, sealed: &str, context: &[u8]) -> Option<String> {
        let fresh = self.1.lock().expect("one thread").insert(sealed.to_owned());
        fresh.then(|| self.0.open(sealed, context)).flatten()
    }
}

#[test]
fn mrtr_single_use() {
    let mut config = server_config(&[NEW]);
    config.seal = Some(Arc::new(Once(ChecksumSeal(7), Mutex::default())));
    let mut server = CheckedServer::ready(config, NEW, json!({}));
    let capabilities = json!({ "elicitation": {} });
    let key = server
        .serve(&request(
            1,
            "tools/call",
            json!({ "name": "x" }),
            capabilities.clone(),
        ))
        .key;
    let asked = server.reply(key, questions(&["q"], Some("s"))).remove(0);
    let params = json!({ "name": "x", "requestState": asked["result"]["requestState"] });
    server.serve(&request(
        2,
        "tools/call",
        params.clone(),
        capabilities.clone(),
    ));
    let replayed = server.send(&request(3, "tools/call", params, capabilities));
    assert_eq!(replayed[0]["error"]["code"], -32602);
    assert!(server.events().is_empty());
}

#[test]
fn mrtr_three_methods() {
    for (method, params, _) in methods() {
        let mut server = server();
        let key = server
            .serve(&request(
                1,
                method,
                params.clone(),
                json!({ "elicitation": {} }),
            ))
            .key;
        let sent = server
            .machine
            .reply(key, questions(&["q"], None), Time::ZERO);
        assert_eq!(
            sent.is_ok(),
            MAY_ASK.contains(&method),
            "{method}: {sent:?}"
        );
        let mut client = client();
        let (_, sent) = client.request(method, params);
        let next = answer(
            &mut client,
            &sent,
            json!({ "resultType": "input_required", "requestState": "s" }),
        );
        assert_eq!(
            next.len(),
            usize::from(MAY_ASK.contains(&method)),
            "{method}"
        );
        assert_eq!(
            client.outcomes().len(),
            usize::from(!MAY_ASK.contains(&method))
        );
    }
}
