//! Files that are not a schema of the protocol are refused, each with an error that contains a hint.

use codegen::{Revision, generate};
use expect_test::expect;
use serde_json::json;

use crate::input::{NO_TABLES, check_bytes, error_text, revision, schema};

#[test]
fn a_truncated_file() {
    let text = schema(json!({})).to_string();
    check_bytes(
        &text.as_bytes()[..100],
        &expect![[r#"
        2000-01-01: the schema file is not JSON: EOF while parsing an object at line 1 column 100; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn a_web_page_saved_as_json() {
    check_bytes(
        b"<!DOCTYPE html>\n<html><body>404</body></html>\n",
        &expect![[r#"
            2000-01-01: the schema file is not JSON: expected value at line 1 column 1; take the file `schema.json` of the official repository, whole
        "#]],
    );
}

#[test]
fn an_empty_file() {
    check_bytes(
        b"",
        &expect![[r#"
        2000-01-01: the schema file is not JSON: EOF while parsing a value at line 1 column 0; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn bytes_that_are_not_utf8() {
    check_bytes(
        b"{\"$schema\": \"\xff\"}",
        &expect![[r#"
        2000-01-01: the schema file is not JSON: invalid unicode code point at line 1 column 14; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn a_byte_order_mark() {
    check_bytes(
        b"\xef\xbb\xbf{}",
        &expect![[r#"
        2000-01-01: the schema file is not JSON: expected value at line 1 column 1; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn another_hash() {
    let bytes = schema(json!({})).to_string();
    let revision = Revision {
        sha256: "00".repeat(32),
        ..revision(b"")
    };
    expect![[r#"
        2000-01-01: the schema file has sha256 eafffdbc820f372577ad6dcbf238569d90ebe7803a891fb85e4ca6187587c0b8, not 0000000000000000000000000000000000000000000000000000000000000000; run `cargo xtask schema fetch 2000-01-01`
    "#]].assert_eq(&error_text(generate(&revision, bytes.as_bytes(), NO_TABLES)));
}

#[test]
fn json_that_is_no_object() {
    check_bytes(
        b"[]",
        &expect![[r#"
        2000-01-01: the file has no `definitions` and no `$defs`; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn definitions_that_are_no_object() {
    check_bytes(
        br#"{"definitions": []}"#,
        &expect![[r#"
        2000-01-01: the file has no `definitions` and no `$defs`; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn a_schema_of_something_else() {
    let text = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": { "Pet": { "type": "object", "properties": { "name": { "type": "string" } } } },
    });
    check_bytes(
        text.to_string().as_bytes(),
        &expect![[r#"
        2000-01-01 at /definitions: there is no definition `JSONRPCMessage`, so this is no schema of the protocol; take the file `schema.json` of the official repository
    "#]],
    );
}

#[test]
fn no_dialect() {
    check_bytes(
        br#"{"definitions": {}}"#,
        &expect![[r#"
        2000-01-01 at /$schema: the dialect "" is not known; use draft-07 or 2020-12
    "#]],
    );
}

#[test]
fn an_unknown_dialect() {
    let mut schema = schema(json!({}));
    schema["$schema"] = json!("http://json-schema.org/draft-04/schema#");
    check_bytes(
        schema.to_string().as_bytes(),
        &expect![[r#"
        2000-01-01 at /$schema: the dialect "http://json-schema.org/draft-04/schema#" is not known; use draft-07 or 2020-12
    "#]],
    );
}

#[test]
fn a_dialect_that_only_sounds_known() {
    let mut schema = schema(json!({}));
    schema["$schema"] = json!("http://example.com/not-draft-07");
    check_bytes(
        schema.to_string().as_bytes(),
        &expect![[r#"
        2000-01-01 at /$schema: the dialect "http://example.com/not-draft-07" is not known; use draft-07 or 2020-12
    "#]],
    );
}

#[test]
fn a_file_against_its_dialect() {
    let schema = schema(json!({ "Thing": { "type": 5 } }));
    check_bytes(
        schema.to_string().as_bytes(),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/type: the file breaks the rules of its dialect: 5 is not valid under any of the schemas listed in the 'anyOf' keyword; take the official file, unchanged
    "#]],
    );
}

#[test]
fn an_unknown_keyword_at_the_root() {
    let mut schema = schema(json!({}));
    schema["type"] = json!("object");
    check_bytes(
        schema.to_string().as_bytes(),
        &expect![[r#"
        2000-01-01 at /type: the keyword `type` is not understood at the root of a schema ("object"); teach the generator what it means, or correct it by an erratum
    "#]],
    );
}

#[test]
fn ten_megabytes_of_nested_arrays() {
    let half = 5_000_000;
    let text = format!("{}{}", "[".repeat(half), "]".repeat(half));
    check_bytes(
        text.as_bytes(),
        &expect![[r#"
        2000-01-01: the schema file is nested deeper than 127 levels: recursion limit exceeded at line 1 column 128; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn ten_megabytes_of_nested_schemas() {
    let text = format!(
        r#"{{"definitions":{{"A":{}"#,
        r#"{"items":"#.repeat(1_000_000)
    );
    check_bytes(
        text.as_bytes(),
        &expect![[r#"
        2000-01-01: the schema file is nested deeper than 127 levels: recursion limit exceeded at line 1 column 1146; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn more_definitions_than_the_protocol_can_have() {
    let many = (0..2001).map(|n| (format!("A{n}"), json!({ "type": "string" })));
    let schema = schema(many.collect());
    check_bytes(
        schema.to_string().as_bytes(),
        &expect![[r#"
        2000-01-01 at /definitions: there are 2004 definitions; a schema of the protocol has some hundreds; look at the file
    "#]],
    );
}
