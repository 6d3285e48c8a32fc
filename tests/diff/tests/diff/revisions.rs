//! Representations of the revisions that the tests compare.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use codegen::Tables;
use mcp_exact_model::Ir;

/// Returns the revisions of the workspace, oldest first, or the revisions in the schema folders of `MCP_EXACT_SCHEMAS`,
/// which are separated as in `PATH`.
pub fn all() -> &'static [Ir] {
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

/// Returns a revision, if it exists.
pub fn get(id: &str) -> Option<&'static Ir> {
    all().iter().find(|ir| ir.revision == id)
}

/// Reads the revisions of a schema folder.
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
    revisions.iter().map(lower).collect()
}
