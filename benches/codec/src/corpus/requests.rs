//! Messages of the corpus: requests and notifications of clients and servers, and a batch.

use super::node::{Node, object, strings};
use super::prose::{code, sentences};
use super::{Draft, notification, request};
use crate::entry::Side::{Client, Server};

/// Returns all requests, notifications and batches.
pub(super) fn drafts() -> Vec<Draft> {
    let mut drafts = from_client();
    drafts.extend(from_server());
    drafts.push(batch());
    drafts
}

/// Returns the requests and notifications of the client.
fn from_client() -> Vec<Draft> {
    let cursor = object([
        ("_meta", object([("progressToken", "list-3".into())])),
        ("cursor", "eyJwYWdlIjoyfQ==".into()),
    ]);
    let cancelled = object([
        ("requestId", 41.into()),
        ("reason", "the user closed the window".into()),
    ]);
    let completion = object([
        (
            "ref",
            object([
                ("type", "ref/prompt".into()),
                ("name", "review_change".into()),
            ]),
        ),
        (
            "argument",
            object([("name", "language".into()), ("value", "py".into())]),
        ),
        (
            "context",
            object([("arguments", object([("framework", "flask".into())]))]),
        ),
    ]);
    vec![
        Draft::request("ping", Client, 1, "ping", None),
        Draft::request("initialize", Client, 0, "initialize", Some(initialize())),
        Draft::notification("initialized", Client, "notifications/initialized", None),
        Draft::request("tools-list", Client, 3, "tools/list", Some(cursor)),
        Draft::request("call-small", Client, 7, "tools/call", Some(small_call())),
        Draft::request("call-100k", Client, 8, "tools/call", Some(large_call())).bulky(),
        Draft::request(
            "completion",
            Client,
            12,
            "completion/complete",
            Some(completion),
        ),
        Draft::request(
            "set-level",
            Client,
            13,
            "logging/setLevel",
            Some(object([("level", "warning".into())])),
        ),
        Draft::notification(
            "cancelled",
            Client,
            "notifications/cancelled",
            Some(cancelled),
        ),
    ]
}

/// Returns the requests and notifications of the server.
fn from_server() -> Vec<Draft> {
    let progress = object([
        ("progressToken", "index-7".into()),
        ("progress", 42.5.into()),
        ("total", 100.into()),
        ("message", "indexed 1,700 of 4,000 files".into()),
    ]);
    let log = object([
        ("level", "error".into()),
        ("logger", "database".into()),
        (
            "data",
            object([
                ("error", "connection lost".into()),
                ("attempt", 3.into()),
                (
                    "details",
                    object([("host", "localhost".into()), ("port", 5432.into())]),
                ),
            ]),
        ),
    ]);
    vec![
        Draft::notification("progress", Server, "notifications/progress", Some(progress)),
        Draft::notification("logging", Server, "notifications/message", Some(log)),
        Draft::request(
            "sampling-request",
            Server,
            21,
            "sampling/createMessage",
            Some(sampling()),
        ),
        Draft::request("roots-request", Server, 22, "roots/list", None),
        Draft::request(
            "elicitation-request",
            Server,
            23,
            "elicitation/create",
            Some(elicitation()),
        ),
    ]
}

/// Returns the params of the request `initialize`.
fn initialize() -> Node {
    object([
        ("protocolVersion", "2025-06-18".into()),
        (
            "capabilities",
            object([
                ("roots", object([("listChanged", true.into())])),
                ("sampling", object([])),
                ("elicitation", object([])),
            ]),
        ),
        (
            "clientInfo",
            object([
                ("name", "example-client".into()),
                ("title", "Example Client".into()),
                ("version", "1.4.2".into()),
            ]),
        ),
    ])
}

