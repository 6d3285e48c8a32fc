//! Messages of a server for the client of a session: requests, log messages, changes and other notifications.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use mcp_exact_convert::Role;
use mcp_exact_session::{
    CallOptions, Change, InputRequest, LogMessage, Outcome, PeerError, RawResult, RequestKey,
    Scope, ServerNotification, ServerRequestKey,
};

use super::Session;
use crate::around::hooks::MessageKind;
use crate::route::relay;
use crate::servers::connection::{Connection, PendingServerRequest, Receiver};

impl Session {
    /// Returns the receiver of the server's messages.
    pub(super) fn receiver(&self) -> Arc<dyn Receiver> {
        Arc::new(SessionReceiver(self.this.clone()))
    }

    /// Returns the request of the client that a message of the server belongs to, or else the client.
    fn scope_of(&self, upstream: Option<RequestKey>) -> Scope {
        let call = self.calls.request_of(upstream);
        call.map_or(Scope::Peer, |call| Scope::During(call.request))
    }

    /// Relays a request of the server to the client, and the answer to the server.
    async fn relay_server_request(
        self: Arc<Self>,
        connection: Arc<Connection>,
        server_request: PendingServerRequest,
    ) {
        let answer = self.client_response(&connection, &server_request).await;
        self.state
            .lock()
            .server_requests
            .remove(&server_request.key);
        server_request.answer(answer);
    }

    /// Sends a request of the server to the client, and returns the response for the server.
    async fn client_response(
        &self,
        connection: &Connection,
        server_request: &PendingServerRequest,
    ) -> Result<RawResult, PeerError> {
        let back = self.translation_to(connection.info.revision).reversed();
        let method = server_request.request.method();
        let input_request = InputRequest::new(method, server_request.request.params().cloned());
        let messages = self.messages();
        let ask = self.task_input_request(connection, input_request.clone())?;
        let ask = messages.input_request(back.input_request(&ask)?)?;
        let ask = self.uris.input_request(ask);
        let scope = self.scope_of(server_request.during);
        let options = CallOptions::default();
        let pending = self
            .client
            .request(scope, method, ask.params, options, None);
        let pending = pending.map_err(|error| PeerError::internal(error.to_string()))?;
        match pending.await {
            Outcome::Result(result) => {
                let answer = messages.answer(method, result.object())?;
                let answer = back.reversed().answer(method, &answer)?;
                let answer = self.task_answer(connection, &input_request, answer);
                Ok(RawResult::from(answer))
            }
            Outcome::Error(error) => Err(error),
            _ => Err(relay::missing_client_answer_error()),
        }
    }
}

/// Receiver of the server's requests and notifications for the client of a session.
struct SessionReceiver(Weak<Session>);

impl Receiver for SessionReceiver {
    fn handle_request(&self, connection: &Arc<Connection>, request: PendingServerRequest) {
        let Some(session) = self.0.upgrade() else {
            return request.refuse("the client is gone");
        };
        let key = request.key;
        session.calls.set_asked(request.during);
        let task = Arc::clone(&session).relay_server_request(Arc::clone(connection), request);
        // The task needs the lock to end, so it is registered before it ends.
        let mut state = session.state.lock();
        let task = tokio::spawn(tracing::Instrument::in_current_span(task));
        state.server_requests.insert(key, task.abort_handle());
    }

    fn handle_cancellation(&self, request: ServerRequestKey) {
        let session = self.0.upgrade();
        let task =
            session.and_then(|session| session.state.lock().server_requests.remove(&request));
        if let Some(task) = task {
            task.abort();
        }
    }

    fn handle_log(&self, about: Option<RequestKey>, message: LogMessage) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        let scope = session.scope_of(about);
        let Some(message) = session.messages().log(message) else {
            return;
        };
        let logger = message.logger.as_deref();
        if let Err(error) = session
            .client
            .log(scope, message.level, logger, message.data)
        {
            tracing::debug!(%error, "a log message was not forwarded");
        }
    }

    fn handle_change(&self, change: Change) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        if let Change::Resource(uri) = &change {
            let principal = session.state.lock().principal.clone();
            // The rules may have changed since the client has subscribed.
            if !session.backend.may_see_resource(principal.as_ref(), uri) {
                return;
            }
        }
        if let Some(change) = session.messages().change(change) {
            session.client.publish(&session.uris.change(change));
        }
    }

    fn resources(&self) -> BTreeSet<String> {
        let session = self.0.upgrade();
        session.map_or_else(BTreeSet::new, |session| session.resources())
    }

    fn handle_notification(&self, connection: &Arc<Connection>, notification: ServerNotification) {
        let Some(session) = self.0.upgrade() else {
            return;
        };
        let method = notification.method();
        let back = session.translation_to(connection.info.revision).reversed();
        let params = notification.params().cloned();
        let Some(params) = session.task_notification(connection, method, params) else {
            tracing::debug!(
                method,
                "a notification about the task of another client was dropped"
            );
            return;
        };
        let params = back.notification(method, params.as_ref(), Role::Server);
        let kind = MessageKind::ServerNotification;
        let params = params.and_then(|params| session.messages().pass(kind, method, params));
        relay::notify(method, params, |params| {
            let params = session.uris.params(params);
            session.client.notify(Scope::Peer, method, params)
        });
    }
}
