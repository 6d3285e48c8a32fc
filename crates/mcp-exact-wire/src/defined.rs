//! The definition of the specification that a generated type is, by revision and name.

use crate::Revision;

/// A type that is a definition of a revision: `mcp_2025_06_18::Tool` is `Tool` of 2025-06-18.
///
/// Type aliases have none of their own, nor have JSON Schema documents.
pub trait Defined {
    /// The revision.
    const REVISION: Revision;
    /// The name of the definition, as the type has it.
    const NAME: &'static str;
}

/// Says of generated types which definitions they are.
#[doc(hidden)]
#[macro_export]
macro_rules! define {
    ($revision:literal: $($name:ident),* $(,)?) => {
        $(impl $crate::Defined for $name {
            const REVISION: $crate::Revision = $crate::Revision::new($revision);
            const NAME: &'static str = ::core::stringify!($name);
        })*
    };
}
