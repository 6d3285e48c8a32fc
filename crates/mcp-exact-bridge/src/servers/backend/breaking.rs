//! Circuit breaker of a server: what counts as a failure, and the connection of the gateway's own that decides whether calls are
//! refused.

use mcp_exact_session::{JsonObject, Outcome, PeerError, PeerFailure};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Backend;
use crate::around::breaker::{Examination, Passage, RefusedCall};
use crate::servers::client_side::ClientSide;
use crate::servers::connection::Connection;
use crate::servers::errors;
use crate::servers::liveness::CHECK_TIMEOUT;

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

    /// Records the outcome of a request on a connection.
    pub(crate) fn record(&self, outcome: &Outcome) {
        if self.layers().breaker.is_none() {
            return;
        }
        match outcome {
            // An HTTP status with a JSON-RPC error is an answer of the server.
            Outcome::Error(error) if error.is_local() && is_of_server(error.failure()) => {
                self.record_failure();
            }
            Outcome::Result(_) | Outcome::Error(_) => self.breaker.record_answer(),
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
        tokio::spawn(async move {
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
                Some(_) => {
                    tracing::info!(server, "a server answers again; its calls are relayed");
                    backend.announce_if_missed();
                }
                None => {}
            }
        })
    }

    /// Opens a connection of the gateway's own, and asks for a sign of life on it; returns how the server has failed, or `None` if it
    /// has answered. The connection belongs to no client, so that nothing in the reason is about the data of one.
    async fn find_failure(&self) -> Option<String> {
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

    /// Asks for a sign of life on a connection; returns how the server has failed.
    async fn ask(&self, connection: &Connection) -> Option<String> {
        let limit = CHECK_TIMEOUT.min(self.layers().request_timeout);
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

/// Returns true if a failure is that of the server itself. The status 429 is about the number of requests.
fn is_of_server(failure: Option<PeerFailure>) -> bool {
    match failure {
        Some(PeerFailure::Status { code, .. }) => code >= 500,
        Some(_) => true,
        None => false,
    }
}
