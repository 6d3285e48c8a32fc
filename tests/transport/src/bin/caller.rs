//! Client that calls one tool and prints the outcome: `caller REVISION TOOL URL`, or `caller REVISION TOOL COMMAND…`
//! for a server over stdio.
//!
//! Prints `calling` after the call was sent, and finally its peak memory as `peak BYTES`.
#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::CallOptions;
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::process::memory;
use mcp_exact_transport::ServerCommand;
use mcp_exact_transport::http::client::{HttpEndpoint, HttpTransport};

/// Calls the tool and prints the outcome.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [revision, tool, server, rest @ ..] = arguments.as_slice() else {
        return Err("caller REVISION TOOL SERVER".into());
    };
    let config = echo::client_settings(revision);
    let handler = Arc::new(echo::answer);
    let (client, driver) = if server.starts_with("http://") {
        let transport = match revision.as_str() {
            "2024-11-05" => HttpTransport::Sse,
            _ => HttpTransport::Streamable,
        };
        let endpoint = HttpEndpoint::new(server)?.transport(transport);
        let endpoint = endpoint.retry(Duration::from_millis(20));
        endpoint.connect(config, None, handler)
    } else {
        ServerCommand::new(server)
            .args(rest)
            .connect(config, None, handler)?
    };
    match client.ready().await {
        Ok(_) => {
            let pid = echo::call(&client, "pid", "").await;
            println!("server {}", pid.unwrap_or_default());
            let params = echo::call_params(tool, "text");
            let call = client.request("tools/call", params, CallOptions::default(), None)?;
            println!("calling");
            println!("outcome {:?}", call.await);
        }
        Err(error) => println!("outcome {error}"),
    }
    client.close();
    driver.await?;
    println!("peak {}", memory(std::process::id(), "VmHWM"));
    Ok(())
}
