//! Table of the revisions of the Model Context Protocol, for code that depends on their differences.
//!
//! [`all`] lists every revision, [`find`] looks one up by its identifier. A [`RevisionSpec`] contains lifecycle,
//! status, order, the methods of each side, and named properties. The table is generated from the official schemas and
//! from `schema/revisions.toml`; the crate does not depend on the type crates and does no IO.
//!
//! Code should use the property that it depends on instead of comparing dates:
//!
//! ```
//! use mcp_exact_revisions::{Lifecycle, Side, find};
//!
//! let spec = find("2025-06-18").expect("a known revision");
//! assert_eq!(spec.lifecycle(), Lifecycle::Initialize);
//! assert!(spec.has_structured_output());
//! assert!(spec.sends_request(Side::Server, "elicitation/create"));
//! assert!(!spec.has_batches());
//! assert!(find("2025-06-19").is_none());
//! ```
//!
//! Each revision is also available as a static:
//!
//! ```
//! use mcp_exact_revisions::{V2025_03_26, V2025_11_25};
//!
//! assert!(V2025_03_26 < V2025_11_25);
//! assert_eq!(V2025_11_25.resource_not_found_code(), -32002);
//! ```
//!
//! A [`MethodId`] is the method of a message as a value, with what the schemas show of it; [`method`] has the names:
//!
//! ```
//! use mcp_exact_revisions::{MethodId, method};
//!
//! let called = MethodId::from_name("tools/call");
//! assert_eq!(called, MethodId::ToolsCall);
//! assert_eq!(called.name(), Some(method::TOOLS_CALL));
//! assert_eq!(called.target_param(), Some("name"));
//! assert_eq!(MethodId::ToolsList.list_member(), Some("tools"));
//! assert_eq!(MethodId::from_name("vendor/x"), MethodId::Vendor);
//! ```

#[rustfmt::skip]
#[allow(
    clippy::too_many_lines,
    reason = "one line for each method"
)]
mod generated;
mod spec;

pub use generated::*;
pub use mcp_exact_wire::Revision;
pub use spec::{Lifecycle, Methods, RevisionSpec, Side, Status};

/// Returns every revision, releases oldest first, then drafts.
///
/// The index of a revision in the slice is its [`RevisionSpec::index`].
pub const fn all() -> &'static [RevisionSpec] {
    &generated::REVISIONS
}

/// Iterates over the released revisions, oldest first: those with conversions, which endpoints speak.
pub fn released() -> impl DoubleEndedIterator<Item = &'static RevisionSpec> {
    all().iter().filter(|spec| spec.status() == Status::Release)
}

/// Returns the revision with this identifier, such as `2025-06-18`; `None` if it is unknown.
///
/// An unknown identifier is neither older nor newer than a known revision.
pub fn find(id: &str) -> Option<&'static RevisionSpec> {
    all().iter().rev().find(|spec| is_same(spec.id(), id))
}

/// Returns true if two identifiers are equal. Nearly all are dates, which are compared without a call.
fn is_same(known: &str, id: &str) -> bool {
    let date = |text: &str| <[u8; 10]>::try_from(text.as_bytes()).ok();
    match (date(known), date(id)) {
        (Some(known), Some(id)) => known == id,
        _ => known == id,
    }
}
