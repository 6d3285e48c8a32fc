//! Conversions that no difference of schemas shows, as `schema/conversions.toml` names them.
//!
//! Each function is one step down or up between two neighbours. It reports what it does, as generated steps do.

#[cfg(feature = "2024-11-05")]
pub mod audio;
#[cfg(feature = "2025-11-25")]
pub mod completion;
#[cfg(feature = "2025-06-18")]
pub mod elicitation;
#[cfg(feature = "2025-03-26")]
pub mod links;
#[cfg(feature = "2025-06-18")]
pub mod sampling;
#[cfg(feature = "2025-11-25")]
pub mod schemas;
#[cfg(feature = "2025-11-25")]
pub mod structured;
#[cfg(feature = "2025-03-26")]
pub mod titles;
#[cfg(feature = "2025-11-25")]
pub mod urls;
