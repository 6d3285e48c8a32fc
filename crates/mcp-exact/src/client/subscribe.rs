//! Subscriptions to changes (`server/resources`, "Subscriptions"; 2026-07-28, `basic/patterns/subscriptions`).
//!
//! Up to 2025-11-25, one request subscribes and a second one unsubscribes. From 2026-07-28 on, a single request stays
//! open as long as the subscription.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::OwnedMutexGuard;

use super::Client;
use super::error::ClientError;
use super::event::{LIST_KINDS, announces_changes};
use super::link::{ClientLink, RequestOptions};
use super::recover::is_loss;
use super::subscriptions::{ListenSubscription, Subscriptions, subscribed_uris, uri_params};
use crate::protocol::{Json, JsonObject, Lifecycle, PendingRequest, lifecycle_of, method};

/// Subscription to updates of resources, from [`Client::subscribe`]. Dropping the value ends the subscription
/// (`server/resources`, "Subscriptions"; from 2026-07-28 on `basic/patterns/subscriptions`), except for URIs that
/// another subscription still uses.
#[must_use = "the subscription ends when it is dropped"]
pub struct Subscription {
    client: Client,
    /// Mechanism of the subscription.
    kind: SubscriptionKind,
}

/// Mechanism of a subscription, which depends on the revision.
enum SubscriptionKind {
    /// Subscriptions of the session (up to 2025-11-25).
    Session {
        /// URIs that are subscribed to.
        uris: Vec<String>,
        /// Runtime that sends the requests to unsubscribe after a drop.
        runtime: Handle,
    },
    /// Request that stays open (from 2026-07-28 on).
    Request(
        #[allow(dead_code, reason = "held until the subscription is dropped")] ListenSubscription,
    ),
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl Subscription {
    /// Subscribes to URIs by the mechanism of the negotiated revision.
    pub(super) async fn begin(client: &Client, uris: Vec<String>) -> Result<Self, ClientError> {
        let mut subscription = Self::for_session(client);
        match lifecycle_of(client.revision()) {
            Lifecycle::Discover => {
                let notifications = [("resourceSubscriptions", Json::from_encode(&uris))];
                let (filter, limit) = (
                    JsonObject::from_iter(notifications),
                    client.link().acknowledgement_limit(),
                );
                let (listening, accepted) =
                    ListenSubscription::begin(client, filter, limit).await?;
                // "The subset of requested notification types the server agreed to honor" (`subscriptions/acknowledged`).
                if let Some(refused) = uris.into_iter().find(|uri| !accepted.contains(uri)) {
                    return Err(ClientError::SubscriptionRefused(refused));
                }
                subscription.kind = SubscriptionKind::Request(listening);
            }
            // After an error, dropping `subscription` ends what was already subscribed to.
            Lifecycle::Initialize => subscription.subscribe_to(uris).await?,
        }
        Ok(subscription)
    }

    /// Creates an empty subscription of a session (up to 2025-11-25).
    fn for_session(client: &Client) -> Self {
        Self {
            client: client.clone(),
            kind: SubscriptionKind::Session {
                uris: Vec::new(),
                runtime: Handle::current(),
            },
        }
    }

    /// Adds resources to a subscription of a session.
    async fn subscribe_to(&mut self, added: Vec<String>) -> Result<(), ClientError> {
        for uri in added {
            let mut subscribed = self.client.link().session_subscriptions().lock().await;
            let request = self
                .client
                .request(method::RESOURCES_SUBSCRIBE, Some(uri_params(&uri)));
            request.await?;
            subscribed.entry(uri.clone()).or_default().count += 1;
            if let SubscriptionKind::Session { uris, .. } = &mut self.kind {
                uris.push(uri);
            }
        }
        Ok(())
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let SubscriptionKind::Session { uris, runtime } = &mut self.kind else {
            return;
        };
        let uris = std::mem::take(uris);
        let link = Arc::clone(self.client.link());
        let subscribed = Arc::clone(&link.session_subscriptions().0);
        match Arc::clone(&subscribed).try_lock_owned() {
            // The request is sent immediately, so that the subscription has ended before the application's next
            // request.
            Ok(mut locked) => {
                let requests = unsubscribe(&link, &mut locked, &uris);
                runtime.spawn(await_all(requests, locked));
            }
            Err(_) => drop(runtime.spawn(async move {
                let mut locked = subscribed.lock_owned().await;
                let requests = unsubscribe(&link, &mut locked, &uris);
                await_all(requests, locked).await;
            })),
        }
    }
}

/// Sends `resources/unsubscribe` for each URI that no other subscription uses, and returns the pending requests.
fn unsubscribe(
    link: &ClientLink,
    subscribed: &mut Subscriptions,
    uris: &[String],
) -> Vec<PendingRequest> {
    let mut requests = Vec::new();
    for uri in uris {
        let Some(subscription) = subscribed.get_mut(uri) else {
            continue;
        };
        subscription.count -= 1;
        if subscription.count > 0 {
            continue;
        }
        subscribed.remove(uri);
        let method = method::RESOURCES_UNSUBSCRIBE;
        // A closed connection has already ended the subscription, and from 2026-07-28 on, dropping its request does.
        requests.extend(link.request_on(
            &link.handle(),
            method,
            Some(uri_params(uri)),
            RequestOptions::default(),
            None,
        ));
    }
    requests
}

/// Waits for the answers to the requests, because dropping a pending request cancels the request; then releases the
/// lock of the subscriptions.
async fn await_all(requests: Vec<PendingRequest>, locked: OwnedMutexGuard<Subscriptions>) {
    for request in requests {
        request.await;
    }
    drop(locked);
}

impl Client {
    /// Subscribes to changes of the server's lists, in revisions that require a subscription for list changes. If the server
    /// refuses the subscription, or does not acknowledge it within `limit`, another attempt is made in the background.
    ///
    /// # Errors
    /// [`ClientError::Disconnected`] if the connection has ended for good.
    pub(super) async fn listen_to_lists(&self, limit: Duration) -> Result<(), ClientError> {
        if lifecycle_of(self.revision()) == Lifecycle::Initialize {
            return Ok(());
        }
        let filter = filter_of_lists(&self.capabilities());
        if filter.is_empty() {
            return Ok(());
        }
        let limit = limit.min(self.link().acknowledgement_limit());
        // The subscription lasts as long as the connection.
        let listening = match ListenSubscription::begin(self, filter.clone(), limit).await {
            Ok((listening, _)) => listening,
            Err(error) if self.link().is_closed() => return Err(error),
            Err(error) => {
                tracing::warn!(
                    %error,
                    "the server does not report changes of its lists yet; the client goes on trying"
                );
                ListenSubscription::spawn_renewal(self.link(), params_of(filter), None)
            }
        };
        self.link().set_list_subscription(listening);
        Ok(())
    }
}

/// Returns the subscription filter for all lists whose changes the server announces.
fn filter_of_lists(capabilities: &JsonObject) -> JsonObject {
    let announced = LIST_KINDS
        .into_iter()
        .filter(|(list, ..)| announces_changes(capabilities, list));
    announced.map(|(_, member, _)| (member, true)).collect()
}

/// Pause before an attempt to subscribe again, if the ended subscription lasted longer than [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_secs(1);
/// Maximum pause before an attempt to subscribe again. The pause doubles after each failed attempt and each
/// subscription that did not last longer than this maximum.
const MAX_PAUSE: Duration = Duration::from_secs(60);

impl ListenSubscription {
    /// Starts a subscription; returns the subscription and the accepted URIs after the server has acknowledged it, within
    /// `limit`.
    async fn begin(
        client: &Client,
        filter: JsonObject,
        limit: Duration,
    ) -> Result<(Self, Vec<String>), ClientError> {
        let params = params_of(filter);
        let link = Arc::downgrade(client.link());
        let next: NextConnection = Box::pin(client.link().next_connection());
        let (request, accepted) = ClientLink::listen(&link, &params, limit).await?;
        let subscription = Self::spawn_renewal(client.link(), params, Some((request, next)));
        Ok((subscription, accepted))
    }

