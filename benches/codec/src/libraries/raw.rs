//! Envelope decoded by serde, with params and results as borrowed raw text, which is close to the maximum speed of
//! serde_json.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::contestant::{Library, Role};
use crate::entry::Entry;

/// Envelope that serde decodes, with params and results as raw text.
pub struct Envelope;

/// Decoded envelope whose members are borrowed from the message.
#[derive(Deserialize, Serialize)]
pub struct Message<'e> {
    #[serde(borrow)]
    jsonrpc: Cow<'e, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    id: Option<&'e RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    method: Option<Cow<'e, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    params: Option<&'e RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    result: Option<&'e RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    error: Option<&'e RawValue>,
}

/// Decoded message or batch.
pub enum Decoded<'e> {
    /// Single message.
    One(Message<'e>),
    Batch(Vec<Message<'e>>),
}

impl Library for Envelope {
    const NAME: &'static str = "raw envelope";
    const ROLE: Role = Role::Limit;
    type Decoded<'e> = Decoded<'e>;

    fn decode(entry: &Entry) -> Result<Decoded<'_>, String> {
        let decoded = if entry.batch {
            serde_json::from_slice(&entry.bytes).map(Decoded::Batch)
        } else {
            serde_json::from_slice(&entry.bytes).map(Decoded::One)
        };
        decoded.map_err(|error| error.to_string())
    }

    fn encode(decoded: &Decoded<'_>, out: &mut Vec<u8>) {
        // Writing to a `Vec` does not fail.
        let _ = match decoded {
            Decoded::One(message) => serde_json::to_writer(out, message),
            Decoded::Batch(messages) => serde_json::to_writer(out, messages),
        };
    }
}
