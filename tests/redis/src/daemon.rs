//! Redis, its Sentinel and HAProxy as processes of a test.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Folder with the unpacked Debian packages; without it, the programs are those of the system.
const TOOLS: &str = "MCP_EXACT_TOOLS";
/// Time in which a process has to be ready.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the command of a program of the Debian packages.
fn program(name: &str) -> Command {
    let Some(root) = std::env::var_os(TOOLS).map(PathBuf::from) else {
        return Command::new(name);
    };
    let places = ["usr/bin", "usr/sbin"].map(|place| root.join(place).join(name));
    let path = places.into_iter().find(|path| path.exists());
    let path = path.unwrap_or_else(|| panic!("{TOOLS} has no {name}: run `cargo xtask redis`"));
    let mut command = Command::new(path);
    let libraries = std::fs::read_dir(root.join("usr/lib")).expect("libraries");
    let libraries = libraries.map(|entry| entry.expect("an entry").path());
    let libraries = std::env::join_paths(libraries.filter(|path| path.is_dir()));
    command.env("LD_LIBRARY_PATH", libraries.expect("paths"));
    command
}

/// Returns a port that nobody listens on now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    listener.local_addr().expect("an address").port()
}

fn wait_for_port(port: u16, child: &mut Child, name: &str) {
    let deadline = Instant::now() + PATIENCE;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    while std::net::TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "{name} does not listen");
        if let Some(status) = child.try_wait().expect("waited") {
            panic!("{name} has ended with {status}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A Redis server with persistence, which can be killed and started again.
pub struct RedisServer {
    pub port: u16,
    directory: TempDir,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl RedisServer {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with further options, such as `--maxmemory 10mb`.
    pub fn start_with(options: &[&str]) -> Self {
        let mut server = Self {
            port: free_port(),
            directory: tempfile::tempdir().expect("a directory"),
            arguments: options.iter().map(|&option| option.to_owned()).collect(),
            child: None,
        };
        server.start_again();
        server
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Starts the server on its port, with what it has kept.
    pub fn start_again(&mut self) {
        let mut command = program("redis-server");
        command.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1"]);
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

    /// Ends the server at once (`kill -9`).
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Stops the server, which keeps its connections and answers nothing, or lets it go on.
    pub fn signal(&self, signal: &str) {
        let id = self.child.as_ref().expect("started").id().to_string();
        let status = Command::new("kill").args([signal, &id]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Runs a command of `redis-cli` and returns what it prints.
    pub fn command(&self, arguments: &[&str]) -> String {
        let mut command = program("redis-cli");
        command.args(["-p", &self.port.to_string()]).args(arguments);
        let output = command.output().expect("redis-cli starts");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

/// HAProxy that sends each connection to the next server.
pub struct Balancer {
    pub port: u16,
    child: Child,
    _directory: TempDir,
}

impl Balancer {
    pub fn start(servers: &[SocketAddr]) -> Self {
        use std::fmt::Write as _;

        let (port, directory) = (free_port(), tempfile::tempdir().expect("a directory"));
        let mut text = format!(
            "defaults\n  mode http\n  timeout connect 1s\n  timeout client 1m\n  timeout server 1m\n  timeout tunnel 1m\n  \
             option redispatch 1\n  retries 3\n  retry-on conn-failure\n\
             frontend all\n  bind 127.0.0.1:{port}\n  default_backend servers\n\
             backend servers\n  balance roundrobin\n  option httpchk GET /health\n  http-check expect rstatus .\n"
        );
        for (number, server) in servers.iter().enumerate() {
            let line = format!("  server s{number} {server} check inter 200ms fall 1 rise 1\n");
            write!(text, "{line}").expect("written");
        }
        let path = directory.path().join("haproxy.cfg");
        std::fs::write(&path, text).expect("written");
        let mut command = program("haproxy");
        command.arg("-q").arg("-db").arg("-f").arg(&path);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.spawn().expect("haproxy starts");
        wait_for_port(port, &mut child, "haproxy");
        Self {
            port,
            child,
            _directory: directory,
        }
    }

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
