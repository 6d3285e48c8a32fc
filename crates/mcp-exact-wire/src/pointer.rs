//! JSON pointers (RFC 6901) of bounded length, for errors and violations.
//!
//! The sender of a document determines the length of names and the depth of values, so that a pointer above the limit
//! is cut and marked as cut.

/// Maximum length of the JSON pointer of an error or a violation, in bytes; a longer pointer is cut and ends in `…`.
pub const MAX_POINTER: usize = 1024;

/// Maximum length of a value that the description of a violation quotes, in bytes.
const MAX_QUOTED: usize = 128;

/// Mark at the end of a pointer that was cut.
const ELLIPSIS: char = '…';

/// JSON pointer under construction.
#[derive(Debug, Default)]
pub(crate) struct Pointer {
    /// The JSON pointer so far.
    text: String,
    /// True if a part of the pointer was left out.
    is_cut: bool,
}

impl Pointer {
    /// Appends one reference token (RFC 6901, section 3).
    pub(crate) fn push(&mut self, token: &str) {
        self.push_char('/');
        for c in token.chars() {
            match c {
                '~' => self.push_escape("~0"),
                '/' => self.push_escape("~1"),
                c => self.push_char(c),
            }
            if self.is_cut {
                return;
            }
        }
    }

    /// Returns true if the pointer was cut, so that tokens are no longer appended.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Returns the text of the pointer.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Appends one character, unless it would exceed the limit.
    fn push_char(&mut self, c: char) {
        self.push_escape(c.encode_utf8(&mut [0; 4]));
    }

    /// Appends the escape sequence of one character, unless the limit would cut it.
    fn push_escape(&mut self, text: &str) {
        if self.is_cut {
            return;
        }
        if self.text.len() + text.len() > MAX_POINTER {
            self.is_cut = true;
            self.text.push(ELLIPSIS);
            return;
        }
        self.text.push_str(text);
    }
}

/// Returns text as a violation quotes it: a long text is cut and ends in `…`. Not covered by semantic versioning.
#[doc(hidden)]
pub fn quoted(text: &str) -> String {
    if text.len() <= MAX_QUOTED {
        return text.to_owned();
    }
    let mut end = MAX_QUOTED;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{ELLIPSIS}", &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a JSON pointer of reference tokens.
    fn pointer(tokens: &[&str]) -> String {
        let mut pointer = Pointer::default();
        for token in tokens {
            pointer.push(token);
        }
        pointer.into_text()
    }

    #[test]
    fn tokens_are_escaped() {
        assert_eq!(pointer(&["a/b", "~1", "", "é"]), "/a~1b/~01//é");
    }

    /// A pointer above the limit is cut and gets one `…`.
    #[test]
    fn long_pointers_are_cut_once() {
        let whole = "x".repeat(MAX_POINTER - 1);
        assert_eq!(pointer(&[&whole]), format!("/{whole}"));
        assert_eq!(pointer(&[&whole, "a", "b"]), format!("/{whole}…"));
        assert_eq!(
            pointer(&[&"y".repeat(5000)]),
            format!("/{}…", "y".repeat(MAX_POINTER - 1))
        );
    }

    /// A cut never leaves half of an escape sequence or of a character.
    #[test]
    fn cuts_never_split_characters() {
        for token in ["/", "~", "é", "😀"] {
            let cut = pointer(&[&token.repeat(5000)]);
            let inside = cut.strip_suffix('…').and_then(|cut| cut.strip_prefix('/'));
            let unit = token.replace('~', "~0").replace('/', "~1");
            assert_eq!(
                inside.map(|inside| inside.replace(&unit, "")),
                Some(String::new())
            );
        }
    }

    #[test]
    fn quoted_values_are_cut() {
        assert_eq!(quoted("short"), "short");
        assert_eq!(quoted(&"é".repeat(64)), "é".repeat(64));
        assert_eq!(quoted(&"é".repeat(65)), format!("{}…", "é".repeat(64)));
        assert_eq!(quoted(&"x".repeat(129)), format!("{}…", "x".repeat(128)));
    }
}
