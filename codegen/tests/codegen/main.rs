//! Tests of the complete generator: error texts, determinism, and a crate that is generated from a small schema. The
//! package's test `small` compiles and uses that crate.

mod bad_errata;
mod bad_files;
mod bad_names;
mod bad_shapes;
mod bad_unions;
mod determinism;
mod extensions;
mod golden;
mod input;
mod unseen;
