//! Cursor over JSON text that all generated decoders use.
//!
//! This module reads strings, numbers, raw values and arrays; `object.rs` reads objects, and `dispatch.rs` selects the
//! variants of unions. The reader builds no tree, does not recurse, and allocates only returned values.

use std::any::Any;
use std::borrow::Cow;

use crate::error::{DecodeError, DecodeErrorKind, DecodeFailed, Detail, Fault, ReadResult};
use crate::scan::{self, NotJson, Shape};
use crate::skip;
use crate::unescape::{self, BadEscape};

/// Maximum nesting depth of values of known types; untyped JSON may be nested to any depth.
pub const MAX_DEPTH: u32 = 128;

/// The six kinds of JSON values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// Cursor over the JSON text of one document.
///
/// Generated code uses the reader; applications use [`from_str`](crate::from_str) and the like. After a method has
/// returned [`DecodeFailed`], only [`into_error`](Self::into_error) may be called.
#[derive(Debug)]
pub struct Reader<'a> {
    /// The complete document.
    text: &'a str,
    /// Position of the reader, in bytes.
    at: usize,
    /// True if the text was scanned before, so that skipped values are JSON.
    checked: bool,
    /// True if white space between tokens was read, or may have been skipped.
    has_space: bool,
    /// Number of objects and arrays of known types that enclose the position.
    depth: u32,
    /// Reason of the last failed step; `None` if no step has failed.
    fault: Option<Box<Fault>>,
    /// Envelope members of the message that is being decoded.
    envelope: Envelope,
    /// Offset of an object, and the value of its discriminant if another step has already read it.
    hint: Option<(usize, &'a str)>,
    /// Params member for a request whose text lacks the member.
    provided: Option<&'a ProvidedParam>,
}

/// Positions of the JSON-RPC envelope members that the type of a message does not contain.
#[derive(Debug, Default)]
pub(crate) struct Envelope {
    /// True if the next object was declared to be a message.
    pub(crate) expected: bool,
    /// Offset at which the message begins.
    pub(crate) start: usize,
    /// True if the members of the message up to its method were already read.
    pub(crate) resumed: bool,
    /// Position of the value of `id`.
    pub(crate) id: Option<IdAt>,
    /// Offset of the value of `jsonrpc`.
    pub(crate) version: Option<usize>,
}

/// Position of an id, and the id itself if it is a small integer, as most ids are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdAt {
    /// Offset of the id, in bytes.
    pub(crate) at: usize,
    /// Value of the id, if it is a small integer.
    pub(crate) integer: Option<i64>,
}

