//! `cargo xtask schema history`: runs the generator, or the whole of `schema add`, over historic versions of schema files.
//!
//! The versions come from a clone of the official repository, or are those that `schema/history/` keeps. `--add` works in
//! a copy of the workspace. Outside of `target/`, nothing is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use codegen::Revision;
use serde_json::Value;

use super::add::{self, Outcome, Status};
use super::kept;
use super::origin::git;
use super::remove::remove;
use super::review::Review;
use crate::codegen::Schemas;
use crate::rehearsal::{invented_schema, newest_schema};
use crate::scratch::Scratch;

/// Path of the draft in the official repository.
const DRAFT_PATH: &str = "schema/draft/schema.json";

/// Page that lists the conversions.
pub const CONVERSIONS_PAGE: &str = "docs/conversions.md";

/// Identifier of invented revisions.
pub const REVISION: &str = "2099-01-01";

/// Arguments of `cargo xtask schema history`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Path of a clone of the official repository; without it, the versions in schema/history are taken.
    pub clone: Option<PathBuf>,
    /// Take each version of the draft through `schema add` and `schema remove`, in a copy of the workspace. Versions that
    /// differ in descriptions alone are one version.
    #[arg(long)]
    pub add: bool,
    /// Take only the versions of these commits: the beginning of each, with commas.
    #[arg(long, value_name = "COMMIT", requires = "add", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Take only so many of the versions, chosen at random.
    #[arg(long, value_name = "N", requires = "add")]
    pub sample: Option<usize>,
    /// Seed of the random choice.
    #[arg(long, value_name = "S", default_value_t = 1, requires = "sample")]
    pub seed: u64,
}

/// A version of a schema file.
pub struct Version {
    /// First commit that contains the version.
    pub commit: String,
    /// Path of the file.
    pub path: String,
    /// Date of the commit.
    pub date: String,
    /// Contents of the file.
    pub bytes: Vec<u8>,
}

impl Version {
    /// Returns the words by which a line of output names the version.
    fn name(&self) -> String {
        format!("{} {} {}", &self.commit[..8], self.date, self.path)
    }
}

/// Runs the generator, or with `--add` the commands `schema add` and `schema remove`, over every version.
///
/// # Errors
/// Returns an error if the directory is not a clone, or a version that the generator accepts does not pass `schema add`. A
/// version that the generator refuses is printed and is not an error.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let mut versions = match &arguments.clone {
        Some(clone) => versions(clone)?,
        None => kept::versions(&root.join("schema"))?,
    };
    if !arguments.add {
        return generate(root, &versions);
    }
    versions.retain(|version| version.path == DRAFT_PATH);
    let count = versions.len();
    let mut versions = distinct_versions(versions);
    println!(
        "{count} versions of the draft, {} without those that differ in descriptions alone",
        versions.len()
    );
    if !arguments.only.is_empty() {
        versions.retain(|version| is_wanted(version, &arguments.only));
        ensure!(
            !versions.is_empty(),
            "no distinct version of the draft begins with one of the commits of `--only`"
        );
    }
    let versions = match arguments.sample {
        Some(wanted) => sample(versions, wanted, arguments.seed),
        None => versions,
    };
    add_all(root, &versions, arguments.clone.is_none())
}

/// Returns true if the commit of a version begins with one of `commits`.
fn is_wanted(version: &Version, commits: &[String]) -> bool {
    commits
        .iter()
        .any(|commit| version.commit.starts_with(commit))
}

/// Runs the generator over every version; prints which it accepts, and why it refuses the others.
fn generate(root: &Path, versions: &[Version]) -> anyhow::Result<()> {
    let schemas = Schemas::read(&root.join("schema"))?;
    let mut refused = 0;
    for version in versions {
        let place = version.name();
        let revision = draft_revision(&version.bytes);
        let generated = schemas
            .lower_bytes(&revision, &version.bytes)
            .and_then(|lowered| Ok((codegen::emit(&lowered, &revision)?.len(), lowered.notices)));
        match generated {
            Ok((files, notices)) => {
                println!("ok      {place} ({files} files, {} notices)", notices.len());
            }
            Err(error) => {
                refused += 1;
                println!("refused {place}: {error:#}");
            }
        }
    }
    println!("{} versions, {refused} refused", versions.len());
    Ok(())
}

/// Returns the list entry of a draft with these bytes.
fn draft_revision(bytes: &[u8]) -> Revision {
    Revision {
        id: "draft".to_owned(),
        status: "draft".to_owned(),
        sha256: codegen::sha256(bytes),
    }
}

