//! Answers requests with the definitions and handlers of the catalogue.
//!
//! A request is answered in its own revision. Only this module dispatches methods.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tracing::Instrument as _;

use super::Server;
use super::catalogue::{Catalogue, MethodEntry, PromptEntry, ToolEntry, parse_string_arguments};
use super::complete::CompletionRequest;
use super::conversation::RequestLog;
use super::page::{ListEntry, list_page};
use super::runner::{RunEnd, RunStep, RunningHandler, run_handler};
use super::visibility::ListedDefinition;
use crate::background::BoxFuture;
use crate::cx::{Cx, InputRequestError};
use crate::error::{Error, protocol_error};
use crate::extract::{Arguments, Call, CallInput};
use crate::handler::ErasedHandler;
use crate::link::{Reply, Request, RequestLink};
use crate::outgoing;
use crate::params::{named_target, string_member};
use crate::protocol::{
    self, JsonObject, JsonRef, Lifecycle, Outcome, PeerError, extension, resource_not_found,
};
use crate::replay::{HandlerRun, ReplayError, ReplayRecord};
use crate::reply::{Completions, ToolResult};

/// Answer to a request that was begun.
pub(crate) enum Answer {
    /// The answer is complete.
    Ready(Reply),
    /// The handler waits, or the call becomes a task.
    Pending {
        /// Completes the answer.
        rest: BoxFuture<Reply>,
        /// True if the handler is notified of a cancellation instead of being dropped.
        is_cooperative: bool,
    },
}

impl Answer {
    /// Returns the answer with a result.
    fn result(result: JsonObject) -> Self {
        Self::Ready(Reply::Result(result))
    }

    /// Returns the answer that a future completes, which is dropped on cancellation.
    fn pending(rest: impl Future<Output = Reply> + Send + 'static) -> Self {
        Self::Pending {
            rest: Box::pin(rest),
            is_cooperative: false,
        }
    }

    /// Polls a future once; a future that is ready needs no task.
    fn begin(mut reply: BoxFuture<Reply>) -> Self {
        match reply.as_mut().poll(&mut first_poll_context()) {
            Poll::Ready(reply) => Self::Ready(reply),
            Poll::Pending => Self::pending(reply),
        }
    }
}

/// Request that is being answered, with the link to its client and the catalogue.
#[derive(Clone)]
pub(super) struct ActiveRequest {
    pub(super) request: Arc<Request>,
    link: RequestLink,
    /// Catalogue at the time of the request.
    pub(super) catalogue: Arc<Catalogue>,
}

/// Form of the result object that a handler returns.
#[derive(Clone, Copy)]
enum ResultForm {
    /// Form of the home revision; the result is converted for the client.
    NewestRevision,
    /// Form that the handler has chosen; the result is sent unchanged.
    AsReturned,
}

impl Server {
    /// Begins to answer a request, within the span that the transport has made for the request.
    pub(crate) fn answer_request(&self, request: Arc<Request>, link: RequestLink) -> Answer {
        let log = RequestLog::write_request(&request);
        match self.begin_answer(request, link) {
            Answer::Ready(reply) => {
                log.write_response(&reply);
                Answer::Ready(reply)
            }
            Answer::Pending {
                rest,
                is_cooperative,
            } => {
                let rest = async move {
                    let reply = rest.await;
                    log.write_response(&reply);
                    reply
                };
                Answer::Pending {
                    rest: Box::pin(rest.in_current_span()),
                    is_cooperative,
                }
            }
        }
    }

    /// Begins to answer a request by the handler of its method.
    fn begin_answer(&self, request: Arc<Request>, link: RequestLink) -> Answer {
        let active = ActiveRequest {
            catalogue: self.catalogue(),
            request,
            link,
        };
        let begun = match own_method(&active.catalogue, &active.request).cloned() {
            Some(entry) => self.begin_own_method(active, &entry),
            None => match active.request.method() {
                "tools/call" => self.begin_tool_call(active),
                "resources/read" => self.begin_resource_read(active),
                "resources/list" if !active.catalogue.lists.is_empty() => {
                    Ok(self.begin_resource_list(active))
                }
                "prompts/get" => self.begin_prompt(active),
                "completion/complete" => self.begin_completion(active),
                "tasks/get" | "tasks/update" | "tasks/cancel" if self.0.tasks.is_some() => {
                    Ok(self.begin_task_request(active.request))
                }
                _ => self.answer_without_handler(&active).map(Answer::result),
            },
        };
        begun.unwrap_or_else(|error| Answer::Ready(Reply::Error(error)))
    }

