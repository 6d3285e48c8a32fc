//! The POST of one message, its response, and the resumption of the response's event stream.
//!
//! The response is passed to the endpoint, which decides what a failure means.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use mcp_exact_session::frame::Oversized;
use mcp_exact_session::http::{describe_body, is_message, post_headers};
use mcp_exact_session::{HttpHints, StreamEnd, StreamId, TransportFailure};
use tokio::time::timeout;

use super::challenge::refusal_in;
use super::describe::{coding_of, describe_head, remedy_of};
use super::exchange::{
    BodyKind, CompleteBody, Connection, NOT_ACCEPTED, Position, body_kind, may_repeat,
};
use super::send::HttpBody;
use super::streamable::{GetOutcome, get};
use super::target::url_for_logs;
use crate::endpoint::is_request;
use crate::observe;
use crate::transport::Received;

/// Maximum number of attempts to resume a stream that carries the answer to a request.
const MAX_RESUME_ATTEMPTS: u32 = 8;
/// Maximum number of consecutive resumptions that receive an empty stream.
///
/// A server that has lost a request may respond in this way (rmcp 3.11); a server that makes its clients poll sends at
/// least one event (`basic/transports`, "Sending Messages to the Server").
const MAX_EMPTY_RESUMPTIONS: u32 = 3;

/// HTTP exchange of one message of the client.
pub(super) struct Post {
    /// State that all HTTP exchanges share.
    pub(super) connection: Arc<Connection>,
    /// URL of the server.
    pub(super) target: http::Uri,
    /// Delay before a stream is resumed, if the server sets none.
    pub(super) retry: Duration,
    /// Stream of the message.
    pub(super) stream: StreamId,
    /// Id of the session of the message, which may be replaced by another one before the message is answered.
    pub(super) session: Option<HeaderValue>,
}

impl Post {
    /// Posts the message and passes its response, or its failure, to the endpoint.
    pub(super) async fn run(mut self, message: Bytes, hints: &HttpHints, limit: Option<Duration>) {
        let stream = self.stream;
        if is_request(&message) {
            self.connection.set_unsent(stream, false);
        }
        let exchange = self.exchange(message, hints);
        let exchanged = match limit {
            Some(limit) => timeout(limit, exchange).await,
            None => Ok(exchange.await),
        };
        let failure = exchanged.unwrap_or_else(|_| {
            self.connection.store_error(NOT_ACCEPTED.to_owned());
            Some(ExchangeError::Failed(TransportFailure::Lost))
        });
        if matches!(failure, Some(ExchangeError::Unsent)) {
            self.connection.set_unsent(stream, true);
        }
        self.connection.shared.call(|state, now| match failure {
            Some(ExchangeError::SessionLost) => {
                // The answers to other requests may still come, but not the one to this request.
                state.endpoint.handle_session_end(now);
                let failure = TransportFailure::Lost;
                state.endpoint.handle_failure(stream, failure, now);
            }
            Some(ExchangeError::Unsent) => {
                let failure = TransportFailure::Unreachable;
                state.endpoint.handle_failure(stream, failure, now);
            }
            Some(ExchangeError::Failed(why)) => state.endpoint.handle_failure(stream, why, now),
            None => state.endpoint.handle_close(stream, StreamEnd::Clean, now),
        });
    }

