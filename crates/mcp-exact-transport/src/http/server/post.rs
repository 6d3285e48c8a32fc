//! POST to the endpoint: a message of a client (`basic/transports`, "Sending Messages to the Server").
//!
//! The message is passed to the endpoint of its session or to a new endpoint; the response is JSON, an event stream or
//! a status, depending on the endpoint's output.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use mcp_exact_revisions::RevisionSpec;
use mcp_exact_session::http::{PostBody, RequestTarget};
use mcp_exact_session::{
    Binding, FrameContext, Principal, Refusal as Refused, SendError, StreamId, StreamKind,
};

use super::attachment::{Attachment, NextOutput, Output};
use super::body::EventStream;
use super::named::Face;
use super::patience::within;
use super::response::{
    Refusal, ResponseBody, empty, error, events, json, name_request, refuse, too_many, unavailable,
};
use super::service::{CheckedRequest, Inner, wait_for_expiry};
use super::session::{Session, UseGuard, new_id};
use super::shares::{Holder, Reached, Share};
use super::{bus, checks, resume};
use crate::clock;
use crate::endpoint::{RequestContext, ServerEndpoint, Shared, is_request};
use crate::event_log::EventId;
use crate::http::{SESSION_ID, protocol_headers};
use crate::observe;
use crate::sse;

/// Error of a request body.
type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Responds to a POST.
pub(super) async fn respond<B>(
    inner: &Arc<Inner>,
    request: CheckedRequest,
    body: B,
) -> Result<Response<ResponseBody>, Refusal>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    checks::check_post_types(&request.parts.headers)?;
    let (body, held) = read_body(inner, &request, body).await?;
    let taken = match take(inner, &request, &body, held) {
        Ok(Taken::Received(received)) => answer(inner, &request, received).await,
        Ok(Taken::Later(taken)) => taken.await,
        Err(refusal) => Err(refusal),
    };
    let mut taken = taken.and_then(|response| inner.count_unread(response, &request));
    if let Err(refusal) = &mut taken {
        name_request(refusal, &body);
    }
    taken
}

impl Inner {
    /// Parses a body within the limits and by the policy of the server.
    pub(super) fn parse_body<'b>(&self, body: &'b [u8]) -> PostBody<'b> {
        let settings = self.settings();
        PostBody::read(body, &settings.limits, settings.tolerance)
    }
}

/// Message that was passed to an endpoint.
///
/// Most messages are passed at once, without a future of their own: futures are moved several times, and those of nearly all
/// requests would be as large as those of the rare ones.
struct Received {
    /// Stream of the endpoint's output.
    attachment: Attachment,
    /// What is in use until the response ends.
    user: EndpointUser,
}

/// What a response uses until it ends.
enum EndpointUser {
    /// Endpoint without a session.
    Stateless(Listener),
    /// Session.
    Session(UseGuard),
}

/// Message that was taken.
enum Taken<'r> {
    /// The message was passed to its endpoint.
    Received(Received),
    /// The message needs more before: a new session, or one that another process has.
    Later(Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, Refusal>> + Send + 'r>>),
}

/// Takes a message of a client: passes it to the endpoint of its session or to a new endpoint.
fn take<'r>(
    inner: &'r Arc<Inner>,
    request: &'r CheckedRequest,
    body: &'r Bytes,
    held: Share,
) -> Result<Taken<'r>, Refusal> {
    inner.authorize(&request.parts, body)?;
    let context = context_of(request, held);
    let read = inner.parse_body(body);
    let posted = match &context.http {
        Some(http) => read.classify(http, &inner.settings().offer),
        None => RequestTarget::NoSessionId,
    };
    if inner.is_draining() && is_request(body) {
        return Err(unavailable("the server shuts down; try again later"));
    }
    let principal = request.principal.as_ref();
    match posted {
        RequestTarget::Stateless => stateless(inner, request, read, context).map(Taken::Received),
        RequestTarget::Initialize => {
            let initialized = initialize(inner, request, read, context);
            Ok(Taken::Later(Box::pin(initialized)))
        }
        RequestTarget::Session(id) => {
            let is_shared = inner.options().change_bus.is_some();
            if !(is_shared && bus::may_concern_others(body))
                && let Some(session) = resume::find_loaded(inner, &id, principal)?
            {
                return in_session(&session, read, context).map(Taken::Received);
            }
            let taken = in_sought_session(inner, request, id, body, read, context);
            Ok(Taken::Later(Box::pin(taken)))
        }
        RequestTarget::NoSessionId => Err(response_to_refusal(&Refused::SessionIdMissing)),
        RequestTarget::UnsupportedRevision(id, refusal) => Ok(Taken::Later(Box::pin(async move {
            // The body counts until the response.
            let _held = context;
            resume::check_known(inner, &id, principal).await?;
            Err(response_to_refusal(&refusal))
        }))),
        RequestTarget::Refused(refusal) => Err(response_to_refusal(&refusal)),
    }
}

