//! Tools that are switched off: their calls are refused, and they are left out of lists.

use mcp_exact_tool_schema::ToolFilter;

use crate::client::error::ClientError;
use crate::params::string_member;
use crate::protocol::{Json, JsonObject, method};

use super::ClientLink;

impl ClientLink {
    /// Returns the tools that are switched on.
    pub(in crate::client) fn tool_filter(&self) -> &ToolFilter {
        &self.events.handlers.tool_filter
    }

    /// Checks that a request calls no tool that is switched off.
    ///
    /// # Errors
    /// [`ClientError::ToolOff`] if it does.
    pub(in crate::client) fn check_tool(
        &self,
        method: &str,
        params: Option<&JsonObject>,
    ) -> Result<(), ClientError> {
        let filter = self.tool_filter();
        if method != method::TOOLS_CALL || filter.is_empty() {
            return Ok(());
        }
        let tool = params.and_then(|params| string_member(params, "name"));
        let tool = tool.unwrap_or_default();
        match filter.key_against(&tool) {
            None => Ok(()),
            Some(key) => Err(ClientError::ToolOff {
                key: key.to_owned(),
                tool,
            }),
        }
    }

    /// Returns the result of a request; a list of tools without those that are switched off.
    pub(super) fn without_tools_off(&self, method: &str, mut result: JsonObject) -> JsonObject {
        let filter = self.tool_filter();
        if method != method::TOOLS_LIST || filter.is_empty() {
            return result;
        }
        let listed = result.get("tools");
        // What is no list is an error of its own.
        let listed: Option<Vec<JsonObject>> = listed.and_then(|list| list.decode_as().ok());
        if let Some(mut tools) = listed {
            tools.retain(|tool| {
                let name = string_member(tool, "name").unwrap_or_default();
                filter.key_against(&name).is_none()
            });
            result.insert("tools", Json::from_encode(&tools));
        }
        result
    }
}
