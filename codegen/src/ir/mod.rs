//! The intermediate representation: what the revisions say, in the project's own terms, and what changed between two.
//!
//! Plain data of the crate `mcp-exact-model`, under the name by which the passes and emitters know it.

pub(crate) mod names;
pub(crate) mod properties;
pub(crate) mod reserved;

pub use mcp_exact_model::*;
