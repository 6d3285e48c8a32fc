//! Lists of tools that a person has switched on or off for a server.

use std::fmt;

/// Tools of a server that are switched on, by the lists of its entry in a configuration file, such as `excludeTools`. Without a list
/// all tools are.
///
/// Names are those of the server; `*` in a name stands for any characters. Arguments in parentheses after a name, as Gemini CLI has
/// them, are no part of it. If there are several lists, a tool has to pass all of them.
///
/// ```
/// use mcp_exact_tool_schema::ToolFilter;
///
/// let filter = ToolFilter::default()
///     .allow("includeTools", ["read_*", "write"])
///     .deny("excludeTools", ["write"]);
/// assert_eq!(filter.key_against("read_text"), None);
/// assert_eq!(filter.key_against("write"), Some("excludeTools"));
/// assert_eq!(filter.key_against("delete"), Some("includeTools"));
/// assert_eq!(filter.to_string(), "only read_*, write (`includeTools`); not write (`excludeTools`)");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolFilter(Vec<ToolList>);

/// One list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ToolList {
    /// Key of the list in the configuration.
    key: String,
    names: Vec<String>,
    /// True if only the tools of the list are switched on, false if they are switched off.
    is_allowed: bool,
}

impl ToolFilter {
    /// Adds the list of the only tools that are switched on; an empty one switches off all. `key` names the list in errors.
    #[must_use]
    pub fn allow<N: Into<String>>(
        self,
        key: impl Into<String>,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        self.with(
            key.into(),
            names.into_iter().map(Into::into).collect(),
            true,
        )
    }

    /// Adds a list of tools that are switched off. `key` names the list in errors.
    #[must_use]
    pub fn deny<N: Into<String>>(
        self,
        key: impl Into<String>,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        self.with(
            key.into(),
            names.into_iter().map(Into::into).collect(),
            false,
        )
    }

    /// Adds the lists of another filter.
    #[must_use]
    pub fn and(mut self, mut other: Self) -> Self {
        self.0.append(&mut other.0);
        self
    }

    fn with(mut self, key: String, names: Vec<String>, is_allowed: bool) -> Self {
        self.0.push(ToolList {
            key,
            names,
            is_allowed,
        });
        self
    }

    /// Returns true if all tools are switched on.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the key of the list that switches a tool off; `None` if the tool is switched on.
    pub fn key_against(&self, tool: &str) -> Option<&str> {
        let denied = self.key_denying(tool);
        denied.or_else(|| {
            let mut allowed = self.0.iter().filter(|list| list.is_allowed);
            let list = allowed.find(|list| !list.has(tool))?;
            Some(&list.key)
        })
    }

    /// Returns the names that are those of no tool, with the keys of their lists; names with `*` may be those of any.
    pub(crate) fn names_without_match(
        &self,
        has_tool: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = (&str, &str)> {
        let names = self.0.iter().flat_map(|list| {
            let names = list.names.iter();
            names.map(|name| (&*list.key, &**name))
        });
        let is_known = move |name: &str| has_tool(name) || has_tool(bare(name));
        names.filter(move |(_, name)| !name.contains('*') && !is_known(name))
    }

    /// Returns the key of the list that names a tool as switched off.
    pub fn key_denying(&self, tool: &str) -> Option<&str> {
        let mut denied = self.0.iter().filter(|list| !list.is_allowed);
        // A server may ignore the space around a name.
        let denied = denied.find(|list| list.has(tool) || list.has(tool.trim()));
        denied.map(|list| &*list.key)
    }
}

impl ToolList {
    fn has(&self, tool: &str) -> bool {
        let mut names = self.names.iter();
        names.any(|name| name == tool || matches(bare(name), tool))
    }
}

/// Returns a name without the arguments behind it.
fn bare(name: &str) -> &str {
    name.split('(').next().unwrap_or_default().trim()
}

impl fmt::Display for ToolFilter {
    /// Writes the lists with their keys on one line; nothing without a list.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, list) in self.0.iter().enumerate() {
            let separator = if place > 0 { "; " } else { "" };
            let names = list.names.join(", ");
            let (word, names) = match (list.is_allowed, names.is_empty()) {
                (true, true) => ("none", ""),
                (true, false) => ("only ", &*names),
                (false, _) => ("not ", &*names),
            };
            write!(f, "{separator}{word}{names} (`{}`)", list.key)?;
        }
        Ok(())
    }
}

/// Returns true if a pattern matches a complete name; `*` matches any characters.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((begin, mut pattern)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut rest) = name.strip_prefix(begin) else {
        return false;
    };
    while let Some((part, further)) = pattern.split_once('*') {
        let Some(at) = rest.find(part) else {
            return false;
        };
        (rest, pattern) = (&rest[at + part.len()..], further);
    }
    rest.ends_with(pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list without names allows nothing, `*` everything; a name may have arguments behind it.
    #[test]
    fn lists_switch_tools_off() {
        let allow = |names: &[&str]| ToolFilter::default().allow("tools", names.iter().copied());
        for (names, tool, is_on) in [
            (&[][..], "a", false),
            (&["*"], "a", true),
            (&["a*c*e"], "abcde", true),
            (&["a*c*e"], "abde", false),
            (&["run(git status)"], "run", true),
            (&["run"], "runner", false),
            (&["run(x)"], "run(x)", true),
        ] {
            assert_eq!(allow(names).key_against(tool).is_none(), is_on, "{names:?}");
        }
        let denied = ToolFilter::default().deny("off", ["a", "b(c)"]);
        for tool in ["a", " a", "a\t", "b", "b(c)"] {
            assert_eq!(denied.key_against(tool), Some("off"), "{tool:?}");
        }
        assert_eq!(allow(&[]).to_string(), "none (`tools`)");
        assert_eq!(ToolFilter::default().key_against("a"), None);
    }
}
