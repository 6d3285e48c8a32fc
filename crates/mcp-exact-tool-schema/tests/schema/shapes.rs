//! Each shape that hosts refuse, and what replaces it.

use mcp_exact_tool_schema::{Deviation, SchemaOf, Shape, deviations, rewrite};
use mcp_exact_wire::JsonObject;

/// Room for copies of definitions.
const ROOM: usize = 64 << 10;

fn object(text: &str) -> JsonObject {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns the schema after the rewrite, and the pointers of the shapes that are left.
fn rewritten(schema: &str, of: SchemaOf) -> (String, Vec<String>) {
    let schema = object(schema);
    let rewritten = rewrite(&schema, of, ROOM);
    let new = rewritten.schema.unwrap_or(schema);
    // What is reported is what the doctor finds in the schema that hosts get.
    assert_eq!(rewritten.remaining, deviations(&new), "{}", new.text());
    let left = rewritten.remaining.into_iter();
    (
        new.text().to_owned(),
        left.map(|left| left.pointer).collect(),
    )
}

/// Checks that a schema of arguments becomes another one without any of the shapes.
#[track_caller]
fn becomes(schema: &str, wanted: &str) {
    let (found, left) = rewritten(schema, SchemaOf::Arguments);
    assert_eq!(found, wanted);
    assert_eq!(left, [""; 0], "{found}");
}

/// Checks that a schema of arguments becomes another one, in which these shapes are left.
#[track_caller]
fn leaves(schema: &str, wanted: &str, pointers: &[&str]) {
    let (found, left) = rewritten(schema, SchemaOf::Arguments);
    assert_eq!(found, wanted);
    assert_eq!(left, pointers, "{found}");
}

/// Returns a schema with the property `a`.
fn with(property: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"a":{property}}}}}"#)
}

