//! Receivers of the server's messages outside of its answers, one for each kind of connection of clients without sessions.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcp_exact_convert::Role;
use mcp_exact_session::{
    Change, LogMessage, Principal, RequestKey, Scope, ServerNotification, ServerRequestKey,
};
use mcp_exact_transport::ServerHandle;
use tokio::sync::mpsc;

use crate::backend::Backend;
use crate::translate::Way;
use crate::upstream::{Connection, Question, Receiver};

/// Receiver of the server's messages during a call that has a connection of its own.
pub(super) struct OfCall {
    pub(super) client: ServerHandle,
    pub(super) key: RequestKey,
    pub(super) questions: mpsc::UnboundedSender<Question>,
    pub(super) back: Way,
}

impl Receiver for OfCall {
    fn asked(&self, _: &Arc<Connection>, question: Question) {
        if let Err(unsent) = self.questions.send(question) {
            unsent.0.refuse("the call has ended");
        }
    }

    fn withdrawn(&self, question: ServerRequestKey) {
        tracing::debug!(?question, "the server has taken a question back");
    }

    fn logged(&self, _: Option<RequestKey>, message: LogMessage) {
        log_to(&self.client, self.key, message);
    }

    fn changed(&self, _: Change) {
        // Changes are for subscriptions, which have connections of their own.
    }

    fn notified(&self, _: &Arc<Connection>, notification: ServerNotification) {
        let method = notification.method();
        let params = self
            .back
            .notification(method, notification.params(), Role::Server);
        let sent = params.map(|params| self.client.notify(Scope::During(self.key), method, params));
        if !matches!(sent, Ok(Ok(_))) {
            tracing::debug!(method, "a notification was not handed on");
        }
    }
}

/// Calls that share a connection: key of the upstream request, and whose request it relays.
#[derive(Default)]
pub(super) struct SharedCalls(Mutex<HashMap<RequestKey, (ServerHandle, RequestKey)>>);

/// Forgets a call when it ends or is cancelled.
pub(super) struct SharedCall<'a> {
    calls: &'a SharedCalls,
    key: RequestKey,
}

impl Drop for SharedCall<'_> {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.key);
    }
}

impl SharedCalls {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestKey, (ServerHandle, RequestKey)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(super) fn begin(
        &self,
        key: RequestKey,
        client: &ServerHandle,
        request: RequestKey,
    ) -> SharedCall<'_> {
        self.lock().insert(key, (client.clone(), request));
        SharedCall { calls: self, key }
    }

    /// Returns the call that a message of the server names, or the only one there is.
    fn about(&self, key: Option<RequestKey>) -> Option<(ServerHandle, RequestKey)> {
        let calls = self.lock();
        match key {
            Some(key) => calls.get(&key).cloned(),
            None if calls.len() == 1 => calls.values().next().cloned(),
            None => None,
        }
    }
}

/// Receiver of the server's messages on a connection that calls share.
pub(super) struct OfShared(pub(super) Weak<SharedCalls>);

impl Receiver for OfShared {
    fn asked(&self, _: &Arc<Connection>, question: Question) {
        question.refuse("the client has declared no capability to answer it");
    }

    fn withdrawn(&self, _: ServerRequestKey) {}

    fn logged(&self, about: Option<RequestKey>, message: LogMessage) {
        let call = self.0.upgrade().and_then(|calls| calls.about(about));
        if let Some((client, key)) = call {
            log_to(&client, key, message);
        }
    }

    fn changed(&self, _: Change) {
        // Changes are for subscriptions, which have connections of their own.
    }

    fn notified(&self, _: &Arc<Connection>, notification: ServerNotification) {
        tracing::debug!(
            method = notification.method(),
            "a notification was not handed on"
        );
    }
}

fn log_to(client: &ServerHandle, key: RequestKey, message: LogMessage) {
    let LogMessage {
        level,
        logger,
        data,
    } = message;
    if let Err(error) = client.log(Scope::During(key), level, logger.as_deref(), data) {
        tracing::debug!(%error, "a log message was not handed on");
    }
}

/// Called when a subscription has begun at a server.
pub(crate) type Established = Arc<dyn Fn() + Send + Sync>;

/// Receiver of the server's messages to a subscription.
pub(super) struct OfSubscription {
    pub(super) client: ServerHandle,
    pub(super) backend: Arc<Backend>,
    pub(super) principal: Option<Principal>,
    pub(super) uris: BTreeSet<String>,
    pub(super) established: Established,
}

impl Receiver for OfSubscription {
    fn asked(&self, _: &Arc<Connection>, question: Question) {
        question.refuse("a subscription answers no questions");
    }

    fn withdrawn(&self, _: ServerRequestKey) {}

    fn logged(&self, _: Option<RequestKey>, _: LogMessage) {}

    fn subscribed(&self) {
        (self.established)();
    }

    fn changed(&self, change: Change) {
        if let Change::Resource(uri) = &change
            // The rules may have changed since the subscription began.
            && !self.backend.may_use(self.principal.as_ref(), uri)
        {
            return;
        }
        self.client.publish(&change);
    }

    fn resources(&self) -> BTreeSet<String> {
        self.uris.clone()
    }

    fn notified(&self, _: &Arc<Connection>, _: ServerNotification) {}
}
