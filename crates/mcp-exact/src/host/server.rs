//! One server of a host: its connection, and the results of the attempts to connect.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use crate::client::{Client, ClientError, CloseReason, Connect, Remains};
use crate::protocol::{NegotiationError, Revision};
use crate::sync::lock;

/// State of the connection of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerState {
    /// An attempt to connect is in progress, or a client with a policy ([`Connect::reconnect`]) connects again.
    Connecting,
    /// The server is connected.
    Connected,
    /// The server could not be connected, or its connection has ended for good; [`Host::restart`](super::Host::restart) connects
    /// the server again.
    Disconnected,
}

/// Status of a server of a host, from [`Host::status`](super::Host::status).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerStatus {
    /// State of the connection.
    pub state: ServerState,
    /// Time of the last change of the state.
    pub changed_at: SystemTime,
    /// Number of attempts to connect.
    pub attempt_count: u32,
    /// Error of the last failed attempt; kept after a later attempt has succeeded.
    pub last_error: Option<ClientError>,
    /// Negotiated revision, while the server is connected.
    pub revision: Option<Revision>,
}

/// Server of a host.
pub(super) struct HostServer {
    /// Builder of the connection, or the error of its configuration.
    connect: Result<Connect, ClientError>,
    /// Current connection and the history of attempts.
    state: Mutex<ConnectionState>,
    /// Lock that is held during an attempt to connect.
    connecting: tokio::sync::Mutex<()>,
    /// Count of the connections to the server, failed attempts included, whose process or session has not ended yet.
    remains: Remains,
}

/// Time limit of a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeLimit {
    pub(super) limit: Duration,
    /// True if the limit is that of the server, false if it is that of the host.
    is_own: bool,
}

impl TimeLimit {
    /// Returns the error of what has taken longer.
    pub(super) fn error(self) -> ClientError {
        let Self { limit, is_own } = self;
        ClientError::HostTimedOut { limit, is_own }
    }
}

/// Connection of a server and the history of its attempts.
struct ConnectionState {
    /// Client of the latest connection, which may be closed.
    client: Option<Client>,
    /// Time at which the latest attempt to connect has started or ended.
    changed_at: SystemTime,
    /// Number of attempts to connect.
    attempt_count: u32,
    /// Error of the last failed attempt.
    last_error: Option<ClientError>,
}

impl HostServer {
    pub(super) fn new(connect: Result<Connect, ClientError>) -> Arc<Self> {
        Arc::new(Self {
            connect,
            state: Mutex::new(ConnectionState {
                client: None,
                changed_at: SystemTime::now(),
                attempt_count: 0,
                last_error: None,
            }),
            connecting: tokio::sync::Mutex::default(),
            remains: Remains::default(),
        })
    }

    /// Returns the time limit for connecting the server and for listing its tools: its own, or else that of the host.
    pub(super) fn time_limit(&self, of_host: Duration) -> TimeLimit {
        let own = self.connect.as_ref().ok();
        let own = own.and_then(Connect::own_connect_timeout);
        TimeLimit {
            limit: own.unwrap_or(of_host),
            is_own: own.is_some(),
        }
    }

    /// Returns what is left of all connections to the server.
    pub(super) fn remains(&self) -> &Remains {
        &self.remains
    }

    /// Locks the connection state.
    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        lock(&self.state)
    }

    /// Returns the latest client, which may be closed.
    pub(super) fn client(&self) -> Option<Client> {
        self.state().client.clone()
    }

    /// Returns the error of the last failed attempt if there is no client.
    pub(super) fn failure(&self) -> Option<ClientError> {
        let state = self.state();
        let failure = state.last_error.clone();
        failure.filter(|_| state.client.is_none())
    }

    /// Returns the status for [`Host::status`](super::Host::status).
    pub(super) fn status(&self) -> ServerStatus {
        let mut is_connecting = self.connecting.try_lock().is_err();
        let state = self.state();
        let client = state.client.as_ref();
        is_connecting |= client.is_some_and(Client::is_reconnecting);
        let closed = state.client.as_ref().map(Client::closed_at);
        let (phase, since) = match closed {
            _ if is_connecting => (ServerState::Connecting, state.changed_at),
            Some(None) => (ServerState::Connected, state.changed_at),
            Some(Some(closed)) => (ServerState::Disconnected, closed),
            None => (ServerState::Disconnected, state.changed_at),
        };
        let connected = state.client.as_ref();
        let connected = connected.filter(|_| phase == ServerState::Connected);
        ServerStatus {
            state: phase,
            changed_at: since,
            attempt_count: state.attempt_count,
            last_error: state.last_error.clone(),
            revision: connected.map(Client::revision),
        }
    }

    /// Closes the connection, if there is one, waits until nothing is left of it and of failed attempts, because a process may hold what
    /// the next one needs, and connects again within the time limit of the server or else of the host. Attempts run one after the other.
    pub(super) async fn reconnect(&self, of_host: Duration) -> Result<Client, ClientError> {
        let limit = self.time_limit(of_host);
        let _connecting = self.connecting.lock().await;
        let before = {
            let mut state = self.state();
            state.changed_at = SystemTime::now();
            state.attempt_count = state.attempt_count.saturating_add(1);
            state.client.take()
        };
        let mut attempt = Attempt {
            server: self,
            result: Err(ClientError::disconnected(CloseReason::ByClient, false)),
        };
        if let Some(client) = before {
            client.close();
        }
        self.remains.gone().await;
        attempt.result = match self.connect.clone() {
            Ok(connect) => {
                let connect = connect.counted_in(&self.remains);
                let connected = connect.connect_within(limit.limit).await;
                connected.unwrap_or_else(|| {
                    // A banner says more about the reason than the time.
                    let stray = self.remains.stray().map(NegotiationError::NoMessage);
                    Err(stray.map_or_else(|| limit.error(), ClientError::Negotiation))
                })
            }
            Err(error) => Err(error),
        };
        attempt.result.clone()
    }
}

/// Attempt to connect, which records its result in the connection state of the server when it is dropped, even if the
/// future of the attempt is dropped before it has completed.
struct Attempt<'s> {
    /// Server whose state is updated.
    server: &'s HostServer,
    /// Result of the attempt; an error until the attempt has succeeded.
    result: Result<Client, ClientError>,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut state = self.server.state();
        state.changed_at = SystemTime::now();
        match &self.result {
            Ok(client) => state.client = Some(client.clone()),
            Err(error) => state.last_error = Some(error.clone()),
        }
    }
}
