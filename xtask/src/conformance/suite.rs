//! Runs a scenario of the suite and reads its verdict; starts the server that server scenarios connect to.
//!
//! Verdicts are read from `checks.json`, because the suite exits with 0 after some failures. Scenarios run one at a
//! time, because concurrent scenarios would exceed their time limits on few cores.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::install::InstalledSuite;
use super::requirements::Requirement;
use crate::interop::process;

/// Timeout of one scenario, including the start of node.
const SCENARIO_TIMEOUT: Duration = Duration::from_secs(120);
/// Timeout of the suite's client, in milliseconds.
const CLIENT_TIMEOUT: &str = "60000";
/// Output of the suite after it killed a client that timed out.
const TIMEOUT_TEXT: &str = "CLIENT TIMED OUT";
/// Output of the suite for a client that exited with an unexpected error.
const CLIENT_FAILURE_TEXT: &str = "CLIENT EXITED WITH ERROR";

/// Peer that a scenario runs against.
#[derive(Debug, Clone, Copy)]
pub(super) enum Peer<'a> {
    /// URL of a server.
    Server(&'a str),
    /// Path of a client executable.
    Client(&'a Path),
}

/// Result of a scenario.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Number of succeeded checks.
    pub(super) passed: usize,
    /// Messages of checks with warnings.
    pub(super) warnings: Vec<String>,
    /// Messages of failed checks.
    pub(super) failures: Vec<String>,
}

impl Verdict {
    /// Returns true if the scenario passed: at least one check succeeded and none failed.
    pub(super) fn is_pass(&self) -> bool {
        self.failures.is_empty() && self.passed > 0
    }
}

/// One entry of `checks.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    /// Name of the check.
    id: String,
    /// Status, such as `SUCCESS`.
    status: String,
    /// Error message of the check.
    #[serde(default)]
    error_message: Option<String>,
}

/// Paths of the suite and of its results.
pub(super) struct Suite {
    /// Paths of the installed suite.
    installed: InstalledSuite,
    /// Folder of the results.
    results: PathBuf,
}

impl Suite {
    pub(super) fn new(installed: InstalledSuite, results: PathBuf) -> Self {
        Self { installed, results }
    }

    pub(super) fn results(&self) -> &Path {
        &self.results
    }

    /// Returns the path of the node executable.
    pub(super) fn install_node(&self) -> &Path {
        &self.installed.node
    }

    pub(super) fn script(&self) -> PathBuf {
        self.installed.script()
    }

    pub(super) fn version(&self) -> anyhow::Result<String> {
        self.installed.version()
    }

    /// Runs a scenario; runs it a second time after a timeout.
    pub(super) fn run(&self, requirement: &Requirement, peer: Peer<'_>) -> anyhow::Result<Verdict> {
        match self.run_once(requirement, peer, "first")? {
            Some(verdict) => Ok(verdict),
            None => Ok(self
                .run_once(requirement, peer, "second")?
                .unwrap_or_else(|| Verdict {
                    failures: vec!["ran out of time twice".to_owned()],
                    ..Verdict::default()
                })),
        }
    }

    /// Runs a scenario once; returns `None` after a timeout. `attempt` is part of the name of the results.
    fn run_once(
        &self,
        requirement: &Requirement,
        peer: Peer<'_>,
        attempt: &str,
    ) -> anyhow::Result<Option<Verdict>> {
        let side = requirement.side.name();
        let folder = self
            .results
            .join(side)
            .join(&requirement.revision)
            .join(&requirement.scenario)
            .join(attempt);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        let mut command = Command::new(&self.installed.node);
        command.arg(self.installed.script()).arg(side);
        match peer {
            Peer::Server(url) => command.args(["--url", url]),
            Peer::Client(program) => command
                .args(["--timeout", CLIENT_TIMEOUT])
                .args(["--command", client_command(program)?]),
        };
        command
            .args(["--scenario", &requirement.scenario])
            .args(["--spec-version", &requirement.revision])
            // Extensions do not belong to a revision: the requirement set states the revision to run them with.
            .arg("--force")
            .arg("--output-dir")
            .arg(&folder);
        let ended = process::run(&mut command, SCENARIO_TIMEOUT, &folder.join("suite"))?;
        let printed = ended.stdout + &ended.stderr;
        if ended.status.is_none() || printed.contains(TIMEOUT_TEXT) {
            return Ok(None);
        }
        let mut verdict = match find_checks_file(&folder)? {
            Some(path) => read_verdict(&path)?,
            None => Verdict {
                failures: vec![format!("no checks; see {}", folder.display())],
                ..Verdict::default()
            },
        };
        if printed.contains(CLIENT_FAILURE_TEXT) {
            verdict
                .failures
                .push("the client ended with an error".to_owned());
        }
        Ok(Some(verdict))
    }
}

