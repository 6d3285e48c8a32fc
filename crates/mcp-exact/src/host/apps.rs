//! Pages of tools in a host (MCP Apps): which tools are for the model, which for pages, and the pages themselves.

use super::{Host, HostBuilder, HostError, HostTool, HostTools};
use crate::apps::{AppError, AppPage};

impl HostBuilder {
    /// Declares to every server that the host shows pages ([MCP Apps](crate::apps), [`Connect::apps`](crate::Connect::apps)).
    pub fn apps(mut self) -> Self {
        self.shows_pages = true;
        self
    }
}

impl HostTools {
    /// Returns the tools that a model may see and call: "Host MUST NOT include tools in the agent's tool list when their visibility
    /// does not include "model"" (MCP Apps, "Visibility").
    pub fn for_model(&self) -> impl Iterator<Item = &HostTool> {
        let tools = self.tools.iter();
        tools.filter(|tool| tool.definition.ui().is_for_model())
    }

    /// Returns the tool that a model calls by its [name](HostTool::name). A model can name tools that it was not given, such as one
    /// that it has read in a result: check each of its calls with this before [`Host::call`].
    ///
    /// # Errors
    /// [`AppError::NotForModel`] if there is no such tool or it is for pages alone; the model gets the same answer in both cases.
    pub fn for_model_call(&self, name: &str) -> Result<&HostTool, AppError> {
        let found = self.for_model().find(|tool| tool.name() == name);
        found.ok_or_else(|| AppError::NotForModel(name.to_owned()))
    }

    /// Returns the tool that a page of a server calls; `tool` is the name in the server's own list. "Host MUST reject `tools/call` requests
    /// from apps for tools that don't include "app" in visibility", and a page calls tools of its server alone (MCP Apps,
    /// "Visibility").
    ///
    /// `server` is the server of the page in this host. If that is the joint endpoint of a gateway, all servers behind it are one
    /// server here, and their pages may call tools of each other; give such a host the endpoint of each server.
    ///
    /// # Errors
    /// [`AppError::NotForPages`] if the server has no such tool or it is for the model alone; the page gets the same answer in both
    /// cases.
    pub fn for_page(&self, server: &str, tool: &str) -> Result<&HostTool, AppError> {
        let mut tools = self.tools.iter();
        let found = tools.find(|one| one.server == server && one.definition.name() == tool);
        let found = found.filter(|one| one.definition.ui().is_for_app());
        found.ok_or_else(|| AppError::NotForPages {
            server: server.to_owned(),
            tool: tool.to_owned(),
        })
    }
}

impl Host {
    /// Reads the page of a tool ([`Client::read_app`](crate::Client::read_app)).
    ///
    /// # Errors
    /// [`HostError::UnknownServer`] if the server of the tool is not connected, [`HostError::App`] if the page cannot be shown.
    pub async fn read_app(&self, tool: &HostTool) -> Result<AppPage, HostError> {
        let client = self.client(&tool.server);
        let client = client.ok_or_else(|| HostError::UnknownServer(tool.name().to_owned()))?;
        let page = client.read_app(&tool.definition).await;
        page.map_err(|error| HostError::App {
            server: tool.server.clone(),
            error: Box::new(error),
        })
    }
}
