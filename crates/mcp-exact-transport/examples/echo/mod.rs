//! Server with one tool, `echo`, for the examples.
//!
//! The replies are valid in every revision.

use std::sync::Arc;

use mcp_exact_session::{
    Identity, IncomingRequest, Json, JsonObject, PeerError, RawResult, Reply, ServerConfig,
    ServerEvent, ServerSettings,
};
use mcp_exact_transport::{RequestContext, ServerHandle};

/// Returns the configuration of the server: its name, and the capability `tools`.
pub fn settings() -> Result<Arc<ServerSettings>, Box<dyn std::error::Error>> {
    let mut config = ServerConfig::new(Identity::new("echo", "1.0.0"));
    config.capabilities = r#"{"tools":{}}"#.parse()?;
    Ok(config.build()?)
}

/// Replies to requests; other events need no action.
pub fn handle(server: &ServerHandle, event: ServerEvent<RequestContext>) {
    if let ServerEvent::Request(request) = event {
        let reply = reply(&request).unwrap_or_else(Reply::Error);
        // An error says that the request is over already, such as by the end of its session.
        let _ = server.reply(request.key, reply);
    }
}

/// Returns the reply to a request.
fn reply(request: &IncomingRequest<RequestContext>) -> Result<Reply, PeerError> {
    match request.method() {
        "tools/list" => {
            /// Result of `tools/list`.
            const TOOLS: &str = r#"{"tools":[{"name":"echo","description":"Says it again",
                "inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}"#;
            object(TOOLS).map(|list| Reply::Result(RawResult::from(list)))
        }
        "tools/call" => call(request.params()),
        other => Err(PeerError::method_not_found(other)),
    }
}

/// Returns the reply to a tool call.
fn call(params: Option<&JsonObject>) -> Result<Reply, PeerError> {
    let member = |name: &str| params.and_then(|params| params.get(name));
    if member("name") != Some(Json::string("echo")) {
        return Err(PeerError::invalid_params(
            "unknown tool; `tools/list` has those that there are",
        ));
    }
    let arguments = member("arguments").and_then(|arguments| JsonObject::try_from(arguments).ok());
    let text = arguments.and_then(|arguments| arguments.get("text"));
    let text = text.ok_or_else(|| PeerError::invalid_params("`text` is missing"))?;
    let content = JsonObject::from_iter([("type", Json::string("text")), ("text", text)]);
    let content: Json = format!("[{content}]").parse().map_err(internal)?;
    Ok(Reply::Result(RawResult::from(JsonObject::from_iter([(
        "content", content,
    )]))))
}

/// Parses JSON text to an object.
fn object(text: &str) -> Result<JsonObject, PeerError> {
    text.parse().map_err(internal)
}

/// Converts an error to an error response with code -32603.
fn internal(error: impl std::fmt::Display) -> PeerError {
    PeerError::internal(error.to_string())
}
