//! Escaping with byte shuffles (SSSE3), on processors with these instructions. No branch depends on the positions of
//! the escapes.
//!
//! The functions return the number of consumed input bytes and of written output bytes. The output buffer never grows.

use std::arch::x86_64::{
    __m128i, _mm_adds_epu8, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_loadu_si128, _mm_max_epu8,
    _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    _mm_setzero_si128, _mm_shuffle_epi8, _mm_storeu_si128, _mm_unpackhi_epi64, _mm_unpacklo_epi64,
};
use std::mem::MaybeUninit;

use crate::escape::{ESCAPES, MAX_ESCAPED_LENGTH};
use crate::simd::BLOCK;
use crate::text::load_word;

/// Number of bytes of a vector.
const VECTOR_LENGTH: usize = 16;

/// Number of input bytes per output vector, because each input byte may become two bytes.
const BYTES_PER_STEP: usize = VECTOR_LENGTH / 2;

/// Output bytes to reserve for a block: each input byte may become six bytes, and a vector store writes more bytes than
/// its result has.
const BLOCK_ROOM: usize = MAX_ESCAPED_LENGTH * BLOCK + VECTOR_LENGTH;

/// Output bytes to reserve for a vector.
const VECTOR_ROOM: usize = MAX_ESCAPED_LENGTH * VECTOR_LENGTH + VECTOR_LENGTH;

/// Letters of the two-character escapes of control characters below 0x10.
const CONTROL_LETTERS: [u8; VECTOR_LENGTH] = *b"\0\0\0\0\0\0\0\0btn\0fr\0\0";

/// For each set of special bytes among eight: the source index of each output byte. Indices 0 to 7 are the eight input
/// bytes, index 8 is a backslash. Entries after the last output byte are not used.
static SHUFFLE_INDICES: [[u8; VECTOR_LENGTH]; 256] = {
    let mut sources = [[0; VECTOR_LENGTH]; 256];
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

/// Returns true if the processor has the instructions. The check is cheap, because its result is cached.
#[inline]
pub(crate) fn is_available() -> bool {
    is_x86_feature_detected!("ssse3") && is_x86_feature_detected!("popcnt")
}

/// Escapes `bytes` into `room` up to the end, or until the room is used up. Returns the number of bytes read, and the
/// number of bytes written at the start of `room`.
#[target_feature(enable = "ssse3,popcnt")]
pub(crate) fn escape(bytes: &[u8], room: &mut [MaybeUninit<u8>]) -> (usize, usize) {
    let (blocks, end) = bytes.as_chunks::<BLOCK>();
    let (mut at, mut length) = (0, 0);
    for block in blocks {
        let Some(room) = room
            .get_mut(length..)
            .and_then(<[_]>::first_chunk_mut::<BLOCK_ROOM>)
        else {
            return (at, length);
        };
        let mut vectors = [_mm_setzero_si128(); BLOCK / VECTOR_LENGTH];
        for (vector, part) in vectors.iter_mut().zip(block.as_chunks().0) {
            *vector = load(part);
        }
        at += BLOCK;
        length += escape_vectors(&vectors, room);
    }
    let (parts, few) = end.as_chunks();
    for part in parts {
        let Some(room) = vector_room(room, length) else {
            return (at, length);
        };
        at += VECTOR_LENGTH;
        length += escape_vectors(&[load(part)], room);
    }
    if let (1.., Some(room)) = (few.len(), vector_room(room, length)) {
        // The spaces after the end need no escape, and are not counted.
        let padded = escape_vectors(&[load_partial(few)], room);
        at += few.len();
        length += padded - (VECTOR_LENGTH - few.len());
    }
    (at, length)
}

/// Returns the output bytes for one vector from the offset `from` on; `None` if fewer bytes are left.
#[inline]
fn vector_room(
    room: &mut [MaybeUninit<u8>],
    from: usize,
) -> Option<&mut [MaybeUninit<u8>; VECTOR_ROOM]> {
    room.get_mut(from..)?.first_chunk_mut()
}

/// Escapes vectors; returns the number of bytes written.
#[inline]
#[target_feature(enable = "ssse3,popcnt")]
fn escape_vectors<const N: usize, const R: usize>(
    vectors: &[__m128i; N],
    room: &mut [MaybeUninit<u8>; R],
) -> usize {
    // All counted bytes are written, because the capacity suffices for any input.
    const { assert!(R >= MAX_ESCAPED_LENGTH * VECTOR_LENGTH * N + VECTOR_LENGTH) };
    let mut texts = *vectors;
    let mut special = 0;
    let mut least = _mm_set1_epi8(0x20);
    for (index, text) in texts.iter_mut().enumerate() {
        let bytes = *text;
        // For bytes below 0x10, the low half of the sum selects the letter; for other bytes, the high bit of the sum is
        // set, which selects zero.
        let places = _mm_adds_epu8(bytes, _mm_set1_epi8(0x70));
        let letters = _mm_shuffle_epi8(load(&CONTROL_LETTERS), places);
        let quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x22));
        let backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x5c));
        let lettered = _mm_cmpgt_epi8(letters, _mm_setzero_si128());
        let both = _mm_or_si128(quotes, backslashes);
        special |= comparison_bits(_mm_or_si128(both, lettered), index);
        // Each letter is greater than the character that it denotes.
        *text = _mm_max_epu8(bytes, letters);
        least = _mm_min_epu8(least, *text);
    }
    if _mm_movemask_epi8(_mm_cmpeq_epi8(least, _mm_set1_epi8(0x20))) != 0xffff {
        return escape_vectors_with_controls(*vectors, texts, special, room);
    }
    if special == 0 {
        for (text, place) in texts.into_iter().zip(room.as_chunks_mut().0) {
            store(text, place);
        }
        return N * VECTOR_LENGTH;
    }
    let mut to = 0;
    for (index, text) in texts.into_iter().enumerate() {
        for (half, source) in split_halves(text).into_iter().enumerate() {
            to += escape_eight_bytes(
                source,
                mask_byte(special, 2 * index + half),
                &mut room[to..],
            );
        }
    }
    to
}

