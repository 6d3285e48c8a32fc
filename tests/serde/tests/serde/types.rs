//! Lists every definition of every revision with its type, and defines the test of each revision, which compares the
//! list with the table of definitions.

use crate::check::{CheckCounts, check};
use crate::check_revision;

/// Definition: its name, and the function that checks its type.
pub(crate) struct Type {
    /// Name of the definition.
    pub(crate) name: &'static str,
    /// Function that checks an instance, given as text.
    pub(crate) check: fn(&str, &mut CheckCounts),
}

/// Defines one module per revision, with a test of all definitions of the revision.
macro_rules! revisions {
    ($($id:literal $types:ident { $($name:ident)* })*) => {
        $(mod $types {
            use super::*;

            #[test]
            fn every_definition_passes_through_serde() {
                let types = &[$(Type {
                    name: stringify!($name),
                    check: check::<mcp_exact_tests_types::$types::$name>,
                }),*];
                check_revision($id, types, mcp_exact_tests_types::definitions::$types::DEFINITIONS);
            }
        })*
    };
}

mcp_exact_tests_types::for_each_definitions!(revisions);
