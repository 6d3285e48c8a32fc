//! Output of the passes: the intermediate representation that the crate `mcp-exact-model` defines, and [`RustIr`],
//! which adds the Rust names and types.

pub(crate) mod names;
pub(crate) mod properties;
pub(crate) mod reserved;
mod rust;
mod unions;

pub use mcp_exact_model::*;
pub use rust::{RustIr, field};
pub use unions::{Union, Variant};
