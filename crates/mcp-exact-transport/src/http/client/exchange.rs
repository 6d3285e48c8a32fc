//! HTTP exchanges: requests with the headers of the connection, redirects within the origin, and the reading of
//! responses.
//!
//! The messages of a response are passed to the endpoint unchanged.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body as _;
use http_body_util::BodyExt;
use mcp_exact_session::frame::{KEPT_BYTES, Oversized};
use mcp_exact_session::{
    BudgetShare, ClientEndpoint, HttpHints, Limit, Limits, ReceiveError, StreamId, TransportFailure,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::MAX_PAUSE;
use super::describe::{coding_of, describe_event, describe_failure, explain_compression};
use super::send::{HttpBody, HttpClient, HttpClientError};
use super::target::{resolve, url_for_logs};
use crate::endpoint::{ClientHandle, ClientHandler, Shared, is_request};
use crate::http::{
    EVENT_STREAM, JSON, LAST_EVENT_ID, SESSION_ID, has_media_type, is_protocol_header,
};
use crate::sse::{Decoded, Decoder};
use crate::transport::Received;

/// Time for which a response is still read after its request was answered or cancelled.
pub(super) const READ_AFTER_ANSWER: Duration = Duration::from_secs(5);
/// Minimum delay before a stream is opened again, so that a server is not flooded with requests.
const MIN_REOPEN_PAUSE: Duration = Duration::from_millis(100);
/// Maximum delay that a server may ask for by `Retry-After` before a stream is opened again.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60 * 60);
/// Error text for a notification or response whose POST the server has not answered in time.
pub(super) const NOT_ACCEPTED: &str = "the server did not accept a message in time";
/// Maximum number of consecutive redirects.
const MAX_REDIRECTS: u32 = 5;

/// State that all HTTP exchanges of a client connection share.
pub(super) struct Connection {
    /// The client endpoint.
    pub(super) shared: Arc<Shared<ClientEndpoint>>,
    /// The HTTP client.
    pub(super) client: Arc<dyn HttpClient>,
    /// Headers of every request, which the application has configured.
    pub(super) headers: HeaderMap,
    /// Limits of the client: the size of a message, and the budget of all.
    pub(super) limits: Limits,
    /// Id of the session, if the server has assigned one.
    session_id: Mutex<Option<HeaderValue>>,
    /// First and latest error of an exchange, from which the reason for the end of the connection is created.
    errors: Mutex<Option<(String, String)>>,
    /// Handler of the application, which is told of broken exchanges.
    handler: Arc<dyn ClientHandler>,
    /// True from a broken exchange to the next response of the server.
    is_broken: AtomicBool,
    /// Notified when the server responds after a broken exchange.
    responds_again: Notify,
}

/// Body of a response that was read to its end or to the limit.
pub(super) enum CompleteBody {
    /// The complete body, which is one message, and what it holds of the budget.
    Message(Bytes, BudgetShare),
    /// A body that exceeds the limit.
    Oversized {
        /// First bytes of the body; the remaining bytes were not read.
        head: Bytes,
        /// Size of the body, if its header names it.
        size: Option<u64>,
        /// Limit that the body exceeds.
        limit: Limit,
    },
}

/// Position at which an event stream is resumed.
#[derive(Debug, Clone, Default)]
pub(super) struct Position {
    /// Id of the last received event, for `Last-Event-ID`.
    pub(super) last_event_id: Option<String>,
    /// Reconnection time that the server has set.
    pub(super) retry: Option<Duration>,
    /// Time after which the server accepts the next attempt, by the header `Retry-After` of its last response.
    pub(super) retry_after: Option<Duration>,
    /// Description of the first event with data that is no message.
    pub(super) unknown_event: Option<String>,
}

impl Position {
    /// Returns the delay before the stream is opened again: the reconnection time that the server has set, or
    /// `otherwise` if the server has set none, but never less than `Retry-After`, up to [`MAX_RETRY_AFTER`].
    pub(super) fn pause(&self, otherwise: Duration) -> Duration {
        let retry = self.retry.map(|retry| retry.max(MIN_REOPEN_PAUSE));
        let least = self.retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
        retry.unwrap_or(otherwise).max(least)
    }

    /// Returns the delay after a failed attempt: twice the delay before the attempt, up to [`MAX_PAUSE`], but never less than
    /// [`pause`](Self::pause).
    ///
    /// "The client MUST respect the `retry` field, waiting the given number of milliseconds before attempting to reconnect"
    /// (2025-11-25, `basic/transports`, "Sending Messages to the Server").
    pub(super) fn longer_pause(&self, before: Duration, otherwise: Duration) -> Duration {
        let doubled = before.saturating_mul(2).min(MAX_PAUSE);
        doubled.max(self.pause(otherwise))
    }
}

/// Classification of the content that was received on an event stream before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StreamProgress {
    /// The server has ended the stream without sending a byte.
    Nothing,
    /// Bytes were received, but no complete event.
    Bytes,
    /// At least one event was received, possibly without a message.
    Events,
}

