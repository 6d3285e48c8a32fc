//! Reports of a conversion: losses, and refusals.
//!
//! Plain data with JSON pointers into the input; never holds a value of the message.

use std::borrow::Cow;
use std::fmt;

use crate::KnownRevision;
use crate::place::{Place, Pointers};

/// Kind of change of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossKind {
    /// It is not in the output.
    Dropped,
    /// The output has another value, from which the original value cannot be recovered.
    Replaced,
    /// The input did not have it; the output states what a receiver has to assume.
    Defaulted,
    /// It is expressed in another way, and nothing is lost.
    Rewritten,
    /// It stays as it is, though it breaks a rule of the target revision: a value, a bound or a format that the source
    /// revision did not have.
    Kept,
}

impl LossKind {
    /// A short stable name: `dropped`, `replaced`, `defaulted`, `rewritten` or `kept`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Replaced => "replaced",
            Self::Defaulted => "defaulted",
            Self::Rewritten => "rewritten",
            Self::Kept => "kept",
        }
    }

    /// Returns true if the output says something else than the input: all but [`Rewritten`](Self::Rewritten) and
    /// [`Kept`](Self::Kept).
    pub const fn is_lossy(self) -> bool {
        !matches!(self, Self::Rewritten | Self::Kept)
    }
}

/// One difference between the input of a conversion and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The JSON pointer (RFC 6901) into the input; of something that only the output has, the place where it would be. One of
    /// more than [`MAX_POINTER`](mcp_exact_wire::MAX_POINTER) bytes is cut there and ends in `…`.
    pub pointer: String,
    /// The tool, prompt or resource that it is about, by its name: ``tool `echo` ``.
    pub subject: Option<String>,
    /// Kind of change.
    pub kind: LossKind,
    /// The revision that the step led to in which it happened.
    pub revision: KnownRevision,
    /// Reason for the change, and its effect on a peer of that revision.
    pub reason: Cow<'static, str>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}", self.kind.name(), self.pointer)?;
        if let Some(subject) = &self.subject {
            write!(f, " ({subject})")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// A value that the target revision cannot express.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(Box<Reasoned>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Reasoned {
    pointer: String,
    reason: Cow<'static, str>,
}

/// Level up to which a refusal propagates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// An optional member that holds the value can be left out and reported.
    Member,
    /// Omitting it would change the meaning of the message.
    Message,
}

/// Result of a step.
pub(crate) type Step<T> = Result<T, Box<Refusal>>;

/// A refusal while a conversion runs.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub place: Place,
    pub reason: Cow<'static, str>,
    pub severity: Severity,
}

impl Refusal {
    pub fn new(
        place: Place,
        reason: impl Into<Cow<'static, str>>,
        severity: Severity,
    ) -> Box<Self> {
        Box::new(Self {
            place,
            reason: reason.into(),
            severity,
        })
    }
}

/// A loss while a conversion runs.
#[derive(Debug)]
pub(crate) struct Noted {
    pub place: Place,
    pub revision: KnownRevision,
    pub kind: LossKind,
    pub reason: Cow<'static, str>,
    /// Place inside the value that the reason is about, if it is not the whole value.
    pub inside: Option<Place>,
    /// Place of a dropped member at the time when it was dropped, which may differ from its place in the input.
    pub stood: Option<Place>,
}

impl Noted {
    /// The places that it names.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        std::iter::once(&self.place).chain(&self.inside)
    }

    /// The loss with pointers; `subject` names the thing that the value at a pointer belongs to.
    pub fn into_loss(self, pointers: &Pointers, subject: impl Fn(&str) -> Option<String>) -> Loss {
        let reason = match &self.inside {
            None => self.reason,
            Some(inside) => format!("{} at {}", self.reason, pointers.of(inside)).into(),
        };
        let pointer = pointers.of(&self.place);
        Loss {
            subject: subject(&pointer),
            pointer,
            kind: self.kind,
            revision: self.revision,
            reason,
        }
    }
}

impl Refused {
    pub(crate) fn new(pointer: impl Into<String>, reason: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Reasoned {
            pointer: pointer.into(),
            reason: reason.into(),
        }))
    }

    /// The JSON pointer (RFC 6901) into the input.
    pub fn pointer(&self) -> &str {
        &self.0.pointer
    }

    /// Returns the reason in words, with the remedy if there is one.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}", self.0.reason, self.0.pointer)
    }
}

impl std::error::Error for Refused {}
