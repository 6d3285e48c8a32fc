//! Resource usage of an endpoint.
//!
//! Plain data, for metrics and for tests of the limits: [`Limits`](crate::Limits) limits each number.

/// Resource usage of an endpoint at one moment. Every number is zero once a session has ended and its output and events were
/// taken, but for `remembered_ids` and `tools`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Requests of the peer that are in flight.
    pub in_flight: usize,
    /// Bytes of them.
    pub in_flight_bytes: usize,
    /// Those among them that are subscriptions, which last until one of the peers ends them; zero in a client.
    pub listening: usize,
    /// Batches that are not answered.
    pub batches: usize,
    /// Bytes of answers that wait for the other answers of their batch.
    pub batch_bytes: usize,
    /// Requests of the local peer that have not ended, those that wait for input included.
    pub pending: usize,
    /// Requests of the server that the program has not answered; zero in a server.
    pub server_requests: usize,
    /// Streams that are open.
    pub streams: usize,
    /// Messages, statuses and ends of streams that wait to be sent.
    pub queued: usize,
    /// Bytes that wait to be sent.
    pub queued_bytes: usize,
    /// Events that wait to be taken.
    pub events: usize,
    /// Bytes of them.
    pub events_bytes: usize,
    /// Resources and streams of notifications that the client subscribes to; zero in a client.
    pub subscriptions: usize,
    /// Bytes of their URIs and filters.
    pub subscription_bytes: usize,
    /// Cancelled requests of the peer that are remembered.
    pub remembered_ids: usize,
    /// Elicitations by URL that are not complete, of those that are remembered.
    pub elicitations: usize,
    /// Tasks with progress that are not over, of those that are remembered; zero in a server.
    pub tasks: usize,
    /// Tools whose header parameters are remembered; zero in a server.
    pub tools: usize,
}
