//! Report about a draft, as Markdown.
//!
//! The input are intermediate representations and the outcome of `schema add` in a copy of the workspace; nothing is read or
//! written here.

use std::collections::BTreeSet;
use std::fmt::Write;

use codegen::ir::{Diff, Ir, RustIr, diff, render};

use super::super::history::{REVISION, Trial};
use super::super::origin::Origin;
use super::super::review::describe_shapes;
use super::super::verify::count_noun;
use super::inherited::Inherited;
use super::rules::{self, RuleChanges};

/// The draft, and where it comes from.
#[derive(Debug, Clone)]
pub struct Draft {
    /// Path or address of the file.
    pub place: String,
    /// SHA-256 hash of the file.
    pub sha256: String,
}

impl Draft {
    /// Describes a draft that was read from `from`, or from the official repository.
    pub fn new(from: Option<&str>, origin: &Origin) -> Self {
        let mut place = from.unwrap_or(&origin.path).to_owned();
        if let Some(commit) = &origin.commit {
            write!(place, ", commit {commit}").expect("strings take everything");
        }
        Self {
            place,
            sha256: codegen::sha256(&origin.bytes),
        }
    }
}

/// Report about a draft.
#[derive(Debug)]
pub struct Report {
    /// The draft.
    draft: Draft,
    /// Identifier of the revision that the draft is compared with.
    newest: String,
    /// What was found.
    finding: Finding,
}

/// Difference between a draft and a revision.
#[derive(Debug)]
enum Finding {
    /// The draft has the bytes of the revision.
    SameBytes,
    /// The draft differs in descriptions and in the order of members alone.
    SameStructure,
    /// The generator refuses the draft.
    Refused(String),
    /// The generator reads the draft.
    Compared(Box<Comparison>),
}

/// Differences of a draft that the generator reads.
#[derive(Debug)]
pub struct Comparison {
    /// Differences from the newest revision.
    diff: Diff,
    /// What changes for the rules of the session.
    rules: RuleChanges,
    /// Points of the review that the newest revision has, too.
    known_shapes: Vec<String>,
    /// Errata and names of the newest revision.
    inherited: Inherited,
    /// Outcome of `schema add`; `None` before it was tried.
    trial: Option<Result<Trial, String>>,
}

impl Comparison {
    /// Records the outcome of `schema add`.
    pub fn set_trial(&mut self, trial: Result<Trial, String>) {
        self.trial = Some(trial);
    }

    /// Returns what a person has to decide or to write, a line each.
    fn to_do(&self) -> Vec<String> {
        let mut lines = Vec::new();
        match &self.trial {
            Some(Err(reason)) => {
                let quoted = quote(reason, 2);
                lines.push(format!("**addition**: `schema add` fails:\n\n{quoted}\n"));
            }
            Some(Ok(trial)) => {
                let refused = trial.review.refused.iter();
                let refused = refused.filter(|line| message_variant(line).is_none());
                lines.extend(refused.map(|line| format!("**conversion**: {line}")));
                let lifecycle = trial.review.changes.iter().skip(1);
                lines.extend(lifecycle.map(|line| format!("**session**: {line}")));
            }
            None => {}
        }
        let rules = self.rules.to_do.iter();
        lines.extend(rules.map(|line| format!("**session**: {line}")));
        lines
    }

    /// Returns what a person should look at although the addition passes, a line each.
    fn to_look_at(&self) -> Vec<String> {
        let Some(Ok(trial)) = &self.trial else {
            return Vec::new();
        };
        let review = &trial.review;
        let shapes = review.shapes.iter();
        let shapes = shapes.filter(|line| !self.known_shapes.contains(line));
        let mut lines: Vec<String> = shapes.cloned().collect();
        let properties = review.properties.iter();
        lines.extend(properties.map(|line| format!("the property {line}")));
        let Inherited {
            errata: applied, ..
        } = &self.inherited;
        let others = review.errata.iter().filter(|id| !applied.contains(id));
        let others: Vec<String> = others.cloned().collect();
        for (ids, words) in [
            (
                applied,
                "fit the draft, and are applied here; name the revision in their `revisions` where the defect is the same",
            ),
            (
                &self.inherited.outdated_errata,
                "of the newest revision find something else in the draft; see whether upstream has corrected the defect",
            ),
            (
                &others,
                "of older revisions fit the draft, and are not applied",
            ),
        ] {
            if !ids.is_empty() {
                lines.push(format!("the errata `{}` {words}", ids.join("`, `")));
            }
        }
        let names = self.inherited.outdated_names.iter();
        lines.extend(names.map(|pointer| {
            format!("the name of `{pointer}` (`schema/names.toml`) finds another schema, and is not applied")
        }));
        lines
    }

