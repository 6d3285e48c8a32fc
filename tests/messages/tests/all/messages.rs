//! Tests of message decoding by direction (JSON-RPC 2.0 and the specification's `basic` pages). The method selects the
//! type of a request or notification, the answered request selects the type of a result, and each invalid message has a
//! kind of error and, if readable, an id.

use mcp_2025_03_26 as b;
use mcp_2025_06_18 as mcp;
use mcp_exact_wire::{
    Direction, Frame, JsonObject, Message, MessageError, MessageErrorKind, ProvidedParam,
    RequestId, call_text, decode_frame, decode_message, decode_notification, decode_request,
    to_string,
};

/// Returns the method of the request to which the response with this id belongs: ids 1 to 3 are known.
fn request_method(id: &RequestId) -> Option<&'static str> {
    match id.to_string().as_str() {
        "1" => Some("tools/list"),
        "2" => Some("ping"),
        "3" => Some("vendor/thing"),
        _ => None,
    }
}

/// Decodes a message from a client.
fn from_client(text: &str) -> Result<mcp::ClientMessage, MessageError> {
    decode_message(text.as_bytes(), &request_method)
}

/// Decodes a message from a server.
fn from_server(text: &str) -> Result<mcp::ServerMessage, MessageError> {
    decode_message(text.as_bytes(), &request_method)
}

/// Decodes an invalid message; returns the kind of the error, the id of the message, and the JSON pointer of the
/// defect.
#[track_caller]
fn message_error<D: Direction>(text: &str) -> (MessageErrorKind, Option<String>, String) {
    let error = decode_message::<D>(text.as_bytes(), &request_method).expect_err(text);
    let id = error.id().map(RequestId::to_string);
    (error.kind(), id, error.decode_error().pointer().to_owned())
}

/// Returns the message with its members in every order.
fn all_member_orders(members: &[&str]) -> Vec<String> {
    /// Adds an object for every order of the members `rest` after `so_far`.
    fn permute(rest: &[&str], done: &mut Vec<String>, so_far: &str) {
        if rest.is_empty() {
            done.push(format!("{{{so_far}}}"));
        }
        for (at, member) in rest.iter().enumerate() {
            let mut rest = rest.to_vec();
            rest.remove(at);
            let comma = if so_far.is_empty() { "" } else { "," };
            permute(&rest, done, &format!("{so_far}{comma}{member}"));
        }
    }
    let mut done = Vec::new();
    permute(members, &mut done, "");
    done
}

/// Requests and notifications decode to equal values whatever the order of the message members.
#[test]
fn requests_decode_in_any_order() {
    let members = [
        r#""jsonrpc":"2.0""#,
        r#""id":7"#,
        r#""method":"tools/call""#,
        r#""params":{"name":"echo","arguments":{"id":1,"method":"x"}}"#,
        r#""x-new":[null]"#,
    ];
    let first = from_client(&all_member_orders(&members)[0]).expect("a request");
    for text in all_member_orders(&members) {
        let message = from_client(&text).expect(&text);
        assert_eq!(message, first, "{text}");
        let Message::Request(call) = &message else {
            panic!("{text} is a request");
        };
        assert_eq!(call.id, 7.into());
        let mcp::ClientRequest::CallTool(request) = &call.request else {
            panic!("{text} calls a tool");
        };
        assert_eq!(request.params.name, "echo");
        assert_eq!(
            request.extra.len(),
            1,
            "the envelope is not among the unknown members"
        );
    }
    let encoded = to_string(&first);
    assert_eq!(
        encoded,
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"id":1,"method":"x"}},"x-new":[null]}"#
    );
}

/// Results decode to equal values whatever the order of the message members.
#[test]
fn results_decode_in_any_order() {
    let members = [
        r#""jsonrpc":"2.0""#,
        r#""id":1"#,
        r#""result":{"tools":[],"x":1.0}"#,
        r#""x-new":2"#,
    ];
    for text in all_member_orders(&members) {
        let message = from_server(&text).expect(&text);
        let Message::Result(message) = message else {
            panic!("{text} is a result");
        };
        let mcp::ServerResult::ListTools(result) = &message.result else {
            panic!("{text} lists tools");
        };
        assert_eq!(
            result.extra.get("x").map(ToString::to_string).as_deref(),
            Some("1.0")
        );
        assert_eq!(message.extra.len(), 1);
    }
}

