//! Configuration of `mcp-exact bridge`: a TOML file with all settings, or the `mcp.json` of a client with servers only.

mod layers;
mod tools;
mod upstreams;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_exact::{ClientError, KeyRing, ServerEntry, expand_variables};
use mcp_exact_bridge::{AccessRule, Catalogue, LossRule, Prefix, PrincipalLimits, Seal};
use serde::Deserialize;

use self::layers::{Breaker, Cache, Retry};
pub use self::tools::{Pinned, Search};
use self::tools::{Tool, add_tools, check_names_of_search};
#[cfg(not(feature = "oauth"))]
use self::upstreams::ServerOAuth;
pub use self::upstreams::{ConfiguredServer, LeftOut, Schemas};
use self::upstreams::{
    ServerAuth, ServerOptions, ServerOptionsByName, configured_servers, with_usable_names,
};
use super::audit;
use super::losses::Losses;
#[cfg(feature = "oauth")]
use crate::client::authorization::ServerOAuth;

/// Settings of a configuration file, which the command line overrides. Each field is a key of the file;
/// `docs/bridge.md` describes the keys.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Text of the file, in which a change is found.
    #[serde(skip)]
    pub text: String,
    /// Address at which clients are served over HTTP.
    pub listen: Option<String>,
    /// Allowed names in the header `Host`.
    pub allow_host: Vec<String>,
    /// Allowed origins of web pages.
    pub allow_origin: Vec<String>,
    /// Revisions that are offered to clients; empty for all.
    pub client_revision: Vec<String>,
    /// Policy for losses without a matching `[[loss]]` rule.
    pub losses: Option<Losses>,
    /// True if results list their losses in `_meta`.
    pub losses_in_meta: bool,
    /// True if HTTP responses list the ids of losses in a header.
    pub losses_in_header: bool,
    /// True if what clients and servers send is refused if it breaks its schema, instead of being repaired.
    pub strict: bool,
    /// True if `/metrics` is served.
    pub metrics: bool,
    /// File of the audit log; `-` is standard error.
    pub audit: Option<PathBuf>,
    /// Form in which the audit log records the arguments of calls.
    pub audit_arguments: audit::Arguments,
    /// Time limit in seconds for calls in flight after a shutdown signal.
    pub drain: Option<u64>,
    /// Time limit in seconds for a client's response to a request that a server sends during a call.
    pub answer_within: Option<u64>,
    /// Time in seconds after which a list is answered without the servers that are not ready.
    pub list_within: Option<u64>,
    /// Number of processes of each server that are started in advance for the next clients.
    pub spare_processes: Option<usize>,
    /// Time limit in seconds for a connection to a server, and for an answer of a server.
    pub timeout: Option<u64>,
    /// Maximum size of a message, in bytes.
    pub message_bytes: Option<usize>,
    /// Maximum size of all messages of servers that arrive at the same time, in bytes.
    pub message_budget: Option<usize>,
    /// Maximum number of pages of a list of a server.
    pub max_pages: Option<usize>,
    /// Maximum size of a result of a tool, prompt or resource, in bytes.
    pub result_bytes: Option<usize>,
    /// Circuit breaker of each server.
    pub breaker: Option<Breaker>,
    /// Repetition of reads of each server.
    pub retry: Option<Retry>,
    /// Cache of the answers of all servers.
    pub cache: Option<Cache>,
    /// Form of the schemas of tools.
    pub schemas: Option<Schemas>,
    /// Patterns of methods that are relayed although the specification does not define them.
    pub extension_methods: Vec<String>,
    /// Authorization server whose tokens clients must present; without one, clients are not authenticated.
    pub auth: Option<Auth>,
    /// Store of the sessions of clients over HTTP; without one, sessions end with the process.
    pub sessions: Option<Sessions>,
    /// Settings of the export of traces.
    pub telemetry: Option<Telemetry>,
    /// Approved definitions of tools; without it, definitions are not compared.
    pub pins: Option<Pinned>,
    /// Search that clients see instead of all tools.
    pub search: Option<Search>,
    /// Keys that protect `requestState`, in base64; the first key seals, and all keys open.
    pub seal_keys: Vec<String>,
    /// Policy for prefixing names of tools and prompts with the name of their server.
    prefix: PrefixPolicy,
    /// Limits on the requests of each principal.
    limits: Option<Limits>,
    /// Policies for losses with specific ids.
    loss: Vec<Loss>,
    /// Servers by name.
    servers: BTreeMap<String, Server>,
    /// Rules that show or hide tools, prompts and resources.
    access: Vec<Access>,
    /// What clients see of the tools of all servers.
    #[serde(skip)]
    pub catalogue: Catalogue,
    /// Servers that are left out, because their entries cannot be used.
    #[serde(skip)]
    pub left_out: Vec<LeftOut>,
}

