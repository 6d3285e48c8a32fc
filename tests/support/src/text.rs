//! JSON documents that keep member order and the text of numbers, and can be written compactly or in a random spelling
//! of the same value.
//!
//! Numbers are not rounded, and duplicate members are an error.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use crate::rng::Rng;

/// Maximum nesting depth that [`Doc::parse`] accepts.
pub const MAX_DEPTH: usize = 512;

/// JSON document.
#[derive(Clone, Debug, PartialEq)]
pub enum Doc {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as text.
    Number(String),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Doc>),
    /// An object, with its members in order.
    Object(Vec<(String, Doc)>),
}

/// Variations of spelling in [`Doc::write`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// True to insert white space between tokens.
    pub whitespace: bool,
    /// True to escape characters that need no escape, and to use `\u` escapes instead of two-character escapes.
    pub escapes: bool,
    /// True to shuffle the members of every object.
    pub shuffle: bool,
}

impl Style {
    /// All variations.
    pub const ALL_VARIATIONS: Self = Self {
        whitespace: true,
        escapes: true,
        shuffle: true,
    };
}

impl Doc {
    /// Parses JSON text.
    ///
    /// # Errors
    ///
    /// Returns the defect with its byte offset: a syntax error, a duplicate member, a lone surrogate, or more than
    /// [`MAX_DEPTH`] levels.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { text, offset: 0 };
        parser.skip_whitespace();
        let doc = parser.value(0)?;
        parser.skip_whitespace();
        if parser.offset < text.len() {
            return parser.syntax_error("text after the document");
        }
        Ok(doc)
    }

    /// Converts a `serde_json` value, in which the original spelling of numbers is lost.
    pub fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(bool) => Self::Bool(*bool),
            Value::Number(number) => Self::Number(number.to_string()),
            Value::String(string) => Self::String(string.clone()),
            Value::Array(items) => Self::Array(items.iter().map(Self::from_value).collect()),
            Value::Object(members) => Self::Object(
                members
                    .iter()
                    .map(|(name, value)| (name.clone(), Self::from_value(value)))
                    .collect(),
            ),
        }
    }

    /// Parses the compact text with `serde_json`.
    ///
    /// # Errors
    ///
    /// Returns an error if `serde_json` cannot represent the document: a number such as `1e400`, or more than 127
    /// levels.
    pub fn to_value(&self) -> Result<Value, serde_json::Error> {
        serde_json::from_str(&self.to_string())
    }

    /// Writes the document in the given style.
    pub fn write(&self, style: Style, rng: &mut Rng) -> String {
        let mut out = String::new();
        let mut writer = Writer {
            out: &mut out,
            style,
            rng,
        };
        writer.write_space();
        writer.value(self);
        writer.write_space();
        out
    }

    /// Returns the member `name` if the document is an object with this member.
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members
                .iter()
                .find_map(|(key, value)| (key == name).then_some(value)),
            _ => None,
        }
    }
}

impl fmt::Display for Doc {
    /// Writes the compact text.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without variations of spelling, the writer makes no random choices.
        formatter.write_str(&self.write(Style::default(), &mut Rng::new(0)))
    }
}

/// Returns true if two documents are equal as JSON values. The order of members is ignored; numbers are compared by
/// their text (`1` is not `1.0`); everything else is compared exactly. An object with duplicate members is not equal to
/// any document.
pub fn is_same_json(left: &Doc, right: &Doc) -> bool {
    match (left, right) {
        (Doc::Array(left), Doc::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| is_same_json(l, r))
        }
        (Doc::Object(left), Doc::Object(right)) => {
            let by_name: BTreeMap<&str, &Doc> = right
                .iter()
                .map(|(name, value)| (name.as_str(), value))
                .collect();
            let names: BTreeMap<&str, ()> =
                left.iter().map(|(name, _)| (name.as_str(), ())).collect();
            left.len() == right.len()
                && by_name.len() == right.len()
                && names.len() == left.len()
                && left.iter().all(|(name, value)| {
                    by_name
                        .get(name.as_str())
                        .is_some_and(|other| is_same_json(value, other))
                })
        }
        (left, right) => left == right,
    }
}

