//! A folder of skills, read once: every file with its digest, so that entries and contents agree.
//!
//! Only files that were found below the folder are served, by their URIs and not by paths of clients. Symbolic links are
//! refused, hidden files (`.name`) are left out, and sizes, numbers and depth are bounded.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value, json};

use crate::definition::Resource;
use crate::link::JsonObject;
use crate::skills::{
    MAX_FILES, MAX_SKILL_BYTES, SKILL_FILE, digest_of, encode_path, is_skill_name,
    parse_frontmatter,
};

/// Maximum number of files and directories below the folder.
const MAX_ENTRIES: usize = 20_000;
/// Maximum depth of directories below the folder.
const MAX_DEPTH: usize = 32;
/// Time after a change of a file in which another change may leave no trace in the file's times.
const RACE_TIME: Duration = Duration::from_secs(2);

/// Reason why a folder of skills cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FolderError {
    /// File or directory that is wrong.
    pub(super) path: PathBuf,
    /// What is wrong, and what to do.
    pub(super) reason: String,
}

impl FolderError {
    fn new(path: &Path, reason: impl ToString) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

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

/// File of a skill.
#[derive(Debug)]
pub(super) struct ServedFile {
    pub(super) uri: String,
    pub(super) content: FileContent,
    pub(super) digest: String,
    /// Definition of the resource.
    pub(super) resource: Resource,
}

/// Content of a file.
#[derive(Debug)]
pub(super) enum FileContent {
    Text(String),
    Blob(Vec<u8>),
}

/// What changes when a file changes: size, times, and on Unix the number of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Trace {
    size: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    changed: (i64, i64),
    /// Numbers of the device and of the file.
    #[cfg(unix)]
    number: (u64, u64),
}

impl Trace {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        Self {
            size: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            #[cfg(unix)]
            number: (metadata.dev(), metadata.ino()),
        }
    }

    /// Returns true if the metadata of an open file are those of the file that was found.
    fn is_of_file(&self, metadata: &Metadata) -> bool {
        #[cfg(unix)]
        {
            self.number == Self::of(metadata).number
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            true
        }
    }

    /// Returns true if the file was changed less than [`RACE_TIME`] before `now`. A time in the future is none of a later change.
    fn is_racy(&self, now: SystemTime) -> bool {
        let settled = |time: SystemTime| match now.duration_since(time) {
            Ok(age) => age > RACE_TIME,
            Err(ahead) => ahead.duration() > RACE_TIME,
        };
        !self.modified.is_some_and(settled)
    }
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

/// Opens a file to read it, but no symbolic link, and without waiting for the writer of a FIFO.
fn open(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;

        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
    }
    options.read(true).open(path)
}

impl ServedFile {
    /// Reads a file below `root`, which was found with this trace.
    fn read(
        path: &Path,
        root: &Path,
        found: Option<&Trace>,
        uri: &str,
    ) -> Result<Self, FolderError> {
        let failed =
            |error: std::io::Error| FolderError::new(path, format!("cannot be read: {error}"));
        let changed = || FolderError::new(path, "it has changed while it was read");
        let mut file = open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() || found.is_none_or(|found| !found.is_of_file(&metadata)) {
            return Err(changed());
        }
        let mut bytes = Vec::new();
        let mut limited = (&mut file).take(MAX_SKILL_BYTES + 1);
        limited.read_to_end(&mut bytes).map_err(failed)?;
        // A directory above it may have become a symbolic link since its name was read.
        let is_inside =
            fs::canonicalize(path).is_ok_and(|real| real == path && real.starts_with(root));
        if !is_inside {
            return Err(changed());
        }
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        let digest = digest_of(&bytes);
        let size = bytes.len() as u64;
        let content = match String::from_utf8(bytes) {
            Ok(text) => FileContent::Text(text),
            Err(error) => FileContent::Blob(error.into_bytes()),
        };
        let media_type = media_type(name, &content);
        let resource = Resource::new(uri)
            .with_name(name)
            .mime_type(media_type)
            .size(size);
        Ok(Self {
            uri: uri.to_owned(),
            content,
            digest,
            resource,
        })
    }

    /// Returns the size in bytes.
    fn size(&self) -> u64 {
        match &self.content {
            FileContent::Text(text) => text.len() as u64,
            FileContent::Blob(bytes) => bytes.len() as u64,
        }
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

/// Returns the media type of a file, from the end of its name.
fn media_type(name: &str, content: &FileContent) -> &'static str {
    let end = name
        .rsplit_once('.')
        .map_or("", |(_, end)| end)
        .to_ascii_lowercase();
    match (end.as_str(), content) {
        ("md" | "markdown", _) => "text/markdown",
        ("html" | "htm", _) => "text/html",
        ("css", _) => "text/css",
        ("csv", _) => "text/csv",
        ("js" | "mjs" | "cjs", _) => "text/javascript",
        ("py", _) => "text/x-python",
        ("sh" | "bash", _) => "application/x-sh",
        ("json", _) => "application/json",
        ("yaml" | "yml", _) => "application/yaml",
        ("toml", _) => "application/toml",
        ("xml", _) => "application/xml",
        ("svg", _) => "image/svg+xml",
        ("png", _) => "image/png",
        ("jpg" | "jpeg", _) => "image/jpeg",
        ("gif", _) => "image/gif",
        ("webp", _) => "image/webp",
        ("pdf", _) => "application/pdf",
        ("zip", _) => "application/zip",
        (_, FileContent::Text(_)) => "text/plain",
        (_, FileContent::Blob(_)) => "application/octet-stream",
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    /// A file that was exchanged for another one, a link or a FIFO since it was found is refused, and nothing waits for a writer.
    #[test]
    fn files_that_were_exchanged_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("a path");
        let (path, other) = (root.join("a.md"), root.join("other.md"));
        fs::write(&path, "a").expect("a file");
        let found = Trace::of(&fs::symlink_metadata(&path).expect("a file"));
        let read = || ServedFile::read(&path, &root, Some(&found), "skill://a/a.md");
        assert!(read().is_ok());
        fs::write(&other, "b").expect("a file");
        fs::rename(&other, &path).expect("exchanged");
        let error = read().expect_err("another file");
        assert!(error.reason.contains("changed"), "{error:?}");
        fs::write(&other, "c").expect("a file");
        fs::remove_file(&path).expect("removed");
        symlink(&other, &path).expect("a link");
        read().expect_err("a link");
        fs::remove_file(&path).expect("removed");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("mkfifo").success());
        read().expect_err("a FIFO");
    }
}
