//! Representation of a revision of the Model Context Protocol as plain data, and the differences between two revisions.
//!
//! [`Ir`] represents one revision: its definitions, its methods and their directions, independent of any programming
//! language. The generator of the type crates creates it from an official schema; with the feature `serde` it can be
//! serialised.
//!
//! [`diff`] compares two revisions. The resulting [`Diff`] lists methods and definitions that were added, removed,
//! renamed or changed, and the [consequence](Compatibility) of each change for readers and writers. [`render`] formats
//! a difference as text for a terminal, Markdown, JSON, or one HTML page for several revisions.
//!
//! A [`Model`] adds the [dispatch](Dispatch) of unions to the representation. With the feature `inspection`,
//! `Model::inspect` checks JSON text against it: every deviation from the schema, with its place, and every member that
//! the schema does not define.
//!
//! This crate reads no files and contains no list of revisions. Equal input yields equal output, byte for byte.
//!
//! ```
//! use mcp_exact_model::{Definition, Ir, Compatibility, Shape, diff};
//!
//! let revision = |id: &str, levels: &[&str]| Ir {
//!     revision: id.into(),
//!     definitions: vec![Definition {
//!         name: "Level".into(),
//!         official: true,
//!         pointers: vec!["/definitions/Level".into()],
//!         description: None,
//!         closed: false,
//!         shape: Shape::Enum(levels.iter().map(|level| level.to_string()).collect()),
//!     }],
//!     methods: Vec::new(),
//! };
//! let diff = diff(&revision("1", &["low"]), &revision("2", &["low", "high"]));
//! let change = &diff.definitions[0].changes[0];
//! assert_eq!(change.compatibility, Compatibility::BreaksReading);
//! ```

mod diff;
mod dispatch;
#[cfg(feature = "inspection")]
mod inspection;
mod ir;
mod model;
pub mod render;
mod wording;

pub use diff::{
    Change, ChangeKind, Compatibility, DefinitionDiff, Diff, Directions, MethodChange,
    MethodChangeKind, MethodDiff, Note, Rewording, Status, Summary, diff, diff_with_descriptions,
    pairs,
};
pub use dispatch::{Dispatch, DispatchCase, ObjectDispatch, Tag};
#[cfg(feature = "inspection")]
pub use inspection::{Deviation, Inspection, UnknownMember, Wanted};
pub use ir::{Bounds, Definition, Ir, Member, MemberValue, Method, Shape, Text, Type};
pub use model::Model;
