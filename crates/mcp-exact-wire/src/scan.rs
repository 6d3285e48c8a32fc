//! Scanning of JSON text: finding the end of a string, a number or a complete value.
//!
//! A scan returns the position after the value, or the offset of the first byte that is not JSON. Scanning does not
//! recurse or decode, and does not allocate for values nested at most 62 deep.

use std::num::NonZeroU64;

use crate::simd;

/// Error of a scan: the text is not JSON at this offset, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotJson(pub(crate) usize);

/// Number of bytes that are compared at a time.
pub(crate) const BLOCK: usize = 16;

/// Number of blocks that are compared one by one before a string counts as long.
const MAX_SHORT_BLOCKS: usize = 12;

/// Returns the offset of the first quote, backslash or control character from `at` on, or the length of the input if
/// there is none.
#[inline]
pub(crate) fn plain_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let (Some(block), Some(last)) = (rest.first_chunk(), rest.last_chunk()) else {
        return at + plain_bytes(rest);
    };
    match first_special(block) {
        Some(found) => at + found,
        None => at + plain_length(rest, last),
    }
}

/// Returns the number of plain bytes at the start of a long string, whose first block is known to be plain; `last` is
/// the last block, which overlaps the others.
#[inline(never)]
fn plain_length(bytes: &[u8], last: &[u8; BLOCK]) -> usize {
    let blocks = bytes.as_chunks().0;
    for (index, block) in blocks.iter().enumerate().skip(1) {
        if let Some(found) = first_special(block) {
            return index * BLOCK + found;
        }
        if index > MAX_SHORT_BLOCKS {
            return plain_length_long(bytes, (index + 1) * BLOCK);
        }
    }
    first_special(last).map_or(bytes.len(), |found| bytes.len() - BLOCK + found)
}

/// Returns the number of plain bytes of a long string: first the end is searched with the widest available vectors,
/// then control characters before the end. The string is scanned in pieces, so that the second search reads from the
/// nearest cache.
#[inline(never)]
fn plain_length_long(bytes: &[u8], mut at: usize) -> usize {
    /// Number of bytes that are searched for the end before they are searched for control characters.
    const PIECE_LENGTH: usize = 8 * 1024;
    loop {
        let rest = &bytes[at..];
        let piece = rest.get(..PIECE_LENGTH).unwrap_or(rest);
        let end = memchr::memchr2(b'"', b'\\', piece).unwrap_or(piece.len());
        let run = &piece[..end];
        // Without branches, so that the compiler compares many bytes at once.
        if run.iter().fold(u8::MAX, |least, &b| least.min(b)) < 0x20 {
            let control = run.iter().position(|&b| b < 0x20);
            return at + control.unwrap_or(end);
        }
        at += end;
        if end < PIECE_LENGTH {
            return at;
        }
    }
}

/// Returns the number of bytes before the first special byte.
#[inline(never)]
fn plain_bytes(bytes: &[u8]) -> usize {
    let found = bytes.iter().position(|&b| is_special(b));
    found.unwrap_or(bytes.len())
}

/// Returns the offset of the first quote, backslash or control character in a block.
#[cfg(target_arch = "x86_64")]
#[inline]
#[allow(unsafe_code)]
pub(crate) fn first_special(block: &[u8; BLOCK]) -> Option<usize> {
    // SAFETY: SSE2 is a part of x86-64; the function reads nothing but its argument.
    unsafe { first_special_sse2(block) }
}

/// Returns the offset of the first quote, backslash or control character in a block, with SSE2.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
#[allow(unsafe_code)]
fn first_special_sse2(block: &[u8; BLOCK]) -> Option<usize> {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8, _mm_xor_si128,
    };
    // SAFETY: the reference is to sixteen bytes, and the load requires no alignment.
    let bytes = unsafe { _mm_loadu_si128(block.as_ptr().cast()) };
    let backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(0x5c));
    // With the bit flipped, a quote follows the control characters, which change places among each other.
    let flipped = _mm_xor_si128(bytes, _mm_set1_epi8(0x02));
    let others = _mm_cmpeq_epi8(_mm_min_epu8(flipped, _mm_set1_epi8(0x20)), flipped);
    let special = _mm_movemask_epi8(_mm_or_si128(backslashes, others));
    (special != 0).then(|| special.trailing_zeros() as usize)
}

