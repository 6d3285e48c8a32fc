//! Authorization options of an application: the client's identity, its grant, its token store.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_transport::http::client::{HttpClient, HyperOptions};

use super::agent::{Browser, UserAgent};
use super::key::SigningKey;
use super::store::{MemoryStore, TokenStore};
use super::token::Credential;
use crate::scope::Scopes;
use crate::secret::Secret;

/// Client that was registered manually.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredClient {
    /// Client id at the authorization server.
    pub(crate) client_id: String,
    /// Credential of the client at the token endpoint.
    pub(crate) credential: Credential,
    /// Issuer of the authorization server where the client is registered; `None` for the first authorization server
    /// that is used.
    pub(crate) issuer: Option<String>,
}

/// Source of tokens and assertions, such as a user's identity token or a workload's platform token.
pub(crate) type TokenSource =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<Secret, String>> + Send>> + Send + Sync>;

/// Grant that obtains tokens.
#[derive(Clone)]
pub(crate) enum GrantKind {
    /// Grant `authorization_code` of a user.
    AuthorizationCode,
    /// Grant `client_credentials`.
    ClientCredentials,
    /// Exchange of an assertion of the enterprise's identity provider.
    Enterprise(IdentityProvider),
    /// Grant `jwt-bearer` with a token of the workload's platform.
    Workload(TokenSource),
}

/// Condition for binding tokens to a key (RFC 9449).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DpopPolicy {
    /// Tokens are bound if the resource server requires bound tokens in its challenge or metadata.
    #[default]
    WhenRequired,
    /// Tokens are bound if the authorization server supports bound tokens.
    WhenSupported,
    /// Tokens are never bound.
    Never,
}

/// Identity provider of an enterprise, which decides which servers a user may access
/// (`io.modelcontextprotocol/enterprise-managed-authorization`).
#[derive(Clone)]
pub struct IdentityProvider {
    /// URL of the token endpoint.
    pub(crate) token_endpoint: String,
    /// Client id at the identity provider.
    pub(crate) client_id: String,
    /// Client secret at the identity provider.
    pub(crate) client_secret: Option<Secret>,
    /// Source of the user's identity token.
    pub(crate) id_token: TokenSource,
}

impl IdentityProvider {
    /// Creates a provider from its token endpoint, the client id at the provider, and the source of the user's identity
    /// token.
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

/// Authorization options of a client: the client's identity, and how it obtains tokens.
///
/// The token is sent only to the origin of the MCP server. The user is not involved before the server requires
/// authorization.
#[derive(Clone)]
#[must_use = "give it to `Client::connect(url).oauth(…)` or call `client`"]
pub struct OAuth {
    /// Grant that obtains tokens.
    pub(crate) grant: GrantKind,
    /// Client name for dynamic registration.
    pub(crate) name: String,
    /// Clients that were registered manually.
    pub(crate) registered_clients: Vec<RegisteredClient>,
    /// URL of the client metadata document.
    pub(crate) metadata_url: Option<String>,
    /// True if the client registers dynamically when necessary.
    pub(crate) is_dynamic: bool,
    /// Scopes to request in addition to the required scopes.
    pub(crate) scopes: Scopes,
    /// True if the client requests refresh tokens.
    pub(crate) requests_refresh_tokens: bool,
    /// Issuer to use; `None` for the first issuer that the resource metadata lists.
    pub(crate) issuer: Option<String>,
    /// Issuers that are assumed to support PKCE.
    pub(crate) assumes_pkce_at: Vec<String>,
    /// Issuers whose metadata may name them with or without a slash at the end.
    pub(crate) ignores_slash_of: Vec<String>,
    /// Identifier of the resource, instead of the endpoint's.
    pub(crate) resource: Option<String>,
    /// Parameters of authorization requests besides those of the protocol, as name and value.
    pub(crate) authorization_parameters: Vec<(String, String)>,
    /// True if servers without resource metadata are treated as 2025-03-26 servers.
    pub(crate) has_fallback: bool,
    /// True if the parameter `resource` is sent.
    pub(crate) sends_resource: bool,
    /// True if servers in private networks are allowed.
    pub(crate) allows_private: bool,
    /// True if all loopback ports are allowed.
    pub(crate) allows_other_ports: bool,
    /// Condition for binding tokens to a key.
    pub(crate) dpop: DpopPolicy,
    /// Store for tokens and registrations.
    pub(crate) store: Arc<dyn TokenStore>,
    /// Name that separates accounts at one server in the store.
    pub(crate) account: String,
    /// User agent that signs the user in.
    pub(crate) agent: Arc<dyn UserAgent>,
    /// HTTP client for metadata and authorization servers; `None` for the default client.
    pub(crate) http: Option<Arc<dyn HttpClient>>,
    /// Settings of the default client.
    pub(crate) http_options: HyperOptions,
    /// Revision in the `MCP-Protocol-Version` header of requests for metadata.
    pub(crate) revision: Option<String>,
    /// Maximum duration of a request.
    pub(crate) timeout: Duration,
}

impl OAuth {
    /// Creates the options for a grant, with the defaults of all other settings.
    fn with_grant(grant: GrantKind, name: String) -> Self {
        Self {
            grant,
            name,
            registered_clients: Vec::new(),
            metadata_url: None,
            is_dynamic: false,
            scopes: Scopes::default(),
            requests_refresh_tokens: true,
            issuer: None,
            assumes_pkce_at: Vec::new(),
            ignores_slash_of: Vec::new(),
            resource: None,
            authorization_parameters: Vec::new(),
            has_fallback: true,
            sends_resource: true,
            allows_private: false,
            allows_other_ports: false,
            dpop: DpopPolicy::default(),
            store: Arc::new(MemoryStore::default()),
            account: String::new(),
            agent: Arc::new(Browser::default()),
            http: None,
            http_options: HyperOptions::default(),
            revision: None,
            timeout: Duration::from_secs(30),
        }
    }

