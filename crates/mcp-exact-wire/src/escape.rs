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
    out.resize(before + piece.len() + piece.len() / 4 + 3 * BLOCK, 0);
    let (taken, written) = escape_blocks(piece, &mut out[before..]);
    out.truncate(before + written);
    taken
}

/// A block is copied whole, and what follows an escaped character is copied again, one byte further: more bytes than
/// needed, but with no branch that depends on how long the runs are.
fn escape_blocks(bytes: &[u8], out: &mut [u8]) -> (usize, usize) {
    let (mut at, mut length) = (0, 0);
    let window = |at: usize| bytes.get(at..)?.first_chunk::<{ 2 * BLOCK }>();
    while let (Some(window), Some(room)) = (window(at), out.get_mut(length..)) {
        let Some(room) = room.first_chunk_mut::<{ 3 * BLOCK }>() else {
            break;
        };
        let Some((block, _)) = window.split_first_chunk() else {
            break;
        };
        room[..BLOCK].copy_from_slice(block);
        let mut special = block::special_marks(block);
        let mut added = 0;
        while special != 0 {
            // The remainders change nothing, but the compiler sees that all indices are within bounds.
            let from = special.trailing_zeros() as usize % BLOCK;
            let letter = LETTERS[usize::from(window[from])];
            let to = from + added % BLOCK;
            if letter == 0 {
                return (at + from, length + to);
            }
            special &= special - 1;
            room[to + 2..to + 2 + BLOCK].copy_from_slice(&window[from + 1..from + 1 + BLOCK]);
            room[to..to + 2].copy_from_slice(&[b'\\', letter]);
            added += 1;
        }
        at += BLOCK;
        length += BLOCK + added;
    }
    (at, length)
}
