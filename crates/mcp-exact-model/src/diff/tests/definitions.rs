//! Tests of differences between definitions and methods: names, locations, notes.

use super::*;

/// Definitions with similar names and equal discriminants are reported as renamed.
#[test]
fn equal_discriminants_indicate_renames() {
    let resource_reference = |format: &str| {
        let uri = Type::String(Text::of_format(format));
        Shape::Struct(vec![
            constant("type", "ref/resource"),
            required_member("uri", uri),
        ])
    };
    let diff = compare(
        vec![
            definition("Ref", union(&[reference("ResourceReference")])),
            definition("ResourceReference", resource_reference("uri")),
        ],
        vec![
            definition("Ref", union(&[reference("ResourceTemplateReference")])),
            definition(
                "ResourceTemplateReference",
                resource_reference("uri-template"),
            ),
        ],
    );
    let [renamed] = diff.definitions.as_slice() else {
        panic!("{:#?}", diff.definitions)
    };
    assert_eq!(renamed.status, Status::Renamed);
    assert_eq!(renamed.before.as_deref(), Some("ResourceReference"));
    assert_eq!(
        change_lines(renamed),
        ["uri format breaking to read and write"]
    );
}

/// Definitions with different discriminants, or with dissimilar names, are not reported as renamed.
#[test]
fn changed_discriminants_are_not_renames() {
    let block = |name: &str, kind: &str| {
        definition(
            name,
            Shape::Struct(vec![
                constant("type", kind),
                required_member("data", string()),
            ]),
        )
    };
    for (old, new) in [
        (
            block("ImageContent", "image"),
            block("AudioContent", "audio"),
        ),
        (block("Picture", "image"), block("ImageContent", "image")),
    ] {
        let diff = compare(vec![old], vec![new]);
        let statuses: Vec<Status> = diff.definitions.iter().map(|d| d.status).collect();
        assert!(!statuses.contains(&Status::Renamed), "{statuses:?}");
    }
}

/// A name with a new meaning is reported in a note, together with the new name of its old meaning.
#[test]
fn names_can_be_reused() {
    let response = || {
        Shape::Struct(vec![
            constant("jsonrpc", "2.0"),
            required_member("result", string()),
        ])
    };
    let message = |name: &str| definition("Message", union(&[reference(name)]));
    let either = definition("Response", union(&[reference("ResultResponse"), string()]));
    let diff = compare(
        vec![definition("Response", response()), message("Response")],
        vec![
            definition("ResultResponse", response()),
            either,
            message("ResultResponse"),
        ],
    );
    let statuses: Vec<_> = diff
        .definitions
        .iter()
        .map(|d| (d.name.as_str(), d.status))
        .collect();
    assert_eq!(
        statuses,
        [
            ("Response", Status::Added),
            ("ResultResponse", Status::Renamed)
        ]
    );
    let reused = Note::NameReused {
        name: "Response".into(),
        before: "ResultResponse".into(),
    };
    assert_eq!(diff.notes, [reused]);
}

/// An anonymous type that has a name in the newer revision is reported as named, with its former locations.
#[test]
fn anonymous_types_become_named() {
    let holder = |name| {
        definition(
            name,
            Shape::Struct(vec![required_member("params", reference("CallParams"))]),
        )
    };
    let old = Shape::Struct(vec![required_member("name", string())]);
    let new = Shape::Struct(vec![
        required_member("name", string()),
        optional_member("task", string()),
    ]);
    let diff = compare(
        vec![
            holder("Call"),
            holder("Send"),
            anonymous_definition("CallParams", old),
        ],
        vec![
            holder("Call"),
            holder("Send"),
            definition("CallParams", new),
        ],
    );
    let [named] = diff.definitions.as_slice() else {
        panic!("{:#?}", diff.definitions)
    };
    assert_eq!(
        (named.name.as_str(), named.status),
        ("CallParams", Status::Named)
    );
    assert_eq!(named.before.as_deref(), Some("Call.params, Send.params"));
    assert_eq!(change_lines(named), ["task member-added additive"]);
}

/// A definition that has become anonymous is reported as unnamed, not as removed.
#[test]
fn unnamed_types_are_not_removed() {
    let call = || {
        definition(
            "Call",
            Shape::Struct(vec![required_member("params", reference("CallParams"))]),
        )
    };
    let params = || Shape::Struct(vec![required_member("name", string())]);
    let diff = compare(
        vec![call(), definition("CallParams", params())],
        vec![call(), anonymous_definition("CallParams", params())],
    );
    assert_eq!(diff.definitions[0].status, Status::Unnamed);
    assert_eq!(diff.definitions.len(), 1);
}

/// The changes of an anonymous type that occurs several times are listed once, with its other locations.
#[test]
fn anonymous_types_are_listed_once() {
    let capabilities = |name: &str, inner: &str| {
        definition(
            name,
            Shape::Struct(vec![optional_member("tools", reference(inner))]),
        )
    };
    let old = Shape::Struct(vec![optional_member("listChanged", Type::Boolean)]);
    let new = Shape::Struct(vec![]);
    let diff = compare(
        vec![
            capabilities("A", "ATools"),
            capabilities("B", "ATools"),
            anonymous_definition("ATools", old),
        ],
        vec![
            capabilities("A", "BTools"),
            capabilities("B", "BTools"),
            anonymous_definition("BTools", new),
        ],
    );
    let [only] = diff.definitions.as_slice() else {
        panic!("{:#?}", diff.definitions)
    };
    assert_eq!(
        change_lines(only),
        ["tools.listChanged member-removed breaking to write"]
    );
    assert_eq!(only.changes[0].also, ["B.tools"]);
}

