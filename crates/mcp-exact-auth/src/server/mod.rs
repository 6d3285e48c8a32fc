//! OAuth resource servers: verification of access tokens, challenges and metadata, for Streamable HTTP and HTTP+SSE.
//!
//! [`ResourceServer`] authenticates the requests of an HTTP service. Handlers receive [`Access`], never the token.

mod access;
mod credentials;
mod dpop;
mod fetch;
mod jose;
mod resource;
mod verify;

pub use access::{Access, AccessBuilder, TokenError, User};
#[cfg(feature = "client")]
pub use resource::PresentedToken;
pub use resource::{InvalidResource, ResourceServer, TokenBinding};
pub use verify::{Introspection, Jwks, TokenVerifier, VerifyFuture};
