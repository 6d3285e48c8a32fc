//! Selection of the variant of a union of objects, by static tables.
//!
//! The reader looks ahead in an object: the discriminant and the present members determine the variant, not the success
//! of a decoding attempt. The position of the reader does not change. Each member is read at most once, and only as far
//! as necessary; the later decoding of the object detects invalid JSON.

use std::borrow::Cow;

use crate::error::{DecodeErrorKind, DecodeFailed, Detail, ReadResult};
use crate::reader::{Kind, Reader, duplicate_in};

/// Dispatch table that distinguishes the object variants of a union.
#[derive(Debug)]
pub struct UnionDispatch {
    /// Name of the union, for error messages.
    pub name: &'static str,
    /// Name of the discriminant member, or an empty string if the union has no discriminant.
    pub tag: &'static str,
    /// Members whose presence is tested, in the order of the bits of [`DispatchCase::has`].
    pub members: &'static [Probe],
    /// Cases in the order in which they are tried; the first case whose tag matches and whose members are present is
    /// selected.
    pub cases: &'static [DispatchCase],
    /// Pairs of bits of [`DispatchCase::has`] whose members must not occur in the same object.
    pub exclusive: &'static [(u32, u32)],
}

/// Member whose presence can be a condition for a variant.
#[derive(Debug, Clone, Copy)]
pub struct Probe {
    /// Name of the member.
    pub name: &'static str,
    /// Name of a member that the value must contain too, or an empty string.
    pub inner: &'static str,
}

/// Conditions under which an object is a certain variant of a union.
#[derive(Debug, Clone, Copy)]
pub struct DispatchCase {
    /// Value that the discriminant must have.
    pub tag: Tag,
    /// Members that must be present, as bits of [`UnionDispatch::members`].
    pub has: u32,
    /// Index of the union's variant.
    pub variant: u8,
}

/// Value that a discriminant must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tag {
    /// The discriminant has this value.
    Is(&'static str),
    /// The object does not have the discriminant.
    Absent,
    /// The discriminant may have any value, or be absent.
    Any,
}

/// Access to a dispatch table, which is a [`UnionDispatch`] or a packed table of the conversions. Each method returns
/// the field of [`UnionDispatch`] that it is named after.
pub trait DispatchTable {
    /// Returns the name of the union.
    fn name(&self) -> &'static str;
    /// Returns the discriminant, or an empty string.
    fn tag(&self) -> &'static str;
    /// Returns the number of [`members`](UnionDispatch::members).
    fn probe_count(&self) -> usize;
    /// Returns the member with this index among [`members`](UnionDispatch::members).
    fn probe(&self, bit: usize) -> Probe;
    /// Returns the [`cases`](UnionDispatch::cases) in their order.
    fn cases(&self) -> impl Iterator<Item = DispatchCase>;
    /// Returns the pairs of bits whose members must not occur in the same object.
    fn exclusive(&self) -> &'static [(u32, u32)];
}

impl DispatchTable for UnionDispatch {
    fn name(&self) -> &'static str {
        self.name
    }

    fn tag(&self) -> &'static str {
        self.tag
    }

    #[inline(always)]
    fn probe_count(&self) -> usize {
        self.members.len()
    }

    #[inline(always)]
    fn probe(&self, bit: usize) -> Probe {
        self.members[bit]
    }

    #[inline(always)]
    fn cases(&self) -> impl Iterator<Item = DispatchCase> {
        self.cases.iter().copied()
    }

    fn exclusive(&self) -> &'static [(u32, u32)] {
        self.exclusive
    }
}

/// Result of [`Reader::select_variant`] if no variant of the union has the value of the discriminant.
pub const UNRECOGNIZED: u8 = u8::MAX;

/// The discriminant of an object, and those of its members that a dispatch table tests.
#[derive(Default)]
struct PresentMembers<'a> {
    /// Value of the discriminant; `None` if the object does not have the discriminant.
    tag: Option<Cow<'a, str>>,
    /// Present members, as bits of [`UnionDispatch::members`].
    has: u32,
}

impl<'a> Reader<'a> {
    /// Returns the index of the union variant that the next object belongs to, or [`UNRECOGNIZED`].
    pub fn select_variant(&mut self, dispatch: &impl DispatchTable) -> ReadResult<u8> {
        let start = self.peek_at();
        if dispatch.probe_count() == 0
            && let Some(tag) = self.take_hint(start)
        {
            let tag = Some(Cow::Borrowed(tag));
            return self.select_case(dispatch, start, &PresentMembers { tag, has: 0 });
        }
        if self.kind()? != Kind::Object {
            return Err(self.expected("an object"));
        }
        let found = if dispatch.probe_count() == 0 {
            PresentMembers {
                tag: self.discriminant(dispatch.tag())?,
                has: 0,
            }
        } else {
            self.find_members(dispatch)?
        };
        self.check_exclusive(dispatch, start, found.has)?;
        self.select_case(dispatch, start, &found)
    }

    /// Returns the index of the union variant that the first item of the next array belongs to; `None` if the array is
    /// empty.
    pub fn select_item_variant(&mut self, dispatch: &impl DispatchTable) -> ReadResult<Option<u8>> {
        let (start, depth) = (self.peek_at(), self.depth());
        let selected = if self.begin_array()? {
            Some(self.select_variant(dispatch)?)
        } else {
            None
        };
        self.rewind(start, depth);
        Ok(selected)
    }

