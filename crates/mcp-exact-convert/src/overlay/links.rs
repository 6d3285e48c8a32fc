//! Resource links as text: 2025-03-26 has no such content.

use mcp_2025_03_26 as older;
use mcp_2025_06_18 as newer;

use crate::{Context, ConvertTo, LossKind, Refused};

/// A text block that tells what the link tells.
pub fn as_text(
    link: newer::ResourceLink,
    cx: &mut Context,
) -> Result<older::ContentBlock, Refused> {
    cx.lost_here(
        LossKind::Replaced,
        "a text block stands for the resource link, which 2025-03-26 does not have",
    );
    let name = link.title.as_ref().unwrap_or(&link.name);
    let mut text = format!("{name}: {}", link.uri);
    if let Some(mime_type) = &link.mime_type {
        text += &format!(" ({mime_type})");
    }
    if let Some(description) = &link.description {
        text += &format!("\n{description}");
    }
    let annotations = cx.optional("annotations", link.annotations, |annotations, cx| {
        annotations.convert_to(cx)
    })?;
    Ok(older::ContentBlock::Text(older::TextContent {
        annotations,
        ..older::TextContent::new(text)
    }))
}
