//! Configuration of a program: revisions in the order of preference, identity, capabilities, extensions, limits.
//!
//! [`ServerConfig`] and [`ClientConfig`] are plain data. `build` checks one and gives settings, which any number of endpoints
//! share.

mod client;
mod identity;
mod offer;
mod server;

pub use client::{ClientConfig, ClientSettings};
pub use identity::Identity;
pub use offer::Offer;
pub(crate) use server::ResultMembers;
pub use server::{CacheHint, InputMode, ServerConfig, ServerSettings};
