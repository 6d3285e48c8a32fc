//! Results that a client receives, in the form of the home revision.
//!
//! The types wrap the JSON of the result, so that no member that the server has sent is lost.

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::ClientError;
use crate::content::decode_base64;
use crate::decode::{self, Mismatch};
use crate::link::{Json, JsonObject};

/// Result of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput(JsonObject);

impl ToolOutput {
    pub(super) fn new(result: JsonObject) -> Self {
        Self(result)
    }

    /// Returns true if the tool reports a failure (`isError`).
    pub fn is_error(&self) -> bool {
        self.0
            .view()
            .find("isError")
            .is_some_and(|value| value.text() == "true")
    }

    /// Returns the content blocks.
    pub fn blocks(&self) -> Vec<JsonObject> {
        let content = self.0.get("content");
        content
            .and_then(|content| content.decode_as().ok())
            .unwrap_or_default()
    }

    /// Returns the text of all text blocks, joined by line breaks.
    pub fn text(&self) -> String {
        joined_text(&self.blocks())
    }

    /// Returns the structured content (from 2025-06-18 on).
    pub fn structured(&self) -> Option<Json> {
        self.0.get("structuredContent")
    }

    /// Returns the complete result as JSON.
    pub fn object(&self) -> &JsonObject {
        &self.0
    }

    /// Decodes the structured content. Without structured content, decodes the text as JSON or, if the text is not
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
            return decode::decode(&structured).map_err(wrong);
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
                .map_err(|_| ClientError::Result(format!("the text is no JSON: {error}"))),
        }
    }
}

/// Contents of a resource, the result of [`Client::read`](super::Client::read).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceOutput {
    /// Elements of `contents`.
    items: Vec<JsonObject>,
}

impl ResourceOutput {
    pub(super) fn new(result: &JsonObject) -> Result<Self, ClientError> {
        Ok(Self {
            items: object_list(result, "contents")?,
        })
    }

    /// Returns the content items; each of them has a `uri` and either a `text` or a `blob`.
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
            .find_map(|item| block_text(item, "blob"))?;
        decode_base64(&blob)
    }
}

/// Prompt of a server, filled in with arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptOutput {
    /// Elements of `messages`.
    messages: Vec<JsonObject>,
    /// Value of `description`.
    description: Option<String>,
}

impl PromptOutput {
    pub(super) fn new(result: &JsonObject) -> Result<Self, ClientError> {
        Ok(Self {
            messages: object_list(result, "messages")?,
            description: block_text(result, "description"),
        })
    }

    /// Returns the messages; each of them has a `role` and a `content`.
    pub fn messages(&self) -> &[JsonObject] {
        &self.messages
    }

    /// Returns the description.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Returns the text of all text messages, joined by line breaks.
    pub fn text(&self) -> String {
        let contents = self.messages.iter().filter_map(|message| {
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
fn object_list(result: &JsonObject, name: &str) -> Result<Vec<JsonObject>, ClientError> {
    let list = result.get(name).and_then(|list| list.decode_as().ok());
    list.ok_or_else(|| ClientError::Result(format!("`{name}` is no list of objects")))
}

/// Returns the value of the member `name`; `None` if the member is missing or is not a string.
fn block_text(object: &JsonObject, name: &str) -> Option<String> {
    object
        .view()
        .find(name)?
        .as_str()
        .map(std::borrow::Cow::into_owned)
}

/// Returns the text of all text blocks, joined by line breaks.
fn joined_text(blocks: &[JsonObject]) -> String {
    let texts: Vec<String> = blocks
        .iter()
        .filter_map(|block| block_text(block, "text"))
        .collect();
    texts.join("\n")
}
