//! Configuration of a client, checked once and shared by all its endpoints.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_convert::Tolerance;
use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::JsonObject;

use super::{Identity, Offer};
use crate::capabilities::{self, DeclaredNames};
use crate::error::ConfigError;
use crate::extensions::{Extensions, check_names};
use crate::limits::{Limits, RequestTimeout};
use crate::rules::capability;

/// Configuration of a client, which [`build`](Self::build) checks.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Revisions that the client offers.
    pub offer: Offer,
    /// Identity of the client.
    pub identity: Identity,
    /// Capabilities of the client, in the form of the newest revision. In each revision, only the capabilities that the revision
    /// defines are declared.
    pub capabilities: JsonObject,
    /// Extensions, and vendor-specific methods that no revision defines.
    pub extensions: Extensions,
    /// True if a result of type `input_required` ends its request, and the application repeats the request with
    /// [`CallOptions::input`](crate::CallOptions::input) (from 2026-07-28 on).
    ///
    /// Gateways that forward such results use this setting.
    pub pass_input_required: bool,
    /// Time limit of the negotiation, over all its requests.
    pub handshake_timeout: Duration,
    /// Timeout of a probe, which servers of older revisions may not answer (`basic/transports/stdio`, "Backward
    /// Compatibility"), at most half of `handshake_timeout`.
    ///
    /// If no revision of the lifecycle `Initialize` is offered, no fallback exists, and `handshake_timeout` applies.
    pub probe_timeout: Duration,
    /// Timeout of requests whose options do not specify a timeout.
    pub request_timeout: RequestTimeout,
    /// Policy for what the server sends: [`Tolerance::Strict`] by default, because repairs are the choice of an application.
    pub tolerance: Tolerance,
    /// Limits of each endpoint. A client accepts larger messages than a server, 32 MiB by default.
    pub limits: Limits,
}

impl ClientConfig {
    /// Creates a configuration that offers every revision and declares no capabilities.
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
            tolerance: Tolerance::Strict,
            limits: Limits {
                // Results hold whole files and pictures.
                message_bytes: 32 << 20,
                ..Limits::default()
            },
        }
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// [`ConfigError`] if the configuration is invalid.
    pub fn build(self) -> Result<Arc<ClientSettings>, ConfigError> {
        check_names(&self.capabilities)?;
        check_elicitation(&self.capabilities)?;
        self.offer.check()?;
        Ok(Arc::new(ClientSettings {
            declared_capabilities: DeclaredNames::from_object(&self.capabilities),
            config: self,
        }))
    }
}

/// Checked configuration of a client; any number of endpoints can share one instance.
#[derive(Debug)]
pub struct ClientSettings {
    /// The checked configuration.
    config: ClientConfig,
    /// Precomputed lookup of the declared capabilities.
    pub(crate) declared_capabilities: DeclaredNames,
}

impl Deref for ClientSettings {
    type Target = ClientConfig;

    fn deref(&self) -> &ClientConfig {
        &self.config
    }
}

impl ClientSettings {
    /// Returns the capabilities that are declared in a revision.
    pub(crate) fn capabilities_for(&self, spec: &RevisionSpec) -> JsonObject {
        let mut declared = capability::capabilities_for(spec, &self.capabilities);
        self.extensions.declare(spec, &mut declared);
        declared
    }
}

/// Checks that the capability `elicitation` names a known mode: "Clients declaring the `elicitation` capability MUST support at
/// least one mode"; an empty object means `form` (`client/elicitation`, "Capabilities").
fn check_elicitation(capabilities: &JsonObject) -> Result<(), ConfigError> {
    let Some(declared) = capabilities.view().find("elicitation") else {
        return Ok(());
    };
    let modes = declared.object().map(|modes| modes.to_object());
    let has_known_mode = |modes: &JsonObject| {
        let is_known_mode = |mode: &str| capabilities::is_declared(modes, &[mode]);
        modes.is_empty() || is_known_mode("form") || is_known_mode("url")
    };
    if modes.as_ref().is_some_and(has_known_mode) {
        Ok(())
    } else {
        Err(ConfigError::NoElicitationMode)
    }
}
