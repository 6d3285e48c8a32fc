//! The pages of the documentation site as the book shows them: files that a page includes are part of its text, and the
//! links in them, which are relative to the file, become links of the book.
//!
//! A link to a file that is a page of the book, or a part of one, becomes a link to that page; all other files are links to
//! the repository. Reads `docs/book/src` and what it includes, writes nothing.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::Context;

use super::markdown;

/// Folder of the pages.
pub const PAGES_FOLDER: &str = "docs/book/src";
/// URL of the repository.
const REPOSITORY: &str = "https://github.com/mcp-exact/mcp-exact";
/// Beginning and end of an include, which has a line of its own.
const INCLUDE: (&str, &str) = ("{{#include ", "}}");
/// Files of the site that `cargo xtask book` generates.
const GENERATED_FILES: [&str; 1] = [super::REVISIONS_PAGE];

/// A page of the book.
#[derive(Debug)]
pub struct Page {
    /// File name in the folder of the pages.
    pub name: String,
    /// Text with the included files, whose links are those of the book.
    pub text: String,
    /// Paths of the page and of the included files, relative to the workspace.
    pub files: Vec<PathBuf>,
}

/// Reads all pages, sorted by name; `SUMMARY.md` is one of them.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn read(root: &Path) -> anyhow::Result<Vec<Page>> {
    let folder = Path::new(PAGES_FOLDER);
    let mut pages = Vec::new();
    for entry in fs::read_dir(root.join(folder)).context("cannot list the pages")? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if !is_text(&name) {
            continue;
        }
        let text = read_file(root, &folder.join(&name))?;
        let included = text.lines().filter_map(included_file);
        let included = included.map(|file| normalize(&folder.join(file)));
        let files = [folder.join(&name)].into_iter().chain(included).collect();
        pages.push(Page { name, text, files });
    }
    pages.sort_by(|one, other| one.name.cmp(&other.name));
    let texts = pages.iter().map(|page| expand(root, page, &pages));
    let texts: Vec<String> = texts.collect::<anyhow::Result<_>>()?;
    for (page, text) in pages.iter_mut().zip(texts) {
        page.text = text;
    }
    Ok(pages)
}

/// Returns the links of the pages that lead nowhere, each with its page: those to files and headings of the book, and to
/// files and headings of the repository. Links to other sites are not followed.
///
/// # Errors
/// Returns an error if a file of the repository cannot be read.
pub fn dead_links(root: &Path, pages: &[Page]) -> anyhow::Result<Vec<String>> {
    let mut dead = Vec::new();
    for page in pages {
        for link in markdown::links(&page.text) {
            if !is_alive(root, page, &link, pages)? {
                dead.push(format!("{}: {link}", page.name));
            }
        }
    }
    Ok(dead)
}

/// Returns true if a link of a page leads to a file and to a heading, or to another site.
fn is_alive(root: &Path, page: &Page, link: &str, pages: &[Page]) -> anyhow::Result<bool> {
    let (target, heading) = link.split_once('#').unwrap_or((link, ""));
    if let Some(rest) = target.strip_prefix(REPOSITORY) {
        let path = ["/blob/main/", "/tree/main/"].map(|kind| rest.strip_prefix(kind));
        let Some(path) = path.into_iter().flatten().next() else {
            return Ok(true);
        };
        if heading.is_empty() || !path.ends_with(".md") {
            return Ok(root.join(path).exists());
        }
        let text = fs::read_to_string(root.join(path)).unwrap_or_default();
        return Ok(markdown::headings(&text).contains(heading));
    }
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(true);
    }
    let target = if target.is_empty() {
        &page.name
    } else {
        target
    };
    if let Some(page) = pages.iter().find(|page| page.name == target) {
        return Ok(heading.is_empty() || markdown::headings(&page.text).contains(heading));
    }
    Ok(GENERATED_FILES.contains(&target) || root.join(PAGES_FOLDER).join(target).exists())
}

/// Returns true for the names of pages and of `llms.txt`, which has links too.
fn is_text(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| extension == "md" || extension == "txt")
}

