//! Extensions: definitions equal to those of the revision are shared, different ones get separate types, and impossible
//! ones are refused.

use codegen::{Extension, ListedExtension, Lowered, emit, lower, lower_extension, sha256};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::input::{NO_TABLES, revision, schema};

/// Returns a revision with two definitions, one of which refers to the other.
fn base() -> Value {
    schema(json!({
        "Inner": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
        "Outer": { "type": "object", "properties": { "inner": { "$ref": "#/definitions/Inner" } } },
        "Unused": { "type": "object", "properties": { "b": { "type": "string" } } },
    }))
}

fn base_lowered() -> Lowered {
    let base = base().to_string();
    let lowered = lower(&revision(base.as_bytes()), base.as_bytes(), NO_TABLES);
    lowered.expect("a schema that is understood")
}

fn extend<T>(
    definitions: &Value,
    then: impl Fn(Extension<'_>) -> codegen::Result<T>,
) -> Result<T, String> {
    let dialect = "http://json-schema.org/draft-07/schema#";
    let own = json!({ "$schema": dialect, "definitions": definitions }).to_string();
    let listed = ListedExtension {
        revision: codegen::Revision {
            id: "ext-x".to_owned(),
            sha256: sha256(own.as_bytes()),
            ..revision(b"")
        },
        extends: "2000-01-01".to_owned(),
    };
    then(Extension {
        listed: &listed,
        schema: own.as_bytes(),
    })
    .map_err(|error| error.to_string())
}

fn lower_definitions(definitions: &Value) -> Result<Lowered, String> {
    extend(definitions, |extension| {
        lower_extension(extension, &base_lowered(), NO_TABLES)
    })
}

/// Compares the list of definitions: `=` marks definitions of the revision, `+` those of the extension, and a star
/// official ones.
fn check(definitions: Value, expected: &Expect) {
    let said = match lower_definitions(&definitions) {
        Ok(extended) => {
            let line = |definition: &codegen::ir::Definition| {
                let name = &definition.name;
                let sign = if extended.shared.contains(name) {
                    '='
                } else {
                    '+'
                };
                let star = if definition.official { "*" } else { "" };
                format!("{sign} {name}{star}\n")
            };
            extended.ir.definitions.iter().map(line).collect()
        }
        Err(error) => error + "\n",
    };
    expected.assert_eq(&said);
}

#[test]
fn definitions_of_the_revision_are_its_types() {
    check(
        json!({ "Mine": { "type": "object", "properties": { "outer": { "$ref": "#/definitions/Outer" } } } }),
        &expect![[r#"
            = Inner
            + Mine*
            = Outer
        "#]],
    );
}

#[test]
fn equal_definitions_ignore_descriptions() {
    check(
        json!({
            "Inner": {
                "description": "Other words.",
                "type": "object",
                "properties": { "a": { "type": "string", "description": "Other words." } },
                "required": ["a"]
            },
        }),
        &expect![[r#"
            = Inner*
        "#]],
    );
}

#[test]
fn what_leads_to_a_different_definition_is_different() {
    check(
        json!({
            "Inner": { "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] },
            "Mine": { "type": "object", "properties": { "outer": { "$ref": "#/definitions/Outer" } } },
        }),
        &expect![[r#"
            + Inner*
            + Mine*
            + Outer
        "#]],
    );
}

#[test]
fn an_inline_copy_is_a_reference() {
    let copy =
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] });
    check(
        json!({ "Mine": { "type": "object", "properties": { "copy": copy } } }),
        &expect![[r#"
            = Inner
            + Mine*
        "#]],
    );
}

#[test]
fn a_reference_that_neither_has() {
    check(
        json!({ "Mine": { "type": "object", "properties": { "a": { "$ref": "#/definitions/Gone" } } } }),
        &expect![[r##"
            ext-x at /definitions/Mine/properties/a/$ref: the reference "#/definitions/Gone" names no definition; refer to a member of `definitions`
        "##]],
    );
}

#[test]
fn only_its_own_types_are_written() {
    let definitions = json!({ "Mine": { "type": "object", "properties": { "outer": { "$ref": "#/definitions/Outer" } } } });
    let files = extend(&definitions, |extension| {
        let lowered = lower_extension(extension, &base_lowered(), NO_TABLES)?;
        emit(&lowered, &extension.listed.revision)
    });
    let files = files.expect("a schema that is understood");
    let types = &files["crates/mcp-ext-x/src/generated/common.rs"];
    assert!(types.contains("pub struct Mine") && !types.contains("struct Outer"));
    let root = &files["crates/mcp-ext-x/src/generated/mod.rs"];
    assert!(
        root.contains("pub use mcp_2000_01_01::{Inner, Outer};"),
        "{root}"
    );
    let manifest = &files["crates/mcp-ext-x/Cargo.toml"];
    assert!(
        manifest.contains("mcp-2000-01-01.workspace = true"),
        "{manifest}"
    );
}

#[test]
fn another_dialect_than_the_revisions() {
    let own = json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": { "Mine": { "type": "string" } } });
    let own = own.to_string();
    let listed = ListedExtension {
        revision: codegen::Revision {
            id: "ext-x".to_owned(),
            sha256: sha256(own.as_bytes()),
            ..revision(b"")
        },
        extends: "2000-01-01".to_owned(),
    };
    let extension = Extension {
        listed: &listed,
        schema: own.as_bytes(),
    };
    let lowered = lower_extension(extension, &base_lowered(), NO_TABLES);
    let error = lowered.expect_err("another dialect");
    expect!["ext-x at /$defs: the definitions are in `$defs`, and those of 2000-01-01 in `definitions`; an extension has to be written in the dialect of the revision that it extends"].assert_eq(&error.to_string());
}
