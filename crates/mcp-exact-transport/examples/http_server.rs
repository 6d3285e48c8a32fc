//! Server over HTTP with an example of every feature: tools with progress, logs and input requests, a resource, a
//! prompt.
//!
//! `cargo run -p mcp-exact-transport --example http_server -- [--listen ADDRESS] [REVISION…]`. Streamable HTTP is at
//! `/mcp`, HTTP+SSE of 2024-11-05 at `/sse`. Supports every revision, or the revisions that the arguments list by
//! descending preference.

#[path = "everything/offer.rs"]
mod offer;

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use mcp_exact_session::{Identity, Offer, ServerConfig};
use mcp_exact_transport::http::server::{HttpListener, HttpServerOptions, HttpService};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut address = "127.0.0.1:0".to_owned();
    if arguments.first().is_some_and(|first| first == "--listen") {
        address.clone_from(arguments.get(1).ok_or("--listen ADDRESS")?);
        arguments.drain(..2);
    }
    let mut config = ServerConfig::new(Identity::new("http_server", env!("CARGO_PKG_VERSION")));
    if !arguments.is_empty() {
        config.offer = Offer::new(arguments.iter().map(String::as_str))?;
    }
    config.capabilities = r#"{"tools":{},"resources":{},"prompts":{},"logging":{}}"#.parse()?;
    config.instructions = Some("Call `echo`, `slow` or `ask`.".into());
    let options = HttpServerOptions {
        path: Some("/mcp".to_owned()),
        ..HttpServerOptions::default()
    };
    let service = HttpService::new(
        config.build()?,
        Arc::new(offer::Handler::default()),
        options,
    );
    let listener = HttpListener::bind(address).await?;
    writeln!(
        std::io::stdout(),
        "listening on http://{}",
        listener.local_addr()?
    )?;
    let interrupt = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    listener.serve(service, interrupt).await?;
    Ok(())
}
