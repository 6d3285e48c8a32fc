//! Authorization of the Model Context Protocol: OAuth 2.1 clients and resource servers, for every revision.
//!
//! Authorization is optional, and for HTTP only; servers on standard streams take credentials from their environment.
//! [`client`] obtains tokens, [`server`] verifies them. Both build on the transports of [`mcp_exact_transport`].
//!
//! Each guide has examples for one task:
//!
//! - [`guide::protect`]: a server over HTTP that demands tokens;
//! - [`guide::connect`]: a client whose user logs in with a browser;
//! - [`guide::headless`]: clients without a browser, or without a user;
//! - [`guide::elicit`]: servers that obtain a credential of a third party for a user;
//! - [`guide::store`]: where tokens are kept;
//! - [`guide::providers`]: known deviations of authorization servers, and what to set for them.
//!
//! Programs that use `mcp-exact` turn on its features `oauth-client` and `oauth-server` instead of adding this crate.
#![cfg_attr(
    not(all(feature = "client", feature = "server")),
    allow(rustdoc::broken_intra_doc_links)
)]

#[cfg(not(any(feature = "client", feature = "server")))]
compile_error!(
    "mcp-exact-auth is for clients or servers: enable its feature `client`, `server`, or both"
);

mod challenge;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "contract")]
pub mod contract;
#[cfg(all(feature = "client", feature = "server"))]
pub mod guide;
#[cfg(feature = "client")]
mod locate;
mod metadata;
#[cfg(feature = "_net")]
mod net;
mod scope;
#[cfg(feature = "client")]
mod secret;
#[cfg(feature = "server")]
pub mod server;

pub use challenge::Challenge;
pub use metadata::{ResourceMetadata, ServerMetadata};
pub use scope::Scopes;
#[cfg(feature = "client")]
pub use secret::Secret;
