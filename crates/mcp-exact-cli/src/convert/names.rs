//! Looks up revisions and types by name for conversions, and lists the known names if a name is unknown.
//!
//! The tables of the conversions may contain a revision that this executable cannot check.

use mcp_exact_convert::{KnownRevision, counterpart};

use crate::names::{shortened, suggest};
use crate::registry::{Unknown, listed};

/// Returns the revision `id`.
pub fn revision(id: &str) -> Result<KnownRevision, Unknown> {
    KnownRevision::parse(id).ok_or_else(|| {
        let names: Vec<&str> = KnownRevision::ALL
            .iter()
            .map(|known| known.as_str())
            .collect();
        let problem = format!("unknown revision `{}`", shortened(id));
        let known = format!("this program has {}", listed(names.iter().copied()));
        Unknown { problem, known }
    })
}

/// Returns an error if the revision has no type with this name.
pub fn definition(name: &str, of: KnownRevision) -> Result<(), Unknown> {
    if counterpart(name, of, of).is_some() {
        return Ok(());
    }
    let mut problem = format!("unknown type `{}` in revision {of}", shortened(name));
    suggest(&mut problem, name, of.types());
    let known = format!("`mcp-exact show --revision {of}` lists all of them");
    Err(Unknown { problem, known })
}
