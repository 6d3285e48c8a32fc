//! Calls in progress on a connection, to which messages of the server belong.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mcp_exact_session::{IncomingRequest, Outcome, RequestKey};
use mcp_exact_transport::{PendingRequest, RequestContext, ServerHandle};
use parking_lot::Mutex;

use crate::around::hooks::MessageHooks;
use crate::around::limits::Holder;
use crate::route::undeclared::UndeclaredCapabilities;

/// Calls on a connection that clients without sessions share, or of a session.
#[derive(Default)]
pub(crate) struct SharedCalls(Mutex<CallsInProgress>);

#[derive(Default)]
struct CallsInProgress {
    /// Calls by the key of the upstream request.
    by_key: HashMap<RequestKey, RelayedRequest>,
    /// True if the connection belongs to one session, whose client alone gets the messages.
    is_of_session: bool,
    /// True once a call has ended without an answer: the server may still work on it, so that a message that names no request
    /// may be about a call of another client, as long as the connection lasts.
    has_abandoned: bool,
    /// Client of the calls so far: a principal, or the address of anonymous clients.
    holder: Option<Holder>,
    /// True once calls of another client have used the connection: even one that was answered may have work that goes on.
    is_mixed: bool,
}

/// Request of a client that an upstream request relays.
#[derive(Clone)]
pub(crate) struct RelayedRequest {
    /// Endpoint of the client.
    pub(crate) client: ServerHandle,
    /// Key of the client's request.
    pub(crate) request: RequestKey,
    /// Hooks for the messages during the request.
    pub(crate) messages: MessageHooks,
    /// Undeclared capabilities that refused requests of the server needed during the request.
    pub(crate) undeclared: Arc<UndeclaredCapabilities>,
    /// True once the server has asked the client something during the request.
    has_asked: Arc<AtomicBool>,
}

/// Guard that removes a call from [`SharedCalls`] when dropped, that is, when the call ends or is cancelled.
pub(crate) struct SharedCall<'a> {
    /// Calls from which the call is removed.
    calls: &'a SharedCalls,
    /// Request of the client.
    request: &'a IncomingRequest<RequestContext>,
    /// What is added; `None` after that.
    relayed: Option<RelayedRequest>,
    /// Key of the upstream request; `None` before it is sent.
    key: Option<RequestKey>,
    /// Undeclared capabilities that refused requests of the server needed during the call.
    pub(crate) undeclared: Arc<UndeclaredCapabilities>,
    /// True once the server has asked the client something during the call.
    has_asked: Arc<AtomicBool>,
    /// True once the server has answered the call.
    is_answered: bool,
}

impl SharedCall<'_> {
    /// Adds the call, whose upstream request has this key, before messages of the server that belong to it are handled.
    pub(crate) fn begin(&mut self, key: RequestKey) {
        let mut calls = self.calls.0.lock();
        if !calls.is_of_session {
            let holder = Holder::of(self.request);
            calls.is_mixed |= calls.holder.as_ref().is_some_and(|known| *known != holder);
            calls.holder.get_or_insert(holder);
        }
        calls
            .by_key
            .extend(self.relayed.take().map(|call| (key, call)));
        self.key = Some(key);
    }

    /// Waits for the outcome of the call.
    pub(crate) async fn outcome(&mut self, pending: PendingRequest) -> Outcome {
        let outcome = pending.await;
        self.is_answered = matches!(outcome, Outcome::Result(_) | Outcome::Error(_));
        outcome
    }

    /// Returns true if the server has asked the client something, or may have, during the call.
    pub(crate) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Acquire)
    }
}

impl Drop for SharedCall<'_> {
    fn drop(&mut self) {
        let Some(key) = self.key else {
            return;
        };
        let mut calls = self.calls.0.lock();
        let removed = calls.by_key.remove(&key);
        calls.has_abandoned |= !self.is_answered;
        drop(calls);
        // Its endpoint has a lock of its own.
        drop(removed);
    }
}

impl SharedCalls {
    /// Creates the calls of a session.
    pub(crate) fn of_session() -> Self {
        Self(Mutex::new(CallsInProgress {
            is_of_session: true,
            ..CallsInProgress::default()
        }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().by_key.is_empty()
    }

    /// Returns the guard of a call, which [`SharedCall::begin`] adds.
    pub(crate) fn call<'a>(
        &'a self,
        client: &ServerHandle,
        request: &'a IncomingRequest<RequestContext>,
        messages: &MessageHooks,
    ) -> SharedCall<'a> {
        let (undeclared, has_asked) = (Arc::default(), Arc::default());
        let relayed = RelayedRequest {
            client: client.clone(),
            request: request.key,
            messages: messages.clone(),
            undeclared: Arc::clone(&undeclared),
            has_asked: Arc::clone(&has_asked),
        };
        SharedCall {
            calls: self,
            request,
            relayed: Some(relayed),
            key: None,
            undeclared,
            has_asked,
            is_answered: false,
        }
    }

    /// Records that the server asks the client something during the upstream request `during`; if it names none, as over stdio, that
    /// may be any call in progress.
    pub(crate) fn set_asked(&self, during: Option<RequestKey>) {
        let calls = self.0.lock();
        for (key, call) in &calls.by_key {
            if during.is_none_or(|during| during == *key) {
                call.has_asked.store(true, Ordering::Release);
            }
        }
    }

    /// Returns the call that a message of the server belongs to: the call with the upstream request `key`, or the only
    /// call in progress if the message names no request, as over stdio. Where several clients share a connection, every
    /// earlier call must have been answered, and all must be of one client.
    pub(crate) fn request_of(&self, key: Option<RequestKey>) -> Option<RelayedRequest> {
        let calls = self.0.lock();
        let is_sure = calls.is_of_session || !calls.has_abandoned && !calls.is_mixed;
        match key {
            Some(key) => calls.by_key.get(&key).cloned(),
            None if calls.by_key.len() == 1 && is_sure => calls.by_key.values().next().cloned(),
            None => None,
        }
    }
}
