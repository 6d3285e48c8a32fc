//! Tasks: handles that a server returns instead of the result of a call (2025-11-25, `basic/utilities/tasks`, and the
//! extension `io.modelcontextprotocol/tasks` of 2026-07-28).
//!
//! A server cannot distinguish the clients of the bridge, so the bridge decides which client a task belongs to: it has
//! a table of the tasks of clients with sessions, and seals the task ids of clients without sessions. In front of many
//! servers, ids start with the name of their server.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use mcp_exact_revisions::{Lifecycle, method};
use mcp_exact_session::{
    Extension, Filter, IncomingRequest, Json, JsonObject, PeerError, Principal, Revision,
};
use mcp_exact_transport::{RequestContext, ServerHandle};
use parking_lot::Mutex;

/// Identifier of the extension that adds tasks to 2026-07-28.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// Requests of the extension. Each names a task by its parameter `taskId`.
const EXTENSION_REQUESTS: [&str; 3] = [
    method::TASKS_GET,
    method::TASKS_UPDATE,
    method::TASKS_CANCEL,
];

/// Requests of 2025-11-25 that name a task by their parameter `taskId`.
const SESSION_REQUESTS: [&str; 3] = [
    method::TASKS_GET,
    method::TASKS_RESULT,
    method::TASKS_CANCEL,
];

/// Notification of the status of a task (2025-11-25).
pub(crate) const STATUS: &str = method::NOTIFICATIONS_TASKS_STATUS;

/// Notification of the status of a task to a subscription (extension).
pub(crate) const EXTENSION_STATUS: &str = method::NOTIFICATIONS_TASKS;

/// Member of the filter of `subscriptions/listen` with the ids of the tasks whose status the client wants to receive
/// (extension).
pub(crate) const FILTER: &str = "taskIds";

/// Member of `_meta` that names the task that a message belongs to.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Maximum number of tasks of one owner; the oldest tasks are removed first.
const MAX_TASKS_OF_OWNER: usize = 1_000;

/// Maximum number of tasks of all owners.
pub(crate) const MAX_TASKS: usize = 100_000;

/// Returns the extension with its methods, for the settings of endpoints.
pub(crate) fn extension() -> Extension {
    let mut extension = Extension::new(EXTENSION);
    extension.requests = EXTENSION_REQUESTS.map(str::to_owned).to_vec();
    extension.name_param = Some("taskId".to_owned());
    extension.notifications = vec![EXTENSION_STATUS.to_owned()];
    extension.result_types = vec!["task".to_owned()];
    extension.filter_members = vec![FILTER.to_owned()];
    extension
}

/// Returns true if capabilities declare the extension.
pub(crate) fn declares_extension(capabilities: &JsonObject) -> bool {
    let extensions = capabilities.view().find("extensions");
    let extensions = extensions.and_then(|extensions| extensions.object());
    extensions.is_some_and(|extensions| extensions.find(EXTENSION).is_some())
}

/// Returns capabilities that declare the extension alone.
pub(crate) fn extension_capability() -> JsonObject {
    let declared = JsonObject::from_iter([(EXTENSION, JsonObject::new())]);
    JsonObject::from_iter([("extensions", declared)])
}

/// Returns true if tasks are a part of the revision itself.
pub(crate) fn has_tasks(revision: Revision) -> bool {
    let spec = mcp_exact_revisions::find(revision.as_str());
    spec.is_some_and(mcp_exact_revisions::RevisionSpec::has_tasks)
}

/// Returns true if capabilities of 2025-11-25 declare tasks for calls of tools.
pub(crate) fn are_declared_for_calls(capabilities: &JsonObject) -> bool {
    is_declared(capabilities, &["tasks", "requests", "tools", "call"])
}

/// Returns true if capabilities of 2025-11-25 declare the list of tasks.
pub(crate) fn is_list_declared(capabilities: &JsonObject) -> bool {
    is_declared(capabilities, &["tasks", "list"])
}

/// Returns true if capabilities contain nested objects with the names of `path`.
fn is_declared(capabilities: &JsonObject, path: &[&str]) -> bool {
    let mut object = capabilities.view();
    path.iter().all(|name| {
        let inner = object.find(name).and_then(|inner| inner.object());
        inner.is_some_and(|inner| {
            object = inner;
            true
        })
    })
}

/// Returns true if a request of a client without a session names a task.
pub(crate) fn is_extension_request(request: &IncomingRequest<RequestContext>) -> bool {
    request.spec().lifecycle() == Lifecycle::Discover
        && EXTENSION_REQUESTS.contains(&request.method())
}

/// Returns true if a request of a client with a session names a task.
pub(crate) fn is_session_request(revision: Revision, method: &str) -> bool {
    has_tasks(revision) && SESSION_REQUESTS.contains(&method)
}

