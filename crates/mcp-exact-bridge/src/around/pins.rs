//! Pinned definitions: tools that somebody has approved as they are, and what becomes of those that differ.
//!
//! Definitions are compared as their server sends them, before conversions, in their canonical form.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use mcp_exact_session::{Json, JsonObject, RawResult};
use mcp_exact_tool_schema::{Difference, canonical, differences};
use parking_lot::Mutex;

/// Maximum number of tools of a server that are remembered.
pub(crate) const MAX_TOOLS: usize = 10_000;
/// Maximum number of differences of one tool in a report.
const MAX_DIFFERENCES: usize = 20;
/// Number of differences in the text of a report.
const SHOWN_DIFFERENCES: usize = 3;
/// Maximum length of the name of a tool that is remembered, in bytes, or reported, in characters.
const MAX_NAME: usize = 200;

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
    policy: PinPolicy,
    servers: Arc<BTreeMap<String, BTreeMap<String, JsonObject>>>,
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
    fn definition(&self, server: &str, tool: &str) -> Option<&JsonObject> {
        self.servers.get(server)?.get(tool)
    }

    /// Returns true if both are the same pins, and not only equal ones.
    fn is(&self, other: &Self) -> bool {
        self.policy == other.policy && Arc::ptr_eq(&self.servers, &other.servers)
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
    fn of(pinned: Option<&JsonObject>) -> Self {
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
pub struct PinObserver(Arc<dyn Fn(&UnpinnedTool<'_>) + Send + Sync>);

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

/// Definitions that servers have sent, in front of the pins.
#[derive(Debug)]
pub(crate) struct PinStates {
    seen: Mutex<SeenDefinitions>,
    observer: Option<PinObserver>,
}

#[derive(Debug, Default)]
struct SeenDefinitions {
    /// Pins that the states are of.
    pins: Pins,
    /// Whether the latest definition of a tool is the pinned one, by server and tool.
    is_pinned: HashMap<Arc<str>, HashMap<String, bool>>,
    /// Definitions that were reported, by their hash.
    reported: HashSet<u64>,
    counts: PinCounts,
}

impl PinStates {
    pub(crate) fn new(observer: Option<PinObserver>) -> Self {
        let seen = Mutex::default();
        Self { seen, observer }
    }

    /// Returns the number of definitions that were not the pinned ones.
    pub(crate) fn counted(&self) -> PinCounts {
        self.seen.lock().counts.clone()
    }

    /// Compares tools of a server with their pins, and reports those that differ. Returns those that clients may see: of two
    /// definitions with the same name neither, if one of them differs.
    pub(crate) fn look_at(
        &self,
        pins: &Pins,
        server: &str,
        mut tools: Vec<JsonObject>,
    ) -> Vec<JsonObject> {
        let server: Arc<str> = server.into();
        let mut is_pinned: BTreeMap<String, bool> = BTreeMap::new();
        for tool in &tools {
            let Some(name) = name_of(tool) else { continue };
            let definition = canonical(tool);
            let pinned = pins.definition(&server, &name);
            let is_same = pinned == Some(&definition);
            if !is_same && self.is_new(pins, (&server, &name), pinned, &definition) {
                self.report(pins, (&server, &name), pinned, &definition);
            }
            *is_pinned.entry(name).or_insert(true) &= is_same;
        }
        if pins.policy == PinPolicy::Withhold {
            tools.retain(|tool| name_of(tool).is_some_and(|name| is_pinned[&name]));
        }
        self.record(pins, &server, is_pinned);
        tools
    }

    /// Compares the tools in a result of `tools/list` with their pins; returns the result without those that clients may not see.
    pub(crate) fn look_at_list(&self, pins: &Pins, server: &str, list: RawResult) -> RawResult {
        let tools = list.object().view().find("tools");
        let tools = tools.and_then(|tools| tools.decode_as::<Vec<JsonObject>>().ok());
        let Some(tools) = tools else {
            // A list that cannot be read cannot be compared.
            return match pins.policy {
                PinPolicy::Report => list,
                PinPolicy::Withhold => without_tools(list),
            };
        };
        let count = tools.len();
        let shown = self.look_at(pins, server, tools);
        if shown.len() == count {
            return list;
        }
        let mut list = list.into_object();
        list.insert("tools", Json::from_encode(&shown));
        list.into()
    }

    /// Records which tools have their pinned definitions.
    fn record(&self, pins: &Pins, server: &Arc<str>, is_pinned: BTreeMap<String, bool>) {
        let mut seen = self.seen.lock();
        seen.use_pins(pins);
        let states = seen.is_pinned.entry(Arc::clone(server)).or_default();
        for (tool, is_pinned) in is_pinned {
            // A tool without a state cannot be called where definitions are withheld.
            if tool.len() > MAX_NAME {
                continue;
            }
            if states.len() < MAX_TOOLS || states.contains_key(&tool) {
                states.insert(tool, is_pinned);
            }
        }
    }

    /// Counts a definition that is not the pinned one; returns false if it was counted before.
    fn is_new(
        &self,
        pins: &Pins,
        (server, tool): (&Arc<str>, &str),
        pinned: Option<&JsonObject>,
        definition: &JsonObject,
    ) -> bool {
        let mut hasher = DefaultHasher::new();
        (server, tool, definition.text()).hash(&mut hasher);
        let mut seen = self.seen.lock();
        seen.use_pins(pins);
        let is_new = seen.reported.len() < MAX_TOOLS && seen.reported.insert(hasher.finish());
        if is_new {
            let key = (Arc::clone(server), PinChange::of(pinned).name());
            *seen.counts.entry(key).or_default() += 1;
        }
        is_new
    }

    /// Reports a tool whose definition is not the pinned one.
    fn report(
        &self,
        pins: &Pins,
        (server, tool): (&str, &str),
        pinned: Option<&JsonObject>,
        definition: &JsonObject,
    ) {
        let tool: String = tool.chars().take(MAX_NAME).collect();
        let differences = pinned.map(|pinned| differences(pinned, definition, MAX_DIFFERENCES));
        let report = UnpinnedTool {
            server,
            tool: &tool,
            change: PinChange::of(pinned),
            is_withheld: pins.policy == PinPolicy::Withhold,
            definition,
            differences: differences.unwrap_or_default(),
        };
        let becomes = if report.is_withheld {
            "a tool is withheld, because its definition is not the pinned one"
        } else {
            "the definition of a tool is not the pinned one"
        };
        tracing::warn!(server, tool, difference = %report, "{becomes}");
        if let Some(PinObserver(observer)) = &self.observer {
            observer(&report);
        }
    }

    /// Returns true if clients may see and call a tool: its latest definition is the pinned one, or the policy lets them.
    pub(crate) fn lets_use(&self, pins: &Pins, server: &str, tool: &str) -> bool {
        pins.policy == PinPolicy::Report || self.state_of(pins, server, tool) == Some(true)
    }

    /// Returns true if a tool may be one that clients can use, but its definition was not seen yet.
    pub(crate) fn is_unseen(&self, pins: &Pins, server: &str, tool: &str) -> bool {
        pins.policy == PinPolicy::Withhold
            && pins.definition(server, tool).is_some()
            && self.state_of(pins, server, tool).is_none()
    }

    fn state_of(&self, pins: &Pins, server: &str, tool: &str) -> Option<bool> {
        let seen = self.seen.lock();
        let states = seen.is_pinned.get(server).filter(|_| seen.pins.is(pins))?;
        states.get(tool).copied()
    }
}

impl SeenDefinitions {
    /// Forgets the states of tools if they are of other pins.
    fn use_pins(&mut self, pins: &Pins) {
        if !self.pins.is(pins) {
            self.pins = pins.clone();
            self.is_pinned.clear();
            self.reported.clear();
        }
    }
}

/// Returns the name of a tool.
fn name_of(tool: &JsonObject) -> Option<String> {
    Some(tool.view().find("name")?.as_str()?.into_owned())
}

/// Returns a result of `tools/list` without tools.
fn without_tools(list: RawResult) -> RawResult {
    let mut list = list.into_object();
    list.insert("tools", Json::from_encode(&Vec::<Json>::new()));
    list.into()
}
