//! Numbers that keep their value and their kind: `1`, `1.0`, `1e400` and an id of thirty digits are all preserved
//! exactly as received.
//!
//! Equality compares the JSON text, so `1` and `1.0` differ. Numbers are never rounded.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::error::{DecodeError, DecodeErrorKind, Detail, ReadResult};
use crate::from_str;
use crate::reader::Reader;
use crate::traits::{Decode, Encode};
use crate::writer::Writer;

/// A JSON number.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Number(NumberText);

/// Text of a number. Text that is the decimal form of an `i64` is stored as `Int`, other text of at most 14 bytes as
/// `Short`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum NumberText {
    /// Number whose text is the decimal form of this value.
    Int(i64),
    /// Length and bytes of the text.
    Short(u8, [u8; 14]),
    /// The complete text.
    Long(Box<str>),
}

impl Number {
    /// Returns the value if it is an integer within `i64`, in any spelling.
    pub fn as_i64(&self) -> Option<i64> {
        match &self.0 {
            NumberText::Int(value) => Some(*value),
            _ => self
                .with_text(|text| Decimal::parse(text).to_i128())?
                .try_into()
                .ok(),
        }
    }

    /// Returns the value if it is an integer within `u64`, in any spelling.
    pub fn as_u64(&self) -> Option<u64> {
        match &self.0 {
            NumberText::Int(value) => u64::try_from(*value).ok(),
            _ => self
                .with_text(|text| Decimal::parse(text).to_i128())?
                .try_into()
                .ok(),
        }
    }

    /// Returns the nearest `f64`; infinite if the number is out of range.
    pub fn as_f64(&self) -> f64 {
        match &self.0 {
            #[expect(clippy::cast_precision_loss, reason = "documented: the nearest")]
            NumberText::Int(value) => *value as f64,
            _ => self.with_text(|text| text.parse().unwrap_or(f64::NAN)),
        }
    }

    /// Returns true if the value is an integer, in any spelling (JSON Schema's `integer`).
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            NumberText::Int(_) => true,
            _ => self.with_text(|text| Decimal::parse(text).is_integer()),
        }
    }

    /// Compares the value with an integer exactly.
    pub fn compare(&self, with: i64) -> Ordering {
        match &self.0 {
            NumberText::Int(value) => value.cmp(&with),
            _ => self.with_text(|text| Decimal::parse(text).compare(i128::from(with))),
        }
    }

    /// Appends the text of the number.
    pub(crate) fn push_to(&self, to: &mut String) {
        self.with_text(|text| to.push_str(text));
    }

    /// Creates a number from text that was already checked to be a JSON number.
    fn from_text(text: &str) -> Self {
        if let Some(value) = parse_canonical_i64(text) {
            return Self(NumberText::Int(value));
        }
        let mut short = [0; 14];
        match (short.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(text.as_bytes());
                Self(NumberText::Short(length, short))
            }
            _ => Self(NumberText::Long(text.into())),
        }
    }

    /// Calls `f` with the text of the number.
    fn with_text<T>(&self, f: impl FnOnce(&str) -> T) -> T {
        match &self.0 {
            NumberText::Int(value) => f(itoa::Buffer::new().format(*value)),
            NumberText::Short(length, bytes) => {
                f(std::str::from_utf8(&bytes[..usize::from(*length)]).unwrap_or_default())
            }
            NumberText::Long(text) => f(text),
        }
    }
}

/// Returns the value of a string that is the decimal form of an `i64`, without leading zeros; `None` for other strings.
fn parse_canonical_i64(text: &str) -> Option<i64> {
    if text.len() > 20 || text == "-0" || text.bytes().any(|b| !b.is_ascii_digit() && b != b'-') {
        return None;
    }
    text.parse().ok()
}

/// Number as digits and a power of ten.
struct Decimal<'a> {
    /// True if the text starts with a minus sign.
    negative: bool,
    /// Digits before the decimal point.
    whole: &'a str,
    /// Digits after the decimal point.
    fraction: &'a str,
    /// Power of ten by which the digits are multiplied.
    exponent: i64,
}

