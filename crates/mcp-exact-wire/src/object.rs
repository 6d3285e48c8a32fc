//! Reading of objects with known members: member lookup, unknown members, duplicates and missing members.
//!
//! The type's [`ObjectLayout`] lists the known members; the reader returns the index of each known member in order.
//! Duplicates are found by a bit set and, for unknown names, by one sort.

use std::borrow::Cow;

use crate::error::{DecodeErrorKind, DecodeFailed, Detail, ReadResult};
use crate::extra::{Extra, Members, Unknown};
use crate::order::duplicate;
use crate::reader::{Reader, duplicate_at, duplicate_in};

/// Known members of a type: their names, lookup keys, and bits for the required ones.
#[derive(Debug)]
pub struct ObjectLayout {
    /// Member names in the order of the schema, at most 64.
    pub members: &'static [&'static str],
    /// Lookup keys of the names, as [`keys`] returns them.
    pub keys: &'static [u64],
    /// One bit for each required member.
    pub required: u64,
}

/// Known members of a type, which are stored in an [`ObjectLayout`] or in the tables of the conversions.
pub trait KnownMembers: Copy {
    /// Returns the lookup keys of the names, as [`keys`] returns them.
    fn keys(self) -> &'static [u64];
    /// Returns the name of the member at an index.
    fn name(self, index: usize) -> &'static str;
    /// Returns one bit for each required member.
    fn required(self) -> u64;
}

impl KnownMembers for &'static ObjectLayout {
    #[inline(always)]
    fn keys(self) -> &'static [u64] {
        self.keys
    }

    #[inline(always)]
    fn name(self, index: usize) -> &'static str {
        self.members[index]
    }

    #[inline(always)]
    fn required(self) -> u64 {
        self.required
    }
}

/// Returns the lookup keys of names: the first eight bytes of each name, including the closing quote of shorter names.
pub const fn keys<const N: usize>(names: &[&str]) -> [u64; N] {
    let mut keys = [0; N];
    let mut at = 0;
    while at < N {
        let name = names[at].as_bytes();
        let mut byte = 0;
        while byte < 8 && byte <= name.len() {
            let b = if byte == name.len() { b'"' } else { name[byte] };
            keys[at] |= (b as u64) << (8 * byte);
            byte += 1;
        }
        at += 1;
    }
    keys
}

/// Returns a bit set with the indexes in `members` of the names in `required`; an unknown name is a compile error.
pub const fn required_bits(members: &[&str], required: &[&str]) -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < required.len() {
        let mut member = 0;
        while !is_same(members[member], required[at]) {
            member += 1;
        }
        bits |= 1 << member;
        at += 1;
    }
    bits
}

/// Returns true if two strings are equal, in constant evaluation, where `==` is not available. Outside semantic
/// versioning.
#[doc(hidden)]
pub const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// Returns the lookup key of the name that begins at `at`, and the length of the name, or eight if it is longer; `None`
/// at the end of the text.
#[inline]
fn key_at(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    /// 64-bit word in which every byte is 0x01.
    const LOW: u64 = u64::from_le_bytes([0x01; 8]);
    /// 64-bit word in which every byte has only its highest bit set.
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    /// 64-bit word of eight quotes.
    const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
    let word = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
    // The high bit of the first byte that is a quote is set; bits above it may be wrong.
    let no_quote = word ^ QUOTES;
    let quote = no_quote.wrapping_sub(LOW) & !no_quote & HIGH;
    let length = (quote.trailing_zeros() / 8) as usize;
    // Keeps all bits up to that bit, or all bits if there is no quote.
    Some((word & (quote ^ quote.wrapping_sub(1)), length))
}

