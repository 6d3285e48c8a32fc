//! Outline of a message: its class, its envelope, and the positions of some members of its parameters or its result.
//!
//! An outline is read in one pass from a message in the most common spelling. All other texts, valid or not, have no
//! outline and are handled by [`decode_message`](crate::decode_message).

use crate::decode::utf8;
use crate::error::ReadResult;
use crate::places::{Places, scan_object};
use crate::reader::{Kind, Reader};
use crate::view::ObjectRef;
use crate::{MessageKind, RequestId};

/// Outline of a request, a notification or a result.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline<'a, const N: usize> {
    /// The kind of the message; never that of an error.
    pub kind: MessageKind,
    /// The id of a request or a result.
    pub id: Option<RequestId>,
    /// The method of a request or a notification.
    pub method: Option<&'a str>,
    /// The parameters of a request or a notification, or the result.
    pub body: Option<ObjectRef<'a>>,
    /// Positions in the body of the `N` members that the caller has named, in the order of the names.
    pub places: Places<N>,
    /// Nesting depth of objects and arrays, including the message itself.
    pub depth: usize,
}

/// Members of a message that were read so far.
struct MessageParts<'a, const N: usize> {
    /// True if `jsonrpc` was read.
    has_version: bool,
    /// Value of `id`.
    id: Option<RequestId>,
    /// Value of `method`.
    method: Option<&'a str>,
    /// Value of `params`.
    params: Option<ObjectRef<'a>>,
    /// Value of `result`.
    result: Option<ObjectRef<'a>>,
    /// Positions of the searched members in the body.
    places: Places<N>,
    /// Nesting depth of objects and arrays in the message.
    depth: usize,
}

impl<'a, const N: usize> Outline<'a, N> {
    /// Reads the outline of a message, and finds members of its body: those named in `params` if the body is
    /// parameters, those named in `result` if it is a result.
    ///
    /// Returns `None` unless the text is JSON in UTF-8 with only members of the envelope, each at most once; their
    /// names, the method and the version have no escape sequences; and the id is an integer of at most 18 digits or a
    /// string without escape sequences. Errors have no outline.
    pub fn of(bytes: &'a [u8], params: [&str; N], result: [&str; N]) -> Option<Self> {
        let mut r = Reader::new(utf8(bytes).ok()?);
        if r.peek() != Some(b'{') {
            return None;
        }
        let parts = MessageParts::read(&mut r, &params, &result).ok()??;
        r.end().ok()?;
        parts.into_outline()
    }
}

impl<'a, const N: usize> MessageParts<'a, N> {
    /// Reads all members of a message; `None` if the message has no outline.
    fn read(
        r: &mut Reader<'a>,
        params: &[&str; N],
        result: &[&str; N],
    ) -> ReadResult<Option<Self>> {
        let mut parts = Self {
            has_version: false,
            id: None,
            method: None,
            params: None,
            result: None,
            places: Places::none(),
            depth: 1,
        };
        r.open_object()?;
        let mut first = true;
        while r.next_member(&mut first)?.is_some() {
            let is_usual = if r.literal(b"\"jsonrpc\":\"2.0\"") {
                !std::mem::replace(&mut parts.has_version, true)
            } else if r.literal(b"\"id\":") {
                parts.id.is_none() && parts.read_id(r)?
            } else if r.literal(b"\"method\":") {
                parts.method.is_none() && parts.read_method(r)?
            } else if r.literal(b"\"params\":") {
                parts.params.is_none() && r.kind()? == Kind::Object && {
                    parts.params = Some(parts.read_body(r, params)?);
                    true
                }
            } else if r.literal(b"\"result\":") {
                parts.result.is_none() && r.kind()? == Kind::Object && {
                    parts.result = Some(parts.read_body(r, result)?);
                    true
                }
            } else {
                false
            };
            if !is_usual {
                return Ok(None);
            }
        }
        Ok(Some(parts))
    }

    /// Reads the id; returns false if it is neither a short integer nor a string without escape sequences.
    fn read_id(&mut self, r: &mut Reader<'a>) -> ReadResult<bool> {
        self.id = match r.kind()? {
            Kind::Number => r.small_integer().map(RequestId::from),
            Kind::String => r.unescaped()?.map(RequestId::from),
            _ => None,
        };
        Ok(self.id.is_some())
    }

