//! Negotiation of the revision: a probe if the client offers both lifecycles, `initialize` otherwise, and the next step
//! after each answer (`basic/lifecycle`; 2026-07-28: `basic/versioning`, `basic/transports/stdio`, "Backward
//! Compatibility").
//!
//! The negotiation ends in the state `Operating`, or with an error that explains how to correct its cause. The fallback
//! never depends on a single error code.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use mcp_exact_wire::{Json, JsonObject, JsonRef};

use super::ClientEndpoint;
use super::discovery::{DiscoverResult, supported_revisions};
use super::events::{CachedNegotiation, ClientEvent, TransportFailure};
use super::outbound::Purpose;
use super::session::{NegotiatedSession, NegotiationProgress, SenderMeta, State, string_member};
use crate::Time;
use crate::builtin_notifications::INITIALIZED;
use crate::core::{Endpoint, Frame, NewRequest};
use crate::error::{NegotiationError, PeerError, code};
use crate::limits::RequestTimeout;
use crate::message::{self, Call};
use crate::outcome::{Outcome, RawResult};
use crate::rules::capability::defined_capabilities;
use crate::session_info::SessionInfo;
use crate::stream::{Binding, HttpHints, RequestKey, StreamEnd, StreamId, StreamKind};

impl ClientEndpoint {
    /// Sends the first request of the negotiation.
    pub(super) fn begin_negotiation(&mut self, cached: Option<&CachedNegotiation>) {
        let Some(mut progress) = self.state.take_progress() else {
            return;
        };
        progress.probe_was_silent = cached.is_some_and(|cached| cached.probe_was_silent);
        let offer = &self.settings.offer;
        // HTTP with SSE is a transport of sessions (2024-11-05).
        let sse = self.core.binding == Binding::HttpSse;
        let discover = offer
            .specs_of_lifecycle(Lifecycle::Discover)
            .next()
            .filter(|_| !sse);
        let initialize = offer.specs_of_lifecycle(Lifecycle::Initialize).next();
        let old = cached.is_some_and(|cached| cached.lifecycle == Lifecycle::Initialize);
        match (discover, initialize) {
            (None, Some(first)) => self.send_initialize(first, progress),
            (Some(_), Some(first)) if old => {
                progress.is_remembered = true;
                self.send_initialize(first, progress);
            }
            (Some(first), _) => self.send_probe(first, progress),
            (None, None) => self.fail_negotiation(NegotiationError::NoHandshake {
                answered: "no revision over HTTP with SSE".to_owned(),
                offered: self.settings.offer.offered_revisions(),
            }),
        }
    }

    /// Records that a new server process replaces one that exited after a probe. If no process can be started, call
    /// [`handle_failure`](Self::handle_failure) with [`TransportFailure::Exited`] instead: the negotiation ends.
    pub fn handle_restart(&mut self, now: Time) {
        self.core.advance_clock(now);
        let State::ExpectRestart(_) = self.state else {
            return;
        };
        self.core
            .streams
            .insert_stream(StreamId::DUPLEX, StreamKind::Duplex);
        let first = self.preferred_revision(Lifecycle::Initialize);
        if let (Some(progress), Some(first)) = (self.state.take_progress(), first) {
            self.send_initialize(first, progress);
        }
    }

