//! Reports of `schema watch`: what of a draft is absorbed, and what a person has to decide. The crate of the draft is not built:
//! its review and its conversions are those that `schema add` makes before it builds.

use std::fs;
use std::sync::LazyLock;
use std::time::Duration;

use codegen::Revision;
use codegen::ir::RustIr;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use xtask::codegen::Schemas;
use xtask::rehearsal::newest_schema;
use xtask::schema::history::{CONVERSIONS_PAGE, REVISION, Trial};
use xtask::schema::review::Review;
use xtask::schema::watch::report::{Draft, Report};
use xtask::schema::watch::rules::{READ_DEFINITIONS, SESSION};
use xtask::schema::watch::{compare, released_models};
use xtask::workspace_root;

/// Returns the schemas of the workspace.
fn schemas() -> Schemas {
    Schemas::read(&workspace_root().join("schema")).expect("the schemas")
}

/// Intermediate representations of the released revisions.
static MODELS: LazyLock<Vec<RustIr>> =
    LazyLock::new(|| released_models(&schemas()).expect("the models"));

/// Returns the report about a file with these bytes.
fn report(bytes: &[u8]) -> Report {
    let mut schemas = schemas();
    let draft = Draft {
        place: "draft.json".to_owned(),
        sha256: codegen::sha256(bytes),
    };
    let mut report = compare(&mut schemas, &MODELS, draft, bytes).expect("a report");
    if let Some(comparison) = report.comparison_mut() {
        comparison.set_trial(Ok(trial(&schemas, bytes)));
    }
    report
}

/// Returns what `schema add` finds out before it builds the crate.
fn trial(schemas: &Schemas, bytes: &[u8]) -> Trial {
    let revision = Revision {
        id: REVISION.to_owned(),
        status: "release".to_owned(),
        sha256: codegen::sha256(bytes),
    };
    let lowered = schemas.lower_bytes(&revision, bytes).expect("a schema");
    let newest = MODELS.last().expect("a release");
    // The entries of the table are about older revisions.
    let page = codegen::conversions(&[newest, &lowered.ir], "").expect("conversions");
    let place = schemas.revisions.len();
    Trial {
        time: Duration::ZERO,
        review: Review::new(schemas, &revision, bytes, &lowered, place).expect("a review"),
        conversions: page[CONVERSIONS_PAGE].clone(),
    }
}

/// Returns the newest schema with a change.
fn changed_schema(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut schema = newest_schema(&workspace_root()).expect("the newest schema");
    change(&mut schema["$defs"]);
    serde_json::to_vec(&schema).expect("JSON")
}

/// Compares the part of the report about a change between its first heading and the differences.
fn check(change: impl FnOnce(&mut Value), needs_person: bool, expected: &Expect) {
    let bytes = changed_schema(change);
    let report = report(&bytes);
    let text = report.markdown();
    let (_, text) = text.split_once("\n\n").expect("a heading");
    let (text, differences) = text.split_once("\n## Differences\n").expect("a section");
    expected.assert_eq(&text.replace(&codegen::sha256(&bytes), "…"));
    assert_eq!(report.needs_person(), needs_person);
    assert!(differences.contains("\n### "), "{differences}");
}

/// Returns the definition of a request without params.
fn request(method: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "id": {"$ref": "#/$defs/RequestId"},
            "jsonrpc": {"const": "2.0", "type": "string"},
            "method": {"const": method, "type": "string"},
            "params": {"$ref": "#/$defs/RequestParams"},
        },
        "required": ["id", "jsonrpc", "method", "params"],
    })
}

/// Adds a variant to a union.
fn add_variant(definitions: &mut Value, union: &str, variant: &str) {
    let variants = definitions[union]["anyOf"].as_array_mut();
    let reference = json!({"$ref": format!("#/$defs/{variant}")});
    variants.expect("a union").push(reference);
}

/// The definitions that the session reads by itself are those of the newest revision, and the named files read them.
#[test]
fn read_definitions_exist() {
    let newest = &MODELS.last().expect("a release").ir;
    for (definition, file) in READ_DEFINITIONS {
        assert!(newest.get(definition).is_some(), "{definition}");
        let path = workspace_root().join(SESSION).join(file);
        assert!(path.is_file(), "{}", path.display());
    }
}

/// Between revisions, the official draft has the bytes of the newest one: nothing is built, and nobody is called.
#[test]
fn released_bytes_are_nothing_new() {
    let schemas = schemas();
    let mut released = schemas.revisions.iter().filter(|one| !one.is_draft());
    let newest = released.next_back().expect("a release");
    let file = format!("schema/{}/schema.json", newest.id);
    let bytes = fs::read(workspace_root().join(file)).expect("a schema");
    let report = report(&bytes);
    let text = report.markdown();
    assert!(
        text.contains("Nothing is new: the draft has the bytes of"),
        "{text}"
    );
    assert!(!report.needs_person());
}

