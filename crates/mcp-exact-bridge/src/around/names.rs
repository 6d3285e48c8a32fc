//! Unique names for the tools and prompts of many servers.
//!
//! An assigned name does not change for the lifetime of the process, regardless of the servers that are added or
//! removed, unless a new catalogue gives it to another tool.

use std::collections::{HashMap, HashSet};

use mcp_exact_tool_schema::{Catalogue, CatalogueError};
use parking_lot::Mutex;

/// Separator between the name of a server and the name of its tool or prompt.
const SEPARATOR: &str = "__";

/// Maximum number of characters in a name that every client accepts.
const MAX_NAME_LENGTH: usize = 64;

/// Maximum number of names that are remembered.
pub(crate) const MAX_NAMES: usize = 100_000;

/// Condition under which the name of a tool or prompt is prefixed with the name of its server, as in `files__read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Prefix {
    /// Every name is prefixed. A name of more than 64 characters is truncated and ends with a hash.
    #[default]
    Always,
    /// A name is prefixed if the same name is already assigned to a tool or prompt of another server.
    OnConflict,
    /// No name is prefixed. A tool or prompt whose name is already used by another server is omitted.
    Never,
}

/// Kind of an item that clients address by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Tool,
    Prompt,
}

/// Names of the servers' tools and prompts for clients.
#[derive(Debug)]
pub(crate) struct Names {
    /// Condition under which names are prefixed.
    prefix: Prefix,
    /// Names that were assigned so far.
    assigned: Mutex<AssignedNames>,
}

/// Assigned names, indexed by the server's own name and by the name for clients.
#[derive(Debug, Default)]
struct AssignedNames {
    /// Names of the servers, by index.
    servers: Vec<String>,
    /// Name for clients, by kind of item, index of the server and the server's own name.
    by_own: HashMap<(Kind, usize, String), String>,
    /// Index of the server and the server's own name, by kind of item and name for clients.
    by_name: HashMap<(Kind, String), (usize, String)>,
    /// Items that clients do not see because their names are taken, or because an earlier one of the server has the same name, and
    /// whose warning was logged: kind of item, index of the server,
    /// and the name in its list.
    left_out: HashSet<(Kind, usize, String)>,
}

impl Names {
    /// Creates the table for servers with these names, which must have passed [`check_server_names`].
    pub(crate) fn new(prefix: Prefix, servers: Vec<String>) -> Self {
        Self {
            prefix,
            assigned: Mutex::new(AssignedNames {
                servers,
                ..AssignedNames::default()
            }),
        }
    }

    /// Adds a server, whose names have lower precedence than those of earlier servers.
    pub(crate) fn add_server(&self, name: &str) {
        self.assigned.lock().servers.push(name.to_owned());
    }

    /// Forgets the names of tools that a new catalogue gives to other tools of their servers, or to none.
    pub(crate) fn forget_moved(&self, old: &Catalogue, new: &Catalogue) {
        let mut assigned = self.assigned.lock();
        let AssignedNames {
            servers,
            by_own,
            by_name,
            left_out,
        } = &mut *assigned;
        let is_kept = |kind: Kind, server: usize, listed: &str| {
            let [before, after] =
                [old, new].map(|catalogue| match catalogue.server(&servers[server]) {
                    Some(of_server) => of_server.own_name(listed),
                    None => Some(listed),
                });
            kind != Kind::Tool || before == after
        };
        by_own.retain(|(kind, server, listed), _| is_kept(*kind, *server, listed));
        by_name.retain(|(kind, _), (server, listed)| is_kept(*kind, *server, listed));
        left_out.clear();
    }

    /// Returns the name of a tool or prompt for clients; `None` if the item must be omitted. A name that is reserved is that of
    /// no item.
    pub(crate) fn assign(
        &self,
        kind: Kind,
        server: usize,
        own: &str,
        is_reserved: bool,
    ) -> Option<String> {
        self.assign_by(self.prefix, kind, server, own, is_reserved)
    }

