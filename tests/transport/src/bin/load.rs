//! Calls the tool `echo` of a server over stdio as fast as possible, and prints the calls per second:
//! `load CALLS IN_FLIGHT COMMAND…`. If `IN_FLIGHT` is 1, also prints the median duration of a call.
#![allow(clippy::print_stdout)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Messages of the handshake: `initialize` and `notifications/initialized`, one per line.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// Returns the line of a tool call.
fn line(id: usize) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"hello\"}}}}}}\n"
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let calls: usize = arguments
        .next()
        .ok_or("load CALLS IN_FLIGHT COMMAND…")?
        .parse()?;
    let in_flight: usize = arguments
        .next()
        .ok_or("load CALLS IN_FLIGHT COMMAND…")?
        .parse()?;
    let command: Vec<String> = arguments.collect();
    let (program, arguments) = command
        .split_first()
        .ok_or("load CALLS IN_FLIGHT COMMAND…")?;
    let started = Instant::now();
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut input = child.stdin.take().ok_or("no input")?;
    let mut output = BufReader::with_capacity(1 << 16, child.stdout.take().ok_or("no output")?);
    input.write_all(INITIALIZE.as_bytes())?;
    let mut answer = Vec::new();
    output.read_until(b'\n', &mut answer)?;
    let first = started.elapsed();
    let begun = Instant::now();
    let (mut sent, mut done) = (0, 0);
    let mut times: Vec<Duration> = Vec::new();
    while done < calls {
        // Half of what may be in flight is sent at once, as a client that works through answers in bursts does.
        let burst = (in_flight / 2).max(1).min(calls - sent);
        if sent - done + burst <= in_flight && sent < calls {
            let text: String = (0..burst).map(|n| line(sent + n + 1)).collect();
            input.write_all(text.as_bytes())?;
            sent += burst;
        }
        let start = Instant::now();
        while sent - done > in_flight.saturating_sub((in_flight / 2).max(1))
            || (sent == calls && done < calls)
        {
            answer.clear();
            if output.read_until(b'\n', &mut answer)? == 0 {
                return Err("the server has left".into());
            }
            done += 1;
        }
        if in_flight == 1 {
            times.push(start.elapsed());
        }
    }
    let rate = calls as f64 / begun.elapsed().as_secs_f64();
    times.sort();
    let median = times.get(times.len() / 2);
    println!("{rate:.0} calls/s, median {median:?}, first answer after {first:?}");
    drop(input);
    child.wait()?;
    Ok(())
}