/// Handles a message of a session that this process may not have, or whose messages may belong to requests of other
/// processes.
async fn in_sought_session(
    inner: &Arc<Inner>,
    request: &CheckedRequest,
    id: String,
    body: &Bytes,
    read: PostBody<'_>,
    context: FrameContext<RequestContext>,
) -> Result<Response<ResponseBody>, Refusal> {
    let principal = request.principal.as_ref();
    let own = match &inner.options().change_bus {
        Some(bus) => bus::forward(inner, &**bus, &id, principal, body).await?,
        None => Some(body.clone()),
    };
    let Some(own) = own else {
        return Ok(empty(StatusCode::ACCEPTED));
    };
    let session = resume::find(inner, &id, principal).await?;
    let read = if own.len() == body.len() {
        read
    } else {
        // Others have got the rest of a batch.
        inner.parse_body(&own)
    };
    let received = in_session(&session, read, context)?;
    answer(inner, request, received).await
}

/// Converts a refusal of the session crate to an HTTP response.
pub(super) fn response_to_refusal(refusal: &Refused) -> Refusal {
    let status = StatusCode::from_u16(refusal.status(false));
    Box::new(error(
        status.unwrap_or(StatusCode::BAD_REQUEST),
        &refusal.error(),
    ))
}

/// Returns the context that the endpoint receives with the messages of an HTTP request, whose body counts until the context
/// is dropped.
pub(super) fn context_of(request: &CheckedRequest, held: Share) -> FrameContext<RequestContext> {
    let context = RequestContext {
        remote: request.remote.map(|remote| remote.0),
        http: Some(Arc::clone(&request.parts)),
        _body: Some(Arc::new(held)),
    };
    let mut inbound = FrameContext::new(context);
    inbound.http = Some(protocol_headers(&request.parts.headers));
    inbound.principal.clone_from(&request.principal);
    inbound
}

/// Bytes that a request counts besides its body.
const REQUEST_BYTES: usize = 1 << 10;

/// Returns the response to a request whose body exceeds a limit of the bodies in flight.
fn no_room(reached: Reached) -> Refusal {
    match reached {
        Reached::Total => unavailable("too many bytes of messages at once; try again later"),
        Reached::OfClient => too_many(
            "too many bytes of messages of this client at once; try again when requests have ended",
            1,
        ),
    }
}

