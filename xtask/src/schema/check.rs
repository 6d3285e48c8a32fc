//! `cargo xtask schema check`: compares the vendored schema files with the official repositories.
//!
//! Uses given clones, or clones the URLs in the lists; prints new revisions and extension versions, amended files
//! and whether errata cover the changes, and changed drafts. Writes nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use codegen::{Revision, Tables};
use serde::Deserialize;
use serde_json::Value;

use super::origin::{self, git};

/// Fields of `schema/revisions.toml` that this task needs.
#[derive(Deserialize)]
struct Index {
    /// URL of the official repository.
    upstream_repository: String,
    /// Listed revisions.
    revision: Vec<ListedRevision>,
}

/// Revision that `schema/revisions.toml` lists, or the corresponding fields of an extension.
#[derive(Deserialize)]
struct ListedRevision {
    /// Fields that the generator reads.
    #[serde(flatten)]
    revision: Revision,
    /// Path of the file in the repository.
    upstream_path: Option<String>,
    /// Commit up to which changes of the file were reviewed.
    upstream_reviewed: Option<String>,
}

/// Fields of `schema/extensions.toml` that this task needs.
#[derive(Deserialize)]
struct Extensions {
    /// Listed extensions.
    #[serde(default)]
    extension: Vec<ListedExtension>,
}

/// Extension that `schema/extensions.toml` lists.
#[derive(Deserialize)]
struct ListedExtension {
    /// Fields that revisions have too.
    #[serde(flatten)]
    list_entry: ListedRevision,
    /// URL of the extension's repository.
    upstream_repository: String,
}

/// Locations of the repositories: `PLACE` for the repository of the revisions, `ID=PLACE` for the repository of an
/// extension.
struct Places<'p>(&'p [String]);

impl Places<'_> {
    /// Returns the location of the repository of the revisions.
    fn of_revisions(&self) -> Option<&str> {
        let mut places = self.0.iter().filter(|place| !is_of_extension(place));
        places.next().map(String::as_str)
    }

    /// Returns the location of the repository of an extension.
    fn of_extension(&self, id: &str) -> Option<&str> {
        let mut places = self.0.iter().filter_map(|place| place.split_once('='));
        places
            .find(|(known, _)| *known == id)
            .map(|(_, place)| place)
    }
}

/// Returns true for a location such as `ext-tasks=PLACE`; URLs and paths do not have this format.
fn is_of_extension(place: &str) -> bool {
    place.starts_with("ext-") && place.contains('=')
}

/// Option of `schema check` that names a clone.
const UPSTREAM: &str = "--upstream";

/// Compares the files; the error contains hints for each difference.
///
/// # Errors
/// Returns an error if a revision or version is new, a file was amended, or a repository does not exist.
pub fn check(root: &Path, upstream: &[String]) -> anyhow::Result<()> {
    let places = Places(upstream);
    let folder = root.join("schema");
    let read = |name: &str| {
        fs::read_to_string(folder.join(name)).with_context(|| format!("cannot read schema/{name}"))
    };
    let index: Index = toml::from_str(&read("revisions.toml")?)?;
    let (errata, names) = (read("errata.toml")?, read("names.toml")?);
    let tables = Tables {
        errata: &errata,
        names: &names,
    };
    let place = places.of_revisions().unwrap_or(&index.upstream_repository);
    let scratch = tempfile::tempdir().context("cannot make a temporary directory; check TMPDIR")?;
    let clone = clone(place, &scratch.path().join("revisions"), UPSTREAM)?;
    let mut to_do = unlisted_revisions(&clone, &index)?;
    for listed in &index.revision {
        let bytes = read_vendored(&folder, listed)?;
        let corrected = || codegen::corrected_schema(&listed.revision, &bytes, tables);
        to_do.extend(amendment_hint(&clone, listed, &bytes, corrected)?);
    }
    println!("{}", draft_status(&clone, &index)?);
    let extensions = match read("extensions.toml") {
        Ok(text) => toml::from_str::<Extensions>(&text)?.extension,
        // A folder without extensions has no `extensions.toml`.
        Err(_) => Vec::new(),
    };
    for extension in &extensions {
        let listed = &extension.list_entry;
        let id = &listed.revision.id;
        let place = places.of_extension(id);
        let place = place.unwrap_or(&extension.upstream_repository);
        let scratch = scratch.path().join(id);
        let clone = self::clone(place, &scratch, UPSTREAM)?;
        let bytes = read_vendored(&folder, listed)?;
        let corrected = || codegen::corrected_extension(&listed.revision, &bytes, tables);
        to_do.extend(amendment_hint(&clone, listed, &bytes, corrected)?);
        to_do.extend(unlisted_versions(&clone, listed)?);
        println!("{id}: compared with {place}");
    }
    for line in &to_do {
        println!("{line}");
    }
    if to_do.is_empty() {
        println!("nothing is new in {place}");
        return Ok(());
    }
    bail!("{} of the lines above need work", to_do.len())
}

