//! Values that a server's application receives and returns: requests with their senders, events, replies.
//!
//! The types are plain data, so a change of a value does not change the endpoint.

use std::fmt;
use std::sync::{Arc, OnceLock};

use mcp_exact_revisions::{MethodId, RevisionSpec};
use mcp_exact_wire::{Encode, JsonObject, JsonRef, RequestId, Revision};

use crate::call_method::MethodName as _;
use crate::change::Progress;
use crate::error::{PeerError, SendError, Violation};
use crate::filter::Filter;
use crate::heap_size::{EVENT_SIZE, HeapSize};
use crate::home::HomeSession;
use crate::http_request::{HttpRequest, Principal};
use crate::input_request::{InputRequest, InputResponses};
use crate::log::Level;
use crate::message::Call;
use crate::outcome::{Outcome, RawResult};
use crate::seal::seal_context;
use crate::session_info::SessionInfo;
use crate::stream::{RequestKey, StreamId};
use crate::tolerance::Repairs;
use crate::trace_context::TraceContext;

/// Information of the transport about a frame.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrameContext<C> {
    /// Headers of the HTTP request that contained the frame.
    pub http: Option<HttpRequest>,
    /// Authenticated principal. A session belongs to the principal that sent `initialize`; frames of other principals are
    /// refused.
    pub principal: Option<Principal>,
    /// Data of the transport or the application that is attached to each request of the frame.
    pub app_data: C,
}

impl<C> FrameContext<C> {
    /// Creates the context of a frame without headers and principal.
    pub fn new(cx: C) -> Self {
        Self {
            http: None,
            principal: None,
            app_data: cx,
        }
    }
}

/// Sender of a request: the client of a session, or the client that a request without a session describes.
#[derive(Debug)]
pub(crate) struct ClientContext {
    /// Revision of the request.
    pub(crate) spec: &'static RevisionSpec,
    /// Information that the client has given about itself.
    pub(crate) info: SessionInfo,
    /// Minimum level of the log messages that the request accepts (from 2026-07-28 on).
    pub(crate) log_level: Option<Level>,
    /// Conversions to the application's home revision; created when a request is first decoded by the types of the home
    /// revision.
    pub(crate) home: OnceLock<Option<Arc<HomeSession>>>,
}

/// Unchanged request as received from the client.
#[derive(Debug)]
pub(crate) struct ReceivedCall<C> {
    /// Id of the request, exactly as received.
    pub(crate) id: RequestId,
    /// Method and parameters, as received.
    pub(crate) call: Call,
    /// Information of the transport about the frame.
    pub(crate) context: Arc<FrameContext<C>>,
}

/// Request of the client that waits for [`ServerEndpoint::reply`](super::ServerEndpoint::reply).
///
/// Clones share their content.
pub struct IncomingRequest<C> {
    /// Key of the request, for the reply.
    pub key: RequestKey,
    /// Number of earlier deliveries of the request with other input.
    pub retries: u32,
    /// Responses to the input requests of the request.
    pub responses: InputResponses,
    /// State that was sent with the input requests: as created by the application or, with
    /// [`InputMode::PassThrough`](crate::InputMode::PassThrough), as received from the client.
    pub state: Option<String>,
    /// Stream on which the request was received.
    pub stream: StreamId,
    /// Client that has sent the request.
    pub(crate) client: Arc<ClientContext>,
    /// Received message with its id and the information of the transport.
    pub(crate) received_call: Arc<ReceivedCall<C>>,
}

impl<C> Clone for IncomingRequest<C> {
    fn clone(&self) -> Self {
        Self {
            key: self.key,
            retries: self.retries,
            responses: self.responses.clone(),
            state: self.state.clone(),
            stream: self.stream,
            client: Arc::clone(&self.client),
            received_call: Arc::clone(&self.received_call),
        }
    }
}

impl<C> fmt::Debug for IncomingRequest<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingRequest")
            .field("key", &self.key)
            .field("method", &self.method())
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}

impl<C> IncomingRequest<C> {
    /// Creates a request that belongs to no endpoint, from the saved parts of an earlier request: for work that outlives its
    /// connection, such as a task that is resumed in another process. Returns `None` if the client's revision is unknown.
    ///
    /// The key of the request belongs to no endpoint, so a reply is refused with [`SendError::UnknownRequest`].
    pub fn from_parts(
        method: impl AsRef<str>,
        params: Option<JsonObject>,
        client: SessionInfo,
        context: FrameContext<C>,
    ) -> Option<Self> {
        let spec = crate::find_revision(client.revision.as_str())?;
        Some(Self {
            key: RequestKey(u64::MAX),
            retries: 0,
            responses: InputResponses::default(),
            state: None,
            stream: StreamId::DUPLEX,
            client: Arc::new(ClientContext {
                spec,
                info: client,
                log_level: None,
                home: OnceLock::new(),
            }),
            received_call: Arc::new(ReceivedCall {
                id: RequestId::from(0),
                call: Call::new(method.as_ref(), params),
                context: Arc::new(context),
            }),
        })
    }

