//! Values that a newer peer may send and this revision does not define: enum values and variants of tagged unions.
//!
//! Only decoders and `From<&str>` create these values. Each value belongs to the type that decoded it, so that a value
//! that the type defines is never an unknown value.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;

use crate::Json;
use crate::error::ReadResult;
use crate::reader::{Reader, duplicate_at};
use crate::traits::Encode;
use crate::unescape::unescape_lossy;
use crate::view::{JsonRef, ObjectRef};
use crate::writer::Writer;

/// Names of the members of the JSON-RPC envelope (JSON-RPC 2.0, sections 4 and 5).
pub(crate) const ENVELOPE_MEMBERS: [&str; 6] =
    ["jsonrpc", "id", "method", "params", "result", "error"];

/// A value that the string enum `E` does not define in its revision.
pub struct UnknownName<E>(Box<str>, PhantomData<fn() -> E>);

impl<E> UnknownName<E> {
    /// Returns the value.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Creates an unknown value; for generated code, which has compared the value with the defined values.
    #[doc(hidden)]
    pub fn from_unknown(name: &str) -> Self {
        Self(name.into(), PhantomData)
    }
}

impl<E> Clone for UnknownName<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<E> PartialEq for UnknownName<E> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<E> Eq for UnknownName<E> {}

impl<E> Hash for UnknownName<E> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<E> fmt::Debug for UnknownName<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnknownName").field(&self.0).finish()
    }
}

/// Union that keeps objects with a value of the discriminant that its revision does not define.
pub trait OpenUnion {
    /// Name of the discriminant.
    const TAG: &'static str;
    /// Role of the union's objects.
    const ROLE: UnionRole;
}

/// Role of the objects of an [`OpenUnion`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnionRole {
    /// Values inside a message.
    Value,
    /// Requests or notifications without `jsonrpc` and `id`, as in the schemas up to 2025-06-18.
    Bare,
    /// Requests with `jsonrpc` and `id`.
    Request,
    /// Notifications with `jsonrpc`.
    Notification,
}

/// A variant of the tagged union `U` that its revision does not define, kept as received.
pub struct UnknownVariant<U> {
    /// Value of the discriminant.
    tag: Box<str>,
    /// The complete object.
    json: Json,
    /// True if the variant is a message without an envelope by its type, and arrived with members of the envelope.
    has_envelope: bool,
    /// The union that decoded the value.
    union: PhantomData<fn() -> U>,
}

impl<U> UnknownVariant<U> {
    /// Returns the value of the discriminant.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// Returns the complete object.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// Returns the id if the variant is a request that contains one.
    #[doc(hidden)]
    pub fn request_id(&self) -> Option<crate::RequestId> {
        let id = crate::MessageHead::parse(self.json.text()).ok()?.id?;
        crate::from_str(id).ok()
    }

    /// Returns the `params` of a request or a notification; `None` if they are absent.
    pub fn params(&self) -> Option<Json> {
        let params = self.json.view().object()?.find("params");
        params.map(JsonRef::to_json)
    }

    /// Creates an unknown variant from the value of its discriminant and the complete object.
    fn new(tag: Box<str>, json: Json, has_envelope: bool) -> Self {
        Self {
            tag,
            json,
            has_envelope,
            union: PhantomData,
        }
    }
}

impl<U: OpenUnion> UnknownVariant<U> {
    /// Reads an unknown variant; for generated code, which has found that no variant of the union has this tag.
    #[doc(hidden)]
    pub fn read(r: &mut Reader<'_>) -> ReadResult<Self> {
        if U::ROLE == UnionRole::Value {
            let tag = r.unmatched_discriminant(U::TAG)?.unwrap_or_default().into();
            let json = r.json()?;
            return Ok(Self::new(tag, json, false));
        }
        let message = UnknownMessage::read(r, U::TAG, U::ROLE)?;
        let is_apart = message.is_whole && message.has_envelope;
        let json = if is_apart {
            without_envelope(message.object)
        } else {
            message.object.to_object().into()
        };
        let has_envelope = message.has_envelope && !message.is_whole;
        Ok(Self::new(message.tag, json, has_envelope))
    }
}

/// Message whose method no variant of its union has.
struct UnknownMessage<'a> {
    /// Value of the discriminant.
    tag: Box<str>,
    /// The complete object.
    object: ObjectRef<'a>,
    /// True if the object was decoded as a complete message, which includes the JSON-RPC envelope.
    is_whole: bool,
    /// True if the type of the message has no envelope, and the message arrived with members of the envelope.
    has_envelope: bool,
}

