//! HTTP+SSE of 2024-11-05 (`basic/transports`, "HTTP with SSE"): every message of the server is received on one event
//! stream, whose first event names the URL for POSTs.
//!
//! The session ends with the event stream.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri};
use http_body_util::BodyExt;
use mcp_exact_session::frame::Oversized;
use mcp_exact_session::http::post_headers;
use mcp_exact_session::{
    Binding, ClientEndpoint, HttpHints, StreamEnd, StreamId, Transmit, TransportFailure,
};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::exchange::{BodyKind, Connection, NOT_ACCEPTED, body_kind};
use super::post::failure_of;
use super::send::{HttpBody, HttpClientError};
use super::streamable::{CLOSE_TIMEOUT, deadline};
use super::target::{InvalidTarget, resolve, url_for_logs};
use super::{Driver, EventFlags, HttpTransport};
use crate::endpoint::is_request;
use crate::http::EVENT_STREAM;
use crate::sse::{Decoded, Decoder};
use crate::transport::Received;

/// Maximum time from the request that opens the event stream to its first event.
const FIRST_EVENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time to wait for the response to a POST before the next message is posted.
///
/// Some servers respond to a POST only after they have handled its message, which may require the next message.
const POST_RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs one session over HTTP+SSE until the session ends.
pub(super) async fn run(driver: &Driver) -> Result<(), HttpClientError> {
    let late = |_| "the server did not send the event `endpoint` of HTTP+SSE in time";
    let limit = FIRST_EVENT_TIMEOUT.min(driver.settings.handshake_timeout);
    let (mut events, messages) = tokio::select! {
        opened = timeout(limit, open(driver)) => opened.map_err(late)??,
        () = driver.closed_by_program() => return Ok(()),
    };
    if let Some(stream) = begin(driver) {
        serve(driver, &mut events, stream, &messages).await;
    }
    Ok(())
}

/// Opens the event stream and reads the URL for POSTs.
async fn open(driver: &Driver) -> Result<(Events, Uri), HttpClientError> {
    let connection = &driver.connection;
    let mut headers = HeaderMap::new();
    headers.insert(http::header::ACCEPT, HeaderValue::from_static(EVENT_STREAM));
    let target = &driver.endpoint.target;
    let response = connection
        .send(Method::GET, target, headers, Bytes::new(), true)
        .await?;
    if !response.status().is_success() || !matches!(body_kind(&response), BodyKind::Events) {
        return Err(connection.describe_refusal(target, response).await.into());
    }
    let mut events = Events {
        body: response.into_body(),
        decoder: Decoder::new(connection.limits.message_bytes).with_budget(&connection.limits),
    };
    let messages = first_event(&mut events, target).await?;
    Ok((events, messages))
}

/// Event stream of a session, as a sequence of decoded events.
struct Events {
    /// Body of the response.
    body: HttpBody,
    /// Decoder of the body.
    decoder: Decoder,
}

impl Events {
    /// Returns the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Decoded> {
        loop {
            if let Some(decoded) = self.decoder.next_event() {
                return Some(decoded);
            }
            if let Ok(data) = self.body.frame().await?.ok()?.into_data() {
                self.decoder.push(&data);
            }
        }
    }
}

/// Reads the first event, which names the URL for POSTs, and resolves its reference against `base`.
async fn first_event(events: &mut Events, base: &Uri) -> Result<Uri, HttpClientError> {
    let first = match events.next().await {
        Some(Decoded::Event(event)) if event.event == "endpoint" => {
            let reference = String::from_utf8_lossy(&event.data);
            return resolve(base, &reference).map_err(|error| {
                let problem = match error {
                    InvalidTarget::OtherOrigin(url) => {
                        let base = url_for_logs(&base.to_string());
                        format!("`{url}`, which belongs to another origin than {base}")
                    }
                    InvalidTarget::NotHttp(url) => format!("`{url}`, which is no URL"),
                };
                let expected =
                    "it must name a path, such as `/messages?session=1`, or its public URL";
                format!("the server names for messages {problem}: {expected}").into()
            });
        }
        Some(Decoded::Event(event)) => format!("an event named `{}`", event.event),
        Some(Decoded::Oversized { .. }) => "an event that is too large".to_owned(),
        None => "its end".to_owned(),
    };
    Err(format!(
        "the server does not speak HTTP+SSE: its event stream does not begin with the event `endpoint`, but with {first}"
    )
    .into())
}

