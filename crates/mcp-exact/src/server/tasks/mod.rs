//! Tasks: calls of tools that become tasks, their methods, and their resumption after a restart.
//!
//! The module converts the call of a running handler to a task and answers `tasks/get`, `tasks/update` and
//! `tasks/cancel` of the extension `io.modelcontextprotocol/tasks`.

use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;

use super::answer::{handler_version, required_string, tool_result_object};
use super::catalogue::ToolEntry;
use super::runner::{RunEnd, RunStep, RunningHandler};
use super::visibility::ListedDefinition;
use super::{Server, answer, call_rule};
use crate::background;
use crate::cx::Cx;
use crate::definition::Tool;
use crate::extract::Call;
use crate::link::{Reply, Request, RequestLink};
use crate::protocol::{JsonObject, PeerError, Principal};
use crate::replay::HandlerRun;
use crate::reply::ToolResult;
use crate::task::{
    LiveTask, MessageKind, SAVE_RETRY_DELAY, TaskEnd, TaskError, TaskMessage, TaskOrigin,
    TaskRecord, TaskRegistry, TaskStoreError, UnclaimedRecord,
};

/// Task found by its id.
enum TaskLookup {
    /// The handler of the task runs in this process.
    Live(Arc<LiveTask>),
    /// The task has ended.
    Finished(Box<TaskRecord>),
    /// The handler of the task runs in another process.
    Elsewhere(Box<TaskRecord>),
}

/// Tasks of one server. Only [`Tasks`](crate::Tasks) refers to the implementation, so that a program without tasks does
/// not contain the implementation.
#[derive(Clone)]
pub(crate) struct ServerTasks(Arc<dyn TaskService>);

impl ServerTasks {
    pub(crate) fn new(registry: TaskRegistry) -> Self {
        Self(Arc::new(registry))
    }
}

/// Future of an operation on tasks.
type TaskWork<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Operations on the tasks of a server.
trait TaskService: Send + Sync {
    /// Runs the handlers of all unfinished tasks in the store; returns their number.
    fn resume_all<'a>(
        self: Arc<Self>,
        server: &'a Server,
    ) -> TaskWork<'a, Result<usize, TaskStoreError>>;

    /// Converts the call of a running handler to a task; returns the reply of the call.
    fn begin<'a>(
        self: Arc<Self>,
        server: &'a Server,
        entry: &'a Arc<ToolEntry>,
        running: &'a mut Option<RunningHandler<ToolResult>>,
        cx: &'a Cx,
    ) -> TaskWork<'a, Result<Reply, TaskError>>;

    /// Sends the current state of the tasks `ids` to a new subscription.
    fn notify_tasks<'a>(
        self: Arc<Self>,
        server: &'a Server,
        ids: Vec<String>,
        request: &'a Request,
        subscription: &'a RequestLink,
    ) -> TaskWork<'a, ()>;

    /// Answers `tasks/get`, `tasks/update` or `tasks/cancel`.
    fn answer_task_request<'a>(
        self: Arc<Self>,
        server: &'a Server,
        request: &'a Request,
    ) -> TaskWork<'a, Result<Reply, PeerError>>;
}

impl TaskService for TaskRegistry {
    fn resume_all<'a>(
        self: Arc<Self>,
        server: &'a Server,
    ) -> TaskWork<'a, Result<usize, TaskStoreError>> {
        Box::pin(async move { server.resume_all(&self).await })
    }

    fn begin<'a>(
        self: Arc<Self>,
        server: &'a Server,
        entry: &'a Arc<ToolEntry>,
        running: &'a mut Option<RunningHandler<ToolResult>>,
        cx: &'a Cx,
    ) -> TaskWork<'a, Result<Reply, TaskError>> {
        Box::pin(async move {
            server
                .begin_task_in_service(&self, entry, running, cx)
                .await
        })
    }

    fn notify_tasks<'a>(
        self: Arc<Self>,
        server: &'a Server,
        ids: Vec<String>,
        request: &'a Request,
        subscription: &'a RequestLink,
    ) -> TaskWork<'a, ()> {
        Box::pin(async move {
            server
                .send_task_states_in_service(&self, ids, request, subscription)
                .await
        })
    }

    fn answer_task_request<'a>(
        self: Arc<Self>,
        server: &'a Server,
        request: &'a Request,
    ) -> TaskWork<'a, Result<Reply, PeerError>> {
        Box::pin(async move { server.answer_task_in_service(&self, request).await })
    }
}

