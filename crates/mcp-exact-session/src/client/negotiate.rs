//! How a client comes to an agreement: a probe where it speaks both eras, `initialize` otherwise, and what follows from each
//! answer (`basic/lifecycle`; 2026-07-28: `basic/versioning`, `basic/transports/stdio`, "Backward Compatibility").
//!
//! Takes the ends of the machine's own requests; ends in `Operating` or in an error that says what to do. Never hangs the
//! fallback on one code.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_exact_wire::{Json, JsonObject, ObjectRef, ObjectWith, from_str};

use super::events::{CachedNegotiation, ClientEvent, TransportFailure};
use super::{ClientEndpoint, Purpose};
use crate::Time;
use crate::capability::understood;
use crate::config::ClientConfig;
use crate::error::{NegotiationError, PeerError, Violation, code};
use crate::limits::{Limit, RequestTimeout};
use crate::message::{self, Call};
use crate::meta;
use crate::negotiated::ServerResults;
use crate::outbox::Address;
use crate::pending::NewRequest;
use crate::revision::{Lifecycle, Rules};
use crate::types::{Binding, Outcome, RawResult, SessionInfo, StreamId, StreamKind};

/// Where a client stands.
#[derive(Debug)]
pub(super) enum State {
    /// It waits for the answer to a probe.
    ExpectDiscovery(Found),
    /// It waits for the answer to `initialize`.
    ExpectInitializeResult(Found),
    /// It waits for a new process.
    ExpectRestart(Found),
    Operating(Arc<NegotiatedSession>),
    Ended,
}

/// What is agreed.
#[derive(Debug)]
pub(super) struct NegotiatedSession {
    pub(super) rules: &'static Rules,
    pub(super) agreed: SessionInfo,
    /// What requests say in a revision where each one says it.
    pub(super) sender: Option<Sender>,
}

impl NegotiatedSession {
    pub(super) fn new(rules: &'static Rules, agreed: SessionInfo, config: &ClientConfig) -> Self {
        let modern = rules.lifecycle() == Lifecycle::Discover;
        Self {
            rules,
            agreed,
            sender: modern.then(|| Sender::of(config, rules)),
        }
    }
}

/// What every request says of its sender (2026-07-28: `basic`, "_meta").
#[derive(Debug)]
pub(super) struct Sender {
    version: Json,
    capabilities: JsonObject,
    info: JsonObject,
    /// All of it.
    meta: JsonObject,
}

impl Sender {
    fn of(config: &ClientConfig, rules: &Rules) -> Self {
        let version = Json::string(rules.revision.as_str());
        let capabilities = config.towards(rules);
        let info = config.identity.towards(rules);
        let meta = JsonObject::from_iter([
            (meta::PROTOCOL_VERSION, version.clone()),
            (meta::CLIENT_CAPABILITIES, capabilities.clone().into()),
            (meta::CLIENT_INFO, info.clone().into()),
        ]);
        Self {
            version,
            capabilities,
            info,
            meta,
        }
    }

    /// The `_meta` of a request that says no more.
    pub(super) fn meta(&self) -> &JsonObject {
        &self.meta
    }

    /// The `_meta` of a request in which the program says something too: who it is, perhaps, but neither what it speaks nor
    /// what it can do.
    pub(super) fn beside<'a>(&'a self, said: ObjectRef<'a>) -> ObjectWith<'a, 3> {
        let info = said.find(meta::CLIENT_INFO);
        said.with([
            (meta::PROTOCOL_VERSION, Some(self.version.view())),
            (
                meta::CLIENT_CAPABILITIES,
                Some(self.capabilities.as_json().view()),
            ),
            (
                meta::CLIENT_INFO,
                info.is_none().then_some(self.info.as_json().view()),
            ),
        ])
    }
}

/// What a client has found out on its way.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Revisions that were offered already.
    offered: BTreeSet<&'static str>,
    /// How often the server was probed: twice at most.
    probes: u8,
    /// Whether the probe was met with silence: the server may be slow rather than old.
    silent: bool,
}

impl State {
    pub(super) fn start() -> Self {
        Self::ExpectDiscovery(Found::default())
    }

