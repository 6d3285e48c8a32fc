//! Definitions that servers have sent, in front of the pins: what is reported, and which tools clients may use.
//!
//! What is known of a tool is that of one list: of one principal, before or after the server has changed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mcp_exact_session::{Json, JsonObject, RawResult};
use mcp_exact_tool_schema::{canonical, differences};
use parking_lot::Mutex;

use crate::around::pins::{PinChange, PinCounts, PinObserver, Pins, UnpinnedTool};

/// Maximum number of tools of a server that are remembered.
pub(crate) const MAX_TOOLS: usize = 10_000;
/// Maximum number of states of the tools of a server, for all principals, with about 100 bytes each.
const MAX_STATES: usize = 5 * MAX_TOOLS;
/// Maximum number of differences of one tool in a report.
const MAX_DIFFERENCES: usize = 20;
/// Maximum length of a JSON pointer in a report, in characters.
const MAX_POINTER: usize = 200;
/// Maximum number of reported definitions that are remembered of a tool with a pin.
const MAX_REPORTED: usize = 16;
/// Maximum length of the name of a tool that is remembered, in bytes, or reported, in characters.
const MAX_NAME: usize = 200;

/// List of tools, or one page of it, that is compared with the pins.
#[derive(Debug, Clone)]
pub(crate) struct PinnedList {
    /// Principal for whom the server is asked.
    principal: Option<Arc<str>>,
    /// True for the first page, or the only one.
    is_first: bool,
    /// Number of changes of servers before the server was asked.
    asked_at: u64,
}

/// Definitions that servers have sent, in front of the pins.
#[derive(Debug)]
pub(crate) struct PinStates {
    seen: Mutex<SeenDefinitions>,
    /// Number of times that a server may have changed its tools.
    changes: AtomicU64,
    observer: Option<PinObserver>,
}

#[derive(Debug, Default)]
struct SeenDefinitions {
    /// Pins that the states are of.
    pins: Pins,
    /// Definitions by their server.
    servers: HashMap<Arc<str>, OfServer>,
    counts: PinCounts,
}

/// Definitions that one server has sent.
#[derive(Debug, Default)]
struct OfServer {
    /// Number of changes when the server was last said to have changed.
    changed_at: u64,
    /// States of its tools, by the principal for whom they were listed.
    lists: HashMap<Option<Arc<str>>, States>,
    /// Reported definitions of tools with a pin, by their hash.
    changed: HashMap<String, HashSet<u64>>,
    /// Reported definitions of tools without a pin, by their hash.
    new: HashSet<u64>,
    /// True once it was said that further definitions are not reported.
    is_full: bool,
    /// True once a list that cannot be read was reported.
    is_unreadable: bool,
}

/// States of the tools in the lists of one principal.
#[derive(Debug, Default)]
struct States {
    /// Number of lists that were begun.
    list: u64,
    tools: HashMap<String, ToolState>,
}

/// What is known of the latest definition of a tool.
#[derive(Debug, Clone, Copy)]
struct ToolState {
    /// True if the definition is the pinned one; of several definitions in one list, if all of them are.
    is_pinned: bool,
    /// Number of changes before the server was asked for the definition.
    asked_at: u64,
    /// Number of the list.
    list: u64,
}

impl PinStates {
    pub(crate) fn new(observer: Option<PinObserver>) -> Self {
        Self {
            seen: Mutex::default(),
            changes: AtomicU64::new(0),
            observer,
        }
    }

    /// Returns the number of definitions that were not the pinned ones.
    pub(crate) fn counted(&self) -> PinCounts {
        self.seen.lock().counts.clone()
    }

    /// Records that a server may have other tools now: those that were seen are seen again before they are called.
    pub(crate) fn set_changed(&self, server: &str) {
        let changed_at = self.changes.fetch_add(1, Ordering::AcqRel) + 1;
        let mut seen = self.seen.lock();
        seen.of_server(server).changed_at = changed_at;
    }

