//! Tasks of clients with sessions (2025-11-25, `basic/utilities/tasks`): the bridge answers requests about the tasks of
//! other clients as if these tasks did not exist.
//!
//! A server may also send requests about the tasks that the client has created for earlier requests of this server.

use mcp_exact_revisions::{MethodId, method};
use mcp_exact_session::{
    IncomingRequest, InputRequest, JsonObject, PeerError, Principal, RawResult, Revision,
};
use mcp_exact_transport::RequestContext;

use super::Session;
use crate::around::target::missing_member;
use crate::servers::connection::Connection;
use crate::servers::tasks::{self, TaskOwner};

/// Maximum number of tasks that a client has created for one server; the oldest tasks are removed first.
const MAX_CLIENT_TASKS: usize = 1_000;

impl Session {
    /// Returns true if messages about tasks are relayed: client and server have negotiated the same revision, this
    /// revision defines tasks, and sessions do not share the connection.
    pub(super) fn relays_tasks(&self, connection: &Connection) -> bool {
        self.relays_tasks_of(connection.info.revision)
    }

    /// Returns true if messages about tasks can be relayed according to the cached profile of the server.
    pub(super) fn may_relay_tasks(&self) -> bool {
        let profile = self.backend.cached_profile();
        profile.is_some_and(|known| self.relays_tasks_of(known.info.revision))
    }

    fn relays_tasks_of(&self, server: Revision) -> bool {
        server == self.info.revision && tasks::has_tasks(server) && !self.backend.is_shared()
    }

    /// Returns the owner of the tasks that a request of a principal creates.
    fn task_owner(&self, principal: Option<&Principal>) -> TaskOwner {
        TaskOwner::new(principal, &self.client)
    }

    /// Returns true if the server has created the task that a request names, for the same owner.
    pub(crate) fn has_task(&self, request: &IncomingRequest<RequestContext>) -> bool {
        self.may_relay_tasks() && self.own_task(request).is_ok()
    }

    /// Returns the server's id of the task that a request names; returns an error if the task does not belong to the
    /// client.
    fn own_task(&self, request: &IncomingRequest<RequestContext>) -> Result<String, PeerError> {
        let id = request.params().and_then(tasks::id_of);
        let id = id.ok_or_else(|| missing_member("taskId"))?;
        let id = self.original_id(&id).ok_or_else(tasks::unknown_task)?;
        let principal = request.context().principal.as_ref();
        if !self.is_own_task(principal, &id) {
            return Err(tasks::unknown_task());
        }
        Ok(id)
    }

    /// Returns true if a task belongs to the client, and the rules show the tool of the task to the client.
    fn is_own_task(&self, principal: Option<&Principal>, id: &str) -> bool {
        let tool = self.backend.tasks.tool_of(&self.task_owner(principal), id);
        tool.is_some_and(|tool| self.backend.may_have_tasks_of(principal, &tool))
    }

    /// Returns the server's id of a task; `None` if the task cannot belong to the server.
    fn original_id(&self, id: &str) -> Option<String> {
        if !self.uris.is_of_one() {
            return Some(id.to_owned());
        }
        let rest = id.strip_prefix(&self.backend.name)?;
        Some(rest.strip_prefix("__")?.to_owned())
    }

    /// Returns the id for clients of a task of the server, prefixed with the name of the server.
    fn id_for_client(&self, id: &str) -> String {
        format!("{}__{id}", self.backend.name)
    }