/// The method of the answered request selects the type of a result; a response to an unknown request is an error.
#[test]
fn result_types_follow_the_request() {
    let tools =
        |id: u8| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"name":5}}]}}}}"#);
    assert_eq!(
        message_error::<mcp::FromServer>(&tools(1)),
        (
            MessageErrorKind::InvalidResponse,
            Some("1".into()),
            "/result/tools/0/name".into()
        )
    );
    for id in [2, 3] {
        let Ok(Message::Result(message)) = from_server(&tools(id)) else {
            panic!("a ping and an unknown method have open results");
        };
        assert!(matches!(message.result, mcp::ServerResult::Result(_)));
    }
    assert_eq!(
        message_error::<mcp::FromServer>(&tools(9)).0,
        MessageErrorKind::UnknownResponse
    );
}

/// A request and a notification of an unknown method are encoded as they were decoded.
#[test]
fn unknown_methods_round_trip() {
    let text = r#"{"jsonrpc":"2.0","id":"a","method":"vendor/x","params":{"a":1e400},"b":[ ]}"#;
    let message = from_client(text).expect("a request");
    let Message::Request(call) = &message else {
        panic!("it has an id");
    };
    let mcp::ClientRequest::Unrecognized(request) = &call.request else {
        panic!("the method is unknown");
    };
    assert_eq!(request.tag(), "vendor/x");
    assert_eq!(to_string(&message), text);
    let text = r#"{"jsonrpc":"2.0","method":"vendor/y","params":{}}"#;
    let message = from_client(text).expect("a notification");
    assert!(
        matches!(&message, Message::Notification(mcp::ClientNotification::Unrecognized(n)) if n.tag() == "vendor/y")
    );
    assert_eq!(to_string(&message), text);
}

/// Kind, method and id of every message can be read without knowledge of its type, for a log.
#[test]
fn messages_name_kind_method_and_id() {
    /// Returns kind, method and id of a message.
    fn describe_message<D: Direction>(
        text: &str,
    ) -> (mcp::MessageKind, Option<String>, Option<String>) {
        let message: Message<D> = decode_message(text.as_bytes(), &request_method).expect(text);
        let id = message.id().map(|id| id.to_string());
        (message.kind(), message.method().map(str::to_owned), id)
    }
    use mcp::MessageKind::{Error, Notification, Request, Result};
    for (text, kind, method, id) in [
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            Request,
            Some("ping"),
            Some("7"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":"a","method":"x/y"}"#,
            Request,
            Some("x/y"),
            Some("a"),
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            Notification,
            Some("notifications/cancelled"),
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"x/z"}"#,
            Notification,
            Some("x/z"),
            None,
        ),
        (
            r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
            Result,
            None,
            Some("3"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":""}}"#,
            Error,
            None,
            Some("9"),
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#,
            Error,
            None,
            None,
        ),
    ] {
        let expected = (kind, method.map(str::to_owned), id.map(str::to_owned));
        assert_eq!(
            describe_message::<mcp::FromClient>(text),
            expected,
            "{text}"
        );
        assert_eq!(
            describe_message::<mcp::FromServer>(text),
            expected,
            "{text}"
        );
        assert_eq!(
            describe_message::<mcp_2025_11_25::FromClient>(text),
            expected,
            "{text}"
        );
    }
}

