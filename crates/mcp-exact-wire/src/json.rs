//! Open JSON: values that no revision of the specification gives a type, kept as the text that arrived.
//!
//! Parsed only when asked. Equality is of text. Never re-formats what arrived.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{DecodeError, Read};
use crate::reader::{Kind, Reader};
use crate::traits::{Decode, Encode};
use crate::writer::Writer;
use crate::{from_str, leap, to_string};

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
        let text = self.text();
        self.members()
            .map(move |member| (member.name, &text[member.value]))
    }

    /// Whether the name stands somewhere in the text, or something that could be another spelling of it: a search that is
    /// much faster than a walk through the members. Letters can only be spelt differently by `\u`.
    fn may_have(&self, name: &str) -> bool {
        let text = self.text().as_bytes();
        let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_plain {
            return true;
        }
        let mut found = memchr::memmem::find_iter(text, name.as_bytes());
        let quoted = |at: usize| {
            let end = at + name.len();
            at > 0 && text[at - 1] == b'"' && text.get(end) == Some(&b'"')
        };
        found.any(quoted) || memchr::memmem::find(text, b"\\u").is_some()
    }

    fn members(&self) -> ObjectMembers<'_> {
        ObjectMembers {
            text: self.text(),
            at: 1,
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
        if !self.may_have(name) {
            return None;
        }
        self.iter()
            .filter(|(known, _)| known == name)
            .last()
            .map(|(_, text)| Json::from_checked(text))
    }

    /// Sets a member: in its place when it is there already, otherwise at the end. Everything else keeps its text.
    pub fn insert(&mut self, name: &str, value: impl Into<Json>) {
        let value = value.into();
        let text = self.text();
        let same = self.may_have(name).then(|| self.members());
        let mut same = same
            .into_iter()
            .flatten()
            .filter(|member| member.name == name);
        let (found, more) = (same.next(), same.next().is_some());
        if more {
            return self.insert_everywhere(name, &value);
        }
        let mut out = String::with_capacity(text.len() + name.len() + value.text().len() + 8);
        match found {
            Some(member) => {
                out.push_str(&text[..member.value.start]);
                out.push_str(value.text());
                out.push_str(&text[member.value.end..]);
            }
            None => {
                let before = &text[..text.len() - 1];
                out.push_str(before);
                if before.trim_end().len() > 1 {
                    out.push(',');
                }
                out.push_str(Json::string(name).text());
                out.push(':');
                out.push_str(value.text());
                out.push('}');
            }
        }
        self.0 = Json(out.into());
    }

    /// A name that is there twice has the value in both places afterwards.
    #[cold]
    fn insert_everywhere(&mut self, name: &str, value: &Json) {
        let mut out = Vec::with_capacity(self.text().len() + value.text().len());
        let mut w = Writer::new(&mut out);
        w.put("{");
        for (known, text) in self.iter() {
            w.name(&known);
            w.put(if known == name { value.text() } else { text });
        }
        w.put("}");
        self.0 = Json(String::from_utf8_lossy(&out).into());
    }
}

/// The members of an object whose text was checked when it came in: only their ends are looked for.
struct ObjectMembers<'a> {
    text: &'a str,
    at: usize,
}

/// A member: its name, and where its value stands.
struct ObjectMember<'a> {
    name: Cow<'a, str>,
    value: Range<usize>,
}

impl ObjectMembers<'_> {
    /// The next byte that is no white space and none of `but`.
    fn skip(&mut self, but: u8) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r') || *byte == but;
        let at = rest.iter().position(|byte| !blank(byte))?;
        self.at += at;
        Some(rest[at])
    }

    /// The value at this place.
    fn value(&mut self) -> Option<Range<usize>> {
        let start = self.at;
        self.at = leap::value_end(self.text.as_bytes(), start)?;
        Some(start..self.at)
    }
}

impl<'a> Iterator for ObjectMembers<'a> {
    type Item = ObjectMember<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.skip(b',')? != b'"' {
            return None;
        }
        let name = self.value()?;
        let inside = self.text.get(name.start + 1..name.end - 1)?;
        self.skip(b':')?;
        let value = self.value()?;
        let name = if inside.contains('\\') {
            Cow::Owned(crate::unescape::unescape_lossy(inside))
        } else {
            Cow::Borrowed(inside)
        };
        Some(ObjectMember { name, value })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> JsonObject {
        text.parse().expect("an object")
    }

    fn check_get(text: &str, name: &str, expected: Option<&str>) {
        let found = object(text).get(name);
        assert_eq!(found.as_ref().map(Json::text), expected, "{text}");
    }

    #[test]
    fn members_are_found_however_their_names_are_written() {
        check_get(r#"{"a":1,"b" : [2, "a"] }"#, "b", Some(r#"[2, "a"]"#));
        check_get(r#"{"\u0061":1}"#, "a", Some("1"));
        check_get(r#"{"x":"\"a\"","a":{"a":3}}"#, "a", Some(r#"{"a":3}"#));
        check_get(r#"{"x":{"a":3}}"#, "a", None);
        check_get(r#"{"x":"a"}"#, "a", None);
        check_get(r#"{"a":1,"a":2}"#, "a", Some("2"));
        check_get(r#"{"a\/b":1}"#, "a/b", Some("1"));
        check_get("{ }", "a", None);
    }

    fn check_insert(text: &str, name: &str, expected: &str) {
        let mut object = object(text);
        object.insert(name, true);
        assert_eq!(object.text(), expected);
        assert_eq!(object.get(name).as_ref().map(Json::text), Some("true"));
    }

    #[test]
    fn a_member_is_set_and_the_others_keep_their_text() {
        check_insert("{}", "a", r#"{"a":true}"#);
        check_insert("{ }", "a", r#"{ "a":true}"#);
        check_insert(r#"{"b" : 1e0 }"#, "a", r#"{"b" : 1e0 ,"a":true}"#);
        check_insert(r#"{"a":1 , "b":2}"#, "a", r#"{"a":true , "b":2}"#);
        check_insert(r#"{"x":{"a":1}}"#, "a", r#"{"x":{"a":1},"a":true}"#);
        check_insert(r#"{"\u0061":1}"#, "a", r#"{"\u0061":true}"#);
        check_insert(r#"{"a":1,"a":2}"#, "a", r#"{"a":true,"a":true}"#);
        check_insert(r#"{"b":1}"#, "a\n", r#"{"b":1,"a\n":true}"#);
    }
}
