//! Head of a message: class, id, method and the JSON text of the other parts, borrowed and without allocation.
//!
//! Message heads are intended for routers and gateways. Parsing checks that the text is JSON and that every JSON parser
//! finds the same envelope. Parameters and results are not decoded or checked.

use std::borrow::Cow;

use crate::error::{DecodeError, DecodeFailed, ReadResult};
use crate::from_str;
use crate::reader::{Kind, Reader, duplicate_at};
use crate::view::JsonRef;

/// Class of a message, by the members that are present.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeadKind {
    /// The message has a method and an id.
    Request,
    /// The message has a method and no id.
    Notification,
    /// The message has a result or an error, and no method.
    Response,
    /// The document is an array.
    Batch,
    /// Any other JSON value.
    Other,
}

/// The parts of a message as borrowed text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageHead<'a> {
    /// Class of the message.
    pub kind: HeadKind,
    /// JSON text of `jsonrpc`.
    pub jsonrpc: Option<&'a str>,
    /// JSON text of `id`.
    pub id: Option<&'a str>,
    /// Method, if the member is a string; owned only if the string contains escape sequences.
    pub method: Option<Cow<'a, str>>,
    /// JSON text of `params`.
    pub params: Option<&'a str>,
    /// JSON text of `result`.
    pub result: Option<&'a str>,
    /// JSON text of `error`.
    pub error: Option<&'a str>,
}

impl<'a> MessageHead<'a> {
    /// Parses a document, as strictly as decoding reads its envelope.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not JSON, if a member of the envelope occurs twice, and if a method
    /// contains a lone surrogate.
    pub fn parse(text: &'a str) -> Result<Self, DecodeError> {
        let mut r = Reader::new(text);
        let mut head = Self::empty();
        let result = head.read(&mut r).and_then(|()| r.end());
        result.map_err(|DecodeFailed| r.into_error())?;
        head.kind = head.classify(text, head.method.is_some());
        Ok(head)
    }

    /// Parses a document that does not decode, to find the error to reply with. The head has no id or method if the
    /// member occurs with different values, and no method that is not a valid string.
    ///
    /// # Errors
    /// [`DecodeError`] when the text is not JSON.
    pub(crate) fn parse_lenient(text: &'a str) -> Result<Self, DecodeError> {
        let mut r = Reader::new(text);
        let mut head = Self::empty();
        let mut ambiguous = AmbiguousMembers::default();
        let result = head.read_lenient(&mut r, &mut ambiguous);
        result
            .and_then(|()| r.end())
            .map_err(|DecodeFailed| r.into_error())?;
        head.kind = head.classify(text, ambiguous.has_string_method);
        head.id = head.id.filter(|_| !ambiguous.id);
        let method = ambiguous
            .method
            .filter(|_| !ambiguous.has_different_methods);
        head.method = method.and_then(|method| JsonRef::from_checked(method).as_str());
        Ok(head)
    }

    /// Returns a head without any part.
    const fn empty() -> Self {
        Self {
            kind: HeadKind::Other,
            jsonrpc: None,
            id: None,
            method: None,
            params: None,
            result: None,
            error: None,
        }
    }

    /// Reads the members of the envelope, each at most once.
    fn read(&mut self, r: &mut Reader<'a>) -> ReadResult<()> {
        if r.kind()? != Kind::Object {
            return r.skip();
        }
        r.open_object()?;
        let (mut first, mut has_string_method) = (true, false);
        while let Some(name_at) = r.next_member(&mut first)? {
            let name = r.name()?;
            r.colon()?;
            match &*name {
                "method" => {
                    if std::mem::replace(&mut has_string_method, true) {
                        return Err(duplicate_at(r, name_at));
                    }
                    match r.kind()? {
                        Kind::String => self.method = Some(r.str()?),
                        _ => r.skip()?,
                    }
                }
                "jsonrpc" => read_once(&mut self.jsonrpc, r, name_at)?,
                "id" => read_once(&mut self.id, r, name_at)?,
                "params" => read_once(&mut self.params, r, name_at)?,
                "result" => read_once(&mut self.result, r, name_at)?,
                "error" => read_once(&mut self.error, r, name_at)?,
                _ => r.skip()?,
            }
        }
        Ok(())
    }

    /// Reads the members of the envelope, and records members that occur several times in `ambiguous`.
    fn read_lenient(
        &mut self,
        r: &mut Reader<'a>,
        ambiguous: &mut AmbiguousMembers<'a>,
    ) -> ReadResult<()> {
        if r.kind()? != Kind::Object {
            return r.skip();
        }
        r.open_object()?;
        let mut first = true;
        while r.next_member(&mut first)?.is_some() {
            let name = r.name()?;
            r.colon()?;
            let value = r.raw()?;
            match &*name {
                "method" => ambiguous.add_method(value),
                "id" => ambiguous.id |= self.id.replace(value).is_some_and(|id| id != value),
                "jsonrpc" => self.jsonrpc = Some(value),
                "params" => self.params = Some(value),
                "result" => self.result = Some(value),
                "error" => self.error = Some(value),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the class of the document `text` by its members.
    fn classify(&self, text: &str, has_method: bool) -> HeadKind {
        match (has_method, self.id) {
            (true, Some(_)) => HeadKind::Request,
            (true, None) => HeadKind::Notification,
            _ if self.result.is_some() || self.error.is_some() => HeadKind::Response,
            _ if text.trim_start().starts_with('[') => HeadKind::Batch,
            _ => HeadKind::Other,
        }
    }

    /// Returns true if `jsonrpc` is the string `2.0`, however it is spelled.
    pub fn has_valid_version(&self) -> bool {
        let spelt = |text: &str| from_str::<String>(text).is_ok_and(|version| version == "2.0");
        self.jsonrpc
            .is_some_and(|text| text == "\"2.0\"" || spelt(text))
    }

    /// Returns the JSON text of `_meta` in the parameters or the result.
    pub fn meta(&self) -> Option<&'a str> {
        find_member(self.params.or(self.result)?, "_meta")
    }

    /// Returns the JSON text of a member of `_meta`, such as `progressToken`.
    pub fn meta_member(&self, name: &str) -> Option<&'a str> {
        find_member(self.meta()?, name)
    }
}

/// Reads the text of the next value into `place`; a value that is already there is a duplicate member.
#[inline]
fn read_once<'a>(
    place: &mut Option<&'a str>,
    r: &mut Reader<'a>,
    name_at: usize,
) -> ReadResult<()> {
    if place.is_some() {
        return Err(duplicate_at(r, name_at));
    }
    *place = Some(r.raw()?);
    Ok(())
}

/// Members that parsers may read differently in a message that does not decode.
#[derive(Default)]
struct AmbiguousMembers<'a> {
    /// True if the message has two ids that differ.
    id: bool,
    /// The text of the first method.
    method: Option<&'a str>,
    /// True if the message has two methods that differ.
    has_different_methods: bool,
    /// True if one of the methods is a string.
    has_string_method: bool,
}

impl<'a> AmbiguousMembers<'a> {
    /// Records a method by its JSON text.
    fn add_method(&mut self, text: &'a str) {
        self.has_different_methods |= *self.method.get_or_insert(text) != text;
        self.has_string_method |= text.starts_with('"');
    }
}

/// Returns the JSON text of a member of an object.
fn find_member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let object = JsonRef::from_checked(text).object()?;
    object.find(name).map(JsonRef::text)
}
