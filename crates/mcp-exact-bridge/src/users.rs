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
mod pages;
mod render;
mod resealing;
mod revocations;
mod revoking;
mod server;
mod tokens;
mod visits;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{CodeGrant, OAuth, OAuthError, SealedStore, TokenStore, Url};
use mcp_exact_auth::server::TokenVerifier;
use mcp_exact_session::Seal;
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::http::server::Pages;
use parking_lot::RwLock;
use tokio::sync::watch;

use self::callers::CallerTokens;
use self::pages::ConsentPages;
pub use self::resealing::{DamagedValue, ResealCounts};
use self::revocations::Revocations;
pub use self::revoking::{
    PartialRevocation, Revocation, RevocationFailure, RevocationOutcome, RevokedAccount, revoke,
};
use self::server::UserServer;
pub use self::server::{UserGrant, UserUpstream};
use self::tokens::UserTokens;

/// Credentials of the users of a gateway. Clones share them.
#[derive(Clone)]
pub struct Users(Arc<Gateway>);

/// Gateway as a client and a resource of the issuer of its users.
#[must_use]
pub struct GatewayClient {
    /// Public URL of the gateway, the audience of the tokens of its clients.
    pub resource: String,
    /// Client of the gateway at the issuer, [`OAuth::registered`], by which the pages sign their visitors in. Its redirect URI is
    /// the resource, without a query, and `/consent/signed-in`.
    pub oauth: OAuth,
    /// Verifier of the tokens for the resource.
    pub verifier: Arc<dyn TokenVerifier>,
    /// Function that describes an error of authorization with its remedy, in the words of whoever reads it.
    pub describe: fn(&OAuthError) -> String,
}

/// Clients of the gateway for one server whose users have credentials of their own.
#[must_use]
pub struct UserClients {
    /// How tokens are obtained.
    pub grant: UserGrant,
    /// Client at the authorization server of the server, for users who have to agree; its store, user agent and account are not used.
    pub oauth: OAuth,
    /// Client at the issuer of the callers, [`OAuth::registered`] with [`OAuth::issuer`], for token exchanges.
    pub exchange: OAuth,
}

/// Error for a resource that is not an absolute URL.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the resource `{0}` cannot be used: it must be the public URL of the gateway")]
pub struct InvalidGatewayUrl(String);

/// State that all servers and pages share.
pub(crate) struct Gateway {
    client: GatewayClient,
    /// Origin of the public URL, as browsers send it.
    origin: String,
    /// Public URL of the pages, without a slash at the end.
    pages_url: String,
    /// Path of the public URL of the pages.
    pages_path: String,
    /// Tokens of the callers, for token exchanges.
    callers: CallerTokens,
    /// Tokens of the users who have agreed.
    tokens: UserTokens,
    /// Store of tokens, registrations and visits.
    store: SealedStore,
    /// Revocations of principals.
    revocations: Revocations,
    /// Key of the cookies.
    seal: Arc<dyn Seal>,
    /// Sign-in of visitors, once it was prepared.
    sign_in: tokio::sync::OnceCell<CodeGrant>,
    /// Servers by name; of those with one name, the one that users were asked for last.
    servers: RwLock<BTreeMap<String, Arc<UserServer>>>,
    /// Notified when a user has connected an account or refused to.
    decided: watch::Sender<()>,
}

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
        let resource = &client.resource;
        let invalid = || InvalidGatewayUrl(resource.clone());
        let mut url = Url::parse(resource).map_err(|_| invalid())?;
        url.set_query(None);
        url.set_fragment(None);
        let path = match url.path().trim_end_matches('/') {
            "" => "/mcp".to_owned(),
            path => path.to_owned(),
        };
        let origin = url.origin().ascii_serialization();
        let pages_path = format!("{path}/consent");
        let revocations = Revocations::new(Arc::clone(&store));
        let store = SealedStore::new(store, Arc::clone(&seal));
        Ok(Self(Arc::new(Gateway {
            pages_url: format!("{origin}{pages_path}"),
            client,
            origin,
            pages_path,
            callers: CallerTokens::default(),
            tokens: UserTokens::new(store.clone()),
            store,
            revocations,
            seal,
            sign_in: tokio::sync::OnceCell::new(),
            servers: RwLock::default(),
            decided: watch::channel(()).0,
        })))
    }

    /// Returns a server that each user reaches with credentials of their own.
    pub fn server(
        &self,
        name: impl Into<String>,
        endpoint: HttpEndpoint,
        clients: UserClients,
    ) -> UserUpstream {
        let name = name.into();
        let server = UserServer::new(&self.0, &name, endpoint, clients);
        let mut servers = self.0.servers.write();
        // A reload that fails after this leaves the earlier server in force.
        servers.entry(name).or_insert_with(|| Arc::clone(&server));
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

impl Gateway {
    /// Returns the redirect URI of the sign-in of visitors.
    fn signed_in_url(&self) -> String {
        format!("{}/{}", self.pages_url, pages::SIGNED_IN)
    }

    /// Returns the redirect URI at an authorization server of servers.
    fn connected_url(&self, issuer: &str) -> String {
        use base64::Engine as _;
        let issuer = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(issuer);
        format!("{}/{}{issuer}", self.pages_url, pages::CONNECTED)
    }

    /// Returns the sign-in of visitors at the issuer of the gateway.
    async fn sign_in(&self) -> Result<&CodeGrant, OAuthError> {
        let prepare = || async {
            let oauth = self.client.oauth.clone();
            let grant = oauth.code_grant(&self.signed_in_url()).await?;
            // Issuers of OpenID Connect grant nothing without a scope.
            let grant = grant.scope_if_listed("openid");
            Ok(grant.resource(&*self.client.resource))
        };
        self.sign_in.get_or_try_init(prepare).await
    }

    /// Makes the pages use a server, which a bridge has asked for a user.
    fn use_server(&self, server: &Arc<UserServer>) {
        let is_used = |used: &Arc<UserServer>| Arc::ptr_eq(used, server);
        if !self.servers.read().get(server.name()).is_some_and(is_used) {
            let mut servers = self.servers.write();
            servers.insert(server.name().to_owned(), Arc::clone(server));
        }
    }

    /// Returns a server by its name.
    fn server(&self, name: &str) -> Option<Arc<UserServer>> {
        self.servers.read().get(name).cloned()
    }
}

/// Returns the Unix time in seconds.
fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Returns 256 random bits in base64url; `None` if the system provides no random numbers.
fn random_text() -> Option<String> {
    use base64::Engine as _;
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes))
}

/// Returns true if a text equals a secret one, in a time that depends on the lengths alone.
fn is_same(text: &str, secret: &str) -> bool {
    Secret::new(text) == Secret::new(secret)
}
