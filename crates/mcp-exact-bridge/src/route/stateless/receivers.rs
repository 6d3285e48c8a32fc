//! Receivers of the server's requests and notifications, one for each kind of call of clients without sessions.

use std::sync::{Arc, Weak};

use mcp_exact_convert::Role;
use mcp_exact_session::{LogMessage, RequestKey, Scope, ServerNotification};
use mcp_exact_transport::ServerHandle;
use tokio::sync::mpsc;

use crate::around::hooks::{MessageHooks, MessageKind};
use crate::around::server_uris::ServerUris;
use crate::route::calls::SharedCalls;
use crate::route::relay;
use crate::route::translate::Translation;
use crate::route::undeclared::UndeclaredCapabilities;
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
    /// Form in which the client knows the URIs of the server.
    pub(super) uris: ServerUris,
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

    fn handle_log(&self, _: Option<RequestKey>, message: LogMessage) {
        log_to(&self.client, self.key, &self.messages, message);
    }

    fn handle_notification(&self, _: &Arc<Connection>, notification: ServerNotification) {
        let method = notification.method();
        let params = self
            .back
            .notification(method, notification.params(), Role::Server);
        let kind = MessageKind::ServerNotification;
        let params = params.and_then(|params| self.messages.pass(kind, method, params));
        relay::notify(method, params, |params| {
            let params = self.uris.params(params);
            self.client.notify(Scope::During(self.key), method, params)
        });
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

    fn handle_log(&self, about: Option<RequestKey>, message: LogMessage) {
        let call = self.0.upgrade().and_then(|calls| calls.request_of(about));
        if let Some(call) = call {
            log_to(&call.client, call.request, &call.messages, message);
        }
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
        tracing::debug!(%error, "a log message was not forwarded");
    }
}
