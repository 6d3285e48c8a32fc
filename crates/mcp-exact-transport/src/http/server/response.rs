//! Responses of the server: JSON, errors, event streams.
//!
//! The functions only build responses; the callers choose the response to send.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use mcp_exact_session::PeerError;

use super::body::EventStream;
use super::metrics::Counters;
use super::shares::{FREE_BYTES, Reached, Unread};
use crate::endpoint::request_id;
use crate::http::{EVENT_STREAM, JSON};

/// Response that rejects a request.
pub(super) type Refusal = Box<Response<ResponseBody>>;

/// Body of a response of [`HttpService`](super::HttpService): complete bytes or an event stream.
pub struct ResponseBody {
    /// Content of the body.
    kind: Kind,
    /// Counters to which the bytes are added while they are sent.
    counters: Option<Arc<Counters>>,
    /// Where the bytes of an event stream count until they are written.
    unread: Option<Unread>,
}

/// Content of a response body.
enum Kind {
    /// Complete content; `None` if it is empty or was already sent.
    Whole(Option<Bytes>),
    /// An event stream.
    Events(Box<EventStream>),
}

impl ResponseBody {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            counters: None,
            unread: None,
        }
    }

    /// Creates a body without content.
    pub(super) fn empty() -> Self {
        Self::new(Kind::Whole(None))
    }

    /// Creates a body that consists of one message.
    pub(super) fn single_message(bytes: Bytes) -> Self {
        Self::new(Kind::Whole(Some(bytes)))
    }

    /// Sets the counters to which the bytes of this body are added while they are sent.
    pub(super) fn count(&mut self, counters: &Arc<Counters>) {
        self.counters = Some(Arc::clone(counters));
    }

    /// Returns true if the body is so small that it is not counted as unread.
    pub(super) fn is_small(&self) -> bool {
        match &self.kind {
            Kind::Whole(whole) => whole.as_ref().is_none_or(|bytes| bytes.len() <= FREE_BYTES),
            Kind::Events(_) => false,
        }
    }

    /// Counts the bytes of this body as unread until they are written.
    pub(super) fn count_unread(&mut self, unread: Unread) -> Result<(), Reached> {
        match &mut self.kind {
            Kind::Whole(whole) => {
                *whole = whole.take().map(|bytes| unread.count(bytes)).transpose()?
            }
            Kind::Events(_) => self.unread = Some(unread),
        }
        Ok(())
    }

    /// Returns the next bytes of the body; `None` at its end.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match &mut self.kind {
            Kind::Whole(bytes) => Poll::Ready(bytes.take()),
            Kind::Events(events) => {
                let next = ready!(events.poll_next(cx));
                // The stream of a client that reads too slowly ends.
                Poll::Ready(next.and_then(|bytes| match &self.unread {
                    Some(unread) => unread.count(bytes).ok(),
                    None => Some(bytes),
                }))
            }
        }
    }

    /// Returns the event stream, if the body is an event stream.
    pub(super) fn events_mut(&mut self) -> Option<&mut EventStream> {
        match &mut self.kind {
            Kind::Events(events) => Some(events),
            Kind::Whole(_) => None,
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.poll_next(cx);
        if let (Poll::Ready(Some(bytes)), Some(counters)) = (&next, &self.counters) {
            counters.count_sent(bytes.len());
        }
        next.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.kind, Kind::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Whole(Some(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            Kind::Whole(None) => SizeHint::with_exact(0),
            Kind::Events(_) => SizeHint::default(),
        }
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.kind {
            Kind::Whole(_) => "ResponseBody::Whole",
            Kind::Events(_) => "ResponseBody::Events",
        })
    }
}

/// Converts a response with a complete body to the response type of the service.
pub(super) fn document(response: Response<Bytes>) -> Response<ResponseBody> {
    response.map(ResponseBody::single_message)
}

/// Creates a response without a body.
pub(super) fn empty(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::empty());
    *response.status_mut() = status;
    response
}

/// Creates a response with this status whose body is a JSON-RPC message.
pub(super) fn json(status: StatusCode, message: Bytes) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::single_message(message));
    *response.status_mut() = status;
    let json = HeaderValue::from_static(JSON);
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Creates a response whose body is an event stream, with a header that requests proxies not to buffer the events.
pub(super) fn events(stream: EventStream) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::new(Kind::Events(Box::new(stream))));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM));
    let no_cache = HeaderValue::from_static("no-cache, no-transform");
    headers.insert(CACHE_CONTROL, no_cache);
    let buffering = HeaderName::from_static("x-accel-buffering");
    headers.insert(buffering, HeaderValue::from_static("no"));
    response
}

/// Creates a response whose body is the JSON-RPC error -32600 (invalid request) without an id.
pub(super) fn refuse(status: StatusCode, message: &str) -> Refusal {
    Box::new(error(status, &PeerError::invalid_request(message)))
}

/// Creates a response with status 503, so that the client retries.
pub(super) fn unavailable(message: &str) -> Refusal {
    let mut response = refuse(StatusCode::SERVICE_UNAVAILABLE, message);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// Creates a response with status 429 for a client that is above its share, so that the client retries after this number of
/// seconds.
pub(super) fn too_many(message: &str, seconds: u64) -> Refusal {
    let mut response = refuse(StatusCode::TOO_MANY_REQUESTS, message);
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    response
}

/// JSON-RPC error of a response, stored in its extensions so that the id of the request can be added later.
#[derive(Clone)]
struct RefusedResponse(PeerError);

/// Creates a response with an error without an id: "a JSON-RPC error response that has no `id`" (`basic/transports`,
/// "Sending Messages to the Server").
pub(super) fn error(status: StatusCode, error: &PeerError) -> Response<ResponseBody> {
    let mut response = json(status, error_message(None, error));
    response
        .extensions_mut()
        .insert(RefusedResponse(error.clone()));
    response
}

/// Adds the id of the rejected request `message` to the error in a response, if `message` is a request and the response
/// contains an error.
pub(super) fn name_request(refusal: &mut Response<ResponseBody>, message: &[u8]) {
    let id = request_id(message);
    if let (Some(id), Some(RefusedResponse(error))) = (id, refusal.extensions_mut().remove()) {
        *refusal.body_mut() = ResponseBody::single_message(error_message(Some(id), &error));
    }
}

/// Returns the JSON-RPC message of an error.
fn error_message(id: Option<&str>, error: &PeerError) -> Bytes {
    let error = mcp_exact_session::Json::from_encode(error.object());
    let id = id.map_or(String::new(), |id| format!(r#""id":{id},"#));
    format!(r#"{{"jsonrpc":"2.0",{id}"error":{error}}}"#).into()
}
