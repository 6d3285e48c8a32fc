//! Packages of Cargo, as cargo describes and builds them.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::terminal::print_to_stderr;
use crate::text::{Untrusted, text};

/// Package with a program.
pub struct Package {
    /// Folder of the package.
    folder: PathBuf,
    pub version: String,
    /// Name of the program.
    pub program: String,
    /// Folder of what cargo builds.
    pub target: PathBuf,
}

/// Output of `cargo metadata`.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Described>,
    target_directory: PathBuf,
}

/// Package in the output of `cargo metadata`.
#[derive(Deserialize)]
struct Described {
    version: String,
    manifest_path: PathBuf,
    targets: Vec<Target>,
}

/// Target of a package.
#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Line that `cargo build` prints for an artefact.
#[derive(Deserialize)]
struct Artefact {
    target: Option<Target>,
    executable: Option<PathBuf>,
}

impl Package {
    /// Reads the package in a folder; `program` is its program, which is required if it has several.
    ///
    /// # Errors
    /// Returns an error if cargo cannot be run, or the folder has no package with this program.
    pub fn read(folder: &Path, program: Option<&str>) -> anyhow::Result<Self> {
        let mut command = cargo(folder);
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        let output = output(&mut command)?;
        let metadata: Metadata =
            serde_json::from_slice(&output).context("cannot read the output of cargo metadata")?;
        let is_here = |package: &Described| {
            let path = package.manifest_path.canonicalize();
            path.is_ok_and(|path| path.parent() == Some(folder))
        };
        let Some(package) = metadata.packages.into_iter().find(is_here) else {
            bail!(
                "{} is the folder of no package; name one by --path",
                folder.display()
            );
        };
        let programs: Vec<String> = package
            .targets
            .into_iter()
            .filter(|target| target.kind.iter().any(|kind| kind == "bin"))
            .map(|target| target.name)
            .collect();
        let program = match (program, programs.as_slice()) {
            (Some(name), programs) if programs.iter().any(|known| known == name) => name.to_owned(),
            (None, [only]) => only.clone(),
            (None, []) => bail!("the package has no program"),
            (None, several) => bail!(
                "the package has several programs; name one by --bin: {}",
                several.join(", ")
            ),
            (Some(name), known) => bail!(
                "the package has no program `{name}`; it has: {}",
                known.join(", ")
            ),
        };
        Ok(Self {
            folder: folder.to_owned(),
            version: package.version,
            program,
            target: metadata.target_directory,
        })
    }

    /// Builds the release of the program; returns its path.
    ///
    /// # Errors
    /// Returns an error if it does not build.
    pub fn build(&self) -> anyhow::Result<PathBuf> {
        let mut command = cargo(&self.folder);
        command.args(["build", "--release", "--bin", &self.program]);
        command.arg("--message-format=json-render-diagnostics");
        let output = output(&mut command)?;
        let lines = output.split(|byte| *byte == b'\n');
        let artefacts = lines.filter_map(|line| serde_json::from_slice::<Artefact>(line).ok());
        let is_program = |target: &Target| target.name == self.program;
        artefacts
            .filter(|artefact| artefact.target.as_ref().is_some_and(is_program))
            .find_map(|artefact| artefact.executable)
            .with_context(|| format!("cargo has built no program `{}`", self.program))
    }
}

/// Returns the command that runs cargo in a folder.
fn cargo(folder: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Runs a command; returns what it prints. Its lines on standard error are shown.
fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot run cargo, which builds the package; install Rust: https://rustup.rs")?;
    let stderr = child.stderr.take().context("cargo has no standard error")?;
    let lines = thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            print_to_stderr(&text!("{}", Untrusted(line.trim_end())));
        }
    });
    let output = child.wait_with_output()?;
    // The last lines come before the error; a thread that has panicked has said so.
    let _ = lines.join();
    if !output.status.success() {
        bail!("cargo failed ({})", output.status);
    }
    Ok(output.stdout)
}
