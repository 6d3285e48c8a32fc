//! Configuration of `mcp-exact bridge`: a TOML file with all settings, or the `mcp.json` of a client with servers only.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use mcp_exact::{ServerAddress, ServerEntry};
use mcp_exact_bridge::{AccessRule, LossRule, Prefix, PrincipalLimits, Upstream};
use serde::Deserialize;

use super::{Losses, audit};

/// Settings of a configuration file, which the command line overrides.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    pub listen: Option<String>,
    pub allow_host: Vec<String>,
    pub allow_origin: Vec<String>,
    pub client_revision: Vec<String>,
    pub losses: Option<Losses>,
    pub losses_in_meta: bool,
    pub metrics: bool,
    pub audit: Option<PathBuf>,
    pub audit_arguments: audit::Arguments,
    /// Seconds that calls in flight may take after the process was asked to end.
    pub drain: Option<u64>,
    pub auth: Option<Auth>,
    prefix: Prefixed,
    limits: Option<Limits>,
    loss: Vec<Loss>,
    servers: BTreeMap<String, Server>,
    access: Vec<Access>,
}

/// Authorization server whose tokens clients must present.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// Issuer of the tokens.
    pub issuer: String,
    /// Public URL of the bridge, as clients write it.
    pub resource: String,
    /// Scopes that every request requires.
    #[serde(default)]
    pub scopes: Vec<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Limits {
    per_second: Option<f64>,
    burst: u32,
    concurrent: Option<usize>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Loss {
    #[serde(rename = "match")]
    patterns: Vec<String>,
    policy: Losses,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Prefixed {
    #[default]
    Always,
    OnConflict,
    Never,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Server {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    disabled: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Access {
    servers: Vec<String>,
    principals: Vec<String>,
    allow: Vec<String>,
    deny: Vec<String>,
}

impl From<Server> for ServerEntry {
    fn from(server: Server) -> Self {
        let mut entry = Self::default();
        entry.command = server.command;
        entry.args = server.args;
        entry.env = server.env;
        entry.cwd = server.cwd;
        entry.url = server.url;
        entry.headers = server.headers;
        entry.kind = server.kind;
        entry.disabled = server.disabled;
        entry
    }
}

impl Config {
    /// Reads a configuration file. A file that starts with `{` is parsed as `mcp.json`.
    pub fn read(path: &Path) -> anyhow::Result<(Self, Vec<ConfiguredServer>)> {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let read = if text.trim_start().starts_with('{') {
            entries(&text).map(|servers| (Self::default(), servers))
        } else {
            Self::of_toml(&text)
        };
        let (config, entries) = read.with_context(|| path.display().to_string())?;
        config.check().with_context(|| path.display().to_string())?;
        let servers = addresses(entries).with_context(|| path.display().to_string())?;
        Ok((config, servers))
    }

    fn of_toml(text: &str) -> anyhow::Result<(Self, BTreeMap<String, ServerEntry>)> {
        let mut config: Self = toml::from_str(text)?;
        let servers = std::mem::take(&mut config.servers);
        let entries = servers
            .into_iter()
            .map(|(name, server)| (name, server.into()));
        let entries = entries.collect();
        Ok((config, entries))
    }

    pub fn prefix(&self) -> Prefix {
        match self.prefix {
            Prefixed::Always => Prefix::Always,
            Prefixed::OnConflict => Prefix::OnConflict,
            Prefixed::Never => Prefix::Never,
        }
    }

    pub fn access(&self) -> Vec<AccessRule> {
        let rules = self.access.iter();
        let rules = rules.map(|of_file| {
            let mut rule = AccessRule::default();
            rule.servers.clone_from(&of_file.servers);
            rule.principals.clone_from(&of_file.principals);
            rule.allow.clone_from(&of_file.allow);
            rule.deny.clone_from(&of_file.deny);
            rule
        });
        rules.collect()
    }

    pub fn loss_rules(&self) -> Vec<LossRule> {
        let rules = self.loss.iter();
        let rules = rules.map(|rule| LossRule::new(&rule.patterns, rule.policy.into()));
        rules.collect()
    }

    pub fn limits(&self) -> Option<PrincipalLimits> {
        let of_file = self.limits?;
        let mut limits = PrincipalLimits::default();
        limits.per_second = of_file.per_second;
        limits.burst = of_file.burst;
        limits.concurrent = of_file.concurrent;
        Some(limits)
    }

    /// Returns an error that names invalid values.
    fn check(&self) -> anyhow::Result<()> {
        let limits = self.limits.unwrap_or_default();
        if limits
            .per_second
            .is_some_and(|rate| !(rate.is_finite() && rate > 0.0))
        {
            bail!("[limits] per-second: write a number above 0, such as `per-second = 10`");
        }
        if limits.concurrent == Some(0) {
            bail!("[limits] concurrent: write a number above 0, such as `concurrent = 8`");
        }
        if limits.burst > 0 && limits.per_second.is_none() {
            bail!("[limits] burst is for requests per second: add `per-second = 10`");
        }
        Ok(())
    }

    /// Returns the settings that differ from those of another configuration and that require a restart.
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        let settings = [
            ("listen", self.listen != other.listen),
            ("allow-host", self.allow_host != other.allow_host),
            ("allow-origin", self.allow_origin != other.allow_origin),
            (
                "client-revision",
                self.client_revision != other.client_revision,
            ),
            ("prefix", self.prefix != other.prefix),
            (
                "losses-in-meta",
                self.losses_in_meta != other.losses_in_meta,
            ),
            ("metrics", self.metrics != other.metrics),
            ("audit", self.audit != other.audit),
            (
                "audit-arguments",
                self.audit_arguments != other.audit_arguments,
            ),
            ("drain", self.drain != other.drain),
            ("auth", self.auth != other.auth),
        ];
        let changed = settings.into_iter().filter(|(_, is_other)| *is_other);
        changed.map(|(name, _)| name).collect()
    }
}

/// Parses the entries of a file in `mcp.json` format.
fn entries(text: &str) -> anyhow::Result<BTreeMap<String, ServerEntry>> {
    let entries = ServerEntry::read_all(text)?.into_iter();
    let entries = entries.map(|(name, entry)| {
        let entry = entry.with_context(|| format!("server {name:?}"))?;
        Ok((name, entry))
    });
    entries.collect()
}

/// A server that a configuration file defines.
#[derive(Clone)]
pub struct ConfiguredServer {
    pub name: String,
    /// Entry of the server in the file.
    pub entry: ServerEntry,
    pub upstream: Arc<dyn Upstream>,
}

fn addresses(entries: BTreeMap<String, ServerEntry>) -> anyhow::Result<Vec<ConfiguredServer>> {
    let mut servers = Vec::new();
    for (name, entry) in entries {
        if entry.disabled {
            continue;
        }
        let address = entry.address();
        let upstream: Arc<dyn Upstream> =
            match address.with_context(|| format!("server {name:?}"))? {
                ServerAddress::Command(command) => Arc::new(command),
                ServerAddress::Http(endpoint) => Arc::new(endpoint),
                _ => bail!("server {name:?}: its transport is not known here"),
            };
        servers.push(ConfiguredServer {
            name,
            entry,
            upstream,
        });
    }
    if servers.is_empty() {
        bail!("there is no server; add one, such as `[servers.files]` with `command = \"…\"`");
    }
    Ok(servers)
}
