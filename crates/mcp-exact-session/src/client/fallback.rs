//! Fallbacks of the negotiation: from the probe to `initialize`, from a refused revision to an older one, and from
//! `initialize` back to the probe, if its answer comes late.
//!
//! Every failure of the probe leads to `initialize`, except those that only a server without handshake sends, and those
//! that the next request would meet as well: missing authorization, and redirects.

use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use mcp_exact_wire::RequestId;

use super::ClientEndpoint;
use super::discovery::{DiscoverResult, is_discover_code, supported_revisions};
use super::outbound::Purpose;
use super::session::{NegotiationProgress, State};
use crate::core::{Arrival, Endpoint};
use crate::error::{EarlierFailure, NegotiationError, PeerError, Violation, code};
use crate::message::parse_wire_id;
use crate::outcome::Outcome;
use crate::stream::{Binding, RequestKey};

impl ClientEndpoint {
    /// Falls back to `initialize` if this client offers a revision with handshake: the server does not support requests
    /// that name their revision.
    ///
    /// `answered` describes the server's answer for the error. `is_expected` is true for answers that servers with a
    /// handshake give to an unknown request.
    pub(super) fn fall_back(&mut self, answered: String, is_expected: bool) {
        let first = self.preferred_revision(Lifecycle::Initialize);
        match (first, self.state.take_progress()) {
            (Some(first), Some(progress)) => {
                if !is_expected {
                    self.note_failure("`server/discover`", answered);
                }
                self.send_initialize(first, progress);
            }
            _ => self.fail_negotiation(NegotiationError::NoHandshake {
                answered,
                offered: self.settings.offer.offered_revisions(),
            }),
        }
    }

    /// Records the failure of an attempt that another attempt follows; the first failure is kept.
    fn note_failure(&mut self, request: &'static str, reason: String) {
        let failure = || EarlierFailure { request, reason };
        self.earlier_failure.get_or_insert_with(failure);
    }

    /// Handles the end of a POST of the negotiation that carries no answer.
    pub(super) fn handle_missing_answer(&mut self, purpose: &Purpose, reason: String) {
        match purpose {
            Purpose::Probe(_) => self.fall_back(reason, false),
            Purpose::LifecycleCheck(spec) => self.end_lifecycle_check(spec, false),
            Purpose::Initialize | Purpose::Application(_) => {
                self.fail_negotiation(NegotiationError::NoAnswer(reason));
            }
        }
    }

    /// Remembers a probe that has timed out, so that a late answer to it counts.
    pub(super) fn remember_late_probe(&mut self, wire_id: Option<u64>) {
        if let State::ExpectDiscovery(progress) = &mut self.state {
            progress.probe_timed_out = true;
            progress.probe_was_silent = true;
            progress.late_probes.extend(wire_id);
        }
    }

    /// Handles the answer to a request that has ended. The result of a probe that has timed out is kept until the answer to
    /// `initialize`: a server that supports both lifecycles may have begun a session by then.
    pub(super) fn handle_late_outcome(&mut self, id: &RequestId, outcome: &Outcome) {
        let (State::ExpectInitializeResult(progress), Outcome::Result(result)) =
            (&mut self.state, outcome)
        else {
            return;
        };
        let is_probe = parse_wire_id(id).is_some_and(|id| progress.late_probes.contains(&id));
        if is_probe && progress.late_discovery.is_none() {
            progress.late_discovery = DiscoverResult::from_result(result);
        }
    }

    /// Uses the late answer to the probe after `initialize` has failed; returns false if there is none.
    pub(super) fn use_late_discovery(&mut self) -> bool {
        let State::ExpectInitializeResult(progress) = &mut self.state else {
            return false;
        };
        let Some(discovered) = progress.late_discovery.take() else {
            return false;
        };
        let offer = &self.settings.offer;
        let is_supported = |spec: &RevisionSpec| {
            discovered
                .supported_revisions
                .iter()
                .any(|id| spec.id() == id)
        };
        let is_useful = offer.choose(Lifecycle::Discover, is_supported).is_some();
        if is_useful {
            self.handle_discovery(discovered);
        }
        is_useful
    }

    /// Sends the probe again after `initialize` was refused, if the server may be slow instead of old: it has not answered
    /// the probe in time, and refuses `initialize` as a server without handshake may do. A server that was not probed, because its
    /// lifecycle was remembered, is probed for any error. Returns false if nothing was sent.
    pub(super) fn probe_again(&mut self, error: &PeerError) -> bool {
        let lists_handshake = self.lists_handshake_revision(error);
        let State::ExpectInitializeResult(progress) = &mut self.state else {
            return false;
        };
        let is_unsupported = error.code() == Some(code::UNSUPPORTED_VERSION);
        let may_be_modern = is_unsupported
            || error.code().is_some_and(|code| {
                let unknown_request = [
                    code::METHOD_NOT_FOUND,
                    code::INVALID_PARAMS,
                    code::INVALID_REQUEST,
                ];
                is_discover_code(code) || unknown_request.contains(&code)
            });
        let was_late = progress.probes == 1 && progress.probe_timed_out && may_be_modern;
        // A server whose lifecycle is remembered may have changed.
        let is_doubtful = is_unsupported || (progress.is_remembered && !lists_handshake);
        let was_never_sent = progress.probes == 0 && is_doubtful;
        if !(was_late || was_never_sent) || self.core.binding == Binding::HttpSse {
            return false;
        }
        progress.probe_timed_out = false;
        let Some(spec) = self.preferred_revision(Lifecycle::Discover) else {
            return false;
        };
        if let Some(progress) = self.state.take_progress() {
            self.send_probe(spec, progress);
        }
        true
    }

