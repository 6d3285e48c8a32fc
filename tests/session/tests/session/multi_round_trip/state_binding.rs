//! `requestState` is bound to its request (2026-07-28: `basic/patterns/mrtr`, "Server Requirements").

use std::time::Duration;

use mcp_exact_tests_session::*;

/// Params of the original call.
const CALL_PARAMS: &str =
    r#"{"name":"x","arguments":{"a":1,"b":["c",{"d":null,"e":true}],"f":"é"}}"#;

/// Delivers a tool call of a principal; returns the request that the application receives, if any.
fn receive(
    server: &mut ServerEndpoint<()>,
    id: u64,
    params: &str,
    principal: Option<&str>,
    now: Time,
) -> Option<IncomingRequest<()>> {
    let meta = format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{DISCOVER_REVISION}","io.modelcontextprotocol/clientCapabilities":{{"elicitation":{{}}}}}}"#
    );
    let (begin, rest) = params.split_at(1);
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{begin}{meta},{rest}}}"#
    );
    let context = FrameContext {
        principal: principal.map(|name| Principal(name.to_owned())),
        ..FrameContext::new(())
    };
    server
        .receive(StreamId::DUPLEX, text.as_bytes(), context, now)
        .expect("open");
    match server.poll_event() {
        Some(ServerEvent::Request(request)) => Some(request),
        None => None,
        other => panic!("{other:?}"),
    }
}

/// Removes and returns the messages of the server.
fn sent_messages(server: &mut ServerEndpoint<()>) -> Vec<Value> {
    let mut bytes = Vec::new();
    let mut all = Vec::new();
    while server.poll_transmit(&mut bytes).is_some() {
        all.push(serde_json::from_slice(&std::mem::take(&mut bytes)).expect("JSON"));
    }
    all
}

/// Creates a server that has answered a call with a `requestState`; returns the server and the state.
fn server_with_state(config: ServerConfig) -> (ServerEndpoint<()>, String) {
    let mut server = server(config);
    let request =
        receive(&mut server, 1, CALL_PARAMS, Some("alice"), Time::ZERO).expect("a request");
    server
        .reply(
            request.key,
            elicitations_by_name(&["a"], Some("mine")),
            Time::ZERO,
        )
        .expect("it may ask");
    let answer = sent_messages(&mut server).remove(0);
    check_message(DISCOVER_REVISION, false, Some("tools/call"), &answer);
    let state = answer["result"]["requestState"].as_str().expect("a state");
    let state = json!(state).to_string();
    (server, state)
}

