//! Tasks whose handlers run in this process.
//!
//! A live task contains the record, the pending input requests, and the context of the handler. The record is saved
//! whenever it changes.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::call::CallTask;
use super::error::TaskStoreError;
use super::record::{TaskClient, TaskEnd, TaskRecord};
use super::store::TaskStore;
use crate::background::{self, BoxFuture};
use crate::cx::Cx;
use crate::protocol::{InputRequest, Json, JsonObject};
use crate::sync::lock;

/// Delay before a failed save of a task's end is retried.
pub(crate) const SAVE_RETRY_DELAY: Duration = Duration::from_secs(5);

/// Task whose handler runs in this process.
pub(crate) struct LiveTask {
    /// Id of the task.
    id: String,
    /// Context of the call.
    cx: Cx,
    store: Arc<dyn TaskStore>,
    /// Record and pending input requests.
    state: Mutex<LiveState>,
    /// Lock that is held while a record is saved, so that an older record never replaces a newer one.
    save_lock: tokio::sync::Mutex<()>,
}

/// Current record and pending input requests of a task.
struct LiveState {
    /// Latest record.
    record: TaskRecord,
    /// Pending input requests by key.
    input_requests: Vec<(String, InputRequest)>,
    /// Answers that other processes have received before the handler asked for them, as after a takeover.
    early_answers: Vec<JsonObject>,
    /// True once another process has taken over the task.
    is_taken_over: bool,
}

/// Maximum number of answers that are kept until the handler asks for them.
const MAX_EARLY_ANSWERS: usize = 16;

impl LiveTask {
    pub(crate) fn new(record: TaskRecord, cx: &Cx, store: &Arc<dyn TaskStore>) -> Arc<Self> {
        let task = Arc::new(Self {
            id: record.id().to_owned(),
            cx: cx.clone(),
            store: Arc::clone(store),
            state: Mutex::new(LiveState {
                record,
                input_requests: Vec::new(),
                early_answers: Vec::new(),
                is_taken_over: false,
            }),
            save_lock: tokio::sync::Mutex::default(),
        });
        let weak = Arc::downgrade(&task);
        cx.set_task(weak);
        task
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn cx(&self) -> &Cx {
        &self.cx
    }

    /// Locks the record and the pending input requests.
    fn state(&self) -> MutexGuard<'_, LiveState> {
        lock(&self.state)
    }

    /// Returns the client that the task counts for.
    pub(super) fn client(&self) -> Option<TaskClient> {
        self.state().record.origin().task_client()
    }

    /// Returns the current record.
    pub(crate) fn record(&self) -> TaskRecord {
        self.state().record.clone()
    }

    /// Saves the record with the current answers and results of `once` of the handler.
    pub(crate) async fn save(self: &Arc<Self>) -> Result<(), TaskStoreError> {
        self.save_with(None).await
    }

    /// Saves the end of the task. Clients see the end only after it was saved: "A record is saved before the client is
    /// informed of its content" ([`TaskStore`]).
    pub(crate) async fn finish(self: &Arc<Self>, end: &TaskEnd) -> Result<(), TaskStoreError> {
        self.save_with(Some(end.clone())).await
    }

    /// Saves the record, with the end of the task if `end` is given. A separate Tokio task saves the record. A handler
    /// that waits for the save must not hold a lock that the save requires, because the handler is not polled
    /// meanwhile.
    async fn save_with(self: &Arc<Self>, end: Option<TaskEnd>) -> Result<(), TaskStoreError> {
        let task = Arc::clone(self);
        let (done, saved) = tokio::sync::oneshot::channel();
        background::spawn(async move {
            let _saving = task.save_lock.lock().await;
            let mut record = task.record_with_run_state();
            if let Some(end) = end {
                record.finish(end);
            }
            let saved = task.store.save(record.clone()).await;
            if matches!(saved, Err(TaskStoreError::TakenOver)) {
                task.state().is_taken_over = true;
                task.cx.cancel();
            }
            if saved.is_ok() && record.is_finished() {
                task.state().record = record;
            }
            // After the end of the call, no receiver waits for the result.
            let _ = done.send(saved);
        });
        let saved = saved.await;
        saved.unwrap_or_else(|error| Err(TaskStoreError::Unavailable(error.into())))
    }

    /// Returns the record with the current answers and results of the handler.
    fn record_with_run_state(&self) -> TaskRecord {
        let recorded = self.cx.handler_run().to_record();
        let mut state = self.state();
        if !state.record.is_finished() {
            state.record.set_record(recorded);
            let asked = input_requests_json(&state.input_requests);
            state.record.set_asked(asked);
        }
        state.record.clone()
    }

    /// Returns true once another process has taken over the task.
    pub(crate) fn is_taken_over(&self) -> bool {
        self.state().is_taken_over
    }

    /// Delivers answers that another process has received; keeps them if the handler has not asked for them yet. Returns true if
    /// at least one was expected.
    pub(crate) fn deliver_or_keep(&self, responses: JsonObject) -> bool {
        let is_expected = self.deliver(&responses);
        let mut state = self.state();
        if !is_expected && state.early_answers.len() < MAX_EARLY_ANSWERS {
            state.early_answers.push(responses);
        }
        is_expected
    }

    /// Delivers the answers that were kept, as far as the handler asks for them now.
    pub(crate) fn deliver_kept(&self) {
        let kept = std::mem::take(&mut self.state().early_answers);
        for responses in kept {
            self.deliver_or_keep(responses);
        }
    }

