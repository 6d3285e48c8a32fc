//! Installs a pinned peer into its own folder and returns the commands that start its executables. Skips the
//! installation if the pins are unchanged. Requires python3 with pip, npm, or cargo.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow, bail};

use super::peers::{Language, Mode, Peer, Transport};

/// File with the hash of the installed packages; written after the installation.
const STAMP_FILE: &str = "installed.sha256";

/// An installed peer.
pub(super) struct InstalledPeer {
    /// Interpreter of the executables; `None` for compiled ones.
    interpreter: Option<PathBuf>,
    /// Folder of the executables.
    programs: PathBuf,
}

impl InstalledPeer {
    /// Returns the command that starts an executable in a mode.
    pub(super) fn command(&self, mode: &Mode) -> Vec<OsString> {
        let mut command = self.program(&mode.program);
        command.extend(mode.mode.as_ref().map(OsString::from));
        command
    }

    /// Returns the command that starts an executable.
    pub(super) fn program(&self, name: &str) -> Vec<OsString> {
        let program = match &self.interpreter {
            Some(_) => self.programs.join(name),
            None => self.programs.join(name).with_extension(""),
        };
        let mut command: Vec<OsString> = self.interpreter.iter().map(OsString::from).collect();
        command.push(program.into_os_string());
        command
    }

    /// Returns the command that starts a server in a mode, on a transport.
    pub(super) fn server(&self, mode: &Mode, transport: Transport) -> Vec<OsString> {
        let mut command = self.command(mode);
        if transport != Transport::Stdio {
            command.push(format!("--{}", transport.name()).into());
        }
        command
    }
}