/// Adds an input response and the request state to the params of a call.
fn retry_params(state: &str, params: &str) -> String {
    let body = params.strip_suffix('}').expect("an object");
    format!(r#"{body},"requestState":{state},"inputResponses":{{"a":{{"action":"decline"}}}}}}"#)
}

/// "an identifier for the originating request ... rejecting state presented on a request that does not match": the
/// order of members, white space, escapes and the spelling of numbers do not change the identity of a request.
#[test]
fn state_is_bound_to_values() {
    for same in [
        CALL_PARAMS,
        r#"{ "arguments" : {"f":"\u00e9", "b":["c",{"e":true,"d":null}], "a":1.0}, "name":"\u0078"}"#,
        r#"{"name":"x","arguments":{"b":["c",{"d":null,"e":true}],"f":"é","a":10e-1}}"#,
        "{\"name\":\"x\",\n\"arguments\":{\"a\":1,\t\"b\":[ \"c\" , {\"d\":null,\"e\":true}],\"f\":\"é\"}}",
    ] {
        let (mut server, state) = server_with_state(server_config(&[DISCOVER_REVISION]));
        let request = receive(
            &mut server,
            2,
            &retry_params(&state, same),
            Some("alice"),
            Time::ZERO,
        );
        let request = request.unwrap_or_else(|| panic!("refused: {same}"));
        assert_eq!(
            (request.retries, request.state.as_deref()),
            (1, Some("mine"))
        );
        assert!(request.responses.get("a").is_some());
        // The state itself may be spelled with escapes, too.
        let escaped: String = state
            .trim_matches('"')
            .chars()
            .map(|c| match c {
                c if c.is_ascii_alphanumeric() => format!("\\u{:04x}", u32::from(c)),
                c => c.to_string(),
            })
            .collect();
        if !state.contains('\\') {
            let escaped = format!("\"{escaped}\"");
            assert!(
                receive(
                    &mut server,
                    3,
                    &retry_params(&escaped, same),
                    Some("alice"),
                    Time::ZERO
                )
                .is_some()
            );
        }
    }
}

/// "servers ... MUST reject state that fails verification": the state of a different request or principal, and a
/// changed, forged or expired state, are rejected.
#[test]
fn state_of_another_request_is_refused() {
    let other_calls = [
        r#"{"name":"y","arguments":{"a":1,"b":["c",{"d":null,"e":true}],"f":"é"}}"#,
        r#"{"name":"x","arguments":{"a":2,"b":["c",{"d":null,"e":true}],"f":"é"}}"#,
        r#"{"name":"x","arguments":{"a":"1","b":["c",{"d":null,"e":true}],"f":"é"}}"#,
        r#"{"name":"x","arguments":{"a":1,"b":[{"d":null,"e":true},"c"],"f":"é"}}"#,
        r#"{"name":"x","arguments":{"a":1,"b":["c",{"d":null,"e":true}],"f":"é","g":null}}"#,
        r#"{"name":"x","arguments":{"a":1,"b":["c",{"d":null,"e":true}]}}"#,
        r#"{"name":"x"}"#,
    ];
    for other in other_calls {
        let (mut server, state) = server_with_state(server_config(&[DISCOVER_REVISION]));
        assert!(
            receive(
                &mut server,
                2,
                &retry_params(&state, other),
                Some("alice"),
                Time::ZERO
            )
            .is_none(),
            "{other}"
        );
        assert_eq!(sent_messages(&mut server)[0]["error"]["code"], -32602);
    }
    let expiry = Time::ZERO.saturating_add(Duration::from_secs(600));
    for (state_of, principal, now) in [
        (None, Some("bob"), Time::ZERO),
        (None, None, Time::ZERO),
        (None, Some("alice"), expiry),
        (Some(r#""made up""#), Some("alice"), Time::ZERO),
        (Some("5"), Some("alice"), Time::ZERO),
        (Some("null"), Some("alice"), Time::ZERO),
        (Some(r#""""#), Some("alice"), Time::ZERO),
    ] {
        let (mut server, state) = server_with_state(server_config(&[DISCOVER_REVISION]));
        let state = state_of.unwrap_or(&state);
        let refused = receive(
            &mut server,
            2,
            &retry_params(state, CALL_PARAMS),
            principal,
            now,
        );
        assert!(refused.is_none(), "{state} {principal:?} {now:?}");
        assert_eq!(sent_messages(&mut server)[0]["error"]["code"], -32602);
    }
}

/// A state that one process has sealed can be opened by any process with the same key until it expires: "these measures
/// bound the replay window ... but do not by themselves guarantee single-use". The same state can be used several
/// times.
#[test]
fn state_is_reusable_until_expiry() {
    let (_, state) = server_with_state(server_config(&[DISCOVER_REVISION]));
    let mut other = server(server_config(&[DISCOVER_REVISION]));
    let late = Time::from_millis(599_999);
    for id in [2, 3] {
        let request = receive(
            &mut other,
            id,
            &retry_params(&state, CALL_PARAMS),
            Some("alice"),
            late,
        )
        .expect("valid");
        assert_eq!(request.retries, 1);
    }
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.seal = Some(std::sync::Arc::new(ChecksumSeal(8)));
    let mut stranger = server(config);
    assert!(
        receive(
            &mut stranger,
            2,
            &retry_params(&state, CALL_PARAMS),
            Some("alice"),
            Time::ZERO
        )
        .is_none()
    );
}

/// With a seal, the retries of a request are counted; without a seal, every request with input responses counts as the
/// first retry.
#[test]
fn retries_are_counted_with_a_seal() {
    let mut config = server_config(&[DISCOVER_REVISION]);
    config.limits.retries = 3;
    let (mut server, mut state) = server_with_state(config.clone());
    for retry in 1..=3 {
        let request = receive(
            &mut server,
            retry + 1,
            &retry_params(&state, CALL_PARAMS),
            Some("alice"),
            Time::ZERO,
        );
        let request = request.expect("valid");
        assert_eq!(u64::from(request.retries), retry);
        let asked = server.reply(request.key, elicitations_by_name(&["a"], None), Time::ZERO);
        if retry == 3 {
            assert_eq!(asked, Err(SendError::Limit(Limit::Retries)));
            break;
        }
        assert_eq!(asked, Ok(SendOutcome::Queued));
        state = sent_messages(&mut server)[0]["result"]["requestState"].to_string();
    }
    config.seal = None;
    let mut bare = mcp_exact_tests_session::server(config);
    for id in 1..10 {
        let params = r#"{"name":"x","inputResponses":{"a":{"action":"decline"}}}"#;
        let request = receive(&mut bare, id, params, None, Time::ZERO).expect("a request");
        assert_eq!((request.retries, request.state), (1, None));
        let asked = bare.reply(request.key, elicitations_by_name(&["a"], None), Time::ZERO);
        assert_eq!(asked, Ok(SendOutcome::Queued));
        assert!(
            sent_messages(&mut bare)[0]["result"]
                .get("requestState")
                .is_none()
        );
    }
    let request = receive(&mut bare, 20, r#"{"name":"x"}"#, None, Time::ZERO).expect("a request");
    let with_state = bare.reply(
        request.key,
        elicitations_by_name(&["a"], Some("s")),
        Time::ZERO,
    );
    assert!(
        matches!(with_state, Err(SendError::InputRequests(_))),
        "{with_state:?}"
    );
}
