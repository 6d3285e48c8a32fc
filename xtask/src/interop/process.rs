//! Runs a process until it exits or a deadline expires, with its output in two files. At the deadline, the process and
//! all its descendants are killed, because clients start servers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// Interval at which the output of a process is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Result of a process.
pub(crate) struct ProcessResult {
    /// Exit status; `None` if the process was killed at the deadline.
    pub(crate) status: Option<ExitStatus>,
    /// Contents of standard output.
    pub(crate) stdout: String,
    /// Contents of standard error.
    pub(crate) stderr: String,
}

/// Runs a process; its output is written to files named after `log`, because a pipe that a grandchild keeps open would
/// delay the end.
pub(crate) fn run(
    command: &mut Command,
    deadline: Duration,
    log: &Path,
) -> anyhow::Result<ProcessResult> {
    run_with_observer(command, deadline, log, |_| Ok(()))
}

/// Runs a process, and passes its standard output so far to `watch` at intervals.
pub(super) fn run_with_observer(
    command: &mut Command,
    deadline: Duration,
    log: &Path,
    mut watch: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<ProcessResult> {
    let (out, err) = (log.with_extension("out"), log.with_extension("err"));
    let create = |file: &Path| {
        File::create(file).with_context(|| format!("cannot write {}", file.display()))
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(create(&out)?)
        .stderr(create(&err)?)
        .spawn()
        .with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let id = child.id();
    let (sender, receiver) = mpsc::channel();
    let waiter = thread::spawn(move || {
        // The receiver waits for this one message.
        let _ = sender.send(child.wait());
    });
    let end = Instant::now() + deadline;
    let mut watched = Ok(());
    let status = loop {
        let left = end.saturating_duration_since(Instant::now());
        match receiver.recv_timeout(left.min(POLL_INTERVAL)) {
            Ok(status) => break Some(status?),
            Err(_) if left.is_zero() || watched.is_err() => {
                kill(id)?;
                break None;
            }
            Err(_) => watched = watch(&fs::read_to_string(&out).unwrap_or_default()),
        }
    };
    // The process is dead after the kill, so that the wait ends.
    let _ = waiter.join();
    watched?;
    let read = |file: &Path| {
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        anyhow::Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(ProcessResult {
        status,
        stdout: read(&out)?,
        stderr: read(&err)?,
    })
}

/// Line in which a server prints its URL.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Announcement {
    /// True if the line is printed on standard error.
    is_on_stderr: bool,
    /// Text before the origin.
    prefix: &'static str,
    /// Text after the origin; a line break if it is empty.
    suffix: &'static str,
}

impl Announcement {
    /// Announcement of the executables of peers, on standard output.
    const PEER: Self = Self {
        is_on_stderr: false,
        prefix: "listening on ",
        suffix: "",
    };

    /// Announcement of our examples, on standard error.
    pub(crate) const EXAMPLE: Self = Self {
        is_on_stderr: true,
        prefix: "listening on ",
        suffix: "",
    };

    /// Announcement of an example whose first line on standard error is its URL.
    pub(crate) const URL: Self = Self {
        is_on_stderr: true,
        prefix: "",
        suffix: "/mcp",
    };

    /// Announcement of `mcp-exact bridge --listen`, on standard error.
    pub(crate) const GATEWAY: Self = Self {
        is_on_stderr: true,
        prefix: "listening at ",
        suffix: "/mcp",
    };

    /// Finds the origin in the output of the server; `None` if the server has not printed the complete line yet.
    fn origin(self, printed: &str) -> Option<&str> {
        let lines = printed.split_inclusive('\n');
        let mut whole = lines.filter(|line| line.ends_with('\n'));
        let rest = whole.find_map(|line| line.strip_prefix(self.prefix))?;
        let end = if self.suffix.is_empty() {
            None
        } else {
            rest.find(self.suffix)
        };
        Some(rest[..end.unwrap_or(rest.len())].trim())
    }
}

/// A listening server process, killed on drop.
pub(crate) struct ListeningServer {
    child: Child,
    /// Scheme, host and port of the server's URL.
    pub(crate) origin: String,
}

impl ListeningServer {
    /// Returns host and port, for a proxy in front of the server.
    pub(super) fn address(&self) -> anyhow::Result<SocketAddr> {
        let address = self.origin.strip_prefix("http://").unwrap_or_default();
        address.parse().with_context(|| {
            format!(
                "the server listens on {}, which is not an address",
                self.origin
            )
        })
    }
}

impl ListeningServer {
    /// Starts a server and waits until it prints its URL.
    pub(super) fn start(command: &mut Command, log: &Path) -> anyhow::Result<Self> {
        Self::start_until_announced(command, log, Announcement::PEER)
    }

    /// Starts a server and waits until it announces where it listens.
    pub(crate) fn start_until_announced(
        command: &mut Command,
        log: &Path,
        announcement: Announcement,
    ) -> anyhow::Result<Self> {
        let out = log.with_extension("server.out");
        let err = log.with_extension("server.err");
        let child = command
            .stdin(Stdio::null())
            .stdout(File::create(&out)?)
            .stderr(File::create(&err)?)
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        let mut listening = Self {
            child,
            origin: String::new(),
        };
        for _ in 0..600 {
            let printed = if announcement.is_on_stderr {
                &err
            } else {
                &out
            };
            let text = fs::read_to_string(printed).unwrap_or_default();
            if let Some(origin) = announcement.origin(&text) {
                origin.clone_into(&mut listening.origin);
                return Ok(listening);
            }
            if let Some(status) = listening.child.try_wait()? {
                bail!(
                    "the server ended ({status}) before it listened; see {}",
                    err.display()
                );
            }
            thread::sleep(Duration::from_millis(50));
        }
        bail!("the server does not listen; see {}", err.display())
    }
}

impl Drop for ListeningServer {
    fn drop(&mut self) {
        // The server may have exited already; the wait reaps the process in both cases.
        let _ = kill(self.child.id());
        let _ = self.child.wait();
    }
}

/// Kills a process and its descendants. Killing the process group is not sufficient, because some SDKs start servers in
/// a session of their own. All processes are stopped before the first one is killed, so that no process can start a new
/// process.
fn kill(id: u32) -> anyhow::Result<()> {
    let mut known = Vec::new();
    loop {
        let found = process_tree(id);
        if found == known {
            return signal("KILL", &known);
        }
        signal("STOP", &found)?;
        known = found;
    }
}

/// Sends a signal with the shell's built-in `kill`, which needs no package. A process that has exited already is not an
/// error.
fn signal(name: &str, ids: &[u32]) -> anyhow::Result<()> {
    Command::new("sh")
        .args(["-c", "kill -$0 \"$@\" 2>/dev/null", name])
        .args(ids.iter().map(u32::to_string))
        .status()
        .context("cannot start sh")?;
    Ok(())
}

/// Returns a process and its descendants.
fn process_tree(id: u32) -> Vec<u32> {
    let children = children();
    let mut ids = vec![id];
    let mut next = 0;
    while let Some(parent) = ids.get(next) {
        ids.extend(children.get(parent).into_iter().flatten());
        next += 1;
    }
    ids
}

/// Returns the children of every process, from `/proc`; empty on systems without `/proc`.
fn children() -> BTreeMap<u32, Vec<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        if let Some(parent) = parse_parent(&stat) {
            children.entry(parent).or_default().push(id);
        }
    }
    children
}

