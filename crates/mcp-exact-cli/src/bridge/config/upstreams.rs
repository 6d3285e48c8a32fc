//! Servers of a configuration file as upstreams of the bridge.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
#[cfg(feature = "oauth")]
use mcp_exact::expand_variables;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::{ServerAddress, ServerEntry};
use mcp_exact_bridge::{ConfiguredUpstream, Upstream, UpstreamSettings};
use serde::Deserialize;

use super::layers::{self, Breaker, Retry};
#[cfg(feature = "oauth")]
use crate::client::authorization::{Names, ServerOAuth, with_oauth_client};
use crate::client::memory::{FileMemory, RememberedUpstream};

/// Whose credentials a server is reached with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServerAuth {
    /// Those of the user who calls.
    User,
}

/// Form in which clients of the gateway get the schemas of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Schemas {
    /// As the server sends them.
    Unchanged,
    /// Rewritten into equivalents that widely used hosts accept, where one exists.
    Portable,
}

/// Empty credentials of a server, in a build without OAuth.
#[cfg(not(feature = "oauth"))]
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ServerOAuth {}

/// Options of the gateway for a server, which an `mcp.json` entry does not contain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ServerOptions {
    /// Whose credentials the server is reached with.
    pub(super) auth: Option<ServerAuth>,
    /// Credentials of the gateway at the server.
    pub(super) oauth: Option<ServerOAuth>,
    /// True if the sessions of one principal share connections to the server.
    pub(super) is_shared: bool,
    /// Maximum size of a result of a tool, prompt or resource, in bytes.
    pub(super) result_bytes: Option<usize>,
    /// Circuit breaker.
    pub(super) breaker: Option<Breaker>,
    /// Repetition of reads.
    pub(super) retry: Option<Retry>,
    /// True if its answers are kept.
    pub(super) cache: Option<bool>,
    /// Form of the schemas of its tools.
    pub(super) schemas: Option<Schemas>,
}

/// Returns the settings of a server in the type of the bridge library.
fn upstream_settings(
    entry: &ServerEntry,
    options: &ServerOptions,
) -> anyhow::Result<UpstreamSettings> {
    let mut settings = UpstreamSettings::default();
    settings.revision = entry.pinned_revision()?;
    settings.request_timeout = entry.time_limit()?;
    settings.connect_timeout = settings.request_timeout;
    settings.message_bytes = entry.message_bytes;
    settings.max_pages = entry.max_pages;
    settings.result_bytes = options.result_bytes;
    layers::check(options.breaker, options.retry)?;
    settings.breaker = options.breaker.map(Breaker::settings);
    settings.retry = options.retry.map(Retry::settings);
    settings.cache = options.cache;
    settings.is_shared = options.is_shared;
    settings.portable_schemas = options.schemas.map(|schemas| schemas == Schemas::Portable);
    Ok(settings)
}

/// Options of the gateway by server name.
pub(super) type ServerOptionsByName = BTreeMap<String, ServerOptions>;

/// A server that a configuration file defines.
#[derive(Clone)]
pub struct ConfiguredServer {
    /// Name of the server in the file.
    pub name: String,
    /// `mcp.json` entry with the address of the server.
    pub entry: ServerEntry,
    /// Options of the gateway for the server.
    options: ServerOptions,
    /// Server as an upstream of the bridge, unless each user reaches it with credentials of their own.
    upstream: Arc<dyn Upstream>,
    /// Settings of the server in the type of the bridge library.
    #[cfg(feature = "oauth")]
    pub settings: UpstreamSettings,
}

impl ConfiguredServer {
    /// Returns true if each user reaches the server with credentials of their own.
    pub fn is_of_users(&self) -> bool {
        self.options.auth == Some(ServerAuth::User)
    }

    /// Returns the credentials of the gateway at the server.
    #[cfg(feature = "oauth")]
    pub fn oauth(&self) -> ServerOAuth {
        self.options.oauth.clone().unwrap_or_default()
    }

    /// Returns the server as an upstream of the bridge, with the memory of its command or URL, which `probes` ignores.
    pub fn upstream(&self, probes: bool) -> Arc<dyn Upstream> {
        let entry = &self.entry;
        let words = entry.url.iter().chain(&entry.command).chain(&entry.args);
        let folder = entry.cwd.as_ref().map(PathBuf::from);
        let folder = folder.or_else(|| std::env::current_dir().ok());
        let folder = folder.filter(|_| entry.url.is_none());
        let memory = FileMemory::new(words.map(OsStr::new), folder.as_deref(), probes);
        Arc::new(RememberedUpstream {
            upstream: Arc::clone(&self.upstream),
            memory,
        })
    }

