//! Checks whether a string satisfies a JSON Schema `format`. The input is the decoded string, without quotes and
//! escapes. The check runs in linear time and does not allocate, recurse, panic or normalise. No name or address is
//! resolved: a `uri` need not exist.

use core::net::Ipv6Addr;

/// A JSON Schema `format` that can be checked without other data.
///
/// `email` is excluded, because the validity of internationalised (`xn--`) labels depends on Unicode tables (RFC 5892),
/// which this crate does not contain.
///
/// ```
/// use mcp_exact_wire::Format;
///
/// assert_eq!(Format::from_name("uri"), Some(Format::Uri));
/// assert!(Format::Uri.accepts("file:///etc/hosts"));
/// assert!(!Format::Uri.accepts("/etc/hosts"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// `uri`: a URI with its scheme, with or without a fragment (RFC 3986 section 3). Relative
    /// references and non-ASCII characters (RFC 3987) are refused.
    Uri,
    /// `uri-template`: a URI template of any level, reserved operators included (RFC 6570 section
    /// 2). Every non-ASCII character is allowed in a literal.
    UriTemplate,
    /// `byte`: base64 in the standard alphabet with padding (RFC 4648 section 4), without white
    /// space, and with zeros in the bits that the padding leaves unused (section 3.5).
    Byte,
    /// `date`: a `full-date` of an existing day (RFC 3339 sections 5.6 and 5.7).
    Date,
    /// `date-time`: a `date-time` with its offset (RFC 3339 sections 5.6 and 5.7). A leap second is
    /// allowed in the last minute, in UTC, of any day.
    DateTime,
}

impl Format {
    /// Returns the value of the `format` keyword (JSON Schema draft 2020-12, Validation, section 7; `byte` is
    /// OpenAPI's).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uri => "uri",
            Self::UriTemplate => "uri-template",
            Self::Byte => "byte",
            Self::Date => "date",
            Self::DateTime => "date-time",
        }
    }

    /// Returns the format with exactly this [`name`](Self::name), or `None` for a format that is not checked here; JSON
    /// Schema (Validation, section 7.2.3) requires validators to ignore unknown formats.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [
            Self::Uri,
            Self::UriTemplate,
            Self::Byte,
            Self::Date,
            Self::DateTime,
        ];
        all.into_iter().find(|format| format.name() == name)
    }

    /// Returns true if the whole `text` is in this format; the variants name the grammars (RFC 3986, 6570, 4648, 3339).
    #[must_use]
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::Uri => is_uri(text),
            Self::UriTemplate => is_uri_template(text),
            Self::Byte => is_base64(text.as_bytes()),
            Self::Date => is_full_date(text.as_bytes()),
            Self::DateTime => is_date_time(text.as_bytes()),
        }
    }
}

/// Returns true for a `URI` (RFC 3986 section 3).
fn is_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return false;
    };
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (hierarchy, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, path) = match hierarchy.strip_prefix("//") {
        Some(after) => after.split_at(after.find('/').unwrap_or(after.len())),
        None => ("", hierarchy),
    };
    is_scheme(scheme.as_bytes())
        && is_authority(authority)
        && is_encoded(path, |byte| is_pchar(byte) || byte == b'/')
        && is_encoded(query, is_query_byte)
        && is_encoded(fragment, is_query_byte)
}

/// Returns true for a `scheme` (RFC 3986 section 3.1).
fn is_scheme(scheme: &[u8]) -> bool {
    scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
}

/// Returns true for an `authority` (RFC 3986 section 3.2). An empty authority is valid, because its host is an empty
/// `reg-name`.
fn is_authority(authority: &str) -> bool {
    let (userinfo, host_port) = authority.split_once('@').unwrap_or(("", authority));
    let (host_fits, port) = if let Some(literal) = host_port.strip_prefix('[') {
        let Some((address, port)) = literal.split_once(']') else {
            return false;
        };
        (is_ip_literal(address), port)
    } else {
        let (name, port) = host_port.split_at(host_port.find(':').unwrap_or(host_port.len()));
        (is_encoded(name, is_name_byte), port)
    };
    host_fits
        && is_encoded(userinfo, |byte| is_name_byte(byte) || byte == b':')
        && (port.is_empty()
            || port
                .strip_prefix(':')
                .is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit())))
}

