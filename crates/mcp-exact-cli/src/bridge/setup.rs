//! Settings of a bridge, combined from the command line and the configuration file: the options of the bridge library, of its
//! HTTP server and of its listener. Connects the bridge to its servers.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use mcp_exact::transport::http::server::{Allowed, Authenticate, HttpServerOptions, ListenOptions};
use mcp_exact::{MessageBudget, Tolerance};
use mcp_exact_bridge::{Bridge, FirstClient, Offer, Options, Rules, Upstream};

use super::config::{Config, ConfiguredServer, LeftOut, Schemas, Search};
use super::lock::read_pins;
use super::losses::Losses;
#[cfg(feature = "oauth")]
use super::users::UserServers;
use crate::client::{Settings, Target};
use crate::time_limit;

/// Arguments of a gateway; the commands about the servers of a gateway create those that their own arguments stand for.
#[derive(Args)]
pub struct GatewayArguments {
    /// Serve clients over HTTP at an address, such as 127.0.0.1:8080, until Ctrl-C. The path is /mcp; clients of 2024-11-05
    /// use /sse.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Allow this name in the header Host; without it, only the loopback names are allowed.
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
    /// Allow web pages of this origin.
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Offer clients this revision; can be given more than once. Without it all revisions.
    #[arg(long, value_name = "R")]
    pub client_revision: Vec<String>,
    /// Policy for messages that the other revision cannot express without a loss; the default is `report`.
    #[arg(long, value_enum)]
    pub losses: Option<Losses>,
    /// Serve the servers of a configuration file: TOML, or the `mcp.json` of a client.
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    pub config: Option<PathBuf>,
    /// Rewrite the schemas of tools into equivalent ones that widely used hosts accept, such as one type instead of
    /// `["string","null"]`; shapes without an equivalent are reported. `docs/repairs.md` has the shapes.
    #[arg(long)]
    pub portable_schemas: bool,
    /// Levels of the log on standard error, such as `info`, or of its parts, such as `warn,mcp_exact_bridge=debug`. Without it
    /// the variable RUST_LOG has them; the default is `warn`.
    #[arg(long, value_name = "LEVELS")]
    pub log: Option<String>,
    /// Print the limits that hold with these settings, and what the gateway needs at most; nobody is served.
    #[arg(long)]
    pub limits: bool,
    #[command(flatten)]
    pub settings: Settings,
    /// The URL of the server, or the command that starts it with its arguments.
    #[arg(
        value_name = "COMMAND|URL",
        required_unless_present_any = ["config", "limits"],
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub server: Vec<OsString>,
}

impl GatewayArguments {
    /// Creates the arguments of a command in front of the server of a command line, or of the servers of a file.
    pub fn new(settings: Settings) -> Self {
        Self {
            listen: None,
            allow_host: Vec::new(),
            allow_origin: Vec::new(),
            client_revision: Vec::new(),
            losses: None,
            config: None,
            portable_schemas: false,
            log: None,
            limits: false,
            settings,
            server: Vec::new(),
        }
    }

    /// Returns an error for an option without effect: for one server beside a file of servers, or for what clients give servers.
    pub fn check_options(&self) -> anyhow::Result<()> {
        if let Some(option) = self.settings.client_option() {
            bail!("servers get that from the clients of the gateway; leave `{option}` out");
        }
        let option = self.settings.server_option();
        let Some((option, key)) = option.filter(|_| self.config.is_some()) else {
            return Ok(());
        };
        bail!(
            "{option} is for a server of the command line; write `{key}` into its entry in the file"
        );
    }
}

/// Settings of a bridge, combined from the command line and the configuration file.
pub struct Setup<'a> {
    /// Arguments of the command line.
    pub arguments: &'a GatewayArguments,
    /// True if the bridge serves clients; false for `bridge explain`.
    pub is_serving: bool,
    /// Options of the bridge library.
    pub options: Options,
    /// Address at which clients are served over HTTP; `None` for standard input and output.
    pub listen: Option<String>,
    /// Allowed values of the header `Host`; empty for the loopback names.
    pub hosts: Vec<String>,
    /// Allowed values of the header `Origin`; empty for loopback origins.
    pub origins: Vec<String>,
    /// Settings of the configuration file.
    pub config: Config,
    /// Servers of the configuration file; empty if the command line names the server.
    pub servers: Vec<ConfiguredServer>,
    /// Credentials of users; `None` if no server is reached with them.
    #[cfg(feature = "oauth")]
    pub users: Option<UserServers>,
}

