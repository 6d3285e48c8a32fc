//! Structured content as a text block, for revisions without structured content or with objects only.

use mcp_exact_wire::Kind;

use super::{member_definition, variant_of};
use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::{Member, NOWHERE, Node};

/// Ensures that a text block contains the JSON of `structuredContent`, which peers of the older revision do not read.
pub fn as_text<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    add_text_block(cx, node);
    Ok(())
}

/// Ensures that a text block contains structured content that is not an object, which 2025-11-25 does not allow.
pub fn other_as_text<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let is_other = |structured: &mut Node<'t>| structured.kind() != Kind::Object;
    if node.member("structuredContent").is_some_and(is_other) {
        add_text_block(cx, node);
    }
    Ok(())
}

/// Adds a text block with the JSON of `structuredContent`, unless a text block contains this JSON.
fn add_text_block<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) {
    let Some(structured) = node.member("structuredContent") else {
        return;
    };
    let structured = structured.current_text();
    let block = member_definition(cx.source(), "content").and_then(|block| block.union());
    let variant = block.and_then(|union| variant_of(union, "TextContent"));
    let Some(content) = node.member("content") else {
        return;
    };
    let at = content.at;
    let Some(blocks) = content.items() else {
        return;
    };
    let mut texts = blocks.iter_mut().filter_map(|block| {
        let is_text = block.member("type")?.equals_text("\"text\"");
        let text = is_text.then(|| block.member("text")).flatten()?;
        text.string().map(|text| text.into_owned())
    });
    let wanted = compact(&structured);
    if texts.any(|text| compact(&text) == wanted) {
        return;
    }
    let members = vec![
        Member::new("type", Node::new_string("text")),
        Member::new("text", Node::new_string(&structured)),
    ];
    let mut text = Node::new_object(members, NOWHERE);
    if let Some(variant) = variant {
        text.push_variant(variant);
    }
    blocks.push(text);
    content.changed = true;
    let reason = "a text block carries the JSON of structuredContent";
    cx.record_loss("content", at, LossKind::Rewritten, reason);
}

/// Returns JSON without white space between its tokens.
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
