//! What a conversion costs, next to what one has to do anyway: looking at the message, or decoding it.
//!
//! Each line is measured by interleaved rounds in one run; the smallest CPU time of a round counts. Prints a table; the
//! ratios are what the project demands of itself.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ProcessTime;
use mcp_2024_11_05 as oldest;
use mcp_2026_07_28 as newest;
use mcp_exact_convert::{Context, ConvertTo, KnownRevision, MessageKind, Role, Root, convert};
use mcp_exact_wire::{Look, from_str, to_string};

const ROUNDS: usize = 40;

/// The smallest CPU time of one call, of two things that take turns.
fn measure(calls: u32, mut a: impl FnMut(), mut b: impl FnMut()) -> (Duration, Duration) {
    let mut best = (Duration::MAX, Duration::MAX);
    let round = |f: &mut dyn FnMut()| {
        let start = ProcessTime::now();
        (0..calls).for_each(|_| f());
        start.elapsed() / calls
    };
    for _ in 0..ROUNDS {
        best.0 = best.0.min(round(&mut a));
        best.1 = best.1.min(round(&mut b));
    }
    best
}

fn line(what: &str, base: &str, limit: f64, (a, b): (Duration, Duration)) {
    let ratio = b.as_secs_f64() / a.as_secs_f64();
    println!(
        "{what:<44} {:>10.2} µs  {base:<8} {:>10.2} µs  ratio {ratio:>5.2}  demanded {limit}",
        b.as_secs_f64() * 1e6,
        a.as_secs_f64() * 1e6,
    );
}

fn main() {
    for (name, message) in [
        (
            "a prompt",
            request(
                "prompts/get",
                r#"{"name":"greet","arguments":{"name":"x"}}"#,
            ),
        ),
        ("a call of 300 B", request("tools/call", &call(200))),
        ("a call of 100 kB", request("tools/call", &call(100_000))),
    ] {
        let calls = if message.len() > 10_000 { 200 } else { 20_000 };
        let look = || drop(black_box(Look::at(black_box(&message))));
        line(
            &format!("pass-through of {name}"),
            "a look",
            2.0,
            measure(calls, look, || pass(&message)),
        );
    }
    let text = tools(200);
    let decode = || {
        drop(black_box(from_str::<oldest::ListToolsResult>(black_box(
            &text,
        ))))
    };
    let decoded: oldest::ListToolsResult = from_str(&text).expect("a list of tools");
    let mut ready: Vec<oldest::ListToolsResult> = Vec::new();
    // What is converted is consumed: copies are made before the clock runs.
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let calls = 20;
        ready.extend(std::iter::repeat_n(&decoded, calls).cloned());
        let start = ProcessTime::now();
        for value in ready.drain(..) {
            let up: newest::ListToolsResult =
                value.convert_to(&mut Context::new()).expect("convertible");
            drop(black_box(up));
        }
        best.1 = best
            .1
            .min(start.elapsed() / u32::try_from(calls).expect("small"));
        let start = ProcessTime::now();
        (0..calls).for_each(|_| decode());
        best.0 = best
            .0
            .min(start.elapsed() / u32::try_from(calls).expect("small"));
    }
    line(
        "200 tools from 2024-11-05 to 2026-07-28",
        "decoding",
        1.0,
        best,
    );
    let through = || {
        let root = Root {
            kind: MessageKind::Result,
            method: "tools/list",
            sender: Role::Server,
        };
        let (from, to) = (KnownRevision::V2024_11_05, KnownRevision::V2026_07_28);
        drop(black_box(convert(
            root,
            Some(&text),
            from,
            to,
            &mut Context::new(),
        )));
    };
    let both = || {
        let decoded: oldest::ListToolsResult = from_str(black_box(&text)).expect("a list of tools");
        drop(black_box(to_string(&decoded)));
    };
    line(
        "200 tools as raw text",
        "codec",
        f64::INFINITY,
        measure(20, both, through),
    );
}

/// What a gateway does with a message whose type is the same on both sides: look at it, and ask.
fn pass(message: &str) {
    let look = Look::at(black_box(message)).expect("a message");
    let root = Root {
        kind: MessageKind::Request,
        method: look.method.as_deref().expect("a method"),
        sender: Role::Client,
    };
    let (from, to) = (KnownRevision::V2024_11_05, KnownRevision::V2025_06_18);
    let mut cx = Context::new();
    let passed = convert(root, look.params, from, to, &mut cx).expect("convertible");
    assert!(passed.is_some_and(|text| std::ptr::eq(&*text, look.params.expect("params"))));
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
