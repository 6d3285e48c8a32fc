//! Requests of this side that wait for their answer: ids, progress tokens, deadlines.
//!
//! Takes what the machines send and what comes back; says which request is meant and when one has waited too long. Knows no
//! revision, no method and no role.

use std::collections::{BTreeMap, BTreeSet};

use crate::Time;
use crate::limits::RequestTimeout;
use crate::types::{RequestKey, StreamId};

/// A request that waits.
#[derive(Debug)]
pub(crate) struct PendingRequest<P> {
    pub(crate) key: RequestKey,
    pub(crate) method: String,
    pub(crate) stream: StreamId,
    /// What the machine wanted with it.
    pub(crate) purpose: P,
    timeout: RequestTimeout,
    deadline: Time,
    cap: Time,
    /// The last progress; `None` inside when none came, `None` when none is wanted.
    progress: Option<Option<f64>>,
}

impl<P> PendingRequest<P> {
    /// The last progress that came.
    pub(crate) fn last_progress(&self) -> Option<f64> {
        self.progress.flatten()
    }
}

/// What a machine says of a request that it sends.
pub(crate) struct NewRequest<P> {
    pub(crate) key: RequestKey,
    pub(crate) method: String,
    pub(crate) stream: StreamId,
    pub(crate) timeout: RequestTimeout,
    pub(crate) progress: bool,
    pub(crate) purpose: P,
}

/// Which request a progress notification belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressOf {
    Request(RequestKey),
    /// It has ended already: races are normal.
    Ended,
    NotIncreasing,
    Nothing,
}

/// All of them. Ids are numbers that are never used twice; the progress token of a request is its id.
#[derive(Debug)]
pub(crate) struct PendingRequests<P> {
    last_id: u64,
    waiting: BTreeMap<u64, PendingRequest<P>>,
    deadlines: BTreeSet<(Time, u64)>,
    by_key: BTreeMap<RequestKey, u64>,
}

impl<P> PendingRequests<P> {
    /// None yet. `last_id` is the last one that this side has used in the session: no id is used twice (`basic`,
    /// "Requests").
    pub(crate) fn after(last_id: u64) -> Self {
        Self {
            last_id,
            waiting: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            by_key: BTreeMap::new(),
        }
    }

    pub(crate) fn last_id(&self) -> u64 {
        self.last_id
    }

