//! Unknown members of a known type, kept in the order of arrival, without names that the type defines.
//!
//! An empty collection has the size of one pointer. Decoders add members without a search, because they find duplicates
//! by one sort.

use std::fmt;
use std::marker::PhantomData;

use crate::Json;
use crate::unknown::ENVELOPE_MEMBERS;
use crate::validate::{Path, ViolationKind, Violations};
use crate::writer::Writer;

/// Type that lists the names of its members.
pub trait Members {
    /// JSON names of all members that the schema of the type defines, discriminants included.
    const MEMBERS: &'static [&'static str];
    /// True if the type is a message, so that the names of the JSON-RPC envelope are no unknown members.
    const IS_MESSAGE: bool = false;
}

/// Unknown members as decoders collect them; `None` if there are none.
pub(crate) type Unknown = Option<Box<Vec<(Box<str>, Json)>>>;

/// Unknown members of an object, which its type does not define.
///
/// The collection refuses every name that `T` defines, so that a member is never written twice. If `T` is a message,
/// the collection also refuses the names of JSON-RPC's envelope: `jsonrpc`, `id`, `method`, `params`, `result` and
/// `error`. Unknown members keep the order of arrival, and are written after the known members.
pub struct Extra<T>(Unknown, PhantomData<fn() -> T>);

/// Error of [`Extra::insert`]: the name is not that of an unknown member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KnownMember {
    /// The type has a member of that name.
    Field,
    /// The type is a message, and its envelope has a member of that name.
    Envelope,
}

impl fmt::Display for KnownMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Field => "the type knows a member of this name; set the field instead",
            Self::Envelope => {
                "the envelope of a message has a member of this name; choose another name"
            }
        })
    }
}

impl std::error::Error for KnownMember {}

impl<T: Members> Extra<T> {
    /// Sets a member and returns its previous value.
    ///
    /// # Errors
    /// [`KnownMember`] if `T`, or the JSON-RPC envelope of a message type, has a member of that name.
    pub fn insert(
        &mut self,
        name: impl Into<Box<str>>,
        value: impl Into<Json>,
    ) -> Result<Option<Json>, KnownMember> {
        let name = name.into();
        if !T::MEMBERS.contains(&&*name) && T::IS_MESSAGE && ENVELOPE_MEMBERS.contains(&&*name) {
            return Err(KnownMember::Envelope);
        }
        self.insert_arrived(name, value)
    }

    /// Sets a member like [`insert`](Self::insert), but allows names of the envelope in a message, for members that
    /// were received.
    ///
    /// # Errors
    /// [`KnownMember::Field`] if the type has a field for `name`.
    #[doc(hidden)]
    pub fn insert_arrived(
        &mut self,
        name: impl Into<Box<str>>,
        value: impl Into<Json>,
    ) -> Result<Option<Json>, KnownMember> {
        let (name, value) = (name.into(), value.into());
        if T::MEMBERS.contains(&&*name) {
            return Err(KnownMember::Field);
        }
        let members = self.0.get_or_insert_default();
        if let Some((_, old)) = members.iter_mut().find(|(known, _)| *known == name) {
            return Ok(Some(std::mem::replace(old, value)));
        }
        members.push((name, value));
        Ok(None)
    }

    /// Converts the collection for another type: returns the members that are unknown to `U`, and the members that `U`
    /// defines, which must be decoded as fields.
    #[inline]
    pub fn retype<U: Members>(self) -> (Extra<U>, Vec<(Box<str>, Json)>) {
        match self.0 {
            None => (Extra::new(), Vec::new()),
            Some(members) => Self::split_known(*members),
        }
    }

    /// Splits members into those that `U` does not define and those that it defines.
    fn split_known<U: Members>(
        members: Vec<(Box<str>, Json)>,
    ) -> (Extra<U>, Vec<(Box<str>, Json)>) {
        let (known, unknown): (Vec<_>, Vec<_>) = members
            .into_iter()
            .partition(|(name, _)| U::MEMBERS.contains(&&**name));
        let unknown = (!unknown.is_empty()).then(|| Box::new(unknown));
        (Extra(unknown, PhantomData), known)
    }
}

impl<T> Extra<T> {
    /// Creates an empty collection of unknown members.
    pub const fn new() -> Self {
        Self(None, PhantomData)
    }

    /// Returns the number of unknown members.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |members| members.len())
    }

    /// Returns true if there are no unknown members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of an unknown member.
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.iter()
            .find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Removes an unknown member and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<Json> {
        let members = self.0.as_mut()?;
        let at = members.iter().position(|(known, _)| **known == *name)?;
        let (_, value) = members.remove(at);
        if members.is_empty() {
            self.0 = None;
        }
        Some(value)
    }

    /// Iterates over all unknown members in order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0
            .iter()
            .flat_map(|members| members.iter().map(|(name, value)| (&**name, value)))
    }

    /// Creates the collection from unknown members that a decoder has read.
    pub(crate) fn from_unknown(unknown: Unknown) -> Self {
        Self(unknown, PhantomData)
    }
}

impl<T: Members> Extra<T> {
    /// Writes the members into an object that is being written. While an entire message is written, members with names
    /// of its envelope are omitted, because the message type writes the envelope.
    #[inline]
    pub fn encode(&self, w: &mut Writer<'_>) {
        match &self.0 {
            None => {}
            Some(members) if T::IS_MESSAGE => write_in_message(members, w),
            Some(members) => write_members(members, w),
        }
    }
}

impl<T> Extra<T> {
    /// Reports every member as a violation, because the schema of `T` allows no unknown members.
    pub fn check_closed(&self, path: &Path<'_>, to: &mut Violations) {
        for (name, _) in self.iter() {
            report_additional(&path.member(name), to);
        }
    }
}

/// Reports a member that the schema of its object does not allow. Outside semantic versioning.
#[doc(hidden)]
pub fn report_additional(path: &Path<'_>, to: &mut Violations) {
    to.report(path, ViolationKind::AdditionalProperties, || {
        "the object allows no other members than its own".to_owned()
    });
}

/// Writes the members into the open object; a separate function, so that it is compiled once and not for each type.
#[inline(never)]
fn write_members(members: &[(Box<str>, Json)], w: &mut Writer<'_>) {
    for (name, value) in members {
        w.name(name);
        w.put(value.text());
    }
}

/// Writes the members into the open object; while a message is written, without the names of its envelope.
#[inline(never)]
fn write_in_message(members: &[(Box<str>, Json)], w: &mut Writer<'_>) {
    for (name, value) in members {
        if !(w.is_in_message() && ENVELOPE_MEMBERS.contains(&&**name)) {
            w.name(name);
            w.put(value.text());
        }
    }
}

impl<T> Default for Extra<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for Extra<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<T> PartialEq for Extra<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T> Eq for Extra<T> {}

impl<T> fmt::Debug for Extra<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