/// Entries of servers by name, or what is wrong with them.
type Entries = BTreeMap<String, Result<ServerEntry, ClientError>>;

/// Authorization server whose tokens clients must present.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Auth {
    /// Issuer of the tokens.
    pub issuer: String,
    /// Public URL of the bridge, which must be the audience of the tokens.
    pub resource: String,
    /// Scopes that every request requires.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Id of the bridge as a client of the issuer, for servers that each user reaches with credentials of their own.
    #[serde(default)]
    pub client_id: Option<String>,
    /// Secret of this client, which may contain references to environment variables.
    #[serde(default)]
    pub secret: Option<String>,
}

impl std::fmt::Debug for Auth {
    /// Omits the client secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Auth")
            .field("issuer", &self.issuer)
            .field("resource", &self.resource)
            .field("scopes", &self.scopes)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

/// Store from which sessions are resumed after a restart.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sessions {
    /// Directory with a file for each session, for one process.
    pub directory: Option<PathBuf>,
    /// URL of Redis, for many processes that serve the same clients.
    pub redis: Option<String>,
}

/// Settings of the export of traces to a collector of OpenTelemetry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Telemetry {
    /// URL of the collector, to which `/v1/traces` is appended.
    pub otlp: Option<String>,
    /// Name of the service in the traces.
    pub service_name: Option<String>,
}

/// Limits of the requests of each principal, and totals of the gateway.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Average number of requests per second.
    per_second: Option<f64>,
    /// Maximum number of requests that a principal may send at once after a pause.
    burst: u32,
    /// Maximum number of concurrent requests.
    concurrent: Option<usize>,
    /// Maximum number of connections of clients over HTTP.
    pub connections: Option<usize>,
    /// Maximum number of sessions over HTTP.
    pub sessions: Option<usize>,
    /// Maximum size of the messages of clients over HTTP that are not answered yet, in bytes.
    pub body_bytes: Option<usize>,
    /// Maximum number of connections to each server that clients without sessions share.
    pub server_connections: Option<usize>,
    /// Maximum number of connections to each server of clients with sessions.
    pub session_connections: Option<usize>,
    /// Maximum number of calls of each server that wait for their client.
    pub waiting_calls: Option<usize>,
}

impl Limits {
    /// Returns the limits of what all clients hold together by their keys; they take effect with the next start.
    fn totals(&self) -> [(&'static str, Option<usize>); 6] {
        [
            ("connections", self.connections),
            ("sessions", self.sessions),
            ("body-bytes", self.body_bytes),
            ("server-connections", self.server_connections),
            ("session-connections", self.session_connections),
            ("waiting-calls", self.waiting_calls),
        ]
    }
}

/// Policy for losses whose ids match a pattern.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Loss {
    /// Patterns of the ids of losses.
    #[serde(rename = "match")]
    patterns: Vec<String>,
    /// Policy for these losses.
    policy: Losses,
}

/// Policy for prefixing names of tools and prompts with the name of their server.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PrefixPolicy {
    /// All names are prefixed.
    #[default]
    Always,
    /// A name is prefixed if a tool or prompt of another server already has the same name.
    OnConflict,
    /// No name is prefixed.
    Never,
}