impl Server {
    /// Returns the tasks of the server, if it has any.
    fn task_service(&self) -> Option<Arc<dyn TaskService>> {
        self.0.tasks.as_ref().map(|tasks| Arc::clone(&tasks.0))
    }

    /// Runs the handlers of all tasks that an earlier process has left unfinished in the store; returns the number of
    /// these tasks.
    ///
    /// [`start`](Self::start) calls this method, and so do [`serve_stdio`](Self::serve_stdio) and
    /// [`serve_http`](Self::serve_http). A task is resumed at the latest when a client requests the task. A handler
    /// that runs again has no HTTP request; see [`Cx::become_task`].
    ///
    /// # Errors
    /// [`TaskStoreError`] when the store cannot be read.
    pub async fn resume_tasks(&self) -> Result<usize, TaskStoreError> {
        match self.task_service() {
            Some(tasks) => tasks.resume_all(self).await,
            None => Ok(0),
        }
    }

    /// Runs the handlers of all unfinished tasks in the store; returns their number.
    async fn resume_all(&self, registry: &Arc<TaskRegistry>) -> Result<usize, TaskStoreError> {
        self.exchange_tasks(registry);
        let mut resumed = 0;
        for record in registry.store().take_unfinished().await? {
            if registry.get(record.id()).is_none() {
                self.resume_task(registry, record).await;
                resumed += 1;
            }
        }
        Ok(resumed)
    }

    /// Begins to exchange messages and tasks with the other processes of the store, if it has any, until the server is dropped.
    fn exchange_tasks(&self, registry: &Arc<TaskRegistry>) {
        let Some(intervals) = registry.begin_exchange() else {
            return;
        };
        let (server, registry) = (Arc::downgrade(&self.0), Arc::downgrade(registry));
        background::spawn(async move {
            let mut next_takeover = Instant::now() + intervals.takeover;
            loop {
                tokio::time::sleep(intervals.messages).await;
                let (Some(server), Some(registry)) = (server.upgrade(), registry.upgrade()) else {
                    return;
                };
                let server = Server(server);
                server.handle_task_messages(&registry).await;
                server.publish_watched_tasks(&registry).await;
                if Instant::now() >= next_takeover {
                    next_takeover = Instant::now() + intervals.takeover;
                    if let Err(error) = server.resume_all(&registry).await {
                        tracing::warn!(%error, "tasks of dead processes are not taken over");
                    }
                }
            }
        });
    }

