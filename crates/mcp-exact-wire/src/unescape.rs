//! Escape sequences of JSON strings (RFC 8259 section 7) to text.
//!
//! Takes text and the position of an escape sequence; appends the character and gives the position after it.

/// What is wrong with an escape sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadEscape {
    /// JSON has none like that.
    NotJson,
    /// A surrogate stands alone.
    Surrogate,
}

/// Appends the character that the escape sequence at `at` stands for; gives the position after it.
#[inline]
pub(crate) fn escape(bytes: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, BadEscape> {
    let b = match bytes.get(at + 1) {
        Some(b'n') => b'\n',
        Some(b @ (b'"' | b'\\' | b'/')) => *b,
        Some(b't') => b'\t',
        Some(b'r') => b'\r',
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'u') => {
            let (c, length) = code_point(&bytes[at..])?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(at + length);
        }
        _ => return Err(BadEscape::NotJson),
    };
    out.push(b);
    Ok(at + 2)
}

/// `\u` and four digits, or two of them that make a surrogate pair.
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
    let bytes = inside.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&b) = bytes.get(at) {
        if b != b'\\' {
            out.push(b);
            at += 1;
        } else if let Ok(end) = escape(bytes, at, &mut out) {
            at = end;
        } else {
            out.extend_from_slice("\u{fffd}".as_bytes());
            at += 6;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
