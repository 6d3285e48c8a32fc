//! Decoding of untyped JSON into types of the application, by serde.
//!
//! An error contains the path of the value that does not match its type. Generic functions are compiled in the crate of
//! the application for every decoded type, so this module keeps them small and calls functions that are not generic.

mod access;
mod mismatch;

use std::borrow::Cow;

use mcp_exact_wire::{DecodeFailed, Kind, Reader};
use serde::de::value::{MapDeserializer, StrDeserializer};
use serde::de::{self, DeserializeOwned, Deserializer, Expected, Unexpected, Visitor};
use serde_json::{Map, Value};

use crate::decode::access::{ArrayItems, ObjectMembers, VariantObject};
pub(crate) use crate::decode::mismatch::Mismatch;
use crate::protocol::{Json, ObjectRef};

/// Name of the newtype struct by which `serde_json::value::RawValue` requests the text of a value.
const RAW_VALUE_TOKEN: &str = "$serde_json::private::RawValue";

/// Decodes a JSON value as `T`.
pub(crate) fn decode<T: DeserializeOwned>(value: &Json) -> Result<T, Mismatch> {
    T::deserialize(&mut JsonDeserializer::new(value.text()))
}

/// Decodes a JSON object as `T`.
pub(crate) fn decode_object<T: DeserializeOwned>(object: ObjectRef<'_>) -> Result<T, Mismatch> {
    T::deserialize(&mut JsonDeserializer::new(object.text()))
}

/// Returns the JSON as a value of `serde_json`, whose own parser a server contains for nothing else.
pub(crate) fn to_value(json: &Json) -> Result<Value, Mismatch> {
    JsonDeserializer::new(json.text()).read_value()
}

/// Number, parsed as the narrowest number type of serde that represents it.
#[derive(Clone, Copy)]
enum ParsedNumber {
    Unsigned(u64),
    Signed(i64),
    Float(f64),
}

impl ParsedNumber {
    /// Returns the number as the unexpected value of a serde error.
    fn as_unexpected(self) -> Unexpected<'static> {
        match self {
            Self::Unsigned(value) => Unexpected::Unsigned(value),
            Self::Signed(value) => Unexpected::Signed(value),
            Self::Float(value) => Unexpected::Float(value),
        }
    }

    /// Returns a number without fractional part as an integer, because JSON Schema regards `1.0` as an integer
    /// (2020-12, validation, section 6.1.1). Other numbers, and those whose integer a float does not represent exactly,
    /// are returned unchanged.
    fn as_integer(self) -> Self {
        /// Greatest integer below which each integer is a float of its own: 2^53.
        const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
        match self {
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the number is an integer within the bounds"
            )]
            Self::Float(value) if value.fract() == 0.0 && value.abs() < MAX_EXACT => {
                if value < 0.0 {
                    Self::Signed(value as i64)
                } else {
                    Self::Unsigned(value as u64)
                }
            }
            number => number,
        }
    }

    /// Passes the number to the method of the visitor for its type.
    fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self {
            Self::Unsigned(value) => visitor.visit_u64(value),
            Self::Signed(value) => visitor.visit_i64(value),
            Self::Float(value) => visitor.visit_f64(value),
        }
    }
}

/// Passes text to the method of the visitor for borrowed or owned text.
fn visit_text<'de, V: Visitor<'de>>(text: Cow<'de, str>, visitor: V) -> Result<V::Value, Mismatch> {
    match text {
        Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
        Cow::Owned(text) => visitor.visit_string(text),
    }
}

/// Deserializer of a text that was checked to be one JSON value.
struct JsonDeserializer<'de>(Reader<'de>);

impl<'de> JsonDeserializer<'de> {
    fn new(text: &'de str) -> Self {
        Self(Reader::of_checked(text))
    }

    /// Returns the error for a value that the reader rejects although the text is JSON.
    #[cold]
    fn reader_error(_: DecodeFailed) -> Mismatch {
        Mismatch::new(
            "a string has a lone surrogate, or values are nested deeper than 128 levels".to_owned(),
        )
    }

    /// Returns the kind of the next value without reading it.
    fn peek_kind(&mut self) -> Result<Kind, Mismatch> {
        self.0.kind().map_err(Self::reader_error)
    }

    /// Returns the error for a value whose JSON type differs from the expected one.
    #[cold]
    fn type_mismatch(&mut self, expected: &dyn Expected) -> Mismatch {
        let found = match self.peek_kind() {
            Err(error) => return error,
            Ok(Kind::Null) => Unexpected::Unit,
            Ok(Kind::Array) => Unexpected::Seq,
            Ok(Kind::Object) => Unexpected::Map,
            Ok(Kind::Boolean) => Unexpected::Bool(self.0.boolean().unwrap_or_default()),
            Ok(Kind::Number) => match self.read_number(expected) {
                Ok(number) => number.as_unexpected(),
                Err(error) => return error,
            },
            Ok(Kind::String) => {
                let text = self.0.str().unwrap_or_default();
                return de::Error::invalid_type(Unexpected::Str(&text), expected);
            }
        };
        de::Error::invalid_type(found, expected)
    }

