//! Tool parameters that are mirrored into HTTP headers (2026-07-28, `basic/transports/streamable-http`, "Custom Headers from Tool
//! Parameters").
//!
//! The input schema of a tool determines the parameters, and the arguments of a call determine the header values.

use std::fmt;
use std::sync::Arc;

use mcp_exact_wire::order::{contains, duplicate};
use mcp_exact_wire::{
    DecodeFailed, Integer, JsonObject, JsonRef, Kind, ReadResult, Reader, from_str,
};

use crate::error::BadTool;
use crate::header_values::{decode_value, encode_value, header_differs, single_value};
use crate::http_request::HttpRequest;
use crate::refusal::Refusal;

/// Schema keyword that annotates a mirrored parameter.
const HEADER_ANNOTATION: &str = "x-mcp-header";
/// Start of a Unicode escape; an escaped name may be the name of the annotation.
const UNICODE_ESCAPE: &str = "\\u";
/// Minimum size of a heap allocation in bytes.
const MIN_ALLOCATION_SIZE: usize = 16;
/// Largest integer that every JSON reader represents exactly.
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// Provides the header-mirrored parameters of a server's tools.
pub trait ToolHeaders: fmt::Debug + Send + Sync {
    /// Returns the mirrored parameters of the tool with this name, as [`mirrored_params`] determines them; `None` if
    /// there is no such tool.
    fn params_of(&self, name: &str) -> Option<Arc<[MirroredParam]>>;
}

/// Tool parameter that is mirrored into a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirroredParam {
    /// Full name of the header, including the prefix.
    pub header: String,
    /// Names of the properties that lead to the parameter.
    pub path: Vec<String>,
}

impl MirroredParam {
    /// Returns the approximate memory size in bytes; a short string counts as the smallest allocation.
    pub(crate) fn size(&self) -> usize {
        let names = self.path.iter();
        let path = names.map(|name| size_of::<String>() + name.len().max(MIN_ALLOCATION_SIZE));
        size_of::<Self>() + self.header.len().max(MIN_ALLOCATION_SIZE) + path.sum::<usize>()
    }
}

/// Returns the mirrored parameters of a tool.
///
/// # Errors
/// [`BadTool`] if an annotation is invalid; a client removes the tool from its list.
pub fn mirrored_params(input_schema: &JsonObject) -> Result<Vec<MirroredParam>, BadTool> {
    let found = mirrored_params_within(input_schema, usize::MAX)?;
    Ok(found.unwrap_or_default())
}

/// Returns the mirrored parameters of a remote peer's tool; `None` if the parameters need more than `room` bytes.
///
/// # Errors
///
/// [`BadTool`] if an annotation is invalid; a client removes the tool from its list.
pub(crate) fn mirrored_params_within(
    input_schema: &JsonObject,
    room: usize,
) -> Result<Option<Vec<MirroredParam>>, BadTool> {
    // A schema without annotations never causes a refusal, however deep its nesting is.
    if !may_have_annotation(input_schema.text()) {
        return Ok(Some(Vec::new()));
    }
    let mut visitor = SchemaVisitor::new(input_schema.text(), room);
    visitor.visit(Some(&mut Vec::new()))?;
    if visitor.exceeds_room {
        return Ok(None);
    }
    let names = visitor.params.iter();
    let names: Vec<String> = names.map(|one| one.header.to_ascii_lowercase()).collect();
    match duplicate(names.len(), &|at| &names[at]) {
        Some(name) => {
            let again = names.iter().rposition(|other| other == name);
            let again = again.map(|at| visitor.params[at].header.clone());
            Err(BadTool::Duplicate(again.unwrap_or_default()))
        }
        None => Ok(Some(visitor.params)),
    }
}

/// Returns false if the JSON text certainly contains no annotation.
fn may_have_annotation(text: &str) -> bool {
    contains(text, HEADER_ANNOTATION) || contains(text, UNICODE_ESCAPE)
}

