//! Items that several tests share.

#![allow(dead_code, reason = "each test uses a part of it")]

use mcp_exact::JsonObject;

/// Parses a JSON object.
pub fn object(text: &str) -> JsonObject {
    text.parse().expect(text)
}
