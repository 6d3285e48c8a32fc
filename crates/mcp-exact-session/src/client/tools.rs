//! Tools whose parameters a Streamable HTTP client mirrors into headers (2026-07-28, `basic/transports/streamable-http`, "Custom
//! Headers from Tool Parameters").
//!
//! The client records these tools from every tool list, removes tools that break a rule from the list, and requests the list
//! again if a server refuses the headers of a call. Other bindings and older revisions have no mirrored parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_exact_revisions::RevisionSpec;
use mcp_exact_wire::{Json, JsonObject, JsonRef};

use super::ClientEndpoint;
use super::outbound::{LIST_METHOD, OutboundRequest, Phase, Purpose, Relisting};
use super::session::{NegotiatedSession, string_member};
use crate::core::{Frame, NewRequest};
use crate::error::{PeerError, SendError, Violation};
use crate::header_mirroring::mirrored_params_within;
use crate::http::{MirroredParam, param_headers};
use crate::limits::Limit;
use crate::list_cursors::ListCursors;
use crate::message;
use crate::outcome::{Outcome, RawResult};
use crate::rules::client_request;
use crate::stream::{Binding, RequestKey};

/// Tools of the server whose parameters are mirrored into HTTP headers.
#[derive(Debug, Default)]
pub(super) struct Tools {
    /// Known tools by their names.
    by_name: BTreeMap<String, KnownTool>,
    /// Number of tool lists whose recording has started. Tools of older lists are forgotten if memory is needed.
    list_count: u64,
    /// Number of the latest list for which the tools of all older lists were forgotten.
    cleared_list: u64,
    /// Approximate memory of all tools in bytes.
    bytes: usize,
}

/// Tool whose parameters are mirrored into HTTP headers.
#[derive(Debug)]
struct KnownTool {
    /// Number of the list that contained the tool.
    list_number: u64,
    /// Parameters that are mirrored into headers.
    parameters: Vec<MirroredParam>,
    /// Approximate memory of the tool in bytes.
    bytes: usize,
}

impl Tools {
    /// Returns the number of known tools.
    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Forgets the tool with this name.
    fn remove(&mut self, name: &str) {
        if let Some(known) = self.by_name.remove(name) {
            self.bytes -= known.bytes;
        }
    }

    /// Remembers a tool; returns false if the limit of `limit` bytes does not allow it.
    fn insert(&mut self, name: &str, parameters: Vec<MirroredParam>, limit: usize) -> bool {
        if parameters.is_empty() {
            return true;
        }
        let parameters_bytes = parameters.iter().map(MirroredParam::size).sum::<usize>();
        let bytes = name.len() + size_of::<KnownTool>() + parameters_bytes;
        if self.bytes + bytes > limit {
            self.forget_older();
        }
        if self.bytes + bytes > limit {
            return false;
        }
        self.bytes += bytes;
        let known = KnownTool {
            list_number: self.list_count,
            parameters,
            bytes,
        };
        self.by_name.insert(name.to_owned(), known);
        true
    }

    /// Forgets the tools of all lists except the latest; has an effect only once per list.
    fn forget_older(&mut self) {
        if self.cleared_list == self.list_count {
            return;
        }
        self.cleared_list = self.list_count;
        self.by_name
            .retain(|_, known| known.list_number == self.list_count);
        self.bytes = self.by_name.values().map(|known| known.bytes).sum();
    }
}

impl ClientEndpoint {
    /// Returns true if the headers of a `tools/call` mirror its arguments: over Streamable HTTP, in revisions with
    /// mirrored headers.
    fn mirrors_headers(&self, spec: &RevisionSpec) -> bool {
        self.core.binding == Binding::StreamableHttp && spec.has_http_header_mirroring()
    }

