//! The rows of the matrix: one for each method and each type, with what became of it in each revision.
//!
//! Takes the revisions and the differences between neighbours; gives rows that the page only has to write down.

use std::collections::BTreeSet;

use crate::diff::{DefinitionDiff, Diff, Meaning, MethodDiff, Status, merged};
use crate::ir::Ir;
use crate::render::{Line, kind_of_message, lines, method_words};
use crate::wording::{outline, type_text};

/// What one revision says of a method or a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is not there.
    Absent,
    /// It stands there without a name.
    Unnamed,
    /// It is as in the revision before.
    Same,
    /// It became this with this revision, in so many changes.
    New(Status, usize),
    /// The name means something else than before.
    Replaced,
}

/// A row of the matrix.
pub struct Row {
    pub name: String,
    pub caption: String,
    pub states: Vec<State>,
    /// What it is in the last revision that has it: the revision and a few words.
    pub now: Option<(String, String)>,
    pub steps: Vec<Step>,
}

/// What changed about a row from one revision to the next.
pub struct Step {
    /// The index of the newer revision.
    pub revision: usize,
    pub items: Vec<Item>,
}

/// One line of a step.
pub enum Item {
    Words(String, Option<Meaning>),
    Change(Line),
    /// A type to look at.
    See(String),
}

impl Row {
    /// Whether it is the same in all revisions.
    pub fn is_constant(&self) -> bool {
        self.states.iter().all(|state| *state == State::Same)
    }
}

/// The rows of methods: requests first, then notifications.
pub fn methods(revisions: &[Ir], diffs: &[Diff]) -> Vec<Row> {
    let merged: Vec<_> = revisions.iter().map(merged).collect();
    let mut names = BTreeSet::new();
    for methods in &merged {
        names.extend(
            methods
                .iter()
                .map(|(name, method)| (!method.request, *name)),
        );
    }
    let row = |(_, name): (bool, &str)| {
        let last = merged.iter().rev().find_map(|methods| methods.get(name));
        let kind = last.map_or("", |m| if m.request { "request" } else { "notification" });
        let way = last.map_or("", |method| method.directions.words());
        let mut row = Row {
            name: name.to_owned(),
            caption: format!("{kind}, {way}"),
            states: Vec::new(),
            now: revisions.iter().rev().find_map(|ir| message(ir, name)),
            steps: Vec::new(),
        };
        for (index, methods) in merged.iter().enumerate() {
            let diff = index.checked_sub(1).map(|before| &diffs[before]);
            let found = diff.and_then(|diff| diff.methods.iter().find(|m| m.method == name));
            let present = methods.contains_key(name);
            row.states.push(match found {
                Some(found) => State::New(found.status, count(found, &diffs[index - 1])),
                None if present => State::Same,
                None => State::Absent,
            });
            if let (Some(diff), Some(found)) = (diff, found) {
                let items = method_items(found, diff);
                let revision = index;
                row.steps.push(Step { revision, items });
            }
        }
        row
    };
    names.into_iter().map(row).collect()
}

/// The changes of the types that a method carries.
fn carried<'d>(method: &'d MethodDiff, diff: &'d Diff) -> impl Iterator<Item = &'d DefinitionDiff> {
    let carries = |d: &&DefinitionDiff| method.through.contains(&d.name);
    diff.definitions.iter().filter(carries)
}

fn count(method: &MethodDiff, diff: &Diff) -> usize {
    let carried: usize = carried(method, diff).map(|d| d.changes.len().max(1)).sum();
    method.changes.len() + carried
}

/// What a method carries, in a few words.
fn message(ir: &Ir, name: &str) -> Option<(String, String)> {
    let method = ir.methods.iter().find(|method| method.method == name)?;
    let params = method.params.as_ref().map(|params| type_text(ir, params));
    let optional = if method.params_required { "" } else { "?" };
    let mut words = match params {
        Some(params) => format!("params{optional}: {params}"),
        None => "no params".into(),
    };
    if let Some(result) = &method.result {
        words.push_str(&format!(" → {result}"));
    }
    Some((ir.revision.clone(), words))
}

