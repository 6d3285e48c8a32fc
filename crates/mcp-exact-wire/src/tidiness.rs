//! Quick test of a text for what is refused or repaired in parameters: members that occur twice in one object, `null`,
//! empty arrays and lone surrogates.
//!
//! The test may suspect a text in which nothing is wrong, but never misses what is. It reads the text once, a block at a
//! time, and does not allocate. Names are compared by a hash of their object, their length and their last bytes.

use crate::scan::skip_space;
use crate::simd::{BLOCK, Block, bracket_marks, byte_marks, escaped_mask, string_mask};
use crate::skip::block_at;
use crate::view::{JsonRef, ObjectRef};

/// What the parameters of a message may contain. Outside semantic versioning.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tidiness {
    /// True if an object may have two members of one name.
    pub may_repeat: bool,
    /// True if there may be a `null`, an empty array or an escape sequence of a surrogate.
    pub may_be_untidy: bool,
}

impl Tidiness {
    /// Tests an object. `opaque`, a value within the text of this object, is searched for escape sequences only.
    pub fn of(object: ObjectRef<'_>, opaque: Option<JsonRef<'_>>) -> Self {
        let (before, after) = around(object, opaque);
        let mut names = Names::new();
        let mut found = Found::default();
        // Most senders write the opaque value last.
        let may_repeat = found.read(before.as_bytes(), &mut names)
            || after != "}" && found.read(after.as_bytes(), &mut names);
        let opaque = opaque.map(JsonRef::text).unwrap_or_default();
        let may_be_untidy = may_repeat
            || found.is_untidy
            || found.has_array && [before, after].iter().any(|part| may_have_nulls(part))
            || found.has_escape && [before, after].iter().any(|part| may_have_surrogates(part))
            || may_have_surrogates(opaque);
        Self {
            may_repeat,
            may_be_untidy,
        }
    }

    /// Tests a value in which only escape sequences of surrogates are searched.
    pub fn of_opaque(value: JsonRef<'_>) -> Self {
        Self {
            may_repeat: false,
            may_be_untidy: may_have_surrogates(value.text()),
        }
    }

    /// Returns true if a value may be or have a `null` or an empty array.
    pub fn of_value(value: JsonRef<'_>) -> bool {
        let text = value.text().as_bytes();
        let is_empty = |at: usize| text.get(skip_space(text, at + 1)) == Some(&b']');
        may_have_nulls(value.text()) || memchr::memchr_iter(b'[', text).any(is_empty)
    }
}

/// Returns the text of an object before a value within it, and the text after the value; the whole text and an empty one
/// without such a value.
fn around<'a>(object: ObjectRef<'a>, value: Option<JsonRef<'_>>) -> (&'a str, &'a str) {
    let text = object.text();
    let parts = value.and_then(|value| {
        let start = (value.text().as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
        let end = start.checked_add(value.text().len())?;
        Some((text.get(..start)?, text.get(end..)?))
    });
    parts.unwrap_or((text, ""))
}

/// Returns true if a text may have a `null`.
fn may_have_nulls(text: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), b"null").is_some()
}

/// Returns true if a text has an escape sequence of a surrogate.
fn may_have_surrogates(text: &str) -> bool {
    let text = text.as_bytes();
    let mut at = 0;
    // The rest of a long text is searched by longer vectors.
    while let Some(block) = block_at(text, at).filter(|_| at < MAX_SHORT_TEXT) {
        if marks_escapes(&block) {
            return find_surrogates(&text[at..]);
        }
        // The last byte of a block is the first of the next one, so that no escape sequence is divided.
        at += BLOCK - 1;
    }
    text.get(at..).is_some_and(find_surrogates)
}

/// Returns true if a block has a backslash and a `u`, one after the other.
fn marks_escapes(block: &Block) -> bool {
    byte_marks(block, b'\\') & (byte_marks(block, b'u') >> 1) != 0
}

