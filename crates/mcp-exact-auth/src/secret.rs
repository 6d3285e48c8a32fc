//! Text that must not be shown: tokens, secrets of clients, codes, verifiers.
//!
//! `Debug` shows nothing of it, there is no `Display`, and the memory is overwritten when the value is dropped.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer};
use zeroize::Zeroizing;

/// Secret text. [`expose`](Self::expose) is the only way to read it.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// Returns the text. Do not log it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Gives the text to an HTTP client. The memory is overwritten when the last part is dropped.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self.0)
    }

    /// Returns true if there is no text.
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
    /// Compares in a time that depends on the lengths alone.
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

/// Writes the text of a secret: for fields of records that a token store keeps.
pub(crate) fn expose<S: Serializer>(secret: &Secret, serializer: S) -> Result<S::Ok, S::Error> {
    secret.expose().serialize(serializer)
}

/// Writes the text of a secret that may be absent.
pub(crate) fn expose_option<S: Serializer>(
    secret: &Option<Secret>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::expose).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_nothing() {
        let secret = Secret::new("hunter2");
        assert_eq!(format!("{secret:?}"), "Secret(…)");
        assert_eq!(secret.expose(), "hunter2");
    }

    #[test]
    fn equality_compares_text() {
        assert_eq!(Secret::new("a"), Secret::new("a"));
        for other in ["", "b", "aa"] {
            assert_ne!(Secret::new("a"), Secret::new(other));
        }
    }
}
