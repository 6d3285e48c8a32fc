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
fn check_round_trip<T: Decode + Encode + Validate + Debug>(json: &str) -> T {
    let value: T = from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(to_string(&value), json);
    let violations = value.validate();
    assert!(violations.is_empty(), "{json}: {violations:?}");
    value
}

/// Returns the pointers of the violations of a document that decodes.
fn violation_pointers<T: Decode + Encode + Validate>(json: &str) -> Vec<String> {
    let value: T = from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
    assert_eq!(to_string(&value), json);
    let violations = value.validate();
    let pointers = violations.listed().iter().map(|v| v.pointer.to_string());
    pointers.collect()
}

/// Beginning of a document of the type `Everything`, with its first members.
const ALL_MEMBERS: &str = r#"{"kind":"everything","version":3,"bounded":9,"colours":["red","_other"],"inputSchema":{"type":"object","required":["a"]},"map":{"a":1.50,"b":"c","d":true},"nullable":null,"open":[1, 2.0],"#;

#[test]
fn members_of_every_type_round_trip() {
    let json = format!(
        r#"{ALL_MEMBERS}"_meta":{{"a": 1}},"alias":"n","created":"2025-01-02T03:04:05Z","io.example/clientName":"c","nullableOption":null,"object":{{"b": 2}},"optionalConstant":"only","parts":[{{"text":"t"}},{{"blob":"AAAA"}}],"x-unknown":{{ }}}}"#
    );
    let value: small::Everything = check_round_trip(&json);
    assert_eq!(value.client_name.as_deref(), Some("c"));
    assert_eq!(value.nullable_option, Some(Nullable::Null));
    assert_eq!(value.colours, [small::Colour::Red, small::Colour::Other]);
    assert!(matches!(
        value.parts.as_deref(),
        Some([small::Part::TextPart(_), small::Part::BlobPart(_)])
    ));
}

