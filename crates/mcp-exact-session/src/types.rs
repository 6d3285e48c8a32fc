//! What both machines speak of: streams, keys, what leaves, how requests end, what was agreed.
//!
//! Plain data. Gives the serialised form of an agreement and takes it back; decides nothing.

use std::fmt;

use mcp_exact_wire::{
    Decode, DecodeError, Encode, EncodeParams, Json, JsonObject, Request, Revision, from_str,
};

use crate::error::{ConfigError, PeerError, SendError};
use crate::negotiated::{Negotiated, View};
use crate::revision;

/// A logical stream of messages: it outlives a TCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub(crate) u64);

impl StreamId {
    /// The one stream of [`Binding::Duplex`], open from the beginning.
    pub const DUPLEX: Self = Self(0);
}

/// A request, on this side: ids of different callers over HTTP collide, keys never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey(pub(crate) u64);

/// What carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// One stream for everything, such as stdio: [`StreamId::DUPLEX`].
    Duplex,
    /// A stream for each POST, and standalone ones (2025-03-26 and later).
    StreamableHttp,
    /// One stream to the client, a POST for each message to the server (2024-11-05).
    HttpSse,
}

/// What a stream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StreamKind {
    /// Everything.
    Duplex,
    /// One POST and its answer.
    Post,
    /// What belongs to no request.
    Standalone,
}

/// How a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Closed {
    /// The other side ended it.
    Clean,
    /// It broke.
    Lost,
    /// The session that it belongs to is over.
    SessionEnded,
}

/// What leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transmit {
    /// A message; its bytes were appended to the buffer, on one line and without its end.
    #[non_exhaustive]
    Frame {
        /// The stream that carries it.
        on: StreamId,
        /// The request that it belongs to.
        about: Option<RequestKey>,
        /// Whether nothing else comes on this stream.
        last: bool,
        /// What an HTTP transport adds.
        http: HttpHints,
    },
    /// An answer without a message: over HTTP, this status and no body.
    Status {
        /// The stream of the POST.
        stream: StreamId,
        /// 202 for what was taken, another one for what was not.
        status: u16,
    },
    /// The stream ends here.
    Close {
        /// The stream.
        stream: StreamId,
    },
}

/// What an HTTP transport adds to a message. On [`Binding::Duplex`], which has no headers, only the revision is said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpHints {
    /// The status of a response that consists of this message alone.
    pub status: Option<u16>,
    /// The value of `MCP-Protocol-Version`.
    pub revision: Option<Revision>,
    /// The value of `Mcp-Method`.
    pub method: Option<String>,
    /// The value of `Mcp-Name`, before it is encoded.
    pub name: Option<String>,
    /// The headers of mirrored tool parameters, `Mcp-Param-*`, with encoded values.
    pub params: Vec<(String, String)>,
}

/// What became of something that the program has sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sent {
    /// It leaves.
    Queued,
    /// Nobody wants it: the request was cancelled, has no progress token, or the level is too low.
    Suppressed,
    /// Too much waits to be sent already.
    Dropped,
}

/// How a request of this side ended. Each one ends exactly once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With a result.
    Result(RawResult),
    /// With an error.
    Error(PeerError),
    /// No answer came in time; the other side was told to stop.
    TimedOut,
    /// The program has cancelled it.
    Cancelled,
    /// The stream was lost before an answer came. The other side may have done the work.
    Lost,
    /// The session was closed on this side.
    Closed,
}

/// A result as it stands in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawResult(JsonObject);

impl RawResult {
    /// The result as an open object.
    pub fn object(&self) -> &JsonObject {
        &self.0
    }

    /// The result as an open object.
    pub fn into_object(self) -> JsonObject {
        self.0
    }

    /// A result of a generated type.
    ///
    /// # Errors
    /// [`SendError::Params`] when the value is no object.
    pub fn of<T: Encode + ?Sized>(value: &T) -> Result<Self, SendError> {
        let object = JsonObject::try_from(Json::from_encode(value));
        object.map(Self).map_err(|_| SendError::Params {
            method: "result".to_owned(),
            reason: "they have to be an object".to_owned(),
        })
    }

    /// The result of the request `Q`, whose revision is the agreed one.
    ///
    /// # Errors
    /// [`DecodeError`] when it does not fit.
    pub fn decode_as<Q: Request>(&self) -> Result<Q::Result, DecodeError>
    where
        Q::Result: Decode,
    {
        from_str(self.0.text())
    }

    /// The result of a request of `method` by the types of a revision.
    ///
    /// # Errors
    /// [`PeerError`] when it does not fit, or the revision is not compiled in.
    pub fn typed<V>(&self, method: &str, revision: Revision) -> Result<Negotiated<V>, PeerError>
    where
        V: for<'a> View<Source<'a> = (&'a str, &'a JsonObject)>,
    {
        let unknown = || PeerError::internal("the revision is not compiled in");
        let rules = revision::find(revision.as_str()).ok_or_else(unknown)?;
        Negotiated::decode(rules, (method, &self.0))
    }
}

impl From<JsonObject> for RawResult {
    fn from(object: JsonObject) -> Self {
        Self(object)
    }
}

