//! `cargo xtask providers`: our clients and resource servers with authorization servers of other people.
//!
//! Installs them into an ignored folder from the pins in `tests/auth/providers`, and runs the tests that start them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::interop::{self, install::quietly};

/// The files that say what is installed.
const PINS: [&str; 2] = ["package.json", "package-lock.json"];
/// The programs that start a provider or a peer.
const PROGRAMS: [&str; 4] = [
    "mock.mjs",
    "provider.mjs",
    "python_client.py",
    "python_server.py",
];
/// The peer of `cargo xtask interop` whose Python runs the programs of the Python SDK.
const PYTHON: &str = "python-2.3.0";
/// Copy of the pins that were installed; written last.
const STAMP: &str = "installed.txt";

/// Installs the providers where that is needed, and runs their tests.
///
/// # Errors
/// When npm fails, or a test does.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let source = root.join("tests").join("auth").join("providers");
    let target = root.join("target").join("providers");
    install(&source, &target)?;
    let python = interop::interpreter(root, PYTHON)?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .env("MCP_EXACT_PROVIDERS", &target)
        .env("MCP_EXACT_PYTHON", python)
        .args(["test", "--locked", "--package", "mcp-exact-tests-auth"])
        .args(["--test", "providers"])
        .status()
        .context("cannot start cargo; install the Rust toolchain that Cargo.toml names")?;
    if status.success() {
        Ok(())
    } else {
        bail!("the tests with providers failed ({status})")
    }
}

fn install(source: &Path, target: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(target).with_context(|| format!("cannot create {}", target.display()))?;
    for file in PINS.into_iter().chain(PROGRAMS) {
        fs::copy(source.join(file), target.join(file))
            .with_context(|| format!("cannot copy {file} to {}", target.display()))?;
    }
    let mut stamp = String::new();
    for pin in PINS {
        stamp += &fs::read_to_string(source.join(pin))?;
    }
    if fs::read_to_string(target.join(STAMP)).unwrap_or_default() != stamp {
        println!("installing the providers");
        quietly(
            Command::new("npm")
                .current_dir(target)
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
                .args(["--loglevel", "error"]),
        )?;
        fs::write(target.join(STAMP), stamp)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_name_no_registry() {
        let source = crate::workspace_root().join("tests/auth/providers");
        for pin in PINS {
            let text = fs::read_to_string(source.join(pin)).expect("a pin");
            assert!(!text.contains("://"), "{pin}");
        }
    }
}
