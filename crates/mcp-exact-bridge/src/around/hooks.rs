//! Hooks of the application around each request of a client and on all other messages, for example for policies,
//! redaction and caching.

use std::fmt;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use mcp_exact_revisions::method;
use mcp_exact_session::{
    Change, IncomingRequest, InputRequest, Json, JsonObject, LogMessage, PeerError, Principal,
    Progress, RawResult, Reply, Revision,
};
use mcp_exact_tool_schema::ServerCatalogue;
use mcp_exact_transport::RequestContext;

use crate::around::target::Target;

/// Future that a method of a [`Hook`] returns.
pub type HookFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Request of a client that is relayed to one server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Call {
    /// Name of the server in the configuration; empty if there is only one server.
    pub server: String,
    /// Principal of the client, if it is authenticated.
    pub principal: Option<String>,
    /// `Implementation` object by which the client identifies itself.
    pub client: Option<JsonObject>,
    /// Revision of the client.
    pub revision: Revision,
    /// Method of the request.
    pub method: String,
    /// Params in the revision of the client, with the name of the tool or prompt, and the URI of the resource, as the server
    /// defines it; arguments that the catalogue gives are among them.
    pub params: Option<JsonObject>,
    /// Name that the catalogue gives to the tool, if it is another one than the server's own.
    pub listed_as: Option<String>,
    /// Names of arguments whose values the catalogue fixes: no client knows them.
    pub fixed: Vec<String>,
}

impl Call {
    /// Creates the description of a request to a server; the name is empty if the request reaches none.
    pub(crate) fn new(server: &str, request: &IncomingRequest<RequestContext>) -> Self {
        let principal = request.context().principal.clone();
        Self {
            server: server.to_owned(),
            principal: principal.map(|Principal(name)| name),
            client: request.client().implementation.clone(),
            revision: request.revision(),
            method: request.method().to_owned(),
            params: request.params().cloned(),
            listed_as: None,
            fixed: Vec::new(),
        }
    }

    /// Adds the name that the catalogue of the server gives to the tool, and the names of the arguments that it fixes.
    pub(crate) fn listed_by(mut self, catalogue: Option<&ServerCatalogue>) -> Self {
        let Some(catalogue) = catalogue.filter(|_| self.method == method::TOOLS_CALL) else {
            return self;
        };
        if let Some(own) = self.subject() {
            let listed = catalogue.listed_name(&own).filter(|listed| *listed != own);
            self.listed_as = listed.map(str::to_owned);
            self.fixed = catalogue.fixed_names(&own).map(str::to_owned).collect();
        }
        self
    }

    /// Returns the name of the tool or prompt, the URI of the resource or template, or the id of the task, that the request
    /// names; `None` if its method names none.
    pub fn subject(&self) -> Option<String> {
        Target::of(&self.method, self.params.as_ref()).subject()
    }

    /// Returns the arguments of a tool or prompt as received, as JSON text.
    pub fn arguments(&self) -> Option<String> {
        let arguments = self.params.as_ref()?.view().find("arguments")?;
        Some(arguments.text().to_owned())
    }
}

/// Decision of a hook about a request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Decision {
    /// Relays the request.
    Relay,
    /// Relays the request with other params, in the revision of the client. If these params have no `_meta`, the
    /// `_meta` of the request is kept. The access rules decide about the item that they name, too.
    RelayWith(JsonObject),
    /// Answers the request without the server, with a result in the revision of the client.
    Answer(JsonObject),
    /// Answers the request with an error.
    Refuse(PeerError),
}

/// Direction and kind of a [`Message`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MessageKind {
    /// Request of the server to the client (for elicitation, sampling or roots), or an input request in a result of
    /// type `input_required`.
    InputRequest,
    /// Result by which the client responds to an input request.
    InputResponse,
    /// Notification of the server, such as progress, a log message or a change.
    ServerNotification,
    /// Notification of the client.
    ClientNotification,
}