/// Reads a body within the size and time limits; returns it with its share of the bodies in flight.
pub(super) async fn read_body<B>(
    inner: &Inner,
    request: &CheckedRequest,
    body: B,
) -> Result<(Bytes, Share), Refusal>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    let limit = inner.settings().limits.message_bytes;
    let too_large = || {
        refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "the message is larger than the receiver allows; send a smaller message",
        )
    };
    if let Some(encoding) = request.parts.headers.get(http::header::CONTENT_ENCODING)
        && encoding != "identity"
    {
        let message = "compressed messages are not taken; send the message as it is";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    if body.size_hint().lower() > limit as u64 {
        return Err(too_large());
    }
    let mut held = inner.bodies.begin(Holder::of(request));
    let limits = inner.body_limits();
    let read = async {
        let mut body = std::pin::pin!(body);
        let mut whole = BytesMut::new();
        let mut first = Bytes::new();
        while let Some(frame) = body.frame().await {
            let broken = |_| refuse(StatusCode::BAD_REQUEST, "the body ends too early");
            let frame = frame.map_err(Into::into).map_err(broken)?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if first.len() + whole.len() + data.len() > limit {
                return Err(too_large());
            }
            // A message that arrives in one piece is counted once, and not copied.
            let is_whole = whole.is_empty() && first.is_empty() && body.is_end_stream();
            if !is_whole {
                held.grow(data.len(), limits).map_err(no_room)?;
            }
            if first.is_empty() && whole.is_empty() {
                first = data;
                continue;
            }
            if whole.is_empty() {
                whole.extend_from_slice(&std::mem::take(&mut first));
            }
            whole.extend_from_slice(&data);
        }
        Ok(if whole.is_empty() {
            first
        } else {
            whole.freeze()
        })
    };
    let late = || {
        refuse(
            StatusCode::REQUEST_TIMEOUT,
            "the body did not arrive in time",
        )
    };
    let read = within(inner.options().body_timeout, pin!(read)).await;
    let body = read.ok_or_else(late)??;
    inner.counters.count_received(body.len());
    let uncounted = (body.len() + REQUEST_BYTES).saturating_sub(held.amount());
    held.grow(uncounted, limits).map_err(no_room)?;
    Ok((body, held))
}

/// Passes a message that belongs to no session to a new endpoint.
fn stateless(
    inner: &Arc<Inner>,
    request: &CheckedRequest,
    body: PostBody<'_>,
    context: FrameContext<RequestContext>,
) -> Result<Received, Refusal> {
    if let Some(http) = &context.http {
        observe::request_of(http.header("mcp-protocol-version"), None);
    }
    let face = &request.face;
    let shared = super::endpoints::share(inner, &face.hooks, new_endpoint(face), None);
    let stream = open_post(&shared)?;
    let attachment = Attachment::new(Arc::clone(&shared), stream);
    receive(&shared, stream, body, context)?;
    let user = EndpointUser::Stateless(Listener(Arc::clone(inner), shared));
    Ok(Received { attachment, user })
}

/// Makes the subscriptions of a request end when the access token of the request expires.
///
/// The client is notified and may subscribe again; calls are still answered.
fn until_expiry(
    mut response: Response<ResponseBody>,
    request: &Parts,
    shared: Arc<Shared<ServerEndpoint>>,
) -> Response<ResponseBody> {
    if let Some(stream) = response.body_mut().events_mut() {
        let expired = wait_for_expiry(request);
        stream.end_with(async move {
            expired.await;
            shared.call(|state, _| state.endpoint.end_subscriptions());
            // What tells the client of the end is the last message of the stream.
            std::future::pending().await
        });
    }
    response
}

/// Guard that, when dropped, removes an endpoint from the endpoints that are notified of changes.
struct Listener(Arc<Inner>, Arc<Shared<ServerEndpoint>>);

impl Drop for Listener {
    fn drop(&mut self) {
        self.0.remove_listener(&self.1);
    }
}

/// Creates an endpoint, without a session so far.
fn new_endpoint(face: &Face) -> ServerEndpoint {
    let settings = Arc::clone(&face.settings);
    ServerEndpoint::new(settings, Binding::StreamableHttp, clock::now())
}

/// Opens a stream of the endpoint for the message of a POST.
pub(super) fn open_post(shared: &Arc<Shared<ServerEndpoint>>) -> Result<StreamId, Refusal> {
    let opened = shared.lock().endpoint.open(StreamKind::Post);
    opened.map_err(not_opened)
}

/// Returns the response to a request whose stream cannot be opened.
pub(super) fn not_opened(error: SendError) -> Refusal {
    match error {
        SendError::Closed => session_ended_refusal(),
        _ => unavailable("too many requests of this session at once; try again later"),
    }
}

/// Returns the response to a message in a session that has ended, with status 404.
fn session_ended_refusal() -> Refusal {
    refuse(StatusCode::NOT_FOUND, "the session has ended")
}