    /// Returns true if answers of the server are kept, whatever the file says of all servers.
    pub fn has_cache(&self) -> bool {
        self.options.cache == Some(true)
    }

    /// Returns true if both values describe the same server with the same options.
    pub fn is_same(&self, other: &Self) -> bool {
        self.entry == other.entry && self.options == other.options
    }
}

/// Adds OAuth with the credentials of a server to the requests to this server.
#[cfg(feature = "oauth")]
fn with_credentials(
    endpoint: HttpEndpoint,
    entry: &ServerEntry,
    oauth: Option<&ServerOAuth>,
) -> anyhow::Result<HttpEndpoint> {
    let Some(oauth) = oauth else {
        return Ok(endpoint);
    };
    let mut headers = entry.headers.keys();
    if headers.any(|name| name.eq_ignore_ascii_case("authorization")) {
        bail!("`oauth` and the header Authorization exclude each other: remove one");
    }
    let oauth = oauth.oauth(|text| Ok(expand_variables(text)?))?;
    let oauth = oauth.http_options(entry.http_options()?);
    with_oauth_client(endpoint, oauth, Names::Keys)
}

/// Returns the endpoint unchanged; returns an error if credentials are configured, because this build has no OAuth.
#[cfg(not(feature = "oauth"))]
fn with_credentials(
    endpoint: HttpEndpoint,
    _: &ServerEntry,
    oauth: Option<&ServerOAuth>,
) -> anyhow::Result<HttpEndpoint> {
    if oauth.is_some() {
        bail!("`oauth` needs the feature `oauth`: install the program with `--features full`");
    }
    Ok(endpoint)
}

/// Checks an entry whose server each user reaches with credentials of their own.
fn check_user_auth(entry: &ServerEntry, options: &ServerOptions) -> anyhow::Result<()> {
    if options.auth.is_none() {
        return Ok(());
    }
    if entry.url.is_none() {
        bail!("`auth` is for servers with a `url`");
    }
    let mut headers = entry.headers.keys();
    if headers.any(|name| name.eq_ignore_ascii_case("authorization")) {
        bail!("`auth = \"user\"` and the header Authorization exclude each other: remove one");
    }
    if options.breaker.is_some() {
        bail!(
            "`auth = \"user\"` and `breaker` exclude each other, because what fails for one user says nothing about others: remove one"
        );
    }
    if options.cache == Some(true) {
        bail!(
            "`auth = \"user\"` and `cache` exclude each other, because a user can change accounts: remove one"
        );
    }
    if cfg!(not(feature = "oauth")) {
        bail!("`auth` needs the feature `oauth`: install the program with `--features full`");
    }
    Ok(())
}

/// Creates the upstreams of all entries that are not disabled; removes the options of these servers from `options`.
pub(super) fn configured_servers(
    entries: BTreeMap<String, ServerEntry>,
    options: &mut ServerOptionsByName,
) -> anyhow::Result<Vec<ConfiguredServer>> {
    let mut servers = Vec::new();
    for (name, entry) in entries {
        if entry.disabled {
            continue;
        }
        let options = options.remove(&name).unwrap_or_default();
        let settings = upstream_settings(&entry, &options);
        let settings = settings.with_context(|| format!("server {name:?}"))?;
        let address = entry.address();
        check_user_auth(&entry, &options).with_context(|| format!("server {name:?}"))?;
        let upstream: Arc<dyn Upstream> =
            match address.with_context(|| format!("server {name:?}"))? {
                ServerAddress::Command(_) if options.oauth.is_some() => {
                    bail!("server {name:?}: `oauth` is for servers with a `url`")
                }
                ServerAddress::Command(upstream) => Arc::new(ConfiguredUpstream {
                    upstream,
                    settings: settings.clone(),
                }),
                ServerAddress::Http(upstream) if options.auth.is_some() => {
                    Arc::new(ConfiguredUpstream {
                        upstream,
                        settings: settings.clone(),
                    })
                }
                ServerAddress::Http(endpoint) => {
                    let endpoint = with_credentials(endpoint, &entry, options.oauth.as_ref());
                    let upstream = endpoint.with_context(|| format!("server {name:?}"))?;
                    Arc::new(ConfiguredUpstream {
                        upstream,
                        settings: settings.clone(),
                    })
                }
                _ => bail!("server {name:?}: its transport is not known here"),
            };
        servers.push(ConfiguredServer {
            name,
            entry,
            options,
            upstream,
            #[cfg(feature = "oauth")]
            settings,
        });
    }
    if servers.is_empty() {
        bail!("there is no server; add one, such as `[servers.files]` with `command = \"…\"`");
    }
    Ok(servers)
}
