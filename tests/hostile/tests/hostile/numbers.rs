//! Numbers of every length and spelling are preserved, and malformed numbers yield errors.
//!
//! The values of numbers are tested in `decimals.rs`.

use mcp_2025_06_18 as mcp;
use mcp_exact_wire::{Integer, Json, Map, Number};

use super::{check_round_trip, decode_error_of, error_at};

/// Integers in various spellings.
const INTEGERS: [&str; 22] = [
    "0",
    "-0",
    "-0.0",
    "0e0",
    "0E-5",
    "0e99999999999",
    "1",
    "1.0",
    "7.00",
    "1E+2",
    "1e+2",
    "1e2",
    "10e-1",
    "1.5e1",
    "1e400",
    "-1e400",
    "1e99999999999999999999999",
    "9007199254740993",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "123456789012345678901234567890",
];

/// Numbers that are not integers, in various spellings.
const FRACTIONS: [&str; 9] = [
    "0.1",
    "-0.5",
    "1.5",
    "1e-1",
    "1E-400",
    "15e-1",
    "1e-99999999999999999999999",
    "0.1000000000000000055511151231257827021181583404541015625",
    "1.00000000000000000000000000000000000000000000000000000001",
];

/// Texts that resemble numbers and are not JSON.
const MALFORMED_NUMBERS: [&str; 24] = [
    "01",
    "-01",
    "00",
    "1.",
    "-1.",
    ".5",
    "-.5",
    "+1",
    "1e",
    "1e+",
    "1E-",
    "1.e1",
    "1e1.5",
    "--1",
    "-",
    "- 1",
    "0x10",
    "1_000",
    "NaN",
    "Infinity",
    "-Infinity",
    "1f",
    "١",
    "1..2",
];

/// Returns numbers with at least 10,000 digits: only integers if `whole` is true.
fn long_numbers(whole: bool) -> Vec<String> {
    let nines = "9".repeat(10_000);
    let zeros = "0".repeat(10_000);
    if whole {
        vec![
            nines.clone(),
            format!("-{nines}"),
            format!("1{zeros}"),
            format!("1.{zeros}"),
            format!("1{zeros}e-10000"),
            format!("0.{zeros}1e10001"),
            format!("1e{nines}"),
            format!("0e-{nines}"),
        ]
    } else {
        vec![
            format!("1.{nines}"),
            format!("0.{zeros}1"),
            format!("1{zeros}e-10001"),
            format!("1e-{nines}"),
        ]
    }
}

/// Returns short and long numbers: integers if `whole` is true, otherwise numbers with fractions.
fn all_numbers(whole: bool) -> Vec<String> {
    let short: &[&str] = if whole { &INTEGERS } else { &FRACTIONS };
    let short = short.iter().map(|text| (*text).to_owned());
    short.chain(long_numbers(whole)).collect()
}

/// The spelling of a number in untyped JSON is preserved.
#[test]
fn untyped_numbers_keep_their_spelling() {
    for text in all_numbers(true).into_iter().chain(all_numbers(false)) {
        check_round_trip::<Json>(&text);
        check_round_trip::<Map<Json>>(&format!(r#"{{"a":{text}}}"#));
        check_round_trip::<Json>(&format!(r#"[ {text} , {{"a": {text} }}]"#));
        check_round_trip::<mcp::ClientRequest>(&format!(
            r#"{{"method":"tools/call","params":{{"name":"t","arguments":{{"x":[{text}]}}}},"x":{text}}}"#
        ));
    }
}

/// The spelling of a `Number` is preserved.
#[test]
fn typed_numbers_keep_their_spelling() {
    for text in all_numbers(true).into_iter().chain(all_numbers(false)) {
        assert_eq!(check_round_trip::<Number>(&text).to_string(), text);
        assert_eq!(
            text.parse::<Number>().expect("it is a number").to_string(),
            text
        );
        check_round_trip::<mcp::Annotations>(&format!(r#"{{"priority":{text}}}"#));
    }
}

/// The spelling of an `Integer` is preserved.
#[test]
fn typed_integers_keep_their_spelling() {
    for text in all_numbers(true) {
        assert_eq!(check_round_trip::<Integer>(&text).to_string(), text);
        check_round_trip::<mcp::Resource>(&format!(r#"{{"name":"n","uri":"a:b","size":{text}}}"#));
        check_round_trip::<mcp::RequestId>(&text);
        check_round_trip::<mcp::JSONRPCMessage>(&format!(
            r#"{{"jsonrpc":"2.0","id":{text},"method":"m","params":{{"_meta":{{"progressToken":{text}}}}}}}"#
        ));
        check_round_trip::<mcp::JSONRPCMessage>(&format!(
            r#"{{"jsonrpc":"2.0","error":{{"code":{text},"message":""}},"id":{text}}}"#
        ));
    }
}

/// A number with a fraction is refused where an integer is required.
#[test]
fn typed_integers_refuse_fractions() {
    for text in all_numbers(false) {
        assert_eq!(
            decode_error_of::<Integer>(&text),
            error_at("type", ""),
            "{text}"
        );
        let resource = format!(r#"{{"name":"n","uri":"a:b","size":{text}}}"#);
        assert_eq!(
            decode_error_of::<mcp::Resource>(resource),
            error_at("type", "/size")
        );
        let message = format!(r#"{{"jsonrpc":"2.0","id":{text},"method":"m"}}"#);
        assert_eq!(
            decode_error_of::<mcp::JSONRPCMessage>(message),
            error_at("type", "/id")
        );
        let meta = format!(r#"{{"_meta":{{"progressToken":{text}}}}}"#);
        assert_eq!(
            decode_error_of::<mcp::RequestParams>(meta),
            error_at("type", "/_meta/progressToken")
        );
    }
}

/// Texts that only resemble numbers are refused as untyped JSON, numbers and integers.
#[test]
fn malformed_numbers_are_not_json() {
    for text in MALFORMED_NUMBERS {
        assert_eq!(
            decode_error_of::<Json>(text),
            error_at("syntax", ""),
            "{text}"
        );
        assert_eq!(
            decode_error_of::<Number>(text),
            error_at("syntax", ""),
            "{text}"
        );
        assert_eq!(
            decode_error_of::<Integer>(text),
            error_at("syntax", ""),
            "{text}"
        );
        let typed = format!(r#"{{"priority":{text}}}"#);
        assert_eq!(
            decode_error_of::<mcp::Annotations>(typed),
            error_at("syntax", "/priority"),
            "{text}"
        );
        let open = format!(r#"{{"x":{{"y":[0,{text}]}}}}"#);
        assert_eq!(
            decode_error_of::<mcp::Annotations>(&open),
            error_at("syntax", "/x/y/1"),
            "{text}"
        );
        assert_eq!(
            decode_error_of::<Json>(&open),
            error_at("syntax", "/x/y/1"),
            "{text}"
        );
    }
}

/// A number is refused where a string is required, and a string where a number is required.
#[test]
fn numbers_are_not_strings() {
    for text in all_numbers(true).into_iter().chain(all_numbers(false)) {
        assert_eq!(decode_error_of::<String>(&text), error_at("type", ""));
        let quoted = format!(r#"{{"priority":"{text}"}}"#);
        assert_eq!(
            decode_error_of::<mcp::Annotations>(quoted),
            error_at("type", "/priority")
        );
    }
}
