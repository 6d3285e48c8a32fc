//! Elicitation: requests data from the user in a form, or asks the user to visit a page (`client/elicitation`).
//!
//! The schema of the form is derived from a Rust type, and the answer is decoded into this type.

use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ask::{InputRequestError, InputRequestErrorKind, PendingInputRequest, key_setter};
use super::{Cx, form};
use crate::decode;
use crate::form_values;
use crate::protocol::{Json, JsonObject, method};
use crate::schema::{self, Subschemas};
use crate::visit::Visit;

/// Answer of the user to a form or a page; see [`Cx::elicit`] and [`Cx::elicit_url`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Elicited<T> {
    /// The user has submitted the form, or agreed to visit the page.
    Accepted(T),
    /// The user has declined.
    Declined,
    /// The user has closed the dialogue without an answer.
    Cancelled,
}

impl<T> Elicited<T> {
    /// Returns the data that the user has submitted; `None` if the user has declined or closed the dialogue.
    pub fn accepted(self) -> Option<T> {
        match self {
            Self::Accepted(data) => Some(data),
            Self::Declined | Self::Cancelled => None,
        }
    }

    /// Returns true if the user has submitted data that satisfies `predicate`.
    pub fn accepted_with(self, predicate: impl FnOnce(T) -> bool) -> bool {
        self.accepted().is_some_and(predicate)
    }
}

impl Cx {
    /// Asks the user to fill in a form (revisions from 2025-06-18 on).
    ///
    /// `T` is a struct whose fields are strings, numbers, booleans, enums without data, lists of such enums (from
    /// 2025-11-25 on), or options of these; doc comments become descriptions. An answer that violates the schema of the
    /// form, such as a string longer than `#[schemars(length(max = 3))]` allows, is [`InputRequestErrorKind::InvalidAnswer`]. Do not
    /// ask for secrets: use [`elicit_url`](Self::elicit_url).
    pub fn elicit<T: DeserializeOwned + JsonSchema>(&self, message: impl AsRef<str>) -> Elicit<T> {
        Elicit {
            form: Form::new(
                self,
                message.as_ref(),
                &schema::input_schema_of::<T>(Subschemas::Inlined),
            ),
            read_answer: PhantomData,
        }
    }

    /// Asks the user to visit a web page, for example for a payment or a login (revisions from 2025-11-25 on).
    ///
    /// The answer states whether the user has agreed to the visit, not whether the user has completed the page. Other
    /// people may obtain the URL, so the URL must contain no information about the user and grant no access, and the
    /// page must authenticate its visitor ("Safe URL Handling", "Phishing"). The example `third_party` obtains a
    /// credential in this way.
    pub fn elicit_url(&self, message: impl AsRef<str>, url: impl AsRef<str>) -> ElicitUrl {
        let url = url.as_ref();
        let params = Visit::new(url)
            .map_err(InputRequestErrorKind::InvalidUrl)
            .map(|_| {
                JsonObject::from_iter([
                    ("mode", Json::string("url")),
                    ("message", Json::string(message.as_ref())),
                    ("url", Json::string(url)),
                ])
            });
        ElicitUrl {
            input_request: PendingInputRequest::new(
                self,
                method::ELICITATION_CREATE,
                "elicitation.url",
                params,
            ),
        }
    }
}

/// Future of the answer to a form; see [`Cx::elicit`].
#[must_use = "futures do nothing unless they are awaited"]
pub struct Elicit<T> {
    form: Form,
    /// Marker of the type that the answer is decoded into.
    read_answer: PhantomData<fn() -> T>,
}

impl<T> Elicit<T> {
    key_setter!(form.input_request, "elicitation-1");

    /// Sets the time limit for the user's answer. By default, only the time limit of the client's request applies.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.form.input_request.set_timeout(limit);
        self
    }
}

impl<T: DeserializeOwned> Future for Elicit<T> {
    type Output = Result<Elicited<T>, InputRequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(match ready!(self.form.poll(cx))? {
            Elicited::Accepted(content) => match decode::decode(&content) {
                Ok(content) => Elicited::Accepted(content),
                Err(mismatch) => return Poll::Ready(Err(wrong_answer(mismatch.to_string()))),
            },
            Elicited::Declined => Elicited::Declined,
            Elicited::Cancelled => Elicited::Cancelled,
        }))
    }
}

/// Input request of a form, without the type that its values are decoded into.
struct Form {
    input_request: PendingInputRequest,
    /// Schema of the form, which the answer is validated against.
    schema: Value,
}

impl Form {
    fn new(cx: &Cx, message: &str, type_schema: &Value) -> Self {
        let schema = form::form_of_object(type_schema).map(Value::Object);
        let params = match &schema {
            Ok(schema) => Ok(JsonObject::from_iter([
                ("mode", Json::string("form")),
                ("message", Json::string(message)),
                ("requestedSchema", Json::from(schema.clone())),
            ])),
            Err(error) => Err(InputRequestErrorKind::UnsupportedForm(error.clone())),
        };
        Self {
            input_request: PendingInputRequest::new(
                cx,
                method::ELICITATION_CREATE,
                "elicitation.form",
                params,
            ),
            schema: schema.unwrap_or_default(),
        }
    }

    /// Polls for the answer, without decoding its values.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Elicited<Json>, InputRequestError>> {
        let result = ready!(Pin::new(&mut self.input_request).poll(cx))?;
        Poll::Ready(submitted_content(&result, &self.schema).map_err(wrong_answer))
    }
}

/// Returns the error for an answer that does not have the requested form.
fn wrong_answer(reason: String) -> InputRequestError {
    InputRequestError::new(
        method::ELICITATION_CREATE,
        InputRequestErrorKind::InvalidAnswer(reason),
    )
}

/// Future of the user's consent to a visit; see [`Cx::elicit_url`].
#[must_use = "futures do nothing unless they are awaited"]
pub struct ElicitUrl {
    input_request: PendingInputRequest,
}

impl ElicitUrl {
    key_setter!(input_request, "elicitation-1");

    /// Sets the time limit for the user's consent.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.input_request.set_timeout(limit);
        self
    }
}

impl Future for ElicitUrl {
    type Output = Result<Elicited<()>, InputRequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(Pin::new(&mut self.input_request).poll(cx))?;
        Poll::Ready(user_action(&result).map_err(wrong_answer))
    }
}

/// Returns the values that the user has submitted, after validation against the schema of the form.
fn submitted_content(result: &JsonObject, schema: &Value) -> Result<Elicited<Json>, String> {
    match user_action(result)? {
        Elicited::Accepted(()) => {
            let content = result
                .get("content")
                .unwrap_or_else(|| JsonObject::new().into());
            let values = decode::to_value(&content).map_err(|error| error.to_string())?;
            match form_values::form_violation(schema, &values) {
                Some(problem) => Err(problem),
                None => Ok(Elicited::Accepted(content)),
            }
        }
        Elicited::Declined => Ok(Elicited::Declined),
        Elicited::Cancelled => Ok(Elicited::Cancelled),
    }
}

/// Returns the `action` of an elicitation result, without its content.
fn user_action(result: &JsonObject) -> Result<Elicited<()>, String> {
    let action = result.get("action");
    match action.as_ref().map(Json::text) {
        Some("\"accept\"") => Ok(Elicited::Accepted(())),
        Some("\"decline\"") => Ok(Elicited::Declined),
        Some("\"cancel\"") => Ok(Elicited::Cancelled),
        Some(other) => Err(format!("the action {other} is unknown")),
        None => Err("it has no action".to_owned()),
    }
}
