//! Finding the end of a value by its quotes and brackets only.
//!
//! These functions skip text that is decoded, and so validated, later. For valid JSON the returned end is exact; for
//! other text it is any position or `None`. The functions read each byte once, and do not recurse or allocate.

use crate::scan;
use crate::simd::{self, BLOCK, Block};

/// Returns the end offset of the value that starts at `at`; `None` if the text ends before the value.
#[inline]
pub(crate) fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at) {
        Some(b'"') => string_end(bytes, special_end(bytes, at + 1)),
        // Empty objects are frequent, such as capabilities.
        Some(b'{' | b'[') if matches!(bytes.get(at + 1), Some(b'}' | b']')) => Some(at + 2),
        Some(b'{' | b'[') => container_end(bytes, at),
        _ => scan::scalar_end(bytes, at).ok(),
    }
}

/// Returns the offset of the first quote or backslash from `at` on.
fn special_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len())
}

/// Returns the end of the string that contains `at`, including the closing quote.
#[inline(never)]
pub(crate) fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    if bytes.get(at) == Some(&b'"') {
        return Some(at + 1);
    }
    closing_quote(bytes, at, 0)
}

/// Returns the offset after the first unescaped quote from `at` on; `carry` is true if the byte at `at` is escaped.
#[inline]
fn closing_quote(bytes: &[u8], mut at: usize, mut carry: u64) -> Option<usize> {
    loop {
        let block = block_at(bytes, at)?;
        let marks = simd::text_marks(&block);
        let quotes = marks.quotes & !simd::escaped_mask(marks.backslashes, &mut carry);
        if quotes != 0 {
            return Some(at + quotes.trailing_zeros() as usize + 1);
        }
        at += BLOCK;
        if marks.quotes | marks.backslashes == 0 {
            // Long plain text is searched with the widest available vectors.
            at = special_end(bytes, at);
        }
    }
}

/// Returns the end of the object or array that starts at `at`.
#[inline(never)]
fn container_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let (mut carry, mut in_string, mut depth) = (0, 0, 0);
    loop {
        let block = block_at(bytes, at)?;
        let marks = simd::bracket_marks(&block);
        let quotes = marks.quotes & !simd::escaped_mask(marks.backslashes, &mut carry);
        let inside = simd::string_mask(quotes) ^ in_string;
        if in_string == u64::MAX && quotes == 0 {
            // The rest of a long string has no brackets that count.
            at = closing_quote(bytes, at + BLOCK, carry)?;
            (carry, in_string) = (0, 0);
            continue;
        }
        in_string = if inside >> (BLOCK - 1) == 1 {
            u64::MAX
        } else {
            0
        };
        let (opening, closing) = (marks.opening & !inside, marks.closing & !inside);
        if opening | closing == 0 {
            at += BLOCK;
            continue;
        }
        let closed = closing.count_ones() as usize;
        if closed >= depth
            && let Some(end) = outermost_closing(opening, closing, depth)
        {
            return Some(at + end);
        }
        depth = depth + opening.count_ones() as usize - closed;
        at += BLOCK;
    }
}

/// Returns the offset after the bracket that closes the outermost container, if the bracket is in the block.
#[inline]
fn outermost_closing(opening: u64, mut closing: u64, mut depth: usize) -> Option<usize> {
    while closing != 0 {
        let below = (closing & closing.wrapping_neg()) - 1;
        // Earlier closing brackets were subtracted from `depth`, so that the sum is the number of open containers.
        if depth.wrapping_add((opening & below).count_ones() as usize) == 1 {
            return Some(below.count_ones() as usize + 1);
        }
        depth = depth.wrapping_sub(1);
        closing &= closing - 1;
    }
    None
}

/// Returns the block at `at`, padded with spaces after the end of the text; `None` beyond the end.
#[inline]
pub(crate) fn block_at(bytes: &[u8], at: usize) -> Option<Block> {
    let rest = bytes.get(at..)?;
    if let Some(block) = rest.first_chunk() {
        return Some(*block);
    }
    if rest.is_empty() {
        return None;
    }
    let mut block = [b' '; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    Some(block)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thinned;

    /// Parts of the tested values.
    const PIECES: &[&str] = &[
        r#""""#,
        r#""\"""#,
        r#""\\""#,
        r#""\\\"{[""#,
        r#""]}\\\\""#,
        r#""\\\\\"\\""#,
        "1",
        "[]",
        "{}",
        r#"{"a\\":[{"}":"\"]"}]}"#,
        "[[[[1]]]]",
    ];

    /// Returns values in which quotes, backslashes and brackets occur at every position of a block.
    fn values() -> impl Iterator<Item = String> {
        let lengths = (0..200).step_by(thinned(37));
        lengths.flat_map(move |length| {
            PIECES.iter().map(move |piece| {
                let run = "x".repeat(length);
                let slashes = "\\\\".repeat(length % 70);
                format!(r#"{{"{run}":[{piece},{{"{slashes}":{piece}}}],"b":"{run}\"{slashes}","c":{piece}}}"#)
            })
        })
    }

    /// Checks that skipping finds the same end as scanning.
    fn check(bytes: &[u8], at: usize) {
        assert_eq!(value_end(bytes, at), scan::value_end(bytes, at).ok());
    }

    #[test]
    fn skip_ends_agree_with_scan() {
        for value in values() {
            // Neither the text after the value nor its position in a block has an effect.
            let text = format!("    {value}]}}\"{value}");
            check(value.as_bytes(), 0);
            check(text.as_bytes(), 4);
            for (at, _) in value.match_indices(":\"") {
                check(value.as_bytes(), at + 1);
            }
        }
    }

    #[test]
    fn truncated_values_have_no_end() {
        for value in values().step_by(thinned(29).max(7)) {
            for length in (1..value.len()).step_by(thinned(11)) {
                check(&value.as_bytes()[..length], 0);
            }
        }
    }

    /// Text that ends inside a value, and a closing bracket without an opening one, have no end.
    #[test]
    fn unmatched_closing_bracket_ends_nothing() {
        for text in ["", "]", "[", "{\"a\":", "\"", "\"\\"] {
            assert_eq!(value_end(text.as_bytes(), 0), None, "{text}");
        }
    }
}
