//! Connections to one server that clients without sessions share.
//!
//! Each connection belongs to one owner. Permits limit the number of connections of each client and in total.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use mcp_exact_session::PeerError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::receivers::{SharedCalls, SharedCallsReceiver};
use crate::around::limits::Holder;
use crate::around::options::Options;
use crate::servers::backend::Backend;
use crate::servers::client_side::ClientSide;
use crate::servers::connection::{Connection, Receiver};

/// Time that a call waits for a permit to open a connection.
const PERMIT_TIMEOUT: Duration = Duration::from_secs(30);
/// Interval at which a call that waits for a permit closes unused connections.
const PERMIT_RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Delay before the connection of a call that has ended without an answer is closed.
const CLOSE_DELAY: Duration = Duration::from_secs(1);

/// All connections to one server that clients without sessions share.
pub(super) struct Connections {
    /// Permits for all connections to the server.
    permits: Arc<Semaphore>,
    /// Number of all connections to the server.
    all: usize,
    /// Idle time after which an unused connection is closed.
    idle_after: Duration,
    /// Open connections, and the limits of the principals.
    state: Arc<Mutex<State>>,
}

/// Open connections, and the limits of the principals.
#[derive(Default)]
struct State {
    /// Unused connections that serve one call at a time, the most recently used one last. For each owner in the map, a
    /// task closes the unused connections, and removes the owner once the owner has no unused connection.
    idle: HashMap<Owner, Vec<IdleConnection>>,
    /// Connections that the calls of an owner share.
    open: HashMap<Owner, OpenConnection>,
    /// Locks that are held while a shared connection is opened.
    opening: HashMap<Owner, Weak<tokio::sync::Mutex<()>>>,
    /// Semaphores that limit the connections of each client and of groups of clients.
    shares: HashMap<ShareKey, Weak<Semaphore>>,
}

/// Clients that have a share of the connections.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum ShareKey {
    /// One client.
    Client(Holder),
    /// Subscriptions and waiting calls of one address.
    Lasting(Holder),
    /// Subscriptions and waiting calls of all clients without a principal.
    LastingOfAll,
}

impl ShareKey {
    /// Returns the part of `all` connections.
    fn of(&self, all: usize) -> usize {
        match self {
            Self::Client(Holder::Principal(_)) | Self::LastingOfAll => all.div_ceil(2).max(1),
            // Clients behind one proxy have one address.
            Self::Client(_) => all - all / 4,
            Self::Lasting(_) => (3 * all).div_ceil(8),
        }
    }
}

/// Permit for one connection, which also counts towards the shares of its client.
pub(super) struct Permit {
    /// Client that the connection counts for.
    holder: Holder,
    /// Permit that counts towards all connections to the server.
    _connection: OwnedSemaphorePermit,
    /// Permits that count towards shares.
    shares: Vec<OwnedSemaphorePermit>,
}

/// Owner of a connection: connections are never shared between principals, or between clients with different names or
/// capabilities.
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

/// Shared connection with its permit.
struct OpenConnection {
    shared: SharedConnection,
    permit: Permit,
    /// Time of the latest use.
    since: Instant,
}

/// Unused connection with its permit.
struct IdleConnection {
    connection: Arc<Connection>,
    permit: Permit,
    /// Time of the latest use.
    since: Instant,
}

/// Exclusive use of a connection by one call; dropping the lease returns the connection.
pub(super) struct Lease {
    owner: Owner,
    /// Leased connection; `None` after it was returned.
    held: Option<(Arc<Connection>, Permit)>,
    /// True while the server works on a call. The server may continue after a cancellation, and its later requests and
    /// log messages must not reach another call.
    pub(super) is_busy: bool,
    /// State to which the connection is returned.
    state: Arc<Mutex<State>>,
    /// Idle time after which the returned connection is closed.
    idle_after: Duration,
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Returns the connection that the calls of an owner share, unless it is lost.
    fn open_connection(&mut self, owner: &Owner) -> Option<SharedConnection> {
        let open = self.open.get_mut(owner)?;
        if open.shared.connection.is_lost() {
            self.open.remove(owner);
            return None;
        }
        open.since = Instant::now();
        Some(open.shared.clone())
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
        let is_candidate = |permit: &Permit| holder.is_none_or(|holder| *holder == permit.holder);
        let idle = self.idle.iter().flat_map(|(owner, idle)| {
            let idle = idle.iter().enumerate();
            let idle = idle.filter(|(_, idle)| is_candidate(&idle.permit));
            idle.map(move |(at, idle)| (idle.since, owner, Some(at)))
        });
        let open = self.open.iter().filter_map(|(owner, open)| {
            let is_unused = open.shared.calls.is_empty() && is_candidate(&open.permit);
            is_unused.then_some((open.since, owner, None))
        });
        let oldest = idle.chain(open).min_by_key(|(since, ..)| *since);
        let Some((owner, at)) = oldest.map(|(_, owner, at)| (owner.clone(), at)) else {
            return;
        };
        match at {
            None => drop(self.open.remove(&owner)),
            Some(at) => {
                if let Some(idle) = self.idle.get_mut(&owner) {
                    idle.remove(at);
                }
            }
        }
    }

