//! Differences between two revisions, with their consequences for applications.
//!
//! The input are two representations, the output is plain, sorted data for renderers and tools. Only the schemas are
//! compared; no revision has special rules.

mod change;
mod compare;
mod comparison;
mod compatibility;
mod context;
mod methods;
mod pairs;
#[cfg(test)]
mod tests;

pub use change::{
    Change, ChangeKind, Compatibility, DefinitionDiff, Diff, Directions, MethodChange,
    MethodChangeKind, MethodDiff, Note, Rewording, Status, Summary,
};
pub use comparison::{diff, diff_with_descriptions, pairs};
#[cfg(feature = "html")]
pub(crate) use context::is_by_sender;
#[cfg(feature = "html")]
pub(crate) use methods::merge_methods;