/// Writes a document in a style.
struct Writer<'w> {
    /// Text that was written so far.
    out: &'w mut String,
    /// Variations of spelling.
    style: Style,
    /// Source of random choices.
    rng: &'w mut Rng,
}

impl Writer<'_> {
    /// Writes random white space, if the style has it.
    fn write_space(&mut self) {
        if self.style.whitespace {
            while self.rng.chance(30) {
                let space = *self.rng.pick(&[" ", "  ", "\n", "\r\n", "\t", "\r"]);
                self.out.push_str(space);
            }
        }
    }

    /// Writes a document in the style.
    fn value(&mut self, doc: &Doc) {
        match doc {
            Doc::Null => self.out.push_str("null"),
            Doc::Bool(true) => self.out.push_str("true"),
            Doc::Bool(false) => self.out.push_str("false"),
            Doc::Number(text) => self.out.push_str(text),
            Doc::String(string) => self.string(string),
            Doc::Array(items) => self.array(items),
            Doc::Object(members) => self.object(members),
        }
    }

    /// Writes an array in the style.
    fn array(&mut self, items: &[Doc]) {
        self.out.push('[');
        self.write_space();
        for (index, item) in items.iter().enumerate() {
            self.write_separator(index);
            self.value(item);
            self.write_space();
        }
        self.out.push(']');
    }

    /// Writes an object in the style.
    fn object(&mut self, members: &[(String, Doc)]) {
        let mut order: Vec<usize> = (0..members.len()).collect();
        if self.style.shuffle {
            self.rng.shuffle(&mut order);
        }
        self.out.push('{');
        self.write_space();
        for (index, place) in order.into_iter().enumerate() {
            let (name, value) = &members[place];
            self.write_separator(index);
            self.string(name);
            self.write_space();
            self.out.push(':');
            self.write_space();
            self.value(value);
            self.write_space();
        }
        self.out.push('}');
    }

    /// Writes the comma before an item or member, unless it is the first.
    fn write_separator(&mut self, index: usize) {
        if index > 0 {
            self.out.push(',');
            self.write_space();
        }
    }

    /// Writes a string in the style.
    fn string(&mut self, string: &str) {
        self.out.push('"');
        for character in string.chars() {
            if self.style.escapes && self.rng.chance(20) {
                self.unicode_escape(character);
            } else {
                self.character(character);
            }
        }
        self.out.push('"');
    }

    /// Writes a character of a string, escaped if necessary.
    fn character(&mut self, character: char) {
        match character {
            '"' => self.out.push_str("\\\""),
            '\\' => self.out.push_str("\\\\"),
            '/' if self.style.escapes && self.rng.chance(30) => self.out.push_str("\\/"),
            '\u{8}' => self.out.push_str("\\b"),
            '\t' => self.out.push_str("\\t"),
            '\n' => self.out.push_str("\\n"),
            '\u{c}' => self.out.push_str("\\f"),
            '\r' => self.out.push_str("\\r"),
            '\0'..='\u{1f}' => self.unicode_escape(character),
            other => self.out.push(other),
        }
    }

    /// Writes a character as `\u` escapes.
    fn unicode_escape(&mut self, character: char) {
        for unit in character.encode_utf16(&mut [0; 2]) {
            let upper = self.style.escapes && self.rng.chance(50);
            self.out.push_str(&if upper {
                format!("\\u{unit:04X}")
            } else {
                format!("\\u{unit:04x}")
            });
        }
    }
}

/// Parser of the text of one document.
struct Parser<'t> {
    /// The document.
    text: &'t str,
    /// Position of the parser, in bytes.
    offset: usize,
}

