//! Requests of a client that wait for their results.
//!
//! A request is sent when its future is first polled. Dropping the future before the result arrives cancels the
//! request.

use std::future::IntoFuture;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::Client;
use super::error::{ClientError, CloseReason, into_result};
use super::link::{ClientLink, InFlight, RequestOptions};
use super::output::CompletionOutput;
use super::recover::{
    Failure, RequestParts, SharedProgress, callback, is_answer, is_loss, recover,
};
use crate::background::BoxFuture;
use crate::panics::contain_panic;
use crate::params::request_label;
use crate::protocol::{
    Json, JsonObject, Level, Lifecycle, Outcome, PendingRequest, Progress, SendError, TraceContext,
    lifecycle_of, method,
};
use mcp_exact_transport::ClientHandle;
use tokio::time::{Instant, Sleep, sleep_until};

/// State of the future of a request.
enum RequestState {
    /// The request was not sent yet.
    New {
        /// Params in the form of the negotiated revision.
        params: Option<JsonObject>,
        /// Handler for progress notifications; `None` if the application requests none.
        progress: Option<SharedProgress>,
    },
    /// The request was sent and has no answer yet. The client keeps what it sends again if it connects again.
    Waiting {
        request: PendingRequest,
        /// Connection on which it was sent.
        handle: ClientHandle,
        parts: Option<Box<RequestParts>>,
        #[allow(dead_code, reason = "counts the request until it is dropped")]
        in_flight: InFlight,
    },
    /// The connection was lost; the reason or another connection is awaited.
    Recovering(BoxFuture<Result<JsonObject, ClientError>>),
    /// The future has completed.
    Done,
}

/// Future of a request to a server; its output is the result in the form of the home revision, 2026-07-28.
#[must_use = "futures do nothing unless they are awaited"]
pub struct Request {
    /// Connection that the request is sent on.
    link: Arc<ClientLink>,
    method: String,
    /// Time limits, log level and other options of the request.
    options: RequestOptions,
    /// State of the future.
    state: RequestState,
    /// Text that identifies the request in log events; empty if the level `DEBUG` is not enabled.
    label: String,
    /// End of the total time limit that the application has set. The session has none of its own while the application answers a
    /// question of the server (from 2026-07-28 on).
    deadline: Option<Pin<Box<Sleep>>>,
    /// True if the server had sent text that is no message before the request, which then says nothing about its answer.
    had_noise: bool,
}

impl Request {
    pub(super) fn new(client: &Client, method: &str, params: Option<JsonObject>) -> Self {
        Self {
            link: Arc::clone(client.link()),
            method: method.to_owned(),
            options: RequestOptions::default(),
            state: RequestState::New {
                params,
                progress: None,
            },
            label: String::new(),
            deadline: None,
            had_noise: false,
        }
    }

    /// Sets the idle timeout of the request: the maximum time without a message about the request. Progress notifications
    /// restart the timeout; the client requests them for `tools/call`, and for other methods with
    /// [`on_progress`](Self::on_progress).
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.options.idle_timeout = Some(limit);
        self
    }

    /// Sets the total time limit of the request, which neither progress notifications nor questions of the server extend; by
    /// default that of [`Connect::request_timeout`](super::Connect::request_timeout).
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.options.total_timeout = Some(limit);
        self
    }

    /// Requests log messages about the request, from this level up (from 2026-07-28 on; earlier revisions have one
    /// level per session).
    pub fn log_level(mut self, level: Level) -> Self {
        self.options.log_level = Some(level);
        self
    }

    /// Sends a trace context with the request, instead of that of the current span (feature `opentelemetry`).
    pub fn trace_context(mut self, trace: TraceContext) -> Self {
        self.options.trace = Some(trace);
        self
    }

    /// Sets a member of the params, before the request is sent.
    fn set_param(mut self, name: &str, value: impl Into<Json>) -> Self {
        if let RequestState::New { params, .. } = &mut self.state {
            params.get_or_insert_default().insert(name, value.into());
        }
        self
    }

    /// Requests progress notifications and calls `handler` with each of them.
    pub fn on_progress(mut self, handler: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        if let RequestState::New { progress, .. } = &mut self.state {
            *progress = Some(Arc::new(move |progress: &Progress| {
                contain_panic("on_progress", || handler(progress.clone()));
            }));
        }
        self
    }
}

