//! Requests of the local peer, from their creation to their end, with ids, progress tokens and deadlines.
//!
//! Each request has one record, found by its key. The record has a wire id while the request waits for an answer, and
//! no wire id while the request waits for anything else, such as input for a retry. This module does not depend on
//! revisions, methods or roles.

use super::ordered::OrderedMap;
use crate::Time;
use crate::limits::RequestTimeout;
use crate::stream::{RequestKey, StreamId};

/// Request of the local peer that has not ended.
#[derive(Debug)]
pub(crate) struct PendingRequest<P> {
    /// Key of the request within the endpoint.
    pub(crate) key: RequestKey,
    /// Stream on which the answer is awaited.
    pub(crate) stream: StreamId,
    /// Purpose of the request, defined by the role.
    pub(crate) purpose: P,
    /// Timeout of the request.
    timeout: RequestTimeout,
    /// Wire id of the request while an answer is awaited.
    wire_id: Option<u64>,
    /// Time at which the request ends unless an answer or progress is received; `None` while the request is suspended
    /// or without a deadline.
    deadline: Option<Time>,
    /// Time at which the request ends regardless of progress.
    final_deadline: Time,
    /// Last progress value: `None` if no progress was requested, `Some(None)` if no progress was received.
    last_progress: Option<Option<f64>>,
}

impl<P> PendingRequest<P> {
    /// Returns the last progress value; `None` if no progress was received.
    pub(crate) fn last_progress(&self) -> Option<f64> {
        self.last_progress.flatten()
    }

    /// Returns the wire id; `None` while the request is suspended.
    pub(crate) fn wire_id(&self) -> Option<u64> {
        self.wire_id
    }

    /// Returns the time at which the request ends regardless of progress.
    pub(crate) fn final_deadline(&self) -> Time {
        self.final_deadline
    }
}

/// Request that is about to be sent.
pub(crate) struct NewRequest<P> {
    /// Key of the request within the endpoint.
    pub(crate) key: RequestKey,
    /// Stream on which the answer is awaited.
    pub(crate) stream: StreamId,
    /// Timeout of the request.
    pub(crate) timeout: RequestTimeout,
    /// Time at which the request ends regardless of progress, if an earlier attempt has set it.
    pub(crate) final_deadline: Option<Time>,
    /// True if progress notifications are requested.
    pub(crate) with_progress: bool,
    /// Purpose of the request, defined by the role.
    pub(crate) purpose: P,
}

/// Result of the lookup of a progress notification's request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressTarget {
    /// The request has not ended.
    Request(RequestKey),
    /// The request has ended; late progress is a normal race.
    Ended,
    /// The progress value has not increased.
    NotIncreasing,
    /// The token belongs to no request.
    Unknown,
}

/// Pending requests of the local peer. Wire ids are numbers that are never used twice in a session (`basic`, "Requests"); the
/// progress token of a request is its wire id.
#[derive(Debug)]
pub(crate) struct PendingRequests<P> {
    /// Last assigned wire id.
    last_id: u64,
    /// Pending requests by their keys.
    by_key: OrderedMap<RequestKey, Box<PendingRequest<P>>>,
    /// Keys of the requests that wait for an answer, by wire id.
    by_wire_id: OrderedMap<u64, RequestKey>,
    /// Requests with deadlines, ordered by deadline.
    deadlines: OrderedMap<(Time, RequestKey), ()>,
}

impl<P> PendingRequests<P> {
    /// Creates an empty table; wire ids start after `last_id`.
    pub(crate) fn with_last_id(last_id: u64) -> Self {
        Self {
            last_id,
            by_key: OrderedMap::default(),
            by_wire_id: OrderedMap::default(),
            deadlines: OrderedMap::default(),
        }
    }

    /// Returns the last assigned wire id.
    pub(crate) fn last_id(&self) -> u64 {
        self.last_id
    }

    /// Returns the wire id of the next request.
    pub(crate) fn next_id(&self) -> u64 {
        self.last_id.saturating_add(1)
    }

    /// Returns the number of requests that have not ended.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Records a request that is sent now, and returns its wire id.
    pub(crate) fn insert(&mut self, new: NewRequest<P>, now: Time) -> u64 {
        let id = self.next_id();
        self.last_id = id;
        let cap = new
            .final_deadline
            .unwrap_or_else(|| now.saturating_add(new.timeout.total));
        let deadline = now.saturating_add(new.timeout.idle).min(cap);
        self.deadlines.insert((deadline, new.key), ());
        self.by_wire_id.insert(id, new.key);
        let request = PendingRequest {
            key: new.key,
            stream: new.stream,
            purpose: new.purpose,
            timeout: new.timeout,
            wire_id: Some(id),
            deadline: Some(deadline),
            final_deadline: cap,
            last_progress: new.with_progress.then_some(None),
        };
        self.by_key.insert(new.key, Box::new(request));
        id
    }

