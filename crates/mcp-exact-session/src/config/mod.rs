//! Configuration of client and server endpoints: revisions in the order of preference, identity, capabilities, extensions and
//! limits.
//!
//! [`ServerConfig`] and [`ClientConfig`] are plain data. The method `build` checks a configuration and returns settings that any
//! number of endpoints can share.

#[cfg(feature = "client")]
mod client;
mod identity;
mod offer;
mod server;

#[cfg(feature = "client")]
pub use client::{ClientConfig, ClientSettings};
pub use identity::Identity;
pub use offer::Offer;
pub(crate) use server::ResultMembers;
pub use server::{CacheHint, InputMode, ServerConfig, ServerSettings};
