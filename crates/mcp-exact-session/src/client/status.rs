//! HTTP error statuses that replace answers (`basic/transports` of 2024-11-05 to 2026-07-28).
//!
//! A status ends the request, causes a fallback, or ends the session.

use mcp_exact_revisions::RevisionSpec;

use super::events::ClientEvent;
use super::negotiate::{is_discover_code, supported};
use super::renegotiate::is_status_of_handshake;
use super::{ClientEndpoint, Purpose};
use crate::core::{Endpoint, PendingRequest};
use crate::error::{NegotiationError, PeerError, Violation};
use crate::limits::Limit;
use crate::outcome::Outcome;
use crate::stream::{Binding, StreamId};

impl ClientEndpoint {
    /// Handles an HTTP response with an error status.
    pub(super) fn handle_status(&mut self, stream: StreamId, status: u16, body: &[u8]) {
        let fits = body.len() <= self.core.limits.message_bytes;
        if !fits {
            self.core
                .push_violation(Violation::Limit(Limit::MessageBytes));
        }
        let error = crate::http::error_of(if fits { body } else { b"" });
        self.core.streams.remove(stream);
        let on_it = |request: &&PendingRequest<Purpose>| {
            request.stream == stream && request.wire_id().is_some()
        };
        let key = self.core.pending.iter().find(on_it).map(|r| r.key);
        let request = key.and_then(|key| self.core.pending.remove(key));
        // "When a client receives HTTP 404 in response to a request containing an `Mcp-Session-Id`, it MUST start a new
        // session" (`basic/transports`, "Session Management"), whatever the body says and whatever was posted.
        let over = status == 404 && self.has_http_session();
        if let Some(request) = request {
            match request.purpose {
                Purpose::Probe(spec) => self.probe_refused(spec, status, error),
                Purpose::Initialize => self.initialize_status(status, error),
                Purpose::LifecycleCheck(spec) => {
                    let has_handshake = is_status_of_handshake(status, error.as_ref());
                    self.lifecycle_checked(spec, has_handshake);
                }
                Purpose::Program(_) => self.program_status(request, status, error),
            }
        }
        if over {
            self.session_lost();
        }
    }

    /// Handles an error status for a request of the application.
    fn program_status(
        &mut self,
        request: PendingRequest<Purpose>,
        status: u16,
        error: Option<PeerError>,
    ) {
        let suspects = is_status_of_handshake(status, error.as_ref());
        let error = error.unwrap_or_else(|| of_status(status));
        let (key, cap) = (request.key, request.final_deadline());
        match request.purpose {
            Purpose::Program(mut outbound) if suspects && outbound.awaits_discover_result() => {
                outbound.cap = Some(cap);
                if let Some(error) = self.check_lifecycle(key, *outbound, error) {
                    self.complete(key, Outcome::Error(error));
                }
            }
            _ => self.request_ended(request, Outcome::Error(error)),
        }
    }

    /// Returns true if a session is negotiated in a revision whose sessions have ids over HTTP.
    fn has_http_session(&self) -> bool {
        let http = self.core.binding == Binding::StreamableHttp;
        http && self.spec().is_some_and(RevisionSpec::has_session_ids)
    }

    /// Handles a refused probe. The statuses 401, 403 and 5xx are no evidence of the server's lifecycle; other errors are.
    fn probe_refused(
        &mut self,
        spec: &'static RevisionSpec,
        status: u16,
        error: Option<PeerError>,
    ) {
        let code = error.as_ref().and_then(PeerError::code);
        let error = error.unwrap_or_else(|| of_status(status));
        match (status, code) {
            (401 | 403 | 500.., _) => self.fail(NegotiationError::Refused(error)),
            (_, Some(code)) if is_discover_code(code) => self.probed(spec, Outcome::Error(error)),
            _ => self.fall_back(error.to_string()),
        }
    }

    /// Handles an error status for `initialize`. Servers of HTTP with SSE (2024-11-05) may answer 400, 404 or 405.
    fn initialize_status(&mut self, status: u16, error: Option<PeerError>) {
        let code = error.as_ref().and_then(PeerError::code);
        let lists = error.as_ref().and_then(supported).is_some();
        let older = matches!(status, 400 | 404 | 405)
            && self.core.binding == Binding::StreamableHttp
            && !code.is_some_and(is_discover_code)
            && !lists;
        let error = error.unwrap_or_else(|| of_status(status));
        if older {
            self.core.push_event(ClientEvent::UseHttpSse);
            return self.fail(NegotiationError::Refused(error));
        }
        self.initialize_ended(Outcome::Error(error));
    }
}

fn of_status(status: u16) -> PeerError {
    PeerError::internal(format!("the server answers with HTTP status {status}")).local()
}
