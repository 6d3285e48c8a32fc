//! Benchmark of a server with one tool, written with the macro API: over stdio compared with the driver of
//! `mcp-exact-transport`, and in memory compared with the two endpoints alone.
//!
//! The two operations of a comparison run in turn, and the smallest time of each is used. `api-bench server NAME` runs
//! one of the servers. Prints a table, and writes it to a page with `--markdown`; no exit code depends on a time.
//! `--calls N` makes N calls in memory without measuring, for callgrind; `--endpoints` uses only the endpoints.

mod endpoints;
mod load;
mod servers;

use std::time::Instant;

use anyhow::Context as _;
use bench_record::{Row, after, repeated, report, take_turns};
use endpoints::Pair;
use load::Session;
use mcp_exact::{Client, IntoServer as _, revisions};
use servers::{Echo, Text};

/// Maximum time of calls through the macro API, divided by their time with the driver; 1.25 corresponds to 0.8 of the
/// calls per second.
const MAX_SERVE_RATIO: f64 = 1.25;
/// Maximum time of a call in memory through the macro API, divided by its time with the two endpoints alone.
const MAX_MEMORY_RATIO: f64 = 3.0;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "server") {
        return servers::run(arguments.get(1).context("api-bench server NAME")?);
    }
    let calls = after(&arguments, "--calls").map(|calls| calls.parse::<u32>());
    if let Some(calls) = calls {
        let calls = calls.context("--calls needs a number")?;
        return if arguments.iter().any(|argument| argument == "--endpoints") {
            endpoints_alone(calls)
        } else {
            in_memory(calls)
        };
    }
    let mut rows = vec![serve()?];
    for revision in ["2025-11-25", "2026-07-28"] {
        rows.push(memory(revision)?);
    }
    report(
        &arguments,
        "Calls through the macro API",
        "cargo xtask bench api",
        &rows,
    )?;
    Ok(())
}

/// Measures the time of calls over stdio with the macro API and with the driver, with 64 concurrent calls.
fn serve() -> anyhow::Result<Row> {
    let (mut driver, mut api) = (Session::start("driver")?, Session::start("api")?);
    let timed = |session: &mut Session, calls: u32| {
        let start = Instant::now();
        session
            .call_concurrently(calls as usize, 64)
            .expect("answers");
        start.elapsed()
    };
    timed(&mut driver, 2_000);
    timed(&mut api, 2_000);
    let cost = take_turns(
        10_000,
        |calls| timed(&mut driver, calls),
        |calls| timed(&mut api, calls),
    );
    Ok(Row {
        what: "stdio, 64 calls in flight".to_owned(),
        base: "driver",
        demanded: Some(MAX_SERVE_RATIO),
        cost,
    })
}

/// Creates a single-threaded runtime.
fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    Ok(builder.enable_all().build()?)
}

/// Connects a client, which supports only this revision, to a server in memory.
async fn client(revision: &str) -> anyhow::Result<Client> {
    let server = Echo.into_server()?;
    let revision = revisions().find(|one| one.as_str() == revision);
    let revision = revision.context("the revision is not compiled in")?;
    Ok(Client::in_memory(&server).revision(revision).await?)
}

/// Measures the time of a tool call between a client and a server in memory, and between two endpoints of the session
/// crate without tasks and handlers.
fn memory(revision: &str) -> anyhow::Result<Row> {
    let runtime = runtime()?;
    let client = runtime.block_on(client(revision))?;
    let mut pair = Pair::new(revision)?;
    let base = repeated(|| pair.call());
    let measured = repeated(|| runtime.block_on(call(&client)));
    Ok(Row {
        what: format!("in memory, {revision}"),
        base: "endpoints",
        demanded: Some(MAX_MEMORY_RATIO),
        cost: take_turns(2_000, base, measured),
    })
}

/// Makes one call of the tool `echo` through the client.
async fn call(client: &Client) {
    let text = Text {
        text: load::TEXT.to_owned(),
    };
    let output = client.call_tool("echo", &text).await.expect("an answer");
    assert!(!output.is_error());
}

/// Makes this number of calls in memory through the macro API without measuring them.
fn in_memory(calls: u32) -> anyhow::Result<()> {
    let runtime = runtime()?;
    let client = runtime.block_on(client("2025-11-25"))?;
    for _ in 0..calls {
        runtime.block_on(call(&client));
    }
    Ok(())
}

/// Makes this number of calls through the two endpoints without measuring them.
fn endpoints_alone(calls: u32) -> anyhow::Result<()> {
    let mut pair = Pair::new("2025-11-25")?;
    (0..calls).for_each(|_| pair.call());
    Ok(())
}
