//! Parameters of tools that are mirrored into headers (2026-07-28, `basic/transports/streamable-http`, "Custom Headers from
//! Tool Parameters").
//!
//! Takes a tool's input schema and the arguments of a call; gives headers, or why the tool or the call is refused.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use mcp_exact_wire::{Integer, Json, JsonObject, JsonRef, Kind, ObjectRef, from_str};

use crate::error::BadTool;
use crate::header_values::{decode_value, differs, encode_value, single};
use crate::http_request::HttpRequest;
use crate::refusal::Refusal;

const ANNOTATION: &str = "x-mcp-header";
/// The largest integer that every JSON reader keeps.
const SAFE: i64 = (1 << 53) - 1;

/// Gives the header-mirrored parameters of a server's tools.
pub trait ToolHeaders: fmt::Debug + Send + Sync {
    /// Returns what [`mirrored`] gives for the input schema of a tool; `None` for a tool that does not exist.
    fn of_tool(&self, name: &str) -> Option<Arc<[Mirrored]>>;
}

/// Parameter that is mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrored {
    /// Name of the header, with its prefix.
    pub header: String,
    /// Names of the properties that lead to the parameter.
    pub path: Vec<String>,
}

/// Returns the parameters of a tool that are mirrored.
///
/// # Errors
/// [`BadTool`]: a client leaves the tool out of its list.
pub fn mirrored(input_schema: &JsonObject) -> Result<Vec<Mirrored>, BadTool> {
    let mut found = Vec::new();
    visit(input_schema.view(), Some(&mut Vec::new()), &mut found)?;
    let mut names = BTreeSet::new();
    for mirrored in &found {
        if !names.insert(mirrored.header.to_ascii_lowercase()) {
            return Err(BadTool::Twice(mirrored.header.clone()));
        }
    }
    Ok(found)
}

/// Returns false if a text holds no annotation: then its content need not be visited, however deep it is.
fn may_annotate(text: &str) -> bool {
    text.contains(ANNOTATION) || text.contains("\\u")
}

/// Visits a schema; `path` leads to it if only `properties` do. Nesting is limited by the depth of messages.
fn visit(
    schema: ObjectRef<'_>,
    mut path: Option<&mut Vec<String>>,
    found: &mut Vec<Mirrored>,
) -> Result<(), BadTool> {
    if !may_annotate(schema.text()) {
        return Ok(());
    }
    for (name, value) in schema.iter() {
        match &*name {
            ANNOTATION => match path.as_deref() {
                Some(path) if !path.is_empty() => found.push(annotated(schema, value, path)?),
                _ => return Err(BadTool::Place),
            },
            "properties" => {
                let properties = value.object().ok_or(BadTool::Schema)?;
                for (property, value) in properties.iter() {
                    let Some(inner) = value.object() else {
                        continue;
                    };
                    match path.as_deref_mut() {
                        Some(path) => {
                            path.push(property.into_owned());
                            visit(inner, Some(path), found)?;
                            path.pop();
                        }
                        None => visit(inner, None, found)?,
                    }
                }
            }
            // Data, and no schemas.
            "const" | "default" | "enum" | "examples" => {}
            // Names, and schemas behind them.
            "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                for (_, value) in value.object().unwrap_or_default().iter() {
                    visit_elsewhere(value, found)?;
                }
            }
            _ => visit_elsewhere(value, found)?,
        }
    }
    Ok(())
}

/// Visits a value that may be or hold schemas which no parameter is reached through.
fn visit_elsewhere(value: JsonRef<'_>, found: &mut Vec<Mirrored>) -> Result<(), BadTool> {
    if !may_annotate(value.text()) {
        return Ok(());
    }
    match (value.kind(), value.object()) {
        (_, Some(inner)) => visit(inner, None, found),
        (Kind::Array, None) => {
            let items: Vec<Json> = value.decode_as().map_err(|_| BadTool::Schema)?;
            items
                .iter()
                .try_for_each(|item| visit_elsewhere(item.view(), found))
        }
        _ => Ok(()),
    }
}