fn method_items(diff: &MethodDiff, all: &Diff) -> Vec<Item> {
    if diff.status != Status::Changed {
        let word = if diff.status == Status::Added {
            "new"
        } else {
            "removed"
        };
        let kind = kind_of_message(diff);
        let words = format!("{word}: {kind}, {}", diff.directions.words());
        return vec![Item::Words(words, Some(diff.meaning))];
    }
    let changes = diff.changes.iter();
    let mut items: Vec<Item> = changes
        .map(|change| Item::Words(method_words(change), Some(change.meaning)))
        .collect();
    for definition in carried(diff, all) {
        items.push(Item::See(definition.name.clone()));
        items.extend(lines(&definition.changes).into_iter().map(Item::Change));
    }
    items
}

/// The rows of types, sorted by name.
pub fn types(revisions: &[Ir], diffs: &[Diff]) -> Vec<Row> {
    let mut names = BTreeSet::new();
    for ir in revisions {
        let official = ir.definitions.iter().filter(|d| d.official);
        names.extend(official.map(|d| d.name.as_str()));
    }
    names
        .into_iter()
        .map(|name| type_row(name, revisions, diffs))
        .collect()
}

fn type_row(name: &str, revisions: &[Ir], diffs: &[Diff]) -> Row {
    let official = |ir: &Ir| ir.get(name).is_some_and(|definition| definition.official);
    let last = revisions.iter().rev().find(|ir| official(ir));
    let now = last.and_then(|ir| {
        let definition = ir.get(name)?;
        Some((ir.revision.clone(), outline(ir, definition)))
    });
    let mut row = Row {
        name: name.to_owned(),
        caption: String::new(),
        states: Vec::new(),
        now,
        steps: Vec::new(),
    };
    for (index, ir) in revisions.iter().enumerate() {
        let before = index.checked_sub(1);
        let diff = before.map(|before| &diffs[before]);
        let there = before.is_some_and(|before| official(&revisions[before]));
        let found = diff.and_then(|diff| diff.definitions.iter().find(|d| d.name == name));
        let moved = diff.and_then(|diff| {
            let renamed = |d: &&DefinitionDiff| {
                d.status == Status::Renamed && d.before.as_deref() == Some(name)
            };
            diff.definitions.iter().find(renamed)
        });
        let mut items = Vec::new();
        if let Some(moved) = moved {
            items.push(Item::Words(
                format!("what it meant has another name: {}", moved.name),
                Some(Meaning::Neutral),
            ));
            items.push(Item::See(moved.name.clone()));
        }
        items.extend(found.into_iter().flat_map(type_items));
        row.states.push(match (found, moved) {
            (Some(found), _) if found.status == Status::Added && there => State::Replaced,
            (Some(found), _) => State::New(found.status, found.changes.len()),
            (None, Some(_)) => State::New(Status::Renamed, 0),
            _ if official(ir) => State::Same,
            _ if ir.get(name).is_some() => State::Unnamed,
            _ => State::Absent,
        });
        if !items.is_empty() {
            let revision = index;
            row.steps.push(Step { revision, items });
        }
    }
    row
}

fn type_items(diff: &DefinitionDiff) -> Vec<Item> {
    let before = diff.before.clone().unwrap_or_default();
    let words = match diff.status {
        Status::Added => Some(("new".to_owned(), diff.meaning)),
        Status::Removed => Some(("removed".to_owned(), diff.meaning)),
        Status::Renamed => Some((format!("was called {before}"), Meaning::Neutral)),
        Status::Named => Some((
            format!("stood at {before} without a name"),
            Meaning::Neutral,
        )),
        Status::Unnamed => Some((
            format!("stands at {before} without a name now"),
            Meaning::Neutral,
        )),
        Status::Changed => None,
    };
    let words = words.map(|(words, meaning)| Item::Words(words, Some(meaning)));
    let changes = lines(&diff.changes).into_iter().map(Item::Change);
    words.into_iter().chain(changes).collect()
}
