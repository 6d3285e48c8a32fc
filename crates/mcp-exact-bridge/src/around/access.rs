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
///
/// A `SKILL.md` (`skill://`) stands for its skill: where it is denied, everything in its directory is. A directory is matched
/// with a slash at its end, too, so that `skill://refunds/**` has the directory `skill://refunds`.
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

    /// Returns what the rule decides about an item; `None` if the rule does not apply.
    fn decision(&self, item: &Item<'_>) -> Option<Decision> {
        if self.deny.iter().any(|pattern| item.is_denied_by(pattern)) {
            return Some(Decision::Denied);
        }
        if self.allow.is_empty() {
            return None;
        }
        let is_allowed = self.allow.iter().any(|pattern| item.is_allowed_by(pattern));
        Some(if is_allowed {
            Decision::Shown
        } else {
            Decision::NotAllowed
        })
    }
}

/// What a rule decides about an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decision {
    Shown,
    /// The rule shows other items.
    NotAllowed,
    /// A pattern of the rule denies the item.
    Denied,
}

/// Item of a server that rules show or hide.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Item<'a> {
    /// Tool, prompt or method with this name.
    Name(&'a str),
    /// Resource or template; `None` if its URI has no normal form.
    Uri(Option<&'a ResourceUri>),
    /// Directory of resources, as skills have them; `None` if its URI has no normal form.
    Directory(Option<&'a ResourceUri>),
}

/// Maximum number of directories above a file of a skill. Deeper files are denied where a rule denies anything.
const MAX_DIRECTORIES: usize = 64;

impl Item<'_> {
    fn is_allowed_by(&self, pattern: &str) -> bool {
        match self {
            Self::Name(name) => matches(pattern, name),
            Self::Uri(None) | Self::Directory(None) => false,
            Self::Uri(Some(uri)) | Self::Directory(Some(uri)) => {
                let normal = ResourceUri::parse(pattern);
                let pattern = normal.as_ref().map_or(pattern, ResourceUri::text);
                matches_by_segments(pattern, uri.text())
                    || self.is_directory()
                        && matches_by_segments(pattern, &format!("{}/", uri.text()))
            }
        }
    }

    fn is_denied_by(&self, pattern: &str) -> bool {
        match self {
            Self::Name(name) => matches(pattern, name),
            Self::Uri(None) | Self::Directory(None) => true,
            Self::Uri(Some(uri)) | Self::Directory(Some(uri)) => {
                let normal = ResourceUri::parse(pattern);
                let pattern = normal.as_ref().map_or(pattern, ResourceUri::folded);
                uri.is_any_reading(|text| {
                    matches(pattern, text)
                        || self.is_directory() && matches(pattern, &format!("{text}/"))
                })
            }
        }
    }

    fn is_directory(&self) -> bool {
        matches!(self, Self::Directory(_))
    }

    /// Returns the URI of the `SKILL.md` in each directory that a file or directory of a skill is in, whether there is one or
    /// not; `None` stands for one without a normal form.
    fn skill_files(&self) -> Vec<Option<ResourceUri>> {
        let (Self::Uri(Some(uri)) | Self::Directory(Some(uri))) = self else {
            return Vec::new();
        };
        let Some(path) = uri.text().strip_prefix("skill:") else {
            return Vec::new();
        };
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let names = path.trim_start_matches('/');
        let begin = &path[..path.len() - names.len()];
        // Servers may decode a separator.
        let mut names = names.replace("%2F", "/").replace("%5C", "/");
        if self.is_directory() {
            names.push('/');
        }
        if names.matches('/').count() > MAX_DIRECTORIES {
            return vec![None];
        }
        let directories = names.match_indices('/').map(|(end, _)| &names[..end]);
        let files = directories.map(|names| format!("skill:{begin}{names}/SKILL.md"));
        files.map(|file| ResourceUri::parse(&file)).collect()
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
    if matches!(item, Item::Uri(None) | Item::Directory(None)) {
        return !has_rule(rules, server, principal);
    }
    let applicable = rules.iter().rev();
    let applicable: Vec<_> = applicable
        .filter(|rule| rule.is_for(server, principal))
        .collect();
    let decide = |item: &Item<'_>| applicable.iter().find_map(|rule| rule.decision(item));
    if decide(item).is_some_and(|decision| decision != Decision::Shown) {
        return false;
    }
    if applicable.iter().all(|rule| rule.deny.is_empty()) {
        return true;
    }
    let skills = item.skill_files();
    let mut decisions = skills.iter().map(|file| decide(&Item::Uri(file.as_ref())));
    !decisions.any(|decision| decision == Some(Decision::Denied))
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

    /// Where a `SKILL.md` is denied, everything in its directory is, unless a later rule shows that `SKILL.md`.
    #[test]
    fn denied_skills_are_denied_with_their_files() {
        let may = |rules: &[AccessRule], uri: &str, is_directory: bool| {
            let uri = ResourceUri::parse(uri);
            let item = if is_directory {
                Item::Directory(uri.as_ref())
            } else {
                Item::Uri(uri.as_ref())
            };
            may_use(rules, "x", None, &item)
        };
        let denied = [rule("", "", "", "skill://shop/admin/SKILL.md")];
        for (uri, is_directory) in [
            ("skill://shop/admin/SKILL.md", false),
            ("skill://shop/admin/scripts/x.sh", false),
            ("SKILL://SHOP/%61dmin/./scripts/x.sh", false),
            ("skill://shop/admin%2Fx.sh", false),
            ("skill://shop/admin", true),
            ("skill://shop/admin/scripts", true),
            ("skill://shop/admin/inner/SKILL.md", false),
        ] {
            assert!(!may(&denied, uri, is_directory), "{uri}");
        }
        for (uri, is_directory) in [
            ("skill://shop/SKILL.md", false),
            ("skill://shop", true),
            ("skill://shop/administration/x", false),
            ("file:///shop/admin/x", false),
        ] {
            assert!(may(&denied, uri, is_directory), "{uri}");
        }
        let shown_again = [denied[0].clone(), rule("", "", "skill://shop/admin/**", "")];
        assert!(may(&shown_again, "skill://shop/admin/scripts/x.sh", false));
        let deep = format!("skill://shop/{}x", "d/".repeat(100_000));
        assert!(!may(&denied, &deep, false));
        // What is not named by `allow` is no denial of what is inside of it.
        let allowed = [rule("", "", "skill://shop/refunds/**", "skill://x")];
        for (uri, is_directory, is_shown) in [
            ("skill://shop/refunds/SKILL.md", false, true),
            ("skill://shop/refunds", true, true),
            ("skill://shop/refunds/references", true, true),
            ("skill://shop/refunds", false, false),
            ("skill://shop", true, false),
            ("skill://shop/other/SKILL.md", false, false),
        ] {
            assert_eq!(may(&allowed, uri, is_directory), is_shown, "{uri}");
        }
        let all = [rule("", "", "", "skill://review/**")];
        assert!(!may(&all, "skill://review", true));
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
