//! Renegotiation when a server stops supporting the negotiated revision (2026-07-28, `basic/versioning`, "Protocol Version
//! Negotiation").
//!
//! Error -32022 starts the renegotiation: the client switches to a revision that both peers support, and resends the request, which
//! the server has not executed. An error that only older servers send to requests of 2026-07-28 starts a check of the lifecycle first.

use std::sync::Arc;

use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use mcp_exact_wire::JsonObject;

use super::ClientEndpoint;
use super::discovery::supported_revisions;
use super::events::{ClientEvent, ServerRequestKey};
use super::outbound::{OutboundRequest, Phase, Purpose, RefusedRevision};
use super::session::{NegotiatedSession, NegotiationProgress, SenderMeta, State};
use crate::core::{Endpoint, PendingRequest};
use crate::error::{PeerError, code};
use crate::outcome::Outcome;
use crate::rules::SentMembers;
use crate::session_info::SessionInfo;
use crate::stream::{Binding, RequestKey, StreamId, StreamKind};

/// First request of a renegotiation that changes the lifecycle or starts a new session.
enum FirstRequest {
    /// `server/discover` in this revision.
    Probe(&'static RevisionSpec),
    /// `initialize` of this revision.
    Initialize(&'static RevisionSpec),
}

impl ClientEndpoint {
    /// Handles an error that may refuse the revision of a request. Returns the error if it is the outcome of the request.
    pub(super) fn renegotiate(
        &mut self,
        key: RequestKey,
        mut outbound: OutboundRequest,
        error: PeerError,
    ) -> Option<PeerError> {
        if outbound.was_renegotiated || !self.refuses_revision(&outbound, &error) {
            return Some(error);
        }
        let refused = RefusedRevision {
            error,
            is_certain: true,
        };
        match self.state.session().map(Arc::clone) {
            // Another request has started the renegotiation.
            None => self.defer(key, outbound, refused),
            Some(session) if session.spec != outbound.spec => {
                self.resend_request(key, outbound, &session, refused);
            }
            Some(session) => {
                outbound.was_renegotiated = true;
                return self.start_renegotiation(key, outbound, &session, refused);
            }
        }
        None
    }

    /// Returns true if an error means that the server does not support the revision of a request.
    ///
    /// In a session, -32022 must list other revisions, because a server may forward the error of another server. Over
    /// Streamable HTTP, a server of 2026-07-28 answers requests without the header `MCP-Protocol-Version` with -32020,
    /// so this code refuses a revision that does not define the header.
    fn refuses_revision(&self, outbound: &OutboundRequest, error: &PeerError) -> bool {
        let spec = outbound.spec;
        let in_session = spec.lifecycle() == Lifecycle::Initialize;
        match error.code() {
            Some(code::UNSUPPORTED_VERSION) if in_session => supported_revisions(error)
                .is_some_and(|listed| listed.iter().all(|id| spec.id() != id)),
            Some(code::UNSUPPORTED_VERSION) => true,
            Some(code::HEADER_MISMATCH) => {
                let http = self.core.binding == Binding::StreamableHttp;
                in_session && http && !spec.has_protocol_version_header()
            }
            _ => false,
        }
    }

    /// Starts the renegotiation with the revisions that the server supports.
    fn start_renegotiation(
        &mut self,
        key: RequestKey,
        outbound: OutboundRequest,
        current: &Arc<NegotiatedSession>,
        refused: RefusedRevision,
    ) -> Option<PeerError> {
        let listed = supported_revisions(&refused.error);
        let common = |lifecycle: Lifecycle| {
            let is_listed = |spec: &'static RevisionSpec| match &listed {
                Some(listed) => listed.iter().any(|id| spec.id() == id),
                // Only servers of 2026-07-28 send an error of this code.
                None => spec.lifecycle() == Lifecycle::Discover && !current.is_discover(),
            };
            self.settings.offer.choose(lifecycle, is_listed)
        };
        let initialize = common(Lifecycle::Initialize);
        let first = match common(Lifecycle::Discover) {
            Some(spec) if current.is_discover() => {
                let session = self.change_revision(current, spec);
                self.send_attempt(key, outbound, &session);
                return None;
            }
            // HTTP with SSE is a transport of sessions (2024-11-05): the transport has to use another one.
            Some(_) if self.core.binding == Binding::HttpSse && initialize.is_none() => {
                self.leave_transport(key, &outbound, refused.error);
                return None;
            }
            Some(spec) if self.core.binding != Binding::HttpSse => FirstRequest::Probe(spec),
            _ => match initialize {
                // Retries with input do not exist in older revisions.
                Some(spec) if !outbound.is_retry() => FirstRequest::Initialize(spec),
                _ => return Some(refused.error),
            },
        };
        self.defer(key, outbound, refused);
        self.leave_session(current);
        match first {
            FirstRequest::Probe(spec) => self.send_probe(spec, NegotiationProgress::default()),
            FirstRequest::Initialize(spec) => {
                self.send_initialize(spec, NegotiationProgress::default());
            }
        }
        None
    }

    /// Handles an error that a server with a handshake sends to requests outside of a session, although the negotiated
    /// lifecycle has no handshake: "A client […] MAY persist it across restarts of the same server configuration,
    /// re-probing if the cached assumption later fails" (2026-07-28, `basic/versioning`).
    ///
    /// Returns the error if it is the outcome of the request.
    pub(super) fn check_lifecycle(
        &mut self,
        key: RequestKey,
        mut outbound: OutboundRequest,
        error: PeerError,
    ) -> Option<PeerError> {
        let is_current = |session: &Arc<NegotiatedSession>| session.spec == outbound.spec;
        let session = self.state.session().map(Arc::clone).filter(is_current);
        let has_handshake = self.settings.offer.offers(Lifecycle::Initialize);
        let (Some(session), true) = (session, has_handshake && !outbound.was_renegotiated) else {
            return Some(error);
        };
        outbound.was_renegotiated = true;
        let refused = RefusedRevision {
            error,
            is_certain: false,
        };
        self.defer(key, outbound, refused);
        let is_check = |request: &PendingRequest<Purpose>| {
            matches!(request.purpose, Purpose::LifecycleCheck(_))
        };
        if !self.core.pending.iter().any(is_check) {
            self.send_lifecycle_check(session.spec);
        }
        None
    }

    /// Sends `server/discover` to check the lifecycle of the server.
    fn send_lifecycle_check(&mut self, spec: &'static RevisionSpec) {
        let sender = SenderMeta::new(&self.settings, spec);
        let params = JsonObject::from_iter([("_meta", sender.meta().clone())]);
        let timeout = self.settings.probe_timeout;
        let purpose = Purpose::LifecycleCheck(spec);
        self.send_negotiation_request("server/discover", &params, timeout, purpose);
    }

    /// Ends a lifecycle check. If the server requires a handshake, the client starts it; otherwise the requests that wait for
    /// the check end with their errors.
    pub(super) fn end_lifecycle_check(&mut self, spec: &'static RevisionSpec, has_handshake: bool) {
        let State::Operating(session) = &self.state else {
            return;
        };
        let session = Arc::clone(session);
        let first = self.preferred_revision(Lifecycle::Initialize);
        match first.filter(|_| has_handshake) {
            _ if session.spec != spec => self.send_deferred(),
            Some(first) => {
                self.leave_session(&session);
                self.send_initialize(first, NegotiationProgress::default());
            }
            None => self.complete_deferred(),
        }
    }

    /// Suspends a request until the end of the renegotiation or of the lifecycle check.
    fn defer(&mut self, key: RequestKey, mut outbound: OutboundRequest, refused: RefusedRevision) {
        outbound.was_renegotiated = true;
        outbound.phase = Phase::Renegotiation(refused);
        let purpose = Purpose::Application(Box::new(outbound));
        self.core.pending.suspend(key, purpose);
    }

    /// Ends the use of a session before the next session is negotiated: pending requests of the server are cancelled,
    /// and the standalone stream ends.
    fn leave_session(&mut self, session: &Arc<NegotiatedSession>) {
        self.previous_session = Some(Arc::clone(session));
        if session.is_discover() {
            return;
        }
        for key in self.core.in_flight.keys_where(|_| true) {
            if let Some(cancelled) = self.cancel_in_flight(key) {
                self.resume_requests(cancelled.request.role_state);
                let key = ServerRequestKey {
                    key,
                    client_request: None,
                };
                self.core.push_event(ClientEvent::RequestCancelled(key));
            }
        }
        self.core.elicitations.restore(Some(Vec::new()));
        self.tasks.clear();
        if self.core.binding == Binding::StreamableHttp {
            let streams = self.core.streams.iter();
            let standalone = streams.filter(|(_, kind)| *kind == StreamKind::Standalone);
            let standalone: Vec<StreamId> = standalone.map(|(stream, _)| stream).collect();
            for stream in standalone {
                self.core.streams.remove(stream);
            }
        }
    }

    /// Ends a session as if the server had ended the session, because the transport supports none of the revisions that
    /// both peers support. A request that may be repeated is lost with the session, and any other request ends with the
    /// error.
    fn leave_transport(&mut self, key: RequestKey, outbound: &OutboundRequest, error: PeerError) {
        let outcome = if self.is_repeatable(&outbound.method) {
            Outcome::Lost
        } else {
            Outcome::Error(error)
        };
        self.core.push_event(ClientEvent::SessionLost);
        self.complete_request(key, outcome);
        self.close_with(&Outcome::Lost);
    }

    /// Switches to another revision of the same lifecycle.
    fn change_revision(
        &mut self,
        current: &Arc<NegotiatedSession>,
        spec: &'static RevisionSpec,
    ) -> Arc<NegotiatedSession> {
        if current.spec == spec {
            return Arc::clone(current);
        }
        self.previous_session = Some(Arc::clone(current));
        let info = SessionInfo {
            revision: spec.revision(),
            ..current.session_info.clone()
        };
        self.enter_session(NegotiatedSession::new(spec, info, &self.settings));
        let session = self.state.session().map(Arc::clone);
        session.unwrap_or_else(|| Arc::clone(current))
    }

    /// Sends the requests that waited for the renegotiation, if the new revision allows them.
    pub(super) fn send_deferred(&mut self) {
        let State::Operating(session) = &self.state else {
            return;
        };
        let session = Arc::clone(session);
        for (key, outbound, refused) in self.take_deferred() {
            self.resend_request(key, outbound, &session, refused);
        }
    }

    /// Ends the deferred requests with their errors.
    fn complete_deferred(&mut self) {
        for (key, _, refused) in self.take_deferred() {
            self.complete_request(key, Outcome::Error(refused.error));
        }
    }

    /// Removes and returns the deferred requests.
    fn take_deferred(&mut self) -> Vec<(RequestKey, OutboundRequest, RefusedRevision)> {
        let waits = |request: &&PendingRequest<Purpose>| {
            let outbound = request.purpose.outbound();
            outbound.is_some_and(|outbound| matches!(outbound.phase, Phase::Renegotiation(_)))
        };
        let waiting = self.core.pending.iter().filter(waits);
        let keys: Vec<RequestKey> = waiting.map(|request| request.key).collect();
        let take = |key: RequestKey| {
            let request = self.core.pending.remove(key)?;
            let Purpose::Application(mut outbound) = request.purpose else {
                return None;
            };
            match std::mem::replace(&mut outbound.phase, Phase::Answer) {
                Phase::Renegotiation(refused) => Some((key, *outbound, refused)),
                _ => None,
            }
        };
        keys.into_iter().filter_map(take).collect()
    }

    /// Sends a refused request in the new revision.
    ///
    /// The request ends with the error that refused it if the new revision does not allow the request, or if the
    /// request is not repeatable and the server may have executed it.
    fn resend_request(
        &mut self,
        key: RequestKey,
        mut outbound: OutboundRequest,
        session: &NegotiatedSession,
        refused: RefusedRevision,
    ) {
        outbound.was_renegotiated = true;
        let params = outbound.params.as_ref();
        let members = params.map(SentMembers::locate).unwrap_or_default();
        let may_repeat = refused.is_certain || self.is_repeatable(&outbound.method);
        let has_input = session.is_discover() || !outbound.is_retry();
        let has_tasks = session.spec.has_tasks() || !outbound.asks_for_task;
        let checked = self.check_sent_request(session, &outbound.method, params, &members);
        let is_allowed = checked.is_ok();
        if may_repeat && has_input && has_tasks && is_allowed {
            self.send_attempt(key, outbound, session);
        } else {
            self.complete_request(key, Outcome::Error(refused.error));
        }
    }
}
