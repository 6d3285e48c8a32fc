//! One server behind the bridge: what is known of it, its connections, and when it is tried again after it could not be reached.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mcp_exact_session::{CachedNegotiation, JsonObject, PeerError, SessionInfo};
use tokio::time::Instant;

use crate::bridge::Options;
use crate::stateless::Stateless;
use crate::tools::KnownTools;
use crate::translate::Losses;
use crate::upstream::{ClientSide, Connection, Receiver, Upstream};

/// Shortest and longest time after which a server that could not be reached is tried again.
const TRIED_AGAIN: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// Server behind the bridge.
pub(crate) struct Backend {
    /// Name of the server in the configuration; empty if it is the only one.
    pub(crate) name: String,
    /// True if it is one of many: its clients go on when it is lost.
    pub(crate) is_one_of_many: bool,
    upstream: Arc<dyn Upstream>,
    pub(crate) options: Arc<Options>,
    pub(crate) stateless: Stateless,
    pub(crate) tools: Arc<KnownTools>,
    state: Mutex<State>,
    /// Held while the server is asked what it is.
    probing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    known: Option<Known>,
    failed: Option<Failed>,
}

/// What is known of a server.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) info: SessionInfo,
    pub(crate) negotiation: CachedNegotiation,
}

/// The server could not be reached.
struct Failed {
    error: PeerError,
    until: Instant,
    wait: Duration,
}

impl Backend {
    pub(crate) fn new(
        name: String,
        is_one_of_many: bool,
        upstream: Arc<dyn Upstream>,
        options: &Arc<Options>,
    ) -> Self {
        let tools = Arc::new(KnownTools::default());
        Self {
            name,
            is_one_of_many,
            upstream,
            options: Arc::clone(options),
            stateless: Stateless::new(options, &tools),
            tools,
            state: Mutex::default(),
            probing: tokio::sync::Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what becomes of losses on the way to and from this server.
    pub(crate) fn losses(&self) -> Losses {
        self.options.losses()
    }

    /// Returns what is known of the server, if it was reached before.
    pub(crate) fn if_known(&self) -> Option<Known> {
        self.lock().known.clone()
    }

    /// Returns what is known of the server. Connects once to see it, if it was never reached.
    pub(crate) async fn known(&self) -> Result<Known, PeerError> {
        if let Some(known) = self.if_known() {
            return Ok(known);
        }
        let _probing = self.probing.lock().await;
        if let Some(known) = self.if_known() {
            return Ok(known);
        }
        let nobody = ClientSide::new(None, &JsonObject::new());
        let connection = self.connect(&nobody, None).await?;
        self.tools.list(&connection).await;
        self.if_known()
            .ok_or_else(|| PeerError::internal("the server is not known"))
    }

    /// Opens a connection on behalf of a client. A server that could not be reached is not tried at once again.
    pub(crate) async fn connect(
        &self,
        client: &ClientSide,
        receiver: Option<Arc<dyn Receiver>>,
    ) -> Result<Arc<Connection>, PeerError> {
        let prior = {
            let state = self.lock();
            if let Some(failed) = &state.failed
                && Instant::now() < failed.until
            {
                return Err(failed.error.clone());
            }
            state.known.as_ref().map(|known| known.negotiation)
        };
        let opened = Connection::open(
            &*self.upstream,
            &self.options,
            client,
            prior.as_ref(),
            receiver,
        );
        match opened.await {
            Ok((connection, negotiation)) => {
                let info = connection.info.clone();
                let mut state = self.lock();
                state.known = Some(Known { info, negotiation });
                state.failed = None;
                Ok(connection)
            }
            Err(error) => {
                let mut state = self.lock();
                let (shortest, longest) = TRIED_AGAIN;
                let before = state.failed.take().map(|failed| failed.wait * 2);
                let wait = before.unwrap_or(shortest).min(longest);
                let until = Instant::now() + wait;
                state.failed = Some(Failed {
                    error: error.clone(),
                    until,
                    wait,
                });
                Err(error)
            }
        }
    }

    /// Returns true if the server could not be reached when it was tried the last time.
    pub(crate) fn is_down(&self) -> bool {
        self.lock().failed.is_some()
    }

    /// Waits until the server may be tried again.
    pub(crate) async fn may_be_tried(&self) {
        let until = self.lock().failed.as_ref().map(|failed| failed.until);
        if let Some(until) = until {
            tokio::time::sleep_until(until).await;
        }
    }
}
