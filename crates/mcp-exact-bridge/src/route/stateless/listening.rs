//! Subscriptions of clients without sessions. Equal subscriptions of one principal share one subscription at the
//! server, so that the number of connections does not grow with the number of clients.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, OnceLock, Weak};

use mcp_exact_session::{
    Change, Filter, JsonObject, Lifecycle, PeerError, Principal, RequestKey, Scope,
    ServerNotification,
};
use mcp_exact_transport::ServerHandle;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::connections::Connections;
use crate::around::hooks::{MessageHooks, MessageKind};
use crate::around::limits::Holder;
use crate::around::server_uris::ServerUris;
use crate::route::translate::newest;
use crate::servers::backend::Backend;
use crate::servers::client_side::ClientSide;
use crate::servers::connection::{Connection, PendingServerRequest, Receiver};
use crate::servers::errors::{connection_lost_error, not_sent_error};
use crate::servers::listening::SubscriptionFilter;
use crate::servers::tasks::{self, EXTENSION_STATUS};
use crate::servers::users::Caller;

/// Function that is called when the server has accepted a subscription, with the resources that it has accepted; with `None` if the
/// server cannot be reached, and may accept them later.
pub(crate) type OnEstablished = Arc<dyn Fn(Option<&BTreeSet<String>>) + Send + Sync>;

/// Subscriptions at one server.
pub(super) struct Subscriptions {
    all: Mutex<HashMap<SubscriptionKey, Weak<Subscription>>>,
    /// Connections of which each subscription takes one.
    connections: Arc<Connections>,
}

/// Key of a subscription: the principal, with the scopes of its token where it matters, and the resources. Changes of lists are part of every subscription.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SubscriptionKey {
    /// Number of replacements of the upstream, so that subscriptions at an earlier upstream are not reused.
    generation: u64,
    /// Principal of the subscribers.
    principal: Option<Principal>,
    /// Caller with whose credentials the server is reached, if each has their own.
    caller: Option<Caller>,
    /// Resources whose updates the subscribers want to receive.
    uris: BTreeSet<String>,
    /// Tasks whose status the subscribers want to receive (extension `io.modelcontextprotocol/tasks`): ids for the
    /// client, by ids of the server.
    tasks: BTreeMap<String, String>,
}

/// Subscription at the server, which ends when its last subscriber leaves.
struct Subscription {
    subscribers: Mutex<Subscribers>,
    /// Reason why the subscription has ended; `None` until it ends.
    ended: watch::Receiver<Option<PeerError>>,
    /// Task that listens at the server.
    task: OnceLock<AbortHandle>,
    /// Connection to the server, once it is open.
    connection: OnceLock<Weak<Connection>>,
}

/// Subscribers of one subscription.
#[derive(Default)]
struct Subscribers {
    /// Resources that the server has accepted; `None` before its acknowledgement.
    established: Option<BTreeSet<String>>,
    /// Number of the next subscriber.
    next: u64,
    /// Subscribers and their callbacks, by number.
    all: BTreeMap<u64, (SubscriptionRequest, OnEstablished)>,
}

/// Client that subscribes to the changes of a server, and its request.
#[derive(Clone)]
pub(crate) struct SubscriptionRequest {
    pub(crate) client: ServerHandle,
    /// Request that has begun the subscription; `None` for a session of a shared server.
    pub(crate) key: Option<RequestKey>,
    /// Client whose share the connection counts towards, if the subscription is the first of its kind.
    pub(crate) holder: Holder,
    /// Caller for a server that each reaches with credentials of their own.
    pub(crate) caller: Option<Caller>,
    /// Form in which the client knows the URIs of the server.
    pub(crate) uris: ServerUris,
}

impl SubscriptionRequest {
    /// Acknowledges the accepted part of the filter to the client.
    pub(crate) fn acknowledge(&self, accepted: Filter) {
        if let Some(key) = self.key {
            self.client.acknowledge_part(key, accepted);
        }
    }

