//! Checks the memory usage of an endpoint against its limits.

use crate::{Limits, Usage};

/// Checks the memory usage of an endpoint on one duplex stream.
///
/// Responses are sent and accepted even if a queue is full, so one step can exceed a limit by the frames and events of
/// one message, but not more.
///
/// # Panics
/// Panics if the usage after the step exceeds the limits.
#[track_caller]
pub fn check_usage(load: &Usage, most: &Limits) {
    // A pending request ends with a message and an event, a request in flight with a response; the input requests of a
    // reply are sent together.
    let at_once = most.pending + most.in_flight + most.input_requests + most.subscriptions;
    for (name, held, bound) in [
        ("in_flight", load.in_flight, most.in_flight),
        (
            "in_flight_bytes",
            load.in_flight_bytes,
            most.in_flight_bytes,
        ),
        // An open batch waits for a request that is being served.
        ("batches", load.batches, most.in_flight),
        // One more: the endpoint's own request for the negotiation.
        ("sent", load.pending, most.pending + 1),
        (
            "input_requests",
            load.server_requests,
            most.pending * most.input_requests + most.in_flight,
        ),
        ("streams", load.streams, 1),
        ("queued", load.queued, most.queued + at_once),
        (
            "queued_bytes",
            load.queued_bytes,
            most.queued_bytes + most.message_bytes,
        ),
        ("events", load.events, most.queued + at_once),
        ("subscriptions", load.subscriptions, most.subscriptions),
        ("remembered_ids", load.remembered_ids, most.remembered_ids),
        ("tools", load.tools, most.tool_bytes),
    ] {
        assert!(held <= bound, "{name}: {held} of {bound}: {load:?}");
    }
}
