//! Typed views in the application's home revision, in both directions: errors, server requests, responses and
//! notifications of other revisions, and the effect of each loss policy.

use mcp_2025_03_26 as older;
use mcp_2025_06_18 as old;
use mcp_2025_11_25 as new;
use mcp_exact_tests_session::*;

/// Types of 2025-03-26.
type Types20250326 = older::V2025_03_26;
/// Types of 2025-06-18.
type Types20250618 = old::V2025_06_18;
/// Types of 2025-11-25.
type Types20251125 = new::V2025_11_25;
/// Types of 2026-07-28.
type Types20260728 = mcp_2026_07_28::V2026_07_28;

/// Home revision of the typed views.
const HOME_REVISION: &str = "2025-06-18";

/// Checks the result of `convert` under every loss policy; the conversion must lose exactly the member at this pointer.
#[track_caller]
fn check_policies<T>(
    pointer: &str,
    kind: LossKind,
    convert: impl Fn(LossPolicy) -> Result<ConvertedValue<T>, PeerError>,
) -> T {
    let Err(refused) = convert(LossPolicy::Refuse) else {
        panic!("not refused");
    };
    assert_eq!(refused.code(), Some(-32602));
    let data = refused.data().map(|data| data.text().to_owned());
    assert_eq!(data, Some(format!("{{\"pointer\":\"{pointer}\"}}")));
    let told = convert(LossPolicy::Report);
    let Ok(ConvertedValue { losses, .. }) = told else {
        panic!("not converted");
    };
    let told = losses.iter().map(|loss| (&*loss.pointer, loss.kind));
    assert!(
        told.into_iter().any(|loss| loss == (pointer, kind)),
        "{losses:?}"
    );
    let Ok(ConvertedValue { value, losses }) = convert(LossPolicy::Accept) else {
        panic!("not converted");
    };
    assert!(losses.is_empty(), "{losses:?}");
    value
}

/// Returns capabilities of clients that include every capability of the tested messages.
fn all_capabilities() -> Value {
    json!({ "roots": { "listChanged": true }, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} } })
}

/// Delivers a request to a server of the revision; returns the server and the delivered request.
fn serve_request(
    revision: &str,
    method: &str,
    params: Value,
) -> (CheckedServer, IncomingRequest<()>) {
    let mut server =
        CheckedServer::with_session(server_config(&[revision]), revision, all_capabilities());
    let request = server.serve(&request_of_revision(
        revision,
        1,
        method,
        params,
        all_capabilities(),
    ));
    (server, request)
}

/// The code of an error of the home revision is converted to the code that the negotiated revision defines.
#[test]
fn error_codes_are_converted() {
    let missing = PeerError::new(code::RESOURCE_NOT_FOUND, "no");
    for revision in all_revisions() {
        let modern = lifecycle(revision) == Some(Lifecycle::Discover);
        let wanted = if modern { -32602 } else { -32002 };
        let params = json!({ "uri": "a:b" });
        let (mut server, request) = serve_request(revision, "resources/read", params.clone());
        let reply = request
            .error_as::<Types20250618>(&missing)
            .expect("there is one");
        let answer = server.reply(request.key, reply).remove(0);
        assert_eq!(answer["error"]["code"], wanted, "{revision}");
        assert_eq!(answer["error"]["message"], "no");
        // The other way it is found by the URI that was asked for.
        for (uri, code) in [("a:b", wanted), ("c:d", -32602)] {
            let data = Json::from(json!({ "uri": uri }));
            let error = PeerError::invalid_params("no").with_data(data);
            let (mut server, request) = serve_request(revision, "resources/read", params.clone());
            let reply = request
                .error_as::<Types20260728>(&error)
                .expect("there is one");
            let answer = server.reply(request.key, reply).remove(0);
            assert_eq!(answer["error"]["code"], code, "{revision} {uri}");
            assert_eq!(answer["error"]["data"]["uri"], uri);
        }
    }
    // What is a result there is refused, with what to do instead.
    let (_, request) = serve_request(DISCOVER_REVISION, "tools/call", json!({ "name": "x" }));
    let demand = PeerError::new(code::URL_ELICITATION_REQUIRED, "go there");
    let refused = request
        .error_as::<Types20251125>(&demand)
        .expect_err("a result");
    assert!(refused.message().contains("input_required"), "{refused}");
}