/// Passes a body to the endpoint; converts its refusal to a response.
pub(super) fn receive(
    shared: &Arc<Shared<ServerEndpoint>>,
    stream: StreamId,
    body: PostBody<'_>,
    context: FrameContext<RequestContext>,
) -> Result<(), Refusal> {
    let observed = shared.observe(body.bytes(), &context);
    let (received, _) = shared.receive_by(observed, |state, now| {
        state.endpoint.receive_post(stream, body, context, now)
    });
    received.map_err(|error| response_to_refusal(&error.refusal()))
}

/// Handles `initialize`: creates a session if the endpoint accepts the request.
async fn initialize(
    inner: &Arc<Inner>,
    request: &CheckedRequest,
    body: PostBody<'_>,
    context: FrameContext<RequestContext>,
) -> Result<Response<ResponseBody>, Refusal> {
    let seal = inner.options().session_ids.as_deref();
    let (face, holder) = (&request.face, Holder::of(request));
    let id = new_id(seal, context.principal.as_ref()).map_err(unavailable)?;
    let id = face.session_id(id);
    inner.admit_new(&id, &holder)?;
    let endpoint = new_endpoint(face);
    let shared = super::endpoints::share(inner, &face.hooks, endpoint, Some(Arc::clone(&id)));
    let principal: Option<Principal> = context.principal.clone();
    let session = Session::new(id, shared, principal, holder);
    let shared = session.shared();
    let stream = open_post(shared)?;
    let attachment = Attachment::new(Arc::clone(shared), stream);
    receive(shared, stream, body, context)?;
    let kept = shared.lock().endpoint.session_info().map(|info| {
        let name = info.implementation.as_ref();
        name.map_or(0, |name| name.text().len()) + info.capabilities.text().len()
    });
    let is_established = kept.is_some();
    if kept.is_some_and(|bytes| bytes > inner.options().client_bytes) {
        session.end();
        let message =
            "`clientInfo` and `capabilities` are larger than the server allows; declare less";
        return Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, message));
    }
    let mut unclaimed = None;
    if is_established {
        session.observe_request();
        inner.add_session(&session)?;
        unclaimed = Some(UnclaimedSession::new(inner, &session));
        if resume::save(inner, &session).await.is_err() && inner.options().change_bus.is_some() {
            // The next request of the client may reach another process, which would not know the session.
            inner.sessions.remove(&session);
            session.end();
            unclaimed.into_iter().for_each(UnclaimedSession::claim);
            return Err(unavailable(
                "the session store is not available; try again later",
            ));
        }
    }
    let user = EndpointUser::Session(session.enter());
    let mut response = respond_to_first(inner, attachment, user).await?;
    if let Some(unclaimed) = unclaimed
        && let Ok(id) = HeaderValue::from_str(session.id())
    {
        response.headers_mut().insert(SESSION_ID, id);
        unclaimed.claim();
    }
    Ok(response)
}

/// Guard of a new session whose id the client has not received; ends the session on drop, because no client can use it.
struct UnclaimedSession {
    /// State of the service.
    inner: Arc<Inner>,
    /// The session; `None` after the guard was released.
    session: Option<Arc<Session>>,
}

impl UnclaimedSession {
    fn new(inner: &Arc<Inner>, session: &Arc<Session>) -> Self {
        Self {
            inner: Arc::clone(inner),
            session: Some(Arc::clone(session)),
        }
    }

    /// Releases the guard without ending the session, because the response contains the id of the session.
    fn claim(mut self) {
        self.session = None;
    }
}

impl Drop for UnclaimedSession {
    fn drop(&mut self) {
        let runtime = tokio::runtime::Handle::try_current();
        if let (Some(session), Ok(runtime)) = (self.session.take(), runtime) {
            let inner = Arc::clone(&self.inner);
            runtime.spawn(async move { inner.end_session(session.id(), Some(&session)).await });
        }
    }
}

