//! Translates params, results and errors between the revision of the client and the revision of the server.
//!
//! Losses of a conversion are reported or refused according to [`Losses`]. Between equal revisions, messages are
//! unchanged except for the members that each endpoint writes itself.

use mcp_exact_convert::{
    Context, KnownRevision, Loss, LossKind, MessageKind, Payload, Role, convert, decodes,
};
use mcp_exact_revisions::method;
use mcp_exact_session::{
    ErrorObject, InputRequest, Json, JsonObject, PeerError, RawResult, Revision,
    is_extension_result,
};
use mcp_exact_transport::RequestContext;

use crate::around::losses::Losses;
use crate::servers::tasks;

/// Members of `_meta` that the client endpoint of the bridge adds to every upstream request (2026-07-28, `basic`,
/// "Per-Request Protocol Fields").
const OWN_META: [&str; 5] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    CLIENT_CAPABILITIES,
    "io.modelcontextprotocol/logLevel",
];

/// Member of `_meta` with the capabilities of the client (from 2026-07-28 on).
const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Returns the newest revision. Endpoint settings have capabilities in the form of this revision.
pub(crate) fn newest() -> Revision {
    let newest = mcp_exact_session::revisions().next_back();
    newest.unwrap_or(KnownRevision::V2026_07_28.revision())
}

/// Members of [`OWN_META`] that are optional in a request.
const OPTIONAL_META: [&str; 3] = [OWN_META[0], OWN_META[2], OWN_META[4]];

/// Members of params that only a retry has (2026-07-28, `basic/patterns/mrtr`).
const RETRY_MEMBERS: [&str; 2] = ["inputResponses", "requestState"];

/// Method of the tasks extension whose `inputResponses` answer a task and do not mark a retry.
const UPDATES_TASK: &str = method::TASKS_UPDATE;

/// Translation of messages from one revision to another.
#[derive(Debug, Clone)]
pub(crate) struct Translation {
    /// Revision of the messages before the translation.
    pub(crate) from: Revision,
    /// Revision of the messages after the translation.
    pub(crate) to: Revision,
    /// Handling of the losses of conversions.
    pub(crate) losses: Losses,
}

impl Translation {
    pub(crate) fn new(from: Revision, to: Revision, losses: Losses) -> Self {
        Self { from, to, losses }
    }

    /// Returns the translation of a definition for the bridge alone, whose losses nobody is told.
    pub(crate) fn to_newest(from: Revision) -> Self {
        Self::new(from, newest(), Losses::new(None))
    }

    /// Returns the same translation for the messages of one request, whose result and response may list their losses.
    pub(crate) fn of_request(&self, request: &RequestContext) -> Self {
        Self {
            losses: self.losses.of_request(request),
            ..self.clone()
        }
    }

    /// Returns the translation in the opposite direction.
    pub(crate) fn reversed(&self) -> Self {
        Self::new(self.to, self.from, self.losses.clone())
    }

    /// Converts the params of a client's request, without the members that the upstream endpoint adds itself.
    ///
    /// `client_meta` has the members of `_meta` by which a request of 2026-07-28 identifies its client. `keeps_task` is
    /// true if the server may turn a call into a task of the client.
    pub(crate) fn params(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        client_meta: JsonObject,
        keeps_task: bool,
    ) -> Result<Option<JsonObject>, PeerError> {
        let cx = Context::new().request_meta(client_meta).assume_input_read();
        let root = root(MessageKind::Request, method, Role::Client);
        // The server has already received the client's identity on the connection, so it is no loss if a request cannot
        // repeat it.
        let params = params.map(|params| {
            if self.from == self.to {
                params.clone()
            } else {
                without_client_capabilities(&without(params, &OPTIONAL_META, &[]))
            }
        });
        let mut converted = self.run(root, params.as_ref().map(JsonObject::text), cx)?;
        if !keeps_task && let Some(params) = &mut converted {
            self.remove_task(method, params)?;
        }
        let retry_members = if UPDATES_TASK == method {
            &[][..]
        } else {
            &RETRY_MEMBERS
        };
        Ok(converted.map(|params| without(&params, &OWN_META, retry_members)))
    }

    /// Removes the member `task`, which turns a call into a task (2025-11-25, `basic/utilities/tasks`), and reports the
    /// loss. The method is called for a server without tasks, or whose connections several clients share. If the
    /// revision of the server does not define tasks, the member has no meaning and is not removed.
    fn remove_task(&self, method: &str, params: &mut JsonObject) -> Result<(), PeerError> {
        let is_task = tasks::has_tasks(self.to) && method == method::TOOLS_CALL;
        if !is_task || params.view().find("task").is_none() {
            return Ok(());
        }
        let loss = Loss {
            pointer: "/task".into(),
            subject: None,
            kind: LossKind::Dropped,
            revision: known_revision(self.to)?,
            reason:
                "the server has no tasks for this client: the call is answered when its work is done"
                    .into(),
        };
        self.record_losses(method, std::slice::from_ref(&loss), false)?;
        *params = without(params, &[], &["task"]);
        Ok(())
    }

