//! From what the steps of a path noted to what the caller reads: each difference once, with the thing that it is about.
//!
//! Takes the notes of all steps in their order. What a later step undoes or says again is left out.

use std::collections::HashMap;

use mcp_exact_wire::{Kind, Reader, from_str};

use crate::loss::{Loss, LossKind, Noted};
use crate::place::{Place, Pointers, cut};

/// How many bytes of a name a report repeats.
const MAX_NAME: usize = 128;

/// The lists of things that have names, and what one of them is called.
const LISTS: [(&str, &str); 4] = [
    ("tools", "tool"),
    ("prompts", "prompt"),
    ("resources", "resource"),
    ("resourceTemplates", "resource template"),
];

/// Definitions of such a thing or about one: what it is called, and the member that names it.
const THINGS: [(&str, &str, &str); 7] = [
    ("Tool", "tool", "name"),
    ("CallToolRequestParams", "tool", "name"),
    ("Prompt", "prompt", "name"),
    ("GetPromptRequestParams", "prompt", "name"),
    ("Resource", "resource", "name"),
    ("ResourceTemplate", "resource template", "name"),
    ("ReadResourceRequestParams", "resource", "uri"),
];

/// The losses of a conversion of `text`, a value of `definition`.
pub fn losses(notes: Vec<Noted>, text: &str, definition: &str) -> Vec<Loss> {
    if notes.is_empty() {
        return Vec::new();
    }
    let notes = without_repetition(notes);
    let pointers = Pointers::find(text, notes.iter().flat_map(Noted::places));
    let subjects = Subjects::find(text, definition);
    let notes = notes.into_iter();
    notes
        .map(|note| note.into_loss(&pointers, &subjects))
        .collect()
}

/// Leaves out what a later step says again of the same place, and what was said of a value that a later step drops.
fn without_repetition(notes: Vec<Noted>) -> Vec<Noted> {
    let mut last: HashMap<(usize, &str), usize> = HashMap::with_capacity(notes.len());
    let mut made: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut is_gone = vec![false; notes.len()];
    for (at, note) in notes.iter().enumerate() {
        let Place { at: begin, below } = &note.place;
        if let Some(before) = last.insert((*begin, below), at) {
            let earlier = &notes[before];
            let is_repeated = earlier.kind == note.kind && earlier.revision != note.revision;
            is_gone[before] = earlier.kind == LossKind::Rewritten || is_repeated;
        }
        if let Some(stood) = &note.stood {
            let earlier = made.get(&stood.at).into_iter().flatten();
            for before in earlier.filter(|before| is_below(&notes[**before].place, stood)) {
                is_gone[*before] = true;
            }
        }
        if !below.is_empty() && note.kind == LossKind::Rewritten {
            made.entry(*begin).or_default().push(at);
        }
    }
    let mut gone = is_gone.into_iter();
    let mut notes = notes;
    notes.retain(|_| !gone.next().unwrap_or_default());
    notes
}

/// Returns true if a place is inside of another one that is named from the same value.
fn is_below(place: &Place, of: &Place) -> bool {
    let rest = place.below.strip_prefix(of.below.as_str());
    rest.is_some_and(|rest| rest.starts_with('/'))
}

/// The tools, prompts and resources of a text, by their places in it.
pub(crate) enum Subjects {
    None,
    /// The text is about one.
    One(String),
    /// The text is a list of them: the member, what each is called, and their names.
    List(&'static str, &'static str, Vec<Option<String>>),
}

impl Subjects {
    fn find(text: &str, definition: &str) -> Self {
        let thing = THINGS.iter().find(|thing| thing.0 == definition);
        let (mut r, mut first) = (Reader::new(text), true);
        if r.kind() != Ok(Kind::Object) {
            return Self::None;
        }
        while let Ok(Some(member)) = r.open_member(&mut first) {
            if let Some((_, what, name)) = thing {
                if member.name == *name {
                    return string(member.value)
                        .map_or(Self::None, |name| Self::One(named(what, name)));
                }
            } else if let Some((list, what)) = LISTS.iter().find(|list| member.name == list.0) {
                return Self::List(list, what, names(member.value));
            }
        }
        Self::None
    }

    /// What the value at a pointer is, or is a part of.
    pub fn of(&self, pointer: &str) -> Option<String> {
        match self {
            Self::None => None,
            Self::One(name) => Some(name.clone()),
            Self::List(list, what, names) => {
                let rest = pointer.strip_prefix('/')?.strip_prefix(list)?;
                let index = rest.strip_prefix('/')?.split('/').next()?;
                let name = names.get(index.parse::<usize>().ok()?)?.clone()?;
                Some(named(what, name))
            }
        }
    }
}

fn named(what: &str, mut name: String) -> String {
    cut(&mut name, MAX_NAME);
    format!("{what} `{name}`")
}

fn string(text: &str) -> Option<String> {
    from_str(text).ok()
}

/// The names of the items of a list.
fn names(list: &str) -> Vec<Option<String>> {
    let mut r = Reader::new(list);
    let mut names = Vec::new();
    let Ok(mut more) = r.begin_array() else {
        return names;
    };
    while more {
        let Ok(item) = r.raw() else {
            return names;
        };
        names.push(name(item));
        match r.next_item() {
            Ok(next) => more = next,
            Err(_) => return names,
        }
    }
    names
}

fn name(item: &str) -> Option<String> {
    let (mut r, mut first) = (Reader::new(item), true);
    if r.kind() != Ok(Kind::Object) {
        return None;
    }
    while let Ok(Some(member)) = r.open_member(&mut first) {
        if member.name == "name" {
            return string(member.value);
        }
    }
    None
}
