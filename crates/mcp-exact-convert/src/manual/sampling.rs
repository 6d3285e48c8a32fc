//! Sampling messages with several content blocks, which 2025-06-18 does not have.

use mcp_exact_wire::Kind;

use super::{item_definition, member_definition, variant_of};
use crate::LossKind;
use crate::conversion::Conversion;
use crate::layout::{Definition, Type, Union};
use crate::loss::Step;
use crate::node::{Node, UNKNOWN};

/// Splits each message into one message per content block, with the same role and in the same order.
pub fn one_content_a_message<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let content = member_definition(cx.source(), "messages")
        .and_then(|message| member_definition(message, "content"));
    let (Some(list), Some(content)) = (node.member("messages"), content) else {
        return Ok(());
    };
    let list_at = list.at;
    let Some(messages) = list.items() else {
        return Ok(());
    };
    if !messages.iter_mut().any(has_several) {
        return Ok(());
    }
    let mut split = Vec::with_capacity(messages.len());
    cx.enter("messages", list_at);
    for (index, mut message) in std::mem::take(messages).into_iter().enumerate() {
        if !has_several(&mut message) {
            split.push(message);
            continue;
        }
        let contents = message.take("content");
        let at = contents.as_ref().map_or(message.at, |contents| contents.at);
        let contents = contents.and_then(|mut contents| Some(std::mem::take(contents.items()?)));
        let contents = contents.unwrap_or_default();
        cx.enter_index(index, message.at);
        report(cx, contents.len(), at);
        cx.leave();
        let role = message.member("role").cloned();
        for (index, mut item) in contents.into_iter().enumerate() {
            replace_item_variant(&mut item, content);
            let mut next = match (index, &role) {
                (0, _) => std::mem::replace(&mut message, Node::new_object(Vec::new(), 0)),
                (_, role) => {
                    let mut next = Node::new_object(Vec::new(), last_split_offset(&split));
                    if let Some(role) = role {
                        next.set("role", role.clone());
                    }
                    next
                }
            };
            next.set("content", item);
            split.push(next);
        }
    }
    cx.leave();
    list.changed = true;
    if let Some(messages) = list.items() {
        *messages = split;
    }
    Ok(())
}

/// Returns the offset of the last message in the list of split messages; `NOWHERE` if the list is empty.
fn last_split_offset(split: &[Node<'_>]) -> usize {
    split.last().map_or(crate::node::NOWHERE, |last| last.at)
}

/// Returns true if the content of a message is an array.
fn has_several(message: &mut Node<'_>) -> bool {
    let content = message.member("content");
    content.is_some_and(|content| content.kind() == Kind::Array)
}

/// Reports that a message was split, or dropped because it had no content.
fn report(cx: &mut Conversion<'_, '_>, contents: usize, at: usize) {
    if contents == 0 {
        let reason = "a message without content, which 2025-06-18 does not have";
        cx.report(cx.place(), LossKind::Dropped, reason);
    } else {
        let reason = "each content stands in a message of its own";
        cx.record_loss("content", at, LossKind::Rewritten, reason);
    }
}

/// Replaces the mark of an item's variant by the variant of the union `content` with the same definition.
fn replace_item_variant(item: &mut Node<'_>, content: &Definition) {
    let Some((union, items)) = content
        .union()
        .and_then(|union| Some((union, item_union(union)?)))
    else {
        return;
    };
    let variant = match item.pop_variant() {
        Some(UNKNOWN) => Some(UNKNOWN),
        Some(at) => {
            let variant = items.variant(at);
            variant.and_then(|value| variant_of(union, Type::at(value).name()))
        }
        None => None,
    };
    if let Some(variant) = variant {
        item.push_variant(variant);
    }
}

/// Returns the union of the items of a union's array variant; `None` if there is none.
fn item_union(union: &'static Union) -> Option<&'static Union> {
    let array = *union.arrays.rows().first()?;
    item_definition(Type::at(union.variant(array)?))?.union()
}

/// Replaces the content array of a sampling result by its only content block.
pub fn only_content<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let contents = node.items().map(std::mem::take).unwrap_or_default();
    let count = contents.len();
    let mut contents = contents.into_iter();
    let (Some(mut content), None) = (contents.next(), contents.next()) else {
        let reason = format!("one content is needed up to 2025-06-18, and there are {count}");
        return Err(cx.refused(reason));
    };
    let reason = "the only item of an array stands by itself";
    cx.report(cx.place(), LossKind::Rewritten, reason);
    cx.enter_index(0, content.at);
    replace_item_variant(&mut content, cx.source());
    cx.convert_again(&mut content)?;
    cx.leave();
    content.changed = true;
    *node = content;
    Ok(())
}
