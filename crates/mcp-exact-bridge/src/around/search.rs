//! Search instead of a list: the two tools that clients see in the place of all others, and which others they see all the same.

use mcp_exact_session::{Json, JsonObject, PeerError};

use crate::around::access::matches;

/// Name of the tool that finds tools by words.
pub(crate) const SEARCH: &str = "search_tools";
/// Name of the tool that calls another one by its name.
pub(crate) const CALL: &str = "call_tool";

/// Maximum number of tools in one answer.
const MAX_RESULTS: usize = 50;

/// Search for tools, for clients that shall not list all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolSearch {
    /// Patterns of the tools that clients list besides the search, by their names for clients; `*` matches any characters.
    pub always: Vec<String>,
    /// Number of tools in an answer, if the client names no other one; at most 50.
    pub results: usize,
}

impl Default for ToolSearch {
    fn default() -> Self {
        Self {
            always: Vec::new(),
            results: 5,
        }
    }
}

/// Request of a client to find tools.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) words: String,
    pub(crate) most: usize,
}

impl ToolSearch {
    /// Names of both tools that clients see; no other tool can have one of them.
    pub const NAMES: [&str; 2] = [SEARCH, CALL];

    /// Returns true if clients list a tool besides the search.
    pub(crate) fn lists(&self, name: &str) -> bool {
        self.always.iter().any(|pattern| matches(pattern, name))
    }

    /// Returns the query of a call of the search.
    ///
    /// # Errors
    /// The error for the client if its arguments are wrong.
    pub(crate) fn query(&self, params: Option<&JsonObject>) -> Result<Query, PeerError> {
        let arguments = params.and_then(|params| params.view().find("arguments")?.object());
        let [words, most] = arguments.unwrap_or_default().find_each(["query", "limit"]);
        let words = words.and_then(|words| words.as_str());
        let words =
            words.ok_or_else(|| wrong("`query` must be a string: a few words about the tool"))?;
        let most = match most {
            None => self.results,
            Some(most) => {
                let most = most.text().parse().ok().filter(|most| *most > 0);
                most.ok_or_else(|| wrong("`limit` must be an integer above 0"))?
            }
        };
        Ok(Query {
            words: words.into_owned(),
            most: most.min(MAX_RESULTS),
        })
    }
}

/// Returns the params of the call that a call of [`CALL`] makes.
///
/// # Errors
/// The error for the client if its arguments are wrong.
pub(crate) fn called_params(params: &JsonObject) -> Result<JsonObject, PeerError> {
    let arguments = params
        .view()
        .find("arguments")
        .and_then(|arguments| arguments.object());
    let [name, arguments] = arguments
        .unwrap_or_default()
        .find_each(["name", "arguments"]);
    let name = name.and_then(|name| name.as_str());
    let name = name.ok_or_else(|| wrong("`name` in the arguments must be the name of a tool"))?;
    if name == CALL {
        return Err(wrong(
            "this tool cannot call itself; name the tool that it shall call",
        ));
    }
    let arguments = match arguments {
        None => None,
        Some(arguments) => {
            let object = arguments.object();
            Some(object.ok_or_else(|| wrong("`arguments` in the arguments must be an object"))?)
        }
    };
    let others = params.view().iter();
    let others = others.filter(|(name, _)| name != "name" && name != "arguments");
    let mut called: JsonObject = others
        .map(|(name, value)| (name, value.to_json()))
        .collect();
    called.insert("name", Json::string(&name));
    if let Some(arguments) = arguments {
        called.insert("arguments", arguments.to_object());
    }
    Ok(called)
}

/// Returns true if the name is that of one of both tools.
pub(crate) fn is_own(name: &str) -> bool {
    name == SEARCH || name == CALL
}

fn wrong(words: &str) -> PeerError {
    PeerError::invalid_params(words)
}

/// Returns the definitions of both tools in the newest revision.
pub(crate) fn definitions() -> impl Iterator<Item = JsonObject> {
    [SEARCH_DEFINITION, CALL_DEFINITION]
        .into_iter()
        .filter_map(|definition| definition.parse().ok())
}

const SEARCH_DEFINITION: &str = r#"{"name":"search_tools","title":"Search tools","description":"Finds tools by words. There are more tools here than are listed. Returns the names, descriptions and input schemas of the tools that fit best; call them with call_tool.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What the tool shall do, in a few words, such as: read a file"},"limit":{"type":"integer","description":"Maximum number of tools","minimum":1,"maximum":50}},"required":["query"]},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#;

const CALL_DEFINITION: &str = r#"{"name":"call_tool","title":"Call a tool","description":"Calls a tool that search_tools has found, and returns its result.","inputSchema":{"type":"object","properties":{"name":{"type":"string","description":"Name of the tool"},"arguments":{"type":"object","description":"Arguments, as the input schema of the tool describes them","properties":{},"additionalProperties":true}},"required":["name"]}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    /// The call that is made has the members of the request beside its own name and arguments.
    #[test]
    fn calls_keep_other_members() {
        let called = |params: &str| {
            let called = called_params(&params.parse().expect(params));
            called
                .map(|called| called.text().to_owned())
                .map_err(|error| error.message().to_owned())
        };
        assert_eq!(
            called(
                r#"{"_meta":{"a":1},"name":"call_tool","arguments":{"name":"x","arguments":{"b":1e400}},"task":{}}"#
            ),
            Ok(r#"{"_meta":{"a":1},"task":{},"name":"x","arguments":{"b":1e400}}"#.to_owned())
        );
        assert_eq!(
            called(r#"{"arguments":{"name":"x"}}"#),
            Ok(r#"{"name":"x"}"#.to_owned())
        );
        for wrong in [
            "{}",
            r#"{"name":"x"}"#,
            r#"{"arguments":{"name":1}}"#,
            r#"{"arguments":{"name":"x","arguments":[]}}"#,
            r#"{"arguments":{"name":"call_tool"}}"#,
        ] {
            called(wrong).expect_err(wrong);
        }
    }

    /// Both definitions are JSON.
    #[test]
    fn definitions_are_complete() {
        assert_eq!(definitions().count(), 2);
    }
}
