//! Tests of `check` and `check_type`, which check a text against the types of a revision, by method or by the name of
//! the type, without a conversion.

use mcp_exact_convert::{
    Context, KnownRevision, MessageKind, Payload, Role, check, check_type, convert,
};

/// Revision of the checked texts.
const REVISION: KnownRevision = KnownRevision::V2025_06_18;

/// Checks a text as part of a message; a result is sent by the server, anything else by the client.
fn check_payload(kind: MessageKind, method: &str, text: Option<&str>) -> Result<(), String> {
    let sender = match kind {
        MessageKind::Result => Role::Server,
        _ => Role::Client,
    };
    let root = Payload {
        kind,
        method,
        sender,
    };
    check(root, text, REVISION).map_err(|refused| refused.to_string())
}

/// Asserts that a payload is refused with the error `expected`.
fn check_refusal(kind: MessageKind, method: &str, text: Option<&str>, expected: &str) {
    assert_eq!(check_payload(kind, method, text), Err(expected.to_owned()));
}

/// `check` accepts valid parts of messages, and reports the reason and the JSON pointer of each invalid part.
#[test]
fn unchanged_text_is_validated() {
    use MessageKind::{Error, Notification, Request, Result};
    let call = "tools/call";
    assert_eq!(
        check_payload(Request, call, Some(r#"{"name":"a"}"#)),
        Ok(())
    );
    assert_eq!(check_payload(Request, "ping", None), Ok(()));
    assert_eq!(check_payload(Notification, "vendor/x", Some("[1]")), Ok(()));
    check_refusal(Request, call, None, "params are required at \"\"");
    check_refusal(Result, call, None, "a result is required at \"\"");
    check_refusal(Error, call, None, "an error is required at \"\"");
    let number = Some(r#"{"name":1}"#);
    let reason = "no `CallToolRequestParams`: expected a string at \"/name\"";
    check_refusal(Request, call, number, reason);
    let reason = "no `Error`: missing member `code` at \"\"";
    check_refusal(Error, call, Some(r#"{"message":"a"}"#), reason);
    let reason = "no `JSON`: the text is not JSON at \"\"";
    check_refusal(Notification, "vendor/x", Some("nonsense"), reason);
}

/// A notification that both clients and servers send is converted for either sender, if it has the same meaning: the
/// cancellation of a server may end `subscriptions/listen` alone in 2026-07-28 (`basic/patterns/cancellation`).
#[test]
fn shared_notifications_convert_for_both_senders() {
    let text = Some(r#"{"requestId":1}"#);
    let older = KnownRevision::V2025_11_25;
    for sender in [Role::Client, Role::Server] {
        let root = Payload {
            kind: MessageKind::Notification,
            method: "notifications/cancelled",
            sender,
        };
        let (new, mut cx) = (KnownRevision::V2026_07_28, Context::new());
        for (from, to, is_kept) in [
            (REVISION, older, true),
            (older, REVISION, true),
            (REVISION, new, sender == Role::Client),
            (new, REVISION, sender == Role::Client),
        ] {
            let converted = convert(root, text, from, to, &mut cx);
            assert_eq!(converted.is_ok(), is_kept, "{sender:?} {converted:?}");
        }
    }
}

/// `check_type` accepts a valid text, and reports an invalid text and an unknown type name.
#[test]
fn types_are_checked_by_name() {
    let check =
        |name, text| check_type(name, text, REVISION).map_err(|refused| refused.to_string());
    assert_eq!(check("Role", "\"user\""), Ok(()));
    let reason = "no `Role`: expected a string at \"\"";
    assert_eq!(check("Role", "1"), Err(reason.to_owned()));
    let reason = "2025-06-18 has no type `Rol` at \"\"";
    assert_eq!(check("Rol", "1"), Err(reason.to_owned()));
}
