//! The revisions that are compiled in, oldest first: one line each, switched on by the feature of its name.
//!
//! Holds nothing but this table, so that a program can write the whole file; what reads it is in `registry.rs`.
//! A test compares it with schema/revisions.toml.

use crate::registry::Compiled;

/// Every revision that this program knows.
#[rustfmt::skip]
pub static COMPILED: &[Compiled] = &[
    #[cfg(feature = "2024-11-05")]
    Compiled::of::<mcp_2024_11_05::V2024_11_05>("release", mcp_2024_11_05::DEFINITIONS),
    #[cfg(feature = "2025-03-26")]
    Compiled::of::<mcp_2025_03_26::V2025_03_26>("release", mcp_2025_03_26::DEFINITIONS),
    #[cfg(feature = "2025-06-18")]
    Compiled::of::<mcp_2025_06_18::V2025_06_18>("release", mcp_2025_06_18::DEFINITIONS),
];
