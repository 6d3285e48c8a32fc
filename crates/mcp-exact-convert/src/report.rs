//! Creates the list of losses for the caller from those of all steps: each difference once, with the enclosing item.
//!
//! The input is the losses in the order of the steps. A loss that a later step undoes or repeats is omitted.

use std::sync::Arc;

use mcp_exact_wire::order::{joined, sorted};
use mcp_exact_wire::{Kind, Reader};

use crate::loss::{Loss, LossKind, NotedLoss};
use crate::place::{Pointers, named};

/// Members with lists of named items, and the noun for an item.
const NAMED_LISTS: &[(&str, &str)] = &[
    ("tools", "tool"),
    ("prompts", "prompt"),
    ("resources", "resource"),
    ("resourceTemplates", "resource template"),
];

/// Definitions of named items, and of requests for them: the definition, the noun, and the member with the name.
const NAMED_DEFINITIONS: [(&str, &str, &str); 7] = [
    ("Tool", "tool", "name"),
    ("CallToolRequestParams", "tool", "name"),
    ("Prompt", "prompt", "name"),
    ("GetPromptRequestParams", "prompt", "name"),
    ("Resource", "resource", "name"),
    ("ResourceTemplate", "resource template", "name"),
    ("ReadResourceRequestParams", "resource", "uri"),
];

/// Returns the losses of a conversion of `text`, a value of `definition`, for the caller.
pub fn losses(notes: Vec<NotedLoss>, text: &str, definition: &str) -> Vec<Loss> {
    if notes.is_empty() {
        return Vec::new();
    }
    let notes = without_repetition(notes);
    let pointers = Pointers::find(text, notes.iter().flat_map(NotedLoss::places), NAMED_LISTS);
    let subject = described_item(text, definition);
    let losses = notes.into_iter().map(|note| Loss {
        pointer: pointers.of(&note.place).into(),
        subject: subject.clone().or_else(|| pointers.item(note.place.at)),
        kind: note.kind,
        revision: note.revision,
        reason: match &note.inside {
            None => note.reason,
            Some(inside) => joined(&[&note.reason, " at ", &pointers.of(inside)], "").into(),
        },
    });
    losses.collect()
}

/// Removes losses that a later step repeats at the same location, and losses in a value that a later step drops.
fn without_repetition(mut notes: Vec<NotedLoss>) -> Vec<NotedLoss> {
    let mut is_gone = vec![false; notes.len()];
    // Sorted by location; losses at one location stay in their order.
    let place = |at: usize| (notes[at].place.at, notes[at].place.below.as_str());
    let order = sorted(notes.len(), &|one, other| place(one).cmp(&place(other)));
    for pair in order.windows(2) {
        let (earlier, later) = (&notes[pair[0]], &notes[pair[1]]);
        if earlier.place == later.place {
            let is_repeated = earlier.kind == later.kind && earlier.revision != later.revision;
            is_gone[pair[0]] = earlier.kind == LossKind::Rewritten || is_repeated;
        }
    }
    for (at, note) in notes.iter().enumerate() {
        let Some(stood) = &note.stood else { continue };
        // In this order, the locations inside of a location are adjacent.
        let inside = joined(&[&stood.below, "/"], "");
        let first = order.partition_point(|before| place(*before) < (stood.at, inside.as_str()));
        let is_inside = |before: &&usize| {
            let (value, below) = place(**before);
            value == stood.at && below.starts_with(&inside)
        };
        for &before in order[first..].iter().take_while(is_inside) {
            is_gone[before] |= before < at && notes[before].kind == LossKind::Rewritten;
        }
    }
    let mut gone = is_gone.into_iter();
    notes.retain(|_| !gone.next().unwrap_or_default());
    notes
}

/// Returns the kind and name of the tool, prompt or resource that a value of the type `definition` describes; `None` for
/// other types. `text` must be valid JSON.
pub fn described_item(text: &str, definition: &str) -> Option<Arc<str>> {
    let (_, what, name) = NAMED_DEFINITIONS
        .iter()
        .find(|thing| thing.0 == definition)?;
    let (mut r, mut first) = (Reader::of_checked(text), true);
    if r.kind() != Ok(Kind::Object) {
        return None;
    }
    while let Ok(Some(member)) = r.open_member(&mut first) {
        if member.name == *name {
            return named(what, member.value);
        }
    }
    None
}
