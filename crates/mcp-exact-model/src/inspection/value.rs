//! A JSON value within a document that was scanned before: its text, and its position in the document.

use std::borrow::Cow;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use mcp_exact_wire::{DecodeError, Kind, ObjectRef, ReadResult, Reader, from_str};

use super::NotJson;

/// One value of a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'a> {
    /// JSON text of the value, without white space around it.
    pub text: &'a str,
    /// Position of the value in the document, in bytes.
    pub at: usize,
    /// Kind of the value.
    pub kind: Kind,
    /// True for the value of a member that is named `_meta`.
    pub is_meta: bool,
}

/// Member of an object.
pub(super) struct Member<'a> {
    /// Name; a lone surrogate is replaced by U+FFFD.
    pub name: Cow<'a, str>,
    /// Position of the name in the document, in bytes.
    pub at: usize,
    /// Error of a name with a lone surrogate.
    pub error: Option<DecodeError>,
    /// Value of the member.
    pub value: Value<'a>,
}

impl<'a> Value<'a> {
    /// Scans a document, which must be one JSON value.
    pub fn of_document(bytes: &'a [u8]) -> Result<Self, NotJson> {
        let text =
            std::str::from_utf8(bytes).map_err(|error| NotJson::utf8(error.valid_up_to()))?;
        let mut r = Reader::new(text);
        let value = Self::scan(&mut r).and_then(|(kind, value)| r.end().map(|()| (kind, value)));
        match value {
            Ok((kind, value)) => Ok(Self {
                text: value,
                at: offset_in(text, value),
                kind,
                is_meta: false,
            }),
            Err(_) => Err(NotJson::from(r.into_error())),
        }
    }

    /// Reads the kind and the text of the next value.
    fn scan<'t>(r: &mut Reader<'t>) -> ReadResult<(Kind, &'t str)> {
        let kind = r.kind()?;
        Ok((kind, r.raw()?))
    }

    /// Reads the next value of this value's text.
    fn read_part(self, r: &mut Reader<'a>) -> ReadResult<Self> {
        let (kind, text) = Self::scan(r)?;
        Ok(Self {
            text,
            at: self.at + offset_in(self.text, text),
            kind,
            is_meta: false,
        })
    }

    /// Returns the members of an object, in order, with those that are there twice; none for a value of another kind.
    pub fn members(self) -> Members<'a> {
        Members {
            of: self,
            r: Reader::of_checked(self.text),
            is_open: false,
            is_first: true,
            has_ended: self.kind != Kind::Object,
        }
    }

    /// Returns the items of an array, in order; none for a value of another kind.
    pub fn items(self) -> Items<'a> {
        Items {
            of: self,
            r: Reader::of_checked(self.text),
            is_open: false,
            has_ended: self.kind != Kind::Array,
        }
    }

    /// Returns the first item of an array; `None` for an empty array and for a value of another kind.
    ///
    /// # Errors
    /// As [`Members`].
    pub fn first_item(self) -> ReadResult<Option<Self>> {
        self.items().next().transpose()
    }

    /// Returns true if the value is an object with a member of this name.
    ///
    /// # Errors
    /// As [`Members`].
    pub fn has(self, name: &str) -> ReadResult<bool> {
        for member in self.members() {
            if member?.name == name {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns for each of the names whether an object has a member of it.
    ///
    /// # Errors
    /// As [`Members`].
    pub fn has_each<'n>(
        self,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> ReadResult<Vec<bool>> {
        let mut found = vec![false; names.clone().count()];
        for member in self.members() {
            let member = member?;
            if let Some(index) = names.clone().position(|name| name == member.name) {
                found[index] = true;
            }
        }
        Ok(found)
    }
}

/// Members of an object, each of which is read when it is asked for, so that an object of many members needs no memory. An error comes
/// only for text that is no JSON, which no value has; it is the last item.
pub(super) struct Members<'a> {
    of: Value<'a>,
    r: Reader<'a>,
    /// True once the opening brace was read.
    is_open: bool,
    is_first: bool,
    has_ended: bool,
}

impl<'a> Members<'a> {
    fn read(&mut self) -> ReadResult<Option<Member<'a>>> {
        if !self.is_open {
            self.r.open_object()?;
            self.is_open = true;
        }
        let Some(at) = self.r.next_member(&mut self.is_first)? else {
            return Ok(None);
        };
        let (name, error) = decode_name(self.r.raw()?);
        self.r.colon()?;
        let value = self.of.read_part(&mut self.r)?;
        Ok(Some(Member {
            at: self.of.at + at,
            error,
            value: Value {
                is_meta: name == "_meta",
                ..value
            },
            name,
        }))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = ReadResult<Member<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let member = self.read();
        self.has_ended = !matches!(member, Ok(Some(_)));
        member.transpose()
    }
}

