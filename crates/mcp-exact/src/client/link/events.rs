//! Events of a connection: input requests, log messages and changes, which are passed to the handlers of the application.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::SystemTime;

use mcp_exact_session as session;
use mcp_exact_transport as transport;
use session::{ClientEvent, ServerRequestKey};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use transport::{ClientHandle, ClientHandler};

use super::{ClientLink, LIST_KINDS, SessionInfo, announces_changes, lock_ignoring_poison};
use crate::client::answer::Handlers;
use crate::client::cache::PageCache;
#[cfg(feature = "validation")]
use crate::client::check::OutputChecks;
use crate::client::connect::{ClientChange, LogMessage};
use crate::client::into_result;
use crate::client::subscribe::{self, SubscriptionCounts};
use crate::link::{Lifecycle, RequestKey};
use crate::notification::Notification;

/// State that is changed by the events of a connection.
pub(super) struct EventState {
    /// Handlers of the application.
    pub(super) handlers: Handlers,
    /// Tasks that answer requests of the server, so that the server can cancel them.
    pub(super) answer_tasks: Mutex<HashMap<ServerRequestKey, AbortHandle>>,
    /// `subscriptions/listen` requests that the server has acknowledged and [`ClientLink::listen`] has not returned yet,
    /// each with the URIs that the server has accepted.
    pub(super) acknowledged_subscriptions: Mutex<HashMap<RequestKey, Vec<String>>>,
    /// Notification for [`ClientLink::listen`], sent when `acknowledged_subscriptions` changes.
    pub(super) acknowledgement_received: Notify,
    /// Time at which the connection ended.
    pub(super) closed_at: Mutex<Option<SystemTime>>,
    /// True once the first negotiation has succeeded.
    pub(super) has_negotiated: AtomicBool,
    /// Subscriptions to resources in the session (up to 2025-11-25).
    pub(super) session_subscriptions: SubscriptionCounts,
    /// Cached list pages.
    pub(super) cache: PageCache,
    /// Validators of structured results, if the application validates them.
    #[cfg(feature = "validation")]
    pub(super) output_checks: Option<OutputChecks>,
    /// The connection, set once it is open.
    pub(super) link: OnceLock<Weak<ClientLink>>,
}

/// Handler of the events of a connection.
pub(super) struct EventHandler(pub(super) Arc<EventState>);

impl ClientHandler for EventHandler {
    fn handle(&self, client: &ClientHandle, event: ClientEvent) {
        let events = &self.0;
        match event {
            ClientEvent::Request { key, request, .. } => {
                events.answer_server_request(client, key, &request)
            }
            ClientEvent::RequestCancelled(key) => {
                let answering = lock_ignoring_poison(&events.answer_tasks).remove(&key);
                if let Some(answering) = answering {
                    answering.abort();
                }
            }
            ClientEvent::Subscribed(key, filter) => {
                lock_ignoring_poison(&events.acknowledged_subscriptions).insert(key, filter.uris);
                events.acknowledgement_received.notify_waiters();
            }
            ClientEvent::Log { message: log, .. } => events.handlers.handle_log(LogMessage {
                level: log.level,
                logger: log.logger,
                data: log.data,
            }),
            ClientEvent::Changed { change, .. } => {
                let change = match change {
                    session::Change::Tools => ClientChange::Tools,
                    session::Change::Prompts => ClientChange::Prompts,
                    session::Change::Resources => ClientChange::Resources,
                    session::Change::Resource(uri) => ClientChange::Resource(uri),
                    _ => return,
                };
                events.announce_change(change);
            }
            ClientEvent::Negotiated(info, _)
                if events.has_negotiated.swap(true, Ordering::AcqRel) =>
            {
                // The end of the session before was not that of the connection.
                *lock_ignoring_poison(&events.closed_at) = None;
                events.resume_after_reconnect(client, &info);
            }
            ClientEvent::Notification(notification) => {
                events.handlers.notifications.handle(&Notification {
                    method: notification.method().to_owned(),
                    params: notification.params().cloned(),
                    revision: notification.revision(),
                    principal: None,
                });
            }
            ClientEvent::Repaired(repaired) => {
                let reports = &events.handlers.repairs;
                reports.report(&repaired.method, repaired.repairs);
            }
            ClientEvent::Violation(violation) => {
                tracing::debug!(%violation, "the server broke a rule");
            }
            ClientEvent::Closed => {
                lock_ignoring_poison(&events.closed_at).get_or_insert_with(SystemTime::now);
                let answering = std::mem::take(&mut *lock_ignoring_poison(&events.answer_tasks));
                answering.into_values().for_each(|task| task.abort());
            }
            _ => {}
        }
    }
}

