//! Bridge between serde and the reader and writer of this crate.
//!
//! With serde_json's own serialisers and deserialisers the JSON text is preserved exactly, because values are passed as
//! raw JSON. Buffering layers (`flatten`, untagged enums, `serde_json::Value`) pass values in the form in which they
//! buffered them.

use std::fmt;

use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{self, Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::error::DecodeFailed;
use crate::reader::{Kind, Reader};
use crate::traits::{Decode, Encode, from_str, to_string};
use crate::writer::Writer;
use crate::{Document, Integer, Json, JsonObject, Map, Number, ProgressToken, RequestId};

/// Deserialises any decodable type, for generated code.
#[doc(hidden)]
pub fn deserialize<'de, T: Decode, D: Deserializer<'de>>(d: D) -> Result<T, D::Error> {
    from_str(&deserialize_text(d)?).map_err(de::Error::custom)
}

/// Serialises any encodable type, for generated code. Objects are serialised as maps, which `flatten` needs. Only
/// serde_json's own serialiser receives the JSON text of open objects, with white space, escapes and duplicates.
#[doc(hidden)]
pub fn serialize<S: Serializer>(value: &dyn Encode, s: S) -> Result<S::Ok, S::Error> {
    let text = to_string(value);
    if is_json_serializer::<S>() {
        return serialize_raw(&text, s);
    }
    match Reader::new(&text).kind() {
        Ok(Kind::Object) => serialize_object(&text, s),
        Ok(Kind::String) => match from_str::<String>(&text) {
            Ok(string) => s.serialize_str(&string),
            Err(error) => Err(ser::Error::custom(error)),
        },
        _ => serialize_raw(&text, s),
    }
}

/// Returns true if `S` is serde_json's own serialiser with its compact formatter, and not with a formatter that must
/// receive each member separately. If serde_json renamed its serialiser, top-level untyped objects would lose only the
/// white space between their members.
fn is_json_serializer<S>() -> bool {
    let name = std::any::type_name::<S>();
    let Some(arguments) = name.strip_prefix("&mut serde_json::ser::Serializer<") else {
        return false;
    };
    let mut depth = 0;
    let formatted = arguments.bytes().any(|b| {
        match b {
            b'<' | b'(' | b'[' => depth += 1,
            b'>' | b')' | b']' => depth -= 1,
            _ => {}
        }
        b == b',' && depth == 0
    });
    !formatted || arguments.ends_with("serde_json::ser::CompactFormatter>")
}

/// Serialises the text of an object as a map, with each value as [`RawText`].
fn serialize_object<S: Serializer>(text: &str, s: S) -> Result<S::Ok, S::Error> {
    let mut map = s.serialize_map(None)?;
    let mut r = Reader::new(text);
    let lost = |DecodeFailed| ser::Error::custom("an encoder wrote text that is not JSON");
    r.open_object().map_err(lost)?;
    let mut first = true;
    while r.next_member(&mut first).map_err(lost)?.is_some() {
        let name = r.str().map_err(lost)?;
        r.colon().map_err(lost)?;
        map.serialize_entry(&name, &RawText(r.raw().map_err(lost)?))?;
    }
    map.end()
}

/// JSON text of one value, which is serialised unchanged.
struct RawText<'a>(&'a str);

impl Serialize for RawText<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        serialize_raw(self.0, s)
    }
}

/// Serialises JSON text as a `RawValue`, which serde_json writes unchanged.
fn serialize_raw<S: Serializer>(text: &str, s: S) -> Result<S::Ok, S::Error> {
    let raw: &RawValue = serde_json::from_str(text).map_err(ser::Error::custom)?;
    raw.serialize(s)
}

/// Returns the text of the next value of a deserialiser: the raw text if the deserialiser provides it, or else the
/// rewritten value. The text must be validated, because `MapAccessDeserializer` accepts raw text from any document with
/// the member name of `RawValue`, like serde_json itself.
fn deserialize_text<'de, D: Deserializer<'de>>(d: D) -> Result<Box<str>, D::Error> {
    let raw = Box::<RawValue>::deserialize(RawValueDeserializer(d))?;
    Ok(Box::<str>::from(raw))
}

