//! Messages of the corpus: results of clients and servers, and an error.

use super::node::{Node, object, strings};
use super::prose::{base64, code, multilingual, sentences};
use super::{Draft, MANY_TOOLS, tools};
use crate::entry::{Layout, Side};

/// Size of the text in the largest results, in bytes.
const MEGABYTE: usize = 1_000_000;

/// Returns all results and the error.
pub(super) fn drafts() -> Vec<Draft> {
    let mut drafts = about_tools();
    drafts.extend(about_the_rest());
    drafts.extend(from_client());
    drafts
}

/// Returns tool lists, results of tool calls, results of `initialize` and `ping`, and an error.
fn about_tools() -> Vec<Draft> {
    let call = |name, result| Draft::result(name, 7, "tools/call", result);
    let failed = object([
        (
            "content",
            vec![text("The path does not exist: src/main.rs".into())].into(),
        ),
        ("isError", true.into()),
    ]);
    let picture = object([
        ("type", "image".into()),
        ("data", base64(71, MEGABYTE).into()),
        ("mimeType", "image/png".into()),
    ]);
    vec![
        Draft::result("empty-result", 12, "ping", object([])),
        Draft::result("initialize-result", 0, "initialize", initialize_result()),
        Draft::result("tools-1", 3, "tools/list", tools::list(1)),
        Draft::result("tools-20", 3, "tools/list", tools::list(20)).bulky(),
        Draft::result("tools-200", 3, "tools/list", tools::list(MANY_TOOLS)).bulky(),
        call(
            "result-text",
            object([("content", vec![text(sentences(41, 300))].into())]),
        ),
        call("result-failed", failed),
        call(
            "result-50-blocks",
            object([("content", blocks(50).into()), ("isError", false.into())]),
        ),
        call(
            "result-image-1m",
            object([("content", vec![picture].into())]),
        )
        .bulky(),
        call(
            "result-text-1m",
            object([("content", vec![text(code(72, MEGABYTE))].into())]),
        )
        .bulky(),
        call("result-structured", structured_result()).bulky(),
        error(),
    ]
}

/// Returns results of the server about resources, prompts and completions.
fn about_the_rest() -> Vec<Draft> {
    let read = |name, contents| {
        Draft::result(
            name,
            9,
            "resources/read",
            object([("contents", vec![contents].into())]),
        )
        .bulky()
    };
    let page = object([
        ("uri", "file:///docs/guide.md".into()),
        ("mimeType", "text/markdown".into()),
        ("text", multilingual(51, 20_000).into()),
    ]);
    let archive = object([
        ("uri", "file:///build/archive.zip".into()),
        ("mimeType", "application/zip".into()),
        ("blob", base64(52, 200_000).into()),
    ]);
    let values: Vec<Node> = (0..100)
        .map(|index| format!("python-3.{index}").into())
        .collect();
    let completion = object([
        ("values", values.into()),
        ("total", 240.into()),
        ("hasMore", true.into()),
    ]);
    vec![
        Draft::result("resources-100", 4, "resources/list", resources()),
        Draft::result("templates-10", 5, "resources/templates/list", templates()),
        read("resource-text", page),
        read("resource-blob", archive),
        Draft::result("prompts-20", 6, "prompts/list", prompts()),
        Draft::result("prompt-get", 10, "prompts/get", prompt()),
        Draft::result(
            "completion-result",
            12,
            "completion/complete",
            object([("completion", completion)]),
        ),
    ]
}

/// Returns results of the client.
fn from_client() -> Vec<Draft> {
    let sampled = object([
        ("role", "assistant".into()),
        ("content", text(sentences(81, 1_200))),
        ("model", "example-model-2".into()),
        ("stopReason", "endTurn".into()),
    ]);
    let root = |name: &str| {
        object([
            ("uri", format!("file:///projects/{name}").into()),
            ("name", name.into()),
        ])
    };
    let roots = object([(
        "roots",
        vec![root("website"), root("parser"), root("notes")].into(),
    )]);
    let answer = object([
        ("action", "accept".into()),
        (
            "content",
            object([
                ("branch", "main".into()),
                ("draft", false.into()),
                ("reviewers", 2.into()),
            ]),
        ),
    ]);
    vec![
        Draft::result("sampling-result", 21, "sampling/createMessage", sampled).by_client(),
        Draft::result("roots-result", 22, "roots/list", roots).by_client(),
        Draft::result("elicitation-result", 23, "elicitation/create", answer).by_client(),
    ]
}

/// Returns a JSON-RPC error.
fn error() -> Draft {
    let error = object([
        ("code", (-32602).into()),
        ("message", "Unknown tool: invalid_tool_name".into()),
        (
            "data",
            object([
                ("known", strings(&["search_file", "read_file"])),
                ("retry", false.into()),
            ]),
        ),
    ]);
    let node = object([
        ("jsonrpc", "2.0".into()),
        ("id", 7.into()),
        ("error", error),
    ]);
    Draft::new("error", Side::Server, node)
}

/// Returns the result of `initialize` as a JSON value.
fn initialize_result() -> Node {
    let changes = || object([("listChanged", true.into())]);
    object([
        ("protocolVersion", "2025-06-18".into()),
        (
            "capabilities",
            object([
                ("logging", object([])),
                ("completions", object([])),
                ("prompts", changes()),
                (
                    "resources",
                    object([("subscribe", true.into()), ("listChanged", true.into())]),
                ),
                ("tools", changes()),
            ]),
        ),
        (
            "serverInfo",
            object([
                ("name", "example-server".into()),
                ("title", "Example Server".into()),
                ("version", "2.0.1".into()),
            ]),
        ),
        ("instructions", sentences(42, 500).into()),
    ])
}