/// Passes a message to the endpoint of its session.
fn in_session(
    session: &Arc<Session>,
    body: PostBody<'_>,
    context: FrameContext<RequestContext>,
) -> Result<Received, Refusal> {
    if !session.is_used() && is_request(body.bytes()) {
        session.set_used();
    }
    let guard = session.enter();
    let shared = session.shared();
    let stream = open_post(shared)?;
    let attachment = Attachment::new(Arc::clone(shared), stream);
    session.observe_request();
    receive(shared, stream, body, context)?;
    let user = EndpointUser::Session(guard);
    Ok(Received { attachment, user })
}

/// Responds with the endpoint's output to a message.
async fn answer(
    inner: &Arc<Inner>,
    request: &CheckedRequest,
    received: Received,
) -> Result<Response<ResponseBody>, Refusal> {
    let Received { attachment, user } = received;
    let shared = match &user {
        EndpointUser::Stateless(Listener(_, shared)) => Some(Arc::clone(shared)),
        EndpointUser::Session(guard) => {
            // A session that cannot be saved is served nevertheless, and saved later.
            let _ = resume::save(inner, guard.session()).await;
            None
        }
    };
    let response = respond_to_first(inner, attachment, user).await?;
    Ok(match shared {
        Some(shared) => until_expiry(response, &request.parts, shared),
        None => response,
    })
}

/// Waits for the first output of a stream and responds: with JSON if the output is the only message and is ready within
/// `stream_after`, otherwise with an event stream.
///
/// A snapshot of the session that is due is saved before the response is sent.
async fn respond_to_first(
    inner: &Arc<Inner>,
    mut attachment: Attachment,
    user: EndpointUser,
) -> Result<Response<ResponseBody>, Refusal> {
    let options = inner.options();
    let first = pin!(poll_fn(|cx| attachment.poll_next(cx)));
    let first = within(options.stream_after, first).await;
    let session = match &user {
        EndpointUser::Stateless(_) => None,
        EndpointUser::Session(guard) => Some(guard.session()),
    };
    if let Some(session) = session {
        // A session that cannot be saved is served nevertheless, and saved later.
        let _ = resume::save_before_output(inner, session).await;
    }
    match first {
        Some(Some(NextOutput::Frame { last: true } | NextOutput::Status)) => {
            return Ok(single_response(attachment.take()));
        }
        Some(None) if session.is_some_and(|session| session.is_closed()) => {
            return Err(session_ended_refusal());
        }
        // The message has no answer: it is a notification or a response, or its request was cancelled.
        Some(None) => return Ok(empty(StatusCode::ACCEPTED)),
        Some(Some(NextOutput::Frame { last: false })) | None => {}
    }
    let (mut id, mut recorded) = (None, Vec::new());
    if let Some(session) = session {
        attachment.take_over(inner, session);
        recorded = attachment.begin_log().await;
        id = attachment.first_event_id().filter(|_| has_priming(session));
    }
    let mut stream = EventStream::new(Some(attachment), options.keep_alive);
    if let Some(id) = id {
        prime(&mut stream, id, options.retry);
    }
    stream.send_recorded(recorded);
    stream.keep(user);
    Ok(events(stream))
}

/// Adds the priming event to a stream; if the client receives no other event, the client resumes the stream from the id
/// of the priming event (from 2025-11-25 on).
pub(super) fn prime(stream: &mut EventStream, id: EventId, retry: Duration) {
    let retry = u64::try_from(retry.as_millis()).ok();
    sse::encode_priming(stream.prelude(), Some(&id.to_string()), retry);
}

/// Returns true if the revision of a session has priming events, which have an id and carry no message (from 2025-11-25
/// on).
pub(super) fn has_priming(session: &Session) -> bool {
    let state = session.shared().lock();
    let info = state.endpoint.session_info();
    let spec = info.and_then(|info| mcp_exact_revisions::find(info.revision.as_str()));
    spec.is_some_and(RevisionSpec::has_sse_priming)
}

/// Creates the complete response from the only output of a stream.
fn single_response(output: Option<Output>) -> Response<ResponseBody> {
    let status = |status: u16| StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    match output {
        Some(Output::Frame {
            bytes,
            status: code,
        }) => json(status(code.unwrap_or(200)), bytes.into()),
        Some(Output::Status(code)) => empty(status(code)),
        None => empty(StatusCode::ACCEPTED),
    }
}
