//! Requirements of `docs/requirements.toml` on requests that are answered with input requests (2026-07-28:
//! `basic/patterns/mrtr`).

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use mcp_exact_tests_session::discover_peers::{
    answer_request, client, request, request_of_every_method, server,
};
use mcp_exact_tests_session::*;

/// Methods whose requests a server may answer with input requests.
const METHODS_WITH_INPUT: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// A client repeats a request only when its application has answered all input requests.
#[test]
fn retry_waits_for_all_responses() {
    let mut client = client();
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    let question = json!({ "method": "roots/list" });
    let body = json!({ "resultType": "input_required", "inputRequests": { "a": question, "b": question } });
    assert!(answer_request(&mut client, &sent, body).is_empty());
    let asks = client.server_requests();
    assert_eq!(asks.len(), 2);
    let roots = |uri: &str| json!({ "roots": [{ "uri": uri }] });
    assert!(
        client
            .answer_server_request(asks[1].0, roots("file:///b"))
            .is_empty(),
        "one is missing"
    );
    let again = client.answer_server_request(asks[0].0, roots("file:///a"));
    let expected = json!({ "a": roots("file:///a"), "b": roots("file:///b") });
    assert_eq!(again[0]["params"]["inputResponses"], expected);
    // Nothing was asked: at once.
    let retry = answer_request(
        &mut client,
        &again[0],
        json!({ "resultType": "input_required", "requestState": "s" }),
    );
    assert_eq!(retry.len(), 1);
    answer_request(
        &mut client,
        &retry[0],
        json!({ "resultType": "complete", "content": [] }),
    );
    assert!(matches!(&client.outcomes()[..], [(done, Outcome::Result(_))] if *done == key));
}

/// A server sends an input request only if the client has declared the required capability in the same request.
#[test]
fn input_requests_need_declared_capabilities() {
    let url = json!({ "mode": "url", "message": "m", "url": "https://x.example/" });
    let plain = json!({ "messages": [], "maxTokens": 1 });
    let tools = json!({ "messages": [], "maxTokens": 1, "tools": [] });
    let asks = [
        ("roots", elicitation_in_result("roots/list", json!({}))),
        ("form", elicitation_request()),
        ("url", elicitation_in_result("elicitation/create", url)),
        (
            "sampling",
            elicitation_in_result("sampling/createMessage", plain),
        ),
        (
            "tools",
            elicitation_in_result("sampling/createMessage", tools),
        ),
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
            let sent = server.endpoint.reply(key, reply, Time::ZERO);
            assert_eq!(
                sent.is_ok(),
                able.contains(name),
                "{capabilities} {name}: {sent:?}"
            );
            let left = server.take_messages();
            assert_eq!(left.len(), usize::from(sent.is_ok()));
            assert!(
                left.iter()
                    .all(|message| message["result"]["resultType"] == "input_required")
            );
        }
    }
}

/// Creates an input request with this method and these params.
fn elicitation_in_result(method: &str, params: Value) -> InputRequest {
    InputRequest::new(method, Some(to_object(params)))
}

/// A retry whose request state was changed is refused.
#[test]
fn changed_request_state_is_refused() {
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
        .reply(key, elicitations_by_name(&["q"], Some("secret")))
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

/// A reply with two input requests of the same name is refused.
#[test]
fn input_request_names_are_unique() {
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
        .endpoint
        .reply(key, elicitations_by_name(&["q", "q"], None), Time::ZERO);
    assert!(
        matches!(twice, Err(SendError::InputRequests(_))),
        "{twice:?}"
    );
    assert!(server.take_messages().is_empty());
    let sent = server
        .reply(key, elicitations_by_name(&["q", "Q", ""], None))
        .remove(0);
    let names: Vec<&String> = sent["result"]["inputRequests"]
        .as_object()
        .expect("an object")
        .keys()
        .collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 3);
}

/// A server keeps no memory for requests that it has answered with input requests.
#[test]
fn server_keeps_nothing_for_retries() {
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.limits.in_flight = 1;
    config.limits.pending = 1;
    config.limits.remembered_ids = 1;
    let mut server = CheckedServer::with_session(config, DISCOVER_REVISION, json!({}));
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
        server.reply(key, elicitations_by_name(&["q", "r"], Some("s")));
        assert_eq!(server.endpoint.poll_timeout(), None);
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

/// A retry contains the request state exactly as the server has sent it, or no request state if the server has sent
/// none.
#[test]
fn client_repeats_request_state_unchanged() {
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
        let again = answer_request(&mut client, &sent, body).remove(0);
        assert_eq!(again["params"]["requestState"], state);
        assert!(again["params"].get("inputResponses").is_none());
        assert_ne!(again["id"], sent["id"]);
        // The next round has none: an old one is not used again.
        let body = json!({ "resultType": "input_required", "inputRequests": { "q": { "method": "roots/list" } } });
        assert!(answer_request(&mut client, &again, body).is_empty());
        let ask = client.server_requests().remove(0).0;
        let last = client
            .answer_server_request(ask, json!({ "roots": [] }))
            .remove(0);
        assert!(last["params"].get("requestState").is_none(), "{last}");
        assert_eq!(last["params"]["name"], "x");
    }
}

