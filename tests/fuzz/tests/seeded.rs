//! Checks the properties of the fuzz targets on the inputs of their corpus and on seeded mutations of these inputs;
//! every test run spends some seconds on these checks.

#![allow(
    clippy::print_stdout,
    reason = "counts belong into the output of a test run"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mcp_exact_convert::KnownRevision;
use mcp_exact_tests_fuzz::measure_repair;

/// Deterministic random number generator (xorshift64*).
struct Random(u64);

impl Random {
    /// Returns a random number below the limit.
    fn number_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let limit = u64::try_from(limit.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit).unwrap_or_default()
    }
}

/// Texts that a mutation inserts.
const TOKENS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "null",
    "true",
    "1.0",
    "-0",
    "1e400",
    "\\u0061",
    "\\ud800",
    "\\n",
    "\n",
    "\"id\":1,",
    "\"result\":{},",
    "\"method\":\"ping\",",
    "\"jsonrpc\":\"2.0\",",
    "\"params\":{},",
    "\u{e9}",
    "\0",
    "\\\"",
];

/// Returns a copy of the input `seed` with one to three random mutations.
fn mutate(seed: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=random.number_below(3) {
        let at = random.number_below(bytes.len() + 1);
        match random.number_below(5) {
            0 => drop(bytes.drain(at..(at + random.number_below(8)).min(bytes.len()))),
            1 => drop(bytes.splice(at..at, TOKENS[random.number_below(TOKENS.len())].bytes())),
            2 => drop(
                bytes
                    .get_mut(at)
                    .map(|byte| *byte ^= 1 << random.number_below(8)),
            ),
            3 => {
                let from = random.number_below(bytes.len() + 1);
                let piece = bytes[from..(from + random.number_below(40)).min(bytes.len())].to_vec();
                bytes.splice(at..at, piece);
            }
            _ => bytes.truncate(at),
        }
    }
    bytes
}

/// Reads the inputs in the corpus of a fuzz target, sorted by file name.
fn read_corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("a corpus")
        .map(|file| file.expect("a file").path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| fs::read(file).expect("a readable file"))
        .collect()
}

/// Checks a property on all inputs in the corpus of a fuzz target and on `mutations` mutations of these inputs.
fn check_property(target: &str, property: fn(&[u8]), mutations: usize) {
    let seeds = read_corpus(target);
    assert!(seeds.len() >= 10, "{target} has a corpus");
    let mut random = Random(0x6d63_7065_7861_6374);
    for seed in &seeds {
        property(seed);
    }
    for round in 0..mutations {
        property(&mutate(&seeds[round % seeds.len()], &mut random));
    }
    println!("{target}: {} seeds, {mutations} mutations", seeds.len());
}

/// No input makes a conversion panic or violates a property of conversions.
#[test]
fn conversions_never_panic() {
    check_property("conversion", mcp_exact_tests_fuzz::conversion, 60_000);
}

/// A repaired text is valid, a valid text is never touched, and a repair reads and holds no more than the bounds.
#[test]
fn repaired_text_is_valid_and_cheap() {
    check_property("repair", mcp_exact_tests_fuzz::repair, 20_000);
    check_property("conversion", mcp_exact_tests_fuzz::repair, 10_000);
}

/// What a repair reads and holds grows as the text does, whatever is repeated and whether the repair succeeds.
#[test]
fn repairs_are_linear() {
    let mut most = 0;
    for (name, of, start, unit, end) in GROWING {
        let cost = |count: usize| {
            let text = format!("{start}{}{end}", vec![*unit; count].join(","));
            let cost = measure_repair(name, *of, &text).expect("JSON");
            (cost, text.len())
        };
        let (small, small_length) = cost(200);
        let (large, large_length) = cost(2_000);
        println!("{name} {unit}: {small:?} of {small_length}, {large:?} of {large_length}");
        assert!(large_length <= 10 * small_length);
        assert!(large.read <= 10 * small.read, "{name}: {unit}");
        // Vectors and strings grow by doubling.
        assert!(large.held <= 2 * 10 * small.held, "{name}: {unit}");
        most = most.max(large.read / large_length);
    }
    assert!(most > 20, "something is read on several levels");
}

