//! Tools in the configuration file: what clients see of them instead of the definitions of their servers, pinned definitions, and
//! the search.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, bail};
use mcp_exact::expand_variables;
use mcp_exact_bridge::{Catalogue, PinPolicy, ToolEntry, ToolSearch};
use mcp_exact_wire::Json;
use serde::Deserialize;
use serde_json::Value;

/// Entry `[servers.NAME.tools.TOOL]`; the name of the tool is that of the server.
#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tool {
    /// Name for clients.
    rename: Option<String>,
    /// Title for people.
    title: Option<String>,
    /// Description for models.
    description: Option<String>,
    /// True if clients neither see the tool nor can call it.
    hide: bool,
    /// Annotations that replace those of the same names.
    annotations: BTreeMap<String, toml::Value>,
    /// Arguments that every call gets, and no client can send.
    fixed: BTreeMap<String, toml::Value>,
    /// Arguments of calls that lack them.
    defaults: BTreeMap<String, toml::Value>,
}

/// Search that clients see instead of all tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Search {
    /// Patterns of the tools that clients list besides the search, by their names for clients.
    always: Vec<String>,
    /// Number of tools in an answer.
    pub(super) results: Option<usize>,
}

impl Search {
    /// Returns the search in the type of the bridge library.
    pub fn rule(&self) -> ToolSearch {
        let mut search = ToolSearch::default();
        search.always.clone_from(&self.always);
        search.results = self.results.unwrap_or(search.results);
        search
    }
}

/// Approved definitions of tools, and the policy for all others.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pinned {
    /// Lock file, which `mcp-exact bridge pin` writes.
    pub file: PathBuf,
    /// Policy for tools whose definitions are not the pinned ones.
    #[serde(default)]
    pub policy: PinnedPolicy,
}

/// Policy for tools whose definitions are not the pinned ones.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PinnedPolicy {
    /// They are reported.
    #[default]
    Report,
    /// They are reported, and clients neither see them nor can call them.
    Withhold,
}

impl From<PinnedPolicy> for PinPolicy {
    fn from(policy: PinnedPolicy) -> Self {
        match policy {
            PinnedPolicy::Report => Self::Report,
            PinnedPolicy::Withhold => Self::Withhold,
        }
    }
}

/// Adds the tools of a server to the catalogue.
pub(super) fn add_tools(
    catalogue: &mut Catalogue,
    server: &str,
    tools: BTreeMap<String, Tool>,
) -> anyhow::Result<()> {
    for (name, tool) in tools {
        let entry = tool.entry();
        let entry = entry.with_context(|| format!("servers.{server}.tools.{name}"))?;
        catalogue.insert(server, &name, entry)?;
    }
    Ok(())
}

/// Returns an error if the catalogue gives a tool a name that the search has.
pub(super) fn check_names_of_search(catalogue: &Catalogue) -> anyhow::Result<()> {
    for (_, of_server) in catalogue.servers() {
        let mut names = of_server.listed_names();
        let taken =
            |(listed, own): &(&str, &str)| listed != own && ToolSearch::NAMES.contains(listed);
        if let Some((listed, own)) = names.find(taken) {
            let key = of_server.key(own, "rename");
            bail!("{key}: {listed:?} is the name of a tool of [search]; choose another name");
        }
    }
    Ok(())
}

impl Tool {
    /// Returns the entry in the type of the library.
    fn entry(self) -> anyhow::Result<ToolEntry> {
        let mut entry = ToolEntry::default();
        entry.rename = self.rename;
        entry.title = self.title;
        entry.description = self.description;
        entry.is_hidden = self.hide;
        entry.annotations = values("annotations", self.annotations, |text| Ok(text.to_owned()))?;
        entry.fixed = values("fixed", self.fixed, expanded)?;
        entry.defaults = values("defaults", self.defaults, expanded)?;
        Ok(entry)
    }
}

/// Substitutes environment variables in a text.
fn expanded(text: &str) -> anyhow::Result<String> {
    Ok(expand_variables(text)?)
}

/// Returns the values of a table as JSON; `text_of` changes their texts.
fn values(
    key: &str,
    table: BTreeMap<String, toml::Value>,
    text_of: fn(&str) -> anyhow::Result<String>,
) -> anyhow::Result<BTreeMap<String, Json>> {
    let values = table.into_iter().map(|(name, value)| {
        let value = json(value, text_of).with_context(|| format!("{key}.{name}"))?;
        Ok((name, Json::from(value)))
    });
    values.collect()
}

/// Returns a value of the file as JSON.
fn json(value: toml::Value, text_of: fn(&str) -> anyhow::Result<String>) -> anyhow::Result<Value> {
    Ok(match value {
        toml::Value::String(text) => Value::String(text_of(&text)?),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => match serde_json::Number::from_f64(number) {
            Some(number) => number.into(),
            None => bail!("JSON has no {number}; write a finite number"),
        },
        toml::Value::Boolean(flag) => flag.into(),
        toml::Value::Datetime(time) => {
            bail!("JSON has no dates; write a string, such as \"{time}\"")
        }
        toml::Value::Array(items) => {
            let items = items.into_iter().map(|item| json(item, text_of));
            Value::Array(items.collect::<anyhow::Result<_>>()?)
        }
        toml::Value::Table(members) => {
            let members = members.into_iter();
            let members = members.map(|(name, member)| Ok((name, json(member, text_of)?)));
            Value::Object(members.collect::<anyhow::Result<_>>()?)
        }
    })
}
