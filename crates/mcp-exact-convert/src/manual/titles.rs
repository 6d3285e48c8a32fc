//! Titles of tools, which are part of the annotations up to 2025-03-26.

use crate::LossKind;
use crate::conversion::Conversion;
use crate::loss::Step;
use crate::node::{Member, Node};
use crate::place::Place;

/// Moves the title of a tool into its annotations, where it ranks higher than the title of the annotations ("Tool": display
/// name). A title of the annotations that differs is replaced.
pub fn to_annotations<'t>(cx: &mut Conversion<'_, 't>, node: &mut Node<'t>) -> Step<()> {
    if cx.keeps_newer() {
        return Ok(());
    }
    let Some(title) = node.take("title") else {
        return Ok(());
    };
    let reason = "the title moves to annotations.title";
    cx.record_loss("title", title.at, LossKind::Rewritten, reason);
    cx.note_move(title.at, "the name is shown instead");
    let below = "/annotations/title";
    let replaced = node
        .member("annotations")
        .and_then(|annotations| annotations.member("title"))
        .map(|lower| (lower.at, lower.string() == title.string()));
    match replaced {
        Some((_, true)) => return Ok(()),
        Some((at, false)) => {
            let reason = "the title of the tool is shown instead, which ranks higher";
            let place = Place::of_value(at);
            cx.report(place, LossKind::Replaced, reason);
        }
        None => {
            let mut place = cx.place();
            place.below.push_str(below);
            cx.report(place, LossKind::Rewritten, reason);
        }
    }
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
