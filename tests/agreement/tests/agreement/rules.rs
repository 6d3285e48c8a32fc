//! Rules by which the types refuse documents that the schema allows: R1 to R5 of invariant 6 in ARCHITECTURE.md, each
//! as a predicate. The predicates do not use the types. The types must refuse a valid document exactly if a predicate
//! is true.

use std::collections::BTreeSet;

use mcp_exact_tests_support::Doc;
use serde_json::Value;

use crate::traversal::{Schema, SchemaAt, VisitedValue};
use crate::unions::{discriminator_value, required_names};

/// Placeholder for a lone surrogate in a document, because a `String` cannot contain a lone surrogate.
pub const LONE_SURROGATE: &str = "\u{e000}lone\u{e000}";

/// Function that returns true if a rule applies to a document of a definition.
pub type Predicate = fn(&Schema, &str, &Doc) -> bool;

/// The rules, each with its name.
pub const RULES: [(&str, Predicate); 5] = [
    ("R1", has_result_and_error),
    ("R2", has_null_id),
    ("R3", is_selected_by_its_discriminator),
    ("R4", has_duplicate_members),
    ("R5", has_lone_surrogates),
];

/// Returns the index in [`RULES`] of the first rule that applies to the document; `None` if the types must accept the
/// document.
pub fn known_exception(schema: &Schema, definition: &str, doc: &Doc) -> Option<usize> {
    RULES
        .iter()
        .position(|(_, rule)| rule(schema, definition, doc))
}

/// Returns true if a JSON-RPC message that could be a response has both `result` and `error` (rule R1).
///
/// The rule applies to unions that distinguish results from errors; a batch of requests has no such union.
pub fn has_result_and_error(schema: &Schema, definition: &str, doc: &Doc) -> bool {
    is_any_message(schema, definition, doc, |needs, doc, is_first_item| {
        let is_either = needs(&["jsonrpc", "result"]) && needs(&["jsonrpc", "error"]);
        !is_first_item && is_either && has_all_members(doc, &["jsonrpc", "result", "error"])
    })
}

/// Returns true if a JSON-RPC request has a null id (rule R2); by the schema it would be a notification with an unknown
/// member.
pub fn has_null_id(schema: &Schema, definition: &str, doc: &Doc) -> bool {
    is_any_message(schema, definition, doc, |needs, doc, _| {
        let is_request =
            needs(&["jsonrpc", "method", "id"]) && has_all_members(doc, &["jsonrpc", "method"]);
        is_request && doc.member("id") == Some(&Doc::Null)
    })
}

/// Returns true if the discriminator of a union selects a variant that the schema refuses, while another variant is
/// accepted, or is no string (rule R3).
pub fn is_selected_by_its_discriminator(schema: &Schema, definition: &str, doc: &Doc) -> bool {
    let mut found = false;
    schema.walk(definition, doc, &mut |place| {
        if let VisitedValue::Union { union, doc, .. } = &place {
            let tag = discriminator_value(schema, union, doc);
            found |= tag.is_some_and(|tag| !matches!(tag, Doc::String(_)));
        }
        if let VisitedValue::Union {
            union,
            selected_variant: Some(selected_variant),
            doc,
        } = place
            && !found
        {
            let members = schema.variants(&union).unwrap_or_default();
            let accepts = |name: &str| schema.oracle.verdict(name, doc) == Some(true);
            let others = members
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != selected_variant);
            found = !accepts(members[selected_variant].0)
                && others.map(|(_, member)| member.0).any(accepts);
        }
    });
    found
}

/// Returns true if an object of a known type, or a map with typed values, has a duplicate member (rule R4). In JSON Schema
/// documents, the members are known that the protocol's schema defines.
pub fn has_duplicate_members(schema: &Schema, definition: &str, doc: &Doc) -> bool {
    let mut found = false;
    schema.walk(definition, doc, &mut |place| {
        found |= match place {
            VisitedValue::Typed { schema: typed, doc } => {
                is_typed_object(schema, typed) && has_duplicates(doc, |_| true)
            }
            VisitedValue::Text { at, doc } => has_duplicates_in_document(schema, &at, doc),
            VisitedValue::Union { .. } => false,
        };
    });
    found
}

