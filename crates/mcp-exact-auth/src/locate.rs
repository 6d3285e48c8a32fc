//! Well-known URLs of metadata, and the check whether a resource covers an endpoint.
//!
//! Issuers and resources are passed as unmodified strings; URLs are parsed only to read their components.

use url::Url;

use crate::metadata::to_short_line;

/// Path of the metadata of a resource (RFC 9728).
const RESOURCE_WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// Path of the metadata of an authorization server (RFC 8414).
const SERVER_WELL_KNOWN: &str = "/.well-known/oauth-authorization-server";
/// Path of the metadata of an OpenID provider.
const OPENID_WELL_KNOWN: &str = "/.well-known/openid-configuration";

/// Parses an absolute HTTP URL without credentials. URLs with spaces or control characters, which browsers remove, are
/// rejected.
pub(crate) fn parse_url(text: &str) -> Option<Url> {
    if text.contains(|character: char| character.is_control() || character == ' ') {
        return None;
    }
    let url = Url::parse(text).ok()?;
    let is_http = matches!(url.scheme(), "http" | "https") && url.has_host();
    let is_plain = url.username().is_empty() && url.password().is_none();
    (is_http && is_plain).then_some(url)
}

/// Returns a URL for errors and logs: without user name, password, query and fragment, which can contain secrets, and
/// shortened to one line.
pub(crate) fn url_for_logs(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or("");
    let without_user = text.split_once("://").map(|(scheme, rest)| {
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = authority.rsplit('@').next().unwrap_or("");
        format!("{scheme}://{host}{path}")
    });
    to_short_line(without_user.as_deref().unwrap_or(text))
}

