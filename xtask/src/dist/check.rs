//! Installs the packed npm packages, wheel and archive in empty folders, and runs the program from each of them with neither cargo nor
//! rustc on the PATH: `--version`, `doctor` on real servers, and the end by a signal.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::{Packed, TARGETS, VERSION, npm, npm_platform, python_tool};
use crate::interop::install::run_quietly;
use crate::{conformance, interop};

/// Peers of `cargo xtask interop`, and the command that starts a server of each in its folder.
const SERVERS: [(&str, &[&str]); 3] = [
    ("everything-2026.8.31", &["node", "programs/everything.mjs"]),
    (
        "typescript-2.4.0",
        &["node", "programs/server_v2.mjs", "serve"],
    ),
    ("python-2.3.0", &["bin/python", "programs/server_v2.py"]),
];
/// Version of uv whose `uvx` runs the wheel.
const UV: &str = "0.13.9";
/// Time that the program and its server have to end.
const END: Duration = Duration::from_secs(2);

/// Installs the packages and runs the program of each.
pub(super) fn run(root: &Path, packed: &Packed) -> anyhow::Result<()> {
    if cfg!(windows) {
        bail!("the servers are installed in the ways of Unix; run this on Linux or macOS");
    }
    let mut servers = Vec::new();
    for (peer, command) in SERVERS {
        servers.push((peer, server_command(&interop::folder(root, peer)?, command)));
    }
    let folder = tempfile::tempdir().context("cannot create a folder")?;
    let installed = Installed {
        npm: install_npm(folder.path(), packed)?,
        wheel: install_wheel(folder.path(), packed)?,
        path: path_without_rust()?,
    };
    check_uvx(root, folder.path(), packed, &installed)?;
    let of_program: Vec<Answer> = servers
        .iter()
        .map(|(_, server)| installed.examine(Command::new(&packed.program), server))
        .collect::<Result<_, _>>()?;
    let codes: Vec<_> = of_program.iter().map(|answer| answer.code).collect();
    ensure!(
        codes.iter().all(|code| matches!(code, Some(0 | 1))),
        "doctor failed: {of_program:?}"
    );
    let check = |name: &str, command: &dyn Fn() -> Command| -> anyhow::Result<()> {
        installed.check_version(name, command())?;
        for ((peer, server), expected) in servers.iter().zip(&of_program) {
            let answer = installed.examine(command(), server)?;
            ensure!(
                answer == *expected,
                "doctor on {peer} by {name} gave {answer:?}, and the program itself {expected:?}"
            );
        }
        println!(
            "{name}: mcp-exact {VERSION}; doctor on {} servers, exit codes {codes:?}",
            servers.len()
        );
        Ok(())
    };
    check("wheel", &|| installed.by_wheel())?;
    // The version of Node.js decides how the script starts the program.
    let pinned = conformance::install_node(root)?;
    for node in [None, pinned.parent().filter(|parent| parent.is_absolute())] {
        let version = installed.node_version(node)?;
        check(&format!("npx on node {version}"), &|| {
            installed.by_npx(node)
        })?;
        installed.check_signal(node, &servers[0].1)?;
        println!("npm on node {version}: SIGTERM ends the program and its server");
    }
    check_action(
        root,
        folder.path(),
        packed,
        &installed,
        (&servers[0].1, &of_program[0]),
    )
}

/// Returns the command of a server, with paths in the folder of its peer.
fn server_command(folder: &Path, command: &[&str]) -> Vec<OsString> {
    let word = |word: &&str| {
        if word.contains('/') {
            folder.join(word).into_os_string()
        } else {
            OsString::from(*word)
        }
    };
    command.iter().map(word).collect()
}

/// Returns the folders of the PATH without those that have cargo or rustc.
fn path_without_rust() -> anyhow::Result<Vec<PathBuf>> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path)
        .filter(|folder| {
            !["cargo", "rustc"]
                .iter()
                .any(|name| folder.join(name).exists())
        })
        .collect();
    for program in ["node", "npx", "sh"] {
        ensure!(
            folders.iter().any(|folder| folder.join(program).exists()),
            "{program} is not on the PATH, except beside cargo or rustc; install it elsewhere"
        );
    }
    Ok(folders)
}

