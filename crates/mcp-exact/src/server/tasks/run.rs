//! The handler of a task: from the call that becomes a task, or the record of an earlier process, to its end.

use std::sync::Arc;
use std::time::SystemTime;

use super::TaskLookup;
use crate::background;
use crate::call::Call;
use crate::cx::{Arguments, Cx};
use crate::link::{Reply, Request, RequestLink};
use crate::protocol::{Json, PeerError, Principal, method};
use crate::replay::HandlerRun;
use crate::reply::ToolResult;
use crate::server::answer::{convert_run_end, tool_result_object};
use crate::server::catalogue::ToolEntry;
use crate::server::runner::{RunEnd, RunStep, RunningHandler};
use crate::server::{Server, call_rule};
use crate::task::{
    LiveTask, SAVE_RETRY_DELAY, TaskEnd, TaskError, TaskOrigin, TaskRecord, TaskRegistry,
    UnclaimedRecord,
};

impl Server {
    /// Implements [`begin_task`](Self::begin_task) for a server with tasks.
    pub(super) async fn begin_task_in_service(
        &self,
        registry: &Arc<TaskRegistry>,
        entry: &Arc<ToolEntry>,
        running: &mut Option<RunningHandler<ToolResult>>,
        cx: &Cx,
    ) -> Result<Reply, TaskError> {
        let origin = TaskOrigin::new(entry.tool.name(), entry.tool.scope_label(), cx.request());
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
    pub(in crate::server) async fn save_and_notify(
        &self,
        registry: &TaskRegistry,
        live: &Arc<LiveTask>,
    ) {
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

    /// Runs the handler of an unfinished task again, with the answers in the record.
    pub(in crate::server) async fn resume_task(
        &self,
        registry: &Arc<TaskRegistry>,
        record: TaskRecord,
    ) -> TaskLookup {
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
            Request::for_resumed_task(method::TOOLS_CALL, origin.params.clone(), client, principal);
        let request = Arc::new(request.ok_or_else(unknown)?);
        let version = self.handler_version(&entry.tool.version);
        let run = HandlerRun::resume(&version, record.record().clone(), |_| None);
        let run = run.map_err(|error| PeerError::internal(error.to_string()))?;
        let link = RequestLink::for_resumed_task(&request);
        let arguments = origin.params.view().find("arguments");
        let arguments = Arguments::in_params(&origin.params, arguments)?;
        let cx = Cx::new(request, link, run, self.call_input(arguments, None));
        let call = Call::new(&cx);
        // Extractors run with the first poll, so that their panic ends only the task.
        let handler = entry.handler.clone();
        let handler = Box::pin(async move { handler.call(call).await });
        let running = RunningHandler::new(handler, &cx, None);
        Ok((entry, running, cx))
    }
}

/// Converts the end of a handler's run to the end of its task: "If the underlying request resulted in a JSON-RPC error,
/// the task uses `failed` status […]. If the request completed with a result (even if `isError: true` for tool
/// results), the task uses `completed`" (section "Task Execution Errors").
fn task_end_of(end: RunEnd<ToolResult>, entry: &ToolEntry, cx: &Cx) -> TaskEnd {
    match convert_run_end(end, cx).and_then(|result| tool_result_object(entry, cx, result)) {
        Ok(mut result) => {
            result.insert("resultType", Json::string("complete"));
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
