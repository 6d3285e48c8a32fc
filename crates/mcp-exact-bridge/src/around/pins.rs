//! Pinned definitions: tools that somebody has approved as they are, and what becomes of those that differ.
//!
//! Definitions are compared as their server sends them, before conversions, in their canonical form.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use mcp_exact_session::JsonObject;
use mcp_exact_tool_schema::{Difference, canonical};

/// Number of differences in the text of a report.
const SHOWN_DIFFERENCES: usize = 3;

/// What becomes of a tool whose definition is not the pinned one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PinPolicy {
    /// It is reported, and clients use it.
    #[default]
    Report,
    /// It is reported, and clients neither see it nor can call it.
    Withhold,
}

/// Definitions of tools that somebody has approved, by server and tool, and the policy for all others. Clones share the
/// definitions.
#[derive(Debug, Clone, Default)]
pub struct Pins {
    pub(super) policy: PinPolicy,
    pub(super) servers: Arc<BTreeMap<String, BTreeMap<String, JsonObject>>>,
}

impl Pins {
    /// Creates pins without a definition: every tool is new.
    pub fn new(policy: PinPolicy) -> Self {
        Self {
            policy,
            servers: Arc::default(),
        }
    }

    /// Pins the definition of a tool, as its server sends it.
    pub fn insert(&mut self, server: &str, tool: &str, definition: &JsonObject) {
        let servers = Arc::make_mut(&mut self.servers);
        let of_server = servers.entry(server.to_owned()).or_default();
        of_server.insert(tool.to_owned(), canonical(definition));
    }

    /// Returns the pinned definition of a tool.
    pub(super) fn definition(&self, server: &str, tool: &str) -> Option<&JsonObject> {
        self.servers.get(server)?.get(tool)
    }

    /// Returns true if clients get no tool whose definition is not the pinned one.
    pub(crate) fn withholds(&self) -> bool {
        self.policy == PinPolicy::Withhold
    }

    /// Returns true if the same definitions are pinned.
    pub(crate) fn has_definitions_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.servers, &other.servers) || self.servers == other.servers
    }
}

/// Change of a tool against its pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PinChange {
    /// The definition is another one than the pinned one.
    Changed,
    /// No definition of the tool is pinned.
    New,
}

impl PinChange {
    pub(super) fn of(pinned: Option<&JsonObject>) -> Self {
        match pinned {
            Some(_) => Self::Changed,
            None => Self::New,
        }
    }

    /// Returns a short stable name: `changed` or `new`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::New => "new",
        }
    }
}

/// Tool whose definition is not the pinned one. `Display` writes the first differences in one line.
#[derive(Debug)]
#[non_exhaustive]
pub struct UnpinnedTool<'a> {
    /// Name of the server in the configuration; empty if there is only one server.
    pub server: &'a str,
    /// Name of the tool, as the server has it.
    pub tool: &'a str,
    /// What is different about it.
    pub change: PinChange,
    /// True if clients neither see the tool nor can call it.
    pub is_withheld: bool,
    /// Definition that the server sends, in its canonical form.
    pub definition: &'a JsonObject,
    /// First differences from the pinned definition; none of a new tool.
    pub differences: Vec<Difference>,
}

impl fmt::Display for UnpinnedTool<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.differences.is_empty() {
            return f.write_str("its definition is not pinned");
        }
        let shown: Vec<String> = self
            .differences
            .iter()
            .take(SHOWN_DIFFERENCES)
            .map(Difference::to_string)
            .collect();
        f.write_str(&shown.join("; "))?;
        match self.differences.len().saturating_sub(SHOWN_DIFFERENCES) {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

/// Function that the bridge calls for each definition that is not the pinned one, once while it stays the same, as for an audit
/// log. The function must not block.
#[derive(Clone)]
pub struct PinObserver(pub(super) Arc<dyn Fn(&UnpinnedTool<'_>) + Send + Sync>);

impl PinObserver {
    /// Creates an observer from a function.
    pub fn new(observer: impl Fn(&UnpinnedTool<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(observer))
    }
}

impl fmt::Debug for PinObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PinObserver")
    }
}

/// Number of definitions that were not the pinned ones, by the name of their server and [`PinChange::name`].
pub type PinCounts = BTreeMap<(Arc<str>, &'static str), u64>;