impl<'a> Setup<'a> {
    /// Combines the command line with the configuration file; the command line overrides the file.
    pub fn from_arguments(arguments: &'a GatewayArguments) -> anyhow::Result<Self> {
        arguments.check_options()?;
        let (config, servers) = match &arguments.config {
            Some(path) => Config::read(path)?,
            None => Default::default(),
        };
        Self::new(arguments, config, servers)
    }

    /// Combines the command line with the settings and servers of a configuration file.
    pub fn new(
        arguments: &'a GatewayArguments,
        config: Config,
        servers: Vec<ConfiguredServer>,
    ) -> anyhow::Result<Self> {
        let either = |own: &[String], of_file: &[String]| match own {
            [] => of_file.to_vec(),
            own => own.to_vec(),
        };
        let mut options = Options::default();
        options.rules = create_rules(&config, arguments.losses)?;
        if config.strict {
            options.tolerance = Tolerance::Strict;
        } else {
            options.tolerance = arguments.settings.tolerance();
        }
        options.losses_in_meta = config.losses_in_meta;
        options.losses_in_header = config.losses_in_header;
        options.servers_may_change = !servers.is_empty();
        options.prefix = config.prefix();
        options.seal = config.create_seal()?;
        let timeout = config.timeout.map(time_limit::from_seconds);
        if let Some(limit) = arguments.settings.given_timeout().or(timeout) {
            options.connect_timeout = limit;
            options.request_timeout.idle = limit;
            options.request_timeout.total = options.request_timeout.total.max(limit);
        }
        let size = arguments.settings.message_bytes().or(config.message_bytes);
        if let Some(size) = size {
            options.limits.message_bytes = size;
        }
        let budget = arguments.settings.message_budget();
        if let Some(size) = budget.or(config.message_budget) {
            options.limits.message_budget = MessageBudget::new(size);
        }
        if let Some(pages) = arguments.settings.max_pages().or(config.max_pages) {
            options.max_pages = pages;
        }
        options.result_bytes = config.result_bytes;
        options.breaker = config.breaker.map(|breaker| breaker.settings());
        options.retry = config.retry.map(|retry| retry.settings());
        options.cache = config.cache.map(|cache| cache.settings());
        options.portable_schemas =
            arguments.portable_schemas || config.schemas == Some(Schemas::Portable);
        if let Some(seconds) = config.answer_within {
            options.answer_within = time_limit::from_seconds(seconds);
        }
        if let Some(seconds) = config.list_within {
            options.list_within = time_limit::from_seconds(seconds);
        }
        let totals = config.totals();
        for (limit, key) in [
            (&mut options.connections, totals.server_connections),
            (&mut options.session_connections, totals.session_connections),
            (&mut options.waiting_calls, totals.waiting_calls),
        ] {
            *limit = key.unwrap_or(*limit);
        }
        let offered = either(&arguments.client_revision, &config.client_revision);
        if !offered.is_empty() {
            let ids = offered.iter().map(String::as_str);
            options.downstream_offer = Offer::new(ids).context("client-revision")?;
        }
        if let Some(revision) = arguments.settings.offered_revision()? {
            options.upstream_offer.revisions = vec![revision];
        }
        let listen = arguments.listen.clone().or_else(|| config.listen.clone());
        // On standard input and output there is one client.
        let spares = config.spare_processes;
        options.spare_processes = spares.unwrap_or(usize::from(listen.is_some()));
        let hosts = either(&arguments.allow_host, &config.allow_host);
        let origins = either(&arguments.allow_origin, &config.allow_origin);
        if listen.is_none() && !(hosts.is_empty() && origins.is_empty()) {
            bail!("allow-host and allow-origin are for HTTP: give an address to listen at, too");
        }
        let is_for_http = config.metrics || config.auth.is_some() || config.sessions.is_some();
        if listen.is_none() && is_for_http {
            bail!("metrics, [auth] and [sessions] are for HTTP: give an address to listen at, too");
        }
        for command in servers.iter().filter_map(|server| server.command.as_ref()) {
            arguments.settings.add_started(command);
        }
        #[cfg(feature = "oauth")]
        let users = UserServers::from_config(&config, &servers, options.seal.as_ref())?;
        Ok(Self {
            #[cfg(feature = "oauth")]
            users,
            arguments,
            is_serving: true,
            options,
            listen,
            hosts,
            origins,
            config,
            servers,
        })
    }

