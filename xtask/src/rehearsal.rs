//! `cargo xtask nightly rehearsal`: rehearses the publication of a new revision in a copy of the workspace.
//!
//! Takes invented revisions through `cargo xtask schema add` and `schema remove`: one with an extension of it, and one for each
//! shape of `shapes.rs` that a next revision could bring. A draft stays while all tests of the workspace run: servers, clients
//! and the gateway speak released revisions alone. Then it takes the historic versions of the draft in a clone, or those in
//! `schema/history/`. Outside of `target/`, nothing is written.

mod shapes;

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::schema::add::Status;
use crate::schema::history::{self, REVISION, add_and_remove};
use crate::schema::kept;
use crate::scratch::Scratch;

/// Identifier of the invented extension.
const EXTENSION: &str = "ext-rehearsal";

/// Adds invented revisions, an extension and historic drafts to a copy of `root`, and removes them.
///
/// # Errors
/// Returns an error if a command fails, or files differ afterwards.
pub fn run(root: &Path, clone: Option<&Path>) -> anyhow::Result<()> {
    let scratch = Scratch::new(root)?;
    let newest = newest_schema(root)?;
    let rehearsed = rehearse(&scratch, &newest)
        .and_then(|()| test_with_draft(root, &scratch))
        .and_then(|()| add_shapes(root, &scratch, &newest));
    scratch.restore()?;
    rehearsed?;
    history::run(
        root,
        &history::Arguments {
            clone: clone.map(Path::to_owned),
            add: true,
            only: Vec::new(),
            sample: None,
            seed: 1,
        },
    )
}

/// Adds each shape as a released revision, or checks that the generator refuses it with pointer and remedy.
fn add_shapes(root: &Path, scratch: &Scratch, newest: &Value) -> anyhow::Result<()> {
    let generator = shapes::Generator::new(root)?;
    let mut lines = Vec::new();
    for shape in shapes::ALL {
        let bytes = shape.schema(newest)?;
        let line = match generator.run(REVISION, &bytes) {
            Ok(()) => match add_and_remove(scratch, REVISION, &bytes, Status::Release) {
                Ok(trial) => {
                    format!("added {:5.1} s {}", trial.time.as_secs_f64(), shape.name)
                }
                Err(error) if shape.is_refused_by(&error) => {
                    format!("refused       {}: {error:#}", shape.name)
                }
                Err(error) => {
                    return Err(error.context(format!("{} was not added", shape.name)));
                }
            },
            Err(refusal) => format!("refused       {}: {refusal}", shape.name),
        };
        println!("{line}");
        lines.push(line);
    }
    println!("\n{}", lines.join("\n"));
    Ok(())
}

/// Adds the newest draft that is kept, and runs all tests with it.
fn test_with_draft(root: &Path, scratch: &Scratch) -> anyhow::Result<()> {
    let copy = scratch.root();
    let drafts = kept::versions(&root.join("schema"))?;
    let draft = drafts.last().context("schema/history has no draft")?;
    let file = copy.join("target/draft.json");
    fs::write(&file, &draft.bytes)?;
    let xtask = ["run", "--quiet", "--package", "xtask", "--"];
    let file = file.display().to_string();
    let add = [
        "schema", "add", "draft", "--from", &file, "--status", "draft",
    ];
    cargo(copy, &[&xtask, &add[..]].concat())?;
    cargo(copy, &[&xtask, &["test"][..]].concat())?;
    cargo(copy, &[&xtask, &["schema", "remove", "draft"][..]].concat())?;
    scratch.check_unchanged("`schema remove`")
}

/// Adds a revision and an extension of it, checks the packages that list revisions, and removes both.
fn rehearse(scratch: &Scratch, newest: &Value) -> anyhow::Result<()> {
    let copy = scratch.root();
    let folder = copy.join("target");
    fs::create_dir_all(&folder)?;
    let (revision, extension) = (folder.join("revision.json"), folder.join("extension.json"));
    fs::write(&revision, invented_schema(newest)?)?;
    fs::write(&extension, invented_extension().to_string())?;
    let revision = revision.display().to_string();
    let extension = extension.display().to_string();
    let cargo = |arguments: &[&str]| cargo(copy, arguments);
    let xtask = ["run", "--quiet", "--package", "xtask", "--", "schema"];
    let schema = |arguments: &[&str]| cargo(&[&xtask, arguments].concat());
    schema(&["add", REVISION, "--from", &revision])?;
    let repository = "https://example.com/ext-rehearsal";
    let of_extension = ["--extends", REVISION, "--repository", repository];
    schema(&[&["add", EXTENSION, "--from", &extension], &of_extension[..]].concat())?;
    // These packages list revisions by features and must include the new one.
    let users = [
        "--package",
        "mcp-exact-session",
        "--package",
        "mcp-exact-cli",
    ];
    cargo(
        &[
            &["check", "--quiet", "--features", "mcp-exact-cli/full"],
            &users[..],
        ]
        .concat(),
    )?;
    schema(&["remove", EXTENSION])?;
    schema(&["remove", REVISION])?;
    scratch.check_unchanged("`schema remove`")?;
    println!("rehearsal: {REVISION} and {EXTENSION} came and went");
    Ok(())
}

