//! Access of serde to the items, members, member names and variants that the deserializer reads.

use std::borrow::Cow;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};

use super::{JsonDeserializer, Mismatch};

/// Access to the items of an array, one after the other.
pub(super) struct ArrayItems<'s, 'de> {
    /// Deserializer that reads the items.
    pub(super) source: &'s mut JsonDeserializer<'de>,
    /// True if the array has an unread item.
    pub(super) has_more: bool,
    /// Index of the next item.
    pub(super) index: usize,
}

impl ArrayItems<'_, '_> {
    /// Reads the separator after an item.
    pub(super) fn advance(&mut self) -> Result<(), Mismatch> {
        self.has_more = self.source.next_item()?;
        self.index += 1;
        Ok(())
    }

    /// Returns an error if the array has an unread item.
    pub(super) fn check_end(&self) -> Result<(), Mismatch> {
        if self.has_more {
            let message = format!("the array has more than {} items", self.index);
            return Err(Mismatch::new(message));
        }
        Ok(())
    }
}

impl<'de> SeqAccess<'de> for &mut ArrayItems<'_, 'de> {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mismatch> {
        if !self.has_more {
            return Ok(None);
        }
        match seed.deserialize(&mut *self.source) {
            Ok(value) => self.advance().map(|()| Some(value)),
            Err(error) => Err(error.within_item(self.index)),
        }
    }
}

/// Access to the members of an object, one after the other.
pub(super) struct ObjectMembers<'s, 'de> {
    /// Deserializer that reads the members.
    pub(super) source: &'s mut JsonDeserializer<'de>,
    /// True before the first member is read.
    pub(super) is_first: bool,
    /// Name of the member whose value is read.
    pub(super) name: Cow<'de, str>,
    /// True after the end of the object.
    pub(super) is_done: bool,
}

impl ObjectMembers<'_, '_> {
    /// Reads the next name; returns false at the end of the object.
    pub(super) fn advance(&mut self) -> Result<bool, Mismatch> {
        match self.source.read_member_name(&mut self.is_first)? {
            Some(name) => self.name = name,
            None => self.is_done = true,
        }
        Ok(!self.is_done)
    }

    /// Returns an error if the object has an unread member.
    pub(super) fn check_end(&self) -> Result<(), Mismatch> {
        if self.is_done {
            Ok(())
        } else {
            Err(Mismatch::new("the object has more members".to_owned()))
        }
    }
}

impl<'de> MapAccess<'de> for &mut ObjectMembers<'_, 'de> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mismatch> {
        if self.is_done || !self.advance()? {
            return Ok(None);
        }
        seed.deserialize(MemberName(&self.name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mismatch> {
        seed.deserialize(&mut *self.source)
            .map_err(|error| error.within_member(&self.name))
    }
}

/// Object with one member that represents an enum variant.
pub(super) struct VariantObject<'s, 'de> {
    /// Deserializer that reads the value of the member.
    pub(super) source: &'s mut JsonDeserializer<'de>,
    /// Name of the variant.
    pub(super) name: Cow<'de, str>,
}

impl<'s, 'de> VariantObject<'s, 'de> {
    /// Reads the value of the variant with `read`, and the end of the object.
    fn read_variant_value<T>(
        self,
        read: impl FnOnce(&mut JsonDeserializer<'de>) -> Result<T, Mismatch>,
    ) -> Result<T, Mismatch> {
        let value = read(self.source).map_err(|error| error.within_member(&self.name))?;
        self.source.end_variant().map(|()| value)
    }
}

impl<'de> EnumAccess<'de> for VariantObject<'_, 'de> {
    type Error = Mismatch;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Mismatch> {
        let variant = seed.deserialize(MemberName(&self.name))?;
        Ok((variant, self))
    }
}

impl<'de> VariantAccess<'de> for VariantObject<'_, 'de> {
    type Error = Mismatch;

    fn unit_variant(self) -> Result<(), Mismatch> {
        self.read_variant_value(|source| source.read_null(&"null"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Mismatch> {
        self.read_variant_value(|source| seed.deserialize(source))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Mismatch> {
        self.read_variant_value(|source| source.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.read_variant_value(|source| source.deserialize_map(visitor))
    }
}

/// Name of an object member: a string in JSON, and possibly a number or a boolean in the decoded type.
struct MemberName<'n>(&'n str);

impl MemberName<'_> {
    /// Parses the name as a number or a boolean.
    fn parse_as<T: std::str::FromStr>(&self, expected: &dyn Expected) -> Result<T, Mismatch> {
        let wrong = |_| de::Error::invalid_type(Unexpected::Str(self.0), expected);
        self.0.parse().map_err(wrong)
    }
}

/// Implements methods of [`Deserializer`] that parse the name of a member.
macro_rules! parse_member_names {
    ($($method:ident $visit:ident;)*) => {
        $(
            fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
                let value = self.parse_as(&visitor)?;
                visitor.$visit(value)
            }
        )*
    };
}

impl<'de> Deserializer<'de> for MemberName<'_> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_str(self.0)
    }

    parse_member_names! {
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
