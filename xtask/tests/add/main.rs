//! `schema add` with input that is not a schema of the protocol: a clear error, and unchanged files. Uses a temporary
//! copy of the schema folder; the build and tests of a new crate never start.

mod watch;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use xtask::schema::add::{self, Arguments, Status};
use xtask::workspace_root;

/// Revision in the temporary schema folder.
const OFFICIAL: &str = "2025-06-18";

/// Creates a schema folder with one revision.
fn schema_folder() -> TempDir {
    let tree = tempfile::tempdir().expect("a temporary directory");
    let (from, to) = (workspace_root().join("schema"), tree.path().join("schema"));
    fs::create_dir_all(to.join(OFFICIAL)).expect("a directory");
    for file in [
        "errata.toml",
        "names.toml",
        "conversions.toml",
        "revisions.toml",
        "2025-06-18/schema.json",
    ] {
        fs::copy(from.join(file), to.join(file)).expect("a copy");
    }
    tree
}

/// Collects the contents of all files in a folder and its subfolders; folders have empty contents.
fn read_contents(folder: &Path, to: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            to.insert(path.clone(), Vec::new());
            read_contents(&path, to);
        } else {
            to.insert(path.clone(), fs::read(&path).expect("a file"));
        }
    }
}

/// Returns the contents of all files in a directory.
fn snapshot(tree: &TempDir) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    read_contents(tree.path(), &mut all);
    all
}

/// Adds a file with these bytes as the schema of a revision.
fn add_bytes(tree: &TempDir, revision: &str, bytes: &[u8]) -> Result<(), String> {
    add_to(tree, revision, None, bytes)
}

/// Adds a file with these bytes as the schema of a revision, or of an extension of the revision `extends`; returns the
/// error message.
fn add_to(
    tree: &TempDir,
    revision: &str,
    extends: Option<&str>,
    bytes: &[u8],
) -> Result<(), String> {
    let input = tempfile::tempdir().expect("a temporary directory");
    let file = input.path().join("schema.json");
    fs::write(&file, bytes).expect("a file");
    let arguments = Arguments {
        revision: revision.to_owned(),
        from: file.display().to_string(),
        status: Status::Draft,
        source: None,
        extends: extends.map(str::to_owned),
        repository: extends.map(|_| "https://example.com/ext-echo".to_owned()),
        licence: "MIT".to_owned(),
    };
    add::add(tree.path(), &arguments).map_err(|error| format!("{error:#}"))
}

/// Adds a file with these bytes as a revision; checks that the error contains the words and that no file has changed.
fn check(bytes: &[u8], words: &[&str]) {
    let tree = schema_folder();
    let before = snapshot(&tree);
    let error = add_bytes(&tree, "3000-01-01", bytes).expect_err("no schema of the protocol");
    for word in words {
        assert!(error.contains(word), "{word:?} is not in: {error}");
    }
    assert!(error.len() < 2000, "{} bytes of words", error.len());
    assert_eq!(snapshot(&tree), before, "{error}");
}

/// Returns the official schema with a change.
fn changed_schema(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let file = workspace_root()
        .join("schema")
        .join(OFFICIAL)
        .join("schema.json");
    let bytes = fs::read(file).expect("the official schema");
    let mut schema = serde_json::from_slice(&bytes).expect("JSON");
    change(&mut schema);
    serde_json::to_vec(&schema).expect("JSON")
}

/// Returns the official schema with an additional definition.
fn with_definition(name: &str, definition: Value) -> Vec<u8> {
    changed_schema(|schema| schema["definitions"][name] = definition)
}

/// `schema add` refuses an empty file.
#[test]
fn empty_file_is_refused() {
    check(
        b"",
        &["3000-01-01", "the schema file is not JSON", "take the file"],
    );
}

/// `schema add` refuses an HTML page, such as the error page of a web server.
#[test]
fn html_is_refused() {
    check(
        b"<!DOCTYPE html><html><body>404</body></html>",
        &["the schema file is not JSON"],
    );
}

/// `schema add` refuses JSON that is not a JSON Schema with definitions.
#[test]
fn other_json_is_refused() {
    check(b"[]", &["no `definitions`"]);
    check(
        br#"{"name":"package","version":"1.0.0"}"#,
        &["no `definitions`"],
    );
}

/// `schema add` refuses a JSON Schema without the messages of the protocol.
#[test]
fn schema_of_another_protocol_is_refused() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {"Person": {"type": "object", "properties": {"name": {"type": "string"}}}}
    });
    check(
        schema.to_string().as_bytes(),
        &["/$defs", "not a schema of the protocol"],
    );
}

/// `schema add` refuses JSON with deeply nested values without exhausting the stack.
#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let times = (10 << 20) / (open.len() + close.len());
        let text = format!("{}1{}", open.repeat(times), close.repeat(times));
        check(text.as_bytes(), &["nested deeper"]);
    }
}

/// `schema add` refuses a file that exceeds the maximum size.
#[test]
fn oversized_file_is_refused() {
    check(&vec![b' '; 17 << 20], &["is larger than 16 MB"]);
}