/// Returns the parent in a line of `/proc/<id>/stat`: the second word after the name, which is in parentheses and may
/// contain any text.
fn parse_parent(stat: &str) -> Option<u32> {
    let (_, suffix) = stat.rsplit_once(')')?;
    suffix.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{BufRead, BufReader, Read};

    use super::*;

    /// Exit code, standard output and standard error of a process are returned.
    #[test]
    fn output_and_status_are_returned() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let ended = run(
            &mut command,
            Duration::from_secs(600),
            &folder.path().join("x"),
        );
        let ended = ended.expect("it ran");
        assert_eq!(ended.status.and_then(|status| status.code()), Some(3));
        assert_eq!((&*ended.stdout, &*ended.stderr), ("out\n", "err\n"));
    }

    #[test]
    fn deadline_kills_the_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sleep");
        let ended = run(
            command.arg("3600"),
            Duration::ZERO,
            &folder.path().join("x"),
        );
        assert!(ended.expect("it ran").status.is_none());
    }

    /// Descendants of a killed process are killed, too: the pipe closes when the last process with an open end has
    /// exited, so that the test needs no delay.
    #[test]
    #[cfg(target_os = "linux")]
    fn kill_includes_descendants() {
        let script = "(sleep 60; echo survived) & echo begun; wait";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        out.read_line(&mut line).expect("the first line");
        assert_eq!(line, "begun\n");
        kill(child.id()).expect("a shell");
        let mut rest = String::new();
        out.read_to_string(&mut rest).expect("text");
        child.wait().expect("it ended");
        assert_eq!(rest, "");
    }

    /// The parent is found even if the name of the process contains spaces and parentheses.
    #[test]
    fn parent_is_parsed_after_any_name() {
        assert_eq!(parse_parent("7 (a) b) S 42 7 7 0"), Some(42));
        assert_eq!(parse_parent("nonsense"), None);
    }
}
