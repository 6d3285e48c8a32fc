//! Untyped JSON: values without a type in the specification, kept as the received JSON text.
//!
//! Values are parsed only on demand. Equality compares the JSON text. Received text is never reformatted.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{DecodeError, DecodeFailed, ReadResult};
use crate::order::{MAX_PAIRWISE_NAMES, sorted};
use crate::reader::{Kind, Reader};
use crate::scan::plain_end;
use crate::traits::{Decode, Encode, text_of};
use crate::view::{JsonRef, ObjectRef, ObjectWith};
use crate::writer::Writer;
use crate::{encode_into, from_str, to_string};

/// Maximum length of an encoded value, in bytes, that is copied out of its buffer into an allocation of exact size.
const MAX_COPIED_LENGTH: usize = 256;

/// One JSON value as text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Box<str>);

impl Json {
    /// Creates the value `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// Creates a JSON string with the contents `text`.
    pub fn string(text: &str) -> Self {
        Self::string_between("", text, "")
    }

    /// Serialises `value` with serde.
    ///
    /// # Errors
    /// As [`serde_json::to_string`]; an error also occurs if `value` supplies raw JSON that is not one JSON value.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        let text = serde_json::to_string(value)?;
        Self::check(text.into()).map_err(serde::ser::Error::custom)
    }

    /// Encodes a value of a generated type exactly. Other implementations of [`Encode`] have to write exactly one JSON
    /// value.
    pub fn from_encode<T: Encode + ?Sized>(value: &T) -> Self {
        Self::from_written(to_string(value))
    }

    /// Parses the value with serde.
    ///
    /// # Errors
    /// The errors of [`serde_json::from_str`].
    pub fn parse<'de, T: Deserialize<'de>>(&'de self) -> serde_json::Result<T> {
        serde_json::from_str(&self.0)
    }

    /// Decodes the value as a generated type, exactly.
    ///
    /// # Errors
    /// [`DecodeError`] if the value does not match the type; the JSON pointer of the error is relative to this value.
    pub fn decode_as<T: Decode>(&self) -> Result<T, DecodeError> {
        self.view().decode_as()
    }

    /// Returns the JSON text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns a borrowed view of the value.
    pub fn view(&self) -> JsonRef<'_> {
        JsonRef::from_checked(&self.0)
    }

    /// Returns the kind of the value.
    pub fn kind(&self) -> Kind {
        self.view().kind()
    }

    /// Creates a value from the JSON text before a string, the contents of the string, and the JSON text after it.
    fn string_between(before: &str, string: &str, after: &str) -> Self {
        if plain_end(string.as_bytes(), 0) < string.len() {
            return Self::from_written(text_of(&|w| {
                w.put(before);
                w.string(string);
                w.put(after);
            }));
        }
        // Most strings contain no character that must be escaped: their allocation has the exact size.
        let mut out = String::with_capacity(before.len() + string.len() + after.len() + 2);
        out.push_str(before);
        out.push('"');
        out.push_str(string);
        out.push('"');
        out.push_str(after);
        Self(out.into())
    }

    /// Creates a value from encoded text.
    fn from_written(text: String) -> Self {
        // A small text is copied: its buffer serves the next value, where shrinking would split it every time.
        if text.len() <= MAX_COPIED_LENGTH {
            Self(text.as_str().into())
        } else {
            Self(text.into())
        }
    }

    /// Creates a value from text after checking that the text is one JSON value; surrounding white space is removed.
    pub(crate) fn check(text: Box<str>) -> Result<Self, DecodeError> {
        let mut r = Reader::new(&text);
        let value = r.raw().and_then(|value| r.end().map(|()| value));
        match value {
            Ok(value) if value.len() == text.len() => Ok(Self(text)),
            Ok(value) => Ok(Self::from_checked(value)),
            Err(DecodeFailed) => Err(r.into_error()),
        }
    }

    /// Creates a value from text that was already checked to be one JSON value, without surrounding white space.
    #[inline]
    pub(crate) fn from_checked(text: &str) -> Self {
        Self(text.into())
    }
}

impl JsonRef<'_> {
    /// Returns an owned copy.
    pub fn to_json(self) -> Json {
        Json::from_checked(self.text())
    }
}

impl FromStr for Json {
    type Err = DecodeError;

    /// Parses one JSON value; the text is kept unchanged except for surrounding white space.
    fn from_str(text: &str) -> Result<Self, DecodeError> {
        from_str(text)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self(if value { "true" } else { "false" }.into())
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        // `serde_json` would bring its printer of indented text with it.
        Self::from_written(text_of(&|w| write_value(&value, w)))
    }
}

impl From<JsonObject> for Json {
    fn from(object: JsonObject) -> Self {
        object.0
    }
}

impl Reader<'_> {
    /// Reads a value as untyped JSON.
    pub fn json(&mut self) -> ReadResult<Json> {
        self.raw().map(Json::from_checked)
    }
}

impl Decode for Json {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        r.json()
    }
}

impl Encode for Json {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        w.put(&self.0);
    }
}