fn annotated(
    schema: ObjectRef<'_>,
    value: JsonRef<'_>,
    path: &[String],
) -> Result<Mirrored, BadTool> {
    let bad = || BadTool::Name(value.text().to_owned());
    let name = value.as_str().ok_or_else(bad)?.into_owned();
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(bad());
    }
    let kind = schema.find("type");
    let kinds: Vec<String> = match &kind {
        Some(kind) if kind.kind() == Kind::Array => from_str(kind.text()).unwrap_or_default(),
        Some(kind) => from_str(kind.text()).into_iter().collect(),
        None => Vec::new(),
    };
    // What may be null is left out then.
    let mut kinds = kinds.iter().filter(|kind| *kind != "null");
    match (kinds.next().map(String::as_str), kinds.next()) {
        (Some("string" | "integer" | "boolean"), None) => Ok(Mirrored {
            header: format!("Mcp-Param-{name}"),
            path: path.to_vec(),
        }),
        _ => Err(BadTool::Type(name)),
    }
}

/// A character of an HTTP token (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Value of a mirrored parameter, before it is encoded; `None` if it is absent or null.
fn value_of(
    mirrored: &Mirrored,
    arguments: Option<&JsonObject>,
) -> Result<Option<String>, Refusal> {
    let mut value = arguments.map(|arguments| arguments.as_json().view());
    for name in &mirrored.path {
        let object = value.and_then(JsonRef::object);
        value = object.and_then(|object| object.find(name));
    }
    let unfit = || {
        let text = format!("the parameter of `{}` cannot be mirrored", mirrored.header);
        Refusal::InvalidParams(text)
    };
    let Some(value) = value else {
        return Ok(None);
    };
    match value.kind() {
        Kind::Null => Ok(None),
        Kind::String => {
            let text = value.as_str().ok_or_else(unfit)?;
            Ok(Some(text.into_owned()))
        }
        Kind::Boolean => Ok(Some(value.text().to_owned())),
        Kind::Number => {
            let number: Integer = value.decode_as().map_err(|_| unfit())?;
            let safe = number
                .as_i64()
                .filter(|number| (-SAFE..=SAFE).contains(number));
            safe.map(|number| Some(number.to_string()))
                .ok_or_else(unfit)
        }
        Kind::Array | Kind::Object => Err(unfit()),
    }
}

/// Returns the headers that a call of a tool carries, encoded.
///
/// # Errors
/// [`Refusal::InvalidParams`] if a value cannot be mirrored, such as an integer beyond ±(2^53−1).
pub fn param_headers(
    tool: &[Mirrored],
    arguments: Option<&JsonObject>,
) -> Result<Vec<(String, String)>, Refusal> {
    let mut headers = Vec::new();
    for mirrored in tool {
        if let Some(value) = value_of(mirrored, arguments)? {
            headers.push((mirrored.header.clone(), encode_value(&value)));
        }
    }
    Ok(headers)
}

/// Checks that the headers of a call mirror its arguments.
///
/// # Errors
/// [`Refusal::HeaderMismatch`] if they do not.
pub fn check_params(
    http: &HttpRequest,
    tool: &[Mirrored],
    arguments: Option<&JsonObject>,
) -> Result<(), Refusal> {
    for mirrored in tool {
        let body = value_of(mirrored, arguments)?;
        let header = single(http, &mirrored.header)?.map(str::trim);
        let header = match header.map(decode_value) {
            None => None,
            Some(Some(value)) => Some(value),
            Some(None) => return Err(mismatch(mirrored)),
        };
        // Integers are compared as numbers: `42.0` is `42`.
        let number = |text: &str| from_str::<Integer>(text).ok().and_then(|n| n.as_i64());
        let same = match (&header, &body) {
            (Some(header), Some(body)) => {
                header == body || number(header).is_some_and(|n| number(body) == Some(n))
            }
            (None, None) => true,
            _ => false,
        };
        if !same {
            return Err(mismatch(mirrored));
        }
    }
    Ok(())
}

