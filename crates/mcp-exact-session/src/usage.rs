//! What a machine holds at a moment, in numbers.
//!
//! Plain data, for metrics and for tests of the bounds: [`Limits`](crate::Limits) bounds each of them. Changes nothing.

/// How much a machine holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Requests of the other side that are being served.
    pub in_flight: usize,
    /// Bytes of them.
    pub in_flight_bytes: usize,
    /// Batches that are not answered yet.
    pub batches: usize,
    /// Own requests that wait for their answer, those that wait for another round included.
    pub pending: usize,
    /// Questions that the program has not answered yet; a server's machine has none.
    pub server_requests: usize,
    /// Streams that are open.
    pub streams: usize,
    /// Messages and ends of streams that wait to be sent.
    pub queued: usize,
    /// Bytes that wait to be sent.
    pub queued_bytes: usize,
    /// Events that wait to be taken.
    pub events: usize,
    /// Bytes of them.
    pub events_bytes: usize,
    /// Resources and streams of notifications that the client listens to; a client's machine has none.
    pub subscriptions: usize,
    /// Bytes of what it listens to.
    pub subscription_bytes: usize,
    /// Cancelled requests of the peer that are remembered.
    pub remembered_ids: usize,
    /// Elicitations that are not complete, as far as they are remembered.
    pub elicitations: usize,
    /// Tasks whose progress is wanted and that are not over, as far as they are remembered; a server's machine has none.
    pub tasks: usize,
    /// Tools whose header parameters are remembered; a server's machine has none.
    pub tools: usize,
}