    /// Returns the encoded headers that mirror the arguments of a call.
    pub(super) fn mirrored_headers(
        &self,
        spec: &RevisionSpec,
        method: &str,
        params: Option<&JsonObject>,
    ) -> Result<Vec<(String, String)>, SendError> {
        let is_call = || client_request(method, spec).is_some_and(|rule| rule.mirrors_params);
        if !self.mirrors_headers(spec) || !is_call() {
            return Ok(Vec::new());
        }
        let known = called_tool(params).and_then(|name| self.tools.by_name.get(&name));
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

    /// Returns true if the answer to a request is a list of tools whose mirrored parameters are recorded.
    pub(super) fn records_tools_of(&self, outbound: &OutboundRequest) -> bool {
        self.mirrors_headers(outbound.spec) && {
            let rule = client_request(outbound.awaited_method(), outbound.spec);
            rule.is_some_and(|rule| rule.lists_tools)
        }
    }

    /// Records the tools of a list, and returns the list without the tools that must not be called.
    pub(super) fn record_listed_tools(
        &mut self,
        outbound: &OutboundRequest,
        result: RawResult,
    ) -> RawResult {
        if !self.records_tools_of(outbound) {
            return result;
        }
        let params = outbound.params.as_ref();
        let next_page = params.is_some_and(|params| params.view().find("cursor").is_some());
        if !next_page {
            self.tools.list_count += 1;
        }
        self.record_page(result)
    }

    /// Records the tools of one page, and returns the page without the tools that must not be called.
    fn record_page(&mut self, result: RawResult) -> RawResult {
        let tools = result.object().view().find("tools");
        let Some(tools) = tools.and_then(|tools| tools.decode_as::<Vec<Json>>().ok()) else {
            return result;
        };
        let before = tools.len();
        let mut kept = Vec::with_capacity(before);
        for tool in tools {
            match self.record_tool(&tool) {
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

    /// Records one tool; returns the violation if the tool must be removed from the list.
    fn record_tool(&mut self, tool: &Json) -> Result<(), Violation> {
        let Some(tool) = tool.view().object() else {
            return Ok(());
        };
        let [name, schema] = tool.find_each(["name", "inputSchema"]);
        let name = name.and_then(JsonRef::as_str);
        let (Some(name), Some(schema)) = (name, schema.and_then(JsonRef::object)) else {
            return Ok(());
        };
        let limit = self.core.limits.tool_bytes;
        match mirrored_params_within(&schema.to_object(), limit) {
            Ok(parameters) => {
                self.tools.remove(&name);
                let fits = |parameters| self.tools.insert(&name, parameters, limit);
                if parameters.is_some_and(fits) {
                    Ok(())
                } else {
                    Err(Violation::Limit(Limit::ToolBytes))
                }
            }
            Err(reason) => {
                self.tools.remove(&name);
                let name = name.into_owned();
                Err(Violation::Tool { name, reason })
            }
        }
    }

    /// Requests the tool list again, once, because the server refused the headers of a call (2026-07-28,
    /// `basic/transports/streamable-http`, "Client Behavior").
    ///
    /// Returns the error if the list cannot be requested again.
    pub(super) fn request_list_again(
        &mut self,
        key: RequestKey,
        mut outbound: OutboundRequest,
        error: PeerError,
    ) -> Option<PeerError> {
        let session = self.state.session().map(Arc::clone);
        let session = session.filter(|session| self.mirrors_headers(session.spec));
        let rule = client_request(&outbound.method, outbound.spec);
        let calls = rule.is_some_and(|rule| rule.mirrors_params);
        let tool =
            called_tool(outbound.params.as_ref()).filter(|_| calls && !outbound.was_relisted);
        let (Some(session), Some(tool)) = (session, tool) else {
            return Some(error);
        };
        outbound.was_relisted = true;
        outbound.phase = Phase::Relisting(Relisting {
            error,
            tool,
            cursors: ListCursors::default(),
        });
        self.tools.list_count += 1;
        self.request_page(key, outbound, None, &session);
        None
    }

    /// Requests a page of the repeated tool list.
    fn request_page(
        &mut self,
        key: RequestKey,
        outbound: OutboundRequest,
        cursor: Option<Json>,
        session: &NegotiatedSession,
    ) {
        let stream = self.outgoing_stream();
        let (timeout, final_deadline) = (outbound.options.timeout, outbound.final_deadline);
        let mut params = JsonObject::new();
        if let Some(sender) = &session.sender_meta {
            params.insert("_meta", sender.meta().clone());
        }
        if let Some(cursor) = cursor {
            params.insert("cursor", cursor);
        }
        let hints = self.request_hints(session.spec, LIST_METHOD, Some(&params));
        let new = NewRequest {
            key,
            stream,
            timeout: timeout.unwrap_or(self.settings.request_timeout),
            final_deadline,
            with_progress: false,
            purpose: Purpose::Application(Box::new(outbound)),
        };
        let id = self.core.pending.insert(new, self.core.now);
        let bytes = message::write_request(id, LIST_METHOD, Some(&params));
        let mut frame = Frame::new(stream, bytes).with_incoming_request(key);
        frame.local_request = Some(key);
        frame.http = hints;
        self.core.queue_frame(frame);
    }

    /// Handles a page of the repeated list: the call is resent if the page contains its tool.
    pub(super) fn handle_repeated_page(
        &mut self,
        key: RequestKey,
        mut outbound: OutboundRequest,
        outcome: Outcome,
    ) {
        let Phase::Relisting(relisting) = &mut outbound.phase else {
            return;
        };
        let tool = relisting.tool.clone();
        let error = relisting.error.clone();
        let next = match &outcome {
            // A list that does not end has no such tool.
            Outcome::Result(page) => relisting.cursors.next_cursor(page.object()).ok().flatten(),
            _ => None,
        };
        let outcome = match outcome {
            Outcome::Result(page) => {
                let session = self.state.session().map(Arc::clone);
                let page = self.record_page(page);
                match (session, next) {
                    (Some(session), _) if contains_tool(&page, &tool) => {
                        return self.resend_call(key, outbound, error, &session);
                    }
                    (Some(session), Some(next)) => {
                        return self.request_page(key, outbound, Some(next), &session);
                    }
                    _ => Outcome::Error(error),
                }
            }
            Outcome::Error(_) => Outcome::Error(error),
            other => other,
        };
        self.complete_request(key, outcome);
    }

    /// Sends the refused call again with corrected headers.
    fn resend_call(
        &mut self,
        key: RequestKey,
        outbound: OutboundRequest,
        error: PeerError,
        session: &NegotiatedSession,
    ) {
        let params = outbound.params.as_ref();
        match self.mirrored_headers(session.spec, &outbound.method, params) {
            Ok(_) => self.send_attempt(key, outbound, session),
            Err(_) => self.complete_request(key, Outcome::Error(error)),
        }
    }
}

/// Returns the name of the called tool.
fn called_tool(params: Option<&JsonObject>) -> Option<String> {
    string_member(params?, "name")
}

/// Returns true if a page contains a tool with this name.
fn contains_tool(page: &RawResult, name: &str) -> bool {
    let tools = page.object().view().find("tools");
    let tools = tools.and_then(|tools| tools.decode_as::<Vec<JsonObject>>().ok());
    let named = |tool: &JsonObject| called_tool(Some(tool)).is_some_and(|known| known == name);
    tools.unwrap_or_default().iter().any(named)
}
