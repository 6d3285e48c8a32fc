//! Measured messages, from 37 bytes to 1 MB, built by code with the same bytes in every run. The revision is
//! 2025-06-18, except for the batch, which only 2025-03-26 has.

mod node;
mod prose;
mod requests;
mod results;
pub mod tools;

use crate::entry::{Entry, Layout, Side};
use node::{Node, object};

/// Number of tools in the largest tool list.
pub const MANY_TOOLS: usize = 200;

/// Messages that are also measured with members in reverse order.
const REVERSED_MESSAGES: &[&str] = &[
    "initialize-result",
    "tools-20",
    "tools-200",
    "call-small",
    "call-100k",
    "result-50-blocks",
    "result-image-1m",
    "result-text-1m",
    "prompt-get",
    "progress",
    "sampling-request",
    "error",
];
/// Messages that are also measured with members in alphabetical order.
const SORTED_MESSAGES: &[&str] = &[
    "tools-200",
    "call-small",
    "result-text",
    "result-50-blocks",
    "resources-100",
];
/// Messages that are also measured with indentation.
const INDENTED_MESSAGES: &[&str] = &[
    "initialize-result",
    "tools-20",
    "call-small",
    "result-structured",
];

/// Returns all messages in the usual layout, followed by some in other layouts.
pub fn corpus() -> Vec<Entry> {
    let drafts = drafts();
    let mut entries: Vec<Entry> = drafts
        .iter()
        .map(|draft| draft.entry(Layout::Usual))
        .collect();
    for (names, layout) in [
        (REVERSED_MESSAGES, Layout::Reversed),
        (SORTED_MESSAGES, Layout::Sorted),
        (INDENTED_MESSAGES, Layout::Indented),
    ] {
        let chosen = drafts.iter().filter(|draft| names.contains(&draft.name));
        entries.extend(chosen.map(|draft| draft.entry(layout)));
    }
    entries
}

/// Returns the messages in the usual layout, each without and with the metadata that 2026-07-28 requires.
pub fn with_metadata() -> Vec<[Entry; 2]> {
    let drafts = drafts().into_iter().filter(|draft| !draft.batch);
    drafts
        .map(|draft| {
            let plain = draft.entry(Layout::Usual);
            let node = metadata(draft.node.clone());
            [plain, Draft { node, ..draft }.entry(Layout::Usual)]
        })
        .collect()
}

/// Adds the required metadata to the params of a request or to a result (2026-07-28, "basic", "lifecycle").
fn metadata(message: Node) -> Node {
    let client = object([
        (
            "io.modelcontextprotocol/protocolVersion",
            "2026-07-28".into(),
        ),
        ("io.modelcontextprotocol/clientCapabilities", object([])),
    ]);
    let is_request = message.get("method").is_some() && message.get("id").is_some();
    if is_request {
        let params = message.get("params").cloned();
        let params = params.unwrap_or_else(|| object([])).with("_meta", client);
        return message.set("params", params);
    }
    match message.get("result").cloned() {
        None => message,
        Some(result) => {
            let result = result
                .with("resultType", "complete")
                .with("ttlMs", 60_000)
                .with("cacheScope", "private");
            message.set("result", result)
        }
    }
}

/// Returns all messages without a layout.
fn drafts() -> Vec<Draft> {
    let mut drafts = requests::drafts();
    drafts.extend(results::drafts());
    drafts
}

/// Message without a layout.
struct Draft {
    /// Name of the message.
    name: &'static str,
    /// Sender of the message.
    side: Side,
    /// Method of the request that a result answers.
    answers: Option<&'static str>,
    /// True for a batch of 2025-03-26.
    batch: bool,
    /// True if the message consists mostly of untyped JSON or long strings.
    bulky: bool,
    /// JSON value of the message.
    node: Node,
}

impl Draft {
    fn new(name: &'static str, side: Side, node: Node) -> Self {
        Self {
            name,
            side,
            answers: None,
            batch: false,
            bulky: false,
            node,
        }
    }

    /// Creates a request.
    fn request(
        name: &'static str,
        side: Side,
        id: i32,
        method: &str,
        params: Option<Node>,
    ) -> Self {
        Self::new(name, side, request(id, method, params))
    }

    /// Creates a notification.
    fn notification(name: &'static str, side: Side, method: &str, params: Option<Node>) -> Self {
        Self::new(name, side, notification(method, params))
    }

    /// Creates a result of the server.
    fn result(name: &'static str, id: i32, answers: &'static str, result: Node) -> Self {
        let node = object([
            ("jsonrpc", "2.0".into()),
            ("id", id.into()),
            ("result", result),
        ]);
        Self {
            answers: Some(answers),
            ..Self::new(name, Side::Server, node)
        }
    }

    /// Returns the draft as a message of the client.
    fn by_client(self) -> Self {
        Self {
            side: Side::Client,
            ..self
        }
    }

    /// Returns the draft as a message that consists mostly of untyped JSON or long strings.
    fn bulky(self) -> Self {
        Self {
            bulky: true,
            ..self
        }
    }

    /// Returns the message in a layout.
    fn entry(&self, layout: Layout) -> Entry {
        let name = match layout {
            Layout::Usual => self.name.to_owned(),
            other => format!("{} {}", self.name, other.name()),
        };
        Entry {
            name,
            side: self.side,
            answers: self.answers,
            layout,
            batch: self.batch,
            bulky: self.bulky,
            bytes: self.node.text(layout).into_bytes(),
        }
    }
}

/// Returns a JSON-RPC request.
fn request(id: i32, method: &str, params: Option<Node>) -> Node {
    let node = object([
        ("jsonrpc", "2.0".into()),
        ("id", id.into()),
        ("method", method.into()),
    ]);
    match params {
        Some(params) => node.with("params", params),
        None => node,
    }
}

/// Returns a JSON-RPC notification.
fn notification(method: &str, params: Option<Node>) -> Node {
    let node = object([("jsonrpc", "2.0".into()), ("method", method.into())]);
    match params {
        Some(params) => node.with("params", params),
        None => node,
    }
}
