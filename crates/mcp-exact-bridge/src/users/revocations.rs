//! Revocations of principals. They reach all processes by a record in the store, which each process reads once a second: it forgets
//! the tokens that it has in memory, and ends the connections of the principal.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_auth::Secret;
use mcp_exact_auth::client::TokenStore;
use serde::{Deserialize, Serialize};
use tokio::sync::{OnceCell, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::server::UserServer;
use super::tokens::{UserToken, UserTokens};
use super::{Gateway, Users};

/// Key of the record.
pub(super) const RECORD: &str = "revocations";
/// Maximum number of principals in the record. A process that has missed more takes all principals as revoked.
const MAX_LATEST: usize = 1_000;
/// Interval at which a process reads the record.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time limit for telling one authorization server.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);

/// What an authorization server was told about an account that was revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedAccount {
    /// Name of the server in the configuration.
    pub server: String,
    /// Issuer of the tokens.
    pub issuer: String,
    /// What became of the tokens there.
    pub outcome: RevocationOutcome,
}

/// What became of revoked tokens at their authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RevocationOutcome {
    /// The authorization server has revoked them (RFC 7009).
    Revoked,
    /// Its metadata names no `revocation_endpoint`: they are valid until they expire there.
    NoEndpoint,
    /// It was not told, or has refused, for this reason.
    Failed(String),
}

/// Revocations so far. The record is not encrypted: whoever revokes need not have the key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Revoked {
    /// Number of revocations.
    count: u64,
    /// Principals of the latest ones, the latest last.
    latest: VecDeque<String>,
}

impl Revoked {
    fn push(&mut self, principal: &str) {
        self.count += 1;
        self.latest.push_back(principal.to_owned());
        if self.latest.len() > MAX_LATEST {
            self.latest.pop_front();
        }
    }

    /// Returns the principals that were revoked after the first `seen` revocations; `None` if they are not known any more, or the
    /// store has lost the record meanwhile.
    fn since(&self, seen: u64) -> Option<impl Iterator<Item = &str>> {
        let missed = usize::try_from(self.count.checked_sub(seen)?).ok()?;
        let begin = self.latest.len().checked_sub(missed)?;
        Some(self.latest.range(begin..).map(String::as_str))
    }

    /// Returns true if a principal was revoked after the first `seen` revocations, or may have been.
    fn has_revoked(&self, principal: &str, seen: u64) -> bool {
        let mut since = self.since(seen);
        let principals = since.as_mut();
        principals.is_none_or(|principals| principals.any(|revoked| revoked == principal))
    }
}

/// Revocations that this process knows.
pub(super) struct Revocations {
    /// Store of the record, without encryption.
    store: Arc<dyn TokenStore>,
    known: watch::Sender<Revoked>,
    /// Set once the record is read again and again.
    is_watched: OnceCell<()>,
}

impl Revocations {
    pub(super) fn new(store: Arc<dyn TokenStore>) -> Self {
        Self {
            store,
            known: watch::channel(Revoked::default()).0,
            is_watched: OnceCell::new(),
        }
    }

    /// Returns the number of revocations that the process knows.
    pub(super) fn count(&self) -> u64 {
        self.known.borrow().count
    }

    /// Returns true if a principal was revoked since the process knew of `seen` revocations.
    pub(super) fn has_revoked(&self, principal: &str, seen: u64) -> bool {
        self.known.borrow().has_revoked(principal, seen)
    }

    /// Completes when a principal is revoked.
    pub(super) fn revoked(&self, principal: &str) -> impl Future<Output = ()> + Send + use<> {
        let mut known = self.known.subscribe();
        let mut seen = known.borrow_and_update().count;
        let principal = principal.to_owned();
        async move {
            let is_revoked = |revoked: &Revoked| {
                let is_revoked = revoked.has_revoked(&principal, seen);
                seen = revoked.count;
                is_revoked
            };
            if known.wait_for(is_revoked).await.is_err() {
                // The gateway has ended.
                pending::<()>().await;
            }
        }
    }
}

impl Gateway {
    /// Begins to look for revocations, unless that has begun; what was revoked before concerns nothing that this process has.
    pub(super) async fn watch_revocations(self: &Arc<Self>) -> Result<(), String> {
        let begin = || async {
            let known = read(&*self.revocations.store).await?;
            self.revocations.known.send_replace(known);
            let gateway = Arc::downgrade(self);
            tokio::spawn(async move {
                loop {
                    sleep(INTERVAL).await;
                    let Some(gateway) = gateway.upgrade() else {
                        return;
                    };
                    if let Err(error) = gateway.look_for_revocations().await {
                        tracing::warn!(error, "revocations cannot be read at present");
                    }
                }
            });
            Ok(())
        };
        let watching = self.revocations.is_watched.get_or_try_init(begin);
        watching.await.copied()
    }

    /// Reads the revocations, and ends what this process has of the principals.
    async fn look_for_revocations(&self) -> Result<(), String> {
        let now = read(&*self.revocations.store).await?;
        let seen = self.revocations.count();
        if now.count == seen {
            return Ok(());
        }
        // First, so that a token that is obtained at the same time is either refused or among those that are forgotten.
        self.revocations.known.send_replace(now.clone());
        let servers: Vec<Arc<UserServer>> = self.servers.read().values().cloned().collect();
        let exchanged = servers.iter().map(|server| &server.exchanged);
        for tokens in exchanged.chain([&self.callers]) {
            match now.since(seen) {
                Some(principals) => principals.for_each(|one| tokens.remove_principal(one)),
                None => tokens.clear(),
            }
        }
        Ok(())
    }
}

