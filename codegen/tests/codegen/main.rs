//! The generator as a whole: its refusals and their texts, equal bytes for equal input, and a crate made from a small
//! schema, file by file. The package's test `small` compiles and uses that crate.

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
