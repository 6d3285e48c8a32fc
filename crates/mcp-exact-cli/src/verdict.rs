//! Verdict on a document, which is a value of a definition or a message.
//!
//! Findings come from the decoder and `validate()`; if a document does not decode, an inspection with the model adds
//! the findings after the first error.

use mcp_exact_wire::{DecodeError, Definition, Format, Json, MAX_LISTED, Violation, Violations};
use serde::Serialize;

use crate::inspection::{Deviation, Inspection, UnknownMember};
use crate::names::suggest;
use crate::place::offset_of;
use crate::registry::Entry;
use crate::value::Value;

/// Result of checking a document.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Part of the document that was checked.
    pub scope: Scope,
    /// The first findings; empty if the document is valid.
    pub findings: Vec<Finding>,
    /// Number of all violations, including those that `findings` omits.
    pub count: usize,
    /// Members that the revision does not define, which are allowed.
    pub unknown: Vec<Finding>,
    /// Text to which the type encodes the decoded document; `None` if the document does not decode.
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
    /// Byte offset of the location in the document; present only if the document does not decode.
    #[serde(skip)]
    pub offset: Option<usize>,
}

/// Checker of documents against one revision, with its options.
#[derive(Debug, Clone, Copy)]
pub struct Checker<'a> {
    /// The revision.
    pub entry: &'a Entry,
    /// True if members that the revision does not define are listed in the verdict.
    pub wants_unknown: bool,
}

impl<'a> Checker<'a> {
    /// Creates a checker for a revision that does not list unknown members.
    pub fn new(entry: &'a Entry) -> Self {
        Self {
            entry,
            wants_unknown: false,
        }
    }

    /// Checks a document as a value of a definition.
    pub fn check_definition(self, definition: &Definition, bytes: &[u8]) -> Verdict {
        let mut verdict = match definition.inspect(bytes) {
            Ok(inspected) => {
                let encoded = Some(inspected.encoded);
                Verdict::from_violations(Scope::Definition, &inspected.violations, encoded)
            }
            Err(error) => Verdict::from_error(Scope::Definition, &error),
        };
        let is_rejected = verdict.encoded.is_none();
        if (is_rejected || self.wants_unknown)
            && let Some(inspection) = inspect(self.entry, definition.name, bytes)
        {
            verdict.unknown = unknown_member_findings(&inspection);
            if is_rejected {
                verdict.add_deviations(&inspection, bytes);
            }
        }
        verdict
    }

    /// Checks a document as a value of the definition with this name, which need not have a Rust type: a union of results
    /// that another definition contains, or a definition of an extension.
    pub fn check_named(self, name: &str, bytes: &[u8]) -> Verdict {
        if let Some(definition) = self.entry.find(name) {
            return self.check_definition(definition, bytes);
        }
        let mut verdict = Verdict::without_findings(Scope::Definition);
        match mcp_exact_wire::from_slice::<Json>(bytes) {
            Ok(json) => verdict.encoded = Some(json.text().to_owned()),
            Err(error) => return Verdict::from_error(Scope::Definition, &error),
        }
        match inspect(self.entry, name, bytes) {
            Some(inspection) => {
                verdict.unknown = unknown_member_findings(&inspection);
                verdict.add_deviations(&inspection, bytes);
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
}

impl Verdict {
    /// Creates a verdict without findings.
    pub fn without_findings(scope: Scope) -> Self {
        Self {
            scope,
            findings: Vec::new(),
            count: 0,
            unknown: Vec::new(),
            encoded: None,
        }
    }

    /// Creates the verdict on a document that has decoded, from the violations that `validate()` has found.
    pub fn from_violations(scope: Scope, violations: &Violations, encoded: Option<String>) -> Self {
        Self {
            findings: violations.listed().iter().map(Finding::from).collect(),
            count: violations.count(),
            encoded,
            ..Self::without_findings(scope)
        }
    }

    /// Creates the verdict on a document that has not decoded.
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

    /// Returns true if the document decodes and has no violations.
    pub fn is_accepted(&self) -> bool {
        self.count == 0
    }

    /// Adds the verdict on a part of the document; `pointer` is the JSON pointer of the part.
    pub fn add_part(&mut self, pointer: &str, part: Self) {
        self.count += part.count;
        let room = MAX_LISTED.saturating_sub(self.findings.len());
        let below = |finding: Finding| Finding {
            pointer: format!("{pointer}{}", finding.pointer),
            offset: None,
            ..finding
        };
        let moved = part.findings.into_iter().take(room);
        self.findings.extend(moved.map(below));
        self.unknown.extend(part.unknown.into_iter().map(below));
    }

    /// Adds the deviations that an inspection has found after the first error, at which the decoder has stopped.
    fn add_deviations(&mut self, inspection: &Inspection, bytes: &[u8]) {
        let known = self.findings.first().map(|first| first.pointer.clone());
        let is_new = |found: &&Deviation| Some(&found.pointer) != known.as_ref();
        let mut more: Vec<Finding> = inspection
            .deviations
            .iter()
            .filter(is_new)
            .map(|found| Finding {
                pointer: found.pointer.clone(),
                kind: found.kind,
                message: found.message.clone(),
                offset: offset_of(bytes, &found.pointer),
            })
            .collect();
        // Several members that one object lacks have the same pointer.
        if let Some(first) = self.findings.first().cloned() {
            let same = inspection.deviations.iter();
            let same = same.filter(|found| found.pointer == first.pointer);
            more.extend(
                same.filter(|found| found.message != first.message && found.kind == "required")
                    .map(|found| Finding {
                        message: found.message.clone(),
                        ..first.clone()
                    }),
            );
        }
        self.findings.extend(more);
        self.findings.sort_by_key(|finding| finding.offset);
        self.count = self.findings.len();
        self.findings.truncate(MAX_LISTED);
    }
}

/// Inspects text as a value of a definition of a revision or of its extensions; `None` if it is no JSON, or if none of
/// them has the definition.
fn inspect(entry: &Entry, name: &str, bytes: &[u8]) -> Option<Inspection> {
    let json: Json = mcp_exact_wire::from_slice(bytes).ok()?;
    let mut models = entry.models();
    models.find_map(|model| model.inspect(name, Value::of(&json), has_format))
}

/// Returns true if a text has the string format, or if the format is unknown.
fn has_format(format: &str, text: &str) -> bool {
    Format::from_name(format).is_none_or(|format| format.accepts(text))
}

/// Returns a finding for each unknown member; a similar name among the missing members is suggested.
fn unknown_member_findings(inspection: &Inspection) -> Vec<Finding> {
    let finding = |found: &UnknownMember| {
        let name = found.pointer.rsplit('/').next().unwrap_or_default();
        let mut message = format!("{} does not define it", found.definition);
        let near = found.missing_members.iter().map(String::as_str);
        let near = near.filter(|missing_members| strsim::osa_distance(missing_members, name) <= 2);
        suggest(&mut message, name, near);
        Finding {
            pointer: found.pointer.clone(),
            kind: "unknown",
            message,
            offset: None,
        }
    };
    inspection.unknown.iter().map(finding).collect()
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

impl From<&Violation> for Finding {
    fn from(violation: &Violation) -> Self {
        Self {
            pointer: violation.pointer.clone(),
            kind: violation.kind.name(),
            message: violation.message.clone(),
            offset: None,
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
