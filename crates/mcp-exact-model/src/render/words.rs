//! Phrases for differences that all text formats share.

use std::collections::BTreeMap;

use crate::diff::{
    Change, ChangeKind, Compatibility, DefinitionDiff, Diff, MethodDiff, Note, Status,
};
use crate::diff::{MethodChange, MethodChangeKind};

/// Minimum number of types with an equal change for which the change is reported once.
const MIN_REPETITIONS: usize = 4;

/// First character of a line, which marks additions, removals and other changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sign {
    /// An addition.
    Plus,
    /// A removal.
    Minus,
    /// Any other change.
    Changed,
}

impl Sign {
    /// Returns the sign as a character.
    pub(super) fn letter(self) -> char {
        match self {
            Self::Plus => '+',
            Self::Minus => '-',
            Self::Changed => '~',
        }
    }

    /// Returns the sign for a status.
    pub(super) fn of(status: Status) -> Self {
        match status {
            Status::Added => Self::Plus,
            Status::Removed => Self::Minus,
            _ => Self::Changed,
        }
    }
}

/// One line for a change, or for several changes of one kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    /// First character of the line.
    pub(super) sign: Sign,
    /// Path of the change; empty for the definition itself.
    pub(super) path: String,
    /// Description of the change, such as `: string`.
    pub(super) what: String,
    /// Consequence of the change.
    pub(super) compatibility: Compatibility,
    /// Other locations of the changed type.
    pub(super) also: Vec<String>,
}

impl Line {
    pub(super) fn new(change: &Change) -> Self {
        let optional = |required: &bool| if *required { "" } else { "?" };
        let (sign, what) = match &change.kind {
            ChangeKind::MemberAdded { value, required } => {
                (Sign::Plus, format!("{}: {value}", optional(required)))
            }
            ChangeKind::MemberRemoved { value, required } => {
                (Sign::Minus, format!("{}: {value}", optional(required)))
            }
            ChangeKind::MemberRequired => (Sign::Changed, ": required now".into()),
            ChangeKind::MemberOptional => (Sign::Changed, ": optional now".into()),
            ChangeKind::Retyped { before, after }
            | ChangeKind::Constant { before, after }
            | ChangeKind::Bounds { before, after } => {
                (Sign::Changed, format!(": {before} → {after}"))
            }
            ChangeKind::Format { before, after } => {
                let word = |format: &Option<String>| format.clone().unwrap_or("none".into());
                (
                    Sign::Changed,
                    format!(": format {} → {}", word(before), word(after)),
                )
            }
            ChangeKind::VariantAdded { variant } => (Sign::Plus, format!(": or {variant}")),
            ChangeKind::VariantRemoved { variant } => (Sign::Minus, format!(": or {variant}")),
            ChangeKind::ValueAdded { value } => (Sign::Plus, format!(": or \"{value}\"")),
            ChangeKind::ValueRemoved { value } => (Sign::Minus, format!(": or \"{value}\"")),
        };
        Self {
            sign,
            path: change.path.clone(),
            what,
            compatibility: change.compatibility,
            also: change.also.clone(),
        }
    }

    /// Returns the line without its sign and compatibility.
    pub(super) fn words(&self) -> String {
        if self.path.is_empty() {
            self.what.trim_start_matches([':', ' ']).to_owned()
        } else {
            format!("{}{}", self.path, self.what)
        }
    }

    /// Returns a phrase with the other locations; `None` if there are none.
    pub(super) fn other_locations(&self) -> Option<String> {
        match self.also.as_slice() {
            [] => None,
            [one] => Some(format!("also {one}")),
            [first, rest @ ..] => Some(format!("also {first} and {} more places", rest.len())),
        }
    }
}

/// Returns the changes as lines: additions to one union or enum with the same consequence are combined, and so are
/// removals.
pub(super) fn combine_lines<'c>(changes: impl IntoIterator<Item = &'c Change>) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for line in changes.into_iter().map(Line::new) {
        if let Some(last) = lines.last_mut()
            && let Some(more) = line.what.strip_prefix(": or ")
            && last.what.starts_with(": or ")
            && (last.sign, &last.path, last.compatibility, &last.also)
                == (line.sign, &line.path, line.compatibility, &line.also)
        {
            last.what.push_str(" or ");
            last.what.push_str(more);
            continue;
        }
        lines.push(line);
    }
    lines
}

