//! Request ids and progress tokens: a string or an integer, echoed exactly as received.

use std::cmp::Ordering;
use std::fmt;

use crate::Integer;
use crate::error::ReadResult;
use crate::reader::{Kind, Reader};
use crate::traits::{Decode, Encode};
use crate::writer::Writer;

/// Type of ids and tokens, for errors.
const STRING_OR_INTEGER: &str = "a string or an integer";

/// Defines a type whose values are strings or integers.
macro_rules! string_or_integer {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub enum $name {
            /// A string.
            String(String),
            /// An integer, in the received spelling.
            Integer(Integer),
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::String(text) => text.fmt(f),
                    Self::Integer(value) => value.fmt(f),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    Self::String(text) => f.write_str(text),
                    Self::Integer(value) => fmt::Display::fmt(value, f),
                }
            }
        }

        impl Ord for $name {
            /// Compares in an arbitrary total order that is consistent with `Eq`, so that ids can be map keys.
            fn cmp(&self, other: &Self) -> Ordering {
                match (self, other) {
                    (Self::Integer(one), Self::Integer(other)) => one.order(other),
                    (Self::String(one), Self::String(other)) => one.cmp(other),
                    (Self::Integer(_), Self::String(_)) => Ordering::Less,
                    (Self::String(_), Self::Integer(_)) => Ordering::Greater,
                }
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::String(text.to_owned())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self::String(text)
            }
        }

        impl From<Integer> for $name {
            fn from(value: Integer) -> Self {
                Self::Integer(value)
            }
        }

        impl From<i64> for $name {
            fn from(value: i64) -> Self {
                Self::Integer(value.into())
            }
        }

        impl From<u64> for $name {
            fn from(value: u64) -> Self {
                Self::Integer(value.into())
            }
        }

        impl From<i32> for $name {
            fn from(value: i32) -> Self {
                Self::Integer(value.into())
            }
        }

        impl Decode for $name {
            fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
                match r.kind()? {
                    Kind::String => r.string().map(Self::String),
                    Kind::Number => Integer::decode_as(r, STRING_OR_INTEGER).map(Self::Integer),
                    _ => Err(r.expected(STRING_OR_INTEGER)),
                }
            }
        }

        impl Encode for $name {
            fn encode(&self, w: &mut Writer<'_>) {
                match self {
                    Self::String(text) => w.string(text),
                    Self::Integer(value) => value.encode(w),
                }
            }
        }
    };
}

string_or_integer! {
    /// The id of a JSON-RPC request.
    ///
    /// Specification: `basic`, "Requests" (a string or an integer, never null). Equality is of text: `1` and `1.0`
    /// differ.
    RequestId
}

string_or_integer! {
    /// The token that associates progress notifications with a request.
    ///
    /// Specification: `basic/utilities/progress` (up to 2025-11-25), `basic/patterns/progress` (from 2026-07-28 on).
    ProgressToken
}
