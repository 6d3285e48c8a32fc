//! Events of a connection: input requests, log messages and changes, which are passed to the handlers of the application.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::SystemTime;

use mcp_exact_session as session;
use mcp_exact_transport as transport;
use session::{ClientEvent, ServerRequestKey};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tracing::Instrument as _;
use transport::{ClientHandle, ClientHandler};

use super::ClientLink;
#[cfg(feature = "validation")]
use super::validators::OutputChecks;
use crate::client::answer::Handlers;
use crate::client::cache::PageCache;
use crate::client::error::into_result;
use crate::client::event::{
    ClientChange, ConnectionEvent, LIST_KINDS, LogMessage, announces_changes,
};
use crate::client::subscriptions::{SubscriptionCounts, uri_params};
use crate::notification::Notification;
use crate::protocol::{
    Json, JsonObject, Level, Lifecycle, RequestKey, SessionInfo, lifecycle_of, method,
};
use crate::sync::lock;

/// State that is changed by the events of the connections of a client.
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
    /// Number of the latest connection, whose end is that of the client's; of none after its loss.
    generation: AtomicU64,
    /// Log level that the application has set for the session.
    pub(super) log_level: Mutex<Option<Level>>,
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

/// Handler of the events of one connection.
pub(super) struct EventHandler {
    events: Arc<EventState>,
    /// Number of the connection.
    generation: u64,
    /// True once the first negotiation has succeeded.
    has_negotiated: AtomicBool,
}

impl EventHandler {
    /// Creates the handler of the next connection; what happens to earlier ones is ignored from now on.
    pub(super) fn new(events: &Arc<EventState>) -> Self {
        Self {
            events: Arc::clone(events),
            generation: events.generation.fetch_add(1, Ordering::AcqRel) + 1,
            has_negotiated: AtomicBool::new(false),
        }
    }

    /// Returns true if the connection is not lost, and no other one was begun.
    fn is_latest(&self) -> bool {
        self.events.generation.load(Ordering::Acquire) == self.generation
    }
}

