//! Sampling: requests a message from the client's model (`client/sampling`).
//!
//! The returned message has the same form in every revision.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::Cx;
use super::ask::{InputRequestError, InputRequestErrorKind, PendingInputRequest, key_setter};
use crate::annotations::{Role, to_json_number};
use crate::content::Content;
use crate::params::string_member;
use crate::protocol::{Json, JsonObject, RawJson, method};

/// Request for a message of the client's model.
///
/// ```
/// use mcp_exact::Sample;
/// let sample = Sample::new("What is the capital of France?", 100).system("Answer in one word.").temperature(0.0);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Messages of the conversation, in the form of the home revision.
    messages: Vec<JsonObject>,
    /// Params other than `messages`, by name.
    params: JsonObject,
}

impl Sample {
    /// Creates a request with one user message and the maximum number of tokens.
    pub fn new(message: impl Into<Content>, max_tokens: u32) -> Self {
        let sample = Self {
            messages: Vec::new(),
            params: JsonObject::from_iter([("maxTokens", u64::from(max_tokens))]),
        };
        sample.message(Role::User, message)
    }

    /// Adds a message to the conversation.
    #[must_use]
    pub fn message(mut self, role: Role, content: impl Into<Content>) -> Self {
        self.messages.push(JsonObject::from_iter([
            ("role", Json::string(role.name())),
            ("content", content.into().into_object().into()),
        ]));
        self
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn system(self, prompt: &str) -> Self {
        self.set_param("systemPrompt", Json::string(prompt))
    }

    /// Sets the temperature.
    #[must_use]
    pub fn temperature(self, temperature: f64) -> Self {
        self.set_param("temperature", to_json_number(temperature))
    }

    /// Sets the stop sequences, at which the model ends the message.
    #[must_use]
    pub fn stop_sequences(self, sequences: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let sequences: Vec<String> = sequences.into_iter().map(Into::into).collect();
        self.set_param("stopSequences", Json::from_encode(&sequences))
    }

    /// Sets a member of the parameters by its name in revision 2026-07-28, such as `modelPreferences` or `tools`.
    #[must_use]
    pub fn set_param(mut self, name: &str, value: impl Into<RawJson>) -> Self {
        self.params.insert(name, value);
        self
    }

    /// Returns the params of `sampling/createMessage`.
    fn params(&self) -> JsonObject {
        let mut params = self.params.clone();
        params.insert("messages", Json::from_encode(&self.messages));
        params
    }
}

/// Message of the client's model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampled {
    /// Result of `sampling/createMessage`.
    result: JsonObject,
}

impl Sampled {
    /// Returns the text of the message; several text blocks are joined by line breaks.
    pub fn text(&self) -> String {
        let texts = self.blocks().into_iter().filter_map(|block| {
            let text = block.view().find("text")?.as_str()?.into_owned();
            Some(text)
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the content blocks of the message.
    pub fn blocks(&self) -> Vec<JsonObject> {
        let content = self.result.get("content").unwrap_or(Json::null());
        match JsonObject::try_from(content) {
            Ok(block) => vec![block],
            Err(list) => list.decode_as().unwrap_or_default(),
        }
    }

    /// Returns the name of the model.
    pub fn model(&self) -> Option<String> {
        string_member(&self.result, "model")
    }

    /// Returns the reason why the message ended (`stopReason`).
    pub fn stop_reason(&self) -> Option<String> {
        string_member(&self.result, "stopReason")
    }

    /// Returns the complete result, in the form of revision 2026-07-28.
    pub fn object(&self) -> &JsonObject {
        &self.result
    }
}

impl Cx {
    /// Requests a message from the client's model. Clients of every revision can support sampling.
    pub fn sample(&self, sample: &Sample) -> SamplingRequest {
        let params = sample.params();
        let with_tools = params.get("tools").or_else(|| params.get("toolChoice"));
        let capability = match with_tools {
            Some(_) => "sampling.tools",
            None => "sampling",
        };
        SamplingRequest {
            input_request: PendingInputRequest::new(
                self,
                method::SAMPLING_CREATE_MESSAGE,
                capability,
                Ok(params),
            ),
        }
    }
}

/// Future of a message of the client's model; see [`Cx::sample`].
#[must_use = "futures do nothing unless they are awaited"]
pub struct SamplingRequest {
    input_request: PendingInputRequest,
}

impl SamplingRequest {
    key_setter!(input_request, "sampling-1");

    /// Sets the time limit for the client's answer.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.input_request.set_timeout(limit);
        self
    }
}

impl Future for SamplingRequest {
    type Output = Result<Sampled, InputRequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.input_request).poll(cx))?;
        Poll::Ready(match result.get("content") {
            Some(_) => Ok(Sampled { result }),
            None => {
                let reason = "it has no content".to_owned();
                Err(InputRequestError::new(
                    method::SAMPLING_CREATE_MESSAGE,
                    InputRequestErrorKind::InvalidAnswer(reason),
                ))
            }
        })
    }
}
