//! Completion results have at most 100 values from 2026-07-28 on.

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::{NOWHERE, Node};

const MAX_VALUES: usize = 100;

/// Drops the values after the hundredth and sets `hasMore`.
pub fn first_hundred<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let Some(values) = node.member("values") else {
        return Ok(());
    };
    let Some(items) = values.items().filter(|items| items.len() > MAX_VALUES) else {
        return Ok(());
    };
    let count = items.len() - MAX_VALUES;
    items.truncate(MAX_VALUES);
    let at = values.at;
    values.changed = true;
    // One loss for all values, because there may be many.
    let reason = format!("2026-07-28 allows a hundred values; the last {count} are left out");
    cx.record_loss("values", at, LossKind::Dropped, reason);
    let more = node.member("hasMore");
    let at = more.as_ref().map_or(NOWHERE, |more| more.at);
    let kind = match more {
        None => LossKind::Defaulted,
        Some(more) if more.equals_text("false") => LossKind::Replaced,
        Some(_) => return Ok(()),
    };
    node.set("hasMore", Node::made("true"));
    cx.record_loss("hasMore", at, kind, "there are more than a hundred values");
    Ok(())
}
