//! Encoding of strings as JSON strings, including the quotes.
//!
//! Encoded strings are appended to a buffer. Short strings, which are most strings of a message, need a few wide loads
//! and stores; long strings and strings with escapes use a slower path.

use crate::escape::{self, ESCAPES, MAX_ESCAPED_LENGTH};
use crate::scan::{first_special, plain_end};

/// 64-bit word of eight quotes.
const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);

/// Maximum length in bytes of a string that is appended by a few wide stores.
const MAX_SHORT_LENGTH: usize = 64;

/// Appends a string as JSON, with quotes and escape sequences.
pub(crate) fn append(bytes: &[u8], out: &mut Vec<u8>) {
    let done = match bytes.len() {
        0..8 => append_under_eight(bytes, out),
        8..=16 => append_words(bytes, out),
        17..=32 => append_halves::<16, 34>(bytes, out),
        33..=MAX_SHORT_LENGTH => append_halves::<32, 66>(bytes, out),
        _ => false,
    };
    if !done {
        append_any(bytes, out);
    }
}

/// Appends a string of any length as JSON.
#[inline(never)]
fn append_any(bytes: &[u8], out: &mut Vec<u8>) {
    if bytes.len() < 8 {
        return append_with_escapes(bytes, out);
    }
    // Short text reaches this function only if it must be escaped.
    let plain = if bytes.len() > MAX_SHORT_LENGTH {
        plain_end(bytes, 0)
    } else {
        0
    };
    let (plain, rest) = bytes.split_at(plain);
    let rest_room = if rest.is_empty() {
        0
    } else {
        escape::initial_capacity(rest.len())
    };
    out.reserve(plain.len() + rest_room + 2);
    out.push(b'"');
    out.extend_from_slice(plain);
    if !rest.is_empty() {
        escape::escape(rest, out);
    }
    out.push(b'"');
}

/// Appends fewer than eight bytes between quotes, each escaped if necessary.
fn append_with_escapes(bytes: &[u8], out: &mut Vec<u8>) {
    /// Room for two quotes and seven escaped bytes, each written as a complete sequence.
    const ROOM: usize = 1 + 8 * MAX_ESCAPED_LENGTH + 1;
    let before = out.len();
    out.extend_from_slice(&[b'"'; ROOM]);
    let Some(room) = out.last_chunk_mut::<ROOM>() else {
        return;
    };
    let mut to = 1;
    for &b in bytes.iter().take(7) {
        let escape = &ESCAPES[usize::from(b)];
        room[to..to + escape.text.len()].copy_from_slice(&escape.text);
        to += escape.length;
    }
    room[to] = b'"';
    out.truncate(before + to + 1);
}

/// Appends fewer than eight bytes between quotes; returns false and appends nothing if a byte must be escaped.
#[inline(always)]
fn append_under_eight(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    /// 64-bit word of eight spaces.
    const SPACES: u64 = u64::from_ne_bytes([b' '; 8]);
    let length = bytes.len() % 8;
    let text = load_word(bytes);
    if is_special(text | SPACES << (8 * length)) {
        return false;
    }
    append_words_at(text | QUOTES << (8 * length), out, length);
    true
}

/// Returns fewer than eight bytes as a word, the first byte lowest, padded with zeros.
#[inline(always)]
pub(crate) fn load_word(bytes: &[u8]) -> u64 {
    let length = bytes.len() % 8;
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (length % 4));
    }
    match (bytes.first(), bytes.get(length / 2), bytes.last()) {
        // One to three bytes: coinciding positions contain the same byte, so that combining them has no effect.
        (Some(&first), Some(&middle), Some(&last)) => {
            let middle = u64::from(middle) << (8 * (length / 2));
            u64::from(first) | middle | u64::from(last) << (8 * (length - 1))
        }
        _ => 0,
    }
}

/// Appends a quote, the first `length` bytes of the word `text`, and a quote, by one store of sixteen bytes that is cut
/// afterwards.
#[inline(always)]
fn append_words_at(text: u64, out: &mut Vec<u8>, length: usize) {
    let before = out.len();
    let low = text << 8 | u64::from(b'"');
    let high = text >> 56 | QUOTES << 8;
    let both = u128::from(low) | u128::from(high) << 64;
    out.extend_from_slice(&both.to_le_bytes());
    out.truncate(before + length + 2);
}

/// Appends eight to sixteen bytes between quotes; returns false and appends nothing if a byte must be escaped.
#[inline(always)]
fn append_words(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) else {
        return false;
    };
    if is_special(u64::from_le_bytes(*first)) | is_special(u64::from_le_bytes(*last)) {
        return false;
    }
    put_halves::<8, 18>((first, last), bytes.len(), out);
    true
}

/// Appends at least `HALF` and at most twice as many bytes between quotes; returns false and appends nothing if a byte
/// must be escaped.
#[inline(always)]
fn append_halves<const HALF: usize, const ROOM: usize>(bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let (Some(first), Some(last)) = (bytes.first_chunk::<HALF>(), bytes.last_chunk::<HALF>())
    else {
        return false;
    };
    for half in [first, last] {
        for block in half.as_chunks().0 {
            if first_special(block).is_some() {
                return false;
            }
        }
    }
    put_halves::<HALF, ROOM>((first, last), bytes.len(), out);
    true
}

/// Appends the first and the last half of `length` bytes, which overlap, between quotes.
#[inline(always)]
fn put_halves<const HALF: usize, const ROOM: usize>(
    (first, last): (&[u8; HALF], &[u8; HALF]),
    length: usize,
    out: &mut Vec<u8>,
) {
    let before = out.len();
    out.extend_from_slice(&[b'"'; ROOM]);
    if let Some(room) = out.last_chunk_mut::<ROOM>() {
        // Changes nothing, but the compiler sees that all indices are within bounds.
        let length = length.clamp(HALF, 2 * HALF);
        room[1..=HALF].copy_from_slice(first);
        room[1 + length - HALF..][..HALF].copy_from_slice(last);
    }
    out.truncate(before + length + 2);
}

/// Returns true if one of eight bytes is a quote, a backslash or a control character.
#[inline(always)]
const fn is_special(word: u64) -> bool {
    /// 64-bit word in which every byte is 0x01.
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    /// 64-bit word in which every byte has only its highest bit set.
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let quote = (word ^ QUOTES).wrapping_sub(LOW);
    let backslash = (word ^ u64::from_ne_bytes([b'\\'; 8])).wrapping_sub(LOW);
    let control = word.wrapping_sub(u64::from_ne_bytes([b' '; 8]));
    (quote | backslash | control) & !word & HIGH != 0
}
