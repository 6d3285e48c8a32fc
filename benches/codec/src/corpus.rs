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

/// Returns all messages with the usual order of members, followed by some messages in other layouts.
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

/// Returns the messages except batches with the usual order of members, each without and with the members that
/// 2026-07-28 requires.
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

/// Adds the members that 2026-07-28 requires: `_meta` to the params of a request, and `resultType` and the cache
/// members to a result (`basic`; `server/utilities/caching`).
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

/// Returns all messages as JSON values, before the layout of their text is chosen.
fn drafts() -> Vec<Draft> {
    let mut drafts = requests::drafts();
    drafts.extend(results::drafts());
    drafts
}

/// Message as a JSON value, before the layout of its text is chosen.
struct Draft {
    /// Name of the message in the report.
    name: &'static str,
    /// Peer that sends the message.
    side: Side,
    /// Method of the answered request, if the message is a result.
    answers: Option<&'static str>,
    /// True if the message is a batch of 2025-03-26.
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

    /// Creates a request that the peer `side` sends.
    fn request(
        name: &'static str,
        side: Side,
        id: i32,
        method: &str,
        params: Option<Node>,
    ) -> Self {
        Self::new(name, side, request(id, method, params))
    }

    /// Creates a notification that the peer `side` sends.
    fn notification(name: &'static str, side: Side, method: &str, params: Option<Node>) -> Self {
        Self::new(name, side, notification(method, params))
    }

    /// Creates a result that the server sends; `answers` is the method of the answered request.
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

    /// Changes the sender of the message to the client.
    fn by_client(self) -> Self {
        Self {
            side: Side::Client,
            ..self
        }
    }

    /// Marks the message as one that consists mostly of untyped JSON or long strings.
    fn bulky(self) -> Self {
        Self {
            bulky: true,
            ..self
        }
    }

    /// Returns the message with its text in this layout.
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

/// Returns the JSON value of a JSON-RPC request.
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

/// Returns the JSON value of a JSON-RPC notification.
fn notification(method: &str, params: Option<Node>) -> Node {
    let node = object([("jsonrpc", "2.0".into()), ("method", method.into())]);
    match params {
        Some(params) => node.with("params", params),
        None => node,
    }
}
