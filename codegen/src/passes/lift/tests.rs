//! Tests of lifting in small schemas: the names of anonymous schemas, and which of them share one. Each test compares
//! all definitions, with the JSON pointers of lifted definitions.

use expect_test::{Expect, expect};

use super::*;
use crate::testing::lift_schema;

/// Lifts the anonymous schemas of a schema and compares the definitions, one per line, with the JSON pointers of lifted
/// definitions.
fn check(definitions: Value, names: &[Name], expected: Expect) {
    expected.assert_eq(&match lift_schema(definitions, names) {
        Ok((schema, lifted)) => describe_definitions(&schema, &lifted),
        Err(error) => format!("{error}\n"),
    });
}

/// Describes definitions, with the JSON pointers of lifted definitions.
fn describe_definitions(schema: &Schema, lifted: &[LiftedDefinition]) -> String {
    let definitions = schema.root["definitions"].as_object().into_iter().flatten();
    let line = |(name, definition): (&String, &Value)| {
        let places = lifted.iter().find(|l| l.name == *name);
        let places = places.map_or_else(String::new, |l| format!(" at {}", l.pointers.join(" ")));
        format!("{name}{places}\n  {definition}\n")
    };
    definitions.map(line).collect()
}

/// Creates an object with these members.
fn object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties })
}

/// Creates an entry of `schema/names.toml`.
fn name(pointer: &str, name: &str) -> Name {
    Name {
        revisions: vec!["test".to_owned()],
        pointer: pointer.to_owned(),
        name: name.to_owned(),
    }
}