/// Reader of the members of one object.
#[derive(Debug)]
pub struct ObjectReader<M = &'static ObjectLayout> {
    /// Known members of the object.
    layout: M,
    /// Offset in bytes of the object, or of the complete message that the object belongs to.
    start: usize,
    /// One bit for each known member that was read.
    seen: u64,
    /// Index of the known member that is tried first, because it follows the last one in the layout.
    guess: usize,
    /// True once the opening brace was read.
    opened: bool,
    /// True until a member was read.
    first: bool,
    /// True if the object is a message whose envelope the reader records.
    envelope: bool,
    /// Unknown members that were read.
    unknown: Unknown,
}

impl<'a> Reader<'a> {
    /// Opens the next value, which must be an object of a known type, and returns a reader of its members.
    #[inline]
    pub fn object(&mut self, layout: &'static ObjectLayout) -> ReadResult<ObjectReader> {
        let envelope = self.take_envelope();
        if envelope && self.envelope().resumed {
            return Ok(ObjectReader::resumed(layout, self.envelope().start));
        }
        self.open_object()?;
        Ok(ObjectReader {
            envelope,
            ..ObjectReader::opened(layout, self.at() - 1)
        })
    }

    /// Reads the opening brace of an object. Outside semantic versioning.
    #[doc(hidden)]
    #[inline]
    pub fn open_object(&mut self) -> ReadResult<()> {
        if self.peek() != Some(b'{') {
            return Err(self.expected("an object"));
        }
        self.enter()?;
        self.set_at(self.at() + 1);
        Ok(())
    }

    /// Moves to the next member of an open object; returns the offset of its name, or `None` after the closing brace.
    /// Outside semantic versioning.
    #[doc(hidden)]
    #[inline(always)]
    pub fn next_member(&mut self, first: &mut bool) -> ReadResult<Option<usize>> {
        match self.peek() {
            Some(b'"') if *first => {}
            Some(b'}') => {
                self.set_at(self.at() + 1);
                self.leave();
                return Ok(None);
            }
            Some(b',') if !*first => {
                self.set_at(self.at() + 1);
                if self.peek() != Some(b'"') {
                    return Err(self.not_json(self.at()));
                }
            }
            _ => return Err(self.not_json(self.at())),
        }
        *first = false;
        Ok(Some(self.at()))
    }

    /// Reads the colon after a member's name. Outside semantic versioning.
    #[doc(hidden)]
    #[inline]
    pub fn colon(&mut self) -> ReadResult<()> {
        if self.peek() != Some(b':') {
            return Err(self.not_json(self.at()));
        }
        self.set_at(self.at() + 1);
        Ok(())
    }
}

impl ObjectReader {
    /// Result of [`step`](Self::step) after the object.
    pub const END: usize = usize::MAX;
    /// Result of [`step`](Self::step) if it failed.
    const FAILED: usize = usize::MAX - 1;

    /// Creates a reader of the next value as an object of a known type; the first step opens the object.
    pub const fn of(layout: &'static ObjectLayout) -> Self {
        Self {
            layout,
            start: 0,
            seen: 0,
            guess: 0,
            opened: false,
            first: true,
            envelope: false,
            unknown: None,
        }
    }

    /// Moves to the next known member like [`next`](Self::next), with a result that is compact in generated code: the
    /// index of a member, [`END`](Self::END), or another number if the reader failed.
    #[inline(never)]
    pub fn step(&mut self, r: &mut Reader<'_>) -> usize {
        if !self.opened {
            match r.object(self.layout) {
                Ok(opened) => *self = opened,
                Err(DecodeFailed) => return Self::FAILED,
            }
        }
        match self.advance(r) {
            Ok(Some(index)) => index,
            Ok(None) => Self::END,
            Err(DecodeFailed) => Self::FAILED,
        }
    }

    /// Creates a reader of a message whose members up to `method` were already read.
    fn resumed(layout: &'static ObjectLayout, start: usize) -> Self {
        /// Lookup key of `method`.
        const METHOD: u64 = keys::<1>(&["method"])[0];
        let method = layout.keys.iter().position(|key| *key == METHOD);
        Self {
            layout,
            start,
            seen: method.map_or(0, |index| 1 << index),
            guess: method.map_or(0, |index| index + 1),
            opened: true,
            first: false,
            envelope: true,
            unknown: None,
        }
    }

