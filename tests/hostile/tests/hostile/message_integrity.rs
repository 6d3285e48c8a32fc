//! Every value that safe code can create is written as the kind of message that its type represents.
//!
//! JSON-RPC 2.0: a request has a method and an id, a notification a method and no id, and neither has a result or an
//! error.

use std::any::TypeId;

use mcp_2025_06_18 as mcp;
use mcp_2025_11_25 as newer;
use mcp_exact_wire::{
    Decode, Direction, Extra, HeadKind, Members, Message, MessageHead, RequestId, ResultMessage,
    WithId, decode_message, from_str, to_string,
};

use super::{decode_error_of, error_at};

/// Names of the members of the JSON-RPC envelope.
const ENVELOPE: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// Checks that no member of the envelope can be added to the unknown members `extra`.
#[track_caller]
fn check_envelope_names_refused<T: Members>(mut extra: Extra<T>) {
    for name in ENVELOPE {
        assert!(extra.insert(name, true).is_err(), "{name}");
    }
    assert!(extra.is_empty());
    assert_eq!(extra.insert("x", true), Ok(None));
}

/// Members of the envelope cannot be added to a message, because they would change the kind of the message.
#[test]
fn messages_refuse_envelope_names() {
    let params = || mcp::CallToolRequestParams::new("t");
    check_envelope_names_refused(mcp::CallToolRequest::new(params()).extra);
    check_envelope_names_refused(mcp::PingRequest::new().extra);
    check_envelope_names_refused(mcp::InitializedNotification::new().extra);
    check_envelope_names_refused(newer::InitializedNotification::new().extra);
    check_envelope_names_refused(newer::PingRequest::new(1).extra);
    check_envelope_names_refused(mcp::JSONRPCNotification::new("m").extra);
    check_envelope_names_refused(mcp::JSONRPCRequest::new(1, "m").extra);
    check_envelope_names_refused(ResultMessage::<mcp::Result>::new(1, mcp::Result::new()).extra);
}

/// Types that are not messages accept all unknown names.
#[test]
fn other_types_accept_envelope_names() {
    let mut tool = mcp::Tool::new("t", mcp::ToolInputSchema::new());
    for name in ENVELOPE {
        assert_eq!(tool.extra.insert(name, true), Ok(None), "{name}");
    }
    assert!(tool.extra.insert("name", true).is_err());
}