/// Returns true if a JSON Schema document has a defined member twice, or a map with typed values in it any member.
fn has_duplicates_in_document(schema: &Schema, at: &SchemaAt, doc: &Doc) -> bool {
    let at = schema.resolve(at);
    let values = at.schema.get("additionalProperties");
    let is_map = values.is_some_and(|values| !is_open(values));
    let is_defined = |name: &str| at.schema["properties"].get(name).is_some();
    let children = schema.children(&at, doc);
    let mut inside = children.iter();
    has_duplicates(doc, |name| is_map || is_defined(name))
        || inside.any(|(_, at, doc)| has_duplicates_in_document(schema, at, doc))
}

/// Returns true if an object has a member twice whose name `counts`.
fn has_duplicates(doc: &Doc, counts: impl Fn(&str) -> bool) -> bool {
    let Doc::Object(members) = doc else {
        return false;
    };
    let names = members.iter().map(|(name, _)| name.as_str());
    let names: Vec<&str> = names.filter(|name| counts(name)).collect();
    names.iter().collect::<BTreeSet<_>>().len() < names.len()
}

/// Returns true if a string of a known type, the discriminator of a union, or the name of a typed member has a lone surrogate
/// (rule R5).
pub fn has_lone_surrogates(schema: &Schema, definition: &str, doc: &Doc) -> bool {
    let mut found = false;
    schema.walk(definition, doc, &mut |place| {
        if let VisitedValue::Union { union, doc, .. } = place
            && let Some(Doc::String(tag)) = discriminator_value(schema, &union, doc)
        {
            found |= tag.contains(LONE_SURROGATE);
        }
    });
    found
        || is_any_typed(schema, definition, doc, |typed, doc| match doc {
            Doc::Object(members) => {
                is_typed_object(schema, typed)
                    && members
                        .iter()
                        .any(|(name, _)| name.contains(LONE_SURROGATE))
            }
            Doc::String(text) => !is_open(typed) && text.contains(LONE_SURROGATE),
            _ => false,
        })
}

/// Returns true if a schema constrains the members of an object.
fn is_typed_object(schema: &Schema, typed: &'static Value) -> bool {
    let members = typed["properties"].as_object();
    let additional = typed.get("additionalProperties").map(|values| {
        schema.resolve(&SchemaAt {
            pointer: String::new(),
            schema: values,
        })
    });
    members.is_some_and(|members| !members.is_empty())
        || additional.is_some_and(|values| !is_open(values.schema))
}

/// Returns true if a schema accepts every value.
pub fn is_open(schema: &Value) -> bool {
    let says_something = ["$ref", "allOf", "anyOf", "const", "enum", "type"];
    says_something
        .iter()
        .all(|keyword| schema.get(keyword).is_none())
}

/// Returns true if an object has all members of these names.
fn has_all_members(doc: &Doc, names: &[&str]) -> bool {
    names.iter().all(|name| doc.member(name).is_some())
}

