//! `cargo xtask schema watch`: what the official draft would cost, before its day.
//!
//! Compares the draft with the newest released revision, takes it through `schema add` as a release in a copy of the workspace,
//! and reports what is absorbed and what needs a person. Outside of `target/`, nothing is written, unless `--keep` adds the draft
//! as an unpublished crate, or `--markdown` writes the report.

mod inherited;
pub mod report;
pub mod rules;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use codegen::Revision;
use codegen::ir::RustIr;
use serde_json::Value;

use super::add::{self, Status};
use super::check;
use super::history::{REVISION, Trial, add_and_remove, without_descriptions};
use super::origin::{self, Origin};
use super::remove::remove;
use crate::codegen::Schemas;
use crate::scratch::Scratch;
use report::{Draft, Report};

/// Identifier of the draft.
const DRAFT: &str = "draft";
/// Exit code of a draft that a person has to decide about; clap ends with 2, and errors with 1.
const NEEDS_PERSON: u8 = 3;

/// Arguments of `cargo xtask schema watch`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 if nothing is new, or `schema add` absorbs all of it; 3 if a person has to decide about \
                  something; 1 if the draft could not be examined."
)]
pub struct Arguments {
    /// The file, a clone of the official repository, or the address of the file; by default, the repository that
    /// schema/revisions.toml names is cloned.
    #[arg(long, value_name = "FILE|DIR|URL")]
    from: Option<String>,
    /// Write the report to this file, too.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Add the draft to this workspace as an unpublished crate, in place of an earlier draft; `schema remove draft` undoes it.
    #[arg(long)]
    keep: bool,
}

