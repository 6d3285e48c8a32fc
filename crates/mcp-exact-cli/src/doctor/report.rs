//! Violations that the doctor has found, without duplicates, each with the revisions in which it was found, and what it was found
//! in.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;
use serde_json::Value;

use crate::conversation::Breach;
use crate::output::{Painter, Style};
use crate::rules::{Level, Rule};
use crate::text::{Text, Untrusted, text};

/// A rule in a revision: the revision, and the id of the rule.
pub type RuleInRevision = (&'static str, &'static str);

/// Page that says how to repair what the doctor finds; the id of a rule is the anchor of its section.
const REPAIRS: &str = "https://github.com/mcp-exact/mcp-exact/blob/main/docs/repairs.md";

/// Maximum number of tools that a line names.
const NAMED_TOOLS: usize = 5;

/// Maximum number of characters that are shown of a message.
const SHOWN_CHARS: usize = 160;

/// Violations that were found in one server, without duplicates.
#[derive(Debug, Default)]
pub struct Report {
    /// Violations by level, id of the rule, and description.
    findings: BTreeMap<(Level, &'static str, String), Finding>,
    /// Number of messages that were sent to the server as checks.
    pub checks: usize,
    /// Rules that the server was examined by.
    examined: BTreeMap<RuleInRevision, &'static Rule>,
    /// Tools that the server lists, in its order.
    tools: Vec<ListedTool>,
    /// Names of the tools that were called.
    called: HashSet<String>,
    /// True if the server has answered with a list of tools.
    pub has_tools: bool,
}

/// Tool of the examined server.
#[derive(Debug)]
struct ListedTool {
    name: String,
    /// Value of `--call` that calls it.
    example: String,
}

/// What a violation was found in.
#[derive(Debug, Clone, Default)]
pub struct Evidence {
    /// Name of the tool, prompt or resource, such as "tool `echo`".
    pub subject: Option<String>,
    /// Text of the message.
    pub message: Option<String>,
    /// Lines that the server wrote last to standard error, if it has ended.
    pub last_words: Vec<String>,
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
    /// Lines that the server wrote last to standard error.
    #[serde(rename = "lastWords", skip_serializing_if = "<[_]>::is_empty")]
    last_words: &'a [String],
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

    /// Adds rules that the server is examined by in a revision.
    pub fn examine(&mut self, revision: &'static str, rules: &[&'static Rule]) {
        let rules = rules.iter().copied();
        self.examined
            .extend(rules.map(|rule| ((revision, rule.id), rule)));
    }

    /// Returns the rules that the server was examined by, in each revision, with their findings.
    pub fn examined(&self) -> BTreeMap<RuleInRevision, Vec<&Finding>> {
        let keys = self.examined.keys();
        let mut all: BTreeMap<_, Vec<&Finding>> = keys.map(|key| (*key, Vec::new())).collect();
        for finding in self.findings() {
            for revision in &finding.revisions {
                let key = (*revision, finding.rule.id);
                all.entry(key).or_default().push(finding);
            }
        }
        all
    }

    /// Adds the tools that the server lists.
    pub fn add_tools(&mut self, tools: &[Value]) {
        self.has_tools = true;
        for tool in tools {
            let name = tool["name"].as_str().unwrap_or_default();
            if !self.tools.iter().any(|known| known.name == name) {
                self.tools.push(ListedTool {
                    name: name.to_owned(),
                    example: example_call(name, &tool["inputSchema"]),
                });
            }
        }
    }

    /// Returns the names of the tools that the server lists.
    pub fn tool_names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    /// Records that a tool was called.
    pub fn add_call(&mut self, name: &str) {
        self.called.insert(name.to_owned());
    }

    /// Returns the names of the tools that were not called.
    pub fn tools_not_called(&self) -> Vec<&str> {
        let is_called = |name: &&str| self.called.contains(*name);
        self.tool_names().filter(|name| !is_called(name)).collect()
    }

