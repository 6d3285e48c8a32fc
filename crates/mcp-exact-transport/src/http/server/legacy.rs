//! HTTP+SSE of 2024-11-05 (`basic/transports`, "HTTP with SSE"): one event stream to the client, a POST for each
//! message of the client. The session lasts as long as its event stream. If a message reaches a process that does not
//! have the event stream, the change bus forwards it.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body::Body;
use mcp_exact_session::{Binding, StreamKind};

use super::attachment::{Attachment, Output};
use super::body::EventStream;
use super::post::{context_of, open_post, read_body, receive};
use super::response::{Refusal, ResponseBody, empty, events, refuse, unavailable};
use super::service::{CheckedRequest, Inner, wait_for_expiry};
use super::session::{Session, new_id};
use super::shares::Holder;
use super::{bus, checks, resume};
use crate::clock;
use crate::endpoint::{ServerEndpoint, is_request};
use crate::http::{JSON, has_media_type};
use crate::observe;
use crate::sse;
use crate::store::SessionStore;

/// Responds to the GET that starts a session and opens its event stream.
pub(super) async fn open(
    inner: &Arc<Inner>,
    request: &CheckedRequest,
) -> Result<Response<ResponseBody>, Refusal> {
    checks::check_get_types(&request.parts.headers)?;
    if inner.is_draining() {
        return Err(unavailable("the server shuts down; try again later"));
    }
    let failed = |message: &str| refuse(StatusCode::INTERNAL_SERVER_ERROR, message);
    let face = &request.face;
    let id = face.session_id(new_id(None, None).map_err(failed)?);
    let holder = Holder::of(request);
    inner.admit_new(&id, &holder)?;
    let settings = Arc::clone(&face.settings);
    let endpoint = ServerEndpoint::new(settings, Binding::HttpSse, clock::now());
    let shared = super::endpoints::share(inner, &face.hooks, endpoint, Some(Arc::clone(&id)));
    let opened = shared.call(|state, _| state.endpoint.open(StreamKind::Standalone));
    let stream = opened.map_err(|error| failed(&error.to_string()))?;
    let session = Session::new(Arc::clone(&id), shared, request.principal.clone(), holder);
    inner.add_session(&session)?;
    // Also removes the session if the client disconnects before the response starts.
    let end = EndOfSession(Arc::clone(inner), Arc::clone(&session));
    if inner.options().change_bus.is_some()
        && let Some(store) = &inner.options().session_store
    {
        let lifetime = resume::lifetime(inner);
        let saved = resume::save_place(&**store, &session, 1, lifetime).await;
        if saved.is_err() {
            let message = "the session store is not available; try again later";
            return Err(unavailable(message));
        }
        tokio::spawn(keep_record(
            Arc::clone(store),
            Arc::downgrade(&session),
            inner.options().idle / 2,
            lifetime,
        ));
    }
    let attachment = Attachment::new(Arc::clone(session.shared()), stream);
    let mut body = EventStream::new(Some(attachment), inner.options().keep_alive);
    let messages = format!("{}?sessionId={id}", inner.messages_path(face));
    sse::encode_event(body.prelude(), None, Some("endpoint"), messages.as_bytes());
    let (drained, answering) = (inner.drained(), Arc::clone(&session));
    let expired = wait_for_expiry(&request.parts);
    body.end_with(async move {
        let answered = async {
            drained.await;
            answering.answered().await;
            answering.flushed(stream).await;
        };
        tokio::select! {
            () = answered => {}
            () = expired => {}
        }
    });
    body.keep((session.enter(), end));
    inner.count_unread(events(body), request)
}

