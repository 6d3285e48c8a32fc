//! Conversion between the home revision, in which this crate builds every result, and the negotiated revision.
//!
//! The only module that calls `mcp-exact-convert`. What an older revision cannot express is dropped or rewritten as
//! `docs/conversions.md` says; each loss is a `tracing` event of level debug.

use mcp_exact_convert::{Context, KnownRevision, MessageKind, Root, convert, convert_type};
use mcp_exact_convert::{Loss, Role};

use crate::link::{Json, JsonObject, PeerError, Revision};

/// The revision in which results, definitions and questions are built.
const HOME: KnownRevision = KnownRevision::V2026_07_28;

/// Object that is converted: what it is and who sends it.
enum Payload {
    /// Result of a client's request, from the server.
    Result,
    /// Params of a request from the server to the client.
    Question,
    /// Result of a request from the server to the client.
    Answer,
}

impl Payload {
    fn of(self, method: &str) -> Root<'_> {
        let (kind, sender) = match self {
            Self::Result => (MessageKind::Result, Role::Server),
            Self::Question => (MessageKind::Request, Role::Server),
            Self::Answer => (MessageKind::Result, Role::Client),
        };
        Root {
            kind,
            method,
            sender,
        }
    }
}

/// Returns the home revision.
pub(crate) fn home() -> Revision {
    HOME.revision()
}

/// Converts a result of the home revision to the revision of the client.
///
/// # Errors
/// The protocol error to reply with: the result does not fit the schema, or the revision cannot express it.
pub(crate) fn result(
    method: &str,
    mut result: JsonObject,
    to: Revision,
    uri: Option<&str>,
) -> Result<JsonObject, PeerError> {
    if to == home() {
        return Ok(result);
    }
    complete(method, &mut result);
    let mut cx = uri.map_or_else(Context::new, |uri| Context::new().requested_uri(uri));
    let root = Payload::Result.of(method);
    let converted = converted(root, &result, HOME, known(to)?, &mut cx);
    report(method, to, cx.losses());
    converted.map_err(|reason| {
        let reason =
            format!("the result of `{method}` cannot be sent to a client of {to}: {reason}");
        PeerError::internal(reason)
    })
}

/// Adds what every result of the home revision must have (2026-07-28, `basic`, "Result Types"; `server/utilities/caching`).
fn complete(method: &str, result: &mut JsonObject) {
    let cached = matches!(
        method,
        "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    );
    let of_all = [("resultType", Json::string("complete"))];
    let of_cached = [
        ("ttlMs", Json::from(0_u64)),
        ("cacheScope", Json::string("private")),
    ];
    let of_cached = of_cached.into_iter().filter(|_| cached);
    for (name, value) in of_all.into_iter().chain(of_cached) {
        if result.view().find(name).is_none() {
            result.insert(name, value);
        }
    }
}

/// Converts a definition of the home revision, such as a `Tool`, to the revision of a client.
///
/// # Errors
/// What does not fit or cannot be expressed, as text.
pub(crate) fn definition(name: &str, value: &JsonObject, to: Revision) -> Result<Json, String> {
    let to = known(to).map_err(|error| error.to_string())?;
    let mut cx = Context::new();
    let text = convert_type(name, value.text(), HOME, to, &mut cx);
    let text = text.map_err(|refused| refused.to_string())?;
    report(name, to.revision(), cx.losses());
    text.parse::<Json>().map_err(|error| error.to_string())
}

/// Checks that a definition fits the schema of the home revision.
pub(crate) fn check_definition(name: &str, value: &JsonObject) -> Result<(), String> {
    mcp_exact_convert::check_type(name, value.text(), HOME).map_err(|refused| refused.to_string())
}

/// Converts the params of a question from the home revision to the revision of the client.
///
/// # Errors
/// Why the revision cannot express the question.
pub(crate) fn question(
    method: &str,
    params: &JsonObject,
    to: Revision,
) -> Result<JsonObject, String> {
    between(Payload::Question.of(method), params, home(), to)
}

/// Converts the answer to a question from the revision of the client to the home revision.
///
/// # Errors
/// Why the answer cannot be read.
pub(crate) fn answer(
    method: &str,
    result: &JsonObject,
    from: Revision,
) -> Result<JsonObject, String> {
    between(Payload::Answer.of(method), result, from, home())
}

/// Converts the params of a server's question from the negotiated revision to the home revision, for clients.
///
/// # Errors
/// Why the question cannot be read.
pub(crate) fn asked(
    method: &str,
    params: &JsonObject,
    from: Revision,
) -> Result<JsonObject, String> {
    between(Payload::Question.of(method), params, from, home())
}

/// Converts a client's answer to a question from the home revision to the negotiated revision.
///
/// # Errors
/// Why the revision cannot express the answer.
pub(crate) fn answered(
    method: &str,
    result: &JsonObject,
    to: Revision,
) -> Result<JsonObject, String> {
    between(Payload::Answer.of(method), result, home(), to)
}

/// Converts the result of a client's request from the negotiated revision to the home revision. The result of a method that
/// the home revision does not have stays as it is.
///
/// # Errors
/// Why the result cannot be read.
pub(crate) fn received(
    method: &str,
    result: &JsonObject,
    from: Revision,
) -> Result<JsonObject, String> {
    match HOME.method(method, true) {
        Some(_) => between(Payload::Result.of(method), result, from, home()),
        None => Ok(result.clone()),
    }
}

fn between(
    root: Root<'_>,
    object: &JsonObject,
    from: Revision,
    to: Revision,
) -> Result<JsonObject, String> {
    if from == to {
        return Ok(object.clone());
    }
    let known = |revision| known(revision).map_err(|error| error.to_string());
    let (from, to) = (known(from)?, known(to)?);
    let mut cx = Context::new();
    let converted = converted(root, object, from, to, &mut cx);
    report(root.method, to.revision(), cx.losses());
    converted
}

fn converted(
    root: Root<'_>,
    object: &JsonObject,
    from: KnownRevision,
    to: KnownRevision,
    cx: &mut Context,
) -> Result<JsonObject, String> {
    let text = convert(root, Some(object.text()), from, to, cx);
    // Params that the target does not have are absent.
    match text.map_err(|refused| refused.to_string())? {
        Some(text) => text
            .parse::<JsonObject>()
            .map_err(|error| error.to_string()),
        None => Ok(JsonObject::new()),
    }
}

fn known(revision: Revision) -> Result<KnownRevision, PeerError> {
    let missing = || PeerError::internal(format!("revision {revision} is not compiled in"));
    KnownRevision::parse(revision.as_str()).ok_or_else(missing)
}

fn report(what: &str, to: Revision, losses: &[Loss]) {
    for loss in losses.iter().filter(|loss| loss.kind.is_lossy()) {
        tracing::debug!(what, revision = %to, %loss, "a conversion lost information");
    }
}
