//! Implementation of `cargo xtask`: arguments, files, child processes and printing. The `codegen` library contains the
//! generator; tasks do not parse schemas.

// Printing is the purpose of a task runner.
#![allow(clippy::print_stdout)]

pub mod apps;
pub mod bench;
pub mod book;
pub mod codegen;
pub mod conformance;
pub mod diff;
pub mod dist;
pub mod examples;
mod fuzz;
pub mod interop;
pub mod miri;
mod mutants;
pub mod new_server;
pub mod nightly;
mod oracle;
pub mod package;
pub mod page;
pub mod providers;
pub mod quickstart;
pub mod redis;
pub mod rehearsal;
pub mod schema;
pub mod scratch;
pub mod test;
pub mod transcripts;
pub mod wasm;

use std::path::PathBuf;

/// Returns the root directory of the workspace, which contains this package.
pub fn workspace_root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}
