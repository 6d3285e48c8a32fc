//! Tests of differences between definitions and methods: names, locations, notes.

use super::*;

#[test]
fn a_similar_name_with_the_same_discriminant_is_a_rename() {
    let reference = |format: &str| {
        let uri = Type::String(Text::of_format(format));
        Shape::Struct(vec![constant("type", "ref/resource"), has("uri", uri)])
    };
    let diff = compare(
        vec![
            define("Ref", one_of(&[of("ResourceReference")])),
            define("ResourceReference", reference("uri")),
        ],
        vec![
            define("Ref", one_of(&[of("ResourceTemplateReference")])),
            define("ResourceTemplateReference", reference("uri-template")),
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

#[test]
fn changed_discriminants_are_not_renames() {
    let block = |name: &str, kind: &str| {
        define(
            name,
            Shape::Struct(vec![constant("type", kind), has("data", string())]),
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

#[test]
fn names_can_be_reused() {
    let response = || Shape::Struct(vec![constant("jsonrpc", "2.0"), has("result", string())]);
    let message = |name: &str| define("Message", one_of(&[of(name)]));
    let either = define("Response", one_of(&[of("ResultResponse"), string()]));
    let diff = compare(
        vec![define("Response", response()), message("Response")],
        vec![
            define("ResultResponse", response()),
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

#[test]
fn what_stood_without_a_name_is_named_not_added() {
    let call = || define("Call", Shape::Struct(vec![has("params", of("CallParams"))]));
    let old = Shape::Struct(vec![has("name", string())]);
    let new = Shape::Struct(vec![
        has("name", string()),
        optional_member("task", string()),
    ]);
    let diff = compare(
        vec![call(), lifted("CallParams", old)],
        vec![call(), define("CallParams", new)],
    );
    let [named] = diff.definitions.as_slice() else {
        panic!("{:#?}", diff.definitions)
    };
    assert_eq!(
        (named.name.as_str(), named.status),
        ("CallParams", Status::Named)
    );
    assert_eq!(named.before.as_deref(), Some("Call.params"));
    assert_eq!(change_lines(named), ["task member-added additive"]);
}

#[test]
fn what_loses_its_name_is_not_removed() {
    let call = || define("Call", Shape::Struct(vec![has("params", of("CallParams"))]));
    let params = || Shape::Struct(vec![has("name", string())]);
    let diff = compare(
        vec![call(), define("CallParams", params())],
        vec![call(), lifted("CallParams", params())],
    );
    assert_eq!(diff.definitions[0].status, Status::Unnamed);
    assert_eq!(diff.definitions.len(), 1);
}

#[test]
fn anonymous_types_are_listed_once() {
    let capabilities = |name: &str, inner: &str| {
        define(
            name,
            Shape::Struct(vec![optional_member("tools", of(inner))]),
        )
    };
    let old = Shape::Struct(vec![optional_member("listChanged", Type::Boolean)]);
    let new = Shape::Struct(vec![]);
    let diff = compare(
        vec![
            capabilities("A", "ATools"),
            capabilities("B", "ATools"),
            lifted("ATools", old),
        ],
        vec![
            capabilities("A", "BTools"),
            capabilities("B", "BTools"),
            lifted("BTools", new),
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

#[test]
fn an_open_object_that_is_described_gains_members() {
    let lines = changes_between(
        vec![define(
            "T",
            Shape::Struct(vec![optional_member("sampling", Type::JsonObject)]),
        )],
        vec![
            define(
                "T",
                Shape::Struct(vec![optional_member("sampling", of("TSampling"))]),
            ),
            lifted(
                "TSampling",
                Shape::Struct(vec![optional_member("tools", Type::JsonObject)]),
            ),
        ],
    );
    assert_eq!(lines, ["sampling.tools member-added additive"]);
}

#[test]
fn renamed_anonymous_types_are_unchanged() {
    let cursor = || define("Cursor", Shape::Alias(string()));
    let page = |value: Type| define("Page", Shape::Struct(vec![optional_member("next", value)]));
    let diff = compare(
        vec![cursor(), page(string())],
        vec![cursor(), page(of("Cursor"))],
    );
    assert!(diff.is_empty(), "{diff:#?}");
}

#[test]
fn the_envelope_is_one_note() {
    let ping = |members: Vec<Member>| define("PingRequest", Shape::Struct(members));
    let bare = || constant("method", "ping");
    let diff = compare(
        vec![ping(vec![bare()])],
        vec![ping(vec![
            has("id", string()),
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

#[test]
fn removing_unused_definitions_is_neutral() {
    let base = define("Base", Shape::Struct(vec![optional_member("a", string())]));
    let diff = compare(vec![base], Vec::new());
    assert_eq!(diff.definitions[0].status, Status::Removed);
    assert_eq!(diff.definitions[0].compatibility, Compatibility::Neutral);
}

#[test]
fn methods_are_added_removed_and_reversed() {
    let carried = |method: Method| {
        let name = method.definition.clone();
        (
            define(
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

#[test]
fn reworded_descriptions_are_counted_and_listed_when_asked_for() {
    let tool = |text: &str| Definition {
        description: Some(text.into()),
        ..define("Tool", Shape::Struct(vec![has("name", string())]))
    };
    let old = ir("1", vec![tool("a tool")], Vec::new());
    let new = ir("2", vec![tool("a better tool")], Vec::new());
    let brief = diff(&old, &new);
    assert!(brief.is_empty());
    assert_eq!((brief.descriptions, brief.rewordings.len()), (1, 0));
    let full = diff_with_descriptions(&old, &new);
    assert_eq!(full.rewordings[0].after.as_deref(), Some("a better tool"));
}

#[test]
fn recursion_ends() {
    let node = |name: &str| {
        let next = Type::Nullable(Box::new(of(name)));
        define(
            name,
            Shape::Struct(vec![has("next", next), has("value", string())]),
        )
    };
    let user = |name: &str| define("User", Shape::Struct(vec![has("node", of(name))]));
    let diff = compare(
        vec![node("Node"), user("Node")],
        vec![node("Link"), user("Link")],
    );
    assert!(diff.definitions.iter().all(|d| d.status != Status::Changed));
}

#[test]
fn json_comes_back() {
    let old = ir(
        "1",
        vec![define("L", values(&["a"]))],
        vec![request("x", "X")],
    );
    let new = ir("2", vec![define("L", values(&["b"]))], Vec::new());
    let diff = diff(&old, &new);
    let json = crate::render::json(&diff).expect("plain data");
    assert_eq!(serde_json::from_str::<Diff>(&json).expect("the same"), diff);
}
