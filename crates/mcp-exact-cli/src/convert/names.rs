//! Finds the revisions and types that can be converted by their names, and lists the known ones if a name is unknown.
//!
//! Takes the tables of the conversions: a revision that this program cannot check by itself may still be on the way.

use mcp_exact_convert::{KnownRevision, counterpart};

use crate::names::{shortened, suggest};
use crate::registry::{Unknown, listed};

/// The revision `id`.
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

/// Refuses the name of a type that the revision does not have.
pub fn definition(name: &str, of: KnownRevision) -> Result<(), Unknown> {
    if counterpart(name, of, of).is_some() {
        return Ok(());
    }
    let mut problem = format!("unknown type `{}` in revision {of}", shortened(name));
    suggest(&mut problem, name, of.types());
    let known = format!("`mcp-exact show --revision {of}` lists all of them");
    Err(Unknown { problem, known })
}
