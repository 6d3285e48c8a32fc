//! Finds the location of a JSON pointer in a text, for people who repair a document in an editor.
//!
//! The text must be valid JSON.

/// Returns the byte offset of the value to which a JSON pointer (RFC 6901) refers; `None` if there is no such value.
pub fn offset_of(bytes: &[u8], pointer: &str) -> Option<usize> {
    let mut at = skip_space(bytes, 0);
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        at = match bytes.get(at)? {
            b'{' => find_member(bytes, at + 1, &token)?,
            b'[' => find_item(bytes, at + 1, token.parse().ok()?)?,
            _ => return None,
        };
    }
    Some(at)
}

/// Returns the offset of a member's value in the object that begins at `start`.
fn find_member(bytes: &[u8], start: usize, name: &str) -> Option<usize> {
    let mut at = skip_space(bytes, start);
    while *bytes.get(at)? == b'"' {
        let end = skip_value(bytes, at)?;
        let found: String = serde_json::from_slice(&bytes[at..end]).ok()?;
        at = skip_space(bytes, skip_space(bytes, end) + 1);
        if found == name {
            return Some(at);
        }
        at = skip_space(bytes, skip_value(bytes, at)?);
        if *bytes.get(at)? == b',' {
            at = skip_space(bytes, at + 1);
        }
    }
    None
}

/// Returns the offset of an item in the array that begins at `start`.
fn find_item(bytes: &[u8], start: usize, index: usize) -> Option<usize> {
    let mut at = skip_space(bytes, start);
    for _ in 0..index {
        at = skip_space(bytes, skip_value(bytes, at)?);
        if *bytes.get(at)? != b',' {
            return None;
        }
        at = skip_space(bytes, at + 1);
    }
    (*bytes.get(at)? != b']').then_some(at)
}

/// Returns the offset of the first byte at or after `at` that is not white space.
fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Returns the end offset of the value that begins at `start`.
fn skip_value(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        match bytes.get(at)? {
            b'"' => {
                at += 1;
                while *bytes.get(at)? != b'"' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b',' | b':' => {}
            byte if byte.is_ascii_whitespace() => {}
            _ => {
                let is_literal = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
                while bytes.get(at + 1).is_some_and(is_literal) {
                    at += 1;
                }
            }
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The offset of a JSON pointer is the first byte of its value.
    #[test]
    fn pointers_locate_their_values() {
        let text = br#" {"a": [1, {"b\u0020c": "x\"]"}, [], -1.5e3], "~/": null}"#;
        for (pointer, value) in [
            ("", "{\"a\""),
            ("/a", "[1"),
            ("/a/0", "1,"),
            ("/a/1/b c", "\"x"),
            ("/a/2", "[]"),
            ("/a/3", "-1.5e3]"),
            ("/~0~1", "null}"),
        ] {
            let at = offset_of(text, pointer).expect("the pointer leads somewhere");
            assert!(text[at..].starts_with(value.as_bytes()), "{pointer}");
        }
        for pointer in ["/b", "/a/4", "/a/2/0", "/a/x", "/a/0/b"] {
            assert_eq!(offset_of(text, pointer), None, "{pointer}");
        }
        assert_eq!(offset_of(b"{\"a\":", "/a/b"), None);
    }
}
