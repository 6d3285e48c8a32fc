//! Params, results, errors and questions in the revision of the other side.
//!
//! Takes what one side has sent and gives what the other one is sent. What a conversion loses is reported, or refused, as the
//! [`LossPolicy`] says. Equal revisions pass as they came, except for the members that each side writes itself.

use mcp_exact_convert::{Context, KnownRevision, MessageKind, Role, Root, convert};
use mcp_exact_session::{
    ErrorObject, InputRequest, Json, JsonObject, LossPolicy, PeerError, RawResult, Revision,
};

/// Members of `_meta` that the client of the upstream server writes itself (2026-07-28, `basic`, "Per-Request Protocol Fields").
const OWN_META: [&str; 5] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/logLevel",
];

/// Returns the newest revision, in which the settings of endpoints spell capabilities.
pub(crate) fn newest() -> Revision {
    let newest = mcp_exact_session::revisions().next_back();
    newest.unwrap_or(KnownRevision::V2026_07_28.revision())
}

/// The way from one side to the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) from: Revision,
    pub(crate) to: Revision,
    pub(crate) policy: LossPolicy,
}

impl Way {
    /// Returns the way back.
    pub(crate) fn back(self) -> Self {
        Self {
            from: self.to,
            to: self.from,
            ..self
        }
    }

    /// Converts the params of a client's request, without what the other side adds itself.
    ///
    /// `client_meta` is what a request of 2026-07-28 says of its client.
    pub(crate) fn params(
        self,
        method: &str,
        params: Option<&JsonObject>,
        client_meta: JsonObject,
    ) -> Result<Option<JsonObject>, PeerError> {
        let cx = Context::new().request_meta(client_meta).has_read_input();
        let root = root(MessageKind::Request, method, Role::Client);
        let converted = self.run(root, params.map(JsonObject::text), cx)?;
        Ok(converted.map(without_own))
    }

    /// Converts the params of a notification.
    pub(crate) fn notification(
        self,
        method: &str,
        params: Option<&JsonObject>,
        sender: Role,
    ) -> Result<Option<JsonObject>, PeerError> {
        let root = root(MessageKind::Notification, method, sender);
        self.run(root, params.map(JsonObject::text), Context::new())
    }

    /// Converts the result of a client's request. `uri` is that of the request, if it has one.
    pub(crate) fn result(
        self,
        method: &str,
        result: RawResult,
        uri: Option<&str>,
    ) -> Result<RawResult, PeerError> {
        if self.from == self.to {
            return Ok(result);
        }
        let cx = uri.map_or_else(Context::new, |uri| Context::new().requested_uri(uri));
        let root = root(MessageKind::Result, method, Role::Server);
        let text = Some(result.object().text());
        let converted = self.run(root, text, cx).map_err(as_internal)?;
        Ok(converted.unwrap_or_default().into())
    }

    /// Converts the error that answers a client's request.
    pub(crate) fn error(self, method: &str, error: &PeerError, uri: Option<&str>) -> PeerError {
        let ends = known(self.from).and_then(|from| Ok((from, known(self.to)?)));
        let (from, to) = match ends {
            Ok(ends) if self.from != self.to => ends,
            _ => return error.clone(),
        };
        let mut cx = uri.map_or_else(Context::new, |uri| Context::new().requested_uri(uri));
        let object: ErrorObject = error.object().clone();
        match mcp_exact_convert::convert_error(method, object, from, to, &mut cx) {
            Ok(converted) => {
                self.report(method, &cx);
                PeerError::from(converted)
            }
            Err(refused) => PeerError::internal(format!(
                "the server answered with error {}, which {} does not have: {refused}",
                error.code().unwrap_or_default(),
                self.to
            )),
        }
    }

    /// Converts a question of a server.
    pub(crate) fn question(self, ask: &InputRequest) -> Result<InputRequest, PeerError> {
        let root = root(MessageKind::Request, &ask.method, Role::Server);
        let text = ask.params.as_ref().map(JsonObject::text);
        let params = self.run(root, text, Context::new())?;
        Ok(InputRequest::new(ask.method.clone(), params))
    }