    /// Reads the next value if it is null; returns true in this case.
    fn read_if_null(&mut self) -> Result<bool, Mismatch> {
        let is_null = self.peek_kind()? == Kind::Null;
        if is_null {
            self.0.null().map_err(Self::reader_error)?;
        }
        Ok(is_null)
    }

    /// Reads a `null`.
    fn read_null(&mut self, expected: &dyn Expected) -> Result<(), Mismatch> {
        if self.read_if_null()? {
            Ok(())
        } else {
            Err(self.type_mismatch(expected))
        }
    }

    /// Reads a boolean.
    fn read_boolean(&mut self, expected: &dyn Expected) -> Result<bool, Mismatch> {
        match self.peek_kind()? {
            Kind::Boolean => self.0.boolean().map_err(Self::reader_error),
            _ => Err(self.type_mismatch(expected)),
        }
    }

    /// Reads a number and returns its text.
    fn read_number_text(&mut self, expected: &dyn Expected) -> Result<&'de str, Mismatch> {
        match self.peek_kind()? {
            Kind::Number => self.0.number().map_err(Self::reader_error),
            _ => Err(self.type_mismatch(expected)),
        }
    }

    /// Reads a number.
    fn read_number(&mut self, expected: &dyn Expected) -> Result<ParsedNumber, Mismatch> {
        let text = self.read_number_text(expected)?;
        if let Ok(value) = text.parse() {
            return Ok(ParsedNumber::Unsigned(value));
        }
        // The integer 0 has no sign.
        if let Some(value) = text.parse().ok().filter(|value| *value != 0) {
            return Ok(ParsedNumber::Signed(value));
        }
        let value: f64 = text.parse().unwrap_or(f64::INFINITY);
        if value.is_finite() {
            Ok(ParsedNumber::Float(value))
        } else {
            Err(Mismatch::new("the number is out of range".to_owned()))
        }
    }

    /// Reads an integer of up to 128 bits.
    fn read_long_integer<T: std::str::FromStr>(
        &mut self,
        expected: &dyn Expected,
    ) -> Result<T, Mismatch> {
        let text = self.read_number_text(expected)?;
        text.parse().map_err(|_| {
            let expected = mismatch::in_words(expected);
            Mismatch::new(format!("invalid value: {text}, expected {expected}"))
        })
    }

    /// Reads a string.
    fn read_string(&mut self, expected: &dyn Expected) -> Result<Cow<'de, str>, Mismatch> {
        match self.peek_kind()? {
            Kind::String => self.0.str().map_err(Self::reader_error),
            _ => Err(self.type_mismatch(expected)),
        }
    }

    /// Reads a value of any kind as a value of `serde_json`.
    fn read_value(&mut self) -> Result<Value, Mismatch> {
        Ok(match self.peek_kind()? {
            Kind::Null => {
                self.0.null().map_err(Self::reader_error)?;
                Value::Null
            }
            Kind::Boolean => Value::Bool(self.0.boolean().map_err(Self::reader_error)?),
            Kind::Number => match self.read_number(&"a number")? {
                ParsedNumber::Unsigned(value) => Value::from(value),
                ParsedNumber::Signed(value) => Value::from(value),
                ParsedNumber::Float(value) => Value::from(value),
            },
            Kind::String => Value::String(self.0.str().map_err(Self::reader_error)?.into_owned()),
            Kind::Array => {
                let mut items = Vec::new();
                let mut has_more = self.begin_array(&"an array")?;
                while has_more {
                    items.push(self.read_value()?);
                    has_more = self.next_item()?;
                }
                Value::Array(items)
            }
            Kind::Object => {
                let (mut members, mut is_first) = (Map::new(), true);
                self.begin_object(&"an object")?;
                while let Some(name) = self.read_member_name(&mut is_first)? {
                    members.insert(name.into_owned(), self.read_value()?);
                }
                Value::Object(members)
            }
        })
    }

    /// Reads a value of any kind and returns its text.
    fn read_raw(&mut self) -> Result<&'de str, Mismatch> {
        self.0.raw().map_err(Self::reader_error)
    }

    /// Begins an array; returns true if it has a first item.
    fn begin_array(&mut self, expected: &dyn Expected) -> Result<bool, Mismatch> {
        match self.peek_kind()? {
            Kind::Array => self.0.begin_array().map_err(Self::reader_error),
            _ => Err(self.type_mismatch(expected)),
        }
    }

    /// Reads the separator after an item; returns true if another item follows.
    fn next_item(&mut self) -> Result<bool, Mismatch> {
        self.0.next_item().map_err(Self::reader_error)
    }

    /// Reads the start of an object.
    fn begin_object(&mut self, expected: &dyn Expected) -> Result<(), Mismatch> {
        match self.peek_kind()? {
            Kind::Object => self.0.open_object().map_err(Self::reader_error),
            _ => Err(self.type_mismatch(expected)),
        }
    }

    /// Reads the name of the next member and the colon; returns `None` at the end of the object. `first` is true before
    /// the first member and is set to false.
    fn read_member_name(&mut self, first: &mut bool) -> Result<Option<Cow<'de, str>>, Mismatch> {
        if self
            .0
            .next_member(first)
            .map_err(Self::reader_error)?
            .is_none()
        {
            return Ok(None);
        }
        let name = self.0.str().map_err(Self::reader_error)?;
        self.0.colon().map_err(Self::reader_error)?;
        Ok(Some(name))
    }

    /// Reads the start of an object with one member that represents an enum variant, and returns the variant name.
    fn read_variant_name(&mut self, expected: &dyn Expected) -> Result<Cow<'de, str>, Mismatch> {
        self.begin_object(expected)?;
        let name = self.read_member_name(&mut true)?;
        name.ok_or_else(|| de::Error::invalid_length(0, &"an object with one member"))
    }

    /// Reads the end of the object that represents a variant.
    fn end_variant(&mut self) -> Result<(), Mismatch> {
        match self.read_member_name(&mut false)? {
            None => Ok(()),
            Some(_) => Err(de::Error::invalid_length(2, &"an object with one member")),
        }
    }
}

