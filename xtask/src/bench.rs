//! `cargo xtask bench`: builds a benchmark executable of the workspace in `benches/` in release mode and runs the
//! executable with the arguments. The measurements are defined by the benchmarks, whose dependencies are not part of
//! this workspace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::interop::install::{install_python, install_typescript};

/// The benchmarks.
#[derive(Debug, clap::Subcommand)]
pub enum Task {
    /// Calls through the macro API, compared with the drivers and endpoints below it.
    Api(Arguments),
    /// Calls through the gateway, compared with calls without it and through other gateways.
    Bridge(Arguments),
    /// Speed, allocations and instructions of decoding and encoding.
    Codec(Arguments),
    /// Conversions between revisions, compared with parsing and decoding the same messages.
    Convert(Arguments),
    /// Calls per second of a server on Redis, compared with one whose stores are in memory.
    Redis(Arguments),
    /// Servers with an echo tool over stdio and HTTP, compared with hand-written minimal servers and rmcp.
    Serve(Arguments),
    /// A tool call through both endpoints of a session, compared with decoding and encoding its messages.
    Session(Arguments),
    /// What a model is shown of the tools of real servers, with and without the search of the gateway.
    Tools(Arguments),
    /// CPU time of a clean build, dependencies and size of a small program.
    Compile(Arguments),
}

/// Arguments that the benchmark executable parses.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Arguments for the benchmark, such as `--quick`, `--only NAME` and `--markdown FILE`; `-- --help` lists them.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENT"
    )]
    arguments: Vec<String>,
}

impl Task {
    /// Returns the benchmark package in `benches/` and the arguments for its executable; `None` for the benchmark of
    /// Redis, which is an executable of this workspace.
    fn program(&self) -> Option<(&'static str, &[String])> {
        let (package, of) = match self {
            Self::Redis(_) => return None,
            Self::Bridge(of) => ("serve-bench", of),
            Self::Api(of) => ("api-bench", of),
            Self::Codec(of) => ("codec-bench", of),
            Self::Compile(of) => ("compile-bench", of),
            Self::Convert(of) => ("convert-bench", of),
            Self::Serve(of) => ("serve-bench", of),
            Self::Session(of) => ("session-bench", of),
            Self::Tools(of) => ("tools-bench", of),
        };
        Some((package, &of.arguments))
    }
}

/// Runs a benchmark in the current directory, so that relative paths of files that it writes refer to this directory.
///
/// # Errors
/// Returns an error if the benchmark cannot be built or fails.
pub fn run(root: &Path, task: &Task) -> anyhow::Result<()> {
    if let Task::Redis(of) = task {
        return crate::redis::bench(root, &of.arguments);
    }
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(cargo_arguments(root, task));
    if let Task::Bridge(_) = task {
        command.arg("--peers").arg(install_peers(root)?);
        command.arg("--gateway").arg(build_gateway(root)?);
    }
    if let Task::Tools(_) = task {
        command.arg(install_servers(root)?);
    }
    let status = command
        .status()
        .context("cannot start cargo; install the Rust toolchain that Cargo.toml names")?;
    if !status.success() {
        bail!("the benchmark failed ({status}); the output above says why");
    }
    Ok(())
}

/// Returns the arguments of `cargo run` for a benchmark.
fn cargo_arguments(root: &Path, task: &Task) -> Vec<String> {
    let (package, arguments) = task.program().unwrap_or_default();
    let manifest = root.join("benches").join("Cargo.toml");
    let mut line: Vec<String> = ["run", "--release", "--quiet", "--locked", "--manifest-path"]
        .map(str::to_owned)
        .to_vec();
    line.push(manifest.display().to_string());
    line.extend(["--package", package, "--"].map(str::to_owned));
    if let Task::Bridge(_) = task {
        line.push("bridge".to_owned());
    }
    line.extend_from_slice(arguments);
    line
}

/// Builds the gateway in release mode and returns its path.
fn build_gateway(root: &Path) -> anyhow::Result<PathBuf> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root)
        .args(["build", "--release", "--quiet", "--locked"])
        .args(["--package", "mcp-exact-cli"])
        .args(["--no-default-features", "--features", "bridge"])
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("mcp-exact-cli does not build ({status})");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let name = format!("mcp-exact{}", std::env::consts::EXE_SUFFIX);
    Ok(target.join("release").join(name))
}

/// Installs the pinned versions of the other gateways, unless they are installed already, and returns their folder.
fn install_peers(root: &Path) -> anyhow::Result<PathBuf> {
    let source = root.join("benches").join("serve").join("peers");
    let folder = root.join("target").join("bench-bridge");
    let pins =
        ["package.json", "package-lock.json", "requirements.txt"].map(|pin| source.join(pin));
    install_pins(&folder, &pins, "other gateways")?;
    Ok(folder)
}

/// Installs the pinned servers whose tools are measured, unless they are installed already, and returns their folder.
fn install_servers(root: &Path) -> anyhow::Result<PathBuf> {
    let source = root.join("benches").join("tools").join("servers");
    let folder = root.join("target").join("bench-tools");
    let pins = ["package.json", "package-lock.json"].map(|pin| source.join(pin));
    install_pins(&folder, &pins, "servers")?;
    Ok(folder)
}

/// Installs the packages of npm that the first two pins name, and those of Python that the third one names, unless they are
/// installed already.
fn install_pins(folder: &Path, pins: &[PathBuf], what: &str) -> anyhow::Result<()> {
    let mut stamp = String::new();
    for pin in pins {
        stamp +=
            &fs::read_to_string(pin).with_context(|| format!("cannot read {}", pin.display()))?;
    }
    let installed = folder.join("installed.txt");
    if fs::read_to_string(&installed).unwrap_or_default() != stamp {
        println!("installing {what}");
        if folder.exists() {
            fs::remove_dir_all(folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        install_typescript(folder, &pins[..2])?;
        if let Some(requirements) = pins.get(2) {
            install_python(&folder.join("venv"), requirements)?;
        }
        fs::write(&installed, stamp)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the arguments of cargo end with `end`.
    fn check(task: fn(Arguments) -> Task, arguments: &[&str], end: &str) {
        let arguments = arguments.iter().map(|&argument| argument.to_owned());
        let task = task(Arguments {
            arguments: arguments.collect(),
        });
        let line = cargo_arguments(Path::new("."), &task).join(" ");
        assert!(line.ends_with(end), "{line}");
    }

    /// The arguments after the task are passed to the executable of the benchmark.
    #[test]
    fn arguments_are_passed_on() {
        check(
            Task::Codec,
            &["--quick"],
            "--package codec-bench -- --quick",
        );
        check(Task::Api, &[], "--package api-bench --");
        check(
            Task::Bridge,
            &["--quick"],
            "--package serve-bench -- bridge --quick",
        );
        check(Task::Compile, &[], "--package compile-bench --");
        check(Task::Convert, &[], "--package convert-bench --");
        check(Task::Serve, &[], "--package serve-bench --");
        check(
            Task::Session,
            &["--calls", "5"],
            "--package session-bench -- --calls 5",
        );
        check(Task::Tools, &[], "--package tools-bench --");
    }
}