/// Writes a value of `serde_json`.
fn write_value(value: &serde_json::Value, w: &mut Writer<'_>) {
    use serde_json::Value;
    match value {
        Value::Null => w.put("null"),
        Value::Bool(value) => w.put(if *value { "true" } else { "false" }),
        Value::Number(number) => w.put(&number.to_string()),
        Value::String(text) => w.string(text),
        Value::Array(items) => {
            w.put("[");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    w.put(",");
                }
                write_value(item, w);
            }
            w.put("]");
        }
        Value::Object(members) => {
            w.put("{");
            for (name, member) in members {
                w.name(name);
                write_value(member, w);
            }
            w.put("}");
        }
    }
}

/// One JSON object as text, for values without a type that the schema requires to be objects.
///
/// Members are found by scanning. If a name occurs twice, which untyped JSON allows, the last one counts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonObject(Json);

impl JsonObject {
    /// Creates an empty object.
    pub fn new() -> Self {
        Self::from_checked("{}")
    }

    /// Creates an object from text that was already checked to be one JSON object, without surrounding white space.
    pub(crate) fn from_checked(text: &str) -> Self {
        Self(Json::from_checked(text))
    }

    /// Creates an object from owned text that was already checked to be one JSON object. Outside semantic versioning.
    #[doc(hidden)]
    pub fn from_checked_text(text: String) -> Self {
        Self(Json(text.into()))
    }

    /// Creates an object from the JSON text before a string, the contents of the string, and the JSON text after it; the
    /// text was already checked to be one JSON object. Outside semantic versioning.
    #[doc(hidden)]
    pub fn from_checked_parts(before: &str, string: &str, after: &str) -> Self {
        Self(Json::string_between(before, string, after))
    }

    /// Returns the JSON text.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// Returns the object as a JSON value.
    pub fn as_json(&self) -> &Json {
        &self.0
    }

    /// Parses the object with serde.
    ///
    /// # Errors
    /// The errors of [`serde_json::from_str`].
    pub fn parse<'de, T: Deserialize<'de>>(&'de self) -> serde_json::Result<T> {
        self.0.parse()
    }

    /// Decodes the object as a generated type, exactly.
    ///
    /// # Errors
    /// [`DecodeError`] if the object does not match the type; the JSON pointer of the error is relative to this object.
    pub fn decode_as<T: Decode>(&self) -> Result<T, DecodeError> {
        self.0.decode_as()
    }

    /// Returns a reader at the start of the object, which does not check skipped values again.
    pub fn reader(&self) -> Reader<'_> {
        Reader::of_checked(self.text())
    }

    /// Returns a borrowed view of the object.
    pub fn view(&self) -> ObjectRef<'_> {
        ObjectRef::from_checked(self.text())
    }

    /// Iterates over all members in order, with the JSON text of their values. A lone surrogate in a name is replaced
    /// by U+FFFD.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
        self.view().iter().map(|(name, value)| (name, value.text()))
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Returns true if the object has no members.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns the value of a member.
    pub fn get(&self, name: &str) -> Option<Json> {
        self.view().find(name).map(JsonRef::to_json)
    }

    /// Sets a member. An existing member keeps its position; a new member is added at the end. All other text is
    /// unchanged. If the name occurs twice, both members get the value.
    pub fn insert(&mut self, name: &str, value: impl Into<Json>) {
        let value = value.into();
        *self = self.view().with([(name, Some(value.view()))]).into();
    }

    /// Removes a member and returns its value. The values of the other members are unchanged, and so is the text of an object without
    /// the member. If the name occurs twice, both members are removed, and the value is that of the last one.
    pub fn remove(&mut self, name: &str) -> Option<Json> {
        let removed = self.get(name)?;
        let others = self.view().iter().filter(|(known, _)| known != name);
        *self = others
            .map(|(known, value)| (known, value.to_json()))
            .collect();
        Some(removed)
    }
}

impl ObjectRef<'_> {
    /// Returns an owned copy.
    pub fn to_object(self) -> JsonObject {
        JsonObject::from_checked(self.text())
    }
}

impl<const N: usize> From<ObjectWith<'_, N>> for JsonObject {
    /// The object that is written.
    fn from(object: ObjectWith<'_, N>) -> Self {
        let mut out = Vec::with_capacity(object.size());
        encode_into(&object, &mut out);
        Self::from_checked_text(String::from_utf8(out).unwrap_or_default())
    }
}

impl Default for JsonObject {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for JsonObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for JsonObject {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, DecodeError> {
        from_str(text)
    }
}

impl TryFrom<Json> for JsonObject {
    type Error = Json;

    /// Returns the value as the error if it is not an object.
    fn try_from(json: Json) -> Result<Self, Json> {
        if json.kind() == Kind::Object {
            Ok(Self(json))
        } else {
            Err(json)
        }
    }
}

/// Error for a JSON value that is not an object where an object is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAnObject(Kind);

impl NotAnObject {
    /// Returns the kind of the value.
    pub fn kind(self) -> Kind {
        self.0
    }
}

impl fmt::Display for NotAnObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0 {
            Kind::Null => "null",
            Kind::Boolean => "a boolean",
            Kind::Number => "a number",
            Kind::String => "a string",
            Kind::Array => "an array",
            Kind::Object => "an object of another kind",
        };
        write!(f, "expected a JSON object and found {kind}; give an object")
    }
}

