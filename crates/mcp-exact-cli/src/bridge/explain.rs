//! `mcp-exact bridge explain`: features that work, change or are lost for clients of each revision through the gateway.
//!
//! If a server is given, the command lists the tools, prompts and resources of the server as a client of each revision;
//! no tool is called.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use clap::Args;
use mcp_exact::transport::{ConnectionOptions, memory_pair, serve};
use mcp_exact::{Client, ClientError, Revision};
use mcp_exact_bridge::{Bridge, LossHook, SchemaObserver};
use mcp_exact_revisions::RevisionSpec;

use super::losses::Losses;
use super::matrix::Matrix;
use super::reported_losses::ReportedLossKind;
use super::setup::{GatewayArguments, Setup, format_servers};
use crate::Outcome;
use crate::client::{Settings, add_hint};
use crate::terminal::stdout;
use crate::text::{Text, Untrusted, text};

/// The arguments of `mcp-exact bridge explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  mcp-exact bridge explain --client 2024-11-05 --server 2026-07-28
  mcp-exact bridge explain --client 2024-11-05 --server https://example.com/mcp
  mcp-exact bridge explain node server.js

Exit code: 0 nothing is lost; 1 something is lost; 2 wrong usage, or the server cannot be reached.")]
pub struct Arguments {
    /// Revision of the clients; can be given more than once. Without it all revisions.
    #[arg(long, value_name = "REV")]
    client: Vec<String>,
    /// Revision of the server, or the URL of a server.
    #[arg(long, value_name = "REV|URL", conflicts_with_all = ["config", "command"])]
    server: Option<String>,
    /// Explain the servers of a configuration file: TOML, or the `mcp.json` of a client.
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    config: Option<PathBuf>,
    /// Explain the servers as with `bridge --portable-schemas`: which shapes of their schemas hosts may still refuse.
    #[arg(long, conflicts_with = "server")]
    portable_schemas: bool,
    #[command(flatten)]
    pub settings: Settings,
    /// The command that starts the server with its arguments, or its URL.
    #[arg(
        value_name = "COMMAND|URL",
        required_unless_present_any = ["server", "config"],
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

impl Arguments {
    /// Returns the arguments of a `bridge` command in front of the same servers.
    fn gateway_arguments(&self) -> GatewayArguments {
        let server = match &self.server {
            Some(url) => vec![OsString::from(url)],
            None => self.command.clone(),
        };
        GatewayArguments {
            client_revision: self.client.clone(),
            // If a list were refused, its other losses would not be listed.
            losses: Some(Losses::Report),
            config: self.config.clone(),
            portable_schemas: self.portable_schemas,
            server,
            ..GatewayArguments::new(self.settings.clone())
        }
    }
}

/// Prints the explanation for a server, or for any server of a revision.
pub async fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let gateway = arguments.gateway_arguments();
    match &arguments.server {
        Some(server) if !server.contains("://") => explain_revision(arguments, server, &gateway),
        _ => explain_server(&gateway).await,
    }
}

/// Code of the error for a method that a server does not implement (JSON-RPC 2.0, section 5.1).
const METHOD_NOT_FOUND: i64 = -32601;

/// Subjects of the losses by kind of loss; a subject is the name of a tool, prompt or resource.
type LossesByKind = Arc<Mutex<BTreeMap<ReportedLossKind, BTreeSet<String>>>>;

/// Prints, for a client of each revision, the losses in the lists of tools, prompts and resources, and the losses that
/// calls can have.
async fn explain_server(gateway: &GatewayArguments) -> anyhow::Result<Outcome> {
    let lost = LossesByKind::default();
    let mut setup = Setup::from_arguments(gateway)?;
    setup.config.check_entries()?;
    setup.is_serving = false;
    // Every loss is reported here, whatever becomes of it in the gateway.
    setup.options.rules.loss_rules.clear();
    let seen = Arc::clone(&lost);
    setup.options.on_loss = Some(LossHook::new(move |report| {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        let subjects = seen
            .entry(ReportedLossKind::from_report(report))
            .or_default();
        subjects.extend(report.loss.subject.as_deref().map(str::to_owned));
    }));
    let unportable = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&unportable);
    setup.options.on_unportable_schema = Some(SchemaObserver::new(move |report| {
        let server = match report.server {
            "" => String::new(),
            server => format!("{server}: "),
        };
        let line = format!("{server}tool `{}`: {report}", report.tool);
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.push(line);
    }));
    let offered = setup.options.downstream_offer.revisions.clone();
    let bridge = setup.connect(std::future::ready(None)).await?;
    let mut out = stdout();
    out.line(&text!("{}", Untrusted(&format_servers(&bridge, &[]))))?;
    let mut outcome = Outcome::Valid;
    for revision in offered.into_iter().rev() {
        let offers = format_offers(&bridge, revision).await?;
        let lost = std::mem::take(&mut *lost.lock().unwrap_or_else(PoisonError::into_inner));
        out.line(&text!(
            "\nclient of {}: {}",
            revision.as_str(),
            Untrusted(&offers)
        ))?;
        if let Some(client) = mcp_exact_revisions::find(revision.as_str()) {
            out.text(&format_changes(&bridge, client))?;
        }
        if lost.is_empty() {
            out.line(&"  nothing is lost in the lists".into())?;
            continue;
        }
        outcome = Outcome::Invalid;
        for (ReportedLossKind { method, member }, subjects) in lost {
            let of = match subjects.iter().next() {
                None => String::new(),
                Some(only) if subjects.len() == 1 => format!(" ({only})"),
                Some(first) => format!(" ({first} and {} more)", subjects.len() - 1),
            };
            out.line(&text!(
                "  lost: {}{}: {}",
                Untrusted(&method),
                Untrusted(&of),
                Untrusted(&member)
            ))?;
        }
    }
    let unportable =
        std::mem::take(&mut *unportable.lock().unwrap_or_else(PoisonError::into_inner));
    if !unportable.is_empty() {
        out.line(&"\nschemas that hosts may refuse, without an equivalent".into())?;
    }
    for line in unportable {
        out.line(&text!("  {}", Untrusted(&line)))?;
    }
    Ok(outcome)
}

