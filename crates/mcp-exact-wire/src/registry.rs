//! Definitions of a revision, by name, for tools and tests.
//!
//! The type crates provide the registry only with the feature `registry`, so that other applications do not compile it.

use crate::error::ReadResult;
use crate::reader::Reader;
use crate::traits::{Decode, Encode, to_string};
use crate::{DecodeError, Validate, Violations};

/// One definition of a revision's schema.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// The name in the schema.
    pub name: &'static str,
    /// Function that decodes a value of the definition's type.
    decode: DecodeValue,
}

/// Result of decoding a document as a definition.
#[derive(Debug, Clone)]
pub struct Inspected {
    /// Encoded form of the decoded value.
    pub encoded: String,
    /// Deviations of the decoded value from the schema.
    pub violations: Violations,
}

/// Function that decodes a value of one type, which the result hides.
type DecodeValue = fn(&mut Reader<'_>) -> ReadResult<Box<dyn Value>>;

/// Value of any type of a revision, so that all code except for decoding is compiled once.
trait Value: Encode + Validate {}

impl<T: Encode + Validate> Value for T {}

impl Definition {
    /// Creates the entry of the definition `name`, whose type is `T`.
    pub const fn of<T: Decode + Encode + Validate + 'static>(name: &'static str) -> Self {
        Self {
            name,
            decode: decode::<T>,
        }
    }

    /// Decodes a document as this definition.
    ///
    /// # Errors
    /// [`DecodeError`] if the document does not match the type or the bytes are not UTF-8.
    pub fn inspect(&self, bytes: &[u8]) -> Result<Inspected, DecodeError> {
        let text =
            std::str::from_utf8(bytes).map_err(|error| DecodeError::utf8(error.valid_up_to()))?;
        let mut reader = Reader::new(text);
        if let Ok(value) = (self.decode)(&mut reader)
            && reader.end().is_ok()
        {
            return Ok(Inspected {
                encoded: to_string(&*value),
                violations: value.validate(),
            });
        }
        Err(reader.take_error())
    }
}

/// Decodes a value of the type `T`.
fn decode<T: Decode + Encode + Validate + 'static>(
    reader: &mut Reader<'_>,
) -> ReadResult<Box<dyn Value>> {
    Ok(Box::new(T::decode(reader)?))
}
