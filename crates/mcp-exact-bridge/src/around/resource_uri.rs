//! Normal form of the URIs of resources (RFC 3986, section 6), so that rules see what the server is asked for.
//!
//! Scheme, percent-encoding, dot segments, default ports and, for `file`, the host `localhost` are normalised. A URI that
//! servers may still read in several ways has no normal form.

/// Schemes whose host is a name of the DNS, in which case has no meaning.
const DNS_SCHEMES: [&str; 6] = ["file", "ftp", "http", "https", "ws", "wss"];

/// Begin of the text that stands for an expression of a URI template while the rest is normalised.
const EXPRESSION: &str = "~mcp-exact-";

/// URI or URI template in normal form; `*` of a pattern is an ordinary character of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResourceUri {
    /// Normal form. Outside of [`DNS_SCHEMES`], the authority keeps its case: many servers have names of their own there.
    text: String,
    /// Normal form with an authority in lower case.
    folded: String,
}

impl ResourceUri {
    /// Returns the normal form of a URI or a URI template; `None` if it has none.
    pub(crate) fn parse(uri: &str) -> Option<Self> {
        if !uri.contains('{') {
            return Self::parse_uri(uri);
        }
        let (mut plain, mut expressions) = (String::new(), Vec::new());
        let mut rest = uri;
        while let Some((before, after)) = rest.split_once('{') {
            let (expression, after) = after.split_once('}')?;
            plain = format!("{plain}{before}{EXPRESSION}{}~", expressions.len());
            expressions.push(expression);
            rest = after;
        }
        if uri.contains(EXPRESSION) {
            return None;
        }
        let mut normal = Self::parse_uri(&(plain + rest))?;
        for (number, expression) in expressions.iter().enumerate() {
            let (mark, expression) = (
                format!("{EXPRESSION}{number}~"),
                format!("{{{expression}}}"),
            );
            for text in [&mut normal.text, &mut normal.folded] {
                *text = text.replacen(&mark, &expression, 1);
            }
        }
        Some(normal)
    }

    fn parse_uri(uri: &str) -> Option<Self> {
        let given = fluent_uri::Iri::parse(uri).ok()?.to_uri();
        let normal = given.normalize();
        let scheme = normal.scheme().as_str();
        let mut path = normal.path().as_str().to_owned();
        if has_hidden_segments(&path) {
            return None;
        }
        let mut authority = normal.authority().map(|authority| authority.as_str());
        let mut rest = String::new();
        for (mark, part) in [
            ('?', normal.query().map(|query| query.as_str())),
            ('#', normal.fragment().map(|fragment| fragment.as_str())),
        ] {
            if let Some(part) = part {
                rest.push(mark);
                rest.push_str(part);
            }
        }
        if scheme == "file" {
            // A path of files has no query; servers differ in what they make of it, and of a separator inside a name.
            let is_ambiguous = ["%2F", "%5C"].iter().any(|encoded| path.contains(encoded));
            if is_ambiguous || !rest.is_empty() || !path.starts_with('/') {
                return None;
            }
            while path.contains("//") {
                path = path.replace("//", "/");
            }
            authority = authority.filter(|host| *host != "localhost").or(Some(""));
        }
        let has_dns = DNS_SCHEMES.contains(&scheme);
        if has_dns && path.is_empty() && authority.is_some_and(|host| !host.ends_with('*')) {
            path.push('/');
        }
        let with = |authority: Option<&str>| {
            let authority = authority.map_or(String::new(), |authority| format!("//{authority}"));
            format!("{scheme}:{authority}{path}{rest}")
        };
        let given = given.authority().map(|authority| authority.as_str());
        let is_same = |given: &&str| authority.is_some_and(|host| given.eq_ignore_ascii_case(host));
        let spelt = given.filter(|_| !has_dns).filter(is_same);
        Some(Self {
            text: with(spelt.or(authority)),
            folded: with(authority),
        })
    }

    /// Returns the normal form that a server is asked for.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text by which two spellings of a URI are compared.
    pub(crate) fn folded(&self) -> &str {
        &self.folded
    }

    /// Returns true if `is_match` accepts the URI or a part of it that another server may take for the whole: the URI
    /// without its fragment, without its query, and with its authority in lower case; and a file without the slash at its end,
    /// which libraries for paths remove.
    pub(crate) fn is_any_reading(&self, is_match: impl Fn(&str) -> bool) -> bool {
        let without = |text: &'_ str, marks: &[char]| text.find(marks).unwrap_or(text.len());
        [&self.text, &self.folded].into_iter().any(|text| {
            let is_file = text.starts_with("file:");
            is_match(text)
                || is_file && is_match(text.trim_end_matches('/'))
                || is_match(&text[..without(text, &['#'])])
                || is_match(&text[..without(text, &['?', '#'])])
        })
    }
}

/// Returns true if a path has segments that some servers resolve and others do not: dot segments of a path without root
/// or behind an encoded separator, and the byte zero.
fn has_hidden_segments(path: &str) -> bool {
    let decoded = path.replace("%2F", "/").replace("%5C", "/");
    let mut segments = decoded.split('/');
    path.contains("%00") || segments.any(|segment| matches!(segment, "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(uri: &str) -> Option<String> {
        ResourceUri::parse(uri).map(|uri| uri.text)
    }

    /// Equivalent spellings have one normal form.
    #[test]
    fn spellings_have_one_normal_form() {
        for (normal, spellings) in [
            (
                "file:///secret",
                &[
                    "FILE:///secret",
                    "file:///secre%74",
                    "file://localhost/secret",
                    "file://LOCALHOST/secret",
                    "file:/secret",
                    "file:///x/../secret",
                    "file:///x/%2e%2E/secret",
                    "file:///./secret",
                    "file:////secret",
                    "file:///../secret",
                ][..],
            ),
            (
                "http://a.example/",
                &["HTTP://A.example:80", "http://a.example:/"][..],
            ),
            ("note://Ada/x?Y=1#Z", &["NOTE://Ada/./x?Y=1#Z"][..]),
            ("docs:///%C3%BC", &["docs:///ü", "docs:///%c3%bc"][..]),
            (
                "docs://x/{+page}/{?q*}",
                &["DOCS://x/y/../{+page}/{?q*}"][..],
            ),
            ("urn:a:b", &["URN:a:b"][..]),
        ] {
            assert_eq!(text(normal).as_deref(), Some(normal));
            for spelling in spellings {
                assert_eq!(text(spelling).as_deref(), Some(normal), "{spelling}");
            }
        }
        let [one, other] = ["note://Ada", "note://ada"].map(ResourceUri::parse);
        let (one, other) = (one.expect("a URI"), other.expect("a URI"));
        assert_eq!(one.folded(), other.folded());
        assert_ne!(one.text(), other.text());
    }

    /// A URI that servers read in several ways has no normal form.
    #[test]
    fn ambiguous_uris_have_no_normal_form() {
        for uri in [
            "",
            "secret",
            "/secret",
            "file:secret",
            "file:///ok/..%2Fsecret",
            "file:///ok%2fx",
            "file:///ok/..%5csecret",
            "file:///secret?",
            "file:///secret#x",
            "file:///secret%00",
            "file:///a\\..\\b",
            "note:a/../b",
            "http://a/..%2f..%2fx",
            "note://a b",
            "{x}://a",
            "note://{a",
        ] {
            assert_eq!(text(uri), None, "{uri}");
        }
    }
}