/// Replaces the endpoint by an endpoint for HTTP+SSE and returns the stream of the session; `None` if the application
/// has closed the client.
fn begin(driver: &Driver) -> Option<StreamId> {
    EventFlags::take(&driver.flags.has_closed);
    let settings = Arc::clone(&driver.settings);
    driver.connection.shared.call(|state, now| {
        if state.role.is_closed {
            return None;
        }
        let endpoint = ClientEndpoint::new(settings, Binding::HttpSse, None, now);
        state.role.restart();
        // A session that ends, because its transport carries no revision of both peers, is replaced by one over Streamable HTTP.
        state.role.replaces_lost_sessions = driver.endpoint.transport == HttpTransport::Automatic;
        state.replace(endpoint);
        state.endpoint.set_endpoint_known();
        Some(state.endpoint.open_standalone())
    })
}

/// Posts the messages of the endpoint to the URL `messages` and reads the event stream, until the session ends.
async fn serve(driver: &Driver, events: &mut Events, stream: StreamId, messages: &Uri) {
    let connection = &driver.connection;
    let mut tasks = JoinSet::new();
    let mut previous: Option<oneshot::Receiver<()>> = None;
    let wants_input = || connection.shared.lock().endpoint.wants_input();
    let accept_timeout = driver.settings.request_timeout.idle;
    loop {
        while let Some((transmit, message)) = driver.take_output() {
            if let Transmit::Frame { stream, http, .. } = transmit {
                // The timeout of a request ends it; nothing else ends other messages.
                let limit = (!is_request(&message)).then_some(accept_timeout);
                // One after the other, because messages keep their order: a server refuses what arrives before
                // `notifications/initialized`, and does not know yet what is cancelled.
                let (done, is_done) = oneshot::channel();
                let before = previous.replace(is_done);
                let post = send(
                    Arc::clone(connection),
                    messages.clone(),
                    (stream, message, http),
                    limit,
                );
                tasks.spawn(async move {
                    if let Some(before) = before {
                        let _ = timeout(POST_RESPONSE_TIMEOUT, before).await;
                    }
                    post.await;
                    drop(done);
                });
            }
        }
        let flags = &driver.flags;
        if flags.has_closed.load(Ordering::Acquire)
            || flags.has_lost_session.load(Ordering::Acquire)
        {
            // Messages that the application has sent before it closed the client are still posted.
            let left = async { while tasks.join_next().await.is_some() {} };
            let _ = timeout(CLOSE_TIMEOUT, left).await;
            break;
        }
        tokio::select! {
            Some(_) = tasks.join_next() => {}
            () = driver.notify.notified() => {}
            () = deadline(driver) => {
                connection.shared.call(|state, now| state.handle_timeout(now));
            }
            // A server that does not accept answers is not read: what else happens here must not wait for it.
            event = events.next(), if wants_input() => match event {
                Some(Decoded::Event(event)) if event.event == "message" => {
                    connection.receive(stream, Received::Frame(&event.data)).await;
                }
                Some(Decoded::Event(_)) => {}
                Some(Decoded::Oversized { head, tail, size, limit }) => {
                    let message = Oversized { head: &head, tail: &tail, size: Some(size), limit };
                    connection.receive(stream, Received::Oversized(message)).await;
                }
                None => {
                    connection.store_error("the server ended the event stream".to_owned());
                    connection.shared.call(|state, now| {
                        state.endpoint.handle_close(stream, StreamEnd::Lost, now);
                    });
                    break;
                }
            },
        }
    }
    tasks.shutdown().await;
}

/// Posts a message to the URL `messages`, and notifies the endpoint of success or failure; after `limit`, the message is given up.
async fn send(
    connection: Arc<Connection>,
    messages: Uri,
    (stream, message, http): (StreamId, Bytes, HttpHints),
    limit: Option<Duration>,
) {
    let headers =
        Connection::request_headers(post_headers(&http), connection.session_id().as_ref(), None);
    let failure = match headers {
        Ok(headers) => {
            // The stream is that of one session, so that `initialize` begins no other one.
            let may_repeat = !is_request(&message);
            let sent = connection.send(Method::POST, &messages, headers, message, may_repeat);
            let sent = match limit {
                Some(limit) => timeout(limit, sent).await,
                None => Ok(sent.await),
            };
            match sent {
                Ok(Ok(response)) if response.status().is_success() => None,
                Ok(Ok(response)) => Some(failure_of(&connection, response).await),
                Ok(Err(error)) => {
                    connection.set_unsent(stream, error.is_unsent);
                    Some(error.of_transport())
                }
                Err(_) => {
                    connection.store_error(NOT_ACCEPTED.to_owned());
                    Some(TransportFailure::Lost)
                }
            }
        }
        Err(_) => Some(TransportFailure::Lost),
    };
    connection.shared.call(|state, now| match failure {
        None => state.endpoint.handle_close(stream, StreamEnd::Clean, now),
        Some(why) => state.endpoint.handle_failure(stream, why, now),
    });
}
