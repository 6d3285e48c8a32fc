//! Connections to one server that clients without sessions share.
//!
//! Each connection belongs to one owner. Permits limit the number of connections of each client and in total.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use mcp_exact_session::PeerError;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

use crate::around::limits::{Holder, Place, Places, ShareKey};
use crate::route::calls::SharedCalls;
use crate::servers::backend::Backend;
use crate::servers::client_side::ClientSide;
use crate::servers::connection::{Connection, Receiver};

use super::receivers::SharedCallsReceiver;

/// Time that a call waits for a place for its connection.
const PLACE_TIMEOUT: Duration = Duration::from_secs(30);

/// Interval at which a call that waits for a place closes unused connections.
const PLACE_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Delay before the connection of a call that has ended without an answer is closed.
const CLOSE_DELAY: Duration = Duration::from_secs(1);

/// All connections to one server that clients without sessions share.
pub(super) struct Connections {
    /// The server.
    backend: Arc<Backend>,
    /// Places for all connections to the server.
    places: Places,
    /// Open connections.
    state: Mutex<State>,
}

/// Open connections, but for those that a call has leased.
#[derive(Default)]
struct State {
    /// Connections of each owner, the most recently opened or returned one last.
    open: HashMap<Owner, Vec<OpenConnection>>,
    /// Locks that are held while a shared connection is opened.
    opening: HashMap<Owner, Weak<tokio::sync::Mutex<()>>>,
    /// True while a task runs that closes connections which nobody has used for the idle time.
    is_watched: bool,
}

/// Owner of a connection: connections are never shared between principals, or between clients with different names or
/// capabilities, and with credentials of each user not between tokens of different scopes, either.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    /// Principal of the clients; `None` for clients without a principal.
    pub(super) principal: Option<String>,
    /// Name and capabilities of the client.
    pub(super) client: ClientSide,
}

/// Connection that the calls of an owner share.
#[derive(Clone)]
pub(crate) struct SharedConnection {
    pub(crate) connection: Arc<Connection>,
    /// Calls in progress on the connection.
    pub(crate) calls: Arc<SharedCalls>,
}

/// Open connection with its place.
struct OpenConnection {
    connection: Arc<Connection>,
    /// Calls in progress; `None` if the connection serves one call at a time, which leases it.
    calls: Option<Arc<SharedCalls>>,
    place: Place,
    /// Time of the latest use.
    since: Instant,
}

impl OpenConnection {
    fn is_unused(&self) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.is_empty())
    }
}

/// Exclusive use of a connection by one call; dropping the lease returns the connection.
pub(super) struct Lease {
    owner: Owner,
    /// Leased connection; `None` after it was returned.
    held: Option<OpenConnection>,
    /// True while the server works on a call. The server may continue after a cancellation, and its later requests and
    /// log messages must not reach another call.
    pub(super) is_busy: bool,
    /// Connections to which the leased one is returned.
    connections: Arc<Connections>,
}

impl State {
    /// Returns the connections of an owner that are not lost.
    fn of(&mut self, owner: &Owner) -> Option<&mut Vec<OpenConnection>> {
        let open = self.open.get_mut(owner)?;
        open.retain(|one| !one.connection.is_lost());
        Some(open)
    }

    /// Returns the connection that the calls of an owner share.
    fn shared_connection(&mut self, owner: &Owner) -> Option<SharedConnection> {
        let mut open = self.of(owner)?.iter_mut();
        open.find_map(|one| {
            let calls = Arc::clone(one.calls.as_ref()?);
            one.since = Instant::now();
            let connection = Arc::clone(&one.connection);
            Some(SharedConnection { connection, calls })
        })
    }

    /// Takes the connection of an owner that a call has returned most recently.
    fn take_returned(&mut self, owner: &Owner) -> Option<OpenConnection> {
        let open = self.of(owner)?;
        let last = open.iter().rposition(|one| one.calls.is_none())?;
        Some(open.remove(last))
    }

