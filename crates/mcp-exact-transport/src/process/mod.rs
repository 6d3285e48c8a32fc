//! Servers as child processes of a client (`basic/transports`, "stdio"; `basic/lifecycle`, "Shutdown").
//!
//! Starts the process in a separate process group, forwards its standard error, and ends the process: closes its input,
//! then sends SIGTERM to the group, then kills the group. No process of the group outlives the driver of the handle.

mod failure;
mod group;
#[cfg(any(windows, test))]
mod launcher;
mod observed;
mod prepared;
mod running;
mod stderr;
mod unread;

use std::ffi::OsString;
use std::future::poll_fn;
use std::io;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact_session::{
    Binding, CachedNegotiation, ClientEndpoint, ClientEvent, ClientSettings, Limits, Side,
};
use tokio::process::{ChildStdin, ChildStdout, Command};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::clock;
use crate::connect::new_client_endpoint;
use crate::duplex::{ConnectionOptions, Driver};
use crate::endpoint::{ClientHandle, ClientHandler, ConnectError, DisconnectGuard, Shared};
use crate::line::LineTransport;
use crate::transport::Transport;
pub use failure::start_failure;
use group::Group;
use observed::{CreateObserver, Observed, SharedObserver};
pub use prepared::PreparedServer;
use running::{Counted, Running};
use stderr::{EarlierLines, Stderr};
use unread::Unread;

/// Callback for the lines that a server writes to its standard error, without line endings.
pub type StderrCallback = Arc<dyn Fn(&str) + Send + Sync>;

/// Names of the environment variables that most servers need, and that hold no secrets: the lists of the official SDKs for
/// TypeScript and Python, and the language, the time zone and the directory of temporary files.
pub const INHERITED_ENV: &[&str] = if cfg!(windows) {
    &[
        "APPDATA",
        "COMSPEC",
        "HOMEDRIVE",
        "HOMEPATH",
        "LOCALAPPDATA",
        "PATH",
        "PATHEXT",
        "PROCESSOR_ARCHITECTURE",
        "PROGRAMFILES",
        "SYSTEMDRIVE",
        "SYSTEMROOT",
        "TEMP",
        "TMP",
        "USERNAME",
        "USERPROFILE",
    ]
} else {
    &[
        "HOME", "LANG", "LC_*", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
    ]
};

/// Command that starts a server as a child process.
#[derive(Clone)]
pub struct ServerCommand {
    /// Path or name of the program.
    program: OsString,
    /// Arguments of the program.
    arguments: Vec<OsString>,
    /// Variables that are set in the environment.
    environment: Vec<(OsString, OsString)>,
    /// Patterns of the variables of this process that the server inherits; `None` if it inherits all.
    inherited: Option<Vec<String>>,
    /// Working directory; `None` for that of this process.
    directory: Option<PathBuf>,
    /// Callback for the lines of standard error.
    stderr: Option<StderrCallback>,
    /// Creates the observer of the messages of a connection.
    observe: Option<CreateObserver>,
    /// Time limit for the exit of the server after its input is closed.
    close_wait: Duration,
    /// Time limit for the exit of the server after SIGTERM.
    terminate_wait: Duration,
    /// Maximum number of restarts of a server that has exited because of the `server/discover` probe.
    restarts: u32,
    /// Count of the running processes.
    running: Running,
    /// Lines of a process in whose place the next one is started.
    earlier_lines: EarlierLines,
}

impl ServerCommand {
    /// Creates a command without arguments.
    ///
    /// The server inherits the whole environment unless [`inherit_env`](Self::inherit_env) names variables, and has two seconds to exit after its input is closed and two more seconds
    /// after SIGTERM. On Windows, a program without path and extension can also be a script, such as `npx.cmd` for
    /// `npx`; a job object contains the processes, and there is no SIGTERM.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            inherited: None,
            directory: None,
            stderr: None,
            observe: None,
            close_wait: Duration::from_secs(2),
            terminate_wait: Duration::from_secs(2),
            restarts: 1,
            running: Running::default(),
            earlier_lines: EarlierLines::default(),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of the environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Starts the server with only the environment variables that [`env`](Self::env) and
    /// [`inherit_env`](Self::inherit_env) set.
    #[must_use]
    pub fn clear_env(mut self) -> Self {
        self.inherited = Some(Vec::new());
        self
    }

