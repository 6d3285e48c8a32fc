//! Names: of types, variants and fields.
//!
//! The specification's names stay as they are; what it leaves anonymous is named after where it stands. Never invents
//! numbered names.

use std::collections::BTreeMap;

use heck::{ToSnakeCase, ToUpperCamelCase};
use serde_json::Value;

use crate::emit::{is_taken, marker_name};
use crate::error::Result;
use crate::input::schema::{Schema, escape};
use crate::passes::lift::Lifted;

/// A word of a type name from a JSON name: `io.modelcontextprotocol/clientInfo` gives `ClientInfo`, `_meta` `Meta`.
pub fn type_word(json: &str) -> String {
    last_part(json).to_upper_camel_case()
}

/// The name of an anonymous member: its owner's and its own. What may stand in the answer to a request is its outcome.
pub fn member_type(owner: &str, json: &str) -> String {
    match owner.strip_suffix("ResultResponse") {
        Some(stem) if json == "result" => format!("{stem}Outcome"),
        _ => format!("{owner}{}", type_word(json)),
    }
}

/// A field name from a JSON name.
pub fn field(json: &str) -> String {
    let name = last_part(json).to_snake_case();
    match name.as_str() {
        "self" | "super" | "crate" | "extra" => format!("{name}_"),
        _ => name,
    }
}

/// A variant name from the value of a constant: `ref/prompt` gives `RefPrompt`.
pub fn variant(value: &str) -> String {
    value.to_upper_camel_case()
}

/// The part after the reverse-domain prefix that the specification gives to reserved `_meta` names.
fn last_part(json: &str) -> &str {
    json.rsplit('/').next().unwrap_or(json)
}

/// Whether a name can be a Rust type as it is.
pub fn is_type_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
        && name != "Self"
}

/// The names of the members of a union, short and unique: without the words that all of them begin or end with, or the
/// discriminant's value, or the whole names.
pub fn variants(names: &[&str], tags: Option<&[&str]>) -> Vec<String> {
    for suffix in [
        "ResourceContents",
        "EnumSchema",
        "Schema",
        "Reference",
        "Request",
        "Notification",
        "Result",
    ] {
        if names.iter().all(|name| name.ends_with(suffix)) && names.len() > 1 {
            return shortened(names, |name| name.strip_suffix(suffix).unwrap_or(name));
        }
    }
    if names.iter().all(|name| name.starts_with("JSONRPC")) {
        return shortened(names, |name| name.strip_prefix("JSONRPC").unwrap_or(name));
    }
    if let Some(tags) = tags {
        return unique(names, tags.iter().map(|tag| variant(tag)).collect());
    }
    names.iter().map(|&name| name.to_owned()).collect()
}

fn shortened<'n>(names: &[&'n str], shorten: impl Fn(&'n str) -> &'n str) -> Vec<String> {
    let short = names.iter().map(|&name| match shorten(name) {
        "" => name.to_owned(),
        short => short.to_owned(),
    });
    unique(names, short.collect())
}

fn unique(names: &[&str], short: Vec<String>) -> Vec<String> {
    let mut sorted: Vec<_> = short.iter().collect();
    sorted.sort();
    let clash = sorted.windows(2).any(|pair| pair[0] == pair[1]);
    if clash || short.iter().any(|name| !is_type_name(name)) {
        names.iter().map(|&name| name.to_owned()).collect()
    } else {
        short
    }
}

/// Checks that every definition, member and enum value has a Rust name of its own.
///
/// # Errors
/// At the first that has none.
pub fn check(schema: &Schema, lifted: &[Lifted]) -> Result<()> {
    let definitions = schema.root[schema.definitions].as_object();
    for (name, definition) in definitions.into_iter().flatten() {
        let anonymous = lifted.iter().find(|lifted| lifted.name == *name);
        let pointer = anonymous.map_or_else(|| schema.pointer(name), |l| l.pointers[0].clone());
        check_type(schema, name, definition, &pointer)?;
        check_members(schema, definition, &pointer)?;
        check_values(schema, definition, &pointer)?;
    }
    Ok(())
}

fn check_type(schema: &Schema, name: &str, definition: &Value, pointer: &str) -> Result<()> {
    let fail = |problem: String| {
        let remedy = "teach the generator another name for it";
        Err(schema.error(pointer, problem, remedy))
    };
    if !is_type_name(name) {
        return fail(format!("the name `{name}` can be no Rust type"));
    }
    if is_taken(name) || marker_name(&schema.revision) == name {
        return fail(format!("generated code needs the name `{name}` itself"));
    }
    let view = format!("{name}View");
    if definition["x-document"] == true && schema.root[schema.definitions].get(&view).is_some() {
        return fail(format!(
            "the typed view of `{name}` would be `{view}`, which is a definition"
        ));
    }
    Ok(())
}

