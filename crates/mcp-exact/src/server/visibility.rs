//! Visibility of tools, resources and prompts for a caller: one decision for lists, calls, completions, tasks and
//! subscriptions.
//!
//! A rule decides by the caller and the definition; without a rule, everything is visible but the tools of pages to clients that show
//! none ([MCP Apps](crate::apps)).

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "http-server")]
use super::scopes::has_scope;
use crate::definition::{Prompt, Resource, ResourceTemplate, Tool};
use crate::link::Request;
use crate::panics::catch_panic;
use crate::protocol::{JsonObject, Principal, Revision};

/// Sender of a request, for visibility rules.
#[derive(Clone, Copy)]
pub struct Caller<'r>(&'r Request);

impl<'r> Caller<'r> {
    pub(crate) fn new(request: &'r Request) -> Self {
        Self(request)
    }

    /// Returns the authenticated principal; `None` for anonymous callers.
    pub fn principal(&self) -> Option<&'r Principal> {
        self.0.principal()
    }

    /// Returns the claims of the request's access token; `None` without a resource server.
    #[cfg(feature = "oauth-server")]
    pub fn access(&self) -> Option<&'r mcp_exact_auth::server::Access> {
        self.0.access()
    }

    /// Returns true if the request's token grants all of these space-separated scopes. Without authentication, as over stdio,
    /// nothing is granted.
    #[cfg(feature = "http-server")]
    pub fn has_scope(&self, scopes: &str) -> bool {
        super::scopes::are_granted(self.0, scopes) == Some(true)
    }

    /// Returns a header of the HTTP request, by its name in any case.
    pub fn header(&self, name: &str) -> Option<&'r str> {
        self.0.header(name)
    }

    /// Returns the client's description of itself, which is not authenticated.
    pub fn client_info(&self) -> Option<&'r JsonObject> {
        self.0.client_info()
    }

    /// Returns true if the client shows pages ([MCP Apps](crate::apps)). Clients without pages do not see tools that are for pages
    /// alone, whatever the rules say.
    pub fn client_supports_ui(&self) -> bool {
        crate::apps::is_supported_by(self.0.client_capabilities())
    }

    /// Returns the revision of the request.
    pub fn revision(&self) -> Revision {
        self.0.revision()
    }
}

impl fmt::Debug for Caller<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("principal", &self.principal())
            .finish_non_exhaustive()
    }
}

/// Definition to which a visibility rule is applied.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum ListedDefinition<'d> {
    /// A tool.
    Tool(&'d Tool),
    /// A resource.
    Resource(&'d Resource),
    /// A resource template.
    Template(&'d ResourceTemplate),
    /// A prompt.
    Prompt(&'d Prompt),
}

impl<'d> ListedDefinition<'d> {
    /// Returns the name.
    pub fn name(&self) -> &'d str {
        match self {
            Self::Tool(tool) => tool.name(),
            Self::Resource(resource) => resource.name(),
            Self::Template(template) => template.name(),
            Self::Prompt(prompt) => prompt.name(),
        }
    }

    /// Returns the OAuth scopes that the definition requires, separated by spaces.
    pub fn scope(&self) -> Option<&'d str> {
        match self {
            Self::Tool(tool) => tool.scope_label(),
            Self::Resource(resource) => resource.scope_label(),
            Self::Template(template) => template.scope_label(),
            Self::Prompt(prompt) => prompt.scope_label(),
        }
    }
}

/// Function that decides whether a caller may see a definition.
type VisibilityRule = dyn Fn(Caller<'_>, ListedDefinition<'_>) -> bool + Send + Sync;

/// Combination of all visibility rules of a server; `None` without rules.
#[derive(Clone, Default)]
pub(super) struct Visibility(Option<Arc<VisibilityRule>>);

impl Visibility {
    /// Creates the visibility with one rule.
    pub(super) fn from_rule(
        rule: impl Fn(Caller<'_>, ListedDefinition<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(rule)))
    }

    /// Adds a rule; a definition is visible if all rules allow it.
    pub(super) fn with_rule(
        self,
        rule: impl Fn(Caller<'_>, ListedDefinition<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        match self.0 {
            None => Self::from_rule(rule),
            Some(first) => {
                Self::from_rule(move |caller, listed| first(caller, listed) && rule(caller, listed))
            }
        }
    }

    /// Adds the rule that hides what the caller's token has no scope for.
    #[cfg(feature = "http-server")]
    pub(super) fn with_scopes(self) -> Self {
        self.with_rule(|caller, listed| has_scope(caller.0, listed.scope()))
    }

    pub(super) fn has_rules(&self) -> bool {
        self.0.is_some()
    }

    /// Returns true if the sender of a request may see a definition.
    pub(super) fn is_visible(&self, request: &Request, listed: ListedDefinition<'_>) -> bool {
        let caller = Caller::new(request);
        // "Host MUST NOT include tools in the agent's tool list when their visibility does not include "model"" (MCP Apps,
        // "Visibility"): a client that has not declared the extension cannot know that.
        if let ListedDefinition::Tool(tool) = listed
            && !tool.is_for_models()
            && !caller.client_supports_ui()
        {
            return false;
        }
        let rule = self.0.as_ref();
        rule.is_none_or(|rule| rule(caller, listed))
    }
}

/// Evaluates a visibility rule outside of a request; if the rule panics, the definition is hidden.
pub(crate) fn call_rule(question: impl FnOnce() -> bool) -> bool {
    catch_panic(question).unwrap_or_else(|message| {
        tracing::error!(%message, "a rule of visibility panicked");
        false
    })
}
