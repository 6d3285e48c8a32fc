//! Parses and writes `WWW-Authenticate` challenges (RFC 9110, section 11.6.1).
//!
//! A header can contain several challenges, and a response several headers; the parser skips invalid parts.

use std::fmt::Write as _;

use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue};

/// A challenge: a scheme and its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Authentication scheme, such as `Bearer`.
    scheme: String,
    /// Names and values of the parameters, in order.
    params: Vec<(String, String)>,
}

impl Challenge {
    /// Creates a challenge without parameters.
    pub fn new(scheme: &str) -> Self {
        Self {
            scheme: scheme.to_owned(),
            params: Vec::new(),
        }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with_param(mut self, name: &str, value: impl Into<String>) -> Self {
        self.params.push((name.to_owned(), value.into()));
        self
    }

    /// Returns true if the challenge has this scheme; case is ignored.
    pub fn has_scheme(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Returns the value of a parameter; the case of the name is ignored.
    pub fn param(&self, name: &str) -> Option<&str> {
        let mut all = self.params.iter();
        let found = all.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Parses all challenges of a response, including challenges of unknown schemes.
    pub fn parse_headers(headers: &HeaderMap) -> Vec<Self> {
        let values = headers.get_all(WWW_AUTHENTICATE).iter();
        let texts = values.filter_map(|value| std::str::from_utf8(value.as_bytes()).ok());
        texts.flat_map(Self::parse).collect()
    }

    /// Parses the challenges of one header.
    pub fn parse(text: &str) -> Vec<Self> {
        let mut rest = RemainingText(text);
        let mut found: Vec<Self> = Vec::new();
        loop {
            rest.skip_spaces(&[' ', '\t', ',']);
            if rest.0.is_empty() {
                return found;
            }
            let Some(name) = rest.token() else {
                // Text that is not a token is skipped up to the next comma.
                rest.skip_until_comma();
                continue;
            };
            let after_name = rest.0;
            rest.skip_spaces(&[' ', '\t']);
            match (rest.value(), found.last_mut()) {
                (Some(value), Some(challenge)) => {
                    challenge.params.push((name.to_ascii_lowercase(), value));
                }
                (Some(_), None) => {}
                // A parameter without a value.
                (None, _) if rest.0.starts_with('=') => rest.skip_until_comma(),
                (None, _) => {
                    rest.0 = after_name;
                    found.push(Self::new(name));
                    rest.skip_spaces(&[' ', '\t']);
                    rest.skip_token68();
                }
            }
        }
    }

    /// Returns the header value. Characters that a header must not contain become `?`.
    pub fn to_header(&self) -> HeaderValue {
        let mut text = self.scheme.clone();
        for (at, (name, value)) in self.params.iter().enumerate() {
            let separator = if at == 0 { " " } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{name}=\"");
            for character in value.chars() {
                match character {
                    '"' | '\\' => text.extend(['\\', character]),
                    ' '..='~' => text.push(character),
                    _ => text.push('?'),
                }
            }
            text.push('"');
        }
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("Bearer"))
    }
}

/// Remaining text of a header during parsing.
struct RemainingText<'t>(&'t str);

impl<'t> RemainingText<'t> {
    /// Skips the leading characters that are in `characters`.
    fn skip_spaces(&mut self, characters: &[char]) {
        self.0 = self.0.trim_start_matches(characters);
    }

    /// Skips the text before the next comma.
    fn skip_until_comma(&mut self) {
        self.0 = self.0.find(',').map_or("", |at| &self.0[at..]);
    }