    /// As [`assign`](Self::assign), for a server whose names depend on the user: a name without a prefix could be that of another
    /// server for the next user.
    pub(crate) fn assign_of_user(
        &self,
        kind: Kind,
        server: usize,
        own: &str,
        is_reserved: bool,
    ) -> Option<String> {
        let prefix = match self.prefix {
            Prefix::OnConflict => Prefix::Always,
            prefix => prefix,
        };
        self.assign_by(prefix, kind, server, own, is_reserved)
    }

    fn assign_by(
        &self,
        prefix: Prefix,
        kind: Kind,
        server: usize,
        own: &str,
        is_reserved: bool,
    ) -> Option<String> {
        let mut assigned = self.assigned.lock();
        let known = assigned.by_own.get(&(kind, server, own.to_owned()));
        if let Some(name) = known.filter(|name| !is_reserved || *name != own) {
            return Some(name.clone());
        }
        let is_free = |name: &String| {
            let is_reserved = is_reserved && name == own;
            !is_reserved && !assigned.by_name.contains_key(&(kind, name.clone()))
        };
        let plain = Some(own.to_owned()).filter(is_free);
        let name = match prefix {
            Prefix::Never => plain,
            Prefix::OnConflict => {
                plain.or_else(|| Some(assigned.prefixed_name(server, own)).filter(is_free))
            }
            Prefix::Always => Some(assigned.prefixed_name(server, own)).filter(is_free),
        };
        let Some(name) = name else {
            if let Some(server) = assigned.leave_out(kind, server, own) {
                match kind {
                    Kind::Tool => tracing::warn!(
                        server,
                        own,
                        "a name is taken: the tool is left out; give it another name by `rename` in the catalogue"
                    ),
                    Kind::Prompt => {
                        tracing::warn!(server, own, "a name is taken: the prompt is left out");
                    }
                }
            }
            return None;
        };
        if assigned.by_name.len() < MAX_NAMES {
            let found = (server, own.to_owned());
            assigned.by_name.insert((kind, name.clone()), found);
            assigned
                .by_own
                .insert((kind, server, own.to_owned()), name.clone());
        }
        Some(name)
    }

    /// Logs, once, that a server lists two tools or prompts of the same name.
    pub(crate) fn report_namesake(&self, kind: Kind, server: usize, own: &str) {
        if let Some(server) = self.assigned.lock().leave_out(kind, server, own) {
            let items = match kind {
                Kind::Tool => "tools",
                Kind::Prompt => "prompts",
            };
            tracing::warn!(
                server,
                own,
                "the server lists two {items} of the same name: the second one is left out; only the server can rename it"
            );
        }
    }

    /// Returns the index of the server that has a tool or prompt, and the name that the server itself uses for the
    /// item; `None` if no server has the name.
    pub(crate) fn find(&self, kind: Kind, name: &str) -> Option<(usize, String)> {
        let assigned = self.assigned.lock();
        let found = assigned.by_name.get(&(kind, name.to_owned())).cloned();
        if found.is_some() || self.prefix != Prefix::Always {
            return found;
        }
        if is_truncated(name) {
            // Only the process that has truncated a name can resolve it.
            return None;
        }
        let (server, own) = name.split_once(SEPARATOR)?;
        let server = assigned.servers.iter().position(|known| known == server)?;
        (assigned.prefixed_name(server, own) == name).then(|| (server, own.to_owned()))
    }
}

impl AssignedNames {
    /// Records that an item is left out; returns the name of its server if that must be logged.
    fn leave_out(&mut self, kind: Kind, server: usize, own: &str) -> Option<&str> {
        let left_out = (kind, server, own.to_owned());
        let is_new = self.left_out.len() < MAX_NAMES && self.left_out.insert(left_out);
        is_new.then(|| self.servers[server].as_str())
    }

