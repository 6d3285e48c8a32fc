//! Bit masks of a block of 64 bytes, with one bit per byte; the lowest bit is the first byte.
//!
//! The masks are computed with SSE2 on x86-64, where it is always available, and byte by byte elsewhere.

/// Number of bytes of a block.
pub(crate) const BLOCK: usize = 64;

/// Block of bytes for which masks are computed.
pub(crate) type Block = [u8; BLOCK];

/// Bit masks of the bytes that are significant inside strings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TextMarks {
    /// Quotes, escaped or not.
    pub(crate) quotes: u64,
    /// Backslashes.
    pub(crate) backslashes: u64,
    /// Bytes below 0x20.
    pub(crate) controls: u64,
}

/// Bit masks of the bytes that are significant for finding the end of an object or array.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BracketMarks {
    /// Quotes, escaped or not.
    pub(crate) quotes: u64,
    /// Backslashes.
    pub(crate) backslashes: u64,
    /// Opening brackets, `{` and `[`.
    pub(crate) opening: u64,
    /// Closing brackets, `}` and `]`.
    pub(crate) closing: u64,
}

/// Returns the mask of the bytes that the backslashes of a block escape; `carry` is true if the block begins with an
/// escaped byte, and is set for the next block. Runs of backslashes that begin at an even offset are handled separately
/// from those that begin at an odd offset.
#[inline]
pub(crate) fn escaped_mask(backslashes: u64, carry: &mut u64) -> u64 {
    /// Mask of the bytes at even offsets.
    const EVEN: u64 = 0x5555_5555_5555_5555;
    if backslashes == 0 {
        return std::mem::take(carry);
    }
    let backslashes = backslashes & !*carry;
    let follows = backslashes << 1 | *carry;
    let odd_starts = backslashes & !EVEN & !follows;
    let (even_runs, overflow) = odd_starts.overflowing_add(backslashes);
    *carry = u64::from(overflow);
    (EVEN ^ (even_runs << 1)) & follows
}

/// Returns the mask of the bytes within strings, including opening quotes and excluding closing quotes.
#[inline]
pub(crate) fn string_mask(mut quotes: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        quotes ^= quotes << shift;
    }
    quotes
}

/// Returns the masks of the bytes that matter inside strings.
#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
pub(crate) fn text_marks(block: &Block) -> TextMarks {
    // SAFETY: SSE2 is a part of x86-64; the function reads nothing but its argument.
    unsafe { sse2::text_marks(block) }
}

/// Returns the mask of the bytes that must be escaped in a string: quotes, backslashes and control characters.
#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
pub(crate) fn special_marks(block: &Block) -> u64 {
    // SAFETY: SSE2 is a part of x86-64; the function reads nothing but its argument.
    unsafe { sse2::special_marks(block) }
}

/// Returns the masks of quotes, backslashes and brackets.
#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
pub(crate) fn bracket_marks(block: &Block) -> BracketMarks {
    // SAFETY: SSE2 is a part of x86-64; the function reads nothing but its argument.
    unsafe { sse2::bracket_marks(block) }
}

/// Returns the mask of a byte.
#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
pub(crate) fn byte_marks(block: &Block, byte: u8) -> u64 {
    // SAFETY: SSE2 is a part of x86-64; the function reads nothing but its arguments.
    unsafe { sse2::byte_marks(block, byte) }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use plain::{bracket_marks, byte_marks, special_marks, text_marks};

/// Masks with the vector instructions of SSE2.
#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8, _mm_xor_si128,
    };

    use super::{Block, BracketMarks, TextMarks};

    /// Returns the masks of the bytes that matter inside strings.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn text_marks(block: &Block) -> TextMarks {
        let mut marks = TextMarks::default();
        for (index, part) in block.as_chunks::<16>().0.iter().enumerate() {
            let bytes = load(part);
            let controls = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
            marks.quotes |= mask_bits(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x22)), index);
            marks.backslashes |= mask_bits(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x5c)), index);
            marks.controls |= mask_bits(controls, index);
        }
        marks
    }

    /// Returns the mask of the bytes that must be escaped in a string.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn special_marks(block: &Block) -> u64 {
        let mut marks = 0;
        for (index, part) in block.as_chunks::<16>().0.iter().enumerate() {
            let bytes = load(part);
            let backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x5c));
            // With the bit flipped, a quote follows the control characters, which change places among each other.
            let flipped = _mm_xor_si128(bytes, _mm_set1_epi8(0x02));
            let others = _mm_cmpeq_epi8(_mm_min_epu8(flipped, _mm_set1_epi8(0x20)), flipped);
            marks |= mask_bits(_mm_or_si128(backslashes, others), index);
        }
        marks
    }

    /// Returns the masks of quotes, backslashes and brackets.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn bracket_marks(block: &Block) -> BracketMarks {
        let mut marks = BracketMarks::default();
        for (index, part) in block.as_chunks::<16>().0.iter().enumerate() {
            let bytes = load(part);
            // A square bracket and a brace differ by one bit.
            let braces = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
            marks.quotes |= mask_bits(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x22)), index);
            marks.backslashes |= mask_bits(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x5c)), index);
            marks.opening |= mask_bits(_mm_cmpeq_epi8(braces, _mm_set1_epi8(0x7b)), index);
            marks.closing |= mask_bits(_mm_cmpeq_epi8(braces, _mm_set1_epi8(0x7d)), index);
        }
        marks
    }

    /// Returns the mask of a byte.
    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn byte_marks(block: &Block, byte: u8) -> u64 {
        let mut marks = 0;
        for (index, part) in block.as_chunks::<16>().0.iter().enumerate() {
            marks |= mask_bits(
                _mm_cmpeq_epi8(load(part), _mm_set1_epi8(byte.cast_signed())),
                index,
            );
        }
        marks
    }

    /// Loads a vector.
    #[inline]
    #[target_feature(enable = "sse2")]
    #[allow(unsafe_code)]
    fn load(part: &[u8; 16]) -> __m128i {
        // SAFETY: the reference is to sixteen bytes, and the load requires no alignment.
        unsafe { _mm_loadu_si128(part.as_ptr().cast()) }
    }

    /// Returns the comparison result of the vector at `index` of a block as bits at the vector's position in the mask
    /// of the block.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn mask_bits(equal: __m128i, index: usize) -> u64 {
        u64::from(_mm_movemask_epi8(equal).cast_unsigned()) << (16 * index)
    }
}