    /// Creates the bridge and connects it to the servers.
    pub async fn connect(
        &self,
        client: impl Future<Output = Option<FirstClient>>,
    ) -> anyhow::Result<Bridge> {
        let mut options = self.options.clone();
        let bridge = if self.servers.is_empty() {
            // Standard input belongs to the client, if there is one.
            let has_input = self.listen.is_some() || !self.is_serving;
            let settings = &self.arguments.settings;
            let server = &self.arguments.server;
            let (target, tools) = settings.parse_target(server, has_input)?;
            options.rules.catalogue.set_filter("", tools);
            let upstream = match target {
                Target::Command(command) => settings.remembered(*command, server),
                Target::Http(endpoint) => settings.remembered(*endpoint, server),
            };
            Bridge::new_for(client, upstream, options).await
        } else {
            let servers = self.servers.iter();
            let probes = self.arguments.settings.probes();
            let servers = servers.map(|server| {
                let upstream = self.upstream_of(server, probes)?;
                Ok((server.name.clone(), upstream))
            });
            let servers = servers.collect::<anyhow::Result<Vec<_>>>()?;
            Bridge::many_for(client, servers, options).await
        };
        bridge.map_err(|error| anyhow!("{error}"))
    }
}

impl Setup<'_> {
    /// Returns a server of the file as an upstream of the bridge.
    fn upstream_of(
        &self,
        server: &ConfiguredServer,
        probes: bool,
    ) -> anyhow::Result<Arc<dyn Upstream>> {
        #[cfg(feature = "oauth")]
        if let (true, Some(users)) = (server.is_of_users(), &self.users) {
            return users.upstream_of(server);
        }
        Ok(server.upstream(probes))
    }

    /// Returns the options of the HTTP service.
    pub fn http_options(&self, authenticate: Option<Arc<dyn Authenticate>>) -> HttpServerOptions {
        let only = |names: &[String]| match names {
            [] => Allowed::Loopback,
            names => Allowed::Only(names.to_vec()),
        };
        let mut options = HttpServerOptions {
            hosts: only(&self.hosts),
            origins: only(&self.origins),
            source_settings: ["allow-host", "allow-origin"],
            authenticate,
            ..HttpServerOptions::default()
        };
        let limits = self.config.totals();
        if let Some(sessions) = limits.sessions {
            options.sessions = sessions;
            options.sessions_per_client = sessions.div_ceil(2);
        }
        if let Some(bytes) = limits.body_bytes {
            options.body_bytes = bytes;
        }
        options
    }

    /// Returns the options of the listener.
    pub fn listen_options(&self) -> ListenOptions {
        let mut options = ListenOptions::default();
        if let Some(drain) = self.config.drain {
            options.drain = time_limit::from_seconds(drain);
        }
        if let Some(connections) = self.config.totals().connections {
            options.connections = connections;
            options.connections_per_client = connections.div_ceil(2);
        }
        options
    }

    /// Returns the number of servers, and of those that are commands; without a server, that of one command.
    pub fn count_servers(&self) -> (usize, usize) {
        if !self.servers.is_empty() {
            let commands = self
                .servers
                .iter()
                .filter(|server| server.entry.command.is_some());
            return (self.servers.len(), commands.count());
        }
        let first = self
            .arguments
            .server
            .first()
            .and_then(|server| server.to_str());
        let is_url = first.is_some_and(|server| server.contains("://"));
        (1, usize::from(!is_url))
    }
}

/// Creates the rules of the bridge from a configuration and its lock file; `losses` of the command line overrides the policy for
/// losses.
pub fn create_rules(config: &Config, losses: Option<Losses>) -> anyhow::Result<Rules> {
    let mut rules = Rules::default();
    rules.losses = losses.or(config.losses).unwrap_or(Losses::Report).into();
    rules.loss_rules = config.loss_rules();
    rules.access = config.access();
    rules.catalogue = config.catalogue.clone();
    rules
        .extension_methods
        .clone_from(&config.extension_methods);
    rules.limits = config.limits();
    rules.search = config.search.as_ref().map(Search::rule);
    rules.pins = read_pins(config.pins.as_ref())?;
    Ok(rules)
}

/// Formats the servers with their revisions as one line of text, and those that are left out.
pub fn format_servers(bridge: &Bridge, left_out: &[LeftOut]) -> String {
    let servers = bridge.servers();
    let servers = servers.iter().map(|(name, known)| {
        let speaks = match known {
            Some(info) => format!("of revision {}", info.revision),
            None => "that cannot be reached".to_owned(),
        };
        if name.is_empty() {
            format!("server {speaks}")
        } else {
            format!("server {name} {speaks}")
        }
    });
    let left_out = left_out.iter();
    let left_out = left_out.map(|LeftOut { name, .. }| format!("server {name} left out"));
    servers.chain(left_out).collect::<Vec<_>>().join(", ")
}
