//! Links from the names in the guides to the documentation of the crates, which the site contains in the folder `api`.
//!
//! Reads the pages that rustdoc has written. A name in backticks that is an item, a member of an item or a module, such as
//! `Client::connect`, becomes a link; all other code stays as it is.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::markdown::{self, Part};

/// Folder of the documentation of the crates in the site.
pub const API_FOLDER: &str = "api";
/// Crates that are documented; where several have an item of one name, the first one is meant.
pub const CRATES: [&str; 9] = [
    "mcp_exact",
    "mcp_exact_transport",
    "mcp_exact_auth",
    "mcp_exact_redis",
    "mcp_exact_bridge",
    "mcp_exact_convert",
    "mcp_exact_session",
    "mcp_exact_revisions",
    "mcp_exact_wire",
];
/// Kinds of the ids of members on the page of an item.
const MEMBERS: [&str; 5] = [
    "method.",
    "tymethod.",
    "variant.",
    "structfield.",
    "associatedconstant.",
];

/// Names with their URLs, which are relative to the site.
pub struct Names {
    /// URLs of items and of their members.
    items: BTreeMap<String, String>,
    /// Folder into which rustdoc has written, with a folder for each module.
    documentation: PathBuf,
}

impl Names {
    /// Reads the names from the folder into which rustdoc has written.
    ///
    /// # Errors
    /// Returns an error if the documentation of a crate is missing.
    pub fn read(documentation: &Path) -> anyhow::Result<Self> {
        let mut names = BTreeMap::new();
        for library in CRATES {
            let folder = documentation.join(library);
            let list = folder.join("all.html");
            let list = fs::read_to_string(&list)
                .with_context(|| format!("cannot read {}", list.display()))?;
            for page in attributes(&list, "href=\"") {
                let Some(item) = Item::parse(library, page) else {
                    continue;
                };
                let url = format!("{API_FOLDER}/{library}/{page}");
                let html = fs::read_to_string(folder.join(page)).unwrap_or_default();
                let short = item.path.split_once("::").map_or("", |(_, path)| path);
                for name in [&*item.name, &item.path, short] {
                    for id in attributes(&html, "id=\"") {
                        let member = MEMBERS.iter().find_map(|kind| id.strip_prefix(kind));
                        // A method of two impl blocks has a number in its second id.
                        if let Some(member) = member {
                            let member = format!("{name}::{member}");
                            names.entry(member).or_insert(format!("{url}#{id}"));
                        }
                    }
                    names.entry(name.to_owned()).or_insert(url.clone());
                }
            }
        }
        Ok(Self {
            items: names,
            documentation: documentation.to_owned(),
        })
    }

    /// Returns a text in which names are links, except those that are links already.
    pub fn link(&self, text: &str) -> String {
        let mut linked = String::new();
        for part in markdown::parts(text) {
            let (Part::Code(text, _) | Part::Text(text) | Part::Target(text) | Part::Block(text)) =
                part;
            let url = match part {
                Part::Code(code, false) => self.url(code.trim_matches('`')),
                _ => None,
            };
            match url {
                Some(url) => linked += &format!("[{text}]({url})"),
                None => linked += text,
            }
        }
        linked
    }

    /// Returns the URL of a name: a type, a trait or a constant, a member of one, a function or a module with its path, or an
    /// attribute.
    fn url(&self, code: &str) -> Option<String> {
        let name = code.strip_suffix("(…)").or(code.strip_suffix("()"));
        let mut name = name.unwrap_or(code);
        if let Some(attribute) = code.strip_prefix("#[") {
            name = &code[..2 + attribute.find([']', '('])?];
        } else if !name.contains("::") && !name.starts_with(char::is_uppercase) {
            return None;
        }
        if let Some(url) = self.items.get(name) {
            return Some(url.clone());
        }
        let (library, _) = name.split_once("::")?;
        let page = format!("{}/index.html", name.replace("::", "/"));
        let is_module = CRATES.contains(&library) && self.documentation.join(&page).exists();
        is_module.then(|| format!("{API_FOLDER}/{page}"))
    }
}

/// Item that has a page.
struct Item {
    /// Name by itself; of an attribute `#[` and its name.
    name: String,
    /// Path with the crate.
    path: String,
}

impl Item {
    /// Returns the item of a page of a crate, such as `testing/fn.record.html`; `None` for other pages.
    fn parse(library: &str, page: &str) -> Option<Self> {
        let (modules, file) = page.rsplit_once('/').unwrap_or(("", page));
        let (kind, name) = file.strip_suffix(".html")?.split_once('.')?;
        let module = match modules {
            "" => library.to_owned(),
            modules => format!("{library}::{}", modules.replace('/', "::")),
        };
        Some(Self {
            name: match kind {
                "attr" => format!("#[{name}"),
                _ => name.to_owned(),
            },
            path: format!("{module}::{name}"),
        })
    }
}

/// Returns the values of an attribute in HTML; `start` is its name with the equals sign and the quotation mark.
pub fn attributes<'h>(html: &'h str, start: &str) -> impl Iterator<Item = &'h str> {
    let values = html.split(start).skip(1);
    values.filter_map(|rest| rest.split('"').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names become links, other code and code that is a link do not.
    #[test]
    fn names_become_links() {
        let urls = [
            ("Client", "api/mcp_exact/struct.Client.html"),
            (
                "Client::connect",
                "api/mcp_exact/struct.Client.html#method.connect",
            ),
            ("#[tool", "api/mcp_exact/attr.tool.html"),
            ("record", "api/mcp_exact/testing/fn.record.html"),
        ];
        let urls = urls.map(|(name, url)| (name.to_owned(), url.to_owned()));
        let documentation = tempfile::tempdir().expect("a folder");
        let module = documentation.path().join("mcp_exact/testing");
        fs::create_dir_all(&module).expect("a folder");
        fs::write(module.join("index.html"), "").expect("a page");
        let names = Names {
            items: urls.into_iter().collect(),
            documentation: documentation.path().to_owned(),
        };
        let text = "a `Client`, `Client::connect(…)`, `#[tool(task)]`, [`Client`](x.md), `record`, `Other`, `mcp_exact::testing`\n```\n`Client`\n```\n";
        let expected = "a [`Client`](api/mcp_exact/struct.Client.html), \
            [`Client::connect(…)`](api/mcp_exact/struct.Client.html#method.connect), \
            [`#[tool(task)]`](api/mcp_exact/attr.tool.html), [`Client`](x.md), `record`, `Other`, \
            [`mcp_exact::testing`](api/mcp_exact/testing/index.html)\n```\n`Client`\n```\n";
        assert_eq!(names.link(text), expected);
    }
}
