//! Measured servers.
//!
//! Each server is a separate process of this program, with the name of the server as an argument. All servers answer
//! `initialize` and `tools/call` of a tool `echo`, whose result is its argument.

mod floor;
mod hyper;
mod ours;
mod rmcp;

use std::io::Write;
use std::net::SocketAddr;

use anyhow::bail;

/// Runs the server `name` until its input ends or its process is killed.
pub fn run(name: &str) -> anyhow::Result<()> {
    match name {
        "floor-blocking" => Ok(floor::blocking()?),
        "floor-tokio" => Ok(runtime()?.block_on(floor::tokio())?),
        "ours-blocking" => ours::blocking(),
        "ours-tokio" => runtime()?.block_on(ours::tokio()),
        "rmcp" => runtime()?.block_on(rmcp::stdio()),
        "rmcp-pipes" => runtime()?.block_on(rmcp::stdio_pipes()),
        "http-hyper" => runtime()?.block_on(hyper::echo()),
        "http-ours" => runtime()?.block_on(ours::http()),
        "http-rmcp" => runtime()?.block_on(rmcp::http()),
        "sse-hyper" => runtime()?.block_on(hyper::streams()),
        other => bail!("no server is called {other}; servers.rs lists them"),
    }
}

/// Creates a single-threaded Tokio runtime, because the client uses the other core.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Prints to standard output the address on which a server listens; the client reads the address.
fn announce(address: SocketAddr) -> std::io::Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{address}")?;
    out.flush()
}
