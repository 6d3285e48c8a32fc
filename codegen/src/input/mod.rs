//! What the generator reads: schema files with the lists that name them, and the tables beside them.

pub mod errata;
pub mod schema;
pub mod tables;
