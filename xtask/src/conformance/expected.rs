//! Scenarios that are expected to fail, each with a reason, from `tests/conformance/expected-failures.toml`.
//!
//! To keep the entries current, an entry is an error if no requirement set names its scenario, or if its scenario
//! passes.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::requirements::Requirement;

/// Entries of `expected-failures.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expected {
    /// Expected failures.
    #[serde(default)]
    failure: Vec<Failure>,
}

/// Scenario that is expected to fail.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Failure {
    /// Tested side: `server` or `client`.
    side: String,
    /// Revision of the suite.
    revision: String,
    /// Name of the scenario.
    scenario: String,
    /// Revision of the server behind the gateway, if only this pair of revisions fails; `None` for a failure without
    /// the gateway.
    server: Option<String>,
    /// Reason of the failure.
    reason: String,
}

impl Failure {
    /// Returns true if the entry names this scenario, side and revision.
    fn matches_requirement(&self, requirement: &Requirement) -> bool {
        self.side == requirement.side.name()
            && self.revision == requirement.revision
            && self.scenario == requirement.scenario
    }
}

impl Expected {
    /// Reads the entries of the file `path`.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Returns the reason why a scenario is expected to fail; `None` if it must pass.
    pub(super) fn expected_failure_reason(&self, requirement: &Requirement) -> Option<&str> {
        let mut all = self.failure.iter();
        all.find(|failure| failure.server.is_none() && failure.matches_requirement(requirement))
            .map(|failure| &*failure.reason)
    }

    /// Returns the reason why a scenario is expected to fail through the gateway, with a server of the revision behind it;
    /// `None` if it must pass.
    pub(super) fn reason_through_gateway(
        &self,
        requirement: &Requirement,
        upstream: &str,
    ) -> Option<&str> {
        let mut all = self.failure.iter();
        let is_through = |failure: &&Failure| {
            let server = failure.server.as_deref();
            failure.matches_requirement(requirement)
                && server.is_none_or(|server| server == upstream)
        };
        all.find(is_through).map(|failure| &*failure.reason)
    }

    /// Checks that every entry names a scenario of the run.
    pub(super) fn check_names(&self, all: &[Requirement]) -> anyhow::Result<()> {
        for failure in &self.failure {
            if !all
                .iter()
                .any(|requirement| failure.matches_requirement(requirement))
            {
                bail!(
                    "{} scenario {:?} of {} is not run; remove it from the expected failures",
                    failure.side,
                    failure.scenario,
                    failure.revision
                );
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::requirements::Side;
    use super::*;

    /// Returns a server scenario of 2026-07-28 with this name.
    fn requirement(scenario: &str) -> Requirement {
        Requirement {
            side: Side::Server,
            revision: "2026-07-28".into(),
            scenario: scenario.into(),
            not_scored: None,
        }
    }

    /// An entry applies only to the side, revision and scenario that it names; an entry for a scenario that is not run
    /// is an error.
    #[test]
    fn entries_are_matched_exactly() {
        let text = "[[failure]]\nside = \"server\"\nrevision = \"2026-07-28\"\nscenario = \"a\"\nreason = \"b\"\n";
        let expected: Expected = toml::from_str(text).expect("entries");
        assert_eq!(
            expected.expected_failure_reason(&requirement("a")),
            Some("b")
        );
        assert_eq!(expected.expected_failure_reason(&requirement("c")), None);
        expected
            .check_names(&[requirement("a")])
            .expect("it is known");
        let error = expected
            .check_names(&[requirement("c")])
            .expect_err("no such scenario");
        assert_eq!(
            error.to_string(),
            "server scenario \"a\" of 2026-07-28 is not run; remove it from the expected failures"
        );
    }
}
