//! Clients that are notified of changes, by session or by subscription.
//!
//! Visibility rules of the application run without a lock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

#[cfg(feature = "http-server")]
use mcp_exact_transport as transport;
use mcp_exact_transport::ServerHandle;

use super::{Request, RequestLink};
use crate::protocol::{Change, JsonObject, RequestKey};
use crate::sync::lock;

/// Endpoints whose clients are notified of changes.
#[derive(Default)]
pub(crate) struct Listeners {
    /// Entries by the number of their endpoint, which their handles keep unique.
    by_endpoint: Mutex<HashMap<usize, Listener>>,
    /// Buses that announce changes to other processes.
    #[cfg(feature = "http-server")]
    change_buses: Mutex<Vec<transport::http::server::Announcer>>,
}

/// Endpoint whose client is notified of changes.
#[derive(Clone)]
pub(super) struct Listener {
    /// Handle of the endpoint.
    handle: ServerHandle,
    /// True if the client has a session.
    pub(super) is_session: bool,
    /// Latest `resources/subscribe` request of the session (up to 2025-11-25), which visibility rules are applied to.
    subscriber: Option<Arc<Request>>,
    /// Subscriptions by `subscriptions/listen` (from 2026-07-28 on).
    pub(super) subscriptions: Vec<Subscription>,
}

impl Listener {
    fn new(handle: &ServerHandle) -> Self {
        Self {
            handle: handle.clone(),
            is_session: false,
            subscriber: None,
            subscriptions: Vec::new(),
        }
    }

    /// Returns true if `sees`, the visibility rule of a resource, accepts one of the client's subscription requests. If
    /// the application has answered the `resources/subscribe` requests of a session itself, no request is recorded that
    /// visibility rules could be applied to, and the result is true.
    fn is_subscribed_to(&self, sees: impl Fn(&Request) -> bool) -> bool {
        let subscriptions = self.subscriptions.iter().map(|one| &one.request);
        let mut subscribers = self.subscriber.iter().chain(subscriptions).peekable();
        subscribers.peek().is_none() || subscribers.any(|request| sees(request))
    }
}

/// Subscription of a client (from 2026-07-28 on).
#[derive(Clone)]
pub(super) struct Subscription {
    /// Key of the `subscriptions/listen` request.
    pub(super) key: RequestKey,
    /// Request of the subscription, which visibility rules are applied to.
    pub(super) request: Arc<Request>,
    /// Ids of the tasks that the subscription is notified of.
    pub(super) tasks: Vec<String>,
}

impl Listeners {
    /// Records the request that subscribes to a resource in a session (up to 2025-11-25).
    pub(crate) fn record_subscription(&self, link: &RequestLink, request: &Arc<Request>) {
        let Some(handle) = &link.handle else {
            return;
        };
        let mut all = lock(&self.by_endpoint);
        if let Some(listener) = all.get_mut(&handle.number()) {
            listener.subscriber = Some(Arc::clone(request));
        }
    }

    /// Adds a task to the tasks that a subscription is notified of. `link` is the link of the `subscriptions/listen`
    /// request.
    pub(crate) fn watch_task(&self, link: &RequestLink, id: &str) {
        let Some(handle) = &link.handle else {
            return;
        };
        let mut all = lock(&self.by_endpoint);
        let listener = all.get_mut(&handle.number());
        let subscriptions = listener.map(|listener| &mut listener.subscriptions);
        let mut subscriptions = subscriptions.into_iter().flatten();
        if let Some(subscription) = subscriptions.find(|one| one.key == link.key) {
            subscription.tasks.push(id.to_owned());
        }
    }

    /// Changes the entry of an endpoint: adds a missing entry first, and removes an entry without session and
    /// subscriptions afterwards.
    pub(super) fn update(&self, handle: &ServerHandle, change: impl FnOnce(&mut Listener)) {
        let mut all = lock(&self.by_endpoint);
        let number = handle.number();
        let listener = all.entry(number).or_insert_with(|| Listener::new(handle));
        change(listener);
        if !listener.is_session && listener.subscriptions.is_empty() {
            all.remove(&number);
        }
    }

    /// Returns the number of endpoints whose clients are notified of changes.
    pub(crate) fn len(&self) -> usize {
        lock(&self.by_endpoint).len()
    }

    /// Returns true if a client has subscribed to the changes of a task.
    pub(crate) fn has_task_watchers(&self, id: &str) -> bool {
        let all = lock(&self.by_endpoint);
        let mut subscriptions = all.values().flat_map(|listener| &listener.subscriptions);
        subscriptions.any(|one| one.tasks.iter().any(|task| task == id))
    }

    /// Notifies the subscriptions to a task. `may_know` returns true if the sender of a subscription still has access
    /// to the task.
    pub(crate) fn publish_task(
        &self,
        id: &str,
        task: &JsonObject,
        may_know: impl Fn(&Request) -> bool,
    ) {
        let mut subscribed = Vec::new();
        for listener in lock(&self.by_endpoint).values() {
            let wanted = listener.subscriptions.iter();
            let wanted = wanted.filter(|one| one.tasks.iter().any(|task| task == id));
            subscribed.extend(wanted.map(|one| {
                let link = RequestLink::new(&listener.handle, one.key);
                (link, Arc::clone(&one.request))
            }));
        }
        // Rules of the application run without the lock.
        for (link, _) in subscribed.iter().filter(|(_, request)| may_know(request)) {
            link.notify_task_status(task);
        }
    }

    /// Adds the change bus of a service, on which changes are published from now on; a bus is added only once.
    #[cfg(feature = "http-server")]
    pub(crate) fn add_change_bus(&self, service: &transport::http::server::HttpService) {
        let mut announcers = lock(&self.change_buses);
        if announcers.iter().any(|known| service.join(known)) {
            return;
        }
        announcers.extend(service.announcer());
    }

    /// Notifies every subscribed client of a change, including the clients of other processes if there is a change bus.
    /// `sees` returns true if a subscriber may be notified of a resource.
    pub(crate) fn publish(&self, change: &Change, sees: impl Fn(&Request, &str) -> bool) {
        #[cfg(feature = "http-server")]
        for announcer in lock(&self.change_buses).iter() {
            announcer.announce(change);
        }
        // Rules of the application run without the lock.
        let all: Vec<Listener> = {
            let all = lock(&self.by_endpoint);
            all.values().cloned().collect()
        };
        for listener in all {
            let is_told = match change {
                Change::Resource(uri) => listener.is_subscribed_to(|request| sees(request, uri)),
                // Visibility rules do not apply to list changes.
                _ => true,
            };
            if is_told {
                listener.handle.publish(change);
            }
        }
    }
}
