//! Bounds on everything that a peer can make grow, and their names.
//!
//! Takes numbers from the configuration; gives the error that names the bound which was exceeded. Holds no state.

use std::fmt;
use std::time::Duration;

/// Bounds on what one machine keeps. What exceeds one is refused with an error that names it; see [`Limit`].
///
/// Memory is bounded by `served_bytes` for requests that are being served, by `queued_bytes` for what waits to be sent and
/// for events that wait to be taken, by `subscription_bytes` for what a client subscribes to, and by the counts for what is
/// small. InputResponses are sent and taken whatever is full: back-pressure ends when a program takes events and frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message or batch, and of the body of an HTTP status that a client looks at.
    pub message_bytes: usize,
    /// Levels of objects and arrays in one message.
    pub depth: usize,
    /// Messages in one batch.
    pub batch_items: usize,
    /// Bytes of an id, a progress token or a method, without quotes. A client does not remember an elicitation or a task
    /// whose own id is longer: its program is not told that the elicitation is complete, or how far the task has come.
    pub name_bytes: usize,
    /// Requests of the peer that are being served at the same time.
    pub in_flight: usize,
    /// Bytes of the requests that are being served, with the answers to a server's questions that wait for the others. An
    /// answer that is too much ends its question with an error made here.
    pub in_flight_bytes: usize,
    /// Own requests that wait for their answer.
    pub pending: usize,
    /// How many of each kind are remembered, the latest ones: cancelled requests of the peer, whose late replies are
    /// recognised; elicitations by URL, whose completion is told of (2025-11-25); and, in a client, tasks, whose progress is
    /// told of (2025-11-25). Older ones are forgotten without a word.
    pub remembered_ids: usize,
    /// Streams that are open at the same time in a server, whose client opens them. A client opens its streams itself: one
    /// for each message over HTTP, of which `sent` bounds those that wait for an answer.
    pub streams: usize,
    /// Messages that wait to be sent, and events that wait to be taken. When there are so many of either, `wants_input` is
    /// false, notifications are dropped and requests refused; `sent` bounds the questions of a reply.
    pub queued: usize,
    /// Bytes of messages that wait to be sent, and of events that wait to be taken: the same as `queued`. An event that holds
    /// nothing of the peer's counts 32.
    pub queued_bytes: usize,
    /// Requests that are taken from the peer in each second, those that the machine answers by itself included; more are
    /// refused.
    pub requests_per_second: u32,
    /// Notifications that are taken from the peer in each second.
    pub notifications_per_second: u32,
    /// Resources that one peer subscribes to, and streams of notifications that it listens to.
    pub subscriptions: usize,
    /// Bytes of what one peer subscribes to: of the URIs of resources, and of the filters that it listens with. A
    /// subscription that waits for its reply counts with the whole request.
    pub subscription_bytes: usize,
    /// Questions of one request to its sender in one round, and answers that come with it.
    pub input_requests: usize,
    /// Retries of questions of one request.
    pub retries: u32,
    /// Bytes of the state that a request keeps between rounds. A client does not send a request again because of an error
    /// that is larger: it would have to keep it.
    pub state_bytes: usize,
    /// Bytes that a client remembers of the parameters of tools that are mirrored into headers. A tool beyond it is left
    /// out of the list.
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
            requests_per_second: 10_000,
            notifications_per_second: 1000,
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
    /// The bound that a queue has reached. An empty one never has: what is to be taken from it makes room.
    pub(crate) fn of_queue(&self, len: usize, bytes: usize) -> Option<Limit> {
        match len {
            0 => None,
            len if len >= self.queued => Some(Limit::Queued),
            _ if bytes >= self.queued_bytes => Some(Limit::QueuedBytes),
            _ => None,
        }
    }
}

/// The name of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::message_bytes`].
    MessageBytes,
    /// [`Limits::depth`].
    Depth,
    /// [`Limits::batch_items`].
    BatchItems,
    /// [`Limits::name_bytes`].
    NameBytes,
    /// [`Limits::served`].
    InFlight,
    /// [`Limits::served_bytes`].
    InFlightBytes,
    /// [`Limits::sent`].
    Pending,
    /// [`Limits::streams`].
    Streams,
    /// [`Limits::queued`].
    Queued,
    /// [`Limits::queued_bytes`].
    QueuedBytes,
    /// [`Limits::requests_per_second`].
    Requests,
    /// [`Limits::notifications_per_second`].
    Notifications,
    /// [`Limits::subscriptions`].
    Subscriptions,
    /// [`Limits::subscription_bytes`].
    SubscriptionBytes,
    /// [`Limits::asks`].
    InputRequests,
    /// [`Limits::rounds`].
    Retries,
    /// [`Limits::state_bytes`].
    StateBytes,
    /// [`Limits::tool_bytes`].
    ToolBytes,
}

impl Limit {
    /// The name of the field of [`Limits`].
    pub const fn name(self) -> &'static str {
        match self {
            Self::MessageBytes => "message_bytes",
            Self::Depth => "depth",
            Self::BatchItems => "batch_items",
            Self::NameBytes => "name_bytes",
            Self::InFlight => "in_flight",
            Self::InFlightBytes => "in_flight_bytes",
            Self::Pending => "pending",
            Self::Streams => "streams",
            Self::Queued => "queued",
            Self::QueuedBytes => "queued_bytes",
            Self::Requests => "requests_per_second",
            Self::Notifications => "notifications_per_second",
            Self::Subscriptions => "subscriptions",
            Self::SubscriptionBytes => "subscription_bytes",
            Self::InputRequests => "input_requests",
            Self::Retries => "retries",
            Self::StateBytes => "state_bytes",
            Self::ToolBytes => "tool_bytes",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How long a request waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestTimeout {
    /// How long without a sign of life.
    pub idle: Duration,
    /// Whether a progress notification counts as a sign of life.
    pub reset_on_progress: bool,
    /// How long at most, whatever progress there is.
    pub total: Duration,
}

impl Default for RequestTimeout {
    /// A minute, started again by each progress notification, and ten minutes at most.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(60),
            reset_on_progress: true,
            total: Duration::from_secs(600),
        }
    }
}

/// How many messages of a kind were taken in the second that has begun at `since`.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    since: crate::Time,
    count: u32,
    told: bool,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateDecision {
    Yes,
    /// The first one of this second that is too many.
    NoLonger,
    /// One more of them.
    No,
}

impl Rate {
    pub(crate) fn take(&mut self, now: crate::Time, per_second: u32) -> RateDecision {
        if now.after(self.since) >= Duration::from_secs(1) {
            *self = Self {
                since: now,
                ..Self::default()
            };
        }
        if self.count < per_second {
            self.count += 1;
            return RateDecision::Yes;
        }
        if std::mem::replace(&mut self.told, true) {
            RateDecision::No
        } else {
            RateDecision::NoLonger
        }
    }
}
