//! Generated files outside of the type crates: the table of revisions, embedded data, and regions of other files.

pub mod embed;
pub mod regions;
pub mod revision_table;
