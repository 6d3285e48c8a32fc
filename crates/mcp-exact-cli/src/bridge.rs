//! `mcp-exact bridge`: a gateway in front of servers, so that clients of any revision can use them, over stdio or HTTP.
//!
//! Losses of conversions are written to standard error. `bridge explain` lists in advance the changes and losses for
//! clients of each revision.

mod audit;
#[cfg(feature = "oauth")]
mod auth;
mod config;
mod explain;
mod limits;
mod lines;
mod lock;
mod log;
mod matrix;
mod operations;
mod pin;
mod reload;
mod reported_losses;
mod sessions;
#[cfg(feature = "telemetry")]
mod telemetry;
#[cfg(feature = "oauth")]
pub mod users;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::{Args, Subcommand, ValueEnum};
use mcp_exact::transport::http::server::{
    Allowed, Authenticate, HttpListener, HttpServerOptions, ListenOptions,
};
use mcp_exact::transport::{ConnectionOptions, StdioTransport, stdio};
use mcp_exact::{MessageBudget, Tolerance};
use mcp_exact_bridge::{
    Bridge, FirstClient, LossHook, LossPolicy, Offer, Options, Rules, Upstream,
};

use self::config::{Config, ConfiguredServer, Schemas};
use self::operations::Operations;
use self::reload::ConfigReloader;
use self::reported_losses::ReportedLosses;
use self::sessions::OpenedStores;
use crate::Outcome;
use crate::client::{Settings, Target, block_on};
use crate::terminal::print_to_stderr;
use crate::text::{Untrusted, text};

/// The arguments of `mcp-exact bridge`.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "\
In the configuration of a client, put it before the command or the URL of a server: `mcp-exact bridge node server.js`, \
`mcp-exact bridge https://example.com/mcp`. With --listen it serves clients over HTTP instead.