    pub(super) fn spoken(&self) -> Option<&Arc<NegotiatedSession>> {
        match self {
            Self::Operating(spoken) => Some(spoken),
            _ => None,
        }
    }

    fn take(&mut self) -> Option<Found> {
        match std::mem::replace(self, Self::Ended) {
            Self::ExpectDiscovery(found)
            | Self::ExpectInitializeResult(found)
            | Self::ExpectRestart(found) => Some(found),
            Self::Operating(_) | Self::Ended => None,
        }
    }
}

impl ClientEndpoint {
    pub(super) fn begin(&mut self, prior: Option<&CachedNegotiation>) {
        let Some(found) = self.state.take() else {
            return;
        };
        // HTTP with SSE is a transport of sessions (2024-11-05).
        let sse = self.binding == Binding::HttpSse;
        let modern = self.config.offer.of_lifecycle(Lifecycle::Discover).next();
        let modern = modern.filter(|_| !sse);
        let old = prior.is_some_and(|verdict| verdict.lifecycle == Lifecycle::Initialize);
        let handshake = self.config.offer.of_lifecycle(Lifecycle::Initialize).next();
        match (modern, handshake) {
            (None, Some(first)) => self.initialize(first, found),
            (Some(_), Some(first)) if old => self.initialize(first, found),
            (Some(first), _) => self.probe(first, found),
            (None, None) => self.fail(NegotiationError::NoHandshake {
                answered: "no revision over HTTP with SSE".to_owned(),
                offered: self.config.offer.list(),
            }),
        }
    }

    /// A new process was started in place of one that has left after a probe.
    pub fn restarted(&mut self, now: Time) {
        self.advance(now);
        let State::ExpectRestart(_) = self.state else {
            return;
        };
        self.streams.insert(StreamId::DUPLEX, StreamKind::Duplex);
        let first = self.config.offer.of_lifecycle(Lifecycle::Initialize).next();
        if let (Some(found), Some(first)) = (self.state.take(), first) {
            self.initialize(first, found);
        }
    }

    /// A message did not reach the server, or its answer not this side.
    pub fn failed(&mut self, on: StreamId, why: TransportFailure, now: Time) {
        self.advance(now);
        match why {
            TransportFailure::Exited | TransportFailure::Lost => {
                self.closed(on, crate::Closed::Lost, now)
            }
            TransportFailure::Status { code, body } => self.status(on, code, &body),
        }
    }

    /// The duplex stream has ended. After a probe, the server may have left because of it.
    pub(super) fn duplex_closed(&mut self) {
        let probed = match &self.state {
            State::ExpectDiscovery(found) => found.probes > 0,
            State::ExpectInitializeResult(found) => found.silent,
            _ => false,
        };
        let handshake = self.config.offer.of_lifecycle(Lifecycle::Initialize).next();
        if probed && handshake.is_some() {
            if let Some(found) = self.state.take() {
                while self.sent.take_any().is_some() {}
                self.outbox.clear();
                self.streams.clear();
                // The next process is not probed, and not thought slow.
                let found = Found {
                    silent: false,
                    offered: BTreeSet::new(),
                    ..found
                };
                self.state = State::ExpectRestart(found);
                self.events.push_back(ClientEvent::RestartServer);
            }
            return;
        }
        if self.state.spoken().is_none() {
            let lost = ClientEvent::Failed(NegotiationError::Lost);
            self.events.push_back(lost);
        }
        self.end(&Outcome::Lost);
    }

    fn probe(&mut self, rules: &'static Rules, mut found: Found) {
        found.probes += 1;
        found.offered.insert(rules.revision.as_str());
        self.state = State::ExpectDiscovery(found);
        let sender = Sender::of(&self.config, rules);
        let params = JsonObject::from_iter([("_meta", sender.meta)]);
        // Silence only tells an old server from a slow one where there is something to fall back to.
        let timeout = match self.config.offer.of_lifecycle(Lifecycle::Initialize).next() {
            Some(_) => self.once(self.config.probe_timeout),
            None => self.once(self.config.handshake_timeout),
        };
        self.send_own("server/discover", &params, timeout, Purpose::Probe(rules));
    }

