//! Halves of surrogate pairs in escapes of JSON text, which no Unicode text can contain.
//!
//! JavaScript writes them when it cuts a string in the middle of an emoji.

use std::borrow::Cow;

/// Replaces every lone surrogate in the strings of JSON text by U+FFFD. The text must be valid JSON.
pub fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let (mut out, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(next) = memchr(bytes, at) {
        let Some(unit) = code_unit(bytes, next) else {
            // Another escape: its second character may be a backslash.
            at = next + 2;
            continue;
        };
        at = next + 6;
        match unit {
            0xd800..=0xdbff if is_low(bytes, at) => at += 6,
            0xd800..=0xdfff => {
                out.push_str(&text[copied..next]);
                out.push_str("\\ufffd");
                copied = at;
            }
            _ => {}
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Returns the offset of the next backslash.
fn memchr(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    rest.iter().position(|byte| *byte == b'\\').map(|n| at + n)
}

/// Returns the code unit of the escape at an offset: `\u` and four hexadecimal digits.
fn code_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    let digits = std::str::from_utf8(digits).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

/// Returns true if the second half of a surrogate pair is at an offset.
fn is_low(bytes: &[u8], at: usize) -> bool {
    code_unit(bytes, at).is_some_and(|unit| (0xdc00..=0xdfff).contains(&unit))
}
