//! Processes of Redis, Sentinel and HAProxy for tests.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Environment variable with the folder of the unpacked Debian packages; without it, the system's programs are used.
const TOOLS_VARIABLE: &str = "MCP_EXACT_TOOLS";
/// Time limit for the start of a process or a failover.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the command that starts a program.
fn program(name: &str) -> Command {
    let Some(root) = std::env::var_os(TOOLS_VARIABLE).map(PathBuf::from) else {
        return Command::new(name);
    };
    let places = ["usr/bin", "usr/sbin"].map(|place| root.join(place).join(name));
    let path = places.into_iter().find(|path| path.exists());
    let path =
        path.unwrap_or_else(|| panic!("{TOOLS_VARIABLE} has no {name}: run `cargo xtask redis`"));
    let mut command = Command::new(path);
    let libraries = std::fs::read_dir(root.join("usr/lib")).expect("libraries");
    let libraries = libraries.map(|entry| entry.expect("an entry").path());
    let libraries = std::env::join_paths(libraries.filter(|path| path.is_dir()));
    command.env("LD_LIBRARY_PATH", libraries.expect("paths"));
    command
}

/// Returns the version of a program, such as `7.0.15`.
pub fn version(name: &str) -> String {
    let output = program(name).arg("-v").output();
    let output = output.unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // `Redis server v=7.0.15 …`, `HAProxy version 2.9.1 …`
    let words = text.split([' ', '=', '-']);
    let mut versions = words.filter(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    let version = versions.next();
    version.unwrap_or_else(|| panic!("{text}")).to_owned()
}

/// Checks that HAProxy accepts a configuration file with these environment variables.
pub fn check_balancer(path: &Path, variables: &[(&str, &str)]) {
    let mut command = program("haproxy");
    command.arg("-c").arg("-f").arg(path);
    command.envs(variables.iter().copied());
    let output = command.output().expect("haproxy starts");
    assert!(output.status.success(), "{output:?}");
}

/// Returns a free port.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    listener.local_addr().expect("an address").port()
}

