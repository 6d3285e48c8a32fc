//! Files of skills: what is read of each, and the trace by which a later change is noticed.
//!
//! A file is opened without following a link, and is refused if it is another one than was found before.

use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::definition::Resource;
use crate::skills::{MAX_SKILL_BYTES, digest_of};

/// Reason why a folder of skills cannot be served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FolderError {
    /// File or directory that is wrong.
    pub(super) path: PathBuf,
    /// What is wrong, and what to do.
    pub(super) reason: String,
}

impl FolderError {
    pub(super) fn new(path: &Path, reason: impl ToString) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }
}

/// Resolution of file times: another change within this time may leave the modification time of a file as it is.
const RACE_TIME: Duration = Duration::from_secs(2);

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
pub(super) struct Trace {
    pub(super) size: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    changed: (i64, i64),
    /// Numbers of the device and of the file.
    #[cfg(unix)]
    number: (u64, u64),
}

impl Trace {
    pub(super) fn of(metadata: &Metadata) -> Self {
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
    pub(super) fn is_racy(&self, now: SystemTime) -> bool {
        let settled = |time: SystemTime| match now.duration_since(time) {
            Ok(age) => age > RACE_TIME,
            Err(ahead) => ahead.duration() > RACE_TIME,
        };
        !self.modified.is_some_and(settled)
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
    pub(super) fn read(
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
    pub(super) fn size(&self) -> u64 {
        match &self.content {
            FileContent::Text(text) => text.len() as u64,
            FileContent::Blob(bytes) => bytes.len() as u64,
        }
    }
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
