//! Configuration of `mcp-exact bridge`: a TOML file with everything, or the `mcp.json` of a client with its servers alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use mcp_exact::{ServerAddress, ServerEntry};
use mcp_exact_bridge::{AccessRule, Prefix, Upstream};
use serde::Deserialize;

use super::Losses;

/// Settings of a file. What the command line says counts before.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    pub listen: Option<String>,
    pub allow_host: Vec<String>,
    pub allow_origin: Vec<String>,
    pub client_revision: Vec<String>,
    pub losses: Option<Losses>,
    prefix: Prefixed,
    servers: BTreeMap<String, Server>,
    access: Vec<Access>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Prefixed {
    #[default]
    Always,
    OnConflict,
    Never,
}

#[derive(Debug, Default, Deserialize)]
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

#[derive(Debug, Default, Deserialize)]
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
    /// Reads a file. A file that begins with `{` has the form of `mcp.json`.
    pub fn read(path: &Path) -> anyhow::Result<(Self, Servers)> {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let read = if text.trim_start().starts_with('{') {
            entries(&text).map(|servers| (Self::default(), servers))
        } else {
            Self::of_toml(&text)
        };
        let (config, entries) = read.with_context(|| path.display().to_string())?;
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

    pub fn access(&mut self) -> Vec<AccessRule> {
        let rules = std::mem::take(&mut self.access).into_iter();
        let rules = rules.map(|of_file| {
            let mut rule = AccessRule::default();
            rule.servers = of_file.servers;
            rule.principals = of_file.principals;
            rule.allow = of_file.allow;
            rule.deny = of_file.deny;
            rule
        });
        rules.collect()
    }
}

/// Reads the entries of a file in the form of `mcp.json`.
fn entries(text: &str) -> anyhow::Result<BTreeMap<String, ServerEntry>> {
    let entries = ServerEntry::read_all(text)?.into_iter();
    let entries = entries.map(|(name, entry)| {
        let entry = entry.with_context(|| format!("server {name:?}"))?;
        Ok((name, entry))
    });
    entries.collect()
}

/// Servers of a file, by name.
pub type Servers = Vec<(String, Arc<dyn Upstream>)>;

fn addresses(entries: BTreeMap<String, ServerEntry>) -> anyhow::Result<Servers> {
    let mut servers = Servers::new();
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
        servers.push((name, upstream));
    }
    if servers.is_empty() {
        bail!("there is no server; add one, such as `[servers.files]` with `command = \"…\"`");
    }
    Ok(servers)
}
