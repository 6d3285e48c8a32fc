//! Kinds of results: the values of `resultType`, and the peers that may receive them (2026-07-28, `basic`, "Result Types").
//!
//! The checks return the kind of a result, or the reason why the result cannot be sent or used.

use std::borrow::Cow;

use mcp_exact_revisions::Lifecycle;
use mcp_exact_wire::{JsonObject, JsonRef, Revision};

use super::{Rules, client_request};
use crate::call_method::MethodName;
use crate::error::SendError;
use crate::extensions::ExtensionPolicy;
pub(crate) use crate::meta::RESULT_TYPE;
use crate::refusal::Refusal;

/// Value of `resultType` in a final result.
pub(crate) const COMPLETE: &str = "complete";
/// Value of `resultType` in a result that contains input requests.
pub(crate) const INPUT_REQUIRED: &str = "input_required";

/// Kind of a result, which the member `resultType` determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultKind {
    /// The final result of the request.
    Complete,
    /// The server needs input before it continues.
    InputRequired,
    /// A kind that an extension or a vendor defines.
    Extension,
}

/// Returns the unescaped value of `resultType`; `None` if the value is not a string. An absent member means `complete`: "Clients
/// MUST treat an absent `resultType` as `complete`".
fn result_type(kind: Option<JsonRef<'_>>) -> Option<Cow<'_, str>> {
    match kind {
        None => Some(Cow::Borrowed(COMPLETE)),
        Some(value) => value.as_str(),
    }
}

/// Returns true if an extension or a vendor defines the kind of a result, such as a task, in a revision whose results have
/// kinds: the schema of no revision describes it, and it is not converted.
pub fn is_extension_result(result: &JsonObject, revision: Revision) -> bool {
    let kind = result_type(result.view().find(RESULT_TYPE));
    crate::lifecycle(revision.as_str()) == Some(Lifecycle::Discover)
        && kind.is_some_and(|kind| !matches!(&*kind, COMPLETE | INPUT_REQUIRED))
}

impl Rules<'_> {
    /// Returns the kind of a result that the local server sends; `kind` is its member `resultType`.
    ///
    /// # Errors
    ///
    /// [`SendError::ResultType`] or [`SendError::Capability`] if the client does not support the result.
    pub(crate) fn check_sent_result(
        &self,
        method: &str,
        kind: Option<JsonRef<'_>>,
    ) -> Result<ResultKind, SendError> {
        if self.spec.lifecycle() == Lifecycle::Initialize {
            return Ok(ResultKind::Complete);
        }
        let text = || kind.map(JsonRef::text);
        let refused = |kind: &str| SendError::ResultType {
            method: method.to_owned(),
            kind: kind.to_owned(),
        };
        let Some(kind) = result_type(kind) else {
            return Err(refused(text().unwrap_or_default()));
        };
        match &*kind {
            COMPLETE => Ok(ResultKind::Complete),
            INPUT_REQUIRED => {
                if self.may_require_input(method) {
                    Ok(ResultKind::InputRequired)
                } else {
                    Err(refused(&kind))
                }
            }
            kind => match self.extensions.adding_result_type(kind) {
                Some(extension) if extension.is_declared(self.peer_capabilities.object) => {
                    Ok(ResultKind::Extension)
                }
                Some(extension) => Err(extension.missing_error(method)),
                None if self.is_vendor_result(kind) => Ok(ResultKind::Extension),
                None => Err(refused(kind)),
            },
        }
    }

    /// Returns the kind of a result that the local client has received; `kind` is its member `resultType`.
    ///
    /// # Errors
    ///
    /// [`Refusal::UnknownResultType`]: "A `resultType` of any value unrecognized by the client MUST be considered
    /// invalid."
    pub(crate) fn check_received_result(
        &self,
        kind: Option<JsonRef<'_>>,
    ) -> Result<ResultKind, Refusal> {
        if self.spec.lifecycle() == Lifecycle::Initialize {
            return Ok(ResultKind::Complete);
        }
        let Some(kind) = result_type(kind) else {
            let text = kind.map(JsonRef::text).unwrap_or_default();
            return Err(Refusal::UnknownResultType(text.to_owned()));
        };
        match &*kind {
            COMPLETE => Ok(ResultKind::Complete),
            INPUT_REQUIRED => Ok(ResultKind::InputRequired),
            kind if self.extensions.adding_result_type(kind).is_some() => Ok(ResultKind::Extension),
            kind if self.is_vendor_result(kind) => Ok(ResultKind::Extension),
            kind => Err(Refusal::UnknownResultType(kind.to_owned())),
        }
    }

    /// Returns true if a request may be answered with input requests in this revision.
    pub(crate) fn may_require_input(&self, method: &(impl MethodName + ?Sized)) -> bool {
        let rule = client_request(method, self.spec);
        let core = rule.is_some_and(|rule| rule.may_require_input);
        core && self.spec.has_input_required()
    }

    /// Returns true if the configuration allows the kind of result.
    fn is_vendor_result(&self, kind: &str) -> bool {
        self.extensions.policy == ExtensionPolicy::AllowAll
            || self
                .extensions
                .result_types
                .iter()
                .any(|known| known == kind)
    }
}