/// Adds and removes each version in a copy of the workspace, and an invented release if `has_release`; prints the outcome and the
/// time of each.
fn add_all(root: &Path, versions: &[Version], has_release: bool) -> anyhow::Result<()> {
    let scratch = Scratch::new(root)?;
    let schemas = Schemas::read(&root.join("schema"))?;
    let mut lines = Vec::new();
    let (mut refused, mut failed) = (0, 0);
    for version in versions {
        let accepted = schemas.lower_bytes(&draft_revision(&version.bytes), &version.bytes);
        let line = match accepted {
            Err(error) => {
                refused += 1;
                format!("refused       {}: {error:#}", version.name())
            }
            Ok(_) => match add_and_remove(&scratch, "draft", &version.bytes, Status::Draft) {
                Ok(trial) => {
                    format!(
                        "added {:5.1} s {}",
                        trial.time.as_secs_f64(),
                        version.name()
                    )
                }
                Err(error) => {
                    failed += 1;
                    scratch.restore()?;
                    format!("FAILED        {}: {error:#}", version.name())
                }
            },
        };
        println!("{line}");
        lines.push(line);
    }
    // Conversions are held against a release alone.
    if has_release {
        let invented = invented_schema(&newest_schema(root)?)?;
        let trial = add_and_remove(&scratch, REVISION, &invented, Status::Release);
        let trial = trial.with_context(|| format!("the release {REVISION} was not added"))?;
        let seconds = trial.time.as_secs_f64();
        let line = format!("added {seconds:5.1} s {REVISION}, a release");
        println!("{line}");
        lines.push(line);
    }
    println!("\n{}", lines.join("\n"));
    let accepted = versions.len() - refused;
    println!(
        "{} versions, {refused} refused by the generator; {} of {accepted} others added and removed",
        versions.len(),
        accepted - failed
    );
    ensure!(
        accepted > 0,
        "no version was added; name a clone with versions of {DRAFT_PATH}"
    );
    ensure!(
        failed == 0,
        "{failed} of {accepted} versions were not added; the lines above say why"
    );
    Ok(())
}

/// A revision that was added to a copy of the workspace and removed.
#[derive(Debug)]
pub struct Trial {
    /// Duration of `schema add`.
    pub time: Duration,
    /// What `schema add` tells a person to look at.
    pub review: Review,
    /// Contents of `docs/conversions.md` with the revision.
    pub conversions: String,
}

/// Adds a schema to the copy and removes it, and checks that every file is as before.
///
/// # Errors
/// Returns the error of the command that fails.
pub fn add_and_remove(
    scratch: &Scratch,
    id: &str,
    bytes: &[u8],
    status: Status,
) -> anyhow::Result<Trial> {
    let folder = scratch.root().join("target");
    fs::create_dir_all(&folder)?;
    let file = folder.join("rehearsed.json");
    fs::write(&file, bytes)?;
    let begun = Instant::now();
    let arguments = add::Arguments::of_file(id, &file, status);
    let added = add::add_revision(scratch.root(), &arguments);
    let time = begun.elapsed();
    let review = match added {
        Ok(Outcome::Added(review)) => *review,
        Ok(Outcome::SameBytes(same)) => bail!("{same} has the same bytes as {id}"),
        Err(error) => {
            scratch.check_unchanged("a failed `schema add`")?;
            return Err(error);
        }
    };
    let page = scratch.root().join(CONVERSIONS_PAGE);
    let conversions = fs::read_to_string(&page);
    let conversions =
        conversions.with_context(|| format!("`schema add` left no {}", page.display()));
    remove(scratch.root(), id)?;
    scratch.check_unchanged("`schema remove`")?;
    Ok(Trial {
        time,
        review,
        conversions: conversions?,
    })
}

/// Returns the versions that differ in more than descriptions, in their order; the first one of equal versions is kept.
fn distinct_versions(versions: Vec<Version>) -> Vec<Version> {
    let mut known = BTreeSet::new();
    let is_new = |version: &Version| {
        let structure = serde_json::from_slice::<Value>(&version.bytes);
        let structure = structure.map(|schema| without_descriptions(schema, false).to_string());
        known.insert(structure.unwrap_or_else(|_| codegen::sha256(&version.bytes)))
    };
    let mut is_new = is_new;
    versions.into_iter().filter(|one| is_new(one)).collect()
}

