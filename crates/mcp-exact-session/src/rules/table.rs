//! The rule table: for every method of every revision, its sender, stream, required capability and handler.
//!
//! The table has one row per method, kind and sender. A row applies to all revisions that define the method, according to the
//! revision table. The module [`super`] reads the table.

use mcp_exact_revisions::{MethodId, Side};

use super::{Handler, MessageKind, Placement, RequiredCapability, Rule, SendingParty, TaskEffect};
use crate::change::ChangeKind;

/// Creates the table row of a request.
const fn request(sender: Side, method: MethodId) -> Rule {
    Rule::new(MessageKind::Request, sender, method)
}

/// Creates the table row of a notification.
const fn notification(sender: Side, method: MethodId) -> Rule {
    Rule::new(MessageKind::Notification, sender, method)
}

/// Creates the table row of a request that a server embeds in a result of type `input_required` (2026-07-28,
/// `basic/patterns/mrtr`). The required capability is that of the request with the same method.
const fn input_request(method: MethodId) -> Rule {
    Rule::new(MessageKind::InputRequest, Side::Server, method)
}

use MethodId::*;
use Side::{Client, Server};

/// All rows of the rule table, sorted by kind, sender and method.
pub(crate) static RULES: &[Rule] = &[
    // Requests of clients.
    request(Client, CompletionComplete)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Completions),
    request(Client, Initialize)
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Initialize),
    request(Client, LoggingSetLevel)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["logging"]))
        .with_handler(Handler::SetLogLevel),
    request(Client, Ping)
        .with_repeatable()
        .with_handler(Handler::Ping)
        .allowed_early(),
    request(Client, PromptsGet)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["prompts"]))
        .with_name_param("name")
        .requiring_input(),
    request(Client, PromptsList)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["prompts"]))
        .with_list_cache(),
    request(Client, ResourcesList)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["resources"]))
        .with_list_cache(),
    request(Client, ResourcesRead)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["resources"]))
        .with_name_param("uri")
        .requiring_input()
        .with_cache(),
    request(Client, ResourcesSubscribe)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["resources", "subscribe"]))
        .with_handler(Handler::Subscribe),
    request(Client, ResourcesTemplatesList)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["resources"]))
        .with_list_cache(),
    request(Client, ResourcesUnsubscribe)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["resources", "subscribe"]))
        .with_handler(Handler::Unsubscribe),
    request(Client, ServerDiscover)
        .with_repeatable()
        .with_handler(Handler::Discover)
        .with_cache(),
    request(Client, SubscriptionsListen).with_handler(Handler::Listen),
    request(Client, TasksCancel)
        .with_receiver_capability(RequiredCapability::Path(&["tasks", "cancel"]))
        .with_task_effect(TaskEffect::Status),
    request(Client, TasksGet)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["tasks"]))
        .with_task_effect(TaskEffect::Status),
    request(Client, TasksList)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["tasks", "list"])),
    request(Client, TasksResult)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["tasks"]))
        .with_task_effect(TaskEffect::Result),
    request(Client, ToolsCall)
        .with_receiver_capability(RequiredCapability::Path(&["tools"]))
        .with_name_param("name")
        .requiring_input()
        .with_task_capability(&["tasks", "requests", "tools", "call"])
        .mirroring_params(),
    request(Client, ToolsList)
        .with_repeatable()
        .with_receiver_capability(RequiredCapability::Path(&["tools"]))
        .with_list_cache()
        .listing_tools(),
    // Requests of servers (up to 2025-11-25).
    request(Server, ElicitationCreate)
        .with_receiver_capability(RequiredCapability::Elicitation)
        .with_task_capability(&["tasks", "requests", "elicitation", "create"]),
    request(Server, Ping)
        .with_handler(Handler::Ping)
        .allowed_early(),
    request(Server, RootsList).with_receiver_capability(RequiredCapability::Path(&["roots"])),
    request(Server, SamplingCreateMessage)
        .with_receiver_capability(RequiredCapability::Sampling)
        .with_task_capability(&["tasks", "requests", "sampling", "createMessage"]),
    request(Server, TasksCancel)
        .with_receiver_capability(RequiredCapability::Path(&["tasks", "cancel"]))
        .with_task_effect(TaskEffect::Status),
    request(Server, TasksGet)
        .with_receiver_capability(RequiredCapability::Path(&["tasks"]))
        .with_task_effect(TaskEffect::Status),
    request(Server, TasksList)
        .with_receiver_capability(RequiredCapability::Path(&["tasks", "list"])),
    request(Server, TasksResult)
        .with_receiver_capability(RequiredCapability::Path(&["tasks"]))
        .with_task_effect(TaskEffect::Result),
    // Notifications of clients.
    notification(Client, NotificationsCancelled)
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Cancelled)
        .allowed_early(),
    notification(Client, NotificationsInitialized)
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Initialized)
        .allowed_early(),
    notification(Client, NotificationsProgress)
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Progress),
    notification(Client, NotificationsRootsListChanged)
        .with_sender_capability(RequiredCapability::Path(&["roots", "listChanged"])),
    notification(Client, NotificationsTasksStatus).with_task_effect(TaskEffect::Status),
    // Notifications of servers.
    notification(Server, NotificationsCancelled)
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Cancelled)
        .allowed_early(),
    notification(Server, NotificationsElicitationComplete)
        .with_handler(Handler::ElicitationComplete),
    notification(Server, NotificationsMessage)
        .with_sender_capability(RequiredCapability::Path(&["logging"]))
        .accepted_undeclared()
        .with_handler(Handler::Log)
        .with_placement(Placement::Request)
        .allowed_early(),
    notification(Server, NotificationsProgress)
        .with_handler(Handler::Progress)
        .with_placement(Placement::Request),
    notification(Server, NotificationsPromptsListChanged)
        .with_sender_capability(RequiredCapability::Path(&["prompts", "listChanged"]))
        .with_handler(Handler::Changed(ChangeKind::Prompts))
        .with_placement(Placement::Subscription),
    notification(Server, NotificationsResourcesListChanged)
        .with_sender_capability(RequiredCapability::Path(&["resources", "listChanged"]))
        .with_handler(Handler::Changed(ChangeKind::Resources))
        .with_placement(Placement::Subscription),
    notification(Server, NotificationsResourcesUpdated)
        .with_sender_capability(RequiredCapability::Path(&["resources", "subscribe"]))
        .with_handler(Handler::Changed(ChangeKind::Resource))
        .with_placement(Placement::Subscription),
    notification(Server, NotificationsSubscriptionsAcknowledged)
        .with_sender_party(SendingParty::Endpoint)
        .with_handler(Handler::Acknowledged)
        .with_placement(Placement::Subscription),
    notification(Server, NotificationsTasksStatus)
        .with_handler(Handler::TaskStatus)
        .with_task_effect(TaskEffect::Status),
    notification(Server, NotificationsToolsListChanged)
        .with_sender_capability(RequiredCapability::Path(&["tools", "listChanged"]))
        .with_handler(Handler::Changed(ChangeKind::Tools))
        .with_placement(Placement::Subscription),
    // Requests inside of results (from 2026-07-28 on).
    input_request(ElicitationCreate).with_receiver_capability(RequiredCapability::Elicitation),
    input_request(RootsList).with_receiver_capability(RequiredCapability::Path(&["roots"])),
    input_request(SamplingCreateMessage).with_receiver_capability(RequiredCapability::Sampling),
];
