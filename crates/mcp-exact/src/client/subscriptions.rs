//! Subscriptions that a connection has: to resources of a session, and by requests that stay open.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};
use tokio::task::AbortHandle;

use crate::params::object_member;
use crate::protocol::{Json, JsonObject};

/// Subscriptions to resources in a session (up to 2025-11-25). The session subscribes to each URI once, however many
/// [`Subscription`](super::Subscription)s use the URI.
///
/// The lock is held while a request is in flight, because concurrent HTTP requests may arrive in any order.
#[derive(Default)]
pub(super) struct SubscriptionCounts(pub(super) Arc<Mutex<Subscriptions>>);

/// Subscriptions of a session, by URI.
pub(super) type Subscriptions = BTreeMap<String, SessionSubscription>;

/// Subscription of a session to one URI.
#[derive(Default)]
pub(super) struct SessionSubscription {
    /// Number of [`Subscription`](super::Subscription)s that use this subscription of the session.
    pub(super) count: usize,
    /// Request that replaces the subscription of the session after the server has changed to 2026-07-28 or later.
    pub(super) replacement: Option<ListenSubscription>,
}

impl SubscriptionCounts {
    /// Locks the subscriptions, waiting for requests in flight.
    pub(super) async fn lock(&self) -> MutexGuard<'_, Subscriptions> {
        self.0.lock().await
    }
}

/// Subscription by `subscriptions/listen` (from 2026-07-28 on), which ends when this value is dropped. If the server
/// ends the subscription earlier, such as when the access token of the request expires (`basic/patterns/subscriptions`,
/// "Cancellation"), the client sends a new request.
pub(super) struct ListenSubscription {
    /// Task that renews the subscription.
    pub(super) task: AbortHandle,
    /// Params of the request.
    pub(super) params: JsonObject,
}

impl ListenSubscription {
    /// Returns true if the subscription has this filter and is renewed when it ends.
    pub(super) fn has_filter(&self, filter: &JsonObject) -> bool {
        let params = JsonObject::from_iter([("notifications", filter.clone())]);
        self.params == params && !self.task.is_finished()
    }
}

impl Drop for ListenSubscription {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the resource URIs in the params of `subscriptions/listen`.
pub(super) fn subscribed_uris(params: &JsonObject) -> Vec<String> {
    let filter = object_member(params, "notifications");
    let uris = filter.and_then(|filter| filter.get("resourceSubscriptions"));
    uris.and_then(|uris| uris.parse().ok()).unwrap_or_default()
}

/// Returns the params of `resources/subscribe` and `resources/unsubscribe`.
pub(super) fn uri_params(uri: &str) -> JsonObject {
    JsonObject::from_iter([("uri", Json::string(uri))])
}
