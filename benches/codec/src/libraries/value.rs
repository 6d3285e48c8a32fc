//! `serde_json::Value`: the untyped tree with which all libraries are compared.

use serde_json::Value;

use crate::contestant::{Library, Role};
use crate::entry::Entry;

/// Library serde_json with its untyped `Value`.
pub struct Untyped;

impl Library for Untyped {
    const NAME: &'static str = "serde_json::Value";
    const ROLE: Role = Role::Baseline;
    type Decoded<'e> = Value;

    fn decode(entry: &Entry) -> Result<Value, String> {
        serde_json::from_slice(&entry.bytes).map_err(|error| error.to_string())
    }

    fn encode(decoded: &Value, out: &mut Vec<u8>) {
        // Writing to a `Vec` does not fail.
        let _ = serde_json::to_writer(out, decoded);
    }
}
