//! Finds the revisions and types that can be converted by their names, and says what there is when a name is unknown.
//!
//! Takes the tables of the conversions: a revision that this program cannot check by itself may still be on the way.

use mcp_exact_convert::{KnownRevision, counterpart};

use crate::registry::{Unknown, listed, shortened, suggest};

/// The revision `id`.
pub fn revision(id: &str) -> Result<KnownRevision, Unknown> {
    let all = KnownRevision::ALL.iter().copied();
    let available = all.filter(|known| known.is_available());
    if let Some(found) = available.clone().find(|known| known.as_str() == id) {
        return Ok(found);
    }
    let names: Vec<&str> = available.map(KnownRevision::as_str).collect();
    let mut problem = format!("unknown revision `{}`", shortened(id));
    suggest(&mut problem, id, names.iter().copied());
    Err(Unknown {
        problem,
        known: match names.as_slice() {
            [] => "this program was built without any; build it with its default features".into(),
            names => format!("this program has {}", listed(names.iter().copied())),
        },
    })
}

/// Refuses the name of a type that the revision does not have.
pub fn definition(name: &str, of: KnownRevision) -> Result<(), Unknown> {
    if counterpart(name, of, of).is_some() {
        return Ok(());
    }
    let mut problem = format!("unknown type `{}` in revision {of}", shortened(name));
    suggest(&mut problem, name, of.types());
    let known = format!("{of} has {}", listed(of.types()));
    Err(Unknown { problem, known })
}
