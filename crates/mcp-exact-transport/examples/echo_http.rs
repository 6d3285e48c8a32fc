//! A server over HTTP: `cargo run -p mcp-exact-transport --example echo_http -- 127.0.0.1:8080`.
//!
//! Streamable HTTP is at `/mcp`, HTTP+SSE of 2024-11-05 at `/sse`.

mod echo;

use std::sync::Arc;

use mcp_exact_transport::http::server::{HttpListener, HttpServerOptions, HttpService};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let options = HttpServerOptions {
        path: Some("/mcp".to_owned()),
        ..HttpServerOptions::default()
    };
    let service = HttpService::new(echo::settings()?, Arc::new(echo::handle), options);
    let listener = HttpListener::bind(address).await?;
    eprintln_address(&listener)?;
    let interrupt = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    listener.serve(service, interrupt).await?;
    Ok(())
}

/// Prints the address of the listener to standard error.
#[allow(clippy::print_stderr, reason = "a program says where it listens")]
fn eprintln_address(listener: &HttpListener) -> std::io::Result<()> {
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(())
}