impl ClientHandler for EventHandler {
    fn handle(&self, client: &ClientHandle, event: ClientEvent) {
        let events = &self.events;
        let is_of_connection = matches!(
            event,
            ClientEvent::Request { .. }
                | ClientEvent::RequestCancelled(_)
                | ClientEvent::Subscribed(..)
                | ClientEvent::Negotiated(..)
                | ClientEvent::SessionLost
                | ClientEvent::Closed
        );
        // The next connection may use the same keys.
        if is_of_connection && !self.is_latest() {
            return;
        }
        match event {
            ClientEvent::Request { key, request, .. } => {
                events.answer_server_request(client, key, &request)
            }
            ClientEvent::RequestCancelled(key) => {
                let answering = lock(&events.answer_tasks).remove(&key);
                if let Some(answering) = answering {
                    answering.abort();
                }
            }
            ClientEvent::Subscribed(key, filter) => {
                lock(&events.acknowledged_subscriptions).insert(key, filter.uris);
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
                if self.has_negotiated.swap(true, Ordering::AcqRel) =>
            {
                // The end of the session before was not that of the connection.
                events.mark_open();
                if let Some(link) = events.link.get().and_then(Weak::upgrade) {
                    link.report_next_session(info.revision);
                }
                events.resume_after_reconnect(client, &info);
            }
            ClientEvent::SessionLost if self.has_negotiated.load(Ordering::Acquire) => {
                if let Some(link) = events.link.get().and_then(Weak::upgrade) {
                    link.report_session_end();
                }
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
            // "Clients SHOULD log a warning when rejecting a tool definition, including the tool name and the reason for rejection"
            // (2026-07-28, `basic/transports/streamable-http`, "Schema Extension").
            ClientEvent::Violation(violation @ session::Violation::Tool { .. }) => {
                tracing::warn!("{violation}");
            }
            ClientEvent::Violation(violation) => {
                tracing::debug!(%violation, "the server broke a rule");
            }
            ClientEvent::Closed => {
                events.mark_closed();
                events.end_answers();
            }
            _ => {}
        }
    }

    fn handle_broken_exchange(&self, _: &ClientHandle) {
        let link = self.events.link.get().filter(|_| self.is_latest());
        if let Some(link) = link.and_then(Weak::upgrade) {
            link.check_reachability();
        }
    }
}

impl EventState {
    /// Creates the state of a client that has not connected yet.
    pub(super) fn new(handlers: Handlers) -> Arc<Self> {
        Arc::new(Self {
            #[cfg(feature = "validation")]
            output_checks: handlers.validates_output.then(OutputChecks::default),
            handlers,
            answer_tasks: Mutex::default(),
            acknowledged_subscriptions: Mutex::default(),
            acknowledgement_received: Notify::new(),
            closed_at: Mutex::default(),
            generation: AtomicU64::new(0),
            log_level: Mutex::default(),
            session_subscriptions: SubscriptionCounts::default(),
            cache: PageCache::default(),
            link: OnceLock::new(),
        })
    }

    /// Records the time at which the connection ended, unless it is recorded.
    pub(super) fn mark_closed(&self) {
        lock(&self.closed_at).get_or_insert_with(SystemTime::now);
    }

    /// Ends the tasks that answer requests of the server.
    fn end_answers(&self) {
        let answering = std::mem::take(&mut *lock(&self.answer_tasks));
        answering.into_values().for_each(|task| task.abort());
    }

    /// Discards what belongs to a lost connection, before the next one begins. Later events of the lost one change nothing.
    pub(super) fn end_connection(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.mark_closed();
        self.end_answers();
        lock(&self.acknowledged_subscriptions).clear();
        self.cache.clear();
        #[cfg(feature = "validation")]
        if let Some(checks) = &self.output_checks {
            checks.discard_schemas();
        }
    }

    /// Records that the connection is open.
    pub(super) fn mark_open(&self) {
        *lock(&self.closed_at) = None;
    }

    /// Calls the application's handler for changes of the connection.
    pub(super) fn report_connection(&self, event: ConnectionEvent) {
        self.handlers.handle_connection_event(event);
    }

    /// Removes the acknowledgement of a `subscriptions/listen` request, and returns the URIs that the server has
    /// accepted; `None` if the request was not acknowledged.
    pub(super) fn take_acknowledgement(&self, key: RequestKey) -> Option<Vec<String>> {
        lock(&self.acknowledged_subscriptions).remove(&key)
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

    /// Renews the log level and the subscriptions after a lost session or connection was replaced, and reports the changes that
    /// may have been missed.
    pub(super) fn resume_after_reconnect(
        self: &Arc<Self>,
        client: &ClientHandle,
        info: &SessionInfo,
    ) {
        if lifecycle_of(info.revision) == Lifecycle::Discover {
            // Nothing is subscribed to before the connection is open.
            if let Some(link) = self.link.get().and_then(Weak::upgrade) {
                let lists = self.handlers.on_change.is_some();
                tokio::spawn(link.subscribe_by_requests(lists));
            }
            return;
        }
        let lists = LIST_KINDS.into_iter();
        let lists = lists.filter(|(list, ..)| announces_changes(&info.capabilities, list));
        let lists: Vec<ClientChange> = lists.map(|(.., change)| change).collect();
        let (events, client) = (Arc::clone(self), client.clone());
        let level = *lock(&self.log_level);
        tokio::spawn(async move {
            if let Some(level) = level {
                let params = JsonObject::from_iter([("level", Json::string(level.name()))]);
                let options = session::CallOptions::default();
                let sent = client.request(method::LOGGING_SET_LEVEL, Some(params), options, None);
                if let Ok(request) = sent {
                    request.await;
                }
            }
            let mut subscribed = events.session_subscriptions.lock().await;
            for (uri, subscription) in subscribed.iter_mut() {
                subscription.replacement = None;
                let params = Some(uri_params(uri));
                let options = session::CallOptions::default();
                let sent = client.request(method::RESOURCES_SUBSCRIBE, params, options, None);
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
        let mut answering = lock(&self.answer_tasks);
        let answering_request = async move {
            let answer = answer.await;
            lock(&events.answer_tasks).remove(&key);
            let answer = answer.map(session::RawResult::from);
            if let Err(error) = client.answer(key, answer) {
                tracing::debug!(%error, "an answer was not sent");
            }
        };
        let task = tokio::spawn(answering_request.in_current_span());
        answering.insert(key, task.abort_handle());
    }
}