    /// Creates a reader of an object that began at `start`, and of which the known members in the bit set `seen` were
    /// read; the name of another member is next.
    pub(crate) fn continued(layout: &'static ObjectLayout, start: usize, seen: u64) -> Self {
        Self {
            seen,
            ..Self::opened(layout, start)
        }
    }

    /// Moves to the value of the next known member and returns the index of the member; `None` at the end of the
    /// object, after the check for missing and duplicate members. Unknown members are kept.
    #[inline(never)]
    pub fn next(&mut self, r: &mut Reader<'_>) -> ReadResult<Option<usize>> {
        self.advance(r)
    }

    /// [`next`](Self::next) as a part of each of its two callers.
    #[inline(always)]
    fn advance(&mut self, r: &mut Reader<'_>) -> ReadResult<Option<usize>> {
        loop {
            let Some(name_at) = r.next_member(&mut self.first)? else {
                if self.layout.required & !self.seen != 0 {
                    self.mark_provided(r);
                }
                return self.close(r);
            };
            if let Some(index) = self.plain_member(r, name_at) {
                r.colon()?;
                return self.known(r, name_at, index).map(Some);
            }
            if let Some(index) = self.read_other(r, name_at)? {
                return self.known(r, name_at, index).map(Some);
            }
        }
    }

    /// Marks a member of params as read if the caller provides its value.
    #[cold]
    fn mark_provided(&mut self, r: &Reader<'_>) {
        // Only the message encloses its params.
        let provided = r.provided_param().filter(|_| r.depth() == 1);
        if let Some(index) = provided.and_then(|provided| self.find(provided.name)) {
            self.seen |= 1 << index;
        }
    }

    /// Handles a member whose spelling in the text matches no known name: returns the index if the unescaped name is
    /// known, and otherwise stores the member.
    #[inline(never)]
    fn read_other(&mut self, r: &mut Reader<'_>, name_at: usize) -> ReadResult<Option<usize>> {
        let name = r.str()?;
        r.colon()?;
        if let Cow::Owned(name) = &name
            && let Some(index) = self.find(name)
        {
            return Ok(Some(index));
        }
        if self.envelope && r.envelope_member(&name, name_at)? {
            return Ok(None);
        }
        let value = r.json()?;
        let unknown = self.unknown.get_or_insert_default();
        unknown.push((name.into(), value));
        Ok(None)
    }

    /// Returns the unknown members, after the object was read.
    #[inline]
    pub fn extra<T: Members>(self) -> Extra<T> {
        Extra::from_unknown(self.unknown)
    }
}

impl<M: KnownMembers> ObjectReader<M> {
    /// Creates a reader of an opened object, before its first member.
    #[inline(always)]
    pub(crate) const fn opened(layout: M, start: usize) -> Self {
        Self {
            layout,
            start,
            seen: 0,
            guess: 0,
            opened: true,
            first: true,
            envelope: false,
            unknown: None,
        }
    }

    /// Records the failure that a required member is missing. Generated code calls this function for members that are
    /// absent after [`next`](Self::next) has ended, which the type system cannot exclude.
    #[cold]
    pub fn incomplete(&self, r: &mut Reader<'_>) -> DecodeFailed {
        let missing = self.layout.required() & !self.seen;
        let index = missing.trailing_zeros() as usize;
        let name = if index < self.layout.keys().len() {
            self.layout.name(index)
        } else {
            ""
        };
        r.fault(self.start, DecodeErrorKind::Required, Detail::Missing(name))
    }

