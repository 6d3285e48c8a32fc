//! Shares: how much of what a server has one client may hold, so that no client takes all of it.
//!
//! A client is a principal or, without authentication, an address: clients behind one proxy hold one share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use mcp_exact_session::Principal;

use super::listen::RemoteAddress;
use super::service::CheckedRequest;

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

    fn of_address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            }
            address => address,
        })
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

/// Bytes of the bodies that are being received.
#[derive(Debug, Default)]
pub(super) struct Bodies(Mutex<Held>);

/// Bytes of one body, which are returned when the value is dropped.
pub(super) struct BodyBytes<'a> {
    bodies: &'a Bodies,
    holder: Holder,
    bytes: usize,
}

impl Bodies {
    /// Begins a body without bytes.
    pub(super) fn begin(&self, holder: Holder) -> BodyBytes<'_> {
        BodyBytes {
            bodies: self,
            holder,
            bytes: 0,
        }
    }
}

impl BodyBytes<'_> {
    /// Adds bytes to the body; returns false if all bodies, or those of the client, would exceed their limit.
    pub(super) fn grow(&mut self, bytes: usize, (all, own): (usize, usize)) -> bool {
        let mut held = self.bodies.0.lock().unwrap_or_else(PoisonError::into_inner);
        if held.total() + bytes > all || held.of(&self.holder) + bytes > own {
            return false;
        }
        held.add(&self.holder, bytes);
        self.bytes += bytes;
        true
    }
}

impl Drop for BodyBytes<'_> {
    fn drop(&mut self) {
        let mut held = self.bodies.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.remove(&self.holder, self.bytes);
    }
}