    /// Begins the comparison of a list, or of a page of it, before the server is asked for it.
    pub(crate) fn begin(&self, principal: Option<&str>, is_first: bool) -> PinnedList {
        PinnedList {
            principal: principal.map(Arc::from),
            is_first,
            asked_at: self.changes.load(Ordering::Acquire),
        }
    }

    /// Compares tools of a server with their pins, and reports those that differ. Returns those that clients may see: of two
    /// definitions with the same name neither, if one of them differs.
    pub(crate) fn look_at(
        &self,
        pins: &Pins,
        server: &str,
        list: &PinnedList,
        mut tools: Vec<JsonObject>,
    ) -> Vec<JsonObject> {
        let mut is_pinned: BTreeMap<String, bool> = BTreeMap::new();
        for tool in &tools {
            let Some(name) = name_of(tool) else { continue };
            let definition = canonical(tool);
            let pinned = pins.definition(server, &name);
            let is_same = pinned == Some(&definition);
            if !is_same && self.has_to_report(pins, (server, &name), pinned, &definition) {
                self.report(pins, (server, &name), pinned, &definition);
            }
            *is_pinned.entry(name).or_insert(true) &= is_same;
        }
        if pins.withholds() {
            tools.retain(|tool| name_of(tool).is_some_and(|name| is_pinned[&name]));
            self.record(pins, server, list, is_pinned);
        }
        tools
    }

    /// Compares the tools in a result of `tools/list` with their pins; returns the result without those that clients may not see.
    /// Entries that are no objects are none of them, and keep no other from being compared.
    pub(crate) fn look_at_list(
        &self,
        pins: &Pins,
        server: &str,
        list: &PinnedList,
        result: RawResult,
    ) -> RawResult {
        let entries = result.object().view().find("tools");
        let entries = entries.and_then(|tools| tools.decode_as::<Vec<Json>>().ok());
        let is_list = entries.is_some();
        let entries = entries.unwrap_or_default();
        let count = entries.len();
        let tools = entries.into_iter().map(JsonObject::try_from);
        let tools: Vec<JsonObject> = tools.filter_map(Result::ok).collect();
        if !is_list || tools.len() < count {
            self.report_unreadable(server);
        }
        let shown = self.look_at(pins, server, list, tools);
        if !pins.withholds() || is_list && shown.len() == count {
            return result;
        }
        let mut result = result.into_object();
        result.insert("tools", Json::from_encode(&shown));
        result.into()
    }

    /// Reports once that a list has entries that cannot be compared.
    fn report_unreadable(&self, server: &str) {
        let was_reported = {
            let mut seen = self.seen.lock();
            std::mem::replace(&mut seen.of_server(server).is_unreadable, true)
        };
        if !was_reported {
            tracing::warn!(
                server,
                "a list of tools has entries that are no definitions and cannot be compared with pins"
            );
        }
    }

    /// Records which tools have their pinned definitions.
    fn record(
        &self,
        pins: &Pins,
        server: &str,
        of: &PinnedList,
        is_pinned: BTreeMap<String, bool>,
    ) {
        let mut seen = self.seen.lock();
        seen.use_pins(pins);
        let of_server = seen.of_server(server);
        let others = of_server.lists.iter();
        let others = others.filter(|(principal, _)| **principal != of.principal);
        let count: usize = others.map(|(_, states)| states.tools.len() + 1).sum();
        if count + is_pinned.len() > MAX_STATES {
            // Whoever calls a tool that is forgotten has it listed again.
            of_server
                .lists
                .retain(|principal, _| *principal == of.principal);
        }
        let states = of_server.lists.entry(of.principal.clone()).or_default();
        states.list += u64::from(of.is_first);
        for (tool, is_pinned) in is_pinned {
            // A tool without a state cannot be called where definitions are withheld.
            if pins.definition(server, &tool).is_none()
                || tool.len() > MAX_NAME
                || states.tools.len() >= MAX_TOOLS && !states.tools.contains_key(&tool)
            {
                continue;
            }
            let (asked_at, list) = (of.asked_at, states.list);
            // Another page of the same list may have the same name.
            let known = states.tools.get(&tool);
            let earlier = known.filter(|known| known.list == list && !of.is_first);
            let state = ToolState {
                is_pinned: is_pinned && earlier.is_none_or(|earlier| earlier.is_pinned),
                asked_at,
                list,
            };
            states.tools.insert(tool, state);
        }
    }

