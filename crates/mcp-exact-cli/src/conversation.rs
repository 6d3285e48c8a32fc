//! Checks the messages of a conversation between a client and a server: against the schema of the revision, and against
//! rules that depend on earlier messages.
//!
//! Each message of both sides is passed to a [`Conversation`] in the order in which it was sent, and the violated rules
//! of the message are returned. Performs no IO.

mod response;
mod sender;

use std::collections::{HashMap, HashSet};

use mcp_exact_revisions::{Lifecycle, MethodId, RevisionSpec, method};
use mcp_exact_wire::{DecodeError, Json, Kind, MAX_LISTED};

use crate::message::{self, Direction, MessageContext};
use crate::registry::{Entry, Registry};
use crate::rules::{self, Rule};
use crate::value::Value;
use crate::verdict::Finding;

/// Member of `_meta` with the protocol revision of a request.
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// Member of `_meta` with the capabilities of the client.
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
/// Member of `_meta` with the minimum level of the log messages that the client requests.
const LOG_LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";
/// Member of `_meta` with the id of the subscription to which a notification belongs.
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

/// Maximum number of answered requests whose ids are stored.
const MAX_STORED_REQUESTS: usize = 100_000;

/// Options for the checks of a conversation.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// True if members that the revision does not define are reported as violations.
    pub wants_unknown: bool,
    /// True if the messages of one side are observed in the order in which they were sent, as over stdio.
    pub is_ordered: bool,
}

/// State of a conversation between a client and a server, from which each message is checked.
#[derive(Debug)]
pub struct Conversation {
    /// Compiled revisions.
    registry: Registry,
    /// Options for the checks.
    options: Options,
    /// Revision of all messages, if specified on the command line.
    pinned: Option<&'static str>,
    /// Revision that the response to `initialize` names.
    negotiated: Option<&'static str>,
    /// True after `notifications/initialized`.
    has_initialized: bool,
    /// Capabilities that the client has declared in `initialize`.
    client_capabilities: Json,
    /// Capabilities that the server has declared in the result of `initialize` or `server/discover`.
    server_capabilities: Json,
    /// Requests that are not answered.
    pending: HashMap<RequestKey, PendingRequest>,
    /// Keys of requests that are answered.
    answered: HashSet<RequestKey>,
    /// Progress tokens of requests, by the sender of the request and the token as JSON.
    tokens: HashMap<(Direction, String), ProgressToken>,
    /// Ids of subscriptions that the server has acknowledged, as JSON.
    acknowledged: HashSet<String>,
    /// Number of violations of the message that is being checked that are not listed.
    omitted: usize,
}

/// Key of a request: its sender, and its id as JSON.
type RequestKey = (Direction, String);

/// Request that is not answered.
#[derive(Debug)]
struct PendingRequest {
    /// Method of the request.
    method: String,
    /// Revision of the request, if known.
    revision: Option<&'static str>,
    /// Capabilities of the client that `_meta` of the request declares.
    capabilities: Json,
    /// True if `_meta` of the request contains a log level.
    wants_logs: bool,
    /// Progress token of the request, as JSON.
    token: Option<String>,
}

/// State of a progress token.
#[derive(Debug, Default)]
struct ProgressToken {
    /// Latest progress value that was reported with the token.
    last_progress: Option<f64>,
    /// True if the request with the token is answered.
    has_ended: bool,
}

/// Result of checking one message.
#[derive(Debug, Clone)]
pub struct CheckedMessage {
    /// Sender of the message.
    pub from: Direction,
    /// Revision of the message, if known.
    pub revision: Option<&'static str>,
    /// Description of the message, such as `result of tools/list`.
    pub label: String,
    /// Rules that the message violates, at most [`MAX_LISTED`].
    pub breaches: Vec<Breach>,
    /// Number of violations that `breaches` omits.
    pub omitted: usize,
}

/// Violation of a rule by a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breach {
    /// The violated rule.
    pub rule: &'static Rule,
    /// JSON pointer of the location in the message; empty for the complete message.
    pub pointer: String,
    /// Description of the violation.
    pub message: String,
}

