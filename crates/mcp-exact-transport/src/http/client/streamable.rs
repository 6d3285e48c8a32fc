//! Streamable HTTP: a POST for each message, a GET for the standalone stream, and the resumption of event streams.
//!
//! From 2026-07-28 on, closing the response of a POST cancels its request; up to 2025-11-25, broken streams are resumed
//! if the server has sent event ids.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use mcp_exact_session::http::get_headers;
use mcp_exact_session::{HttpHints, Revision, StreamEnd, StreamId, Transmit};
use tokio::sync::oneshot;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use super::describe::describe_head;
use super::exchange::{
    BodyKind, Connection, Position, READ_AFTER_ANSWER, StreamProgress, body_kind,
};
use super::post::{Post, retry_after};
use super::{Driver, EventFlags, MAX_PAUSE, SessionEnd};
use crate::clock;
use crate::endpoint::{is_request, repeat_lost};
use crate::observe;

/// Maximum time to wait until the server has accepted `notifications/initialized`, before other messages are sent.
const INITIALIZED_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time to wait for the response headers of the standalone stream before other messages are sent. Some servers
/// send these headers only with the first event.
const STREAM_OPEN_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit for the completion of pending POSTs when a client is closed.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Message that is being posted.
struct PostedMessage {
    /// Task of the POST.
    task: AbortHandle,
    /// Receiver that completes when the server has accepted the message.
    ///
    /// Present for a message that has no answer; the POST of such a message is completed even if the client is closed.
    is_done: Option<oneshot::Receiver<()>>,
}

/// Pending POSTs by stream.
type Posts = HashMap<StreamId, PostedMessage>;

/// Pending HTTP requests of a connection. Requests whose session was replaced are among them until they have ended.
#[derive(Default)]
pub(super) struct Exchanges {
    /// Tasks of the requests.
    tasks: JoinSet<()>,
    /// Pending POSTs.
    posts: Posts,
    /// Task that keeps the standalone stream of the session open.
    listener: Option<AbortHandle>,
}

impl Exchanges {
    /// Aborts the requests of a lost session, except those that still wait for their answers.
    fn leave_session(&mut self, connection: &Connection) {
        if let Some(listener) = self.listener.take() {
            listener.abort();
        }
        self.posts.retain(|stream, post| {
            let is_waiting = connection.is_waiting_on(*stream);
            if !is_waiting {
                post.task.abort();
            }
            is_waiting
        });
    }
}

/// Runs consecutive sessions until the server ends one or the client is closed.
pub(super) async fn run(driver: &Driver, exchanges: &mut Exchanges) -> SessionEnd {
    // A request may have ended while no session was there.
    exchanges.leave_session(&driver.connection);
    let flags = &driver.flags;
    loop {
        send_all(driver, exchanges).await;
        if flags.has_lost_session.load(Ordering::Acquire) {
            exchanges.leave_session(&driver.connection);
            return SessionEnd::Lost;
        }
        if EventFlags::take(&flags.has_negotiated) {
            begin(driver, exchanges).await;
            continue;
        }
        // The server has refused a request of an earlier session in the meantime.
        let can_repeat = driver.connection.shared.lock().can_repeat_lost();
        if can_repeat {
            repeat_lost(&driver.connection.shared);
            continue;
        }
        let Exchanges { tasks, posts, .. } = &mut *exchanges;
        if flags.has_closed.load(Ordering::Acquire) {
            return if EventFlags::take(&flags.wants_sse) {
                SessionEnd::UseSse
            } else {
                end_session(driver, std::mem::take(exchanges)).await;
                SessionEnd::Closed
            };
        }
        tokio::select! {
            Some(_) = tasks.join_next() => posts.retain(|_, post| !post.task.is_finished()),
            () = driver.notify.notified() => {}
            () = deadline(driver) => {
                driver.connection.shared.call(|state, now| state.handle_timeout(now));
            }
        }
    }
}

