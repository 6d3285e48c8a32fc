//! Escape sequences of JSON strings (RFC 8259 section 7) to text.
//!
//! Takes the inside of a string that was scanned already; gives the text, or says that a surrogate stands alone.

/// Decodes the inside of a scanned string; `None` when it holds a lone surrogate.
pub(crate) fn unescape(inside: &str) -> Option<String> {
    decode(inside, false)
}

/// The same with U+FFFD for lone surrogates: for messages only.
pub(crate) fn unescape_lossy(inside: &str) -> String {
    decode(inside, true).unwrap_or_default()
}

fn decode(inside: &str, lossy: bool) -> Option<String> {
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    loop {
        let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) else {
            out.push_str(rest);
            return Some(out);
        };
        out.push_str(&rest[..at]);
        let escape = rest.as_bytes().get(at + 1)?;
        rest = &rest[at + 2..];
        match escape {
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => match code_point(&mut rest) {
                Some(c) => out.push(c),
                None if lossy => out.push('\u{fffd}'),
                None => return None,
            },
            &b => out.push(char::from(b)),
        }
    }
}

/// Reads the digits after `\u`, and the second half of a surrogate pair when there is one.
fn code_point(rest: &mut &str) -> Option<char> {
    let first = unit(rest)?;
    *rest = &rest[4..];
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    let second = unit(rest.strip_prefix("\\u")?)?;
    if !(0xdc00..0xe000).contains(&second) {
        return None;
    }
    *rest = &rest[6..];
    char::from_u32(0x10000 + ((first - 0xd800) << 10 | (second - 0xdc00)))
}

fn unit(digits: &str) -> Option<u32> {
    u32::from_str_radix(digits.get(..4)?, 16).ok()
}
