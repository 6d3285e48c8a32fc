//! Assigns definitions to topics: the file of a crate that contains a definition, and the heading on the front page
//! that lists it.
//!
//! Schemas have no groups. A table in this module names the topics and matches definitions by the words of their
//! names. A definition that no row matches belongs to the topic of its method, to the only topic whose definitions use
//! it, or to `common`.

use std::collections::{BTreeMap, BTreeSet};

use crate::ir::Ir;

/// How a row of the table matches a name.
enum Word {
    Is(&'static str),
    Begins(&'static str),
    Ends(&'static str),
    Has(&'static str),
}

use Word::{Begins, Ends, Has, Is};

/// Topic of definitions that no other rule assigns.
const DEFAULT_TOPIC: &str = "common";

/// Topics with the names of their definitions; the first matching row is used.
const TABLE: &[(&str, &[Word])] = &[
    ("jsonrpc", &[Begins("JSONRPC"), Is("RequestId")]),
    (
        "errors",
        &[Ends("Error"), Ends("ErrorObject"), Ends("ErrorData")],
    ),
    (
        "lifecycle",
        &[
            Has("Capabilities"),
            Begins("Initialize"),
            Begins("Discover"),
            Begins("Ping"),
            Is("Implementation"),
        ],
    ),
    ("input", &[Begins("Input")]),
    ("tasks", &[Has("Task")]),
    ("subscriptions", &[Begins("Subscription")]),
    (
        "content",
        &[
            Ends("Content"),
            Is("ContentBlock"),
            Is("ResourceLink"),
            Is("EmbeddedResource"),
            Begins("Annotat"),
            Is("Role"),
        ],
    ),
    (
        "messages",
        &[
            Begins("Client"),
            Begins("Server"),
            Begins("Paginated"),
            Is("Cursor"),
            Is("EmptyResult"),
            Is("Notification"),
            Begins("NotificationMeta"),
            Is("NotificationParams"),
            Is("Request"),
            Begins("RequestMeta"),
            Begins("RequestParams"),
            Begins("Result"),
            Is("MetaObject"),
            Begins("Cache"),
        ],
    ),
    ("tools", &[Has("Tool")]),
    ("prompts", &[Has("Prompt")]),
    ("resources", &[Has("Resource"), Has("ubscribe")]),
    (
        "elicitation",
        &[Has("Elicit"), Has("Schema"), Has("Select")],
    ),
    (
        "sampling",
        &[Has("Sampling"), Has("CreateMessage"), Begins("Model")],
    ),
    ("roots", &[Has("Root")]),
    ("logging", &[Has("Logging"), Has("SetLevel")]),
    ("completion", &[Begins("Complet")]),
    ("progress", &[Has("Progress"), Has("Cancelled")]),
];

/// Topics of methods by the first segment of the method, unless both are equal.
const METHODS: &[(&str, &str)] = &[
    ("elicitation", "elicitation"),
    ("initialize", "lifecycle"),
    ("message", "logging"),
    ("ping", "lifecycle"),
    ("server", "lifecycle"),
];

fn by_words(name: &str) -> Option<&'static str> {
    let fits = |word: &Word| match word {
        Is(word) => name == *word,
        Begins(word) => name.starts_with(word),
        Ends(word) => name.ends_with(word),
        Has(word) => name.contains(word),
    };
    let mut rows = TABLE.iter();
    let found = rows.find(|(_, words)| words.iter().any(fits));
    found.map(|(topic, _)| *topic)
}

fn by_method(method: &str) -> Option<&'static str> {
    let method = method.strip_prefix("notifications/").unwrap_or(method);
    let first = method.split('/').next().unwrap_or(method);
    let named = METHODS.iter().find(|(prefix, _)| *prefix == first);
    let topic = named.map_or(first, |(_, topic)| topic);
    let known = TABLE.iter().map(|(known, _)| *known);
    known.into_iter().find(|known| *known == topic)
}

/// Returns the topic of each definition.
pub fn topics(ir: &Ir) -> BTreeMap<&str, &'static str> {
    let mut topics = BTreeMap::new();
    for definition in &ir.definitions {
        let name = definition.name.as_str();
        let mut methods = ir.methods.iter().filter(|m| m.definition == name);
        let by_method = || methods.next().and_then(|m| by_method(&m.method));
        if let Some(topic) = by_words(name).or_else(by_method) {
            topics.insert(name, topic);
        }
    }
    // Each iteration assigns what the definitions of the previous one use.
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
