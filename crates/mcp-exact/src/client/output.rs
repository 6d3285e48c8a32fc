//! Results that a client receives, in the form of the home revision.
//!
//! The types wrap the JSON of the result, so that no member that the server has sent is lost.

use mcp_exact_wire::{Decode, Defined};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::ClientError;
#[cfg(feature = "types")]
use super::typed::LazyItems;
use super::typed::result_as;
use crate::content::decode_base64;
use crate::decode::{self, Mismatch};
use crate::params::{object_member, string_member};
use crate::protocol::{Json, JsonObject, RawJson, method};

/// Bytes of an image, an audio clip or a binary resource.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Media {
    /// The decoded bytes.
    pub bytes: Vec<u8>,
    /// Media type, such as `image/png`; empty if the server states none.
    pub mime_type: String,
    /// URI of a resource; `None` for images and audio clips.
    pub uri: Option<String>,
}

impl Media {
    /// Decodes the member `data` of an object; `None` if the member is missing or is not valid base64.
    fn from_member(object: &JsonObject, data: &str) -> Option<Self> {
        Some(Self {
            bytes: decode_base64(&string_member(object, data)?)?,
            mime_type: string_member(object, "mimeType").unwrap_or_default(),
            uri: string_member(object, "uri"),
        })
    }
}

/// Result of a tool.
///
/// ```
/// # use mcp_exact::{Client, Content, Server, ToolResult};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// use mcp_exact::types::ContentBlock;
///
/// let server = Server::builder("demo", "1.0.0")
///     .tool("draw", || async {
///         ToolResult::new().content("a dot").content(Content::image([1, 2], "image/png"))
///     })
///     .build()?;
/// let client = Client::in_memory(&server).await?;
/// let output = client.call_tool("draw", &()).await?;
/// for block in output.content() {
///     match block {
///         ContentBlock::Text(text) => assert_eq!(text.text, "a dot"),
///         ContentBlock::Image(image) => assert_eq!(image.mime_type, "image/png"),
///         other => println!("{other:?}"),
///     }
/// }
/// assert_eq!(output.images()[0].bytes, [1, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The result.
    object: JsonObject,
    /// Elements of `content`.
    #[cfg(feature = "types")]
    content: LazyItems<crate::types::ContentBlock>,
}

impl ToolOutput {
    pub(super) fn new(object: JsonObject) -> Self {
        Self {
            object,
            #[cfg(feature = "types")]
            content: LazyItems::default(),
        }
    }

    /// Returns the content blocks in the types of the newest revision, whatever revision was negotiated. A block of
    /// an unknown type is `Unrecognized`. A block that violates the schema is omitted and logged;
    /// [`blocks`](Self::blocks) contains it.
    #[cfg(feature = "types")]
    pub fn content(&self) -> &[crate::types::ContentBlock] {
        self.content.decode_once(|| self.blocks())
    }

    /// Returns the result in the types of any revision, such as `mcp_2025_06_18::CallToolResult`.
    ///
    /// # Errors
    /// [`ClientError::Result`] if the result breaks the schema, or the revision cannot express it.
    pub fn typed<T: Decode + Defined>(&self) -> Result<T, ClientError> {
        result_as(method::TOOLS_CALL, &self.object)
    }

    /// Returns the decoded images; blocks without valid base64 are omitted.
    pub fn images(&self) -> Vec<Media> {
        self.media("image")
    }

    /// Returns the decoded audio clips; blocks without valid base64 are omitted.
    pub fn audio(&self) -> Vec<Media> {
        self.media("audio")
    }

    /// Returns the decoded blocks of the type `kind`.
    fn media(&self, kind: &str) -> Vec<Media> {
        let blocks = self.blocks().into_iter();
        let blocks = blocks.filter(|block| string_member(block, "type").as_deref() == Some(kind));
        blocks
            .filter_map(|block| Media::from_member(&block, "data"))
            .collect()
    }

    /// Returns true if the tool reports a failure (`isError`).
    pub fn is_error(&self) -> bool {
        self.object
            .view()
            .find("isError")
            .is_some_and(|value| value.text() == "true")
    }

    /// Returns the content blocks.
    pub fn blocks(&self) -> Vec<JsonObject> {
        let content = self.object.get("content");
        content
            .and_then(|content| content.decode_as().ok())
            .unwrap_or_default()
    }

    /// Returns the text of all text blocks, joined by line breaks; empty if the server has sent only
    /// [structured content](Self::structured). [`for_model`](Self::for_model) returns a text for every result.
    pub fn text(&self) -> String {
        joined_text(&self.blocks())
    }

