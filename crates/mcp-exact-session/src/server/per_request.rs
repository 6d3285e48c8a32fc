//! Requests that carry their revision themselves, as a server sees them (2026-07-28: `basic`, `basic/versioning`,
//! `basic/patterns`, `server/discover`).
//!
//! Takes one request at a time and infers nothing from earlier ones. What is kept lives as long as the request.

use std::borrow::Cow;
use std::sync::Arc;

use mcp_exact_wire::{Json, JsonObject, JsonRef, ObjectRef, RequestId};

use super::Server;
use super::handshake::unsupported;
use super::incoming::{Caller, Inbound, ServerEvent};
use super::receive::Received;
use crate::capability;
use crate::config::{Extension, ServerConfig};
use crate::error::{PeerError, SendError, code};
use crate::log::Level;
use crate::message::{self, Call};
use crate::meta;
use crate::notice::is_token;
use crate::outbox::Address;
use crate::revision::{self, Era, Rules};
use crate::seal::{self, Payload};
use crate::types::{
    Agreed, Answers, Ask, Binding, Change, Outcome, RawResult, RequestKey, Sent, StreamId,
};

/// What a client listens to (`basic/patterns/subscriptions`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Changes of the list of tools.
    pub tools: bool,
    /// Changes of the list of prompts.
    pub prompts: bool,
    /// Changes of the list of resources.
    pub resources: bool,
    /// Changes of the resources with these URIs.
    pub uris: Vec<String>,
    /// What extensions add: a listener is told of it by [`Server::notify`] during its request.
    pub more: JsonObject,
}

impl Filter {
    pub(crate) fn of(notifications: ObjectRef<'_>) -> Option<Self> {
        let flag = |name: &str| match notifications.find(name) {
            None => Some(false),
            Some(value) => value.decode_as().ok(),
        };
        let uris = notifications.find("resourceSubscriptions");
        let uris = uris.map(JsonRef::decode_as).transpose().ok()?;
        Some(Self {
            tools: flag("toolsListChanged")?,
            prompts: flag("promptsListChanged")?,
            resources: flag("resourcesListChanged")?,
            uris: uris.unwrap_or_default(),
            more: notifications
                .iter()
                .filter(|(name, _)| !FILTERS.contains(&&**name))
                .map(|(name, value)| (name, value.to_json()))
                .collect(),
        })
    }

    pub(crate) fn object(&self) -> JsonObject {
        let mut object = JsonObject::new();
        let flags = [
            ("toolsListChanged", self.tools),
            ("promptsListChanged", self.prompts),
            ("resourcesListChanged", self.resources),
        ];
        for (name, _) in flags.into_iter().filter(|(_, wanted)| *wanted) {
            object.insert(name, true);
        }
        if !self.uris.is_empty() {
            object.insert("resourceSubscriptions", Json::from_encode(&self.uris));
        }
        for (name, value) in self.more.iter() {
            object.insert(&name, value.parse().unwrap_or(Json::null()));
        }
        object
    }

    /// What a server with these capabilities honours of it.
    fn honoured(mut self, config: &ServerConfig) -> Self {
        let declared = |path: &[&str]| capability::declared(&config.capabilities, path);
        self.tools &= declared(&["tools", "listChanged"]);
        self.prompts &= declared(&["prompts", "listChanged"]);
        self.resources &= declared(&["resources", "listChanged"]);
        if !declared(&["resources", "subscribe"]) {
            self.uris.clear();
        }
        let ours = |name: &str| extension_of(config, name).is_some();
        let kept = self.more.iter().filter(|(name, _)| ours(name));
        self.more = kept
            .map(|(name, value)| (name, value.parse().unwrap_or(Json::null())))
            .collect();
        self
    }

    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::Tools => self.tools,
            Change::Prompts => self.prompts,
            Change::Resources => self.resources,
            Change::Resource(uri) => self.uris.contains(uri),
        }
    }
}

/// Members of a filter that the core defines.
const FILTERS: [&str; 4] = [
    "toolsListChanged",
    "promptsListChanged",
    "resourcesListChanged",
    "resourceSubscriptions",
];

/// The extension that a member of a filter belongs to.
fn extension_of<'c>(config: &'c ServerConfig, member: &str) -> Option<&'c Extension> {
    let mut all = config.extensions.negotiated.iter();
    all.find(|extension| extension.filters.iter().any(|known| known == member))
}

/// A request that is answered by notifications until it ends.
#[derive(Debug)]
pub(super) struct Listening {
    filter: Filter,
}