    /// Begins to answer `resources/list` of a server with lists of resources.
    fn begin_resource_list(&self, active: ActiveRequest) -> Answer {
        let server = self.clone();
        Answer::begin(Box::pin(async move {
            let page = server.list_resources(&active).await;
            page.map_or_else(Reply::Error, Reply::Result)
        }))
    }

    /// Begins to answer a request about a task.
    fn begin_task_request(&self, request: Arc<Request>) -> Answer {
        let server = self.clone();
        Answer::begin(Box::pin(async move {
            let reply = server.answer_task(&request).await;
            reply.unwrap_or_else(Reply::Error)
        }))
    }

    /// Answers a request that needs no handler.
    fn answer_without_handler(&self, active: &ActiveRequest) -> Result<JsonObject, PeerError> {
        let request = &*active.request;
        let all = &*active.catalogue;
        match request.method() {
            "tools/list" => {
                let tools = all.tools.iter().map(|one| {
                    (
                        ListedDefinition::Tool(&one.tool),
                        &one.advertised_definition,
                    )
                });
                self.answer_list(request, "tools", tools, |listed| listed.name())
            }
            "resources/list" => {
                let resources = all.resources.iter();
                let resources = resources.map(|one| {
                    (
                        ListedDefinition::Resource(&one.resource),
                        &one.advertised_definition,
                    )
                });
                self.answer_list(request, "resources", resources, definition_uri)
            }
            "resources/templates/list" => {
                let templates = all.templates.iter();
                let templates = templates.map(|one| {
                    (
                        ListedDefinition::Template(&one.template),
                        &one.advertised_definition,
                    )
                });
                self.answer_list(request, "resourceTemplates", templates, definition_uri)
            }
            "prompts/list" => {
                let prompts = all.prompts.iter().map(|one| {
                    (
                        ListedDefinition::Prompt(&one.prompt),
                        &one.advertised_definition,
                    )
                });
                self.answer_list(request, "prompts", prompts, |listed| listed.name())
            }
            "resources/subscribe" => self.answer_subscribe(active),
            // The subscription is removed even if the resource no longer exists or is hidden now.
            "resources/unsubscribe" => {
                required_string(request.params(), "uri").map(|_| JsonObject::new())
            }
            method => Err(PeerError::method_not_found(method)),
        }
    }

    /// Answers a list request with one page of the entries that the caller may see. `member` is the member of the
    /// result that contains the entries, and `key` returns the name or URI of an entry.
    fn answer_list<'e>(
        &self,
        request: &Request,
        member: &str,
        entries: impl Iterator<
            Item = (
                ListedDefinition<'e>,
                &'e crate::definition::AdvertisedDefinition,
            ),
        >,
        key: impl Fn(ListedDefinition<'e>) -> &'e str,
    ) -> Result<JsonObject, PeerError> {
        let seen = entries.filter(|(listed, _)| self.0.visibility.is_visible(request, *listed));
        let mut forms = seen.filter_map(|(listed, advertised)| {
            Some(ListEntry {
                name: key(listed),
                definition: advertised.text_for_revision(request.revision())?,
            })
        });
        list_page(member, &mut forms, request.params(), self.0.page_size)
    }

    /// Answers `resources/subscribe`.
    fn answer_subscribe(&self, active: &ActiveRequest) -> Result<JsonObject, PeerError> {
        let uri = required_string(active.request.params(), "uri")?;
        if !self.may_subscribe(&active.request, &uri) {
            return Err(resource_not_found(&uri));
        }
        self.listeners()
            .record_subscription(&active.link, &active.request);
        Ok(JsonObject::new())
    }

