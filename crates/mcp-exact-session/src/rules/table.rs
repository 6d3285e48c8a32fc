//! The rule table: for every method of every revision, its sender, stream, required capability and handler.
//!
//! One row per method, kind and sender. The revision table decides whether a revision has the method, so that a row holds for all
//! revisions that define it. The module [`super`] reads the table.

use mcp_exact_revisions::Side;

use super::{Handler, Kind, Local, Placement, RequiredCapability, Rule, TaskEffect};
use crate::change::ChangeKind;

const fn request(sender: Side, method: &'static str) -> Rule {
    Rule::new(Kind::Request, sender, method)
}

const fn notification(sender: Side, method: &'static str) -> Rule {
    Rule::new(Kind::Notification, sender, method)
}

/// Request that a server embeds in a result of type `input_required` (2026-07-28, `basic/patterns/mrtr`). The required capability
/// is that of the request with the same method.
const fn input_request(method: &'static str) -> Rule {
    Rule::new(Kind::InputRequest, Side::Server, method)
}

use Side::{Client, Server};

/// All rows, sorted by kind, sender and method.
pub(crate) static RULES: &[Rule] = &[
    // Requests of clients.
    request(Client, "completion/complete")
        .repeatable()
        .receiver(RequiredCapability::Completions),
    request(Client, "initialize")
        .sent_by(Local::Endpoint)
        .handled_by(Handler::Initialize),
    request(Client, "logging/setLevel")
        .repeatable()
        .receiver(RequiredCapability::Path(&["logging"]))
        .handled_by(Handler::SetLogLevel),
    request(Client, "ping")
        .repeatable()
        .handled_by(Handler::Ping)
        .allowed_early(),
    request(Client, "prompts/get")
        .repeatable()
        .receiver(RequiredCapability::Path(&["prompts"]))
        .named_by("name")
        .may_require_input(),
    request(Client, "prompts/list")
        .repeatable()
        .receiver(RequiredCapability::Path(&["prompts"]))
        .cached_list(),
    request(Client, "resources/list")
        .repeatable()
        .receiver(RequiredCapability::Path(&["resources"]))
        .cached_list(),
    request(Client, "resources/read")
        .repeatable()
        .receiver(RequiredCapability::Path(&["resources"]))
        .named_by("uri")
        .may_require_input()
        .cached(),
    request(Client, "resources/subscribe")
        .repeatable()
        .receiver(RequiredCapability::Path(&["resources", "subscribe"]))
        .handled_by(Handler::Subscribe),
    request(Client, "resources/templates/list")
        .repeatable()
        .receiver(RequiredCapability::Path(&["resources"]))
        .cached_list(),
    request(Client, "resources/unsubscribe")
        .repeatable()
        .receiver(RequiredCapability::Path(&["resources", "subscribe"]))
        .handled_by(Handler::Unsubscribe),
    request(Client, "server/discover")
        .repeatable()
        .handled_by(Handler::Discover)
        .cached(),
    request(Client, "subscriptions/listen").handled_by(Handler::Listen),
    request(Client, "tasks/cancel")
        .receiver(RequiredCapability::Path(&["tasks", "cancel"]))
        .task(TaskEffect::Status),
    request(Client, "tasks/get")
        .repeatable()
        .receiver(RequiredCapability::Path(&["tasks"]))
        .task(TaskEffect::Status),
    request(Client, "tasks/list")
        .repeatable()
        .receiver(RequiredCapability::Path(&["tasks", "list"])),
    request(Client, "tasks/result")
        .repeatable()
        .receiver(RequiredCapability::Path(&["tasks"]))
        .task(TaskEffect::Result),
    request(Client, "tools/call")
        .receiver(RequiredCapability::Path(&["tools"]))
        .named_by("name")
        .may_require_input()
        .may_become_task(&["tasks", "requests", "tools", "call"])
        .mirrors_params(),
    request(Client, "tools/list")
        .repeatable()
        .receiver(RequiredCapability::Path(&["tools"]))
        .cached_list()
        .lists_tools(),
    // Requests of servers (up to 2025-11-25).
    request(Server, "elicitation/create")
        .receiver(RequiredCapability::Elicitation)
        .may_become_task(&["tasks", "requests", "elicitation", "create"]),
    request(Server, "ping")
        .handled_by(Handler::Ping)
        .allowed_early(),
    request(Server, "roots/list").receiver(RequiredCapability::Path(&["roots"])),
    request(Server, "sampling/createMessage")
        .receiver(RequiredCapability::Sampling)
        .may_become_task(&["tasks", "requests", "sampling", "createMessage"]),
    request(Server, "tasks/cancel")
        .receiver(RequiredCapability::Path(&["tasks", "cancel"]))
        .task(TaskEffect::Status),
    request(Server, "tasks/get")
        .receiver(RequiredCapability::Path(&["tasks"]))
        .task(TaskEffect::Status),
    request(Server, "tasks/list").receiver(RequiredCapability::Path(&["tasks", "list"])),
    request(Server, "tasks/result")
        .receiver(RequiredCapability::Path(&["tasks"]))
        .task(TaskEffect::Result),
    // Notifications of clients.
    notification(Client, "notifications/cancelled")
        .sent_by(Local::Endpoint)
        .handled_by(Handler::Cancelled)
        .allowed_early(),
    notification(Client, "notifications/initialized")
        .sent_by(Local::Endpoint)
        .handled_by(Handler::Initialized)
        .allowed_early(),
    notification(Client, "notifications/progress")
        .sent_by(Local::Endpoint)
        .handled_by(Handler::Progress),
    notification(Client, "notifications/roots/list_changed")
        .sender_needs(RequiredCapability::Path(&["roots", "listChanged"])),
    notification(Client, "notifications/tasks/status").task(TaskEffect::Status),
    // Notifications of servers.
    notification(Server, "notifications/cancelled")
        .sent_by(Local::Endpoint)
        .handled_by(Handler::Cancelled)
        .allowed_early(),
    notification(Server, "notifications/elicitation/complete")
        .handled_by(Handler::ElicitationComplete),
    notification(Server, "notifications/message")
        .sender_needs(RequiredCapability::Path(&["logging"]))
        .taken_undeclared()
        .handled_by(Handler::Log)
        .placed(Placement::Request)
        .allowed_early(),
    notification(Server, "notifications/progress")
        .handled_by(Handler::Progress)
        .placed(Placement::Request),
    notification(Server, "notifications/prompts/list_changed")
        .sender_needs(RequiredCapability::Path(&["prompts", "listChanged"]))
        .handled_by(Handler::Changed(ChangeKind::Prompts))
        .placed(Placement::Subscription),
    notification(Server, "notifications/resources/list_changed")
        .sender_needs(RequiredCapability::Path(&["resources", "listChanged"]))
        .handled_by(Handler::Changed(ChangeKind::Resources))
        .placed(Placement::Subscription),
    notification(Server, "notifications/resources/updated")
        .sender_needs(RequiredCapability::Path(&["resources", "subscribe"]))
        .handled_by(Handler::Changed(ChangeKind::Resource))
        .placed(Placement::Subscription),
    notification(Server, "notifications/subscriptions/acknowledged")
        .sent_by(Local::Endpoint)
        .handled_by(Handler::Acknowledged)
        .placed(Placement::Subscription),
    notification(Server, "notifications/tasks/status")
        .handled_by(Handler::TaskStatus)
        .task(TaskEffect::Status),
    notification(Server, "notifications/tools/list_changed")
        .sender_needs(RequiredCapability::Path(&["tools", "listChanged"]))
        .handled_by(Handler::Changed(ChangeKind::Tools))
        .placed(Placement::Subscription),
    // Requests inside of results (from 2026-07-28 on).
    input_request("elicitation/create").receiver(RequiredCapability::Elicitation),
    input_request("roots/list").receiver(RequiredCapability::Path(&["roots"])),
    input_request("sampling/createMessage").receiver(RequiredCapability::Sampling),
];
