//! OAuth clients, for every revision that defines authorization (2025-03-26 to 2026-07-28).
//!
//! [`OAuth`] contains the options of an application; [`OAuthClient`] is the HTTP client of a transport that adds the
//! token to requests and handles responses with status 401 and 403.

mod agent;
mod discover;
mod error;
mod fetch;
#[cfg(unix)]
mod file;
mod flow;
mod gate;
mod key;
mod options;
mod pkce;
mod register;
mod request;
mod sealed;
mod service;
mod store;
mod token;

pub use agent::{AgentFuture, Browser, Headless, Redirect, UserAgent, open_browser};
pub use error::{OAuthError, OAuthRemedy};
#[cfg(unix)]
pub use file::FileStore;
pub use flow::{CodeGrant, GrantedTokens, PendingGrant, TokenExchange};
pub use key::SigningKey;
pub use options::{DpopPolicy, IdentityProvider, OAuth};
pub use pkce::RandomnessError;
pub use sealed::{NotTaken, Resealed, SealedStore, Taken};
pub use service::OAuthClient;
pub use store::{MemoryStore, StoreFuture, StoreLock, TokenStore};
pub use url::Url;

/// Logs a problem that ends no request.
fn log_problem(words: &'static str, error: &dyn std::fmt::Display) {
    // The client alone has no log.
    #[cfg(feature = "server")]
    tracing::warn!(%error, "{words}");
    #[cfg(not(feature = "server"))]
    let _ = (words, error);
}
