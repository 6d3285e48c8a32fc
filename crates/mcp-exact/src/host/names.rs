//! Names of tools for models: those of one host are unique, and providers of models accept them.
//!
//! A name that is not acceptable as it is gets a replacement, and a table leads from the replacement back to the tool. A
//! replacement is never read.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;

use mcp_exact_tool_schema::{MAX_NAME_LENGTH, is_accepted_in_names, is_accepted_name};

use super::HostTool;
use super::prefixes::SEPARATOR;
use crate::client::Definition;
use crate::sync::lock;

/// Number of bytes of the hash at the end of a replacement, with the underscore before it.
const HASH_LENGTH: usize = 9;
/// Number of replacements that are tried for one name. More are needed only if a server chooses names for their hashes.
const MAX_ATTEMPTS: u32 = 16;
/// Number of replacements for one server beyond which those of tools that it no longer lists are forgotten.
const MAX_REMEMBERED: usize = 10_000;
/// Maximum number of problems of one server that are remembered, so that each is logged once.
const MAX_LOGGED: usize = 1_000;

/// Names that a host has given to tools.
#[derive(Debug, Default)]
pub(super) struct ToolNames(Mutex<GivenNames>);

/// Names that were given, and what was logged.
#[derive(Debug, Default)]
struct GivenNames {
    /// Listed names of tools by their replacements, by server.
    replacements: BTreeMap<String, HashMap<String, String>>,
    /// Names with problems that were logged, by server.
    logged: BTreeMap<String, HashSet<String>>,
}

/// Tool that gets a name.
struct Unnamed {
    server: String,
    definition: Definition,
    /// Name in the list of the server.
    listed: String,
    /// The listed name with the prefix of the server. No two tools have the same one, because a prefix neither contains the
    /// separator nor ends with an underscore.
    prefixed: String,
}

impl ToolNames {
    /// Returns the tools with their names, in the same order. A tool whose server lists another one of its name before it is
    /// left out.
    pub(super) fn name_tools(
        &self,
        prefixes: &BTreeMap<String, String>,
        tools: Vec<(String, Definition)>,
    ) -> Vec<HostTool> {
        lock(&self.0).name_tools(prefixes, tools)
    }

    /// Returns the server and the listed name of the tool with this replacement; `None` if the name is no replacement.
    pub(super) fn find(&self, name: &str) -> Option<(String, String)> {
        let given = lock(&self.0);
        let found = given.find(name);
        found.map(|(server, listed)| (server.to_owned(), listed.to_owned()))
    }

    /// Returns true if no problem of this server with this name was logged yet. The empty name stands for the whole list.
    pub(super) fn is_new_problem(&self, server: &str, name: &str) -> bool {
        lock(&self.0).is_new_problem(server, name)
    }

    /// Forgets the names and the logged problems of a server.
    pub(super) fn forget_server(&self, server: &str) {
        let mut given = lock(&self.0);
        given.replacements.remove(server);
        given.logged.remove(server);
    }
}

impl GivenNames {
    fn name_tools(
        &mut self,
        prefixes: &BTreeMap<String, String>,
        tools: Vec<(String, Definition)>,
    ) -> Vec<HostTool> {
        let tools = self.without_duplicates(prefixes, tools);
        let is_kept = |tool: &&Unnamed| {
            is_accepted_name(&tool.prefixed) && self.find(&tool.prefixed).is_none()
        };
        let kept = tools.iter().filter(is_kept);
        // These names are assigned first, so that no replacement can be one of them.
        let kept: HashSet<String> = kept.map(|tool| tool.prefixed.clone()).collect();
        let mut named = Vec::with_capacity(tools.len());
        for tool in tools {
            let name = if kept.contains(&tool.prefixed) {
                Some(tool.prefixed)
            } else {
                self.replacement(&kept, &tool)
            };
            if let Some(name) = name {
                named.push(HostTool {
                    server: tool.server,
                    definition: tool.definition,
                    name,
                });
            }
        }
        self.forget_unlisted(&named);
        named
    }

