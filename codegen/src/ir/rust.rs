//! Representation of a revision in Rust: names, pointers and dispatch beside the language-neutral representation.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use mcp_exact_model::{Ir, Member};

use super::names;
use super::unions::Union;

/// A revision with the unions and pointers of its Rust types. Everything else is read from its representation.
#[derive(Debug, Clone)]
pub struct RustIr {
    /// Language-neutral representation of the schema.
    pub ir: Ir,
    /// The unions by the names of their definitions.
    pub unions: BTreeMap<String, Union>,
    /// Members whose values are behind a pointer, because they contain themselves: names of definition and member.
    pub boxed: BTreeSet<(String, String)>,
}

impl RustIr {
    /// Returns the union of that name.
    ///
    /// # Panics
    /// If the definition is no union: the pass `dispatch` plans every one.
    pub fn union(&self, name: &str) -> &Union {
        &self.unions[name]
    }

    /// Returns true if the Rust field of a member is a `Box`, because its type contains the type of the definition.
    pub fn is_boxed(&self, definition: &str, member: &Member) -> bool {
        // Few types contain themselves.
        let mut boxed = self.boxed.iter();
        boxed.any(|(owner, name)| owner == definition && *name == member.name)
    }
}

impl Deref for RustIr {
    type Target = Ir;

    fn deref(&self) -> &Ir {
        &self.ir
    }
}

/// Returns the name of the Rust field of a member.
pub fn field(member: &Member) -> String {
    names::field(&member.name)
}