/// The params of requests and notifications are returned as JSON text, whether the method is known or not.
#[test]
fn messages_return_their_params() {
    /// Returns the params of a message.
    fn params<D: Direction>(text: &str) -> Option<String> {
        let message: Message<D> = decode_message(text.as_bytes(), &request_method).expect(text);
        message.params().map(|params| params.text().to_owned())
    }
    for (text, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","x":[1.0]}}"#,
            Some(r#"{"name":"a","x":[1.0]}"#),
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"c"}}"#,
            Some(r#"{"cursor":"c"}"#),
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, None),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"x/y","params":{"a": 1}}"#,
            Some(r#"{"a": 1}"#),
        ),
        (r#"{"jsonrpc":"2.0","method":"x/y"}"#, None),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            Some(r#"{"requestId":1}"#),
        ),
        (r#"{"jsonrpc":"2.0","id":3,"result":{}}"#, None),
    ] {
        let expected = expected.map(str::to_owned);
        assert_eq!(params::<mcp::FromClient>(text), expected, "{text}");
        assert_eq!(
            params::<mcp_2025_11_25::FromClient>(text),
            expected,
            "{text}"
        );
    }
}

/// A decoded or constructed request returns its kind, its method and, in revisions whose request types include the
/// envelope, its id.
#[test]
fn calls_return_kind_method_and_id() {
    use mcp_2025_11_25::{Call, ClientRequest, PingRequest};
    let ping = ClientRequest::from(PingRequest::new(5));
    assert_eq!(ping.kind(), mcp::MessageKind::Request);
    assert_eq!((ping.method(), ping.id()), ("ping", Some(5.into())));
    let bare = mcp::ClientRequest::from(mcp::PingRequest::new());
    assert_eq!((bare.method(), bare.id()), ("ping", None));
}

