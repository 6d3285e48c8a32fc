//! Servers with the drivers of `mcp-exact-transport`, with default limits and `tracing` enabled.

use std::sync::Arc;

use anyhow::anyhow;
use mcp_exact_session::{
    Identity, IncomingRequest, JsonObject, PeerError, RawResult, Reply, ServerConfig, ServerEvent,
    ServerSettings,
};
use mcp_exact_transport::http::server::{
    HttpListener, HttpServerOptions, HttpService, ListenOptions,
};
use mcp_exact_transport::{RequestContext, ServerHandle};

/// Returns the configuration that all these servers share.
fn settings() -> anyhow::Result<Arc<ServerSettings>> {
    let mut config = ServerConfig::new(Identity::new("echo", "1"));
    config.capabilities = r#"{"tools":{}}"#.parse()?;
    Ok(config.build()?)
}

/// Replies to each request that the driver delivers.
fn handle(server: &ServerHandle, event: ServerEvent<RequestContext>) {
    if let ServerEvent::Request(request) = event {
        let reply = call(&request).unwrap_or_else(Reply::Error);
        let _ = server.reply(request.key, reply);
    }
}

/// Returns the reply to a request: the tool list, the result of a call, or an error.
fn call(request: &IncomingRequest<RequestContext>) -> Result<Reply, PeerError> {
    match request.method() {
        "tools/call" => {}
        "tools/list" => return list(),
        other => return Err(PeerError::method_not_found(other)),
    }
    let arguments = request.param("arguments");
    let arguments = arguments.and_then(|arguments| arguments.object());
    let text = arguments.and_then(|arguments| arguments.find("text"));
    let text = text.ok_or_else(|| PeerError::invalid_params("`text` is missing"))?;
    let text = text.text();
    result(&format!(
        r#"{{"content":[{{"type":"text","text":{text}}}]}}"#
    ))
}

/// Returns the list with the tool `echo`, for gateways that list the tools before a call.
fn list() -> Result<Reply, PeerError> {
    result(r#"{"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#)
}

/// Returns a reply with the result that the JSON text contains.
fn result(text: &str) -> Result<Reply, PeerError> {
    let result: Result<JsonObject, _> = text.parse();
    let result = result.map_err(|error| PeerError::internal(error.to_string()))?;
    Ok(Reply::Result(RawResult::from(result)))
}

/// Serves stdio with the blocking driver.
pub fn blocking() -> anyhow::Result<()> {
    let served = mcp_exact_transport::serve_blocking(settings()?, Arc::new(handle));
    served.map_err(|error| anyhow!(error))
}

/// Serves stdio with the Tokio driver.
pub async fn tokio() -> anyhow::Result<()> {
    mcp_exact_transport::serve_stdio(settings()?, Arc::new(handle)).await?;
    Ok(())
}

/// Serves HTTP on a free port.
pub async fn http() -> anyhow::Result<()> {
    let options = HttpServerOptions {
        path: Some("/mcp".to_owned()),
        sessions: 20_000,
        ..HttpServerOptions::default()
    };
    let listen = ListenOptions {
        connections: 20_000,
        ..ListenOptions::default()
    };
    let service = HttpService::new(settings()?, Arc::new(handle), options);
    let listener = HttpListener::bind("127.0.0.1:0").await?.options(listen);
    super::announce(listener.local_addr()?)?;
    listener.serve(service, std::future::pending()).await?;
    Ok(())
}
