//! What a newer peer may send and this revision has no name for: enum values and members of tagged unions.
//!
//! Only decoders and `From<&str>` make these, so that they never stand for a value that the type knows.

use crate::Json;
use crate::error::Read;
use crate::reader::Reader;
use crate::traits::Encode;
use crate::unescape::unescape_lossy;
use crate::writer::Writer;

/// A value of a string enum that its revision does not define.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct UnknownName(Box<str>);

impl UnknownName {
    /// The value.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// For generated code, which has compared the value with those it knows.
    #[doc(hidden)]
    pub fn from_unknown(name: &str) -> Self {
        Self(name.into())
    }
}

/// A member of a tagged union that its revision does not define, kept as it arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownVariant {
    tag: Box<str>,
    json: Json,
}

impl UnknownVariant {
    /// The value of the discriminant.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// The whole object.
    pub fn json(&self) -> &Json {
        &self.json
    }

    /// The id, when it is a request that holds one.
    #[doc(hidden)]
    pub fn request_id(&self) -> Option<crate::RequestId> {
        let id = crate::Look::at(self.json.text()).ok()?.id?;
        crate::from_str(id).ok()
    }

    /// For generated code, which has found that no member of the union has this tag.
    #[doc(hidden)]
    pub fn read(r: &mut Reader<'_>, tag: &'static str) -> Read<Self> {
        let name = r.only_tag(tag)?.unwrap_or_default().into();
        let json = if r.take_envelope() {
            message(r)?
        } else {
            r.json()?
        };
        Ok(Self { tag: name, json })
    }
}

/// A message: as it is where its type would hold the members of its envelope, otherwise without them.
fn message(r: &mut Reader<'_>) -> Read<Json> {
    let start = r.peek_at();
    let bare = without_envelope(r)?;
    if !r.envelope().inside {
        return Ok(bare);
    }
    // Nobody else looks at them.
    r.envelope_version()?;
    if r.envelope().id.is_some() {
        r.envelope_id()?;
    }
    Ok(Json::from_checked(r.since(start)))
}

/// A message without the members of its envelope, which are noted by the reader.
fn without_envelope(r: &mut Reader<'_>) -> Read<Json> {
    let mut out = Vec::new();
    let mut w = Writer::new(&mut out);
    w.put("{");
    r.open_object()?;
    let mut first = true;
    while let Some(name_at) = r.next_member(&mut first)? {
        let quoted = r.raw()?;
        r.colon()?;
        let name = unescape_lossy(&quoted[1..quoted.len() - 1]);
        if !r.envelope_member(&name, name_at)? {
            w.key(quoted);
            w.put(":");
            w.put(r.raw()?);
        }
    }
    w.put("}");
    Ok(Json::from_checked(&String::from_utf8_lossy(&out)))
}

impl Encode for UnknownVariant {
    fn encode(&self, w: &mut Writer<'_>) {
        self.json.encode(w);
    }
}