    /// Returns the lock that is held while a connection of an owner is opened.
    fn opening(&mut self, owner: &Owner) -> Arc<tokio::sync::Mutex<()>> {
        self.opening.retain(|_, lock| lock.strong_count() > 0);
        let known = self.opening.get(owner).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let lock = Arc::default();
            self.opening.insert(owner.clone(), Arc::downgrade(&lock));
            lock
        })
    }

    /// Closes the connection that has been unused for the longest time: among the connections of a client, or among all
    /// connections if `holder` is `None`.
    fn close_oldest_unused(&mut self, holder: Option<&Holder>) {
        let all = self.open.values_mut().flat_map(|open| {
            let is_candidate = |one: &OpenConnection| {
                one.is_unused() && holder.is_none_or(|holder| *holder == one.place.holder)
            };
            let oldest = (0..open.len()).filter(|at| is_candidate(&open[*at]));
            let oldest = oldest.min_by_key(|at| open[*at].since);
            oldest.map(|at| (open, at))
        });
        if let Some((open, at)) = all.min_by_key(|(open, at)| open[*at].since) {
            open.remove(at);
        }
    }

    /// Closes the connections that are unused for the idle time; returns the time until the next ones are, or `None` if no
    /// connection is left.
    fn close_idle(&mut self, idle_after: Duration) -> Option<Duration> {
        let now = Instant::now();
        self.open.retain(|_, open| {
            open.retain_mut(|one| {
                if !one.is_unused() {
                    one.since = now;
                }
                now - one.since < idle_after && !one.connection.is_lost()
            });
            !open.is_empty()
        });
        let oldest = self.open.values().flatten().map(|one| one.since).min();
        oldest.map(|oldest| idle_after - (now - oldest))
    }
}

impl Connections {
    pub(super) fn new(backend: &Arc<Backend>) -> Self {
        Self {
            backend: Arc::clone(backend),
            places: Places::new(backend.options.connections),
            state: Mutex::default(),
        }
    }

    /// Returns the server.
    pub(super) fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// Closes connections that are lost and that no call uses.
    pub(super) fn release_lost(&self) {
        let mut state = self.state.lock();
        for open in state.open.values_mut() {
            open.retain(|one| !one.connection.is_lost());
        }
    }

    /// Waits for a place for a connection. One principal can have at most half of all places, and one address of anonymous
    /// clients three quarters, so that their calls leave connections for others.
    async fn place(&self, holder: &Holder) -> Result<Place, PeerError> {
        let share = self.client_share(holder).await?;
        self.place_of(holder, vec![share]).await
    }

    /// Waits for the share of a client.
    async fn client_share(&self, holder: &Holder) -> Result<OwnedSemaphorePermit, PeerError> {
        let share = self.places.share(ShareKey::Calls(holder.clone()));
        let make_room = |state: &mut State| state.close_oldest_unused(Some(holder));
        self.acquire(&share, make_room).await
    }

    /// Returns the shares of subscriptions and waiting calls of a client: all clients without a principal together can use
    /// half of the connections, and each address three quarters of that.
    fn lasting_shares(&self, holder: &Holder) -> Vec<Arc<Semaphore>> {
        let keys = match holder {
            Holder::Principal(_) => Vec::new(),
            Holder::Local => vec![ShareKey::LastingOfAll],
            Holder::Address(_) | Holder::Unknown => {
                vec![ShareKey::Lasting(holder.clone()), ShareKey::LastingOfAll]
            }
        };
        keys.into_iter().map(|key| self.places.share(key)).collect()
    }

    /// Waits for a place for a long-lived connection, such as one for a subscription.
    pub(super) async fn lasting_place(&self, holder: &Holder) -> Result<Place, PeerError> {
        let mut shares = vec![self.client_share(holder).await?];
        for share in self.lasting_shares(holder) {
            // Unused connections do not count towards this share.
            shares.push(self.acquire(&share, |_| {}).await?);
        }
        self.place_of(holder, shares).await
    }

    /// Returns permits for a waiting call of a client; `None` if waiting calls and subscriptions already use their part of all
    /// connections.
    pub(super) fn waiting_permits(&self, holder: &Holder) -> Option<Vec<OwnedSemaphorePermit>> {
        let shares = self.lasting_shares(holder).into_iter();
        shares.map(|share| share.try_acquire_owned().ok()).collect()
    }

    /// Waits for a place, and returns it together with the permits of shares.
    async fn place_of(
        &self,
        holder: &Holder,
        shares: Vec<OwnedSemaphorePermit>,
    ) -> Result<Place, PeerError> {
        let make_room = |state: &mut State| state.close_oldest_unused(None);
        let place = self.acquire(self.places.free(), make_room).await?;
        Ok(Place::new(holder.clone(), place, shares))
    }

