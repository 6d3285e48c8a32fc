//! Handler that answers every call immediately, some with events before the result.

use mcp_exact_session::{Progress, RawResult, ServerEvent};
use mcp_exact_tests_transport::echo;
use mcp_exact_transport::{RequestContext, ServerHandle};
use serde_json::json;

/// Answers every call; for the tool `events`, sends ten progress notifications first.
pub fn handle(server: &ServerHandle, event: ServerEvent<RequestContext>) {
    let ServerEvent::Request(request) = event else {
        return;
    };
    let params = request
        .params()
        .map(ToString::to_string)
        .unwrap_or_default();
    if params.contains("\"events\"") {
        for step in 1..=10 {
            let _ = server.progress(request.key, &Progress::new(f64::from(step)));
        }
    }
    let result = echo::object(json!({ "content": [] }));
    let _ = server.reply(request.key, RawResult::from(result));
}
