//! `cargo xtask nightly rehearsal`: rehearses the publication of a new revision with an invented one.
//!
//! Copies the files of the workspace into a scratch folder, derives a schema from the schema of the newest revision,
//! and runs `cargo xtask schema add` for the revision and for an extension of it. The command then removes revision and
//! extension, and checks that all files are restored. Outside of the scratch folder, only `target/` changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

/// Identifier of the invented revision.
const REVISION: &str = "2099-01-01";
/// Identifier of the invented extension.
const EXTENSION: &str = "ext-rehearsal";

/// Adds an invented revision and an extension to a copy of `root`, and removes them.
///
/// # Errors
/// Returns an error if a command fails, or files differ afterwards.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let scratch = tempfile::tempdir().context("cannot make a temporary directory; check TMPDIR")?;
    let rehearsed = rehearse(root, scratch.path());
    // Cargo would use what it has built for the invented revision, because the sources of the workspace are older.
    let cleaned = cargo(root, root, &["clean", "--package", "mcp-exact-revisions"]);
    rehearsed.and(cleaned)
}

/// Runs the commands on a copy in the folder `scratch`, and compares the files.
fn rehearse(root: &Path, scratch: &Path) -> anyhow::Result<()> {
    // The second copy shows the files as they were, even if the working tree changes during the rehearsal.
    let (copy, unchanged) = (scratch.join("workspace"), scratch.join("unchanged"));
    let files = copy_files(root, &copy)?;
    for file in &files {
        copy_file(&copy, &unchanged, file)?;
    }
    let (revision, extension) = (
        scratch.join("revision.json"),
        scratch.join("extension.json"),
    );
    fs::write(&revision, invented_schema(&newest_schema(root)?)?)?;
    fs::write(&extension, invented_extension().to_string())?;
    let revision = revision.display().to_string();
    let extension = extension.display().to_string();
    let cargo = |arguments: &[&str]| cargo(root, &copy, arguments);
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
    let changed: Vec<String> = files
        .iter()
        .filter(|file| fs::read(unchanged.join(file)).ok() != fs::read(copy.join(file)).ok())
        .map(|file| file.display().to_string())
        .collect();
    ensure!(
        changed.is_empty(),
        "`schema remove` left changes in {}",
        changed.join(", ")
    );
    println!("rehearsal: {REVISION} and {EXTENSION} came and went");
    Ok(())
}

/// Copies the files that git tracks or would track from the working tree; returns their paths.
fn copy_files(root: &Path, copy: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = Command::new("git")
        .arg("-C")
        .arg(root)
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .output()
        .context("cannot start git; install it")?;
    ensure!(
        listed.status.success(),
        "{} is no checkout of git",
        root.display()
    );
    let listed = String::from_utf8(listed.stdout).context("a path is not UTF-8")?;
    let mut files: Vec<PathBuf> = listed
        .split_terminator('\0')
        .map(PathBuf::from)
        .filter(|file| root.join(file).is_file())
        .collect();
    files.sort();
    files.dedup();
    for file in &files {
        copy_file(root, copy, file)?;
    }
    Ok(files)
}

/// Copies the file with a relative path from one folder to another.
fn copy_file(from: &Path, to: &Path, file: &Path) -> anyhow::Result<()> {
    let copy = to.join(file);
    if let Some(folder) = copy.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from.join(file), copy).with_context(|| format!("cannot copy {}", file.display()))?;
    Ok(())
}

/// Returns the schema of the newest released revision.
fn newest_schema(root: &Path) -> anyhow::Result<Value> {
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
fn invented_schema(newest: &Value) -> anyhow::Result<Vec<u8>> {
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
        let variants = variants.with_context(|| format!("{union} is no union"))?;
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

/// Runs cargo in the copy with the target folder of this workspace, so that dependencies are built already.
fn cargo(root: &Path, copy: &Path, arguments: &[&str]) -> anyhow::Result<()> {
    println!("running: cargo {}", arguments.join(" "));
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let status = Command::new(cargo)
        .args(arguments)
        .current_dir(copy)
        .env("CARGO_TARGET_DIR", target)
        .status()
        .context("cannot start cargo; install the toolchain")?;
    if !status.success() {
        bail!("cargo {} failed ({status})", arguments.join(" "));
    }
    Ok(())
}
