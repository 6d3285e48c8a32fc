//! A folder of skills, read once: every file with its digest, so that entries and contents agree.
//!
//! Only files that were found below the folder are served, by their URIs and not by paths of clients. Symbolic links are
//! refused, hidden files (`.name`) are left out, and sizes, numbers and depth are bounded.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::file::{FileContent, FolderError, ServedFile, Trace};
use crate::definition::Resource;
use crate::protocol::JsonObject;
use crate::skills::{
    MAX_FILES, MAX_SKILL_BYTES, SKILL_FILE, encode_path, is_skill_name, parse_frontmatter,
};

/// Maximum number of files and directories below the folder.
const MAX_ENTRIES: usize = 20_000;
/// Maximum depth of directories below the folder.
const MAX_DEPTH: usize = 32;

/// All skills of a folder at one time.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    /// Skills in the order of their URIs.
    pub(super) skills: Vec<Arc<ServedSkill>>,
    /// Places of the skills, by the URIs of their directories.
    roots: HashMap<String, usize>,
    /// Places of the skills inside of each skill.
    nested: Vec<Vec<usize>>,
    /// Names of all directories below the folder.
    directories: BTreeSet<Vec<String>>,
    /// Traces of all files below the folder, by which a change is noticed.
    traces: BTreeMap<PathBuf, Trace>,
    /// True if a file was changed so recently that another change may leave no trace.
    is_racy: bool,
}

/// Skill of a folder.
#[derive(Debug)]
pub(super) struct ServedSkill {
    /// URI of the `SKILL.md`.
    pub(super) uri: String,
    /// Definition of the resource `SKILL.md`.
    pub(super) resource: Resource,
    /// Entry as JSON text.
    pub(super) entry: Arc<str>,
    /// All files, in the order of their URIs.
    pub(super) files: Vec<Arc<ServedFile>>,
    /// URIs of all directories: that of the skill and those below it.
    pub(super) directories: Vec<String>,
}

/// Names below a folder.
#[derive(Default)]
struct Tree {
    /// Files, each with the names of its directories and its own.
    files: BTreeMap<Vec<String>, PathBuf>,
    /// Directories, the folder itself among them.
    directories: BTreeSet<Vec<String>>,
    traces: BTreeMap<PathBuf, Trace>,
}

