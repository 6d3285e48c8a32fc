//! Builds examples and executables and returns their paths as cargo reports them, so that a custom target folder works.
//! They are built with the features of the tests, so that no dependency is compiled twice.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail};

use crate::test::{WHOLE_WORKSPACE, cargo, package_name};

/// Builds examples of a package; returns their executables in the order of the names.
///
/// # Errors
/// Returns an error if cargo cannot be started, or an example does not build.
pub fn build<const N: usize>(
    root: &Path,
    package: &str,
    names: [&str; N],
) -> anyhow::Result<[PathBuf; N]> {
    let targets: Vec<&str> = names.iter().flat_map(|name| ["--example", name]).collect();
    let messages = run_cargo(root, package, &targets)?;
    let mut programs = names.map(|_| PathBuf::new());
    for (program, name) in programs.iter_mut().zip(names) {
        *program = find_executable(&messages, package, name)?;
    }
    Ok(programs)
}

/// Builds an executable of a package; returns its path.
///
/// # Errors
/// Returns an error if cargo cannot be started, or the program does not build.
pub fn build_program(root: &Path, package: &str, name: &str) -> anyhow::Result<PathBuf> {
    let messages = run_cargo(root, package, &["--bin", name])?;
    find_executable(&messages, package, name)
}

/// Runs `cargo build` and returns its messages.
fn run_cargo(root: &Path, package: &str, targets: &[&str]) -> anyhow::Result<String> {
    // With an example, because the features of what tests and examples depend on do not count for programs alone.
    let output = cargo(root)
        .args(["build", "--locked", "--example", "notes"])
        .args(targets)
        .args(WHOLE_WORKSPACE)
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo; install the Rust toolchain that Cargo.toml names")?;
    if !output.status.success() {
        bail!(
            "{} of {package} does not build ({})",
            targets.join(" "),
            output.status
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the executable of an example from the messages of cargo.
pub(crate) fn find_executable(
    messages: &str,
    package: &str,
    example: &str,
) -> anyhow::Result<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == example)
        .filter(|message| message["package_id"].as_str().and_then(package_name) == Some(package))
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .with_context(|| format!("cargo built no program {example} in {package}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_is_read_from_cargo_messages() {
        let messages = concat!(
            "{\"reason\":\"compiler-artifact\",\"package_id\":\"path+file:///w/y#0.1.0\",\"target\":{\"name\":\"stdio_server\"},\"executable\":\"/y/server\"}\n",
            "{\"reason\":\"compiler-artifact\",\"package_id\":\"path+file:///w/x#0.1.0\",\"target\":{\"name\":\"stdio_server\"},\"executable\":\"/x/server\"}\n",
            "no message\n",
            "{\"reason\":\"compiler-artifact\",\"package_id\":\"path+file:///w/x#0.1.0\",\"target\":{\"name\":\"stdio_client\"},\"executable\":null}\n",
        );
        assert_eq!(
            find_executable(messages, "x", "stdio_server").expect("it is there"),
            PathBuf::from("/x/server")
        );
        let error = find_executable(messages, "x", "stdio_client").expect_err("it has no program");
        assert_eq!(
            error.to_string(),
            "cargo built no program stdio_client in x"
        );
    }
}
