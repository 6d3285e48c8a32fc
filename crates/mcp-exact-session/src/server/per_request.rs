//! Requests that carry their revision themselves, as a server sees them (2026-07-28: `basic`, `basic/versioning`,
//! `basic/patterns`, `server/discover`).
//!
//! Takes one request at a time and infers nothing from earlier ones. What is kept lives as long as the request.

use std::sync::Arc;

use mcp_exact_wire::{Json, JsonObject, RequestId, from_str};

use super::Server;
use super::handshake::unsupported;
use super::incoming::{Caller, Inbound, Incoming, ServerEvent};
use crate::capability;
use crate::config::{Extension, ServerConfig};
use crate::error::{PeerError, SendError, code};
use crate::log::Level;
use crate::message::{self, Call};
use crate::meta;
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
    pub(crate) fn of(notifications: &JsonObject) -> Option<Self> {
        let flag = |name: &str| match notifications.get(name) {
            None => Some(false),
            Some(value) => from_str(value.text()).ok(),
        };
        let uris = notifications.get("resourceSubscriptions");
        let uris = uris.map(|uris| from_str(uris.text())).transpose().ok()?;
        Some(Self {
            tools: flag("toolsListChanged")?,
            prompts: flag("promptsListChanged")?,
            resources: flag("resourcesListChanged")?,
            uris: uris.unwrap_or_default(),
            more: notifications
                .iter()
                .filter(|(name, _)| !FILTERS.contains(&&**name))
                .map(|(name, value)| (name, value.parse().unwrap_or(Json::null())))
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
    pub(super) fn is_per_request(&self, call: &Call, with: &Inbound<C>) -> bool {
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
        alone || named || call.meta(meta::PROTOCOL_VERSION).is_some()
    }

    pub(super) fn stateless_request(
        &mut self,
        on: StreamId,
        batch: Option<u64>,
        id: RequestId,
        call: Call,
        with: &Arc<Inbound<C>>,
    ) {
        let scope = (self.binding != Binding::Duplex).then_some(on);
        let admitted = self.admit_stateless(scope, &id, &call, with);
        let caller = match admitted {
            Ok(caller) => caller,
            Err(error) => return self.refuse(on, batch, &id, &error),
        };
        match call.method.as_str() {
            "server/discover" => {
                let result = discovered(&self.config, caller.rules);
                self.respond(on, batch, message::result(&id, result), 200);
            }
            "subscriptions/listen" => self.listen(on, scope, id, call, caller, with),
            _ => self.serve_stateless(on, batch, scope, id, call, caller, with),
        }
    }

    /// The checks in the order of PROTOCOL.md: required members, header, revision, method, headers, capabilities.
    fn admit_stateless(
        &self,
        scope: Option<StreamId>,
        id: &RequestId,
        call: &Call,
        with: &Inbound<C>,
    ) -> Result<Arc<Caller>, PeerError> {
        if self.served.find(scope, id).is_some() {
            return Err(PeerError::invalid_request(
                "the id belongs to another request in flight",
            ));
        }
        let version = required_version(call)?;
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
        let caller = Arc::new(caller(call, rules)?);
        self.admit(&caller, &call.method, call.params.as_ref(), call.size())?;
        if let Some(http) = http {
            let extensions = &self.config.extensions;
            crate::http::check_names(http, &call.method, call.params.as_ref(), extensions)?;
        }
        Ok(caller)
    }

    #[expect(clippy::too_many_arguments, reason = "what a request consists of")]
    fn serve_stateless(
        &mut self,
        on: StreamId,
        batch: Option<u64>,
        scope: Option<StreamId>,
        id: RequestId,
        call: Call,
        caller: Arc<Caller>,
        with: &Arc<Inbound<C>>,
    ) {
        let resumed = match meta::may_ask(&call.method) {
            true => self.resumed(&call, with),
            false => Ok((0, None, Answers::default())),
        };
        let (round, state, answers) = match resumed {
            Ok(resumed) => resumed,
            Err(error) => return self.refuse(on, batch, &id, &error),
        };
        let key = self.serve(on, batch, scope, id, call, caller, with);
        if let Some(serving) = self.served.get_mut(key) {
            serving.rest.round = round;
        }
        if let Some(ServerEvent::Request(incoming)) = self.events.back_mut() {
            *incoming = Incoming {
                round,
                state,
                answers,
                caller: Arc::clone(&incoming.caller),
                origin: Arc::clone(&incoming.origin),
                ..*incoming
            };
        }
    }

    /// The round, the state and the answers that a repeated request brings. A state that this server has not sealed for
    /// the same caller and request, or that has expired, is refused.
    fn resumed(
        &self,
        call: &Call,
        with: &Inbound<C>,
    ) -> Result<(u32, Option<String>, Answers), PeerError> {
        let answers = answers(call)?;
        let Some(sealed) = call.param("requestState") else {
            return Ok((u32::from(!answers.is_empty()), None, answers));
        };
        let refused = || PeerError::invalid_params("the request state is not valid; start again");
        let sealed: String = from_str(sealed.text()).map_err(|_| refused())?;
        let seal = self.config.seal.as_ref().ok_or_else(refused)?;
        let context = context(call, with);
        let payload = seal
            .open(&sealed, &context)
            .and_then(|text| Payload::read(&text));
        let payload = payload
            .filter(|payload| payload.expires > self.now)
            .ok_or_else(refused)?;
        Ok((payload.round, payload.state, answers))
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
        said_by(&mut result, &self.config, serving.rest.caller.rules);
        let bytes = message::result(&serving.id, result);
        Ok(self.answer(to, bytes, 200))
    }

    /// `subscriptions/listen`: acknowledged first, then answered by notifications until it ends.
    fn listen(
        &mut self,
        on: StreamId,
        scope: Option<StreamId>,
        id: RequestId,
        call: Call,
        caller: Arc<Caller>,
        with: &Arc<Inbound<C>>,
    ) {
        let wanted = call
            .param("notifications")
            .and_then(|n| JsonObject::try_from(n).ok());
        let Some(filter) = wanted.as_ref().and_then(Filter::of) else {
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
        let key = self.serve(on, None, scope, id, call, caller, with);
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
        let mut result = JsonObject::from_iter([
            ("resultType", Json::string("complete")),
            ("_meta", subscription(&id).into()),
        ]);
        said_by(&mut result, &self.config, rules);
        self.answer(key, message::result(&id, result), 200);
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

fn required_version(call: &Call) -> Result<String, PeerError> {
    let missing = |name: &str| PeerError::invalid_params(format!("`_meta` needs `{name}`"));
    let version = call.meta(meta::PROTOCOL_VERSION);
    let version = version.ok_or_else(|| missing(meta::PROTOCOL_VERSION))?;
    from_str(version.text()).map_err(|_| missing(meta::PROTOCOL_VERSION))
}

/// Who sends a request, as it says itself.
fn caller(call: &Call, rules: &'static Rules) -> Result<Caller, PeerError> {
    let object = |name: &str| {
        let value = call.meta(name).map(JsonObject::try_from).transpose();
        value.map_err(|_| PeerError::invalid_params(format!("`{name}` has to be an object")))
    };
    let capabilities = object(meta::CLIENT_CAPABILITIES)?.ok_or_else(|| {
        PeerError::invalid_params(format!("`_meta` needs `{}`", meta::CLIENT_CAPABILITIES))
    })?;
    let level = call.meta(meta::LOG_LEVEL).map(|level| {
        let name: Option<String> = from_str(level.text()).ok();
        let level: Result<Level, _> = name.unwrap_or_default().parse();
        level.map_err(|error| PeerError::invalid_params(error.to_string()))
    });
    Ok(Caller {
        rules,
        agreed: Agreed {
            revision: rules.revision,
            capabilities,
            info: object(meta::CLIENT_INFO)?,
            instructions: None,
        },
        level: level.transpose()?,
    })
}

fn answers(call: &Call) -> Result<Answers, PeerError> {
    let Some(responses) = call.param("inputResponses") else {
        return Ok(Answers::default());
    };
    let wrong = || PeerError::invalid_params("`inputResponses` has to be an object of objects");
    let responses = JsonObject::try_from(responses).map_err(|_| wrong())?;
    let answer = |(name, text): (std::borrow::Cow<'_, str>, &str)| {
        let object: JsonObject = from_str(text).map_err(|_| wrong())?;
        Ok((name.into_owned(), Outcome::Result(RawResult::from(object))))
    };
    responses
        .iter()
        .map(answer)
        .collect::<Result<_, _>>()
        .map(Answers)
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

fn discovered(config: &ServerConfig, rules: &Rules) -> JsonObject {
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
    complete(&mut result, config, rules, "server/discover");
    result
}

/// What every result says in this era, where it does not say so itself.
pub(super) fn complete(
    result: &mut JsonObject,
    config: &ServerConfig,
    rules: &Rules,
    method: &str,
) {
    let mut default = |name: &str, value: Json| {
        if result.get(name).is_none() {
            result.insert(name, value);
        }
    };
    default("resultType", Json::string("complete"));
    if meta::is_cached(method) {
        let scope = if config.cache.public {
            "public"
        } else {
            "private"
        };
        default("ttlMs", config.cache.ttl_ms.into());
        default("cacheScope", Json::string(scope));
        // All pages of a list say the same, and this machine remembers none of them.
        if method.ends_with("/list") {
            result.insert("cacheScope", Json::string(scope));
        }
    }
    said_by(result, config, rules);
}

/// What a program says itself of how long a result may be kept: no less than nothing (`server/utilities/caching`).
pub(super) fn check_hints(method: &str, result: &JsonObject) -> Result<(), SendError> {
    let ttl = result.get("ttlMs").filter(|_| meta::is_cached(method));
    let fits = |ttl: &Json| {
        let ttl: Option<mcp_exact_wire::Integer> = from_str(ttl.text()).ok();
        ttl.is_some_and(|ttl| !ttl.to_string().starts_with('-'))
    };
    match ttl {
        Some(ttl) if !fits(&ttl) => Err(SendError::Params {
            method: method.to_owned(),
            reason: "`ttlMs` has to be zero or more".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// Says who has made a result.
fn said_by(result: &mut JsonObject, config: &ServerConfig, rules: &Rules) {
    let meta = result
        .get("_meta")
        .map_or(Ok(JsonObject::new()), JsonObject::try_from);
    if let Ok(mut meta) = meta
        && meta.get(meta::SERVER_INFO).is_none()
    {
        meta.insert(meta::SERVER_INFO, config.identity.towards(rules));
        result.insert("_meta", meta);
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
