//! `cargo xtask redis`: tests servers that share their sessions in Redis, behind HAProxy.
//!
//! Uses the installed redis-server, redis-sentinel and haproxy, or unpacks their Debian packages into an ignored
//! folder, which requires apt-get and dpkg but neither root nor a system service. The command then runs the tests,
//! which start these programs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::{examples, interop};

/// Executables that the tests start.
const PROGRAMS: [&str; 4] = ["redis-server", "redis-sentinel", "redis-cli", "haproxy"];
/// Debian packages with the executables, and the libraries that a minimal system lacks.
const PACKAGES: [&str; 10] = [
    "redis-server",
    "redis-sentinel",
    "redis-tools",
    "haproxy",
    "libatomic1",
    "libjemalloc2",
    "liblua5.3-0",
    "liblzf1",
    "libopentracing-c-wrapper0",
    "libopentracing1",
];
/// Peers of `cargo xtask interop` whose clients the tests use: SDKs of each revision with a handshake.
const PEERS: [&str; 7] = [
    "python-1.8.1",
    "python-1.9.4",
    "python-1.10.1",
    "python-1.30.0",
    "typescript-1.12.3",
    "typescript-1.22.0",
    "typescript-1.32.2",
];
/// File that lists the unpacked packages; written after unpacking.
const STAMP_FILE: &str = "unpacked.txt";

/// Arguments of `cargo xtask redis`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Arguments {
    /// Arguments for the tests, such as a test name.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    tests: Vec<String>,
}

/// Installs missing packages and runs the tests.
///
/// # Errors
/// Returns an error if the packages cannot be downloaded, or a test fails.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let status = test_command(root)?
        .arg("--")
        .args(&arguments.tests)
        .status()
        .context("cannot start cargo; install the Rust toolchain that Cargo.toml names")?;
    if status.success() {
        Ok(())
    } else {
        bail!("the tests with Redis failed ({status})")
    }
}

/// Returns the command that runs the tests, with the paths of the executables.
///
/// # Errors
/// Returns an error if the packages or the SDKs cannot be installed.
pub fn test_command(root: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    if let Some(tools) = install_tools(root)? {
        command.env("MCP_EXACT_TOOLS", tools);
    }
    for peer in PEERS {
        interop::folder(root, peer)?;
    }
    command.env("MCP_EXACT_PROGRAM", build_program(root)?);
    command.env("MCP_EXACT_PEERS", root.join("target").join("interop"));
    command.args(["test", "--locked", "--test", "redis"]);
    command.args(crate::test::WHOLE_WORKSPACE);
    Ok(command)
}

/// Measures calls per second with stores on Redis and in memory, in release.
///
/// # Errors
/// Returns an error if the packages cannot be downloaded, or the measurement fails.
pub fn bench(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    if let Some(tools) = install_tools(root)? {
        command.env("MCP_EXACT_TOOLS", tools);
    }
    command.args(["run", "--release", "--quiet", "--locked"]);
    command.args(["--package", "mcp-exact-tests-redis"]);
    command.args(["--bin", "redis_calls_per_second", "--"]);
    let status = command.args(arguments).status();
    let status =
        status.context("cannot start cargo; install the Rust toolchain that Cargo.toml names")?;
    if status.success() {
        Ok(())
    } else {
        bail!("the measurement failed ({status})")
    }
}

/// Builds the executable `mcp-exact` with the gateway and the commands for operators, and returns its path.
fn build_program(root: &Path) -> anyhow::Result<PathBuf> {
    examples::build_program(root, "mcp-exact-cli", "mcp-exact")
}

/// Returns the folder with the unpacked executables; `None` if all executables are installed on the system.
fn install_tools(root: &Path) -> anyhow::Result<Option<PathBuf>> {
    if PROGRAMS.iter().all(|program| is_installed(program)) {
        return Ok(None);
    }
    let folder = root.join("target").join("tools").join("debian");
    let unpacked = folder.join("root");
    let stamp = PACKAGES.join("\n");
    if fs::read_to_string(folder.join(STAMP_FILE)).unwrap_or_default() == stamp {
        return Ok(Some(unpacked));
    }
    println!("unpacking the Debian packages of Redis and HAProxy");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    if !download(&folder)? {
        // The package lists are missing or outdated. Without root the update fails, and so does the second download.
        let _ = Command::new("apt-get")
            .args(["update", "--quiet=2"])
            .status();
        if !download(&folder)? {
            bail!(
                "apt-get cannot download {}; install redis-server, redis-sentinel and haproxy (apt-get install redis-server redis-sentinel haproxy)",
                PACKAGES.join(", ")
            );
        }
    }
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            let status = Command::new("dpkg")
                .arg("-x")
                .arg(&path)
                .arg(&unpacked)
                .status();
            if !status.context("cannot start dpkg")?.success() {
                bail!("dpkg cannot unpack {}", path.display());
            }
        }
    }
    fs::write(folder.join(STAMP_FILE), stamp)?;
    Ok(Some(unpacked))
}

/// Downloads the Debian packages; returns false if a download fails.
fn download(folder: &Path) -> anyhow::Result<bool> {
    let mut command = Command::new("apt-get");
    command.current_dir(folder).args(["download", "--quiet=2"]);
    let status = command.args(PACKAGES).status();
    let status = status.context(
        "neither redis-server and haproxy nor apt-get are installed; install Redis 7 and HAProxy 2.6 or later",
    )?;
    Ok(status.success())
}

/// Returns true if an executable can be started.
fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(if program == "haproxy" {
        "-v"
    } else {
        "--version"
    });
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}
