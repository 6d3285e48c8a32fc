//! `Cx`: the functions that a handler can call while it runs.
//!
//! Handlers report progress, send logs, observe cancellation, send input requests to the client, and record effects.
//! The same handler serves both lifecycles; the documentation of [`Cx`] has the rules for handlers that send input
//! requests.

mod ask;
mod elicit;
mod form;
mod input;
mod once;
mod roots;
mod sample;
mod task;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

pub use ask::{InputRequestError, InputRequestErrorKind};
pub use elicit::{Elicit, ElicitUrl, Elicited};
pub use form::FormError;
pub(crate) use form::form_of_object;
pub(crate) use input::{Arguments, CallInput};
pub use once::OnceError;
pub use roots::{Root, RootsRequest};
pub use sample::{Sample, Sampled, SamplingRequest};

use crate::cancellation::Cancelled;
use crate::error::RequestEnded;
use crate::link::{Request, RequestLink};
use crate::outgoing;
use crate::params::{object_member, string_member};
use crate::protocol::{
    Encode, Home, Json, JsonObject, Level, Lifecycle, PeerError, Principal, Progress, RawJson,
    Revision, SendError, TraceContext, TypedRequest, extension,
};
use crate::replay::HandlerRun;
use crate::sync::lock;
use crate::task::TaskState;

/// Number type that progress is measured in; implemented for every primitive number.
pub trait ProgressAmount {
    /// Returns the number as `f64`, rounded if it cannot be represented exactly.
    fn to_f64(self) -> f64;
}

/// Implements [`ProgressAmount`] for number types.
macro_rules! impl_progress_amount {
    ($($number:ty)*) => {
        $(
            impl ProgressAmount for $number {
                #[allow(clippy::cast_lossless, clippy::cast_precision_loss, reason = "one macro for all numbers")]
                fn to_f64(self) -> f64 {
                    self as f64
                }
            }
        )*
    };
}

impl_progress_amount!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64);

/// Context of a request: reports progress, writes log messages, notices cancellation, and asks the user for input. A
/// context is cheap to clone, `Send` and `'static`, so that it can be moved into spawned tasks.
///
/// After the request has ended, or after its client has cancelled it, the methods return [`RequestEnded`] or an
/// [`InputRequestError`].
///
/// # Input requests
///
/// [`elicit`](Self::elicit), [`elicit_url`](Self::elicit_url), [`sample`](Self::sample) and [`roots`](Self::roots) send
/// an input request to the client while a request is handled. The same source works for every revision:
///
/// - Up to 2025-11-25 the handler waits until the answer to its input request is received.
/// - From 2026-07-28 on an input request ends the client's request with a result of type `input_required`. The client
///   sends the request again with the answers, and **the handler runs again from its beginning**; input requests that
///   were answered return their answer immediately (2026-07-28, `basic/patterns/mrtr`).
///
/// Handlers that send input requests therefore follow these rules:
///
/// 1. *Repeat the same input requests with the same parameters.* An input request is recognised by its method and
///    parameters; equal input requests are distinguished by their order. If a handler sends a new input request without
///    repeating its earlier ones, the request ends with an error that names both. Obtain values that change, such as
///    the time, random numbers or rows of a database, through [`once`](Self::once).
/// 2. *Put effects into [`once`](Self::once)* when they happen before or between input requests. Code after the last
///    input request runs only once anyway.
/// 3. *Input requests may be concurrent.* Input requests that wait at the same time (`tokio::join!`) are sent together.
///    An input request is numbered when its method is called, so the order in which futures are polled does not matter.
///    Call the methods in the handler's own task: the order of spawned tasks differs between runs.
/// 4. *An input request waits for a running `once`*, so that the request does not end during an effect. An input
///    request inside an effect, or in a spawned task while an effect runs, fails; send it before the effect. Other
///    futures that run concurrently with an input request are dropped and run again; work that they have started
///    elsewhere is [cancelled](Self::cancelled).
/// 5. *A timer around an input request* measures the time that the handler waits. From 2026-07-28 on the handler does
///    not wait, so the timer does not fire. The time limit of the input request itself, such as [`Elicit::timeout`],
///    works in every revision.
/// 6. *Progress and logs are not repeated.* Until the handler has consumed every recorded answer,
///    [`progress`](Self::progress) and [`log`](Self::log) send nothing.
/// 7. *A later run may decide differently.* The handler may return early in a later run, without repeating its input
///    requests, for example because a file was deleted.
/// 8. *A handler that panics* ends its request with an internal error, in every run; the server continues to run. An
///    effect of [`once`](Self::once) that panics is tried again by the next request.
///
/// The answers and the results of `once` travel through the client in `requestState`, encrypted and authenticated
/// ([`KeyRing`](crate::KeyRing)), bound to the principal, the request and the version of the handler, and expire
/// ([`ServerBuilder::state_lifetime`](crate::ServerBuilder::state_lifetime)). Anonymous callers cannot be
/// distinguished: anyone who has the state of one of them can continue its request. A state is at most 64 KiB
/// ([`Limits::state_bytes`](crate::Limits)); larger answers end the request with an error. A client can send the same
/// state twice: effects that must happen exactly once, whatever the client does, need a store of the application.
///
/// Only tools, prompts and resources can send input requests. If the client has not declared the required capability,
/// or the negotiated revision does not define it, the input request fails with [`InputRequestErrorKind::Unsupported`].
#[derive(Clone)]
pub struct Cx(Arc<CxInner>);