fn check_members(schema: &Schema, definition: &Value, pointer: &str) -> Result<()> {
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for name in definition["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
    {
        let field = field(name);
        let is_field = field.starts_with(|c: char| c.is_ascii_lowercase())
            && field.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let problem = if !is_field {
            format!("the name {name:?} makes no Rust field")
        } else if let Some(other) = taken.insert(field.clone(), name) {
            format!("the members `{other}` and `{name}` would both be the field `{field}`")
        } else {
            continue;
        };
        let pointer = format!("{pointer}/properties/{}", escape(name));
        return Err(schema.error(&pointer, problem, "teach the generator a name for it"));
    }
    Ok(())
}

fn check_values(schema: &Schema, definition: &Value, pointer: &str) -> Result<()> {
    let values = definition["enum"].as_array().into_iter().flatten();
    let only = definition["const"]
        .as_str()
        .map(|value| ("const".to_owned(), value));
    let values = values
        .enumerate()
        .filter_map(|(at, value)| Some((format!("enum/{at}"), value.as_str()?)));
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for (place, value) in values.chain(only) {
        let name = variant(value);
        let problem = if !is_type_name(&name) || name == "Unrecognized" {
            format!("the value {value:?} makes no Rust name")
        } else if let Some(other) = taken.insert(name.clone(), value) {
            format!("the values {other:?} and {value:?} would both be called `{name}`")
        } else {
            continue;
        };
        let pointer = format!("{pointer}/{place}");
        return Err(schema.error(&pointer, problem, "teach the generator a name for it"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Names each of some texts and checks them, one a line.
    fn check(name: impl Fn(&str) -> String, texts: &[&str], expected: Expect) {
        let line = |text: &&str| format!("{text} => {}\n", name(text));
        expected.assert_eq(&texts.iter().map(line).collect::<String>());
    }

    #[test]
    fn fields() {
        check(
            field,
            &[
                "inputSchema",
                "_meta",
                "$schema",
                "io.modelcontextprotocol/clientInfo",
                "type",
                "gen",
                "self",
                "super",
                "crate",
                "extra",
                "URL",
                "x-y z",
            ],
            expect![[r#"
                inputSchema => input_schema
                _meta => meta
                $schema => schema
                io.modelcontextprotocol/clientInfo => client_info
                type => type
                gen => gen
                self => self_
                super => super_
                crate => crate_
                extra => extra_
                URL => url
                x-y z => x_y_z
            "#]],
        );
    }

    #[test]
    fn words_of_types() {
        check(
            type_word,
            &[
                "inputSchema",
                "_meta",
                "$schema",
                "io.modelcontextprotocol/clientInfo",
            ],
            expect![[r#"
                inputSchema => InputSchema
                _meta => Meta
                $schema => Schema
                io.modelcontextprotocol/clientInfo => ClientInfo
            "#]],
        );
    }

    #[test]
    fn variants_of_values() {
        check(
            variant,
            &[
                "ref/prompt",
                "accept",
                "light-green",
                "_other",
                "tools/call",
                "self",
                "2.0",
                "ALL_CAPS",
            ],
            expect![[r#"
                ref/prompt => RefPrompt
                accept => Accept
                light-green => LightGreen
                _other => Other
                tools/call => ToolsCall
                self => Self
                2.0 => 20
                ALL_CAPS => AllCaps
            "#]],
        );
    }

    #[test]
    fn types() {
        check(
            |name| is_type_name(name).to_string(),
            &[
                "JSONRPCError",
                "Self",
                "self",
                "Foo_Bar",
                "Ünicode",
                "A1",
                "1A",
                "",
            ],
            expect![[r#"
                JSONRPCError => true
                Self => false
                self => false
                Foo_Bar => false
                Ünicode => false
                A1 => true
                1A => false
                 => false
            "#]],
        );
    }

    fn check_variants(names: &[&str], tags: Option<&[&str]>, expected: Expect) {
        expected.assert_eq(&(variants(names, tags).join("\n") + "\n"));
    }

    #[test]
    fn variants_without_the_words_that_all_of_them_have() {
        check_variants(
            &["CallToolRequest", "PingRequest"],
            None,
            expect![[r#"
            CallTool
            Ping
        "#]],
        );
        check_variants(
            &["JSONRPCError", "JSONRPCRequest"],
            None,
            expect![[r#"
            Error
            Request
        "#]],
        );
        check_variants(
            &["EmptyResult", "Result"],
            None,
            expect![[r#"
            Empty
            Result
        "#]],
        );
    }

    #[test]
    fn variants_by_their_tags() {
        check_variants(
            &["TextContent", "ResourceLink"],
            Some(&["text", "resource_link"]),
            expect![[r#"
                Text
                ResourceLink
            "#]],
        );
        check_variants(
            &["A", "B"],
            Some(&["a-b", "a_b"]),
            expect![[r#"
            A
            B
        "#]],
        );
        check_variants(
            &["A", "B"],
            Some(&["1", "2"]),
            expect![[r#"
            A
            B
        "#]],
        );
    }

    #[test]
    fn variants_by_their_types() {
        check_variants(
            &["Request", "PingRequest"],
            None,
            expect![[r#"
            Request
            Ping
        "#]],
        );
        check_variants(
            &["Json", "Tool"],
            None,
            expect![[r#"
            Json
            Tool
        "#]],
        );
    }
}
