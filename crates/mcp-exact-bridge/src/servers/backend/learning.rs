//! How the bridge learns the identity and capabilities of a server: by one connection, for everybody who needs them. It is made
//! in the name of the first client, if this one is known, and kept for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mcp_exact_session::{JsonObject, PeerError};
use tokio::sync::watch;
use tokio::time::timeout;

use super::{Attempt, Backend, ServerProfile};
use crate::servers::client_side::ClientSide;
use crate::servers::connection::Connection;
use crate::servers::users::Caller;

/// Time that a user waits for the connection of another one from which the bridge learns about a server.
const INTRODUCTION_TIMEOUT: Duration = Duration::from_secs(5);

impl Backend {
    /// Starts a process for the first connection, before it is known whom the connection is for.
    pub(crate) fn prepare(&self) {
        self.spares.fill(&*self.upstream().0, 1);
    }

    /// Sets the client in whose name the bridge connects to learn about the server.
    pub(crate) fn set_first_client(&self, client: ClientSide) {
        let _ = self.first_client.set(client);
    }

    /// Records that clients have received a list without the server: they are notified when it is ready.
    pub(crate) fn set_missed(&self) {
        self.is_missed.store(true, Ordering::Release);
    }

    /// Sets the function that is called when a server that clients miss is ready. It may be ready already.
    pub(crate) fn on_arrival(&self, arrived: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_arrival.set(Box::new(arrived));
    }

    /// Returns the identity and capabilities of the server; connects to the server if it was never reached. The attempt goes
    /// on if the caller stops waiting.
    pub(crate) async fn profile(&self) -> Result<ServerProfile, PeerError> {
        loop {
            if let Some(known) = self.cached_profile() {
                return Ok(known);
            }
            let mut attempt = self.learn();
            // The attempt ends without a result if the server is replaced meanwhile.
            if let Ok(learned) = attempt.wait_for(Option::is_some).await
                && let Some(Err(error)) = &*learned
            {
                return Err(error.clone());
            }
        }
    }

    /// Learns identity and capabilities of a server with credentials per user by a connection of a user, unless they are known.
    pub(crate) async fn introduce(&self, user: Option<Caller>) -> Result<(), PeerError> {
        if self.cached_profile().is_some() {
            return Ok(());
        }
        // A user whose connection is slow does not hold up the others.
        let introducing = self.introducing.lock();
        let _introducing = timeout(INTRODUCTION_TIMEOUT, introducing).await;
        if self.cached_profile().is_some() {
            return Ok(());
        }
        let client = ClientSide::new(None, &JsonObject::new()).of_user(user);
        self.connect(&client, None).await.map(drop)
    }

    /// Starts an attempt to learn identity and capabilities, unless there is one that has not ended.
    fn learn(&self) -> Attempt {
        let mut state = self.state.lock();
        if let Some((running, _)) = &state.learning
            && running.has_changed().is_ok()
            && running.borrow().is_none()
        {
            return running.clone();
        }
        let (end, attempt) = watch::channel(None);
        let (this, idle) = (self.this.clone(), self.options.idle);
        let learning = tokio::spawn(async move {
            if let Some(backend) = this.upgrade() {
                let learned = backend.connect_to_learn().await;
                if let Ok(connection) = &learned {
                    backend.check_tools(connection).await;
                }
                let result = learned.as_ref().map(|_| ()).map_err(PeerError::clone);
                end.send_replace(Some(result));
                if let Ok(connection) = learned {
                    backend.finish_learning(connection).await;
                }
            }
            tokio::time::sleep(idle).await;
            let unused = this
                .upgrade()
                .and_then(|backend| backend.state.lock().kept.take());
            drop(unused);
        });
        state.learning = Some((attempt.clone(), learning.abort_handle()));
        attempt
    }

    /// Connects to the server to learn its capabilities and lists: with the name and capabilities of the first client, which uses
    /// the connection later, or without those of a client if none has come.
    async fn connect_to_learn(&self) -> Result<Arc<Connection>, PeerError> {
        let Some(client) = self.first_client.get() else {
            return self.connect(&ClientSide::of_gateway(), None).await;
        };
        loop {
            let generation = self.generation();
            let Some(connection) = self.open(client).await? else {
                continue;
            };
            let mut state = self.state.lock();
            if generation == self.generation() {
                state.kept = Some(Arc::clone(&connection));
                return Ok(connection);
            }
        }
    }

    /// Notifies clients that have received a list without the server.
    pub(super) fn announce_if_missed(&self) {
        if self.is_missed.swap(false, Ordering::AcqRel)
            && let Some(on_arrival) = self.on_arrival.get()
        {
            self.miss_changes();
            on_arrival();
        }
    }

    /// Does what nobody waits for once the server is known.
    async fn finish_learning(&self, connection: Arc<Connection>) {
        self.announce_if_missed();
        self.refill_spares();
        if self.first_client.get().is_none() {
            self.tools.list(&connection, self.max_pages()).await;
        }
    }

    /// Returns the connection that was made to learn about the server, if it is for this client.
    pub(super) async fn kept_connection(&self, client: &ClientSide) -> Option<Arc<Connection>> {
        if self.first_client.get() != Some(client) {
            return None;
        }
        let attempt = self.state.lock().learning.clone();
        if let Some((mut attempt, _)) = attempt {
            // An attempt that failed has an error that the caller meets again.
            let _ = attempt.wait_for(Option::is_some).await;
        }
        let kept = self.state.lock().kept.take();
        kept.filter(|connection| !connection.is_lost())
    }
}
