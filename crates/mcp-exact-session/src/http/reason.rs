//! Reason that the body of an HTTP response gives, for the errors that a person reads.
//!
//! Servers explain an error in a JSON-RPC error, in problem details (RFC 9457), in other JSON, in text, or in an HTML
//! page of a proxy.

use mcp_exact_wire::{JsonRef, ObjectRef, from_slice};

/// Maximum number of characters of a body that an error shows.
const SHOWN_CHARS: usize = 300;
/// Maximum number of bytes of a body in which a reason is looked for.
const READ_BYTES: usize = 64 << 10;
/// Members of JSON bodies that contain a reason, in the order in which they are looked for.
const REASON_MEMBERS: [&str; 6] = [
    "detail",
    "error_description",
    "message",
    "error",
    "title",
    "reason",
];

/// Returns the reason in the body of an HTTP response: the message of an error, the title of a page, or the first 300
/// characters; `None` for an empty body.
pub fn describe_body(body: &[u8]) -> Option<String> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let text = String::from_utf8_lossy(&body[..body.len().min(READ_BYTES)]);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let json = from_slice::<mcp_exact_wire::Json>(body.trim_ascii()).ok();
    let reason = json.as_ref().and_then(|json| reason_in(json.view(), 2));
    if let Some(reason) = reason {
        return Some(shorten(&reason));
    }
    if text.starts_with('<') {
        return Some(match title_of(text) {
            Some(title) => format!("the page \"{}\"", shorten(&title)),
            None => "a page without a title".to_owned(),
        });
    }
    Some(shorten(text))
}

/// Returns text on one line, without control characters, cut after 300 characters.
pub(crate) fn shorten(text: &str) -> String {
    let mut words = text
        .split(|letter: char| letter.is_whitespace() || letter.is_control())
        .filter(|word| !word.is_empty());
    let mut line = words.next().unwrap_or("").to_owned();
    for word in words {
        line.push(' ');
        line.push_str(word);
    }
    match line.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns the reason that a JSON value gives; looks into `levels` levels of objects.
fn reason_in(json: JsonRef<'_>, levels: u32) -> Option<String> {
    if let Some(text) = json.as_str() {
        return Some(text.into_owned()).filter(|text| !text.trim().is_empty());
    }
    let object: ObjectRef<'_> = json.object().filter(|_| levels > 0)?;
    let mut members = REASON_MEMBERS.iter();
    members.find_map(|name| reason_in(object.find(name)?, levels - 1))
}

/// Returns the title of an HTML page.
fn title_of(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let begin = lower.find("<title")?;
    let begin = begin + lower[begin..].find('>')? + 1;
    let end = begin + lower[begin..].find("</title")?;
    let title = page[begin..end].trim();
    let title = title
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&");
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason is found in every form in which servers give one.
    #[test]
    fn reasons_are_found() {
        let long = "x".repeat(400);
        let cut = format!("{}…", "x".repeat(300));
        for (body, expected) in [
            ("", None),
            (" \r\n", None),
            (
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No session"}}"#,
                Some("No session"),
            ),
            (
                r#"{"type":"about:blank","title":"Bad Request","detail":"no tenant","status":400}"#,
                Some("no tenant"),
            ),
            (
                r#"{"title":"Bad Request","status":400}"#,
                Some("Bad Request"),
            ),
            (
                r#"{"error":"invalid_token","error_description":"it is expired"}"#,
                Some("it is expired"),
            ),
            (r#"{"error":"unknown host"}"#, Some("unknown host")),
            (
                r#"{"message":{"no":"text"}}"#,
                Some(r#"{"message":{"no":"text"}}"#),
            ),
            (r#""plain""#, Some("plain")),
            (
                "upstream\u{1b}[31m  timed\nout",
                Some("upstream [31m timed out"),
            ),
            ("\u{feff}late", Some("late")),
            (
                "<!DOCTYPE html>\n<html><head><TITLE lang=\"en\">502 Bad &amp; Gateway</TITLE>",
                Some("the page \"502 Bad & Gateway\""),
            ),
            ("<html><body>", Some("a page without a title")),
            (long.as_str(), Some(cut.as_str())),
        ] {
            assert_eq!(
                describe_body(body.as_bytes()).as_deref(),
                expected,
                "{body}"
            );
        }
    }

    /// Bytes that are no text, and endless nesting, do no harm.
    #[test]
    fn hostile_bodies_are_described() {
        assert_eq!(
            describe_body(b"\xff\xfe").as_deref(),
            Some("\u{fffd}\u{fffd}")
        );
        let deep = "[".repeat(100_000);
        assert!(describe_body(deep.as_bytes()).is_some_and(|text| text.chars().count() == 301));
        assert!(describe_body(b"<title").is_some());
        assert!(describe_body("<title>\u{130}</title>".as_bytes()).is_some());
    }
}
