//! HTTP error statuses in place of answers (`basic/transports` of 2024-11-05 to 2026-07-28).
//!
//! A status ends the request, causes a fallback, or ends the session.

use std::time::Duration;

use mcp_exact_revisions::RevisionSpec;

use super::ClientEndpoint;
use super::discovery::{indicates_initialize_lifecycle, is_discover_code, supported_revisions};
use super::events::ClientEvent;
use super::outbound::Purpose;
use super::session::SessionEnd;
use crate::core::{Endpoint, PendingRequest};
use crate::error::{NegotiationError, PeerError, PeerFailure, Violation, code};
use crate::limits::Limit;
use crate::outcome::Outcome;
use crate::stream::{Binding, StreamId};

impl ClientEndpoint {
    /// Handles the HTTP error status of a POST by the purpose of the request in the POST; with a status that ends the
    /// session, the session ends, too. `explain` returns the error in place of the one that the body has.
    pub(super) fn handle_status(
        &mut self,
        stream: StreamId,
        (status, retry_after): (u16, Option<Duration>),
        body: &[u8],
        explain: impl FnOnce(Option<PeerError>) -> Option<PeerError>,
    ) {
        let fits = body.len() <= self.core.limits.message_bytes;
        if !fits {
            self.core
                .push_violation(Violation::Limit(Limit::MessageBytes));
        }
        let body = if fits { body } else { b"" };
        let error = explain(crate::http::error_in_body(body));
        self.core.streams.remove(stream);
        if self.is_orphaned(stream) {
            let end = end_by_status(status, body, error.as_ref());
            let error = error.unwrap_or_else(|| error_of_status((status, retry_after), body));
            return self.handle_orphan_status(stream, end, error);
        }
        // The status of the first message says nothing of the session that has just begun: a server that does not know the
        // notification refuses it again and again.
        if self
            .initialized_stream
            .take_if(|of| *of == stream)
            .is_some()
        {
            let error = error.unwrap_or_else(|| error_of_status((status, retry_after), body));
            return self
                .core
                .push_violation(Violation::InitializedRefused { status, error });
        }
        if let Some(end) = self.session_end(status, body, error.as_ref()) {
            return self.end_session_by_status(stream, end);
        }
        let Some(request) = self.remove_request_on(stream) else {
            return;
        };
        let ended = error.clone();
        let ended = ended.unwrap_or_else(|| error_of_status((status, retry_after), body));
        self.observe_end(&request, &Outcome::Error(ended));
        match request.purpose {
            Purpose::Probe(spec) => {
                self.handle_probe_status(spec, (status, retry_after), error, body)
            }
            Purpose::Initialize => {
                self.handle_initialize_status((status, retry_after), error, body)
            }
            Purpose::LifecycleCheck(spec) => {
                let has_handshake = indicates_initialize_lifecycle(status, error.as_ref());
                self.end_lifecycle_check(spec, has_handshake);
            }
            Purpose::Application(_) => {
                let suggests_handshake = indicates_initialize_lifecycle(status, error.as_ref());
                let error = error.unwrap_or_else(|| error_of_status((status, retry_after), body));
                let error = error.with_failure(PeerFailure::of_status(status, retry_after));
                self.handle_application_status(request, suggests_handshake, error);
            }
        }
    }

    /// Handles a redirect that the transport does not follow: every other request would be redirected as well.
    pub(super) fn handle_redirect(&mut self, stream: StreamId, status: u16, location: &str) {
        self.core.streams.remove(stream);
        let Some(request) = self.remove_request_on(stream) else {
            return;
        };
        let error = NegotiationError::Redirected {
            status,
            location: location.to_owned(),
        };
        let ended = Outcome::Error(PeerError::local(error.to_string()));
        self.observe_end(&request, &ended);
        match request.purpose {
            Purpose::Probe(_) | Purpose::Initialize => self.fail_negotiation(error),
            Purpose::LifecycleCheck(spec) => self.end_lifecycle_check(spec, false),
            Purpose::Application(_) => {
                self.handle_request_end(request, ended);
            }
        }
    }

    /// Handles the response to a POST that carries no answer.
    pub(super) fn handle_no_answer(&mut self, stream: StreamId, reason: String) {
        self.core.streams.remove(stream);
        let Some(request) = self.remove_request_on(stream) else {
            return;
        };
        let ended = Outcome::Error(PeerError::local(reason.clone()));
        self.observe_end(&request, &ended);
        match request.purpose {
            Purpose::Application(_) => {
                let text =
                    format!("the server gave no answer, but may have done the work: {reason}");
                self.handle_request_end(request, Outcome::Error(PeerError::local(text)));
            }
            purpose => self.handle_missing_answer(&purpose, reason),
        }
    }

    /// Removes and returns the request that waits for its answer on the stream of a POST.
    pub(super) fn remove_request_on(
        &mut self,
        stream: StreamId,
    ) -> Option<PendingRequest<Purpose>> {
        let is_on_stream = |request: &&PendingRequest<Purpose>| {
            request.stream == stream && request.wire_id().is_some()
        };
        let key = self.core.pending.iter().find(is_on_stream)?.key;
        self.core.pending.remove(key)
    }

    /// Returns how the session has ended if an HTTP status means that the server does not know the session any more. Statuses
    /// other than 404 count once, until the next session has answered a request.
    fn session_end(
        &self,
        status: u16,
        body: &[u8],
        error: Option<&PeerError>,
    ) -> Option<SessionEnd> {
        if !self.has_http_session() {
            return None;
        }
        let end = end_by_status(status, body, error)?;
        (end == SessionEnd::Certain || !self.was_given_up).then_some(end)
    }

