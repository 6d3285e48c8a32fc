//! URIs of resources that one server alone can have: the pages of MCP Apps (`ui://`) and Skills (`skill://`).
//!
//! A client trusts a page or a skill because of the server that it comes from. In front of many servers, its URI
//! therefore has the name of the server as authority: `ui://files/page.html` is `ui://page.html` of the server `files`.
//! The rest of the URI does not change, and text that no member names as a URI is never read.

use std::sync::Arc;

use mcp_exact_session::{Change, InputRequest, Json, JsonObject, PeerError, RawResult, Reply};

/// Begin of the URIs of one server alone.
const BEGINS: [&str; 2] = ["ui://", "skill://"];

/// Members that have the URI of a resource, or a template of such URIs.
const URI_MEMBERS: [&str; 2] = ["uri", "uriTemplate"];

/// Members whose content servers and applications define, which is never changed.
const OPAQUE_MEMBERS: [&str; 8] = [
    "arguments",
    "frontmatter",
    "input",
    "inputSchema",
    "metadata",
    "outputSchema",
    "requestedSchema",
    "structuredContent",
];

/// Form in which clients of an endpoint know the URIs of one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerUris(Option<Arc<str>>);

impl ServerUris {
    /// Returns the form for clients of many servers, of which this is one.
    pub(crate) fn of_one(server: &str) -> Self {
        Self(Some(server.into()))
    }

    /// Returns the form for clients of one server, which is that of the server.
    pub(crate) fn unchanged() -> Self {
        Self(None)
    }

    /// Returns true if clients see many servers, of which this is one.
    pub(crate) fn is_of_one(&self) -> bool {
        self.0.is_some()
    }

    /// Returns a URI or a template of the server in the form for clients.
    pub(crate) fn uri(&self, uri: &str) -> String {
        match (&self.0, own_part(uri)) {
            (Some(server), Some(at)) => {
                let (begin, rest) = uri.split_at(at);
                format!("{begin}{server}/{rest}")
            }
            _ => uri.to_owned(),
        }
    }

    /// Returns an object of the server with all its URIs in the form for clients: the members `uri` and `uriTemplate`,
    /// and every URI in `_meta`, such as `ui.resourceUri`. The other text does not change.
    pub(crate) fn object(&self, object: JsonObject) -> JsonObject {
        match self.changed(object.text()) {
            Some(text) => text.parse().unwrap_or(object),
            None => object,
        }
    }

    /// Returns params of the server with its URIs in the form for clients.
    pub(crate) fn params(&self, params: Option<JsonObject>) -> Option<JsonObject> {
        params.map(|params| self.object(params))
    }

    /// Returns a change of the server with the URI in the form for clients.
    pub(crate) fn change(&self, change: Change) -> Change {
        match change {
            Change::Resource(uri) => Change::Resource(self.uri(&uri)),
            other => other,
        }
    }

    /// Returns an input request of the server with its URIs in the form for clients.
    pub(crate) fn input_request(&self, request: InputRequest) -> InputRequest {
        let InputRequest { method, params, .. } = request;
        InputRequest::new(method, self.params(params))
    }

    /// Returns an error of the server with its URIs in the form for clients.
    pub(crate) fn error(&self, error: PeerError) -> PeerError {
        let data = error.data().and_then(|data| self.changed(data.text()));
        match data.and_then(|data| data.parse::<Json>().ok()) {
            Some(data) => error.with_data(data),
            None => error,
        }
    }

    /// Returns a reply of the server with its URIs in the form for clients.
    pub(crate) fn reply(&self, reply: Reply) -> Reply {
        match reply {
            Reply::Result(result) => match self.changed(result.object().text()) {
                Some(text) => {
                    let object = text.parse::<JsonObject>();
                    Reply::Result(object.map_or(result, RawResult::from))
                }
                None => Reply::Result(result),
            },
            Reply::Error(error) => Reply::Error(self.error(error)),
            Reply::InputRequired { requests, state } => {
                let requests = requests.into_iter();
                let requests = requests.map(|(name, ask)| (name, self.input_request(ask)));
                Reply::InputRequired {
                    requests: requests.collect(),
                    state,
                }
            }
        }
    }

