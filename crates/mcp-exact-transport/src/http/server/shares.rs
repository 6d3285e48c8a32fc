//! Shares: how much of what a server has one client may hold, so that no client takes all of it.
//!
//! A client is a principal or, without authentication, an address: clients behind one proxy hold one share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use mcp_exact_session::Principal;

use super::listen::RemoteAddress;
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
                let remote = request.parts.extensions.get::<RemoteAddress>();
                remote.map_or(Self::Unknown, |remote| Self::of_address(remote.0.ip()))
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

/// What all clients hold, and what each of them holds.
#[derive(Debug, Default)]
pub(super) struct Held {
    total: usize,
    by_holder: HashMap<Holder, usize>,
}

impl Held {
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Returns what one client holds.
    pub(super) fn of(&self, holder: &Holder) -> usize {
        self.by_holder.get(holder).copied().unwrap_or_default()
    }

    pub(super) fn add(&mut self, holder: &Holder, amount: usize) {
        self.total += amount;
        *self.by_holder.entry(holder.clone()).or_default() += amount;
    }

    pub(super) fn remove(&mut self, holder: &Holder, amount: usize) {
        self.total = self.total.saturating_sub(amount);
        if let Some(held) = self.by_holder.get_mut(holder) {
            *held = held.saturating_sub(amount);
            if *held == 0 {
                self.by_holder.remove(holder);
            }
        }
    }
}

/// What clients hold of one kind of resource, such as the bytes of bodies.
#[derive(Debug, Default)]
pub(crate) struct Shares(Mutex<Held>);

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
    holder: Holder,
    amount: usize,
}

impl Shares {
    /// Begins a share that holds nothing.
    pub(super) fn begin(self: &Arc<Self>, holder: Holder) -> Share {
        Share {
            shares: Arc::clone(self),
            holder,
            amount: 0,
        }
    }
}

impl Share {
    /// Returns the amount that is held.
    pub(super) fn amount(&self) -> usize {
        self.amount
    }

    /// Adds an amount, unless all clients or this one would exceed their limit.
    pub(super) fn grow(&mut self, more: usize, (all, own): (usize, usize)) -> Result<(), Reached> {
        let mut held = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.total() + more > all {
            return Err(Reached::Total);
        }
        if held.of(&self.holder) + more > own {
            return Err(Reached::OfClient);
        }
        held.add(&self.holder, more);
        self.amount += more;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut held = self.shares.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.remove(&self.holder, self.amount);
    }
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
