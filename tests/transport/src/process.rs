//! Server processes over HTTP, signals to processes, and the resource usage of a process.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::http::RawClient;

/// Process of a server over HTTP, killed on drop.
pub struct ServerProcess {
    /// The server process.
    child: Child,
    /// Address on which the server listens.
    pub address: SocketAddr,
}

impl ServerProcess {
    /// Starts a program that prints `listening on http://ADDRESS` in its first line.
    pub fn start(program: &str, arguments: &[&str]) -> Self {
        Self::start_with(Command::new(program).args(arguments))
    }

    /// Starts a command that prints `listening on http://ADDRESS` in its first line.
    pub fn start_with(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        output.read_line(&mut line).expect("a line");
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.and_then(|address| address.parse().ok());
        Self {
            child,
            address: address.unwrap_or_else(|| panic!("no address in {line:?}")),
        }
    }

    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the URL of a path on the server.
    pub fn url(&self, path: &str) -> String {
        self.client().url(path)
    }

    /// Returns a client of the server.
    pub fn client(&self) -> RawClient {
        RawClient {
            address: self.address,
        }
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Kills the process (`kill -9`).
    pub fn kill(&mut self) {
        self.child.kill().expect("running");
        self.child.wait().expect("ended");
    }

    /// Waits until the process exits; returns true if the exit status reports success.
    pub fn has_ended_well(&mut self, within: Duration) -> bool {
        let mut status = None;
        wait_until("the server ends", within, || {
            status = self.child.try_wait().expect("a child");
            status.is_some()
        });
        status.is_some_and(|status| status.success())
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process.
pub fn signal(process: u32, name: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), process.to_string()])
        .status();
    assert!(sent.expect("kill").success(), "{name} to {process}");
}

/// Blocks the thread until a condition holds; `what` describes the condition in the panic message.
///
/// # Panics
///
/// If the condition does not hold within the time limit.
pub fn wait_until(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + within;
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Waits asynchronously until a condition holds, so that tasks of the same thread can run meanwhile; `what` describes
/// the condition in the panic message.
pub async fn settle(what: &str, within: Duration, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + within;
    while !holds() {
        assert!(Instant::now() < end, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Returns true if a process is running and not a zombie.
pub fn is_running(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or("").chars().next();
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Returns the memory of a process in bytes; `line` is `VmRSS` for the current usage or `VmHWM` for the peak usage.
pub fn memory(process: u32, line: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let value = status.lines().find_map(|text| text.strip_prefix(line));
    let kib = value.and_then(|text| text.trim_matches([':', ' ', '\t', 'k', 'B']).parse().ok());
    kib.map_or(0, |kib: usize| kib << 10)
}

/// Returns the number of open files of a process.
pub fn open_files(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).map_or(0, Iterator::count)
}

/// Raises this process's limit of open files to the maximum; child processes inherit the limit.
pub fn raise_open_files() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        // Without it, what needs many files says so itself.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Returns a future that completes when this process receives SIGTERM, or Ctrl-C if the system has no SIGTERM. A
/// SIGTERM that arrives after this call is not missed.
pub fn terminated() -> impl Future<Output = ()> + Send {
    #[cfg(unix)]
    let mut terminate = {
        use tokio::signal::unix::{SignalKind, signal};

        signal(SignalKind::terminate()).expect("a runtime")
    };
    async move {
        #[cfg(unix)]
        terminate.recv().await;
        #[cfg(not(unix))]
        tokio::signal::ctrl_c().await.expect("a runtime");
    }
}