    /// Returns JSON text with all URIs in the form for clients; `None` if nothing changes. The time is proportional to
    /// the length.
    fn changed(&self, text: &str) -> Option<String> {
        let server = self.0.as_deref()?;
        let mut changed = String::new();
        let (mut copied, mut at) = (0, 0);
        // Kind of the values of each open object and array.
        let mut open: Vec<(bool, Value)> = Vec::new();
        let mut value = Value::Plain;
        while let Some(byte) = text.as_bytes().get(at) {
            match byte {
                b'{' | b'[' => {
                    let inner = match value {
                        Value::Uri => Value::Plain,
                        other => other,
                    };
                    open.push((*byte == b'{', inner));
                    value = inner;
                }
                b'}' | b']' => {
                    open.pop();
                }
                b',' => value = open.last().map_or(Value::Plain, |(_, inner)| *inner),
                b'"' => {
                    let end = at + string_length(&text[at..]);
                    let string = &text[at..end];
                    let name = text[end..].trim_ascii_start().starts_with(':');
                    if name && matches!(open.last(), Some((true, Value::Plain))) {
                        value = Value::of_member(string);
                    } else if !name
                        && matches!(value, Value::Uri | Value::Meta)
                        && let Some(begin) = own_part_of_json(string)
                    {
                        changed.push_str(&text[copied..at + begin]);
                        changed.push_str(server);
                        changed.push('/');
                        copied = at + begin;
                    }
                    at = end;
                    continue;
                }
                _ => {}
            }
            at += 1;
        }
        if copied == 0 {
            return None;
        }
        changed.push_str(&text[copied..]);
        Some(changed)
    }
}

/// What a value of an object or array can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// Members with URIs.
    Plain,
    /// A URI, if it is a string.
    Uri,
    /// `_meta` and what is in it: every string can be a URI.
    Meta,
    /// No URI.
    Opaque,
}

impl Value {
    /// Returns what the value of a member can have; `name` is its name as JSON text.
    fn of_member(name: &str) -> Self {
        let name: String = if name.contains('\\') {
            serde_json::from_str(name).unwrap_or_default()
        } else {
            name.trim_matches('"').to_owned()
        };
        let name = name.as_str();
        if name == "_meta" {
            Self::Meta
        } else if URI_MEMBERS.contains(&name) {
            Self::Uri
        } else if OPAQUE_MEMBERS.contains(&name) {
            Self::Opaque
        } else {
            Self::Plain
        }
    }
}

/// Returns true if the URI, or the template, is of a resource that one server alone can have.
pub(crate) fn is_of_one_server(uri: &str) -> bool {
    own_part(uri).is_some()
}

/// Returns the name of the server, and the URI that this server knows, of a URI in the form for clients of many servers;
/// `None` if it is of another form.
pub(crate) fn split(uri: &str) -> Option<(&str, String)> {
    let (begin, rest) = uri.split_at(own_part(uri)?);
    let (server, rest) = rest.split_once('/')?;
    Some((server, format!("{begin}{rest}")))
}

/// Returns the place after the begin of a URI of one server alone; `None` for all other URIs. White space and control characters
/// are skipped as browsers do, so that no spelling of the begin is overlooked.
fn own_part(uri: &str) -> Option<usize> {
    let all = uri.char_indices();
    place_after_begin(all.map(|(at, character)| (at + character.len_utf8(), character)))
}

/// Returns the place after the begin of a URI of one server alone, in a string as JSON text.
fn own_part_of_json(string: &str) -> Option<usize> {
    let mut at = 1;
    place_after_begin(std::iter::from_fn(|| {
        let rest = string.get(at..)?;
        let mut all = rest.chars();
        let (length, character) = match all.next()? {
            '\\' => match all.next()? {
                'u' => {
                    let code = u32::from_str_radix(rest.get(2..6)?, 16).ok()?;
                    (6, char::from_u32(code)?)
                }
                '/' => (2, '/'),
                'b' | 'f' | 'n' | 'r' | 't' => (2, ' '),
                other => (2, other),
            },
            other => (other.len_utf8(), other),
        };
        at += length;
        Some((at, character))
    }))
}

/// Returns the place after the begin of a URI of one server alone; `characters` are those of the URI, each with the place
/// after it.
fn place_after_begin(characters: impl Iterator<Item = (usize, char)>) -> Option<usize> {
    let mut begin = String::new();
    for (after, character) in characters {
        if character <= ' ' {
            continue;
        }
        begin.push(character.to_ascii_lowercase());
        if BEGINS.contains(&begin.as_str()) {
            return Some(after);
        }
        if !BEGINS.iter().any(|known| known.starts_with(&begin)) {
            return None;
        }
    }
    None
}

