//! Escape sequences of JSON strings (RFC 8259 section 7) to text.
//!
//! Takes text that starts with an escape sequence; gives the character and the length of the sequence.

/// What is wrong with an escape sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadEscape {
    /// JSON has none like that.
    NotJson,
    /// A surrogate stands alone.
    Surrogate,
}

/// The character that the escape sequence at the start of `text` stands for, and how long the sequence is.
#[inline]
pub(crate) fn escape(text: &str) -> Result<(char, usize), BadEscape> {
    let c = match text.as_bytes().get(1) {
        Some(b'n') => '\n',
        Some(b'"') => '"',
        Some(b'\\') => '\\',
        Some(b'/') => '/',
        Some(b't') => '\t',
        Some(b'r') => '\r',
        Some(b'b') => '\u{8}',
        Some(b'f') => '\u{c}',
        Some(b'u') => return code_point(text.as_bytes()),
        _ => return Err(BadEscape::NotJson),
    };
    Ok((c, 2))
}

/// `\uXXXX`, or two of them that make a surrogate pair.
fn code_point(bytes: &[u8]) -> Result<(char, usize), BadEscape> {
    let first = unit(bytes, 2).ok_or(BadEscape::NotJson)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first)
            .map(|c| (c, 6))
            .ok_or(BadEscape::Surrogate);
    }
    let second = match bytes.get(6..8) {
        Some(b"\\u") => unit(bytes, 8).ok_or(BadEscape::NotJson)?,
        _ => return Err(BadEscape::Surrogate),
    };
    if !(0xdc00..0xe000).contains(&second) {
        return Err(BadEscape::Surrogate);
    }
    let c = char::from_u32(0x10000 + (((first - 0xd800) << 10) | (second - 0xdc00)));
    c.map(|c| (c, 12)).ok_or(BadEscape::Surrogate)
}

fn unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |value, digit| {
        Some(value << 4 | char::from(*digit).to_digit(16)?)
    })
}

/// The inside of a scanned string as text, with U+FFFD for lone surrogates: for messages and comparisons only.
pub(crate) fn unescape_lossy(inside: &str) -> String {
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let (c, length) = escape(&rest[at..]).unwrap_or(('\u{fffd}', 6));
        out.push(c);
        rest = rest.get(at + length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}