    /// Returns true if the sender of a request may be notified of changes of a resource, that is, if the sender can
    /// read the resource.
    pub(crate) fn may_subscribe(&self, request: &Request, uri: &str) -> bool {
        let catalogue = self.catalogue();
        let sees = |listed| self.0.visibility.is_visible(request, listed);
        let fixed = catalogue.resource(uri);
        fixed.is_some_and(|entry| sees(ListedDefinition::Resource(&entry.resource)))
            || catalogue
                .matching_templates(uri)
                .any(|(entry, _)| {
                    let template = entry.template.template();
                    let checks = self.0.subscription_checks.iter();
                    let mut checks = checks.filter(|(checked, _)| *checked == template);
                    sees(ListedDefinition::Template(&entry.template))
                        && checks.all(|(_, check)| check(self, request, uri))
                })
            // Only the application knows which resources exist.
            || catalogue.registered_method("resources/read", Some(uri)).is_some()
    }

    /// Begins to answer `tools/call`: polls the handler once.
    fn begin_tool_call(&self, active: ActiveRequest) -> Result<Answer, PeerError> {
        let may_be_task = self.0.tasks.is_some() && active.request.has_extension(protocol::TASKS);
        let (entry, arguments) = self.find_called_tool(&active, may_be_task)?;
        let cx = self.new_cx(active, &entry.tool.version, arguments, None)?;
        if may_be_task {
            cx.allow_task();
        }
        let call = Call::new(&cx);
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
        active.link.set_target_known(request);
        let arguments = call_arguments(params, given)?;
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

    /// Calls the handler of a vendor method, whose result is sent unchanged.
    fn begin_own_method(
        &self,
        active: ActiveRequest,
        entry: &MethodEntry,
    ) -> Result<Answer, PeerError> {
        let request = &active.request;
        let client = request.client_capabilities();
        let extensions = self.0.settings.extensions();
        extension::check_declared(extensions, request.method(), client, request.lifecycle())?;
        // A handler of all tools or prompts may not know the name.
        if !matches!(request.method(), "tools/call" | "prompts/get") {
            active.link.set_target_known(request);
        }
        let params = request.params().cloned().unwrap_or_default();
        let arguments = Arguments::Own(params);
        self.begin_handler(
            active,
            &entry.handler,
            arguments,
            None,
            ResultForm::AsReturned,
        )
    }

    /// Calls a handler whose output is a result object in the form `form`, and polls it once.
    fn begin_handler(
        &self,
        active: ActiveRequest,
        handler: &ErasedHandler<JsonObject>,
        arguments: Arguments,
        uri: Option<String>,
        form: ResultForm,
    ) -> Result<Answer, PeerError> {
        let cx = self.new_cx(active, "", arguments, uri)?;
        let call = Call::new(&cx);
        let mut running = RunningHandler::new(handler.call(call), &cx, self.0.timeout);
        if let Poll::Ready(RunStep::Ended(end)) = running.poll_in_request(&mut first_poll_context())
        {
            return finish_handler(end, &cx, form).map(Answer::Ready);
        }
        Ok(Answer::pending(async move {
            let end = run_handler(&mut running, &cx).await;
            finish_handler(end, &cx, form).unwrap_or_else(Reply::Error)
        }))
    }

    /// Begins to answer `resources/read`.
    fn begin_resource_read(&self, active: ActiveRequest) -> Result<Answer, PeerError> {
        let uri = required_string(active.request.params(), "uri")?;
        let found = self
            .find_resource(&active, &uri)
            .ok_or_else(|| resource_not_found(&uri))?;
        let (handler, arguments) = found;
        let arguments = Arguments::Own(arguments);
        self.begin_handler(
            active,
            &handler,
            arguments,
            Some(uri),
            ResultForm::NewestRevision,
        )
    }

    /// Returns the handler that reads a URI, and the variables that the URI contains. Fixed URIs have precedence over
    /// templates.
    fn find_resource(
        &self,
        active: &ActiveRequest,
        uri: &str,
    ) -> Option<(ErasedHandler<JsonObject>, JsonObject)> {
        let sees = |listed| self.0.visibility.is_visible(&active.request, listed);
        let fixed = active.catalogue.resource(uri);
        if let Some(entry) = fixed.filter(|entry| sees(ListedDefinition::Resource(&entry.resource)))
        {
            return Some((entry.handler.clone(), JsonObject::new()));
        }
        let mut matching = active.catalogue.matching_templates(uri);
        let (entry, values) =
            matching.find(|(entry, _)| sees(ListedDefinition::Template(&entry.template)))?;
        let arguments = parse_string_arguments(entry.input.as_ref(), values);
        Some((entry.handler.clone(), arguments))
    }

    /// Begins to answer `prompts/get`.
    fn begin_prompt(&self, active: ActiveRequest) -> Result<Answer, PeerError> {
        let params = active.request.params();
        let name = required_string(params, "name")?;
        let seen = |entry: &&Arc<PromptEntry>| {
            self.0
                .visibility
                .is_visible(&active.request, ListedDefinition::Prompt(&entry.prompt))
        };
        let unknown = || PeerError::invalid_params(format!("Unknown prompt: {name}"));
        let entry = Arc::clone(
            active
                .catalogue
                .prompt(&name)
                .filter(seen)
                .ok_or_else(unknown)?,
        );
        active.link.set_target_known(&active.request);
        let arguments = Arguments::Own(prompt_arguments(params, &entry)?);
        self.begin_handler(
            active,
            &entry.handler,
            arguments,
            None,
            ResultForm::NewestRevision,
        )
    }

    /// Begins to answer `completion/complete`.
    fn begin_completion(&self, active: ActiveRequest) -> Result<Answer, PeerError> {
        let wanted = CompletionRequest::read_params(active.request.params())?;
        let (reference, argument) = (&wanted.reference, &*wanted.argument);
        let all = &active.catalogue;
        let sees = |listed| self.0.visibility.is_visible(&active.request, listed);
        if !all.referenced_entry(reference).is_some_and(sees)
            || !all.has_argument(reference, argument)
        {
            return Err(PeerError::invalid_params(format!(
                "{} {:?} has no argument {argument:?}",
                reference.kind(),
                reference.name(),
            )));
        }
        let Some(entry) = all.completion(reference, argument) else {
            return Ok(Answer::result(Completions::default().object()));
        };
        let handler = entry.handler.clone();
        let arguments = Arguments::Own(wanted.partial);
        self.begin_handler(
            active,
            &handler,
            arguments,
            None,
            ResultForm::NewestRevision,
        )
    }

    /// Returns the input of a handler for a call.
    pub(super) fn call_input(&self, arguments: Arguments, uri: Option<String>) -> CallInput {
        CallInput::new(arguments, uri, self.clone())
    }

    /// Creates the context of a request; for a retry, with the record of earlier runs. `version` is the version that
    /// the definition of the handler states.
    pub(super) fn new_cx(
        &self,
        active: ActiveRequest,
        version: &str,
        arguments: Arguments,
        uri: Option<String>,
    ) -> Result<Cx, PeerError> {
        let request = &active.request;
        let mut run = match (request.lifecycle(), request.state()) {
            // The handler waits for its input requests, so nothing is recorded.
            (Lifecycle::Initialize, _) => HandlerRun::default(),
            (Lifecycle::Discover, None) => HandlerRun::new(handler_version(self, version)),
            (Lifecycle::Discover, Some(state)) => {
                let version = handler_version(self, version);
                let invalid =
                    || PeerError::invalid_params("the request state is not valid; start again");
                let record = ReplayRecord::parse(state).ok_or_else(invalid)?;
                let answer =
                    |name: &str| Some(request.input_responses().result(name)?.object().clone());
                let run = HandlerRun::resume(&version, record, answer);
                run.map_err(|error| PeerError::invalid_params(error.to_string()))?
            }
        };
        run.offer_answers(request.input_responses().iter().filter_map(
            |(key, outcome)| match outcome {
                Outcome::Result(result) => Some((key.to_owned(), result.object().clone())),
                _ => None,
            },
        ));
        let input = self.call_input(arguments, uri);
        Ok(Cx::new(active.request, active.link, run, input))
    }
}

/// Returns the application's handler for the method of a request, if there is one.
fn own_method<'c>(catalogue: &'c Catalogue, request: &Request) -> Option<&'c Arc<MethodEntry>> {
    // Most servers have neither, so the name of the requested item is not looked up.
    if catalogue.methods.is_empty() && catalogue.raw_handler.is_none() {
        return None;
    }
    let name = request.params();
    let name = name.and_then(|params| named_target(request.method(), params));
    catalogue.registered_method(request.method(), name.as_deref())
}