/// Returns the length of the string at the begin of JSON text, with its quotation marks.
fn string_length(text: &str) -> usize {
    let (bytes, mut at) = (text.as_bytes(), 1);
    while let Some(found) = bytes[at..]
        .iter()
        .position(|byte| matches!(byte, b'"' | b'\\'))
    {
        at += found + 1;
        match bytes[at - 1] {
            b'"' => return at,
            // The escaped character.
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The form for clients names the server, and leads back to exactly the URI of the server.
    #[test]
    fn uris_lead_back_to_their_servers() {
        let uris = ServerUris::of_one("files");
        for (own, for_clients) in [
            ("ui://page.html", "ui://files/page.html"),
            ("ui://web/page", "ui://files/web/page"),
            ("UI:///a//b?c#d", "UI://files//a//b?c#d"),
            ("skill://x/SKILL.md", "skill://files/x/SKILL.md"),
            ("skill://{+path}", "skill://files/{+path}"),
            ("ui://../web/page", "ui://files/../web/page"),
            (" u\ti://x", " u\ti://files/x"),
            ("ui://", "ui://files/"),
        ] {
            assert_eq!(uris.uri(own), for_clients);
            assert_eq!(split(for_clients), Some(("files", own.to_owned())));
            assert_eq!(ServerUris::unchanged().uri(own), own);
        }
        for other in [
            "file:///x",
            "uix://x",
            "ui:x",
            "ui:/x",
            "http://ui://x",
            "ui",
            "",
        ] {
            assert_eq!(uris.uri(other), other);
            assert_eq!(split(other), None, "{other}");
        }
        assert_eq!(split("ui://files"), None, "no server without a path");
    }

    /// URIs are changed where a member or `_meta` has them, however they are spelt, and nowhere else.
    #[test]
    fn uris_are_changed_where_they_are() {
        let uris = ServerUris::of_one("f");
        for (before, after) in [
            (r#"{"uri":"ui://x"}"#, r#"{"uri":"ui://f/x"}"#),
            (r#"{ "uri" : "ui:\/\/x" }"#, r#"{ "uri" : "ui:\/\/f/x" }"#),
            (
                r#"{"\u0075ri":"\u0075I:\u002f/x\ud800"}"#,
                r#"{"\u0075ri":"\u0075I:\u002f/f/x\ud800"}"#,
            ),
            (
                r#"{"content":[{"text":"\"uri\":\"ui://x"},{"resource":{"uri":"\n ui://x"}}],"uriTemplate":"ui://{x}"}"#,
                r#"{"content":[{"text":"\"uri\":\"ui://x"},{"resource":{"uri":"\n ui://f/x"}}],"uriTemplate":"ui://f/{x}"}"#,
            ),
            (
                r#"{"_meta":{"ui":{"resourceUri":"ui://x","n":1},"ui/resourceUri":"ui://x","all":["skill://y",["ui://z"]]},"name":"ui://x"}"#,
                r#"{"_meta":{"ui":{"resourceUri":"ui://f/x","n":1},"ui/resourceUri":"ui://f/x","all":["skill://f/y",["ui://f/z"]]},"name":"ui://x"}"#,
            ),
            (
                r#"{"structuredContent":{"uri":"ui://x","_meta":{"a":"ui://x"}},"a":{"b":[{"uri":"ui://x"}]}}"#,
                r#"{"structuredContent":{"uri":"ui://x","_meta":{"a":"ui://x"}},"a":{"b":[{"uri":"ui://f/x"}]}}"#,
            ),
            (
                r#"{"uri":{"uri":"ui://x","x":"ui://x"},"z":["ui://x"]}"#,
                r#"{"uri":{"uri":"ui://f/x","x":"ui://x"},"z":["ui://x"]}"#,
            ),
        ] {
            let changed = uris.object(before.parse().expect(before));
            assert_eq!(changed.text(), after);
            let unchanged = ServerUris::unchanged().object(before.parse().expect(before));
            assert_eq!(unchanged.text(), before);
        }
        for unchanged in [
            r#"{"uri":"file:///x","_meta":{"a":"ui","b":"ui:\\/"}}"#,
            r#"{"text":"ui://x","inputSchema":{"uri":"ui://x"}}"#,
            r#"{"frontmatter":{"uri":"skill://x","metadata":{"_meta":"ui://x"}}}"#,
            "{}",
        ] {
            assert!(uris.changed(unchanged).is_none(), "{unchanged}");
        }
    }
}