/// Returns scheme, host and port of a URL, without a trailing slash.
pub(crate) fn origin_of(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// Returns the path of a URL without a trailing slash.
fn path_of(url: &Url) -> &str {
    url.path().trim_end_matches('/')
}

/// Returns the well-known URLs for the metadata of a resource, the most specific first (RFC 9728, section 3.1).
pub(crate) fn resource_metadata_urls(endpoint: &Url) -> Vec<String> {
    let origin = origin_of(endpoint);
    let mut urls = vec![format!(
        "{origin}{RESOURCE_WELL_KNOWN}{}",
        path_of(endpoint)
    )];
    if !path_of(endpoint).is_empty() {
        urls.push(format!("{origin}{RESOURCE_WELL_KNOWN}"));
    }
    urls
}

/// Returns the well-known URLs for the metadata of an authorization server, in the order in which clients must try them
/// ("Authorization Server Metadata Discovery"). URLs without the issuer's path are included only if the issuer has no
/// path.
pub(crate) fn server_metadata_urls(issuer: &Url) -> Vec<String> {
    let origin = origin_of(issuer);
    match path_of(issuer) {
        "" => vec![
            format!("{origin}{SERVER_WELL_KNOWN}"),
            format!("{origin}{OPENID_WELL_KNOWN}"),
        ],
        path => vec![
            format!("{origin}{SERVER_WELL_KNOWN}{path}"),
            format!("{origin}{OPENID_WELL_KNOWN}{path}"),
            format!("{origin}{path}{OPENID_WELL_KNOWN}"),
        ],
    }
}

/// Returns the resource identifier for the URL of the endpoint, without a fragment and without a path that is only a
/// slash ("Canonical Server URI").
pub(crate) fn canonical_resource(endpoint: &Url) -> String {
    let mut url = endpoint.clone();
    url.set_fragment(None);
    match (url.path(), url.query()) {
        ("/", None) => origin_of(&url),
        _ => url.into(),
    }
}

/// Returns true if a resource covers an endpoint: the origins are equal, and the path of the resource equals the path
/// of the endpoint or is a prefix of the endpoint's path that ends at a segment boundary.
pub(crate) fn is_covered_by(resource: &str, endpoint: &Url) -> bool {
    let Some(resource) = parse_url(resource) else {
        return false;
    };
    let rest = endpoint.path().strip_prefix(path_of(&resource));
    let is_prefix = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let query = resource.query();
    resource.fragment().is_none()
        && resource.origin() == endpoint.origin()
        && is_prefix
        && (query.is_none() || query == endpoint.query())
}

/// Returns true if metadata at a URL that names a resource is metadata of an endpoint (RFC 9728, section 3.3): the resource is the
/// endpoint, or it covers the endpoint and the metadata is at the resource's own well-known URL. On a host of several tenants, one
/// cannot name the whole host.
pub(crate) fn is_metadata_of(resource: &str, url: &str, endpoint: &Url) -> bool {
    let Some(named) = parse_url(resource).filter(|_| is_covered_by(resource, endpoint)) else {
        return false;
    };
    let is_endpoint = path_of(&named) == path_of(endpoint);
    is_endpoint || resource_metadata_urls(&named).first().map(String::as_str) == Some(url)
}

/// Returns true if two strings identify the same issuer, or differ by a slash at the end of an origin alone. What a person has
/// written is compared so; the issuer of metadata must be identical.
pub(crate) fn is_same_issuer(a: &str, b: &str) -> bool {
    let is_origin = |text: &str| parse_url(text).is_some_and(|url| url.path() == "/");
    a == b || (a.trim_end_matches('/') == b.trim_end_matches('/') && is_origin(a) && is_origin(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        parse_url(text).expect("a URL")
    }

    #[test]
    fn only_http_urls_are_parsed() {
        for (text, expected) in [
            ("https://a.example/b", true),
            ("http://[::1]:8", true),
            ("https://user@a.example", false),
            ("https://user:secret@a.example", false),
            ("https:///", false),
            ("ftp://a.example", false),
            ("/a", false),
            ("https://a.exa\nmple", false),
            (" https://a.example", false),
            ("https://a.example/\u{1b}[2J", false),
        ] {
            assert_eq!(parse_url(text).is_some(), expected, "{text:?}");
        }
    }

    /// A URL in a log contains neither user name, password, query nor fragment, and is at most one line.
    #[test]
    fn logged_urls_contain_no_secret() {
        for (text, expected) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://u:hunter2@a.example", "https://a.example"),
            ("https://u:hunt@er2@a.example/@b", "https://a.example/@b"),
            ("https://a.example/?key=hunter2", "https://a.example/"),
            ("https://a.example?key=hunter2#x", "https://a.example"),
            ("a.example\n\u{1b}[2J", "a.example  [2J"),
        ] {
            assert_eq!(url_for_logs(text), expected);
        }
        assert_eq!(url_for_logs(&"x".repeat(1000)).len(), 300);
    }

    /// An endpoint with a path has a well-known URL with the path and one without it.
    #[test]
    fn resource_metadata_has_two_urls() {
        let urls = |text| resource_metadata_urls(&url(text));
        assert_eq!(
            urls("https://H.example:8443/a/mcp/?x#f"),
            [
                "https://h.example:8443/.well-known/oauth-protected-resource/a/mcp",
                "https://h.example:8443/.well-known/oauth-protected-resource"
            ]
        );
        assert_eq!(
            urls("https://h.example/"),
            ["https://h.example/.well-known/oauth-protected-resource"]
        );
    }

    /// The path of an issuer is part of each of its metadata URLs.
    #[test]
    fn server_metadata_urls_include_issuer_path() {
        assert_eq!(
            server_metadata_urls(&url("https://as.example/t1/")),
            [
                "https://as.example/.well-known/oauth-authorization-server/t1",
                "https://as.example/.well-known/openid-configuration/t1",
                "https://as.example/t1/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            server_metadata_urls(&url("https://as.example")),
            [
                "https://as.example/.well-known/oauth-authorization-server",
                "https://as.example/.well-known/openid-configuration"
            ]
        );
    }

    /// The path `/` is not part of a resource identifier.
    #[test]
    fn canonical_resource_has_no_bare_slash() {
        for (endpoint, resource) in [
            ("HTTPS://Mcp.Example.com/", "https://mcp.example.com"),
            ("https://a.example/mcp#x", "https://a.example/mcp"),
            ("https://a.example/mcp/", "https://a.example/mcp/"),
            ("https://a.example:8443/?t=1", "https://a.example:8443/?t=1"),
        ] {
            assert_eq!(canonical_resource(&url(endpoint)), resource);
        }
    }

    /// A resource covers an endpoint if its path consists of complete leading segments of the endpoint's path.
    #[test]
    fn resources_cover_complete_segments() {
        let endpoint = url("https://a.example/mcp/v1");
        for (resource, expected) in [
            ("https://a.example/mcp/v1", true),
            ("https://a.example/mcp/v1/", true),
            ("https://a.example/mcp", true),
            ("https://a.example", true),
            ("https://A.example:443/", true),
            ("https://a.example/mc", false),
            ("https://a.example/mcp/v1/x", false),
            ("https://a.example/mcp#f", false),
            ("https://a.example/mcp?x", false),
            ("http://a.example/mcp", false),
            ("https://a.example:444/mcp", false),
            ("https://b.example/mcp", false),
            ("https://u@a.example/mcp", false),
            ("a.example", false),
        ] {
            assert_eq!(is_covered_by(resource, &endpoint), expected, "{resource}");
        }
        let endpoint = url("https://a.example/mcp?tenant=1");
        for (resource, expected) in [
            ("https://a.example/mcp?tenant=1", true),
            ("https://a.example/mcp", true),
            ("https://a.example/mcp?tenant=2", false),
        ] {
            assert_eq!(is_covered_by(resource, &endpoint), expected, "{resource}");
        }
    }

    /// RFC 9728, section 3.3: metadata is used if it names the resource whose well-known URL was asked, or the endpoint.
    #[test]
    fn metadata_names_its_own_resource() {
        let endpoint = url("https://a.example/t/mcp");
        let at =
            |path: &str| format!("https://a.example/.well-known/oauth-protected-resource{path}");
        for (resource, url, expected) in [
            ("https://a.example/t/mcp", at("/t/mcp"), true),
            ("https://a.example/t/mcp/", at("/t/mcp"), true),
            ("https://a.example/t/mcp", at(""), true),
            ("https://a.example", at(""), true),
            ("https://a.example/", at(""), true),
            ("https://a.example/t", at("/t"), true),
            ("https://a.example", at("/t/mcp"), false),
            (
                "https://a.example",
                "https://a.example/t/prm.json".to_owned(),
                false,
            ),
            ("https://a.example/other", at("/other"), false),
            ("https://b.example", at(""), false),
        ] {
            assert_eq!(
                is_metadata_of(resource, &url, &endpoint),
                expected,
                "{resource} {url}"
            );
        }
    }

    /// Issuers are compared byte by byte, except that an empty path equals the path `/`.
    #[test]
    fn issuers_are_compared_byte_wise() {
        for (a, b, expected) in [
            ("https://a.example", "https://a.example", true),
            ("https://a.example/", "https://a.example", true),
            ("https://a.example/t", "https://a.example/t/", false),
            ("https://A.example", "https://a.example", false),
            ("https://a.example:443", "https://a.example", false),
        ] {
            assert_eq!(is_same_issuer(a, b), expected, "{a} {b}");
        }
    }
}
