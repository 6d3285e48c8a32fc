//! Access rules for tools, prompts and resources.

use crate::around::resource_uri::ResourceUri;

/// Rule that shows or hides tools, prompts and resources of servers.
///
/// Patterns match whole names; `*` in a pattern matches any characters. Tools and prompts are matched by the names that
/// their server defines, resources by the normal form of their URIs (RFC 3986), in which their server is asked for them. A
/// URI without a normal form is hidden wherever a rule applies, and a denied URI is denied with any query and fragment. Hidden
/// items cannot be called, read or subscribed to.
///
/// In the URIs of `allow`, `*` matches characters of one segment, so that `file:///x/*` shows nothing of the folders in `x`;
/// `**` matches any characters, and the pattern `*` alone everything. In `deny`, `*` matches any characters: what lies below a
/// denied place is denied.
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
    fn decision(&self, item: &Item<'_>) -> Option<bool> {
        if self.deny.iter().any(|pattern| item.is_denied_by(pattern)) {
            return Some(false);
        }
        let is_allowed = || self.allow.iter().any(|pattern| item.is_allowed_by(pattern));
        (!self.allow.is_empty()).then(is_allowed)
    }
}

/// Item of a server that rules show or hide.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Item<'a> {
    /// Tool, prompt or method with this name.
    Name(&'a str),
    /// Resource or template; `None` if its URI has no normal form.
    Uri(Option<&'a ResourceUri>),
}

impl Item<'_> {
    fn is_allowed_by(&self, pattern: &str) -> bool {
        match self {
            Self::Name(name) => matches(pattern, name),
            Self::Uri(None) => false,
            Self::Uri(Some(uri)) => match ResourceUri::parse(pattern) {
                Some(pattern) => matches_by_segments(pattern.text(), uri.text()),
                None => matches_by_segments(pattern, uri.text()),
            },
        }
    }

    fn is_denied_by(&self, pattern: &str) -> bool {
        match self {
            Self::Name(name) => matches(pattern, name),
            Self::Uri(None) => true,
            Self::Uri(Some(uri)) => match ResourceUri::parse(pattern) {
                Some(pattern) => uri.is_any_reading(|text| matches(pattern.folded(), text)),
                None => uri.is_any_reading(|text| matches(pattern, text)),
            },
        }
    }
}

/// Returns true if a rule is for a server and a principal.
pub(crate) fn has_rule(rules: &[AccessRule], server: &str, principal: Option<&str>) -> bool {
    rules.iter().any(|rule| rule.is_for(server, principal))
}

