//! Outcomes of requests: raw results, errors, timeouts, cancellations and losses.
//!
//! The types are plain data; a result is decoded only when the application requests the decoding.

use mcp_exact_wire::{
    Decode, DecodeError, Encode, EncodeParams, Json, JsonObject, JsonRef, Request, from_str,
};

use crate::error::{PeerError, SendError};
use crate::message::{Body, KindPosition};
use crate::rules::results::RESULT_TYPE;

/// Result of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SendOutcome {
    /// The message is queued.
    Queued,
    /// The message was not sent because it is not needed: the request was cancelled or has no progress token, or the
    /// log level is too low.
    Suppressed,
    /// The message was not sent because the queue limit is reached.
    Dropped,
}

/// Outcome of a request of the local peer. Each request ends exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The request ended with a result.
    Result(RawResult),
    /// The request ended with an error.
    Error(PeerError),
    /// No answer was received in time.
    ///
    /// The remote peer was notified of the cancellation, unless the request was never sent or cannot be cancelled by a
    /// notification (`initialize`, and tasks of 2025-11-25).
    TimedOut,
    /// The application has cancelled the request.
    Cancelled,
    /// The stream was lost before an answer was received. The remote peer may have executed the request.
    Lost,
    /// The application closed the session.
    Closed,
}

/// A result as raw JSON.
#[derive(Debug, Clone)]
pub struct RawResult {
    /// The result as a JSON object.
    object: JsonObject,
    /// Number of retries with input before the result.
    retries: u32,
    /// Position of the `resultType` member, if the result was received.
    kind: Option<KindPosition>,
}

impl PartialEq for RawResult {
    fn eq(&self, other: &Self) -> bool {
        self.object == other.object && self.retries == other.retries
    }
}

impl Eq for RawResult {}

impl RawResult {
    /// Returns the result as an untyped object.
    pub fn object(&self) -> &JsonObject {
        &self.object
    }

    /// Converts the result into an untyped object.
    pub fn into_object(self) -> JsonObject {
        self.object
    }

    /// Returns the number of retries with input before this result was received (2026-07-28, `basic/patterns/mrtr`).
    ///
    /// A result after a retry must not be cached for other requests.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// Creates a result from a received message.
    pub(crate) fn received(body: Body) -> Self {
        let (object, kind) = body.into_parts();
        Self {
            object,
            retries: 0,
            kind: Some(kind),
        }
    }

    /// Returns the `resultType` member of the result.
    pub(crate) fn kind(&self) -> Option<JsonRef<'_>> {
        match &self.kind {
            Some(place) => place.value(&self.object),
            None => self.object.view().find(RESULT_TYPE),
        }
    }

    /// Sets the number of retries.
    pub(crate) fn with_retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Creates a result from a value of a generated type.
    ///
    /// # Errors
    /// [`SendError::Params`] if the value is not an object.
    pub fn from_typed<T: Encode + ?Sized>(value: &T) -> Result<Self, SendError> {
        let object = JsonObject::try_from(Json::from_encode(value));
        object.map(Self::from).map_err(|_| SendError::Params {
            method: "result".to_owned(),
            reason: "they must be an object".to_owned(),
        })
    }

    /// Decodes the result of the request `Q` of the negotiated revision.
    ///
    /// # Errors
    ///
    /// [`DecodeError`] if the result does not match the type.
    pub fn decode_as<Q: Request>(&self) -> Result<Q::Result, DecodeError>
    where
        Q::Result: Decode,
    {
        self.object.as_json().decode_as()
    }
}

impl From<JsonObject> for RawResult {
    fn from(object: JsonObject) -> Self {
        Self {
            object,
            retries: 0,
            kind: None,
        }
    }
}

/// Encodes parameters of a generated type; `None` if the request has no parameters.
pub(crate) fn encode_params<P: EncodeParams + ?Sized>(
    method: &str,
    params: &P,
) -> Result<Option<JsonObject>, SendError> {
    let Some(text) = params.encode_params() else {
        return Ok(None);
    };
    let params = from_str(&text).map_err(|_| SendError::Params {
        method: method.to_owned(),
        reason: "they must be an object".to_owned(),
    });
    params.map(Some)
}
