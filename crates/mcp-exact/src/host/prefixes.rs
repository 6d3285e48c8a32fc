//! Prefixes of the names of tools, one for each server.

use std::collections::BTreeMap;

/// Separator between the name of a server and the name of a tool.
pub(super) const SEPARATOR: &str = "__";

/// Returns the prefix of the tool names of each server; see [`HostTool::name`](super::HostTool::name).
pub(super) fn unique_tool_prefixes<'n>(
    servers: impl Iterator<Item = &'n str>,
) -> BTreeMap<String, String> {
    let named = servers.map(|server| (server, tool_prefix(server)));
    // Names that need no change are assigned first, so that no other server can use them.
    let (plain, changed): (Vec<_>, Vec<_>) = named.partition(|(server, prefix)| server == prefix);
    let mut prefixes = BTreeMap::new();
    for (server, _) in plain.into_iter().chain(changed) {
        add_tool_prefix(&mut prefixes, server);
    }
    prefixes
}

/// Adds the prefix of a server, which differs from all others, unless it has one.
pub(super) fn add_tool_prefix(prefixes: &mut BTreeMap<String, String>, server: &str) {
    if prefixes.contains_key(server) {
        return;
    }
    let wanted = tool_prefix(server);
    let numbered = (2_u32..).map(|number| format!("{wanted}-{number}"));
    let mut candidates = std::iter::once(wanted.clone()).chain(numbered);
    let free = candidates.find(|candidate| !prefixes.values().any(|known| known == candidate));
    prefixes.insert(server.to_owned(), free.unwrap_or(wanted));
}

/// Returns the name of a server, restricted to characters that are valid in tool names.
fn tool_prefix(server: &str) -> String {
    let mut prefix = String::new();
    for character in server.chars() {
        let is_kept = character.is_ascii_alphanumeric() || character == '-';
        if is_kept {
            prefix.push(character);
        } else if !prefix.ends_with('_') {
            prefix.push('_');
        }
    }
    prefix.truncate(prefix.trim_end_matches('_').len());
    if prefix.is_empty() {
        "server".to_owned()
    } else {
        prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prefixes never contain the separator, whatever the names of the servers.
    #[test]
    fn tool_prefixes_are_unique() {
        let servers = ["a", "a__b", "a b", "a_b", "_", "größe", "x-1_"];
        let prefixes = unique_tool_prefixes(servers.into_iter());
        let of = |server: &str| prefixes[server].as_str();
        assert_eq!(
            servers.map(of),
            ["a", "a_b-2", "a_b-3", "a_b", "server", "gr_e", "x-1"]
        );
    }
}