/// Returns the offset of the first quote, backslash or control character in a block, reading a word at a time. The high
/// bit of the lowest special byte of a word is set; bytes above it may be wrong, bytes below it are not.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
pub(crate) fn first_special(block: &[u8; BLOCK]) -> Option<usize> {
    /// 64-bit word in which every byte is 0x01.
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    /// 64-bit word in which every byte has only its highest bit set.
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    /// 64-bit word of eight quotes.
    const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
    /// 64-bit word of eight backslashes.
    const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
    /// 64-bit word of eight spaces.
    const SPACES: u64 = u64::from_ne_bytes([0x20; 8]);
    let (words, _) = block.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote = (word ^ QUOTES).wrapping_sub(LOW);
        let backslash = (word ^ BACKSLASHES).wrapping_sub(LOW);
        let special = (quote | backslash | word.wrapping_sub(SPACES)) & !word & HIGH;
        if special != 0 {
            return Some(index * 8 + (special.trailing_zeros() / 8) as usize);
        }
    }
    None
}

/// Returns true for a quote, a backslash or a control character.
#[inline]
const fn is_special(b: u8) -> bool {
    (b == b'"') | (b == b'\\') | (b < 0x20)
}

/// Skips white space (RFC 8259 section 2).
#[inline]
pub(crate) fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Scans the rest of a string whose opening quote was read; returns the position after the closing quote.
#[inline]
pub(crate) fn string_end(bytes: &[u8], at: usize) -> Result<usize, NotJson> {
    finish_string(bytes, plain_end(bytes, at))
}

/// Scans the rest of a string, starting at the end of its plain bytes.
#[inline]
fn finish_string(bytes: &[u8], end: usize) -> Result<usize, NotJson> {
    match bytes.get(end) {
        Some(b'"') => Ok(end + 1),
        Some(b'\\') => escaped_string_end(bytes, end),
        _ => Err(NotJson(end)),
    }
}

/// Scans the rest of a string from its first escape sequence on. A string with one escape sequence usually contains
/// more: long texts are searched in whole blocks, and no branch depends on the distance between escapes.
#[inline(never)]
fn escaped_string_end(bytes: &[u8], mut at: usize) -> Result<usize, NotJson> {
    at = escape_end(bytes, at)?;
    // One byte more than a block, for the letter of an escape sequence that begins with the last byte of the block.
    while let Some(window) = bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk::<WINDOW_LENGTH>)
    {
        let Some((block, _)) = window.split_first_chunk() else {
            break;
        };
        let marks = simd::text_marks(block);
        let escaped = simd::escaped_mask(marks.backslashes, &mut 0);
        let stops = marks.quotes & !escaped | marks.controls;
        let before = (stops & stops.wrapping_neg()).wrapping_sub(1);
        let mut starts = marks.backslashes & !escaped & before;
        // An escape sequence that begins with the last byte ends with the first byte of the next block.
        let mut next = at + simd::BLOCK + (starts >> (simd::BLOCK - 1)) as usize;
        while starts != 0 {
            let start = starts.trailing_zeros() as usize;
            starts &= starts - 1;
            if !IS_LETTER[usize::from(window[start + 1])] {
                next = escape_end(bytes, at + start)?;
                break;
            }
        }
        let stop = at + stops.trailing_zeros() as usize;
        if stops != 0 && next > stop {
            return match bytes[stop] {
                b'"' => Ok(stop + 1),
                _ => Err(NotJson(stop)),
            };
        }
        at = match marks.backslashes {
            0 => plain_end(bytes, next),
            _ => next,
        };
    }
    loop {
        at = plain_end(bytes, at);
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = escape_end(bytes, at)?,
            _ => return Err(NotJson(at)),
        }
    }
}

/// Number of bytes that are searched for escape sequences at a time.
const WINDOW_LENGTH: usize = simd::BLOCK + 1;