/// Converts the outcome of a tool's run to a reply.
fn finish_tool_call(
    end: RunEnd<ToolResult>,
    entry: &ToolEntry,
    cx: &Cx,
) -> Result<Reply, PeerError> {
    finish_reply(end, cx, |result| tool_result_object(entry, cx, result))
}

/// Converts the outcome of the run of a handler whose output is a result object to a reply.
fn finish_handler(end: RunEnd<JsonObject>, cx: &Cx, form: ResultForm) -> Result<Reply, PeerError> {
    finish_reply(end, cx, |result| {
        let object = result.map_err(|error| protocol_error_of(&error, cx))?;
        match form {
            ResultForm::AsReturned => Ok(object),
            ResultForm::NewestRevision => {
                let method = cx.request().method();
                outgoing::convert_result(method, object, cx.revision(), cx.input().uri())
            }
        }
    })
}

/// Returns the context of the first poll of a future. A future that is still pending registers the waker of its task
/// when the task polls it.
fn first_poll_context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

/// Converts the end of a handler's run to a reply. `object` converts the output of the handler to a result object.
fn finish_reply<O>(
    end: RunEnd<O>,
    cx: &Cx,
    object: impl FnOnce(Result<O, Error>) -> Result<JsonObject, PeerError>,
) -> Result<Reply, PeerError> {
    // Work that the handler has started is notified of the cancellation.
    if !matches!(end, RunEnd::Finished(_)) {
        cx.cancel();
    }
    cx.end_run();
    match end {
        RunEnd::Suspended(suspension) => Ok(Reply::InputRequired {
            input_requests: suspension.input_requests,
            state: suspension.record.into_text(),
        }),
        end => convert_run_end(end, cx).and_then(object).map(Reply::Result),
    }
}