With --config it stands in front of many servers. The file is the `mcp.json` of a client, or TOML:

  listen = \"127.0.0.1:8080\"      # as the options allow-host, allow-origin, client-revision, losses
  prefix = \"always\"              # or on-conflict, never: tools are named files__read, web__search
  schemas = \"portable\"           # schemas of tools that more hosts accept; also for one server

  [servers.files]
  command = \"node\"
  args = [\"server.js\"]
  env = { TOKEN = \"${TOKEN}\" }

  [servers.web]
  url = \"https://example.com/mcp\"
  headers = { Authorization = \"Bearer ${WEB_TOKEN}\" }

  [servers.web.tools.search]      # what clients see of a tool
  rename = \"find\"

  [[access]]                      # the last rule that says something counts
  servers = [\"files\"]
  allow = [\"read_*\"]
  deny = [\"read_secret\"]

Servers, tools, access, losses and limits change while it runs, when the file changes or on SIGHUP; clients keep their sessions. Over \
HTTP it serves /healthz and /readyz. `docs/bridge.md` has all settings: limits, audit log, metrics, authorization.

A server whose command is called `explain`, `pin` or `diff` stands after `--`: `mcp-exact bridge -- explain`.

Exit code: 0 the last client has left; 2 wrong usage, or the server cannot be reached, or the address cannot be bound."
)]
pub struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Serve clients over HTTP at an address, such as 127.0.0.1:8080, until Ctrl-C. The path is /mcp; clients of 2024-11-05
    /// use /sse.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Allow this name in the header Host; without it, only the loopback names are allowed.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Allow web pages of this origin.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Offer clients this revision; can be given more than once. Without it all revisions.
    #[arg(long, value_name = "R")]
    client_revision: Vec<String>,
    /// Policy for messages that the other revision cannot express without a loss; the default is `report`.
    #[arg(long, value_enum)]
    losses: Option<Losses>,
    /// Serve the servers of a configuration file: TOML, or the `mcp.json` of a client.
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    config: Option<PathBuf>,
    /// Rewrite the schemas of tools into equivalent ones that widely used hosts accept, such as one type instead of
    /// `["string","null"]`; shapes without an equivalent are reported. `docs/repairs.md` has the shapes.
    #[arg(long)]
    portable_schemas: bool,
    /// Levels of the log on standard error, such as `info`, or of its parts, such as `warn,mcp_exact_bridge=debug`. Without it
    /// the variable RUST_LOG has them; the default is `warn`.
    #[arg(long, value_name = "LEVELS")]
    log: Option<String>,
    /// Print the limits that hold with these settings, and what the gateway needs at most; nobody is served.
    #[arg(long)]
    limits: bool,
    #[command(flatten)]
    settings: Settings,
    /// The URL of the server, or the command that starts it with its arguments.
    #[arg(
        value_name = "COMMAND|URL",
        required_unless_present_any = ["config", "limits"],
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    server: Vec<OsString>,
}

impl Arguments {
    /// Returns an error if options for one server are beside a file of servers.
    fn check_certificates(&self) -> anyhow::Result<()> {
        let option = self.settings.certificate_option();
        let Some(option) = option.filter(|_| self.config.is_some()) else {
            return Ok(());
        };
        let key = option.trim_start_matches('-');
        bail!(
            "{option} is for a server of the command line; write `{key}` into its entry in the file"
        );
    }
}

/// Commands of `mcp-exact bridge` besides serving clients.
#[derive(Subcommand)]
enum Command {
    /// Explain which losses clients have with a server, or with any server of a revision.
    Explain(Box<explain::Arguments>),
    /// Approve the definitions of tools that the servers of a file have now: write them and their hashes to its lock file.
    Pin(Box<pin::PinArguments>),
    /// Show what has changed about the tools of the servers of a file since they were pinned.
    Diff(Box<pin::DiffArguments>),
}

/// Policy for losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Losses {
    /// Convert the message, and report the losses on standard error.
    Report,
    /// Answer with an error instead of the message.
    Refuse,
    /// Convert the message without reporting losses.
    Accept,
}

impl From<Losses> for LossPolicy {
    fn from(losses: Losses) -> Self {
        match losses {
            Losses::Report => Self::Report,
            Losses::Refuse => Self::Refuse,
            Losses::Accept => Self::Accept,
        }
    }
}

/// Runs the bridge until the last client has disconnected, or prints the explanation.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    // Calls that end with the runtime are in the log, too.
    let mut audit = None;
    block_on(async {
        match &arguments.command {
            Some(Command::Explain(arguments)) => explain::run(arguments).await,
            Some(Command::Pin(arguments)) => pin::run_pin(arguments).await,
            Some(Command::Diff(arguments)) => pin::run_diff(arguments).await,
            None => run_bridge(arguments, &mut audit).await,
        }
    })
}

/// Runs the bridge; the audit log is stored in `audit`, so that the caller can end the log after the runtime has ended.
async fn run_bridge(
    arguments: &Arguments,
    audit: &mut Option<lines::LineLog>,
) -> anyhow::Result<Outcome> {
    let setup = Setup::from_arguments(arguments)?;
    if arguments.limits {
        let (http, listen) = (setup.http_options(None), setup.listen_options());
        limits::Limits::new(&setup, &http, &listen).print()?;
        return Ok(Outcome::Valid);
    }
    let observation = log::LogAndTraces::start(arguments.log.as_deref(), &setup.config)?;
    let served = serve(setup, &observation.stderr(), audit).await;
    observation.end().await;
    served
}

/// Connects to the servers, and serves clients until the last client has disconnected or the process receives a
/// shutdown signal.
async fn serve(
    mut setup: Setup<'_>,
    stderr: &log::Stderr,
    audit: &mut Option<lines::LineLog>,
) -> anyhow::Result<Outcome> {
    let losses = Arc::new(ReportedLosses::default());
    let (reported, out) = (Arc::clone(&losses), stderr.clone());
    setup.options.on_loss = Some(LossHook::new(move |report| reported.report(report, &out)));
    if let Some(path) = &setup.config.audit {
        let (observers, log) = audit::open_log(path, setup.config.audit_arguments)?;
        setup.options.on_call = Some(observers.calls);
        setup.options.on_repair = Some(observers.repairs);
        setup.options.on_unportable_schema = Some(observers.schemas);
        setup.options.on_unpinned_tool = Some(observers.pins);
        *audit = Some(log);
    }
    let created = Arc::new(OnceLock::new());
    let clients = setup
        .config
        .auth
        .as_ref()
        .map(|auth| create_authenticator(auth, &created))
        .transpose()?;
    let mut transport = match &setup.listen {
        None => Some(stdio(setup.options.limits.message_bytes)?),
        Some(_) => None,
    };
    let bridge = setup.connect(first_client(transport.as_mut())).await?;
    let _ = created.set(bridge.clone());
    let watching = setup
        .reload(&bridge, stderr)
        .map(ConfigReloader::watch)
        .map(tokio::spawn);
    let served = match (&setup.listen, transport) {
        (Some(address), _) => serve_http(&setup, &bridge, address, clients).await,
        (None, Some(transport)) => serve_stdio(&setup, &bridge, transport).await,
        (None, None) => Ok(()),
    };
    if let Some(watching) = watching {
        watching.abort();
    }
    // What does not end in time is killed with the runtime.
    let _ = tokio::time::timeout(END_TIMEOUT, bridge.shutdown()).await;
    losses.report_repeated(stderr);
    served.map(|()| Outcome::Valid)
}

/// Reads the first message of the client on standard input, which usually comes at once; `None` for clients over HTTP.
async fn first_client(transport: Option<&mut StdioTransport>) -> Option<FirstClient> {
    let first = transport?.first_message();
    // An error shows again when the client is served.
    let message = tokio::time::timeout(FIRST_MESSAGE_TIMEOUT, first).await;
    FirstClient::of_message(&message.ok()?.ok()??)
}

/// Time to wait for the first message of a client, for which the servers that start meanwhile are connected.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit for the end of the servers.
const END_TIMEOUT: Duration = Duration::from_millis(700);

/// Serves the client on standard input and output until the end of input or a shutdown signal. A client that has left may read
/// nothing any more, so the end does not wait long for it.
async fn serve_stdio(
    setup: &Setup<'_>,
    bridge: &Bridge,
    transport: StdioTransport,
) -> anyhow::Result<()> {
    let (settings, handler) = bridge.endpoint();
    let drain = setup
        .config
        .drain
        .map_or(Duration::from_millis(700), Duration::from_secs);
    let options = ConnectionOptions {
        drain,
        close: Duration::from_millis(300),
        ..ConnectionOptions::default()
    };
    // With a file, SIGHUP reloads it.
    let ends_on_hangup = setup.arguments.config.is_none();
    let shutdown = wait_for_shutdown_signal(ends_on_hangup);
    Ok(mcp_exact::transport::serve(settings, handler, transport, options, shutdown).await?)
}

/// Serves clients over HTTP until a shutdown signal is received, and then completes the calls in flight.
async fn serve_http(
    setup: &Setup<'_>,
    bridge: &Bridge,
    address: &str,
    clients: Option<Arc<dyn Authenticate>>,
) -> anyhow::Result<()> {
    let listener = HttpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen at {address}"))?;
    let is_ending = Arc::new(AtomicBool::new(false));
    let operations = Operations {
        bridge: bridge.clone(),
        has_metrics: setup.config.metrics,
        is_ending: Arc::clone(&is_ending),
        clients,
    };
    let mut options = setup.http_options(Some(Arc::new(operations)));
    #[cfg(feature = "oauth")]
    if let Some(users) = &setup.users {
        options.pages = Some(users.pages());
    }
    let stores = OpenedStores::open(setup.config.sessions.as_ref(), &mut options)?;
    let service = bridge.http(options);
    let listener = listener.options(setup.listen_options());
    let address = listener.local_addr()?;
    print_to_stderr(&text!(
        "listening at http://{}/mcp, {}",
        address,
        Untrusted(&format_servers(bridge))
    ));
    let ends_on_hangup = setup.arguments.config.is_none();
    let shutdown = async move {
        wait_for_shutdown_signal(ends_on_hangup).await;
        is_ending.store(true, Ordering::Release);
    };
    let served = listener.serve(service, shutdown).await;
    stores.end().await;
    served?;
    Ok(())
}

/// Creates the authenticator of clients, which accepts tokens of the configured authorization server.
#[cfg(feature = "oauth")]
fn create_authenticator(
    auth: &config::Auth,
    bridge: &Arc<OnceLock<Bridge>>,
) -> anyhow::Result<Arc<dyn Authenticate>> {
    Ok(Arc::new(auth::Clients::new(auth, Arc::clone(bridge))?))
}

/// Returns an error, because this build cannot authenticate clients.
#[cfg(not(feature = "oauth"))]
fn create_authenticator(
    _: &config::Auth,
    _: &Arc<OnceLock<Bridge>>,
) -> anyhow::Result<Arc<dyn Authenticate>> {
    bail!("[auth] needs the feature `oauth`: install the program with `--features full`")
}

/// Formats the servers with their revisions as one line of text.
fn format_servers(bridge: &Bridge) -> String {
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
    servers.collect::<Vec<_>>().join(", ")
}

/// Settings of a bridge, combined from the command line and the configuration file.
struct Setup<'a> {
    /// Arguments of the command line.
    arguments: &'a Arguments,
    /// True if the bridge serves clients; false for `bridge explain`.
    is_serving: bool,
    /// Options of the bridge library.
    options: Options,
    /// Address at which clients are served over HTTP; `None` for standard input and output.
    listen: Option<String>,
    /// Allowed values of the header `Host`; empty for the loopback names.
    hosts: Vec<String>,
    /// Allowed values of the header `Origin`; empty for loopback origins.
    origins: Vec<String>,
    /// Settings of the configuration file.
    config: Config,
    /// Servers of the configuration file; empty if the command line names the server.
    servers: Vec<ConfiguredServer>,
    /// Credentials of users; `None` if no server is reached with them.
    #[cfg(feature = "oauth")]
    users: Option<users::UserServers>,
}

