//! Violations that the doctor has found, without duplicates, each with the revisions in which it was found.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::conversation::Breach;
use crate::output::{Painter, Style, without_control_characters};
use crate::rules::{Level, Rule};

/// Violations that were found in one server, without duplicates.
#[derive(Debug, Default)]
pub struct Report {
    /// Violations by level, id of the rule, and description.
    findings: BTreeMap<(Level, &'static str, String), Finding>,
    /// Number of messages that were sent to the server as checks.
    pub checks: usize,
}

/// Violation of a rule, with the revisions in which the violation was found.
#[derive(Debug)]
struct Finding {
    /// The violated rule.
    rule: &'static Rule,
    /// Revisions in which the violation was found.
    revisions: Vec<&'static str>,
    /// Number of occurrences in all revisions.
    count: usize,
}

/// JSON form of a finding.
#[derive(Serialize)]
pub struct FindingLine<'a> {
    /// Id of the violated rule.
    rule: &'a str,
    /// Requirement level of the rule: `MUST` or `SHOULD`.
    level: &'static str,
    /// Revisions in which the violation was found.
    revisions: &'a [&'static str],
    /// Sentence of the specification that states the rule.
    sentence: &'a str,
    /// URL of the page of the specification that contains the sentence.
    page: String,
    /// Description of the violation.
    found: &'a str,
    /// Number of occurrences in all revisions.
    count: usize,
}

impl Report {
    /// Adds a violation that was found in a revision, or counts it if the report already contains the same violation.
    pub fn add(&mut self, revision: &'static str, breach: &Breach) {
        let key = (breach.rule.level, breach.rule.id, breach.to_line());
        let finding = self.findings.entry(key).or_insert_with(|| Finding {
            rule: breach.rule,
            revisions: Vec::new(),
            count: 0,
        });
        finding.count += 1;
        if !finding.revisions.contains(&revision) {
            finding.revisions.push(revision);
        }
    }

    /// Returns the number of different violations of rules of a level.
    pub fn count(&self, level: Level) -> usize {
        self.findings
            .keys()
            .filter(|(found, ..)| *found == level)
            .count()
    }

    /// Returns the findings in their JSON form.
    pub fn to_lines(&self) -> Vec<FindingLine<'_>> {
        let lines = self
            .findings
            .iter()
            .map(|((level, id, words), finding)| FindingLine {
                rule: id,
                level: level_name(*level),
                revisions: &finding.revisions,
                sentence: finding.rule.sentence,
                page: page_url(finding),
                found: words,
                count: finding.count,
            });
        lines.collect()
    }

    /// Formats the findings as text; violations of MUST rules precede those of SHOULD rules.
    pub fn to_text(&self, painter: Painter) -> String {
        let mut text = String::new();
        let mut before = None;
        for ((level, id, words), finding) in &self.findings {
            if before.replace((level, id)) != Some((level, id)) {
                let style = match level {
                    Level::Must => Style::Red,
                    Level::Should => Style::Yellow,
                };
                let level = painter.paint(style, level_name(*level));
                let sentence = painter.paint(Style::Faint, finding.rule.sentence);
                _ = writeln!(text, "\n{level} {}", painter.paint(Style::Bold, id));
                _ = writeln!(text, "  “{sentence}”\n  {}", page_url(finding));
            }
            let times = match finding.count {
                1 => String::new(),
                count => format!(", {count} times"),
            };
            let revisions = finding.revisions.join(", ");
            _ = writeln!(
                text,
                "  - {} ({revisions}{times})",
                without_control_characters(words)
            );
        }
        text
    }
}

/// Returns the URL of the page of the specification that states the rule, in the newest revision with the violation.
fn page_url(finding: &Finding) -> String {
    let newest = finding.revisions.iter().max().copied().unwrap_or_default();
    let spec = mcp_exact_revisions::find(newest);
    spec.map(|spec| finding.rule.url(spec)).unwrap_or_default()
}

/// Returns the keyword of a requirement level.
fn level_name(level: Level) -> &'static str {
    match level {
        Level::Must => "MUST",
        Level::Should => "SHOULD",
    }
}
