//! Strings that must not be displayed: tokens, client secrets, authorization codes, verifiers.
//!
//! `Debug` does not show the string, there is no `Display`, and the memory is overwritten on drop.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

/// Secret string, which only [`expose`](Self::expose) returns.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a string.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Returns the string, which must not be logged.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Converts the string to bytes for an HTTP client. The memory is overwritten when the last reference is dropped.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self.0)
    }

    /// Returns true if the string is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl PartialEq for Secret {
    /// Compares in a time that depends only on the lengths.
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (self.0.as_bytes(), other.0.as_bytes());
        let difference = a.iter().zip(b).fold(0, |sum, (a, b)| sum | (a ^ b));
        a.len() == b.len() && std::hint::black_box(difference) == 0
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

/// Serializes the string of a secret, for records in a token store.
pub(crate) fn serialize_secret<S: Serializer>(
    secret: &Secret,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    secret.expose().serialize(serializer)
}

/// Serializes the string of an optional secret.
pub(crate) fn serialize_optional_secret<S: Serializer>(
    secret: &Option<Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_the_secret() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.expose(), "hunter2");
    }

    /// Secrets are equal if their strings are equal.
    #[test]
    fn equality_compares_text() {
        assert_eq!(Secret::new("a"), Secret::new("a"));
        for other in ["", "b", "aa"] {
            assert_ne!(Secret::new("a"), Secret::new(other));
        }
        // The differences of two characters do not cancel each other.
        assert_ne!(Secret::new("a1"), Secret::new("1a"));
    }
}