impl<'a> Setup<'a> {
    /// Combines the command line with the configuration file; the command line overrides the file.
    fn from_arguments(arguments: &'a Arguments) -> anyhow::Result<Self> {
        arguments.check_certificates()?;
        let (config, servers) = match &arguments.config {
            Some(path) => Config::read(path)?,
            None => Default::default(),
        };
        Self::new(arguments, config, servers)
    }

    /// Combines the command line with the settings and servers of a configuration file.
    fn new(
        arguments: &'a Arguments,
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
        let timeout = config.timeout.map(Duration::from_secs);
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
            options.answer_within = Duration::from_secs(seconds);
        }
        if let Some(seconds) = config.list_within {
            options.list_within = Duration::from_secs(seconds);
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
        #[cfg(feature = "oauth")]
        let users = users::UserServers::from_config(&config, &servers, options.seal.as_ref())?;
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
    async fn connect(
        &self,
        client: impl Future<Output = Option<FirstClient>>,
    ) -> anyhow::Result<Bridge> {
        let options = self.options.clone();
        let bridge = if self.servers.is_empty() {
            // Standard input belongs to the client, if there is one.
            let has_input = self.listen.is_some() || !self.is_serving;
            let settings = &self.arguments.settings;
            let server = &self.arguments.server;
            let upstream = match settings.parse_target(server, has_input)? {
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
            return server.user_upstream(users);
        }
        Ok(server.upstream(probes))
    }

    /// Returns the options of the HTTP service.
    fn http_options(&self, authenticate: Option<Arc<dyn Authenticate>>) -> HttpServerOptions {
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
    fn listen_options(&self) -> ListenOptions {
        let mut options = ListenOptions::default();
        if let Some(drain) = self.config.drain {
            options.drain = Duration::from_secs(drain);
        }
        if let Some(connections) = self.config.totals().connections {
            options.connections = connections;
            options.connections_per_client = connections.div_ceil(2);
        }
        options
    }

    /// Returns the number of servers, and of those that are commands; without a server, that of one command.
    fn count_servers(&self) -> (usize, usize) {
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

    /// Creates the reloader of the configuration file; `None` without a file.
    fn reload(&self, bridge: &Bridge, stderr: &log::Stderr) -> Option<ConfigReloader> {
        let path = self.arguments.config.clone()?;
        let losses = self.arguments.losses;
        Some(ConfigReloader {
            path,
            bridge: bridge.clone(),
            stderr: stderr.clone(),
            config: self.config.clone(),
            servers: self.servers.clone(),
            lock: self.config.pins.as_ref().map(|pins| pins.file.clone()),
            probes: self.arguments.settings.probes(),
            #[cfg(feature = "oauth")]
            users: self.users.clone(),
            rules: Box::new(move |config| create_rules(config, losses)),
        })
    }
}

/// Creates the rules of the bridge from a configuration and its lock file; `losses` of the command line overrides the policy for
/// losses.
fn create_rules(config: &Config, losses: Option<Losses>) -> anyhow::Result<Rules> {
    let mut rules = Rules::default();
    rules.losses = losses.or(config.losses).unwrap_or(Losses::Report).into();
    rules.loss_rules = config.loss_rules();
    rules.access = config.access();
    rules.catalogue = config.catalogue.clone();
    rules
        .extension_methods
        .clone_from(&config.extension_methods);
    rules.limits = config.limits();
    rules.search = config.search.as_ref().map(config::Search::rule);
    rules.pins = pin::read_pins(config.pins.as_ref())?;
    Ok(rules)
}

/// Completes when the process receives Ctrl-C or, on Unix, SIGTERM; also SIGHUP if `on_hangup` is true.
async fn wait_for_shutdown_signal(on_hangup: bool) {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let received =
            async |kind: SignalKind, is_wanted: bool| match signal(kind).ok().filter(|_| is_wanted)
            {
                Some(mut signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            };
        tokio::select! {
            () = received(SignalKind::terminate(), true) => {}
            () = received(SignalKind::hangup(), on_hangup) => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    }
    #[cfg(not(unix))]
    {
        let _ = (on_hangup, tokio::signal::ctrl_c().await);
    }
}