    /// Returns a line about the tools that were not called, and how to call them; `None` if all were.
    pub fn not_called_line(&self) -> Option<String> {
        let names = self.tools_not_called();
        let first = names.first()?;
        let example = self.tools.iter().find(|tool| tool.name == **first)?;
        let mut line = names[..names.len().min(NAMED_TOOLS)].join(", ");
        if names.len() > NAMED_TOOLS {
            line.push_str(&format!(" and {} more", names.len() - NAMED_TOOLS));
        }
        line.push_str(&format!(" (give --call '{}')", example.example));
        Some(line)
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
            last_words: &finding.evidence.last_words,
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
    /// Returns true if the finding decides the exit code; `is_strict` is true if violations of SHOULD do, too.
    pub fn is_failure(&self, is_strict: bool) -> bool {
        match self.rule.level {
            Level::Must => true,
            Level::Should => is_strict,
            Level::Note => false,
        }
    }

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
        if !self.evidence.last_words.is_empty() {
            line.push(&"    its last words:\n".into());
        }
        for words in &self.evidence.last_words {
            let words = painter.paint(Style::Faint, Untrusted(words));
            line.push(&text!("      {}\n", words));
        }
        line
    }

    /// Returns the finding as lines without colours: what was found, the message, and the last words of the server.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("- {}{}", self.words, self.subject_suffix())];
        lines.extend(self.evidence.message.as_deref().map(str::to_owned));
        lines.extend(self.last_words());
        lines
    }

    /// Returns the last words of the server as lines with a heading; nothing if there are none.
    pub fn last_words(&self) -> impl Iterator<Item = String> {
        let words = &self.evidence.last_words;
        let heading = (!words.is_empty()).then(|| "its last words:".to_owned());
        heading.into_iter().chain(words.iter().cloned())
    }

    /// Returns the tool, prompt or resource, as the end of a sentence; empty if there is none.
    pub fn subject_suffix(&self) -> String {
        let subject = self.evidence.subject.as_deref();
        subject.map_or_else(String::new, |subject| format!(", {subject}"))
    }

    /// Returns the URL of the page of the specification that states the rule, in the newest revision with the violation.
    pub fn page_url(&self) -> String {
        let newest = self.revisions.last().copied().unwrap_or_default();
        let spec = mcp_exact_revisions::find(newest);
        spec.map(|spec| self.rule.url(spec)).unwrap_or_default()
    }

    /// Returns the URL of the section that says how to repair it.
    pub fn repair_url(&self) -> String {
        format!("{REPAIRS}#{}", anchor(self.rule.id))
    }
}

/// Returns the value of `--call` that calls a tool with its required arguments, for which values are to be written.
fn example_call(name: &str, schema: &Value) -> String {
    let required = schema["required"].as_array().into_iter().flatten();
    let names: Vec<String> = required.map(|name| format!("{name}:…")).collect();
    if names.is_empty() {
        return name.to_owned();
    }
    format!("{name}={{{}}}", names.join(","))
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
    use serde_json::json;

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
                ..Evidence::default()
            };
            report.add(revision, &Breach::new(&rules::PING, "wrong"), evidence);
        }
        let text = report.to_text(Painter(false));
        let expected = "  - wrong, tool `a` (2024-11-05, 2025-11-25, 3 times)\n    xxx";
        assert!(text.as_str().contains(expected), "{text}");
        assert!(text.as_str().len() < 700, "{text}");
    }

    /// Tools that were not called are named once, the first ones of many, with what calls the first.
    #[test]
    fn tools_that_were_not_called_are_named() {
        let mut report = Report::default();
        assert_eq!(report.not_called_line(), None);
        let tool = |name: &str| json!({"name": name, "inputSchema": {"required": ["a", "b"]}});
        for _ in 0..2 {
            report.add_tools(&[tool("one"), tool("two")]);
        }
        report.add_call("one");
        let expected = r#"two (give --call 'two={"a":…,"b":…}')"#;
        assert_eq!(report.not_called_line().as_deref(), Some(expected));
        report.add_tools(&["3", "4", "5", "6", "7"].map(tool));
        let line = report.not_called_line().expect("a line");
        assert!(line.starts_with("two, 3, 4, 5, 6 and 1 more"), "{line}");
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
            assert!(is_rule, "{heading} is not a rule");
        }
    }
}