    /// Returns the name with the prefix of its server; a name that is too long is truncated and ends with a hash.
    fn prefixed_name(&self, server: usize, own: &str) -> String {
        let whole = format!("{}{SEPARATOR}{own}", self.servers[server]);
        if whole.chars().count() <= MAX_NAME_LENGTH {
            return whole;
        }
        let begin: String = whole.chars().take(MAX_NAME_LENGTH - 9).collect();
        format!("{begin}_{:08x}", hash(&whole))
    }
}

/// Returns true if a name may have been truncated, because it ends with a hash.
fn is_truncated(name: &str) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let end = name.as_bytes().rsplit(|byte| *byte == b'_').next();
    let is_hash = end.is_some_and(|end| end.len() == 8 && end.iter().all(is_digit));
    is_hash && name.chars().count() == MAX_NAME_LENGTH
}

/// Maximum length of the name of a server.
const MAX_SERVER_NAME: usize = 32;

/// Returns the FNV-1a hash of a name, so that every process truncates the name in the same way.
fn hash(name: &str) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    name.as_bytes().iter().fold(0x811c_9dc5, step)
}

/// Returns an error if the name of a server is invalid or not unique. Valid names keep prefixed names unambiguous.
pub(crate) fn check_server_names<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), String> {
    let mut seen = Vec::new();
    for name in names {
        check_server_name(name)?;
        // In URIs, names are hosts, whose case has no meaning.
        if let Some(other) = seen
            .iter()
            .find(|other: &&&str| other.eq_ignore_ascii_case(name))
        {
            return Err(format!(
                "two servers are named {other:?} and {name:?}; give each its own name, which differs in more than case"
            ));
        }
        seen.push(name);
    }
    Ok(())
}

/// Checks that a name can be that of a server of a [`Bridge`](crate::Bridge).
///
/// # Errors
/// What is wrong with the name, and which names are possible.
pub fn check_server_name(name: &str) -> Result<(), String> {
    let is_kept = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    let is_right = (1..=MAX_SERVER_NAME).contains(&name.len())
        && name.chars().all(is_kept)
        && !name.contains(SEPARATOR)
        && !name.ends_with('_');
    if is_right {
        return Ok(());
    }
    Err(format!(
        "{name:?} cannot be the name of a server: use 1 to 32 letters, digits, `-` and `_`, without `__` and without `_` at the end"
    ))
}

/// Returns names for servers of a [`Bridge`](crate::Bridge) that are as close to the given names as possible, in their order: a client
/// allows any name, such as "Azure MCP Server".
///
/// A valid name stays as it is. Names that would be the same, or differ in case alone, end with a hash, so that no server gets the name
/// of another one when that is added, changed or removed.
pub fn usable_server_names(names: &[&str]) -> Vec<String> {
    let candidate = |name: &str| match check_server_name(name) {
        Ok(()) => name.to_owned(),
        Err(_) => without_invalid(name),
    };
    let (mut valid, mut all) = (HashMap::new(), HashMap::new());
    for name in names {
        let key = candidate(name).to_ascii_lowercase();
        *valid.entry(key.clone()).or_insert(0) += usize::from(check_server_name(name).is_ok());
        *all.entry(key).or_insert(0) += 1;
    }
    let usable = names.iter().map(|name| {
        let found = candidate(name);
        let key = found.to_ascii_lowercase();
        let rivals = if *name == found { &valid } else { &all };
        if rivals[&key] < 2 {
            return found;
        }
        let begin = found.get(..MAX_SERVER_NAME - 9).unwrap_or(&found);
        let begin = begin.trim_end_matches(['-', '_']);
        format!("{begin}-{:08x}", hash(name))
    });
    usable.collect()
}

