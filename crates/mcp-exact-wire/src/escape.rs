//! Escaping of strings for JSON (RFC 8259 section 7).
//!
//! Escaped bytes are appended to a buffer; long strings are escaped in blocks. Only the characters that JSON requires
//! to be escaped are escaped.

use crate::scan::plain_end;
use crate::simd::{self, BLOCK};

/// Maximum length of an escaped byte, in bytes.
pub(crate) const MAX_ESCAPED_LENGTH: usize = 6;

/// Escape sequence of a byte in a string.
#[derive(Clone, Copy)]
pub(crate) struct Escape {
    /// Escape sequence, padded to eight bytes, which are always written together.
    pub(crate) text: [u8; 8],
    /// Number of bytes of the escape sequence.
    pub(crate) length: usize,
}

/// Escape sequence of each byte.
pub(crate) static ESCAPES: [Escape; 256] = {
    /// Hexadecimal digits by their values.
    const HEX: &[u8; 16] = b"0123456789abcdef";
    /// Letters of the two-character escape sequences by control character; zero if the character has none.
    const SHORT_ESCAPES: &[u8; 16] = b"\0\0\0\0\0\0\0\0btn\0fr\0\0";
    let mut escapes = [Escape {
        text: [0; 8],
        length: 1,
    }; 256];
    let mut b = 0;
    while b < 256 {
        let (text, length): (&[u8], _) = match b as u8 {
            b'"' => (b"\\\"", 2),
            b'\\' => (b"\\\\", 2),
            0..0x10 if SHORT_ESCAPES[b] != 0 => (&[b'\\', SHORT_ESCAPES[b]], 2),
            0..0x20 => (&[b'\\', b'u', b'0', b'0', HEX[b >> 4], HEX[b & 15]], 6),
            _ => (&[b as u8], 1),
        };
        let mut at = 0;
        while at < length {
            escapes[b].text[at] = text[at];
            at += 1;
        }
        escapes[b].length = length;
        b += 1;
    }
    escapes
};

/// Number of input bytes that are escaped at a time without shuffles, so that the output buffer stays in the cache.
const PIECE_LENGTH: usize = 2048;

/// Returns the initial capacity of the output for `length` bytes, which suffices if most characters need no escape, and
/// always for the first block.
pub(crate) fn initial_capacity(length: usize) -> usize {
    length + length / 8 + length.clamp(16, BLOCK) * MAX_ESCAPED_LENGTH + 2 * STRIDE
}

/// Appends the escaped form of `bytes`.
#[inline(never)]
pub(crate) fn escape(bytes: &[u8], out: &mut Vec<u8>) {
    #[cfg(target_arch = "x86_64")]
    if crate::escape_ssse3::is_available() {
        return escape_with_shuffles(bytes, out);
    }
    escape_without_shuffles(bytes, out);
}

/// Appends the escaped form of `bytes`, with the byte shuffles of SSSE3.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn escape_with_shuffles(mut bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(initial_capacity(bytes.len()));
    loop {
        // SAFETY: the only caller has checked that the processor has the required instructions.
        let (taken, written) =
            unsafe { crate::escape_ssse3::escape(bytes, out.spare_capacity_mut()) };
        // SAFETY: that many bytes of the spare capacity are written.
        unsafe { out.set_len(out.len() + written) };
        bytes = &bytes[taken..];
        if bytes.is_empty() {
            return;
        }
        // The rest of the string is estimated to have the same density of escapes. A long string is most of its
        // message, so the buffer does not double, as a vector would, but grows in steps.
        let dense = bytes.len() * written.div_ceil(taken.max(1)).clamp(1, MAX_ESCAPED_LENGTH);
        out.reserve_exact(initial_capacity(dense).max(out.len() / 8));
    }
}

/// Appends the escaped form of `bytes`, on processors without byte shuffles.
fn escape_without_shuffles(mut bytes: &[u8], out: &mut Vec<u8>) {
    while let Some(&b) = bytes.first() {
        let taken = append_blocks(bytes, out);
        bytes = &bytes[taken..];
        if taken == 0 {
            let escape = &ESCAPES[usize::from(b)];
            // One more byte is reserved for the closing quote.
            reserve_room(bytes.len(), bytes.len() + MAX_ESCAPED_LENGTH, out);
            out.extend_from_slice(&escape.text[..escape.length]);
            let (plain, rest) = bytes.split_at(plain_end(bytes, 1));
            out.extend_from_slice(&plain[1..]);
            bytes = rest;
        }
    }
}