/// Returns a schema with the required property `a`.
fn with_required(property: &str) -> String {
    format!(r#"{{"type":"object","properties":{{"a":{property}}},"required":["a"]}}"#)
}

/// Each shape is found where it is, and a plain schema has none.
#[test]
fn refused_shapes_are_found() {
    let schema = r##"{"type":"object","oneOf":[],"properties":{"a":{"type":["string","null"]},
        "b/c":{"type":"integer","format":"uint32"},"d":{"$ref":"#/$defs/d"},"e":true,
        "f":{"type":"array","items":{"type":"string","format":"uri"}},"g":{"additionalProperties":false}}}"##;
    let found = deviations(&object(schema));
    let found: Vec<_> = found
        .iter()
        .map(|Deviation { pointer, shape, .. }| (pointer.as_str(), *shape))
        .collect();
    assert_eq!(
        found,
        [
            ("/oneOf", Shape::TopLevelKeyword),
            ("/properties/a/type", Shape::TypeList),
            ("/properties/b~1c/format", Shape::UnknownFormat),
            ("/properties/d/$ref", Shape::Reference),
            ("/properties/e", Shape::BooleanSchema),
        ]
    );
    let found = deviations(&object(r#"{"type":"object"}"#));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].shape, Shape::NoProperties);
    let plain =
        r#"{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}"#;
    assert_eq!(deviations(&object(plain)), []);
}

/// A schema without the shapes keeps its text, white space included.
#[test]
fn plain_schemas_keep_their_text() {
    let plain =
        object(r#"{"type": "object", "properties": {"a": {"x": 1e400, "type": "string"}}}"#);
    assert_eq!(rewrite(&plain, SchemaOf::Arguments, ROOM).schema, None);
}

/// "`inputSchema` … for tools with no parameters" (2025-11-25, `server/tools`): `properties` is there, and empty.
#[test]
fn missing_properties_are_added() {
    becomes(
        r#"{"type":"object","x-unknown":[1e400]}"#,
        r#"{"type":"object","x-unknown":[1e400],"properties":{}}"#,
    );
}

#[test]
fn null_of_optional_properties_is_not_offered() {
    becomes(
        &with(r#"{"type":["string","null"],"enum":["x",null],"default":null}"#),
        &with(r#"{"type":"string","enum":["x"],"default":null}"#),
    );
    becomes(
        &with(r#"{"type":["object","null"],"properties":{"b":{"type":["null","integer"]}}}"#),
        &with(r#"{"type":"object","properties":{"b":{"type":"integer"}}}"#),
    );
    // Nothing else would be left.
    becomes(
        &with(r#"{"type":["string","null"],"const":null}"#),
        &with(r#"{"anyOf":[{"type":"string"},{"type":"null"}],"const":null}"#),
    );
}

/// Where `null` has to be accepted, each type is an alternative with the keywords that only this type has.
#[test]
fn other_lists_of_types_become_alternatives() {
    becomes(
        &with_required(r#"{"type":["array","null"],"items":{"type":"string"},"description":"d"}"#),
        &with_required(
            r#"{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}],"description":"d"}"#,
        ),
    );
    becomes(
        &with(r#"{"type":["string","integer","null"],"minimum":1,"format":"date"}"#),
        &with(r#"{"anyOf":[{"type":"string","format":"date"},{"type":"integer","minimum":1}]}"#),
    );
    becomes(
        &with_required(r#"{"type":["string","null"],"anyOf":[{"minLength":1},{"const":null}]}"#),
        &with_required(
            r#"{"anyOf":[{"minLength":1},{"const":null}],"allOf":[{"anyOf":[{"type":"string"},{"type":"null"}]}]}"#,
        ),
    );
    becomes(
        &with(r#"{"type":["string"]}"#),
        &with(r#"{"type":"string"}"#),
    );
    becomes(
        &with(r#"{"type":["string","number","integer","boolean","object","array","null"]}"#),
        &with("{}"),
    );
    becomes(
        r#"{"type":["object","null"],"properties":{}}"#,
        r#"{"type":"object","properties":{}}"#,
    );
}

/// A property that an alternative requires may have to be null.
#[test]
fn conditionally_required_properties_keep_null() {
    leaves(
        r#"{"type":"object","properties":{"a":{"type":["string","null"]}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
        r#"{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"anyOf":[{"required":["a"]},{"required":["b"]}]}"#,
        &["/anyOf"],
    );
}

/// A client mirrors a parameter into a header by the `type` beside the annotation (2026-07-28).
#[test]
fn mirrored_parameters_keep_their_type() {
    becomes(
        &with(r#"{"type":["string","null"],"x-mcp-header":"Region"}"#),
        &with(r#"{"type":"string","x-mcp-header":"Region"}"#),
    );
    let schema = with_required(r#"{"type":["string","null"],"x-mcp-header":"Region"}"#);
    leaves(&schema, &schema, &["/properties/a/type"]);
}

#[test]
fn formats_of_numbers_become_bounds() {
    becomes(
        &with(r#"{"type":"integer","format":"uint32","minimum":1}"#),
        &with(r#"{"type":"integer","minimum":1,"maximum":4294967295}"#),
    );
    becomes(
        &with(r#"{"type":["integer","null"],"format":"int8","maximum":1000,"minimum":-1.5e9}"#),
        &with(r#"{"type":"integer","maximum":127,"minimum":-128}"#),
    );
    // Not every reader has larger numbers.
    becomes(
        &with(r#"{"type":"integer","format":"uint64"}"#),
        &with(r#"{"type":"integer","minimum":0}"#),
    );
    becomes(
        &with(r#"{"type":"number","format":"double"}"#),
        &with(r#"{"type":"number"}"#),
    );
    // Draft 4: `exclusiveMinimum` changes the meaning of `minimum`.
    let schema = with(r#"{"type":"integer","format":"uint8","exclusiveMinimum":true}"#);
    leaves(&schema, &schema, &["/properties/a/format"]);
}

/// A format that validators do not know says something to the model.
#[test]
fn other_formats_are_described() {
    becomes(
        &with(r#"{"type":"string","format":"password","description":"A secret."}"#),
        &with(r#"{"type":"string","description":"A secret. Format: password."}"#),
    );
    becomes(
        &with(r#"{"type":"string","format":"int64"}"#),
        &with(r#"{"type":"string","description":"Format: int64."}"#),
    );
}

#[test]
fn boolean_schemas_become_objects() {
    becomes(
        &with(r#"{"type":"array","items":true,"description":"d"}"#),
        &with(r#"{"type":"array","items":{},"description":"d"}"#),
    );
    becomes(&with("false"), &with(r#"{"not":{}}"#));
    becomes(
        r#"{"type":"object","properties":{"a":false,"b":true},"additionalProperties":false}"#,
        r#"{"type":"object","properties":{"b":{}},"additionalProperties":false}"#,
    );
}

#[test]
fn references_become_definitions() {
    becomes(
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/A","description":"mine"},"b":{"$ref":"#/$defs/B"}},
            "$defs":{"A":{"type":"string","description":"theirs"},"B":{"type":"array","items":{"$ref":"#/$defs/A"}}}}"##,
        r#"{"type":"object","properties":{"a":{"description":"mine","type":"string"},"b":{"type":"array","items":{"type":"string","description":"theirs"}}}}"#,
    );
    // The whole schema, as generators write it that name their types.
    becomes(
        r##"{"$ref":"#/definitions/Args","definitions":{"Args":{"type":"object","properties":{"a":{"type":"string"}}}},"$schema":"http://json-schema.org/draft-07/schema#"}"##,
        r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string"}}}"#,
    );
    // 2020-12 applies what stands beside a reference, and draft 7 ignores it.
    let beside = r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/A","maxLength":3}},"$defs":{"A":{"type":"string","maxLength":2}}"##;
    becomes(
        &format!("{beside}}}"),
        r#"{"type":"object","properties":{"a":{"maxLength":3,"allOf":[{"type":"string","maxLength":2}]}}}"#,
    );
    becomes(
        &format!(r#"{beside},"$schema":"http://json-schema.org/draft-07/schema#"}}"#),
        r#"{"type":"object","properties":{"a":{"type":"string","maxLength":2}},"$schema":"http://json-schema.org/draft-07/schema#"}"#,
    );
    // A place that is no definition, and a name that is escaped.
    becomes(
        r##"{"type":"object","properties":{"a/b c":{"type":"string"},"c":{"$ref":"#/properties/a~1b%20c"}}}"##,
        r#"{"type":"object","properties":{"a/b c":{"type":"string"},"c":{"type":"string"}}}"#,
    );
    // A `%` that encodes nothing.
    becomes(
        r##"{"type":"object","properties":{"a%+5":{"type":"string"},"c":{"$ref":"#/properties/a%+5"}}}"##,
        r#"{"type":"object","properties":{"a%+5":{"type":"string"},"c":{"type":"string"}}}"#,
    );
}

/// What contains itself has no end: the reference stays, with its definition, and nothing else stays with it.
#[test]
fn recursive_definitions_stay() {
    leaves(
        r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/Node"}},"required":["a"],
            "$defs":{"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"},"name":{"$ref":"#/$defs/Name"}}},
            "Name":{"type":["string","null"]},"Other":{"type":"string"}}}"##,
        r##"{"type":"object","properties":{"a":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"},"name":{"type":"string"}}}},"required":["a"],"$defs":{"Node":{"type":"object","properties":{"next":{"$ref":"#/$defs/Node"},"name":{"anyOf":[{"type":"string"},{"type":"null"}]}}}}}"##,
        &[
            "/properties/a/properties/next/$ref",
            "/$defs/Node/properties/next/$ref",
        ],
    );
}

/// A change could move what the references that are left name.
#[test]
fn schemas_with_anchored_places_stay() {
    for schema in [
        r##"{"type":"object","properties":{"a":{"type":["array","null"],"items":{"properties":{"b":{"$ref":"#/properties/a/items"}}}}},"required":["a"]}"##,
        r##"{"type":"object","properties":{"a":{"$id":"http://x.example/a","type":["string","null"]},"b":{"$ref":"#/$defs/b"}}}"##,
        r#"{"type":"object","properties":{"a":true,"a":{"type":"string"}}}"#,
    ] {
        let (found, left) = rewritten(schema, SchemaOf::Arguments);
        assert_eq!(found, schema);
        assert!(!left.is_empty());
    }
    // Only the schemas behind anchors and of other documents are unknown.
    leaves(
        r##"{"type":"object","properties":{"a":{"$ref":"#x"},"b":{"$ref":"other.json"},"c":true}}"##,
        r##"{"type":"object","properties":{"a":{"$ref":"#x"},"b":{"$ref":"other.json"},"c":{}}}"##,
        &["/properties/a/$ref", "/properties/b/$ref"],
    );
}

/// References to references to references: the copies would fill the memory.
#[test]
fn copies_have_a_maximum_size() {
    let level = |level: usize| {
        let below = format!(r##"{{"$ref":"#/$defs/d{}"}}"##, level + 1);
        format!(
            r#""d{level}":{{"properties":{{"a":{below},"b":{below},"c":{{"type":["string","null"]}}}}}}"#
        )
    };
    let levels: Vec<String> = (0..31).map(level).collect();
    let schema = format!(
        r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/d0"}},"z":true}},"$defs":{{{},"d31":{{}}}}}}"##,
        levels.join(",")
    );
    let (found, left) = rewritten(&schema, SchemaOf::Arguments);
    assert!(found.len() < 2 * schema.len(), "{}", found.len());
    assert_eq!(left.len(), 63);
    assert!(
        left.iter().all(|pointer| pointer.ends_with("/$ref")),
        "{left:?}"
    );
    // A chain has no end, either, where it is deeper than schemas are looked at.
    let chain: Vec<String> = (0..5_000)
        .map(|at| {
            format!(
                r##""d{at}":{{"properties":{{"a":{{"$ref":"#/$defs/d{}"}}}}}}"##,
                at + 1
            )
        })
        .collect();
    let schema = format!(
        r##"{{"type":"object","properties":{{"a":{{"$ref":"#/$defs/d0"}}}},"$defs":{{{}}}}}"##,
        chain.join(",")
    );
    let (found, left) = rewritten(&schema, SchemaOf::Arguments);
    assert!(found.len() <= schema.len() + ROOM);
    assert!(!left.is_empty());
}

/// Where there is one alternative, it is the schema itself; others have no equivalent.
#[test]
fn single_alternatives_are_merged() {
    becomes(
        r##"{"type":"object","description":"d","allOf":[{"$ref":"#/$defs/A"},{"required":["a","b"],"properties":{"b":{"type":"string"}}}],
            "properties":{"c":{"type":"string"}},"required":["c"],"$defs":{"A":{"type":"object","title":"A","properties":{"a":{"type":["string","null"]}},"required":["a"]}}}"##,
        r#"{"type":"object","description":"d","properties":{"c":{"type":"string"},"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"type":"string"}},"required":["c","a","b"],"title":"A"}"#,
    );
    becomes(
        r#"{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}}}]}"#,
        r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
    );
    for (schema, pointer) in [
        (
            r#"{"type":"object","properties":{},"oneOf":[{"required":["a"]},{"required":["b"]}]}"#,
            "/oneOf",
        ),
        (
            r#"{"type":"object","properties":{},"not":{"required":["a"]}}"#,
            "/not",
        ),
        (
            r#"{"type":"object","properties":{},"enum":[{"a":1}]}"#,
            "/enum",
        ),
        (
            r#"{"type":"object","properties":{"a":{}},"additionalProperties":false,"allOf":[{"properties":{"b":{}}}]}"#,
            "/allOf",
        ),
    ] {
        leaves(schema, schema, &[pointer]);
    }
}

/// Clients validate results by the schema, so that it accepts every result that it accepted before.
#[test]
fn schemas_of_results_are_exactly_equivalent() {
    let (found, left) = rewritten(
        r##"{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"type":"integer","format":"uint8"},"c":{"$ref":"#/$defs/c"}},"$defs":{"c":true}}"##,
        SchemaOf::Results,
    );
    assert_eq!(
        found,
        r#"{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"type":"integer"},"c":{}}}"#
    );
    assert_eq!(left, [""; 0]);
}

/// Long names and many places take no more memory than the schema.
#[test]
fn lists_of_shapes_are_bounded() {
    let places: Vec<String> = (0..20_000).map(|at| format!(r#""p{at}":true"#)).collect();
    let schema = format!(
        r#"{{"type":"object","properties":{{"{}":{{"properties":{{{}}}}}}},"required":["x"]}}"#,
        "n".repeat(200_000),
        places.join(",")
    );
    let found = deviations(&object(&schema));
    let size: usize = found.iter().map(|one| one.pointer.len()).sum();
    assert!(
        found.len() <= 1000 && size < 1_000_000,
        "{} {size}",
        found.len()
    );
}

/// References that lead to references, thousands of them, need no deep stack.
#[test]
fn chains_of_references_end() {
    let links: Vec<String> = (0..4_000)
        .map(|at| format!(r##""a{at}":{{"$ref":"#/$defs/a{}"}}"##, at + 1))
        .collect();
    let schema = format!(
        r##"{{"type":"object","properties":{{"p":{{"$ref":"#/$defs/a0"}}}},"$defs":{{{},"a4000":{{"type":"string"}}}}}}"##,
        links.join(",")
    );
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let thread = small.spawn(move || rewritten(&schema, SchemaOf::Arguments));
    let (_, left) = thread.expect("a thread").join().expect("no overflow");
    assert!(
        left.iter().all(|pointer| pointer.ends_with("/$ref")),
        "{}",
        left.len()
    );
}

/// A schema that names itself by its own id keeps its definitions, and one whose references have no room keeps null where a
/// definition may require the property.
#[test]
fn left_references_keep_their_targets() {
    for schema in [
        r##"{"$id":"https://example.com/x","type":"object","properties":{"a":{"$ref":"https://example.com/x#/$defs/A"},"b":{"$ref":"#/$defs/B"}},"$defs":{"A":{},"B":{}}}"##,
        r##"{"type":"object","properties":{"a":{"$ref":"#foo"},"b":{"$ref":"#/definitions/B"}},"definitions":{"A":{"id":"#foo"},"B":{}}}"##,
    ] {
        assert_eq!(rewritten(schema, SchemaOf::Arguments).0, schema);
    }
    let large = format!(r#""description":"{}""#, "d".repeat(200_000));
    let schema = format!(
        r##"{{"type":"object","properties":{{"a":{{"type":["string","null"]}}}},"allOf":[{{"$ref":"#/$defs/Base"}}],"$defs":{{"Base":{{{large},"required":["a"]}}}}}}"##
    );
    let (found, _) = rewritten(&schema, SchemaOf::Arguments);
    assert!(found.contains(r#"{"type":"null"}"#), "null stays");
}

/// Arguments are objects, whatever stands beside a reference that an old dialect looks at alone.
#[test]
fn type_of_the_whole_schema_stays() {
    let schema = r##"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","$ref":"#/definitions/A","definitions":{"A":{"properties":{"a":{"type":"string"}}}}}"##;
    let (found, _) = rewritten(schema, SchemaOf::Arguments);
    assert!(found.contains(r#""type":"object""#), "{found}");
}
