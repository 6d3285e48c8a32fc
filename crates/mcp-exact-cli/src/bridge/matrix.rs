//! Feature matrix for `bridge explain`: features that clients of one revision have with servers of another revision.

use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side};
use mcp_exact_wire::JsonObject;

use crate::text::{Text, Untrusted, text};

/// Feature that revisions may lack, and the side that sends the messages with the feature.
struct Feature {
    /// Function that returns true if a revision defines the feature.
    is_supported: fn(&RevisionSpec) -> bool,
    /// Side that sends messages with the feature.
    sender: Side,
    /// True if the feature occurs in list results, which show whether a server uses the feature.
    is_listed: bool,
    /// Text that describes the loss if the revision of the receiver lacks the feature.
    loss: &'static str,
}

/// All features, in the order of the output.
const FEATURES: [Feature; 15] = [
    listed_feature(RevisionSpec::has_titles, "titles: names are shown instead"),
    listed_feature(RevisionSpec::has_icons, "icons"),
    listed_feature(RevisionSpec::has_tool_annotations, "annotations of tools"),
    server_feature(
        RevisionSpec::has_structured_output,
        "structured results: the text of a result carries their JSON",
    ),
    server_feature(
        RevisionSpec::has_any_structured_content,
        "structured results that are no objects: the text of a result carries their JSON",
    ),
    server_feature(
        RevisionSpec::has_resource_links,
        "links to resources: text has their name and URI",
    ),
    server_feature(
        RevisionSpec::has_audio,
        "audio: an embedded resource carries it",
    ),
    listed_feature(
        RevisionSpec::has_last_modified,
        "times of last modification",
    ),
    server_feature(RevisionSpec::has_progress_message, "messages of progress"),
    listed_feature(
        RevisionSpec::has_cache_hints,
        "how long results may be kept",
    ),
    server_feature(
        RevisionSpec::has_elicitation,
        "elicitation: the server is told that the client cannot ask its user",
    ),
    server_feature(
        RevisionSpec::has_elicitation_modes,
        "elicitation by URL: the server is told that the client has forms alone",
    ),
    server_feature(
        RevisionSpec::has_sampling_tools,
        "tools in sampling: the server is told that the client has none",
    ),
    client_feature(
        RevisionSpec::has_completion_context,
        "the other arguments of a completion",
    ),
    client_feature(
        RevisionSpec::has_implementation_details,
        "description, icons and web page of the client",
    ),
];

/// Creates a feature that occurs in messages of servers.
const fn server_feature(is_supported: fn(&RevisionSpec) -> bool, loss: &'static str) -> Feature {
    Feature {
        is_supported,
        sender: Side::Server,
        is_listed: false,
        loss,
    }
}

/// Creates a feature that occurs in list results of servers.
const fn listed_feature(is_supported: fn(&RevisionSpec) -> bool, loss: &'static str) -> Feature {
    Feature {
        is_listed: true,
        ..server_feature(is_supported, loss)
    }
}

/// Creates a feature that occurs in messages of clients.
const fn client_feature(is_supported: fn(&RevisionSpec) -> bool, loss: &'static str) -> Feature {
    Feature {
        is_supported,
        sender: Side::Client,
        is_listed: false,
        loss,
    }
}

/// Features that work, change or are lost between two revisions.
#[derive(Debug, Default)]
pub struct Matrix {
    /// Prefix of the lines with the name of the server; empty if there is only one server.
    server_name: String,
    /// True if the matrix contains only losses of calls, because losses of tools, prompts and resources are determined
    /// from the lists of the server.
    has_calls_only: bool,
    /// Client methods that work.
    working: Vec<String>,
    /// Descriptions of changes that the bridge makes without a loss.
    changes: Vec<&'static str>,
    /// Descriptions of losses that messages can have.
    pub lost_features: Vec<String>,
}

