//! Identification of the schema definition of a generated type, by revision and name.

use crate::Revision;

/// A type that is generated from a definition of a revision, for example `mcp_2025_06_18::Tool` from `Tool` of
/// 2025-06-18.
///
/// Type aliases and JSON Schema documents have no definition of their own.
pub trait Defined {
    /// Revision that defines the type.
    const REVISION: Revision;
    /// Name of the definition, which is also the name of the type.
    const NAME: &'static str;
}

/// Implements [`Defined`] for generated types of one revision.
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
