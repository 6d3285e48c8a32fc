//! What a message says about its operation: method, target, resource, trace context, and how a request has ended.

use std::borrow::Cow;

use mcp_exact_revisions::{MethodId, method};
use mcp_exact_session::TraceContext;
#[cfg(feature = "opentelemetry")]
use mcp_exact_wire::ObjectRef;
use mcp_exact_wire::{HeadKind, JsonObject, JsonRef, MessageHead, RequestId};

use super::names;

/// Member of `_meta` that contains the revision of a request (2026-07-28, `basic`, "Per-Request Protocol Fields").
const REVISION: &str = "io.modelcontextprotocol/protocolVersion";

/// Maximum length in bytes of a method, of the id of a request and of a URI in a span.
const MAX_VALUE_BYTES: usize = 256;

/// Calls `handle` with the head and the text of each message of a frame, which may be a batch.
pub(super) fn for_each_message(frame: &[u8], handle: &mut dyn FnMut(&MessageHead<'_>, &str)) {
    let Ok(text) = std::str::from_utf8(frame) else {
        return;
    };
    let Ok(head) = MessageHead::parse(text) else {
        return;
    };
    if head.kind != HeadKind::Batch {
        handle(&head, text);
        return;
    }
    let Ok(batch) = text.parse::<mcp_exact_wire::Json>() else {
        return;
    };
    let Ok(messages) = batch.view().decode_as::<Vec<JsonObject>>() else {
        return;
    };
    for message in messages {
        if let Ok(head) = MessageHead::parse(message.text()) {
            handle(&head, message.text());
        }
    }
}

/// Returns the text of an id; `None` for null and invalid ids.
pub(super) fn id_text(id: &str) -> Option<String> {
    match id.as_bytes().first()? {
        b'"' => {
            let id: mcp_exact_wire::Json = id.parse().ok()?;
            Some(id.view().as_str()?.into_owned())
        }
        b'-' | b'0'..=b'9' => Some(id.to_owned()),
        _ => None,
    }
}

/// Returns the id of a request; `None` for other messages.
pub(super) fn request_id(head: &MessageHead<'_>) -> Option<String> {
    let is_request = head.kind == HeadKind::Request;
    head.id.filter(|_| is_request).and_then(id_text)
}

/// Returns the id of a received request; `None` for other messages, and for ids that are invalid or long.
pub(super) fn received_id(head: &MessageHead<'_>) -> Option<RequestId> {
    let is_request = head.kind == HeadKind::Request;
    let is_read = |id: &&str| is_request && id.len() <= MAX_VALUE_BYTES;
    let id: mcp_exact_wire::Json = head.id.filter(is_read)?.parse().ok()?;
    id.decode_as().ok()
}

/// Returns the longest beginning of a text that a span may contain.
pub(super) fn shorten(text: &str) -> &str {
    let mut end = text.len().min(MAX_VALUE_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Kind of what a call names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TargetKind {
    /// The call names a tool.
    Tool,
    /// The call names a prompt.
    Prompt,
}

/// Parts of a request or notification that its operation needs.
#[derive(Debug, Default)]
pub(super) struct CallHead {
    /// Method of the message.
    pub(super) method: String,
    /// Kind and name of the tool or prompt that the message names.
    pub(super) target: Option<(TargetKind, String)>,
    /// URI of the resource that the message names, without what may be a secret.
    pub(super) uri: Option<String>,
    /// Revision that the message states.
    pub(super) revision: Option<&'static str>,
    /// Trace context of the message.
    #[cfg_attr(not(feature = "opentelemetry"), allow(dead_code))]
    pub(super) trace: Option<TraceContext>,
    /// Id of the request that the message cancels.
    pub(super) cancelled: Option<String>,
}

impl CallHead {
    /// Reads a request or notification.
    pub(super) fn read(head: &MessageHead<'_>) -> Self {
        let mut call = Self {
            method: shorten(head.method.as_deref().unwrap_or_default()).to_owned(),
            ..Self::default()
        };
        let params = head.params.and_then(|params| params.parse().ok());
        let params: JsonObject = params.unwrap_or_default();
        let members = ["_meta", "name", "uri", "requestId"];
        let [meta, name, uri, cancelled] = params.view().find_each(members);
        if let Some(meta) = meta.and_then(JsonRef::object) {
            let revision = meta.find(REVISION).and_then(|revision| revision.as_str());
            call.revision = revision.and_then(|revision| known_revision(&revision));
            call.trace = TraceContext::from_meta(meta);
        }
        let text = |value: Option<JsonRef<'_>>| value?.as_str().map(Cow::into_owned);
        let method = MethodId::from_name(&call.method);
        let target = match method {
            MethodId::ToolsCall => Some(TargetKind::Tool),
            MethodId::PromptsGet => Some(TargetKind::Prompt),
            _ => None,
        };
        // Longer names are shown nowhere.
        let name = text(name).filter(|name| name.len() <= names::MAX_NAME_BYTES);
        call.target = target.zip(name);
        match method {
            _ if method.target_param() == Some("uri") => {
                call.uri = text(uri).map(|uri| without_secrets(&uri));
            }
            MethodId::NotificationsCancelled => {
                call.cancelled = cancelled.and_then(|id| id_text(id.text()));
            }
            _ => {}
        }
        call
    }
}

/// Returns a URI without user name, password, query and fragment, which may contain credentials.
fn without_secrets(uri: &str) -> String {
    let uri = uri.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = uri.split_once("://") else {
        return shorten(uri).to_owned();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or_default();
    shorten(&format!("{scheme}://{host}{path}")).to_owned()
}

/// Returns the identifier of a revision, if the revision is known.
fn known_revision(id: &str) -> Option<&'static str> {
    mcp_exact_revisions::find(id).map(mcp_exact_revisions::RevisionSpec::id)
}

/// Returns the revision in the result of `initialize`.
pub(super) fn negotiated_revision(result: &str) -> Option<&'static str> {
    let result: JsonObject = result.parse().ok()?;
    let revision = result
        .view()
        .find("protocolVersion")?
        .as_str()?
        .into_owned();
    known_revision(&revision)
}

/// How a request has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The response is a result.
    Success,
    /// The result of the tool states an error.
    ToolError,
    /// The response is an error with this code.
    Error(String),
}

/// Returns how a response ends a request of this method.
pub(super) fn response_end(method: &str, head: &MessageHead<'_>) -> End {
    if let Some(error) = head.error {
        let error: Option<JsonObject> = error.parse().ok();
        let code = error.and_then(|error| Some(error.view().find("code")?.text().to_owned()));
        let is_code = |code: &String| code.parse::<i64>().is_ok();
        return End::Error(code.filter(is_code).unwrap_or_else(|| "_OTHER".to_owned()));
    }
    let result = head.result.unwrap_or_default();
    // Most results have no such member, and are not parsed.
    if method != method::TOOLS_CALL || !result.contains("\"isError\"") {
        return End::Success;
    }
    let result: Option<JsonObject> = result.parse().ok();
    let is_error = result.is_some_and(|result| {
        let is_error = result.view().find("isError");
        is_error.is_some_and(|is_error| is_error.text() == "true")
    });
    if is_error {
        End::ToolError
    } else {
        End::Success
    }
}

/// Returns a request or notification with a trace context in its `_meta`, in place of the one that it had; `None` if the
/// message cannot be changed.
#[cfg(feature = "opentelemetry")]
pub(super) fn with_trace(
    text: &str,
    head: &MessageHead<'_>,
    trace: &TraceContext,
) -> Option<String> {
    let mut params = match head.params {
        Some(params) => params.parse::<JsonObject>().ok()?,
        None => JsonObject::new(),
    };
    let meta = params.view().find("_meta");
    let meta = match meta {
        Some(meta) => meta.object()?,
        None => ObjectRef::default(),
    };
    let meta = trace.written_to(meta);
    params.insert("_meta", meta);
    Some(match head.params {
        Some(before) => {
            let start = before.as_ptr().addr() - text.as_ptr().addr();
            let (start, end) = (&text[..start], &text[start + before.len()..]);
            format!("{start}{}{end}", params.text())
        }
        None => {
            let start = text.trim_end().strip_suffix('}')?;
            format!("{start},\"params\":{}}}", params.text())
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> CallHead {
        CallHead::read(&MessageHead::parse(text).expect("a message"))
    }

    /// Credentials in the URI of a resource are left out.
    #[test]
    fn uris_lose_their_secrets() {
        let uri = |uri| {
            let params = format!(r#"{{"uri":"{uri}"}}"#);
            let text = format!(r#"{{"id":1,"method":"resources/read","params":{params}}}"#);
            read(&text).uri.expect("a URI")
        };
        assert_eq!(uri("file:///a/b.txt"), "file:///a/b.txt");
        assert_eq!(uri("db://u:p@host:1/t?key=k#f"), "db://host:1/t");
        assert_eq!(uri("urn:a?b"), "urn:a");
    }

    /// Text and numeric ids are equal however they are written; null is no id.
    #[test]
    fn ids_have_one_text() {
        assert_eq!(id_text("7").as_deref(), Some("7"));
        assert_eq!(id_text(r#""\u0061""#).as_deref(), Some("a"));
        assert_eq!(id_text("null"), None);
    }

    /// Errors have their code, and a tool's error is one of its own.
    #[test]
    fn responses_end_their_requests() {
        let end = |text| response_end("tools/call", &MessageHead::parse(text).expect("a message"));
        assert_eq!(end(r#"{"id":1,"result":{}}"#), End::Success);
        assert_eq!(end(r#"{"id":1,"result":{"isError":false}}"#), End::Success);
        assert_eq!(end(r#"{"id":1,"result":{"isError":true}}"#), End::ToolError);
        let error = end(r#"{"id":1,"error":{"code":-32602,"message":"m"}}"#);
        assert_eq!(error, End::Error("-32602".to_owned()));
        let error = end(r#"{"id":1,"error":{"code":"x"}}"#);
        assert_eq!(error, End::Error("_OTHER".to_owned()));
    }

    /// A trace context is written into messages with and without parameters, and replaces the one that was there.
    #[cfg(feature = "opentelemetry")]
    #[test]
    fn trace_is_written_into_meta() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        let context = TraceContext::new(trace).expect("a context");
        for (before, after) in [
            (
                r#"{"id":1,"method":"m"}"#,
                r#"{"id":1,"method":"m","params":{"_meta":{T}}}"#,
            ),
            (
                r#"{"params":{"a":1},"method":"m"}"#,
                r#"{"params":{"a":1,"_meta":{T}},"method":"m"}"#,
            ),
            (
                r#"{"method":"m","params":{"_meta":{"traceparent":"x","tracestate":"s","baggage":"b"}}}"#,
                r#"{"method":"m","params":{"_meta":{T,"baggage":"b"}}}"#,
            ),
        ] {
            let head = MessageHead::parse(before).expect("a message");
            let changed = with_trace(before, &head, &context).expect("it is changed");
            let after = after.replace('T', &format!(r#""traceparent":"{trace}""#));
            let [changed, after]: [serde_json::Value; 2] =
                [changed, after].map(|text| serde_json::from_str(&text).expect("JSON"));
            assert_eq!(changed, after);
        }
    }
}
