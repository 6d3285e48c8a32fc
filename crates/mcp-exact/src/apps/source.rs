//! Sources of a Content Security Policy: hosts that a page names, checked before they become part of a header.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Longest text of a source, in bytes.
const MAX_BYTES: usize = 255;

/// Host from which a page may load, or to which it may connect, in the form of a source of a Content Security Policy:
/// `https://api.example.com`, `wss://live.example.com:8443`, `https://*.example.com`, `cdn.example.com`, `http://localhost:5173`,
/// or one of the schemes `blob:` and `data:`, which stand for images, fonts, media and requests alone: a script, a style, a nested
/// frame and a base URI need a host.
///
/// Nothing else is a source: no path, no keyword such as `'unsafe-eval'`, no wildcard for a whole top-level domain, no scheme that
/// stands for every host. A value of this type therefore never ends the directive in which it is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CspSource(String);

/// Reason why a text is no [source](CspSource).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct InvalidSource(&'static str);

impl CspSource {
    /// Returns the source in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Parses a source for a list of hosts that may permit schemes.
    pub(super) fn parse_for(text: &str, permits_schemes: bool) -> Result<Self, InvalidSource> {
        let source: Self = text.parse()?;
        if source.is_scheme() && !permits_schemes {
            return Err(InvalidSource("is a scheme, and this list has hosts alone"));
        }
        Ok(source)
    }

    /// Returns true if the source is the scheme `blob:` or `data:`.
    pub fn is_scheme(&self) -> bool {
        self.0.ends_with(':')
    }
}

impl fmt::Display for CspSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for CspSource {
    type Err = InvalidSource;

    fn from_str(text: &str) -> Result<Self, InvalidSource> {
        if text.len() > MAX_BYTES {
            return Err(InvalidSource("is longer than 255 bytes"));
        }
        let source = text.to_ascii_lowercase();
        if source == "blob:" || source == "data:" {
            return Ok(Self(source));
        }
        let rest = match source.split_once("://") {
            Some(("https" | "http" | "wss" | "ws", rest)) => rest,
            Some(_) => {
                return Err(InvalidSource(
                    "has a scheme other than https, http, wss and ws",
                ));
            }
            None => &source,
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = match rest.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (rest, None),
        };
        if port.is_some_and(|port| !is_port(port)) {
            return Err(InvalidSource("has no port number after the colon"));
        }
        let (labels, is_wildcard) = match host.strip_prefix("*.") {
            Some(labels) => (labels, true),
            None => (host, false),
        };
        if !is_host(labels) {
            return Err(InvalidSource(
                "is not the origin of a host, such as https://api.example.com",
            ));
        }
        if is_wildcard && !labels.contains('.') {
            return Err(InvalidSource("has a wildcard for a whole top-level domain"));
        }
        let source = source.strip_suffix('/').unwrap_or(&source);
        Ok(Self(source.to_owned()))
    }
}

/// Returns true if a text is a port number.
fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

/// What is wrong with the origin of a page that is none of [`is_domain`].
pub(super) const NO_DOMAIN: &str =
    "is not text of 1 to 255 bytes without control characters, as an origin is";

/// Returns true if a text can be the origin that a page asks for: "Format and validation rules are determined by each host" (UI
/// Resource Format).
pub(super) fn is_domain(text: &str) -> bool {
    (1..=MAX_BYTES).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Returns true if a text is the name of a host: labels of letters, digits, hyphens and underscores, separated by dots.
fn is_host(text: &str) -> bool {
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        (1..=63).contains(&bytes.len())
            && bytes.iter().all(plain)
            && bytes.first() != Some(&b'-')
            && bytes.last() != Some(&b'-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "Wildcard subdomains supported: `https://*.example.com`" (UI Resource Format); hosts of pages in use, too.
    #[test]
    fn origins_of_hosts_are_sources() {
        for (text, source) in [
            ("https://api.example.com", "https://api.example.com"),
            (
                "WSS://Live.example.com:8443/",
                "wss://live.example.com:8443",
            ),
            ("https://*.example.com", "https://*.example.com"),
            ("img.example.com", "img.example.com"),
            ("http://localhost:5173", "http://localhost:5173"),
            ("http://127.0.0.1", "http://127.0.0.1"),
            ("blob:", "blob:"),
            ("data:", "data:"),
        ] {
            let found = text.parse::<CspSource>();
            assert_eq!(found.as_ref().map(CspSource::as_str), Ok(source));
        }
    }

    /// "Host MAY further restrict but MUST NOT allow undeclared domains" (Host Behavior): no source ends its directive, is a keyword
    /// or stands for every host.
    #[test]
    fn other_texts_are_no_sources() {
        for text in [
            "",
            "*",
            "*.com",
            "https:",
            "https://",
            "https://*",
            "https://a.example.com; script-src *",
            "https://a.example.com https://b.example.com",
            "https://a.example.com\nhttps://b.example.com",
            "https://a.example.com,b.example.com",
            "'unsafe-eval'",
            "'self'",
            "filesystem:",
            "javascript://a.example.com",
            "https://user@a.example.com",
            "https://a.example.com/path",
            "https://a.example.com//",
            "https://a.example.com:*",
            "https://a.example.com:99999",
            "https://a.example.com:",
            "https://-a.example.com",
            "https://a..example.com",
            "https://*.*.example.com",
            "https://exämple.com",
            &format!("https://{}.example.com", "a".repeat(300)),
        ] {
            text.parse::<CspSource>().expect_err(text);
        }
    }
}
