//! Generated files outside of the type crates: the table of revisions, embedded data, the package of type crates for
//! tests, and regions of other files.

pub mod embed;
pub mod regions;
pub mod revision_table;
pub mod test_types;
