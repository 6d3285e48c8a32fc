//! Compiles and uses the crate in `tests/golden`: the code for each shape decodes, encodes and validates. Expectations
//! about text are exact, byte for byte.

#[allow(clippy::all, dead_code, missing_docs, unexpected_cfgs, unused_imports)]
#[path = "../golden/src/lib.rs"]
#[rustfmt::skip]
mod small;

use std::fmt::Debug;

use mcp_exact_wire::{
    Decode, DecodeErrorKind, Encode, MAX_DEPTH, Members, Nullable, Validate, decode_message,
    from_str, to_string,
};
use serde_json::{Map, Value};

/// Checks that a text decodes, encodes to the same text, and has no violation.
fn exact<T: Decode + Encode + Validate + Debug>(json: &str) -> T {
    let value: T = from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(to_string(&value), json);
    let violations = value.validate();
    assert!(violations.is_empty(), "{json}: {violations:?}");
    value
}

/// Returns the pointers of the violations of a document that decodes.
fn violations<T: Decode + Encode + Validate>(json: &str) -> Vec<String> {
    let value: T = from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(to_string(&value), json);
    let violations = value.validate();
    let pointers = violations.listed().iter().map(|v| v.pointer.to_string());
    pointers.collect()
}

const EVERYTHING: &str = r#"{"kind":"everything","version":3,"bounded":9,"colours":["red","_other"],"inputSchema":{"type":"object","required":["a"]},"map":{"a":1.50,"b":"c","d":true},"nullable":null,"open":[1, 2.0],"#;

#[test]
fn a_struct_of_everything() {
    let json = format!(
        r#"{EVERYTHING}"_meta":{{"a": 1}},"alias":"n","created":"2025-01-02T03:04:05Z","io.example/clientName":"c","nullableOption":null,"object":{{"b": 2}},"optionalConstant":"only","parts":[{{"text":"t"}},{{"blob":"AAAA"}}],"x-unknown":{{ }}}}"#
    );
    let value: small::Everything = exact(&json);
    assert_eq!(value.client_name.as_deref(), Some("c"));
    assert_eq!(value.nullable_option, Some(Nullable::Null));
    assert_eq!(value.colours, [small::Colour::Red, small::Colour::Other]);
    assert!(matches!(
        value.parts.as_deref(),
        Some([small::Part::TextPart(_), small::Part::BlobPart(_)])
    ));
}

#[test]
fn deviations_have_their_places() {
    let json = r#"{"kind":"everything","version":3,"bounded":10,"colours":[],"inputSchema":{"type":"object","required":5},"map":{},"nullable":-1,"open":null,"created":"yesterday","parts":[{"text":"t","uri":"no uri"}]}"#;
    let found = violations::<small::Everything>(json);
    assert_eq!(
        found,
        [
            "/bounded",
            "/colours",
            "/created",
            "/inputSchema/required",
            "/nullable",
            "/parts/0/uri"
        ]
    );
}

#[test]
fn constants_are_no_fields_but_they_are_checked() {
    let json = format!("{EVERYTHING}\"a\":1}}").replace("\"version\":3", "\"version\":4");
    let error = from_str::<small::Everything>(&json).expect_err("another version");
    assert_eq!(error.pointer(), "/version");
}

#[test]
fn an_enum_keeps_unknown_values() {
    assert_eq!(
        exact::<small::Colour>("\"light-green\""),
        small::Colour::LightGreen
    );
    assert_eq!(violations::<small::Colour>("\"blue\""), [""]);
}

