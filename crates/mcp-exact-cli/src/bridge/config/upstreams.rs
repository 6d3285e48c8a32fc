//! Servers of a configuration file as upstreams of the bridge.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{anyhow, bail};
#[cfg(feature = "oauth")]
use mcp_exact::expand_variables;
use mcp_exact::transport::ServerCommand;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::{ClientError, ServerAddress, ServerEntry};
use mcp_exact_bridge::{
    ConfiguredUpstream, Upstream, UpstreamSettings, check_server_name, usable_server_names,
};
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

/// A server that is left out, because its entry cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub name: String,
    /// What is wrong with the entry.
    pub reason: String,
}

impl LeftOut {
    /// Returns the name of the server.
    pub fn name(&self) -> String {
        self.name.clone()
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "server {:?}: {}", self.name, self.reason)
    }
}

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
    /// Command of the server; `None` for one at a URL.
    pub command: Option<ServerCommand>,
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

/// Gives servers of a client's file names that the gateway can use as prefixes: clients allow any name, such as "Azure MCP Server". A
/// server that gets another name has a note about it, and so has its mistake.
pub(super) fn with_usable_names(
    entries: BTreeMap<String, Result<ServerEntry, ClientError>>,
) -> BTreeMap<String, Result<ServerEntry, ClientError>> {
    let names: Vec<&str> = entries.keys().map(String::as_str).collect();
    let usable = usable_server_names(&names);
    let named = entries.into_iter().zip(usable);
    let named = named.map(|((name, entry), usable)| {
        if name == usable {
            return (usable, entry);
        }
        let entry = match entry {
            Ok(mut read) => {
                read.notes.push(format!(
                    "here, its name is {usable:?} instead of {name:?}, because it is the prefix of its tools"
                ));
                Ok(read)
            }
            Err(error) => Err(ClientError::Config(format!("{name:?} in the file: {error}"))),
        };
        (usable, entry)
    });
    named.collect()
}

/// Creates the upstreams of all entries that are not disabled; removes the options of these servers from `options`. Returns the
/// servers whose entries cannot be used, too.
pub(super) fn configured_servers(
    entries: BTreeMap<String, Result<ServerEntry, ClientError>>,
    options: &mut ServerOptionsByName,
) -> anyhow::Result<(Vec<ConfiguredServer>, Vec<LeftOut>)> {
    let (mut servers, mut left_out) = (Vec::new(), Vec::new());
    for (name, entry) in entries {
        let server = match entry {
            Ok(entry) if entry.disabled => continue,
            Ok(entry) => configured_server(&name, entry, options.remove(&name).unwrap_or_default()),
            Err(error) => Err(error.into()),
        };
        match server {
            Ok(server) => servers.push(server),
            Err(error) => left_out.push(LeftOut {
                name,
                reason: format!("{error:#}"),
            }),
        }
    }
    if servers.is_empty() && left_out.is_empty() {
        bail!("there is no server; add one, such as `[servers.files]` with `command = \"…\"`");
    }
    if servers.is_empty() {
        let reasons: Vec<String> = left_out.iter().map(LeftOut::to_string).collect();
        bail!("{}", reasons.join("; "));
    }
    Ok((servers, left_out))
}

/// Creates the upstream of an entry.
fn configured_server(
    name: &str,
    entry: ServerEntry,
    options: ServerOptions,
) -> anyhow::Result<ConfiguredServer> {
    check_server_name(name).map_err(|error| anyhow!(error))?;
    let settings = upstream_settings(&entry, &options)?;
    check_user_auth(&entry, &options)?;
    let address = entry.address()?;
    let command = match &address {
        ServerAddress::Command(command) => Some(command.clone()),
        _ => None,
    };
    let upstream: Arc<dyn Upstream> = match address {
        ServerAddress::Command(_) if options.oauth.is_some() => {
            bail!("`oauth` is for servers with a `url`")
        }
        ServerAddress::Command(upstream) => Arc::new(ConfiguredUpstream {
            upstream,
            settings: settings.clone(),
        }),
        ServerAddress::Http(upstream) if options.auth.is_some() => Arc::new(ConfiguredUpstream {
            upstream,
            settings: settings.clone(),
        }),
        ServerAddress::Http(endpoint) => Arc::new(ConfiguredUpstream {
            upstream: with_credentials(endpoint, &entry, options.oauth.as_ref())?,
            settings: settings.clone(),
        }),
        _ => bail!("its transport is not known here"),
    };
    Ok(ConfiguredServer {
        name: name.to_owned(),
        entry,
        options,
        upstream,
        command,
        #[cfg(feature = "oauth")]
        settings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Other names than those of the file are told, also with a mistake.
    #[test]
    fn names_of_clients_are_told() {
        let entries = [
            ("a", Ok(ServerEntry::default())),
            ("b c", Ok(ServerEntry::default())),
            ("d e", Err(ClientError::Config("wrong".to_owned()))),
        ];
        let entries = entries.map(|(name, entry)| (name.to_owned(), entry));
        let mut named = with_usable_names(entries.into_iter().collect());
        let mut take = |name: &str| named.remove(name).expect(name);
        assert!(take("a").expect("an entry").notes.is_empty());
        let note =
            "here, its name is \"b-c\" instead of \"b c\", because it is the prefix of its tools";
        assert_eq!(take("b-c").expect("an entry").notes, [note]);
        let error = take("d-e").expect_err("a mistake").to_string();
        assert_eq!(error, "\"d e\" in the file: wrong");
    }
}
