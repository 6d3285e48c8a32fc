//! A server as a child process: writes lines to its standard input and reads lines from its standard output, with a
//! time limit. The server and its descendants end with this process, also when a signal ends it.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
#[cfg(feature = "client")]
use mcp_exact::transport::start_failure;

use crate::last_words::LastWords;
use crate::queue::{self, Received, Receiver};
use crate::server_address::{self, Given, Named};
use crate::terminal;

/// Maximum length of a line from a server, in bytes; a longer line is read in pieces.
const MAX_LINE_BYTES: u64 = 32 << 20;

/// Time that a server has to exit after its input is closed, if a signal ends this process.
const CLOSE_WAIT: Duration = Duration::from_millis(700);
/// Time that a server has to exit after SIGTERM.
const TERMINATE_WAIT: Duration = Duration::from_millis(600);
/// Time between the end of a server's output and its exit.
const EXIT_WAIT: Duration = Duration::from_millis(200);
/// Interval at which the exit of a server is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Servers that run, so that a signal to this process can end them; `None` once it does.
static RUNNING: Mutex<Option<Vec<Weak<RunningServer>>>> = Mutex::new(Some(Vec::new()));

/// The server of the command line; its processes get the environment and the folder of its entry, and the variables of `--env`.
static RESOLVED: OnceLock<Named> = OnceLock::new();

/// Returns the server that the words of a command line specify, which may be the name of a configured one.
///
/// # Errors
/// Returns an error if the name is that of several servers, or their entry cannot be used, and if a variable is no assignment.
pub fn resolve(words: &[OsString], given: Given<'_>) -> anyhow::Result<Named> {
    let is_assignment =
        |text: &&String| matches!(text.split_once('='), Some((name, _)) if !name.is_empty());
    if let Some(wrong) = given.env.iter().find(|text| !is_assignment(text)) {
        bail!("--env: `{wrong}` is not an assignment; write --env NAME=VALUE");
    }
    #[cfg(feature = "client")]
    let found = crate::servers::find::find(words, given)?;
    #[cfg(not(feature = "client"))]
    let found = None;
    let mut named: Named = found.unwrap_or_else(|| Named {
        words: words.to_vec(),
        ..Named::default()
    });
    named.env.extend_from_slice(given.env);
    Ok(RESOLVED.get_or_init(|| named).clone())
}

/// Returns the command of a server that the words of a command line specify.
///
/// # Errors
/// Returns an error if the words name a configured server at a URL.
pub fn command(words: &[OsString], env: &[String]) -> anyhow::Result<Vec<OsString>> {
    let given = Given {
        env,
        ..Given::default()
    };
    let named = resolve(words, given)?;
    if let (Some(word), Some(url)) = (words.first(), named.words.first())
        && word != url
        && url.to_string_lossy().contains("://")
    {
        bail!(
            "the server `{}` is at a URL; only commands have standard streams",
            word.to_string_lossy()
        );
    }
    Ok(named.words)
}

/// Returns why a program was not started.
#[cfg(not(feature = "client"))]
fn start_failure(_: &std::ffi::OsStr, _: Option<&std::path::Path>, error: &io::Error) -> String {
    error.to_string()
}

/// Process group of a server, which is killed when this value is dropped.
#[derive(Debug)]
pub struct RunningServer {
    /// First process of the group.
    child: Mutex<Child>,
    /// Standard input of the server; `None` after it was closed.
    input: Mutex<Option<ChildStdin>>,
    /// Lines that the server wrote last to standard error.
    words: LastWords,
    /// Id of the first process and of its group.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix has process groups"))]
    id: u32,
}

/// What becomes of the standard error of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerStderr {
    /// It is that of this process; on a terminal, its lines are shown.
    Inherited,
    /// Its lines are shown.
    Shown,
    /// Its last lines are kept.
    Kept,
}

