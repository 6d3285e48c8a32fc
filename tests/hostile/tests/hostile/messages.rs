//! Hostile texts as complete messages, whose envelope and contents are decoded in one pass: a message is preserved, or
//! gives an error that contains the id of the request.
//!
//! The order of the envelope's members never changes the outcome.

use mcp_2025_06_18::{ClientMessage, FromClient, FromServer, ServerMessage};
use mcp_exact_wire::{
    Frame, MessageError, MessageErrorKind, RequestId, decode_frame, decode_message, to_line,
    to_string,
};

use super::with_stack;

/// Number of nested levels.
const LEVELS: usize = 100_000;

/// Returns `tools/list` for every id, so that every result is a list of tools.
fn method_tools_list(_: &RequestId) -> Option<&'static str> {
    Some("tools/list")
}

/// Returns `elicitation/create` for every id, so that every result answers an elicitation.
fn method_elicitation_create(_: &RequestId) -> Option<&'static str> {
    Some("elicitation/create")
}

/// Decodes a message from a client.
fn from_client(text: impl AsRef<[u8]>) -> Result<ClientMessage, MessageError> {
    decode_message::<FromClient>(text.as_ref(), &method_elicitation_create)
}

/// Decodes a message from a server.
fn from_server(text: impl AsRef<[u8]>) -> Result<ServerMessage, MessageError> {
    decode_message::<FromServer>(text.as_ref(), &method_tools_list)
}

/// Returns the kind of the error with which a client's message is refused, and the kind and pointer of its decode
/// error.
fn decode_error_of(text: impl AsRef<[u8]>) -> (MessageErrorKind, &'static str, String) {
    let error = from_client(text).expect_err("it is hostile");
    let cause = error.decode_error();
    (
        error.kind(),
        cause.kind().name(),
        cause.pointer().to_owned(),
    )
}

/// Returns one object text for each order of the given members.
fn all_member_orders(members: &[&str]) -> Vec<String> {
    /// Returns all orders of these members.
    fn remaining_orders(members: &[&str]) -> Vec<Vec<String>> {
        if members.is_empty() {
            return vec![Vec::new()];
        }
        let mut all = Vec::new();
        for at in 0..members.len() {
            let mut others = members.to_vec();
            let first = others.remove(at);
            for mut order in remaining_orders(&others) {
                order.insert(0, first.to_owned());
                all.push(order);
            }
        }
        all
    }
    let all = remaining_orders(members).into_iter();
    all.map(|order| format!("{{{}}}", order.join(",")))
        .collect()
}

/// Returns arrays, objects and mixed values, each with [`LEVELS`] nested levels.
fn nested_values() -> Vec<String> {
    let tower = |open: &str, close: &str| open.repeat(LEVELS) + "1" + &close.repeat(LEVELS);
    vec![
        tower("[", "]"),
        tower(r#"{"a":"#, "}"),
        tower(r#"[{"a":"#, "}]"),
    ]
}

/// Messages with deeply nested untyped JSON are preserved.
#[test]
fn deep_nesting_round_trips() {
    with_stack(256, || {
        for tower in nested_values() {
            for text in [
                format!(
                    r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{{"x":{tower}}}}}}}"#
                ),
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x/y","params":{tower}}}"#),
                format!(r#"{{"jsonrpc":"2.0","method":"x/y","params":{tower},"x":{tower}}}"#),
            ] {
                let message = from_client(&text).expect("it is a message");
                assert!(to_string(&message) == text);
            }
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[],"x":{tower}}}}}"#);
            let message = from_server(&text).expect("it is a message");
            assert!(to_string(&message) == text);
        }
    });
}

