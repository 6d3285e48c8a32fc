//! Conversions that no difference of schemas shows, as `schema/conversions.toml` names them.
//!
//! Each function is one step down or up between two neighbours, and is there when both are. It reports what it does, as
//! generated steps do.

#[cfg(all(feature = "2024-11-05", feature = "2025-03-26"))]
pub mod audio;
#[cfg(all(feature = "2025-11-25", feature = "2026-07-28"))]
pub mod completion;
#[cfg(all(feature = "2025-06-18", feature = "2025-11-25"))]
pub mod elicitation;
#[cfg(all(feature = "2025-03-26", feature = "2025-06-18"))]
pub mod links;
#[cfg(all(feature = "2025-06-18", feature = "2025-11-25"))]
pub mod sampling;
#[cfg(all(feature = "2025-11-25", feature = "2026-07-28"))]
pub mod schemas;
pub mod structured;
#[cfg(all(feature = "2025-03-26", feature = "2025-06-18"))]
pub mod titles;
#[cfg(all(feature = "2025-11-25", feature = "2026-07-28"))]
pub mod urls;
