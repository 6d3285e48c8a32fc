//! Results and definitions in the exact types of a revision, decoded when they are first used.

#[cfg(feature = "types")]
use std::fmt;
#[cfg(feature = "types")]
use std::sync::OnceLock;

use mcp_exact_wire::{Decode, Defined};

use super::error::ClientError;
use crate::outgoing;
use crate::protocol::JsonObject;

/// Decodes the result of a method, which has the form of the home revision, as a type of any revision.
pub(super) fn result_as<T: Decode + Defined>(
    method: &str,
    result: &JsonObject,
) -> Result<T, ClientError> {
    let converted = outgoing::convert_to_revision(method, result, T::REVISION);
    decode::<T>(&converted.map_err(ClientError::Result)?)
}

/// Decodes a definition, which has the form of the home revision, as a type of any revision.
pub(super) fn definition_as<T: Decode + Defined>(value: &JsonObject) -> Result<T, ClientError> {
    let converted = outgoing::convert_definition_to(T::NAME, value, T::REVISION);
    decode::<T>(&converted.map_err(ClientError::Result)?)
}

/// Decodes an object as a generated type.
fn decode<T: Decode + Defined>(object: &JsonObject) -> Result<T, ClientError> {
    let decoded = mcp_exact_wire::from_str(object.text());
    decoded.map_err(|error| {
        let (name, revision) = (T::NAME, T::REVISION);
        ClientError::Result(format!("it is not a `{name}` of {revision}: {error}"))
    })
}

/// Items that are decoded when they are first used. They are no part of the identity of the value that has them.
#[cfg(feature = "types")]
pub(super) struct LazyItems<T>(OnceLock<Vec<T>>);

#[cfg(feature = "types")]
impl<T: Decode> LazyItems<T> {
    /// Returns the items; the first call decodes `objects`. An object that breaks the schema is left out, and logged.
    pub(super) fn decode_once(&self, objects: impl FnOnce() -> Vec<JsonObject>) -> &[T] {
        self.0.get_or_init(|| {
            let mut items = Vec::new();
            for object in objects() {
                match mcp_exact_wire::from_str(object.text()) {
                    Ok(item) => items.push(item),
                    Err(error) => {
                        tracing::warn!(%error, "a part of a result breaks the schema, and is left out");
                    }
                }
            }
            items
        })
    }
}

#[cfg(feature = "types")]
impl<T> Default for LazyItems<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

#[cfg(feature = "types")]
impl<T> Clone for LazyItems<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

#[cfg(feature = "types")]
impl<T> PartialEq for LazyItems<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(feature = "types")]
impl<T> Eq for LazyItems<T> {}

#[cfg(feature = "types")]
impl<T> fmt::Debug for LazyItems<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LazyItems")
    }
}
