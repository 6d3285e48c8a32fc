//! Keywords and shapes without an exact Rust type are refused, with their JSON pointers.

use expect_test::expect;
use serde_json::{Map, Value, json};

use crate::input::{NO_TABLES, check, check_thing, error_text, generate_from};

#[test]
fn unknown_keywords_are_refused() {
    check_thing(
        json!({ "type": "object", "patternProperties": { "^x-": {} } }),
        &expect![[r#"
            accepted
        "#]],
    );
    check_thing(
        json!({ "unevaluatedProperties": {} }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/unevaluatedProperties: the keyword `unevaluatedProperties` is not understood; teach the generator what it means, or correct it by an erratum
        "#]],
    );
    check_thing(
        json!({ "type": "array", "contains": {} }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/contains: the keyword `contains` is not understood; teach the generator what it means, or correct it by an erratum
        "#]],
    );
    check_thing(
        json!({ "type": "object", "properties": { "a/b": { "not": {} } } }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/a~1b/not: the keyword `not` is not understood; teach the generator what it means, or correct it by an erratum
        "#]],
    );
}

#[test]
fn false_schema_is_refused() {
    check_thing(
        json!(false),
        &expect![[r#"
        2000-01-01 at /definitions/Thing: this is not a schema; use an object; `false` as a schema is not supported
    "#]],
    );
}

#[test]
fn tuple_items_are_refused() {
    check_thing(
        json!({ "type": "array", "items": [{ "type": "string" }] }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/items: this is not a schema; use an object; `false` as a schema is not supported
        "#]],
    );
}

#[test]
fn dangling_reference_is_refused() {
    check_thing(
        json!({ "$ref": "#/definitions/Nothing" }),
        &expect![[r##"
            2000-01-01 at /definitions/Thing/$ref: the reference "#/definitions/Nothing" names no definition; refer to a member of `definitions`
        "##]],
    );
}

#[test]
fn reference_into_a_definition_is_refused() {
    let other = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let thing = json!({ "$ref": "#/definitions/Other/properties/a" });
    check(
        json!({ "Other": other, "Thing": thing }),
        &expect![[r##"
        2000-01-01 at /definitions/Thing/$ref: the reference "#/definitions/Other/properties/a" names no definition; refer to a member of `definitions`
    "##]],
    );
}

#[test]
fn external_reference_is_refused() {
    check_thing(
        json!({ "$ref": "http://example.com/schema.json" }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/$ref: the reference "http://example.com/schema.json" names no definition; refer to a member of `definitions`
        "#]],
    );
}

#[test]
fn keywords_beside_a_reference_are_refused() {
    let thing = json!({ "$ref": "#/definitions/ServerResult", "required": ["a"] });
    check_thing(
        thing,
        &expect![[r#"
        2000-01-01 at /definitions/Thing/required: `required` stands beside `$ref`; teach the generator what it means, or correct it by an erratum
    "#]],
    );
}

#[test]
fn self_reference_is_refused() {
    check_thing(
        json!({ "$ref": "#/definitions/Thing" }),
        &expect![[r#"
        2000-01-01 at /definitions/Thing: `Thing` is defined by itself; take the reference out by an erratum
    "#]],
    );
}

#[test]
fn mutual_references_are_refused() {
    let definitions = json!({
        "A": { "$ref": "#/definitions/B" },
        "B": { "$ref": "#/definitions/A" },
    });
    check(
        definitions,
        &expect![[r#"
        2000-01-01 at /definitions/B: `A` is defined by itself; take the reference out by an erratum
    "#]],
    );
}

#[test]
fn list_of_itself_is_refused() {
    let thing = json!({ "type": "array", "items": { "$ref": "#/definitions/Thing" } });
    check_thing(
        thing,
        &expect![[r#"
        2000-01-01 at /definitions/Thing: `Thing` is another name for itself; teach the generator to make it a type of its own
    "#]],
    );
}

#[test]
fn cycle_of_lists_is_refused() {
    let definitions = json!({
        "A": { "type": "array", "items": { "$ref": "#/definitions/B" } },
        "B": { "type": "object", "additionalProperties": { "$ref": "#/definitions/A" } },
    });
    check(
        definitions,
        &expect![[r#"
        2000-01-01 at /definitions/A: `A` is another name for itself; teach the generator to make it a type of its own
    "#]],
    );
}

#[test]
fn recursive_all_of_is_refused() {
    let definitions = json!({
        "A": { "allOf": [{ "$ref": "#/definitions/B" }] },
        "B": { "allOf": [{ "$ref": "#/definitions/A" }], "type": "object" },
    });
    check(
        definitions,
        &expect![[r#"
        2000-01-01 at /definitions/B: `A` is defined by itself; take the reference out by an erratum
    "#]],
    );
}

#[test]
fn self_referential_all_of_is_refused() {
    let child = json!({ "allOf": [{ "$ref": "#/definitions/Thing" }] });
    check_thing(
        json!({ "type": "object", "properties": { "child": child } }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/child/allOf/0: `Thing` is a part of itself; take the cycle out of `allOf` by an erratum
        "#]],
    );
}

#[test]
fn long_reference_chain_is_refused() {
    let mut definitions = Map::new();
    for n in 0..1000 {
        let next = json!({ "$ref": format!("#/definitions/A{}", n + 1) });
        definitions.insert(format!("A{n}"), next);
    }
    definitions.insert("A1000".to_owned(), json!({ "type": "string" }));
    check(
        Value::Object(definitions),
        &expect![[r#"
        2000-01-01 at /definitions/A64: `A65` stands at the end of more than 64 references; take the reference out by an erratum
    "#]],
    );
}

#[test]
fn long_object_chain_is_accepted() {
    let mut definitions = Map::new();
    for n in 0..1900 {
        let next = json!({ "$ref": format!("#/definitions/A{}", n + 1) });
        let object = json!({ "type": "object", "properties": { "next": next } });
        definitions.insert(format!("A{n}"), object);
    }
    definitions.insert("A1900".to_owned(), json!({ "type": "string" }));
    check(
        Value::Object(definitions),
        &expect![[r#"
            accepted
        "#]],
    );
}

/// A chain of `allOf` in which each definition contains the next one twice is refused before it is expanded.
#[test]
fn doubling_all_of_is_refused() {
    let mut definitions = Map::new();
    for n in 0..60 {
        let next = json!({ "$ref": format!("#/definitions/A{}", n + 1) });
        definitions.insert(format!("A{n}"), json!({ "allOf": [next, next] }));
    }
    definitions.insert("A60".to_owned(), json!({ "type": "string" }));
    check(
        Value::Object(definitions),
        &expect![[r#"
            2000-01-01 at /definitions/A32/allOf/0: `allOf` leads on to `allOf` for more than 32 steps; a schema of the protocol has one or two; look at the file
        "#]],
    );
}

#[test]
fn contradictory_all_of_is_refused() {
    let a = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let b = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    check_thing(
        json!({ "allOf": [a, b] }),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/allOf/1/properties/a: two schemas disagree about `type` of the same value; say one of them by an erratum
    "#]],
    );
}

#[test]
fn deeply_nested_schemas_are_refused() {
    let mut thing = json!({ "type": "string" });
    for _ in 0..40 {
        thing = json!({ "type": "array", "items": { "type": "object", "additionalProperties": thing } });
    }
    check_thing(
        thing,
        &expect![[r#"
        2000-01-01 at /definitions/Thing/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items/additionalProperties/items: schemas are nested deeper than 64 levels; a schema of the protocol is not nested like that; look at the file
    "#]],
    );
}

#[test]
fn typed_additional_members_are_refused() {
    let thing = json!({
        "type": "object",
        "properties": { "a": { "type": "string" } },
        "additionalProperties": { "type": "integer" },
    });
    check_thing(
        thing,
        &expect![[r#"
        2000-01-01 at /definitions/Thing/additionalProperties: known members beside additional ones of a type are not supported; teach the generator such objects
    "#]],
    );
}

#[test]
fn members_without_object_type_are_refused() {
    check_thing(
        json!({ "properties": { "a": { "type": "string" } } }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing: a schema with members has to have the type `object`; say the type by an erratum
        "#]],
    );
    check_thing(
        json!({ "type": "string", "properties": { "a": { "type": "string" } } }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing: a schema with members has to have the type `object`; say the type by an erratum
        "#]],
    );
    check_thing(
        json!({ "type": ["object", "null"], "properties": { "a": { "type": "string" } } }),
        &expect![[r#"
            accepted
        "#]],
    );
    check_thing(
        json!({ "type": ["object", "string"], "properties": { "a": { "type": "string" } } }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing: an object with members has no name here; teach the generator this shape
        "#]],
    );
}

#[test]
fn undefined_required_members_are_refused() {
    check_thing(
        json!({ "type": "object", "properties": { "a": {} }, "required": ["b"] }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing: the required member `b` is not described; describe it by an erratum
        "#]],
    );
    check_thing(
        json!({ "type": "object", "required": ["b"] }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/required: `required` is not supported for the type `object`; teach the generator what it means, or correct it by an erratum
        "#]],
    );
}

#[test]
fn keywords_of_another_type_are_refused() {
    check_thing(
        json!({ "type": "string", "minimum": 1 }),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/minimum: `minimum` is not supported for the type `string`; teach the generator what it means, or correct it by an erratum
    "#]],
    );
    check_thing(
        json!({ "type": "array", "items": { "type": "string", "items": {} } }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/items/items: `items` is not supported for the type `string`; teach the generator what it means, or correct it by an erratum
        "#]],
    );
}

#[test]
fn too_many_members_are_refused() {
    let members: Map<String, Value> = (0..65).map(|n| (format!("m{n}"), json!({}))).collect();
    check_thing(
        json!({ "type": "object", "properties": members }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing: an object of more than 64 members is not supported; widen `Shape::required` in the runtime
        "#]],
    );
}

#[test]
fn fractional_bounds_are_refused() {
    check_thing(
        json!({ "type": "number", "minimum": 0.5 }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/minimum: only whole bounds are supported; teach the generator this bound
        "#]],
    );
    check_thing(
        json!({ "type": "integer", "maximum": 1e300 }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/maximum: only whole bounds are supported; teach the generator this bound
        "#]],
    );
    check_thing(
        json!({ "type": "array", "items": { "type": "string" }, "minItems": 1.0 }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/minItems: `minItems` is 1.0; write it without a fraction, and below 4294967296
        "#]],
    );
}

#[test]
fn mixed_enums_are_refused() {
    check_thing(
        json!({ "type": "number", "enum": [1, 2.5] }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/enum: only enums of strings are supported; teach the generator this enum
        "#]],
    );
    check_thing(
        json!({ "type": "string", "enum": ["a", null] }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/enum: only enums of strings are supported; teach the generator this enum
        "#]],
    );
    check_thing(
        json!({ "type": ["string", "null"], "enum": ["a", null] }),
        &expect![[r#"
            accepted
        "#]],
    );
}

#[test]
fn unsupported_constants_are_refused() {
    let member = |schema: Value, required: &[&str]| json!({ "type": "object", "properties": { "a": schema }, "required": required });
    check_thing(
        member(json!({ "const": true }), &["a"]),
        &expect![[r#"
            accepted
        "#]],
    );
    check_thing(
        member(json!({ "const": 5 }), &[]),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/a/const: the constant 5 is not a string and may be absent; teach the generator this constant
    "#]],
    );
    check_thing(
        member(json!({ "const": "x", "type": "integer" }), &["a"]),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/a: the constant "x" of this type is not supported; teach the generator this constant
        "#]],
    );
    check_thing(
        json!({ "type": "array", "items": { "const": 5 } }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/items/const: the constant 5 is not a string and may be absent; teach the generator this constant
        "#]],
    );
}

#[test]
fn null_only_member_is_refused() {
    check_thing(
        json!({ "type": "null" }),
        &expect![[r#"
        2000-01-01 at /definitions/Thing: this schema has no exact type: {"type":"null"}; teach the generator this shape
    "#]],
    );
}

#[test]
fn self_containing_objects_are_boxed() {
    let holds = |member: &str, name: &str| {
        let reference = json!({ "$ref": format!("#/definitions/{name}") });
        json!({ "type": "object", "properties": { member: reference }, "required": [member] })
    };
    let other = json!({ "$ref": "#/definitions/C" });
    let cases = [
        json!({ "A": holds("x", "B"), "B": holds("y", "A") }),
        json!({ "A": holds("x", "B"), "B": other, "C": holds("y", "A") }),
        json!({ "A": holds("io.example/x", "A") }),
        json!({ "A": holds("self", "A") }),
        json!({ "A": holds("extra", "A") }),
        json!({ "A": holds("type", "A") }),
    ];
    let error: String = cases
        .map(|case| error_text(generate_from(case, NO_TABLES)))
        .concat();
    expect![[r#"
        accepted
        accepted
        accepted
        accepted
        accepted
        accepted
    "#]]
    .assert_eq(&error);
}
