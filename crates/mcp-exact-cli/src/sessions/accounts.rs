//! `mcp-exact sessions revoke` and `reseal`: the accounts that users have connected at servers with `auth = "user"`. Both say what was
//! done, what was not, and what helps.

use std::path::PathBuf;

use clap::Args;
use mcp_exact_bridge::users::{
    PartialRevocation, ResealCounts, Revocation, RevocationFailure, RevocationOutcome,
    RevokedAccount,
};
use serde_json::{Value, json};

use super::connection::ConnectionArguments;
use crate::Outcome;
use crate::bridge::users::Removal;
use crate::terminal::stdout;
use crate::text::{Text, Untrusted, text};

#[derive(Args)]
#[command(after_help = "\
The user is asked again for the accounts. Exchanged tokens in the memory of the gateways are forgotten, and connections of the user end, \
also if no tokens were stored. With `--config`, the authorization servers of the accounts are told to revoke the tokens (RFC 7009); \
without it, the tokens are valid there until they expire. The token of the user for the gateway itself stays valid.

Exit code: 0 the stored tokens are removed and, with `--config`, revoked at each authorization server; 1 no tokens were stored, or an \
authorization server has not revoked them; 2 wrong usage, or the store cannot be reached: what was done before is printed, and the rest \
is done when the command is run again.")]
pub(super) struct Revoke {
    #[command(flatten)]
    connection: ConnectionArguments,
    /// The configuration file of the gateway, which names the store and the authorization servers.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["redis", "prefix", "sentinel_master", "sentinel", "root_certificates"]
    )]
    config: Option<PathBuf>,
    /// Directory in which a single gateway keeps its sessions, if it does not use Redis.
    #[cfg(unix)]
    #[arg(
        long,
        value_name = "DIR",
        conflicts_with_all = ["config", "redis", "prefix", "sentinel_master", "sentinel", "root_certificates"]
    )]
    directory: Option<PathBuf>,
    /// Principal whose tokens are forgotten, as the audit log names it.
    #[arg(long, value_name = "NAME")]
    principal: String,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
#[command(after_help = "\
To change the key:
1. Write the new key at the end of `seal-keys`, and restart all gateways, so that each can read it.
2. Write it first, before the old one, and restart them again.
3. Run this command, which can run beside them.
4. If it ends with 0, remove the old key ten minutes later, when the visits of pages that began before are over.