    /// Returns what needs no work, a line each.
    fn absorbed(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(Ok(trial)) = &self.trial {
            let seconds = trial.time.as_secs_f64();
            lines.push(format!(
                "`schema add`: {}; the types agree with the schema, and the conversions pass their tests ({seconds:.0} s)",
                trial.review.summary
            ));
            let conversions = trial.review.conversions.iter();
            let types = conversions.filter_map(|line| line.split(", see").next());
            lines.extend(types.map(str::to_owned));
            let refused = trial.review.refused.iter();
            let messages: Vec<&str> = refused.filter_map(|line| message_variant(line)).collect();
            if !messages.is_empty() {
                lines.push(format!(
                    "messages that one side does not know are refused: `{}`",
                    messages.join("`, `")
                ));
            }
        }
        lines.extend(self.rules.automatic.iter().cloned());
        lines
    }
}

impl Report {
    /// Reports a draft with the bytes of a revision.
    pub fn same_bytes(draft: Draft, revision: &str) -> Self {
        Self::new(draft, revision, Finding::SameBytes)
    }

    /// Reports a draft that differs in descriptions alone.
    pub fn same_structure(draft: Draft, newest: &str) -> Self {
        Self::new(draft, newest, Finding::SameStructure)
    }

    /// Reports a draft that the generator refuses.
    pub fn refused(draft: Draft, newest: &str, reason: &str) -> Self {
        Self::new(draft, newest, Finding::Refused(reason.to_owned()))
    }

    /// Compares a draft with the released revisions, oldest first.
    pub(super) fn compared(
        draft: Draft,
        released: &[RustIr],
        ir: &RustIr,
        inherited: Inherited,
    ) -> Self {
        let models: Vec<&Ir> = released.iter().map(|one| &one.ir).collect();
        let newest = released.last().expect("a release");
        let diff = diff(&newest.ir, &ir.ir);
        let comparison = Comparison {
            rules: rules::compare(&models, &ir.ir, &diff),
            known_shapes: describe_shapes(newest),
            diff,
            inherited,
            trial: None,
        };
        Self::new(
            draft,
            &newest.ir.revision,
            Finding::Compared(Box::new(comparison)),
        )
    }

    fn new(draft: Draft, newest: &str, finding: Finding) -> Self {
        Self {
            draft,
            newest: newest.to_owned(),
            finding,
        }
    }

    /// Returns the comparison, if the draft differs and the generator reads it.
    pub fn comparison_mut(&mut self) -> Option<&mut Comparison> {
        match &mut self.finding {
            Finding::Compared(comparison) => Some(comparison),
            _ => None,
        }
    }

    /// Returns true if a person has to decide about something.
    pub fn needs_person(&self) -> bool {
        match &self.finding {
            Finding::SameBytes | Finding::SameStructure => false,
            Finding::Refused(_) => true,
            Finding::Compared(comparison) => !comparison.to_do().is_empty(),
        }
    }