impl<C> Server<C> {
    /// Whether a request names its revision itself. A mere `_meta` says nothing: older clients send it too.
    pub(super) fn is_per_request(&self, call: &Call, said: &Said<'_>, with: &Inbound<C>) -> bool {
        let mut modern = self.config.offer.of_era(Era::PerRequest);
        // HTTP with SSE is a transport of sessions (2024-11-05).
        if modern.next().is_none() || self.binding == Binding::HttpSse {
            return false;
        }
        let header = with
            .http
            .as_ref()
            .and_then(|http| http.header("mcp-protocol-version"));
        let named = header.is_some_and(|id| revision::era(id) == Some(Era::PerRequest));
        let no_handshake = self.config.offer.of_era(Era::Handshake).next().is_none();
        let alone = no_handshake && call.method != "initialize";
        alone || named || said.version.is_some()
    }

    pub(super) fn stateless_request(
        &mut self,
        request: Received,
        admitted: Result<(Arc<Caller>, Resumed), PeerError>,
        with: &Arc<Inbound<C>>,
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
            _ => {
                self.serve(request, caller, with, resumed);
            }
        }
    }

    /// The checks in the order of PROTOCOL.md: required members, header, revision, method, headers, capabilities. Then what
    /// a repeated request brings.
    pub(super) fn admit_stateless(
        &self,
        scope: Option<StreamId>,
        id: &RequestId,
        call: &Call,
        said: &Said<'_>,
        with: &Inbound<C>,
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
            .of_era(Era::PerRequest)
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
        said: &Said<'_>,
        with: &Inbound<C>,
    ) -> Result<Resumed, PeerError> {
        let answers = said.answers()?;
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

    /// Answers with questions: the request ends here, and comes again as another one.
    pub(super) fn input_required(
        &mut self,
        to: RequestKey,
        asks: &[(String, Ask)],
        state: Option<String>,
    ) -> Result<Sent, SendError> {
        let serving = self.served.get(to).ok_or(SendError::UnknownRequest)?;
        let origin = &serving.rest.origin;
        if !meta::may_ask(&origin.call.method) {
            return Err(SendError::Asks(
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
                return Err(SendError::Asks(
                    "a state travels through the client; configure a seal for it",
                ));
            }
            None => {}
        }
        let (id, rules) = (serving.id.clone(), serving.rest.caller.rules);
        let bytes = self.words(rules).beside(&id, &result, None);
        Ok(self.answer(to, bytes, 200))
    }

    /// `subscriptions/listen`: acknowledged first, then answered by notifications until it ends.
    fn listen(&mut self, request: Received, caller: Arc<Caller>, with: &Arc<Inbound<C>>) {
        let (on, id) = (request.on, request.id.clone());
        let wanted = request.call.param("notifications");
        let Some(filter) = wanted.and_then(JsonRef::object).and_then(Filter::of) else {
            let error = PeerError::invalid_params("`notifications` has to be a filter");
            return self.refuse(on, None, &id, &error);
        };
        let filter = filter.honoured(&self.config);
        let theirs = &caller.agreed.capabilities;
        let lacking = filter
            .more
            .iter()
            .filter_map(|(name, _)| extension_of(&self.config, &name))
            .find(|extension| !extension.declared(theirs));
        if let Some(extension) = lacking {
            let error = PeerError::missing_extension(&extension.id);
            return self.refuse(on, None, &id, &error);
        }
        let meta = subscription(&id);
        let request = Received {
            batch: None,
            ..request
        };
        let key = self.serve(request, caller, with, Resumed::default());
        // The program has nothing to reply to; it is told of the filter instead.
        self.events.pop_back();
        let params = JsonObject::from_iter([
            ("_meta", Json::from(meta)),
            ("notifications", filter.object().into()),
        ]);
        let call = Call::new("notifications/subscriptions/acknowledged", Some(params));
        self.say(Address::on(on).about(key), call);
        if let Some(serving) = self.served.get_mut(key) {
            let filter = filter.clone();
            serving.rest.listening = Some(Listening { filter });
        }
        self.events.push_back(ServerEvent::Listen { key, filter });
    }

    pub(super) fn publish_to_listeners(&mut self, change: &Change) -> usize {
        let wants = |listening: &Option<Listening>| {
            listening
                .as_ref()
                .is_some_and(|listening| listening.filter.wants(change))
        };
        let listeners = self.served.iter().filter(|(_, s)| wants(&s.rest.listening));
        let listeners: Vec<(RequestKey, StreamId, RequestId)> = listeners
            .map(|(key, serving)| (key, serving.stream, serving.id.clone()))
            .collect();
        let mut count = 0;
        for (key, on, id) in listeners {
            if self.outbox.is_full(&self.config.limits) {
                break;
            }
            let mut params = JsonObject::from_iter([("_meta", subscription(&id))]);
            if let Change::Resource(uri) = change {
                params.insert("uri", Json::string(uri));
            }
            let call = Call::new(change.method(), Some(params));
            let sent = self.say(Address::on(on).about(key), call);
            count += usize::from(sent == Sent::Queued);
        }
        count
    }

    /// How much a client listens to already.
    pub(super) fn listeners(&self) -> usize {
        let listening = self
            .served
            .iter()
            .filter(|(_, s)| s.rest.listening.is_some());
        self.subscriptions.len() + listening.count()
    }

    /// Ends every subscription gracefully: on a duplex stream `cancelled` and then the result, over HTTP the result.
    pub(super) fn end_listening(&mut self) {
        let listening = self
            .served
            .iter()
            .filter(|(_, s)| s.rest.listening.is_some());
        let keys: Vec<RequestKey> = listening.map(|(key, _)| key).collect();
        for key in keys {
            self.end_subscription(key);
        }
    }

    /// Ends one subscription gracefully. Nothing happens when the request listens to nothing.
    pub fn end_subscription(&mut self, key: RequestKey) {
        let Some(serving) = self.served.get(key).filter(|s| s.rest.listening.is_some()) else {
            return;
        };
        let (id, on) = (serving.id.clone(), serving.stream);
        let rules = serving.rest.caller.rules;
        if self.binding == Binding::Duplex {
            let id = Json::from_encode(&id);
            let call = crate::notice::Cancel::call(id, "the subscription has ended");
            self.say(Address::on(on).about(key), call);
        }
        let result = JsonObject::from_iter([
            ("resultType", Json::string("complete")),
            ("_meta", subscription(&id).into()),
        ]);
        let bytes = self.words(rules).beside(&id, &result, None);
        self.answer(key, bytes, 200);
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

/// What a request says in the members that the machine reads: in its parameters, and in their `_meta`.
#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    version: Option<JsonRef<'a>>,
    capabilities: Option<JsonRef<'a>>,
    info: Option<JsonRef<'a>>,
    level: Option<JsonRef<'a>>,
    token: Option<JsonRef<'a>>,
    responses: Option<JsonRef<'a>>,
    state: Option<JsonRef<'a>>,
}

/// What a repeated request brings.
#[derive(Debug, Default)]
pub(super) struct Resumed {
    pub(super) round: u32,
    pub(super) state: Option<String>,
    pub(super) answers: Answers,
}

impl<'a> Said<'a> {
    pub(super) fn of(call: &'a Call) -> Self {
        let Some(params) = &call.params else {
            return Self::default();
        };
        let names = ["_meta", "inputResponses", "requestState"];
        let [said, responses, state] = params.view().find_each(names);
        let said = said.and_then(JsonRef::object).unwrap_or_default();
        let [version, capabilities, info, level, token] = said.find_each([
            meta::PROTOCOL_VERSION,
            meta::CLIENT_CAPABILITIES,
            meta::CLIENT_INFO,
            meta::LOG_LEVEL,
            "progressToken",
        ]);
        Self {
            version,
            capabilities,
            info,
            level,
            token,
            responses,
            state,
        }
    }

    /// The progress token, when it is one.
    pub(super) fn token(&self) -> Option<Json> {
        self.token.filter(is_token).map(JsonRef::to_json)
    }

    fn required_version(&self) -> Result<String, PeerError> {
        let version = self.version.and_then(|version| version.decode_as().ok());
        version.ok_or_else(|| needed(meta::PROTOCOL_VERSION))
    }

    /// Who sends the request, as it says itself.
    fn caller(&self, rules: &'static Rules) -> Result<Caller, PeerError> {
        let object = |name: &str, value: Option<JsonRef<'_>>| {
            let words = || PeerError::invalid_params(format!("`{name}` has to be an object"));
            let object = value.map(|value| value.object().ok_or_else(words));
            object.transpose().map(|object| Some(object?.to_object()))
        };
        let capabilities = object(meta::CLIENT_CAPABILITIES, self.capabilities)?;
        let level = self.level.map(|level| {
            let name: Option<String> = level.decode_as().ok();
            let level: Result<Level, _> = name.unwrap_or_default().parse();
            level.map_err(|error| PeerError::invalid_params(error.to_string()))
        });
        Ok(Caller {
            rules,
            agreed: Agreed {
                revision: rules.revision,
                capabilities: capabilities.ok_or_else(|| needed(meta::CLIENT_CAPABILITIES))?,
                info: object(meta::CLIENT_INFO, self.info)?,
                instructions: None,
            },
            level: level.transpose()?,
        })
    }

    fn answers(&self) -> Result<Answers, PeerError> {
        let Some(responses) = self.responses else {
            return Ok(Answers::default());
        };
        let wrong = || PeerError::invalid_params("`inputResponses` has to be an object of objects");
        let responses = responses.object().ok_or_else(wrong)?;
        let answer = |(name, value): (Cow<'_, str>, JsonRef<'_>)| {
            let object = value.object().ok_or_else(wrong)?.to_object();
            Ok((name.into_owned(), Outcome::Result(RawResult::from(object))))
        };
        responses
            .iter()
            .map(answer)
            .collect::<Result<_, _>>()
            .map(Answers)
    }
}

fn needed(name: &str) -> PeerError {
    PeerError::invalid_params(format!("`_meta` needs `{name}`"))
}

fn context<C>(call: &Call, with: &Inbound<C>) -> Vec<u8> {
    let principal = with.principal.as_ref().map(|principal| &*principal.0);
    seal::context(principal, &call.method, call.params.as_ref())
}

fn embedded(ask: &Ask) -> Json {
    let mut request = JsonObject::from_iter([("method", Json::string(&ask.method))]);
    if let Some(params) = &ask.params {
        request.insert("params", params.clone());
    }
    request.into()
}

fn subscription(id: &RequestId) -> JsonObject {
    JsonObject::from_iter([(meta::SUBSCRIPTION_ID, Json::from_encode(id))])
}

/// What every result says in this era, where it does not say so itself.
#[derive(Debug)]
pub(super) struct Words {
    complete: Json,
    /// Who has made the result.
    info: Json,
    /// How long it may be kept, and by whom (`server/utilities/caching`).
    ttl: Json,
    scope: Json,
}

impl Words {
    fn of(config: &ServerConfig, rules: &Rules) -> Self {
        let scope = match config.cache.public {
            true => "public",
            false => "private",
        };
        Self {
            complete: Json::string("complete"),
            info: config.identity.towards(rules).into(),
            ttl: config.cache.ttl_ms.into(),
            scope: Json::string(scope),
        }
    }

    /// The message of a result. Nothing is said of how long it may be kept without the method.
    pub(super) fn beside(
        &self,
        id: &RequestId,
        result: &JsonObject,
        method: Option<&str>,
    ) -> Vec<u8> {
        let names = ["resultType", "ttlMs", "cacheScope", "_meta"];
        let there = result.view().find_each(names);
        let said = match there[3].map(JsonRef::object) {
            None => Some(ObjectRef::default()),
            Some(said) => said.filter(|said| said.find(meta::SERVER_INFO).is_none()),
        };
        let info = [(meta::SERVER_INFO, Some(self.info.view()))];
        let said = said.map(|said| JsonObject::from(said.with(info)));
        let cached = method.filter(|method| meta::is_cached(method));
        let missing = |at: usize, value| there[at].map_or(Some(value), |_: JsonRef<'_>| None);
        // All pages of a list say the same, and this machine remembers none of them.
        let list = cached.is_some_and(|method| method.ends_with("/list"));
        let scope = match list {
            true => Some(self.scope.view()),
            false => cached.and(missing(2, self.scope.view())),
        };
        let more = [
            (names[0], missing(0, self.complete.view())),
            (names[1], cached.and(missing(1, self.ttl.view()))),
            (names[2], scope),
            (names[3], said.as_ref().map(|said| said.as_json().view())),
        ];
        let mut set = there.iter().zip(&more);
        let is_new = !set.any(|(there, (_, value))| there.is_some() && value.is_some());
        message::result(
            id,
            match is_new {
                true => result.view().and(more),
                false => result.view().with(more),
            },
        )
    }
}

/// What a program says itself of how long a result may be kept: no less than nothing (`server/utilities/caching`).
pub(super) fn check_hints(method: &str, result: &JsonObject) -> Result<(), SendError> {
    if !meta::is_cached(method) {
        return Ok(());
    }
    let fits = |ttl: JsonRef<'_>| {
        let ttl: Option<mcp_exact_wire::Integer> = ttl.decode_as().ok();
        ttl.is_some_and(|ttl| !ttl.to_string().starts_with('-'))
    };
    match result.view().find("ttlMs") {
        Some(ttl) if !fits(ttl) => Err(SendError::Params {
            method: method.to_owned(),
            reason: "`ttlMs` has to be zero or more".to_owned(),
        }),
        _ => Ok(()),
    }
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
