//! Commands that connect to a server: `inspect`, `call`, `read`, `prompt`, `skills` and `listen`, in the feature `client`.
//!
//! A server is specified by its URL or by the command that starts it. The user responds to requests of the server on
//! the terminal.

mod answer;
#[cfg(feature = "oauth")]
pub mod authorization;
pub mod call;
#[cfg(feature = "oauth")]
pub mod certificates;
mod data_folder;
pub mod inspect;
pub mod listen;
pub mod memory;
pub mod prompt;
pub mod read;
pub mod session;
pub mod skills;
mod tap;
#[cfg(feature = "http")]
mod trace;
#[cfg(feature = "http")]
pub mod url;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use mcp_exact::transport::ServerCommand;
#[cfg(feature = "bridge")]
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::{
    Client, ClientError, Connect, LogMessage, MessageBudget, NegotiationError, Repair, RepairRule,
    RepairedMessage, Revision, Tolerance, ToolFilter,
};

use self::memory::FileMemory;
#[cfg(feature = "bridge")]
use self::memory::RememberedUpstream;
use self::tap::{OpenConnections, OtherOutput, SentLists};
use crate::interrupt::{self, Interrupted};
use crate::output::{Painter, Style};
use crate::proxy;
use crate::registry::Registry;
use crate::server_address::{self, Given, Named};
use crate::servers::find::find;
use crate::terminal::print_to_stderr;
use crate::text::{Untrusted, text};
use crate::time_limit;
use mcp_exact_revisions::Side;

/// Connection to a server, and options of the client. Shared by all commands that talk to a server.
#[derive(Debug, Clone, Args)]
pub struct Settings {
    /// Offer this revision only; without it all revisions, the newest first.
    #[arg(
        long,
        short,
        value_name = "R",
        global = false,
        help_heading = "Connection"
    )]
    revision: Option<String>,
    /// Seconds to wait for the connection, and for each response, which each progress notification restarts; 60 without it.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Connection")]
    timeout: Option<u64>,
    /// Largest message of the server, in bytes; 32 MiB without it.
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    message_bytes: Option<usize>,
    /// Largest size of all messages of servers that arrive at the same time, in bytes; 256 MiB without it.
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    message_budget: Option<usize>,
    /// Most pages of a list of the server; 100 without it. A longer list ends with what was read.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    max_pages: Option<u64>,
    /// Refuse what breaks the schema of the protocol, instead of repairing it.
    #[arg(long, help_heading = "Connection")]
    strict: bool,
    /// Ask the server for its revisions, even if it was silent on that question in an earlier run.
    #[arg(long, help_heading = "Connection")]
    probe: bool,
    /// Print each message to standard error, with direction, revision and violations.
    #[arg(long, help_heading = "Output")]
    trace: bool,
    /// Add a header to each HTTP request, such as `Authorization: Bearer …`.
    #[arg(long, value_name = "NAME: VALUE", help_heading = "Connection")]
    header: Vec<String>,
    /// Set a variable in the environment of the server's process.
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Connection")]
    env: Vec<String>,
    /// Give the server a root: a directory that it may work in, as a URI.
    #[arg(long, value_name = "URI", help_heading = "What the server gets")]
    root: Vec<String>,
    /// Answer a field of the server's forms, instead of asking on the terminal.
    #[arg(long, value_name = "NAME=VALUE", help_heading = "What the server gets")]
    answer: Vec<String>,
    /// Do not show the standard error of the server.
    #[arg(long, help_heading = "Output")]
    quiet: bool,
    #[cfg(feature = "oauth")]
    #[command(flatten)]
    authorization: authorization::Authorization,
    #[cfg(feature = "oauth")]
    #[command(flatten)]
    certificates: certificates::Certificates,
    /// Folder of the server's process: that of a configured server.
    #[arg(skip)]
    folder: Option<PathBuf>,
    /// Tools of a configured server that are switched on.
    #[arg(skip)]
    tools: ToolFilter,
    #[arg(skip)]
    started: StartedCommands,
    #[arg(skip)]
    connections: OpenConnections,
    #[arg(skip)]
    sent_lists: SentLists,
    #[arg(skip)]
    other_output: OtherOutput,
}

/// Commands of servers that were started.
#[derive(Debug, Clone, Default)]
struct StartedCommands(Arc<Mutex<Vec<ServerCommand>>>);

