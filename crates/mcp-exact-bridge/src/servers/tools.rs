//! Cache of the server's tools: the parameters that clients mirror into headers, which endpoints compare with the arguments
//! of calls (2026-07-28, `basic/transports/streamable-http`, "Custom Headers from Tool Parameters").
//!
//! Besides, which tools may be called twice. Every relayed `tools/list` result updates the cache. For an unknown tool, the bridge compares nothing; the server
//! still compares headers and arguments.

use std::collections::HashMap;
use std::sync::Arc;

use mcp_exact_revisions::{MethodId, method};
use mcp_exact_session::http::{MirroredParam, ToolHeaders, mirrored_params};
use mcp_exact_session::{IncomingRequest, Json, JsonObject, ListCursors, Outcome};
use mcp_exact_transport::RequestContext;
use parking_lot::Mutex;

use crate::around::apps;
use crate::servers::connection::Connection;

/// Maximum number of tools in the cache.
pub(crate) const MAX_TOOLS: usize = 10_000;

/// What the bridge knows of the server's tools, by the name of the tool.
#[derive(Debug, Default)]
pub(crate) struct KnownTools(Mutex<HashMap<String, KnownTool>>);

/// What the bridge knows of a tool.
#[derive(Debug)]
struct KnownTool {
    /// Parameters that are mirrored into headers.
    mirrored: Arc<[MirroredParam]>,
    /// True if the tool has the annotation `readOnlyHint` or `idempotentHint`.
    is_repeatable: bool,
    /// False if the tool is for pages alone.
    is_for_models: bool,
}

impl KnownTools {
    /// Adds the tools of a `tools/list` result.
    pub(crate) fn update(&self, result: &JsonObject) {
        let mut known = self.0.lock();
        // Of two tools with the same name, the first one counts.
        for tool in definitions_of(result).into_iter().rev() {
            let [name, schema] = tool.view().find_each(["name", "inputSchema"]);
            let (Some(name), Some(schema)) = (
                name.and_then(|name| name.as_str()),
                schema.and_then(|schema| schema.object()),
            ) else {
                continue;
            };
            // Clients ignore a tool that violates the rules for mirrored parameters.
            let Ok(mirrored) = mirrored_params(&schema.to_object()) else {
                continue;
            };
            if known.len() < MAX_TOOLS || known.contains_key(&*name) {
                let tool = KnownTool {
                    mirrored: mirrored.into(),
                    is_repeatable: has_repeatable_hint(&tool),
                    is_for_models: apps::is_for_models(&tool),
                };
                known.insert(name.into_owned(), tool);
            }
        }
    }

    /// Returns true if the request calls a tool of a list.
    pub(crate) fn knows(&self, request: &IncomingRequest<RequestContext>) -> bool {
        let name = request
            .param("name")
            .filter(|_| request.method_id() == MethodId::ToolsCall);
        let name = name.and_then(|name| name.as_str());
        name.is_some_and(|name| self.0.lock().contains_key(&*name))
    }

    /// Returns true if the request calls a tool that the server has listed with the annotation `readOnlyHint` or `idempotentHint`.
    pub(crate) fn is_repeatable(&self, request: &IncomingRequest<RequestContext>) -> bool {
        let name = request.param("name").and_then(|name| name.as_str());
        let known = self.0.lock();
        name.is_some_and(|name| known.get(&*name).is_some_and(|tool| tool.is_repeatable))
    }

    /// Returns the name of the tool that a request calls, if the server has listed it as a tool of pages alone (MCP Apps).
    pub(crate) fn called_tool_of_pages(
        &self,
        request: &IncomingRequest<RequestContext>,
    ) -> Option<String> {
        let name = request
            .param("name")
            .filter(|_| request.method_id() == MethodId::ToolsCall)?;
        let name = name.as_str()?;
        let known = self.0.lock();
        let is_of_pages = known.get(&*name).is_some_and(|tool| !tool.is_for_models);
        is_of_pages.then(|| name.into_owned())
    }

    /// Forgets the annotations of all tools until the server lists them again, because it has announced a change.
    pub(crate) fn forget_hints(&self) {
        for tool in self.0.lock().values_mut() {
            tool.is_repeatable = false;
        }
    }

    /// Adds all tools of the server, up to `max_pages` pages.
    pub(crate) async fn list(&self, connection: &Connection, max_pages: usize) {
        read_pages(connection, max_pages, |page| self.update(page)).await;
    }
}

/// Reads the definitions of all tools of a server, up to `max_pages` pages; `None` if it does not list them to the end.
pub(crate) async fn definitions(
    connection: &Connection,
    max_pages: usize,
) -> Option<Vec<JsonObject>> {
    let mut all = Vec::new();
    let add = |page: &JsonObject| {
        // One more shows that there are too many.
        let room = MAX_TOOLS + 1 - all.len();
        all.extend(definitions_of(page).into_iter().take(room));
    };
    let is_complete = read_pages(connection, max_pages, add).await;
    is_complete.then_some(all)
}

/// Returns the definitions in a result of `tools/list`.
pub(crate) fn definitions_of(result: &JsonObject) -> Vec<JsonObject> {
    let tools = result.view().find("tools");
    let tools = tools.and_then(|tools| tools.decode_as::<Vec<Json>>().ok());
    let tools = tools.unwrap_or_default().into_iter();
    tools.filter_map(|tool| tool.try_into().ok()).collect()
}

/// Returns true if a tool has the annotation `readOnlyHint` or `idempotentHint`, so that a second call has no additional effect.
fn has_repeatable_hint(tool: &JsonObject) -> bool {
    let annotations = tool.view().find("annotations");
    let Some(annotations) = annotations.and_then(|all| all.object()) else {
        return false;
    };
    let hints = annotations.find_each(["readOnlyHint", "idempotentHint"]);
    let mut hints = hints.into_iter().flatten();
    hints.any(|hint| hint.text() == "true")
}

/// Requests the pages of the server's list of tools, at most `max_pages`; returns true if the list was read to its end.
async fn read_pages(
    connection: &Connection,
    max_pages: usize,
    mut read: impl FnMut(&JsonObject),
) -> bool {
    if connection.info.capabilities.view().find("tools").is_none() {
        return true;
    }
    let mut cursors = ListCursors::new(max_pages);
    let mut cursor: Option<Json> = None;
    loop {
        let params = cursor.map(|cursor| JsonObject::from_iter([("cursor", cursor)]));
        let listing = connection
            .client
            .request(method::TOOLS_LIST, params, <_>::default(), None);
        let Ok(listing) = listing else {
            return false;
        };
        let Outcome::Result(page) = listing.await else {
            return false;
        };
        read(page.object());
        // Why a list ends is reported when clients read it.
        match cursors.next_cursor(page.object()) {
            Ok(Some(next)) => cursor = Some(next),
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

impl ToolHeaders for KnownTools {
    fn params_of(&self, name: &str) -> Option<Arc<[MirroredParam]>> {
        let known = self.0.lock();
        known.get(name).map(|tool| Arc::clone(&tool.mirrored))
    }
}