/// Returns the URL of the official repository in `schema/revisions.toml`.
///
/// # Errors
/// Returns an error if the list cannot be read.
pub(super) fn upstream_repository(root: &Path) -> anyhow::Result<String> {
    let path = root.join("schema/revisions.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let index: Index = toml::from_str(&text)?;
    Ok(index.upstream_repository)
}

/// Returns the path of a local clone, or clones a URL; `option` is the one that names a clone instead.
pub(super) fn clone(place: &str, scratch: &Path, option: &str) -> anyhow::Result<PathBuf> {
    if !place.starts_with("http://") && !place.starts_with("https://") {
        let place = origin::find_git_directory(place);
        git_output(&place, &["rev-parse", "HEAD"]).with_context(|| {
            format!(
                "{} is not a clone of the official repository",
                place.display()
            )
        })?;
        return Ok(place);
    }
    let status = Command::new("git")
        .args([
            "clone",
            "--quiet",
            "--filter=blob:none",
            "--no-checkout",
            "--",
            place,
        ])
        .arg(scratch)
        .status()
        .context("cannot start git; install it")?;
    if !status.success() {
        bail!("git cannot clone {place}; check the connection, or name a clone with {option}");
    }
    Ok(scratch.to_owned())
}

/// Returns the revisions in the official repository that the list does not contain.
fn unlisted_revisions(clone: &Path, index: &Index) -> anyhow::Result<Vec<String>> {
    let listed = git_output(clone, &["ls-tree", "-d", "--name-only", "HEAD", "schema/"])?;
    let listed = listed
        .lines()
        .filter_map(|path| path.strip_prefix("schema/"));
    let known = |id: &str| index.revision.iter().any(|listed| listed.revision.id == id);
    Ok(listed
        .filter(|id| *id != "draft" && !known(id))
        .map(|id| format!("new revision {id}: run `cargo xtask schema add {id} --from <clone>`"))
        .collect())
}

/// Returns the versions of an extension in its repository that the list does not contain.
fn unlisted_versions(clone: &Path, extension: &ListedRevision) -> anyhow::Result<Vec<String>> {
    let id = &extension.revision.id;
    let own = extension.upstream_path.as_deref().unwrap_or_default();
    let files = git_output(clone, &["ls-tree", "-r", "--name-only", "HEAD", "schema/"])?;
    let schemas = files.lines().filter(|path| path.ends_with("/schema.json"));
    let others = schemas.filter(|path| *path != own && !path.starts_with("schema/draft/"));
    Ok(others
        .map(|path| {
            format!("new version {path} of {id}: run `cargo xtask schema add {id} --extends <revision> --from <file>`")
        })
        .collect())
}

/// Reads the vendored file.
fn read_vendored(folder: &Path, listed: &ListedRevision) -> anyhow::Result<Vec<u8>> {
    let id = &listed.revision.id;
    let file = folder.join(id).join("schema.json");
    fs::read(&file).with_context(|| {
        let file = file.display();
        format!("cannot read {file}; run `cargo xtask schema fetch {id}`")
    })
}

/// Returns a hint for a file that upstream has changed since its review.
fn amendment_hint(
    clone: &Path,
    listed: &ListedRevision,
    bytes: &[u8],
    corrected: impl Fn() -> codegen::Result<Value>,
) -> anyhow::Result<Option<String>> {
    let Some(path) = &listed.upstream_path else {
        return Ok(None);
    };
    let id = &listed.revision.id;
    let newest = git_output(clone, &["log", "-1", "--format=%H", "HEAD", "--", path])?;
    let newest = newest.trim();
    if newest.is_empty() {
        return Ok(Some(format!("{id}: {path} is gone upstream")));
    }
    if listed.upstream_reviewed.as_deref() == Some(newest) {
        return Ok(None);
    }
    let text = git_output(clone, &["show", &format!("HEAD:{path}")])?;
    let theirs: Value = serde_json::from_str(&text)
        .with_context(|| format!("{path} of commit {newest} is not JSON"))?;
    let ours: Value = serde_json::from_slice(bytes).context("the file here is not JSON")?;
    if ours == theirs && listed.upstream_reviewed.is_none() {
        return Ok(None);
    }
    let corrected = corrected()?;
    let mut places = Vec::new();
    differences(&ours, &theirs, "", &mut places);
    let is_open = |place: &&String| corrected.pointer(place) != theirs.pointer(place);
    let open: Vec<&String> = places.iter().filter(is_open).collect();
    let words = match open.as_slice() {
        [] => "errata cover all of it; set upstream_reviewed to that commit".to_owned(),
        [first, ..] => format!(
            "{} of {} changed places are in no erratum, the first is {first}",
            open.len(),
            places.len()
        ),
    };
    Ok(Some(format!("{id}: amended by {newest}: {words}")))
}

/// Collects the JSON pointers of the smallest values in which two documents differ.
fn differences(ours: &Value, theirs: &Value, pointer: &str, places: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let only_theirs = b.keys().filter(|key| !a.contains_key(*key));
            for key in a.keys().chain(only_theirs) {
                let token = key.replace('~', "~0").replace('/', "~1");
                let pointer = format!("{pointer}/{token}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => differences(a, b, &pointer, places),
                    _ => places.push(pointer),
                }
            }
        }
        _ if ours == theirs => {}
        _ => places.push(pointer.to_owned()),
    }
}