    /// Reads the method; returns false if it is not a string without escape sequences.
    fn read_method(&mut self, r: &mut Reader<'a>) -> ReadResult<bool> {
        if r.kind()? == Kind::String {
            self.method = r.unescaped()?;
        }
        Ok(self.method.is_some())
    }

    /// Reads an object, finds the members `names` in it, and returns its text.
    fn read_body(&mut self, r: &mut Reader<'a>, names: &[&str; N]) -> ReadResult<ObjectRef<'a>> {
        let start = r.peek_at();
        let (places, depth) = scan_object(r, names)?;
        self.places = places;
        self.depth = self.depth.max(depth + 1);
        Ok(ObjectRef::from_checked(r.since(start)))
    }

    /// Returns the outline; `None` if the members do not form a request, a notification or a result.
    fn into_outline(self) -> Option<Outline<'a, N>> {
        let kind = match (self.method, &self.id, &self.result) {
            (Some(_), Some(_), None) => MessageKind::Request,
            (Some(_), None, None) => MessageKind::Notification,
            (None, Some(_), Some(_)) if self.params.is_none() => MessageKind::Result,
            _ => return None,
        };
        self.has_version.then_some(Outline {
            kind,
            id: self.id,
            method: self.method,
            body: self.params.or(self.result),
            places: self.places,
            depth: self.depth,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JsonRef;

    /// Names that the tests search.
    const NAMES: [&str; 2] = ["a", "_meta"];

    /// Checks kind, depth and found members of the outline of a text; `None` means that the text has no outline.
    fn check(text: &str, expected: Option<(MessageKind, usize, [Option<&str>; 2])>) {
        let outline = Outline::of(text.as_bytes(), NAMES, NAMES);
        let found = outline.map(|outline| {
            let body = outline.body.map(ObjectRef::to_object).unwrap_or_default();
            let values = outline.places.values(&body);
            let values = values.map(|value| value.map(|value| value.text().to_owned()));
            (outline.kind, outline.depth, values)
        });
        let found = found
            .as_ref()
            .map(|(kind, depth, values)| (*kind, *depth, values.each_ref().map(Option::as_deref)));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn usual_messages_have_an_outline() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[[1]],"b":2}}"#,
            Some((MessageKind::Request, 4, [Some("[[1]]"), None])),
        );
        check(
            r#" {"method":"m" , "jsonrpc":"2.0"} "#,
            Some((MessageKind::Notification, 1, [None; 2])),
        );
        check(
            r#"{"result":{"_meta":{"a":0}},"id":"x","jsonrpc":"2.0"}"#,
            Some((MessageKind::Result, 3, [None, Some(r#"{"a":0}"#)])),
        );
    }

    /// A text has no outline if it is invalid, or is valid in a less common spelling.
    #[test]
    fn other_text_has_no_outline() {
        for text in [
            "",
            "[]",
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#,
            r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1.0,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"\u006d"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"params":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","x":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":01}}"#,
        ] {
            check(text, None);
        }
    }

    /// Skipped values were scanned before: a reader of checked text ends where a reader of unchecked text ends.
    #[test]
    fn checked_text_has_equal_outlines() {
        let text = r#"{"a":["\"]",{"b":1.5e3}],"_meta":{"x":"\\"}}"#;
        let object: crate::JsonObject = text.parse().expect("an object");
        let members = |mut r: Reader<'_>| -> ReadResult<Vec<String>> {
            let (mut first, mut found) = (true, Vec::new());
            r.open_object()?;
            while r.next_member(&mut first)?.is_some() {
                r.name()?;
                r.colon()?;
                found.push(r.raw()?.to_owned());
            }
            r.end().map(|()| found)
        };
        let read = members(object.reader()).expect("an object");
        assert_eq!(Ok(&read), members(Reader::new(text)).as_ref());
        let values = object.view().iter().map(|(_, value)| value);
        assert_eq!(read, values.map(JsonRef::text).collect::<Vec<_>>());
    }
}