/// Returns the ids of the tasks in the filter of a subscription.
pub(crate) fn ids_of_filter(filter: &Filter) -> Vec<String> {
    let ids = filter.extension_members.get(FILTER);
    ids.and_then(|ids| ids.decode_as().ok()).unwrap_or_default()
}

/// Removes the tasks that are not in `known` from a filter.
pub(crate) fn with_known_ids(mut filter: Filter, known: &BTreeSet<String>) -> Filter {
    if filter.extension_members.view().find(FILTER).is_some() {
        let mut ids = ids_of_filter(&filter);
        ids.retain(|id| known.contains(id));
        filter
            .extension_members
            .insert(FILTER, Json::from_encode(&ids));
    }
    filter
}

/// Returns the error for a task that does not exist, or that belongs to another client.
pub(crate) fn unknown_task() -> PeerError {
    PeerError::invalid_params("Task not found")
}

/// Returns the member `taskId` of params, or of a task.
pub(crate) fn id_of(task: &JsonObject) -> Option<String> {
    Some(task.view().find("taskId")?.as_str()?.into_owned())
}

/// Returns the id of the task in a result that creates a task (2025-11-25).
pub(crate) fn created_id(result: &JsonObject) -> Option<String> {
    id_of(&member(result, "task")?)
}

/// Replaces the `taskId` of an object.
pub(crate) fn with_id(mut task: JsonObject, id: &str) -> JsonObject {
    task.insert("taskId", Json::string(id));
    task
}

/// Removes the tasks that `is_kept` rejects from a list; a list that keeps all tasks is unchanged.
pub(crate) fn filter_list(mut result: JsonObject, is_kept: impl Fn(&str) -> bool) -> JsonObject {
    let listed = result.view().find("tasks");
    let listed = listed.and_then(|tasks| tasks.decode_as::<Vec<JsonObject>>().ok());
    let listed = listed.unwrap_or_default();
    let is_kept = |task: &JsonObject| id_of(task).is_some_and(|id| is_kept(&id));
    if !listed.iter().all(is_kept) {
        let kept: Vec<JsonObject> = listed.into_iter().filter(is_kept).collect();
        result.insert("tasks", Json::from_encode(&kept));
    }
    result
}

/// Replaces task ids in params or in a result, in every member that can contain them. `rename` returns `None` for an id
/// that does not change.
pub(crate) fn rename_ids(
    mut object: JsonObject,
    rename: impl Fn(&str) -> Option<String>,
) -> JsonObject {
    if !object.text().contains("taskId") {
        return object;
    }
    let renamed = |task: JsonObject| match id_of(&task).and_then(|id| rename(&id)) {
        Some(id) => with_id(task, &id),
        None => task,
    };
    object = renamed(object);
    if let Some(created) = member(&object, "task") {
        object.insert("task", renamed(created));
    }
    let listed = object.view().find("tasks");
    let listed = listed.and_then(|tasks| tasks.decode_as::<Vec<JsonObject>>().ok());
    if let Some(listed) = listed {
        let listed: Vec<JsonObject> = listed.into_iter().map(renamed).collect();
        object.insert("tasks", Json::from_encode(&listed));
    }
    if let Some(mut meta) = member(&object, "_meta")
        && let Some(related) = member(&meta, RELATED_TASK)
    {
        meta.insert(RELATED_TASK, renamed(related));
        object.insert("_meta", meta);
    }
    object
}

/// Returns the member with this name if it is an object.
fn member(object: &JsonObject, name: &str) -> Option<JsonObject> {
    Some(object.view().find(name)?.object()?.to_object())
}

/// Owner of tasks of 2025-11-25: the principal of a session, or the session itself if it has no principal.
///
/// "receivers MUST bind tasks to said context" (2025-11-25, `basic/utilities/tasks`, "Task Isolation and Access Control").
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum TaskOwner {
    /// Name of the principal.
    Principal(String),
    /// Number of the endpoint that serves the client.
    Session(usize),
}

impl TaskOwner {
    pub(crate) fn new(principal: Option<&Principal>, client: &ServerHandle) -> Self {
        match principal {
            Some(Principal(name)) => Self::Principal(name.clone()),
            None => Self::Session(client.number()),
        }
    }
}

/// Tasks that one server has created for clients with sessions.
#[derive(Debug, Default)]
pub(crate) struct TaskTable(Mutex<TasksByOwner>);

/// Tasks of all owners.
#[derive(Debug, Default)]
struct TasksByOwner {
    /// Tasks of each owner, the oldest first.
    all: HashMap<TaskOwner, VecDeque<OwnedTask>>,
    /// Number of tasks of all owners.
    count: usize,
}

/// Task of one owner.
#[derive(Debug)]
struct OwnedTask {
    /// The server's id of the task.
    id: String,
    /// Tool whose call has become the task.
    tool: Arc<str>,
}

