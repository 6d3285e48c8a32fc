//! Notifications that the application handles itself, such as those of a vendor or an extension.
//!
//! A handler is a function that returns immediately; a panic in it does not end the connection.

use std::sync::Arc;

use crate::panics::contain_panic;
use crate::protocol::{JsonObject, Principal, Revision};

/// Notification that was received from the peer, for the handlers of
/// [`ServerBuilder::on_notification`](crate::ServerBuilder::on_notification) and
/// [`Connect::on_notification`](crate::Connect::on_notification).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notification {
    /// Method, such as `com.example/indexed`.
    pub method: String,
    /// Parameters, in the form of the negotiated revision.
    pub params: Option<JsonObject>,
    /// Revision of the session or of the message.
    pub revision: Revision,
    /// Authenticated principal of the client; `None` for anonymous clients, and for notifications of a server.
    pub principal: Option<Principal>,
}

/// Function that receives the notifications of one method.
type NotificationHandler = Arc<dyn Fn(Notification) + Send + Sync>;

/// Handlers of notifications, by method, in the order of registration.
#[derive(Clone, Default)]
pub(crate) struct NotificationHandlers(Vec<(String, NotificationHandler)>);

impl NotificationHandlers {
    /// Adds a handler.
    pub(crate) fn add(
        &mut self,
        method: String,
        handler: impl Fn(Notification) + Send + Sync + 'static,
    ) {
        self.0.push((method, Arc::new(handler)));
    }

    /// Adds the handlers of another builder.
    pub(crate) fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Calls every handler of the notification's method.
    pub(crate) fn handle(&self, notification: &Notification) {
        for (method, handler) in &self.0 {
            if *method == notification.method {
                contain_panic(method, || handler(notification.clone()));
            }
        }
    }
}
