//! Calls of a session that are in progress at its server.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_exact_session::RequestKey;

/// Keys of the requests of a client, by the keys of the corresponding upstream requests.
#[derive(Debug, Default)]
pub(super) struct Calls(Mutex<HashMap<RequestKey, RequestKey>>);

impl Calls {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestKey, RequestKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call until the returned guard is dropped: the upstream request relays the request of the client.
    pub(super) fn begin(&self, upstream: RequestKey, downstream: RequestKey) -> CallEnds<'_> {
        self.lock().insert(upstream, downstream);
        CallEnds {
            calls: self,
            key: upstream,
        }
    }

    fn remove(&self, upstream: RequestKey) {
        self.lock().remove(&upstream);
    }

    /// Returns the client's request that a message of the server belongs to: the request that the upstream request
    /// `upstream` relays, or the only request in progress if the message names none, as over stdio.
    pub(super) fn request_of(&self, upstream: Option<RequestKey>) -> Option<RequestKey> {
        let calls = self.lock();
        match upstream {
            Some(upstream) => calls.get(&upstream).copied(),
            None if calls.len() == 1 => calls.values().next().copied(),
            None => None,
        }
    }
}

/// Guard that removes a call from [`Calls`] when dropped, that is, when its request ends or is cancelled.
pub(super) struct CallEnds<'a> {
    /// Calls from which the call is removed.
    calls: &'a Calls,
    /// Key of the upstream request.
    key: RequestKey,
}

impl Drop for CallEnds<'_> {
    fn drop(&mut self) {
        self.calls.remove(self.key);
    }
}