    /// Returns the semaphore of a share of `all` connections.
    fn share(&mut self, key: ShareKey, all: usize) -> Arc<Semaphore> {
        self.shares.retain(|_, share| share.strong_count() > 0);
        let known = self.shares.get(&key).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let share = Arc::new(Semaphore::new(key.of(all)));
            self.shares.insert(key, Arc::downgrade(&share));
            share
        })
    }
}

impl Connections {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(options.connections)),
            all: options.connections,
            idle_after: options.idle,
            state: Arc::default(),
        }
    }

    /// Closes connections that are lost and that no call uses.
    pub(super) fn release_lost(&self) {
        let mut state = locked(&self.state);
        state
            .open
            .retain(|_, open| !open.shared.connection.is_lost());
        for idle in state.idle.values_mut() {
            idle.retain(|idle| !idle.connection.is_lost());
        }
    }

    /// Waits for a permit to open a connection. One principal can use at most half of all connections, and one address of
    /// anonymous clients three quarters, so that their calls leave connections for others.
    pub(super) async fn permit(&self, holder: &Holder) -> Result<Permit, PeerError> {
        let shares = self.client_share(holder).await?;
        self.permit_of(holder, shares).await
    }

    /// Waits for the share of a client; the client of this process has no share.
    async fn client_share(&self, holder: &Holder) -> Result<Vec<OwnedSemaphorePermit>, PeerError> {
        if matches!(holder, Holder::Local) {
            return Ok(Vec::new());
        }
        let key = ShareKey::Client(holder.clone());
        let share = locked(&self.state).share(key, self.all);
        let make_room = |state: &mut State| state.close_oldest_unused(Some(holder));
        Ok(vec![self.acquire(&share, make_room).await?])
    }

    /// Returns the shares of subscriptions and waiting calls of a client: all clients without a principal together can use
    /// half of the connections, and each address half of that.
    fn lasting_shares(&self, holder: &Holder) -> Vec<Arc<Semaphore>> {
        let mut state = locked(&self.state);
        let mut share = |key| state.share(key, self.all);
        match holder {
            Holder::Principal(_) => Vec::new(),
            Holder::Local => vec![share(ShareKey::LastingOfAll)],
            Holder::Address(_) | Holder::Unknown => vec![
                share(ShareKey::Lasting(holder.clone())),
                share(ShareKey::LastingOfAll),
            ],
        }
    }

    /// Waits for a permit to open a long-lived connection, such as one for a subscription.
    pub(super) async fn lasting_permit(&self, holder: &Holder) -> Result<Permit, PeerError> {
        let mut shares = self.client_share(holder).await?;
        for share in self.lasting_shares(holder) {
            // Unused connections do not count towards this share.
            shares.push(self.acquire(&share, |_| {}).await?);
        }
        self.permit_of(holder, shares).await
    }

    /// Returns permits for a waiting call of a client; `None` if waiting calls and subscriptions already use their part of all
    /// connections.
    pub(super) fn waiting_permits(&self, holder: &Holder) -> Option<Vec<OwnedSemaphorePermit>> {
        let shares = self.lasting_shares(holder).into_iter();
        shares.map(|share| share.try_acquire_owned().ok()).collect()
    }

    /// Waits for a permit to open a connection, and returns it together with the permits of shares.
    async fn permit_of(
        &self,
        holder: &Holder,
        shares: Vec<OwnedSemaphorePermit>,
    ) -> Result<Permit, PeerError> {
        let make_room = |state: &mut State| state.close_oldest_unused(None);
        Ok(Permit {
            holder: holder.clone(),
            _connection: self.acquire(&self.permits, make_room).await?,
            shares,
        })
    }

    /// Acquires a permit. While no permit is available, `make_room` closes unused connections.
    async fn acquire(
        &self,
        permits: &Arc<Semaphore>,
        make_room: impl Fn(&mut State),
    ) -> Result<OwnedSemaphorePermit, PeerError> {
        let permit = Arc::clone(permits).acquire_owned();
        tokio::pin!(permit);
        let end = Instant::now() + PERMIT_TIMEOUT;
        while Instant::now() < end {
            if permits.available_permits() == 0 {
                make_room(&mut locked(&self.state));
            }
            // Calls that have ended leave unused connections, which can be closed.
            if let Ok(Ok(permit)) = timeout(PERMIT_RETRY_INTERVAL, &mut permit).await {
                return Ok(permit);
            }
        }
        Err(PeerError::internal(
            "all connections to the server are in use; try again later",
        ))
    }

    /// Returns the connection that the calls of an owner share; opens it if there is none.
    pub(super) async fn shared_connection(
        &self,
        backend: &Backend,
        (owner, holder): (&Owner, &Holder),
    ) -> Result<SharedConnection, PeerError> {
        let opening = {
            let mut state = locked(&self.state);
            if let Some(open) = state.open_connection(owner) {
                return Ok(open);
            }
            state.opening(owner)
        };
        // One call opens the connection, and the other calls of the owner wait for it.
        let _opening = opening.lock().await;
        if let Some(open) = locked(&self.state).open_connection(owner) {
            return Ok(open);
        }
        let permit = self.permit(holder).await?;
        let calls = Arc::new(SharedCalls::default());
        let receiver: Arc<dyn Receiver> = Arc::new(SharedCallsReceiver(Arc::downgrade(&calls)));
        let connection = backend.connect(&owner.client, Some(receiver)).await?;
        let opened = SharedConnection { connection, calls };
        let open = OpenConnection {
            shared: opened.clone(),
            permit,
            since: Instant::now(),
        };
        locked(&self.state).open.insert(owner.clone(), open);
        self.close_when_idle(owner.clone());
        Ok(opened)
    }

    /// Starts a task that closes the shared connection of an owner when no call has used the connection for the idle
    /// time.
    fn close_when_idle(&self, owner: Owner) {
        let (state, idle_after) = (Arc::downgrade(&self.state), self.idle_after);
        tokio::spawn(async move {
            let mut wait = idle_after;
            loop {
                tokio::time::sleep(wait).await;
                let Some(state) = state.upgrade() else {
                    return;
                };
                let mut state = locked(&state);
                let Some(open) = state.open.get(&owner) else {
                    return;
                };
                let used = open.since.elapsed();
                if used >= idle_after && open.shared.calls.is_empty() {
                    state.open.remove(&owner);
                    return;
                } else {
                    wait = idle_after
                        .saturating_sub(used)
                        .max(Duration::from_millis(10))
                }
            }
        });
    }

    /// Returns an unused connection for exclusive use, preferably the most recently used one, or opens a new one. The
    /// connection counts for the client `holder` from now on.
    pub(super) async fn lease(
        &self,
        backend: &Backend,
        (owner, holder): (Owner, &Holder),
    ) -> Result<Lease, PeerError> {
        let idle = loop {
            let mut state = locked(&self.state);
            match state.idle.get_mut(&owner).and_then(Vec::pop) {
                Some(idle) if idle.connection.is_lost() => {}
                other => break other,
            }
        };
        let held = match idle {
            Some(mut idle) => {
                if idle.permit.holder != *holder {
                    idle.permit.shares = self.client_share(holder).await?;
                    idle.permit.holder = holder.clone();
                }
                (idle.connection, idle.permit)
            }
            None => {
                let permit = self.permit(holder).await?;
                (backend.connect(&owner.client, None).await?, permit)
            }
        };
        Ok(Lease {
            owner,
            held: Some(held),
            is_busy: false,
            state: Arc::clone(&self.state),
            idle_after: self.idle_after,
        })
    }
}

