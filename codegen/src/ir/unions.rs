//! Unions as Rust enums: the names of their variants, beside the dispatch that selects one.

use mcp_exact_model::{Dispatch, Type};

/// Union of several types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Union {
    /// Variants in the order of the schema.
    pub variants: Vec<Variant>,
    /// Dispatch among the variants.
    pub dispatch: Dispatch,
}

impl Union {
    /// Returns the name of the discriminant if its unknown values are kept.
    pub fn open_tag(&self) -> Option<&str> {
        let tag = self.dispatch.objects.as_ref()?.tag.as_deref();
        tag.filter(|_| self.dispatch.open)
    }
}

/// A variant of a union.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Name of the variant.
    pub name: String,
    /// Type of the variant.
    pub value: Type,
}