impl Users {
    /// Revokes what the gateway has of a principal: forgets its tokens, ends its connections in all processes that share the store,
    /// within a second or so, and has the authorization servers revoke its tokens (RFC 7009), as far as they are among the servers
    /// of [`Users::server`] and can be told within ten seconds. Returns what became of each account, by the name of its server.
    ///
    /// The token of the principal for the gateway stays valid: its issuer has to be told by the operator.
    ///
    /// # Errors
    /// Returns the error of the store; the authorization servers were told nothing then.
    pub async fn revoke(&self, principal: &str) -> Result<Vec<RevokedAccount>, String> {
        let gateway = &self.0;
        let accounts = gateway.tokens.take(principal).await?;
        announce(&*gateway.revocations.store, principal).await?;
        if gateway.revocations.is_watched.initialized() {
            gateway.look_for_revocations().await?;
        }
        let mut telling = JoinSet::new();
        for (name, token) in accounts {
            let server = gateway.server(&name);
            telling.spawn(async move {
                let outcome = match server {
                    Some(server) => server.tell_revocation(&token).await,
                    None => failed("the server is not in the configuration any more"),
                };
                RevokedAccount {
                    server: name,
                    issuer: token.issuer,
                    outcome,
                }
            });
        }
        let mut revoked = telling.join_all().await;
        revoked.sort_by(|a, b| a.server.cmp(&b.server));
        Ok(revoked)
    }
}

impl UserServer {
    /// Has the authorization server of an account revoke its tokens.
    async fn tell_revocation(&self, token: &UserToken) -> RevocationOutcome {
        let telling = async {
            let Some(grant) = self.code_grant().await? else {
                return Ok(failed("the server has no accounts any more"));
            };
            if grant.issuer() != token.issuer || self.url() != token.url {
                return Ok(failed(
                    "the server has another URL or authorization server than when the account was connected",
                ));
            }
            if grant.client_id() != token.client_id {
                return Ok(failed(
                    "the gateway has another client id there than when the account was connected",
                ));
            }
            let refresh_token = token.refresh_token.as_ref();
            let is_revoked = grant.revoke(&token.access_token, refresh_token).await?;
            Ok(if is_revoked {
                RevocationOutcome::Revoked
            } else {
                RevocationOutcome::NoEndpoint
            })
        };
        match timeout(SERVER_TIMEOUT, telling).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => RevocationOutcome::Failed(self.describe(&error)),
            Err(_) => failed("it took longer than ten seconds"),
        }
    }
}

fn failed(reason: &str) -> RevocationOutcome {
    RevocationOutcome::Failed(reason.to_owned())
}

/// Reads the record of revocations.
async fn read(store: &dyn TokenStore) -> Result<Revoked, String> {
    let Some(text) = store.read(RECORD).await? else {
        return Ok(Revoked::default());
    };
    let read = serde_json::from_str(text.expose());
    read.map_err(|error| format!("the record of revocations is damaged: {error}"))
}

/// Adds a revocation to the record, for all processes.
async fn announce(store: &dyn TokenStore, principal: &str) -> Result<(), String> {
    let _lock = store.lock(RECORD).await?;
    // Processes take a record that was lost, and so a damaged one that is replaced, as the revocation of all principals.
    let mut revoked = read(store).await.unwrap_or_default();
    revoked.push(principal);
    let text = serde_json::to_string(&revoked).map_err(|error| error.to_string())?;
    store.write(RECORD, &Secret::new(text)).await
}

/// Removes all tokens of a principal from the store of a gateway, without its key; returns false if there are none. All processes
/// that share the store ask the user again, forget the tokens that they have in memory, and end the connections of the principal,
/// within a second or so. The tokens stay valid at their authorization servers: [`Users::revoke`] tells these, too.
///
/// # Errors
/// Returns the error of the store.
pub async fn revoke(store: &dyn TokenStore, principal: &str) -> Result<bool, String> {
    let is_known = UserTokens::remove(store, principal).await?;
    announce(store, principal).await?;
    Ok(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process sees each revocation once, and takes all principals as revoked if it has missed some or the record was lost.
    #[test]
    fn missed_revocations_concern_everybody() {
        let mut revoked = Revoked::default();
        revoked.push("ann");
        revoked.push("bob");
        assert!(revoked.has_revoked("ann", 0) && revoked.has_revoked("bob", 1));
        assert!(!revoked.has_revoked("ann", 1) && !revoked.has_revoked("cleo", 0));
        assert!(!revoked.has_revoked("bob", 2));
        assert!(revoked.has_revoked("cleo", 3), "the record was lost");
        for _ in 0..MAX_LATEST {
            revoked.push("dan");
        }
        assert!(revoked.has_revoked("cleo", 1), "bob is not known any more");
        assert!(!revoked.has_revoked("cleo", 2));
        assert_eq!(revoked.latest.len(), MAX_LATEST);
    }
}
