//! Server that is mounted in an axum application: `cargo run -p mcp-exact-transport --example axum_mount`.
//!
//! The service is at `/mcp`, HTTP+SSE of 2024-11-05 at `/mcp/sse`.

mod echo;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use mcp_exact_transport::http::server::{HttpServerOptions, HttpService};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = HttpServerOptions {
        path_prefix: "/mcp".to_owned(),
        ..HttpServerOptions::default()
    };
    let service = HttpService::new(echo::settings()?, Arc::new(echo::handle), options);
    let application = Router::new()
        .route("/", get(|| async { "The server is at /mcp." }))
        .nest_service("/mcp", service.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    let shutdown = async move {
        let _ = tokio::signal::ctrl_c().await;
        service.drain();
    };
    axum::serve(listener, application)
        .with_graceful_shutdown(shutdown)
        .await?;
    Ok(())
}
