//! Unions whose variants cannot be distinguished are refused, so that decoding never guesses.

use expect_test::expect;
use serde_json::{Map, Value, json};

use crate::input::{NO_TABLES, check, check_thing, error_text, generate_from};

/// Creates a reference to a definition.
fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{name}") })
}

/// Creates an object with one required member.
fn object(member: &str) -> Value {
    json!({ "type": "object", "properties": { member: { "type": "string" } }, "required": [member] })
}

/// A union that is one of its own variants is refused.
#[test]
fn recursive_union_is_refused() {
    let thing = json!({ "anyOf": [reference("Thing"), { "type": "string" }] });
    check_thing(
        thing,
        &expect![[r#"
        2000-01-01 at /definitions/Thing: `Thing` is defined by itself; take the reference out by an erratum
    "#]],
    );
}

#[test]
fn mutually_recursive_unions_are_refused() {
    let definitions = json!({
        "A": { "anyOf": [reference("B"), { "type": "string" }] },
        "B": { "anyOf": [{ "oneOf": [reference("A"), { "type": "boolean" }] }, { "type": "integer" }] },
    });
    check(
        definitions,
        &expect![[r#"
        2000-01-01 at /definitions/B: `A` is defined by itself; take the reference out by an erratum
    "#]],
    );
}

#[test]
fn ambiguous_arrays_are_refused() {
    let definitions = json!({
        "Integers": { "type": "array", "items": { "type": "integer" } },
        "Strings": { "type": "array", "items": { "type": "string" } },
        "Thing": { "anyOf": [reference("Integers"), reference("Strings")] },
    });
    check(
        definitions,
        &expect![[r#"
        2000-01-01 at /definitions/Thing: several arrays whose items are no objects cannot be told apart; merge them by an erratum
    "#]],
    );
}

#[test]
fn keywords_beside_a_union_are_refused() {
    let thing = json!({ "type": "object", "anyOf": [object("a"), object("b")] });
    check_thing(
        thing,
        &expect![[r#"
        2000-01-01 at /definitions/Thing/type: `type` stands beside `anyOf`; teach the generator what it means, or correct it by an erratum
    "#]],
    );
}

/// A schema with both `anyOf` and `oneOf` is refused.
#[test]
fn combined_union_keywords_are_refused() {
    let thing = json!({ "anyOf": [{ "type": "string" }], "oneOf": [{ "type": "integer" }] });
    check_thing(
        thing,
        &expect![[r#"
        2000-01-01 at /definitions/Thing: `anyOf` and `oneOf` stand beside each other; say it with one of them by an erratum
    "#]],
    );
}

/// A schema with both `properties` and `anyOf` is refused.
#[test]
fn members_beside_a_union_are_refused() {
    let thing = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "anyOf": [{ "required": ["a"] }, { "required": ["b"] }],
    });
    check_thing(
        thing,
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties: `properties` stands beside `anyOf`; teach the generator what it means, or correct it by an erratum
    "#]],
    );
}

/// A variant must not have the name `Unrecognized`, which the variant for unknown values has.
#[test]
fn variant_named_unknown_is_refused() {
    let tagged = |tag: &str| json!({ "type": "object", "properties": { "type": { "const": tag } }, "required": ["type"] });
    let definitions = json!({
        "Known": tagged("known"),
        "Other": tagged("unrecognized"),
        "Thing": { "anyOf": [reference("Known"), reference("Other")] },
    });
    check(
        definitions,
        &expect![[r#"
        2000-01-01 at /definitions/Thing: several members would be called `Unrecognized`; name one of them in schema/names.toml, or merge them by an erratum
    "#]],
    );
}

/// Returns definitions with different discriminants, and references to them.
fn many_variants(count: usize) -> (Map<String, Value>, Vec<Value>) {
    let tagged = |n| json!({ "type": "object", "properties": { "type": { "const": format!("t{n}") } }, "required": ["type"] });
    let definitions = (0..count).map(|n| (format!("A{n}"), tagged(n))).collect();
    let members = (0..count).map(|n| reference(&format!("A{n}"))).collect();
    (definitions, members)
}

#[test]
fn two_hundred_variants_are_accepted() {
    let (mut definitions, members) = many_variants(200);
    definitions.insert("Thing".to_owned(), json!({ "anyOf": members }));
    check(
        Value::Object(definitions),
        &expect![[r#"
            accepted
        "#]],
    );
}

#[test]
fn too_many_variants_are_refused() {
    let (mut definitions, members) = many_variants(201);
    definitions.insert("Thing".to_owned(), json!({ "anyOf": members }));
    check(
        Value::Object(definitions),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/anyOf: `anyOf` has 201 members; 200 are supported; look at the file
    "#]],
    );
}

#[test]
fn too_many_nested_variants_are_refused() {
    let (mut definitions, members) = many_variants(210);
    definitions.insert("Lower".to_owned(), json!({ "anyOf": members[..105] }));
    definitions.insert("Upper".to_owned(), json!({ "anyOf": members[105..] }));
    let thing = json!({ "anyOf": [reference("Lower"), reference("Upper")] });
    definitions.insert("Thing".to_owned(), thing);
    check(
        Value::Object(definitions),
        &expect![[r#"
        2000-01-01 at /definitions/Thing: a union has more than 200 members, those of its unions included; widen `DispatchCase::variant` in the runtime
    "#]],
    );
}

/// At most 32 members may determine the variant of a union.
#[test]
fn too_many_discriminating_members_are_refused() {
    let names: Vec<String> = (0..33).map(|n| format!("m{n}")).collect();
    let members: Vec<Value> = names.iter().map(|name| object(name)).collect();
    let definitions: Map<String, Value> = (0..33)
        .map(|n| (format!("A{n}"), members[n].clone()))
        .collect();
    let all: Vec<Value> = (0..33).map(|n| reference(&format!("A{n}"))).collect();
    let mut definitions = definitions;
    definitions.insert("Thing".to_owned(), json!({ "anyOf": all }));
    check(
        Value::Object(definitions),
        &expect![[r#"
        2000-01-01 at /definitions/Thing: more than 32 members of objects decide which variant of a union it is; widen `DispatchCase::has` in the runtime
    "#]],
    );
}

/// A union may have an object as a variant that contains the union.
#[test]
fn recursive_union_objects_are_accepted() {
    let tagged = |tag: &str| json!({ "kind": { "const": tag, "type": "string" } });
    let leaf = json!({ "type": "object", "properties": tagged("leaf"), "required": ["kind"] });
    let of = |union: &str| {
        let mut properties = tagged("not");
        properties["of"] = reference(union);
        json!({ "type": "object", "properties": properties, "required": ["kind", "of"] })
    };
    for (union, object) in [("A", "B"), ("B", "A"), ("Y", "Z"), ("Z", "Y")] {
        let definitions = json!({
            "Leaf": leaf,
            union: { "anyOf": [reference(object), reference("Leaf")] },
            object: of(union),
        });
        let error = error_text(generate_from(definitions, NO_TABLES));
        assert_eq!(error, "accepted\n", "{union} of {object}");
    }
}