/// Message between a client and a server that is neither a request of the client nor its result.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Message {
    /// Direction and kind.
    pub kind: MessageKind,
    /// Name of the server in the configuration; empty if there is only one server.
    pub server: String,
    /// Principal of the client, if it is authenticated.
    pub principal: Option<String>,
    /// `Implementation` with name and version of the client; `None` for change notifications, because all subscriptions
    /// of a principal receive them.
    pub client: Option<JsonObject>,
    /// Revision of `params`.
    pub revision: Revision,
    /// Method of the input request or notification. If neither client nor server has sessions, the method of an input
    /// response is inferred from the form of its result.
    pub method: String,
    /// Params of the input request or notification, or the result of an input response. A member `_meta` may be missing.
    pub params: Option<JsonObject>,
}

/// Decision of a hook about a [`Message`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum MessageDecision {
    /// Relays the message.
    Relay,
    /// Relays the message with other params, or another result, in the same revision.
    RelayWith(JsonObject),
    /// Does not relay the message. A notification is dropped. If client and server have sessions, the sender of an
    /// input request or response receives the error; otherwise the request of the client ends with the error.
    Refuse(PeerError),
}

/// Hook of the application around each request of a client to a server, and on all other messages. The hooks are called
/// once per server for a list request that the bridge sends to several servers.
///
/// Hooks are called in order before the request and in reverse order after the answer, so that the first hook sees the
/// same messages as the client. If a hook answers a request, the answer is passed to [`Hook::after`] of the earlier
/// hooks.
///
/// ```
/// use mcp_exact_bridge::{Call, Decision, Hook, HookFuture, Hooks, Options};
/// use mcp_exact_session::PeerError;
///
/// struct ReadOnly;
///
/// impl Hook for ReadOnly {
///     fn before<'a>(&'a self, call: &'a Call) -> HookFuture<'a, Decision> {
///         let writes = call.subject().is_some_and(|name| name.starts_with("write_"));
///         let decision = if writes {
///             Decision::Refuse(PeerError::invalid_params("this gateway only reads"))
///         } else {
///             Decision::Relay
///         };
///         Box::pin(std::future::ready(decision))
///     }
/// }
///
/// let mut options = Options::default();
/// options.hooks = Hooks::default().with(ReadOnly);
/// ```
pub trait Hook: Send + Sync + 'static {
    /// Decides about a request before it is sent to the server.
    fn before<'a>(&'a self, call: &'a Call) -> HookFuture<'a, Decision> {
        let _ = call;
        Box::pin(ready(Decision::Relay))
    }

    /// Receives the answer of the server or of a later hook, and returns the answer for the client. This method is not
    /// called if the client cancels the request.
    fn after<'a>(&'a self, call: &'a Call, reply: Reply) -> HookFuture<'a, Reply> {
        let _ = call;
        Box::pin(ready(reply))
    }

    /// Decides about an input request of the server, the response of the client, or a notification. This method is called
    /// between other messages of the connection and must not block. Messages of servers are passed to the hooks in reverse order.
    /// Changes that the bridge announces on its own, such as after an update, and errors of clients are not passed.
    fn message(&self, message: &Message) -> MessageDecision {
        let _ = message;
        MessageDecision::Relay
    }
}

/// Ordered list of hooks.
#[derive(Clone, Default)]
pub struct Hooks(Vec<Arc<dyn Hook>>);

impl Hooks {
    /// Appends a hook.
    #[must_use]
    pub fn with(mut self, hook: impl Hook) -> Self {
        self.0.push(Arc::new(hook));
        self
    }