    /// Records that a message did not reach the server, or that its answer did not reach the client.
    pub fn handle_failure(&mut self, stream: StreamId, failure: TransportFailure, now: Time) {
        self.core.advance_clock(now);
        match failure {
            TransportFailure::Exited
            | TransportFailure::Lost
            | TransportFailure::Unanswered
            | TransportFailure::Unreachable
                if self.is_orphaned(stream) =>
            {
                self.handle_close(stream, StreamEnd::Lost, now);
            }
            TransportFailure::Unanswered | TransportFailure::Unreachable
                if self.repeat_unanswered(stream, failure == TransportFailure::Unanswered) => {}
            TransportFailure::Unreachable if self.state.session().is_none() => {
                self.fail_negotiation(NegotiationError::Lost);
            }
            TransportFailure::Exited
            | TransportFailure::Lost
            | TransportFailure::Unanswered
            | TransportFailure::Unreachable => {
                if stream == StreamId::DUPLEX && matches!(self.state, State::ExpectRestart(_)) {
                    return self.fail_negotiation(NegotiationError::Lost);
                }
                self.handle_close(stream, StreamEnd::Lost, now);
            }
            TransportFailure::Status { code, body } => {
                self.handle_status(stream, (code, None), &body, |error| error);
            }
            TransportFailure::Unavailable {
                code,
                body,
                retry_after,
            } => {
                let status = (code, Some(retry_after));
                self.handle_status(stream, status, &body, |error| error);
            }
            TransportFailure::Unauthorized {
                code,
                body,
                challenge,
            } => {
                let refused = PeerError::unauthorized(code, &body, challenge.as_deref());
                self.handle_status(stream, (code, None), &body, |_| Some(refused));
            }
            TransportFailure::Redirect { code, location } => {
                self.handle_redirect(stream, code, &location);
            }
            TransportFailure::NoAnswer { reason } => self.handle_no_answer(stream, reason),
        }
    }

