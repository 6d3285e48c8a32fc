//! Checks that the files that `ARCHITECTURE.md` names exist.

use std::fs;
use std::path::{Path, PathBuf};

use xtask::workspace_root;

/// Ends of names that are files.
const ENDINGS: [&str; 7] = [".rs", ".toml", ".md", ".json", ".jsonl", ".txt", ".yaml"];

/// Folders below which a row may name a file: the root, and the sources of all packages.
fn bases(root: &Path) -> Vec<PathBuf> {
    let mut bases = vec![root.to_owned()];
    for folder in ["", "crates", "tests", "examples"] {
        let entries = fs::read_dir(root.join(folder)).expect("a folder");
        let packages = entries.map(|entry| entry.expect("an entry").path());
        for package in packages.filter(|path| path.join("Cargo.toml").exists()) {
            bases.push(package.join("src"));
            bases.push(package);
        }
    }
    bases
}

/// Returns the text between backticks that looks like a path, such as `core/streams.rs` or `codegen/src/emit/`.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    let quoted = line.split('`').skip(1).step_by(2);
    quoted.filter(|text| {
        let is_file = ENDINGS.iter().any(|ending| text.ends_with(ending));
        let is_folder = text.ends_with('/') && !text.contains("://");
        (is_file || is_folder) && !text.contains(['<', '*', ' ', '{'])
    })
}

/// Every path of the file leads to a file or folder: below the root, or below the sources of a package.
#[test]
fn all_paths_exist() {
    let root = workspace_root();
    let bases = bases(&root);
    let text = fs::read_to_string(root.join("ARCHITECTURE.md")).expect("the file");
    let named: Vec<&str> = text.lines().flat_map(paths).collect();
    assert!(named.len() > 150, "{} paths", named.len());
    let missing = |path: &&str| !bases.iter().any(|base| base.join(path).exists());
    let missing: Vec<&str> = named.into_iter().filter(missing).collect();
    assert_eq!(missing, [""; 0]);
}