/// Deserialiser that provides a `RawValue` in any layer of serde. `RawValue` requests a newtype by a private name; if
/// the inner deserialiser does not support the name, its content is written as JSON text.
struct RawValueDeserializer<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for RawValueDeserializer<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_newtype_struct(name, RawValueVisitor { visitor, name })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Visitor that writes any value as JSON text and passes the text to the visitor of `RawValue`.
struct RawValueVisitor<V> {
    /// Visitor of `RawValue`, which expects a map with one entry.
    visitor: V,
    /// Name of the entry that the visitor expects, which is private to serde_json.
    name: &'static str,
}

impl<'de, V: Visitor<'de>> RawValueVisitor<V> {
    /// Passes JSON text to the visitor of `RawValue`.
    fn visit_text<E: de::Error>(self, text: String) -> Result<V::Value, E> {
        let one = std::iter::once((self.name, text));
        self.visitor.visit_map(de::value::MapDeserializer::new(one))
    }

    /// Writes a value as JSON text with `write`, and passes the text to the visitor of `RawValue`.
    fn write_and_visit<E: de::Error>(
        self,
        write: impl FnOnce(TextWriter<'_, '_>) -> Result<(), E>,
    ) -> Result<V::Value, E> {
        let mut text = Vec::new();
        write(TextWriter(&mut Writer::new(&mut text)))?;
        self.visit_text(String::from_utf8(text).map_err(E::custom)?)
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for RawValueVisitor<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    /// Reads raw text, which arrives as a map with one member of the requested name. A document that contains a member
    /// with this name cannot be distinguished from raw text.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<V::Value, A::Error> {
        let first: Option<String> = map.next_key()?;
        if first.as_deref() == Some(self.name) {
            let text = map.next_value()?;
            return self.visit_text(text);
        }
        self.write_and_visit(|out| out.write_members(first, map))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<V::Value, D::Error> {
        self.write_and_visit(|out| de::DeserializeSeed::deserialize(out, d))
    }

    // A deserialiser that treats a newtype like its content calls one of the following functions.

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<V::Value, E> {
        self.write_and_visit(|out| out.visit_bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<V::Value, E> {
        self.write_and_visit(|out| out.visit_i64(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<V::Value, E> {
        self.write_and_visit(|out| out.visit_u64(value))
    }

    fn visit_i128<E: de::Error>(self, value: i128) -> Result<V::Value, E> {
        self.write_and_visit(|out| out.visit_i128(value))
    }

    fn visit_u128<E: de::Error>(self, value: u128) -> Result<V::Value, E> {
        self.write_and_visit(|out| out.visit_u128(value))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<V::Value, E> {
        self.write_and_visit(|out| out.visit_f64(value))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<V::Value, E> {
        self.write_and_visit(|out| out.visit_str(value))
    }

    fn visit_unit<E: de::Error>(self) -> Result<V::Value, E> {
        self.write_and_visit(|out| out.visit_unit())
    }

    fn visit_none<E: de::Error>(self) -> Result<V::Value, E> {
        self.write_and_visit(|out| out.visit_none())
    }

    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<V::Value, D::Error> {
        self.write_and_visit(|out| out.visit_some(d))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<V::Value, A::Error> {
        self.write_and_visit(|out| out.visit_seq(seq))
    }
}

/// Writes the content of a deserialiser as JSON text, with the members in the order of the deserialiser.
struct TextWriter<'w, 'b>(&'w mut Writer<'b>);

impl<'de> de::DeserializeSeed<'de> for TextWriter<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

impl TextWriter<'_, '_> {
    /// Appends the text of a complete JSON value.
    fn put(self, json: &str) {
        self.0.put(json);
    }

    /// Writes a map whose first member name was already read.
    fn write_members<'de, A: MapAccess<'de>>(
        self,
        first: Option<String>,
        mut map: A,
    ) -> Result<(), A::Error> {
        if first.as_deref() == Some(NUMBER_MEMBER) && has_arbitrary_precision() {
            let text: String = map.next_value()?;
            let number: Number = text.parse().map_err(de::Error::custom)?;
            number.encode(self.0);
            return Ok(());
        }
        self.0.put("{");
        let mut name = first;
        while let Some(known) = name {
            self.0.name(&known);
            map.next_value_seed(TextWriter(self.0))?;
            name = map.next_key()?;
        }
        self.0.put("}");
        Ok(())
    }
}

impl<'de> Visitor<'de> for TextWriter<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.put(if value { "true" } else { "false" });
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.put(&value.to_string());
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.put(&value.to_string());
        Ok(())
    }

    fn visit_i128<E>(self, value: i128) -> Result<(), E> {
        self.put(&value.to_string());
        Ok(())
    }

    fn visit_u128<E>(self, value: u128) -> Result<(), E> {
        self.put(&value.to_string());
        Ok(())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<(), E> {
        let number = Number::try_from(value).map_err(E::custom)?;
        number.encode(self.0);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.0.string(value);
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.put("null");
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        self.put("null");
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.0.put("[");
        let mut first = true;
        loop {
            let mut item = Vec::new();
            if seq
                .next_element_seed(TextWriter(&mut Writer::new(&mut item)))?
                .is_none()
            {
                break;
            }
            if !first {
                self.0.put(",");
            }
            first = false;
            self.0
                .put(std::str::from_utf8(&item).map_err(de::Error::custom)?);
        }
        self.0.put("]");
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let first = map.next_key()?;
        self.write_members(first, map)
    }
}

/// Name of the only member of the map in which serde_json passes a number to other visitors if its feature
/// `arbitrary_precision` is on.
const NUMBER_MEMBER: &str = "$serde_json::private::Number";

/// Returns true if serde_json's feature `arbitrary_precision` is on; any crate of the build can enable the feature.
fn has_arbitrary_precision() -> bool {
    serde_json::from_str::<serde_json::Number>("1e400").is_ok()
}

/// Implements serde's traits with the exact reader and writer.
#[doc(hidden)]
#[macro_export]
macro_rules! serde_through_wire {
    ($($type:ty),* $(,)?) => {$(
        impl<'de> $crate::private_serde::Deserialize<'de> for $type {
            fn deserialize<D: $crate::private_serde::Deserializer<'de>>(
                d: D,
            ) -> ::core::result::Result<Self, D::Error> {
                $crate::bridge::deserialize(d)
            }
        }

        impl $crate::private_serde::Serialize for $type {
            fn serialize<S: $crate::private_serde::Serializer>(
                &self,
                s: S,
            ) -> ::core::result::Result<S::Ok, S::Error> {
                $crate::bridge::serialize(self, s)
            }
        }
    )*};
}

serde_through_wire!(Number, Integer, RequestId, ProgressToken, JsonObject);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::check(deserialize_text(d)?).map_err(de::Error::custom)
    }
}

/// Serialises the text byte for byte, or as a map where `flatten` requires one.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.kind() {
            Kind::Object => serialize(self, s),
            _ => serialize_raw(self.text(), s),
        }
    }
}

impl<'de, V> Deserialize<'de> for Document<V> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        deserialize(d)
    }
}

impl<V> Serialize for Document<V> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        serialize(self, s)
    }
}

impl<'de, V: Decode> Deserialize<'de> for Map<V> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        deserialize(d)
    }
}

impl<V: Encode> Serialize for Map<V> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        serialize(self, s)
    }
}

/// Fails to compile if [`Json`] does not implement both `DeserializeOwned` and `Serialize`.
#[expect(dead_code, reason = "checked by the compiler only")]
fn bridge_bounds(json: Json) -> impl DeserializeOwned + Serialize {
    json
}
