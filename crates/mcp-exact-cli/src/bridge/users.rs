//! Servers that each user reaches with credentials of their own (`auth = "user"`): the clients of the gateway at the authorization
//! servers, and the store of the tokens.

#[cfg(feature = "sessions")]
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use mcp_exact::auth::client::{MemoryStore, OAuth, OAuthError, TokenStore};
use mcp_exact::auth::server::Jwks;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::{KeyRing, ServerAddress, expand_variables};
use mcp_exact_bridge::users::{GatewayClient, UserUpstream, Users};
#[cfg(feature = "sessions")]
use mcp_exact_bridge::users::{ResealCounts, Revocation};
use mcp_exact_bridge::{ConfiguredUpstream, Seal, Upstream};

use super::config::{Auth, Config, ConfiguredServer, Sessions};
use crate::client::authorization::Names;

/// Folder of the tokens in the directory of sessions.
pub const TOKENS_FOLDER: &str = "tokens";

/// Creates the upstreams of servers with credentials per user.
#[derive(Clone)]
pub struct UserServers {
    users: Users,
    auth: Auth,
    /// True if tokens are stored beyond the end of the process without a key of the configuration.
    needs_seal: bool,
    /// Store of the tokens, if it is on Redis.
    #[cfg(feature = "sessions")]
    redis: Option<mcp_exact_redis::RedisTokenStore>,
}

/// What is removed before the rest is encrypted anew.
#[cfg(feature = "sessions")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Nothing,
    /// What is damaged.
    Damaged,
    /// What no key opens, and what is damaged.
    Unreadable,
}

/// Encrypts what a gateway has stored with the first key of its configuration; returns the number of values that were removed, too.
#[cfg(feature = "sessions")]
pub async fn reseal(path: &Path, removal: Removal) -> anyhow::Result<(ResealCounts, usize)> {
    let servers = UserServers::from_file(path)?;
    if servers.needs_seal {
        bail!(
            "{} has no `seal-keys`, which encrypt the stored tokens",
            path.display()
        );
    }
    let work = async {
        let removed = match removal {
            Removal::Nothing => 0,
            Removal::Damaged => servers.users.remove_damaged().await?,
            Removal::Unreadable => servers.users.remove_unreadable().await?,
        };
        Ok((servers.users.reseal().await?, removed))
    };
    let done = work.await;
    servers.end().await;
    done.map_err(|error: String| anyhow::Error::msg(error))
}

/// Revokes what a gateway has of a principal, with the configuration of the gateway; returns what its authorization servers were told.
#[cfg(feature = "sessions")]
pub async fn revoke(path: &Path, principal: &str) -> anyhow::Result<Revocation> {
    let users = UserServers::from_file(path)?;
    let revoked = users.users.revoke(principal).await;
    users.end().await;
    Ok(revoked)
}

impl UserServers {
    /// Creates the credentials of users from the configuration; `None` if no server needs them and none can be added later.
    pub fn from_config(
        config: &Config,
        servers: &[ConfiguredServer],
        seal: Option<&Arc<dyn Seal>>,
    ) -> anyhow::Result<Option<Self>> {
        let needed = servers.iter().find(|server| server.is_of_users());
        let auth = config.auth.as_ref().filter(|auth| auth.client_id.is_some());
        let Some(auth) = auth else {
            if let Some(server) = needed {
                bail!(
                    "server {:?}: `auth = \"user\"` needs [auth] with a `client-id`, by which the gateway signs users in and exchanges \
                     their tokens",
                    server.name
                );
            }
            return Ok(None);
        };
        let needs_seal = config.sessions.is_some() && seal.is_none();
        let seal = match seal {
            Some(seal) => Arc::clone(seal),
            None => Arc::new(KeyRing::random()?),
        };
        let client = GatewayClient {
            resource: auth.resource.clone(),
            // The operator has chosen the issuer.
            oauth: client_of(auth)?
                .scopes(&auth.scopes)
                .allow_private_addresses(),
            verifier: Arc::new(Jwks::new(&auth.issuer, &auth.resource)),
            describe,
        };
        let store = OpenStore::open(config.sessions.as_ref())?;
        let users = Users::new(client, Arc::clone(&store.store), seal).context("[auth]")?;
        Ok(Some(Self {
            users,
            auth: auth.clone(),
            needs_seal,
            #[cfg(feature = "sessions")]
            redis: store.redis,
        }))
    }

