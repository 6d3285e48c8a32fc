//! Requests that carry their revision themselves, as a server sees them (2026-07-28: `basic`, `basic/versioning`,
//! `basic/patterns`, `server/discover`).
//!
//! Takes one request at a time and infers nothing from earlier ones. What is kept lives as long as the request.

use std::sync::Arc;

use mcp_exact_wire::{Json, JsonObject, RequestId};

use super::ServerEndpoint;
use super::handshake::unsupported;
use super::incoming::{Caller, FrameContext};
use super::receive::Received;
use super::request_meta::{RequestMeta, Resumed, Words};
use crate::error::{PeerError, SendError, code};
use crate::message::Call;
use crate::meta;
use crate::revision::{self, Lifecycle, Rules};
use crate::seal::{self, Payload};
use crate::types::{Binding, InputRequest, RequestKey, Sent, StreamId};

impl<C> ServerEndpoint<C> {
    /// Whether a request names its revision itself. A mere `_meta` says nothing: older clients send it too.
    pub(super) fn is_per_request(
        &self,
        call: &Call,
        said: &RequestMeta<'_>,
        with: &FrameContext<C>,
    ) -> bool {
        let mut modern = self.config.offer.of_lifecycle(Lifecycle::Discover);
        // HTTP with SSE is a transport of sessions (2024-11-05).
        if modern.next().is_none() || self.binding == Binding::HttpSse {
            return false;
        }
        let header = with
            .http
            .as_ref()
            .and_then(|http| http.header("mcp-protocol-version"));
        let named = header.is_some_and(|id| revision::lifecycle(id) == Some(Lifecycle::Discover));
        let no_handshake = self
            .config
            .offer
            .of_lifecycle(Lifecycle::Initialize)
            .next()
            .is_none();
        let alone = no_handshake && call.method != "initialize";
        alone || named || said.version.is_some()
    }

    pub(super) fn stateless_request(
        &mut self,
        request: Received,
        admitted: Result<(Arc<Caller>, Resumed), PeerError>,
        with: &Arc<FrameContext<C>>,
    ) {
        let (on, batch) = (request.on, request.batch);
        let (caller, resumed) = match admitted {
            Ok(admitted) => admitted,
            Err(error) => return self.refuse(on, batch, &request.id, &error),
        };
        match request.call.method.as_str() {
            "server/discover" => {
                let bytes = self.discovered(&request.id, caller.rules);
                self.respond(on, batch, bytes, 200);
            }
            "subscriptions/listen" => self.listen(request, caller, with),
            _ => self.serve(request, caller, with, resumed),
        }
    }

    /// The checks, in this order: required members, header, revision, method, headers, capabilities. Then what
    /// a repeated request brings.
    pub(super) fn admit_stateless(
        &self,
        scope: Option<StreamId>,
        id: &RequestId,
        call: &Call,
        said: &RequestMeta<'_>,
        with: &FrameContext<C>,
    ) -> Result<(Arc<Caller>, Resumed), PeerError> {
        if self.served.find(scope, id).is_some() {
            return Err(PeerError::invalid_request(
                "the id belongs to another request in flight",
            ));
        }
        let version = said.required_version()?;
        let http = with.http.as_ref();
        if let Some(http) = http {
            crate::http::check_version(http, &version)?;
        }
        let rules = self
            .config
            .offer
            .of_lifecycle(Lifecycle::Discover)
            .find(|rules| rules.is(&version));
        let rules = rules.ok_or_else(|| unsupported(&self.config, &version))?;
        let caller = Arc::new(said.caller(rules)?);
        self.admit(&caller, &call.method, call.params.as_ref(), call.size())?;
        if let Some(http) = http {
            let extensions = &self.config.extensions;
            crate::http::check_names(http, &call.method, call.params.as_ref(), extensions)?;
        }
        let resumed = match meta::may_ask(&call.method) {
            true => self.resumed(call, said, with)?,
            false => Resumed::default(),
        };
        Ok((caller, resumed))
    }

    /// The round, the state and the answers that a repeated request brings. A state that this server has not sealed for
    /// the same caller and request, or that has expired, is refused.
    fn resumed(
        &self,
        call: &Call,
        said: &RequestMeta<'_>,
        with: &FrameContext<C>,
    ) -> Result<Resumed, PeerError> {
        // What was not asked cannot be answered: there are no more answers than there may be questions.
        let answers = said.answers(self.config.limits.input_requests)?;
        let Some(sealed) = said.state else {
            return Ok(Resumed {
                round: u32::from(!answers.is_empty()),
                state: None,
                answers,
            });
        };
        let refused = || PeerError::invalid_params("the request state is not valid; start again");
        let sealed: String = sealed.decode_as().map_err(|_| refused())?;
        let seal = self.config.seal.as_ref().ok_or_else(refused)?;
        let context = context(call, with);
        let payload = seal
            .open(&sealed, &context)
            .and_then(|text| Payload::read(&text));
        let payload = payload
            .filter(|payload| payload.expires > self.now)
            .ok_or_else(refused)?;
        Ok(Resumed {
            round: payload.round,
            state: payload.state,
            answers,
        })
    }

