//! Constructs that a future revision may use and no official schema has yet: accepted by a rule, with a notice if the
//! types do not check a part, or refused with pointer and hint. `tests/small` compiles and uses many of these shapes.

use codegen::lower;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::input::{NO_TABLES, revision, schema};

/// Compares the notices of a schema with the definition `Thing`, or its error.
fn check(thing: Value, expected: &Expect) {
    check_with_others(thing, json!({}), expected);
}

/// Compares the notices of a schema with the definition `Thing` and other definitions, or its error.
fn check_with_others(thing: Value, others: Value, expected: &Expect) {
    let mut definitions = json!({ "Thing": thing });
    if let (Some(all), Value::Object(others)) = (definitions.as_object_mut(), others) {
        all.extend(others);
    }
    let bytes = schema(definitions).to_string().into_bytes();
    let text = match lower(&revision(&bytes), &bytes, NO_TABLES) {
        Ok(lowered) if lowered.notices.is_empty() => "absorbed without a notice\n".to_owned(),
        Ok(lowered) => {
            let lines = lowered.notices.iter().map(|notice| format!("{notice}\n"));
            lines.collect()
        }
        Err(error) => format!("refused: {error}\n"),
    };
    expected.assert_eq(&text);
}

/// Creates an object with these members.
fn object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// Creates an object that allows no other members.
fn closed_object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

