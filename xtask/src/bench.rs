//! `cargo xtask bench`: builds a program of the workspace in `benches/` in release and hands the arguments on to it. The
//! benchmarks decide what they measure, and how; their libraries never reach this workspace.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bench {
    /// Calls through the macro API.
    Api,
    /// Decoding and encoding.
    Codec,
    /// Cost of a build on each library.
    Compile,
    /// Conversions between revisions.
    Convert,
    /// Servers of an echo tool.
    Serve,
    /// A call through both endpoints of a session.
    Session,
}

impl Bench {
    fn package(self) -> &'static str {
        match self {
            Self::Api => "api-bench",
            Self::Codec => "codec-bench",
            Self::Compile => "compile-bench",
            Self::Convert => "convert-bench",
            Self::Serve => "serve-bench",
            Self::Session => "session-bench",
        }
    }
}

/// Runs a benchmark in the directory where the command was given, so that files it writes are found there.
pub fn run(root: &Path, bench: Bench, arguments: &[String]) -> anyhow::Result<()> {
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(cargo_line(root, bench, arguments))
        .status()
        .context("cannot start cargo; install the Rust toolchain that Cargo.toml names")?;
    if !status.success() {
        bail!("the benchmark failed ({status}); the output above says why");
    }
    Ok(())
}

fn cargo_line(root: &Path, bench: Bench, arguments: &[String]) -> Vec<String> {
    let manifest = root.join("benches").join("Cargo.toml");
    let mut line: Vec<String> = ["run", "--release", "--quiet", "--locked", "--manifest-path"]
        .map(str::to_owned)
        .to_vec();
    line.push(manifest.display().to_string());
    line.extend(["--package", bench.package(), "--"].map(str::to_owned));
    line.extend_from_slice(arguments);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bench: Bench, arguments: &[&str], end: &str) {
        let arguments: Vec<String> = arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect();
        let line = cargo_line(Path::new("."), bench, &arguments).join(" ");
        assert!(line.ends_with(end), "{line}");
    }

    #[test]
    fn arguments_go_to_the_program() {
        check(
            Bench::Codec,
            &["--quick"],
            "--package codec-bench -- --quick",
        );
        check(Bench::Api, &[], "--package api-bench --");
        check(Bench::Compile, &[], "--package compile-bench --");
        check(Bench::Convert, &[], "--package convert-bench --");
        check(Bench::Serve, &[], "--package serve-bench --");
        check(
            Bench::Session,
            &["--calls", "5"],
            "--package session-bench -- --calls 5",
        );
    }
}