/// Installs the npm packages; returns their folder. Those of other platforms are not there, as from a registry that has none for them.
fn install_npm(folder: &Path, packed: &Packed) -> anyhow::Result<PathBuf> {
    let folder = folder.join("npm");
    fs::create_dir(&folder)?;
    fs::write(folder.join("package.json"), "{\"private\": true}")?;
    let mut install = npm();
    install
        .current_dir(&folder)
        .args(["install", "--offline", "--no-audit", "--no-fund"]);
    run_quietly(install.args(&packed.npm))?;
    Ok(folder)
}

/// Installs the wheel; returns the path of its program.
fn install_wheel(folder: &Path, packed: &Packed) -> anyhow::Result<PathBuf> {
    let venv = folder.join("venv");
    let mut python = Command::new("python3");
    run_quietly(python.args(["-m", "venv", "--without-pip"]).arg(&venv))?;
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "--python"])
        .arg(venv.join("bin").join("python"));
    pip.args([
        "install",
        "--quiet",
        "--no-index",
        "--disable-pip-version-check",
    ]);
    run_quietly(pip.arg(&packed.wheel))?;
    Ok(venv.join("bin").join("mcp-exact"))
}

/// Runs the wheel by `uvx`, which installs it for this one run.
fn check_uvx(
    root: &Path,
    folder: &Path,
    packed: &Packed,
    installed: &Installed,
) -> anyhow::Result<()> {
    let uv = python_tool(root, "uv", UV)?;
    let mut uvx = Command::new(uv);
    uvx.args(["tool", "run", "--offline", "--no-config", "--python"]);
    uvx.arg(installed.wheel.with_file_name("python"));
    uvx.arg("--from").arg(&packed.wheel).arg("mcp-exact");
    uvx.env("UV_CACHE_DIR", folder.join("uv"));
    installed.check_version("uvx", uvx)?;
    println!("uvx: mcp-exact {VERSION}");
    Ok(())
}

/// Runs the script of the action `doctor` with the archive in the place of a release.
fn check_action(
    root: &Path,
    folder: &Path,
    packed: &Packed,
    installed: &Installed,
    (server, expected): (&[OsString], &Answer),
) -> anyhow::Result<()> {
    let target = TARGETS.iter().find(|target| {
        npm_platform(target).is_ok_and(|(os, cpu)| packed.platform == format!("{os}-{cpu}"))
    });
    let target = target.context("the platform has no release")?;
    let release = folder
        .join("releases")
        .join("download")
        .join(format!("v{VERSION}"));
    fs::create_dir_all(&release)?;
    fs::copy(
        &packed.archive,
        release.join(format!("mcp-exact-{target}.tar.gz")),
    )?;
    let words: Vec<_> = server.iter().map(|word| word.to_string_lossy()).collect();
    let (os, cpu) = packed.platform.split_once('-').context("a platform")?;
    let mut script = Command::new("bash");
    script.arg(root.join(".github/actions/doctor/doctor.sh"));
    script.env(
        "MCP_EXACT_RELEASES",
        format!("file://{}", folder.join("releases").display()),
    );
    script.env("SERVER", format!("'{}'", words.join("' '")));
    script
        .env("VERSION", VERSION)
        .env("ARGUMENTS", "--junit \"the report.xml\"");
    script.env("RUNNER_OS", if os == "darwin" { "macOS" } else { "Linux" });
    script.env("RUNNER_ARCH", cpu.to_uppercase());
    script
        .current_dir(folder)
        .env("PATH", env::join_paths(&installed.path)?);
    let answer = Answer::of(script)?;
    ensure!(
        answer.code == expected.code
            && answer.stdout.starts_with(&*expected.stdout)
            && folder.join("the report.xml").exists(),
        "the action gave {answer:?}, and the program itself {expected:?}"
    );
    println!("action: exit code {:?}", answer.code);
    Ok(())
}

/// What a program has printed, and how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    /// Exit code, if no signal has ended the program.
    code: Option<i32>,
    /// Standard output.
    stdout: String,
}

impl Answer {
    /// Runs a command.
    fn of(mut command: Command) -> anyhow::Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let output = command
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output();
        let output = output.with_context(|| format!("cannot start {program}"))?;
        Ok(Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        })
    }
}

/// What was installed.
struct Installed {
    /// Folder with the npm packages.
    npm: PathBuf,
    /// Program from the wheel.
    wheel: PathBuf,
    /// Folders of the PATH.
    path: Vec<PathBuf>,
}