    /// Creates a client that registers itself if necessary (RFC 7591), with a name that the user sees.
    pub fn new(name: impl Into<String>) -> Self {
        let mut oauth = Self::with_grant(GrantKind::AuthorizationCode, name.into());
        oauth.is_dynamic = true;
        oauth
    }

    /// Creates a client whose id is the URL of its metadata document (https, with a path). The client registers itself
    /// at authorization servers that do not support metadata documents.
    pub fn with_metadata_document(url: impl Into<String>) -> Self {
        let url = url.into();
        let mut oauth = Self::new(url.clone());
        oauth.metadata_url = Some(url);
        oauth
    }

    /// Creates a public client that is registered with this id at an authorization server.
    pub fn registered(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        let oauth = Self::with_grant(GrantKind::AuthorizationCode, String::new());
        oauth.also_registered(issuer, client_id)
    }

    /// Creates a client that acts for itself with a secret, by the grant `client_credentials`
    /// (`io.modelcontextprotocol/oauth-client-credentials`).
    ///
    /// The secret is sent only to one authorization server: the issuer that [`issuer`](Self::issuer) sets, or else the
    /// first issuer that is used.
    pub fn client_credentials(client_id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        let credential = Credential::Secret {
            secret: secret.into(),
            method: None,
        };
        Self::with_grant(GrantKind::ClientCredentials, String::new())
            .for_client(client_id, credential)
    }

    /// Creates a client that acts for itself with a private key (`private_key_jwt`), by the grant `client_credentials`.
    pub fn client_credentials_key(client_id: impl Into<String>, key: SigningKey) -> Self {
        Self::with_grant(GrantKind::ClientCredentials, String::new())
            .for_client(client_id, Credential::Key(key))
    }

    /// Creates a client of an enterprise, whose identity provider issues assertions that the authorization server
    /// exchanges for tokens (`io.modelcontextprotocol/enterprise-managed-authorization`). The client is registered at
    /// the authorization server with an id and a secret.
    pub fn enterprise(
        provider: IdentityProvider,
        client_id: impl Into<String>,
        secret: impl Into<Secret>,
    ) -> Self {
        let credential = Credential::Secret {
            secret: secret.into(),
            method: None,
        };
        Self::with_grant(GrantKind::Enterprise(provider), String::new())
            .for_client(client_id, credential)
    }

    /// Creates a workload client that presents its platform's token with the grant `jwt-bearer`
    /// (`io.modelcontextprotocol/auth/wif`). The platform's token must have the audience that the authorization server
    /// requires.
    ///
    /// The platform's token is sent to the authorization servers of [`also_registered`](Self::also_registered), and
    /// otherwise only to one: the issuer that [`issuer`](Self::issuer) sets, or else the first issuer that is used.
    pub fn workload<F, Fut>(token: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Secret, String>> + Send + 'static,
    {
        let source: TokenSource = Arc::new(move || Box::pin(token()));
        Self::with_grant(GrantKind::Workload(source), String::new())
    }

    /// Adds a client that was registered manually.
    fn for_client(mut self, client_id: impl Into<String>, credential: Credential) -> Self {
        self.registered_clients.push(RegisteredClient {
            client_id: client_id.into(),
            credential,
            issuer: None,
        });
        self
    }

    /// Adds a client id at an authorization server, which is preferred to all other kinds of registration.
    pub fn also_registered(
        mut self,
        issuer: impl Into<String>,
        client_id: impl Into<String>,
    ) -> Self {
        self.registered_clients.push(RegisteredClient {
            client_id: client_id.into(),
            credential: Credential::None,
            issuer: Some(issuer.into()),
        });
        self
    }

    /// Sets the secret for the most recently added id.
    pub fn secret(mut self, secret: impl Into<Secret>) -> Self {
        if let Some(client) = self.registered_clients.last_mut() {
            client.credential = Credential::Secret {
                secret: secret.into(),
                method: None,
            };
        }
        self
    }

    /// Sets the private key for the most recently added id (`private_key_jwt`).
    pub fn key(mut self, key: SigningKey) -> Self {
        if let Some(client) = self.registered_clients.last_mut() {
            client.credential = Credential::Key(key);
        }
        self
    }

    /// Requests these scopes in addition to those that the server requires.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().collect();
        self
    }

