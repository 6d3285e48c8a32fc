//! Checks the links in the HTML of the built site: each leads to a file of the site, and to an id in it. Reads the pages of
//! the book and the pages that they link to; the documentation of the crates is rustdoc's, and is read as a target alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::names::attributes;

/// Page for addresses that do not exist, whose links are relative to the root of the host.
const NOT_FOUND_PAGE: &str = "404.html";

/// Returns the links of the pages of a site that lead nowhere, each with its page.
///
/// # Errors
/// Returns an error if a page cannot be read.
pub fn dead_links(site: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut dead = BTreeSet::new();
    let mut ids = BTreeMap::new();
    for entry in fs::read_dir(site).context("cannot list the site")? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !name.ends_with(".html") || name == NOT_FOUND_PAGE {
            continue;
        }
        let html = fs::read_to_string(&path)?;
        for link in attributes(&html, " href=\"").chain(attributes(&html, " src=\"")) {
            let link = link.replace("&amp;", "&");
            if link.contains(':') || link.starts_with("//") {
                continue;
            }
            let (target, id) = link.split_once('#').unwrap_or((&link, ""));
            let target = target.split('?').next().unwrap_or_default();
            let target = if target.is_empty() { &name } else { target };
            if !has_id(&mut ids, site.join(target), id) {
                dead.insert(format!("{name}: {link}"));
            }
        }
    }
    Ok(dead)
}

/// Returns true if a file exists, and has an element with this id unless the id is empty. `ids` keeps those of each file.
fn has_id(ids: &mut BTreeMap<PathBuf, BTreeSet<String>>, file: PathBuf, id: &str) -> bool {
    if id.is_empty() {
        return file.is_file() || file.join("index.html").is_file();
    }
    let ids = ids.entry(file).or_insert_with_key(|file| {
        let html = fs::read_to_string(file).unwrap_or_default();
        attributes(&html, "id=\"").map(str::to_owned).collect()
    });
    ids.contains(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files and ids that do not exist are found; other sites are not followed.
    #[test]
    fn dead_links_are_found() {
        let site = tempfile::tempdir().expect("a folder");
        let page = r##"<h1 id="a"><a href="#a"><a href="#b"><a href="two.html#c"><a href="two.html?d#e"><a href="three.html">
            <img src="four.svg"><a href="https://example.com/five">"##;
        fs::write(site.path().join("one.html"), page).expect("a page");
        fs::write(site.path().join("two.html"), r#"<p id="c">"#).expect("a page");
        let expected = [
            "one.html: #b",
            "one.html: four.svg",
            "one.html: three.html",
            "one.html: two.html?d#e",
        ];
        let dead = dead_links(site.path()).expect("a check");
        assert_eq!(dead.into_iter().collect::<Vec<_>>(), expected);
    }
}
