//! `mcp-exact sessions`: lists, ends and counts the sessions that server processes share on Redis. Requires the feature
//! `sessions`.
//!
//! The commands access the data of `mcp-exact-redis` directly, without connecting to a server.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use mcp_exact_redis::{RedisOptions, RedisSessions, SessionEntry, SessionStats};
use serde_json::json;

use crate::Outcome;
use crate::client::block_on;
use crate::output::without_control_characters;
use crate::terminal::stdout;

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

/// Runs the subcommand `list`, `end` or `stats`.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    block_on(async {
        match &arguments.command {
            Command::List(arguments) => list(arguments).await,
            Command::End(arguments) => end(arguments).await,
            Command::Stats(arguments) => stats(arguments).await,
        }
    })
}

impl ConnectionArguments {
    /// Opens access to the sessions on the Redis that the arguments specify.
    fn open(&self) -> anyhow::Result<RedisSessions> {
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
        Ok(RedisSessions::open(&options)?)
    }
}

/// Prints all sessions, or those of one principal.
async fn list(arguments: &List) -> anyhow::Result<Outcome> {
    let sessions = arguments.connection.open()?;
    let mut out = stdout().lock();
    let mut written = Ok(());
    let visit = |entry: SessionEntry| {
        let is_wanted = arguments.principal.is_none() || arguments.principal == entry.principal;
        if is_wanted && written.is_ok() {
            written = print_entry(&mut out, &entry, arguments.json);
        }
    };
    sessions.visit(visit).await?;
    written?;
    out.flush()?;
    Ok(Outcome::Valid)
}

/// Prints a session as one line of text or JSON.
fn print_entry(out: &mut impl Write, entry: &SessionEntry, is_json: bool) -> io::Result<()> {
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
        return writeln!(out, "{line}");
    }
    let expires = humantime::format_duration(Duration::from_secs(expires));
    write!(
        out,
        "{}  {}  {}",
        without_control_characters(&entry.id),
        entry.revision,
        without_control_characters(&entry.client)
    )?;
    if let Some(principal) = &entry.principal {
        write!(out, "  principal {}", without_control_characters(principal))?;
    }
    if entry.subscriptions > 0 {
        write!(out, "  {} subscribed", entry.subscriptions)?;
    }
    writeln!(out, "  expires in {expires}")
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
    let mut out = stdout().lock();
    if arguments.json {
        writeln!(out, "{}", json!({ "ended": ended, "unknown": unknown }))?;
    } else {
        writeln!(out, "{ended} ended")?;
        for id in &unknown {
            writeln!(out, "unknown: {}", without_control_characters(id))?;
        }
    }
    out.flush()?;
    Ok(if unknown.is_empty() {
        Outcome::Valid
    } else {
        Outcome::Invalid
    })
}

/// Prints the numbers of sessions, streams and processes, as text or JSON.
async fn stats(arguments: &Stats) -> anyhow::Result<Outcome> {
    let stats = arguments.connection.open()?.stats().await?;
    let mut out = stdout().lock();
    if arguments.json {
        let line = json!({
            "sessions": stats.sessions,
            "ended": stats.ended,
            "streams": stats.streams,
            "processes": stats.processes,
            "busMessages": stats.bus_messages,
            "redisBytes": stats.memory,
        });
        writeln!(out, "{line}")?;
    } else {
        print_stats(&mut out, &stats)?;
    }
    out.flush()?;
    Ok(Outcome::Valid)
}

/// Prints the numbers as lines of text.
fn print_stats(out: &mut impl Write, stats: &SessionStats) -> io::Result<()> {
    let total: usize = stats.sessions.values().sum();
    writeln!(out, "{total:>12} sessions")?;
    for (revision, count) in &stats.sessions {
        writeln!(out, "{count:>12}   of {revision}")?;
    }
    writeln!(out, "{:>12} ended, until their records expire", stats.ended)?;
    writeln!(out, "{:>12} streams with events", stats.streams)?;
    writeln!(out, "{:>12} processes", stats.processes)?;
    writeln!(out, "{:>12} messages on the bus", stats.bus_messages)?;
    writeln!(out, "{:>12} bytes of Redis in all", stats.memory)
}