    /// Counts a definition that is not the pinned one; returns false if it was reported before, or if the server has sent too many of
    /// tools without a pin.
    fn has_to_report(
        &self,
        pins: &Pins,
        (server, tool): (&str, &str),
        pinned: Option<&JsonObject>,
        definition: &JsonObject,
    ) -> bool {
        let mut hasher = DefaultHasher::new();
        (tool, definition.text()).hash(&mut hasher);
        let hash = hasher.finish();
        let mut seen = self.seen.lock();
        seen.use_pins(pins);
        let of_server = seen.of_server(server);
        let is_new = if pinned.is_some() {
            let reported = of_server.changed.entry(tool.to_owned()).or_default();
            if reported.len() >= MAX_REPORTED && !reported.contains(&hash) {
                reported.clear();
            }
            reported.insert(hash)
        } else if of_server.new.len() < MAX_TOOLS {
            of_server.new.insert(hash)
        } else {
            if !of_server.new.contains(&hash) && !std::mem::replace(&mut of_server.is_full, true) {
                tracing::warn!(
                    server,
                    "further definitions of tools without a pin are not reported"
                );
            }
            false
        };
        if is_new {
            let key = (server.into(), PinChange::of(pinned).name());
            *seen.counts.entry(key).or_default() += 1;
        }
        is_new
    }

