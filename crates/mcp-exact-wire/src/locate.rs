//! Conversion of a byte offset to a JSON pointer.
//!
//! The text is read again up to the offset that a reader has recorded, and the JSON pointer of the value, or of the
//! member whose name starts at the offset, is returned. The pointer is computed only after a failure, in linear time
//! and without recursion.

use crate::pointer::{MAX_POINTER, Pointer};
use crate::scan::{scalar_end, skip_space, string_end};
use crate::unescape::unescape_lossy;

/// Object or array that encloses the offset, with the name of its current member or the index of its current item.
enum Level<'a> {
    /// An object, with the name of its current member as written in the text, including escape sequences.
    Object(Option<&'a str>),
    /// An array, with the index of its current item.
    Array(usize),
}

/// Objects and arrays that enclose an offset in a text, outermost first.
///
/// Only as many levels are stored as a pointer of maximum length can name; deeper levels are counted.
#[derive(Default)]
struct Path<'a> {
    /// The outermost levels.
    levels: Vec<Level<'a>>,
    /// Number of enclosing objects and arrays that are not stored.
    deeper_levels: usize,
}

impl<'a> Path<'a> {
    /// Adds an object or array to the path.
    fn open(&mut self, level: Level<'a>) {
        if self.deeper_levels > 0 || self.levels.len() > MAX_POINTER {
            self.deeper_levels += 1;
        } else {
            self.levels.push(level);
        }
    }

    /// Removes the innermost object or array from the path.
    fn close(&mut self) {
        if self.deeper_levels > 0 {
            self.deeper_levels -= 1;
        } else {
            self.levels.pop();
        }
    }

    /// Returns the innermost object or array; `None` if it is not stored.
    fn innermost(&mut self) -> Option<&mut Level<'a>> {
        match self.deeper_levels {
            0 => self.levels.last_mut(),
            _ => None,
        }
    }

    /// Advances the path after a comma; returns true if a member name follows.
    fn next_item(&mut self) -> bool {
        match self.innermost() {
            Some(Level::Array(index)) => {
                *index += 1;
                false
            }
            Some(Level::Object(name)) => {
                *name = None;
                true
            }
            None => false,
        }
    }

    /// Sets the name of the current member of the innermost object; `inside` is the text of the name, without quotes.
    fn set_name(&mut self, inside: &'a str) {
        if let Some(Level::Object(name)) = self.innermost() {
            *name = Some(inside);
        }
    }
}

/// Returns the JSON pointer of the value at `offset`.
pub(crate) fn locate(text: &str, offset: usize) -> Pointer {
    let mut pointer = Pointer::default();
    for level in path_to(text, offset).levels {
        match level {
            Level::Object(Some(name)) => pointer.push(&unescape_lossy(name)),
            Level::Object(None) => {}
            Level::Array(index) => pointer.push(&index.to_string()),
        }
        if pointer.is_cut() {
            break;
        }
    }
    pointer
}

/// Returns the objects and arrays that enclose the offset, each with its current member or item.
fn path_to(text: &str, offset: usize) -> Path<'_> {
    let bytes = text.as_bytes();
    let mut path = Path::default();
    let mut at = skip_space(bytes, 0);
    let mut expect_name = false;
    while at < offset {
        let mut end = at + 1;
        match bytes[at] {
            b'{' => path.open(Level::Object(None)),
            b'[' => path.open(Level::Array(0)),
            b'}' | b']' => path.close(),
            b',' | b':' => {}
            b'"' => match string_end(bytes, at + 1) {
                Ok(string_end) if expect_name => {
                    end = string_end;
                    path.set_name(&text[at + 1..end - 1]);
                }
                Ok(string_end) => end = string_end,
                Err(_) => break,
            },
            _ => match scalar_end(bytes, at) {
                Ok(scalar_end) => end = scalar_end,
                Err(_) => break,
            },
        }
        expect_name = match bytes[at] {
            b'{' => true,
            b',' => path.next_item(),
            b'"' => expect_name,
            _ => false,
        };
        at = skip_space(bytes, end);
    }
    add_member_at(text, at, expect_name, &mut path);
    leave_last_item(bytes, at, &mut path);
    path
}

/// Adds the member whose name starts at the offset `at` to the path; does nothing if `expect_name` is false.
fn add_member_at<'a>(text: &'a str, at: usize, expect_name: bool, path: &mut Path<'a>) {
    if !expect_name || text.as_bytes().get(at) != Some(&b'"') {
        return;
    }
    if let Ok(end) = string_end(text.as_bytes(), at + 1) {
        path.set_name(&text[at + 1..end - 1]);
    }
}

/// Removes the last item or member from the path if a closing bracket is at the offset, because the error then concerns
/// the array or object.
fn leave_last_item(bytes: &[u8], at: usize, path: &mut Path<'_>) {
    match (bytes.get(at), path.innermost()) {
        (Some(b']'), Some(Level::Array(_))) => path.close(),
        (Some(b'}'), Some(Level::Object(name))) => *name = None,
        _ => {}
    }
}
