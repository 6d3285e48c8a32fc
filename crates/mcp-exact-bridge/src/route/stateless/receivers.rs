//! Receivers of the server's requests and notifications, one for each kind of call of clients without sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcp_exact_convert::Role;
use mcp_exact_session::{
    Change, IncomingRequest, LogMessage, Outcome, RequestKey, Scope, ServerNotification,
    ServerRequestKey,
};
use mcp_exact_transport::{PendingRequest, RequestContext, ServerHandle};
use tokio::sync::mpsc;

use super::undeclared::UndeclaredCapabilities;
use crate::around::hooks::{MessageHooks, MessageKind};
use crate::around::limits::Holder;
use crate::route::translate::Translation;
use crate::servers::connection::{Connection, PendingServerRequest, Receiver};

/// Receiver of the server's requests and notifications during a call that has a separate connection.
pub(super) struct CallReceiver {
    /// Endpoint of the client that receives the messages.
    pub(super) client: ServerHandle,
    /// Request of the client that the call relays.
    pub(super) key: RequestKey,
    /// Channel for the requests that the server sends during the call.
    pub(super) server_requests: mpsc::UnboundedSender<PendingServerRequest>,
    /// Undeclared capabilities that refused requests of the server needed during the call.
    pub(super) undeclared: Arc<UndeclaredCapabilities>,
    /// Translation from the revision of the server to the revision of the client.
    pub(super) back: Translation,
    /// Hooks for the messages during the call.
    pub(super) messages: MessageHooks,
}

impl Receiver for CallReceiver {
    fn handle_request(&self, _: &Arc<Connection>, request: PendingServerRequest) {
        if let Err(unsent) = self.server_requests.send(request) {
            unsent.0.refuse("the client cannot be asked now");
        }
    }

    fn handle_undeclared_request(&self, _: Option<RequestKey>, capability: String) {
        self.undeclared.add(capability);
    }

    fn handle_cancellation(&self, request: ServerRequestKey) {
        tracing::debug!(?request, "the server has taken a question back");
    }

    fn handle_log(&self, _: Option<RequestKey>, message: LogMessage) {
        log_to(&self.client, self.key, &self.messages, message);
    }

    fn handle_change(&self, _: Change) {
        // Changes are sent to subscriptions, which have separate connections.
    }

    fn handle_notification(&self, _: &Arc<Connection>, notification: ServerNotification) {
        let method = notification.method();
        let params = self
            .back
            .notification(method, notification.params(), Role::Server);
        let kind = MessageKind::ServerNotification;
        let params = params.and_then(|params| self.messages.pass(kind, method, params));
        let sent = params.map(|params| self.client.notify(Scope::During(self.key), method, params));
        if !matches!(sent, Ok(Ok(_))) {
            tracing::debug!(method, "a notification was not handed on");
        }
    }
}

/// Calls that share a connection.
#[derive(Default)]
pub(crate) struct SharedCalls(Mutex<CallsInProgress>);

#[derive(Default)]
struct CallsInProgress {
    /// Calls by the key of the upstream request.
    by_key: HashMap<RequestKey, RelayedRequest>,
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
struct RelayedRequest {
    /// Endpoint of the client.
    client: ServerHandle,
    /// Key of the client's request.
    request: RequestKey,
    /// Hooks for the messages during the request.
    messages: MessageHooks,
    /// Undeclared capabilities that refused requests of the server needed during the request.
    undeclared: Arc<UndeclaredCapabilities>,
}

/// Guard that removes a call from [`SharedCalls`] when dropped, that is, when the call ends or is cancelled.
pub(crate) struct SharedCall<'a> {
    /// Calls from which the call is removed.
    calls: &'a SharedCalls,
    /// Key of the upstream request.
    key: RequestKey,
    /// Undeclared capabilities that refused requests of the server needed during the call.
    pub(super) undeclared: Arc<UndeclaredCapabilities>,
    /// True once the server has answered the call.
    is_answered: bool,
}

impl SharedCall<'_> {
    /// Waits for the outcome of the call.
    pub(crate) async fn outcome(&mut self, pending: PendingRequest) -> Outcome {
        let outcome = pending.await;
        self.is_answered = matches!(outcome, Outcome::Result(_) | Outcome::Error(_));
        outcome
    }
}

impl Drop for SharedCall<'_> {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        calls.by_key.remove(&self.key);
        calls.has_abandoned |= !self.is_answered;
    }
}

impl SharedCalls {
    fn lock(&self) -> MutexGuard<'_, CallsInProgress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().by_key.is_empty()
    }

    /// Adds a call until the returned guard is dropped; `key` is the key of the upstream request.
    pub(crate) fn begin(
        &self,
        key: RequestKey,
        client: &ServerHandle,
        request: &IncomingRequest<RequestContext>,
        messages: &MessageHooks,
    ) -> SharedCall<'_> {
        let (undeclared, holder) = (Arc::default(), Holder::of(request));
        let relayed = RelayedRequest {
            client: client.clone(),
            request: request.key,
            messages: messages.clone(),
            undeclared: Arc::clone(&undeclared),
        };
        let mut calls = self.lock();
        calls.is_mixed |= calls.holder.as_ref().is_some_and(|known| *known != holder);
        calls.holder.get_or_insert(holder);
        calls.by_key.insert(key, relayed);
        drop(calls);
        SharedCall {
            calls: self,
            key,
            undeclared,
            is_answered: false,
        }
    }

    /// Returns the call that a message of the server belongs to: the call with the upstream request `key`, or the only
    /// call in progress if the message names no request, every earlier call was answered, and all were of one client.
    fn request_of(&self, key: Option<RequestKey>) -> Option<RelayedRequest> {
        let calls = self.lock();
        match key {
            Some(key) => calls.by_key.get(&key).cloned(),
            None if calls.by_key.len() == 1 && !calls.has_abandoned && !calls.is_mixed => {
                calls.by_key.values().next().cloned()
            }
            None => None,
        }
    }
}

/// Receiver of the server's notifications on a connection that several calls share; requests of the server are refused.
pub(super) struct SharedCallsReceiver(pub(super) Weak<SharedCalls>);

impl Receiver for SharedCallsReceiver {
    fn handle_request(&self, _: &Arc<Connection>, request: PendingServerRequest) {
        request.refuse("the client has declared no capability to answer it");
    }

    fn handle_undeclared_request(&self, during: Option<RequestKey>, capability: String) {
        let call = self.0.upgrade().and_then(|calls| calls.request_of(during));
        if let Some(call) = call {
            call.undeclared.add(capability);
        }
    }

    fn handle_cancellation(&self, _: ServerRequestKey) {}

    fn handle_log(&self, about: Option<RequestKey>, message: LogMessage) {
        let call = self.0.upgrade().and_then(|calls| calls.request_of(about));
        if let Some(call) = call {
            log_to(&call.client, call.request, &call.messages, message);
        }
    }

    fn handle_change(&self, _: Change) {
        // Changes are sent to subscriptions, which have separate connections.
    }

    fn handle_notification(&self, _: &Arc<Connection>, notification: ServerNotification) {
        tracing::debug!(
            method = notification.method(),
            "a notification was not handed on"
        );
    }
}

/// Sends a log message to a client during its request, unless a hook drops the message.
fn log_to(client: &ServerHandle, key: RequestKey, messages: &MessageHooks, message: LogMessage) {
    let Some(LogMessage {
        level,
        logger,
        data,
    }) = messages.log(message)
    else {
        return;
    };
    if let Err(error) = client.log(Scope::During(key), level, logger.as_deref(), data) {
        tracing::debug!(%error, "a log message was not handed on");
    }
}