/// Returns a line about the draft, which is relevant only for users of the draft.
fn draft_status(clone: &Path, index: &Index) -> anyhow::Result<String> {
    let text = git(clone, &["show", "HEAD:schema/draft/schema.json"]);
    let Some(bytes) = text
        .filter(|o| o.status.success())
        .map(|output| output.stdout)
    else {
        return Ok("draft: there is none".to_owned());
    };
    let sha256 = codegen::sha256(&bytes);
    let mut revisions = index.revision.iter();
    let newest = git_output(
        clone,
        &[
            "log",
            "-1",
            "--format=%h of %cs",
            "HEAD",
            "--",
            "schema/draft/schema.json",
        ],
    )?;
    Ok(
        match revisions.find(|listed| listed.revision.sha256 == sha256) {
            Some(same) => format!("draft: the bytes of {}", same.revision.id),
            None => format!("draft: moved, newest commit {}", newest.trim()),
        },
    )
}

/// Runs git in a clone and returns its output.
fn git_output(clone: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = git(clone, arguments).context("cannot start git; install it")?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("git {} failed: {words}", arguments.join(" "));
    }
    String::from_utf8(output.stdout).context("git answers with text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Only the smallest values that differ are reported, by their JSON pointers, including added and removed members.
    #[test]
    fn differences_are_the_smallest_parts() {
        let mut places = Vec::new();
        let ours = json!({"a": {"b": 1, "c/d": 2}, "e": [1], "f": 1});
        let theirs = json!({"a": {"b": 1, "c/d": 3}, "e": [2], "g": 1});
        differences(&ours, &theirs, "", &mut places);
        assert_eq!(places, ["/a/c~1d", "/e", "/f", "/g"]);
    }
}
