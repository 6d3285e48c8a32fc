//! Tests of the scan: ends and errors of values, compared with serde_json.

use super::*;
use crate::thinned;

/// Strings of every length at every place of a block, plain and with escape sequences, cut everywhere: containers
/// end where serde_json ends them.
#[test]
fn container_ends_agree_with_serde_json() {
    for distance in (0..150).step_by(thinned(7).max(3)) {
        let run = "a".repeat(distance);
        for piece in [
            "\"\"",
            "\"b\\\"\"",
            "\"\\u00e9\"",
            "[]",
            "{}",
            "1",
            "\"\n\"",
            "\"\\x\"",
        ] {
            let text =
                format!(r#"{{"{run}":"{run}", "b":[{piece},"{run}"],"{run}c": {{"d":{piece}}}}}"#);
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            let end = value_end(format!("{text}]").as_bytes(), 0);
            assert_eq!(end.ok(), is_json.then_some(text.len()), "{text}");
            for length in (1..text.len()).step_by(thinned(13).max(5)) {
                let cut = &text.as_bytes()[..length];
                assert!(value_end(cut, 0).is_err(), "{text} {length}");
            }
        }
    }
}

/// The depth is exact for any number of levels, and each level ends with its own bracket.
#[test]
fn nesting_is_exact_at_any_depth() {
    for depth in (1..200).step_by(thinned(37)) {
        let (mut open, mut close) = (String::new(), String::new());
        for level in 0..depth {
            let (opening, closing) = if level % 3 == 0 {
                ("[{},", "]")
            } else {
                (r#"{"a":"#, "}")
            };
            open += opening;
            close.insert_str(0, closing);
        }
        let text = format!("{open}[]{close}");
        let mut shape = Shape::default();
        let end = scan_value(text.as_bytes(), 0, &mut shape);
        assert_eq!((end, shape.depth), (Ok(text.len()), depth + 1));
        assert!(!shape.has_space);
        let other = text.replacen("}]", "]}", 1);
        assert_eq!(
            value_end(other.as_bytes(), 0).is_ok(),
            other == text,
            "{other}"
        );
    }
}

/// White space at any place between tokens is noticed, and white space inside strings is none.
#[test]
fn space_between_tokens_is_noticed() {
    let text = r#"{"a b" : [ 1 , "c\n d" ] , "e":{ } }"#;
    let is_inside = |at: usize| text[..at].matches('"').count() % 2 == 1;
    let spaces = text.match_indices(' ').filter(|(at, _)| !is_inside(*at));
    for kept in std::iter::once(None).chain(spaces.map(|(at, _)| Some(at))) {
        let chars = text.char_indices();
        let kept_chars = chars.filter(|&(at, c)| c != ' ' || is_inside(at) || kept == Some(at));
        let text: String = kept_chars.map(|(_, c)| c).collect();
        let mut shape = Shape::default();
        let end = scan_value(text.as_bytes(), 0, &mut shape);
        assert_eq!(
            (end, shape.has_space),
            (Ok(text.len()), kept.is_some()),
            "{text}"
        );
    }
}

/// Finds the end of a string byte by byte (RFC 8259 section 7).
fn scan_bytewise(bytes: &[u8]) -> Result<usize, NotJson> {
    let mut at = 0;
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(at + 1),
            Some(b'\\') => at = escape_end(bytes, at)?,
            Some(0x20..) => at += 1,
            _ => return Err(NotJson(at)),
        }
    }
}

/// Scanning in blocks and byte by byte find the same end, for every position of escape sequences, ends and errors.
#[test]
fn string_ends_agree_with_bytewise_scan() {
    let pieces = [
        "\\\"", "\\\\", "\\n", "\\/", "\\u00e9", "\\u00x9", "\\x", "\\", "\"", "\n", "\u{e9}",
    ];
    for distance in (0..140).step_by(thinned(3)) {
        let run = "a".repeat(distance);
        for first in pieces {
            for second in pieces {
                let text = format!("{run}{first}{run}{second}\\tb\"{run}");
                let bytes = text.as_bytes();
                assert_eq!(string_end(bytes, 0), scan_bytewise(bytes), "{text}");
                let close = format!("{first}{second}{run}\"");
                let bytes = close.as_bytes();
                assert_eq!(string_end(bytes, 0), scan_bytewise(bytes), "{close}");
            }
        }
    }
}