/// Returns the params of a `tools/call` with small arguments.
fn small_call() -> Node {
    object([
        ("_meta", object([("progressToken", 7.into())])),
        ("name", "search_file".into()),
        (
            "arguments",
            object([
                ("path", "src/lib.rs".into()),
                ("query", "fn main\\b".into()),
                (
                    "filter",
                    object([
                        ("state", "open".into()),
                        ("labels", strings(&["bug", "parser"])),
                    ]),
                ),
                ("limit", 50.into()),
                ("threshold", 0.25.into()),
                ("recursive", true.into()),
            ]),
        ),
    ])
}

/// Returns the params of a `tools/call` with large arguments, which edit many files.
fn large_call() -> Node {
    let edits: Vec<Node> = (0..80)
        .map(|index| {
            object([
                ("path", format!("src/module_{index}/mod.rs").into()),
                ("start", (index * 7).into()),
                ("end", (index * 7 + 5).into()),
                (
                    "text",
                    code(u64::from(index.unsigned_abs()) + 500, 1_100).into(),
                ),
                ("flags", strings(&["format", "check"])),
            ])
        })
        .collect();
    let arguments = object([
        ("message", sentences(9, 200).into()),
        ("edits", edits.into()),
    ]);
    object([("name", "update_file".into()), ("arguments", arguments)])
}

/// Returns the params of a sampling request.
fn sampling() -> Node {
    let message = |role: &str, seed, len| {
        object([
            ("role", role.into()),
            (
                "content",
                object([
                    ("type", "text".into()),
                    ("text", sentences(seed, len).into()),
                ]),
            ),
        ])
    };
    object([
        (
            "messages",
            vec![
                message("user", 61, 900),
                message("assistant", 62, 1_500),
                message("user", 63, 300),
            ]
            .into(),
        ),
        (
            "modelPreferences",
            object([
                ("hints", vec![object([("name", "small".into())])].into()),
                ("costPriority", 0.3.into()),
                ("speedPriority", 0.8.into()),
                ("intelligencePriority", 0.5.into()),
            ]),
        ),
        ("systemPrompt", sentences(64, 400).into()),
        ("includeContext", "thisServer".into()),
        ("temperature", 0.7.into()),
        ("maxTokens", 1024.into()),
        ("stopSequences", strings(&["END", "\n\n"])),
        ("metadata", object([("trace", "4bf92f3577b34da6".into())])),
    ])
}

/// Returns the params of an elicitation request.
fn elicitation() -> Node {
    object([
        ("message", "Which branch should the change go to?".into()),
        (
            "requestedSchema",
            object([
                ("type", "object".into()),
                (
                    "properties",
                    object([
                        (
                            "branch",
                            object([
                                ("type", "string".into()),
                                ("title", "Branch".into()),
                                ("description", "A branch that exists".into()),
                                ("minLength", 1.into()),
                                ("maxLength", 80.into()),
                            ]),
                        ),
                        (
                            "draft",
                            object([("type", "boolean".into()), ("default", false.into())]),
                        ),
                        (
                            "reviewers",
                            object([
                                ("type", "integer".into()),
                                ("minimum", 0.into()),
                                ("maximum", 5.into()),
                            ]),
                        ),
                        (
                            "priority",
                            object([
                                ("type", "string".into()),
                                ("enum", strings(&["low", "normal", "high"])),
                                ("enumNames", strings(&["Low", "Normal", "High"])),
                            ]),
                        ),
                    ]),
                ),
                ("required", strings(&["branch"])),
            ]),
        ),
    ])
}

/// Returns a batch of fifty client messages: calls, lists, pings and notifications.
fn batch() -> Draft {
    let messages: Vec<Node> = (0..50)
        .map(|index| match index % 10 {
            3 => request(index, "ping", None),
            5 => request(
                index,
                "resources/read",
                Some(object([("uri", format!("file:///src/{index}.rs").into())])),
            ),
            7 => notification(
                "notifications/progress",
                Some(object([
                    ("progressToken", index.into()),
                    ("progress", 0.5.into()),
                ])),
            ),
            _ => request(index, "tools/call", Some(small_call())),
        })
        .collect();
    Draft {
        batch: true,
        ..Draft::new("batch-50", Client, messages.into())
    }
}
