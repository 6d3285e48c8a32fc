//! Credentials of each user at servers behind the gateway (feature `users`).
//!
//! A [`UserUpstream`] is reached with a token of the user who calls. Where the issuer of the users' tokens also issues those of the
//! server, and offers token exchange (RFC 8693), the gateway exchanges the token of the caller. Otherwise each user authorizes the
//! gateway once for each program (OAuth client) and server: the call asks the user to visit a page of the gateway, [`Users::pages`].
//!
//! # What binds page and user
//!
//! The URL of the page holds a random number and nothing about the user; whoever has it can do nothing with it. The page signs its
//! visitor in at the issuer of the gateway's own clients, and goes on for the user who was asked alone (`client/elicitation`,
//! "Phishing"). Each step is bound to one browser by an encrypted cookie, `__Host-`, `Secure`, `HttpOnly` and `SameSite=Lax`. The cookie
//! with the `state` of the server's authorization server is set after the user has agreed, and not before ("Required Protections" of
//! the security best practices). A page is used once, within ten minutes.
//! Each issuer redirects to a URI of its own, and a code that arrives at the URI of another one is not redeemed.
//!
//! # Where tokens are
//!
//! Tokens of callers and exchanged tokens are kept in memory, by the principal and the scopes of the caller's token: a call with a
//! narrow token is never sent with what was exchanged for a broad one, and has no connection with it in common. An account that a user
//! has connected is used for each token of the program: the user has agreed to that on the page, which names the program and the scopes
//! of the account, and it is not derived from a token of the program ("Per-Client Consent Storage"). Tokens of users who have agreed are in a [`TokenStore`], encrypted
//! with the key of the gateway for one principal: issuer, subject and client id of the caller's token. They are sent to the origin of their server
//! alone, and refreshed by one process at a time.
//!
//! # Revocation
//!
//! [`Users::revoke`], or [`revoke`] without the key of the gateway, forgets the tokens of a principal. Each process that shares the
//! store sees it within a second or so, forgets the tokens in its memory, and ends the connections of the principal.

mod callers;
mod client;
mod gateway;
mod pages;
mod render;
mod resealing;
mod revocations;
mod revoking;
mod server;
mod tokens;
mod values;
mod visits;

use std::fmt;
use std::sync::Arc;

use mcp_exact_auth::client::TokenStore;
use mcp_exact_session::Seal;
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::http::server::Pages;

use self::gateway::Gateway;
pub use self::gateway::{GatewayClient, InvalidGatewayUrl};
use self::pages::ConsentPages;
pub use self::resealing::{DamagedValue, ResealCounts};
pub use self::revoking::{
    PartialRevocation, Revocation, RevocationFailure, RevocationOutcome, RevokedAccount, revoke,
};
use self::server::UserServer;
pub use self::server::{UserClients, UserGrant, UserUpstream};

/// Credentials of the users of a gateway. Clones share them.
#[derive(Clone)]
pub struct Users(Arc<Gateway>);

impl Users {
    /// Creates the credentials of a gateway. `store` keeps tokens, encrypted by `seal`; processes that serve the same clients share
    /// both.
    ///
    /// # Errors
    /// [`InvalidGatewayUrl`] if the resource is not an absolute URL.
    pub fn new(
        client: GatewayClient,
        store: Arc<dyn TokenStore>,
        seal: Arc<dyn Seal>,
    ) -> Result<Self, InvalidGatewayUrl> {
        Ok(Self(Arc::new(Gateway::new(client, store, seal)?)))
    }

    /// Returns a server that each user reaches with credentials of their own.
    pub fn server(
        &self,
        name: impl Into<String>,
        endpoint: HttpEndpoint,
        clients: UserClients,
    ) -> UserUpstream {
        let server = UserServer::new(&self.0, name.into(), endpoint, clients);
        self.0.add_server(&server);
        UserUpstream(server)
    }

    /// Returns the pages on which users agree, for
    /// [`HttpServerOptions::pages`](mcp_exact_transport::http::server::HttpServerOptions::pages). Their paths are `PATH/consent/…`
    /// below the path of the resource.
    pub fn pages(&self) -> Arc<dyn Pages> {
        Arc::new(ConsentPages(Arc::clone(&self.0)))
    }

    /// Returns the redirect URI of the gateway at its own issuer.
    pub fn sign_in_redirect_uri(&self) -> String {
        self.0.signed_in_url()
    }

    /// Returns the redirect URI of the gateway at the authorization server of servers with this issuer. Each issuer has its own, so
    /// that no authorization server can have the code of another one redeemed (RFC 9700, section 4.4, "Mix-Up Attacks").
    pub fn redirect_uri_at(&self, issuer: &str) -> String {
        self.0.connected_url(issuer)
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Users")
            .field("pages", &self.0.pages_url)
            .finish_non_exhaustive()
    }
}
