//! Migration tasks for authors of servers and clients between two revisions.
//!
//! A changed type affects the senders and the receivers of its values: the senders and receivers of the methods whose
//! params or results contain the type. The advice is derived only from the schemas; the changelogs of the specification
//! describe behaviour.

use std::collections::BTreeSet;

use serde::Serialize;

use super::options::Consequence;
use super::reach::{params, reachable, results};
use crate::diff::{Compatibility, Diff, Directions, Status, diff, merge_methods};
use crate::ir::Ir;
use crate::render::words::{combine_lines, method_words};

/// Union of all messages of one frame, which no method refers to.
const MESSAGE_UNION: &str = "JSONRPCMessage";

/// Advice for one pair of revisions.
#[derive(Debug, Serialize)]
pub struct Pair {
    /// Identifier of the pair in HTML.
    id: String,
    /// Identifier of the older revision.
    from: String,
    /// Identifier of the newer revision.
    to: String,
    /// Advice for each side.
    roles: Vec<Role>,
}

/// Advice for the authors of clients or of servers.
#[derive(Debug, Serialize)]
struct Role {
    /// Identifier of the side in HTML.
    id: &'static str,
    /// Name of the side, as displayed.
    name: &'static str,
    /// Changes by their instruction.
    parts: Vec<Part>,
}

/// Changes with the same instruction.
#[derive(Debug, Serialize)]
struct Part {
    /// The instruction.
    title: &'static str,
    /// Changed methods and types.
    items: Vec<Item>,
    /// Number of displayed lines.
    count: usize,
}

/// A method or a type with its changes.
#[derive(Debug, Serialize)]
struct Item {
    /// Name of the method or type.
    name: String,
    /// Fragment of the link to the item's row.
    anchor: String,
    /// Kind of the message and its direction; otherwise empty.
    note: String,
    /// Descriptions of the changes, with their consequences.
    lines: Vec<(String, Consequence)>,
}

/// Returns the advice for every pair of an older and a newer revision, the newest step first.
pub fn advice_pairs(revisions: &[Ir]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (index, to) in revisions.iter().enumerate().rev() {
        for from in revisions[..index].iter().rev() {
            let differences = diff(from, to);
            pairs.push(Pair {
                id: format!("advice-{}-{}", from.revision, to.revision),
                from: from.revision.clone(),
                to: to.revision.clone(),
                roles: vec![
                    build_role("server", "Server", true, to, &differences),
                    build_role("client", "Client", false, to, &differences),
                ],
            });
        }
    }
    pairs
}

/// Returns the advice for the authors of one side, `is_server` or client, of changing to the revision `to`.
fn build_role(id: &'static str, name: &'static str, is_server: bool, to: &Ir, diff: &Diff) -> Role {
    let sent = SentDefinitions::sent_by(to, is_server);
    let received = SentDefinitions::sent_by(to, !is_server);
    let parts = vec![
        Part::new(
            "Stop sending, and do not expect any more",
            method_items(diff, is_server, Status::Removed),
        ),
        Part::new(
            "Change what you send",
            items_with_changes(diff, &sent, |compatibility| compatibility.breaks_writing()),
        ),
        Part::new(
            "Be ready to receive",
            items_with_changes(diff, &received, |compatibility| {
                compatibility.breaks_reading()
            }),
        ),
        Part::new("New methods", method_items(diff, is_server, Status::Added)),
        Part::new("Methods that changed as such", changed_items(diff)),
        Part::new(
            "You can send more",
            items_with_changes(diff, &sent, |compatibility| {
                matches!(
                    compatibility,
                    Compatibility::Additive | Compatibility::BreaksReading
                )
            }),
        ),
    ];
    Role {
        id,
        name,
        parts: parts
            .into_iter()
            .filter(|part| !part.items.is_empty())
            .collect(),
    }
}

impl Part {
    fn new(title: &'static str, items: Vec<Item>) -> Self {
        Self {
            title,
            count: items.iter().map(|item| item.lines.len().max(1)).sum(),
            items,
        }
    }
}

/// Definitions that one side sends in the newer revision. Changes to other definitions belong to removed methods.
struct SentDefinitions<'i>(BTreeSet<&'i str>);

impl<'i> SentDefinitions<'i> {
    /// Returns the definitions that servers send, or clients if `by_server` is false.
    fn sent_by(ir: &'i Ir, by_server: bool) -> Self {
        // Both roles send every kind of message, and batches if the revision supports them.
        let mut found: BTreeSet<_> = ir
            .get(MESSAGE_UNION)
            .map(|message| &*message.name)
            .into_iter()
            .collect();
        for (name, method) in merge_methods(ir) {
            let (asks, answers) = match method.directions {
                Directions::BothWays => (true, true),
                Directions::ClientToServer => (!by_server, by_server),
                // An input request inside a server's result is a request of the server.
                Directions::ServerToClient | Directions::Embedded => (by_server, !by_server),
            };
            if asks {
                found.extend(reachable(ir, params(ir, name)));
            }
            if answers {
                found.extend(reachable(ir, results(ir, name)));
            }
        }
        Self(found)
    }

    /// Returns true if the side sends values of a definition.
    fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

/// Lists the definitions in `sent` that have changes with a wanted compatibility.
fn items_with_changes(
    diff: &Diff,
    sent: &SentDefinitions<'_>,
    is_wanted: impl Fn(Compatibility) -> bool,
) -> Vec<Item> {
    let mut items = Vec::new();
    for definition in &diff.definitions {
        if !sent.contains(&definition.name) {
            continue;
        }
        let found = definition
            .changes
            .iter()
            .filter(|change| is_wanted(change.compatibility));
        let found = combine_lines(found).into_iter().map(|line| {
            let words = format!("{} {}", line.sign.letter(), line.words());
            (words, Consequence::of(line.compatibility))
        });
        let found: Vec<_> = found.collect();
        if !found.is_empty() {
            items.push(Item {
                name: definition.name.clone(),
                anchor: format!("type-{}", definition.name),
                note: String::new(),
                lines: found,
            });
        }
    }
    items
}

/// Lists the methods with a status, described for one role.
fn method_items(diff: &Diff, is_server: bool, status: Status) -> Vec<Item> {
    let found = diff.methods.iter().filter(|method| method.status == status);
    found
        .map(|method| {
            let sends = match method.directions {
                Directions::BothWays => "you send and receive it",
                Directions::ClientToServer if is_server => "you receive it",
                Directions::ServerToClient if !is_server => "you receive it",
                Directions::Embedded => "inside other messages",
                _ => "you send it",
            };
            let kind = if method.request {
                "request"
            } else {
                "notification"
            };
            Item {
                name: method.method.clone(),
                anchor: format!("method-{}", method.method),
                note: format!("{kind}, {sends}"),
                lines: Vec::new(),
            }
        })
        .collect()
}

/// Lists the methods with own changes, such as another direction; changes of their types are listed with the types.
fn changed_items(diff: &Diff) -> Vec<Item> {
    let found = diff
        .methods
        .iter()
        .filter(|method| !method.changes.is_empty());
    found
        .map(|method| {
            let lines = method.changes.iter();
            let lines =
                lines.map(|change| (method_words(change), Consequence::of(change.compatibility)));
            Item {
                name: method.method.clone(),
                anchor: format!("method-{}", method.method),
                note: String::new(),
                lines: lines.collect(),
            }
        })
        .collect()
}