impl StartedCommands {
    fn add(&self, command: &ServerCommand) {
        let mut commands = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        commands.push(command.clone());
    }

    /// Waits until their processes have ended, for a limited time.
    async fn ended(&self) {
        let commands = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let all_ended = async {
            for command in commands {
                command.ended().await;
            }
        };
        // What is left is killed with the runtime.
        let _ = tokio::time::timeout(END_TIMEOUT, all_ended).await;
    }
}

/// Time that a server has to exit after its input is closed.
const CLOSE_WAIT: Duration = Duration::from_millis(1000);
/// Time that a server has to exit after SIGTERM.
const TERMINATE_WAIT: Duration = Duration::from_millis(500);
/// Time limit for the end of servers.
const END_TIMEOUT: Duration = Duration::from_millis(1800);

/// Time to wait for the connection and for each response, unless the command line sets another one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// Byte order mark, which shells and editors of Windows write before what they pass on.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Runs a future to completion on a runtime of this thread.
pub fn block_on<T>(future: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(future);
    let is_interrupted = |error: &anyhow::Error| error.is::<Interrupted>();
    if result.as_ref().is_err_and(is_interrupted) {
        runtime.shutdown_background();
    } else {
        // A prompt on the terminal may still wait for input.
        runtime.shutdown_timeout(Duration::from_secs(3));
    }
    result
}

/// Runs a command that uses a server, until its end or a signal; then the server ends as its transport says: its input is
/// closed, and what does not exit is asked to and killed.
///
/// # Errors
/// [`Interrupted`] after a signal, or the error of the command.
pub fn run_with_server<T>(
    settings: &Settings,
    command: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    block_on(async {
        // The command that is dropped cancels its requests and closes its client.
        let ended = tokio::select! {
            biased;
            interrupted = interrupt::received() => Err(interrupted.into()),
            ended = command => ended,
        };
        // Sessions over HTTP end with a request of their own.
        let connections = settings.connections.ended();
        tokio::join!(settings.started.ended(), async {
            let _ = tokio::time::timeout(END_TIMEOUT, connections).await;
        });
        if ended.is_ok() {
            settings.other_output.print();
        }
        ended
    })
}

/// Runs a command that uses the servers of a gateway, until its end or a signal, which counts while the servers start, too. After a
/// signal, they end as their transport says.
///
/// # Errors
/// [`Interrupted`] after a signal, or the error of the command.
#[cfg(feature = "bridge")]
pub async fn until_signal<T>(
    settings: &Settings,
    command: impl Future<Output = anyhow::Result<T>>,
) -> anyhow::Result<T> {
    let interrupted = tokio::select! {
        biased;
        interrupted = interrupt::received() => interrupted,
        ended = command => return ended,
    };
    settings.servers_ended().await;
    Err(interrupted.into())
}

/// Server that the command line specifies.
#[cfg(feature = "bridge")]
pub enum Target {
    /// Command that starts the server.
    Command(Box<ServerCommand>),
    /// URL of the server.
    Http(Box<HttpEndpoint>),
}

impl Settings {
    /// Returns the server that the command line specifies. `has_input` is true if the user can paste a URL at standard
    /// input to sign in.
    ///
    /// Returns the tools of the server that are switched on, too. A configured server that is switched off is refused.
    #[cfg(feature = "bridge")]
    pub fn parse_target(
        &self,
        server: &[OsString],
        has_input: bool,
    ) -> anyhow::Result<(Target, ToolFilter)> {
        if let Some(named) = find(server, self.given())? {
            if let Some(by) = &named.disabled_by {
                let name = server.first().map(|word| word.to_string_lossy());
                bail!(
                    "the server `{}` is switched off by {by}; switch it on there, or write its command or URL in place of its name",
                    name.unwrap_or_default()
                );
            }
            let target = self.with(&named).target(&named.words, has_input)?;
            return Ok((target, named.tools));
        }
        Ok((self.target(server, has_input)?, ToolFilter::default()))
    }

