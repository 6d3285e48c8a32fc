//! Notifications that the machines read and write themselves: `cancelled` and `progress`.
//!
//! Takes calls and gives what is in them; `None` for what does not fit the schema.

use mcp_exact_wire::{Decode, Json, JsonObject, JsonRef, Number, ProgressToken, RequestId};

use crate::error::SendError;
use crate::message::Call;
use crate::revision::{self, Rules};
use crate::types::Progress;

fn member<T: Decode>(call: &Call, name: &str) -> Option<T> {
    call.param(name)?.decode_as().ok()
}

/// A member that may be absent; `None` when it is there and does not fit.
fn optional<T: Decode>(call: &Call, name: &str) -> Option<Option<T>> {
    match call.param(name) {
        None => Some(None),
        Some(value) => value.decode_as().ok().map(Some),
    }
}

/// `notifications/cancelled`.
pub(crate) struct Cancel {
    pub(crate) id: RequestId,
    pub(crate) reason: Option<String>,
}

impl Cancel {
    pub(crate) fn of(call: &Call) -> Option<Self> {
        Some(Self {
            id: member(call, "requestId")?,
            reason: optional(call, "reason")?,
        })
    }

    pub(crate) fn call(id: impl Into<Json>, reason: &str) -> Call {
        let params =
            JsonObject::from_iter([("requestId", id.into()), ("reason", Json::string(reason))]);
        Call::new("notifications/cancelled", Some(params))
    }
}

/// `notifications/progress`.
pub(crate) struct ProgressNotice {
    /// The own request that the token belongs to.
    pub(crate) token: Option<u64>,
    pub(crate) progress: Progress,
}

impl ProgressNotice {
    pub(crate) fn of(call: &Call) -> Option<Self> {
        let number = |number: Number| number.as_f64();
        let token = match member(call, "progressToken")? {
            ProgressToken::Integer(value) => value.as_u64(),
            ProgressToken::String(_) => None,
        };
        Some(Self {
            token,
            progress: Progress {
                done: member(call, "progress").map(number)?,
                total: optional(call, "total")?.map(number),
                message: optional(call, "message")?,
            },
        })
    }
}

/// A progress notification towards a revision; `None` when a number has no JSON form.
pub(crate) fn progress(rules: &Rules, token: &Json, progress: &Progress) -> Option<Call> {
    let number = |value: f64| Number::try_from(value).map(|n| Json::from_encode(&n)).ok();
    let mut params = JsonObject::from_iter([
        ("progressToken", token.clone()),
        ("progress", number(progress.done)?),
    ]);
    if let Some(total) = progress.total {
        params.insert("total", number(total)?);
    }
    // 2024-11-05 has no words.
    if let Some(words) = &progress.message
        && revision::at_least(rules, "2025-03-26")
    {
        params.insert("message", Json::string(words));
    }
    Some(Call::new("notifications/progress", Some(params)))
}

/// A progress token is a string or an integer (`basic/utilities/progress`).
pub(crate) fn is_token(token: &JsonRef<'_>) -> bool {
    token.decode_as::<ProgressToken>().is_ok()
}

/// Tokens have to differ among all active requests (`basic/utilities/progress`): the machine chooses them, so a program
/// brings none of its own.
pub(crate) fn no_own_token(method: &str, meta: Option<JsonRef<'_>>) -> Result<(), SendError> {
    let meta = meta.and_then(JsonRef::object);
    match meta.and_then(|meta| meta.find("progressToken")) {
        None => Ok(()),
        Some(_) => Err(SendError::Params {
            method: method.to_owned(),
            reason: "the machine chooses progress tokens; leave `progressToken` out".to_owned(),
        }),
    }
}
