//! Access rules for tools, prompts and resources.

/// Rule that shows or hides tools, prompts and resources of servers.
///
/// Patterns match whole names; `*` in a pattern matches any characters. Tools and prompts are matched by the names that
/// their server defines, resources by their URIs. Hidden items cannot be called, read or subscribed to.
///
/// The last rule that matches a tool, prompt or resource applies; without a matching rule, the item is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AccessRule {
    /// Patterns of the servers that the rule applies to; empty for all servers.
    pub servers: Vec<String>,
    /// Patterns of the principals that the rule applies to; empty for all clients, with and without a principal.
    pub principals: Vec<String>,
    /// Patterns of the items that are shown. If there are any, all other items are hidden.
    pub allow: Vec<String>,
    /// Patterns of the items that are hidden; they have precedence over `allow`.
    pub deny: Vec<String>,
}

impl AccessRule {
    /// Returns true if the rule applies to the server `server` and the principal `principal`.
    fn is_for(&self, server: &str, principal: Option<&str>) -> bool {
        let any =
            |patterns: &[String], text: &str| patterns.iter().any(|pattern| matches(pattern, text));
        let is_for_server = self.servers.is_empty() || any(&self.servers, server);
        let is_for_principal = self.principals.is_empty()
            || principal.is_some_and(|principal| any(&self.principals, principal));
        is_for_server && is_for_principal
    }

    /// Returns true if the rule shows an item, false if the rule hides it, and `None` if the rule does not apply.
    fn decision(&self, name: &str) -> Option<bool> {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        if any(&self.deny) {
            return Some(false);
        }
        (!self.allow.is_empty()).then(|| any(&self.allow))
    }
}

/// Returns true if a principal may see and use an item of a server.
pub(crate) fn may_use(
    rules: &[AccessRule],
    server: &str,
    principal: Option<&str>,
    name: &str,
) -> bool {
    let applicable = rules.iter().rev();
    let applicable = applicable.filter(|rule| rule.is_for(server, principal));
    let mut decisions = applicable.filter_map(|rule| rule.decision(name));
    decisions.next().unwrap_or(true)
}

/// Returns true if a pattern matches a complete string; `*` matches any characters. The time is at most proportional to
/// the product of both lengths.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a rule; each argument is a list of patterns separated by spaces.
    fn rule(servers: &str, principals: &str, allow: &str, deny: &str) -> AccessRule {
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        AccessRule {
            servers: list(servers),
            principals: list(principals),
            allow: list(allow),
            deny: list(deny),
        }
    }

    /// A pattern without `*` matches only the equal string; `*` matches any characters, including none.
    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text) in [
            ("read", "read"),
            ("read_*", "read_"),
            ("*", ""),
            ("a*b*c", "axbbyc"),
            ("*ab", "abab"),
            ("file:///*.md", "file:///a/b.md"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("read", "reader"),
            ("read_*", "read"),
            ("a*a", "a"),
            ("", "x"),
            ("*x*", "abc"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    /// If several rules match an item, only the last one decides whether the item is shown.
    #[test]
    fn last_matching_rule_applies() {
        let rules = [
            rule("files", "", "read_*", "read_secret"),
            rule("admin", "", "", "*"),
            rule("admin", "ops-*", "*", ""),
        ];
        let may = |server, principal, name| may_use(&rules, server, principal, name);
        assert!(may("files", None, "read_text"));
        assert!(!may("files", None, "read_secret"));
        assert!(!may("files", Some("ops-1"), "write"));
        assert!(may("web", None, "anything"));
        assert!(!may("admin", None, "restart"));
        assert!(!may("admin", Some("guest"), "restart"));
        assert!(may("admin", Some("ops-1"), "restart"));
    }
}
