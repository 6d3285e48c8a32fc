//! GET and DELETE of a session (`basic/transports`, "Listening for Messages from the Server", "Resumability and Redelivery",
//! "Session Management", 2025-03-26 to 2025-11-25).
//!
//! A GET opens the standalone stream, which carries messages that belong to no request, or resumes a stream of the
//! session. Only the latest connection of a stream receives its messages.

use std::sync::Arc;

use http::{Method, Response, StatusCode};
use mcp_exact_session::http::{RequestTarget, classify_delete, classify_get};
use mcp_exact_session::{Refusal as Refused, StreamId};

use super::attachment::Attachment;
use super::body::EventStream;
use super::post::{has_priming, not_opened, prime, response_to_refusal};
use super::replay::{Replay, read_page};
use super::response::{Refusal, ResponseBody, empty, events, refuse, unavailable};
use super::service::{CheckedRequest, Inner, method_not_allowed};
use super::session::Session;
use super::{checks, resume};
use crate::event_log::{EventId, EventLog, EventLogError, LogStream};
use crate::http::{LAST_EVENT_ID, protocol_headers};

/// Returns the id of the session to which a GET or DELETE belongs.
async fn session_id_of(inner: &Arc<Inner>, request: &CheckedRequest) -> Result<String, Refusal> {
    let http = protocol_headers(&request.parts.headers);
    let offer = &inner.settings().offer;
    let posted = if request.parts.method == Method::DELETE {
        classify_delete(&http, offer, true)
    } else {
        classify_get(&http, offer, true)
    };
    match posted {
        RequestTarget::Session(id) => Ok(id),
        RequestTarget::UnsupportedRevision(id, refusal) => {
            resume::check_known(inner, &id, request.principal.as_ref()).await?;
            Err(response_to_refusal(&refusal))
        }
        RequestTarget::Refused(Refused::MethodNotAllowed) => Err(method_not_allowed("POST")),
        RequestTarget::Refused(refusal) => Err(response_to_refusal(&refusal)),
        _ => Err(response_to_refusal(&Refused::SessionIdMissing)),
    }
}

/// Responds to a GET: opens or resumes an event stream.
pub(super) async fn respond(
    inner: &Arc<Inner>,
    request: &CheckedRequest,
) -> Result<Response<ResponseBody>, Refusal> {
    let id = session_id_of(inner, request).await?;
    let session = resume::find(inner, &id, request.principal.as_ref()).await?;
    if session.is_closed() {
        return Err(resume::unknown());
    }
    session.observe_request();
    checks::check_get_types(&request.parts.headers)?;
    if inner.is_draining() {
        let message = "the server shuts down; try again later";
        return Err(unavailable(message));
    }
    let (mut stream, is_standalone) = match request.parts.headers.get(LAST_EVENT_ID) {
        Some(id) => {
            let id = id.to_str().ok().and_then(|id| id.parse().ok());
            let message = "`Last-Event-ID` was not issued by this server";
            let id: EventId = id.ok_or_else(|| refuse(StatusCode::BAD_REQUEST, message))?;
            let stream = resumed(inner, &session, id).await?;
            let is_standalone = stream.is_standalone(&session);
            (stream, is_standalone)
        }
        None => (standalone(inner, &session).await?, true),
    };
    // The stream of a request brings its answer before the service ends. A client resumes it with a new token.
    if is_standalone {
        Inner::end_with_service(&mut stream, &request.parts);
    } else {
        Inner::end_with_credentials(&mut stream, &request.parts);
    }
    session.set_used();
    stream.keep(session.enter());
    inner.count_unread(events(stream), request)
}

/// Returns the standalone stream of a session: a new stream, or the stream of an older connection, which this
/// connection takes over.
async fn standalone(inner: &Arc<Inner>, session: &Arc<Session>) -> Result<EventStream, Refusal> {
    let options = inner.options();
    let is_new = session.standalone().is_none();
    let mut attachment = attach_standalone(inner, session)?;
    let recorded = if is_new {
        attachment.begin_log().await
    } else {
        Vec::new()
    };
    let id = attachment.last_event_id().filter(|_| has_priming(session));
    let mut stream = EventStream::new(Some(attachment), options.keep_alive);
    match id {
        Some(id) => prime(&mut stream, id, options.retry),
        // The head of the response leaves with the first bytes of its body.
        None => crate::sse::encode_comment(stream.prelude(), "open"),
    }
    stream.send_recorded(recorded);
    Ok(stream)
}

