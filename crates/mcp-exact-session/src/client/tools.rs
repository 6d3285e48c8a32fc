//! Tools whose parameters a Streamable HTTP client mirrors into headers (2026-07-28, `basic/transports/streamable-http`, "Custom
//! Headers from Tool Parameters").
//!
//! The client records these tools from every tool list, removes tools that break a rule from the list, and requests the list
//! again if a server refuses the headers of a call. Other bindings and older revisions have no mirrored parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::{Json, JsonObject, JsonRef};

use super::outbound::{OutboundRequest, Phase, Relisting};
use super::session::{NegotiatedSession, text_of};
use super::{ClientEndpoint, Purpose};
use crate::core::{Frame, NewRequest};
use crate::error::{PeerError, SendError, Violation};
use crate::header_mirroring::mirrored_within;
use crate::http::{Mirrored, param_headers};
use crate::limits::Limit;
use crate::message;
use crate::outcome::{Outcome, RawResult};
use crate::rules::client_request;
use crate::stream::{Binding, RequestKey};

/// Method that lists tools.
const LIST: &str = "tools/list";
/// Maximum number of pages of a list that are searched for one tool.
const MAX_PAGES: u32 = 100;

/// Tools with mirrored parameters.
#[derive(Debug, Default)]
pub(super) struct Tools {
    known: BTreeMap<String, KnownTool>,
    /// Number of lists that were begun. Tools of older lists are forgotten when there is no room.
    lists: u64,
    /// Number of the latest list for which the tools of all older lists were forgotten.
    cleared: u64,
    bytes: usize,
}

#[derive(Debug)]
struct KnownTool {
    list: u64,
    parameters: Vec<Mirrored>,
    bytes: usize,
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

    /// Remembers a new tool; returns false if there is no room for the tool.
    fn remember(&mut self, name: &str, parameters: Vec<Mirrored>, limit: usize) -> bool {
        if parameters.is_empty() {
            return true;
        }
        let parameters_bytes = parameters.iter().map(Mirrored::size).sum::<usize>();
        let bytes = name.len() + size_of::<KnownTool>() + parameters_bytes;
        if self.bytes + bytes > limit {
            self.forget_older();
        }
        if self.bytes + bytes > limit {
            return false;
        }
        self.bytes += bytes;
        let known = KnownTool {
            list: self.lists,
            parameters,
            bytes,
        };
        self.known.insert(name.to_owned(), known);
        true
    }

    /// Forgets the tools of all lists except the latest list; runs at most once per list.
    fn forget_older(&mut self) {
        if self.cleared == self.lists {
            return;
        }
        self.cleared = self.lists;
        self.known.retain(|_, known| known.list == self.lists);
        self.bytes = self.known.values().map(|known| known.bytes).sum();
    }
}

impl ClientEndpoint {
    fn mirrors(&self, spec: &RevisionSpec) -> bool {
        self.core.binding == Binding::StreamableHttp && spec.has_http_header_mirroring()
    }

    /// Returns the encoded headers of a call.
    pub(super) fn mirrored_headers(
        &self,
        spec: &RevisionSpec,
        method: &str,
        params: Option<&JsonObject>,
    ) -> Result<Vec<(String, String)>, SendError> {
        let calls = client_request(method, spec).is_some_and(|rule| rule.mirrors_params);
        if !calls || !self.mirrors(spec) {
            return Ok(Vec::new());
        }
        let known = tool_of(params).and_then(|name| self.tools.known.get(&name));
        let Some(known) = known else {
            return Ok(Vec::new());
        };
        let arguments = params.and_then(|params| params.view().find("arguments")?.object());
        let arguments = arguments.map(|arguments| arguments.to_object());
        let headers = param_headers(&known.parameters, arguments.as_ref());
        headers.map_err(|refusal| SendError::Params {
            method: method.to_owned(),
            reason: refusal.to_string(),
        })
    }

    /// Records the tools of a list, and returns the list without the tools that must not be called.
    pub(super) fn listed(&mut self, outbound: &OutboundRequest, result: RawResult) -> RawResult {
        let rule = client_request(&outbound.method, outbound.spec);
        if !self.mirrors(outbound.spec) || !rule.is_some_and(|rule| rule.lists_tools) {
            return result;
        }
        let params = outbound.params.as_ref();
        let next_page = params.is_some_and(|params| params.view().find("cursor").is_some());
        if !next_page {
            self.tools.lists += 1;
        }
        self.learn(result)
    }

    fn learn(&mut self, result: RawResult) -> RawResult {
        let tools = result.object().view().find("tools");
        let Some(tools) = tools.and_then(|tools| tools.decode_as::<Vec<Json>>().ok()) else {
            return result;
        };
        let before = tools.len();
        let mut kept = Vec::with_capacity(before);
        for tool in tools {
            match self.learn_tool(&tool) {
                Ok(()) => kept.push(tool),
                // One list can contain more bad tools than there is room for events.
                Err(violation) if self.core.events.reached_limit(&self.core.limits).is_none() => {
                    self.core.push_violation(violation);
                }
                Err(_) => {}
            }
        }
        if kept.len() == before {
            return result;
        }
        let retries = result.retries();
        let mut object = result.into_object();
        object.insert("tools", Json::from_encode(&kept));
        RawResult::from(object).with_retries(retries)
    }

