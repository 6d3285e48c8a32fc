//! Rate limits: the maximum number of messages of a kind per second.
//!
//! The caller supplies timestamps; no clock is read.

use std::time::Duration;

use crate::Time;

/// Counter of the messages of one kind in the current second.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// Start of the current second.
    window_start: Time,
    /// Number of messages in the current second.
    count: u32,
    /// True if the refusal of a message was reported in the current second.
    was_reported: bool,
}

/// Decision about a message by a rate limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateDecision {
    /// The message is accepted.
    Accept,
    /// The message is the first in this second that is refused.
    RefuseFirst,
    /// The message is refused, after another refusal in this second.
    Refuse,
}

impl Rate {
    /// Counts a message and decides whether the limit of `per_second` messages allows it.
    pub(crate) fn decide(&mut self, now: Time, per_second: u32) -> RateDecision {
        if now.saturating_since(self.window_start) >= Duration::from_secs(1) {
            *self = Self {
                window_start: now,
                ..Self::default()
            };
        }
        if self.count < per_second {
            self.count += 1;
            return RateDecision::Accept;
        }
        if std::mem::replace(&mut self.was_reported, true) {
            RateDecision::Refuse
        } else {
            RateDecision::RefuseFirst
        }
    }
}
