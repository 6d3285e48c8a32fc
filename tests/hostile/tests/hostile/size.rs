//! Objects of 10 MB with distinct keys are preserved in every type that keeps members.
//!
//! Prints the decoding times of an object with a quarter of the size and of the complete object.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use mcp_2025_06_18 as mcp;
use mcp_exact_wire::{Decode, Encode, Json, JsonObject, Map, Validate};

use super::{check_round_trip, decode_error_of, error_at};

/// Size of the documents, in bytes.
const DOCUMENT_BYTES: usize = 10_000_000;

/// Order of the names of the members.
#[derive(Clone, Copy)]
enum NameOrder {
    /// The names are sorted.
    Ascending,
    /// The names are sorted in reverse.
    Descending,
    /// The names have a random order.
    Random,
    /// The names have a common prefix of 2,000 bytes, so that every comparison of two names reads the prefix.
    LongPrefix,
}

/// Returns the text of about `bytes` bytes of members, without the braces of their object.
fn members(bytes: usize, names: NameOrder) -> String {
    let mut out = String::with_capacity(bytes + 4096);
    let prefix = "p".repeat(2000);
    for n in 0_u32.. {
        if out.len() >= bytes {
            break;
        }
        let (prefix, n) = match names {
            NameOrder::Ascending => ("k", n),
            NameOrder::Descending => ("k", u32::MAX - n),
            // Odd, so that it permutes all 32-bit numbers.
            NameOrder::Random => ("k", n.wrapping_mul(0x9e37_79b1)),
            NameOrder::LongPrefix => (prefix.as_str(), n),
        };
        write!(out, "\"{prefix}{n}\":[{n},\"some text, long\"],")
            .expect("a string takes everything");
    }
    out.pop();
    out
}

/// Decodes a text and checks that encoding gives the same text; returns the value and the duration of both.
fn decode_timed<T: Decode + Encode>(text: &str) -> (T, Duration) {
    let from = Instant::now();
    let value = check_round_trip(text);
    (value, from.elapsed())
}

/// Decodes a quarter of the members and then all members, each wrapped by `wrap`; prints the durations and returns the
/// value with all members.
fn compare<T: Decode + Encode>(what: &str, names: NameOrder, wrap: impl Fn(&str) -> String) -> T {
    let (_, quarter) = decode_timed::<T>(&wrap(&members(DOCUMENT_BYTES / 4, names)));
    let (value, all) = decode_timed::<T>(&wrap(&members(DOCUMENT_BYTES, names)));
    println!(
        "{what}: {quarter:?} for a quarter, {all:?} for all: {:.1} times as long",
        all.as_secs_f64() / quarter.as_secs_f64()
    );
    value
}

/// A large object of untyped JSON is preserved.
#[test]
fn large_untyped_objects_round_trip() {
    let object: JsonObject = compare("untyped JSON", NameOrder::Ascending, |m| format!("{{{m}}}"));
    assert!(object.len() > 200_000);
    check_round_trip::<Json>(&format!(
        "[{{{}}}]",
        members(DOCUMENT_BYTES, NameOrder::Ascending)
    ));
}

/// Many unknown members of a typed object are preserved.
#[test]
fn many_unknown_members_round_trip() {
    for names in [
        NameOrder::Ascending,
        NameOrder::Descending,
        NameOrder::Random,
        NameOrder::LongPrefix,
    ] {
        let tool: mcp::Tool = compare("unknown members", names, |m| {
            format!(r#"{{"inputSchema":{{"type":"object"}},"name":"t",{m}}}"#)
        });
        assert!(tool.validate().is_empty());
        assert!(tool.extra.len() > 4_000);
        assert!(tool.clone() == tool);
    }
}

/// A large map with typed values is preserved.
#[test]
fn large_typed_maps_round_trip() {
    let map: Map<Json> = compare("a typed map", NameOrder::Random, |m| format!("{{{m}}}"));
    let length = map.len();
    let again: Map<Json> = map.into_iter().collect();
    assert_eq!(again.len(), length);
}

/// A large message is preserved.
#[test]
fn large_messages_round_trip() {
    compare::<mcp::ClientRequest>("arguments of a call", NameOrder::Random, |m| {
        format!(r#"{{"method":"tools/call","params":{{"name":"t","arguments":{{{m}}}}}}}"#)
    });
    compare::<mcp::JSONRPCMessage>("params of a request", NameOrder::Random, |m| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{{m}}}}}"#)
    });
    compare::<mcp::ContentBlock>("an unknown content block", NameOrder::Random, |m| {
        format!(r#"{{"type":"hologram",{m}}}"#)
    });
}

/// One duplicate member among many distinct members is found, even if its name is escaped.
#[test]
fn single_duplicate_is_found() {
    let members = members(DOCUMENT_BYTES / 4, NameOrder::Random);
    let twice = format!(r#"{{{members},"k0":1}}"#);
    assert_eq!(
        decode_error_of::<Map<Json>>(&twice),
        error_at("duplicate", "/k0")
    );
    assert_eq!(
        decode_error_of::<mcp::Annotations>(&twice),
        error_at("duplicate", "/k0")
    );
    let escaped = format!(r#"{{{members},"\u006b0":1}}"#);
    assert_eq!(
        decode_error_of::<Map<Json>>(&escaped),
        error_at("duplicate", "/k0")
    );
    check_round_trip::<Json>(&twice);
    check_round_trip::<JsonObject>(&escaped);
}

/// Long strings and arrays are preserved.
#[test]
fn long_strings_and_arrays_round_trip() {
    let plain = "x".repeat(DOCUMENT_BYTES);
    check_round_trip::<String>(&format!("\"{plain}\""));
    check_round_trip::<Json>(&format!("\"{plain}\""));
    check_round_trip::<String>(&format!("\"{}\"", "\\n".repeat(DOCUMENT_BYTES / 8)));
    check_round_trip::<String>(&format!("\"{}\"", "\\\"é😀".repeat(DOCUMENT_BYTES / 32)));
    check_round_trip::<Vec<bool>>(&format!("[{}true]", "false,".repeat(DOCUMENT_BYTES / 16)));
    let unclosed = decode_error_of::<String>(format!("\"{plain}"));
    assert_eq!(unclosed, error_at("syntax", ""));
}