fn mismatch(mirrored: &Mirrored) -> Refusal {
    differs(&mirrored.header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::code;

    fn object(text: &str) -> JsonObject {
        text.parse().expect(text)
    }

    fn tool(properties: &str) -> Result<Vec<Mirrored>, BadTool> {
        mirrored(&object(&format!(
            r#"{{"type":"object","properties":{properties}}}"#
        )))
    }

    #[test]
    fn hdr_params_are_found_through_properties_only() {
        let found = tool(
            r#"{"region":{"type":"string","x-mcp-header":"Region"},
                "inner":{"type":"object","properties":{"n":{"type":["integer","null"],"x-mcp-header":"N"}}},
                "x-mcp-header":{"type":"string","default":{"x-mcp-header":1}}}"#,
        );
        let found = found.expect("a good tool");
        let headers: Vec<&str> = found.iter().map(|mirrored| &*mirrored.header).collect();
        assert_eq!(headers, ["Mcp-Param-Region", "Mcp-Param-N"]);
        assert_eq!(found[1].path, ["inner", "n"]);
    }

    #[test]
    fn hdr_params_that_break_a_rule_make_a_bad_tool() {
        let annotation = |value: &str| {
            tool(&format!(
                r#"{{"a":{{"type":"string","x-mcp-header":{value}}}}}"#
            ))
        };
        for bad in ["\"\"", "\"a b\"", "\"a\\n\"", "5", "\"\u{e9}\"", "\"a:b\""] {
            assert!(matches!(annotation(bad), Err(BadTool::Name(_))), "{bad}");
        }
        let twice = r#"{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}"#;
        assert!(matches!(tool(twice), Err(BadTool::Twice(_))));
        for kind in [
            "\"number\"",
            "\"object\"",
            "[\"string\",\"integer\"]",
            "null",
        ] {
            let bad = format!(r#"{{"a":{{"type":{kind},"x-mcp-header":"A"}}}}"#);
            assert!(matches!(tool(&bad), Err(BadTool::Type(_))), "{kind}");
        }
        let inner = r#"{"type":"string","x-mcp-header":"A"}"#;
        for place in [
            format!(r#"{{"a":{{"type":"array","items":{inner}}}}}"#),
            format!(r#"{{"a":{{"anyOf":[{inner}]}}}}"#),
            format!(r#"{{"a":{{"if":{{"properties":{{"b":{inner}}}}}}}}}"#),
            format!(r#"{{"a":{{"$defs":{{"b":{inner}}}}}}}"#),
        ] {
            assert_eq!(tool(&place), Err(BadTool::Place), "{place}");
        }
        assert_eq!(mirrored(&object(inner)), Err(BadTool::Place));
        // What holds no annotation is no reason to refuse a tool, however deep it is.
        let nested = |inner: &str| {
            let open = r#"{"anyOf":[{"properties":{"a":"#.repeat(60);
            object(&format!("{open}{inner}{}", "}}]}".repeat(60)))
        };
        assert_eq!(mirrored(&nested("{}")), Ok(Vec::new()));
        assert_eq!(mirrored(&nested(inner)), Err(BadTool::Place));
    }

    #[test]
    fn hdr_params_go_there_and_back() {
        let tool = tool(
            r#"{"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},
                "b":{"type":"boolean","x-mcp-header":"B"},"n":{"type":"string","x-mcp-header":"N"}}"#,
        );
        let tool = tool.expect("a good tool");
        let arguments = object(r#"{"s":"\u00e9","i":42.0,"b":true,"n":null}"#);
        let headers = param_headers(&tool, Some(&arguments)).expect("fit");
        let expected = [
            ("Mcp-Param-S", "=?base64?w6k=?="),
            ("Mcp-Param-I", "42"),
            ("Mcp-Param-B", "true"),
        ];
        let expected: Vec<_> = expected
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect();
        assert_eq!(headers, expected);
        let check = |headers: Vec<(String, String)>| {
            check_params(&HttpRequest::new(headers), &tool, Some(&arguments))
                .map_err(|e| e.error().code())
        };
        assert_eq!(check(headers.clone()), Ok(()));
        let mut other = headers.clone();
        other[1].1 = "42.0".into();
        assert_eq!(check(other), Ok(()));
        for at in 0..3 {
            let mut wrong = headers.clone();
            wrong[at].1 = "x".into();
            assert_eq!(check(wrong), Err(Some(code::HEADER_MISMATCH)));
            let mut less = headers.clone();
            less.remove(at);
            assert_eq!(check(less), Err(Some(code::HEADER_MISMATCH)));
        }
        let mut more = headers;
        more.push(("mcp-param-n".into(), "null".into()));
        assert_eq!(check(more), Err(Some(code::HEADER_MISMATCH)));
        let large = object(r#"{"i":9007199254740992}"#);
        assert!(param_headers(&tool, Some(&large)).is_err());
        assert_eq!(param_headers(&tool, None), Ok(Vec::new()));
    }
}
