//! The tasks behind `cargo xtask`: arguments, files, child processes and printing. The `codegen` library decides what is
//! generated, and how; no task here reads a schema.

// Printing is what a task runner is for.
#![allow(clippy::print_stdout)]

pub mod bench;
pub mod book;
pub mod codegen;
pub mod conformance;
pub mod diff;
pub mod examples;
mod fuzz;
pub mod interop;
pub mod miri;
pub mod nightly;
mod oracle;
pub mod package;
pub mod page;
pub mod providers;
pub mod quickstart;
pub mod redis;
pub mod rehearsal;
pub mod schema;
pub mod test;
pub mod transcripts;
pub mod wasm;

use std::path::PathBuf;

/// The directory of the workspace, which holds this package.
pub fn workspace_root() -> PathBuf {
    let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.pop();
    root
}