    /// Returns the params of a request in which the server's task ids replace the ids for the client.
    pub(super) fn task_params(
        &self,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Option<JsonObject>, PeerError> {
        let params = request.params().cloned();
        if tasks::is_session_request(request.revision(), request.method()) {
            let id = self.own_task(request)?;
            return Ok(params.map(|params| tasks::with_id(params, &id)));
        }
        Ok(params.map(|params| self.with_original_ids(params)))
    }

    /// Records the task that a result creates, removes the tasks of other clients from a list, and replaces the
    /// server's task ids by the ids for the client.
    pub(super) fn task_result(
        &self,
        request: &IncomingRequest<RequestContext>,
        result: RawResult,
    ) -> RawResult {
        let principal = request.context().principal.as_ref();
        let method = request.method_id();
        let creates = method == MethodId::ToolsCall && request.param("task").is_some();
        if !creates && method != MethodId::TasksList && !self.uris.is_of_one() {
            return result;
        }
        let mut object = result.into_object();
        if creates && let Some(id) = tasks::created_id(&object) {
            let tool = request.param("name").and_then(|name| name.as_str());
            let (owner, tool) = (self.task_owner(principal), tool.unwrap_or_default());
            self.backend.tasks.add(owner, id, &tool);
        }
        if method == MethodId::TasksList {
            object = tasks::filter_list(object, |id| self.is_own_task(principal, id));
        }
        self.with_client_ids(object, principal).into()
    }

    /// Replaces the server's ids of the client's tasks by the ids for the client.
    fn with_client_ids(&self, object: JsonObject, principal: Option<&Principal>) -> JsonObject {
        if !self.uris.is_of_one() {
            return object;
        }
        tasks::rename_ids(object, |id| {
            let is_own = self.is_own_task(principal, id);
            is_own.then(|| self.id_for_client(id))
        })
    }

    /// Replaces the ids for the client by the server's ids.
    fn with_original_ids(&self, object: JsonObject) -> JsonObject {
        if !self.uris.is_of_one() {
            return object;
        }
        tasks::rename_ids(object, |id| self.original_id(id))
    }

    /// Returns the params of a notification of the server for the client; `None` if the notification is about a task that is
    /// not the client's.
    pub(super) fn task_notification(
        &self,
        connection: &Connection,
        method: &str,
        params: Option<JsonObject>,
    ) -> Option<Option<JsonObject>> {
        if !self.relays_tasks(connection) {
            return Some(params);
        }
        let principal = self.state.lock().principal.clone();
        let principal = principal.as_ref();
        if method == tasks::STATUS {
            let id = params.as_ref().and_then(tasks::id_of);
            id.filter(|id| self.is_own_task(principal, id))?;
        }
        Some(params.map(|params| self.with_client_ids(params, principal)))
    }

    /// Returns true if a notification of the client may be sent to the server. The status of a task is sent only to the
    /// server whose request has become the task.
    pub(super) fn may_notify(&self, method: &str, params: Option<&JsonObject>) -> bool {
        let id = || params.and_then(tasks::id_of);
        method != tasks::STATUS
            || id().is_some_and(|id| self.state.lock().client_tasks.contains(&id))
    }

    /// Converts an input request of the server for the client: replaces the server's task ids by the ids for the
    /// client.
    ///
    /// # Errors
    /// Returns an error if the client has not created the task for this server.
    pub(super) fn task_input_request(
        &self,
        connection: &Connection,
        mut request: InputRequest,
    ) -> Result<InputRequest, PeerError> {
        if !self.relays_tasks(connection) {
            return Ok(request);
        }
        if tasks::is_session_request(self.info.revision, &request.method) {
            let id = request.params.as_ref().and_then(tasks::id_of);
            let is_known = |id: &String| self.state.lock().client_tasks.contains(id);
            id.filter(is_known).ok_or_else(tasks::unknown_task)?;
            return Ok(request);
        }
        let principal = self.state.lock().principal.clone();
        let params = request.params.take();
        request.params = params.map(|params| self.with_client_ids(params, principal.as_ref()));
        Ok(request)
    }

    /// Records the task that a response of the client creates, removes the tasks for other servers from a list, and
    /// replaces task ids by the ids of the server.
    pub(super) fn task_answer(
        &self,
        connection: &Connection,
        request: &InputRequest,
        mut answer: JsonObject,
    ) -> JsonObject {
        if !self.relays_tasks(connection) {
            return answer;
        }
        let params = request.params.as_ref();
        if params.is_some_and(|params| params.view().find("task").is_some())
            && let Some(id) = tasks::created_id(&answer)
        {
            let known = &mut self.state.lock().client_tasks;
            if known.len() >= MAX_CLIENT_TASKS {
                known.remove(0);
            }
            known.push(id);
        }
        if request.method == method::TASKS_LIST {
            let state = self.state.lock();
            answer =
                tasks::filter_list(answer, |id| state.client_tasks.iter().any(|own| own == id));
        }
        self.with_original_ids(answer)
    }

    /// Forgets the tasks of a session without a principal, because no other session can access these tasks.
    pub(super) fn forget_tasks(&self) {
        self.backend.tasks.forget(&self.task_owner(None));
    }
}
