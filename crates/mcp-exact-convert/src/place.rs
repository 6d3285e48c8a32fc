//! Locations in the input, stored as byte offsets during a conversion and turned into JSON pointers at its end.
//!
//! One scan of the text finds all pointers, so that the cost is linear in the length of the text and the pointers.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;

use mcp_exact_wire::order::{joined, sorted};
use mcp_exact_wire::spans::value_end;
use mcp_exact_wire::{MAX_POINTER, Reader};

/// A location in the input, or of a missing member of a value in the input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Offset of the value, in bytes.
    pub at: usize,
    /// Rest of the JSON pointer, from the value at `at` to the location.
    pub below: String,
}

impl Place {
    /// Creates the location of the value at an offset.
    pub fn of_value(at: usize) -> Self {
        let below = String::new();
        Self { at, below }
    }
}

/// JSON pointers of values by offset, and the names of the list items that contain the values.
pub struct Pointers {
    /// Offsets of the values, sorted.
    offsets: Vec<usize>,
    /// JSON pointers, one after the other.
    text: String,
    /// Range in `text` of the JSON pointer of the value at each offset.
    found: Vec<Range<usize>>,
    /// List items with a name: their range in the input, and their kind and name.
    items: Vec<(Range<usize>, Arc<str>)>,
    /// Members with lists of named items, and the noun for an item.
    lists: &'static [(&'static str, &'static str)],
}

/// Maximum length of a name that a report quotes, in bytes.
const MAX_NAME: usize = 128;

/// Maximum number of nested containers that the scan tries to skip: each attempt may read their text once more.
const MAX_SKIPS: usize = 4;

/// Distance to the next location up to which the scan does not try to skip a container, in bytes.
const MIN_SKIP_DISTANCE: usize = 64;

