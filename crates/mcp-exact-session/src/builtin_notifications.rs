//! Notifications that endpoints read and write themselves: `cancelled`, `progress` and `message`.
//!
//! The functions that read a notification return the decoded parameters, or `None` if the parameters do not match the
//! schema.

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::{Decode, Json, JsonObject, JsonRef, Number, ProgressToken, RequestId};

use crate::change::Progress;
use crate::log::{Level, LogMessage};
use crate::message::Call;

/// Method of the notification that cancels a request.
pub(crate) const CANCELLED: &str = "notifications/cancelled";
/// Method of the notification that completes the handshake.
pub(crate) const INITIALIZED: &str = "notifications/initialized";
/// Method of the notification that reports the progress of a request.
pub(crate) const PROGRESS: &str = "notifications/progress";
/// Method of the notification that contains a log message.
pub(crate) const MESSAGE: &str = "notifications/message";
/// Method of the notification that acknowledges a subscription (from 2026-07-28 on).
pub(crate) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// Decodes a required parameter; `None` if it is absent or does not match the schema.
fn typed_param<T: Decode>(call: &Call, name: &str) -> Option<T> {
    call.param(name)?.decode_as().ok()
}

/// Decodes an optional parameter; `None` if the parameter is present but does not match the schema.
fn optional_param<T: Decode>(call: &Call, name: &str) -> Option<Option<T>> {
    match call.param(name) {
        None => Some(None),
        Some(value) => value.decode_as().ok().map(Some),
    }
}

/// Decoded parameters of `notifications/cancelled`.
pub(crate) struct CancelledParams {
    /// Id of the cancelled request.
    pub(crate) id: RequestId,
    /// Reason of the cancellation, as the sender has given it; may be absent.
    pub(crate) reason: Option<String>,
}

impl CancelledParams {
    /// Decodes the parameters of a received notification; `None` if they do not match the schema.
    pub(crate) fn from_call(call: &Call) -> Option<Self> {
        Some(Self {
            id: typed_param(call, "requestId")?,
            reason: optional_param(call, "reason")?,
        })
    }

    /// Creates the notification that cancels the request with this id.
    pub(crate) fn to_call(id: impl Into<Json>, reason: &str) -> Call {
        let params =
            JsonObject::from_iter([("requestId", id.into()), ("reason", Json::string(reason))]);
        Call::new(CANCELLED, Some(params))
    }
}

/// Decodes the parameters of `notifications/message`; `None` if the parameters do not match the schema.
pub(crate) fn decode_log_message(params: Option<&JsonObject>) -> Option<LogMessage> {
    let [level, logger, data] = params?.view().find_each(["level", "logger", "data"]);
    let level: Level = level?.as_str()?.parse().ok()?;
    let logger = match logger {
        None => None,
        Some(logger) => Some(logger.as_str()?.into_owned()),
    };
    let data = data?.to_json();
    Some(LogMessage {
        level,
        logger,
        data,
    })
}

/// Decoded parameters of `notifications/progress`.
pub(crate) struct ProgressParams {
    /// Wire id of the local request that the token belongs to; `None` for a token that the local peer never chose.
    pub(crate) request_id: Option<u64>,
    /// Reported progress: amount of work done, total and description.
    pub(crate) progress: Progress,
}

impl ProgressParams {
    /// Decodes the parameters of a received notification; `None` if they do not match the schema.
    pub(crate) fn from_call(call: &Call) -> Option<Self> {
        let number = |number: Number| number.as_f64();
        let token = match typed_param(call, "progressToken")? {
            ProgressToken::Integer(value) => value.as_u64(),
            ProgressToken::String(_) => None,
        };
        Some(Self {
            request_id: token,
            progress: Progress {
                done: typed_param(call, "progress").map(number)?,
                total: optional_param(call, "total")?.map(number),
                message: optional_param(call, "message")?,
            },
        })
    }
}

/// Returns the parameters of a progress notification in a revision; `None` if a number has no JSON form.
pub(crate) fn progress_params(
    spec: &RevisionSpec,
    token: &Json,
    progress: &Progress,
) -> Option<JsonObject> {
    let number = |value: f64| Number::try_from(value).map(|n| Json::from_encode(&n)).ok();
    let mut params = JsonObject::from_iter([
        ("progressToken", token.clone()),
        ("progress", number(progress.done)?),
    ]);
    if let Some(total) = progress.total {
        params.insert("total", number(total)?);
    }
    if let Some(message) = &progress.message
        && spec.has_progress_message()
    {
        params.insert("message", Json::string(message));
    }
    Some(params)
}

/// Returns true if a value is a progress token: a string or an integer (`basic/utilities/progress`).
pub(crate) fn is_progress_token(token: &JsonRef<'_>) -> bool {
    token.decode_as::<ProgressToken>().is_ok()
}

/// Returns true if `_meta` contains a progress token.
pub(crate) fn has_progress_token(meta: Option<JsonRef<'_>>) -> bool {
    let meta = meta.and_then(JsonRef::object);
    meta.is_some_and(|meta| meta.find("progressToken").is_some())
}
