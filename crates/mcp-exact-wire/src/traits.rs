//! The traits that generated types implement, and the functions that use them.

use std::io;

use crate::error::{DecodeError, ReadResult};
use crate::reader::Reader;
use crate::writer::Writer;

/// A type that can be decoded from JSON text.
pub trait Decode: Sized {
    /// Reads one value.
    ///
    /// # Errors
    /// [`DecodeFailed`](crate::DecodeFailed) if decoding fails; the reader contains the reason.
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self>;
}

/// A type that can be encoded as JSON text: as one value, without white space around it.
pub trait Encode {
    /// Writes the value.
    fn encode(&self, w: &mut Writer<'_>);
}

/// Decodes a document.
///
/// # Errors
/// [`DecodeError`] if the document does not match the type, with the JSON pointer of the mismatch.
pub fn from_str<T: Decode>(text: &str) -> Result<T, DecodeError> {
    decode_from(Reader::new(text))
}

/// Decodes the entire text of a reader.
pub(crate) fn decode_from<T: Decode>(mut r: Reader<'_>) -> Result<T, DecodeError> {
    // `and_then` would move the large value once more.
    if let Ok(value) = T::decode(&mut r)
        && r.end().is_ok()
    {
        return Ok(value);
    }
    Err(r.take_error())
}

/// Decodes a document from bytes.
///
/// # Errors
/// [`DecodeError`] if the document does not match the type or the bytes are not UTF-8.
pub fn from_slice<T: Decode>(bytes: &[u8]) -> Result<T, DecodeError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => from_str(text),
        Err(error) => Err(DecodeError::utf8(error.valid_up_to())),
    }
}

/// Encodes a value as text. Untyped JSON in the value is written byte for byte, line breaks between its tokens
/// included.
pub fn to_string<T: Encode + ?Sized>(value: &T) -> String {
    text_of(&|w| value.encode(w))
}

/// Returns the text that `encode` writes; not generic, so that the code of [`to_string`] is compiled once.
pub(crate) fn text_of(encode: &dyn Fn(&mut Writer<'_>)) -> String {
    let mut out = Vec::with_capacity(256);
    encode(&mut Writer::new(&mut out));
    // All written bytes are UTF-8, because they come from `str`.
    String::from_utf8(out).unwrap_or_default()
}

/// Encodes a value as bytes, as [`to_string`].
pub fn to_vec<T: Encode + ?Sized>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    value.encode(&mut Writer::new(&mut out));
    out
}

/// Appends the encoded value to a buffer of the caller.
pub fn encode_into<T: Encode + ?Sized>(value: &T, out: &mut Vec<u8>) {
    value.encode(&mut Writer::new(out));
}

/// Encodes a value as one line without its end, for transports that frame messages by lines.
///
/// A raw CR or LF can only occur between the tokens of untyped JSON, as white space; each is written as a space, so
/// that a line cannot contain a second message.
pub fn to_line<T: Encode + ?Sized>(value: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    line_into(value, &mut out);
    out
}

/// Appends the output of [`to_line`] to a buffer of the caller.
pub fn line_into<T: Encode + ?Sized>(value: &T, out: &mut Vec<u8>) {
    let mut at = out.len();
    encode_into(value, out);
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &out[at..]) {
        at += found;
        out[at] = b' ';
    }
}

/// Encodes a value to a writer, in pieces of some kilobytes.
///
/// # Errors
/// The first error of `to`.
pub fn to_writer<T: Encode + ?Sized>(to: &mut dyn io::Write, value: &T) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut w = Writer::streaming(&mut buffer, to);
    value.encode(&mut w);
    w.finish()
}

