//! The folders of the crate import in one direction.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders from the top to the ground: each imports those that follow.
const FOLDERS: [&str; 5] = ["users", "clients", "route", "servers", "around"];

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

/// Each row of the table of attacks names a test that exists.
#[test]
fn attacks_have_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rows = include_str!("../attacks.md").lines();
    let rows: Vec<&str> = rows.filter(|line| line.contains(".rs` `")).collect();
    assert!(rows.len() > 20, "{rows:?}");
    for row in rows {
        let mut quoted = row.rsplit('`').skip(1).step_by(2);
        let (test, file) = (
            quoted.next().expect("a test"),
            quoted.next().expect("a file"),
        );
        let text = fs::read_to_string(root.join(file)).expect(file);
        let function = text.find(&format!("fn {test}() {{"));
        let before = &text[..function.unwrap_or_else(|| panic!("{file} has no {test}"))];
        let before = before.trim_end().trim_end_matches("async").trim_end();
        let attribute = before.lines().next_back();
        assert!(attribute.is_some_and(|line| line.contains("test")), "{row}");
    }
}