/// Returns true if `predicate` is true for an object, or for the first item of an array, whose variant a union selects.
///
/// `predicate` receives a function that returns true if a variant of the union requires all of some names, the object,
/// and true if the object is the first item of an array.
fn is_any_message(
    schema: &Schema,
    definition: &str,
    doc: &Doc,
    predicate: impl Fn(&dyn Fn(&[&str]) -> bool, &Doc, bool) -> bool,
) -> bool {
    let mut found = false;
    schema.walk(definition, doc, &mut |place| {
        let VisitedValue::Union { union, doc, .. } = place else {
            return;
        };
        let mut forms = Vec::new();
        let is_first_item = matches!(doc, Doc::Array(_));
        let doc = match doc {
            Doc::Array(items) => {
                add_items(schema, &union, &mut forms);
                match (forms.len(), items.first()) {
                    (2.., Some(item)) => item,
                    _ => return,
                }
            }
            _ => {
                collect_objects(schema, &union, &mut forms);
                doc
            }
        };
        // A message of another method has nothing to do with what this one needs.
        forms.retain(|form| {
            let method = form["properties"]["method"]["const"].as_str();
            method.is_none_or(|method| is_text(doc.member("method"), method))
        });
        let needs = |names: &[&str]| {
            forms
                .iter()
                .map(|form| required_names(form))
                .any(|form| names.iter().all(|name| form.contains(name)))
        };
        found |= predicate(&needs, doc, is_first_item);
    });
    found
}

/// Returns true if a member is this text.
fn is_text(member: Option<&Doc>, text: &str) -> bool {
    matches!(member, Some(Doc::String(found)) if found == text)
}

/// Collects the schemas of the object variants of a union.
fn collect_objects(schema: &Schema, at: &SchemaAt, to: &mut Vec<&'static Value>) {
    let at = schema.resolve(at);
    match schema.variants(&at) {
        Some(members) => members
            .iter()
            .for_each(|(_, at)| collect_objects(schema, at, to)),
        None if at.schema["type"] == "object" => to.push(at.schema),
        None => {}
    }
}

/// Collects the schemas of the items of each array variant of a union, if the union has array variants.
fn add_items(schema: &Schema, union: &SchemaAt, to: &mut Vec<&'static Value>) {
    for (_, member) in schema.variants(union).unwrap_or_default() {
        let array = schema.resolve(&member);
        if array.schema["type"] == "array" {
            let items = SchemaAt {
                pointer: format!("{}/items", array.pointer),
                schema: &array.schema["items"],
            };
            collect_objects(schema, &items, to);
        }
    }
}

