//! Tools whose parameters are mirrored into headers, as a client over Streamable HTTP sees them (2026-07-28,
//! `basic/transports/streamable-http`, "Custom Headers from Tool Parameters").
//!
//! Learns them from every `tools/list` that is answered, takes tools that break a rule out of the list, and asks once more
//! when a server refuses the headers of a call. On other bindings, and in older revisions, it does nothing.

use std::collections::BTreeMap;

use mcp_exact_wire::{Json, JsonObject, from_str};

use super::call::Own;
use super::negotiate::NegotiatedSession;
use super::{ClientEndpoint, ClientEvent, Purpose};
use crate::error::{PeerError, SendError, Violation};
use crate::http::{Mirrored, mirrored, param_headers};
use crate::limits::Limit;
use crate::message;
use crate::outbox::Address;
use crate::pending::NewRequest;
use crate::revision::{Lifecycle, Rules};
use crate::types::{Binding, Outcome, RawResult, RequestKey};

/// Pages of a list that are looked through for one tool.
const MAX_PAGES: u32 = 100;

/// The tools with mirrored parameters that are remembered.
#[derive(Debug, Default)]
pub(super) struct Tools {
    known: BTreeMap<String, Known>,
    /// How many lists were begun: what an older one has named goes first.
    lists: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Known {
    list: u64,
    parameters: Vec<Mirrored>,
    bytes: usize,
}

/// A call whose headers were refused, while the list is asked for again.
#[derive(Debug)]
pub(super) struct Relist {
    method: String,
    own: Own,
    error: PeerError,
    tool: String,
    pages: u32,
}

impl Tools {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    fn forget(&mut self, name: &str) {
        if let Some(known) = self.known.remove(name) {
            self.bytes -= known.bytes;
        }
    }

    /// Remembers a tool; whether there is room for it.
    fn remember(&mut self, name: &str, parameters: Vec<Mirrored>, most: usize) -> bool {
        self.forget(name);
        if parameters.is_empty() {
            return true;
        }
        let of = |mirrored: &Mirrored| {
            let path: usize = mirrored.path.iter().map(String::len).sum();
            mirrored.header.len() + path + size_of::<Mirrored>()
        };
        let bytes = name.len() + size_of::<Known>() + parameters.iter().map(of).sum::<usize>();
        while self.bytes + bytes > most {
            let mut all = self.known.iter();
            let older = all.find(|(_, known)| known.list < self.lists);
            let Some(older) = older.map(|(name, _)| name.clone()) else {
                return false;
            };
            self.forget(&older);
        }
        self.bytes += bytes;
        let known = Known {
            list: self.lists,
            parameters,
            bytes,
        };
        self.known.insert(name.to_owned(), known);
        true
    }
}

impl ClientEndpoint {
    fn mirrors(&self, rules: &Rules) -> bool {
        self.binding == Binding::StreamableHttp && rules.lifecycle() == Lifecycle::Discover
    }

    /// The headers of a call, encoded.
    pub(super) fn mirrored_headers(
        &self,
        rules: &Rules,
        method: &str,
        params: Option<&JsonObject>,
    ) -> Result<Vec<(String, String)>, SendError> {
        if method != "tools/call" || !self.mirrors(rules) {
            return Ok(Vec::new());
        }
        let known = tool_of(params).and_then(|name| self.tools.known.get(&name));
        let Some(known) = known else {
            return Ok(Vec::new());
        };
        let arguments = params.and_then(|params| params.get("arguments"));
        let arguments = arguments.and_then(|arguments| JsonObject::try_from(arguments).ok());
        param_headers(&known.parameters, arguments.as_ref()).map_err(|error| SendError::Params {
            method: method.to_owned(),
            reason: error.message().to_owned(),
        })
    }

    /// Learns the tools of a list, and gives the list without those that may not be called.
    pub(super) fn listed(&mut self, own: &Own, result: RawResult) -> RawResult {
        if !self.mirrors(own.rules) {
            return result;
        }
        if own
            .params
            .as_ref()
            .is_none_or(|p| p.get("cursor").is_none())
        {
            self.tools.lists += 1;
        }
        self.learn(result)
    }

    fn learn(&mut self, result: RawResult) -> RawResult {
        let tools = result.object().get("tools");
        let Some(tools) = tools.and_then(|tools| from_str::<Vec<Json>>(tools.text()).ok()) else {
            return result;
        };
        let before = tools.len();
        let mut kept = Vec::with_capacity(before);
        for tool in tools {
            match self.learn_tool(&tool) {
                Ok(()) => kept.push(tool),
                Err(violation) => self.violation(violation),
            }
        }
        if kept.len() == before {
            return result;
        }
        let mut object = result.into_object();
        object.insert("tools", Json::from_encode(&kept));
        RawResult::from(object)
    }

