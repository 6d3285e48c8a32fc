//! The bounds of what a machine holds, as its limits promise them.
//!
//! Takes the load of a machine that does one thing between two looks; panics when it holds more. Measures nothing itself.

use crate::{Limits, Load};

/// Checks what a machine on one duplex stream holds.
///
/// Answers are sent and taken whatever is full: one message or one moment can add so many frames and events to a queue that
/// was not full before, but not more.
///
/// # Panics
/// When it is more than the limits allow.
#[track_caller]
pub fn check_load(load: &Load, most: &Limits) {
    // A request that waits ends with a message and an event; one that is served, with an answer; questions leave together.
    let at_once = most.sent + most.served + most.asks + most.subscriptions;
    for (name, held, bound) in [
        ("served", load.served, most.served),
        ("served_bytes", load.served_bytes, most.served_bytes),
        // An open batch waits for a request that is being served.
        ("batches", load.batches, most.served),
        // One more: what the machine sends to come to an agreement.
        ("sent", load.sent, most.sent + 1),
        ("asks", load.asks, most.sent * most.asks + most.served),
        ("streams", load.streams, 1),
        ("queued", load.queued, most.queued + at_once),
        (
            "queued_bytes",
            load.queued_bytes,
            most.queued_bytes + most.message_bytes,
        ),
        ("events", load.events, most.queued + at_once),
        ("subscriptions", load.subscriptions, most.subscriptions),
        ("tombstones", load.tombstones, most.tombstones),
        ("tools", load.tools, most.tool_bytes),
    ] {
        assert!(held <= bound, "{name}: {held} of {bound}: {load:?}");
    }
}