/// Visitor of a schema and its subschemas, in one pass over the JSON text. The depth limit of messages limits the nesting.
struct SchemaVisitor<'a> {
    /// The JSON text of the schema.
    text: &'a str,
    /// Reader of the text.
    reader: Reader<'a>,
    /// Mirrored parameters that were found so far.
    params: Vec<MirroredParam>,
    /// Number of bytes that are available for further parameters.
    room: usize,
    /// True if parameters were omitted because there was no room.
    exceeds_room: bool,
    /// End offset of the searched part of the text.
    searched_until: usize,
    /// Last offset in the searched part at which an annotation may start.
    last_annotation: Option<usize>,
}

impl<'a> SchemaVisitor<'a> {
    /// Creates a visitor at the beginning of the text; `room` is the number of bytes that the parameters may use.
    fn new(text: &'a str, room: usize) -> Self {
        Self {
            text,
            reader: Reader::of_checked(text),
            params: Vec::new(),
            room,
            exceeds_room: false,
            searched_until: 0,
            last_annotation: None,
        }
    }

    /// Visits a schema; `path` is the path of the schema if it consists of `properties` only.
    fn visit(&mut self, mut path: Option<&mut Vec<String>>) -> Result<(), BadTool> {
        let start = self.reader.value_start();
        let (mut kind, mut names, mut is_bad) = (None, Vec::new(), false);
        let mut first = true;
        while let Some(name) = self.reader.open_name(&mut first).map_err(syntax_error)? {
            match &*name {
                HEADER_ANNOTATION => {
                    let value = self.reader.json().map_err(syntax_error)?;
                    match path.as_deref() {
                        Some(path) if !path.is_empty() => names.push(header_name(value.view())?),
                        _ => return Err(BadTool::Place),
                    }
                }
                "type" => {
                    let start = self.reader.value_start();
                    self.visit_unmirrored()?;
                    kind = Some(self.reader.text_since(start));
                }
                "properties" if self.is_object()? => self.visit_properties(path.as_deref_mut())?,
                "properties" => {
                    is_bad = true;
                    self.skip_value()?;
                }
                // These keywords contain data and not schemas.
                "const" | "default" | "enum" | "examples" => self.skip_value()?,
                // These keywords contain named schemas.
                "$defs" | "definitions" | "patternProperties" | "dependentSchemas" => {
                    self.visit_named()?;
                }
                _ => self.visit_unmirrored()?,
            }
        }
        if is_bad && self.may_have_annotation_since(start) {
            return Err(BadTool::Schema);
        }
        for name in names {
            self.record_param(name, kind, path.as_deref().map_or(&[], Vec::as_slice))?;
        }
        Ok(())
    }

    /// Visits the schemas of an object's properties.
    fn visit_properties(&mut self, mut path: Option<&mut Vec<String>>) -> Result<(), BadTool> {
        let mut first = true;
        while let Some(property) = self.reader.open_name(&mut first).map_err(syntax_error)? {
            match path.as_deref_mut() {
                _ if !self.is_object()? => self.skip_value()?,
                Some(path) => {
                    path.push(property.into_owned());
                    self.visit(Some(path))?;
                    path.pop();
                }
                None => self.visit(None)?,
            }
        }
        Ok(())
    }

    /// Visits the subschemas in an object with arbitrary member names, such as `$defs`; the subschemas cannot describe
    /// mirrored parameters.
    fn visit_named(&mut self) -> Result<(), BadTool> {
        if !self.is_object()? {
            return self.skip_value();
        }
        let mut first = true;
        while self
            .reader
            .open_name(&mut first)
            .map_err(syntax_error)?
            .is_some()
        {
            self.visit_unmirrored()?;
        }
        Ok(())
    }

    /// Visits a value whose schemas cannot describe mirrored parameters.
    fn visit_unmirrored(&mut self) -> Result<(), BadTool> {
        match self.reader.kind().map_err(syntax_error)? {
            Kind::Object => self.visit(None),
            Kind::Array => {
                let mut more = self.reader.open_items().map_err(syntax_error)?;
                while more {
                    self.visit_unmirrored()?;
                    more = self.reader.next_item().map_err(syntax_error)?;
                }
                Ok(())
            }
            _ => self.skip_value(),
        }
    }