/// Reserves capacity for `least` bytes and, if the buffer has to grow, for the `rest` of the string, instead of
/// doubling the capacity.
fn reserve_room(rest: usize, least: usize, out: &mut Vec<u8>) {
    if out.capacity() - out.len() < least {
        out.reserve_exact(initial_capacity(rest).max(least).max(out.len() / 8));
    }
}

/// Escapes and appends the complete blocks of the input; returns the number of consumed bytes.
fn append_blocks(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    if bytes.len() < 2 * BLOCK {
        return 0;
    }
    let piece = bytes.get(..PIECE_LENGTH + BLOCK).unwrap_or(bytes);
    let before = out.len();
    // Most characters need no escape. If the room does not suffice for all complete blocks, the next call continues.
    let most = piece.len() + piece.len() / 8 + BLOCK_ROOM;
    reserve_room(bytes.len(), most, out);
    out.resize(before + most, 0);
    let (taken, written) = escape_blocks(piece, &mut out[before..]);
    out.truncate(before + written);
    taken
}

/// Number of bytes that are copied at a time, which is longer than most runs between escaped characters.
const STRIDE: usize = 32;

/// Number of output bytes to reserve for a block: each of its bytes may become six, and a vector store writes more
/// bytes than its result has.
const BLOCK_ROOM: usize = MAX_ESCAPED_LENGTH * BLOCK + 2 * STRIDE;

/// Escapes complete blocks; returns the numbers of consumed and written bytes. At least [`STRIDE`] bytes of each run
/// between escaped characters are copied and the next run overwrites the excess, so that no branch depends on the
/// length of short runs.
fn escape_blocks(bytes: &[u8], out: &mut [u8]) -> (usize, usize) {
    let (mut at, mut length) = (0, 0);
    let window = |at: usize| bytes.get(at..)?.first_chunk::<{ 2 * BLOCK }>();
    while let (Some(window), Some(room)) = (window(at), out.get_mut(length..)) {
        let Some(room) = room.first_chunk_mut::<BLOCK_ROOM>() else {
            break;
        };
        let Some((block, _)) = window.split_first_chunk() else {
            break;
        };
        let mut special = simd::special_marks(block);
        let (mut from, mut to) = (0, 0);
        while special != 0 {
            // The remainder and the minimum below change nothing, but the compiler sees that all indices are within
            // bounds.
            let end = special.trailing_zeros() as usize % BLOCK;
            to = copy_run(window, room, (from, end), to).min(MAX_ESCAPED_LENGTH * BLOCK);
            let escape = &ESCAPES[usize::from(window[end])];
            room[to..to + escape.text.len()].copy_from_slice(&escape.text);
            to += escape.length;
            special &= special - 1;
            from = end + 1;
        }
        length += copy_run(window, room, (from, BLOCK), to);
        at += BLOCK;
    }
    (at, length)
}

