//! Calls that the server answers with a task (extension `io.modelcontextprotocol/tasks`, from 2026-07-28 on).
//!
//! The client polls the status at the interval that the server suggests, answers the input requests of the task, and
//! returns the result of the call. Dropping the call cancels its task.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::Client;
use super::error::ClientError;
use super::link::ClientLink;
use crate::params::{object_member, string_member};
use crate::protocol::{ErrorObject, Json, JsonObject, PeerError, method};

/// Minimum and maximum time between two `tasks/get` requests; the interval that the server suggests is clamped to this
/// range.
const POLL_INTERVALS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));

/// Guard that cancels a task if the future that waits for the task is dropped.
struct CancelOnDrop {
    client: Client,
    /// Id of the task; `None` once the task has ended.
    id: Option<String>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let (client, Some(id)) = (self.client.clone(), self.id.take()) else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { cancel_task(&client, &id).await });
        }
    }
}

/// Sends `tasks/cancel`; errors are ignored.
async fn cancel_task(client: &Client, id: &str) {
    let params = JsonObject::from_iter([("taskId", Json::string(id))]);
    if let Err(error) = client.request(method::TASKS_CANCEL, Some(params)).await {
        tracing::debug!(%error, "a task could not be cancelled");
    }
}

impl Client {
    /// Returns a client that shares the connection.
    pub(super) fn for_link(link: &Arc<ClientLink>) -> Self {
        Self(Arc::clone(link))
    }

    /// Returns the result of a call; if `result` is a task, waits for the result of the task.
    pub(super) async fn wait_for_call_end(
        &self,
        result: JsonObject,
    ) -> Result<JsonObject, ClientError> {
        if string_member(&result, "resultType").as_deref() != Some("task") {
            return Ok(result);
        }
        let id = string_member(&result, "taskId");
        let id = id.ok_or_else(|| ClientError::Result("the task has no `taskId`".to_owned()))?;
        let mut guard = CancelOnDrop {
            client: self.clone(),
            id: Some(id.clone()),
        };
        let ended = self.wait_for_task(&id, result).await;
        // The guard cancels a task that the client gives up, such as one whose input request was not answered or whose
        // status did not arrive in time.
        let is_abandoned = matches!(
            ended,
            Err(ClientError::Server(_) | ClientError::Result(_) | ClientError::TimedOut)
        );
        if !is_abandoned {
            guard.id = None;
        }
        ended
    }

    /// Polls the task `id` until it ends, and answers its input requests; `created` is the task as the server created
    /// it.
    async fn wait_for_task(
        &self,
        id: &str,
        created: JsonObject,
    ) -> Result<JsonObject, ClientError> {
        let mut task = created;
        let mut answered = HashSet::new();
        loop {
            match string_member(&task, "status").as_deref() {
                Some("completed") => {
                    let missing = || ClientError::Result("the task has no `result`".to_owned());
                    let result = object_member(&task, "result").ok_or_else(missing)?;
                    return self.link().take_result(method::TOOLS_CALL, result);
                }
                Some("failed") => {
                    let error = task.get("error");
                    let error = error.and_then(|error| error.decode_as::<ErrorObject>().ok());
                    let error = error.map_or_else(
                        || PeerError::internal("the task failed without an error"),
                        PeerError::from,
                    );
                    return Err(ClientError::Server(error));
                }
                Some("cancelled") => return Err(ClientError::TaskCancelled),
                Some("input_required") => self.answer_task_inputs(id, &task, &mut answered).await?,
                _ => {}
            }
            let interval = task.get("pollIntervalMs");
            let interval = interval.and_then(|interval| interval.parse::<u64>().ok());
            let interval = Duration::from_millis(interval.unwrap_or(500));
            tokio::time::sleep(interval.clamp(POLL_INTERVALS.0, POLL_INTERVALS.1)).await;
            let params = JsonObject::from_iter([("taskId", Json::string(id))]);
            task = self.request(method::TASKS_GET, Some(params)).await?;
        }
    }

    /// Answers the input requests of a task whose keys are not in `answered`, and adds their keys ("Clients SHOULD
    /// deduplicate `inputRequests` keys across consecutive polls").
    async fn answer_task_inputs(
        &self,
        id: &str,
        task: &JsonObject,
        answered: &mut HashSet<String>,
    ) -> Result<(), ClientError> {
        let input_requests = object_member(task, "inputRequests").unwrap_or_default();
        let mut names = HashSet::new();
        if !input_requests
            .view()
            .iter()
            .all(|(key, _)| names.insert(key))
        {
            let text = "`inputRequests` holds a name twice";
            return Err(ClientError::Result(text.to_owned()));
        }
        let mut responses = JsonObject::new();
        for (key, input_request) in input_requests.view().iter() {
            if answered.contains(&*key) {
                continue;
            }
            let input_request = input_request
                .object()
                .map(|input_request| input_request.to_object())
                .unwrap_or_default();
            let method = string_member(&input_request, "method").unwrap_or_default();
            let params = object_member(&input_request, "params");
            let answer = self
                .link()
                .answer_server_request(&method, params.as_ref())
                .await;
            responses.insert(&key, answer.map_err(ClientError::Server)?);
            answered.insert(key.into_owned());
        }
        if responses.is_empty() {
            return Ok(());
        }
        let params = JsonObject::from_iter([
            ("taskId", Json::string(id)),
            ("inputResponses", responses.into()),
        ]);
        self.request(method::TASKS_UPDATE, Some(params))
            .await
            .map(drop)
    }
}
