//! Authorization options of a program: the client's identity, its grant, its token store.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_transport::http::client::HttpClient;

use super::agent::{Browser, UserAgent};
use super::key::SigningKey;
use super::store::{MemoryStore, TokenStore};
use super::token::Credential;
use crate::scope::Scopes;
use crate::secret::Secret;

/// Client that was registered by hand.
#[derive(Debug, Clone)]
pub(crate) struct Registered {
    pub(crate) client_id: String,
    pub(crate) credential: Credential,
    /// Authorization server that knows the client; absent for the first one that is used.
    pub(crate) issuer: Option<String>,
}

/// Source of assertions, such as an identity token or the token of a workload.
pub(crate) type Source =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Secret, String>> + Send>> + Send + Sync>;

/// Grant by which tokens are obtained.
#[derive(Clone)]
pub(crate) enum GrantKind {
    AuthorizationCode,
    ClientCredentials,
    Enterprise(IdentityProvider),
    Workload(Source),
}

/// When tokens are bound to a key (RFC 9449).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dpop {
    /// When the server demands it by its challenge or metadata.
    #[default]
    Demanded,
    /// Whenever the authorization server supports it.
    Preferred,
    /// Never.
    Never,
}

/// Identity provider of an enterprise, which decides which servers its users may use
/// (`io.modelcontextprotocol/enterprise-managed-authorization`).
#[derive(Clone)]
pub struct IdentityProvider {
    pub(crate) token_endpoint: String,
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<Secret>,
    pub(crate) id_token: Source,
}

impl IdentityProvider {
    /// Names the token endpoint of the provider, the id of the client there, and the source of the user's identity token.
    pub fn new<F, Fut>(
        token_endpoint: impl Into<String>,
        client_id: impl Into<String>,
        id_token: F,
    ) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Secret, String>> + Send + 'static,
    {
        Self {
            token_endpoint: token_endpoint.into(),
            client_id: client_id.into(),
            client_secret: None,
            id_token: Arc::new(move || Box::pin(id_token())),
        }
    }

    /// Sets the secret of the client at the provider.
    #[must_use]
    pub fn secret(mut self, secret: impl Into<Secret>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }
}

/// Authorization of a client: which client it is, and how it obtains tokens.
///
/// The token goes to the origin of the MCP server alone. Nothing is asked of the user before the server demands it.
#[derive(Clone)]
#[must_use = "give it to `Client::connect(url).oauth(…)` or call `client`"]
pub struct OAuth {
    pub(crate) grant: GrantKind,
    pub(crate) name: String,
    pub(crate) registered: Vec<Registered>,
    pub(crate) metadata_url: Option<String>,
    pub(crate) is_dynamic: bool,
    pub(crate) scopes: Scopes,
    pub(crate) wants_refresh: bool,
    pub(crate) issuer: Option<String>,
    pub(crate) assumed_pkce: Vec<String>,
    pub(crate) has_fallback: bool,
    pub(crate) sends_resource: bool,
    pub(crate) allows_private: bool,
    pub(crate) dpop: Dpop,
    pub(crate) store: Arc<dyn TokenStore>,
    pub(crate) account: String,
    pub(crate) agent: Arc<dyn UserAgent>,
    pub(crate) http: Option<Arc<dyn HttpClient>>,
    pub(crate) revision: Option<String>,
    pub(crate) timeout: Duration,
}

impl OAuth {
    fn of(grant: GrantKind, name: String) -> Self {
        Self {
            grant,
            name,
            registered: Vec::new(),
            metadata_url: None,
            is_dynamic: false,
            scopes: Scopes::default(),
            wants_refresh: true,
            issuer: None,
            assumed_pkce: Vec::new(),
            has_fallback: true,
            sends_resource: true,
            allows_private: false,
            dpop: Dpop::default(),
            store: Arc::new(MemoryStore::default()),
            account: String::new(),
            agent: Arc::new(Browser::default()),
            http: None,
            revision: None,
            timeout: Duration::from_secs(30),
        }
    }

    /// A client that registers itself where it has to (RFC 7591), with a name that the user sees.
    pub fn new(name: impl Into<String>) -> Self {
        let mut oauth = Self::of(GrantKind::AuthorizationCode, name.into());
        oauth.is_dynamic = true;
        oauth
    }

    /// A client whose id is the URL of its metadata document (https, with a path); it registers itself where authorization
    /// servers do not support that.
    pub fn cimd(url: impl Into<String>) -> Self {
        let url = url.into();
        let mut oauth = Self::new(url.clone());
        oauth.metadata_url = Some(url);
        oauth
    }

    /// A public client that is registered with this id at an authorization server.
    pub fn registered(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        let oauth = Self::of(GrantKind::AuthorizationCode, String::new());
        oauth.or_registered(issuer, client_id)
    }

    /// A client that acts for itself, with a secret: grant `client_credentials`
    /// (`io.modelcontextprotocol/oauth-client-credentials`).
    ///
    /// The secret goes to the first authorization server that is used and to no other one after it; [`issuer`](Self::issuer)
    /// names it.
    pub fn client_credentials(client_id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        let credential = Credential::Secret {
            secret: secret.into(),
            method: None,
        };
        Self::of(GrantKind::ClientCredentials, String::new()).with_client(client_id, credential)
    }