impl Future for Request {
    type Output = Result<JsonObject, ClientError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        if let Poll::Ready(result) = this.poll_result(cx) {
            return Poll::Ready(result);
        }
        if let Some(deadline) = &mut this.deadline {
            ready!(deadline.as_mut().poll(cx));
            return Poll::Ready(this.time_out());
        }
        Poll::Pending
    }
}

impl Request {
    /// Polls the result of the request.
    fn poll_result(&mut self, cx: &mut Context<'_>) -> Poll<Result<JsonObject, ClientError>> {
        let this = self;
        loop {
            match &mut this.state {
                RequestState::New { params, progress } => {
                    let (params, progress) = (params.take(), progress.take());
                    if tracing::Level::DEBUG <= tracing::level_filters::LevelFilter::current() {
                        this.label = request_label(&this.method, params.as_ref());
                    }
                    tracing::debug!("-> {}", this.label);
                    if let Some(params) = &params {
                        tracing::trace!("-> {}: {params}", this.label);
                    }
                    this.state = this.send(params, progress)?;
                }
                RequestState::Waiting {
                    request,
                    handle,
                    parts,
                    ..
                } => {
                    let outcome = ready!(Pin::new(&mut *request).poll(cx));
                    if is_loss(&outcome) {
                        let failure = Failure::of(request, handle.clone());
                        let parts = parts.take().map(|parts| *parts);
                        let recovery = recover(Arc::clone(&this.link), parts, failure);
                        this.state = RequestState::Recovering(Box::pin(recovery));
                        // It is unknown what the next connection has sent before the request.
                        this.had_noise = true;
                        continue;
                    }
                    if this.link.is_unreachable() && is_answer(&outcome) {
                        this.link.set_unreachable(None);
                    }
                    if outcome == Outcome::TimedOut {
                        this.link.check_liveness();
                    }
                    return Poll::Ready(this.finish(into_result(outcome)));
                }
                RequestState::Recovering(recovery) => {
                    let result = ready!(recovery.as_mut().poll(cx));
                    return Poll::Ready(this.finish(result));
                }
                RequestState::Done => {
                    let reason = CloseReason::Lost("the request has ended before".to_owned());
                    return Poll::Ready(Err(ClientError::disconnected(reason, true)));
                }
            }
        }
    }

    /// Cancels the request at the end of its time limit.
    fn time_out(&mut self) -> Result<JsonObject, ClientError> {
        if let RequestState::Waiting { request, .. } = &mut self.state {
            request.cancel("timed out");
            self.link.check_liveness();
        }
        self.finish(Err(ClientError::TimedOut))
    }

    /// Sends the request, and returns the state in which its answer is awaited.
    fn send(
        &mut self,
        params: Option<JsonObject>,
        progress: Option<SharedProgress>,
    ) -> Result<RequestState, ClientError> {
        self.state = RequestState::Done;
        #[cfg(feature = "process")]
        self.link.check_tool(&self.method, params.as_ref())?;
        let options = std::mem::take(&mut self.options);
        let begun = Instant::now();
        let limit = self.link.total_limit(&options);
        let deadline = limit.and_then(|limit| begun.checked_add(limit));
        self.deadline = deadline.map(|deadline| Box::pin(sleep_until(deadline)));
        let parts = self.link.reconnects().then(|| {
            Box::new(RequestParts {
                method: self.method.clone(),
                params: params.clone(),
                options: options.clone(),
                progress: progress.clone(),
                revision: self.link.revision(),
                begun,
            })
        });
        let callback = progress.as_ref().map(callback);
        let handle = self.link.handle();
        self.had_noise = handle.first_malformed().is_some();
        let sent = self
            .link
            .request_on(&handle, &self.method, params, options, callback);
        match sent {
            Ok(request) => {
                let in_flight = self.link.count_request();
                Ok(RequestState::Waiting {
                    request,
                    handle,
                    parts,
                    in_flight,
                })
            }
            Err(SendError::Closed) => {
                let parts = parts.map(|parts| *parts);
                let recovery = recover(Arc::clone(&self.link), parts, Failure::unsent(handle));
                Ok(RequestState::Recovering(Box::pin(recovery)))
            }
            Err(error) => Err(ClientError::Send(error)),
        }
    }