    /// Converts a client's answer to a question.
    pub(crate) fn answer(self, method: &str, answer: &JsonObject) -> Result<JsonObject, PeerError> {
        let root = root(MessageKind::Result, method, Role::Client);
        let converted = self.run(root, Some(answer.text()), Context::new())?;
        Ok(converted.unwrap_or_default())
    }

    /// Converts the definition of this name, such as `ServerCapabilities`.
    pub(crate) fn definition(
        self,
        name: &str,
        value: &JsonObject,
    ) -> Result<JsonObject, PeerError> {
        let mut cx = Context::new();
        let (from, to) = (known(self.from)?, known(self.to)?);
        let text = mcp_exact_convert::convert_type(name, value.text(), from, to, &mut cx)
            .map_err(|refused| PeerError::internal(refused.to_string()))?;
        self.report(name, &cx);
        object(&text)
    }

    fn run(
        self,
        root: Root<'_>,
        text: Option<&str>,
        mut cx: Context,
    ) -> Result<Option<JsonObject>, PeerError> {
        if self.from == self.to {
            return text.map(object).transpose();
        }
        let (from, to) = (known(self.from)?, known(self.to)?);
        let converted = convert(root, text, from, to, &mut cx);
        let converted = converted.map_err(|refused| refusal(refused.pointer(), &refused))?;
        if self.policy == LossPolicy::Refuse
            && let Some(loss) = cx.losses().iter().find(|loss| loss.kind.is_lossy())
        {
            return Err(refusal(&loss.pointer, loss));
        }
        self.report(root.method, &cx);
        converted.as_deref().map(object).transpose()
    }

    fn report(self, what: &str, cx: &Context) {
        if self.policy == LossPolicy::Accept {
            return;
        }
        for loss in cx.losses().iter().filter(|loss| loss.kind.is_lossy()) {
            tracing::warn!(what, from = %self.from, to = %self.to, %loss, "a conversion lost information");
        }
    }
}

fn root(kind: MessageKind, method: &str, sender: Role) -> Root<'_> {
    Root {
        kind,
        method,
        sender,
    }
}

fn known(revision: Revision) -> Result<KnownRevision, PeerError> {
    KnownRevision::parse(revision.as_str()).ok_or_else(|| {
        PeerError::internal(format!("the conversions of {revision} are not compiled in"))
    })
}

fn refusal(pointer: &str, words: &impl ToString) -> PeerError {
    let data = JsonObject::from_iter([("pointer", Json::string(pointer))]);
    PeerError::invalid_params(words.to_string()).with_data(data)
}

/// Makes an error of a result, which the client can do nothing about.
fn as_internal(error: PeerError) -> PeerError {
    let words = format!(
        "the server's result cannot be sent in this revision: {}",
        error.message()
    );
    match error.data() {
        Some(data) => PeerError::internal(words).with_data(data.clone()),
        None => PeerError::internal(words),
    }
}

fn object(text: &str) -> Result<JsonObject, PeerError> {
    text.parse()
        .map_err(|_| PeerError::internal("a conversion gave no object"))
}

/// Leaves out the members that the endpoint of the other side writes: progress token, sender, input and state.
fn without_own(params: JsonObject) -> JsonObject {
    let meta = params.view().find("_meta").and_then(|meta| meta.object());
    let has_own = meta.is_some_and(|meta| meta.iter().any(|(name, _)| OWN_META.contains(&&*name)));
    let has_input = params.view().find_each(["inputResponses", "requestState"]) != [None, None];
    if !has_own && !has_input {
        return params;
    }
    let mut kept = JsonObject::new();
    for (name, value) in params.view().iter() {
        match &*name {
            "inputResponses" | "requestState" => {}
            "_meta" => {
                let meta = value.object().unwrap_or_default();
                let rest = meta.iter().filter(|(name, _)| !OWN_META.contains(&&**name));
                let rest: JsonObject = rest.map(|(name, value)| (name, value.to_json())).collect();
                if !rest.is_empty() {
                    kept.insert("_meta", rest);
                }
            }
            name => kept.insert(name, value.to_json()),
        }
    }
    kept
}