    /// Returns the result as text for a model, one line or more for each content block: the text of text blocks and embedded
    /// text resources, the URI of resource links and embedded binary resources as `[resource URI]`, and only the type of other
    /// content, such as `[image, image/png]`, with the size of a block whose type MCP does not define, such as
    /// `[html, 57 bytes not shown]`. A result without text ends with its structured content as JSON. The text does
    /// not say whether the tool [failed](Self::is_error).
    ///
    /// ```
    /// # use mcp_exact::{Client, JsonObject, RawRequest, Server};
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # let server = Server::raw("clock", "1.0.0", |_: RawRequest| async {
    /// #     mcp_exact::Ok(r#"{"content":[],"structuredContent":{"hour":12}}"#.parse::<JsonObject>()?)
    /// # })
    /// # .capability("tools", JsonObject::new())
    /// # .build()?;
    /// let client = Client::in_memory(&server).await?;
    /// let output = client.call_tool("time", &()).await?;
    /// assert_eq!(output.text(), "");
    /// assert_eq!(output.for_model(), r#"{"hour":12}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_model(&self) -> String {
        let blocks = self.blocks();
        let mut lines: Vec<String> = blocks.iter().map(block_for_model).collect();
        if !blocks.iter().any(|block| block_text(block).is_some()) {
            lines.extend(self.structured().map(|structured| structured.to_string()));
        }
        lines.join("\n")
    }

    /// Returns the structured content (from 2025-06-18 on).
    pub fn structured(&self) -> Option<RawJson> {
        self.object.get("structuredContent")
    }

    /// Returns the complete result as JSON.
    pub fn object(&self) -> &JsonObject {
        &self.object
    }

    /// Decodes the structured content: if it is no `R`, and has the one member `result`, by which servers wrap values that are no
    /// objects, that member. Without structured content, decodes the text as JSON or, if the text is not
    /// JSON, as a string. A result without text decodes as the empty string or, for other types, as `null`: as `()` or
    /// `None`.
    ///
    /// # Errors
    /// [`ClientError::Tool`] if the tool reports a failure, [`ClientError::Result`] if the result cannot be decoded as
    /// `R`.
    pub fn decode<R: DeserializeOwned>(self) -> Result<R, ClientError> {
        if self.is_error() {
            return Err(ClientError::Tool(Box::new(self)));
        }
        let wrong = |error: Mismatch| ClientError::Result(error.to_string());
        if let Some(structured) = self.structured() {
            return decode::decode(&structured).or_else(|error| {
                let decoded = wrapped_result(&structured).map(|inner| decode::decode(&inner));
                decoded.and_then(Result::ok).ok_or_else(|| wrong(error))
            });
        }
        let text = self.text();
        let string = Json::string(&text);
        match text.parse::<Json>() {
            Ok(json) => decode::decode(&json)
                .or_else(|error| decode::decode(&string).map_err(|_| wrong(error))),
            Err(_) if text.is_empty() => {
                decode::decode(&string).or_else(|_| decode::decode(&Json::null()).map_err(wrong))
            }
            Err(error) => decode::decode(&string)
                .map_err(|_| ClientError::Result(format!("the text is not JSON: {error}"))),
        }
    }
}

/// Contents of a resource, the result of [`Client::read`](super::Client::read).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceOutput {
    /// The result.
    object: JsonObject,
    /// Elements of `contents`.
    items: Vec<JsonObject>,
    /// Elements of `contents`, decoded.
    #[cfg(feature = "types")]
    contents: LazyItems<crate::types::AnyResourceContents>,
}

impl ResourceOutput {
    pub(super) fn new(result: JsonObject) -> Result<Self, ClientError> {
        Ok(Self {
            items: object_list(&result, "contents")?,
            object: result,
            #[cfg(feature = "types")]
            contents: LazyItems::default(),
        })
    }

    /// Returns the contents in the types of the newest revision. An item that violates the schema is omitted and
    /// logged.
    #[cfg(feature = "types")]
    pub fn contents(&self) -> &[crate::types::AnyResourceContents] {
        self.contents.decode_once(|| self.items.clone())
    }

    /// Returns the result in the types of any revision, such as `mcp_2025_06_18::ReadResourceResult`.
    ///
    /// # Errors
    /// [`ClientError::Result`] if the result breaks the schema, or the revision cannot express it.
    pub fn typed<T: Decode + Defined>(&self) -> Result<T, ClientError> {
        result_as(method::RESOURCES_READ, &self.object)
    }

    /// Returns the complete result as JSON.
    pub fn object(&self) -> &JsonObject {
        &self.object
    }

    /// Returns the decoded binary items; items without valid base64 are omitted.
    pub fn blobs(&self) -> Vec<Media> {
        let items = self.items.iter();
        items
            .filter_map(|item| Media::from_member(item, "blob"))
            .collect()
    }

    /// Returns the content items as JSON; each of them has a `uri` and either a `text` or a `blob`.
    pub fn items(&self) -> &[JsonObject] {
        &self.items
    }

    /// Returns the text of all text items, joined by line breaks.
    pub fn text(&self) -> String {
        joined_text(&self.items)
    }

    /// Returns the bytes of the first binary item; `None` if there is no such item or it is not valid base64.
    pub fn blob(&self) -> Option<Vec<u8>> {
        let blob = self
            .items
            .iter()
            .find_map(|item| string_member(item, "blob"))?;
        decode_base64(&blob)
    }
}