    /// Reads a configuration file, and returns the credentials of users with all its servers that need them.
    #[cfg(feature = "sessions")]
    fn from_file(path: &Path) -> anyhow::Result<Self> {
        let (config, servers) = Config::read(path)?;
        let seal = config.create_seal()?;
        let users = Self::from_config(&config, &servers, seal.as_ref())?;
        let path = path.display();
        let missing = || format!("{path} has no [auth] with a `client-id`, and so no accounts");
        let users = users.with_context(missing)?;
        if config.sessions.is_none() {
            bail!(
                "{path} has no [sessions]: accounts are in the memory of the gateway alone, and end with it"
            );
        }
        for server in servers.iter().filter(|server| server.is_of_users()) {
            users.upstream_of(server)?;
        }
        Ok(users)
    }

    /// Releases the locks of the store.
    #[cfg(feature = "sessions")]
    async fn end(&self) {
        if let Some(redis) = &self.redis {
            redis.end().await;
        }
    }

    /// Returns the pages on which users agree.
    pub fn pages(&self) -> Arc<dyn mcp_exact::transport::http::server::Pages> {
        self.users.pages()
    }

    /// Returns a server of the configuration as an upstream of the bridge for users with credentials of their own.
    pub fn upstream_of(&self, server: &ConfiguredServer) -> anyhow::Result<Arc<dyn Upstream>> {
        let words = || format!("server {:?}", server.name);
        let ServerAddress::Http(endpoint) = server.entry.address().with_context(words)? else {
            bail!(
                "server {:?}: `auth` is for servers with a `url`",
                server.name
            );
        };
        let upstream = self.user_upstream(server, endpoint).with_context(words)?;
        let mut settings = server.settings.clone();
        settings.is_shared = true;
        Ok(Arc::new(ConfiguredUpstream { upstream, settings }))
    }

    /// Returns a server at a URL with the clients that obtain the tokens of users for it.
    fn user_upstream(
        &self,
        server: &ConfiguredServer,
        endpoint: HttpEndpoint,
    ) -> anyhow::Result<UserUpstream> {
        let http = server.entry.http_options()?;
        if self.needs_seal {
            bail!(
                "`auth = \"user\"` with [sessions] needs `seal-keys`, which encrypt the stored tokens of users"
            );
        }
        let exchange = client_of(&self.auth)?.issuer(&self.auth.issuer);
        let expand = |text: &str| Ok(expand_variables(text)?);
        let mut clients = server.oauth().user_clients(exchange, expand)?;
        clients.oauth = clients.oauth.http_options(http.clone());
        clients.exchange = clients.exchange.http_options(http);
        Ok(self.users.server(&server.name, endpoint, clients))
    }
}

/// Returns the gateway as a client of its issuer.
fn client_of(auth: &Auth) -> anyhow::Result<OAuth> {
    let client_id = auth.client_id.as_deref().unwrap_or_default();
    let oauth = OAuth::registered(&auth.issuer, client_id);
    Ok(match &auth.secret {
        Some(secret) => oauth.secret(expand_variables(secret).context("[auth] secret")?),
        None => oauth,
    })
}

/// Describes an error with the keys of the file.
fn describe(error: &OAuthError) -> String {
    Names::Keys.describe(error)
}

/// Store of tokens, where sessions are.
struct OpenStore {
    store: Arc<dyn TokenStore>,
    /// The same, if it is on Redis.
    #[cfg(feature = "sessions")]
    redis: Option<mcp_exact_redis::RedisTokenStore>,
}

impl OpenStore {
    /// Opens the store.
    fn open(sessions: Option<&Sessions>) -> anyhow::Result<Self> {
        let Some(sessions) = sessions else {
            return Ok(Self::local(MemoryStore::default()));
        };
        match (&sessions.directory, &sessions.redis) {
            #[cfg(unix)]
            (Some(directory), _) => {
                let folder = directory.join(TOKENS_FOLDER);
                Ok(Self::local(mcp_exact::auth::client::FileStore::new(folder)))
            }
            #[cfg(not(unix))]
            (Some(_), _) => bail!(
                "[sessions] directory: this system has no files that only their owner can read, which the tokens of users need; use `redis`"
            ),
            #[cfg(feature = "sessions")]
            (None, Some(url)) => {
                let url = expand_variables(url).context("[sessions] redis")?;
                let options = mcp_exact_redis::RedisOptions::new(url);
                let store = mcp_exact_redis::RedisTokenStore::open(&options);
                let store = store.context("[sessions] redis")?;
                Ok(Self {
                    store: Arc::new(store.clone()),
                    redis: Some(store),
                })
            }
            // The configuration was checked.
            _ => Ok(Self::local(MemoryStore::default())),
        }
    }

    fn local(store: impl TokenStore) -> Self {
        Self {
            store: Arc::new(store),
            #[cfg(feature = "sessions")]
            redis: None,
        }
    }
}