impl EventState {
    /// Removes the acknowledgement of a `subscriptions/listen` request, and returns the URIs that the server has
    /// accepted; `None` if the request was not acknowledged.
    pub(super) fn take_acknowledgement(&self, key: RequestKey) -> Option<Vec<String>> {
        lock_ignoring_poison(&self.acknowledged_subscriptions).remove(&key)
    }

    /// Discards cached data that a change concerns, and calls the application's handler for changes.
    pub(super) fn announce_change(&self, change: ClientChange) {
        self.cache.remove_changed(&change);
        #[cfg(feature = "validation")]
        if let (Some(checks), ClientChange::Tools) = (&self.output_checks, &change) {
            checks.discard_schemas();
        }
        self.handlers.handle_change(change);
    }

    /// Renews the subscriptions after a lost session was replaced, and reports the changes that may have been missed.
    fn resume_after_reconnect(self: &Arc<Self>, client: &ClientHandle, info: &SessionInfo) {
        if crate::link::lifecycle_of(info.revision) == Lifecycle::Discover {
            // Nothing is subscribed to before the connection is open.
            if let Some(link) = self.link.get().and_then(Weak::upgrade) {
                let lists = self.handlers.on_change.is_some();
                tokio::spawn(subscribe::subscribe_by_requests(link, lists));
            }
            return;
        }
        let lists = LIST_KINDS.into_iter();
        let lists = lists.filter(|(list, ..)| announces_changes(&info.capabilities, list));
        let lists: Vec<ClientChange> = lists.map(|(.., change)| change).collect();
        let (events, client) = (Arc::clone(self), client.clone());
        tokio::spawn(async move {
            let mut subscribed = events.session_subscriptions.lock().await;
            for (uri, subscription) in subscribed.iter_mut() {
                subscription.replacement = None;
                let params = Some(subscribe::uri_params(uri));
                let options = session::CallOptions::default();
                let sent = client.request("resources/subscribe", params, options, None);
                let answer = match sent {
                    Ok(request) => into_result(request.await),
                    Err(error) => Err(error.into()),
                };
                if let Err(error) = answer {
                    tracing::warn!(uri, %error, "a subscription could not be begun again");
                }
                events.announce_change(ClientChange::Resource(uri.clone()));
            }
            drop(subscribed);
            for change in lists {
                events.announce_change(change);
            }
        });
    }

    /// Starts a task that answers an input request of the server.
    fn answer_server_request(
        self: &Arc<Self>,
        client: &ClientHandle,
        key: ServerRequestKey,
        request: &session::ServerRequest,
    ) {
        tracing::debug!("<- {}: a question of the server", request.method());
        let answer = self.handlers.answer_input_request(
            request.method(),
            request.params(),
            request.revision(),
        );
        let (events, client) = (Arc::clone(self), client.clone());
        // The lock is held until the task handle is stored, because the task may finish immediately.
        let mut answering = lock_ignoring_poison(&self.answer_tasks);
        let task = tokio::spawn(async move {
            let answer = answer.await;
            lock_ignoring_poison(&events.answer_tasks).remove(&key);
            let answer = answer.map(session::RawResult::from);
            if let Err(error) = client.answer(key, answer) {
                tracing::debug!(%error, "an answer was not sent");
            }
        });
        answering.insert(key, task.abort_handle());
    }
}
