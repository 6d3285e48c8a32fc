//! Conversion of JSON-RPC errors between the lifecycles: 2026-07-28 changed the codes and nothing else.
//!
//! The input is an error object and the method of its request. Codes with the same meaning in both revisions stay.

use std::borrow::Cow;

use mcp_exact_wire::{ErrorObject, Integer, JsonObject, from_str, to_string};

use crate::loss::{ConvertError, LossKind};
use crate::rows::RevisionRow;
use crate::{Context, KnownRevision, Lifecycle};

/// "URL elicitation required" of 2025-11-25 (`client/elicitation`, "URL Elicitation Required Error").
const URL_ELICITATION_REQUIRED: i64 = -32042;
const INTERNAL_ERROR: i64 = -32603;
/// Error codes that 2026-07-28 reserves for itself (`basic`, "Error Codes").
const RESERVED_CODES: std::ops::RangeInclusive<i64> = -32099..=-32020;
/// Codes of the reserved range that 2026-07-28 defines.
const DEFINED_CODES: std::ops::RangeInclusive<i64> = -32022..=-32020;

/// Converts an error response to a request of `method`.
///
/// In conversions to 2026-07-28, `-32002` ("resource not found") becomes `-32602`. Codes that are reserved or defined
/// only by another revision become `-32603`, and the original code is reported. In conversions to an older revision,
/// `-32602` of `resources/read` becomes `-32002` if `data.uri` is [`Context::requested_uri`].
///
/// # Errors
/// [`ConvertError`] for code `-32042` of 2025-11-25: 2026-07-28 uses an input-required result instead.
pub fn convert_error(
    method: &str,
    mut error: ErrorObject,
    from: KnownRevision,
    to: KnownRevision,
    cx: &mut Context,
) -> Result<ErrorObject, ConvertError> {
    let Some(code) = error.code.as_i64() else {
        return Ok(error);
    };
    let not_found = ResourceNotFound {
        source: from.spec().resource_not_found_code(),
        target: to.spec().resource_not_found_code(),
    };
    let changed = match (from.lifecycle(), to.lifecycle()) {
        (Lifecycle::Initialize, Lifecycle::Discover) => {
            to_newer_code(method, code, from, not_found)?
        }
        (Lifecycle::Discover, Lifecycle::Initialize) => {
            to_older_code(method, code, not_found, &error, cx)
        }
        _ => None,
    };
    let changed = changed.or_else(|| elicitation_code(code, from, to));
    if let Some((code, kind, reason)) = changed {
        error.code = Integer::from(code);
        cx.report("/code", kind, to, reason);
    }
    Ok(error)
}

/// The new code, the kind of the loss and its reason; `None` if the code is unchanged.
type CodeChange = Option<(i64, LossKind, &'static str)>;

/// Error codes for a resource that does not exist (`server/resources`, "Error Handling").
#[derive(Clone, Copy)]
struct ResourceNotFound {
    /// Code in the source revision.
    source: i64,
    /// Code in the target revision.
    target: i64,
}

/// Returns the change of the code "URL elicitation required" if only one of the two revisions defines the code.
fn elicitation_code(code: i64, from: KnownRevision, to: KnownRevision) -> CodeChange {
    let (defined, wanted) = (has_elicitation_code(from), has_elicitation_code(to));
    if code != URL_ELICITATION_REQUIRED || defined == wanted {
        return None;
    }
    let reason = if defined {
        "this revision has no elicitation by URL; the call fails without it"
    } else {
        "a code of its sender's own, which means that a URL is needed in this revision"
    };
    Some((INTERNAL_ERROR, LossKind::Replaced, reason))
}

/// Returns true if a revision defines the code "URL elicitation required".
fn has_elicitation_code(revision: KnownRevision) -> bool {
    RevisionRow::at(revision.place())
        .find("URLElicitationRequiredError")
        .is_some()
}

/// Returns the change of a code in a conversion to a revision without the `initialize` handshake.
fn to_newer_code(
    method: &str,
    code: i64,
    from: KnownRevision,
    not_found: ResourceNotFound,
) -> Result<CodeChange, ConvertError> {
    let changed = match code {
        code if code == not_found.source && method == "resources/read" => {
            let reason = "a resource that is not found is a wrong parameter since 2026-07-28";
            (not_found.target, LossKind::Rewritten, reason)
        }
        code if code == not_found.source => {
            let reason = "2026-07-28 forbids this code, which meant nothing for this method";
            (INTERNAL_ERROR, LossKind::Replaced, reason)
        }
        URL_ELICITATION_REQUIRED if has_elicitation_code(from) => {
            let reason =
                "since 2026-07-28 a result asks for input (`input_required`); answer with that";
            return Err(ConvertError::new("/code", reason));
        }
        code if DEFINED_CODES.contains(&code) => {
            let reason = "a code of its sender's own, which means something else since 2026-07-28";
            (INTERNAL_ERROR, LossKind::Replaced, reason)
        }
        code if RESERVED_CODES.contains(&code) => {
            let reason = "2026-07-28 reserves this code and does not define it";
            (INTERNAL_ERROR, LossKind::Replaced, reason)
        }
        _ => return Ok(None),
    };
    Ok(Some(changed))
}

/// Returns the change of a code in a conversion to a revision with the `initialize` handshake.
fn to_older_code(
    method: &str,
    code: i64,
    not_found: ResourceNotFound,
    error: &ErrorObject,
    cx: &Context,
) -> CodeChange {
    if method != "resources/read" || code != not_found.source {
        return None;
    }
    let data: JsonObject = error.data.clone()?.try_into().ok()?;
    let uri: String = from_str(data.get("uri")?.text()).ok()?;
    (Some(uri.as_str()) == cx.known.requested_uri.as_deref()).then_some((
        not_found.target,
        LossKind::Rewritten,
        "a resource that is not found has a code of its own up to 2025-11-25",
    ))
}

/// Converts the JSON text of an error; see [`convert_error`]. Text without a change is returned unchanged.
pub(crate) fn convert_text<'t>(
    method: &str,
    text: &'t str,
    from: KnownRevision,
    to: KnownRevision,
    cx: &mut Context,
) -> Result<Cow<'t, str>, ConvertError> {
    if from.lifecycle() == to.lifecycle() && has_elicitation_code(from) == has_elicitation_code(to)
    {
        return Ok(Cow::Borrowed(text));
    }
    let error: ErrorObject = from_str(text).map_err(|error| {
        let reason = format!("no error: {}", error.detail());
        ConvertError::new(error.pointer(), reason)
    })?;
    let before = error.code.clone();
    let error = convert_error(method, error, from, to, cx)?;
    Ok(if error.code == before {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(to_string(&error))
    })
}
