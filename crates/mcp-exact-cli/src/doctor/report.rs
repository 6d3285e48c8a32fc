//! Violations that the doctor has found, without duplicates, each with the revisions in which it was found, and what it was found
//! in.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::conversation::Breach;
use crate::output::{Painter, Style};
use crate::rules::{Level, Rule};
use crate::text::{Text, Untrusted, text};

/// Page that says how to repair what the doctor finds; the id of a rule is the anchor of its section.
const REPAIRS: &str = "https://github.com/mcp-exact/mcp-exact/blob/main/docs/repairs.md";

/// Maximum number of characters that are shown of a message.
const SHOWN_CHARS: usize = 160;

/// Violations that were found in one server, without duplicates.
#[derive(Debug, Default)]
pub struct Report {
    /// Violations by level, id of the rule, and description.
    findings: BTreeMap<(Level, &'static str, String), Finding>,
    /// Number of messages that were sent to the server as checks.
    pub checks: usize,
}

/// What a violation was found in.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Name of the tool, prompt or resource, such as "tool `echo`".
    pub subject: Option<String>,
    /// Text of the message.
    pub message: Option<String>,
}

/// Violation of a rule, with the revisions in which the violation was found.
#[derive(Debug)]
pub struct Finding {
    /// The violated rule.
    pub rule: &'static Rule,
    /// Description of the violation.
    pub words: String,
    /// Revisions in which the violation was found, from the oldest to the newest.
    revisions: Vec<&'static str>,
    /// What it was found in first.
    evidence: Evidence,
    /// Number of occurrences in all revisions.
    count: usize,
}

/// JSON form of a finding.
#[derive(Serialize)]
pub struct FindingLine<'a> {
    /// Id of the violated rule.
    rule: &'a str,
    /// Requirement level of the rule: `MUST`, `SHOULD`, or `NOTE` for what is no rule.
    level: &'static str,
    /// Revisions in which the violation was found.
    revisions: &'a [&'static str],
    /// Sentence of the specification that states the rule.
    sentence: &'a str,
    /// URL of the page of the specification that contains the sentence.
    page: String,
    /// URL of what repairs it.
    repair: String,
    /// Description of the violation.
    found: &'a str,
    /// Tool, prompt or resource that it was found in.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    /// Message that it was found in.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    /// Number of occurrences in all revisions.
    count: usize,
}

impl Report {
    /// Adds a violation that was found in a revision, or counts it if the report already contains the same violation.
    pub fn add(&mut self, revision: &'static str, breach: &Breach, evidence: Evidence) {
        let words = breach.to_line();
        let key = (breach.rule.level, breach.rule.id, words.clone());
        let finding = self.findings.entry(key).or_insert_with(|| Finding {
            rule: breach.rule,
            words,
            revisions: Vec::new(),
            evidence,
            count: 0,
        });
        finding.count += 1;
        if let Err(place) = finding.revisions.binary_search(&revision) {
            finding.revisions.insert(place, revision);
        }
    }

    /// Returns the number of different violations of rules of a level.
    pub fn count(&self, level: Level) -> usize {
        self.findings
            .keys()
            .filter(|(found, ..)| *found == level)
            .count()
    }

    /// Returns the findings: first those of a MUST, then those of a SHOULD, then notes.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.findings.values()
    }

    /// Returns the findings in their JSON form.
    pub fn to_lines(&self) -> Vec<FindingLine<'_>> {
        let lines = self.findings().map(|finding| FindingLine {
            rule: finding.rule.id,
            level: finding.level(),
            revisions: &finding.revisions,
            sentence: finding.rule.sentence,
            page: finding.page_url(),
            repair: finding.repair_url(),
            found: &finding.words,
            subject: finding.evidence.subject.as_deref(),
            message: finding.evidence.message.as_deref(),
            count: finding.count,
        });
        lines.collect()
    }

    /// Formats the findings as text.
    pub fn to_text(&self, painter: Painter) -> Text {
        let mut text = Text::default();
        let mut before = None;
        for finding in self.findings() {
            let rule = finding.rule;
            if before.replace(rule.id) != Some(rule.id) {
                let style = match rule.level {
                    Level::Must => Style::Red,
                    Level::Should | Level::Note => Style::Yellow,
                };
                let level = painter.paint(style, finding.level());
                let sentence = painter.paint(Style::Faint, rule.sentence);
                let id = painter.paint(Style::Bold, rule.id);
                text.push(&text!("\n{} {}\n  “{}”\n", level, id, sentence));
                text.push(&text!("  {}\n", Untrusted(&finding.page_url())));
                text.push(&text!("  repair: {}\n", Untrusted(&finding.repair_url())));
            }
            text.push(&finding.to_text(painter));
        }
        text
    }
}

