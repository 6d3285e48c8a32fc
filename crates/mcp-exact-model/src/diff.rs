//! Differences between two revisions, with their consequences for a program.
//!
//! Takes two representations; gives plain, sorted data for renderers and tools. Only what the schemas say counts: nothing
//! is known here about any particular revision.

mod change;
mod compare;
mod context;
mod meaning;
mod methods;
mod pairs;
#[cfg(test)]
mod tests;
mod walk;

pub use change::{
    Change, ChangeKind, DefinitionDiff, Diff, Directions, Meaning, MethodChange, MethodChangeKind,
    MethodDiff, Note, Rewording, Status, Summary,
};
#[cfg(feature = "html")]
pub(crate) use context::is_by_sender;
pub(crate) use methods::merged;
pub use walk::{diff, diff_with_descriptions, pairs};
