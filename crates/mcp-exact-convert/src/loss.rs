//! Reports of conversions: losses and refusals.
//!
//! Reports contain JSON pointers into the input, names and reasons, and no other values of the message.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::KnownRevision;
use crate::place::Place;

/// Kind of change of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LossKind {
    /// The member is not in the output.
    Dropped,
    /// The output has a different value, from which the original value cannot be recovered.
    Replaced,
    /// The input does not have the member; the output contains the value that a receiver has to assume.
    Defaulted,
    /// The value is expressed in another way, and no information is lost.
    Rewritten,
    /// The value is unchanged, although it violates a rule of the target: its allowed values, bounds or format.
    Kept,
}

impl LossKind {
    /// Returns the stable short name of the kind: `dropped`, `replaced`, `defaulted`, `rewritten` or `kept`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Replaced => "replaced",
            Self::Defaulted => "defaulted",
            Self::Rewritten => "rewritten",
            Self::Kept => "kept",
        }
    }

    /// Returns true if the output has another meaning: for all kinds except `Rewritten` and `Kept`.
    pub const fn is_lossy(self) -> bool {
        !matches!(self, Self::Rewritten | Self::Kept)
    }
}

/// One difference between the input of a conversion and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// JSON pointer (RFC 6901) into the input; for a member that only the output has, the pointer it would have in the
    /// input. A pointer longer than [`MAX_POINTER`](mcp_exact_wire::MAX_POINTER) bytes is truncated and ends in `…`.
    pub pointer: Arc<str>,
    /// Kind and name of the tool, prompt or resource that contains the value, such as ``tool `echo` ``.
    pub subject: Option<Arc<str>>,
    /// Kind of the change.
    pub kind: LossKind,
    /// Target revision of the step in which the change happened.
    pub revision: KnownRevision,
    /// Reason for the change, and its effect on a peer that uses [`revision`](Self::revision).
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

/// Error of a conversion: the input is invalid, or the target revision cannot express a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertError(Box<RefusalDetails>);

/// Contents of a [`ConvertError`], boxed so that results are small.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RefusalDetails {
    pointer: String,
    reason: Reason,
}

/// Reason for a loss or a refusal: a constant or a composed text.
pub(crate) type Reason = Cow<'static, str>;

/// How far a refusal propagates through the enclosing values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The enclosing optional member is dropped and reported.
    Member,
    /// The complete message is refused, because dropping the value would change its meaning.
    Message,
}

/// Result of one conversion step.
pub(crate) type Step<T> = Result<T, Box<Refusal>>;

/// A refusal during a conversion.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub place: Place,
    pub reason: Reason,
    pub severity: Severity,
}

impl Refusal {
    pub fn new(place: Place, reason: impl Into<Reason>, severity: Severity) -> Box<Self> {
        Box::new(Self {
            place,
            reason: reason.into(),
            severity,
        })
    }
}

/// A loss that a running conversion has found, with locations instead of JSON pointers.
#[derive(Debug)]
pub(crate) struct NotedLoss {
    pub place: Place,
    pub revision: KnownRevision,
    pub kind: LossKind,
    pub reason: Reason,
    /// Location inside the value that the reason refers to, if it is not the complete value.
    pub inside: Option<Place>,
    /// Location that a dropped member had when it was dropped, which may differ from its location in the input.
    pub stood: Option<Place>,
}

impl NotedLoss {
    /// Returns all locations that the loss refers to.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        std::iter::once(&self.place).chain(&self.inside)
    }
}

impl ConvertError {
    pub(crate) fn new(pointer: impl Into<String>, reason: impl Into<Reason>) -> Self {
        Self(Box::new(RefusalDetails {
            pointer: pointer.into(),
            reason: reason.into(),
        }))
    }

    /// Returns the JSON pointer (RFC 6901) into the input.
    pub fn pointer(&self) -> &str {
        &self.0.pointer
    }

    /// Returns the reason as a sentence, with a hint if there is one.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}", self.0.reason, self.0.pointer)
    }
}

impl std::error::Error for ConvertError {}