/// Items of an array, each of which is read when it is asked for; errors are those of [`Members`].
pub(super) struct Items<'a> {
    of: Value<'a>,
    r: Reader<'a>,
    /// True once the opening bracket was read.
    is_open: bool,
    has_ended: bool,
}

impl<'a> Items<'a> {
    fn read(&mut self) -> ReadResult<Option<Value<'a>>> {
        let has_more = if self.is_open {
            self.r.next_item()?
        } else {
            self.is_open = true;
            self.r.begin_array()?
        };
        if !has_more {
            return Ok(None);
        }
        self.of.read_part(&mut self.r).map(Some)
    }
}

impl<'a> Iterator for Items<'a> {
    type Item = ReadResult<Value<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let item = self.read();
        self.has_ended = !matches!(item, Ok(Some(_)));
        item.transpose()
    }
}

/// Finds the members that an object has twice. Of a large object, only the names are kept that may be there twice.
pub(super) struct Duplicates<'a> {
    /// Hashes that several names of the object have; `None` for a small object.
    repeated: Option<HashSet<u64>>,
    /// Names so far, of a large object only those whose hash is repeated.
    seen: HashSet<Cow<'a, str>>,
}

/// Size of an object from which on not all names are kept, in bytes.
const LARGE_OBJECT: usize = 1 << 16;

impl<'a> Duplicates<'a> {
    /// Creates the finder for an object.
    pub fn of(object: Value<'a>) -> Self {
        let is_large = object.text.len() >= LARGE_OBJECT;
        Self {
            repeated: is_large.then(|| repeated_hashes(object)),
            seen: HashSet::new(),
        }
    }

    /// Returns true if a member of this name was passed before; members are passed in order.
    pub fn is_repeated(&mut self, name: Cow<'a, str>) -> bool {
        let repeated = self.repeated.as_ref();
        let is_unique = repeated.is_some_and(|hashes| !hashes.contains(&hash(&name)));
        !is_unique && !self.seen.insert(name)
    }
}

/// Returns the hashes that several names of an object have.
fn repeated_hashes(object: Value<'_>) -> HashSet<u64> {
    let mut hashes = Vec::with_capacity(object.members().count());
    // Whoever walks through the members notices an error.
    let members = object.members().map_while(Result::ok);
    hashes.extend(members.map(|member| hash(&member.name)));
    hashes.sort_unstable();
    let pairs = hashes.windows(2).filter(|pair| pair[0] == pair[1]);
    pairs.map(|pair| pair[0]).collect()
}

/// Returns the hash of a name. Names with the same hash are compared.
fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// Decodes the name of a member from its spelling, which includes the quotes; returns an error, too, for a name with a
/// lone surrogate.
fn decode_name(spelt: &str) -> (Cow<'_, str>, Option<DecodeError>) {
    let inside = spelt.get(1..spelt.len() - 1).unwrap_or_default();
    if !inside.contains('\\') {
        return (Cow::Borrowed(inside), None);
    }
    match from_str::<String>(spelt) {
        Ok(name) => (Cow::Owned(name), None),
        Err(error) => {
            // Objects of untyped JSON replace lone surrogates.
            let object = format!("{{{spelt}:0}}");
            let mut members = ObjectRef::from_checked(&object).iter();
            let name = members.next().map(|(name, _)| name.into_owned());
            (Cow::Owned(name.unwrap_or_default()), Some(error))
        }
    }
}

/// Returns the position of `inner` in `outer`, of which it is a part, in bytes.
fn offset_in(outer: &str, inner: &str) -> usize {
    inner.as_ptr().addr() - outer.as_ptr().addr()
}