/// Data of a context, shared by its clones.
struct CxInner {
    /// Request of the client.
    request: Arc<Request>,
    /// Link to the client of the request.
    link: RequestLink,
    /// Record of the current run of the handler.
    handler_run: Mutex<HandlerRun>,
    /// Arguments, URI and states of the handler.
    input: CallInput,
    /// True if the run of the handler has ended.
    has_ended: AtomicBool,
    /// Number of input requests that wait for their answers (up to 2025-11-25).
    waiting_count: AtomicUsize,
    /// True if the handler may send input requests: handlers of tools, resources and prompts.
    can_send_requests: bool,
    /// Task state of the call.
    task: Mutex<TaskState>,
}

impl fmt::Debug for Cx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cx")
            .field("method", &self.0.request.method())
            .field("revision", &self.0.request.revision())
            .finish_non_exhaustive()
    }
}

impl Cx {
    pub(crate) fn new(
        request: Arc<Request>,
        link: RequestLink,
        run: HandlerRun,
        input: CallInput,
    ) -> Self {
        let can_send_requests = request.method_id().may_require_input();
        Self(Arc::new(CxInner {
            request,
            link,
            handler_run: Mutex::new(run),
            input,
            has_ended: AtomicBool::new(false),
            waiting_count: AtomicUsize::new(0),
            can_send_requests,
            task: Mutex::default(),
        }))
    }