    /// Reads the name at `name_at` if the name is known and spelled without escape sequences.
    #[inline(always)]
    pub(crate) fn plain_member(&self, r: &mut Reader<'_>, name_at: usize) -> Option<usize> {
        let bytes = r.bytes();
        let Some((key, length)) = key_at(bytes, name_at + 1) else {
            return self.last_member(r, name_at);
        };
        // Most senders keep the order of the schema, so the member after the previous one is tried first.
        let mut index = self.guess;
        if self.layout.keys().get(index) != Some(&key) {
            index = self.layout.keys().iter().position(|known| *known == key)?;
        }
        if length < 8 {
            // The key is the complete name.
            r.set_at(name_at + length + 2);
            return Some(index);
        }
        let name = self.layout.name(index).as_bytes();
        if !has_same_rest(bytes, name_at + 9, name) {
            return self.last_member(r, name_at);
        }
        r.set_at(name_at + name.len() + 2);
        Some(index)
    }

    /// Finds the known member whose name begins at `name_at`, without lookup keys: near the end of the text, and for
    /// names with the same first eight bytes.
    #[inline(never)]
    fn last_member(&self, r: &mut Reader<'_>, name_at: usize) -> Option<usize> {
        let bytes = r.bytes();
        let named =
            |index: &usize| is_named(bytes, name_at + 1, self.layout.name(*index).as_bytes());
        let index = self.indexes().find(named)?;
        r.set_at(name_at + self.layout.name(index).len() + 2);
        Some(index)
    }

    /// Returns the index of the known member with this unescaped name.
    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.indexes()
            .find(|index| self.layout.name(*index) == name)
    }

    /// Returns the indexes of all known members.
    fn indexes(&self) -> std::ops::Range<usize> {
        0..self.layout.keys().len()
    }

    /// Marks a known member as read and returns its index; a member that was read before is an error.
    #[inline]
    pub(crate) fn known(
        &mut self,
        r: &mut Reader<'_>,
        name_at: usize,
        index: usize,
    ) -> ReadResult<usize> {
        let bit = 1 << index;
        if self.seen & bit != 0 {
            return Err(duplicate_at(r, name_at));
        }
        self.seen |= bit;
        self.guess = index + 1;
        Ok(index)
    }

    /// Checks for missing and duplicate members at the end of the object; returns `None`.
    #[inline]
    pub(crate) fn close(&mut self, r: &mut Reader<'_>) -> ReadResult<Option<usize>> {
        if self.layout.required() & !self.seen != 0 {
            return Err(self.incomplete(r));
        }
        if let Some(unknown) = &self.unknown {
            check_unknown(r, self.start, unknown)?;
        }
        Ok(None)
    }
}

/// Returns true if the name in the text equals `name`. The first eight bytes are known to be equal; `at` is the offset
/// of the bytes after them.
#[inline]
fn has_same_rest(bytes: &[u8], at: usize, name: &[u8]) -> bool {
    let end = at + name.len() - 8;
    if bytes.get(end) != Some(&b'"') {
        return false;
    }
    match (name.last_chunk::<8>(), bytes.get(end - 8..end)) {
        // The last eight bytes, which may overlap the first eight, are compared as one number.
        (Some(last), Some(found)) if name.len() <= 16 => found == last,
        _ => bytes.get(at..end) == name.get(8..),
    }
}

/// Returns true if the name that begins at `at` is `name`.
#[inline]
fn is_named(bytes: &[u8], at: usize, name: &[u8]) -> bool {
    let inside = bytes.get(at..).unwrap_or_default();
    inside.get(name.len()) == Some(&b'"') && inside.starts_with(name)
}

/// Checks that no two unknown members of the object at `start` have the same name.
fn check_unknown(
    r: &mut Reader<'_>,
    start: usize,
    unknown: &[(Box<str>, crate::Json)],
) -> ReadResult<()> {
    match duplicate(unknown.len(), &|at| &unknown[at].0) {
        None => Ok(()),
        Some(name) => Err(duplicate_in(r, start, name)),
    }
}
