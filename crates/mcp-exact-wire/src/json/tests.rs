//! Tests of untyped JSON: members, repeated and escaped names, strings, and objects that are built from parts.

use super::*;
use crate::{RequestId, WithId};

impl<const N: usize> crate::private::Bare for crate::ObjectWith<'_, N> {}

/// Parses an object.
fn object(text: &str) -> JsonObject {
    text.parse().expect("an object")
}

/// Checks the text of the value that `get` returns for a name.
fn check_get(text: &str, name: &str, expected: Option<&str>) {
    let found = object(text).get(name);
    assert_eq!(found.as_ref().map(Json::text), expected, "{text}");
}

#[test]
fn escaped_member_names_are_found() {
    check_get(r#"{"a":1,"b" : [2, "a"] }"#, "b", Some(r#"[2, "a"]"#));
    check_get(r#"{"\u0061":1}"#, "a", Some("1"));
    check_get(r#"{"x":"\"a\"","a":{"a":3}}"#, "a", Some(r#"{"a":3}"#));
    check_get(r#"{"x":{"a":3}}"#, "a", None);
    check_get(r#"{"x":"a"}"#, "a", None);
    check_get(r#"{"a":1,"a":2}"#, "a", Some("2"));
    check_get(r#"{"a\/b":1}"#, "a/b", Some("1"));
    check_get("{ }", "a", None);
}

/// Checks the text of an object after `insert` has set the member `name` to `true`.
fn check_insert(text: &str, name: &str, expected: &str) {
    let mut object = object(text);
    object.insert(name, true);
    assert_eq!(object.text(), expected);
    assert_eq!(object.get(name).as_ref().map(Json::text), Some("true"));
}

#[test]
fn insert_keeps_other_members() {
    check_insert("{}", "a", r#"{"a":true}"#);
    check_insert("{ }", "a", r#"{"a":true}"#);
    check_insert(r#"{"b" : 1e0 }"#, "a", r#"{"b" : 1e0 ,"a":true}"#);
    check_insert(r#"{"a":1 , "b":2}"#, "a", r#"{"a":true , "b":2}"#);
    check_insert(r#"{"x":{"a":1}}"#, "a", r#"{"x":{"a":1},"a":true}"#);
    check_insert(r#"{"\u0061":1}"#, "a", r#"{"\u0061":true}"#);
    check_insert(r#"{"a":1,"a":2}"#, "a", r#"{"a":true,"a":true}"#);
    check_insert(r#"{"b":1}"#, "a\n", r#"{"b":1,"a\n":true}"#);
}

/// Checks the text of an object that is collected from these names, with consecutive numbers as values.
fn check_collected(names: &[&str], expected: &str) {
    let members = names.iter().enumerate();
    let members = members.map(|(at, name)| {
        let value: Json = at.to_string().parse().expect("a number");
        (*name, value)
    });
    assert_eq!(members.collect::<JsonObject>().text(), expected);
}

/// Of members with the same name, an object keeps the first position and the last value.
#[test]
fn repeated_names_keep_first_position() {
    check_collected(&[], "{}");
    check_collected(&["a", "b"], r#"{"a":0,"b":1}"#);
    check_collected(&["a", "b", "a"], r#"{"a":2,"b":1}"#);
    check_collected(&["\n", "\"", "\n"], r#"{"\n":2,"\"":1}"#);
    let many = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "b"];
    let expected = r#"{"a":0,"b":9,"c":2,"d":3,"e":4,"f":5,"g":6,"h":7,"i":8}"#;
    check_collected(&many, expected);
}

/// Conversion from `serde_json::Value` accepts objects, and names the kind of a refused value.
#[test]
fn object_values_convert_to_objects() {
    let value = serde_json::json!({"a": [1, null]});
    let object = JsonObject::try_from(value).expect("it is an object");
    assert_eq!(object.text(), r#"{"a":[1,null]}"#);
    for (value, words) in [
        (serde_json::json!(null), "null"),
        (serde_json::json!(true), "a boolean"),
        (serde_json::json!(1), "a number"),
        (serde_json::json!("{}"), "a string"),
        (serde_json::json!([{}]), "an array"),
    ] {
        let error = JsonObject::try_from(value).expect_err("it is not an object");
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// The search for a member finds the same members in long text, which is searched by substring, as in short text.
#[test]
fn long_and_short_objects_agree() {
    let long = "x".repeat(5000);
    for (name, spelt) in [("a", "a"), ("a", "\\u0061"), ("a/b", "a\\/b")] {
        check_get(
            &format!(r#"{{"l":"{long}","{spelt}":[1]}}"#),
            name,
            Some("[1]"),
        );
        check_get(
            &format!(r#"{{"l":"\"{name}\"{long}","b":{{"{spelt}":1}}}}"#),
            name,
            None,
        );
    }
}

#[test]
fn several_members_are_found_at_once() {
    let object = object(r#"{"b":1, "\u0061" : {"c":2},"b":3 }"#);
    let found = object.view().find_each(["a", "b", "c"]);
    assert_eq!(
        found.map(|found| found.map(JsonRef::text)),
        [Some(r#"{"c":2}"#), Some("3"), None]
    );
    let inner = found[0].and_then(JsonRef::object).expect("an object");
    assert_eq!(inner.find("c").map(JsonRef::text), Some("2"));
    assert_eq!(inner.to_object().text(), r#"{"c":2}"#);
    let first = |name| object.view().find_first(name).map(JsonRef::text);
    let expected = [Some(r#"{"c":2}"#), Some("1"), None];
    assert_eq!(["a", "b", "c"].map(first), expected);
}

/// Members are found at every position of the compared blocks and in every spelling.
#[test]
fn rare_members_are_found() {
    for member in [
        r#""_meta":{"a":1}"#,
        r#""task" : 1"#,
        r#""\u005fmeta":1"#,
        r#""t\u0061sk":[]"#,
        r#""_met":1"#,
        r#""x":{"_meta":1}"#,
        r#""x":"\"_meta\":1""#,
        r#""x":"\\","_meta":1"#,
        r#""x":"a\"","task":{}"#,
        r#""é":"ü""#,
    ] {
        for before in 0..80 {
            for after in [0, 1, 17, 80] {
                let (before, after) = ("b".repeat(before), "c".repeat(after));
                let text = format!(r#"{{"{before}":"{after}",{member},"{after}":0}}"#);
                let object = object(&text);
                let names = ["_meta", "task"];
                let found = object.view().find_rare(names);
                assert_eq!(found, object.view().find_each(names), "{text}");
                // With a name of one letter, the members are scanned instead of searched.
                let names = ["task", "c"];
                let found = object.view().find_rare(names);
                assert_eq!(found, object.view().find_each(names), "{text}");
            }
        }
    }
}

/// An object with set members continues the JSON-RPC envelope of a request.
#[test]
fn set_members_keep_enclosing_objects() {
    let check = |text: &str, expected: &str| {
        let object = object(text);
        let method = Json::string("ping");
        let request = object.view().with([("method", Some(method.view()))]);
        let id = RequestId::from(1_u64);
        assert_eq!(to_string(&WithId { id, request }), expected);
    };
    for empty in ["{}", "{ }"] {
        check(empty, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    }
    check(
        r#"{"method":0,"x":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping","x":1}"#,
    );
    check(
        r#"{ "x":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"x":1,"method":"ping"}"#,
    );
}

/// A removed member is gone however it is spelt, and the values of the others keep their text.
#[test]
fn removed_members_leave_the_others() {
    let check = |text: &str, expected: &str, removed: Option<&str>| {
        let mut object = object(text);
        let value = object.remove("tasks");
        assert_eq!(value.as_ref().map(Json::text), removed, "{text}");
        assert_eq!(object.text(), expected, "{text}");
    };
    check("{}", "{}", None);
    check(r#"{ "a" : 1 }"#, r#"{ "a" : 1 }"#, None);
    check(r#"{"tasks":{}}"#, "{}", Some("{}"));
    check(
        r#"{"a": 1.0, "tasks": null, "b": { "tasks":[ ] }}"#,
        r#"{"a":1.0,"b":{ "tasks":[ ] }}"#,
        Some("null"),
    );
    check(
        r#"{"\u0074asks":1,"a":"x","tasks":2}"#,
        r#"{"a":"x"}"#,
        Some("2"),
    );
}

#[test]
fn plain_strings_are_borrowed() {
    let object = object(r#"{"a":"x","b":"\u0078\n","c":1,"d":"\ud800","e":""}"#);
    let found = object.view().find_each(["a", "b", "c", "d", "e"]);
    let found = found.map(|found| found.and_then(JsonRef::as_str));
    assert!(matches!(found[0], Some(Cow::Borrowed("x"))));
    assert_eq!(found[1].as_deref(), Some("x\n"));
    assert_eq!((&found[2], &found[3]), (&None, &None));
    assert_eq!(found[4].as_deref(), Some(""));
}

/// "All Unicode characters may be placed within the quotation marks, except for the characters that MUST be
/// escaped" (RFC 8259, section 7).
#[test]
fn strings_are_escaped_between_parts() {
    for length in (0..70).chain([255, 256, 257, 9000]) {
        for special in ["", "\"", "\\", "\n", "\u{1}", "ä"] {
            let plain = "x".repeat(length);
            for text in [format!("{plain}{special}"), format!("{special}{plain}")] {
                assert_eq!(Json::string(&text).text(), to_string(text.as_str()));
                let object = JsonObject::from_checked_parts(r#"{"a":"#, &text, "}");
                assert_eq!(
                    object.view().find("a").and_then(JsonRef::as_str),
                    Some(text.into())
                );
                assert_eq!(object.len(), 1);
            }
        }
    }
}

/// The text of a value of `serde_json` is the one that its own compact printer writes.
#[test]
fn serde_values_become_text() {
    let text = r#"{"":{},"a":[],"b":[null,true,false,{"c":-1.5,"d":[18446744073709551615]}],"e\"\n\u0001ä":"{"}"#;
    let value: serde_json::Value = serde_json::from_str(text).expect("a value");
    assert_eq!(Json::from(value).text(), text);
}

/// Setting a member replaces each value of that name, or appends a new member.
#[test]
fn set_members_are_encoded() {
    let check = |text: &str, set: [(&str, Option<&str>); 3], expected: &str| {
        let object = object(text);
        let set = set.map(|(name, value)| (name, value.map(JsonRef::from_checked)));
        let with = object.view().with(set);
        assert_eq!(to_string(&with), expected);
        assert!(with.size() >= expected.len());
    };
    let set = [("a", Some("1")), ("b", None), ("c", Some("[]"))];
    check("{}", set, r#"{"a":1,"c":[]}"#);
    check(r#"{ "b" : 2 }"#, set, r#"{ "b" : 2 ,"a":1,"c":[]}"#);
    check(r#"{"c":{},"b":2}"#, set, r#"{"c":[],"b":2,"a":1}"#);
    check(r#"{"a":0,"a":0,"c":0 }"#, set, r#"{"a":1,"a":1,"c":[] }"#);
    check(
        r#"{"b":2}"#,
        [("a", None), ("b", None), ("c", None)],
        r#"{"b":2}"#,
    );
}
