//! The zoo: servers that each break the schema in one way, which public reports describe.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_exact_wire::JsonObject;

/// One way of a server to break the schema.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// Short name.
    pub name: &'static str,
    /// Method whose answer is untidy.
    pub method: &'static str,
    /// The message that is sent; see [`Peer`] for what is replaced in it.
    pub sends: &'static str,
    /// What a client of the library delivers, as [`Peer`]'s caller writes it.
    pub delivers: &'static str,
    /// Names of the rules that are reported, in order.
    pub rules: &'static [&'static str],
    /// Oldest revision of such servers.
    pub since: &'static str,
}

/// A server of one revision, whose answers to one method are those of a case.
///
/// In the messages of a case, `$ID` is the id of the request, `$NEW` the members that results of 2026-07-28 have, with a
/// comma behind them, `$LIST` those of cacheable results, `$REV` the revision, and `$BOM` a byte order mark.
#[derive(Debug, Clone)]
pub struct Peer {
    case: Case,
    revision: &'static str,
    /// Number of answers to the method of the case.
    count: Arc<AtomicUsize>,
}

/// A case that nothing is wrong with.
pub const TIDY: Case = Case {
    name: "tidy",
    method: "",
    sends: "",
    delivers: "",
    rules: &[],
    since: "2024-11-05",
};

/// Capabilities of all peers.
const CAPABILITIES: &str = r#"{"tools":{},"prompts":{},"resources":{}}"#;

/// Revisions of the peers.
pub const REVISIONS: [&str; 5] = [
    "2024-11-05",
    "2025-03-26",
    "2025-06-18",
    "2025-11-25",
    "2026-07-28",
];

impl Peer {
    /// Creates a server with the fault of a case.
    pub fn new(case: Case, revision: &'static str) -> Self {
        let count = Arc::default();
        Self {
            case,
            revision,
            count,
        }
    }

