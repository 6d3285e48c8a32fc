//! Amplification: the memory of decoded values and the size of reported errors have fixed limits or are proportional to
//! the input.

use mcp_2025_03_26 as batches;
use mcp_2025_06_18 as mcp;
use mcp_exact_wire::{
    Decode, Frame, Json, MAX_BATCH, Map, MessageErrorKind, RequestId, Validate, decode_frame,
    from_slice, from_str,
};

/// Maximum length in bytes of the pointer and of the message of an error or violation, for any document.
const MAX_REPORTED_BYTES: usize = 2 * 1024;

/// Length of long names and strings, in bytes.
const LONG_LENGTH: usize = 5_000_000;

/// Returns no method for any request id, because no request was sent.
fn no_method(_: &RequestId) -> Option<&'static str> {
    None
}

/// Checks that the decode error of a text is short, and that its pointer begins with `start` and is truncated.
#[track_caller]
fn check_short_error<T: Decode>(text: &str, start: &str) {
    let error = from_str::<T>(text).map(|_| ()).expect_err("it is hostile");
    assert!(
        error.pointer().len() <= MAX_REPORTED_BYTES,
        "{}",
        error.pointer().len()
    );
    assert!(error.detail().len() <= MAX_REPORTED_BYTES);
    assert!(error.pointer().starts_with(start), "{}", error.pointer());
    assert!(error.pointer().ends_with('…'), "the cut shows");
}

/// A batch of more than [`MAX_BATCH`] messages is refused (receivers of 2025-03-26 "MUST support receiving JSON-RPC
/// batches").
#[test]
fn batches_are_limited() {
    let batch = |item: &str, count: usize| {
        let text = format!("[{}{item}]", format!("{item},").repeat(count - 1));
        decode_frame::<batches::FromClient>(text.as_bytes(), &no_method)
    };
    for item in ["1", "{}", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#] {
        let Ok(Frame::Batch(messages)) = batch(item, MAX_BATCH) else {
            panic!("as many as there may be: {item}");
        };
        assert_eq!(messages.len(), MAX_BATCH);
        for count in [MAX_BATCH + 1, 1_000_000] {
            let error = batch(item, count).map(|_| ()).expect_err("too many");
            assert_eq!(error.kind(), MessageErrorKind::InvalidRequest);
            assert!(error.to_string().contains("at most 1000"), "{error}");
        }
    }
}

/// A batch with malformed JSON is refused as a whole, even if it begins with valid messages.
#[test]
fn long_batches_must_be_json() {
    let text = format!("[{}", "1,".repeat(100_000));
    for error in [
        decode_frame::<batches::FromClient>(text.as_bytes(), &no_method).map(|_| ()),
        decode_frame::<mcp::FromClient>(text.as_bytes(), &no_method).map(|_| ()),
    ] {
        let error = error.expect_err("no JSON");
        assert_eq!(error.kind(), MessageErrorKind::Parse);
    }
}