impl<'a> Decimal<'a> {
    /// Parses the text of a JSON number.
    fn parse(text: &'a str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        Self {
            negative,
            whole,
            fraction,
            exponent: saturating_exponent(exponent),
        }
    }

    /// Iterates over the values of all digits, from the first to the last.
    fn digits(&self) -> impl DoubleEndedIterator<Item = u8> {
        self.whole
            .bytes()
            .chain(self.fraction.bytes())
            .map(|b| b - b'0')
    }

    /// Returns the power of ten of the last digit.
    fn scale(&self) -> i64 {
        self.exponent
            .saturating_sub(i64::try_from(self.fraction.len()).unwrap_or(i64::MAX))
    }

    /// Returns true if the value is an integer.
    fn is_integer(&self) -> bool {
        let trailing_zeros = self.digits().rev().take_while(|d| *d == 0).count();
        let all_zero = trailing_zeros == self.whole.len() + self.fraction.len();
        all_zero || self.scale().saturating_add_unsigned(trailing_zeros as u64) >= 0
    }

    /// Returns the value if it is an integer within `i128`.
    fn to_i128(&self) -> Option<i128> {
        if self.is_integer() {
            self.truncated()
        } else {
            None
        }
    }

    /// Returns the value without its fraction; `None` if the value is too large.
    fn truncated(&self) -> Option<i128> {
        let scale = self.scale();
        let digits = self.whole.len() + self.fraction.len();
        let dropped = usize::try_from(scale.min(0).unsigned_abs()).unwrap_or(usize::MAX);
        let mut value: i128 = 0;
        for digit in self.digits().take(digits.saturating_sub(dropped)) {
            value = value.checked_mul(10)?.checked_add(i128::from(digit))?;
        }
        if value != 0 {
            value = value.checked_mul(10_i128.checked_pow(u32::try_from(scale.max(0)).ok()?)?)?;
        }
        Some(if self.negative { -value } else { value })
    }

    /// Compares the value with an integer.
    fn compare(&self, with: i128) -> Ordering {
        let beyond = if self.negative {
            Ordering::Less
        } else {
            Ordering::Greater
        };
        match self.truncated() {
            None => beyond,
            Some(value) if value == with && !self.is_integer() => beyond,
            Some(value) => value.cmp(&with),
        }
    }
}

/// Parses an exponent; values beyond ±2^60 become ±2^60.
fn saturating_exponent(text: &str) -> i64 {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    // Larger than the length of any string, and small enough to avoid overflow.
    /// Maximum absolute value of a parsed exponent.
    const MAX_EXPONENT: i64 = 1 << 60;
    let value = digits.bytes().fold(0_i64, |value, b| {
        (value.saturating_mul(10).saturating_add(i64::from(b - b'0'))).min(MAX_EXPONENT)
    });
    if negative { -value } else { value }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| f.write_str(text))
    }
}

impl FromStr for Number {
    type Err = DecodeError;

    /// Parses the text of a JSON number.
    fn from_str(text: &str) -> Result<Self, DecodeError> {
        from_str(text)
    }
}

/// Error for a floating-point value that JSON cannot represent: infinite, or not a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotFinite;

impl fmt::Display for NotFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON has no number for an infinite value or for `NaN`")
    }
}

impl std::error::Error for NotFinite {}

impl TryFrom<f64> for Number {
    type Error = NotFinite;

    /// Converts to the shortest number that reads back as the same value; the number always has a fraction or an
    /// exponent.
    fn try_from(value: f64) -> Result<Self, NotFinite> {
        if value.is_finite() {
            Ok(Self::from_text(&format!("{value:?}")))
        } else {
            Err(NotFinite)
        }
    }
}