impl TaskTable {
    /// Records the task that a server has created for the call of a tool.
    pub(crate) fn add(&self, owner: TaskOwner, id: String, tool: &str) {
        let mut tasks = self.0.lock();
        if tasks.count >= MAX_TASKS {
            tasks.forget_oldest();
        }
        let of_owner = tasks.all.entry(owner).or_default();
        let before = of_owner.len();
        of_owner.retain(|task| task.id != id);
        if of_owner.len() >= MAX_TASKS_OF_OWNER {
            of_owner.pop_front();
        }
        let tool = tool.into();
        of_owner.push_back(OwnedTask { id, tool });
        let after = of_owner.len();
        tasks.count = tasks.count + after - before;
    }

    /// Returns the tool whose call has become a task; `None` if the owner has no such task.
    pub(crate) fn tool_of(&self, owner: &TaskOwner, id: &str) -> Option<Arc<str>> {
        let tasks = self.0.lock();
        let mut of_owner = tasks.all.get(owner)?.iter();
        let task = of_owner.find(|task| task.id == id)?;
        Some(Arc::clone(&task.tool))
    }

    /// Forgets the tasks of an owner.
    pub(crate) fn forget(&self, owner: &TaskOwner) {
        let mut tasks = self.0.lock();
        let forgotten = tasks.all.remove(owner);
        tasks.count -= forgotten.map_or(0, |forgotten| forgotten.len());
    }

    /// Forgets all tasks.
    pub(crate) fn clear(&self) {
        *self.0.lock() = TasksByOwner::default();
    }
}

impl TasksByOwner {
    /// Removes the oldest task of the owner with the most tasks.
    fn forget_oldest(&mut self) {
        let largest = self.all.values_mut().max_by_key(|tasks| tasks.len());
        if largest.and_then(VecDeque::pop_front).is_some() {
            self.count -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> JsonObject {
        text.parse().expect(text)
    }

    /// Task ids are replaced in every member that can contain them, and in no other member.
    #[test]
    fn task_ids_are_replaced_everywhere() {
        let rename = |id: &str| (id == "a").then(|| "files__a".to_owned());
        for (before, after) in [
            (
                r#"{"x":1.0,"taskId":"a"}"#,
                r#"{"x":1.0,"taskId":"files__a"}"#,
            ),
            (
                r#"{"task":{"taskId":"a"}}"#,
                r#"{"task":{"taskId":"files__a"}}"#,
            ),
            (
                r#"{"tasks":[{"taskId":"a"},{"taskId":"b"}]}"#,
                r#"{"tasks":[{"taskId":"files__a"},{"taskId":"b"}]}"#,
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"a"},"y":1}}"#,
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"files__a"},"y":1}}"#,
            ),
            (
                r#"{"task":{"ttl":1},"name":"a"}"#,
                r#"{"task":{"ttl":1},"name":"a"}"#,
            ),
        ] {
            assert_eq!(rename_ids(object(before), rename).text(), after);
        }
    }

    /// A list whose tasks are all kept is relayed byte for byte.
    #[test]
    fn list_of_own_tasks_is_unchanged() {
        let list = r#"{"tasks": [ {"taskId":"a","x":1.0} ,{"taskId":"b"}]}"#;
        assert_eq!(filter_list(object(list), |_| true).text(), list);
        let filtered = filter_list(object(list), |id| id == "a");
        assert_eq!(filtered.text(), r#"{"tasks": [{"taskId":"a","x":1.0}]}"#);
    }

    /// A task is known only to the owner that has created it, even if ids are equal.
    #[test]
    fn tasks_belong_to_one_owner() {
        let table = TaskTable::default();
        let owner = |name: &str| TaskOwner::Principal(name.to_owned());
        table.add(owner("red"), "1".to_owned(), "slow");
        table.add(TaskOwner::Session(1), "1".to_owned(), "other");
        assert_eq!(table.tool_of(&owner("red"), "1").as_deref(), Some("slow"));
        assert_eq!(table.tool_of(&owner("blue"), "1"), None);
        assert_eq!(table.tool_of(&TaskOwner::Session(2), "1"), None);
        table.forget(&owner("red"));
        assert_eq!(table.tool_of(&owner("red"), "1"), None);
        assert!(table.tool_of(&TaskOwner::Session(1), "1").is_some());
    }

    /// The number of stored tasks has a maximum per owner and in total; the oldest tasks are removed.
    #[test]
    fn stored_tasks_are_limited() {
        let table = TaskTable::default();
        for number in 0..MAX_TASKS_OF_OWNER + 10 {
            table.add(TaskOwner::Session(0), number.to_string(), "slow");
        }
        assert_eq!(table.0.lock().count, MAX_TASKS_OF_OWNER);
        assert_eq!(table.tool_of(&TaskOwner::Session(0), "9"), None);
        assert!(table.tool_of(&TaskOwner::Session(0), "10").is_some());
        for session in 0..MAX_TASKS {
            table.add(TaskOwner::Session(session), "a".to_owned(), "slow");
        }
        assert!(table.0.lock().count <= MAX_TASKS);
    }
}
