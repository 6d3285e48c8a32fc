//! `cargo xtask providers`: tests our clients and resource servers with third-party authorization servers.
//!
//! Installs the servers into an ignored folder from the pins in `tests/providers/peers`, and runs the tests that
//! start them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::interop;
use crate::interop::install::{install_python, run_quietly};

/// Files in `tests/providers/peers` that pin the npm packages.
const PINS: [&str; 2] = ["package.json", "package-lock.json"];
/// File with the packages that pip installs.
const REQUIREMENTS: &str = "requirements.txt";
/// Scripts that start a provider or a peer.
const PROGRAMS: [&str; 7] = [
    "mock.mjs",
    "provider.mjs",
    "python_client.py",
    "python_mock.py",
    "python_server.py",
    "typescript_client.mjs",
    "typescript_server.mjs",
];
/// Peer of `cargo xtask interop` whose packages the Python scripts use.
const PYTHON_PEER: &str = "python-2.3.0";
/// Peer of `cargo xtask interop` whose packages the TypeScript scripts use.
const TYPESCRIPT_PEER: &str = "typescript-1.32.2";
/// File with a copy of the installed pins; written after the installation.
const STAMP_FILE: &str = "installed.txt";

/// Installs the providers if necessary, and runs their tests.
///
/// # Errors
/// Returns an error if npm, pip or a test fails.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let source = root.join("tests").join("providers").join("peers");
    let target = root.join("target").join("providers");
    fs::create_dir_all(&target).with_context(|| format!("cannot create {}", target.display()))?;
    for program in PROGRAMS {
        copy_file(&source, &target, program)?;
    }
    install_node(&source, &target)?;
    let mock = target.join("python");
    install_mock(&source.join(REQUIREMENTS), &mock)?;
    let python = interop::folder(root, PYTHON_PEER)?;
    let interpreter = |folder: &Path| folder.join("bin").join("python");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .env("MCP_EXACT_PROVIDERS", &target)
        .env("MCP_EXACT_PYTHON", interpreter(&python))
        .env("MCP_EXACT_PYTHON_MOCK", interpreter(&mock))
        .env(
            "MCP_EXACT_TYPESCRIPT",
            interop::folder(root, TYPESCRIPT_PEER)?,
        )
        .args(["test", "--locked", "--test", "providers"])
        .args(crate::test::WHOLE_WORKSPACE)
        .status()
        .context("cannot start cargo; install the Rust toolchain that Cargo.toml names")?;
    if status.success() {
        Ok(())
    } else {
        bail!("the tests with providers failed ({status})")
    }
}

/// Copies a file from one folder to another.
fn copy_file(source: &Path, target: &Path, file: &str) -> anyhow::Result<()> {
    fs::copy(source.join(file), target.join(file))
        .with_context(|| format!("cannot copy {file} to {}", target.display()))?;
    Ok(())
}

/// Installs the npm packages, unless the pins are unchanged.
fn install_node(source: &Path, target: &Path) -> anyhow::Result<()> {
    let mut stamp = String::new();
    for pin in PINS {
        copy_file(source, target, pin)?;
        stamp += &fs::read_to_string(source.join(pin))?;
    }
    if fs::read_to_string(target.join(STAMP_FILE)).unwrap_or_default() == stamp {
        return Ok(());
    }
    println!("installing the providers of npm");
    run_quietly(
        Command::new("npm")
            .current_dir(target)
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args(["--loglevel", "error"]),
    )?;
    Ok(fs::write(target.join(STAMP_FILE), stamp)?)
}

/// Installs the Python provider, unless the pins are unchanged.
fn install_mock(requirements: &Path, folder: &Path) -> anyhow::Result<()> {
    let stamp = fs::read_to_string(requirements)?;
    if fs::read_to_string(folder.join(STAMP_FILE)).unwrap_or_default() == stamp {
        return Ok(());
    }
    println!("installing the provider of Python");
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    install_python(folder, requirements)?;
    Ok(fs::write(folder.join(STAMP_FILE), stamp)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pins contain no URLs, so that npm and pip can use any registry.
    #[test]
    fn pins_name_no_registry() {
        let source = crate::workspace_root().join("tests/providers/peers");
        for pin in PINS.into_iter().chain([REQUIREMENTS]) {
            let text = fs::read_to_string(source.join(pin)).expect("a pin");
            assert!(!text.contains("://"), "{pin}");
        }
    }
}
