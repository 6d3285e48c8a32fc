//! Limits on the resources that a peer can consume, and the names of the limits.
//!
//! The limits are plain numbers of the configuration, but for the budget that endpoints share.

use std::fmt;
use std::time::Duration;

use crate::budget::MessageBudget;

/// Limits of one endpoint. A message that exceeds a limit is refused with an error that names the limit; see [`Limit`].
///
/// The memory that a peer can cause an endpoint to use stays below `in_flight_bytes` (requests of the peer) +
/// `queued_bytes` (output) + `reserved_bytes` (refusals) + `queued_bytes` (events) + `subscription_bytes` + one
/// message. The local application adds at most `in_flight` answers to admitted requests and, from 2026-07-28 on, the
/// parameters of at most `pending` own requests, which are kept for a retry until the request has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size in bytes of one message or batch, and of the body of an HTTP status that a client reads.
    pub message_bytes: usize,
    /// Budget for the messages that this endpoint and others receive at the same time; by default that of the process, 256 MiB.
    /// The framing skips a message that would exceed it, as one above `message_bytes`.
    pub message_budget: MessageBudget,
    /// Maximum nesting depth of objects and arrays in a message.
    pub depth: usize,
    /// Maximum number of messages in one batch.
    pub batch_items: usize,
    /// Maximum length in bytes of an id, a progress token or a method, without quotes. A client does not remember an elicitation
    /// or a task whose own id is longer: its completion or progress is not delivered.
    pub name_bytes: usize,
    /// Maximum number of requests of the remote peer that are in flight at the same time.
    pub in_flight: usize,
    /// Maximum total size in bytes of the requests in flight, including collected responses to a server's input requests. A
    /// response beyond the limit ends its input request with a local error.
    pub in_flight_bytes: usize,
    /// Maximum number of requests of the local peer that have not ended.
    pub pending: usize,
    /// Maximum number of remembered ids of each kind; the latest ids are kept: cancelled requests of the peer, whose late replies
    /// are recognised; elicitations by URL, whose completion is delivered (2025-11-25); and, in a client, tasks, whose progress
    /// is delivered (2025-11-25).
    pub remembered_ids: usize,
    /// Maximum number of streams that a client opens at a server and that are open or have queued output. Above this
    /// limit, a server accepts some further POSTs, so that responses and cancellations arrive, and refuses the requests
    /// in these POSTs. A client over HTTP accepts no messages while more than this many POSTs of its answers and
    /// notifications are unaccepted.
    pub streams: usize,
    /// Maximum number of queued outgoing messages and, separately, of queued events. Beyond the limit, notifications
    /// are dropped and requests are refused.
    pub queued: usize,
    /// Maximum total size in bytes of the queued outgoing messages and, separately, of the queued events. `queued` and
    /// `queued_bytes` both apply. An event without data of the remote peer counts 32 bytes.
    pub queued_bytes: usize,
    /// Maximum total size in bytes of queued messages on one HTTP stream, so that a slow reader of one stream does not exhaust
    /// `queued_bytes`.
    pub stream_bytes: usize,
    /// Size in bytes of the reserve for refusals beyond `queued_bytes` on a duplex stream, which an endpoint always reads. If the
    /// reserve is exhausted, the peer is not reading, and the endpoint closes.
    pub reserved_bytes: usize,
    /// Maximum number of requests that are accepted per second, including requests that the endpoint answers itself. The default
    /// is more than a fast local peer sends: lower the limit for untrusted peers.
    pub requests_per_second: u32,
    /// Maximum number of notifications that are accepted per second. `notifications/initialized` and `notifications/cancelled` do
    /// not count, because they use no memory and a cancellation must reach its request.
    pub notifications_per_second: u32,
    /// Maximum number of subscriptions of one peer: resources and notification streams together.
    pub subscriptions: usize,
    /// Maximum total size in bytes of the subscriptions of one peer: URIs of resources, and filters. A subscription that waits
    /// for its reply counts with the size of the entire request.
    pub subscription_bytes: usize,
    /// Maximum number of input requests in one result or reply, and of responses in one retry.
    pub input_requests: usize,
    /// Maximum number of retries with input of one request.
    pub retries: u32,
    /// Maximum size in bytes of the state that is kept for a request between its retries. If an error response that permits a retry
    /// is larger, the client reports the error and does not retry, because it must keep the error until the retry ends.
    pub state_bytes: usize,
    /// Maximum total size in bytes of the header-mirrored tool parameters that a client remembers. A tool beyond the limit is
    /// removed from the list.
    pub tool_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 4 << 20,
            message_budget: MessageBudget::default(),
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
    /// Returns the limit that a queue has reached. An empty queue has not reached a limit.
    pub(crate) fn reached_by_queue(&self, len: usize, bytes: usize) -> Option<Limit> {
        match len {
            0 => None,
            len if len >= self.queued => Some(Limit::Queued),
            _ if bytes >= self.queued_bytes => Some(Limit::QueuedBytes),
            _ => None,
        }
    }
}

/// Defines [`Limit`] with one variant for each listed field of [`Limits`].
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
            /// Returns the name of the corresponding field of [`Limits`].
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
    MessageBudget message_budget,
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

impl Limit {
    /// Returns the text that refuses a message because of the limit. Only limits of what happens at the same time are reached
    /// later in another way.
    pub(crate) fn refusal(self) -> String {
        let remedy = match self {
            Self::MessageBytes => {
                return "the message is larger than the receiver allows; send a smaller message"
                    .to_owned();
            }
            Self::Depth | Self::BatchItems | Self::NameBytes => "send a smaller message",
            _ => "try again later",
        };
        format!("the limit `{self}` is exceeded; {remedy}")
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Timeout of a request: the time to wait for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTimeout {
    /// Maximum time without an answer or, with `reset_on_progress`, since the last progress.
    pub idle: Duration,
    /// True if a progress notification restarts `idle`.
    pub reset_on_progress: bool,
    /// Maximum total time, regardless of progress. The time is not restarted when a client resends a request after a
    /// renegotiation or a new list of tools; it is restarted by a retry with input.
    pub total: Duration,
}

impl Default for RequestTimeout {
    /// Returns an idle timeout of one minute, restarted by progress, and a total timeout of ten minutes.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            reset_on_progress: true,
            total: Duration::from_secs(600),
        }
    }
}