/// Specification 2026-07-28, `basic`, "Per-Request Protocol Fields": each request names version, client and
/// capabilities. A request with an absent or empty `_meta` gets the members of its session.
#[test]
fn requests_get_the_session_metadata() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let home = |params: Value| {
            let (_, request) = serve_request(revision, "tools/call", params);
            let quiet = request.typed_as::<Types20260728>(LossPolicy::Accept);
            let quiet = quiet.expect("convertible");
            assert!(quiet.losses.is_empty());
            let told = request.typed_as::<Types20260728>(LossPolicy::Report);
            let told = told.expect("convertible");
            assert_eq!(told.value, quiet.value);
            (told.value, told.losses.into_vec())
        };
        let arguments = json!({ "task": 1 });
        let (added, mut losses) = home(json!({ "name": "x", "arguments": arguments }));
        let params = json!({ "name": "x", "arguments": arguments, "_meta": {} });
        let (converted, expected) = home(params);
        assert_eq!(added, converted, "{revision}");
        let of_meta = losses.remove(0);
        assert_eq!(&*of_meta.pointer, "/_meta");
        assert_eq!(losses, expected, "{revision}");
        assert_eq!(losses[0].subject.as_deref(), Some("tool `x`"));
    }
}

/// A session keeps its metadata for one home revision. Requests have the same value and losses in another home revision,
/// and a policy that refuses losses refuses them in both cases.
#[test]
fn home_revisions_can_alternate() {
    let params = json!({ "name": "x" });
    let (_, first) = serve_request("2025-06-18", "tools/call", params.clone());
    let (_, later) = serve_request("2025-06-18", "tools/call", params);
    let other = later.typed_as::<Types20251125>(LossPolicy::Report);
    assert!(other.expect("convertible").losses.is_empty());
    for policy in [LossPolicy::Report, LossPolicy::Accept] {
        let expected = first
            .typed_as::<Types20260728>(policy)
            .expect("convertible");
        let converted = later
            .typed_as::<Types20260728>(policy)
            .expect("convertible");
        assert_eq!(converted, expected);
        assert_eq!(
            format!("{:?}", converted.losses),
            format!("{:?}", expected.losses.into_vec())
        );
    }
    let refused = |request: &IncomingRequest<()>| {
        request
            .typed_as::<Types20260728>(LossPolicy::Refuse)
            .map(|home| home.losses.into_vec())
    };
    assert_eq!(refused(&first), refused(&later));
}

/// Returns sampling params with additional members.
fn sampling_params(more: Value) -> Value {
    let text = json!({ "type": "text", "text": "?" });
    let mut params = json!({ "maxTokens": 5, "messages": [{ "role": "user", "content": text }] });
    for (name, value) in more.as_object().into_iter().flatten() {
        params[name] = value.clone();
    }
    params
}

