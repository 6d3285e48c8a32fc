//! Shares: how much of what a server has one client may hold, so that no client takes all of it.
//!
//! A client is a principal or, without authentication, an address: clients behind one proxy hold one share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mcp_exact_session::Principal;

use super::service::CheckedRequest;
use crate::endpoint::address_of_client;

/// Client that holds a share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Holder {
    /// Authenticated principal.
    Principal(Arc<str>),
    /// Address of an anonymous client; of IPv6, the network of 64 bits that one client usually has.
    Address(IpAddr),
    /// Anonymous client of unknown address, as of a session that another process has begun.
    Unknown,
}

impl Holder {
    /// Returns the client of a request.
    pub(super) fn of(request: &CheckedRequest) -> Self {
        match Self::of_principal(request.principal.as_ref()) {
            Self::Unknown => {
                let address = request.remote.map(|remote| remote.0.ip());
                address.map_or(Self::Unknown, Self::of_address)
            }
            known => known,
        }
    }

    /// Returns the client with a principal.
    pub(super) fn of_principal(principal: Option<&Principal>) -> Self {
        principal.map_or(Self::Unknown, |Principal(name)| {
            Self::Principal(name.as_str().into())
        })
    }

    /// Returns the client with an address.
    pub(super) fn of_address(address: IpAddr) -> Self {
        Self::Address(address_of_client(address))
    }
}

/// How many items, such as sessions, each client holds.
#[derive(Debug, Default)]
pub(super) struct Held(HashMap<Holder, usize>);

impl Held {
    /// Returns how many one client holds.
    pub(super) fn of(&self, holder: &Holder) -> usize {
        self.0.get(holder).copied().unwrap_or_default()
    }

    pub(super) fn add(&mut self, holder: &Holder) {
        *self.0.entry(holder.clone()).or_default() += 1;
    }

    pub(super) fn remove(&mut self, holder: &Holder) {
        if let Some(held) = self.0.get_mut(holder) {
            *held -= 1;
            if *held == 0 {
                self.0.remove(holder);
            }
        }
    }
}

/// What clients hold of one kind of resource, such as the bytes of bodies.
///
/// A request looks its client up once. Clients that hold nothing stay in the table until it has grown.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// What all clients hold.
    total: AtomicUsize,
    clients: Mutex<Clients>,
}

/// Clients with a share, and some that have had one.
#[derive(Debug, Default)]
struct Clients {
    /// What each client holds.
    held: HashMap<Holder, Arc<AtomicUsize>>,
    /// Number of clients from which on those without a share are removed.
    sweep_at: usize,
}

/// Minimum number of clients before those without a share are removed.
const MIN_SWEPT_CLIENTS: usize = 64;

/// Limit that a client has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    /// Limit of all clients together.
    Total,
    /// Limit of one client.
    OfClient,
}

/// What one request or connection holds, which is returned when the value is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    /// What the client holds with all its requests.
    of_client: Arc<AtomicUsize>,
    amount: usize,
}

impl Shares {
    /// Begins a share that holds nothing.
    pub(super) fn begin(self: &Arc<Self>, holder: Holder) -> Share {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.held.len() >= clients.sweep_at {
            // A share of the client has the other reference.
            clients.held.retain(|_, held| Arc::strong_count(held) > 1);
            clients.sweep_at = (2 * clients.held.len()).max(MIN_SWEPT_CLIENTS);
        }
        Share {
            shares: Arc::clone(self),
            of_client: Arc::clone(clients.held.entry(holder).or_default()),
            amount: 0,
        }
    }
}

impl Share {
    /// Returns the amount that is held.
    pub(super) fn amount(&self) -> usize {
        self.amount
    }

    /// Adds an amount, unless all clients or this one would exceed their limit. What another request adds at the same moment
    /// counts, although it may be refused.
    pub(super) fn grow(&mut self, more: usize, (all, own): (usize, usize)) -> Result<(), Reached> {
        if !add_within(&self.shares.total, more, all) {
            return Err(Reached::Total);
        }
        if !add_within(&self.of_client, more, own) {
            self.shares.total.fetch_sub(more, Ordering::Relaxed);
            return Err(Reached::OfClient);
        }
        self.amount += more;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of_client.fetch_sub(self.amount, Ordering::Relaxed);
        self.shares.total.fetch_sub(self.amount, Ordering::Relaxed);
    }
}

/// Adds an amount to what is held, unless it would exceed the limit.
fn add_within(held: &AtomicUsize, more: usize, limit: usize) -> bool {
    let sum = |held: usize| held.checked_add(more).filter(|sum| *sum <= limit);
    held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum)
        .is_ok()
}

/// Size up to which bytes that are being written are not counted.
pub(super) const FREE_BYTES: usize = 4 << 10;

/// Answers that one client has not read yet: bytes count from the moment when they are ready until they are written.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) shares: Arc<Shares>,
    pub(super) holder: Holder,
    /// Maximum number of bytes of all clients, and of this one.
    pub(super) limits: (usize, usize),
}

impl Unread {
    /// Counts bytes until they are dropped, which is when they are written or their connection ends.
    pub(super) fn count(&self, bytes: Bytes) -> Result<Bytes, Reached> {
        if bytes.len() <= FREE_BYTES {
            return Ok(bytes);
        }
        let mut share = self.shares.begin(self.holder.clone());
        // One answer always fits.
        let (all, own) = self.limits;
        share.grow(bytes.len(), (all.max(bytes.len()), own.max(bytes.len())))?;
        Ok(Bytes::from_owner(CountedBytes {
            bytes,
            _share: share,
        }))
    }
}

/// Bytes with their share.
struct CountedBytes {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the holder with the address `10.0.x.y` of a number.
    fn client(number: u16) -> Holder {
        let [high, low] = number.to_be_bytes();
        Holder::of_address([10, 0, high, low].into())
    }

    /// A share that would exceed a limit holds what it held before, and what is dropped is free for others.
    #[test]
    fn limits_hold_for_each_client_and_in_total() {
        let shares = Arc::<Shares>::default();
        let limits = (10, 6);
        let mut first = shares.begin(client(1));
        let mut second = shares.begin(client(1));
        let mut other = shares.begin(client(2));
        assert_eq!(first.grow(4, limits), Ok(()));
        assert_eq!(second.grow(3, limits), Err(Reached::OfClient));
        assert_eq!(second.grow(2, limits), Ok(()));
        assert_eq!(other.grow(5, limits), Err(Reached::Total));
        assert_eq!(other.grow(usize::MAX, limits), Err(Reached::Total));
        assert_eq!(other.grow(4, limits), Ok(()));
        drop(first);
        assert_eq!(second.grow(4, limits), Ok(()));
        assert_eq!(other.grow(1, limits), Err(Reached::Total));
        drop((second, other));
        assert_eq!(shares.total.load(Ordering::Relaxed), 0);
    }

    /// Clients that hold nothing are forgotten: the table has at most twice as many clients as hold something, or the
    /// minimum.
    #[test]
    fn clients_without_a_share_are_removed() {
        let shares = Arc::<Shares>::default();
        let mut held = shares.begin(client(0));
        assert_eq!(held.grow(1, (2, 2)), Ok(()));
        for number in 1..1_000 {
            drop(shares.begin(client(number)));
            let clients = shares.clients.lock().expect("not poisoned");
            assert!(clients.held.len() <= MIN_SWEPT_CLIENTS);
        }
        let mut again = shares.begin(client(0));
        assert_eq!(again.grow(2, (9, 2)), Err(Reached::OfClient));
    }
}
