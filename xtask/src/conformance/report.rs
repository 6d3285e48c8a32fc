//! Report of scenarios and verdicts: terminal output, Markdown page, and exit code.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::bail;

use super::peer::PeerResults;
use super::requirements::{REVISIONS, Requirement, Side};
use super::suite::Verdict;

/// Scenario in one revision, with its result.
pub(super) struct Row {
    /// Scenario that must pass in one revision.
    requirement: Requirement,
    /// Result of the scenario.
    verdict: Verdict,
    /// Reason why the scenario is expected to fail.
    expected: Option<String>,
}

impl Row {
    pub(super) fn new(requirement: &Requirement, verdict: Verdict, expected: Option<&str>) -> Self {
        Self {
            requirement: requirement.clone(),
            verdict,
            expected: expected.map(str::to_owned),
        }
    }

    /// Returns true if a scenario passed although it was expected to fail, or failed although it must pass.
    fn is_unexpected(&self) -> bool {
        self.verdict.is_pass() == self.expected.is_some()
    }

    /// Returns the outcome as it is printed in the terminal.
    fn outcome_name(&self) -> &'static str {
        match (self.verdict.is_pass(), &self.expected) {
            (true, None) => "pass",
            (true, Some(_)) => "PASS (expected to fail)",
            (false, Some(_)) => "fails as expected",
            (false, None) => "FAIL",
        }
    }

    /// Returns the output line of the scenario, followed by its failures and warnings.
    pub(super) fn to_output_line(&self) -> String {
        let Requirement {
            side,
            revision,
            scenario,
            not_scored,
        } = &self.requirement;
        let scored = match not_scored {
            Some(reason) => format!(" (not scored: {reason})"),
            None => String::new(),
        };
        let mut line = format!(
            "{:<8}{revision:<12}{scenario:<50}{}{scored}",
            side.name(),
            self.outcome_name()
        );
        for (kind, messages) in [
            ("failure", &self.verdict.failures),
            ("warning", &self.verdict.warnings),
        ] {
            for message in messages {
                // Writing to a string cannot fail.
                let _ = write!(line, "\n    {kind}: {message}");
            }
        }
        line
    }

    /// Returns the table cell for the documentation: result, number of warnings, and the reason for not scoring.
    fn to_table_cell(&self) -> String {
        let word = if self.verdict.is_pass() {
            "pass"
        } else {
            "**fail**"
        };
        let scored = match &self.requirement.not_scored {
            Some(reason) => format!(" ({reason})"),
            None => String::new(),
        };
        let warnings = match self.verdict.warnings.len() {
            0 => String::new(),
            1 => ", 1 warning".to_owned(),
            number => format!(", {number} warnings"),
        };
        format!("{word}{warnings}{scored}")
    }
}

/// All scenarios of a run.
pub(super) struct Table {
    /// One row for each scenario and revision.
    rows: Vec<Row>,
    /// Recorded results of another library.
    peer: Option<PeerResults>,
    /// Score line of `tier-check`.
    tier: Option<String>,
}

impl Table {
    pub(super) fn new(peer: Option<PeerResults>) -> Self {
        Self {
            rows: Vec::new(),
            peer,
            tier: None,
        }
    }

    /// Sets the score line of `tier-check`.
    pub(super) fn set_tier(&mut self, line: String) {
        self.tier = Some(line);
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Returns the number of scored scenarios that passed, one line per side and revision.
    pub(super) fn summary(&self) -> String {
        let mut lines = Vec::new();
        for side in [Side::Server, Side::Client] {
            for revision in REVISIONS {
                let of_set = |row: &&Row| {
                    row.requirement.side == side && row.requirement.revision == revision
                };
                let (scored, others): (Vec<_>, Vec<_>) = self
                    .rows
                    .iter()
                    .filter(of_set)
                    .partition(|row| row.requirement.not_scored.is_none());
                if scored.is_empty() && others.is_empty() {
                    continue;
                }
                let passed =
                    |rows: &[&Row]| rows.iter().filter(|row| row.verdict.is_pass()).count();
                lines.push(format!(
                    "{} {revision}: {} of {} scored scenarios pass, {} of {} others",
                    side.name(),
                    passed(&scored),
                    scored.len(),
                    passed(&others),
                    others.len()
                ));
                if let Some(peer) = &self.peer {
                    let of = |rows: &[&Row]| {
                        let (passed, all) = peer.count(rows.iter().map(|row| &row.requirement));
                        format!("{passed} of {all}")
                    };
                    lines.push(format!(
                        "{} {revision}, {}: {} scored scenarios pass, {} others",
                        side.name(),
                        peer.name,
                        of(&scored),
                        of(&others)
                    ));
                }
            }
        }
        lines.extend(self.tier.clone());
        lines.join("\n")
    }

    /// Returns the Markdown page for the documentation.
    pub(super) fn to_markdown(&self, version: &str) -> String {
        let mut page = format!(
            "<!-- @generated by `cargo xtask conformance`. Do not edit. -->\n\n# Conformance\n\n\
             Results of the official conformance suite, `@modelcontextprotocol/conformance` {version}, for the examples\n\
             `everything_server` and `everything_client` of `mcp-exact`: every scenario of the frozen requirement sets of\n\
             {}, and the suite's scenarios of backwards compatibility and of skills. A scenario passes when no check fails and\n\
             one at least succeeds. A reason in parentheses says why the suite does not score a scenario.\n\n",
            REVISIONS.join(" and ")
        );
        for line in self.summary().lines() {
            // Writing to a string cannot fail.
            let _ = writeln!(page, "- {line}");
        }
        let mut columns: Vec<String> = REVISIONS.map(str::to_owned).into();
        if let Some(peer) = &self.peer {
            let _ = write!(
                page,
                "\nThe columns of {} are recorded from its own conformance programs and the suite {}.\n",
                peer.name, peer.suite
            );
            columns.extend(REVISIONS.map(|revision| format!("{} {revision}", peer.name)));
        }
        for side in [Side::Server, Side::Client] {
            let _ = write!(
                page,
                "\n## Scenarios for a {}\n\n| scenario | {} |\n|---|{}\n",
                side.name(),
                columns.join(" | "),
                "---|".repeat(columns.len())
            );
            for (scenario, cells) in self.cells_by_scenario(side) {
                let _ = writeln!(page, "| `{scenario}` | {} |", cells.join(" | "));
            }
        }
        let expected: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.expected.is_some())
            .collect();
        if !expected.is_empty() {
            page.push_str("\n## Expected failures\n\n");
        }
        for row in expected {
            let Requirement {
                side,
                revision,
                scenario,
                ..
            } = &row.requirement;
            let reason = row.expected.as_deref().unwrap_or_default();
            let _ = writeln!(page, "- {} {revision} `{scenario}`: {reason}", side.name());
        }
        page
    }