    /// Records an annotated parameter, if the type of the parameter can be mirrored.
    fn record_param(
        &mut self,
        name: String,
        kind: Option<&str>,
        path: &[String],
    ) -> Result<(), BadTool> {
        if !kind.is_some_and(can_be_mirrored) {
            return Err(BadTool::Type(name));
        }
        let path_bytes = path.iter().map(String::len).sum::<usize>();
        if self.exceeds_room || path_bytes > self.room {
            self.exceeds_room = true;
            return Ok(());
        }
        let mirrored = MirroredParam {
            header: format!("Mcp-Param-{name}"),
            path: path.to_vec(),
        };
        match self.room.checked_sub(mirrored.size()) {
            Some(room) => {
                self.room = room;
                self.params.push(mirrored);
            }
            None => self.exceeds_room = true,
        }
        Ok(())
    }

    /// Returns true if an annotation may be between `start` and the offset of the reader, where a value has ended. The text is
    /// searched only once, because these offsets only increase.
    fn may_have_annotation_since(&mut self, start: usize) -> bool {
        let end = start + self.reader.text_since(start).len();
        let piece = &self.text[self.searched_until..end];
        let last = piece
            .rfind(HEADER_ANNOTATION)
            .max(piece.rfind(UNICODE_ESCAPE));
        if let Some(at) = last {
            self.last_annotation = Some(self.searched_until + at);
        }
        self.searched_until = end;
        self.last_annotation >= Some(start)
    }

    /// Returns true if the next value of the text is an object.
    fn is_object(&mut self) -> Result<bool, BadTool> {
        let kind = self.reader.kind().map_err(syntax_error)?;
        Ok(kind == Kind::Object)
    }

    /// Skips the next value of the text.
    fn skip_value(&mut self) -> Result<(), BadTool> {
        self.reader.skip().map_err(syntax_error)
    }
}

/// Converts a read error to a tool error; never occurs, because the text was scanned before.
fn syntax_error(_: DecodeFailed) -> BadTool {
    BadTool::Schema
}

/// Returns the header name of an annotation; fails if it is not an HTTP token.
fn header_name(value: JsonRef<'_>) -> Result<String, BadTool> {
    let bad = || BadTool::Name(value.text().to_owned());
    let name = value.as_str().ok_or_else(bad)?;
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(bad());
    }
    Ok(name.into_owned())
}

/// Returns true if a parameter of this `type` can be mirrored; a nullable parameter is omitted if it is null.
fn can_be_mirrored(kind: &str) -> bool {
    count_types(&mut Reader::of_checked(kind)).is_ok_and(|count| count == Some(1))
}

/// Returns the number of mirrorable types in a `type`, not counting `null`; `None` if it contains a type that cannot be
/// mirrored.
fn count_types(reader: &mut Reader<'_>) -> ReadResult<Option<usize>> {
    let is_list = reader.kind()? == Kind::Array;
    let (mut count, mut more) = (0, !is_list || reader.begin_array()?);
    while more {
        match &*reader.str()? {
            "null" if is_list => {}
            "string" | "integer" | "boolean" => count += 1,
            _ => return Ok(None),
        }
        more = is_list && reader.next_item()?;
    }
    Ok(Some(count))
}

/// Returns true if the byte may occur in an HTTP token (RFC 9110, section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Value of a mirrored parameter before its encoding.
struct HeaderValue {
    /// Value of the parameter as text.
    text: String,
    /// True if the text is a number, which may be spelled differently in the header.
    is_number: bool,
}