    /// Acquires a permit. While no permit is available, `make_room` closes unused connections.
    async fn acquire(
        &self,
        permits: &Arc<Semaphore>,
        make_room: impl Fn(&mut State),
    ) -> Result<OwnedSemaphorePermit, PeerError> {
        let permit = Arc::clone(permits).acquire_owned();
        tokio::pin!(permit);
        let end = Instant::now() + PLACE_TIMEOUT;
        while Instant::now() < end {
            if permits.available_permits() == 0 {
                make_room(&mut self.state.lock());
            }
            // Calls that have ended leave unused connections, which can be closed.
            if let Ok(Ok(permit)) = timeout(PLACE_RETRY_INTERVAL, &mut permit).await {
                return Ok(permit);
            }
        }
        Err(PeerError::internal(
            "all connections to the server are in use; try again later",
        ))
    }

    /// Returns the connection that the calls of an owner share; opens it if there is none.
    pub(super) async fn shared_connection(
        self: &Arc<Self>,
        owner: &Owner,
        holder: &Holder,
    ) -> Result<SharedConnection, PeerError> {
        let opening = {
            let mut state = self.state.lock();
            if let Some(open) = state.shared_connection(owner) {
                return Ok(open);
            }
            state.opening(owner)
        };
        // One call opens the connection, and the other calls of the owner wait for it.
        let _opening = opening.lock().await;
        if let Some(open) = self.state.lock().shared_connection(owner) {
            return Ok(open);
        }
        let place = self.place(holder).await?;
        let calls = Arc::new(SharedCalls::default());
        let receiver: Arc<dyn Receiver> = Arc::new(SharedCallsReceiver(Arc::downgrade(&calls)));
        let connected = self.backend.connect(&owner.client, Some(receiver));
        let connection = connected.await?;
        let open = OpenConnection {
            connection: Arc::clone(&connection),
            calls: Some(Arc::clone(&calls)),
            place,
            since: Instant::now(),
        };
        self.keep(owner.clone(), open);
        Ok(SharedConnection { connection, calls })
    }

    /// Keeps a connection that no call has leased. A task closes those that are unused for the idle time.
    fn keep(self: &Arc<Self>, owner: Owner, open: OpenConnection) {
        let mut state = self.state.lock();
        state.open.entry(owner).or_default().push(open);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if !std::mem::replace(&mut state.is_watched, true) {
            let connections = Arc::downgrade(self);
            let mut wait = self.backend.options.idle;
            runtime.spawn(async move {
                loop {
                    sleep(wait).await;
                    let Some(connections) = connections.upgrade() else {
                        return;
                    };
                    let mut state = connections.state.lock();
                    let Some(next) = state.close_idle(connections.backend.options.idle) else {
                        state.is_watched = false;
                        return;
                    };
                    wait = next;
                }
            });
        }
    }

    /// Returns an unused connection for exclusive use, preferably the most recently used one, or opens a new one. The
    /// connection counts for the client `holder` from now on.
    pub(super) async fn lease(
        self: &Arc<Self>,
        owner: Owner,
        holder: &Holder,
    ) -> Result<Lease, PeerError> {
        let returned = self.state.lock().take_returned(&owner);
        let held = match returned {
            Some(mut returned) => {
                if returned.place.holder != *holder {
                    returned.place.shares = vec![self.client_share(holder).await?];
                    returned.place.holder = holder.clone();
                }
                returned
            }
            None => {
                let place = self.place(holder).await?;
                OpenConnection {
                    connection: self.backend.connect(&owner.client, None).await?,
                    calls: None,
                    place,
                    since: Instant::now(),
                }
            }
        };
        Ok(Lease {
            owner,
            held: Some(held),
            is_busy: false,
            connections: Arc::clone(self),
        })
    }
}

impl Lease {
    /// Returns the leased connection; returns an error if the connection was already returned.
    pub(super) fn connection(&self) -> Result<Arc<Connection>, PeerError> {
        let held = self.held.as_ref();
        let connection = held.map(|held| Arc::clone(&held.connection));
        connection.ok_or_else(|| PeerError::internal("the connection was given back"))
    }
}

impl Drop for Lease {
    /// Returns the connection, unless it is lost or the server still works on the call. A returned connection is closed
    /// after the idle time.
    fn drop(&mut self) {
        let Some(mut held) = self.held.take() else {
            return;
        };
        held.connection.set_receiver(None);
        if held.connection.is_lost() {
            return;
        }
        if self.is_busy {
            // Some servers stop serving when the response to a cancelled request is closed at once (Python SDK 1.8).
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move {
                    sleep(CLOSE_DELAY).await;
                    drop(held);
                });
            }
            return;
        }
        held.since = Instant::now();
        self.connections.keep(self.owner.clone(), held);
    }
}
