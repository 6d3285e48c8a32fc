//! Shapes that a next revision could bring, each as a change of the newest schema.
//!
//! The generator accepts each of them, as a test checks; `schema add` refuses the one with another lifecycle. `CONTRIBUTING.md`
//! lists them for maintainers.

use std::path::Path;
use std::slice;

use anyhow::Context;
use codegen::Revision;
use codegen::ir::RustIr;
use serde_json::{Value, json};

use crate::codegen::Schemas;

/// An invented revision.
pub struct Shape {
    /// What the revision has that no official schema has.
    pub name: &'static str,
    /// Changes the definitions of the newest schema.
    change: fn(&mut Value),
}

/// Name of the shape that `schema add` refuses: a lifecycle belongs to generator and sessions.
const CHANGED_LIFECYCLE: &str = "a changed lifecycle";

impl Shape {
    /// Returns true if `schema add` has to refuse the shape, and says what to do.
    pub fn is_refused_by(&self, error: &anyhow::Error) -> bool {
        let remedy = "the generator and the session have to learn it first";
        self.name == CHANGED_LIFECYCLE && format!("{error:#}").contains(remedy)
    }

    /// Returns the text of the schema.
    ///
    /// # Errors
    /// Returns an error if the newest schema has no definitions.
    pub fn schema(&self, newest: &Value) -> anyhow::Result<Vec<u8>> {
        with_all(slice::from_ref(self), newest)
    }
}

/// Returns the text of a schema with several shapes.
fn with_all(shapes: &[Shape], newest: &Value) -> anyhow::Result<Vec<u8>> {
    let mut schema = newest.clone();
    let definitions = schema.get_mut("$defs");
    let definitions = definitions.context("the newest schema has no `$defs`")?;
    for shape in shapes {
        (shape.change)(definitions);
    }
    Ok(serde_json::to_vec_pretty(&schema)?)
}

/// The generator with the released revisions, which a new one is converted to and from.
pub struct Generator {
    /// The official schemas.
    schemas: Schemas,
    /// Released revisions.
    released: Vec<RustIr>,
}

impl Generator {
    /// Reads the official schemas of the workspace `root`.
    ///
    /// # Errors
    /// Returns an error if a schema cannot be read or used.
    pub fn new(root: &Path) -> anyhow::Result<Self> {
        let schemas = Schemas::read(&root.join("schema"))?;
        let released = schemas.revisions.iter().filter(|one| !one.is_draft());
        let released: anyhow::Result<_> = released.map(|revision| schemas.ir(revision)).collect();
        Ok(Self {
            released: released?,
            schemas,
        })
    }

    /// Runs the generator over the schema of a revision `id`, and generates its conversions; the error is the reason of a
    /// refusal.
    ///
    /// # Errors
    /// As described.
    pub fn run(&self, id: &str, bytes: &[u8]) -> Result<(), codegen::Error> {
        let revision = Revision {
            id: id.to_owned(),
            status: "release".to_owned(),
            sha256: codegen::sha256(bytes),
        };
        let lowered = codegen::lower(&revision, bytes, self.schemas.tables())?;
        codegen::emit(&lowered, &revision)?;
        let released = self.released.iter().chain([&lowered.ir]);
        let released: Vec<&RustIr> = released.collect();
        codegen::conversions(&released, &self.schemas.conversions).map(drop)
    }
}

/// Adds a member to a definition.
fn add_member(definitions: &mut Value, definition: &str, name: &str, schema: Value) {
    definitions[definition]["properties"][name] = schema;
}

/// Adds a reference to the variants of a union.
fn add_variant(definitions: &mut Value, union: &str, name: &str) {
    if let Some(variants) = definitions[union]["anyOf"].as_array_mut() {
        variants.push(json!({ "$ref": format!("#/$defs/{name}") }));
    }
}

/// Replaces words in all definitions.
fn replace_words(definitions: &mut Value, words: &[(&str, &str)]) {
    let mut text = definitions.to_string();
    for (from, to) in words {
        text = text.replace(from, to);
    }
    if let Ok(changed) = serde_json::from_str(&text) {
        *definitions = changed;
    }
}

