//! Positions of members in untyped JSON, found in the same pass that checks the JSON.
//!
//! Decoding an object also returns the positions of the values of named members, so that no second pass is needed.

use std::borrow::Cow;

use crate::JsonObject;
use crate::error::ReadResult;
use crate::reader::Reader;
use crate::view::{JsonRef, ObjectRef};

/// Byte ranges of the values of some members of one untyped object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places<const N: usize> {
    /// Start and end of each value.
    ranges: [(usize, usize); N],
    /// True if the object is known to be tidy, except for the values of the members at `ranges`.
    is_tidy: bool,
}

impl<const N: usize> Places<N> {
    /// Creates positions that mark all members as absent: the empty range at the start of the object.
    pub(crate) const fn none() -> Self {
        Self {
            ranges: [(0, 0); N],
            is_tidy: true,
        }
    }

    /// Returns true if no two members of the object have the same name, no name has an escape sequence, and all values but those
    /// of the named members are strings without escape sequences, numbers or booleans. May return false for such an object too.
    /// Outside semantic versioning.
    #[doc(hidden)]
    pub fn is_tidy_elsewhere(&self) -> bool {
        self.is_tidy
    }

    /// Returns true if the object has the member with this index among the names.
    pub fn has(&self, index: usize) -> bool {
        self.ranges.get(index).is_some_and(|(start, _)| *start > 0)
    }

    /// Returns the value of the member with this index among the names. `object` must be the object that was decoded
    /// together with these positions.
    pub fn value<'a>(&self, object: &'a JsonObject, index: usize) -> Option<JsonRef<'a>> {
        self.value_in(object.view(), index)
    }

    /// Returns the value of the member with this index among the names, in an object with the text of the object that was
    /// decoded together with these positions.
    pub fn value_in<'a>(&self, object: ObjectRef<'a>, index: usize) -> Option<JsonRef<'a>> {
        let (start, end) = *self.ranges.get(index)?;
        let text = object.text().get(start..end).filter(|_| start > 0);
        text.map(JsonRef::from_checked)
    }

    /// Returns the values of all of the members. `object` must be the object that was decoded together with these
    /// positions.
    pub fn values<'a>(&self, object: &'a JsonObject) -> [Option<JsonRef<'a>>; N] {
        std::array::from_fn(|index| self.value(object, index))
    }
}

impl JsonObject {
    /// Decodes an object and finds the named members in the same pass, like
    /// [`ObjectRef::find_each`](crate::ObjectRef::find_each): if a name occurs twice, the last value counts. The names
    /// must be distinct.
    ///
    /// # Errors
    /// The errors of decoding a [`JsonObject`].
    pub fn decode_finding<const N: usize>(
        r: &mut Reader<'_>,
        names: [&str; N],
    ) -> ReadResult<(Self, Places<N>)> {
        let start = r.peek_at();
        let (places, _) = scan_object(r, &names)?;
        let object = Self::from_checked(r.since(start));
        Ok((object, places))
    }
}

/// Scans the next object; returns the positions of the named members, and the nesting depth of the object.
pub(crate) fn scan_object<const N: usize>(
    r: &mut Reader<'_>,
    names: &[&str; N],
) -> ReadResult<(Places<N>, usize)> {
    let start = r.peek_at();
    r.open_object()?;
    let mut places = Places::none();
    let (mut first, mut depth, mut seen) = (true, 0, 0_u64);
    while r.next_member(&mut first)?.is_some() {
        let name = r.name()?;
        r.colon()?;
        let bit = name_bit(&name);
        places.is_tidy &= seen & bit == 0 && matches!(name, Cow::Borrowed(_));
        seen |= bit;
        let (value, initial) = (r.peek_at(), r.peek());
        depth = depth.max(r.scan_depth()?);
        if let Some(index) = names.iter().position(|known| *known == name) {
            places.ranges[index] = (value - start, r.at() - start);
        } else {
            places.is_tidy &= match initial {
                Some(b'{' | b'[' | b'n') => false,
                Some(b'"') => memchr::memchr(b'\\', r.since(value).as_bytes()).is_none(),
                _ => true,
            };
        }
    }
    Ok((places, depth + 1))
}

/// Returns one of 64 bits for a name; equal names have the same bit.
#[inline(always)]
fn name_bit(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let byte = |at: Option<&u8>| at.map_or(0, |byte| usize::from(*byte));
    let hash = name.len() + 5 * byte(bytes.first()) + 11 * byte(bytes.last());
    1 << (hash % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traits::Decode;

    /// Names that the tests search.
    const NAMES: [&str; 3] = ["a", "b", "_meta"];

    /// Checks that finding members while decoding returns the same as finding them afterwards.
    fn check(text: &str) {
        let mut r = Reader::new(text);
        let found =
            JsonObject::decode_finding(&mut r, NAMES).and_then(|found| r.end().map(|()| found));
        let mut r = Reader::new(text);
        let plain = JsonObject::decode(&mut r).and_then(|object| r.end().map(|()| object));
        match (found, plain) {
            (Ok((object, places)), Ok(plain)) => {
                assert_eq!(object, plain);
                assert_eq!(
                    places.values(&object),
                    plain.view().find_each(NAMES),
                    "{text}"
                );
            }
            (Err(_), Err(_)) => {}
            (found, plain) => panic!("{text}: {found:?} {plain:?}"),
        }
    }

    /// Members that are found while an object is decoded are those that iteration finds afterwards, also in truncated
    /// text.
    #[test]
    fn places_agree_with_iteration() {
        let whole =
            r#" { "a" : [1, {"b":2}] ,"\u0062":"x\"}","c":{}, "a":3 ,"_meta":{"a":1},"\ud800":0} "#;
        check(whole);
        check("{}");
        check("{ }");
        for text in [
            "",
            "[]",
            "1",
            "{\"a\"}",
            "{\"a\":1,}",
            "{,}",
            "{\"a\":01}",
            "{\"a\":1 \"b\":2}",
        ] {
            check(text);
        }
        for length in (0..whole.len()).filter(|at| whole.is_char_boundary(*at)) {
            check(&whole[..length]);
        }
    }
}