    fn learn_tool(&mut self, tool: &Json) -> Result<(), Violation> {
        let Ok(tool) = JsonObject::try_from(tool.clone()) else {
            return Ok(());
        };
        let name = tool
            .get("name")
            .and_then(|n| from_str::<String>(n.text()).ok());
        let schema = tool.get("inputSchema");
        let schema = schema.and_then(|schema| JsonObject::try_from(schema).ok());
        let (Some(name), Some(schema)) = (name, schema) else {
            return Ok(());
        };
        match mirrored(&schema) {
            Ok(parameters) => {
                let most = self.config.limits.tool_bytes;
                let room = self.tools.remember(&name, parameters, most);
                room.then_some(()).ok_or(Violation::Limit(Limit::ToolBytes))
            }
            Err(reason) => {
                self.tools.forget(&name);
                Err(Violation::Tool { name, reason })
            }
        }
    }

    /// A call whose headers were refused: the list is asked for again, once (the same page, "Client Behavior"). Gives the
    /// request back when there is nothing to try.
    pub(super) fn relist(
        &mut self,
        key: RequestKey,
        method: String,
        mut own: Own,
        error: PeerError,
    ) -> Option<PeerError> {
        let spoken = self.state.spoken().map(std::sync::Arc::clone);
        let spoken = spoken.filter(|spoken| self.mirrors(spoken.rules));
        let tool = tool_of(own.params.as_ref());
        let (Some(spoken), Some(tool), "tools/call", false) =
            (spoken, tool, &*method, own.relisted)
        else {
            return Some(error);
        };
        own.relisted = true;
        self.tools.lists += 1;
        let relist = Relist {
            method,
            own,
            error,
            tool,
            pages: 0,
        };
        self.ask_for_page(key, relist, None, &spoken);
        None
    }

    fn ask_for_page(
        &mut self,
        key: RequestKey,
        relist: Relist,
        cursor: Option<Json>,
        spoken: &NegotiatedSession,
    ) {
        let stream = self.outgoing();
        let timeout = relist
            .own
            .options
            .timeout
            .unwrap_or(self.config.request_timeout);
        let mut params = JsonObject::new();
        if let Some(sender) = &spoken.sender {
            params.insert("_meta", sender.meta().clone());
        }
        if let Some(cursor) = cursor {
            params.insert("cursor", cursor);
        }
        let (method, to) = ("tools/list", Address::on(stream).about(key));
        let to = self.with_hints(to, spoken.rules, method, Some(&params));
        let opening = NewRequest {
            key,
            method: method.to_owned(),
            stream,
            timeout,
            progress: false,
            purpose: Purpose::Relist(Box::new(relist)),
        };
        let id = self.sent.open(opening, self.now);
        let bytes = message::request(id, method, Some(&params));
        self.outbox.frame(to, bytes);
    }

    /// A page of the list is there: the call is sent again when its tool is on it.
    pub(super) fn relisted(&mut self, key: RequestKey, mut relist: Relist, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Result(page) => {
                let spoken = self.state.spoken().map(std::sync::Arc::clone);
                let page = self.learn(page);
                let next = page.object().get("nextCursor");
                relist.pages += 1;
                match (spoken, next) {
                    (Some(spoken), _) if names(&page, &relist.tool) => {
                        return self.call_again(key, relist, &spoken);
                    }
                    (Some(spoken), Some(next)) if relist.pages < MAX_PAGES => {
                        return self.ask_for_page(key, relist, Some(next), &spoken);
                    }
                    _ => Outcome::Error(relist.error),
                }
            }
            Outcome::Error(_) => Outcome::Error(relist.error),
            other => other,
        };
        self.events.push_back(ClientEvent::Completed(key, outcome));
    }

    fn call_again(&mut self, key: RequestKey, relist: Relist, spoken: &NegotiatedSession) {
        let Relist {
            method, own, error, ..
        } = relist;
        match self.mirrored_headers(spoken.rules, &method, own.params.as_ref()) {
            Ok(_) => self.send_round(key, &method, own, spoken),
            Err(_) => {
                let outcome = Outcome::Error(error);
                self.events.push_back(ClientEvent::Completed(key, outcome));
            }
        }
    }
}

fn tool_of(params: Option<&JsonObject>) -> Option<String> {
    from_str(params?.get("name")?.text()).ok()
}

/// Whether a tool of this name is on a page.
fn names(page: &RawResult, name: &str) -> bool {
    let tools = page.object().get("tools");
    let tools = tools.and_then(|tools| from_str::<Vec<JsonObject>>(tools.text()).ok());
    let named = |tool: &JsonObject| tool_of(Some(tool)).is_some_and(|known| known == name);
    tools.unwrap_or_default().iter().any(named)
}
