//! Unescaping of JSON strings (RFC 8259 section 7).
//!
//! The input is the contents of a string, without its quotes. The output is written into one allocation that is
//! slightly larger than the output. The functions never scan for the end of the string.

use crate::scan::plain_end;
use crate::simd::{self, BLOCK};

/// Error of an escape sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BadEscape {
    /// The sequence is not valid JSON.
    NotJson,
    /// The sequence is a lone surrogate.
    Surrogate,
}

/// Byte that a letter after a backslash denotes; zero for `u` and for bytes that do not follow a backslash in JSON.
const UNESCAPED_BYTES: [u8; 256] = {
    let mut meanings = [0; 256];
    let known = b"\"\"\\\\//b\x08f\x0cn\nr\rt\t";
    let mut at = 0;
    while at < known.len() {
        meanings[known[at] as usize] = known[at + 1];
        at += 2;
    }
    meanings
};

/// Returns the character of the escape sequence at `at`, and the offset after the sequence.
#[inline]
fn parse_escape(bytes: &[u8], at: usize) -> Result<(char, usize), BadEscape> {
    let Some(&letter) = bytes.get(at + 1) else {
        return Err(BadEscape::NotJson);
    };
    if letter == b'u' {
        let (c, length) = parse_code_point(&bytes[at..])?;
        return Ok((c, at + length));
    }
    match UNESCAPED_BYTES[usize::from(letter)] {
        0 => Err(BadEscape::NotJson),
        meaning => Ok((char::from(meaning), at + 2)),
    }
}

/// Maximum length of a string that is unescaped on the stack, in bytes, so that its text needs one allocation of exact
/// length.
const MAX_STACK_LENGTH: usize = 2 * BLOCK;

/// Number of bytes after the text that complete blocks may overwrite.
const BLOCK_MARGIN: usize = 2 * BLOCK;

/// Returns the text of a string that ends with its closing quote and whose first escape sequence is at `plain`.
/// `further` begins with `bytes` and may be longer, so that the end of the string can be read in complete blocks.
///
/// At most a quarter of the text's length stays unused in the allocation.
pub(crate) fn unescape(bytes: &[u8], plain: usize, further: &[u8]) -> Result<String, BadEscape> {
    if bytes.len() <= MAX_STACK_LENGTH {
        let mut room = [0; MAX_STACK_LENGTH + BLOCK_MARGIN];
        let length = unescape_into(bytes, plain, further, &mut room)?;
        return into_string(room[..length].to_vec());
    }
    // No escape sequence is shorter than the character that it denotes.
    let mut out = vec![0; bytes.len() + BLOCK_MARGIN];
    let length = unescape_into(bytes, plain, further, &mut out)?;
    out.truncate(length);
    if out.capacity() - length > length / 4 {
        out.shrink_to_fit();
    }
    into_string(out)
}

/// Converts the unescaped bytes, which are valid UTF-8, to a string.
fn into_string(text: Vec<u8>) -> Result<String, BadEscape> {
    String::from_utf8(text).map_err(|_| BadEscape::NotJson)
}

/// Writes the text of a string to a buffer that is longer by [`BLOCK_MARGIN`]; returns the length of the text.
fn unescape_into(
    bytes: &[u8],
    plain: usize,
    further: &[u8],
    out: &mut [u8],
) -> Result<usize, BadEscape> {
    out[..plain].copy_from_slice(&bytes[..plain]);
    let (mut at, mut length) = (plain, plain);
    loop {
        (at, length) = unescape_blocks(further, at, out, length);
        match further.get(at) {
            Some(b'"') => return Ok(length),
            Some(b'\\') => {
                let (c, end) = parse_escape(bytes, at)?;
                length += c.encode_utf8(&mut out[length..]).len();
                at = end;
            }
            _ => {
                let end = plain_end(bytes, at);
                if end == at {
                    return Err(BadEscape::NotJson);
                }
                let run = &bytes[at..end];
                out[length..length + run.len()].copy_from_slice(run);
                length += run.len();
                at = end;
            }
        }
    }
}