    /// A client that acts for itself, with a private key (`private_key_jwt`): grant `client_credentials`.
    pub fn client_credentials_key(client_id: impl Into<String>, key: SigningKey) -> Self {
        Self::of(GrantKind::ClientCredentials, String::new())
            .with_client(client_id, Credential::Key(key))
    }

    /// A client of an enterprise: its identity provider gives out assertions that the authorization server exchanges for tokens
    /// (`io.modelcontextprotocol/enterprise-managed-authorization`). The client is registered with id and secret.
    pub fn enterprise(
        provider: IdentityProvider,
        client_id: impl Into<String>,
        secret: impl Into<Secret>,
    ) -> Self {
        let credential = Credential::Secret {
            secret: secret.into(),
            method: None,
        };
        Self::of(GrantKind::Enterprise(provider), String::new()).with_client(client_id, credential)
    }

    /// A workload with an identity of its platform: grant `jwt-bearer` with the platform's token
    /// (`io.modelcontextprotocol/auth/wif`). The token's audience has to be the one that the authorization server expects.
    pub fn workload<F, Fut>(token: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Secret, String>> + Send + 'static,
    {
        let source: Source = Arc::new(move || Box::pin(token()));
        Self::of(GrantKind::Workload(source), String::new())
    }

    fn with_client(mut self, client_id: impl Into<String>, credential: Credential) -> Self {
        self.registered.push(Registered {
            client_id: client_id.into(),
            credential,
            issuer: None,
        });
        self
    }

    /// Adds an id that the client has at an authorization server. It comes before all other ways.
    pub fn or_registered(
        mut self,
        issuer: impl Into<String>,
        client_id: impl Into<String>,
    ) -> Self {
        self.registered.push(Registered {
            client_id: client_id.into(),
            credential: Credential::None,
            issuer: Some(issuer.into()),
        });
        self
    }

    /// Sets the secret of the id that was added last.
    pub fn secret(mut self, secret: impl Into<Secret>) -> Self {
        if let Some(client) = self.registered.last_mut() {
            client.credential = Credential::Secret {
                secret: secret.into(),
                method: None,
            };
        }
        self
    }

    /// Sets the private key of the id that was added last (`private_key_jwt`).
    pub fn key(mut self, key: SigningKey) -> Self {
        if let Some(client) = self.registered.last_mut() {
            client.credential = Credential::Key(key);
        }
        self
    }

    /// Asks for these scopes too, besides those that the server names.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().collect();
        self
    }

    /// Sets whether the client wants refresh tokens, where they have to be asked for (`offline_access`). It does by default.
    pub fn refresh(mut self, wants_refresh: bool) -> Self {
        self.wants_refresh = wants_refresh;
        self
    }

    /// Chooses the authorization server, which the resource has to name. Without it, the first one that it names. Ids without
    /// an issuer belong to it.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Trusts that an authorization server supports PKCE though its metadata does not list `S256` (Entra ID and Cognito leave
    /// the list out).
    pub fn assume_pkce(mut self, issuer: impl Into<String>) -> Self {
        self.assumed_pkce.push(issuer.into());
        self
    }

    /// Sets whether servers without resource metadata are taken for servers of 2025-03-26, which are their own authorization
    /// servers. They are by default.
    pub fn fallback(mut self, has_fallback: bool) -> Self {
        self.has_fallback = has_fallback;
        self
    }

    /// Sets whether `resource` (RFC 8707) is sent. The specification demands it; some authorization servers refuse it (Entra ID
    /// with `invalid_target`).
    pub fn resource_indicator(mut self, sends_resource: bool) -> Self {
        self.sends_resource = sends_resource;
        self
    }

    /// Lets metadata and authorization servers be in private networks. If the endpoint of the MCP server is plain HTTP, they may be
    /// too: whoever is on the way reads the tokens then.
    pub fn allow_private_addresses(mut self) -> Self {
        self.allows_private = true;
        self
    }

    /// Sets when tokens are bound to a key (`io.modelcontextprotocol/auth/dpop`).
    pub fn dpop(mut self, dpop: Dpop) -> Self {
        self.dpop = dpop;
        self
    }

    /// Sets where tokens and registrations are kept; in memory by default.
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Tells several accounts at one server apart in the token store.
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = account.into();
        self
    }

    /// Sets how the user signs in; the [`Browser`] by default.
    pub fn user_agent(mut self, agent: impl UserAgent) -> Self {
        self.agent = Arc::new(agent);
        self
    }

    /// Sets the HTTP client for metadata and authorization servers. It has to refuse private addresses itself after it has
    /// resolved a name; URLs are checked before.
    pub fn http_client(mut self, client: Arc<dyn HttpClient>) -> Self {
        self.http = Some(client);
        self
    }

    /// Sets how long a request for metadata or a token may take, with its redirects; 30 s by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the revision that requests for metadata name (`MCP-Protocol-Version`).
    pub fn revision(mut self, revision: impl Into<String>) -> Self {
        self.revision = Some(revision.into());
        self
    }
}

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth")
            .field("name", &self.name)
            .field("metadata_url", &self.metadata_url)
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
