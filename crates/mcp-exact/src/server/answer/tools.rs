//! `tools/call`: finds the tool once, checks the arguments, and runs its handler as a call or as a task.

use std::sync::Arc;
use std::task::Poll;

use super::{ActiveRequest, Answer, first_poll_context};
use crate::call::Call;
use crate::cx::{Arguments, Cx};
use crate::error::{Error, protocol_error};
use crate::link::Reply;
use crate::outgoing;
use crate::protocol::{self, JsonObject, PeerError, method};
use crate::reply::ToolResult;
use crate::server::Server;
use crate::server::answer::outcome::{finish_reply, missing_capability_error};
use crate::server::catalogue::ToolEntry;
use crate::server::runner::{RunEnd, RunStep, RunningHandler};
use crate::server::scopes::check_scope;
use crate::server::visibility::ListedDefinition;

impl Server {
    /// Begins to answer `tools/call`: polls the handler once.
    pub(super) fn begin_tool_call(&self, active: ActiveRequest) -> Result<Answer, PeerError> {
        let may_be_task = self.0.tasks.is_some() && active.request.has_extension(protocol::TASKS);
        let (entry, arguments) = self.find_called_tool(&active, may_be_task)?;
        let cx = self.new_cx(active, &entry.tool.version, arguments, None)?;
        if may_be_task {
            cx.allow_task();
        }
        let call = Call::new(&cx);
        #[cfg(feature = "validation")]
        if let Err(error) = entry.checks.input(&call) {
            let end = RunEnd::Finished(Err(error));
            return finish_tool_call(end, &entry, &cx).map(Answer::Ready);
        }
        let mut running = RunningHandler::new(entry.handler.call(call), &cx, self.0.timeout);
        if !(entry.tool.task && cx.may_become_task())
            && let Poll::Ready(RunStep::Ended(end)) =
                running.poll_in_request(&mut first_poll_context())
        {
            return finish_tool_call(end, &entry, &cx).map(Answer::Ready);
        }
        let server = self.clone();
        let is_cooperative = entry.tool.cooperative;
        let rest = Box::pin(async move {
            let reply = server.run_tool(&entry, running, &cx).await;
            reply.unwrap_or_else(Reply::Error)
        });
        Ok(Answer::Pending {
            rest,
            is_cooperative,
        })
    }

    /// Finds the tool that a request calls, and its arguments.
    fn find_called_tool(
        &self,
        active: &ActiveRequest,
        may_be_task: bool,
    ) -> Result<(Arc<ToolEntry>, Arguments), PeerError> {
        let request = &active.request;
        let missing = || PeerError::invalid_params("`name` must be a string");
        let params = request.params().ok_or_else(missing)?;
        let [name, given] = params.view().find_each(["name", "arguments"]);
        let name = name.and_then(|name| name.as_str()).ok_or_else(missing)?;
        let found = active.catalogue.tool(&name);
        let entry = found.filter(|entry| {
            self.0
                .visibility
                .is_visible(request, ListedDefinition::Tool(&entry.tool))
        });
        let unknown = || PeerError::invalid_params(format!("Unknown tool: {name}"));
        let entry = entry.ok_or_else(unknown)?;
        check_scope(request, ListedDefinition::Tool(&entry.tool))?;
        active.link.set_target_known(request);
        let arguments = Arguments::in_params(params, given)?;
        request.check_mirrored(&entry.mirrored_arguments, arguments.view(request))?;
        if entry.tool.task_required && !may_be_task {
            return Err(protocol::missing_tasks(&name, request.lifecycle()));
        }
        Ok((Arc::clone(entry), arguments))
    }

    /// Runs the handler of a tool until its request is answered by a result, an input request or a task.
    async fn run_tool(
        &self,
        entry: &Arc<ToolEntry>,
        running: RunningHandler<ToolResult>,
        cx: &Cx,
    ) -> Result<Reply, PeerError> {
        let mut running = Some(running);
        if entry.tool.task && cx.may_become_task() {
            let task = self.begin_task(entry, &mut running, cx).await;
            return task.map_err(|error| PeerError::internal(error.to_string()));
        }
        while let Some(handler) = &mut running {
            // A handler that has asked for a task when it was polled first does not go on before the call is a task.
            let step = if cx.wants_task() {
                RunStep::WantsTask
            } else {
                handler.run_in_request().await
            };
            match step {
                RunStep::Ended(end) => return finish_tool_call(end, entry, cx),
                RunStep::SendsInputRequests => {}
                RunStep::WantsTask => match self.begin_task(entry, &mut running, cx).await {
                    Ok(created) => return Ok(created),
                    Err(error) => cx.refuse_task(error),
                },
            }
        }
        Err(PeerError::internal("the handler was lost"))
    }
}

/// Converts the outcome of a tool's run to a reply.
fn finish_tool_call(
    end: RunEnd<ToolResult>,
    entry: &ToolEntry,
    cx: &Cx,
) -> Result<Reply, PeerError> {
    finish_reply(end, cx, |result| tool_result_object(entry, cx, result))
}

/// Returns the result of a tool in the revision of its request, or the JSON-RPC error that ends the request.
pub(in crate::server) fn tool_result_object(
    entry: &ToolEntry,
    cx: &Cx,
    result: Result<ToolResult, Error>,
) -> Result<JsonObject, PeerError> {
    #[cfg(feature = "validation")]
    let result = result.and_then(|result| check_tool_result(entry, result));
    #[cfg(not(feature = "validation"))]
    let _ = entry;
    let result = match result {
        Ok(result) => result,
        Err(error) => tool_error(&error, cx)?,
    };
    let plain = result.is_plain();
    let object = result.object();
    if plain {
        Ok(object)
    } else {
        outgoing::convert_result(method::TOOLS_CALL, object, cx.revision(), None)
    }
}

/// Returns a result after validating its structured content against the output schema of the tool.
#[cfg(feature = "validation")]
fn check_tool_result(entry: &ToolEntry, result: ToolResult) -> Result<ToolResult, Error> {
    if let Some(structured) = result.structured.as_ref().filter(|_| !result.is_error) {
        entry.checks.output(structured)?;
    }
    Ok(result)
}

/// Returns the result that reports an error to the model, or the JSON-RPC error that ends the request.
fn tool_error(error: &Error, cx: &Cx) -> Result<ToolResult, PeerError> {
    if error.find_source::<PeerError>().is_some() {
        return Err(protocol_error(error));
    }
    match missing_capability_error(error, cx) {
        Some(error) => Err(error),
        None => Ok(ToolResult::error(error.message_with_sources())),
    }
}
