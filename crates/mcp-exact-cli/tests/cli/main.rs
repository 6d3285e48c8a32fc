//! Runs the real program: exit codes, every form of output, and lines of JSON in bulk.
//!
//! Each test starts its own process and checks only its output and its exit code.

#[cfg(feature = "bridge")]
mod bridge;
mod check;
mod convert;
mod convert_jsonl;
mod convert_message;
mod diff;
mod jsonl;
mod messages;
mod program;
mod proxy;
mod revisions;
mod show;