    pub(super) fn initialize(&mut self, rules: &'static Rules, mut found: Found) {
        found.offered.insert(rules.revision.as_str());
        self.state = State::ExpectInitializeResult(found);
        let params = JsonObject::from_iter([
            ("protocolVersion", Json::string(rules.revision.as_str())),
            ("capabilities", self.config.towards(rules).into()),
            ("clientInfo", self.config.identity.towards(rules).into()),
        ]);
        let timeout = self.once(self.config.handshake_timeout);
        self.send_own("initialize", &params, timeout, Purpose::Initialize);
    }

    fn once(&self, timeout: std::time::Duration) -> RequestTimeout {
        RequestTimeout {
            idle: timeout,
            reset_on_progress: false,
            total: timeout,
        }
    }

    fn send_own(
        &mut self,
        method: &str,
        params: &JsonObject,
        timeout: RequestTimeout,
        purpose: Purpose,
    ) {
        let stream = self.outgoing();
        let mut to = self.with_revision(Address::on(stream));
        if let Purpose::Probe(rules) = purpose {
            to = self.with_hints(to, rules, method, Some(params));
        }
        let opening = NewRequest {
            key: self.key(),
            method: method.to_owned(),
            stream,
            timeout,
            progress: false,
            purpose,
        };
        let id = self.sent.open(opening, self.now);
        let bytes = message::request(id, method, Some(params));
        self.outbox.frame(to, bytes);
    }

    /// The probe has ended.
    pub(super) fn probed(&mut self, rules: &'static Rules, outcome: Outcome) {
        let State::ExpectDiscovery(_) = self.state else {
            return;
        };
        match outcome {
            Outcome::Result(result) => match Discovered::of(&result) {
                Some(discovered) => self.discovered(discovered),
                None => self.is_old(self.too_old("its answer is no discovery".into())),
            },
            Outcome::Error(error) => match error.code() {
                Some(code::UNSUPPORTED_VERSION) => {
                    let supported = supported(&error).unwrap_or_default();
                    self.choose(&supported, rules);
                }
                Some(code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY) => {
                    self.fail(NegotiationError::Refused(error));
                }
                _ => self.is_old(self.too_old(error.to_string())),
            },
            Outcome::TimedOut => {
                if let State::ExpectDiscovery(found) = &mut self.state {
                    found.silent = true;
                }
                self.is_old(self.too_old("silence".into()));
            }
            Outcome::Lost | Outcome::Cancelled | Outcome::Closed => {
                self.fail(NegotiationError::Lost);
            }
        }
    }

    fn too_old(&self, answered: String) -> NegotiationError {
        NegotiationError::NoHandshake {
            answered,
            offered: self.config.offer.list(),
        }
    }

    /// The server knows nothing of requests that carry their revision: `initialize`, where this client speaks it.
    fn is_old(&mut self, otherwise: NegotiationError) {
        let first = self.config.offer.of_lifecycle(Lifecycle::Initialize).next();
        match (first, self.state.take()) {
            (Some(first), Some(found)) => self.initialize(first, found),
            _ => self.fail(otherwise),
        }
    }

    fn discovered(&mut self, discovered: Discovered) {
        let spoken = |rules: &&Rules| discovered.supported.iter().any(|id| rules.is(id));
        let modern = self
            .config
            .offer
            .of_lifecycle(Lifecycle::Discover)
            .find(spoken);
        let Some(rules) = modern else {
            return self.choose_handshake(&discovered.supported);
        };
        let agreed = SessionInfo {
            revision: rules.revision,
            ..discovered.agreed
        };
        self.agree(NegotiatedSession::new(rules, agreed, &self.config));
        self.send_parked();
    }

