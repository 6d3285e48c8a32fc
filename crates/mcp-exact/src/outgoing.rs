//! Conversion between the home revision, in which this crate builds every result, and the negotiated revision.
//!
//! The only module that calls `mcp-exact-convert`. Members that an older revision cannot express are dropped or
//! rewritten as `docs/conversions.md` describes; each loss is a `tracing` event of level debug.

use std::borrow::Cow;

use mcp_exact_convert::{
    Context, KnownRevision, Loss, MessageKind, Payload, Repair, RepairRule, Role, Tolerance,
    convert, convert_type, repair, replace_lone_surrogates,
};
use mcp_exact_wire::order::contains;
use mcp_exact_wire::{JsonRef, Kind};

use crate::protocol::{
    Json, JsonObject, MethodId, PeerError, Revision, is_extension_result, method,
};

/// Revision in whose form results, definitions and input requests are built.
const HOME_REVISION: KnownRevision = KnownRevision::V2026_07_28;

/// Kind of the converted object, and its sender.
enum MessagePart {
    /// Result of a client's request, from the server.
    Result,
    /// Params of a request from the server.
    InputRequest,
    /// Result of a request from the server, sent by the client.
    InputResponse,
}

impl MessagePart {
    /// Returns the kind, method and sender of the object, which select its conversion.
    fn payload(self, method: &str) -> Payload<'_> {
        let (kind, sender) = match self {
            Self::Result => (MessageKind::Result, Role::Server),
            Self::InputRequest => (MessageKind::Request, Role::Server),
            Self::InputResponse => (MessageKind::Result, Role::Client),
        };
        Payload {
            kind,
            method,
            sender,
        }
    }
}

/// Returns the home revision.
pub(crate) fn home_revision() -> Revision {
    HOME_REVISION.revision()
}

/// Converts a result of the home revision to the revision of the client. `uri` is the URI that the request names, if
/// any.
///
/// # Errors
/// The JSON-RPC error to reply with, if the result does not conform to the schema or the revision cannot express it.
pub(crate) fn convert_result(
    method: &str,
    mut result: JsonObject,
    to: Revision,
    uri: Option<&str>,
) -> Result<JsonObject, PeerError> {
    if to == home_revision() {
        return Ok(result);
    }
    add_required_members(method, &mut result);
    convert_answer(method, &result, HOME_REVISION, to, uri).map_err(|reason| {
        let reason =
            format!("the result of `{method}` cannot be sent to a client of {to}: {reason}");
        PeerError::internal(reason)
    })
}

/// Converts a result that the application has built in the exact types of one revision to the negotiated revision.
/// Results of methods outside of the specification are not changed.
///
/// # Errors
/// The JSON-RPC error to reply with, if the result does not conform to the schema or the revision cannot express it.
pub(crate) fn convert_exact_result(
    method: &str,
    result: JsonObject,
    (from, to): (Revision, Revision),
    uri: Option<&str>,
) -> Result<JsonObject, PeerError> {
    let source = require_known_revision(from)?;
    if from == to || source.method(method, true).is_none() {
        return Ok(result);
    }
    convert_answer(method, &result, source, to, uri).map_err(|reason| {
        let reason = format!(
            "the result of `{method}`, of revision {from}, cannot be sent to a client of {to}: {reason}"
        );
        PeerError::internal(reason)
    })
}

/// Converts a result of a server to the revision of its client, and logs the losses.
fn convert_answer(
    method: &str,
    result: &JsonObject,
    from: KnownRevision,
    to: Revision,
    uri: Option<&str>,
) -> Result<JsonObject, String> {
    let known = require_known_revision(to).map_err(|error| error.to_string())?;
    let mut cx = uri.map_or_else(Context::new, |uri| Context::new().requested_uri(uri));
    let payload = MessagePart::Result.payload(method);
    let converted = convert_payload(payload, result, from, known, &mut cx);
    report_losses(method, to, cx.losses());
    converted
}

