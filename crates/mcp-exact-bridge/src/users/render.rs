//! Responses of the pages, and their HTML. What clients and servers have named is escaped.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION, REFERRER_POLICY,
    SET_COOKIE, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderValue, Response, StatusCode};

/// Maximum number of characters of a text of others on a page.
const MAX_TEXT: usize = 2_000;

/// Escapes a text for HTML, and cuts it. Control characters, and those that change the direction of what follows, are replaced.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars().take(MAX_TEXT) {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control()
                || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}') =>
            {
                escaped.push('\u{fffd}');
            }
            c => escaped.push(c),
        }
    }
    if text.chars().nth(MAX_TEXT).is_some() {
        escaped.push('…');
    }
    escaped
}

/// Returns a response with the headers of all pages.
fn response(status: StatusCode, body: String, cookies: &[String]) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    // Nothing is loaded, framed, cached or told to other sites.
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (
            CONTENT_SECURITY_POLICY,
            "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
        ),
        (X_FRAME_OPTIONS, "DENY"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // The form needs its `Origin`, which `no-referrer` would hide.
        (REFERRER_POLICY, "same-origin"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for cookie in cookies {
        if let Ok(cookie) = HeaderValue::from_str(cookie) {
            headers.append(SET_COOKIE, cookie);
        }
    }
    response
}

/// Returns a page with a title and a body of HTML.
pub(super) fn page(
    status: StatusCode,
    title: &str,
    body: &str,
    cookies: &[String],
) -> Response<Bytes> {
    let title = escape(title);
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n<h1>{title}</h1>\n{body}\n</html>\n"
    );
    let mut response = response(status, html, cookies);
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html);
    response
}

/// Returns a page with a sentence.
pub(super) fn sentence(status: StatusCode, title: &str, text: &str) -> Response<Bytes> {
    page(status, title, &format!("<p>{}</p>", escape(text)), &[])
}

/// Returns a redirect of the browser to another URL, with a cookie.
pub(super) fn redirect(url: &str, cookie: String) -> Response<Bytes> {
    let mut response = response(StatusCode::SEE_OTHER, String::new(), &[cookie]);
    if let Ok(url) = HeaderValue::from_str(url) {
        response.headers_mut().insert(LOCATION, url);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of clients and servers is escaped, cut to one line, and cannot change the direction of the text after it.
    #[test]
    fn texts_of_others_are_escaped() {
        for (text, expected) in [
            ("<b>&\"'", "&lt;b&gt;&amp;&quot;&#39;"),
            ("a\u{202e}b\nc", "a\u{fffd}b\u{fffd}c"),
        ] {
            assert_eq!(escape(text), expected);
        }
        assert_eq!(escape(&"x".repeat(5_000)).chars().count(), MAX_TEXT + 1);
    }
}