#[cfg(test)]
mod tests {
    use mcp_exact_revisions::{RevisionSpec, Side, V2026_07_28};
    use mcp_exact_wire::Json;

    use super::*;
    use crate::extensions::{Extension, Extensions};

    /// The kinds of the specification are `complete` and `input_required`; up to 2025-11-25 the member has no meaning.
    #[test]
    fn kinds_of_extensions_belong_to_no_revision() {
        for (result, is_of_extension) in [
            (r#"{}"#, false),
            (r#"{"resultType":"complete"}"#, false),
            (r#"{"resultType":"input\u005frequired"}"#, false),
            (r#"{"resultType":1}"#, false),
            (r#"{"resultType":"task"}"#, true),
        ] {
            let result: JsonObject = result.parse().expect("an object");
            for spec in mcp_exact_revisions::released() {
                let expected = is_of_extension && spec.lifecycle() == Lifecycle::Discover;
                let found = is_extension_result(&result, spec.revision());
                assert_eq!(found, expected, "{result} {}", spec.id());
            }
        }
    }

    /// "A `resultType` of any value unrecognized by the client MUST be considered invalid" (`basic`, "Result Types").
    #[test]
    fn both_peers_check_result_kinds() {
        let spec: &'static RevisionSpec = V2026_07_28;
        let mut extension = Extension::new("x/y");
        extension.result_types = vec!["y".to_owned()];
        let mut extensions = Extensions {
            negotiated: vec![extension],
            result_types: vec!["vendor".to_owned()],
            ..Extensions::default()
        };
        let kinds = |extensions: &Extensions, capabilities: &str| {
            let capabilities: JsonObject = capabilities.parse().expect("an object");
            let rules = |local| Rules {
                spec,
                local_role: local,
                capabilities: (&capabilities).into(),
                peer_capabilities: (&capabilities).into(),
                extensions,
            };
            ["complete", "y", "vendor", "other"].map(|kind| {
                let kind = Json::string(kind);
                let sent = rules(Side::Server).check_sent_result("tools/call", Some(kind.view()));
                let taken = rules(Side::Client).check_received_result(Some(kind.view()));
                (sent.ok(), taken.ok())
            })
        };
        let (complete, extension) = (Some(ResultKind::Complete), Some(ResultKind::Extension));
        let both = (extension, extension);
        let declared = r#"{"extensions":{"x/y":{}}}"#;
        assert_eq!(
            kinds(&extensions, declared),
            [(complete, complete), both, both, (None, None)]
        );
        assert_eq!(
            kinds(&extensions, "{}"),
            [(complete, complete), (None, extension), both, (None, None)]
        );
        extensions.policy = ExtensionPolicy::AllowAll;
        assert_eq!(kinds(&extensions, declared)[3], both);
    }
}
