//! Lock file of the gateway: the definitions of tools that somebody has approved, with their hashes, one tool a line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Context, bail};
use mcp_exact_bridge::{PinPolicy, Pins};
use mcp_exact_tool_schema::canonical;
use mcp_exact_wire::{Json, JsonObject, ObjectRef};
use sha2::{Digest, Sha256};

use super::config::Pinned;

/// Version of the format.
const VERSION: &str = "1";

/// Canonical definitions of tools, by server and tool.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LockFile(pub BTreeMap<String, BTreeMap<String, JsonObject>>);

impl LockFile {
    /// Reads a lock file.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| {
            format!(
                "[pins] file: cannot read {}; `mcp-exact bridge pin` writes it",
                path.display()
            )
        })?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let lock: JsonObject = text.parse()?;
        let [version, servers] = lock.view().find_each(["version", "servers"]);
        if version.map(|version| version.text()) != Some(VERSION) {
            bail!(
                "this is not a lock file of version {VERSION}; write it by `mcp-exact bridge pin`"
            );
        }
        let servers = servers.and_then(|servers| servers.object());
        let servers =
            servers.context("`servers` is missing; write the file by `mcp-exact bridge pin`")?;
        let mut lock = Self::default();
        for (server, tools) in servers.iter() {
            let tools = tools.object().unwrap_or_default();
            let pinned = lock.0.entry(server.clone().into_owned()).or_default();
            for (tool, entry) in tools.iter() {
                let definition = entry.object().and_then(definition_of);
                let definition = definition.with_context(|| {
                    format!(
                        "{server}: {tool}: the hash is not that of the definition; write the file by `mcp-exact bridge pin`"
                    )
                })?;
                pinned.insert(tool.into_owned(), definition);
            }
        }
        Ok(lock)
    }

    /// Adds the definitions of a server's tools, as it sends them.
    pub fn insert(&mut self, server: &str, definitions: &[JsonObject]) {
        let pinned = self.0.entry(server.to_owned()).or_default();
        for definition in definitions {
            let name = definition.view().find("name");
            if let Some(name) = name.and_then(|name| Some(name.as_str()?.into_owned())) {
                pinned.insert(name, canonical(definition));
            }
        }
    }

    /// Writes the file, in the place of an earlier one. A link to a file stays one.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let folder = target
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let write = || {
            let mut builder = tempfile::Builder::new();
            // The gateway may run as another user; what tools offer is no secret.
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
            let mut file = builder.tempfile_in(folder.unwrap_or(Path::new(".")))?;
            if let Ok(earlier) = std::fs::metadata(&target) {
                file.as_file().set_permissions(earlier.permissions())?;
            }
            file.write_all(self.to_text().as_bytes())?;
            file.as_file().sync_all()?;
            file.persist(&target)?;
            anyhow::Ok(())
        };
        write().with_context(|| format!("[pins] file: cannot write {}", path.display()))
    }

    /// Returns the text of the file: a line for each tool, so that tools for comparing texts show which one has changed.
    fn to_text(&self) -> String {
        let quoted = |text: &str| Json::string(text).text().to_owned();
        let mut text = format!("{{\n\"version\":{VERSION},\n\"servers\":{{");
        for (index, (server, tools)) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let _ = write!(text, "{comma}\n{}:{{", quoted(server));
            for (index, (tool, definition)) in tools.iter().enumerate() {
                let comma = if index > 0 { "," } else { "" };
                let (tool, hash) = (quoted(tool), sha256(definition.text()));
                let _ = write!(
                    text,
                    "{comma}\n{tool}:{{\"sha256\":\"{hash}\",\"definition\":{}}}",
                    definition.text()
                );
            }
            text.push_str("\n}");
        }
        text.push_str("\n}\n}\n");
        text
    }

    /// Returns the definitions with a policy in the type of the bridge library.
    pub fn pins(&self, policy: PinPolicy) -> Pins {
        let mut pins = Pins::new(policy);
        for (server, tools) in &self.0 {
            for (tool, definition) in tools {
                pins.insert(server, tool, definition);
            }
        }
        pins
    }

    /// Returns the number of tools.
    pub fn count(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }
}

/// Returns the pins of a configuration, if it has any.
pub fn read_pins(pinned: Option<&Pinned>) -> anyhow::Result<Option<Pins>> {
    let Some(pinned) = pinned else {
        return Ok(None);
    };
    let lock = LockFile::read(&pinned.file)?;
    Ok(Some(lock.pins(pinned.policy.into())))
}

/// Returns the definition of an entry, if its hash is right.
fn definition_of(entry: ObjectRef<'_>) -> Option<JsonObject> {
    let [hash, definition] = entry.find_each(["sha256", "definition"]);
    let definition = canonical(&definition?.object()?.to_object());
    let is_right = hash?.as_str()? == sha256(definition.text()).as_str();
    is_right.then_some(definition)
}

/// Returns the SHA-256 hash of a text in hexadecimal digits.
pub fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> LockFile {
        let mut lock = LockFile::default();
        let tool = r#"{ "name": "re\"ad", "inputSchema": {"b": 1, "a": 1e400} }"#;
        lock.insert("files", &[tool.parse().expect("an object")]);
        lock.insert("none", &[]);
        lock
    }

    /// A lock file is read as it was written, and has each tool in a line of its own.
    #[test]
    fn lock_files_are_read_as_written() {
        let text = lock().to_text();
        assert_eq!(LockFile::parse(&text).expect("a lock file"), lock());
        assert!(text.contains("\n\"re\\\"ad\":{\"sha256\":\""), "{text}");
        assert!(
            text.contains(r#""definition":{"inputSchema":{"a":1e400,"b":1},"name":"re\"ad"}"#),
            "{text}"
        );
    }

    /// A lock file that is a link, such as one to a file of a repository, stays one.
    #[cfg(unix)]
    #[test]
    fn links_to_lock_files_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        std::fs::write(&file, "{}").expect("a file");
        std::os::unix::fs::symlink("file", &link).expect("a link");
        lock().write(&link).expect("written");
        assert!(link.is_symlink());
        let text = std::fs::read_to_string(&file).expect("a file");
        assert_eq!(text, lock().to_text());
    }

    /// A definition that was changed by hand is not what somebody has approved.
    #[test]
    fn edited_definitions_are_refused() {
        let text = lock().to_text().replace("1e400", "1e401");
        let error = LockFile::parse(&text).expect_err("another definition");
        assert!(
            error.to_string().contains("files: re\"ad: the hash"),
            "{error}"
        );
        for other in ["{}", r#"{"version":2,"servers":{}}"#, r#"{"version":1}"#] {
            LockFile::parse(other).expect_err(other);
        }
    }
}
