//! Catalogue of a host: the names, texts and arguments under which its models know the tools of servers, and a search for tools.

use mcp_exact_tool_schema::{ArgumentError, Catalogue, ToolIndex};

use super::{Host, HostBuilder, HostTools};
use crate::client::Definition;
use crate::protocol::{Json, JsonObject};

impl HostBuilder {
    /// Sets the catalogue of the tools: other names, titles, descriptions and annotations, hidden tools, and arguments that calls get
    /// without the model. The names of its servers are those of the host. Policies and audit know a tool by the name that the server
    /// has.
    ///
    /// ```
    /// use mcp_exact::{Catalogue, Host, RawJson, ToolEntry};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut read = ToolEntry::default();
    /// read.rename = Some("read".to_owned());
    /// read.fixed.insert("encoding".to_owned(), RawJson::string("utf-8"));
    /// let mut catalogue = Catalogue::default();
    /// catalogue.insert("files", "read_text_file", read)?;
    /// let host = Host::builder().catalogue(catalogue);
    /// # let _ = host;
    /// # Ok(())
    /// # }
    /// ```
    pub fn catalogue(mut self, catalogue: Catalogue) -> Self {
        self.catalogue = catalogue;
        self
    }
}

impl Host {
    /// Lists the tools of all servers, and returns those that words such as `read a file` describe best, at most `most` in the order
    /// of their rank: for a model that shall not be shown all tools. A server that does not answer in time is one of the
    /// [failures](HostTools::failures).
    pub async fn find_tools(&self, words: &str, most: usize) -> HostTools {
        let mut all = self.tools().await;
        let definitions = all
            .tools
            .iter()
            .map(|tool| tool.definition.object().clone());
        let found = ToolIndex::new(&definitions.collect::<Vec<_>>()).find(words, most);
        all.tools = found
            .into_iter()
            .map(|place| all.tools[place].clone())
            .collect();
        all
    }

    /// Returns the definition of a tool as the catalogue describes it; `None` if it is hidden, or another tool has its name.
    pub(super) fn described(&self, server: &str, definition: Definition) -> Option<Definition> {
        match self.catalogue.server(server) {
            Some(catalogue) => {
                let described = catalogue.definition(definition.object().clone(), Some)?;
                Some(Definition::from_object(described))
            }
            None => Some(definition),
        }
    }

    /// Returns the name that a server itself has for a tool; `None` if the catalogue gives the name to no tool.
    pub(super) fn own_name<'n>(&'n self, server: &str, listed: &'n str) -> Option<&'n str> {
        match self.catalogue.server(server) {
            Some(catalogue) => catalogue.own_name(listed),
            None => Some(listed),
        }
    }

    /// Returns the arguments of a call with those that the catalogue gives.
    pub(super) fn given_arguments(
        &self,
        server: &str,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<JsonObject, ArgumentError> {
        let Some(catalogue) = self.catalogue.server(server) else {
            return Ok(arguments);
        };
        match catalogue.arguments(tool, Some(Json::from(arguments)))? {
            Some(given) => JsonObject::try_from(given).map_err(|_| ArgumentError::NoObject),
            None => Ok(JsonObject::new()),
        }
    }
}
