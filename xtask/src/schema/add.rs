//! `cargo xtask schema add`: adds a revision to the workspace in one command.
//!
//! Writes the list entry, the crate and every generated region for a schema file, then builds and tests the result.
//! After a failure, all files are restored. Only the generator parses the schema.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Instant, SystemTime};

use anyhow::{Context, bail, ensure};
use clap::{Args, ValueEnum};
use codegen::{AssumedProperties, Lifecycle, Revision};

use super::origin::{self, Origin};
use super::review::Review;
use super::revisions_toml::{self, Entry};
use super::rollback::Rollback;
use super::source::Source;
use super::{extension, failure, interrupt};
use crate::codegen::{Schemas, generate};
use crate::test::WHOLE_WORKSPACE;

/// Arguments of `cargo xtask schema add`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Name of the revision in the specification, such as 2025-06-18.
    pub revision: String,
    /// The file, a clone of the official repository, or an address.
    #[arg(long, value_name = "FILE|DIR|URL")]
    pub from: String,
    /// Status of the revision: draft or released.
    #[arg(long, value_enum, default_value_t = Status::Release)]
    pub status: Status,
    /// The package that has a copy: `crates:package@version:path`, `pypi:package@version:path` or `npm:package@version:path`.
    #[arg(long, value_name = "REGISTRY:PACKAGE@VERSION:PATH")]
    pub source: Option<Source>,
    /// The file is the schema of an extension to this revision.
    #[arg(long, value_name = "REVISION", requires = "repository")]
    pub extends: Option<String>,
    /// Repository of an extension.
    #[arg(long, value_name = "URL", requires = "extends")]
    pub repository: Option<String>,
    /// The licence of an extension's schema.
    #[arg(long, value_name = "SPDX", default_value = "Apache-2.0")]
    pub licence: String,
}

impl Arguments {
    /// Returns the arguments that add the revision `id` from a file.
    pub fn of_file(id: &str, file: &Path, status: Status) -> Self {
        Self {
            revision: id.to_owned(),
            from: file.display().to_string(),
            status,
            source: None,
            extends: None,
            repository: None,
            licence: "Apache-2.0".to_owned(),
        }
    }
}

/// Status of a revision: drafts may still change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Status {
    /// The revision is a draft: its types can change, and its crate is not published.
    Draft,
    /// The revision is released and does not change.
    Release,
}

/// Adds a revision, or an extension of one, and prints what a person should look at.
///
/// # Errors
/// Returns an error if the file is no schema that the generator understands, or the generated code does not build or
/// pass its tests.
pub fn add(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    if let Some(extends) = &arguments.extends {
        return extension::add(root, arguments, extends);
    }
    match add_revision(root, arguments)? {
        Outcome::SameBytes(id) => println!("{id} has the same bytes; nothing to do"),
        Outcome::Added(review) => {
            println!("\nadded {}: {}", arguments.revision, review.summary);
            for line in review.lines() {
                println!("  look at {line}");
            }
            println!(
                "next: errata (schema/errata.toml), names (schema/names.toml), then `cargo xtask test`"
            );
        }
    }
    Ok(())
}

/// Outcome of an addition.
#[derive(Debug)]
pub enum Outcome {
    /// The listed revision with this identifier has the same bytes; nothing was written.
    SameBytes(String),
    /// The revision was added.
    Added(Box<Review>),
}