impl Finding {
    /// Returns the keyword of the requirement level.
    pub fn level(&self) -> &'static str {
        match self.rule.level {
            Level::Must => "MUST",
            Level::Should => "SHOULD",
            Level::Note => "NOTE",
        }
    }

    /// Formats the finding as one line, and a second one with the message.
    fn to_text(&self, painter: Painter) -> Text {
        let times = match self.count {
            1 => Text::default(),
            count => text!(", {} times", count),
        };
        let mut line = text!(
            "  - {}{} ({}{})\n",
            Untrusted(&self.words),
            Untrusted(&self.subject_suffix()),
            Untrusted(&self.revisions.join(", ")),
            times
        );
        if let Some(message) = &self.evidence.message {
            let message = Untrusted(message).cut(SHOWN_CHARS);
            line.push(&text!("    {}\n", painter.paint(Style::Faint, message)));
        }
        line
    }

    /// Returns the tool, prompt or resource, as the end of a sentence; empty if there is none.
    pub fn subject_suffix(&self) -> String {
        let subject = self.evidence.subject.as_deref();
        subject.map_or_else(String::new, |subject| format!(", {subject}"))
    }

    /// Returns the URL of the page of the specification that states the rule, in the newest revision with the violation.
    fn page_url(&self) -> String {
        let newest = self.revisions.last().copied().unwrap_or_default();
        let spec = mcp_exact_revisions::find(newest);
        spec.map(|spec| self.rule.url(spec)).unwrap_or_default()
    }

    /// Returns the URL of the section that says how to repair it.
    pub fn repair_url(&self) -> String {
        format!("{REPAIRS}#{}", anchor(self.rule.id))
    }
}

/// Returns the anchor of a heading with the id of a rule, as GitHub and mdBook write it.
pub fn anchor(id: &str) -> String {
    let letters = id
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-');
    letters.collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules;

    /// Revisions are in their order, a violation is listed once, and the message is cut.
    #[test]
    fn findings_are_listed_once() {
        let mut report = Report::default();
        for revision in ["2025-11-25", "2024-11-05", "2025-11-25"] {
            let evidence = Evidence {
                subject: Some("tool `a`".to_owned()),
                message: Some("x".repeat(1000)),
            };
            report.add(revision, &Breach::new(&rules::PING, "wrong"), evidence);
        }
        let text = report.to_text(Painter(false));
        let expected = "  - wrong, tool `a` (2024-11-05, 2025-11-25, 3 times)\n    xxx";
        assert!(text.as_str().contains(expected), "{text}");
        assert!(text.as_str().len() < 700, "{text}");
    }

    /// Every rule has a section that says how to repair a violation of it.
    #[test]
    fn every_rule_has_a_repair() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/repairs.md");
        // The page is part of the repository and not of the package.
        let Ok(page) = std::fs::read_to_string(path) else {
            return;
        };
        let headings: Vec<&str> = page
            .lines()
            .filter_map(|line| line.strip_prefix("### "))
            .collect();
        for rule in rules::ALL {
            assert!(headings.contains(&rule.id), "{} has no section", rule.id);
        }
        for heading in headings {
            let is_rule = rules::ALL.iter().any(|rule| rule.id == heading);
            assert!(is_rule, "{heading} is no rule");
        }
    }
}
