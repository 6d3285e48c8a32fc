//! Edits `schema/revisions.toml` and `schema/extensions.toml`: adds or removes an entry, and preserves other entries
//! and all comments.

use anyhow::Context;
use codegen::{Lifecycle, PropertyValue};
use toml_edit::{ArrayOfTables, DocumentMut, InlineTable, Item, Table, value};

use super::source::{Registry, Source};

/// Names of the arrays of tables in the two lists.
const LISTS: [&str; 2] = ["revision", "extension"];

/// Fields of a new entry.
#[derive(Debug, Clone)]
pub struct Entry<'e> {
    /// Identifier of the revision.
    pub id: &'e str,
    /// True if the revision is a draft.
    pub draft: bool,
    /// JSON Schema dialect: `draft-07` or `2020-12`.
    pub dialect: &'e str,
    /// Handshake by which client and server establish the revision.
    pub lifecycle: Lifecycle,
    /// SHA-256 hash of the file.
    pub sha256: &'e str,
    /// Path of the file in the upstream repository.
    pub upstream_path: &'e str,
    /// Upstream commit, if known.
    pub upstream_commit: Option<&'e str>,
    /// Package with a copy of the file, if there is one.
    pub source: Option<&'e Source>,
    /// Date of retrieval, such as `2026-11-21`.
    pub retrieved: &'e str,
    /// Properties that the schema does not show, by the names of their accessors.
    pub properties: &'e [(&'static str, PropertyValue)],
}

impl Entry<'_> {
    /// Returns the entry as a table.
    fn table(&self) -> Table {
        let mut table = Table::new();
        table["id"] = value(self.id);
        table["status"] = value(status(self.draft));
        table["dialect"] = value(self.dialect);
        table["lifecycle"] = value(self.lifecycle.to_string());
        table["sha256"] = value(self.sha256);
        table["upstream_path"] = value(self.upstream_path);
        add_commit(&mut table, self.upstream_commit);
        add_source(&mut table, self.source);
        table["retrieved"] = value(self.retrieved);
        table["licence"] = value("MIT AND Apache-2.0");
        let mut properties = Table::new();
        for (name, property) in self.properties {
            properties[name] = match property {
                PropertyValue::Flag(flag) => value(*flag),
                PropertyValue::Code(code) => value(*code),
            };
        }
        properties.decor_mut().set_prefix("\n");
        table["properties"] = Item::Table(properties);
        table
    }
}

/// Fields of a new entry of `schema/extensions.toml`.
#[derive(Debug, Clone)]
pub struct ExtensionEntry<'e> {
    /// Identifier of the extension.
    pub id: &'e str,
    /// Revision that the extension extends.
    pub extends: &'e str,
    /// True if the extension is a draft.
    pub draft: bool,
    /// JSON Schema dialect: `draft-07` or `2020-12`.
    pub dialect: &'e str,
    /// SHA-256 hash of the file.
    pub sha256: &'e str,
    /// Repository of the extension.
    pub repository: &'e str,
    /// Path of the file in the repository.
    pub upstream_path: &'e str,
    /// Commit of the repository, if known.
    pub upstream_commit: Option<&'e str>,
    /// Package with a copy of the file, if there is one.
    pub source: Option<&'e Source>,
    /// Date of retrieval, such as `2026-11-21`.
    pub retrieved: &'e str,
    /// Licence of the file.
    pub licence: &'e str,
}

impl ExtensionEntry<'_> {
    /// Returns the entry as a table.
    fn table(&self) -> Table {
        let mut table = Table::new();
        table["id"] = value(self.id);
        table["extends"] = value(self.extends);
        table["status"] = value(status(self.draft));
        table["dialect"] = value(self.dialect);
        table["sha256"] = value(self.sha256);
        table["upstream_repository"] = value(self.repository);
        table["upstream_path"] = value(self.upstream_path);
        add_commit(&mut table, self.upstream_commit);
        add_source(&mut table, self.source);
        table["retrieved"] = value(self.retrieved);
        table["licence"] = value(self.licence);
        table
    }
}