/// All shapes.
pub const ALL: &[Shape] = &[
    Shape {
        name: "a method whose result is a union",
        change: |definitions| {
            let text = definitions["CompleteResultResponse"].to_string();
            let text = text.replace("Complete", "Measure");
            definitions["MeasureResultResponse"] = serde_json::from_str(&text).unwrap_or_default();
            definitions["MeasureResultResponse"]["properties"]["result"] = json!({ "anyOf": [
                { "$ref": "#/$defs/MeasureResult" }, { "$ref": "#/$defs/InputRequiredResult" },
            ] });
            for name in ["Request", "RequestParams", "Result"] {
                let text = definitions[format!("Complete{name}")].to_string();
                let text = text.replace("#/$defs/Complete", "#/$defs/Measure");
                let text = text.replace("completion/complete", "lengths/measure");
                let copy = serde_json::from_str(&text).unwrap_or_default();
                definitions[format!("Measure{name}")] = copy;
            }
            add_variant(definitions, "ClientRequest", "MeasureRequest");
            add_variant(definitions, "ServerResult", "MeasureResult");
        },
    },
    Shape {
        name: "a content block that two members tell",
        change: |definitions| {
            definitions["ChartContent"] = json!({
                "type": "object",
                "properties": {
                    "type": { "const": "chart", "type": "string" },
                    "kind": { "const": "bars", "type": "string" },
                    "bars": { "type": "array", "items": { "type": "number" } },
                },
                "required": ["type", "kind", "bars"],
            });
            definitions["PieContent"] = json!({
                "type": "object",
                "properties": {
                    "type": { "const": "chart", "type": "string" },
                    "kind": { "const": "pie", "type": "string" },
                    "slices": { "type": "array", "items": { "type": "number" } },
                },
                "required": ["type", "kind", "slices"],
            });
            add_variant(definitions, "ContentBlock", "ChartContent");
            add_variant(definitions, "ContentBlock", "PieContent");
        },
    },
    Shape {
        name: "an enum of integers",
        change: |definitions| {
            let schema = json!({ "type": "integer", "enum": [1, 2, 4] });
            add_member(definitions, "Tool", "weight", schema);
        },
    },
    Shape {
        name: "tuples (`prefixItems`)",
        change: |definitions| {
            let schema = json!({
                "type": "array",
                "prefixItems": [{ "type": "string" }, { "type": "integer" }],
                "items": false,
                "minItems": 2,
            });
            add_member(definitions, "Tool", "size", schema);
        },
    },
    Shape {
        name: "`dependentRequired`",
        change: |definitions| {
            let schema = json!({ "title": ["description"] });
            definitions["Prompt"]["dependentRequired"] = schema;
        },
    },
    Shape {
        name: "`if`, `then` and `else`",
        change: |definitions| {
            let tool = &mut definitions["Tool"];
            tool["if"] = json!({ "required": ["title"] });
            tool["then"] = json!({ "required": ["description"] });
            tool["else"] = json!({ "properties": { "description": { "type": "string" } } });
        },
    },
    Shape {
        name: "`contentEncoding` and `contentMediaType`",
        change: |definitions| {
            let schema = json!({
                "type": "string", "contentEncoding": "base64", "contentMediaType": "image/png",
            });
            add_member(definitions, "Tool", "thumbnail", schema);
        },
    },
    Shape {
        name: "nullable members by lists of types",
        change: |definitions| {
            let schema = json!({ "type": ["string", "null"] });
            add_member(definitions, "Tool", "owner", schema);
            let schema = json!({ "type": ["array", "null"], "items": { "type": "string" } });
            add_member(definitions, "Tool", "labels", schema);
        },
    },
    Shape {
        name: "a recursive generic container",
        change: |definitions| {
            definitions["Tree"] = json!({
                "type": "object",
                "properties": {
                    "value": {},
                    "children": { "type": "array", "items": { "$ref": "#/$defs/Tree" } },
                    "named": { "type": "object", "additionalProperties": { "$ref": "#/$defs/Tree" } },
                },
                "required": ["value"],
            });
            add_member(
                definitions,
                "Tool",
                "outline",
                json!({ "$ref": "#/$defs/Tree" }),
            );
        },
    },
    Shape {
        name: "a renamed method",
        change: |definitions| {
            let words = [
                ("\"completion/complete\"", "\"completions/suggest\""),
                ("#/$defs/Complete", "#/$defs/Suggest"),
                ("\"CompleteRequest\"", "\"SuggestRequest\""),
                ("\"CompleteRequestParams\"", "\"SuggestRequestParams\""),
                ("\"CompleteResult\"", "\"SuggestResult\""),
                ("\"CompleteResultResponse\"", "\"SuggestResultResponse\""),
            ];
            replace_words(definitions, &words);
        },
    },
    Shape {
        name: "removed members",
        change: |definitions| {
            for (definition, member) in [("Tool", "outputSchema"), ("Implementation", "title")] {
                if let Some(members) = definitions[definition]["properties"].as_object_mut() {
                    members.remove(member);
                }
            }
        },
    },
    Shape {
        name: CHANGED_LIFECYCLE,
        change: |definitions| {
            replace_words(
                definitions,
                &[("\"server/discover\"", "\"server/describe\"")],
            );
        },
    },
    Shape {
        name: "`maxLength` and `minLength`",
        change: |definitions| {
            let schema = json!({ "type": "string", "minLength": 1, "maxLength": 64 });
            add_member(definitions, "Tool", "code", schema);
        },
    },
    Shape {
        name: "`exclusiveMinimum`, `exclusiveMaximum` and `multipleOf`",
        change: |definitions| {
            let schema = json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 });
            add_member(definitions, "Tool", "share", schema);
            let schema = json!({ "type": "integer", "exclusiveMinimum": 0, "multipleOf": 2 });
            add_member(definitions, "Tool", "pairs", schema);
        },
    },
    Shape {
        name: "formats that no official schema has",
        change: |definitions| {
            add_member(
                definitions,
                "Tool",
                "key",
                json!({ "type": "string", "format": "uuid" }),
            );
            let schema = json!({ "type": "string", "format": "duration" });
            add_member(definitions, "Tool", "takes", schema);
        },
    },
    Shape {
        name: "variants that a boolean constant tells apart",
        change: |definitions| {
            let variant = |constant: bool, other: &str| {
                json!({
                    "type": "object",
                    "properties": {
                        "readOnly": { "type": "boolean", "const": constant },
                        other: { "type": "boolean" },
                    },
                    "required": ["readOnly"],
                })
            };
            let schema =
                json!({ "anyOf": [variant(true, "cached"), variant(false, "destructive")] });
            add_member(definitions, "ToolAnnotations", "effects", schema);
        },
    },
    Shape {
        name: "`oneOf`, and unions of one variant",
        change: |definitions| {
            let schema = json!({ "oneOf": [
                { "$ref": "#/$defs/TextContent" }, { "$ref": "#/$defs/ImageContent" },
            ] });
            add_member(definitions, "Tool", "preview", schema);
            let schema = json!({ "anyOf": [{ "$ref": "#/$defs/TextContent" }] });
            add_member(definitions, "Tool", "summary", schema);
        },
    },
    Shape {
        name: "a result with `minItems` and `uniqueItems`",
        change: |definitions| {
            let content = &mut definitions["CallToolResult"]["properties"]["content"];
            content["minItems"] = json!(1);
            content["uniqueItems"] = json!(true);
        },
    },
];

#[cfg(test)]
mod tests {
    use mcp_exact_tests_support::Cases;

    use super::*;

    /// Number of shapes that one schema has: all in the short tier, as long as none is refused.
    const SHAPES_AT_ONCE: Cases = Cases {
        short: usize::MAX,
        long: 1,
    };

    /// Each shape is absorbed by the generator.
    #[test]
    fn shapes_are_absorbed() {
        let root = crate::workspace_root();
        let newest = super::super::newest_schema(&root).expect("a released revision");
        let generator = Generator::new(&root).expect("official schemas");
        for shapes in ALL.chunks(SHAPES_AT_ONCE.number()) {
            let bytes = with_all(shapes, &newest).expect("definitions");
            if let Err(refusal) = generator.run("2099-01-01", &bytes) {
                let names: Vec<&str> = shapes.iter().map(|shape| shape.name).collect();
                panic!("{}: {refusal}", names.join(", "));
            }
        }
    }
}