    /// Returns true if there is no hook.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Passes a message to all hooks, which may change its params; returns the error of the first hook that refuses the
    /// message.
    fn pass(&self, message: &mut Message) -> Result<(), PeerError> {
        let is_of_server = matches!(
            message.kind,
            MessageKind::InputRequest | MessageKind::ServerNotification
        );
        for at in 0..self.0.len() {
            let at = if is_of_server {
                self.0.len() - 1 - at
            } else {
                at
            };
            match self.0[at].message(message) {
                MessageDecision::Relay => {}
                MessageDecision::RelayWith(params) => message.params = Some(params),
                MessageDecision::Refuse(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Runs a request through all hooks; `relay` sends it, with the params of the hooks if they have changed them.
    pub(crate) async fn run<F>(
        &self,
        mut call: Call,
        relay: impl FnOnce(Option<JsonObject>) -> F,
    ) -> Reply
    where
        F: Future<Output = Reply>,
    {
        let (mut called, mut is_changed) = (0, false);
        let mut answer = None;
        for hook in &self.0 {
            match hook.before(&call).await {
                Decision::Relay => {}
                Decision::RelayWith(params) => {
                    call.params = Some(with_meta(params, &call));
                    is_changed = true;
                }
                Decision::Answer(result) => answer = Some(Reply::Result(RawResult::from(result))),
                Decision::Refuse(error) => answer = Some(Reply::Error(error)),
            }
            if answer.is_some() {
                break;
            }
            called += 1;
        }
        let mut reply = match answer {
            Some(answer) => answer,
            None => relay(call.params.clone().filter(|_| is_changed)).await,
        };
        for hook in self.0[..called].iter().rev() {
            reply = hook.after(&call, reply).await;
        }
        reply
    }
}

/// Hooks on the messages between one client and one server, with the fields that all these messages have in common;
/// `None` if there is no hook.
#[derive(Clone, Default)]
pub(crate) struct MessageHooks(Option<Arc<(Hooks, Message)>>);

impl MessageHooks {
    /// Creates the hooks for messages between a server and a client, which is `None` if there are several.
    pub(crate) fn new(
        hooks: &Hooks,
        server: &str,
        principal: Option<&Principal>,
        (client, revision): (Option<&JsonObject>, Revision),
    ) -> Self {
        let common = || Message {
            kind: MessageKind::InputRequest,
            server: server.to_owned(),
            principal: principal.map(|Principal(name)| name.clone()),
            client: client.cloned(),
            revision,
            method: String::new(),
            params: None,
        };
        Self((!hooks.is_empty()).then(|| Arc::new((hooks.clone(), common()))))
    }

    /// Returns true if there is no hook.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Passes a message to the hooks; returns its params or result, or the error if a hook refuses the message.
    pub(crate) fn pass(
        &self,
        kind: MessageKind,
        method: &str,
        params: Option<JsonObject>,
    ) -> Result<Option<JsonObject>, PeerError> {
        let Some(of_client) = &self.0 else {
            return Ok(params);
        };
        let (hooks, message) = &**of_client;
        let mut message = Message {
            kind,
            method: method.to_owned(),
            params,
            ..message.clone()
        };
        hooks.pass(&mut message)?;
        Ok(message.params)
    }

    /// Passes an input request of the server to the hooks.
    pub(crate) fn input_request(&self, request: InputRequest) -> Result<InputRequest, PeerError> {
        let params = self.pass(MessageKind::InputRequest, &request.method, request.params)?;
        Ok(InputRequest::new(request.method, params))
    }

    /// Passes the response of the client to an input request to the hooks.
    pub(crate) fn answer(
        &self,
        method: &str,
        answer: &JsonObject,
    ) -> Result<JsonObject, PeerError> {
        let answer = self.pass(MessageKind::InputResponse, method, Some(answer.clone()))?;
        Ok(answer.unwrap_or_default())
    }

    /// Passes a notification of the server to the hooks; returns `None` if a hook drops it.
    fn notification(&self, method: &str, params: JsonObject) -> Option<JsonObject> {
        let passed = self.pass(MessageKind::ServerNotification, method, Some(params));
        let passed = passed.inspect_err(|error| {
            tracing::debug!(
                error = error.message(),
                method,
                "a hook dropped a notification"
            );
        });
        passed.ok().map(Option::unwrap_or_default)
    }

    /// Passes a change notification to the hooks; returns `None` if a hook drops it.
    pub(crate) fn change(&self, change: Change) -> Option<Change> {
        if self.is_empty() {
            return Some(change);
        }
        let (method, params) = match &change {
            Change::Tools => (method::NOTIFICATIONS_TOOLS_LIST_CHANGED, None),
            Change::Prompts => (method::NOTIFICATIONS_PROMPTS_LIST_CHANGED, None),
            Change::Resources => (method::NOTIFICATIONS_RESOURCES_LIST_CHANGED, None),
            Change::Resource(uri) => (method::NOTIFICATIONS_RESOURCES_UPDATED, Some(uri)),
            _ => return Some(change),
        };
        let params = params.map(|uri| ("uri", Json::string(uri)));
        let passed = self.notification(method, params.into_iter().collect())?;
        match change {
            Change::Resource(_) => {
                let uri = passed.view().find("uri")?.as_str()?.into_owned();
                Some(Change::Resource(uri))
            }
            list => Some(list),
        }
    }

    /// Passes a log message to the hooks; returns `None` if a hook drops it.
    pub(crate) fn log(&self, message: LogMessage) -> Option<LogMessage> {
        if self.is_empty() {
            return Some(message);
        }
        let mut params = JsonObject::from_iter([("level", Json::string(message.level.name()))]);
        if let Some(logger) = &message.logger {
            params.insert("logger", Json::string(logger));
        }
        params.insert("data", message.data);
        let passed = self.notification(method::NOTIFICATIONS_MESSAGE, params)?;
        let [level, logger, data] = passed.view().find_each(["level", "logger", "data"]);
        Some(LogMessage {
            level: level?.as_str()?.parse().ok()?,
            logger: logger.and_then(|logger| Some(logger.as_str()?.into_owned())),
            data: data?.to_json(),
        })
    }

    /// Passes progress to the hooks; returns `None` if a hook drops it.
    pub(crate) fn progress(&self, progress: &Progress) -> Option<Progress> {
        if self.is_empty() {
            return Some(progress.clone());
        }
        let mut params = JsonObject::from_iter([("progress", number(progress.done)?)]);
        if let Some(total) = progress.total {
            params.insert("total", number(total)?);
        }
        if let Some(message) = &progress.message {
            params.insert("message", Json::string(message));
        }
        let passed = self.notification(method::NOTIFICATIONS_PROGRESS, params)?;
        let [done, total, message] = passed.view().find_each(["progress", "total", "message"]);
        let mut progress = Progress::new(done?.text().parse().ok()?);
        progress.total = total.and_then(|total| total.text().parse().ok());
        progress.message = message.and_then(|message| Some(message.as_str()?.into_owned()));
        Some(progress)
    }
}

/// Returns a number as JSON; `None` if it is not finite.
fn number(number: f64) -> Option<Json> {
    number.to_string().parse().ok()
}

/// Returns the method of the input request that a response belongs to (2026-07-28, `basic/patterns/mrtr`). The method
/// is inferred from the members of the response, which does not contain it; the returned method is empty if none
/// matches.
pub(crate) fn method_of_answer(answer: &JsonObject) -> &'static str {
    let members = answer.view().find_each(["action", "model", "roots"]);
    match members.map(|member| member.is_some()) {
        [true, ..] => method::ELICITATION_CREATE,
        [_, true, _] => method::SAMPLING_CREATE_MESSAGE,
        [.., true] => method::ROOTS_LIST,
        _ => "",
    }
}

/// Adds the `_meta` of the request `call` to params that have no `_meta`.
fn with_meta(mut params: JsonObject, call: &Call) -> JsonObject {
    let meta = call.params.as_ref().and_then(|params| params.get("_meta"));
    if let Some(meta) = meta
        && params.view().find("_meta").is_none()
    {
        params.insert("_meta", meta);
    }
    params
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hooks({})", self.0.len())
    }
}
