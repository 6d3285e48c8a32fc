//! `mcp-exact sessions`: lists, ends and counts the sessions that server processes share on Redis. Requires the feature
//! `sessions`.
//!
//! The commands access the data of `mcp-exact-redis` directly, without connecting to a server.

use std::io::{self, Stdout};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
#[cfg(all(feature = "bridge", feature = "oauth"))]
use mcp_exact_bridge::users::{RevocationOutcome, RevokedAccount};
use mcp_exact_redis::{RedisOptions, RedisSessions, SessionEntry, SessionStats};
use serde_json::json;

use crate::Outcome;
use crate::client::block_on;
use crate::terminal::{Stream, stdout};
use crate::text::{Text, Untrusted, text};

/// Environment variable with the URL of Redis; an argument would be visible to other users.
const URL_VARIABLE: &str = "MCP_EXACT_REDIS";

/// The arguments of `mcp-exact sessions`.
#[derive(Args)]
#[command(after_help = "\
The id of a session is a secret of its client: whoever has it may use the session, unless sessions have principals.

Exit code: 0 done, 1 a session to end is unknown, 2 wrong usage, or Redis cannot be reached.")]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the sessions.
    List(List),
    /// End sessions on all processes, and remove their events.
    End(End),
    /// Count sessions, streams and processes.
    Stats(Stats),
    /// Forget the tokens of a user at servers with `auth = "user"`, and end the connections that use them, on all processes.
    #[cfg(all(feature = "bridge", feature = "oauth"))]
    Revoke(Revoke),
    /// Encrypt the stored tokens of users with the first of `seal-keys`, so that the others can be removed.
    #[cfg(all(feature = "bridge", feature = "oauth"))]
    Reseal(Reseal),
}

/// Options for the connection to the Redis that the servers share.
#[derive(Args)]
struct ConnectionArguments {
    /// URL of Redis, or of a Sentinel; without it, the variable MCP_EXACT_REDIS has the URL.
    #[arg(long, value_name = "URL")]
    redis: Option<String>,
    /// Key prefix of the servers.
    #[arg(long, value_name = "TEXT", default_value = "mcp")]
    prefix: String,
    /// Ask the Sentinel at the URL for the master of this name.
    #[arg(long, value_name = "NAME")]
    sentinel_master: Option<String>,
    /// Ask this Sentinel too; may be repeated.
    #[arg(long, value_name = "URL", requires = "sentinel_master")]
    sentinel: Vec<String>,
    /// Trust the authorities in this PEM file, instead of those of the system.
    #[arg(long, value_name = "FILE")]
    root_certificates: Option<PathBuf>,
}

#[derive(Args)]
struct List {
    #[command(flatten)]
    connection: ConnectionArguments,
    /// List the sessions of one principal only.
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct End {
    #[command(flatten)]
    connection: ConnectionArguments,
    /// End all sessions of a principal.
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Ids of sessions.
    #[arg(value_name = "ID", required_unless_present = "principal")]
    ids: Vec<String>,
}

#[derive(Args)]
struct Stats {
    #[command(flatten)]
    connection: ConnectionArguments,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[cfg(all(feature = "bridge", feature = "oauth"))]
#[derive(Args)]
#[command(after_help = "\
The user is asked again for the accounts. Exchanged tokens in the memory of the gateways are forgotten, and connections of the user end, \
also if no tokens were stored. With `--config`, the authorization servers of the accounts are told to revoke the tokens (RFC 7009); \
without it, the tokens are valid there until they expire. The token of the user for the gateway itself stays valid.

Exit code: 0 the stored tokens are removed and, with `--config`, revoked at each authorization server; 1 no tokens were stored, or an \
authorization server has not revoked them; 2 wrong usage, or the store cannot be reached.")]
struct Revoke {
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

#[cfg(all(feature = "bridge", feature = "oauth"))]
#[derive(Args)]
#[command(after_help = "\
To change the key:
1. Write the new key at the end of `seal-keys`, and restart all gateways, so that each can read it.
2. Write it first, before the old one, and restart them again.
3. Run this command, which can run beside them.
4. If it ends with 0, remove the old key ten minutes later, when the visits of pages that began before are over.

Exit code: 0 done; 1 some tokens can be read with none of the keys, or are of an earlier version and have to be used once before; 2 wrong \
usage, the store cannot be reached, or some values could not be written.")]
struct Reseal {
    /// The configuration file of the gateway, which names the store and the keys.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Remove first what none of the keys opens, after a key was lost: the users are asked again.
    #[arg(long)]
    remove_unreadable: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs a subcommand.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    block_on(async {
        match &arguments.command {
            Command::List(arguments) => list(arguments).await,
            Command::End(arguments) => end(arguments).await,
            Command::Stats(arguments) => stats(arguments).await,
            #[cfg(all(feature = "bridge", feature = "oauth"))]
            Command::Revoke(arguments) => revoke(arguments).await,
            #[cfg(all(feature = "bridge", feature = "oauth"))]
            Command::Reseal(arguments) => reseal(arguments).await,
        }
    })
}

impl ConnectionArguments {
    /// Opens access to the sessions on the Redis that the arguments specify.
    fn open(&self) -> anyhow::Result<RedisSessions> {
        Ok(RedisSessions::open(&self.options()?)?)
    }