/// Converts the end of a handler's run to its output, or to the error to reply with.
pub(super) fn convert_run_end<O>(end: RunEnd<O>, cx: &Cx) -> Result<Result<O, Error>, PeerError> {
    match end {
        RunEnd::Finished(result) => Ok(result),
        RunEnd::TimedOut => Ok(Err(Error::from(HandlerTimedOut))),
        RunEnd::Suspended(_) => Err(PeerError::internal("nobody can be asked here")),
        RunEnd::Diverged(error) => Err(divergence_error(&error, cx)),
        RunEnd::Panicked(message) => Err(panic_error(&message, cx)),
    }
}

/// Returns the error for a handler that has sent a new input request without repeating those of its earlier runs.
fn divergence_error(error: &ReplayError, cx: &Cx) -> PeerError {
    tracing::error!(%error, method = cx.request().method(), "a handler diverged");
    PeerError::internal(error.to_string())
}

/// Returns the error for a handler that has panicked.
fn panic_error(message: &str, cx: &Cx) -> PeerError {
    tracing::error!(%message, method = cx.request().method(), "a handler panicked");
    PeerError::internal("the handler failed; see the log of the server")
}

/// Returns the result of a tool in the revision of its request, or the JSON-RPC error that ends the request.
pub(super) fn tool_result_object(
    entry: &ToolEntry,
    cx: &Cx,
    result: Result<ToolResult, Error>,
) -> Result<JsonObject, PeerError> {
    let result = result.and_then(|result| check_tool_result(entry, result));
    let result = match result {
        Ok(result) => result,
        Err(error) => tool_error(&error, cx)?,
    };
    let plain = result.is_plain();
    let object = result.object();
    if plain {
        Ok(object)
    } else {
        outgoing::convert_result("tools/call", object, cx.revision(), None)
    }
}