/// Unescapes block by block from `at` on into `out[length..]`. Stops at the closing quote, at invalid JSON, at an
/// escape sequence of more than one letter, or if less than two blocks remain.
///
/// Blocks are copied completely, and the bytes after an escape sequence are copied again, one byte closer, so that no
/// branch depends on the length of runs.
fn unescape_blocks(
    bytes: &[u8],
    mut at: usize,
    out: &mut [u8],
    mut length: usize,
) -> (usize, usize) {
    let window = |at: usize| bytes.get(at..)?.first_chunk::<{ 2 * BLOCK }>();
    while let (Some(window), Some(room)) = (window(at), out.get_mut(length..)) {
        let Some((block, _)) = window.split_first_chunk() else {
            break;
        };
        let Some(room) = room.first_chunk_mut::<{ 2 * BLOCK }>() else {
            break;
        };
        let marks = simd::text_marks(block);
        let escaped = simd::escaped_mask(marks.backslashes, &mut 0);
        let starts = marks.backslashes & !escaped;
        // An escape sequence that begins with the last byte is handled with the next block.
        let stops = marks.quotes & !escaped | marks.controls | starts & 1 << (BLOCK - 1);
        let end = stops.trailing_zeros() as usize;
        let mut starts = if stops == 0 {
            starts
        } else {
            starts & ((stops & stops.wrapping_neg()) - 1)
        };
        room[..BLOCK].copy_from_slice(block);
        let mut removed = 0;
        while starts != 0 {
            // The remainders change nothing, but the compiler sees that all indices are within bounds.
            let start = starts.trailing_zeros() as usize % BLOCK;
            let to = (start - removed) % BLOCK;
            let meaning = UNESCAPED_BYTES[usize::from(window[start + 1])];
            if meaning == 0 {
                return (at + start, length + to);
            }
            starts &= starts - 1;
            room[to..to + BLOCK].copy_from_slice(&window[start + 1..start + 1 + BLOCK]);
            room[to] = meaning;
            removed += 1;
        }
        at += end;
        length += end - removed;
        if (marks.quotes & !escaped | marks.controls) & stops & stops.wrapping_neg() != 0 {
            break;
        }
    }
    (at, length)
}

/// Parses `\u` and four digits, or two such sequences that form a surrogate pair.
fn parse_code_point(bytes: &[u8]) -> Result<(char, usize), BadEscape> {
    let first = parse_code_unit(bytes, 2).ok_or(BadEscape::NotJson)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first)
            .map(|c| (c, 6))
            .ok_or(BadEscape::Surrogate);
    }
    let second = match bytes.get(6..8) {
        Some(b"\\u") => parse_code_unit(bytes, 8).ok_or(BadEscape::NotJson)?,
        _ => return Err(BadEscape::Surrogate),
    };
    if !(0xdc00..0xe000).contains(&second) {
        return Err(BadEscape::Surrogate);
    }
    let c = char::from_u32(0x10000 + (((first - 0xd800) << 10) | (second - 0xdc00)));
    c.map(|c| (c, 12)).ok_or(BadEscape::Surrogate)
}

/// Parses the four hexadecimal digits at `at`.
fn parse_code_unit(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |value, digit| {
        Some(value << 4 | char::from(*digit).to_digit(16)?)
    })
}

/// Returns the unescaped text of a string without quotes, with U+FFFD for lone surrogates; only for messages and
/// comparisons.
pub(crate) fn unescape_lossy(inside: &str) -> String {
    let bytes = inside.as_bytes();
    let mut out = String::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = at + bytes[at..].iter().take_while(|b| **b != b'\\').count();
        out.push_str(&inside[at..end]);
        at = end;
        if end == bytes.len() {
            break;
        }
        (_, at) = match parse_escape(bytes, at) {
            Ok((c, end)) => (out.push(c), end),
            Err(_) => (out.push('\u{fffd}'), (at + 6).min(bytes.len())),
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use crate::{from_str, thinned, to_string};

    /// Strings are equal after writing and reading, for escape sequences at every position of a SIMD block and at
    /// its borders.
    #[test]
    fn strings_round_trip_at_every_length() {
        for among in ["x", "\n", "é", "\"\\", "\u{1}", "😀"] {
            for length in (0..300).step_by(thinned(17)) {
                let text = format!("{}{among}{}", "x".repeat(length), among.repeat(length % 70));
                let written = to_string(&text);
                assert_eq!(
                    from_str::<String>(&written).as_ref(),
                    Ok(&text),
                    "{written}"
                );
                // Unescapes the string as a part of a document, so that text follows it.
                let list = vec![text.clone(), text];
                assert_eq!(from_str::<Vec<String>>(&to_string(&list)), Ok(list));
            }
        }
    }
}
