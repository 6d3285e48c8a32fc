//! A server as a child process, and what the system says of it: CPU time, resident memory.
//!
//! Reads `/proc`, so this benchmark runs on Linux.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::Context;

/// A server that is killed when it is dropped.
pub struct Server {
    child: Child,
}

impl Server {
    /// Starts the server of a name.
    pub fn start(name: &str) -> anyhow::Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .args(["server", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child })
    }

    /// Takes the pipes of the server.
    pub fn pipes(&mut self) -> anyhow::Result<(ChildStdin, ChildStdout)> {
        let input = self.child.stdin.take().context("the input was taken")?;
        let output = self.child.stdout.take().context("the output was taken")?;
        Ok((input, output))
    }

    /// Returns the address that a server over HTTP announces.
    pub fn address(&mut self) -> anyhow::Result<SocketAddr> {
        let output = self.child.stdout.take().context("the output was taken")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        line.trim().parse().context("the server does not listen")
    }

    /// Returns the CPU time of all threads so far.
    pub fn cpu(&self) -> anyhow::Result<Duration> {
        let mut nanoseconds = 0;
        for task in std::fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            let first = text.split(' ').next().unwrap_or_default();
            nanoseconds += first.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(nanoseconds))
    }

    /// Returns the bytes of memory that belong to the process alone.
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