    /// Spawns the task that renews a subscription each time it ends. Without a request that was `begun`, with the connection in place
    /// of its own, the task first sends one.
    fn spawn_renewal(
        link: &Arc<ClientLink>,
        params: JsonObject,
        begun: Option<(PendingRequest, NextConnection)>,
    ) -> Self {
        let task = tokio::spawn(listen_again(Arc::downgrade(link), params.clone(), begun));
        Self {
            task: task.abort_handle(),
            params,
        }
    }
}

/// Returns the params of `subscriptions/listen`.
fn params_of(filter: JsonObject) -> JsonObject {
    JsonObject::from_iter([("notifications", filter)])
}

/// Wait for the connection in place of the one that a subscription has. It begins before the request is sent: a connection that comes
/// while the application is told of changes has no subscription.
type NextConnection = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Renews a subscription each time it ends, until the connection closes. Without a request that was `begun`, sends one first.
async fn listen_again(
    link: Weak<ClientLink>,
    params: JsonObject,
    mut begun: Option<(PendingRequest, NextConnection)>,
) {
    let mut pause = MIN_PAUSE;
    loop {
        let (request, connection) = match begun.take() {
            Some((request, connection)) => (Some(request), connection),
            None => {
                let Some(known) = link.upgrade().filter(|link| !link.is_closed()) else {
                    return;
                };
                let connection: NextConnection = Box::pin(known.next_connection());
                if known.is_reconnecting() {
                    drop(known);
                    connection.await;
                    continue;
                }
                let limit = known.acknowledgement_limit();
                drop(known);
                let listening = ClientLink::listen(&link, &params, limit).await;
                let Some(link) = link.upgrade() else {
                    return;
                };
                let request = match listening {
                    Ok((request, accepted)) => {
                        link.report_renewal(&params, &accepted);
                        Some(request)
                    }
                    Err(_) if lifecycle_of(link.revision()) == Lifecycle::Initialize => {
                        return subscribe_in_session(link, &params).await;
                    }
                    Err(error) => {
                        tracing::debug!(%error, "a subscription could not be begun again");
                        link.check_reachability();
                        None
                    }
                };
                (request, connection)
            }
        };
        let listening_since = Instant::now();
        if let Some(request) = request
            && is_loss(&request.await)
            && let Some(link) = link.upgrade()
        {
            link.check_reachability();
        }
        // A subscription that ends early is renewed only after a growing pause.
        pause = if listening_since.elapsed() > MAX_PAUSE {
            MIN_PAUSE
        } else {
            MAX_PAUSE.min(pause * 2)
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            // A new connection has no subscriptions.
            () = connection => {}
        }
    }
}

impl ClientLink {
    /// Reports that a subscription was begun again: the changes that may have been missed, and the resources that it is without.
    fn report_renewal(&self, params: &JsonObject, accepted: &[String]) {
        let mut refused = subscribed_uris(params);
        refused.retain(|uri| !accepted.contains(uri));
        if !refused.is_empty() {
            tracing::warn!(?refused, "a subscription was begun again without resources");
        }
        self.set_unreachable(None);
        self.report_possible_changes(params);
    }