impl Parser<'_> {
    /// Returns a syntax error at the current position; `what` describes the defect.
    fn syntax_error<T>(&self, what: &str) -> Result<T, String> {
        Err(format!("{what} at byte {}", self.offset))
    }

    /// Returns the next byte without consuming it.
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    /// Consumes white space.
    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.offset += 1;
        }
    }

    /// Consumes the next byte if it is equal to `byte`; returns true if the byte was consumed.
    fn skip_byte(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.offset += usize::from(found);
        found
    }

    /// Consumes the byte `byte`; returns an error if the next byte is different.
    fn expect(&mut self, byte: u8) -> Result<(), String> {
        if self.skip_byte(byte) {
            return Ok(());
        }
        self.syntax_error(&format!("expected {:?}", char::from(byte)))
    }

    /// Parses a value at the nesting depth `depth`.
    fn value(&mut self, depth: usize) -> Result<Doc, String> {
        if depth > MAX_DEPTH {
            return self.syntax_error("too many levels");
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Doc::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.parse_literal(),
        }
    }

    /// Parses `null`, `true` or `false`.
    fn parse_literal(&mut self) -> Result<Doc, String> {
        let words = [
            ("null", Doc::Null),
            ("true", Doc::Bool(true)),
            ("false", Doc::Bool(false)),
        ];
        for (word, doc) in words {
            if self.text[self.offset..].starts_with(word) {
                self.offset += word.len();
                return Ok(doc);
            }
        }
        self.syntax_error("expected a value")
    }

    /// Parses an array.
    fn array(&mut self, depth: usize) -> Result<Doc, String> {
        let mut items = Vec::new();
        self.expect(b'[')?;
        self.skip_whitespace();
        if self.skip_byte(b']') {
            return Ok(Doc::Array(items));
        }
        loop {
            self.skip_whitespace();
            items.push(self.value(depth + 1)?);
            self.skip_whitespace();
            if self.skip_byte(b']') {
                return Ok(Doc::Array(items));
            }
            self.expect(b',')?;
        }
    }

    /// Parses an object.
    fn object(&mut self, depth: usize) -> Result<Doc, String> {
        let mut members: Vec<(String, Doc)> = Vec::new();
        let mut names = BTreeMap::new();
        self.expect(b'{')?;
        self.skip_whitespace();
        if self.skip_byte(b'}') {
            return Ok(Doc::Object(members));
        }
        loop {
            self.skip_whitespace();
            let name = self.string()?;
            if names.insert(name.clone(), ()).is_some() {
                return self.syntax_error(&format!("duplicate member {name:?}"));
            }
            self.skip_whitespace();
            self.expect(b':')?;
            self.skip_whitespace();
            members.push((name, self.value(depth + 1)?));
            self.skip_whitespace();
            if self.skip_byte(b'}') {
                return Ok(Doc::Object(members));
            }
            self.expect(b',')?;
        }
    }

    /// Parses a number.
    fn number(&mut self) -> Result<Doc, String> {
        let start = self.offset;
        self.skip_byte(b'-');
        if !self.skip_byte(b'0') {
            self.parse_digits()?;
        }
        if self.skip_byte(b'.') {
            self.parse_digits()?;
        }
        if self.skip_byte(b'e') || self.skip_byte(b'E') {
            let _ = self.skip_byte(b'+') || self.skip_byte(b'-');
            self.parse_digits()?;
        }
        Ok(Doc::Number(self.text[start..self.offset].to_owned()))
    }

    /// Consumes one or more digits.
    fn parse_digits(&mut self) -> Result<(), String> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return self.syntax_error("expected a digit");
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.offset += 1;
        }
        Ok(())
    }

    /// Parses a string.
    fn string(&mut self) -> Result<String, String> {
        let mut out = String::new();
        self.expect(b'"')?;
        loop {
            let start = self.offset;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.offset += 1;
            }
            out.push_str(&self.text[start..self.offset]);
            match self.peek() {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.offset += 1;
                    out.push(self.escape()?);
                }
                _ => return self.syntax_error("string without an end"),
            }
        }
    }

    /// Parses the rest of an escape sequence after its backslash.
    fn escape(&mut self) -> Result<char, String> {
        let letter = self.peek();
        self.offset += 1;
        Ok(match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return self.syntax_error("unknown escape"),
        })
    }

    /// Parses the rest of a `\u` escape: four digits, and a second escape if they are the first half of a surrogate
    /// pair.
    fn unicode_escape(&mut self) -> Result<char, String> {
        let mut units = vec![self.parse_hex_unit()?];
        if (0xd800..0xdc00).contains(&units[0]) && self.text[self.offset..].starts_with("\\u") {
            self.offset += 2;
            units.push(self.parse_hex_unit()?);
        }
        match char::decode_utf16(units).next() {
            Some(Ok(character)) => Ok(character),
            _ => self.syntax_error("lone surrogate"),
        }
    }

    /// Parses four hexadecimal digits.
    fn parse_hex_unit(&mut self) -> Result<u16, String> {
        let digits = self
            .text
            .get(self.offset..self.offset + 4)
            .unwrap_or_default();
        if digits.len() < 4 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return self.syntax_error("expected four hexadecimal digits");
        }
        self.offset += 4;
        u16::from_str_radix(digits, 16)
            .or_else(|_| self.syntax_error("expected hexadecimal digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Doc, MAX_DEPTH, Style, is_same_json};
    use crate::rng::Rng;

    /// Parses a valid document.
    fn parse(text: &str) -> Doc {
        Doc::parse(text).expect("the text is JSON")
    }

    /// Compact text is preserved by parsing and writing.
    #[test]
    fn compact_text_round_trips() {
        for text in [
            "null",
            "-0",
            "1.0",
            "1E+05",
            "123456789012345678901234567890",
            "1e400",
            r#""""#,
            r#""\"\\\n\u0000\u001f/é😀""#,
            r#"{"b":1,"a":[true,false,{}],"":[]}"#,
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
    }

    /// Text in any style is parsed to the same document.
    #[test]
    fn every_style_keeps_the_value() {
        let doc = parse(r#"{"b":[1,1.0,-0,2.5e-3],"a":{"x/y":"é😀\n\"","":null,"z":{}}}"#);
        let mut rng = Rng::new(11);
        let mut spellings = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let text = doc.write(Style::ALL_VARIATIONS, &mut rng);
            assert!(is_same_json(&doc, &parse(&text)), "{text}");
            serde_json::from_str::<serde_json::Value>(&text).expect("serde_json reads it too");
            spellings.insert(text);
        }
        assert!(spellings.len() > 90);
    }

    /// `is_same_json` ignores the order of members, and distinguishes everything else.
    #[test]
    fn equality_ignores_member_order() {
        assert!(is_same_json(
            &parse(r#"{"a":1,"b":2}"#),
            &parse(r#"{"b":2,"a":1}"#)
        ));
        assert!(!is_same_json(&parse("[1,2]"), &parse("[2,1]")));
        assert!(!is_same_json(&parse("1"), &parse("1.0")));
        assert!(!is_same_json(&parse("{}"), &parse("[]")));
        assert!(!is_same_json(&parse(r#"{"a":null}"#), &parse("{}")));
        let twice = Doc::Object(vec![("a".into(), Doc::Null), ("a".into(), Doc::Null)]);
        assert!(!is_same_json(&twice, &twice));
    }

    /// Text that is not JSON, or contains a duplicate member, is refused.
    #[test]
    fn invalid_json_is_refused() {
        for text in [
            "",
            " ",
            "01",
            "1.",
            ".5",
            "+1",
            "1e",
            "-",
            "tru",
            "nul",
            "[1,]",
            "[1 2]",
            "{",
            "{\"a\"}",
            "{\"a\":1,}",
            "{\"a\":1,\"a\":1}",
            "\"",
            "\"\n\"",
            r#""\x""#,
            r#""\u12""#,
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            r#""\ud800\u0041""#,
            "1 1",
            "\u{feff}1",
            "[\"\\u00é\"]",
        ] {
            assert!(Doc::parse(text).is_err(), "{text:?}");
        }
    }

    /// A document with more than [`MAX_DEPTH`] levels is refused.
    #[test]
    fn depth_is_limited() {
        let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(Doc::parse(&nested(MAX_DEPTH)).is_ok());
        assert!(Doc::parse(&nested(100_000)).is_err());
    }
}