impl Snapshot {
    /// Reads all skills of a folder. `root` has no symbolic links in it (`fs::canonicalize`), and `max_bytes` is the maximum
    /// size of all files together.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(super) fn read(root: &Path, max_bytes: u64) -> Result<Self, FolderError> {
        let now = SystemTime::now();
        let tree = Tree::read(root)?;
        let mut roots: Vec<&[String]> = Vec::new();
        for file in tree.files.keys() {
            if let Some((name, directory)) = file.split_last()
                && name == SKILL_FILE
            {
                roots.push(directory);
            }
        }
        // A folder that is a skill itself gives its own name to the skill.
        let prefix = match (roots.contains(&&[][..]), root.file_name()) {
            (true, name) => vec![utf8(root, name.unwrap_or_default().to_str())?.to_owned()],
            (false, _) => Vec::new(),
        };
        let of_roots: BTreeSet<&[String]> = roots.iter().copied().collect();
        let is_in_skill = |path: &[String]| {
            let mut above = 0..path.len();
            above.any(|length| of_roots.contains(&path[..length]))
        };
        let files = tree.files.iter().filter(|(names, _)| is_in_skill(names));
        let files: Vec<_> = files.collect();
        check_total(
            root,
            max_bytes,
            files.iter().filter_map(|(_, path)| tree.traces.get(*path)),
        )?;
        let (mut read, mut bytes) = (BTreeMap::new(), 0_u64);
        for (names, path) in files {
            let trace = tree.traces.get(path);
            let file = ServedFile::read(path, root, trace, &uri_of(&prefix, names))?;
            // The files may have grown since they were found.
            bytes = bytes.saturating_add(file.size());
            if bytes > max_bytes {
                return Err(too_large(root, bytes, max_bytes));
            }
            read.insert(names.clone(), Arc::new(file));
        }
        let mut skills = Vec::new();
        for directory in &roots {
            let is_nested = is_in_skill(directory);
            let path = directory
                .iter()
                .fold(root.to_owned(), |path, name| path.join(name));
            // What is below a directory follows it in the order of the names.
            let begin = (Bound::Included(*directory), Bound::Unbounded);
            let of_skill = read.range::<[String], _>(begin);
            let of_skill = of_skill.take_while(|(names, _)| names.starts_with(directory));
            let of_skill: Vec<_> = of_skill.map(|(_, file)| Arc::clone(file)).collect();
            let below = tree.directories.range::<[String], _>(begin);
            let below = below.take_while(|names| names.starts_with(directory));
            let below = below.map(|names| uri_of(&prefix, names)).collect();
            match ServedSkill::new(&path, &uri_of(&prefix, directory), of_skill, below) {
                Ok(skill) => skills.push(Arc::new(skill)),
                // "From the enclosing skill's perspective, […] a nested `SKILL.md` […] is ordinary markdown".
                Err(error) if is_nested => {
                    tracing::debug!(path = %error.path.display(), reason = error.reason, "no skill of its own");
                }
                Err(error) => return Err(error),
            }
        }
        skills.sort_by(|one, other| one.uri.cmp(&other.uri));
        let served = read.keys().filter_map(|names| tree.files.get(names));
        let mut served = served.filter_map(|path| tree.traces.get(path));
        let is_racy = served.any(|trace| trace.is_racy(now));
        let (roots, nested) = nesting(&skills);
        Ok(Self {
            skills,
            roots,
            nested,
            directories: tree.directories,
            traces: tree.traces,
            is_racy,
        })
    }

    /// Returns true if the folder may have changed since it was read.
    pub(super) fn may_differ(&self, root: &Path) -> bool {
        let is_same =
            |tree: Tree| tree.traces == self.traces && tree.directories == self.directories;
        self.is_racy || !Tree::read(root).is_ok_and(is_same)
    }

    /// Returns the place of the skill with the URI of its `SKILL.md`.
    pub(super) fn skill(&self, uri: &str) -> Option<usize> {
        let skills = &self.skills;
        skills
            .binary_search_by(|skill| skill.uri.as_str().cmp(uri))
            .ok()
    }

    /// Returns the place of the innermost skill that a file or a directory is in, by its URI.
    pub(super) fn owner(&self, uri: &str) -> Option<usize> {
        let mut directory = uri;
        loop {
            if let Some(place) = self.roots.get(directory) {
                return Some(*place);
            }
            directory = directory.rsplit_once('/')?.0;
        }
    }

    /// Returns the places of the skills inside of a skill.
    pub(super) fn nested(&self, place: usize) -> &[usize] {
        self.nested
            .get(place)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    /// Returns a file with the place of its innermost skill.
    pub(super) fn file(&self, uri: &str) -> Option<(usize, &Arc<ServedFile>)> {
        let place = self.owner(uri)?;
        let files = &self.skills.get(place)?.files;
        let found = files.binary_search_by(|file| file.uri.as_str().cmp(uri));
        Some((place, files.get(found.ok()?)?))
    }

    /// Returns the digests of all files by their URIs.
    pub(super) fn digests(&self) -> HashMap<&str, &str> {
        let files = self.skills.iter().flat_map(|skill| &skill.files);
        files
            .map(|file| (file.uri.as_str(), file.digest.as_str()))
            .collect()
    }

    /// Returns the entries of all skills, each with the URI of its skill.
    pub(super) fn entries_by_uri(&self) -> impl Iterator<Item = (&str, &str)> {
        let skills = self.skills.iter();
        skills.map(|skill| (skill.uri.as_str(), &*skill.entry))
    }

    /// Returns the entries of all skills.
    pub(super) fn entries(&self) -> Vec<&str> {
        self.skills.iter().map(|skill| &*skill.entry).collect()
    }
}

impl Tree {
    fn read(root: &Path) -> Result<Self, FolderError> {
        let mut tree = Self::default();
        tree.read_directory(root, &mut Vec::new())?;
        Ok(tree)
    }

    /// Reads the names in a directory, and in those below it.
    fn read_directory(&mut self, path: &Path, names: &mut Vec<String>) -> Result<(), FolderError> {
        if names.len() > MAX_DEPTH {
            let reason = format!("it is more than {MAX_DEPTH} directories deep");
            return Err(FolderError::new(path, reason));
        }
        self.directories.insert(names.clone());
        let failed =
            |error: std::io::Error| FolderError::new(path, format!("cannot be read: {error}"));
        for found in fs::read_dir(path).map_err(failed)? {
            let found = found.map_err(failed)?;
            let path = found.path();
            let name = utf8(&path, found.file_name().to_str())?.to_owned();
            if name.starts_with('.') {
                continue;
            }
            if self.files.len() + self.directories.len() > MAX_ENTRIES {
                let reason =
                    format!("the folder has more than {MAX_ENTRIES} files and directories");
                return Err(FolderError::new(&path, reason));
            }
            let failed = |error| FolderError::new(&path, format!("cannot be read: {error}"));
            let metadata = fs::symlink_metadata(&path).map_err(failed)?;
            names.push(name);
            if metadata.is_dir() {
                self.read_directory(&path, names)?;
            } else if metadata.is_file() {
                self.traces.insert(path.clone(), Trace::of(&metadata));
                self.files.insert(names.clone(), path);
            } else if metadata.is_symlink() {
                let reason = "it is a symbolic link, which is never followed; put the file or directory itself there";
                return Err(FolderError::new(&path, reason));
            } else {
                return Err(FolderError::new(
                    &path,
                    "it is neither a file nor a directory",
                ));
            }
            names.pop();
        }
        Ok(())
    }
}