#[test]
fn closed_objects_are_accepted() {
    check(
        closed_object(json!({ "a": { "type": "string" } })),
        &expect![[r#"
        absorbed without a notice
    "#]],
    );
    check(
        closed_object(json!({})),
        &expect![[r#"
        absorbed without a notice
    "#]],
    );
    check(
        object(json!({ "inner": closed_object(json!({ "a": { "type": "string" } })) })),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
}

/// A definition may contain definitions, which constrain nothing. References lead to the definitions of the document alone.
#[test]
fn inner_definitions_are_passed_over() {
    let inner = json!({ "Inner": { "$ref": "#/somewhere/else" } });
    let mut thing = object(json!({ "a": { "type": "string" } }));
    thing["$defs"] = inner.clone();
    thing["properties"]["a"]["definitions"] = inner;
    check(
        thing.clone(),
        &expect![[r#"
        absorbed without a notice
    "#]],
    );
    thing["properties"]["a"] = json!({ "$ref": "#/definitions/Thing/$defs/Inner" });
    check(
        thing,
        &expect![[r##"
        refused: 2000-01-01 at /definitions/Thing/properties/a/$ref: the reference "#/definitions/Thing/$defs/Inner" names no definition; refer to a member of `definitions`
    "##]],
    );
}

/// An empty list of required members demands nothing, of a map either.
#[test]
fn nothing_may_be_required() {
    check(
        json!({ "type": "object", "additionalProperties": { "type": "string" }, "required": [] }),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
    check(
        json!({ "type": "object", "additionalProperties": { "type": "string" }, "required": ["a"] }),
        &expect![[r#"
            refused: 2000-01-01 at /definitions/Thing/required: `required` is not supported for the type `object`; teach the generator what it means, or correct it by an erratum
        "#]],
    );
}

/// An `allOf` is refused if one of its objects is closed and another one defines a further member.
#[test]
fn closed_part_of_all_of_refused() {
    check_with_others(
        json!({ "allOf": [{ "$ref": "#/definitions/Base" }, object(json!({ "b": { "type": "string" } }))] }),
        json!({ "Base": closed_object(json!({ "a": { "type": "string" } })) }),
        &expect![[r#"
            refused: 2000-01-01 at /definitions/Thing/allOf/1: a closed object in this `allOf` forbids the member `b` of another one; close the whole instead of its part by an erratum
        "#]],
    );
}

/// Every string value of an enum gets a distinct variant name; a notice reports unusual names.
#[test]
fn enums_of_any_strings_are_named() {
    check(
        json!({ "type": "string", "enum": ["2025-06-18", "2.0"] }),
        &expect![[r#"
            /definitions/Thing/enum: the value "2025-06-18" is the variant `V20250618`
            /definitions/Thing/enum: the value "2.0" is the variant `V20`
        "#]],
    );
    check(
        json!({ "type": "string", "enum": ["<", "<=", "*", ""] }),
        &expect![[r#"
            /definitions/Thing/enum: the value "<" is the variant `Less`
            /definitions/Thing/enum: the value "<=" is the variant `LessEqual`
            /definitions/Thing/enum: the value "*" is the variant `Star`
            /definitions/Thing/enum: the value "" is the variant `Empty`
        "#]],
    );
    check(
        json!({ "type": "string", "enum": ["self", "type", "Self", "crate"] }),
        &expect![[r#"
            /definitions/Thing/enum: the value "self" is the variant `SelfValue_self`
            /definitions/Thing/enum: the value "Self" is the variant `SelfValue_Self`
        "#]],
    );
    check(
        json!({ "type": "string", "enum": ["a", "A", "b"] }),
        &expect![[r#"
            /definitions/Thing/enum: the value "a" is the variant `A_a`
            /definitions/Thing/enum: the value "A" is the variant `A_A`
        "#]],
    );
    check(
        json!({ "type": "string", "enum": ["unrecognized", "Unrecognized"] }),
        &expect![[r#"
            /definitions/Thing/enum: the value "unrecognized" is the variant `Unrecognized_unrecognized`
            /definitions/Thing/enum: the value "Unrecognized" is the variant `Unrecognized_Unrecognized`
        "#]],
    );
    check(
        json!({ "enum": ["größe", "日本"] }),
        &expect![[r#"
        /definitions/Thing/enum: the value "größe" is the variant `GrUf6UdfE`
        /definitions/Thing/enum: the value "日本" is the variant `U65e5U672c`
    "#]],
    );
}

/// A null value makes an enum nullable; an enum with numbers is refused.
#[test]
fn enums_of_other_values_are_handled() {
    check(
        json!({ "enum": ["a", "b", null] }),
        &expect![[r#"
        absorbed without a notice
    "#]],
    );
    check(
        json!({ "type": ["string", "null"], "enum": ["a", null] }),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
    check(
        json!({ "enum": [1, 2] }),
        &expect![[r#"
            /definitions/Thing/enum: `validate()` does not check that this integer is one of those listed
        "#]],
    );
}

#[test]
fn nullable_items_are_accepted() {
    let several = json!({ "type": ["string", "number", "null"] });
    check(
        object(json!({ "a": { "type": "array", "items": several } })),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
    check(
        object(json!({ "a": { "type": "object", "additionalProperties": several } })),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
}

#[test]
fn null_among_types_is_nullable() {
    check(
        json!({ "type": ["string", "integer", "null"] }),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
    check(
        json!({ "type": "array", "items": { "type": ["string", "number", "null"] } }),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
    check(
        json!({ "type": "array", "items": { "anyOf": [{ "$ref": "#/definitions/ServerResult" }, { "type": "null" }] } }),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
    check(
        object(
            json!({ "a": { "oneOf": [{ "type": "null" }, object(json!({ "b": { "type": "string" } }))] } }),
        ),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
    check(
        json!({ "anyOf": [{ "type": "string" }, { "type": ["integer", "null"] }, { "type": "boolean" }] }),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
    check(
        object(
            json!({ "a": { "anyOf": [{ "const": "x", "type": "string" }, { "const": "y", "type": "string" }, { "type": "null" }] } }),
        ),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
    check(
        json!({ "type": "object", "additionalProperties": { "type": ["string", "boolean", "null"] } }),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
}

/// A notice reports a variant that is never decoded because another variant accepts all of its values.
#[test]
fn shadowed_variants_get_a_notice() {
    check(
        json!({ "anyOf": [{ "type": "integer" }, { "type": "number" }] }),
        &expect![[r#"
            /definitions/Thing: `Thing`: every value of the member `Integer` is decoded as `Number`
        "#]],
    );
    check(
        json!({ "anyOf": [{ "type": "string", "format": "uri" }, { "type": "string" }] }),
        &expect![[r#"
            /definitions/Thing/anyOf/1: another member of this union takes all values of this one, and stands for both
        "#]],
    );
    check_with_others(
        json!({ "anyOf": [{ "$ref": "#/definitions/Wide" }, { "$ref": "#/definitions/Narrow" }] }),
        json!({
            "Wide": object(json!({ "a": { "type": "string" }, "b": { "type": "string" } })),
            "Narrow": object(json!({ "a": { "type": "string" } })),
        }),
        &expect![[r#"
            /definitions/Thing: `Thing`: every value of the member `Narrow` is decoded as `Wide`
        "#]],
    );
    check_with_others(
        json!({ "anyOf": [{ "$ref": "#/definitions/One" }, { "$ref": "#/definitions/Same" }, { "$ref": "#/definitions/One" }] }),
        json!({
            "One": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
            "Same": { "type": "object", "properties": { "a": { "type": "string", "description": "Others." } }, "required": ["a"] },
        }),
        &expect![[r#"
            /definitions/Thing/anyOf/2: this variant of the union is there already, and left out
            /definitions/Thing: `Thing`: every value of the member `Same` is decoded as `One`
        "#]],
    );
}

/// A union may combine string enums, even with common values, or an enum and any string.
#[test]
fn known_strings_precede_any_string() {
    check_with_others(
        json!({ "anyOf": [{ "$ref": "#/definitions/Level" }, { "type": "string" }] }),
        json!({ "Level": { "type": "string", "enum": ["low", "high"] } }),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
    check_with_others(
        json!({ "anyOf": [{ "$ref": "#/definitions/Level" }, { "$ref": "#/definitions/Colour" }] }),
        json!({
            "Level": { "type": "string", "enum": ["low", "high"] },
            "Colour": { "type": "string", "enum": ["red", "low"] },
        }),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
}

#[test]
fn indistinguishable_variants_are_refused() {
    check(
        json!({ "anyOf": [{ "type": "string", "format": "uri" }, { "type": "string", "format": "date" }] }),
        &expect![[r#"
            refused: 2000-01-01 at /definitions/Thing: the members `String` and `String` are both strings, and nothing tells them apart; merge them by an erratum
        "#]],
    );
    check(
        json!({ "anyOf": [{ "type": "integer", "maximum": 5 }, { "type": "integer", "minimum": 3 }] }),
        &expect![[r#"
            refused: 2000-01-01 at /definitions/Thing: the members `Integer` and `Integer` are both numbers, and nothing tells them apart; merge them by an erratum
        "#]],
    );
    check_with_others(
        json!({ "anyOf": [{ "$ref": "#/definitions/One" }, { "$ref": "#/definitions/Other" }] }),
        json!({
            "One": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
            "Other": { "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] },
        }),
        &expect![[r#"
            refused: 2000-01-01 at /definitions/Thing: nothing tells the member `Other` from those before it; take it out by an erratum
        "#]],
    );
}

/// An anonymous schema gets the suffix `Inline` if a definition has the name that its JSON pointer yields.
#[test]
fn anonymous_schemas_get_distinct_names() {
    let part = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    check_with_others(
        object(json!({ "part": part("a") })),
        json!({ "ThingPart": { "type": "string" } }),
        &expect![[r#"
            /definitions/Thing/properties/part: what is anonymous here is called `ThingPartInline`, as a shorter name is taken
        "#]],
    );
}

#[test]
fn patterns_get_a_notice() {
    check(
        json!({ "type": "string", "pattern": "^[a-z]+$" }),
        &expect![[r#"
            /definitions/Thing/pattern: `validate()` does not check strings against regular expressions, which differ between languages
        "#]],
    );
    check(
        object(json!({ "a": { "type": ["string", "null"], "pattern": "^a" } })),
        &expect![[r#"
            /definitions/Thing/properties/a/pattern: `validate()` does not check strings against regular expressions, which differ between languages
        "#]],
    );
}

/// A notice reports rules for member names that the generated types do not check.
#[test]
fn unusual_member_names_are_handled() {
    check(
        json!({ "type": "object", "propertyNames": { "pattern": "^x-" }, "additionalProperties": { "type": "string" } }),
        &expect![[r#"
            /definitions/Thing/propertyNames: `validate()` does not check the names of members
        "#]],
    );
    check(
        json!({ "type": "object", "patternProperties": { "^x-": { "type": "string" } }, "additionalProperties": false }),
        &expect![[r#"
            /definitions/Thing/patternProperties: every member has this type; `validate()` does not check the names
        "#]],
    );
    check(
        json!({ "type": "object", "patternProperties": { ".*": { "type": "integer" } } }),
        &expect![[r#"
            absorbed without a notice
        "#]],
    );
    check(
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "patternProperties": { "^x-": { "type": "string" } }, "additionalProperties": false }),
        &expect![[r#"
            /definitions/Thing/patternProperties: members with such names are kept as any JSON, and `validate()` does not check them
        "#]],
    );
}

/// A union with a variant that allows every value becomes untyped JSON.
#[test]
fn untyped_variant_widens_the_union() {
    check(
        json!({ "anyOf": [{ "type": "string" }, {}] }),
        &expect![[r#"
            /definitions/Thing: one member of this union is any value, so the whole is any value
        "#]],
    );
    check(
        object(json!({ "a": { "oneOf": [true, { "type": "string" }] } })),
        &expect![[r#"
            /definitions/Thing/properties/a: one member of this union is any value, so the whole is any value
        "#]],
    );
}

/// A union of arrays, as in drafts of 2025: the content of a sampling message is one block, or an array of blocks of
/// several kinds.
#[test]
fn several_arrays_are_merged() {
    check(
        json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "type": "boolean" } },
            { "type": "array", "items": { "anyOf": [{ "type": "integer" }, { "type": "boolean" }] } },
        ] }),
        &expect![[r#"
            /definitions/Thing: the arrays of this union are one, whose items may be those of any of them; `validate()` does not check which
            /definitions/Thing/anyOf/1/items: what is anonymous here is called `ThingInline`, as a shorter name is taken
        "#]],
    );
    check(
        json!({ "anyOf": [
            { "type": "array", "items": { "type": "string" } },
            { "type": "array", "items": { "type": "integer" } },
        ] }),
        &expect![[r#"
            /definitions/Thing: the arrays of this union are one, whose items may be those of any of them; `validate()` does not check which
        "#]],
    );
    check(
        json!({ "anyOf": [{ "type": "array", "items": { "type": "boolean" } }, { "type": "array" }, { "type": "string" }] }),
        &expect![[r#"
            /definitions/Thing: the arrays of this union are one, whose items may be those of any of them; `validate()` does not check which
        "#]],
    );
}

#[test]
fn boolean_constants_are_widened() {
    let hints = |value: bool, more: Value| {
        let mut properties = json!({ "readOnly": { "const": value, "type": "boolean" } });
        if let (Some(all), Value::Object(more)) = (properties.as_object_mut(), more) {
            all.extend(more);
        }
        json!({ "type": "object", "properties": properties, "required": ["readOnly"] })
    };
    check(
        hints(true, json!({})),
        &expect![[r#"
        /definitions/Thing/properties/readOnly/const: `validate()` does not check that this is true
    "#]],
    );
    check(
        object(json!({ "hints": { "anyOf": [
            hints(true, json!({})),
            hints(false, json!({ "destructive": { "type": "boolean" } })),
        ] } })),
        &expect![[r#"
            /definitions/Thing/properties/hints/anyOf/0/properties/readOnly/const: `validate()` does not check that this is true
            /definitions/Thing/properties/hints/anyOf/1/properties/readOnly/const: `validate()` does not check that this is false
            /definitions/Thing/properties/hints/anyOf/1: what is anonymous here is called `ThingHintsInline`, as a shorter name is taken
            /definitions/Thing/properties/hints/anyOf/0: what is anonymous here is called `ThingHintsValue`, as a shorter name is taken
        "#]],
    );
}

/// An `allOf` of references that narrows a member, as in drafts of 2025 and 2026: `JSONRPCResultResponse & { result:
/// GetTaskPayloadResult }`.
#[test]
fn narrower_reference_replaces_both() {
    let base = object(json!({ "_meta": { "type": "object", "description": "Metadata." } }));
    let narrow = object(json!({ "_meta": { "type": "object" }, "value": { "type": "string" } }));
    let other = object(json!({ "value": { "type": "integer" } }));
    let whole = |result: &str| {
        let part =
            |name: &str| object(json!({ "result": { "$ref": format!("#/definitions/{name}") } }));
        json!({ "allOf": [part("Base"), part(result)] })
    };
    let definitions = json!({ "Base": base, "Narrow": narrow, "Other": other });
    check_with_others(
        whole("Narrow"),
        definitions.clone(),
        &expect![[r#"
        absorbed without a notice
    "#]],
    );
    check_with_others(
        whole("Other"),
        definitions,
        &expect![[r#"
        refused: 2000-01-01 at /definitions/Thing/allOf/1/properties/result: two schemas disagree about `$ref` of the same value; say one of them by an erratum
    "#]],
    );
}

#[test]
fn inexpressible_keywords_are_refused() {
    check(
        json!({ "not": { "type": "string" } }),
        &expect![[r#"
        refused: 2000-01-01 at /definitions/Thing/not: the keyword `not` is not understood; teach the generator what it means, or correct it by an erratum
    "#]],
    );
    check(
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "additionalProperties": { "type": "integer" } }),
        &expect![[r#"
            refused: 2000-01-01 at /definitions/Thing/additionalProperties: known members beside additional ones of a type are not supported; teach the generator such objects
        "#]],
    );
    check(
        json!({ "type": "object", "unevaluatedProperties": false }),
        &expect![[r#"
            refused: 2000-01-01 at /definitions/Thing/unevaluatedProperties: the keyword `unevaluatedProperties` is not understood; teach the generator what it means, or correct it by an erratum
        "#]],
    );
}

/// Keywords that narrow values are accepted with a notice: the types take every valid value, and more.
#[test]
fn narrowing_keywords_are_accepted() {
    check(
        json!({ "type": "string", "minLength": 1, "maxLength": 8, "contentEncoding": "base64" }),
        &expect![[r#"
            /definitions/Thing/contentEncoding: `validate()` does not check `contentEncoding`
            /definitions/Thing/maxLength: `validate()` does not check `maxLength`
            /definitions/Thing/minLength: `validate()` does not check `minLength`
        "#]],
    );
    check(
        json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1.5, "multipleOf": 0.5 }),
        &expect![[r#"
            /definitions/Thing/exclusiveMaximum: `validate()` does not check `exclusiveMaximum`
            /definitions/Thing/exclusiveMinimum: `validate()` does not check `exclusiveMinimum`
            /definitions/Thing/multipleOf: `validate()` does not check `multipleOf`
        "#]],
    );
    check(
        json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true }),
        &expect![[r#"
            /definitions/Thing/uniqueItems: `validate()` does not check `uniqueItems`
        "#]],
    );
    check(
        json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": false, "minItems": 1 }),
        &expect![[r#"
            /definitions/Thing/prefixItems: the items of this tuple are any JSON; `validate()` does not check them
        "#]],
    );
    check(
        json!({
            "type": "object",
            "properties": { "a": { "type": "string" } },
            "dependentRequired": { "b": ["a"] },
            "if": { "required": ["b"] },
            "then": { "required": ["a"] },
            "maxProperties": 3,
        }),
        &expect![[r#"
            /definitions/Thing/dependentRequired: `validate()` does not check `dependentRequired`
            /definitions/Thing/if: `validate()` does not check `if`
            /definitions/Thing/maxProperties: `validate()` does not check `maxProperties`
            /definitions/Thing/then: `validate()` does not check `then`
        "#]],
    );
}

/// JSON Schema 2020-12, section 10.3.1.2: "Omitting this keyword has the same assertion behavior as an empty schema": each item may
/// be any value.
#[test]
fn arrays_without_items_are_accepted() {
    let list = json!({ "type": "array", "minItems": 1 });
    let absorbed = &expect![[r#"
        absorbed without a notice
    "#]];
    check(object(json!({ "list": list })), absorbed);
    check(
        object(json!({ "list": { "type": ["array", "null"] } })),
        absorbed,
    );
    check(list, absorbed);
}
