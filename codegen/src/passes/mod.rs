//! Passes between a schema file and its crate. `lib.rs` lists the passes in order.

pub mod dispatch;
pub mod extension;
pub mod keywords;
pub mod lift;
pub mod lower;
pub mod methods;
pub mod names;
pub mod normalise;
pub mod outcomes;
pub mod recursion;
pub mod typify_check;
