//! Servers with rmcp and a hand-written handler instead of a router, which is faster.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};

/// Server with the tool `echo`.
#[derive(Clone)]
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let text = arguments.get("text").and_then(|text| text.as_str());
        let missing = || ErrorData::invalid_params(Cow::Borrowed("`text` is missing"), None);
        let text = text.ok_or_else(missing)?;
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// Serves stdio with the standard streams of Tokio.
pub async fn stdio() -> anyhow::Result<()> {
    let service = Echo.serve(rmcp::transport::stdio()).await?;
    service.waiting().await?;
    Ok(())
}

/// Serves stdio with asynchronous pipes instead of the standard streams of Tokio, which use threads.
pub async fn stdio_pipes() -> anyhow::Result<()> {
    let service = Echo.serve(rmcp::transport::io::stdio_pipes()).await?;
    service.waiting().await?;
    Ok(())
}

/// Serves HTTP without sessions and with JSON responses; with sessions, rmcp responds with event streams.
pub async fn http() -> anyhow::Result<()> {
    let mut config = StreamableHttpServerConfig::default();
    config.legacy_session_mode = false;
    config.json_response = true;
    let manager = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(|| Ok(Echo), manager, config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    super::announce(listener.local_addr()?)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let connection = hyper::server::conn::http1::Builder::new();
            let served = connection.serve_connection(TokioIo::new(stream), service);
            let _: Result<(), _> = served.await;
            Ok::<_, Infallible>(())
        });
    }
}