/// Waits until a child process listens on a port; panics if the process exits or the time limit expires.
fn wait_for_port(port: u16, child: &mut Child, name: &str) {
    let deadline = Instant::now() + START_TIMEOUT;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    while std::net::TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "{name} does not listen");
        if let Some(status) = child.try_wait().expect("waited") {
            panic!("{name} has ended with {status}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Paths of a self-signed certificate and its key.
struct CertificateFiles {
    certificate: String,
    key: String,
}

impl CertificateFiles {
    /// Returns the TLS settings for redis.conf.
    fn settings(&self) -> String {
        let Self { certificate, key } = self;
        format!(
            "tls-cert-file {certificate}\ntls-key-file {key}\ntls-ca-cert-file {certificate}\ntls-auth-clients no\n"
        )
    }
}

/// Redis server with persistence, which can be killed and restarted.
pub struct RedisServer {
    pub port: u16,
    directory: TempDir,
    /// Command line arguments of the server.
    arguments: Vec<String>,
    /// Certificate files, if clients must use TLS.
    encryption: Option<CertificateFiles>,
    child: Option<Child>,
}

impl RedisServer {
    /// Starts a server without further options.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with further options, such as `--maxmemory 10mb`.
    pub fn start_with(options: &[&str]) -> Self {
        let mut server = Self::prepare(options);
        server.start_again();
        server
    }

    /// Starts a server that accepts only TLS connections, with a certificate and its key in PEM.
    pub fn start_encrypted(certificate: &str, key: &str, options: &[&str]) -> Self {
        let mut server = Self::prepare(options);
        let write = |name: &str, text: &str| {
            let path = server.directory().join(name);
            std::fs::write(&path, text).expect("written");
            path.to_str().expect("a path").to_owned()
        };
        server.encryption = Some(CertificateFiles {
            certificate: write("certificate.pem", certificate),
            key: write("key.pem", key),
        });
        server.start_again();
        server
    }

    /// Creates a server that is not started yet.
    fn prepare(options: &[&str]) -> Self {
        Self {
            port: free_port(),
            directory: tempfile::tempdir().expect("a directory"),
            arguments: options.iter().map(|&option| option.to_owned()).collect(),
            encryption: None,
            child: None,
        }
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Returns the directory with the persisted data.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts the server on its port, with its persisted data.
    pub fn start_again(&mut self) {
        let mut command = program("redis-server");
        let port = self.port.to_string();
        match &self.encryption {
            Some(files) => {
                command.args(["--port", "0", "--tls-port", &port]);
                let settings = files.settings();
                for setting in settings.lines() {
                    let (name, value) = setting.split_once(' ').expect("a value");
                    command.args([&format!("--{name}"), value]);
                }
            }
            None => {
                command.args(["--port", &port]);
            }
        }
        command.args(["--bind", "127.0.0.1"]);
        // The master sends its data to a replica immediately, without waiting for further replicas.
        command.args(["--repl-diskless-sync-delay", "0"]);
        // Every write is on the disk before it is confirmed.
        command.args([
            "--appendonly",
            "yes",
            "--appendfsync",
            "always",
            "--save",
            "",
        ]);
        command
            .arg("--dir")
            .arg(self.directory.path())
            .args(&self.arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().expect("redis-server starts");
        wait_for_port(self.port, &mut child, "redis-server");
        self.child = Some(child);
    }

    /// Kills the server (`kill -9`).
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends a signal to the server: `-STOP` suspends the server, which keeps its connections but does not respond;
    /// `-CONT` resumes it.
    pub fn signal(&self, signal: &str) {
        let id = self.child.as_ref().expect("started").id().to_string();
        let status = Command::new("kill").args([signal, &id]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Runs a command with `redis-cli` and returns the output.
    pub fn command(&self, arguments: &[&str]) -> String {
        run_command(self.port, arguments)
    }
}

/// Runs a command with `redis-cli` on a port and returns the output.
fn run_command(port: u16, arguments: &[&str]) -> String {
    let mut command = program("redis-cli");
    command.args(["-p", &port.to_string()]).args(arguments);
    let output = command.output().expect("redis-cli starts");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until a condition holds; panics after a time limit.
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + START_TIMEOUT;
    while !holds() {
        assert!(Instant::now() < deadline, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Name of the master that the Sentinel monitors.
pub const MASTER_NAME: &str = "sessions";

/// Sentinel that monitors one master.
pub struct Sentinel {
    pub port: u16,
    child: Child,
    _directory: TempDir,
}

impl Sentinel {
    /// Starts a Sentinel for a master.
    pub fn watch(master: &RedisServer) -> Self {
        let (port, directory) = (free_port(), tempfile::tempdir().expect("a directory"));
        let listens = match &master.encryption {
            Some(files) => format!(
                "port 0\ntls-port {port}\ntls-replication yes\n{}",
                files.settings()
            ),
            None => format!("port {port}\n"),
        };
        let text = format!(
            "{listens}bind 127.0.0.1\nsentinel monitor {MASTER_NAME} 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds {MASTER_NAME} 300\nsentinel failover-timeout {MASTER_NAME} 2000\n",
            master.port
        );
        let path = directory.path().join("sentinel.conf");
        std::fs::write(&path, text).expect("written");
        let mut command = program("redis-sentinel");
        command
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        let mut child = command.spawn().expect("redis-sentinel starts");
        wait_for_port(port, &mut child, "redis-sentinel");
        // By default, Sentinel queries the state of servers every ten seconds, which would delay the next failover.
        if master.encryption.is_none() {
            run_command(port, &["SENTINEL", "DEBUG", "info-period", "100"]);
        }
        Self {
            port,
            child,
            _directory: directory,
        }
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Master with a replica, and a Sentinel that promotes the replica if the master fails.
pub struct RedisPair {
    servers: [RedisServer; 2],
    /// Index of the master.
    master: usize,
    sentinel: Sentinel,
}

impl RedisPair {
    /// Starts master, replica and Sentinel, and waits for the replication.
    pub fn start() -> Self {
        let master = RedisServer::start();
        let port = master.port.to_string();
        let replica = RedisServer::start_with(&["--replicaof", "127.0.0.1", &port]);
        let sentinel = Sentinel::watch(&master);
        let mut pair = Self {
            servers: [master, replica],
            master: 0,
            sentinel,
        };
        pair.wait_for_replica();
        pair
    }

    /// Returns the URL of the Sentinel.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.sentinel.port)
    }

    /// Returns the directory of the first server.
    pub fn directory(&self) -> &Path {
        self.servers[0].directory()
    }

    /// Waits until the replica is connected to the master. Updates the index of the master, too, because Sentinel may
    /// have failed over when a busy machine delayed the master.
    fn wait_for_replica(&mut self) {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            self.master = self.named_master();
            let replication = self.servers[self.master].command(&["INFO", "replication"]);
            let replicas = run_command(self.sentinel.port, &["SENTINEL", "replicas", MASTER_NAME]);
            if replication.contains("state=online") && replicas.contains("master-link-status\nok") {
                return;
            }
            let is_late = Instant::now() >= deadline;
            assert!(
                !is_late,
                "replication does not happen:\n{replication}\n{replicas}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the index of the master that Sentinel names.
    fn named_master(&self) -> usize {
        let question = ["SENTINEL", "get-master-addr-by-name", MASTER_NAME];
        let address = run_command(self.sentinel.port, &question);
        let is_second = address.ends_with(&self.servers[1].port.to_string());
        usize::from(is_second)
    }

    /// Kills the master with `kill -9`, waits until the replica is promoted, and restarts the old master as a replica.
    pub fn fail_over(&mut self) {
        self.wait_for_replica();
        let former = self.master;
        self.servers[former].kill();
        wait_until("a failover", || self.named_master() != former);
        let port = self.servers[1 - former].port.to_string();
        let options = ["--replicaof", "127.0.0.1", &port];
        self.servers[former].arguments = options.map(str::to_owned).to_vec();
        self.servers[former].start_again();
        self.wait_for_replica();
    }
}

/// HAProxy that distributes connections to the servers by round robin.
pub struct Balancer {
    pub port: u16,
    child: Child,
    _directory: TempDir,
}

impl Balancer {
    /// Starts HAProxy with a generated configuration for these servers. A server that takes no connections is down at
    /// once, and one that is slow to answer is not.
    pub fn start(servers: &[SocketAddr]) -> Self {
        use std::fmt::Write as _;

        let (port, directory) = (free_port(), tempfile::tempdir().expect("a directory"));
        let mut text = format!(
            "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1m\n  timeout server 1m\n  timeout tunnel 1m\n  \
             timeout check 30s\n  option redispatch 1\n  retries 3\n  retry-on conn-failure\n\
             frontend all\n  bind 127.0.0.1:{port}\n  default_backend servers\n\
             backend servers\n  balance roundrobin\n  option httpchk GET /health\n  http-check expect rstatus .\n"
        );
        for (number, server) in servers.iter().enumerate() {
            let line = format!("  server s{number} {server} check inter 200ms fall 1 rise 1\n");
            write!(text, "{line}").expect("written");
        }
        let path = directory.path().join("haproxy.cfg");
        std::fs::write(&path, text).expect("written");
        Self::run(port, directory, &path, &[])
    }

    /// Starts HAProxy with a configuration file, whose addresses are the environment variables `LISTEN` and one per
    /// server.
    pub fn start_with(path: &Path, servers: &[(&str, SocketAddr)]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        Self::run(free_port(), directory, path, servers)
    }

    /// Starts HAProxy with a configuration file and the addresses of servers in environment variables.
    fn run(port: u16, directory: TempDir, path: &Path, servers: &[(&str, SocketAddr)]) -> Self {
        let mut command = program("haproxy");
        command.arg("-q").arg("-db").arg("-f").arg(path);
        command.env("LISTEN", format!("127.0.0.1:{port}"));
        command.envs(servers.iter().map(|(name, at)| (name, at.to_string())));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().expect("haproxy starts");
        wait_for_port(port, &mut child, "haproxy");
        Self {
            port,
            child,
            _directory: directory,
        }
    }

    /// Returns the address for clients.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