    /// Lets the server inherit the variables of this process with these names, and no others than those of earlier calls. A
    /// name that ends with `*` stands for all variables that begin with the rest of it. [`INHERITED_ENV`] has the names that
    /// most servers need.
    #[must_use]
    pub fn inherit_env<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let inherited = self.inherited.get_or_insert_default();
        inherited.extend(names.into_iter().map(Into::into));
        self
    }

    /// Returns true if the server inherits a variable.
    fn inherits(&self, name: &str) -> bool {
        let Some(patterns) = &self.inherited else {
            return true;
        };
        let is_same = |one: &str, other: &str| {
            one == other || cfg!(windows) && one.eq_ignore_ascii_case(other)
        };
        patterns
            .iter()
            .any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => name
                    .get(..start.len())
                    .is_some_and(|name| is_same(name, start)),
                None => is_same(name, pattern),
            })
    }

    /// Sets the working directory.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets a callback for the lines that the server writes to its standard error.
    ///
    /// The task that reads the lines calls the callback, which must not block. Without a callback, lines are recorded
    /// as `tracing` events if the feature `tracing` is enabled, and are otherwise dropped, and errors about the end of the
    /// server contain the last lines. If a server that has exited is started again for the same connection, the lines that it
    /// repeats are not passed on.
    #[must_use]
    pub fn stderr(mut self, callback: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.stderr = Some(Arc::new(callback));
        self
    }

    /// Sets an observer of the messages on the server's standard streams, such as for a trace. `create` returns the observer of
    /// a connection: a function that receives the sender and the bytes of each message, in order, before it is handled or
    /// written. Of a message above the size limit it receives the beginning.
    ///
    /// The driver of the connection calls the observer, which must not block for long.
    #[must_use]
    pub fn observe<O>(mut self, create: impl Fn() -> O + Send + Sync + 'static) -> Self
    where
        O: FnMut(Side, &[u8]) + Send + 'static,
    {
        self.observe = Some(Arc::new(move || Box::new(create())));
        self
    }

    /// Sets the time limits for the exit of the server after its input is closed, and then after SIGTERM; afterwards
    /// the server is killed.
    #[must_use]
    pub fn shutdown_waits(mut self, after_close: Duration, after_terminate: Duration) -> Self {
        self.close_wait = after_close;
        self.terminate_wait = after_terminate;
        self
    }

    /// Waits until all processes that this command and its clones have started have ended. A client ends its process when it is
    /// closed.
    pub async fn ended(&self) {
        self.running.ended().await;
    }

    /// Starts the server and connects a client to it.
    ///
    /// A server that exits because of the `server/discover` probe is started once more.
    ///
    /// The driver runs as a task of the current tokio runtime until the handle is [closed](ClientHandle::close) or the
    /// server exits. The task completes when all processes of the server have ended. If the runtime ends first, or the
    /// task is aborted, the processes are killed.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the process cannot be started.
    pub fn connect(
        self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let process = self.start()?;
        Ok(self.connect_to(process, settings, prior, handler))
    }

    /// Starts the server, for a client that connects later. No message is sent to the server before.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the process cannot be started.
    pub fn prepare(&self) -> Result<PreparedServer, ConnectError> {
        let process = self.start()?;
        Ok(PreparedServer::new(self.clone(), process))
    }

    /// Connects a client to a process of this command.
    fn connect_to(
        self,
        process: Process,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> (ClientHandle, JoinHandle<()>) {
        let limits = settings.limits.clone();
        let endpoint = ClientEndpoint::new(settings, Binding::Duplex, prior, clock::now());
        let notify = Arc::new(Notify::new());
        let wants_restart = Arc::new(AtomicBool::new(false));
        let wanted = Arc::clone(&wants_restart);
        let internal = move |_: &Arc<Shared<ClientEndpoint>>, event: &ClientEvent| {
            let is_restart = matches!(event, ClientEvent::RestartServer);
            wanted.fetch_or(is_restart, Ordering::AcqRel);
            is_restart
        };
        let shared = new_client_endpoint(endpoint, handler, &notify, "stdio", Box::new(internal));
        let handle = ClientHandle::of(&shared);
        let supervisor = Supervisor {
            command: self,
            limits,
            shared,
            notify,
            wants_restart,
        };
        let end = DisconnectGuard(Arc::clone(&supervisor.shared));
        let task = tokio::spawn(async move {
            let _end = end;
            supervisor.run(process).await;
        });
        (handle, task)
    }

    /// Returns the file to start; for a program such as `npx`, this may be a script such as `npx.cmd`.
    #[cfg(windows)]
    fn launcher(&self) -> OsString {
        let own = self.environment.iter().rev();
        let mut own = own.filter(|(name, _)| name.eq_ignore_ascii_case("PATH"));
        let path = own.next().map(|(_, value)| value.clone());
        let path = path
            .or_else(|| std::env::var_os("PATH"))
            .unwrap_or_default();
        let directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
        launcher::find(&self.program, directories, std::path::Path::is_file)
    }

    /// Returns the file to start.
    #[cfg(not(windows))]
    fn launcher(&self) -> &OsString {
        &self.program
    }

    /// Starts the server process.
    fn start(&self) -> Result<Process, ConnectError> {
        let mut command = Command::new(self.launcher());
        command.args(&self.arguments);
        if self.inherited.is_some() {
            command.env_clear();
            let inherited = std::env::vars_os();
            command.envs(inherited.filter(|(name, value)| {
                // Shells export functions as variables, which run in the shells of the server.
                let is_function = value.to_string_lossy().starts_with("()");
                name.to_str().is_some_and(|name| self.inherits(name)) && !is_function
            }));
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let failed = |error: io::Error| {
            let program = self.program.display();
            let reason = start_failure(&self.program, self.directory.as_deref(), &error);
            ConnectError::Transport(format!("cannot start `{program}`: {reason}"))
        };
        let mut group = Group::spawn(command).map_err(failed)?;
        let missing = || failed(io::Error::other("its standard streams are not available"));
        let (input, output, errors) = group.take_streams().ok_or_else(missing)?;
        let stderr = Stderr::forward(errors, self.stderr.clone(), &self.earlier_lines);
        Ok(Process {
            input,
            output,
            group,
            stderr,
            running: self.running.count(),
        })
    }
}

impl std::fmt::Debug for ServerCommand {
    /// Shows only the program, because arguments and environment may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerCommand")
            .field("program", &self.program)
            .finish_non_exhaustive()
    }
}

/// Running server process.
struct Process {
    /// Standard input of the server.
    input: ChildStdin,
    /// Standard output of the server.
    output: ChildStdout,
    /// Process group or job of the server.
    group: Group,
    /// Reader of the server's standard error.
    stderr: Stderr,
    /// Counts the process as running.
    running: Counted,
}

/// Drives the connection until it ends or the process has exited.
///
/// After the exit of the process, the remaining output is read for a limited time, because a descendant may keep the
/// streams open.
async fn serve_until_exit<T: Transport>(
    driver: &mut Driver<ClientEndpoint, T>,
    group: &mut Group,
) -> io::Result<()> {
    let exited = async {
        // An error shows again when the group is ended.
        let _ = group.wait().await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    tokio::select! {
        // What has arrived is read, however late that is.
        biased;
        result = poll_fn(|cx| driver.poll(cx)) => result,
        // A descendant that writes without end leaves nothing of the task's budget.
        () = tokio::task::coop::unconstrained(exited) => Ok(()),
    }
}

/// Driver of a child process: drives the connection, restarts the process if the endpoint requests a restart, and ends
/// the process.
struct Supervisor {
    /// Command that starts the server.
    command: ServerCommand,
    /// Limits of sizes.
    limits: Limits,
    /// The client endpoint.
    shared: Arc<Shared<ClientEndpoint>>,
    /// Notified if the endpoint may have output.
    notify: Arc<Notify>,
    /// True if the endpoint has requested a restart of the server.
    wants_restart: Arc<AtomicBool>,
}

impl Supervisor {
    /// Drives the connection and restarts the process until the server has exited, and then records the reason.
    async fn run(self, mut process: Process) {
        let mut restarts = self.command.restarts;
        let observe = self.command.observe.as_ref();
        let observer = observe.map(|create| Arc::new(Mutex::new(create())));
        loop {
            let Process {
                input,
                output,
                mut group,
                stderr,
                running: _running,
            } = process;
            let transport = LineTransport::new(output, input, self.limits.message_bytes);
            let transport = Unread::new(transport.with_budget(&self.limits));
            let result = match &observer {
                Some(observer) => {
                    let observed = Observed::new(transport, SharedObserver::clone(observer));
                    self.serve(observed, &mut group).await
                }
                None => self.serve(transport, &mut group).await,
            };
            let (close, terminate) = (self.command.close_wait, self.command.terminate_wait);
            let status = group.end(close, terminate).await;
            drop(group);
            // A server that has served is not started in the place of this one: what it repeats is news.
            if self.shared.lock().role.cached_negotiation().is_none() {
                stderr.precede(&self.command.earlier_lines);
            }
            let last_lines = stderr.last_lines().await;
            let restart = self.wants_restart.swap(false, Ordering::AcqRel) && restarts > 0;
            if !restart {
                let reason = self.describe(&result, status, &last_lines);
                return self.shared.lock().role.fail(reason);
            }
            restarts -= 1;
            process = match self.command.start() {
                Ok(process) => process,
                Err(error) => return self.give_up(error),
            };
            self.shared
                .call(|state, now| state.endpoint.handle_restart(now));
        }
    }

    /// Drives the connection to one process, and then closes its input.
    async fn serve(&self, transport: impl Transport, group: &mut Group) -> io::Result<()> {
        let (shared, notify) = (Arc::clone(&self.shared), Arc::clone(&self.notify));
        let options = ConnectionOptions::default();
        let mut driver = Driver::new(shared, transport, (), notify, options);
        serve_until_exit(&mut driver, group).await
    }

    /// Records that the process cannot be started again, and reports the error to all waiting futures.
    fn give_up(&self, error: ConnectError) {
        self.shared.call(|state, now| {
            state.role.fail(error);
            state.endpoint.shutdown(now);
        });
    }

    /// Creates the error for the end of the process: its exit status or the error of the connection, what it has written to standard
    /// output instead of messages if there is no session yet, and the last lines of standard error if nobody has received them.
    fn describe(
        &self,
        result: &io::Result<()>,
        status: io::Result<ExitStatus>,
        last_lines: &str,
    ) -> ConnectError {
        let program = self.command.program.display();
        let broke =
            |error: &io::Error| format!("the connection to the server `{program}` broke: {error}");
        let mut message = match (result, status) {
            (_, Ok(status)) => format!("the server `{program}` has exited with {status}"),
            (Err(error), _) => broke(error),
            (Ok(()), Err(error)) => broke(&error),
        };
        let state = self.shared.lock();
        let stray = state.endpoint.first_malformed();
        // Later, it says nothing about the end.
        if let Some(text) = stray.filter(|_| state.endpoint.session_info().is_none()) {
            message.push_str("; it wrote to its standard output what is not a message: ");
            message.push_str(text);
        }
        drop(state);
        // A callback has received them.
        if !last_lines.is_empty() && self.command.stderr.is_none() {
            message.push_str("; its last words:\n");
            message.push_str(last_lines);
        }
        ConnectError::Transport(message)
    }
}
