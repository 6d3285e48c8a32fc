//! Definitions without the order of their members and without whitespace, and what differs between two of them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use mcp_exact_wire::{JsonObject, Kind, ObjectRef};

use crate::tree::{items, kind, quoted, string};

/// Maximum nesting depth at which members are sorted. Values below it keep their text.
const MAX_DEPTH: usize = 64;

/// Maximum length of a value in the short form of a difference, in characters.
const MAX_SHOWN: usize = 60;

/// Returns a definition with its members sorted by name, without whitespace between tokens, and with each string in one spelling.
///
/// Definitions that differ in the order of members, whitespace or escape sequences alone have the same canonical form. Numbers keep
/// their spelling and lists their order, because both may have a meaning.
pub fn canonical(definition: &JsonObject) -> JsonObject {
    JsonObject::from_checked_text(canonical_text(definition.text()))
}

/// Returns the canonical form of a JSON value.
pub(crate) fn canonical_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    write(text, 0, &mut out);
    out
}

fn write(text: &str, depth: usize, out: &mut String) {
    match kind(text) {
        Kind::Object if depth < MAX_DEPTH => {
            out.push('{');
            for (index, (name, value)) in sorted_members(text).into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                match name {
                    Name::Text(name) => out.push_str(&quoted(&name)),
                    Name::Spelt(name) => out.push_str(name),
                }
                out.push(':');
                write(value, depth + 1, out);
            }
            out.push('}');
        }
        Kind::Array if depth < MAX_DEPTH => {
            out.push('[');
            for (index, item) in items(text).into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, depth + 1, out);
            }
            out.push(']');
        }
        // A string that is no Unicode text keeps its spelling.
        Kind::String => match string(text) {
            Some(decoded) => out.push_str(&quoted(&decoded)),
            None => out.push_str(text),
        },
        _ => out.push_str(text),
    }
}

/// Name of a member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Name<'a> {
    Text(Cow<'a, str>),
    /// Name that is no Unicode text, with its quotes and in the spelling of the definition.
    Spelt(&'a str),
}

impl Name<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Text(name) => name,
            Self::Spelt(name) => name,
        }
    }
}

/// Returns the members of an object in the order of their names; members of the same name stay in theirs.
fn sorted_members(text: &str) -> Vec<(Name<'_>, &str)> {
    let mut end = 0;
    let members = ObjectRef::from_checked(text).iter();
    let members = members.map(|(name, value)| {
        let value = value.text();
        let start = value.as_ptr() as usize - text.as_ptr() as usize;
        // What stands before a value is its name, between a comma or brace and a colon.
        let before = &text[end..start];
        end = start + value.len();
        let is_blank = |letter: char| letter.is_ascii_whitespace();
        let spelt = before.trim_start_matches(|letter| is_blank(letter) || "{,".contains(letter));
        let spelt = spelt.trim_end_matches(|letter| is_blank(letter) || letter == ':');
        // Elsewhere, the character stands for what is no Unicode text.
        let is_text = !name.contains('\u{fffd}') || string(spelt).is_some();
        let name = if is_text {
            Name::Text(name)
        } else {
            Name::Spelt(spelt)
        };
        (name, value)
    });
    let mut members: Vec<_> = members.collect();
    members.sort_by(|(a, _), (b, _)| a.cmp(b));
    members
}

/// What differs at one place of two definitions. `Display` writes it in one line, in which long values are cut around the place
/// where they begin to differ.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// JSON pointer of the place, such as `/description`.
    pub pointer: String,
    /// JSON text of the earlier value; `None` if there was none.
    pub before: Option<String>,
    /// JSON text of the later value; `None` if there is none.
    pub after: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = &self.pointer;
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                let common = common_length(before, after);
                let (before, after) = (cut(before, common), cut(after, common));
                write!(f, "{pointer}: {before} became {after}")
            }
            (None, Some(after)) => write!(f, "{pointer}: {} was added", cut(after, 0)),
            (Some(before), None) => write!(f, "{pointer}: {} was removed", cut(before, 0)),
            (None, None) => write!(f, "{pointer}"),
        }
    }
}

/// Returns the number of characters that two texts begin with in common.
fn common_length(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// Returns the part of a text around a place, at most [`MAX_SHOWN`] characters.
fn cut(text: &str, around: usize) -> String {
    let length = text.chars().count();
    if length <= MAX_SHOWN {
        return text.to_owned();
    }
    let start = around.saturating_sub(MAX_SHOWN / 3).min(length - MAX_SHOWN);
    let part: String = text.chars().skip(start).take(MAX_SHOWN).collect();
    let (before, after) = (
        if start > 0 { "…" } else { "" },
        if start + MAX_SHOWN < length {
            "…"
        } else {
            ""
        },
    );
    format!("{before}{part}{after}")
}

/// Returns what differs between two definitions, at most `most` places, in the order of their names.
pub fn differences(before: &JsonObject, after: &JsonObject, most: usize) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(
        &mut String::new(),
        (before.text(), after.text()),
        0,
        &mut |difference| {
            if found.len() < most {
                found.push(difference);
            }
            found.len() < most
        },
    );
    found
}

/// Compares two values; `report` returns false if no more differences are wanted. Returns false, too, then.
fn compare(
    pointer: &mut String,
    (before, after): (&str, &str),
    depth: usize,
    report: &mut dyn FnMut(Difference) -> bool,
) -> bool {
    let mut at = |pointer: &mut String, token: &str, values: (Option<&str>, Option<&str>)| {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        let goes_on = match values {
            (Some(before), Some(after)) => compare(pointer, (before, after), depth + 1, report),
            (before, after) => report(Difference {
                pointer: pointer.clone(),
                before: before.map(canonical_text),
                after: after.map(canonical_text),
            }),
        };
        pointer.truncate(length);
        goes_on
    };
    match (kind(before), kind(after)) {
        (Kind::Object, Kind::Object)
            if depth < MAX_DEPTH && !repeats(before) && !repeats(after) =>
        {
            let [old, new] = [before, after]
                .map(|text| sorted_members(text).into_iter().collect::<BTreeMap<_, _>>());
            let names: BTreeSet<&Name<'_>> = old.keys().chain(new.keys()).collect();
            names.into_iter().all(|name| {
                let values = (old.get(name).copied(), new.get(name).copied());
                at(pointer, name.as_str(), values)
            })
        }
        (Kind::Array, Kind::Array) if depth < MAX_DEPTH => {
            let (old, new) = (items(before), items(after));
            (0..old.len().max(new.len())).all(|index| {
                let values = (old.get(index).copied(), new.get(index).copied());
                at(pointer, &index.to_string(), values)
            })
        }
        _ => {
            let (before, after) = (canonical_text(before), canonical_text(after));
            before == after
                || report(Difference {
                    pointer: pointer.clone(),
                    before: Some(before),
                    after: Some(after),
                })
        }
    }
}

/// Returns true if an object has two members of the same name, which are compared as a whole.
fn repeats(text: &str) -> bool {
    let members = sorted_members(text);
    members.windows(2).any(|pair| pair[0].0 == pair[1].0)
}