    /// Returns the options of the Redis that the arguments specify.
    fn options(&self) -> anyhow::Result<RedisOptions> {
        let url = self
            .redis
            .clone()
            .or_else(|| std::env::var(URL_VARIABLE).ok());
        let Some(url) = url else {
            bail!("no Redis is named; give `--redis URL` or set the variable {URL_VARIABLE}");
        };
        let mut options = RedisOptions::new(url);
        options.prefix.clone_from(&self.prefix);
        options.sentinel_master.clone_from(&self.sentinel_master);
        options.sentinels.clone_from(&self.sentinel);
        // A person waits longer than a client.
        options.command_timeout = Duration::from_secs(10);
        if let Some(path) = &self.root_certificates {
            let read = std::fs::read(path);
            let read = read.with_context(|| format!("cannot read {}", path.display()))?;
            options.root_certificates = Some(read);
        }
        Ok(options)
    }
}

/// Prints all sessions, or those of one principal.
async fn list(arguments: &List) -> anyhow::Result<Outcome> {
    let sessions = arguments.connection.open()?;
    let mut out = stdout();
    let mut written = Ok(());
    let visit = |entry: SessionEntry| {
        let is_wanted = arguments.principal.is_none() || arguments.principal == entry.principal;
        if is_wanted && written.is_ok() {
            written = print_entry(&mut out, &entry, arguments.json);
        }
    };
    sessions.visit(visit).await?;
    written?;
    Ok(Outcome::Valid)
}

/// Prints a session as one line of text or JSON.
fn print_entry(out: &mut Stream<Stdout>, entry: &SessionEntry, is_json: bool) -> io::Result<()> {
    let expires = entry.expires.as_secs();
    if is_json {
        let line = json!({
            "id": entry.id,
            "revision": entry.revision,
            "client": entry.client,
            "principal": entry.principal,
            "version": entry.version,
            "subscriptions": entry.subscriptions,
            "expiresInSeconds": expires,
        });
        return out.json(&line);
    }
    let expires = humantime::format_duration(Duration::from_secs(expires)).to_string();
    let mut line = text!(
        "{}  {}  {}",
        Untrusted(&entry.id),
        Untrusted(&entry.revision.to_string()),
        Untrusted(&entry.client)
    );
    if let Some(principal) = &entry.principal {
        line.push(&text!("  principal {}", Untrusted(principal)));
    }
    if entry.subscriptions > 0 {
        line.push(&text!("  {} subscribed", entry.subscriptions));
    }
    line.push(&text!("  expires in {}", Untrusted(&expires)));
    out.line(&line)
}

/// Ends the sessions with the given ids, or all sessions of a principal.
async fn end(arguments: &End) -> anyhow::Result<Outcome> {
    let sessions = arguments.connection.open()?;
    let mut ids = arguments.ids.clone();
    if arguments.principal.is_some() {
        let visit = |entry: SessionEntry| {
            if entry.principal == arguments.principal {
                ids.push(entry.id);
            }
        };
        sessions.visit(visit).await?;
    }
    let (mut ended, mut unknown) = (0_usize, Vec::new());
    for id in ids {
        if sessions.end(&id).await? {
            ended += 1;
        } else {
            unknown.push(id);
        }
    }
    let mut out = stdout();
    if arguments.json {
        out.json(&json!({ "ended": ended, "unknown": unknown }))?;
    } else {
        out.line(&text!("{} ended", ended))?;
        for id in &unknown {
            out.line(&text!("unknown: {}", Untrusted(id)))?;
        }
    }
    Ok(if unknown.is_empty() {
        Outcome::Valid
    } else {
        Outcome::Invalid
    })
}

/// Encrypts the stored tokens anew.
#[cfg(all(feature = "bridge", feature = "oauth"))]
async fn reseal(arguments: &Reseal) -> anyhow::Result<Outcome> {
    let resealing = crate::bridge::users::reseal(&arguments.config, arguments.remove_unreadable);
    let (counts, removed) = resealing.await?;
    let mut out = stdout();
    if arguments.json {
        out.json(&json!({
            "renewed": counts.renewed,
            "current": counts.current,
            "unreadable": counts.unreadable,
            "unlisted": counts.unlisted,
            "removed": removed,
        }))?;
    } else {
        out.line(&text!(
            "{} encrypted anew, {} had the first key, {} cannot be read",
            counts.renewed,
            counts.current,
            counts.unreadable
        ))?;
        if removed > 0 {
            out.line(&text!(
                "{} that none of the keys opens were removed",
                removed
            ))?;
        }
        if counts.unlisted > 0 {
            out.line(&text!(
                "{} of an earlier version are as they were: they can be encrypted anew after a gateway has used them, or are files that \
                 cannot be read",
                counts.unlisted
            ))?;
        }
    }
    Ok(if counts.unreadable == 0 && counts.unlisted == 0 {
        Outcome::Valid
    } else {
        Outcome::Invalid
    })
}

/// Forgets the tokens of a principal.
#[cfg(all(feature = "bridge", feature = "oauth"))]
async fn revoke(arguments: &Revoke) -> anyhow::Result<Outcome> {
    let (is_known, accounts) = match &arguments.config {
        Some(path) => {
            let revoking = crate::bridge::users::revoke(path, &arguments.principal);
            let accounts = revoking.await?;
            (!accounts.is_empty(), accounts)
        }
        None => (arguments.revoke().await?, Vec::new()),
    };
    let mut out = stdout();
    if arguments.json {
        let mut line = json!({ "revoked": is_known, "connectionsEnded": true });
        if arguments.config.is_some() {
            line["accounts"] = accounts.iter().map(account_json).collect();
        }
        out.json(&line)?;
    } else {
        let words = if is_known {
            "revoked"
        } else {
            "no tokens were stored; exchanged tokens are forgotten, and connections end"
        };
        out.line(&text!("{}", words))?;
        for account in &accounts {
            out.line(&account_line(account))?;
        }
    }
    let is_revoked = |account: &RevokedAccount| account.outcome == RevocationOutcome::Revoked;
    Ok(if is_known && accounts.iter().all(is_revoked) {
        Outcome::Valid
    } else {
        Outcome::Invalid
    })
}

/// Returns what an authorization server was told, as JSON.
#[cfg(all(feature = "bridge", feature = "oauth"))]
fn account_json(account: &RevokedAccount) -> serde_json::Value {
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
#[cfg(all(feature = "bridge", feature = "oauth"))]
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

#[cfg(all(feature = "bridge", feature = "oauth"))]
impl Revoke {
    /// Removes the tokens from their store; returns false if there are none.
    async fn revoke(&self) -> anyhow::Result<bool> {
        let principal = &self.principal;
        #[cfg(unix)]
        if let Some(directory) = &self.directory {
            if !directory.is_dir() {
                bail!("{} is not a directory", directory.display());
            }
            let folder = directory.join(crate::bridge::users::TOKENS_FOLDER);
            let store = mcp_exact::auth::client::FileStore::new(folder);
            let revoked = mcp_exact_bridge::users::revoke(&store, principal).await;
            return revoked.map_err(anyhow::Error::msg);
        }
        let store = mcp_exact_redis::RedisTokenStore::open(&self.connection.options()?)?;
        let revoked = mcp_exact_bridge::users::revoke(&store, principal).await;
        store.end().await;
        revoked.map_err(anyhow::Error::msg)
    }
}

/// Prints the numbers of sessions, streams and processes, as text or JSON.
async fn stats(arguments: &Stats) -> anyhow::Result<Outcome> {
    let stats = arguments.connection.open()?.stats().await?;
    if arguments.json {
        let line = json!({
            "sessions": stats.sessions,
            "ended": stats.ended,
            "streams": stats.streams,
            "processes": stats.processes,
            "busMessages": stats.bus_messages,
            "redisBytes": stats.memory,
        });
        stdout().json(&line)?;
    } else {
        stdout().text(&format_stats(&stats))?;
    }
    Ok(Outcome::Valid)
}

/// Formats the numbers as lines of text.
fn format_stats(stats: &SessionStats) -> Text {
    let total: usize = stats.sessions.values().sum();
    let mut lines = text!("{:>12} sessions\n", total);
    for (revision, count) in &stats.sessions {
        let revision = revision.to_string();
        lines.push(&text!("{:>12}   of {}\n", *count, Untrusted(&revision)));
    }
    lines.push(&text!(
        "{:>12} ended, until their records expire\n",
        stats.ended
    ));
    lines.push(&text!("{:>12} streams with events\n", stats.streams));
    lines.push(&text!("{:>12} processes\n", stats.processes));
    lines.push(&text!("{:>12} messages on the bus\n", stats.bus_messages));
    lines.push(&text!("{:>12} bytes of Redis in all\n", stats.memory));
    lines
}
