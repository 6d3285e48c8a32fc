//! The tools `search_tools` and `call_tool`, which clients see instead of a long list.

use std::sync::Arc;

use mcp_exact_revisions::MethodId;
use mcp_exact_session::{IncomingRequest, Json, JsonObject, PeerError, Reply};
use mcp_exact_tool_schema::ToolIndex;
use mcp_exact_transport::{RequestContext, ServerHandle};

use super::lists::{TOOLS, converted};
use crate::around::gate::Gate;
use crate::around::hooks::Call;
use crate::around::metrics::CallTimer;
use crate::around::search::{self, ToolSearch};
use crate::clients::shared_state::SharedState;

impl SharedState {
    /// Returns the call that a call of `call_tool` makes, which is relayed as if the client had sent it; every other request as it
    /// is.
    ///
    /// # Errors
    /// The answer to wrong arguments.
    pub(super) fn called_request(
        &self,
        gate: &Gate,
        request: IncomingRequest<RequestContext>,
    ) -> Result<IncomingRequest<RequestContext>, Result<Reply, PeerError>> {
        let has_search = gate.rules().search.is_some();
        let is_call = has_search && calls(&request, search::CALL);
        let Some(params) = request.params().filter(|_| is_call) else {
            return Ok(request);
        };
        let called = search::called_params(params);
        let params = called.map_err(|error| mistake(&request, self.refuse(&request, error)))?;
        Ok(request.with_call(request.method(), Some(params)))
    }

    /// Answers a call of `search_tools` with the tools that the principal may use; `None` for every other request.
    pub(super) async fn searched(
        self: &Arc<Self>,
        gate: &Gate,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Option<Result<Reply, PeerError>> {
        let search = gate.rules().search.as_ref();
        let search = search.filter(|_| calls(request, search::SEARCH))?;
        let observer = self.options.on_call.clone();
        let observer = observer.map(|observer| (observer, Call::new("", request)));
        let timer = CallTimer::begin(&self.counters, observer, "", request.method());
        let found = self.find_tools(gate, search, client, request).await;
        let reply = found.unwrap_or_else(Reply::Error);
        timer.end(&reply);
        Some(match reply {
            Reply::Error(error) => Err(error),
            reply => Ok(reply),
        })
    }

    async fn find_tools(
        self: &Arc<Self>,
        gate: &Gate,
        search: &ToolSearch,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        let query = match search.query(request.params()) {
            Ok(query) => query,
            Err(error) => return mistake(request, error),
        };
        let within = self.options.list_within;
        let read = self.entries_of(gate, |_| true, TOOLS, client, request, within);
        let (listed, is_complete) = read.await;
        let tools: Vec<JsonObject> = listed.into_iter().flat_map(|list| list.entries).collect();
        let count = tools.len();
        // Servers with thousands of tools would keep others from their turn.
        let finding = tokio::task::spawn_blocking(move || {
            let found = ToolIndex::new(&tools).find(&query.words, query.most);
            let found = found
                .into_iter()
                .map(|place| tools[place].as_json().clone());
            found.collect::<Vec<Json>>()
        });
        let found = finding.await;
        let found = found.map_err(|_| PeerError::internal("the search was not finished"))?;
        let answer = if found.is_empty() && !is_complete {
            format!(
                "No tool has these words among the {count} tools so far: some servers have not answered. Search again."
            )
        } else if found.is_empty() {
            format!("No tool has these words; there are {count} tools. Try other words.")
        } else {
            JsonObject::from_iter([("tools", Json::from_encode(&found))])
                .text()
                .to_owned()
        };
        let content = [
            ("type", Json::string("text")),
            ("text", Json::string(&answer)),
        ];
        let mut content = vec![JsonObject::from_iter(content)];
        if !found.is_empty() && !is_complete {
            let note = "Some servers have not answered: there may be more. Search again.";
            content.push(JsonObject::from_iter([
                ("type", Json::string("text")),
                ("text", Json::string(note)),
            ]));
        }
        let result = JsonObject::from_iter([("content", Json::from_encode(&content))]);
        Ok(Reply::Result(converted(request, result)?.into()))
    }
}

/// Returns the answer to arguments that are wrong: a result that models can read, where the revision has it so (2025-11-25,
/// `server/tools`, "Error Handling"), and the error before.
pub(super) fn mistake(
    request: &IncomingRequest<RequestContext>,
    error: PeerError,
) -> Result<Reply, PeerError> {
    if request.revision().as_str() < "2025-11-25" {
        return Err(error);
    }
    let content = [
        ("type", Json::string("text")),
        ("text", Json::string(error.message())),
    ];
    let content = vec![JsonObject::from_iter(content)];
    let mut result = JsonObject::from_iter([("content", Json::from_encode(&content))]);
    result.insert("isError", true);
    Ok(Reply::Result(converted(request, result)?.into()))
}

/// Returns true if a request calls the tool with this name.
fn calls(request: &IncomingRequest<RequestContext>, tool: &str) -> bool {
    if request.method_id() != MethodId::ToolsCall {
        return false;
    }
    let name = request.param("name").and_then(|name| name.as_str());
    name.is_some_and(|name| name == tool)
}
