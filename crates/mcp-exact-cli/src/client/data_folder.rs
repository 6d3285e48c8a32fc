//! Folder for what the program keeps between runs.

use std::path::PathBuf;

/// Returns the folder for what the program keeps between runs (XDG Base Directory Specification).
pub fn data_folder() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let data = set("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".local/share")))?;
    Some(data.join("mcp-exact"))
}
