//! Tools whose parameters are mirrored into headers (2026-07-28, `basic/transports/streamable-http`, "Custom Headers from Tool
//! Parameters"), as a client over HTTP has to know them.
//!
//! Takes results of `tools/list`; leaves bad tools out of them and gives the headers of calls. Keeps a bounded number of
//! tools, and only those that have such parameters.

use mcp_exact_wire::{Json, JsonObject, from_str};

use super::Client;
use crate::error::{PeerError, Violation};
use crate::http::{Mirrored, mirrored, param_headers};
use crate::revision::{Era, Rules};
use crate::types::{Binding, RawResult};

impl Client {
    /// "The client MUST exclude the invalid tool from the result of `tools/list`." Every other byte stays.
    pub(super) fn usable_tools(&mut self, result: RawResult) -> RawResult {
        let tools = result.object().get("tools");
        let tools: Option<Vec<Json>> = tools.and_then(|tools| from_str(tools.text()).ok());
        let Some(tools) = tools.filter(|_| self.binding == Binding::StreamableHttp) else {
            return result;
        };
        let before = tools.len();
        let usable = tools.into_iter().filter(|tool| self.is_usable(tool));
        let usable: Vec<Json> = usable.collect();
        if usable.len() == before {
            return result;
        }
        let mut object = result.into_object();
        object.insert("tools", Json::from_encode(&usable));
        RawResult::from(object)
    }

    fn is_usable(&mut self, tool: &Json) -> bool {
        // What is no tool at all is for the types to say.
        let Ok(tool) = JsonObject::try_from(tool.clone()) else {
            return true;
        };
        let name = tool.get("name").and_then(|name| from_str(name.text()).ok());
        let schema = tool.get("inputSchema").map(JsonObject::try_from);
        let (Some(name), Some(Ok(schema))) = (name, schema) else {
            return true;
        };
        match mirrored(&schema) {
            Ok(parameters) => self.remember(name, parameters),
            Err(reason) => {
                self.mirrored.remove(&name);
                self.violation(Violation::Tool { name, reason });
                return false;
            }
        }
        true
    }

    fn remember(&mut self, name: String, parameters: Vec<Mirrored>) {
        self.mirrored.remove(&name);
        if !parameters.is_empty() && self.mirrored.len() < self.config.limits.tombstones {
            self.mirrored.insert(name, parameters);
        }
    }

    /// The headers of a call, with the values of the parameters that are mirrored.
    pub(super) fn mirrored_headers(
        &self,
        method: &str,
        params: Option<&JsonObject>,
        rules: &Rules,
    ) -> Result<Vec<(String, String)>, PeerError> {
        if method != "tools/call" || rules.era() == Era::Handshake {
            return Ok(Vec::new());
        }
        let name = params.and_then(|params| params.get("name"));
        let name: Option<String> = name.and_then(|name| from_str(name.text()).ok());
        let Some(parameters) = name.and_then(|name| self.mirrored.get(&name)) else {
            return Ok(Vec::new());
        };
        let arguments = params.and_then(|params| params.get("arguments"));
        let arguments = arguments.and_then(|arguments| JsonObject::try_from(arguments).ok());
        param_headers(parameters, arguments.as_ref())
    }
}