/// `schema add` refuses a schema whose definitions are aliases of each other in a circle.
#[test]
fn circular_references_are_refused() {
    check(
        &with_definition("Circle", json!({"$ref": "#/definitions/Circle"})),
        &["/definitions/Circle"],
    );
    check(
        &changed_schema(|schema| {
            schema["definitions"]["Ring"] = json!({"allOf": [{"$ref": "#/definitions/Bell"}]});
            schema["definitions"]["Bell"] = json!({"allOf": [{"$ref": "#/definitions/Ring"}]});
        }),
        &["/definitions/Ring", "erratum"],
    );
    check(
        &with_definition(
            "Snake",
            json!({"anyOf": [{"$ref": "#/definitions/Snake"}, {"type": "string"}]}),
        ),
        &["/definitions/Snake"],
    );
}

/// `schema add` refuses definitions whose names cannot be names of Rust types.
#[test]
fn invalid_type_names_are_refused() {
    for name in ["Self", "fn", "crate", "a b", "", "Tool/Box", "Straße"] {
        check(
            &with_definition(name, json!({"type": "string"})),
            &["/definitions/"],
        );
    }
}

/// `schema add` refuses definitions whose names in Rust would be equal.
#[test]
fn colliding_definitions_are_refused() {
    check(
        &changed_schema(|schema| {
            schema["definitions"]["FooBar"] = json!({"type": "string"});
            schema["definitions"]["FOOBar"] = json!({"type": "string"});
        }),
        &["/definitions/FooBar", "case of letters"],
    );
}

/// `schema add` refuses a union whose variants cannot be distinguished.
#[test]
fn ambiguous_union_is_refused() {
    let with_a =
        |a: &str| json!({"type": "object", "properties": {"a": {"type": a}}, "required": ["a"]});
    check(
        &changed_schema(|schema| {
            schema["definitions"]["One"] = with_a("string");
            schema["definitions"]["Two"] = with_a("integer");
            schema["definitions"]["Either"] =
                json!({"anyOf": [{"$ref": "#/definitions/One"}, {"$ref": "#/definitions/Two"}]});
        }),
        &["/definitions/Either", "erratum"],
    );
}

/// `schema add` refuses a schema with a keyword that the generator does not know.
#[test]
fn unknown_keyword_is_refused() {
    check(
        &with_definition("Odd", json!({"type": "string", "not": {"const": "a"}})),
        &["/definitions/Odd/not"],
    );
}

/// `schema add` refuses names of revisions that cannot be part of paths, crate names and features.
#[test]
fn invalid_revision_names_are_refused() {
    let tree = schema_folder();
    let before = snapshot(&tree);
    for id in ["", "../x", "a b", "-a", "a-", "A", "ü", "exact-wire"] {
        let error = add_bytes(&tree, id, b"{}").expect_err("no name");
        assert!(
            error.contains("can be no part of a crate's name"),
            "{error}"
        );
    }
    assert_eq!(snapshot(&tree), before);
}

/// Adding a file whose bytes are already those of a listed revision succeeds without changes.
#[test]
fn existing_bytes_change_nothing() {
    let tree = schema_folder();
    let before = snapshot(&tree);
    let file = tree
        .path()
        .join("schema")
        .join(OFFICIAL)
        .join("schema.json");
    let bytes = fs::read(file).expect("the official schema");
    add_bytes(&tree, "3000-01-01", &bytes).expect("nothing to do");
    assert_eq!(snapshot(&tree), before);
}

/// A listed revision is not replaced by other bytes; the error names the command that removes the revision.
#[test]
fn existing_revisions_are_not_replaced() {
    let tree = schema_folder();
    let before = snapshot(&tree);
    let other = changed_schema(|schema| schema["definitions"]["More"] = json!({"type": "string"}));
    let error = add_bytes(&tree, OFFICIAL, &other).expect_err("it is there");
    assert!(error.contains("schema remove 2025-06-18"), "{error}");
    assert_eq!(snapshot(&tree), before);
}

/// Returns the schema of an extension whose only definition is `definition`, named `Echo`.
fn extension(definition: Value) -> Vec<u8> {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "definitions": {"Echo": definition}
    });
    schema.to_string().into_bytes()
}

/// An extension with an invalid name, an unknown revision or an invalid schema is refused, and no file is changed.
#[test]
fn invalid_extensions_are_refused() {
    let refers = |to: &str| {
        let reference = format!("#/definitions/{to}");
        extension(json!({"type": "object", "properties": {"of": {"$ref": reference}}}))
    };
    let odd = extension(json!({"type": "string", "not": {"const": "a"}}));
    for (id, extends, bytes, words) in [
        (
            "echo",
            OFFICIAL,
            refers("Tool"),
            "call an extension ext-<name>",
        ),
        ("ext-echo", "3000-01-01", refers("Tool"), "3000-01-01"),
        (
            "ext-echo",
            OFFICIAL,
            refers("Nowhere"),
            "/definitions/Echo/properties/of/$ref",
        ),
        ("ext-echo", OFFICIAL, odd, "/definitions/Echo/not"),
        ("ext-echo", OFFICIAL, b"{".to_vec(), "not JSON"),
    ] {
        let tree = schema_folder();
        let before = snapshot(&tree);
        let error = add_to(&tree, id, Some(extends), &bytes).expect_err("it cannot be added");
        assert!(error.contains(words), "{words:?} is not in: {error}");
        assert_eq!(snapshot(&tree), before, "{error}");
    }
}
