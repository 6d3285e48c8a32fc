//! `mcp-exact bridge pin` and `mcp-exact bridge diff`: definitions of tools that somebody approves, and what has changed since.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use mcp_exact_tool_schema::{Difference, differences};

use super::config::{Config, Pinned};
use super::lock::LockFile;
use super::setup::{GatewayArguments, Setup};
use crate::Outcome;
use crate::client::Settings;
use crate::output::{Painter, Style};
use crate::terminal::stdout;
use crate::text::{Text, Untrusted, text};

/// Maximum number of differences of one tool that are printed.
const MAX_DIFFERENCES: usize = 200;

/// The arguments of `mcp-exact bridge pin`.
#[derive(Debug, Args)]
#[command(after_help = "\
The file has `[pins]` with `file = \"bridge.lock\"`. The gateway compares the definitions of tools with those of the lock file, and \
reports or withholds the others. Keep the lock file beside the configuration, and look at `mcp-exact bridge diff` before you pin again.

Exit code: 0 the lock file is written; 2 wrong usage, or a server cannot be reached, and the lock file stays as it was.")]
pub struct PinArguments {
    #[command(flatten)]
    of: OfFile,
}

/// The arguments of `mcp-exact bridge diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit code: 0 all tools are as they were pinned; 1 a tool is new, gone or has changed; 2 wrong usage, or a server cannot be reached.")]
pub struct DiffArguments {
    #[command(flatten)]
    of: OfFile,
}

impl PinArguments {
    /// Returns the settings of connections to the servers.
    pub fn settings(&self) -> &Settings {
        &self.of.settings
    }
}

impl DiffArguments {
    /// Returns the settings of connections to the servers.
    pub fn settings(&self) -> &Settings {
        &self.of.settings
    }
}

/// The file whose servers are asked.
#[derive(Debug, Args)]
struct OfFile {
    /// The configuration file of the gateway.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    #[command(flatten)]
    settings: Settings,
}

impl OfFile {
    /// Returns the arguments of a `bridge` command in front of the same servers.
    fn gateway_arguments(&self) -> GatewayArguments {
        GatewayArguments {
            config: Some(self.config.clone()),
            ..GatewayArguments::new(self.settings.clone())
        }
    }

    /// Reads the tools of all servers, and returns them with the path of the lock file.
    async fn read(&self) -> anyhow::Result<(LockFile, PathBuf)> {
        let gateway = self.gateway_arguments();
        gateway.check_options()?;
        let (mut config, servers) = Config::read(&self.config)?;
        config.check_entries()?;
        let Some(Pinned { file, .. }) = config.pins.take() else {
            bail!(
                "{} has no `[pins]`; add it with `file = \"bridge.lock\"`",
                self.config.display()
            );
        };
        // What clients see of the tools is no part of what is pinned.
        config.catalogue = <_>::default();
        let mut setup = Setup::new(&gateway, config, servers)?;
        setup.is_serving = false;
        let bridge = setup.connect(std::future::ready(None)).await?;
        let mut lock = LockFile::default();
        for (server, definitions) in bridge.tool_definitions().await {
            let definitions = definitions.map_err(|error| anyhow::anyhow!("{}", error.message()));
            lock.insert(
                &server,
                &definitions.with_context(|| format!("server {server:?}"))?,
            );
        }
        bridge.shutdown().await;
        Ok((lock, file))
    }
}

/// Writes the lock file.
pub async fn run_pin(arguments: &PinArguments) -> anyhow::Result<Outcome> {
    let (lock, path) = arguments.of.read().await?;
    lock.write(&path)?;
    let (tools, servers) = (lock.count(), lock.0.len());
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    stdout().line(&text!(
        "{}: {} tool{} of {} server{}",
        Untrusted(&path.display().to_string()),
        tools,
        plural(tools),
        servers,
        plural(servers)
    ))?;
    Ok(Outcome::Valid)
}

/// Prints what has changed since the lock file was written.
pub async fn run_diff(arguments: &DiffArguments) -> anyhow::Result<Outcome> {
    let (now, path) = arguments.of.read().await?;
    let (changes, count) = changes(&LockFile::read(&path)?, &now, Painter::stdout());
    if count == 0 {
        stdout().line(&"all tools are as they were pinned".into())?;
        return Ok(Outcome::Valid);
    }
    stdout().text(&changes)?;
    Ok(Outcome::Invalid)
}

/// Returns what differs between two lock files, and the number of tools that differ.
fn changes(pinned: &LockFile, now: &LockFile, painter: Painter) -> (Text, usize) {
    let (mut changes, mut count) = (Text::default(), 0);
    let servers: BTreeSet<&String> = pinned.0.keys().chain(now.0.keys()).collect();
    for server in servers {
        let [old, new] = [pinned, now].map(|lock| lock.0.get(server));
        let names = old.into_iter().chain(new).flat_map(|tools| tools.keys());
        for name in names.collect::<BTreeSet<_>>() {
            let [before, after] = [old, new].map(|tools| tools?.get(name));
            let what = match (before, after) {
                (Some(before), Some(after)) if before == after => continue,
                (Some(_), Some(_)) => painter.paint(Style::Yellow, "changed"),
                (None, _) => painter.paint(Style::Green, "new"),
                (Some(_), None) => painter.paint(Style::Red, "gone"),
            };
            count += 1;
            changes.push_line(&text!(
                "{} {}: {}",
                Untrusted(server),
                Untrusted(name),
                what
            ));
            let found = before
                .zip(after)
                .map(|(before, after)| differences(before, after, MAX_DIFFERENCES));
            for difference in found.unwrap_or_default() {
                push_difference(&mut changes, &difference, painter);
            }
        }
    }
    (changes, count)
}

/// Adds one difference: its place, and both values in full.
fn push_difference(changes: &mut Text, difference: &Difference, painter: Painter) {
    changes.push_line(&text!("  {}", Untrusted(&difference.pointer)));
    for (sign, style, value) in [
        ("-", Style::Red, &difference.before),
        ("+", Style::Green, &difference.after),
    ] {
        if let Some(value) = value {
            let line = text!("    {} {}", sign, Untrusted(value));
            changes.push_line(&painter.paint(style, line));
        }
    }
}
