//! Measures the time of a conversion compared with the minimum work of a gateway: reading the head of a message, or
//! decoding and encoding the message. The benchmark also measures the decoding of requests into the types of another
//! revision.
//!
//! Each line is measured in interleaved rounds; the smallest CPU time of a round is used. Prints a table, and writes it
//! to a page with `--markdown`; the maximum ratios are thresholds of this project. `--linear [WORD]` measures long
//! inputs instead, optionally only kinds whose name contains the word. `--calls N` runs each line N times without
//! measuring, for callgrind; with `--base`, it runs the operation that the line is compared with. `--only` selects the
//! lines that contain the words.

mod home;
mod linear;

use std::hint::black_box;

use bench_record::{Row, after, repeated, report, take_turns};
use mcp_2024_11_05 as oldest;
use mcp_2025_11_25::V2025_11_25;
use mcp_2026_07_28 as newest;
use mcp_2026_07_28::V2026_07_28;
use mcp_exact_convert::{Context, KnownRevision, MessageKind, Payload, Role, convert, convert_as};
use mcp_exact_wire::{MessageHead, from_str, to_string};

fn main() -> std::io::Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let prompt = r#"{"name":"greet","arguments":{"name":"x"}}"#;
    if let Some(at) = arguments.iter().position(|argument| argument == "--linear") {
        linear::keep_freed_memory()?;
        arguments.remove(at);
        let rows = linear::rows(arguments.first().map(String::as_str));
        return record(&arguments, &rows);
    }
    let mut lines = vec![
        pass_through("a prompt", &request("prompts/get", prompt)),
        pass_through("a call of 300 B", &request("tools/call", &call(200))),
        pass_through("a call of 100 kB", &request("tools/call", &call(100_000))),
        home::line::<V2025_11_25>("a call of 2 kB", &request("tools/call", &call(1_800))),
        home::line::<V2026_07_28>("a call of 2 kB", &request("tools/call", &call(1_800))),
        typed(&tools(200)),
        text(&tools(200), KnownRevision::V2026_07_28, "four steps", 1.0),
        text(&tools(200), KnownRevision::V2025_03_26, "one step", 0.6),
    ];
    if let Some(words) = after(&arguments, "--only") {
        lines.retain(|line| line.what.contains(&words));
    }
    if let Some(calls) = after(&arguments, "--calls") {
        let calls = calls.parse().expect("a number of calls");
        let is_base = arguments.iter().any(|argument| argument == "--base");
        for mut line in lines {
            let run = if is_base {
                &mut line.compared
            } else {
                &mut line.run
            };
            (0..calls).for_each(|_| run());
        }
        return Ok(());
    }
    let rows: Vec<Row> = lines.into_iter().map(Line::measure).collect();
    record(&arguments, &rows)
}

/// Prints the rows, and writes the page if `--markdown FILE` is given.
fn record(arguments: &[String], rows: &[Row]) -> std::io::Result<()> {
    report(arguments, "Conversions", "cargo xtask bench convert", rows)
}

/// Operation to measure, with another operation for comparison.
struct Line {
    /// Name of the measured operation.
    what: String,
    /// Name of the operation for comparison.
    base: &'static str,
    /// Threshold for the time of the measured operation divided by the time of the other operation.
    demanded: f64,
    /// Number of calls of each operation in a round.
    calls: u32,
    /// Operation for comparison.
    compared: Box<dyn FnMut()>,
    /// Operation that is measured.
    run: Box<dyn FnMut()>,
}

impl Line {
    /// Measures both operations in turn.
    fn measure(self) -> Row {
        Row {
            what: self.what,
            base: self.base,
            demanded: Some(self.demanded),
            cost: take_turns(self.calls, repeated(self.compared), repeated(self.run)),
        }
    }
}

/// Returns the measurement of a conversion that leaves the params of the message `message` unchanged, because the type
/// is the same in both revisions.
fn pass_through(name: &str, message: &str) -> Line {
    let messages = [message.to_owned(), message.to_owned()];
    let [head, passed] = messages;
    Line {
        what: format!("pass-through of {name}"),
        base: "a message head",
        demanded: 1.3,
        calls: if message.len() > 10_000 { 200 } else { 20_000 },
        compared: Box::new(move || drop(black_box(MessageHead::parse(black_box(&head))))),
        run: Box::new(move || pass(&passed)),
    }
}

/// Returns the measurement of the conversion of a decoded tool list over four revision steps.
fn typed(list: &str) -> Line {
    let decoded: oldest::ListToolsResult = from_str(list).expect("a list of tools");
    let list = list.to_owned();
    let convert = move || {
        let up = convert_as::<newest::ListToolsResult>(&decoded, &mut Context::new());
        drop(black_box(up.expect("convertible")));
    };
    Line {
        what: "200 tools from 2024-11-05 to 2026-07-28".to_owned(),
        base: "codec",
        demanded: 2.2,
        calls: 20,
        compared: Box::new(move || codec(&list)),
        run: Box::new(convert),
    }
}

/// Returns the measurement of the conversion of a tool list as JSON text to the revision `to`.
fn text(list: &str, to: KnownRevision, steps: &str, demanded: f64) -> Line {
    let (list, decoded) = (list.to_owned(), list.to_owned());
    let through = move || {
        let root = Payload {
            kind: MessageKind::Result,
            method: "tools/list",
            sender: Role::Server,
        };
        let cx = &mut Context::new();
        let from = KnownRevision::V2024_11_05;
        drop(black_box(convert(root, Some(&list), from, to, cx)));
    };
    Line {
        what: format!("200 tools as raw text, {steps}"),
        base: "codec",
        demanded,
        calls: 20,
        compared: Box::new(move || codec(&decoded)),
        run: Box::new(through),
    }
}

/// Decodes and encodes a tool list once.
fn codec(list: &str) {
    let decoded: oldest::ListToolsResult = from_str(black_box(list)).expect("a list of tools");
    drop(black_box(to_string(&decoded)));
}

/// Does the work of a gateway for a message whose type is the same in both revisions: parses its head, looks up the
/// method, and returns the params unchanged.
fn pass(message: &str) {
    let head = MessageHead::parse(black_box(message)).expect("a message");
    let root = Payload {
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

/// Returns the JSON text of a request.
fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":17,"method":"{method}","params":{params}}}"#)
}

/// Returns the params of a `tools/call` with about this number of bytes.
fn call(bytes: usize) -> String {
    let text = "one line of source code, with \\\"quotes\\\" and more; ".repeat(bytes.div_ceil(52));
    format!(r#"{{"name":"write_file","arguments":{{"path":"src/main.rs","text":"{text}"}}}}"#)
}

/// Returns a result of `tools/list` with `count` tools.
fn tools(count: usize) -> String {
    let tool = |n: usize| {
        format!(
            r#"{{"name":"tool_{n}","description":"Does the {n}th thing to a file and says how it went.","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string","description":"Where the file is"}},"recursive":{{"type":"boolean","default":false}},"depth":{{"type":"integer","minimum":0,"maximum":10}}}},"required":["path"],"additionalProperties":false}}}}"#
        )
    };
    let tools: Vec<String> = (0..count).map(tool).collect();
    format!(r#"{{"tools":[{}]}}"#, tools.join(","))
}
