//! Server that uses a third-party service on behalf of its users (`client/elicitation`, "URL Mode Elicitation for OAuth
//! Flows"):
//!
//! `cargo run -p mcp-exact --example third_party --features oauth-client,oauth-server -- CONFIGURATION.json`
//!
//! The tool `documents` needs a credential of the service. Without a credential, the tool asks the user to visit a page
//! of this server. The page identifies the visitor by a sign-in at the authorization server of the MCP clients, and
//! redirects only the user who was asked to the service. The credential is never sent to the client or the model.

mod application;
mod pages;

use std::error::Error;

use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("name the configuration")?;
    let configuration = serde_json::from_slice(&std::fs::read(path)?)?;
    let listener = TcpListener::bind("127.0.0.1:8080").await?;
    let router = application::router(configuration).await?;
    axum::serve(listener, router).await?;
    Ok(())
}