/// An input request of another revision is converted to the negotiated revision before it is sent.
#[test]
fn input_requests_are_converted() {
    let params = sampling_params(json!({ "toolChoice": { "mode": "auto" } })).to_string();
    let params: new::CreateMessageRequestParams = new::from_str(&params).expect("typed");
    let (mut server, request) = serve_request(HOME_REVISION, "tools/call", json!({ "name": "x" }));
    let ask = check_policies("/toolChoice", LossKind::Dropped, |policy| {
        request.input_request_as::<Types20251125, new::CreateMessageRequest>(&params, policy)
    });
    let asks = vec![("s".to_owned(), ask)];
    let sent = server.reply(
        request.key,
        Reply::InputRequired {
            requests: asks,
            state: None,
        },
    );
    assert_eq!(sent[0]["method"], "sampling/createMessage");
    assert_eq!(sent[0]["params"], sampling_params(json!({})));
    // What that revision cannot ask is refused whatever the policy is.
    let url = json!({ "mode": "url", "message": "m", "url": "https://x.y", "elicitationId": "e" });
    let url: new::ElicitRequestParams = new::from_str(&url.to_string()).expect("typed");
    for policy in [LossPolicy::Refuse, LossPolicy::Report, LossPolicy::Accept] {
        let refused = request.input_request_as::<Types20251125, new::ElicitRequest>(&url, policy);
        assert!(refused.is_err(), "{policy:?}");
    }
}

/// Returns a sampling result with `_meta` in its content block; this member exists from 2025-06-18 on.
fn sampling_result() -> Value {
    let text = json!({ "type": "text", "text": "a", "_meta": { "com.example/own": 1 } });
    json!({ "role": "assistant", "model": "m", "content": text })
}

/// The input responses of a client are converted to the home revision.
#[test]
fn client_responses_are_converted() {
    let (mut server, request) = serve_request("2025-11-25", "tools/call", json!({ "name": "x" }));
    let params = new::from_str(&sampling_params(json!({})).to_string()).expect("typed");
    let ask = InputRequest::from_typed::<new::CreateMessageRequest>(&params).expect("an object");
    assert_eq!(ask.method, "sampling/createMessage");
    assert_eq!(
        to_value(ask.params.as_ref().expect("some")),
        sampling_params(json!({}))
    );
    let asks = vec![
        ("s".to_owned(), ask),
        ("r".to_owned(), InputRequest::new("roots/list", None)),
    ];
    let sent = server.reply(
        request.key,
        Reply::InputRequired {
            requests: asks,
            state: None,
        },
    );
    server.send(&json!({ "jsonrpc": "2.0", "id": sent[0]["id"], "result": sampling_result() }));
    let error = json!({ "code": 1, "message": "no" });
    server.send(&json!({ "jsonrpc": "2.0", "id": sent[1]["id"], "error": error }));
    let again = server.take_request();
    let home = check_policies("/content/_meta", LossKind::Dropped, |policy| {
        let answer = again.response_as::<Types20250326, older::CreateMessageRequest>("s", policy);
        answer.expect("a result")
    });
    assert_eq!(home.model, "m");
    assert!(matches!(
        &home.content,
        older::SamplingMessageContent::Text(_)
    ));
    let same =
        again.response_as::<Types20251125, new::CreateMessageRequest>("s", LossPolicy::Refuse);
    assert!(
        same.expect("a result")
            .expect("nothing is lost")
            .losses
            .is_empty()
    );
    // What has no result has none at home; what is of another kind does not fit.
    for none in ["r", "unknown"] {
        let answer =
            again.response_as::<Types20250618, old::ListRootsRequest>(none, LossPolicy::Accept);
        assert!(answer.is_none(), "{none}");
    }
    let wrong = again.response_as::<Types20250618, old::ListRootsRequest>("s", LossPolicy::Accept);
    assert!(wrong.expect("a result").is_err());
}

/// Delivers a server request to a client of a revision; returns the client, the request's key and the request.
fn client_with_request(
    revision: &str,
    params: Value,
) -> (CheckedClient, ServerRequestKey, ServerRequest) {
    let mut client = connected_client(revision);
    let method = "sampling/createMessage";
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
    let (key, ask) = client.server_requests().remove(0);
    (client, key, ask)
}