    /// Returns the server at a URL or of a command.
    #[cfg(feature = "bridge")]
    fn target(&self, server: &[OsString], has_input: bool) -> anyhow::Result<Target> {
        let url = server_address::parse_url(server)?;
        self.check_options(url.is_some())?;
        Ok(match url {
            Some(url) => Target::Http(Box::new(self.authorized_endpoint(url, has_input)?)),
            None => {
                let mut command = self.server_command(server)?;
                if self.trace {
                    command = self.observed(command);
                }
                Target::Command(Box::new(command))
            }
        })
    }

    /// Returns the first option about a server of the command line that is given, and the key of an entry in a file in its place.
    #[cfg(feature = "bridge")]
    pub fn server_option(&self) -> Option<(&'static str, &'static str)> {
        if !self.env.is_empty() {
            return Some(("--env", "env"));
        }
        if !self.header.is_empty() {
            return Some(("--header", "headers"));
        }
        let option = self.certificate_option()?;
        Some((option, option.trim_start_matches('-')))
    }

    /// Returns the first option that is given about what the clients of a gateway give its servers.
    #[cfg(feature = "bridge")]
    pub fn client_option(&self) -> Option<&'static str> {
        let options = [("--root", &self.root), ("--answer", &self.answer)];
        let mut given = options.into_iter().filter(|(_, values)| !values.is_empty());
        given.next().map(|(option, _)| option)
    }

    /// Adds a server of a configuration file to those that are waited for.
    #[cfg(feature = "bridge")]
    pub fn add_started(&self, command: &ServerCommand) {
        self.started.add(command);
    }

    /// Waits until the processes of all servers have ended, for a limited time.
    #[cfg(feature = "bridge")]
    pub async fn servers_ended(&self) {
        self.started.ended().await;
    }

    /// Returns what the command line gives in the place of what the entry of a configured server says.
    fn given(&self) -> Given<'_> {
        Given {
            env: &self.env,
            headers: &self.header,
        }
    }

    /// Returns the settings for a configured server; options of the command line come before what its entry says.
    fn with(&self, named: &Named) -> Self {
        let name_of = |header: &str| {
            let name = header.split(':').next().unwrap_or_default();
            name.trim().to_ascii_lowercase()
        };
        let given: HashSet<String> = self.header.iter().map(|header| name_of(header)).collect();
        let own = named
            .headers
            .iter()
            .filter(|own| !given.contains(&name_of(own)));
        let header = own.chain(&self.header).cloned().collect();
        Self {
            env: named.env.iter().chain(&self.env).cloned().collect(),
            header,
            folder: named.folder.clone(),
            tools: named.tools.clone(),
            revision: self
                .revision
                .clone()
                .or_else(|| named.connection.revision.clone()),
            timeout: self.timeout.or(named.connection.timeout),
            #[cfg(feature = "oauth")]
            certificates: self.certificates.or_of(&named.connection),
            ..self.clone()
        }
    }

    /// Returns true if what is remembered of silent servers is ignored.
    #[cfg(feature = "bridge")]
    pub fn probes(&self) -> bool {
        self.probe
    }

    /// Returns an upstream of the gateway with the memory of its server.
    #[cfg(feature = "bridge")]
    pub fn remembered(
        &self,
        upstream: impl mcp_exact_bridge::Upstream,
        server: &[OsString],
    ) -> RememberedUpstream {
        RememberedUpstream {
            upstream: Arc::new(upstream),
            memory: self.memory(server),
        }
    }

    /// Returns the only revision that the client offers to the server, if `--revision` is given.
    #[cfg(feature = "bridge")]
    pub fn offered_revision(&self) -> anyhow::Result<Option<Revision>> {
        let revision = self.revision.as_deref();
        revision.map(Self::revision).transpose()
    }

    /// Starts to build a connection to a server. Commands can add handlers before they await the connection.
    pub fn connect(&self, server: &[OsString]) -> anyhow::Result<Connect> {
        if let Some(named) = find(server, self.given())? {
            return self.with(&named).connect_to(&named.words);
        }
        self.connect_to(server)
    }

    /// Starts to build a connection to a server at a URL or of a command.
    fn connect_to(&self, server: &[OsString]) -> anyhow::Result<Connect> {
        let url = server_address::parse_url(server)?;
        self.check_options(url.is_some())?;
        let connect = match url {
            Some(url) => self.connect_http(url)?,
            None => Client::spawn(self.observed(self.server_command(server)?)),
        };
        let connect = connect
            .negotiation_memory(self.memory(server))
            .identity("mcp-exact", env!("CARGO_PKG_VERSION"))
            .connect_timeout(self.request_timeout())
            .idle_timeout(self.request_timeout())
            .tolerance(self.tolerance())
            .tool_filter(self.tools.clone());
        let connect = match self.message_bytes {
            Some(size) => connect.message_bytes(size),
            None => connect,
        };
        let connect = match self.message_budget {
            Some(size) => connect.message_budget(MessageBudget::new(size)),
            None => connect,
        };
        let connect = match self.max_pages() {
            Some(pages) => connect.max_pages(pages),
            None => connect,
        };
        let connect = match &self.revision {
            Some(id) => connect.revision(Self::revision(id)?),
            None => connect,
        };
        let connect = match self.root.as_slice() {
            [] => connect,
            roots => connect.roots(roots.iter().map(|uri| mcp_exact::Root {
                uri: uri.clone(),
                name: None,
            })),
        };
        let words: Vec<_> = server.iter().map(|word| word.to_string_lossy()).collect();
        let answers = Arc::new(answer::Answers::new(&words.join(" "), &self.answer)?);
        let (visiting, sampling) = (Arc::clone(&answers), Arc::clone(&answers));
        Ok(connect
            .on_elicit(move |form| {
                let answers = Arc::clone(&answers);
                async move { answers.answer_form(form).await }
            })
            .on_visit(move |visit| {
                let answers = Arc::clone(&visiting);
                async move { answers.answer_visit(visit).await }
            })
            .on_sample(move |request| {
                let answers = Arc::clone(&sampling);
                async move { answers.answer_sampling(request).await }
            })
            .on_repair({
                let printed = Mutex::new(HashSet::new());
                move |repaired| {
                    let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
                    // A list that is read again has the same ones.
                    if printed.insert(repaired.to_string()) {
                        print_repair(repaired);
                    }
                }
            })
            .on_log(|message| print_log_message(&message)))
    }

    /// Returns the memory of a server: its URL, or its command in this folder.
    fn memory(&self, server: &[OsString]) -> FileMemory {
        let is_url = matches!(server_address::parse_url(server), Ok(Some(_)));
        let folder = std::env::current_dir().ok().filter(|_| !is_url);
        let words = server.iter().map(OsString::as_os_str);
        FileMemory::new(words, folder.as_deref(), self.probe)
    }

    /// Checks that each option has an effect on the server, which is a URL or a command, and that roots are URIs of
    /// files ("`file://`", `client/roots`).
    fn check_options(&self, is_url: bool) -> anyhow::Result<()> {
        if is_url && !self.env.is_empty() {
            bail!("a server at a URL has no process here; leave `--env` out");
        }
        if !is_url && !self.header.is_empty() {
            bail!(
                "a command gets no HTTP requests; leave `--header` out, or give it values by `--env`"
            );
        }
        match self.root.iter().find(|root| !root.starts_with("file://")) {
            Some(root) => {
                bail!("`{root}` is not a URI of a file; write a root as `file:///folder`")
            }
            None => Ok(()),
        }
    }

    /// Returns the policy for what the server sends.
    pub fn tolerance(&self) -> Tolerance {
        if self.strict {
            Tolerance::Strict
        } else {
            Tolerance::Lenient
        }
    }

    /// Returns the settings of a command line without options, for a process with variables `NAME=VALUE`.
    pub fn for_process(env: Vec<String>) -> Self {
        #[derive(clap::Parser)]
        struct NoOptions {
            #[command(flatten)]
            settings: Settings,
        }
        let NoOptions { settings } = clap::Parser::parse_from(["mcp-exact"]);
        Self { env, ..settings }
    }

    /// Returns the timeout of a request.
    pub fn request_timeout(&self) -> Duration {
        self.given_timeout().unwrap_or(DEFAULT_TIMEOUT)
    }

    /// Returns the timeout that the command line sets, if it sets one.
    pub fn given_timeout(&self) -> Option<Duration> {
        self.timeout.map(time_limit::from_seconds)
    }

    /// Returns the largest message of the server that the command line sets, if it sets one.
    #[cfg(feature = "bridge")]
    pub fn message_bytes(&self) -> Option<usize> {
        self.message_bytes
    }

    /// Returns the size of all messages at the same time that the command line sets, if it sets one.
    #[cfg(feature = "bridge")]
    pub fn message_budget(&self) -> Option<usize> {
        self.message_budget
    }

    /// Returns the number of pages of a list that the command line sets, if it sets one.
    pub fn max_pages(&self) -> Option<usize> {
        let pages = self.max_pages?;
        Some(usize::try_from(pages).unwrap_or(usize::MAX))
    }

    /// Returns the compiled revision with this identifier.
    pub fn revision(id: &str) -> anyhow::Result<Revision> {
        Ok(Registry::new().revision(id)?.revision.spec.revision())
    }

    /// Returns an error, because this build has no HTTP client.
    #[cfg(not(feature = "http"))]
    fn connect_http(&self, url: &str) -> anyhow::Result<Connect> {
        bail!(
            "cannot reach {url}: this program was built without HTTP; install it with `--features http`"
        )
    }

    /// Returns the command that starts the server.
    fn server_command(&self, server: &[OsString]) -> anyhow::Result<ServerCommand> {
        #[cfg(feature = "oauth")]
        if let Some(option) = self.certificates.first_option() {
            bail!("a command gets no HTTP requests; leave `{option}` out");
        }
        let (program, arguments) = server.split_first().context("there is no server")?;
        let mut command = ServerCommand::new(program).args(arguments);
        for variable in &self.env {
            let (name, value) = answer::parse_assignment(variable)?;
            command = command.env(name, value);
        }
        if let Some(folder) = &self.folder {
            command = command.directory(folder);
        }
        let shows = !self.quiet || self.trace;
        command = command.shutdown_waits(CLOSE_WAIT, TERMINATE_WAIT);
        // What is not shown is in the error of a server that ends.
        if shows {
            command = command.stderr(|line| print_to_stderr(&text!("{}", Untrusted(line))));
        }
        self.started.add(&command);
        Ok(command)
    }

    /// Returns the command with an observer of its messages, which prints them with `--trace`.
    fn observed(&self, command: ServerCommand) -> ServerCommand {
        let (lists, is_tracing) = (self.sent_lists.clone(), self.trace);
        let other_output = self.other_output.clone();
        command.observe(move || {
            let mut print = is_tracing.then(proxy::trace_observer);
            let (lists, other_output) = (lists.clone(), other_output.clone());
            move |sender, message: &[u8]| {
                if sender == Side::Server {
                    lists.observe(message);
                    other_output.observe(message);
                }
                if let Some(print) = &mut print {
                    print(sender, message);
                }
            }
        })
    }
}