impl Pointers {
    /// Finds the pointers of all locations, and the names of enclosing items of the `lists` in the top-level value.
    pub fn find<'p>(
        text: &str,
        places: impl Iterator<Item = &'p Place>,
        lists: &'static [(&'static str, &'static str)],
    ) -> Self {
        let all: Vec<usize> = places.map(|place| place.at).collect();
        let order = sorted(all.len(), &|one, other| all[one].cmp(&all[other]));
        let mut offsets: Vec<usize> = order.into_iter().map(|at| all[at]).collect();
        offsets.dedup();
        let mut pointers = Self {
            text: String::new(),
            found: vec![0..0; offsets.len()],
            offsets: Vec::new(),
            items: Vec::new(),
            lists,
        };
        if offsets.last().is_some_and(|last| *last > 0) {
            pointers.walk(text, &offsets);
        }
        pointers.offsets = offsets;
        pointers
    }

    /// Returns the JSON pointer of a location; one longer than [`MAX_POINTER`] bytes is truncated and ends in `…`.
    pub fn of(&self, place: &Place) -> Cow<'_, str> {
        let found = self.offsets.binary_search(&place.at).ok();
        let above = found.map_or("", |at| &self.text[self.found[at].clone()]);
        if place.below.is_empty() && above.len() <= MAX_POINTER {
            return above.into();
        }
        let mut pointer = joined(&[above, &place.below], "");
        cut(&mut pointer, MAX_POINTER);
        pointer.into()
    }

    /// Returns the kind and name of the list item that contains the value at an offset.
    pub fn item(&self, at: usize) -> Option<Arc<str>> {
        let next = self.items.partition_point(|(item, _)| item.start <= at);
        let (item, name) = self.items.get(next.checked_sub(1)?)?;
        item.contains(&at).then(|| Arc::clone(name))
    }

    /// Returns the index of the list that is the top-level member `member`.
    fn list(&self, member: &str) -> Option<usize> {
        self.lists.iter().position(|(name, _)| *name == member)
    }

    /// Scans valid JSON and records the pointer at each requested offset. Skips containers without a requested offset.
    fn walk(&mut self, text: &str, offsets: &[usize]) {
        let bytes = text.as_bytes();
        let (mut pointer, mut levels) = (String::new(), Vec::new());
        let (mut at, mut is_name, mut unnamed) = (0, false, None);
        // Index of the next requested offset.
        let mut next = 0;
        while let Some(byte) = bytes.get(at) {
            while offsets.get(next).is_some_and(|offset| *offset < at) {
                next += 1;
            }
            let offset = offsets.get(next).copied();
            if offset.is_none() && unnamed.is_none() {
                return;
            }
            let is_value = !matches!(
                byte,
                b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b'}' | b']'
            );
            let is_wanted = offset == Some(at) && is_value && !is_name;
            if is_wanted {
                // One byte above the limit shows that the pointer was truncated.
                let mut end = pointer.len().min(MAX_POINTER + 1);
                while !pointer.is_char_boundary(end) {
                    end += 1;
                }
                let start = self.text.len();
                self.text.push_str(&pointer[..end]);
                self.found[next] = start..self.text.len();
                next += 1;
            }
            match byte {
                b'{' | b'[' => {
                    let item = self.item_at(&levels, &pointer).filter(|_| *byte == b'{');
                    if !(is_wanted && item.is_some())
                        && (1..=MAX_SKIPS).contains(&levels.len())
                        && offset.is_none_or(|offset| offset > at + MIN_SKIP_DISTANCE)
                        && let Some(end) = value_end(text, at)
                        && offsets.get(next).is_none_or(|offset| *offset >= end)
                    {
                        at = end;
                        continue;
                    }
                    unnamed = item.map(|list| (list, at)).or(unnamed);
                    is_name = *byte == b'{';
                    levels.push(if is_name {
                        Level::Object(pointer.len())
                    } else {
                        Level::Array(pointer.len(), 0)
                    });
                    if !is_name {
                        pointer.push_str("/0");
                    }
                }
                b'}' | b']' => {
                    if let Some(Level::Object(length) | Level::Array(length, _)) = levels.pop() {
                        pointer.truncate(length);
                    }
                    if let (2, Some((item, _))) = (levels.len(), self.items.last_mut()) {
                        item.end = item.end.min(at + 1);
                    }
                    unnamed = unnamed.filter(|_| levels.len() > 2);
                    is_name = false;
                }
                b',' => is_name = next_part(&mut levels, &mut pointer),
                b'"' => {
                    let end = string_end(bytes, at + 1);
                    if is_name {
                        push_name(&text[at..end], &mut pointer);
                        is_name = false;
                    } else if levels.len() == 3
                        && let Some((list, start)) = unnamed.take_if(|_| pointer.ends_with("/name"))
                        && let Some(name) = named(self.lists[list].1, &text[at..end])
                    {
                        self.items.push((start..usize::MAX, name));
                    }
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Returns the index of the list if the scan is at an item of one of the `lists`.
    fn item_at(&self, levels: &[Level], pointer: &str) -> Option<usize> {
        let [Level::Object(start), Level::Array(end, _)] = levels else {
            return None;
        };
        self.list(pointer.get(start + 1..*end)?)
    }
}

/// Returns the noun for an item and its name, such as ``tool `echo` ``; `name` is a JSON string and may be truncated.
pub fn named(what: &str, name: &str) -> Option<Arc<str>> {
    let mut name = Reader::of_checked(name).str().ok()?;
    if name.len() > MAX_NAME {
        cut(name.to_mut(), MAX_NAME);
    }
    Some(joined(&[what, " `", &name, "`"], "").into())
}

/// An object or array that the scan is inside of.
enum Level {
    /// Object: the length of the pointer without the current member.
    Object(usize),
    /// Array: the length of the pointer without the current index, and the index.
    Array(usize, usize),
}

/// Advances to the next part of the innermost container; returns true if a member name follows.
fn next_part(levels: &mut [Level], pointer: &mut String) -> bool {
    match levels.last_mut() {
        Some(Level::Object(length)) => {
            pointer.truncate(*length);
            true
        }
        Some(Level::Array(length, index)) => {
            *index += 1;
            pointer.truncate(*length);
            let _ = write!(pointer, "/{index}");
            false
        }
        None => false,
    }
}

fn push_name(quoted: &str, pointer: &mut String) {
    let inside = quoted.get(1..quoted.len().saturating_sub(1));
    let inside = inside.unwrap_or_default();
    if inside.bytes().all(|b| !matches!(b, b'\\' | b'~' | b'/')) {
        pointer.push('/');
        pointer.push_str(inside);
    } else if let Ok(name) = Reader::of_checked(quoted).str() {
        push(pointer, &name);
    }
}

/// Truncates text that is longer than `limit` bytes, without splitting a character, and appends `…`.
pub fn cut(text: &mut String, mut limit: usize) {
    if text.len() <= limit {
        return;
    }
    while !text.is_char_boundary(limit) {
        limit -= 1;
    }
    text.truncate(limit);
    text.push('…');
}

/// Returns the end offset of the JSON string that contains offset `at`.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found + 1;
        if bytes[at - 1] == b'"' {
            return at;
        }
        at += 1;
    }
    bytes.len()
}

/// Appends one reference token to a JSON pointer (RFC 6901 section 3).
pub fn push(pointer: &mut String, segment: &str) {
    pointer.reserve(segment.len() + 2);
    pointer.push('/');
    let mut rest = segment;
    while let Some(at) = memchr::memchr2(b'~', b'/', rest.as_bytes()) {
        pointer.push_str(&rest[..at]);
        pointer.push_str(if rest[at..].starts_with('~') {
            "~0"
        } else {
            "~1"
        });
        rest = &rest[at + 1..];
    }
    pointer.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_its_pointer() {
        let text = r#" {"a/b": [1, {"c\"": "x,"}, []], "d~": -1.5e3 , "e":{"":true}} "#;
        let expected = ["", "/a~1b", "/a~1b/1/c\"", "/a~1b/2", "/d~0", "/e/", "/e"];
        let parts = ["{", "[1", "\"x", "[]", "-1", "true", "{\"\""];
        let places: Vec<Place> = parts
            .iter()
            .map(|part| Place {
                at: text.find(part).expect("a part"),
                below: "/z".into(),
            })
            .collect();
        let pointers = Pointers::find(text, places.iter(), &[]);
        for (place, expected) in places.iter().zip(expected) {
            assert_eq!(pointers.of(place), format!("{expected}/z"));
        }
    }
}