impl Reader<'_> {
    /// Reads an array of values of one type.
    pub fn array<T: Decode>(&mut self) -> ReadResult<Vec<T>> {
        let mut items = Vec::new();
        let mut more = self.begin_array()?;
        while more {
            // The operator `?` would move the large item once more.
            match T::decode(self) {
                Ok(item) => items.push(item),
                Err(failed) => return Err(failed),
            }
            more = self.next_item()?;
        }
        Ok(items)
    }

    /// Reads the value of an object member into `place`, which keeps the value until the object is complete.
    #[inline]
    pub fn member<T: Decode>(&mut self, place: &mut Option<T>) -> ReadResult<()> {
        match T::decode(self) {
            Ok(value) => {
                *place = Some(value);
                Ok(())
            }
            Err(failed) => Err(failed),
        }
    }
}

impl Decode for String {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        r.string()
    }
}

impl Encode for String {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        w.string(self);
    }
}

impl Encode for str {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        w.string(self);
    }
}

impl Decode for bool {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        r.boolean()
    }
}

impl Encode for bool {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        w.put(if *self { "true" } else { "false" });
    }
}

impl<T: Decode> Decode for Vec<T> {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        r.array()
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.put("[");
        let mut items = self.iter();
        if let Some(first) = items.next() {
            first.encode(w);
        }
        for item in items {
            w.put(",");
            item.encode(w);
        }
        w.put("]");
    }
}

impl<T: Decode> Decode for Box<T> {
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        T::decode(r).map(Self::new)
    }
}

impl<T: Encode + ?Sized> Encode for Box<T> {
    fn encode(&self, w: &mut Writer<'_>) {
        (**self).encode(w);
    }
}

impl<T: Encode + ?Sized> Encode for &T {
    fn encode(&self, w: &mut Writer<'_>) {
        (**self).encode(w);
    }
}

/// A request: its method, and the types of its parameters and of the result that answers it.
///
/// Programs implement the trait for methods of extensions and vendors.
pub trait Request {
    /// The method.
    const METHOD: &'static str;
    /// Type of the parameters; an `Option` if they may be absent by the schema.
    type Params;
    /// Type of the result.
    type Result;
}

/// A notification: its method and the type of its parameters.
///
/// Programs implement the trait for methods of extensions and vendors.
pub trait Notification {
    /// The method.
    const METHOD: &'static str;
    /// Type of the parameters; an `Option` if they may be absent by the schema.
    type Params;
}

/// Parameters of a message: a value, or nothing for an `Option` that is `None`.
pub trait EncodeParams {
    /// Returns the parameters as text; `None` if they are absent.
    fn encode_params(&self) -> Option<String>;
}

impl<T: Encode> EncodeParams for T {
    fn encode_params(&self) -> Option<String> {
        Some(to_string(self))
    }
}

impl<T: Encode> EncodeParams for Option<T> {
    fn encode_params(&self) -> Option<String> {
        self.as_ref().map(to_string)
    }
}

/// Parameters that can be decoded from a message, in which they may be absent.
pub trait DecodeParams: Sized {
    /// Decodes the text of the parameters; `None` means absent parameters.
    ///
    /// # Errors
    /// [`DecodeError`] if the parameters do not match the type, or are absent and required.
    fn decode_params(text: Option<&str>) -> Result<Self, DecodeError>;
}

impl<T: Decode> DecodeParams for T {
    fn decode_params(text: Option<&str>) -> Result<Self, DecodeError> {
        // Types of parameters do not accept null, so that decoding null reports the expected type.
        from_str(text.unwrap_or("null"))
    }
}

impl<T: Decode> DecodeParams for Option<T> {
    fn decode_params(text: Option<&str>) -> Result<Self, DecodeError> {
        text.map(from_str).transpose()
    }
}

/// For generated crates only; outside semantic versioning.
#[doc(hidden)]
pub mod private {
    /// Seals [`RevisionTypes`](crate::RevisionTypes).
    pub trait Generated {}

    /// Requests that are written as one object without an envelope, around which [`WithId`](crate::WithId) writes one.
    pub trait Bare {}

    impl<Q: Bare + ?Sized> Bare for &Q {}
}