/// Returns true if a principal may see and use an item of a server.
pub(crate) fn may_use(
    rules: &[AccessRule],
    server: &str,
    principal: Option<&str>,
    item: &Item<'_>,
) -> bool {
    if matches!(item, Item::Uri(None)) {
        return !has_rule(rules, server, principal);
    }
    let applicable = rules.iter().rev();
    let applicable = applicable.filter(|rule| rule.is_for(server, principal));
    let mut decisions = applicable.filter_map(|rule| rule.decision(item));
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

/// Returns true if a pattern matches a complete URI: `*` matches characters of one segment, `**` any characters, and the
/// pattern `*` every URI. The time is at most proportional to the product of both lengths.
fn matches_by_segments(pattern: &str, uri: &str) -> bool {
    let Some(begin) = pattern.find('*') else {
        return pattern == uri;
    };
    let (literal, mut pattern) = pattern.as_bytes().split_at(begin);
    let Some(uri) = uri.as_bytes().strip_prefix(literal) else {
        return false;
    };
    if literal.is_empty() && pattern == b"*" {
        return true;
    }
    // True at each place of the URI up to which the pattern matches so far.
    let mut reached = vec![false; uri.len() + 1];
    reached[0] = true;
    while let Some((byte, rest)) = pattern.split_first() {
        pattern = rest;
        if *byte != b'*' {
            for at in (0..uri.len()).rev() {
                reached[at + 1] = reached[at] && uri[at] == *byte;
            }
            reached[0] = false;
            continue;
        }
        let crosses = rest.first() == Some(&b'*');
        if crosses {
            pattern = &rest[1..];
        }
        let mut is_reached = false;
        for at in 0..=uri.len() {
            is_reached |= reached[at];
            reached[at] = is_reached;
            is_reached &= crosses || !ends_segment(&uri[at..]);
        }
    }
    reached[uri.len()]
}

/// Returns true if `text`, the rest of a URI, begins with the end of a segment: a separator, or one that is percent-encoded, which
/// servers may decode.
fn ends_segment(text: &[u8]) -> bool {
    matches!(text, [b'/' | b'?' | b'#', ..]) || text.starts_with(b"%2F") || text.starts_with(b"%5C")
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
        let may = |server, principal, name| may_use(&rules, server, principal, &Item::Name(name));
        assert!(may("files", None, "read_text"));
        assert!(!may("files", None, "read_secret"));
        assert!(!may("files", Some("ops-1"), "write"));
        assert!(may("web", None, "anything"));
        assert!(!may("admin", None, "restart"));
        assert!(!may("admin", Some("guest"), "restart"));
        assert!(may("admin", Some("ops-1"), "restart"));
    }

    /// A rule sees every spelling of a URI, and an `allow` pattern no other case of a name than it has.
    #[test]
    fn rules_see_every_spelling_of_a_uri() {
        let denied = [rule("", "", "", "file:///secret note://Private/* *.key")];
        let allowed = [rule("", "", "file:///ok/* note://Ada/*", "")];
        let may = |rules: &[AccessRule], uri: &str| {
            may_use(
                rules,
                "x",
                None,
                &Item::Uri(ResourceUri::parse(uri).as_ref()),
            )
        };
        for uri in [
            "FILE:///x/../secre%74",
            "file://localhost/secret",
            "file:///secret?",
            "note://private/x",
            "note://Private/x?y#z",
            "web://a/b.key?x",
        ] {
            assert!(!may(&denied, uri), "{uri}");
            assert!(may(&[], uri), "{uri}");
        }
        for uri in [
            "file:///ok/../secret",
            "file:///ok/%2e%2e/secret",
            "note://ada/x",
        ] {
            assert!(!may(&allowed, uri), "{uri}");
        }
        for uri in ["file:///ok/x", "FILE:/ok/y/../x", "note://Ada/x"] {
            assert!(may(&allowed, uri), "{uri}");
        }
        assert!(may(&denied, "file:///secrets"));
    }

    /// `*` of a URI that is allowed stays in its segment, and `**` does not; what is denied is denied with all below it.
    #[test]
    fn allowed_uris_match_by_segments() {
        for (pattern, shown, hidden) in [
            ("file:///x/*", "file:///x/a", "file:///x/a/b"),
            ("file:///x/*", "file:///x/", "file:///y"),
            ("file:///x/**", "file:///x/a/b", "file:///xa"),
            ("file:///*/x/*.md", "file:///a/x/b.md", "file:///a/b/x/c.md"),
            ("file:///**/x/*.md", "file:///a/b/x/c.md", "file:///x/c.md"),
            ("http://a/*", "http://a/x", "http://a/x?y"),
            ("http://a/*/z", "http://a/x/z", "http://a/x%2Fy/z"),
            ("note:*", "note:x", "note:x/y"),
            ("*", "file:///x/a/b", ""),
            ("**.md", "web://a/b.md", "web://a/b.txt"),
        ] {
            let rules = [rule("", "", pattern, "")];
            let may = |uri: &str| {
                let uri = ResourceUri::parse(uri);
                may_use(&rules, "x", None, &Item::Uri(uri.as_ref()))
            };
            assert!(may(shown), "{pattern} {shown}");
            assert!(!may(hidden), "{pattern} {hidden}");
        }
        let denied = [rule("", "", "", "file:///x/* *.key")];
        for uri in ["file:///x/a", "file:///x/a/b/c", "web://a/b/c.key"] {
            let uri = ResourceUri::parse(uri);
            assert!(!may_use(&denied, "x", None, &Item::Uri(uri.as_ref())));
        }
    }
}
