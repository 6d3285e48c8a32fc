//! Settings of a server: its description, limits and capabilities.

use std::time::Duration;

use super::ServerBuilder;
use crate::definition::Icon;
use crate::protocol::{CacheHint, Level, Limits, Offer, RawJson, Revision, Tolerance};
use crate::seal::KeyRing;
use crate::server::TaskService;
use crate::task::Tasks;

impl ServerBuilder {
    /// Declares notifications of a vendor or extension that handlers send ([`Cx::notify`](crate::Cx::notify)), such as
    /// `com.example/indexed`. A client accepts the notification only if it also declares the method
    /// ([`Connect::on_notification`](crate::Connect::on_notification)).
    pub fn notifications(mut self, methods: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let methods = methods.into_iter().map(Into::into);
        self.config.extensions.notifications.extend(methods);
        self
    }

    /// Omits from lists the tools, resources, templates and prompts whose [`scope`](crate::Tool::scope) the caller's token
    /// does not grant. By default, lists contain them, so that a client can request the scope. In both cases, a
    /// request without the scope is answered with status 403 and `insufficient_scope`, which names the required
    /// scopes ("Runtime Insufficient Scope Errors"). Over stdio, which has no tokens, everything is listed.
    #[cfg(feature = "http-server")]
    pub fn hide_without_scope(mut self) -> Self {
        self.visibility = self.visibility.with_scopes();
        self
    }

    /// Sets the display name of the server (from 2025-06-18 on).
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.config.identity.title = Some(title.into());
        self
    }

    /// Sets a member of the server's description of itself, such as `websiteUrl` or `description` (from 2025-11-25 on).
    pub fn identity(mut self, name: &str, value: impl Into<RawJson>) -> Self {
        self.config.identity.additional_members.insert(name, value);
        self
    }

    /// Adds an icon of the server (from 2025-11-25 on).
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// Sets the instructions: how a model should use the server.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.config.instructions = Some(instructions.into());
        self
    }

    /// Sets the supported revisions, the most preferred one first. The default is every compiled-in revision. The values of
    /// [`Revision`] are those of [`revisions`](crate::revisions): `revisions().filter(|known| known.as_str() >= "2025-06-18")`.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.config.offer.revisions = revisions.into_iter().collect();
        self
    }

    /// Sets the oldest supported revision.
    pub fn minimum_revision(mut self, revision: Revision) -> Self {
        self.config.offer = Offer {
            oldest: Some(revision),
            ..self.config.offer
        };
        self
    }

    /// Sets the maximum number of entries per page of a list, at least 1; the default is 100.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = entries.max(1);
        self
    }

    /// Sets the cache hint of results that do not set their own (from 2026-07-28 on). By default, such results must not
    /// be cached.
    pub fn cache(mut self, hint: CacheHint) -> Self {
        self.config.cache = hint;
        self
    }

    /// Sets the time limit of handlers. The time that a handler waits for the answer to an input request does not
    /// count. Tasks are limited by their lifetime instead ([`Tasks::lifetime`]).
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Declares a capability that does not follow from the registered definitions, for [`raw`](Self::raw) and for
    /// extensions, in the form of the newest revision.
    pub fn capability(mut self, name: &str, value: impl Into<RawJson>) -> Self {
        self.additional_capabilities.insert(name, value);
        self
    }

    /// Sets the options of tasks and declares the extension `io.modelcontextprotocol/tasks`. By default, a server with
    /// tools that run as [tasks](crate::Tool::task) keeps the tasks in memory.
    pub fn tasks(mut self, tasks: Tasks) -> Self {
        self.tasks = Some(<dyn TaskService>::new(tasks));
        self
    }

    /// Sets the policy for messages of clients that violate their schema. The default, [`Tolerance::Lenient`],
    /// repairs a message if its meaning is clear, such as `null` for an absent member.
    pub fn tolerance(mut self, tolerance: Tolerance) -> Self {
        self.config.tolerance = tolerance;
        self
    }

    /// Sets the limits of each connection.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// Sets the keys that protect `requestState` (from 2026-07-28 on). Processes that serve the same clients must share
    /// these keys. By default, each server creates a random key.
    pub fn keys(mut self, keys: KeyRing) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sets the lifetime of `requestState`; the default is ten minutes.
    pub fn state_lifetime(mut self, lifetime: Duration) -> Self {
        self.config.state_lifetime = lifetime;
        self
    }

    /// Sets the minimum level of the log messages that are sent until the client chooses a level (up to 2025-11-25).
    pub fn log_level(mut self, level: Level) -> Self {
        self.config.log_level = level;
        self
    }

    /// Disables the capability `logging`; [`Cx::log`](crate::Cx::log) then sends nothing.
    pub fn without_logging(mut self) -> Self {
        self.declares_logging = false;
        self
    }

    /// Declares the capability `tools`, for a server whose tools are inserted while it runs.
    pub fn declare_tools(self) -> Self {
        self.declare_list("tools")
    }

    /// Declares the capability `resources`, for a server whose resources are inserted while it runs.
    pub fn declare_resources(self) -> Self {
        self.declare_list("resources")
    }

    /// Declares the capability `prompts`, for a server whose prompts are inserted while it runs.
    pub fn declare_prompts(self) -> Self {
        self.declare_list("prompts")
    }

    /// Declares the capability of a list.
    pub(super) fn declare_list(mut self, capability: &'static str) -> Self {
        self.declared_lists.push(capability);
        self
    }
}
