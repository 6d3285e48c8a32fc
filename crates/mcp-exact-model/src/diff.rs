//! Differences between two revisions, with their consequences for a program.
//!
//! Takes two representations; returns plain, sorted data for renderers and tools. Only the schemas count: no revision has
//! special rules here.

mod change;
mod compare;
mod compatibility;
mod context;
mod methods;
mod pairs;
#[cfg(test)]
mod tests;
mod walk;

pub use change::{
    Change, ChangeKind, Compatibility, DefinitionDiff, Diff, Directions, MethodChange,
    MethodChangeKind, MethodDiff, Note, Rewording, Status, Summary,
};
#[cfg(feature = "html")]
pub(crate) use context::is_by_sender;
#[cfg(feature = "html")]
pub(crate) use methods::merged;
pub use walk::{diff, diff_with_descriptions, pairs};