/// Installs a peer if necessary, and updates its executables.
pub(super) fn install(
    source: &Path,
    target: &Path,
    peer: &Peer,
    offline: bool,
) -> anyhow::Result<InstalledPeer> {
    let folder = target.join(&peer.name);
    let pins = pins(source, peer);
    let found = fs::read_to_string(folder.join(STAMP_FILE)).unwrap_or_default();
    let refusal = || {
        anyhow!(
            "{} is not installed, or its pins changed; run without --offline once",
            peer.name
        )
    };
    if offline && found.is_empty() {
        return Err(refusal());
    }
    let stamp = hash_pins(&pins, peer.language)?;
    if found != stamp {
        if offline {
            return Err(refusal());
        }
        println!("installing {}", peer.name);
        if folder.exists() {
            fs::remove_dir_all(&folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        match peer.language {
            Language::Python => install_python(&folder, &pins[0])?,
            Language::Rust => copy_pins(&folder, &pins)?,
            Language::Typescript => install_typescript(&folder, &pins)?,
        }
        fs::write(folder.join(STAMP_FILE), stamp)?;
    }
    let programs = folder.join("programs");
    copy(&source.join(peer.language.program_folder()), &programs)?;
    Ok(match peer.language {
        Language::Python => InstalledPeer {
            interpreter: Some(folder.join("bin").join("python")),
            programs,
        },
        Language::Rust => InstalledPeer {
            interpreter: None,
            programs: build(&folder, offline)?,
        },
        Language::Typescript => InstalledPeer {
            interpreter: Some(PathBuf::from("node")),
            programs,
        },
    })
}

/// Returns the files that pin the installed packages.
fn pins(source: &Path, peer: &Peer) -> Vec<PathBuf> {
    let pins = source.join("pins");
    match peer.language {
        Language::Python => vec![pins.join(format!("{}.txt", peer.name))],
        Language::Rust => ["Cargo.toml", "Cargo.lock"]
            .map(|file| pins.join(&peer.name).join(file))
            .to_vec(),
        Language::Typescript => ["package.json", "package-lock.json"]
            .map(|file| pins.join(&peer.name).join(file))
            .to_vec(),
    }
}

/// Returns the hash of the pins and of the interpreter's version: a change of either causes a new installation.
fn hash_pins(pins: &[PathBuf], language: Language) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    for pin in pins {
        bytes.extend(fs::read(pin).with_context(|| format!("cannot read {}", pin.display()))?);
    }
    let interpreter = match language {
        Language::Python => "python3",
        Language::Rust => "rustc",
        Language::Typescript => "node",
    };
    let version = Command::new(interpreter)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot start {interpreter}; install it"))?;
    bytes.extend(version.stdout);
    Ok(codegen::sha256(&bytes))
}

/// Installs Python packages. The pins are complete, so that pip resolves nothing, and are restricted to wheels, so that
/// nothing is built.
pub(crate) fn install_python(folder: &Path, requirements: &Path) -> anyhow::Result<()> {
    run_quietly(
        Command::new("python3")
            .args(["-m", "venv", "--without-pip"])
            .arg(folder),
    )?;
    run_quietly(
        Command::new("python3")
            .args(["-m", "pip", "--python"])
            .arg(folder.join("bin").join("python"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(["--no-deps", "--only-binary", ":all:", "--requirement"])
            .arg(requirements),
    )
}

/// Builds the executables of a peer and returns their folder. Cargo rebuilds only changed crates.
fn build(folder: &Path, offline: bool) -> anyhow::Result<PathBuf> {
    let target = folder.join("target");
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["build", "--quiet", "--locked"]);
    command
        .arg("--manifest-path")
        .arg(folder.join("Cargo.toml"));
    command.arg("--target-dir").arg(&target);
    if offline {
        command.arg("--offline");
    }
    run_quietly(&mut command)?;
    Ok(target.join("debug"))
}

/// Copies the pins into the folder of the installed peer.
fn copy_pins(folder: &Path, pins: &[PathBuf]) -> anyhow::Result<()> {
    for pin in pins {
        let name = pin.file_name().context("a pin without a name")?;
        fs::copy(pin, folder.join(name))?;
    }
    Ok(())
}

/// Installs npm packages from `package.json` and its lock.
pub(crate) fn install_typescript(folder: &Path, pins: &[PathBuf]) -> anyhow::Result<()> {
    copy_pins(folder, pins)?;
    run_quietly(
        Command::new("npm")
            .current_dir(folder)
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args(["--loglevel", "error"]),
    )
}

/// Runs a command; prints its output only if the command fails.
pub(crate) fn run_quietly(command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .with_context(|| format!("cannot start {program}; install it"))?;
    if !output.status.success() {
        bail!(
            "{program} failed ({}):\n{}{}",
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(())
}

/// Copies a file next to the installed packages, because node searches for packages in the folders above the importing
/// file.
fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot remove {}", to.display()))?;
    }
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::peers::Peers;
    use super::*;

    /// Returns the folder with the pins and executables of the peers.
    fn source() -> PathBuf {
        crate::workspace_root().join("tests").join("interop")
    }

    /// Pins contain no registry URLs, and the pins of Python packages are exact versions.
    #[test]
    fn pins_are_exact_without_registry() {
        let source = source();
        let peers = Peers::read(&source).expect("the file is right");
        for peer in peers.select_peers(&[]).expect("all of them") {
            for pin in pins(&source, peer) {
                let text = fs::read_to_string(&pin).expect("a pin for each peer");
                // Cargo's name for crates.io, independent of mirrors.
                let text =
                    text.replace("registry+https://github.com/rust-lang/crates.io-index", "");
                assert!(!text.contains("://"), "{}", pin.display());
                if peer.language == Language::Python {
                    let lines = text.lines().filter(|line| !line.starts_with('#'));
                    for line in lines {
                        assert!(line.contains("=="), "{}: {line}", pin.display());
                    }
                }
            }
        }
    }

    /// With `offline`, a peer that is not installed is an error, and nothing is written.
    #[test]
    fn nothing_is_installed_offline() {
        let source = source();
        let peers = Peers::read(&source).expect("the file is right");
        let peer = peers
            .select_peers(&["python-1.8.1".into()])
            .expect("it is there")[0];
        let target = tempfile::tempdir().expect("a folder");
        let error = install(&source, target.path(), peer, true).err();
        assert_eq!(
            error.expect("it is not installed").to_string(),
            "python-1.8.1 is not installed, or its pins changed; run without --offline once"
        );
        let entries = fs::read_dir(target.path()).expect("it is still there");
        assert_eq!(entries.count(), 0);
    }
}