/// Letters of the two-byte escape sequences.
static IS_LETTER: [bool; 256] = {
    let mut is = [false; 256];
    let letters = b"\"\\/bfnrt";
    let mut at = 0;
    while at < letters.len() {
        is[letters[at] as usize] = true;
        at += 1;
    }
    is
};

/// Scans one escape sequence that starts at `at`. A lone surrogate is accepted, because untyped JSON keeps it
/// unchanged.
fn escape_end(bytes: &[u8], at: usize) -> Result<usize, NotJson> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(at + 2),
        Some(b'u') => match bytes.get(at + 2..at + 6) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Ok(at + 6),
            _ => Err(NotJson(at)),
        },
        _ => Err(NotJson(at)),
    }
}

/// Returns an integer of at most 18 digits without fraction and exponent, and its end offset.
#[inline]
pub(crate) fn small_integer(bytes: &[u8], at: usize) -> Option<(i64, usize)> {
    let negative = bytes.get(at) == Some(&b'-');
    let start = at + usize::from(negative);
    let (mut value, mut end) = (0_i64, start);
    while let Some(digit @ b'0'..=b'9') = bytes.get(end) {
        if end - start == 18 {
            return None;
        }
        value = value * 10 + i64::from(digit - b'0');
        end += 1;
    }
    let leading_zero = bytes.get(start) == Some(&b'0') && (negative || end > start + 1);
    if end == start || leading_zero || matches!(bytes.get(end), Some(b'.' | b'e' | b'E')) {
        return None;
    }
    Some((if negative { -value } else { value }, end))
}

/// Scans a number (RFC 8259 section 6) that starts at `at`.
#[inline]
pub(crate) fn number_end(bytes: &[u8], at: usize) -> Result<usize, NotJson> {
    let start = at + usize::from(bytes.get(at) == Some(&b'-'));
    let mut end = digits_end(bytes, start);
    let leading_zero = end > start + 1 && bytes.get(start) == Some(&b'0');
    if end == start || leading_zero {
        return Err(NotJson(start));
    }
    if bytes.get(end) == Some(&b'.') {
        let fraction = end + 1;
        end = digits_end(bytes, fraction);
        if end == fraction {
            return Err(NotJson(end));
        }
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = end + 1 + sign;
        end = digits_end(bytes, exponent);
        if end == exponent {
            return Err(NotJson(end));
        }
    }
    Ok(end)
}

/// Returns the end of a run of digits that starts at `at`.
#[inline]
fn digits_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Kind of the container that is open at each level: one bit per level.
struct Nesting {
    /// Bits of the innermost levels, the innermost lowest; a set bit means an object. The bit of
    /// [`NO_LEVELS`](Self::NO_LEVELS) is above them.
    bits: u64,
    /// Number of open containers.
    depth: usize,
    /// Maximum of `depth` so far.
    max_depth: usize,
}

impl Nesting {
    /// The bits without levels.
    const NO_LEVELS: u64 = 0b10;

    /// Returns the state outside of all containers.
    const fn new() -> Self {
        Self {
            bits: Self::NO_LEVELS,
            depth: 0,
            max_depth: 0,
        }
    }

    /// Opens an object, or an array if `object` is false. When all bits are in use, they move to `outer`.
    #[inline(always)]
    fn open(&mut self, object: bool, outer: &mut Vec<u64>) {
        if self.bits >> 63 == 1 {
            outer.push(self.bits);
            self.bits = Self::NO_LEVELS;
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.depth += 1;
        self.max_depth = self.max_depth.max(self.depth);
    }

    /// Closes the innermost container and returns true if the enclosing container is an object; `None` if there is no
    /// enclosing container.
    #[inline(always)]
    fn close(&mut self, outer: &mut Vec<u64>) -> Option<bool> {
        self.depth -= 1;
        self.bits >>= 1;
        if self.bits == Self::NO_LEVELS {
            self.bits = outer.pop()?;
        }
        Some(self.bits & 1 == 1)
    }
}

/// Properties of a scanned value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Nesting depth of objects and arrays.
    pub(crate) depth: usize,
    /// True if the value contains white space between tokens.
    pub(crate) has_space: bool,
}

