//! Ends of requests: results as they stand in messages, errors, and the other ends.
//!
//! Plain data; a result is decoded only when the program asks.

use mcp_exact_wire::{
    Decode, DecodeError, Encode, EncodeParams, Json, JsonObject, JsonRef, Request, from_str,
};

use crate::error::{PeerError, SendError};
use crate::message::{Body, KindPlace};
use crate::rules::results::RESULT_TYPE;

/// Result of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sent {
    /// It is queued.
    Queued,
    /// Nobody wants it: the request was cancelled, has no progress token, or the level is too low.
    Suppressed,
    /// Too much waits to be sent already.
    Dropped,
}

/// End of a request of the local peer. Each one ends exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With a result.
    Result(RawResult),
    /// With an error.
    Error(PeerError),
    /// No answer came in time. The peer was asked to stop, unless the request never left, or is one that no notification cancels:
    /// `initialize`, or a task (2025-11-25).
    TimedOut,
    /// The program has cancelled it.
    Cancelled,
    /// The stream was lost before an answer came. The peer may have done the work.
    Lost,
    /// The program closed the session.
    Closed,
}

/// A result as raw JSON.
#[derive(Debug, Clone)]
pub struct RawResult {
    object: JsonObject,
    retries: u32,
    /// Position of the member that names its kind, if the result was received.
    kind: Option<KindPlace>,
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

    /// Returns the result as an untyped object.
    pub fn into_object(self) -> JsonObject {
        self.object
    }

    /// Number of times that a client has repeated the request with input before this result came (2026-07-28,
    /// `basic/patterns/mrtr`). Such a result is never kept for another request.
    pub fn retries(&self) -> u32 {
        self.retries
    }

    /// A result that the peer has sent.
    pub(crate) fn received(body: Body) -> Self {
        let (object, kind) = body.into_parts();
        Self {
            object,
            retries: 0,
            kind: Some(kind),
        }
    }

    /// The member that tells the kind of the result.
    pub(crate) fn kind(&self) -> Option<JsonRef<'_>> {
        match &self.kind {
            Some(place) => place.value(&self.object),
            None => self.object.view().find(RESULT_TYPE),
        }
    }

    pub(crate) fn with_retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Makes a result of a generated type.
    ///
    /// # Errors
    /// [`SendError::Params`] if the value is no object.
    pub fn of<T: Encode + ?Sized>(value: &T) -> Result<Self, SendError> {
        let object = JsonObject::try_from(Json::from_encode(value));
        object.map(Self::from).map_err(|_| SendError::Params {
            method: "result".to_owned(),
            reason: "they have to be an object".to_owned(),
        })
    }

    /// Decodes the result of the request `Q`, whose revision is the negotiated one.
    ///
    /// # Errors
    /// [`DecodeError`] if it does not fit.
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

/// Encodes parameters of a generated type; `None` for none.
pub(crate) fn encode_params<P: EncodeParams + ?Sized>(
    method: &str,
    params: &P,
) -> Result<Option<JsonObject>, SendError> {
    let Some(text) = params.encode_params() else {
        return Ok(None);
    };
    let params = from_str(&text).map_err(|_| SendError::Params {
        method: method.to_owned(),
        reason: "they have to be an object".to_owned(),
    });
    params.map(Some)
}
