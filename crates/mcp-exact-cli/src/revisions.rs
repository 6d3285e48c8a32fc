//! The revisions that are compiled in, oldest first: one line each, switched on by the feature of its name.
//!
//! Holds nothing but this table, whose lines `cargo xtask codegen` writes; what reads it is in `registry.rs`. Drafts are
//! not in it: their crates are never published, so that nothing that is published can use them.

use crate::registry::CompiledRevision;

/// Every revision that this program knows.
#[rustfmt::skip]
pub static COMPILED: &[CompiledRevision] = &[
    // @generated revision table: begin
    #[cfg(feature = "2024-11-05")]
    CompiledRevision { spec: mcp_exact_revisions::V2024_11_05, definitions: mcp_2024_11_05::DEFINITIONS, model_json: include_str!("../data/2024-11-05.json") },
    #[cfg(feature = "2025-03-26")]
    CompiledRevision { spec: mcp_exact_revisions::V2025_03_26, definitions: mcp_2025_03_26::DEFINITIONS, model_json: include_str!("../data/2025-03-26.json") },
    #[cfg(feature = "2025-06-18")]
    CompiledRevision { spec: mcp_exact_revisions::V2025_06_18, definitions: mcp_2025_06_18::DEFINITIONS, model_json: include_str!("../data/2025-06-18.json") },
    #[cfg(feature = "2025-11-25")]
    CompiledRevision { spec: mcp_exact_revisions::V2025_11_25, definitions: mcp_2025_11_25::DEFINITIONS, model_json: include_str!("../data/2025-11-25.json") },
    #[cfg(feature = "2026-07-28")]
    CompiledRevision { spec: mcp_exact_revisions::V2026_07_28, definitions: mcp_2026_07_28::DEFINITIONS, model_json: include_str!("../data/2026-07-28.json") },
    // @generated revision table: end
];
