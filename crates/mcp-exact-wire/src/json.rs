//! Open JSON: values that no revision of the specification gives a type, kept as the text that arrived.
//!
//! Parsed only when asked. Equality is of text. Never re-formats what arrived.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{DecodeError, Read};
use crate::reader::{Kind, Reader};
use crate::traits::{Decode, Encode};
use crate::writer::Writer;
use crate::{from_str, to_string};

/// One JSON value as text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Box<str>);

impl Json {
    /// The value `null`.
    pub fn null() -> Self {
        Self("null".into())
    }

    /// A JSON string that holds `text`.
    pub fn string(text: &str) -> Self {
        let mut out = Vec::new();
        Writer::new(&mut out).string(text);
        Self(String::from_utf8_lossy(&out).into())
    }

    /// The JSON that serde makes of `value`.
    ///
    /// # Errors
    /// As [`serde_json::to_string`].
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Self> {
        serde_json::to_string(value).map(|text| Self(text.into()))
    }

    /// The JSON of a value of a generated type, exactly.
    pub fn from_encode<T: Encode + ?Sized>(value: &T) -> Self {
        Self(to_string(value).into())
    }

    /// Parses the value with serde.
    ///
    /// # Errors
    /// As [`serde_json::from_str`].
    pub fn parse<'de, T: Deserialize<'de>>(&'de self) -> serde_json::Result<T> {
        serde_json::from_str(&self.0)
    }

    /// Decodes the value as a generated type, exactly.
    ///
    /// # Errors
    /// [`DecodeError`] when the value is not of that type; its pointer starts at this value.
    pub fn decode_as<T: Decode>(&self) -> Result<T, DecodeError> {
        from_str(&self.0)
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// What kind of value it is.
    pub fn kind(&self) -> Kind {
        Reader::new(&self.0).kind().unwrap_or(Kind::Null)
    }

    /// Text that a scanner has found to be one JSON value, without white space around it.
    #[inline]
    pub(crate) fn from_checked(text: &str) -> Self {
        Self(text.into())
    }
}

impl FromStr for Json {
    type Err = DecodeError;

    /// Keeps the text as it is, without white space around it.
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
        Self(value.to_string().into())
    }
}

impl From<JsonObject> for Json {
    fn from(object: JsonObject) -> Self {
        object.0
    }
}

impl Decode for Json {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Read<Self> {
        r.json()
    }
}

impl Encode for Json {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        w.put(&self.0);
    }
}

/// One JSON object as text: an open value that the schema wants to be an object.
///
/// Members are found by scanning. Where a name is there twice, which open JSON allows, the last one counts.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct JsonObject(Json);

impl JsonObject {
    /// The empty object.
    pub fn new() -> Self {
        Self(Json("{}".into()))
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// The object as a value of any kind.
    pub fn as_json(&self) -> &Json {
        &self.0
    }

    /// Parses the object with serde.
    ///
    /// # Errors
    /// As [`serde_json::from_str`].
    pub fn parse<'de, T: Deserialize<'de>>(&'de self) -> serde_json::Result<T> {
        self.0.parse()
    }

    /// All members in order, with the text of their values. A name with a lone surrogate in it has U+FFFD in its place.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
        ObjectMembers {
            r: Reader::new(self.text()),
            first: None,
        }
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The value of a member.
    pub fn get(&self, name: &str) -> Option<Json> {
        self.iter()
            .filter(|(known, _)| known == name)
            .last()
            .map(|(_, text)| Json::from_checked(text))
    }

    /// Sets a member: in its place when it is there already, otherwise at the end. Other members keep their text.
    pub fn insert(&mut self, name: &str, value: impl Into<Json>) {
        let value = value.into();
        let mut out = Vec::with_capacity(self.text().len() + name.len() + value.text().len() + 4);
        let mut w = Writer::new(&mut out);
        let mut placed = false;
        w.put("{");
        for (known, text) in self.iter() {
            w.name(&known);
            if known == name {
                placed = true;
                w.put(value.text());
            } else {
                w.put(text);
            }
        }
        if !placed {
            w.name(name);
            w.put(value.text());
        }
        w.put("}");
        self.0 = Json(String::from_utf8_lossy(&out).into());
    }
}

struct ObjectMembers<'a> {
    r: Reader<'a>,
    first: Option<bool>,
}

impl<'a> Iterator for ObjectMembers<'a> {
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let mut first = match self.first {
            Some(first) => first,
            None => {
                self.r.open_object().ok()?;
                true
            }
        };
        let member = self.r.next_member(&mut first).ok()?;
        self.first = Some(first);
        member?;
        let quoted = self.r.raw().ok()?;
        self.r.colon().ok()?;
        let inside = &quoted[1..quoted.len() - 1];
        let name = if inside.contains('\\') {
            Cow::Owned(crate::unescape::unescape_lossy(inside))
        } else {
            Cow::Borrowed(inside)
        };
        Some((name, self.r.raw().ok()?))
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

    /// Gives the value back when it is not an object.
    fn try_from(json: Json) -> Result<Self, Json> {
        if json.kind() == Kind::Object {
            Ok(Self(json))
        } else {
            Err(json)
        }
    }
}

impl From<serde_json::Map<String, serde_json::Value>> for JsonObject {
    fn from(map: serde_json::Map<String, serde_json::Value>) -> Self {
        Self(serde_json::Value::Object(map).into())
    }
}

impl<N: AsRef<str>, V: Into<Json>> FromIterator<(N, V)> for JsonObject {
    /// A name that comes twice has its last value.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(members: I) -> Self {
        let map: crate::Map<Json> = members
            .into_iter()
            .map(|(name, value)| (name.as_ref().to_owned(), value.into()))
            .collect();
        Self(Json::from_encode(&map))
    }
}

impl Decode for JsonObject {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> Read<Self> {
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
