//! Text to the inside of JSON strings (RFC 8259 section 7).
//!
//! Takes text, appends it escaped; long text block by block. Escapes what has to be and nothing else.

use crate::block::{self, BLOCK};
use crate::scan::plain_end;

/// The letter that stands for a character after a backslash; zero where there is none.
const LETTERS: [u8; 256] = {
    let mut letters = [0; 256];
    let known = b"\"\"\\\\\x08b\x0cf\nn\rr\tt";
    let mut at = 0;
    while at < known.len() {
        letters[known[at] as usize] = known[at + 1];
        at += 2;
    }
    letters
};

/// What stands for a character: a backslash and its letter, or two zeros.
const PAIRS: [[u8; 2]; 256] = {
    let mut pairs = [[0; 2]; 256];
    let mut at = 0;
    while at < 256 {
        if LETTERS[at] != 0 {
            pairs[at] = [b'\\', LETTERS[at]];
        }
        at += 1;
    }
    pairs
};

/// Input that is escaped at a time, so that the room made for it stays in the cache.
const PIECE: usize = 2048;

/// Appends `bytes` from `at` on, where the first character stands that needs escaping.
#[inline(never)]
pub(crate) fn escape(bytes: &[u8], mut at: usize, out: &mut Vec<u8>) {
    while let Some(&b) = bytes.get(at) {
        let taken = blocks(&bytes[at..], out);
        if taken > 0 {
            at += taken;
            continue;
        }
        if let Some(start) = one(b, out) {
            at += start;
        }
        let end = plain_end(bytes, at);
        out.extend_from_slice(&bytes[at..end]);
        at = end;
    }
}

/// Appends one character if it needs escaping; how long it was.
fn one(b: u8, out: &mut Vec<u8>) -> Option<usize> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match LETTERS[usize::from(b)] {
        0 if b >= 0x20 => return None,
        0 => {
            let digits = [HEX[usize::from(b >> 4)], HEX[usize::from(b & 15)]];
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&digits);
        }
        letter => out.extend_from_slice(&[b'\\', letter]),
    }
    Some(1)
}

/// Appends as many whole blocks as there are in a piece, up to a character that has no letter; how much was taken.
fn blocks(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    if bytes.len() < 2 * BLOCK {
        return 0;
    }
    let piece = bytes.get(..PIECE + BLOCK).unwrap_or(bytes);
    let before = out.len();
    // Most characters stay one. Where there is too little room for more whole blocks, the next piece goes on.
    out.resize(before + piece.len() + piece.len() / 8 + 4 * BLOCK, 0);
    let (taken, written) = escape_blocks(piece, &mut out[before..]);
    out.truncate(before + written);
    taken
}

/// Bytes that are copied at a time: more than most runs between escaped characters are long.
const STRIDE: usize = 32;

/// A run between escaped characters is copied by its first [`STRIDE`] bytes, whatever its length: more bytes than needed,
/// which the next run overwrites, but with no branch that depends on how long most runs are.
fn escape_blocks(bytes: &[u8], out: &mut [u8]) -> (usize, usize) {
    let (mut at, mut length) = (0, 0);
    let window = |at: usize| bytes.get(at..)?.first_chunk::<{ 2 * BLOCK }>();
    while let (Some(window), Some(room)) = (window(at), out.get_mut(length..)) {
        let Some(room) = room.first_chunk_mut::<{ 4 * BLOCK }>() else {
            break;
        };
        let Some((block, _)) = window.split_first_chunk() else {
            break;
        };
        let mut special = block::special_marks(block);
        let (mut from, mut added) = (0, 0);
        while special != 0 {
            // The remainders change nothing, but the compiler sees that all indices are within bounds.
            let (end, so_far) = (special.trailing_zeros() as usize % BLOCK, added % BLOCK);
            let pair = PAIRS[usize::from(window[end])];
            let to = end + so_far;
            run(window, room, (from, end), so_far);
            if pair == [0; 2] {
                return (at + end, length + to);
            }
            special &= special - 1;
            room[to..to + 2].copy_from_slice(&pair);
            from = end + 1;
            added += 1;
        }
        run(window, room, (from, BLOCK), added % (2 * BLOCK));
        at += BLOCK;
        length += BLOCK + added;
    }
    (at, length)
}

/// Copies the bytes of a block from `from` to `end`, `added` bytes further on.
#[inline(always)]
fn run(
    window: &[u8; 2 * BLOCK],
    room: &mut [u8; 4 * BLOCK],
    (from, end): (usize, usize),
    added: usize,
) {
    // As the remainders above: it changes nothing.
    let from = from.min(BLOCK);
    let to = from + added;
    room[to..to + STRIDE].copy_from_slice(&window[from..from + STRIDE]);
    if end > from + STRIDE {
        let (from, to) = (from + STRIDE, to + STRIDE);
        room[to..to + STRIDE].copy_from_slice(&window[from..from + STRIDE]);
    }
}
