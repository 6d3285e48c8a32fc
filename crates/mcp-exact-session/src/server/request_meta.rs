//! What the messages of one request say besides what they are about (2026-07-28: `basic`, "_meta"): who sends it, what a
//! repeated one brings, and what every result says by itself.
//!
//! Takes a call or a result; looks at each object once. Decides nothing.

use std::borrow::Cow;

use mcp_exact_wire::{Json, JsonObject, JsonRef, RequestId};

use super::incoming::Caller;
use crate::builtin_notifications::is_token;
use crate::config::ServerConfig;
use crate::error::{PeerError, SendError};
use crate::limits::Limit;
use crate::log::Level;
use crate::message::{self, Call};
use crate::meta;
use crate::revision::Rules;
use crate::types::{InputResponses, Outcome, RawResult, SessionInfo};

/// What a request says in the members that the machine reads: in its parameters, and in their `_meta`.
#[derive(Debug, Default)]
pub(super) struct RequestMeta<'a> {
    pub(super) version: Option<JsonRef<'a>>,
    capabilities: Option<JsonRef<'a>>,
    info: Option<JsonRef<'a>>,
    level: Option<JsonRef<'a>>,
    token: Option<JsonRef<'a>>,
    responses: Option<JsonRef<'a>>,
    pub(super) state: Option<JsonRef<'a>>,
}

/// What a repeated request brings.
#[derive(Debug, Default)]
pub(super) struct Resumed {
    pub(super) round: u32,
    pub(super) state: Option<String>,
    pub(super) answers: InputResponses,
}

impl<'a> RequestMeta<'a> {
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

    pub(super) fn required_version(&self) -> Result<Cow<'a, str>, PeerError> {
        let version = self.version.and_then(JsonRef::as_str);
        version.ok_or_else(|| needed(meta::PROTOCOL_VERSION))
    }

    /// Who sends the request, as it says itself.
    pub(super) fn caller(&self, rules: &'static Rules) -> Result<Caller, PeerError> {
        let object = |name: &str, value: Option<JsonRef<'_>>| {
            let words = || PeerError::invalid_params(format!("`{name}` has to be an object"));
            let object = value.map(|value| value.object().ok_or_else(words));
            object.transpose().map(|object| Some(object?.to_object()))
        };
        let capabilities = object(meta::CLIENT_CAPABILITIES, self.capabilities)?;
        let level = self.level.map(|level| {
            let level: Result<Level, _> = level.as_str().unwrap_or_default().parse();
            level.map_err(|error| PeerError::invalid_params(error.to_string()))
        });
        Ok(Caller {
            rules,
            agreed: SessionInfo {
                revision: rules.revision,
                capabilities: capabilities.ok_or_else(|| needed(meta::CLIENT_CAPABILITIES))?,
                info: object(meta::CLIENT_INFO, self.info)?,
                instructions: None,
            },
            level: level.transpose()?,
        })
    }

    /// The answers to questions, of which there may be so many.
    pub(super) fn answers(&self, most: usize) -> Result<InputResponses, PeerError> {
        let Some(responses) = self.responses else {
            return Ok(InputResponses::default());
        };
        let wrong = || PeerError::invalid_params("`inputResponses` has to be an object of objects");
        let responses = responses.object().ok_or_else(wrong)?;
        if responses.iter().nth(most).is_some() {
            return Err(PeerError::limit(Limit::InputRequests));
        }
        let answer = |(name, value): (Cow<'_, str>, JsonRef<'_>)| {
            let object = value.object().ok_or_else(wrong)?.to_object();
            Ok((name.into_owned(), Outcome::Result(RawResult::from(object))))
        };
        responses
            .iter()
            .map(answer)
            .collect::<Result<_, _>>()
            .map(InputResponses)
    }
}

fn needed(name: &str) -> PeerError {
    PeerError::invalid_params(format!("`_meta` needs `{name}`"))
}

/// What every result says in this era, where it does not say so itself.
#[derive(Debug)]
pub(super) struct Words {
    complete: Json,
    /// Who has made the result, and `_meta` that says so and nothing else.
    info: Json,
    meta: JsonObject,
    /// How long it may be kept, and by whom (`server/utilities/caching`).
    ttl: Json,
    scope: Json,
}

impl Words {
    pub(super) fn of(config: &ServerConfig, rules: &Rules) -> Self {
        let scope = match config.cache.public {
            true => "public",
            false => "private",
        };
        let info = Json::from(config.identity.towards(rules));
        Self {
            complete: Json::string("complete"),
            meta: JsonObject::from_iter([(meta::SERVER_INFO, info.clone())]),
            info,
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
            None => Some(Cow::Borrowed(&self.meta)),
            Some(said) => said
                .filter(|said| said.find(meta::SERVER_INFO).is_none())
                .map(|said| {
                    said.with_new([(meta::SERVER_INFO, Some(self.info.view()))])
                        .into()
                })
                .map(Cow::Owned),
        };
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
                true => result.view().with_new(more),
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
