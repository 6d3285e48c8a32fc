//! Inspects JSON text as a value of a definition: finds every deviation from the schema, and every member that the
//! schema does not define.
//!
//! A decoder of the generated types stops at the first error; an inspection continues, for people who want to repair a
//! document. Both accept the same documents: `tests/agreement` compares them for every type of every revision.
//! Text is read as the decoders read it, with the reader of `mcp-exact-wire`: numbers of any size, untyped values of any
//! depth, and every member, also one that an object has twice.

mod document;
mod encode;
mod inspector;
mod select;
mod unions;
mod value;

use std::sync::Arc;

use mcp_exact_wire::{DecodeError, DecodeErrorKind, MAX_LISTED, Path};

use crate::Model;
use inspector::Inspector;
use value::Value;

/// What is asked of an inspection besides the deviations. Nothing else is kept of a document.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// The members that the schema does not define are wanted, except for these members of the document and what is in them; `None` if
    /// they are not.
    pub unknown_outside: Option<&'a [&'a str]>,
    /// True if the encoded document is wanted.
    pub encoded: bool,
}

/// Result of an inspection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inspection {
    /// The first [`MAX_LISTED`] deviations from the schema, in the order of the document.
    pub deviations: Vec<Deviation>,
    /// Number of all deviations, listed or not; the document is valid if there are none.
    pub count: usize,
    /// The first [`MAX_LISTED`] members that the schema does not define, in the order of the document, if they are wanted. Such
    /// members are allowed.
    pub unknown: Vec<UnknownMember>,
    /// Number of all members that the schema does not define, if they are wanted.
    pub unknown_count: usize,
    /// True if the type of the definition decodes the document.
    pub decodes: bool,
    /// Text to which the type of the definition encodes the document, if it is wanted: constants, required members, optional members, and
    /// those that the schema does not define; `None` if the type does not decode the document.
    pub encoded: Option<String>,
}

/// Deviation of a value from the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deviation {
    /// JSON pointer (RFC 6901) of the value, or of the object that lacks a required member; cut as
    /// [`DecodeError::pointer`] is.
    pub pointer: String,
    /// Position of the value in the text, in bytes; of the name for a member that an object has twice.
    pub offset: usize,
    /// Name of the violated rule: that of a [`DecodeErrorKind`] or of a
    /// [`ViolationKind`](mcp_exact_wire::ViolationKind), which is the JSON Schema keyword if one exists.
    pub kind: &'static str,
    /// Description of the deviation.
    pub message: String,
}

/// Member that the schema does not define.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMember {
    /// JSON pointer (RFC 6901) of the member; cut as [`DecodeError::pointer`] is.
    pub pointer: String,
    /// Position of the member's name in the text, in bytes.
    pub offset: usize,
    /// Name of the member.
    pub name: String,
    /// Name of the definition whose object has the member.
    pub definition: String,
    /// Defined members that the object lacks; the unknown name may be a misspelling of one of them.
    pub missing_members: Arc<[String]>,
}

impl Model {
    /// Inspects text as a value of a definition; returns `None` if the revision does not have the definition. The
    /// definitions of [`extensions`](Model::extensions) are not searched: inspect with the model of the extension.
    pub fn inspect(&self, definition: &str, text: &[u8], wanted: Wanted<'_>) -> Option<Inspection> {
        let definition = self.ir.get(definition)?;
        let value = match Value::of_document(text) {
            Ok(value) => value,
            Err(error) => return Some(Inspection::of_error(&error)),
        };
        let mut inspector = Inspector::new(self, wanted.unknown_outside);
        inspector.inspect_definition(definition, value, &Path::ROOT);
        let (mut inspection, decodes) = inspector.into_inspection();
        inspection.decodes = decodes;
        if decodes && wanted.encoded {
            inspection.encoded = encode::encode(self, definition, value);
        }
        Some(inspection)
    }
}

impl Inspection {
    /// Returns true if the document has no deviations.
    pub fn is_valid(&self) -> bool {
        self.count == 0
    }

    /// Counts a deviation at the offset `at`; lists it, with the pointer and the message that `describe` returns, if the
    /// list has room.
    fn add(&mut self, at: usize, kind: &'static str, describe: impl FnOnce() -> (String, String)) {
        self.count += 1;
        if self.deviations.len() < MAX_LISTED {
            let (pointer, message) = describe();
            self.deviations.push(Deviation {
                pointer,
                offset: at,
                kind,
                message,
            });
        }
    }

    /// Creates the result for text that is no JSON.
    fn of_error(error: &NotJson) -> Self {
        Self {
            deviations: vec![error.0.clone()],
            count: 1,
            ..Self::default()
        }
    }
}

/// Deviation of text that is no JSON.
struct NotJson(Deviation);

impl NotJson {
    /// Creates the deviation of bytes that are not UTF-8 from `offset` on.
    fn utf8(offset: usize) -> Self {
        Self(Deviation {
            pointer: String::new(),
            offset,
            kind: DecodeErrorKind::Utf8.name(),
            message: "the bytes are not UTF-8".to_owned(),
        })
    }
}

impl From<DecodeError> for NotJson {
    fn from(error: DecodeError) -> Self {
        Self(Deviation {
            pointer: error.pointer().to_owned(),
            offset: error.offset(),
            kind: error.kind().name(),
            message: error.detail().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests;