    /// Converts the result of the request to the home revision.
    fn finish(
        &mut self,
        result: Result<JsonObject, ClientError>,
    ) -> Result<JsonObject, ClientError> {
        self.state = RequestState::Done;
        let result = result
            .map_err(|error| self.link.explain(error, self.had_noise))
            .inspect_err(|error| tracing::debug!("<- {}: {error}", self.label))?;
        tracing::debug!("<- {}: result", self.label);
        tracing::trace!("<- {}: {result}", self.label);
        self.link.take_result(&self.method, result)
    }
}

/// Sets the log level of a session that has another one (up to 2025-11-25). A server without log messages is not asked.
async fn set_session_log_level(client: Client, level: Level) -> Result<(), ClientError> {
    let has_session = lifecycle_of(client.revision()) == Lifecycle::Initialize;
    let is_set = client.link().log_level() == Some(level);
    if !has_session || is_set || client.capabilities().get("logging").is_none() {
        return Ok(());
    }
    match client.set_log_level(level).await {
        // Messages for the log are no part of the call; the level is not asked for again.
        Err(ClientError::Server(error)) => {
            tracing::warn!(%error, "the server has refused the log level of a call");
            client.link().set_log_level(level);
            Ok(())
        }
        set => set,
    }
}

/// Future of a call to a server, created by [`Client::call`], [`Client::call_tool`], [`Client::read`],
/// [`Client::prompt`] and the completions. The call is sent when the future is first polled; the output is the result,
/// decoded as `T`.
#[must_use = "`.await` sends the call"]
pub struct ClientCall<T> {
    /// Request of the call, or the error of its arguments.
    request: Result<Request, ClientError>,
    /// Name of the tool, for `tools/call`.
    tool: Option<String>,
    /// Function that decodes the result of the request.
    decode_result: fn(JsonObject) -> Result<T, ClientError>,
}

impl<T> ClientCall<T> {
    pub(super) fn new(
        client: &Client,
        method: &str,
        params: JsonObject,
        decode: fn(JsonObject) -> Result<T, ClientError>,
    ) -> Self {
        Self {
            request: Ok(client.request(method, Some(params))),
            tool: None,
            decode_result: decode,
        }
    }

    /// Creates a call of `tools/call`.
    pub(super) fn for_tool(
        client: &Client,
        tool: &str,
        arguments: Result<JsonObject, ClientError>,
        decode: fn(JsonObject) -> Result<T, ClientError>,
    ) -> Self {
        let params = arguments.map(|arguments| {
            JsonObject::from_iter([
                ("name", Json::string(tool)),
                ("arguments", arguments.into()),
            ])
        });
        Self {
            request: params.map(|params| client.request(method::TOOLS_CALL, Some(params))),
            tool: Some(tool.to_owned()),
            decode_result: decode,
        }
    }

    /// Sets the idle timeout of the call: the maximum time without a message about the call. Progress notifications restart the
    /// timeout; the client requests them for calls of tools, and for other calls with [`on_progress`](Self::on_progress).
    pub fn idle_timeout(self, limit: Duration) -> Self {
        self.map_request(|request| request.idle_timeout(limit))
    }

    /// Sets the total time limit of the call, which neither progress notifications nor questions of the server extend; by default
    /// that of [`Connect::request_timeout`](super::Connect::request_timeout). The limit includes the task of a tool.
    pub fn timeout(self, limit: Duration) -> Self {
        self.map_request(|request| request.timeout(limit))
    }

