//! Errata that do not match the schema: each is an error, so that no erratum is ignored after upstream has changed.

use codegen::Tables;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::input::{error_text, generate_from, revision, schema};

/// Returns definitions that the errata of the tests correct.
fn definitions() -> Value {
    let bounded = json!({ "type": "integer", "minimum": 0 });
    json!({ "Thing": { "type": "object", "properties": { "a": bounded }, "required": ["a"] } })
}

/// Compares the generator's error for the contents of `schema/errata.toml`.
fn check_table(errata: &str, expected: &Expect) {
    let tables = Tables { errata, names: "" };
    expected.assert_eq(&error_text(generate_from(definitions(), tables)));
}

/// Compares the generator's error for one erratum with this pointer; `lines` are its other fields apart from reason and
/// proof.
fn check(pointer: &str, lines: &str, expected: &Expect) {
    check_table(&erratum("it", pointer, lines), expected);
}

/// Returns an erratum with these fields.
fn erratum(id: &str, pointer: &str, lines: &str) -> String {
    format!(
        "[[erratum]]\nid = \"{id}\"\nrevisions = [\"2000-01-01\"]\npointer = \"{pointer}\"\n{lines}\n\
         reason = \"a test\"\nproof = \"none needed\"\n"
    )
}

#[test]
fn matching_erratum_is_applied() {
    check(
        "/definitions/Thing/properties/a/minimum",
        "expect = '0'\nput = '1'",
        &expect![[r#"
            accepted
        "#]],
    );
}

/// An erratum is refused if its new value equals the value that it expects.
#[test]
fn erratum_without_effect_is_refused() {
    check(
        "/definitions/Thing/properties/a/minimum",
        "expect = '0'\nput = '0'",
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/a/minimum: the erratum changes nothing; look at what upstream changed and amend erratum `it`
        "#]],
    );
}

/// An erratum is refused if the schema already has its new value.
#[test]
fn obsolete_erratum_is_refused() {
    check(
        "/definitions/Thing/properties/a/minimum",
        "expect = '1'\nput = '0'",
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/a/minimum: the erratum changes nothing; look at what upstream changed and amend erratum `it`
        "#]],
    );
}

/// An erratum is refused if the value at its pointer is not the value that it expects.
#[test]
fn mismatching_expectation_is_refused() {
    check(
        "/definitions/Thing/properties/a/minimum",
        "expect = '2'\nput = '1'",
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/a/minimum: the erratum finds 0 where it expects 2; look at what upstream changed and amend erratum `it`
        "#]],
    );
}

/// An erratum that expects a value is refused if its pointer refers to no value.
#[test]
fn missing_value_is_refused() {
    check(
        "/definitions/Thing/properties/a/maximum",
        "expect = '2'\nput = '1'",
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/a/maximum: the erratum finds nothing where it expects 2; look at what upstream changed and amend erratum `it`
        "#]],
    );
}

/// An erratum that expects no value is refused if its pointer refers to a value.
#[test]
fn unexpected_value_is_refused() {
    check(
        "/definitions/Thing/properties/a/minimum",
        "absent = true\nput = '1'",
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/a/minimum: the erratum finds 0 where it expects nothing; look at what upstream changed and amend erratum `it`
        "#]],
    );
}

#[test]
fn dangling_pointer_is_refused() {
    check(
        "/definitions/Gone/properties/a",
        "absent = true\nput = '{}'",
        &expect![[r#"
            2000-01-01 at /definitions/Gone/properties/a: the erratum points at no member of an object that exists; look at what upstream changed and amend erratum `it`
        "#]],
    );
}

#[test]
fn list_items_are_replaced_not_added() {
    check(
        "/definitions/Thing/required/1",
        "absent = true\nput = '\"b\"'",
        &expect![[r#"
            2000-01-01 at /definitions/Thing/required/1: the erratum points at no member of an object that exists; look at what upstream changed and amend erratum `it`
        "#]],
    );
    check(
        "/definitions/Thing/required/0",
        "expect = '\"a\"'\nput = '\"b\"'",
        &expect![[r#"
            2000-01-01 at /definitions/Thing: the required member `b` is not described; describe it by an erratum
        "#]],
    );
}

#[test]
fn invalid_json_is_refused() {
    let pointer = "/definitions/Thing/properties/a/minimum";
    check(
        pointer,
        "expect = '0'\nput = '{'",
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/a/minimum: `put` is not JSON: EOF while parsing an object at line 1 column 1; look at what upstream changed and amend erratum `it`
    "#]],
    );
    check(
        pointer,
        "expect = ''\nput = '1'",
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/a/minimum: `expect` is not JSON: EOF while parsing a value at line 1 column 0; look at what upstream changed and amend erratum `it`
    "#]],
    );
}

/// An erratum must have either `expect` or `absent`, and not both.
#[test]
fn ambiguous_expectation_is_refused() {
    let pointer = "/definitions/Thing/properties/a/minimum";
    check(
        pointer,
        "put = '1'",
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/a/minimum: an erratum says either `expect` or `absent = true`; look at what upstream changed and amend erratum `it`
    "#]],
    );
    check(
        pointer,
        "expect = '0'\nabsent = true\nput = '1'",
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/a/minimum: an erratum says either `expect` or `absent = true`; look at what upstream changed and amend erratum `it`
        "#]],
    );
}

/// An erratum must not add a keyword that the generator does not support.
#[test]
fn unknown_keyword_is_refused() {
    check(
        "/definitions/Thing/properties/a/not",
        "absent = true\nput = '{}'",
        &expect![[r#"
            2000-01-01 at /definitions/Thing/properties/a/not: the keyword `not` is not understood; teach the generator what it means, or correct it by an erratum
        "#]],
    );
}

/// Two errata must not correct a value and a part of the same value.
#[test]
fn overlapping_errata_are_refused() {
    let pointer = "/definitions/Thing/properties/a";
    let first = erratum(
        "first",
        &format!("{pointer}/minimum"),
        "expect = '0'\nput = '1'",
    );
    let second = erratum(
        "second",
        pointer,
        "expect = '{\"type\":\"integer\",\"minimum\":1}'\nput = '{}'",
    );
    check_table(
        &(first + &second),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/properties/a: an erratum has already changed /definitions/Thing/properties/a/minimum; put both changes into one; this is `second`
    "#]],
    );
}

#[test]
fn missing_pointer_is_refused() {
    let table = "[[erratum]]\nid = \"it\"\nrevisions = [\"2000-01-01\"]\nput = '1'\nreason = \"a\"\nproof = \"b\"\n";
    check_table(
        table,
        &expect![[r#"
        schema/errata.toml: erratum `it` names no revision or no place; give it `revisions`, and `pointer` or `pointers`
    "#]],
    );
}

#[test]
fn missing_proof_is_refused() {
    let table = "[[erratum]]\nid = \"it\"\nrevisions = [\"2000-01-01\"]\npointer = \"/a\"\nput = '1'\nreason = \"a\"\nproof = \" \"\n";
    check_table(
        table,
        &expect![[r#"
        schema/errata.toml: erratum `it` lacks its reason or its proof; say why it is needed and which upstream text proves it
    "#]],
    );
}

#[test]
fn malformed_table_is_refused() {
    check_table(
        "[[erratum]]\nid = 5\n",
        &expect![[r#"
        schema/errata.toml: TOML parse error at line 2, column 6
          |
        2 | id = 5
          |      ^
        invalid type: integer `5`, expected a string; see the comment at the top of the file for its form
    "#]],
    );
    check_table(
        "<html>",
        &expect![[r#"
        schema/errata.toml: TOML parse error at line 1, column 7
          |
        1 | <html>
          |       ^
        key with no value, expected `=`; see the comment at the top of the file for its form
    "#]],
    );
}

/// An erratum of an older revision fits a new file if it finds there what it expects, whichever keyword has the definitions.
#[test]
fn older_errata_that_fit_are_found() {
    let entry = |id: &str, revision: &str, pointer: &str, rest: &str| {
        format!(
            "[[erratum]]\nid = \"{id}\"\nrevisions = [\"{revision}\"]\npointer = \"{pointer}\"\n{rest}\n\
             reason = \"r\"\nproof = \"p\"\n"
        )
    };
    let old = "1999-01-01";
    let errata = [
        entry(
            "fits",
            old,
            "/$defs/Thing/type",
            "expect = '\"object\"'\nput = '\"array\"'",
        ),
        entry(
            "absent",
            old,
            "/definitions/Thing/title",
            "absent = true\nput = '\"T\"'",
        ),
        entry(
            "differs",
            old,
            "/definitions/Thing/type",
            "expect = '\"string\"'\nput = '\"array\"'",
        ),
        entry(
            "elsewhere",
            old,
            "/definitions/Other/title",
            "absent = true\nput = '\"T\"'",
        ),
        entry(
            "own",
            "2000-01-01",
            "/definitions/Thing/type",
            "expect = '\"object\"'\nput = '\"array\"'",
        ),
    ]
    .concat();
    let bytes = schema(json!({ "Thing": { "type": "object" } }))
        .to_string()
        .into_bytes();
    let tables = Tables {
        errata: &errata,
        names: "",
    };
    let fitting = codegen::fitting_errata(&revision(&bytes), &bytes, tables);
    assert_eq!(fitting.expect("a schema"), ["fits", "absent"]);
}
