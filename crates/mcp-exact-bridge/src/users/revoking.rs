//! Revocation of a principal by an operator: what the gateway has stored, what its processes have, and what authorization servers know
//! (RFC 7009). What was not done is told with what was.

use std::sync::Weak;
use std::time::Duration;

use mcp_exact_auth::client::TokenStore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Users;
use super::gateway::Gateway;
use super::revocations::announce;
use super::server::UserServer;
use super::tokens::{SAVE_PAUSES, UserToken, UserTokens};

/// Time limit for telling one authorization server.
const SERVER_TIMEOUT: Duration = Duration::from_secs(10);

/// What a revocation has done; [`Users::revoke`] returns it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct Revocation {
    /// What became of each account, by the name of its server; empty if no tokens were stored.
    pub accounts: Vec<RevokedAccount>,
    /// What was not done; `None` if all was.
    pub failure: Option<RevocationFailure>,
}

/// What a revocation has not done. Another revocation of the principal repeats it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RevocationFailure {
    /// The processes were told, and the stored tokens may still be there, for this reason. The authorization servers of those that were
    /// seen are told all the same.
    #[error("the gateways know of it, and the stored tokens of the user may still be there: {0}")]
    NotRemoved(String),
    /// The stored tokens may still be there, for this reason, and the processes may not have been told. The authorization servers of those
    /// that were seen are told all the same.
    #[error(
        "the stored tokens of the user may still be there, and the gateways may not know of it: {0}"
    )]
    NotRemovedNorAnnounced(String),
    /// The processes of the gateway may not have been told, for this reason: connections and exchanged tokens of the principal go on.
    #[error(
        "the gateways may not know of it, so that connections and exchanged tokens of the user go on: {0}"
    )]
    NotAnnounced(String),
    /// The processes were told, and the store could not be looked at after that, for this reason: an account that the user has
    /// connected at the same time may be stored.
    #[error(
        "the gateways know of it, and an account that the user has connected at the same time may be stored: {0}"
    )]
    NotLookedAgain(String),
}

/// What an authorization server was told about an account that was revoked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RevokedAccount {
    /// Name of the server in the configuration. Empty if the stored tokens could not be read, so that their server is not known.
    pub server: String,
    /// Issuer of the tokens. Empty if the stored tokens could not be read.
    pub issuer: String,
    /// What became of the tokens at the issuer.
    pub outcome: RevocationOutcome,
}

/// What became of revoked tokens at their authorization server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RevocationOutcome {
    /// The authorization server has revoked them (RFC 7009).
    Revoked,
    /// The metadata of the authorization server names no `revocation_endpoint`: the tokens are valid there until they expire.
    NoEndpoint,
    /// The authorization server could not be reached, or has refused, for this reason.
    Failed(String),
}

impl Users {
    /// Revokes what the gateway has of a principal: forgets its tokens, ends its connections in all processes that share the store,
    /// within a second or so, and has the authorization servers revoke its tokens (RFC 7009), as far as they are among the servers
    /// of [`Users::server`] and can be told within ten seconds.
    ///
    /// The token of the principal for the gateway stays valid: its issuer has to be told by the operator.
    ///
    /// If the store fails, [`Revocation::failure`] says what was not done, and the authorization servers of the tokens that were seen
    /// are told all the same.
    pub async fn revoke(&self, principal: &str) -> Revocation {
        let gateway = &self.0;
        let first = gateway.tokens.take(principal).await;
        let announced = gateway.revocations.announce(principal).await;
        // What was added meanwhile by those who could not see the announcement, and what was not removed at once.
        let second = gateway.tokens.take(principal).await;
        let failure = failure_of(first.failure, announced, second.failure);
        let problem = first.problem.or(second.problem);
        let mut accounts: Vec<_> = first.tokens.into_iter().collect();
        for (server, token) in second.tokens {
            let is_same =
                |(of, known): &(String, UserToken)| *of == server && known.is_same(&token);
            if !accounts.iter().any(is_same) {
                accounts.push((server, token));
            }
        }
        if gateway.revocations.is_watched()
            && let Err(error) = gateway.look_for_revocations().await
        {
            // As every process, this one looks again within a second.
            tracing::warn!(error, "revocations cannot be read at present");
        }
        let mut accounts = gateway.tell_revocations(accounts).await;
        accounts.extend(problem.map(|problem| RevokedAccount {
            server: String::new(),
            issuer: String::new(),
            outcome: RevocationOutcome::Failed(format!(
                "{problem}; they are valid at their authorization servers until they expire there"
            )),
        }));
        Revocation { accounts, failure }
    }
}

