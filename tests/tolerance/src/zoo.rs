//! The zoo: servers that each break the schema in one way, which public reports describe.

mod cases;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_exact_wire::JsonObject;

pub use cases::CASES;

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
    /// Newest revision of such servers.
    pub until: &'static str,
}

impl Case {
    /// Returns true if servers of a revision can have the fault.
    pub fn is_of(&self, revision: &str) -> bool {
        (self.since..=self.until).contains(&revision)
    }
}

/// A server of one revision, whose answers to one method are those of a case.
///
/// In the messages of a case, `$ID` is the id of the request, `$NEW` the members that results of 2026-07-28 have, with a
/// comma behind them, `$LIST` those of cacheable results, `$REV` the revision, `$BOM` a byte order mark, `$COUNT` the number of
/// answers so far, and `$BAD` a byte that is no UTF-8.
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
    since: OLDEST,
    until: NEWEST,
};

/// Oldest revision of the peers.
const OLDEST: &str = "2024-11-05";
/// Newest revision of the peers.
const NEWEST: &str = "2026-07-28";

/// Capabilities of all peers.
const CAPABILITIES: &str = r#"{"tools":{},"prompts":{},"resources":{}}"#;

/// Revisions of the peers.
pub const REVISIONS: [&str; 5] = [OLDEST, "2025-03-26", "2025-06-18", "2025-11-25", NEWEST];

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
        vec![self.fill(&text, id)]
    }

    /// Replaces the placeholders of a message.
    fn fill(&self, text: &str, id: &str) -> Vec<u8> {
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
        let text = text
            .replace("$ID", id)
            .replace("$HANDSHAKE", &handshake)
            .replace("$NEW", new)
            .replace("$LIST", list)
            .replace("$BOM", "\u{feff}")
            .replace("$COUNT", &self.asked().to_string());
        let parts: Vec<&[u8]> = text.split("$BAD").map(str::as_bytes).collect();
        parts.join(&0xff)
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
