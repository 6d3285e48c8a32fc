//! Escaping with byte shuffles (SSSE3), on processors that have them: no branch depends on where the escapes are.
//!
//! Takes text and an output buffer; returns how much of both is used. Never makes room.

use std::arch::x86_64::{
    __m128i, _mm_adds_epu8, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_loadu_si128, _mm_max_epu8,
    _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    _mm_setzero_si128, _mm_shuffle_epi8, _mm_storeu_si128, _mm_unpackhi_epi64, _mm_unpacklo_epi64,
};
use std::mem::MaybeUninit;

use crate::escape::{ESCAPES, LONGEST};
use crate::simd::BLOCK;
use crate::text::word;

/// Bytes of a vector.
const VECTOR: usize = 16;

/// Bytes that a vector takes in at a time, because each of them may become two.
const EIGHT: usize = VECTOR / 2;

/// Room for a block: each of its bytes may become six, and a vector store is longer than its result.
const ROOM: usize = LONGEST * BLOCK + VECTOR;

/// Room for a vector.
const LITTLE_ROOM: usize = LONGEST * VECTOR + VECTOR;

/// The letters of the control characters below 0x10 that have one.
const LETTERS: [u8; VECTOR] = *b"\0\0\0\0\0\0\0\0btn\0fr\0\0";

/// For each set of special bytes among eight: where each byte of the outcome comes from. Places 0 to 7 are the eight bytes,
/// place 8 is a backslash. Bytes behind the result have no meaning.
static SOURCES: [[u8; VECTOR]; 256] = {
    let mut sources = [[0; VECTOR]; 256];
    let mut special = 0;
    while special < 256 {
        let (mut from, mut to) = (0, 0);
        while from < 8 {
            if special >> from & 1 == 1 {
                sources[special][to] = 8;
                to += 1;
            }
            sources[special][to] = from;
            (from, to) = (from + 1, to + 1);
        }
        special += 1;
    }
    sources
};

/// Returns true if the processor has the instructions. Cheap: asked of the processor once and then kept.
#[inline]
pub(crate) fn is_available() -> bool {
    is_x86_feature_detected!("ssse3") && is_x86_feature_detected!("popcnt")
}

/// Escapes `bytes` into `room` up to the end, or until the room is used up. Returns the number of bytes read, and the number
/// of bytes written at the start of `room`.
#[target_feature(enable = "ssse3,popcnt")]
pub(crate) fn escape(bytes: &[u8], room: &mut [MaybeUninit<u8>]) -> (usize, usize) {
    let (blocks, end) = bytes.as_chunks::<BLOCK>();
    let (mut at, mut length) = (0, 0);
    for block in blocks {
        let Some(room) = room
            .get_mut(length..)
            .and_then(<[_]>::first_chunk_mut::<ROOM>)
        else {
            return (at, length);
        };
        let mut vectors = [_mm_setzero_si128(); BLOCK / VECTOR];
        for (vector, part) in vectors.iter_mut().zip(block.as_chunks().0) {
            *vector = load(part);
        }
        at += BLOCK;
        length += expand_vectors(&vectors, room);
    }
    let (parts, few) = end.as_chunks();
    for part in parts {
        let Some(room) = little_room(room, length) else {
            return (at, length);
        };
        at += VECTOR;
        length += expand_vectors(&[load(part)], room);
    }
    if let (1.., Some(room)) = (few.len(), little_room(room, length)) {
        // Spaces after the end, which stay spaces and do not count.
        let padded = expand_vectors(&[load_few(few)], room);
        at += few.len();
        length += padded - (VECTOR - few.len());
    }
    (at, length)
}

#[inline]
fn little_room(
    room: &mut [MaybeUninit<u8>],
    from: usize,
) -> Option<&mut [MaybeUninit<u8>; LITTLE_ROOM]> {
    room.get_mut(from..)?.first_chunk_mut()
}

/// Escapes vectors; how long they became.
#[inline]
#[target_feature(enable = "ssse3,popcnt")]
fn expand_vectors<const N: usize, const R: usize>(
    vectors: &[__m128i; N],
    room: &mut [MaybeUninit<u8>; R],
) -> usize {
    // What is counted is written: whatever the bytes are, there is room for them.
    const { assert!(R >= LONGEST * VECTOR * N + VECTOR) };
    let mut texts = *vectors;
    let mut special = 0;
    let mut least = _mm_set1_epi8(0x20);
    for (index, text) in texts.iter_mut().enumerate() {
        let bytes = *text;
        // The sum keeps bytes below 0x10 apart by their low half; with the others the high bit is set, which gives zero.
        let places = _mm_adds_epu8(bytes, _mm_set1_epi8(0x70));
        let letters = _mm_shuffle_epi8(load(&LETTERS), places);
        let quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x22));
        let backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x5c));
        let lettered = _mm_cmpgt_epi8(letters, _mm_setzero_si128());
        let both = _mm_or_si128(quotes, backslashes);
        special |= bits(_mm_or_si128(both, lettered), index);
        // A letter is greater than the character that it stands for.
        *text = _mm_max_epu8(bytes, letters);
        least = _mm_min_epu8(least, *text);
    }
    if _mm_movemask_epi8(_mm_cmpeq_epi8(least, _mm_set1_epi8(0x20))) != 0xffff {
        return expand_with_controls(*vectors, texts, special, room);
    }
    if special == 0 {
        for (text, place) in texts.into_iter().zip(room.as_chunks_mut().0) {
            store(text, place);
        }
        return N * VECTOR;
    }
    let mut to = 0;
    for (index, text) in texts.into_iter().enumerate() {
        for (half, source) in halves(text).into_iter().enumerate() {
            to += spread(source, byte(special, 2 * index + half), &mut room[to..]);
        }
    }
    to
}

