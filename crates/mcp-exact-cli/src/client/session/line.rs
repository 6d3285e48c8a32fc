//! Lines of a session: words with quotes, or a JSON object.

use anyhow::{Context, anyhow, bail};
use mcp_exact_revisions::method;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Lines that a session understands, for its help.
pub const LINES: &str = "\
TOOL NAME=VALUE …         call a tool, also as: call TOOL …
read URI                  read a resource
prompt NAME NAME=VALUE …  get a prompt
complete prompt NAME ARGUMENT [VALUE]      ask the server for values of an argument
complete template URI VARIABLE [VALUE]     ask the server for values of a variable
tools, resources, templates, prompts       list what the server has
{\"tool\": NAME, \"arguments\": {…}}           call a tool
{\"method\": METHOD, \"params\": {…}}          send any request; its result is printed as JSON, converted to the newest revision
help, quit";

/// What a line asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// Nothing, or a comment.
    Nothing,
    /// The call of a tool with assignments.
    Call(String, Vec<String>),
    /// The call of a tool with all arguments.
    CallWith(String, Value),
    /// The contents of a resource.
    Read(String),
    /// A prompt with assignments.
    Prompt(String, Vec<String>),
    /// Completions of an argument of a prompt, or of a variable of a template.
    Complete {
        /// True for a prompt.
        is_prompt: bool,
        /// Name of the prompt, or URI template.
        of: String,
        /// Name of the argument or variable.
        name: String,
        /// Beginning of the value.
        value: String,
    },
    /// A list of the server, by its method.
    List(&'static str),
    /// A request.
    Request(String, Option<Value>),
    /// The lines that there are.
    Help,
    /// The end of the session.
    Quit,
}

/// Line that is a JSON object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonLine {
    tool: Option<String>,
    arguments: Option<Map<String, Value>>,
    method: Option<String>,
    params: Option<Map<String, Value>>,
}

/// Parses a line.
pub fn parse(line: &str) -> anyhow::Result<Line> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(Line::Nothing);
    }
    if line.starts_with('{') {
        return parse_json(line);
    }
    let mut words = split(line)?.into_iter();
    let first = words.next().unwrap_or_default();
    let rest: Vec<String> = words.collect();
    match (first.as_str(), rest.as_slice()) {
        ("tools", []) => Ok(Line::List(method::TOOLS_LIST)),
        ("resources", []) => Ok(Line::List(method::RESOURCES_LIST)),
        ("templates", []) => Ok(Line::List(method::RESOURCES_TEMPLATES_LIST)),
        ("prompts", []) => Ok(Line::List(method::PROMPTS_LIST)),
        ("help" | "?", []) => Ok(Line::Help),
        ("quit" | "exit", []) => Ok(Line::Quit),
        ("read", [uri]) => Ok(Line::Read(uri.clone())),
        ("prompt", [name, values @ ..]) => Ok(Line::Prompt(name.clone(), values.to_vec())),
        ("complete", [kind, of, name, value @ ..]) if value.len() < 2 => Ok(Line::Complete {
            is_prompt: match kind.as_str() {
                "prompt" => true,
                "template" => false,
                _ => bail!("write `complete prompt …` or `complete template …`"),
            },
            of: of.clone(),
            name: name.clone(),
            value: value.first().cloned().unwrap_or_default(),
        }),
        ("call", [tool, values @ ..]) => Ok(Line::Call(tool.clone(), values.to_vec())),
        _ => Ok(Line::Call(first, rest)),
    }
}

/// Parses a line that is a JSON object.
fn parse_json(line: &str) -> anyhow::Result<Line> {
    let parsed: JsonLine = serde_json::from_str(line)
        .context("write {\"tool\": …, \"arguments\": {…}} or {\"method\": …, \"params\": {…}}")?;
    match parsed {
        JsonLine {
            tool: Some(tool),
            method: None,
            params: None,
            arguments,
        } => Ok(Line::CallWith(tool, arguments.unwrap_or_default().into())),
        JsonLine {
            method: Some(method),
            tool: None,
            arguments: None,
            params,
        } => Ok(Line::Request(method, params.map(Value::from))),
        _ => bail!("name either a `tool` with its `arguments`, or a `method` with its `params`"),
    }
}

/// Returns the length of the JSON list or object at the beginning of a text, with its brackets; `None` if it has no end.
fn json_length(text: &str) -> Option<usize> {
    let (mut open, mut is_string, mut is_escaped) = (Vec::new(), false, false);
    for (place, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_string => is_escaped = true,
            '"' => is_string = !is_string,
            _ if is_string => {}
            '[' => open.push(']'),
            '{' => open.push('}'),
            ']' | '}' => {
                if open.pop() != Some(letter) {
                    return None;
                }
                if open.is_empty() {
                    return Some(place + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits a line into words, which quotes and backslashes may join. JSON after `NAME=` keeps its quotes and spaces.
pub fn split(line: &str) -> anyhow::Result<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let is_value = |word: &String| word.find('=').is_some_and(|at| at + 1 == word.len());
        if let (None, '[' | '{', Some(word)) = (quote, letter, &mut word)
            && is_value(word)
        {
            let rest = &line[line.len() - letters.as_str().len() - 1..];
            if let Some(length) = json_length(rest) {
                word.push_str(&rest[..length]);
                letters = rest[length..].chars();
                continue;
            }
        }
        match (quote, letter) {
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (Some(open), letter) if letter == open => quote = None,
            (None | Some('"'), '\\') => {
                let next = letters.next();
                let next = next.ok_or_else(|| anyhow!("the line ends after a backslash"))?;
                word.get_or_insert_default().push(next);
            }
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        bail!("the line ends inside of quotes");
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Words may be quoted, and empty.
    #[test]
    fn words_are_split() {
        let words = split(r#"echo message='two  words' b="a \"q\"" c=\ d e='' "#).expect("words");
        assert_eq!(
            words,
            ["echo", "message=two  words", "b=a \"q\"", "c= d", "e="]
        );
        let words = split(r#"add a=[{"n":"it's \" ]", "c": [1, 2]}] b={"x": "y z"} c=[a d=[}"#);
        assert_eq!(
            words.expect("words"),
            [
                "add",
                r#"a=[{"n":"it's \" ]", "c": [1, 2]}]"#,
                r#"b={"x": "y z"}"#,
                "c=[a",
                "d=[}"
            ]
        );
        assert!(split("a 'b").is_err());
        assert!(split("a \\").is_err());
    }

    /// A line is a word of the session with its form, and otherwise the call of a tool.
    #[test]
    fn lines_are_told_apart() {
        let call = |tool: &str, values: &[&str]| {
            Line::Call(
                tool.to_owned(),
                values.iter().map(|value| (*value).to_owned()).collect(),
            )
        };
        for (text, expected) in [
            ("  # comment", Line::Nothing),
            ("tools", Line::List("tools/list")),
            ("read x:", Line::Read("x:".to_owned())),
            ("read a=1 b=2", call("read", &["a=1", "b=2"])),
            ("call tools", call("tools", &[])),
            ("echo message=a", call("echo", &["message=a"])),
            (
                r#"{"tool": "a"}"#,
                Line::CallWith("a".to_owned(), json!({})),
            ),
            (
                r#"{"method": "ping"}"#,
                Line::Request("ping".to_owned(), None),
            ),
        ] {
            assert_eq!(parse(text).expect(text), expected);
        }
        for wrong in [
            r#"{"tool": "a", "method": "b"}"#,
            "{}",
            "{",
            "complete x y z",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