    /// Returns how often the method of the case was answered.
    pub fn asked(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    fn has_sessions(&self) -> bool {
        self.revision < "2026"
    }

    /// Returns the messages that answer a message.
    pub fn answers(&self, message: &str) -> Vec<Vec<u8>> {
        let Ok(message) = message.parse::<JsonObject>() else {
            return Vec::new();
        };
        let (Some(id), Some(method)) = (message.get("id"), message.get("method")) else {
            return Vec::new();
        };
        let (id, method) = (id.text(), method.text().trim_matches('"'));
        let own = match (method, self.has_sessions()) {
            ("initialize", false) | ("server/discover", true) => None,
            // The fault of a negotiation is that of the method which the revision has.
            ("server/discover", false) if self.case.method == "initialize" => Some(self.case.sends),
            (method, _) if method == self.case.method => Some(self.case.sends),
            _ => None,
        };
        if own.is_some() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
        let text = own.map_or_else(
            || {
                format!(
                    r#"{{"jsonrpc":"2.0","id":$ID,{}}}"#,
                    self.tidy_answer(method)
                )
            },
            str::to_owned,
        );
        vec![self.fill(&text, id).into_bytes()]
    }

    /// Replaces the placeholders of a message.
    fn fill(&self, text: &str, id: &str) -> String {
        let (new, list) = if self.has_sessions() {
            ("", "")
        } else {
            (
                r#""resultType":"complete","#,
                r#""resultType":"complete","ttlMs":0,"cacheScope":"private","#,
            )
        };
        let handshake = if self.has_sessions() {
            format!(r#""protocolVersion":"{}","#, self.revision)
        } else {
            format!(r#"{list}"supportedVersions":["{}"],"#, self.revision)
        };
        text.replace("$ID", id)
            .replace("$HANDSHAKE", &handshake)
            .replace("$NEW", new)
            .replace("$LIST", list)
            .replace("$BOM", "\u{feff}")
    }

    /// Returns the result or error of a tidy server.
    fn tidy_answer(&self, method: &str) -> String {
        let result = match (method, self.has_sessions()) {
            ("initialize", true) | ("server/discover", false) => format!(
                r#"{{$HANDSHAKE"capabilities":{CAPABILITIES},"serverInfo":{{"name":"zoo","version":"1"}}}}"#
            ),
            ("tools/list", _) => {
                r#"{$LIST"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}"#.into()
            }
            ("prompts/list", _) => r#"{$LIST"prompts":[{"name":"greet"}]}"#.into(),
            ("resources/list", _) => r#"{$LIST"resources":[{"uri":"zoo://a","name":"a"}]}"#.into(),
            ("resources/templates/list", _) => r#"{$LIST"resourceTemplates":[]}"#.into(),
            ("resources/read", _) => r#"{$LIST"contents":[{"uri":"zoo://a","text":"a"}]}"#.into(),
            ("prompts/get", _) => {
                r#"{$NEW"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}"#.into()
            }
            ("tools/call", _) => r#"{$NEW"content":[{"type":"text","text":"done"}]}"#.into(),
            ("ping" | "logging/setLevel", _) => "{}".into(),
            _ => return r#""error":{"code":-32601,"message":"Method not found"}"#.into(),
        };
        format!(r#""result":{result}"#)
    }
}

/// Creates a case of every revision.
const fn case(
    name: &'static str,
    method: &'static str,
    sends: &'static str,
    delivers: &'static str,
    rules: &'static [&'static str],
) -> Case {
    Case {
        name,
        method,
        sends,
        delivers,
        rules,
        since: "2024-11-05",
    }
}

/// Every case.
pub const CASES: &[Case] = &[
    case(
        "null title of a tool",
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"tools":[{"name":"a","description":null,"inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]}}"#,
        "a, b",
        &["null-member"],
    ),
    case(
        "null cursor",
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":null}}"#,
        "a",
        &["null-member"],
    ),
    case(
        "null list of tools",
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"tools":null}}"#,
        "",
        &["null-list"],
    ),
    case(
        "null list of prompts",
        "prompts/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"prompts":null}}"#,
        "",
        &["null-list"],
    ),
    case(
        "null list of resources",
        "resources/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"resources":null}}"#,
        "",
        &["null-list"],
    ),
    case(
        "tool without a schema",
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"tools":[{"name":"a"},{"name":"b","inputSchema":{"type":"object"}}]}}"#,
        "a, b",
        &["neutral-schema"],
    ),
    case(
        "tool with an array as its schema",
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"tools":[{"name":"a","inputSchema":[]}]}}"#,
        "a",
        &["neutral-schema"],
    ),
    case(
        "tool without a name",
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"tools":[{"inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}}]}}"#,
        "b",
        &["left-out"],
    ),
    case(
        "null as a tool",
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"tools":[null,{"name":"b","inputSchema":{"type":"object"}}]}}"#,
        "b",
        &["left-out"],
    ),
    case(
        "tool with a member twice",
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"tools":[{"name":"a","name":"c","inputSchema":{}},{"name":"b","inputSchema":{"type":"object"}}]}}"#,
        "b",
        &["left-out"],
    ),
    case(
        "number as a description",
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"tools":[{"name":"a","description":5,"inputSchema":{"type":"object"}}]}}"#,
        "a",
        &["wrong-type"],
    ),
    case(
        "prompt with null arguments",
        "prompts/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"prompts":[{"name":"a","arguments":null}]}}"#,
        "a",
        &["null-member"],
    ),
    case(
        "prompt without a name",
        "prompts/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"prompts":[{"description":"x"},{"name":"b"}]}}"#,
        "b",
        &["left-out"],
    ),
    case(
        "resource with a null type",
        "resources/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"resources":[{"uri":"zoo://a","name":"a","mimeType":null}]}}"#,
        "a",
        &["null-member"],
    ),
    case(
        "resource without a URI",
        "resources/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"resources":[{"name":"a"},{"uri":"zoo://b","name":"b"}]}}"#,
        "b",
        &["left-out"],
    ),
    case(
        "template with a null description",
        "resources/templates/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"resourceTemplates":[{"uriTemplate":"zoo://{x}","name":"a","description":null}]}}"#,
        "a",
        &["null-member"],
    ),
    case(
        "result with null isError",
        "tools/call",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$NEW"content":[{"type":"text","text":"done"}],"isError":null}}"#,
        "done",
        &["null-member"],
    ),
    case(
        "result with null annotations",
        "tools/call",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$NEW"content":[{"type":"text","text":"done","annotations":null}]}}"#,
        "done",
        &["null-member"],
    ),
    case(
        "content block without a text",
        "tools/call",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$NEW"content":[{"type":"text"},{"type":"text","text":"done"}]}}"#,
        "done",
        &["left-out"],
    ),
    case(
        "null content",
        "tools/call",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$NEW"content":null}}"#,
        "",
        &["null-list"],
    ),
    Case {
        since: "2025-06-18",
        ..case(
            "structured content alone",
            "tools/call",
            r#"{"jsonrpc":"2.0","id":$ID,"result":{$NEW"structuredContent":{"a":1}}}"#,
            "",
            &["missing-member"],
        )
    },
    case(
        "half of an emoji",
        "tools/call",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$NEW"content":[{"type":"text","text":"cut \ud83d"}]}}"#,
        "cut \u{fffd}",
        &["lone-surrogate"],
    ),
    case(
        "error beside a result",
        "tools/call",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$NEW"content":[{"type":"text","text":"done"}]},"error":null}"#,
        "done",
        &["null-in-envelope"],
    ),
    case(
        "result beside an error",
        "tools/call",
        r#"{"jsonrpc":"2.0","id":$ID,"result":null,"error":{"code":-32000,"message":"the disk is full"}}"#,
        "error: the disk is full",
        &["null-in-envelope"],
    ),
    case(
        "members of a request in an answer",
        "tools/call",
        r#"{"jsonrpc":"2.0","id":$ID,"method":null,"params":null,"result":{$NEW"content":[{"type":"text","text":"done"}]}}"#,
        "done",
        &["null-in-envelope", "null-in-envelope"],
    ),
    case(
        "id as text",
        "tools/call",
        r#"{"jsonrpc":"2.0","id":"$ID","result":{$NEW"content":[{"type":"text","text":"done"}]}}"#,
        "done",
        &["id-spelling"],
    ),
    case(
        "byte order mark",
        "tools/call",
        r#"$BOM{"jsonrpc":"2.0","id":$ID,"result":{$NEW"content":[{"type":"text","text":"done"}]}}"#,
        "done",
        &["byte-order-mark"],
    ),
    case(
        "answer in an array",
        "tools/list",
        r#"[{"jsonrpc":"2.0","id":$ID,"result":{$LIST"tools":[{"name":"a","inputSchema":{"type":"object"}}]}}]"#,
        "a",
        &["array-of-one"],
    ),
    case(
        "NaN in a result",
        "tools/call",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$NEW"content":[],"score":NaN}}"#,
        "error: the answer is no JSON",
        &[],
    ),
    case(
        "prompt message without a role",
        "prompts/get",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$NEW"messages":[{"content":{"type":"text","text":"no"}},{"role":"user","content":{"type":"text","text":"hi"}}]}}"#,
        "hi",
        &["left-out"],
    ),
    case(
        "contents with a null type",
        "resources/read",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"contents":[{"uri":"zoo://a","mimeType":null,"text":"a"}]}}"#,
        "a",
        &["null-member"],
    ),
    case(
        "empty cursor for ever",
        "tools/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":""}}"#,
        "a",
        &["repeated-cursor"],
    ),
    case(
        "the same cursor for ever",
        "prompts/list",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$LIST"prompts":[{"name":"a"}],"nextCursor":"x"}}"#,
        "a",
        &["repeated-cursor"],
    ),
    case(
        "null and [] in capabilities",
        "initialize",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$HANDSHAKE"capabilities":{"logging":null,"tools":[],"prompts":[],"experimental":[]},"serverInfo":{"name":"zoo","version":"1"}}}"#,
        r#"{"tools":{},"prompts":{},"experimental":{}}"#,
        &["null-member", "empty-array", "empty-array", "empty-array"],
    ),
    case(
        "flags as capabilities",
        "initialize",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$HANDSHAKE"capabilities":{"tools":true,"resources":false},"serverInfo":{"name":"zoo","version":"1"}}}"#,
        r#"{"tools":{}}"#,
        &["capability-flag", "capability-flag"],
    ),
    case(
        "null as capabilities",
        "initialize",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$HANDSHAKE"capabilities":null,"serverInfo":{"name":"zoo","version":"1"}}}"#,
        "{}",
        &["missing-member"],
    ),
    case(
        "null instructions",
        "initialize",
        r#"{"jsonrpc":"2.0","id":$ID,"result":{$HANDSHAKE"capabilities":{},"instructions":null,"serverInfo":{"name":"zoo","version":"1"}}}"#,
        "{}",
        &["null-member"],
    ),
];