impl Connection {
    pub(super) fn new(
        shared: Arc<Shared<ClientEndpoint>>,
        client: Arc<dyn HttpClient>,
        headers: HeaderMap,
        limits: Limits,
        handler: Arc<dyn ClientHandler>,
    ) -> Self {
        Self {
            shared,
            client,
            headers,
            limits,
            session_id: Mutex::default(),
            errors: Mutex::default(),
            handler,
            is_broken: AtomicBool::new(false),
            responds_again: Notify::new(),
        }
    }

    /// Tells the application that the server could not be reached, or that an event stream broke.
    fn report_broken(&self) {
        self.is_broken.store(true, Ordering::Release);
        let client = ClientHandle::of(&self.shared);
        self.handler.handle_broken_exchange(&client);
    }

    /// Waits before a stream is opened again: for `pause`, but only for `least` if the server responds to another request in the
    /// meantime after it could not be reached.
    pub(super) async fn wait_to_reopen(&self, pause: Duration, least: Duration) {
        let begun = Instant::now();
        let responds_again = self.responds_again.notified();
        tokio::select! {
            () = sleep(pause) => {}
            // The pause may be too long for the clock.
            () = responds_again => sleep(least.min(pause).saturating_sub(begun.elapsed())).await,
        }
    }

    pub(super) fn session_id(&self) -> Option<HeaderValue> {
        self.session_id
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Removes and returns the id of the session.
    pub(super) fn forget_session(&self) -> Option<HeaderValue> {
        #[cfg(feature = "operations")]
        if let Some(operations) = self.shared.operations() {
            operations.set_session_id(None);
        }
        self.session_id
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Stores the session id that the server assigns, unless an id is stored already.
    pub(super) fn store_session_id(&self, headers: &HeaderMap) {
        let id = headers.get(SESSION_ID).cloned();
        let is_assigned = {
            let mut known = self
                .session_id
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if known.is_none() {
                #[cfg(feature = "operations")]
                if let Some(operations) = self.shared.operations() {
                    let id = id.as_ref().and_then(|id| id.to_str().ok());
                    operations.set_session_id(id);
                }
                *known = id;
            }
            known.is_some()
        };
        let mut state = self.shared.lock();
        state.endpoint.set_session_id_assigned(is_assigned);
    }

    /// Stores an error of an exchange as the latest one.
    pub(super) fn store_error(&self, message: String) {
        self.shared.lock().role.last_error = Some(message.clone());
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *errors {
            Some((_, last)) => *last = message,
            none => *none = Some((message.clone(), message)),
        }
    }

    /// Forgets the errors, because the connection works.
    pub(super) fn forget_errors(&self) {
        self.shared.lock().role.last_error = None;
        *self.errors.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the latest error of the connection and the first one, if they differ; `None` without an error.
    pub(super) fn describe_errors(&self) -> Option<String> {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, last) = errors.as_ref()?;
        Some(
            if first.contains(last.as_str()) || last.contains(first.as_str()) {
                last.clone()
            } else {
                format!("{last}; before, {first}")
            },
        )
    }

    /// Sends a request, and follows redirects within its origin.
    ///
    /// Servers and proxies close idle connections at any time, and the client may be about to use one of them again (RFC 9112,
    /// section 9.3.1). If a connection ends before a response begins, a request that `may_repeat` is sent again, once.
    pub(super) async fn send(
        &self,
        method: Method,
        target: &Uri,
        headers: HeaderMap,
        body: Bytes,
        may_repeat: bool,
    ) -> Result<Response<HttpBody>, SendFailure> {
        let send = || self.send_once(&method, target, &headers, &body);
        let mut sent = send().await;
        if may_repeat && sent.as_ref().is_err_and(|failure| failure.was_cut) {
            sent = send().await.map_err(|failure| SendFailure {
                // The first one may have arrived.
                was_cut: true,
                is_unsent: false,
                ..failure
            });
        }
        match &sent {
            Ok(_) => {
                if self.is_broken.swap(false, Ordering::AcqRel) {
                    self.responds_again.notify_waiters();
                }
            }
            Err(failure) => {
                self.store_error(failure.message.clone());
                // Other errors are those of an authorization.
                if failure.was_cut || failure.is_unsent {
                    self.report_broken();
                }
            }
        }
        sent
    }

    /// Sends a request and follows redirects within its origin: redirects that keep the method, and for GET all
    /// redirects.
    async fn send_once(
        &self,
        method: &Method,
        target: &Uri,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response<HttpBody>, SendFailure> {
        let mut target = target.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = Request::new(body.clone());
            *request.method_mut() = method.clone();
            *request.uri_mut() = target.clone();
            let named = request.headers_mut();
            named.extend(headers.clone());
            let own = self.headers.iter();
            for (name, value) in own.filter(|(name, _)| !is_protocol_header(name)) {
                named.insert(name, value.clone());
            }
            let response = self.client.send(request).await;
            let response = response.map_err(|error| {
                let (was_cut, is_unsent) = (was_cut(&*error), is_unsent(&*error));
                SendFailure {
                    message: describe_failure(&target, &*error, was_cut && !is_unsent),
                    was_cut,
                    is_unsent,
                }
            })?;
            #[cfg(feature = "operations")]
            if let Some(operations) = self.shared.operations() {
                operations.set_http_version(response.version());
            }
            let follows = match response.status() {
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
                StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => {
                    method == Method::GET
                }
                _ => false,
            };
            let location = response.headers().get(LOCATION);
            let location = location.and_then(|location| location.to_str().ok());
            // Nothing is sent to another origin.
            let next = location.filter(|_| follows);
            let next = next.and_then(|location| resolve(&target, location).ok());
            // A server that ends no TLS itself may redirect to the URL that was asked.
            let next = next.filter(|next| *next != target);
            match next {
                Some(next) => target = next,
                None => return Ok(explain_compression(response)),
            }
        }
        Err(SendFailure {
            message: format!("{} redirects too often", url_for_logs(&target.to_string())),
            was_cut: false,
            is_unsent: false,
        })
    }

    /// Returns the headers of a request: the `named` headers, the id of its session, and `Last-Event-ID` if an event id is given.
    pub(super) fn request_headers(
        named: Vec<(String, String)>,
        session: Option<&HeaderValue>,
        last_event_id: Option<&str>,
    ) -> Result<HeaderMap, HttpClientError> {
        let mut headers = HeaderMap::new();
        for (name, value) in named {
            let name: HeaderName = name.parse()?;
            headers.append(name, value.parse()?);
        }
        if let Some(id) = session {
            headers.insert(SESSION_ID, id.clone());
        }
        if let Some(id) = last_event_id {
            headers.insert(LAST_EVENT_ID, HeaderValue::from_bytes(id.as_bytes())?);
        }
        Ok(headers)
    }

    /// Reads a body up to the maximum size of a message.
    pub(super) async fn read_body(
        &self,
        mut body: HttpBody,
    ) -> Result<CompleteBody, HttpClientError> {
        let size = body.size_hint().exact();
        let mut whole = BytesMut::new();
        let mut share = BudgetShare::new(&self.limits);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            let received = whole.len() + data.len();
            let limit = if received > self.limits.message_bytes {
                Some(Limit::MessageBytes)
            } else {
                (!share.resize(received)).then_some(Limit::MessageBudget)
            };
            if let Some(limit) = limit {
                whole.extend_from_slice(&data[..data.len().min(KEPT_BYTES)]);
                whole.truncate(KEPT_BYTES);
                let head = whole.freeze();
                return Ok(CompleteBody::Oversized { head, size, limit });
            }
            whole.extend_from_slice(&data);
        }
        Ok(CompleteBody::Message(whole.freeze(), share))
    }

    /// Reads the body of an error response; returns an empty body if the body exceeds the limit or cannot be read.
    pub(super) async fn read_error(&self, body: HttpBody) -> Vec<u8> {
        match self.read_body(body).await {
            Ok(CompleteBody::Message(body, _)) => body.to_vec(),
            Ok(CompleteBody::Oversized { .. }) | Err(_) => Vec::new(),
        }
    }

    /// Passes one message to the endpoint; waits while the queues of the endpoint are full.
    pub(super) async fn receive(&self, stream: StreamId, message: Received<'_>) {
        loop {
            match self.shared.receive(stream, message, ()).0 {
                Err(ReceiveError::Full) => tokio::time::sleep(Duration::from_millis(2)).await,
                _ => return self.shared.wake(),
            }
        }
    }

    /// Reads the messages of an event stream until the stream ends or the connection fails.
    ///
    /// The client stops reading the stream of a request some time after the answer, because some servers do not close
    /// the stream: "After the JSON-RPC response has been sent, the server SHOULD close the SSE stream"
    /// (`basic/transports`, "Sending Messages to the Server").
    pub(super) async fn read_events(
        &self,
        stream: StreamId,
        is_of_request: bool,
        mut body: HttpBody,
        position: &mut Position,
    ) -> StreamProgress {
        let mut decoder = Decoder::new(self.limits.message_bytes).with_budget(&self.limits);
        if let Some(id) = &position.last_event_id {
            decoder = decoder.resumed_after(id);
        }
        let mut progress = StreamProgress::Nothing;
        let mut until = None;
        loop {
            while let Some(decoded) = decoder.next_event() {
                progress = StreamProgress::Events;
                match decoded {
                    Decoded::Event(event) if event.event == "message" && !event.data.is_empty() => {
                        self.receive(stream, Received::Frame(&event.data)).await;
                    }
                    Decoded::Event(event) if !event.data.is_empty() => {
                        let describe = || describe_event(&event);
                        position.unknown_event.get_or_insert_with(describe);
                    }
                    Decoded::Event(_) => {}
                    Decoded::Oversized {
                        head,
                        tail,
                        size,
                        limit,
                    } => {
                        let message = Oversized {
                            head: &head,
                            tail: &tail,
                            size: Some(size),
                            limit,
                        };
                        self.receive(stream, Received::Oversized(message)).await;
                    }
                }
            }
            if position.last_event_id.as_deref() != decoder.last_event_id() {
                position.last_event_id = decoder.last_event_id().map(str::to_owned);
                progress = StreamProgress::Events;
            }
            if let Some(retry) = decoder.retry_ms() {
                position.retry = Some(Duration::from_millis(retry));
            }
            if is_of_request && until.is_none() && !self.is_waiting_on(stream) {
                until = Some(Instant::now() + READ_AFTER_ANSWER);
            }
            let next = match until {
                Some(until) => timeout_at(until, body.frame()).await.unwrap_or(None),
                None => body.frame().await,
            };
            match next {
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        progress = progress.max(StreamProgress::Bytes);
                        decoder.push(&data);
                    }
                }
                Some(Err(error)) => {
                    self.store_error(format!("the event stream broke: {error}"));
                    self.report_broken();
                    return progress.max(StreamProgress::Bytes);
                }
                None => return progress,
            }
        }
    }

    /// Records of the application's request on a stream whether it is certain that it did not reach the server.
    pub(super) fn set_unsent(&self, stream: StreamId, is_unsent: bool) {
        let state = self.shared.lock();
        if let Some(key) = state.endpoint.request_on(stream) {
            state.set_unsent(key, is_unsent);
        }
    }

    /// Returns true if the stream belongs to a session that the server does not know any more.
    pub(super) fn is_orphaned(&self, stream: StreamId) -> bool {
        self.shared.lock().endpoint.is_orphaned(stream)
    }

    /// Returns true if a request of the client waits for its answer on this stream.
    pub(super) fn is_waiting_on(&self, stream: StreamId) -> bool {
        self.shared.lock().endpoint.is_waiting_on(stream)
    }
}