/// Adds the missing members that a result of the home revision must have: `resultType` (2026-07-28, `basic`, "Result
/// Types") and, in results that can be cached, `ttlMs` and `cacheScope` (`server/utilities/caching`).
fn add_required_members(method: &str, result: &mut JsonObject) {
    let cached = MethodId::from_name(method).is_cached();
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

/// Converts the result of a method from the home revision to another revision.
///
/// # Errors
/// The reason why the revision cannot express the result.
#[cfg(feature = "client")]
pub(crate) fn convert_to_revision(
    method: &str,
    result: &JsonObject,
    to: Revision,
) -> Result<JsonObject, String> {
    let root = MessagePart::Result.payload(method);
    convert_between(root, result, home_revision(), to)
}

/// Converts a definition of the home revision, whose type is `name`, to another revision.
///
/// # Errors
/// The reason why the revision cannot express the definition.
#[cfg(feature = "client")]
pub(crate) fn convert_definition_to(
    name: &str,
    value: &JsonObject,
    to: Revision,
) -> Result<JsonObject, String> {
    if to == home_revision() {
        return Ok(value.clone());
    }
    let converted = convert_definition(name, value, to)?;
    JsonObject::try_from(converted).map_err(|_| format!("`{name}` is not an object"))
}

/// Converts a definition of the home revision to the revision of a client. `name` is the type of the definition in the
/// schema, such as `Tool`.
///
/// # Errors
/// Description of the mismatch or of the loss.
pub(crate) fn convert_definition(
    name: &str,
    value: &JsonObject,
    to: Revision,
) -> Result<Json, String> {
    let to = require_known_revision(to).map_err(|error| error.to_string())?;
    let mut cx = Context::new();
    let text = convert_type(name, value.text(), HOME_REVISION, to, &mut cx);
    let text = text.map_err(|refused| refused.to_string())?;
    report_losses(name, to.revision(), cx.losses());
    text.parse::<Json>().map_err(|error| error.to_string())
}

/// Checks that a definition conforms to the schema of the type `name`, such as `Tool`, in the home revision.
pub(crate) fn check_definition(name: &str, value: &JsonObject) -> Result<(), String> {
    mcp_exact_convert::check_type(name, value.text(), HOME_REVISION)
        .map_err(|refused| refused.to_string())
}

/// Converts the params of an input request between the home revision and the negotiated one.
///
/// # Errors
/// The reason why the params cannot be decoded, or `to` cannot express them.
pub(crate) fn convert_input_request(
    method: &str,
    params: &JsonObject,
    (from, to): (Revision, Revision),
) -> Result<JsonObject, String> {
    convert_between(MessagePart::InputRequest.payload(method), params, from, to)
}

/// Converts the answer to an input request between the home revision and the negotiated one.
///
/// # Errors
/// The reason why the answer cannot be decoded, or `to` cannot express it.
pub(crate) fn convert_input_response(
    method: &str,
    result: &JsonObject,
    (from, to): (Revision, Revision),
) -> Result<JsonObject, String> {
    convert_between(MessagePart::InputResponse.payload(method), result, from, to)
}

/// Converts the result of a client's request from the negotiated revision to the home revision. The result of a method
/// that the home revision does not define is not changed.
///
/// # Errors
/// The reason why the result cannot be decoded.
pub(crate) fn convert_received_result(
    method: &str,
    result: JsonObject,
    from: Revision,
    tolerance: Tolerance,
) -> Result<(JsonObject, Vec<Repair>), String> {
    let (result, mut repairs) = convert_received_parts(method, result, from, tolerance)?;
    // Untyped values keep lone surrogates, which the values of the application cannot.
    let text = result.text();
    if tolerance == Tolerance::Lenient
        && ["\\ud", "\\uD"].iter().any(|half| contains(text, half))
        && let Cow::Owned(whole) = replace_lone_surrogates(text)
    {
        let object = whole.parse::<JsonObject>();
        let repair = Repair::of_envelope(RepairRule::LoneSurrogate, "");
        repairs.push(repair);
        return Ok((object.map_err(|error| error.to_string())?, repairs));
    }
    Ok((result, repairs))
}

/// Converts and repairs a result, without the strings of untyped values.
fn convert_received_parts(
    method: &str,
    mut result: JsonObject,
    from: Revision,
    tolerance: Tolerance,
) -> Result<(JsonObject, Vec<Repair>), String> {
    let is_home = from == home_revision();
    if method == method::TOOLS_CALL && is_plain_result(&result, is_home) {
        if !is_home {
            result.insert("resultType", Json::string("complete"));
        }
        return Ok((result, Vec::new()));
    }
    if is_extension_result(&result, from) {
        return Ok((result, Vec::new()));
    }
    let root = MessagePart::Result.payload(method);
    let from = require_known_revision(from).map_err(|error| error.to_string())?;
    if is_home || HOME_REVISION.method(method, true).is_none() {
        let is_lenient = tolerance == Tolerance::Lenient;
        let repaired = is_lenient.then(|| repair(root, &result, from)).flatten();
        let Some(repaired) = repaired else {
            return Ok((result, Vec::new()));
        };
        let object = repaired.text.parse::<JsonObject>();
        let object = object.map_err(|error| error.to_string())?;
        return Ok((object, repaired.repairs));
    }
    let mut cx = Context::new().tolerance(tolerance).assume_json();
    let converted = convert_payload(root, &result, from, HOME_REVISION, &mut cx);
    report_losses(method, home_revision(), cx.losses());
    Ok((converted?, cx.into_repairs()))
}

/// Returns true if the result of a tool consists of plain text only, which needs no conversion in any revision; `is_home` allows
/// the member that only results of the home revision have.
fn is_plain_result(result: &JsonObject, is_home: bool) -> bool {
    let mut seen = (false, false);
    let is_known = result.view().iter().all(|(name, value)| match &*name {
        "content" => {
            let blocks = value.decode_as::<Vec<JsonObject>>();
            let is_first = !std::mem::replace(&mut seen.0, true);
            is_first && blocks.is_ok_and(|blocks| blocks.iter().all(is_plain_text_block))
        }
        "isError" => !std::mem::replace(&mut seen.1, true) && value.kind() == Kind::Boolean,
        "resultType" => is_home && value.text() == r#""complete""#,
        _ => false,
    });
    is_known && seen.0
}

/// Returns true if a content block is text without annotations or other members.
fn is_plain_text_block(block: &JsonObject) -> bool {
    let mut members = block.view().iter();
    let (Some(first), Some(second), None) = (members.next(), members.next(), members.next()) else {
        return false;
    };
    let is_type = |(name, value): &(Cow<'_, str>, JsonRef<'_>)| {
        *name == "type" && value.text() == r#""text""#
    };
    let is_text =
        |(name, value): &(Cow<'_, str>, JsonRef<'_>)| *name == "text" && value.as_str().is_some();
    (is_type(&first) && is_text(&second)) || (is_type(&second) && is_text(&first))
}

/// Converts a payload between two revisions, and logs its losses. Equal revisions need no conversion.
fn convert_between(
    root: Payload<'_>,
    object: &JsonObject,
    from: Revision,
    to: Revision,
) -> Result<JsonObject, String> {
    if from == to {
        return Ok(object.clone());
    }
    let known = |revision| require_known_revision(revision).map_err(|error| error.to_string());
    let (from, to) = (known(from)?, known(to)?);
    let mut cx = Context::new();
    let converted = convert_payload(root, object, from, to, &mut cx);
    report_losses(root.method, to.revision(), cx.losses());
    converted
}

/// Converts an object from one revision to another; losses are added to `cx`.
fn convert_payload(
    root: Payload<'_>,
    object: &JsonObject,
    from: KnownRevision,
    to: KnownRevision,
    cx: &mut Context,
) -> Result<JsonObject, String> {
    let text = convert(root, Some(object.text()), from, to, cx);
    // If the target revision defines no params for the method, the result is absent.
    match text.map_err(|refused| refused.to_string())? {
        Some(text) => text
            .parse::<JsonObject>()
            .map_err(|error| error.to_string()),
        None => Ok(JsonObject::new()),
    }
}

/// Returns the compiled-in revision, or the error for one that is not compiled in.
fn require_known_revision(revision: Revision) -> Result<KnownRevision, PeerError> {
    let missing = || PeerError::internal(format!("revision {revision} is not compiled in"));
    KnownRevision::parse(revision.as_str()).ok_or_else(missing)
}

/// Logs the losses of a conversion. `what` is the method or the type of the converted object.
fn report_losses(what: &str, to: Revision, losses: &[Loss]) {
    for loss in losses.iter().filter(|loss| loss.kind.is_lossy()) {
        tracing::debug!(what, revision = %to, %loss, "a conversion lost information");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a JSON object.
    fn object(text: &str) -> JsonObject {
        text.parse().expect(text)
    }

    /// Conversion leaves a plain result unchanged, so the result without conversion has the same members.
    #[test]
    fn plain_results_equal_converted_results() {
        let plain = [
            r#"{"content":[]}"#,
            r#"{"content":[{"type":"text","text":"a"},{"text":"b","type":"text"}],"isError":true}"#,
        ];
        for text in plain {
            let result = object(text);
            assert!(is_plain_result(&result, false), "{text}");
            let older = |from: &Revision| {
                crate::protocol::lifecycle_of(*from) == crate::Lifecycle::Initialize
            };
            for from in crate::protocol::revisions().filter(older) {
                let converted = convert_between(
                    MessagePart::Result.payload("tools/call"),
                    &result,
                    from,
                    home_revision(),
                );
                let converted = converted.expect("it fits");
                let strict = Tolerance::Strict;
                let taken = convert_received_result("tools/call", result.clone(), from, strict);
                let (taken, _) = taken.expect("it fits");
                let members = |object: &JsonObject| -> std::collections::BTreeMap<String, String> {
                    let members = object.iter();
                    members
                        .map(|(name, value)| (name.into_owned(), value.to_owned()))
                        .collect()
                };
                assert_eq!(members(&taken), members(&converted), "{text} of {from}");
            }
        }
        let home = object(r#"{"resultType":"complete","content":[]}"#);
        assert!(is_plain_result(&home, true) && !is_plain_result(&home, false));
        let others = [
            r#"{}"#,
            r#"{"resultType":"input_required","content":[]}"#,
            r#"{"resultType":null,"content":[]}"#,
            r#"{"content":[{"type":"text","text":1}]}"#,
            r#"{"content":[{"type":"text","type":"text"}]}"#,
            r#"{"content":[{"type":"text","text":"a","annotations":{}}]}"#,
            r#"{"content":[{"type":"image","data":"","mimeType":"image/png"}]}"#,
            r#"{"content":[],"content":[]}"#,
            r#"{"content":[],"isError":"no"}"#,
            r#"{"content":[],"structuredContent":{}}"#,
            r#"{"content":[],"_meta":{}}"#,
        ];
        for text in others {
            for is_home in [true, false] {
                assert!(!is_plain_result(&object(text), is_home), "{text}");
            }
        }
    }
}
