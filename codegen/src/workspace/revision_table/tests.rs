//! Tests of the table of revisions for small intermediate representations: order, lifecycle, methods, and refusals.

use expect_test::{Expect, expect};

use super::*;
use crate::ir::{Definition, Member, MemberValue, Method, Shape, Type};

/// Creates an entry of the list of revisions.
fn revision(id: &str, status: &str) -> Revision {
    Revision {
        id: id.into(),
        status: status.into(),
        sha256: String::new(),
    }
}

/// Creates a method.
fn method(name: &str, request: bool, from_client: bool, from_server: bool) -> Method {
    Method {
        method: name.into(),
        definition: "Message".into(),
        request,
        params: None,
        params_required: false,
        result: None,
        outcomes: Vec::new(),
        from_client,
        from_server,
    }
}

/// Creates an intermediate representation with these methods and without definitions.
fn ir(id: &str, methods: Vec<Method>) -> Ir {
    Ir {
        revision: id.into(),
        definitions: Vec::new(),
        methods,
    }
}

/// Creates facts in which every listed property has its assumed value.
fn facts(id: &str, lifecycle: Lifecycle) -> RevisionFacts {
    RevisionFacts::new(id, lifecycle, &assumed_properties(&[], 0, lifecycle))
}

/// Compares the error for a table of two revisions that both define `initialize`.
fn check(first: (&str, &str), second: (&str, &str), lifecycle: Lifecycle, expected: Expect) {
    let revisions = [revision(first.0, first.1), revision(second.0, second.1)];
    let irs = revisions
        .each_ref()
        .map(|revision| ir(&revision.id, vec![method("initialize", true, true, false)]));
    let facts = revisions
        .each_ref()
        .map(|revision| facts(&revision.id, lifecycle));
    let rows: Vec<RevisionRow<'_>> = revisions
        .iter()
        .zip(irs.iter().zip(&facts))
        .map(|(revision, (ir, facts))| RevisionRow {
            revision,
            ir,
            facts,
        })
        .collect();
    let found = match revision_table(&rows, &[]) {
        Ok(_) => "accepted".to_owned(),
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&found);
}

#[test]
fn misordered_releases_are_refused() {
    check(
        ("2025-01-01", "release"),
        ("2024-01-01", "release"),
        Lifecycle::Initialize,
        expect![
            "2025-01-01: it stands before 2024-01-01 in schema/revisions.toml; list releases oldest first, and drafts after them"
        ],
    );
}

#[test]
fn releases_after_drafts_are_refused() {
    check(
        ("draft", "draft"),
        ("2024-01-01", "release"),
        Lifecycle::Initialize,
        expect![
            "draft: it stands before 2024-01-01 in schema/revisions.toml; list releases oldest first, and drafts after them"
        ],
    );
    check(
        ("2025-01-01", "release"),
        ("2024-draft", "draft"),
        Lifecycle::Initialize,
        expect!["accepted"],
    );
}

#[test]
fn contradictory_lifecycle_is_refused() {
    check(
        ("2024-01-01", "release"),
        ("2025-01-01", "release"),
        Lifecycle::Discover,
        expect![
            "2024-01-01: its lifecycle is `discover`, but no client request is `server/discover`; correct lifecycle in schema/revisions.toml; if it is another lifecycle, the generator and the session have to learn it first"
        ],
    );
}

