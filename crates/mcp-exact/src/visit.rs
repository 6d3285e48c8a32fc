//! Pages that a server wants the user to visit (`client/elicitation`, "Safe URL Handling").
//!
//! Parses a URL so that an application can display its security-relevant parts. This module never opens or fetches a
//! page.

use std::net::{IpAddr, Ipv6Addr};
use std::ops::Range;

/// Page that a server wants the user to visit, for the handler of [`Connect::on_visit`](crate::Connect::on_visit).
///
/// A client must show the complete URL and obtain the user's consent before it opens the page in a browser whose
/// content the client cannot read. The client must not fetch the page itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    /// Message of the server to the user.
    message: String,
    /// Complete URL.
    url: String,
    /// Byte range of the host in the URL.
    host: Range<usize>,
}

/// Answer of the user to a [`Visit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VisitAnswer {
    /// The user has agreed to visit the page; the answer is sent before the user completes the page.
    Accept,
    /// The user has declined.
    Decline,
    /// The user has closed the dialogue without an answer.
    Cancel,
}

impl VisitAnswer {
    /// Returns the value of `action` in the result.
    pub(super) fn action(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

/// Warning about a URL, to be shown to the user before the visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum UrlWarning {
    /// The page is on a remote host and its traffic is not encrypted.
    #[error("the page is not encrypted")]
    NotEncrypted,
    /// The host has non-ASCII letters, which may look like other letters.
    #[error("the name of the host holds letters that may look like others (Punycode)")]
    Punycode,
    /// The host is an IP address instead of a name.
    #[error("the host is an address, not a name")]
    IpAddress,
}

/// Reason why a user cannot be asked to visit a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidVisitUrl {
    /// The scheme is neither https nor http.
    #[error("the URL is neither https nor http")]
    Scheme,
    /// The URL has characters that URL parsers interpret differently (RFC 3986, section 2).
    #[error("the URL holds characters that have to be encoded")]
    Characters,
    /// The URL has a user name before an `@`, which obscures the host.
    #[error("the URL names a user, which hides its host")]
    UserName,
    /// The URL has no host, or an invalid one.
    #[error("the URL has no valid host")]
    Host,
}

