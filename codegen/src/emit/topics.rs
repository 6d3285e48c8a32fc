//! Assigns definitions to topics: the file of a crate that contains a definition, and the heading on the front page
//! that lists it.
//!
//! Schemas do not group their definitions. A table in this module names the topics and matches definitions by the words
//! of their names. A definition that no row matches belongs to the topic of its method, or else to the only topic whose
//! definitions use the definition, or else to `common`.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::Ir;

/// How a row of the table matches a name.
enum NamePattern {
    /// The name equals the text.
    Equals(&'static str),
    /// The name starts with the text.
    StartsWith(&'static str),
    /// The name ends with the text.
    EndsWith(&'static str),
    /// The name contains the text.
    Contains(&'static str),
}

use NamePattern::{Contains, EndsWith, Equals, StartsWith};

/// Topic of definitions that no other rule assigns.
const DEFAULT_TOPIC: &str = "common";

/// Topics with the names of their definitions; the first matching row is used.
const TOPICS: &[(&str, &[NamePattern])] = &[
    ("jsonrpc", &[StartsWith("JSONRPC"), Equals("RequestId")]),
    (
        "errors",
        &[
            EndsWith("Error"),
            EndsWith("ErrorObject"),
            EndsWith("ErrorData"),
        ],
    ),
    (
        "lifecycle",
        &[
            Contains("Capabilities"),
            StartsWith("Initialize"),
            StartsWith("Discover"),
            StartsWith("Ping"),
            Equals("Implementation"),
        ],
    ),
    ("input", &[StartsWith("Input")]),
    ("tasks", &[Contains("Task")]),
    ("subscriptions", &[StartsWith("Subscription")]),
    (
        "content",
        &[
            EndsWith("Content"),
            Equals("ContentBlock"),
            Equals("ResourceLink"),
            Equals("EmbeddedResource"),
            StartsWith("Annotat"),
            Equals("Role"),
        ],
    ),
    (
        "messages",
        &[
            StartsWith("Client"),
            StartsWith("Server"),
            StartsWith("Paginated"),
            Equals("Cursor"),
            Equals("EmptyResult"),
            Equals("Notification"),
            StartsWith("NotificationMeta"),
            Equals("NotificationParams"),
            Equals("Request"),
            StartsWith("RequestMeta"),
            StartsWith("RequestParams"),
            StartsWith("Result"),
            Equals("MetaObject"),
            StartsWith("Cache"),
        ],
    ),
    ("tools", &[Contains("Tool")]),
    ("prompts", &[Contains("Prompt")]),
    ("resources", &[Contains("Resource"), Contains("ubscribe")]),
    (
        "elicitation",
        &[Contains("Elicit"), Contains("Schema"), Contains("Select")],
    ),
    (
        "sampling",
        &[
            Contains("Sampling"),
            Contains("CreateMessage"),
            StartsWith("Model"),
        ],
    ),
    ("roots", &[Contains("Root")]),
    ("logging", &[Contains("Logging"), Contains("SetLevel")]),
    ("completion", &[StartsWith("Complet")]),
    ("progress", &[Contains("Progress"), Contains("Cancelled")]),
];

/// Topics of methods by the first segment of the method, unless both are equal.
const METHOD_TOPICS: &[(&str, &str)] = &[
    ("elicitation", "elicitation"),
    ("initialize", "lifecycle"),
    ("message", "logging"),
    ("ping", "lifecycle"),
    ("server", "lifecycle"),
];

/// Returns the topic of the first row that matches the name of a definition; `None` if no row matches.
fn topic_of_name(name: &str) -> Option<&'static str> {
    let fits = |word: &NamePattern| match word {
        Equals(word) => name == *word,
        StartsWith(word) => name.starts_with(word),
        EndsWith(word) => name.ends_with(word),
        Contains(word) => name.contains(word),
    };
    let mut rows = TOPICS.iter();
    let found = rows.find(|(_, words)| words.iter().any(fits));
    found.map(|(topic, _)| *topic)
}

/// Returns the topic of a method by its first segment.
fn topic_of_method(method: &str) -> Option<&'static str> {
    let method = method.strip_prefix("notifications/").unwrap_or(method);
    let first = method.split('/').next().unwrap_or(method);
    let named = METHOD_TOPICS.iter().find(|(prefix, _)| *prefix == first);
    let topic = named.map_or(first, |(_, topic)| topic);
    let known = TOPICS.iter().map(|(known, _)| *known);
    known.into_iter().find(|known| *known == topic)
}

/// Returns the topic of each definition.
pub fn assign_topics(ir: &Ir) -> BTreeMap<&str, &'static str> {
    let mut topics = BTreeMap::new();
    for definition in &ir.definitions {
        let name = definition.name.as_str();
        let mut methods = ir.methods.iter().filter(|m| m.definition == name);
        let by_method = || methods.next().and_then(|m| topic_of_method(&m.method));
        if let Some(topic) = topic_of_name(name).or_else(by_method) {
            topics.insert(name, topic);
        }
    }
    // Each iteration assigns the definitions that definitions of the previous iteration use.
    loop {
        let mut users: BTreeMap<&str, BTreeSet<&'static str>> = BTreeMap::new();
        for definition in &ir.definitions {
            if let Some(topic) = topics.get(definition.name.as_str()) {
                for used in definition.shape.references() {
                    users.entry(used).or_default().insert(topic);
                }
            }
        }
        let new: Vec<(&str, &'static str)> = users
            .into_iter()
            .filter(|(name, topics_of)| topics_of.len() == 1 && !topics.contains_key(name))
            .filter_map(|(name, topics_of)| Some((name, *topics_of.first()?)))
            .collect();
        if new.is_empty() {
            break;
        }
        topics.extend(new);
    }
    for definition in &ir.definitions {
        topics.entry(&definition.name).or_insert(DEFAULT_TOPIC);
    }
    topics
}
