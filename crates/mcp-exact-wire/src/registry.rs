//! Definitions of a revision, by name, for tools and tests.
//!
//! The type crates provide the registry only with the feature `registry`, so that other applications do not compile it.

use crate::traits::{Decode, Encode, to_string};
use crate::{DecodeError, Validate, Violations, from_slice};

/// One definition of a revision's schema.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// The name in the schema.
    pub name: &'static str,
    /// Decodes a document as this definition.
    pub inspect: fn(&[u8]) -> Result<Inspected, DecodeError>,
}

/// Result of decoding a document as a definition.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// Encoded form of the decoded value.
    pub encoded: String,
    /// Deviations of the value from the schema.
    pub violations: Violations,
}

impl Definition {
    /// Creates the entry of the definition `name`, whose type is `T`.
    pub const fn of<T: Decode + Encode + Validate>(name: &'static str) -> Self {
        Self {
            name,
            inspect: inspect::<T>,
        }
    }
}

fn inspect<T: Decode + Encode + Validate>(bytes: &[u8]) -> Result<Inspected, DecodeError> {
    let value: T = from_slice(bytes)?;
    Ok(Inspected {
        encoded: to_string(&value),
        violations: value.validate(),
    })
}
