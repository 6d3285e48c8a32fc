//! Collects the possible changes during a traversal of an instance, and applies a change to a copy of the instance.
//!
//! The mutator decides which changes are collected.

use crate::mutate::{Mutant, MutationKind};
use crate::schema::{Constraints, Types, is_integer};
use crate::text::Doc;
use crate::values;

/// Change at one position of a JSON instance; the changed instance is a mutant.
pub(crate) struct Edit {
    /// Indices of the items or members on the path to the changed value, or to the object that gets a new member.
    path: Vec<usize>,
    /// JSON pointer of the changed, removed or added value.
    pointer: String,
    /// Kind of the change.
    pub(crate) kind: MutationKind,
    /// Replacement, removal or insertion.
    change: Change,
}

/// Change of a value, or of the members or items of a container.
pub(crate) enum Change {
    /// Replaces the value.
    Replace(Doc),
    /// Removes the member or item with this index.
    Remove(usize),
    /// Inserts a member with a name and a value at this index.
    Insert(usize, String, Doc),
}

/// Position of the traversal, and the collected changes.
#[derive(Default)]
pub(crate) struct EditCollector {
    /// Indices of the items or members on the path to the current value.
    path: Vec<usize>,
    /// JSON pointer of the current value.
    pointer: String,
    /// Collected changes.
    pub(crate) edits: Vec<Edit>,
}

impl EditCollector {
    /// Adds the change that replaces the current value by `doc`.
    pub(crate) fn add_replacement(&mut self, kind: MutationKind, doc: Doc) {
        self.edits.push(Edit {
            path: self.path.clone(),
            pointer: self.pointer.clone(),
            kind,
            change: Change::Replace(doc),
        });
    }

    /// Adds a change of the member `name` of the current object.
    pub(crate) fn add_member_edit(&mut self, kind: MutationKind, name: &str, change: Change) {
        self.edits.push(Edit {
            path: self.path.clone(),
            pointer: format!("{}/{}", self.pointer, escape_token(name)),
            kind,
            change,
        });
    }

    /// Calls `visit` while the current position is the item or member with this index; `token` is the member's name or
    /// the item's index.
    pub(crate) fn at_child(&mut self, index: usize, token: &str, visit: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        self.path.push(index);
        self.pointer.push('/');
        self.pointer.push_str(&escape_token(token));
        visit(self);
        self.pointer.truncate(length);
        self.path.pop();
    }
}

impl Edit {
    /// Applies the change to a copy of the document.
    pub(crate) fn apply(self, doc: &Doc) -> Mutant {
        let mut doc = doc.clone();
        let mut place = &mut doc;
        for index in self.path {
            place = match place {
                Doc::Array(items) => &mut items[index],
                Doc::Object(members) => &mut members[index].1,
                scalar => panic!("a path leads into {scalar}"),
            };
        }
        match (self.change, place) {
            (Change::Replace(value), place) => *place = value,
            (Change::Remove(index), Doc::Object(members)) => _ = members.remove(index),
            (Change::Insert(index, name, value), Doc::Object(members)) => {
                members.insert(index, (name, value))
            }
            (_, other) => panic!("a member change leads to {other}"),
        }
        Mutant {
            doc,
            kind: self.kind,
            pointer: self.pointer,
        }
    }
}

/// Adds the changes of a number that its constraints suggest.
pub(crate) fn change_number(collector: &mut EditCollector, parts: &Constraints<'_>, text: &str) {
    if parts.is_open() {
        return;
    }
    let types = parts.types();
    if types.intersects(Types::INTEGER) && !types.intersects(Types::FRACTION) {
        collector.add_replacement(
            MutationKind::FractionForInteger,
            Doc::Number("1.5".to_owned()),
        );
        collector.add_replacement(
            MutationKind::FractionForInteger,
            Doc::Number("25e-1".to_owned()),
        );
    }
    let has_digits_only = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    if has_digits_only && is_integer(text) {
        collector.add_replacement(
            MutationKind::RespelledInteger,
            Doc::Number(format!("{text}.0")),
        );
        collector.add_replacement(
            MutationKind::RespelledInteger,
            Doc::Number(format!("{text}e0")),
        );
    }
    let low = parts
        .lower_bound("minimum")
        .or(parts.lower_bound("exclusiveMinimum"));
    let high = parts
        .upper_bound("maximum")
        .or(parts.upper_bound("exclusiveMaximum"));
    let below = low
        .into_iter()
        .flat_map(|low| [low - 1.0, low - 0.5, low.next_down(), low]);
    let above = high
        .into_iter()
        .flat_map(|high| [high + 1.0, high + 0.5, high.next_up(), high]);
    for value in below.chain(above) {
        let text = format!("{value:?}");
        if !parts.allows_number(&text) {
            collector.add_replacement(MutationKind::OutOfBounds, Doc::Number(text));
        }
    }
    if high.is_some_and(|high| high < 1e300) {
        collector.add_replacement(MutationKind::OutOfBounds, Doc::Number("1e300".to_owned()));
    }
}

/// Adds the changes of a string that its constraints suggest.
pub(crate) fn change_string(collector: &mut EditCollector, parts: &Constraints<'_>, text: &str) {
    if parts.literals().is_some() && !parts.has_const() {
        for wrong in similar_strings(&Doc::String(text.to_owned())) {
            collector.add_replacement(MutationKind::WrongEnum, wrong);
        }
    }
    for format in parts.formats() {
        for bad in values::strings_violating_format(format) {
            collector.add_replacement(MutationKind::BadFormat, Doc::String((*bad).to_owned()));
        }
    }
    if let Some(min) = parts.lower_bound("minLength").filter(|min| *min >= 1.0) {
        let shorter = text.chars().take(min as usize - 1).collect();
        collector.add_replacement(MutationKind::OutOfBounds, Doc::String(shorter));
    }
    if let Some(max) = parts.upper_bound("maxLength") {
        let missing = (max as usize + 1).saturating_sub(text.chars().count());
        let longer = format!("{text}{}", "x".repeat(missing));
        collector.add_replacement(MutationKind::OutOfBounds, Doc::String(longer));
    }
}

/// Returns strings that differ from the given string, most of them only slightly; for a value that is not a string,
/// returns a string and a number.
pub(crate) fn similar_strings(value: &Doc) -> Vec<Doc> {
    let Doc::String(text) = value else {
        return vec![
            Doc::String("x-unknown".to_owned()),
            Doc::Number("12345".to_owned()),
        ];
    };
    let others = [
        "x-unknown".to_owned(),
        String::new(),
        text.to_uppercase(),
        format!("{text} "),
        format!("{text}\u{0}"),
    ];
    others
        .into_iter()
        .filter(|other| other != text)
        .map(Doc::String)
        .collect()
}

/// Escapes a reference token of a JSON pointer (RFC 6901).
fn escape_token(token: &str) -> String {
    token.replace('~', "~0").replace('/', "~1")
}
