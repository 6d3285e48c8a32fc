//! Revisions of the specification: their identifiers, their message types, and the type of what they do not have.

use std::fmt;

use crate::Json;
use crate::error::ReadResult;
use crate::message::{Call, DecodeResult, Direction, MessageKind};
use crate::reader::Reader;
use crate::traits::{Decode, Encode, private};
use crate::validate::{Path, Validate, Violations};
use crate::writer::Writer;

/// The identifier of a revision of the specification, such as `2025-06-18`.
///
/// Any identifier is allowed, so that a new revision needs no change of this type. Identifiers are not ordered, because
/// an unknown identifier is neither older nor newer than others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revision(&'static str);

impl Revision {
    /// Creates the identifier from its text.
    pub const fn new(id: &'static str) -> Self {
        Self(id)
    }

    /// Returns the identifier.
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The message types of one revision, by direction.
pub trait RevisionTypes: private::Generated + Copy + 'static {
    /// The revision.
    const REVISION: Revision;
    /// Messages that a client sends.
    type FromClient: Direction;
    /// Messages that a server sends.
    type FromServer: Direction;
    /// Type of the member `_meta` that the params of a client's request require; [`Never`] if they require none.
    type RequestMeta: Decode + Clone + Send + Sync + 'static;
    /// Requests that a client sends.
    type ClientRequest: Decode + Encode;
    /// Notifications that a client sends.
    type ClientNotification: Decode + Encode;
    /// Results that a client sends.
    type ClientResult: Decode + Encode;
    /// Requests that a server sends.
    type ServerRequest: Decode + Encode;
    /// Notifications that a server sends.
    type ServerNotification: Decode + Encode;
    /// Results that a server sends.
    type ServerResult: Decode + Encode;
}

/// The type of parts that a revision does not have; it has no values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Never {}

impl Decode for Never {
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        Err(r.no_variant("Never"))
    }
}

impl Encode for Never {
    fn encode(&self, _: &mut Writer<'_>) {
        match *self {}
    }
}

impl Validate for Never {
    fn check(&self, _: &Path<'_>, _: &mut Violations) {
        match *self {}
    }
}

impl Call for Never {
    fn kind(&self) -> MessageKind {
        match *self {}
    }

    fn method(&self) -> &str {
        match *self {}
    }

    fn params(&self) -> Option<Json> {
        match *self {}
    }
}

impl DecodeResult for Never {
    fn decode_result(_: &str, r: &mut Reader<'_>) -> ReadResult<Self> {
        Self::decode(r)
    }
}