/// Returns true if the text is a valid content of the brackets of an `IP-literal` (RFC 3986 section 3.2.2; RFC 6874
/// zone ids are not allowed).
fn is_ip_literal(address: &str) -> bool {
    let Some(future) = address.strip_prefix(['v', 'V']) else {
        return address.parse::<Ipv6Addr>().is_ok();
    };
    future.split_once('.').is_some_and(|(version, address)| {
        !version.is_empty()
            && version.bytes().all(|byte| byte.is_ascii_hexdigit())
            && !address.is_empty()
            && address
                .bytes()
                .all(|byte| is_name_byte(byte) || byte == b':')
    })
}

/// Returns true if the text consists of `allowed` bytes and percent-encoded octets (RFC 3986 section 2.1).
fn is_encoded(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = match tail {
            [high, low, after @ ..]
                if *first == b'%' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                after
            }
            _ if allowed(*first) => tail,
            _ => return false,
        };
    }
    true
}

/// Returns true for a byte of `unreserved` or `sub-delims` (RFC 3986 sections 2.2 and 2.3).
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'_' | b'~')
        || matches!(
            byte,
            b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
        )
}

/// Returns true for a `pchar` that is not percent-encoded (RFC 3986 section 3.3).
fn is_pchar(byte: u8) -> bool {
    is_name_byte(byte) || matches!(byte, b':' | b'@')
}

/// Returns true if `query` and `fragment` may contain the byte (RFC 3986 sections 3.4 and 3.5).
fn is_query_byte(byte: u8) -> bool {
    is_pchar(byte) || matches!(byte, b'/' | b'?')
}

/// Returns true for a `URI-Template` (RFC 6570 section 2). An expression ends at the first `}`, because it cannot
/// contain this character.
fn is_uri_template(text: &str) -> bool {
    let mut rest = text;
    while let Some((literals, after)) = rest.split_once('{') {
        let Some((expression, after)) = after.split_once('}') else {
            return false;
        };
        if !is_encoded(literals, is_literal_byte) || !is_expression(expression) {
            return false;
        }
        rest = after;
    }
    is_encoded(rest, is_literal_byte)
}

/// Returns true for a byte of `literals` that is not percent-encoded (RFC 6570 section 2.1, with the apostrophe by
/// erratum 6937).
fn is_literal_byte(byte: u8) -> bool {
    !byte.is_ascii()
        || byte.is_ascii_graphic()
            && !matches!(
                byte,
                b'"' | b'%' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}'
            )
}

/// Returns true if the text is a valid content of the braces of an `expression` (RFC 6570 section 2.2).
fn is_expression(expression: &str) -> bool {
    /// Operators of an expression, reserved ones included (RFC 6570 section 2.2).
    const OPERATORS: [char; 12] = ['+', '#', '.', '/', ';', '?', '&', '=', ',', '!', '@', '|'];
    let variables = expression.strip_prefix(OPERATORS).unwrap_or(expression);
    variables.split(',').all(is_varspec)
}

/// Returns true for a `varspec` (RFC 6570 sections 2.3 and 2.4), whose prefix length is 1 to 9999.
fn is_varspec(varspec: &str) -> bool {
    let name = if let Some((name, length)) = varspec.split_once(':') {
        let digits = length.as_bytes();
        if !(1..=4).contains(&digits.len())
            || digits[0] == b'0'
            || !digits.iter().all(u8::is_ascii_digit)
        {
            return false;
        }
        name
    } else {
        varspec.strip_suffix('*').unwrap_or(varspec)
    };
    let is_varchar = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.split('.')
        .all(|part| !part.is_empty() && is_encoded(part, is_varchar))
}