impl Visit {
    /// Parses a URL of the scheme https or http that has a host, no user name, and only characters of RFC 3986. Every
    /// URL parser interprets such a URL in the same way, so the browser opens the displayed host.
    ///
    /// # Errors
    /// [`InvalidVisitUrl`] if the URL violates one of these rules.
    pub fn new(url: impl Into<String>) -> Result<Self, InvalidVisitUrl> {
        let url = url.into();
        let scheme = url.find("://").ok_or(InvalidVisitUrl::Scheme)?;
        let is_known = ["https", "http"]
            .iter()
            .any(|known| url[..scheme].eq_ignore_ascii_case(known));
        if !is_known {
            return Err(InvalidVisitUrl::Scheme);
        }
        let is_of_urls = |byte: u8| byte.is_ascii_graphic() && !br#""<>\^`{|}"#.contains(&byte);
        if !url.bytes().all(is_of_urls) {
            return Err(InvalidVisitUrl::Characters);
        }
        let begin = scheme + 3;
        let length = url[begin..].find(['/', '?', '#']);
        let authority = &url[begin..length.map_or(url.len(), |length| begin + length)];
        if authority.contains('@') {
            return Err(InvalidVisitUrl::UserName);
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']').ok_or(InvalidVisitUrl::Host)?;
                address
                    .parse::<Ipv6Addr>()
                    .map_err(|_| InvalidVisitUrl::Host)?;
                (&authority[..address.len() + 2], port)
            }
            None => {
                let colon = authority.find(':').unwrap_or(authority.len());
                authority.split_at(colon)
            }
        };
        let is_of_names = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let is_name = !host.is_empty() && host.chars().all(is_of_names);
        let is_port = port.is_empty()
            || port
                .strip_prefix(':')
                .is_some_and(|port| port.parse::<u16>().is_ok());
        if !is_port || !(is_name || host.starts_with('[')) {
            return Err(InvalidVisitUrl::Host);
        }
        let host = begin..begin + host.len();
        Ok(Self {
            message: String::new(),
            url,
            host,
        })
    }

    pub(super) fn with_message(mut self, message: String) -> Self {
        self.message = message;
        self
    }

    /// Returns the server's message to the user; empty after [`Visit::new`].
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the complete URL, which must be shown to the user.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the host, which an application should highlight.
    pub fn host(&self) -> &str {
        &self.url[self.host.clone()]
    }

    /// Returns the warnings for the user.
    pub fn warnings(&self) -> Vec<UrlWarning> {
        let host = self.host().to_ascii_lowercase();
        let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or("");
        // Browsers treat a host as an IP address if its last label is a decimal or hexadecimal number.
        let is_number = last.starts_with("0x") || last.bytes().all(|byte| byte.is_ascii_digit());
        let is_address = host.starts_with('[') || is_number;
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_local = match address {
            Ok(address) => address.to_canonical().is_loopback(),
            Err(_) => host == "localhost" || host.ends_with(".localhost"),
        };
        let is_encrypted = self
            .url
            .get(..5)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https"));
        let has_punycode = host.split('.').any(|label| label.starts_with("xn--"));
        let mut warnings = Vec::new();
        if !is_encrypted && !is_local {
            warnings.push(UrlWarning::NotEncrypted);
        }
        if has_punycode {
            warnings.push(UrlWarning::Punycode);
        }
        if is_address && !is_local {
            warnings.push(UrlWarning::IpAddress);
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The host of a URL excludes the port, and each warning is reported for the URLs that it concerns.
    #[test]
    fn hosts_of_urls_are_parsed() {
        use UrlWarning::{IpAddress, NotEncrypted, Punycode};
        for (url, host, warnings) in [
            (
                "https://mcp.example.com/connect?x=1#y",
                "mcp.example.com",
                &[][..],
            ),
            ("HTTPS://mcp.example.com:8443", "mcp.example.com", &[]),
            ("https://mcp.example.com?a@b", "mcp.example.com", &[]),
            (
                "http://mcp.example.com/",
                "mcp.example.com",
                &[NotEncrypted],
            ),
            ("http://localhost:8080/", "localhost", &[]),
            ("http://127.0.0.1:8080/", "127.0.0.1", &[]),
            ("http://[::1]:8080/", "[::1]", &[]),
            ("https://10.0.0.1/", "10.0.0.1", &[IpAddress]),
            ("https://2130706433/", "2130706433", &[IpAddress]),
            ("https://a.0x7f/", "a.0x7f", &[IpAddress]),
            (
                "https://xn--pple-43d.example/",
                "xn--pple-43d.example",
                &[Punycode],
            ),
            (
                "http://xn--a.1/",
                "xn--a.1",
                &[NotEncrypted, Punycode, IpAddress],
            ),
        ] {
            let visit = Visit::new(url).expect(url);
            assert_eq!((visit.url(), visit.host()), (url, host));
            assert_eq!(visit.warnings(), warnings, "{url}");
        }
    }

    /// URLs are rejected if parsers may interpret them differently or if they do not name a page.
    #[test]
    fn ambiguous_urls_are_refused() {
        for (url, error) in [
            ("javascript:alert(1)", InvalidVisitUrl::Scheme),
            ("file:///etc/passwd", InvalidVisitUrl::Scheme),
            ("//mcp.example.com/", InvalidVisitUrl::Scheme),
            ("", InvalidVisitUrl::Scheme),
            (
                "https://good.example\\@evil.example/",
                InvalidVisitUrl::Characters,
            ),
            ("https://good.example/\u{202e}", InvalidVisitUrl::Characters),
            ("https://g\u{43e}od.example/", InvalidVisitUrl::Characters),
            ("https://good.example/ x", InvalidVisitUrl::Characters),
            ("https://good.example/\n", InvalidVisitUrl::Characters),
            (
                "https://good.example@evil.example/",
                InvalidVisitUrl::UserName,
            ),
            (
                "https://user:secret@good.example/",
                InvalidVisitUrl::UserName,
            ),
            ("https:///path", InvalidVisitUrl::Host),
            ("https://", InvalidVisitUrl::Host),
            ("https://a%2eb/", InvalidVisitUrl::Host),
            ("https://good.example:port/", InvalidVisitUrl::Host),
            ("https://good.example:1:2/", InvalidVisitUrl::Host),
            ("https://[::1/", InvalidVisitUrl::Host),
            ("https://[::1]x/", InvalidVisitUrl::Host),
        ] {
            assert_eq!(Visit::new(url), Err(error), "{url}");
        }
    }
}
