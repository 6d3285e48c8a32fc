//! What a newer peer may send and this revision has no name for: enum values and members of tagged unions.
//!
//! Only decoders and `From<&str>` make these, so that they never stand for a value that the type knows.

use crate::Json;
use crate::error::Read;
use crate::reader::Reader;
use crate::traits::Encode;
use crate::writer::Writer;

/// A value of a string enum that its revision does not define.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnknownName(Box<str>);

impl UnknownName {
    /// The value.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// For generated code, which has compared the value with those it knows.
    #[doc(hidden)]
    pub fn from_unknown(name: &str) -> Self {
        Self(name.into())
    }
}

/// A member of a tagged union that its revision does not define, kept as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVariant {
    tag: Box<str>,
    json: Json,
}

impl UnknownVariant {
    /// The value of the discriminant.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The whole object.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// For generated code, which has found that no member of the union has this tag.
    #[doc(hidden)]
    pub fn read(r: &mut Reader<'_>, tag: &'static str) -> Read<Self> {
        Ok(Self {
            tag: r.tag(tag)?.unwrap_or_default().into(),
            json: r.json()?,
        })
    }
}

impl Encode for UnknownVariant {
    fn encode(&self, w: &mut Writer<'_>) {
        self.json.encode(w);
    }
}
