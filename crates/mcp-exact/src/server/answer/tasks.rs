//! `tasks/get`, `tasks/update` and `tasks/cancel`, and the first notifications of a subscription to tasks.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Answer;
use crate::definition::Tool;
use crate::link::{Reply, Request, RequestLink};
use crate::params::{object_member, required_string};
use crate::protocol::{JsonObject, MethodId, PeerError};
use crate::server::Server;
use crate::server::scopes::has_scope;
use crate::server::tasks::TaskLookup;
use crate::server::visibility::ListedDefinition;
use crate::task::{MessageKind, TaskMessage, TaskOrigin, TaskRegistry, TaskStoreError};

impl Server {
    /// Begins to answer a request about a task.
    pub(super) fn begin_task_request(&self, request: Arc<Request>) -> Answer {
        let server = self.clone();
        Answer::begin(Box::pin(async move {
            let reply = match server.0.tasks.clone() {
                Some(tasks) => tasks.answer_task_request(&server, &request).await,
                None => Err(PeerError::method_not_found(request.method())),
            };
            reply.unwrap_or_else(Reply::Error)
        }))
    }

    /// Implements [`send_task_states`](Self::send_task_states) for a server with tasks.
    pub(in crate::server) async fn send_task_states_in_service(
        &self,
        registry: &Arc<TaskRegistry>,
        ids: Vec<String>,
        request: &Request,
        subscription: &RequestLink,
    ) {
        for id in ids {
            let Ok(known) = self.find_task(registry, &id, request).await else {
                continue;
            };
            // Later changes are sent as notifications.
            self.listeners().watch_task(subscription, &id);
            if let TaskLookup::Elsewhere(record) = &known {
                self.exchange_tasks(registry);
                registry.watched().insert(id, (**record).clone());
            }
            subscription.notify_task_status(&detailed_task(registry, &known));
        }
    }

    /// Answers a request about a task.
    pub(in crate::server) async fn answer_task(
        &self,
        registry: &Arc<TaskRegistry>,
        request: &Request,
    ) -> Result<Reply, PeerError> {
        let id = required_string(request.params(), "taskId")?;
        let known = self.find_task(registry, &id, request).await?;
        // What the process of the task has to know.
        let message = match (request.method_id(), known) {
            (MethodId::TasksGet, known) => {
                return Ok(Reply::Result(detailed_task(registry, &known)));
            }
            (MethodId::TasksUpdate, known) => {
                let wrong = || PeerError::invalid_params("`inputResponses` must be an object");
                let responses = request.params();
                let responses = responses.and_then(|all| object_member(all, "inputResponses"));
                let responses = responses.ok_or_else(wrong)?;
                // A process that stood still for a time may have lost the task.
                let is_elsewhere = match known {
                    TaskLookup::Live(live) => {
                        if live.deliver(&responses) {
                            self.save_and_notify(registry, &live).await;
                        }
                        live.is_taken_over()
                    }
                    TaskLookup::Elsewhere(_) => true,
                    TaskLookup::Finished(_) => false,
                };
                is_elsewhere.then_some(MessageKind::Answers(responses))
            }
            (_, TaskLookup::Live(live)) => {
                live.cx().cancel();
                // As above; a message for a task of this process cancels it once more.
                let has_others = registry.store().exchange().is_some();
                has_others.then_some(MessageKind::Cancel)
            }
            (_, TaskLookup::Elsewhere(_)) => Some(MessageKind::Cancel),
            // "tasks/cancel" of a task that has ended changes nothing.
            (_, TaskLookup::Finished(_)) => None,
        };
        if let Some(message) = message {
            let message = TaskMessage::new(&id, message);
            registry.store().send(message).await.map_err(store_error)?;
        }
        Ok(Reply::Result(JsonObject::new()))
    }

    /// Finds a task that the sender of a request may use; resumes the task if an earlier process has left it
    /// unfinished.
    async fn find_task(
        &self,
        registry: &Arc<TaskRegistry>,
        id: &str,
        request: &Request,
    ) -> Result<TaskLookup, PeerError> {
        if !is_task_id(id) {
            return Err(unknown_task());
        }
        if let Some(live) = registry.get(id) {
            self.check_task(live.record().origin(), request)?;
            return Ok(TaskLookup::Live(live));
        }
        let record = registry.store().load(id).await;
        let record = record.map_err(store_error)?;
        let record = record.ok_or_else(unknown_task)?;
        self.check_task(record.origin(), request)?;
        if record.is_finished() {
            Ok(TaskLookup::Finished(Box::new(record)))
        } else if registry.store().take(id).await.map_err(store_error)? {
            Ok(self.resume_task(registry, record).await)
        } else {
            Ok(TaskLookup::Elsewhere(Box::new(record)))
        }
    }

    /// Checks that the sender of a request may use a task: the sender must be the principal of the call, must see the
    /// tool, and must have been granted the scopes of the tool. "Servers MUST perform authentication and authorization
    /// checks on each task-related request" (section "Security Considerations").
    pub(in crate::server) fn check_task(
        &self,
        origin: &TaskOrigin,
        request: &Request,
    ) -> Result<(), PeerError> {
        let principal = request.principal().map(|principal| &*principal.0);
        let catalogue = self.catalogue();
        // Visibility rules do not apply to a tool that was removed since then.
        let tool = catalogue.tool(&origin.tool).map(|entry| &entry.tool);
        let sees = |tool| {
            self.0
                .visibility
                .is_visible(request, ListedDefinition::Tool(tool))
        };
        if origin.principal.as_deref() != principal || !tool.is_none_or(sees) {
            return Err(unknown_task());
        }
        let labels = [origin.scope.as_deref(), tool.and_then(Tool::scope_label)];
        check_scopes(request, labels.into_iter().flatten())
    }
}

/// Returns the error for a store that has failed.
fn store_error(error: TaskStoreError) -> PeerError {
    PeerError::internal(error.to_string())
}

/// Returns the error for an unknown task.
fn unknown_task() -> PeerError {
    let message = "there is no such task: it never existed, has expired or is another caller's";
    PeerError::invalid_params(message)
}

/// Returns the result of `tasks/get`.
fn detailed_task(registry: &TaskRegistry, known: &TaskLookup) -> JsonObject {
    match known {
        TaskLookup::Live(live) => live.detailed_result(registry.poll_interval()),
        TaskLookup::Finished(record) | TaskLookup::Elsewhere(record) => {
            let asked = record.asked().cloned();
            record.detailed_content(registry.poll_interval(), asked)
        }
    }
}

/// Returns true if a string has the form of a task id.
fn is_task_id(id: &str) -> bool {
    id.len() == 32
        && id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Checks that the sender of a request was granted all scopes in `labels`, each of which contains scopes separated by
/// spaces.
///
/// # Errors
/// [`PeerError`] if a scope was not granted.
fn check_scopes<'l>(
    request: &Request,
    labels: impl Iterator<Item = &'l str>,
) -> Result<(), PeerError> {
    let scopes: BTreeSet<&str> = labels.flat_map(str::split_whitespace).collect();
    let scopes = scopes.into_iter().collect::<Vec<_>>().join(" ");
    if has_scope(request, Some(&scopes)) {
        return Ok(());
    }
    Err(PeerError::invalid_params(format!(
        "the tool of the task needs the scopes {scopes:?}; authorize for them and ask again"
    )))
}