/// Returns true for base64 in the standard alphabet with padding (RFC 4648 section 4).
fn is_base64(text: &[u8]) -> bool {
    // Section 3.5: the last symbol must not set bits that the padding drops.
    let (symbols, last_fits) = match text {
        [symbols @ .., last, b'=', b'='] => (symbols, b"AQgw".contains(last)),
        [symbols @ .., last, b'='] => (symbols, b"AEIMQUYcgkosw048".contains(last)),
        _ => (text, true),
    };
    // Contents can be megabytes long: `&` keeps the inner loop without branches, so that it
    // compiles to vector code, and chunks keep garbage from being read to its end.
    text.len().is_multiple_of(4)
        && last_fits
        && symbols.chunks(256).all(|chunk| {
            chunk
                .iter()
                .fold(true, |fits, &byte| fits & is_symbol(byte))
        })
}

/// Returns true for a character of the base64 alphabet (RFC 4648 section 4, table 1).
#[inline]
fn is_symbol(byte: u8) -> bool {
    let is_letter = (byte | 0x20).wrapping_sub(b'a') < 26;
    let is_digit = byte.wrapping_sub(b'0') < 10;
    is_letter | is_digit | (byte == b'+') | (byte == b'/')
}

/// Returns true for a `full-date` (RFC 3339 section 5.6, with the days of each month from section 5.7 and appendix C).
fn is_full_date(text: &[u8]) -> bool {
    let [year @ .., b'-', m1, m2, b'-', d1, d2] = text else {
        return false;
    };
    let [y1, y2, y3, y4] = *year else {
        return false;
    };
    let (Some(century), Some(year)) = (two_digits(y1, y2), two_digits(y3, y4)) else {
        return false;
    };
    let (Some(month), Some(day)) = (two_digits(*m1, *m2), two_digits(*d1, *d2)) else {
        return false;
    };
    let leap_cycle = if year == 0 { century } else { year };
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap_cycle % 4 == 0 => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

/// Returns true for a `date-time` (RFC 3339 section 5.6). The letters `T` and `Z` of a `date-time` may be in lower
/// case.
fn is_date_time(text: &[u8]) -> bool {
    match text.split_at_checked(10) {
        Some((date, [b'T' | b't', time @ ..])) => is_full_date(date) && is_full_time(time),
        _ => false,
    }
}

/// Returns true for a `full-time` (RFC 3339 section 5.6).
fn is_full_time(text: &[u8]) -> bool {
    let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = text else {
        return false;
    };
    let (Some(hour), Some(minute), Some(second)) = (
        two_digits(*h1, *h2),
        two_digits(*m1, *m2),
        two_digits(*s1, *s2),
    ) else {
        return false;
    };
    let offset = match rest {
        [b'.', fraction @ ..] => {
            let digits = fraction
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
        _ => rest,
    };
    let Some(offset) = offset_minutes(offset) else {
        return false;
    };
    // Section 5.7: second 60 exists at 23:59 UTC only. Leap seconds are announced and cannot be computed, so that every
    // day is accepted.
    let last_minute = || (hour * 60 + minute - offset).rem_euclid(24 * 60) == 24 * 60 - 1;
    hour <= 23 && minute <= 59 && (second <= 59 || second == 60 && last_minute())
}

/// Parses a `time-offset` (RFC 3339 section 5.6) as minutes east of UTC.
fn offset_minutes(text: &[u8]) -> Option<i16> {
    let (sign, h1, h2, m1, m2) = match *text {
        [b'Z' | b'z'] => return Some(0),
        [b'+', h1, h2, b':', m1, m2] => (1, h1, h2, m1, m2),
        [b'-', h1, h2, b':', m1, m2] => (-1, h1, h2, m1, m2),
        _ => return None,
    };
    let (hour, minute) = (two_digits(h1, h2)?, two_digits(m1, m2)?);
    (hour <= 23 && minute <= 59).then_some(sign * (hour * 60 + minute))
}

/// Parses a `2DIGIT` (RFC 3339 section 5.6).
fn two_digits(tens: u8, units: u8) -> Option<i16> {
    let both = tens.is_ascii_digit() && units.is_ascii_digit();
    both.then(|| i16::from(tens - b'0') * 10 + i16::from(units - b'0'))
}