    /// Ends the session because of the status of a POST, and reports the request of the POST if the server has not processed it.
    fn end_session_by_status(&mut self, stream: StreamId, end: SessionEnd) {
        self.was_given_up |= end != SessionEnd::Certain;
        if self.is_closed() {
            return;
        }
        self.core.push_event(ClientEvent::SessionLost);
        if let Some(request) = self.remove_request_on(stream) {
            self.observe_end(&request, &Outcome::Lost);
            match request.purpose {
                Purpose::Application(_) if end == SessionEnd::Unclear => {
                    self.complete_request(request.key, Outcome::Lost);
                }
                _ => self.return_request(request),
            }
        }
        self.close_lost_session();
    }

    /// Handles an error status for a request of the application.
    fn handle_application_status(
        &mut self,
        request: PendingRequest<Purpose>,
        suggests_handshake: bool,
        error: PeerError,
    ) {
        let (key, final_deadline) = (request.key, request.final_deadline());
        match request.purpose {
            Purpose::Application(mut outbound)
                if suggests_handshake && outbound.awaits_discover_result() =>
            {
                outbound.final_deadline = Some(final_deadline);
                if let Some(error) = self.check_lifecycle(key, *outbound, error) {
                    self.complete_request(key, Outcome::Error(error));
                }
            }
            _ => self.handle_request_end(request, Outcome::Error(error)),
        }
    }

    /// Returns true if a session is negotiated whose server has assigned an id over HTTP. If it is unknown whether it has, the
    /// revision decides. Servers of 2024-11-05 assign ids over Streamable HTTP, too, although only later revisions define them.
    fn has_http_session(&self) -> bool {
        let http = self.core.binding == Binding::StreamableHttp;
        let by_revision =
            |spec: &RevisionSpec| self.has_session_id.unwrap_or(spec.has_session_ids());
        http && self.spec().is_some_and(by_revision)
    }

    /// Handles an error status for the probe.
    ///
    /// The statuses 401 and 407, and 403 for a token that lacks a scope, say nothing of the server's lifecycle, because nobody has
    /// read the message. Every other status
    /// without an error that only servers without handshake send leads to `initialize`: "Anything else identifies a legacy
    /// server" (2026-07-28, `basic/versioning`).
    fn handle_probe_status(
        &mut self,
        spec: &'static RevisionSpec,
        (status, retry_after): (u16, Option<Duration>),
        error: Option<PeerError>,
        body: &[u8],
    ) {
        let code = error.as_ref().and_then(PeerError::code);
        let is_expected = error.is_some() && status < 500 && status != 403;
        let error = error.unwrap_or_else(|| error_of_status((status, retry_after), body));
        match (status, code) {
            _ if error.unauthorized_status().is_some() => {
                self.fail_negotiation(NegotiationError::Refused(error));
            }
            (401 | 407, _) => self.fail_negotiation(NegotiationError::Refused(error)),
            (_, Some(code)) if is_discover_code(code) => {
                self.handle_probe_outcome(spec, Outcome::Error(error))
            }
            _ => self.fall_back(error.to_string(), is_expected),
        }
    }

    /// Handles an error status for `initialize`. Servers of HTTP with SSE (2024-11-05) may answer 400, 404 or 405.
    fn handle_initialize_status(
        &mut self,
        (status, retry_after): (u16, Option<Duration>),
        error: Option<PeerError>,
        body: &[u8],
    ) {
        let code = error.as_ref().and_then(PeerError::code);
        let lists = error.as_ref().and_then(supported_revisions).is_some();
        let older = matches!(status, 400 | 404 | 405)
            && self.core.binding == Binding::StreamableHttp
            && !code.is_some_and(is_discover_code)
            && !lists;
        let error = error.unwrap_or_else(|| error_of_status((status, retry_after), body));
        if !older {
            return self.handle_initialize_outcome(Outcome::Error(error));
        }
        if self.use_late_discovery()
            || self.probe_again(&error)
            || self.try_older_revision(&error, Some(status))
        {
            return;
        }
        self.core.push_event(ClientEvent::UseHttpSse);
        self.fail_negotiation(NegotiationError::Refused(error));
    }
}

/// Returns how a session has ended if the status of a POST means that the server does not know the session any more.
///
/// "When a client receives HTTP 404 in response to a request containing an `Mcp-Session-Id`, it MUST start a new session"
/// (`basic/transports`, "Session Management"), whatever the body says and whatever was posted. Servers that follow the examples
/// of the SDKs answer in other ways: 400 with a body that mentions the session, 409, and 401 after a request of the session
/// was authorized.
fn end_by_status(status: u16, body: &[u8], error: Option<&PeerError>) -> Option<SessionEnd> {
    let code = error.and_then(PeerError::code);
    // Errors of these codes concern the params of a request that was read.
    let is_about_params = code.is_some_and(|code| {
        is_discover_code(code) || matches!(code, code::INVALID_PARAMS | code::METHOD_NOT_FOUND)
    });
    let mentions_session = || {
        let text = String::from_utf8_lossy(body).to_ascii_lowercase();
        text.contains("session")
    };
    match status {
        404 => Some(SessionEnd::Certain),
        400 if !is_about_params && mentions_session() => Some(SessionEnd::Refused),
        401 => Some(SessionEnd::Refused),
        409 => Some(SessionEnd::Unclear),
        _ => None,
    }
}

/// Creates the local error for an HTTP error status, with the reason in the body.
fn error_of_status((status, retry_after): (u16, Option<Duration>), body: &[u8]) -> PeerError {
    let text = format!("the server answered with HTTP status {status}");
    let error = PeerError::local(match crate::http::describe_body(body) {
        Some(reason) => format!("{text}: {reason}"),
        None => text,
    });
    error.with_failure(PeerFailure::of_status(status, retry_after))
}
