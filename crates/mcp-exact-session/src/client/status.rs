//! HTTP error statuses in place of answers (`basic/transports` of 2024-11-05 to 2026-07-28).
//!
//! A status ends the request, causes a fallback, or ends the session.

use mcp_exact_revisions::RevisionSpec;

use super::events::ClientEvent;
use super::negotiate::{is_discover_code, supported_revisions};
use super::renegotiate::indicates_initialize_lifecycle;
use super::{ClientEndpoint, Purpose};
use crate::core::{Endpoint, PendingRequest};
use crate::error::{NegotiationError, PeerError, Violation};
use crate::limits::Limit;
use crate::outcome::Outcome;
use crate::stream::{Binding, StreamId};

impl ClientEndpoint {
    /// Handles the HTTP error status of a POST by the purpose of the request in the POST; with status 404 in a session,
    /// the session ends, too.
    pub(super) fn handle_status(&mut self, stream: StreamId, status: u16, body: &[u8]) {
        let fits = body.len() <= self.core.limits.message_bytes;
        if !fits {
            self.core
                .push_violation(Violation::Limit(Limit::MessageBytes));
        }
        let error = crate::http::error_in_body(if fits { body } else { b"" });
        self.core.streams.remove(stream);
        let is_on_stream = |request: &&PendingRequest<Purpose>| {
            request.stream == stream && request.wire_id().is_some()
        };
        let key = self.core.pending.iter().find(is_on_stream).map(|r| r.key);
        let request = key.and_then(|key| self.core.pending.remove(key));
        // "When a client receives HTTP 404 in response to a request containing an `Mcp-Session-Id`, it MUST start a new
        // session" (`basic/transports`, "Session Management"), whatever the body says and whatever was posted.
        let is_session_over = status == 404 && self.has_http_session();
        if let Some(request) = request {
            match request.purpose {
                Purpose::Probe(spec) => self.handle_probe_status(spec, status, error),
                Purpose::Initialize => self.handle_initialize_status(status, error),
                Purpose::LifecycleCheck(spec) => {
                    let has_handshake = indicates_initialize_lifecycle(status, error.as_ref());
                    self.end_lifecycle_check(spec, has_handshake);
                }
                Purpose::Application(_) => self.handle_application_status(request, status, error),
            }
        }
        if is_session_over {
            self.lose_session();
        }
    }

    /// Handles an error status for a request of the application.
    fn handle_application_status(
        &mut self,
        request: PendingRequest<Purpose>,
        status: u16,
        error: Option<PeerError>,
    ) {
        let suggests_handshake = indicates_initialize_lifecycle(status, error.as_ref());
        let error = error.unwrap_or_else(|| error_of_status(status));
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

    /// Returns true if a session is negotiated in a revision whose sessions have ids over HTTP.
    fn has_http_session(&self) -> bool {
        let http = self.core.binding == Binding::StreamableHttp;
        http && self.spec().is_some_and(RevisionSpec::has_session_ids)
    }

    /// Handles an error status for the probe.
    ///
    /// The statuses 401, 403 and 5xx are no evidence of the server's lifecycle; all other errors are.
    fn handle_probe_status(
        &mut self,
        spec: &'static RevisionSpec,
        status: u16,
        error: Option<PeerError>,
    ) {
        let code = error.as_ref().and_then(PeerError::code);
        let error = error.unwrap_or_else(|| error_of_status(status));
        match (status, code) {
            (401 | 403 | 500.., _) => self.fail_negotiation(NegotiationError::Refused(error)),
            (_, Some(code)) if is_discover_code(code) => {
                self.handle_probe_outcome(spec, Outcome::Error(error))
            }
            _ => self.fall_back(error.to_string()),
        }
    }

    /// Handles an error status for `initialize`. Servers of HTTP with SSE (2024-11-05) may answer 400, 404 or 405.
    fn handle_initialize_status(&mut self, status: u16, error: Option<PeerError>) {
        let code = error.as_ref().and_then(PeerError::code);
        let lists = error.as_ref().and_then(supported_revisions).is_some();
        let older = matches!(status, 400 | 404 | 405)
            && self.core.binding == Binding::StreamableHttp
            && !code.is_some_and(is_discover_code)
            && !lists;
        let error = error.unwrap_or_else(|| error_of_status(status));
        if older {
            self.core.push_event(ClientEvent::UseHttpSse);
            return self.fail_negotiation(NegotiationError::Refused(error));
        }
        self.handle_initialize_outcome(Outcome::Error(error));
    }
}

/// Creates the local error for an HTTP error status.
fn error_of_status(status: u16) -> PeerError {
    PeerError::internal(format!("the server answers with HTTP status {status}")).into_local()
}