impl Gateway {
    /// Requests that the authorization servers of accounts revoke their tokens (RFC 7009).
    async fn tell_revocations(&self, accounts: Vec<(String, UserToken)>) -> Vec<RevokedAccount> {
        let mut telling = JoinSet::new();
        for (name, token) in accounts {
            let server = self.server(&name);
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
        revoked
    }

    /// Removes tokens of an account that a page has stored without the consent of the user, and could not remove, as soon as the store
    /// works. The authorization server was told of the tokens that the page has stored, and is told of others that a call has received
    /// for them. Ends with the gateway, or when the record of the user cannot be read.
    pub(super) async fn take_back_later(
        gateway: Weak<Self>,
        (principal, server): (String, String),
        told: UserToken,
    ) {
        let (mut pause, longest) = SAVE_PAUSES;
        loop {
            sleep(pause).await;
            let Some(gateway) = gateway.upgrade() else {
                return;
            };
            let tokens = &gateway.tokens;
            match tokens.take_of_visit(&principal, &server, &told).await {
                Ok(mut taken) => {
                    taken.retain(|token| !token.is_same(&told));
                    let taken = taken.into_iter().map(|token| (server.clone(), token));
                    let outcomes = gateway.tell_revocations(taken.collect()).await;
                    let words = "the tokens of an account that was not connected are removed";
                    tracing::info!(principal, server, ?outcomes, "{words}");
                    return;
                }
                Err(error) if tokens.is_unreadable(&principal).await => {
                    let words = "tokens of a user stay stored: `revoke` the user";
                    tracing::error!(principal, server, error, "{words}");
                    return;
                }
                Err(error) => {
                    let words = "tokens of a user are not removed yet";
                    tracing::warn!(principal, server, error, "{words}");
                }
            }
            pause = longest.min(pause * 2);
        }
    }
}

impl UserServer {
    /// Requests that the authorization server of an account revokes its tokens (RFC 7009).
    pub(super) async fn tell_revocation(&self, token: &UserToken) -> RevocationOutcome {
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

/// Returns what was not done by a revocation that has removed the tokens, was announced, and has removed tokens again.
fn failure_of(
    first: Option<String>,
    announced: Result<(), String>,
    second: Option<String>,
) -> Option<RevocationFailure> {
    match (first, announced, second) {
        (_, Ok(()), None) => None,
        (Some(reason), Ok(()), Some(_)) => Some(RevocationFailure::NotRemoved(reason)),
        (Some(reason), Err(_), Some(_)) => Some(RevocationFailure::NotRemovedNorAnnounced(reason)),
        (_, Err(reason), _) => Some(RevocationFailure::NotAnnounced(reason)),
        (None, Ok(()), Some(reason)) => Some(RevocationFailure::NotLookedAgain(reason)),
    }
}

/// Error of [`revoke`](fn@revoke): what it has not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{failure}")]
#[non_exhaustive]
pub struct PartialRevocation {
    /// True if tokens were found.
    pub is_known: bool,
    /// What was not done.
    pub failure: RevocationFailure,
}

/// Removes all tokens of a principal from the store of a gateway, without its key; returns false if there are none. All processes
/// that share the store ask the user again, forget the tokens that they have in memory, and end the connections of the principal,
/// within a second or so. The tokens stay valid at their authorization servers: [`Users::revoke`] tells these, too.
///
/// # Errors
/// Returns what the store has not done. The revocation can be repeated.
pub async fn revoke(store: &dyn TokenStore, principal: &str) -> Result<bool, PartialRevocation> {
    let (is_known, removed) = UserTokens::remove(store, principal).await;
    let announced = announce(store, principal).await;
    // What was added meanwhile by those who could not see the announcement, and what was not removed at once.
    let (is_added, removed_again) = UserTokens::remove(store, principal).await;
    let is_known = is_known || is_added;
    match failure_of(removed.err(), announced, removed_again.err()) {
        None => Ok(is_known),
        Some(failure) => Err(PartialRevocation { is_known, failure }),
    }
}