/// Copies the bytes of a block from `from` to `end`; returns the end offset in the output.
#[inline(always)]
fn copy_run(
    window: &[u8; 2 * BLOCK],
    room: &mut [u8; BLOCK_ROOM],
    (from, end): (usize, usize),
    to: usize,
) -> usize {
    // The remainder and the minimum change nothing, as above.
    let (from, to) = (from.min(BLOCK), to.min(MAX_ESCAPED_LENGTH * BLOCK));
    room[to..to + STRIDE].copy_from_slice(&window[from..from + STRIDE]);
    if end > from + STRIDE {
        let (from, to) = (from + STRIDE, to + STRIDE);
        room[to..to + STRIDE].copy_from_slice(&window[from..from + STRIDE]);
    }
    to + end - from
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::append;
    use crate::thinned;

    /// Returns the bytes as escaped one by one according to RFC 8259.
    fn expected(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for &b in bytes {
            match b {
                b'"' | b'\\' => out.extend([b'\\', b]),
                0x08 => out.extend(b"\\b"),
                0x09 => out.extend(b"\\t"),
                0x0a => out.extend(b"\\n"),
                0x0c => out.extend(b"\\f"),
                0x0d => out.extend(b"\\r"),
                0..0x20 => out.extend(format!("\\u{b:04x}").bytes()),
                _ => out.push(b),
            }
        }
        out
    }

    /// Checks that every implementation appends the same text to earlier text.
    fn check(bytes: &[u8]) {
        let expected = expected(bytes);
        for way in [escape_without_shuffles as fn(&[u8], &mut _), escape] {
            let mut out = b"before".to_vec();
            way(bytes, &mut out);
            assert_eq!(out, [b"before", &*expected].concat(), "{bytes:?}");
        }
        let mut out = b"before".to_vec();
        append(bytes, &mut out);
        assert_eq!(out, [b"before\"", &*expected, b"\""].concat(), "{bytes:?}");
    }

    /// Returns pseudorandom bytes: of 256 bytes, about `share` must be escaped, and about 16 are outside of ASCII.
    fn bytes(seed: u32, length: usize, share: u32) -> Vec<u8> {
        /// Control characters, the quote and the backslash: bytes that must be escaped.
        const SPECIAL: &[u8; 16] = b"\x00\x01\x07\x08\t\n\x0b\x0c\r\x0e\x0f\x10\x1b\x1f\"\\";
        /// Bytes that need no escape, among them the neighbours of the special ones.
        const PLAIN: &[u8; 8] = b" !#[]az\x7f";
        let mut state = seed * 2 + 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state >> 8
        };
        let mut byte = || match next() % 256 {
            at if at < share => SPECIAL[next() as usize % 16],
            at if at < share + 16 => 0x80 + (next() % 128) as u8,
            _ => PLAIN[next() as usize % 8],
        };
        (0..length).map(|_| byte()).collect()
    }

    #[test]
    fn every_byte_escapes_at_every_position() {
        let length = 2 * BLOCK + 21;
        for among in [b"x", &b"\"x\n"[..], b"\xc3\xa9", b"\x01"] {
            let text: Vec<u8> = among.iter().copied().cycle().take(length).collect();
            for b in (0..=u8::MAX).step_by(thinned(67)) {
                for place in (0..length).step_by(thinned(29)) {
                    let mut text = text.clone();
                    text[place] = b;
                    check(&text);
                }
            }
        }
    }

    /// Each kind of byte is escaped correctly at each position of strings of up to two blocks.
    #[test]
    fn every_kind_escapes_at_every_length() {
        let kinds = b"\x00\x07\x08\t\n\x0b\x0c\r\x0e\x10\x1f !\"#[\\]\x7f\x80\xa2\xdc\xff";
        for length in (0..=2 * BLOCK).step_by(thinned(31)) {
            for place in (0..length).step_by(thinned(19)) {
                for &b in kinds.iter().step_by(thinned(5)) {
                    let mut text = vec![b'x'; length];
                    text[place] = b;
                    check(&text);
                }
            }
        }
    }

    /// Strings with many and with few special bytes are escaped correctly at each length.
    #[test]
    fn every_length_and_density_escapes() {
        for length in (0..=200).step_by(thinned(13)) {
            for share in [0, 1, 8, 40, 128, 240] {
                for seed in (0..8).step_by(thinned(8)) {
                    check(&bytes(length as u32 * 8 + seed, length, share));
                }
            }
        }
        for share in [0, 1, 8, 40, 240] {
            check(&bytes(7, 100_000 / thinned(50), share));
        }
    }

    /// Strings in which each byte becomes a sequence of six bytes are escaped correctly.
    #[test]
    fn sixfold_growth_fits_the_buffer() {
        for length in [63, 64, 65, 1_000, 100_000 / thinned(50)] {
            check(&vec![1; length]);
            check(&[vec![b'x'; length], vec![1; length]].concat());
        }
    }

    /// The capacity of the output buffer exceeds the length of the escaped text by less than a quarter.
    #[test]
    fn long_strings_do_not_double_buffers() {
        for share in [0, 1, 10, 40, 120] {
            let mut out = Vec::new();
            append(&bytes(3, 1_000_000 / thinned(200), share), &mut out);
            let spare = out.capacity() - out.len();
            assert!(spare < out.len() / 4, "{spare} beside {}", out.len());
        }
    }
}