/// Returns true if `predicate` is true for any typed value of the document and the schema of the value.
fn is_any_typed(
    schema: &Schema,
    definition: &str,
    doc: &Doc,
    predicate: impl Fn(&'static Value, &Doc) -> bool,
) -> bool {
    let mut found = false;
    schema.walk(definition, doc, &mut |place| match place {
        VisitedValue::Typed { schema, doc } => found |= predicate(schema, doc),
        VisitedValue::Union { .. } | VisitedValue::Text { .. } => {}
    });
    found
}

#[cfg(test)]
mod tests {
    use mcp_exact_tests_support::Doc;

    use super::*;
    use crate::revisions::{Revision, reviewed_revisions};

    /// Document that is valid as a batch of responses, but whose first item selects a batch of requests.
    const BATCH: &str = r#"[{"jsonrpc":"2.0","id":1,"method":"m","result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]"#;

    /// Checks that the rule applies exactly to the documents `refused`, not to the documents `accepted`, and that the
    /// types agree.
    fn check(rule: Predicate, refused: &[(&str, &str)], accepted: &[(&str, &str)]) {
        let mut checked = 0;
        for revision in reviewed_revisions() {
            let cases = refused.iter().map(|case| (case, true));
            for ((definition, text), holds) in cases.chain(accepted.iter().map(|c| (c, false))) {
                let doc = parse_case(text);
                if !has_assumed_definition(revision, definition, text)
                    || revision.schema.oracle.verdict(definition, &doc) != Some(true)
                {
                    continue;
                }
                let about = format!("{} {definition} {text}", revision.id());
                assert_eq!(rule(&revision.schema, definition, &doc), holds, "{about}");
                assert_eq!(accepts(revision, definition, text), !holds, "{about}");
                checked += 1;
            }
        }
        assert!(
            checked >= reviewed_revisions().count(),
            "only {checked} cases were valid"
        );
    }

    /// Returns true if the revision has a definition of this name that accepts documents like that of the case.
    fn has_assumed_definition(revision: &Revision, definition: &str, text: &str) -> bool {
        let is_there = |name: &str| revision.types.definitions.iter().any(|d| d.name == name);
        let is_union = revision.types.unions.iter().any(|u| u.name == definition);
        let is_meant = match definition {
            "ClientResult" | "ServerResult" => is_union,
            "JSONRPCResponse" => !is_union,
            _ => true,
        };
        is_there(definition) && is_meant && (text != BATCH || is_there("JSONRPCBatchRequest"))
    }

    /// Returns true if the types accept a text without violations.
    fn accepts(revision: &Revision, definition: &str, text: &str) -> bool {
        let inspected = revision.definition(definition).inspect(text.as_bytes());
        inspected.is_ok_and(|inspected| inspected.violations.is_empty())
    }

    /// Parses the text of a test case. A lone surrogate becomes its placeholder, and the second of two members with the
    /// same name is kept.
    fn parse_case(text: &str) -> Doc {
        let whole = "\\ud800\\udc00";
        let text = text
            .replace(whole, "\u{10000}")
            .replace("\\ud800", LONE_SURROGATE);
        let mut doc = Doc::parse(&text);
        if doc.is_err() {
            doc = Doc::parse(&rename_duplicates(&text)).map(restore_duplicates);
        }
        doc.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// Renames the second member `"_a"`, which is the duplicate name in the cases.
    fn rename_duplicates(text: &str) -> String {
        let at = text.rfind("\"_a\"").expect("the name that is there twice");
        format!("{}\"_a~\"{}", &text[..at], &text[at + 4..])
    }

    /// Restores the names of the members that [`rename_duplicates`] has renamed.
    fn restore_duplicates(doc: Doc) -> Doc {
        match doc {
            Doc::Array(items) => Doc::Array(items.into_iter().map(restore_duplicates).collect()),
            Doc::Object(members) => Doc::Object(
                members
                    .into_iter()
                    .map(|(name, value)| {
                        (
                            name.trim_end_matches('~').to_owned(),
                            restore_duplicates(value),
                        )
                    })
                    .collect(),
            ),
            scalar => scalar,
        }
    }

    /// A message with both `result` and `error` is refused where a union distinguishes results from errors.
    #[test]
    fn r1_refuses_result_and_error() {
        let response = r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#;
        let notification = r#"{"jsonrpc":"2.0","method":"m","result":1,"error":2}"#;
        check(
            has_result_and_error,
            &[
                ("JSONRPCMessage", response),
                ("JSONRPCMessage", notification),
                ("JSONRPCBatchResponse", &format!("[{response}]")),
                (
                    "JSONRPCMessage",
                    r#"{"error":{"code":1,"message":""},"id":"","jsonrpc":"2.0","result":0}"#,
                ),
            ],
            &[
                (
                    "JSONRPCMessage",
                    r#"{"jsonrpc":"2.0","id":1,"result":{"error":{},"jsonrpc":"2.0","result":1}}"#,
                ),
                ("JSONRPCResponse", response),
                ("EmptyResult", response),
                ("JSONRPCBatchRequest", &format!("[{notification}]")),
            ],
        );
    }

    /// A request with a null id is refused, although the schema allows it as a notification with an unknown member.
    #[test]
    fn r2_refuses_null_id() {
        let null = r#"{"jsonrpc":"2.0","method":"m","id":null}"#;
        check(
            has_null_id,
            &[
                ("JSONRPCMessage", null),
                ("JSONRPCBatchRequest", &format!("[{null}]")),
            ],
            &[
                ("JSONRPCMessage", r#"{"jsonrpc":"2.0","method":"m"}"#),
                (
                    "JSONRPCMessage",
                    r#"{"jsonrpc":"2.0","method":"m","params":{"id":null}}"#,
                ),
                ("JSONRPCNotification", null),
                ("Result", null),
            ],
        );
    }

    /// A document is refused if the variant that its discriminator selects refuses the document, even if another
    /// variant accepts the document.
    #[test]
    fn r3_discriminator_selects_one_variant() {
        check(
            is_selected_by_its_discriminator,
            &[
                ("ClientResult", r#"{"roots":5}"#),
                ("ServerResult", r#"{"tools":[{}]}"#),
                (
                    "JSONRPCMessage",
                    r#"{"jsonrpc":"2.0","method":"m","id":1.5}"#,
                ),
                (
                    "EmbeddedResource",
                    r#"{"type":"resource","resource":{"uri":"a:","text":1,"blob":""}}"#,
                ),
                (
                    "PrimitiveSchemaDefinition",
                    r#"{"type":"string","enum":"a"}"#,
                ),
                ("JSONRPCMessage", BATCH),
            ],
            &[
                ("ClientResult", r#"{"root":5}"#),
                ("ClientResult", r#"{"roots":[]}"#),
                ("ServerResult", r#"{"tools":[],"content":[]}"#),
                ("Result", r#"{"roots":5}"#),
                (
                    "EmbeddedResource",
                    r#"{"type":"resource","resource":{"uri":"a:","text":"","blob":1}}"#,
                ),
                (
                    "PrimitiveSchemaDefinition",
                    r#"{"type":"string","enum":[]}"#,
                ),
            ],
        );
    }

    /// Duplicate members of typed objects are refused; duplicate members of untyped JSON are accepted.
    #[test]
    fn r4_refuses_duplicate_members() {
        check(
            has_duplicate_members,
            &[
                ("Result", r#"{"_a":1,"_a":1}"#),
                (
                    "ClientResult",
                    r#"{"roots":[{"uri":"file:///","_a":{},"_a":[]}]}"#,
                ),
                (
                    "Tool",
                    r#"{"name":"","inputSchema":{"type":"object"},"_a":1,"_a":1}"#,
                ),
                (
                    "CallToolRequest",
                    r#"{"method":"tools/call","params":{"name":"","_a":1,"_a":2}}"#,
                ),
                (
                    "ServerCapabilities",
                    r#"{"experimental":{"_a":{},"_a":{}}}"#,
                ),
            ],
            &[
                ("Result", r#"{"b":{"_a":1,"_a":1}}"#),
                (
                    "Tool",
                    r#"{"name":"","inputSchema":{"type":"object","_a":1,"_a":1}}"#,
                ),
                (
                    "CallToolRequest",
                    r#"{"method":"tools/call","params":{"name":"","arguments":{"_a":1,"_a":2}}}"#,
                ),
                (
                    "ServerCapabilities",
                    r#"{"experimental":{"x":{"_a":{},"_a":{}}}}"#,
                ),
            ],
        );
    }

    /// Lone surrogates in typed strings and member names are refused; lone surrogates in untyped JSON are accepted.
    #[test]
    fn r5_refuses_lone_surrogates() {
        check(
            has_lone_surrogates,
            &[
                ("Cursor", r#""\ud800""#),
                ("Result", r#"{"\ud800":1}"#),
                ("RequestId", r#""a\ud800b""#),
                ("ServerCapabilities", r#"{"experimental":{"\ud800":{}}}"#),
                (
                    "CallToolRequest",
                    r#"{"method":"tools/call","params":{"name":"\ud800"}}"#,
                ),
            ],
            &[
                ("Cursor", r#""\ud800\udc00""#),
                ("Result", r#"{"a":"\ud800"}"#),
                ("Result", r#"{"a":{"\ud800":1}}"#),
                (
                    "Tool",
                    r#"{"name":"","inputSchema":{"type":"object","\ud800":"\ud800"}}"#,
                ),
                (
                    "CallToolRequest",
                    r#"{"method":"tools/call","params":{"name":"","arguments":{"\ud800":"\ud800"}}}"#,
                ),
            ],
        );
    }
}