/// Writes eight bytes, with a backslash before each special byte; returns the number of bytes written. The lower half
/// of `source` contains the bytes, the upper half contains backslashes.
#[inline]
#[target_feature(enable = "ssse3,popcnt")]
fn escape_eight_bytes(source: __m128i, special: u8, room: &mut [MaybeUninit<u8>]) -> usize {
    let Some(place) = room.first_chunk_mut() else {
        return 0;
    };
    let from = load(&SHUFFLE_INDICES[usize::from(special)]);
    store(_mm_shuffle_epi8(source, from), place);
    BYTES_PER_STEP + special.count_ones() as usize
}

/// Escapes vectors that contain control characters without a letter: eight bytes with such a character are written byte
/// by byte.
#[inline(never)]
#[target_feature(enable = "ssse3,popcnt")]
fn escape_vectors_with_controls<const N: usize>(
    vectors: [__m128i; N],
    texts: [__m128i; N],
    special: u64,
    room: &mut [MaybeUninit<u8>],
) -> usize {
    let mut to = 0;
    for (index, (bytes, text)) in vectors.into_iter().zip(texts).enumerate() {
        let low = _mm_cmpeq_epi8(_mm_min_epu8(text, _mm_set1_epi8(0x1f)), text);
        let controls = comparison_bits(low, 0);
        let bytes = to_bytes(bytes);
        for (half, source) in split_halves(text).into_iter().enumerate() {
            if mask_byte(controls, half) == 0 {
                to += escape_eight_bytes(
                    source,
                    mask_byte(special, 2 * index + half),
                    &mut room[to..],
                );
                continue;
            }
            for &b in &bytes[BYTES_PER_STEP * half..][..BYTES_PER_STEP] {
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

/// Returns, for each half of a vector, its eight bytes followed by eight backslashes.
#[inline]
#[target_feature(enable = "sse2")]
fn split_halves(text: __m128i) -> [__m128i; 2] {
    let backslashes = _mm_set1_epi8(0x5c);
    [
        _mm_unpacklo_epi64(text, backslashes),
        _mm_unpackhi_epi64(text, backslashes),
    ]
}

/// Returns the mask bits of eight bytes out of sixty-four.
#[inline]
fn mask_byte(marks: u64, index: usize) -> u8 {
    marks.to_le_bytes()[index % 8]
}

/// Loads fewer than sixteen bytes, padded with spaces. No memory buffer is used, because a large load after several
/// small stores is slow.
#[inline]
#[target_feature(enable = "sse2")]
fn load_partial(bytes: &[u8]) -> __m128i {
    /// 64-bit word of eight spaces.
    const SPACES: u64 = u64::from_ne_bytes([b' '; 8]);
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        let (first, last) = (i64::from_le_bytes(*first), u64::from_le_bytes(*last));
        // The last eight bytes without those that are among the first eight, followed by spaces.
        let twice = u128::from(last) | u128::from(SPACES) << 64;
        let behind = twice >> (8 * (VECTOR_LENGTH - bytes.len() % VECTOR_LENGTH));
        return _mm_set_epi64x((behind as u64).cast_signed(), first);
    }
    let few = load_word(bytes) | SPACES << (8 * (bytes.len() % 8));
    _mm_set_epi64x(SPACES.cast_signed(), few.cast_signed())
}

/// Returns the bytes of a vector.
#[inline]
#[target_feature(enable = "sse2")]
#[allow(unsafe_code)]
fn to_bytes(vector: __m128i) -> [u8; VECTOR_LENGTH] {
    // SAFETY: both are sixteen bytes, of which all values are valid.
    unsafe { std::mem::transmute(vector) }
}

/// Loads a vector.
#[inline]
#[target_feature(enable = "sse2")]
#[allow(unsafe_code)]
fn load(part: &[u8; VECTOR_LENGTH]) -> __m128i {
    // SAFETY: the reference is to sixteen bytes, and the load requires no alignment.
    unsafe { _mm_loadu_si128(part.as_ptr().cast()) }
}

/// Stores a vector.
#[inline]
#[target_feature(enable = "sse2")]
#[allow(unsafe_code)]
fn store(bytes: __m128i, place: &mut [MaybeUninit<u8>; VECTOR_LENGTH]) {
    // SAFETY: the reference is to sixteen bytes that may be anything, and the store requires no alignment.
    unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), bytes) }
}

/// Returns the comparison result of the vector at `index` of a block as bits at the vector's position in the mask of
/// the block.
#[inline]
#[target_feature(enable = "sse2")]
fn comparison_bits(equal: __m128i, index: usize) -> u64 {
    u64::from(_mm_movemask_epi8(equal).cast_unsigned()) << (VECTOR_LENGTH * index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thinned;

    /// With an output buffer of any size, the input up to the returned position is escaped, and only little of the
    /// buffer is left unused.
    #[test]
    #[allow(unsafe_code)]
    fn escaping_resumes_after_full_buffer() {
        if !is_available() {
            return;
        }
        let bytes = b"plain \"and\" not,\n\x01\x02 by turns of thirty-nine".repeat(7);
        for length in (0..=bytes.len()).step_by(thinned(41)) {
            let bytes = &bytes[..length];
            for room in (0..=BLOCK_ROOM + 100).step_by(thinned(23)) {
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
                    VECTOR_ROOM
                } else {
                    BLOCK_ROOM
                };
                assert!(taken == length || out.capacity() - written < least);
            }
        }
    }
}
