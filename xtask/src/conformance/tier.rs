//! `tier-check` of the suite: the score of an SDK, from its own count of the scored scenarios of all revisions.
//!
//! Requests of the suite to GitHub are answered by a local stub (`tests/conformance/github.mjs`), and the responses
//! are not used.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::requirements::REVISIONS;
use super::suite::{Suite, client_command};
use crate::interop::process;

/// Timeout of all scenarios.
const TIER_CHECK_TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Timeout of one client, in milliseconds.
const CLIENT_TIMEOUT: &str = "60000";
/// Name of the published repository.
const REPOSITORY: &str = "mcp-exact/mcp-exact";

/// Score of one side.
#[derive(Debug, Deserialize)]
struct SideScore {
    /// Number of passed scored scenarios.
    passed: usize,
    /// Number of scored scenarios.
    total: usize,
    /// Results of the scenarios.
    details: Vec<ScenarioScore>,
    /// Reason why the side could not be measured.
    error: Option<String>,
}

/// Result of one scenario.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScenarioScore {
    /// Name of the scenario.
    scenario: String,
    /// True if the scenario passed.
    passed: bool,
    /// Reason for not scoring the scenario.
    #[serde(default)]
    not_scored_reason: Option<String>,
}

/// Scores in the output of `tier-check`.
#[derive(Debug, Deserialize)]
struct Checks {
    /// Score of the server.
    conformance: SideScore,
    /// Score of the client.
    client_conformance: SideScore,
}

/// Output of `tier-check`.
#[derive(Debug, Deserialize)]
struct Scorecard {
    checks: Checks,
}

impl SideScore {
    /// Returns the score line.
    ///
    /// # Errors
    /// Returns an error if the side could not be measured, or a scored scenario fails that is not about authorization.
    fn score_line(&self, name: &str) -> anyhow::Result<String> {
        if let Some(error) = &self.error {
            bail!("tier-check did not measure the {name}: {error}");
        }
        let scored = self
            .details
            .iter()
            .filter(|one| one.not_scored_reason.is_none());
        let failed: Vec<&str> = scored
            .filter(|one| !one.passed && !one.scenario.starts_with("auth/"))
            .map(|one| &*one.scenario)
            .collect();
        if failed.is_empty() {
            Ok(format!("{name}: {} of {}", self.passed, self.total))
        } else {
            bail!("tier-check: the {name} fails {}", failed.join(", "))
        }
    }
}

/// Runs `tier-check` for the example server and client; returns a line for the report.
pub(super) fn run(
    root: &Path,
    suite: &Suite,
    server: &str,
    client: &Path,
) -> anyhow::Result<String> {
    let folder = suite.results().join("tier-check");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    let stub = root.join("tests").join("conformance").join("github.mjs");
    let mut command = Command::new(suite.install_node());
    command
        .arg("--import")
        .arg(stub)
        .arg(suite.script())
        .args(["tier-check", "--repo", REPOSITORY, "--token", "none"])
        .args(["--conformance-server-url", server])
        .args(["--client-cmd", client_command(client)?])
        .args(["--requirements", &REVISIONS.join(",")])
        .args(["--timeout", CLIENT_TIMEOUT, "--output", "json"]);
    let ended = process::run(&mut command, TIER_CHECK_TIMEOUT, &folder.join("suite"))?;
    let scorecard = ended.stdout.find('{').map(|start| &ended.stdout[start..]);
    let scorecard: Scorecard = serde_json::from_str(scorecard.unwrap_or_default())
        .with_context(|| format!("tier-check printed no score; see {}", folder.display()))?;
    let Checks {
        conformance,
        client_conformance,
    } = scorecard.checks;
    Ok(format!(
        "tier-check, scored scenarios of all revisions: {}, {}",
        conformance.score_line("server")?,
        client_conformance.score_line("client")?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a score with one failed scenario.
    fn side(failed: &str) -> SideScore {
        let text = format!(
            r#"{{"passed":1,"total":2,"details":[{{"scenario":"ping","passed":true}},
            {{"scenario":"{failed}","passed":false}},
            {{"scenario":"extra","passed":false,"notScoredReason":"extension"}}]}}"#
        );
        serde_json::from_str(&text).expect("a score")
    }

    /// A failed scored scenario is an error, except a scenario about authorization.
    #[test]
    fn failures_without_authorization_are_errors() {
        assert_eq!(
            side("auth/basic").score_line("client").expect("known"),
            "client: 1 of 2"
        );
        let error = side("tools-list")
            .score_line("server")
            .expect_err("it fails");
        assert_eq!(error.to_string(), "tier-check: the server fails tools-list");
    }
}