    /// Parses a token (RFC 9110, section 5.6.2); `None` if there is no token.
    fn token(&mut self) -> Option<&'t str> {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let end = self.0.find(|c| !is_token(c)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        (!token.is_empty()).then_some(token)
    }

    /// Parses `=` and a token or a quoted string. Returns `None` and does not consume `=` if no value follows.
    fn value(&mut self) -> Option<String> {
        let after = self.0.strip_prefix('=')?;
        let after = after.trim_start_matches([' ', '\t']);
        if after.is_empty() || after.starts_with(['=', ',']) {
            return None;
        }
        let Some(quoted) = after.strip_prefix('"') else {
            // Some servers send URLs without quotes.
            let end = after.find([',', ' ', '\t']).unwrap_or(after.len());
            self.0 = &after[end..];
            return Some(after[..end].to_owned());
        };
        let mut value = String::new();
        let mut characters = quoted.char_indices();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.0 = &quoted[at + 1..];
                    return Some(value);
                }
                '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                _ => value.push(character),
            }
        }
        self.0 = "";
        Some(value)
    }

    /// Skips the token68 of a challenge, as used by the scheme Negotiate.
    fn skip_token68(&mut self) {
        let is_token68 = |c: char| c.is_ascii_alphanumeric() || "-._~+/".contains(c);
        let end = self.0.find(|c| !is_token68(c)).unwrap_or(self.0.len());
        let rest = self.0[end..].trim_start_matches('=');
        let ends = rest.trim_start_matches([' ', '\t']);
        if ends.is_empty() || ends.starts_with(',') {
            self.0 = ends;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a header value and compares the challenges: scheme and parameters of each.
    fn check_parsed(text: &str, expected: &[(&str, &[(&str, &str)])]) {
        let found = Challenge::parse(text);
        let expected = expected.iter().map(|(scheme, params)| {
            let params = params.iter();
            params.fold(Challenge::new(scheme), |challenge, (name, value)| {
                challenge.with_param(name, *value)
            })
        });
        assert_eq!(found, expected.collect::<Vec<_>>(), "{text}");
    }

    /// Parameters, quoted strings, token68 values and several challenges in one header are parsed.
    #[test]
    fn challenges_are_parsed() {
        check_parsed("Bearer", &[("Bearer", &[])]);
        check_parsed(
            r#"Bearer resource_metadata="https://a/b", scope="x y""#,
            &[(
                "Bearer",
                &[("resource_metadata", "https://a/b"), ("scope", "x y")],
            )],
        );
        check_parsed(
            r#"Negotiate YWJj==, Basic realm="a, \"b\"" , bearer error=invalid_token"#,
            &[
                ("Negotiate", &[]),
                ("Basic", &[("realm", r#"a, "b""#)]),
                ("bearer", &[("error", "invalid_token")]),
            ],
        );
        check_parsed(
            "Negotiate, DPoP algs=\"ES256\", Bearer Resource_Metadata = https://a/b?c=d,",
            &[
                ("Negotiate", &[]),
                ("DPoP", &[("algs", "ES256")]),
                ("Bearer", &[("resource_metadata", "https://a/b?c=d")]),
            ],
        );
        check_parsed("Bearer scope=\"open", &[("Bearer", &[("scope", "open")])]);
        // A parameter without a value ends no challenge.
        for empty in ["error=", "error = ", "error=="] {
            check_parsed(
                &format!(r#"Bearer scope="x", {empty}, resource_metadata="https://a/b""#),
                &[(
                    "Bearer",
                    &[("scope", "x"), ("resource_metadata", "https://a/b")],
                )],
            );
        }
        check_parsed("Bearer scope=x, error=", &[("Bearer", &[("scope", "x")])]);
        check_parsed("YWJj==, Basic", &[("Basic", &[])]);
        for token68 in ["YWJj", "YWJj=", "YWJj== ", "a-._~+/1"] {
            let expected: [(_, &[_]); 2] = [("Negotiate", &[]), ("Basic", &[])];
            check_parsed(&format!("Negotiate {token68}, Basic"), &expected);
            check_parsed(&format!("Negotiate  {token68}"), &expected[..1]);
        }
        // Some servers leave out the commas.
        check_parsed(
            r#"Bearer error="invalid_token" scope="x" a=b c=d"#,
            &[(
                "Bearer",
                &[
                    ("error", "invalid_token"),
                    ("scope", "x"),
                    ("a", "b"),
                    ("c", "d"),
                ],
            )],
        );
        check_parsed(", = \"x\" ,, ", &[]);
    }

    /// A challenge that was written to a header is parsed to an equal challenge.
    #[test]
    fn written_challenges_are_parsed_again() {
        let challenge = Challenge::new("Bearer")
            .with_param("error_description", r#"a "quoted" \ text"#)
            .with_param("scope", "a b");
        let header = challenge.to_header();
        let text = header.to_str().expect("ASCII");
        assert_eq!(
            text,
            r#"Bearer error_description="a \"quoted\" \\ text", scope="a b""#
        );
        assert_eq!(Challenge::parse(text), [challenge]);
        let header = Challenge::new("Bearer")
            .with_param("a", "é\r\nX: y")
            .to_header();
        assert_eq!(header, r#"Bearer a="???X: y""#);
    }

    /// The parser skips invalid parts of a header, and panics for no input.
    #[test]
    fn invalid_headers_do_not_panic() {
        let pieces = ["a", "=", "\"", "\\", ",", " ", "é", "Bearer ", "x=\"y\""];
        for seed in 0..pieces.len().pow(5) {
            let mut seed = seed;
            let mut text = String::new();
            for _ in 0..5 {
                text += pieces[seed % pieces.len()];
                seed /= pieces.len();
            }
            Challenge::parse(&text);
        }
    }
}
