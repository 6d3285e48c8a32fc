//! Files that are not a schema of the protocol are refused, each with an error that contains a hint.

use codegen::{Revision, generate};
use expect_test::expect;
use serde_json::json;

use crate::input::{NO_TABLES, check_bytes, error_text, revision, schema};

#[test]
fn truncated_file_is_refused() {
    let text = schema(json!({})).to_string();
    check_bytes(
        &text.as_bytes()[..100],
        &expect![[r#"
        2000-01-01: the schema file is not JSON: EOF while parsing an object at line 1 column 100; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn html_is_refused() {
    check_bytes(
        b"<!DOCTYPE html>\n<html><body>404</body></html>\n",
        &expect![[r#"
            2000-01-01: the schema file is not JSON: expected value at line 1 column 1; take the file `schema.json` of the official repository, whole
        "#]],
    );
}

#[test]
fn empty_file_is_refused() {
    check_bytes(
        b"",
        &expect![[r#"
        2000-01-01: the schema file is not JSON: EOF while parsing a value at line 1 column 0; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn invalid_utf8_is_refused() {
    check_bytes(
        b"{\"$schema\": \"\xff\"}",
        &expect![[r#"
        2000-01-01: the schema file is not JSON: invalid unicode code point at line 1 column 14; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn byte_order_mark_is_refused() {
    check_bytes(
        b"\xef\xbb\xbf{}",
        &expect![[r#"
        2000-01-01: the schema file is not JSON: expected value at line 1 column 1; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn different_hash_is_refused() {
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
fn non_object_is_refused() {
    check_bytes(
        b"[]",
        &expect![[r#"
        2000-01-01: the file has no `definitions` and no `$defs`; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn non_object_definitions_are_refused() {
    check_bytes(
        br#"{"definitions": []}"#,
        &expect![[r#"
        2000-01-01: the file has no `definitions` and no `$defs`; take the file `schema.json` of the official repository, whole
    "#]],
    );
}

#[test]
fn schema_of_another_protocol_is_refused() {
    let text = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": { "Pet": { "type": "object", "properties": { "name": { "type": "string" } } } },
    });
    check_bytes(
        text.to_string().as_bytes(),
        &expect![[r#"
        2000-01-01 at /definitions: there is no definition `JSONRPCMessage`, so this is not a schema of the protocol; take the file `schema.json` of the official repository
    "#]],
    );
}

#[test]
fn missing_dialect_is_refused() {
    check_bytes(
        br#"{"definitions": {}}"#,
        &expect![[r#"
        2000-01-01 at /$schema: the dialect "" is not known; use draft-07 or 2020-12
    "#]],
    );
}

#[test]
fn unknown_dialect_is_refused() {
    let mut schema = schema(json!({}));
    schema["$schema"] = json!("http://json-schema.org/draft-04/schema#");
    check_bytes(
        schema.to_string().as_bytes(),
        &expect![[r#"
        2000-01-01 at /$schema: the dialect "http://json-schema.org/draft-04/schema#" is not known; use draft-07 or 2020-12
    "#]],
    );
}

/// A dialect is recognised by its complete URI and not by a part.
#[test]
fn similar_dialect_is_refused() {
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
fn violation_of_the_dialect_is_refused() {
    let schema = schema(json!({ "Thing": { "type": 5 } }));
    check_bytes(
        schema.to_string().as_bytes(),
        &expect![[r#"
        2000-01-01 at /definitions/Thing/type: the file breaks the rules of its dialect: 5 is not valid under any of the schemas listed in the 'anyOf' keyword; take the official file, unchanged
    "#]],
    );
}

#[test]
fn unknown_root_keyword_is_refused() {
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
fn deeply_nested_arrays_are_refused() {
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
fn deeply_nested_schemas_are_refused() {
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
fn too_many_definitions_are_refused() {
    let many = (0..2001).map(|n| (format!("A{n}"), json!({ "type": "string" })));
    let schema = schema(many.collect());
    check_bytes(
        schema.to_string().as_bytes(),
        &expect![[r#"
        2000-01-01 at /definitions: there are 2004 definitions; a schema of the protocol has some hundreds; look at the file
    "#]],
    );
}
