//! Circuit breaker of a server: what counts as a failure, and what the gateway asks the server before calls are refused.

use std::sync::Weak;
use std::time::Duration;

use mcp_exact_session::{JsonObject, Outcome, PeerError, PeerFailure};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::Backend;
use crate::around::breaker::{Examination, Passage, RefusedCall};
use crate::servers::client_side::ClientSide;
use crate::servers::connection::Connection;
use crate::servers::errors;
use crate::servers::liveness::CHECK_TIMEOUT;

/// Maximum number of open connections on which a server is asked for a sign of life.
const MAX_ASKED: usize = 4;

impl Backend {
    /// Lets a call pass to the server, unless calls are refused. The first call after a pause waits for an examination of the server.
    pub(crate) async fn pass_breaker(&self) -> Result<(), RefusedCall> {
        let Some(settings) = self.layers().breaker else {
            return Ok(());
        };
        match self.breaker.pass(settings) {
            Passage::Free => Ok(()),
            Passage::Refused(refused) => Err(refused),
            Passage::Trial(examination) => {
                // The examination goes on if the client of this call stops waiting.
                let _ = self.examine(examination).await;
                match self.breaker.pass(settings) {
                    Passage::Refused(refused) => Err(refused),
                    // Another pause of no length: the next call examines the server again.
                    Passage::Trial(_) | Passage::Free => Ok(()),
                }
            }
        }
    }

    /// Records the outcome of a request on a connection. One to a server that was replaced says nothing about the next one.
    pub(crate) fn record(&self, connection: &Connection, outcome: &Outcome) {
        if self.layers().breaker.is_none() || connection.generation != self.generation() {
            return;
        }
        match outcome {
            outcome if is_answer(outcome) => {
                if self.breaker.record_answer() {
                    self.announce_recovery();
                }
            }
            Outcome::Error(error) if is_of_server(error.failure()) => self.record_failure(),
            Outcome::Result(_) | Outcome::Error(_) => self.breaker.record_refusal(),
            Outcome::TimedOut | Outcome::Lost => self.record_failure(),
            Outcome::Cancelled | Outcome::Closed => {}
        }
    }

    /// Records that a connection could not be opened.
    pub(super) fn record_unopened(&self, error: &PeerError) {
        if is_of_server(error.failure()) {
            self.record_failure();
        }
    }

    /// Returns an error if no connection to the server is opened, because its calls are refused.
    pub(super) fn check_breaker(&self) -> Result<(), PeerError> {
        match self.breaker.refusal() {
            Some(refused) => Err(refused.error(&self.name)),
            None => Ok(()),
        }
    }

    fn record_failure(&self) {
        if let Some(settings) = self.layers().breaker
            && let Some(examination) = self.breaker.record_failure(settings)
        {
            drop(self.examine(examination));
        }
    }

    /// Starts an examination of the server.
    fn examine(&self, examination: Examination) -> JoinHandle<()> {
        let this = self.this.clone();
        let examining = tokio::spawn(async move {
            let Some(backend) = this.upgrade() else {
                return;
            };
            let failed = backend.find_failure().await;
            let reason = failed.clone();
            let server = backend.name.as_str();
            match examination.end(failed) {
                Some(pause) if !pause.is_zero() => {
                    let seconds = pause.as_secs();
                    tracing::warn!(server, seconds, reason, "the calls of a server are refused");
                }
                Some(_) => backend.announce_recovery(),
                None => {}
            }
        });
        self.state.lock().examining = Some(examining.abort_handle());
        examining
    }

    /// Reports that calls are accepted again.
    fn announce_recovery(&self) {
        let server = self.name.as_str();
        tracing::info!(server, "a server answers again; its calls are relayed");
        self.announce_if_missed();
    }

    /// Asks for a sign of life on the connections that are open, and then on one of the gateway's own; returns how the server has
    /// failed, or `None` if it has answered. The latter connection belongs to no client, so that nothing in the reason is about the
    /// data of one. A server that takes one connection at a time can be asked on that of its client alone.
    async fn find_failure(&self) -> Option<String> {
        if self.is_removed() || self.answers_where_open().await {
            return None;
        }
        let nobody = ClientSide::new(None, &JsonObject::new());
        let connection = match self.open_now(&nobody).await {
            Ok(Some(connection)) => connection,
            // Another server has taken its place.
            Ok(None) => return None,
            Err(error) => {
                let reason = errors::without_last_words(error.message());
                return is_of_server(error.failure()).then(|| reason.to_owned());
            }
        };
        self.refill_spares();
        self.ask(&connection).await
    }

    /// Returns true if the server answers on one of the connections that are open, those first that were opened last.
    async fn answers_where_open(&self) -> bool {
        let connections = self.state.lock().connections.clone();
        let open = connections.iter().rev().filter_map(Weak::upgrade);
        let open = open.filter(|connection| !connection.is_lost());
        let limit = self.sign_timeout();
        let mut asked = JoinSet::new();
        for connection in open.take(MAX_ASKED) {
            if let Ok(asking) = connection.ask_for_life() {
                asked.spawn(timeout(limit, asking));
            }
        }
        while let Some(ended) = asked.join_next().await {
            if let Ok(Ok(outcome)) = ended
                && is_answer(&outcome)
            {
                return true;
            }
        }
        false
    }

    /// Returns the maximum time to wait for a sign of life.
    fn sign_timeout(&self) -> Duration {
        CHECK_TIMEOUT.min(self.layers().request_timeout)
    }

    /// Asks for a sign of life on a connection; returns how the server has failed.
    async fn ask(&self, connection: &Connection) -> Option<String> {
        let limit = self.sign_timeout();
        let outcome = match connection.ask_for_life() {
            Ok(asked) => timeout(limit, asked).await.unwrap_or(Outcome::TimedOut),
            Err(_) => Outcome::Lost,
        };
        match outcome {
            Outcome::Error(error) if error.is_local() && is_of_server(error.failure()) => {
                Some(error.message().to_owned())
            }
            Outcome::TimedOut => Some(format!(
                "it did not answer within {} seconds",
                limit.as_secs_f64()
            )),
            Outcome::Lost => Some("the connection was lost".to_owned()),
            _ => None,
        }
    }
}

/// Returns true if the outcome of a request is an answer of the server: also an HTTP status with a JSON-RPC error.
fn is_answer(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Result(_) => true,
        Outcome::Error(error) => !error.is_local(),
        _ => false,
    }
}

/// Returns true if a failure is that of the server itself. The status 429 is about the number of requests.
fn is_of_server(failure: Option<PeerFailure>) -> bool {
    match failure {
        Some(PeerFailure::Status { code, .. }) => code >= 500,
        Some(_) => true,
        None => false,
    }
}
