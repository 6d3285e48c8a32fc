//! Tests with small hand-written revisions: each kind of change, its location in the report, and its consequence.

mod definitions;

use super::*;
use crate::ir::{Bounds, Definition, Ir, Member, MemberValue, Method, Shape, Text, Type};

/// Creates a revision; the definitions need not be sorted.
fn ir(revision: &str, mut definitions: Vec<Definition>, methods: Vec<Method>) -> Ir {
    definitions.sort_by(|x, y| x.name.cmp(&y.name));
    Ir {
        revision: revision.into(),
        definitions,
        methods,
    }
}

/// Creates an official definition.
fn definition(name: &str, shape: Shape) -> Definition {
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
fn anonymous_definition(name: &str, shape: Shape) -> Definition {
    Definition {
        official: false,
        ..definition(name, shape)
    }
}

/// Creates a required member.
fn member(name: &str, value: MemberValue) -> Member {
    Member {
        name: name.into(),
        required: true,
        description: None,
        value,
    }
}

/// Creates a required member with a value of a type.
fn required_member(name: &str, value: Type) -> Member {
    member(name, MemberValue::Type(value))
}

/// Creates an optional member with a value of a type.
fn optional_member(name: &str, value: Type) -> Member {
    Member {
        required: false,
        ..required_member(name, value)
    }
}

/// Creates a member with a constant string.
fn constant(name: &str, value: &str) -> Member {
    member(name, MemberValue::ConstString(value.into()))
}

/// Creates a reference to a definition.
fn reference(name: &str) -> Type {
    Type::Ref { name: name.into() }
}

/// Returns the type of any string.
fn string() -> Type {
    Type::TEXT
}

/// Returns the type of an integer with bounds.
fn integer(minimum: Option<i64>, maximum: Option<i64>) -> Type {
    Type::Integer(Bounds { minimum, maximum })
}

/// Creates an array of strings.
fn string_array(max_items: Option<u64>) -> Type {
    Type::Array {
        items: Box::new(string()),
        min_items: None,
        max_items,
    }
}

/// Creates a union of types.
fn union(values: &[Type]) -> Shape {
    Shape::Union(values.to_vec())
}

/// Creates an enum.
fn values(values: &[&str]) -> Shape {
    Shape::Enum(values.iter().map(|value| (*value).to_owned()).collect())
}

/// Creates a request that clients send, without params.
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

/// Compares two revisions without methods.
fn compare(old: Vec<Definition>, new: Vec<Definition>) -> Diff {
    diff(&ir("1", old, Vec::new()), &ir("2", new, Vec::new()))
}

/// Returns the changes of the only changed definition, one line each.
fn changes_between(old: Vec<Definition>, new: Vec<Definition>) -> Vec<String> {
    let diff = compare(old, new);
    assert_eq!(diff.definitions.len(), 1, "{:#?}", diff.definitions);
    change_lines(&diff.definitions[0])
}

/// Returns path, kind and consequence of each change of a definition, one line each.
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

/// Returns the changes between two objects, one line each.
fn object_changes(old: Vec<Member>, new: Vec<Member>) -> Vec<String> {
    changes_between(
        vec![definition("T", Shape::Struct(old))],
        vec![definition("T", Shape::Struct(new))],
    )
}

#[test]
fn equal_revisions_have_no_differences() {
    let tool = || {
        definition(
            "Tool",
            Shape::Struct(vec![required_member("name", string())]),
        )
    };
    assert!(compare(vec![tool()], vec![tool()]).is_empty());
}

/// An added member is additive if it is optional, and breaking to write if it is required.
#[test]
fn optional_added_members_are_additive() {
    let lines = object_changes(
        vec![required_member("a", string())],
        vec![
            required_member("a", string()),
            optional_member("b", string()),
            required_member("c", string()),
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

/// The removal of a member is breaking to write; the removal of a required member is also breaking to read.
#[test]
fn removed_required_members_break_readers() {
    let lines = object_changes(
        vec![
            required_member("a", string()),
            optional_member("b", string()),
            required_member("c", string()),
        ],
        vec![required_member("a", string())],
    );
    assert_eq!(
        lines,
        [
            "b member-removed breaking to write",
            "c member-removed breaking to read and write"
        ]
    );
}

/// A member that becomes optional is breaking to read, and a member that becomes required is breaking to write.
#[test]
fn changed_presence_breaks_one_side() {
    let lines = object_changes(
        vec![
            required_member("a", string()),
            optional_member("b", string()),
        ],
        vec![
            optional_member("a", string()),
            required_member("b", string()),
        ],
    );
    assert_eq!(
        lines,
        [
            "a member-optional breaking to read",
            "b member-required breaking to write"
        ]
    );
}

/// A type that accepts more values is breaking to read, and a type that accepts fewer values is breaking to write.
#[test]
fn wider_types_break_readers_only() {
    let number = || Type::Number(Bounds::default());
    let whole = || integer(None, None);
    let lines = object_changes(
        vec![
            required_member("a", whole()),
            required_member("b", number()),
            required_member("c", string()),
            required_member("d", Type::JsonObject),
        ],
        vec![
            required_member("a", number()),
            required_member("b", whole()),
            required_member("c", Type::Boolean),
            required_member("d", Type::Json),
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

/// A type that also accepts null is wider than the type without null.
#[test]
fn nullable_types_are_wider() {
    let lines = object_changes(
        vec![required_member("a", string())],
        vec![required_member("a", Type::Nullable(Box::new(string())))],
    );
    assert_eq!(lines, ["a retyped breaking to read"]);
}

/// Wider bounds or formats are breaking to read, and narrower ones are breaking to write.
#[test]
fn bounds_and_formats_change_compatibility() {
    let uri = Type::String(Text::of_format("uri"));
    let lines = object_changes(
        vec![
            required_member("a", integer(Some(0), None)),
            required_member("b", string_array(None)),
            required_member("c", string()),
        ],
        vec![
            required_member("a", integer(None, None)),
            required_member("b", string_array(Some(100))),
            required_member("c", uri),
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
fn changed_constants_break_both_sides() {
    let lines = object_changes(vec![constant("type", "a")], vec![constant("type", "b")]);
    assert_eq!(lines, ["type constant breaking to read and write"]);
}

#[test]
fn constants_are_narrower_than_strings() {
    let lines = object_changes(
        vec![required_member("type", string())],
        vec![constant("type", "b")],
    );
    assert_eq!(lines, ["type retyped breaking to write"]);
}

/// An added enum value is breaking to read, and a removed one is breaking to write.
#[test]
fn added_enum_values_break_readers() {
    let lines = changes_between(
        vec![definition("Level", values(&["high", "low"]))],
        vec![definition("Level", values(&["low", "none"]))],
    );
    assert_eq!(
        lines,
        [
            " value-added breaking to read",
            " value-removed breaking to write"
        ]
    );
}

/// A new variant of a union is breaking to read, unless an older variant already accepts its values.
#[test]
fn added_variants_break_readers() {
    let text = || definition("Text", Shape::Struct(vec![constant("type", "text")]));
    let image = || definition("Image", Shape::Struct(vec![constant("type", "image")]));
    let audio = || definition("Audio", Shape::Struct(vec![constant("type", "audio")]));
    let lines = changes_between(
        vec![
            text(),
            image(),
            audio(),
            definition("Block", union(&[reference("Text"), reference("Image")])),
        ],
        vec![
            text(),
            image(),
            audio(),
            definition("Block", union(&[reference("Text"), reference("Audio")])),
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

/// A request that is added to the union of all client requests is additive.
#[test]
fn new_client_requests_are_additive() {
    let ping = || {
        definition(
            "PingRequest",
            Shape::Struct(vec![constant("method", "ping")]),
        )
    };
    let list = || {
        definition(
            "ListRequest",
            Shape::Struct(vec![constant("method", "list")]),
        )
    };
    let requests = |values: &[Type]| definition("ClientRequest", union(values));
    let lines = changes_between(
        vec![ping(), list(), requests(&[reference("PingRequest")])],
        vec![
            ping(),
            list(),
            requests(&[reference("PingRequest"), reference("ListRequest")]),
        ],
    );
    assert_eq!(lines, [" variant-added additive"]);
}

/// A union of one variant is compared like the variant itself.
#[test]
fn single_variant_union_equals_its_type() {
    let message = |name: &str, method: &str| {
        definition(name, Shape::Struct(vec![constant("method", method)]))
    };
    let others = || {
        vec![
            message("ANotification", "a"),
            message("BNotification", "b"),
            definition(
                "ServerNotification",
                union(&[reference("ANotification"), reference("BNotification")]),
            ),
        ]
    };
    let mut old = others();
    old.push(definition(
        "ClientNotification",
        union(&[reference("ANotification"), reference("BNotification")]),
    ));
    let mut new = others();
    new.push(message("ClientNotification", "a"));
    assert_eq!(
        changes_between(old, new),
        [" variant-removed breaking to write"]
    );
}

/// A member of a JSON Schema document that is no longer described is breaking to read, because it may have any value.
#[test]
fn fewer_constraints_break_readers() {
    let lines = changes_between(
        vec![definition(
            "Schema",
            Shape::Document(vec![optional_member("required", string_array(None))]),
        )],
        vec![definition(
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