    /// Locks the record of the current run of the handler.
    pub(crate) fn handler_run(&self) -> MutexGuard<'_, HandlerRun> {
        lock(&self.0.handler_run)
    }

    /// Returns the arguments, URI and states of the handler.
    pub(crate) fn input(&self) -> &CallInput {
        &self.0.input
    }

    pub(crate) fn link(&self) -> &RequestLink {
        &self.0.link
    }

    pub(crate) fn request(&self) -> &Request {
        &self.0.request
    }

    /// Returns true if the handler may send input requests.
    pub(crate) fn can_send_requests(&self) -> bool {
        self.0.can_send_requests
    }

    /// Returns true if an input request waits for its answer.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.waiting_count.load(Ordering::Relaxed) > 0
    }

    /// Increments the number of input requests that wait for their answers.
    fn increment_waiting_count(&self) {
        self.0.waiting_count.fetch_add(1, Ordering::Relaxed);
    }

    /// Decrements the number of input requests that wait for their answers.
    fn decrement_waiting_count(&self) {
        self.0.waiting_count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Notifies the handler that the client has cancelled the request.
    pub(crate) fn cancel(&self) {
        self.0.request.token().cancel();
    }

    /// Records the end of the run, after which calls of the context fail.
    pub(crate) fn end_run(&self) {
        self.0.has_ended.store(true, Ordering::Release);
    }

    /// Returns true if the run of the handler has ended or the client has cancelled the request.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.has_ended.load(Ordering::Acquire) || self.0.request.token().is_cancelled()
    }

    /// Returns the revision of the request. Handlers rarely need the revision, because results are converted to it.
    pub fn revision(&self) -> Revision {
        self.0.request.revision()
    }

    /// Returns how the revision was negotiated.
    pub fn lifecycle(&self) -> Lifecycle {
        self.0.request.lifecycle()
    }

    /// Returns the client's description of itself, for display and logs only: `name`, `version` and so on.
    pub fn client_info(&self) -> Option<&JsonObject> {
        self.0.request.client_info()
    }

    /// Returns the capabilities that the client has declared.
    pub fn client_capabilities(&self) -> &JsonObject {
        self.0.request.client_capabilities()
    }

    /// Returns the settings of an extension that the client has declared, in any revision; `None` if it has not.
    pub fn client_extension(&self, id: &str) -> Option<JsonObject> {
        extension::settings_in(self.client_capabilities(), id)
    }

    /// Returns true if the client shows pages ([MCP Apps](crate::apps)), in any revision. A result should have a text in both
    /// cases, because a model reads it.
    pub fn client_supports_ui(&self) -> bool {
        crate::apps::is_supported_by(self.client_capabilities())
    }

    /// Returns the trace context of the request, which the client has sent in `_meta`.
    pub fn trace_context(&self) -> Option<TraceContext> {
        self.0.request.trace_context()
    }

    /// Returns the authenticated principal; `None` for anonymous clients.
    pub fn principal(&self) -> Option<&Principal> {
        self.0.request.principal()
    }

    /// Returns the claims of the request's access token; `None` without a resource server. The token itself is not
    /// available to handlers.
    #[cfg(feature = "oauth-server")]
    pub fn access(&self) -> Option<&mcp_exact_auth::server::Access> {
        self.0.request.access()
    }

    /// Returns a header of the HTTP request; the name is case-insensitive. Returns `None` on other transports.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.request.header(name)
    }

    /// Returns the transport's information about the request: the address of the client and the parts of the HTTP
    /// request.
    pub fn transport(&self) -> &mcp_exact_transport::RequestContext {
        self.0.request.context()
    }

    /// Returns the `_meta` of the request's parameters.
    pub fn meta(&self) -> Option<JsonObject> {
        object_member(self.0.request.params()?, "_meta")
    }

    /// Returns the request in the exact types of the revision `H`, such as `mcp_2026_07_28::V2026_07_28`, converted
    /// from the negotiated revision.
    ///
    /// # Errors
    /// [`PeerError`](crate::PeerError) if the params do not match the method, or the chosen revision cannot express
    /// them.
    pub fn request_as<H: Home>(&self) -> Result<TypedRequest<H>, PeerError> {
        self.0.request.typed_as::<H>()
    }

    /// Returns a result in the exact types of a revision, such as `mcp_2026_07_28::CallToolResult`, converted to the
    /// negotiated revision. Handlers of [`ServerBuilder::raw`](crate::ServerBuilder::raw) use this method.
    ///
    /// # Errors
    /// [`PeerError`](crate::PeerError) if the type is not a result of the method, or the negotiated revision cannot
    /// express the result.
    pub fn result_as<H: Home>(&self, result: &impl Encode) -> Result<JsonObject, PeerError> {
        let result = JsonObject::try_from(Json::from_encode(result));
        let result = result.map_err(|_| PeerError::internal("the result is not an object"))?;
        let request = &self.0.request;
        let uri = request.params();
        let uri = uri.and_then(|params| string_member(params, "uri"));
        let way = (H::REVISION, self.revision());
        outgoing::convert_exact_result(request.method(), result, way, uri.as_deref())
    }

    /// Returns true if the handler repeats an earlier run (see the rules of [`Cx`]).
    pub fn is_replaying(&self) -> bool {
        self.handler_run().is_replaying()
    }

    /// Sends a progress notification: `done` of `total` (`basic/utilities/progress`).
    ///
    /// No notification is sent if the client did not request progress, if the value does not increase, or in a replay.
    /// If the client reads slowly, only the latest value is sent. In a task, the progress becomes the status message.
    ///
    /// # Errors
    /// [`RequestEnded`].
    pub fn progress(
        &self,
        done: impl ProgressAmount,
        total: impl ProgressAmount,
    ) -> Result<(), RequestEnded> {
        self.send_progress(Progress::new(done.to_f64()).with_total(total.to_f64()))
    }

    /// Sends a progress notification with an optional total and an optional message (from 2025-03-26 on).
    ///
    /// # Errors
    /// [`RequestEnded`].
    pub fn send_progress(&self, progress: Progress) -> Result<(), RequestEnded> {
        self.check_not_ended()?;
        if self.is_replaying() {
            return Ok(());
        }
        if self.is_task() {
            if let Some(task) = self.task() {
                task.set_message(progress_message(&progress));
            }
            return Ok(());
        }
        match self.0.link.send_progress(progress) {
            Ok(()) => Ok(()),
            Err(SendError::UnknownRequest | SendError::Closed) => Err(RequestEnded),
            Err(error) => {
                tracing::debug!(%error, "progress was not sent");
                Ok(())
            }
        }
    }

    /// Sends a log message about the request (`server/utilities/logging`). `data` is any JSON value.
    ///
    /// No message is sent if its level is below the one that the client has chosen, in a replay, or after the call has
    /// become a task.
    ///
    /// # Errors
    /// [`RequestEnded`].
    pub fn log(
        &self,
        level: Level,
        logger: Option<&str>,
        data: impl Into<RawJson>,
    ) -> Result<(), RequestEnded> {
        self.check_not_ended()?;
        if self.is_replaying() || self.is_task() {
            return Ok(());
        }
        match self.0.link.send_log(level, logger, data.into()) {
            Ok(()) => Ok(()),
            Err(SendError::UnknownRequest | SendError::Closed) => Err(RequestEnded),
            Err(error) => {
                tracing::debug!(%error, "a log message was not sent");
                Ok(())
            }
        }
    }

    /// Sends an informational log message.
    ///
    /// # Errors
    /// [`RequestEnded`].
    pub fn info(&self, message: &str) -> Result<(), RequestEnded> {
        self.log(Level::Info, None, Json::string(message))
    }

    /// Sends a notification of an extension or vendor about the request. The server declares the method
    /// ([`ServerBuilder::notifications`](crate::ServerBuilder::notifications)).
    ///
    /// # Errors
    /// [`SendError`] if neither the revision nor the server defines the notification, or the request has ended.
    pub fn notify(&self, method: &str, params: Option<JsonObject>) -> Result<(), SendError> {
        if self.has_ended() {
            return Err(SendError::UnknownRequest);
        }
        self.0.link.send_notification(method, params)
    }

    /// Waits until the client cancels the request or this run of the handler ends early. A run ends early if its time
    /// limit elapses ([`ServerBuilder::timeout`](crate::ServerBuilder::timeout)), or if an input request ends the
    /// request and a later run repeats the handler.
    ///
    /// The server then drops the handler's future, unless the client has cancelled the request and the tool is
    /// [cooperative](crate::Tool::cooperative). Cooperative handlers and work that a handler has started elsewhere
    /// await this method.
    pub async fn cancelled(&self) {
        self.0.request.token().wait_for_cancel().await;
    }

    /// Returns true if the request is [cancelled](Self::cancelled); blocking code can poll this method.
    pub fn is_cancelled(&self) -> bool {
        self.0.request.token().is_cancelled()
    }

    /// Waits for `future`, or until the client cancels the request.
    ///
    /// # Errors
    /// [`Cancelled`].
    pub async fn cancelled_or<F: Future>(&self, future: F) -> Result<F::Output, Cancelled> {
        tokio::select! {
            biased;
            () = self.cancelled() => Err(Cancelled),
            output = future => Ok(output),
        }
    }

    /// Returns an error if the run of the handler has ended or the client has cancelled the request.
    fn check_not_ended(&self) -> Result<(), RequestEnded> {
        if self.has_ended() {
            Err(RequestEnded)
        } else {
            Ok(())
        }
    }
}

/// Returns progress as a human-readable status message.
fn progress_message(progress: &Progress) -> String {
    match (&progress.message, progress.total) {
        (Some(message), _) => message.clone(),
        (None, Some(total)) => format!("{} of {total}", progress.done),
        (None, None) => progress.done.to_string(),
    }
}
