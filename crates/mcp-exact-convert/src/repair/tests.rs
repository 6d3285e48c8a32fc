//! Each rule on a value of its own, and what is never repaired.

use super::*;
use mcp_exact_revisions::Side;

/// Repairs the result of a method; shows the text and the records.
fn result(method: &str, text: &str, of: KnownRevision) -> String {
    let root = Payload {
        kind: MessageKind::Result,
        method,
        sender: Side::Server,
    };
    show(repair_text(root, text, of))
}

/// Repairs the params of a client's request.
fn params(method: &str, text: &str, of: KnownRevision) -> String {
    let root = Payload {
        kind: MessageKind::Request,
        method,
        sender: Side::Client,
    };
    show(repair_text(root, text, of))
}

fn show(repaired: Option<Repaired>) -> String {
    let Some(repaired) = repaired else {
        return "-".to_owned();
    };
    let repairs = repaired.repairs.iter().map(|repair| format!("\n{repair}"));
    repaired.text + &repairs.collect::<String>()
}

const OLD: KnownRevision = KnownRevision::V2025_06_18;
const NEW: KnownRevision = KnownRevision::V2026_07_28;

#[test]
fn null_of_an_optional_member_is_absence() {
    assert_eq!(
        result(
            "tools/list",
            r#"{"tools":[{"name":"a","title":null,"inputSchema":{"type":"object"},"x":null}],"nextCursor":null}"#,
            OLD
        ),
        "{\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"},\"x\":null}]}\n\
         null-member at \"/tools/0/title\" (tool `a`)\nnull-member at \"/nextCursor\""
    );
    assert_eq!(
        params(
            "tools/call",
            r#"{"name":"a","arguments":null,"_meta":null}"#,
            OLD
        ),
        "{\"name\":\"a\"}\nnull-member at \"/arguments\" (tool `a`)\nnull-member at \"/_meta\" (tool `a`)"
    );
    // Structured content of 2026-07-28 may be any value.
    let valid = r#"{"resultType":"complete","content":[],"structuredContent":null}"#;
    assert_eq!(result("tools/call", valid, NEW), "-");
}