/// Returns the value of a mirrored parameter; `None` if it is absent or null.
fn param_value(
    mirrored: &MirroredParam,
    arguments: Option<&JsonObject>,
) -> Result<Option<HeaderValue>, Refusal> {
    let mut value = arguments.map(|arguments| arguments.as_json().view());
    for name in &mirrored.path {
        let object = value.and_then(JsonRef::object);
        value = object.and_then(|object| object.find(name));
    }
    let invalid = || {
        let text = format!("the parameter of `{}` cannot be mirrored", mirrored.header);
        Refusal::InvalidParams(text)
    };
    let Some(value) = value else {
        return Ok(None);
    };
    let text = match value.kind() {
        Kind::Null => return Ok(None),
        Kind::String => value.as_str().ok_or_else(invalid)?.into_owned(),
        Kind::Boolean => value.text().to_owned(),
        Kind::Number => {
            let number: Integer = value.decode_as().map_err(|_| invalid())?;
            let safe = number
                .as_i64()
                .filter(|number| (-MAX_SAFE_INTEGER..=MAX_SAFE_INTEGER).contains(number));
            safe.ok_or_else(invalid)?.to_string()
        }
        Kind::Array | Kind::Object => return Err(invalid()),
    };
    let is_number = value.kind() == Kind::Number;
    Ok(Some(HeaderValue { text, is_number }))
}

/// Returns the encoded headers of a tool call.
///
/// # Errors
/// [`Refusal::InvalidParams`] if a value cannot be mirrored, such as an integer beyond ±(2^53−1).
pub fn param_headers(
    tool: &[MirroredParam],
    arguments: Option<&JsonObject>,
) -> Result<Vec<(String, String)>, Refusal> {
    let mut headers = Vec::new();
    for mirrored in tool {
        if let Some(value) = param_value(mirrored, arguments)? {
            headers.push((mirrored.header.clone(), encode_value(&value.text)));
        }
    }
    Ok(headers)
}

/// Checks that the headers of a call mirror its arguments.
///
/// # Errors
/// [`Refusal::HeaderMismatch`] if a header is missing or differs.
pub fn check_params(
    http: &HttpRequest,
    tool: &[MirroredParam],
    arguments: Option<&JsonObject>,
) -> Result<(), Refusal> {
    for mirrored in tool {
        let body = param_value(mirrored, arguments)?;
        let header = single_value(http, &mirrored.header)?.map(str::trim);
        let header = match header.map(decode_value) {
            None => None,
            Some(Some(value)) => Some(value),
            Some(None) => return Err(header_mismatch(mirrored)),
        };
        let is_equal = match (&header, &body) {
            // Integers are compared as numbers, so that `42.0` equals `42`.
            (Some(header), Some(body)) => {
                let number = |text: &str| from_str::<Integer>(text).ok()?.as_i64();
                *header == body.text
                    || body.is_number
                        && number(header).is_some_and(|n| number(&body.text) == Some(n))
            }
            (None, None) => true,
            _ => false,
        };
        if !is_equal {
            return Err(header_mismatch(mirrored));
        }
    }
    Ok(())
}

