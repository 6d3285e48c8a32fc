//! Feature matrix for `bridge explain`: what clients of one revision receive from servers of another one.

use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side};
use mcp_exact_wire::JsonObject;

/// A feature that a revision may lack, and the side that sends it.
struct Feature {
    has: fn(&RevisionSpec) -> bool,
    sender: Side,
    /// True if lists show the feature.
    is_listed: bool,
    /// Description of the loss if the receiver's revision lacks the feature.
    loss: &'static str,
}

const FEATURES: [Feature; 15] = [
    listed(RevisionSpec::has_titles, "titles: names are shown instead"),
    listed(RevisionSpec::has_icons, "icons"),
    listed(RevisionSpec::has_tool_annotations, "annotations of tools"),
    server(
        RevisionSpec::has_structured_output,
        "structured results: the text of a result carries their JSON",
    ),
    server(
        RevisionSpec::has_any_structured_content,
        "structured results that are no objects: the text of a result carries their JSON",
    ),
    server(
        RevisionSpec::has_resource_links,
        "links to resources: text has their name and URI",
    ),
    server(
        RevisionSpec::has_audio,
        "audio: an embedded resource carries it",
    ),
    listed(
        RevisionSpec::has_last_modified,
        "times of last modification",
    ),
    server(RevisionSpec::has_progress_message, "messages of progress"),
    listed(
        RevisionSpec::has_cache_hints,
        "how long results may be kept",
    ),
    server(
        RevisionSpec::has_elicitation,
        "elicitation: the server is told that the client cannot ask its user",
    ),
    server(
        RevisionSpec::has_elicitation_modes,
        "elicitation by URL: the server is told that the client has forms alone",
    ),
    server(
        RevisionSpec::has_sampling_tools,
        "tools in sampling: the server is told that the client has none",
    ),
    client(
        RevisionSpec::has_completion_context,
        "the other arguments of a completion",
    ),
    client(
        RevisionSpec::has_implementation_details,
        "description, icons and web page of the client",
    ),
];

const fn server(has: fn(&RevisionSpec) -> bool, loss: &'static str) -> Feature {
    Feature {
        has,
        sender: Side::Server,
        is_listed: false,
        loss,
    }
}

const fn listed(has: fn(&RevisionSpec) -> bool, loss: &'static str) -> Feature {
    Feature {
        is_listed: true,
        ..server(has, loss)
    }
}

const fn client(has: fn(&RevisionSpec) -> bool, loss: &'static str) -> Feature {
    Feature {
        has,
        sender: Side::Client,
        is_listed: false,
        loss,
    }
}

/// Features that work, change or are lost between two revisions.
#[derive(Debug, Default)]
pub struct Matrix {
    /// Name of the server that the lines are about; empty for the only one.
    about: String,
    /// True if the matrix covers calls only, because losses of tools, prompts and resources are read from the lists of the server.
    is_of_calls: bool,
    works: Vec<String>,
    changes: Vec<&'static str>,
    pub lost: Vec<String>,
}

impl Matrix {
    /// Creates the matrix of a server that was connected to: methods of capabilities that the server lacks are left out, and
    /// losses that its lists show.
    pub fn of_server(
        name: &str,
        client: &RevisionSpec,
        server: &RevisionSpec,
        capabilities: &JsonObject,
    ) -> Self {
        let mut matrix = Self::new(client, server);
        matrix.about = match name {
            "" => String::new(),
            name => format!("{name}: "),
        };
        let has = |name: &str| capabilities.view().find(name).is_some();
        matrix
            .works
            .retain(|method| capability(method).is_none_or(has));
        let is_listed = |lost: &String| {
            let mut listed = FEATURES.iter().filter(|feature| feature.is_listed);
            listed.any(|feature| feature.loss == lost)
        };
        matrix.lost.retain(|lost| !is_listed(lost));
        matrix.is_of_calls = true;
        matrix
    }

    /// Creates the matrix of all servers of a revision.
    pub fn new(client: &RevisionSpec, server: &RevisionSpec) -> Self {
        let mut matrix = Self {
            changes: changes(client, server),
            ..Self::default()
        };
        let of = |spec: &'static [&'static str]| spec.iter().copied();
        for method in of(client.methods(Side::Client).requests()) {
            if server.sends_request(Side::Client, method) && !method.starts_with("tasks/") {
                matrix.works.push(method.to_owned());
            }
        }
        if client.has_tasks() {
            // With a server that has tasks, too: the gateway relays none.
            let tasks = "tasks: calls are answered when their work is done";
            matrix.lost.push(tasks.to_owned());
        }
        for feature in &FEATURES {
            let (from, to) = match feature.sender {
                Side::Server => (server, client),
                Side::Client => (client, server),
            };
            if (feature.has)(from) && !(feature.has)(to) {
                matrix.lost.push(feature.loss.to_owned());
            }
        }
        matrix
    }
}

/// Returns the capability that a server declares for a method, if the method needs one.
fn capability(method: &str) -> Option<&str> {
    let (capability, _) = method.split_once('/')?;
    matches!(capability, "logging" | "prompts" | "resources" | "tools").then_some(capability)
}

/// Returns the changes that the bridge makes between the lifecycles or transports.
fn changes(client: &RevisionSpec, server: &RevisionSpec) -> Vec<&'static str> {
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

impl std::fmt::Display for Matrix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { about, .. } = self;
        writeln!(f, "  {about}works: {}", self.works.join(", "))?;
        for change in &self.changes {
            writeln!(f, "  {about}changes: {change}")?;
        }
        let lost = if self.is_of_calls {
            "calls can lose"
        } else {
            "lost"
        };
        for loss in &self.lost {
            writeln!(f, "  {about}{lost}: {loss}")?;
        }
        if self.changes.is_empty() && self.lost.is_empty() && !self.is_of_calls {
            writeln!(f, "  messages pass as they came")?;
        }
        Ok(())
    }
}
