//! Rate limits: the maximum number of messages of a kind per second.
//!
//! The caller supplies timestamps; no clock is read.

use std::time::Duration;

use crate::Time;

/// Counter of the messages of one kind in the current second.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    since: Time,
    count: u32,
    reported: bool,
}

/// Decision of the rate limit about a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateDecision {
    Take,
    /// The first message of this second that is refused.
    RefuseFirst,
    Refuse,
}

impl Rate {
    pub(crate) fn take(&mut self, now: Time, per_second: u32) -> RateDecision {
        if now.after(self.since) >= Duration::from_secs(1) {
            *self = Self {
                since: now,
                ..Self::default()
            };
        }
        if self.count < per_second {
            self.count += 1;
            return RateDecision::Take;
        }
        if std::mem::replace(&mut self.reported, true) {
            RateDecision::Refuse
        } else {
            RateDecision::RefuseFirst
        }
    }
}