/// A server request is converted to the home revision of the client's application.
#[test]
fn server_requests_are_converted() {
    let params = sampling_params(json!({ "toolChoice": { "mode": "auto" } }));
    let (_, _, ask) = client_with_request("2025-11-25", params);
    let home = check_policies("/toolChoice", LossKind::Dropped, |policy| {
        ask.typed_as::<Types20250618, old::CreateMessageRequest>(policy)
    });
    assert_eq!(home.messages.len(), 1);
    assert!(home.extra.is_empty(), "{home:?}");
    let same = ask.typed_as::<Types20251125, new::CreateMessageRequest>(LossPolicy::Refuse);
    assert!(same.expect("nothing is lost").value.tool_choice.is_some());
    let other = ask.typed_as::<Types20250618, old::ElicitRequest>(LossPolicy::Accept);
    assert_eq!(other.expect_err("another question").code(), Some(-32601));
}

/// The answer of a client's application is converted from its home revision to the negotiated revision.
#[test]
fn answers_to_server_are_converted() {
    let (mut client, key, ask) = client_with_request("2025-03-26", sampling_params(json!({})));
    let answer: new::CreateMessageResult =
        new::from_str(&sampling_result().to_string()).expect("typed");
    let answer = check_policies("/content/_meta", LossKind::Dropped, |policy| {
        ask.response_as::<Types20251125>(&answer, policy)
    });
    let now = client.now;
    client
        .endpoint
        .answer(key, Ok(answer), now)
        .expect("it waits");
    let sent = client.take_messages().remove(0);
    let expected = json!({ "type": "text", "text": "a" });
    assert_eq!(sent["result"]["content"], expected);
    let (_, _, ask) = client_with_request(HOME_REVISION, sampling_params(json!({})));
    let tool = json!({ "role": "assistant", "model": "m", "content": { "type": "tool_use", "id": "t", "name": "x", "input": {} } });
    let tool: new::CreateMessageResult = new::from_str(&tool.to_string()).expect("typed");
    assert!(
        ask.response_as::<Types20251125>(&tool, LossPolicy::Accept)
            .is_err()
    );
}

/// A client's notification is converted to the home revision of the server's application.
#[test]
fn client_notifications_are_converted() {
    for revision in handshake_revisions() {
        let mut server =
            CheckedServer::with_session(server_config(&[revision]), revision, all_capabilities());
        let method = "notifications/roots/list_changed";
        let params = json!({ "_meta": { "com.example/own": 1 } });
        server.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
        let events = server.events();
        let [ServerEvent::Notification(told)] = &events[..] else {
            panic!("{revision}: {events:?}");
        };
        let home = told
            .typed_as::<Types20250618>(LossPolicy::Refuse)
            .expect("it fits")
            .value;
        let old::ClientNotification::RootsListChanged(home) = home else {
            panic!("{revision}: {home:?}");
        };
        let meta = home.params.and_then(|params| params.meta);
        assert!(meta.is_some_and(|meta| meta.get("com.example/own").is_some()));
        // 2026-07-28 has no such notification.
        assert!(
            told.typed_as::<Types20260728>(LossPolicy::Accept).is_err(),
            "{revision}"
        );
    }
}

