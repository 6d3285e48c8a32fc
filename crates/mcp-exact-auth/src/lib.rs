//! Authorization of the Model Context Protocol: OAuth 2.1 clients and resource servers, for every revision.
//!
//! Authorization is optional, and defined for HTTP only; servers on stdio read credentials from their environment.
//! [`client`] obtains tokens, [`server`] verifies them. Clients and servers use the transports of
//! [`mcp_exact_transport`].
//!
//! Each guide has examples for one task:
//!
//! - [`guide::protect`]: an HTTP server that requires tokens;
//! - [`guide::connect`]: a client whose user logs in with a browser;
//! - [`guide::headless`]: clients without a browser, or without a user;
//! - [`guide::elicit`]: servers that obtain a third-party credential for a user;
//! - [`guide::store`]: storage of tokens;
//! - [`guide::providers`]: known deviations of authorization servers, and the options for them.
//!
//! Applications that use `mcp-exact` enable its features `oauth-client` and `oauth-server` instead of adding this
//! crate.
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
mod digest;
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
