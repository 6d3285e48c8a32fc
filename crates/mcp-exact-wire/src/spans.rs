//! Reading of objects by tables instead of types, with the text positions of the members.
//!
//! The interpreter of conversions uses these readers to find exactly the errors that decoding finds, because reader,
//! lookup and checks are the same. Only the names of unknown members are kept, to detect duplicates.

use std::borrow::Cow;

pub use crate::dispatch::DispatchTable;
use crate::document::{DocumentRule, check_members, member_violation};
use crate::error::ReadResult;
pub use crate::extra::report_additional;
use crate::object::ObjectReader;
pub use crate::object::{KnownMembers, is_same};
use crate::order::duplicate;
pub use crate::pointer::quoted;
use crate::reader::{Reader, duplicate_in};
use crate::skip;
use crate::validate::{Path, Violations};

/// Reader of the members of one object, by a table. Outside semantic versioning.
#[doc(hidden)]
#[derive(Debug)]
pub struct MemberReader<'a, M> {
    /// Known members of the object, and which of them were read.
    object: ObjectReader<M>,
    /// Offset of the object, in bytes.
    start: usize,
    /// True until a member was read.
    first: bool,
    /// Names of the unknown members that were read.
    unknown: Vec<Cow<'a, str>>,
}

/// Name of the member whose value is next. Outside semantic versioning.
#[doc(hidden)]
#[derive(Debug)]
pub enum MemberName<'a> {
    /// A known member, by its index in the table.
    Known(usize),
    /// An unknown member, by its unescaped name.
    Unknown(Cow<'a, str>),
}

impl<'a, M: KnownMembers> MemberReader<'a, M> {
    /// Opens an object.
    ///
    /// # Errors
    /// The errors of decoding a type with these members.
    #[inline]
    pub fn open(r: &mut Reader<'a>, members: M) -> ReadResult<Self> {
        r.open_object()?;
        let start = r.at() - 1;
        Ok(Self {
            object: ObjectReader::opened(members, start),
            start,
            first: true,
            unknown: Vec::new(),
        })
    }

    /// Moves to the value of the next member; `None` at the end of the object, after the check for missing and
    /// duplicate members.
    ///
    /// # Errors
    /// The errors of decoding a type with these members.
    #[inline(always)]
    pub fn next(&mut self, r: &mut Reader<'a>) -> ReadResult<Option<MemberName<'a>>> {
        let Some(name_at) = r.next_member(&mut self.first)? else {
            return self.close(r).map(|()| None);
        };
        if let Some(index) = self.object.plain_member(r, name_at) {
            r.colon()?;
            let index = self.object.known(r, name_at, index)?;
            return Ok(Some(MemberName::Known(index)));
        }
        self.read_other(r, name_at).map(Some)
    }

    /// Checks for missing and duplicate members at the end of the object.
    #[inline]
    fn close(&mut self, r: &mut Reader<'a>) -> ReadResult<()> {
        self.object.close(r)?;
        if self.unknown.is_empty() {
            return Ok(());
        }
        match duplicate(self.unknown.len(), &|at| &self.unknown[at]) {
            None => Ok(()),
            Some(name) => Err(duplicate_in(r, self.start, name)),
        }
    }

    /// Reads the name of a member whose spelling in the text matches no known name.
    #[inline(never)]
    fn read_other(&mut self, r: &mut Reader<'a>, name_at: usize) -> ReadResult<MemberName<'a>> {
        let name = r.str()?;
        r.colon()?;
        if let Cow::Owned(text) = &name
            && let Some(index) = self.object.find(text)
        {
            let index = self.object.known(r, name_at, index)?;
            return Ok(MemberName::Known(index));
        }
        self.unknown.push(name.clone());
        Ok(MemberName::Unknown(name))
    }
}

/// Saved position of a reader. Outside semantic versioning.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// Offset of the position, in bytes.
    at: usize,
    /// Nesting depth of typed values at the position.
    depth: u32,
}

/// A member of untyped JSON. Outside semantic versioning.
#[doc(hidden)]
#[derive(Debug)]
pub struct OpenMember<'a> {
    /// Name of the member, with lone surrogates replaced.
    pub name: Cow<'a, str>,
    /// Name of the member as spelled in the text, including the quotes.
    pub quoted: &'a str,
    /// JSON text of the member's value.
    pub value: &'a str,
}

/// Reader of the entries of one typed map. Outside semantic versioning.
#[doc(hidden)]
#[derive(Debug)]
pub struct EntryReader<'a> {
    /// Offset of the object, in bytes.
    start: usize,
    /// True until an entry was read.
    first: bool,
    /// Names of the entries that were read.
    names: Vec<Cow<'a, str>>,
}

impl<'a> EntryReader<'a> {
    /// Opens an object.
    ///
    /// # Errors
    /// The same errors as when a map is decoded.
    pub fn open(r: &mut Reader<'a>) -> ReadResult<Self> {
        r.open_object()?;
        Ok(Self {
            start: r.at() - 1,
            first: true,
            names: Vec::new(),
        })
    }

