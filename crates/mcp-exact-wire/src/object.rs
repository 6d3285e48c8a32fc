//! Objects of known types: finds members in their table, keeps the unknown ones, sees duplicates and gaps.
//!
//! Takes a reader at an object and the type's [`Shape`]; gives the index of each known member in turn. Duplicates cost a
//! bit set and, for unknown names, one sort.

use std::borrow::Cow;

use crate::error::{DecodeErrorKind, Detail, Failed, Read};
use crate::extra::{Extra, Members, Unknown};
use crate::reader::Reader;
use crate::scan;

/// The members that a type knows, and which of them are required.
#[derive(Debug)]
pub struct Shape {
    /// Names in the order of the schema, 64 at most.
    pub members: &'static [&'static str],
    /// One bit for each required member.
    pub required: u64,
}

/// The members of one object while they are read.
#[derive(Debug)]
pub struct ObjectReader {
    shape: &'static Shape,
    start: usize,
    seen: u64,
    guess: usize,
    first: bool,
    envelope: bool,
    unknown: Unknown,
}

impl<'a> Reader<'a> {
    /// Opens an object of a known type.
    #[inline]
    pub fn object(&mut self, shape: &'static Shape) -> Read<ObjectReader> {
        let envelope = self.take_envelope();
        if envelope && self.envelope().resumed {
            return Ok(ObjectReader::resumed(shape, self.envelope().start));
        }
        self.open_object()?;
        Ok(ObjectReader {
            shape,
            start: self.at() - 1,
            seen: 0,
            guess: 0,
            first: true,
            envelope,
            unknown: None,
        })
    }

    /// Opens any object.
    #[inline]
    pub(crate) fn open_object(&mut self) -> Read<()> {
        if self.peek() != Some(b'{') {
            return Err(self.expected("an object"));
        }
        self.enter()?;
        self.set_at(self.at() + 1);
        Ok(())
    }

    /// Moves to the next member of an open object: the offset of its name, or `None` after the closing brace.
    #[inline]
    pub(crate) fn next_member(&mut self, first: &mut bool) -> Read<Option<usize>> {
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

    /// Takes the colon after a member's name.
    #[inline]
    pub(crate) fn colon(&mut self) -> Read<()> {
        if self.peek() != Some(b':') {
            return Err(self.not_json(self.at()));
        }
        self.set_at(self.at() + 1);
        Ok(())
    }
}

impl ObjectReader {
    /// The rest of a message after its method.
    fn resumed(shape: &'static Shape, start: usize) -> Self {
        let method = shape.members.iter().position(|name| *name == "method");
        Self {
            shape,
            start,
            seen: method.map_or(0, |index| 1 << index),
            guess: method.map_or(0, |index| index + 1),
            first: false,
            envelope: true,
            unknown: None,
        }
    }

    /// The index of the next known member, whose value comes next; `None` after the object, once every required member
    /// was there and none twice. Unknown members are kept on the way.
    #[inline]
    pub fn next(&mut self, r: &mut Reader<'_>) -> Read<Option<usize>> {
        loop {
            let Some(name_at) = r.next_member(&mut self.first)? else {
                return self.close(r);
            };
            if let Some(index) = self
                .guessed(r, name_at)
                .or_else(|| self.plain_member(r, name_at))
            {
                r.colon()?;
                return self.known(r, name_at, index).map(Some);
            }
            if let Some(index) = self.other(r, name_at)? {
                return self.known(r, name_at, index).map(Some);
            }
        }
    }

    /// Takes a member whose name is not known as it is spelt: its index when it is known all the same.
    #[inline(never)]
    fn other(&mut self, r: &mut Reader<'_>, name_at: usize) -> Read<Option<usize>> {
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

    /// The unknown members, once the object was read.
    #[inline]
    pub fn extra<T: Members>(self) -> Extra<T> {
        Extra::from_unknown(self.unknown)
    }

    /// Notes that a required member is missing. Generated code calls it where the type system cannot see that
    /// [`next`](Self::next) has checked that already.
    #[cold]
    pub fn incomplete(&self, r: &mut Reader<'_>) -> Failed {
        let missing = self.shape.required & !self.seen;
        let index = missing.trailing_zeros() as usize;
        let name = self.shape.members.get(index).copied().unwrap_or_default();
        r.fault(self.start, DecodeErrorKind::Required, Detail::Missing(name))
    }

    /// Takes the name at `name_at` when it is the one that comes next in the order of the schema.
    #[inline]
    fn guessed(&self, r: &mut Reader<'_>, name_at: usize) -> Option<usize> {
        let name = self.shape.members.get(self.guess)?;
        let inside = &r.bytes()[name_at + 1..];
        let is = inside.get(name.len()) == Some(&b'"') && inside.starts_with(name.as_bytes());
        is.then(|| {
            r.set_at(name_at + name.len() + 2);
            self.guess
        })
    }

    /// Takes the name at `name_at` when it is spelt without escape sequences and known.
    #[inline(never)]
    fn plain_member(&self, r: &mut Reader<'_>, name_at: usize) -> Option<usize> {
        let inside = &r.bytes()[name_at + 1..];
        let length = scan::plain_end(inside, 0);
        if inside.get(length) != Some(&b'"') {
            return None;
        }
        let name = &inside[..length];
        let index = self
            .shape
            .members
            .iter()
            .position(|member| member.as_bytes() == name)?;
        r.set_at(name_at + length + 2);
        Some(index)
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.shape.members.iter().position(|member| *member == name)
    }

    #[inline]
    fn known(&mut self, r: &mut Reader<'_>, name_at: usize, index: usize) -> Read<usize> {
        let bit = 1 << index;
        if self.seen & bit != 0 {
            return Err(duplicate_at(r, name_at));
        }
        self.seen |= bit;
        self.guess = index + 1;
        Ok(index)
    }

    #[inline]
    fn close(&mut self, r: &mut Reader<'_>) -> Read<Option<usize>> {
        if self.shape.required & !self.seen != 0 {
            return Err(self.incomplete(r));
        }
        if let Some(unknown) = &self.unknown {
            check_unknown(r, self.start, unknown)?;
        }
        Ok(None)
    }
}

fn check_unknown(
    r: &mut Reader<'_>,
    start: usize,
    unknown: &[(Box<str>, crate::Json)],
) -> Read<()> {
    match duplicate_name(unknown.iter().map(|(name, _)| &**name)) {
        None => Ok(()),
        Some(name) => Err(duplicate_in(r, start, name)),
    }
}

/// A name that is there twice, found by one sort.
pub(crate) fn duplicate_name<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> Option<&'n str> {
    if names.len() < 2 {
        return None;
    }
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    sorted
        .windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
}

const DUPLICATE: Detail = Detail::Plain("the member is there twice");

#[cold]
pub(crate) fn duplicate_at(r: &mut Reader<'_>, name_at: usize) -> Failed {
    r.fault(name_at, DecodeErrorKind::Duplicate, DUPLICATE)
}

#[cold]
pub(crate) fn duplicate_in(r: &mut Reader<'_>, start: usize, name: &str) -> Failed {
    r.fault_in(
        start,
        DecodeErrorKind::Duplicate,
        DUPLICATE,
        Some(name.into()),
    )
}