/// Converts an error of the client, and adds a hint about the remedy.
pub fn add_hint(error: ClientError) -> anyhow::Error {
    match &error {
        ClientError::TooLarge { limit, error } => anyhow!("{error}{}", remedy_of_limit(limit)),
        ClientError::Pages { method, repair } => {
            let remedy = remedy_of_repair(repair);
            anyhow!("the list of `{method}` does not end ({repair}){remedy}")
        }
        ClientError::NoMessage(printed) => {
            anyhow!(
                "{error}{}; --trace shows what it sends",
                remedy_of_output(printed)
            )
        }
        #[cfg(feature = "oauth")]
        ClientError::Authorization(reason) => {
            anyhow!("{}", authorization::Names::Options.describe(reason))
        }
        ClientError::Disconnected { .. } => {
            anyhow!("{error}; look at what the server writes to its standard error, or add --trace")
        }
        ClientError::Unauthorized { status, reason } => {
            let reason = reason
                .as_ref()
                .map_or_else(String::new, |reason| format!(": {reason}"));
            let words = format!("the server answered with HTTP status {status}{reason}");
            let remedy = remedy_of_connection(&words)
                .unwrap_or("give a token that it accepts by --header 'Authorization: Bearer …'");
            anyhow!("{words}; {remedy}")
        }
        ClientError::TimedOut => {
            anyhow!("the server did not answer in time; allow more by --timeout, or add --trace")
        }
        ClientError::Negotiation(negotiation) if negotiation.exceeded_limit().is_some() => {
            let limit = negotiation.exceeded_limit().unwrap_or_default();
            anyhow!("{negotiation}{}", remedy_of_limit(&limit))
        }
        ClientError::Negotiation(NegotiationError::NoMessage(printed)) => anyhow!(
            "{error}{}; --trace shows what it sends",
            remedy_of_output(printed)
        ),
        ClientError::Negotiation(_) | ClientError::Connect(_) => {
            let words = error.to_string();
            match remedy_of_connection(&words) {
                Some(remedy) => anyhow!("{words}; {remedy}"),
                None if matches!(error, ClientError::Connect(_)) => anyhow!(words),
                None => {
                    // A question has its mark.
                    let mark = if words.ends_with('?') { "" } else { ";" };
                    anyhow!(
                        "{words}{mark} --trace shows the messages, and `mcp-exact doctor` looks for the cause"
                    )
                }
            }
        }
        _ => anyhow!("{error}"),
    }
}

