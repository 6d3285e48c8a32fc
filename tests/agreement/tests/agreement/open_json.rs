//! Open JSON inside messages comes back byte for byte: white space, spelling, order, duplicate names, lone surrogates.
//! Takes hand-made values, puts each into every kind of open place, and asks every revision that has the place.

use crate::revisions::revisions;

/// Values in spellings that no encoder would choose.
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

/// Open places: `@` stands for any value, `%` for any object.
const PLACES: [(&str, &str); 14] = [
    ("Result", r#"{"x":@}"#),
    ("Result", r#"{"_meta":{"x":@,"y":@}}"#),
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

#[test]
fn open_values_come_back_byte_for_byte() {
    let mut cases = 0;
    for revision in revisions() {
        let unions = revision.types.unions.iter().map(|union| union.name);
        let unions: Vec<&str> = unions.collect();
        for (name, template) in PLACES {
            for value in VALUES {
                if template.contains('%') && !value.starts_with('{') {
                    continue;
                }
                let object = if value.starts_with('{') { value } else { "{ }" };
                let text = template.replace('@', value).replace('%', object);
                let definition = revision.types.definitions.iter().find(|d| d.name == name);
                let encoded = match definition {
                    Some(definition) => (definition.inspect)(text.as_bytes()).map(|i| i.encoded),
                    None => {
                        let at = unions.iter().position(|union| *union == name);
                        let union = &revision.types.unions[at.expect("a union of that name")];
                        (union.decode)(text.as_bytes()).map(|decoded| decoded.encoded)
                    }
                };
                assert_eq!(encoded.as_ref(), Ok(&text), "{} {name}", revision.id());
                cases += 1;
            }
        }
    }
    println!("{cases} documents with open values came back byte for byte");
}

#[test]
fn absent_null_and_empty_stay_apart() {
    let cases = [
        r#"{"method":"tools/call","params":{"name":"t"}}"#,
        r#"{"method":"tools/call","params":{"name":"t","arguments":{}}}"#,
        r#"{"method":"tools/call","params":{"name":"t","_meta":{}}}"#,
        r#"{"method":"tools/call","params":{"name":"t","x":null}}"#,
        r#"{"method":"tools/call","params":{"name":"t","x":{}}}"#,
        r#"{"method":"tools/call","params":{"name":"t","x":[]}}"#,
    ];
    for revision in revisions() {
        let inspect = revision.definition("CallToolRequest").inspect;
        for text in cases {
            let encoded = inspect(text.as_bytes()).map(|inspected| inspected.encoded);
            assert_eq!(encoded.as_deref(), Ok(text), "{}", revision.id());
        }
        for arguments in ["null", "[]"] {
            let text = format!(
                r#"{{"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#
            );
            let error = inspect(text.as_bytes()).expect_err("an object and nothing else");
            assert_eq!(error.pointer(), "/params/arguments", "{}", revision.id());
        }
    }
}
