//! Trace context of a request (W3C Trace Context, W3C Baggage; 2026-07-28: `basic`, "OpenTelemetry trace
//! context"; SEP-414 for older revisions).
//!
//! The context is read from and written to members of `_meta`. This module creates no ids and depends on no tracing library.

use mcp_exact_wire::{Json, JsonObject, JsonRef, ObjectRef};

/// Members of `_meta` that carry the context.
const CONTEXT_MEMBERS: [&str; 3] = ["traceparent", "tracestate", "baggage"];

/// Maximum length in bytes of `tracestate` and of `baggage`; longer values are omitted.
///
/// All systems must propagate a `baggage` of this length (W3C Baggage, section 3.3.2), which exceeds the length that is
/// required for `tracestate`.
const MAX_VALUE_BYTES: usize = 8192;

/// Context of a distributed trace that a request belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    /// Value of `traceparent`, which was checked.
    traceparent: String,
    /// State of tracing systems, passed unchanged.
    pub tracestate: Option<String>,
    /// Properties that the application has added to the trace.
    pub baggage: Option<String>,
}

impl TraceContext {
    /// Creates a context from a `traceparent`, such as `00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01`. Returns `None`
    /// if the string is not a valid `traceparent`.
    pub fn new(traceparent: impl Into<String>) -> Option<Self> {
        let traceparent = traceparent.into();
        is_traceparent(&traceparent).then_some(Self {
            traceparent,
            tracestate: None,
            baggage: None,
        })
    }

    /// Returns the `traceparent`: version, trace id, parent id and flags, in hexadecimal digits.
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// Reads the context of a message from its `_meta`; `None` without a valid `traceparent`.
    pub fn from_meta(meta: ObjectRef<'_>) -> Option<Self> {
        let [parent, state, baggage] = meta.find_each(CONTEXT_MEMBERS);
        let text = |member: Option<JsonRef<'_>>| {
            let text = member?.as_str()?;
            (text.len() <= MAX_VALUE_BYTES).then(|| text.into_owned())
        };
        Some(Self {
            tracestate: text(state),
            baggage: text(baggage),
            ..Self::new(text(parent)?)?
        })
    }

    /// Writes the context to the `_meta` of a message, in place of the one that it has. A baggage remains if the context has
    /// none.
    #[must_use]
    pub fn written_to(&self, meta: ObjectRef<'_>) -> JsonObject {
        let own = self.to_members();
        let [parent, state, baggage] = CONTEXT_MEMBERS;
        let is_replaced = |name: &str| {
            name == parent || name == state || (name == baggage && self.baggage.is_some())
        };
        let others = meta.iter().filter(|(name, _)| !is_replaced(name));
        let mut written: JsonObject = others
            .map(|(name, value)| (name.into_owned(), value.to_json()))
            .collect();
        for (name, value) in own {
            if let Some(value) = value {
                written.insert(name, value);
            }
        }
        written
    }

    /// Returns the members of `_meta` that carry the context.
    pub(crate) fn to_members(&self) -> [(&'static str, Option<Json>); CONTEXT_MEMBERS.len()] {
        let [parent, state, baggage] = CONTEXT_MEMBERS;
        [
            (parent, Some(Json::string(&self.traceparent))),
            (state, self.tracestate.as_deref().map(Json::string)),
            (baggage, self.baggage.as_deref().map(Json::string)),
        ]
    }
}

/// Returns true if a text is a valid `traceparent` (W3C Trace Context, section 3.2); later versions may be longer, and
/// ids of zeros are invalid.
fn is_traceparent(text: &str) -> bool {
    let hex = |part: &str, length: usize| {
        part.len() == length
            && part
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_id = |part: &str, length| hex(part, length) && part.bytes().any(|byte| byte != b'0');
    let mut parts = text.splitn(5, '-');
    let mut next = || parts.next().unwrap_or_default();
    let (version, trace, parent, flags) = (next(), next(), next(), next());
    let is_longer = parts.next().is_some();
    hex(version, 2)
        && version != "ff"
        && is_id(trace, 32)
        && is_id(parent, 16)
        && hex(flags, 2)
        && (version != "00" || !is_longer)
        && text.len() <= MAX_VALUE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Valid `traceparent` of version 00.
    const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    /// Valid `traceparent` values of this and later versions are accepted, and malformed values are rejected.
    #[test]
    fn traceparents_are_checked() {
        let later = TRACEPARENT.replacen("00", "01", 1);
        for text in [TRACEPARENT, &later, &format!("{later}-more")] {
            assert!(TraceContext::new(text).is_some(), "{text}");
        }
        for text in [
            "",
            "00",
            &TRACEPARENT[1..],
            &TRACEPARENT.to_uppercase(),
            &format!("{TRACEPARENT}-more"),
            &TRACEPARENT.replacen("00", "ff", 1),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert!(TraceContext::new(text).is_none(), "{text}");
        }
    }

    /// A context that was written to members of `_meta` is read as an equal context.
    #[test]
    fn members_are_read_as_written() {
        let mut context = TraceContext::new(TRACEPARENT).expect("valid");
        context.baggage = Some("k=v".to_owned());
        let members = context.to_members().into_iter();
        let members = members.filter_map(|(name, value)| Some((name, value?)));
        let meta: JsonObject = members.collect();
        assert_eq!(TraceContext::from_meta(meta.view()), Some(context));
        let bad: JsonObject = r#"{"traceparent":1,"baggage":"k=v"}"#.parse().expect("an object");
        assert_eq!(TraceContext::from_meta(bad.view()), None);
    }
}
