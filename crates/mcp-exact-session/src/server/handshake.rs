//! Handshake of a server: `initialize`, then `notifications/initialized` (up to 2025-11-25, `basic/lifecycle`).
//!
//! Each state is a struct that is consumed by the transition to the next state.

use std::sync::{Arc, OnceLock};

use mcp_exact_revisions::{Lifecycle, RevisionSpec};
use mcp_exact_wire::{Json, JsonObject, JsonRef};

use super::incoming::ClientContext;
use crate::config::ServerSettings;
use crate::http_request::Principal;
use crate::message::Call;
use crate::refusal::Refusal;
use crate::rules::capability::defined_capabilities;
use crate::session_info::SessionInfo;

/// State of the handshake and of the session.
#[derive(Debug)]
pub(super) enum State {
    /// The endpoint waits for `initialize`.
    ExpectInitialize(ExpectInitialize),
    /// The result of `initialize` was sent.
    ExpectInitialized(ExpectInitialized),
    /// The handshake is complete.
    Operating(Operating),
    /// The session has ended.
    Closed,
}

/// State of a session before `initialize`.
#[derive(Debug)]
pub(super) struct ExpectInitialize;

/// State after the result of `initialize`. Requests are already served, because over HTTP they can arrive before
/// `notifications/initialized`.
#[derive(Debug)]
pub(super) struct ExpectInitialized {
    /// Client and principal of the session.
    session: Session,
}

/// State of a session after `notifications/initialized`.
#[derive(Debug)]
pub(super) struct Operating {
    /// Client and principal of the session.
    session: Session,
}

/// Client of a session, and the principal to which the session belongs.
#[derive(Debug)]
struct Session {
    /// Client that has sent `initialize`.
    client: Arc<ClientContext>,
    /// Principal that has sent `initialize`, if authenticated.
    principal: Option<Principal>,
}

impl State {
    pub(super) fn new() -> Self {
        Self::ExpectInitialize(ExpectInitialize)
    }

    /// Creates the state of a session that another endpoint has begun; `ready` after `notifications/initialized`.
    pub(super) fn resumed(
        spec: &'static RevisionSpec,
        info: SessionInfo,
        principal: Option<Principal>,
        ready: bool,
    ) -> Self {
        let client = Arc::new(ClientContext {
            spec,
            info,
            log_level: None,
            home: OnceLock::new(),
        });
        let session = Session { client, principal };
        if ready {
            Self::Operating(Operating { session })
        } else {
            Self::ExpectInitialized(ExpectInitialized { session })
        }
    }

    /// Returns the session, once a revision is negotiated.
    fn session(&self) -> Option<&Session> {
        match self {
            Self::ExpectInitialize(_) | Self::Closed => None,
            Self::ExpectInitialized(state) => Some(&state.session),
            Self::Operating(state) => Some(&state.session),
        }
    }

    /// Returns the client of the session, once a revision is negotiated.
    pub(super) fn client(&self) -> Option<&Arc<ClientContext>> {
        self.session().map(|session| &session.client)
    }

    /// Returns the principal to which the session belongs, if any.
    pub(super) fn principal(&self) -> Option<&Principal> {
        self.session()?.principal.as_ref()
    }

    /// Returns true if the endpoint accepts frames of this principal: a session belongs to the principal that sent
    /// `initialize`.
    pub(super) fn belongs_to(&self, principal: Option<&Principal>) -> bool {
        self.session()
            .is_none_or(|session| session.principal.as_ref() == principal)
    }

    /// Returns true after `notifications/initialized`.
    pub(super) fn is_operating(&self) -> bool {
        matches!(self, Self::Operating(_))
    }
}

impl ExpectInitialize {
    /// Answers `initialize` with the requested revision, or with another revision that the server offers.
    ///
    /// # Errors
    /// The unchanged state, and the reason why the request is refused.
    pub(super) fn initialize(
        self,
        settings: &ServerSettings,
        call: &Call,
        principal: Option<Principal>,
    ) -> Result<(ExpectInitialized, JsonObject), (Self, Refusal)> {
        match negotiate_session(settings, call) {
            Ok(client) => {
                let result = initialize_result(settings, client.spec);
                let client = Arc::new(client);
                let session = Session { client, principal };
                Ok((ExpectInitialized { session }, result))
            }
            Err(refusal) => Err((self, refusal)),
        }
    }
}

