//! `mcp-exact sessions`: lists, ends and counts the sessions that server processes share on Redis. Requires the feature
//! `sessions`.
//!
//! The commands access the data of `mcp-exact-redis` directly, without connecting to a server.

#[cfg(all(feature = "bridge", feature = "oauth"))]
mod accounts;
mod connection;

use std::io::{self, Stdout};
use std::time::Duration;

use clap::{Args, Subcommand};
use mcp_exact_redis::{SessionEntry, SessionStats};
use serde_json::json;

use self::connection::ConnectionArguments;
use crate::Outcome;
use crate::client::block_on;
use crate::terminal::{Stream, stdout};
use crate::text::{Text, Untrusted, text};

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
    Revoke(accounts::Revoke),
    /// Encrypt the stored tokens of users with the first of `seal-keys`, so that the others can be removed.
    #[cfg(all(feature = "bridge", feature = "oauth"))]
    Reseal(accounts::Reseal),
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

/// Runs a subcommand.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    block_on(async {
        match &arguments.command {
            Command::List(arguments) => list(arguments).await,
            Command::End(arguments) => end(arguments).await,
            Command::Stats(arguments) => stats(arguments).await,
            #[cfg(all(feature = "bridge", feature = "oauth"))]
            Command::Revoke(arguments) => accounts::revoke(arguments).await,
            #[cfg(all(feature = "bridge", feature = "oauth"))]
            Command::Reseal(arguments) => accounts::reseal(arguments).await,
        }
    })
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