#[test]
fn methods_are_sorted_and_unique() {
    let methods = vec![
        method("notifications/b", false, true, true),
        method("initialize", true, true, false),
        method("notifications/a", false, true, false),
        method("notifications/b", false, true, false),
        method("embedded", true, false, false),
    ];
    let (revision, ir) = (revision("a", "draft"), ir("a", methods));
    let facts = facts("a", Lifecycle::Initialize);
    let row = RevisionRow {
        revision: &revision,
        ir: &ir,
        facts: &facts,
    };
    let files = revision_table(&[row], &[]).expect("a table");
    let table = &files[&format!("{FOLDER}/table.rs")];
    let start = table.find("        revision:").expect("a row");
    let end = table.find("        properties:").expect("its properties");
    expect![[r#"
        revision: Revision::new("a"),
        index: 0,
        status: Status::Draft,
        lifecycle: Lifecycle::Initialize,
        client: Methods {
            requests: &["initialize"],
            notifications: &["notifications/a", "notifications/b"],
        },
        server: Methods {
            requests: &[],
            notifications: &["notifications/b"],
        },
    "#]]
    .assert_eq(&table[start..end].replace("\n        ", "\n").split_off(8));
}

/// Creates methods with a page of a list, with a name, and with names that are similar.
fn ir_with_facts() -> Ir {
    let member = |name: &str, value| Member {
        name: name.into(),
        required: true,
        description: None,
        value: MemberValue::Type(value),
    };
    let object = |name: &str, members| Definition {
        name: name.into(),
        official: true,
        pointers: Vec::new(),
        description: None,
        closed: false,
        shape: Shape::Struct(members),
    };
    let items = Type::Array {
        items: Box::new(Type::TEXT),
        min_items: None,
        max_items: None,
    };
    let page = vec![
        member("items", items),
        member("nextCursor", Type::TEXT),
        member("ttlMs", Type::TEXT),
        member("cacheScope", Type::TEXT),
    ];
    let params = vec![member("name", Type::TEXT)];
    let mut list = method("items/list", true, true, false);
    list.result = Some("Page".into());
    let mut get = method("items/getOne", true, true, false);
    get.params = Some(Type::Ref {
        name: "Params".into(),
    });
    let plain = ["vendor", "x/AB", "x/Ab"].map(|name| method(name, false, true, true));
    let mut ir = ir("a", [list, get].into_iter().chain(plain).collect());
    ir.definitions = vec![object("Page", page), object("Params", params)];
    ir
}

/// The facts of a method are those of its params and results; names that differ in case only have distinct constants.
#[test]
fn methods_become_values() {
    let ir = ir_with_facts();
    let file = format("a", "", method_ids::emit_method_ids(&[&ir], &[])).expect("Rust");
    let code = file.lines().map(str::trim_start);
    let code = code.filter(|line| !line.starts_with("//"));
    let code: Vec<&str> = code.filter(|line| !["", "}"].contains(line)).collect();
    expect![[r##"
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum MethodId {
        ItemsGetOne,
        ItemsList,
        VendorMethod,
        XSlashAb_x_u2f_AB,
        XSlashAb_x_u2f_Ab,
        Vendor,
        impl MethodId {
        pub const COUNT: usize = 6;
        pub const KNOWN: &[Self] = &[
        Self::ItemsGetOne,
        Self::ItemsList,
        Self::VendorMethod,
        Self::XSlashAb_x_u2f_AB,
        Self::XSlashAb_x_u2f_Ab,
        ];
        pub fn from_name(name: &str) -> Self {
        match name.len() {
        4 => {
        match name {
        "x/AB" => Self::XSlashAb_x_u2f_AB,
        "x/Ab" => Self::XSlashAb_x_u2f_Ab,
        _ => Self::Vendor,
        6 => {
        match name {
        "vendor" => Self::VendorMethod,
        _ => Self::Vendor,
        10 => {
        match name {
        "items/list" => Self::ItemsList,
        _ => Self::Vendor,
        12 => {
        match name {
        "items/getOne" => Self::ItemsGetOne,
        _ => Self::Vendor,
        _ => Self::Vendor,
        #[inline]
        pub const fn name(self) -> Option<&'static str> {
        Some(
        match self {
        Self::ItemsGetOne => "items/getOne",
        Self::ItemsList => "items/list",
        Self::VendorMethod => "vendor",
        Self::XSlashAb_x_u2f_AB => "x/AB",
        Self::XSlashAb_x_u2f_Ab => "x/Ab",
        Self::Vendor => return None,
        },
        )
        #[inline]
        pub const fn index(self) -> usize {
        self as usize
        pub const fn list_member(self) -> Option<&'static str> {
        match self {
        Self::ItemsList => Some("items"),
        _ => None,
        pub const fn target_param(self) -> Option<&'static str> {
        match self {
        Self::ItemsGetOne => Some("name"),
        _ => None,
        pub const fn is_cached(self) -> bool {
        matches!(self, Self::ItemsList)
        pub const fn may_require_input(self) -> bool {
        false
        pub mod method {
        pub const ITEMS_GET_ONE: &str = "items/getOne";
        pub const ITEMS_LIST: &str = "items/list";
        pub const VENDOR_METHOD: &str = "vendor";
        pub const METHOD_782F4142: &str = "x/AB";
        pub const METHOD_782F4162: &str = "x/Ab";"##]]
    .assert_eq(&code.join("\n"));
}

#[test]
fn statics_have_upper_case_names() {
    for (id, name) in [
        ("2025-06-18", "V2025_06_18"),
        ("draft-next", "VDRAFT_NEXT"),
        ("2027-01-01-rc1", "V2027_01_01_RC1"),
    ] {
        assert_eq!(static_name(id), name);
    }
}

#[test]
fn changed_properties_are_listed() {
    let irs = [
        vec![method("ping", true, true, true)],
        vec![method("ping", true, true, false)],
    ]
    .map(|methods| ir("", methods));
    let (older, newer) = (revision("a", "release"), revision("b", "release"));
    let mut facts = [
        facts("a", Lifecycle::Initialize),
        facts("b", Lifecycle::Initialize),
    ];
    let row = |revision, ir, facts| RevisionRow {
        revision,
        ir,
        facts,
    };
    facts[1]
        .properties
        .insert("resource_not_found_code".into(), PropertyValue::Code(-1));
    let changes = property_changes(
        row(&older, &irs[0], &facts[0]),
        row(&newer, &irs[1], &facts[1]),
    );
    let expected = [
        "`has_server_requests`: false, in a true",
        "`resource_not_found_code`: -1, in a -32002",
    ];
    assert_eq!(changes.expect("values"), expected);
}
