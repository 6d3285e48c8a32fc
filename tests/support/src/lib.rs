//! Takes an official JSON Schema document (draft-07 or 2020-12, errata applied); gives valid instances, mutants
//! and a validator's verdict on either. Everything random comes from a seed, so that a failure can be run again.
//!
//! It never looks at the generated types or at the generator of the code: the expected values must be independent of the
//! tested code.

mod edit;
pub mod generate;
pub mod mutate;
pub mod oracle;
pub mod rng;
pub mod schema;
pub mod text;
mod unchecked;
mod values;

pub use generate::Generator;
pub use mutate::{Mutant, MutationKind, Mutator, with_unknown_members};
pub use oracle::Oracle;
pub use rng::Rng;
pub use schema::definition_names;
pub use text::{Doc, Style, same};
pub use unchecked::without_unchecked;