#[test]
fn violations_have_pointers() {
    let json = r#"{"kind":"everything","version":3,"bounded":10,"colours":[],"inputSchema":{"type":"object","required":5},"map":{},"nullable":-1,"open":null,"created":"yesterday","parts":[{"text":"t","uri":"no uri"}]}"#;
    let found = violation_pointers::<small::Everything>(json);
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

/// A constant member has no field; decoding checks its value and encoding writes it.
#[test]
fn constants_are_validated_without_fields() {
    let json = format!("{ALL_MEMBERS}\"a\":1}}").replace("\"version\":3", "\"version\":4");
    let error = from_str::<small::Everything>(&json).expect_err("another version");
    assert_eq!(error.pointer(), "/version");
}

#[test]
fn enums_keep_unknown_values() {
    assert_eq!(
        check_round_trip::<small::Colour>("\"light-green\""),
        small::Colour::LightGreen
    );
    assert_eq!(violation_pointers::<small::Colour>("\"blue\""), [""]);
}

#[test]
fn tag_selects_the_variant() {
    let figure: small::Figure = check_round_trip(r#"{"type":"circle","radius":1.0}"#);
    assert!(matches!(figure, small::Figure::Circle(_)));
    assert_eq!(
        violation_pointers::<small::Figure>(r#"{"sides":3,"type":"triangle"}"#),
        [""]
    );
    let error = from_str::<small::Figure>(r#"{"type":"circle"}"#).expect_err("no radius");
    assert_eq!(error.kind(), DecodeErrorKind::Required);
}

#[test]
fn kind_of_value_selects_variant() {
    assert!(matches!(
        check_round_trip("\"a\""),
        small::Scalar::String(_)
    ));
    assert!(matches!(
        check_round_trip("1e400"),
        small::Scalar::Number(_)
    ));
    assert!(matches!(
        check_round_trip("true"),
        small::Scalar::Boolean(_)
    ));
    let error = from_str::<small::Scalar>("null").expect_err("null is none of them");
    assert_eq!(error.kind(), DecodeErrorKind::Union);
    assert!(matches!(
        check_round_trip(r#"{"type":"circle","radius":0}"#),
        small::OneOrMany::Circle(_)
    ));
    assert!(matches!(check_round_trip("[]"), small::OneOrMany::Array(_)));
}

/// The members that an object has determine its variant in a union without a discriminant.
#[test]
fn present_members_select_the_variant() {
    assert!(matches!(
        check_round_trip(r#"{"text":"a"}"#),
        small::Part::TextPart(_)
    ));
    assert!(matches!(
        check_round_trip(r#"{"blob":""}"#),
        small::Part::BlobPart(_)
    ));
    assert!(from_str::<small::Part>("{}").is_err());
}

/// Returns `depth` levels of nesting around a value.
fn nested_json(open: &str, close: &str, innermost: &str, depth: usize) -> String {
    format!("{}{innermost}{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn recursive_types_round_trip() {
    let node: small::Node =
        check_round_trip(r#"{"value":1,"left":{"value":2},"right":{"value":3}}"#);
    assert_eq!(node.left.map(|left| left.value), Some(2.into()));
    check_round_trip::<small::Chain>(r#"{"link":{"chain":{"link":{"colour":"red"}}}}"#);
    check_round_trip::<small::Tree>(
        r#"{"children":[{"children":[]}],"named":{"a":{"children":[]}}}"#,
    );
    check_round_trip::<small::Anything>(r#"[{"a":[1,"b",true]}]"#);
    check_round_trip::<small::Expression>(
        r#"{"kind":"negation","of":{"kind":"literal","value":true}}"#,
    );
    check_round_trip::<small::Sum>(
        r#"{"kind":"both","left":{"kind":"one"},"right":{"kind":"one","more":[]}}"#,
    );
    let built = small::Negation::new(small::Expression::from(small::Literal::new("a")));
    assert_eq!(
        to_string(&built),
        r#"{"kind":"negation","of":{"kind":"literal","value":"a"}}"#
    );
}

#[test]
fn recursive_types_report_violations() {
    assert_eq!(
        violation_pointers::<small::Node>(r#"{"value":1,"left":{"value":0}}"#),
        ["/left/value"]
    );
    let chain = r#"{"link":{"chain":{"link":{"colour":"blue"}}}}"#;
    assert_eq!(
        violation_pointers::<small::Chain>(chain),
        ["/link/chain/link/colour"]
    );
    let tree = nested_json(
        r#"{"kind":"negation","of":"#,
        "}",
        r#"{"kind":"other"}"#,
        50,
    );
    assert_eq!(
        violation_pointers::<small::Expression>(&tree),
        ["/of".repeat(50)]
    );
}

/// Checks that a document with the maximum depth of typed values is accepted, and a much deeper one is refused.
fn check_depth<T: Decode + Encode + Validate + Debug>(
    open: &str,
    close: &str,
    innermost: &str,
    levels: usize,
) {
    let most = MAX_DEPTH as usize / levels - 1;
    check_round_trip::<T>(&nested_json(open, close, innermost, most));
    let error = from_str::<T>(&nested_json(open, close, innermost, 200_000)).expect_err("too deep");
    assert_eq!(error.kind(), DecodeErrorKind::Depth);
}

#[test]
fn nesting_is_limited() {
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

/// A document whose members are named like variables of the generated code.
const VARIABLE_NAMES: &str = r#"{"check":1,"extra":1,"index":1,"member":1,"name":1,"names":1,"new":1,"object":1,"path":1,"r":1,"required":1,"to":1,"value":1,"w":1}"#;

#[test]
fn members_named_like_variables_decode() {
    let value: small::RequiredLocals = check_round_trip(VARIABLE_NAMES);
    assert_eq!(value.member, 1.into());
    check_round_trip::<small::OptionalLocals>(VARIABLE_NAMES);
    check_round_trip::<small::OptionalLocals>("{}");
    check_round_trip::<small::OptionalLocals>(r#"{"extra":1,"extra_":2}"#);
    let wrong = VARIABLE_NAMES.replace(":1", ":0");
    assert_eq!(
        violation_pointers::<small::RequiredLocals>(&wrong).len(),
        14
    );
    assert_eq!(
        violation_pointers::<small::OptionalLocals>(&wrong).len(),
        14
    );
}

#[test]
fn members_named_like_keywords_decode() {
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

/// A definition may have the name of a type in Rust's prelude.
#[test]
fn definitions_may_shadow_prelude_names() {
    check_round_trip::<small::None>(r#"{"a":{"a":"b"}}"#);
    check_round_trip::<small::Err>("\"a\"");
    check_round_trip::<small::Error>(r#"{"clone":["ok","err","none","some"]}"#);
    check_round_trip::<small::Debug>(r#"{"eq":{"hash":"h"}}"#);
}

#[test]
fn messages_are_grouped_by_direction() {
    let json = r#"{"jsonrpc":"2.0","id":1,"method":"paint","params":{"colour":"red","figure":{"type":"square","side":2}}}"#;
    let message: small::ClientMessage =
        decode_message(json.as_bytes(), &|_| None).expect("a message");
    assert_eq!(to_string(&message), json);
    check_round_trip::<small::JSONRPCMessage>(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    check_round_trip::<small::JSONRPCMessage>(r#"{"jsonrpc":"2.0","id":"a","result":{}}"#);
}

#[test]
fn untyped_values_are_parsed_lazily() {
    let json = format!("{ALL_MEMBERS}\"a\":1}}");
    let value: small::Everything = check_round_trip(&json);
    assert_eq!(value.open.text(), "[1, 2.0]");
    assert_eq!(
        value.open.parse::<(i64, f64)>().expect("two numbers"),
        (1, 2.0)
    );
}

#[test]
fn closed_objects_report_unknown_members() {
    check_round_trip::<small::Closed>(r#"{"a":"b","empty":{}}"#);
    assert_eq!(
        violation_pointers::<small::Closed>(r#"{"a":"b","empty":{"c":1},"d":2}"#),
        ["/d", "/empty/c"]
    );
    assert_eq!(
        violation_pointers::<small::MaybeLink>(
            r#"{"link":{"a":"b","c":1},"settingsSchema":{"type":"object","d":1}}"#
        ),
        ["/link/c", "/settingsSchema/d"]
    );
}

#[test]
fn enum_values_may_be_any_text() {
    for (text, value) in [
        ("\"2.0\"", small::Unusual::V20),
        ("\"<=\"", small::Unusual::LessEqual),
        ("\"\"", small::Unusual::Empty),
        ("\"self\"", small::Unusual::SelfValue),
        ("\"a\"", small::Unusual::A_a),
        ("\"A\"", small::Unusual::A_A),
    ] {
        assert_eq!(check_round_trip::<small::Unusual>(text), value);
    }
}

#[test]
fn null_among_types_is_nullable() {
    let many: small::MaybeMany = check_round_trip(r#"["a",1,null]"#);
    assert_eq!(many[2], Nullable::Null);
    check_round_trip::<small::MaybeLink>(r#"{"link":null,"level":null}"#);
    check_round_trip::<small::MaybeLink>(r#"{"link":{"a":"b"},"level":"two","x-a":"c"}"#);
}

#[test]
fn known_strings_precede_any_string() {
    assert!(matches!(
        check_round_trip("\"low\""),
        small::OpenLevel::Level(_)
    ));
    assert!(matches!(
        check_round_trip("\"other\""),
        small::OpenLevel::String(_)
    ));
    assert!(matches!(
        check_round_trip("\"high\""),
        small::LevelOrColour::Level(_)
    ));
    assert!(matches!(
        check_round_trip("\"red\""),
        small::LevelOrColour::Colour(_)
    ));
    assert!(matches!(
        check_round_trip("1.5"),
        small::AnyNumber::Number(_)
    ));
    assert!(matches!(check_round_trip("1"), small::AnyNumber::Number(_)));
}