    /// Sends a change of the server to the client.
    pub(crate) fn publish(&self, change: Change) {
        self.client.publish(&self.uris.change(change));
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

/// Guard that removes a client from a subscription when dropped.
struct Subscriber {
    /// Subscription from which the client is removed.
    subscription: Arc<Subscription>,
    /// Number of the subscriber.
    number: u64,
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let left = self
            .subscription
            .subscribers
            .lock()
            .all
            .remove(&self.number);
        drop(left);
    }
}

impl Subscription {
    /// Starts a subscription at a server.
    fn begin(
        connections: &Arc<Connections>,
        wanted: &SubscriptionKey,
        holder: Holder,
    ) -> Arc<Self> {
        let (end, ended) = watch::channel(None);
        let subscription = Arc::new(Self {
            subscribers: Mutex::default(),
            ended,
            task: OnceLock::new(),
            connection: OnceLock::new(),
        });
        let receiver = SubscriptionReceiver {
            backend: Arc::clone(connections.backend()),
            principal: wanted.principal.clone(),
            caller: wanted.caller.clone(),
            uris: wanted.uris.clone(),
            tasks: wanted.tasks.clone(),
            subscription: Arc::downgrade(&subscription),
        };
        let connections = Arc::clone(connections);
        let begun = Arc::downgrade(&subscription);
        let task = tokio::spawn(async move {
            let reason = listen(Arc::new(receiver), &connections, &holder).await;
            let is_known = |begun: Arc<Self>| begun.subscribers.lock().established.is_some();
            if begun.upgrade().is_some_and(is_known) {
                connections.backend().set_gap();
            }
            end.send_replace(Some(reason));
        });
        let _ = subscription.task.set(task.abort_handle());
        subscription
    }

    /// Adds a subscriber, and calls `established` once the server has accepted the subscription.
    fn join(
        self: Arc<Self>,
        request: &SubscriptionRequest,
        established: &OnEstablished,
    ) -> Subscriber {
        let (number, is_established) = {
            let mut subscribers = self.subscribers.lock();
            let number = subscribers.next;
            subscribers.next += 1;
            let subscriber = (request.clone(), Arc::clone(established));
            subscribers.all.insert(number, subscriber);
            (number, subscribers.established.clone())
        };
        if let Some(uris) = is_established {
            established(Some(&uris));
        }
        Subscriber {
            subscription: self,
            number,
        }
    }

    /// Records that the server has accepted the subscription, and calls the callbacks of all subscribers.
    fn set_established(&self, uris: &BTreeSet<String>) {
        let all: Vec<OnEstablished> = {
            let mut subscribers = self.subscribers.lock();
            subscribers.established = Some(uris.clone());
            let all = subscribers.all.values();
            all.map(|(_, established)| Arc::clone(established))
                .collect()
        };
        all.iter().for_each(|established| established(Some(uris)));
    }

    /// Returns all subscribers.
    fn requests(&self) -> Vec<SubscriptionRequest> {
        let subscribers = self.subscribers.lock();
        let all = subscribers.all.values();
        all.map(|(request, _)| request.clone()).collect()
    }

    /// Sends a change to all subscribers.
    fn publish(&self, change: &Change) {
        for request in self.requests() {
            request.publish(change.clone());
        }
    }

    /// Sends a notification to all subscribers.
    fn notify(&self, method: &str, params: &JsonObject) {
        for SubscriptionRequest {
            client, key, uris, ..
        } in self.requests()
        {
            let params = Some(uris.object(params.clone()));
            let scope = key.map_or(Scope::Peer, Scope::During);
            if let Err(error) = client.notify(scope, method, params) {
                tracing::debug!(%error, method, "a notification was not forwarded");
            }
        }
    }
}

impl Subscriptions {
    pub(super) fn new(connections: &Arc<Connections>) -> Self {
        Self {
            all: Mutex::default(),
            connections: Arc::clone(connections),
        }
    }

    /// Relays changes to a subscription until the connection to the server ends; `tasks` has the ids of tasks for the client, by
    /// ids of the server. Calls `established` when the server has accepted the subscription.
    pub(super) async fn listen(
        &self,
        request: &SubscriptionRequest,
        filter: &Filter,
        (principal, tasks): (Option<Principal>, BTreeMap<String, String>),
        established: OnEstablished,
    ) -> Result<(), PeerError> {
        let backend = self.connections.backend();
        let caller = backend.users().and_then(|_| request.caller.clone());
        let wanted = SubscriptionKey {
            generation: backend.generation(),
            tasks,
            principal,
            caller,
            uris: filter.uris.iter().cloned().collect(),
        };
        let subscription = self.find_or_begin(wanted, &request.holder);
        let mut ended = subscription.ended.clone();
        let _subscriber = subscription.join(request, &established);
        let ended = ended.wait_for(Option::is_some).await;
        let reason = ended.ok().and_then(|reason| reason.clone());
        Err(reason.unwrap_or_else(|| PeerError::internal("the subscription has ended")))
    }

    /// Returns the open subscription with a key, or starts a new one.
    fn find_or_begin(&self, wanted: SubscriptionKey, holder: &Holder) -> Arc<Subscription> {
        let mut all = self.all.lock();
        let known = all.get(&wanted).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.ended.borrow().is_none()) {
            // A server that was replaced does not know the subscription, and may have no stream whose end shows it.
            if let Some(connection) = known.connection.get().and_then(Weak::upgrade) {
                let options = &self.connections.backend().options;
                connection.check(options.request_timeout.idle);
            }
            return known;
        }
        all.retain(|_, subscription| subscription.strong_count() > 0);
        let subscription = Subscription::begin(&self.connections, &wanted, holder.clone());
        all.insert(wanted, Arc::downgrade(&subscription));
        subscription
    }
}