impl Breach {
    /// Creates a violation by the complete message.
    pub fn new(rule: &'static Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            pointer: String::new(),
            message: message.into(),
        }
    }

    /// Formats the violation as one line: location and description.
    pub fn to_line(&self) -> String {
        match self.pointer.as_str() {
            "" => self.message.clone(),
            pointer => format!("{pointer}: {}", self.message),
        }
    }
}

impl Direction {
    /// Returns the direction of the messages that the peer sends.
    pub fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// Returns the arrow that represents this direction in traces.
    pub fn arrow(self) -> &'static str {
        match self {
            Self::Client => "→",
            Self::Server => "←",
        }
    }

    /// Returns the name of the sender: `client` or `server`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}

impl Conversation {
    /// Creates a conversation without messages; `pinned` is the revision of all messages, if specified.
    pub fn new(pinned: Option<&'static str>, options: Options) -> Self {
        Self {
            registry: Registry::new(),
            options,
            pinned,
            negotiated: None,
            has_initialized: false,
            client_capabilities: Json::null(),
            server_capabilities: Json::null(),
            pending: HashMap::new(),
            answered: HashSet::new(),
            tokens: HashMap::new(),
            acknowledged: HashSet::new(),
            omitted: 0,
        }
    }

    /// Returns the specified revision, or else the revision that `initialize` has negotiated.
    pub fn negotiated(&self) -> Option<&'static str> {
        self.pinned.or(self.negotiated)
    }

    /// Returns the number of unanswered requests that one side has sent.
    pub fn pending_count(&self, from: Direction) -> usize {
        self.pending
            .keys()
            .filter(|(sender, _)| *sender == from)
            .count()
    }

    /// Checks the next message of the conversation.
    ///
    /// Without `from`, the sender is determined from the method or, for a response, from the request. If neither is
    /// known, a message with a method is attributed to the client, and any other message to the server.
    pub fn observe(&mut self, from: Option<Direction>, text: &str) -> CheckedMessage {
        let mut checked = self.check(from, text);
        let excess = checked.breaches.len().saturating_sub(MAX_LISTED);
        checked.breaches.truncate(MAX_LISTED);
        checked.omitted = std::mem::take(&mut self.omitted) + excess;
        checked
    }

    /// Checks the next message of the conversation, without the number of violations that are omitted.
    fn check(&mut self, from: Option<Direction>, text: &str) -> CheckedMessage {
        let json: Json = match mcp_exact_wire::from_str(text) {
            Ok(json) => json,
            Err(error) => return self.check_invalid_json(from, &error),
        };
        let value = Value::of(&json);
        let from = from.unwrap_or_else(|| self.find_sender(value));
        match value.kind() {
            Kind::Array => self.check_batch(from, value),
            Kind::Object => self.check_single(from, value),
            _ => {
                let message = "it is not an object";
                self.checked_message(
                    from,
                    "no message",
                    vec![Breach::new(&rules::VERSION, message)],
                )
            }
        }
    }

    /// Creates the result for a message of the negotiated revision.
    fn checked_message(
        &self,
        from: Direction,
        label: &str,
        breaches: Vec<Breach>,
    ) -> CheckedMessage {
        CheckedMessage {
            from,
            revision: self.negotiated(),
            label: label.to_owned(),
            breaches,
            omitted: 0,
        }
    }

    /// Checks a text that is no JSON.
    fn check_invalid_json(&self, from: Option<Direction>, error: &DecodeError) -> CheckedMessage {
        let from = from.unwrap_or(Direction::Server);
        let rule = match from {
            Direction::Server => &rules::STDOUT_CLEAN,
            Direction::Client => &rules::VERSION,
        };
        let breach = Breach::new(
            rule,
            format!("it is not JSON, from byte {} on", error.offset()),
        );
        self.checked_message(from, "not a message", vec![breach])
    }

    /// Checks that the revision allows the batch, and checks each of its messages.
    fn check_batch(&mut self, from: Direction, batch: Value<'_>) -> CheckedMessage {
        let mut breaches = Vec::new();
        let has_batches = self.spec().is_none_or(RevisionSpec::has_batches);
        if !has_batches {
            let message = "it is a batch, which this revision does not have";
            breaches.push(Breach::new(&rules::VERSION, message));
        }
        let items = batch.items();
        if items.is_empty() {
            breaches.push(Breach::new(&rules::VERSION, "it is an empty batch"));
        }
        let mut labels = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let item = Value::of(item);
            if !item.is_object() {
                breaches.push(Breach::new(
                    &rules::VERSION,
                    format!("item {index} is not an object"),
                ));
                continue;
            }
            let part = self.check_single(from, item);
            labels.push(part.label);
            breaches.extend(part.breaches.into_iter().map(|breach| Breach {
                pointer: format!("/{index}{}", breach.pointer),
                ..breach
            }));
        }
        self.checked_message(from, &format!("batch of {}", labels.join(", ")), breaches)
    }

    /// Checks a request, a notification or a response.
    fn check_single(&mut self, from: Direction, message: Value<'_>) -> CheckedMessage {
        let method = message.get("method").as_str();
        match (method, message.get("id").existing()) {
            (Some(method), Some(id)) => self.check_request(from, message, &method, id),
            (Some(method), None) => self.check_notification(from, message, &method),
            (None, _) => self.check_response(from, message),
        }
    }

    /// Returns the revision of any unanswered request; used for messages of a server, which do not name a revision.
    fn pending_request_revision(&self) -> Option<&'static str> {
        self.pending.values().find_map(|pending| pending.revision)
    }

    /// Returns the specification of the negotiated revision.
    fn spec(&self) -> Option<&'static RevisionSpec> {
        mcp_exact_revisions::find(self.negotiated()?)
    }

    /// Returns the revision that a client's request specifies, in the params of `initialize` or in `_meta`.
    fn named_revision(&self, method: &str, params: Value<'_>) -> Option<&'static str> {
        let named = match MethodId::from_name(method) {
            MethodId::Initialize => params.get("protocolVersion"),
            _ => params.get("_meta").get(VERSION_KEY),
        };
        let named = named.as_str();
        let named = named.and_then(|named| mcp_exact_revisions::find(&named));
        let is_discover = |spec: &&RevisionSpec| spec.lifecycle() == Lifecycle::Discover;
        match MethodId::from_name(method) {
            // A server responds also to an unknown revision.
            MethodId::Initialize => named
                .or_else(newest_initialize_revision)
                .map(RevisionSpec::id),
            _ => named.filter(is_discover).map(RevisionSpec::id),
        }
    }

    /// Returns the compiled data of a revision, or of the newest revision with `initialize` if `revision` is `None`.
    fn entry(&self, revision: Option<&str>) -> Option<&Entry> {
        let newest = || newest_initialize_revision().map(RevisionSpec::id);
        self.registry.revision(revision.or_else(newest)?).ok()
    }

    /// Returns the revision of a request or notification, if known: the revision of the command line, the revision that
    /// the message specifies, the negotiated revision, or that of an unanswered request.
    fn revision_of(
        &self,
        from: Direction,
        method: &str,
        params: Value<'_>,
    ) -> Option<&'static str> {
        let named = match from {
            Direction::Client => self.named_revision(method, params),
            Direction::Server => None,
        };
        self.pinned
            .or(named)
            .or(self.negotiated)
            .or_else(|| self.pending_request_revision())
    }

    /// Checks a request or notification against the schema of its revision.
    fn check_call_schema(
        &mut self,
        from: Direction,
        revision: Option<&'static str>,
        text: &str,
    ) -> Vec<Breach> {
        let known = MessageContext {
            direction: Some(from),
            ..MessageContext::default()
        };
        self.check_schema(revision, known, text)
    }

    /// Checks a message against the schema of its revision; if the revision is unknown, only the envelope is checked.
    fn check_schema(
        &mut self,
        revision: Option<&'static str>,
        known: MessageContext<'_>,
        text: &str,
    ) -> Vec<Breach> {
        let Some(entry) = self.entry(revision) else {
            return Vec::new();
        };
        let known = MessageContext {
            wants_unknown: self.options.wants_unknown,
            ..revision.map_or_else(MessageContext::default, |_| known)
        };
        let verdict = message::check(entry, known, text.as_bytes());
        let listed = verdict.findings.len() + verdict.unknown.len();
        self.omitted += verdict.count + verdict.unknown_count - listed;
        let found = verdict.findings.iter().chain(&verdict.unknown);
        let breach = |finding: &Finding| Breach {
            rule: match finding.pointer.as_str() {
                "/jsonrpc" | "/id" => &rules::VERSION,
                _ => &rules::SCHEMA,
            },
            pointer: finding.pointer.clone(),
            message: finding.message.clone(),
        };
        found.map(breach).collect()
    }

    /// Checks a request and stores it among the unanswered requests.
    fn check_request(
        &mut self,
        from: Direction,
        request: Value<'_>,
        method: &str,
        id: Value<'_>,
    ) -> CheckedMessage {
        let params = request.get("params");
        let revision = self.revision_of(from, method, params);
        let mut breaches = self.check_call_schema(from, revision, request.text());
        let spec = revision.and_then(mcp_exact_revisions::find);
        if from == Direction::Server {
            breaches.extend(self.check_server_request(spec, method));
        }
        let meta = params.get("_meta");
        if method == method::INITIALIZE {
            self.client_capabilities = params.get("capabilities").to_json();
        }
        let token = meta.get("progressToken").existing().map(Value::key);
        if let Some(token) = &token {
            self.tokens
                .insert((from, token.clone()), ProgressToken::default());
        }
        let key = (from, id.key());
        let is_stateless = spec.is_some_and(|spec| spec.lifecycle() == Lifecycle::Discover);
        if self.pending.contains_key(&key) || (!is_stateless && self.answered.contains(&key)) {
            let rule = if is_stateless {
                &rules::ID_IN_FLIGHT
            } else {
                &rules::ID_UNIQUE
            };
            breaches.push(Breach {
                rule,
                pointer: "/id".to_owned(),
                message: format!("the id {} was used before", id.text()),
            });
        }
        self.answered.remove(&key);
        self.pending.insert(
            key,
            PendingRequest {
                method: method.to_owned(),
                revision,
                capabilities: meta.get(CAPABILITIES_KEY).to_json(),
                wants_logs: !meta.get(LOG_LEVEL_KEY).is_null(),
                token,
            },
        );
        CheckedMessage {
            from,
            revision,
            label: format!("request {method}"),
            breaches,
            omitted: 0,
        }
    }

    /// Checks that a server may send this request at this time: the revision allows server requests, the client has
    /// declared the capability, and the session is initialized.
    fn check_server_request(&self, spec: Option<&RevisionSpec>, method: &str) -> Option<Breach> {
        let spec = spec?;
        if spec.lifecycle() == Lifecycle::Discover {
            let message = format!("the server sent the request {method}");
            return Some(Breach::new(&rules::NO_SERVER_REQUESTS, message));
        }
        let capability = match MethodId::from_name(method) {
            MethodId::SamplingCreateMessage => "sampling",
            MethodId::RootsList => "roots",
            MethodId::ElicitationCreate => "elicitation",
            _ => return None,
        };
        if !Value::of(&self.client_capabilities)
            .get(capability)
            .exists()
        {
            let message =
                format!("{method} needs `{capability}`, which the client did not declare");
            return Some(Breach::new(&rules::NEGOTIATED, message));
        }
        if !self.has_initialized {
            let message = format!("{method} was sent before notifications/initialized");
            return Some(Breach::new(&rules::SERVER_WAITS, message));
        }
        None
    }

    /// Checks a notification against the schema and against the earlier messages.
    fn check_notification(
        &mut self,
        from: Direction,
        notification: Value<'_>,
        method: &str,
    ) -> CheckedMessage {
        let params = notification.get("params");
        let revision = self.revision_of(from, method, params);
        let mut breaches = self.check_call_schema(from, revision, notification.text());
        let spec = revision.and_then(mcp_exact_revisions::find);
        let is_stateless = spec.is_some_and(|spec| spec.lifecycle() == Lifecycle::Discover);
        match MethodId::from_name(method) {
            MethodId::NotificationsInitialized => self.has_initialized = true,
            MethodId::NotificationsProgress => breaches.extend(self.check_progress(from, params)),
            MethodId::NotificationsMessage if from == Direction::Server => {
                breaches.extend(self.check_log_message(is_stateless));
            }
            MethodId::NotificationsCancelled => {
                breaches.extend(self.check_cancellation(from, is_stateless, params));
            }
            _ => {}
        }
        if is_stateless && from == Direction::Server {
            breaches.extend(self.check_subscription(method, params));
        }
        CheckedMessage {
            from,
            revision,
            label: method.to_owned(),
            breaches,
            omitted: 0,
        }
    }

    /// Checks that a progress notification refers to an unanswered request, and that its value increases.
    fn check_progress(&mut self, from: Direction, params: Value<'_>) -> Option<Breach> {
        let token = params.get("progressToken").existing()?.key();
        let key = (from.peer(), token.clone());
        let Some(known) = self.tokens.get_mut(&key) else {
            let message = format!("no request had the progress token {token}");
            return Some(Breach::new(&rules::PROGRESS_TOKEN, message));
        };
        if known.has_ended && self.options.is_ordered {
            let message = format!("the request with the progress token {token} is answered");
            return Some(Breach::new(&rules::PROGRESS_STOPS, message));
        }
        let value = params.get("progress").as_number()?.as_f64();
        let before = known.last_progress.replace(value);
        before.filter(|before| value <= *before).map(|before| {
            let message = format!("the progress is {value} after {before}");
            Breach::new(&rules::PROGRESS_INCREASES, message)
        })
    }

    /// Checks that the server may send a log message.
    fn check_log_message(&self, is_stateless: bool) -> Option<Breach> {
        if is_stateless {
            let is_wanted = self.pending.values().any(|pending| pending.wants_logs);
            let message = "no request that waits asks for log messages";
            return (!is_wanted && self.options.is_ordered)
                .then(|| Breach::new(&rules::LOG_SILENT, message));
        }
        let declared = Value::of(&self.server_capabilities);
        (declared.is_object() && !declared.get("logging").exists()).then(|| {
            let message = "the server did not declare `logging`";
            Breach::new(&rules::LOG_CAPABILITY, message)
        })
    }

    /// Checks that a cancellation refers to a request that its sender has sent.
    fn check_cancellation(
        &self,
        from: Direction,
        is_stateless: bool,
        params: Value<'_>,
    ) -> Option<Breach> {
        let id = params.get("requestId").existing()?.key();
        if is_stateless && from == Direction::Server {
            let listen = self.pending.get(&(Direction::Client, id.clone()));
            let is_listen =
                listen.is_some_and(|pending| pending.method == method::SUBSCRIPTIONS_LISTEN);
            let message = format!("{id} is the id of no subscriptions/listen request");
            return (!is_listen).then(|| Breach::new(&rules::CANCEL_LISTEN, message));
        }
        let key = (from, id.clone());
        let is_own = self.pending.contains_key(&key) || self.answered.contains(&key);
        let message = format!("its sender has sent no request with the id {id}");
        (!is_own).then(|| Breach::new(&rules::CANCEL_OWN, message))
    }

    /// Checks that the subscription to which a notification belongs was acknowledged before.
    fn check_subscription(&mut self, method: &str, params: Value<'_>) -> Option<Breach> {
        let id = params.get("_meta").get(SUBSCRIPTION_KEY).existing()?.key();
        if method == method::NOTIFICATIONS_SUBSCRIPTIONS_ACKNOWLEDGED {
            self.acknowledged.insert(id);
            return None;
        }
        (!self.acknowledged.contains(&id)).then(|| {
            let message = format!("{method} came before the subscription {id} was acknowledged");
            Breach::new(&rules::SUBSCRIPTION_ACK, message)
        })
    }
}

/// Returns the newest revision with the `initialize` handshake.
fn newest_initialize_revision() -> Option<&'static RevisionSpec> {
    let mut specs = mcp_exact_revisions::released();
    specs.rfind(|spec| spec.lifecycle() == Lifecycle::Initialize)
}
