//! Extensions: definitions that equal those of the revision are shared, different definitions get separate types, and
//! impossible extensions are refused.

use codegen::{Extension, ListedExtension, Lowered, emit, lower, lower_extension, sha256};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::input::{NO_TABLES, revision, schema};

/// Returns a revision with two definitions, one of which refers to the other.
fn base_definitions() -> Value {
    schema(json!({
        "Inner": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
        "Outer": { "type": "object", "properties": { "inner": { "$ref": "#/definitions/Inner" } } },
        "Unused": { "type": "object", "properties": { "b": { "type": "string" } } },
    }))
}

/// Returns the revision that the extensions extend.
fn base_lowered() -> Lowered {
    let base = base_definitions().to_string();
    let lowered = lower(&revision(base.as_bytes()), base.as_bytes(), NO_TABLES);
    lowered.expect("a schema that is understood")
}

/// Calls `then` with an extension that has these definitions; returns its result, or the text of its error.
fn merge_extension<T>(
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
        list_entry: &listed,
        schema: own.as_bytes(),
    })
    .map_err(|error| error.to_string())
}

/// Lowers an extension with these definitions.
fn lower_definitions(definitions: &Value) -> Result<Lowered, String> {
    merge_extension(definitions, |extension| {
        lower_extension(extension, &base_lowered(), NO_TABLES)
    })
}

/// Compares the list of definitions: `=` marks definitions of the revision, `+` definitions of the extension, and a
/// star official definitions.
fn check(definitions: Value, expected: &Expect) {
    let error = match lower_definitions(&definitions) {
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
    expected.assert_eq(&error);
}

#[test]
fn revision_definitions_are_shared() {
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

/// A definition that equals one of the revision is a separate type if it refers to a different definition.
#[test]
fn references_to_different_definitions_differ() {
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

/// An anonymous schema that equals a definition of the revision becomes the type of the revision.
#[test]
fn inline_copies_are_shared() {
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

/// A request of an extension whose result nobody has named has any result, not the empty result of the revision, which the
/// extension does not mention.
#[test]
fn unnamed_results_are_any() {
    let mut base = base_definitions();
    let empty = json!({ "type": "object", "properties": { "kind": { "type": "string" } }, "required": ["kind"] });
    base["definitions"]["EmptyResult"] = empty;
    let base = base.to_string();
    let base = lower(&revision(base.as_bytes()), base.as_bytes(), NO_TABLES).expect("a schema");
    let request = |method: &str| json!({ "type": "object", "properties": { "method": { "type": "string", "const": method } }, "required": ["method"] });
    let results = |definitions: Value| {
        let extended = merge_extension(&definitions, |extension| {
            lower_extension(extension, &base, NO_TABLES)
        });
        let methods = extended.expect("an extension").ir.ir.methods;
        let results = methods.into_iter().map(|method| method.result);
        results.collect::<Vec<_>>()
    };
    let mut definitions =
        json!({ "AskRequest": request("x/ask"), "TellRequest": request("x/tell") });
    definitions["TellResult"] = json!({ "type": "object" });
    assert_eq!(
        results(definitions.clone()),
        [None, Some("TellResult".to_owned())]
    );
    definitions["TellResult"] = json!({ "$ref": "#/definitions/EmptyResult" });
    let mentioned = Some("EmptyResult".to_owned());
    assert_eq!(
        results(definitions),
        [mentioned, Some("TellResult".to_owned())]
    );
}

#[test]
fn dangling_reference_is_refused() {
    check(
        json!({ "Mine": { "type": "object", "properties": { "a": { "$ref": "#/definitions/Gone" } } } }),
        &expect![[r##"
            ext-x at /definitions/Mine/properties/a/$ref: the reference "#/definitions/Gone" names no definition; refer to a member of `definitions`
        "##]],
    );
}

/// The crate of an extension re-exports the types of the revision and does not define them again.
#[test]
fn shared_types_are_not_emitted() {
    let definitions = json!({ "Mine": { "type": "object", "properties": { "outer": { "$ref": "#/definitions/Outer" } } } });
    let files = merge_extension(&definitions, |extension| {
        let lowered = lower_extension(extension, &base_lowered(), NO_TABLES)?;
        emit(&lowered, &extension.list_entry.revision)
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
fn different_dialect_is_refused() {
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
        list_entry: &listed,
        schema: own.as_bytes(),
    };
    let lowered = lower_extension(extension, &base_lowered(), NO_TABLES);
    let error = lowered.expect_err("another dialect");
    expect!["ext-x at /$defs: the definitions are in `$defs`, and those of 2000-01-01 in `definitions`; an extension must be written in the dialect of the revision that it extends"].assert_eq(&error.to_string());
}
