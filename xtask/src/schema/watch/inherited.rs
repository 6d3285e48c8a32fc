//! Errata and names of the newest revision that fit a draft: without them, defects that are still there and automatic names would
//! count as differences.

use anyhow::Context;
use codegen::Revision;
use serde_json::Value;
use toml_edit::{DocumentMut, Table};

use super::super::history::without_descriptions;
use crate::codegen::Schemas;

/// Errata and names of the newest revision, by what they mean for the draft.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Identifiers of the errata that fit the draft, and apply to it in the comparison.
    pub errata: Vec<String>,
    /// Identifiers of the errata that find something else there: upstream has changed the place.
    pub outdated_errata: Vec<String>,
    /// Pointers of the names that find another schema there.
    pub outdated_names: Vec<String>,
}

/// Lets the errata and the names of the revision `newest` apply to the draft, too, where they find what they expect.
///
/// # Errors
/// Returns an error if the tables cannot be read, or a file is not JSON.
pub fn inherit(
    schemas: &mut Schemas,
    newest: &Revision,
    draft: &Revision,
    bytes: &[u8],
) -> anyhow::Result<Inherited> {
    let fitting = schemas.fitting_errata(draft, bytes)?;
    let parse = |bytes: &[u8]| -> anyhow::Result<Value> {
        Ok(without_descriptions(serde_json::from_slice(bytes)?, false))
    };
    let (before, after) = (parse(&schemas.bytes(newest)?)?, parse(bytes)?);
    let ids = (newest.id.as_str(), draft.id.as_str());
    let tables = schemas.tables();
    let errata = extend(tables.errata, "erratum", ids, |entry| {
        let id = member(entry, "id");
        let fits = fitting.contains(&id);
        (id, fits)
    });
    let errata = errata.context("schema/errata.toml is not TOML; correct it")?;
    let names = extend(tables.names, "name", ids, |entry| {
        let pointer = member(entry, "pointer");
        let (before, after) = (schema_at(&before, &pointer), schema_at(&after, &pointer));
        let fits = before.is_some() && before == after;
        (pointer, fits)
    });
    let names = names.context("schema/names.toml is not TOML; correct it")?;
    schemas.set_tables(errata.text, names.text);
    Ok(Inherited {
        errata: errata.fitting,
        outdated_errata: errata.others,
        outdated_names: names.others,
    })
}

/// Returns the schema at a pointer, or the definition around it if a pass of the generator makes the schema.
fn schema_at<'s>(schema: &'s Value, pointer: &str) -> Option<&'s Value> {
    let definition = pointer.match_indices('/').nth(2);
    let definition = definition.map_or(pointer, |(end, _)| &pointer[..end]);
    let found = schema.pointer(pointer);
    found.or_else(|| schema.pointer(definition))
}

/// Table whose entries name revisions, with the draft in some of them.
#[derive(Debug)]
struct Extended {
    /// Text of the table.
    text: String,
    /// Entries of the newest revision that name the draft now.
    fitting: Vec<String>,
    /// Other entries of the newest revision.
    others: Vec<String>,
}

/// Adds the draft to those entries of the newest revision that fit; `fit` returns the name of an entry, and whether it fits.
fn extend(
    table: &str,
    list: &str,
    (newest, draft): (&str, &str),
    fit: impl Fn(&Table) -> (String, bool),
) -> anyhow::Result<Extended> {
    let mut document: DocumentMut = table.parse()?;
    let (mut fitting, mut others) = (Vec::new(), Vec::new());
    let entries = document.get_mut(list);
    let entries = entries.and_then(|item| item.as_array_of_tables_mut());
    for entry in entries.into_iter().flat_map(|entries| entries.iter_mut()) {
        let (name, fits) = fit(entry);
        let revisions = entry.get_mut("revisions");
        let revisions = revisions.and_then(|item| item.as_array_mut());
        let is_newest = |value: &toml_edit::Value| value.as_str() == Some(newest);
        match revisions.filter(|revisions| revisions.iter().any(is_newest)) {
            None => {}
            Some(revisions) if fits => {
                revisions.push(draft);
                fitting.push(name);
            }
            Some(_) => others.push(name),
        }
    }
    Ok(Extended {
        text: document.to_string(),
        fitting,
        others,
    })
}

/// Returns a member that is a string, or an empty string.
fn member(entry: &Table, name: &str) -> String {
    let value = entry.get(name).and_then(|item| item.as_str());
    value.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{extend, member};

    /// An entry of the newest revision names the draft if it fits, and is listed if it does not; others stay as they are.
    #[test]
    fn fitting_entries_are_inherited() {
        let entry =
            |id, revisions| format!("[[erratum]]\nid = \"{id}\"\nrevisions = [{revisions}]\n");
        let text = |first| [entry("a", first), entry("b", "\"2\""), entry("c", "\"1\"")].concat();
        let fit = |entry: &_| (member(entry, "id"), member(entry, "id") != "b");
        let extended = extend(&text("\"1\", \"2\""), "erratum", ("2", "draft"), fit);
        let extended = extended.expect("TOML");
        assert_eq!(extended.text, text("\"1\", \"2\", \"draft\""));
        assert_eq!(extended.fitting, ["a"]);
        assert_eq!(extended.others, ["b"]);
    }
}
