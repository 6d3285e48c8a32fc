//! Every definition of every revision by its name, as a type, and the test of each revision.
//!
//! The test holds the list against the table `DEFINITIONS` of the crate.

use crate::check::{Checked, check};
use crate::check_revision;

/// A definition: its name, and the check of its type.
pub(crate) struct Type {
    pub(crate) name: &'static str,
    pub(crate) check: fn(&str, &mut Checked),
}

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
                check_revision($id, types, mcp_exact_tests_types::$types::DEFINITIONS);
            }
        })*
    };
}

mcp_exact_tests_types::for_each_definitions!(revisions);
