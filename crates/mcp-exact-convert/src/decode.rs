//! Reads values that a step has made, or that one revision left open, as a type: all of it taken apart.
//!
//! The text of a value is JSON: it was checked when the input was read, or a step has made it.

use std::borrow::Cow;

use mcp_exact_wire::Reader;

use crate::check::first_violation;
use crate::node::{NOWHERE, Node};
use crate::read::{Unfit, Wanted, read, read_lenient};

/// Reason why a text is not a value of a type, and the place in the text.
pub struct Mismatch {
    pub pointer: String,
    pub reason: String,
}

/// Reads a value as another type, everything taken apart.
pub fn decode<'t>(node: &mut Node<'t>, value: u16) -> Result<Node<'t>, Mismatch> {
    let at = node.at;
    let read = match node.settled_text() {
        Cow::Borrowed(text) => read(Reader::of_checked(text), at, value, Wanted::Everything),
        Cow::Owned(text) => read(
            Reader::of_checked(&text),
            NOWHERE,
            value,
            Wanted::Everything,
        )
        .map(|node| Node {
            at,
            ..node.into_owned()
        }),
    };
    read.map_err(|error| Mismatch {
        pointer: error.pointer().to_owned(),
        reason: error.detail().to_owned(),
    })
}

/// The same for a value that breaks no rule of its schema.
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

/// Reads a value as another type, without the optional members that do not fit.
pub fn decode_lenient<'t>(
    node: &mut Node<'t>,
    value: u16,
) -> Result<(Node<'t>, Vec<Unfit>), Mismatch> {
    let at = node.at;
    let read = match node.settled_text() {
        Cow::Borrowed(text) => read_lenient(Reader::of_checked(text), at, value),
        Cow::Owned(text) => {
            read_lenient(Reader::of_checked(&text), NOWHERE, value).map(|(node, unfit)| {
                let node = Node {
                    at,
                    ..node.into_owned()
                };
                (node, unfit)
            })
        }
    };
    read.map_err(|error| Mismatch {
        pointer: error.pointer().to_owned(),
        reason: error.detail().to_owned(),
    })
}
