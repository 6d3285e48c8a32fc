//! Results of handlers: the types that they may return, and their conversion to the home revision.
//!
//! Strings, content blocks, structured values and errors are converted to result objects, independently of the
//! negotiated revision.

use mcp_exact_wire::Writer;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::annotations::Role;
use crate::content::{Content, encode_base64};
use crate::error::{BoxError, Error};
use crate::protocol::{self, Encode, JsonObject, RawJson};
use crate::schema;

/// Result of a handler that becomes a reply of the kind `O`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a handler that gives `{O}`",
    label = "no result",
    note = "return a `String`, a `Json<T>` with `T: Serialize + JsonSchema`, `{O}` itself, or a `Result` of one of these whose error is a `std::error::Error` or `mcp_exact::Error`",
    note = "a tool may return a number or a `bool` as well"
)]
pub trait IntoReply<O> {
    /// Converts the result.
    ///
    /// # Errors
    /// The error of the handler, or the reason why the result cannot be sent.
    fn into_reply(self) -> Result<O, Error>;

    /// Returns the schema of the structured result; `None` if results of the type have no structured content.
    fn output_schema() -> Option<Value> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<O, T: IntoReply<O>, E: Into<BoxError>> IntoReply<O> for Result<T, E> {
    fn into_reply(self) -> Result<O, Error> {
        self.map_err(Error::into_boxed)?.into_reply()
    }

    fn output_schema() -> Option<Value> {
        T::output_schema()
    }
}

/// Structured result: `structuredContent` from 2025-06-18 on, with a text block of the same JSON for every revision.
///
/// For a tool, the type also defines the output schema. For a resource, the media type of the contents is
/// `application/json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// Serialises a value as JSON.
fn to_json_value<T: Serialize>(value: &T) -> Result<protocol::Json, Error> {
    protocol::Json::from_serialize(value).map_err(Error::from)
}

/// Result of a tool (section `server/tools`, "Tool Result").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolResult {
    pub(crate) content: Vec<Content>,
    pub(crate) structured: Option<protocol::Json>,
    pub(crate) is_error: bool,
    meta: Option<JsonObject>,
}

impl ToolResult {
    /// Creates an empty result.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a result that reports an error to the model (`isError`).
    pub fn error(message: impl AsRef<str>) -> Self {
        Self {
            is_error: true,
            ..Self::of(Content::text(message.as_ref()))
        }
    }

    /// Adds a content block.
    #[must_use]
    pub fn content(mut self, block: impl Into<Content>) -> Self {
        self.content.push(block.into());
        self
    }

    /// Sets the structured content. If the result has no content block when it is sent, a text block with the same JSON
    /// is added.
    #[must_use]
    pub fn structured(mut self, value: impl Into<RawJson>) -> Self {
        self.structured = Some(value.into());
        self
    }

    /// Sets an entry of the result's `_meta`.
    #[must_use]
    pub fn meta(mut self, key: &str, value: impl Into<RawJson>) -> Self {
        self.meta
            .get_or_insert_with(JsonObject::new)
            .insert(key, value.into());
        self
    }

    /// Creates a result with one content block.
    fn of(block: Content) -> Self {
        Self {
            content: vec![block],
            ..Self::new()
        }
    }

    /// Returns the text of a result that consists of one text block.
    fn single_text(&self) -> Option<&str> {
        match &*self.content {
            [block] if self.is_plain() && !self.is_error => block.plain_text(),
            _ => None,
        }
    }

    /// Returns true if the result consists of plain text only, which has the same form in every revision.
    pub(crate) fn is_plain(&self) -> bool {
        self.structured.is_none()
            && self.meta.is_none()
            && self
                .content
                .iter()
                .all(|block| block.plain_text().is_some())
    }