/// Returns the path in a line that includes a file, relative to the folder of the pages.
fn included_file(line: &str) -> Option<&str> {
    line.trim().strip_prefix(INCLUDE.0)?.strip_suffix(INCLUDE.1)
}

/// Returns the text of a page with the included files.
fn expand(root: &Path, page: &Page, pages: &[Page]) -> anyhow::Result<String> {
    let mut text = String::new();
    for line in page.text.lines() {
        match included_file(line) {
            Some(file) => {
                let file = normalize(&Path::new(PAGES_FOLDER).join(file));
                let included = read_file(root, &file)?;
                text += &markdown::map_links(&included, |link| book_link(root, &file, link, pages));
            }
            None => {
                text += line;
                text.push('\n');
            }
        }
    }
    Ok(text)
}

/// Returns the link in the book for a link in an included file.
fn book_link(root: &Path, file: &Path, link: &str, pages: &[Page]) -> String {
    let (target, heading) = match link.split_once('#') {
        Some((target, heading)) => (target, format!("#{heading}")),
        None => (link, String::new()),
    };
    if target.is_empty() || target.contains(':') {
        return link.to_owned();
    }
    let folder = file.parent().unwrap_or(Path::new(""));
    let path = normalize(&folder.join(target));
    if let Some(page) = pages.iter().find(|page| page.files.contains(&path)) {
        return format!("{}{heading}", page.name);
    }
    let kind = if root.join(&path).is_dir() {
        "tree"
    } else {
        "blob"
    };
    let path = path.to_string_lossy().replace('\\', "/");
    format!("{REPOSITORY}/{kind}/main/{path}{heading}")
}

/// Returns a path without `.` and `..`, so far as it does not leave the workspace.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if normal.pop() => {}
            _ => normal.push(component),
        }
    }
    normal
}

/// Reads a file, whose path is relative to the workspace.
fn read_file(root: &Path, path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a workspace with these files.
    fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a folder");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        root
    }

    /// Links of an included file become links to pages of the book, or to the repository.
    #[test]
    fn links_of_included_files_change() {
        let root = workspace(&[
            (
                "docs/book/src/a.md",
                "# A\n[b](b.md)\n{{#include ../../one.md}}\n",
            ),
            ("docs/book/src/b.md", "{{#include ../../two.md}}\n"),
            (
                "docs/one.md",
                "[two](two.md#x) [here](#a) [there](../crates) [file](three.md) [web](https://example.com)\n\
                 ```text\n[two](two.md)\n```\n`[two](two.md)`\n",
            ),
            ("docs/two.md", "# X\n"),
            ("docs/three.md", ""),
            ("crates/a", ""),
        ]);
        let pages = read(root.path()).expect("the pages");
        let expected = "# A\n[b](b.md)\n\
            [two](b.md#x) [here](#a) [there](https://github.com/mcp-exact/mcp-exact/tree/main/crates) \
            [file](https://github.com/mcp-exact/mcp-exact/blob/main/docs/three.md) [web](https://example.com)\n\
            ```text\n[two](two.md)\n```\n`[two](two.md)`\n";
        assert_eq!(pages[0].text, expected);
        assert_eq!(dead_links(root.path(), &pages).expect("a check"), [""; 0]);
    }

    /// Files and headings that do not exist are found, in pages, in included files and in the repository.
    #[test]
    fn dead_links_are_found() {
        let root = workspace(&[
            (
                "docs/book/src/a.md",
                "# A `b`, c\n[1](c.md) [2](#a-b) [3](#a-b-c) [4](a.md#d)\n{{#include ../../one.md}}\n",
            ),
            (
                "docs/one.md",
                "[5](two.md) [6](https://github.com/mcp-exact/mcp-exact/blob/main/docs/one.md#y)\n",
            ),
        ]);
        let pages = read(root.path()).expect("the pages");
        let expected = [
            "a.md: c.md",
            "a.md: #a-b",
            "a.md: a.md#d",
            "a.md: https://github.com/mcp-exact/mcp-exact/blob/main/docs/two.md",
            "a.md: https://github.com/mcp-exact/mcp-exact/blob/main/docs/one.md#y",
        ];
        assert_eq!(dead_links(root.path(), &pages).expect("a check"), expected);
    }
}
