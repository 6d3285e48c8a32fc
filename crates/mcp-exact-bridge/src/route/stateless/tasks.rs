//! Requests and notifications about tasks of clients without sessions (extension `io.modelcontextprotocol/tasks`).
//!
//! Task ids are sealed for the principal that has made the call, so that they are valid in every process with the same
//! keys.

use std::collections::BTreeMap;

use mcp_exact_session::{
    Filter, IncomingRequest, JsonObject, Lifecycle, Outcome, PeerError, Principal, Reply,
};
use mcp_exact_transport::{RequestContext, ServerHandle};

use super::input::{pass_input_requests, pass_input_responses};
use super::sealing::OpenedTask;
use super::{Stateless, options_of};
use crate::around::hooks::MessageHooks;
use crate::around::limits::Holder;
use crate::around::target::missing_member;
use crate::route::relay;
use crate::servers::errors::Sending;
use crate::servers::tasks;

impl Stateless {
    /// Returns true if the server has created the task that a request names, for the same principal.
    pub(crate) fn has_task(&self, request: &IncomingRequest<RequestContext>) -> bool {
        let id = request.params().and_then(tasks::id_of);
        let principal = request.context().principal.as_ref();
        id.is_some_and(|id| self.open_task(principal, &id).is_some())
    }

    /// Returns the server's id of a task by the id that a principal was given; `None` if there is no such task, or if
    /// the rules hide its tool.
    fn open_task(&self, principal: Option<&Principal>, id: &str) -> Option<String> {
        let name = principal.map(|Principal(name)| name.as_str());
        let binding = self.binding(name).ok()?;
        let OpenedTask { id, tool } = binding.unbind_task(id)?;
        let is_shown = |tool: String| self.backend.may_have_tasks_of(principal, &tool);
        tool.is_none_or(is_shown).then_some(id)
    }

    /// Relays a request that names a task.
    pub(super) async fn relay_task_request(
        &self,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        let (owner, holder) = (self.owner(request)?, Holder::of(request));
        if self.backend.profile().await?.negotiation.lifecycle != Lifecycle::Discover {
            return Err(PeerError::method_not_found(request.method()));
        }
        let given = request.params().and_then(tasks::id_of);
        let given = given.ok_or_else(|| missing_member("taskId"))?;
        let id = self.open_task(request.context().principal.as_ref(), &given);
        let id = id.ok_or_else(tasks::unknown_task)?;
        let messages = self.messages(request);
        let params = task_params(request, &id, &messages)?;
        let request = request.with_call(request.method(), Some(params));
        let mut sending = Sending::new();
        loop {
            let shared = self.connections.shared_connection(&owner, &holder).await?;
            let sent = self.call(&request, &shared.connection);
            let options = options_of(&request, &shared.connection);
            let outcome = self.outcome(&sent, client, &shared.calls, options).await;
            return match sending.answered(outcome) {
                None => continue,
                Some(Ok(Outcome::Result(result))) => {
                    let rename = |other: &str| (other == id).then(|| given.clone());
                    let task = tasks::rename_ids(result.into_object(), rename);
                    let task = pass_task_input_requests(task, &messages)?;
                    Ok(Reply::Result(task.into()))
                }
                Some(outcome) => sent.reply(outcome?),
            };
        }
    }

    /// Returns the tasks of a subscription that belong to its principal: the ids for the client, by the ids of the
    /// server.
    pub(crate) fn tasks_of_filter(
        &self,
        filter: &Filter,
        principal: Option<&Principal>,
    ) -> BTreeMap<String, String> {
        let has_tasks = self.backend.cached_profile().is_some_and(|known| {
            known.negotiation.lifecycle == Lifecycle::Discover
                && tasks::declares_extension(&known.info.capabilities)
        });
        let wanted = tasks::ids_of_filter(filter).into_iter();
        let opened = wanted.filter_map(|given| {
            let id = self.open_task(principal, &given)?;
            Some((id, given))
        });
        opened.filter(|_| has_tasks).collect()
    }
}

/// Returns the params of a request with the server's id of the task, and passes the client's input responses to the
/// hooks.
fn task_params(
    request: &IncomingRequest<RequestContext>,
    id: &str,
    messages: &MessageHooks,
) -> Result<JsonObject, PeerError> {
    let mut params = tasks::with_id(request.params().cloned().unwrap_or_default(), id);
    let responses = params.view().find("inputResponses");
    let responses = responses.and_then(|responses| Some(responses.object()?.to_object()));
    if let Some(responses) = responses {
        let responses = pass_input_responses(responses, messages)?;
        params.insert("inputResponses", responses);
    }
    Ok(params)
}

/// Passes the input requests of a task to the hooks.
fn pass_task_input_requests(
    mut task: JsonObject,
    messages: &MessageHooks,
) -> Result<JsonObject, PeerError> {
    let asks = task.view().find("inputRequests");
    let asks = asks.and_then(|asks| Some(asks.object()?.to_object()));
    if let Some(asks) = asks.filter(|_| !messages.is_empty()) {
        let asks = pass_input_requests(relay::input_requests(&asks), messages)?;
        task.insert("inputRequests", asks);
    }
    Ok(task)
}