    /// Returns the result object, with a text block for structured content if there is no other content block.
    pub(crate) fn object(mut self) -> JsonObject {
        if let Some(text) = self.single_text() {
            // Most results are one text, so it is written without intermediate values.
            let before = r#"{"content":[{"type":"text","text":"#;
            return JsonObject::from_checked_parts(before, text, "}]}");
        }
        if let Some(structured) = &self.structured
            && self.content.is_empty()
        {
            // "a tool that returns structured content SHOULD also return the serialized JSON in a TextContent block"
            // (`server/tools`, "Structured Content").
            self.content.push(Content::text(structured.text()));
        }
        let written = protocol::Json::from_encode(&CompleteResult(self));
        JsonObject::try_from(written).unwrap_or_default()
    }
}

/// Encoder of a tool result, which writes the content blocks of the result without adding any.
struct CompleteResult(ToolResult);

impl Encode for CompleteResult {
    fn encode(&self, w: &mut Writer<'_>) {
        let result = &self.0;
        w.put(r#"{"content":["#);
        for (at, block) in result.content.iter().enumerate() {
            if at > 0 {
                w.put(",");
            }
            block.encode(w);
        }
        w.put("]");
        if let Some(structured) = &result.structured {
            w.put(r#","structuredContent":"#);
            structured.encode(w);
        }
        if result.is_error {
            w.put(r#","isError":true"#);
        }
        if let Some(meta) = &result.meta {
            w.put(r#","_meta":"#);
            meta.encode(w);
        }
        w.put("}");
    }
}

impl IntoReply<Self> for ToolResult {
    fn into_reply(self) -> Result<Self, Error> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + JsonSchema> IntoReply<ToolResult> for Json<T> {
    fn into_reply(self) -> Result<ToolResult, Error> {
        Ok(ToolResult::new().structured(to_json_value(&self.0)?))
    }

    fn output_schema() -> Option<Value> {
        Some(schema::output_schema_of::<T>())
    }
}

/// Implements [`IntoReply`] for numbers and booleans, whose results are text.
macro_rules! impl_values {
    ($($value:ty)*) => {
        $(
            /// Converts the value to a text block.
            impl IntoReply<ToolResult> for $value {
                fn into_reply(self) -> Result<ToolResult, Error> {
                    Ok(ToolResult::of(Content::text(self.to_string())))
                }
            }
        )*
    };
}

impl_values!(bool u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

impl IntoReply<ToolResult> for () {
    fn into_reply(self) -> Result<ToolResult, Error> {
        Ok(ToolResult::new())
    }
}

impl IntoReply<ToolResult> for Vec<Content> {
    fn into_reply(self) -> Result<ToolResult, Error> {
        Ok(ToolResult {
            content: self,
            ..ToolResult::new()
        })
    }
}

/// Implements [`IntoReply`] for types whose results are text.
macro_rules! impl_texts {
    ($($text:ty),*) => {
        $(
            impl IntoReply<ToolResult> for $text {
                fn into_reply(self) -> Result<ToolResult, Error> {
                    Ok(ToolResult::of(Content::text(self)))
                }
            }

            impl IntoReply<PromptResult> for $text {
                fn into_reply(self) -> Result<PromptResult, Error> {
                    Ok(PromptResult::user(self))
                }
            }

            impl IntoReply<Contents> for $text {
                fn into_reply(self) -> Result<Contents, Error> {
                    Ok(Contents::text(self))
                }
            }
        )*
    };
}

impl_texts!(String, &'static str, std::borrow::Cow<'static, str>);

impl IntoReply<ToolResult> for Content {
    fn into_reply(self) -> Result<ToolResult, Error> {
        Ok(ToolResult::of(self))
    }
}

/// Result of a prompt: its messages (section `server/prompts`, "PromptMessage").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptResult {
    description: Option<String>,
    messages: Vec<JsonObject>,
}

impl PromptResult {
    /// Creates a prompt without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a prompt with one message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new().message(Role::User, content)
    }

    /// Adds a message.
    #[must_use]
    pub fn message(mut self, role: Role, content: impl Into<Content>) -> Self {
        self.messages.push(JsonObject::from_iter([
            ("role", protocol::Json::string(role.name())),
            ("content", content.into().into_object().into()),
        ]));
        self
    }

    /// Sets the description of the prompt.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Returns the result object of `prompts/get`.
    pub(crate) fn object(self) -> JsonObject {
        let mut object =
            JsonObject::from_iter([("messages", protocol::Json::from_encode(&self.messages))]);
        if let Some(description) = &self.description {
            object.insert("description", protocol::Json::string(description));
        }
        object
    }
}

impl IntoReply<Self> for PromptResult {
    fn into_reply(self) -> Result<Self, Error> {
        Ok(self)
    }
}

/// Contents of a resource (section `server/resources`, "Reading Resources").
///
/// By default, the items have the URI of the request and the media type of the definition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Items of the contents.
    items: Vec<ContentItem>,
    /// Time for which the client may cache the contents, in milliseconds.
    ttl_ms: Option<u64>,
}

/// One item of the contents of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ContentItem {
    /// URI; `None` for the URI of the request.
    uri: Option<String>,
    /// Media type; `None` for that of the definition.
    mime_type: Option<String>,
    /// Contents of the item.
    data: ItemData,
    /// Value of `_meta`; not sent if empty.
    meta: JsonObject,
}

/// Text or bytes of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ItemData {
    Text(String),
    Blob(Vec<u8>),
}

impl Contents {
    /// Creates contents without items.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates contents with one text item.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().push_item(ItemData::Text(text.into()))
    }