/// Scans one complete value that starts at `at` (no white space before it).
pub(crate) fn value_end(bytes: &[u8], at: usize) -> Result<usize, NotJson> {
    scan_value(bytes, at, &mut Shape::default())
}

/// Scans one complete value that starts at `at`, and sets its properties in `shape`.
#[inline]
pub(crate) fn scan_value(bytes: &[u8], at: usize, shape: &mut Shape) -> Result<usize, NotJson> {
    match bytes.get(at) {
        Some(b'{' | b'[') => scan_container(bytes, at, shape),
        _ => scalar_end(bytes, at),
    }
}

/// Scans a string, number or literal that starts at `at`; returns its end.
pub(crate) fn scalar_end(bytes: &[u8], at: usize) -> Result<usize, NotJson> {
    match bytes.get(at) {
        Some(b'"') => string_end(bytes, at + 1),
        Some(b'-' | b'0'..=b'9') => number_end(bytes, at),
        Some(b't') => literal_end(bytes, at, b"true"),
        Some(b'f') => literal_end(bytes, at, b"false"),
        Some(b'n') => literal_end(bytes, at, b"null"),
        _ => Err(NotJson(at)),
    }
}

/// Scans the literal `word` at `at`; returns its end.
#[inline(always)]
pub(crate) fn literal_end<const N: usize>(
    bytes: &[u8],
    at: usize,
    word: &[u8; N],
) -> Result<usize, NotJson> {
    if bytes.get(at..).and_then(<[u8]>::first_chunk) == Some(word) {
        Ok(at + N)
    } else {
        Err(NotJson(at))
    }
}

/// Finds the ends of many short strings in a row. Bytes that may end a string are found in whole blocks. The start of a
/// block does not depend on the ends of strings, so that the processor can load the next block early.
struct StringEndScanner {
    /// Offset at which the block begins.
    start: usize,
    /// Mask of the bytes of the block that may end a string.
    special: u64,
}

impl StringEndScanner {
    /// Creates a scanner for strings from `at` on; the first string loads a block.
    fn from(at: usize) -> Self {
        Self {
            start: at.wrapping_sub(simd::BLOCK),
            special: 0,
        }
    }

    /// Returns the offset of the first byte that may end the string that contains `at`.
    #[inline(always)]
    fn plain_end(&mut self, bytes: &[u8], at: usize) -> usize {
        if cfg!(not(target_arch = "x86_64")) {
            // Without vector instructions, blocks are searched byte by byte.
            return plain_end(bytes, at);
        }
        let mut offset = at.wrapping_sub(self.start);
        if offset >= simd::BLOCK {
            self.start = if offset < 2 * simd::BLOCK {
                self.start.wrapping_add(simd::BLOCK)
            } else {
                at
            };
            self.special = special_mask_at(bytes, self.start);
            offset = at.wrapping_sub(self.start);
        }
        if let Some(special) = NonZeroU64::new(self.special >> (offset % simd::BLOCK)) {
            return at + special.trailing_zeros() as usize;
        }
        // The string goes on in the next block.
        self.start = self.start.wrapping_add(simd::BLOCK);
        self.special = special_mask_at(bytes, self.start);
        match NonZeroU64::new(self.special) {
            Some(special) => self.start + special.trailing_zeros() as usize,
            None => plain_end(bytes, self.start + simd::BLOCK),
        }
    }
}

/// Returns the mask of the bytes of the block at `at` that may end a string; bytes after the end of the text are marked
/// too.
#[inline(never)]
fn special_mask_at(bytes: &[u8], at: usize) -> u64 {
    match bytes.get(at..).and_then(<[u8]>::first_chunk) {
        Some(block) => simd::special_marks(block),
        None => last_special_mask(bytes, at),
    }
}