/// Implements methods of [`Deserializer`] by calls of another method.
macro_rules! forward_to {
    ($($method:ident)* => $target:ident) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
                self.$target(visitor)
            }
        )*
    };
}

impl<'de> Deserializer<'de> for &mut JsonDeserializer<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.peek_kind()? {
            Kind::Null => self.deserialize_unit(visitor),
            Kind::Boolean => self.deserialize_bool(visitor),
            Kind::Number => self.deserialize_f64(visitor),
            Kind::String => self.deserialize_str(visitor),
            Kind::Array => self.deserialize_seq(visitor),
            Kind::Object => self.deserialize_map(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let value = self.read_boolean(&visitor)?;
        visitor.visit_bool(value)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.read_number(&visitor)?.visit(visitor)
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.read_number(&visitor)?.as_integer().visit(visitor)
    }

    forward_to!(deserialize_i8 deserialize_i16 deserialize_i32 => deserialize_i64);
    forward_to!(deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 => deserialize_i64);
    forward_to!(deserialize_f32 => deserialize_f64);

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let value = self.read_long_integer(&visitor)?;
        visitor.visit_i128(value)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let value = self.read_long_integer(&visitor)?;
        visitor.visit_u128(value)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visit_text(self.read_string(&visitor)?, visitor)
    }

    forward_to!(deserialize_char deserialize_string deserialize_identifier => deserialize_str);

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.peek_kind()? {
            Kind::Array => self.deserialize_seq(visitor),
            _ => {
                let text = self.read_string(&visitor)?;
                visitor.visit_bytes(text.as_bytes())
            }
        }
    }

    forward_to!(deserialize_byte_buf => deserialize_bytes);

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        if self.read_if_null()? {
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.read_null(&visitor)?;
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
        if name == RAW_VALUE_TOKEN {
            let raw = std::iter::once((RAW_VALUE_TOKEN, self.read_raw()?));
            return visitor.visit_map(MapDeserializer::new(raw));
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let more = self.begin_array(&visitor)?;
        let mut items = ArrayItems {
            source: self,
            has_more: more,
            index: 0,
        };
        let value = visitor.visit_seq(&mut items)?;
        items.check_end().map(|()| value)
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
        let mut members = ObjectMembers {
            source: self,
            is_first: true,
            name: Cow::Borrowed(""),
            is_done: false,
        };
        let value = visitor.visit_map(&mut members)?;
        members.check_end().map(|()| value)
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
        match self.peek_kind()? {
            Kind::String => {
                let name = self.read_string(&visitor)?;
                visitor.visit_enum(StrDeserializer::new(&name))
            }
            _ => {
                let name = self.read_variant_name(&visitor)?;
                visitor.visit_enum(VariantObject { source: self, name })
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.read_raw()?;
        visitor.visit_unit()
    }
}

#[cfg(test)]
mod tests;
