//! Errors of decoding a document, with their positions.
//!
//! A decoder records only a byte offset. The JSON pointer is computed from the text when the caller requests the error,
//! so that successful decoding has no cost and allocates nothing for errors.

use std::fmt;

use crate::locate::locate;
#[cfg(doc)]
use crate::pointer::MAX_POINTER;

/// Marker that decoding failed; the [`Reader`](crate::Reader) contains the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecodeFailed;

/// Result of a decoding step.
pub type ReadResult<T> = Result<T, DecodeFailed>;

/// Kind of the rule that a document violates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The bytes are not UTF-8.
    Utf8,
    /// The text is not JSON (RFC 8259).
    Syntax,
    /// Typed values are nested deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    Depth,
    /// A string that must be decoded contains a lone surrogate.
    Surrogate,
    /// A value does not have the JSON type that the schema requires.
    Type,
    /// A constant does not have the value that the schema requires.
    Const,
    /// A required member is missing.
    Required,
    /// A member occurs twice in an object of a known type.
    Duplicate,
    /// The value matches no variant of a union.
    Union,
    /// An object contains two members that exclude each other.
    Exclusive,
}

impl DecodeErrorKind {
    /// Returns a short stable name: the JSON Schema keyword if one exists.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf8",
            Self::Syntax => "syntax",
            Self::Depth => "depth",
            Self::Surrogate => "surrogate",
            Self::Type => "type",
            Self::Const => "const",
            Self::Required => "required",
            Self::Duplicate => "duplicate",
            Self::Union => "anyOf",
            Self::Exclusive => "exclusive",
        }
    }
}

/// Error for a document that does not decode as the requested type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError {
    /// Kind of the violated rule.
    kind: DecodeErrorKind,
    /// JSON pointer of the value that violates the rule.
    pointer: String,
    /// Offset of this value in the text, in bytes.
    offset: usize,
    /// Description of the problem.
    detail: String,
}

impl DecodeError {
    /// Returns the kind of the violated rule.
    pub fn kind(&self) -> DecodeErrorKind {
        self.kind
    }

    /// Returns the JSON pointer (RFC 6901) of the value that violates the rule; for a missing member, the pointer of
    /// the object without the member.
    ///
    /// A pointer of more than [`MAX_POINTER`] bytes is cut there and ends in `…`; [`offset`](Self::offset) stays exact.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// Returns the position in the text, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns a description of the problem, without its position.
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// Returns true if the error is that a required member of this name is missing.
    pub(crate) fn lacks(&self, member: &str) -> bool {
        self.kind == DecodeErrorKind::Required && self.detail == Detail::missing_words(member)
    }

    /// Creates the error for bytes that are not UTF-8 from `offset` on.
    pub(crate) fn utf8(offset: usize) -> Self {
        Self {
            kind: DecodeErrorKind::Utf8,
            pointer: String::new(),
            offset,
            detail: "the bytes are not UTF-8".into(),
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at {:?} (byte {})",
            self.detail, self.pointer, self.offset
        )
    }
}

impl std::error::Error for DecodeError {}

/// Record of a failed decoding step, from which the error is created on request.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    /// Offset of the value or the member name, in bytes.
    pub(crate) at: usize,
    /// Kind of the violated rule.
    pub(crate) kind: DecodeErrorKind,
    /// Description of the problem.
    pub(crate) detail: Detail,
    /// Name of the member at fault, if `at` is the offset of the object that contains the member.
    pub(crate) member: Option<Box<str>>,
}

/// Description of a fault, formatted only on request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Detail {
    /// The complete description.
    Plain(&'static str),
    /// The expected type.
    Expected(&'static str),
    /// The expected constant.
    Const(&'static str),
    /// The expected type, and the only value of that type that is allowed.
    ConstOf(&'static str, &'static str),
    /// The name of the missing member.
    Missing(&'static str),
    /// The name of the union without a matching variant.
    Union(&'static str),
    /// The names of two members that exclude each other.
    Exclusive(&'static str, &'static str),
}

impl Fault {
    /// Creates the error of the decoder; `text` is the document, from which the JSON pointer is computed.
    pub(crate) fn into_error(self, text: &str) -> DecodeError {
        let mut pointer = locate(text, self.at);
        if let Some(member) = &self.member {
            pointer.push(member);
        }
        DecodeError {
            kind: self.kind,
            pointer: pointer.into_text(),
            offset: self.at,
            // `to_string` would compile the formatting into a string anew in each crate.
            detail: format!("{}", self.detail),
        }
    }
}

impl Detail {
    /// Returns the description of the fault that a required member is missing.
    fn missing_words(member: &str) -> String {
        format!("missing member `{member}`")
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain(words) => f.write_str(words),
            Self::Expected(what) => write!(f, "expected {what}"),
            Self::Const(value) => write!(f, "expected the constant {value}"),
            Self::ConstOf(what, value) => write!(f, "expected {what}, the constant {value}"),
            Self::Missing(member) => f.write_str(&Self::missing_words(member)),
            Self::Union(name) => write!(f, "no variant of `{name}` fits"),
            Self::Exclusive(a, b) => write!(f, "`{a}` and `{b}` exclude each other"),
        }
    }
}
