//! Test support for JSON Schema documents (draft-07 or 2020-12, errata applied): generation of valid instances and
//! mutants, and validation. All random choices are seeded, so that failures are reproducible. [`http_peer`] is an HTTP server
//! whose responses a test writes.
//!
//! This package does not use the generated types or the code generator, because expected values must not depend on the
//! tested code.

mod edit;
#[cfg(all(feature = "flood", target_os = "linux"))]
pub mod flood;
pub mod generate;
pub mod http_peer;
pub mod mutate;
#[cfg(all(test, feature = "oracle"))]
mod official;
#[cfg(feature = "oracle")]
pub mod oracle;
pub mod rng;
pub mod schema;
pub mod text;
pub mod tier;
mod unchecked;
mod values;

pub use generate::Generator;
pub use mutate::{Mutant, MutationKind, Mutator, with_unknown_members};
#[cfg(feature = "oracle")]
pub use oracle::Oracle;
pub use rng::Rng;
pub use schema::definition_names;
pub use text::{Doc, Style, is_same_json};
pub use tier::Cases;
pub use unchecked::{merge_arrays, schema_of_types, without_unchecked};
