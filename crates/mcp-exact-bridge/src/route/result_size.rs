//! Limit of the size of results, so that one answer of a server does not fill the context of a model.

use mcp_exact_revisions::MethodId;
use mcp_exact_session::{IncomingRequest, Json, JsonObject, PeerError, RawResult};
use mcp_exact_transport::RequestContext;

use crate::route::translate;

/// Methods whose results are limited: what a model reads. Lists have pages.
const LIMITED: [MethodId; 4] = [
    MethodId::ToolsCall,
    MethodId::TasksResult,
    MethodId::PromptsGet,
    MethodId::ResourcesRead,
];

/// Returns a result in the revision of the client, unless it is larger than `most` bytes.
///
/// In place of a larger result of a tool, the model gets an error result that names both sizes, so that it can ask for less.
///
/// # Errors
/// If a larger result is that of a prompt or a resource.
pub(crate) fn limited(
    request: &IncomingRequest<RequestContext>,
    result: RawResult,
    most: usize,
) -> Result<RawResult, PeerError> {
    let size = result.object().text().len();
    let (method, id) = (request.method(), request.method_id());
    if size <= most || !LIMITED.contains(&id) {
        return Ok(result);
    }
    tracing::info!(method, size, most, "a result exceeds `result-bytes`");
    let message = format!(
        "the result has {size} bytes; this gateway forwards at most {most} (`result-bytes`)"
    );
    if !matches!(id, MethodId::ToolsCall | MethodId::TasksResult) {
        return Err(PeerError::internal(message));
    }
    let advice = "Ask for less, such as a narrower query, fewer items or a smaller range.";
    let text = Json::string(&format!("{message}. {advice}"));
    let content = JsonObject::from_iter([("type", Json::string("text")), ("text", text)]);
    let mut error = JsonObject::from_iter([("content", Json::from_encode(&vec![content]))]);
    error.insert("isError", true);
    if let Some(related) = related_task(id, &result) {
        error.insert("_meta", related);
    }
    Ok(translate::from_oldest(method, error, request.revision())?.into())
}

/// Returns the metadata that names the task of a result of `tasks/result` (2025-11-25, `basic/utilities/tasks`, "Related Task
/// Metadata").
fn related_task(method: MethodId, result: &RawResult) -> Option<JsonObject> {
    let meta = result.object().view().find("_meta")?.object()?;
    let name = "io.modelcontextprotocol/related-task";
    let related = meta
        .find(name)
        .filter(|_| method == MethodId::TasksResult)?;
    Some(JsonObject::from_iter([(name, related.to_json())]))
}