    fn find(&self, name: &str) -> Option<(&str, &str)> {
        let mut servers = self.replacements.iter();
        servers.find_map(|(server, names)| Some((server.as_str(), names.get(name)?.as_str())))
    }

    fn is_new_problem(&mut self, server: &str, name: &str) -> bool {
        let logged = self.logged.entry(server.to_owned()).or_default();
        logged.len() < MAX_LOGGED && logged.insert(name.to_owned())
    }

    /// Returns the tools with their prefixed names, of each name of a server the first one.
    fn without_duplicates(
        &mut self,
        prefixes: &BTreeMap<String, String>,
        tools: Vec<(String, Definition)>,
    ) -> Vec<Unnamed> {
        let mut known = HashSet::new();
        let mut unique = Vec::with_capacity(tools.len());
        for (server, definition) in tools {
            let listed = definition.name();
            let prefix = prefixes.get(&server).unwrap_or(&server);
            let prefixed = format!("{prefix}{SEPARATOR}{listed}");
            if known.insert(prefixed.clone()) {
                unique.push(Unnamed {
                    server,
                    definition,
                    listed,
                    prefixed,
                });
            } else if self.is_new_problem(&server, &listed) {
                tracing::warn!(
                    server,
                    tool = listed,
                    "a server lists two tools of the same name: the second one is left out; only the server can rename it"
                );
            }
        }
        unique
    }

    /// Returns the replacement of a name, and remembers it; `None` if there is no free one.
    fn replacement(&mut self, kept: &HashSet<String>, tool: &Unnamed) -> Option<String> {
        let own = (tool.server.as_str(), tool.listed.as_str());
        let is_free = |name: &String| {
            !kept.contains(name) && self.find(name).is_none_or(|found| found == own)
        };
        let mut candidates = (0..MAX_ATTEMPTS).map(|attempt| replace(&tool.prefixed, attempt));
        let Some(name) = candidates.find(is_free) else {
            if self.is_new_problem(&tool.server, &tool.listed) {
                tracing::warn!(
                    server = tool.server,
                    tool = tool.listed,
                    "no name for models is free: the tool is left out; give it another name by `rename` in the catalogue"
                );
            }
            return None;
        };
        let names = self.replacements.entry(tool.server.clone()).or_default();
        names.insert(name.clone(), tool.listed.clone());
        Some(name)
    }

    /// Forgets replacements for tools that a server no longer lists, if there are too many.
    fn forget_unlisted(&mut self, named: &[HostTool]) {
        for (server, names) in &mut self.replacements {
            let mut listed = named
                .iter()
                .filter(|tool| tool.server == *server)
                .peekable();
            if names.len() > MAX_REMEMBERED && listed.peek().is_some() {
                let listed: HashSet<&str> = listed.map(HostTool::name).collect();
                names.retain(|name, _| listed.contains(name.as_str()));
            }
        }
    }
}

/// Returns the replacement of a name: its first characters, with `_` in place of those that are not accepted, and a hash of the
/// whole name, without which the replacements of `a.b` and `a/b` would be equal. The gateway truncates long names in the same way.
fn replace(name: &str, attempt: u32) -> String {
    let characters = name.chars().take(MAX_NAME_LENGTH - HASH_LENGTH);
    let replaced = characters.map(|character| {
        if is_accepted_in_names(character) {
            character
        } else {
            '_'
        }
    });
    let hash = match attempt {
        0 => hash(name),
        // At the beginning, because names with the same hash have the same one with every common end.
        attempt => hash(&format!("{attempt} {name}")),
    };
    format!("{}_{hash:08x}", replaced.collect::<String>())
}

