//! The URL of a server, and references that are resolved against it (RFC 3986, section 5.2).
//!
//! References to another origin are refused, because credentials may be sent only to the origin that the application
//! has specified.

use http::Uri;

/// Error for a URL to which messages cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidTarget {
    /// The URL is not an absolute HTTP URL.
    #[error(
        "`{0}` is not an absolute URL of HTTP; write `http://host/path` or `https://host/path`"
    )]
    NotHttp(String),
    /// The URL has another origin than the server.
    #[error("`{0}` belongs to another origin than the server; connect to that URL instead")]
    OtherOrigin(String),
}

/// Parses an absolute HTTP URL.
pub(super) fn parse_http_url(url: &str) -> Result<Uri, InvalidTarget> {
    let invalid = || InvalidTarget::NotHttp(url_for_logs(url));
    let without_fragment = url.split('#').next().unwrap_or("");
    let uri: Uri = without_fragment.parse().map_err(|_| invalid())?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    if is_http && uri.host().is_some_and(|host| !host.is_empty()) {
        Ok(uri)
    } else {
        Err(invalid())
    }
}

/// Returns a URL or a reference for errors and logs: without user name, password and query, which may contain
/// credentials.
pub(super) fn url_for_logs(url: &str) -> String {
    let url = url.split(['?', '#']).next().unwrap_or("");
    let Some((scheme, rest)) = url.split_once("//") else {
        return url.to_owned();
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = authority.rsplit('@').next().unwrap_or("");
    format!("{scheme}//{host}{path}")
}

/// Returns the user name and password of a URL.
fn userinfo(uri: &Uri) -> Option<&str> {
    let (userinfo, _) = uri.authority()?.as_str().rsplit_once('@')?;
    Some(userinfo)
}

/// Returns the scheme, host and port of a URL.
fn origin(uri: &Uri) -> (Option<&str>, Option<String>, Option<u16>) {
    let scheme = uri.scheme_str();
    let port = uri.port_u16().or(match scheme {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    });
    (scheme, uri.host().map(str::to_ascii_lowercase), port)
}

/// Resolves a reference against the URL `base` of the response that contains the reference; returns an error for a
/// reference to another origin.
///
/// A server behind a proxy that ends TLS believes that its own scheme is `http`: its URL with that scheme counts as one of `base`.
pub(super) fn resolve(base: &Uri, reference: &str) -> Result<Uri, InvalidTarget> {
    let reference = reference.trim().split('#').next().unwrap_or("");
    let invalid = || InvalidTarget::NotHttp(url_for_logs(reference));
    let scheme = base.scheme_str().unwrap_or("http");
    let authority = base.authority().map_or("", http::uri::Authority::as_str);
    let has_scheme = reference
        .split(['/', '?'])
        .next()
        .unwrap_or("")
        .contains(':');
    let text = if has_scheme {
        reference.to_owned()
    } else if reference.starts_with("//") {
        format!("{scheme}:{reference}")
    } else {
        let (path, query) = match reference.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (reference, None),
        };
        let query = match (path.is_empty(), query) {
            (true, None) => base.query(),
            (_, query) => query,
        };
        let path = match path {
            "" => base.path().to_owned(),
            path if path.starts_with('/') => remove_dot_segments(path),
            path => {
                let directory = base
                    .path()
                    .rsplit_once('/')
                    .map_or("", |(directory, _)| directory);
                remove_dot_segments(&format!("{directory}/{path}"))
            }
        };
        let query = query.map_or(String::new(), |query| format!("?{query}"));
        format!("{scheme}://{authority}{path}{query}")
    };
    let mut resolved = parse_http_url(&text).map_err(|_| invalid())?;
    if is_behind_tls(base, &resolved) {
        let path = resolved.path_and_query().map_or("/", |path| path.as_str());
        resolved = parse_http_url(&format!("https://{authority}{path}")).map_err(|_| invalid())?;
    }
    // A relative reference keeps the user that the program has named.
    let names_user = userinfo(&resolved).is_some_and(|named| Some(named) != userinfo(base));
    if origin(&resolved) == origin(base) && !names_user {
        Ok(resolved)
    } else {
        Err(InvalidTarget::OtherOrigin(url_for_logs(reference)))
    }
}

/// Returns true if a URL is one of the origin `base`, apart from the scheme `http` instead of `https`.
fn is_behind_tls(base: &Uri, url: &Uri) -> bool {
    let is_same_port = url.port_u16() == base.port_u16() || url.port_u16() == Some(80);
    let host = |uri: &Uri| uri.host().map(str::to_ascii_lowercase);
    (base.scheme_str(), url.scheme_str()) == (Some("https"), Some("http"))
        && host(base) == host(url)
        && is_same_port
        && userinfo(url).is_none()
}