    fn learn_tool(&mut self, tool: &Json) -> Result<(), Violation> {
        let Some(tool) = tool.view().object() else {
            return Ok(());
        };
        let [name, schema] = tool.find_each(["name", "inputSchema"]);
        let name = name.and_then(JsonRef::as_str);
        let (Some(name), Some(schema)) = (name, schema.and_then(JsonRef::object)) else {
            return Ok(());
        };
        let limit = self.core.limits.tool_bytes;
        match mirrored_within(&schema.to_object(), limit) {
            Ok(parameters) => {
                self.tools.forget(&name);
                let fits = |parameters| self.tools.remember(&name, parameters, limit);
                if parameters.is_some_and(fits) {
                    Ok(())
                } else {
                    Err(Violation::Limit(Limit::ToolBytes))
                }
            }
            Err(reason) => {
                self.tools.forget(&name);
                let name = name.into_owned();
                Err(Violation::Tool { name, reason })
            }
        }
    }

    /// Requests the tool list again, once, because the headers of a call were refused (the same page, "Client Behavior"). Gives
    /// the error back if there is nothing to try.
    pub(super) fn relist(
        &mut self,
        key: RequestKey,
        mut outbound: OutboundRequest,
        error: PeerError,
    ) -> Option<PeerError> {
        let session = self.state.session().map(Arc::clone);
        let session = session.filter(|session| self.mirrors(session.spec));
        let rule = client_request(&outbound.method, outbound.spec);
        let calls = rule.is_some_and(|rule| rule.mirrors_params);
        let tool = tool_of(outbound.params.as_ref()).filter(|_| calls && !outbound.relisted);
        let (Some(session), Some(tool)) = (session, tool) else {
            return Some(error);
        };
        outbound.relisted = true;
        outbound.phase = Phase::Relisting(Relisting {
            error,
            tool,
            pages: 0,
        });
        self.tools.lists += 1;
        self.request_page(key, outbound, None, &session);
        None
    }

    fn request_page(
        &mut self,
        key: RequestKey,
        outbound: OutboundRequest,
        cursor: Option<Json>,
        session: &NegotiatedSession,
    ) {
        let stream = self.outgoing_stream();
        let (timeout, cap) = (outbound.options.timeout, outbound.cap);
        let mut params = JsonObject::new();
        if let Some(sender) = &session.sender {
            params.insert("_meta", sender.meta().clone());
        }
        if let Some(cursor) = cursor {
            params.insert("cursor", cursor);
        }
        let hints = self.request_hints(session.spec, LIST, Some(&params));
        let new = NewRequest {
            key,
            stream,
            timeout: timeout.unwrap_or(self.settings.request_timeout),
            final_deadline: cap,
            with_progress: false,
            purpose: Purpose::Program(Box::new(outbound)),
        };
        let id = self.core.pending.insert(new, self.core.now);
        let bytes = message::request(id, LIST, Some(&params));
        let mut frame = Frame::new(stream, bytes).with_incoming_request(key);
        frame.local_request = Some(key);
        frame.http = hints;
        self.core.queue_frame(frame);
    }

    /// Handles a page of the repeated list: the call is resent if the page contains its tool.
    pub(super) fn relisted(
        &mut self,
        key: RequestKey,
        mut outbound: OutboundRequest,
        outcome: Outcome,
    ) {
        let Phase::Relisting(relisting) = &mut outbound.phase else {
            return;
        };
        relisting.pages += 1;
        let (tool, pages) = (relisting.tool.clone(), relisting.pages);
        let error = relisting.error.clone();
        let outcome = match outcome {
            Outcome::Result(page) => {
                let session = self.state.session().map(Arc::clone);
                let page = self.learn(page);
                let next = page.object().get("nextCursor");
                match (session, next) {
                    (Some(session), _) if names(&page, &tool) => {
                        return self.call_again(key, outbound, error, &session);
                    }
                    (Some(session), Some(next)) if pages < MAX_PAGES => {
                        return self.request_page(key, outbound, Some(next), &session);
                    }
                    _ => Outcome::Error(error),
                }
            }
            Outcome::Error(_) => Outcome::Error(error),
            other => other,
        };
        self.complete(key, outcome);
    }

    fn call_again(
        &mut self,
        key: RequestKey,
        outbound: OutboundRequest,
        error: PeerError,
        session: &NegotiatedSession,
    ) {
        let params = outbound.params.as_ref();
        match self.mirrored_headers(session.spec, &outbound.method, params) {
            Ok(_) => self.send_outbound(key, outbound, session),
            Err(_) => self.complete(key, Outcome::Error(error)),
        }
    }
}

fn tool_of(params: Option<&JsonObject>) -> Option<String> {
    text_of(params?, "name")
}

/// Returns true if a page contains a tool with this name.
fn names(page: &RawResult, name: &str) -> bool {
    let tools = page.object().view().find("tools");
    let tools = tools.and_then(|tools| tools.decode_as::<Vec<JsonObject>>().ok());
    let named = |tool: &JsonObject| tool_of(Some(tool)).is_some_and(|known| known == name);
    tools.unwrap_or_default().iter().any(named)
}