/// Starts to use a session: repeats requests that were lost with the previous session, and opens the standalone stream.
///
/// Servers send requests during a call on the standalone stream, and some servers drop requests while that stream is
/// not open (TypeScript 1.29); therefore the standalone stream is opened before the first call.
async fn begin(driver: &Driver, exchanges: &mut Exchanges) {
    driver.connection.forget_errors();
    repeat_lost(&driver.connection.shared);
    if let Some(opened) = listen(driver, exchanges) {
        let _ = timeout(STREAM_OPEN_TIMEOUT, opened).await;
    }
}

/// Discards the id and the standalone stream of a session that is replaced by a renegotiation.
fn leave_session(driver: &Driver, exchanges: &mut Exchanges) {
    driver.connection.forget_session();
    if let Some(listener) = exchanges.listener.take() {
        listener.abort();
    }
}

/// Sends the output of the endpoint: posts each message, and aborts a POST when the endpoint closes its stream.
async fn send_all(driver: &Driver, exchanges: &mut Exchanges) {
    while let Some((transmit, message)) = driver.take_output() {
        match transmit {
            Transmit::Frame { stream, http, .. } => {
                let has_answer = is_request(&message);
                if http.starts_session {
                    leave_session(driver, exchanges);
                }
                let tasks = &mut exchanges.tasks;
                let limit = (!has_answer).then_some(driver.settings.request_timeout.idle);
                let sent = (stream, message, http.clone());
                let (task, is_done) = post(driver, sent, limit, tasks);
                let mut post = PostedMessage {
                    task,
                    is_done: None,
                };
                if http.waits_for_status {
                    // The server learns that the session is open before it sees what uses it, unless it is slow to say so.
                    let _ = timeout(INITIALIZED_TIMEOUT, is_done).await;
                    // What was lost with a session that has ended by now is repeated in the next one.
                    let flags = &driver.flags;
                    if !flags.has_lost_session.load(Ordering::Acquire)
                        && EventFlags::take(&flags.has_negotiated)
                    {
                        begin(driver, exchanges).await;
                    }
                } else if !has_answer {
                    post.is_done = Some(is_done);
                }
                exchanges.posts.insert(stream, post);
            }
            Transmit::Close { stream } => {
                let Exchanges { tasks, posts, .. } = exchanges;
                let has_answer = |post: &PostedMessage| post.is_done.is_none();
                if posts.get(&stream).is_some_and(has_answer)
                    && let Some(PostedMessage { task, .. }) = posts.remove(&stream)
                {
                    if driver.connection.survives_disconnect() {
                        drop(tasks.spawn(close_post_later(task)))
                    } else {
                        task.abort()
                    }
                }
            }
            _ => {}
        }
    }
}

/// Aborts a POST, whose stream the endpoint has closed, after a delay.
///
/// Up to 2025-11-25, "disconnection SHOULD NOT be interpreted as the client cancelling its request"
/// (`basic/transports`, "Sending Messages to the Server"): the response is still read for some time, so that the
/// connection can be reused, and because some servers (Python 1.8.1) stop serving a session whose response is closed.
async fn close_post_later(task: AbortHandle) {
    sleep(READ_AFTER_ANSWER).await;
    task.abort();
}

