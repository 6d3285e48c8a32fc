//! Titles of tools, which are part of the annotations up to 2025-03-26.

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::{Member, Node};

/// Moves the title of a tool into its annotations if the annotations have no title.
pub fn to_annotations<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    let taken = node
        .member("annotations")
        .is_some_and(|annotations| annotations.member("title").is_some());
    if cx.keeps_newer() || taken {
        return Ok(());
    }
    let Some(title) = node.take("title") else {
        return Ok(());
    };
    let reason = "the title moves to annotations.title";
    cx.record_loss("title", title.at, LossKind::Rewritten, reason);
    cx.note_move(title.at, "the name is shown instead");
    let mut place = cx.place();
    place.below.push_str("/annotations/title");
    cx.report(place, LossKind::Rewritten, reason);
    match node.member("annotations") {
        Some(annotations) => annotations.set("title", title),
        None => {
            let at = title.at;
            let annotations = Node::new_object(vec![Member::new("title", title)], at);
            node.set("annotations", annotations);
        }
    }
    Ok(())
}