    /// Creates contents with one binary item.
    pub fn blob(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new().push_item(ItemData::Blob(bytes.into()))
    }

    /// Adds a text item. [`uri`](Self::uri) and the other setters change the item that was added last.
    #[must_use]
    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.push_item(ItemData::Text(text.into()))
    }

    /// Adds a binary item.
    #[must_use]
    pub fn and_blob(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.push_item(ItemData::Blob(bytes.into()))
    }

    /// Sets the URI of the item that was added last, such as the URI of a file in a directory that was read.
    #[must_use]
    pub fn uri(mut self, uri: impl Into<String>) -> Self {
        if let Some(item) = self.items.last_mut() {
            item.uri = Some(uri.into());
        }
        self
    }

    /// Sets the media type of the item that was added last.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        if let Some(item) = self.items.last_mut() {
            item.mime_type = Some(mime_type.into());
        }
        self
    }

    /// Sets an entry of `_meta` of the item that was added last.
    #[must_use]
    pub fn meta(mut self, key: &str, value: impl Into<RawJson>) -> Self {
        if let Some(item) = self.items.last_mut() {
            item.meta.insert(key, value.into());
        }
        self
    }

    /// Sets the time for which the client may cache the contents, in milliseconds (from 2026-07-28 on).
    #[must_use]
    pub fn ttl_ms(mut self, ttl_ms: u64) -> Self {
        self.ttl_ms = Some(ttl_ms);
        self
    }

    /// Adds an item without URI, media type and `_meta`.
    fn push_item(mut self, data: ItemData) -> Self {
        self.items.push(ContentItem {
            uri: None,
            mime_type: None,
            data,
            meta: JsonObject::new(),
        });
        self
    }

    /// Returns the result object of `resources/read`; `uri` and `mime_type` apply to items that set none.
    pub(crate) fn object(self, uri: &str, mime_type: Option<&str>) -> JsonObject {
        let items = self.items.into_iter().map(|item| {
            let uri = item.uri.as_deref().unwrap_or(uri);
            let mut object = JsonObject::from_iter([("uri", protocol::Json::string(uri))]);
            if let Some(mime_type) = item.mime_type.as_deref().or(mime_type) {
                object.insert("mimeType", protocol::Json::string(mime_type));
            }
            match &item.data {
                ItemData::Text(text) => object.insert("text", protocol::Json::string(text)),
                ItemData::Blob(bytes) => object.insert("blob", encode_base64(bytes)),
            }
            if !item.meta.is_empty() {
                object.insert("_meta", item.meta);
            }
            object
        });
        let items: Vec<JsonObject> = items.collect();
        let mut object = JsonObject::from_iter([("contents", protocol::Json::from_encode(&items))]);
        if let Some(ttl_ms) = self.ttl_ms {
            object.insert("ttlMs", ttl_ms);
        }
        object
    }
}

