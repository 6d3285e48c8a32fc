//! What a check finds out about one document, in one form for definitions and messages.
//!
//! Takes what the wire crate says, gives plain findings; prints nothing.

use mcp_exact_wire::{DecodeError, Definition, MAX_LISTED, Violation, Violations};
use serde::Serialize;

/// What a check found out.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// How much of the document was checked.
    pub scope: Scope,
    /// The first findings; none when the document is valid.
    pub findings: Vec<Finding>,
    /// How many there are, listed or not.
    pub count: usize,
    /// What the type encodes, if the document decoded.
    pub encoded: Option<String>,
}

/// How much of a document was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of it, as the definition that was asked for.
    Definition,
    /// All of a message.
    Message,
    /// The envelope of a message, because it is not one.
    Envelope,
    /// The envelope of a message, because nobody said who sends it.
    NoDirection,
    /// The envelope of a message, because only the request that it answers gives a result its type.
    Response,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where, as a JSON pointer.
    pub pointer: String,
    /// The kind of rule, in one word.
    pub kind: &'static str,
    /// What is wrong, in words.
    pub message: String,
    /// Where in the text, in bytes, if the document did not decode.
    #[serde(skip)]
    pub offset: Option<usize>,
}

impl Verdict {
    /// The verdict on a document as `definition`.
    pub fn of(definition: &Definition, bytes: &[u8]) -> Self {
        match (definition.inspect)(bytes) {
            Ok(inspected) => Self::decoded(
                Scope::Definition,
                &inspected.violations,
                Some(inspected.encoded),
            ),
            Err(error) => Self::rejected(Scope::Definition, &error),
        }
    }

    /// The verdict on a document that decoded.
    pub fn decoded(scope: Scope, violations: &Violations, encoded: Option<String>) -> Self {
        Self {
            scope,
            findings: violations.listed().iter().map(Finding::from).collect(),
            count: violations.count(),
            encoded,
        }
    }

    /// The verdict on a document that did not decode.
    pub fn rejected(scope: Scope, error: &DecodeError) -> Self {
        Self {
            scope,
            findings: vec![Finding::from(error)],
            count: 1,
            encoded: None,
        }
    }

    /// The same verdict on another part of the document.
    pub fn with(self, scope: Scope) -> Self {
        Self { scope, ..self }
    }

    /// Whether the document decoded and nothing is wrong with it.
    pub fn accepted(&self) -> bool {
        self.count == 0
    }

    /// Takes over what was found in the part at `pointer`.
    pub fn add_part(&mut self, pointer: &str, part: Self) {
        self.count += part.count;
        let room = MAX_LISTED.saturating_sub(self.findings.len());
        let moved = part.findings.into_iter().take(room);
        self.findings.extend(moved.map(|finding| Finding {
            pointer: format!("{pointer}{}", finding.pointer),
            offset: None,
            ..finding
        }));
    }
}

impl Scope {
    /// A short stable name of what was checked.
    pub fn name(self) -> &'static str {
        match self {
            Self::Definition => "definition",
            Self::Message => "message",
            Self::Envelope | Self::NoDirection | Self::Response => "envelope",
        }
    }

    /// Why not everything was checked, and what helps.
    pub fn note(self) -> Option<&'static str> {
        match self {
            Self::Definition | Self::Message | Self::Envelope => None,
            Self::NoDirection => Some(
                "only the envelope was checked; say who sends the message with --direction to check its params",
            ),
            Self::Response => Some(
                "only the envelope was checked: the request that is answered decides the type of a result; check the result by itself with --type",
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