#[test]
fn a_tagged_union() {
    let figure: small::Figure = exact(r#"{"type":"circle","radius":1.0}"#);
    assert!(matches!(figure, small::Figure::Circle(_)));
    assert_eq!(
        violations::<small::Figure>(r#"{"sides":3,"type":"triangle"}"#),
        [""]
    );
    let error = from_str::<small::Figure>(r#"{"type":"circle"}"#).expect_err("no radius");
    assert_eq!(error.kind(), DecodeErrorKind::Required);
}

#[test]
fn unions_by_kind() {
    assert!(matches!(exact("\"a\""), small::Scalar::String(_)));
    assert!(matches!(exact("1e400"), small::Scalar::Number(_)));
    assert!(matches!(exact("true"), small::Scalar::Boolean(_)));
    let error = from_str::<small::Scalar>("null").expect_err("null is none of them");
    assert_eq!(error.kind(), DecodeErrorKind::Union);
    assert!(matches!(
        exact(r#"{"type":"circle","radius":0}"#),
        small::OneOrMany::Circle(_)
    ));
    assert!(matches!(exact("[]"), small::OneOrMany::Array(_)));
}

#[test]
fn a_union_by_presence() {
    assert!(matches!(exact(r#"{"text":"a"}"#), small::Part::TextPart(_)));
    assert!(matches!(exact(r#"{"blob":""}"#), small::Part::BlobPart(_)));
    assert!(from_str::<small::Part>("{}").is_err());
}

fn nested_json(open: &str, close: &str, innermost: &str, depth: usize) -> String {
    format!("{}{innermost}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn types_that_contain_themselves() {
    let node: small::Node = exact(r#"{"value":1,"left":{"value":2},"right":{"value":3}}"#);
    assert_eq!(node.left.map(|left| left.value), Some(2.into()));
    exact::<small::Chain>(r#"{"link":{"chain":{"link":{"colour":"red"}}}}"#);
    exact::<small::Tree>(r#"{"children":[{"children":[]}],"named":{"a":{"children":[]}}}"#);
    exact::<small::Anything>(r#"[{"a":[1,"b",true]}]"#);
    exact::<small::Expression>(r#"{"kind":"negation","of":{"kind":"literal","value":true}}"#);
    exact::<small::Sum>(
        r#"{"kind":"both","left":{"kind":"one"},"right":{"kind":"one","more":[]}}"#,
    );
    let built = small::Negation::new(small::Expression::from(small::Literal::new("a")));
    assert_eq!(
        to_string(&built),
        r#"{"kind":"negation","of":{"kind":"literal","value":"a"}}"#
    );
}

#[test]
fn violations_inside_types_that_contain_themselves() {
    assert_eq!(
        violations::<small::Node>(r#"{"value":1,"left":{"value":0}}"#),
        ["/left/value"]
    );
    let chain = r#"{"link":{"chain":{"link":{"colour":"blue"}}}}"#;
    assert_eq!(
        violations::<small::Chain>(chain),
        ["/link/chain/link/colour"]
    );
    let tree = nested_json(
        r#"{"kind":"negation","of":"#,
        "}",
        r#"{"kind":"other"}"#,
        50,
    );
    assert_eq!(violations::<small::Expression>(&tree), ["/of".repeat(50)]);
}

/// Checks that a document with the maximum depth of typed values is accepted, and a much deeper one is refused.
fn check_depth<T: Decode + Encode + Validate + Debug>(
    open: &str,
    close: &str,
    innermost: &str,
    levels: usize,
) {
    let most = MAX_DEPTH as usize / levels - 1;
    exact::<T>(&nested_json(open, close, innermost, most));
    let error = from_str::<T>(&nested_json(open, close, innermost, 200_000)).expect_err("too deep");
    assert_eq!(error.kind(), DecodeErrorKind::Depth);
}

#[test]
fn nesting_has_a_limit() {
    check_depth::<small::Node>(r#"{"value":1,"left":"#, "}", r#"{"value":1}"#, 1);
    check_depth::<small::Chain>(r#"{"link":{"chain":"#, "}}", r#"{"link":{}}"#, 2);
    check_depth::<small::Tree>(r#"{"children":["#, "]}", r#"{"children":[]}"#, 2);
    check_depth::<small::Anything>("[", "]", "1", 1);
    let both = r#"{"kind":"both","right":{"kind":"one"},"left":"#;
    let error =
        from_str::<small::Sum>(&nested_json(both, "}", "{}", 200_000)).expect_err("too deep");
    assert_eq!(error.kind(), DecodeErrorKind::Depth);
    let literal = r#"{"kind":"literal","value":1}"#;
    check_depth::<small::Expression>(r#"{"kind":"negation","of":"#, "}", literal, 1);
}

const LOCALS: &str = r#"{"check":1,"extra":1,"index":1,"member":1,"name":1,"names":1,"new":1,"object":1,"path":1,"r":1,"required":1,"to":1,"value":1,"w":1}"#;

#[test]
fn members_called_as_variables_of_generated_code() {
    let value: small::RequiredLocals = exact(LOCALS);
    assert_eq!(value.member, 1.into());
    exact::<small::OptionalLocals>(LOCALS);
    exact::<small::OptionalLocals>("{}");
    exact::<small::OptionalLocals>(r#"{"extra":1,"extra_":2}"#);
    let wrong = LOCALS.replace(":1", ":0");
    assert_eq!(violations::<small::RequiredLocals>(&wrong).len(), 14);
    assert_eq!(violations::<small::OptionalLocals>(&wrong).len(), 14);
}

#[test]
fn members_called_as_keywords() {
    let members = small::Keywords::MEMBERS.iter();
    let all: Map<String, Value> = members
        .map(|name| ((*name).to_owned(), "x".into()))
        .collect();
    let value: small::Keywords =
        from_str(&Value::Object(all.clone()).to_string()).expect("it fits");
    let again: Value = serde_json::from_str(&to_string(&value)).expect("JSON");
    assert_eq!(again, Value::Object(all));
    assert_eq!(value.r#gen.as_deref(), Some("x"));
    assert_eq!(value.self_, "x");
}

#[test]
fn definitions_called_as_names_of_the_prelude() {
    exact::<small::None>(r#"{"a":{"a":"b"}}"#);
    exact::<small::Err>("\"a\"");
    exact::<small::Error>(r#"{"clone":["ok","err","none","some"]}"#);
    exact::<small::Debug>(r#"{"eq":{"hash":"h"}}"#);
}

#[test]
fn messages_by_direction() {
    let json = r#"{"jsonrpc":"2.0","id":1,"method":"paint","params":{"colour":"red","figure":{"type":"square","side":2}}}"#;
    let message: small::ClientMessage =
        decode_message(json.as_bytes(), &|_| None).expect("a message");
    assert_eq!(to_string(&message), json);
    exact::<small::JSONRPCMessage>(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    exact::<small::JSONRPCMessage>(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
}

#[test]
fn open_values_are_parsed_only_when_asked() {
    let json = format!("{EVERYTHING}\"a\":1}}");
    let value: small::Everything = exact(&json);
    assert_eq!(value.open.text(), "[1, 2.0]");
    assert_eq!(
        value.open.parse::<(i64, f64)>().expect("two numbers"),
        (1, 2.0)
    );
}

#[test]
fn closed_objects_report_other_members() {
    exact::<small::Closed>(r#"{"a":"b","empty":{}}"#);
    assert_eq!(
        violations::<small::Closed>(r#"{"a":"b","empty":{"c":1},"d":2}"#),
        ["/d", "/empty/c"]
    );
    assert_eq!(
        violations::<small::MaybeLink>(
            r#"{"link":{"a":"b","c":1},"settingsSchema":{"type":"object","d":1}}"#
        ),
        ["/link/c", "/settingsSchema/d"]
    );
}

#[test]
fn values_of_any_text() {
    for (text, value) in [
        ("\"2.0\"", small::Unusual::V20),
        ("\"<=\"", small::Unusual::LessEqual),
        ("\"\"", small::Unusual::Empty),
        ("\"self\"", small::Unusual::SelfValue),
        ("\"a\"", small::Unusual::A_a),
        ("\"A\"", small::Unusual::A_A),
    ] {
        assert_eq!(exact::<small::Unusual>(text), value);
    }
}

#[test]
fn null_among_several_types() {
    let many: small::MaybeMany = exact(r#"["a",1,null]"#);
    assert_eq!(many[2], Nullable::Null);
    exact::<small::MaybeLink>(r#"{"link":null,"level":null}"#);
    exact::<small::MaybeLink>(r#"{"link":{"a":"b"},"level":"two","x-a":"c"}"#);
}

#[test]
fn strings_with_known_values_come_first() {
    assert!(matches!(exact("\"low\""), small::OpenLevel::Level(_)));
    assert!(matches!(exact("\"other\""), small::OpenLevel::String(_)));
    assert!(matches!(exact("\"high\""), small::LevelOrColour::Level(_)));
    assert!(matches!(exact("\"red\""), small::LevelOrColour::Colour(_)));
    assert!(matches!(exact("1.5"), small::AnyNumber::Number(_)));
    assert!(matches!(exact("1"), small::AnyNumber::Number(_)));
}