    /// Posts the message and passes its response to the endpoint; returns an error if the message or its answer was
    /// lost.
    async fn exchange(&mut self, message: Bytes, hints: &HttpHints) -> Option<ExchangeError> {
        let connection = Arc::clone(&self.connection);
        let lost = Some(ExchangeError::Failed(TransportFailure::Lost));
        let named = post_headers(hints);
        let headers = match Connection::request_headers(named, self.session.as_ref(), None) {
            Ok(headers) => headers,
            Err(error) => {
                connection.store_error(format!("a header cannot be sent: {error}"));
                return lost;
            }
        };
        let has_answer = is_request(&message);
        let may_repeat = may_repeat(&message, hints);
        let sent = connection.send(Method::POST, &self.target, headers, message, may_repeat);
        let response = match sent.await {
            Ok(response) => response,
            Err(error) if error.is_unsent => return Some(ExchangeError::Unsent),
            Err(error) => return Some(ExchangeError::Failed(error.of_transport())),
        };
        let status = response.status();
        if !status.is_success() {
            // The message belongs to a session that another one has replaced. If the server does not know that session any
            // more, the message is sent in the next one.
            if status == StatusCode::NOT_FOUND
                && self.session.is_some()
                && connection.session_id() != self.session
                && !connection.is_orphaned(self.stream)
            {
                return lost;
            }
            return Some(ExchangeError::Failed(
                failure_of(&connection, response).await,
            ));
        }
        if hints.may_assign_session {
            connection.store_session_id(response.headers());
            self.session = connection.session_id();
        }
        match body_kind(&response) {
            BodyKind::Events => self.read_event_stream(response.into_body()).await,
            BodyKind::Nothing | BodyKind::Other if !has_answer => None,
            kind => self.read_document(response, kind, has_answer).await,
        }
    }

    /// Reads a response that is no event stream. What follows is the answer only if it is a message; a server that names another
    /// media type for it, or none, is understood all the same.
    async fn read_document(
        &self,
        response: Response<HttpBody>,
        kind: BodyKind,
        has_answer: bool,
    ) -> Option<ExchangeError> {
        let connection = &self.connection;
        let about = describe_head(&response);
        let (status, is_compressed) = (response.status(), coding_of(response.headers()).is_some());
        let body = match connection.read_body(response.into_body()).await {
            Ok(body) => body,
            Err(error) => {
                connection.store_error(format!(
                    "the server or a proxy before it broke off the response: {error}"
                ));
                return Some(ExchangeError::Failed(TransportFailure::Lost));
            }
        };
        // "If the server accepts the input, the server MUST return HTTP status code 202 Accepted with no body"
        // (`basic/transports`, "Sending Messages to the Server"): what some servers return all the same is no message.
        if !has_answer {
            return None;
        }
        let (message, _share) = match body {
            CompleteBody::Message(message, share) => (message, share),
            CompleteBody::Oversized { head, size, limit } => {
                let (head, tail) = (&head[..], &[][..]);
                let message = Oversized {
                    head,
                    tail,
                    size,
                    limit,
                };
                connection
                    .receive(self.stream, Received::Oversized(message))
                    .await;
                return None;
            }
        };
        let is_named = matches!(kind, BodyKind::Message);
        if is_named || is_message(&message) {
            if !is_named {
                observe::unexpected_media_type(&about);
            }
            connection
                .receive(self.stream, Received::Frame(&message))
                .await;
            if !connection.is_waiting_on(self.stream) {
                return None;
            }
        }
        let remedy = if is_compressed {
            ""
        } else {
            remedy_of(status, &message)
        };
        let reason = match describe_body(&message) {
            Some(body) => format!("{about}, and no answer: {body}{remedy}"),
            None => format!("{about}, and no body{remedy}"),
        };
        connection.store_error(reason.clone());
        Some(ExchangeError::Failed(TransportFailure::NoAnswer { reason }))
    }

    /// Reads the event stream of a response, and resumes it until the request is answered.
    async fn read_event_stream(&self, body: HttpBody) -> Option<ExchangeError> {
        let connection = &self.connection;
        let mut position = Position::default();
        connection
            .read_events(self.stream, true, body, &mut position)
            .await;
        if !connection.is_waiting_on(self.stream) {
            return None;
        }
        let ended = "the event stream of the response ended without an answer";
        connection.store_error(format!(
            "{ended}; look into the log of the server, and at the time limits of proxies before it"
        ));
        if let Some(event) = &position.unknown_event {
            let reason = format!("{ended}; it has {event}");
            return Some(ExchangeError::Failed(TransportFailure::NoAnswer { reason }));
        }
        self.resume(position).await
    }

