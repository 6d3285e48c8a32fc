//! Selects the packages whose tests run: all of them, named ones, or those that a change reaches.
//!
//! A change reaches the packages whose files it touches, the packages that depend on these, and the readers of files
//! outside of packages.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde_json::Value;

use super::Arguments;
use super::build::cargo;

/// Files outside of packages, by the start of their path, and the packages whose tests read them. An empty list means
/// every package.
const READERS: &[(&str, &[&str])] = &[
    (".cargo/", &[]),
    (".github/", &["xtask"]),
    ("Cargo.lock", &[]),
    ("Cargo.toml", &[]),
    ("schema/", &[]),
    ("README.md", &["mcp-exact-tests-docs"]),
    ("ARCHITECTURE.md", &["mcp-exact-tests-docs"]),
    (
        "docs/",
        &[
            "mcp-exact-cli",
            "mcp-exact-tests-convert",
            "mcp-exact-tests-docs",
            "mcp-exact-tests-session",
            "xtask",
        ],
    ),
    ("fuzz/corpus/", &["mcp-exact-tests-fuzz"]),
    ("examples/three-servers/", &["mcp-exact-tests-redis"]),
];

/// Packages whose tests run.
#[derive(Debug)]
pub(super) enum Selection {
    /// Every package.
    All,
    /// The packages of these names.
    Named(BTreeSet<String>),
}

/// Package of the workspace.
#[derive(Debug)]
struct Package {
    /// Name of the package.
    name: String,
    /// Folder of the package, relative to the workspace.
    folder: String,
    /// Names of the packages that it depends on, for tests too.
    dependencies: BTreeSet<String>,
}

impl Selection {
    /// Reads the packages of the workspace and, for `--changed`, what git says of the change.
    ///
    /// # Errors
    /// Returns an error if a named package does not exist, or cargo or git fails.
    pub(super) fn new(root: &Path, arguments: &Arguments) -> anyhow::Result<Self> {
        if arguments.packages.is_empty() && !arguments.changed {
            return Ok(Self::All);
        }
        let packages = packages(root)?;
        let mut names = BTreeSet::new();
        for name in &arguments.packages {
            if !packages.iter().any(|package| package.name == *name) {
                bail!("there is no package {name} in the workspace");
            }
            names.insert(name.clone());
        }
        if arguments.changed {
            match reached(&packages, &changed_files(root, &arguments.base)?) {
                Self::All => return Ok(Self::All),
                Self::Named(changed) => names.extend(changed),
            }
        }
        Ok(Self::Named(names))
    }

    /// Returns true if the tests of the package run.
    pub(super) fn contains(&self, package: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(package),
        }
    }

    /// Returns true if no test runs.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Named(names) if names.is_empty())
    }

    /// Returns the arguments of cargo that select the packages.
    pub(super) fn cargo_arguments(&self) -> Vec<String> {
        match self {
            Self::All => vec!["--workspace".to_owned()],
            Self::Named(names) => names
                .iter()
                .flat_map(|name| ["--package".to_owned(), name.clone()])
                .collect(),
        }
    }
}

/// Returns the packages of the workspace.
fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    let output = cargo(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let listed = metadata["packages"].as_array().context("no packages")?;
    let package = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?);
        let folder = manifest.parent()?.strip_prefix(root).ok()?;
        let dependencies = package["dependencies"].as_array()?.iter();
        let local = dependencies.filter(|dependency| dependency["path"].is_string());
        Some(Package {
            name: package["name"].as_str()?.to_owned(),
            folder: folder.to_str()?.replace('\\', "/"),
            dependencies: local
                .filter_map(|dependency| Some(dependency["name"].as_str()?.to_owned()))
                .collect(),
        })
    };
    Ok(listed.iter().filter_map(package).collect())
}