/// Searches a text for escape sequences of surrogates.
fn find_surrogates(text: &[u8]) -> bool {
    let mut escapes = memchr::memmem::find_iter(text, b"\\u");
    escapes.any(|at| matches!(text.get(at + 2), Some(b'd' | b'D')))
}

/// What was found in the parts of a text so far, beside repeated members.
#[derive(Default)]
struct Found {
    /// True after a member that is `null`, or an empty array.
    is_untidy: bool,
    /// True after an array with items.
    has_array: bool,
    /// True after a backslash.
    has_escape: bool,
}

impl Found {
    /// Reads a part of the text, which must begin and end outside of strings; returns true if a member may be repeated.
    fn read(&mut self, bytes: &[u8], names: &mut Names) -> bool {
        let (mut at, mut name_start, mut carry, mut in_string) = (0, 0, 0, 0);
        // The end of the last block with a backslash: names before it may have an escape sequence.
        let mut escaped_end = 0;
        while let Some(block) = block_at(bytes, at) {
            let marks = bracket_marks(&block);
            if marks.backslashes != 0 {
                escaped_end = at + BLOCK;
                self.has_escape = true;
            }
            let quotes = marks.quotes & !escaped_mask(marks.backslashes, &mut carry);
            let inside = string_mask(quotes) ^ in_string;
            in_string = if inside >> (BLOCK - 1) == 1 {
                u64::MAX
            } else {
                0
            };
            let opening_quotes = quotes & inside;
            let mut left = (byte_marks(&block, b':') | marks.opening | marks.closing) & !inside;
            while left != 0 {
                let place = left.trailing_zeros();
                left &= left - 1;
                let offset = at + place as usize;
                match block[place as usize] {
                    b':' => {
                        let before = opening_quotes & ((1 << place) - 1);
                        if before != 0 {
                            name_start = at + (63 - before.leading_zeros()) as usize + 1;
                        }
                        // With white space before the colon, the name is not plain.
                        let name = bytes.get(name_start..offset).unwrap_or_default();
                        let is_plain = name_start >= escaped_end && name.ends_with(b"\"");
                        if !is_plain || names.is_seen(name) {
                            return true;
                        }
                        self.is_untidy |= bytes.get(skip_space(bytes, offset + 1)) == Some(&b'n');
                    }
                    b'{' => names.open(),
                    b'[' => {
                        names.open();
                        let is_empty = bytes.get(skip_space(bytes, offset + 1)) == Some(&b']');
                        self.is_untidy |= is_empty;
                        self.has_array |= !is_empty;
                    }
                    _ => names.close(),
                }
            }
            if opening_quotes != 0 {
                name_start = at + (63 - opening_quotes.leading_zeros()) as usize + 1;
            }
            at += BLOCK;
        }
        false
    }
}

/// Length of a text up to which blocks are compared one by one, in bytes.
const MAX_SHORT_TEXT: usize = 1024;
/// Maximum nesting depth of a text that is tested; names below it count as repeated.
const MAX_DEPTH: usize = 16;
/// Number of bits of the set of hashes.
const SET_BITS: usize = 1 << 12;

/// Names of the members so far.
struct Names {
    /// Bits of the hashes of the names.
    seen: [u64; SET_BITS / 64],
    /// Numbers of the open objects and arrays, in the order of their beginnings.
    open: [u64; MAX_DEPTH],
    /// Number of open objects and arrays.
    depth: usize,
    /// Number of objects and arrays so far.
    count: u64,
}

impl Names {
    const fn new() -> Self {
        Self {
            seen: [0; SET_BITS / 64],
            open: [0; MAX_DEPTH],
            depth: 0,
            count: 0,
        }
    }

    /// Begins an object or an array.
    fn open(&mut self) {
        self.count += 1;
        self.depth += 1;
        if let Some(open) = self.open.get_mut(self.depth - 1) {
            *open = self.count;
        }
    }

