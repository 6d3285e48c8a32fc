//! Row of the rule table: the subject of a rule, its handler, and its requirements.

use mcp_exact_revisions::{MethodId, Side};

use super::capability::RequiredCapability;
use crate::change::ChangeKind;

impl From<MessageKind> for mcp_exact_convert::MessageKind {
    fn from(kind: MessageKind) -> Self {
        match kind {
            MessageKind::Request | MessageKind::InputRequest => Self::Request,
            MessageKind::Notification => Self::Notification,
        }
    }
}

/// Kind of the message to which a rule applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MessageKind {
    /// A request that is sent as a separate message.
    Request,
    /// A notification.
    Notification,
    /// A request that a server embeds in a result of type `input_required`.
    InputRequest,
}

/// Party at the local peer that sends a message: the endpoint or the application.
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
    /// The endpoint starts the session.
    Initialize,
    /// The endpoint ends the handshake.
    Initialized,
    /// The endpoint answers with an empty result.
    Ping,
    /// The endpoint sets the minimum level of log messages.
    SetLogLevel,
    /// The endpoint answers `server/discover`.
    Discover,
    /// The endpoint starts a subscription.
    Listen,
    /// The application handles the request; if it replies with a result, the endpoint records the subscription.
    Subscribe,
    /// The application handles the request; if it replies with a result, the endpoint removes the subscription.
    Unsubscribe,
    /// The endpoint cancels the request that the notification names.
    Cancelled,
    /// The endpoint assigns the progress to the request that the token names.
    Progress,
    /// The endpoint decodes the log message.
    Log,
    /// The endpoint decodes the change.
    Changed(ChangeKind),
    /// The endpoint records the acknowledgement of a subscription.
    Acknowledged,
    /// The endpoint checks that the elicitation belongs to the session.
    ElicitationComplete,
    /// The endpoint records the status of a task.
    TaskStatus,
}

/// Stream that carries a notification of a server from 2026-07-28 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placement {
    /// The notification may be sent on any stream.
    Anywhere,
    /// The stream of the request to which the notification belongs; the request must not be a subscription
    /// (`server/utilities/logging`, `basic/utilities/progress`).
    Request,
    /// The stream of a subscription whose filter includes the notification (`basic/patterns/subscriptions`).
    Subscription,
}

/// Requirement on the cache lifetime and scope of a request's results (2026-07-28, `server/utilities/caching`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CachePolicy {
    /// Results have no lifetime and scope.
    Never,
    /// Each result has its own lifetime and scope.
    Single,
    /// All pages of a list have the same scope.
    List,
}

/// Information about tasks that a message carries (2025-11-25, `basic/utilities/tasks`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskEffect {
    /// The message contains no information about tasks.
    None,
    /// The message contains the status of a task.
    Status,
    /// The message contains the result of a task, which ends the task.
    Result,
}

/// Row of the rule table.
#[derive(Debug)]
pub(crate) struct Rule {
    /// Kind of the message: request, notification or input request.
    pub(super) kind: MessageKind,
    /// Role that sends the message.
    pub(super) sender: Side,
    /// Method of the message.
    pub(super) id: MethodId,
    /// Name of the method.
    pub(crate) method: &'static str,
    /// Party at the sender that may send the message.
    pub(super) sending_party: SendingParty,
    /// Handler of the message at the receiver.
    pub(crate) handler: Handler,
    /// Stream that may carry the message, if the message is a notification of a server.
    pub(super) placement: Placement,
    /// Capability that the receiver must have declared.
    pub(super) receiver_capability: Option<RequiredCapability>,
    /// Capability that the sender must have declared.
    pub(super) sender_capability: Option<RequiredCapability>,
    /// True if a receiver accepts the message although the sender has not declared the capability, because widely used
    /// servers send it without the declaration.
    pub(super) is_accepted_undeclared: bool,
    /// Capability that the receiver must have declared if the request has the param `task`.
    pub(super) task_capability: Option<&'static [&'static str]>,
    /// True if a notification or request may be sent before `notifications/initialized`, and a request may be received
    /// before `initialize`.
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
    /// Requirement on cache lifetime and scope of results.
    pub(crate) cache_policy: CachePolicy,
    /// Information about tasks in the message.
    pub(crate) task_effect: TaskEffect,
}

impl Rule {
    /// Creates a row without requirements, whose message the application sends and handles.
    ///
    /// # Panics
    /// At compile time, if the method has no name.
    pub(super) const fn new(kind: MessageKind, sender: Side, id: MethodId) -> Self {
        Self {
            kind,
            sender,
            id,
            method: id.name().expect("a row has a known method"),
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

    /// Sets the party of the local peer that sends the message: the endpoint or the application.
    pub(super) const fn with_sender_party(mut self, local: SendingParty) -> Self {
        self.sending_party = local;
        self
    }

    /// Sets the handler of the received message.
    pub(super) const fn with_handler(mut self, handler: Handler) -> Self {
        self.handler = handler;
        self
    }

    /// Sets the stream that carries the notification (from 2026-07-28 on).
    pub(super) const fn with_placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Requires a capability of the receiver.
    pub(super) const fn with_receiver_capability(mut self, need: RequiredCapability) -> Self {
        self.receiver_capability = Some(need);
        self
    }

    /// Requires a capability of the sender.
    pub(super) const fn with_sender_capability(mut self, need: RequiredCapability) -> Self {
        self.sender_capability = Some(need);
        self
    }

    /// Accepts the message even if the sender has not declared the capability.
    pub(super) const fn accepted_undeclared(mut self) -> Self {
        self.is_accepted_undeclared = true;
        self
    }

    /// Sets the capability that the receiver must declare for the request to become a task.
    pub(super) const fn with_task_capability(
        mut self,
        capability: &'static [&'static str],
    ) -> Self {
        self.task_capability = Some(capability);
        self
    }

    /// Allows the message before the end of the handshake.
    pub(super) const fn allowed_early(mut self) -> Self {
        self.is_allowed_early = true;
        self
    }

    /// Sets the parameter that the HTTP header `Mcp-Name` mirrors.
    pub(super) const fn with_name_param(mut self, parameter: &'static str) -> Self {
        self.name_param = Some(parameter);
        self
    }

    /// Records that the headers of the request mirror tool parameters.
    pub(super) const fn mirroring_params(mut self) -> Self {
        self.mirrors_params = true;
        self
    }

    /// Records that the result of the request lists tools.
    pub(super) const fn listing_tools(mut self) -> Self {
        self.lists_tools = true;
        self
    }

    /// Allows a result of type `input_required`.
    pub(super) const fn requiring_input(mut self) -> Self {
        self.may_require_input = true;
        self
    }

    /// Allows the request to be resent although the remote peer may have executed it.
    pub(super) const fn with_repeatable(mut self) -> Self {
        self.is_repeatable = true;
        self
    }

    /// Requires that each result has a cache lifetime and scope.
    pub(super) const fn with_cache(mut self) -> Self {
        self.cache_policy = CachePolicy::Single;
        self
    }

    /// Requires that all pages of a list have the same cache scope.
    pub(super) const fn with_list_cache(mut self) -> Self {
        self.cache_policy = CachePolicy::List;
        self
    }

    /// Sets the information about tasks that the message contains.
    pub(super) const fn with_task_effect(mut self, effect: TaskEffect) -> Self {
        self.task_effect = effect;
        self
    }
}