    pub(crate) fn get(&self, key: RequestKey) -> Option<&PendingRequest<P>> {
        self.by_key.get(key).map(|request| &**request)
    }

    pub(crate) fn get_mut(&mut self, key: RequestKey) -> Option<&mut PendingRequest<P>> {
        self.by_key.get_mut(key).map(|request| &mut **request)
    }

    /// Returns the request that waits for an answer under a wire id.
    pub(crate) fn by_wire_id(&self, id: u64) -> Option<&PendingRequest<P>> {
        self.get(*self.by_wire_id.get(id)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &PendingRequest<P>> {
        self.by_key.iter().map(|(_, request)| &**request)
    }

    /// Removes a request that has ended.
    pub(crate) fn remove(&mut self, key: RequestKey) -> Option<PendingRequest<P>> {
        let request = self.by_key.remove(key)?;
        if let Some(id) = request.wire_id {
            self.by_wire_id.remove(id);
        }
        if let Some(deadline) = request.deadline {
            self.deadlines.remove((deadline, key));
        }
        Some(*request)
    }

    /// Removes and returns the request that waits for the answer with this wire id.
    pub(crate) fn remove_answered(&mut self, id: u64) -> Option<PendingRequest<P>> {
        let key = *self.by_wire_id.get(id)?;
        self.remove(key)
    }

    /// Suspends a request that waits for something other than an answer: the request has no wire id, stream or deadline until it
    /// is resent.
    pub(crate) fn suspend(&mut self, key: RequestKey, purpose: P) {
        let request = PendingRequest {
            key,
            stream: StreamId::DUPLEX,
            purpose,
            timeout: RequestTimeout::default(),
            wire_id: None,
            deadline: None,
            final_deadline: Time::ZERO,
            last_progress: None,
        };
        self.by_key.insert(key, Box::new(request));
    }

    /// Sets whether an answer or progress with the wire id of a request counts; otherwise it is late.
    pub(crate) fn set_awaited(&mut self, key: RequestKey, is_awaited: bool) {
        let Some(id) = self.get(key).and_then(PendingRequest::wire_id) else {
            return;
        };
        if is_awaited {
            self.by_wire_id.insert(id, key);
        } else {
            self.by_wire_id.remove(id);
        }
    }

    /// Removes and returns the wire ids under which answers and progress count, until
    /// [`restore_awaited`](Self::restore_awaited): meanwhile, all of them are late.
    pub(crate) fn take_awaited(&mut self) -> OrderedMap<u64, RequestKey> {
        std::mem::take(&mut self.by_wire_id)
    }

    /// Restores the wire ids of requests that have not ended since [`take_awaited`](Self::take_awaited).
    pub(crate) fn restore_awaited(&mut self, awaited: &OrderedMap<u64, RequestKey>) {
        for (id, key) in awaited.iter() {
            if self.get(*key).and_then(PendingRequest::wire_id) == Some(id) {
                self.by_wire_id.insert(id, *key);
            }
        }
    }

    /// Returns true if a request with this wire id was sent.
    pub(crate) fn has_sent(&self, id: u64) -> bool {
        (1..=self.last_id).contains(&id)
    }

    /// Returns true if the request with this wire id has ended, so that an answer to this request is late and not
    /// invalid.
    pub(crate) fn has_ended(&self, id: u64) -> bool {
        (1..=self.last_id).contains(&id) && self.by_wire_id.get(id).is_none()
    }

    /// Records a progress value, and restarts the idle timeout of the request with this progress token.
    pub(crate) fn record_progress(
        &mut self,
        token: Option<u64>,
        done: f64,
        now: Time,
    ) -> ProgressTarget {
        let Some(id) = token else {
            return ProgressTarget::Unknown;
        };
        let ended = self.has_ended(id);
        let key = self.by_wire_id.get(id);
        let Some(request) = key.and_then(|key| self.by_key.get_mut(*key)) else {
            return if ended {
                ProgressTarget::Ended
            } else {
                ProgressTarget::Unknown
            };
        };
        let Some(last) = &mut request.last_progress else {
            return ProgressTarget::Unknown;
        };
        if last.is_some_and(|last| done <= last) || done.is_nan() {
            return ProgressTarget::NotIncreasing;
        }
        *last = Some(done);
        let key = request.key;
        // Progress does not set a deadline for a request without one, such as an acknowledged subscription.
        if let (true, Some(deadline)) = (request.timeout.reset_on_progress, request.deadline) {
            let later = now
                .saturating_add(request.timeout.idle)
                .min(request.final_deadline);
            self.set_deadline(key, deadline.max(later));
        }
        ProgressTarget::Request(key)
    }

    /// Suspends the idle timeout of a request until [`resume`](Self::resume): the local peer has to answer a question first.
    pub(crate) fn pause(&mut self, key: RequestKey) {
        if let Some(last) = self.get(key).map(PendingRequest::final_deadline) {
            self.set_deadline(key, last);
        }
    }

    /// Restarts the idle timeout of a request.
    pub(crate) fn resume(&mut self, key: RequestKey, now: Time) {
        if let Some(request) = self.get(key) {
            let idle = now.saturating_add(request.timeout.idle);
            let next = idle.min(request.final_deadline);
            self.set_deadline(key, next);
        }
    }

    /// Moves the deadline of a request; one without a deadline, such as an acknowledged subscription, gets none.
    fn set_deadline(&mut self, key: RequestKey, time: Time) {
        let request = self.by_key.get_mut(key);
        if let Some(deadline) = request.and_then(|request| request.deadline.as_mut()) {
            self.deadlines.remove((*deadline, key));
            *deadline = time;
            self.deadlines.insert((time, key), ());
        }
    }

    /// Removes the deadline of a request that lasts until a peer ends it, such as a subscription.
    pub(crate) fn lift_deadline(&mut self, key: RequestKey) -> Option<&mut PendingRequest<P>> {
        let request = self.by_key.get_mut(key)?;
        if let Some(deadline) = request.deadline.take() {
            self.deadlines.remove((deadline, key));
        }
        Some(request)
    }

    /// Returns the earliest deadline.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        self.deadlines.first().map(|(time, _)| time)
    }

    /// Removes and returns a request whose deadline has passed.
    pub(crate) fn remove_expired(&mut self, now: Time) -> Option<PendingRequest<P>> {
        let (deadline, key) = self.deadlines.first()?;
        if deadline <= now {
            self.remove(key)
        } else {
            None
        }
    }

    /// Removes and returns the oldest request.
    pub(crate) fn remove_oldest(&mut self) -> Option<PendingRequest<P>> {
        let key = self.by_key.first()?;
        self.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Creates a table with one request.
    fn open_request(timeout: RequestTimeout, progress: bool) -> PendingRequests<()> {
        let mut pending = PendingRequests::with_last_id(0);
        let new = NewRequest {
            key: RequestKey(7),
            stream: StreamId::DUPLEX,
            timeout,
            final_deadline: None,
            with_progress: progress,
            purpose: (),
        };
        assert_eq!(pending.insert(new, Time::ZERO), 1);
        pending
    }

    /// Timeout of 10 s without progress and of 15 s in total.
    const TIMEOUT: RequestTimeout = RequestTimeout {
        idle: Duration::from_secs(10),
        reset_on_progress: true,
        total: Duration::from_secs(15),
    };

    /// Progress must increase and belong to a known token; progress of an ended request is late.
    #[test]
    fn progress_must_increase() {
        let mut pending = open_request(TIMEOUT, true);
        let mut progress = |token, done| pending.record_progress(token, done, Time::ZERO);
        let request = ProgressTarget::Request(RequestKey(7));
        assert_eq!(progress(Some(1), 1.0), request);
        assert_eq!(progress(Some(1), 1.0), ProgressTarget::NotIncreasing);
        assert_eq!(progress(Some(1), f64::NAN), ProgressTarget::NotIncreasing);
        assert_eq!(progress(Some(2), 1.0), ProgressTarget::Unknown);
        assert_eq!(progress(None, 1.0), ProgressTarget::Unknown);
        pending.remove_answered(1).expect("pending");
        let late = pending.record_progress(Some(1), 2.0, Time::ZERO);
        assert_eq!(late, ProgressTarget::Ended);
    }

    /// Progress of a request that has not asked for progress belongs to an unknown token.
    #[test]
    fn unrequested_progress_is_unknown() {
        let mut pending = open_request(TIMEOUT, false);
        let target = pending.record_progress(Some(1), 1.0, Time::ZERO);
        assert_eq!(target, ProgressTarget::Unknown);
    }

    /// Progress restarts the idle timeout, but does not extend the total timeout.
    #[test]
    fn progress_restarts_timeout_until_deadline() {
        let mut pending = open_request(TIMEOUT, true);
        pending.record_progress(Some(1), 1.0, Time::from_millis(4000));
        assert_eq!(pending.next_deadline(), Some(Time::from_millis(14_000)));
        pending.record_progress(Some(1), 2.0, Time::from_millis(13_000));
        assert_eq!(pending.next_deadline(), Some(Time::from_millis(15_000)));
        assert!(pending.remove_expired(Time::from_millis(14_999)).is_none());
        assert!(pending.remove_expired(Time::from_millis(15_000)).is_some());
        assert_eq!(pending.next_deadline(), None);
    }

    /// Progress does not restore the removed deadline of a subscription, which lasts until one of the peers ends it
    /// (2026-07-28, `basic/patterns/subscriptions`).
    #[test]
    fn progress_restores_no_lifted_deadline() {
        let mut pending = open_request(TIMEOUT, true);
        pending.lift_deadline(RequestKey(7)).expect("pending");
        pending.record_progress(Some(1), 1.0, Time::from_millis(1000));
        assert_eq!(pending.next_deadline(), None);
    }
}