/// The input responses and the request state of one request are sent only in the retry of that request.
#[test]
fn retries_belong_to_their_request() {
    let mut client = client();
    let (_, first) = client.request("tools/call", json!({ "name": "x" }));
    let (_, second) = client.request("tools/call", json!({ "name": "x" }));
    let body = |state: &str| json!({ "resultType": "input_required", "requestState": state, "inputRequests": { "q": { "method": "roots/list" } } });
    answer_request(&mut client, &first, body("one"));
    let ask_one = client.server_requests().remove(0).0;
    answer_request(&mut client, &second, body("two"));
    let ask_two = client.server_requests().remove(0).0;
    let (_, third) = client.request("tools/call", json!({ "name": "x" }));
    assert!(
        third["params"].get("requestState").is_none()
            && third["params"].get("inputResponses").is_none()
    );
    let roots = |uri: &str| json!({ "roots": [{ "uri": uri }] });
    for (ask, state, uri) in [(ask_two, "two", "file:///2"), (ask_one, "one", "file:///1")] {
        let again = client.answer_server_request(ask, roots(uri)).remove(0);
        assert_eq!(again["params"]["requestState"], state);
        assert_eq!(
            again["params"]["inputResponses"],
            json!({ "q": roots(uri) })
        );
    }
}

/// A reply that requires input without input requests and without request state is refused.
#[test]
fn input_required_has_requests_or_state() {
    let mut server = server();
    let key = server
        .serve(&request(
            1,
            "tools/call",
            json!({ "name": "x" }),
            json!({ "elicitation": {} }),
        ))
        .key;
    let nothing = server
        .endpoint
        .reply(key, elicitations_by_name(&[], None), Time::ZERO);
    assert!(
        matches!(nothing, Err(SendError::InputRequests(_))),
        "{nothing:?}"
    );
    let sent = server
        .reply(key, elicitations_by_name(&[], Some("s")))
        .remove(0);
    assert!(
        sent["result"]["requestState"].is_string() && sent["result"].get("inputRequests").is_none()
    );
    let mut client = client();
    let (key, sent) = client.request("tools/call", json!({ "name": "x" }));
    assert!(
        answer_request(
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

/// Input requests are elicitations, sampling requests or requests for roots; a reply with any other method is refused.
#[test]
fn only_three_kinds_are_input_requests() {
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
        let sent = server.endpoint.reply(
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
        assert!(
            answer_request(&mut client, &sent, body).is_empty(),
            "no retry"
        );
        assert!(
            matches!(&client.outcomes()[..], [(done, Outcome::Error(_))] if *done == key),
            "{bad}"
        );
    }
}

/// Seal that opens each request state only once.
#[derive(Debug)]
struct SingleUseSeal(ChecksumSeal, Mutex<BTreeSet<String>>);

impl Seal for SingleUseSeal {
    fn seal(&self, payload: &str, context: &[u8]) -> String {
        self.0.seal(payload, context)
    }

    fn open(&self, sealed: &str, context: &[u8]) -> Option<String> {
        let fresh = self.1.lock().expect("one thread").insert(sealed.to_owned());
        fresh.then(|| self.0.open(sealed, context)).flatten()
    }
}

/// With a seal that opens each state only once, a second retry with the same state is refused.
#[test]
fn seal_can_enforce_single_use() {
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.seal = Some(Arc::new(SingleUseSeal(ChecksumSeal(7), Mutex::default())));
    let mut server = CheckedServer::with_session(config, DISCOVER_REVISION, json!({}));
    let capabilities = json!({ "elicitation": {} });
    let key = server
        .serve(&request(
            1,
            "tools/call",
            json!({ "name": "x" }),
            capabilities.clone(),
        ))
        .key;
    let asked = server
        .reply(key, elicitations_by_name(&["q"], Some("s")))
        .remove(0);
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

/// Only `tools/call`, `prompts/get` and `resources/read` can be answered with input requests.
#[test]
fn only_three_methods_require_input() {
    for (method, params, _) in request_of_every_method() {
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
            .endpoint
            .reply(key, elicitations_by_name(&["q"], None), Time::ZERO);
        assert_eq!(
            sent.is_ok(),
            METHODS_WITH_INPUT.contains(&method),
            "{method}: {sent:?}"
        );
        let mut client = client();
        let (_, sent) = client.request(method, params);
        let next = answer_request(
            &mut client,
            &sent,
            json!({ "resultType": "input_required", "requestState": "s" }),
        );
        assert_eq!(
            next.len(),
            usize::from(METHODS_WITH_INPUT.contains(&method)),
            "{method}"
        );
        assert_eq!(
            client.outcomes().len(),
            usize::from(!METHODS_WITH_INPUT.contains(&method))
        );
    }
}
