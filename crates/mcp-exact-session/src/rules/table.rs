//! The rule table: for every method of every revision, its sender, stream, required capability and handler.
//!
//! The table has one row per method, kind and sender. A row applies to all revisions that define the method, according to the
//! revision table. The module [`super`] reads the table.

use mcp_exact_revisions::Side;

use super::{Handler, MessageKind, Placement, RequiredCapability, Rule, SendingParty, TaskEffect};
use crate::change::ChangeKind;

/// Creates the table row of a request.
const fn request(sender: Side, method: &'static str) -> Rule {
    Rule::new(MessageKind::Request, sender, method)
}

/// Creates the table row of a notification.
const fn notification(sender: Side, method: &'static str) -> Rule {
    Rule::new(MessageKind::Notification, sender, method)
}

/// Creates the table row of a request that a server embeds in a result of type `input_required` (2026-07-28,
/// `basic/patterns/mrtr`). The required capability is that of the request with the same method.
const fn input_request(method: &'static str) -> Rule {
    Rule::new(MessageKind::InputRequest, Side::Server, method)
}

use Side::{Client, Server};

/// All rows of the rule table, sorted by kind, sender and method.
pub(crate) static RULES: &[Rule] = &[
    // Requests of clients.
    request(Client, "completion/complete")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Completions),
    request(Client, "initialize")
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Initialize),
    request(Client, "logging/setLevel")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["logging"]))
        .with_handler(Handler::SetLogLevel),
    request(Client, "ping")
        .with_repeatable()
        .with_handler(Handler::Ping)
        .allowed_early(),
    request(Client, "prompts/get")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["prompts"]))
        .with_name_param("name")
        .requiring_input(),
    request(Client, "prompts/list")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["prompts"]))
        .with_list_cache(),
    request(Client, "resources/list")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["resources"]))
        .with_list_cache(),
    request(Client, "resources/read")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["resources"]))
        .with_name_param("uri")
        .requiring_input()
        .with_cache(),
    request(Client, "resources/subscribe")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["resources", "subscribe"]))
        .with_handler(Handler::Subscribe),
    request(Client, "resources/templates/list")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["resources"]))
        .with_list_cache(),
    request(Client, "resources/unsubscribe")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["resources", "subscribe"]))
        .with_handler(Handler::Unsubscribe),
    request(Client, "server/discover")
        .with_repeatable()
        .with_handler(Handler::Discover)
        .with_cache(),
    request(Client, "subscriptions/listen").with_handler(Handler::Listen),
    request(Client, "tasks/cancel")
        .with_receiver_capability(RequiredCapability::Path(&["tasks", "cancel"]))
        .with_task_effect(TaskEffect::Status),
    request(Client, "tasks/get")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["tasks"]))
        .with_task_effect(TaskEffect::Status),
    request(Client, "tasks/list")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["tasks", "list"])),
    request(Client, "tasks/result")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["tasks"]))
        .with_task_effect(TaskEffect::Result),
    request(Client, "tools/call")
        .with_receiver_capability(RequiredCapability::Path(&["tools"]))
        .with_name_param("name")
        .requiring_input()
        .with_task_capability(&["tasks", "requests", "tools", "call"])
        .mirroring_params(),
    request(Client, "tools/list")
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["tools"]))
        .with_list_cache()
        .listing_tools(),
    // Requests of servers (up to 2025-11-25).
    request(Server, "elicitation/create")
        .with_receiver_capability(RequiredCapability::Elicitation)
        .with_task_capability(&["tasks", "requests", "elicitation", "create"]),
    request(Server, "ping")
        .with_handler(Handler::Ping)
        .allowed_early(),
    request(Server, "roots/list").with_receiver_capability(RequiredCapability::Path(&["roots"])),
    request(Server, "sampling/createMessage")
        .with_receiver_capability(RequiredCapability::Sampling)
        .with_task_capability(&["tasks", "requests", "sampling", "createMessage"]),
    request(Server, "tasks/cancel")
        .with_receiver_capability(RequiredCapability::Path(&["tasks", "cancel"]))
        .with_task_effect(TaskEffect::Status),
    request(Server, "tasks/get")
        .with_receiver_capability(RequiredCapability::Path(&["tasks"]))
        .with_task_effect(TaskEffect::Status),
    request(Server, "tasks/list")
        .with_receiver_capability(RequiredCapability::Path(&["tasks", "list"])),
    request(Server, "tasks/result")
        .with_receiver_capability(RequiredCapability::Path(&["tasks"]))
        .with_task_effect(TaskEffect::Result),
    // Notifications of clients.
    notification(Client, "notifications/cancelled")
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Cancelled)
        .allowed_early(),
    notification(Client, "notifications/initialized")
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Initialized)
        .allowed_early(),
    notification(Client, "notifications/progress")
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Progress),
    notification(Client, "notifications/roots/list_changed")
        .with_sender_capability(RequiredCapability::Path(&["roots", "listChanged"])),
    notification(Client, "notifications/tasks/status").with_task_effect(TaskEffect::Status),
    // Notifications of servers.
    notification(Server, "notifications/cancelled")
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Cancelled)
        .allowed_early(),
    notification(Server, "notifications/elicitation/complete")
        .with_handler(Handler::ElicitationComplete),
    notification(Server, "notifications/message")
        .with_sender_capability(RequiredCapability::Path(&["logging"]))
        .accepted_undeclared()
        .with_handler(Handler::Log)
        .with_placement(Placement::Request)
        .allowed_early(),
    notification(Server, "notifications/progress")
        .with_handler(Handler::Progress)
        .with_placement(Placement::Request),
    notification(Server, "notifications/prompts/list_changed")
        .with_sender_capability(RequiredCapability::Path(&["prompts", "listChanged"]))
        .with_handler(Handler::Changed(ChangeKind::Prompts))
        .with_placement(Placement::Subscription),
    notification(Server, "notifications/resources/list_changed")
        .with_sender_capability(RequiredCapability::Path(&["resources", "listChanged"]))
        .with_handler(Handler::Changed(ChangeKind::Resources))
        .with_placement(Placement::Subscription),
    notification(Server, "notifications/resources/updated")
        .with_sender_capability(RequiredCapability::Path(&["resources", "subscribe"]))
        .with_handler(Handler::Changed(ChangeKind::Resource))
        .with_placement(Placement::Subscription),
    notification(Server, "notifications/subscriptions/acknowledged")
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Acknowledged)
        .with_placement(Placement::Subscription),
    notification(Server, "notifications/tasks/status")
        .with_handler(Handler::TaskStatus)
        .with_task_effect(TaskEffect::Status),
    notification(Server, "notifications/tools/list_changed")
        .with_sender_capability(RequiredCapability::Path(&["tools", "listChanged"]))
        .with_handler(Handler::Changed(ChangeKind::Tools))
        .with_placement(Placement::Subscription),
    // Requests inside of results (from 2026-07-28 on).
    input_request("elicitation/create").with_receiver_capability(RequiredCapability::Elicitation),
    input_request("roots/list").with_receiver_capability(RequiredCapability::Path(&["roots"])),
    input_request("sampling/createMessage").with_receiver_capability(RequiredCapability::Sampling),
];
