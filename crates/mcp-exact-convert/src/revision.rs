//! The revisions that this crate converts between: identifier, lifecycle and methods, from the table of revisions.
//!
//! The enum of revisions is generated. Identifiers are not ordered: an unknown identifier is neither older nor newer.

use std::fmt;
use std::str::FromStr;

use mcp_exact_revisions::{Lifecycle, Side};
use mcp_exact_wire::spans::is_same;
use mcp_exact_wire::{Revision, RevisionTypes};

use crate::generated::{KnownRevision, METHODS};
use crate::rows::{MethodRow, RevisionRow};

/// Marker type of a revision that this crate supports, such as `mcp_2025_06_18::V2025_06_18`.
///
/// Every marker of a type crate implements this trait. Code that uses [`KNOWN`](Self::KNOWN) with a revision that this
/// version of the crate does not support fails to compile; update this crate then.
pub trait Home: RevisionTypes {
    /// Revision of the marker.
    const KNOWN: KnownRevision;
}

impl<R: RevisionTypes> Home for R {
    const KNOWN: KnownRevision = KnownRevision::of(R::REVISION);
}

/// A method in one revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodInfo {
    /// Name of the method.
    pub method: &'static str,
    /// True if the method is that of a request, false if it is that of a notification.
    pub request: bool,
    /// True if clients send the method.
    pub from_client: bool,
    /// True if servers send the method.
    pub from_server: bool,
}

/// Error: the identifier is not one of a supported revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRevision;

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown revision; known are")?;
        for (at, known) in KnownRevision::ALL.iter().enumerate() {
            let comma = if at == 0 { " " } else { ", " };
            write!(f, "{comma}{known}")?;
        }
        Ok(())
    }
}

impl std::error::Error for UnknownRevision {}

impl KnownRevision {
    /// Returns the known revision of a revision identifier; fails to compile for an unknown one in constant evaluation.
    pub(crate) const fn of(revision: Revision) -> Self {
        let mut at = 0;
        while at < Self::ALL.len() {
            if is_same(Self::ALL[at].as_str(), revision.as_str()) {
                return Self::ALL[at];
            }
            at += 1;
        }
        panic!("this version of mcp-exact-convert does not know the revision; update it")
    }

    /// Returns the revision with an identifier; `None` if this crate does not support it.
    pub fn parse(id: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.as_str() == id)
    }

    /// Returns the identifier, such as `2025-06-18`.
    pub const fn as_str(self) -> &'static str {
        self.spec().id()
    }

    /// Returns the revision as the type that the type crates use.
    pub const fn revision(self) -> Revision {
        self.spec().revision()
    }

    /// Returns how client and server establish the revision.
    pub const fn lifecycle(self) -> Lifecycle {
        self.spec().lifecycle()
    }

    /// Returns true if one JSON array may contain several messages.
    pub const fn has_batches(self) -> bool {
        self.spec().has_batches()
    }

    /// Returns the methods of the revision, sorted by name.
    pub fn methods(self) -> impl Iterator<Item = MethodInfo> {
        METHODS.iter().filter_map(move |row| self.method_info(row))
    }

    /// Returns the request or notification method with this name.
    pub fn method(self, method: &str, request: bool) -> Option<MethodInfo> {
        self.method_info(MethodRow::find(method, request)?)
    }

    fn method_info(self, row: &MethodRow) -> Option<MethodInfo> {
        row.revisions.rows()[self.place()].as_ref()?;
        Some(MethodInfo {
            method: row.method.get(),
            request: row.request,
            from_client: row.is_sent(Side::Client, self.place()),
            from_server: row.is_sent(Side::Server, self.place()),
        })
    }

    /// Returns the names of the revision's definitions in the schema, sorted.
    pub fn types(self) -> impl Iterator<Item = &'static str> {
        let rows = RevisionRow::at(self.place()).types.rows().iter();
        rows.filter(|row| row.official).map(|row| row.name.get())
    }

    /// Returns the index of the revision in order of release, which is the order of `ALL`; drafts are last.
    pub(crate) const fn place(self) -> usize {
        self as usize
    }
}

impl fmt::Display for KnownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for KnownRevision {
    type Err = UnknownRevision;

    fn from_str(id: &str) -> Result<Self, UnknownRevision> {
        Self::parse(id).ok_or(UnknownRevision)
    }
}
