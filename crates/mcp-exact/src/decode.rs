//! Decoding of untyped JSON into types of the application, by serde.
//!
//! An error names the place of the value that does not fit. What depends on the decoded type is compiled in the crate of
//! the application for every type, so all other work is done by functions that are not generic.

use std::borrow::Cow;
use std::fmt;

use mcp_exact_wire::{DecodeFailed, Kind, Reader};
use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};

use crate::link::{Json, ObjectRef};

/// Name by which `serde_json::value::RawValue` asks for the text of a value.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// Decodes a value.
pub(crate) fn decode<T: DeserializeOwned>(value: &Json) -> Result<T, Mismatch> {
    T::deserialize(&mut Source::new(value.text()))
}

/// Decodes an object.
pub(crate) fn decode_object<T: DeserializeOwned>(object: ObjectRef<'_>) -> Result<T, Mismatch> {
    T::deserialize(&mut Source::new(object.text()))
}

/// Error of a value that does not fit its type.
#[derive(Debug)]
pub(crate) struct Mismatch(Box<Description>);

#[derive(Debug)]
struct Description {
    /// Names and indexes that lead to the value, the innermost first.
    path: Vec<Segment>,
    reason: String,
}

#[derive(Debug)]
enum Segment {
    Name(String),
    Index(usize),
}

impl Mismatch {
    fn new(reason: String) -> Self {
        Self(Box::new(Description {
            path: Vec::new(),
            reason,
        }))
    }

    fn in_member(mut self, name: &str) -> Self {
        self.0.path.push(Segment::Name(name.to_owned()));
        self
    }

    fn in_item(mut self, index: usize) -> Self {
        self.0.path.push(Segment::Index(index));
        self
    }

    /// Returns the JSON pointer of the value (RFC 6901).
    pub(crate) fn pointer(&self) -> String {
        let mut pointer = String::new();
        for segment in self.0.path.iter().rev() {
            pointer.push('/');
            match segment {
                Segment::Name(name) => {
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                }
                Segment::Index(index) => pointer.push_str(&index.to_string()),
            }
        }
        pointer
    }

    /// Returns the reason without the place.
    pub(crate) fn into_reason(self) -> String {
        self.0.reason
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.reason)?;
        if self.0.path.is_empty() {
            return Ok(());
        }
        write!(f, " at {:?}", self.pointer())
    }
}

impl std::error::Error for Mismatch {}

impl de::Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    #[cold]
    fn invalid_type(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let found = JsonName(found);
        Self::new(format!("invalid type: {found}, expected {wanted}"))
    }

    #[cold]
    fn invalid_value(found: Unexpected<'_>, wanted: &dyn Expected) -> Self {
        let found = JsonName(found);
        Self::new(format!("invalid value: {found}, expected {wanted}"))
    }
}

/// Description of a value in the words of JSON.
struct JsonName<'a>(Unexpected<'a>);

impl fmt::Display for JsonName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Unit => f.write_str("null"),
            found => found.fmt(f),
        }
    }
}

/// Number of the text, in the narrowest of the types that serde has for numbers.
#[derive(Clone, Copy)]
enum Number {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

impl Number {
    fn as_unexpected(self) -> Unexpected<'static> {
        match self {
            Self::Unsigned(value) => Unexpected::Unsigned(value),
            Self::Signed(value) => Unexpected::Signed(value),
            Self::Float(value) => Unexpected::Float(value),
        }
    }

    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Self::Unsigned(value) => visitor.visit_u64(value),
            Self::Signed(value) => visitor.visit_i64(value),
            Self::Float(value) => visitor.visit_f64(value),
        }
    }
}

fn visit_text<'de, V: Visitor<'de>>(text: Cow<'de, str>, visitor: V) -> Result<V::Value, Mismatch> {
    match text {
        Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
        Cow::Owned(text) => visitor.visit_string(text),
    }
}

/// Text that is decoded. It was checked to be one JSON value.
struct Source<'de>(Reader<'de>);