    /// Reports losses; returns an error if a policy refuses a loss.
    fn record_losses(
        &self,
        method: &str,
        losses: &[Loss],
        is_result: bool,
    ) -> Result<(), PeerError> {
        let revisions = (self.from, self.to);
        if let Some(loss) = self.losses.refused(method, revisions, losses) {
            return Err(refusal(&loss.pointer, loss));
        }
        self.losses.report(method, revisions, losses, is_result);
        Ok(())
    }

    /// Converts the params of a notification.
    pub(crate) fn notification(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        sender: Role,
    ) -> Result<Option<JsonObject>, PeerError> {
        let root = root(MessageKind::Notification, method, sender);
        self.run(root, params.map(JsonObject::text), Context::new())
    }

    /// Returns true if the results of a request of this method are not repaired when they are received: their conversion repairs
    /// what it reads, and what may be large is relayed unchanged between equal revisions.
    pub(crate) fn checks_result(&self, method: &str) -> bool {
        if self.from == self.to {
            return matches!(method, method::TOOLS_CALL | method::RESOURCES_READ);
        }
        let root = root(MessageKind::Result, method, Role::Server);
        let known = |revision: Revision| KnownRevision::parse(revision.as_str());
        let ends = known(self.to).zip(known(self.from));
        ends.is_some_and(|(from, to)| decodes(root, from, to))
    }

    /// Converts the result of a client's request. `uri` is the URI in the params of the request, if there is one.
    pub(crate) fn result(
        &self,
        method: &str,
        result: RawResult,
        uri: Option<&str>,
    ) -> Result<RawResult, PeerError> {
        if self.from == self.to || is_extension_result(result.object(), self.from) {
            return Ok(self.losses.list_in_result(result));
        }
        let cx = uri.map_or_else(Context::new, |uri| Context::new().requested_uri(uri));
        let root = root(MessageKind::Result, method, Role::Server);
        let text = Some(result.object().text());
        let converted = self.run(root, text, cx).map_err(to_internal_error)?;
        let converted = converted.unwrap_or_default();
        Ok(self.losses.list_in(converted).into())
    }

    /// Converts the error that answers a client's request.
    pub(crate) fn error(&self, method: &str, error: &PeerError, uri: Option<&str>) -> PeerError {
        let ends = known_revision(self.from).and_then(|from| Ok((from, known_revision(self.to)?)));
        let (from, to) = match ends {
            Ok(ends) if self.from != self.to => ends,
            _ => return error.clone(),
        };
        let mut cx = uri.map_or_else(Context::new, |uri| Context::new().requested_uri(uri));
        let object: ErrorObject = error.object().clone();
        match mcp_exact_convert::convert_error(method, object, from, to, &mut cx) {
            Ok(converted) => {
                let revisions = (self.from, self.to);
                self.losses.report(method, revisions, cx.losses(), true);
                PeerError::from(converted).with_failure(error.failure())
            }
            Err(refused) => PeerError::internal(format!(
                "the server answered with error {}, which {} does not have: {refused}",
                error.code().unwrap_or_default(),
                self.to
            ))
            .with_failure(error.failure()),
        }
    }

    /// Converts an input request of a server.
    pub(crate) fn input_request(&self, ask: &InputRequest) -> Result<InputRequest, PeerError> {
        let root = root(MessageKind::Request, &ask.method, Role::Server);
        let text = ask.params.as_ref().map(JsonObject::text);
        let params = self.run(root, text, Context::new())?;
        Ok(InputRequest::new(ask.method.clone(), params))
    }

    /// Converts the response of a client to an input request.
    pub(crate) fn answer(
        &self,
        method: &str,
        answer: &JsonObject,
    ) -> Result<JsonObject, PeerError> {
        let root = root(MessageKind::Result, method, Role::Client);
        let converted = self.run(root, Some(answer.text()), Context::new())?;
        Ok(converted.unwrap_or_default())
    }

    /// Converts a value of the named definition, such as `ServerCapabilities`.
    pub(crate) fn definition(
        &self,
        name: &str,
        value: &JsonObject,
    ) -> Result<JsonObject, PeerError> {
        let mut cx = Context::new();
        let (from, to) = (known_revision(self.from)?, known_revision(self.to)?);
        let text = mcp_exact_convert::convert_type(name, value.text(), from, to, &mut cx)
            .map_err(|refused| PeerError::internal(refused.to_string()))?;
        let revisions = (self.from, self.to);
        self.losses.report(name, revisions, cx.losses(), false);
        object(&text)
    }

