//! Server processes that share their sessions and can be killed and restarted.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::daemon::{MASTER_NAME, RedisPair, RedisServer, free_port};

/// Lease time, after which a killed process counts as dead.
pub const LEASE: Duration = Duration::from_millis(600);

/// Environment variable of a server process whose Redis is behind a Sentinel: the name of the master.
pub const SENTINEL_MASTER: &str = "SENTINEL_MASTER";

/// Settings of the server processes.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Path of `redis_server_process`.
    pub program: PathBuf,
    /// URL of Redis, or of its Sentinel.
    pub redis: String,
    /// True if `redis` is the URL of a Sentinel.
    pub has_sentinel: bool,
    /// Journal file of all executions of the tool `work`.
    pub journal: PathBuf,
    /// True if the event log of the processes loses events.
    pub is_faulty: bool,
}

impl Setup {
    /// Creates settings for processes that use one Redis server.
    pub fn new(program: &str, redis: &RedisServer) -> Self {
        Self {
            program: program.into(),
            redis: redis.url(),
            has_sentinel: false,
            journal: redis.directory().join("journal"),
            is_faulty: false,
        }
    }

    /// Creates settings for processes that use the master that a Sentinel names.
    pub fn with_sentinel(program: &str, redis: &RedisPair) -> Self {
        Self {
            program: program.into(),
            redis: redis.url(),
            has_sentinel: true,
            journal: redis.directory().join("journal"),
            is_faulty: false,
        }
    }

    /// Starts a number of processes.
    pub fn start(&self, count: usize) -> Vec<ServerProcess> {
        (0..count)
            .map(|_| ServerProcess::start(self.clone()))
            .collect()
    }
}

/// Running server process, killed on drop.
pub struct ServerProcess {
    setup: Setup,
    port: u16,
    child: Child,
}

impl ServerProcess {
    /// Starts a process on a free port.
    fn start(setup: Setup) -> Self {
        let port = free_port();
        let child = Self::spawn(&setup, port);
        Self { setup, port, child }
    }

    /// Starts the program, and waits until it listens.
    fn spawn(setup: &Setup, port: u16) -> Child {
        let mut command = Command::new(&setup.program);
        command
            .arg(&setup.redis)
            .arg(port.to_string())
            .arg(&setup.journal);
        command.args(setup.is_faulty.then_some("faulty"));
        if setup.has_sentinel {
            command.env(SENTINEL_MASTER, MASTER_NAME);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let output = child.stdout.take().expect("piped");
        let line = BufReader::new(output).lines().next();
        assert!(
            line.is_some_and(|line| line.is_ok()),
            "the server does not listen"
        );
        child
    }

    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Returns the id of the operating-system process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process (`kill -9`).
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Restarts a killed process at the same address.
    pub fn start_again(&mut self) {
        self.child = Self::spawn(&self.setup, self.port);
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}
