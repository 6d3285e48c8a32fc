//! Requests of the peer that are in flight: one record per request, found by key and by wire id.
//!
//! Each admitted request ends once. This module does not depend on revisions, methods or roles.

use std::collections::VecDeque;

use mcp_exact_wire::order::NumberMap;
use mcp_exact_wire::{Json, RequestId};

use super::batches::BatchId;
use super::ordered::OrderedMap;
use crate::stream::{RequestKey, StreamId};

/// Bounded set of the most recently inserted numbers.
#[derive(Debug)]
struct Tombstones {
    /// Numbers in the order of insertion.
    order: VecDeque<u64>,
    /// Numbers for the lookup.
    members: NumberMap,
    /// Maximum number of numbers.
    limit: usize,
}

impl Tombstones {
    fn new(limit: usize) -> Self {
        Self {
            order: VecDeque::new(),
            members: NumberMap::default(),
            limit,
        }
    }

    /// Inserts a number; removes the oldest number if the limit is exceeded.
    fn insert(&mut self, number: u64) {
        if self.limit > 0 && self.members.insert(number, 0).is_none() {
            if self.order.len() == self.limit {
                let oldest = self.order.pop_front();
                oldest.map(|oldest| self.members.remove(oldest));
            }
            self.order.push_back(number);
        }
    }
}

/// Request of the peer that has not been answered.
#[derive(Debug)]
pub(crate) struct InFlightRequest<T> {
    /// Id of the request, exactly as received.
    pub(crate) id: RequestId,
    /// Stream that carries the answer.
    pub(crate) stream: StreamId,
    /// Batch that contains the request.
    pub(crate) batch: Option<BatchId>,
    /// Approximate memory of the request in bytes.
    pub(crate) size: usize,
    /// Stream on which the id must be unique; `None` if it must be unique in the session.
    pub(crate) scope: Option<StreamId>,
    /// Progress token, exactly as received.
    pub(crate) progress_token: Option<Json>,
    /// Value of the last progress notification that was sent for the request; the next value must be larger.
    pub(crate) last_progress: Option<f64>,
    /// State that the role keeps for the request.
    pub(crate) role_state: T,
}

/// All requests of the remote peer that are in flight.
#[derive(Debug)]
pub(crate) struct InFlightRequests<T> {
    /// Requests in flight by the keys that the endpoint has assigned.
    by_key: OrderedMap<RequestKey, Box<InFlightRequest<T>>>,
    /// Keys by scope and id. A sorted vector suits the small number of requests; a tree would allocate a node for each.
    by_id: Vec<((Option<StreamId>, RequestId), RequestKey)>,
    /// Keys of the most recently cancelled requests.
    cancelled_keys: Tombstones,
    /// Total size of the requests in bytes.
    bytes: usize,
}

impl<T> InFlightRequests<T> {
    /// Creates an empty table that remembers the keys of up to `remembered` cancelled requests.
    pub(crate) fn new(remembered: usize) -> Self {
        Self {
            by_key: OrderedMap::default(),
            by_id: Vec::new(),
            cancelled_keys: Tombstones::new(remembered),
            bytes: 0,
        }
    }

    /// Returns the number of requests in flight.
    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns the total size of the requests in flight in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a request under its key.
    pub(crate) fn insert(&mut self, key: RequestKey, request: InFlightRequest<T>) {
        self.bytes += request.size;
        let entry = ((request.scope, request.id.clone()), key);
        match self.id_index(request.scope, &request.id) {
            Ok(at) => self.by_id[at] = entry,
            Err(at) => self.by_id.insert(at, entry),
        }
        self.by_key.insert(key, Box::new(request));
    }

    /// Returns the index of an id in `by_id`, or the index for its insertion.
    fn id_index(&self, scope: Option<StreamId>, id: &RequestId) -> Result<usize, usize> {
        self.by_id.binary_search_by(|((known, known_id), _)| {
            known.cmp(&scope).then_with(|| known_id.cmp(id))
        })
    }

    /// Returns the key of the request with this scope and id.
    pub(crate) fn find(&self, scope: Option<StreamId>, id: &RequestId) -> Option<RequestKey> {
        let at = self.id_index(scope, id).ok()?;
        Some(self.by_id[at].1)
    }

    /// Returns true if a request with this id is in flight, whatever its scope is.
    pub(crate) fn contains_id(&self, id: &RequestId) -> bool {
        let mut scoped = self.by_id.iter().filter(|((scope, _), _)| scope.is_some());
        self.find(None, id).is_some() || scoped.any(|((_, known), _)| known == id)
    }

    pub(crate) fn get(&self, key: RequestKey) -> Option<&InFlightRequest<T>> {
        self.by_key.get(key).map(|request| &**request)
    }

    pub(crate) fn get_mut(&mut self, key: RequestKey) -> Option<&mut InFlightRequest<T>> {
        self.by_key.get_mut(key).map(|request| &mut **request)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (RequestKey, &InFlightRequest<T>)> {
        self.by_key.iter().map(|(key, request)| (key, &**request))
    }

    /// Adds memory to the size of a request, until [`release_memory`](Self::release_memory).
    pub(crate) fn add_bytes(&mut self, key: RequestKey, bytes: usize) {
        if let Some(request) = self.by_key.get_mut(key) {
            request.size += bytes;
            self.bytes += bytes;
        }
    }

    /// Subtracts memory that [`add_bytes`](Self::add_bytes) has counted.
    pub(crate) fn release_memory(&mut self, key: RequestKey, bytes: usize) {
        if let Some(request) = self.by_key.get_mut(key) {
            request.size -= bytes;
            self.bytes -= bytes;
        }
    }

    /// Removes and returns an answered request.
    pub(crate) fn take(&mut self, key: RequestKey) -> Option<InFlightRequest<T>> {
        let request = self.by_key.remove(key)?;
        self.bytes -= request.size;
        if let Ok(at) = self.id_index(request.scope, &request.id) {
            self.by_id.remove(at);
        }
        Some(*request)
    }

    /// Removes and returns a cancelled request, and remembers its key.
    pub(crate) fn take_cancelled(&mut self, key: RequestKey) -> Option<InFlightRequest<T>> {
        let request = self.take(key)?;
        self.cancelled_keys.insert(key.0);
        Some(request)
    }

    /// Returns the number of remembered cancelled requests.
    pub(crate) fn remembered_count(&self) -> usize {
        self.cancelled_keys.order.len()
    }

    /// Returns true if the request was cancelled, so that an answer to this request is late and not invalid.
    pub(crate) fn was_cancelled(&self, key: RequestKey) -> bool {
        self.cancelled_keys.members.get(key.0).is_some()
    }

    /// Returns the keys of the requests that meet the condition.
    pub(crate) fn keys_where(
        &self,
        matches: impl Fn(&InFlightRequest<T>) -> bool,
    ) -> Vec<RequestKey> {
        let found = self.by_key.iter().filter(|(_, request)| matches(request));
        found.map(|(key, _)| key).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beyond its limit, the set keeps only the most recently inserted numbers.
    #[test]
    fn tombstones_are_bounded() {
        let mut tombstones = Tombstones::new(2);
        (1..=3).for_each(|number| tombstones.insert(number));
        let known: Vec<bool> = (1..=3)
            .map(|n| tombstones.members.get(n).is_some())
            .collect();
        assert_eq!(known, [false, true, true]);
    }
}
