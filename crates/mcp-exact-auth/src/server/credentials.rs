//! Credentials in the headers of a request (RFC 6750, RFC 9449).

use http::HeaderValue;
use http::header::{HeaderMap, HeaderName};

/// Removes a header and returns its values.
pub(super) fn take_header_values(headers: &mut HeaderMap, name: &HeaderName) -> Vec<HeaderValue> {
    let values = headers.get_all(name).iter().cloned().collect();
    headers.remove(name);
    values
}

/// Parses scheme and token (RFC 6750, section 2.1).
pub(super) fn parse_credentials(header: &HeaderValue) -> Option<(&str, &str)> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    let token = token.trim_matches(' ');
    let is_token = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    let is_basic = !scheme.eq_ignore_ascii_case("Bearer") && !scheme.eq_ignore_ascii_case("DPoP");
    (is_basic || (!token.is_empty() && token.chars().all(is_token))).then_some((scheme, token))
}
