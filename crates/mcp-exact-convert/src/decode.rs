//! Decodes values that a step has created, or that the source revision leaves untyped, as a type of the tables.
//!
//! The text of a value is valid JSON: it was validated when the input was read, or a step has written it.

use std::borrow::Cow;

use mcp_exact_wire::Reader;

use crate::check::first_violation;
use crate::node::{NOWHERE, Node};
use crate::read::{DroppedMember, TreeSelection, read_parts};

/// Mismatch between a value and a type.
pub struct Mismatch {
    /// JSON pointer of the mismatching part, relative to the value.
    pub pointer: String,
    pub reason: String,
}

/// Decodes a value as the type at an index, with all objects and arrays as trees.
pub fn decode<'t>(node: &mut Node<'t>, value: u16) -> Result<Node<'t>, Mismatch> {
    decode_parts(node, value, None).map(|(node, _)| node)
}

/// Decodes a value as the type at an index; a value that violates the schema of the type is a mismatch.
pub fn decode_valid<'t>(node: &mut Node<'t>, value: u16) -> Result<Node<'t>, Mismatch> {
    let read = decode(node, value)?;
    match first_violation(&read, value) {
        Some(violation) => Err(Mismatch {
            pointer: violation.pointer,
            reason: violation.message,
        }),
        None => Ok(read),
    }
}

/// Decodes a value as the type at an index; optional members that do not match are dropped and returned.
pub fn decode_lenient<'t>(
    node: &mut Node<'t>,
    value: u16,
) -> Result<(Node<'t>, Vec<DroppedMember>), Mismatch> {
    decode_parts(node, value, Some(Vec::new()))
}

/// Decodes a value as the type at an index; with a list, drops optional members that do not match and lists them.
fn decode_parts<'t>(
    node: &mut Node<'t>,
    value: u16,
    unfit: Option<Vec<DroppedMember>>,
) -> Result<(Node<'t>, Vec<DroppedMember>), Mismatch> {
    let (at, how) = (node.at, (TreeSelection::Everything, unfit));
    let read = match node.current_text() {
        Cow::Borrowed(text) => read_parts(&mut Reader::of_checked(text), at, value, how),
        Cow::Owned(text) => {
            let read = read_parts(&mut Reader::of_checked(&text), NOWHERE, value, how);
            read.map(|(node, unfit)| {
                let mut node = node.into_owned();
                node.at = at;
                (node, unfit)
            })
        }
    };
    read.map_err(|error| Mismatch {
        pointer: error.pointer().to_owned(),
        reason: error.detail().to_owned(),
    })
}