/// Locks a mutex, also after a thread has panicked while it held the lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RunningServer {
    /// Starts a server in a process group of its own; returns it and its standard output.
    pub fn start(
        command: &[OsString],
        stderr: ServerStderr,
    ) -> anyhow::Result<(Arc<Self>, ChildStdout)> {
        let (program, arguments) = command.split_first().context("there is no command")?;
        server_address::refuse_other_word(program)?;
        let mut command = Command::new(program);
        if let Some(Named { env, folder, .. }) = RESOLVED.get() {
            command.envs(env.iter().filter_map(|variable| variable.split_once('=')));
            if let Some(folder) = folder {
                command.current_dir(folder);
            }
        }
        let is_inherited = stderr == ServerStderr::Inherited && !terminal::stderr().is_terminal();
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if is_inherited {
                Stdio::inherit()
            } else {
                Stdio::piped()
            });
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        // The lock is held until the server is among those that a signal ends.
        let mut running = lock(&RUNNING);
        let running = running.as_mut().context("the command was interrupted")?;
        let child = command.spawn();
        let mut child = child.map_err(|error| {
            let folder = RESOLVED.get().and_then(|named| named.folder.as_deref());
            let reason = start_failure(program, folder, &error);
            anyhow!("cannot start {}: {reason}", program.to_string_lossy())
        })?;
        let output = child.stdout.take().context("the server has no output")?;
        let words = LastWords::default();
        if let Some(piped) = child.stderr.take() {
            words.read(piped, stderr != ServerStderr::Kept);
        }
        let server = Arc::new(Self {
            input: Mutex::new(child.stdin.take()),
            words,
            id: child.id(),
            child: Mutex::new(child),
        });
        running.retain(|server| server.strong_count() > 0);
        running.push(Arc::downgrade(&server));
        Ok((server, output))
    }

    /// Writes bytes to standard input of the server.
    pub fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut input = lock(&self.input);
        let input = input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(bytes)?;
        input.flush()
    }

    /// Closes standard input of the server.
    pub fn close_input(&self) {
        drop(lock(&self.input).take());
    }

    /// Returns the exit status of the first process, if it has exited.
    fn exited(&self) -> Option<ExitStatus> {
        lock(&self.child).try_wait().ok().flatten()
    }

    /// Waits for the exit of the first process, for at most `limit`.
    pub fn wait(&self, limit: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + limit;
        loop {
            let status = self.exited();
            if status.is_some() || Instant::now() >= until {
                return status;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits for the exit of the first process, without a limit; `None` if it cannot be waited for.
    pub fn wait_for_exit(&self) -> Option<ExitStatus> {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
            let id = i32::try_from(self.id).ok().and_then(Pid::from_raw)?;
            // The status is left for `exited`, which takes the lock only for a moment.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(id), options) {}
            self.exited()
        }
        #[cfg(not(unix))]
        lock(&self.child).wait().ok()
    }

    /// Asks the group to exit.
    fn terminate(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::TERM);
    }

    /// Kills what is left of the group.
    fn kill(&self) {
        #[cfg(unix)]
        self.signal(rustix::process::Signal::KILL);
        #[cfg(not(unix))]
        let _ = lock(&self.child).kill();
    }

    #[cfg(unix)]
    fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.id).ok();
        if let Some(id) = id.and_then(rustix::process::Pid::from_raw) {
            // An error says that no process of the group is left.
            let _ = rustix::process::kill_process_group(id, signal);
        }
    }

    /// Ends the server: closes its input, waits for its exit for at most `limit`, asks it to exit, and kills what is left.
    /// Returns `None` if the server did not exit before it was killed. What it wrote to standard error is shown before the function
    /// returns.
    pub fn end(&self, limit: Duration) -> Option<ExitStatus> {
        self.close_input();
        let mut status = self.wait(limit);
        if status.is_none() {
            self.terminate();
            status = self.wait(TERMINATE_WAIT);
        }
        self.kill();
        self.words.wait_until_shown();
        status
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.close_input();
        self.kill();
        let _ = lock(&self.child).wait();
        self.words.wait_until_shown();
    }
}

/// Ends the processes of all servers at once, which takes little more than a second. From then on, no server is started.
#[cfg_attr(
    not(feature = "client"),
    expect(dead_code, reason = "signals need a runtime")
)]
pub fn end_all() {
    let servers = lock(&RUNNING).take().unwrap_or_default();
    let servers: Vec<Arc<RunningServer>> = servers.iter().filter_map(Weak::upgrade).collect();
    for server in &servers {
        // A thread that writes to a server which reads nothing holds the lock.
        match server.input.try_lock() {
            Ok(mut input) => drop(input.take()),
            Err(TryLockError::Poisoned(input)) => drop(input.into_inner().take()),
            Err(TryLockError::WouldBlock) => {}
        }
    }
    let wait = |limit: Duration| {
        let until = Instant::now() + limit;
        let has_exited = |server: &Arc<RunningServer>| server.exited().is_some();
        while !servers.iter().all(has_exited) && Instant::now() < until {
            thread::sleep(POLL_INTERVAL);
        }
    };
    wait(CLOSE_WAIT);
    servers.iter().for_each(|server| server.terminate());
    wait(TERMINATE_WAIT);
    servers.iter().for_each(|server| server.kill());
}

/// Running server, which is ended when this value is dropped.
pub struct Process {
    server: Arc<RunningServer>,
    /// Lines of standard output.
    lines: Receiver<Vec<u8>>,
}

/// Result of waiting for a line of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerOutput {
    /// A line, without the line break.
    Line(Vec<u8>),
    /// No line was received within the time limit.
    Timeout,
    /// The server has closed its standard output.
    End,
}

impl Process {
    /// Starts a server.
    pub fn start(command: &[OsString], stderr: ServerStderr) -> anyhow::Result<Self> {
        let (server, output) = RunningServer::start(command, stderr)?;
        let (sender, lines) = queue::bounded();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                let read = io::Read::by_ref(&mut output);
                let read = io::Read::take(read, MAX_LINE_BYTES).read_until(b'\n', &mut line);
                // Small lines take more memory than their bytes.
                let size = line.len() + 128;
                if !matches!(read, Ok(1..)) || !sender.send(line, size) {
                    return;
                }
            }
        });
        Ok(Self { server, lines })
    }

    /// Writes a line to standard input of the server.
    pub fn send(&mut self, line: &str) -> io::Result<()> {
        self.server.write(format!("{line}\n").as_bytes())
    }

    /// Waits for the next line that is not empty, for at most `limit`.
    pub fn receive(&mut self, limit: Duration) -> ServerOutput {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.receive(left) {
                // A server that writes them without a pause has one at any time.
                Received::Item(line) if line.trim_ascii().is_empty() => {
                    if left.is_zero() {
                        return ServerOutput::Timeout;
                    }
                }
                Received::Item(line) => {
                    let end = line.strip_suffix(b"\n").unwrap_or(&line);
                    return ServerOutput::Line(end.strip_suffix(b"\r").unwrap_or(end).to_vec());
                }
                Received::Timeout => return ServerOutput::Timeout,
                Received::End => return ServerOutput::End,
            }
        }
    }

    /// Returns the lines that a server which has exited wrote last to standard error.
    pub fn last_words(&self) -> Vec<String> {
        self.server.words.lines()
    }

    /// Returns the exit status of the server, if it has exited.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.server.wait(EXIT_WAIT)
    }

    /// Ends the server, as [`RunningServer::end`] does.
    pub fn end(self, limit: Duration) -> Option<ExitStatus> {
        self.server.end(limit)
    }
}
