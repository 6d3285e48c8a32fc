//! Limits on everything that a peer can make grow, and their names.
//!
//! Plain numbers of the configuration. Holds no state.

use std::fmt;
use std::time::Duration;

/// Limits of one endpoint. A message that exceeds one is refused with an error that names it; see [`Limit`].
///
/// Memory of an endpoint stays below `in_flight_bytes` (requests of the peer) + `queued_bytes` (output) + `reserved_bytes`
/// (refusals) + `queued_bytes` (events) + `subscription_bytes` + one message, and what the local program adds itself: its answers
/// to requests that were admitted while there was room, at most `in_flight` of them, and, from 2026-07-28 on, the parameters of its
/// own requests, which are kept for another try until each has ended, at most `pending` of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message or batch, and of the body of an HTTP status that a client reads.
    pub message_bytes: usize,
    /// Levels of objects and arrays in one message.
    pub depth: usize,
    /// Messages in one batch.
    pub batch_items: usize,
    /// Bytes of an id, a progress token or a method, without quotes. A client does not remember an elicitation or a task
    /// whose own id is longer: its completion or progress is not delivered.
    pub name_bytes: usize,
    /// Requests of the peer that are in flight at the same time.
    pub in_flight: usize,
    /// Bytes of the requests that are in flight, with the responses to a server's input requests that wait for others. A
    /// response beyond it ends its input request with a local error.
    pub in_flight_bytes: usize,
    /// Requests of the local peer that have not ended.
    pub pending: usize,
    /// Number of remembered ids of each kind, the latest ones: cancelled requests of the peer, whose late replies are
    /// recognised; elicitations by URL, whose completion is delivered (2025-11-25); and, in a client, tasks, whose progress
    /// is delivered (2025-11-25).
    pub remembered_ids: usize,
    /// Streams that a client opens at a server and that are open, or have output that was not taken, at the same time. A few more
    /// POSTs may come, so that responses and cancellations pass; requests in them are refused.
    pub streams: usize,
    /// Messages that wait to be sent, and events that wait to be taken. Beyond it notifications are dropped and requests are
    /// refused.
    pub queued: usize,
    /// Bytes of messages that wait to be sent, and of events that wait to be taken: as `queued`. An event that holds nothing of
    /// the peer counts 32 bytes.
    pub queued_bytes: usize,
    /// Bytes of messages that wait on one stream over HTTP: a slow reader of one stream does not use up `queued_bytes`.
    pub stream_bytes: usize,
    /// Bytes of refusals that wait beyond `queued_bytes` on a duplex stream, which an endpoint always reads. When they are used
    /// up, the peer does not read, and the endpoint closes.
    pub reserved_bytes: usize,
    /// Requests that are taken from the peer in each second, those that the endpoint answers itself included. The default is
    /// more than a fast local peer sends: lower it for peers that are not trusted.
    pub requests_per_second: u32,
    /// Notifications that are taken from the peer in each second. `notifications/initialized` and `notifications/cancelled` do not
    /// count: nothing is kept of them, and a cancellation must reach its request.
    pub notifications_per_second: u32,
    /// Resources that one peer subscribes to, together with its streams of notifications.
    pub subscriptions: usize,
    /// Bytes of what one peer subscribes to: URIs of resources, and filters. A subscription that waits for its reply counts with
    /// the whole request.
    pub subscription_bytes: usize,
    /// Input requests of one result or reply, and responses that come with a retry.
    pub input_requests: usize,
    /// Retries of one request with input.
    pub retries: u32,
    /// Bytes of the state that a request keeps between retries. A client does not repeat a request because of an error that
    /// is larger: it would have to keep it.
    pub state_bytes: usize,
    /// Bytes that a client remembers of tool parameters that are mirrored into headers. A tool beyond it is left out of the
    /// list.
    pub tool_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            depth: 256,
            batch_items: 100,
            name_bytes: 1 << 10,
            in_flight: 256,
            in_flight_bytes: 64 << 20,
            pending: 1024,
            remembered_ids: 1024,
            streams: 256,
            queued: 1024,
            queued_bytes: 64 << 20,
            stream_bytes: 16 << 20,
            reserved_bytes: 1 << 20,
            requests_per_second: 10_000_000,
            notifications_per_second: 10_000_000,
            subscriptions: 1024,
            subscription_bytes: 1 << 20,
            input_requests: 32,
            retries: 16,
            state_bytes: 64 << 10,
            tool_bytes: 1 << 20,
        }
    }
}

impl Limits {
    /// Limit that a queue has reached. An empty queue has reached none: taking from it makes room.
    pub(crate) fn of_queue(&self, len: usize, bytes: usize) -> Option<Limit> {
        match len {
            0 => None,
            len if len >= self.queued => Some(Limit::Queued),
            _ if bytes >= self.queued_bytes => Some(Limit::QueuedBytes),
            _ => None,
        }
    }
}

macro_rules! limits {
    ($($variant:ident $field:ident,)*) => {
        /// Name of a limit.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Limit {
            $(
                #[doc = concat!("[`Limits::", stringify!($field), "`].")]
                $variant,
            )*
        }

        impl Limit {
            /// Returns the name of the field of [`Limits`].
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($field),)*
                }
            }
        }
    };
}

limits! {
    MessageBytes message_bytes,
    Depth depth,
    BatchItems batch_items,
    NameBytes name_bytes,
    InFlight in_flight,
    InFlightBytes in_flight_bytes,
    Pending pending,
    Streams streams,
    Queued queued,
    QueuedBytes queued_bytes,
    StreamBytes stream_bytes,
    ReservedBytes reserved_bytes,
    Requests requests_per_second,
    Notifications notifications_per_second,
    Subscriptions subscriptions,
    SubscriptionBytes subscription_bytes,
    InputRequests input_requests,
    Retries retries,
    StateBytes state_bytes,
    ToolBytes tool_bytes,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Time for which a request waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTimeout {
    /// Time without an answer and, with `reset_on_progress`, without progress.
    pub idle: Duration,
    /// True if a progress notification restarts `idle`.
    pub reset_on_progress: bool,
    /// Time in all, whatever progress there is. A client that sends a request again because of a refusal, after another
    /// revision or a list of tools, does not start it again; a retry with input does.
    pub total: Duration,
}

impl Default for RequestTimeout {
    /// One minute, restarted by progress; ten minutes in all.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            reset_on_progress: true,
            total: Duration::from_secs(600),
        }
    }
}