/// Returns the FNV-1a hash of a name, so that a tool has the same name in every process.
fn hash(name: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    name.bytes().fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Json, JsonObject};

    /// Returns the names of tools with these listed names, of servers whose prefixes are their names.
    fn names(given: &mut GivenNames, tools: &[(&str, &str)]) -> Vec<String> {
        let definition = |name: &str| {
            let name = Json::string(name);
            Definition::from_object(JsonObject::from_iter([("name", name)]))
        };
        let tools = tools
            .iter()
            .map(|(server, name)| ((*server).to_owned(), definition(name)));
        let named = given.name_tools(&BTreeMap::new(), tools.collect());
        named.iter().map(|tool| tool.name().to_owned()).collect()
    }

    /// Accepted names stay, others get a hash of the whole name, and no two names are equal.
    #[test]
    fn names_are_accepted_and_unique() {
        let long = "l".repeat(61);
        let longer = "l".repeat(62);
        let listed = ["a-B_1", "a.b", "a/b", "größe x", "", &long, &longer];
        let tools = listed.map(|name| ("s", name));
        let mut given = GivenNames::default();
        let first = names(&mut given, &tools);
        assert_eq!(first[0], "s__a-B_1");
        assert_eq!(first[1], format!("s__a_b_{:08x}", hash("s__a.b")));
        assert_eq!(first[4..6], ["s__".to_owned(), format!("s__{long}")]);
        let cut = format!(
            "s__{}_{:08x}",
            "l".repeat(52),
            hash(&format!("s__{longer}"))
        );
        assert_eq!(first[6], cut);
        assert!(first.iter().all(|name| is_accepted_name(name)), "{first:?}");
        let unique: HashSet<&String> = first.iter().collect();
        assert_eq!(unique.len(), listed.len(), "{first:?}");
        for (name, listed) in first.iter().zip(listed) {
            let found = is_accepted_name(&format!("s__{listed}"))
                || given.find(name) == Some(("s", listed));
            assert!(found, "{name}");
        }
        // Names do not depend on the rest of the list.
        for (name, tool) in first.iter().zip(tools) {
            assert_eq!(names(&mut given, &[tool]), [name.as_str()]);
            assert_eq!(names(&mut GivenNames::default(), &[tool]), [name.as_str()]);
        }
    }

    /// A tool whose own name is the replacement of another one does not take it, and keeps its name if it comes first.
    #[test]
    fn replacements_are_no_names_of_others() {
        let taken = replace("s__a.b", 0);
        let imitation = taken.strip_prefix("s__").expect("the prefix");
        let together = names(
            &mut GivenNames::default(),
            &[("s", "a.b"), ("s", imitation)],
        );
        assert_eq!(together, [replace("s__a.b", 1), taken.clone()]);
        let mut given = GivenNames::default();
        assert_eq!(names(&mut given, &[("s", "a.b")]), [taken.as_str()]);
        let later = names(&mut given, &[("s", imitation), ("s", "a.b")]);
        assert_eq!(later, [replace(&taken, 0), taken.clone()]);
        assert_eq!(given.find(&taken), Some(("s", "a.b")));
        assert_eq!(given.find(&later[0]), Some(("s", imitation)));
    }

    /// What is remembered of a server that always lists other tools is bounded; what other servers have stays.
    #[test]
    fn names_of_changing_lists_are_forgotten() {
        let mut given = GivenNames::default();
        let steady = names(&mut given, &[("steady", "a.b")]);
        for round in 0..3 {
            let listed: Vec<String> = (0..6_000).map(|tool| format!("{round}.{tool}")).collect();
            let tools: Vec<_> = listed.iter().map(|name| ("s", name.as_str())).collect();
            let last = names(&mut given, &tools).pop().expect("a name");
            assert_eq!(
                given.find(&last),
                Some(("s", format!("{round}.5999").as_str()))
            );
        }
        assert_eq!(given.replacements["s"].len(), 6_000);
        assert_eq!(given.find(&steady[0]), Some(("steady", "a.b")));
    }
}
