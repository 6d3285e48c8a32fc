//! Positions of members in untyped JSON, found in the same pass that checks the JSON.
//!
//! Decoding an object also returns the positions of the values of named members, so that no second pass is needed.

use crate::JsonObject;
use crate::error::ReadResult;
use crate::reader::Reader;
use crate::view::JsonRef;

/// Byte ranges of the values of some members of one untyped object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places<const N: usize>([(usize, usize); N]);

impl<const N: usize> Places<N> {
    /// Creates positions that mark all members as absent: the empty range at the start of the object.
    pub(crate) const fn none() -> Self {
        Self([(0, 0); N])
    }

    /// Returns true if the object has the member with this index among the names.
    pub fn has(&self, index: usize) -> bool {
        self.0.get(index).is_some_and(|(start, _)| *start > 0)
    }

    /// Returns the value of the member with this index among the names. `object` must be the object that was decoded
    /// together with these positions.
    pub fn value<'a>(&self, object: &'a JsonObject, index: usize) -> Option<JsonRef<'a>> {
        let (start, end) = *self.0.get(index)?;
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
    let (mut first, mut depth) = (true, 0);
    while r.next_member(&mut first)?.is_some() {
        let name = r.name()?;
        r.colon()?;
        let value = r.peek_at() - start;
        depth = depth.max(r.scan_depth()?);
        if let Some(index) = names.iter().position(|known| *known == name) {
            places.0[index] = (value, r.at() - start);
        }
    }
    Ok((places, depth + 1))
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