/// Attaches to the standalone stream of this process; opens the stream if the session has none.
pub(super) fn attach_standalone(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
) -> Result<Attachment, Refusal> {
    let stream = session.open_standalone().map_err(not_opened)?;
    let mut attachment = Attachment::new(Arc::clone(session.shared()), stream);
    attachment.take_over(inner, session);
    Ok(attachment)
}

/// Resumes a stream after an event: sends the later events of the log, then new events.
///
/// The first events are read before the response starts, so that the status of the response is an error if the log does
/// not contain the events.
async fn resumed(
    inner: &Arc<Inner>,
    session: &Arc<Session>,
    after: EventId,
) -> Result<EventStream, Refusal> {
    let options = inner.options();
    let gone = |message: &str| refuse(StatusCode::BAD_REQUEST, message);
    let Some(log) = &options.event_log else {
        return Err(gone("streams of this server cannot be resumed"));
    };
    // From here on nobody else takes messages of the stream, not even one that is being recorded for another connection: what is
    // recorded is read, and the rest follows.
    let stream = StreamId::from_number(after.stream);
    let attachment = session.has(stream).then(|| {
        let mut attachment = Attachment::new(Arc::clone(session.shared()), stream);
        attachment.take_over(inner, session);
        attachment
    });
    let key = session.log_stream(stream);
    let missed = match read_page(&**log, &key, after.sequence).await {
        Ok(events) => events,
        // The stream was that of a process that is gone, and of no request: this process continues with its own one.
        Err(EventLogError::Abandoned) if attachment.is_none() => {
            return standalone(inner, session).await;
        }
        // Nothing was sent on the stream yet.
        Err(EventLogError::UnknownStream) if attachment.is_some() && after.sequence == 0 => {
            Vec::new()
        }
        Err(EventLogError::Unavailable(_)) => return Err(no_log()),
        Err(error) => return Err(gone(&error.to_string())),
    };
    if let Some(attachment) = attachment.as_ref().filter(|_| missed.is_empty())
        && attachment.has_lost(&**log, after.sequence)
    {
        return Err(gone("the event log has lost events of the stream"));
    }
    let is_over = match missed.last() {
        Some(event) => event.last,
        None if attachment.is_some() => false,
        None => has_ended_with(&**log, &key, after.sequence).await?,
    };
    let is_elsewhere = attachment.is_none() && !is_over;
    let mut stream = EventStream::new(attachment.filter(|_| !is_over), options.keep_alive);
    stream.replay(Replay::new(Arc::clone(log), key), &missed);
    if is_elsewhere && options.change_bus.is_some() {
        stream.follow(inner, session, log, after);
        stream.end_with(inner.drained());
    }
    if missed.is_empty() {
        crate::sse::encode_comment(stream.prelude(), "resumed");
    }
    Ok(stream)
}

/// Returns the response to a request that needs the event log while it is not available.
fn no_log() -> Refusal {
    unavailable("the event log is not available; try again later")
}

/// Returns true if the event with this sequence number is the last event of its stream.
async fn has_ended_with(
    log: &dyn EventLog,
    key: &LogStream,
    sequence: u64,
) -> Result<bool, Refusal> {
    let Some(before) = sequence.checked_sub(1) else {
        return Ok(false);
    };
    let events = match log.read_after(key, before, 1).await {
        Ok(events) => events,
        Err(EventLogError::Unavailable(_)) => return Err(no_log()),
        // The log has removed the event.
        Err(_) => return Ok(false),
    };
    let event = events.first();
    Ok(event.is_some_and(|event| event.sequence == sequence && event.last))
}

/// Responds to a DELETE: ends the session.
///
/// A session of another process is ended without being resumed, because a resumed session would count towards the limit
/// of sessions of this process.
pub(super) async fn end_session(
    inner: &Arc<Inner>,
    request: &CheckedRequest,
) -> Result<Response<ResponseBody>, Refusal> {
    let id = session_id_of(inner, request).await?;
    let principal = request.principal.as_ref();
    let session = resume::find_here(inner, &id, principal).await?;
    match &session {
        Some(session) => session.observe_request(),
        None => resume::check_resumable(inner, &id, principal).await?,
    }
    inner.end_session(&id, session.as_ref()).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