impl Installed {
    /// Returns the command that runs the program from the npm packages, by Node.js from a folder or from the PATH.
    fn by_npx(&self, node: Option<&Path>) -> Command {
        let mut command = Command::new("npx");
        command
            .current_dir(&self.npm)
            .args(["--no-install", "mcp-exact"]);
        self.with_node(&mut command, node);
        command
    }

    /// Returns the command that runs the program from the wheel.
    fn by_wheel(&self) -> Command {
        Command::new(&self.wheel)
    }

    /// Sets the PATH of a command, with the folder of a version of Node.js before the others.
    fn with_node(&self, command: &mut Command, node: Option<&Path>) {
        let folders = node
            .into_iter()
            .chain(self.path.iter().map(PathBuf::as_path));
        // The folders come from a PATH, so that they can be joined.
        command.env("PATH", env::join_paths(folders).unwrap_or_default());
    }

    /// Returns the version of Node.js.
    fn node_version(&self, node: Option<&Path>) -> anyhow::Result<String> {
        let mut command = Command::new("node");
        command.arg("--version");
        self.with_node(&mut command, node);
        Ok(Answer::of(command)?.stdout.trim().to_owned())
    }

    /// Checks that a program prints the version of the packages.
    fn check_version(&self, name: &str, mut command: Command) -> anyhow::Result<()> {
        let expected = Answer {
            code: Some(0),
            stdout: format!("mcp-exact {VERSION}\n"),
        };
        self.set_path(&mut command);
        command.arg("--version");
        let answer = Answer::of(command)?;
        ensure!(answer == expected, "`--version` by {name} gave {answer:?}");
        Ok(())
    }

    /// Examines a server by a program.
    fn examine(&self, mut command: Command, server: &[OsString]) -> anyhow::Result<Answer> {
        self.set_path(&mut command);
        Answer::of({
            command.arg("doctor").args(server);
            command
        })
    }

    /// Sets the PATH of a command that has none of its own.
    fn set_path(&self, command: &mut Command) {
        if command.get_envs().all(|(name, _)| name != "PATH") {
            self.with_node(command, None);
        }
    }

    /// Sends SIGTERM to the script of npm during a call, and checks that the program and its server end.
    fn check_signal(&self, node: Option<&Path>, server: &[OsString]) -> anyhow::Result<()> {
        let ids = self.npm.join("ids");
        let mut command =
            Command::new(self.npm.join("node_modules").join(".bin").join("mcp-exact"));
        self.with_node(&mut command, node);
        command.args([
            "call",
            "trigger-long-running-operation",
            "duration=60",
            "steps=120",
        ]);
        command
            .args(["--", "sh", "-c", "echo $$ $PPID > \"$0\"; exec \"$@\""])
            .arg(&ids)
            .args(server);
        let child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
        let mut child = child.context("cannot start the script of npm")?;
        let lines = BufReader::new(child.stderr.take().context("no standard error")?).lines();
        let mut lines = lines.map_while(Result::ok);
        let begun = lines.find(|line| line.contains("progress: 1 "));
        begun.context("the call made no progress")?;
        thread::spawn(move || lines.for_each(drop));
        let ids = fs::read_to_string(&ids).context("the server has written no ids")?;
        run_quietly(Command::new("kill").arg(child.id().to_string()))?;
        let end = Instant::now() + END;
        let mut status = None;
        while Instant::now() < end {
            status = child.try_wait()?;
            if status.is_some() && !ids.split_whitespace().any(is_running) {
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let running: Vec<_> = ids.split_whitespace().filter(|id| is_running(id)).collect();
        let code = status.and_then(|status| status.code());
        if code.is_none() || !running.is_empty() {
            // Nothing stays behind a failure; the processes may have ended meanwhile.
            let _ = child.kill();
            let _ = Command::new("kill").arg("-KILL").args(&running).output();
        }
        ensure!(
            code == Some(143) && running.is_empty(),
            "two seconds after SIGTERM, the script's end is {status:?}, and of server and program ({ids:?}) {running:?} still run"
        );
        Ok(())
    }
}

/// Returns true if a process runs, which one that waits to be reaped does not.
fn is_running(id: &str) -> bool {
    let output = Command::new("ps").args(["-o", "stat=", "-p", id]).output();
    let state = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    state.is_ok_and(|state| !state.is_empty() && !state.starts_with('Z'))
}