    /// Goes on with a revision that the server says it speaks, the one that this client prefers.
    fn choose(&mut self, supported: &[String], tried: &Rules) {
        let untried = |rules: &&'static Rules| {
            let offered = match &self.state {
                State::ExpectDiscovery(found) => &found.offered,
                _ => return false,
            };
            rules.revision != tried.revision
                && supported.iter().any(|id| rules.is(id))
                && !offered.contains(rules.revision.as_str())
        };
        let other = self
            .config
            .offer
            .of_lifecycle(Lifecycle::Discover)
            .find(untried);
        match other {
            Some(rules) => {
                if let Some(found) = self.state.take() {
                    self.probe(rules, found);
                }
            }
            None => self.choose_handshake(supported),
        }
    }

    fn choose_handshake(&mut self, supported: &[String]) {
        let spoken = |rules: &&'static Rules| supported.iter().any(|id| rules.is(id));
        let common = self
            .config
            .offer
            .of_lifecycle(Lifecycle::Initialize)
            .find(spoken);
        match (common, self.state.take()) {
            (Some(rules), Some(found)) => self.initialize(rules, found),
            _ => self.fail(NegotiationError::NoCommonRevision {
                supported: supported.to_vec(),
                offered: self.config.offer.list(),
            }),
        }
    }

    /// `initialize` has ended.
    pub(super) fn initialize_ended(&mut self, outcome: Outcome) {
        let State::ExpectInitializeResult(_) = self.state else {
            return;
        };
        match outcome {
            Outcome::Result(result) => match self.initialized(&result) {
                Ok(spoken) => {
                    self.agree(spoken);
                    self.send_notification(Call::new("notifications/initialized", None));
                    self.send_parked();
                }
                Err(error) => self.fail(error),
            },
            Outcome::Error(error) => self.initialize_refused(error),
            Outcome::TimedOut => self.fail(NegotiationError::TimedOut),
            Outcome::Lost | Outcome::Cancelled | Outcome::Closed => {
                self.fail(NegotiationError::Lost);
            }
        }
    }

    /// A server that refuses may say what it speaks. One that was silent and now speaks of unsupported versions was slow.
    fn initialize_refused(&mut self, error: PeerError) {
        let Some(mut found) = self.state.take() else {
            return;
        };
        let modern = self.config.offer.of_lifecycle(Lifecycle::Discover).next();
        let modern = modern.filter(|_| self.binding != Binding::HttpSse);
        let probe = found.probes == 0 || (found.probes == 1 && found.silent);
        if error.code() == Some(code::UNSUPPORTED_VERSION)
            && probe
            && let Some(first) = modern
        {
            found.silent = false;
            return self.probe(first, found);
        }
        let Some(supported) = supported(&error) else {
            return self.fail(NegotiationError::Refused(error));
        };
        let untried = |rules: &&'static Rules| {
            supported.iter().any(|id| rules.is(id))
                && !found.offered.contains(rules.revision.as_str())
        };
        let other = self
            .config
            .offer
            .of_lifecycle(Lifecycle::Initialize)
            .find(untried);
        match other {
            Some(rules) => self.initialize(rules, found),
            None => self.fail(NegotiationError::NoCommonRevision {
                supported,
                offered: self.config.offer.list(),
            }),
        }
    }

    fn initialized(&self, result: &RawResult) -> Result<NegotiatedSession, NegotiationError> {
        let object = result.object();
        let unreadable = |what: &str| NegotiationError::Answer(what.to_owned());
        let answered: String = object
            .get("protocolVersion")
            .and_then(|version| from_str(version.text()).ok())
            .ok_or_else(|| unreadable("`protocolVersion` has to be a string"))?;
        let mut offered = self.config.offer.of_lifecycle(Lifecycle::Initialize);
        let rules = offered.find(|rules| rules.is(&answered));
        let rules = rules.ok_or_else(|| NegotiationError::Revision {
            answered,
            offered: self.config.offer.list(),
        })?;
        result
            .typed::<ServerResults>("initialize", rules.revision)
            .map_err(|error| unreadable(error.message()))?;
        let member = |name: &str| object.get(name).and_then(|v| JsonObject::try_from(v).ok());
        let instructions = object.get("instructions");
        let agreed = SessionInfo {
            revision: rules.revision,
            capabilities: understood(rules, member("capabilities").unwrap_or_default()),
            info: member("serverInfo"),
            instructions: instructions.and_then(|text| from_str(text.text()).ok()),
        };
        Ok(NegotiatedSession::new(rules, agreed, &self.config))
    }

    pub(super) fn agree(&mut self, spoken: NegotiatedSession) {
        let verdict = CachedNegotiation {
            lifecycle: spoken.rules.lifecycle(),
            revision: spoken.rules.revision,
        };
        let agreed = spoken.agreed.clone();
        self.state = State::Operating(Arc::new(spoken));
        self.events
            .push_back(ClientEvent::Negotiated(agreed, verdict));
    }

    /// "If the client does not support the version in the server's response, it SHOULD disconnect."
    fn fail(&mut self, error: NegotiationError) {
        self.events.push_back(ClientEvent::Failed(error));
        self.end(&Outcome::Closed);
        self.close_streams();
    }

    /// An HTTP status instead of an answer.
    fn status(&mut self, on: StreamId, status: u16, body: &[u8]) {
        let fits = body.len() <= self.config.limits.message_bytes;
        if !fits {
            self.violation(Violation::Limit(Limit::MessageBytes));
        }
        let error: Option<PeerError> = crate::http::error_of(if fits { body } else { b"" });
        self.streams.remove(&on);
        let found = self.sent.iter().find(|(_, request)| request.stream == on);
        let Some((id, _)) = found else {
            return;
        };
        let Some(request) = self.sent.take(id) else {
            return;
        };
        let verdict = !matches!(status, 401 | 403 | 500..);
        let modern = error
            .as_ref()
            .and_then(PeerError::code)
            .is_some_and(is_modern);
        match (&request.purpose, error) {
            (Purpose::Probe(_), error) if !verdict => {
                let error = error.unwrap_or_else(|| by_status(status));
                self.fail(NegotiationError::Refused(error));
            }
            (Purpose::Probe(_), error) if !modern => {
                let error = error.unwrap_or_else(|| by_status(status));
                self.is_old(self.too_old(error.to_string()));
            }
            (Purpose::Initialize, error)
                if matches!(status, 400 | 404 | 405)
                    && self.binding == Binding::StreamableHttp
                    && !modern
                    && error.as_ref().and_then(supported).is_none() =>
            {
                // The session may have been agreed over HTTP with SSE instead (2024-11-05).
                self.events.push_back(ClientEvent::UseHttpSse);
                let error = error.unwrap_or_else(|| by_status(status));
                self.fail(NegotiationError::Refused(error));
            }
            (Purpose::Program(_), None)
                if status == 404 && self.binding == Binding::StreamableHttp =>
            {
                let over = self
                    .rules()
                    .is_some_and(|rules| rules.lifecycle() == Lifecycle::Initialize);
                self.request_ended(request, Outcome::Error(by_status(status)));
                if over {
                    self.events.push_back(ClientEvent::SessionLost);
                    self.end(&Outcome::Lost);
                }
            }
            (_, error) => {
                let error = error.unwrap_or_else(|| by_status(status));
                self.request_ended(request, Outcome::Error(error));
            }
        }
    }
}

