//! Text for the standard streams: the only strings that reach them are those of the program and [`Untrusted`] ones.
//!
//! [`terminal`](crate::terminal) takes [`Text`] alone, and [`text!`] makes it of arguments that are [`Shown`]: constants of the
//! program, numbers, other [`Text`], and strings of servers, files and logs inside of [`Untrusted`]. A `String` or a borrowed
//! `&str` does not compile there, and neither do variables that a format string captures.

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};

use mcp_exact_revisions::RevisionSpec;

/// String of a server, a file, a log or a user, which is shown as one field: control characters, line breaks and characters
/// that reorder text are shown as escapes such as `\u{1b}`.
#[derive(Debug, Clone, Copy)]
pub struct Untrusted<'a>(pub &'a str);

impl<'a> Untrusted<'a> {
    /// Returns the string as a text of several lines: its line breaks and tabs are kept, and each line but the first begins with
    /// two spaces, so that none looks like a line of the program.
    pub fn indented(self) -> Text {
        let shown = escape_lines(self.0.trim_end());
        Text(shown.trim_end().replace('\n', "\n  "))
    }

    /// Returns the first `count` characters of the string, with an ellipsis if there are more; the rest of the line has them.
    pub fn cut(self, count: usize) -> Text {
        match self.0.char_indices().nth(count) {
            Some((end, _)) => Text(format!("{}…", Untrusted(&self.0[..end]))),
            None => Text(self.to_string()),
        }
    }
}

impl Display for Untrusted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = String::with_capacity(self.0.len());
        for letter in self.0.chars() {
            match letter {
                '\n' => shown.push_str("\\n"),
                '\r' => shown.push_str("\\r"),
                '\t' => shown.push_str("\\t"),
                letter if is_hidden(letter) => shown.extend(letter.escape_unicode()),
                letter => shown.push(letter),
            }
        }
        f.pad(&shown)
    }
}

/// Text that may be shown on a terminal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// Creates a text of formatted arguments; [`text!`] calls this, so that each argument is [`Shown`].
    pub fn format(arguments: fmt::Arguments<'_>) -> Self {
        Self(arguments.to_string())
    }

    /// Creates a text of what the program itself has written, such as its documentation, with colours.
    pub fn of_program(text: String) -> Self {
        Self(text)
    }

    /// Adds another text.
    pub fn push(&mut self, other: &Self) {
        self.0.push_str(&other.0);
    }

    /// Adds a line.
    pub fn push_line(&mut self, line: &Self) {
        self.push(line);
        self.0.push('\n');
    }

    /// Joins texts.
    pub fn join(texts: impl IntoIterator<Item = Self>, separator: &'static str) -> Self {
        let texts: Vec<String> = texts.into_iter().map(|text| text.0).collect();
        Self(texts.join(separator))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self(text.to_owned())
    }
}

/// What a [`Text`] may contain.
pub trait Shown: Display {}

impl Shown for &'static str {}
impl Shown for Text {}
impl Shown for Untrusted<'_> {}
impl Shown for RevisionSpec {}
impl Shown for std::net::SocketAddr {}
impl<T: Shown> Shown for &T {}

macro_rules! shown {
    ($($type:ty)*) => {
        $(impl Shown for $type {})*
    };
}
shown!(u8 u16 u32 u64 usize i32 i64 f64);

/// Returns the value, which may be part of a text.
pub fn shown<T: Shown>(value: &T) -> &T {
    value
}

/// Creates a [`Text`] of a format string and arguments that are [`Shown`].
macro_rules! text {
    ($format:literal $(, $argument:expr)* $(,)?) => {
        // A format string that comes from a macro captures no variables.
        $crate::text::Text::format(format_args!(
            concat!($format, "") $(, $crate::text::shown(&$argument))*
        ))
    };
}
pub(crate) use text;

/// Returns a number with the noun that it counts.
pub fn count(number: usize, noun: &'static str) -> Text {
    let plural = if number == 1 { "" } else { "s" };
    text!("{} {}{}", number, noun, plural)
}

/// Returns true for characters that change a terminal, that change the direction of text (Unicode, UAX 9), or that separate
/// lines (UAX 14).
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Returns true if a text has no character that would be shown as an escape.
#[cfg(feature = "client")]
pub fn is_plain(text: &str) -> bool {
    !text.contains(is_hidden)
}

/// Shows characters that could change a terminal as escapes; keeps line breaks and tabs.
pub fn escape_lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' | '\t' => shown.push(letter),
            // A line break of Windows.
            '\r' if letters.peek() == Some(&'\n') => {}
            letter if is_hidden(letter) => shown.extend(letter.escape_unicode()),
            letter => shown.push(letter),
        }
    }
    shown
}

/// Escapes what JSON may escape in JSON text: outside of its strings, JSON has none of these characters but line breaks.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    let is_escaped = |letter: char| is_hidden(letter) && !matches!(letter, '\n' | '\r' | '\t');
    if !json.contains(is_escaped) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for letter in json.chars() {
        if is_escaped(letter) {
            // All of them are in the basic plane.
            let _ = write!(escaped, "\\u{:04x}", u32::from(letter));
        } else {
            escaped.push(letter);
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clipboard write, a cleared screen, C1 and delete characters, a changed line, and reordered text.
    const HOSTILE: &str = "\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{9b}31m\u{7f}\u{8}a\rb\r\nc\u{202e}d\u{2028}\u{1b}[31mré\t";

    /// A field has no control character, no line break and no character that reorders text.
    #[test]
    fn fields_are_one_plain_line() {
        let shown = text!("<{}>", Untrusted(HOSTILE));
        let expected = r"<\u{1b}]52;c;aGk=\u{7}\u{1b}[2J\u{9b}31m\u{7f}\u{8}a\rb\r\nc\u{202e}d\u{2028}\u{1b}[31mré\t>";
        assert_eq!(shown.as_str(), expected);
        assert_eq!(text!("{:>4}{:<3}|", Untrusted("é"), 7).as_str(), "   é7  |");
        assert_eq!(Untrusted("a\nbc").cut(2).as_str(), "a\\n…");
    }

    /// Lines of a text are kept, and none of them begins where a line of the program does.
    #[test]
    fn lines_of_others_are_indented() {
        let shown = Untrusted("one\r\nerror: two\u{1b}[2J\u{2028}x\n").indented();
        assert_eq!(shown.as_str(), "one\n  error: two\\u{1b}[2J\\u{2028}x");
    }

    /// Escaped JSON is the same value, and has no character that changes a terminal.
    #[test]
    fn json_is_escaped_without_a_change() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE, 1] });
        let text = serde_json::to_string_pretty(&value).expect("JSON");
        let escaped = escape_json(&text);
        assert!(
            escaped
                .chars()
                .all(|letter| letter == '\n' || !is_hidden(letter))
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&escaped).ok(),
            Some(value)
        );
    }
}
