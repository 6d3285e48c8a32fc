//! Error of the deserializer: the path of a value, and why the value does not match.

use std::fmt;

use serde::de::{self, Expected, Unexpected};

/// Error for a value that does not match the type it is decoded into.
#[derive(Debug)]
pub(crate) struct Mismatch(Box<MismatchDetails>);

/// Reason of a mismatch and path of the value.
#[derive(Debug)]
struct MismatchDetails {
    /// Names and indexes that lead to the value, the innermost first.
    path: Vec<PathSegment>,
    /// Description of the mismatch.
    reason: String,
}

/// One segment of the path to a value.
#[derive(Debug)]
enum PathSegment {
    /// Name of an object member.
    Name(String),
    /// Index of an array item.
    Index(usize),
}

impl Mismatch {
    pub(super) fn new(reason: String) -> Self {
        Self(Box::new(MismatchDetails {
            path: Vec::new(),
            reason,
        }))
    }

    /// Adds the name of a member to the path, because the error occurred in the value of this member.
    pub(super) fn within_member(mut self, name: &str) -> Self {
        self.0.path.push(PathSegment::Name(name.to_owned()));
        self
    }

    /// Adds an index to the path, because the error occurred in this item of an array.
    pub(super) fn within_item(mut self, index: usize) -> Self {
        self.0.path.push(PathSegment::Index(index));
        self
    }

    /// Returns the JSON pointer of the value (RFC 6901).
    pub(crate) fn pointer(&self) -> String {
        let mut pointer = String::new();
        for segment in self.0.path.iter().rev() {
            pointer.push('/');
            match segment {
                PathSegment::Name(name) => {
                    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                }
                PathSegment::Index(index) => pointer.push_str(&index.to_string()),
            }
        }
        pointer
    }

    /// Returns the description of the mismatch without the path.
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

/// Describes what is expected. A number is described in words, because the peer does not know the number types of Rust.
#[cold]
pub(super) fn in_words(expected: &dyn Expected) -> String {
    let expected = expected.to_string();
    let words = match expected.as_str() {
        "u8" => "an integer from 0 to 255",
        "u16" => "an integer from 0 to 65535",
        "u32" | "u64" | "u128" | "usize" => "a non-negative integer",
        "i8" => "an integer from -128 to 127",
        "i16" => "an integer from -32768 to 32767",
        "i32" | "i64" | "i128" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        _ => return expected,
    };
    words.to_owned()
}

impl de::Error for Mismatch {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    #[cold]
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = JsonUnexpected(found);
        let expected = in_words(expected);
        Self::new(format!("invalid type: {found}, expected {expected}"))
    }

    #[cold]
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = JsonUnexpected(found);
        let expected = in_words(expected);
        Self::new(format!("invalid value: {found}, expected {expected}"))
    }
}

/// Formatter that describes an unexpected value with the JSON names of types, such as `null`.
struct JsonUnexpected<'a>(Unexpected<'a>);

impl fmt::Display for JsonUnexpected<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Unexpected::Unit => f.write_str("null"),
            found => found.fmt(f),
        }
    }
}