/// Returns a text content block.
fn text(text: String) -> Node {
    object([("type", "text".into()), ("text", text.into())])
}

/// Returns `count` content blocks of all five types, some with annotations.
fn blocks(count: u64) -> Vec<Node> {
    let annotations = || {
        object([
            ("audience", strings(&["user", "assistant"])),
            ("priority", 0.9.into()),
            ("lastModified", "2025-06-18T12:00:00Z".into()),
        ])
    };
    (0..count)
        .map(|seed| match seed % 5 {
            0 => text(sentences(seed + 100, 240)).with("annotations", annotations()),
            1 => object([
                ("type", "image".into()),
                ("data", base64(seed, 1_600).into()),
                ("mimeType", "image/png".into()),
            ]),
            2 => object([
                ("type", "resource_link".into()),
                ("uri", format!("file:///src/{seed}.rs").into()),
                ("name", format!("{seed}.rs").into()),
                ("description", sentences(seed + 100, 60).into()),
                ("mimeType", "text/x-rust".into()),
            ]),
            3 => object([
                ("type", "resource".into()),
                (
                    "resource",
                    object([
                        ("uri", format!("file:///logs/{seed}.txt").into()),
                        ("mimeType", "text/plain".into()),
                        ("text", code(seed + 100, 600).into()),
                    ]),
                ),
            ]),
            _ => object([
                ("type", "audio".into()),
                ("data", base64(seed, 1_200).into()),
                ("mimeType", "audio/wav".into()),
            ]),
        })
        .collect()
}

/// Returns a tool result that contains a table both as structured content and as text, as the specification recommends.
fn structured_result() -> Node {
    let rows: Vec<Node> = (0..60)
        .map(|index| {
            object([
                ("hour", index.into()),
                ("temperature", (f64::from(index) * 0.37 + 9.5).into()),
                ("humidity", (40 + index % 30).into()),
                (
                    "conditions",
                    ["clear", "cloudy", "rain"][index as usize % 3].into(),
                ),
                (
                    "wind",
                    object([
                        ("speed", (f64::from(index % 9) + 0.5).into()),
                        ("from", "NW".into()),
                    ]),
                ),
            ])
        })
        .collect();
    let table = object([("station", "north".into()), ("rows", rows.into())]);
    object([
        ("content", vec![text(table.text(Layout::Usual))].into()),
        ("structuredContent", table),
    ])
}

/// Returns the result of `resources/list`.
fn resources() -> Node {
    let resources: Vec<Node> = (0..100)
        .map(|index| {
            object([
                (
                    "uri",
                    format!("file:///projects/parser/src/module_{index}.rs").into(),
                ),
                ("name", format!("module_{index}.rs").into()),
                ("title", format!("Module {index}").into()),
                ("description", sentences(index + 200, 80).into()),
                ("mimeType", "text/x-rust".into()),
                (
                    "annotations",
                    object([
                        ("audience", strings(&["assistant"])),
                        ("priority", 0.5.into()),
                    ]),
                ),
                (
                    "size",
                    (i32::try_from(index).unwrap_or(0) * 137 + 900).into(),
                ),
            ])
        })
        .collect();
    object([
        ("resources", resources.into()),
        ("nextCursor", "eyJwYWdlIjoyfQ==".into()),
    ])
}

/// Returns the result of `resources/templates/list`.
fn templates() -> Node {
    let templates: Vec<Node> = (0..10)
        .map(|index| {
            object([
                (
                    "uriTemplate",
                    format!("file:///tables/{index}/{{row}}").into(),
                ),
                ("name", format!("table-{index}").into()),
                ("description", sentences(index + 300, 80).into()),
                ("mimeType", "application/json".into()),
            ])
        })
        .collect();
    object([("resourceTemplates", templates.into())])
}

/// Returns the result of `prompts/list`.
fn prompts() -> Node {
    let argument = |name: &str, seed, required: bool| {
        object([
            ("name", name.into()),
            ("description", sentences(seed, 60).into()),
            ("required", required.into()),
        ])
    };
    let prompts: Vec<Node> = (0..20)
        .map(|index| {
            object([
                ("name", format!("review_{index}").into()),
                ("title", format!("Review {index}").into()),
                ("description", sentences(index + 400, 100).into()),
                (
                    "arguments",
                    vec![
                        argument("change", index + 430, true),
                        argument("language", index + 460, false),
                    ]
                    .into(),
                ),
            ])
        })
        .collect();
    object([("prompts", prompts.into())])
}

/// Returns the result of `prompts/get`.
fn prompt() -> Node {
    let message = |role: &str, content| object([("role", role.into()), ("content", content)]);
    let embedded = object([
        ("type", "resource".into()),
        (
            "resource",
            object([
                ("uri", "file:///src/lib.rs".into()),
                ("mimeType", "text/x-rust".into()),
                ("text", code(91, 2_500).into()),
            ]),
        ),
    ]);
    object([
        ("description", "Review of a change".into()),
        (
            "messages",
            vec![
                message("user", text(sentences(92, 300))),
                message("user", embedded),
                message("assistant", text(sentences(93, 700))),
            ]
            .into(),
        ),
    ])
}