/// Required member of the params of a request, for [`decode_request`](crate::decode_request).
#[derive(Debug)]
pub struct ProvidedParam {
    /// Name of the member.
    pub(crate) name: &'static str,
    /// Value of the member, of the type that the field of the params has.
    pub(crate) value: Box<dyn Any + Send + Sync>,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `text`.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            checked: false,
            has_space: false,
            depth: 0,
            fault: None,
            envelope: Envelope::default(),
            hint: None,
            provided: None,
        }
    }

    /// Creates a reader at the start of text that was already checked to be JSON. Skipped values are not checked again.
    /// Outside semantic versioning.
    #[doc(hidden)]
    pub fn of_checked(text: &'a str) -> Self {
        Self {
            checked: true,
            ..Self::new(text)
        }
    }

    /// Creates a reader like [`of_checked`](Self::of_checked), with a params member for a request whose text lacks the
    /// member.
    pub(crate) fn of_request(text: &'a str, provided: Option<&'a ProvidedParam>) -> Self {
        Self {
            provided,
            ..Self::of_checked(text)
        }
    }

    /// Checks that nothing but white space is left.
    pub fn end(&mut self) -> ReadResult<()> {
        self.at = scan::skip_space(self.bytes(), self.at);
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(self.not_json(self.at))
        }
    }

    /// Returns the error for a [`DecodeFailed`] that this reader has returned.
    pub fn into_error(mut self) -> DecodeError {
        self.take_error()
    }

    /// Returns the error for a [`DecodeFailed`], like [`into_error`](Self::into_error), but without a move of the
    /// reader, which each decoder would compile as a copy.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_error(&mut self) -> DecodeError {
        let fault = self.fault.take().map_or_else(
            || Fault {
                at: self.at,
                kind: DecodeErrorKind::Syntax,
                detail: Detail::Plain("the decoder stopped"),
                member: None,
            },
            |fault| *fault,
        );
        fault.into_error(self.text)
    }

    /// Returns the kind of the next value, by its first character.
    #[inline]
    pub fn kind(&mut self) -> ReadResult<Kind> {
        match self.peek() {
            Some(b'{') => Ok(Kind::Object),
            Some(b'"') => Ok(Kind::String),
            Some(b'[') => Ok(Kind::Array),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Boolean),
            Some(b'n') => Ok(Kind::Null),
            _ => Err(self.not_json(self.at)),
        }
    }

    /// Reads a string.
    pub fn string(&mut self) -> ReadResult<String> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a string"));
        }
        let start = self.at + 1;
        let end = scan::plain_end(self.bytes(), start);
        match self.bytes().get(end) {
            Some(b'"') => {
                self.at = end + 1;
                Ok(self.text[start..end].to_owned())
            }
            Some(b'\\') => self.escaped_string(end),
            _ => Err(self.not_json(end)),
        }
    }

    /// Reads a string, which is borrowed if it contains no escape sequence.
    #[inline]
    pub fn str(&mut self) -> ReadResult<Cow<'a, str>> {
        match self.plain_string()? {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(at) => self.escaped_string(at).map(Cow::Owned),
        }
    }

    /// Reads over a string, with the errors of [`str`](Self::str).
    #[inline]
    pub fn skip_string(&mut self) -> ReadResult<()> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a string"));
        }
        let end = scan::plain_end(self.bytes(), self.at + 1);
        match self.bytes().get(end) {
            Some(b'"') => {
                self.at = end + 1;
                Ok(())
            }
            Some(b'\\') => self.escaped_string(end).map(drop),
            _ => Err(self.not_json(end)),
        }
    }

    /// Reads a string that must equal `expected`.
    #[inline]
    pub fn constant(&mut self, expected: &'static str) -> ReadResult<()> {
        let at = self.peek_at();
        let end = at + 1 + expected.len();
        let bytes = self.bytes();
        if bytes.get(at) == Some(&b'"')
            && bytes.get(end) == Some(&b'"')
            && &bytes[at + 1..end] == expected.as_bytes()
        {
            self.at = end + 1;
            return Ok(());
        }
        self.check_unescaped_constant(at, expected)
    }

    /// Checks that the value at `at`, which is not spelled like `expected`, is a string that equals `expected` after
    /// unescaping.
    #[cold]
    fn check_unescaped_constant(&mut self, at: usize, expected: &'static str) -> ReadResult<()> {
        if self.peek() != Some(b'"') {
            return Err(self.wrong_type(Detail::ConstOf("a string", expected)));
        }
        if *self.str()? == *expected {
            Ok(())
        } else {
            Err(self.fault(at, DecodeErrorKind::Const, Detail::Const(expected)))
        }
    }

    /// Reads `true` or `false`.
    #[inline]
    pub fn boolean(&mut self) -> ReadResult<bool> {
        let (end, value) = match self.peek() {
            Some(b't') => (scan::literal_end(self.bytes(), self.at, b"true"), true),
            Some(b'f') => (scan::literal_end(self.bytes(), self.at, b"false"), false),
            _ => return Err(self.expected("a boolean")),
        };
        self.at = self.scanned(end)?;
        Ok(value)
    }

    /// Reads `null`.
    pub fn null(&mut self) -> ReadResult<()> {
        if self.peek() != Some(b'n') {
            return Err(self.expected("null"));
        }
        self.at = self.scanned(scan::literal_end(self.bytes(), self.at, b"null"))?;
        Ok(())
    }

    /// Reads a number and returns its text.
    #[inline]
    pub fn number(&mut self) -> ReadResult<&'a str> {
        let Some(b'-' | b'0'..=b'9') = self.peek() else {
            return Err(self.expected("a number"));
        };
        let start = self.at;
        self.at = self.scanned(scan::number_end(self.bytes(), start))?;
        Ok(&self.text[start..self.at])
    }

    /// Returns the text of the next value of any kind, after checking that it is JSON.
    pub fn raw(&mut self) -> ReadResult<&'a str> {
        let start = self.peek_at();
        self.skip()?;
        Ok(&self.text[start..self.at])
    }

    /// Skips the next value.
    #[inline]
    pub fn skip(&mut self) -> ReadResult<()> {
        if self.checked {
            return self.skip_unchecked();
        }
        self.scan()
    }

    /// Skips the next value and checks that it is JSON.
    #[inline]
    fn scan(&mut self) -> ReadResult<()> {
        self.scan_depth().map(drop)
    }

    /// Skips the next value, checks that it is JSON, and counts its levels of objects and arrays.
    pub(crate) fn scan_depth(&mut self) -> ReadResult<usize> {
        let start = self.peek_at();
        let mut shape = Shape::default();
        let end = scan::scan_value(self.bytes(), start, &mut shape);
        self.at = self.scanned(end)?;
        self.has_space |= shape.has_space;
        Ok(shape.depth)
    }

    /// Skips the next value by its quotes and brackets alone. The skipped text must be decoded later, which validates
    /// it.
    #[inline]
    pub(crate) fn skip_unchecked(&mut self) -> ReadResult<()> {
        let start = self.peek_at();
        match skip::value_end(self.bytes(), start) {
            Some(end) => {
                self.at = end;
                self.has_space = true;
                Ok(())
            }
            None => self.scan(),
        }
    }

    /// Reads an integer of at most 18 digits without fraction and exponent; otherwise returns `None` and reads nothing.
    #[inline]
    pub(crate) fn small_integer(&mut self) -> Option<i64> {
        let (value, end) = scan::small_integer(self.bytes(), self.at)?;
        self.at = end;
        Some(value)
    }

    /// Reads `text` and returns true if the input continues with exactly these bytes; otherwise returns false and reads
    /// nothing.
    #[inline]
    pub(crate) fn literal<const N: usize>(&mut self, text: &[u8; N]) -> bool {
        let rest = self.bytes().get(self.at..).unwrap_or_default();
        let is = rest.first_chunk() == Some(text);
        if is {
            self.at += N;
        }
        is
    }

    /// Opens an array; returns true if the array has a first item.
    pub fn begin_array(&mut self) -> ReadResult<bool> {
        if self.peek() != Some(b'[') {
            return Err(self.expected("an array"));
        }
        self.enter()?;
        self.at += 1;
        if self.peek() == Some(b']') {
            self.at += 1;
            self.leave();
            return Ok(false);
        }
        Ok(true)
    }

    /// Returns true if another item follows in the array; otherwise closes the array.
    pub fn next_item(&mut self) -> ReadResult<bool> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(b']') => {
                self.at += 1;
                self.leave();
                Ok(false)
            }
            _ => Err(self.not_json(self.at)),
        }
    }

    /// Records the failure that the next value does not have the JSON type `what`.
    #[cold]
    pub fn expected(&mut self, what: &'static str) -> DecodeFailed {
        self.wrong_type(Detail::Expected(what))
    }

    /// Records the failure that the next value has another JSON type than `detail` says.
    #[cold]
    pub(crate) fn wrong_type(&mut self, detail: Detail) -> DecodeFailed {
        let at = self.peek_at();
        match scan::value_end(self.bytes(), at) {
            Ok(_) => self.fault(at, DecodeErrorKind::Type, detail),
            Err(NotJson(at)) => self.not_json(at),
        }
    }

    /// Records the failure that the next value matches no variant of the union `name`.
    #[cold]
    pub fn no_variant(&mut self, name: &'static str) -> DecodeFailed {
        let at = self.peek_at();
        match scan::value_end(self.bytes(), at) {
            Ok(_) => self.fault(at, DecodeErrorKind::Union, Detail::Union(name)),
            Err(NotJson(at)) => self.not_json(at),
        }
    }

    // Functions for `object.rs`, `dispatch.rs` and the types of values.

    /// Returns the bytes of the complete document.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Returns false if no white space between tokens was read. Outside semantic versioning.
    #[doc(hidden)]
    pub fn may_have_space(&self) -> bool {
        self.has_space
    }

    /// Returns the position of the reader, in bytes.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Returns the text from `start` to the position of the reader.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    /// Sets the position of the reader, in bytes.
    #[inline]
    pub(crate) fn set_at(&mut self, at: usize) {
        self.at = at;
    }

    /// Skips white space and returns the next byte without consuming it.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.bytes();
        match bytes.get(self.at) {
            Some(&b) if b > b' ' => Some(b),
            _ => {
                self.has_space = true;
                self.at = scan::skip_space(bytes, self.at);
                bytes.get(self.at).copied()
            }
        }
    }

    /// Skips white space and returns the position of the reader.
    #[inline]
    pub(crate) fn peek_at(&mut self) -> usize {
        self.peek();
        self.at
    }

    /// Returns a string without escape sequences; `None` for any other string, which is not consumed.
    #[inline]
    pub(crate) fn unescaped(&mut self) -> ReadResult<Option<&'a str>> {
        self.plain_string().map(Result::ok)
    }

    /// Reads a string without escape sequences; otherwise returns the offset of the first escape sequence and reads
    /// nothing.
    #[inline]
    fn plain_string(&mut self) -> ReadResult<Result<&'a str, usize>> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a string"));
        }
        let start = self.at + 1;
        let end = scan::plain_end(self.bytes(), start);
        match self.bytes().get(end) {
            Some(b'"') => {
                self.at = end + 1;
                Ok(Ok(&self.text[start..end]))
            }
            Some(b'\\') => Ok(Err(end)),
            _ => Err(self.not_json(end)),
        }
    }

    /// Reads a string whose first escape sequence is at `escape`, with one allocation of the string's length in the
    /// JSON text.
    #[inline(never)]
    fn escaped_string(&mut self, escape: usize) -> ReadResult<String> {
        let (bytes, start) = (self.bytes(), self.at);
        let end = match skip::string_end(bytes, escape) {
            Some(end) => end,
            None => self.scanned(scan::string_end(bytes, escape))?,
        };
        let inside = bytes.get(start + 1..end).unwrap_or_default();
        let plain = escape - start - 1;
        match unescape::unescape(inside, plain, &bytes[start + 1..]) {
            Ok(text) => {
                self.at = end;
                Ok(text)
            }
            Err(BadEscape::NotJson) => {
                let at = scan::string_end(bytes, escape).map_or_else(|NotJson(at)| at, |_| end);
                Err(self.not_json(at))
            }
            Err(BadEscape::Surrogate) => Err(self.lone_surrogate(start)),
        }
    }

    /// Records the failure that a string at `at` contains a lone surrogate, or that the text there is not JSON.
    #[cold]
    fn lone_surrogate(&mut self, at: usize) -> DecodeFailed {
        if let Err(NotJson(at)) = scan::value_end(self.bytes(), at) {
            return self.not_json(at);
        }
        let words = Detail::Plain("a string holds a lone surrogate");
        self.fault(at, DecodeErrorKind::Surrogate, words)
    }

    /// Converts the result of a scan: returns the end, or records the failure that the text is not JSON.
    #[inline]
    pub(crate) fn scanned(&mut self, end: Result<usize, NotJson>) -> ReadResult<usize> {
        end.map_err(|NotJson(at)| self.not_json(at))
    }

    /// Enters an object or array of a known type; records a failure beyond [`MAX_DEPTH`].
    #[inline]
    pub(crate) fn enter(&mut self) -> ReadResult<()> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(self.too_deep())
    }

    /// Records the failure that values of known types are nested too deep.
    #[cold]
    #[inline(never)]
    fn too_deep(&mut self) -> DecodeFailed {
        let words = Detail::Plain("typed values are nested deeper than 128 levels");
        self.fault(self.at, DecodeErrorKind::Depth, words)
    }

    /// Remembers the value of the discriminant of the object at `start`, for the union that is decoded there next.
    #[inline]
    pub(crate) fn give_hint(&mut self, start: usize, tag: &'a str) {
        self.hint = Some((start, tag));
    }

    /// Returns and clears the value of the discriminant of the object at `start`, if another step has already read it.
    #[inline]
    pub(crate) fn take_hint(&mut self, start: usize) -> Option<&'a str> {
        let (at, tag) = self.hint.take()?;
        (at == start).then_some(tag)
    }

    /// Returns the recorded envelope members of the message that is being decoded.
    #[inline]
    pub(crate) fn envelope(&mut self) -> &mut Envelope {
        &mut self.envelope
    }

    /// Returns the params member for a request whose text lacks the member.
    #[inline]
    pub(crate) fn provided_param(&self) -> Option<&'a ProvidedParam> {
        self.provided
    }

    /// Returns the number of objects and arrays of known types that enclose the position.
    #[inline]
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Sets the position and the nesting depth to those at which a look-ahead began.
    #[inline]
    pub(crate) fn rewind(&mut self, at: usize, depth: u32) {
        self.at = at;
        self.depth = depth;
    }

    /// Reads the name of a member, for comparison only; a name with a lone surrogate equals no known name.
    #[inline]
    pub(crate) fn name(&mut self) -> ReadResult<Cow<'a, str>> {
        match self.plain_string()? {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(escape) => {
                let start = self.at + 1;
                self.at = self.scanned(scan::string_end(self.bytes(), escape))?;
                let inside = &self.text[start..self.at - 1];
                Ok(Cow::Owned(unescape::unescape_lossy(inside)))
            }
        }
    }

    /// Clears the fault of the last step and returns it, if reading can continue after the value: the text is JSON and
    /// is not nested too deep.
    pub(crate) fn forgive(&mut self) -> ReadResult<Box<Fault>> {
        let is_final =
            |fault: &Fault| matches!(fault.kind, DecodeErrorKind::Syntax | DecodeErrorKind::Depth);
        match self.fault.take_if(|fault| !is_final(fault)) {
            Some(fault) => Ok(fault),
            None => Err(DecodeFailed),
        }
    }

    /// Leaves an object or array of a known type.
    #[inline]
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Records the failure that the text is not JSON at the offset `at`.
    #[cold]
    pub(crate) fn not_json(&mut self, at: usize) -> DecodeFailed {
        let words = if at >= self.text.len() {
            "the text ends too early"
        } else {
            "the text is not JSON"
        };
        self.fault(at, DecodeErrorKind::Syntax, Detail::Plain(words))
    }

    /// Records a fault of the value at `at`.
    #[cold]
    pub(crate) fn fault(
        &mut self,
        at: usize,
        kind: DecodeErrorKind,
        detail: Detail,
    ) -> DecodeFailed {
        self.fault_in(at, kind, detail, None)
    }

    /// Records a fault of the object at `at`, or of its member `member`.
    #[cold]
    pub(crate) fn fault_in(
        &mut self,
        at: usize,
        kind: DecodeErrorKind,
        detail: Detail,
        member: Option<Box<str>>,
    ) -> DecodeFailed {
        self.fault = Some(Box::new(Fault {
            at,
            kind,
            detail,
            member,
        }));
        DecodeFailed
    }
}

/// Description of a duplicate member in error messages.
const DUPLICATE: Detail = Detail::Plain("the member is there twice");

/// Records the failure that the member name at `name_at` is a duplicate.
#[cold]
pub(crate) fn duplicate_at(r: &mut Reader<'_>, name_at: usize) -> DecodeFailed {
    r.fault(name_at, DecodeErrorKind::Duplicate, DUPLICATE)
}

/// Records the failure that the object at `start` has the member `name` twice.
#[cold]
pub(crate) fn duplicate_in(r: &mut Reader<'_>, start: usize, name: &str) -> DecodeFailed {
    r.fault_in(
        start,
        DecodeErrorKind::Duplicate,
        DUPLICATE,
        Some(name.into()),
    )
}
