//! Features that the other tests do not enable: handlers that are not `Send`, messages of `tracing` for clients, and
//! validation against JSON schemas. `local` changes bounds of the crate, so that this program is a build of its own.

#[path = "../it/common/mod.rs"]
mod common;
mod local;
mod logs;
mod validation;