/// Keeps a record of a session in the session store as long as the session exists.
///
/// Other processes read the principal of the session from the record, and forward the client's messages on the change
/// bus.
async fn keep_record(
    store: Arc<dyn SessionStore>,
    session: Weak<Session>,
    interval: Duration,
    lifetime: Duration,
) {
    let Some(id) = session.upgrade().map(|session| Arc::clone(session.id())) else {
        return;
    };
    let pause = (interval / 2).min(Duration::from_secs(1));
    let (mut version, mut last) = (1, Instant::now());
    while let Some(session) = session.upgrade().filter(|session| !session.has_ended()) {
        if last.elapsed() >= interval {
            version += 1;
            match resume::save_place(&*store, &session, version, lifetime).await {
                Ok(()) => last = Instant::now(),
                // The next turn tries again.
                Err(error) => observe::store_failed("saving a session", &error),
            }
        }
        drop(session);
        tokio::time::sleep(pause).await;
    }
    // What cannot be removed goes by its lifetime.
    if let Err(error) = store.remove(&id, lifetime).await {
        observe::store_failed("removing a session", &error);
    }
}

/// Forwards a message to the process that has the event stream of its session; status 404 if there is no such session.
async fn forward<B>(
    inner: &Arc<Inner>,
    request: &CheckedRequest,
    id: &str,
    body: B,
) -> Result<Response<ResponseBody>, Refusal>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let Some(change_bus) = &inner.options().change_bus else {
        return Err(unknown_session());
    };
    let record = resume::load_unsealed(inner, id, request.principal.as_ref()).await?;
    if !record.snapshot.is_empty() {
        return Err(unknown_session());
    }
    let (body, _held) = read_body(inner, request, body).await?;
    inner.authorize(&request.parts, &body)?;
    bus::send_frame(&**change_bus, id, &body, inner.required_scopes(&body)).await?;
    Ok(empty(StatusCode::ACCEPTED))
}

/// Returns the response for an unknown session, with status 404.
fn unknown_session() -> Refusal {
    let message = "no such session; open the event stream again";
    refuse(StatusCode::NOT_FOUND, message)
}

/// Guard in the event stream of a session that removes the session on drop.
struct EndOfSession(Arc<Inner>, Arc<Session>);

impl Drop for EndOfSession {
    fn drop(&mut self) {
        let Self(inner, session) = self;
        if inner.sessions.remove(session) {
            session.end();
        }
    }
}

/// Responds to a POST with a message of the client. If the message is a request, its response is sent on the event
/// stream.
pub(super) async fn post<B>(
    inner: &Arc<Inner>,
    request: CheckedRequest,
    body: B,
) -> Result<Response<ResponseBody>, Refusal>
where
    B: Body<Data = Bytes> + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if !has_media_type(&request.parts.headers, JSON) {
        let message = "the body must be `application/json`";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let query = request.parts.uri.query().unwrap_or("");
    let mut members = query.split('&').filter_map(|member| member.split_once('='));
    let id = members
        .find(|(name, _)| *name == "sessionId")
        .map(|(_, id)| id);
    let missing = || {
        refuse(
            StatusCode::BAD_REQUEST,
            "`sessionId` is missing from the query",
        )
    };
    let id = id.ok_or_else(missing)?;
    let principal = request.principal.as_ref();
    let Some(session) = inner.sessions.find(id, principal, Binding::HttpSse) else {
        return forward(inner, &request, id, body).await;
    };
    let _guard = session.enter();
    let (body, held) = read_body(inner, &request, body).await?;
    inner.authorize(&request.parts, &body)?;
    if inner.is_draining() && is_request(&body) {
        return Err(unavailable("the server shuts down; try again later"));
    }
    let context = context_of(&request, held);
    let shared = session.shared();
    let stream = open_post(shared)?;
    let mut attachment = Attachment::new(Arc::clone(shared), stream);
    let body = inner.parse_body(&body);
    receive(shared, stream, body, context)?;
    poll_fn(|cx| attachment.poll_next(cx)).await;
    let status = match attachment.take() {
        Some(Output::Status(status)) => StatusCode::from_u16(status).ok(),
        _ => None,
    };
    Ok(empty(status.unwrap_or(StatusCode::ACCEPTED)))
}
