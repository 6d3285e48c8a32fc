//! Tool lists: input schemas with nested properties, descriptions and limits, about 1 kB each, and output schemas.

use super::node::{Node, object, strings};
use super::prose::{Numbers, sentences};

/// Verbs in the names of tools.
const VERBS: &[&str] = &[
    "search", "read", "create", "update", "delete", "list", "export", "compare",
];
/// Nouns in the names of tools.
const THINGS: &[&str] = &[
    "file", "issue", "branch", "record", "document", "event", "image", "query", "table", "message",
];

/// Returns true if the tool with this index has an output schema: every second tool.
pub fn has_output(index: usize) -> bool {
    index % 2 == 1
}

/// Returns a result of `tools/list` with `count` tools.
pub fn list(count: usize) -> Node {
    let tools: Vec<Node> = (0..count).map(tool).collect();
    let result = object([("tools", tools.into())]);
    if count > 1 {
        result.with("nextCursor", "eyJwYWdlIjoyfQ==")
    } else {
        result
    }
}

/// Returns the definition of the tool with this index.
fn tool(index: usize) -> Node {
    let seed = index as u64 + 1;
    let verb = VERBS[index % VERBS.len()];
    let thing = THINGS[index / VERBS.len() % THINGS.len()];
    let name = match index / (VERBS.len() * THINGS.len()) {
        0 => format!("{verb}_{thing}"),
        round => format!("{verb}_{thing}_{}", round + 1),
    };
    let title = format!("{}{} {thing}", verb[..1].to_uppercase(), &verb[1..]);
    let tool = object([
        ("name", name.into()),
        ("title", title.into()),
        ("description", sentences(seed, 140).into()),
        ("inputSchema", input_schema(seed, thing)),
    ]);
    let tool = if has_output(index) {
        tool.with("outputSchema", output_schema(seed, thing))
    } else {
        tool
    };
    let read_only = matches!(verb, "search" | "read" | "list" | "compare");
    tool.with(
        "annotations",
        object([
            ("readOnlyHint", read_only.into()),
            ("destructiveHint", (verb == "delete").into()),
            ("openWorldHint", false.into()),
        ]),
    )
}

/// Returns the input schema of a tool that handles `thing`; `seed` determines the descriptions.
fn input_schema(seed: u64, thing: &str) -> Node {
    let mut numbers = Numbers::new(seed);
    let about = |offset: u64, len| -> Node { sentences(seed * 31 + offset, len).into() };
    let filter = object([
        ("type", "object".into()),
        ("description", about(1, 60)),
        (
            "properties",
            object([
                (
                    "state",
                    object([
                        ("type", "string".into()),
                        ("enum", strings(&["open", "closed", "all"])),
                    ]),
                ),
                (
                    "since",
                    object([("type", "string".into()), ("format", "date-time".into())]),
                ),
                (
                    "labels",
                    object([
                        ("type", "array".into()),
                        ("items", object([("type", "string".into())])),
                        ("maxItems", 20.into()),
                    ]),
                ),
            ]),
        ),
        ("additionalProperties", false.into()),
    ]);
    let limit = object([
        ("type", "integer".into()),
        ("description", about(2, 50)),
        ("minimum", 1.into()),
        (
            "maximum",
            (i32::try_from(numbers.below(900)).unwrap_or(0) + 100).into(),
        ),
        ("default", 25.into()),
    ]);
    object([
        ("type", "object".into()),
        (
            "properties",
            object([
                (
                    "path",
                    object([("type", "string".into()), ("description", about(3, 90))]),
                ),
                (
                    "query",
                    object([
                        ("type", "string".into()),
                        ("description", about(4, 90)),
                        ("minLength", 1.into()),
                    ]),
                ),
                ("filter", filter),
                ("limit", limit),
                (
                    "threshold",
                    object([
                        ("type", "number".into()),
                        ("description", about(5, 40)),
                        ("default", 0.75.into()),
                    ]),
                ),
                (
                    "recursive",
                    object([("type", "boolean".into()), ("description", about(6, 40))]),
                ),
            ])
            .with(
                &format!("{thing}_id"),
                object([
                    ("type", "string".into()),
                    ("pattern", "^[a-z0-9-]{8,36}$".into()),
                ]),
            ),
        ),
        ("required", strings(&["path", "query"])),
        ("additionalProperties", false.into()),
    ])
}

/// Returns the output schema of a tool that handles `thing`; `seed` determines the descriptions.
fn output_schema(seed: u64, thing: &str) -> Node {
    object([
        ("type", "object".into()),
        (
            "properties",
            object([
                (
                    "total",
                    object([("type", "integer".into()), ("minimum", 0.into())]),
                ),
                (
                    "items",
                    object([
                        ("type", "array".into()),
                        ("description", sentences(seed * 17, 50).into()),
                        (
                            "items",
                            object([("type", "object".into()), ("title", thing.into())]),
                        ),
                    ]),
                ),
            ]),
        ),
        ("required", strings(&["total", "items"])),
    ])
}
