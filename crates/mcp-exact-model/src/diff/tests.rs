//! Tests with small hand-written revisions: each kind of change, its location in the report, and its consequence.

mod definitions;

use super::*;
use crate::ir::{Bounds, Definition, Ir, Member, MemberValue, Method, Shape, Text, Type};

fn ir(revision: &str, mut definitions: Vec<Definition>, methods: Vec<Method>) -> Ir {
    definitions.sort_by(|x, y| x.name.cmp(&y.name));
    Ir {
        revision: revision.into(),
        definitions,
        methods,
    }
}

fn define(name: &str, shape: Shape) -> Definition {
    Definition {
        name: name.into(),
        official: true,
        pointers: vec![format!("/definitions/{name}")],
        description: None,
        closed: false,
        shape,
    }
}

/// Creates a definition that is anonymous in the schema.
fn lifted(name: &str, shape: Shape) -> Definition {
    Definition {
        official: false,
        ..define(name, shape)
    }
}

fn member(name: &str, value: MemberValue) -> Member {
    Member {
        name: name.into(),
        required: true,
        description: None,
        value,
    }
}

fn has(name: &str, value: Type) -> Member {
    member(name, MemberValue::Type(value))
}

fn optional_member(name: &str, value: Type) -> Member {
    Member {
        required: false,
        ..has(name, value)
    }
}

fn constant(name: &str, value: &str) -> Member {
    member(name, MemberValue::ConstString(value.into()))
}

fn of(name: &str) -> Type {
    Type::Ref { name: name.into() }
}

fn string() -> Type {
    Type::TEXT
}

fn integer(minimum: Option<i64>, maximum: Option<i64>) -> Type {
    Type::Integer(Bounds { minimum, maximum })
}

fn strings(max_items: Option<u64>) -> Type {
    Type::Array {
        items: Box::new(string()),
        min_items: None,
        max_items,
    }
}

fn one_of(values: &[Type]) -> Shape {
    Shape::Union(values.to_vec())
}

fn values(values: &[&str]) -> Shape {
    Shape::Enum(values.iter().map(|value| (*value).to_owned()).collect())
}

fn request(method: &str, definition: &str) -> Method {
    Method {
        method: method.into(),
        definition: definition.into(),
        request: true,
        params: None,
        params_required: false,
        result: None,
        outcomes: Vec::new(),
        from_client: true,
        from_server: false,
    }
}

fn compare(old: Vec<Definition>, new: Vec<Definition>) -> Diff {
    diff(&ir("1", old, Vec::new()), &ir("2", new, Vec::new()))
}

/// Returns the lines of the only changed definition.
fn changes_between(old: Vec<Definition>, new: Vec<Definition>) -> Vec<String> {
    let diff = compare(old, new);
    assert_eq!(diff.definitions.len(), 1, "{:#?}", diff.definitions);
    change_lines(&diff.definitions[0])
}

fn change_lines(definition: &DefinitionDiff) -> Vec<String> {
    let changes = definition.changes.iter();
    changes
        .map(|change| {
            let kind = serde_json::to_value(&change.kind).expect("plain data");
            let kind = kind["kind"].as_str().unwrap_or_default().to_owned();
            format!("{} {kind} {}", change.path, change.compatibility.words())
        })
        .collect()
}

fn objects(old: Vec<Member>, new: Vec<Member>) -> Vec<String> {
    changes_between(
        vec![define("T", Shape::Struct(old))],
        vec![define("T", Shape::Struct(new))],
    )
}

#[test]
fn nothing_changes_between_equal_revisions() {
    let tool = || define("Tool", Shape::Struct(vec![has("name", string())]));
    assert!(compare(vec![tool()], vec![tool()]).is_empty());
}

#[test]
fn an_added_member_is_additive_when_it_is_optional() {
    let lines = objects(
        vec![has("a", string())],
        vec![
            has("a", string()),
            optional_member("b", string()),
            has("c", string()),
        ],
    );
    assert_eq!(
        lines,
        [
            "b member-added additive",
            "c member-added breaking to write"
        ]
    );
}

#[test]
fn a_removed_member_breaks_readers_only_when_they_insisted_on_it() {
    let lines = objects(
        vec![
            has("a", string()),
            optional_member("b", string()),
            has("c", string()),
        ],
        vec![has("a", string())],
    );
    assert_eq!(
        lines,
        [
            "b member-removed breaking to write",
            "c member-removed breaking to read and write"
        ]
    );
}

#[test]
fn presence_breaks_the_side_that_relied_on_it() {
    let lines = objects(
        vec![has("a", string()), optional_member("b", string())],
        vec![optional_member("a", string()), has("b", string())],
    );
    assert_eq!(
        lines,
        [
            "a member-optional breaking to read",
            "b member-required breaking to write"
        ]
    );
}

