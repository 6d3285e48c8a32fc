//! Checks of a request before its body is read: `Host`, `Origin`, media types.
//!
//! A failed check returns the response that rejects the request.

use http::header::{ACCEPT, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use super::options::{Allowed, HttpServerOptions};
use super::response::{Refusal, refuse};
use crate::http::{EVENT_STREAM, JSON, has_media_type};

/// Checks that the headers `Host` and `Origin` are allowed (`basic/transports`, "Security Warning").
pub(super) fn check_source(parts: &Parts, options: &HttpServerOptions) -> Result<(), Refusal> {
    check_one_host(parts)?;
    check_origin(parts, options)?;
    check_host_name(parts, options)
}

/// Checks that the header `Host` is allowed, for pages that browsers navigate to.
pub(super) fn check_host(parts: &Parts, options: &HttpServerOptions) -> Result<(), Refusal> {
    check_one_host(parts)?;
    check_host_name(parts, options)
}

/// Checks that there is at most one header `Host`.
fn check_one_host(parts: &Parts) -> Result<(), Refusal> {
    let mut named = parts.headers.get_all(HOST).iter();
    named.next();
    // RFC 9112, section 3.2.
    if named.next().is_some() {
        let message = "the request names more than one `Host`; send one";
        return Err(refuse(StatusCode::BAD_REQUEST, message));
    }
    Ok(())
}

/// Checks the name in the header `Host`.
fn check_host_name(parts: &Parts, options: &HttpServerOptions) -> Result<(), Refusal> {
    let host = parts.headers.get(HOST);
    let host_allowed = match &options.hosts {
        Allowed::Any => true,
        hosts => {
            let host = host.map(|host| host.to_str().unwrap_or(""));
            let authority = parts.uri.authority().map(http::uri::Authority::as_str);
            let is_same =
                |host: &str| authority.is_none_or(|named| named.eq_ignore_ascii_case(host));
            match (host, authority) {
                (Some(host), _) => is_same(host) && is_host_allowed(host, hosts),
                (None, Some(authority)) => is_host_allowed(authority, hosts),
                (None, None) => false,
            }
        }
    };
    if host_allowed {
        Ok(())
    } else {
        let [setting, _] = options.source_settings;
        let message = format!("the host is not allowed; add it to `{setting}`");
        Err(refuse(StatusCode::FORBIDDEN, &message))
    }
}

/// Checks that the header `Origin` is allowed: "Servers MUST validate the `Origin` header on all incoming connections"
/// (`basic/transports`, "Security Warning").
pub(super) fn check_origin(parts: &Parts, options: &HttpServerOptions) -> Result<(), Refusal> {
    let mut origins = parts.headers.get_all(ORIGIN).iter();
    let is_allowed = origins.all(|origin| {
        let origin = origin.to_str().unwrap_or("");
        is_origin_allowed(origin, &options.origins)
    });
    if is_allowed {
        return Ok(());
    }
    let [_, setting] = options.source_settings;
    let message = format!("the origin is not allowed; add it to `{setting}`");
    Err(refuse(StatusCode::FORBIDDEN, &message))
}

/// Returns true if web pages of this origin may use the server.
pub(super) fn is_origin_allowed(origin: &str, allowed: &Allowed) -> bool {
    match allowed {
        Allowed::Any => true,
        Allowed::Only(known) => known.iter().any(|known| known.eq_ignore_ascii_case(origin)),
        Allowed::Loopback => {
            let host = origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://"));
            host.is_some_and(is_loopback)
        }
    }
}

/// Returns true if the value of the header `Host` is an allowed name of the server.
fn is_host_allowed(host: &str, allowed: &Allowed) -> bool {
    match allowed {
        Allowed::Any => true,
        Allowed::Only(known) => {
            let name = host_name(host).unwrap_or(host);
            let fits = |known: &String| {
                known.eq_ignore_ascii_case(host) || known.eq_ignore_ascii_case(name)
            };
            known.iter().any(fits)
        }
        Allowed::Loopback => is_loopback(host),
    }
}

/// Returns true if a host name is a loopback name or address.
fn is_loopback(host: &str) -> bool {
    let is_named = |name: &str| {
        let mut known = ["127.0.0.1", "localhost", "[::1]"].into_iter();
        known.any(|known| known.eq_ignore_ascii_case(name))
    };
    host_name(host).is_some_and(is_named)
}

/// Returns the host without its port; `None` if `host` is malformed.
fn host_name(host: &str) -> Option<&str> {
    let end = if host.starts_with('[') {
        host.find(']')? + 1
    } else {
        host.find(':').unwrap_or(host.len())
    };
    let (name, port) = host.split_at(end);
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (port.is_empty() || port.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// Checks the media type of the body of a POST, and the media types that its client accepts.
pub(super) fn check_post_types(headers: &HeaderMap) -> Result<(), Refusal> {
    if !has_media_type(headers, JSON) {
        let message = "the body must be `application/json`";
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
    }
    // What clients send as a rule.
    let usual = "application/json, text/event-stream";
    let is_usual = |accept: &HeaderMap| accept.get(ACCEPT).is_some_and(|accept| accept == usual);
    if is_usual(headers) || accepts(headers, JSON) && accepts(headers, EVENT_STREAM) {
        Ok(())
    } else {
        Err(refuse(
            StatusCode::NOT_ACCEPTABLE,
            "the client has to accept `application/json` and `text/event-stream`",
        ))
    }
}

/// Checks that the client of a GET accepts an event stream.
pub(super) fn check_get_types(headers: &HeaderMap) -> Result<(), Refusal> {
    if accepts(headers, EVENT_STREAM) {
        Ok(())
    } else {
        let message = "the client has to accept `text/event-stream`";
        Err(refuse(StatusCode::NOT_ACCEPTABLE, message))
    }
}

/// Returns true if a client accepts a media type. Without the header `Accept`, a client accepts every type; the most specific
/// range that includes a type determines its weight (RFC 9110, section 12.5.1).
fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let mut lines = headers.get_all(ACCEPT).iter().peekable();
    if lines.peek().is_none() {
        return true;
    }
    let ranges = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','));
    let matching = ranges.filter_map(|range| read_range(range, media_type));
    matching.max().is_some_and(|(_, is_accepted)| is_accepted)
}

