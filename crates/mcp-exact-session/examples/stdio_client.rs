//! Client without an async runtime: starts the server that the arguments specify, uses all its features, and prints one
//! line per step; the last line is the negotiated revision. If a step fails, the exit code is not 0.
//!
//! `stdio_client [--offer REVISION,…] COMMAND…`

#[path = "stdio/peer.rs"]
mod peer;
#[path = "stdio/pipe.rs"]
mod pipe;
#[path = "stdio/uses.rs"]
mod uses;

use std::io::Write;
use std::process::ExitCode;
use std::{env, io};

use mcp_exact_session::{ClientConfig, Identity, Lifecycle, Offer, lifecycle};
use serde_json::Value;

use peer::{AnyError, Peer};
use uses::{use_prompts, use_resources, use_tool};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Parses the arguments and uses the server.
fn run() -> Result<(), AnyError> {
    let mut command: Vec<String> = env::args().skip(1).collect();
    let mut config = ClientConfig::new(Identity::new("stdio_client", env!("CARGO_PKG_VERSION")));
    if command.first().is_some_and(|first| first == "--offer") {
        let offer = command.get(1).ok_or("--offer REVISION,…")?;
        config.offer = Offer::new(offer.split(','))?;
        command.drain(..2);
    }
    config.capabilities = r#"{"roots":{},"sampling":{},"elicitation":{}}"#.parse()?;
    let mut peer = Peer::start(config, command)?;
    let agreed = peer.session_info()?;
    print_step(&format!("connect: {agreed}"))?;
    let offers = |name: &str| agreed.capabilities.get(name).is_some();
    if lifecycle(agreed.revision.as_str()) == Some(Lifecycle::Initialize) {
        peer.request("ping", Value::Null)?;
        print_step("ping: answered")?;
    }
    if offers("tools") {
        for tool in peer.list_all("tools/list", "tools")? {
            use_tool(&mut peer, &tool)?;
        }
    }
    if offers("resources") {
        use_resources(&mut peer)?;
    }
    if offers("prompts") {
        use_prompts(&mut peer)?;
    }
    peer.stop()?;
    print_step(&format!("negotiated {}", agreed.revision))
}

/// Prints a line to standard output.
fn print_step(line: &str) -> Result<(), AnyError> {
    Ok(writeln!(io::stdout(), "{line}")?)
}
