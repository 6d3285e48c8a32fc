//! Intermediate representations of the revisions that the tests compare.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use codegen::Tables;
use mcp_exact_model::Ir;

/// Returns the representations of the revisions, oldest first: from the schema folders in `MCP_EXACT_SCHEMAS`, which
/// are separated as in `PATH`, or by default from the workspace.
pub fn all() -> &'static [Ir] {
    /// Representations of the revisions, which are read at the first call.
    static ALL: OnceLock<Vec<Ir>> = OnceLock::new();
    ALL.get_or_init(|| {
        let folders: Vec<PathBuf> = match std::env::var_os("MCP_EXACT_SCHEMAS") {
            Some(folders) => std::env::split_paths(&folders).collect(),
            None => vec![PathBuf::from(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../schema"
            ))],
        };
        folders.iter().flat_map(|folder| lower(folder)).collect()
    })
}

/// Returns the representation of a revision; `None` if the revision does not exist.
pub fn get(id: &str) -> Option<&'static Ir> {
    all().iter().find(|ir| ir.revision == id)
}

/// Reads the representations of the revisions in a schema folder.
fn lower(folder: &Path) -> Vec<Ir> {
    let read = |name: &str| {
        let file = folder.join(name);
        fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
    };
    let (errata, names) = (read("errata.toml"), read("names.toml"));
    let tables = Tables {
        errata: &errata,
        names: &names,
    };
    let revisions = codegen::revisions(&read("revisions.toml")).expect("a list of revisions");
    let lower = |revision: &codegen::Revision| {
        let schema = read(&format!("{}/schema.json", revision.id));
        let lowered = codegen::lower(revision, schema.as_bytes(), tables);
        lowered.expect("a known schema").ir.ir
    };
    // What changes from a draft to a release, such as a name, is not decided yet.
    let released = revisions.iter().filter(|revision| !revision.is_draft());
    released.map(lower).collect()
}