/// Returns what to write instead of a command that prints what is no message, as the end of a sentence: a server that listens at
/// a URL prints it.
fn remedy_of_output(printed: &str) -> String {
    let start = printed.find("http://").or_else(|| printed.find("https://"));
    let url = start.map(|start| &printed[start..]);
    let end = |url: &str| {
        url.find(|letter: char| letter.is_whitespace() || "\"'`<>)]},;".contains(letter))
    };
    match url.map(|url| url[..end(url).unwrap_or(url.len())].trim_end_matches(['.', ':'])) {
        Some(url) => format!("; if the server listens there, write {url} instead of the command"),
        None => "; a server that is started by its command must write messages alone to standard output, and logs to \
                 standard error"
            .to_owned(),
    }
}

/// Returns what to write instead of the scheme of a URL, if the words of an error show that it is the wrong one, or the options that
/// the server demands.
pub fn remedy_of_connection(words: &str) -> Option<&'static str> {
    let is_plain = ["corrupt message", "InvalidContentType"];
    let is_tls = [
        "invalid HTTP version parsed",
        "HTTP request to an HTTPS server",
        "HTTP request was sent to HTTPS port",
    ];
    if is_plain.iter().any(|part| words.contains(part)) {
        Some("the port speaks no TLS: write http:// instead of https://")
    } else if is_tls.iter().any(|part| words.contains(part)) {
        Some("the port speaks TLS: write https:// instead of http://")
    } else if words.contains("asks for a client certificate, and none is set") {
        Some("give one by --client-cert and --client-key")
    } else if words.contains("the certificate of the server is not trusted; set `ca`") {
        Some("give the file by --ca FILE")
    } else if words.contains("HTTP status 401") && !cfg!(feature = "oauth") {
        Some(
            "it demands authorization: give a token by --header 'Authorization: Bearer …', or install the program with `--features \
             oauth`, which signs in",
        )
    } else {
        None
    }
}