/// Prints the report about the draft; the exit code is that of [`Arguments`].
///
/// # Errors
/// Returns an error if the draft cannot be obtained, a file cannot be written, or `--keep` cannot add the draft.
pub fn watch(root: &Path, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let origin = read_draft(root, arguments.from.as_deref())?;
    let mut schemas = Schemas::read(&root.join("schema"))?;
    let draft = Draft::new(arguments.from.as_deref(), &origin);
    let report = examine(root, &mut schemas, draft, &origin.bytes)?;
    let text = report.markdown();
    print!("\n{text}");
    if let Some(file) = &arguments.markdown {
        fs::write(file, &text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if arguments.keep {
        keep(root, &schemas, &origin.bytes)?;
    }
    Ok(if report.needs_person() {
        ExitCode::from(NEEDS_PERSON)
    } else {
        ExitCode::SUCCESS
    })
}

/// Reads the draft from `from`, or from a clone of the official repository.
fn read_draft(root: &Path, from: Option<&str>) -> anyhow::Result<Origin> {
    if let Some(from) = from {
        return origin::read_origin(from, DRAFT, true);
    }
    let repository = check::upstream_repository(root)?;
    let folder = tempfile::tempdir().context("cannot make a temporary directory; check TMPDIR")?;
    let clone = check::clone(&repository, &folder.path().join("clone"), "--from")?;
    let origin = origin::read_origin(&clone.display().to_string(), DRAFT, true);
    origin.with_context(|| format!("{repository} has no draft now; name a file with --from"))
}

/// Compares the draft with the newest release, and adds it to a copy of the workspace if it differs.
fn examine(
    root: &Path,
    schemas: &mut Schemas,
    draft: Draft,
    bytes: &[u8],
) -> anyhow::Result<Report> {
    let models = released_models(schemas)?;
    let mut report = compare(schemas, &models, draft, bytes)?;
    if let Some(comparison) = report.comparison_mut() {
        println!("adding the draft to a copy of the workspace, as the release {REVISION}");
        comparison.set_trial(try_addition(root, schemas, bytes)?);
    }
    Ok(report)
}

/// Returns the intermediate representations of the released revisions, oldest first.
///
/// # Errors
/// Returns an error if a released schema cannot be read.
pub fn released_models(schemas: &Schemas) -> anyhow::Result<Vec<RustIr>> {
    let released = schemas.revisions.iter().filter(|one| !one.is_draft());
    released.map(|one| schemas.ir(one)).collect()
}

/// Compares the draft with the newest release; the generator alone reads it, and nothing is built. Afterwards, the errata and names
/// of the release apply to the draft, too, where they fit.
///
/// # Errors
/// Returns an error if the newest released schema cannot be read.
pub fn compare(
    schemas: &mut Schemas,
    models: &[RustIr],
    draft: Draft,
    bytes: &[u8],
) -> anyhow::Result<Report> {
    let released = schemas.revisions.iter().filter(|one| !one.is_draft());
    let released: Vec<&Revision> = released.collect();
    let newest = (*released.last().context("no revision is released")?).clone();
    if let Some(same) = released.iter().find(|one| one.sha256 == draft.sha256) {
        return Ok(Report::same_bytes(draft, &same.id));
    }
    if has_same_structure(&schemas.bytes(&newest)?, bytes) {
        return Ok(Report::same_structure(draft, &newest.id));
    }
    let revision = Revision {
        id: REVISION.to_owned(),
        status: "release".to_owned(),
        sha256: draft.sha256.clone(),
    };
    let lowered = inherited::inherit(schemas, &newest, &revision, bytes)
        .and_then(|inherited| Ok((schemas.lower_bytes(&revision, bytes)?, inherited)));
    match lowered {
        Err(refusal) => Ok(Report::refused(draft, &newest.id, &format!("{refusal:#}"))),
        Ok((lowered, inherited)) => Ok(Report::compared(draft, models, &lowered.ir, inherited)),
    }
}

/// Returns true if two files are JSON and differ in descriptions and order alone.
fn has_same_structure(one: &[u8], other: &[u8]) -> bool {
    let structure = |bytes: &[u8]| {
        let schema = serde_json::from_slice::<Value>(bytes).ok()?;
        Some(without_descriptions(schema, false))
    };
    let one = structure(one);
    one.is_some() && one == structure(other)
}

/// Adds the draft to a copy of the workspace as a release, so that conversions are made and tested, and removes it; the inner error
/// is the reason why it cannot be added.
fn try_addition(
    root: &Path,
    schemas: &Schemas,
    bytes: &[u8],
) -> anyhow::Result<Result<Trial, String>> {
    let mut bytes = bytes.to_owned();
    let sha256 = codegen::sha256(&bytes);
    if schemas.revisions.iter().any(|one| one.sha256 == sha256) {
        // The draft was kept earlier, and `schema add` takes equal bytes for the same revision.
        bytes.push(b'\n');
    }
    let mut scratch = Scratch::new(root)?;
    let tables = schemas.tables();
    scratch.replace("schema/errata.toml", tables.errata)?;
    scratch.replace("schema/names.toml", tables.names)?;
    let tried = add_and_remove(&scratch, REVISION, &bytes, Status::Release);
    scratch.restore()?;
    Ok(tried.map_err(|error| format!("{error:#}")))
}

/// Adds the draft to the workspace as an unpublished crate, in place of an earlier one.
fn keep(root: &Path, schemas: &Schemas, bytes: &[u8]) -> anyhow::Result<()> {
    let sha256 = codegen::sha256(bytes);
    let mut listed = schemas.revisions.iter();
    if let Some(earlier) = listed.find(|revision| revision.id == DRAFT) {
        if earlier.sha256 == sha256 {
            println!("the draft is in the workspace already");
            return Ok(());
        }
        remove(root, DRAFT)?;
    }
    let folder = tempfile::tempdir().context("cannot make a temporary directory; check TMPDIR")?;
    let file = folder.path().join("schema.json");
    fs::write(&file, bytes)?;
    add::add(root, &add::Arguments::of_file(DRAFT, &file, Status::Draft))
}