/// Returns the value of `status`.
fn status(draft: bool) -> &'static str {
    if draft { "draft" } else { "release" }
}

/// Adds the upstream commit, as the reviewed commit too.
fn add_commit(table: &mut Table, commit: Option<&str>) {
    if let Some(commit) = commit {
        table["upstream_commit"] = value(commit);
        table["upstream_reviewed"] = value(commit);
    }
}

/// Adds the package with a copy of the file.
fn add_source(table: &mut Table, source: Option<&Source>) {
    if let Some(source) = source {
        let registry = match source.registry {
            Registry::Crates => "crates",
            Registry::Pypi => "pypi",
            Registry::Npm => "npm",
        };
        let members = [
            ("registry", registry),
            ("package", &source.package),
            ("version", &source.version),
            ("path", &source.path),
        ];
        table["source"] = value(InlineTable::from_iter(members));
    }
}

/// Returns the list of revisions with an additional entry: releases first, oldest first, then drafts.
///
/// # Errors
/// Returns an error if the list is not TOML.
pub fn add_entry(list: &str, entry: &Entry<'_>) -> anyhow::Result<String> {
    let mut document = parse(list)?;
    let mut list = EntryList::take_entries(&mut document, "revision");
    let at = list.insertion_index(entry.id, entry.draft);
    list.entries.insert(at, entry.table());
    list.put_entries(&mut document);
    Ok(document.to_string())
}

/// Returns the list of extensions with an additional entry at its end.
///
/// # Errors
/// Returns an error if the list is not TOML.
pub fn add_extension_entry(list: &str, entry: &ExtensionEntry<'_>) -> anyhow::Result<String> {
    let mut document = parse(list)?;
    let mut list = EntryList::take_entries(&mut document, "extension");
    list.entries.push(entry.table());
    list.put_entries(&mut document);
    Ok(document.to_string())
}

/// Returns the index that a new entry would have in the list of revisions.
///
/// # Errors
/// Returns an error if the list is not TOML.
pub fn insertion_index(list: &str, id: &str, draft: bool) -> anyhow::Result<usize> {
    Ok(EntryList::take_entries(&mut parse(list)?, "revision").insertion_index(id, draft))
}

/// Returns the list without the entry of a revision or extension; `None` if there is no such entry.
///
/// # Errors
/// Returns an error if the list is not TOML.
pub fn remove_entry(list: &str, id: &str) -> anyhow::Result<Option<String>> {
    for name in LISTS {
        let mut document = parse(list)?;
        let mut list = EntryList::take_entries(&mut document, name);
        let found = list
            .entries
            .iter()
            .position(|entry| string_member(entry, "id") == id);
        if let Some(at) = found {
            list.entries.remove(at);
            list.put_entries(&mut document);
            return Ok(Some(document.to_string()));
        }
    }
    Ok(None)
}

/// Parses a list.
fn parse(list: &str) -> anyhow::Result<DocumentMut> {
    let document = list.parse();
    document.context("the list is not TOML; restore it from version control")
}

/// Returns the value of a string member; empty if it is absent.
fn string_member<'e>(entry: &'e Table, key: &str) -> &'e str {
    entry.get(key).and_then(Item::as_str).unwrap_or_default()
}

/// Entries that were removed from a document for editing.
struct EntryList {
    /// Name of the array of tables.
    name: &'static str,
    /// Comment above the first entry, which describes the complete list.
    list_comment: String,
    /// Entries in order.
    entries: Vec<Table>,
}

impl EntryList {
    /// Removes the entries from a document.
    fn take_entries(document: &mut DocumentMut, name: &'static str) -> Self {
        let mut entries: Vec<Table> = match document.remove(name) {
            Some(Item::ArrayOfTables(entries)) => entries.into_iter().collect(),
            _ => Vec::new(),
        };
        let list_comment = if let Some(first) = entries.first_mut() {
            let list_comment = comment(first);
            first.decor_mut().clear();
            list_comment
        } else {
            let list_comment = document.trailing().as_str().unwrap_or_default().to_owned();
            document.set_trailing("");
            list_comment
        };
        Self {
            name,
            list_comment,
            entries,
        }
    }