    /// Returns the index of the set that contains the next string; `None` if no set contains the string.
    pub fn select_string_set(&mut self, sets: &[&[&str]]) -> ReadResult<Option<usize>> {
        self.peek_string(|text| sets.iter().position(|set| set.contains(&text)))
    }

    /// Returns the result of a function on the next string, without consuming the string.
    pub fn peek_string<T>(&mut self, find: impl FnOnce(&str) -> T) -> ReadResult<T> {
        let (start, depth) = (self.peek_at(), self.depth());
        let text = self.str()?;
        let found = find(&text);
        self.rewind(start, depth);
        Ok(found)
    }

    /// Returns the value of a discriminant of the next object, if it is present. The text before the member is not
    /// checked to be JSON, because the decoding of the object checks it.
    pub fn discriminant(&mut self, name: &'static str) -> ReadResult<Option<Cow<'a, str>>> {
        let (start, depth) = (self.peek_at(), self.depth());
        self.open_object()?;
        let mut first = true;
        let mut tag = None;
        while self.next_member(&mut first)?.is_some() {
            let member = self.name()?;
            self.colon()?;
            if member == name {
                tag = Some(self.str()?);
                break;
            }
            self.skip_unchecked()?;
        }
        self.rewind(start, depth);
        Ok(tag)
    }

    /// Returns the value of a discriminant that no variant of a union has, and checks that the discriminant occurs
    /// once, because no other code checks this.
    pub(crate) fn unmatched_discriminant(
        &mut self,
        name: &'static str,
    ) -> ReadResult<Option<Cow<'a, str>>> {
        let (start, depth) = (self.peek_at(), self.depth());
        self.open_object()?;
        let mut first = true;
        let mut tag = None;
        while self.next_member(&mut first)?.is_some() {
            let member = self.name()?;
            self.colon()?;
            if member != name {
                self.skip()?;
            } else if tag.replace(self.str()?).is_some() {
                return Err(duplicate_in(self, start, name));
            }
        }
        self.rewind(start, depth);
        Ok(tag)
    }

    /// Finds the members of the next object that the dispatch table tests, and restores the position of the reader.
    fn find_members(&mut self, dispatch: &impl DispatchTable) -> ReadResult<PresentMembers<'a>> {
        let (start, depth) = (self.peek_at(), self.depth());
        self.open_object()?;
        let mut found = PresentMembers::default();
        let mut first = true;
        while self.next_member(&mut first)?.is_some() {
            let member = self.name()?;
            self.colon()?;
            for bit in 0..dispatch.probe_count() {
                let probe = dispatch.probe(bit);
                if member == probe.name
                    && (probe.inner.is_empty() || self.next_object_has(probe.inner)?)
                {
                    found.has |= 1 << bit;
                }
            }
            if found.tag.is_none() && !dispatch.tag().is_empty() && member == dispatch.tag() {
                found.tag = Some(self.str()?);
            } else {
                self.skip_unchecked()?;
            }
        }
        self.rewind(start, depth);
        Ok(found)
    }

    /// Returns true if the next value is an object with a member of that name.
    pub(crate) fn next_object_has(&mut self, name: &str) -> ReadResult<bool> {
        if self.kind()? != Kind::Object {
            return Ok(false);
        }
        let (start, depth) = (self.peek_at(), self.depth());
        self.open_object()?;
        let mut first = true;
        let mut has = false;
        while !has && self.next_member(&mut first)?.is_some() {
            has = self.name()? == name;
            self.colon()?;
            self.skip_unchecked()?;
        }
        self.rewind(start, depth);
        Ok(has)
    }

    /// Checks that the object at `start` does not have two members that exclude each other.
    fn check_exclusive(
        &mut self,
        dispatch: &impl DispatchTable,
        start: usize,
        has: u32,
    ) -> ReadResult<()> {
        for &(a, b) in dispatch.exclusive() {
            if has & a != 0 && has & b != 0 {
                let name = |bit: u32| dispatch.probe(bit.trailing_zeros() as usize).name;
                let detail = Detail::Exclusive(name(a), name(b));
                return Err(self.fault(start, DecodeErrorKind::Exclusive, detail));
            }
        }
        Ok(())
    }

    /// Returns the variant of the first case that matches; if no case matches, [`UNRECOGNIZED`] or an error.
    fn select_case(
        &mut self,
        dispatch: &impl DispatchTable,
        start: usize,
        found: &PresentMembers<'_>,
    ) -> ReadResult<u8> {
        let tag = found.tag.as_deref();
        let mut known = false;
        for case in dispatch.cases() {
            let right = match case.tag {
                Tag::Is(value) => tag == Some(value),
                Tag::Absent => tag.is_none(),
                Tag::Any => !known,
            };
            known |= right && case.tag != Tag::Any;
            if right && found.has & case.has == case.has {
                return Ok(case.variant);
            }
        }
        match tag {
            Some(_) if !known => Ok(UNRECOGNIZED),
            _ => Err(self.no_variant_error(dispatch, start, tag)),
        }
    }

    /// Records the failure that the object at `start` matches no case of the union.
    #[cold]
    fn no_variant_error(
        &mut self,
        dispatch: &impl DispatchTable,
        start: usize,
        tag: Option<&str>,
    ) -> DecodeFailed {
        if tag.is_none() && !dispatch.tag().is_empty() {
            let detail = Detail::Missing(dispatch.tag());
            return self.fault(start, DecodeErrorKind::Required, detail);
        }
        let detail = Detail::Union(dispatch.name());
        self.fault(start, DecodeErrorKind::Union, detail)
    }
}
