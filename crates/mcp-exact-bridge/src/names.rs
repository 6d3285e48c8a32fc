//! Names of tools and prompts among those of many servers.
//!
//! A name that was given once stays while the process lives, whichever servers come and go.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Stands between the name of a server and the name of its tool or prompt.
const SEPARATOR: &str = "__";

/// Characters that a name has at most, so that every client takes it.
const LONGEST: usize = 64;

/// Names that are remembered at most.
const MOST: usize = 100_000;

/// When the name of a tool or prompt begins with the name of its server, as in `files__read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Prefix {
    /// Always. A name of more than 64 characters is cut, and ends with a hash.
    #[default]
    Always,
    /// If another server has taken the name before: servers are asked in the order in which they were added.
    OnConflict,
    /// Never. A tool or prompt whose name is taken is left out.
    Never,
}

/// What has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Tool,
    Prompt,
}

/// Names by which clients know the tools and prompts of the servers.
#[derive(Debug)]
pub(crate) struct Names {
    prefix: Prefix,
    given: Mutex<Given>,
}

#[derive(Debug, Default)]
struct Given {
    servers: Vec<String>,
    /// Name by server and the server's own name.
    by_own: HashMap<(Kind, usize, String), String>,
    /// Server and the server's own name by name.
    by_name: HashMap<(Kind, String), (usize, String)>,
}

impl Names {
    /// Takes the names of the servers. See [`check_server_names`].
    pub(crate) fn new(prefix: Prefix, servers: Vec<String>) -> Self {
        Self {
            prefix,
            given: Mutex::new(Given {
                servers,
                ..Given::default()
            }),
        }
    }

