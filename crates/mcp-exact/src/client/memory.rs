//! What is remembered of a server that is silent on the probe, so that only the first connection waits for it.

use std::sync::Mutex;

use crate::protocol::CachedNegotiation;
use crate::sync::lock;

/// Memory of the negotiation with one server, which is a command or a URL.
///
/// The memory only saves a wait: if the server answers differently, the client negotiates again.
pub trait NegotiationMemory: Send + Sync {
    /// Returns the remembered negotiation.
    fn load(&self) -> Option<CachedNegotiation>;

    /// Remembers a negotiation in which the probe was silent; `None` forgets it.
    fn store(&self, negotiation: Option<CachedNegotiation>);
}

/// Memory of this process.
#[derive(Default)]
pub(super) struct LastNegotiation(Mutex<Option<CachedNegotiation>>);

impl NegotiationMemory for LastNegotiation {
    fn load(&self) -> Option<CachedNegotiation> {
        *lock(&self.0)
    }

    fn store(&self, negotiation: Option<CachedNegotiation>) {
        *lock(&self.0) = negotiation;
    }
}
