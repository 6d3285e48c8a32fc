//! `cargo xtask package`: packages the crates as they are published, and builds and tests them outside of the
//! workspace.
//!
//! The tests detect crates that work only inside the workspace: files missing in a package, features that another
//! member enables, dependencies without a version.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde::Deserialize;

/// Arguments of `cargo xtask package`.
#[derive(clap::Args)]
pub struct Arguments {
    /// Build and test these packages only; all of them are packaged.
    #[arg(long, short, value_name = "NAME")]
    package: Vec<String>,
    /// Build the packages without testing them.
    #[arg(long)]
    no_test: bool,
    /// Include uncommitted changes in the packages.
    #[arg(long)]
    allow_dirty: bool,
}

/// Output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Package in the output of `cargo metadata`.
#[derive(Deserialize)]
struct Package {
    /// Name of the package.
    name: String,
    /// Version of the package.
    version: String,
    /// Registries that the package may be published to; `None` for all.
    publish: Option<Vec<String>>,
}

impl Package {
    /// Returns true if the package is published; drafts and tests have `publish = false`.
    fn is_published(&self) -> bool {
        self.publish
            .as_ref()
            .is_none_or(|registries| !registries.is_empty())
    }

    /// Returns the name of the folder of the packaged crate.
    fn folder(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }
}

/// Packages, builds and tests the crates.
///
/// # Errors
/// Returns an error if a crate cannot be packaged, does not build, or a test fails.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let packages = published_packages(root)?;
    let mut pack = cargo(root);
    pack.args(["package", "--locked", "--no-verify"]);
    if arguments.allow_dirty {
        pack.arg("--allow-dirty");
    }
    for package in &packages {
        pack.args(["--package", &package.name]);
    }
    run_to_success(pack, "cargo package")?;
    let scratch = tempfile::tempdir().context("cannot create a folder")?;
    let folder = scratch.path();
    for package in &packages {
        let archive = root
            .join("target/package")
            .join(format!("{}.crate", package.folder()));
        let mut unpack = Command::new("tar");
        unpack.arg("-xzf").arg(&archive).arg("-C").arg(folder);
        run_to_success(unpack, "tar")?;
    }
    add_patches(folder, &packages)?;
    let wanted = |package: &&Package| {
        arguments.package.is_empty() || arguments.package.contains(&package.name)
    };
    for package in packages.iter().filter(wanted) {
        let place = folder.join(package.folder());
        println!("== {}", package.folder());
        build(&place, folder, &["build"])?;
        if !arguments.no_test {
            build(&place, folder, &["test", "--lib", "--bins"])?;
        }
    }
    println!("{} crates packaged", packages.len());
    Ok(())
}

/// Returns the published packages of the workspace.
fn published_packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    let output = cargo(root)
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .output()?;
    let metadata: Metadata =
        serde_json::from_slice(&output.stdout).context("cargo metadata failed")?;
    Ok(metadata
        .packages
        .into_iter()
        .filter(Package::is_published)
        .collect())
}

/// Returns the command that runs cargo in a folder.
fn cargo(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder);
    command
}

/// Adds `[patch]` entries, so that the packages find each other as if they were published.
fn add_patches(folder: &Path, packages: &[Package]) -> anyhow::Result<()> {
    let mut config = "[patch.crates-io]\n".to_owned();
    for package in packages {
        let path: PathBuf = folder.join(package.folder());
        config.push_str(&format!(
            "{} = {{ path = {:?} }}\n",
            package.name,
            path.display().to_string()
        ));
    }
    fs::create_dir_all(folder.join(".cargo"))?;
    Ok(fs::write(folder.join(".cargo/config.toml"), config)?)
}

/// Runs cargo in the folder `place` of a packaged crate; a crate without a library runs the tests of its executables
/// instead.
fn build(place: &Path, folder: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    let mut command = cargo(place);
    command
        .args(arguments)
        .arg("--target-dir")
        .arg(folder.join("target"));
    let has_targets = place.join("src/lib.rs").exists() || !arguments.contains(&"--lib");
    if !has_targets {
        // There is no library to test.
        command = cargo(place);
        command
            .args(["test", "--bins", "--target-dir"])
            .arg(folder.join("target"));
    }
    run_to_success(
        command,
        &format!("cargo {} in {}", arguments.join(" "), place.display()),
    )
}

/// Runs a command; returns an error that contains `what` if the command fails.
fn run_to_success(mut command: Command, what: &str) -> anyhow::Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {what}"))?;
    if status.success() {
        Ok(())
    } else {
        bail!("{what} failed")
    }
}