impl Lease {
    /// Returns the leased connection; returns an error if the connection was already returned.
    pub(super) fn connection(&self) -> Result<Arc<Connection>, PeerError> {
        let held = self.held.as_ref();
        let connection = held.map(|(connection, _)| Arc::clone(connection));
        connection.ok_or_else(|| PeerError::internal("the connection was given back"))
    }
}

impl Drop for Lease {
    /// Returns the connection, unless it is lost or the server still works on the call. A returned connection is closed
    /// after the idle time.
    fn drop(&mut self) {
        let Some((connection, permit)) = self.held.take() else {
            return;
        };
        connection.set_receiver(None);
        if connection.is_lost() {
            return;
        }
        if self.is_busy {
            // Some servers stop serving when the response to a cancelled request is closed at once (Python SDK 1.8).
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move {
                    tokio::time::sleep(CLOSE_DELAY).await;
                    drop((connection, permit));
                });
            }
            return;
        }
        let since = Instant::now();
        let idle = IdleConnection {
            connection,
            permit,
            since,
        };
        let mut all = locked(&self.state);
        if let Some(unused) = all.idle.get_mut(&self.owner) {
            unused.push(idle);
            return;
        }
        all.idle.insert(self.owner.clone(), vec![idle]);
        drop(all);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let state = Arc::downgrade(&self.state);
            runtime.spawn(close_unused(state, self.owner.clone(), self.idle_after));
        }
    }
}

/// Closes each idle connection of `owner` once it has been idle for the time `idle_after`. Returns when the owner has
/// no idle connection or the state has been dropped.
async fn close_unused(state: Weak<Mutex<State>>, owner: Owner, idle_after: Duration) {
    let mut wait = idle_after;
    loop {
        tokio::time::sleep(wait).await;
        let Some(state) = state.upgrade() else {
            return;
        };
        let mut state = locked(&state);
        let Some(unused) = state.idle.get_mut(&owner) else {
            return;
        };
        unused.retain(|idle| idle.since.elapsed() < idle_after);
        let Some(oldest) = unused.first() else {
            state.idle.remove(&owner);
            return;
        };
        wait = idle_after.saturating_sub(oldest.since.elapsed());
    }
}