/// Returns the command line of a client. The suite splits it at spaces.
pub(super) fn client_command(program: &Path) -> anyhow::Result<&str> {
    let text = program.to_str().unwrap_or_default();
    if text.is_empty() || text.contains(char::is_whitespace) {
        bail!(
            "the suite cannot start {}; build in a folder without spaces in its path",
            program.display()
        );
    }
    Ok(text)
}

/// Finds `checks.json` in a folder and its subfolders; the suite writes one such file per run.
fn find_checks_file(folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name == "checks.json") {
            return Ok(Some(path));
        }
        if path.is_dir()
            && let Some(found) = find_checks_file(&path)?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Reads `checks.json` and returns the result of its scenario.
fn read_verdict(path: &Path) -> anyhow::Result<Verdict> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let checks: Vec<Check> =
        serde_json::from_str(&text).with_context(|| format!("cannot read {}", path.display()))?;
    judge_checks(checks)
}

/// Converts the checks of a scenario to its result.
fn judge_checks(checks: Vec<Check>) -> anyhow::Result<Verdict> {
    let mut verdict = Verdict::default();
    for check in checks {
        let Check {
            id,
            status,
            error_message,
        } = check;
        let message = match error_message {
            Some(message) => format!("{id}: {message}"),
            None => id,
        };
        match status.as_str() {
            "SUCCESS" => verdict.passed += 1,
            "WARNING" => verdict.warnings.push(message),
            "FAILURE" => verdict.failures.push(message),
            "INFO" | "SKIPPED" => {}
            _ => bail!("the status {status:?} of a check is unknown; adapt this reader"),
        }
    }
    Ok(verdict)
}

/// A running server process, which is killed on drop.
pub(super) struct RunningServer {
    /// Process of the server.
    child: Child,
    /// URL of the server.
    url: String,
}

impl RunningServer {
    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts the server on a free port. The first line of the server's standard error is its URL; the other lines are
/// written to the file `log`.
pub(super) fn start(program: &Path, log: &Path) -> anyhow::Result<RunningServer> {
    let mut child = Command::new(program)
        .arg("0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let errors = child.stderr.take().context("the server has no output")?;
    let mut running = RunningServer {
        child,
        url: String::new(),
    };
    let mut errors = BufReader::new(errors);
    errors.read_line(&mut running.url)?;
    running.url.truncate(running.url.trim_end().len());
    if !running.url.starts_with("http://") {
        bail!("the server printed {:?} instead of its URL", running.url);
    }
    let mut log = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    thread::spawn(move || {
        for line in errors.lines().map_while(Result::ok) {
            // The server continues if the log cannot be written.
            let _ = writeln!(log, "{line}");
        }
    });
    Ok(running)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the result of checks with these statuses.
    fn check(statuses: &[&str]) -> anyhow::Result<Verdict> {
        let check = |status: &&str| Check {
            id: "a".into(),
            status: (*status).into(),
            error_message: Some("b".into()),
        };
        judge_checks(statuses.iter().map(check).collect())
    }

    /// A scenario passes if at least one check succeeds and no check fails; warnings and information do not matter.
    #[test]
    fn one_success_without_failure_passes() {
        assert!(
            check(&["SUCCESS", "WARNING", "INFO"])
                .expect("known")
                .is_pass()
        );
        assert!(!check(&["SUCCESS", "FAILURE"]).expect("known").is_pass());
    }

    /// A scenario without successful checks does not pass: in several scenarios, a client that does nothing fails no
    /// check.
    #[test]
    fn scenarios_without_checks_do_not_pass() {
        for statuses in [&[][..], &["INFO"], &["SKIPPED"], &["WARNING"]] {
            assert!(!check(statuses).expect("known").is_pass(), "{statuses:?}");
        }
    }

    /// The description of a failure starts with the name of its check; an unknown status is an error.
    #[test]
    fn failures_name_the_check() {
        assert_eq!(check(&["FAILURE"]).expect("known").failures, ["a: b"]);
        let error = check(&["MAYBE"]).expect_err("unknown").to_string();
        assert!(error.contains("\"MAYBE\""), "{error}");
    }
}