/// Writes eight bytes, a backslash before each one that is special; how many they became. The bytes are the lower half of
/// `source`, backslashes the upper one.
#[inline]
#[target_feature(enable = "ssse3,popcnt")]
fn spread(source: __m128i, special: u8, room: &mut [MaybeUninit<u8>]) -> usize {
    let Some(place) = room.first_chunk_mut() else {
        return 0;
    };
    let from = load(&SOURCES[usize::from(special)]);
    store(_mm_shuffle_epi8(source, from), place);
    EIGHT + special.count_ones() as usize
}

/// The same where characters without a letter are among them: eight bytes that hold one are written byte by byte.
#[inline(never)]
#[target_feature(enable = "ssse3,popcnt")]
fn expand_with_controls<const N: usize>(
    vectors: [__m128i; N],
    texts: [__m128i; N],
    special: u64,
    room: &mut [MaybeUninit<u8>],
) -> usize {
    let mut to = 0;
    for (index, (bytes, text)) in vectors.into_iter().zip(texts).enumerate() {
        let low = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1f)), text);
        let controls = bits(low, 0);
        let bytes = to_bytes(bytes);
        for (half, source) in halves(text).into_iter().enumerate() {
            if byte(controls, half) == 0 {
                to += spread(source, byte(special, 2 * index + half), &mut room[to..]);
                continue;
            }
            for &b in &bytes[EIGHT * half..][..EIGHT] {
                let escape = &ESCAPES[usize::from(b)];
                if let Some(place) = room[to..].first_chunk_mut() {
                    *place = escape.text.map(MaybeUninit::new);
                    to += escape.length;
                }
            }
        }
    }
    to
}

/// Eight bytes and eight backslashes, for each half of a vector.
#[inline]
#[target_feature(enable = "sse2")]
fn halves(text: __m128i) -> [__m128i; 2] {
    let backslashes = _mm_set1_epi8(0x5c);
    [
        _mm_unpacklo_epi64(text, backslashes),
        _mm_unpackhi_epi64(text, backslashes),
    ]
}

/// The marks of eight bytes among sixty-four.
#[inline]
fn byte(marks: u64, index: usize) -> u8 {
    marks.to_le_bytes()[index % 8]
}

/// Less than sixteen bytes, and spaces behind them. Avoids memory: a large load after several small stores has to wait.
#[inline]
#[target_feature(enable = "sse2")]
fn load_few(bytes: &[u8]) -> __m128i {
    const SPACES: u64 = u64::from_ne_bytes([b' '; 8]);
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (i64::from_le_bytes(*first), u64::from_le_bytes(*last));
        // Of the last eight bytes, those that are not among the first ones, and spaces.
        let twice = u128::from(last) | u128::from(SPACES) << 64;
        let behind = twice >> (8 * (VECTOR - bytes.len() % VECTOR));
        return _mm_set_epi64x((behind as u64).cast_signed(), first);
    }
    let few = word(bytes) | SPACES << (8 * (bytes.len() % 8));
    _mm_set_epi64x(SPACES.cast_signed(), few.cast_signed())
}

#[inline]
#[target_feature(enable = "sse2")]
#[allow(unsafe_code)]
fn to_bytes(vector: __m128i) -> [u8; VECTOR] {
    // SAFETY: both are sixteen bytes, of which all values are valid.
    unsafe { std::mem::transmute(vector) }
}

#[inline]
#[target_feature(enable = "sse2")]
#[allow(unsafe_code)]
fn load(part: &[u8; VECTOR]) -> __m128i {
    // SAFETY: the reference is to sixteen bytes, and the load wants no alignment.
    unsafe { _mm_loadu_si128(part.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
#[allow(unsafe_code)]
fn store(bytes: __m128i, place: &mut [MaybeUninit<u8>; VECTOR]) {
    // SAFETY: the reference is to sixteen bytes that may be anything, and the store wants no alignment.
    unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), bytes) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn bits(equal: __m128i, index: usize) -> u64 {
    u64::from(_mm_movemask_epi8(equal).cast_unsigned()) << (VECTOR * index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thinned;

    /// With any size of the room: the text up to the returned position is escaped, and only little room is left unused.
    #[test]
    #[allow(unsafe_code)]
    fn stops_where_room_ends_and_goes_on_from_there() {
        if !is_available() {
            return;
        }
        let bytes = b"plain \"and\" not,\n\x01\x02 by turns of thirty-nine".repeat(7);
        for length in (0..=bytes.len()).step_by(thinned(41)) {
            let bytes = &bytes[..length];
            for room in (0..=ROOM + 100).step_by(thinned(23)) {
                let mut out = Vec::with_capacity(room);
                let room = &mut out.spare_capacity_mut()[..room];
                // SAFETY: it is available.
                let (taken, written) = unsafe { escape(bytes, room) };
                // SAFETY: that many bytes are written.
                unsafe { out.set_len(written) };
                let expected = bytes[..taken].iter().flat_map(|&b| {
                    let escape = &ESCAPES[usize::from(b)];
                    &escape.text[..escape.length]
                });
                assert!(out.iter().eq(expected), "{length} bytes");
                let least = if length - taken < BLOCK {
                    LITTLE_ROOM
                } else {
                    ROOM
                };
                assert!(taken == length || out.capacity() - written < least);
            }
        }
    }
}