/// The parameters that a value is, or none.
pub(crate) fn params_of<P: EncodeParams + ?Sized>(
    method: &str,
    params: &P,
) -> Result<Option<JsonObject>, SendError> {
    let Some(text) = params.encode_params() else {
        return Ok(None);
    };
    let params = from_str(&text).map_err(|_| SendError::Params {
        method: method.to_owned(),
        reason: "they have to be an object".to_owned(),
    });
    params.map(Some)
}

/// A question of a server to the client in the middle of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputRequest {
    /// `sampling/createMessage`, `roots/list` or `elicitation/create`.
    pub method: String,
    /// Its parameters.
    pub params: Option<JsonObject>,
}

impl InputRequest {
    /// A question by its method.
    pub fn new(method: impl Into<String>, params: Option<JsonObject>) -> Self {
        Self {
            method: method.into(),
            params,
        }
    }

    /// A question of a generated type.
    ///
    /// # Errors
    /// [`SendError::Params`] when the parameters are no object.
    pub fn of<Q: Request>(params: &Q::Params) -> Result<Self, SendError>
    where
        Q::Params: EncodeParams,
    {
        let params = params_of(Q::METHOD, params)?;
        Ok(Self::new(Q::METHOD, params))
    }
}

/// How questions were answered, by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InputResponses(pub(crate) Vec<(String, Outcome)>);

impl InputResponses {
    /// How the question of this name ended; `None` when it was not asked, or not answered.
    pub fn get(&self, name: &str) -> Option<&Outcome> {
        let mut all = self.0.iter();
        all.find(|(known, _)| known == name)
            .map(|(_, outcome)| outcome)
    }

    /// The result of the question of this name, when it has one.
    pub fn result(&self, name: &str) -> Option<&RawResult> {
        match self.get(name) {
            Some(Outcome::Result(result)) => Some(result),
            _ => None,
        }
    }

    /// All of them, in the order of the questions.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Outcome)> {
        self.0.iter().map(|(name, outcome)| (&**name, outcome))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What both sides have agreed on, from the point of view of one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// The revision.
    pub revision: Revision,
    /// What the other side can do.
    pub capabilities: JsonObject,
    /// Who the other side says that it is; for display and logs only.
    pub info: Option<JsonObject>,
    /// How to use the server, as it says itself. A server has none of its client.
    pub instructions: Option<String>,
}

impl SessionInfo {
    /// The agreement as text, for [`from_str`](std::str::FromStr) later.
    fn json(&self) -> JsonObject {
        let mut json = JsonObject::from_iter([
            ("revision", Json::string(self.revision.as_str())),
            ("capabilities", self.capabilities.as_json().clone()),
        ]);
        if let Some(info) = &self.info {
            json.insert("info", info.as_json().clone());
        }
        if let Some(instructions) = &self.instructions {
            json.insert("instructions", Json::string(instructions));
        }
        json
    }
}

impl fmt::Display for SessionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json().fmt(f)
    }
}

impl std::str::FromStr for SessionInfo {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let unreadable = |what: &str| ConfigError::Agreement(what.to_owned());
        let json: JsonObject =
            from_str(text).map_err(|error| ConfigError::Agreement(error.to_string()))?;
        let revision = json
            .get("revision")
            .ok_or_else(|| unreadable("no revision"))?;
        let revision: String =
            from_str(revision.text()).map_err(|_| unreadable("the revision is no string"))?;
        let rules = revision::find(&revision).ok_or(ConfigError::UnknownRevision(revision))?;
        let object = |name: &str| {
            let value = json.get(name).map(JsonObject::try_from).transpose();
            value.map_err(|_| ConfigError::Agreement(format!("`{name}` is no object")))
        };
        let instructions = json.get("instructions").map(|json| from_str(json.text()));
        Ok(Self {
            revision: rules.revision,
            capabilities: object("capabilities")?.ok_or_else(|| unreadable("no capabilities"))?,
            info: object("info")?,
            instructions: instructions
                .transpose()
                .map_err(|_| unreadable("the instructions are no string"))?,
        })
    }
}

/// A change that a server announces to whoever wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The resource with this URI.
    Resource(String),
}

impl Change {
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Tools => "notifications/tools/list_changed",
            Self::Prompts => "notifications/prompts/list_changed",
            Self::Resources => "notifications/resources/list_changed",
            Self::Resource(_) => "notifications/resources/updated",
        }
    }

    pub(crate) fn of(method: &str, params: Option<&JsonObject>) -> Option<Self> {
        Some(match method {
            "notifications/tools/list_changed" => Self::Tools,
            "notifications/prompts/list_changed" => Self::Prompts,
            "notifications/resources/list_changed" => Self::Resources,
            "notifications/resources/updated" => {
                Self::Resource(from_str(params?.get("uri")?.text()).ok()?)
            }
            _ => return None,
        })
    }
}

/// How far a request has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// So much is done; it increases.
    pub done: f64,
    /// Of so much, where that is known.
    pub total: Option<f64>,
    /// In words (from 2025-03-26 on).
    pub message: Option<String>,
}

impl Progress {
    /// So much is done.
    pub fn new(done: f64) -> Self {
        Self {
            done,
            total: None,
            message: None,
        }
    }

    /// Of so much.
    #[must_use]
    pub fn of(mut self, total: f64) -> Self {
        self.total = Some(total);
        self
    }

    /// In words.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}
