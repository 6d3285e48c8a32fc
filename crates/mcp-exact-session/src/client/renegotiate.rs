//! Renegotiation when a server stops supporting the negotiated revision (2026-07-28, `basic/versioning`, "Protocol Version
//! Negotiation").
//!
//! Error -32022 triggers the renegotiation: the client switches to a revision that both peers support, and resends the request.

use std::sync::Arc;

use mcp_exact_revisions::{Lifecycle, RevisionSpec};

use super::events::ClientEvent;
use super::negotiate::supported;
use super::outbound::{OutboundRequest, Phase};
use super::session::{NegotiatedSession, NegotiationProgress, State};
use super::{ClientEndpoint, Purpose};
use crate::core::PendingRequest;
use crate::error::{PeerError, code};
use crate::outcome::Outcome;
use crate::session_info::SessionInfo;
use crate::stream::{Binding, RequestKey};

impl ClientEndpoint {
    /// Handles a refusal of a request's revision. Returns the error if no other revision can be tried.
    pub(super) fn renegotiate(
        &mut self,
        key: RequestKey,
        mut outbound: OutboundRequest,
        error: PeerError,
    ) -> Option<PeerError> {
        let listed = supported(&error).unwrap_or_default();
        let common = |lifecycle: Lifecycle| {
            let offer = &self.settings.offer;
            offer.choose(lifecycle, |spec| listed.iter().any(|id| spec.id() == id))
        };
        let discover = common(Lifecycle::Discover);
        let initialize = common(Lifecycle::Initialize);
        // Retries with input do not exist in older revisions.
        let retried = outbound.retries > 0 || outbound.input.is_some();
        if outbound.renegotiated || (discover.is_none() && retried) {
            return Some(error);
        }
        outbound.renegotiated = true;
        let current = self.state.session().map(Arc::clone);
        match (current, discover, initialize) {
            (Some(current), Some(spec), _) => {
                let session = self.change_revision(&current, spec);
                self.send_outbound(key, outbound, &session);
            }
            // Another request has already caused the renegotiation.
            (Some(current), None, Some(_)) if !current.is_discover() => {
                self.send_again(key, outbound, &current, error);
            }
            (current, None, Some(spec)) => {
                outbound.phase = Phase::Renegotiation(error);
                let purpose = Purpose::Program(Box::new(outbound));
                self.core.pending.suspend(key, purpose);
                if let Some(current) = current {
                    self.previous = Some(current);
                    self.send_initialize(spec, NegotiationProgress::default());
                }
            }
            _ => return Some(error),
        }
        None
    }

    /// Returns true if the error to a request of a handshake session says that the server no longer speaks its revision, as a server
    /// of 2026-07-28 does over Streamable HTTP that has no sessions: with -32022 and other supported revisions, or with -32020 if
    /// the revision does not know the header `MCP-Protocol-Version`.
    pub(super) fn refuses_session(&self, outbound: &OutboundRequest, error: &PeerError) -> bool {
        let spec = outbound.spec;
        let is_current = self
            .state
            .session()
            .is_some_and(|current| current.spec == spec);
        if !is_current || error.is_local() || self.core.binding != Binding::StreamableHttp {
            return false;
        }
        match error.code() {
            Some(code::UNSUPPORTED_VERSION) => {
                supported(error).is_some_and(|listed| listed.iter().all(|id| spec.id() != id))
            }
            Some(code::HEADER_MISMATCH) => !spec.has_protocol_version_header(),
            _ => false,
        }
    }

    /// Ends a session whose revision the server no longer speaks, as if it were unknown (404), so that the transport starts another
    /// one. A request that may be repeated is lost with the session, and any other request ends with the error.
    pub(super) fn session_refused(
        &mut self,
        key: RequestKey,
        outbound: &OutboundRequest,
        error: PeerError,
    ) {
        let outcome = if self.is_repeatable(&outbound.method) {
            Outcome::Lost
        } else {
            Outcome::Error(error)
        };
        self.core.event(ClientEvent::SessionLost);
        self.complete(key, outcome);
        self.end(&Outcome::Lost);
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
        self.previous = Some(Arc::clone(current));
        let info = SessionInfo {
            revision: spec.revision(),
            ..current.info.clone()
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
        let waits = |request: &&PendingRequest<Purpose>| match &request.purpose {
            Purpose::Program(outbound) => matches!(outbound.phase, Phase::Renegotiation(_)),
            Purpose::Probe(_) | Purpose::Initialize => false,
        };
        let waiting = self.core.pending.iter().filter(waits);
        let keys: Vec<RequestKey> = waiting.map(|request| request.key).collect();
        for key in keys {
            let Some(request) = self.core.pending.take(key) else {
                continue;
            };
            if let Purpose::Program(mut outbound) = request.purpose
                && let Phase::Renegotiation(error) =
                    std::mem::replace(&mut outbound.phase, Phase::Answer)
            {
                self.send_again(key, *outbound, &session, error);
            }
        }
    }

    fn send_again(
        &mut self,
        key: RequestKey,
        outbound: OutboundRequest,
        session: &NegotiatedSession,
        error: PeerError,
    ) {
        let rules = session.rules(&self.settings);
        let params = outbound.params.as_ref();
        match rules.sending_request(&outbound.method, params) {
            Ok(()) => self.send_outbound(key, outbound, session),
            Err(_) => self.complete(key, Outcome::Error(error)),
        }
    }
}
