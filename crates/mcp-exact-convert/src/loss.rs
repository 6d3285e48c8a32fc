//! What a conversion says about what it did: losses, and the refusal to go on.
//!
//! Plain data with JSON pointers into the input; never holds a value of the message.

use std::borrow::Cow;
use std::fmt;

/// What happened to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossKind {
    /// It is not in the output.
    Dropped,
    /// Something else stands for it, from which it cannot be had back.
    Replaced,
    /// The input did not say it; the output says what a receiver has to assume.
    Defaulted,
    /// It is said in another way, and nothing is lost.
    Rewritten,
}

impl LossKind {
    /// A short stable name: `dropped`, `replaced`, `defaulted` or `rewritten`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Replaced => "replaced",
            Self::Defaulted => "defaulted",
            Self::Rewritten => "rewritten",
        }
    }

    /// Whether the output says something else than the input: everything but [`Rewritten`](Self::Rewritten).
    pub const fn is_lossy(self) -> bool {
        !matches!(self, Self::Rewritten)
    }
}

/// One difference between the input of a conversion and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The JSON pointer (RFC 6901) into the input; of something that only the output has, the place where it would be.
    pub pointer: String,
    /// What happened.
    pub kind: LossKind,
    /// Why, in words.
    pub reason: Cow<'static, str>,
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, reason) = (self.kind.name(), &self.reason);
        write!(f, "{kind} at {:?}: {reason}", self.pointer)
    }
}

/// A value that the target revision cannot say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused(Box<Refusal>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    pointer: String,
    reason: Cow<'static, str>,
    severity: Severity,
}

/// How far up a refusal goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// An optional member that holds the value can be left out and reported.
    Member,
    /// Leaving it out would change what the message means.
    Message,
}

impl Refused {
    pub(crate) fn new(
        pointer: String,
        reason: impl Into<Cow<'static, str>>,
        severity: Severity,
    ) -> Self {
        Self(Box::new(Refusal {
            pointer,
            reason: reason.into(),
            severity,
        }))
    }

    /// The JSON pointer (RFC 6901) into the input.
    pub fn pointer(&self) -> &str {
        &self.0.pointer
    }

    /// Why, in words, with the remedy where there is one.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    pub(crate) fn severity(&self) -> Severity {
        self.0.severity
    }

    pub(crate) fn into_reason(self) -> Cow<'static, str> {
        self.0.reason
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}", self.0.reason, self.0.pointer)
    }
}

impl std::error::Error for Refused {}