/// Returns how specific a range of `Accept` is, and false if its weight is zero; `None` if the range does not include the media
/// type.
fn read_range(range: &str, media_type: &str) -> Option<(u8, bool)> {
    let mut parts = range.split(';').map(str::trim);
    let name = parts.next().unwrap_or("");
    let group = media_type.split('/').next().unwrap_or("");
    let specificity = match name.strip_suffix("/*") {
        Some("*") => 0,
        Some(prefix) if prefix.eq_ignore_ascii_case(group) => 1,
        None if name.eq_ignore_ascii_case(media_type) => 2,
        _ => return None,
    };
    let is_refused = parts.any(|parameter| {
        let weight = parameter.split_once('=');
        let weight = weight.filter(|(name, _)| name.eq_ignore_ascii_case("q"));
        weight.is_some_and(|(_, weight)| weight.parse() == Ok(0.0_f32))
    });
    Some((specificity, !is_refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a header map from names and values.
    fn headers(named: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in named {
            headers.append(*name, value.parse().expect("a value"));
        }
        headers
    }

    /// A host is allowed only if the complete name is allowed; a name that merely begins with an allowed name is not.
    #[test]
    fn hosts_are_compared_whole() {
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:9",
            "[::1]",
            "[::1]:80",
        ] {
            assert!(is_host_allowed(host, &Allowed::Loopback), "{host}");
        }
        for host in [
            "",
            "localhost.evil.example",
            "evil.example",
            "localhost:80:90",
            "localhost:",
            "localhost:x",
            "127.0.0.1.evil.example",
            "[::1",
            "[::1]x",
            "localhost@evil.example",
        ] {
            assert!(!is_host_allowed(host, &Allowed::Loopback), "{host}");
        }
        let only = Allowed::Only(vec!["a.example".into(), "b.example:8443".into()]);
        for (host, expected) in [
            ("a.example", true),
            ("A.example:1", true),
            ("b.example:8443", true),
            ("b.example", false),
            ("b.example:1", false),
            ("localhost", false),
        ] {
            assert_eq!(is_host_allowed(host, &only), expected, "{host}");
        }
    }

    /// An origin is allowed only if its complete host is allowed; `null` and schemes other than HTTP are not.
    #[test]
    fn origins_are_compared_whole() {
        for (origin, expected) in [
            ("http://localhost:3000", true),
            ("https://127.0.0.1", true),
            ("null", false),
            ("http://localhost.evil.example", false),
            ("file://", false),
            ("http://evil.example", false),
        ] {
            assert_eq!(
                is_origin_allowed(origin, &Allowed::Loopback),
                expected,
                "{origin}"
            );
        }
    }

    /// The check of `Accept` supports wildcards, and treats the weight `q=0` as a refusal: "the most specific reference has
    /// precedence" (RFC 9110, section 12.5.1).
    #[test]
    fn accept_supports_wildcards_and_weights() {
        for (accept, expected) in [
            ("application/json, text/event-stream", true),
            ("*/*", true),
            ("text/*;q=0.5, application/*", true),
            ("application/json", false),
            ("text/event-stream", false),
            ("application/json, text/event-stream;q=0", false),
            ("application/json, text/event-stream;Q=0.000", false),
            ("application/json, text/event-stream;q=0, */*", false),
            ("application/json, text/*;q=0, */*", false),
            ("*/*;q=0, application/json, text/*;q=0.1", true),
            ("text/*;q=0, application/json, text/event-stream", true),
        ] {
            let headers = headers(&[
                ("content-type", "application/json; charset=utf-8"),
                ("accept", accept),
            ]);
            assert_eq!(check_post_types(&headers).is_ok(), expected, "{accept}");
        }
        assert!(check_post_types(&headers(&[("content-type", "text/plain")])).is_err());
        assert!(check_post_types(&headers(&[("content-type", "application/json")])).is_ok());
    }
}
