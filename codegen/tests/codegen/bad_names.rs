//! Names that are not valid in Rust or would collide are refused; names that only look problematic are accepted.

use codegen::{Tables, check_tables};
use expect_test::{Expect, expect};
use serde_json::{Map, Value, json};

use crate::input::{NO_TABLES, check, check_thing, error_text, generate_from};

/// Compares the generator's errors for definitions with these names, each alone in a schema.
fn check_all(names: &[&str], expected: &Expect) {
    let say = |name: &&str| {
        let mut definitions = Map::new();
        definitions.insert((*name).to_owned(), json!({ "type": "string" }));
        error_text(generate_from(Value::Object(definitions), NO_TABLES))
    };
    let error: Vec<String> = names.iter().map(say).collect();
    expected.assert_eq(&(error.concat()));
}

#[test]
fn invalid_type_names_are_refused() {
    check_all(
        &["type", "self", "Self", "thing", "a/b", "Foo-Bar", "", "1"],
        &expect![[r#"
            2000-01-01 at /definitions/type: the name `type` can be no Rust type; teach the generator another name for it
            2000-01-01 at /definitions/self: the name `self` can be no Rust type; teach the generator another name for it
            2000-01-01 at /definitions/Self: the name `Self` can be no Rust type; teach the generator another name for it
            2000-01-01 at /definitions/thing: the name `thing` can be no Rust type; teach the generator another name for it
            2000-01-01 at /definitions/a~1b: the name `a/b` can be no Rust type; teach the generator another name for it
            2000-01-01 at /definitions/Foo-Bar: the name `Foo-Bar` can be no Rust type; teach the generator another name for it
            2000-01-01 at /definitions/: the name `` can be no Rust type; teach the generator another name for it
            2000-01-01 at /definitions/1: the name `1` can be no Rust type; teach the generator another name for it
        "#]],
    );
}

/// A definition must not have a name that generated code imports from `mcp-exact-wire`.
#[test]
fn runtime_names_are_refused() {
    check_all(
        &["Json", "Reader", "Message", "NotificationMethod"],
        &expect![[r#"
            2000-01-01 at /definitions/Json: generated code needs the name `Json` itself; teach the generator another name for it
            2000-01-01 at /definitions/Reader: generated code needs the name `Reader` itself; teach the generator another name for it
            2000-01-01 at /definitions/Message: generated code needs the name `Message` itself; teach the generator another name for it
            2000-01-01 at /definitions/NotificationMethod: generated code needs the name `NotificationMethod` itself; teach the generator another name for it
        "#]],
    );
}

/// A definition must not have a name that generated code defines or uses from Rust's prelude.
#[test]
fn names_in_generated_code_are_refused() {
    check_all(
        &[
            "Box",
            "Default",
            "From",
            "FromClient",
            "Into",
            "Option",
            "String",
            "Vec",
        ],
        &expect![[r#"
            2000-01-01 at /definitions/Box: generated code needs the name `Box` itself; teach the generator another name for it
            2000-01-01 at /definitions/Default: generated code needs the name `Default` itself; teach the generator another name for it
            2000-01-01 at /definitions/From: generated code needs the name `From` itself; teach the generator another name for it
            2000-01-01 at /definitions/FromClient: generated code needs the name `FromClient` itself; teach the generator another name for it
            2000-01-01 at /definitions/Into: generated code needs the name `Into` itself; teach the generator another name for it
            2000-01-01 at /definitions/Option: generated code needs the name `Option` itself; teach the generator another name for it
            2000-01-01 at /definitions/String: generated code needs the name `String` itself; teach the generator another name for it
            2000-01-01 at /definitions/Vec: generated code needs the name `Vec` itself; teach the generator another name for it
        "#]],
    );
}

/// A definition may have a name of Rust's prelude that generated code does not use.
#[test]
fn unused_prelude_names_are_accepted() {
    check_all(
        &[
            "Some",
            "None",
            "Ok",
            "Err",
            "Result",
            "Error",
            "Clone",
            "Notification",
        ],
        &expect![[r#"
            accepted
            accepted
            accepted
            accepted
            accepted
            accepted
            accepted
            accepted
        "#]],
    );
}

#[test]
fn definitions_differing_in_case_are_refused() {
    let object = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    check(
        json!({ "FooBar": object, "FOOBar": object }),
        &expect![[r#"
            2000-01-01 at /definitions/FooBar: `FOOBar` and `FooBar` differ only in the case of letters; teach the passes before typify another name for one of them
        "#]],
    );
}

/// Returns an object schema with these members.
fn schema_with_members(names: &[&str]) -> Value {
    let members: Map<String, Value> = names
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
        .collect();
    json!({ "type": "object", "properties": members })
}

/// Two members are refused if their names yield the same Rust field.
#[test]
fn members_with_one_field_are_refused() {
    check_thing(
        schema_with_members(&["fooBar", "foo_bar"]),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/foo_bar: the members `fooBar` and `foo_bar` would both be the field `foo_bar`; teach the generator a name for it
    "#]],
    );
    check_thing(
        schema_with_members(&["_meta", "meta"]),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/meta: the members `_meta` and `meta` would both be the field `meta`; teach the generator a name for it
    "#]],
    );
    check_thing(
        schema_with_members(&["extra", "extra_"]),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/extra_: the members `extra` and `extra_` would both be the field `extra_`; teach the generator a name for it
    "#]],
    );
    check_thing(
        schema_with_members(&["a/name", "b/name"]),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/b~1name: the members `a/name` and `b/name` would both be the field `name`; teach the generator a name for it
    "#]],
    );
}

/// A member is refused if its name yields no valid Rust field.
#[test]
fn members_without_a_field_are_refused() {
    check_thing(
        schema_with_members(&[""]),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/: the name "" makes no Rust field; teach the generator a name for it
    "#]],
    );
    check_thing(
        schema_with_members(&["$"]),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/$: the name "$" makes no Rust field; teach the generator a name for it
    "#]],
    );
    check_thing(
        schema_with_members(&["1st"]),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/1st: the name "1st" makes no Rust field; teach the generator a name for it
    "#]],
    );
    check_thing(
        schema_with_members(&["é"]),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/é: the name "é" makes no Rust field; teach the generator a name for it
    "#]],
    );
}

/// Returns a schema in which the type of the member `part` of `Thing` has no name.
fn schema_with_anonymous_part() -> Map<String, Value> {
    let part = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let thing = json!({ "type": "object", "properties": { "part": part } });
    Map::from_iter([("Thing".to_owned(), thing)])
}

/// A definition must not have the name of the generated typed view of a JSON Schema document.
#[test]
fn colliding_typed_view_is_refused() {
    let document = json!({ "type": "object", "properties": { "type": { "const": "object", "type": "string" } }, "required": ["type"] });
    let thing = json!({ "type": "object", "properties": { "inputSchema": document } });
    let view = json!({ "type": "string" });
    check(
        json!({ "Thing": thing, "ThingInputSchemaView": view }),
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/inputSchema: the typed view of `ThingInputSchema` would be `ThingInputSchemaView`, which is a definition; teach the generator another name for it
        "#]],
    );
}

/// Compares the generator's error for the contents of `schema/names.toml`.
fn check_names(names: &str, expected: &Expect) {
    let tables = Tables { errata: "", names };
    expected.assert_eq(&error_text(generate_from(
        Value::Object(schema_with_anonymous_part()),
        tables,
    )));
}

/// An entry of `schema/names.toml` is refused if no anonymous schema at its JSON pointer is lifted.
#[test]
fn name_without_schema_is_refused() {
    check_names(
        r#"
        [[name]]
        revisions = ["2000-01-01"]
        pointer = "/definitions/Thing/properties/gone"
        name = "Gone"
        "#,
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/gone: there is nothing anonymous here to be named `Gone`; amend schema/names.toml
        "#]],
    );
}

/// An entry of `schema/names.toml` must not name an anonymous schema like a definition.
#[test]
fn name_of_definition_is_refused() {
    check_names(
        r#"
        [[name]]
        revisions = ["2000-01-01"]
        pointer = "/definitions/Thing/properties/part"
        name = "Thing"
        "#,
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/part: the name `Thing` is taken; add a name to schema/names.toml
        "#]],
    );
}

/// An entry of `schema/names.toml` must contain a valid Rust type name.
#[test]
fn invalid_table_name_is_refused() {
    check_names(
        r#"
        [[name]]
        revisions = ["2000-01-01"]
        pointer = "/definitions/Thing/properties/part"
        name = "thing part"
        "#,
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/part: the name `thing part` can be no Rust type; add a name to schema/names.toml
        "#]],
    );
}

/// An entry of `schema/names.toml` must not contain a name that generated code imports from `mcp-exact-wire`.
#[test]
fn runtime_table_name_is_refused() {
    check_names(
        r#"
        [[name]]
        revisions = ["2000-01-01"]
        pointer = "/definitions/Thing/properties/part"
        name = "Json"
        "#,
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/part: generated code needs the name `Json` itself; teach the generator another name for it
        "#]],
    );
}

#[test]
fn malformed_table_is_refused() {
    check_names(
        "[[name]]\npointer = 5\n",
        &expect![[r#"
        schema/names.toml: TOML parse error at line 2, column 11
          |
        2 | pointer = 5
          |           ^
        invalid type: integer `5`, expected a string; give each entry revisions, a pointer and a name
    "#]],
    );
}

/// Two entries of `schema/names.toml` must not name the same schema.
#[test]
fn duplicate_schema_names_are_refused() {
    check_names(
        r#"
        [[name]]
        revisions = ["2000-01-01"]
        pointer = "/definitions/Thing/properties/part"
        name = "Part"

        [[name]]
        revisions = ["2000-01-01"]
        pointer = "/definitions/Thing/properties/part"
        name = "Piece"
        "#,
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/part: `Piece` names what `Part` at /definitions/Thing/properties/part names already: equal schemas share one name; take one of the two out of schema/names.toml
        "#]],
    );
}

/// Each revision that an erratum or a name applies to must be listed.
#[test]
fn unlisted_revision_is_refused() {
    let check = |errata: &str, names: &str, expected: Expect| {
        let error = check_tables(Tables { errata, names }, &["2000-01-01", "2000-02-02"]);
        expected.assert_eq(&error.map_or_else(|error| format!("{error}\n"), |()| "fine\n".into()));
    };
    let erratum = |revision: &str| {
        format!(
            "[[erratum]]\nid = \"slip\"\nrevisions = [\"2000-01-01\", \"{revision}\"]\npointer = \"/a\"\nput = \"1\"\nreason = \"x\"\nproof = \"y\"\n"
        )
    };
    let name = |revision: &str| {
        format!("[[name]]\nrevisions = [\"{revision}\"]\npointer = \"/a\"\nname = \"Part\"\n")
    };
    check(
        &erratum("2000-02-02"),
        &name("2000-01-01"),
        expect![[r#"
        fine
    "#]],
    );
    check(
        &erratum("2000-02-20"),
        "",
        expect![[r#"
        schema/errata.toml: erratum `slip` is for the revision 2000-02-20, which is not listed; correct it or take it out; schema/revisions.toml and schema/extensions.toml list 2000-01-01, 2000-02-02
    "#]],
    );
    check(
        "",
        &name("2001-01-01"),
        expect![[r#"
        schema/names.toml: the name `Part` is for the revision 2001-01-01, which is not listed; correct it or take it out; schema/revisions.toml and schema/extensions.toml list 2000-01-01, 2000-02-02
    "#]],
    );
}
