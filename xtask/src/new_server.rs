//! `cargo xtask new-server`: writes a server by `mcp-exact new` outside of the workspace, tests it with the crates of the workspace,
//! examines it over both transports, packs it, and starts what is in the bundle.
//!
//! The release is not optimised, so that one quick build serves tests, doctor and bundle.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, ensure};
use serde_json::Value;

use crate::examples;

/// Name of the server.
const NAME: &str = "weather";
/// Its tools, in the order of its list.
const TOOLS: [&str; 2] = ["store", "find"];

/// Writes, tests, examines and packs a server.
///
/// # Errors
/// Returns an error if a step fails, or the bundle has not the program and its tools.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let program = examples::build_program(root, "mcp-exact-cli", "mcp-exact")?;
    let start = Instant::now();
    let scratch = tempfile::tempdir().context("cannot create a folder")?;
    let server = NewServer {
        program,
        folder: scratch.path().join(NAME),
        target: root.join("target/new-server"),
    };
    write_config(root, scratch.path(), &server.target)?;
    server.run_program(scratch.path(), &["new", NAME, "--owner", "ada"])?;
    // The versions that the workspace is tested with.
    fs::copy(root.join("Cargo.lock"), server.folder.join("Cargo.lock"))?;
    server.cargo(&["fmt", "--check"])?;
    server.cargo(&["test", "--release"])?;
    let built = server.target.join("release").join(NAME);
    let built = built.to_str().context("the path is text")?;
    server.run_program(scratch.path(), &["doctor", "--strict", built])?;
    server.examine_over_http(scratch.path(), built)?;
    server.run_program(&server.folder, &["bundle"])?;
    server.check_bundle(scratch.path())?;
    println!("new-server: {} s", start.elapsed().as_secs());
    Ok(())
}

/// Writes a configuration of cargo for all packages below `folder`, in which the crates of the workspace replace those of crates.io.
fn write_config(root: &Path, folder: &Path, target: &Path) -> anyhow::Result<()> {
    let config = format!(
        "[patch.crates-io]\nmcp-exact = {{ path = {:?} }}\n[build]\ntarget-dir = {:?}\n[profile.release]\nopt-level = 0\n",
        root.join("crates/mcp-exact").display().to_string(),
        target.display().to_string(),
    );
    fs::create_dir(folder.join(".cargo"))?;
    Ok(fs::write(folder.join(".cargo/config.toml"), config)?)
}

/// New server, and the program that has written it.
struct NewServer {
    /// The program `mcp-exact`.
    program: PathBuf,
    /// Folder of the package.
    folder: PathBuf,
    /// Folder of what cargo builds of it.
    target: PathBuf,
}

impl NewServer {
    /// Runs `mcp-exact` in a folder.
    fn run_program(&self, folder: &Path, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(&self.program);
        command.current_dir(folder).args(arguments);
        run_to_success(command, &format!("mcp-exact {}", arguments.join(" ")))
    }

    /// Runs cargo in the folder of the package.
    fn cargo(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(&self.folder).args(arguments);
        run_to_success(command, &format!("cargo {}", arguments.join(" ")))
    }

    /// Starts the server over HTTP, and examines it.
    fn examine_over_http(&self, folder: &Path, built: &str) -> anyhow::Result<()> {
        let mut server = Command::new(built)
            .args(["--http", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the server")?;
        let stderr = server.stderr.take().context("no standard error")?;
        let mut line = String::new();
        let examined = BufReader::new(stderr)
            .read_line(&mut line)
            .context("cannot read the address")
            .and_then(|_| {
                let url = line.trim().strip_prefix("listening on ");
                let url = url.with_context(|| format!("`{line}` has no address"))?;
                self.run_program(folder, &["doctor", "--strict", url])
            });
        server
            .kill()
            .and_then(|()| server.wait())
            .context("cannot end the server")?;
        examined
    }

    /// Unpacks the bundle, and compares it with `server.json` and with the server.
    fn check_bundle(&self, folder: &Path) -> anyhow::Result<()> {
        let bundle = self.folder.join(format!("{NAME}.mcpb"));
        let bytes = fs::read(&bundle).context("there is no bundle")?;
        let sha256 = codegen::sha256(&bytes);
        let server = read_json(&self.folder.join("server.json"))?;
        let package = &server["packages"][0];
        ensure!(
            package["fileSha256"] == *sha256,
            "{package} has not the checksum {sha256}"
        );
        let unpacked = folder.join("unpacked");
        let mut archive = zip::ZipArchive::new(fs::File::open(&bundle)?)?;
        archive.extract(&unpacked)?;
        let manifest = read_json(&unpacked.join("manifest.json"))?;
        let tools = manifest["tools"].as_array().into_iter().flatten();
        let names: Vec<_> = tools.filter_map(|tool| tool["name"].as_str()).collect();
        ensure!(names == TOOLS, "the manifest has the tools {names:?}");
        let command = manifest["server"]["mcp_config"]["command"].as_str();
        let command = command.context("the manifest has no command")?;
        let command = command.replace("${__dirname}", &unpacked.display().to_string());
        self.run_program(folder, &["call", "find", "word=x", "--", &command])
    }
}

/// Reads a file of JSON.
fn read_json(path: &Path) -> anyhow::Result<Value> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display()))
}

/// Runs a command; returns an error that contains `what` if it fails.
fn run_to_success(mut command: Command, what: &str) -> anyhow::Result<()> {
    println!("== {what}");
    command.env_remove("CARGO_TARGET_DIR").stdin(Stdio::null());
    let status = command
        .status()
        .with_context(|| format!("cannot run {what}"))?;
    ensure!(status.success(), "{what} failed ({status})");
    Ok(())
}
