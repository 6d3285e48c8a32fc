//! Requests and notifications of a connection as operations of the semantic conventions of OpenTelemetry for MCP: a span
//! and a duration for each, of the kind `CLIENT` where a message is sent and `SERVER` where it is received.
//!
//! Messages are read only while a subscriber of `tracing` takes spans of their level or a meter wants the durations. Operations
//! never contain arguments, results, headers, error messages or session ids.

mod message;
mod names;
mod operation;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use mcp_exact_revisions::method;
use mcp_exact_session::{MessageObserver, Outcome, RequestKey, Side};
use mcp_exact_wire::{HeadKind, MessageHead, RequestId};
use tracing::Span;

use crate::endpoint::RequestContext;
use message::{CallHead, End, for_each_message, received_id, request_id, response_end};
use operation::{Kind, Operation};

/// Maximum number of unanswered requests of each direction that are observed; others have neither span nor duration.
const MAX_OPEN_OPERATIONS: usize = 10_000;

/// Type of a result that requires input (2026-07-28, `basic/patterns/mrtr`).
const INPUT_REQUIRED: &str = "\"input_required\"";

/// Returns true if a subscriber takes spans of the level of operations, or a meter wants their durations.
fn is_enabled() -> bool {
    #[cfg(feature = "opentelemetry")]
    if crate::telemetry::durations::is_enabled() {
        return true;
    }
    // `span_enabled!` would change what layers with filters of their own take of the next event (tokio-rs/tracing, issue 2519).
    tracing::Level::INFO <= tracing::level_filters::LevelFilter::current()
}

/// Properties of a connection that its operations have in common.
#[derive(Debug, Default, Clone)]
pub(crate) struct Network {
    /// `network.transport`: `pipe`, `tcp` or `unix`; `None` in memory and on custom transports.
    pub(crate) transport: Option<&'static str>,
    /// `network.protocol.name`.
    pub(crate) protocol: Option<&'static str>,
    /// `network.protocol.version`, once known.
    pub(crate) protocol_version: Option<&'static str>,
    /// Host and port of the server of a client.
    pub(crate) server: Option<(String, u16)>,
}

impl Network {
    /// Returns the properties of a transport of this name.
    pub(crate) fn of_transport(name: &str) -> Self {
        let (transport, protocol) = match name {
            "stdio" => (Some("pipe"), None),
            "unix" => (Some("unix"), None),
            "http" => (Some("tcp"), Some("http")),
            _ => (None, None),
        };
        Self {
            transport,
            protocol,
            ..Self::default()
        }
    }

    /// Returns the properties of a connection over HTTP to a server.
    pub(crate) fn of_server(host: &str, port: u16) -> Self {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        Self {
            server: Some((host.to_owned(), port)),
            ..Self::of_transport("http")
        }
    }
}

/// Operations of one connection or HTTP session.
#[derive(Debug)]
pub(crate) struct Operations {
    /// State of the operations.
    state: Mutex<State>,
    /// True once an operation has begun.
    has_begun: AtomicBool,
}

/// State of the operations of a connection.
#[derive(Debug)]
pub(crate) struct State {
    /// Role of the local peer in the session.
    side: Side,
    /// Properties of the connection.
    network: Network,
    /// Negotiated revision.
    revision: Option<&'static str>,
    /// Digest of the session id.
    session: Option<String>,
    /// Time at which the session was negotiated by `initialize`.
    session_began: Option<Instant>,
    /// Name of the server to which the local peer sends requests that others have made, as gateways do.
    relays_to: Option<String>,
    /// Unanswered requests. `None` before the first one: most sessions are not observed, and stay small.
    open: Option<Box<OpenRequests>>,
}

/// Unanswered requests of a connection.
#[derive(Debug, Default)]
struct OpenRequests {
    /// Requests that the local peer has sent, by their ids.
    sent: HashMap<String, Operation>,
    /// Latest id of each request that the local application has sent and, in a client, the span in which it was sent.
    ids: HashMap<RequestKey, (String, Option<Span>)>,
    /// Requests that the local peer has received, by their ids.
    received: HashMap<String, Operation>,
}

