//! A JSON value within a document that was scanned before: its text, and its position in the document.

use std::borrow::Cow;

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
    ///
    /// # Errors
    /// Fails only for text that is no JSON, which no value has.
    pub fn members(self) -> ReadResult<Vec<Member<'a>>> {
        let mut members = Vec::new();
        if self.kind != Kind::Object {
            return Ok(members);
        }
        let mut r = Reader::of_checked(self.text);
        r.open_object()?;
        let mut first = true;
        while let Some(at) = r.next_member(&mut first)? {
            let (name, error) = decode_name(r.raw()?);
            r.colon()?;
            let value = self.read_part(&mut r)?;
            members.push(Member {
                at: self.at + at,
                error,
                value: Self {
                    is_meta: name == "_meta",
                    ..value
                },
                name,
            });
        }
        Ok(members)
    }

    /// Returns the items of an array, in order; none for a value of another kind.
    ///
    /// # Errors
    /// As [`members`](Self::members).
    pub fn items(self) -> ReadResult<Vec<Self>> {
        let mut items = Vec::new();
        if self.kind != Kind::Array {
            return Ok(items);
        }
        let mut r = Reader::of_checked(self.text);
        let mut more = r.begin_array()?;
        while more {
            items.push(self.read_part(&mut r)?);
            more = r.next_item()?;
        }
        Ok(items)
    }

    /// Returns the first item of an array; `None` for an empty array and for a value of another kind.
    ///
    /// # Errors
    /// As [`members`](Self::members).
    pub fn first_item(self) -> ReadResult<Option<Self>> {
        let mut r = Reader::of_checked(self.text);
        if self.kind != Kind::Array || !r.begin_array()? {
            return Ok(None);
        }
        self.read_part(&mut r).map(Some)
    }

    /// Returns true if the value is an object with a member of this name.
    ///
    /// # Errors
    /// As [`members`](Self::members).
    pub fn has(self, name: &str) -> ReadResult<bool> {
        let members = self.members()?;
        Ok(members.iter().any(|member| member.name == name))
    }
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