impl ExpectInitialized {
    /// Ends the handshake after `notifications/initialized`.
    pub(super) fn into_operating(self) -> Operating {
        Operating {
            session: self.session,
        }
    }
}

/// Checks the parameters of `initialize`, chooses the revision, and returns the client of the session.
fn negotiate_session(settings: &ServerSettings, call: &Call) -> Result<ClientContext, Refusal> {
    let requested = call.param("protocolVersion").and_then(JsonRef::as_str);
    let requested = requested.ok_or_else(|| invalid_params("protocolVersion", "a string"))?;
    let spec = choose_revision(settings, &requested)
        .ok_or_else(|| unsupported_version(settings, &requested))?;
    let object = |name: &'static str| {
        let value = call.param(name).and_then(JsonRef::object);
        value.ok_or_else(|| invalid_params(name, "an object"))
    };
    let (capabilities, info) = (object("capabilities")?, object("clientInfo")?);
    check_capabilities(capabilities)?;
    for member in ["name", "version"] {
        let text = info.find(member).and_then(JsonRef::as_str);
        text.ok_or_else(|| invalid_params("clientInfo", "an object with `name` and `version`"))?;
    }
    Ok(ClientContext {
        spec,
        info: SessionInfo {
            revision: spec.revision(),
            capabilities: defined_capabilities(spec, capabilities.to_object()),
            implementation: Some(info.to_object()),
            instructions: None,
        },
        log_level: None,
        home: OnceLock::new(),
    })
}

/// Checks that the capabilities that every revision defines are objects.
fn check_capabilities(capabilities: mcp_exact_wire::ObjectRef<'_>) -> Result<(), Refusal> {
    let known = ["experimental", "roots", "sampling", "elicitation", "tasks"];
    let values = capabilities.find_each(known);
    let mut bad = known
        .iter()
        .zip(values)
        .filter(|(_, value)| value.is_some_and(|value| value.object().is_none()));
    match bad.next() {
        Some((name, _)) => Err(Refusal::InvalidParams(format!(
            "`capabilities.{name}` must be an object"
        ))),
        None => Ok(()),
    }
}

/// Returns the refusal of a parameter that is not of the kind.
fn invalid_params(name: &str, kind: &str) -> Refusal {
    Refusal::InvalidParams(format!("`{name}` must be {kind}"))
}

/// Returns the revision of a session: "If the server supports the requested protocol version, it MUST respond with the
/// same version. Otherwise, the server MUST respond with another protocol version it supports."
fn choose_revision(settings: &ServerSettings, requested: &str) -> Option<&'static RevisionSpec> {
    let mut offered = settings.offer.specs_of_lifecycle(Lifecycle::Initialize);
    let same = settings
        .offer
        .specs_of_lifecycle(Lifecycle::Initialize)
        .find(|spec| spec.id() == requested);
    same.or_else(|| offered.next())
}

/// Returns the refusal of a revision that the server does not support, or of `initialize` if the server offers no
/// revision with handshake.
///
/// The refusal lists the supported revisions, so that the client can report them (2026-07-28, `basic/versioning`).
pub(super) fn unsupported_version(settings: &ServerSettings, requested: &str) -> Refusal {
    Refusal::UnsupportedVersion {
        requested: requested.to_owned(),
        supported: settings.offer.ids(),
    }
}

/// Returns the result of `initialize`.
fn initialize_result(settings: &ServerSettings, spec: &RevisionSpec) -> JsonObject {
    let mut result = JsonObject::from_iter([
        ("protocolVersion", Json::string(spec.id())),
        ("capabilities", settings.capabilities_for(spec).into()),
        ("serverInfo", settings.identity.to_object(spec).into()),
    ]);
    if let Some(instructions) = &settings.instructions {
        result.insert("instructions", Json::string(instructions));
    }
    result
}