/// Operations that begin with a received frame, of which the caller ends the notifications when they are handled.
#[derive(Default)]
pub(crate) struct ReceivedOperations {
    /// Span of the first message.
    span: Option<Span>,
    /// Ids of the requests.
    requests: Vec<RequestId>,
    /// Received notifications.
    notifications: Vec<Operation>,
}

impl ReceivedOperations {
    /// Removes and returns the ids of the requests, for [`Operations::end_refused`].
    pub(crate) fn take_requests(&mut self) -> Vec<RequestId> {
        std::mem::take(&mut self.requests)
    }

    /// Calls `handle` within the span of the first message, and then ends the operations of the notifications.
    pub(crate) fn run<R>(self, handle: impl FnOnce() -> R) -> R {
        let result = match &self.span {
            Some(span) => span.in_scope(handle),
            None => handle(),
        };
        for notification in self.notifications {
            notification.end(None);
        }
        result
    }
}

impl Operations {
    /// Creates the operations of a connection without a session. A session has a revision if another process has
    /// negotiated it.
    pub(crate) fn new(
        side: Side,
        network: Network,
        session_id: Option<&str>,
        revision: Option<&'static str>,
    ) -> Arc<Self> {
        let state = State {
            side,
            network,
            revision,
            session: session_id.and_then(session_digest),
            session_began: None,
            relays_to: None,
            open: None,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            has_begun: AtomicBool::new(false),
        })
    }

    /// Returns true if somebody wants operations now.
    pub(crate) fn are_wanted() -> bool {
        is_enabled()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the version of HTTP by which the server responds.
    #[cfg(feature = "http-client")]
    pub(crate) fn set_http_version(&self, version: http::Version) {
        self.lock().network.protocol_version = http_version(version);
    }

    /// Records the id of the session that the server has assigned.
    #[cfg(feature = "http-client")]
    pub(crate) fn set_session_id(&self, id: Option<&str>) {
        self.lock().session = id.and_then(session_digest);
    }

    /// Records that the local peer sends requests that others have made, whose names are not trusted, to this server.
    #[cfg(feature = "client")]
    pub(crate) fn set_relays_to(&self, server: &str) {
        self.lock().relays_to = Some(server.to_owned());
    }

    /// Records the end of the session.
    pub(crate) fn end_session(&self) {
        if self.has_begun.load(Ordering::Relaxed) {
            self.lock().end_session();
        }
    }

    /// Begins the operations of a received frame, and ends the requests that it answers or cancels.
    pub(crate) fn handle_received(
        &self,
        frame: &[u8],
        context: Option<&RequestContext>,
    ) -> ReceivedOperations {
        let mut received = ReceivedOperations::default();
        for_each_message(frame, &mut |head, _| match head.kind {
            HeadKind::Request | HeadKind::Notification => {
                let id = received_id(head);
                if id.is_none() && head.kind == HeadKind::Request {
                    return;
                }
                let text = id.as_ref().map(text_of);
                let begun = self.lock().begin_received(head, text.as_deref(), context);
                let Some(operation) = begun else {
                    return;
                };
                self.has_begun.store(true, Ordering::Relaxed);
                received
                    .span
                    .get_or_insert_with(|| operation.span().clone());
                match id {
                    Some(id) => {
                        self.lock().open().received.insert(text_of(&id), operation);
                        received.requests.push(id);
                    }
                    None => received.notifications.push(operation),
                }
            }
            HeadKind::Response => self.end_sent(head),
            _ => {}
        });
        received
    }

    /// Ends the operations of received requests that the endpoint has refused with an answer that names no request.
    pub(crate) fn end_refused(&self, ids: &[RequestId]) {
        for id in ids {
            let mut state = self.lock();
            let Some(mut operation) = state.open().received.remove(&text_of(id)) else {
                continue;
            };
            operation.complete_attributes(&state);
            drop(state);
            operation.end(Some("refused"));
        }
    }

    /// Returns the span of a received request.
    pub(crate) fn span_of(&self, id: &RequestId) -> Option<Span> {
        let mut state = self.lock();
        let operation = state.open().received.get(&text_of(id))?;
        Some(operation.span().clone())
    }

    /// Records that the local peer knows what a received request names; `name` is the name that it uses itself.
    pub(crate) fn set_known(&self, id: &RequestId, name: Option<&str>) {
        if let Some(operation) = self.lock().open().received.get_mut(&text_of(id)) {
            operation.set_known(name);
        }
    }

    /// Ends a request that the local application has sent, unless its response was received.
    pub(crate) fn handle_outcome(&self, key: RequestKey, outcome: &Outcome) {
        if !self.has_begun.load(Ordering::Relaxed) {
            return;
        }
        let mut state = self.lock();
        let Some((id, _)) = state.open().ids.remove(&key) else {
            return;
        };
        let Some(operation) = state.open().sent.remove(&id) else {
            return;
        };
        drop(state);
        let error = match outcome {
            Outcome::Result(_) => return operation.end(None),
            // Over HTTP, an error may be in a response with an error status.
            Outcome::Error(error) => match error.code() {
                Some(code) => return operation.end_with(&End::Error(code.to_string())),
                None => "_OTHER",
            },
            Outcome::TimedOut => "timeout",
            Outcome::Cancelled => "cancelled",
            Outcome::Lost => "connection_lost",
            Outcome::Closed => "closed",
        };
        operation.end(Some(error));
    }

    /// Returns true if messages must be read: somebody wants the operations, or some have begun.
    pub(crate) fn is_active(&self) -> bool {
        is_enabled() || self.has_begun.load(Ordering::Relaxed)
    }

    /// Ends the request that a received response answers.
    fn end_sent(&self, head: &MessageHead<'_>) {
        let Some(id) = head.id.and_then(message::id_text) else {
            return;
        };
        let mut state = self.lock();
        let Some(mut operation) = state.open().sent.remove(&id) else {
            return;
        };
        // A client sends a call again with the input that its result requires.
        let is_final = !head
            .result
            .is_some_and(|text| text.contains(INPUT_REQUIRED));
        if is_final && let Some(key) = operation.key {
            state.open().ids.remove(&key);
        }
        state.learn_revision(&operation, head);
        operation.complete_attributes(&state);
        drop(state);
        let end = response_end(operation.method(), head);
        operation.end_with(&end);
    }

    /// Ends the request that a sent response answers.
    fn end_received(&self, head: &MessageHead<'_>) {
        let Some(id) = head.id.and_then(message::id_text) else {
            return;
        };
        let mut state = self.lock();
        let Some(mut operation) = state.open().received.remove(&id) else {
            return;
        };
        state.learn_revision(&operation, head);
        operation.complete_attributes(&state);
        drop(state);
        let end = response_end(operation.method(), head);
        operation.end_with(&end);
    }

    /// Begins the operation of a request or notification that the local peer sends; returns the message with the trace
    /// context of the span, if it must be changed.
    fn begin_sent(
        &self,
        head: &MessageHead<'_>,
        text: &str,
        key: Option<RequestKey>,
    ) -> Option<String> {
        let call = CallHead::read(head);
        self.has_begun.store(true, Ordering::Relaxed);
        let mut state = self.lock();
        state.revision = call.revision.or(state.revision);
        let id = request_id(head);
        // A request may be sent again by another task than that of its caller.
        let caller = key.and_then(|key| state.open().ids.get(&key)?.1.clone());
        let caller = caller.unwrap_or_else(Span::current);
        let operation = Operation::begin(&state, Kind::Client, &call, id.as_deref(), None, &caller);
        #[cfg(feature = "opentelemetry")]
        let changed = {
            let trace = crate::telemetry::trace_of(operation.span());
            trace.and_then(|trace| message::with_trace(text, head, &trace))
        };
        #[cfg(not(feature = "opentelemetry"))]
        let changed = {
            let _ = text;
            None
        };
        match id {
            None => {
                drop(state);
                operation.end(None);
            }
            Some(id) if state.open().sent.len() < MAX_OPEN_OPERATIONS => {
                let latest = (id.clone(), (state.side == Side::Client).then_some(caller));
                let repeated = key.and_then(|key| state.open().ids.insert(key, latest));
                let repeated = repeated.and_then(|(id, _)| state.open().sent.remove(&id));
                state.open().sent.insert(id, operation.with_key(key));
                drop(state);
                // The request is sent again under another id.
                if let Some(repeated) = repeated {
                    repeated.end(Some("connection_lost"));
                }
            }
            Some(_) => {}
        }
        changed
    }
}

