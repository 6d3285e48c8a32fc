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
mod losses;
mod matrix;
mod operations;
mod pin;
mod reload;
mod reported_losses;
mod sessions;
mod setup;
#[cfg(feature = "telemetry")]
mod telemetry;
#[cfg(feature = "oauth")]
pub mod users;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use mcp_exact::transport::http::server::{Authenticate, HttpListener};
use mcp_exact::transport::{ConnectionOptions, StdioTransport, stdio};
use mcp_exact_bridge::{Bridge, FirstClient, LossHook};

use self::config::LeftOut;
use self::operations::{NamesLeftOut, Operations};
use self::reload::{ConfigReloader, HangupSignal};
use self::reported_losses::ReportedLosses;
use self::sessions::OpenedStores;
use self::setup::{GatewayArguments, Setup, format_servers};
use crate::Outcome;
use crate::client::{block_on, until_signal};
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
    #[command(flatten)]
    gateway: GatewayArguments,
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

/// Runs the bridge until the last client has disconnected, or prints the explanation.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    // Calls that end with the runtime are in the log, too.
    let mut audit = None;
    block_on(async {
        match &arguments.command {
            Some(Command::Explain(arguments)) => {
                until_signal(&arguments.settings, explain::run(arguments)).await
            }
            Some(Command::Pin(arguments)) => {
                until_signal(arguments.settings(), pin::run_pin(arguments)).await
            }
            Some(Command::Diff(arguments)) => {
                until_signal(arguments.settings(), pin::run_diff(arguments)).await
            }
            None => run_bridge(&arguments.gateway, &mut audit).await,
        }
    })
}

/// Runs the bridge; the audit log is stored in `audit`, so that the caller can end the log after the runtime has ended.
async fn run_bridge(
    arguments: &GatewayArguments,
    audit: &mut Option<lines::LineLog>,
) -> anyhow::Result<Outcome> {
    let setup = Setup::from_arguments(arguments)?;
    if arguments.limits {
        setup.config.check_entries()?;
        let (http, listen) = (setup.http_options(None), setup.listen_options());
        limits::Limits::new(&setup, &http, &listen).print()?;
        return Ok(Outcome::Valid);
    }
    let observation = log::LogAndTraces::start(arguments.log.as_deref(), &setup.config)?;
    setup.config.warn(&setup.servers);
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
    // With a file, SIGHUP reloads it. Signals count while servers start, too, which may take long.
    let ends_on_hangup = setup.arguments.config.is_none();
    let mut shutdown = Box::pin(wait_for_shutdown_signal(ends_on_hangup));
    let hangup = HangupSignal::new();
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
    let bridge = tokio::select! {
        biased;
        () = &mut shutdown => {
            setup.arguments.settings.servers_ended().await;
            return Ok(Outcome::Valid);
        }
        bridge = setup.connect(first_client(transport.as_mut())) => bridge?,
    };
    let _ = created.set(bridge.clone());
    let left_out = setup.config.left_out.iter();
    let left_out: NamesLeftOut = Arc::new(Mutex::new(left_out.map(LeftOut::name).collect()));
    let watching = ConfigReloader::new(&setup, &bridge, stderr, &left_out)
        .map(|reloader| tokio::spawn(reloader.watch(hangup)));
    let served = match (&setup.listen, transport) {
        (Some(address), _) => {
            serve_http(&setup, &bridge, address, (clients, left_out), shutdown).await
        }
        (None, Some(transport)) => serve_stdio(&setup, &bridge, transport, shutdown).await,
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
    shutdown: impl Future<Output = ()> + Send,
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
    Ok(mcp_exact::transport::serve(settings, handler, transport, options, shutdown).await?)
}

/// Serves clients over HTTP until a shutdown signal is received, and then completes the calls in flight.
async fn serve_http(
    setup: &Setup<'_>,
    bridge: &Bridge,
    address: &str,
    (clients, left_out): (Option<Arc<dyn Authenticate>>, NamesLeftOut),
    signal: impl Future<Output = ()> + Send + 'static,
) -> anyhow::Result<()> {
    let listener = HttpListener::bind(address).await;
    let listener = listener.with_context(|| format!("cannot listen at {address}"))?;
    let is_ending = Arc::new(AtomicBool::new(false));
    let operations = Operations {
        bridge: bridge.clone(),
        left_out,
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
        Untrusted(&format_servers(bridge, &setup.config.left_out))
    ));
    let shutdown = async move {
        signal.await;
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
    anyhow::bail!("[auth] needs the feature `oauth`: install the program with `--features full`")
}

/// Returns a future that completes when the process receives Ctrl-C or, on Unix, SIGTERM; also SIGHUP if `on_hangup` is true. On Unix,
/// signals count from this call on.
#[cfg(unix)]
fn wait_for_shutdown_signal(on_hangup: bool) -> impl Future<Output = ()> + Send {
    use tokio::signal::unix::{SignalKind, signal};
    let wait = |kind: SignalKind, is_wanted: bool| {
        let received = signal(kind).ok().filter(|_| is_wanted);
        async move {
            match received {
                Some(mut signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        }
    };
    let interrupt = wait(SignalKind::interrupt(), true);
    let terminate = wait(SignalKind::terminate(), true);
    let hangup = wait(SignalKind::hangup(), on_hangup);
    async {
        tokio::select! {
            () = interrupt => {}
            () = terminate => {}
            () = hangup => {}
        }
    }
}

/// Completes when the user presses Ctrl-C.
#[cfg(not(unix))]
async fn wait_for_shutdown_signal(_: bool) {
    let _ = tokio::signal::ctrl_c().await;
}