    /// Handles what other processes have received for the tasks of this one.
    async fn handle_task_messages(&self, registry: &Arc<TaskRegistry>) {
        if !registry.has_live() {
            return;
        }
        let messages = match registry.store().receive().await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::warn!(%error, "messages for tasks were not received");
                return;
            }
        };
        for message in messages {
            let Some(live) = registry.get(message.task_id()) else {
                // The task is being resumed, unless it has ended: then the store drops the message.
                if let Err(error) = registry.store().send(message).await {
                    tracing::warn!(%error, "a message for a task was lost");
                }
                continue;
            };
            match message.into_kind() {
                MessageKind::Cancel => live.cx().cancel(),
                MessageKind::Answers(responses) => {
                    if live.deliver_or_keep(responses) {
                        self.save_and_notify(registry, &live).await;
                    }
                }
            }
        }
    }

    /// Notifies the subscribers of tasks that run in other processes of their changes.
    async fn publish_watched_tasks(&self, registry: &Arc<TaskRegistry>) {
        let ids: Vec<String> = registry.watched().keys().cloned().collect();
        for id in ids {
            if !self.listeners().has_task_watchers(&id) {
                registry.watched().remove(&id);
                continue;
            }
            // The state is read again at the next turn.
            let Ok(record) = registry.store().load(&id).await else {
                continue;
            };
            let Some(record) = record else {
                registry.watched().remove(&id);
                continue;
            };
            let known = if record.is_finished() {
                registry.watched().remove(&id)
            } else {
                registry.watched().insert(id.clone(), record.clone())
            };
            if known.is_some_and(|known| record.differs_from(&known)) && registry.get(&id).is_none()
            {
                let origin = record.origin().clone();
                let may_know =
                    |request: &Request| call_rule(|| self.check_task(&origin, request).is_ok());
                let task =
                    record.detailed_content(registry.poll_interval(), record.asked().cloned());
                self.listeners().publish_task(&id, &task, may_know);
            }
        }
    }

    /// Converts the call of a running handler to a task and continues the handler as this task.
    ///
    /// # Errors
    /// The reason why the task was not created; the handler then continues as part of its request.
    pub(super) async fn begin_task(
        &self,
        entry: &Arc<ToolEntry>,
        running: &mut Option<RunningHandler<ToolResult>>,
        cx: &Cx,
    ) -> Result<Reply, TaskError> {
        let tasks = self.task_service().ok_or(TaskError::NotConfigured)?;
        tasks.begin(self, entry, running, cx).await
    }

    /// Implements [`begin_task`](Self::begin_task) for a server with tasks.
    async fn begin_task_in_service(
        &self,
        registry: &Arc<TaskRegistry>,
        entry: &Arc<ToolEntry>,
        running: &mut Option<RunningHandler<ToolResult>>,
        cx: &Cx,
    ) -> Result<Reply, TaskError> {
        let origin = TaskOrigin::new(&entry.tool, cx.request());
        // The slot is reserved until the task is registered.
        let _place = registry.reserve(&origin)?;
        let id = new_task_id().ok_or_else(|| TaskError::Store("no random numbers".to_owned()))?;
        let record = cx.handler_run().to_record();
        let record = TaskRecord::new(id, registry.lifetime(), origin, record);
        // "A server MUST NOT return `CreateTaskResult` until the task is durably created" (section "Task Creation").
        let saved = UnclaimedRecord::save(record, registry.store()).await?;
        let (Some(mut running), Some(record)) = (running.take(), saved.claim()) else {
            return Err(TaskError::NotConfigured);
        };
        running.remove_time_limit();
        let live = LiveTask::new(record, cx, registry.store());
        let created = live.creation_result(registry.poll_interval());
        self.spawn_task(registry, live, Arc::clone(entry), running);
        Ok(Reply::Result(created))
    }

    /// Spawns the tokio task that runs the handler of a task.
    fn spawn_task(
        &self,
        registry: &Arc<TaskRegistry>,
        live: Arc<LiveTask>,
        entry: Arc<ToolEntry>,
        running: RunningHandler<ToolResult>,
    ) {
        self.exchange_tasks(registry);
        if registry.insert(Arc::clone(&live)).is_ok() {
            let registry = Arc::clone(registry);
            background::spawn(self.clone().run_task(registry, live, entry, running));
        }
    }

    /// Runs the handler of a task to its end.
    async fn run_task(
        self,
        registry: Arc<TaskRegistry>,
        live: Arc<LiveTask>,
        entry: Arc<ToolEntry>,
        mut running: RunningHandler<ToolResult>,
    ) {
        let cx = live.cx().clone();
        let end = loop {
            let step = tokio::select! {
                biased;
                // A cooperative handler returns by itself after a cancellation.
                () = cx.cancelled(), if !entry.tool.cooperative => break TaskEnd::Cancelled,
                () = wait_for_expiry(live.record().expires_at()) => {
                    cx.cancel();
                    break TaskEnd::failed(&PeerError::internal("the lifetime of the task is over"));
                }
                step = running.run_in_task(&live) => step,
            };
            match step {
                RunStep::Ended(_) if cx.is_cancelled() => break TaskEnd::Cancelled,
                RunStep::Ended(end) => break task_end_of(end, &entry, &cx),
                RunStep::SendsInputRequests => {
                    live.deliver_kept();
                    self.save_and_notify(&registry, &live).await;
                }
                RunStep::WantsTask => {}
            }
        };
        drop(running);
        cx.end_run();
        live.withdraw_input_requests();
        // Until the end of the task is saved, only this process has recorded it; after a crash, the handler would run
        // again.
        while let Err(error) = live.finish(&end).await {
            if live.is_taken_over() {
                tracing::warn!(task = live.id(), "another process has taken over the task");
                if self.listeners().has_task_watchers(live.id()) {
                    let record = live.record();
                    registry.watched().insert(live.id().to_owned(), record);
                }
                registry.remove(live.id());
                return;
            }
            tracing::error!(%error, task = live.id(), "the end of a task was not saved");
            if live.record().is_expired() {
                live.expire(end);
                break;
            }
            tokio::time::sleep(SAVE_RETRY_DELAY).await;
        }
        self.publish_task(&registry, &live);
        registry.remove(live.id());
    }

    /// Saves the current state of a task, and notifies its subscribers.
    async fn save_and_notify(&self, registry: &TaskRegistry, live: &Arc<LiveTask>) {
        if let Err(error) = live.save().await {
            tracing::error!(%error, task = live.id(), "the state of a task was not saved");
        }
        self.publish_task(registry, live);
    }

    /// Notifies the subscribers of a task of its current state.
    fn publish_task(&self, registry: &TaskRegistry, live: &LiveTask) {
        let task = live.detailed_result(registry.poll_interval());
        let origin = live.record().origin().clone();
        let may_know = |request: &Request| call_rule(|| self.check_task(&origin, request).is_ok());
        self.listeners().publish_task(live.id(), &task, may_know);
    }

    /// Sends the current state of the tasks `ids` to a new subscription, because earlier changes are not sent again.
    pub(crate) async fn send_task_states(
        &self,
        ids: Vec<String>,
        request: &Request,
        subscription: &RequestLink,
    ) {
        if let Some(tasks) = self.task_service() {
            tasks.notify_tasks(self, ids, request, subscription).await;
        }
    }

    /// Implements [`send_task_states`](Self::send_task_states) for a server with tasks.
    async fn send_task_states_in_service(
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
    pub(super) async fn answer_task(&self, request: &Request) -> Result<Reply, PeerError> {
        let tasks = self.task_service();
        let tasks = tasks.ok_or_else(|| PeerError::method_not_found(request.method()))?;
        tasks.answer_task_request(self, request).await
    }

    /// Implements [`answer_task`](Self::answer_task) for a server with tasks.
    async fn answer_task_in_service(
        &self,
        registry: &Arc<TaskRegistry>,
        request: &Request,
    ) -> Result<Reply, PeerError> {
        let id = required_string(request.params(), "taskId")?;
        let known = self.find_task(registry, &id, request).await?;
        match (request.method(), known) {
            ("tasks/get", known) => return Ok(Reply::Result(detailed_task(registry, &known))),
            ("tasks/update", known) => {
                let responses = request.params().and_then(|all| all.get("inputResponses"));
                let responses = responses.map(JsonObject::try_from);
                let Some(Ok(responses)) = responses else {
                    let message = "`inputResponses` must be an object";
                    return Err(PeerError::invalid_params(message));
                };
                match known {
                    TaskLookup::Live(live) => {
                        if live.deliver(&responses) {
                            self.save_and_notify(registry, &live).await;
                        }
                        // A process that stood still for a time may have lost the task.
                        if live.is_taken_over() {
                            let answers = TaskMessage::new(&id, MessageKind::Answers(responses));
                            registry.store().send(answers).await.map_err(store_error)?;
                        }
                    }
                    TaskLookup::Elsewhere(_) => {
                        let answers = TaskMessage::new(&id, MessageKind::Answers(responses));
                        registry.store().send(answers).await.map_err(store_error)?;
                    }
                    TaskLookup::Finished(_) => {}
                }
            }
            (_, TaskLookup::Live(live)) => {
                live.cx().cancel();
                // As above; a message for a task of this process cancels it once more.
                if registry.store().exchange().is_some() {
                    let cancel = TaskMessage::new(&id, MessageKind::Cancel);
                    registry.store().send(cancel).await.map_err(store_error)?;
                }
            }
            (_, TaskLookup::Elsewhere(_)) => {
                let cancel = TaskMessage::new(&id, MessageKind::Cancel);
                registry.store().send(cancel).await.map_err(store_error)?;
            }
            // "tasks/cancel" of a task that has ended changes nothing.
            (_, TaskLookup::Finished(_)) => {}
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
    fn check_task(&self, origin: &TaskOrigin, request: &Request) -> Result<(), PeerError> {
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

    /// Runs the handler of an unfinished task again, with the answers in the record.
    async fn resume_task(&self, registry: &Arc<TaskRegistry>, record: TaskRecord) -> TaskLookup {
        // Another request may have resumed the task, or the task may have ended since the record was read.
        if let Some(live) = registry.get(record.id()) {
            return TaskLookup::Live(live);
        }
        let record = match registry.store().load(record.id()).await {
            Ok(Some(newer)) if newer.is_finished() => {
                return TaskLookup::Finished(Box::new(newer));
            }
            Ok(Some(newer)) => newer,
            _ => record,
        };
        match self.prepare_resumed_run(&record) {
            Ok((entry, running, cx)) => {
                let live = LiveTask::new(record, &cx, registry.store());
                if let Err(known) = registry.insert(Arc::clone(&live)) {
                    return TaskLookup::Live(known);
                }
                let (server, registry) = (self.clone(), Arc::clone(registry));
                background::spawn(server.run_task(registry, Arc::clone(&live), entry, running));
                TaskLookup::Live(live)
            }
            Err(error) => {
                let mut record = record;
                tracing::warn!(
                    task = record.id(),
                    error = error.message(),
                    "a task cannot be resumed"
                );
                record.finish(TaskEnd::failed(&error));
                if let Err(error) = registry.store().save(record.clone()).await {
                    tracing::error!(%error, task = record.id(), "the end of a task was not saved");
                }
                TaskLookup::Finished(Box::new(record))
            }
        }
    }

    /// Prepares another run of the handler of a recorded task; returns its tool, the running handler and its context.
    fn prepare_resumed_run(
        &self,
        record: &TaskRecord,
    ) -> Result<(Arc<ToolEntry>, RunningHandler<ToolResult>, Cx), PeerError> {
        let origin = record.origin();
        let catalogue = self.catalogue();
        let gone =
            || PeerError::internal(format!("the server has no tool {:?} any more", origin.tool));
        let entry = Arc::clone(catalogue.tool(&origin.tool).ok_or_else(gone)?);
        let unknown = || PeerError::internal("the server does not know the revision of the task");
        let client = origin.session_info().ok_or_else(unknown)?;
        let principal = origin.principal.clone().map(Principal);
        let request =
            Request::for_resumed_task("tools/call", origin.params.clone(), client, principal);
        let request = Arc::new(request.ok_or_else(unknown)?);
        let version = handler_version(self, &entry.tool.version);
        let run = HandlerRun::resume(&version, record.record().clone(), |_| None);
        let run = run.map_err(|error| PeerError::internal(error.to_string()))?;
        let link = RequestLink::for_resumed_task(&request);
        let arguments = origin.params.view().find("arguments");
        let arguments = answer::call_arguments(&origin.params, arguments)?;
        let cx = Cx::new(request, link, run, self.call_input(arguments, None));
        let call = Call::new(&cx);
        // Extractors run with the first poll, so that their panic ends only the task.
        let handler = entry.handler.clone();
        let handler = Box::pin(async move { handler.call(call).await });
        let running = RunningHandler::new(handler, &cx, None);
        Ok((entry, running, cx))
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

/// Checks that the sender of a request was granted all scopes in `labels`, each of which contains scopes separated by
/// spaces.
///
/// # Errors
/// [`PeerError`] if a scope was not granted.
#[cfg_attr(not(feature = "http-server"), allow(clippy::unnecessary_wraps))]
fn check_scopes<'l>(
    request: &Request,
    labels: impl Iterator<Item = &'l str>,
) -> Result<(), PeerError> {
    #[cfg(feature = "http-server")]
    {
        let mut scopes: Vec<String> = labels
            .flat_map(str::split_whitespace)
            .map(str::to_owned)
            .collect();
        scopes.sort_unstable();
        scopes.dedup();
        if !super::scopes::has_scopes(request, &scopes) {
            let message = format!(
                "the tool of the task needs the scopes {:?}; authorize for them and ask again",
                scopes.join(" ")
            );
            return Err(PeerError::invalid_params(message));
        }
    }
    #[cfg(not(feature = "http-server"))]
    let _ = (request, labels);
    Ok(())
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

/// Converts the end of a handler's run to the end of its task: "If the underlying request resulted in a JSON-RPC error,
/// the task uses `failed` status […]. If the request completed with a result (even if `isError: true` for tool
/// results), the task uses `completed`" (section "Task Execution Errors").
fn task_end_of(end: RunEnd<ToolResult>, entry: &ToolEntry, cx: &Cx) -> TaskEnd {
    match answer::convert_run_end(end, cx).and_then(|result| tool_result_object(entry, cx, result))
    {
        Ok(mut result) => {
            result.insert("resultType", crate::protocol::Json::string("complete"));
            TaskEnd::Completed(result)
        }
        Err(error) => TaskEnd::failed(&error),
    }
}

/// Waits until the time `at`; without a time, waits forever.
async fn wait_for_expiry(at: Option<SystemTime>) {
    let Some(at) = at else {
        return std::future::pending().await;
    };
    let left = at.duration_since(SystemTime::now()).unwrap_or_default();
    tokio::time::sleep(left).await;
}

/// Returns a random task id; `None` if the system provides no random numbers: "Servers MUST generate them with
/// sufficient entropy that a third party cannot enumerate or guess them" (section "Security Considerations").
fn new_task_id() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Returns true if a string has the form of a task id.
fn is_task_id(id: &str) -> bool {
    id.len() == 32
        && id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
