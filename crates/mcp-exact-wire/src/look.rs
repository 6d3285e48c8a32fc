//! A cheap look at a message: what it is, its id, its method and its raw parts, borrowed and without allocation.
//!
//! For routers and gateways that pass messages on. Checks that the text is JSON, and nothing of its meaning.

use std::borrow::Cow;

use crate::error::{DecodeError, Failed, Read};
use crate::reader::{Kind, Reader};
use crate::view::JsonRef;

/// What a message is, judged by the members that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LookKind {
    /// It has a method and an id.
    Request,
    /// It has a method and no id.
    Notification,
    /// It has a result or an error, and no method.
    Response,
    /// It is an array.
    Batch,
    /// Anything else.
    Other,
}

/// The parts of a message as they stand in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look<'a> {
    /// What it is.
    pub kind: LookKind,
    /// The text of `jsonrpc`.
    pub jsonrpc: Option<&'a str>,
    /// The text of `id`.
    pub id: Option<&'a str>,
    /// The method, when it is a string; owned only when it is written with escape sequences.
    pub method: Option<Cow<'a, str>>,
    /// The text of `params`.
    pub params: Option<&'a str>,
    /// The text of `result`.
    pub result: Option<&'a str>,
    /// The text of `error`.
    pub error: Option<&'a str>,
}

impl<'a> Look<'a> {
    /// Looks at a document. Of a member that is there twice the last one counts.
    ///
    /// # Errors
    /// [`DecodeError`] when the text is not JSON.
    pub fn at(text: &'a str) -> Result<Self, DecodeError> {
        let mut r = Reader::new(text);
        let mut look = Self {
            kind: LookKind::Other,
            jsonrpc: None,
            id: None,
            method: None,
            params: None,
            result: None,
            error: None,
        };
        let looked = look.read(&mut r).and_then(|()| r.end());
        looked.map_err(|Failed| r.into_error())?;
        look.kind = look.judge(text);
        Ok(look)
    }

    fn read(&mut self, r: &mut Reader<'a>) -> Read<()> {
        if r.kind()? != Kind::Object {
            return r.skip();
        }
        r.open_object()?;
        let mut first = true;
        while r.next_member(&mut first)?.is_some() {
            let name = r.name()?;
            r.colon()?;
            match &*name {
                "method" if r.kind()? == Kind::String => self.method = Some(r.name()?),
                "jsonrpc" => self.jsonrpc = Some(r.raw()?),
                "id" => self.id = Some(r.raw()?),
                "params" => self.params = Some(r.raw()?),
                "result" => self.result = Some(r.raw()?),
                "error" => self.error = Some(r.raw()?),
                _ => r.skip()?,
            }
        }
        Ok(())
    }

    fn judge(&self, text: &str) -> LookKind {
        match (&self.method, self.id) {
            (Some(_), Some(_)) => LookKind::Request,
            (Some(_), None) => LookKind::Notification,
            _ if self.result.is_some() || self.error.is_some() => LookKind::Response,
            _ if text.trim_start().starts_with('[') => LookKind::Batch,
            _ => LookKind::Other,
        }
    }

    /// Whether `jsonrpc` is `"2.0"`.
    pub fn version_is_right(&self) -> bool {
        self.jsonrpc == Some("\"2.0\"")
    }

    /// The text of `_meta` in the parameters or the result.
    pub fn meta(&self) -> Option<&'a str> {
        member(self.params.or(self.result)?, "_meta")
    }

    /// The text of a member of `_meta`, such as `progressToken`.
    pub fn meta_member(&self, name: &str) -> Option<&'a str> {
        member(self.meta()?, name)
    }
}

/// The text of a member of an object.
fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let object = JsonRef::from_checked(text).object()?;
    object.find(name).map(JsonRef::text)
}
