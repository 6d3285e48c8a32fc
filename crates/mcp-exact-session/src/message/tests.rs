//! Tests of the parsers of messages, and of what they see of the parameters.

use super::*;

/// Only brackets outside of strings count for the nesting depth.
#[test]
fn depth_counts_brackets_outside_of_strings() {
    assert!(!is_deeper_than(b"[[[]]]", 3));
    assert!(is_deeper_than(b"[[[[]]]]", 3));
    assert!(!is_deeper_than(br#"["[[[[[[", "\"[[[["]"#, 3));
    assert!(!is_deeper_than(b"[[],[],[],[],[]]", 2));
}

/// Only a frame that is a complete array is parsed as a batch.
#[test]
fn non_array_frame_is_one_message() {
    let limits = Limits::default();
    assert!(matches!(
        parse(b"[1,2", &limits),
        ParsedFrame::Single(Err(_))
    ));
    assert!(matches!(parse(b"[1,2]", &limits), ParsedFrame::Batch(items) if items.len() == 2));
    assert!(matches!(
        parse(b" {}", &limits),
        ParsedFrame::Single(Err(_))
    ));
}

/// The parser of the common form agrees with the decoder, for messages and for every text that differs from a message by
/// one change.
#[test]
fn common_form_parser_agrees_with_decoder() {
    let limits = Limits::default();
    let check = |text: &[u8]| {
        if let Some(message) = parse_common_form(text, &limits) {
            let decoded = decode_message::<Untyped>(text, &|_| Some(""));
            assert_eq!(Ok(message), decoded, "{}", String::from_utf8_lossy(text));
        }
    };
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"a/b","params":{"_meta":{"x":"\"}"},"requestState":"s"}}"#,
        r#"{"jsonrpc":"2.0","id":"a","method":"a","params":{"inputResponses":{},"_meta":1}}"#,
        r#"{"method":"a","jsonrpc":"2.0"}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","a":[1,{}]}}"#,
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}"#,
    ] {
        let bytes = text.as_bytes();
        assert_eq!(
            parse_common_form(bytes, &limits).is_none(),
            text.contains("error")
        );
        for at in 0..bytes.len() {
            check(&[&bytes[..at], &bytes[at + 1..]].concat());
            for other in b"\"\\{}[]:,1-. \n\x01aA\xc3" {
                check(&[&bytes[..at], &[*other][..], &bytes[at + 1..]].concat());
                check(&[&bytes[..at], &[*other][..], &bytes[at..]].concat());
            }
        }
    }
}

/// What is refused or repaired in parameters is always suspected, whether or not the parser has seen that the rest is tidy.
#[test]
fn untidy_parameters_are_always_suspected() {
    let tidiness = |params: &str, tidy_meta| {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        match parse_common_form(text.as_bytes(), &Limits::default()) {
            Some(Message::Request(request)) => request.request.tidiness(tidy_meta),
            other => panic!("{other:?}"),
        }
    };
    let usual = r#"{"name":"a","arguments":{"a":null,"a":[]},"cursor":"b","n":1.5,"t":true,"_meta":{"x":[{"a":1},{"a":2}]}}"#;
    assert_eq!(tidiness(usual, None), Tidiness::default());
    for (member, repeats) in [
        (r#""name":"b""#, true),
        (r#""n\u0061me":"b""#, true),
        (r#""x":{"y":1,"y":2}"#, true),
        (r#""x":[{"y":1,"y":2}]"#, true),
        (r#""_meta":{}"#, true),
        (r#""x":null"#, false),
        (r#""x":[]"#, false),
        (r#""x":{"y":null}"#, false),
        (r#""x":"\ud83d""#, false),
        (r#""\ud83d":1"#, false),
        (r#""requestState":"\uD800""#, false),
        (r#""inputResponses":{"y":null}"#, false),
        (r#""task":null"#, false),
        (r#""arguments":{"z":"\ud800"}"#, false),
    ] {
        for filler in 0..70 {
            let filler = "f".repeat(filler);
            for params in [
                format!(r#"{{"name":"a","g":"{filler}","_meta":{{"x":1}},{member}}}"#),
                format!(r#"{{{member},"g":"{filler}","_meta":{{"x":1}},"name":"a"}}"#),
            ] {
                for meta in [None, Some(r#"{"x":1}"#)] {
                    let found = tidiness(&params, meta);
                    assert!(found.may_be_untidy || repeats, "{params}");
                    assert!(found.may_repeat || !repeats, "{params}");
                }
            }
        }
    }
    for meta in [
        r#"{"a":1,"a":2}"#,
        r#"{"a":null}"#,
        r#"{"a":{"b":[ ]}}"#,
        "null",
        "[]",
        "[ ]",
        "[null]",
        r#"[{"a":1,"a":2}]"#,
        r#"{"a":"\ud800"}"#,
    ] {
        let params = format!(r#"{{"name":"a","_meta":{meta}}}"#);
        assert_ne!(
            tidiness(&params, Some(r#"{"a":1}"#)),
            Tidiness::default(),
            "{params}"
        );
    }
}

/// A frame that exceeds a limit is reported with the name of the limit.
#[test]
fn exceeded_limits_are_named() {
    let limits = Limits {
        message_bytes: 60,
        depth: 3,
        batch_items: 2,
        name_bytes: 4,
        ..Limits::default()
    };
    let exceeded = |text: &str| match parse(text.as_bytes(), &limits) {
        ParsedFrame::OverLimit(limit, _) => Some(limit.name()),
        _ => None,
    };
    assert_eq!(exceeded("[1,2,3]"), Some("batch_items"));
    assert_eq!(exceeded("[[[[]]]]"), Some("depth"));
    assert_eq!(exceeded(&" ".repeat(61)), Some("message_bytes"));
    assert_eq!(
        exceeded(r#"{"jsonrpc":"2.0","id":1,"method":"12345"}"#),
        Some("name_bytes")
    );
    assert_eq!(
        exceeded(r#"{"jsonrpc":"2.0","id":"12345","method":"a"}"#),
        Some("name_bytes")
    );
    assert_eq!(
        exceeded(r#"{"jsonrpc":"2.0","id":1,"method":"1234"}"#),
        None
    );
}