/// Returns what the user can do about an answer above a limit, as the end of a sentence; empty if there is nothing.
fn remedy_of_limit(limit: &str) -> &'static str {
    match limit {
        "message_bytes" => "; allow more by --message-bytes",
        "message_budget" => "; allow more by --message-budget",
        _ => "",
    }
}

/// Returns what the user can do about a repair, as the end of a sentence; empty if there is nothing.
fn remedy_of_repair(repair: &Repair) -> &'static str {
    match repair.rule {
        RepairRule::TooManyPages => "; allow more by --max-pages",
        _ => "",
    }
}

/// Prints a repair of a message of the server to standard error.
fn print_repair(repaired: &RepairedMessage) {
    let painter = Painter::stderr();
    let word = painter.paint(Style::Yellow, "repaired");
    let remedy = remedy_of_repair(&repaired.repair);
    let repaired = repaired.to_string();
    print_to_stderr(&text!("{}: {}{}", word, Untrusted(&repaired), remedy));
}

/// Prints a log message of the server to standard error.
fn print_log_message(message: &LogMessage) {
    let painter = Painter::stderr();
    let level = format!("{:?}", message.level).to_lowercase();
    let level = painter.paint(Style::Yellow, Untrusted(&level));
    let logger = message.logger.as_deref();
    let logger = logger.map(|logger| text!(" {}", Untrusted(logger)));
    let data: Result<String, _> = message.data.parse();
    let data = data.unwrap_or_else(|_| message.data.text().to_owned());
    print_to_stderr(&text!(
        "{}{}: {}",
        level,
        logger.unwrap_or_default(),
        Untrusted(&data).indented()
    ));
}