/// Returns the mask of the bytes of the last block, which is incomplete.
#[cold]
#[inline(never)]
fn last_special_mask(bytes: &[u8], at: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    let mut block = [0; simd::BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    simd::special_marks(&block)
}

/// Scans a container that starts at `at`; returns its end, and sets its properties in `shape`.
///
/// Each token is read once; the next token and its offset are carried along.
#[inline(never)]
fn scan_container(bytes: &[u8], at: usize, shape: &mut Shape) -> Result<usize, NotJson> {
    let mut strings = StringEndScanner::from(at);
    // The bits are apart from the words that were moved, so that the compiler keeps them in registers.
    let (mut nesting, mut outer) = (Nesting::new(), Vec::new());
    let mut next = (bytes[at], at);
    // The bracket that closes the innermost container.
    let mut close = b']';
    loop {
        // A value begins, or a member of an object.
        if close == b'}' {
            next = member_value(bytes, next, &mut strings, shape)?;
        }
        let (byte, at) = next;
        if byte == b'"' {
            let end = strings.plain_end(bytes, at + 1);
            if let Some(&[b'"', b',', byte]) = after_string(bytes, end)
                && byte > b' '
            {
                next = (byte, end + 2);
                continue;
            }
            next = next_token(bytes, finish_string(bytes, end)?, shape);
        } else if byte == b'{' || byte == b'[' {
            nesting.open(byte == b'{', &mut outer);
            close = closing_bracket(byte);
            next = next_token(bytes, at + 1, shape);
            if next.0 != close {
                continue;
            }
        } else {
            next = next_token(bytes, scalar_end(bytes, at)?, shape);
        }
        while next.0 != b',' {
            if next.0 != close {
                return Err(NotJson(next.1));
            }
            close = match nesting.close(&mut outer) {
                Some(is_object) => closing_bracket(if is_object { b'{' } else { b'[' }),
                None => {
                    shape.depth = nesting.max_depth;
                    return Ok(next.1 + 1);
                }
            };
            next = next_token(bytes, next.1 + 1, shape);
        }
        next = next_token(bytes, next.1 + 1, shape);
    }
}

/// Returns three bytes from `at` on: at the end of most strings, a quote, a colon or comma, and the first byte of the
/// next value or name.
#[inline(always)]
fn after_string(bytes: &[u8], at: usize) -> Option<&[u8; 3]> {
    bytes.get(at..at + 3)?.first_chunk()
}

/// Returns the first byte from `at` on that is not white space, and its offset; a control character, which starts no
/// token, at the end of the text.
#[inline(always)]
fn next_token(bytes: &[u8], at: usize, shape: &mut Shape) -> (u8, usize) {
    match bytes.get(at) {
        Some(&byte) if byte > b' ' => (byte, at),
        _ => token_after_space(bytes, at, shape),
    }
}

/// Returns the first byte from `at` on that is not white space, and its offset.
#[inline(never)]
fn token_after_space(bytes: &[u8], start: usize, shape: &mut Shape) -> (u8, usize) {
    let at = skip_space(bytes, start);
    shape.has_space |= at > start;
    (bytes.get(at).copied().unwrap_or_default(), at)
}

/// Returns the bracket that closes a container with this opening bracket.
#[inline(always)]
const fn closing_bracket(open: u8) -> u8 {
    // In ASCII, a bracket of either kind differs by two from its counterpart.
    open + (b'}' - b'{')
}

/// Scans a member's name and colon; returns the beginning of its value.
#[inline(always)]
fn member_value(
    bytes: &[u8],
    (quote, at): (u8, usize),
    strings: &mut StringEndScanner,
    shape: &mut Shape,
) -> Result<(u8, usize), NotJson> {
    if quote != b'"' {
        return Err(NotJson(at));
    }
    let end = strings.plain_end(bytes, at + 1);
    if let Some(&[b'"', b':', byte]) = after_string(bytes, end)
        && byte > b' '
    {
        return Ok((byte, end + 2));
    }
    let (colon, at) = next_token(bytes, finish_string(bytes, end)?, shape);
    if colon != b':' {
        return Err(NotJson(at));
    }
    Ok(next_token(bytes, at + 1, shape))
}

#[cfg(test)]
mod tests;
