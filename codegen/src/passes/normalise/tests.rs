//! Tests of normalisation in small schemas: intersections, unions, constants and untyped objects. Each test compares
//! the normalised definition `Thing`, or the error.

use expect_test::{Expect, expect};

use super::*;
use crate::notice::Notices;
use crate::testing::{schema, to_sorted_json};

/// Normalises a schema and compares its definition `Thing`.
fn check(definitions: Value, expected: Expect) {
    let mut schema = schema(definitions);
    expected.assert_eq(&match normalise(&mut schema, &mut Notices::default()) {
        Ok(()) => to_sorted_json(&schema.root["definitions"]["Thing"]),
        Err(error) => format!("{error}\n"),
    });
}

/// Creates an object with these members.
fn object(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required })
}

#[test]
fn all_of_is_merged() {
    let base = object(json!({ "a": { "type": "string" } }), &["a"]);
    let own = object(json!({ "b": { "type": "integer" } }), &["b"]);
    let thing = json!({ "allOf": [{ "$ref": "#/definitions/Base" }, own], "description": "Both." });
    check(
        json!({ "Base": base, "Thing": thing }),
        expect![[r#"
        {
          "description": "Both.",
          "properties": {
            "a": {
              "type": "string"
            },
            "b": {
              "type": "integer"
            }
          },
          "required": [
            "a",
            "b"
          ],
          "type": "object"
        }
    "#]],
    );
}

#[test]
fn nested_all_of_is_merged() {
    let top = object(json!({ "a": {} }), &[]);
    let middle =
        json!({ "allOf": [{ "$ref": "#/definitions/Top" }, object(json!({ "b": {} }), &["a"])] });
    let thing =
        json!({ "allOf": [{ "$ref": "#/definitions/Middle" }], "description": "Own words." });
    check(
        json!({ "Top": top, "Middle": middle, "Thing": thing }),
        expect![[r#"
            {
              "description": "Own words.",
              "properties": {
                "a": {},
                "b": {}
              },
              "required": [
                "a"
              ],
              "type": "object"
            }
        "#]],
    );
}

/// Keywords next to an `allOf` are merged with its elements.
#[test]
fn adjacent_keywords_are_merged() {
    let thing = json!({
        "allOf": [object(json!({ "a": {} }), &[])],
        "properties": { "b": {} },
        "required": ["b"],
    });
    check(
        json!({ "Thing": thing }),
        expect![[r#"
        {
          "properties": {
            "a": {},
            "b": {}
          },
          "required": [
            "b"
          ],
          "type": "object"
        }
    "#]],
    );
}

/// In an `allOf`, a constant of the required type replaces the type.
#[test]
fn a_constant_narrows_a_type() {
    let base = object(
        json!({ "code": { "type": "integer", "description": "A code." }, "name": { "type": "string" } }),
        &["code"],
    );
    let own = object(
        json!({ "code": { "const": -1 }, "name": { "const": "n", "type": "string" } }),
        &[],
    );
    check(
        json!({ "Thing": { "allOf": [base, own] } }),
        expect![[r#"
            {
              "properties": {
                "code": {
                  "const": -1,
                  "description": "A code."
                },
                "name": {
                  "const": "n",
                  "type": "string"
                }
              },
              "required": [
                "code"
              ],
              "type": "object"
            }
        "#]],
    );
}

/// In an `allOf`, a constant of another type is kept together with the type.
#[test]
fn mismatching_constant_is_kept() {
    let base = object(json!({ "code": { "type": "integer" } }), &[]);
    let own = object(json!({ "code": { "const": 1.5 } }), &[]);
    check(
        json!({ "Thing": { "allOf": [base, own] } }),
        expect![[r#"
            {
              "properties": {
                "code": {
                  "const": 1.5,
                  "type": "integer"
                }
              },
              "required": [],
              "type": "object"
            }
        "#]],
    );
}

#[test]
fn typed_member_replaces_untyped_member() {
    let base = object(json!({ "data": { "description": "Anything." } }), &[]);
    let own = object(json!({ "data": { "type": "string" } }), &["data"]);
    check(
        json!({ "Thing": { "allOf": [own, base] } }),
        expect![[r#"
            {
              "properties": {
                "data": {
                  "type": "string"
                }
              },
              "required": [
                "data"
              ],
              "type": "object"
            }
        "#]],
    );
}

#[test]
fn contradictory_members_are_refused() {
    let a = object(json!({ "x/y": { "type": "integer", "minimum": 1 } }), &[]);
    let b = object(json!({ "x/y": { "type": "integer", "minimum": 2 } }), &[]);
    check(
        json!({ "Thing": { "allOf": [a, b] } }),
        expect![[r#"
        test at /definitions/Thing/allOf/1/properties/x~1y: two schemas disagree about `minimum` of the same value; say one of them by an erratum
    "#]],
    );
}

#[test]
fn all_of_different_types_is_refused() {
    let thing = json!({ "allOf": [{ "type": "string" }, { "type": "integer" }] });
    check(
        json!({ "Thing": thing }),
        expect![[r#"
        test at /definitions/Thing/allOf/1: two schemas disagree about `type` of the same value; say one of them by an erratum
    "#]],
    );
}

#[test]
fn one_of_becomes_any_of() {
    let thing = json!({ "oneOf": [{ "type": "string" }, { "oneOf": [{ "type": "integer" }, { "type": "boolean" }] }] });
    check(
        json!({ "Thing": thing }),
        expect![[r#"
        {
          "anyOf": [
            {
              "type": "string"
            },
            {
              "anyOf": [
                {
                  "type": "integer"
                },
                {
                  "type": "boolean"
                }
              ]
            }
          ]
        }
    "#]],
    );
}

#[test]
fn single_variant_replaces_union() {
    let thing =
        json!({ "anyOf": [{ "type": "string", "description": "Lost." }], "description": "Kept." });
    check(
        json!({ "Thing": thing }),
        expect![[r#"
        {
          "description": "Kept.",
          "type": "string"
        }
    "#]],
    );
}

/// All spellings of an object or value without constraints become one form.
#[test]
fn untyped_objects_get_one_form() {
    let property = json!({ "type": "object", "additionalProperties": true });
    let thing = json!({
        "type": "object",
        "properties": { "a": property, "b": { "type": "array", "items": true } },
        "additionalProperties": { "description": "Anything." },
    });
    check(
        json!({ "Thing": thing }),
        expect![[r#"
        {
          "properties": {
            "a": {
              "type": "object"
            },
            "b": {
              "items": {},
              "type": "array"
            }
          },
          "type": "object"
        }
    "#]],
    );
}

/// Variants of a union that differ only in annotations become one variant.
#[test]
fn equal_variants_are_merged() {
    let thing = json!({ "anyOf": [{ "type": "string" }, { "type": "string", "title": "Words" }] });
    check(
        json!({ "Thing": thing }),
        expect![[r#"
            {
              "type": "string"
            }
        "#]],
    );
}

#[test]
fn all_of_copies_are_limited() {
    let mut definitions = Map::new();
    definitions.insert("A000".to_owned(), object(json!({ "end": {} }), &[]));
    for n in 1..40 {
        let below = json!({ "allOf": [{ "$ref": format!("#/definitions/A{:03}", n - 1) }] });
        let object = object(json!({ "a": below, "b": below }), &[]);
        definitions.insert(format!("A{n:03}"), object);
    }
    check(
        Value::Object(definitions),
        expect![[r#"
        test at /definitions/A015/properties/a/allOf/0: `allOf` copies more and more into itself; a schema of the protocol does not grow like that; look at the file
    "#]],
    );
}

#[test]
fn all_of_chain_is_limited() {
    let mut definitions = Map::new();
    for n in 0..1000 {
        let next = json!({ "allOf": [{ "$ref": format!("#/definitions/A{:04}", n + 1) }] });
        definitions.insert(format!("A{n:04}"), object(json!({ "a": next }), &[]));
    }
    definitions.insert("A1000".to_owned(), object(json!({ "end": {} }), &[]));
    check(
        Value::Object(definitions),
        expect![[r#"
        test at /definitions/A0032/properties/a/allOf/0: `allOf` leads on to `allOf` for more than 32 steps; a schema of the protocol has one or two; look at the file
    "#]],
    );
}

#[test]
fn all_of_is_distributed_over_unions() {
    let tagged = |tag: &str| {
        object(
            json!({ "kind": { "type": "string", "const": tag } }),
            &["kind"],
        )
    };
    let union = json!({ "anyOf": [{ "$ref": "#/definitions/A" }, tagged("b")] });
    let base = object(json!({ "x": { "type": "string" } }), &["x"]);
    check(
        json!({
            "A": tagged("a"),
            "Base": base,
            "Union": union,
            "Thing": { "description": "Both.", "allOf": [{ "$ref": "#/definitions/Base" }, { "$ref": "#/definitions/Union" }] },
        }),
        expect![[r#"
            {
              "anyOf": [
                {
                  "properties": {
                    "kind": {
                      "const": "a",
                      "type": "string"
                    },
                    "x": {
                      "type": "string"
                    }
                  },
                  "required": [
                    "kind",
                    "x"
                  ],
                  "type": "object"
                },
                {
                  "properties": {
                    "kind": {
                      "const": "b",
                      "type": "string"
                    },
                    "x": {
                      "type": "string"
                    }
                  },
                  "required": [
                    "kind",
                    "x"
                  ],
                  "type": "object"
                }
              ],
              "description": "Both."
            }
        "#]],
    );
}

#[test]
fn several_unions_in_all_of_refused() {
    let union = json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] });
    check(
        json!({ "Thing": { "allOf": [union, union] } }),
        expect![[r#"
            test at /definitions/Thing/allOf/1: two unions are in one `allOf`; say which of their members go together by an erratum
        "#]],
    );
}

/// A union of string constants becomes an enum.
#[test]
fn constants_become_an_enum() {
    let constant = |value: &str| json!({ "type": "string", "const": value });
    check(
        json!({ "Thing": object(
            json!({
                "status": { "description": "How it is.", "anyOf": [constant("on"), constant("off")] },
                "until": { "anyOf": [{ "type": "number" }, { "type": "null" }] },
                "names": { "type": "object", "propertyNames": { "type": "string" } },
            }),
            &[],
        ) }),
        expect![[r#"
            {
              "properties": {
                "names": {
                  "type": "object"
                },
                "status": {
                  "description": "How it is.",
                  "enum": [
                    "on",
                    "off"
                  ],
                  "type": "string"
                },
                "until": {
                  "type": [
                    "number",
                    "null"
                  ]
                }
              },
              "required": [],
              "type": "object"
            }
        "#]],
    );
}

/// In an `allOf`, a union of objects replaces a schema that allows every object.
#[test]
fn object_union_narrows_any_object() {
    let any = json!({ "type": "object", "additionalProperties": {}, "description": "Any." });
    let union = json!({ "anyOf": [object(json!({ "a": {} }), &["a"]), object(json!({ "b": {} }), &["b"])] });
    let said = |params: &Value| object(json!({ "params": params }), &[]);
    check(
        json!({ "Thing": { "allOf": [said(&any), said(&union)] } }),
        expect![[r#"
            {
              "properties": {
                "params": {
                  "anyOf": [
                    {
                      "properties": {
                        "a": {}
                      },
                      "required": [
                        "a"
                      ],
                      "type": "object"
                    },
                    {
                      "properties": {
                        "b": {}
                      },
                      "required": [
                        "b"
                      ],
                      "type": "object"
                    }
                  ],
                  "description": "Any."
                }
              },
              "required": [],
              "type": "object"
            }
        "#]],
    );
}
