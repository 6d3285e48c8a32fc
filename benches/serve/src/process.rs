//! Server process that this program starts, with its CPU time and memory.
//!
//! Requires Linux, because it reads `/proc` and binds processes to cores.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity};

/// CPU core of the clients. Clients and servers are bound to separate cores, because on a shared core the scheduling of
/// the processes would affect the times more than the measured code.
pub const CLIENT_CORE: usize = 1;
/// CPU core of the servers.
pub const SERVER_CORE: usize = 0;

/// Binds this process to a core, including processes that it starts afterwards.
pub fn run_on(core: usize) -> anyhow::Result<()> {
    bind(None, core)
}

/// Lets this process use the cores of both clients and servers again.
pub fn run_anywhere() -> anyhow::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(CLIENT_CORE);
    cores.set(SERVER_CORE);
    Ok(sched_setaffinity(None, &cores)?)
}

/// Binds a process to a core; `None` binds the current process.
fn bind(process: Option<Pid>, core: usize) -> anyhow::Result<()> {
    let mut cores = CpuSet::new();
    cores.set(core);
    let bound = sched_setaffinity(process, &cores);
    bound.with_context(|| format!("cannot use core {core}; the machine has to have two"))
}

/// Server process, killed on drop.
pub struct Server {
    /// Process of the server.
    child: Child,
}

impl Server {
    /// Starts the server `name` of this program as a process.
    pub fn start(name: &str) -> anyhow::Result<Self> {
        Self::run(Command::new(std::env::current_exe()?).args(["server", name]))
    }

    /// Starts a server process with this command; standard input and output are pipes.
    pub fn run(command: &mut Command) -> anyhow::Result<Self> {
        Self::spawn(command.stdout(Stdio::piped()))
    }

    /// Starts a server process with this command that is used over HTTP only. Its standard output is discarded: a
    /// server whose log fills a pipe stops.
    pub fn run_http(command: &mut Command) -> anyhow::Result<Self> {
        Self::spawn(command.stdout(Stdio::null()))
    }

    /// Starts a server process whose standard output is set.
    fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        let child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self { child })
    }

    /// Starts the server `name` of this program under callgrind, which counts its instructions.
    pub fn start_counting(name: &str) -> anyhow::Result<Self> {
        let child = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(std::env::current_exe()?)
            .args(["server", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start valgrind; install it")?;
        Ok(Self { child })
    }

    /// Ends a server under callgrind and returns the number of counted instructions.
    pub fn instructions(mut self) -> anyhow::Result<u64> {
        kill_process(self.pid()?, Signal::TERM)?;
        let mut words = String::new();
        let mut output = self.child.stderr.take().context("the output was taken")?;
        output.read_to_string(&mut words)?;
        let collected = words
            .lines()
            .find_map(|line| line.split_once("Collected : "));
        ensure!(
            collected.is_some(),
            "valgrind has counted nothing:\n{words}"
        );
        let (_, count) = collected.unwrap_or_default();
        Ok(count.trim().parse()?)
    }

    /// Returns the id of the server process.
    fn pid(&self) -> anyhow::Result<Pid> {
        Pid::from_raw(self.child.id().try_into()?).context("no process")
    }

    /// Binds the server process to a core.
    pub fn run_on(&self, core: usize) -> anyhow::Result<()> {
        bind(Some(self.pid()?), core)
    }

    /// Removes and returns the standard input and output of the server; fails if called twice.
    pub fn pipes(&mut self) -> anyhow::Result<(ChildStdin, ChildStdout)> {
        let input = self.child.stdin.take().context("the input was taken")?;
        let output = self.child.stdout.take().context("the output was taken")?;
        Ok((input, output))
    }

    /// Returns the address that an HTTP server has printed to its standard output.
    pub fn address(&mut self) -> anyhow::Result<SocketAddr> {
        let output = self.child.stdout.take().context("the output was taken")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        line.trim().parse().context("the server does not listen")
    }

    /// Returns the CPU time that all threads of the server have used so far.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        let mut nanoseconds = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            let first = text.split(' ').next().unwrap_or_default();
            nanoseconds += first.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// Returns the private memory of the server process, in bytes.
    pub fn memory(&self) -> anyhow::Result<u64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = text.lines().find(|line| line.starts_with("RssAnon:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().nth(1));
        let kibibytes: u64 = kibibytes.context("no RssAnon")?.parse()?;
        Ok(kibibytes * 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
