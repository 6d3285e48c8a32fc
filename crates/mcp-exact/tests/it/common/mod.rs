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

/// Returns true if the revision has sessions: its lifecycle begins with `initialize`.
pub fn has_sessions(revision: mcp_exact::Revision) -> bool {
    spec(revision).lifecycle() == mcp_exact_revisions::Lifecycle::Initialize
}

/// Returns the numbers of revisions from this one on with sessions, and without.
pub fn count_from(oldest: &str) -> (usize, usize) {
    let from = mcp_exact::revisions().filter(|revision| revision.as_str() >= oldest);
    let (with, without): (Vec<_>, Vec<_>) = from.partition(|revision| has_sessions(*revision));
    (with.len(), without.len())
}