/// Server in the TOML file: the members of an entry of `mcp.json`, and options of the gateway.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Server {
    /// Program that starts the server.
    command: Option<String>,
    /// Arguments of the program.
    args: Vec<String>,
    /// Environment variables of the program.
    env: BTreeMap<String, String>,
    /// Names of further variables of the gateway that the program inherits.
    #[serde(rename = "inherit-env")]
    inherit_env: Vec<String>,
    /// Working directory of the program.
    cwd: Option<String>,
    /// URL of a server over HTTP.
    url: Option<String>,
    /// HTTP headers of each request to the URL.
    headers: BTreeMap<String, String>,
    /// File of certificates that are trusted for the URL besides those of the system.
    ca: Option<String>,
    /// File of the certificate that the gateway presents to the URL.
    #[serde(rename = "client-cert")]
    client_cert: Option<String>,
    /// File of the private key of that certificate.
    #[serde(rename = "client-key")]
    client_key: Option<String>,
    /// Transport that the entry names, such as `stdio` or `http`.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// True if the server is not used.
    disabled: bool,
    /// Whose credentials the server is reached with; by default those of the gateway.
    auth: Option<ServerAuth>,
    /// Credentials of the gateway at the server.
    oauth: Option<ServerOAuth>,
    /// True if sessions of one principal share connections to the server.
    shared: bool,
    /// The only revision that is offered to the server.
    revision: Option<String>,
    /// Time limit in seconds for a connection to the server, and for an answer of the server.
    timeout: Option<u64>,
    /// Maximum size of a message of the server, in bytes.
    #[serde(rename = "message-bytes")]
    message_bytes: Option<usize>,
    /// Maximum number of pages of a list of the server.
    #[serde(rename = "max-pages")]
    max_pages: Option<usize>,
    /// Maximum size of a result of a tool, prompt or resource, in bytes.
    #[serde(rename = "result-bytes")]
    result_bytes: Option<usize>,
    /// Circuit breaker.
    breaker: Option<Breaker>,
    /// Repetition of reads.
    retry: Option<Retry>,
    /// True if its answers are kept.
    cache: Option<bool>,
    /// Form of the schemas of its tools.
    schemas: Option<Schemas>,
    /// What clients see of its tools.
    tools: BTreeMap<String, Tool>,
}

/// Rule that shows or hides tools, prompts and resources.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Access {
    /// Patterns of the names of servers to which the rule applies; empty for all servers.
    servers: Vec<String>,
    /// Patterns of the principals to which the rule applies; empty for all clients.
    principals: Vec<String>,
    /// Patterns of tools, prompts and resources that are shown.
    allow: Vec<String>,
    /// Patterns of tools, prompts and resources that are hidden.
    deny: Vec<String>,
}

impl From<Server> for ServerEntry {
    fn from(server: Server) -> Self {
        let mut entry = Self::default();
        entry.command = server.command;
        entry.args = server.args;
        entry.env = server.env;
        entry.inherit_env = server.inherit_env;
        entry.cwd = server.cwd;
        entry.url = server.url;
        entry.headers = server.headers;
        entry.ca = server.ca;
        entry.client_cert = server.client_cert;
        entry.client_key = server.client_key;
        entry.kind = server.kind;
        entry.disabled = server.disabled;
        entry.revision = server.revision;
        entry.timeout = server.timeout;
        entry.message_bytes = server.message_bytes;
        entry.max_pages = server.max_pages;
        entry
    }
}

impl Config {
    /// Reads a configuration file, and returns its settings and its servers. A file that starts with `{` or a comment of JSON is
    /// parsed as `mcp.json`. A server whose entry cannot be used is left out, unless it is the only one.
    pub fn read(path: &Path) -> anyhow::Result<(Self, Vec<ConfiguredServer>)> {
        let whole = std::fs::read_to_string(path);
        let whole = whole.with_context(|| format!("cannot read {}", path.display()))?;
        let text = whole.strip_prefix('\u{feff}').unwrap_or(&whole);
        let read = if text.trim_start().starts_with(['{', '/']) {
            let entries = ServerEntry::parse_all(text);
            entries
                .map(with_usable_names)
                .map(|entries| (Self::default(), entries, BTreeMap::new()))
                .map_err(anyhow::Error::from)
        } else {
            Self::parse_toml(text)
        };
        let (mut config, entries, mut options) =
            read.with_context(|| path.display().to_string())?;
        config.check().with_context(|| path.display().to_string())?;
        let servers = configured_servers(entries, &mut options);
        let (servers, left_out) = servers.with_context(|| path.display().to_string())?;
        for server in &servers {
            let tools = server.entry.tools.clone();
            config.catalogue.set_filter(&server.name, tools);
        }
        config.left_out = left_out;
        config.text = whole;
        Ok((config, servers))
    }

