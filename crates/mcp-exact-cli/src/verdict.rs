//! Verdict on a document, which is a value of a definition or a message.
//!
//! The embedded model of the revision decides: an inspection finds every violation and every unknown member.

use mcp_exact_model::{Deviation, Model, UnknownMember, Wanted};
use mcp_exact_wire::{DecodeError, MAX_LISTED};
use serde::Serialize;

use crate::names::suggest_within;
use crate::registry::Entry;

/// Result of checking a document.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Part of the document that was checked.
    pub scope: Scope,
    /// The first findings; empty if the document is valid.
    pub findings: Vec<Finding>,
    /// Number of all violations, including those that `findings` omits.
    pub count: usize,
    /// The first members that the revision does not define, which are allowed; empty unless they are wanted.
    pub unknown: Vec<Finding>,
    /// Number of all members that the revision does not define, including those that `unknown` omits.
    pub unknown_count: usize,
    /// True if the type of the definition decodes the document.
    pub decodes: bool,
    /// Text to which the type of the definition encodes the document, if it is wanted; `None` if the type does not decode the document.
    pub encoded: Option<String>,
}

/// Part of a document that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The complete document, as the requested definition.
    Definition,
    /// The complete message.
    Message,
    /// Only the envelope, because the document is not a valid message.
    Envelope,
    /// Only the envelope, because the sender of the message is not specified.
    NoDirection,
    /// Only the envelope, because the request of the response is unknown and determines the type of the result.
    Response,
}

/// Violation of the schema by a document, or a member that the revision does not define.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// JSON pointer of the location in the document.
    pub pointer: String,
    /// Kind of the violation, such as the violated JSON Schema keyword.
    pub kind: &'static str,
    /// Description of the violation.
    pub message: String,
    /// Byte offset of the location in the document; `None` if the finding has none.
    #[serde(skip)]
    pub offset: Option<usize>,
}

impl Verdict {
    /// Checks a document as a value of the definition with this name, of the revision or of an extension.
    pub fn of(entry: &Entry, name: &str, bytes: &[u8], wanted: Wanted<'_>) -> Self {
        let mut verdict = Self::without_findings(Scope::Definition);
        let inspect = |model: &Model| model.inspect(name, bytes, wanted);
        match entry.models().find_map(inspect) {
            Some(inspection) => {
                verdict.count = inspection.count;
                verdict.findings = inspection
                    .deviations
                    .into_iter()
                    .map(Finding::from)
                    .collect();
                verdict.unknown = inspection.unknown.iter().map(Finding::from).collect();
                verdict.unknown_count = inspection.unknown_count;
                verdict.decodes = inspection.decodes;
                verdict.encoded = inspection.encoded;
            }
            // What nothing has checked is not accepted.
            None => {
                verdict.count = 1;
                verdict.findings.push(Finding {
                    pointer: String::new(),
                    kind: "anyOf",
                    message: format!("this program lacks the definition `{name}`; build it again"),
                    offset: None,
                });
            }
        }
        verdict
    }

    /// Creates a verdict without findings.
    pub fn without_findings(scope: Scope) -> Self {
        Self {
            scope,
            findings: Vec::new(),
            count: 0,
            unknown: Vec::new(),
            unknown_count: 0,
            decodes: false,
            encoded: None,
        }
    }

    /// Creates the verdict on a document that cannot be read.
    pub fn from_error(scope: Scope, error: &DecodeError) -> Self {
        Self {
            findings: vec![Finding::from(error)],
            count: 1,
            ..Self::without_findings(scope)
        }
    }

    /// Returns the verdict with another scope.
    pub fn with_scope(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// Returns true if the document has no violations.
    pub fn is_accepted(&self) -> bool {
        self.count == 0
    }

    /// Adds the verdict on a part of the document, which has this JSON pointer and begins at the byte offset `at`.
    pub fn add_part(&mut self, pointer: &str, at: usize, part: Self) {
        self.count += part.count;
        self.unknown_count += part.unknown_count;
        let room = |listed: &[Finding]| MAX_LISTED.saturating_sub(listed.len());
        let below = |finding: Finding| Finding {
            pointer: format!("{pointer}{}", finding.pointer),
            offset: finding.offset.map(|offset| at + offset),
            ..finding
        };
        let moved = part.findings.into_iter().take(room(&self.findings));
        self.findings.extend(moved.map(below));
        let moved = part.unknown.into_iter().take(room(&self.unknown));
        self.unknown.extend(moved.map(below));
        self.unknown.sort_by_key(|finding| finding.offset);
    }
}

impl Scope {
    /// Returns the name of the scope in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Message => "message",
            Self::Envelope | Self::NoDirection | Self::Response => "envelope",
        }
    }

    /// Returns the reason why only the envelope was checked, with a hint; `None` for other scopes.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::Definition | Self::Message | Self::Envelope => None,
            Self::NoDirection => Some(
                "only the envelope was checked; say who sends the message with --direction to check its params",
            ),
            Self::Response => Some(
                "only the envelope was checked: the request that is answered decides the type of a result; say with --method which one that is",
            ),
        }
    }
}

impl From<Deviation> for Finding {
    fn from(deviation: Deviation) -> Self {
        Self {
            pointer: deviation.pointer,
            kind: deviation.kind,
            message: deviation.message,
            offset: Some(deviation.offset),
        }
    }
}

impl From<&UnknownMember> for Finding {
    /// Creates the finding for a member; a similar name among the missing members is suggested.
    fn from(member: &UnknownMember) -> Self {
        let mut message = format!("{} does not define it", member.definition);
        let missing = member.missing_members.iter().map(String::as_str);
        suggest_within(2, &mut message, &member.name, missing);
        Self {
            pointer: member.pointer.clone(),
            kind: "unknown",
            message,
            offset: Some(member.offset),
        }
    }
}

impl From<&DecodeError> for Finding {
    fn from(error: &DecodeError) -> Self {
        Self {
            pointer: error.pointer().to_owned(),
            kind: error.kind().name(),
            message: error.detail().to_owned(),
            offset: Some(error.offset()),
        }
    }
}