    /// Requests log messages about the call, from this level up. Up to 2025-11-25, a session has one level: the
    /// client sets it before the call, and it remains until another level is set ([`Client::set_log_level`]).
    pub fn log_level(self, level: Level) -> Self {
        self.map_request(|request| request.log_level(level))
    }

    /// Sends a trace context with the call, instead of that of the current span (feature `opentelemetry`).
    pub fn trace_context(self, trace: TraceContext) -> Self {
        self.map_request(|request| request.trace_context(trace))
    }

    /// Allows the client to send the call again, once, if its connection or session is lost before the answer (with
    /// [`Connect::reconnect`](super::Connect::reconnect), and over HTTP also in the session that replaces one that the server has
    /// ended); the server may then execute the call twice. `tool` is the definition of the called tool as [listed](Client::tools)
    /// by the server; without the annotation `idempotentHint`, which servers of 2024-11-05 do not send, the call is not repeated.
    /// Other tool calls are sent again only if the server has not executed them: they did not reach it, or it has refused them
    /// together with the session. List and read requests are always repeated.
    pub fn allow_repeat(self, tool: &JsonObject) -> Self {
        self.map_request(|mut request| {
            request.options.repeats_tool = Some(tool.clone());
            request
        })
    }

    /// Requests progress notifications and calls `handler` with each of them. The client requests them for every call of a tool,
    /// because they restart the [idle timeout](Self::idle_timeout).
    pub fn on_progress(self, handler: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.map_request(|request| request.on_progress(handler))
    }

    /// Applies `change` to the request of the call, unless its arguments are invalid.
    fn map_request(mut self, change: impl FnOnce(Request) -> Request) -> Self {
        self.request = self.request.map(change);
        self
    }
}

impl ClientCall<CompletionOutput> {
    /// Sends the arguments of the prompt, or the variables of the template, that are already known, so that the
    /// server can use them for its suggestions (`context` in `server/utilities/completion`; from 2025-06-18 on,
    /// servers of earlier revisions ignore them).
    pub fn known_arguments<'a>(
        self,
        arguments: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let arguments = arguments.into_iter();
        let arguments = arguments.map(|(name, value)| (name, Json::string(value)));
        let arguments = JsonObject::from_iter(arguments);
        let context = JsonObject::from_iter([("arguments", arguments)]);
        self.map_request(|request| request.set_param("context", context))
    }
}

impl<T: 'static> IntoFuture for ClientCall<T> {
    type Output = Result<T, ClientError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let result = call_result(self.request?, self.tool).await?;
            (self.decode_result)(result)
        })
    }
}

/// Sends the request of a call and returns its result, after the task if the server answers the call of a tool with one. The
/// time limit of the call covers all of it.
async fn call_result(
    mut request: Request,
    tool: Option<String>,
) -> Result<JsonObject, ClientError> {
    let client = Client::for_link(&request.link);
    let begun = Instant::now();
    let limit = client.link().total_limit(&request.options);
    if let Some(level) = request.options.log_level {
        within(limit, set_session_log_level(client.clone(), level)).await?;
        request.options.total_timeout = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
    }
    // The request ends at the limit by itself.
    let result = request.await?;
    let Some(tool) = tool else {
        return Ok(result);
    };
    let limit = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
    let ended = async {
        let result = client.wait_for_call_end(result).await?;
        #[cfg(feature = "validation")]
        client.check_output(&tool, &result).await?;
        #[cfg(not(feature = "validation"))]
        drop(tool);
        Ok(result)
    };
    within(limit, ended).await
}

/// Waits for a step of a call within a time limit.
async fn within<T>(
    limit: Option<Duration>,
    step: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    match limit {
        None => step.await,
        Some(limit) => tokio::time::timeout(limit, step)
            .await
            .unwrap_or(Err(ClientError::TimedOut)),
    }
}