    /// Subscribes by `subscriptions/listen` after the server has changed to 2026-07-28 or later: with one request for each
    /// resource of the session, and one for the lists if the application handles their changes.
    pub(super) async fn subscribe_by_requests(self: Arc<Self>, lists: bool) {
        let renew =
            |filter: JsonObject| ListenSubscription::spawn_renewal(&self, params_of(filter), None);
        let filter = filter_of_lists(&self.session().capabilities);
        // A subscription that began by a request is renewed by its own task.
        if lists && !filter.is_empty() && !self.has_list_subscription(&filter) {
            self.set_list_subscription(renew(filter));
        }
        for (uri, subscription) in self.session_subscriptions().lock().await.iter_mut() {
            let uris = Json::from_encode(&vec![uri.clone()]);
            let filter = JsonObject::from_iter([("resourceSubscriptions", uris)]);
            let renews = |replacement: &ListenSubscription| replacement.has_filter(&filter);
            if !subscription.replacement.as_ref().is_some_and(renews) {
                subscription.replacement = Some(renew(filter));
            }
        }
    }
}

/// Subscribes by `resources/subscribe` after the server has changed to a revision before 2026-07-28, and reports the
/// changes that may have been missed. Before 2026-07-28, lists need no subscription.
async fn subscribe_in_session(link: Arc<ClientLink>, params: &JsonObject) {
    let uris = subscribed_uris(params);
    if uris.is_empty() {
        return link.report_possible_changes(params);
    }
    let mut subscription = Subscription::for_session(&Client::for_link(&link));
    if let Err(error) = subscription.subscribe_to(uris).await {
        tracing::warn!(%error, "a subscription could not be begun again");
        return;
    }
    link.report_possible_changes(params);
    drop(link);
    // The subscription lasts as long as the one that it replaces, whose owner also keeps the connection open.
    std::future::pending().await
}
