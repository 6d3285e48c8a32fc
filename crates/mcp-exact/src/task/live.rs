//! A task whose handler runs in this process.
//!
//! Joins the record, the questions that wait for answers, and the context of the handler. Saves the record whenever it says
//! something new.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{TaskEnd, TaskRecord, TaskStore, TaskStoreError};
use crate::background;
use crate::cx::Cx;
use crate::link::{InputRequest, Json, JsonObject};

pub(crate) struct LiveTask {
    id: String,
    cx: Cx,
    store: Arc<dyn TaskStore>,
    state: Mutex<State>,
    /// Held while a record is saved, so that an older one never replaces a newer one.
    saving: tokio::sync::Mutex<()>,
}

struct State {
    record: TaskRecord,
    asks: Vec<(String, InputRequest)>,
}

impl LiveTask {
    pub(crate) fn new(record: TaskRecord, cx: &Cx, store: &Arc<dyn TaskStore>) -> Arc<Self> {
        let task = Arc::new(Self {
            id: record.id().to_owned(),
            cx: cx.clone(),
            store: Arc::clone(store),
            state: Mutex::new(State {
                record,
                asks: Vec::new(),
            }),
            saving: tokio::sync::Mutex::default(),
        });
        cx.set_task(&task);
        task
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn cx(&self) -> &Cx {
        &self.cx
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the record as it is now.
    pub(crate) fn record(&self) -> TaskRecord {
        self.state().record.clone()
    }

    /// Saves the record with the answers and the results of `once` that the handler has by now.
    pub(crate) async fn save(self: &Arc<Self>) -> Result<(), TaskStoreError> {
        self.save_with(None).await
    }

    /// Saves the end of the task, and says so once it is saved: "A record is saved before the client is informed of its
    /// content" ([`TaskStore`]).
    pub(crate) async fn finish(self: &Arc<Self>, end: &TaskEnd) -> Result<(), TaskStoreError> {
        self.save_with(Some(end.clone())).await
    }

    /// The record is saved in a task of its own: a handler that waits for this method is not polled meanwhile, and must not
    /// hold a lock that the saving waits for.
    async fn save_with(self: &Arc<Self>, end: Option<TaskEnd>) -> Result<(), TaskStoreError> {
        let task = Arc::clone(self);
        let (done, saved) = tokio::sync::oneshot::channel();
        background::spawn(async move {
            let _saving = task.saving.lock().await;
            let mut record = task.with_run();
            if let Some(end) = end {
                record.finish(end);
            }
            let saved = task.store.save(record.clone()).await;
            if saved.is_ok() && record.is_finished() {
                task.state().record = record;
            }
            // Nobody waits for it when the call has ended.
            let _ = done.send(saved);
        });
        let saved = saved.await;
        saved.unwrap_or_else(|error| Err(TaskStoreError::Unavailable(error.into())))
    }

    /// Returns the record with the current answers and results of the handler.
    fn with_run(&self) -> TaskRecord {
        let recorded = self.cx.run().record();
        let mut state = self.state();
        if !state.record.is_finished() {
            state.record.set_record(recorded);
        }
        state.record.clone()
    }

    /// Sets the input requests that the handler waits for; returns whether they have changed.
    pub(crate) fn set_asks(&self, asks: Vec<(String, InputRequest)>) -> bool {
        let mut state = self.state();
        let names = |asks: &[(String, InputRequest)]| -> Vec<String> {
            asks.iter().map(|(name, _)| name.clone()).collect()
        };
        let changed = names(&state.asks) != names(&asks);
        state.asks = asks;
        changed
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.state().asks.is_empty()
    }

    /// Sets the progress message of the handler.
    pub(crate) fn set_message(&self, message: String) {
        self.state().record.set_message(Some(message));
    }

    /// Hands answers to the handler; "a server SHOULD ignore any `inputResponses` […] mapped to a key that is not currently
    /// outstanding" (section "Task Update Requests"). Returns whether there was one for it.
    pub(crate) fn deliver(&self, responses: &JsonObject) -> bool {
        let mut delivered = Vec::new();
        let mut run = self.cx.run();
        for (key, answer) in responses.iter() {
            let answer = answer.parse::<Json>().map(JsonObject::try_from);
            if let Ok(Ok(answer)) = answer
                && run.deliver(&key, answer)
            {
                delivered.push(key.into_owned());
            }
        }
        drop(run);
        self.state()
            .asks
            .retain(|(key, _)| !delivered.contains(key));
        !delivered.is_empty()
    }

    /// Ends the task without saving it: its lifetime is over.
    pub(crate) fn expire(&self, end: TaskEnd) {
        self.state().record.finish(end);
    }

    /// Withdraws the input requests: nobody waits for answers any more.
    pub(crate) fn withdraw_asks(&self) {
        self.state().asks.clear();
    }

    /// Returns the result that creates the task.
    pub(crate) fn created(&self, poll_interval: Duration) -> JsonObject {
        let mut created = self.state().record.task(poll_interval, None);
        created.insert("resultType", Json::string("task"));
        created
    }

    /// Returns what `tasks/get` answers.
    pub(crate) fn detailed(&self, poll_interval: Duration) -> JsonObject {
        let state = self.state();
        let asks = (!state.asks.is_empty()).then(|| {
            let asks = state.asks.iter();
            asks.map(|(key, ask)| (key.clone(), ask_json(ask)))
                .collect()
        });
        state.record.detailed(poll_interval, asks)
    }
}

/// Saved record of a task whose handler does not run yet. Dropped with its call, such as when the client cancels that, it ends as
/// cancelled: no later process runs it.
pub(crate) struct Unclaimed {
    record: Option<TaskRecord>,
    store: Arc<dyn TaskStore>,
}

impl Unclaimed {
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
            let unclaimed = saved.map(|()| Self {
                record: Some(record),
                store,
            });
            // Nobody takes it when the call has ended: it is dropped here then.
            let _ = created.send(unclaimed);
        });
        let created = is_created.await;
        created.unwrap_or_else(|error| Err(TaskStoreError::Unavailable(error.into())))
    }

    /// Takes the record for the handler that runs from now on.
    pub(crate) fn claim(mut self) -> Option<TaskRecord> {
        self.record.take()
    }
}

impl Drop for Unclaimed {
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
            if let Err(error) = store.save(record).await {
                tracing::error!(%error, "the end of a task was not saved");
            }
        });
    }
}

fn ask_json(ask: &InputRequest) -> Json {
    let params = ask.params.clone().unwrap_or_default();
    JsonObject::from_iter([
        ("method", Json::string(&ask.method)),
        ("params", params.into()),
    ])
    .into()
}