    /// Returns true if an error lists a revision with handshake that this client offers.
    fn lists_handshake_revision(&self, error: &PeerError) -> bool {
        let supported = supported_revisions(error).unwrap_or_default();
        let is_listed = |spec: &RevisionSpec| supported.iter().any(|id| spec.id() == id);
        let offer = &self.settings.offer;
        offer.choose(Lifecycle::Initialize, is_listed).is_some()
    }

    /// Sends `initialize` for an older revision, once, if the error may refuse the revision of the last attempt: the
    /// revision that the error names, or the next older one. Returns false if nothing was sent.
    ///
    /// `status` is the HTTP status of the response that contains the error.
    pub(super) fn try_older_revision(&mut self, error: &PeerError, status: Option<u16>) -> bool {
        let State::ExpectInitializeResult(progress) = &self.state else {
            return false;
        };
        let text = format!(
            "{} {}",
            error.message(),
            error.data().map_or("", |data| data.text())
        );
        let may_refuse_revision = status == Some(400)
            || error.code() == Some(code::INVALID_PARAMS)
            || text.to_ascii_lowercase().contains("version");
        let is_known =
            supported_revisions(error).is_some() || error.code().is_some_and(is_discover_code);
        if progress.tried_older || !may_refuse_revision || is_known {
            return false;
        }
        let Some(spec) = self.older_revision(progress, &text) else {
            return false;
        };
        self.note_failure("`initialize`", error.to_string());
        if let Some(mut progress) = self.state.take_progress() {
            progress.tried_older = true;
            self.send_initialize(spec, progress);
        }
        true
    }

    /// Returns the revision that the text names, or the newest one that is older than every revision that was offered to
    /// the server with `initialize`.
    fn older_revision(
        &self,
        progress: &NegotiationProgress,
        text: &str,
    ) -> Option<&'static RevisionSpec> {
        let offer = &self.settings.offer;
        let is_new = |spec: &RevisionSpec| !progress.offered.contains(spec.id());
        let is_named = |spec: &'static RevisionSpec| is_new(spec) && text.contains(spec.id());
        let oldest = offer.specs_of_lifecycle(Lifecycle::Initialize);
        let oldest = oldest.filter(|spec| progress.offered.contains(spec.id()));
        let oldest = oldest.map(RevisionSpec::index).min()?;
        let older = offer.specs_of_lifecycle(Lifecycle::Initialize);
        let older = older.filter(|spec| spec.index() < oldest);
        let next = || older.max_by_key(|spec| spec.index());
        offer.choose(Lifecycle::Initialize, is_named).or_else(next)
    }

    /// Handles an error response whose id is missing, or belongs to no request.
    ///
    /// Over Streamable HTTP, the response to a POST answers the request of the POST, so an error without id is its answer.
    /// During the negotiation only one request waits, so an error is its answer on every transport.
    pub(super) fn handle_error_without_request(
        &mut self,
        arrival: Arrival,
        id: Option<&RequestId>,
        error: PeerError,
    ) {
        let violation = match id {
            Some(id) => Violation::UnexpectedResponse(Some(id.clone())),
            None => Violation::ErrorWithoutId(error.clone()),
        };
        self.core.push_violation(violation);
        let answered = self.request_of_error(arrival, id.is_some());
        if let Some(request) = answered.and_then(|key| self.core.pending.remove(key)) {
            self.handle_answer(request, Outcome::Error(error));
        }
    }

    /// Returns the request that an error without the id of a request answers, if there is only one that it can answer.
    pub(super) fn request_of_error(&self, arrival: Arrival, has_id: bool) -> Option<RequestKey> {
        let is_post = self.core.binding == Binding::StreamableHttp;
        let mut waiting = self.core.pending.iter().filter(|request| {
            request.wire_id().is_some() && (!is_post || request.stream == arrival.stream)
        });
        let (Some(request), None, None) = (waiting.next(), waiting.next(), arrival.batch) else {
            return None;
        };
        let is_negotiation = matches!(request.purpose, Purpose::Probe(_) | Purpose::Initialize);
        (is_negotiation || (is_post && !has_id)).then_some(request.key)
    }

    /// Returns the error of a negotiation without an answer: it shows what the server has sent instead of a message.
    pub(super) fn silence_error(&self) -> NegotiationError {
        match &self.core.first_malformed {
            Some(text) => NegotiationError::NoMessage(text.clone()),
            None => NegotiationError::TimedOut,
        }
    }
}