    /// Adds a server. Its names give way to those of the servers that were added before it.
    pub(crate) fn add_server(&self, name: &str) {
        self.lock().servers.push(name.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, Given> {
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name by which clients know a tool or prompt; `None` if it has to be left out.
    pub(crate) fn give(&self, kind: Kind, server: usize, own: &str) -> Option<String> {
        let mut given = self.lock();
        if let Some(name) = given.by_own.get(&(kind, server, own.to_owned())) {
            return Some(name.clone());
        }
        let is_free = |name: &String| !given.by_name.contains_key(&(kind, name.clone()));
        let plain = Some(own.to_owned()).filter(is_free);
        let name = match self.prefix {
            Prefix::Never => plain,
            Prefix::OnConflict => {
                plain.or_else(|| Some(given.prefixed(server, own)).filter(is_free))
            }
            Prefix::Always => Some(given.prefixed(server, own)).filter(is_free),
        };
        let Some(name) = name else {
            tracing::warn!(
                server = given.servers[server],
                own,
                "a name is taken: it is left out"
            );
            return None;
        };
        if given.by_name.len() < MOST {
            let found = (server, own.to_owned());
            given.by_name.insert((kind, name.clone()), found);
            given
                .by_own
                .insert((kind, server, own.to_owned()), name.clone());
        }
        Some(name)
    }

    /// Returns the server of a tool or prompt, and the server's own name of it.
    pub(crate) fn find(&self, kind: Kind, name: &str) -> Option<(usize, String)> {
        let given = self.lock();
        let found = given.by_name.get(&(kind, name.to_owned())).cloned();
        if found.is_some() || self.prefix != Prefix::Always {
            return found;
        }
        if is_cut(name) {
            // Only who has given it knows the rest.
            return None;
        }
        let (server, own) = name.split_once(SEPARATOR)?;
        let server = given.servers.iter().position(|known| known == server)?;
        (given.prefixed(server, own) == name).then(|| (server, own.to_owned()))
    }
}

impl Given {
    fn prefixed(&self, server: usize, own: &str) -> String {
        let whole = format!("{}{SEPARATOR}{own}", self.servers[server]);
        if whole.chars().count() <= LONGEST {
            return whole;
        }
        let begin: String = whole.chars().take(LONGEST - 9).collect();
        format!("{begin}_{:08x}", hash(&whole))
    }
}

/// Returns true if a name may have been cut: it ends with a hash.
fn is_cut(name: &str) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let end = name.as_bytes().rsplit(|byte| *byte == b'_').next();
    let is_hash = end.is_some_and(|end| end.len() == 8 && end.iter().all(is_digit));
    is_hash && name.chars().count() == LONGEST
}

/// Hashes a name by FNV-1a, so that it is cut in the same way by every process.
fn hash(name: &str) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    name.as_bytes().iter().fold(0x811c_9dc5, step)
}

/// Says what is wrong with the names of servers: each has to be part of a name that can be taken apart again.
pub(crate) fn check_server_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), String> {
    let mut seen = Vec::new();
    for name in names {
        let is_kept =
            |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
        let is_right = (1..=32).contains(&name.len())
            && name.chars().all(is_kept)
            && !name.contains(SEPARATOR)
            && !name.ends_with('_');
        if !is_right {
            return Err(format!(
                "{name:?} cannot be the name of a server: use 1 to 32 letters, digits, `-` and `_`, \
                 without `__` and without `_` at the end"
            ));
        }
        if seen.contains(&name) {
            return Err(format!(
                "two servers are named {name:?}; give each its own name"
            ));
        }
        seen.push(name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(prefix: Prefix) -> Names {
        let servers = ["files", "web", "a-b_c"].map(str::to_owned);
        Names::new(prefix, servers.to_vec())
    }

    #[test]
    fn prefixed_names_are_found_again() {
        let names = names(Prefix::Always);
        for (server, own) in [(0, "read"), (1, "read"), (2, "__x"), (1, "ü")] {
            let name = names.give(Kind::Tool, server, own).expect("a name");
            assert_eq!(
                names.find(Kind::Tool, &name),
                Some((server, own.to_owned()))
            );
        }
        // Not given before: a client may know it from another process.
        let found = names.find(Kind::Prompt, "web__search");
        assert_eq!(found, Some((1, "search".to_owned())));
        for unknown in ["search", "other__search", "webx__search"] {
            assert_eq!(names.find(Kind::Tool, unknown), None, "{unknown}");
        }
    }

    #[test]
    fn long_names_are_cut_and_told_apart() {
        let names = self::names(Prefix::Always);
        let long = "x".repeat(80);
        let name = names.give(Kind::Tool, 0, &long).expect("a name");
        let other = names
            .give(Kind::Tool, 0, &format!("{long}y"))
            .expect("a name");
        assert_eq!(name.len(), LONGEST);
        assert_ne!(name, other);
        assert_eq!(names.find(Kind::Tool, &name), Some((0, long)));
        // Another process has not given it: it has to list the tools before it knows which one it is.
        let elsewhere = self::names(Prefix::Always);
        assert_eq!(elsewhere.find(Kind::Tool, &name), None);
    }

    /// Who comes first keeps the name, also when it is gone and comes back.
    #[test]
    fn conflicts_leave_given_names_alone() {
        let names = names(Prefix::OnConflict);
        assert_eq!(names.give(Kind::Tool, 1, "read").as_deref(), Some("read"));
        let second = names.give(Kind::Tool, 0, "read");
        assert_eq!(second.as_deref(), Some("files__read"));
        assert_eq!(names.give(Kind::Tool, 1, "read").as_deref(), Some("read"));
        assert_eq!(names.give(Kind::Prompt, 0, "read").as_deref(), Some("read"));
        assert_eq!(
            names.find(Kind::Tool, "files__read"),
            Some((0, "read".to_owned()))
        );
    }

    #[test]
    fn taken_names_are_left_out() {
        let names = names(Prefix::Never);
        assert_eq!(names.give(Kind::Tool, 0, "read").as_deref(), Some("read"));
        assert_eq!(names.give(Kind::Tool, 1, "read"), None);
        assert_eq!(names.find(Kind::Tool, "read"), Some((0, "read".to_owned())));
    }

    #[test]
    fn server_names_can_be_taken_apart() {
        let check = |names: &[&'static str]| check_server_names(names.iter().copied());
        assert_eq!(check(&["a", "b-1", "c_d"]), Ok(()));
        for wrong in ["", "a__b", "a_", "a b", "größe", "a.b"] {
            assert!(check(&[wrong]).is_err(), "{wrong:?}");
        }
        assert!(check(&["a", "a"]).is_err());
    }
}