/// The pointer of an error contains only the beginning of a long member name.
#[test]
fn long_names_are_cut_in_errors() {
    let name = "k".repeat(LONG_LENGTH);
    check_short_error::<Map<bool>>(&format!(r#"{{"{name}":1}}"#), "/kkk");
    check_short_error::<Map<bool>>(&format!(r#"{{"{name}":true,"{name}":true}}"#), "/kkk");
    check_short_error::<mcp::Annotations>(&format!(r#"{{"{name}":1,"{name}":1}}"#), "/kkk");
    check_short_error::<Json>(
        &format!(r#"{{"{}":[nul]}}"#, r"\u00e9".repeat(LONG_LENGTH)),
        "/é",
    );
}

/// The pointer of a defect below millions of nested levels is truncated to a fixed length.
#[test]
fn deep_pointers_are_cut_in_errors() {
    for open in ["[", r#"{"a":"#, r#"[{"":"#] {
        let text = open.repeat(2 * LONG_LENGTH / open.len()) + "nul";
        let start = if open == "[" { "/0/0/0" } else { "/" };
        check_short_error::<Json>(&text, start);
        let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{text}"#);
        let error = decode_frame::<mcp::FromClient>(message.as_bytes(), &no_method);
        let error = error.map(|_| ()).expect_err("it is hostile");
        assert!(error.decode_error().pointer().len() <= MAX_REPORTED_BYTES);
    }
}

/// The pointer of a defect after deeply nested values contains only the path of the defect.
#[test]
fn pointers_after_deep_values_are_exact() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    let deeper = r#"{"a":["#.repeat(50_000) + &"]}".repeat(50_000);
    for tower in [deep, deeper] {
        let text = format!(r#"{{"x":{tower},"y":[0,{{"z":{tower},"w":nul}}]}}"#);
        let error = from_str::<Json>(&text).expect_err("no JSON");
        assert_eq!(error.pointer(), "/y/1/w");
    }
}

/// The pointers of violations contain only the beginning of long names, and at most a hundred violations are listed.
#[test]
fn long_names_are_cut_in_violations() {
    let name = "k".repeat(LONG_LENGTH);
    let properties = format!(r#"{{"{name}":{{"type":"object","x":1}}}}"#);
    let tool: mcp::Tool = from_str(&format!(
        r#"{{"name":"t","inputSchema":{{"type":"object","required":[{}1],"properties":{properties}}}}}"#,
        "1,".repeat(200),
    ))
    .expect("a tool");
    assert_eq!(tool.validate().count(), 201);
    let arguments = mcp_exact_wire::to_string(&Map::from_iter([(name.as_str(), Json::null())]));
    let many = format!(
        r#"{{"type":"object","properties":{{{}}}}}"#,
        (0..100)
            .map(|n| format!(r#""{n}{}":1"#, "k".repeat(LONG_LENGTH / 100)))
            .collect::<Vec<_>>()
            .join(",")
    );
    let tool: mcp::Tool = from_str(&format!(
        r#"{{"name":"t","inputSchema":{many},"x":{arguments}}}"#
    ))
    .expect("a tool");
    let found = tool.validate();
    assert_eq!(found.count(), 100, "a property is an object");
    for violation in found.listed() {
        assert!(violation.pointer.len() <= MAX_REPORTED_BYTES);
        assert!(violation.pointer.starts_with("/inputSchema/properties/"));
        assert!(violation.pointer.ends_with('…'));
    }
}

/// The messages of violations quote only the beginning of long values.
#[test]
fn long_values_are_cut_in_violations() {
    let long = "k".repeat(LONG_LENGTH);
    let number = format!("9{}", "0".repeat(LONG_LENGTH));
    let annotations: mcp::Annotations =
        from_str(&format!(r#"{{"audience":["{long}"],"priority":{number}}}"#))
            .expect("annotations");
    let block: mcp::ContentBlock =
        from_slice(format!(r#"{{"type":"{long}"}}"#).as_bytes()).expect("an unknown block");
    let found = [annotations.validate(), block.validate()];
    let all: Vec<_> = found.iter().flat_map(|found| found.listed()).collect();
    assert_eq!(
        all.len(),
        3,
        "an unknown name, a maximum and an unknown variant"
    );
    for violation in all {
        assert!(
            violation.message.len() <= MAX_REPORTED_BYTES,
            "{}",
            violation.message.len()
        );
        assert!(violation.message.contains('…'));
    }
}

/// The unused capacity of a string that was decoded from escape sequences is at most a quarter of its length.
#[test]
fn decoded_strings_waste_little_memory() {
    for length in (0..300).chain([1_000, 100_000]) {
        for (spelt, text) in [
            (r"\n", "\n"),
            (r"\u0041", "A"),
            (r"\ud83d\ude00", "😀"),
            (r"\u00e9x", "éx"),
        ] {
            for plain in [0, length] {
                let document = format!("\"{}{}{spelt}\"", "x".repeat(plain), spelt.repeat(length));
                let decoded: String = from_str(&document).expect("a string");
                assert_eq!(decoded.len(), plain + text.len() * (length + 1));
                let spare = decoded.capacity() - decoded.len();
                assert!(
                    spare <= decoded.len() / 4,
                    "{spare} beside {}",
                    decoded.len()
                );
            }
        }
    }
}
