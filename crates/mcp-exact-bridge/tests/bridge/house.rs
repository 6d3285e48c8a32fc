//! The folders of the crate import in one direction.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders from the top to the ground: each imports those that follow.
const FOLDERS: [&str; 4] = ["clients", "route", "servers", "around"];

/// Returns the files of a folder and of those in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let files = paths.flat_map(|path| {
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    });
    files.collect()
}

/// No file imports from a folder above its own: configuration and rules know no server, servers no request, and requests no
/// entrance of clients.
#[test]
fn folders_import_downwards() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for (place, folder) in FOLDERS.iter().enumerate() {
        let files = files(&source.join(folder));
        assert!(!files.is_empty(), "{folder}");
        for file in files {
            let text = fs::read_to_string(&file).expect("a file");
            for above in &FOLDERS[..place] {
                let is_above = text.contains(&format!("crate::{above}::"));
                assert!(!is_above, "{} imports from {above}/", file.display());
            }
        }
    }
}
