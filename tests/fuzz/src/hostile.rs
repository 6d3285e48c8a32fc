//! Source of choices from input bytes, and hostile frames: messages with inconsistent parts, and arbitrary bytes.
//!
//! When all input bytes are consumed, every further choice is zero.

use mcp_exact_session::revisions;

/// Source of the choices of a simulated run: the remaining bytes of the input.
pub(crate) struct Choices<'b> {
    /// Bytes that were not consumed.
    bytes: &'b [u8],
}

impl<'b> Choices<'b> {
    /// Creates a source of choices from the bytes of an input.
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    /// Returns true if all bytes of the input are consumed.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Consumes and returns the next byte of the input; returns zero when all bytes are consumed.
    pub(crate) fn next_byte(&mut self) -> u8 {
        match self.bytes {
            [first, rest @ ..] => {
                self.bytes = rest;
                *first
            }
            [] => 0,
        }
    }

    /// Consumes a byte; returns true if it is less than `below`.
    pub(crate) fn chance(&mut self, below: u8) -> bool {
        self.next_byte() < below
    }

    /// Consumes a byte and returns the text that the byte selects.
    pub(crate) fn pick_text<'a, const N: usize>(&mut self, all: &[&'a str; N]) -> &'a str {
        all[usize::from(self.next_byte()) % N]
    }

    /// Consumes a byte and returns the element that the byte selects; `None` if the slice is empty.
    pub(crate) fn pick_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let at = usize::from(self.next_byte());
        all.get(at % all.len().max(1)).copied()
    }

    /// Consumes and returns up to `count` bytes.
    fn take(&mut self, count: usize) -> &'b [u8] {
        let (taken, rest) = self.bytes.split_at(count.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }
}

/// JSON texts of ids, valid and invalid.
const IDS: [&str; 12] = [
    "1",
    "2",
    "3",
    "4",
    "\"1\"",
    "\"a\"",
    "null",
    "1.5",
    "-1",
    "1e400",
    "{}",
    "99999999999999999999999999",
];

/// Methods that revisions define, and methods that no revision defines.
const METHODS: [&str; 19] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/read",
    "resources/subscribe",
    "subscriptions/listen",
    "server/discover",
    "logging/setLevel",
    "sampling/createMessage",
    "roots/list",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/subscriptions/acknowledged",
    "x/vendor",
    "",
];

/// Returns a frame that the next bytes of the input select: a message with inconsistent parts, a batch, or arbitrary
/// bytes.
pub(crate) fn frame(choices: &mut Choices<'_>) -> Vec<u8> {
    match choices.next_byte() % 8 {
        0 => {
            let count = usize::from(choices.next_byte());
            choices.take(count).to_vec()
        }
        1 => {
            let count = usize::from(choices.next_byte()) % 7;
            let items: Vec<String> = (0..count).map(|_| hostile_message(choices)).collect();
            format!("[{}]", items.join(",")).into_bytes()
        }
        2 => "[".repeat(usize::from(choices.next_byte())).into_bytes(),
        3 => {
            let mut bytes = hostile_message(choices).into_bytes();
            let at = usize::from(choices.next_byte()) % bytes.len();
            bytes[at] = choices.next_byte();
            bytes
        }
        _ => hostile_message(choices).into_bytes(),
    }
}

/// Returns a message whose id, method, params or result may be inconsistent.
fn hostile_message(choices: &mut Choices<'_>) -> String {
    let id = choices.pick_text(&IDS);
    let method = choices.pick_text(&METHODS);
    let params = params(choices);
    let body = match choices.next_byte() % 8 {
        0 => format!(r#""id":{id},"result":{params}"#),
        1 => format!(r#""id":{id},"result":{}"#, result(choices)),
        2 => format!(
            r#""id":{id},"error":{{"code":{},"message":"m","data":{{"supported":["2025-11-25","2026-07-28"]}}}}"#,
            choices.pick_text(&["-32600", "-32020", "-32021", "-32022", "1e400", "{}"])
        ),
        3 | 4 => format!(r#""method":"{method}","params":{params}"#),
        _ => format!(r#""id":{id},"method":"{method}","params":{params}"#),
    };
    format!(r#"{{"jsonrpc":"2.0",{body}}}"#)
}

/// Returns the JSON text of params that the next bytes select.
fn params(choices: &mut Choices<'_>) -> String {
    let id = choices.pick_text(&IDS);
    let all: Vec<&str> = revisions().map(|revision| revision.as_str()).collect();
    let version = choices.pick_of(&all).unwrap_or("x");
    match choices.next_byte() % 7 {
        0 => format!(
            r#"{{"requestId":{id},"progressToken":{id},"progress":{},"level":"info","data":1,"uri":"u"}}"#,
            choices.next_byte()
        ),
        1 => format!(
            r#"{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{"roots":{{}}}},"progressToken":{id}}},"notifications":{{"toolsListChanged":true,"resourceSubscriptions":["a:c"]}},"name":"n","requestState":"s"}}"#
        ),
        2 => format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{"roots":{{}},"sampling":{{}}}},"clientInfo":{{"name":"c","version":"1"}}}}"#
        ),
        3 => format!(
            r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"notifications":{{}},"uri":"u"}}"#
        ),
        4 => "[]".to_owned(),
        5 => "{}".to_owned(),
        _ => "null".to_owned(),
    }
}

/// Returns the JSON text of a result that the next bytes select.
fn result(choices: &mut Choices<'_>) -> String {
    let all: Vec<&str> = revisions().map(|revision| revision.as_str()).collect();
    let version = choices.pick_of(&all).unwrap_or("x");
    match choices.next_byte() % 5 {
        0 => format!(
            r#"{{"resultType":"complete","supportedVersions":["{version}"],"capabilities":{{"tools":{{}}}},"ttlMs":0,"cacheScope":"private"}}"#
        ),
        1 => format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{"tools":{{}},"resources":{{"subscribe":true}}}},"serverInfo":{{"name":"s","version":"1"}}}}"#
        ),
        2 => r#"{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"roots/list"}}}"#.to_owned(),
        3 => r#"{"resultType":"complete","nextCursor":"c","tools":[{"name":"x","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"R"}}}},{"name":"y","inputSchema":{"x-mcp-header":1}}]}"#.to_owned(),
        _ => r#"{"resultType":"x"}"#.to_owned(),
    }
}