/// Removes the segments `.` and `..` of an absolute path.
fn remove_dot_segments(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    let last = segments.len().saturating_sub(1);
    for (at, segment) in segments.into_iter().enumerate() {
        match segment {
            "." | ".." => {
                if segment == ".." {
                    kept.pop();
                }
                if at == last {
                    kept.push("");
                }
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative and absolute references are resolved as RFC 3986, section 5.2, specifies.
    #[test]
    fn references_are_resolved() {
        let base = parse_http_url("http://h.example:80/a/sse?x=1").expect("a URL");
        for (reference, expected) in [
            ("/messages?s=1", "http://h.example:80/messages?s=1"),
            ("messages?s=1", "http://h.example:80/a/messages?s=1"),
            ("../m", "http://h.example:80/m"),
            ("../../m", "http://h.example:80/m"),
            ("./", "http://h.example:80/a/"),
            ("?s=1", "http://h.example:80/a/sse?s=1"),
            ("", "http://h.example:80/a/sse?x=1"),
            ("//H.example/m", "http://H.example/m"),
            ("http://h.example/m?u=a:b", "http://h.example/m?u=a:b"),
            ("/m?u=http://other", "http://h.example:80/m?u=http://other"),
        ] {
            let resolved = resolve(&base, reference).map(|uri| uri.to_string());
            assert_eq!(resolved, Ok(expected.to_owned()), "{reference}");
        }
    }

    /// A server behind a proxy that ends TLS names its own URL with the scheme `http`: nothing is sent without TLS, and nothing to
    /// another host.
    #[test]
    fn http_behind_tls_stays_https() {
        for (base, reference, expected) in [
            (
                "https://h.example/mcp",
                "http://h.example/mcp/?a=b",
                Some("https://h.example/mcp/?a=b"),
            ),
            (
                "https://h.example/mcp",
                "http://H.example:80/m",
                Some("https://h.example/m"),
            ),
            (
                "https://h.example:8443/sse",
                "http://h.example:8443/m",
                Some("https://h.example:8443/m"),
            ),
            (
                "https://u:p@h.example/sse",
                "http://h.example/m",
                Some("https://u:p@h.example/m"),
            ),
            ("https://h.example:8443/sse", "http://h.example/m", None),
            ("https://h.example/sse", "http://h.example:8080/m", None),
            ("https://h.example/sse", "http://other.example/m", None),
            ("https://h.example/sse", "http://v@h.example/m", None),
        ] {
            let base = parse_http_url(base).expect("a URL");
            let resolved = resolve(&base, reference).map(|uri| uri.to_string());
            assert_eq!(resolved.ok().as_deref(), expected, "{base} {reference}");
        }
    }

    /// A resolved URL contains the user name and password of the base URL; a reference with another user name is
    /// refused.
    #[test]
    fn user_of_the_base_is_kept() {
        let base = parse_http_url("http://u:p@h.example/sse").expect("a URL");
        let resolved = resolve(&base, "/m").map(|uri| uri.to_string());
        assert_eq!(resolved, Ok("http://u:p@h.example/m".to_owned()));
        assert!(resolve(&base, "http://v@h.example/m").is_err());
    }

    /// URLs in errors and logs contain neither user name, password nor query.
    #[test]
    fn errors_show_no_credentials() {
        for (url, expected) in [
            ("http://u:p@h.example:80/a?key=k#f", "http://h.example:80/a"),
            ("http://u:p@h.example?key=k", "http://h.example"),
            ("//u:p@h.example/a", "//h.example/a"),
            ("/a?key=k", "/a"),
            ("", ""),
        ] {
            assert_eq!(url_for_logs(url), expected, "{url}");
        }
        let error = parse_http_url("ftp://u:p@h.example/a?key=k").expect_err("not HTTP");
        assert_eq!(
            error,
            InvalidTarget::NotHttp("ftp://h.example/a".to_owned())
        );
    }

    #[test]
    fn other_origins_are_refused() {
        let base = parse_http_url("http://h.example/sse").expect("a URL");
        for reference in [
            "http://evil.example/m",
            "https://h.example/m",
            "http://h.example:81/m",
            "//evil.example/m",
            "http://user@h.example/m",
            "file:///m",
            "javascript:1",
        ] {
            assert!(resolve(&base, reference).is_err(), "{reference}");
        }
        for url in ["h.example", "/mcp", "ftp://h.example", "http://"] {
            assert!(parse_http_url(url).is_err(), "{url}");
        }
    }
}