/// Prompt of a server, filled in with arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptOutput {
    /// The result.
    object: JsonObject,
    /// Elements of `messages`.
    items: Vec<JsonObject>,
    /// Elements of `messages`, decoded.
    #[cfg(feature = "types")]
    messages: LazyItems<crate::types::PromptMessage>,
    /// Value of `description`.
    description: Option<String>,
}

impl PromptOutput {
    pub(super) fn new(result: JsonObject) -> Result<Self, ClientError> {
        Ok(Self {
            items: object_list(&result, "messages")?,
            description: string_member(&result, "description"),
            object: result,
            #[cfg(feature = "types")]
            messages: LazyItems::default(),
        })
    }

    /// Returns the messages in the types of the newest revision. A message that violates the schema is omitted and
    /// logged.
    #[cfg(feature = "types")]
    pub fn messages(&self) -> &[crate::types::PromptMessage] {
        self.messages.decode_once(|| self.items.clone())
    }

    /// Returns the result in the types of any revision, such as `mcp_2025_06_18::GetPromptResult`.
    ///
    /// # Errors
    /// [`ClientError::Result`] if the result breaks the schema, or the revision cannot express it.
    pub fn typed<T: Decode + Defined>(&self) -> Result<T, ClientError> {
        result_as(method::PROMPTS_GET, &self.object)
    }

    /// Returns the complete result as JSON.
    pub fn object(&self) -> &JsonObject {
        &self.object
    }

    /// Returns the messages as JSON; each of them has a `role` and a `content`.
    pub fn items(&self) -> &[JsonObject] {
        &self.items
    }

    /// Returns the description.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Returns the text of all text messages, joined by line breaks.
    pub fn text(&self) -> String {
        let contents = self.items.iter().filter_map(|message| {
            let content = message.get("content")?;
            JsonObject::try_from(content).ok()
        });
        joined_text(&contents.collect::<Vec<_>>())
    }
}

/// Suggested values of an argument (`server/utilities/completion`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompletionOutput {
    /// Suggested values, the most relevant one first.
    pub values: Vec<String>,
    /// Total number of matching values, if the server states it.
    pub total: Option<u64>,
    /// True if the server has more matching values than `values`.
    #[serde(default)]
    pub has_more: bool,
}

impl CompletionOutput {
    pub(super) fn new(result: &JsonObject) -> Result<Self, ClientError> {
        let completion = result.get("completion").unwrap_or(Json::null());
        completion
            .parse()
            .map_err(|error| ClientError::Result(error.to_string()))
    }
}

/// Returns the elements of the array member `name` of a result, which must be objects.
pub(super) fn object_list(result: &JsonObject, name: &str) -> Result<Vec<JsonObject>, ClientError> {
    let list = result.get(name).and_then(|list| list.decode_as().ok());
    list.ok_or_else(|| ClientError::Result(format!("`{name}` is not a list of objects")))
}

/// Returns the only member of an object, if its name is `result`.
fn wrapped_result(structured: &Json) -> Option<Json> {
    let object = JsonObject::try_from(structured.clone()).ok()?;
    object
        .get("result")
        .filter(|_| object.view().iter().count() == 1)
}

/// Returns the text of a text block or of an embedded text resource.
fn block_text(block: &JsonObject) -> Option<String> {
    match string_member(block, "type")?.as_str() {
        "text" => string_member(block, "text"),
        "resource" => string_member(&object_member(block, "resource")?, "text"),
        _ => None,
    }
}

/// Types of content blocks that MCP defines.
const CONTENT_TYPES: [&str; 5] = ["text", "image", "audio", "resource_link", "resource"];

/// Returns what a model reads of a content block.
fn block_for_model(block: &JsonObject) -> String {
    if let Some(text) = block_text(block) {
        return text;
    }
    let kind = string_member(block, "type").unwrap_or_else(|| "content".to_owned());
    let uri = match kind.as_str() {
        "resource_link" => string_member(block, "uri"),
        "resource" => {
            object_member(block, "resource").and_then(|resource| string_member(&resource, "uri"))
        }
        _ => None,
    };
    match (uri, string_member(block, "mimeType")) {
        (Some(uri), _) => format!("[resource {uri}]"),
        (None, Some(media_type)) => format!("[{kind}, {media_type}]"),
        (None, None) if CONTENT_TYPES.contains(&kind.as_str()) => format!("[{kind}]"),
        (None, None) => format!("[{kind}, {} bytes not shown]", block.text().len()),
    }
}

/// Returns the text of all text blocks, joined by line breaks.
fn joined_text(blocks: &[JsonObject]) -> String {
    let texts: Vec<String> = blocks
        .iter()
        .filter_map(|block| string_member(block, "text"))
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of an unknown type is shown with its type and its size.
    #[test]
    fn unknown_blocks_are_named() {
        for (block, expected) in [
            (
                r#"{"type":"html","html":"<p>"}"#,
                "[html, 28 bytes not shown]",
            ),
            (r#"{"type":"image","data":""}"#, "[image]"),
            (r#"{"html":"<p>"}"#, "[content, 14 bytes not shown]"),
        ] {
            let block: JsonObject = block.parse().expect("an object");
            assert_eq!(block_for_model(&block), expected);
        }
    }
}