/// Adds a revision without printing its review.
///
/// # Errors
/// Returns an error if the file is no schema that the generator understands, or the generated code does not build or
/// pass its tests.
pub fn add_revision(root: &Path, arguments: &Arguments) -> anyhow::Result<Outcome> {
    let id = arguments.revision.as_str();
    check_id(id)?;
    let draft = arguments.status == Status::Draft;
    let origin = origin::read_origin(&arguments.from, id, draft)?;
    let folder = root.join("schema");
    let schemas = Schemas::read(&folder)?;
    let sha256 = codegen::sha256(&origin.bytes);
    if let Some(same) = schemas.revisions.iter().find(|r| r.sha256 == sha256) {
        return Ok(Outcome::SameBytes(same.id.clone()));
    }
    ensure!(
        schemas.revisions.iter().all(|revision| revision.id != id),
        "revision {id} is there with other bytes; run `cargo xtask schema remove {id}` first"
    );
    ensure!(
        schemas
            .extensions
            .iter()
            .all(|listed| listed.revision.id != id),
        "{id} is an extension; give the revision another name"
    );
    let revision = Revision {
        id: id.to_owned(),
        status: if draft { "draft" } else { "release" }.to_owned(),
        sha256,
    };
    let lowered = schemas.lower_bytes(&revision, &origin.bytes)?;
    let list = fs::read_to_string(folder.join("revisions.toml"))?;
    let place = revisions_toml::insertion_index(&list, id, draft)?;
    let mut review = Review::new(&schemas, &revision, &origin.bytes, &lowered, place)?;
    // Nothing before this line writes files.
    let list = revisions_toml::add_entry(
        &list,
        &new_entry(
            arguments,
            &revision,
            &origin,
            (review.lifecycle, &review.assumed),
            &today(),
        ),
    )?;
    interrupt::check()?;
    let mut rollback = Rollback::new(root);
    rollback.save("Cargo.lock")?;
    rollback.write(&format!("schema/{id}/schema.json"), &origin.bytes)?;
    rollback.write("schema/revisions.toml", list.as_bytes())?;
    let lines = write_generated(root, &mut rollback, id)?;
    let tests: &[&[&str]] = match arguments.status {
        // A draft has no conversions, and leaves those of the released revisions as they are.
        Status::Draft => &[AGREEMENT],
        Status::Release => &[AGREEMENT, CONVERSIONS],
    };
    build_and_test(root, id, tests)?;
    rollback.keep();
    review.summary.push_str(&format!(", {lines} lines"));
    Ok(Outcome::Added(Box::new(review)))
}

/// Checks that a name can be part of paths, crate names and features.
pub fn check_id(id: &str) -> anyhow::Result<()> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends = [id.bytes().next(), id.bytes().last()];
    let ends_well = ends
        .iter()
        .all(|b| b.is_some_and(|b| b.is_ascii_alphanumeric()));
    ensure!(
        id.len() <= 64 && id.bytes().all(plain) && ends_well && !id.starts_with("exact"),
        "{id:?} can be no part of a crate's name; use lower-case letters, digits and dashes, as in 2025-06-18"
    );
    Ok(())
}

/// Returns the list entry of a new revision.
fn new_entry<'e>(
    arguments: &'e Arguments,
    revision: &'e Revision,
    origin: &'e Origin,
    (lifecycle, assumed): (Lifecycle, &'e AssumedProperties),
    today: &'e str,
) -> Entry<'e> {
    Entry {
        id: &revision.id,
        draft: revision.is_draft(),
        dialect: dialect_name(&origin.bytes),
        lifecycle,
        sha256: &revision.sha256,
        upstream_path: &origin.path,
        upstream_commit: origin.commit.as_deref(),
        source: arguments.source.as_ref(),
        retrieved: today,
        properties: &assumed.values,
    }
}

/// Returns the name of a schema's dialect in the lists.
pub fn dialect_name(schema: &[u8]) -> &'static str {
    let is_draft_07 = schema.windows(8).any(|word| word == b"draft-07");
    if is_draft_07 { "draft-07" } else { "2020-12" }
}

/// Returns the current date in UTC, such as `2026-11-21`.
pub fn today() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now[.."2026-11-21".len()].to_owned()
}

/// Writes the generator's output for the current list; returns the number of lines of the crate `id`.
pub fn write_generated(root: &Path, rollback: &mut Rollback, id: &str) -> anyhow::Result<usize> {
    let schemas = Schemas::read(&root.join("schema"))?;
    let files = generate(root, &schemas)?;
    let own = format!("crates/mcp-{id}/");
    let mut lines = 0;
    for (path, text) in &files {
        if path.starts_with(&own) {
            lines += text.lines().count();
        }
        if fs::read(root.join(path)).ok().as_deref() != Some(text.as_bytes()) {
            rollback.write(path, text.as_bytes())?;
        }
    }
    Ok(lines)
}

