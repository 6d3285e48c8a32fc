//! Session settings of a client, and options of one request.

use std::time::Duration;

use mcp_exact_session as session;
use session::ClientConfig;

use crate::protocol::{
    Identity, JsonObject, Level, Limits, MessageBudget, Revision, Tolerance, TraceContext,
    extension,
};

/// Session settings of a client, collected by [`Connect`](super::Connect).
#[derive(Debug, Clone)]
pub(in crate::client) struct Settings(pub(super) ClientConfig);

impl Settings {
    pub(in crate::client) fn new(identity: Identity) -> Self {
        let mut config = ClientConfig::new(identity);
        config.tolerance = Tolerance::Lenient;
        Self(config)
    }

    pub(in crate::client) fn set_identity(&mut self, identity: Identity) {
        self.0.identity = identity;
    }

    pub(in crate::client) fn set_revisions(&mut self, revisions: Vec<Revision>) {
        self.0.offer.revisions = revisions;
    }

    pub(in crate::client) fn set_minimum_revision(&mut self, revision: Revision) {
        self.0.offer.oldest = Some(revision);
    }

    pub(in crate::client) fn set_connect_timeout(&mut self, limit: Duration) {
        self.0.handshake_timeout = limit;
    }

    pub(in crate::client) fn set_message_bytes(&mut self, size: usize) {
        self.0.limits.message_bytes = size;
    }

    pub(in crate::client) fn set_message_budget(&mut self, budget: MessageBudget) {
        self.0.limits.message_budget = budget;
    }

    pub(in crate::client) fn set_idle_timeout(&mut self, limit: Duration) {
        self.0.request_timeout.idle = limit;
    }

    /// Adds methods that the client may send although no revision defines them.
    pub(in crate::client) fn add_methods(&mut self, methods: impl Iterator<Item = String>) {
        self.0.extensions.requests.extend(methods);
    }

    /// Adds notifications that no revision defines, which the client may send and accepts.
    pub(in crate::client) fn add_notifications(&mut self, methods: impl Iterator<Item = String>) {
        self.0.extensions.notifications.extend(methods);
    }

    /// Declares the tasks extension; later calls have no effect.
    pub(in crate::client) fn add_tasks(&mut self) {
        extension::declare(&mut self.0.extensions, crate::protocol::tasks_extension());
    }

    /// Returns the extensions and vendor methods.
    pub(in crate::client) fn extensions(&mut self) -> &mut session::Extensions {
        &mut self.0.extensions
    }

    pub(in crate::client) fn set_limits(&mut self, limits: Limits) {
        self.0.limits = limits;
    }

    pub(in crate::client) fn set_tolerance(&mut self, tolerance: Tolerance) {
        self.0.tolerance = tolerance;
    }

    pub(in crate::client) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(in crate::client) fn set_capabilities(&mut self, capabilities: JsonObject) {
        self.0.capabilities = capabilities;
    }
}

/// Options of one request.
#[derive(Debug, Clone, Default)]
pub(in crate::client) struct RequestOptions {
    /// Maximum time without a message about the request; `None` for the default of the connection.
    pub(in crate::client) idle_timeout: Option<Duration>,
    /// Time limit that progress does not extend; `None` for the default of the connection.
    pub(in crate::client) total_timeout: Option<Duration>,
    /// Minimum level of the requested log messages.
    pub(in crate::client) log_level: Option<Level>,
    /// Trace context that is sent with the request.
    pub(in crate::client) trace: Option<TraceContext>,
    /// Definition of the called tool, if the application allows the client to repeat the call.
    pub(in crate::client) repeats_tool: Option<JsonObject>,
}