/// In every revision, the first arguments of a constructor are those that identify the value, such as a URI before a
/// name.
#[test]
fn constructors_share_one_parameter_order() {
    let link = mcp::ResourceLink::new("file:///a", "a");
    assert_eq!((link.uri.as_str(), link.name.as_str()), ("file:///a", "a"));
    let resource = mcp_2025_11_25::Resource::new("file:///a", "a");
    assert_eq!(resource.uri, "file:///a");
    let content = mcp::AnyResourceContents::text("file:///a", "words");
    assert_eq!(to_string(&content), r#"{"text":"words","uri":"file:///a"}"#);
    let block = mcp::ContentBlock::text("hi");
    assert_eq!(
        (block.tag(), to_string(&block).as_str()),
        ("text", r#"{"type":"text","text":"hi"}"#)
    );
}

/// A request that only the opposite peer sends decodes as a request of an unknown method.
#[test]
fn opposite_direction_requests_are_unknown() {
    let text = r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{}}"#;
    let Ok(Message::Request(call)) = from_client(text) else {
        panic!("a request");
    };
    assert!(matches!(call.request, mcp::ClientRequest::Unrecognized(_)));
}

/// An error response with an id or with a null id is encoded as it was decoded; up to 2025-06-18 an error without an id
/// is invalid.
#[test]
fn errors_keep_absent_and_null_ids() {
    for id in [r#","id":7"#, r#","id":null"#] {
        let text = format!(
            r#"{{"jsonrpc":"2.0"{id},"error":{{"code":-32601,"message":"no","data":[1.0],"x":0}}}}"#
        );
        let message = from_server(&text).expect("an error");
        assert_eq!(to_string(&message), text);
    }
    // RPC: up to 2025-06-18 an error must have an id.
    let text = r#"{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}"#;
    assert_eq!(
        message_error::<mcp::FromServer>(text),
        (MessageErrorKind::InvalidResponse, None, String::new())
    );
}

/// Each invalid message has the expected kind of error and id and, if the text is JSON, the expected JSON pointer.
#[test]
#[expect(clippy::too_many_lines, reason = "a table with a row each")]
fn invalid_messages_have_error_codes() {
    use MessageErrorKind::{
        InvalidNotification, InvalidParams, InvalidRequest, InvalidResponse, MethodNotFound, Parse,
        UnknownResponse,
    };
    let cases = [
        // RPC version-2.0
        (r#"{"id":5,"method":"ping"}"#, InvalidRequest, Some("5"), ""),
        (
            r#"{"jsonrpc":"1.0","id":5,"method":"ping"}"#,
            InvalidRequest,
            Some("5"),
            "/jsonrpc",
        ),
        // RPC id-not-null, id-type
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            InvalidRequest,
            None,
            "/id",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            InvalidRequest,
            None,
            "/id",
        ),
        (
            r#"{"method":"ping","jsonrpc":"2.0","id":[]}"#,
            InvalidRequest,
            None,
            "/id",
        ),
        // Known methods with params that do not match the schema
        (
            r#"{"jsonrpc":"2.0","id":"x","method":"tools/call"}"#,
            InvalidParams,
            Some("x"),
            "",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":5}}"#,
            InvalidParams,
            Some("5"),
            "/params/name",
        ),
        (
            r#"{"params":[],"jsonrpc":"2.0","method":"tools/call","id":5}"#,
            InvalidParams,
            Some("5"),
            "/params",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":1}}"#,
            InvalidParams,
            Some("5"),
            "/params/level",
        ),
        // RPC notification-no-id, no-reply-to-notification
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"notifications/initialized"}"#,
            MethodNotFound,
            Some("5"),
            "",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"ping"}"#,
            InvalidNotification,
            None,
            "",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#,
            InvalidNotification,
            None,
            "/params",
        ),
        // RPC result-xor-error
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]},"error":{"code":1,"message":""}}"#,
            InvalidResponse,
            Some("1"),
            "",
        ),
        (
            r#"{"jsonrpc":"2.0","error":{"code":1,"message":""},"result":{},"id":1}"#,
            InvalidResponse,
            Some("1"),
            "",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}"#,
            InvalidResponse,
            Some("1"),
            "/error/code",
        ),
        (
            r#"{"jsonrpc":"2.0","result":{"tools":[]}}"#,
            UnknownResponse,
            None,
            "",
        ),
        // Duplicates
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"ping","id":5}"#,
            InvalidRequest,
            Some("5"),
            "/id",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"id":5,"method":"ping"}"#,
            InvalidRequest,
            Some("5"),
            "/id",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"ping","method":"ping"}"#,
            InvalidRequest,
            Some("5"),
            "/method",
        ),
        // No messages at all
        (r#"{"jsonrpc":"2.0","id":5}"#, InvalidRequest, Some("5"), ""),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":7}"#,
            InvalidRequest,
            Some("5"),
            "/method",
        ),
        ("{}", InvalidRequest, None, ""),
        ("7", InvalidRequest, None, ""),
        (r#""ping""#, InvalidRequest, None, ""),
        // RPC batches: none in this revision
        (
            r#"[{"jsonrpc":"2.0","id":5,"method":"ping"}]"#,
            InvalidRequest,
            None,
            "",
        ),
        // Not JSON, also behind a complete message
        ("", Parse, None, ""),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":5}"#,
            Parse,
            None,
            "",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"ping"} x"#,
            Parse,
            None,
            "",
        ),
    ];
    for (text, kind, id, pointer) in cases {
        let found = if matches!(kind, InvalidResponse | UnknownResponse) {
            message_error::<mcp::FromServer>(text)
        } else {
            message_error::<mcp::FromClient>(text)
        };
        let wanted = (kind, id.map(str::to_owned), found.2.clone());
        assert_eq!(found, wanted, "{text}");
        if kind != Parse {
            assert_eq!(found.2, pointer, "{text}");
        }
    }
}