    /// Returns the report as Markdown.
    pub fn markdown(&self) -> String {
        let (newest, draft) = (&self.newest, &self.draft);
        let mut text = format!(
            "# The draft against {newest}\n\n{}\n\nFile: {}, sha256 `{}`.\n",
            self.verdict(),
            draft.place,
            draft.sha256
        );
        match &self.finding {
            Finding::SameBytes | Finding::SameStructure => {}
            Finding::Refused(reason) => {
                let quoted = quote(reason, 0);
                write!(text, "\n## The refusal\n\n{quoted}\n").expect("strings take everything");
            }
            Finding::Compared(comparison) => {
                push_list(&mut text, "To decide or to write", &comparison.to_do());
                push_list(&mut text, "Look at", &comparison.to_look_at());
                push_list(&mut text, "Absorbed", &comparison.absorbed());
                if let Some(Ok(trial)) = &comparison.trial {
                    text.push_str(&conversions_section(&trial.conversions));
                    push_list(&mut text, "Keywords that types do not express", &{
                        let notices = trial.review.notices.iter();
                        notices.map(|line| format!("`{line}`")).collect::<Vec<_>>()
                    });
                }
                text.push_str("\n## Differences\n");
                let differences = render::markdown(&comparison.diff);
                text.push_str(&demote(&differences));
            }
        }
        text.replace(REVISION, "draft")
    }

    /// Returns the outcome in one sentence.
    fn verdict(&self) -> String {
        let newest = &self.newest;
        match &self.finding {
            Finding::SameBytes => format!("Nothing is new: the draft has the bytes of {newest}."),
            Finding::SameStructure => format!(
                "Nothing is new: the draft differs from {newest} in descriptions and the order of members alone."
            ),
            Finding::Refused(_) => {
                "**The generator refuses the draft**: nothing can be said about the rest before it reads the file.".to_owned()
            }
            Finding::Compared(comparison) => {
                let to_do = comparison.to_do().len();
                let definitions = count_noun(comparison.diff.definitions.len(), "definition");
                let methods = count_noun(comparison.diff.methods.len(), "method");
                let differs = format!("Differences: {definitions}, {methods}.");
                if to_do == 0 {
                    format!("{differs} `schema add` absorbs all of it.")
                } else {
                    let points = count_noun(to_do, "point");
                    format!("{differs} **To decide or to write: {points}.**")
                }
            }
        }
    }
}

/// Unions of all messages that a side sends. What one of two revisions lacks has no counterpart, and is refused.
const MESSAGE_UNIONS: [&str; 6] = [
    "ClientNotification",
    "ClientRequest",
    "ClientResult",
    "ServerNotification",
    "ServerRequest",
    "ServerResult",
];

/// Returns the variant of a union of messages that a line of the review calls refused, such as `ClientRequest.Poll`.
fn message_variant(line: &str) -> Option<&str> {
    let part = line.split('`').nth(1)?;
    let (union, _) = part.split_once('.')?;
    MESSAGE_UNIONS.contains(&union).then_some(part)
}

/// Returns a text as a block of code, indented by `indent` spaces.
fn quote(text: &str, indent: usize) -> String {
    let spaces = " ".repeat(indent);
    let lines = std::iter::once("````text")
        .chain(text.lines())
        .chain(["````"]);
    let lines: Vec<String> = lines.map(|line| format!("{spaces}{line}")).collect();
    lines.join("\n")
}

/// Appends a list under a second-level heading, unless it is empty. Equal lines appear once.
fn push_list(text: &mut String, heading: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    write!(text, "\n## {heading}\n\n").expect("strings take everything");
    let mut known = BTreeSet::new();
    for line in lines.iter().filter(|line| known.insert(*line)) {
        writeln!(text, "- {line}").expect("strings take everything");
    }
}

/// Returns the part of `docs/conversions.md` about the step to the draft.
fn conversions_section(page: &str) -> String {
    let heading = format!(" ↔ {REVISION}");
    let mut lines = page.lines();
    let Some(first) = lines.find(|line| line.starts_with("## ") && line.ends_with(&heading)) else {
        return String::new();
    };
    let rest = lines.take_while(|line| !line.starts_with("## "));
    let section: Vec<&str> = std::iter::once(first).chain(rest).collect();
    let section = section.join("\n").replacen("## ", "## Conversions ", 1);
    format!("\n{}\n", section.trim_end())
}

/// Returns Markdown with its second-level heading left out and its other headings one level down.
fn demote(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("## "));
    lines.map(|line| format!("{line}\n")).collect()
}
