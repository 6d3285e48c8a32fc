//! Tests of the table of revisions for small intermediate representations: order, lifecycle, methods, and refusals.

use expect_test::{Expect, expect};

use super::*;
use crate::ir::Method;

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
    let found = match revision_table(&rows) {
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
    let files = revision_table(&[row]).expect("a table");
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
