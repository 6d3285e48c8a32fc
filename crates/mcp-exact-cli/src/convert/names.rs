//! Looks up revisions and types by name for conversions, and lists the known names if a name is unknown.
//!
//! The conversion library may support a revision that this executable is not compiled to check.

use mcp_exact_convert::{KnownRevision, counterpart};

use crate::names::{suggest, truncate_name};
use crate::registry::{UnknownName, format_names};

/// Returns the revision with the identifier `id`.
pub fn revision(id: &str) -> Result<KnownRevision, UnknownName> {
    KnownRevision::parse(id).ok_or_else(|| {
        let names: Vec<&str> = KnownRevision::ALL
            .iter()
            .map(|known| known.as_str())
            .collect();
        let problem = format!("unknown revision `{}`", truncate_name(id));
        let known = format!("this program has {}", format_names(names.iter().copied()));
        UnknownName {
            problem,
            known_names: known,
        }
    })
}

/// Returns an error if the revision `of` has no definition with this name.
pub fn definition(name: &str, of: KnownRevision) -> Result<(), UnknownName> {
    if counterpart(name, of, of).is_some() {
        return Ok(());
    }
    let mut problem = format!("unknown type `{}` in revision {of}", truncate_name(name));
    suggest(&mut problem, name, of.types());
    let known = format!("`mcp-exact show --revision {of}` lists all of them");
    Err(UnknownName {
        problem,
        known_names: known,
    })
}
