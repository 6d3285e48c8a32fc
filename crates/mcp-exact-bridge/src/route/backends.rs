//! All servers of a bridge.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::around::{names, pin_states};
use crate::route::server::Server;
use crate::route::uris;
use crate::servers::{errors, tasks, tools};

/// Servers of a bridge in the order in which they were added. Removed servers keep their index, so that indices are
/// stable.
pub(crate) struct Backends(RwLock<Arc<[Arc<Server>]>>);

impl Backends {
    pub(crate) fn new(backends: Vec<Arc<Server>>) -> Self {
        Self(RwLock::new(backends.into()))
    }

    /// Returns all servers, including removed ones.
    pub(crate) fn all(&self) -> Arc<[Arc<Server>]> {
        let all = self.0.read();
        Arc::clone(&all)
    }

    /// Returns the server at the index `number`.
    pub(crate) fn get(&self, number: usize) -> Arc<Server> {
        Arc::clone(&self.all()[number])
    }

    /// Returns the server with this name, even if the server was removed.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<Server>> {
        let all = self.all();
        let found = all.iter().find(|backend| backend.name == name);
        found.map(Arc::clone)
    }

    /// Appends a server.
    pub(crate) fn add(&self, backend: Arc<Server>) {
        let mut all = self.0.write();
        *all = all.iter().cloned().chain([backend]).collect();
    }
}

/// Connects to each server, concurrently, to learn its identity and capabilities. Waits for the servers that need no longer
/// than `within`; clients are notified when the others are ready.
pub(crate) async fn connect_all(backends: &[Arc<Server>], within: Duration) {
    let mut reached = JoinSet::new();
    // Those with credentials per user are reached when the first user comes.
    for backend in backends.iter().filter(|backend| backend.users().is_none()) {
        let backend = Arc::clone(backend);
        reached.spawn(async move {
            let server = backend.name.as_str();
            match timeout(within, backend.profile()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    let error = errors::without_last_words(error.message());
                    tracing::warn!(server, error, "a server cannot be reached");
                }
                Err(_) => {
                    backend.set_missed();
                    tracing::warn!(server, "a server is not ready yet");
                }
            }
        });
    }
    reached.join_all().await;
}

/// Returns the maximum memory of what a bridge remembers of this number of servers, in bytes: names of tools and prompts, URIs of
/// resources, header parameters and states of tools, and the owners of tasks.
pub fn remembered_bytes(servers: usize) -> usize {
    /// Estimated memory of one name or task with its server, owner and keys.
    const ENTRY: usize = 512;
    let of_server =
        2 * uris::MAX_BYTES + (tasks::MAX_TASKS + tools::MAX_TOOLS + pin_states::MAX_TOOLS) * ENTRY;
    servers * of_server + uris::MAX_BYTES + names::MAX_NAMES * ENTRY
}
