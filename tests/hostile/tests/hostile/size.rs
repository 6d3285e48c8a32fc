//! Objects of 10 MB with distinct keys are preserved in every type that keeps members.
//!
//! Prints the decoding times of an object with a quarter of the size and of the complete object.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use mcp_2025_06_18 as mcp;
use mcp_exact_wire::{Decode, Encode, Json, JsonObject, Map, Validate};

use super::{at, decode_error_of, exact};

const DOCUMENT_BYTES: usize = 10_000_000;

/// Order of the names of the members.
#[derive(Clone, Copy)]
enum Names {
    Rising,
    Falling,
    Scattered,
    /// Common prefix of 2,000 bytes, which every comparison of names must pass.
    LongPrefix,
}

/// Returns the members of an object without braces, with about the given number of bytes.
fn members(bytes: usize, names: Names) -> String {
    let mut out = String::with_capacity(bytes + 4096);
    let prefix = "p".repeat(2000);
    for n in 0_u32.. {
        if out.len() >= bytes {
            break;
        }
        let (prefix, n) = match names {
            Names::Rising => ("k", n),
            Names::Falling => ("k", u32::MAX - n),
            // Odd, so that it permutes all 32-bit numbers.
            Names::Scattered => ("k", n.wrapping_mul(0x9e37_79b1)),
            Names::LongPrefix => (prefix.as_str(), n),
        };
        write!(out, "\"{prefix}{n}\":[{n},\"some text, long\"],")
            .expect("a string takes everything");
    }
    out.pop();
    out
}

fn decode_timed<T: Decode + Encode>(text: &str) -> (T, Duration) {
    let from = Instant::now();
    let value = exact(text);
    (value, from.elapsed())
}

/// Decodes a quarter of the members and all members, wrapped by `wrap`, and prints the durations.
fn compare<T: Decode + Encode>(what: &str, names: Names, wrap: impl Fn(&str) -> String) -> T {
    let (_, quarter) = decode_timed::<T>(&wrap(&members(DOCUMENT_BYTES / 4, names)));
    let (value, all) = decode_timed::<T>(&wrap(&members(DOCUMENT_BYTES, names)));
    println!(
        "{what}: {quarter:?} for a quarter, {all:?} for all: {:.1} times as long",
        all.as_secs_f64() / quarter.as_secs_f64()
    );
    value
}

#[test]
fn open_json() {
    let object: JsonObject = compare("untyped JSON", Names::Rising, |m| format!("{{{m}}}"));
    assert!(object.len() > 200_000);
    exact::<Json>(&format!("[{{{}}}]", members(DOCUMENT_BYTES, Names::Rising)));
}

#[test]
fn unknown_members_of_a_typed_struct() {
    for names in [
        Names::Rising,
        Names::Falling,
        Names::Scattered,
        Names::LongPrefix,
    ] {
        let tool: mcp::Tool = compare("unknown members", names, |m| {
            format!(r#"{{"inputSchema":{{"type":"object"}},"name":"t",{m}}}"#)
        });
        assert!(tool.validate().is_empty());
        assert!(tool.extra.len() > 4_000);
        assert!(tool.clone() == tool);
    }
}

#[test]
fn typed_maps() {
    let map: Map<Json> = compare("a typed map", Names::Scattered, |m| format!("{{{m}}}"));
    let length = map.len();
    let again: Map<Json> = map.into_iter().collect();
    assert_eq!(again.len(), length);
}

#[test]
fn whole_messages() {
    compare::<mcp::ClientRequest>("arguments of a call", Names::Scattered, |m| {
        format!(r#"{{"method":"tools/call","params":{{"name":"t","arguments":{{{m}}}}}}}"#)
    });
    compare::<mcp::JSONRPCMessage>("params of a request", Names::Scattered, |m| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{{m}}}}}"#)
    });
    compare::<mcp::ContentBlock>("an unknown content block", Names::Scattered, |m| {
        format!(r#"{{"type":"hologram",{m}}}"#)
    });
}

#[test]
fn the_one_duplicate_is_found() {
    let members = members(DOCUMENT_BYTES / 4, Names::Scattered);
    let twice = format!(r#"{{{members},"k0":1}}"#);
    assert_eq!(decode_error_of::<Map<Json>>(&twice), at("duplicate", "/k0"));
    assert_eq!(
        decode_error_of::<mcp::Annotations>(&twice),
        at("duplicate", "/k0")
    );
    let escaped = format!(r#"{{{members},"\u006b0":1}}"#);
    assert_eq!(
        decode_error_of::<Map<Json>>(&escaped),
        at("duplicate", "/k0")
    );
    exact::<Json>(&twice);
    exact::<JsonObject>(&escaped);
}

#[test]
fn long_strings_and_arrays() {
    let plain = "x".repeat(DOCUMENT_BYTES);
    exact::<String>(&format!("\"{plain}\""));
    exact::<Json>(&format!("\"{plain}\""));
    exact::<String>(&format!("\"{}\"", "\\n".repeat(DOCUMENT_BYTES / 8)));
    exact::<String>(&format!("\"{}\"", "\\\"é😀".repeat(DOCUMENT_BYTES / 32)));
    exact::<Vec<bool>>(&format!("[{}true]", "false,".repeat(DOCUMENT_BYTES / 16)));
    let unclosed = decode_error_of::<String>(format!("\"{plain}"));
    assert_eq!(unclosed, at("syntax", ""));
}