/// Definitions, and texts that grow by repeating their middle.
const GROWING: &[(&str, KnownRevision, &str, &str, &str)] = &[
    (
        "ListToolsResult",
        KnownRevision::V2026_07_28,
        r#"{"resultType":"complete","cacheScope":"public","ttlMs":0,"tools":["#,
        r#"{"name":"a","title":null,"annotations":{"title":5},"icons":[{"src":null}]}"#,
        "]}",
    ),
    (
        "ListToolsResult",
        KnownRevision::V2025_06_18,
        r#"{"tools":["#,
        "null",
        "]}",
    ),
    (
        "ListToolsResult",
        KnownRevision::V2025_06_18,
        r#"{"tools":["#,
        "[[[[5]]]]",
        "]}",
    ),
    (
        "CallToolResult",
        KnownRevision::V2025_11_25,
        r#"{"content":["#,
        r#"{"text":"\ud800"}"#,
        "]}",
    ),
    (
        "CallToolResult",
        KnownRevision::V2025_11_25,
        r#"{"isError":5,"content":["#,
        r#"{"type":"text","text":"a","annotations":null}"#,
        "]}",
    ),
    (
        "CallToolResult",
        KnownRevision::V2025_11_25,
        r#"{"content":[{"type":"text","text":""#,
        r"\ud800",
        r#""}]}"#,
    ),
    (
        "InitializeResult",
        KnownRevision::V2025_06_18,
        r#"{"protocolVersion":"2025-06-18","serverInfo":{"name":"n"},"capabilities":{"experimental":{"#,
        r#""a":null"#,
        "}}}",
    ),
    (
        "ReadResourceResult",
        KnownRevision::V2025_06_18,
        r#"{"contents":["#,
        r#"{"uri":"a:b","text":null,"blob":null}"#,
        "]}",
    ),
    (
        "CreateMessageResult",
        KnownRevision::V2025_11_25,
        r#"{"role":"assistant","model":"m","content":[{"type":"tool_result","toolUseId":"1","content":["#,
        r#"{"type":"image","data":"AA==","mimeType":null}"#,
        "]}]}",
    ),
    (
        "ClientResult",
        KnownRevision::V2025_11_25,
        r#"{"roots":["#,
        r#"{"uri":"file:///a","name":null}"#,
        "]}",
    ),
];

/// Every input that is a message is preserved by encoding and decoding.
#[test]
fn messages_round_trip() {
    check_property("messages", mcp_exact_tests_fuzz::messages, 60_000);
}

/// No input makes an endpoint of a session exceed its limits or violate another property of sessions.
#[test]
fn sessions_stay_within_limits() {
    check_property("session", mcp_exact_tests_fuzz::session, 2_500);
}

/// The runs of the session corpus include every kind of outcome, server request, notification and refusal.
#[test]
fn session_corpus_covers_all_events() {
    let worlds = read_corpus("session");
    let seen: BTreeSet<&str> = worlds
        .iter()
        .flat_map(|world| mcp_exact_tests_fuzz::run_and_collect_events(world))
        .collect();
    println!("session: {seen:?}");
    let expected = [
        "2024-11-05",
        "2025-03-26",
        "2025-11-25",
        "2026-07-28",
        "another round",
        "answer of a client",
        "bad tool",
        "cancelled",
        "change",
        "closed",
        "error",
        "listen",
        "log",
        "lost",
        "depth",
        "no agreement",
        "progress",
        "question",
        "question during a request",
        "request cancelled",
        "result",
        "subscription",
        "timed out",
        "violation of a client",
        "violation of a server",
    ];
    let missing: Vec<_> = expected
        .iter()
        .filter(|what| !seen.contains(**what))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Every HTTP request of an input gets a response that matches its headers.
#[test]
fn http_requests_are_answered() {
    check_property("http", mcp_exact_tests_fuzz::http, 4_000);
}

/// The HTTP corpus causes every kind of response, including every kind of refusal.
#[test]
fn http_corpus_covers_all_responses() {
    let requests = read_corpus("http");
    let seen: BTreeSet<String> = requests
        .iter()
        .flat_map(|requests| mcp_exact_tests_fuzz::response_kinds(requests))
        .collect();
    println!("http: {seen:?}");
    let expected = [
        "200 application/json",
        "200 text/event-stream",
        "202",
        "204",
        "400 application/json",
        "403 application/json",
        "404 application/json",
        "405",
        "415 application/json",
        "503 application/json",
    ];
    let missing: Vec<_> = expected
        .iter()
        .filter(|what| !seen.contains(**what))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The JSON reader and serde_json accept the same inputs.
#[test]
fn reader_agrees_with_serde_json() {
    check_property("reader", mcp_exact_tests_fuzz::reader, 300_000);
}
