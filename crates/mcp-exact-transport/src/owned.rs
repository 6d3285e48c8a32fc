//! Connection of a client with one owner, whose drop ends it.
//!
//! A handle alone does not end its connection: it can be cloned, and a driver serves the connection. A future that opens a
//! connection may be dropped at any await, so it owns this value from the moment at which the connection begins.

use std::ops::Deref;

use crate::endpoint::ClientHandle;

/// Connection that is closed when this value is dropped: the driver then ends the session, and the process of the server.
#[derive(Debug)]
pub struct OwnedClient {
    handle: ClientHandle,
    /// True until the connection has another owner.
    is_owned: bool,
}

impl OwnedClient {
    /// Takes the connection of a handle.
    pub fn new(handle: ClientHandle) -> Self {
        Self {
            handle,
            is_owned: true,
        }
    }

    /// Returns the handle of the connection, which stays open.
    pub fn into_handle(mut self) -> ClientHandle {
        self.is_owned = false;
        self.handle.clone()
    }
}

impl Deref for OwnedClient {
    type Target = ClientHandle;

    fn deref(&self) -> &ClientHandle {
        &self.handle
    }
}

impl Drop for OwnedClient {
    fn drop(&mut self) {
        if !self.is_owned {
            return;
        }
        let handle = self.handle.clone();
        // A callback of the endpoint may own this value, and is dropped while the lock that `close` needs is held.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move { handle.close() })),
            Err(_) => handle.close(),
        }
    }
}