/// A server's notification is converted to the home revision of the client's application, if that revision defines it.
#[test]
fn server_notifications_are_converted() {
    let mut config = client_config(&["2025-11-25"]);
    config.extensions.notifications = vec!["x/note".into()];
    let mut client = CheckedClient::connected(config, "2025-11-25", json!({ "tools": {} }));
    let status = json!({ "taskId": "t", "status": "working", "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60000 });
    let method = "notifications/tasks/status";
    client.send(&json!({ "jsonrpc": "2.0", "method": method, "params": status }));
    let events = client.events();
    let [ClientEvent::Notification(heard)] = &events[..] else {
        panic!("{events:?}");
    };
    let home = heard
        .typed_as::<Types20251125>(LossPolicy::Refuse)
        .expect("it fits");
    assert!(home.losses.is_empty());
    let new::ServerNotification::TaskStatus(home) = home.value else {
        panic!("{home:?}");
    };
    assert_eq!(home.params.task_id, "t");
    for policy in [LossPolicy::Refuse, LossPolicy::Report, LossPolicy::Accept] {
        assert!(
            heard.typed_as::<Types20250618>(policy).is_err(),
            "{policy:?}"
        );
    }
}

/// A notification of a generated type is sent if the negotiated revision defines its method.
#[test]
fn typed_notifications_are_sent() {
    let mut server =
        CheckedServer::with_session(server_config(&[HOME_REVISION]), HOME_REVISION, json!({}));
    let params = old::ResourceUpdatedNotificationParams::new("a:b");
    let sent = server
        .endpoint
        .notify_typed::<old::ResourceUpdatedNotification>(Scope::Peer, &params);
    assert_eq!(sent, Ok(SendOutcome::Queued));
    let method = "notifications/resources/updated";
    let expected = json!({ "jsonrpc": "2.0", "method": method, "params": { "uri": "a:b" } });
    assert_eq!(server.take_messages(), [expected]);
    // What the revision does not have does not leave.
    let params = new::ElicitationCompleteNotificationParams::new("e");
    let sent = server
        .endpoint
        .notify_typed::<new::ElicitationCompleteNotification>(Scope::Peer, &params);
    assert!(matches!(sent, Err(SendError::Method { .. })), "{sent:?}");
    assert!(server.take_messages().is_empty());
}

/// If a method's params are optional, its typed params are an `Option`, and `None` sends no params.
#[test]
fn optional_params_have_option_types() {
    let options = CallOptions::default();
    let mut client = connected_client(HOME_REVISION);
    let now = client.now;
    let page = old::PaginatedRequestParams {
        cursor: Some("c".into()),
        ..old::PaginatedRequestParams::default()
    };
    for (params, expected) in [(None, None), (Some(page), Some(json!({ "cursor": "c" })))] {
        let sent =
            client
                .endpoint
                .request_typed::<old::ListToolsRequest>(&params, options.clone(), now);
        sent.expect("it leaves");
        assert_eq!(client.take_messages()[0].get("params"), expected.as_ref());
        let sent = client
            .endpoint
            .request_as::<Types20250618, old::ListToolsRequest>(
                &params,
                options.clone(),
                LossPolicy::Refuse,
                now,
            );
        assert!(sent.expect("it leaves").losses.is_empty());
        assert_eq!(client.take_messages()[0].get("params"), expected.as_ref());
    }
    let asked = InputRequest::from_typed::<old::ListRootsRequest>(&None).expect("nothing to say");
    assert_eq!(asked, InputRequest::new("roots/list", None));
    let (_, request) = serve_request(HOME_REVISION, "tools/call", json!({ "name": "x" }));
    let asked =
        request.input_request_as::<Types20251125, new::ListRootsRequest>(&None, LossPolicy::Refuse);
    assert_eq!(
        asked.expect("the same").value,
        InputRequest::new("roots/list", None)
    );
}

/// Absent params are `None` after the conversion to the home revision.
#[test]
fn absent_params_stay_absent() {
    let mut client = connected_client(HOME_REVISION);
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }));
    let (_, ask) = client.server_requests().remove(0);
    let home = ask.typed_as::<Types20251125, new::ListRootsRequest>(LossPolicy::Refuse);
    assert_eq!(home.expect("it fits").value, None);
}

/// A list change that is sent with `None` as params has no member `params`.
#[test]
fn list_changes_have_no_params() {
    let mut config = server_config(&[HOME_REVISION]);
    config.capabilities = to_object(json!({ "tools": { "listChanged": true } }));
    let mut server = CheckedServer::with_session(config, HOME_REVISION, json!({}));
    let sent = server
        .endpoint
        .notify_typed::<old::ToolListChangedNotification>(Scope::Peer, &None);
    assert_eq!(sent, Ok(SendOutcome::Queued));
    let method = "notifications/tools/list_changed";
    assert_eq!(
        server.take_messages(),
        [json!({ "jsonrpc": "2.0", "method": method })]
    );
}