impl Reader<'_> {
    /// Reads a number that must equal the integer `expected`, in any spelling; `words` is the text of `expected` for
    /// the error.
    pub fn constant_integer(&mut self, expected: i64, words: &'static str) -> ReadResult<()> {
        let at = self.peek_at();
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(self.wrong_type(Detail::ConstOf("a number", words)));
        }
        if Number::decode(self)?.as_i64() == Some(expected) {
            Ok(())
        } else {
            Err(self.fault(at, DecodeErrorKind::Const, Detail::Const(words)))
        }
    }
}

impl Decode for Number {
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        r.peek();
        match r.small_integer() {
            Some(value) => Ok(Self(NumberText::Int(value))),
            None => r.number().map(Self::from_text),
        }
    }
}

impl Encode for Number {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        self.with_text(|text| w.put(text));
    }
}

/// A JSON number with an integer value: JSON Schema's `integer`, in the received spelling (`7`, `7.0`, `1e20`).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Integer(Number);

impl Integer {
    /// Returns the value, if it is within `i64`.
    pub fn as_i64(&self) -> Option<i64> {
        self.0.as_i64()
    }

    /// Returns the value, if it is within `u64`.
    pub fn as_u64(&self) -> Option<u64> {
        self.0.as_u64()
    }

    /// Compares in an arbitrary total order that is consistent with equality of the text.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        self.0.0.cmp(&other.0.0)
    }

    /// Returns the integer as a number.
    pub fn as_number(&self) -> &Number {
        &self.0
    }
}

impl fmt::Debug for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Integer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for Integer {
    type Err = DecodeError;

    /// Parses the text of a JSON number with an integer value.
    fn from_str(text: &str) -> Result<Self, DecodeError> {
        from_str(text)
    }
}

impl From<Integer> for Number {
    fn from(integer: Integer) -> Self {
        integer.0
    }
}

impl TryFrom<Number> for Integer {
    type Error = Number;

    /// Returns the number as the error if its value is not an integer.
    fn try_from(number: Number) -> Result<Self, Number> {
        if number.is_integer() {
            Ok(Self(number))
        } else {
            Err(number)
        }
    }
}

/// Implements `From` for integer types: before the semicolon, the types whose values all fit into `i64`.
macro_rules! from_integers {
    ($($small:ty),* ; $($large:ty),*) => {
        $(impl From<$small> for Number {
            fn from(value: $small) -> Self {
                Self(NumberText::Int(i64::from(value)))
            }
        })*
        $(impl From<$large> for Number {
            fn from(value: $large) -> Self {
                match i64::try_from(value) {
                    Ok(value) => Self(NumberText::Int(value)),
                    Err(_) => Self::from_text(&value.to_string()),
                }
            }
        })*
        $(impl From<$small> for Integer {
            fn from(value: $small) -> Self {
                Self(value.into())
            }
        })*
        $(impl From<$large> for Integer {
            fn from(value: $large) -> Self {
                Self(value.into())
            }
        })*
        $(impl From<$small> for crate::Json {
            fn from(value: $small) -> Self {
                Self::from_checked(&value.to_string())
            }
        })*
        $(impl From<$large> for crate::Json {
            fn from(value: $large) -> Self {
                Self::from_checked(&value.to_string())
            }
        })*
    };
}

from_integers!(i8, i16, i32, i64, u8, u16, u32 ; u64, i128, u128, usize, isize);

impl Integer {
    /// Decodes a number that must be an integer; for another number, the error says that `what` is expected.
    pub(crate) fn decode_as(r: &mut Reader<'_>, what: &'static str) -> ReadResult<Self> {
        let at = r.peek_at();
        let number = Number::decode(r)?;
        if number.is_integer() {
            Ok(Self(number))
        } else {
            Err(r.fault(at, DecodeErrorKind::Type, Detail::Expected(what)))
        }
    }
}

impl Decode for Integer {
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        Self::decode_as(r, "an integer")
    }
}

impl Encode for Integer {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        self.0.encode(w);
    }
}