/// Returns the refusal for a header that differs from the parameter.
fn header_mismatch(mirrored: &MirroredParam) -> Refusal {
    header_differs(&mirrored.header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::code;

    fn object(text: &str) -> JsonObject {
        text.parse().expect(text)
    }

    /// Returns the mirrored parameters of a tool whose input schema has these `properties`.
    fn tool(properties: &str) -> Result<Vec<MirroredParam>, BadTool> {
        mirrored_params(&object(&format!(
            r#"{{"type":"object","properties":{properties}}}"#
        )))
    }

    /// Annotations are found in nested `properties`; a property named like the annotation, and values that are not
    /// schemas, are no annotations.
    #[test]
    fn params_are_found_through_properties_only() {
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

    /// Each kind of invalid annotation is reported as the matching [`BadTool`].
    #[test]
    fn invalid_annotations_make_bad_tools() {
        let annotation = |value: &str| {
            tool(&format!(
                r#"{{"a":{{"type":"string","x-mcp-header":{value}}}}}"#
            ))
        };
        for bad in ["\"\"", "\"a b\"", "\"a\\n\"", "5", "\"\u{e9}\"", "\"a:b\""] {
            assert!(matches!(annotation(bad), Err(BadTool::Name(_))), "{bad}");
        }
        let twice = r#"{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}"#;
        assert!(matches!(tool(twice), Err(BadTool::Duplicate(_))));
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
        assert_eq!(mirrored_params(&object(inner)), Err(BadTool::Place));
        // A schema without annotations never causes a refusal, however deep its nesting is.
        let nested = |inner: &str| {
            let open = r#"{"anyOf":[{"properties":{"a":"#.repeat(60);
            object(&format!("{open}{inner}{}", "}}]}".repeat(60)))
        };
        assert_eq!(mirrored_params(&nested("{}")), Ok(Vec::new()));
        assert_eq!(mirrored_params(&nested(inner)), Err(BadTool::Place));
    }

    /// A schema without annotations is not checked; a schema with an annotation must describe its properties by objects.
    #[test]
    fn annotated_schemas_need_object_properties() {
        let good = r#"{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":5}}"#;
        assert_eq!(tool(good).map(|found| found.len()), Ok(1));
        for bad in [
            r#"{"b":{"properties":[{"x-mcp-header":"A"}]}}"#,
            r#"{"b":{"properties":5,"const":"x-mcp-header"}}"#,
            r#"{"b":{"properties":5,"const":"\u0061"}}"#,
            r#"{"b":{"type":"string","properties":5,"x-mcp-header":"A"}}"#,
        ] {
            assert_eq!(tool(bad), Err(BadTool::Schema), "{bad}");
        }
        // The annotation may be written before the type, which may be there twice, and be no type.
        let late = r#"{"a":{"x-mcp-header":"A","type":"number","type":["null","boolean"]}}"#;
        assert_eq!(tool(late).map(|found| found.len()), Ok(1));
        let escaped = r#"{"a":{"x-mcp-h\u0065ader":"A","type":"string"}}"#;
        assert_eq!(tool(escaped).map(|found| found.len()), Ok(1));
        let inside = r#"{"a":{"type":[{"x-mcp-header":"A"}]}}"#;
        assert_eq!(tool(inside), Err(BadTool::Place));
    }

    /// The parameters of a remote tool use no more memory than allowed, even if their paths are long.
    #[test]
    fn remote_params_have_a_memory_limit() {
        let leaf = |n: usize| format!(r#""p{n}":{{"type":"string","x-mcp-header":"P{n}"}}"#);
        let leaves: Vec<String> = (0..1000).map(leaf).collect();
        let (leaves, long) = (leaves.join(","), "x".repeat(1000));
        let schema = format!(r#"{{"properties":{{"{long}":{{"properties":{{{leaves}}}}}}}}}"#);
        let within = |room| mirrored_params_within(&object(&schema), room).expect("a good tool");
        assert_eq!(within(100_000), None);
        assert_eq!(within(2_000_000).map(|found| found.len()), Some(1000));
        let one = MirroredParam {
            header: String::new(),
            path: vec!["a".to_owned(); 100],
        };
        assert!(one.size() >= 100 * (size_of::<String>() + 16));
    }

    /// Headers may spell an integer parameter differently (`42.0` for `42`), but must equal a string parameter exactly.
    #[test]
    fn string_params_are_not_numbers() {
        let tool = tool(
            r#"{"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"}}"#,
        );
        let tool = tool.expect("a good tool");
        let arguments = object(r#"{"s":"42","i":42}"#);
        let check = |s: &str, i: &str| {
            let headers = [("Mcp-Param-S", s), ("Mcp-Param-I", i)];
            check_params(&HttpRequest::new(headers), &tool, Some(&arguments)).is_ok()
        };
        assert!(check("42", "42") && check("42", "42.0"));
        assert!(!check("42.0", "42"));
    }

    /// The headers that a client computes pass the check of a server; changed, missing and additional headers fail it.
    #[test]
    fn param_headers_match_their_arguments() {
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
