//! Checks of `errata.toml` and `names.toml` that need all revisions at once.
//!
//! An entry that can never apply is an error. The generator processes one revision at a time, so that no other check
//! would find an entry for an unlisted revision.

use crate::error::{Error, Result};
use crate::input::{Tables, errata, names};

/// Checks that `schema/revisions.toml` lists every revision that the tables name.
///
/// # Errors
/// Returns an error with file and entry for the first unlisted identifier.
pub fn check_tables(tables: Tables<'_>, listed: &[&str]) -> Result<()> {
    let check = |file: &str, entry: String, revisions: &[String]| {
        let unknown = revisions.iter().find(|id| !listed.contains(&id.as_str()));
        match unknown {
            None => Ok(()),
            Some(id) => {
                let problem = format!("{entry} is for the revision {id}, which is not listed");
                let remedy = format!(
                    "correct it or take it out; schema/revisions.toml and schema/extensions.toml list {}",
                    listed.join(", ")
                );
                Err(Error::new(file, "", problem, remedy))
            }
        }
    };
    for erratum in errata::errata(tables.errata)? {
        let entry = format!("erratum `{}`", erratum.id);
        check("schema/errata.toml", entry, &erratum.revisions)?;
    }
    for name in names::names(tables.names)? {
        let entry = format!("the name `{}`", name.name);
        check("schema/names.toml", entry, &name.revisions)?;
    }
    Ok(())
}