impl MessageObserver for Operations {
    fn handle_outgoing(&self, message: &mut Vec<u8>, request: Option<RequestKey>) {
        if !self.is_active() {
            return;
        }
        let mut changed = None;
        for_each_message(message, &mut |head, text| match head.kind {
            HeadKind::Request | HeadKind::Notification if is_enabled() => {
                changed = self.begin_sent(head, text, request);
            }
            HeadKind::Response => self.end_received(head),
            _ => {}
        });
        if let Some(changed) = changed {
            *message = changed.into_bytes();
        }
    }

    fn handle_end(&self, request: RequestKey, outcome: &Outcome) {
        self.handle_outcome(request, outcome);
    }
}

impl State {
    /// Returns the unanswered requests.
    fn open(&mut self) -> &mut OpenRequests {
        self.open.get_or_insert_default()
    }

    /// Begins the operation of a received request, with its id, or notification; `None` if it is not observed.
    fn begin_received(
        &mut self,
        head: &MessageHead<'_>,
        id: Option<&str>,
        context: Option<&RequestContext>,
    ) -> Option<Operation> {
        let call = CallHead::read(head);
        if let Some(cancelled) = &call.cancelled
            && let Some(operation) = self.open().received.remove(cancelled)
        {
            operation.end(Some("cancelled"));
        }
        let is_repeated = id.is_some_and(|id| self.open().received.contains_key(id));
        if is_repeated || self.open().received.len() >= MAX_OPEN_OPERATIONS || !is_enabled() {
            return None;
        }
        // Notifications do not state the revision.
        self.revision = call.revision.or(self.revision);
        // Requests of the server are sent by the version of HTTP that its client uses.
        #[cfg(feature = "http")]
        if let Some(http) = context.and_then(|context| context.http.as_ref()) {
            self.network.protocol_version = http_version(http.version);
        }
        let operation = Operation::begin(self, Kind::Server, &call, id, context, &Span::current());
        Some(operation)
    }