    /// Returns a copy of the request with another method and params, for gateways that forward it. The copy keeps the key, so
    /// only one reply is possible.
    pub fn with_call(&self, method: impl AsRef<str>, params: Option<JsonObject>) -> Self {
        let origin = ReceivedCall {
            id: self.received_call.id.clone(),
            call: Call::new(method.as_ref(), params),
            context: Arc::clone(&self.received_call.context),
        };
        Self {
            received_call: Arc::new(origin),
            ..self.clone()
        }
    }

    /// Returns the revision of the request.
    pub fn revision(&self) -> Revision {
        self.client.spec.revision()
    }

    /// Returns the properties of the revision.
    pub fn spec(&self) -> &'static RevisionSpec {
        self.client.spec
    }

    /// Returns the id, exactly as received.
    pub fn id(&self) -> &RequestId {
        &self.received_call.id
    }

    /// Returns the name of the method.
    pub fn method(&self) -> &str {
        &self.received_call.call.method
    }

    /// Returns the method as a value: [`MethodId::Vendor`] if no schema defines it.
    pub fn method_id(&self) -> MethodId {
        self.received_call.call.method.id()
    }

    /// Returns the parameters as received from the client.
    pub fn params(&self) -> Option<&JsonObject> {
        self.received_call.call.params.as_ref()
    }

    /// Returns the parameter with this name.
    pub fn param(&self, name: &str) -> Option<JsonRef<'_>> {
        self.received_call.call.param(name)
    }

    /// Returns principal, method and params in a canonical form, without the params that differ between the retries of one
    /// request: equal for a retry of the same request alone, however its JSON is spelt.
    pub fn retry_binding(&self) -> Vec<u8> {
        let principal = self.context().principal.as_ref();
        let principal = principal.map(|Principal(name)| name.as_str());
        seal_context(principal, self.method(), self.params())
    }

    /// Returns the trace that the request belongs to, as its `_meta` states (SEP-414, for every revision).
    pub fn trace_context(&self) -> Option<TraceContext> {
        let [meta, ..] = self.received_call.call.read_params();
        TraceContext::from_meta(meta?.object()?)
    }

    /// Returns the information that the client has given about itself: in the handshake, or in this request.
    pub fn client(&self) -> &SessionInfo {
        &self.client.info
    }

    /// Returns the minimum level of the log messages that this request accepts (from 2026-07-28 on).
    pub fn log_level(&self) -> Option<Level> {
        self.client.log_level
    }

    /// Returns the information of the transport about the frame.
    pub fn context(&self) -> &FrameContext<C> {
        &self.received_call.context
    }

    /// Returns the result of an input request, or the reply that sends the input request.
    ///
    /// A handler that uses this function works for every revision: the handler replies with the returned error, and is called
    /// again with the response.
    ///
    /// # Errors
    /// The reply to return from the handler: the input request, or the error with which the input request ended.
    pub fn require_input(
        &self,
        name: &str,
        request: impl FnOnce() -> InputRequest,
    ) -> Result<&RawResult, Box<Reply>> {
        match self.responses.get(name) {
            Some(Outcome::Result(result)) => Ok(result),
            None => Err(Box::new(Reply::InputRequired {
                requests: vec![(name.to_owned(), request())],
                state: self.state.clone(),
            })),
            Some(Outcome::Error(error)) => Err(Box::new(Reply::Error(error.clone()))),
            Some(Outcome::TimedOut) => {
                let text = "the client did not give the input in time";
                Err(Box::new(Reply::Error(PeerError::internal(text))))
            }
            Some(Outcome::Cancelled | Outcome::Lost | Outcome::Closed) => {
                let text = "the client went away before it gave the input";
                Err(Box::new(Reply::Error(PeerError::internal(text))))
            }
        }
    }
}

/// Notification of the client for the application.
pub struct ClientNotification<C> {
    /// Properties of the revision of the notification.
    pub(crate) spec: &'static RevisionSpec,
    /// Method and parameters, as received.
    pub(crate) call: Call,
    /// Information of the transport about the frame.
    pub(crate) context: Arc<FrameContext<C>>,
}

impl<C> Clone for ClientNotification<C> {
    fn clone(&self) -> Self {
        Self {
            spec: self.spec,
            call: self.call.clone(),
            context: Arc::clone(&self.context),
        }
    }
}

impl<C> fmt::Debug for ClientNotification<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientNotification")
            .field("method", &self.method())
            .finish_non_exhaustive()
    }
}

impl<C> ClientNotification<C> {
    /// Returns the name of the method.
    pub fn method(&self) -> &str {
        &self.call.method
    }

    /// Returns the method as a value: [`MethodId::Vendor`] if no schema defines it.
    pub fn method_id(&self) -> MethodId {
        self.call.method.id()
    }