    /// Reads the name of the next entry and moves to its value. Returns `None` at the end of the object.
    ///
    /// # Errors
    /// The same errors as when a map is decoded. A duplicate name is an error at the end of the object.
    pub fn next(&mut self, r: &mut Reader<'a>) -> ReadResult<Option<Cow<'a, str>>> {
        if r.next_member(&mut self.first)?.is_none() {
            return match duplicate(self.names.len(), &|at| &self.names[at]) {
                None => Ok(None),
                Some(name) => Err(duplicate_in(r, self.start, name)),
            };
        }
        let name = r.str()?;
        r.colon()?;
        self.names.push(name.clone());
        Ok(Some(name))
    }
}

impl<'a> Reader<'a> {
    /// Returns the offset of the next value, in bytes.
    #[doc(hidden)]
    #[inline]
    pub fn value_start(&mut self) -> usize {
        self.peek_at()
    }

    /// Returns the text from the start of a value to the position of the reader.
    #[doc(hidden)]
    #[inline]
    pub fn text_since(&self, start: usize) -> &'a str {
        self.since(start)
    }

    /// Returns the position of the reader, for [`back_to`](Self::back_to) and [`recover`](Self::recover).
    #[doc(hidden)]
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark {
            at: self.at(),
            depth: self.depth(),
        }
    }

    /// Restores a saved position after a successful read.
    #[doc(hidden)]
    #[inline]
    pub fn back_to(&mut self, mark: Mark) {
        self.rewind(mark.at, mark.depth);
    }

    /// Restores a saved position after a failed read; returns the description of the failure.
    ///
    /// # Errors
    /// [`DecodeFailed`] if the text is not JSON or is nested too deep.
    #[doc(hidden)]
    pub fn recover(&mut self, mark: Mark) -> ReadResult<String> {
        let fault = self.forgive()?;
        self.rewind(mark.at, mark.depth);
        Ok(format!("{}", fault.detail))
    }

    /// Skips the next value, which must be an object; a value of another type is recorded as a failure.
    ///
    /// # Errors
    /// The same errors as when a [`JsonObject`](crate::JsonObject) is decoded.
    #[doc(hidden)]
    pub fn open_value_object(&mut self) -> ReadResult<()> {
        if self.peek() != Some(b'{') {
            return Err(self.expected("an object"));
        }
        self.skip()
    }

    /// Returns the name of the next member of an untyped object, with lone surrogates replaced, and moves to its value;
    /// `None` after the last member. Untyped levels do not count towards the maximum depth.
    ///
    /// # Errors
    /// [`DecodeFailed`] if the text is not JSON.
    #[doc(hidden)]
    pub fn open_name(&mut self, first: &mut bool) -> ReadResult<Option<Cow<'a, str>>> {
        if *first {
            if self.peek() != Some(b'{') {
                return Err(self.expected("an object"));
            }
            self.rewind(self.at() + 1, self.depth() + 1);
        }
        if self.next_member(first)?.is_none() {
            return Ok(None);
        }
        let name = self.name()?;
        self.colon()?;
        Ok(Some(name))
    }

    /// Opens an array of untyped JSON; returns true if it has a first item. Untyped levels do not count towards the
    /// maximum depth.
    ///
    /// # Errors
    /// [`DecodeFailed`] if the text is not JSON.
    #[doc(hidden)]
    pub fn open_items(&mut self) -> ReadResult<bool> {
        if self.peek() != Some(b'[') {
            return Err(self.expected("an array"));
        }
        self.rewind(self.at() + 1, self.depth() + 1);
        if self.peek() == Some(b']') {
            return self.next_item();
        }
        Ok(true)
    }

    /// Returns the next member of untyped JSON; `None` after the last member.
    ///
    /// # Errors
    /// [`DecodeFailed`] if the text is not JSON.
    #[doc(hidden)]
    pub fn open_member(&mut self, first: &mut bool) -> ReadResult<Option<OpenMember<'a>>> {
        if *first {
            self.open_object()?;
        }
        if self.next_member(first)?.is_none() {
            return Ok(None);
        }
        let start = self.at();
        let name = self.name()?;
        let quoted = self.since(start);
        self.colon()?;
        let value = self.raw()?;
        Ok(Some(OpenMember {
            name,
            quoted,
            value,
        }))
    }
}

/// Returns the end of the value that begins at `at` in valid JSON text. Outside semantic versioning.
#[doc(hidden)]
pub fn value_end(text: &str, at: usize) -> Option<usize> {
    skip::value_end(text.as_bytes(), at)
}

/// Reports the violations of the rules for a JSON Schema document, which are given as a table. Outside semantic
/// versioning.
#[doc(hidden)]
pub fn check_document(rules: &[DocumentRule], text: &str, path: &Path<'_>, to: &mut Violations) {
    check_members(rules, false, text, path, to);
}

/// Returns a description of the first deviation of a document member from its rule. Outside semantic versioning.
#[doc(hidden)]
pub fn check_document_member(rule: &DocumentRule, text: &str) -> Option<String> {
    member_violation(rule, text)
}
