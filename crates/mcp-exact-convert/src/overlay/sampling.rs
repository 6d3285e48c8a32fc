//! Sampling: messages of several contents, which 2025-06-18 does not have.

use mcp_2025_06_18 as older;
use mcp_2025_11_25 as newer;
use newer::{SamplingMessage, SamplingMessageContent, SamplingMessageContentBlock};

use crate::context::Move;
use crate::{Context, ConvertTo, LossKind, Refused};

/// Makes one message of each content, of the same role and in the same order.
pub fn one_content_a_message(
    mut params: newer::CreateMessageRequestParams,
    cx: &mut Context,
) -> Result<newer::CreateMessageRequestParams, Refused> {
    let several =
        |message: &SamplingMessage| matches!(message.content, SamplingMessageContent::Array(_));
    if !params.messages.iter().any(several) {
        return Ok(params);
    }
    let place = cx.place() + "/messages";
    let (mut messages, mut moves) = (Vec::new(), Vec::new());
    for (before, message) in params.messages.into_iter().enumerate() {
        let before = format!("{place}/{before}");
        let SamplingMessageContent::Array(contents) = message.content else {
            let now = format!("{place}/{}", messages.len());
            moves.push(Move { now, before });
            messages.push(message);
            continue;
        };
        report(&before[cx.place().len()..], contents.len(), cx);
        let mut rest = Some((message.meta, message.extra));
        for (index, content) in contents.into_iter().enumerate() {
            let now = format!("{place}/{}", messages.len());
            moves.push(Move {
                now: format!("{now}/content"),
                before: format!("{before}/content/{index}"),
            });
            moves.push(Move {
                now,
                before: before.clone(),
            });
            let (meta, extra) = rest.take().unwrap_or_default();
            messages.push(SamplingMessage {
                meta,
                content: single(content, cx)?,
                role: message.role.clone(),
                extra,
            });
        }
    }
    params.messages = messages;
    cx.rearranged(moves);
    Ok(params)
}

fn report(message: &str, contents: usize, cx: &mut Context) {
    let pointer = cx.pointer() + message;
    if contents == 0 {
        let reason = "a message without content, which 2025-06-18 does not have";
        cx.report(pointer, LossKind::Dropped, reason);
    } else {
        let reason = "each content stands in a message of its own";
        cx.report(pointer + "/content", LossKind::Rewritten, reason);
    }
}

fn single(
    block: SamplingMessageContentBlock,
    cx: &mut Context,
) -> Result<SamplingMessageContent, Refused> {
    Ok(match block {
        SamplingMessageContentBlock::Text(content) => content.into(),
        SamplingMessageContentBlock::Image(content) => content.into(),
        SamplingMessageContentBlock::Audio(content) => content.into(),
        SamplingMessageContentBlock::ToolUse(content) => content.into(),
        SamplingMessageContentBlock::ToolResult(content) => content.into(),
        SamplingMessageContentBlock::Unrecognized(content) => {
            let kept = |kept: &SamplingMessageContent| {
                matches!(kept, SamplingMessageContent::Unrecognized(_))
            };
            cx.unrecognized(content.json(), kept)?
        }
    })
}

/// The content of an answer that has exactly one.
pub fn only_content(
    contents: Vec<SamplingMessageContentBlock>,
    cx: &mut Context,
) -> Result<older::SamplingMessageContent, Refused> {
    let count = contents.len();
    let mut contents = contents.into_iter();
    let (Some(content), None) = (contents.next(), contents.next()) else {
        let reason = format!("one content is needed up to 2025-06-18, and there are {count}");
        return Err(cx.refused(reason));
    };
    cx.lost_here(
        LossKind::Rewritten,
        "the only item of an array stands by itself",
    );
    cx.enter_index(0);
    let content = single(content, cx)?.convert_to(cx)?;
    let before = cx.place();
    cx.leave();
    cx.rearranged(vec![Move {
        now: cx.place(),
        before,
    }]);
    Ok(content)
}