/// Returns a valid name of a server with the letters, digits, `-` and `_` of a name.
fn without_invalid(name: &str) -> String {
    let mut usable = String::new();
    for character in name.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' => usable.push(character),
            _ if usable.is_empty() || usable.ends_with(['-', '_']) => {}
            '_' => usable.push('_'),
            _ => usable.push('-'),
        }
    }
    usable.truncate(MAX_SERVER_NAME);
    let usable = usable.trim_end_matches(['-', '_']);
    if usable.is_empty() { "server" } else { usable }.to_owned()
}

/// Returns an error if a catalogue gives tools of two servers the same name and no prefix tells them apart.
pub(crate) fn check_names_of_catalogue(
    catalogue: &Catalogue,
    prefix: Prefix,
) -> Result<(), CatalogueError> {
    let mut known = HashMap::new();
    for (_, of_server) in catalogue.servers().filter(|_| prefix == Prefix::Never) {
        for (listed, own) in of_server.listed_names() {
            let key = if listed == own {
                of_server.tool_key(own)
            } else {
                of_server.key(own, "rename")
            };
            if let Some(other) = known.insert(listed, key.clone()) {
                let keys = [key, other];
                let name = listed.to_owned();
                return Err(CatalogueError::SameName { keys, name });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients allow any name. No server gets the name of another one when that is added.
    #[test]
    fn names_of_clients_become_usable() {
        for (name, expected) in [
            ("azure-mcp_server", "azure-mcp_server"),
            ("Azure MCP Server", "Azure-MCP-Server"),
            ("io.github.a/b", "io-github-a-b"),
            ("__my__server__", "my_server"),
            ("\u{6587}\u{4ef6}", "server"),
            (
                "A very long name of a server, as people write it",
                "A-very-long-name-of-a-server-as",
            ),
        ] {
            assert_eq!(usable_server_names(&[name]), [expected]);
            check_server_name(expected).expect("a valid name");
        }
        let long = "A very long name of a server, as others write it";
        let names = [
            "a b",
            "a.b",
            "github",
            "GitHub",
            "git hub",
            "\u{1f4c1}",
            long,
        ];
        let usable = usable_server_names(&names);
        check_server_names(usable.iter().map(String::as_str)).expect("valid names");
        let hash_of = |at: usize| format!("{:08x}", hash(names[at]));
        assert_eq!(usable[0], format!("a-b-{}", hash_of(0)));
        assert_eq!(usable[1], format!("a-b-{}", hash_of(1)));
        assert_eq!(usable[3], format!("GitHub-{}", hash_of(3)));
        assert_eq!(
            usable[4..],
            ["git-hub", "server", "A-very-long-name-of-a-server-as"]
        );
        // A valid name keeps its server.
        assert_eq!(usable_server_names(&["A b", "a-b"])[1], "a-b");
    }

    /// Creates the names for three servers.
    fn names(prefix: Prefix) -> Names {
        let servers = ["files", "web", "a-b_c"].map(str::to_owned);
        Names::new(prefix, servers.to_vec())
    }

    /// A prefixed name resolves to its server and the server's own name, even if the name was not assigned by this
    /// process.
    #[test]
    fn prefixed_names_resolve_to_servers() {
        let names = names(Prefix::Always);
        for (server, own) in [(0, "read"), (1, "read"), (2, "__x"), (1, "ü")] {
            let name = names
                .assign(Kind::Tool, server, own, false)
                .expect("a name");
            assert_eq!(
                names.find(Kind::Tool, &name),
                Some((server, own.to_owned()))
            );
        }
        // The name was not assigned before, but a client may know it from another process.
        let found = names.find(Kind::Prompt, "web__search");
        assert_eq!(found, Some((1, "search".to_owned())));
        for unknown in ["search", "other__search", "webx__search"] {
            assert_eq!(names.find(Kind::Tool, unknown), None, "{unknown}");
        }
    }

    /// Names that are truncated to the maximum length remain unique, because they end with different hashes.
    #[test]
    fn long_names_are_truncated_uniquely() {
        let names = self::names(Prefix::Always);
        let long = "x".repeat(80);
        let name = names.assign(Kind::Tool, 0, &long, false).expect("a name");
        let other = names
            .assign(Kind::Tool, 0, &format!("{long}y"), false)
            .expect("a name");
        assert_eq!(name.len(), MAX_NAME_LENGTH);
        assert_ne!(name, other);
        assert_eq!(names.find(Kind::Tool, &name), Some((0, long)));
        // Another process must list the tools before it can resolve a truncated name.
        let elsewhere = self::names(Prefix::Always);
        assert_eq!(elsewhere.find(Kind::Tool, &name), None);
    }

    /// The first server with a name keeps it, even if the server is removed and added again.
    #[test]
    fn conflicts_keep_assigned_names() {
        let names = names(Prefix::OnConflict);
        assert_eq!(
            names.assign(Kind::Tool, 1, "read", false).as_deref(),
            Some("read")
        );
        let second = names.assign(Kind::Tool, 0, "read", false);
        assert_eq!(second.as_deref(), Some("files__read"));
        assert_eq!(
            names.assign(Kind::Tool, 1, "read", false).as_deref(),
            Some("read")
        );
        assert_eq!(
            names.assign(Kind::Prompt, 0, "read", false).as_deref(),
            Some("read")
        );
        assert_eq!(
            names.find(Kind::Tool, "files__read"),
            Some((0, "read".to_owned()))
        );
    }

    /// Without prefixes, a tool whose name another server already uses is omitted.
    #[test]
    fn duplicate_names_are_omitted() {
        let names = names(Prefix::Never);
        assert_eq!(
            names.assign(Kind::Tool, 0, "read", false).as_deref(),
            Some("read")
        );
        assert_eq!(names.assign(Kind::Tool, 1, "read", false), None);
        assert_eq!(names.find(Kind::Tool, "read"), Some((0, "read".to_owned())));
    }

    /// A name that a catalogue gives to another server is free for it; one that is reserved is that of no tool.
    #[test]
    fn names_follow_the_catalogue() {
        let with = |server: &str, own: &str| {
            let mut entry = mcp_exact_tool_schema::ToolEntry::default();
            entry.rename = Some("read".to_owned());
            let mut catalogue = Catalogue::default();
            catalogue.insert(server, own, entry).expect("an entry");
            catalogue
        };
        let names = names(Prefix::Never);
        let assign = |server, own, is_reserved| names.assign(Kind::Tool, server, own, is_reserved);
        assert_eq!(assign(0, "read", false).as_deref(), Some("read"));
        assert_eq!(assign(0, "list", false).as_deref(), Some("list"));
        assert_eq!(assign(1, "read", false), None);
        names.forget_moved(&with("files", "x"), &with("web", "y"));
        assert_eq!(assign(1, "read", false).as_deref(), Some("read"));
        assert_eq!(names.find(Kind::Tool, "list"), Some((0, "list".to_owned())));
        assert_eq!(assign(0, "call_tool", true), None);
        let names = self::names(Prefix::OnConflict);
        for is_reserved in [false, true] {
            let name = names.assign(Kind::Tool, 0, "call_tool", is_reserved);
            let wanted = if is_reserved {
                "files__call_tool"
            } else {
                "call_tool"
            };
            assert_eq!(name.as_deref(), Some(wanted));
        }
    }

    /// A server name that could make prefixed names ambiguous is refused.
    #[test]
    fn ambiguous_server_names_are_refused() {
        let check = |names: &[&'static str]| check_server_names(names.iter().copied());
        assert_eq!(check(&["a", "b-1", "c_d"]), Ok(()));
        for wrong in ["", "a__b", "a_", "a b", "größe", "a.b"] {
            assert!(check(&[wrong]).is_err(), "{wrong:?}");
        }
        assert!(check(&["a", "a"]).is_err());
        assert!(check(&["a", "A"]).is_err());
    }
}