Exit code: 0 done; 1 some tokens can be read with none of the keys, are damaged, or are of an earlier version and have to be used once \
before; 2 wrong usage, the store cannot be reached, or some values could not be written.")]
pub(super) struct Reseal {
    /// The configuration file of the gateway, which names the store and the keys.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Remove first what none of the keys opens, after a key was lost, and what is damaged: the users are asked again.
    #[arg(long)]
    remove_unreadable: bool,
    /// Remove first what is damaged, which no key helps, and leave what has another key: the users of that are asked again.
    #[arg(long, conflicts_with = "remove_unreadable")]
    remove_damaged: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Encrypts the stored tokens anew.
pub(super) async fn reseal(arguments: &Reseal) -> anyhow::Result<Outcome> {
    let removal = if arguments.remove_unreadable {
        Removal::Unreadable
    } else if arguments.remove_damaged {
        Removal::Damaged
    } else {
        Removal::Nothing
    };
    let resealing = crate::bridge::users::reseal(&arguments.config, removal);
    let (counts, removed) = resealing.await?;
    let mut out = stdout();
    if arguments.json {
        let damaged = counts
            .damaged
            .iter()
            .map(|value| json!({ "key": value.key, "reason": value.failure.to_string() }));
        out.json(&json!({
            "renewed": counts.renewed,
            "current": counts.current,
            "unreadable": counts.unreadable + counts.damaged.len(),
            "otherKey": counts.unreadable,
            "damaged": damaged.collect::<Vec<_>>(),
            "unlisted": counts.unlisted,
            "removed": removed,
        }))?;
    } else {
        out.text(&reseal_lines(&counts, removed))?;
    }
    let is_done = counts.unreadable == 0 && counts.damaged.is_empty() && counts.unlisted == 0;
    Ok(if is_done {
        Outcome::Valid
    } else {
        Outcome::Invalid
    })
}

/// Returns what became of the stored values, with what helps, as lines of text.
fn reseal_lines(counts: &ResealCounts, removed: usize) -> Text {
    let mut lines = Text::default();
    lines.push_line(&text!(
        "{} encrypted anew, {} had the first key, {} cannot be read",
        counts.renewed,
        counts.current,
        counts.unreadable + counts.damaged.len()
    ));
    if removed > 0 {
        lines.push_line(&text!("{} that could not be read were removed", removed));
    }
    if counts.unreadable > 0 {
        lines.push_line(&text!(
            "{} were encrypted with a key that is not among `seal-keys`: add it at their end, or remove the tokens by \
             `--remove-unreadable` if the key is lost",
            counts.unreadable
        ));
    }
    for value in &counts.damaged {
        lines.push_line(&text!(
            "damaged: {}: {}",
            Untrusted(&value.key),
            Untrusted(&value.failure.to_string())
        ));
    }
    if !counts.damaged.is_empty() {
        lines.push_line(&text!(
            "{} damaged: no key helps; `--remove-damaged` removes these alone, and their users are asked again",
            counts.damaged.len()
        ));
    }
    if counts.unlisted > 0 {
        lines.push_line(&text!(
            "{} are as they were: files of an earlier version, which can be encrypted anew after a gateway has used them, or files that \
             cannot be read",
            counts.unlisted
        ));
    }
    lines
}

/// Forgets the tokens of a principal.
pub(super) async fn revoke(arguments: &Revoke) -> anyhow::Result<Outcome> {
    let (is_known, revocation) = match &arguments.config {
        Some(path) => {
            let revoking = crate::bridge::users::revoke(path, &arguments.principal);
            let revocation = revoking.await?;
            (!revocation.accounts.is_empty(), revocation)
        }
        None => arguments.revoke().await?,
    };
    let mut out = stdout();
    if arguments.json {
        let mut line = revocation_json(&revocation, is_known);
        if arguments.config.is_some() {
            line["accounts"] = revocation.accounts.iter().map(account_json).collect();
        }
        out.json(&line)?;
    } else {
        out.text(&revocation_lines(&revocation, is_known))?;
    }
    let is_revoked = |account: &RevokedAccount| account.outcome == RevocationOutcome::Revoked;
    Ok(if revocation.failure.is_some() {
        Outcome::Unreadable
    } else if is_known && revocation.accounts.iter().all(is_revoked) {
        Outcome::Valid
    } else {
        Outcome::Invalid
    })
}

/// Returns what a revocation has done in the gateways, and what it has not, as JSON.
fn revocation_json(revocation: &Revocation, is_known: bool) -> Value {
    let failure = revocation.failure.as_ref();
    let (is_removed, is_announced) = match failure {
        Some(RevocationFailure::NotRemoved(_)) => (false, true),
        Some(RevocationFailure::NotRemovedNorAnnounced(_)) => (false, false),
        Some(RevocationFailure::NotAnnounced(_)) => (true, false),
        _ => (true, true),
    };
    let mut line = json!({
        "revoked": is_known && is_removed,
        "connectionsEnded": is_announced,
    });
    if let Some(failure) = failure {
        let name = match failure {
            RevocationFailure::NotRemoved(_) => "not-removed",
            RevocationFailure::NotRemovedNorAnnounced(_) => "not-removed-nor-announced",
            RevocationFailure::NotAnnounced(_) => "not-announced",
            RevocationFailure::NotLookedAgain(_) => "not-looked-again",
            _ => "unknown",
        };
        line["failure"] = json!(name);
        line["reason"] = json!(failure.to_string());
    }
    line
}

/// Returns what a revocation has done, what it has not, and what helps, as lines of text.
fn revocation_lines(revocation: &Revocation, is_known: bool) -> Text {
    let mut lines = Text::default();
    let may_be_stored = matches!(
        revocation.failure,
        Some(RevocationFailure::NotRemoved(_) | RevocationFailure::NotRemovedNorAnnounced(_))
    );
    lines.push_line(&Text::from(match (is_known, &revocation.failure) {
        _ if may_be_stored => "not removed from the store yet",
        (true, _) => "revoked",
        (false, None) => {
            "no tokens were stored; exchanged tokens are forgotten, and connections end"
        }
        (false, Some(_)) => "no tokens were stored",
    }));
    for account in &revocation.accounts {
        lines.push_line(&account_line(account));
    }
    let is_failed =
        |account: &RevokedAccount| matches!(account.outcome, RevocationOutcome::Failed(_));
    if !may_be_stored && revocation.accounts.iter().any(is_failed) {
        lines.push_line(&Text::from(
            "what is not revoked is not kept for another try: revoke the access of the gateway at the authorization server, or wait until \
             the tokens expire",
        ));
    }
    if let Some(failure) = &revocation.failure {
        lines.push_line(&text!("not done: {}", Untrusted(&failure.to_string())));
        lines.push_line(&Text::from(
            "run the command again once the store works: it does the rest",
        ));
    }
    lines
}

/// Returns what an authorization server was told, as JSON.
fn account_json(account: &RevokedAccount) -> Value {
    let (outcome, reason) = match &account.outcome {
        RevocationOutcome::Revoked => ("revoked", None),
        RevocationOutcome::NoEndpoint => ("no-endpoint", None),
        RevocationOutcome::Failed(reason) => ("failed", Some(reason)),
        _ => ("unknown", None),
    };
    let mut line = json!({
        "server": account.server,
        "issuer": account.issuer,
        "outcome": outcome,
    });
    if let Some(reason) = reason {
        line["reason"] = json!(reason);
    }
    line
}

/// Returns what an authorization server was told, as a line of text.
fn account_line(account: &RevokedAccount) -> Text {
    let (server, issuer) = (Untrusted(&account.server), Untrusted(&account.issuer));
    match &account.outcome {
        RevocationOutcome::Failed(reason) if account.server.is_empty() => {
            text!("not revoked: {}", Untrusted(reason))
        }
        RevocationOutcome::Revoked => text!("{}: revoked at {}", server, issuer),
        RevocationOutcome::NoEndpoint => text!(
            "{}: {} has no revocation endpoint; the tokens are valid there until they expire",
            server,
            issuer
        ),
        RevocationOutcome::Failed(reason) => text!(
            "{}: not revoked at {}: {}",
            server,
            issuer,
            Untrusted(reason)
        ),
        _ => text!("{}: unknown at {}", server, issuer),
    }
}

impl Revoke {
    /// Removes the tokens from their store without the key of the gateway; returns whether there were any.
    async fn revoke(&self) -> anyhow::Result<(bool, Revocation)> {
        let principal = &self.principal;
        #[cfg(unix)]
        if let Some(directory) = &self.directory {
            if !directory.is_dir() {
                anyhow::bail!("{} is not a directory", directory.display());
            }
            let folder = directory.join(crate::bridge::users::TOKENS_FOLDER);
            let store = mcp_exact::auth::client::FileStore::new(folder);
            return Ok(outcome_of(
                mcp_exact_bridge::users::revoke(&store, principal).await,
            ));
        }
        let store = mcp_exact_redis::RedisTokenStore::open(&self.connection.options()?)?;
        let revoked = mcp_exact_bridge::users::revoke(&store, principal).await;
        store.end().await;
        Ok(outcome_of(revoked))
    }
}

/// Returns whether tokens were found, and what a revocation without the key of the gateway has not done.
fn outcome_of(revoked: Result<bool, PartialRevocation>) -> (bool, Revocation) {
    let mut revocation = Revocation::default();
    let is_known = match revoked {
        Ok(is_known) => is_known,
        Err(partial) => {
            revocation.failure = Some(partial.failure);
            partial.is_known
        }
    };
    (is_known, revocation)
}
