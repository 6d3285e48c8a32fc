//! The handshake as a server sees it: `initialize`, then `initialized` (`basic/lifecycle`, up to 2025-11-25).
//!
//! One struct a state, consumed by its transition. Takes the configuration and a call; gives the answer and what was agreed.

use std::sync::Arc;

use mcp_exact_wire::{Json, JsonObject, RequestId, from_str};

use super::incoming::Caller;
use crate::capability::understood;
use crate::config::ServerConfig;
use crate::error::{PeerError, code};
use crate::message::{self, Call};
use crate::negotiated::{ClientRequests, Negotiated};
use crate::revision::{Lifecycle, Rules};
use crate::types::SessionInfo;

/// Where a handshake stands.
#[derive(Debug)]
pub(super) enum State {
    ExpectInitialize(ExpectInitialize),
    ExpectInitialized(ExpectInitialized),
    Operating(Operating),
    Closed,
}

#[derive(Debug)]
pub(super) struct ExpectInitialize;

/// The result has left. Requests are served: over HTTP they race `initialized`.
#[derive(Debug)]
pub(super) struct ExpectInitialized {
    caller: Arc<Caller>,
}

#[derive(Debug)]
pub(super) struct Operating {
    caller: Arc<Caller>,
}

impl State {
    pub(super) fn new() -> Self {
        Self::ExpectInitialize(ExpectInitialize)
    }

    pub(super) fn resume(rules: &'static Rules, agreed: SessionInfo) -> Self {
        let caller = Arc::new(Caller {
            rules,
            agreed,
            level: None,
        });
        Self::Operating(Operating { caller })
    }

    /// What is known of the client, once it is agreed.
    pub(super) fn caller(&self) -> Option<&Arc<Caller>> {
        match self {
            Self::ExpectInitialize(_) | Self::Closed => None,
            Self::ExpectInitialized(state) => Some(&state.caller),
            Self::Operating(state) => Some(&state.caller),
        }
    }

    pub(super) fn is_operating(&self) -> bool {
        matches!(self, Self::Operating(_))
    }
}

impl ExpectInitialize {
    /// InputResponses `initialize`: with the revision that was asked for, or with another one that this server speaks.
    pub(super) fn initialize(
        self,
        config: &ServerConfig,
        id: &RequestId,
        call: &Call,
    ) -> Result<(ExpectInitialized, JsonObject), (Self, PeerError)> {
        match agree(config, id, call) {
            Ok(caller) => {
                let result = result(config, caller.rules);
                let caller = Arc::new(caller);
                Ok((ExpectInitialized { caller }, result))
            }
            Err(error) => Err((self, error)),
        }
    }
}

impl ExpectInitialized {
    pub(super) fn initialized(self) -> Operating {
        Operating {
            caller: self.caller,
        }
    }
}

fn agree(config: &ServerConfig, id: &RequestId, call: &Call) -> Result<Caller, PeerError> {
    let requested: String = call
        .param("protocolVersion")
        .and_then(|version| from_str(version.text()).ok())
        .ok_or_else(|| PeerError::invalid_params("`protocolVersion` has to be a string"))?;
    let rules = choose(config, &requested).ok_or_else(|| unsupported(config, &requested))?;
    // The parameters have to be those of the revision that is agreed on.
    let text = message::request_text(id, call);
    Negotiated::<ClientRequests>::decode(rules, text.as_slice())?;
    let object = |name: &str| Some(call.param(name)?.object()?.to_object());
    Ok(Caller {
        rules,
        agreed: SessionInfo {
            revision: rules.revision,
            capabilities: understood(rules, object("capabilities").unwrap_or_default()),
            info: object("clientInfo"),
            instructions: None,
        },
        level: None,
    })
}

/// "If the server supports the requested protocol version, it MUST respond with the same version. Otherwise, the server
/// MUST respond with another protocol version it supports."
fn choose(config: &ServerConfig, requested: &str) -> Option<&'static Rules> {
    let mut handshake = config.offer.of_lifecycle(Lifecycle::Initialize);
    let same = config
        .offer
        .of_lifecycle(Lifecycle::Initialize)
        .find(|rules| rules.is(requested));
    same.or_else(|| handshake.next())
}

/// The error of a server that does not speak a revision, or no revision with a handshake at all. It names what it speaks:
/// the client may have nothing else to show (2026-07-28, `basic/versioning`).
pub(super) fn unsupported(config: &ServerConfig, requested: &str) -> PeerError {
    let supported: Vec<String> = config
        .offer
        .rules()
        .map(|r| r.revision.to_string())
        .collect();
    let data = JsonObject::from_iter([
        ("supported", Json::from_encode(&supported)),
        ("requested", Json::string(requested)),
    ]);
    PeerError::new(code::UNSUPPORTED_VERSION, "Unsupported protocol version").with_data(data)
}

fn result(config: &ServerConfig, rules: &'static Rules) -> JsonObject {
    let mut result = JsonObject::from_iter([
        ("protocolVersion", Json::string(rules.revision.as_str())),
        ("capabilities", config.towards(rules).into()),
        ("serverInfo", config.identity.towards(rules).into()),
    ]);
    if let Some(instructions) = &config.instructions {
        result.insert("instructions", Json::string(instructions));
    }
    result
}