/// Formats the features of each server that work, change, or can be lost in calls, for a client of one revision.
fn format_changes(bridge: &Bridge, client: &RevisionSpec) -> Text {
    let mut changes = Text::default();
    for (name, info) in bridge.servers() {
        let Some(info) = info else {
            continue;
        };
        if let Some(server) = mcp_exact_revisions::find(info.revision.as_str()) {
            let matrix = Matrix::for_server(&name, client, server, &info.capabilities);
            changes.push(&matrix.to_text());
        }
    }
    changes
}

/// Prints the features that work, change or are lost for clients of each revision with any server of the revision
/// `server`.
fn explain_revision(
    arguments: &Arguments,
    server: &str,
    gateway: &GatewayArguments,
) -> anyhow::Result<Outcome> {
    if arguments.settings.offered_revision()?.is_some() {
        bail!("--revision is for a server that is connected to; --server has the revision already");
    }
    let server = Settings::revision(server).context("--server is a revision, or a URL")?;
    let offered = Setup::from_arguments(gateway)?
        .options
        .downstream_offer
        .revisions;
    let spec = |revision: Revision| mcp_exact_revisions::find(revision.as_str());
    let server = spec(server).context("the revision of the server is not known")?;
    let mut out = stdout();
    let mut outcome = Outcome::Valid;
    out.line(&text!("server of {}", server.id()))?;
    for client in offered.into_iter().rev().filter_map(spec) {
        let matrix = Matrix::new(client, server);
        if !matrix.lost_features.is_empty() {
            outcome = Outcome::Invalid;
        }
        out.text(&text!("\nclient of {}\n{}", client.id(), matrix.to_text()))?;
    }
    Ok(outcome)
}

/// Returns the numbers of tools, prompts and resources that a client of a revision receives.
async fn format_offers(bridge: &Bridge, revision: Revision) -> anyhow::Result<String> {
    let (local, remote) = memory_pair(256 << 10, 4 << 20);
    let (settings, handler) = bridge.endpoint();
    tokio::spawn(async move {
        let options = ConnectionOptions::default();
        let _ = serve(settings, handler, remote, options, std::future::pending()).await;
    });
    let client = Client::over(local).revision(revision);
    let client = client
        .identity("mcp-exact", env!("CARGO_PKG_VERSION"))
        .await
        .map_err(add_hint)?;
    let capabilities = client.capabilities();
    let has = |name: &str| capabilities.get(name).is_some();
    let mut offers = Vec::new();
    let lists = [
        ("tools", "tool", client.tools()),
        ("resources", "resource", client.resources()),
        (
            "resources",
            "resource template",
            client.resource_templates(),
        ),
        ("prompts", "prompt", client.prompts()),
    ];
    for (capability, what, list) in lists {
        if has(capability) {
            let entries = match list.all().await {
                Ok(entries) => entries,
                // A capability promises no single list: many servers with resources have no templates.
                Err(ClientError::Server(error)) if error.code() == Some(METHOD_NOT_FOUND) => {
                    continue;
                }
                Err(error) => return Err(add_hint(error)),
            };
            let plural = if entries.len() == 1 { "" } else { "s" };
            offers.push(format!("{} {what}{plural}", entries.len()));
        }
    }
    client.close();
    Ok(if offers.is_empty() {
        "nothing is offered".to_owned()
    } else {
        offers.join(", ")
    })
}