/// A draft with other descriptions has the same types and rules.
#[test]
fn other_descriptions_are_nothing_new() {
    let bytes = changed_schema(|of| of["Tool"]["description"] = json!("A thing to call."));
    let report = report(&bytes);
    assert!(
        report
            .markdown()
            .contains("in descriptions and the order of members alone")
    );
    assert!(!report.needs_person());
}

/// "An unknown keyword or shape stops the command with a JSON pointer" (CONTRIBUTING.md, "Add a revision"): a person teaches it to
/// the generator.
#[test]
fn refused_schemas_need_a_person() {
    let bytes = changed_schema(|of| of["Cursor"]["not"] = json!({"const": ""}));
    let report = report(&bytes);
    let text = report.markdown();
    assert!(text.contains("/$defs/Cursor/not"), "{text}");
    assert!(report.needs_person());
}

/// A new optional member costs nothing: types and conversions come from the schemas.
#[test]
fn optional_members_are_absorbed() {
    check(
        |of| of["Tool"]["properties"]["homepage"] = json!({"type": "string"}),
        false,
        &expect![[r#"
            Differences: 1 definition, 0 methods. `schema add` absorbs all of it.

            File: draft.json, sha256 `…`.

            ## Look at

            - the errata `elicit-result-number-2020-12`, `json-value-open`, `input-required-result-type` fit the draft, and are applied here; name the revision in their `revisions` where the defect is the same

            ## Absorbed

            - `schema add`: 155 definitions, 13 requests, 8 notifications; the types agree with the schema, and the conversions pass their tests (0 s)
            - the conversions 2026-07-28 ↔ draft: 180 types

            ## Conversions 2026-07-28 ↔ draft

            180 types are converted; 166 of them are identical all the way down, so that their text passes untouched.

            ### 2026-07-28 → draft

            Everything converts without loss.

            ### draft → 2026-07-28

            | type | part | | why |
            |---|---|---|---|
            | `Tool` | `homepage` | dropped | a member of draft and later; for a peer of 2026-07-28: it is not seen |
        "#]],
    );
}

/// "Tests fail only where a decision is required: if the rule table of the session has no row for a new method" (CONTRIBUTING.md, "Add
/// a revision"). The row says what the schema says of the results.
#[test]
fn new_methods_need_rows() {
    check(
        |of| {
            of["PollEventsRequest"] = request("events/poll");
            of["PollEventsResult"] = of["ListToolsResult"].clone();
            of["PollEventsResultResponse"] = of["ListToolsResultResponse"].clone();
            let result = json!({"anyOf": [
                {"$ref": "#/$defs/InputRequiredResult"}, {"$ref": "#/$defs/PollEventsResult"},
            ]});
            of["PollEventsResultResponse"]["properties"]["result"] = result;
            add_variant(of, "ClientRequest", "PollEventsRequest");
            add_variant(of, "ServerResult", "PollEventsResult");
            of["ServerCapabilities"]["properties"]["events"] =
                json!({"$ref": "#/$defs/JSONObject"});
        },
        true,
        &expect![[r#"
            Differences: 6 definitions, 1 method. **To decide or to write: 2 points.**

            File: draft.json, sha256 `…`.

            ## To decide or to write

            - **session**: no row for `events/poll`: add `request(Client, "events/poll").requiring_input().with_list_cache()` to `crates/mcp-exact-session/src/rules/table.rs`; no schema tells the capability of the receiver, the parameter that `Mcp-Name` mirrors, and whether the request may be repeated
            - **session**: `ServerCapabilities` differs at `events`: the session reads it in `crates/mcp-exact-session/src/rules/capability.rs`

            ## Look at

            - `ServerResult`: nothing tells `PollEvents` from the others
            - the errata `elicit-result-number-2020-12`, `json-value-open`, `input-required-result-type` fit the draft, and are applied here; name the revision in their `revisions` where the defect is the same

            ## Absorbed

            - `schema add`: 158 definitions, 14 requests, 8 notifications; the types agree with the schema, and the conversions pass their tests (0 s)
            - the conversions 2026-07-28 ↔ draft: 180 types
            - messages that one side does not know are refused: `ClientRequest.PollEvents`, `ServerResult.PollEvents`

            ## Conversions 2026-07-28 ↔ draft

            180 types are converted; 175 of them are identical all the way down, so that their text passes untouched.

            Only in draft: `PollEventsRequest`, `PollEventsResult`, `PollEventsResultResponse`.

            ### 2026-07-28 → draft

            Everything converts without loss.

            ### draft → 2026-07-28

            | type | part | | why |
            |---|---|---|---|
            | `ClientRequest` | `PollEvents` | refused | no counterpart in 2026-07-28 |
            | `ServerCapabilities` | `events` | dropped | a member of draft and later; for a peer of 2026-07-28: it is not seen |
            | `ServerResult` | `PollEvents` | refused | no counterpart in 2026-07-28 |
        "#]],
    );
}

/// Rows of removed methods stay for the revisions that have them; rows of embedded requests have no such revisions.
#[test]
fn removed_methods_keep_rows_of_older_revisions() {
    check(
        |of| {
            for (union, variant) in [
                ("ClientRequest", "CompleteRequest"),
                ("InputRequest", "ListRootsRequest"),
                ("InputResponse", "ListRootsResult"),
            ] {
                let reference = json!({"$ref": format!("#/$defs/{variant}")});
                let variants = of[union]["anyOf"].as_array_mut().expect("a union");
                variants.retain(|variant| *variant != reference);
            }
            let definitions = of.as_object_mut().expect("definitions");
            definitions
                .retain(|name, _| !["CompleteRequest", "ListRootsRequest"].contains(&&**name));
        },
        true,
        &expect![[r#"
            Differences: 5 definitions, 2 methods. **To decide or to write: 3 points.**

            File: draft.json, sha256 `…`.

            ## To decide or to write

            - **conversion**: 2026-07-28 → draft refuses `InputRequest.ListRoots`: no counterpart in draft
            - **conversion**: 2026-07-28 → draft refuses `InputResponse.ListRoots`: no counterpart in draft
            - **session**: the row `input_request("roots/list")` applies to every revision with `InputRequiredResult`, and the draft embeds the request no more: restrict it in `crates/mcp-exact-session/src/rules/index.rs`

            ## Look at

            - the errata `elicit-result-number-2020-12`, `json-value-open`, `input-required-result-type` fit the draft, and are applied here; name the revision in their `revisions` where the defect is the same

            ## Absorbed

            - `schema add`: 153 definitions, 11 requests, 8 notifications; the types agree with the schema, and the conversions pass their tests (0 s)
            - the conversions 2026-07-28 ↔ draft: 177 types
            - messages that one side does not know are refused: `ClientRequest.Complete`
            - the row `request(Client, "completion/complete")` stays for older revisions alone, by the table of revisions

            ## Conversions 2026-07-28 ↔ draft

            177 types are converted; 159 of them are identical all the way down, so that their text passes untouched.

            Only in 2026-07-28: `CompleteRequest`, `ListRootsRequest`.

            ### 2026-07-28 → draft

            | type | part | | why |
            |---|---|---|---|
            | `ClientRequest` | `Complete` | refused | no counterpart in draft |
            | `InputRequest` | `ListRoots` | refused | no counterpart in draft |
            | `InputResponse` | `ListRoots` | refused | no counterpart in draft |

            ### draft → 2026-07-28

            Everything converts without loss.
        "#]],
    );
}

/// "`schema add` lists what the automatic conversions refuse" (CONTRIBUTING.md, "Add a revision"): each is a decision.
#[test]
fn refused_conversions_need_a_person() {
    check(
        |of| {
            of["VideoContent"] = of["AudioContent"].clone();
            of["VideoContent"]["properties"]["type"]["const"] = json!("video");
            add_variant(of, "ContentBlock", "VideoContent");
        },
        true,
        &expect![[r#"
            Differences: 2 definitions, 0 methods. **To decide or to write: 1 point.**

            File: draft.json, sha256 `…`.

            ## To decide or to write

            - **conversion**: draft → 2026-07-28 refuses `ContentBlock.Video`: no counterpart in 2026-07-28

            ## Look at

            - the errata `elicit-result-number-2020-12`, `json-value-open`, `input-required-result-type` fit the draft, and are applied here; name the revision in their `revisions` where the defect is the same

            ## Absorbed

            - `schema add`: 156 definitions, 13 requests, 8 notifications; the types agree with the schema, and the conversions pass their tests (0 s)
            - the conversions 2026-07-28 ↔ draft: 180 types

            ## Conversions 2026-07-28 ↔ draft

            180 types are converted; 151 of them are identical all the way down, so that their text passes untouched.

            Only in draft: `VideoContent`.

            ### 2026-07-28 → draft

            Everything converts without loss.

            ### draft → 2026-07-28

            | type | part | | why |
            |---|---|---|---|
            | `ContentBlock` | `Video` | refused | no counterpart in 2026-07-28 |
        "#]],
    );
}