/// Returns the version of a handler: the version of the server, followed by `version`, which the definition of the
/// handler states. Sealed states and tasks are valid only for the version that created them.
pub(super) fn handler_version(server: &Server, version: &str) -> String {
    format!("{}/{version}", server.0.server_version)
}

/// Returns the location of the arguments of a call. `given` is the value of `arguments` in `params`.
pub(super) fn call_arguments(
    params: &JsonObject,
    given: Option<JsonRef<'_>>,
) -> Result<Arguments, PeerError> {
    let arguments = Arguments::in_params(params, given);
    arguments.ok_or_else(|| PeerError::invalid_params("`arguments` must be an object"))
}

/// Error for a handler that has exceeded [`ServerBuilder::timeout`](crate::ServerBuilder::timeout).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the handler did not finish in time")]
struct HandlerTimedOut;

/// Returns a result after validating its structured content against the output schema of the tool.
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

/// Returns the JSON-RPC error for an error of the handler.
pub(super) fn protocol_error_of(error: &Error, cx: &Cx) -> PeerError {
    missing_capability_error(error, cx).unwrap_or_else(|| protocol_error(error))
}

/// Returns the error for an input request whose capability the client has not declared: "If processing a request
/// requires a capability that the client has not declared, servers MUST return MissingRequiredClientCapabilityError"
/// (2026-07-28, `basic`, "Client Capabilities").
fn missing_capability_error(error: &Error, cx: &Cx) -> Option<PeerError> {
    let capability = error
        .find_source::<InputRequestError>()?
        .missing_capability()?;
    (cx.lifecycle() == Lifecycle::Discover).then(|| protocol::missing_capability(capability))
}

/// Returns the arguments of a prompt, which must be strings, in the types of the handler's `Input`.
fn prompt_arguments(
    params: Option<&JsonObject>,
    entry: &PromptEntry,
) -> Result<JsonObject, PeerError> {
    let given = params
        .and_then(|params| params.get("arguments"))
        .map(JsonObject::try_from);
    let given = match given {
        None => JsonObject::new(),
        Some(Ok(given)) => given,
        Some(Err(_)) => return Err(PeerError::invalid_params("`arguments` must be an object")),
    };
    let mut values = Vec::new();
    for (name, value) in given.view().iter() {
        let wrong = || PeerError::invalid_params(format!("argument {name:?} must be a string"));
        let value = value.as_str().ok_or_else(wrong)?;
        values.push((name.into_owned(), value.into_owned()));
    }
    let mut required = entry
        .prompt
        .arguments()
        .into_iter()
        .flatten()
        .filter(|one| one.required);
    let missing = required.find(|one| !values.iter().any(|(name, _)| *name == one.name));
    match missing {
        Some(missing) => Err(PeerError::invalid_params(format!(
            "argument {:?} of prompt {:?} is missing",
            missing.name,
            entry.prompt.name()
        ))),
        None => Ok(parse_string_arguments(entry.input.as_ref(), values)),
    }
}

/// Returns the URI of a resource or the URI template of a resource template.
fn definition_uri(listed: ListedDefinition<'_>) -> &str {
    match listed {
        ListedDefinition::Resource(resource) => resource.uri(),
        ListedDefinition::Template(template) => template.template(),
        ListedDefinition::Tool(_) | ListedDefinition::Prompt(_) => listed.name(),
    }
}

/// Returns the value of the string member `name` of the params.
///
/// # Errors
/// The error to reply with, if the member is missing or has another type.
pub(super) fn required_string(
    params: Option<&JsonObject>,
    name: &str,
) -> Result<String, PeerError> {
    let value = params.and_then(|params| string_member(params, name));
    value.ok_or_else(|| PeerError::invalid_params(format!("`{name}` must be a string")))
}