    /// Ends the innermost object or array.
    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Adds a name of the innermost object, with its closing quote; returns true if it may be there already.
    fn is_seen(&mut self, name: &[u8]) -> bool {
        let Some(object) = self.depth.checked_sub(1).and_then(|at| self.open.get(at)) else {
            return true;
        };
        let mut end = [0; 8];
        match name.last_chunk() {
            Some(last) => end = *last,
            None => end[..name.len()].copy_from_slice(name),
        }
        let key = u64::from_le_bytes(end) ^ object.rotate_left(40) ^ (name.len() as u64) << 56;
        let hash = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
        let (word, bit) = (&mut self.seen[hash / 64], 1 << (hash % 64));
        let is_seen = *word & bit != 0;
        *word |= bit;
        is_seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests a text, with the value of a top-level member as the opaque one.
    fn tidiness(text: &str, opaque: &str) -> (bool, bool) {
        let object = ObjectRef::from_checked(text);
        let found = Tidiness::of(object, object.find(opaque));
        (found.may_repeat, found.may_be_untidy)
    }

    /// Returns a text with a member before its first, which moves the others through the blocks.
    fn shifted(text: &str, by: usize) -> String {
        text.replacen('{', &format!("{{\"{}\":0,", "y".repeat(by)), 1)
    }

    /// Whatever the exact search finds, the quick test suspects, however the members are spelt and spread over blocks.
    #[test]
    fn repeated_members_are_never_missed() {
        for text in [
            r#"{"a":1,"a":2}"#,
            r#"{"a" : 1, "\u0061":2}"#,
            r#"{"x":{"name":1,"b":[{}],"name":2}}"#,
            r#"{"x":[1,{"io.modelcontextprotocol/clientInfo":1,"io.modelcontextprotocol/clientInfo":2}]}"#,
            r#"{"":1,"":2}"#,
            r#"{"a":"\"{","b":"\\","a":"x"}"#,
            r#"{"a":{"b":{"c":{}},"b":1}}"#,
            r#"{"arguments":{"z":1,"z":2},"a":1,"b":{},"a":2}"#,
        ] {
            for shift in 0..130 {
                let text = shifted(text, shift);
                let exact = ObjectRef::from_checked(&text).repeated_member(&["arguments"]);
                assert!(exact.is_some(), "{text}");
                assert!(tidiness(&text, "arguments").0, "{text}");
            }
        }
        let deep = format!("{{\"a\":{}{{\"a\":1}}{}}}", "[".repeat(40), "]".repeat(40));
        assert!(tidiness(&deep, "").0);
    }

    /// What may be repaired is suspected outside of the opaque value, and surrogates within it.
    #[test]
    fn untidy_values_are_never_missed() {
        for text in [
            r#"{"a":null}"#,
            r#"{"a": null}"#,
            r#"{"a":[1,null]}"#,
            r#"{"a":[[null]]}"#,
            r#"{"a":[]}"#,
            r#"{"a":[ ]}"#,
            r#"{"a":{"b":"\ud800"}}"#,
            r#"{"arguments":{"z":"\uD83D"},"a":1}"#,
        ] {
            for shift in 0..130 {
                let text = shifted(text, shift);
                assert!(tidiness(&text, "arguments").1, "{text}");
            }
        }
    }

    /// Usual parameters are not suspected: members of other objects may have the same name, and arguments any value.
    #[test]
    fn usual_parameters_are_not_suspected() {
        let text = r#"{"name":"a","arguments":{"a":null,"b":[],"b":"\n\u0041"},"_meta":{"progressToken":1,
            "io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":
            {"roots":{},"sampling":{"tools":{}},"x":[{"a":1},{"a":2}]},"io.modelcontextprotocol/protocolVersion":
            "2026-07-28"},"a b":"name: []"}"#;
        assert_eq!(tidiness(text, "arguments"), (false, false));
    }
}