/// Decodes a valid text.
fn decode<T: Decode>(text: &str) -> T {
    from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Checks that a message is written as a message of the kind `kind` with the id `id`, and contains each member of the
/// envelope at most once.
#[track_caller]
fn check_written_kind<D: Direction>(message: &Message<D>, kind: HeadKind, id: Option<&str>) {
    let text = to_string(message);
    let head = MessageHead::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!((head.kind, head.id), (kind, id), "{text}");
    assert!(head.has_valid_version(), "{text}");
    assert_eq!((head.result, head.error), (None, None), "{text}");
    let read = decode_message::<D>(text.as_bytes(), &|_| None);
    assert_eq!(read.map(|read| to_string(&read)), Ok(text));
}

/// A message with all members of the envelope except params and error, and an unknown member.
const COMPLETE_MESSAGE: &str = r#"{"jsonrpc":"2.0","id":5,"method":"ping","result":{},"x":1}"#;

/// A request type without envelope keeps the envelope members of a complete message that was decoded as this type.
#[test]
fn complete_messages_round_trip_as_bare() {
    let request: mcp::ClientRequest = decode(COMPLETE_MESSAGE);
    let Some(id) = COMPLETE_MESSAGE.find(r#""id""#) else {
        panic!("it has an id");
    };
    assert!(to_string(&request).contains(&COMPLETE_MESSAGE[id..id + 6]));
    let unknown = r#"{"jsonrpc":"2.0","id":5,"method":"x/y","x":1}"#;
    assert_eq!(to_string(&decode::<mcp::ClientRequest>(unknown)), unknown);
}

/// A decoded request that has kept its envelope is written with only the envelope of the message in which it is sent.
#[test]
fn known_requests_get_one_envelope() {
    let request: mcp::ClientRequest = decode(COMPLETE_MESSAGE);
    let message = mcp::ClientMessage::Request(WithId::new(7, request));
    check_written_kind(&message, HeadKind::Request, Some("7"));
    assert!(to_string(&message).contains(r#""x":1"#));
}

/// A request of an unknown method that has kept its envelope is written with only the envelope of the message in which
/// it is sent.
#[test]
fn unknown_requests_get_one_envelope() {
    for text in [
        r#"{"jsonrpc":"2.0","id":5,"method":"x/y","result":{},"x":[1 , 2]}"#,
        r#"{"x":[1 , 2],"\u0069d":5,"method":"x/y"}"#,
        r#"{ "error" : 1 , "method":"x/y", "x":[1 , 2] }"#,
    ] {
        let request: mcp::ClientRequest = decode(text);
        assert_eq!(to_string(&request), text, "by itself it comes back");
        let message = mcp::ClientMessage::Request(WithId::new(7, request));
        check_written_kind(&message, HeadKind::Request, Some("7"));
        assert!(to_string(&message).contains(r#""x":[1 , 2]"#));
    }
}

/// A notification that was decoded from a text with an id or error is written as a notification.
#[test]
fn notifications_stay_notifications() {
    for text in [
        r#"{"jsonrpc":"2.0","id":5,"method":"notifications/initialized","error":{},"x":1}"#,
        r#"{"id":5,"method":"x/y","x":1}"#,
    ] {
        let message = mcp::ClientMessage::Notification(decode(text));
        check_written_kind(&message, HeadKind::Notification, None);
        assert!(to_string(&message).contains(r#""x":1"#));
    }
    let known = r#"{"jsonrpc":"2.0","id":5,"method":"notifications/initialized","x":1}"#;
    let message = newer::ClientMessage::Notification(decode(known));
    check_written_kind(&message, HeadKind::Notification, None);
}

/// In 2025-11-25, whose request types include the envelope, a request of an unknown method without a valid envelope is
/// refused.
#[test]
fn unknown_methods_need_their_envelope() {
    let request = r#"{"jsonrpc":"2.0","id":5,"method":"x/y"}"#;
    let message = newer::ClientMessage::Request(decode(request));
    check_written_kind(&message, HeadKind::Request, Some("5"));
    let notification = r#"{"jsonrpc":"2.0","method":"x/y"}"#;
    let message = newer::ClientMessage::Notification(decode(notification));
    check_written_kind(&message, HeadKind::Notification, None);
    for (text, kind, pointer) in [
        (notification, "required", ""),
        (r#"{"id":5,"method":"x/y"}"#, "required", ""),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"x/y"}"#,
            "type",
            "/id",
        ),
        (
            r#"{"jsonrpc":"1.0","id":5,"method":"x/y"}"#,
            "const",
            "/jsonrpc",
        ),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"x/y","result":{}}"#,
            "exclusive",
            "/result",
        ),
    ] {
        assert_eq!(
            decode_error_of::<newer::ClientRequest>(text),
            error_at(kind, pointer),
            "{text}"
        );
    }
    assert_eq!(
        decode_error_of::<newer::ClientNotification>(request),
        error_at("exclusive", "")
    );
}

/// Returns the type of the argument of a variant's constructor.
fn argument_type<A: 'static, U>(_: fn(A) -> U) -> TypeId {
    TypeId::of::<A>()
}

/// The types of unknown variants differ between unions, so that an unknown variant cannot be moved to a union that may
/// know its discriminant.
#[test]
fn unknown_variants_stay_in_their_union() {
    let content = argument_type(mcp::ContentBlock::Unrecognized);
    let request = argument_type(mcp::ClientRequest::Unrecognized);
    assert_ne!(content, request);
    assert_ne!(request, argument_type(newer::ClientRequest::Unrecognized));
}

/// The types of unknown values differ between string enums, so that an unknown value cannot be moved to another enum.
#[test]
fn unknown_names_stay_in_their_enum() {
    let level = argument_type(mcp::LoggingLevel::Unrecognized);
    assert_ne!(level, argument_type(mcp::Role::Unrecognized));
}

/// A request that has kept its own id is written with only the id of its message.
#[test]
fn request_ids_are_written_once() {
    let request: mcp::ClientRequest = decode(r#"{"id":5,"method":"ping"}"#);
    let message = WithId::<mcp::ClientRequest>::new("own", request);
    assert_eq!(
        to_string(&message),
        r#"{"jsonrpc":"2.0","id":"own","method":"ping"}"#
    );
    assert_eq!(message.id, RequestId::from("own"));
}
