//! Resource usage of an endpoint.
//!
//! The data is used for metrics and for tests of the limits; [`Limits`](crate::Limits) limits each number.

/// Resource usage of an endpoint at one time. Every number except `remembered_ids` and `tools` is zero once a session has ended
/// and all output and events were removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Number of requests of the remote peer that are in flight.
    pub in_flight: usize,
    /// Total size in bytes of the requests in flight.
    pub in_flight_bytes: usize,
    /// Number of the requests in flight that are subscriptions, which last until one of the peers ends them; zero in a client.
    pub subscription_requests: usize,
    /// Number of batches with unanswered requests.
    pub batches: usize,
    /// Total size in bytes of the answers that wait for other answers of their batch.
    pub batch_bytes: usize,
    /// Number of local requests that have not ended, including requests that wait for input.
    pub pending: usize,
    /// Number of server requests that the application has not answered; zero in a server.
    pub server_requests: usize,
    /// Number of open streams.
    pub streams: usize,
    /// Number of queued messages, statuses and stream ends.
    pub queued: usize,
    /// Total size in bytes of the queued messages.
    pub queued_bytes: usize,
    /// Number of queued events.
    pub events: usize,
    /// Total size in bytes of the queued events.
    pub events_bytes: usize,
    /// Number of resources and notification streams that the client subscribes to; zero in a client.
    pub subscriptions: usize,
    /// Total size in bytes of the URIs and filters of the subscriptions.
    pub subscription_bytes: usize,
    /// Number of remembered cancelled requests of the remote peer.
    pub remembered_ids: usize,
    /// Number of remembered URL elicitations that are not complete.
    pub elicitations: usize,
    /// Number of remembered unfinished tasks with progress; zero in a server.
    pub tasks: usize,
    /// Number of tools whose header parameters are remembered; zero in a server.
    pub tools: usize,
}
