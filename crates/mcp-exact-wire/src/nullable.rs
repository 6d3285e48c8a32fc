//! Values that the schema allows to be null, distinct from absent values.

use crate::error::ReadResult;
use crate::reader::{Kind, Reader};
use crate::traits::{Decode, Encode};
use crate::validate::{Path, Validate, Violations};
use crate::writer::Writer;

/// A value or JSON's `null`. A member that may also be absent is an `Option<Nullable<T>>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Nullable<T> {
    /// The value `null`.
    Null,
    /// A value that is not null.
    Value(T),
}

impl<T> Nullable<T> {
    /// Returns the value, unless it is null.
    pub fn as_value(&self) -> Option<&T> {
        match self {
            Self::Null => None,
            Self::Value(value) => Some(value),
        }
    }
}

impl<T> From<T> for Nullable<T> {
    fn from(value: T) -> Self {
        Self::Value(value)
    }
}

impl<T: Decode> Decode for Nullable<T> {
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        match r.kind()? {
            Kind::Null => r.null().map(|()| Self::Null),
            _ => T::decode(r).map(Self::Value),
        }
    }
}

impl<T: Encode> Encode for Nullable<T> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self {
            Self::Null => w.put("null"),
            Self::Value(value) => value.encode(w),
        }
    }
}

impl<T: Validate> Validate for Nullable<T> {
    fn check(&self, path: &Path<'_>, to: &mut Violations) {
        if let Self::Value(value) = self {
            value.check(path, to);
        }
    }
}
