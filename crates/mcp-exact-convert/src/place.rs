//! Places in the input: noted as byte offsets while a conversion runs, turned into JSON pointers at its end.
//!
//! One walk through the text finds the pointers of all of them, so that many losses cost no more than the text and their
//! own length.

use std::collections::BTreeMap;

use mcp_exact_wire::{MAX_POINTER, from_str};

/// A place in the input, or beside something in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where the value begins, in bytes.
    pub at: usize,
    /// The rest of the pointer, from that value on.
    pub below: String,
}

/// The pointers of values by where they begin.
pub struct Pointers(BTreeMap<usize, String>);

impl Pointers {
    /// Finds the pointers of all places.
    pub fn find<'p>(text: &str, places: impl Iterator<Item = &'p Place>) -> Self {
        let mut found: BTreeMap<usize, String> =
            places.map(|place| (place.at, String::new())).collect();
        if found.keys().next_back().is_some_and(|last| *last > 0) {
            walk(text, &mut found);
        }
        Self(found)
    }

    /// The JSON pointer of a place; one of more than [`MAX_POINTER`] bytes is cut and ends in `…`.
    pub fn of(&self, place: &Place) -> String {
        let above = self.0.get(&place.at).map_or("", String::as_str);
        let mut pointer = format!("{above}{}", place.below);
        cut(&mut pointer, MAX_POINTER);
        pointer
    }
}

/// A container that is open.
enum Level {
    /// The length of the pointer without the member.
    Object(usize),
    /// The same, and the index of the item.
    Array(usize, usize),
}

/// Walks through text that is JSON, and notes the pointer at each wanted offset.
fn walk(text: &str, found: &mut BTreeMap<usize, String>) {
    let bytes = text.as_bytes();
    let mut wanted: Vec<usize> = found.keys().rev().copied().collect();
    let (mut pointer, mut levels) = (String::new(), Vec::new());
    let (mut at, mut is_name) = (0, false);
    while let (Some(next), Some(byte)) = (wanted.last(), bytes.get(at)) {
        let is_value = !matches!(
            byte,
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b'}' | b']'
        );
        if at == *next && is_value && !is_name {
            // One byte more than the limit shows that there is more.
            let mut end = pointer.len().min(MAX_POINTER + 1);
            while !pointer.is_char_boundary(end) {
                end += 1;
            }
            found.insert(at, pointer[..end].to_owned());
            wanted.pop();
        } else if at > *next {
            wanted.pop();
            continue;
        }
        match byte {
            b'{' => {
                levels.push(Level::Object(pointer.len()));
                is_name = true;
            }
            b'[' => {
                levels.push(Level::Array(pointer.len(), 0));
                pointer.push_str("/0");
            }
            b'}' | b']' => {
                if let Some(Level::Object(length) | Level::Array(length, _)) = levels.pop() {
                    pointer.truncate(length);
                }
                is_name = false;
            }
            b',' => is_name = next_part(&mut levels, &mut pointer),
            b'"' => {
                let end = string_end(bytes, at + 1);
                if is_name {
                    push_name(&text[at..end], &mut pointer);
                    is_name = false;
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
}

/// Moves on in the innermost container; true when a name comes next.
fn next_part(levels: &mut [Level], pointer: &mut String) -> bool {
    match levels.last_mut() {
        Some(Level::Object(length)) => {
            pointer.truncate(*length);
            true
        }
        Some(Level::Array(length, index)) => {
            *index += 1;
            pointer.truncate(*length);
            pointer.push('/');
            pointer.push_str(&index.to_string());
            false
        }
        None => false,
    }
}

fn push_name(quoted: &str, pointer: &mut String) {
    let inside = quoted.get(1..quoted.len().saturating_sub(1));
    if !quoted.contains('\\') {
        push(pointer, inside.unwrap_or_default());
    } else if let Ok(name) = from_str::<String>(quoted) {
        push(pointer, &name);
    }
}

/// Cuts text that is longer than `limit` bytes, and marks the cut.
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

/// The end of the string that `at` is inside of.
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
    pointer.push('/');
    for c in segment.chars() {
        match c {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            c => pointer.push(c),
        }
    }
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
        let pointers = Pointers::find(text, places.iter());
        for (place, expected) in places.iter().zip(expected) {
            assert_eq!(pointers.of(place), format!("{expected}/z"));
        }
    }
}