impl std::error::Error for NotAnObject {}

impl TryFrom<serde_json::Value> for JsonObject {
    type Error = NotAnObject;

    fn try_from(value: serde_json::Value) -> Result<Self, NotAnObject> {
        let kind = match value {
            serde_json::Value::Object(map) => return Ok(map.into()),
            serde_json::Value::Null => Kind::Null,
            serde_json::Value::Bool(_) => Kind::Boolean,
            serde_json::Value::Number(_) => Kind::Number,
            serde_json::Value::String(_) => Kind::String,
            serde_json::Value::Array(_) => Kind::Array,
        };
        Err(NotAnObject(kind))
    }
}

/// Fails for what `serde_json` cannot represent: numbers beyond the range of `f64`, and lone surrogates.
impl TryFrom<JsonObject> for serde_json::Map<String, serde_json::Value> {
    type Error = serde_json::Error;

    fn try_from(object: JsonObject) -> serde_json::Result<Self> {
        object.parse()
    }
}

impl From<serde_json::Map<String, serde_json::Value>> for JsonObject {
    fn from(map: serde_json::Map<String, serde_json::Value>) -> Self {
        Self(serde_json::Value::Object(map).into())
    }
}

impl<N: AsRef<str>, V: Into<Json>> FromIterator<(N, V)> for JsonObject {
    /// Collects members; a repeated name has its last value.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(members: I) -> Self {
        let mut text = ObjectBuilder::new();
        for (name, value) in members {
            text.push(name.as_ref(), &value.into());
        }
        text.finish()
    }
}

/// Builder of an object's text, member by member: the part of `FromIterator` of [`JsonObject`] that is not generic and
/// therefore compiled once.
struct ObjectBuilder {
    /// Text of the members, each after a comma.
    out: Vec<u8>,
    /// For each member: the end offsets in `out` of the quoted name and of the value.
    members: Vec<(usize, usize)>,
}

impl ObjectBuilder {
    /// Creates a builder without members.
    fn new() -> Self {
        Self {
            out: Vec::with_capacity(128),
            members: Vec::with_capacity(4),
        }
    }

    /// Appends a member.
    fn push(&mut self, name: &str, value: &Json) {
        let mut w = Writer::new(&mut self.out);
        w.put(",");
        w.string(name);
        let name_end = self.out.len();
        let mut w = Writer::new(&mut self.out);
        w.put(":");
        w.put(&value.0);
        self.members.push((name_end, self.out.len()));
    }

    /// Returns the quoted name of a member and the text of its value. Equal names have the same quoted text.
    fn member(&self, at: usize) -> (&[u8], &[u8]) {
        let start = at.checked_sub(1).map_or(0, |before| self.members[before].1);
        let (name_end, end) = self.members[at];
        (&self.out[start + 1..name_end], &self.out[name_end + 1..end])
    }

    /// Returns the object with unique names.
    fn finish(mut self) -> JsonObject {
        let name_of = |at: usize| self.member(at).0;
        let is_repeated = |at: usize| (0..at).any(|before| name_of(before) == name_of(at));
        if self.members.len() > MAX_PAIRWISE_NAMES || (1..self.members.len()).any(is_repeated) {
            self = self.without_repetition();
        }
        match self.out.first_mut() {
            Some(comma) => *comma = b'{',
            None => self.out.push(b'{'),
        }
        self.out.push(b'}');
        // All written bytes are UTF-8, because they come from `str`.
        let text = String::from_utf8(self.out).unwrap_or_default();
        JsonObject(Json(text.into()))
    }

    /// Returns the members with unique names, each at its first position and with its last value.
    fn without_repetition(&self) -> Self {
        let count = self.members.len();
        let order = sorted(count, &|one, other| {
            self.member(one).0.cmp(self.member(other).0)
        });
        // Positions of the last value of each name, at the index of the first member of that name.
        let mut last: Vec<Option<usize>> = vec![None; count];
        let mut first = 0;
        for (index, &at) in order.iter().enumerate() {
            if self.member(order[first]).0 != self.member(at).0 {
                first = index;
            }
            last[order[first]] = Some(at);
        }
        let mut unique = Self::new();
        for (name, value) in last.into_iter().flatten().map(|at| self.member(at)) {
            unique.out.push(b',');
            unique.out.extend_from_slice(name);
            let name_end = unique.out.len();
            unique.out.push(b':');
            unique.out.extend_from_slice(value);
            unique.members.push((name_end, unique.out.len()));
        }
        unique
    }
}

impl Decode for JsonObject {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        if r.peek() != Some(b'{') {
            return Err(r.expected("an object"));
        }
        r.json().map(Self)
    }
}

impl Encode for JsonObject {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        w.put(self.text());
    }
}

#[cfg(test)]
mod tests;
