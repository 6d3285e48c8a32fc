//! `cargo xtask nightly oracle`: compares the table-driven conversions with the typed implementation that they
//! replaced.
//!
//! Clones the repository at the last commit of that implementation into `target/oracle`, records seeded conversions
//! there, and compares them with the current ones. Recordings are created in every run, because their compressed size
//! of 10 MB is too large for the repository.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

/// Last commit of the typed implementation.
const TYPED_COMMIT: &str = "ec0cc61dc448";
/// Seeds of the recordings, with about 200,000 conversions each.
const SEEDS: [&str; 2] = ["20261122", "20261123"];
/// Cargo arguments that run the recording executable.
const RECORDER_ARGUMENTS: [&str; 8] = [
    "run",
    "--release",
    "--locked",
    "--package",
    "mcp-exact-tests-convert",
    "--example",
    "oracle",
    "--",
];

/// Records and compares conversions.
///
/// # Errors
/// Returns an error if the commit is missing, as in a shallow clone, an executable does not build, or a difference is
/// not documented.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let place = target.join("oracle");
    let copy = place.join("repository");
    if !copy.exists() {
        clone_repository(root, &copy)?;
    }
    let mut recordings = Vec::new();
    for seed in SEEDS {
        let recording = place.join(format!("{seed}.jsonl"));
        let file = File::create(&recording)
            .with_context(|| format!("cannot write {}", recording.display()))?;
        let mut record = recorder_command(&copy, &target);
        record.args(["record", seed]).stdout(file);
        run_to_success(&mut record, "the recording failed")?;
        recordings.push(recording);
    }
    let mut check = recorder_command(root, &target);
    check.arg("check").args(&recordings);
    run_to_success(&mut check, "conversions differ from the recorded ones")
}

/// Clones the repository at the commit of the typed implementation.
fn clone_repository(root: &Path, copy: &Path) -> anyhow::Result<()> {
    let mut clone = Command::new("git");
    clone.args(["clone", "--quiet", "--no-checkout", "--shared"]);
    run_to_success(clone.arg(root).arg(copy), "cannot clone the repository")?;
    let mut checkout = Command::new("git");
    checkout.arg("-C").arg(copy);
    checkout.args(["checkout", "--quiet", "--detach", TYPED_COMMIT]);
    let checked_out = run_to_success(&mut checkout, "cannot check the commit out");
    if checked_out.is_err() {
        std::fs::remove_dir_all(copy)?;
        bail!("{TYPED_COMMIT} is not in this clone; `git fetch --unshallow` brings it");
    }
    Ok(())
}

/// Returns the command for the recording executable in a copy of the workspace. Both copies share a target directory
/// and its dependencies.
fn recorder_command(workspace: &Path, target: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(workspace).args(RECORDER_ARGUMENTS);
    command.env("CARGO_TARGET_DIR", target);
    command
}

/// Runs a command; returns the error `failure` if the command fails.
fn run_to_success(command: &mut Command, failure: &str) -> anyhow::Result<()> {
    let program = command.get_program().display().to_string();
    let status = command
        .status()
        .with_context(|| format!("cannot start {program}"))?;
    ensure!(status.success(), "{failure} ({status})");
    Ok(())
}
