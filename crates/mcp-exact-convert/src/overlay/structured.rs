//! Structured content as text, for revisions that have none, or none that is no object.

#[cfg(all(feature = "2025-03-26", feature = "2025-06-18"))]
pub use from_2025_06_18::as_text;
#[cfg(all(feature = "2025-11-25", feature = "2026-07-28"))]
pub use from_2026_07_28::other_as_text;

#[cfg(all(feature = "2025-03-26", feature = "2025-06-18"))]
mod from_2025_06_18 {
    use mcp_2025_06_18::{CallToolResult, ContentBlock, TextContent};

    use super::{ADDED, carried};
    use crate::{Context, LossKind, Refused};

    /// Sees to it that a text block carries the JSON of `structuredContent`, which is left out by the step.
    pub fn as_text(
        mut result: CallToolResult,
        cx: &mut Context,
    ) -> Result<CallToolResult, Refused> {
        if let Some(structured) = &result.structured_content
            && !cx.keeps_newer()
        {
            let texts = result.content.iter().filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            });
            if !carried(texts, structured.text()) {
                result
                    .content
                    .push(TextContent::new(structured.text()).into());
                cx.lost("content", LossKind::Rewritten, ADDED);
            }
        }
        Ok(result)
    }
}

#[cfg(all(feature = "2025-11-25", feature = "2026-07-28"))]
mod from_2026_07_28 {
    use mcp_2026_07_28::{CallToolResult, ContentBlock, TextContent};
    use mcp_exact_wire::Kind;

    use super::{ADDED, carried};
    use crate::{Context, LossKind, Refused};

    /// The same for structured content that is no object, which 2025-11-25 does not have.
    pub fn other_as_text(
        mut result: CallToolResult,
        cx: &mut Context,
    ) -> Result<CallToolResult, Refused> {
        if let Some(structured) = &result.structured_content
            && structured.kind() != Kind::Object
        {
            let texts = result.content.iter().filter_map(|block| match block {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            });
            if !carried(texts, structured.text()) {
                result
                    .content
                    .push(TextContent::new(structured.text()).into());
                cx.lost("content", LossKind::Rewritten, ADDED);
            }
        }
        Ok(result)
    }
}

#[allow(dead_code)]
const ADDED: &str = "a text block carries the JSON of structuredContent";

/// Whether one of some texts is this JSON, white space aside.
#[allow(dead_code)]
fn carried<'t>(mut texts: impl Iterator<Item = &'t str>, json: &str) -> bool {
    let wanted = compact(json);
    texts.any(|text| compact(text) == wanted)
}

/// JSON without white space between its tokens.
#[allow(dead_code)]
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
