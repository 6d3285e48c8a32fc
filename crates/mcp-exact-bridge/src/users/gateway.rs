//! State that the servers and the pages of a gateway share.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_exact_auth::client::{CodeGrant, OAuth, OAuthError, SealedStore, TokenStore, Url};
use mcp_exact_auth::server::TokenVerifier;
use mcp_exact_session::Seal;
use parking_lot::RwLock;
use tokio::sync::watch;
use tokio::time::sleep;

use super::callers::CallerTokens;
use super::revocations::{INTERVAL, Revocations};
use super::server::UserServer;
use super::tokens::UserTokens;

/// Last segment of the redirect URI of the sign-in.
pub(super) const SIGNED_IN: &str = "signed-in";
/// Begin of the last segments of the redirect URIs at the authorization servers of servers; the issuer follows in base64url.
pub(super) const CONNECTED: &str = "connected/";

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

/// Error for a resource that is not an absolute URL.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the resource `{0}` cannot be used: it must be the public URL of the gateway")]
pub struct InvalidGatewayUrl(String);

/// State that all servers and pages share.
pub(super) struct Gateway {
    /// Gateway as a client and a resource.
    pub(super) client: GatewayClient,
    /// Origin of the public URL, as browsers send it.
    pub(super) origin: String,
    /// Public URL of the pages, without a slash at the end.
    pub(super) pages_url: String,
    /// Path of the public URL of the pages.
    pub(super) pages_path: String,
    /// Tokens of the callers, for token exchanges.
    pub(super) callers: CallerTokens,
    /// Tokens of the users who have agreed.
    pub(super) tokens: UserTokens,
    /// Store of tokens, registrations and visits.
    pub(super) store: SealedStore,
    /// Revocations of principals.
    pub(super) revocations: Revocations,
    /// Key of the cookies.
    pub(super) seal: Arc<dyn Seal>,
    /// Sign-in of visitors, once it was prepared.
    sign_in: tokio::sync::OnceCell<CodeGrant>,
    /// Servers by name; of those with one name, the one that users were asked for last.
    servers: RwLock<BTreeMap<String, Arc<UserServer>>>,
    /// Notified when a user has connected an account or refused to.
    pub(super) decided: watch::Sender<()>,
}

impl Gateway {
    /// Creates the state of a gateway, whose pages are below the path of its resource.
    pub(super) fn new(
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
        Ok(Self {
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
        })
    }

    /// Returns the redirect URI of the sign-in of visitors.
    pub(super) fn signed_in_url(&self) -> String {
        format!("{}/{}", self.pages_url, SIGNED_IN)
    }

    /// Returns the redirect URI at an authorization server of servers.
    pub(super) fn connected_url(&self, issuer: &str) -> String {
        use base64::Engine as _;
        let issuer = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(issuer);
        format!("{}/{}{issuer}", self.pages_url, CONNECTED)
    }

    /// Returns the sign-in of visitors at the issuer of the gateway.
    pub(super) async fn sign_in(&self) -> Result<&CodeGrant, OAuthError> {
        let prepare = || async {
            let oauth = self.client.oauth.clone();
            let grant = oauth.code_grant(&self.signed_in_url()).await?;
            // Issuers of OpenID Connect grant nothing without a scope.
            let grant = grant.scope_if_listed("openid");
            Ok(grant.resource(&*self.client.resource))
        };
        self.sign_in.get_or_try_init(prepare).await
    }

    /// Adds a server whose name is new. A reload that fails after this leaves the earlier server in force.
    pub(super) fn add_server(&self, server: &Arc<UserServer>) {
        let mut servers = self.servers.write();
        let name = server.name().to_owned();
        servers.entry(name).or_insert_with(|| Arc::clone(server));
    }

    /// Makes the pages use a server, which a bridge has asked for a user.
    pub(super) fn use_server(&self, server: &Arc<UserServer>) {
        let is_used = |used: &Arc<UserServer>| Arc::ptr_eq(used, server);
        if !self.servers.read().get(server.name()).is_some_and(is_used) {
            let mut servers = self.servers.write();
            servers.insert(server.name().to_owned(), Arc::clone(server));
        }
    }

    /// Returns a server by its name.
    pub(super) fn server(&self, name: &str) -> Option<Arc<UserServer>> {
        self.servers.read().get(name).cloned()
    }

    /// Begins to look for revocations, unless that has begun.
    pub(super) async fn watch_revocations(self: &Arc<Self>) -> Result<(), String> {
        let gateway = Arc::downgrade(self);
        let look = async move {
            loop {
                sleep(INTERVAL).await;
                let Some(gateway) = gateway.upgrade() else {
                    return;
                };
                if let Err(error) = gateway.look_for_revocations().await {
                    tracing::warn!(error, "revocations cannot be read at present");
                }
            }
        };
        let repeat = || drop(tokio::spawn(look));
        self.revocations.watch(repeat).await
    }

    /// Reads the revocations, and ends what this process has of the principals that were revoked since it has looked before.
    pub(super) async fn look_for_revocations(&self) -> Result<(), String> {
        self.revocations
            .look(|now, seen| {
                let servers: Vec<_> = self.servers.read().values().cloned().collect();
                let exchanged = servers.iter().map(|server| &server.exchanged);
                for tokens in exchanged.chain([&self.callers]) {
                    match now.since(seen) {
                        Some(principals) => principals.for_each(|one| tokens.remove_principal(one)),
                        None => tokens.clear(),
                    }
                }
            })
            .await
    }
}