    /// Parses a TOML file; returns its settings, the `mcp.json` entries of its servers, and the other options of its
    /// servers.
    fn parse_toml(text: &str) -> anyhow::Result<(Self, Entries, ServerOptionsByName)> {
        let mut config: Self = toml::from_str(text)?;
        let (mut entries, mut options) = (BTreeMap::new(), ServerOptionsByName::new());
        for (name, mut server) in std::mem::take(&mut config.servers) {
            let tools = std::mem::take(&mut server.tools);
            if !server.disabled {
                add_tools(&mut config.catalogue, &name, tools)?;
            }
            let dealing = ServerOptions {
                auth: server.auth,
                oauth: server.oauth.take(),
                is_shared: server.shared,
                result_bytes: server.result_bytes,
                breaker: server.breaker,
                retry: server.retry,
                cache: server.cache,
                schemas: server.schemas,
            };
            options.insert(name.clone(), dealing);
            entries.insert(name, Ok(server.into()));
        }
        Ok((config, entries, options))
    }

    /// Creates the seal of `requestState` from the configured keys; `None` without keys, in which case each process
    /// uses a random key.
    pub fn create_seal(&self) -> anyhow::Result<Option<Arc<dyn Seal>>> {
        let keys = self.seal_keys.iter().map(|key| {
            let remedy = "seal-keys: write 32 random bytes in base64, such as `openssl rand -base64 32` prints";
            let bytes = STANDARD.decode(expand_variables(key)?.trim()).context(remedy)?;
            <[u8; 32]>::try_from(bytes).map_err(|_| anyhow::anyhow!(remedy))
        });
        let mut keys = keys.collect::<anyhow::Result<Vec<_>>>()?.into_iter();
        Ok(keys
            .next()
            .map(|first| Arc::new(KeyRing::new(first, keys)) as Arc<dyn Seal>))
    }

    /// Returns the prefix policy in the type of the bridge library.
    pub fn prefix(&self) -> Prefix {
        match self.prefix {
            PrefixPolicy::Always => Prefix::Always,
            PrefixPolicy::OnConflict => Prefix::OnConflict,
            PrefixPolicy::Never => Prefix::Never,
        }
    }

    /// Returns the access rules in the type of the bridge library.
    pub fn access(&self) -> Vec<AccessRule> {
        let rules = self.access.iter();
        let rules = rules.map(|of_file| {
            let mut rule = AccessRule::default();
            rule.servers.clone_from(&of_file.servers);
            rule.principals.clone_from(&of_file.principals);
            rule.allow.clone_from(&of_file.allow);
            rule.deny.clone_from(&of_file.deny);
            rule
        });
        rules.collect()
    }

    /// Returns the `[[loss]]` rules in the type of the bridge library.
    pub fn loss_rules(&self) -> Vec<LossRule> {
        let rules = self.loss.iter();
        let rules = rules.map(|rule| LossRule::new(&rule.patterns, rule.policy.into()));
        rules.collect()
    }

    /// Returns the limits of principals in the type of the bridge library.
    pub fn limits(&self) -> Option<PrincipalLimits> {
        let of_file = self.limits?;
        let mut limits = PrincipalLimits::default();
        limits.per_second = of_file.per_second;
        limits.burst = of_file.burst;
        limits.concurrent = of_file.concurrent;
        Some(limits)
    }

    /// Returns the limits of what all clients hold together, which are those of the file without a default.
    pub fn totals(&self) -> Limits {
        self.limits.unwrap_or_default()
    }

    /// Checks that no server is left out, for commands that are about the file.
    ///
    /// # Errors
    /// What is wrong with the first entry that cannot be used.
    pub fn check_entries(&self) -> anyhow::Result<()> {
        match self.left_out.first() {
            Some(left_out) => bail!("{left_out}"),
            None => Ok(()),
        }
    }

    /// Logs the servers that are left out, and what has no effect in the entries of the others.
    pub fn warn(&self, servers: &[ConfiguredServer]) {
        for LeftOut { name, reason } in &self.left_out {
            tracing::warn!(
                server = name,
                reason,
                "the server is left out, because its entry cannot be used"
            );
        }
        for ConfiguredServer { name, entry, .. } in servers {
            if !entry.notes.is_empty() {
                tracing::warn!(server = name, "{}", entry.notes.join("; "));
            }
        }
    }