/// Masks without vector instructions; the vector implementation must return equal results.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain {
    use super::{Block, BracketMarks, TextMarks};

    /// Returns the masks of the bytes that matter inside strings.
    pub(crate) fn text_marks(block: &Block) -> TextMarks {
        TextMarks {
            quotes: mask_bits(block, |b| b == b'"'),
            backslashes: mask_bits(block, |b| b == b'\\'),
            controls: mask_bits(block, |b| b < 0x20),
        }
    }

    /// Returns the mask of the bytes that must be escaped in a string.
    pub(crate) fn special_marks(block: &Block) -> u64 {
        let marks = text_marks(block);
        marks.quotes | marks.backslashes | marks.controls
    }

    /// Returns the masks of quotes, backslashes and brackets.
    pub(crate) fn bracket_marks(block: &Block) -> BracketMarks {
        BracketMarks {
            quotes: mask_bits(block, |b| b == b'"'),
            backslashes: mask_bits(block, |b| b == b'\\'),
            opening: mask_bits(block, |b| matches!(b, b'{' | b'[')),
            closing: mask_bits(block, |b| matches!(b, b'}' | b']')),
        }
    }

    /// Returns the mask of a byte.
    pub(crate) fn byte_marks(block: &Block, byte: u8) -> u64 {
        mask_bits(block, |b| b == byte)
    }

    /// Returns the mask of the bytes for which `is` returns true.
    fn mask_bits(block: &Block, is: impl Fn(u8) -> bool) -> u64 {
        let bytes = block.iter().enumerate();
        bytes.fold(0, |bits, (index, &b)| bits | u64::from(is(b)) << index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thinned;

    /// Returns blocks in which each byte value occurs at each position, surrounded by quotes, backslashes, brackets,
    /// control characters and plain bytes.
    fn blocks() -> impl Iterator<Item = Block> {
        let values = (0..=u8::MAX).step_by(thinned(61));
        values.flat_map(|value| {
            (0..BLOCK).step_by(thinned(9)).map(move |place| {
                let mut block = *b"\\\"{}[]\x00\x1f a\\\\\"\\\x7f\xff\\\"{}[]\x00\x1f a\\\\\"\\\x7f\xff\\\"{}[]\x00\x1f a\\\\\"\\\x7f\xff\\\"{}[]\x00\x1f a\\\\\"\\\x7f\xff";
                block[place] = value;
                block
            })
        })
    }

    #[test]
    fn implementations_return_equal_marks() {
        for block in blocks() {
            assert_eq!(text_marks(&block), plain::text_marks(&block));
            assert_eq!(special_marks(&block), plain::special_marks(&block));
            assert_eq!(bracket_marks(&block), plain::bracket_marks(&block));
            assert_eq!(byte_marks(&block, b':'), plain::byte_marks(&block, b':'));
        }
    }

    #[test]
    fn escaped_mask_agrees_with_bytewise_scan() {
        for block in blocks() {
            for begins_escaped in [false, true] {
                let (mut expected, mut next) = (0_u64, begins_escaped);
                for (index, &b) in block.iter().enumerate() {
                    let is = std::mem::replace(&mut next, false);
                    expected |= u64::from(is) << index;
                    next = !is && b == b'\\';
                }
                let mut carry = u64::from(begins_escaped);
                let found = escaped_mask(text_marks(&block).backslashes, &mut carry);
                assert_eq!((found, carry), (expected, u64::from(next)));
            }
        }
    }

    /// The mask of strings contains opening quotes and no closing quotes, and extends to the end after an unmatched
    /// quote.
    #[test]
    fn string_mask_starts_at_quotes() {
        assert_eq!(string_mask(0b0100_0010), 0b0011_1110);
        assert_eq!(string_mask(0b0000_0100), u64::MAX << 2);
    }
}
