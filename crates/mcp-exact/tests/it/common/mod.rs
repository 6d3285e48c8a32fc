//! Items that several tests share.

#![allow(dead_code, reason = "each test uses a part of it")]

use mcp_exact::JsonObject;

/// Parses a JSON object.
pub fn object(text: &str) -> JsonObject {
    text.parse().expect(text)
}

/// Returns the properties of a revision.
pub fn spec(revision: mcp_exact::Revision) -> &'static mcp_exact_revisions::RevisionSpec {
    mcp_exact_revisions::find(revision.as_str()).expect("a revision of the table")
}