/// Returns changes that are equal in many types, each with the names of the types.
pub(super) fn repeated_changes(diff: &Diff) -> Vec<(Line, Vec<&str>)> {
    let mut found: BTreeMap<Line, Vec<&str>> = BTreeMap::new();
    for definition in &diff.definitions {
        for change in definition.changes.iter().filter(|c| !c.path.is_empty()) {
            let line = Line::new(change);
            if line.also.is_empty() {
                found.entry(line).or_default().push(&definition.name);
            }
        }
    }
    found.retain(|_, names| names.len() >= MIN_REPETITIONS);
    found.into_iter().collect()
}

/// Returns the lines of a definition, except lines that are reported once for many types.
pub(super) fn unrepeated_lines(
    definition: &DefinitionDiff,
    repeated: &[(Line, Vec<&str>)],
) -> Vec<Line> {
    let told = |change: &&Change| {
        let line = Line::new(change);
        !repeated.iter().any(|(found, _)| *found == line)
    };
    combine_lines(definition.changes.iter().filter(told))
}

/// Returns the definitions with a status, in order.
pub(super) fn definitions_with_status(diff: &Diff, status: Status) -> Vec<&DefinitionDiff> {
    let definitions = diff.definitions.iter();
    definitions.filter(|d| d.status == status).collect()
}

/// Returns the counts of a difference as pairs of label and number.
pub(super) fn change_counts(diff: &Diff) -> Vec<(&'static str, String)> {
    let summary = diff.summary();
    let statuses = |counts: &BTreeMap<Status, usize>| {
        let words = counts.iter();
        let words: Vec<String> = words
            .map(|(status, count)| format!("{count} {}", status_word(*status)))
            .collect();
        if words.is_empty() {
            "no changes".into()
        } else {
            words.join(", ")
        }
    };
    let compatibilities: Vec<String> = summary
        .compatibilities
        .iter()
        .map(|(compatibility, count)| format!("{count} {}", compatibility.words()))
        .collect();
    let mut totals = vec![
        ("methods", statuses(&summary.methods)),
        ("types", statuses(&summary.definitions)),
    ];
    if !compatibilities.is_empty() {
        totals.push(("changes", compatibilities.join(", ")));
    }
    totals.push(("descriptions", format!("{} reworded", diff.descriptions)));
    totals
}

/// Returns a status as a word.
pub(super) fn status_word(status: Status) -> &'static str {
    match status {
        Status::Added => "added",
        Status::Removed => "removed",
        Status::Renamed => "renamed",
        Status::Named => "named",
        Status::Unnamed => "unnamed",
        Status::Changed => "changed",
    }
}

/// Returns the heading for the definitions with a status.
pub(super) fn status_heading(status: Status) -> &'static str {
    match status {
        Status::Added => "New types",
        Status::Removed => "Removed types",
        Status::Renamed => "Renamed types",
        Status::Named => "Types that stood without a name before",
        Status::Unnamed => "Types that stand without a name now",
        Status::Changed => "Changed types",
    }
}

/// Order of the definitions in a report.
pub(super) const ORDER: [Status; 6] = [
    Status::Changed,
    Status::Added,
    Status::Removed,
    Status::Renamed,
    Status::Named,
    Status::Unnamed,
];

/// Returns `request` or `notification`.
pub(super) fn message_kind(method: &MethodDiff) -> &'static str {
    if method.request {
        "request"
    } else {
        "notification"
    }
}

/// Returns a change of a method as a phrase.
pub(super) fn method_words(change: &MethodChange) -> String {
    match &change.kind {
        MethodChangeKind::Directions { before, after } => {
            format!("{}; before: {}", after.words(), before.words())
        }
        MethodChangeKind::Request { now: true } => "a request now".into(),
        MethodChangeKind::Request { now: false } => "a notification now".into(),
        MethodChangeKind::ParamsRequired => "params: required now".into(),
        MethodChangeKind::ParamsOptional => "params: optional now".into(),
        MethodChangeKind::Result { before, after } => {
            let word = |result: &Option<String>| result.clone().unwrap_or("none".into());
            format!("result: {} → {}", word(before), word(after))
        }
    }
}

/// Returns a change that concerns many definitions as a sentence.
pub(super) fn note_words(note: &Note) -> String {
    match note {
        Note::Envelope {
            gained,
            members,
            definitions,
        } => {
            let now = if *gained {
                "now contain"
            } else {
                "no longer contain"
            };
            let types = definitions.len();
            format!(
                "{types} requests and notifications {now} the envelope ({}); the messages are the same",
                members.join(", ")
            )
        }
        Note::NameReused { name, before } => {
            format!("{name} now means something else; what it meant is {before}")
        }
    }
}