/// Subscribes at the server on a separate connection, and returns the reason why the subscription has ended.
async fn listen(
    receiver: Arc<SubscriptionReceiver>,
    connections: &Connections,
    holder: &Holder,
) -> PeerError {
    let (backend, uris) = (Arc::clone(&receiver.backend), receiver.uris.clone());
    let _place = match connections.lasting_place(holder).await {
        Ok(place) => place,
        Err(error) => return error,
    };
    let capabilities = if receiver.tasks.is_empty() {
        JsonObject::new()
    } else {
        tasks::extension_capability()
    };
    let nobody = ClientSide::new(None, &capabilities).of_user(receiver.caller.clone());
    let messages = Arc::clone(&receiver) as Arc<dyn Receiver>;
    let connection = match backend.connect(&nobody, Some(messages)).await {
        Ok(connection) => connection,
        Err(error) => return error,
    };
    if let Some(subscription) = receiver.subscription.upgrade() {
        let _ = subscription.connection.set(Arc::downgrade(&connection));
    }
    let mut accepted = BTreeSet::new();
    match connection.lifecycle() {
        Lifecycle::Discover => {
            let filter = SubscriptionFilter {
                tasks: receiver.tasks.keys().cloned().collect(),
                ..SubscriptionFilter::default()
            };
            if filter
                .params(&connection.info.capabilities, &uris)
                .is_some()
            {
                let (_uris, wanted) = watch::channel(uris);
                return connection.listen(wanted, filter).await;
            }
        }
        Lifecycle::Initialize => {
            for uri in uris {
                match connection.subscribe(&uri) {
                    Ok(subscribing) => drop(subscribing.await.then(|| accepted.insert(uri))),
                    Err(error) => return not_sent_error(&error),
                }
            }
        }
    }
    receiver.handle_acknowledgement(&accepted);
    tokio::select! {
        biased;
        reason = connection.client.closed() => PeerError::internal(reason.to_string()),
        // The next session has another revision, so the transport continues without the subscription.
        () = connection.lost() => connection_lost_error(),
    }
}

/// Receiver of the server's notifications for a subscription.
struct SubscriptionReceiver {
    /// Server of the subscription.
    backend: Arc<Backend>,
    /// Principal of the subscribers.
    principal: Option<Principal>,
    /// Caller with whose credentials the server is reached, if each has their own.
    caller: Option<Caller>,
    /// Resources whose updates the subscribers want to receive.
    uris: BTreeSet<String>,
    /// Ids of tasks for the client, by ids of the server.
    tasks: BTreeMap<String, String>,
    /// Subscription whose subscribers receive the changes.
    subscription: Weak<Subscription>,
}

impl SubscriptionReceiver {
    /// Returns the hooks for the messages of the subscription.
    fn messages(&self) -> MessageHooks {
        let (hooks, principal) = (&self.backend.options.hooks, self.principal.as_ref());
        MessageHooks::new(hooks, &self.backend.name, principal, (None, newest()))
    }
}

impl Receiver for SubscriptionReceiver {
    fn handle_request(&self, _: &Arc<Connection>, request: PendingServerRequest) {
        request.refuse("a subscription answers no questions");
    }

    fn handle_acknowledgement(&self, uris: &BTreeSet<String>) {
        self.backend.end_gap();
        if let Some(subscription) = self.subscription.upgrade() {
            subscription.set_established(uris);
        }
    }

    fn handle_change(&self, change: Change) {
        if let Change::Resource(uri) = &change
            // The rules may have changed since the subscription began.
            && !self.backend.may_see_resource(self.principal.as_ref(), uri)
        {
            return;
        }
        let change = self.messages().change(change);
        if let (Some(change), Some(subscription)) = (change, self.subscription.upgrade()) {
            subscription.publish(&change);
        }
    }

    fn resources(&self) -> BTreeSet<String> {
        self.uris.clone()
    }

    fn handle_notification(&self, _: &Arc<Connection>, notification: ServerNotification) {
        let method = notification.method();
        let params = notification.params().filter(|_| method == EXTENSION_STATUS);
        let id = params.and_then(tasks::id_of);
        let given = id.and_then(|id| self.tasks.get(&id));
        let (Some(params), Some(given)) = (params, given) else {
            return;
        };
        let params = tasks::rename_ids(params.clone(), |_| Some(given.clone()));
        let kind = MessageKind::ServerNotification;
        let passed = self.messages().pass(kind, method, Some(params));
        if let (Ok(Some(params)), Some(subscription)) = (passed, self.subscription.upgrade()) {
            subscription.notify(method, &params);
        }
    }
}
