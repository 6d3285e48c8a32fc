//! Frozen requirement sets of the suite: the scenarios that a revision requires of servers and of clients.
//!
//! Parses the files `requirements/<revision>.yaml` of the package. The files use a small subset of YAML: sections,
//! lists of names, and lists of records with one member per line; other syntax is an error.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use clap::ValueEnum;

/// Revisions whose requirement sets are tested.
pub(super) const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Role that a scenario tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Side {
    /// The scenario tests a server; the suite is the client.
    Server,
    /// The scenario tests a client; the suite is the server.
    Client,
}

impl Side {
    /// Returns the name of the suite's command for the side, which is also its section in a requirement set.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

/// Scenario that is run in one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requirement {
    /// Role that the scenario tests.
    pub(super) side: Side,
    /// Revision of the requirement set.
    pub(super) revision: String,
    /// Name of the scenario.
    pub(super) scenario: String,
    /// Reason why the suite does not score the scenario; `None` if the scenario is scored.
    pub(super) not_scored: Option<String>,
}

/// Scenarios of clients with 2025-03-26 servers, which no requirement set names.
const BACKWARD_COMPATIBILITY: [&str; 2] = [
    "auth/2025-03-26-oauth-metadata-backcompat",
    "auth/2025-03-26-oauth-endpoint-fallback",
];

/// Scenarios of the extension of skills (SEP-2640), which no requirement set names.
const SKILLS: [(Side, &str); 7] = [
    (Side::Server, "sep-2640-skills-enumeration"),
    (Side::Server, "sep-2640-skills-manifest"),
    (Side::Server, "sep-2640-skills-directory"),
    (Side::Client, "sep-2640-client-no-prefetch"),
    (Side::Client, "sep-2640-client-verify-digest"),
    (Side::Client, "sep-2640-client-verify-size"),
    (Side::Client, "sep-2640-client-verify-frontmatter"),
];

/// Reads the requirement sets of several revisions.
///
/// # Errors
/// Returns an error if a file cannot be read, or has a form that is unknown.
pub(super) fn read_all(folder: &Path, revisions: &[&str]) -> anyhow::Result<Vec<Requirement>> {
    let mut all = Vec::new();
    for revision in revisions {
        let path = folder.join(format!("{revision}.yaml"));
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let found =
            parse(&text, revision).with_context(|| format!("cannot read {}", path.display()))?;
        all.extend(found);
    }
    for (revision, scenario) in revisions.first().into_iter().flat_map(|revision| {
        BACKWARD_COMPATIBILITY
            .iter()
            .map(move |scenario| (revision, scenario))
    }) {
        all.push(Requirement {
            side: Side::Client,
            revision: (*revision).to_owned(),
            scenario: (*scenario).to_owned(),
            not_scored: Some("backwards compatibility".to_owned()),
        });
    }
    for revision in revisions {
        all.extend(SKILLS.map(|(side, scenario)| Requirement {
            side,
            revision: (*revision).to_owned(),
            scenario: scenario.to_owned(),
            not_scored: Some("extension".to_owned()),
        }));
    }
    all.sort_by_key(|requirement| (requirement.side, requirement.revision.clone()));
    Ok(all)
}

/// Partially parsed record of a scenario that is not scored.
#[derive(Default)]
struct NotScored {
    /// Name of the scenario.
    scenario: String,
    /// Side; `None` if the record is for both sides.
    side: Option<Side>,
    /// Reason for not scoring the scenario.
    reason: String,
}

/// Parses a requirement set.
fn parse(text: &str, revision: &str) -> anyhow::Result<Vec<Requirement>> {
    let mut section = "";
    let mut found = Vec::new();
    let mut others: Vec<NotScored> = Vec::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        match (section, indent, content.strip_prefix("- ")) {
            (_, 0, None) => section = content.trim_end_matches(':'),
            ("server" | "client", 2, Some(scenario)) => found.push(Requirement {
                side: parse_side(section)?,
                revision: revision.to_owned(),
                scenario: scenario.to_owned(),
                not_scored: None,
            }),
            ("not_scored", 2, Some(member)) => {
                others.push(NotScored::default());
                set_member(&mut others, member)?;
            }
            ("not_scored", 4, None) => set_member(&mut others, content)?,
            // A string that is folded over several lines.
            ("not_scored", 6, _) => {}
            _ => bail!("the line {content:?} in section {section:?} is unknown; adapt this reader"),
        }
    }
    for other in others {
        let known = other.side.is_some() && !other.reason.is_empty();
        let (true, Some(side)) = (known, other.side) else {
            bail!(
                "{:?} has no leg or no reason; adapt this reader",
                other.scenario
            );
        };
        found.push(Requirement {
            side,
            revision: revision.to_owned(),
            scenario: other.scenario,
            not_scored: Some(other.reason),
        });
    }
    for side in [Side::Server, Side::Client] {
        if !found.iter().any(|requirement| requirement.side == side) {
            bail!(
                "the section {:?} has no scenario; adapt this reader",
                side.name()
            );
        }
    }
    Ok(found)
}

/// Sets a member of the last record of `others`.
fn set_member(others: &mut [NotScored], member: &str) -> anyhow::Result<()> {
    let (name, value) = member
        .split_once(':')
        .with_context(|| format!("the line {member:?} is not a member; adapt this reader"))?;
    let last = others
        .last_mut()
        .with_context(|| format!("the member {member:?} is in no record; adapt this reader"))?;
    match name {
        "scenario" => value.trim().clone_into(&mut last.scenario),
        "leg" => last.side = Some(parse_side(value.trim())?),
        "reason" => value.trim().clone_into(&mut last.reason),
        "note" => {}
        _ => bail!("the member {name:?} is unknown; adapt this reader"),
    }
    Ok(())
}

/// Parses the name of a side.
fn parse_side(name: &str) -> anyhow::Result<Side> {
    match name {
        "server" => Ok(Side::Server),
        "client" => Ok(Side::Client),
        _ => bail!("{name:?} is neither server nor client; adapt this reader"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A requirement set may contain lists of names and lists of records.
    #[test]
    fn both_list_forms_are_parsed() {
        let text = "# head\n\nserver:\n  - ping\nclient:\n  - auth/basic\nnot_scored:\n  - scenario: tasks\n    leg: server\n    reason: extension\n    note: >-\n      folded: text\n";
        let found = parse(text, "2026-07-28").expect("a set");
        let names: Vec<_> = found
            .iter()
            .map(|one| (one.side, &*one.scenario, one.not_scored.as_deref()))
            .collect();
        assert_eq!(
            names,
            [
                (Side::Server, "ping", None),
                (Side::Client, "auth/basic", None),
                (Side::Server, "tasks", Some("extension")),
            ]
        );
    }

    /// Syntax outside of the supported subset of YAML is an error.
    #[test]
    fn unknown_syntax_is_refused() {
        for (text, problem) in [
            ("server:\n  - a\n", "the section \"client\" has no scenario"),
            ("server:\n    - a\n", "the line \"- a\" in section"),
            ("not_scored:\n  - scenario: a\n", "has no leg or no reason"),
            (
                "not_scored:\n  - colour: a\n",
                "the member \"colour\" is unknown",
            ),
        ] {
            let error = parse(text, "2026-07-28").expect_err("it is refused");
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
}
