//! Row of the rule table: the subject of a rule, its handler, and its requirements.

use mcp_exact_revisions::Side;

use super::capability::RequiredCapability;
use crate::change::ChangeKind;

/// Kind of message that a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Request,
    Notification,
    InputRequest,
}

/// Sender of a message on the sending side: the endpoint or the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Local {
    /// Only the endpoint sends the message, on its own or through a dedicated function.
    Endpoint,
    /// The application may send the message, and the endpoint may, too.
    Program,
}

/// Handler of a message on the receiving side: the endpoint or the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Handler {
    /// The application handles the message, which the endpoint delivers as an event.
    Program,
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
pub(crate) enum Cached {
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
    pub(super) kind: Kind,
    pub(super) sender: Side,
    pub(crate) method: &'static str,
    pub(super) sent_by: Local,
    pub(crate) handler: Handler,
    pub(super) placement: Placement,
    /// Capability that the receiver must have declared.
    pub(super) receiver: Option<RequiredCapability>,
    /// Capability that the sender must have declared.
    pub(super) sender_needs: Option<RequiredCapability>,
    /// True if a receiver accepts the message although the sender has not declared the capability, because widespread servers
    /// send it without a declaration.
    pub(super) taken_undeclared: bool,
    /// Capability of the receiver without which the request cannot become a task.
    pub(super) may_become_task: Option<&'static [&'static str]>,
    /// True if the message may be sent before `notifications/initialized`, and a request before `initialize`.
    pub(crate) early: bool,
    /// Parameter that the HTTP header `Mcp-Name` mirrors.
    pub(crate) named_by: Option<&'static str>,
    /// True if tool parameters are mirrored into headers.
    pub(crate) mirrors_params: bool,
    /// True if the result lists tools.
    pub(crate) lists_tools: bool,
    /// True if a result of type `input_required` may answer the request (`basic/patterns/mrtr`, "Supported Requests").
    pub(crate) may_require_input: bool,
    /// True if the request may be resent although the remote peer may have executed it.
    pub(crate) repeatable: bool,
    pub(crate) cached: Cached,
    pub(crate) task: TaskEffect,
}

impl Rule {
    pub(super) const fn new(kind: Kind, sender: Side, method: &'static str) -> Self {
        Self {
            kind,
            sender,
            method,
            sent_by: Local::Program,
            handler: Handler::Program,
            placement: Placement::Anywhere,
            receiver: None,
            sender_needs: None,
            taken_undeclared: false,
            may_become_task: None,
            early: false,
            named_by: None,
            mirrors_params: false,
            lists_tools: false,
            may_require_input: false,
            repeatable: false,
            cached: Cached::Never,
            task: TaskEffect::None,
        }
    }

    pub(super) const fn sent_by(mut self, local: Local) -> Self {
        self.sent_by = local;
        self
    }

    pub(super) const fn handled_by(mut self, handler: Handler) -> Self {
        self.handler = handler;
        self
    }

    pub(super) const fn placed(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    pub(super) const fn receiver(mut self, need: RequiredCapability) -> Self {
        self.receiver = Some(need);
        self
    }

    pub(super) const fn sender_needs(mut self, need: RequiredCapability) -> Self {
        self.sender_needs = Some(need);
        self
    }

    pub(super) const fn taken_undeclared(mut self) -> Self {
        self.taken_undeclared = true;
        self
    }

    pub(super) const fn may_become_task(mut self, capability: &'static [&'static str]) -> Self {
        self.may_become_task = Some(capability);
        self
    }

    pub(super) const fn allowed_early(mut self) -> Self {
        self.early = true;
        self
    }

    pub(super) const fn named_by(mut self, parameter: &'static str) -> Self {
        self.named_by = Some(parameter);
        self
    }

    pub(super) const fn mirrors_params(mut self) -> Self {
        self.mirrors_params = true;
        self
    }

    pub(super) const fn lists_tools(mut self) -> Self {
        self.lists_tools = true;
        self
    }

    pub(super) const fn may_require_input(mut self) -> Self {
        self.may_require_input = true;
        self
    }

    pub(super) const fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }

    pub(super) const fn cached(mut self) -> Self {
        self.cached = Cached::Single;
        self
    }

    pub(super) const fn cached_list(mut self) -> Self {
        self.cached = Cached::List;
        self
    }

    pub(super) const fn task(mut self, effect: TaskEffect) -> Self {
        self.task = effect;
        self
    }
}