    /// Returns the parameters as received from the client.
    pub fn params(&self) -> Option<&JsonObject> {
        self.call.params.as_ref()
    }

    /// Returns the revision of the notification.
    pub fn revision(&self) -> Revision {
        self.spec.revision()
    }

    /// Returns the information of the transport about the frame.
    pub fn context(&self) -> &FrameContext<C> {
        &self.context
    }
}

/// Event for the application of a server.
#[derive(Debug)]
#[non_exhaustive]
pub enum ServerEvent<C> {
    /// A client has begun a session.
    Negotiated(SessionInfo),
    /// The client is ready for requests of the server.
    Ready,
    /// A request waits for a reply.
    Request(IncomingRequest<C>),
    /// The client has cancelled the request; a later reply is not sent.
    Cancelled {
        /// Key of the cancelled request.
        key: RequestKey,
        /// Reason that the client has given.
        reason: Option<String>,
    },
    /// The client subscribes to changes (from 2026-07-28 on).
    ///
    /// The endpoint sends published changes to the subscription. The endpoint has acknowledged the subscription, unless
    /// [`ServerConfig::application_acknowledges`](crate::ServerConfig::application_acknowledges) is set.
    Subscribed {
        /// The request, which lasts as long as the subscription.
        key: RequestKey,
        /// Changes that the client subscribes to and this server can announce.
        filter: Filter,
        /// Request of the subscription. The endpoint answers the request; the application does not reply.
        request: IncomingRequest<C>,
    },
    /// The client has sent a notification.
    Notification(ClientNotification<C>),
    /// A request of the server has ended.
    Completed(RequestKey, Outcome),
    /// Progress of a server request was received.
    Progress {
        /// Key of the server request.
        key: RequestKey,
        /// Progress of the request.
        progress: Progress,
        /// Parameters of the notification as received.
        params: JsonObject,
    },
    /// A message of the client was repaired.
    Repaired(Repairs),
    /// The client has violated the protocol.
    Violation(Violation),
    /// The endpoint is closed; no further events follow.
    Closed,
}

impl<C> From<Violation> for ServerEvent<C> {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

impl<C> From<Repairs> for ServerEvent<C> {
    fn from(repairs: Repairs) -> Self {
        Self::Repaired(repairs)
    }
}

impl<C> HeapSize for ServerEvent<C> {
    fn heap_size(&self) -> usize {
        match self {
            Self::Negotiated(info) => info.heap_size(),
            Self::Request(request) => request.heap_size(),
            Self::Cancelled { reason, .. } => reason.as_ref().map_or(0, String::len),
            Self::Subscribed {
                filter, request, ..
            } => filter.heap_size() + request.heap_size(),
            Self::Notification(notification) => notification.call.size(),
            Self::Completed(_, outcome) => outcome.heap_size(),
            Self::Progress {
                progress, params, ..
            } => progress.heap_size() + params.text().len(),
            Self::Repaired(repairs) => repairs.heap_size(),
            Self::Violation(violation) => violation.heap_size(),
            Self::Ready | Self::Closed => 0,
        }
    }
}

impl<C> HeapSize for IncomingRequest<C> {
    /// Returns the size including the received message, which is shared with the request in flight, because a cancelled
    /// request is no longer in flight.
    fn heap_size(&self) -> usize {
        let response =
            |(name, outcome): (&str, &Outcome)| EVENT_SIZE + name.len() + outcome.heap_size();
        let responses: usize = self.responses.iter().map(response).sum();
        let state = self.state.as_ref().map_or(0, String::len);
        self.received_call.call.size() + responses + state
    }
}

/// Answer of the application to a request of the client.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The request succeeds with a result.
    Result(RawResult),
    /// The request fails with an error.
    Error(PeerError),
    /// The request requires input, and is delivered again with the responses.
    ///
    /// In 2026-07-28 the endpoint sends a result of type `input_required`; to clients of older revisions the endpoint sends the
    /// input requests as requests.
    InputRequired {
        /// The input requests, with names that the application chooses.
        requests: Vec<(String, InputRequest)>,
        /// State that is returned to the application together with the responses.
        state: Option<String>,
    },
}

impl Reply {
    /// Creates a result from a generated type of the request's revision.
    ///
    /// # Errors
    /// [`SendError::Params`] if the result is not a JSON object.
    pub fn result<T: Encode + ?Sized>(value: &T) -> Result<Self, SendError> {
        RawResult::from_typed(value).map(Self::Result)
    }
}

impl From<PeerError> for Reply {
    fn from(error: PeerError) -> Self {
        Self::Error(error)
    }
}

impl From<RawResult> for Reply {
    fn from(result: RawResult) -> Self {
        Self::Result(result)
    }
}

/// Scope of a message of the server: a request, or the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The message belongs to a request in flight, and is sent on the stream of the request's answer.
    During(RequestKey),
    /// The message belongs to the client, not to a request.
    Peer,
}
