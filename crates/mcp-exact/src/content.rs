//! Content blocks of tool results and prompt messages, in the form of the newest revision.
//!
//! Blocks that an older revision does not define are converted when the result is sent; see [`crate::outgoing`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use mcp_exact_wire::Writer;

use crate::annotations::{Role, audience_to_json, priority_to_json};
use crate::definition::Resource;
use crate::params::object_member;
use crate::protocol::{Encode, Json, JsonObject, RawJson};

/// One content block (section `server/tools`, "Tool Result").
///
/// ```
/// use mcp_exact::{Content, Role};
/// let block = Content::text("done").audience([Role::User]).priority(0.5);
/// assert_eq!(
///     block.object().text(),
///     r#"{"type":"text","text":"done","annotations":{"audience":["user"],"priority":0.5}}"#
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content(Block);

/// Form in which a block is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    /// Text without annotations and `_meta`, which has the same form in every revision. Most results consist of one
    /// such block, so it is encoded without an intermediate [`JsonObject`].
    Text(String),
    /// Any content block, in the form of the home revision.
    Object(JsonObject),
}

impl Encode for Content {
    fn encode(&self, w: &mut Writer<'_>) {
        match &self.0 {
            Block::Text(text) => {
                w.put(r#"{"type":"text","text":"#);
                w.string(text);
                w.put("}");
            }
            Block::Object(object) => object.encode(w),
        }
    }
}

impl Content {
    /// Creates a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self(Block::Text(text.into()))
    }

    /// Creates an image block from the bytes of the image and its media type.
    pub fn image(data: impl AsRef<[u8]>, mime_type: &str) -> Self {
        Self::media_block("image", data.as_ref(), mime_type)
    }

    /// Creates an audio block from the bytes of the audio and its media type.
    ///
    /// Clients of 2024-11-05, which does not define audio blocks, receive an embedded resource instead.
    pub fn audio(data: impl AsRef<[u8]>, mime_type: &str) -> Self {
        Self::media_block("audio", data.as_ref(), mime_type)
    }

    /// Creates a link to a resource.
    ///
    /// Clients of revisions before 2025-06-18 receive a text block that names the resource.
    pub fn link(resource: &Resource) -> Self {
        let mut object = resource.definition();
        object.insert("type", Json::string("resource_link"));
        Self(Block::Object(object))
    }

    /// Creates a block that embeds a text resource.
    pub fn embedded_text(uri: &str, text: &str) -> Self {
        Self::embedded_block([("uri", Json::string(uri)), ("text", Json::string(text))])
    }

    /// Sets the media type of the resource that the block embeds. Blocks of other kinds are not changed.
    ///
    /// ```
    /// use mcp_exact::Content;
    /// let block = Content::embedded_text("note:///a", "# Title").embedded_type("text/markdown");
    /// assert!(block.object().text().contains(r#""mimeType":"text/markdown""#));
    /// ```
    #[must_use]
    pub fn embedded_type(self, mime_type: &str) -> Self {
        let mut object = self.into_object();
        if let Some(mut resource) = object_member(&object, "resource") {
            resource.insert("mimeType", Json::string(mime_type));
            object.insert("resource", resource);
        }
        Self(Block::Object(object))
    }

    /// Creates a block that embeds a binary resource.
    pub fn embedded_blob(uri: &str, blob: impl AsRef<[u8]>, mime_type: &str) -> Self {
        Self::embedded_block([
            ("uri", Json::string(uri)),
            ("mimeType", Json::string(mime_type)),
            ("blob", encode_base64(blob.as_ref())),
        ])
    }

    /// Creates a block from a value of the revision 2026-07-28, such as `mcp_2026_07_28::ContentBlock`.
    ///
    /// Returns `None` if the value is not a JSON object.
    pub fn from_typed(block: &impl Encode) -> Option<Self> {
        JsonObject::try_from(Json::from_encode(block))
            .ok()
            .map(|object| Self(Block::Object(object)))
    }

    /// Sets the audience of the block.
    #[must_use]
    pub fn audience(self, audience: impl IntoIterator<Item = Role>) -> Self {
        self.set_annotation("audience", audience_to_json(audience))
    }

    /// Sets how important the block is, from 0 (optional) to 1 (required). Values outside of this range are clamped.
    #[must_use]
    pub fn priority(self, priority: f64) -> Self {
        self.set_annotation("priority", priority_to_json(priority))
    }

    /// Sets when the data of the block was last modified, as an ISO 8601 timestamp.
    #[must_use]
    pub fn last_modified(self, timestamp: &str) -> Self {
        self.set_annotation("lastModified", Json::string(timestamp))
    }

    /// Sets an entry of the block's `_meta`.
    #[must_use]
    pub fn meta(self, key: &str, value: impl Into<RawJson>) -> Self {
        let mut object = self.into_object();
        set_meta(&mut object, key, value.into());
        Self(Block::Object(object))
    }

    /// Returns the block as JSON, in the form of revision 2026-07-28.
    pub fn object(&self) -> JsonObject {
        match &self.0 {
            Block::Text(_) => JsonObject::try_from(Json::from_encode(self)).unwrap_or_default(),
            Block::Object(object) => object.clone(),
        }
    }

    pub(crate) fn into_object(self) -> JsonObject {
        match self.0 {
            Block::Text(_) => self.object(),
            Block::Object(object) => object,
        }
    }

    /// Returns the text of a text block without other members.
    pub(crate) fn plain_text(&self) -> Option<&str> {
        match &self.0 {
            Block::Text(text) => Some(text),
            Block::Object(_) => None,
        }
    }

    /// Creates an image or audio block.
    fn media_block(kind: &str, data: &[u8], mime_type: &str) -> Self {
        Self(Block::Object(JsonObject::from_iter([
            ("type", Json::string(kind)),
            ("data", encode_base64(data)),
            ("mimeType", Json::string(mime_type)),
        ])))
    }

    /// Creates a block with an embedded resource.
    fn embedded_block<const N: usize>(contents: [(&str, Json); N]) -> Self {
        Self(Block::Object(JsonObject::from_iter([
            ("type", Json::string("resource")),
            ("resource", JsonObject::from_iter(contents).into()),
        ])))
    }

    /// Sets an annotation of the block.
    fn set_annotation(self, name: &str, value: Json) -> Self {
        let mut object = self.into_object();
        let mut annotations = object_member(&object, "annotations").unwrap_or_default();
        annotations.insert(name, value);
        object.insert("annotations", annotations);
        Self(Block::Object(object))
    }
}

impl<T: AsRef<str>> From<T> for Content {
    fn from(text: T) -> Self {
        Self::text(text.as_ref())
    }
}

/// Returns the bytes as a JSON string in base64.
pub(crate) fn encode_base64(bytes: &[u8]) -> Json {
    Json::string(&STANDARD.encode(bytes))
}

/// Returns the bytes of a base64 string; `None` if the string is not valid base64.
pub(crate) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Sets an entry of the `_meta` of an object.
pub(crate) fn set_meta(object: &mut JsonObject, key: &str, value: Json) {
    let mut meta = object_member(object, "_meta").unwrap_or_default();
    meta.insert(key, value);
    object.insert("_meta", meta);
}
