//! Cost of a conversion compared with the minimum work of a gateway, which is reading the head of a message or decoding
//! it. It also measures requests in the types of another revision.
//!
//! Each line is measured in interleaved rounds; the smallest CPU time of a round is used. Prints a table, and writes it
//! to a page with `--markdown`; the ratios are the project's own demands. `--linear [WORD]` measures long inputs
//! instead, optionally only kinds whose name contains the word.

mod home;
mod linear;

use std::hint::black_box;

use bench_record::{Row, repeated, report, take_turns};
use mcp_2024_11_05 as oldest;
use mcp_2025_11_25::V2025_11_25;
use mcp_2026_07_28 as newest;
use mcp_2026_07_28::V2026_07_28;
use mcp_exact_convert::{Context, KnownRevision, MessageKind, Role, Root, convert, convert_as};
use mcp_exact_wire::{MessageHead, from_str, to_string};

fn main() -> std::io::Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let prompt = r#"{"name":"greet","arguments":{"name":"x"}}"#;
    let mut rows = vec![
        pass_through("a prompt", &request("prompts/get", prompt)),
        pass_through("a call of 300 B", &request("tools/call", &call(200))),
        pass_through("a call of 100 kB", &request("tools/call", &call(100_000))),
        home::row::<V2025_11_25>("a call of 2 kB", &request("tools/call", &call(1_800))),
        home::row::<V2026_07_28>("a call of 2 kB", &request("tools/call", &call(1_800))),
        measure_typed(&tools(200)),
        text(&tools(200), KnownRevision::V2026_07_28, "four steps", 1.0),
        text(&tools(200), KnownRevision::V2025_03_26, "one step", 0.6),
    ];
    if let Some(at) = arguments.iter().position(|argument| argument == "--linear") {
        linear::keep_freed_memory()?;
        arguments.remove(at);
        rows = linear::rows(arguments.first().map(String::as_str));
    }
    report(
        &arguments,
        "Conversions",
        "cargo xtask bench convert",
        &rows,
    )
}

/// Measures a message whose type is the same in both revisions.
fn pass_through(name: &str, message: &str) -> Row {
    let calls = if message.len() > 10_000 { 200 } else { 20_000 };
    let head = repeated(|| drop(black_box(MessageHead::parse(black_box(message)))));
    Row {
        what: format!("pass-through of {name}"),
        base: "a message head",
        demanded: Some(1.3),
        cost: take_turns(calls, head, repeated(|| pass(message))),
    }
}

/// Measures the typed conversion of a list over four steps.
fn measure_typed(list: &str) -> Row {
    let decoded: oldest::ListToolsResult = from_str(list).expect("a list of tools");
    let convert = || {
        let up = convert_as::<newest::ListToolsResult>(&decoded, &mut Context::new());
        drop(black_box(up.expect("convertible")));
    };
    Row {
        what: "200 tools from 2024-11-05 to 2026-07-28".to_owned(),
        base: "codec",
        demanded: Some(2.2),
        cost: take_turns(20, repeated(|| codec(list)), repeated(convert)),
    }
}

/// Measures the raw conversion of the same list.
fn text(list: &str, to: KnownRevision, steps: &str, demanded: f64) -> Row {
    let through = || {
        let root = Root {
            kind: MessageKind::Result,
            method: "tools/list",
            sender: Role::Server,
        };
        let cx = &mut Context::new();
        let from = KnownRevision::V2024_11_05;
        drop(black_box(convert(root, Some(list), from, to, cx)));
    };
    Row {
        what: format!("200 tools as raw text, {steps}"),
        base: "codec",
        demanded: Some(demanded),
        cost: take_turns(20, repeated(|| codec(list)), repeated(through)),
    }
}

fn codec(list: &str) {
    let decoded: oldest::ListToolsResult = from_str(black_box(list)).expect("a list of tools");
    drop(black_box(to_string(&decoded)));
}

/// Does the work of a gateway for a message whose type is the same in both revisions: reads its head, and looks up the
/// method.
fn pass(message: &str) {
    let head = MessageHead::parse(black_box(message)).expect("a message");
    let root = Root {
        kind: MessageKind::Request,
        method: head.method.as_deref().expect("a method"),
        sender: Role::Client,
    };
    let (from, to) = (KnownRevision::V2024_11_05, KnownRevision::V2025_06_18);
    let mut cx = Context::new();
    let passed = convert(root, head.params, from, to, &mut cx).expect("convertible");
    assert!(passed.is_some_and(|text| std::ptr::eq(&*text, head.params.expect("params"))));
    black_box(cx);
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":17,"method":"{method}","params":{params}}}"#)
}

fn call(bytes: usize) -> String {
    let text = "one line of source code, with \\\"quotes\\\" and more; ".repeat(bytes.div_ceil(52));
    format!(r#"{{"name":"write_file","arguments":{{"path":"src/main.rs","text":"{text}"}}}}"#)
}

fn tools(count: usize) -> String {
    let tool = |n: usize| {
        format!(
            r#"{{"name":"tool_{n}","description":"Does the {n}th thing to a file and says how it went.","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string","description":"Where the file is"}},"recursive":{{"type":"boolean","default":false}},"depth":{{"type":"integer","minimum":0,"maximum":10}}}},"required":["path"],"additionalProperties":false}}}}"#
        )
    };
    let tools: Vec<String> = (0..count).map(tool).collect();
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}