/// The code of each decoding error follows JSON-RPC 2.0, section 5.1; a notification has no code, because it is never
/// answered.
#[test]
fn error_codes_follow_json_rpc() {
    let code = |text: &str| from_client(text).expect_err(text).code();
    assert_eq!(code("{"), Some(-32700));
    assert_eq!(code("[]"), Some(-32600));
    assert_eq!(
        code(r#"{"jsonrpc":"2.0","id":5,"method":"notifications/cancelled"}"#),
        Some(-32601)
    );
    assert_eq!(
        code(r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#),
        Some(-32602)
    );
    assert_eq!(
        code(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#),
        None
    );
}

/// Each message of a batch is decoded independently of the invalid messages in the batch.
#[test]
fn invalid_messages_do_not_affect_batches() {
    let text = r#" [ {"jsonrpc":"2.0","id":5,"method":"ping"}, 7, {"jsonrpc":"2.0","method":"notifications/initialized"},
        {"jsonrpc":"2.0","id":6,"method":"tools/call"} ] "#;
    let Ok(Frame::Batch(messages)) =
        decode_frame::<b::FromClient>(text.as_bytes(), &request_method)
    else {
        panic!("2025-03-26 has batches");
    };
    let kinds: Vec<_> = messages
        .iter()
        .map(|m| m.as_ref().map(|_| ()).map_err(MessageError::kind))
        .collect();
    assert_eq!(
        kinds,
        [
            Ok(()),
            Err(MessageErrorKind::InvalidRequest),
            Ok(()),
            Err(MessageErrorKind::InvalidParams)
        ]
    );
    let good = Frame::<b::FromClient>::Batch(messages.into_iter().filter(Result::is_ok).collect());
    assert_eq!(
        to_string(&good),
        r#"[{"jsonrpc":"2.0","id":5,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"}]"#
    );
}

/// An empty batch is refused as an invalid request with code -32600.
#[test]
fn empty_batches_are_invalid_requests() {
    let error = decode_frame::<b::FromClient>(b"[]", &request_method).expect_err("an empty batch");
    assert_eq!(
        (error.kind(), error.code()),
        (MessageErrorKind::InvalidRequest, Some(-32600))
    );
}

/// `MessageHead::parse` returns kind, id, method and `_meta` members as parts of the message text.
#[test]
fn message_head_borrows_every_part() {
    let text = r#"{"params":{"_meta":{"progressToken":"t"},"name":"x"},"id":1.0,"method":"tools\/call","jsonrpc":"2.0"}"#;
    let head = mcp::MessageHead::parse(text).expect("JSON");
    assert_eq!(head.kind, mcp::HeadKind::Request);
    assert_eq!(
        (head.id, head.method.as_deref()),
        (Some("1.0"), Some("tools/call"))
    );
    assert_eq!(head.meta_member("progressToken"), Some(r#""t""#));
    assert!(mcp::MessageHead::parse("{").is_err());
    assert_eq!(
        mcp::MessageHead::parse("[1]").map(|head| head.kind),
        Ok(mcp::HeadKind::Batch)
    );
}

/// A message that contains a method and also a result or an error is refused as an invalid request.
#[test]
fn method_with_result_is_refused() {
    for answer in [
        r#""result":{"tools":[]}"#,
        r#""error":{"code":1,"message":""}"#,
    ] {
        for method in [r#""method":"ping""#, r#""method":"vendor/x""#] {
            for text in all_member_orders(&[r#""jsonrpc":"2.0""#, r#""id":1"#, method, answer]) {
                let (kind, id, _) = message_error::<mcp::FromClient>(&text);
                assert_eq!(
                    (kind, id.as_deref()),
                    (MessageErrorKind::InvalidRequest, Some("1")),
                    "{text}"
                );
            }
        }
    }
}

/// The functions that decode a method and its params return the same value or the same error as the decoding of the
/// complete message. If the method is one of notifications instead of requests, or the reverse, only kind, id and
/// method of the errors are equal.
#[test]
fn calls_decode_like_complete_messages() {
    /// Checks that both results are equal; if the method belongs to the other kind of message, only kind, id and method
    /// of the errors must be equal.
    fn agree<T: PartialEq + std::fmt::Debug>(
        parts: Result<T, MessageError>,
        whole: Result<Option<T>, MessageError>,
        is_other_kind: bool,
    ) {
        match (parts, whole) {
            (Err(parts), Err(whole)) if is_other_kind => {
                let answer = |error: &MessageError| {
                    let method = error.method().map(str::to_owned);
                    (error.kind(), error.id().cloned(), method)
                };
                assert_eq!(answer(&parts), answer(&whole));
            }
            (parts, whole) => assert_eq!(parts.map(Some), whole),
        }
    }
    /// Decodes a call from its parts and as a complete message, and compares the results.
    fn check<D: Direction>(id: Option<RequestId>, method: &str, params: Option<&str>) {
        let mut text = String::from(r#"{"jsonrpc":"2.0""#);
        for (name, value) in [
            ("id", id.as_ref().map(to_string)),
            ("method", Some(to_string(method))),
            ("params", params.map(str::to_owned)),
        ] {
            if let Some(value) = value {
                text.push_str(&format!(r#","{name}":{value}"#));
            }
        }
        text.push('}');
        let params: Option<JsonObject> = params.map(|params| params.parse().expect("an object"));
        assert_eq!(call_text(id.as_ref(), method, params.as_ref()), text);
        let whole = decode_message::<D>(text.as_bytes(), &|_| None);
        if id.is_some() {
            let whole = whole.map(|message| match message {
                Message::Request(request) => Some(request),
                _ => None,
            });
            let is_other_kind = D::NOTIFICATIONS.contains(&method);
            agree(
                decode_request::<D>(&text, None, None),
                whole.clone(),
                is_other_kind,
            );
            let decoded = decode_request::<D>(&text, Some(method), None);
            agree(decoded, whole, is_other_kind);
        } else {
            let whole = whole.map(|message| match message {
                Message::Notification(notification) => Some(notification),
                _ => None,
            });
            let is_other_kind = D::REQUESTS.contains(&method);
            agree(decode_notification::<D>(&text), whole, is_other_kind);
        }
    }
    let ids = [
        None,
        Some(RequestId::from(7)),
        Some(RequestId::from(u64::MAX)),
        Some(RequestId::from("a \"quoted\" \u{e9}")),
    ];
    let methods = [
        "tools/call",
        "notifications/cancelled",
        "vendor/\"x\"\u{e9}\n",
        "",
    ];
    let params = [
        None,
        Some("{}"),
        Some(r#"{"name":"x","arguments":{"a":["\u00e9",1.0]}}"#),
        Some(r#"{ "requestId" : 1, "name":5 }"#),
    ];
    for id in ids {
        for method in methods {
            for params in params {
                check::<mcp::FromClient>(id.clone(), method, params);
                check::<mcp_2025_11_25::FromClient>(id.clone(), method, params);
                check::<mcp_2026_07_28::FromClient>(id.clone(), method, params);
            }
        }
    }
}

/// Specification 2026-07-28, `basic`, "Per-Request Protocol Fields": each request describes its client in `_meta`. For
/// params without `_meta`, decoding takes the value of the caller; the result or error is that of a text with `_meta`.
#[test]
fn provided_metadata_completes_params() {
    use mcp_2026_07_28::{FromClient, RequestMetaObject};
    let meta = r#"{"io.modelcontextprotocol/clientCapabilities":{"roots":{}},"io.modelcontextprotocol/protocolVersion":"2026-07-28","a":1}"#;
    let provided = ProvidedParam::decode::<RequestMetaObject>("_meta", meta).expect("metadata");
    let decode = |method: &str, params: &str, provided| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        decode_request::<FromClient>(&text, Some(method), provided)
    };
    let mut decoded_requests = 0;
    for method in FromClient::REQUESTS {
        for members in [
            r#""name":"x","arguments":{"_meta":1}"#,
            r#""uri":"a:b""#,
            r#""name":5"#,
            r#""ref":{"type":"ref/prompt","name":"a"},"argument":{"name":"a","value":""}"#,
            r#""notifications":{}"#,
            r#""unknown":1"#,
        ] {
            let without = decode(method, &format!("{{{members}}}"), Some(&provided));
            let with = decode(method, &format!("{{{members},\"_meta\":{meta}}}"), None);
            assert_eq!(without, with, "{method} {members}");
            decoded_requests += usize::from(with.is_ok());
            // Metadata of the request itself is not replaced.
            let other = meta.replace("roots", "sampling");
            let own = format!("{{{members},\"_meta\":{other}}}");
            assert_eq!(
                decode(method, &own, Some(&provided)),
                decode(method, &own, None)
            );
        }
    }
    assert!(
        decoded_requests >= FromClient::REQUESTS.len(),
        "{decoded_requests}"
    );
    let missing = decode("tools/call", r#"{"name":"x"}"#, None).expect_err("no metadata");
    assert_eq!(missing.decode_error().pointer(), "/params");
}
