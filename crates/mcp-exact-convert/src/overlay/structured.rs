//! Structured content as text, for revisions that have none, or none that is no object.

#[cfg(feature = "2025-03-26")]
use mcp_2025_06_18 as c;
use mcp_2026_07_28 as e;
use mcp_exact_wire::Kind;

use crate::{Context, LossKind, Refused};

/// Sees to it that a text block carries the JSON of `structuredContent`, which is left out by the step.
#[cfg(feature = "2025-03-26")]
pub fn as_text(
    mut result: c::CallToolResult,
    cx: &mut Context,
) -> Result<c::CallToolResult, Refused> {
    if let Some(structured) = &result.structured_content
        && !cx.keeps_newer()
    {
        let texts = result.content.iter().filter_map(|block| match block {
            c::ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        if !carried(texts, structured.text()) {
            let text = c::TextContent::new(structured.text());
            result.content.push(text.into());
            cx.lost("content", LossKind::Rewritten, ADDED);
        }
    }
    Ok(result)
}

/// The same for structured content that is no object, which 2025-11-25 does not have.
pub fn other_as_text(
    mut result: e::CallToolResult,
    cx: &mut Context,
) -> Result<e::CallToolResult, Refused> {
    if let Some(structured) = &result.structured_content
        && structured.kind() != Kind::Object
    {
        let texts = result.content.iter().filter_map(|block| match block {
            e::ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        if !carried(texts, structured.text()) {
            let text = e::TextContent::new(structured.text());
            result.content.push(text.into());
            cx.lost("content", LossKind::Rewritten, ADDED);
        }
    }
    Ok(result)
}

const ADDED: &str = "a text block carries the JSON of structuredContent";

/// Whether one of some texts is this JSON, white space aside.
fn carried<'t>(mut texts: impl Iterator<Item = &'t str>, json: &str) -> bool {
    let wanted = compact(json);
    texts.any(|text| compact(text) == wanted)
}

/// JSON without white space between its tokens.
fn compact(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut inside, mut escaped) = (false, false);
    for c in json.chars() {
        if inside || !c.is_ascii_whitespace() {
            out.push(c);
        }
        if escaped {
            escaped = false;
        } else if c == '"' {
            inside = !inside;
        } else if c == '\\' {
            escaped = inside;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_counts_in_strings_only() {
        assert_eq!(compact(r#" { "a b" : "\" c" } "#), r#"{"a b":"\" c"}"#);
        assert!(carried(["x", "{\"a\": 1}"].into_iter(), "{\"a\":1}"));
        assert!(!carried(["{\"a\": 2}"].into_iter(), "{\"a\":1}"));
    }
}