fn by_status(status: u16) -> PeerError {
    PeerError::internal(format!("the server answers with HTTP status {status}")).local()
}

/// Codes that only a server of the per-request era sends.
fn is_modern(code: i64) -> bool {
    matches!(
        code,
        code::HEADER_MISMATCH | code::MISSING_CLIENT_CAPABILITY | code::UNSUPPORTED_VERSION
    )
}

/// The revisions that an error names.
pub(super) fn supported(error: &PeerError) -> Option<Vec<String>> {
    let data = JsonObject::try_from(error.data()?.clone()).ok()?;
    from_str(data.get("supported")?.text()).ok()
}

/// The result of `server/discover`.
struct Discovered {
    supported: Vec<String>,
    agreed: SessionInfo,
}

impl Discovered {
    fn of(result: &RawResult) -> Option<Self> {
        let object = result.object();
        let supported = from_str(object.get("supportedVersions")?.text()).ok()?;
        let capabilities = JsonObject::try_from(object.get("capabilities")?).ok()?;
        let meta = object
            .get("_meta")
            .and_then(|meta| JsonObject::try_from(meta).ok());
        let info = meta.and_then(|meta| meta.get(meta::SERVER_INFO));
        let instructions = object.get("instructions");
        Some(Self {
            supported,
            agreed: SessionInfo {
                revision: mcp_exact_wire::Revision::new(""),
                capabilities,
                info: info.and_then(|info| JsonObject::try_from(info).ok()),
                instructions: instructions.and_then(|text| from_str(text.text()).ok()),
            },
        })
    }
}
