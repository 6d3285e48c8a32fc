//! Servers that each user reaches with credentials of their own (`auth = "user"`): the clients of the gateway at the authorization
//! servers, and the store of the tokens.

use std::sync::Arc;

use anyhow::{Context, bail};
use mcp_exact::auth::client::{MemoryStore, OAuth, OAuthError, TokenStore};
use mcp_exact::auth::server::Jwks;
use mcp_exact::transport::http::client::{HttpEndpoint, HyperOptions};
use mcp_exact::{KeyRing, expand_variables};
use mcp_exact_bridge::Seal;
use mcp_exact_bridge::users::{GatewayClient, UserUpstream, Users};

use super::config::{Auth, Config, ConfiguredServer, Sessions};
use crate::client::authorization::{Names, ServerOAuth};

/// Folder of the tokens in the directory of sessions.
pub const TOKENS_FOLDER: &str = "tokens";

/// Creates the upstreams of servers with credentials per user.
#[derive(Clone)]
pub struct UserServers {
    users: Users,
    auth: Auth,
    /// True if tokens are stored beyond the end of the process without a key of the configuration.
    needs_seal: bool,
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
        let store = open_store(config.sessions.as_ref())?;
        let users = Users::new(client, store, seal).context("[auth]")?;
        Ok(Some(Self {
            users,
            auth: auth.clone(),
            needs_seal,
        }))
    }

    /// Returns the pages on which users agree.
    pub fn pages(&self) -> Arc<dyn mcp_exact::transport::http::server::Pages> {
        self.users.pages()
    }

    /// Returns a server with credentials per user as an upstream of the bridge.
    pub fn upstream(
        &self,
        name: &str,
        endpoint: HttpEndpoint,
        oauth: &ServerOAuth,
        http: &HyperOptions,
    ) -> anyhow::Result<UserUpstream> {
        if self.needs_seal {
            bail!(
                "`auth = \"user\"` with [sessions] needs `seal-keys`, which encrypt the stored tokens of users"
            );
        }
        let exchange = client_of(&self.auth)?.issuer(&self.auth.issuer);
        let mut clients = oauth.user_clients(exchange, |text| Ok(expand_variables(text)?))?;
        clients.oauth = clients.oauth.http_options(http.clone());
        clients.exchange = clients.exchange.http_options(http.clone());
        Ok(self.users.server(name, endpoint, clients))
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

/// Opens the store of tokens: where sessions are.
fn open_store(sessions: Option<&Sessions>) -> anyhow::Result<Arc<dyn TokenStore>> {
    let Some(sessions) = sessions else {
        return Ok(Arc::new(MemoryStore::default()));
    };
    match (&sessions.directory, &sessions.redis) {
        #[cfg(unix)]
        (Some(directory), _) => {
            let folder = directory.join(TOKENS_FOLDER);
            Ok(Arc::new(mcp_exact::auth::client::FileStore::new(folder)))
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
            Ok(Arc::new(store.context("[sessions] redis")?))
        }
        // The configuration was checked.
        _ => Ok(Arc::new(MemoryStore::default())),
    }
}
