//! Checks the pages of the documentation site, as the book shows them: `SUMMARY.md` lists each page once, doc tests compile
//! the Rust blocks, and each link leads somewhere, in included files too.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use xtask::book::pages::{self, Page};
use xtask::workspace_root;

/// Names of the files in the folder that are no pages.
const OTHER_FILES: [&str; 2] = ["SUMMARY.md", "llms.txt"];

/// Returns the pages with the files that they include.
fn read_pages() -> Vec<Page> {
    pages::read(&workspace_root()).expect("the pages")
}

/// `SUMMARY.md` links to exactly the pages in the folder.
#[test]
fn summary_lists_every_page() {
    let pages = read_pages();
    let summary = pages.iter().find(|page| page.name == "SUMMARY.md");
    let summary = &summary.expect("a summary").text;
    let listed = summary.split("](").skip(1);
    let listed: BTreeSet<&str> = listed.filter_map(|rest| rest.split(')').next()).collect();
    let names = pages.iter().map(|page| page.name.as_str());
    let names: BTreeSet<&str> = names.filter(|name| !OTHER_FILES.contains(name)).collect();
    assert_eq!(listed, names);
}

/// Every file with a Rust block that a page shows is included in `src/lib.rs`, whose doc tests compile the block.
#[test]
fn all_rust_blocks_are_compiled() {
    let root = workspace_root();
    let tested = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let tested = fs::read_to_string(tested).expect("the list of pages");
    for file in read_pages().iter().flat_map(|page| &page.files) {
        let text = fs::read_to_string(root.join(file)).expect("a page");
        if text.lines().any(|line| line.starts_with("```rust")) {
            let included = format!("/{}\")", file.display());
            assert!(tested.contains(&included), "{included} is in src/lib.rs");
            assert!(!text.contains("```rust,ignore"), "{}", file.display());
        }
    }
}

/// Every link leads to a page and to a heading of the book, to a file of the repository, or to another site.
#[test]
fn links_and_includes_resolve() {
    let dead = pages::dead_links(&workspace_root(), &read_pages()).expect("the links");
    assert!(dead.is_empty(), "links lead nowhere:\n{}", dead.join("\n"));
}
