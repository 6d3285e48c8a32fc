//! Untyped JSON inside messages is preserved byte for byte: white space, spelling, order, duplicate names, lone
//! surrogates. Hand-written values are inserted into a template for every kind of untyped value, in every revision in
//! which the template is valid and encoding keeps its member order.

use mcp_exact_tests_support::Doc;
use mcp_exact_wire::DecodeError;

use crate::expected::expected_encoding;
use crate::revisions::{Revision, reviewed_revisions, revisions};

/// Values in unusual spellings.
const VALUES: [&str; 16] = [
    "null",
    "1.0",
    "-0",
    "1E+2",
    "1e400",
    "-0.000e-999",
    "123456789012345678901234567890",
    r#""\u0041\/""#,
    r#""\ud800""#,
    r#""\udc00\ud800 \uD83D\uDE00""#,
    "\"\u{2028}\u{7f}\"",
    "[ ]",
    "[ 1 ,\t2,\r\n3 ]",
    "{ }",
    r#"{"b" : 1, "a": { "b":[{}] }, "b":2 }"#,
    r#"{"\ud800":1,"":{"\u0000":"\u0000"},"_meta":{"progressToken":{}}}"#,
];

/// Definitions, each with a template of a document: the test replaces `@` by any value and `%` by any object.
const TEMPLATES: [(&str, &str); 22] = [
    ("Result", r#"{"x":@}"#),
    ("Result", r#"{"resultType":"complete","x":@}"#),
    ("Result", r#"{"_meta":{"x":@,"y":@}}"#),
    (
        "Result",
        r#"{"resultType":"complete","_meta":{"x":@,"y":@}}"#,
    ),
    (
        "CallToolRequestParams",
        r#"{"name":"t","arguments":{"x":@}}"#,
    ),
    ("CallToolRequestParams", r#"{"name":"t","_meta":{"x":@}}"#),
    (
        "CallToolRequest",
        r#"{"jsonrpc":"2.0","method":"tools/call","id":1,"params":{"name":"t"},"x":@}"#,
    ),
    (
        "CallToolRequestParams",
        r#"{"_meta":{"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/protocolVersion":"v","x":@},"name":"t"}"#,
    ),
    (
        "CallToolRequest",
        r#"{"method":"tools/call","params":{"name":"t","arguments":{"x":@}}}"#,
    ),
    (
        "CallToolRequest",
        r#"{"method":"tools/call","params":{"name":"t","_meta":{"x":@}}}"#,
    ),
    (
        "CallToolRequest",
        r#"{"method":"tools/call","params":{"name":"t"},"x":@}"#,
    ),
    (
        "LoggingMessageNotification",
        r#"{"method":"notifications/message","params":{"data":@,"level":"info"}}"#,
    ),
    (
        "LoggingMessageNotificationParams",
        r#"{"data":@,"level":"info"}"#,
    ),
    (
        "JSONRPCRequest",
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":@}}"#,
    ),
    (
        "JSONRPCMessage",
        r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"","data":@},"id":1}"#,
    ),
    (
        "CallToolResult",
        r#"{"content":[],"structuredContent":{"x":@}}"#,
    ),
    ("CallToolResult", r#"{"content":[],"structuredContent":%}"#),
    (
        "CallToolResult",
        r#"{"content":[],"resultType":"complete","structuredContent":@}"#,
    ),
    ("ClientCapabilities", r#"{"experimental":{"x":%}}"#),
    (
        "CreateMessageRequest",
        r#"{"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[],"metadata":%}}"#,
    ),
    (
        "Tool",
        r#"{"inputSchema":{"x":@,"type":"object" , "properties":{"p":%}},"name":"t"}"#,
    ),
    ("ContentBlock", r#"{ "x" : @ , "type":"hologram" }"#),
];

/// Untyped values in any position of a message are preserved byte for byte.
#[test]
fn untyped_values_round_trip() {
    let mut cases = 0;
    for revision in reviewed_revisions() {
        for (name, template) in TEMPLATES {
            if !is_unchanged_by_encoding(
                revision,
                name,
                &template.replace('@', "1").replace('%', "{}"),
            ) {
                continue;
            }
            for value in VALUES {
                if template.contains('%') && !value.starts_with('{') {
                    continue;
                }
                let object = if value.starts_with('{') { value } else { "{ }" };
                let text = template.replace('@', value).replace('%', object);
                let encoded = encode(revision, name, &text);
                assert_eq!(encoded.as_ref(), Ok(&text), "{} {name}", revision.id());
                cases += 1;
            }
        }
    }
    println!("{cases} documents with open values came back byte for byte");
    assert!(
        cases >= 100 * reviewed_revisions().count(),
        "enough places are there"
    );
}

/// Returns true if the revision has the definition and the document is valid and has the member order of the types.
fn is_unchanged_by_encoding(revision: &Revision, name: &str, text: &str) -> bool {
    let doc = Doc::parse(text).expect("a template is JSON");
    let mut unions = revision.types.unions.iter();
    let is_there = unions.any(|union| union.name == name)
        || revision.types.definitions.iter().any(|d| d.name == name);
    is_there
        && revision.schema.oracle.verdict(name, &doc) == Some(true)
        && expected_encoding(&revision.schema, name, &doc).to_string() == doc.to_string()
}

/// Decodes a text as a definition or a union, and encodes the value.
fn encode(revision: &Revision, name: &str, text: &str) -> Result<String, DecodeError> {
    let definition = revision.types.definitions.iter().find(|d| d.name == name);
    match definition {
        Some(definition) => definition.inspect(text.as_bytes()).map(|i| i.encoded),
        None => {
            let at = revision
                .types
                .unions
                .iter()
                .position(|union| union.name == name);
            let union = &revision.types.unions[at.expect("a union of that name")];
            (union.decode)(text.as_bytes()).map(|decoded| decoded.encoded)
        }
    }
}

/// Absent, null and empty members of a message remain different after decoding and encoding.
#[test]
fn absent_null_and_empty_stay_distinct() {
    let cases = [
        r#""params":{"name":"t"}"#,
        r#""params":{"name":"t","arguments":{}}"#,
        r#""params":{"name":"t","_meta":{}}"#,
        r#""params":{"name":"t","x":null}"#,
        r#""params":{"name":"t","x":{}}"#,
        r#""params":{"name":"t","x":[]}"#,
    ];
    let heads = [
        r#""method":"tools/call""#,
        r#""jsonrpc":"2.0","method":"tools/call","id":1"#,
    ];
    let name = "CallToolRequest";
    for revision in revisions() {
        for head in heads {
            let texts = cases.map(|params| format!("{{{head},{params}}}"));
            for text in texts
                .iter()
                .filter(|text| is_unchanged_by_encoding(revision, name, text))
            {
                assert_eq!(
                    encode(revision, name, text).as_ref(),
                    Ok(text),
                    "{}",
                    revision.id()
                );
            }
            if !is_unchanged_by_encoding(revision, name, &texts[0]) {
                continue;
            }
            for arguments in ["null", "[]"] {
                let text = format!(r#"{{{head},"params":{{"name":"t","arguments":{arguments}}}}}"#);
                let error = encode(revision, name, &text).expect_err("an object and nothing else");
                assert_eq!(error.pointer(), "/params/arguments", "{}", revision.id());
            }
        }
    }
}