    /// Returns the index of a new entry: releases by date, followed by drafts.
    fn insertion_index(&self, id: &str, draft: bool) -> usize {
        let is_later = |other: &Table| {
            let is_draft = string_member(other, "status") == status(true);
            !draft && (is_draft || string_member(other, "id") > id)
        };
        let later = self.entries.iter().position(is_later);
        later.unwrap_or(self.entries.len())
    }

    /// Inserts the entries into a document, in order and separated by blank lines.
    fn put_entries(mut self, document: &mut DocumentMut) {
        let Some(first) = self.entries.first_mut() else {
            document.set_trailing(self.list_comment);
            return;
        };
        let gap = if document.is_empty() { "" } else { "\n" };
        first
            .decor_mut()
            .set_prefix(format!("{gap}{}", self.list_comment));
        for entry in self.entries.iter_mut().skip(1) {
            let comment = comment(entry);
            entry.decor_mut().set_prefix(format!("\n{comment}"));
        }
        for (at, entry) in (0..).zip(&mut self.entries) {
            entry.set_position(Some(2 * at));
            for (_, member) in entry.iter_mut() {
                if let Item::Table(properties) = member {
                    properties.set_position(Some(2 * at + 1));
                }
            }
        }
        let entries = ArrayOfTables::from_iter(self.entries);
        document.insert(self.name, Item::ArrayOfTables(entries));
    }
}

