//! Row of the rule table: the subject of a rule, its handler, and its requirements.

use mcp_exact_revisions::Side;

use super::capability::RequiredCapability;
use crate::change::ChangeKind;

/// Kind of message that a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MessageKind {
    Request,
    Notification,
    InputRequest,
}

/// Party that sends a message at the local peer: the endpoint or the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendingParty {
    /// Only the endpoint sends the message, on its own or through a dedicated function.
    Endpoint,
    /// The application and the endpoint may send the message.
    Application,
}

/// Handler of a received message: a function of the endpoint, or the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handler {
    /// The application handles the message, which the endpoint delivers as an event.
    Application,
    Initialize,
    Initialized,
    Ping,
    SetLogLevel,
    Discover,
    Listen,
    /// The application handles the request; a result subscribes the client.
    Subscribe,
    /// The application handles the request; a result ends the subscription.
    Unsubscribe,
    Cancelled,
    Progress,
    Log,
    Changed(ChangeKind),
    Acknowledged,
    ElicitationComplete,
    TaskStatus,
}

/// Stream that carries a notification of a server from 2026-07-28 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    Anywhere,
    /// The stream of the request that the notification is about, which is not a subscription (`server/utilities/logging`,
    /// `basic/utilities/progress`).
    Request,
    /// The stream of a subscription whose filter includes the notification (`basic/patterns/subscriptions`).
    Subscription,
}

/// Requirement that the result of a request states its cache lifetime (2026-07-28, `server/utilities/caching`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CachePolicy {
    Never,
    /// Each result has its own lifetime and scope.
    Single,
    /// All pages of a list have the same scope.
    List,
}

/// Information about tasks that a message carries (2025-11-25, `basic/utilities/tasks`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskEffect {
    None,
    /// The message contains the status of a task.
    Status,
    /// The message contains the result of a task, which ends the task.
    Result,
}

/// Row of the rule table.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(super) kind: MessageKind,
    pub(super) sender: Side,
    pub(crate) method: &'static str,
    pub(super) sending_party: SendingParty,
    pub(crate) handler: Handler,
    pub(super) placement: Placement,
    /// Capability that the receiver must have declared.
    pub(super) receiver_capability: Option<RequiredCapability>,
    /// Capability that the sender must have declared.
    pub(super) sender_capability: Option<RequiredCapability>,
    /// True if a receiver accepts the message although the sender has not declared the capability, because widespread servers
    /// send it without a declaration.
    pub(super) is_accepted_undeclared: bool,
    /// Capability of the receiver without which the request cannot become a task.
    pub(super) task_capability: Option<&'static [&'static str]>,
    /// True if the message may be sent before `notifications/initialized`, and a request before `initialize`.
    pub(crate) is_allowed_early: bool,
    /// Parameter that the HTTP header `Mcp-Name` mirrors.
    pub(crate) name_param: Option<&'static str>,
    /// True if tool parameters are mirrored into headers.
    pub(crate) mirrors_params: bool,
    /// True if the result lists tools.
    pub(crate) lists_tools: bool,
    /// True if a result of type `input_required` may answer the request (`basic/patterns/mrtr`, "Supported Requests").
    pub(crate) may_require_input: bool,
    /// True if the request may be resent although the remote peer may have executed it.
    pub(crate) is_repeatable: bool,
    pub(crate) cache_policy: CachePolicy,
    pub(crate) task_effect: TaskEffect,
}

impl Rule {
    pub(super) const fn new(kind: MessageKind, sender: Side, method: &'static str) -> Self {
        Self {
            kind,
            sender,
            method,
            sending_party: SendingParty::Application,
            handler: Handler::Application,
            placement: Placement::Anywhere,
            receiver_capability: None,
            sender_capability: None,
            is_accepted_undeclared: false,
            task_capability: None,
            is_allowed_early: false,
            name_param: None,
            mirrors_params: false,
            lists_tools: false,
            may_require_input: false,
            is_repeatable: false,
            cache_policy: CachePolicy::Never,
            task_effect: TaskEffect::None,
        }
    }

    pub(super) const fn with_sender_party(mut self, local: SendingParty) -> Self {
        self.sending_party = local;
        self
    }

    pub(super) const fn with_handler(mut self, handler: Handler) -> Self {
        self.handler = handler;
        self
    }

    pub(super) const fn with_placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    pub(super) const fn with_receiver_capability(mut self, need: RequiredCapability) -> Self {
        self.receiver_capability = Some(need);
        self
    }

    pub(super) const fn with_sender_capability(mut self, need: RequiredCapability) -> Self {
        self.sender_capability = Some(need);
        self
    }

    pub(super) const fn accepted_undeclared(mut self) -> Self {
        self.is_accepted_undeclared = true;
        self
    }

    pub(super) const fn with_task_capability(
        mut self,
        capability: &'static [&'static str],
    ) -> Self {
        self.task_capability = Some(capability);
        self
    }

    pub(super) const fn allowed_early(mut self) -> Self {
        self.is_allowed_early = true;
        self
    }

    pub(super) const fn with_name_param(mut self, parameter: &'static str) -> Self {
        self.name_param = Some(parameter);
        self
    }

    pub(super) const fn mirroring_params(mut self) -> Self {
        self.mirrors_params = true;
        self
    }

    pub(super) const fn listing_tools(mut self) -> Self {
        self.lists_tools = true;
        self
    }

    pub(super) const fn requiring_input(mut self) -> Self {
        self.may_require_input = true;
        self
    }

    pub(super) const fn with_repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    pub(super) const fn with_cache(mut self) -> Self {
        self.cache_policy = CachePolicy::Single;
        self
    }

    pub(super) const fn with_list_cache(mut self) -> Self {
        self.cache_policy = CachePolicy::List;
        self
    }

    pub(super) const fn with_task_effect(mut self, effect: TaskEffect) -> Self {
        self.task_effect = effect;
        self
    }
}