#[test]
fn php_and_go_forms_of_emptiness() {
    assert_eq!(
        result(
            "initialize",
            r#"{"protocolVersion":"2025-06-18","capabilities":{"prompts":[],"experimental":[],"logging":null,"tools":true,"completions":false},"serverInfo":{"name":"s"}}"#,
            OLD
        ),
        "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{\"prompts\":{},\"experimental\":{},\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"\"}}\n\
         empty-array at \"/capabilities/prompts\"\nempty-array at \"/capabilities/experimental\"\n\
         null-member at \"/capabilities/logging\"\ncapability-flag at \"/capabilities/tools\"\n\
         capability-flag at \"/capabilities/completions\"\nmissing-member at \"/serverInfo/version\""
    );
    assert_eq!(
        result("tools/list", r#"{"tools":null}"#, OLD),
        "{\"tools\":[]}\nnull-list at \"/tools\""
    );
    assert_eq!(result("tools/list", r#"{"tools":{}}"#, OLD), "-");
    assert_eq!(
        params(
            "initialize",
            r#"{"protocolVersion":"2025-06-18","capabilities":null,"clientInfo":{"name":"c","version":"1"}}"#,
            OLD
        ),
        "{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}}\n\
         missing-member at \"/capabilities\""
    );
}

/// Decoding keeps schemas as they are; the rules that the revision has for their members are those of `validate()`.
#[test]
fn schemas_of_tools() {
    let list = |schema: &str| format!(r#"{{"tools":[{{"name":"a","inputSchema":{schema}}}]}}"#);
    for (schema, after, repairs) in [
        (
            r#"{"type":"object","properties":[]}"#,
            r#"{"type":"object","properties":{}}"#,
            "\nempty-array at \"/tools/0/inputSchema/properties\" (tool `a`)",
        ),
        (
            r#"{"type":"object","properties":null,"required":null,"x":null}"#,
            r#"{"type":"object","x":null}"#,
            "\nnull-member at \"/tools/0/inputSchema/properties\" (tool `a`)\
             \nnull-member at \"/tools/0/inputSchema/required\" (tool `a`)",
        ),
        (
            r#"{"type":"object","properties":{"x":[],"y":{"enum":[]}},"required":[]}"#,
            r#"{"type":"object","properties":{"x":{},"y":{"enum":[]}},"required":[]}"#,
            "\nempty-array at \"/tools/0/inputSchema/properties/x\" (tool `a`)",
        ),
        (
            "{}",
            r#"{"type":"object"}"#,
            "\nneutral-schema at \"/tools/0/inputSchema\" (tool `a`)",
        ),
        (
            r#"{"anyOf":[{"type":"object"}]}"#,
            r#"{"type":"object","anyOf":[{"type":"object"}]}"#,
            "\nmissing-member at \"/tools/0/inputSchema/type\" (tool `a`)",
        ),
        (
            r#"{"properties":{},"type":["object","null"],"required":{}}"#,
            r#"{"properties":{},"type":"object"}"#,
            "\nwrong-type at \"/tools/0/inputSchema/type\" (tool `a`): expected \"object\"\
             \nwrong-type at \"/tools/0/inputSchema/required\" (tool `a`)",
        ),
        (
            r#"{"type":"object","required":true}"#,
            r#"{"type":"object"}"#,
            "\nwrong-type at \"/tools/0/inputSchema/required\" (tool `a`)",
        ),
        (
            r#""{\"properties\":{\"x\":{}}}""#,
            r#"{"type":"object","properties":{"x":{}}}"#,
            "\nschema-as-text at \"/tools/0/inputSchema\" (tool `a`)\
             \nmissing-member at \"/tools/0/inputSchema/type\" (tool `a`)",
        ),
        (
            r#""none""#,
            r#"{"type":"object"}"#,
            "\nneutral-schema at \"/tools/0/inputSchema\" (tool `a`): expected an object",
        ),
        (
            "true",
            r#"{"type":"object"}"#,
            "\nneutral-schema at \"/tools/0/inputSchema\" (tool `a`): expected an object",
        ),
    ] {
        let expected = list(after) + repairs;
        assert_eq!(result("tools/list", &list(schema), OLD), expected);
    }
    for kept in [
        r#"{"type":"object","properties":{},"required":[]}"#,
        r#"{"type":"object","properties":{"x":{"default":null,"properties":[]}}}"#,
        r#"{"type":"object","properties":{"x":null}}"#,
        r#"{"type":"object","properties":[],"properties":{}}"#,
        r#"{"properties":[],"properties":{}}"#,
        r#"{"properties":{},"description":"\"inputSchema\":{}","type":"object"}"#,
    ] {
        assert_eq!(result("tools/list", &list(kept), OLD), "-", "{kept}");
    }
    // The newest revision leaves all members but `$schema` and `type` to JSON Schema.
    let new = r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"a","inputSchema":{"type":"object","properties":[]}}]}"#;
    assert_eq!(result("tools/list", new, NEW), "-");
}

#[test]
fn items_are_repaired_or_left_out() {
    let list = r#"{"tools":[{"name":"a","inputSchema":null},{"name":"b"},{"name":5,"inputSchema":{}},null,{"name":"c","name":"d","inputSchema":{}},{"name":"e","inputSchema":{},"annotations":7}]}"#;
    assert_eq!(
        result("tools/list", list, OLD),
        "{\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"b\",\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"e\",\"inputSchema\":{\"type\":\"object\"}}]}\n\
         neutral-schema at \"/tools/0/inputSchema\" (tool `a`)\nneutral-schema at \"/tools/1/inputSchema\" (tool `b`)\n\
         left-out at \"/tools/2\": expected a string\nleft-out at \"/tools/3\": expected an object\n\
         left-out at \"/tools/4\" (tool `c`): a member is there twice\nneutral-schema at \"/tools/5/inputSchema\" (tool `e`)\nwrong-type at \"/tools/5/annotations\" (tool `e`): expected an object"
    );
    assert_eq!(
        result(
            "tools/call",
            r#"{"content":[{"type":"text","text":null},{"type":"text","text":"x"}],"isError":null}"#,
            OLD
        ),
        "{\"content\":[{\"type\":\"text\",\"text\":\"{\\\"type\\\":\\\"text\\\",\\\"text\\\":null}\"},{\"type\":\"text\",\"text\":\"x\"}]}\n\
         tool-content at \"/content/0\": expected a string\nnull-member at \"/isError\""
    );
}

/// A call that has done something is no success without words: what the server has sent is shown.
#[test]
fn content_of_tools_is_shown() {
    let text = |words: &str| format!(r#"{{"type":"text","text":{words}}}"#);
    for (content, after, pointer) in [
        (r#""a\nb""#, text(r#""a\nb""#), ""),
        (r#""\ud83d""#, text(r#""\ufffd""#), ""),
        (r#"{"type":"text","text":"a"}"#, text(r#""a""#), ""),
        (r#"{"a":"b"}"#, text(r#""{\"a\":\"b\"}""#), ""),
        ("7", text(r#""7""#), ""),
        (r#"["a"]"#, text(r#""a""#), "/0"),
        (r#"[[]]"#, text(r#""[]""#), "/0"),
        (
            r#"[{"type":"image","type":"audio"}]"#,
            text(r#""{\"type\":\"image\",\"type\":\"audio\"}""#),
            "/0",
        ),
    ] {
        for (of, kind) in [(OLD, ""), (NEW, r#""resultType":"complete","#)] {
            let repaired = result(
                "tools/call",
                &format!(r#"{{{kind}"content":{content}}}"#),
                of,
            );
            let start =
                format!("{{{kind}\"content\":[{after}]}}\ntool-content at \"/content{pointer}\"");
            assert!(repaired.starts_with(&start), "{repaired}");
        }
    }
    assert_eq!(
        result("tools/call", r#"{"rows":[1],"isError":true}"#, OLD),
        "{\"rows\":[1],\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"{\\\"rows\\\":[1]}\"}]}\n\
         tool-content at \"/content\": the member `content` is missing"
    );
    // The reports say what is wrong, and a long value is cut.
    let long = format!(
        r#"{{"content":[{{"type":"image","data":"{}"}}]}}"#,
        "A".repeat(20 << 10)
    );
    let repaired = result("tools/call", &long, OLD);
    assert!(repaired.len() < 17 << 10, "{}", repaired.len());
    assert!(repaired.contains('…'), "{repaired}");
}

#[test]
fn results_of_the_newest_revision_lack_members() {
    assert_eq!(
        result("tools/list", r#"{"tools":[]}"#, NEW),
        "{\"tools\":[],\"cacheScope\":\"private\",\"resultType\":\"complete\",\"ttlMs\":0}\n\
         missing-member at \"/cacheScope\"\nmissing-member at \"/resultType\"\nmissing-member at \"/ttlMs\""
    );
    assert_eq!(
        result(
            "tools/call",
            r#"{"structuredContent":{"a":1},"resultType":"complete"}"#,
            NEW
        ),
        "{\"structuredContent\":{\"a\":1},\"resultType\":\"complete\",\"content\":[]}\nmissing-member at \"/content\""
    );
}

/// The union of results is told apart by `resultType`, which is no kind of result if it is `null`.
#[test]
fn null_is_the_usual_kind_of_result() {
    assert_eq!(
        result("tools/call", r#"{"resultType":null,"content":[]}"#, NEW),
        "{\"resultType\":\"complete\",\"content\":[]}\nmissing-member at \"/resultType\""
    );
}

#[test]
fn surrogates_are_replaced() {
    assert_eq!(
        result(
            "tools/call",
            r#"{"content":[{"type":"text","text":"a\ud83d b\ude00 \ud83d\ude00 \\ud83d"}]}"#,
            OLD
        ),
        "{\"content\":[{\"type\":\"text\",\"text\":\"a\\ufffd b\\ufffd \\ud83d\\ude00 \\\\ud83d\"}]}\nlone-surrogate at \"/content/0/text\""
    );
}

/// What changes the meaning, or has two meanings, is refused as before.
#[test]
fn meaning_is_never_guessed() {
    for (method, text) in [
        ("tools/call", r#"{"content":[],"isError":"no"}"#),
        ("tools/call", r#"{"content":[],"content":[]}"#),
        ("tools/list", r#"{}"#),
        ("tools/list", r#"{"tools":[]"#),
        ("resources/read", r#"{"contents":[{"uri":"a:b"}]}"#),
        ("prompts/get", r#"{"messages":["hi"]}"#),
    ] {
        assert_eq!(result(method, text, OLD), "-", "{text}");
    }
    for (method, text) in [
        ("tools/call", r#"{"name":"a","arguments":"{}"}"#),
        ("tools/call", r#"{"name":null}"#),
        ("tools/list", r#"{"cursor":5}"#),
    ] {
        assert_eq!(params(method, text, OLD), "-", "{text}");
    }
}

#[test]
fn envelopes() {
    let show = |text: &[u8]| match repair_message(text) {
        None => "-".to_owned(),
        Some((bytes, repairs)) => {
            let repairs = repairs.iter().map(|repair| format!(" | {repair}"));
            String::from_utf8_lossy(&bytes).into_owned() + &repairs.collect::<String>()
        }
    };
    for (text, expected) in [
        (
            "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}} | byte-order-mark",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":null,"result":{"a":1},"error":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}} | null-in-envelope at "/method" | null-in-envelope at "/error""#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}} | null-in-envelope at "/result""#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"} | null-in-envelope at "/params""#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[ ]}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}} | empty-params at "/params""#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}} | empty-result at "/result""#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}"#,
            "-",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}} | error-object at "/error": expected an object"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":" -7 ","message":"m","data":{"a":1},"x":2}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-7,"message":"m","data":{"a":1},"x":2}} | null-in-envelope at "/result" | error-object at "/error": expected a number"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":"ENOENT","message":"m","data":1}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m","data":{"code":"ENOENT","message":"m","data":1}}} | error-object at "/error": expected a number"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"m","data":{"code":1.5,"message":"m"}}} | error-object at "/error": expected an integer"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":{"a":2}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"an error without a message: {\"code\":1,\"message\":{\"a\":2}}","data":{"code":1,"message":{"a":2}}}} | error-object at "/error": expected a string"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":[1]}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"an error without a message: [1]","data":[1]}} | error-object at "/error": expected an object"#,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"\ud83d"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"\ufffd"}} | lone-surrogate at "/error""#,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"error":false}"#, "-"),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"code":2}}"#,
            "-",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":"no"}"#, "-"),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":null,"error":null}"#,
            "-",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"result":null}"#, "-"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}"#, "-"),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, "-"),
    ] {
        assert_eq!(show(text.as_bytes()), expected);
    }
}

#[test]
fn rules_are_named_once() {
    for (at, row) in RULES.iter().enumerate() {
        assert!(
            RULES[..at]
                .iter()
                .all(|other| other.name != row.name && other.rule != row.rule)
        );
        assert_eq!(row.rule.info().name, row.name);
    }
}