    /// Learns the revision of the session from the response to `initialize`.
    fn learn_revision(&mut self, operation: &Operation, head: &MessageHead<'_>) {
        if operation.method() == method::INITIALIZE
            && let Some(revision) = head.result.and_then(message::negotiated_revision)
        {
            self.end_session();
            self.revision = Some(revision);
            self.session_began = Some(Instant::now());
        }
    }
}

impl State {
    /// Records the duration of the session, if one has begun and not ended.
    fn end_session(&mut self) {
        #[cfg_attr(not(feature = "opentelemetry"), allow(unused_variables))]
        let Some(began) = self.session_began.take() else {
            return;
        };
        #[cfg(feature = "opentelemetry")]
        {
            let attributes = operation::session_attributes(self);
            crate::telemetry::durations::record_session(self.side, began.elapsed(), &attributes);
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            let received = open.received.into_values();
            received.for_each(|operation| operation.end(Some("cancelled")));
            let sent = open.sent.into_values();
            sent.for_each(|operation| operation.end(Some("closed")));
        }
        self.end_session();
    }
}

/// Returns the text of an id, as [`message::id_text`] does.
fn text_of(id: &RequestId) -> String {
    match id {
        RequestId::String(text) => text.to_string(),
        RequestId::Integer(number) => number.to_string(),
    }
}

/// Returns the text of a version of HTTP for `network.protocol.version`.
#[cfg(feature = "http")]
fn http_version(version: http::Version) -> Option<&'static str> {
    Some(match version {
        http::Version::HTTP_10 => "1.0",
        http::Version::HTTP_11 => "1.1",
        http::Version::HTTP_2 => "2",
        http::Version::HTTP_3 => "3",
        _ => return None,
    })
}

/// Returns the digest of a session id for `mcp.session.id`: 32 hexadecimal digits of SHA-256, equal on both sides; `None`
/// without the feature `opentelemetry`.
///
/// Whoever has the id of a session can send messages in it, so the id itself is never exported.
fn session_digest(id: &str) -> Option<String> {
    #[cfg(feature = "opentelemetry")]
    {
        use sha2::Digest as _;
        let digest = sha2::Sha256::digest(id.as_bytes());
        let digits = digest[..16].iter().map(|byte| format!("{byte:02x}"));
        Some(digits.collect())
    }
    #[cfg(not(feature = "opentelemetry"))]
    {
        let _ = id;
        None
    }
}
