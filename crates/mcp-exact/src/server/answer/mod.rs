//! The one way of a request: from the event of the session to the handler of its method, and back as a reply.
//!
//! `link/dispatcher.rs` calls [`Server::answer_request`] for each request. Handlers of the application for a method have
//! precedence; for the others, the module of the subject finds the entry in the catalogue. `Server::new_cx` makes the
//! context of the call, `runner.rs` polls the handler, and `outcome` converts the end of its run to a [`Reply`]. A handler
//! that is ready at its first poll needs no task.

mod completions;
mod joined_resources;
mod lists;
mod outcome;
mod prompts;
mod resources;
mod tasks;
mod tools;

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tracing::Instrument as _;

use super::Server;
use super::catalogue::{Catalogue, MethodEntry};
use super::conversation::RequestLog;
use super::runner::{RunStep, RunningHandler, run_handler};
use crate::background::BoxFuture;
use crate::call::Call;
use crate::cx::{Arguments, CallInput, Cx};
use crate::handler::ErasedHandler;
use crate::link::{Reply, Request, RequestLink};
use crate::params::{named_target, required_string};
use crate::protocol::{JsonObject, Lifecycle, MethodId, Outcome, PeerError, extension};
use crate::replay::{HandlerRun, ReplayRecord};
use outcome::{ResultForm, finish_handler};

pub(super) use outcome::convert_run_end;
pub(super) use tools::tool_result_object;

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
struct ActiveRequest {
    request: Arc<Request>,
    link: RequestLink,
    /// Catalogue at the time of the request.
    catalogue: Arc<Catalogue>,
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
            None => match active.request.method_id() {
                MethodId::ToolsCall => self.begin_tool_call(active),
                MethodId::ResourcesRead => self.begin_resource_read(active),
                MethodId::ResourcesSubscribe => self.answer_subscribe(&active).map(Answer::result),
                // The subscription is removed even if the resource no longer exists or is hidden now.
                MethodId::ResourcesUnsubscribe => required_string(active.request.params(), "uri")
                    .map(|_| Answer::result(JsonObject::new())),
                MethodId::ResourcesList if !active.catalogue.lists.is_empty() => {
                    Ok(self.begin_resource_list(active))
                }
                MethodId::PromptsGet => self.begin_prompt(active),
                MethodId::CompletionComplete => self.begin_completion(active),
                MethodId::TasksGet | MethodId::TasksUpdate | MethodId::TasksCancel
                    if self.0.tasks.is_some() =>
                {
                    Ok(self.begin_task_request(active.request))
                }
                _ => self.answer_list(&active).map(Answer::result),
            },
        };
        begun.unwrap_or_else(|error| Answer::Ready(Reply::Error(error)))
    }

    /// Calls the handler of a vendor method, whose result is sent unchanged.
    fn begin_own_method(
        &self,
        active: ActiveRequest,
        entry: &MethodEntry,
    ) -> Result<Answer, PeerError> {
        let request = &active.request;
        let client = request.client_capabilities();
        let extensions = &self.0.settings.extensions;
        extension::check_declared(extensions, request.method(), client, request.lifecycle())?;
        // A handler of all tools or prompts may not know the name.
        if !matches!(
            request.method_id(),
            MethodId::ToolsCall | MethodId::PromptsGet
        ) {
            active.link.set_target_known(request);
        }
        let params = request.params().cloned().unwrap_or_default();
        let arguments = Arguments::Own(params);
        self.begin_handler(active, &entry.handler, arguments, None, ResultForm::AsIs)
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

    /// Creates the context of a request; for a retry, with the record of earlier runs. `version` is the version that
    /// the definition of the handler states.
    fn new_cx(
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
            (Lifecycle::Discover, None) => HandlerRun::new(self.handler_version(version)),
            (Lifecycle::Discover, Some(state)) => {
                let version = self.handler_version(version);
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

    /// Returns what a handler reads in a call: the arguments, the URI of a resource, and the states of the server.
    pub(super) fn call_input(&self, arguments: Arguments, uri: Option<String>) -> CallInput {
        CallInput::new(arguments, uri, self.0.states.clone(), self.0.clone())
    }

    /// Returns the version of a handler: the version of the server, followed by `version`, which the definition of the
    /// handler states. Sealed states and tasks are valid only for the version that created them.
    pub(super) fn handler_version(&self, version: &str) -> String {
        format!("{}/{version}", self.0.server_version)
    }
}

/// Returns the application's handler for the method of a request, if there is one.
fn own_method<'c>(catalogue: &'c Catalogue, request: &Request) -> Option<&'c Arc<MethodEntry>> {
    // Most servers have neither, so the name of the requested item is not looked up.
    if catalogue.methods.is_empty() && catalogue.raw_handler.is_none() {
        return None;
    }
    let name = request.params();
    let name = name.and_then(|params| named_target(request.method_id(), params));
    catalogue.registered_method(request.method(), name.as_deref())
}

/// Returns the context of the first poll of a future. A future that is still pending registers the waker of its task
/// when the task polls it.
fn first_poll_context() -> Context<'static> {
    Context::from_waker(Waker::noop())
}