impl IntoReply<Self> for Contents {
    fn into_reply(self) -> Result<Self, Error> {
        Ok(self)
    }
}

impl IntoReply<Contents> for Vec<u8> {
    fn into_reply(self) -> Result<Contents, Error> {
        Ok(Contents::blob(self))
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> IntoReply<Contents> for Json<T> {
    fn into_reply(self) -> Result<Contents, Error> {
        Ok(Contents::text(to_json_value(&self.0)?.text()).mime_type("application/json"))
    }
}

/// Suggested values of an argument (section `server/utilities/completion`).
///
/// A result has at most 100 values. Further values are omitted; `hasMore` is then set and `total` is the number of all
/// values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completions {
    values: Vec<String>,
    total: Option<usize>,
}

impl Completions {
    /// Creates suggestions; `values` are in descending order of relevance.
    pub fn new(values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            values: values.into_iter().map(Into::into).collect(),
            total: None,
        }
    }

    /// Sets the total number of matching values, if it exceeds the number of suggested values.
    #[must_use]
    pub fn total(mut self, total: usize) -> Self {
        self.total = Some(total);
        self
    }

    /// Returns the result object of `completion/complete`.
    pub(crate) fn object(mut self) -> JsonObject {
        /// Maximum number of values in a result.
        const MAX_VALUES: usize = 100;
        let total = self.total.unwrap_or(self.values.len());
        self.values.truncate(MAX_VALUES);
        let has_more = total > self.values.len();
        let completion = JsonObject::from_iter([
            ("values", protocol::Json::from_encode(&self.values)),
            (
                "total",
                protocol::Json::from(u64::try_from(total).unwrap_or(u64::MAX)),
            ),
            ("hasMore", has_more.into()),
        ]);
        JsonObject::from_iter([("completion", completion)])
    }
}

impl IntoReply<Self> for Completions {
    fn into_reply(self) -> Result<Self, Error> {
        Ok(self)
    }
}

impl IntoReply<Completions> for Vec<String> {
    fn into_reply(self) -> Result<Completions, Error> {
        Ok(Completions::new(self))
    }
}

/// Result of a vendor's method, sent unchanged.
impl IntoReply<Self> for JsonObject {
    fn into_reply(self) -> Result<Self, Error> {
        Ok(self)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Serialize> IntoReply<JsonObject> for Json<T> {
    fn into_reply(self) -> Result<JsonObject, Error> {
        let no_object = |_| Error::msg("the result of a method must be an object; return a struct");
        JsonObject::try_from(to_json_value(&self.0)?).map_err(no_object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text result has the same members whether it is written at once or block by block ("Text Content",
    /// `server/tools`).
    #[test]
    fn text_results_are_complete() {
        let check = |result: ToolResult, expected: &str| {
            assert_eq!(result.object().text(), expected);
        };
        let text = "a \"b\"\n";
        let block = r#"{"type":"text","text":"a \"b\"\n"}"#;
        let one = format!(r#"{{"content":[{block}]}}"#);
        check(ToolResult::of(Content::text(text)), &one);
        check(ToolResult::new().content(text), &one);
        let two = format!(r#"{{"content":[{block},{block}]}}"#);
        check(ToolResult::new().content(text).content(text), &two);
        let error = format!(r#"{{"content":[{block}],"isError":true}}"#);
        check(ToolResult::error(text), &error);
        let with_meta = format!(r#"{{"content":[{block}],"_meta":{{"n":true}}}}"#);
        check(ToolResult::new().content(text).meta("n", true), &with_meta);
        let structured = format!(r#"{{"content":[{block}],"structuredContent":true}}"#);
        check(
            ToolResult::new().content(text).structured(true),
            &structured,
        );
        check(ToolResult::new(), r#"{"content":[]}"#);
    }
}