    /// The id of the next request.
    pub(crate) fn next_id(&self) -> u64 {
        self.last_id.saturating_add(1)
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Notes a request that leaves now and gives its id.
    pub(crate) fn open(&mut self, opening: NewRequest<P>, now: Time) -> u64 {
        let id = self.next_id();
        self.last_id = id;
        let cap = now.plus(opening.timeout.total);
        let deadline = now.plus(opening.timeout.idle).min(cap);
        self.deadlines.insert((deadline, id));
        self.by_key.insert(opening.key, id);
        let request = PendingRequest {
            key: opening.key,
            method: opening.method,
            stream: opening.stream,
            purpose: opening.purpose,
            timeout: opening.timeout,
            deadline,
            cap,
            progress: opening.progress.then_some(None),
        };
        self.waiting.insert(id, request);
        id
    }

    pub(crate) fn get(&self, id: u64) -> Option<&PendingRequest<P>> {
        self.waiting.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &PendingRequest<P>)> {
        self.waiting.iter().map(|(id, request)| (*id, request))
    }

    pub(crate) fn id_of(&self, key: RequestKey) -> Option<u64> {
        self.by_key.get(&key).copied()
    }

    /// Ends a request: its answer is there.
    pub(crate) fn take(&mut self, id: u64) -> Option<PendingRequest<P>> {
        let request = self.waiting.remove(&id)?;
        self.deadlines.remove(&(request.deadline, id));
        self.by_key.remove(&request.key);
        Some(request)
    }

    /// Whether a request of this id has ended: what still comes for it is late, not wrong.
    pub(crate) fn has_ended(&self, id: u64) -> bool {
        (1..=self.last_id).contains(&id) && !self.waiting.contains_key(&id)
    }

    /// Finds the request of a progress token and starts its timeout again.
    pub(crate) fn progress(&mut self, token: Option<u64>, done: f64, now: Time) -> ProgressOf {
        let Some(id) = token else {
            return ProgressOf::Nothing;
        };
        let ended = self.has_ended(id);
        let Some(request) = self.waiting.get_mut(&id) else {
            return if ended {
                ProgressOf::Ended
            } else {
                ProgressOf::Nothing
            };
        };
        let Some(last) = &mut request.progress else {
            return ProgressOf::Nothing;
        };
        if last.is_some_and(|last| done <= last) || done.is_nan() {
            return ProgressOf::NotIncreasing;
        }
        *last = Some(done);
        if request.timeout.reset_on_progress {
            self.deadlines.remove(&(request.deadline, id));
            request.deadline = now.plus(request.timeout.idle).min(request.cap);
            self.deadlines.insert((request.deadline, id));
        }
        ProgressOf::Request(request.key)
    }

    /// Gives a request that lasts as long as both sides want no deadline any more.
    pub(crate) fn last_long(&mut self, id: u64) -> Option<&mut PendingRequest<P>> {
        let request = self.waiting.get_mut(&id)?;
        self.deadlines.remove(&(request.deadline, id));
        Some(request)
    }

    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(time, _)| *time)
    }

    /// A request that has waited too long.
    pub(crate) fn take_expired(&mut self, now: Time) -> Option<(u64, PendingRequest<P>)> {
        let (deadline, id) = *self.deadlines.first()?;
        if deadline > now {
            return None;
        }
        Some((id, self.take(id)?))
    }

    /// The first request that is still waiting.
    pub(crate) fn take_any(&mut self) -> Option<(u64, PendingRequest<P>)> {
        let id = *self.waiting.keys().next()?;
        Some((id, self.take(id)?))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn opened(timeout: RequestTimeout, progress: bool) -> PendingRequests<()> {
        let mut sent = PendingRequests::after(0);
        let opening = NewRequest {
            key: RequestKey(7),
            method: "x".into(),
            stream: StreamId::DUPLEX,
            timeout,
            progress,
            purpose: (),
        };
        assert_eq!(sent.open(opening, Time::ZERO), 1);
        sent
    }

    const PATIENCE: RequestTimeout = RequestTimeout {
        idle: Duration::from_secs(10),
        reset_on_progress: true,
        total: Duration::from_secs(15),
    };

    #[test]
    fn prog_increasing_and_known_tokens_only() {
        let mut sent = opened(PATIENCE, true);
        let mut progress = |token, done| sent.progress(token, done, Time::ZERO);
        assert_eq!(progress(Some(1), 1.0), ProgressOf::Request(RequestKey(7)));
        assert_eq!(progress(Some(1), 1.0), ProgressOf::NotIncreasing);
        assert_eq!(progress(Some(1), f64::NAN), ProgressOf::NotIncreasing);
        assert_eq!(progress(Some(2), 1.0), ProgressOf::Nothing);
        assert_eq!(progress(None, 1.0), ProgressOf::Nothing);
        sent.take(1).expect("waiting");
        assert_eq!(sent.progress(Some(1), 2.0, Time::ZERO), ProgressOf::Ended);
    }

    #[test]
    fn progress_that_nobody_asked_for_is_unknown() {
        let mut sent = opened(PATIENCE, false);
        assert_eq!(sent.progress(Some(1), 1.0, Time::ZERO), ProgressOf::Nothing);
    }

    #[test]
    fn progress_starts_the_timeout_again_up_to_the_cap() {
        let mut sent = opened(PATIENCE, true);
        sent.progress(Some(1), 1.0, Time::from_millis(4000));
        assert_eq!(sent.next_deadline(), Some(Time::from_millis(14_000)));
        sent.progress(Some(1), 2.0, Time::from_millis(13_000));
        assert_eq!(sent.next_deadline(), Some(Time::from_millis(15_000)));
        assert!(sent.take_expired(Time::from_millis(14_999)).is_none());
        assert!(sent.take_expired(Time::from_millis(15_000)).is_some());
        assert_eq!(sent.next_deadline(), None);
    }
}
