//! Response to a request of the doctor, and what a request or a finding is about.

use mcp_exact_revisions::MethodId;
use serde_json::Value;

use crate::value;

/// Response to a request of the doctor, or the reason why there is none.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The response has a result.
    Result(Value),
    /// The response is an error with this code and this error object.
    Error(i64, Value),
    /// No response was received within the time limit.
    Timeout,
    /// The server has closed the connection.
    End,
    /// The response has an HTTP status and no message.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP has it"))]
    Status(u16),
}

impl Answer {
    /// Returns the result if the request succeeded.
    pub fn result(self) -> Option<Value> {
        match self {
            Self::Result(result) => Some(result),
            _ => None,
        }
    }

    /// Returns true if there is no response, although the connection may be well.
    pub fn is_silence(&self) -> bool {
        match self {
            Self::Timeout => true,
            // A refusal may have a status alone.
            Self::Status(status) => !(400..500).contains(status),
            Self::Result(_) | Self::Error(..) | Self::End => false,
        }
    }

    /// Describes the response in a few words.
    pub fn to_line(&self) -> String {
        match self {
            Self::Result(_) => "a result".to_owned(),
            Self::Error(code, _) => format!("the error {code}"),
            Self::Timeout => "silence".to_owned(),
            Self::End => "the end of the server".to_owned(),
            Self::Status(status) => format!("status {status}"),
        }
    }
}

/// Returns the tool, prompt or resource that a request names.
pub fn named_subject(method: &str, params: &Value) -> Option<String> {
    let (kind, name) = match MethodId::from_name(method) {
        MethodId::ToolsCall => ("tool", &params["name"]),
        MethodId::PromptsGet => ("prompt", &params["name"]),
        MethodId::ResourcesRead => ("resource", &params["uri"]),
        _ => return None,
    };
    name.as_str().map(|name| format!("{kind} `{name}`"))
}

/// Returns the tool, prompt or resource of a list that a JSON pointer refers to.
pub fn named_entry(message: value::Value<'_>, pointer: &str) -> Option<String> {
    let mut tokens = pointer.split('/').skip(1);
    if tokens.next() != Some("result") {
        return None;
    }
    let list = tokens.next()?;
    let kind = match list {
        "tools" => "tool",
        "prompts" => "prompt",
        "resources" => "resource",
        "resourceTemplates" => "resource template",
        _ => return None,
    };
    let index: usize = tokens.next()?.parse().ok()?;
    let entries = message.get("result").get(list).items();
    let entry = value::Value::of(entries.get(index)?);
    let name = entry.get("name").as_str().or(entry.get("uri").as_str())?;
    Some(format!("{kind} `{name}`"))
}

/// Returns true for JSON text, which is UTF-8.
pub fn is_json(bytes: &[u8]) -> bool {
    let text = std::str::from_utf8(bytes).ok();
    text.is_some_and(|text| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok())
}
