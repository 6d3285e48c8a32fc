//! Rust representation of a revision: union dispatch and boxed members in addition to the language-neutral
//! representation.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use mcp_exact_model::{Ir, Member, Model};

use super::names;
use super::unions::Union;

/// A revision with the unions and boxed members of its Rust types. All other Rust names and types follow from the
/// language-neutral representation.
#[derive(Debug, Clone)]
pub struct RustIr {
    /// Language-neutral representation of the schema.
    pub ir: Ir,
    /// Unions by the names of their definitions.
    pub unions: BTreeMap<String, Union>,
    /// Members whose type contains itself, so that their field is a `Box`: names of definition and member.
    pub boxed: BTreeSet<(String, String)>,
}

impl RustIr {
    /// Returns the union with this name.
    ///
    /// # Panics
    /// Panics if the definition is not a union: the pass `dispatch` plans all unions.
    pub fn union(&self, name: &str) -> &Union {
        &self.unions[name]
    }

    /// Returns the representation with the dispatch of its unions, and without extensions.
    pub fn model(&self) -> Model {
        let unions = self.unions.iter();
        Model {
            ir: self.ir.clone(),
            dispatch: unions
                .map(|(name, union)| (name.clone(), union.dispatch.clone()))
                .collect(),
            extensions: Vec::new(),
        }
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
