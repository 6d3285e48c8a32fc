//! From the end of a handler's run to the reply: its result in the revision of the client, input requests, or an error.

use crate::cx::{Cx, InputRequestError};
use crate::error::{Error, protocol_error};
use crate::link::Reply;
use crate::outgoing;
use crate::protocol::{JsonObject, Lifecycle, PeerError};
use crate::replay::ReplayError;
use crate::server::runner::RunEnd;

/// Form of the result object that a handler returns.
#[derive(Clone, Copy)]
pub(super) enum ResultForm {
    /// Form of the home revision; the result is converted for the client.
    Newest,
    /// Form that the handler has chosen; the result is sent unchanged.
    AsIs,
}

/// Converts the outcome of the run of a handler whose output is a result object to a reply.
pub(super) fn finish_handler(
    end: RunEnd<JsonObject>,
    cx: &Cx,
    form: ResultForm,
) -> Result<Reply, PeerError> {
    finish_reply(end, cx, |result| {
        let object = result.map_err(|error| protocol_error_of(&error, cx))?;
        match form {
            ResultForm::AsIs => Ok(object),
            ResultForm::Newest => {
                let method = cx.request().method();
                outgoing::convert_result(method, object, cx.revision(), cx.input().uri())
            }
        }
    })
}

/// Converts the end of a handler's run to a reply. `object` converts the output of the handler to a result object.
pub(super) fn finish_reply<O>(
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
pub(in crate::server) fn convert_run_end<O>(
    end: RunEnd<O>,
    cx: &Cx,
) -> Result<Result<O, Error>, PeerError> {
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

/// Error for a handler that has exceeded [`ServerBuilder::timeout`](crate::ServerBuilder::timeout).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the handler did not finish in time")]
struct HandlerTimedOut;

/// Returns the JSON-RPC error for an error of the handler.
pub(super) fn protocol_error_of(error: &Error, cx: &Cx) -> PeerError {
    missing_capability_error(error, cx).unwrap_or_else(|| protocol_error(error))
}

/// Returns the error for an input request whose capability the client has not declared: "If processing a request
/// requires a capability that the client has not declared, servers MUST return MissingRequiredClientCapabilityError"
/// (2026-07-28, `basic`, "Client Capabilities").
pub(super) fn missing_capability_error(error: &Error, cx: &Cx) -> Option<PeerError> {
    let capability = error
        .find_source::<InputRequestError>()?
        .missing_capability()?;
    (cx.lifecycle() == Lifecycle::Discover).then(|| PeerError::missing_capability(capability))
}