/// Returns the comment above an entry, without leading blank lines.
fn comment(entry: &Table) -> String {
    let prefix = entry.decor().prefix().and_then(|prefix| prefix.as_str());
    prefix
        .unwrap_or_default()
        .trim_start_matches('\n')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// List with a comment and two entries.
    const LIST: &str = "# words\n\n[[revision]]\nid = \"2024\"\nstatus = \"release\"\n\n[[revision]]\nid = \"x\"\nstatus = \"draft\"\n";

    /// Returns an entry with this identifier.
    fn new_entry(id: &str, draft: bool) -> Entry<'_> {
        Entry {
            id,
            draft,
            dialect: "2020-12",
            lifecycle: Lifecycle::Discover,
            sha256: "00",
            upstream_path: "p",
            upstream_commit: Some("c"),
            source: None,
            retrieved: "2026-11-21",
            properties: &[("has_wings", PropertyValue::Flag(true))],
        }
    }

    /// Returns an entry of an extension with this identifier.
    fn extension(id: &str) -> ExtensionEntry<'_> {
        ExtensionEntry {
            id,
            extends: "2025",
            draft: true,
            dialect: "2020-12",
            sha256: "00",
            repository: "https://example.com/ext",
            upstream_path: "p",
            upstream_commit: None,
            source: None,
            retrieved: "2026-11-21",
            licence: "MIT",
        }
    }

    /// Returns the identifiers in the order of a list.
    fn entry_order(list: &str) -> Vec<&str> {
        list.lines()
            .filter_map(|line| line.strip_prefix("id = \"")?.strip_suffix('"'))
            .collect()
    }

    /// Returns the list without a revision.
    fn without_revision(list: &str, id: &str) -> Option<String> {
        remove_entry(list, id).expect("a list")
    }

    /// A new entry contains every field, including the package and the properties of the revision.
    #[test]
    fn new_entries_are_complete() {
        let source = "crates:a@1.0.0:b".parse().expect("a source");
        let entry = Entry {
            source: Some(&source),
            ..new_entry("2025", false)
        };
        let list = add_entry("a = 1\n", &entry).expect("a list");
        expect![[r#"
            a = 1

            [[revision]]
            id = "2025"
            status = "release"
            dialect = "2020-12"
            lifecycle = "discover"
            sha256 = "00"
            upstream_path = "p"
            upstream_commit = "c"
            upstream_reviewed = "c"
            source = { registry = "crates", package = "a", version = "1.0.0", path = "b" }
            retrieved = "2026-11-21"
            licence = "MIT AND Apache-2.0"

            [revision.properties]
            has_wings = true
        "#]]
        .assert_eq(&list);
    }

    /// After an entry was added and removed, both lists of the workspace have their previous text, including comments,
    /// notes and subtables.
    #[test]
    fn workspace_lists_keep_their_text() {
        let schema = crate::workspace_root().join("schema");
        let read = |name: &str| std::fs::read_to_string(schema.join(name)).expect("a list");
        let revisions = read("revisions.toml");
        let longer = add_entry(&revisions, &new_entry("2025-01-01", false)).expect("a list");
        assert_eq!(
            without_revision(&longer, "2025-01-01").as_deref(),
            Some(&*revisions)
        );
        let extensions = read("extensions.toml");
        let longer = add_extension_entry(&extensions, &extension("ext-a")).expect("a list");
        assert_eq!(
            without_revision(&longer, "ext-a").as_deref(),
            Some(&*extensions)
        );
        let only = without_revision(&longer, "ext-tasks").expect("it is listed");
        assert!(
            only.starts_with("# The extensions of the protocol"),
            "{only}"
        );
        let none = without_revision(&only, "ext-a").expect("it is listed");
        assert!(
            none.starts_with("# The extensions of the protocol"),
            "{none}"
        );
        let again = add_extension_entry(&none, &extension("ext-a")).expect("a list");
        assert_eq!(again, only);
    }

    /// A new release is inserted by date before all drafts, and a new draft at the end.
    #[test]
    fn releases_precede_drafts() {
        let order_with = |id, draft| {
            let list = add_entry(LIST, &new_entry(id, draft)).expect("a list");
            entry_order(&list).join(" ")
        };
        assert_eq!(order_with("2023", false), "2023 2024 x");
        assert_eq!(order_with("2025", false), "2024 2025 x");
        assert_eq!(order_with("2025", true), "2024 x 2025");
    }

    #[test]
    fn added_entries_can_be_removed() {
        for (id, draft) in [("2023", false), ("2025", false), ("2025", true)] {
            let list = add_entry(LIST, &new_entry(id, draft)).expect("a list");
            assert_eq!(without_revision(&list, id).as_deref(), Some(LIST));
        }
        assert_eq!(without_revision(LIST, "2025"), None);
    }

    /// A revision that is removed and added again has its previous properties, copied or assumed.
    #[test]
    fn removed_revisions_regain_their_properties() {
        let file = crate::workspace_root().join("schema/revisions.toml");
        let list = std::fs::read_to_string(file).expect("the list");
        let before = codegen::revision_facts(&list).expect("facts");
        for (id, lifecycle) in [
            ("2026-07-28", Lifecycle::Discover),
            ("2024-11-05", Lifecycle::Initialize),
        ] {
            let mut rest = without_revision(&list, id).expect("it is listed");
            if lifecycle == Lifecycle::Initialize {
                // Without another revision of its lifecycle, the revision gets the values of the first one.
                for newer in ["2025-03-26", "2025-06-18", "2025-11-25"] {
                    rest = without_revision(&rest, newer).expect("it is listed");
                }
            }
            let others = codegen::revision_facts(&rest).expect("facts");
            let place = insertion_index(&rest, id, false).expect("a list");
            let assumed = codegen::assumed_properties(&others, place, lifecycle);
            let properties = assumed.values.as_slice();
            let entry = Entry {
                lifecycle,
                properties,
                ..new_entry(id, false)
            };
            let after =
                codegen::revision_facts(&add_entry(&rest, &entry).expect("a list")).expect("facts");
            let own = |list: &[codegen::RevisionFacts]| list.iter().find(|f| f.id == id).cloned();
            assert_eq!(own(&after), own(&before), "{id}");
        }
    }
}