    /// Returns the client's most preferred revision of a lifecycle.
    pub(super) fn preferred_revision(&self, lifecycle: Lifecycle) -> Option<&'static RevisionSpec> {
        self.settings.offer.specs_of_lifecycle(lifecycle).next()
    }

    /// Handles the end of the duplex stream. After a probe, the server may have exited because of the probe.
    pub(super) fn handle_duplex_end(&mut self) {
        let probed = match &self.state {
            State::ExpectDiscovery(progress) => progress.probes > 0,
            State::ExpectInitializeResult(progress) => progress.probe_timed_out,
            _ => false,
        };
        if probed && self.preferred_revision(Lifecycle::Initialize).is_some() {
            if let Some(progress) = self.state.take_progress() {
                // A server that has changed its revision may be probed while requests of the application wait.
                while let Some(request) = self.core.pending.remove_oldest() {
                    self.observe_end(&request, &Outcome::Lost);
                    if let Purpose::Application(_) = request.purpose {
                        self.complete_request(request.key, Outcome::Lost);
                    }
                }
                self.core.streams.clear();
                // The next process is not probed, and its silence does not count as slowness.
                let progress = NegotiationProgress {
                    probe_timed_out: false,
                    offered: BTreeSet::new(),
                    ..progress
                };
                self.state = State::ExpectRestart(progress);
                self.core.push_event(ClientEvent::RestartServer);
            }
            return;
        }
        if self.state.session().is_none() {
            let lost = ClientEvent::Failed(NegotiationError::Lost);
            self.core.push_event(lost);
        }
        self.close_with(&Outcome::Lost);
    }

    /// Sends `server/discover` as a probe.
    pub(super) fn send_probe(
        &mut self,
        spec: &'static RevisionSpec,
        mut progress: NegotiationProgress,
    ) {
        progress.probes += 1;
        progress.offered.insert(spec.id());
        self.state = State::ExpectDiscovery(progress);
        let sender = SenderMeta::new(&self.settings, spec);
        let params = JsonObject::from_iter([("_meta", sender.meta().clone())]);
        // The shorter probe timeout applies only if the client can fall back to `initialize`.
        let handshake = self.settings.handshake_timeout;
        let timeout = match self.preferred_revision(Lifecycle::Initialize) {
            // Half of the time is left for `initialize`.
            Some(_) => self.settings.probe_timeout.min(handshake / 2),
            None => handshake,
        };
        self.send_negotiation_request("server/discover", &params, timeout, Purpose::Probe(spec));
    }

    /// Sends a probe again, once, because no response to its POST began; returns false if nothing was sent.
    pub(super) fn repeat_probe(
        &mut self,
        key: RequestKey,
        stream: StreamId,
        spec: &'static RevisionSpec,
    ) -> bool {
        let State::ExpectDiscovery(progress) = &mut self.state else {
            return false;
        };
        if std::mem::replace(&mut progress.was_repeated, true) {
            return false;
        }
        // Both count as one probe.
        progress.probes -= 1;
        let Some(progress) = self.state.take_progress() else {
            return false;
        };
        if let Some(request) = self.core.pending.remove(key) {
            self.observe_end(&request, &Outcome::Lost);
        }
        self.core.streams.remove(stream);
        self.send_probe(spec, progress);
        true
    }

    /// Sends `initialize` for a revision.
    pub(super) fn send_initialize(
        &mut self,
        spec: &'static RevisionSpec,
        mut progress: NegotiationProgress,
    ) {
        progress.offered.insert(spec.id());
        self.state = State::ExpectInitializeResult(progress);
        let capabilities = self.settings.capabilities_for(spec);
        let params = JsonObject::from_iter([
            ("protocolVersion", Json::string(spec.id())),
            ("capabilities", capabilities.into()),
            ("clientInfo", self.settings.identity.to_object(spec).into()),
        ]);
        let timeout = self.settings.handshake_timeout;
        self.send_negotiation_request("initialize", &params, timeout, Purpose::Initialize);
    }

    /// Sends a request of the negotiation.
    pub(super) fn send_negotiation_request(
        &mut self,
        method: &str,
        params: &JsonObject,
        timeout: std::time::Duration,
        purpose: Purpose,
    ) {
        let stream = self.outgoing_stream();
        let mut hints = match purpose {
            Purpose::Probe(spec) | Purpose::LifecycleCheck(spec) => {
                self.request_hints(spec, method, Some(params))
            }
            Purpose::Initialize | Purpose::Application(_) => HttpHints {
                revision: HttpHints::for_revision(self.spec()),
                ..HttpHints::default()
            },
        };
        hints.starts_session = matches!(purpose, Purpose::Probe(_) | Purpose::Initialize);
        hints.may_assign_session = matches!(purpose, Purpose::Initialize);
        let key = self.core.new_key();
        let handshake = self.settings.handshake_timeout;
        let now = self.core.now;
        let new = NewRequest {
            key,
            stream,
            timeout: RequestTimeout {
                idle: timeout,
                reset_on_progress: false,
                total: timeout,
            },
            // The handshake timeout applies to all attempts together.
            final_deadline: self.state.progress_mut().map(|progress| {
                *progress
                    .deadline
                    .get_or_insert_with(|| now.saturating_add(handshake))
            }),
            with_progress: false,
            purpose,
        };
        let id = self.core.pending.insert(new, self.core.now);
        let mut frame = Frame::new(stream, message::write_request(id, method, Some(params)));
        frame.local_request = Some(key);
        frame.http = hints;
        self.core.queue_frame(frame);
    }

    /// Handles the outcome of the probe: enters the session, tries another revision, falls back to `initialize`, or
    /// ends the negotiation with an error.
    pub(super) fn handle_probe_outcome(&mut self, spec: &'static RevisionSpec, outcome: Outcome) {
        let State::ExpectDiscovery(_) = self.state else {
            return;
        };
        match outcome {
            Outcome::Result(result) => match DiscoverResult::from_result(&result) {
                Some(discovered) => self.handle_discovery(discovered),
                None => self.fall_back("a result that is not a discovery".into(), true),
            },
            Outcome::Error(error) => match error.code() {
                Some(code::UNSUPPORTED_VERSION) => {
                    let supported = supported_revisions(&error).unwrap_or_default();
                    self.choose_discover_revision(&supported, spec);
                }
                Some(code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY) => {
                    self.fail_negotiation(NegotiationError::Refused(error));
                }
                _ => self.fall_back(error.to_string(), !error.is_local()),
            },
            Outcome::TimedOut => self.fall_back("silence".into(), true),
            // Over HTTP, the response to the POST ended without an answer.
            Outcome::Lost if self.core.binding == Binding::StreamableHttp => {
                self.fall_back("a response without an answer".into(), false);
            }
            Outcome::Lost | Outcome::Cancelled | Outcome::Closed => {
                self.fail_negotiation(NegotiationError::Lost);
            }
        }
    }

    /// Enters the session with the most preferred revision that the result of `server/discover` lists, or sends
    /// `initialize` if the result lists no common revision without handshake.
    pub(super) fn handle_discovery(&mut self, discovered: DiscoverResult) {
        let common = self.settings.offer.choose(Lifecycle::Discover, |spec| {
            discovered
                .supported_revisions
                .iter()
                .any(|id| spec.id() == id)
        });
        let Some(spec) = common else {
            return self.choose_initialize_revision(&discovered.supported_revisions);
        };
        let info = SessionInfo {
            revision: spec.revision(),
            ..discovered.server_info
        };
        self.enter_session(NegotiatedSession::new(spec, info, &self.settings));
        self.send_deferred();
    }

    /// Selects the most preferred revision without handshake that the server lists; `tried` is the revision of the
    /// answered probe.
    ///
    /// A server that refuses a revision but lists it as supported is probed once more: "The client SHOULD select a
    /// mutually supported version from the `supported` list and retry the request" (2026-07-28, `basic/versioning`).
    fn choose_discover_revision(&mut self, supported: &[String], tried: &'static RevisionSpec) {
        let State::ExpectDiscovery(progress) = &self.state else {
            return;
        };
        let untried = |spec: &'static RevisionSpec| {
            spec != tried
                && supported.iter().any(|id| spec.id() == id)
                && !progress.offered.contains(spec.id())
        };
        let listed = |spec: &'static RevisionSpec| supported.iter().any(|id| spec.id() == id);
        let offer = &self.settings.offer;
        let again = progress.probes == 1
            && listed(tried)
            && offer.choose(Lifecycle::Initialize, listed).is_none();
        let other = offer.choose(Lifecycle::Discover, untried);
        match other.or(again.then_some(tried)) {
            Some(spec) => {
                if let Some(progress) = self.state.take_progress() {
                    self.send_probe(spec, progress);
                }
            }
            None => self.choose_initialize_revision(supported),
        }
    }

    /// Selects the most preferred revision with handshake that the server lists, and sends `initialize`.
    fn choose_initialize_revision(&mut self, supported: &[String]) {
        let listed = |spec: &'static RevisionSpec| supported.iter().any(|id| spec.id() == id);
        let common = self.settings.offer.choose(Lifecycle::Initialize, listed);
        match (common, self.state.take_progress()) {
            (Some(spec), Some(progress)) => self.send_initialize(spec, progress),
            _ => self.fail_negotiation(NegotiationError::NoCommonRevision {
                supported: supported.to_vec(),
                offered: self.settings.offer.offered_revisions(),
            }),
        }
    }

    /// Handles the outcome of `initialize`: enters the session, tries another revision, or ends the negotiation with an
    /// error.
    pub(super) fn handle_initialize_outcome(&mut self, outcome: Outcome) {
        let State::ExpectInitializeResult(_) = self.state else {
            return;
        };
        match outcome {
            Outcome::Result(result) => match self.handle_initialize_result(&result) {
                Ok(session) => {
                    self.enter_session(session);
                    self.send_initialized();
                    self.send_deferred();
                }
                Err(error) => self.fail_negotiation(error),
            },
            Outcome::Error(error) => self.handle_initialize_error(error),
            Outcome::TimedOut => {
                if !self.use_late_discovery() {
                    self.fail_negotiation(self.silence_error());
                }
            }
            Outcome::Lost | Outcome::Cancelled | Outcome::Closed => {
                self.fail_negotiation(NegotiationError::Lost);
            }
        }
    }

    /// Sends `notifications/initialized` before other requests, because some servers refuse requests whose POST arrives earlier.
    fn send_initialized(&mut self) {
        let stream = self.outgoing_stream();
        self.initialized_stream = Some(stream).filter(|stream| *stream != StreamId::DUPLEX);
        let call = Call::new(INITIALIZED, None);
        let mut frame = Frame::new(stream, message::write_notification(call));
        frame.http.revision = HttpHints::for_revision(self.spec());
        frame.http.waits_for_status = true;
        self.core.queue_frame(frame);
    }

    /// Handles an error response to `initialize`, which may list the supported revisions. A server that is slow instead of
    /// old is probed again, and an older revision is tried.
    fn handle_initialize_error(&mut self, error: PeerError) {
        if self.use_late_discovery() || self.probe_again(&error) {
            return;
        }
        let Some(supported) = supported_revisions(&error) else {
            if !self.try_older_revision(&error, None) {
                self.fail_negotiation(NegotiationError::Refused(error));
            }
            return;
        };
        let Some(progress) = self.state.take_progress() else {
            return;
        };
        let untried = |spec: &'static RevisionSpec| {
            supported.iter().any(|id| spec.id() == id) && !progress.offered.contains(spec.id())
        };
        match self.settings.offer.choose(Lifecycle::Initialize, untried) {
            Some(spec) => self.send_initialize(spec, progress),
            None => self.fail_negotiation(NegotiationError::NoCommonRevision {
                supported,
                offered: self.settings.offer.offered_revisions(),
            }),
        }
    }

    /// Decodes the result of `initialize`.
    fn handle_initialize_result(
        &self,
        result: &RawResult,
    ) -> Result<NegotiatedSession, NegotiationError> {
        let unreadable = |text: &str| NegotiationError::InvalidAnswer(text.to_owned());
        let object = result.object();
        let answered = string_member(object, "protocolVersion")
            .ok_or_else(|| unreadable("`protocolVersion` must be a string"))?;
        let same = |spec: &'static RevisionSpec| spec.id() == answered;
        let spec = self.settings.offer.choose(Lifecycle::Initialize, same);
        let spec = spec.ok_or_else(|| NegotiationError::Revision {
            answered: answered.clone(),
            offered: self.settings.offer.offered_revisions(),
        })?;
        let [capabilities, server, instructions] =
            object
                .view()
                .find_each(["capabilities", "serverInfo", "instructions"]);
        let capabilities = capabilities.and_then(JsonRef::object);
        let capabilities =
            capabilities.ok_or_else(|| unreadable("`capabilities` must be an object"))?;
        let server = server.and_then(JsonRef::object);
        let named = server.filter(|server| {
            let text = |name: &str| server.find(name).and_then(JsonRef::as_str);
            text("name").is_some() && text("version").is_some()
        });
        let server = named.ok_or_else(|| {
            unreadable("`serverInfo` must be an object with `name` and `version`")
        })?;
        let instructions = match instructions {
            None => None,
            Some(text) => Some(
                text.as_str()
                    .ok_or_else(|| unreadable("`instructions` must be a string"))?,
            ),
        };
        let info = SessionInfo {
            revision: spec.revision(),
            capabilities: defined_capabilities(spec, capabilities.to_object()),
            implementation: Some(server.to_object()),
            instructions: instructions.map(std::borrow::Cow::into_owned),
        };
        Ok(NegotiatedSession::new(spec, info, &self.settings))
    }

    /// Ends the negotiation, and reports the negotiated session to the application.
    pub(super) fn enter_session(&mut self, session: NegotiatedSession) {
        let progress = self.state.progress_mut();
        let probe_was_silent = progress.is_some_and(|progress| progress.probe_was_silent)
            && session.spec.lifecycle() == Lifecycle::Initialize;
        let cached = CachedNegotiation {
            probe_was_silent,
            ..CachedNegotiation::from_revision(session.spec)
        };
        let info = session.session_info.clone();
        self.earlier_failure = None;
        self.state = State::Operating(Arc::new(session));
        self.core.push_event(ClientEvent::Negotiated(info, cached));
    }

    /// Ends the negotiation with an error: "If the client does not support the version in the server's response, it SHOULD
    /// disconnect."
    pub(super) fn fail_negotiation(&mut self, error: NegotiationError) {
        let error = error.after(self.earlier_failure.take());
        self.core.push_event(ClientEvent::Failed(error));
        // `take_progress` may have set the state `Ended`, but pending requests have to end, too.
        self.state = State::start();
        self.close_with(&Outcome::Closed);
        self.core.streams.close_all();
    }
}
