//! Compiles the code of the workspace's README and on the pages of the documentation site: each Rust block is a doc
//! test of this package.
//!
//! `tests/docs` checks that `SUMMARY.md` lists every page, that every link leads somewhere, and the tables.

mod readme;

#[doc = include_str!("../../../docs/book/src/agents.md")]
mod agents {}
#[doc = include_str!("../../../docs/book/src/apps.md")]
mod apps {}
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
#[doc = include_str!("../../../docs/book/src/credentials.md")]
mod credentials {}
#[doc = include_str!("../../../docs/book/src/deployment.md")]
mod deployment {}
#[doc = include_str!("../../../docs/book/src/ending.md")]
mod ending {}
#[doc = include_str!("../../../docs/book/src/first-server.md")]
mod first_server {}
#[doc = include_str!("../../../docs/book/src/protect.md")]
mod protect {}
#[doc = include_str!("../../../docs/book/src/skills.md")]
mod skills {}
#[doc = include_str!("../../../docs/book/src/telemetry.md")]
mod telemetry {}
#[doc = include_str!("../../../docs/book/src/testing.md")]
mod testing {}
#[doc = include_str!("../../../docs/redis.md")]
mod redis {}