impl ServedSkill {
    /// Creates a skill from its files, and checks what the Agent Skills specification prescribes.
    fn new(
        path: &Path,
        root: &str,
        mut files: Vec<Arc<ServedFile>>,
        directories: Vec<String>,
    ) -> Result<Self, FolderError> {
        let (uri, file) = (format!("{root}/{SKILL_FILE}"), path.join(SKILL_FILE));
        let wrong = |reason: String| FolderError::new(&file, reason);
        files.sort_by(|one, other| one.uri.cmp(&other.uri));
        let own = files.iter().find(|file| file.uri == uri);
        let text = match own.map(|own| &own.content) {
            Some(FileContent::Text(text)) => text,
            _ => return Err(wrong("it is not text in UTF-8".to_owned())),
        };
        let frontmatter = parse_frontmatter(text).map_err(wrong)?;
        let (name, description) = described(&frontmatter).map_err(wrong)?;
        let directory = root.rsplit('/').next().unwrap_or_default();
        if directory != name {
            return Err(wrong(format!(
                "its name is `{name}`, and its directory `{directory}`; give both the same name"
            )));
        }
        if files.len() > MAX_FILES {
            return Err(FolderError::new(
                path,
                format!(
                    "it has {} files, and clients accept {MAX_FILES}",
                    files.len()
                ),
            ));
        }
        let bytes: u64 = files.iter().map(|file| file.size()).sum();
        if bytes > MAX_SKILL_BYTES {
            return Err(FolderError::new(
                path,
                format!("its files have {bytes} bytes, and clients accept {MAX_SKILL_BYTES}"),
            ));
        }
        let resources = files
            .iter()
            .map(|file| json!({"uri": file.uri, "digest": file.digest, "size": file.size()}));
        let resources: Vec<Value> = resources.collect();
        let entry = json!({"uri": uri, "frontmatter": frontmatter, "resources": resources});
        let resource = Resource::new(&uri)
            .with_name(name)
            .description(description)
            .mime_type("text/markdown")
            .size(own.map_or(0, |own| own.size()));
        Ok(Self {
            entry: entry.to_string().into(),
            uri,
            resource,
            files,
            directories,
        })
    }

    /// Returns the URI of the directory.
    pub(super) fn root(&self) -> &str {
        let root = self.uri.strip_suffix(SKILL_FILE);
        root.and_then(|root| root.strip_suffix('/'))
            .unwrap_or(&self.uri)
    }

    /// Returns the definition of a file: that of `SKILL.md` has the name and the description of the skill.
    pub(super) fn definition_of(&self, file: &ServedFile) -> JsonObject {
        if file.uri == self.uri {
            self.resource.definition()
        } else {
            file.resource.definition()
        }
    }
}

/// Returns the places of the skills by the URIs of their directories, and the places of the skills inside of each one.
fn nesting(skills: &[Arc<ServedSkill>]) -> (HashMap<String, usize>, Vec<Vec<usize>>) {
    let roots = skills.iter().map(|skill| skill.root().to_owned());
    let roots: HashMap<String, usize> = roots.zip(0..).collect();
    let mut nested = vec![Vec::new(); skills.len()];
    for (place, skill) in skills.iter().enumerate() {
        let mut directory = skill.root();
        while let Some((above, _)) = directory.rsplit_once('/') {
            directory = above;
            if let Some(outer) = roots.get(directory) {
                nested[*outer].push(place);
            }
        }
    }
    (roots, nested)
}

/// Returns name and description of a frontmatter.
fn described(frontmatter: &Map<String, Value>) -> Result<(&str, &str), String> {
    let text = |name: &str| {
        let value = frontmatter.get(name).and_then(Value::as_str);
        value.ok_or_else(|| format!("the frontmatter has no `{name}`, or it is not text"))
    };
    let (name, description) = (text("name")?, text("description")?);
    if !is_skill_name(name) {
        return Err(format!(
            "`{name}` is not a name of a skill; use 1 to 64 lowercase letters, digits and single hyphens"
        ));
    }
    if description.trim().is_empty() || description.chars().count() > 1024 {
        return Err("the description has to have 1 to 1024 characters".to_owned());
    }
    Ok((name, description))
}

/// Checks the size of all files together.
fn check_total<'t>(
    root: &Path,
    max_bytes: u64,
    files: impl Iterator<Item = &'t Trace>,
) -> Result<(), FolderError> {
    let bytes = files.fold(0_u64, |bytes, trace| bytes.saturating_add(trace.size));
    if bytes > max_bytes {
        return Err(too_large(root, bytes, max_bytes));
    }
    Ok(())
}

/// Returns the error for a folder with more bytes than allowed.
fn too_large(root: &Path, bytes: u64, max_bytes: u64) -> FolderError {
    let reason = format!(
        "the skills have {bytes} bytes together, and the limit is {max_bytes}; raise it by `SkillFolder::max_bytes`"
    );
    FolderError::new(root, reason)
}

/// Returns a name, if it is UTF-8.
fn utf8<'n>(path: &Path, name: Option<&'n str>) -> Result<&'n str, FolderError> {
    name.ok_or_else(|| FolderError::new(path, "its name is not UTF-8"))
}

/// Returns the URI of a file or directory from the names below the folder.
fn uri_of(prefix: &[String], names: &[String]) -> String {
    let names = prefix.iter().chain(names);
    let names: Vec<String> = names.map(|name| encode_path(name)).collect();
    format!("skill://{}", names.join("/"))
}