    /// Reports a tool whose definition differs from the pinned one.
    fn report(
        &self,
        pins: &Pins,
        (server, tool): (&str, &str),
        pinned: Option<&JsonObject>,
        definition: &JsonObject,
    ) {
        let tool: String = tool.chars().take(MAX_NAME).collect();
        let differences = pinned.map(|pinned| differences(pinned, definition, MAX_DIFFERENCES));
        let mut differences = differences.unwrap_or_default();
        for difference in &mut differences {
            if let Some((end, _)) = difference.pointer.char_indices().nth(MAX_POINTER) {
                difference.pointer.truncate(end);
                difference.pointer.push('…');
            }
        }
        let report = UnpinnedTool {
            server,
            tool: &tool,
            change: PinChange::of(pinned),
            is_withheld: pins.withholds(),
            definition,
            differences,
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

    /// Returns true if a principal may see and call a tool: its latest definition is the pinned one, or the policy lets them.
    pub(crate) fn lets_use(
        &self,
        pins: &Pins,
        (server, tool): (&str, &str),
        principal: Option<&str>,
    ) -> bool {
        let state = || self.state_of(pins, (server, tool), principal);
        !pins.withholds() || state().is_some_and(|(state, _)| state.is_pinned)
    }

    /// Returns true if a principal may not even have tasks of a tool: it has no pin, or its latest definition is another one. A
    /// definition that was not seen yet denies nothing.
    pub(crate) fn denies_tasks(
        &self,
        pins: &Pins,
        (server, tool): (&str, &str),
        principal: Option<&str>,
    ) -> bool {
        if !pins.withholds() {
            return false;
        }
        let state = self.state_of(pins, (server, tool), principal);
        pins.definition(server, tool).is_none() || state.is_some_and(|(state, _)| !state.is_pinned)
    }

    /// Returns the number of changes so far if a tool may be one that a principal can use, but its definition was not seen since the
    /// server has changed.
    pub(crate) fn unseen_since(
        &self,
        pins: &Pins,
        (server, tool): (&str, &str),
        principal: Option<&str>,
    ) -> Option<u64> {
        if !pins.withholds() || pins.definition(server, tool).is_none() {
            return None;
        }
        let now = self.changes.load(Ordering::Acquire);
        let state = self.state_of(pins, (server, tool), principal);
        let is_seen = state.is_some_and(|(state, changed_at)| state.asked_at >= changed_at);
        (!is_seen).then_some(now)
    }

    /// Returns true if the definition of a tool was asked for after this number of changes.
    pub(crate) fn is_seen_since(
        &self,
        pins: &Pins,
        (server, tool): (&str, &str),
        principal: Option<&str>,
        changes: u64,
    ) -> bool {
        let state = self.state_of(pins, (server, tool), principal);
        state.is_some_and(|(state, _)| state.asked_at >= changes)
    }

    /// Returns the state of a tool, and when its server has changed.
    fn state_of(
        &self,
        pins: &Pins,
        (server, tool): (&str, &str),
        principal: Option<&str>,
    ) -> Option<(ToolState, u64)> {
        let seen = self.seen.lock();
        if seen.pins.definition(server, tool) != pins.definition(server, tool) {
            return None;
        }
        let of_server = seen.servers.get(server)?;
        let states = of_server.lists.get(&principal.map(Arc::from))?;
        Some((*states.tools.get(tool)?, of_server.changed_at))
    }
}

impl SeenDefinitions {
    fn of_server(&mut self, server: &str) -> &mut OfServer {
        if !self.servers.contains_key(server) {
            self.servers.insert(server.into(), OfServer::default());
        }
        self.servers.entry(server.into()).or_default()
    }

    /// Forgets the states of tools whose pins are others now.
    fn use_pins(&mut self, pins: &Pins) {
        if Arc::ptr_eq(&self.pins.servers, &pins.servers) {
            return;
        }
        if !self.pins.has_definitions_of(pins) {
            for (server, of_server) in &mut self.servers {
                let is_kept = |tool: &str| {
                    self.pins.definition(server, tool) == pins.definition(server, tool)
                };
                for states in of_server.lists.values_mut() {
                    states.tools.retain(|tool, _| is_kept(tool));
                }
                of_server.changed.retain(|tool, _| is_kept(tool));
            }
        }
        self.pins = pins.clone();
    }
}

/// Returns why definitions of a server cannot be pinned: a name that two tools have, or what the bridge does not remember; `None` if
/// they can.
pub(crate) fn reason_against_pins(definitions: &[JsonObject]) -> Option<String> {
    if definitions.len() > MAX_TOOLS {
        return Some(format!(
            "the server lists more than {MAX_TOOLS} tools, which cannot be pinned"
        ));
    }
    let mut names = HashSet::new();
    for name in definitions.iter().filter_map(name_of) {
        if name.len() > MAX_NAME {
            let begin: String = name.chars().take(MAX_NAME).collect();
            return Some(format!(
                "the server lists a tool whose name is longer than {MAX_NAME} bytes, which cannot be pinned: {begin}…"
            ));
        }
        if names.contains(&name) {
            return Some(format!(
                "the server lists two tools named {name:?}, which cannot be pinned"
            ));
        }
        names.insert(name);
    }
    None
}

/// Returns the name of a tool.
fn name_of(tool: &JsonObject) -> Option<String> {
    Some(tool.view().find("name")?.as_str()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::around::pins::PinPolicy;

    const APPROVED: &str = r#"{"name":"add","description":"Adds."}"#;
    const POISONED: &str = r#"{"name":"add","description":"Adds, and reads."}"#;

    fn object(text: &str) -> JsonObject {
        text.parse().expect("an object")
    }

    fn pins() -> Pins {
        let mut pins = Pins::new(PinPolicy::Withhold);
        pins.insert("a", "add", &object(APPROVED));
        pins
    }

    /// Lists one tool, as a whole list or as a further page.
    fn list(states: &PinStates, is_first: bool, principal: Option<&str>, tool: &str) {
        let list = states.begin(principal, is_first);
        states.look_at(&pins(), "a", &list, vec![object(tool)]);
    }

    const ADD: (&str, &str) = ("a", "add");

    /// A name in two pages of a list is trusted if both definitions are, and each list is judged alone.
    #[test]
    fn pages_are_one_list() {
        let states = PinStates::new(None);
        let lets_use = || states.lets_use(&pins(), ADD, None);
        assert!(!lets_use());
        list(&states, true, None, APPROVED);
        assert!(lets_use());
        list(&states, false, None, POISONED);
        assert!(!lets_use());
        list(&states, true, None, POISONED);
        list(&states, false, None, APPROVED);
        assert!(!lets_use());
        list(&states, true, None, APPROVED);
        assert!(lets_use());
    }

    /// A list is that of one principal, and known until the server changes.
    #[test]
    fn states_end_with_what_they_are_of() {
        let states = PinStates::new(None);
        let unseen = |principal| states.unseen_since(&pins(), ADD, principal);
        list(&states, true, Some("x"), APPROVED);
        assert_eq!(unseen(Some("x")), None);
        assert!(!states.lets_use(&pins(), ADD, Some("y")));
        let begun = states.begin(Some("x"), true);
        states.set_changed("b");
        assert_eq!(unseen(Some("x")), None);
        states.set_changed("a");
        let now = unseen(Some("x")).expect("a change");
        // An answer to what was asked before may be that of the server before the change.
        states.look_at(&pins(), "a", &begun, vec![object(APPROVED)]);
        assert!(!states.is_seen_since(&pins(), ADD, Some("x"), now));
        list(&states, true, Some("x"), APPROVED);
        assert!(states.is_seen_since(&pins(), ADD, Some("x"), now));
        assert_eq!(unseen(Some("x")), None);
    }

    /// Equal pins keep what is known, and what is not known denies no tasks.
    #[test]
    fn equal_pins_keep_states() {
        let states = PinStates::new(None);
        assert!(!states.denies_tasks(&pins(), ADD, None));
        assert!(states.denies_tasks(&pins(), ("a", "other"), None));
        list(&states, true, None, APPROVED);
        let mut more = pins();
        more.insert("a", "other", &object(POISONED));
        let begun = states.begin(None, true);
        states.look_at(&more, "a", &begun, vec![]);
        assert!(states.lets_use(&more, ADD, None));
        list(&states, true, None, POISONED);
        assert!(states.denies_tasks(&pins(), ADD, None));
        let mut others = Pins::new(PinPolicy::Withhold);
        others.insert("a", "add", &object(POISONED));
        states.look_at(&others, "a", &begun, vec![]);
        assert!(states.unseen_since(&others, ADD, None).is_some());
        assert!(!states.denies_tasks(&others, ADD, None));
    }

    /// The names in a definition, which a server chooses, make no report long.
    #[test]
    fn pointers_are_cut() {
        let pointers = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&pointers);
        let states = PinStates::new(Some(PinObserver::new(move |report| {
            let pointers = report.differences.iter();
            let pointers = pointers.map(|found| found.pointer.chars().count());
            reported.lock().extend(pointers);
        })));
        let long = format!(
            r#"{{"name":"add","description":"Adds.","{}":1}}"#,
            "ü".repeat(1000)
        );
        list(&states, true, None, &long);
        assert_eq!(*pointers.lock(), [MAX_POINTER + 1]);
    }

    /// A server with endless new tools hides neither its own changed ones nor those of other servers.
    #[test]
    fn reports_of_new_tools_are_limited_by_server() {
        let states = PinStates::new(None);
        let begun = states.begin(None, true);
        let new = |number: usize| object(&format!(r#"{{"name":"new{number}"}}"#));
        let count = |server: &str, change: &'static str| {
            let key = (Arc::from(server), change);
            states.counted().get(&key).copied().unwrap_or_default()
        };
        states.look_at(&pins(), "a", &begun, (0..MAX_TOOLS + 1).map(new).collect());
        assert_eq!(count("a", "new"), MAX_TOOLS as u64);
        states.look_at(&pins(), "a", &begun, vec![object(POISONED)]);
        assert_eq!(count("a", "changed"), 1);
        states.look_at(&pins(), "b", &begun, vec![new(0)]);
        assert_eq!(count("b", "new"), 1);
    }
}