/// Error of a request to which no response began.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(super) struct SendFailure {
    /// Text of the error.
    message: String,
    /// True if a connection to the server existed, and was closed before the response.
    pub(super) was_cut: bool,
    /// True if it is certain that nothing was sent, because no connection to the server came about.
    pub(super) is_unsent: bool,
}

impl SendFailure {
    /// Returns the failure for the endpoint, which decides whether the request is sent again.
    pub(super) fn of_transport(&self) -> TransportFailure {
        if self.was_cut {
            TransportFailure::Unanswered
        } else {
            TransportFailure::Unreachable
        }
    }
}

/// Returns true if a message may be sent again although the server may have received it: a notification, a response, and
/// `initialize`, which begins another session. The endpoint decides about other requests, which get another id.
pub(super) fn may_repeat(message: &[u8], hints: &HttpHints) -> bool {
    hints.may_assign_session || !is_request(message)
}

/// Returns true if the error is that no connection to the server came about.
fn is_unsent(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let client = error.downcast_ref::<hyper_util::client::legacy::Error>();
        if let Some(error) = client {
            return error.is_connect();
        }
        cause = error.source();
    }
    false
}

/// Returns true if the error is that a connection was closed before the response began, so that a server was reached.
fn was_cut(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    let cut = [
        BrokenPipe,
        ConnectionAborted,
        ConnectionReset,
        UnexpectedEof,
    ];
    let mut cause = Some(error);
    while let Some(error) = cause {
        let hyper = error.downcast_ref::<hyper::Error>();
        if hyper.is_some_and(|error| {
            error.is_incomplete_message() || error.is_canceled() || error.is_closed()
        }) {
            return true;
        }
        let io = error.downcast_ref::<std::io::Error>();
        if io.is_some_and(|error| cut.contains(&error.kind())) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Kind of the body of a successful response.
pub(super) enum BodyKind {
    /// A single JSON message.
    Message,
    /// An event stream.
    Events,
    /// No body.
    Nothing,
    /// A body of another media type, or a compressed one.
    Other,
}

/// Returns the kind of a response's body, which its status and its media type determine.
pub(super) fn body_kind(response: &Response<HttpBody>) -> BodyKind {
    let headers = response.headers();
    // It has no body (`basic/transports`, "Sending Messages to the Server"), but some servers name a media type.
    if response.status() == StatusCode::ACCEPTED {
        return BodyKind::Nothing;
    }
    if coding_of(headers).is_some() {
        BodyKind::Other
    } else if has_media_type(headers, EVENT_STREAM) {
        BodyKind::Events
    } else if has_media_type(headers, JSON) {
        BodyKind::Message
    } else if !headers.contains_key(CONTENT_TYPE) {
        BodyKind::Nothing
    } else {
        BodyKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "The client MUST respect the `retry` field" (2025-11-25, `basic/transports`, "Sending Messages to the Server"): no
    /// failed attempt makes the delay shorter than the reconnection time, however long that time is.
    #[test]
    fn failures_never_shorten_the_retry() {
        let seconds = Duration::from_secs;
        for (retry, retry_after, before, expected) in [
            (None, None, seconds(1), seconds(2)),
            (None, None, seconds(20), MAX_PAUSE),
            (Some(seconds(3)), None, seconds(1), seconds(3)),
            (Some(seconds(3)), None, seconds(3), seconds(6)),
            (Some(seconds(90)), None, seconds(90), seconds(90)),
            (Some(Duration::MAX), None, Duration::MAX, Duration::MAX),
            // RFC 9110, section 10.2.3: "how long the service is expected to be unavailable to the client".
            (None, Some(seconds(90)), seconds(1), seconds(90)),
            (Some(seconds(3)), Some(seconds(5)), seconds(1), seconds(5)),
            (Some(seconds(3)), Some(seconds(2)), seconds(1), seconds(3)),
            (None, Some(Duration::MAX), seconds(1), MAX_RETRY_AFTER),
        ] {
            let position = Position {
                retry,
                retry_after,
                ..Position::default()
            };
            let pause = position.longer_pause(before, seconds(1));
            assert_eq!(pause, expected, "{retry:?} {retry_after:?} {before:?}");
        }
    }
}
