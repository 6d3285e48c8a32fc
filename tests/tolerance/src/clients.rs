//! Untidy clients: what they send to a server, and a part of its answer.

use crate::zoo::REVISIONS;

/// One way of a client to break the schema.
#[derive(Debug, Clone, Copy)]
pub struct ClientCase {
    /// Short name.
    pub name: &'static str,
    /// The message that is sent. `$META` is the member `_meta` that requests of 2026-07-28 have, with a comma behind it, and
    /// `$REV` the revision.
    pub sends: &'static str,
    /// Part of the answer.
    pub answer: &'static str,
    /// Name of the rule that is reported.
    pub rule: &'static str,
    /// Which revisions have such clients, and when they send the message.
    pub phase: Phase,
}

/// When a client sends the message of its case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// As its handshake.
    Handshake,
    /// After a tidy handshake, in revisions that have one.
    Session,
    /// In every revision.
    Request,
}

/// A tidy handshake.
pub const HANDSHAKE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"$REV","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

/// Member of the params of each request of 2026-07-28.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"#;

/// Returns true if the revision has a handshake.
pub fn has_handshake(revision: &str) -> bool {
    revision < "2026"
}

/// Replaces the placeholders of a message.
pub fn fill(message: &str, revision: &str) -> String {
    let meta = if has_handshake(revision) { "" } else { META };
    message.replace("$META", meta).replace("$REV", revision)
}

impl ClientCase {
    /// Returns the revisions of such clients.
    pub fn revisions(&self) -> impl Iterator<Item = &'static str> {
        let phase = self.phase;
        let all = REVISIONS.into_iter();
        all.filter(move |revision| phase == Phase::Request || has_handshake(revision))
    }
}

/// Every case.
pub const CLIENTS: &[ClientCase] = &[
    ClientCase {
        name: "null cursor",
        sends: r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{$META"cursor":null}}"#,
        answer: "\"echo\"",
        rule: "null-member",
        phase: Phase::Request,
    },
    ClientCase {
        name: "null arguments",
        sends: r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{$META"name":"echo","arguments":null}}"#,
        answer: "\"done\"",
        rule: "null-member",
        phase: Phase::Request,
    },
    ClientCase {
        name: "[] as arguments",
        sends: r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{$META"name":"echo","arguments":[]}}"#,
        answer: "\"done\"",
        rule: "empty-array",
        phase: Phase::Request,
    },
    ClientCase {
        name: "byte order mark",
        sends: "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{$META\"x\":1}}",
        answer: "\"echo\"",
        rule: "byte-order-mark",
        phase: Phase::Request,
    },
    ClientCase {
        name: "null params of `ping`",
        sends: r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":null}"#,
        answer: "\"result\":{}",
        rule: "null-in-envelope",
        phase: Phase::Session,
    },
    ClientCase {
        name: "[] as params",
        sends: r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":[]}"#,
        answer: "\"result\":{}",
        rule: "empty-params",
        phase: Phase::Session,
    },
    ClientCase {
        name: "null params of a list",
        sends: r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":null}"#,
        answer: "\"echo\"",
        rule: "null-in-envelope",
        phase: Phase::Session,
    },
    ClientCase {
        name: "null `_meta`",
        sends: r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":null}}"#,
        answer: "\"echo\"",
        rule: "null-member",
        phase: Phase::Session,
    },
    ClientCase {
        name: "null progress token",
        sends: r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"_meta":{"progressToken":null}}}"#,
        answer: "\"echo\"",
        rule: "null-member",
        phase: Phase::Session,
    },
    ClientCase {
        name: "null as capabilities",
        sends: r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"$REV","capabilities":null,"clientInfo":{"name":"c","version":"1"}}}"#,
        answer: "\"serverInfo\"",
        rule: "missing-member",
        phase: Phase::Handshake,
    },
    ClientCase {
        name: "[] as capabilities",
        sends: r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"$REV","capabilities":[],"clientInfo":{"name":"c","version":"1"}}}"#,
        answer: "\"serverInfo\"",
        rule: "empty-array",
        phase: Phase::Handshake,
    },
    ClientCase {
        name: "null and a flag in capabilities",
        sends: r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"$REV","capabilities":{"roots":null,"sampling":true},"clientInfo":{"name":"c","version":"1"}}}"#,
        answer: "\"serverInfo\"",
        rule: "capability-flag",
        phase: Phase::Handshake,
    },
    ClientCase {
        name: "no version and no capabilities",
        sends: r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"$REV","clientInfo":{"name":"c"}}}"#,
        answer: "\"serverInfo\"",
        rule: "missing-member",
        phase: Phase::Handshake,
    },
];

/// What a client answers to a request of its server.
#[derive(Debug, Clone, Copy)]
pub struct AnswerCase {
    /// Short name.
    pub name: &'static str,
    /// Method of the server's request.
    pub method: &'static str,
    /// The result that is sent.
    pub sends: &'static str,
    /// What the server's application reads.
    pub reads: &'static str,
    /// Name of the rule that is reported.
    pub rule: &'static str,
    /// Oldest revision with the method.
    pub since: &'static str,
}

/// Untidy answers.
pub const ANSWERS: &[AnswerCase] = &[
    AnswerCase {
        name: "null name of a root",
        method: "roots/list",
        sends: r#"{"roots":[{"uri":"file:///a","name":null}]}"#,
        reads: "file:///a",
        rule: "null-member",
        since: "2024-11-05",
    },
    AnswerCase {
        name: "null list of roots",
        method: "roots/list",
        sends: r#"{"roots":null}"#,
        reads: "",
        rule: "null-list",
        since: "2024-11-05",
    },
    AnswerCase {
        name: "sampled message with null members",
        method: "sampling/createMessage",
        sends: r#"{"role":"assistant","content":{"type":"text","text":"hi","annotations":null},"model":"m","stopReason":null}"#,
        reads: "hi",
        rule: "null-member",
        since: "2024-11-05",
    },
    AnswerCase {
        name: "declined form with null content",
        method: "elicitation/create",
        sends: r#"{"action":"decline","content":null}"#,
        reads: "declined",
        rule: "null-member",
        since: "2025-06-18",
    },
];
