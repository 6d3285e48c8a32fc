//! A server that uses a service of somebody else for its users (`client/elicitation`, "URL Mode Elicitation for OAuth Flows"):
//!
//! `cargo run -p mcp-exact --example third_party --features oauth-client,oauth-server -- CONFIGURATION.json`
//!
//! The tool `documents` needs a credential of the service. Without one, it asks the user to visit a page of this server. The page finds
//! out who visits it, by a sign-in at the authorization server of the MCP clients, and sends only the user who was asked on to the
//! service. Neither the client nor a model ever sees the credential.

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
