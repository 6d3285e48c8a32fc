//! What the passes make of a schema: the representation of the crate `mcp-exact-model`, which says what a revision says,
//! and [`RustIr`], which adds how Rust expresses it.

pub(crate) mod names;
pub(crate) mod properties;
pub(crate) mod reserved;
mod rust;
mod unions;

pub use mcp_exact_model::*;
pub use rust::{RustIr, field};
pub use unions::{Case, Dispatch, ObjectDispatch, Tag, Union, Variant};