/// The error for a message with a deeply nested value of the wrong type contains the id of the request.
#[test]
fn misplaced_nesting_errors_have_the_id() {
    with_stack(256, || {
        for tower in nested_values() {
            for members in [
                r#""id":7,"method":"ping","params":"#,
                r#""method":"tools/call","id":7,"params":"#,
                r#""id":7,"method":"#,
                r#""id":7,"error":"#,
            ] {
                let text = format!(r#"{{"jsonrpc":"2.0",{members}{tower}}}"#);
                match from_client(&text) {
                    Ok(_) => assert!(members.contains("ping") && tower.starts_with('{')),
                    Err(error) => assert_eq!(error.id(), Some(&RequestId::from(7))),
                }
                let unclosed = &text[..text.len() - LEVELS / 2];
                let error = from_client(unclosed).expect_err("it is not JSON");
                assert_eq!(error.kind(), MessageErrorKind::Parse);
            }
        }
    });
}

/// A message with two envelope members of the same name is refused, in every order of its members.
#[test]
fn duplicate_envelope_members_are_refused() {
    let call = [
        r#""jsonrpc":"2.0""#,
        r#""id":1"#,
        r#""method":"tools/call""#,
        r#""params":{"name":"t"}"#,
    ];
    let unknown = [r#""jsonrpc":"2.0""#, r#""id":1"#, r#""method":"x/y""#];
    let mut checked = 0;
    for (again, pointer) in [
        (r#""id":2"#, "/id"),
        (r#""\u0069d":1"#, "/id"),
        (r#""jsonrpc":"2.0""#, "/jsonrpc"),
        (r#""jsonrp\u0063":"2.0""#, "/jsonrpc"),
        (r#""method":"ping""#, "/method"),
        (r#""method":"tools/call""#, "/method"),
        (r#""metho\u0064":"x/y""#, "/method"),
    ] {
        for members in [call.as_slice(), unknown.as_slice()] {
            for text in all_member_orders(&[members, &[again]].concat()) {
                // The first of two methods determines the class; the second method is the error.
                let (_, kind, found) = decode_error_of(&text);
                assert_eq!((kind, found.as_str()), ("duplicate", pointer), "{text}");
                checked += 1;
            }
        }
    }
    println!("{checked} orders of members");
}

/// Escaped member names and methods are equal to their unescaped spelling.
#[test]
fn escaped_names_equal_plain_names() {
    let params = r#""params":{"name":"t"}"#;
    for method in [
        r#""method":"tools/call""#,
        r#""m\u0065thod":"tools\/c\u0061ll""#,
        r#""m\u0065thod":"x\/y""#,
    ] {
        for id in [r#""id":1"#, r#""\u0069\u0064":1"#] {
            for version in [r#""jsonrpc":"2.0""#, r#""\u006asonrpc":"2\u002e0""#] {
                for text in all_member_orders(&[version, id, method, params]) {
                    let message = from_client(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
                    assert!(matches!(message, ClientMessage::Request(_)), "{text}");
                    let encoded = to_string(&message);
                    let parsed = |text: &str| serde_json::from_str::<serde_json::Value>(text).ok();
                    assert_eq!(parsed(&encoded), parsed(&text), "{text}");
                }
            }
        }
    }
}

/// Unusual but valid text is preserved; the error for invalid text contains the id of the request, if the id is
/// readable.
#[test]
fn invalid_text_errors_have_the_id() {
    let with = |id: &str, method: &str, params: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":{method},"params":{params}}}"#)
    };
    let open = r#"{"\ud800":["\udc00",1e400,-0,{"a":1,"a":2}]}"#;
    for text in [
        with("1e400", r#""x/y""#, open),
        with(
            "1.0",
            r#""tools/call""#,
            &format!(r#"{{"name":"t","arguments":{open}}}"#),
        ),
        with(r#""\u0000""#, r#""ping""#, "{}"),
        with(&"9".repeat(10_000), r#""ping""#, "{}"),
    ] {
        assert_eq!(
            to_string(&from_client(&text).expect("it is a message")),
            text
        );
    }
    use MessageErrorKind::{InvalidParams, InvalidRequest, Parse};
    for (text, kind, cause, pointer) in [
        (
            with(r#""\ud800""#, r#""ping""#, "{}"),
            InvalidRequest,
            "surrogate",
            "/id",
        ),
        (
            with("1.5", r#""ping""#, "{}"),
            InvalidRequest,
            "type",
            "/id",
        ),
        (with("01", r#""ping""#, "{}"), Parse, "syntax", "/id"),
        (
            with("1", r#""\ud800""#, "{}"),
            InvalidRequest,
            "surrogate",
            "/method",
        ),
        (
            with("1", r#""tools/call""#, r#"{"name":"\ud800"}"#),
            InvalidParams,
            "surrogate",
            "/params/name",
        ),
        (with("1", r#""ping""#, "{}") + "{}", Parse, "syntax", ""),
        (
            format!("\u{feff}{}", with("1", r#""ping""#, "{}")),
            Parse,
            "syntax",
            "",
        ),
        (with("1", r#""ping""#, "{}") + "\0", Parse, "syntax", ""),
        (String::new(), Parse, "syntax", ""),
        (" \r\n".to_owned(), Parse, "syntax", ""),
    ] {
        assert_eq!(
            decode_error_of(&text),
            (kind, cause, pointer.to_owned()),
            "{text}"
        );
    }
    let broken = [with("1", r#""ping""#, "{}").as_bytes(), b"\xff"].concat();
    assert_eq!(decode_error_of(broken), (Parse, "utf8", String::new()));
}

/// Line breaks inside the untyped JSON of a message are written as spaces.
#[test]
fn line_breaks_are_written_as_spaces() {
    let smuggled = "{\"a\":\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}\r\n}";
    for text in [
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{smuggled}}}}}"#
        ),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x/y","params":{smuggled}}}"#),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"","data":{smuggled}}}}}"#
        ),
    ] {
        let message = from_client(&text).expect("it is a message");
        assert_eq!(to_string(&message), text);
        let line = String::from_utf8(to_line(&message)).expect("it is text");
        assert_eq!(line, text.replace(['\n', '\r'], " "));
    }
}

/// A message with many unknown members is preserved.
#[test]
fn large_objects_round_trip() {
    let mut members = String::new();
    for n in 0_u32..250_000 {
        let n = n.wrapping_mul(0x9e37_79b1);
        members += &format!("\"k{n}\":[{n},\"some text, long\"],");
    }
    for method in ["ping", "x/y"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}",{members}"last":1}}"#);
        let message = from_client(&text).expect("it is a message");
        assert!(to_string(&message) == text);
        let last = format!(r#"{{{members}"method":"{method}","id":1,"jsonrpc":"2.0"}}"#);
        from_client(&last).expect("the envelope comes last");
        let twice = format!(r#"{{{members}"method":"{method}","id":1,"jsonrpc":"2.0","id":1}}"#);
        assert_eq!(decode_error_of(&twice).1, "duplicate");
    }
    println!("{} bytes of members", members.len());
}

/// Arrays are refused in revisions without batches, even if they have very many items or levels.
#[test]
fn batches_with_invalid_json_are_refused() {
    with_stack(256, || {
        for text in [
            "[]".to_owned(),
            format!("[{}]", "{},".repeat(LEVELS) + "{}"),
            "[".repeat(LEVELS),
        ] {
            let error = decode_frame::<FromClient>(text.as_bytes(), &method_elicitation_create);
            let error = error
                .map(|_: Frame<FromClient>| ())
                .expect_err("no batches");
            assert!(matches!(
                error.kind(),
                MessageErrorKind::InvalidRequest | MessageErrorKind::Parse
            ));
        }
    });
}
