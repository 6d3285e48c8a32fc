//! Builds a program with cargo in an empty target directory, and measures the CPU time of cargo and its child
//! processes.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Cost of building a program with one library.
#[derive(Debug, Clone)]
pub struct Cost {
    /// Name of the library, from which the name of the program is derived.
    pub library: String,
    /// Number of packages in the dependency tree of the program, including build dependencies.
    pub dependencies: usize,
    /// CPU time of a clean build in the dev profile.
    pub dev: Duration,
    /// CPU time of a clean build in the release profile.
    pub release: Duration,
    /// Size of the stripped release program, in bytes.
    pub size: u64,
}

/// Downloads the sources of all dependencies, so that downloads are not measured.
///
/// # Errors
/// If cargo fails.
pub fn fetch(workspace: &Path) -> Result<(), String> {
    run(cargo(workspace).args(["fetch", "--locked"])).map(drop)
}

/// Builds the program of one library `times` times in the dev profile and in the release profile; returns the minimum
/// cost.
///
/// # Errors
/// If cargo fails or its output is not where it should be.
pub fn cost(workspace: &Path, library: &str, times: u32) -> Result<Cost, String> {
    let package = if library.starts_with("server-") {
        library.to_owned()
    } else {
        format!("parse-{library}")
    };
    let dependencies = dependencies(workspace, &package)?;
    let target = target(workspace).join(library);
    let mut dev = Duration::MAX;
    let mut release = Duration::MAX;
    for _ in 0..times {
        dev = dev.min(clean_build(workspace, &package, &target, &[])?);
        release = release.min(clean_build(workspace, &package, &target, &["--release"])?);
    }
    let program = target
        .join("release")
        .join(format!("{package}{}", std::env::consts::EXE_SUFFIX));
    let size = std::fs::metadata(&program)
        .map_err(|error| format!("cannot read {}: {error}", program.display()))?
        .len();
    remove(&target)?;
    Ok(Cost {
        library: library.to_owned(),
        dependencies,
        dev,
        release,
        size,
    })
}

/// Returns the target directory of the measured builds, within the target directory of the repository.
fn target(workspace: &Path) -> PathBuf {
    workspace.join("../target/bench-compile")
}

/// Removes the target directory and builds a program; returns the CPU time of the build; `more` are further arguments
/// of cargo.
fn clean_build(
    workspace: &Path,
    package: &str,
    target: &Path,
    more: &[&str],
) -> Result<Duration, String> {
    remove(target)?;
    let before = children();
    run(cargo(workspace)
        .args(["build", "--locked", "--offline", "--package", package])
        .args(["--config", "profile.release.strip='symbols'"])
        .arg("--target-dir")
        .arg(target)
        .args(more))?;
    Ok(children().saturating_sub(before))
}

/// Returns the number of packages in the dependency tree of a program.
fn dependencies(workspace: &Path, package: &str) -> Result<usize, String> {
    let tree = run(cargo(workspace)
        .args(["tree", "--locked", "--offline", "--package", package])
        .args([
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--no-dedupe",
            "--format",
            "{p}",
        ]))?;
    let packages: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split(" (").next())
        .collect();
    Ok(packages.len().saturating_sub(1))
}

/// Returns a cargo command without environment settings that would change the build, such as compiler caches.
fn cargo(workspace: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(workspace);
    for variable in [
        "CARGO_TARGET_DIR",
        "RUSTFLAGS",
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WRAPPER",
    ] {
        command.env_remove(variable);
    }
    // Cargo builds path dependencies incrementally by default, but not packages of a registry.
    command.env("CARGO_INCREMENTAL", "0");
    command
}

/// Runs a command; returns its standard output, or an error with its standard error.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("cannot start cargo: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?} failed:\n{words}"));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Removes the target directory, if it exists.
fn remove(target: &Path) -> Result<(), String> {
    match std::fs::remove_dir_all(target) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", target.display()))
        }
        _ => Ok(()),
    }
}

/// Returns the user and system time of all child processes that have ended.
// Neither std nor a small safe crate provides this value.
/// Returns the user and system time of all child processes that have ended.
#[allow(unsafe_code)]
fn children() -> Duration {
    // SAFETY: `rusage` is plain numbers, for which zero is valid, and the pointer is to one of them.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let duration = |time: libc::timeval| {
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let micros = u64::try_from(time.tv_usec).unwrap_or(0);
        Duration::from_secs(seconds) + Duration::from_micros(micros)
    };
    duration(usage.ru_utime) + duration(usage.ru_stime)
}