impl Matrix {
    /// Creates the matrix of a connected server, without methods of capabilities that the server lacks, and without
    /// losses that the lists of the server show.
    pub fn for_server(
        name: &str,
        client: &RevisionSpec,
        server: &RevisionSpec,
        capabilities: &JsonObject,
    ) -> Self {
        let mut matrix = Self::new(client, server);
        matrix.server_name = match name {
            "" => String::new(),
            name => format!("{name}: "),
        };
        let is_supported = |name: &str| capabilities.view().find(name).is_some();
        matrix
            .working
            .retain(|method| capability(method).is_none_or(is_supported));
        let is_listed = |lost: &String| {
            let mut listed = FEATURES.iter().filter(|feature| feature.is_listed);
            listed.any(|feature| feature.loss == lost)
        };
        matrix.lost_features.retain(|lost| !is_listed(lost));
        matrix.has_calls_only = true;
        matrix
    }

    /// Creates the matrix of any server of a revision.
    pub fn new(client: &RevisionSpec, server: &RevisionSpec) -> Self {
        let mut matrix = Self {
            changes: lifecycle_changes(client, server),
            ..Self::default()
        };
        // Tasks are relayed between revisions that both have them, and otherwise not.
        let has_tasks = client.has_tasks() && server.has_tasks();
        for method in client.methods(Side::Client).requests().iter().copied() {
            let is_relayed = has_tasks || !method.starts_with("tasks/");
            if server.sends_request(Side::Client, method) && is_relayed {
                matrix.working.push(method.to_owned());
            }
        }
        if client.has_tasks() && !has_tasks {
            let tasks = "tasks: calls are answered when their work is done";
            matrix.lost_features.push(tasks.to_owned());
        }
        for feature in &FEATURES {
            let (from, to) = match feature.sender {
                Side::Server => (server, client),
                Side::Client => (client, server),
            };
            if (feature.is_supported)(from) && !(feature.is_supported)(to) {
                matrix.lost_features.push(feature.loss.to_owned());
            }
        }
        matrix
    }
}

/// Returns the server capability that a method requires, if any.
fn capability(method: &str) -> Option<&str> {
    let (capability, _) = method.split_once('/')?;
    matches!(
        capability,
        "logging" | "prompts" | "resources" | "tasks" | "tools"
    )
    .then_some(capability)
}

/// Returns descriptions of the changes that the bridge makes because the lifecycles or other conventions of the
/// revisions differ.
fn lifecycle_changes(client: &RevisionSpec, server: &RevisionSpec) -> Vec<&'static str> {
    let mut changes = match (client.lifecycle(), server.lifecycle()) {
        (Lifecycle::Initialize, Lifecycle::Discover) => vec![
            "initialize and ping are answered by the bridge; the server is asked by server/discover",
            "questions of the server come as requests, and their answers go in a repeated call",
            "subscriptions and list changes come from one subscriptions/listen",
            "the level of logs goes with each request",
        ],
        (Lifecycle::Discover, Lifecycle::Initialize) => vec![
            "server/discover is answered by the bridge, which has sessions with the server for each principal",
            "a question of the server ends the call with input_required; the call waits in the bridge for the repeated one",
            "subscriptions/listen becomes a session of its own",
            "the level of logs of each request chooses from all logs",
        ],
        _ => Vec::new(),
    };
    if client.has_batches() != server.has_batches() {
        changes.push(
            "batches are split, and their answers gathered where the client has sent a batch",
        );
    }
    if client.resource_not_found_code() != server.resource_not_found_code() {
        changes.push("the code of the error for a missing resource");
    }
    changes
}

impl Matrix {
    /// Formats the features as lines of text.
    pub fn to_text(&self) -> Text {
        let name = Untrusted(&self.server_name);
        let working = self.working.join(", ");
        let mut lines = text!("  {}works: {}\n", name, Untrusted(&working));
        for change in &self.changes {
            lines.push(&text!("  {}changes: {}\n", name, Untrusted(change)));
        }
        let lost = if self.has_calls_only {
            "calls can lose"
        } else {
            "lost"
        };
        for loss in &self.lost_features {
            lines.push(&text!("  {}{}: {}\n", name, lost, Untrusted(loss)));
        }
        if self.changes.is_empty() && self.lost_features.is_empty() && !self.has_calls_only {
            lines.push(&"  messages pass as they came\n".into());
        }
        lines
    }
}