/// Returns a schema without descriptions, titles and comments. `is_table` is true for an object whose members are named by the
/// schema, such as `properties`.
pub(super) fn without_descriptions(schema: Value, is_table: bool) -> Value {
    match schema {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(name, _)| {
                is_table || !["description", "title", "$comment"].contains(&&**name)
            });
            let mut kept: Vec<(String, Value)> = kept
                .map(|(name, value)| {
                    let tables = ["properties", "definitions", "$defs"];
                    let below = !is_table && tables.contains(&&*name);
                    (name, without_descriptions(value, below))
                })
                .collect();
            kept.sort_by(|one, other| one.0.cmp(&other.0));
            kept.into_iter().collect()
        }
        Value::Array(items) => {
            let items = items.into_iter();
            items
                .map(|item| without_descriptions(item, false))
                .collect()
        }
        other => other,
    }
}

/// Returns `wanted` of the versions in their order, chosen by `seed`.
fn sample(mut versions: Vec<Version>, wanted: usize, seed: u64) -> Vec<Version> {
    // The generator of Knuth's MMIX; its upper bits are used.
    let mut state = seed;
    while versions.len() > wanted {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let at = (state >> 33) as usize % versions.len();
        versions.remove(at);
    }
    versions
}

/// Returns every distinct schema file of a clone, with the first commit that contains it, oldest first.
fn versions(clone: &Path) -> anyhow::Result<Vec<Version>> {
    let log = git_text(
        clone,
        &[
            "log",
            "--reverse",
            "--format=%H %cs",
            "HEAD",
            "--",
            "schema",
        ],
    )?;
    let mut known = BTreeMap::new();
    let mut versions = Vec::new();
    for (commit, date) in log.lines().filter_map(|line| line.split_once(' ')) {
        let tree = git_text(clone, &["ls-tree", "-r", commit, "schema"])?;
        for line in tree.lines() {
            let Some((about, path)) = line.split_once('\t') else {
                continue;
            };
            let blob = about.rsplit(' ').next().unwrap_or_default();
            let is_schema = path.rsplit('/').next() == Some("schema.json");
            if is_schema && known.insert(blob.to_owned(), ()).is_none() {
                versions.push(Version {
                    commit: commit.to_owned(),
                    path: path.to_owned(),
                    date: date.to_owned(),
                    bytes: git_bytes(clone, &["cat-file", "blob", blob])?,
                });
            }
        }
    }
    Ok(versions)
}

/// Runs git in a clone and returns its output as text.
fn git_text(clone: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    String::from_utf8(git_bytes(clone, arguments)?).context("git answers with text")
}

/// Runs git in a clone and returns its output.
fn git_bytes(clone: &Path, arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = git(clone, arguments).context("cannot start git; install it")?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!(
            "{} is not a clone of the official repository: {words}",
            clone.display()
        );
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a version with these contents.
    fn version(bytes: &str) -> Version {
        Version {
            commit: "0123456789".to_owned(),
            path: DRAFT_PATH.to_owned(),
            date: "2026-01-01".to_owned(),
            bytes: bytes.into(),
        }
    }

    /// Versions that differ in descriptions or in the order of members are one; a member that is called `description` counts.
    #[test]
    fn versions_differ_by_structure() {
        let texts = [
            r#"{"$defs":{"A":{"type":"object","description":"x"}}}"#,
            r#"{"$defs":{"A":{"description":"y","type":"object"}}}"#,
            r#"{"$defs":{"A":{"type":"object","properties":{"description":{}}}}}"#,
            r#"{"$defs":{"A":{"type":"object","properties":{"title":{}}}}}"#,
            "no JSON",
        ];
        let distinct = distinct_versions(texts.map(version).into());
        let distinct: Vec<&[u8]> = distinct.iter().map(|one| &*one.bytes).collect();
        assert_eq!(distinct, [0, 2, 3, 4].map(|at: usize| texts[at].as_bytes()));
    }

    /// A sample has the wanted size, and is the same for the same seed.
    #[test]
    fn samples_depend_on_the_seed() {
        let texts: Vec<String> = (0..50).map(|at| at.to_string()).collect();
        let chosen = |seed| -> Vec<Vec<u8>> {
            let all = texts.iter().map(|text| version(text)).collect();
            let sampled = sample(all, 3, seed);
            sampled.into_iter().map(|one| one.bytes).collect()
        };
        assert_eq!(chosen(1).len(), 3);
        assert_eq!(chosen(1), chosen(1));
        assert_ne!(chosen(1), chosen(2));
    }
}
