//! Configuration of a client, checked once and shared by all its endpoints.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::JsonObject;

use super::{Identity, Offer};
use crate::capabilities::{self, DeclaredNames};
use crate::error::ConfigError;
use crate::extensions::{Extensions, check_names};
use crate::limits::{Limits, RequestTimeout};
use crate::rules::capability;

/// Configuration of a client.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Revisions that it speaks.
    pub offer: Offer,
    /// Identity of the client.
    pub identity: Identity,
    /// Its capabilities, as the newest revision spells them. Towards each revision only what that one defines is declared.
    pub capabilities: JsonObject,
    /// Methods beyond those of the revisions.
    pub extensions: Extensions,
    /// True if results of type `input_required` end their request, and the program repeats it by
    /// [`CallOptions::input`](crate::CallOptions::input): for gateways that hand them through (from 2026-07-28 on).
    pub pass_input_required: bool,
    /// Timeout of the first answer of a server.
    pub handshake_timeout: Duration,
    /// Timeout of a probe: old servers do not answer it (`basic/transports/stdio`, "Backward Compatibility"). Without a
    /// revision of the lifecycle `Initialize` there is nothing to fall back to, and `handshake_timeout` counts.
    pub probe_timeout: Duration,
    /// Timeout of requests whose options name none.
    pub request_timeout: RequestTimeout,
    /// Its limits.
    pub limits: Limits,
}

impl ClientConfig {
    /// Makes a client that speaks every revision and declares nothing.
    pub fn new(identity: Identity) -> Self {
        Self {
            offer: Offer::default(),
            identity,
            capabilities: JsonObject::new(),
            extensions: Extensions::default(),
            pass_input_required: false,
            handshake_timeout: Duration::from_secs(60),
            probe_timeout: Duration::from_secs(5),
            request_timeout: RequestTimeout::default(),
            limits: Limits::default(),
        }
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// [`ConfigError`] if no endpoint can work with it.
    pub fn build(self) -> Result<Arc<ClientSettings>, ConfigError> {
        check_names(&self.capabilities)?;
        check_elicitation(&self.capabilities)?;
        self.offer.check()?;
        Ok(Arc::new(ClientSettings {
            declared: DeclaredNames::of(&self.capabilities),
            config: self,
        }))
    }
}

/// Configuration of a client that was checked; any number of endpoints share it.
#[derive(Debug)]
pub struct ClientSettings {
    config: ClientConfig,
    pub(crate) declared: DeclaredNames,
}

impl Deref for ClientSettings {
    type Target = ClientConfig;

    fn deref(&self) -> &ClientConfig {
        &self.config
    }
}

impl ClientSettings {
    /// Capabilities that are declared towards a revision.
    pub(crate) fn capabilities_towards(&self, spec: &RevisionSpec) -> JsonObject {
        let mut declared = capability::towards(spec, &self.capabilities);
        self.extensions.declare(spec, &mut declared);
        declared
    }
}

/// "Clients declaring the `elicitation` capability MUST support at least one mode"; an empty object means `form`
/// (`client/elicitation`, "Capabilities").
fn check_elicitation(capabilities: &JsonObject) -> Result<(), ConfigError> {
    let Some(declared) = capabilities.view().find("elicitation") else {
        return Ok(());
    };
    let modes = declared.object().map(|modes| modes.to_object());
    let able = |modes: &JsonObject| {
        let able = |mode: &str| capabilities::is_declared(modes, &[mode]);
        modes.is_empty() || able("form") || able("url")
    };
    if modes.as_ref().is_some_and(able) {
        Ok(())
    } else {
        Err(ConfigError::NoElicitationMode)
    }
}