#[test]
fn a_wider_type_breaks_readers_and_a_narrower_one_writers() {
    let number = || Type::Number(Bounds::default());
    let whole = || integer(None, None);
    let lines = objects(
        vec![
            has("a", whole()),
            has("b", number()),
            has("c", string()),
            has("d", Type::JsonObject),
        ],
        vec![
            has("a", number()),
            has("b", whole()),
            has("c", Type::Boolean),
            has("d", Type::Json),
        ],
    );
    assert_eq!(
        lines,
        [
            "a retyped breaking to read",
            "b retyped breaking to write",
            "c retyped breaking to read and write",
            "d retyped breaking to read"
        ]
    );
}

#[test]
fn null_is_one_value_more() {
    let lines = objects(
        vec![has("a", string())],
        vec![has("a", Type::Nullable(Box::new(string())))],
    );
    assert_eq!(lines, ["a retyped breaking to read"]);
}

#[test]
fn bounds_and_formats_are_wider_or_narrower_too() {
    let uri = Type::String(Text::of_format("uri"));
    let lines = objects(
        vec![
            has("a", integer(Some(0), None)),
            has("b", strings(None)),
            has("c", string()),
        ],
        vec![
            has("a", integer(None, None)),
            has("b", strings(Some(100))),
            has("c", uri),
        ],
    );
    assert_eq!(
        lines,
        [
            "a bounds breaking to read",
            "b bounds breaking to write",
            "c format breaking to write"
        ]
    );
}

#[test]
fn a_constant_of_another_value_is_another_type() {
    let lines = objects(vec![constant("type", "a")], vec![constant("type", "b")]);
    assert_eq!(lines, ["type constant breaking to read and write"]);
}

#[test]
fn a_constant_in_place_of_a_string_is_narrower() {
    let lines = objects(vec![has("type", string())], vec![constant("type", "b")]);
    assert_eq!(lines, ["type retyped breaking to write"]);
}

#[test]
fn enums_break_readers_by_what_is_new_and_writers_by_what_is_gone() {
    let lines = changes_between(
        vec![define("Level", values(&["high", "low"]))],
        vec![define("Level", values(&["low", "none"]))],
    );
    assert_eq!(
        lines,
        [
            " value-added breaking to read",
            " value-removed breaking to write"
        ]
    );
}

#[test]
fn unions_break_readers_by_what_is_new_and_writers_by_what_is_gone() {
    let text = || define("Text", Shape::Struct(vec![constant("type", "text")]));
    let image = || define("Image", Shape::Struct(vec![constant("type", "image")]));
    let audio = || define("Audio", Shape::Struct(vec![constant("type", "audio")]));
    let lines = changes_between(
        vec![
            text(),
            image(),
            audio(),
            define("Block", one_of(&[of("Text"), of("Image")])),
        ],
        vec![
            text(),
            image(),
            audio(),
            define("Block", one_of(&[of("Text"), of("Audio")])),
        ],
    );
    assert_eq!(
        lines,
        [
            " variant-added breaking to read",
            " variant-removed breaking to write"
        ]
    );
}

#[test]
fn new_client_requests_are_additive() {
    let ping = || {
        define(
            "PingRequest",
            Shape::Struct(vec![constant("method", "ping")]),
        )
    };
    let list = || {
        define(
            "ListRequest",
            Shape::Struct(vec![constant("method", "list")]),
        )
    };
    let requests = |values: &[Type]| define("ClientRequest", one_of(values));
    let lines = changes_between(
        vec![ping(), list(), requests(&[of("PingRequest")])],
        vec![
            ping(),
            list(),
            requests(&[of("PingRequest"), of("ListRequest")]),
        ],
    );
    assert_eq!(lines, [" variant-added additive"]);
}

#[test]
fn a_union_of_one_is_that_type() {
    let message =
        |name: &str, method: &str| define(name, Shape::Struct(vec![constant("method", method)]));
    let others = || {
        vec![
            message("ANotification", "a"),
            message("BNotification", "b"),
            define(
                "ServerNotification",
                one_of(&[of("ANotification"), of("BNotification")]),
            ),
        ]
    };
    let mut old = others();
    old.push(define(
        "ClientNotification",
        one_of(&[of("ANotification"), of("BNotification")]),
    ));
    let mut new = others();
    new.push(message("ClientNotification", "a"));
    assert_eq!(
        changes_between(old, new),
        [" variant-removed breaking to write"]
    );
}

#[test]
fn fewer_constraints_accept_more_values() {
    let lines = changes_between(
        vec![define(
            "Schema",
            Shape::Document(vec![optional_member("required", strings(None))]),
        )],
        vec![define(
            "Schema",
            Shape::Document(vec![optional_member("type", string())]),
        )],
    );
    assert_eq!(
        lines,
        [
            "required member-removed breaking to read",
            "type member-added additive"
        ]
    );
}