/// Returns the files that differ from the common ancestor with the revision `base`, and those that git does not track.
fn changed_files(root: &Path, base: &str) -> anyhow::Result<Vec<String>> {
    let git = |arguments: &[&str]| -> anyhow::Result<String> {
        let mut command = std::process::Command::new("git");
        let output = command
            .args(arguments)
            .current_dir(root)
            .output()
            .context("cannot start git")?;
        if !output.status.success() {
            bail!(
                "git {}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    };
    let ancestor = git(&["merge-base", base, "HEAD"])
        .with_context(|| format!("`--base` names the revision to compare with, here {base:?}"))?;
    let changed = git(&["diff", "--name-only", "--no-renames", ancestor.trim()])?;
    let untracked = git(&["ls-files", "--others", "--exclude-standard"])?;
    let lines = changed.lines().chain(untracked.lines());
    Ok(lines.map(str::to_owned).collect())
}

/// Returns the packages that a change of the files reaches.
fn reached(packages: &[Package], files: &[String]) -> Selection {
    let mut names = BTreeSet::new();
    for file in files {
        let is_inside = |package: &&Package| {
            let rest = file.strip_prefix(package.folder.as_str());
            rest.is_some_and(|rest| rest.starts_with('/'))
        };
        let innermost = packages.iter().filter(is_inside);
        if let Some(package) = innermost.max_by_key(|package| package.folder.len()) {
            names.insert(package.name.clone());
            continue;
        }
        let readers = READERS.iter().find(|(start, _)| file.starts_with(start));
        match readers {
            Some((_, [])) => return Selection::All,
            Some((_, readers)) => names.extend(readers.iter().map(|&name| name.to_owned())),
            None => {}
        }
    }
    loop {
        let dependents = packages.iter().filter(|package| {
            !names.contains(&package.name) && !package.dependencies.is_disjoint(&names)
        });
        let more: Vec<String> = dependents.map(|package| package.name.clone()).collect();
        if more.is_empty() {
            return Selection::Named(names);
        }
        names.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the packages that changes of the files reach in a workspace in which `top` depends on `base`.
    fn check(files: &[&str]) -> Option<Vec<String>> {
        let package = |name: &str, folder: &str, dependencies: &[&str]| Package {
            name: name.to_owned(),
            folder: folder.to_owned(),
            dependencies: dependencies.iter().map(|&name| name.to_owned()).collect(),
        };
        let packages = [
            package("base", "crates/base", &[]),
            package("base-macros", "crates/base-macros", &[]),
            package("top", "tests/top", &["base"]),
        ];
        let files: Vec<String> = files.iter().map(|&file| file.to_owned()).collect();
        match reached(&packages, &files) {
            Selection::All => None,
            Selection::Named(names) => Some(names.into_iter().collect()),
        }
    }

    #[test]
    fn dependents_are_reached() {
        let names = check(&["crates/base/src/lib.rs"]).expect("some packages");
        assert_eq!(names, ["base", "top"]);
        assert_eq!(check(&["tests/top/x.rs"]).expect("one"), ["top"]);
        assert_eq!(
            check(&["crates/base-macros/a"]).expect("one"),
            ["base-macros"]
        );
    }

    #[test]
    fn shared_files_reach_their_readers() {
        assert_eq!(check(&["schema/errata.toml"]), None);
        let names = check(&["README.md", "LICENSE-MIT"]).expect("some packages");
        assert_eq!(names, ["mcp-exact-tests-docs"]);
        assert_eq!(check(&[]).expect("none"), Vec::<String>::new());
    }

    /// The packages that read files of others exist, and so does every file of the list.
    #[test]
    fn readers_exist() {
        let root = crate::workspace_root();
        let packages = packages(&root).expect("the workspace");
        for (start, readers) in READERS {
            assert!(root.join(start).exists(), "{start}");
            for reader in *readers {
                assert!(
                    packages.iter().any(|package| package.name == *reader),
                    "{reader}"
                );
            }
        }
    }
}
