//! Compiles the code of the workspace's README and on the pages of the documentation site: each Rust block is a doc
//! test of this package.
//!
//! `tests/docs` checks that `SUMMARY.md` lists every page, that the targets of all links exist, and the tables.

mod readme;

#[doc = include_str!("../../../docs/book/src/agents.md")]
mod agents {}
#[doc = include_str!("../../../docs/book/src/clients.md")]
mod clients {}
#[doc = include_str!("../../../docs/book/src/convert.md")]
mod convert {}
#[doc = include_str!("../../../docs/book/src/introduction.md")]
mod introduction {}
#[doc = include_str!("../../../docs/book/src/servers.md")]
mod servers {}
#[doc = include_str!("../../../docs/book/src/types.md")]
mod types {}
#[doc = include_str!("../../../docs/book/src/features.md")]
mod features {}
#[doc = include_str!("../../../docs/book/src/limits.md")]
mod limits {}
#[doc = include_str!("../../../docs/book/src/revisions.md")]
mod revisions {}
#[doc = include_str!("../../../docs/book/src/rmcp.md")]
mod rmcp {}
