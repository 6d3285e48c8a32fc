//! Checks the pages of the documentation site: `SUMMARY.md` lists each page once, doc tests compile the Rust blocks,
//! and each link target and each included file exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Pages that `cargo xtask book` generates.
const GENERATED_PAGES: &[&str] = &["revisions-page.html"];

/// Returns the folder of the pages.
fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src")
}

/// Returns the paths of the pages; folders, which contain the scripts of pages, are skipped.
fn pages() -> Vec<PathBuf> {
    let files = fs::read_dir(source_folder()).expect("the pages are there");
    let files = files.map(|file| file.expect("a page").path());
    files.filter(|path| path.is_file()).collect()
}

/// Returns the text of a page; panics with the path if the file cannot be read.
fn read_page(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the targets of the Markdown links in a text, in order.
fn links(text: &str) -> Vec<&str> {
    let links = text.split("](").skip(1);
    links.filter_map(|rest| rest.split(')').next()).collect()
}

/// `SUMMARY.md` links to exactly the pages in the folder.
#[test]
fn summary_lists_every_page() {
    let summary = read_page(&source_folder().join("SUMMARY.md"));
    let listed: BTreeSet<String> = links(&summary).into_iter().map(str::to_owned).collect();
    let files = pages().into_iter().filter_map(|path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    });
    let files: BTreeSet<String> = files.filter(|name| name != "SUMMARY.md").collect();
    assert_eq!(listed, files);
}

/// Every page with a Rust block is included in `src/lib.rs`, whose doc tests compile the block.
#[test]
fn all_rust_blocks_are_compiled() {
    let tested = read_page(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs"));
    for path in pages() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if read_page(&path).contains("```rust") {
            assert!(
                tested.contains(&format!("/{name}\")")),
                "{name} is in src/lib.rs"
            );
        }
    }
}

/// Every relative link and every included file of a page exists.
#[test]
fn links_and_includes_resolve() {
    for path in pages() {
        let text = read_page(&path);
        let folder = path.parent().expect("it is in a folder");
        for link in links(&text) {
            let target = link.split('#').next().unwrap_or_default();
            let is_elsewhere = target.contains("://") || GENERATED_PAGES.contains(&target);
            if !is_elsewhere && !target.is_empty() {
                assert!(folder.join(target).exists(), "{}: {link}", path.display());
            }
        }
        for include in text.split("{{#include ").skip(1) {
            let target = include.split("}}").next().unwrap_or_default();
            assert!(folder.join(target).exists(), "{}: {target}", path.display());
        }
    }
}