    /// InputResponses with questions: the request ends here, and comes again as another one.
    pub(super) fn input_required(
        &mut self,
        to: RequestKey,
        asks: &[(String, InputRequest)],
        state: Option<String>,
    ) -> Result<Sent, SendError> {
        let serving = self.served.get(to).ok_or(SendError::UnknownRequest)?;
        let origin = &serving.rest.origin;
        if !meta::may_ask(&origin.call.method) {
            return Err(SendError::InputRequests(
                "only `tools/call`, `prompts/get` and `resources/read` can ask in this revision",
            ));
        }
        let mut result = JsonObject::from_iter([("resultType", Json::string("input_required"))]);
        if !asks.is_empty() {
            let requests = asks.iter().map(|(name, ask)| (name, embedded(ask)));
            result.insert("inputRequests", JsonObject::from_iter(requests));
        }
        match &self.config.seal {
            Some(seal) => {
                let payload = Payload {
                    round: serving.rest.round + 1,
                    expires: self.now.plus(self.config.state_lifetime),
                    state,
                };
                let context = context(&origin.call, &origin.with);
                let sealed = seal.seal(&payload.text(), &context);
                result.insert("requestState", Json::string(&sealed));
            }
            None if state.is_some() => {
                return Err(SendError::InputRequests(
                    "a state travels through the client; configure a seal for it",
                ));
            }
            None => {}
        }
        let (id, rules) = (serving.id.clone(), serving.rest.caller.rules);
        let bytes = self.words(rules).beside(&id, &result, None);
        Ok(self.answer(to, bytes, 200))
    }

    /// What results say by themselves. It is spelt once for a revision.
    pub(super) fn words(&mut self, rules: &'static Rules) -> Arc<Words> {
        match &self.words {
            Some((of, words)) if *of == rules => Arc::clone(words),
            _ => {
                let words = Arc::new(Words::of(&self.config, rules));
                self.words = Some((rules, Arc::clone(&words)));
                words
            }
        }
    }

    /// The answer to `server/discover`.
    fn discovered(&mut self, id: &RequestId, rules: &'static Rules) -> Vec<u8> {
        let config = &self.config;
        let supported: Vec<String> = config
            .offer
            .rules()
            .map(|r| r.revision.to_string())
            .collect();
        let mut result = JsonObject::from_iter([
            ("supportedVersions", Json::from_encode(&supported)),
            ("capabilities", config.towards(rules).into()),
        ]);
        if let Some(instructions) = &config.instructions {
            result.insert("instructions", Json::string(instructions));
        }
        self.words(rules)
            .beside(id, &result, Some("server/discover"))
    }

    /// The end of a stream cancels the requests that were sent without a session.
    pub(super) fn stream_closed(&mut self, stream: StreamId) {
        let on_it = self.served.iter().filter(|(_, s)| s.scope == Some(stream));
        let keys: Vec<RequestKey> = on_it.map(|(key, _)| key).collect();
        for key in keys {
            self.stop(key, None);
        }
    }
}

fn context<C>(call: &Call, with: &FrameContext<C>) -> Vec<u8> {
    let principal = with.principal.as_ref().map(|principal| &*principal.0);
    seal::context(principal, &call.method, call.params.as_ref())
}

fn embedded(ask: &InputRequest) -> Json {
    let mut request = JsonObject::from_iter([("method", Json::string(&ask.method))]);
    if let Some(params) = &ask.params {
        request.insert("params", params.clone());
    }
    request.into()
}

/// An error with a code that this era may carry (`basic`, "Error Codes").
pub(super) fn allowed(error: &PeerError) -> PeerError {
    let defined = [
        code::HEADER_MISMATCH,
        code::MISSING_CLIENT_CAPABILITY,
        code::UNSUPPORTED_VERSION,
    ];
    let replaced = match error.code() {
        Some(code::RESOURCE_NOT_FOUND) => code::INVALID_PARAMS,
        Some(reserved @ -32099..=-32020) if !defined.contains(&reserved) => code::INTERNAL_ERROR,
        _ => return error.clone(),
    };
    let allowed = PeerError::new(replaced, error.message());
    match error.data() {
        Some(data) => allowed.with_data(data.clone()),
        None => allowed,
    }
}