#[test]
fn names_follow_json_pointers() {
    let inner = object(json!({ "deep": object(json!({ "a": {} })) }));
    let thing = object(json!({
        "_meta": object(json!({ "b": {} })),
        "io.example/clientInfo": inner,
        "list": { "type": "array", "items": object(json!({ "c": {} })) },
        "map": { "type": "object", "additionalProperties": object(json!({ "d": {} })) },
    }));
    check(
        json!({ "Thing": thing }),
        &[],
        expect![[r##"
        Thing
          {"properties":{"_meta":{"$ref":"#/definitions/ThingMeta"},"io.example/clientInfo":{"$ref":"#/definitions/ThingClientInfo"},"list":{"items":{"$ref":"#/definitions/ThingList"},"type":"array"},"map":{"additionalProperties":{"$ref":"#/definitions/ThingMapValue"},"type":"object"}},"type":"object"}
        ThingClientInfo at /definitions/Thing/properties/io.example~1clientInfo
          {"properties":{"deep":{"$ref":"#/definitions/ThingClientInfoDeep"}},"type":"object"}
        ThingClientInfoDeep at /definitions/Thing/properties/io.example~1clientInfo/properties/deep
          {"properties":{"a":{}},"type":"object"}
        ThingList at /definitions/Thing/properties/list/items
          {"properties":{"c":{}},"type":"object"}
        ThingMapValue at /definitions/Thing/properties/map/additionalProperties
          {"properties":{"d":{}},"type":"object"}
        ThingMeta at /definitions/Thing/properties/_meta
          {"properties":{"b":{}},"type":"object"}
    "##]],
    );
}

/// An anonymous variant of a union is named after its constant.
#[test]
fn constants_name_variants() {
    let tagged = |tag: &str| json!({ "type": "object", "properties": { "type": { "const": tag } }, "required": ["type"] });
    let thing = json!({ "anyOf": [tagged("ref/prompt"), tagged("ref/tool")] });
    check(
        json!({ "Thing": thing }),
        &[],
        expect![[r##"
        Thing
          {"anyOf":[{"$ref":"#/definitions/ThingRefPrompt"},{"$ref":"#/definitions/ThingRefTool"}]}
        ThingRefPrompt at /definitions/Thing/anyOf/0
          {"properties":{"type":{"const":"ref/prompt"}},"required":["type"],"type":"object"}
        ThingRefTool at /definitions/Thing/anyOf/1
          {"properties":{"type":{"const":"ref/tool"}},"required":["type"],"type":"object"}
    "##]],
    );
}

#[test]
fn equal_schemas_share_the_shortest_name() {
    let part = |words: &str| json!({ "type": "string", "enum": ["a", "b"], "description": words });
    let definitions = json!({
        "Longest": object(json!({ "kind": part("One.") })),
        "Thing": object(json!({ "kind": part("Two.") })),
    });
    check(
        definitions,
        &[],
        expect![[r##"
        Longest
          {"properties":{"kind":{"$ref":"#/definitions/ThingKind","description":"One."}},"type":"object"}
        Thing
          {"properties":{"kind":{"$ref":"#/definitions/ThingKind","description":"Two."}},"type":"object"}
        ThingKind at /definitions/Longest/properties/kind /definitions/Thing/properties/kind
          {"description":"One.","enum":["a","b"],"type":"string"}
    "##]],
    );
}

/// An anonymous schema that equals a definition of the schema is replaced by a reference to the definition.
#[test]
fn equal_definition_provides_the_name() {
    let colour = json!({ "type": "string", "enum": ["red"] });
    let definitions = json!({ "Colour": colour, "Thing": object(json!({ "colour": colour })) });
    check(
        definitions,
        &[],
        expect![[r##"
        Colour
          {"enum":["red"],"type":"string"}
        Thing
          {"properties":{"colour":{"$ref":"#/definitions/Colour"}},"type":"object"}
    "##]],
    );
}

/// A name of `schema/names.toml` replaces the automatic name of an anonymous schema.
#[test]
fn a_name_from_the_table_wins() {
    let part = object(json!({ "a": {} }));
    let definitions = json!({ "Other": object(json!({ "part": part })), "Thing": object(json!({ "part": part })) });
    let names = [name("/definitions/Thing/properties/part", "Part")];
    check(
        definitions,
        &names,
        expect![[r##"
        Other
          {"properties":{"part":{"$ref":"#/definitions/Part"}},"type":"object"}
        Part at /definitions/Other/properties/part /definitions/Thing/properties/part
          {"properties":{"a":{}},"type":"object"}
        Thing
          {"properties":{"part":{"$ref":"#/definitions/Part"}},"type":"object"}
    "##]],
    );
}

#[test]
fn names_of_other_revisions_are_ignored() {
    let definitions = json!({ "Thing": object(json!({ "part": object(json!({ "a": {} })) })) });
    let other = Name {
        revisions: vec!["other".to_owned()],
        ..name("/definitions/Gone", "Part")
    };
    check(
        definitions,
        &[other],
        expect![[r##"
        Thing
          {"properties":{"part":{"$ref":"#/definitions/ThingPart"}},"type":"object"}
        ThingPart at /definitions/Thing/properties/part
          {"properties":{"a":{}},"type":"object"}
    "##]],
    );
}

/// An entry of `schema/names.toml` is refused if no anonymous schema at its JSON pointer is lifted.
#[test]
fn name_without_schema_is_refused() {
    let definitions = json!({ "Thing": object(json!({ "part": { "type": "string" } })) });
    let names = [name("/definitions/Thing/properties/part", "Part")];
    check(
        definitions,
        &names,
        expect![[r#"
        test at /definitions/Thing/properties/part: there is nothing anonymous here to be named `Part`; amend schema/names.toml
    "#]],
    );
}

/// An anonymous schema gets the suffix `Inline` if a definition already has the name that its JSON pointer yields.
#[test]
fn used_name_gets_a_suffix() {
    let definitions = json!({
        "Thing": object(json!({ "part": object(json!({ "a": {} })) })),
        "ThingPart": { "type": "string" },
    });
    check(
        definitions,
        &[],
        expect![[r##"
            Thing
              {"properties":{"part":{"$ref":"#/definitions/ThingPartInline"}},"type":"object"}
            ThingPart
              {"type":"string"}
            ThingPartInline at /definitions/Thing/properties/part
              {"properties":{"a":{}},"type":"object"}
        "##]],
    );
}

/// A constant becomes a definition unless it is a required member of an object.
#[test]
fn constants_outside_objects_are_lifted() {
    let constant = json!({ "const": "on", "type": "string" });
    let thing = json!({
        "type": "object",
        "properties": {
            "list": { "type": "array", "items": { "const": "x", "type": "string" } },
            "may": constant,
            "must": constant,
        },
        "required": ["must"],
    });
    check(
        json!({ "Thing": thing }),
        &[],
        expect![[r##"
        Thing
          {"properties":{"list":{"items":{"$ref":"#/definitions/ThingList"},"type":"array"},"may":{"$ref":"#/definitions/ThingMay"},"must":{"const":"on","type":"string"}},"required":["must"],"type":"object"}
        ThingList at /definitions/Thing/properties/list/items
          {"const":"x","type":"string"}
        ThingMay at /definitions/Thing/properties/may
          {"const":"on","type":"string"}
    "##]],
    );
}

/// Each anonymous JSON Schema document becomes a separate definition with the mark `x-document`.
#[test]
fn documents_are_marked_and_never_shared() {
    let mut document = object(json!({ "type": { "const": "object" } }));
    document["required"] = json!(["type"]);
    let definitions = json!({
        "Thing": object(json!({ "inputSchema": document, "outputSchema": document })),
    });
    check(
        definitions,
        &[],
        expect![[r##"
            Thing
              {"properties":{"inputSchema":{"$ref":"#/definitions/ThingInputSchema"},"outputSchema":{"$ref":"#/definitions/ThingOutputSchema"}},"type":"object"}
            ThingInputSchema at /definitions/Thing/properties/inputSchema
              {"properties":{"type":{"const":"object"}},"required":["type"],"type":"object","x-document":true}
            ThingOutputSchema at /definitions/Thing/properties/outputSchema
              {"properties":{"type":{"const":"object"}},"required":["type"],"type":"object","x-document":true}
        "##]],
    );
}

/// A list of one type and `null` is a nullable type, and gets no definition.
#[test]
fn null_in_types_forms_no_union() {
    let thing = object(
        json!({ "a": { "type": ["string", "null"] }, "b": { "type": ["string", "integer"] } }),
    );
    check(
        json!({ "Thing": thing }),
        &[],
        expect![[r##"
        Thing
          {"properties":{"a":{"type":["string","null"]},"b":{"$ref":"#/definitions/ThingB"}},"type":"object"}
        ThingB at /definitions/Thing/properties/b
          {"type":["string","integer"]}
    "##]],
    );
}

/// A variant is named after a constant that differs among the variants, if there is one.
#[test]
fn distinguishing_constants_name_variants() {
    let member = |status: &str| {
        json!({
            "type": "object",
            "properties": {
                "kind": { "type": "string", "const": "same" },
                "status": { "type": "string", "const": status }
            },
            "required": ["kind", "status"]
        })
    };
    let members = [member("on"), member("off")];
    assert_eq!(variant_words(&members), ["On", "Off"]);
    assert_eq!(variant_words(&members[..1]), ["Same"]);
    assert_eq!(variant_words(&[json!({ "type": "string" })]), [""]);
}