impl<'a> UnknownMessage<'a> {
    /// Reads a message of a union with this role, which must not be [`UnionRole::Value`].
    fn read(r: &mut Reader<'a>, tag: &str, role: UnionRole) -> ReadResult<Self> {
        let is_whole = r.take_envelope();
        if !is_whole && role != UnionRole::Bare {
            r.expect_envelope();
            r.take_envelope();
        }
        let checks = is_whole || role != UnionRole::Bare;
        let start = r.peek_at();
        let mut members = MessageMembers::default();
        members.read(r, tag, checks)?;
        match role {
            UnionRole::Value | UnionRole::Bare => {}
            UnionRole::Request => {
                r.envelope_version()?;
                r.envelope_id()?;
            }
            UnionRole::Notification => {
                r.envelope_version()?;
                r.envelope_without_id()?;
            }
        }
        Ok(Self {
            tag: members.tag,
            object: ObjectRef::from_checked(r.since(start)),
            is_whole,
            has_envelope: role == UnionRole::Bare && members.has_envelope,
        })
    }
}

impl Reader<'_> {
    /// Skips an object that matches no known variant of its union, with the same checks as decoding an
    /// [`UnknownVariant`]. Conversions by tables call this method, so that they accept the same input as the types.
    ///
    /// # Errors
    /// As decoding an [`UnknownVariant`].
    #[doc(hidden)]
    pub fn unknown_variant(&mut self, tag: &'static str, role: UnionRole) -> ReadResult<()> {
        match role {
            UnionRole::Value => {
                self.unmatched_discriminant(tag)?;
                self.skip()
            }
            role => UnknownMessage::read(self, tag, role).map(drop),
        }
    }
}

/// Members of a message that were found in one pass.
#[derive(Default)]
struct MessageMembers {
    /// Value of the discriminant.
    tag: Box<str>,
    /// One bit for each member of [`ENVELOPE_MEMBERS`].
    seen_members: u8,
    /// True if the reader has recorded members of the envelope.
    has_envelope: bool,
}

impl MessageMembers {
    /// Reads a complete message. A member of the envelope must not occur twice, so that all parsers find the same
    /// message. `checks` is true if the reader records the envelope.
    fn read(&mut self, r: &mut Reader<'_>, tag: &str, checks: bool) -> ReadResult<()> {
        r.open_object()?;
        let mut first = true;
        while let Some(name_at) = r.next_member(&mut first)? {
            let name = r.name()?;
            r.colon()?;
            let Some(index) = ENVELOPE_MEMBERS.iter().position(|known| *known == name) else {
                r.skip()?;
                continue;
            };
            if self.seen_members & 1 << index != 0 {
                return Err(duplicate_at(r, name_at));
            }
            self.seen_members |= 1 << index;
            if *name == *tag {
                self.tag = r.str()?.into();
            } else if name == "params" {
                r.skip()?;
            } else {
                self.has_envelope = true;
                if !checks || !r.envelope_member(&name, name_at)? {
                    r.skip()?;
                }
            }
        }
        Ok(())
    }
}

/// Returns a request or notification without the members of its envelope.
fn without_envelope(object: ObjectRef<'_>) -> Json {
    let mut out = Vec::with_capacity(object.text().len());
    write_without_envelope(object, &mut Writer::new(&mut out));
    Json::from_checked(&String::from_utf8_lossy(&out))
}

/// Writes a request or notification without the members of its envelope.
fn write_without_envelope(object: ObjectRef<'_>, w: &mut Writer<'_>) {
    w.put("{");
    for (quoted, value) in object.spelt_members() {
        let name = unescape_lossy(&quoted[1..quoted.len() - 1]);
        if !is_envelope_only(&name) {
            w.key(quoted);
            w.put(":");
            w.put(value.text());
        }
    }
    w.put("}");
}

/// Returns true for members of the envelope that requests and notifications without an envelope do not have.
fn is_envelope_only(name: &str) -> bool {
    matches!(name, "jsonrpc" | "id" | "result" | "error")
}

impl<U> Encode for UnknownVariant<U> {
    fn encode(&self, w: &mut Writer<'_>) {
        match self.json.view().object() {
            Some(object) if self.has_envelope && w.is_in_message() => {
                write_without_envelope(object, w)
            }
            _ => self.json.encode(w),
        }
    }
}

impl<U> Clone for UnknownVariant<U> {
    fn clone(&self) -> Self {
        Self::new(self.tag.clone(), self.json.clone(), self.has_envelope)
    }
}

impl<U> PartialEq for UnknownVariant<U> {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl<U> Eq for UnknownVariant<U> {}

impl<U> fmt::Debug for UnknownVariant<U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnknownVariant")
            .field("tag", &self.tag)
            .field("json", &self.json)
            .finish()
    }
}