    /// Sets whether the client requests refresh tokens from servers that require the scope `offline_access` for them;
    /// true by default.
    pub fn refresh(mut self, wants_refresh: bool) -> Self {
        self.requests_refresh_tokens = wants_refresh;
        self
    }

    /// Selects the authorization server, which the resource metadata must list; a server without resource metadata must
    /// be the issuer itself. By default, the first listed server is used. Client ids without an issuer belong to this
    /// server.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Assumes that an authorization server supports PKCE although its metadata does not list `S256` (Entra ID and
    /// Cognito omit the list), or although it has no metadata, as servers of 2025-03-26 that are their own authorization
    /// servers: the issuer of such a server is its origin.
    pub fn assume_pkce(mut self, issuer: impl Into<String>) -> Self {
        self.assumes_pkce_at.push(issuer.into());
        self
    }

    /// Uses the metadata of an issuer that differs from the issuer by a slash at the end alone: the resource metadata of
    /// servers behind Google may name `https://accounts.google.com/`, and the metadata `https://accounts.google.com`.
    ///
    /// The two must be identical ("Authorization Server Metadata Discovery", RFC 8414, section 3.3), so that each such issuer
    /// is named here.
    pub fn ignore_issuer_slash(mut self, issuer: impl Into<String>) -> Self {
        self.ignores_slash_of.push(issuer.into());
        self
    }

    /// Sets whether servers without resource metadata are treated as 2025-03-26 servers, which are their own
    /// authorization servers; true by default. One without any metadata is used after
    /// [`assume_pkce`](Self::assume_pkce) alone.
    pub fn fallback(mut self, has_fallback: bool) -> Self {
        self.has_fallback = has_fallback;
        self
    }

    /// Sets the identifier of the resource that tokens are requested for, for a server whose metadata names another than its
    /// endpoint. By default, metadata is used only if it names the endpoint, or a parent of the endpoint at whose own well-known
    /// URL it is published (RFC 9728, section 3.3).
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Adds a parameter to authorization requests, for authorization servers that need one of their own: `audience` of Auth0,
    /// `access_type=offline` of Google, `user_scope` of Slack. It replaces one of the same name in the URL of the endpoint. The
    /// parameters of the protocol, such as `state`, are refused.
    pub fn authorization_parameter(
        mut self,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        let parameter = (name.into(), value.into());
        self.authorization_parameters.push(parameter);
        self
    }

    /// Sets whether `resource` (RFC 8707) is sent. The specification requires the parameter; some authorization servers
    /// reject it (Entra ID with `invalid_target`).
    pub fn resource_indicator(mut self, sends_resource: bool) -> Self {
        self.sends_resource = sends_resource;
        self
    }

    /// Allows metadata and authorization servers in private networks, and on loopback at all ports if the endpoint is there. If the endpoint of the MCP server uses plain HTTP, these servers may use plain HTTP
    /// too, and anyone on the network path can read the tokens.
    pub fn allow_private_addresses(mut self) -> Self {
        self.allows_private = true;
        self
    }

    /// Allows a server on loopback to name metadata and authorization servers at other loopback ports than its own and that of
    /// the [issuer](Self::issuer).
    pub fn allow_other_ports(mut self) -> Self {
        self.allows_other_ports = true;
        self
    }

    /// Sets when tokens are bound to a key (`io.modelcontextprotocol/auth/dpop`).
    pub fn dpop(mut self, dpop: DpopPolicy) -> Self {
        self.dpop = dpop;
        self
    }

    /// Sets the store for tokens and registrations; in memory by default.
    pub fn store(mut self, store: impl TokenStore) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Sets the name that separates several accounts at one server in the token store.
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.account = account.into();
        self
    }

    /// Sets how the user signs in; the [`Browser`] by default.
    pub fn user_agent(mut self, agent: impl UserAgent) -> Self {
        self.agent = Arc::new(agent);
        self
    }

    /// Sets proxies and trusted certificates for requests to metadata and authorization servers; by default the proxies of the
    /// environment, and the certificates of the system. The rules about addresses hold with a proxy too: names are resolved and
    /// checked here, and the proxy gets the address (`CONNECT`), so that it cannot resolve the name to another one. With
    /// [`allow_private_addresses`](Self::allow_private_addresses) it gets the name. A client certificate is not presented:
    /// it is for the MCP server, which has chosen these URLs.
    pub fn http_options(mut self, options: HyperOptions) -> Self {
        self.http_options = options;
        self
    }

    /// Sets the HTTP client for metadata and authorization servers, instead of that of [`http_options`](Self::http_options). The
    /// client must reject private addresses itself after name resolution, and not leave names to a proxy; URLs are checked
    /// before.
    pub fn http_client(mut self, client: Arc<dyn HttpClient>) -> Self {
        self.http = Some(client);
        self
    }

    /// Sets the maximum duration of a request for metadata or a token, including its redirects; 30 seconds by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets the revision in the `MCP-Protocol-Version` header of requests for metadata.
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