/// Arguments of the tests that hold types against schemas; with the features of the whole workspace, dependencies that
/// `cargo xtask test` has built are not built again. These tests and those of conversions build nothing with sessions or
/// transports, which may have to learn a new method or lifecycle first.
pub(super) const AGREEMENT: &[&str] = &[
    WHOLE_WORKSPACE[0],
    WHOLE_WORKSPACE[1],
    WHOLE_WORKSPACE[2],
    "--test",
    "agreement",
];
/// Arguments of the tests of conversions.
const CONVERSIONS: &[&str] = &[
    WHOLE_WORKSPACE[0],
    WHOLE_WORKSPACE[1],
    WHOLE_WORKSPACE[2],
    "--test",
    "convert",
];

/// Builds and tests the written files; each element of `tests` has the arguments that select tests of other packages.
pub(super) fn build_and_test(root: &Path, id: &str, tests: &[&[&str]]) -> anyhow::Result<()> {
    let package = format!("mcp-{id}");
    cargo(
        root,
        &["test", "--quiet", "--package", &package, "--all-features"],
        &[],
    )?;
    for tests in tests {
        cargo(
            root,
            &[&["test", "--quiet"], *tests].concat(),
            &[("MCP_EXACT_REVISION", id)],
        )?;
    }
    rustfmt(root, &format!("crates/{package}/src/lib.rs"))
}

/// Runs cargo; prints the output of cargo only if cargo fails.
pub(super) fn cargo(
    root: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> anyhow::Result<()> {
    println!("running: cargo {}", arguments.join(" "));
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .envs(environment.iter().copied())
        .current_dir(root);
    if root != crate::workspace_root() {
        // What a rehearsal builds stays in its copy of the workspace.
        command.env("CARGO_TARGET_DIR", root.join("target"));
    }
    let begun = Instant::now();
    run(root, &mut command)?;
    println!("{:8.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// Checks that a file has the format of rustfmt.
fn rustfmt(root: &Path, file: &str) -> anyhow::Result<()> {
    let mut command = Command::new("rustfmt");
    command
        .args(["--check", "--edition", "2024", file])
        .current_dir(root);
    run(root, &mut command)
}

/// Name of the file in the target folder that keeps the whole output of a command that has failed.
const LOG: &str = "schema-add.log";

/// Runs a command in the workspace `root`. If the command fails, keeps its output in a file and returns the reason.
fn run(root: &Path, command: &mut Command) -> anyhow::Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .env("RUST_BACKTRACE", "0")
        .output()
        .with_context(|| format!("cannot start {program}; install the toolchain"))?;
    interrupt::check()?;
    if output.status.success() {
        return Ok(());
    }
    let words = [output.stdout, output.stderr].concat();
    let folder = root.join("target");
    let log = folder.join(LOG);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&log, &words))
        .with_context(|| format!("cannot write {}", log.display()))?;
    bail!(
        "the new files do not pass, and every file is as it was:\n{}\nthe whole output is in {}",
        failure::reason(&String::from_utf8_lossy(&words)),
        log.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A signal while a command runs ends the addition, with words of its own and no log, even if the command succeeds.
    #[cfg(unix)]
    #[test]
    fn signals_are_no_defects() {
        interrupt::check().expect("no signal yet");
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        command.args(["-c", "kill -TERM $PPID"]);
        let ended = run(folder.path(), &mut command);
        // The signal may arrive at another thread of this process, after the command has ended.
        while interrupt::check().is_ok() {
            std::thread::yield_now();
        }
        let next = || run(folder.path(), &mut Command::new("true"));
        let error = ended.and_then(|()| next()).expect_err("it was interrupted");
        assert_eq!(error.to_string(), "interrupted; every file is as it was");
        assert!(!folder.path().join("target").exists());
    }
}
