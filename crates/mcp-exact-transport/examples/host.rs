//! Host of several servers, which are isolated from each other. The arguments are the URLs of servers or the commands
//! that start them.
//!
//! `cargo run -p mcp-exact-transport --example host -- http://127.0.0.1:8080/mcp target/debug/examples/echo_stdio`
#![allow(clippy::print_stdout, reason = "a program prints what it finds")]

use std::sync::Arc;

use mcp_exact_session::{CallOptions, ClientConfig, ClientEvent, Identity, Outcome, PeerError};
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::{ClientHandle, ServerCommand};
use tokio::task::JoinHandle;

/// Error of any step of this example.
type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// Refuses requests of servers, because the host declares no capabilities for them.
fn handle(client: &ClientHandle, event: ClientEvent) {
    if let ClientEvent::Request { key, request, .. } = event {
        let _ = client.answer(key, Err(PeerError::method_not_found(request.method())));
    }
}

/// Connects to the server with this URL or command.
fn connect(server: &str) -> Result<(ClientHandle, JoinHandle<()>), AnyError> {
    let settings = ClientConfig::new(Identity::new("host", "1.0.0")).build()?;
    if server.contains("://") {
        Ok(HttpEndpoint::new(server)?.connect(settings, None, Arc::new(handle)))
    } else {
        Ok(ServerCommand::new(server).connect(settings, None, Arc::new(handle))?)
    }
}

/// Connects to a server and prints its tools.
async fn show(server: &str) -> Result<(), AnyError> {
    let (client, driver) = connect(server)?;
    let (session, _) = client.ready().await?;
    println!("{server}: speaks {}", session.revision);
    let request = client.request("tools/list", None, CallOptions::default(), None)?;
    match request.await {
        Outcome::Result(tools) => println!("{server}: {}", tools.object()),
        other => println!("{server}: {other:?}"),
    }
    client.close();
    driver.await?;
    Ok(())
}

#[tokio::main]
async fn main() {
    let servers = std::env::args().skip(1);
    let tasks = servers.map(|server| {
        tokio::spawn(async move {
            // One server that fails does not stop the others.
            if let Err(error) = show(&server).await {
                println!("{server}: {error}");
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        let _ = task.await;
    }
}