    /// Resumes the stream of a request until the request is answered; returns an error if the server has lost the
    /// request or cannot be reached.
    async fn resume(&self, mut position: Position) -> Option<ExchangeError> {
        let lost = Some(ExchangeError::Failed(TransportFailure::Lost));
        let revision = self.connection.revision_with_streams();
        let Some(revision) = revision.filter(|_| position.last_event_id.is_some()) else {
            return lost;
        };
        let mut pause = position.pause(self.retry);
        let (mut attempts, mut empty) = (0, 0);
        while attempts < MAX_RESUME_ATTEMPTS && position.last_event_id.is_some() {
            let least = position.pause(self.retry);
            self.connection.wait_to_reopen(pause, least).await;
            let before = position.last_event_id.clone();
            let got = get(
                &self.connection,
                &self.target,
                (revision, self.session.as_ref()),
                self.stream,
                true,
                (&mut position, None),
            );
            let got = got.await;
            empty = if matches!(got, GetOutcome::WithoutBytes) {
                empty + 1
            } else {
                0
            };
            match got {
                GetOutcome::Answered => return None,
                GetOutcome::UnknownSession => return Some(ExchangeError::SessionLost),
                GetOutcome::Refused => return lost,
                GetOutcome::WithoutBytes if empty == MAX_EMPTY_RESUMPTIONS => {
                    self.connection.store_error(format!(
                        "the server has lost the answer: the stream was resumed {empty} times, and nothing came"
                    ));
                    return lost;
                }
                GetOutcome::WithoutBytes => attempts += 1,
                // An event was received, so the server is well.
                GetOutcome::Ended | GetOutcome::WithoutEvents
                    if position.last_event_id != before =>
                {
                    attempts = 0;
                    pause = position.pause(self.retry);
                }
                GetOutcome::Ended | GetOutcome::WithoutEvents | GetOutcome::Unreachable => {
                    attempts += 1;
                    pause = position.longer_pause(pause, self.retry);
                }
            }
        }
        lost
    }
}

/// Reason why the exchange of a message has failed.
enum ExchangeError {
    /// The server does not know the session of a stream (status 404 of a GET).
    SessionLost,
    /// The message was not sent, because no connection to the server came about.
    Unsent,
    /// The message was not delivered, or its answer was not received.
    Failed(TransportFailure),
}

/// Returns the failure for a response with a redirect or an error status.
pub(super) async fn failure_of(
    connection: &Connection,
    response: Response<HttpBody>,
) -> TransportFailure {
    let status = response.status();
    let code = status.as_u16();
    if status.is_redirection() {
        let location = response.headers().get(LOCATION);
        let location = location.and_then(|location| location.to_str().ok());
        return TransportFailure::Redirect {
            code,
            location: location.map(url_for_logs).unwrap_or_default(),
        };
    }
    let challenge = refusal_in(response.headers());
    let is_unauthorized = status == StatusCode::UNAUTHORIZED
        || (status == StatusCode::FORBIDDEN && challenge.has_scope_error);
    let retry_after = retry_after(status, response.headers());
    let body = connection.read_error(response.into_body()).await;
    if is_unauthorized {
        let challenge = challenge.description;
        let reason = challenge.clone().or_else(|| describe_body(&body));
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        connection.store_error(format!(
            "the server answered with HTTP status {code}{reason}"
        ));
        return TransportFailure::Unauthorized {
            code,
            body,
            challenge,
        };
    }
    let reason = describe_body(&body).map_or_else(String::new, |reason| format!(": {reason}"));
    connection.store_error(format!(
        "the server answered with HTTP status {code}{reason}"
    ));
    match retry_after {
        Some(retry_after) => TransportFailure::Unavailable {
            code,
            body,
            retry_after,
        },
        None => TransportFailure::Status { code, body },
    }
}

/// Returns the time after which a server accepts a message again: the number of seconds in the header `Retry-After` of a response
/// with the status 429 or 5xx. A date in this header is not used, because clocks differ.
pub(super) fn retry_after(status: StatusCode, headers: &HeaderMap) -> Option<Duration> {
    let is_temporary = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
    let value = headers.get(RETRY_AFTER).filter(|_| is_temporary)?;
    let seconds = value.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
