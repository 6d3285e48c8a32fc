//! `cargo xtask test`: runs all unit, integration and doc tests of the workspace with `cargo test`.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// Executables that the tests run, with installation hints.
const NEEDED_PROGRAMS: [(&str, &str); 2] = [
    ("cc", "Debian package build-essential"),
    (
        "node",
        "Debian package nodejs, or https://nodejs.org; version 20 or later",
    ),
];

/// Runs `cargo test` in `root`, followed by `arguments`. Without a package in the arguments, all tests of the workspace
/// run.
///
/// # Errors
/// Returns an error if a program that the tests run is missing, or a test fails.
pub fn run(root: &Path, arguments: &[String]) -> anyhow::Result<()> {
    let missing: Vec<String> = NEEDED_PROGRAMS
        .iter()
        .filter(|(program, _)| !is_installed(program))
        .map(|(program, remedy)| format!("{program} ({remedy})"))
        .collect();
    if !missing.is_empty() {
        bail!(
            "the tests need what this machine lacks: {}",
            missing.join(", ")
        );
    }
    let line = cargo_arguments(arguments);
    println!("running: cargo {}", line.join(" "));
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(&line)
        .current_dir(root)
        .status()
        .context("cannot start cargo; install the Rust toolchain that Cargo.toml names")?;
    if !status.success() {
        bail!("tests failed ({status}); the output above names them");
    }
    Ok(())
}

/// Returns true if the executable can be started.
fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version");
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok()
}

/// Returns the arguments of cargo.
fn cargo_arguments(arguments: &[String]) -> Vec<String> {
    let mut line = vec!["test".to_owned()];
    let mut for_cargo = arguments.iter().take_while(|argument| *argument != "--");
    if !for_cargo.any(|argument| argument.starts_with("-p") || argument.starts_with("--package")) {
        let all = ["--workspace", "--features", "mcp-exact-cli/full"];
        line.extend(all.map(str::to_owned));
    }
    line.extend_from_slice(arguments);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the arguments of `cargo xtask test` result in the arguments `line` of cargo.
    fn check(arguments: &[&str], line: &str) {
        let arguments: Vec<String> = arguments
            .iter()
            .map(|&argument| argument.to_owned())
            .collect();
        assert_eq!(cargo_arguments(&arguments).join(" "), line);
    }

    /// An executable that cannot be started counts as not installed.
    #[test]
    fn missing_programs_are_errors() {
        assert!(is_installed("rustc"));
        assert!(!is_installed("no-such-program-anywhere"));
    }

    #[test]
    fn workspace_is_tested_without_packages() {
        check(
            &["--locked", "--", "-p"],
            "test --workspace --features mcp-exact-cli/full --locked -- -p",
        );
    }

    #[test]
    fn only_named_packages_are_tested() {
        check(&["-p", "xtask"], "test -p xtask");
        check(&["--package=xtask"], "test --package=xtask");
    }
}
