//! From a byte offset to a JSON pointer.
//!
//! Takes the text and an offset that a reader noted, walks the text again up to there and gives the pointer of the
//! value, or of the member whose name starts there. Runs only after a failure; linear, never recurses.

use crate::error::push_segment;
use crate::scan::{scalar_end, skip_space, string_end};
use crate::unescape::unescape_lossy;

/// One open container on the way to the offset.
enum Level<'a> {
    Object(Option<&'a str>),
    Array(usize),
}

/// The JSON pointer of what is at `offset`.
pub(crate) fn locate(text: &str, offset: usize) -> String {
    let mut pointer = String::new();
    for level in path_to(text, offset) {
        match level {
            Level::Object(Some(name)) => push_segment(&mut pointer, &unescape_lossy(name)),
            Level::Object(None) => {}
            Level::Array(index) => push_segment(&mut pointer, &index.to_string()),
        }
    }
    pointer
}

fn path_to(text: &str, offset: usize) -> Vec<Level<'_>> {
    let bytes = text.as_bytes();
    let mut path = Vec::new();
    let mut at = skip_space(bytes, 0);
    let mut expect_name = false;
    while at < offset {
        match bytes[at] {
            b'{' => {
                path.push(Level::Object(None));
                expect_name = true;
                at += 1;
            }
            b'[' => {
                path.push(Level::Array(0));
                expect_name = false;
                at += 1;
            }
            b'}' | b']' => {
                path.pop();
                expect_name = false;
                at += 1;
            }
            b',' => {
                expect_name = next_item(&mut path);
                at += 1;
            }
            b':' => {
                expect_name = false;
                at += 1;
            }
            b'"' => {
                let Ok(end) = string_end(bytes, at + 1) else {
                    break;
                };
                if let (true, Some(Level::Object(name))) = (expect_name, path.last_mut()) {
                    *name = Some(&text[at + 1..end - 1]);
                }
                at = end;
            }
            _ => match scalar_end(bytes, at) {
                Ok(end) => at = end,
                Err(_) => break,
            },
        }
        at = skip_space(bytes, at);
    }
    name_at(text, at, expect_name, &mut path);
    close_empty(bytes, at, &mut path);
    path
}

/// Moves on in the innermost container; says whether a member name comes next.
fn next_item(path: &mut [Level<'_>]) -> bool {
    match path.last_mut() {
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

/// An offset that is the start of a member's name means that member.
fn name_at<'a>(text: &'a str, at: usize, expect_name: bool, path: &mut [Level<'a>]) {
    if !expect_name || text.as_bytes().get(at) != Some(&b'"') {
        return;
    }
    if let (Ok(end), Some(Level::Object(name))) =
        (string_end(text.as_bytes(), at + 1), path.last_mut())
    {
        *name = Some(&text[at + 1..end - 1]);
    }
}

/// At a closing bracket the place is the container, not its last item.
fn close_empty(bytes: &[u8], at: usize, path: &mut Vec<Level<'_>>) {
    match (bytes.get(at), path.last_mut()) {
        (Some(b']'), Some(Level::Array(_))) => drop(path.pop()),
        (Some(b'}'), Some(Level::Object(name))) => *name = None,
        _ => {}
    }
}