impl<'de> Source<'de> {
    fn new(text: &'de str) -> Self {
        Self(Reader::of_checked(text))
    }

    /// Describes a failure of the reader, whose text is JSON.
    #[cold]
    fn failed(_: DecodeFailed) -> Mismatch {
        Mismatch::new(
            "a string has a lone surrogate, or values are nested deeper than 128 levels".to_owned(),
        )
    }

    fn kind(&mut self) -> Result<Kind, Mismatch> {
        self.0.kind().map_err(Self::failed)
    }

    /// Returns the error for a value of another kind than wanted.
    #[cold]
    fn mismatch(&mut self, wanted: &dyn Expected) -> Mismatch {
        let found = match self.kind() {
            Err(error) => return error,
            Ok(Kind::Null) => Unexpected::Unit,
            Ok(Kind::Array) => Unexpected::Seq,
            Ok(Kind::Object) => Unexpected::Map,
            Ok(Kind::Boolean) => Unexpected::Bool(self.0.boolean().unwrap_or_default()),
            Ok(Kind::Number) => match self.number(wanted) {
                Ok(number) => number.as_unexpected(),
                Err(error) => return error,
            },
            Ok(Kind::String) => {
                let text = self.0.str().unwrap_or_default();
                return de::Error::invalid_type(Unexpected::Str(&text), wanted);
            }
        };
        de::Error::invalid_type(found, wanted)
    }

    fn is_null(&mut self) -> Result<bool, Mismatch> {
        let is_null = self.kind()? == Kind::Null;
        if is_null {
            self.0.null().map_err(Self::failed)?;
        }
        Ok(is_null)
    }

    fn null(&mut self, wanted: &dyn Expected) -> Result<(), Mismatch> {
        if self.is_null()? {
            Ok(())
        } else {
            Err(self.mismatch(wanted))
        }
    }

    fn boolean(&mut self, wanted: &dyn Expected) -> Result<bool, Mismatch> {
        match self.kind()? {
            Kind::Boolean => self.0.boolean().map_err(Self::failed),
            _ => Err(self.mismatch(wanted)),
        }
    }

    fn number_text(&mut self, wanted: &dyn Expected) -> Result<&'de str, Mismatch> {
        match self.kind()? {
            Kind::Number => self.0.number().map_err(Self::failed),
            _ => Err(self.mismatch(wanted)),
        }
    }

    fn number(&mut self, wanted: &dyn Expected) -> Result<Number, Mismatch> {
        let text = self.number_text(wanted)?;
        if let Ok(value) = text.parse() {
            return Ok(Number::Unsigned(value));
        }
        // The integer 0 has no sign.
        if let Some(value) = text.parse().ok().filter(|value| *value != 0) {
            return Ok(Number::Signed(value));
        }
        let value: f64 = text.parse().unwrap_or(f64::INFINITY);
        if value.is_finite() {
            Ok(Number::Float(value))
        } else {
            Err(Mismatch::new("the number is out of range".to_owned()))
        }
    }

    /// Reads an integer of up to 128 bits.
    fn long_integer<T: std::str::FromStr>(&mut self, wanted: &dyn Expected) -> Result<T, Mismatch> {
        let text = self.number_text(wanted)?;
        text.parse()
            .map_err(|_| Mismatch::new(format!("invalid value: {text}, expected {wanted}")))
    }

    fn text(&mut self, wanted: &dyn Expected) -> Result<Cow<'de, str>, Mismatch> {
        match self.kind()? {
            Kind::String => self.0.str().map_err(Self::failed),
            _ => Err(self.mismatch(wanted)),
        }
    }

    fn raw(&mut self) -> Result<&'de str, Mismatch> {
        self.0.raw().map_err(Self::failed)
    }

    fn begin_array(&mut self, wanted: &dyn Expected) -> Result<bool, Mismatch> {
        match self.kind()? {
            Kind::Array => self.0.begin_array().map_err(Self::failed),
            _ => Err(self.mismatch(wanted)),
        }
    }

    fn next_item(&mut self) -> Result<bool, Mismatch> {
        self.0.next_item().map_err(Self::failed)
    }

    fn begin_object(&mut self, wanted: &dyn Expected) -> Result<(), Mismatch> {
        match self.kind()? {
            Kind::Object => self.0.open_object().map_err(Self::failed),
            _ => Err(self.mismatch(wanted)),
        }
    }

    /// Reads the name of the next member; returns `None` at the end of the object.
    fn next_name(&mut self, first: &mut bool) -> Result<Option<Cow<'de, str>>, Mismatch> {
        if self.0.next_member(first).map_err(Self::failed)?.is_none() {
            return Ok(None);
        }
        let name = self.0.str().map_err(Self::failed)?;
        self.0.colon().map_err(Self::failed)?;
        Ok(Some(name))
    }

    /// Reads the name of the variant of an enum, the only member of its object.
    fn variant_name(&mut self, wanted: &dyn Expected) -> Result<Cow<'de, str>, Mismatch> {
        self.begin_object(wanted)?;
        let name = self.next_name(&mut true)?;
        name.ok_or_else(|| de::Error::invalid_length(0, &"an object with one member"))
    }

    fn end_variant(&mut self) -> Result<(), Mismatch> {
        match self.next_name(&mut false)? {
            None => Ok(()),
            Some(_) => Err(de::Error::invalid_length(2, &"an object with one member")),
        }
    }
}

