//! Serves an echo tool on standard input and output, written with the types of 2026-07-28; clients of every revision can call it.

use std::sync::Arc;

use mcp_2026_07_28::{
    CallToolRequestParams, CallToolResult, ClientRequest, ContentBlock, ListToolsResult, Tool,
    V2026_07_28,
};
use mcp_exact_session::{
    ConvertedValue, Identity, IncomingRequest, LossPolicy, PeerError, Reply, ServerConfig,
    ServerEvent,
};
use mcp_exact_transport::{RequestContext, ServerHandle, serve_blocking};

/// Error of the program.
type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut config = ServerConfig::new(Identity::new("echo", "1"));
    config.capabilities = r#"{"tools":{}}"#.parse()?;
    Ok(serve_blocking(config.build()?, Arc::new(handle))?)
}

/// Replies to each request that the driver delivers.
fn handle(server: &ServerHandle, event: ServerEvent<RequestContext>) {
    if let ServerEvent::Request(request) = event {
        let reply = answer(&request).unwrap_or_else(Reply::Error);
        let _ = server.reply(request.key, reply);
    }
}

/// Returns the reply to a request: the tool list, the result of a call, or an error.
fn answer(request: &IncomingRequest<RequestContext>) -> Result<Reply, PeerError> {
    let home = request.typed_as::<V2026_07_28>(LossPolicy::Report)?;
    let reply = match home.value {
        ClientRequest::ListTools(_) => {
            request.reply_as::<V2026_07_28>(&tools()?, LossPolicy::Report)
        }
        ClientRequest::CallTool(call) => {
            request.reply_as::<V2026_07_28>(&echo(&call.params)?, LossPolicy::Report)
        }
        _ => return Err(PeerError::method_not_found(request.method())),
    };
    reply.map(|ConvertedValue { value, .. }| value)
}

/// Returns the result of `tools/list`, with the tool `echo`.
fn tools() -> Result<ListToolsResult, PeerError> {
    let schema = r#"{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
    let schema: mcp_2026_07_28::ToolInputSchema =
        mcp_2026_07_28::from_str(schema).map_err(|error| PeerError::internal(error.to_string()))?;
    Ok(ListToolsResult::new(
        vec![Tool::new("echo", schema)],
        0_i64,
        "private",
    ))
}

/// Returns the result of a call, whose content is the argument `text`.
fn echo(params: &CallToolRequestParams) -> Result<CallToolResult, PeerError> {
    let text = params
        .arguments
        .as_ref()
        .and_then(|arguments| arguments.get("text"));
    let text = text.and_then(|text| mcp_2026_07_28::from_str::<String>(text.text()).ok());
    let text = text.ok_or_else(|| PeerError::invalid_params("`text` is missing"))?;
    Ok(CallToolResult::new(vec![ContentBlock::text(text)]))
}