    /// Converts the text of a payload, and reports the losses.
    fn run(
        &self,
        root: Payload<'_>,
        text: Option<&str>,
        mut cx: Context,
    ) -> Result<Option<JsonObject>, PeerError> {
        if self.from == self.to {
            return text.map(object).transpose();
        }
        let (from, to) = (known_revision(self.from)?, known_revision(self.to)?);
        let is_result = root.kind == MessageKind::Result;
        if is_result && root.sender == Role::Server {
            // All other messages were repaired when they were received.
            cx = cx.tolerance(self.losses.tolerance());
        }
        let converted = convert(root, text, from, to, &mut cx);
        let converted = converted.map_err(|refused| refusal(refused.pointer(), &refused))?;
        self.losses.report_repairs(root.method, cx.repairs());
        let is_of_params = root.kind == MessageKind::Request && root.sender == Role::Client;
        if is_of_params && cx.losses().iter().any(is_of_own_meta) {
            let losses = cx.losses().iter();
            let losses: Vec<Loss> = losses
                .filter(|loss| !is_of_own_meta(loss))
                .cloned()
                .collect();
            self.record_losses(root.method, &losses, is_result)?;
        } else {
            self.record_losses(root.method, cx.losses(), is_result)?;
        }
        converted.as_deref().map(object).transpose()
    }
}

/// Returns true if a loss is about a member of `_meta` that the upstream endpoint writes itself: nothing of the client's
/// request is lost.
fn is_of_own_meta(loss: &Loss) -> bool {
    let member = loss.pointer.strip_prefix("/_meta/");
    let member = member.map(|member| member.replace("~1", "/"));
    member.is_some_and(|member| OWN_META.contains(&&*member))
}

/// Returns the kind, method and sender of a payload to convert.
fn root(kind: MessageKind, method: &str, sender: Role) -> Payload<'_> {
    Payload {
        kind,
        method,
        sender,
    }
}

/// Returns the revision for conversions; returns an error if its conversions are not compiled in.
fn known_revision(revision: Revision) -> Result<KnownRevision, PeerError> {
    KnownRevision::parse(revision.as_str()).ok_or_else(|| {
        PeerError::internal(format!("the conversions of {revision} are not compiled in"))
    })
}

/// Returns the error for a value that cannot be converted, with the JSON pointer of the value.
fn refusal(pointer: &str, words: &impl ToString) -> PeerError {
    let data = JsonObject::from_iter([("pointer", Json::string(pointer))]);
    PeerError::invalid_params(words.to_string()).with_data(data)
}

/// Returns an internal error for a result that cannot be converted.
fn to_internal_error(error: PeerError) -> PeerError {
    let words = format!(
        "the server's result cannot be sent in this revision: {}",
        error.message()
    );
    match error.data() {
        Some(data) => PeerError::internal(words).with_data(data.clone()),
        None => PeerError::internal(words),
    }
}

/// Parses the converted text as an object.
fn object(text: &str) -> Result<JsonObject, PeerError> {
    text.parse()
        .map_err(|_| PeerError::internal("a conversion gave no object"))
}

/// Replaces the client capabilities in `_meta` by an empty object, because the server has already received them on the
/// connection.
fn without_client_capabilities(params: &JsonObject) -> JsonObject {
    let meta = params.view().find("_meta").and_then(|meta| meta.object());
    let Some(meta) = meta.filter(|meta| meta.find(CLIENT_CAPABILITIES).is_some()) else {
        return params.clone();
    };
    let mut meta = meta.to_object();
    meta.insert(CLIENT_CAPABILITIES, JsonObject::new());
    let mut params = params.clone();
    params.insert("_meta", meta);
    params
}

/// Returns params without the named members of `_meta` and the named members of the params. All other members are
/// unchanged.
fn without(params: &JsonObject, of_meta: &[&str], of_params: &[&str]) -> JsonObject {
    let meta = params.view().find("_meta").and_then(|meta| meta.object());
    let is_left_out = |name: &str| of_meta.contains(&name);
    let has_meta = meta.is_some_and(|meta| meta.iter().any(|(name, _)| is_left_out(&name)));
    let has_own = params
        .view()
        .iter()
        .any(|(name, _)| of_params.contains(&&*name));
    if !has_meta && !has_own {
        return params.clone();
    }
    let mut kept = JsonObject::new();
    for (name, value) in params.view().iter() {
        match (&*name, value.object()) {
            (name, _) if of_params.contains(&name) => {}
            ("_meta", Some(meta)) if has_meta => {
                let rest = meta.iter().filter(|(name, _)| !is_left_out(name));
                let rest: JsonObject = rest.map(|(name, value)| (name, value.to_json())).collect();
                if !rest.is_empty() {
                    kept.insert("_meta", rest);
                }
            }
            (name, _) => kept.insert(name, value.to_json()),
        }
    }
    kept
}

/// Converts a result of the oldest revision, which has what every revision has.
pub(crate) fn from_oldest(
    method: &str,
    result: JsonObject,
    revision: Revision,
) -> Result<JsonObject, PeerError> {
    let oldest = mcp_exact_session::revisions().next();
    let translation = Translation::new(oldest.unwrap_or(revision), revision, Losses::new(None));
    let result = translation.result(method, result.into(), None)?;
    Ok(result.into_object())
}
