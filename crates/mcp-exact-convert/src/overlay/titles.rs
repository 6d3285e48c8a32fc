//! Titles of tools: up to 2025-03-26 they stood in the annotations.

use mcp_2025_06_18::{Tool, ToolAnnotations};

use crate::context::Move;
use crate::{Context, LossKind, Refused};

/// Moves the title into the annotations when they have none: there it stood up to 2025-03-26.
pub fn to_annotations(mut tool: Tool, cx: &mut Context) -> Result<Tool, Refused> {
    let free = tool.annotations.as_ref().is_none_or(|a| a.title.is_none());
    if cx.keeps_newer() || tool.title.is_none() || !free {
        return Ok(tool);
    }
    let reason = "the title stands in annotations.title";
    cx.lost("title", LossKind::Rewritten, reason);
    let pointer = cx.pointer() + "/annotations/title";
    cx.report(pointer, LossKind::Rewritten, reason);
    let at = |member: &str| cx.place() + member;
    let mut moves = vec![Move {
        now: at("/annotations/title"),
        before: at("/title"),
    }];
    if tool.annotations.is_none() {
        moves.push(Move {
            now: at("/annotations"),
            before: at("/title"),
        });
    }
    tool.annotations
        .get_or_insert_with(ToolAnnotations::new)
        .title = tool.title.take();
    cx.rearranged(moves);
    Ok(tool)
}