/// Returns the schema of the newest released revision.
///
/// # Errors
/// Returns an error if no revision is released, or a file cannot be read.
pub fn newest_schema(root: &Path) -> anyhow::Result<Value> {
    let folder = root.join("schema");
    let schemas = crate::codegen::Schemas::read(&folder)?;
    let mut released = schemas
        .revisions
        .iter()
        .filter(|revision| !revision.is_draft());
    let newest = released.next_back().context("no revision is released")?;
    let text = fs::read_to_string(folder.join(&newest.id).join("schema.json"))?;
    Ok(serde_json::from_str(&text)?)
}

/// Returns a schema with typical changes of a new revision: a new method, a kind of content, added and removed members,
/// values, and keywords that no official schema has.
///
/// # Errors
/// Returns an error if the newest schema lacks what the invented one changes.
pub fn invented_schema(newest: &Value) -> anyhow::Result<Vec<u8>> {
    let mut schema = newest.clone();
    let definitions = &mut schema["$defs"];
    for (from, to) in [
        ("CompleteRequest", "MeasureRequest"),
        ("CompleteRequestParams", "MeasureRequestParams"),
        ("CompleteResult", "MeasureResult"),
        ("CompleteResultResponse", "MeasureResultResponse"),
        ("AudioContent", "VideoContent"),
    ] {
        let text = definitions[from].to_string();
        ensure!(
            text != "null",
            "the newest schema has no {from}; correct the rehearsal"
        );
        let text = text
            .replace("#/$defs/Complete", "#/$defs/Measure")
            .replace("completion/complete", "lengths/measure")
            .replace("\"const\":\"audio\"", "\"const\":\"video\"");
        definitions[to] = serde_json::from_str(&text)?;
    }
    for (union, variant) in [
        ("ClientRequest", "MeasureRequest"),
        ("ServerResult", "MeasureResult"),
        ("ContentBlock", "VideoContent"),
    ] {
        let variants = definitions[union]["anyOf"].as_array_mut();
        let variants = variants.with_context(|| format!("{union} is not a union"))?;
        variants.push(json!({ "$ref": format!("#/$defs/{variant}") }));
    }
    definitions["MeasureOptions"] = json!({
        "type": "object",
        "properties": {
            "comparison": { "type": "string", "enum": ["<", "<=", "2.0", "self"] },
            "unit": { "type": "string", "pattern": "^[a-z]+$" },
            "bounds": { "type": "array", "items": { "type": ["number", "string", "null"] } },
        },
        "required": ["comparison"],
        "additionalProperties": false,
    });
    let params = &mut definitions["MeasureRequestParams"]["properties"];
    params["options"] = json!({ "$ref": "#/$defs/MeasureOptions" });
    definitions["Tool"]["properties"]["homepage"] = json!({ "type": "string", "format": "uri" });
    if let Some(hints) = definitions["ToolAnnotations"]["properties"].as_object_mut() {
        hints.remove("idempotentHint");
    }
    if let Some(levels) = definitions["LoggingLevel"]["enum"].as_array_mut() {
        levels.push("trace".into());
    }
    Ok(serde_json::to_vec_pretty(&schema)?)
}

/// Returns a schema with a definition that refers to one of the revision.
fn invented_extension() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "Ruler": {
                "description": "What lengths are measured with.",
                "type": "object",
                "properties": {
                    "name": { "type": "string" },
                    "options": { "$ref": "#/$defs/MeasureOptions" },
                },
                "required": ["name"],
            },
        },
    })
}

/// Runs cargo in the copy, with the target folder of the copy.
fn cargo(copy: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    println!("running: cargo {}", arguments.join(" "));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(arguments)
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", copy.join("target"))
        .status()
        .context("cannot start cargo; install the toolchain")?;
    if !status.success() {
        bail!("cargo {} failed ({status})", arguments.join(" "));
    }
    Ok(())
}
