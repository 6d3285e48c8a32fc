//! Benchmark of servers with an echo tool: compares hand-written minimal servers, the drivers of `mcp-exact-transport`,
//! and rmcp.
//!
//! `serve-bench [--quick|--short] [--only stdio|http|idle|clients|start] [--instructions] [--markdown FILE] [--json
//! FILE] [--svg FILE]` measures; `serve-bench bridge` measures the gateway; `serve-bench server NAME` runs one of the servers.
//! Prints the thresholds; fails only if a response is wrong.
#![allow(clippy::print_stdout)]

mod bridge;
mod demand;
mod instructions;
mod load;
mod markdown;
mod process;
mod run;
mod servers;
mod stats;
mod svg;

use anyhow::Context;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "server") {
        let name = arguments.get(1).context("serve-bench server NAME")?;
        return servers::run(name);
    }
    if arguments.first().is_some_and(|first| first == "bridge") {
        return bridge::run(&arguments[1..]);
    }
    let has = |option: &str| arguments.iter().any(|argument| argument == option);
    let scale = match (has("--quick"), has("--short")) {
        (true, _) => run::Scale::quick(),
        (_, true) => run::Scale::short(),
        _ => run::Scale::full(),
    };
    let only = bench_record::after(&arguments, "--only");
    let mut run = run::run(&scale, only.as_deref())?;
    if has("--instructions") {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        run.instructions = runtime.block_on(instructions::rows())?;
    }
    let demands = demand::verdicts(&run);
    print!("{}", markdown::text(&run, &demands));
    let write =
        |option: &str, text: &dyn Fn() -> String| match bench_record::after(&arguments, option) {
            Some(path) => {
                std::fs::write(&path, text()).with_context(|| format!("cannot write {path}"))
            }
            None => Ok(()),
        };
    if let Some(path) = bench_record::after(&arguments, "--markdown") {
        bench_record::write_page(&path, &markdown::page(&run, &demands))
            .with_context(|| format!("cannot write {path}"))?;
    }
    write("--json", &|| markdown::json(&run, &demands))?;
    write("--svg", &|| svg::chart(&run))
}