    /// Checks the values of the configuration; the error names the invalid key.
    fn check(&self) -> anyhow::Result<()> {
        if self.timeout == Some(0) {
            bail!("timeout: write a number of seconds above 0, such as `timeout = 60`");
        }
        layers::check(self.breaker, self.retry)?;
        let limits = self.limits.unwrap_or_default();
        if limits
            .per_second
            .is_some_and(|rate| !(rate.is_finite() && rate > 0.0))
        {
            bail!("[limits] per-second: write a number above 0, such as `per-second = 10`");
        }
        if limits.concurrent == Some(0) {
            bail!("[limits] concurrent: write a number above 0, such as `concurrent = 8`");
        }
        let mut totals = limits.totals().into_iter();
        if let Some((key, _)) = totals.find(|(_, limit)| *limit == Some(0)) {
            bail!("[limits] {key}: write a number above 0, or leave it out");
        }
        let otlp = self.telemetry.as_ref();
        if let Some(url) = otlp.and_then(|telemetry| telemetry.otlp.as_deref())
            && !(url.starts_with("http://") || url.starts_with("https://"))
        {
            bail!(
                "[telemetry] otlp: write the URL of the collector, such as `otlp = \"http://127.0.0.1:4318\"`"
            );
        }
        let sessions = self.sessions.as_ref();
        if sessions.is_some_and(|store| store.directory.is_some() == store.redis.is_some()) {
            bail!(
                "[sessions]: write where sessions are stored, such as `directory = \"sessions\"`, or \
                 `redis = \"redis://127.0.0.1:6379\"` for many processes"
            );
        }
        if self
            .search
            .as_ref()
            .is_some_and(|search| search.results == Some(0))
        {
            bail!("[search] results: write a number above 0, such as `results = 5`");
        }
        if self.search.is_some() {
            check_names_of_search(&self.catalogue)?;
        }
        if limits.burst > 0 && limits.per_second.is_none() {
            bail!("[limits] burst is for requests per second: add `per-second = 10`");
        }
        Ok(())
    }

    /// Returns the keys whose values differ from those of another configuration and take effect only after a restart.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        let settings = [
            ("listen", self.listen != other.listen),
            ("allow-host", self.allow_host != other.allow_host),
            ("allow-origin", self.allow_origin != other.allow_origin),
            (
                "client-revision",
                self.client_revision != other.client_revision,
            ),
            ("prefix", self.prefix != other.prefix),
            (
                "losses-in-meta",
                self.losses_in_meta != other.losses_in_meta,
            ),
            (
                "losses-in-header",
                self.losses_in_header != other.losses_in_header,
            ),
            ("strict", self.strict != other.strict),
            ("metrics", self.metrics != other.metrics),
            ("audit", self.audit != other.audit),
            (
                "audit-arguments",
                self.audit_arguments != other.audit_arguments,
            ),
            ("drain", self.drain != other.drain),
            ("timeout", self.timeout != other.timeout),
            ("message-bytes", self.message_bytes != other.message_bytes),
            (
                "message-budget",
                self.message_budget != other.message_budget,
            ),
            ("max-pages", self.max_pages != other.max_pages),
            ("result-bytes", self.result_bytes != other.result_bytes),
            ("breaker", self.breaker != other.breaker),
            ("retry", self.retry != other.retry),
            ("cache", self.cache != other.cache),
            ("schemas", self.schemas != other.schemas),
            ("answer-within", self.answer_within != other.answer_within),
            ("list-within", self.list_within != other.list_within),
            (
                "spare-processes",
                self.spare_processes != other.spare_processes,
            ),
            ("auth", self.auth != other.auth),
            ("sessions", self.sessions != other.sessions),
            ("telemetry", self.telemetry != other.telemetry),
            ("seal-keys", self.seal_keys != other.seal_keys),
            (
                "totals of [limits]",
                self.totals().totals() != other.totals().totals(),
            ),
        ];
        let changed = settings.into_iter().filter(|(_, is_other)| *is_other);
        changed.map(|(name, _)| name).collect()
    }
}