/// Completes when the next timeout expires; never completes if there is none.
pub(super) async fn deadline(driver: &Driver) {
    let deadline = driver.connection.shared.lock().poll_timeout();
    match deadline.and_then(clock::instant) {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}

/// Starts a task that posts the first message of a stream; after `limit`, the message is given up.
///
/// Returns the handle of the task, and a receiver that completes when the exchange has ended.
fn post(
    driver: &Driver,
    (stream, message, http): (StreamId, Bytes, HttpHints),
    limit: Option<Duration>,
    tasks: &mut JoinSet<()>,
) -> (AbortHandle, oneshot::Receiver<()>) {
    let post = Post {
        connection: Arc::clone(&driver.connection),
        target: driver.endpoint.target.clone(),
        retry: driver.endpoint.retry,
        stream,
        session: driver.connection.session_id(),
    };
    let (done, is_done) = oneshot::channel();
    let task = tasks.spawn(async move {
        post.run(message, &http, limit).await;
        let _ = done.send(());
    });
    (task, is_done)
}

/// Outcome of a GET that opens or resumes a stream.
pub(super) enum GetOutcome {
    /// The request of the stream was answered.
    Answered,
    /// The stream ended after at least one event.
    Ended,
    /// The stream ended after some bytes, but without a complete event.
    WithoutEvents,
    /// The stream ended without a byte.
    WithoutBytes,
    /// The connection has failed, or the server has responded with status 429 or 5xx, or with status 409: the official SDKs
    /// do so while they take the previous stream for open, because they have not noticed that its connection is gone.
    Unreachable,
    /// The server has refused the request, for example with status 405 if it does not support the stream, or its
    /// response is not an event stream.
    Refused,
    /// The server does not know the session (status 404).
    UnknownSession,
}

/// Opens or resumes a stream by a GET and reads its messages until it ends; drops `opening` when the server has
/// responded.
pub(super) async fn get(
    connection: &Connection,
    target: &http::Uri,
    (revision, session): (Revision, Option<&HeaderValue>),
    stream: StreamId,
    is_of_request: bool,
    (position, opening): (&mut Position, Option<oneshot::Sender<()>>),
) -> GetOutcome {
    let last_event_id = position.last_event_id.as_deref();
    let headers = Connection::request_headers(get_headers(revision), session, last_event_id);
    let Ok(headers) = headers else {
        return GetOutcome::Refused;
    };
    let sent = connection
        .send(Method::GET, target, headers, Bytes::new(), true)
        .await;
    drop(opening);
    let Ok(response) = sent else {
        return GetOutcome::Unreachable;
    };
    let status = response.status();
    position.retry_after = retry_after(status, response.headers());
    match status {
        StatusCode::NOT_FOUND
            if session.is_some() && connection.session_id().as_ref() == session =>
        {
            return GetOutcome::UnknownSession;
        }
        // The server, or a proxy before it, has not received the whole request in time, or does not want it now.
        StatusCode::REQUEST_TIMEOUT
        | StatusCode::CONFLICT
        | StatusCode::TOO_EARLY
        | StatusCode::TOO_MANY_REQUESTS => return GetOutcome::Unreachable,
        status if status.is_server_error() => return GetOutcome::Unreachable,
        status if !status.is_success() => return GetOutcome::Refused,
        _ => {}
    }
    if !matches!(body_kind(&response), BodyKind::Events) {
        observe::no_event_stream(&describe_head(&response));
        return GetOutcome::Refused;
    }
    let body = response.into_body();
    let progress = connection.read_events(stream, is_of_request, body, position);
    match progress.await {
        _ if is_of_request && !connection.is_waiting_on(stream) => GetOutcome::Answered,
        StreamProgress::Nothing => GetOutcome::WithoutBytes,
        StreamProgress::Bytes => GetOutcome::WithoutEvents,
        StreamProgress::Events => GetOutcome::Ended,
    }
}

/// Starts a task that opens the standalone stream, and opens it again whenever it ends.
///
/// Returns a receiver that completes when the server has responded for the first time; `None` if the session has no
/// standalone stream.
fn listen(driver: &Driver, exchanges: &mut Exchanges) -> Option<oneshot::Receiver<()>> {
    if !driver.endpoint.opens_stream {
        return None;
    }
    let connection = Arc::clone(&driver.connection);
    let revision = connection.revision_with_streams()?;
    let (opening, opened) = oneshot::channel();
    let stream = connection
        .shared
        .call(|state, _| state.endpoint.open_standalone());
    let (target, retry) = (driver.endpoint.target.clone(), driver.endpoint.retry);
    let session = connection.session_id();
    let listener = exchanges.tasks.spawn(async move {
        let (mut position, mut opening) = (Position::default(), Some(opening));
        let (mut pause, mut has_streamed) = (retry, false);
        let is_lost = loop {
            let began = Instant::now();
            let first = (&mut position, opening.take());
            let of_session = (revision, session.as_ref());
            match get(&connection, &target, of_session, stream, false, first).await {
                // A server that ends its streams at once is asked less and less often.
                GetOutcome::WithoutEvents | GetOutcome::WithoutBytes
                    if began.elapsed() < MAX_PAUSE =>
                {
                    has_streamed = true;
                    pause = position.longer_pause(pause, retry);
                }
                GetOutcome::Answered
                | GetOutcome::Ended
                | GetOutcome::WithoutEvents
                | GetOutcome::WithoutBytes => {
                    has_streamed = true;
                    pause = position.pause(retry);
                }
                GetOutcome::Unreachable => pause = position.longer_pause(pause, retry),
                // An event that the server has forgotten: it starts again with what comes.
                GetOutcome::Refused if position.last_event_id.take().is_some() => {}
                GetOutcome::Refused => break false,
                // A server without such streams may say so by this status instead of 405. If the session is over, the next
                // message finds out.
                GetOutcome::UnknownSession => break has_streamed,
            }
            let least = position.pause(retry);
            connection.wait_to_reopen(pause, least).await;
        };
        connection.shared.call(|state, now| {
            if is_lost {
                state.endpoint.handle_session_end(now)
            } else {
                state.endpoint.handle_close(stream, StreamEnd::Clean, now)
            }
        });
    });
    exchanges.listener = Some(listener);
    Some(opened)
}

/// Waits for the pending POSTs of notifications and responses, aborts requests and streams, and ends the session on the
/// server.
async fn end_session(driver: &Driver, exchanges: Exchanges) {
    let Exchanges {
        mut tasks, posts, ..
    } = exchanges;
    let left = async {
        for is_done in posts.into_values().filter_map(|post| post.is_done) {
            let _ = is_done.await;
        }
    };
    let _ = timeout(CLOSE_TIMEOUT, left).await;
    tasks.shutdown().await;
    let Some(id) = driver.connection.forget_session() else {
        return;
    };
    let mut headers = HeaderMap::new();
    headers.insert(crate::http::SESSION_ID, id);
    if let Some(info) = driver.connection.shared.lock().endpoint.session_info()
        && let Ok(revision) = info.revision.as_str().parse()
    {
        headers.insert(crate::http::PROTOCOL_VERSION, revision);
    }
    let target = &driver.endpoint.target;
    let delete = driver
        .connection
        .send(Method::DELETE, target, headers, Bytes::new(), true);
    // A server may not support DELETE (405); a server that does not answer ends the session by its own timeout.
    let _ = timeout(Duration::from_secs(2), delete).await;
}

impl Connection {
    /// Returns the revision of the session if its event streams are opened by GET.
    ///
    /// A server that negotiates 2024-11-05 over this transport, although that revision defines only HTTP+SSE, is
    /// treated like a server of 2025-03-26 (Python 1.8.1, TypeScript 1.10).
    pub(super) fn revision_with_streams(&self) -> Option<Revision> {
        let state = self.shared.lock();
        let revision = state.endpoint.session_info()?.revision;
        let spec = mcp_exact_revisions::find(revision.as_str())?;
        let has_streams = spec.has_http_get_stream() || !spec.has_streamable_http();
        has_streams.then_some(revision)
    }

    /// Returns true if the revision of the session does not treat a closed response as the cancellation of its request.
    fn survives_disconnect(&self) -> bool {
        let state = self.shared.lock();
        let info = state.endpoint.session_info();
        let spec = info.and_then(|info| mcp_exact_revisions::find(info.revision.as_str()));
        spec.is_some_and(|spec| !spec.has_disconnect_cancellation())
    }
}