macro_rules! forward {
    ($($method:ident)* => $target:ident) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
                self.$target(visitor)
            }
        )*
    };
}

impl<'de> Deserializer<'de> for &mut Source<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.kind()? {
            Kind::Null => self.deserialize_unit(visitor),
            Kind::Boolean => self.deserialize_bool(visitor),
            Kind::Number => self.deserialize_f64(visitor),
            Kind::String => self.deserialize_str(visitor),
            Kind::Array => self.deserialize_seq(visitor),
            Kind::Object => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let value = self.boolean(&visitor)?;
        visitor.visit_bool(value)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.number(&visitor)?.visit(visitor)
    }

    forward!(deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 => deserialize_f64);
    forward!(deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 => deserialize_f64);
    forward!(deserialize_f32 => deserialize_f64);

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let value = self.long_integer(&visitor)?;
        visitor.visit_i128(value)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let value = self.long_integer(&visitor)?;
        visitor.visit_u128(value)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visit_text(self.text(&visitor)?, visitor)
    }

    forward!(deserialize_char deserialize_string deserialize_identifier => deserialize_str);

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.kind()? {
            Kind::Array => self.deserialize_seq(visitor),
            _ => {
                let text = self.text(&visitor)?;
                visitor.visit_bytes(text.as_bytes())
            }
        }
    }

    forward!(deserialize_byte_buf => deserialize_bytes);

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        if self.is_null()? {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.null(&visitor)?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        if name == RAW_VALUE {
            let raw = std::iter::once((RAW_VALUE, self.raw()?));
            return visitor.visit_map(MapDeserializer::new(raw));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let more = self.begin_array(&visitor)?;
        let mut items = Items {
            source: self,
            more,
            index: 0,
        };
        let value = visitor.visit_seq(&mut items)?;
        items.end().map(|()| value)
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.begin_object(&visitor)?;
        let mut members = Members {
            source: self,
            first: true,
            name: Cow::Borrowed(""),
            is_done: false,
        };
        let value = visitor.visit_map(&mut members)?;
        members.end().map(|()| value)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match self.kind()? {
            Kind::String => {
                let name = self.text(&visitor)?;
                visitor.visit_enum(StrDeserializer::new(&name))
            }
            _ => {
                let name = self.variant_name(&visitor)?;
                visitor.visit_enum(Variant { source: self, name })
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.raw()?;
        visitor.visit_unit()
    }
}

/// Items of an array.
struct Items<'s, 'de> {
    source: &'s mut Source<'de>,
    more: bool,
    index: usize,
}

impl Items<'_, '_> {
    fn advance(&mut self) -> Result<(), Mismatch> {
        self.more = self.source.next_item()?;
        self.index += 1;
        Ok(())
    }

    fn end(&self) -> Result<(), Mismatch> {
        if self.more {
            let words = format!("the array has more than {} items", self.index);
            return Err(Mismatch::new(words));
        }
        Ok(())
    }
}

impl<'de> SeqAccess<'de> for &mut Items<'_, 'de> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mismatch> {
        if !self.more {
            return Ok(None);
        }
        match seed.deserialize(&mut *self.source) {
            Ok(value) => self.advance().map(|()| Some(value)),
            Err(error) => Err(error.in_item(self.index)),
        }
    }
}

/// Members of an object.
struct Members<'s, 'de> {
    source: &'s mut Source<'de>,
    first: bool,
    /// Name of the member whose value is read.
    name: Cow<'de, str>,
    is_done: bool,
}

impl Members<'_, '_> {
    /// Reads the next name; returns false at the end of the object.
    fn advance(&mut self) -> Result<bool, Mismatch> {
        match self.source.next_name(&mut self.first)? {
            Some(name) => self.name = name,
            None => self.is_done = true,
        }
        Ok(!self.is_done)
    }

    fn end(&self) -> Result<(), Mismatch> {
        if self.is_done {
            Ok(())
        } else {
            Err(Mismatch::new("the object has more members".to_owned()))
        }
    }
}

impl<'de> MapAccess<'de> for &mut Members<'_, 'de> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mismatch> {
        if self.is_done || !self.advance()? {
            return Ok(None);
        }
        seed.deserialize(Name(&self.name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mismatch> {
        seed.deserialize(&mut *self.source)
            .map_err(|error| error.in_member(&self.name))
    }
}

/// Variant of an enum that an object with one member represents.
struct Variant<'s, 'de> {
    source: &'s mut Source<'de>,
    name: Cow<'de, str>,
}

impl<'s, 'de> Variant<'s, 'de> {
    fn finish<T>(
        self,
        read: impl FnOnce(&mut Source<'de>) -> Result<T, Mismatch>,
    ) -> Result<T, Mismatch> {
        let value = read(self.source).map_err(|error| error.in_member(&self.name))?;
        self.source.end_variant().map(|()| value)
    }
}

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Mismatch;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Mismatch> {
        let variant = seed.deserialize(Name(&self.name))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Mismatch;

    fn unit_variant(self) -> Result<(), Mismatch> {
        self.finish(|source| source.null(&"null"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Mismatch> {
        self.finish(|source| seed.deserialize(source))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Mismatch> {
        self.finish(|source| source.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.finish(|source| source.deserialize_map(visitor))
    }
}

/// Name of a member, which is a string in JSON and may be a number or a boolean in the decoded type.
struct Name<'n>(&'n str);

impl Name<'_> {
    fn parse<T: std::str::FromStr>(&self, wanted: &dyn Expected) -> Result<T, Mismatch> {
        let wrong = |_| de::Error::invalid_type(Unexpected::Str(self.0), wanted);
        self.0.parse().map_err(wrong)
    }
}

macro_rules! parsed_names {
    ($($method:ident $visit:ident;)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
                let value = self.parse(&visitor)?;
                visitor.$visit(value)
            }
        )*
    };
}

impl<'de> Deserializer<'de> for Name<'_> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_str(self.0)
    }

    parsed_names! {
        deserialize_bool visit_bool;
        deserialize_i8 visit_i8;
        deserialize_i16 visit_i16;
        deserialize_i32 visit_i32;
        deserialize_i64 visit_i64;
        deserialize_i128 visit_i128;
        deserialize_u8 visit_u8;
        deserialize_u16 visit_u16;
        deserialize_u32 visit_u32;
        deserialize_u64 visit_u64;
        deserialize_u128 visit_u128;
        deserialize_f32 visit_f32;
        deserialize_f64 visit_f64;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_enum(StrDeserializer::new(self.0))
    }

    serde::forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests;
