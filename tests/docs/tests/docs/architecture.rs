//! Checks that the files that `ARCHITECTURE.md` names exist, and an invariant that concerns several crates.

use std::fs;
use std::path::{Path, PathBuf};

use mcp_exact_revisions::MethodId;
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

/// Crates above the session.
const UPPER_CRATES: [&str; 6] = [
    "mcp-exact",
    "mcp-exact-auth",
    "mcp-exact-bridge",
    "mcp-exact-cli",
    "mcp-exact-redis",
    "mcp-exact-transport",
];

/// Returns the lines of a source file before its tests, with their numbers and without comments.
fn code_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let is_tests = |pair: &[&str]| {
        pair[0].starts_with("#[cfg(")
            && pair[0].contains("test")
            && pair[1].starts_with("mod tests")
    };
    let end = lines.windows(2).position(is_tests).unwrap_or(lines.len());
    let numbered = lines.into_iter().take(end).enumerate();
    let code = numbered.filter(|(_, line)| !line.trim_start().starts_with("//"));
    code.map(|(index, line)| (index + 1, line))
}

/// Adds the Rust files below a folder, without those that hold tests alone.
fn add_sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let is_tests = path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() && !is_tests {
            add_sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && !is_tests {
            found.push(path);
        }
    }
}

/// Above the session, a method is a `MethodId`, or a constant of `mcp_exact_revisions::method` where its name is sent: no line has
/// the name of a method as a literal. What the methods of a new revision need is found by the variants, not by a search for texts.
#[test]
fn methods_are_no_literals() {
    let root = workspace_root();
    let names = MethodId::KNOWN.iter().filter_map(|id| id.name());
    // A method that is one word may be a word of something else, too.
    let is_distinct = |name: &&str| name.contains('/') || ["initialize", "ping"].contains(name);
    let names = names.filter(is_distinct);
    let literals: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    let mut sources = Vec::new();
    for name in UPPER_CRATES {
        add_sources(&root.join("crates").join(name).join("src"), &mut sources);
    }
    assert!(sources.len() > 300, "{} files", sources.len());
    sources.sort();
    let mut found = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).expect("a source file");
        let shown = path
            .strip_prefix(&root)
            .expect("a path below the root")
            .display();
        for (number, line) in code_lines(&text) {
            if let Some(literal) = literals.iter().find(|literal| line.contains(&***literal)) {
                found.push(format!("{shown}:{number}: {literal}"));
            }
        }
    }
    assert_eq!(
        found, [""; 0],
        "match `MethodId`, or use the constants of `method`"
    );
}
