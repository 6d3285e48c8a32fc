//! Line breaks between the tokens of untyped JSON are preserved, and `to_line` writes a message on one line.

use mcp_2025_06_18 as mcp;
use mcp_exact_tests_support::{Doc, Generator, Rng, Style, is_same_json};
use mcp_exact_wire::{Decode, Encode, Json, from_slice, to_line};
use serde_json::Value;

use super::check_round_trip;

/// Seed of the random documents.
const SEED: u64 = 0x0a0d;

/// Checks that a text is preserved by decoding and encoding, and that `to_line` writes the same JSON on one line;
/// returns this line.
fn check_line<T: Decode + Encode>(text: &str) -> String {
    let value: T = check_round_trip(text);
    let line = String::from_utf8(to_line(&value)).expect("it is text");
    assert!(!line.contains(['\n', '\r']), "{line}");
    assert_eq!(line.len(), text.len());
    let values: [Value; 2] = [text, &line].map(|text| serde_json::from_str(text).expect("JSON"));
    assert_eq!(values[0], values[1]);
    assert_eq!(
        from_slice::<T>(line.as_bytes()).map(|value| to_line(&value)),
        Ok(line.clone().into())
    );
    line
}

/// A message inside untyped JSON that contains line breaks cannot become a line of its own.
#[test]
fn lines_never_hold_second_messages() {
    let smuggled = "{\"a\":\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\"}\r\n}";
    let kept = smuggled.replace(['\n', '\r'], " ");
    assert_eq!(check_line::<Json>(smuggled), kept);
    for [before, after] in [
        [
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":"#,
            "}}",
        ],
        [r#"{"jsonrpc":"2.0","id":1,"result":{"x":"#, "}}"],
        [
            r#"{"jsonrpc":"2.0","error":{"code":1,"message":"","data":"#,
            r#"},"id":1}"#,
        ],
        [r#"{"jsonrpc":"2.0","id":1,"method":"m","x":"#, "}"],
    ] {
        let text = format!("{before}{smuggled}{after}");
        assert_eq!(
            check_line::<mcp::JSONRPCMessage>(&text),
            format!("{before}{kept}{after}")
        );
    }
    for [before, after] in [
        [
            r#"{"method":"tools/call","params":{"name":"t","arguments":"#,
            "}}",
        ],
        ["{\"method\":\"x/y\",\r\n\"params\":", "\n}"],
    ] {
        let text = format!("{before}{smuggled}{after}");
        check_line::<mcp::ClientRequest>(&text);
    }
    check_line::<mcp::Tool>(&format!(r#"{{"inputSchema":{smuggled},"name":"t"}}"#));
}

/// Line breaks around a document and between the tokens of a typed object are not written.
#[test]
fn surrounding_line_breaks_are_dropped() {
    let request: mcp::ClientRequest =
        from_slice(b"\r\n{\n\"method\"\n:\r\"ping\"\n}\n").expect("it is a request");
    assert_eq!(to_line(&request), br#"{"method":"ping"}"#);
    let json: Json = from_slice(b"\n[1]\n").expect("it is JSON");
    assert_eq!(json.text(), "[1]");
}

/// Escaped line breaks in strings are written as escapes.
#[test]
fn escaped_line_breaks_stay_escaped() {
    let text = "{\"x\":\"a\\nb\\r\\u000a\u{85}\u{2028}\u{2029}\"}";
    assert_eq!(check_line::<mcp::Annotations>(text), text);
    let tool = mcp::Tool::new("a\nb\rc", mcp::ToolInputSchema::new());
    let line = to_line(&tool);
    assert_eq!(
        String::from_utf8(line).expect("it is text"),
        r#"{"inputSchema":{"type":"object"},"name":"a\nb\rc"}"#
    );
}

/// `to_line` writes any untyped JSON on one line.
#[test]
fn untyped_json_fits_one_line() {
    let schema = serde_json::json!({"definitions": {"Any": {}}});
    let mut generator = Generator::new(&schema, Rng::new(SEED)).exotic_numbers(true);
    let mut rng = Rng::new(SEED);
    let mut with_breaks = 0;
    for _ in 0..5_000 {
        let doc = generator.open_value();
        let text = doc.write(Style::ALL_VARIATIONS, &mut rng);
        let json: Json = from_slice(text.as_bytes()).expect("it is JSON");
        assert_eq!(json.text(), text.trim());
        let line = String::from_utf8(to_line(&json)).expect("it is text");
        with_breaks += usize::from(line != json.text());
        assert!(!line.contains(['\n', '\r']));
        assert!(is_same_json(&Doc::parse(&line).expect("it is JSON"), &doc));
    }
    println!("{with_breaks} of 5,000 documents had line breaks");
    assert!(with_breaks > 1_000);
}
