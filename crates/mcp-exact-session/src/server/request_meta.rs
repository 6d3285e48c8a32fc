//! Metadata of a request (2026-07-28: `basic`, "_meta"): its sender, and the input of a repeated request.
//!
//! Each object of the params is read once. This module does not check whether the request is allowed.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::order::duplicate;
use mcp_exact_wire::{Json, JsonObject, JsonRef, Places, Reader};

use super::incoming::ClientContext;
use crate::builtin_notifications::is_progress_token;
use crate::input_request::InputResponses;
use crate::limits::Limit;
use crate::log::Level;
use crate::message::Call;
use crate::meta;
use crate::outcome::{Outcome, RawResult};
use crate::refusal::Refusal;
use crate::session_info::SessionInfo;

/// Names of the members of `_meta` that the endpoint reads.
const SENDER_MEMBERS: [&str; 5] = [
    meta::PROTOCOL_VERSION,
    meta::CLIENT_CAPABILITIES,
    meta::CLIENT_INFO,
    meta::LOG_LEVEL,
    "progressToken",
];

/// Metadata of an admitted request, in which nothing is refused or repaired.
#[derive(Debug)]
pub(super) struct LastMeta {
    /// Text of `_meta`.
    pub(super) text: Box<str>,
    /// Positions of the [`SENDER_MEMBERS`] in the text.
    members: Places<{ SENDER_MEMBERS.len() }>,
    /// Sender that the text describes.
    pub(super) client: Arc<ClientContext>,
}

impl LastMeta {
    /// Maximum length of the metadata that is kept, in bytes.
    const MAX_BYTES: usize = 2048;

    /// Keeps the metadata of a request; `None` if other requests of the client will hardly have the same.
    pub(super) fn new(text: &str, client: &Arc<ClientContext>) -> Option<Self> {
        if text.len() > Self::MAX_BYTES || text.contains("progressToken") {
            return None;
        }
        let found = JsonObject::decode_finding(&mut Reader::new(text), SENDER_MEMBERS);
        Some(Self {
            text: text.into(),
            members: found.ok()?.1,
            client: Arc::clone(client),
        })
    }
}

/// Members of a request's params and of their `_meta` that the endpoint reads.
#[derive(Debug, Default)]
pub(super) struct RequestMeta<'a> {
    /// Value that names the revision of the request.
    pub(super) version: Option<JsonRef<'a>>,
    /// Value that contains the capabilities of the client.
    capabilities: Option<JsonRef<'a>>,
    /// Value that contains the `Implementation` of the client.
    info: Option<JsonRef<'a>>,
    /// Minimum level of the log messages that the request accepts.
    log_level: Option<JsonRef<'a>>,
    /// Value of the progress token.
    progress_token: Option<JsonRef<'a>>,
    /// Value of the param `inputResponses`.
    input_responses: Option<JsonRef<'a>>,
    /// Value of the param `requestState`.
    pub(super) state: Option<JsonRef<'a>>,
}

impl<'a> RequestMeta<'a> {
    /// Locates the members in the params of a request and in their `_meta`, which has the text of `last` in most requests.
    pub(super) fn read(call: &'a Call, last: Option<&LastMeta>) -> Self {
        let [meta, responses, state] = call.read_params();
        let members = match (meta.and_then(JsonRef::object), last) {
            (None, _) => [None; SENDER_MEMBERS.len()],
            (Some(meta), Some(last)) if *meta.text() == *last.text => {
                std::array::from_fn(|index| last.members.value_in(meta, index))
            }
            (Some(meta), _) => meta.find_each(SENDER_MEMBERS),
        };
        let [version, capabilities, info, level, token] = members;
        Self {
            version,
            capabilities,
            info,
            log_level: level,
            progress_token: token,
            input_responses: responses,
            state,
        }
    }

    /// Returns the progress token, if its value is valid.
    pub(super) fn progress_token(&self) -> Option<Json> {
        self.progress_token
            .filter(is_progress_token)
            .map(JsonRef::to_json)
    }

    /// Returns the revision that the request names.
    ///
    /// # Errors
    ///
    /// [`Refusal::MissingMeta`] if the member is absent or not a string.
    pub(super) fn required_version(&self) -> Result<Cow<'a, str>, Refusal> {
        let version = self.version.and_then(JsonRef::as_str);
        version.ok_or(Refusal::MissingMeta(meta::PROTOCOL_VERSION))
    }

    /// Returns the capabilities; `None` if the member is absent or not an object.
    pub(super) fn capabilities(&self) -> Option<JsonObject> {
        Some(self.capabilities?.object()?.to_object())
    }

    /// Returns the sender that the request describes.
    pub(super) fn client_context(
        &self,
        spec: &'static RevisionSpec,
    ) -> Result<ClientContext, Refusal> {
        let object = |name: &str, value: Option<JsonRef<'_>>| match value {
            None => Ok(None),
            Some(value) => match value.object() {
                Some(object) => Ok(Some(object.to_object())),
                None => Err(Refusal::InvalidParams(format!(
                    "`{name}` must be an object"
                ))),
            },
        };
        let capabilities = object(meta::CLIENT_CAPABILITIES, self.capabilities)?;
        let level = self.log_level.map(|level| {
            let level: Result<Level, _> = level.as_str().unwrap_or_default().parse();
            level.map_err(|error| Refusal::InvalidParams(format!("{error}")))
        });
        let required = || Refusal::MissingMeta(meta::CLIENT_CAPABILITIES);
        Ok(ClientContext {
            spec,
            info: SessionInfo {
                revision: spec.revision(),
                capabilities: capabilities.ok_or_else(required)?,
                implementation: object(meta::CLIENT_INFO, self.info)?,
                instructions: None,
            },
            log_level: level.transpose()?,
            home: OnceLock::new(),
        })
    }

    /// Returns the responses to input requests; refuses more than `limit`.
    pub(super) fn input_responses(&self, limit: usize) -> Result<InputResponses, Refusal> {
        let Some(responses) = self.input_responses else {
            return Ok(InputResponses::default());
        };
        let invalid =
            || Refusal::InvalidParams("`inputResponses` must be an object of objects".to_owned());
        let responses = responses.object().ok_or_else(invalid)?;
        if responses.iter().nth(limit).is_some() {
            return Err(Refusal::Limit(Limit::InputRequests));
        }
        let response = |(name, value): (Cow<'_, str>, JsonRef<'_>)| {
            let object = value.object().ok_or_else(invalid)?.to_object();
            Ok((name.into_owned(), Outcome::Result(RawResult::from(object))))
        };
        let found = responses.iter().map(response);
        let found: Vec<(String, Outcome)> = found.collect::<Result<_, Refusal>>()?;
        if duplicate(found.len(), &|at| &*found[at].0).is_some() {
            let text = "`inputResponses` holds a name twice".to_owned();
            return Err(Refusal::InvalidParams(text));
        }
        Ok(InputResponses(found))
    }
}

impl ClientContext {
    /// Creates the sender of a notification with these capabilities.
    pub(super) fn for_notification(spec: &'static RevisionSpec, capabilities: JsonObject) -> Self {
        Self {
            spec,
            info: SessionInfo {
                revision: spec.revision(),
                capabilities,
                implementation: None,
                instructions: None,
            },
            log_level: None,
            home: OnceLock::new(),
        }
    }
}