    /// Sets the input requests that the handler waits for; returns true if their keys have changed.
    pub(crate) fn set_input_requests(&self, input_requests: Vec<(String, InputRequest)>) -> bool {
        let mut state = self.state();
        let names = |input_requests: &[(String, InputRequest)]| -> Vec<String> {
            input_requests
                .iter()
                .map(|(name, _)| name.clone())
                .collect()
        };
        let changed = names(&state.input_requests) != names(&input_requests);
        state.input_requests = input_requests;
        changed
    }

    /// Returns true if the task waits for answers of the client.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.state().input_requests.is_empty()
    }

    /// Delivers answers to the handler: "a server SHOULD ignore any `inputResponses` […] mapped to a key that is not
    /// currently outstanding" (section "Task Update Requests"). Returns true if at least one answer was expected.
    pub(crate) fn deliver(&self, responses: &JsonObject) -> bool {
        let mut delivered = Vec::new();
        let mut run = self.cx.handler_run();
        for (key, answer) in responses.iter() {
            let answer = answer.parse::<Json>().map(JsonObject::try_from);
            if let Ok(Ok(answer)) = answer
                && run.deliver_answer(&key, answer)
            {
                delivered.push(key.into_owned());
            }
        }
        // The handler's run stays locked, so that its next poll sets the input requests after this.
        self.state()
            .input_requests
            .retain(|(key, _)| !delivered.contains(key));
        drop(run);
        !delivered.is_empty()
    }

    /// Ends the task after its lifetime has expired, without saving its record.
    pub(crate) fn expire(&self, end: TaskEnd) {
        self.state().record.finish(end);
    }

    /// Withdraws the pending input requests.
    pub(crate) fn withdraw_input_requests(&self) {
        self.state().input_requests.clear();
    }

    /// Returns the `CreateTaskResult`, with which the server answers the call that has become the task.
    pub(crate) fn creation_result(&self, poll_interval: Duration) -> JsonObject {
        let mut created = self.state().record.task_members(poll_interval, None);
        created.insert("resultType", Json::string("task"));
        created
    }

    /// Returns the result of `tasks/get`.
    pub(crate) fn detailed_result(&self, poll_interval: Duration) -> JsonObject {
        let state = self.state();
        let input_requests = input_requests_json(&state.input_requests);
        state.record.detailed_content(poll_interval, input_requests)
    }
}

impl CallTask for LiveTask {
    fn set_message(&self, message: String) {
        self.state().record.set_message(Some(message));
    }

    fn save_progress(self: Arc<Self>) -> BoxFuture<Result<(), TaskStoreError>> {
        Box::pin(async move { self.save().await })
    }
}

/// Saved record of a task whose handler does not run as a task yet. If the value is dropped, such as when the client
/// cancels the call, the task is saved as cancelled, so that no later process runs its handler.
pub(crate) struct UnclaimedRecord {
    /// The record; `None` once it was claimed.
    record: Option<TaskRecord>,
    store: Arc<dyn TaskStore>,
}

impl UnclaimedRecord {
    /// Saves a new record in a separate tokio task, which completes even if the call is cancelled.
    ///
    /// # Errors
    /// The error of the store.
    pub(crate) async fn save(
        record: TaskRecord,
        store: &Arc<dyn TaskStore>,
    ) -> Result<Self, TaskStoreError> {
        let store = Arc::clone(store);
        let (created, is_created) = tokio::sync::oneshot::channel();
        background::spawn(async move {
            let saved = store.save(record.clone()).await;
            let unclaimed = Self {
                record: Some(record),
                store,
            };
            let unclaimed = match saved {
                Ok(()) => Ok(unclaimed),
                // The record may be there, and no later process may run its handler.
                Err(error @ TaskStoreError::Unavailable(_)) => {
                    drop(unclaimed);
                    Err(error)
                }
                Err(error) => {
                    let _ = unclaimed.claim();
                    Err(error)
                }
            };
            // After the end of the call, no receiver exists: the record is then dropped here.
            let _ = created.send(unclaimed);
        });
        let created = is_created.await;
        created.unwrap_or_else(|error| Err(TaskStoreError::Unavailable(error.into())))
    }

    /// Claims the record for a handler that starts to run as a task.
    pub(crate) fn claim(mut self) -> Option<TaskRecord> {
        self.record.take()
    }
}

impl Drop for UnclaimedRecord {
    fn drop(&mut self) {
        let Some(mut record) = self.record.take() else {
            return;
        };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        record.finish(TaskEnd::Cancelled);
        let store = Arc::clone(&self.store);
        background::spawn_on(&runtime, async move {
            while let Err(error) = store.save(record.clone()).await {
                let is_lost = !matches!(error, TaskStoreError::Unavailable(_));
                if is_lost || record.is_expired() {
                    tracing::error!(%error, "the end of a task was not saved");
                    return;
                }
                tokio::time::sleep(SAVE_RETRY_DELAY).await;
            }
        });
    }
}

/// Returns pending input requests as `inputRequests`; `None` if there are none.
fn input_requests_json(pending: &[(String, InputRequest)]) -> Option<JsonObject> {
    let json = |(key, request): &(String, InputRequest)| (key.clone(), input_request_json(request));
    (!pending.is_empty()).then(|| pending.iter().map(json).collect())
}

/// Returns an input request as a member of `inputRequests`.
fn input_request_json(request: &InputRequest) -> Json {
    let params = request.params.clone().unwrap_or_default();
    JsonObject::from_iter([
        ("method", Json::string(&request.method)),
        ("params", params.into()),
    ])
    .into()
}