/// An untyped object whose members are described in the newer revision gains these members.
#[test]
fn described_untyped_objects_gain_members() {
    let lines = changes_between(
        vec![definition(
            "T",
            Shape::Struct(vec![optional_member("sampling", Type::JsonObject)]),
        )],
        vec![
            definition(
                "T",
                Shape::Struct(vec![optional_member("sampling", reference("TSampling"))]),
            ),
            anonymous_definition(
                "TSampling",
                Shape::Struct(vec![optional_member("tools", Type::JsonObject)]),
            ),
        ],
    );
    assert_eq!(lines, ["sampling.tools member-added additive"]);
}

/// A type that is replaced by an alias of the same type has not changed.
#[test]
fn aliases_of_equal_types_are_unchanged() {
    let cursor = || definition("Cursor", Shape::Alias(string()));
    let page =
        |value: Type| definition("Page", Shape::Struct(vec![optional_member("next", value)]));
    let diff = compare(
        vec![cursor(), page(string())],
        vec![cursor(), page(reference("Cursor"))],
    );
    assert!(diff.is_empty(), "{diff:#?}");
}

/// Members of the envelope that many definitions gain are reported as one note.
#[test]
fn envelope_changes_are_one_note() {
    let ping = |members: Vec<Member>| definition("PingRequest", Shape::Struct(members));
    let bare = || constant("method", "ping");
    let diff = compare(
        vec![ping(vec![bare()])],
        vec![ping(vec![
            required_member("id", string()),
            constant("jsonrpc", "2.0"),
            bare(),
        ])],
    );
    assert!(diff.definitions.is_empty(), "{:#?}", diff.definitions);
    let [
        Note::Envelope {
            gained: true,
            members,
            definitions,
        },
    ] = diff.notes.as_slice()
    else {
        panic!("{:#?}", diff.notes)
    };
    assert_eq!(members, &["id", "jsonrpc"]);
    assert_eq!(definitions, &["PingRequest"]);
}

/// The removal of a definition is neutral if no definition refers to it.
#[test]
fn removing_unused_definitions_is_neutral() {
    let base = definition("Base", Shape::Struct(vec![optional_member("a", string())]));
    let diff = compare(vec![base], Vec::new());
    assert_eq!(diff.definitions[0].status, Status::Removed);
    assert_eq!(diff.definitions[0].compatibility, Compatibility::Neutral);
}

/// Added, removed and changed methods are listed with their consequences.
#[test]
fn method_changes_are_listed() {
    let carried = |method: Method| {
        let name = method.definition.clone();
        (
            definition(
                &name,
                Shape::Struct(vec![constant("method", &method.method)]),
            ),
            method,
        )
    };
    let revision = |id: &str, methods: Vec<Method>| {
        let (definitions, methods) = methods.into_iter().map(carried).unzip();
        ir(id, definitions, methods)
    };
    let list = request("list", "ListRequest");
    let both = Method {
        from_server: true,
        ..list.clone()
    };
    let strict = Method {
        params_required: true,
        ..both.clone()
    };
    let old = revision("1", vec![request("initialize", "InitializeRequest"), list]);
    let new = revision("2", vec![request("discover", "DiscoverRequest"), strict]);
    let diff = diff(&old, &new);
    let methods: Vec<_> = diff
        .methods
        .iter()
        .map(|method| (method.method.as_str(), method.status, method.compatibility))
        .collect();
    assert_eq!(
        methods,
        [
            ("discover", Status::Added, Compatibility::Additive),
            ("initialize", Status::Removed, Compatibility::BreaksWriting),
            ("list", Status::Changed, Compatibility::BreaksWriting),
        ]
    );
    let compatibilities: Vec<Compatibility> = diff.methods[2]
        .changes
        .iter()
        .map(|c| c.compatibility)
        .collect();
    assert_eq!(
        compatibilities,
        [Compatibility::Additive, Compatibility::BreaksWriting]
    );
}

/// Changed descriptions are counted by [`diff`], and listed by [`diff_with_descriptions`].
#[test]
fn rewordings_are_counted_and_listed() {
    let tool = |text: &str| Definition {
        description: Some(text.into()),
        ..definition(
            "Tool",
            Shape::Struct(vec![required_member("name", string())]),
        )
    };
    let old = ir("1", vec![tool("a tool")], Vec::new());
    let new = ir("2", vec![tool("a better tool")], Vec::new());
    let brief = diff(&old, &new);
    assert!(brief.is_empty());
    assert_eq!((brief.descriptions, brief.rewordings.len()), (1, 0));
    let full = diff_with_descriptions(&old, &new);
    assert_eq!(full.rewordings[0].after.as_deref(), Some("a better tool"));
}

/// The comparison of types that contain themselves ends; renamed recursive types are equal.
#[test]
fn recursive_types_are_compared() {
    let node = |name: &str| {
        let next = Type::Nullable(Box::new(reference(name)));
        definition(
            name,
            Shape::Struct(vec![
                required_member("next", next),
                required_member("value", string()),
            ]),
        )
    };
    let user = |name: &str| {
        definition(
            "User",
            Shape::Struct(vec![required_member("node", reference(name))]),
        )
    };
    let diff = compare(
        vec![node("Node"), user("Node")],
        vec![node("Link"), user("Link")],
    );
    assert!(diff.definitions.iter().all(|d| d.status != Status::Changed));
}

/// A difference is equal after it was written as JSON and parsed.
#[test]
fn json_round_trips() {
    let old = ir(
        "1",
        vec![definition("L", values(&["a"]))],
        vec![request("x", "X")],
    );
    let new = ir("2", vec![definition("L", values(&["b"]))], Vec::new());
    let diff = diff(&old, &new);
    let json = crate::render::json(&diff).expect("plain data");
    assert_eq!(serde_json::from_str::<Diff>(&json).expect("the same"), diff);
}