    /// Returns the table cells of each scenario of a side, in alphabetical order.
    fn cells_by_scenario(&self, side: Side) -> BTreeMap<&str, Vec<String>> {
        let mut cells: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for row in &self.rows {
            let requirement = &row.requirement;
            if requirement.side != side {
                continue;
            }
            let width = match self.peer {
                Some(_) => 2 * REVISIONS.len(),
                None => REVISIONS.len(),
            };
            let empty = || vec![String::new(); width];
            let line = cells.entry(&requirement.scenario).or_insert_with(empty);
            let column = REVISIONS
                .iter()
                .position(|revision| *revision == requirement.revision);
            let Some(column) = column else {
                continue;
            };
            line[column] = row.to_table_cell();
            let peer = self.peer.as_ref();
            if let Some(passed) = peer.and_then(|peer| peer.verdict(requirement)) {
                let word = if passed { "pass" } else { "**fail**" };
                line[REVISIONS.len() + column] = word.to_owned();
            }
        }
        cells
    }

    /// Returns an error, for the exit code, if a result differs from the expected one.
    pub(super) fn check_expectations(&self, results: &Path) -> anyhow::Result<()> {
        let (missing, new): (Vec<&Row>, Vec<&Row>) = self
            .rows
            .iter()
            .filter(|row| row.is_unexpected())
            .partition(|row| row.verdict.is_pass());
        match (new.len(), missing.len()) {
            (0, 0) => Ok(()),
            (0, missing) => bail!(
                "{missing} expected failures pass; remove them from tests/conformance/expected-failures.toml"
            ),
            (new, _) => bail!(
                "{new} scenarios fail unexpectedly; what they found is in {}",
                results.display()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a table with one row.
    fn sample_table(passed: usize, expected: Option<&str>) -> Table {
        let requirement = Requirement {
            side: Side::Server,
            revision: REVISIONS[1].into(),
            scenario: "ping".into(),
            not_scored: None,
        };
        let verdict = Verdict {
            passed,
            warnings: vec!["a: b".into()],
            failures: Vec::new(),
        };
        let mut table = Table::new(None);
        table.push(Row::new(&requirement, verdict, expected));
        table
    }

    /// Returns `passed`, or the error of a table with one row.
    fn check_result(passed: usize, expected: Option<&str>) -> String {
        match sample_table(passed, expected).check_expectations(Path::new("results")) {
            Ok(()) => "passed".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    /// A failure that is not expected is an error, and so is an expected failure that passes.
    #[test]
    fn unexpected_results_are_errors() {
        assert_eq!(check_result(1, None), "passed");
        assert_eq!(check_result(0, Some("reason")), "passed");
        assert!(check_result(0, None).starts_with("1 scenarios fail unexpectedly"));
        assert!(check_result(1, Some("reason")).starts_with("1 expected failures pass"));
    }

    /// The page shows the result of each scenario, its warnings, and the reason for an expected failure.
    #[test]
    fn page_shows_every_verdict() {
        let page = sample_table(0, Some("not yet")).to_markdown("1.0");
        assert!(
            page.contains("| `ping` |  | **fail**, 1 warning |"),
            "{page}"
        );
        assert!(
            page.contains("- server 2026-07-28 `ping`: not yet"),
            "{page}"
        );
        assert!(
            page.contains("- server 2026-07-28: 0 of 1 scored scenarios pass, 0 of 0 others"),
            "{page}"
        );
    }
}
