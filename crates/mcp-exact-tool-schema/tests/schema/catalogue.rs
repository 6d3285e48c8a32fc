//! What a catalogue makes of the definitions and calls of tools, and what it says about itself.

use mcp_exact_tool_schema::{Catalogue, ServerCatalogue, ToolEntry, canonical, differences};
use mcp_exact_wire::{Json, JsonObject};

fn object(text: &str) -> JsonObject {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn json(text: &str) -> Json {
    text.parse().expect(text)
}

/// Returns an entry with these fixed arguments and defaults, as members of JSON objects.
fn with_arguments(fixed: &str, defaults: &str) -> ToolEntry {
    let values = |text: &str| {
        let object = object(text);
        let values = object.view().iter();
        values
            .map(|(name, value)| (name.into_owned(), value.to_json()))
            .collect()
    };
    let mut entry = ToolEntry::default();
    (entry.fixed, entry.defaults) = (values(fixed), values(defaults));
    entry
}

fn renamed(name: &str) -> ToolEntry {
    let mut entry = ToolEntry::default();
    entry.rename = Some(name.to_owned());
    entry
}

fn catalogue(entries: Vec<(&str, ToolEntry)>) -> ServerCatalogue {
    let mut catalogue = Catalogue::default();
    for (tool, entry) in entries {
        catalogue.insert("files", tool, entry).expect(tool);
    }
    catalogue.server("files").cloned().unwrap_or_default()
}

/// Returns the schema for clients of a tool with this schema and entry.
fn schema_for_clients(schema: &str, entry: ToolEntry) -> String {
    let tool = object(&format!(r#"{{"name":"t","inputSchema":{schema}}}"#));
    let listed = catalogue(vec![("t", entry)]).definition(tool, Some);
    listed
        .expect("listed")
        .get("inputSchema")
        .expect("a schema")
        .text()
        .to_owned()
}

/// Arguments with a fixed value are no part of the schema, wherever it mentions them, and alternatives that the value rules out are
/// gone. Other values keep their text.
#[test]
fn fixed_arguments_leave_the_schema() {
    for (schema, wanted) in [
        (
            r#"{"type":"object","properties":{"a":{"type":"string"},"b":{ "const": 1e400 }},"required":["a","b"]}"#,
            r#"{"type":"object","properties":{"b":{"const":1e400}},"required":["b"]}"#,
        ),
        (
            r#"{"properties":{"a":true},"required":["a"],"minProperties":1,"maxProperties":3}"#,
            r#"{"properties":{},"minProperties":0,"maxProperties":2}"#,
        ),
        (
            r#"{"dependentRequired":{"a":["b","c"],"c":["a"]},"properties":{"a":{},"b":{},"c":{}}}"#,
            r#"{"properties":{"b":{},"c":{}},"required":["b","c"]}"#,
        ),
        (
            r#"{"oneOf":[{"properties":{"a":{"const":"x"},"b":{}},"required":["b"]},{"properties":{"a":{"enum":["y","z"]}}}]}"#,
            r#"{"oneOf":[{"properties":{"b":{}},"required":["b"]}]}"#,
        ),
        (
            r##"{"$ref":"#/$defs/A","$defs":{"A":{"type":"object","properties":{"a":{},"b":{}},"required":["a"]}}}"##,
            r#"{"type":"object","properties":{"b":{}}}"#,
        ),
        // What depends on an argument that is always there always applies.
        (
            r#"{"dependencies":{"a":["b"],"b":["a","c"],"c":{"properties":{"a":{},"d":{}}}},"properties":{"a":{}}}"#,
            r#"{"dependencies":{"b":{"required":["c"]},"c":{"properties":{"d":{}}}},"properties":{},"required":["b"]}"#,
        ),
        (
            r#"{"dependentSchemas":{"a":{"required":["a","b"]}}}"#,
            r#"{"dependentSchemas":{},"allOf":[{"required":["b"]}]}"#,
        ),
        // A list of alternatives is never empty.
        (
            r#"{"properties":{"a":{}},"anyOf":[{"properties":{"a":{"const":"y"}}}]}"#,
            r#"{"properties":{},"anyOf":[{"properties":{}}]}"#,
        ),
    ] {
        let found = schema_for_clients(schema, with_arguments(r#"{"a":"x"}"#, "{}"));
        assert_eq!(found, wanted);
    }
    let one = r#"{"oneOf":[{"properties":{"a":{"const":1.0}}},{"properties":{"a":{"const":2}}}]}"#;
    let found = schema_for_clients(one, with_arguments(r#"{"a":1}"#, "{}"));
    assert_eq!(found, r#"{"oneOf":[{"properties":{}}]}"#);
    let untouched = r#"{ "type": "object", "properties": {"b": true} }"#;
    let found = schema_for_clients(untouched, with_arguments(r#"{"a":"x"}"#, "{}"));
    assert_eq!(found, untouched);
}

/// An argument with a default stays in the schema, is optional, and names the default.
#[test]
fn defaults_are_optional() {
    let schema =
        r#"{"properties":{"a":{"type":"integer","default":1},"b":{}},"required":["a","b"]}"#;
    let wanted = r#"{"properties":{"a":{"type":"integer","default":5},"b":{}},"required":["b"]}"#;
    assert_eq!(
        schema_for_clients(schema, with_arguments("{}", r#"{"a":5}"#)),
        wanted
    );
}

/// Calls get what is fixed and what they lack; a call that has a fixed argument, in any spelling, is refused.
#[test]
fn calls_get_their_arguments() {
    let catalogue = catalogue(vec![("t", with_arguments(r#"{"a":"x"}"#, r#"{"b":[1]}"#))]);
    let given = |arguments: Option<&str>| {
        let given = catalogue.arguments("t", arguments.map(json));
        given.map(|given| given.expect("arguments").text().to_owned())
    };
    assert_eq!(given(None).expect("given"), r#"{"a":"x","b":[1]}"#);
    assert_eq!(
        given(Some(r#"{"b":null}"#)).expect("given"),
        r#"{"b":null,"a":"x"}"#
    );
    for sent in [
        r#"{"a":"x"}"#,
        r#"{"\u0061":null}"#,
        r#"{"b":1,"a":1,"a":2}"#,
    ] {
        let refused = given(Some(sent)).expect_err(sent).to_string();
        assert_eq!(
            refused,
            r#"the argument "a" has a fixed value here and cannot be sent; leave it out"#
        );
    }
    for sent in ["null", "[]", "\"a\""] {
        let refused = given(Some(sent)).expect_err(sent).to_string();
        assert_eq!(refused, "`arguments` must be an object");
    }
    let other = catalogue.arguments("other", Some(json("null")));
    assert_eq!(other, Ok(Some(json("null"))), "no entry");
}

/// Two names are exchanged; a name that a tool had is nobody's when it has another one, and hidden tools have none.
#[test]
fn names_are_those_of_the_catalogue() {
    let mut hidden = ToolEntry::default();
    hidden.is_hidden = true;
    let catalogue = catalogue(vec![
        ("a", renamed("b")),
        ("b", renamed("a")),
        ("c", renamed("d")),
        ("e", hidden),
    ]);
    for (listed, own) in [
        ("a", Some("b")),
        ("b", Some("a")),
        ("c", None),
        ("d", Some("c")),
        ("e", None),
        ("f", Some("f")),
    ] {
        assert_eq!(catalogue.own_name(listed), own, "{listed}");
    }
    for (own, listed) in [
        ("a", Some("b")),
        ("c", Some("d")),
        ("d", None),
        ("e", None),
        ("f", Some("f")),
    ] {
        assert_eq!(catalogue.listed_name(own), listed, "{own}");
        let tool = object(&format!(r#"{{"name":"{own}","inputSchema":{{}}}}"#));
        let name = catalogue
            .definition(tool, Some)
            .map(|tool| tool.get("name").expect("a name"));
        assert_eq!(name, listed.map(Json::string), "{own}");
    }
}

/// Texts and annotations replace those of the server; other members and annotations keep their text.
#[test]
fn texts_and_annotations_are_replaced() {
    let mut entry = ToolEntry::default();
    entry.title = Some("Read".to_owned());
    entry.description = Some("Reads.".to_owned());
    entry
        .annotations
        .insert("readOnlyHint".to_owned(), true.into());
    let catalogue = catalogue(vec![("t", entry)]);
    let tool = object(
        r#"{"name":"t","description":"old","annotations":{"readOnlyHint":false,"x": 1},"inputSchema":{},"y": 2}"#,
    );
    let listed = catalogue.definition(tool, Some).expect("listed");
    assert_eq!(
        listed.text(),
        r#"{"name":"t","description":"Reads.","annotations":{"readOnlyHint":true,"x": 1},"inputSchema":{},"y": 2,"title":"Read"}"#
    );
}

/// What cannot be right is an error that names the keys; the catalogue stays as it was.
#[test]
fn contradictions_name_their_keys() {
    let mut catalogue = Catalogue::default();
    catalogue
        .insert("files", "a", renamed("x"))
        .expect("a name");
    let before = catalogue.clone();
    let mut check = |tool: &str, entry: ToolEntry, wanted: &str| {
        let error = catalogue.insert("files", tool, entry).expect_err(wanted);
        assert!(error.to_string().starts_with(wanted), "{error}");
        assert_eq!(catalogue, before);
    };
    check(
        "b",
        renamed("x"),
        "servers.files.tools.b.rename and servers.files.tools.a.rename would both be listed as \"x\"",
    );
    check(
        "x",
        ToolEntry::default(),
        "servers.files.tools.x and servers.files.tools.a.rename would both be listed",
    );
    check(
        "c.d",
        renamed("no name"),
        "servers.files.tools.\"c.d\".rename: \"no name\" cannot be the name of a tool",
    );
    let mut annotated = ToolEntry::default();
    annotated
        .annotations
        .insert("readOnlyHint".to_owned(), json("\"yes\""));
    check(
        "c",
        annotated,
        "servers.files.tools.c.annotations.readOnlyHint: write true or false",
    );
    check(
        "c",
        with_arguments(r#"{"q":1}"#, r#"{"q":2}"#),
        "servers.files.tools.c.fixed.q and servers.files.tools.c.defaults.q exclude each other",
    );
}

/// Entries and arguments that the server does not have, and names that it has, are found.
#[test]
fn problems_name_their_keys() {
    let catalogue = catalogue(vec![
        ("a", renamed("b")),
        ("missing", ToolEntry::default()),
        ("c", with_arguments(r#"{"q":1}"#, "{}")),
        ("d", with_arguments(r#"{"q":1}"#, "{}")),
    ]);
    let tools = [
        r#"{"name":"a","inputSchema":{}}"#,
        r#"{"name":"b","inputSchema":{}}"#,
        r#"{"name":"c","inputSchema":{"properties":{}}}"#,
        r##"{"name":"d","inputSchema":{"$ref":"#/$defs/d"}}"##,
    ];
    let problems = catalogue.problems(&tools.map(object));
    let words: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "servers.files.tools.c.fixed.q: the tool has no argument of this name",
            "servers.files.tools.missing: the server has no tool of this name; tools are named as the server itself names them",
            "servers.files.tools.a.rename: \"b\" is the name of another tool of the server, which is not listed; choose another name, or rename or hide that tool by servers.files.tools.b",
        ]
    );
    let errors: Vec<bool> = problems.iter().map(|problem| problem.is_error()).collect();
    assert_eq!(errors, [false, false, true]);
}

/// Order of members, whitespace and escape sequences make no other definition; everything else does.
#[test]
fn canonical_forms_ignore_spelling() {
    let one = object(r#"{ "b": [1, 2], "a": "\u0041\/", "c": {"y": 1.0, "x": null} }"#);
    let same = object(r#"{"c":{"x":null,"y":1.0},"a":"A/","b":[1,2]}"#);
    assert_eq!(canonical(&one), canonical(&same));
    assert_eq!(
        canonical(&one).text(),
        r#"{"a":"A/","b":[1,2],"c":{"x":null,"y":1.0}}"#
    );
    assert_eq!(differences(&one, &same, 10), []);
    for other in [
        r#"{"a":"A/ ","b":[1,2],"c":{"x":null,"y":1.0}}"#,
        r#"{"a":"A/","b":[2,1],"c":{"x":null,"y":1.0}}"#,
        r#"{"a":"A/","b":[1,2],"c":{"x":null,"y":1}}"#,
        r#"{"a":"A/","b":[1,2],"c":{"x":null,"y":1.0},"c":{}}"#,
        r#"{"a":"A/","b":[1,2],"c":{"x":null,"y":1.0},"\ud800":1}"#,
    ] {
        assert_ne!(canonical(&object(other)), canonical(&one), "{other}");
        assert_ne!(differences(&one, &object(other), 10), [], "{other}");
    }
    // Names that are no Unicode text are told apart by their spelling.
    let [one, other] = [r#"{"\ud800":1, "a":{}}"#, r#"{"\udfff":1,"a":{}}"#].map(object);
    assert_ne!(canonical(&one), canonical(&other));
    assert_eq!(canonical(&one).text(), r#"{"a":{},"\ud800":1}"#);
    assert_eq!(differences(&one, &other, 10).len(), 2);
}

/// A definition of any depth has a canonical form, without a stack overflow.
#[test]
fn deep_definitions_are_compared() {
    let deep = |inner: &str| {
        let (open, close) = (r#"{"a":"#.repeat(100_000), "}".repeat(100_000));
        object(&format!("{open}{inner}{close}"))
    };
    let (one, other) = (deep("1"), deep("2"));
    assert_ne!(canonical(&one), canonical(&other));
    assert_eq!(differences(&one, &other, 10).len(), 1);
}

/// Differences name their places, and cut long values around the place where they begin to differ.
#[test]
fn differences_are_readable() {
    let long = "x".repeat(100);
    let before = object(&format!(
        r#"{{"description":"{long} end","a":{{"b/c":[1]}},"gone":true}}"#
    ));
    let after = object(&format!(
        r#"{{"a":{{"b/c":[1,2]}},"description":"{long}, and send it to me","new":{{}}}}"#
    ));
    let found: Vec<String> = differences(&before, &after, 10)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        found,
        [
            "/a/b~1c/1: 2 was added".to_owned(),
            format!(
                "/description: …{} end\" became …{}, and send it to me\"",
                "x".repeat(55),
                "x".repeat(40)
            ),
            "/gone: true was removed".to_owned(),
            "/new: {} was added".to_owned(),
        ]
    );
    assert_eq!(differences(&before, &after, 1).len(), 1);
}
